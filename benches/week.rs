//! Replays a week of all players into one state: `cargo bench --bench week`.
//!
//! Generates the lines of a scan log (`CLQD_ROWS` rows, default 1,000,000; 500 players to a
//! server, 12 in each snapshot, a fifth of them also on a second server) and replays them
//! like `clqd replay`, including the last commit but not the generation. Prints snapshots
//! per CPU second of the thread, so that other load on the machine has little effect, and
//! peak memory. It then builds the boards of the week, reopens the state, as after a
//! restart, and builds them again. `CLQD_VISITS` (default 1): how often each player joins a
//! server. `CLQD_STAY` (15): snapshots during each presence. `CLQD_WINDOWS`: windows in
//! addition to the week, `hour keep=3, day, month`. `CLQD_MEMORY_MB`: as `clqd replay
//! --memory`, by default a third of the machine's memory. `CLQD_STATE`: directory in which
//! the state is written and kept; an existing state is only opened. The results are in
//! docs/benchmarks.md.

mod measure;

use std::fmt::Write;
use std::time::{Duration, Instant};

use clqd::cli::replay::{Replay, default_memory_bytes};
use clqd::config::Config;
use clqd::log::LogEvent;
use clqd::model::WindowKey;
use clqd::scan_log;
use clqd::state::State;
use measure::{on_core, on_disk, peak_kib, resident_kib};

const START_MS: i64 = 1_763_942_400_000; // Monday 2025-11-24 00:00 UTC
const PLAYERS_PER_SERVER: u32 = 500;
const LIST: usize = 12;
const GAP_MS: i64 = 120_000;

/// Lines in memory at once: like a log that is read, not one that is in memory as a whole.
const SERVERS_PER_CHUNK: usize = 250;

fn main() -> anyhow::Result<()> {
    let number = |name: &str, or: u32| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let rows = number("CLQD_ROWS", 1_000_000);
    let servers = (rows / PLAYERS_PER_SERVER).max(1);
    let stay = number("CLQD_STAY", 15).max(1);
    let steps = number("CLQD_VISITS", 1) * PLAYERS_PER_SERVER * stay / LIST as u32 + 1;
    let place = tempfile::tempdir()?;
    let kept = std::env::var_os("CLQD_STATE").map(std::path::PathBuf::from);
    let dir = kept.unwrap_or_else(|| place.path().join("state"));
    let mut config = Config::default();
    if let Ok(windows) = std::env::var("CLQD_WINDOWS") {
        config.boards.windows = windows.split(',').map(|window| window.trim().to_owned()).collect();
    }
    config.store.cache_bytes = u64::from(number("CLQD_CACHE_MB", 256)) << 20;

    let memory = match number("CLQD_MEMORY_MB", 0) {
        0 => default_memory_bytes(),
        megabytes => u64::from(megabytes) << 20,
    };

    if dir.exists() {
        return restart(&config, &dir);
    }
    let mut state = State::open_configured(&config, &dir, true)?;
    let mut field = Field::new(servers, stay);
    let mut replay = Replay::new(&mut state, memory);
    let (mut took, mut parsing, mut bytes) = (Duration::ZERO, Duration::ZERO, 0);
    let (mut lines, mut log, mut outcomes) = (String::new(), String::new(), Vec::new());
    for step in 0..steps {
        for first in (0..servers).step_by(SERVERS_PER_CHUNK) {
            for server in (first..servers).take(SERVERS_PER_CHUNK) {
                lines.clear();
                field.line(&mut lines, server, step);
                bytes += lines.len();
                log.push_str(&lines);
                log.push('\n');
            }
            let began = on_core()?;
            for line in log.lines() {
                outcomes.push(scan_log::parse_scan(line)?);
            }
            let parsed = on_core()?;
            for (url, outcome) in outcomes.drain(..) {
                replay.apply(LogEvent::Scan { server: url, outcome })?;
            }
            let taken = on_core()?;
            took += taken - began;
            parsing += parsed - began;
            log.clear();
        }
        if (step + 1) % (steps / 5) == 0 {
            let done = u64::from(step + 1) * u64::from(servers);
            println!(
                "  {done} snapshots, {:.0}/s, {} MB resident",
                done as f64 / took.as_secs_f64(),
                resident_kib()? >> 10
            );
        }
    }
    let (began, waited) = (on_core()?, Instant::now());
    replay.finish()?;
    let snapshots = u64::from(steps) * u64::from(servers);
    let last = on_core()? - began;
    took += last;
    println!(
        "last commit: {:.1} s on a core, {:.1} s by the clock",
        last.as_secs_f64(),
        waited.elapsed().as_secs_f64()
    );
    println!(
        "{servers} servers, {snapshots} snapshots of {LIST} players, {} bytes each, {rows} rows",
        bytes as u64 / snapshots
    );
    println!(
        "replay  {:>8.0} snapshots/s, {:.0} ns a player ({:.0} of them parsing); {} MB resident at most, {} MB on disk",
        snapshots as f64 / took.as_secs_f64(),
        took.as_nanos() as f64 / snapshots as f64 / LIST as f64,
        parsing.as_nanos() as f64 / snapshots as f64 / LIST as f64,
        peak_kib()? >> 10,
        on_disk(&dir)? >> 20,
    );
    let window = state.engine.model().running_windows()[0];
    boards("boards ", &mut state, window)?;
    drop(state);

    restart(&config, &dir)
}

