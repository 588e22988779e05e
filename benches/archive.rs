//! Writes a running week to MariaDB: `cargo bench --bench archive`.
//!
//! Starts a private MariaDB and writes `CLQD_ROWS` rows (default
//! 200,000) of players, 200 on each server:
//!
//! - all of them to an empty database, as in a resync, beside `LOAD DATA LOCAL INFILE` of the same
//!   rows into the same tables by the `mariadb` client;
//! - then what changes when 8 players of each server play on: only the changed rows, and, as a
//!   comparison, all rows of each server's week, beside `LOAD DATA LOCAL INFILE ... REPLACE`;
//! - then the close of the week: all rows with positions, and best positions, while a website
//!   reads pages.
//!
//! The results are in docs/benchmarks.md.

#[path = "../tests/support/database/mod.rs"]
mod database;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clqd::archive::Archive;
use clqd::model::archive::{
    BoardOrder, BoardPlace, BoardStep, OrderBytes, PlayerKeyRange, PlayerWeekArchive, WeekArchive, step_spacing,
};
use clqd::model::calendar::{Calendar, week_label};
use clqd::model::row::{TopTen, Uncertainty};
use clqd::model::{ArchiveJob, GameKey, PlayerKey, Ranking, ServerKey, WeekKey};
use database::{Database, Server};
use mysql_async::prelude::Queryable;

const WEEK: WeekKey = WeekKey(2_968);
const PLAYERS: u32 = 200;
/// Players of each server who play on.
const CHANGED: u32 = 8;
/// Servers whose jobs are written at once, as the archive's worker fetches them.
const SERVERS_PER_WRITE: u32 = 100;
/// Rows of the transactions that clqd writes, and of those that it is compared with.
const ROWS_PER_TRANSACTION: u32 = 10_000;

fn main() -> anyhow::Result<()> {
    let rows: u32 = std::env::var("CLQD_ROWS").ok().map_or(Ok(200_000), |text| text.parse()).context("CLQD_ROWS")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(rows / PLAYERS))
}

async fn run(servers: u32) -> anyhow::Result<()> {
    let options =
        ["--innodb-buffer-pool-size=1G", "--innodb-log-file-size=256M", "--local-infile=1", "--max-allowed-packet=16M"];
    let server = Arc::new(Server::start_with(&options));
    let first = Database::on_server(server.clone()).await;
    first.migrate().await;
    let mut archive = Archive::connect(&first.settings()).await?;
    let rows = f64::from(servers * PLAYERS);

    let (fill, written) = write(&mut archive, servers, |server| week(server, 0, 0..PLAYERS)).await?;
    println!(
        "first fill: {:.0} rows/s ({written} rows with steps, {:.1} s)",
        rows / fill.as_secs_f64(),
        fill.as_secs_f64()
    );
    let loaded = [first.beside("clqd_loaded").await, first.beside("clqd_loaded_in_parts").await];
    compare_with_load_data(&first, [&loaded[0], &loaded[1]], "", rows, fill).await?;
    println!("bytes per row on disk, with indexes: {}", bytes_per_row(&first).await);

    let (delta, written) = write(&mut archive, servers, |server| week(server, 1, 0..CHANGED)).await?;
    let (all, written_all) = write(&mut archive, servers, |server| week(server, 2, 0..PLAYERS)).await?;
    let changed = f64::from(servers * CHANGED);
    println!("{CHANGED} of {PLAYERS} players of each server play on:");
    println!(
        "  changed rows only: {:.2} s, {:.2} rows written for each changed row",
        delta.as_secs_f64(),
        written as f64 / changed
    );
    println!(
        "  all rows: {:.2} s, {:.2} rows written for each changed row",
        all.as_secs_f64(),
        written_all as f64 / changed
    );
    println!("  ratio of time: {:.1}", all.as_secs_f64() / delta.as_secs_f64());
    println!("all rows change: {:.0} rows/s", rows / all.as_secs_f64());
    compare_with_load_data(&first, [&loaded[0], &loaded[1]], "REPLACE", rows, all).await?;

    let website = Website::start(&first, servers);
    let (close, written_close) = write(&mut archive, servers, |server| closed(week(server, 2, 0..PLAYERS))).await?;
    let mut pages = website.stop()?;
    pages.sort_unstable();
    println!(
        "close of the week: {:.1} s, {:.0} rows/s with best positions",
        close.as_secs_f64(),
        written_close as f64 / close.as_secs_f64()
    );
    println!(
        "  {} pages meanwhile: p50 {:.2?}, p99 {:.2?}, slowest {:.2?}",
        pages.len(),
        pages[pages.len() / 2],
        pages[pages.len() * 99 / 100],
        pages[pages.len() - 1]
    );
    println!("  bytes per row on disk, with indexes: {} (before the table is rebuilt)", bytes_per_row(&first).await);
    first.run("ALTER TABLE player_week FORCE").await;
    println!("  bytes per row of a closed week: {}", bytes_per_row(&first).await);
    for ranking in ["points", "time"] {
        first.run(&format!("ALTER TABLE player_week DROP KEY player_week_by_{ranking}")).await;
    }
    first.run("ALTER TABLE player_week FORCE").await;
    println!("  without the indexes by points and time: {}", bytes_per_row(&first).await);
    Ok(())
}

