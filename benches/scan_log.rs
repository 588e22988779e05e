//! Measures the parser of scan log lines: `cargo bench --bench scan_log`.
//!
//! The fast path (`src/scan_log/fast_path.rs`) parses the lines that the recorder writes, and
//! serde_json all others. It is worth its code only while it is at least twice as fast as the
//! fastest general parser. This bench compares them on the same lines of a simulated fleet:
//! with a space after the first brace a line is not for the fast path, and serde_json and the
//! same validation do the same work. *Checking* drops the players, *parsing* builds the
//! snapshot. The last rows are serde_json alone, with all texts borrowed and nothing
//! validated: what another general parser would have to beat.
//!
//! `CLQD_SERVERS` (500) and `CLQD_HOURS` (6) set the number of lines. Times are CPU times of
//! this thread, the best of seven rounds.

mod measure;
#[path = "measure/simulated_scans.rs"]
mod simulated_scans;

use std::borrow::Cow;
use std::hint::black_box;

use clqd::scan_log;
use measure::on_core;
use serde::Deserialize;
use simulated_scans::simulated_scans;

const ROUNDS: usize = 7;

fn main() -> anyhow::Result<()> {
    let number = |name: &str, or: u32| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let lines = generate(number("CLQD_SERVERS", 500), number("CLQD_HOURS", 6))?;
    let bytes: usize = lines.iter().map(String::len).sum();
    println!("{} lines of {:.0} bytes on average", lines.len(), bytes as f64 / lines.len() as f64);

    // The fast path does not accept white space.
    let spaced: Vec<String> = lines.iter().map(|line| line.replacen('{', "{ ", 1)).collect();
    let names = [
        "checking, fast path",
        "checking, serde_json",
        "parsing, fast path",
        "parsing, serde_json",
        "serde_json alone, players dropped",
        "serde_json alone",
    ];
    let mut best = [f64::INFINITY; 6];
    for _ in 0..ROUNDS {
        let round = [
            timed(&lines, |line| scan_log::check_line(line).is_ok())?,
            timed(&spaced, |line| scan_log::check_line(line).is_ok())?,
            timed(&lines, |line| scan_log::parse(line).map(black_box).is_ok())?,
            timed(&spaced, |line| scan_log::parse(line).map(black_box).is_ok())?,
            timed(&lines, |line| serde_json::from_str::<Line<IgnoredPlayer>>(line).map(black_box).is_ok())?,
            timed(&lines, |line| serde_json::from_str::<Line<Player>>(line).map(black_box).is_ok())?,
        ];
        best = std::array::from_fn(|i| round[i].min(best[i]));
    }
    for (name, seconds) in names.iter().zip(best) {
        let count = lines.len() as f64;
        println!("{name:<34} {:>10.0} lines/s {:>6.0} ns a line", count / seconds, seconds * 1e9 / count);
    }
    println!("serde_json takes {:.1} times as long to check, {:.1} to parse", best[1] / best[0], best[3] / best[2]);
    Ok(())
}

/// CPU seconds for all lines. Panics if one cannot be parsed.
fn timed(lines: &[String], parse: impl Fn(&str) -> bool) -> anyhow::Result<f64> {
    let began = on_core()?;
    for line in lines {
        assert!(parse(line), "{line}");
    }
    Ok((on_core()? - began).as_secs_f64())
}

/// Snapshots of a fleet, as the recorder writes them, without the line feed.
fn generate(servers: u32, hours: u32) -> anyhow::Result<Vec<String>> {
    let line = |(url, outcome)| {
        let mut line = Vec::new();
        scan_log::write(&mut line, &url, &outcome);
        line.pop();
        Ok(String::from_utf8(line)?)
    };
    simulated_scans(servers, hours)?.into_iter().map(line).collect()
}

/// The fields of a line, borrowed where JSON allows it.
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsed and not read")]
struct Line<'a, P> {
    t: i64,
    #[serde(borrow)]
    server: Text<'a>,
    #[serde(default)]
    miss: bool,
    #[serde(borrow, default)]
    reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    game: Option<Text<'a>>,
    #[serde(borrow, default)]
    map: Option<Text<'a>>,
    #[serde(borrow, default)]
    hostname: Option<Text<'a>>,
    slots: Option<u32>,
    #[serde(default)]
    partial: bool,
    count: Option<u32>,
    bots: Option<u32>,
    players: Option<Vec<P>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "parsed and not read")]
struct Player<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    points: Option<i64>,
    ping: Option<i64>,
    connected_ms: Option<u64>,
    bot: bool,
    #[serde(default)]
    spectator: bool,
}

/// A text that is borrowed unless it has escapes. serde borrows a `Cow` only inside such a
/// type.
#[derive(Deserialize)]
#[serde(transparent)]
#[expect(dead_code, reason = "parsed and not read")]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A player whose fields are parsed and dropped.
struct IgnoredPlayer;

impl<'de> Deserialize<'de> for IgnoredPlayer {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Player::deserialize(deserializer).map(|_| IgnoredPlayer)
    }
}
