//! Rebuilds windows from the scan log in parallel with the engine's work. A second engine
//! on its own thread, with its own state inside the state directory, replays the recorded
//! scans while scans continue and requests are answered.
//!
//! Scans recorded during a rebuild are also written to chunk files. The rebuild thread
//! replays one chunk after another until it has caught up. Then the engine thread continues
//! in small steps between its other work: it imports the rows, replays the scans recorded
//! in the meantime, and imports the rows they changed. Each round is shorter than the one
//! before; the last one is a single step. After a crash the rebuild starts again from the
//! beginning.

mod chunk_writer;
mod import;
mod replay_job;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use tokio::sync::mpsc;

use self::chunk_writer::ChunkWriter;
use self::import::{ActiveRebuild, ImportStage};
use self::replay_job::ReplayJob;
use crate::board::window::type_name;
use crate::config::rebuild_dir;
use crate::engine::Engine;
use crate::log::LogEvent;
use crate::scan_log::{self, LogFileLock};
use crate::state::State;
use crate::store::StoreSettings;

/// Files that a rebuild uses.
pub struct RebuildPaths {
    pub state_dir: PathBuf,
    /// `None`: scans are not recorded.
    pub log: Option<PathBuf>,
    /// Keeps the files of the log from being rewritten while they are read.
    pub log_lock: LogFileLock,
    pub cache_bytes: u64,
}

/// Starts the rebuild of window types that are new, have changed boundaries, or were being
/// rebuilt; without a scan log they start empty. Returns messages for the admin.
pub fn plan_window_types(engine: &mut Engine, log: Option<&Path>) -> Vec<String> {
    let types = engine.types_to_rebuild();
    if types.is_empty() {
        return Vec::new();
    }
    let names = types.into_iter().map(type_name).collect::<Vec<_>>().join(", ");
    let note = match (log, log.and_then(first_scan_ms)) {
        (_, Some(from_ms)) => {
            engine.start_rebuild(from_ms);
            let note = format!("windows of type {names} are being rebuilt from the scan log");
            tracing::info!("{note}");
            note
        }
        (Some(log), None) => {
            engine.start_types_empty();
            let log = log.display();
            let note = format!("windows of type {names} begin empty: the scan log {log} has no scans yet");
            tracing::info!("{note}");
            note
        }
        (None, None) => {
            engine.start_types_empty();
            let note = format!(
                "windows of type {names} begin now: there is no scan log (setting scan_log.path) to rebuild earlier time from"
            );
            tracing::warn!("{note}");
            note
        }
    };
    vec![note]
}

/// Time of the oldest readable line.
fn first_scan_ms(log: &Path) -> Option<i64> {
    let files = scan_log::compressed_files(log).into_iter().chain([scan_log::rotated_file(log), log.to_owned()]);
    let first_scan = |file: PathBuf| {
        let mut events = scan_log::open(&file).ok()?.filter_map(Result::ok);
        events.find(|event| matches!(event, LogEvent::Scan { .. }))
    };
    files.into_iter().find_map(first_scan).map(|event| event.t_ms())
}

/// Events of the rebuild thread.
pub enum JobEvent {
    /// Requests the next chunk of the scans recorded since the beginning.
    ChunkRequest,
    /// The rebuilt state: all recorded scans except those of the current chunk.
    Rebuilt(Box<State>),
    Failed(anyhow::Error),
}

/// An event, and the number of the rebuild that sent it.
pub type NumberedEvent = (u64, JobEvent);

/// The rebuild in progress, if there is one.
pub struct Rebuilder {
    events: (mpsc::Sender<NumberedEvent>, mpsc::Receiver<NumberedEvent>),
    number: u64,
    running: Option<ActiveRebuild>,
    /// Why the rebuild could not start.
    failed: Option<anyhow::Error>,
}

