//! Tests the archive with a real MariaDB: its schema, the written rows, and that no
//! connection failure loses or duplicates data.
//!
//! MySQL 8 is not in Debian, so these tests run on MariaDB. Schema and statements use
//! only what the manuals of both describe; to test with MySQL, set `CLQD_TEST_MYSQL`
//! to a MySQL server.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::database;
use crate::database::proxy::{Plan, Proxy};
use crate::database::world::{Outbox, assert_same, new_server, read};
use crate::database::{Database, Server};
use clqd::archive::{
    Archive, ArchiveError, ArchiveSettings, FaultKind, JobSource, MigrationStep, OutboxQuery, Routines, Schema,
    SourceClosed, WorkerStatus,
};
use clqd::fleet::rng::{RngExt, SplitMix64};
use clqd::model::archive::{
    BoardOrder, BoardPlace, ListEntry, PlayerKeyRange, PlayerWeekArchive, ServerArchive, WeekArchive,
};
use clqd::model::outbox::WriterBeat;
use clqd::model::row::Uncertainty;
use clqd::model::server::SeriesRecord;
use clqd::model::top_board::{SiteTotals, TopBoard, TopBoardKey, TopEntry, TopScope};
use clqd::model::{
    ArchiveJob, GameKey, MapKey, OutboxEntry, OutboxKey, PlayerKey, Ranking, ServerKey, Session, SessionKey, WeekKey,
};
use mysql_async::prelude::Queryable;
use tokio::sync::{oneshot, watch};

async fn migrated() -> Database {
    let database = Database::new().await;
    database.migrate().await;
    database
}

async fn open(database: &Database) -> Archive {
    Archive::connect(&database.settings()).await.unwrap()
}

/// Runs a worker until everything is written.
async fn drain(settings: ArchiveSettings, outbox: &Outbox) -> WorkerStatus {
    let (status, seen) = watch::channel(WorkerStatus::default());
    clqd::archive::run(settings, outbox.clone(), || 1_763_000_000_000, async {}, status).await;
    seen.borrow().clone()
}

// Schema -----------------------------------------------------------------

#[tokio::test]
async fn second_migration_changes_nothing() {
    let database = Database::new().await;
    let mut archive = open(&database).await;
    let error = archive.check_schema().await.unwrap_err();
    assert!(error.to_string().contains("clqd migrate"), "{error}");

    let first = archive.migrate().await.unwrap();
    assert_eq!((first.from, first.to, first.routines), (None, Schema::CURRENT.version, Routines::Ready));
    archive.check_schema().await.unwrap();
    let outbox = Outbox::new(1);
    let jobs = outbox.with(|world| world.jobs());
    archive.write(&jobs).await.unwrap();
    let before = read(&database).await;

    let second = archive.migrate().await.unwrap();
    assert_eq!((second.from, second.routines), (Some(Schema::CURRENT.version), Routines::Ready));
    assert_same(&read(&database).await, &before, "after the second migration");
}

#[tokio::test]
async fn newer_schema_is_refused() {
    let database = migrated().await;
    database.run("INSERT INTO clq_schema_version VALUES (4000, 0)").await;
    let mut archive = open(&database).await;
    for result in [archive.migrate().await.map(drop), archive.check_schema().await] {
        let error = result.unwrap_err();
        assert!(matches!(error, ArchiveError::Schema { .. }), "{error}");
        assert!(error.to_string().contains("4000"), "{error}");
    }
}

#[tokio::test]
async fn interrupted_migration_is_completed() {
    const NEXT: Schema = Schema {
        version: Schema::CURRENT.version + 1,
        sql: Schema::CURRENT.sql,
        steps: &[MigrationStep {
            to: Schema::CURRENT.version + 1,
            sql: "ALTER TABLE game ADD COLUMN a INT NULL COMMENT 'a;b';\nALTER TABLE game ADD COLUMN b INT NULL;",
        }],
    };
    let database = migrated().await;
    // As if the power had failed after the first statement.
    database.run("ALTER TABLE game ADD COLUMN a INT NULL COMMENT 'a;b'").await;
    let mut archive = open(&database).await;
    let migrated = archive.migrate_to(&NEXT).await.unwrap();
    assert_eq!((migrated.from, migrated.to), (Some(Schema::CURRENT.version), NEXT.version));
    database.rows("SELECT a, b FROM game").await;
    let error = archive.check_schema().await.unwrap_err();
    assert!(error.to_string().contains("newer"), "{error}");
    assert_eq!(archive.migrate_to(&NEXT).await.unwrap().from, Some(NEXT.version));
}

#[tokio::test]
async fn mysql_client_applies_schema_sql() {
    let database = Database::new().await;
    let address = database.address();
    let mut client = std::process::Command::new("mariadb");
    client.args(["--no-defaults", "--protocol=tcp", "-h127.0.0.1"]).arg(format!("-P{}", address.port()));
    let opts = mysql_async::Opts::from_url(&database.url()).unwrap();
    client.arg(format!("-u{}", opts.user().unwrap())).arg(format!("-p{}", opts.pass().unwrap_or("")));
    client.arg(&database.name).stdin(std::fs::File::open("schema.sql").unwrap());
    let output = client.output().expect("the client is installed with the server");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    open(&database).await.check_schema().await.unwrap();
}

#[tokio::test]
async fn tables_columns_and_routines_have_comments() {
    let database = migrated().await;
    let tables = database
        .rows(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() \
             AND table_type = 'BASE TABLE' AND (table_comment = '' OR engine <> 'InnoDB' \
             OR table_collation <> 'utf8mb4_bin')",
        )
        .await;
    assert!(tables.is_empty(), "{tables:?}");
    let columns = database
        .rows(
            "SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN information_schema.tables t \
             ON t.table_schema = c.table_schema AND t.table_name = c.table_name AND t.table_type = 'BASE TABLE' \
             WHERE c.table_schema = DATABASE() AND c.column_comment = ''",
        )
        .await;
    assert!(columns.is_empty(), "{columns:?}");
    let routines = database
        .rows(
            "SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE() \
             AND routine_comment = ''",
        )
        .await;
    assert!(routines.is_empty(), "{routines:?}");
    let tables = database.value("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()").await;
    assert!(tables.parse::<u32>().unwrap() > 20, "tables were checked: {tables}");
}

#[tokio::test]
async fn account_without_routine_privilege_gets_tables_only() {
    let database = Database::new().await;
    let user = &database.name;
    database.run(&format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'it''s'")).await;
    database.run(&format!("GRANT ALL PRIVILEGES ON {user}.* TO '{user}'@'%'")).await;
    let url = format!("mysql://{user}:it%27s@{}/{user}", database.address());
    let plain = ArchiveSettings { url, ..database.settings() };

    let mut archive = Archive::connect(&plain).await.unwrap();
    let migrated = archive.migrate().await.unwrap();
    assert!(matches!(migrated.routines, Routines::Missing { .. }), "{migrated:?}");
    archive.check_schema().await.unwrap();
    let outbox = Outbox::new(2);
    outbox.with(|world| (0..100).for_each(|_| world.step()));
    archive.write(&outbox.with(|world| world.jobs())).await.unwrap();
    archive.close().await;
    // No view needs them.
    for kind in ["ten_minutes", "hour", "day", "rank"] {
        assert_ne!(database.value(&format!("SELECT COUNT(*) FROM clq_series_{kind}")).await, "0", "{kind}");
    }

    let mut archive = open(&database).await;
    assert_eq!(archive.migrate().await.unwrap().routines, Routines::Ready);
    archive.close().await;
    let mut archive = Archive::connect(&plain).await.unwrap();
    let migrated = archive.migrate().await.unwrap();
    assert!(matches!(migrated.routines, Routines::Kept { .. }), "{migrated:?}");
    assert_eq!(database.value("SELECT clq_players8(0)").await, "0");
}

// Series -----------------------------------------------------------------

/// The code of docs/rules.md section 10, implemented from its definition.
fn code(players: Option<f64>, bits: u32) -> u16 {
    let top = (1_u32 << bits) - 1;
    let Some(players) = players else { return top as u16 };
    if players == 0.0 {
        return 0;
    }
    let value_of = |code: u32| 0.05 * (4096.0_f64 / 0.05).powf(f64::from(code - 1) / f64::from(top - 2));
    let distance = |code: u32| (value_of(code).ln() - players.ln()).abs();
    (1..top).min_by(|&a, &b| distance(a).total_cmp(&distance(b))).unwrap() as u16
}

fn pack13(codes: &[u16]) -> Vec<u8> {
    let mut bits: Vec<u8> = Vec::new();
    for three in codes.chunks(3) {
        for code in three {
            bits.extend((0..13).rev().map(|bit| (code >> bit) as u8 & 1));
        }
        bits.push(0);
    }
    bits.chunks(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit)).collect()
}

