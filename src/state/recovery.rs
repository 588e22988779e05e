//! Opens a state directory and applies the events of the log that it does not contain.

use std::path::{Path, PathBuf};

use super::{State, StateError};
use crate::config::Config;
use crate::log::{LogError, LogEvent, LogReader, RecordedSettings, segments};
use crate::store::{self, BackupSummary, Store, StoreError, StoreSettings};

/// Events between two commits to memory.
const EVENTS_PER_COMMIT: u64 = 1_000;

/// Events between two messages about progress: some seconds.
const EVENTS_PER_MESSAGE: u64 = 200_000;

/// The directory of the log in a state directory.
pub fn log_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("log")
}

#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("the log has settings that are not valid: {0}")]
    Settings(String),
    #[error(
        "{} has a log, but the state beside it is empty: it was lost or replaced; restore a backup, or move the log away",
        dir.display()
    )]
    StateMissing { dir: PathBuf },
    #[error("stopped before the log was applied")]
    Cancelled,
}

impl RecoveryError {
    /// Whether another process had the state directory open all the time.
    pub fn is_locked(&self) -> bool {
        matches!(self, RecoveryError::State(StateError::Store(StoreError::Locked { .. })))
    }
}

impl From<StoreError> for RecoveryError {
    fn from(error: StoreError) -> RecoveryError {
        RecoveryError::State(error.into())
    }
}

/// A state with all events of its log. Its changes since the last checkpoint are in memory.
pub struct Recovered {
    pub state: State,
    /// The last batch that the state on disk contains; `None`: it was written without a log.
    pub position: Option<u64>,
    /// Events that were applied.
    pub events: u64,
    /// The last batch of the log.
    pub last_seq: u64,
}