/// Writes the weeks of all servers. Returns the time, and the number of written rows.
async fn write(
    archive: &mut Archive,
    servers: u32,
    week: impl Fn(u32) -> WeekArchive,
) -> anyhow::Result<(Duration, u64)> {
    let (mut took, mut rows) = (Duration::ZERO, 0);
    for first in (1..=servers).step_by(SERVERS_PER_WRITE as usize) {
        let last = servers.min(first + SERVERS_PER_WRITE - 1);
        let jobs: Vec<_> = (first..=last).map(|server| ArchiveJob::Week(Box::new(week(server)))).collect();
        let began = Instant::now();
        rows += archive.write(&jobs).await?;
        took += began.elapsed();
    }
    Ok((took, rows))
}

/// A website that reads pages of boards, one after the other, on a thread of its own.
struct Website {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<anyhow::Result<Vec<Duration>>>,
}

impl Website {
    fn start(database: &Database, servers: u32) -> Website {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopping, url) = (stop.clone(), format!("{}?prefer_socket=false", database.url()));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(read_pages(url, servers, stopping))
        });
        Website { stop, thread }
    }

    /// Returns the time of each page.
    fn stop(self) -> anyhow::Result<Vec<Duration>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}

async fn read_pages(url: String, servers: u32, stop: Arc<AtomicBool>) -> anyhow::Result<Vec<Duration>> {
    let mut conn = mysql_async::Conn::new(mysql_async::Opts::from_url(&url)?).await?;
    let mut times = Vec::new();
    for number in 1_u32.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let server = number.wrapping_mul(7_919) % servers + 1;
        let player = server * PLAYERS + number % PLAYERS;
        let page = format!(
            "SELECT player, clq1, clq1_order FROM player_week WHERE week = {WEEK} AND server = {server} \
             AND clq1_order >= clq_order_at({WEEK}, {server}, 'clq1', 101) ORDER BY clq1_order LIMIT 50; \
             SELECT clq_position(week, server, 'elo', elo_order) FROM player_week \
             WHERE week = {WEEK} AND server = {server} AND player = {player}"
        );
        let began = Instant::now();
        conn.query_drop(page).await?;
        times.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(times)
}