#[tokio::test]
async fn series_views_decode_stored_values() {
    let values = |count: usize| -> Vec<Option<f64>> {
        (0..count)
            .map(|i| match i % 7 {
                0 => None,
                1 => Some(0.0),
                2 => Some(0.05),
                3 => Some(4_096.0),
                _ => Some(0.3 + i as f64 * 1.7),
            })
            .collect()
    };
    let (ten_minutes, hours, days, weeks) = (values(150), values(768), values(365), values(61));
    let code8 = |values: &[Option<f64>]| -> Vec<u8> { values.iter().map(|&it| code(it, 8) as u8).collect() };
    let ranks: Vec<u16> = (0..55).map(|i| i * 900).collect();
    let series = SeriesRecord {
        newest_ten_minutes_ms: 1_763_000_400_000,
        newest_hour_ms: 1_762_999_200_000,
        newest_day_ms: 1_762_905_600_000,
        newest_week_ms: 1_762_732_800_000,
        ten_minutes: pack13(&ten_minutes.iter().map(|&it| code(it, 13)).collect::<Vec<_>>()),
        hours: code8(&hours),
        days: code8(&days),
        weeks: code8(&weeks),
        ranks: ranks.iter().flat_map(|rank| rank.to_be_bytes()).collect(),
        newest_rank_week: Some(WeekKey(2_916)),
    };
    assert_eq!((series.ten_minutes.len(), series.ranks.len()), (250, 110));
    let database = migrated().await;
    let mut archive = open(&database).await;
    let record = ServerArchive { series: Some(series.clone()), ..new_server(7, "quake3://10.0.0.7:27960") };
    archive.write(&[ArchiveJob::Server(Box::new(record))]).await.unwrap();

    for (kind, values, newest_ms, step_ms, error) in [
        ("ten_minutes", &ten_minutes, series.newest_ten_minutes_ms, 600_000, 0.000_7),
        ("hour", &hours, series.newest_hour_ms, 3_600_000, 0.023),
        ("day", &days, series.newest_day_ms, 86_400_000, 0.023),
        ("week", &weeks, series.newest_week_ms, 604_800_000, 0.023),
    ] {
        let view = database
            .rows(&format!("SELECT time_ms, players FROM clq_series_{kind} WHERE server = 7 ORDER BY time_ms"))
            .await;
        assert_eq!(database.rows(&format!("CALL clq_series(7, '{kind}')")).await, view);
        assert_eq!(view.len(), values.len(), "{kind}");
        for (i, (row, value)) in view.iter().zip(values).enumerate() {
            let steps_back = (values.len() - 1 - i) as i64;
            assert_eq!(row[0], (newest_ms - steps_back * step_ms).to_string(), "{kind} {i}");
            match value {
                None => assert_eq!(row[1], "NULL", "{kind} {i}"),
                Some(0.0) => assert_eq!(row[1], "0", "{kind} {i}"),
                Some(value) => {
                    let found: f64 = row[1].parse().unwrap();
                    assert!((found / value - 1.0).abs() < error, "{kind} {i}: {found} for {value}");
                }
            }
        }
    }
    let view = database.rows("SELECT week, server_rank FROM clq_series_rank WHERE server = 7 ORDER BY week").await;
    assert_eq!(database.rows("CALL clq_series(7, 'rank')").await, view);
    for (i, (row, rank)) in view.iter().zip(&ranks).enumerate() {
        let rank = if *rank == 0 { "NULL".to_owned() } else { rank.to_string() };
        assert_eq!(*row, [(2_916 - 54 + i).to_string(), rank]);
    }
    // Boundary values of each function.
    for (call, want) in [
        ("clq_players8(255)", "NULL"),
        ("clq_players8(256)", "NULL"),
        ("clq_players8(-1)", "NULL"),
        ("clq_players8(NULL)", "NULL"),
        ("ABS(clq_players8(254) - 4096) < 1e-6", "1"),
        ("clq_players13(8191)", "NULL"),
        ("ABS(clq_players13(8190) - 4096) < 1e-6", "1"),
        ("clq_players13(1)", "0.05"),
        ("clq_code13(X'FFF8000002', 0)", "8191"),
        ("clq_code13(X'FFF8000002', 1)", "0"),
        ("clq_code13(X'FFF8000002', 2)", "1"),
        ("clq_code13(X'FFF8000003', 2)", "1"),
        ("clq_code13(X'FFF8000002', 3)", "NULL"),
        ("clq_code13(X'FFF80000', 0)", "NULL"),
        ("clq_code8(X'00FF', 1)", "255"),
        ("clq_code8(X'00FF', 2)", "NULL"),
        ("clq_rank16(X'0000C350', 0)", "NULL"),
        ("clq_rank16(X'0000C350', 1)", "50000"),
    ] {
        assert_eq!(database.value(&format!("SELECT {call}")).await, want, "{call}");
    }
    let mut conn = database.conn().await;
    let error = mysql_async::prelude::Queryable::query_drop(&mut conn, "CALL clq_series(7, 'year')").await.unwrap_err();
    assert!(error.to_string().contains("ten_minutes, hour, day, week, rank"), "{error}");
}

// Writing ----------------------------------------------------------------

fn week(server: u32, rows: Vec<PlayerWeekArchive>) -> WeekArchive {
    WeekArchive {
        week: WeekKey(2_916),
        server: ServerKey(server),
        label: "2025-W47".into(),
        week_start_ms: 1_763_337_600_000,
        week_end_ms: 1_763_942_400_000,
        closed: false,
        game: Some(GameKey(1)),
        server_rank: None,
        player_ms: 0,
        board_sizes: [0; 5],
        checksum: None,
        span: PlayerKeyRange::ALL,
        is_complete: true,
        rows,
        maps: Vec::new(),
        steps: Vec::new(),
        best: Vec::new(),
    }
}

fn row(player: u32, position: u32) -> PlayerWeekArchive {
    PlayerWeekArchive {
        player: PlayerKey(player),
        measured_ms: 1,
        starts: 1,
        time_ms: 60_001,
        time_est_ms: 61_000,
        points: 3,
        points_est: 3.125,
        elo: 887.5,
        elo_rounds: 1,
        elo_rounds_sure: 1,
        uncertainty: Uncertainty::default(),
        clq1: 7_200_000,
        clq2: 8,
        ten_best: None,
        places: [(); 5]
            .map(|()| Some(BoardPlace { reached_ms: 1_763_337_600_000, order: BoardOrder::Position(position) })),
    }
}

fn player(key: u32, name: &str) -> ArchiveJob {
    ArchiveJob::Player { key: PlayerKey(key), game: GameKey(1), name: name.into(), display: name.into() }
}

#[tokio::test]
async fn repeated_write_leaves_same_rows() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    let outbox = Outbox::new(3);
    for round in 0..60 {
        outbox.with(|world| {
            for _ in 0..8 {
                world.step();
            }
        });
        let (jobs, wanted) = outbox.with(|world| (world.jobs(), world.tables()));
        archive.write(&jobs).await.unwrap();
        assert_same(&read(&database).await, &wanted, &format!("round {round}"));
        if round % 10 == 0 {
            archive.write(&jobs).await.unwrap();
            assert_same(&read(&database).await, &wanted, &format!("round {round}, written again"));
        }
    }
    let closed: u32 = database.value("SELECT COUNT(*) FROM best_position").await.parse().unwrap();
    assert!(closed > 20, "weeks were closed: {closed}");
}

#[tokio::test]
async fn one_row_batches_write_same_rows() {
    let database = migrated().await;
    let settings = ArchiveSettings { batch_rows_max: 1, ..database.settings() };
    let outbox = Outbox::new(4);
    outbox.with(|world| (0..300).for_each(|_| world.step()));
    let (jobs, wanted) = outbox.with(|world| (world.jobs(), world.tables()));
    let mut archive = Archive::connect(&settings).await.unwrap();
    archive.write(&jobs).await.unwrap();
    assert_same(&read(&database).await, &wanted, "one row a transaction");
}

#[tokio::test]
async fn large_week_is_one_transaction_of_many_statements() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    let rows: Vec<_> = (1..=20_000).map(|key| row(key, key)).collect();
    let best =
        (1..=20_000).map(|key| (PlayerKey(key), std::array::from_fn(|_| vec![(key, WeekKey(2_916))])).into()).collect();
    let job = WeekArchive { closed: true, best, ..week(1, rows.clone()) };
    archive.write(&[ArchiveJob::Week(Box::new(job))]).await.unwrap();
    assert_eq!(database.value("SELECT COUNT(*) FROM player_week").await, "20000");
    assert_eq!(database.value("SELECT COUNT(*) FROM best_position").await, "60000");
    // Deletes almost all rows: more than fit in one list.
    let job = week(1, rows[..5].to_vec());
    archive.write(&[ArchiveJob::Week(Box::new(job))]).await.unwrap();
    assert_eq!(database.value("SELECT COUNT(*) FROM player_week").await, "5");
    assert_eq!(
        database.value("SELECT COUNT(*) FROM best_position").await,
        "60000",
        "an open week does not change best positions"
    );
}

