//! Old rows are deleted as far as the settings limit them, and no others.

use crate::database::Database;
use crate::database::world::Outbox;
use clqd::archive::{ArchiveSettings, WorkerStatus};
use clqd::model::archive::ArchiveBounds;
use clqd::model::calendar::DAY_MS;
use clqd::model::top_board::SiteTotals;
use clqd::model::{OutboxKey, WeekKey};
use mysql_async::prelude::Queryable;
use tokio::sync::watch;

const NOW_MS: i64 = 1_800_000_000_000;
const WEEK_TABLES: [&str; 4] = ["player_week", "map_week", "server_week", "map_total"];

/// Runs passes of the worker until nothing is pending. Returns the number of deleted rows.
async fn archive(settings: ArchiveSettings, outbox: &Outbox) -> u64 {
    let (status, seen) = watch::channel(WorkerStatus::default());
    clqd::archive::run(settings, outbox.clone(), || NOW_MS, async {}, status).await;
    let status = seen.borrow().clone();
    assert_eq!(status.fault, None);
    status.rows_deleted
}

async fn weeks(database: &Database, table: &str) -> Vec<Vec<String>> {
    database.rows(&format!("SELECT DISTINCT week FROM {table} ORDER BY week")).await
}

#[tokio::test]
async fn rows_older_than_the_settings_are_deleted() {
    let database = Database::new().await;
    database.migrate().await;
    let outbox = Outbox::new(31);
    outbox.with(|world| (0..600).for_each(|_| world.step()));
    assert_eq!(archive(database.settings(), &outbox).await, 0, "by default everything is kept");
    let boards = [("old", 31), ("new", 29), ("endless", 0), ("of the state", 32)];
    for (name, days) in boards {
        let end_ms = if days == 0 { "NULL".to_owned() } else { (NOW_MS - days * DAY_MS).to_string() };
        let window_type = if name == "of the state" { "month" } else { "day" };
        let key = name.len() * 1_000 + name.as_bytes()[0] as usize;
        database
            .run(&format!(
                "INSERT INTO top_board VALUES ({key}, 'game', '{name}', '{window_type}', 'd', 1, {end_ms}, 'elo', 2, 1, 1)"
            ))
            .await;
        // More rows than one transaction deletes.
        let rows = format!(
            "INSERT INTO top_board_row (board, position, player, score, reached_ms) SELECT {key}, n + 1, 1, 1, 1 FROM clq_number \
             WHERE n < 1500"
        );
        database.run(&rows).await;
    }
    for days in [11, 9] {
        database.run(&format!("INSERT INTO online_total VALUES (0, {}, 5, 2)", NOW_MS - days * DAY_MS)).await;
    }
    for days in [7, 6, 4] {
        let end_ms = NOW_MS - days * DAY_MS;
        database.run(&format!("INSERT INTO player_session VALUES (1, {end_ms}, 1, 1, 5, 7, 1, 2)")).await;
    }
    let newest: u32 = database.value("SELECT MAX(week) FROM week").await.parse().unwrap();
    let all = weeks(&database, "player_week").await;
    assert!(all.len() > 4, "{all:?}");
    let best = database.value("SELECT COUNT(*) FROM best_position").await;

    outbox.with(|world| {
        let weeks = Some((WeekKey(newest - 1), WeekKey(newest)));
        world.bounds = Some(ArchiveBounds {
            now_ms: NOW_MS,
            now_week: WeekKey(newest),
            is_time_trusted: false,
            weeks,
            oldest_windows: [("day", 20), ("month", 32)]
                .map(|(name, days)| (name.to_owned(), NOW_MS - days * DAY_MS))
                .into(),
            oldest_sessions_ms: Some(NOW_MS - 6 * DAY_MS),
        });
    });
    let settings = ArchiveSettings {
        keep_weeks: 2,
        keep_online_days: 10,
        keep_top_board_days: 30,
        keep_sessions_days: 5,
        ..database.settings()
    };
    database.run("UPDATE server_week SET checksum = 5").await;
    assert_eq!(archive(settings.clone(), &outbox).await, 0, "the clock may be ahead");
    outbox.with(|world| world.bounds.iter_mut().for_each(|bounds| bounds.is_time_trusted = true));
    let deleted = archive(settings.clone(), &outbox).await;
    let checksums = "SELECT COUNT(*) FROM server_week sw WHERE checksum IS NOT NULL AND NOT EXISTS \
                     (SELECT 1 FROM player_week pw WHERE pw.week = sw.week)";
    assert_eq!(database.value(checksums).await, "0", "of rows that are gone");
    assert!(deleted > 1_500, "{deleted}");
    for table in WEEK_TABLES {
        let kept = weeks(&database, table).await;
        // The week after the last one that is deleted refers to its ranks.
        let more = if table == "server_week" { 3 } else { 2 };
        let old = kept.iter().filter(|row| row[0].parse::<u32>().unwrap() + more < newest).count();
        assert!(old == 0 && !kept.is_empty(), "{table}: {kept:?}");
    }
    assert_eq!(database.value("SELECT COUNT(*) FROM best_position").await, best);
    assert_eq!(database.rows("SELECT scope FROM top_board ORDER BY 1").await, [["endless"], ["new"], ["of the state"]]);
    assert_eq!(database.value("SELECT COUNT(*) FROM top_board_row").await, "4500");
    assert_eq!(database.value("SELECT COUNT(*) FROM online_total").await, "1");
    // The state has those of 6 days ago.
    let kept = [6, 4].map(|days| [(NOW_MS - days * DAY_MS).to_string()]);
    assert_eq!(database.rows("SELECT end_ms FROM player_session ORDER BY 1").await, kept);
    assert_eq!(archive(settings, &outbox).await, 0, "nothing is left to delete");
}

