//! `clqd replay`: applies scan logs to a state directory with the daemon's engine.
//!
//! All logs are checked before anything is applied. A crash or a power cut can leave the end of the
//! last log incomplete. The incomplete part is skipped with a warning. Logs with other damage are
//! refused, unless `--salvage` is given.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::Seek;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};

use crate::cli::stdio::note;
use crate::config::Config;
use crate::engine::CacheLimits;
use crate::log::{LogEvent, RecordedSettings};
use crate::scan_log::{self, Damage, LogError, LogSummary, LossyReader};
use crate::state::recovery;
use crate::state::{ReplayFeed, State};
use crate::store::StoreError;

#[derive(Clone, Debug, clap::Args)]
pub struct ReplayArgs {
    /// Scan logs, plain or .zst; several files of one log, in any order
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// State directory; created if missing
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// Memory for uncommitted changes, besides the store cache, such as 800M or 12G
    /// [default: a third of the machine's]. More memory means fewer commits
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Skip damaged lines and report them, instead of refusing the logs
    #[arg(long)]
    pub salvage: bool,
}

/// Minimum of `--memory`. With less memory, a replay commits too often.
const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// Default of `--memory` if the size of the machine's memory is unknown.
const MEMORY_BYTES_FALLBACK: u64 = 1 << 30;

/// Parses a size into bytes: digits, and optionally K, M, G or T (powers of 1,024). Error: the
/// size is less than `MEMORY_BYTES_MIN`.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        Some((at, 'G' | 'g')) => (&text[..at], 1 << 30),
        Some((at, 'T' | 't')) => (&text[..at], 1_u64 << 40),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| "expected digits and K, M, G or T, such as 800M".to_owned())?;
    let bytes = number.checked_mul(unit).ok_or_else(|| "too large".to_owned())?;
    match bytes {
        MEMORY_BYTES_MIN.. => Ok(bytes),
        _ => Err(format!("expected at least {}M", MEMORY_BYTES_MIN >> 20)),
    }
}

/// Default of `--memory`: a third of the machine's memory, but at least `MEMORY_BYTES_MIN`.
pub fn default_memory_bytes() -> u64 {
    let all = nix::sys::sysinfo::sysinfo().map_or(3 * MEMORY_BYTES_FALLBACK, |info| info.ram_total());
    (all / 3).max(MEMORY_BYTES_MIN)
}

/// Counts of one log file that was replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    /// All readable lines with scans, including the skipped ones.
    pub lines: u64,
    /// Skipped lines: not newer than the last scan of the server, or in a week that is being
    /// closed or is closed.
    pub skipped: u64,
    /// Commands of admins that were applied.
    pub commands: u64,
    /// Commands that changed nothing: the state already contains their effect, or they name
    /// something unknown.
    pub commands_skipped: u64,
}

