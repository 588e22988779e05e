//! Closes a week while 20,000 servers are scanned: `cargo bench --bench close`.
//!
//! Writes a state with `CLQD_ROWS` rows (default 1,000,000) of one week on `CLQD_SERVERS`
//! servers (20,000). Two snapshots of every server go through the engine; the other rows
//! are commits generated here and applied by the store; every second of these players has
//! best positions of an earlier week. Then it reopens the state, a few seconds before the
//! week ends, and continues in real time: outcomes of all servers, each every two minutes,
//! of 12 players, arrive over a bounded queue from another thread and are applied like in
//! the daemon's engine thread, with its commits, ticks and sweeps. Prints the durations of
//! the phases, and how late outcomes were applied before and during the close. `CLQD_STEPS`
//! is the budget of a tick, `CLQD_DIR` the directory for the state.
//!
//! Results with 20,000 servers, 167 outcomes a second, on two cores; ms as median / 99 % /
//! maximum. 10 million rows with the default budget, while builds and tests used part of
//! the machine at times:
//!
//! | rows | steps a tick | closed in | outcomes late | a tick | a commit | resident |
//! |---|---|---|---|---|---|---|
//! | 10,000,000 | 6,000 (default) | 813 s | 0.2 / 11 / 160 | 7 / 15 / 100 | 7 / 38 / 117 | 693 MB |
//!
//! Before the end of the week: outcomes 0.3 / 6 / 19 ms late, a commit 6 / 14 /
//! 21 ms.

mod measure;
#[path = "measure/times.rs"]
mod times;

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use clqd::config::Config;
use clqd::engine::{Event, Outcome};
use clqd::model::calendar::Calendar;
use clqd::model::commit::RowKey;
use clqd::model::packed_row::PackedRow;
use clqd::model::row::{BestPositions, PlayerRow};
use clqd::model::{Commit, Completeness, Player, PlayerKey, ServerKey, ServerUrl, Snapshot, WeekKey};
use clqd::state::State;
use clqd::store::{Store, StoreSettings};
use measure::{on_disk, peak_kib};
use times::{Durations, url};

const WEEK: WeekKey = WeekKey(2_918); // that of Monday 2025-12-01;
const LIST: u32 = 12;
const GAP_MS: i64 = 120_000;
/// First player key of the generated rows, above those of the players on the servers.
const BULK_FROM: u32 = 1_000_000;
const ROWS_PER_COMMIT: usize = 100_000;
const COMMIT_MS: i64 = 200;
const SWEEP_MS: i64 = 1_000;
/// Time before the end of the week at which real time begins, and time that it continues
/// after the week is closed.
const BEFORE_MS: i64 = 5_000;
const AFTER: Duration = Duration::from_secs(5);