/// The same week after its close.
fn closed(running: WeekArchive) -> WeekArchive {
    let mut rows = running.rows;
    for ranking in Ranking::ALL {
        let at = ranking as usize;
        let mut order: Vec<(OrderBytes, usize)> = rows
            .iter()
            .enumerate()
            .filter_map(|(n, row)| Some((row.places[at].as_ref()?.order.to_bytes(), n)))
            .collect();
        order.sort();
        for (position, (_, n)) in (1..).zip(order) {
            if let Some(place) = &mut rows[n].places[at] {
                place.order = BoardOrder::Position(position);
            }
        }
    }
    let best = rows.iter().map(|row| {
        let position = |at: usize| match &row.places[at] {
            Some(BoardPlace { order: BoardOrder::Position(position), .. }) => vec![(*position, WEEK)],
            _ => Vec::new(),
        };
        (row.player, std::array::from_fn(position))
    });
    let best = best.map(Into::into).collect();
    WeekArchive { closed: true, steps: Vec::new(), is_complete: true, best, rows, ..running }
}

/// A server's week after some rounds, with the rows of some players. In each round the first
/// [`CHANGED`] players move up by some places.
fn week(server: u32, round: u32, players: std::ops::Range<u32>) -> WeekArchive {
    let start_ms = Calendar::default().week_start_ms(WEEK);
    let score = |player: u32| {
        let gain = if player < CHANGED { round * 25 } else { 0 };
        u64::from((player * 7_919 + server * 31) % 10_000 + gain)
    };
    let key = |player: u32| -> OrderBytes {
        let (score, player) = ((!score(player)).to_be_bytes(), player.to_be_bytes());
        [score.as_slice(), &[1, 2, 3, 4, 5, 6], &player].concat().into_iter().collect()
    };
    let mut keys: Vec<OrderBytes> = (0..PLAYERS).map(key).collect();
    keys.sort();
    let steps = Ranking::ALL.into_iter().flat_map(|ranking| {
        let at = (0..PLAYERS).step_by(step_spacing(PLAYERS) as usize);
        at.map(|index| BoardStep { ranking, position: index + 1, order: keys[index as usize].clone() })
            .collect::<Vec<_>>()
    });
    let row = |player: u32| PlayerWeekArchive {
        player: PlayerKey(server * PLAYERS + player),
        measured_ms: score(player) * 1_000,
        starts: 1,
        time_ms: score(player) * 1_000 + 60_000,
        time_est_ms: score(player) * 1_001,
        points: score(player) as i64,
        points_est: score(player) as f64 * 1.1,
        elo: 1_000.0 + score(player) as f64 / 7.0,
        elo_rounds: round + 1,
        elo_rounds_sure: round,
        uncertainty: Uncertainty {
            time_est_s2: score(player) as u32 * 1_200,
            connected_difference_ms: -(score(player) as i64),
            time_connected_s2: score(player) as u32 * 900,
            points_est_thousandths: score(player) * 9_000,
        },
        clq1: score(player) * 720,
        clq2: score(player),
        places: [(); 5]
            .map(|()| Some(BoardPlace { reached_ms: start_ms + 1_000, order: BoardOrder::SortKey(key(player)) })),
        ten_best: Some(Box::new([(3, 720), (8, 1)].map(|(parts, unit)| {
            let mut ten = TopTen::default();
            (0..parts).for_each(|n| ten.insert(score(player) * unit / parts, start_ms + 90_000_000 * n as i64));
            ten
        }))),
    };
    WeekArchive {
        week: WEEK,
        server: ServerKey(server),
        label: week_label(WEEK),
        week_start_ms: start_ms,
        week_end_ms: Calendar::default().week_end_ms(WEEK),
        closed: false,
        game: Some(GameKey(1)),
        server_rank: None,
        player_ms: 1_000,
        board_sizes: [PLAYERS; 5],
        checksum: None,
        span: PlayerKeyRange::ALL,
        is_complete: players.len() as u32 == PLAYERS,
        rows: players.map(row).collect(),
        maps: Vec::new(),
        steps: steps.collect(),
        best: Vec::new(),
    }
}

