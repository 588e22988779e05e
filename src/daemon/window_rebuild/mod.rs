//! Rebuilds windows from the log in parallel with the engine's work. A second engine on its own
//! thread, with its own state inside the state directory, replays the recorded scans while scans
//! continue and requests are answered.
//!
//! The rebuild thread asks again and again until which batch the log is on disk, and replays it
//! until there, until it has caught up. Then the engine thread continues in small steps between its
//! other work: it replays the events recorded in the meantime, and when there are none left, replaces the rows
//! of some servers by rebuilt ones. After a crash the rebuild starts again from the beginning.

mod import;
mod replay_job;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use tokio::sync::mpsc;

use self::import::ActiveRebuild;
use self::replay_job::ReplayJob;
use crate::board::window::type_name;
use crate::config::rebuild_dir;
use crate::engine::Engine;
use crate::log::{LogError, LogEvent, LogFileLock};
use crate::model::calendar::utc;
use crate::model::rebuild::RebuildStep;
use crate::state::State;
use crate::store::StoreSettings;

/// Attempts to remove the files of a rebuild, and the time between two.
const REMOVALS_MAX: u32 = 50;
const REMOVAL_PAUSE: Duration = Duration::from_millis(100);

/// Files that a rebuild uses.
pub struct RebuildPaths {
    pub state_dir: PathBuf,
    /// The directory of the log.
    pub log: PathBuf,
    /// Keeps files of the log from being removed or rewritten while they are read.
    pub log_lock: LogFileLock,
    pub cache_bytes: u64,
    /// The setting `store.disk_free_bytes_min`.
    pub disk_free_bytes_min: u64,
}

/// What is done with window types that are new, have changed boundaries, or were being rebuilt: they are rebuilt; without
/// recorded scans they start empty. Returns a message for the admin, too. Error: the log cannot be read now.
pub fn plan_window_types(engine: &Engine, log: &Path) -> Result<Option<(RebuildStep, String)>, LogError> {
    let types = engine.model().types_to_rebuild();
    if types.is_empty() {
        return Ok(None);
    }
    let names = types.into_iter().map(type_name).collect::<Vec<_>>().join(", ");
    // One read that fails says nothing about the log.
    let first_ms = replay_job::first_scan_ms(log).or_else(|_| replay_job::first_scan_ms(log));
    let (from_ms, note) = match first_ms {
        Ok(Some(from_ms)) => {
            (Some(from_ms), format!("are being rebuilt from the log, which begins at {}", utc(from_ms)))
        }
        Ok(None) => (None, "begin empty: the log has no scans yet".to_owned()),
        Err(error) if error.is_damage() => (None, format!("begin empty: the log cannot be read: {error}")),
        Err(error) => return Err(error),
    };
    let note = format!("windows of type {names} {note}");
    tracing::info!("{note}");
    Ok(Some((RebuildStep::Types { from_ms }, note)))
}

/// From which time on the log has everything, Unix ms: from its first scan, or all if no server was known
/// before it began. `first_added_ms`: when the first server was added. `None`: the log has no scans.
pub fn log_from_ms(log: &Path, first_added_ms: i64) -> Result<Option<i64>, LogError> {
    let Some(scanned_ms) = replay_job::first_scan_ms(log)? else { return Ok(None) };
    let began_ms = replay_job::first_event_ms(log)?;
    Ok(Some(if began_ms.is_some_and(|began_ms| began_ms <= first_added_ms) { i64::MIN } else { scanned_ms }))
}

