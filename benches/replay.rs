//! Measures how fast recorded scans go through the engine: `cargo bench --bench replay`.
//!
//! Generates a scan log (`CLQD_SERVERS`, default 2,000 servers; `CLQD_HOURS`, default 6;
//! `CLQD_PLAYERS`, default 12 in an average snapshot), then prints the time of each part of
//! `clqd replay`, on one thread: checking the whole log first, reading and parsing it,
//! screening the lists (pure, no engine), and all of it with the engine and the store.
//! Times are CPU times of this thread, so that other load on the machine has little effect.
//!
//! Two hours of 2,000 servers (77,000 snapshots of 12.5 players), us a snapshot, on two
//! cores. The machine was idle for the first column; builds ran during the second, at a
//! load of 3 to 4:
//!
//! | part | serde_json, names sorted by text | current |
//! |---|---|---|
//! | checking | 3.4 | 0.8 |
//! | reading and parsing | 3.3 | 1.6 |
//! | screening | 3.8 | 2.5 |
//!
//! One hour of 20,000 servers (361,000 snapshots of 12.1 players), at a load of 6: 1.2, 1.9
//! and 3.8; generating that log took 17 s. In both columns above, screening includes
//! finding the server's list in a map by its URL, which is no longer timed.
//!
//! A fifth of the remaining time is malloc and free, mostly of names.

mod measure;

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use clqd::cli::replay::{Replay, default_memory_bytes};
use clqd::config::Config;
use clqd::engine::Outcome;
use clqd::fleet::{SimulatedHistory, World, WorldSettings, address};
use clqd::log::LogEvent;
use clqd::model::ServerUrl;
use clqd::model::server::PlayerEntry;
use clqd::rank::player_list::{EntriesByName, NameFamily, PreviousList};
use clqd::rank::{NameRules, ScreenRules, player_list, round};
use clqd::scan_log::{self, LossyReader};
use clqd::state::State;
use measure::{on_core, peak_kib};
use rustc_hash::FxHashMap;

const START_MS: i64 = 1_763_942_400_000; // Monday 2025-11-24 00:00 UTC

fn main() -> anyhow::Result<()> {
    let number = |name: &str, or: u32| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (servers, hours) = (number("CLQD_SERVERS", 2_000), number("CLQD_HOURS", 6));
    let dir = tempfile::tempdir()?;
    let log = dir.path().join("scans.jsonl");
    let began = Instant::now();
    let size = generate(&log, servers, hours, f64::from(number("CLQD_PLAYERS", 12)))?;
    println!(
        "{servers} servers, {hours} h: {} snapshots, {:.1} players each, {} MB, made in {:.1} s",
        size.snapshots,
        size.players_mean(),
        std::fs::metadata(&log)?.len() >> 20,
        began.elapsed().as_secs_f64()
    );

    let checking = timed(|| scan_log::check(&log).map(drop))?;
    size.print("checking", checking);
    let reading = timed(|| LossyReader::new(scan_log::open(&log)?).try_for_each(|line| line.map(drop)))?;
    size.print("reading and parsing", reading);
    let servers_of_lines = servers_of_lines(&log)?;
    let comparing = timed(|| compare(&log, &servers_of_lines))? - reading;
    size.print("comparing lists", comparing);

    let config = Config::default();
    let mut state = State::open_configured(&config, &dir.path().join("state"), true)?;
    let began = Instant::now();
    let replaying = timed(|| {
        let mut replay = Replay::new(&mut state, default_memory_bytes());
        LossyReader::new(scan_log::open(&log)?).try_for_each(|event| replay.apply(event?))?;
        Ok::<(), anyhow::Error>(replay.finish()?)
    })?;
    let clock_s = began.elapsed().as_secs_f64();
    size.print("engine and store", replaying - reading - comparing);
    size.print("the whole replay", checking + replaying);
    println!("replaying kept a core busy {:.0} % of its time", 100.0 * replaying / clock_s);
    println!(
        "{} players known, {} MB resident at most",
        state.engine.model().status().players_known,
        peak_kib()? >> 10
    );
    Ok(())
}

/// CPU seconds of this thread for `work`: other load on the machine has little effect.
fn timed<E: Into<anyhow::Error>>(work: impl FnOnce() -> Result<(), E>) -> anyhow::Result<f64> {
    let began = on_core()?;
    work().map_err(Into::into)?;
    Ok((on_core()? - began).as_secs_f64())
}

/// The server number of each line, and the number of servers: resolving the URL is the
/// engine's work and not part of the comparison.
struct ServersOfLines {
    numbers: Vec<u32>,
    servers: usize,
}