#[tokio::test]
async fn readers_see_scores_and_positions_of_one_commit() {
    // More rows than one statement writes.
    const ROWS: u64 = 3_000;
    let database = migrated().await;
    let mut archive = open(&database).await;
    let reading = async {
        let mut conn = database.conn().await;
        let mut versions = 0;
        let mut last = String::new();
        while versions < 20 {
            let seen: Vec<(u64, u64, u64, String)> = mysql_async::prelude::Queryable::query(
                &mut conn,
                "SELECT COUNT(*), COUNT(DISTINCT clq1), COUNT(DISTINCT clq1_position - player - clq1), \
                 COALESCE(MAX(clq1), '') FROM player_week",
            )
            .await
            .unwrap();
            let (rows, scores, shifts, version) = seen.into_iter().next().unwrap();
            assert!(matches!((rows, scores, shifts), (0, 0, 0) | (ROWS, 1, 1)), "{rows} {scores} {shifts} {version}");
            versions += u32::from(version != last);
            last = version;
        }
    };
    let writing = async {
        for version in 0..u32::MAX {
            let row = |key| PlayerWeekArchive { clq1: version.into(), ..row(key, key + version) };
            let job = week(1, (1..=ROWS as u32).map(row).collect());
            archive.write(&[ArchiveJob::Week(Box::new(job))]).await.unwrap();
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}

#[tokio::test]
async fn archive_of_another_state_is_refused() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    archive.write(&[player(1, "Visor"), player(2, "Klesk")]).await.unwrap();
    archive.write(&[ArchiveJob::Map { key: MapKey(1), name: "q3dm17".into() }]).await.unwrap();
    archive.write(&[ArchiveJob::Server(Box::new(new_server(1, "quake3://a:1")))]).await.unwrap();
    let before = read(&database).await;
    for (job, words) in [
        (player(3, "Visor"), ["\"Visor\"", "key 3", "key 1"].as_slice()),
        (player(2, "Visor"), &["\"Visor\"", "key 2"]),
        (player(2, "Sarge"), &["\"Sarge\"", "\"Klesk\"", "key 2"]),
        (ArchiveJob::Map { key: MapKey(2), name: "q3dm17".into() }, &["\"q3dm17\"", "key 2", "key 1"]),
        (ArchiveJob::Server(Box::new(new_server(9, "quake3://a:1"))), &["\"quake3://a:1\"", "key 9", "key 1"]),
    ] {
        let error = archive.write(&[player(7, "new"), job.clone()]).await.unwrap_err();
        assert!(matches!(error, ArchiveError::KeyMismatch { .. }), "{error}");
        assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
        if !matches!(job, ArchiveJob::Player { .. }) {
            // The player was written in an earlier transaction, which is not rolled back.
            database.run("DELETE FROM player WHERE player = 7").await;
        }
        assert_same(&read(&database).await, &before, "refused");
    }
    // Names that differ in case, accents or trailing characters are different names.
    archive.write(&[player(3, "visor"), player(4, "Vìsor"), player(5, "Visor.")]).await.unwrap();
}

// Removed players ---------------------------------------------------------

/// Rows of weeks that the daemon no longer writes are updated too.
#[tokio::test]
async fn removed_player_is_deleted_or_merged() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    let of_week = |number: u32, rows: Vec<PlayerWeekArchive>, best: &[(u32, u32)]| {
        let best = best.iter().map(|&(player, position)| {
            let three = [vec![(position, WeekKey(number))], Vec::new(), vec![(position, WeekKey(number))]];
            (PlayerKey(player), three).into()
        });
        let job = WeekArchive { week: WeekKey(number), best: best.collect(), closed: true, ..week(1, rows) };
        let job = WeekArchive { checksum: Some(number), ..job };
        ArchiveJob::Week(Box::new(WeekArchive { label: format!("2026-W{number}"), ..job }))
    };
    let listed = |player: u32, name: &str| ListEntry {
        name: name.into(),
        display: name.into(),
        points: Some(1),
        player: Some(PlayerKey(player)),
        spectator: false,
    };
    let list = vec![listed(1, "Visor"), listed(2, "Klesk"), listed(3, "Sarge")];
    // All ended in the same moment.
    let session = |player: u32| {
        let (server, player) = (ServerKey(1), PlayerKey(player));
        let key = SessionKey { end_ms: 900, server, player, origin: player, generation: 0 };
        ArchiveJob::Session(key, Session { start_ms: 100, points: None, map: MapKey(1), seen: player.0 })
    };
    let sessions = "SELECT player, origin, start_ms, end_ms, points, seen FROM player_session ORDER BY 1, 2";
    let before = [
        player(1, "Visor"),
        player(2, "Klesk"),
        player(3, "Sarge"),
        ArchiveJob::Server(Box::new(ServerArchive { list, ..new_server(1, "quake3://a:1") })),
        of_week(8, vec![row(1, 1)], &[]),
        of_week(10, vec![row(1, 1), row(2, 2), row(3, 3)], &[(1, 1), (2, 2), (3, 3)]),
        of_week(11, vec![row(2, 1), row(3, 2)], &[(2, 1), (3, 2)]),
        session(1),
        session(2),
        session(3),
    ];
    for job in &before {
        archive.write(std::slice::from_ref(job)).await.unwrap();
    }
    // The rows of week 9 were deleted because of their age; the totals are kept.
    database
        .run(
            "INSERT INTO player_total VALUES (1, 9, 1, 10, 11, 5, 5.5, 1, 0, 9, 8, NULL), \
             (2, 9, 2, 20, 21, 6, 6.5, 2, 1, 9, 8, 7)",
        )
        .await;
    // Of week 8, which is being deleted because of its age, one of two rows is left.
    database.run("UPDATE server_week SET checksum = NULL WHERE week = 8").await;
    database.run("UPDATE player_total SET servers = 2, time_ms = 100000, points = 4 WHERE week = 8").await;
    // The state does not keep the window of this board.
    database
        .run(
            "INSERT INTO top_board_row (board, position, player, score, reached_ms) VALUES (7, 1, 2, 9, 1), (7, 2, 1, 8, 1), \
             (7, 3, 3, 7, 1)",
        )
        .await;
    let on_board = "SELECT position, player FROM top_board_row ORDER BY 1";
    let positions = "SELECT week, player, clq1_position FROM player_week ORDER BY week, player";
    let totals = "SELECT player, week, servers, time_ms, points, last_seen_ms > 0 FROM player_total ORDER BY 1, 2";
    let best =
        "SELECT player, ranking, ordinal, position, week FROM best_position WHERE ranking = 'elo' ORDER BY 1, 2, 3";
    let list = "SELECT name, player FROM online_player ORDER BY list_index";

    let merged = ArchiveJob::PlayerRemoved { key: PlayerKey(2), into: Some(PlayerKey(1)) };
    for _ in 0..2 {
        archive.write(std::slice::from_ref(&merged)).await.unwrap();
        assert_eq!(
            database.rows(positions).await,
            [["8", "1", "1"], ["10", "1", "1"], ["10", "3", "3"], ["11", "1", "1"], ["11", "3", "2"]],
            "the target already has a row in week 10"
        );
        assert_eq!(
            database.rows(best).await,
            [["1", "elo", "1", "1", "10"], ["1", "elo", "2", "1", "11"], ["3", "elo", "1", "2", "11"]]
        );
        assert_eq!(database.rows(list).await, [["Visor", "1"], ["Klesk", "1"], ["Sarge", "3"]]);
        assert_eq!(
            database.rows(totals).await,
            [
                ["1", "8", "2", "100000", "4", "1"],
                ["1", "9", "2", "30", "11", "1"],
                ["1", "10", "1", "60001", "3", "1"],
                ["1", "11", "1", "60001", "3", "1"],
                ["3", "10", "1", "60001", "3", "1"],
                ["3", "11", "1", "60001", "3", "1"],
            ]
        );
        assert_eq!(
            database.rows(sessions).await,
            [
                ["1", "1", "100", "900", "NULL", "1"],
                ["1", "2", "100", "900", "NULL", "2"],
                ["3", "3", "100", "900", "NULL", "3"],
            ]
        );
        assert_eq!(database.rows("SELECT player FROM player ORDER BY 1").await, [["1"], ["3"]]);
        assert_eq!(database.rows(on_board).await, [["1", "1"], ["2", "1"], ["3", "3"]]);
    }

    let forgotten = ArchiveJob::PlayerRemoved { key: PlayerKey(1), into: None };
    for _ in 0..2 {
        // The name may be given to another player in the same batch.
        archive.write(&[player(9, "Visor"), forgotten.clone()]).await.unwrap();
        assert_eq!(database.rows(positions).await, [["10", "3", "3"], ["11", "3", "2"]]);
        assert_eq!(database.rows(best).await, [["3", "elo", "1", "2", "11"]]);
        assert_eq!(database.rows(list).await, [["", "NULL"], ["", "NULL"], ["Sarge", "3"]]);
        assert_eq!(database.rows("SELECT player, COUNT(*) FROM player_total GROUP BY 1").await, [["3", "2"]]);
        assert_eq!(database.rows("SELECT player, name FROM player ORDER BY 1").await, [["3", "Sarge"], ["9", "Visor"]]);
        assert_eq!(database.rows(sessions).await, [["3", "3", "100", "900", "NULL", "3"]]);
        assert_eq!(database.rows(on_board).await, [["3", "3"]]);
    }
}

