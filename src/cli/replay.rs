//! `clqd replay`: a scan log through the same engine as live scans.
//!
//! All logs are checked before anything of them is applied. An incomplete end of the
//! last one, as a crash or a power cut leaves it, is dropped with a warning; other
//! damage is refused unless `--salvage` is given.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};

use crate::config::Config;
use crate::engine::{CacheLimits, Outcome};
use crate::model::ServerUrl;
use crate::scan_log::{
    Damage, LogSummary, {self},
};
use crate::state::{ReplayFeed, State};
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
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Skip damaged lines and report them, instead of refusing the logs
    #[arg(long)]
    pub salvage: bool,
}

/// Less is no help: a commit has to hold something.
const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// Where the machine does not tell how much it has.
const MEMORY_BYTES_FALLBACK: u64 = 1 << 30;

/// Reads a size in bytes: digits and K, M, G or T (powers of 1,024).
fn parse_size(text: &str) -> Result<u64, String> {
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
        MEMORY_BYTES_MIN.. => Ok(bytes),
        _ => Err(format!("less than {}M is no help", MEMORY_BYTES_MIN >> 20)),
    }
}

/// A third of what the machine has.
pub fn default_memory_bytes() -> u64 {
    let all = nix::sys::sysinfo::sysinfo().map_or(3 * MEMORY_BYTES_FALLBACK, |info| info.ram_total());
    (all / 3).max(MEMORY_BYTES_MIN)
}

/// What a replay did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    pub lines: u64,
    /// Older than what the state holds of the server, or of a closed week.
    pub passed_over: u64,
}

pub fn run(args: &ReplayArgs, config: &Config) -> anyhow::Result<ExitCode> {
    let checked = check_and_sort_logs(&args.logs)?;
    report_damage(&checked, args.salvage)?;
    let mut state = State::of_config(config, &args.state, true).context("cannot open the state directory")?;
    state.store.warnings().iter().for_each(|note| eprintln!("clqd: {note}"));
    let mut replay = Replay::new(&mut state, args.memory.unwrap_or_else(default_memory_bytes));
    for CheckedLog { path, span, .. } in checked {
        let done = replay.apply_lines(path, span.lines)?;
        eprintln!(
            "{}: {} lines, {} of them passed over (older than the state)",
            path.display(),
            done.lines,
            done.passed_over
        );
    }
    replay.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// A log that was read once.
struct CheckedLog<'p> {
    path: &'p Path,
    span: LogSummary,
    damage: Damage,
}

/// Checks all of every log, so that of a malformed one nothing is applied, and puts
/// them in order: a recorder's files are given in any.
fn check_and_sort_logs(logs: &[PathBuf]) -> anyhow::Result<Vec<CheckedLog<'_>>> {
    let logs = select_files(logs)?;
    let mut checked = Vec::with_capacity(logs.len());
    for path in logs {
        let (span, damage) = scan_log::check(path)?;
        if let (0, Some(first)) = (span.lines, damage.stretches.first()) {
            bail!("{} is not a scan log: {first}", path.display());
        }
        checked.push(CheckedLog { path, span, damage });
    }
    checked.sort_by_key(|log| (log.span.first_ms, log.span.last_ms));
    for pair in checked.windows(2) {
        let [before, after] = pair else { unreachable!("windows of two") };
        ensure!(
            after.span.first_ms >= before.span.last_ms,
            "{} begins before {} ends: they are not parts of one scan log",
            after.path.display(),
            before.path.display()
        );
    }
    Ok(checked)
}

/// The files that are read, of those that were given. Leaves out what a recorder that
/// was killed had not finished and has elsewhere.
fn select_files(logs: &[PathBuf]) -> anyhow::Result<Vec<&Path>> {
    let mut files: HashMap<(u64, u64), &Path> = HashMap::new();
    let mut read = Vec::with_capacity(logs.len());
    for path in logs {
        let found = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(found.is_file(), "{} is not a file; a scan log is read twice", path.display());
        match files.insert((found.dev(), found.ino()), path) {
            Some(before) if before == path => bail!("{} is given twice", path.display()),
            Some(before) => bail!("{} and {} are the same file", before.display(), path.display()),
            None => {}
        }
        match scan_log::complete_copy(path) {
            Some(whole) => eprintln!("{}: left out; {} has all of it", path.display(), whole.display()),
            None => read.push(path.as_path()),
        }
    }
    Ok(read)
}