/// A state with one week that wants all later rows to be deleted.
fn outbox_with_later_rows() -> Outbox {
    let outbox = Outbox::new(32);
    outbox.with(|world| {
        world.bounds = Some(ArchiveBounds {
            now_ms: NOW_MS,
            now_week: WeekKey(3_000),
            is_time_trusted: true,
            weeks: Some((WeekKey(3_000), WeekKey(3_000))),
            oldest_windows: std::collections::BTreeMap::new(),
            oldest_sessions_ms: None,
        });
        world.tasks.insert(OutboxKey::LaterRows);
    });
    outbox
}

/// Tables of several pages: no statement reads all of them.
#[tokio::test]
async fn later_rows_are_deleted_from_large_tables() {
    let database = Database::new().await;
    database.migrate().await;
    for (week, step) in [(3_000, 1), (3_001, 20), (3_002, 40)] {
        let insert = format!(
            "INSERT INTO player_total SELECT six.n * 10000 + ten.n + 1, {week}, 1, 1, 1, 1, 1, 1, 1, 1, 1, NULL \
             FROM clq_number ten JOIN clq_number six ON six.n < 6 WHERE ten.n % {step} = 0"
        );
        database.run(&insert).await;
    }
    // One board in twenty is later.
    let insert = format!(
        "INSERT INTO top_board SELECT five.n * 10000 + ten.n + 1, 'game', CONCAT(five.n, ' ', ten.n), 'day', 'd', \
         {NOW_MS} + IF(ten.n % 20 = 0, 1, -1), NULL, 'elo', 2, 1, 1 \
         FROM clq_number ten JOIN clq_number five ON five.n < 5"
    );
    database.run(&insert).await;
    let insert = "INSERT INTO top_board_row (board, position, player, score, reached_ms) \
                  SELECT board, 1, 1, 1, 1 FROM top_board";
    database.run(insert).await;
    let deleted = archive(database.settings(), &outbox_with_later_rows()).await;
    assert_eq!(deleted, 3_000 + 1_500 + 2 * 2_500);
    assert_eq!(database.rows("SELECT week, COUNT(*) FROM player_total GROUP BY week").await, [["3000", "60000"]]);
    for table in ["top_board", "top_board_row"] {
        assert_eq!(database.value(&format!("SELECT COUNT(*) FROM {table}")).await, "47500", "{table}");
    }
    assert_eq!(database.value(&format!("SELECT COUNT(*) FROM top_board WHERE start_ms > {NOW_MS}")).await, "0");
}

#[tokio::test]
async fn deletion_that_fails_does_not_prevent_publication() {
    let database = Database::new().await;
    database.migrate().await;
    database.run("INSERT INTO player_total VALUES (1, 3001, 1, 1, 1, 1, 1, 1, 1, 1, 1, NULL)").await;
    let mut lock = database.conn().await;
    lock.query_drop("START TRANSACTION").await.unwrap();
    lock.query_drop("UPDATE player_total SET servers = 2").await.unwrap();
    let outbox = outbox_with_later_rows();
    outbox.with(|world| world.site_totals = Some(SiteTotals { now_ms: NOW_MS, servers: 7, ..SiteTotals::default() }));
    let settings = ArchiveSettings { query_timeout_ms: 1_000, drain_timeout_s: 5, ..database.settings() };
    let (status, seen) = watch::channel(WorkerStatus::default());
    clqd::archive::run(settings, outbox.clone(), || NOW_MS, async {}, status).await;
    assert!(seen.borrow().fault.is_some() && seen.borrow().last_success_ms.is_none(), "{:?}", seen.borrow());
    assert_eq!(database.value("SELECT servers FROM site_total").await, "7");
}