/// The state knows only the game of today: a resend or a correction must not move a closed week there.
#[tokio::test]
async fn closed_week_keeps_its_game() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    for key in 1..=2 {
        archive.write(&[ArchiveJob::Game { key: GameKey(key), name: format!("game {key}") }]).await.unwrap();
    }
    let map =
        |map: u32| clqd::model::archive::MapWeekArchive { map: MapKey(map), played_ms: 90_000, player_ms: 180_000 };
    let job = |game: u32, closed: bool| {
        let job = WeekArchive { closed, game: Some(GameKey(game)), ..week(1, vec![row(1, 1)]) };
        [ArchiveJob::Week(Box::new(WeekArchive { maps: vec![map(1), map(2)], ..job }))]
    };
    let games = "SELECT game FROM server_week UNION ALL SELECT game FROM map_week";
    let totals = "SELECT game, map, played_ms, servers FROM map_total WHERE servers > 0 ORDER BY 1, 2";
    let totals_of = |game: &str| {
        let total = |game: &str, map: &str| [game, map, "90000", "1"].map(str::to_owned);
        [total("0", "1"), total("0", "2"), total(game, "1"), total(game, "2")]
    };
    for (game, closed, expected) in [(1, false, "1"), (2, false, "2"), (2, true, "2"), (1, true, "2")] {
        archive.write(&job(game, closed)).await.unwrap();
        assert_eq!(database.rows(games).await, [[expected]; 3], "{game} {closed}");
        assert_eq!(database.rows(totals).await, totals_of(expected), "{game} {closed}");
    }
}

/// Somebody has inserted rows of a server that there is not. The weeks are written first, with totals that count them.
#[tokio::test]
async fn totals_of_a_week_do_not_count_rows_of_unknown_servers() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    let jobs = [
        player(1, "Visor"),
        player(2, "Klesk"),
        ArchiveJob::Server(Box::new(new_server(1, "quake3://a:1"))),
        ArchiveJob::Week(Box::new(week(1, vec![row(1, 1), row(2, 2)]))),
    ];
    archive.write(&jobs).await.unwrap();
    let totals = "SELECT * FROM player_total ORDER BY 1, 2";
    let before = database.rows(totals).await;
    for player in [1, 3] {
        let insert = format!(
            "INSERT INTO player_week (week, server, player, measured_ms, starts, time_ms, points, elo, elo_rounds, clq1, clq2) \
             VALUES (2916, 99, {player}, 1, 1, 60001, 3, 1000, 0, 0, 0)"
        );
        database.run(&insert).await;
    }
    archive.write(&jobs).await.unwrap();
    assert_ne!(database.rows(totals).await, before, "the unknown server counts");
    archive.write(&[ArchiveJob::WeekTotals { week: WeekKey(2_916) }]).await.unwrap();
    assert_eq!(database.rows(totals).await, before);
}

/// The rows of a name that is on many servers are added up once for each connection; then the total changes by the
/// differences.
#[tokio::test]
async fn total_of_a_name_on_many_servers_is_the_sum_of_its_rows() {
    const SERVERS: u64 = 30;
    let database = migrated().await;
    let mut archive = open(&database).await;
    archive.write(&[player(1, "Player"), player(2, "UnnamedPlayer"), player(3, "Visor")]).await.unwrap();
    let mut random = SplitMix64::from_parts(&[11]);
    // The rows of each server: two names are on all servers, a third player on the first two.
    let mut rows: Vec<Vec<PlayerWeekArchive>> = (0..SERVERS)
        .map(|server| (1..=if server < 2 { 3 } else { 2 }).map(|player| row(player, player)).collect())
        .collect();
    let span = 1_763_337_600_000..1_763_942_400_000;
    for round in 0..60 {
        let mut jobs = Vec::new();
        for server in 0..SERVERS {
            // At first all of them, then some.
            if round > 0 && !random.bool(0.1) {
                continue;
            }
            let rows = &mut rows[server as usize];
            for row in rows.iter_mut() {
                row.time_ms += random.below(9_000_000) as u64;
                row.points += random.below(100) as i64 - 40;
                row.points_est = (row.points as f64 * 1_125.0).round() / 1_000.0;
                row.elo_rounds += random.below(3) as u32;
                row.uncertainty.time_est_s2 = random.below(1_000) as u32;
                // A recomputed row may have been reached earlier; without time it has no place.
                let reached_ms = span.start + random.below(100_000) as i64;
                let place = Some(BoardPlace { reached_ms, order: BoardOrder::Position(1) });
                row.places[Ranking::Time as usize] = place.filter(|_| random.bool(0.9));
            }
            match random.below(12) {
                0 => rows.clear(),
                1 => _ = rows.pop(),
                2 => *rows = (1..=2).map(|player| row(player, player)).collect(),
                _ => {}
            }
            jobs.push(ArchiveJob::Week(Box::new(week(server as u32 + 1, rows.clone()))));
        }
        archive.write(&jobs).await.unwrap();
        if round % 20 == 10 {
            archive.close().await;
            archive = open(&database).await;
        }
        let verification = archive.verify_player_totals(WeekKey(2_916), span.clone()).await.unwrap();
        let differences: Vec<_> = verification.differences.iter().filter(|it| it.table == "player_total").collect();
        assert!(differences.is_empty(), "round {round}: {differences:?}");
    }

    // Somebody has changed both totals: this connection adds the difference, the next one adds up all rows.
    let first = |points: i64| {
        let rows = (1..=2).map(|player| PlayerWeekArchive { points, ..row(player, player) }).collect();
        ArchiveJob::Week(Box::new(week(1, rows)))
    };
    archive.write(&[first(1)]).await.unwrap();
    let totals = "SELECT points FROM player_total WHERE player < 3 ORDER BY player";
    let points =
        async || -> Vec<i64> { database.rows(totals).await.iter().map(|row| row[0].parse().unwrap()).collect() };
    let before = points().await;
    database.run("UPDATE player_total SET points = points + 1000").await;
    archive.write(&[first(5)]).await.unwrap();
    assert_eq!(points().await, before.iter().map(|points| points + 1_004).collect::<Vec<_>>());
    archive.close().await;
    archive = open(&database).await;
    archive.write(&[first(5)]).await.unwrap();
    assert_eq!(points().await, before.iter().map(|points| points + 4).collect::<Vec<_>>());
}

/// Totals are compared in pages of 20,000. The differences are at the ends of pages, and after the last total.
#[tokio::test]
async fn totals_of_all_pages_are_compared() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    database
        .run(
            "INSERT INTO player_week (week, server, player, measured_ms, starts, time_ms, points, elo, elo_rounds, clq1, clq2) \
             SELECT 2916, 1, seq, 1, 1, 60001, 3, 1000, 0, 0, 0 FROM seq_1_to_45000",
        )
        .await;
    database
        .run("INSERT INTO player_total SELECT seq, 2916, 1, 60001, 0, 3, 0, 0, 0, 0, 0, NULL FROM seq_1_to_44999")
        .await;
    database.run("UPDATE player_total SET points = 4 WHERE player IN (1, 20000, 20001, 40001)").await;
    database.run("DELETE FROM player_week WHERE player IN (40000, 44999)").await;
    let span = 1_763_337_600_000..1_763_942_400_000;
    let verification = archive.verify_player_totals(WeekKey(2_916), span).await.unwrap();
    let of_totals = verification.differences.iter().filter(|it| it.table == "player_total");
    let mut players: Vec<u32> = of_totals.map(|it| it.key[0].1.parse().unwrap()).collect();
    players.sort_unstable();
    assert_eq!(players, [1, 20_000, 20_001, 40_000, 40_001, 44_999, 45_000]);
}