pub fn run(args: &ReplayArgs, config: &Config) -> anyhow::Result<ExitCode> {
    let checked = CheckedLogs::check(&args.logs, args.salvage)?;
    // The time zone cannot change later.
    let config = match checked.first()? {
        Some(LogEvent::Settings { settings, .. }) => {
            let obeyed = obey(config, &settings)?;
            if obeyed.time_zone != config.time_zone {
                note(format_args!("the time zone of the log applies: {}", obeyed.time_zone));
            }
            &Config { time_zone: obeyed.time_zone, ..config.clone() }
        }
        _ => config,
    };
    let mut state = recovery::open_without_log(config, &args.state).context("cannot open the state directory")?;
    let memory = args.memory.unwrap_or_else(default_memory_bytes);
    let mut replay = Replay::new(&mut state, memory).with_config(config.clone());
    for log in &checked.0 {
        let (done, path) = (replay.apply_events(log.events()?)?, &log.path);
        note(format_args!(
            "{}: {} lines, {} of them skipped (older than the state)",
            path.display(),
            done.lines,
            done.skipped
        ));
        if done.commands + done.commands_skipped > 0 {
            note(format_args!(
                "{}: {} commands of admins, and {} skipped (the state contains them, or what they name is not known)",
                path.display(),
                done.commands,
                done.commands_skipped
            ));
        }
    }
    replay.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// A log file and the result of its check.
struct CheckedLog {
    path: PathBuf,
    /// The file itself: a daemon that rotates its log renames the files and deletes one.
    file: File,
    span: LogSummary,
    damage: Damage,
}

impl CheckedLog {
    /// The readable lines that were checked. A daemon may have appended others since the check.
    fn events(&self) -> Result<impl Iterator<Item = Result<LogEvent, LogError>> + use<>, LogError> {
        let failed = |source| LogError::Io { path: self.path.clone(), source };
        let mut file = self.file.try_clone().map_err(failed)?;
        file.rewind().map_err(failed)?;
        let lines = LossyReader::new(scan_log::from_file(&self.path, file)?);
        Ok(lines.take(usize::try_from(self.span.lines).unwrap_or(usize::MAX)))
    }
}

/// The checked files of a scan log, in order of time.
pub struct CheckedLogs(Vec<CheckedLog>);

impl CheckedLogs {
    /// Checks all files completely. Prints a warning for damage that is skipped. Error: a file is not a
    /// scan log, two files are not of one log, or there is damage that is not skipped without `salvage`.
    pub fn check(files: &[PathBuf], salvage: bool) -> anyhow::Result<CheckedLogs> {
        let checked = check_and_sort_logs(files)?;
        report_damage(&checked, salvage)?;
        Ok(CheckedLogs(checked))
    }

    /// The first readable line.
    fn first(&self) -> Result<Option<LogEvent>, LogError> {
        let first = self.0.iter().find(|log| log.span.lines > 0);
        first.map(CheckedLog::events).transpose()?.and_then(|mut events| events.next()).transpose()
    }

    /// Passes on all readable lines of all files.
    pub fn each_event(&self, mut each: impl FnMut(LogEvent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for log in &self.0 {
            log.events()?.try_for_each(|event| each(event?))?;
        }
        Ok(())
    }
}

/// Checks all logs completely and sorts them by time. Error: a file is not a scan log, or the
/// times of two files overlap.
fn check_and_sort_logs(logs: &[PathBuf]) -> anyhow::Result<Vec<CheckedLog>> {
    let logs = select_files(logs)?;
    let mut checked = Vec::with_capacity(logs.len());
    for path in logs {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let (span, damage) = scan_log::check(path)?;
        let is_same = identity(&file.metadata()?) == identity(&fs::metadata(path)?);
        ensure!(is_same, "{} was renamed or replaced while it was checked: run the command again", path.display());
        if let (0, Some(first)) = (span.lines, damage.ranges.first()) {
            bail!("{} is not a scan log: {first}", path.display());
        }
        checked.push(CheckedLog { path: path.to_owned(), file, span, damage });
    }
    // Files of one log have numbers. Their times do not show the order after recorded time was set back.
    let places: Vec<_> = checked.iter().map(|log| scan_log::place_in_log(&log.path)).collect();
    match places.iter().all(|(log, _)| *log == places[0].0) {
        true => checked.sort_by_key(|log| scan_log::place_in_log(&log.path).1),
        false => checked.sort_by_key(|log| (log.span.first_ms, log.span.last_ms)),
    }
    for pair in checked.windows(2) {
        let [earlier, later] = pair else { unreachable!("windows of two") };
        ensure!(
            later.span.first_ms >= earlier.span.last_ms || later.span.begins_with_clock,
            "{} begins before {} ends: they are not files of one scan log",
            later.path.display(),
            earlier.path.display()
        );
    }
    Ok(checked)
}

/// Selects the files to read. A recorder that is killed while it compresses a file can leave a
/// second copy of that file: only the complete one is read. Error: a file is given twice, or is
/// not a regular file.
fn select_files(logs: &[PathBuf]) -> anyhow::Result<Vec<&Path>> {
    let mut files: HashMap<(u64, u64), &Path> = HashMap::new();
    let mut read = Vec::with_capacity(logs.len());
    for path in logs {
        let found = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(found.is_file(), "{} is not a file; a scan log is read twice", path.display());
        match files.insert(identity(&found), path) {
            Some(other) if other == path => bail!("{} is given twice", path.display()),
            Some(other) => bail!("{} and {} are the same file", other.display(), path.display()),
            None => {}
        }
        match scan_log::complete_copy(path) {
            Some(whole) => note(format_args!("{}: skipped; {} contains all of it", path.display(), whole.display())),
            None => read.push(path.as_path()),
        }
    }
    Ok(read)
}

/// Device and inode number.
fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Prints a warning for all damage that will be skipped. Error: `--salvage` is not given, and
/// there is damage other than an incomplete end of the last log.
fn report_damage(logs: &[CheckedLog], salvage: bool) -> anyhow::Result<()> {
    // Empty files may follow the last log.
    let last = logs.iter().rposition(|log| log.span.lines > 0 || log.damage.truncation.is_some());
    for (index, log) in logs.iter().enumerate() {
        let Damage { ranges, range_count, lines, bytes, truncation, .. } = &log.damage;
        if let (Some(first), false) = (ranges.first(), salvage) {
            let noun = if *range_count == 1 { "range" } else { "ranges" };
            let all = format!("{lines} damaged lines, {bytes} bytes, in {range_count} {noun}");
            bail!("{first}. In all {all}; --salvage skips them and replays the others");
        }
        if let (Some(truncation), Some(next), false) = (truncation, logs.get(index + 1), salvage || Some(index) == last)
        {
            let next = next.path.display();
            bail!("{truncation}, and {next} continues after it; use --salvage to replay the readable part");
        }
        for sentence in log.damage.messages() {
            note(format_args!("clqd: warning: {sentence}"));
        }
    }
    Ok(())
}

/// A running replay. It skips scans that the state already contains, so an interrupted replay
/// can be repeated.
pub struct Replay<'h> {
    state: &'h mut State,
    feed: ReplayFeed,
    /// The settings in effect; `None`: settings of the log are ignored.
    config: Option<Config>,
}

/// The config with the settings of a log. Error: they are not valid.
pub(super) fn obey(config: &Config, settings: &RecordedSettings) -> anyhow::Result<Config> {
    config.with_settings(settings).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the log has settings that are not valid: {}", problems.join("; "))
    })
}

