//! The commands to the engine thread. Each has a channel for its reply.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::api::{ApiError, Request, RescanSelector, Row, WeekRange};
use crate::archive::OutboxQuery;
use crate::config::Config;
use crate::daemon::rescan_results::ScanResults;
use crate::engine::{EngineSettings, WriterPlan, WriterRefusal};
use crate::model::archive::{
    ArchiveBounds, ArchiveJob, ExpectedName, ExpectedStep, ResendStep, ResyncStep, WeekChunk, WeekChunkRequest,
};
use crate::model::outbox::{OutboxEntry, OutboxKey, ResyncCursor, WriterBeat, WriterRow};
use crate::model::restore::LastKeys;
use crate::model::top_board::{SiteTotals, TopBoardKey, TopBoards};
use crate::model::{PlayerKey, ServerKey, WeekKey, WindowKey};
use crate::scan::ScanMode;
use crate::store::BackupSource;

pub(super) type RequestResult = Result<Vec<Row>, ApiError>;

/// Commands to the engine thread.
pub(in crate::daemon) enum Command {
    /// A request that has a complete answer: a change, or a read of boards that are not in memory. Such a read shows
    /// changes that are not on disk yet; a crash may undo them.
    Request {
        request: Request,
        reply: oneshot::Sender<RequestResult>,
    },
    /// Each result is sent when it arrives, one for each server requested; the channel ends
    /// after the last.
    Rescan {
        servers: RescanSelector,
        reply: oneshot::Sender<Result<StartedRescan, ApiError>>,
    },
    PendingJobs {
        query: OutboxQuery,
        reply: oneshot::Sender<Vec<(OutboxEntry, ArchiveJob)>>,
    },
    NextWeekChunk {
        request: WeekChunkRequest,
        reply: oneshot::Sender<WeekChunk>,
    },
    /// For a backup: the records of a checkpoint that has all events so far. Also returns the number of
    /// records that it lacks, because nothing is written while the disk is nearly full.
    BackupSource {
        reply: oneshot::Sender<(BackupSource, usize)>,
    },
    /// Returns the id of the archive that the state fills.
    ArchiveId {
        reply: oneshot::Sender<Option<u64>>,
    },
    /// Returns the largest keys that were ever assigned.
    LastKeys {
        reply: oneshot::Sender<LastKeys>,
    },
    /// Everything pending was in the archive at `at_ms`.
    ArchiveCompleted {
        at_ms: i64,
        reply: oneshot::Sender<()>,
    },
    /// Plans the right to write the archive, by the id and the last writer that were found there. `random` is an
    /// id that no state has.
    PlanArchiveWriter {
        found: Option<u64>,
        row: Option<WriterRow>,
        random: u64,
        resyncs_older: bool,
        reply: oneshot::Sender<Result<WriterPlan, WriterRefusal>>,
    },
    NextResyncChunk {
        from: Option<ResyncCursor>,
        reply: oneshot::Sender<ResyncStep>,
    },
    AcknowledgeResyncChunk {
        from: ResyncCursor,
        next: ResyncCursor,
        postponed: Vec<OutboxKey>,
        at: WriterBeat,
        reply: oneshot::Sender<bool>,
    },
    /// The published boards of a window, or of all running windows.
    TopBoards {
        window: Option<WindowKey>,
        after: Option<TopBoardKey>,
        reply: oneshot::Sender<TopBoards>,
    },
    /// The entries of the outbox that are tasks.
    ArchiveTasks {
        reply: oneshot::Sender<Vec<OutboxEntry>>,
    },
    ArchiveBounds {
        reply: oneshot::Sender<ArchiveBounds>,
    },
    SiteTotals {
        reply: oneshot::Sender<SiteTotals>,
    },
    Acknowledge {
        entries: Vec<OutboxEntry>,
        at: WriterBeat,
        reply: oneshot::Sender<()>,
    },
    /// The kept weeks of a range, or all.
    ArchivedWeeks {
        weeks: Option<WeekRange>,
        reply: oneshot::Sender<Result<Vec<WeekKey>, ApiError>>,
    },
    /// Queues a week of some servers for the archive. The reply comes when that is on disk.
    ResendWeek {
        week: WeekKey,
        from: ServerKey,
        reply: oneshot::Sender<Result<ResendStep, ApiError>>,
    },
    /// Begins a resync. Replies with the number of weeks of servers that it writes. `adopts`: also if another
    /// daemon has written the archive.
    ResendAll {
        adopts: bool,
        reply: oneshot::Sender<Result<u64, ApiError>>,
    },
    /// Reads values that the archive should have, from a server on.
    ExpectedWeeks {
        week: WeekKey,
        from: ServerKey,
        /// `None`: all.
        only: Option<Arc<BTreeSet<ServerKey>>>,
        reply: oneshot::Sender<Result<ExpectedStep, ApiError>>,
    },
    ExpectedWeekChunk {
        request: WeekChunkRequest,
        reply: oneshot::Sender<WeekChunk>,
    },
    /// Which of these weeks changed since the last `ExpectedWeeks`.
    ChangedWeeks {
        week: WeekKey,
        servers: Vec<ServerKey>,
        reply: oneshot::Sender<Vec<ServerKey>>,
    },
    ExpectedNames {
        players: Vec<PlayerKey>,
        reply: oneshot::Sender<Result<Vec<ExpectedName>, ApiError>>,
    },
    EndVerification {
        reply: oneshot::Sender<()>,
    },
    Reload {
        config: Box<Config>,
        /// The engine's settings of `config`.
        engine: Box<EngineSettings>,
        /// Messages for the admin about windows.
        reply: oneshot::Sender<Vec<String>>,
    },
    /// Stops sending probes; outcomes are still applied.
    StopScanning,
    /// Commit and end.
    Shutdown,
}

impl Command {
    /// Sends a command and waits for its reply. `None`: the engine thread has ended.
    pub(in crate::daemon) async fn send<T>(
        commands: &mpsc::Sender<Command>,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Option<T> {
        let (reply, received) = oneshot::channel();
        commands.send(command(reply)).await.ok()?;
        received.await.ok()
    }
}

/// A rescan in progress.
pub(in crate::daemon) struct StartedRescan {
    pub servers: u64,
    /// The mode that takes longest among the servers.
    pub mode: ScanMode,
    /// One row for each server.
    pub results: ScanResults,
}

/// Shows that the engine is alive: counts the scheduler's checks for due probes.
#[derive(Debug, Default)]
pub(in crate::daemon) struct Heartbeat(AtomicU64);

impl Heartbeat {
    pub(super) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::daemon) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
