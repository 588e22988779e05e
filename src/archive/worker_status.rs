//! Reports the archive's status, and logs when a fault begins, changes its kind or ends.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Serialize;
use tokio::sync::watch;

use super::error::{ArchiveError, FaultKind};
use super::write_method::WriteMethod;
use crate::model::top_board::TopBoardKey;
use crate::view::ResyncProgress;

/// Status of the archive. Counts are since the worker started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkerStatus {
    /// `user@host:port/database`, with every host.
    pub target: String,
    /// The last attempt connected and could write.
    pub connected: bool,
    /// The host of the last connection, if the archive has several: `host:port`.
    pub host: Option<String>,
    /// How many rows are written at once; `None`: not connected yet.
    pub write_method: Option<WriteMethod>,
    /// The current fault, until a complete pass has succeeded.
    pub fault: Option<WorkerFault>,
    /// Progress of a resync; `None`: none is in progress.
    pub resync: Option<ResyncProgress>,
    /// Time of the last pass that wrote everything pending, Unix ms.
    pub last_success_ms: Option<i64>,
    pub last_error: Option<String>,
    pub last_error_ms: Option<i64>,
    /// Passes that wrote everything pending or half an interval's worth of a resync, and
    /// failed attempts.
    pub passes: u64,
    pub failures: u64,
    pub entries_written: u64,
    pub rows_written: u64,
    /// Times that a host failed while it was written and the next one was used.
    pub failovers: u64,
    /// Old rows that were deleted because of a retention setting.
    pub rows_deleted: u64,
    /// Entries that the database rejects; they remain pending.
    pub rejected: u64,
    /// Number of restarts of the worker after a panic.
    pub restarts: u64,
    /// A hash of each board of a window that is not closed, as it was published last. A board that has not changed is
    /// not compared with the archive.
    #[serde(skip)]
    pub published_boards: Arc<FxHashMap<TopBoardKey, u64>>,
}

/// A fault that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkerFault {
    pub kind: FaultKind,
    /// When it began, Unix ms; a change of kind keeps it.
    pub since_ms: i64,
    /// The latest message.
    pub message: String,
}

/// The worker's side of the status.
pub(super) struct StatusReporter {
    status: watch::Sender<WorkerStatus>,
    now_ms: Box<dyn Fn() -> i64 + Send + Sync>,
}

impl StatusReporter {
    pub fn new(
        status: watch::Sender<WorkerStatus>,
        now_ms: impl Fn() -> i64 + Send + Sync + 'static,
        target: String,
    ) -> StatusReporter {
        status.send_modify(|it| it.target = target);
        StatusReporter { status, now_ms: Box::new(now_ms) }
    }

    pub fn now_ms(&self) -> i64 {
        (self.now_ms)()
    }

    /// The kind of the current fault.
    pub fn fault_kind(&self) -> Option<FaultKind> {
        self.status.borrow().fault.as_ref().map(|fault| fault.kind)
    }

    /// The kind of the current fault, if the archive could not be used since it began.
    pub fn fault_without_connection(&self) -> Option<FaultKind> {
        let status = self.status.borrow();
        status.fault.as_ref().filter(|_| !status.connected).map(|fault| fault.kind)
    }

    pub fn published_boards(&self) -> Arc<FxHashMap<TopBoardKey, u64>> {
        self.status.borrow().published_boards.clone()
    }

    pub fn entries_written(&self) -> u64 {
        self.status.borrow().entries_written
    }

    pub fn update(&self, change: impl FnOnce(&mut WorkerStatus)) {
        self.status.send_modify(change);
    }

    /// Reports a connection. `host` is its host, if the archive has several.
    pub fn connected(&self, host: Option<String>) {
        let is_first = self.status.send_if_modified(|it| {
            let is_first = !it.connected && it.fault.is_none();
            it.connected = true;
            it.host = host;
            is_first
        });
        if is_first {
            let WorkerStatus { target, host, .. } = &*self.status.borrow();
            tracing::info!(archive = target, host, "archive connected");
        }
    }

    /// Reports how rows are written.
    pub fn write_method(&self, method: WriteMethod, why: &str) {
        let is_new = self.status.send_if_modified(|it| it.write_method.replace(method) != Some(method));
        if is_new {
            tracing::info!("rows of the archive are written with {method}: {why}");
        }
    }

    /// Reports that a host failed while it was written. The next one is used.
    pub fn failover(&self, error: &ArchiveError) {
        self.status.send_modify(|it| it.failovers += 1);
        tracing::warn!("a host of the archive failed: {error}; clqd continues with the next one");
    }

    /// Reports that a fault began or continues.
    pub fn fault(&self, kind: FaultKind, message: &str) {
        let now_ms = self.now_ms();
        let mut previous = None;
        self.status.send_modify(|it| {
            previous = it.fault.as_ref().map(|fault| fault.kind);
            let since_ms = it.fault.as_ref().map_or(now_ms, |fault| fault.since_ms);
            it.fault = Some(WorkerFault { kind, since_ms, message: message.to_owned() });
            (it.last_error, it.last_error_ms) = (Some(message.to_owned()), Some(now_ms));
        });
        match previous {
            Some(previous) if previous == kind => {}
            _ if kind == FaultKind::Panic => tracing::error!("{message}"),
            None => tracing::warn!("archive fault: {message}; clqd retries, nothing is lost"),
            Some(_) => tracing::warn!("the archive fault has changed: {message}; clqd retries, nothing is lost"),
        }
    }

    /// Reports that a complete pass has succeeded.
    pub fn end_fault(&self) {
        let mut ended = None;
        self.status.send_if_modified(|it| {
            ended = it.fault.take();
            ended.is_some()
        });
        if let Some(fault) = ended {
            let lasted_s = self.now_ms().saturating_sub(fault.since_ms).max(0) / 1_000;
            tracing::info!(lasted_s, "the archive fault has ended: everything pending is written");
        }
    }
}
