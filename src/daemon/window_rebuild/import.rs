//! The part of a rebuild that the engine thread does, in small steps: it brings the second engine to the same
//! event, and replaces rows by rebuilt ones. Each step is an event of the log.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::vec::IntoIter;

use super::replay_job::{TagChanges, apply_to_servers};
use crate::engine::{RebuiltState, WindowImport};
use crate::log::LogEvent;
use crate::model::rebuild::RebuildStep;
use crate::state::State;

/// Events that the engine thread replays in one step: some milliseconds.
const EVENTS_PER_STEP: usize = 200;

/// Rows after which a step of the engine thread ends: some 10 ms.
const ROWS_PER_STEP: usize = 500;

/// Rows that cost as much as to find that a server has none.
const READS_PER_SERVER: usize = 3;

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
    /// `None`: the thread has not ended.
    pub rebuilt: Option<Box<State>>,
    /// Earlier ones of `recent`, which are being replayed.
    pub replayed: IntoIter<LogEvent>,
    /// `None`: until the old rows are swept.
    pub import: Option<WindowImport>,
    /// Number of windows.
    pub windows: usize,
}

/// What a step does to the state, and whether it is the last.
pub(super) struct ImportProgress {
    pub steps: Vec<RebuildStep>,
    pub is_finished: bool,
}

impl ActiveRebuild {
    /// Whether all that is left is to replace rows.
    pub fn is_importing(&self) -> bool {
        self.rebuilt.is_some() && (self.import.is_some() || !self.recent.is_empty() || self.replayed.len() > 0)
    }

    /// The next steps, which are to be applied at once.
    pub fn step(&mut self, state: &State) -> anyhow::Result<ImportProgress> {
        let mut progress = ImportProgress { steps: Vec::new(), is_finished: false };
        let Some(mut rebuilt) = self.rebuilt.take() else { return Ok(progress) };
        if self.catch_up(&mut rebuilt)? {
            self.next_steps(&mut rebuilt, state, &mut progress)?;
        }
        self.rebuilt = Some(rebuilt);
        Ok(progress)
    }

    /// Replays events. Returns whether the rebuilt state has all of them.
    fn catch_up(&mut self, rebuilt: &mut State) -> anyhow::Result<bool> {
        if self.replayed.len() == 0 {
            self.replayed = std::mem::take(&mut self.recent).into_iter();
        }
        for event in self.replayed.by_ref().take(EVENTS_PER_STEP) {
            match event {
                LogEvent::Scan { server, outcome } => rebuilt.replay_scan(server, outcome)?,
                event => apply_to_servers(rebuilt, &event, TagChanges::Applied)?,
            }
        }
        rebuilt.commit()?;
        Ok(self.replayed.len() == 0 && self.recent.is_empty())
    }

    fn next_steps(&mut self, rebuilt: &mut State, state: &State, progress: &mut ImportProgress) -> anyhow::Result<()> {
        let Some(import) = &mut self.import else {
            if let Some(windows) = state.engine.model().importable_windows(&state.store, &rebuilt.engine) {
                self.windows = windows.len();
                progress.steps.push(RebuildStep::Begin { windows });
            }
            return Ok(());
        };
        let reader = rebuilt.store.reader();
        let rebuilt = RebuiltState { model: rebuilt.engine.model(), reader: &rebuilt.store, window_reader: &reader };
        let mut rows = 0;
        while rows < ROWS_PER_STEP {
            let Some(steps) = state.engine.next_import_steps(import, &state.store, &rebuilt)? else {
                progress.steps.push(RebuildStep::End {});
                progress.is_finished = true;
                break;
            };
            rows += READS_PER_SERVER + steps.iter().map(RebuildStep::rows).sum::<usize>();
            progress.steps.extend(steps);
        }
        Ok(())
    }
}