/// A server that invents points can make the variance of a row the largest of its type.
#[tokio::test]
async fn largest_variances_do_not_refuse_a_week() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    let uncertainty = Uncertainty { points_est_thousandths: u64::MAX, time_est_s2: u32::MAX, ..Uncertainty::default() };
    let uncertain = |player: u32| PlayerWeekArchive { uncertainty, ..row(player, player) };
    archive.write(&[player(1, "Visor"), player(2, "Klesk")]).await.unwrap();
    for server in 1..=2 {
        let job = ArchiveJob::Week(Box::new(week(server, vec![uncertain(1), uncertain(2)])));
        archive.write(std::slice::from_ref(&job)).await.unwrap();
    }
    let sums = "SELECT player, servers, time_est_variance, points_est_variance FROM player_total ORDER BY 1";
    let most = ["2", "8589934590", "18446744073709551615"];
    assert_eq!(database.rows(sums).await, [[["1"].as_slice(), &most].concat(), [["2"].as_slice(), &most].concat()]);
    let span = 1_763_337_600_000..1_763_942_400_000;
    let verification = archive.verify_player_totals(WeekKey(2_916), span).await.unwrap();
    assert!(!verification.differences.iter().any(|it| it.table == "player_total"), "{:?}", verification.differences);
    // Totals of weeks whose rows were deleted are added.
    database.run("DELETE FROM player_week").await;
    let merged = ArchiveJob::PlayerRemoved { key: PlayerKey(2), into: Some(PlayerKey(1)) };
    archive.write(&[merged]).await.unwrap();
    assert_eq!(database.rows(sums).await, [["1", "2", "17179869180", "18446744073709551615"]]);
}

// Failures ---------------------------------------------------------------

#[tokio::test]
async fn connection_errors_are_classified() {
    let database = Database::new().await;
    let settings = database.settings();
    let with = |from: &str, to: &str| {
        let url = settings.url.replace(from, to);
        assert_ne!(url, settings.url);
        ArchiveSettings { url, ..settings.clone() }
    };
    let password = format!(":{}@", mysql_async::Opts::from_url(&settings.url).unwrap().pass().unwrap());
    let error = Archive::connect(&with(&password, ":wrong@")).await.err().unwrap();
    assert!(matches!(error, ArchiveError::AccessDenied { .. }), "{error}");
    assert!(!error.to_string().contains("wrong"), "{error}");
    let error = Archive::connect(&with(&database.name, "nowhere")).await.err().unwrap();
    assert!(matches!(error, ArchiveError::Schema { .. }), "{error}");
    assert!(error.to_string().contains("CREATE DATABASE"), "{error}");
    let port = format!(":{}", database.address().port());
    let error = Archive::connect(&with(&port, ":1")).await.err().unwrap();
    assert!(matches!(error, ArchiveError::Unreachable { .. }), "{error}");
    let error = open(&database).await.write(&[player(1, "a")]).await.unwrap_err();
    assert!(matches!(error, ArchiveError::Schema { .. }), "{error}");
    assert!(error.to_string().contains("clqd migrate"), "{error}");
}

#[tokio::test]
async fn second_writer_is_refused() {
    let database = migrated().await;
    let first = open(&database).await;
    let settings = ArchiveSettings { query_timeout_ms: 2_000, ..database.settings() };
    let error = Archive::connect(&settings).await.err().unwrap();
    assert!(matches!(error, ArchiveError::InUse { connection: 1.., .. }), "{error}");
    first.close().await;
    Archive::connect(&settings).await.unwrap();
    // Another archive in the same server is not affected.
    let other = migrated().await;
    let _both = (open(&database).await, open(&other).await);
}

#[tokio::test]
async fn rejected_row_does_not_block_others() {
    let database = migrated().await;
    let outbox = Outbox::new(5);
    outbox.with(|world| {
        (0..100).for_each(|_| world.step());
        let (_, week) = world.weeks.iter_mut().find(|(_, week)| !week.rows.is_empty()).unwrap();
        week.rows[0].elo = f64::NAN;
    });
    let status = drain(database.settings(), &outbox).await;
    let pending: Vec<OutboxKey> = outbox.with(|world| world.pending.keys().copied().collect());
    assert!(matches!(pending[..], [OutboxKey::Week { .. }]), "{pending:?}");
    assert_eq!((status.rejected, status.last_success_ms), (1, None));
    assert!(status.last_error.unwrap().contains("player_week"));

    outbox.with(|world| {
        let broken = world.weeks.values_mut().flat_map(|week| &mut week.rows).find(|row| row.elo.is_nan());
        broken.unwrap().elo = 1_000.0;
    });
    let status = drain(database.settings(), &outbox).await;
    assert_eq!((status.rejected, status.last_success_ms), (0, Some(1_763_000_000_000)));
    assert!(outbox.with(|world| world.pending.is_empty()));
    assert_same(&read(&database).await, &outbox.with(|world| world.tables()), "all");
}

/// Runs a worker on changing data through a proxy that fails according to `plans`, and compares
/// the tables with the data.
async fn assert_no_loss_with_faults(seed: u64, settings: ArchiveSettings, plans: impl IntoIterator<Item = Vec<Plan>>) {
    let database = migrated().await;
    let proxy = Proxy::to(database.address()).await;
    let url = database.settings_through(proxy.address).url;
    let settings = ArchiveSettings { url, ..settings };
    let outbox = Outbox::new(seed);
    let mut failures = 0;
    for plans in plans {
        outbox.with(|world| {
            world.step();
            world.step();
            world.changes_concurrently = true;
        });
        let when = format!("seed {seed}, {plans:?}");
        let planned = plans.len();
        proxy.plan(plans);
        let status = drain(settings.clone(), &outbox).await;
        failures += status.failures;
        assert!(status.last_success_ms.is_some(), "{when}: {status:?}");
        assert!(proxy.plans_left() == 0 || proxy.plans_left() < planned, "{when}");
        proxy.plan([]);
        for (table, name) in
            [("player_week", "player"), ("online_player", "player"), ("map_week", "map"), ("server", "map")]
        {
            let orphans = format!(
                "SELECT COUNT(*) FROM {table} t LEFT JOIN {name} n ON n.{name} = t.{name} \
                 WHERE t.{name} IS NOT NULL AND n.{name} IS NULL"
            );
            assert_eq!(database.value(&orphans).await, "0", "{when}: {table} without {name}");
        }
        // Changes during the last pass are written in the next.
        outbox.with(|world| world.changes_concurrently = false);
        let status = drain(settings.clone(), &outbox).await;
        assert!(outbox.with(|world| world.pending.is_empty()), "{when}: {status:?}");
        let wanted = outbox.with(|world| world.tables());
        assert_same(&read(&database).await, &wanted, &when);
    }
    assert!(failures > 0, "the proxy caused no failure");
}

/// Bytes in both directions of a connection that writes all jobs of a small data set.
async fn traffic(seed: u64) -> database::proxy::Traffic {
    let database = migrated().await;
    let proxy = Proxy::to(database.address()).await;
    let outbox = Outbox::new(seed);
    outbox.with(|world| world.step());
    let mut archive = Archive::connect(&database.settings_through(proxy.address)).await.unwrap();
    archive.check_schema().await.unwrap();
    archive.write(&outbox.with(|world| world.jobs())).await.unwrap();
    archive.close().await;
    while proxy.traffic().bytes_up == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    proxy.traffic()
}

fn fast_retries() -> ArchiveSettings {
    ArchiveSettings {
        query_timeout_ms: 2_000,
        connect_timeout_ms: 500,
        backoff_ms_min: 10,
        backoff_ms_max: 20,
        drain_timeout_s: 60,
        ..ArchiveSettings::default()
    }
}

#[tokio::test]
async fn connection_cut_while_sending_loses_nothing() {
    let bytes = traffic(6).await.bytes_up;
    // From the first to the last byte, in uneven steps. Later cuts have no effect if the
    // connection was shorter, and a retry is cut at the same byte.
    let plans = (0..bytes).step_by(bytes / 60).flat_map(|at| [vec![Plan::CutUp(at)], vec![Plan::CutUp(at + 7); 3]]);
    assert_no_loss_with_faults(6, fast_retries(), plans).await;
}

#[tokio::test]
async fn connection_cut_while_receiving_loses_nothing() {
    let bytes = traffic(7).await.bytes_down;
    let plans = (0..bytes).step_by((bytes / 60).max(1)).map(|at| vec![Plan::CutDown(at)]);
    assert_no_loss_with_faults(7, fast_retries(), plans).await;
}

#[tokio::test]
async fn commit_with_lost_reply_is_repeated() {
    let plans = (0..40).map(|i| vec![Plan::LoseCommitReply(1 + i % 4), Plan::LoseCommitReply(1 + i % 2)]);
    assert_no_loss_with_faults(8, fast_retries(), plans).await;
}

#[tokio::test]
async fn refused_connection_is_retried() {
    assert_no_loss_with_faults(9, fast_retries(), (0..5).map(|i| vec![Plan::Refuse; i])).await;
}

