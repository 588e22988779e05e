//! Rebuilds a window from the log while servers are scanned: `cargo bench --bench
//! rebuild`.
//!
//! Writes a state with `CLQD_ROWS` rows (default 200,000) of one window of a custom type,
//! 100 players to a server, and its log, in segments like those of the daemon: lists of 12,
//! each player stays for 15 snapshots. Then it reopens the
//! state and continues in real time like the daemon's engine thread, with its commits,
//! ticks and sweeps; soon the settings change so that the window began an hour earlier.
//! `CLQD_SCANS` outcomes a second (167, as for 20,000 servers scanned every two minutes)
//! arrive over a bounded queue from another thread and are applied and recorded during the
//! rebuild. Prints the duration of the rebuild, and how late outcomes were applied before
//! it, during the replay, and during the import. `CLQD_DIR` is the directory for the state.
//! The results are in docs/benchmarks.md.

mod measure;
#[path = "measure/times.rs"]
mod times;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clqd::board::window::WindowTypes;
use clqd::config::Config;
use clqd::daemon::window_rebuild::{RebuildPaths, Rebuilder, plan_window_types};
use clqd::engine::{EngineSettings, Event, Outcome, StateReader};
use clqd::log::{BatchBuilder, LogEvent, LogWriter, WriterSettings};
use clqd::model::calendar::Calendar;
use clqd::model::{Completeness, Player, ServerKey, ServerUrl, Snapshot, WindowKey, WindowType};
use clqd::state::{ReplayFeed, State};
use clqd::store::StoreSettings;
use measure::{on_disk, peak_kib, resident_kib};
use times::{Durations, url};
use tokio::sync::mpsc;

const MONDAY_MS: i64 = 1_763_942_400_000; // 2025-11-24 00:00 UTC
const FROM_MS: i64 = MONDAY_MS + 12 * 3_600_000;
const PLAYERS_PER_SERVER: u32 = 100;
const LIST: u32 = 12;
/// Snapshots during each presence.
const STAY: u32 = 15;
const GAP_MS: i64 = 120_000;
const COMMIT_MS: i64 = 200;
const SWEEP_MS: i64 = 1_000;
/// Real time before the rebuild begins, and after it.
const IDLE_BEFORE_AND_AFTER: Duration = Duration::from_secs(5);

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).init();
    let number = |name: &str, or: u32| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (rows, scans) = (number("CLQD_ROWS", 200_000), number("CLQD_SCANS", 167));
    let mut config = Config::default();
    config.store.cache_bytes = u64::from(number("CLQD_CACHE_MB", 256)) << 20;
    let field = Field::new(rows)?;
    let store = StoreSettings { cache_bytes: config.store.cache_bytes, create: true };
    let before = settings(&config, "12 base=2025-11-24T01:00:00Z duration=7d every=7d keep=0")?;
    let after = settings(&config, "12 base=2025-11-24T00:00:00Z duration=7d every=7d keep=0")?;
    if let Some(place) = std::env::var_os(MAKE_STATE_ENV) {
        return make(Path::new(&place), store, before, &field);
    }

    let place = match std::env::var_os("CLQD_DIR") {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir()?,
    };
    // In another process, so that its memory is not counted for the rebuild.
    let made = Command::new(std::env::current_exe()?).env(MAKE_STATE_ENV, place.path()).status()?;
    anyhow::ensure!(made.success(), "the state was not made: {made}");
    let mut live = EngineLoop::open(place.path(), store, before)?;
    println!("{} MB resident at first", resident_kib()? >> 10);
    live.run(field, scans, after)?;
    println!("{} MB resident at most, {} MB on disk", peak_kib()? >> 10, on_disk(place.path())? >> 20);
    live.check(rows)
}

/// Environment variable with the directory, for the process that only writes the state.
const MAKE_STATE_ENV: &str = "CLQD_REBUILD_MAKE";

/// Lists until everybody was there.
const STEPS: u32 = PLAYERS_PER_SERVER * STAY / LIST + 1;

/// The state, and the log of it.
fn make(place: &Path, store: StoreSettings, settings: EngineSettings, field: &Field) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut state = State::open(&place.join("state"), store, settings)?;
    let mut log = Log::open(&place.join("state"))?;
    let mut feed = ReplayFeed::exclusive(&mut state.engine, 1 << 30);
    for step in 0..STEPS {
        for server in 0..field.servers() {
            let outcome = field.outcome(server, step, field.due_ms(server, step));
            let url = field.urls[server as usize].clone();
            log.builder.append(&LogEvent::Scan { server: url, outcome: outcome.clone() });
            feed.observe_scan(&mut state, field.urls[server as usize].clone(), outcome)?;
        }
        log.write()?;
    }
    state.commit()?;
    drop(log);
    println!(
        "{} servers, {} snapshots of {LIST} players: {:.1} s, {} MB on disk",
        field.servers(),
        feed.scans(),
        began.elapsed().as_secs_f64(),
        on_disk(place)? >> 20
    );
    Ok(())
}