fn servers_of_lines(log: &Path) -> Result<ServersOfLines, scan_log::LogError> {
    let mut known: FxHashMap<ServerUrl, u32> = FxHashMap::default();
    let mut numbers = Vec::new();
    for line in LossyReader::new(scan_log::open(log)?) {
        let LogEvent::Scan { server, .. } = line? else { continue };
        let next = known.len() as u32;
        numbers.push(*known.entry(server).or_insert(next));
    }
    Ok(ServersOfLines { numbers, servers: known.len() })
}

/// Reads a log and compares each list with the one before it, as the engine does.
fn compare(log: &Path, of_lines: &ServersOfLines) -> Result<(), scan_log::LogError> {
    let (rules, screen) = (NameRules::default(), ScreenRules::default());
    let mut last: Vec<Option<(Vec<PlayerEntry>, EntriesByName, NameFamily)>> = vec![None; of_lines.servers];
    let (mut stayed, mut finals) = (0, 0);
    for (line, &server) in LossyReader::new(scan_log::open(log)?).zip(&of_lines.numbers) {
        let LogEvent::Scan { server: url, outcome: Outcome::Snapshot(snapshot) } = line? else { continue };
        let family = rules.family(&screen, url.scheme(), url.is_quake3_family(), &snapshot.game);
        let last = &mut last[server as usize];
        let before = last.as_mut().map(|(entries, by_name, family)| PreviousList { entries, by_name, family: *family });
        let cur = player_list::read_list(snapshot.players, &rules, family, before);
        let (prev, common) = match &*last {
            Some((entries, by_name, _)) => (&entries[..], cur.unique_pairs(entries, by_name)),
            None => (&[][..], Vec::new()),
        };
        // As with a map that never changes: the lists are compared every time.
        let repeats = || last.as_ref().is_some_and(|(entries, by_name, _)| cur.shares_duplicate_name(entries, by_name));
        if round::restarted(prev, &cur.entries, &common, repeats, round::RoundRules::default()) {
            finals += usize::from(round::final_list(prev).is_some());
        }
        stayed += common.len();
        *last = Some((cur.entries, cur.by_name, family));
    }
    assert!(stayed > finals, "successive lists are similar");
    Ok(())
}

/// The contents of a log.
#[derive(Clone, Copy, Default)]
struct Size {
    snapshots: u64,
    players: u64,
}

impl Size {
    fn players_mean(self) -> f64 {
        self.players as f64 / self.snapshots as f64
    }

    fn print(self, part: &str, seconds: f64) {
        println!(
            "{part:<20} {:>10.0} snapshots/s {:>6.2} us a snapshot {:>6.0} ns a player",
            self.snapshots as f64 / seconds,
            seconds * 1e6 / self.snapshots as f64,
            seconds * 1e9 / self.players as f64
        );
    }
}

fn world(servers: u32, activity: f64) -> World {
    World::new(WorldSettings { servers, start_ms: START_MS, activity, truth: false, ..WorldSettings::default() })
}

/// The activity at which an average snapshot of these hours has this many players: found by
/// bisection on some of the servers.
fn activity_for(servers: u32, to_ms: i64, players: f64) -> f64 {
    let (mut low, mut high) = (0.0, 64.0);
    for _ in 0..10 {
        let mut world = world(servers.min(200), (low + high) / 2.0);
        let mut size = Size::default();
        // As in `SimulatedHistory`, busy servers are scanned more often.
        for (_, _, snapshot) in SimulatedHistory::new(&mut world, START_MS, to_ms.min(START_MS + 24 * 3_600_000)) {
            size.snapshots += 1;
            size.players += snapshot.players.len() as u64;
        }
        match size.players_mean() < players {
            true => low = (low + high) / 2.0,
            false => high = (low + high) / 2.0,
        }
    }
    (low + high) / 2.0
}

fn generate(path: &Path, servers: u32, hours: u32, players: f64) -> anyhow::Result<Size> {
    let to_ms = START_MS + i64::from(hours) * 3_600_000;
    let mut world = world(servers, activity_for(servers, to_ms, players));
    let urls: Vec<ServerUrl> = (0..servers)
        .map(|server| {
            ServerUrl::parse(&format!("{}://{}:27960", world.protocol(server).scheme(), address::address_of(server)))
        })
        .collect::<Result<_, _>>()?;
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let mut line = Vec::new();
    let mut size = Size::default();
    for (_, server, snapshot) in SimulatedHistory::new(&mut world, START_MS, to_ms) {
        size.players += snapshot.players.len() as u64;
        size.snapshots += 1;
        line.clear();
        scan_log::write(&mut line, &urls[server as usize], &Outcome::Snapshot(snapshot));
        out.write_all(&line)?;
    }
    out.flush()?;
    Ok(size)
}
