//! How fast recorded scans go through the engine: `cargo bench --bench replay`.
//!
//! Generates a scan log (`CLQD_SERVERS`, default 2,000 servers; `CLQD_HOURS`,
//! default 24), then replays it as `clqd replay` does and prints snapshots per
//! second, players per snapshot and peak memory, beside the time that reading
//! and parsing the same lines takes alone: the floor of any replay.

use std::io::{BufWriter, Write};
use std::time::Instant;

use clqd::cli::replay::replay;
use clqd::config::Config;
use clqd::engine::Outcome;
use clqd::fleet::{History, Settings, World, address};
use clqd::hot::Hot;
use clqd::model::ServerUrl;
use clqd::scanlog;

const START_MS: i64 = 1_763_942_400_000; // Monday 2025-11-24 00:00 UTC

fn main() -> anyhow::Result<()> {
    let number = |name: &str, or: u32| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (servers, hours) = (number("CLQD_SERVERS", 2_000), number("CLQD_HOURS", 24));
    let dir = tempfile::tempdir()?;
    let log = dir.path().join("scans.jsonl");
    let (lines, players) = generate(&log, servers, hours)?;
    let bytes = std::fs::metadata(&log)?.len();
    println!(
        "{servers} servers, {hours} h: {lines} snapshots, {:.1} players each, {} MB",
        players as f64 / lines as f64,
        bytes >> 20
    );

    let began = Instant::now();
    let read = scanlog::check(&log)?.lines;
    let floor = began.elapsed().as_secs_f64();
    println!("reading and parsing alone  {:>9.0} snapshots/s", read as f64 / floor);

    let config = Config::default();
    let mut hot = Hot::of_config(&config, &dir.path().join("state"), true)?;
    let began = Instant::now();
    let done = replay(&mut hot, &log)?;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "replay                     {:>9.0} snapshots/s, {:.1} times the floor; {} players known, {} MB resident at most",
        done.lines as f64 / seconds,
        seconds / floor,
        hot.engine.status().players_known,
        peak_kib()? >> 10
    );
    Ok(())
}

fn generate(path: &std::path::Path, servers: u32, hours: u32) -> anyhow::Result<(u64, u64)> {
    let mut world =
        World::new(Settings { servers, start_ms: START_MS, activity: 3.0, truth: false, ..Settings::default() });
    let urls: Vec<ServerUrl> = (0..servers)
        .map(|server| {
            ServerUrl::parse(&format!("{}://{}:27960", world.family(server).scheme(), address::address(server)))
        })
        .collect::<Result<_, _>>()?;
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let mut line = Vec::new();
    let (mut lines, mut players) = (0, 0);
    for (_, server, snapshot) in History::new(&mut world, START_MS, START_MS + i64::from(hours) * 3_600_000) {
        players += snapshot.players.len() as u64;
        lines += 1;
        line.clear();
        scanlog::write(&mut line, &urls[server as usize], &Outcome::Snapshot(snapshot));
        out.write_all(&line)?;
    }
    out.flush()?;
    Ok((lines, players))
}

/// Peak resident memory of this process, KiB (proc_pid_status(5)).
fn peak_kib() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.map_or(Ok(0), str::parse)?)
}
