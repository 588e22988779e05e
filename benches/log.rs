//! Measures the code of the log (`src/log/`): `cargo bench --bench log`.
//!
//! It encodes the scans of a simulated fleet as the daemon writes them, in segments of one hour,
//! and decodes them as a replay does. The lines of a JSON scan log with the same scans are
//! measured beside it. Nothing is written to disk. Times are CPU times of this thread, the best
//! of five rounds.
//!
//! `CLQD_SERVERS` (500) and `CLQD_HOURS` (6) set the number of scans.

mod measure;
#[path = "measure/simulated_scans.rs"]
mod simulated_scans;

use std::hint::black_box;

use clqd::engine::Outcome;
use clqd::log::{Decoder, Encoder, LogEvent};
use clqd::model::ServerUrl;
use clqd::scan_log;
use measure::on_core;
use simulated_scans::simulated_scans;

const SEGMENT_MS: i64 = 3_600_000;
const BATCH_MS: i64 = 200;
const ROUNDS: usize = 5;

fn main() -> anyhow::Result<()> {
    let number = |name: &str, or: u32| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let scans = simulated_scans(number("CLQD_SERVERS", 500), number("CLQD_HOURS", 6))?;
    let players: usize = scans.iter().map(|(_, outcome)| players_in(outcome)).sum();
    println!("{} scans of {:.1} players on average", scans.len(), players as f64 / scans.len() as f64);
    let mut best = [f64::INFINITY; 4];
    let (mut bytes, mut json_bytes) = (0, 0);
    for _ in 0..ROUNDS {
        let began = on_core()?;
        let segments = encode(&scans);
        let encoded = on_core()?;
        let mut decoded = 0;
        for batches in &segments {
            let mut decoder = Decoder::default();
            for batch in batches {
                decoder.decode(batch, |event| decoded += players_in_event(&black_box(event)))?;
            }
        }
        let read = on_core()?;
        assert_eq!(decoded, players);
        bytes = segments.iter().flatten().map(Vec::len).sum::<usize>();
        let mut json = Vec::new();
        scans.iter().for_each(|(url, outcome)| scan_log::write(&mut json, url, outcome));
        let written = on_core()?;
        json_bytes = json.len();
        let text = std::str::from_utf8(&json)?;
        for line in text.lines() {
            black_box(scan_log::parse(line).map_err(|error| anyhow::anyhow!("{line}: {error}"))?);
        }
        let times = [encoded - began, read - encoded, written - read, on_core()? - written];
        best = std::array::from_fn(|i| times[i].as_secs_f64().min(best[i]));
    }
    let each = |total: f64| total / scans.len() as f64;
    for (name, bytes, [write, read]) in [("log", bytes, [best[0], best[1]]), ("JSON", json_bytes, [best[2], best[3]])] {
        println!(
            "{name:<5} {:>6.1} bytes, {:>5.0} ns to write, {:>5.0} ns to read a scan",
            each(bytes as f64),
            each(write * 1e9),
            each(read * 1e9)
        );
    }
    Ok(())
}

fn players_in_event(event: &LogEvent) -> usize {
    if let LogEvent::Scan { outcome, .. } = event { players_in(outcome) } else { 0 }
}

fn players_in(outcome: &Outcome) -> usize {
    match outcome {
        Outcome::Snapshot(snapshot) => snapshot.players.len(),
        Outcome::Miss { .. } => 0,
    }
}

/// The bodies of batches, by segment.
fn encode(scans: &[(ServerUrl, Outcome)]) -> Vec<Vec<Vec<u8>>> {
    let by = |ms: i64| move |a: &(ServerUrl, Outcome), b: &(ServerUrl, Outcome)| a.1.t_ms() / ms == b.1.t_ms() / ms;
    let segment = |scans: &[(ServerUrl, Outcome)]| {
        let mut encoder = Encoder::default();
        let batch = |scans: &[(ServerUrl, Outcome)]| {
            let mut body = Vec::new();
            scans.iter().for_each(|(url, outcome)| encoder.encode_scan(url, outcome, &mut body));
            body
        };
        scans.chunk_by(by(BATCH_MS)).map(batch).collect()
    };
    scans.chunk_by(by(SEGMENT_MS)).map(segment).collect()
}
