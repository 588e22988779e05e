//! Measures the size of the state directory of a running daemon: `cargo bench --bench
//! size`.
//!
//! Generates the scans of a week (`CLQD_SERVERS`, default 400; `CLQD_HOURS`, default
//! 168) in order of time and applies them twice: as the daemon does, with a small commit
//! every `CLQD_COMMIT_MS` of their time (default 2,000, so that commits are as large as
//! those of ten times as many servers at the daemon's 200 ms), and as `clqd replay` does,
//! with as few commits as memory allows. Prints how the first directory grows, the time of
//! a commit, and the size of both.
//!
//! The live directory is compacted while it grows (`src/store/compaction.rs`). At all times
//! it must take at most 2.5 times as much as the replay's, copies included. Without
//! compaction (`CLQD_COMPACT=0`) it takes 6 times as much after a week.

mod measure;

use std::path::Path;
use std::time::{Duration, Instant};

use clqd::cli::replay::{Replay, default_memory_bytes};
use clqd::config::Config;
use clqd::engine::{Event, Outcome};
use clqd::fleet::{SimulatedHistory, World, WorldSettings, address};
use clqd::log::LogEvent;
use clqd::model::ServerUrl;
use clqd::state::State;
use measure::{on_core, on_disk};

/// Commits between two checks of the directory's size.
const LOOK_COMMITS: usize = 100;

const START_MS: i64 = 1_763_942_400_000; // Monday 2025-11-24 00:00 UTC

fn main() -> anyhow::Result<()> {
    let number = |name: &str, or: u32| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (servers, hours) = (number("CLQD_SERVERS", 400), number("CLQD_HOURS", 168));
    let commit_ms = i64::from(number("CLQD_COMMIT_MS", 2_000));
    let place = tempfile::tempdir()?;
    let end_ms = START_MS + i64::from(hours) * 3_600_000;
    let mut config = Config::default();
    config.store.cache_bytes = u64::from(number("CLQD_CACHE_MB", 256)) << 20;

    let live_dir = place.path().join("live");
    let mut state = State::open_configured(&config, &live_dir, true)?;
    if number("CLQD_COMPACT", 1) == 0 {
        config.store.compact_bytes_min = 0;
    }
    state.store.set_database_settings(config.store.database_settings());
    let (mut commit_due_ms, mut commits, mut snapshots) = (START_MS, Times::default(), 0_u64);
    let mut largest = 0;
    let mut reports = (1..=8).map(|n| START_MS + (end_ms - START_MS) * n / 8).peekable();
    let began = Instant::now();
    let mut world = world(servers);
    let urls = urls(&world)?;
    println!("live: hours, snapshots, MB in the directory");
    for (t_ms, server, snapshot) in SimulatedHistory::new(&mut world, START_MS, end_ms) {
        if t_ms >= commit_due_ms {
            state.handle(Event::Tick { now_ms: t_ms })?;
            let (began, on_core_began) = (Instant::now(), on_core()?);
            state.commit()?;
            commits.add(began.elapsed(), on_core()? - on_core_began);
            commit_due_ms = t_ms + commit_ms;
            if commits.all.len().is_multiple_of(LOOK_COMMITS) {
                largest = largest.max(on_disk(&live_dir)?);
            }
        }
        if reports.next_if(|due| t_ms >= *due).is_some() {
            println!("  {:>4} {snapshots:>9} {:>6}", (t_ms - START_MS) / 3_600_000, on_disk(&live_dir)? >> 20);
        }
        snapshots += 1;
        state.handle(Event::Replayed { url: urls[server as usize].clone(), outcome: Outcome::Snapshot(snapshot) })?;
    }
    state.commit()?;
    let took = began.elapsed();
    let live = on_disk(&live_dir)?;
    println!(
        "live    {snapshots} snapshots in {:.0} s: {} MB on disk; {} commits, {:.0} us each, {:.0} us of it on a core, 99 % below {:.1} ms",
        took.as_secs_f64(),
        live >> 20,
        commits.all.len(),
        commits.mean_us(),
        commits.on_core.as_micros() as f64 / commits.all.len() as f64,
        commits.quantile_ms(0.99)
    );
    drop(state);
    let reopened = State::open_configured(&config, &live_dir, false)?;
    drop(reopened);
    println!("        {} MB after a restart", on_disk(&live_dir)? >> 20);

    let replay_dir = place.path().join("replay");
    replay(&config, &replay_dir, servers, end_ms)?;
    let replayed = on_disk(&replay_dir)?;
    let times = live as f64 / replayed as f64;
    println!("replay  {} MB on disk; live {times:.2} times as much", replayed >> 20);
    let most = largest as f64 / replayed as f64;
    println!("        live at most {} MB, {most:.2} times as much", largest >> 20);
    anyhow::ensure!(
        most <= 2.5 || config.store.compact_bytes_min == 0,
        "the bound of src/store/compaction.rs is exceeded: {most:.2}"
    );
    Ok(())
}

#[derive(Default)]
struct Times {
    all: Vec<Duration>,
    on_core: Duration,
}

impl Times {
    fn add(&mut self, took: Duration, on_core: Duration) {
        self.all.push(took);
        self.on_core += on_core;
    }

    fn mean_us(&self) -> f64 {
        self.all.iter().sum::<Duration>().as_micros() as f64 / self.all.len().max(1) as f64
    }

    fn quantile_ms(&mut self, share: f64) -> f64 {
        self.all.sort_unstable();
        self.all.get((self.all.len() as f64 * share) as usize).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }
}

fn world(servers: u32) -> World {
    World::new(WorldSettings { servers, start_ms: START_MS, activity: 1.0, truth: false, ..WorldSettings::default() })
}

fn urls(world: &World) -> anyhow::Result<Vec<ServerUrl>> {
    let url = |server| format!("{}://{}:27960", world.protocol(server).scheme(), address::address_of(server));
    (0..world.servers()).map(|server| Ok(ServerUrl::parse(&url(server))?)).collect()
}

fn replay(config: &Config, dir: &Path, servers: u32, end_ms: i64) -> anyhow::Result<()> {
    let mut state = State::open_configured(config, dir, true)?;
    let mut world = world(servers);
    let urls = urls(&world)?;
    let mut replay = Replay::new(&mut state, default_memory_bytes());
    for (_, server, snapshot) in SimulatedHistory::new(&mut world, START_MS, end_ms) {
        let outcome = Outcome::Snapshot(snapshot);
        replay.apply(LogEvent::Scan { server: urls[server as usize].clone(), outcome })?;
    }
    Ok(replay.finish()?)
}
