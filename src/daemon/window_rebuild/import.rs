//! The part of a rebuild that the engine thread does, in small steps: it imports the rebuilt
//! rows, and replays the scans recorded in the meantime.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use super::chunk_writer::ChunkWriter;
use super::replay_job::{Lines, LogChunk, apply_to_servers, next_event};
use crate::engine::{RebuiltState, WindowImport};
use crate::log::LogEvent;
use crate::scan_log::{self, LossyReader};
use crate::state::State;

/// Scans that the engine thread replays in one step, and at most in the last step: some
/// milliseconds.
const LINES_PER_STEP: u64 = 200;

/// Rows imported in one step of the engine thread and then committed: some 20 ms.
const ROWS_PER_STEP: usize = 2_000;

/// A rebuild whose thread was started.
pub(super) struct ActiveRebuild {
    pub dir: PathBuf,
    pub thread: JoinHandle<()>,
    /// Scans before this time are not replayed, Unix ms.
    pub from_ms: i64,
    pub chunks: ChunkWriter,
    pub chunks_tx: mpsc::Sender<LogChunk>,
    pub is_cancelled: Arc<AtomicBool>,
    pub result: Option<anyhow::Result<Box<State>>>,
    pub stage: ImportStage,
    /// The chunk that the engine thread replays.
    pub lines: Option<Lines>,
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
                if self.lines.is_none() {
                    let chunk = self.chunks.next_chunk()?;
                    self.lines = Some(LossyReader::new(scan_log::open(&chunk.path)?));
                    // The file stays readable while it is open.
                    _ = fs::remove_file(&chunk.path);
                    if chunk.lines <= LINES_PER_STEP {
                        while self.replay_some(rebuilt)? {}
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

    /// Replays some lines of the current chunk without a commit: the uncommitted changes
    /// are the rows to import. Returns whether there are more lines.
    fn replay_some(&mut self, rebuilt: &mut State) -> anyhow::Result<bool> {
        let Some(lines) = &mut self.lines else { return Ok(false) };
        for _ in 0..LINES_PER_STEP {
            let Some(event) = next_event(lines, self.from_ms)? else {
                self.lines = None;
                return Ok(false);
            };
            match event {
                LogEvent::Scan { server, outcome } => rebuilt.replay_scan(server, outcome)?,
                event => apply_to_servers(rebuilt, &event)?,
            }
        }
        Ok(true)
    }
}

/// Imports about `most` rows. Returns whether there are more.
fn import_rows(state: &mut State, rebuilt: &State, import: &mut WindowImport, most: usize) -> anyhow::Result<bool> {
    let reader = rebuilt.store.reader();
    let rebuilt = RebuiltState { engine: &rebuilt.engine, reader: &rebuilt.store, window_reader: &reader };
    Ok(state.engine.import_batch(import, &state.store, &rebuilt, most)?)
}