impl Replay<'_> {
    /// `memory`: bytes for uncommitted changes and the engine's caches, besides the store's cache.
    pub fn new(state: &mut State, memory: u64) -> Replay<'_> {
        let feed = ReplayFeed::exclusive(&mut state.engine, memory);
        Replay { state, feed, config: None }
    }

    /// Applies the settings of the log. `config`: the settings that apply until the log has others.
    pub fn with_config(self, config: Config) -> Self {
        Replay { config: Some(config), ..self }
    }

    /// Applies all lines of a log file. The files of one log are applied in order of time.
    /// Unreadable lines are skipped; [`scan_log::check`] reports them.
    pub fn apply_log(&mut self, log: &Path) -> anyhow::Result<ReplaySummary> {
        self.apply_events(LossyReader::new(scan_log::open(log)?))
    }

    fn apply_events(
        &mut self,
        events: impl Iterator<Item = Result<LogEvent, LogError>>,
    ) -> anyhow::Result<ReplaySummary> {
        let (scans_before, out_of_order_before) = (self.feed.scans(), self.state.engine.counts().out_of_order);
        let (commands_before, skipped_before) = (self.feed.commands(), self.feed.commands_skipped());
        for event in events {
            self.apply(event?)?;
        }
        Ok(ReplaySummary {
            lines: self.feed.scans() - scans_before,
            skipped: self.state.engine.counts().out_of_order - out_of_order_before,
            commands: self.feed.commands() - commands_before,
            commands_skipped: self.feed.commands_skipped() - skipped_before,
        })
    }

    /// Applies the next line of a log. Periodically closes the weeks that have ended before it.
    pub fn apply(&mut self, event: LogEvent) -> anyhow::Result<()> {
        let t_ms = event.t_ms();
        while let Some(forgotten_ms) = self.feed.next_forgotten_ms().filter(|&it| it < t_ms) {
            self.forget_until(forgotten_ms)?;
        }
        let is_scan = matches!(event, LogEvent::Scan { .. });
        // The result of a command depends on which weeks are closed.
        if (!is_scan || self.feed.is_at_check()) && t_ms >= self.state.engine.next_close_ms() {
            self.state.close_due_weeks(t_ms)?;
        }
        match event {
            LogEvent::Settings { settings, .. } => self.apply_settings(&settings),
            event => Ok(self.feed.observe(self.state, event)?),
        }
    }

    /// From here on the settings of the log apply. Windows other than weeks are still those of the
    /// config.
    fn apply_settings(&mut self, settings: &RecordedSettings) -> anyhow::Result<()> {
        let Some(config) = &self.config else { return Ok(()) };
        let obeyed = obey(config, settings)?;
        ensure!(
            obeyed.time_zone == config.time_zone,
            "the log goes on in the time zone {}, and the state is in {}: replay this part of the log into another state",
            obeyed.time_zone,
            config.time_zone
        );
        if obeyed != *config {
            let changed = obeyed.result_settings().changed_since(&config.result_settings());
            let changed: Vec<String> = changed.0.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            note(format_args!("from here on the settings of the log apply: {}", changed.join(", ")));
            self.state.commit()?;
            self.state.engine.reload(obeyed.engine_settings()?);
        }
        self.config = Some(obeyed);
        Ok(())
    }

    /// Forgets placeholders of forgotten players. Weeks that ended before the request are closed
    /// with them, as the daemon closed them with the player.
    fn forget_until(&mut self, forgotten_ms: i64) -> Result<(), StoreError> {
        if forgotten_ms >= self.state.engine.next_close_ms() {
            self.state.close_due_weeks(forgotten_ms)?;
        }
        self.feed.forget_until(self.state, forgotten_ms)
    }

    /// Forgets the remaining placeholders, commits, and closes the weeks that have ended.
    pub fn finish(mut self) -> Result<(), StoreError> {
        while let Some(forgotten_ms) = self.feed.next_forgotten_ms() {
            self.forget_until(forgotten_ms)?;
        }
        // No scan follows: the next commit empties the caches.
        self.state.engine.set_cache_limits(CacheLimits { names_max: 0, player_windows_max: 0 });
        self.state.close_due_weeks(self.state.engine.now_ms())
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
        for invalid in ["", "M", "12 G", "-1G", "1.5G", "12GB", "63M", "99999999999T"] {
            assert!(parse_size(invalid).is_err(), "{invalid}");
        }
        assert!(default_memory_bytes() >= MEMORY_BYTES_MIN);
    }

    #[test]
    fn checked_lines_are_read_after_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("scan.jsonl");
        let miss = |t_ms: i64| format!("{{\"t\":{t_ms},\"server\":\"quake3://10.0.0.1:27960\",\"miss\":true}}\n");
        fs::write(&log, miss(1) + &miss(2)).unwrap();
        let checked = CheckedLogs::check(std::slice::from_ref(&log), false).unwrap();
        fs::rename(&log, scan_log::rotated_file(&log)).unwrap();
        fs::write(&log, miss(3)).unwrap();
        for _ in 0..2 {
            let mut times = Vec::new();
            let note = |event: LogEvent| {
                times.push(event.t_ms());
                Ok(())
            };
            checked.each_event(note).unwrap();
            assert_eq!(times, [1, 2]);
        }
    }
}