/// Opens the state directory that the config names.
pub fn open(config: &Config, dir: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<Recovered, RecoveryError> {
    let store = StoreSettings { cache_bytes: config.store.cache_bytes, create: true };
    recover(config, Store::open(dir, store)?, dir, is_cancelled)
}

/// Opens a state directory for a command that writes to it without a log. All events of its log are in
/// the state on disk.
pub fn open_without_log(config: &Config, dir: &Path) -> Result<State, RecoveryError> {
    let Recovered { mut state, position, last_seq, .. } = open(config, dir, &|| false)?;
    if position.is_some() {
        state.store.write_checkpoint(last_seq)?;
    }
    state.store.stop_deferring();
    Ok(state)
}

/// Opens a private copy of a state directory, for a command that only reads; see
/// [`Store::open_read_only`].
pub fn open_copy(config: &Config, dir: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<State, RecoveryError> {
    let store = Store::open_read_only(dir, config.store.cache_bytes, is_cancelled)?;
    Ok(recover(config, store, dir, is_cancelled)?.state)
}

/// Backs up a state directory that no process has open, with all events of its log.
pub fn backup_closed(config: &Config, dir: &Path, backup: &Path) -> Result<BackupSummary, RecoveryError> {
    store::backup_closed(dir, backup, config.store.cache_bytes, |copy| {
        let Recovered { mut state, position, .. } = recover(config, copy, dir, &|| false)?;
        if position.is_some() {
            // A daemon that starts with the backup begins a log.
            state.store.write_checkpoint(0)?;
        }
        Ok(state.store.meta()?)
    })
}

fn recover(
    config: &Config,
    mut store: Store,
    dir: &Path,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Recovered, RecoveryError> {
    // A private copy of the state has no log. It reads that of the original, which may have grown.
    let log = &log_dir(dir);
    let position = store.log_position()?;
    let has_segments = match segments(log) {
        Ok(found) => !found.is_empty(),
        Err(LogError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    let reader = match position {
        None if has_segments => return Err(RecoveryError::StateMissing { dir: log.clone() }),
        None => None,
        // Nothing was ever written to it.
        Some(0) if !has_segments => None,
        Some(position) if !has_segments => {
            return Err(LogError::Missing { dir: log.clone(), position }.into());
        }
        Some(position) => Some(LogReader::open_after(log, position)?),
    };
    let settings = match position.filter(|_| has_segments) {
        Some(position) => first_settings(log, position)?,
        None => None,
    };
    let obeyed = settings.map_or(Ok(config.clone()), |settings| obey(config, &settings))?;
    store.defer_commits();
    let engine = obeyed.engine_settings().map_err(StateError::from)?;
    let mut state = State::with_store(store, engine)?;
    let mut tail = Tail { config: obeyed, events: 0 };
    let last_seq = match reader {
        Some(reader) => tail.apply(&mut state, reader, log, position.unwrap_or(0), is_cancelled)?,
        None => position.unwrap_or(0),
    };
    if tail.config != *config {
        state.commit()?;
        state.engine.reload(config.engine_settings().map_err(StateError::from)?);
    }
    Ok(Recovered { state, position, events: tail.events, last_seq })
}

/// The settings that held for the first event after a position.
fn first_settings(log: &Path, position: u64) -> Result<Option<RecordedSettings>, RecoveryError> {
    let mut reader = LogReader::open_after(log, position)?;
    let mut found: Option<RecordedSettings> = None;
    let note = |found: &mut Option<RecordedSettings>, event| {
        if let LogEvent::Settings { settings, .. } = event {
            found.get_or_insert_default().update(settings);
        }
    };
    while reader.next_seq().is_none_or(|next| next <= position) {
        if reader.read_batch(|event| note(&mut found, event))?.is_none() {
            return Ok(found);
        }
    }
    // A segment begins with its settings.
    if found.is_none() {
        reader.read_batch(|event| note(&mut found, event))?;
    }
    Ok(found)
}

/// The config with the settings of a log.
fn obey(config: &Config, settings: &RecordedSettings) -> Result<Config, RecoveryError> {
    config.with_settings(settings).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        RecoveryError::Settings(problems.join("; "))
    })
}

/// The events of the log after the position of the state.
struct Tail {
    /// The settings in effect.
    config: Config,
    events: u64,
}

impl Tail {
    /// Returns the last batch of the log.
    fn apply(
        &mut self,
        state: &mut State,
        mut reader: LogReader,
        log: &Path,
        position: u64,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<u64, RecoveryError> {
        let mut events = Vec::new();
        while let Some(seq) = reader.read_batch(|event| events.push(event))? {
            for event in events.drain(..) {
                if seq <= position {
                    continue;
                }
                self.apply_event(state, event)?;
                self.events += 1;
                if self.events.is_multiple_of(EVENTS_PER_COMMIT) {
                    state.commit()?;
                    if is_cancelled() {
                        return Err(RecoveryError::Cancelled);
                    }
                }
                if self.events.is_multiple_of(EVENTS_PER_MESSAGE) {
                    tracing::info!(events = self.events, "applying the log since the last checkpoint");
                }
            }
        }
        state.commit()?;
        let last = reader.next_seq().map_or(0, |next| next - 1);
        match last < position {
            true => Err(LogError::Behind { dir: log.to_owned(), last, position }.into()),
            false => Ok(last),
        }
    }

    fn apply_event(&mut self, state: &mut State, event: LogEvent) -> Result<(), RecoveryError> {
        match event {
            LogEvent::Scan { server, outcome } => state.replay_scan(server, outcome)?,
            LogEvent::Command { t_ms, command } => _ = state.apply_command(t_ms, &command)?,
            LogEvent::Tick { t_ms, close_until_ms } => state.tick(t_ms, close_until_ms)?,
            LogEvent::Settings { settings, .. } => {
                let obeyed = obey(&self.config, &settings)?;
                if obeyed != self.config {
                    state.commit()?;
                    state.engine.reload(obeyed.engine_settings().map_err(StateError::from)?);
                    self.config = obeyed;
                }
            }
        }
        Ok(())
    }
}