fn main() -> anyhow::Result<()> {
    let number = |name: &str, or: u32| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (rows, servers) = (number("CLQD_ROWS", 1_000_000), number("CLQD_SERVERS", 20_000));
    let place = match std::env::var_os("CLQD_DIR") {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir()?,
    };
    let dir = place.path().join("state");
    let mut config = Config::default();
    config.store.cache_bytes = u64::from(number("CLQD_CACHE_MB", 256)) << 20;
    let mut settings = config.engine_settings()?;
    // All closed rows go to the archive, too.
    settings.archive_enabled = true;
    settings.week_steps_per_tick = number("CLQD_STEPS", settings.week_steps_per_tick as u32) as usize;
    let store = StoreSettings { cache_bytes: config.store.cache_bytes, create: true };
    let end_ms = Calendar::default().week_end_ms(WEEK);
    let urls: Vec<ServerUrl> = (0..servers).map(url).collect::<Result<_, _>>()?;

    let began = Instant::now();
    let mut state = State::open(&dir, store, settings.clone())?;
    for step in [2, 1] {
        let from_ms = end_ms - BEFORE_MS - step * GAP_MS;
        for (server, url) in (0..).zip(&urls) {
            let t_ms = from_ms + i64::from(server) * GAP_MS / i64::from(servers);
            state.handle(Event::Replayed { url: url.clone(), outcome: outcome(server, t_ms) })?;
            if server % 5_000 == 0 {
                state.commit()?;
            }
        }
    }
    state.commit()?;
    drop(state);
    println!("{servers} servers and who is on them: {:.1} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    bulk(&mut Store::open(&dir, store)?, rows, servers, end_ms)?;
    println!("{rows} rows: {:.1} s, {} MB on disk", began.elapsed().as_secs_f64(), on_disk(&dir)? >> 20);

    let mut state = State::open(&dir, store, settings)?;
    live(&mut state, urls, end_ms - BEFORE_MS)?;
    println!("{} MB resident at most, {} MB on disk", peak_kib()? >> 10, on_disk(&dir)? >> 20);
    Ok(())
}

/// Rows as after a week: ten segments, four games, some rounds.
fn bulk(store: &mut Store, rows: u32, servers: u32, end_ms: i64) -> anyhow::Result<()> {
    let mut meta = store.load()?.meta;
    meta.next_player = BULK_FROM + rows;
    let per_server = rows / servers;
    let mut commit = Commit { meta: Some(meta), ..Commit::default() };
    for server in 1..=servers {
        for n in 0..per_server {
            let player = PlayerKey(BULK_FROM + (server - 1) * per_server + n);
            let x = player.0.wrapping_mul(2_654_435_761) >> 8;
            let mut row = PlayerRow::new(end_ms - 100_000_000, 900.0 + f64::from(x % 2_000) / 7.0);
            (row.measured_ms, row.starts, row.points) = (u64::from(x), 3, i64::from(x % 900));
            row.has_points = true;
            (row.elo_rounds, row.elo_at_ms) = (x % 9, end_ms - 90_000_000);
            (0..10).for_each(|i| row.clq1_segments.insert(u64::from(x >> i) % 60_000, end_ms - 80_000_000));
            (0..4).for_each(|i| row.clq2_games.insert(u64::from(x >> i) % 12, end_ms - 70_000_000));
            commit
                .rows
                .push((RowKey { window: WEEK.into(), server: ServerKey(server), player }, PackedRow::pack(&row)));
            if n % 2 == 0 {
                let mut best = BestPositions::default();
                (0..3).for_each(|which| best.set(which, Some(1 + x % per_server), WeekKey(WEEK.0 - 1)));
                commit.best.push(((ServerKey(server), player), best));
            }
        }
        if commit.rows.len() >= ROWS_PER_COMMIT || server == servers {
            store.apply(&commit)?;
            commit = Commit::default();
        }
    }
    Ok(())
}

/// Runs in real time from a given time on, until the week is closed and a little longer.
fn live(state: &mut State, urls: Vec<ServerUrl>, from_ms: i64) -> anyhow::Result<()> {
    let began = Instant::now();
    let due = |n: u64, servers: u64| Duration::from_micros(n * GAP_MS as u64 * 1_000 / servers);
    // As long as the daemon's queue: 20 batches of 512.
    let (sender, outcomes) = sync_channel(10_240);
    let source = std::thread::spawn(move || {
        for n in 0.. {
            let server = n as usize % urls.len();
            let due = due(n, urls.len() as u64);
            let t_ms = from_ms + due.as_millis() as i64;
            let outcome = outcome(server as u32, t_ms);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            if sender.send((due, Event::Replayed { url: urls[server].clone(), outcome })).is_err() {
                return;
            }
        }
    });

    let (mut before, mut closing) = (Durations::default(), Durations::default());
    let (mut ticks, mut commits, mut idle_commits) = (Durations::default(), Durations::default(), Durations::default());
    let (mut ticked_ms, mut swept_ms, mut changed_ms) = (i64::MIN, i64::MIN, None);
    let (mut closing_began, mut closed_at) = (None, None);
    let now = || from_ms + began.elapsed().as_millis() as i64;
    while closed_at.is_none_or(|at: Instant| at.elapsed() < AFTER) {
        let now_ms = now();
        let next = changed_ms.map_or(i64::MAX, |since| since + COMMIT_MS);
        let next_ms = next.min(ticked_ms.saturating_add(state.engine.tick_interval_ms()));
        let wait = Duration::from_millis(next_ms.saturating_sub(now_ms).max(0) as u64);
        let mut taken = outcomes.recv_timeout(wait);
        for _ in 0..512 {
            let Ok((due, event)) = taken else { break };
            state.handle(event)?;
            let times = if closing_began.is_none() { &mut before } else { &mut closing };
            times.0.push(began.elapsed() - due);
            taken = outcomes.try_recv().map_err(|_| RecvTimeoutError::Timeout);
        }
        let now_ms = now();
        if state.engine.model().has_changes() || state.engine.has_notices() {
            changed_ms.get_or_insert(now_ms);
        }
        if now_ms.saturating_sub(ticked_ms) >= state.engine.tick_interval_ms() {
            ticked_ms = now_ms;
            let tick = Instant::now();
            state.handle(Event::Tick { now_ms })?;
            ticks.0.push(tick.elapsed());
        }
        if now_ms.saturating_sub(swept_ms) >= SWEEP_MS {
            swept_ms = now_ms;
            state.sweep()?;
        }
        if changed_ms.is_some_and(|since| now_ms - since >= COMMIT_MS) {
            let commit = Instant::now();
            state.commit()?;
            let times = if closing_began.is_none() { &mut idle_commits } else { &mut commits };
            times.0.push(commit.elapsed());
            changed_ms = None;
        }
        while state.engine.poll_notice().is_some() {}
        match (state.engine.has_week_to_close(), closing_began) {
            (true, None) => closing_began = Some(Instant::now()),
            (false, Some(_)) => closed_at = closed_at.or(Some(Instant::now())),
            _ => {}
        }
    }
    drop(outcomes);
    source.join().expect("the source ends when the receiver is dropped");
    let took = closed_at.zip(closing_began).map(|(closed, began)| closed - began).expect("it is closed");
    println!("closed in {:.1} s", took.as_secs_f64());
    println!("{:<28} {:>8} {:>8} {:>8} {:>8} {:>8}", "ms", "n", "p50", "p99", "largest", "> 2 s");
    before.print("late before the end");
    closing.print("late from then on");
    idle_commits.print("a commit before the end");
    commits.print("a commit from then on");
    ticks.print("a tick");
    Ok(())
}

/// A full server; every 40 minutes one player leaves and one joins.
fn outcome(server: u32, t_ms: i64) -> Outcome {
    let player = |seat: u32| {
        let shift = (t_ms / 60_000) as u32 + seat * 3 + server;
        Player {
            name: format!("^1[clan]^7 Player {}", (server * LIST + seat) * 50 + shift / 40 % 50).into(),
            points: Some(i64::from(shift % 40)),
            ping: Some(50),
            ..Player::default()
        }
    };
    Outcome::Snapshot(Snapshot {
        t_ms,
        game: "baseq3".to_owned(),
        map: format!("q3dm{}", t_ms / 900_000 % 17),
        hostname: format!("A server of the field {server}"),
        slots: 16,
        players: (0..LIST).map(player).collect(),
        completeness: Completeness::Full,
        count: None,
        bots: None,
    })
}