fn settings(config: &Config, window: &str) -> anyhow::Result<EngineSettings> {
    let windows = WindowTypes::new(Calendar::default(), [window.parse()?])?;
    Ok(EngineSettings { windows, ..config.engine_settings()? })
}

/// The log, written by the thread that fills it.
struct Log {
    writer: LogWriter,
    builder: BatchBuilder,
}

impl Log {
    /// Segments as of the daemon.
    fn open(state_dir: &Path) -> anyhow::Result<Log> {
        let dir = clqd::state::log_dir(state_dir);
        let settings = WriterSettings { dir, segment_bytes_max: 64 << 20, segment_ms_max: 3_600_000 };
        let (writer, builder, _) = LogWriter::open(&settings, 1, FROM_MS)?;
        Ok(Log { writer, builder })
    }

    fn write(&mut self) -> anyhow::Result<()> {
        if let Some(batch) = self.builder.take(FROM_MS) {
            self.writer.write(batch, FROM_MS)?;
        }
        Ok(())
    }
}

/// The engine's thread of the daemon, as far as a rebuild concerns it.
struct EngineLoop {
    state: State,
    log: Log,
    rebuilder: Rebuilder,
    place: RebuildPaths,
}

impl EngineLoop {
    fn open(dir: &Path, store: StoreSettings, settings: EngineSettings) -> anyhow::Result<EngineLoop> {
        let state_dir = dir.join("state");
        let state = State::open(&state_dir, store, settings)?;
        let place = RebuildPaths {
            log: clqd::state::log_dir(&state_dir),
            log_lock: Default::default(),
            cache_bytes: store.cache_bytes,
            disk_free_bytes_min: 0,
            state_dir,
        };
        Ok(EngineLoop { state, log: Log::open(&place.state_dir)?, rebuilder: Rebuilder::new(&place), place })
    }

    fn commit(&mut self) -> anyhow::Result<()> {
        self.log.write()?;
        self.state.commit()?;
        while self.state.engine.poll_notice().is_some() {}
        Ok(())
    }

    fn run(&mut self, field: Field, scans: u32, after: EngineSettings) -> anyhow::Result<()> {
        let waiter = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let servers = field.servers();
        let (began, from_ms) = (Instant::now(), field.due_ms(0, STEPS));
        let now = || from_ms + began.elapsed().as_millis() as i64;
        let mut outcomes = source(field, scans, began, from_ms);
        let mut batch = Vec::new();
        let (mut idle, mut meanwhile, mut taking) = (Durations::default(), Durations::default(), Durations::default());
        let (mut commits, mut take_overs) = (Durations::default(), Durations::default());
        let (mut ticked_ms, mut swept_ms, mut changed_ms) = (i64::MIN, i64::MIN, None);
        let (mut rebuild_began, mut made, mut over): (Option<Instant>, Option<Instant>, Option<Instant>) =
            (None, None, None);
        while over.is_none_or(|at| at.elapsed() < IDLE_BEFORE_AND_AFTER) {
            let now_ms = now();
            let taking_over = self.rebuilder.is_importing();
            let next = changed_ms.map_or(i64::MAX, |since| since + COMMIT_MS);
            let next_ms = next.min(ticked_ms.saturating_add(self.state.engine.tick_interval_ms()));
            let wait_ms = if taking_over { 0 } else { next_ms.saturating_sub(now_ms).max(0) };
            let wait = Duration::from_millis(wait_ms as u64);
            let step = waiter.block_on(async {
                tokio::select! {
                    biased;
                    step = self.rebuilder.next_event() => Some(step),
                    _ = outcomes.recv_many(&mut batch, 512) => None,
                    () = tokio::time::sleep(wait) => None,
                }
            });
            let mut look = step.is_some() || taking_over;
            if let Some(step) = step {
                // What was applied until now is on disk, so the batch ends.
                self.log.write()?;
                if let Some(send) = self.rebuilder.handle_event(step, self.log.builder.last_seq()) {
                    send();
                }
            }
            let during = match (rebuild_began, made, over) {
                (_, Some(_), None) => &mut taking,
                (_, Some(_), Some(at)) if at.elapsed() < Duration::from_secs(1) => &mut taking,
                (Some(_), None, None) => &mut meanwhile,
                _ => &mut idle,
            };
            for (due, url, outcome) in batch.drain(..) {
                let event = LogEvent::Scan { server: url.clone(), outcome: outcome.clone() };
                let seq = self.log.builder.append(&event);
                self.rebuilder.record(seq, &event);
                self.state.handle(Event::Replayed { url, outcome })?;
                during.0.push(began.elapsed() - due);
            }
            let now_ms = now();
            if self.state.engine.model().has_changes() {
                changed_ms.get_or_insert(now_ms);
            }
            if now_ms.saturating_sub(ticked_ms) >= self.state.engine.tick_interval_ms() {
                ticked_ms = now_ms;
                self.state.handle(Event::Tick { now_ms })?;
            }
            if now_ms.saturating_sub(swept_ms) >= SWEEP_MS {
                swept_ms = now_ms;
                self.state.sweep()?;
                look = true;
            }
            if changed_ms.is_some_and(|since| now_ms - since >= COMMIT_MS) {
                let commit = Instant::now();
                self.commit()?;
                commits.0.push(commit.elapsed());
                changed_ms = None;
            }
            if rebuild_began.is_none() && began.elapsed() >= IDLE_BEFORE_AND_AFTER {
                self.commit()?;
                self.state.engine.reload(after.clone());
                let planned = plan_window_types(&self.state.engine, &self.place.log)?;
                let (step, note) = planned.expect("the types have changed");
                self.state.apply_rebuild(&step)?;
                println!("{note}");
                self.commit()?;
                let position = self.log.builder.last_seq();
                self.rebuilder.begin(&self.state, &self.place, position);
                rebuild_began = Some(Instant::now());
            }
            if look && self.rebuilder.is_ready() {
                made.get_or_insert_with(Instant::now);
                let step = Instant::now();
                self.commit()?;
                if self.rebuilder.import_step(&mut self.state, &mut |_| ())? {
                    over = Some(Instant::now());
                }
                take_overs.0.push(step.elapsed());
            }
        }
        let (began, made, over) = (rebuild_began.expect("begun"), made.expect("made"), over.expect("over"));
        let took = (made - began).as_secs_f64();
        println!(
            "rebuilt in {:.1} s: {took:.1} s of replay, {:.0} snapshots/s; {:.1} s of taking over",
            (over - began).as_secs_f64(),
            f64::from(STEPS * servers) / took,
            (over - made).as_secs_f64()
        );
        println!("{:<28} {:>8} {:>8} {:>8} {:>8} {:>8}", "ms", "n", "p50", "p99", "largest", "> 2 s");
        idle.print("late before and after");
        meanwhile.print("late while it is replayed");
        taking.print("late while it is taken over");
        commits.print("a commit");
        take_overs.print("a step of taking over");
        Ok(())
    }

