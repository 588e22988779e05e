//! `clqd replay`: a scan log through the same engine as live scans.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};

use crate::config::Config;
use crate::engine::{Memory, Outcome};
use crate::hot::{Hot, LogFeed};
use crate::model::ServerUrl;
use crate::scanlog;
use crate::store::StoreError;

#[derive(Clone, Debug, clap::Args)]
pub struct ReplayArgs {
    /// Scan logs, plain or .zst; several are the parts of one, in any order
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// State directory; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// Memory to work in beside the store's cache, such as 800M or 12G [default: a third
    /// of the machine's]. What comes again before it is full is written once
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
}

/// Less is no help: a commit has to hold something.
const MEMORY_MIN: u64 = 64 << 20;

/// Where the machine does not tell how much it has.
const MEMORY_UNKNOWN: u64 = 1 << 30;

/// Reads a size in bytes: digits and K, M, G or T (powers of 1,024).
fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1 << 30),
        Some((at, 'T' | 't')) => (&text[..at], 1_u64 << 40),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| "expected digits and K, M, G or T, such as 800M".to_owned())?;
    let bytes = number.checked_mul(unit).ok_or_else(|| "more than there can be".to_owned())?;
    match bytes {
        MEMORY_MIN.. => Ok(bytes),
        _ => Err(format!("less than {}M is no help", MEMORY_MIN >> 20)),
    }
}

/// A third of what the machine has.
pub fn memory_of_machine() -> u64 {
    let all = nix::sys::sysinfo::sysinfo().map_or(3 * MEMORY_UNKNOWN, |info| info.ram_total());
    (all / 3).max(MEMORY_MIN)
}

/// What a replay did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub lines: u64,
    /// Older than what the state holds of the server, or of a closed week.
    pub passed_over: u64,
}

pub fn run(args: &ReplayArgs, config: &Config) -> anyhow::Result<ExitCode> {
    let logs = in_order_of_time(&args.logs)?;
    let mut hot = Hot::of_config(config, &args.state, true).context("cannot open the state directory")?;
    hot.store.notes().iter().for_each(|note| eprintln!("clqd: {note}"));
    let mut replay = Replay::new(&mut hot, args.memory.unwrap_or_else(memory_of_machine));
    for log in logs {
        let done = replay.take_log(log)?;
        eprintln!(
            "{}: {} lines, {} of them passed over (older than the state)",
            log.display(),
            done.lines,
            done.passed_over
        );
    }
    replay.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Checks all of every log first, so that of a malformed one nothing is applied,
/// and puts them in order: a recorder's files are given in any.
fn in_order_of_time(logs: &[PathBuf]) -> anyhow::Result<Vec<&Path>> {
    let mut spans = Vec::with_capacity(logs.len());
    for log in logs {
        spans.push((scanlog::check(log)?, log.as_path()));
    }
    spans.sort_by_key(|(span, _)| (span.first_ms, span.last_ms));
    for pair in spans.windows(2) {
        let [(before, before_path), (after, after_path)] = pair else { unreachable!("windows of two") };
        ensure!(
            after.first_ms >= before.last_ms,
            "{} begins before {} ends: they are not parts of one scan log",
            after_path.display(),
            before_path.display()
        );
    }
    Ok(spans.into_iter().map(|(_, log)| log).collect())
}

/// A replay under way. What was replayed before is passed over, so an interrupted
/// one is simply made again.
pub struct Replay<'h> {
    hot: &'h mut Hot,
    feed: LogFeed,
}

impl Replay<'_> {
    /// `memory`: bytes that it may take beside the store's cache.
    pub fn new(hot: &mut Hot, memory: u64) -> Replay<'_> {
        let feed = LogFeed::alone(&mut hot.engine, memory);
        Replay { hot, feed }
    }

    /// Takes all of a log, the next part of it where there are several.
    pub fn take_log(&mut self, log: &Path) -> anyhow::Result<Replayed> {
        let (scans, out_of_order) = (self.feed.scans(), self.hot.engine.counts().out_of_order);
        for line in scanlog::open(log)? {
            let (url, outcome) = line?;
            self.take(url, outcome)?;
        }
        let passed_over = self.hot.engine.counts().out_of_order - out_of_order;
        Ok(Replayed { lines: self.feed.scans() - scans, passed_over })
    }

    /// Takes the next line of a log.
    pub fn take(&mut self, url: ServerUrl, outcome: Outcome) -> Result<(), StoreError> {
        if self.feed.is_at_look() && outcome.t_ms() >= self.hot.engine.week_over_ms() {
            self.hot.settle(outcome.t_ms())?;
        }
        self.feed.take(self.hot, url, outcome)
    }

    /// Commits, and closes the weeks that are over. Nothing is remembered for more.
    pub fn finish(self) -> Result<(), StoreError> {
        self.hot.engine.remember(Memory { names_max: 0, player_windows_max: 0 });
        self.hot.settle(self.hot.engine.now_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("800M"), Ok(800 << 20));
        assert_eq!(size("12g"), Ok(12 << 30));
        assert_eq!(size("67108864"), Ok(MEMORY_MIN));
        for bad in ["", "M", "12 G", "-1G", "1.5G", "12GB", "63M", "99999999999T"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert!(memory_of_machine() >= MEMORY_MIN);
    }
}