#[tokio::test]
async fn delayed_write_cannot_overwrite_newer_rows() {
    let bytes = traffic(10).await.bytes_up;
    let settings = ArchiveSettings { query_timeout_ms: 1_000, ..fast_retries() };
    let plans = (1..6).map(|i| vec![Plan::StallUp(bytes * i / 6, Duration::from_millis(1_500))]);
    assert_no_loss_with_faults(10, settings, plans).await;
}

#[tokio::test]
async fn hanging_connection_is_replaced() {
    let database = migrated().await;
    let proxy = Proxy::to(database.address()).await;
    let settings = ArchiveSettings { query_timeout_ms: 1_000, ..database.settings_through(proxy.address) };
    let outbox = Outbox::new(14);
    // Longer than the test: the database would keep its side open.
    proxy.plan([Plan::StallUp(traffic(14).await.bytes_up / 2, Duration::from_secs(3_600))]);
    let drained = tokio::time::timeout(Duration::from_secs(300), drain(settings, &outbox)).await;
    let status = drained.expect("the worker replaces the hanging connection");
    assert!(status.failures > 0, "{status:?}");
    assert_same(&read(&database).await, &outbox.with(|world| world.tables()), "after the hang");
}

#[tokio::test]
async fn killed_database_loses_nothing() {
    if std::env::var("CLQD_TEST_MYSQL").is_ok() && !std::path::Path::new("/usr/sbin/mariadbd").exists() {
        panic!("this test kills its own MariaDB; install mariadb-server");
    }
    let server = std::sync::Arc::new(tokio::task::spawn_blocking(Server::start).await.unwrap());
    let database = Database::on_server(server.clone()).await;
    database.migrate().await;
    let outbox = Outbox::new(11);
    for round in 0..3 {
        outbox.with(|world| (0..400).for_each(|_| world.step()));
        outbox.with(|world| world.touch_all());
        let worker = tokio::spawn({
            let (outbox, settings) = (outbox.clone(), ArchiveSettings { batch_rows_max: 5, ..database.settings() });
            async move { drain(settings, &outbox).await }
        });
        let started = outbox.with(|world| world.pending.len());
        while outbox.with(|world| world.pending.len()) == started {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let server = server.clone();
        tokio::task::spawn_blocking(move || server.kill_and_restart()).await.unwrap();
        let status = worker.await.unwrap();
        assert!(outbox.with(|world| world.pending.is_empty()), "{status:?}");
        assert_same(&read(&database).await, &outbox.with(|world| world.tables()), &format!("round {round}"));
    }
}

#[tokio::test]
async fn stop_ends_within_drain_limit() {
    let outbox = Outbox::new(12);
    let settings = ArchiveSettings {
        url: "mysql://clqd@127.0.0.1:1/clqd".into(),
        drain_timeout_s: 1,
        backoff_ms_min: 10,
        ..ArchiveSettings::default()
    };
    let drained = tokio::time::timeout(Duration::from_secs(300), drain(settings, &outbox)).await;
    let status = drained.expect("the worker ends");
    assert!(!status.connected && status.failures > 1, "{status:?}");
    assert!(outbox.with(|world| !world.pending.is_empty()));
}

#[tokio::test]
async fn stop_while_the_database_is_unreachable_does_not_drain() {
    let outbox = Outbox::new(12);
    outbox.with(|world| world.step());
    let settings = ArchiveSettings {
        url: "mysql://clqd@127.0.0.1:1/clqd".into(),
        drain_timeout_s: 3_600,
        ..ArchiveSettings::default()
    };
    let mut running = start(settings, outbox.clone());
    running.seen.wait_for(|it| it.fault.is_some()).await.unwrap();
    running.stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(300), running.worker).await.expect("no drain").unwrap();
    assert!(outbox.with(|world| !world.pending.is_empty()));
}

/// A retry cannot end this fault: the tables are missing until an admin creates them.
#[tokio::test]
async fn stop_during_a_permanent_fault_does_not_drain() {
    let database = Database::new().await;
    let outbox = Outbox::new(12);
    outbox.with(|world| world.step());
    let settings = ArchiveSettings { drain_timeout_s: 3_600, backoff_ms_min: 10, ..database.settings() };
    let stopped = tokio::time::timeout(Duration::from_secs(300), drain(settings, &outbox)).await;
    let status = stopped.expect("the worker ends long before the limit of the drain");
    assert_eq!(status.fault.map(|fault| fault.kind), Some(FaultKind::Schema));
    assert!(outbox.with(|world| !world.pending.is_empty()));
}

#[tokio::test]
async fn worker_reconnects_when_database_returns() {
    let database = migrated().await;
    let proxy = Proxy::to(database.address()).await;
    proxy.plan([Plan::Refuse; 3]);
    let outbox = Outbox::new(13);
    let (status, seen) = watch::channel(WorkerStatus::default());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let settings = ArchiveSettings { interval_s: 2, ..database.settings_through(proxy.address) };
    let worker = tokio::spawn({
        let outbox = outbox.clone();
        async move {
            let stop = async { _ = stopped.await };
            clqd::archive::run(settings, outbox, || 42, stop, status).await;
        }
    });
    let mut seen = seen;
    seen.wait_for(|it| it.passes == 1).await.unwrap();
    assert_eq!(seen.borrow().failures, 3);
    outbox.with(|world| world.step());
    // The next pass starts without a request, half an interval later.
    seen.wait_for(|it| it.passes == 2 && it.connected).await.unwrap();
    assert!(outbox.with(|world| world.pending.is_empty()));
    outbox.with(|world| world.step());
    stop.send(()).unwrap();
    worker.await.unwrap();
    assert!(outbox.with(|world| world.pending.is_empty()), "pending jobs are written at the stop");
    assert_same(&read(&database).await, &outbox.with(|world| world.tables()), "at the end");
}

// Faults -----------------------------------------------------------------

/// A worker that runs until it is stopped.
struct Running {
    stop: oneshot::Sender<()>,
    worker: tokio::task::JoinHandle<()>,
    seen: watch::Receiver<WorkerStatus>,
}

fn start<S: JobSource + 'static>(settings: ArchiveSettings, source: S) -> Running {
    let (status, seen) = watch::channel(WorkerStatus::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let stop_requested = async { _ = stopped.await };
    let worker = tokio::spawn(clqd::archive::run(settings, source, || 42, stop_requested, status));
    Running { stop, worker, seen }
}

impl Running {
    async fn wait_until(&mut self, condition: impl FnMut(&WorkerStatus) -> bool) -> WorkerStatus {
        let limit = Duration::from_secs(120);
        let status = tokio::time::timeout(limit, self.seen.wait_for(condition)).await;
        status.expect("the status within the limit").unwrap().clone()
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.worker.await.unwrap();
    }
}

/// A source that panics until it is fixed.
#[derive(Clone)]
struct PanickingSource {
    outbox: Outbox,
    is_fixed: Arc<AtomicBool>,
}

impl JobSource for PanickingSource {
    async fn pending_jobs(&self, query: OutboxQuery) -> Result<Vec<(OutboxEntry, ArchiveJob)>, SourceClosed> {
        assert!(self.is_fixed.load(Ordering::Relaxed), "a bug");
        self.outbox.pending_jobs(query).await
    }

    async fn acknowledge(&self, entries: Vec<OutboxEntry>, at: WriterBeat) -> Result<(), SourceClosed> {
        self.outbox.acknowledge(entries, at).await
    }
}

#[tokio::test]
async fn panicked_worker_reports_fault_and_restarts() {
    let database = migrated().await;
    let outbox = Outbox::new(16);
    let source = PanickingSource { outbox: outbox.clone(), is_fixed: Arc::default() };
    let mut running = start(database.settings(), source.clone());
    let status = running.wait_until(|it| it.restarts >= 3).await;
    let fault = status.fault.expect("the panic is a fault");
    assert_eq!((fault.kind, status.connected), (FaultKind::Panic, false));
    assert!(fault.message.contains("a bug"), "{}", fault.message);
    source.is_fixed.store(true, Ordering::Relaxed);
    let status = running.wait_until(|it| it.passes > 0).await;
    assert_eq!(status.fault, None);
    running.stop().await;
    assert_same(&read(&database).await, &outbox.with(|world| world.tables()), "after the fix");
}

#[tokio::test]
async fn locked_table_is_fault_until_pass_succeeds() {
    let database = migrated().await;
    let mut lock = database.conn().await;
    lock.query_drop("LOCK TABLES player WRITE").await.unwrap();
    let settings = ArchiveSettings { query_timeout_ms: 4_000, ..database.settings() };
    let mut running = start(settings, Outbox::new(17));
    // The fault is reported before an attempt fails ...
    let status = running.wait_until(|it| it.fault.is_some()).await;
    let fault = status.fault.unwrap();
    assert_eq!((status.failures, fault.kind), (0, FaultKind::Blocked));
    assert!(fault.message.contains("player"), "{}", fault.message);
    // ... and during the retry.
    running.wait_until(|it| it.failures >= 1).await;
    let status = running.wait_until(|it| it.connected).await;
    assert!(status.fault.is_some(), "{status:?}");
    lock.query_drop("UNLOCK TABLES").await.unwrap();
    let status = running.wait_until(|it| it.passes > 0).await;
    assert_eq!(status.fault, None);
    running.stop().await;
}