    /// Checks that the window has the played rows.
    fn check(&self, rows: u32) -> anyhow::Result<()> {
        let window = WindowKey { kind: WindowType(12), index: 0 };
        let servers = (1..=rows / PLAYERS_PER_SERVER).map(ServerKey);
        let counts = servers.map(|server| Ok(self.state.store.rows(window, server)?.len()));
        let found: usize = counts.sum::<anyhow::Result<usize>>()?;
        anyhow::ensure!(found as u32 >= rows / 100 * 99, "{found} of {rows} rows are there");
        Ok(())
    }
}

/// The players on each server, and their points.
struct Field {
    urls: Vec<ServerUrl>,
}

impl Field {
    fn new(rows: u32) -> anyhow::Result<Field> {
        let servers = (rows / PLAYERS_PER_SERVER).max(1);
        Ok(Field { urls: (0..servers).map(url).collect::<Result<_, _>>()? })
    }

    fn servers(&self) -> u32 {
        self.urls.len() as u32
    }

    fn due_ms(&self, server: u32, step: u32) -> i64 {
        FROM_MS + i64::from(step) * GAP_MS + i64::from(server) * GAP_MS / i64::from(self.servers())
    }

    /// Rounds of five snapshots; at every other snapshot one player leaves and the next of
    /// the server's players joins.
    fn outcome(&self, server: u32, step: u32, t_ms: i64) -> Outcome {
        let player = |seat: u32| {
            // Seats are reassigned one after the other.
            let turn = (step + seat * STAY / LIST) / STAY;
            let n = (turn * LIST + seat) % PLAYERS_PER_SERVER;
            let skill = n.wrapping_mul(2_654_435_761) >> 29;
            Player {
                name: format!("^1[clan]^7 Player {}", server * PLAYERS_PER_SERVER + n).into(),
                points: Some(i64::from((step + server) % 5 * (skill + seat % 3))),
                ping: Some(20 + n as i32),
                ..Player::default()
            }
        };
        Outcome::Snapshot(Snapshot {
            t_ms,
            game: "baseq3".to_owned(),
            map: format!("q3dm{}", step / 5 % 17),
            hostname: format!("A server of the field {server}"),
            slots: 16,
            players: (0..LIST).map(player).collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        })
    }
}

type Due = (Duration, ServerUrl, Outcome);

/// Sends outcomes in real time from a given time on, over a queue as long as the daemon's.
fn source(field: Field, scans: u32, began: Instant, from_ms: i64) -> mpsc::Receiver<Due> {
    let (sender, outcomes) = mpsc::channel(10_000);
    std::thread::spawn(move || {
        for n in 0_u32.. {
            let (server, step) = (n % field.servers(), STEPS + n / field.servers());
            let due = Duration::from_micros(u64::from(n) * 1_000_000 / u64::from(scans));
            let outcome = field.outcome(server, step, from_ms + due.as_millis() as i64);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            if sender.blocking_send((due, field.urls[server as usize].clone(), outcome)).is_err() {
                return;
            }
        }
    });
    outcomes
}
