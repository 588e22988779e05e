//! `clqd replay`: applies recorded events to a state directory with the daemon's engine.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};

use crate::cli::offline::warn;
use crate::cli::recorded_logs::RecordedLogs;
use crate::cli::stdio::note;
use crate::config::Config;
use crate::engine::CacheLimits;
use crate::log::{LogEvent, RecordedSettings};
use crate::state::recovery;
use crate::state::{ReplayFeed, State};
use crate::store::{self, StoreError};

#[derive(Clone, Debug, clap::Args)]
pub struct ReplayArgs {
    /// A state directory with a log, or scan logs, plain or .zst; several files of one scan log, in any order
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// State directory; created if missing
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// Memory for uncommitted changes, besides the store cache, such as 800M or 12G
    /// [default: a third of the machine's]. More memory means fewer commits
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Skip damaged lines of scan logs and report them, instead of refusing the logs
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

/// Counts of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplaySummary {
    /// All readable scans, including the skipped ones.
    pub scans: u64,
    /// Skipped scans: not newer than the last scan of the server, or in a week that is being
    /// closed or is closed.
    pub skipped: u64,
    /// Commands of admins that were applied.
    pub commands: u64,
    /// Commands that changed nothing: the state already contains their effect, or they name
    /// something unknown.
    pub commands_skipped: u64,
}

impl ReplaySummary {
    fn since(self, before: ReplaySummary) -> ReplaySummary {
        ReplaySummary {
            scans: self.scans - before.scans,
            skipped: self.skipped - before.skipped,
            commands: self.commands - before.commands,
            commands_skipped: self.commands_skipped - before.commands_skipped,
        }
    }
}

pub fn run(args: &ReplayArgs, config: &Config) -> anyhow::Result<ExitCode> {
    let replayed = replay(args, config);
    store::keep_owner(&args.state)?;
    replayed.map(|()| ExitCode::SUCCESS)
}

fn replay(args: &ReplayArgs, config: &Config) -> anyhow::Result<()> {
    ensure!(
        !config.cluster.is_on() || args.state != config.state_dir,
        "{} is the state of an engine of a cluster, which changes by the log of the cluster only: name another directory",
        args.state.display()
    );
    let logs = RecordedLogs::open(&args.logs, args.salvage)?;
    // The time zone cannot change later.
    let config = match logs.first()? {
        Some(LogEvent::Settings { settings, .. }) => {
            let obeyed = obey(config, &settings)?;
            if obeyed.time_zone != config.time_zone {
                note(format_args!("the time zone of the log applies: {}", obeyed.time_zone));
            }
            &Config { time_zone: obeyed.time_zone, ..config.clone() }
        }
        _ => config,
    };
    let mut state =
        recovery::open_without_log(config, &args.state, &warn).context("cannot open the state directory")?;
    let memory = args.memory.unwrap_or_else(default_memory_bytes);
    let mut replay = Replay::new(&mut state, memory).with_config(config.clone());
    let (mut applied, mut read) = (Ok(()), Ok(()));
    for log in logs.parts() {
        let before = replay.summary();
        read = log.each_event(&mut |event| {
            applied = replay.apply(event);
            ensure!(applied.is_ok(), "not applied");
            Ok(())
        });
        // Half of an event must not be kept.
        std::mem::replace(&mut applied, Ok(()))?;
        let (done, path) = (replay.summary().since(before), log.path().display());
        note(format_args!("{path}: {} scans, {} of them skipped (older than the state)", done.scans, done.skipped));
        if done.commands + done.commands_skipped > 0 {
            note(format_args!(
                "{path}: {} commands of admins, and {} skipped (the state contains them, or what they name is not known)",
                done.commands, done.commands_skipped
            ));
        }
        if read.is_err() {
            break;
        }
    }
    // Also what comes before damage.
    replay.finish()?;
    state.store.merge_files()?;
    read
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
        state.engine.leave_all_to_first_archive();
        let feed = ReplayFeed::exclusive(&mut state.engine, memory);
        Replay { state, feed, config: None }
    }

    /// Applies the settings of the log. `config`: the settings that apply until the log has others.
    pub fn with_config(self, config: Config) -> Self {
        Replay { config: Some(config), ..self }
    }

    /// Counts since the beginning.
    pub fn summary(&self) -> ReplaySummary {
        ReplaySummary {
            scans: self.feed.scans(),
            skipped: self.state.engine.model().counts().out_of_order,
            commands: self.feed.commands(),
            commands_skipped: self.feed.commands_skipped(),
        }
    }

    /// Applies the next event of a log. Periodically closes the weeks that have ended before it.
    pub fn apply(&mut self, event: LogEvent) -> anyhow::Result<()> {
        let t_ms = event.t_ms();
        while let Some(forgotten_ms) = self.feed.next_forgotten_ms().filter(|&it| it < t_ms) {
            self.forget_until(forgotten_ms)?;
        }
        let is_scan = matches!(event, LogEvent::Scan { .. });
        // The result of a command depends on which weeks are closed.
        if (!is_scan || self.feed.is_at_check()) && t_ms >= self.state.engine.model().next_close_ms() {
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
        if forgotten_ms >= self.state.engine.model().next_close_ms() {
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
        self.state.engine.set_cache_limits(CacheLimits::NONE);
        self.state.close_due_weeks(self.state.engine.model().now_ms())
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
}
