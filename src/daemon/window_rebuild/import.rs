//! The part of a rebuild that the engine thread does, in small steps: it imports the rebuilt
//! rows, and replays the scans recorded in the meantime.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use super::replay_job::apply_to_servers;
use crate::engine::{RebuiltState, WindowImport};
use crate::log::LogEvent;
use crate::state::State;

/// Scans that the engine thread replays in one step, and at most in the last step: some
/// milliseconds.
const EVENTS_PER_STEP: usize = 200;

/// Rows imported in one step of the engine thread and then committed: some 20 ms.
const ROWS_PER_STEP: usize = 2_000;

/// A rebuild whose thread was started.
pub(super) struct ActiveRebuild {
    pub dir: PathBuf,
    pub thread: JoinHandle<()>,
    /// Gets the batches of the log until which the thread may read.
    pub positions: mpsc::Sender<u64>,
    /// The events after the batch that the thread got last.
    pub recent: Vec<LogEvent>,
    /// `recent` begins after this batch; `u64::MAX`: the thread has not asked yet.
    pub recent_after: u64,
    pub is_cancelled: Arc<AtomicBool>,
    pub result: Option<anyhow::Result<Box<State>>>,
    pub stage: ImportStage,
    /// The events that the engine thread replays.
    pub replayed: std::vec::IntoIter<LogEvent>,
}

/// Progress of the import by the engine thread.
pub(super) enum ImportStage {
    /// Until the state is rebuilt and the old rows are swept.
    Replaying,
    Importing(WindowImport),
    /// All rebuilt rows are imported.
    CatchingUp(WindowImport),
}

impl ActiveRebuild {
    /// Returns the number of imported windows when the import is complete.
    pub fn step(&mut self, state: &mut State) -> anyhow::Result<Option<usize>> {
        let Some(rebuilt) = self.result.take() else { return Ok(None) };
        let mut rebuilt = rebuilt?;
        let windows = self.step_with(&mut rebuilt, state)?;
        self.result = Some(Ok(rebuilt));
        Ok(windows)
    }

    fn step_with(&mut self, rebuilt: &mut State, state: &mut State) -> anyhow::Result<Option<usize>> {
        match std::mem::replace(&mut self.stage, ImportStage::Replaying) {
            ImportStage::Replaying => {
                rebuilt.commit()?;
                let begun = state.engine.begin_import(&state.store, &rebuilt.engine);
                self.stage = begun.map_or(ImportStage::Replaying, ImportStage::Importing);
            }
            ImportStage::Importing(import) | ImportStage::CatchingUp(import)
                if state.engine.is_import_outdated(&import) =>
            {
                state.engine.abort_import();
            }
            ImportStage::Importing(mut import) => {
                if import_rows(state, rebuilt, &mut import, ROWS_PER_STEP)? {
                    self.stage = ImportStage::Importing(import);
                    return Ok(None);
                }
                rebuilt.commit()?;
                if self.replayed.len() == 0 {
                    let events = std::mem::take(&mut self.recent);
                    let is_last = events.len() <= EVENTS_PER_STEP;
                    self.replayed = events.into_iter();
                    if is_last {
                        self.replay_some(rebuilt)?;
                        state.engine.collect_changes(&mut import, &rebuilt.engine);
                        while import_rows(state, rebuilt, &mut import, usize::MAX)? {}
                        return Ok(Some(state.engine.finish_import(&rebuilt.engine)));
                    }
                }
                self.stage = ImportStage::CatchingUp(import);
            }
            ImportStage::CatchingUp(mut import) => {
                self.stage = if self.replay_some(rebuilt)? {
                    ImportStage::CatchingUp(import)
                } else {
                    state.engine.collect_changes(&mut import, &rebuilt.engine);
                    ImportStage::Importing(import)
                };
            }
        }
        Ok(None)
    }

    /// Replays some events without a commit: the uncommitted changes are the rows to import. Returns
    /// whether there are more.
    fn replay_some(&mut self, rebuilt: &mut State) -> anyhow::Result<bool> {
        for event in self.replayed.by_ref().take(EVENTS_PER_STEP) {
            match event {
                LogEvent::Scan { server, outcome } => rebuilt.replay_scan(server, outcome)?,
                event => apply_to_servers(rebuilt, &event)?,
            }
        }
        Ok(self.replayed.len() > 0)
    }
}

/// Imports about `most` rows. Returns whether there are more.
fn import_rows(state: &mut State, rebuilt: &State, import: &mut WindowImport, most: usize) -> anyhow::Result<bool> {
    let reader = rebuilt.store.reader();
    let rebuilt = RebuiltState { engine: &rebuilt.engine, reader: &rebuilt.store, window_reader: &reader };
    Ok(state.engine.import_batch(import, &state.store, &rebuilt, most)?)
}
