//! How the other tasks reach the engine thread: they send it work, and wait for its reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, mpsc, oneshot};

use super::EngineThread;
use crate::api::{ApiError, ErrorCode};
use crate::archive::SourceClosed;

/// Work that waits for the engine thread. Each sender waits for its reply, so the queue is rarely
/// long.
const QUEUE_MAX: usize = 256;

type Work = Box<dyn FnOnce(&mut EngineThread) -> anyhow::Result<()> + Send>;

/// What the engine thread receives.
pub(in crate::daemon) enum Command {
    /// Takes some milliseconds at most, because scans wait meanwhile. An error ends the thread.
    Work(Work),
    /// Stops sending probes; outcomes are still applied.
    StopScanning,
    /// Commit and end.
    Shutdown,
}

/// Sends work to the engine thread.
#[derive(Clone, Debug)]
pub(in crate::daemon) struct EngineHandle {
    commands: mpsc::Sender<Command>,
    /// An admin wants the archive to be written now.
    archive_wanted: Arc<Notify>,
}

/// The engine thread has ended, and with it the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the daemon is stopping")]
pub(in crate::daemon) struct EngineEnded;

impl From<EngineEnded> for ApiError {
    fn from(ended: EngineEnded) -> ApiError {
        ApiError::new(ErrorCode::Stopping, ended.to_string())
    }
}

impl From<EngineEnded> for SourceClosed {
    fn from(_: EngineEnded) -> SourceClosed {
        SourceClosed
    }
}

impl EngineHandle {
    pub(in crate::daemon) fn new() -> (EngineHandle, mpsc::Receiver<Command>) {
        let (commands, received) = mpsc::channel(QUEUE_MAX);
        (EngineHandle { commands, archive_wanted: Arc::default() }, received)
    }

    /// Ends the pause of the archive's worker.
    pub(in crate::daemon) fn want_archive(&self) {
        self.archive_wanted.notify_one();
    }

    pub(super) async fn archive_wanted(&self) {
        self.archive_wanted.notified().await;
    }

    /// Does work on the engine thread and returns its result.
    pub(in crate::daemon) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut EngineThread) -> anyhow::Result<T> + Send + 'static,
    ) -> Result<T, EngineEnded> {
        self.call_later(|thread, reply| {
            _ = reply.send(work(thread)?);
            Ok(())
        })
        .await
    }

    /// As [`EngineHandle::call`], of work that replies later: when what it did is on disk, for example.
    pub(in crate::daemon) async fn call_later<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut EngineThread, oneshot::Sender<T>) -> anyhow::Result<()> + Send + 'static,
    ) -> Result<T, EngineEnded> {
        let (reply, received) = oneshot::channel();
        self.send(Command::Work(Box::new(move |thread| work(thread, reply)))).await;
        received.await.map_err(|_| EngineEnded)
    }

    /// Sends a command. After the end of the thread nothing happens.
    pub(in crate::daemon) async fn send(&self, command: Command) {
        _ = self.commands.send(command).await;
    }

    /// The number of commands that wait.
    pub(in crate::daemon) fn queued(&self) -> u64 {
        (self.commands.max_capacity() - self.commands.capacity()) as u64
    }
}

/// Shows that the engine is alive: counts the scheduler's checks for due probes.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Heartbeat(AtomicU64);

impl Heartbeat {
    pub(in crate::daemon) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::daemon) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