#[tokio::test]
async fn locked_row_is_fault_until_pass_succeeds() {
    let database = migrated().await;
    let outbox = Outbox::new(18);
    drain(database.settings(), &outbox).await;
    outbox.with(|world| world.touch_all());
    let mut lock = database.conn().await;
    lock.query_drop("START TRANSACTION").await.unwrap();
    lock.query_drop("UPDATE player SET display = 'x' WHERE player = 1").await.unwrap();
    let mut running = start(database.settings(), outbox);
    let status = running.wait_until(|it| it.fault.is_some()).await;
    assert_eq!((status.failures, status.fault.unwrap().kind), (0, FaultKind::Blocked));
    lock.query_drop("ROLLBACK").await.unwrap();
    let status = running.wait_until(|it| it.passes > 0).await;
    assert_eq!((status.failures, status.fault), (0, None));
    running.stop().await;
}

thread_local! {
    /// The log of this thread. A test runs on one thread.
    static LOGGED: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Collects the log of every thread. A subscriber of one thread would miss events: if a thread
/// without a subscriber logs an event first, tracing disables that event for all threads.
fn collect_log() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(|| Log).finish();
        tracing::subscriber::set_global_default(subscriber).expect("no other subscriber");
    });
}

#[tokio::test]
async fn fault_is_logged_when_it_begins_changes_and_ends() {
    collect_log();
    let database = Database::new().await;
    let proxy = Proxy::to(database.address()).await;
    // Several connections are refused; then the tables are missing.
    proxy.plan([Plan::Refuse; 5]);
    let mut running = start(database.settings_through(proxy.address), Outbox::new(19));
    running.wait_until(|it| it.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Schema)).await;
    let status = running.wait_until(|it| it.failures >= 12).await;
    assert_eq!((status.connected, status.passes), (false, 0));
    let mut archive = loop {
        match Archive::connect(&database.settings()).await {
            Ok(archive) => break archive,
            Err(error) => assert!(matches!(error, ArchiveError::InUse { .. }), "{error}"),
        }
    };
    archive.migrate().await.unwrap();
    archive.close().await;
    running.wait_until(|it| it.passes > 0).await;
    running.stop().await;
    let logged = String::from_utf8(LOGGED.take()).unwrap();
    let archive_lines: Vec<&str> = logged.lines().filter(|line| line.contains("archive")).collect();
    let lines = |words: &str| archive_lines.iter().filter(|line| line.contains(words)).count();
    assert_eq!((lines("archive fault: "), lines("fault has ended")), (1, 1), "{logged}");
    assert_eq!(lines("are written with"), 1, "{logged}");
    // The migration may cause one more change.
    let changes = lines("fault has changed");
    assert!((1..=3).contains(&changes) && archive_lines.len() == 3 + changes, "{logged}");
}

// Text -------------------------------------------------------------------

const ODD_NAME: &str = "ß名😀";

async fn assert_name_is_stored(database: &Database) {
    let hex: String = ODD_NAME.bytes().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(database.rows("SELECT HEX(name) FROM player").await, [[hex]]);
}

#[tokio::test]
async fn text_survives_server_that_ignores_client_charset() {
    let options =
        ["--skip-character-set-client-handshake", "--character-set-server=latin1", "--init-connect=SET NAMES latin1"];
    let server = tokio::task::spawn_blocking(move || Server::start_with(&options)).await.unwrap();
    let database = Database::on_server(Arc::new(server)).await;
    // init_connect does not run for accounts with all privileges.
    database.run("CREATE USER 'plain'@'%' IDENTIFIED BY 'plain'").await;
    database.run("GRANT ALL PRIVILEGES ON clqd.* TO 'plain'@'%'").await;
    let plain = ArchiveSettings { url: database.url().replace("test:test", "plain:plain"), ..database.settings() };
    for settings in [database.settings(), plain] {
        let mut archive = Archive::connect(&settings).await.unwrap();
        archive.migrate().await.unwrap();
        archive.write(&[player(1, ODD_NAME)]).await.unwrap();
        assert_name_is_stored(&database).await;
        database.run("DELETE FROM player").await;
        archive.close().await;
    }
}

/// A restore computes for minutes between two reads.
#[tokio::test]
async fn idle_reader_is_not_disconnected() {
    let database = migrated().await;
    let proxy = Proxy::to(database.address()).await;
    let settings = database.settings_through(proxy.address);
    let short = Plan::AlterUp(b"wait_timeout=120", b"wait_timeout=001");
    proxy.plan([short, short]);
    let mut writer = Archive::connect(&settings).await.unwrap();
    let mut reader = Archive::connect_to_read(&settings).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    writer.check_schema().await.unwrap_err();
    reader.check_schema().await.unwrap();
}

/// When clocks go back, an hour of the local time comes twice.
#[tokio::test]
async fn time_of_the_writer_does_not_depend_on_the_zone_of_the_database() {
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let database = Database::on_server(Arc::new(server)).await;
    database.migrate().await;
    // Half an hour before and after the end of summer time, 2025-10-26 01:00 UTC.
    const END_S: i64 = 1_761_440_400;
    for row in [
        "time_zone VALUES (1, 'N')".to_owned(),
        "time_zone_name VALUES ('Test/Zone', 1)".to_owned(),
        "time_zone_transition_type VALUES (1, 0, 3600, 0, 'CET'), (1, 1, 7200, 1, 'CEST')".to_owned(),
        format!("time_zone_transition VALUES (1, {END_S} - 20000000, 1), (1, {END_S}, 0)"),
    ] {
        database.run(&format!("INSERT INTO mysql.{row}")).await;
    }
    // init_connect does not run for accounts with all privileges.
    database.run("CREATE USER 'plain'@'%' IDENTIFIED BY 'plain'").await;
    database.run("GRANT ALL PRIVILEGES ON clqd.* TO 'plain'@'%'").await;
    let settings = ArchiveSettings { url: database.url().replace("test:test", "plain:plain"), ..database.settings() };
    for at_s in [END_S - 1_800, END_S + 1_800] {
        database.run(&format!("SET GLOBAL init_connect = \"SET time_zone = 'Test/Zone', timestamp = {at_s}\"")).await;
        let mut archive = Archive::connect(&settings).await.unwrap();
        archive.write(&[player(1, "Visor")]).await.unwrap();
        assert_eq!(database.value("SELECT beat_ms FROM clq_writer").await, (at_s * 1_000).to_string());
        archive.close().await;
    }
}

#[tokio::test]
async fn session_that_damages_text_is_refused() {
    let database = migrated().await;
    let proxy = Proxy::to(database.address()).await;
    for (from, to, want) in [
        ("SET NAMES utf8mb4", "SET NAMES latin1 ", "character_set_client"),
        // The variables are correct, but four-byte characters are lost.
        ("😀", "????", "would corrupt"),
    ] {
        proxy.plan([Plan::AlterUp(from.as_bytes(), to.as_bytes())]);
        let error = Archive::connect(&database.settings_through(proxy.address)).await.err().expect("a refused session");
        assert!(matches!(error, ArchiveError::Charset { .. }), "{error}");
        assert!(error.to_string().contains(want), "{error}");
    }
    let mut archive = Archive::connect(&database.settings_through(proxy.address)).await.unwrap();
    archive.write(&[player(1, ODD_NAME)]).await.unwrap();
    assert_name_is_stored(&database).await;
}

// Reading ----------------------------------------------------------------

