//! The archive worker as a task of the daemon.

use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::archive::{ArchiveSettings, WorkerStatus};
use crate::clock::Clock;
use crate::daemon::engine_thread::EngineHandle;

/// A running worker.
pub(super) struct Worker {
    settings: ArchiveSettings,
    status: watch::Receiver<WorkerStatus>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Worker {
    /// `None`: the settings name no archive.
    pub(super) fn start(settings: ArchiveSettings, engine: EngineHandle, clock: Arc<Clock>) -> Option<Worker> {
        if !settings.is_on() {
            return None;
        }
        let (status_tx, status) = watch::channel(WorkerStatus::default());
        let (stop, stopped) = oneshot::channel();
        let worker = crate::archive::run(
            settings.clone(),
            engine,
            move || clock.now_ms(),
            async move { _ = stopped.await },
            status_tx,
        );
        Some(Worker { settings, status, stop, task: tokio::spawn(worker) })
    }

    pub(super) fn settings(&self) -> &ArchiveSettings {
        &self.settings
    }

    pub(super) fn status(&self) -> WorkerStatus {
        self.status.borrow().clone()
    }

    /// Stops the worker after it has written pending jobs, within its time limit.
    pub(super) async fn stop(self) {
        _ = self.stop.send(());
        _ = self.task.await;
    }
}
