//! The archive worker as a task of the daemon, and its connection to the engine: jobs out,
//! acknowledgements in.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::archive::{ArchiveSettings, JobSource, OutboxQuery, SourceClosed, WorkerStatus};
use crate::clock::Clock;
use crate::daemon::engine_thread::Command;
use crate::engine::{WriterPlan, WriterRefusal};
use crate::model::WindowKey;
use crate::model::archive::{ArchiveBounds, ArchiveJob, ResyncStep, WeekChunk, WeekChunkRequest};
use crate::model::outbox::{OutboxEntry, OutboxKey, ResyncCursor, WriterBeat, WriterRow};
use crate::model::restore::LastKeys;
use crate::model::top_board::{SiteTotals, TopBoardKey, TopBoards};

/// A running worker.
pub(super) struct Worker {
    settings: ArchiveSettings,
    status: watch::Receiver<WorkerStatus>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Worker {
    /// `None`: the settings name no archive.
    pub(super) fn start(
        settings: ArchiveSettings,
        commands: mpsc::Sender<Command>,
        clock: Arc<Clock>,
    ) -> Option<Worker> {
        if !settings.is_on() {
            return None;
        }
        let (status_tx, status) = watch::channel(WorkerStatus::default());
        let (stop, stopped) = oneshot::channel();
        let worker = crate::archive::run(
            settings.clone(),
            EngineJobSource::new(commands),
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

struct EngineJobSource {
    commands: mpsc::Sender<Command>,
}

impl EngineJobSource {
    fn new(commands: mpsc::Sender<Command>) -> EngineJobSource {
        EngineJobSource { commands }
    }

    async fn send<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, SourceClosed> {
        Command::send(&self.commands, command).await.ok_or(SourceClosed)
    }
}

impl JobSource for EngineJobSource {
    async fn pending_jobs(&self, query: OutboxQuery) -> Result<Vec<(OutboxEntry, ArchiveJob)>, SourceClosed> {
        self.send(|reply| Command::PendingJobs { query, reply }).await
    }

    async fn archive_id(&self) -> Result<Option<u64>, SourceClosed> {
        self.send(|reply| Command::ArchiveId { reply }).await
    }

    async fn last_keys(&self) -> Result<Option<LastKeys>, SourceClosed> {
        self.send(|reply| Command::LastKeys { reply }).await.map(Some)
    }

    async fn completed(&self, at_ms: i64) -> Result<(), SourceClosed> {
        self.send(|reply| Command::ArchiveCompleted { at_ms, reply }).await
    }

    async fn plan_writer(
        &self,
        found: Option<u64>,
        row: Option<WriterRow>,
        resyncs_older: bool,
    ) -> Result<Result<WriterPlan, WriterRefusal>, SourceClosed> {
        // Random: no other state may ever use the same id.
        let random = RandomState::new().build_hasher().finish();
        self.send(|reply| Command::PlanArchiveWriter { found, row, random, resyncs_older, reply }).await
    }

    async fn next_resync_chunk(&self, from: Option<ResyncCursor>) -> Result<ResyncStep, SourceClosed> {
        self.send(|reply| Command::NextResyncChunk { from, reply }).await
    }

    async fn acknowledge_resync_chunk(
        &self,
        from: ResyncCursor,
        next: ResyncCursor,
        postponed: Vec<OutboxKey>,
        at: WriterBeat,
    ) -> Result<bool, SourceClosed> {
        self.send(|reply| Command::AcknowledgeResyncChunk { from, next, postponed, at, reply }).await
    }

    async fn next_week_chunk(&self, request: WeekChunkRequest) -> Result<WeekChunk, SourceClosed> {
        self.send(|reply| Command::NextWeekChunk { request, reply }).await
    }

    async fn top_boards(
        &self,
        window: Option<WindowKey>,
        after: Option<TopBoardKey>,
    ) -> Result<TopBoards, SourceClosed> {
        self.send(|reply| Command::TopBoards { window, after, reply }).await
    }

    async fn tasks(&self) -> Result<Vec<OutboxEntry>, SourceClosed> {
        self.send(|reply| Command::ArchiveTasks { reply }).await
    }

    async fn bounds(&self) -> Result<Option<ArchiveBounds>, SourceClosed> {
        self.send(|reply| Command::ArchiveBounds { reply }).await.map(Some)
    }

    async fn site_totals(&self) -> Result<Option<SiteTotals>, SourceClosed> {
        self.send(|reply| Command::SiteTotals { reply }).await.map(Some)
    }

    async fn acknowledge(&self, entries: Vec<OutboxEntry>, at: WriterBeat) -> Result<(), SourceClosed> {
        self.send(|reply| Command::Acknowledge { entries, at, reply }).await
    }
}