#[tokio::test]
async fn website_queries_use_indexes() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    let mut jobs: Vec<ArchiveJob> = (1..=500).map(|key| player(key, &format!("p{key}"))).collect();
    jobs.extend((1..=20).map(|key| ArchiveJob::Map { key: MapKey(key), name: format!("m{key}") }));
    jobs.push(ArchiveJob::Game { key: GameKey(1), name: "baseq3".into() });
    // Enough rows that a full scan costs more than any index.
    jobs.extend((21..=5_000).map(|key| ArchiveJob::Server(Box::new(new_server(key, &format!("quake3://h{key}:1"))))));
    for key in 1..=20 {
        let listed = clqd::model::archive::ListEntry {
            name: "n".into(),
            display: "n".into(),
            points: Some(0),
            player: Some(PlayerKey(key)),
            spectator: false,
        };
        jobs.push(ArchiveJob::Server(Box::new(ServerArchive {
            rank: Some(key),
            tags: vec![format!("t{}", key % 3)],
            list: vec![listed],
            ..new_server(key, &format!("quake3://h{key}:1"))
        })));
        for week_key in 2_900..2_905 {
            let rows: Vec<_> = (1..=500).map(|player| row(player, player)).collect();
            let maps = (key..key + 4).map(|map| clqd::model::archive::MapWeekArchive {
                map: MapKey(1 + map % 20),
                played_ms: 90_000,
                player_ms: 180_000,
            });
            let best = (1..=500)
                .map(|player| (PlayerKey(player), std::array::from_fn(|_| vec![(player, WeekKey(2_900))])).into());
            jobs.push(ArchiveJob::Week(Box::new(WeekArchive {
                week: WeekKey(week_key),
                label: format!("w{week_key}"),
                closed: true,
                server_rank: Some(key),
                maps: maps.collect(),
                best: best.collect(),
                ..week(key, rows)
            })));
        }
    }
    archive.write(&jobs).await.unwrap();
    database
        .run("ANALYZE TABLE player, map, server, online_player, server_tag, server_week, player_week, best_position, map_week")
        .await;
    for (query, index, rows_max) in [
        (
            "SELECT name, clq1_points_per_second FROM clq_player_week WHERE week = 2901 AND server = 3 AND clq1_order IS NOT NULL \
          ORDER BY clq1_order LIMIT 20",
            "player_week_by_clq1",
            500,
        ),
        (
            "SELECT name FROM clq_player_week WHERE week = 2901 AND server = 3 AND clq2_order > X'00000014' \
          ORDER BY clq2_order LIMIT 20",
            "player_week_by_clq2",
            500,
        ),
        (
            "SELECT name FROM clq_player_week WHERE week = 2901 AND server = 3 AND elo_order <= X'00000014' ORDER BY elo_order",
            "player_week_by_elo",
            20,
        ),
        (
            "SELECT name FROM clq_player_week WHERE week = 2901 AND server = 3 AND points_order <= X'00000014' ORDER BY points_order",
            "player_week_by_points",
            20,
        ),
        (
            "SELECT name FROM clq_player_week WHERE week = 2901 AND server = 3 AND time_order <= X'00000014' ORDER BY time_order",
            "player_week_by_time",
            20,
        ),
        (
            "SELECT * FROM clq_player_week WHERE player = 7 AND week BETWEEN 2900 AND 2904 ORDER BY week",
            "player_week_by_player",
            100,
        ),
        ("SELECT * FROM clq_player_week WHERE week = 2901 AND server = 3 AND player = 7", "PRIMARY", 1),
        (
            "SELECT * FROM clq_best_position WHERE server = 3 AND ranking = 'elo' ORDER BY position, week LIMIT 20",
            "best_position_by_position",
            500,
        ),
        ("SELECT * FROM clq_best_position WHERE player = 7", "best_position_by_player", 60),
        (
            "SELECT * FROM clq_server_ranking WHERE week = 2901 AND server_rank <= 5 ORDER BY server_rank",
            "server_week_by_rank",
            5,
        ),
        ("SELECT * FROM clq_maps WHERE week = 2901 AND server = 3", "PRIMARY", 20),
        ("SELECT * FROM clq_maps WHERE map = 5 AND week = 2901", "map_week_by_map", 20),
        ("SELECT player FROM player WHERE game = 1 AND name = 'p77'", "player_game_name", 1),
        ("SELECT player FROM player WHERE name_search = 'P77' AND name = 'p77'", "player_by_search", 1),
        ("SELECT * FROM clq_online WHERE server = 3", "PRIMARY", 1),
        ("SELECT * FROM clq_online WHERE player = 3", "online_player_by_player", 1),
        ("SELECT server FROM server_tag WHERE tag = 't1' ORDER BY players DESC LIMIT 7", "server_tag_by_players", 7),
        ("SELECT * FROM clq_servers WHERE url = 'quake3://h3:1'", "server_url", 1),
    ] {
        let plan = database.rows(&format!("EXPLAIN {query}")).await;
        // id, select_type, table, (partitions,) type, possible_keys, key, key_len, ref, (filtered,) rows, Extra
        let used = plan.iter().find(|step| step.iter().any(|cell| cell == index));
        let used = used.unwrap_or_else(|| panic!("{query}: {index} is not used: {plan:?}"));
        let Some(rows) = used.iter().rev().find_map(|cell| cell.parse::<u64>().ok()) else { continue };
        assert!(rows <= rows_max, "{query}: reads {rows} rows: {plan:?}");
        for step in &plan {
            // Apart from the one-row derived table of constants, no table is scanned fully.
            assert!(!step.iter().any(|cell| cell == "ALL"), "{query}: {plan:?}");
        }
        let extra = used.last().unwrap();
        assert!(!query.contains("_order") || !extra.contains("filesort"), "{query}: {plan:?}");
    }
}

#[tokio::test]
async fn website_account_needs_only_views_and_routines() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    let outbox = Outbox::new(15);
    outbox.with(|world| (0..100).for_each(|_| world.step()));
    archive.write(&outbox.with(|world| world.jobs())).await.unwrap();
    let ranking = clqd::model::Ranking::Clq1;
    let board = TopBoard {
        key: TopBoardKey { window: WeekKey(2_916).into(), scope: TopScope::All, ranking },
        scope_name: String::new(),
        window_type: "week".into(),
        previous_window: Some("2025-W46".into()),
        window: "2025-W47".into(),
        start_ms: None,
        end_ms: None,
        closed: false,
        size: 1,
        entries: vec![TopEntry { player: PlayerKey(1), score: 1.5, reached_ms: 3 }],
    };
    archive.write_top_board(&board, 4).await.unwrap();
    archive.write_site_totals(&SiteTotals::default()).await.unwrap();
    let mut conn = crate::pages::website_account(&database).await;
    let views = database
        .rows("SELECT table_name FROM information_schema.views WHERE table_schema = DATABASE() ORDER BY table_name")
        .await;
    assert_eq!(views.len(), 32, "{views:?}");
    for view in views.iter().flatten() {
        let query = format!("SELECT * FROM {view}");
        let rows: Vec<mysql_async::Row> = mysql_async::prelude::Queryable::query(&mut conn, query).await.unwrap();
        let may_be_empty = view == "clq_series_week" || view.ends_with("_winners");
        assert!(!rows.is_empty() || may_be_empty, "{view} is empty");
    }
    for call in [
        "CALL clq_series(1, 'hour')",
        "SELECT clq_position(week, server, 'clq1', clq1_order), clq_order_at(week, server, 'time', 1) FROM clq_player_week",
    ] {
        mysql_async::prelude::Queryable::query_drop(&mut conn, call).await.unwrap();
    }
    for table in ["server", "player_week", "clq_state"] {
        let refused = mysql_async::prelude::Queryable::query_drop(&mut conn, format!("SELECT * FROM {table}")).await;
        assert!(refused.unwrap_err().to_string().contains("denied"), "{table}");
    }
}

#[tokio::test]
async fn views_hide_removed_and_greylisted_servers() {
    let database = migrated().await;
    let mut archive = open(&database).await;
    let mut jobs = vec![player(1, "Visor"), player(2, "Klesk"), ArchiveJob::Game { key: GameKey(1), name: "g".into() }];
    jobs.push(ArchiveJob::Map { key: MapKey(1), name: "q3dm17".into() });
    for key in 1..=3 {
        jobs.push(ArchiveJob::Server(Box::new(ServerArchive {
            greylist_reason: (key == 2).then(|| "fake".into()),
            removed: key == 3,
            map: Some(MapKey(1)),
            ..new_server(key, &format!("quake3://h{key}:1"))
        })));
        let maps = vec![clqd::model::archive::MapWeekArchive { map: MapKey(1), played_ms: 90_000, player_ms: 180_000 }];
        jobs.push(ArchiveJob::Week(Box::new(WeekArchive {
            closed: key == 1,
            server_rank: Some(key),
            player_ms: 7_200_000,
            maps,
            ..week(key, vec![row(1, 2), row(2, 1)])
        })));
    }
    archive.write(&jobs).await.unwrap();
    let top = "SELECT server, name, clq1_position, clq1_points_per_second, elo_rounded, week_label, closed FROM clq_player_week \
               ORDER BY clq1_position";
    assert_eq!(
        database.rows(top).await,
        [["1", "Klesk", "1", "1", "888", "2025-W47", "1"], ["1", "Visor", "2", "1", "888", "2025-W47", "1"]]
    );
    assert_eq!(
        database.rows("SELECT server, map_name, minutes, average_players FROM clq_maps").await,
        [["1", "q3dm17", "1.5", "2"]]
    );
    assert_eq!(
        database.rows("SELECT server, server_rank, player_hours FROM clq_server_ranking").await,
        [["1", "1", "2"]]
    );
    assert_eq!(
        database.rows("SELECT server, map_name, greylisted FROM clq_servers ORDER BY server").await,
        [["1", "q3dm17", "0"], ["2", "q3dm17", "1"]]
    );
}