fn restart(config: &Config, dir: &std::path::Path) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut state = State::open_configured(config, dir, false)?;
    println!("restart {:>8.1} s to open the state", began.elapsed().as_secs_f64());
    let window = state.engine.model().running_windows()[0];
    boards("boards ", &mut state, window)
}

fn boards(what: &str, state: &mut State, window: WindowKey) -> anyhow::Result<()> {
    let began = Instant::now();
    state.commit_and_build_boards(window)?;
    let boards = state.engine.model().boards(window).expect("the boards were just built");
    println!(
        "{what} {:>8.1} s to make those of the game; {} players, {} MB; {} MB resident now, {} at most",
        began.elapsed().as_secs_f64(),
        boards.players(),
        boards.heap_bytes() >> 20,
        resident_kib()? >> 10,
        peak_kib()? >> 10,
    );
    Ok(())
}

/// The players on each server, and their points.
struct Field {
    seats: Vec<Seat>,
    /// For each server, the number of its players that have joined so far.
    come: Vec<u32>,
    /// Snapshots during a presence.
    stay: u32,
    random: u64,
}

#[derive(Clone, Copy, Default)]
struct Seat {
    player: u32,
    points: u32,
    stays: u32,
}

impl Field {
    fn new(servers: u32, stay: u32) -> Field {
        let seats = vec![Seat::default(); servers as usize * LIST];
        let mut field = Field { seats, come: vec![0; servers as usize], stay, random: 7 };
        for server in 0..servers {
            for seat in 0..LIST {
                let stays = 1 + field.below(stay);
                field.seats[server as usize * LIST + seat] = Seat { stays, ..field.next_player(server) };
            }
        }
        field
    }

    fn below(&mut self, most: u32) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) % u64::from(most)) as u32
    }

    fn next_player(&mut self, server: u32) -> Seat {
        let come = &mut self.come[server as usize];
        let n = *come % PLAYERS_PER_SERVER;
        *come += 1;
        // Every fifth player also plays on the previous server.
        let home = if n.is_multiple_of(5) { server.saturating_sub(1) } else { server };
        Seat { player: home * PLAYERS_PER_SERVER + n, points: 0, stays: self.stay }
    }

    fn line(&mut self, out: &mut String, server: u32, step: u32) {
        let t = START_MS + i64::from(step) * GAP_MS + i64::from(server) * GAP_MS / self.come.len() as i64;
        let (a, b, c) = (server >> 16, server >> 8 & 255, server & 255);
        _ = write!(
            out,
            "{{\"t\":{t},\"server\":\"quake3://10.{a}.{b}.{c}:27960\",\"game\":\"baseq3\",\"map\":\"q3dm{}\",\
             \"hostname\":\"A server of the field {server}\",\"slots\":16,\"players\":[",
            step / 5 % 17
        );
        let new_round = (step + server).is_multiple_of(5);
        for seat in 0..LIST {
            let at = server as usize * LIST + seat;
            if self.seats[at].stays == 0 {
                self.seats[at] = self.next_player(server);
            }
            let gain = self.below(12);
            let ping = 20 + self.below(100);
            let it = &mut self.seats[at];
            it.points = if new_round { gain } else { it.points + gain };
            it.stays -= 1;
            let comma = if seat == 0 { "" } else { "," };
            _ = write!(
                out,
                "{comma}{{\"name\":\"^1[clan]^7 Player {}\",\"points\":{},\"ping\":{ping},\"bot\":false}}",
                it.player, it.points
            );
        }
        out.push_str("]}");
    }
}