/// Loads the rows of one database into another with the `mariadb` client, in transactions with the
/// rows of so many servers. Returns the time.
async fn load_data(
    from: &Database,
    to: &Database,
    on_duplicate: &str,
    servers_per_transaction: u32,
) -> anyhow::Result<Duration> {
    let columns = "week, server, player, measured_ms, starts, time_ms, time_est_ms, points, points_est, elo, elo_rounds, \
                   elo_rounds_sure, time_est_variance, time_connected_ms, time_connected_variance, points_est_variance, \
                   clq1, clq2, clq1_order, clq2_order, elo_order, points_order, time_order, clq1_reached_after_ms, \
                   clq2_reached_after_ms, elo_reached_after_ms, points_reached_after_ms, time_reached_after_ms, \
                   clq1_segments, clq2_games";
    let steps = "week, server, ranking, position, board_order";
    let totals = "player, week, servers, time_ms, time_est_ms, points, points_est, last_seen_ms";
    let dir = tempfile::tempdir()?;
    // The server writes the files, as another user.
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
    let servers: u32 = from.value("SELECT MAX(server) FROM player_week").await.parse()?;
    let mut sql = String::new();
    for first in (1..=servers).step_by(servers_per_transaction as usize) {
        let last = servers.min(first.saturating_add(servers_per_transaction - 1));
        let of_servers = format!("server BETWEEN {first} AND {last}");
        let of_players = format!("player BETWEEN {} AND {}", first * PLAYERS, last * PLAYERS + PLAYERS - 1);
        sql += "BEGIN;";
        for (table, columns, among) in [
            ("player_week", columns, &of_servers),
            ("board_step", steps, &of_servers),
            ("player_total", totals, &of_players),
        ] {
            let file = dir.path().join(format!("{table}-{first}"));
            let file = file.display();
            from.run(&format!(
                "SELECT {columns} INTO OUTFILE '{file}' CHARACTER SET binary FROM {table} WHERE {among}"
            ))
            .await;
            sql += &format!(
                "LOAD DATA LOCAL INFILE '{file}' {on_duplicate} INTO TABLE {table} CHARACTER SET binary ({columns});"
            );
        }
        sql += "COMMIT;";
    }
    let address = to.address();
    let began = Instant::now();
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--local-infile=1", "--protocol=tcp", "-utest", "-ptest"]);
    client.args([format!("-h{}", address.ip()), format!("-P{}", address.port()), to.name.clone(), "-e".into(), sql]);
    let done = client.output().context("the mariadb client")?;
    ensure!(done.status.success(), "mariadb: {}", String::from_utf8_lossy(&done.stderr));
    let took = began.elapsed();
    for table in ["player_week", "board_step", "player_total"] {
        let count = format!("SELECT COUNT(*) FROM {table}");
        ensure!(to.value(&count).await == from.value(&count).await, "all rows of {table} are loaded");
    }
    Ok(took)
}

/// Loads the rows of one database into others, in one transaction and in as many as clqd uses, and
/// prints the rates beside clqd's.
async fn compare_with_load_data(
    from: &Database,
    to: [&Database; 2],
    on_duplicate: &str,
    rows: f64,
    took: Duration,
) -> anyhow::Result<()> {
    let of_clqd = ROWS_PER_TRANSACTION / PLAYERS;
    for (to, servers, what) in
        [(to[0], u32::MAX, "in one transaction"), (to[1], of_clqd, "in transactions as large as clqd's")]
    {
        let load = load_data(from, to, on_duplicate, servers).await?;
        println!(
            "  LOAD DATA LOCAL INFILE {on_duplicate} of the same rows {what}: {:.0} rows/s, ratio {:.2}",
            rows / load.as_secs_f64(),
            load.as_secs_f64() / took.as_secs_f64()
        );
    }
    Ok(())
}

async fn bytes_per_row(database: &Database) -> String {
    database.run("ANALYZE TABLE player_week").await;
    database
        .value(
            "SELECT ROUND((data_length + index_length) / (SELECT COUNT(*) FROM player_week)) FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name = 'player_week'",
        )
        .await
}
