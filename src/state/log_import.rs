//! Puts the events of scan logs into the log of a state that has none yet. The first versions of clqd recorded
//! scans only in a scan log; with its events in the log, windows can be rebuilt from them.

use std::fs;
use std::path::{Path, PathBuf};

use super::log_dir;
use super::{ReplayFeed, State, StateError};
use crate::config::Config;
use crate::log::{EachEvent, HistoryWriter, LogError, LogEvent, WriterSettings, has_segments, sync_dir};
use crate::store::{self, Store, StoreError, StoreSettings};

#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{} has events already; scan logs can be imported only before the daemon has begun its log", .0.display())]
    HasLog(PathBuf),
    #[error("the state in {} has lost its log; see docs/troubleshooting.md", .0.display())]
    LostLog(PathBuf),
    #[error("the state in {} has no servers, so no event is new to it: use clqd replay", .0.display())]
    NoServers(PathBuf),
    #[error("there are no events to import")]
    NoEvents,
    /// The events cannot be read.
    #[error("{0:#}")]
    Read(anyhow::Error),
}

impl From<StoreError> for ImportError {
    fn from(error: StoreError) -> ImportError {
        ImportError::State(error.into())
    }
}

/// Counts of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    pub events: u64,
    /// Scans and commands that the state did not have yet, because a crash came between scan log and
    /// state. They were applied.
    pub applied: u64,
}

/// Writes the events to `log.importing`, then notes in the state how far its log goes, then renames the
/// directory. An import that was interrupted in between is finished by the next one.
pub fn import(config: &Config, dir: &Path, each_event: EachEvent) -> Result<ImportSummary, ImportError> {
    let imported = import_as_anybody(config, dir, each_event);
    store::keep_owner(dir)?;
    imported
}

fn import_as_anybody(config: &Config, dir: &Path, each_event: EachEvent) -> Result<ImportSummary, ImportError> {
    let (log, partial) = (log_dir(dir), dir.join("log.importing"));
    if has_segments(&log)? {
        return Err(ImportError::HasLog(log));
    }
    let store = StoreSettings { cache_bytes: config.store.cache_bytes, create: false };
    let mut state = State::with_store(Store::open(dir, store)?, config.engine_settings().map_err(StateError::from)?)?;
    state.store.defer_commits();
    if state.store.log_position()?.is_some_and(|position| position > 0) {
        if !has_segments(&partial)? {
            return Err(ImportError::LostLog(dir.to_owned()));
        }
        put_in_place(&partial, &log)?;
        return Ok(ImportSummary::default());
    }
    if state.engine.model().first_added_ms() == i64::MAX {
        return Err(ImportError::NoServers(dir.to_owned()));
    }
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(LogError::io("remove", &partial))?;
    }
    let began_ms = state.engine.model().now_ms();
    let mut feed = ReplayFeed::background();
    let mut summary = ImportSummary::default();
    let mut writer: Option<HistoryWriter> = None;
    let settings = WriterSettings::new(partial.clone());
    each_event(&mut |event| {
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(HistoryWriter::open(&settings, 1, event.t_ms())?),
        };
        writer.append(&event)?;
        summary.events += 1;
        if is_new(&state, began_ms, &event) {
            feed.observe(&mut state, event)?;
        }
        Ok(())
    })
    .map_err(ImportError::Read)?;
    summary.applied = feed.scans() + feed.commands();
    let last_seq = writer.ok_or(ImportError::NoEvents)?.finish()?;
    state.commit()?;
    state.write_checkpoint(last_seq)?;
    put_in_place(&partial, &log)?;
    Ok(summary)
}

/// Whether the state does not have the effect of an event.
fn is_new(state: &State, began_ms: i64, event: &LogEvent) -> bool {
    match event {
        LogEvent::Scan { server, outcome } => {
            outcome.t_ms() >= began_ms && state.engine.model().is_newer(server, outcome.t_ms())
        }
        // It was on disk in the state before it was answered.
        LogEvent::Command { .. } if event.sets_clock() => false,
        LogEvent::Command { t_ms, .. } | LogEvent::Rebuild { t_ms, .. } => *t_ms > began_ms,
        // The settings of the config apply.
        LogEvent::Settings { .. } | LogEvent::Known { .. } | LogEvent::Archive { .. } | LogEvent::Tick { .. } => false,
    }
}

fn put_in_place(partial: &Path, log: &Path) -> Result<(), LogError> {
    if log.exists() {
        fs::remove_dir_all(log).map_err(LogError::io("remove", log))?;
    }
    fs::rename(partial, log).map_err(LogError::io("rename", partial))?;
    sync_dir(log.parent().unwrap_or(Path::new(".")))
}