/// Prints what is skipped of the logs. Error: it is more than the incomplete end of
/// the last one, and not to be salvaged.
fn report_damage(logs: &[CheckedLog<'_>], salvage: bool) -> anyhow::Result<()> {
    let last = logs.iter().rposition(|log| log.span.lines > 0 || log.damage.cut.is_some());
    for (index, log) in logs.iter().enumerate() {
        let Damage { stretches, places, lines, bytes, cut, .. } = &log.damage;
        if let (Some(first), false) = (stretches.first(), salvage) {
            let all = format!("{lines} damaged lines, {bytes} bytes, in {places} places");
            bail!("{first}. In all {all}; --salvage skips them and replays the others");
        }
        if let (Some(cut), Some(next), false) = (cut, logs.get(index + 1), salvage || Some(index) == last) {
            let next = next.path.display();
            bail!("{cut}, and {next} goes on behind it; --salvage replays what is there");
        }
        for sentence in log.damage.messages() {
            eprintln!("clqd: warning: {sentence}");
        }
    }
    Ok(())
}

/// A replay under way. What was replayed before is passed over, so an interrupted
/// one is simply made again.
pub struct Replay<'h> {
    state: &'h mut State,
    feed: ReplayFeed,
}

impl Replay<'_> {
    /// `memory`: bytes that it may take beside the store's cache.
    pub fn new(state: &mut State, memory: u64) -> Replay<'_> {
        let feed = ReplayFeed::alone(&mut state.engine, memory);
        Replay { state, feed }
    }

    /// Takes all of a log, the next part of it where there are several. Lines that
    /// cannot be read are skipped; [`scan_log::check`] tells which.
    pub fn apply_log(&mut self, log: &Path) -> anyhow::Result<ReplaySummary> {
        self.apply_lines(log, u64::MAX)
    }

    /// The same of the first lines of a log, which a daemon may still be writing to.
    fn apply_lines(&mut self, log: &Path, lines: u64) -> anyhow::Result<ReplaySummary> {
        let (scans, out_of_order) = (self.feed.scans(), self.state.engine.counts().out_of_order);
        for line in scan_log::open(log)?.salvage().take(usize::try_from(lines).unwrap_or(usize::MAX)) {
            let (url, outcome) = line?;
            self.apply(url, outcome)?;
        }
        let passed_over = self.state.engine.counts().out_of_order - out_of_order;
        Ok(ReplaySummary { lines: self.feed.scans() - scans, passed_over })
    }

    /// Takes the next line of a log.
    pub fn apply(&mut self, url: ServerUrl, outcome: Outcome) -> Result<(), StoreError> {
        if self.feed.is_at_look() && outcome.t_ms() >= self.state.engine.next_close_ms() {
            self.state.settle(outcome.t_ms())?;
        }
        self.feed.take(self.state, url, outcome)
    }

    /// Commits, and closes the weeks that are over. Nothing is remembered for more.
    pub fn finish(self) -> Result<(), StoreError> {
        self.state.engine.set_cache_limits(CacheLimits { names_max: 0, player_windows_max: 0 });
        self.state.settle(self.state.engine.now_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_size_parses_with_unit() {
        assert_eq!(parse_size("800M"), Ok(800 << 20));
        assert_eq!(parse_size("12g"), Ok(12 << 30));
        assert_eq!(parse_size("67108864"), Ok(MEMORY_BYTES_MIN));
        for bad in ["", "M", "12 G", "-1G", "1.5G", "12GB", "63M", "99999999999T"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert!(default_memory_bytes() >= MEMORY_BYTES_MIN);
    }
}