/// Events of the rebuild thread.
pub enum JobEvent {
    /// Asks until which batch the log is on disk.
    PositionRequest,
    /// The rebuilt state: all recorded scans until the last of these batches.
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
    /// Why the rebuild could not start, or has failed.
    failed: Option<anyhow::Error>,
    /// Whether the last attempt found too little space, which was logged.
    waits_for_space: bool,
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
        Rebuilder { events: mpsc::channel(1), number: 0, running: None, failed: None, waits_for_space: false }
    }

    /// Whether there is space to begin. Says once that a rebuild waits for it.
    pub fn has_space(&mut self, paths: &RebuildPaths) -> bool {
        let error = replay_job::check_space(&paths.state_dir, paths.disk_free_bytes_min).err();
        if let Some(error) = error.as_ref().filter(|_| !self.waits_for_space) {
            tracing::warn!("the rebuild of windows from the log waits for space: {error}");
        }
        self.waits_for_space = error.is_some();
        !self.waits_for_space
    }

    /// Starts a new rebuild. All recorded scans are in files; `position`: the last batch of the log.
    pub fn begin(&mut self, state: &State, paths: &RebuildPaths, position: u64) {
        self.cleanup();
        self.number += 1;
        match self.start_job(state, paths, position) {
            Ok(running) => self.running = Some(running),
            Err(error) => self.failed = Some(error),
        }
    }

    fn start_job(&self, state: &State, paths: &RebuildPaths, position: u64) -> anyhow::Result<ActiveRebuild> {
        let model = state.engine.model();
        let log_from_ms = replay_job::first_scan_ms(&paths.log)?.unwrap_or(i64::MIN);
        let from_ms = model.replay_from_ms();
        let dir = create_job_dir(&paths.state_dir)?;
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let job = ReplayJob {
            dir: dir.clone(),
            store: StoreSettings { cache_bytes: paths.cache_bytes, create: true },
            settings: model.rebuild_settings(),
            servers: model.rebuilt_servers(),
            known_before: Arc::new(model.known_before(state.store.reader(), from_ms.max(log_from_ms))),
            from_ms,
            log: paths.log.clone(),
            position,
            _log_reading: paths.log_lock.begin_reading(),
            is_cancelled: is_cancelled.clone(),
            disk_free_bytes_min: paths.disk_free_bytes_min,
        };
        let (positions, received) = std::sync::mpsc::channel();
        let (events, number) = (self.events.0.clone(), self.number);
        let work = move || {
            let mut next_position = || {
                events.blocking_send((number, JobEvent::PositionRequest)).ok()?;
                received.recv().ok()
            };
            let run = std::panic::AssertUnwindSafe(|| job.run(&mut next_position));
            // The panic message is in the log.
            let result = std::panic::catch_unwind(run).unwrap_or_else(|_| Err(anyhow!("its thread has panicked")));
            // While the daemon stops there is no receiver.
            _ = match result {
                Ok(state) => events.blocking_send((number, JobEvent::Rebuilt(Box::new(state)))),
                Err(error) => events.blocking_send((number, JobEvent::Failed(error))),
            };
        };
        let thread = std::thread::Builder::new().name("rebuild".to_owned()).spawn(work)?;
        Ok(ActiveRebuild {
            dir,
            thread,
            positions,
            recent: Vec::new(),
            recent_after: u64::MAX,
            is_cancelled,
            rebuilt: None,
            replayed: Vec::new().into_iter(),
            import: None,
            windows: 0,
        })
    }

    /// The next event; waits forever while nothing is rebuilt.
    pub async fn next_event(&mut self) -> NumberedEvent {
        self.events.1.recv().await.expect("one sender is held here")
    }

    /// Handles an event. `last_seq`: the last batch of the log, which may not be on disk yet. If the
    /// thread asks for it, returns what is to be done when it is.
    pub fn handle_event(
        &mut self,
        (number, event): NumberedEvent,
        last_seq: u64,
    ) -> Option<impl FnOnce() + Send + use<>> {
        let running = self.running.as_mut().filter(|_| number == self.number)?;
        match event {
            JobEvent::PositionRequest => {
                running.recent.clear();
                running.recent_after = last_seq;
                let positions = running.positions.clone();
                // The thread has ended only if it failed, and then sends the error.
                return Some(move || _ = positions.send(last_seq));
            }
            JobEvent::Rebuilt(state) => running.rebuilt = Some(state),
            JobEvent::Failed(error) => {
                // Its files may be why the disk is nearly full.
                self.cleanup();
                self.failed = Some(error);
            }
        }
        None
    }

    /// Notes an event of a batch of the log.
    pub fn record(&mut self, seq: u64, event: &LogEvent) {
        if let Some(running) = self.running.as_mut().filter(|running| seq > running.recent_after) {
            running.recent.push(event.clone());
        }
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether a rebuilt state or an error waits to be processed.
    pub fn is_ready(&self) -> bool {
        self.failed.is_some() || self.running.as_ref().is_some_and(|running| running.rebuilt.is_some())
    }

    /// Whether the next import step is due at once.
    pub fn is_importing(&self) -> bool {
        self.running.as_ref().is_some_and(ActiveRebuild::is_importing)
    }

    /// One import step. All changes must be committed before it. `log` gets the events that it applies, before
    /// they are applied. Returns whether the rebuild is finished.
    pub fn import_step(&mut self, state: &mut State, log: &mut dyn FnMut(&RebuildStep)) -> anyhow::Result<bool> {
        let progress = match (self.failed.take(), &mut self.running) {
            (Some(error), _) => Err(error),
            (None, None) => return Ok(false),
            (None, Some(running)) => running.step(state),
        };
        let progress = match progress {
            Ok(progress) => progress,
            Err(error) => {
                match state.engine.model().types_to_rebuild().is_empty() {
                    true => tracing::warn!("windows cannot be recomputed from the log: {error:#}"),
                    false => tracing::warn!("windows cannot be rebuilt from the log and begin empty now: {error:#}"),
                }
                self.cleanup();
                // Recomputed windows keep the rows that they have.
                for step in [RebuildStep::Types { from_ms: None }, RebuildStep::End {}] {
                    log(&step);
                    state.apply_rebuild(&step)?;
                }
                return Ok(true);
            }
        };
        for step in progress.steps {
            log(&step);
            state.apply_rebuild(&step)?;
            if let (RebuildStep::Begin { .. }, Some(running)) = (step, &mut self.running) {
                running.import = Some(state.engine.model().begin_import());
            }
        }
        if progress.is_finished {
            let windows = self.running.as_ref().map(|running| running.windows);
            tracing::info!(windows, "windows were rebuilt from the log");
            self.cleanup();
        }
        Ok(progress.is_finished)
    }

    /// Frees all resources of the rebuild on another thread.
    fn cleanup(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.is_cancelled.store(true, Ordering::Relaxed);
        std::thread::spawn(move || {
            let ActiveRebuild { dir, thread, positions, rebuilt, .. } = running;
            // The thread waits for a position; dropping the sender ends the wait.
            drop((positions, rebuilt));
            // The thread has logged its errors.
            _ = thread.join();
            // sled writes its last files a moment after it is closed.
            let mut tries = 0..REMOVALS_MAX;
            while let Err(error) = fs::remove_dir_all(&dir) {
                if tries.next().is_none() {
                    tracing::warn!(%error, dir = %dir.display(), "cannot remove the files of a window rebuild");
                    break;
                }
                std::thread::sleep(REMOVAL_PAUSE);
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