impl Rebuilder {
    /// Removes files left by an earlier process.
    pub fn new(paths: &RebuildPaths) -> Rebuilder {
        let dir = rebuild_dir(&paths.state_dir);
        if let Err(error) = fs::remove_dir_all(&dir)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(%error, dir = %dir.display(), "cannot remove the files of an earlier window rebuild");
        }
        Rebuilder { events: mpsc::channel(1), number: 0, running: None, failed: None }
    }

    /// Starts a new rebuild. All recorded scans must be in the log files.
    pub fn begin(&mut self, engine: &mut Engine, paths: &RebuildPaths) {
        self.cleanup();
        self.number += 1;
        match self.start_job(engine, paths) {
            Ok(running) => self.running = Some(running),
            Err(error) => self.failed = Some(error),
        }
    }

    fn start_job(&self, engine: &mut Engine, paths: &RebuildPaths) -> anyhow::Result<ActiveRebuild> {
        let log = paths.log.clone().context("scans are not recorded")?;
        let dir = create_job_dir(&paths.state_dir)?;
        // A rotation truncates the current file.
        let log_copy = dir.join("log.jsonl");
        fs::copy(&log, &log_copy).with_context(|| format!("cannot copy {}", log.display()))?;
        // Opened before the others are listed: if it is compressed in the meantime it is
        // also among them, and duplicate scans are skipped.
        let log_reading = paths.log_lock.begin_reading();
        let closed = File::open(scan_log::rotated_file(&log)).ok();
        let compressed = scan_log::compressed_files(&log).into_iter().map(|file| Ok(fs::metadata(file)?.ino()));
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let from_ms = engine.replay_from_ms();
        let mut job = ReplayJob {
            dir: dir.clone(),
            store: StoreSettings { cache_bytes: paths.cache_bytes, create: true },
            settings: engine.rebuild_settings(),
            servers: engine.rebuilt_servers(),
            from_ms,
            compressed: compressed.collect::<std::io::Result<_>>().context("cannot read the scan log")?,
            closed,
            log,
            log_reading: Some(log_reading),
            is_cancelled: is_cancelled.clone(),
        };
        let (chunks_tx, chunks_rx) = std::sync::mpsc::channel();
        let (events, number) = (self.events.0.clone(), self.number);
        let work = move || {
            let result = job.run(&mut || {
                events.blocking_send((number, JobEvent::ChunkRequest)).ok()?;
                chunks_rx.recv().ok()
            });
            // While the daemon stops there is no receiver.
            _ = match result {
                Ok(state) => events.blocking_send((number, JobEvent::Rebuilt(Box::new(state)))),
                Err(error) => events.blocking_send((number, JobEvent::Failed(error))),
            };
        };
        let thread = std::thread::Builder::new().name("rebuild".to_owned()).spawn(work)?;
        Ok(ActiveRebuild {
            chunks: ChunkWriter::new(&dir)?,
            dir,
            thread,
            from_ms,
            chunks_tx,
            is_cancelled,
            result: None,
            stage: ImportStage::Replaying,
            lines: None,
        })
    }

    /// The next event; waits forever while nothing is rebuilt.
    pub async fn next_event(&mut self) -> NumberedEvent {
        self.events.1.recv().await.expect("one sender is held here")
    }

    pub fn handle_event(&mut self, (number, event): NumberedEvent) {
        let Some(running) = self.running.as_mut().filter(|_| number == self.number) else { return };
        match event {
            JobEvent::ChunkRequest => match running.chunks.next_chunk() {
                // The thread has ended only if it failed, and then sends the error.
                Ok(chunk) => _ = running.chunks_tx.send(chunk),
                Err(error) => running.result = Some(Err(error)),
            },
            JobEvent::Rebuilt(state) => running.result = Some(Ok(state)),
            JobEvent::Failed(error) => running.result = Some(Err(error)),
        }
    }

    /// Adds a recorded event to the current chunk.
    pub fn record(&mut self, event: &LogEvent) {
        let Some(running) = &mut self.running else { return };
        if let Err(error) = running.chunks.add(event) {
            running.result = Some(Err(error));
        }
    }

    /// Whether a rebuilt state or an error waits to be processed.
    pub fn is_ready(&self) -> bool {
        self.failed.is_some() || self.running.as_ref().is_some_and(|running| running.result.is_some())
    }

    /// Whether the next import step is due at once.
    pub fn is_importing(&self) -> bool {
        let is_rebuilt =
            |running: &ActiveRebuild| running.result.is_some() && !matches!(running.stage, ImportStage::Replaying);
        self.running.as_ref().is_some_and(is_rebuilt)
    }

    /// One import step, as soon as the old rows are swept. All changes must be committed
    /// before it. Returns whether the rebuild is finished.
    pub fn import_step(&mut self, state: &mut State) -> anyhow::Result<bool> {
        let step = match self.failed.take() {
            Some(error) => Err(error),
            None => self.running.as_mut().map_or(Ok(None), |running| running.step(state)),
        };
        match step {
            Ok(None) => return Ok(false),
            Ok(Some(windows)) => tracing::info!(windows, "windows were rebuilt from the scan log"),
            Err(error) => {
                tracing::warn!("windows cannot be rebuilt from the scan log and begin empty now: {error:#}");
                state.engine.start_types_empty();
            }
        }
        self.cleanup();
        state.commit()?;
        Ok(true)
    }

    /// Frees all resources of the rebuild on another thread.
    fn cleanup(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.is_cancelled.store(true, Ordering::Relaxed);
        std::thread::spawn(move || {
            let ActiveRebuild { dir, thread, chunks_tx, result, .. } = running;
            // The thread waits for a chunk; dropping the sender ends the wait.
            drop((chunks_tx, result));
            // The thread has logged its errors.
            _ = thread.join();
            if let Err(error) = fs::remove_dir_all(&dir) {
                tracing::warn!(%error, dir = %dir.display(), "cannot remove the files of a window rebuild");
            }
            // Fails while another rebuild has its directory there.
            dir.parent().map(fs::remove_dir);
        });
    }
}

impl Drop for Rebuilder {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.is_cancelled.store(true, Ordering::Relaxed);
        }
    }
}

/// A separate directory for each rebuild: that of the previous one may still be in use or
/// may just be being removed.
fn create_job_dir(state_dir: &Path) -> anyhow::Result<PathBuf> {
    let dir = rebuild_dir(state_dir);
    let create = || fs::create_dir_all(&dir).and_then(|()| tempfile::Builder::new().prefix("").tempdir_in(&dir));
    // The cleanup of another rebuild may remove the outer directory once in between.
    let created = create().or_else(|_| create());
    Ok(created.with_context(|| format!("cannot create a directory in {}", dir.display()))?.keep())
}

#[cfg(test)]
mod tests;
