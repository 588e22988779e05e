//! Removes forgotten names from the log and the scan log, on a thread of its own that works in short
//! steps.
//!
//! The names and the times of the requests are in the state. A [`DoneRecord`] of each log has the
//! requests that are done, so after a restart the work continues. It ends when no file contains a
//! name: then the record is written.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::engine_thread::Command;
use crate::api::{ScanLogFault, ScanLogStatus};
use crate::clock::Clock;
use crate::log::{LogFileLock, SegmentRewriteError, SegmentRewriting};
use crate::model::NameHash;
use crate::rank::NameRules;
use crate::scan_log::{DoneRecord, ForgottenNames, LogRewriting, RewriteError};

/// Time from a fault to the next attempt, which reads only the files that are not done.
const RETRY: Duration = Duration::from_secs(60);

/// After this many batches of the log the thread pauses.
const BATCHES_PER_STEP: u64 = 100;

/// Pause after a step.
const STEP_PAUSE: Duration = Duration::from_millis(10);

/// The thread, and its orders. Ends the thread when dropped.
pub(super) struct LogRewriter {
    shared: Arc<Shared>,
    /// `None` only while it is dropped.
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// A log whose files have names: the directory of the log, or the path of the scan log.
#[derive(Clone, Debug)]
pub(super) struct RewrittenLog {
    pub path: PathBuf,
    pub lock: LogFileLock,
}

struct Shared {
    log: RewrittenLog,
    scan_log: Option<RewrittenLog>,
    is_stopping: AtomicBool,
    status: Mutex<ScanLogStatus>,
    /// Number of the newest order.
    newest: AtomicU64,
    clock: Arc<Clock>,
}

/// Why a name may remain in a log.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Log(#[from] SegmentRewriteError),
    #[error(transparent)]
    ScanLog(#[from] RewriteError),
    #[error("the daemon stops")]
    Stopped,
}

impl Fault {
    /// The kind as shown by `clqd status`.
    fn kind(&self) -> &'static str {
        match self {
            Fault::Log(SegmentRewriteError::DiskFull { .. }) => "disk_full",
            Fault::Log(_) => "unreadable",
            Fault::ScanLog(error) => error.kind(),
            Fault::Stopped => "stopped",
        }
    }
}

/// All forgotten names, and how names are read.
struct Order {
    number: u64,
    forgotten: Vec<(NameHash, i64)>,
    rules: NameRules,
    free_bytes_min: u64,
}

/// The order that is being carried out.
struct Work {
    number: u64,
    forgotten: Vec<(NameHash, i64)>,
    names: ForgottenNames,
    segments: SegmentRewriting,
    scan_log: Option<LogRewriting>,
}

/// Reads the status from other threads.
#[derive(Clone)]
pub(super) struct LogRewriterStatus(Arc<Shared>);

impl LogRewriterStatus {
    pub(super) fn get(&self) -> ScanLogStatus {
        self.0.status.lock().expect("status lock poisoned").clone()
    }
}

impl LogRewriter {
    /// Starts the thread, which waits for names. Deletes what an earlier process left. `commands`
    /// is weak because the engine thread owns the rewriter: the queue is closed when every other
    /// sender is dropped.
    pub(super) fn start(
        log: RewrittenLog,
        scan_log: Option<RewrittenLog>,
        commands: mpsc::WeakSender<Command>,
        clock: Arc<Clock>,
    ) -> std::io::Result<LogRewriter> {
        scan_log.iter().for_each(|log| LogRewriting::delete_leftover(&log.path));
        let shared = Arc::new(Shared {
            log,
            scan_log,
            is_stopping: AtomicBool::new(false),
            status: Mutex::default(),
            newest: AtomicU64::new(0),
            clock,
        });
        let (orders, received) = channel();
        let of_thread = shared.clone();
        let work = move || of_thread.run(&received, &commands);
        let thread = std::thread::Builder::new().name("clqd-forget".to_owned()).spawn(work)?;
        Ok(LogRewriter { shared, orders: Some(orders), thread: Some(thread) })
    }

    pub(super) fn status(&self) -> LogRewriterStatus {
        LogRewriterStatus(self.shared.clone())
    }

    /// The names that no log may contain: all forgotten ones, each with the time of the request,
    /// Unix ms. The scans until then must be in files.
    pub(super) fn set_forgotten(&self, forgotten: Vec<(NameHash, i64)>, rules: NameRules, free_bytes_min: u64) {
        let pending = self.shared.records().map(|record| record.pending(&forgotten)).max().unwrap_or(0);
        let number = self.shared.update(|status| {
            status.names_pending = pending as u64;
            self.shared.newest.fetch_add(1, Ordering::Relaxed) + 1
        });
        let order = Order { number, forgotten, rules, free_bytes_min };
        // The thread ends only if it panics.
        _ = self.orders.as_ref().expect("not dropped").send(order);
    }
}

impl Drop for LogRewriter {
    fn drop(&mut self) {
        self.shared.is_stopping.store(true, Ordering::Relaxed);
        self.orders = None;
        self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn run(&self, orders: &Receiver<Order>, commands: &mpsc::WeakSender<Command>) {
        let mut work: Option<Work> = None;
        loop {
            let newest = match work {
                Some(_) => orders.recv_timeout(RETRY),
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match newest.map(|first| orders.try_iter().last().unwrap_or(first)) {
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
                Ok(order) => work = Some(self.work_of(order)),
            }
            let Some(current) = &mut work else { continue };
            match self.remove_names(current, commands) {
                Ok(()) => {
                    self.finish(current.number);
                    work = None;
                }
                Err(Fault::Stopped) => return,
                Err(error) => self.report(&error),
            }
        }
    }

    fn work_of(&self, Order { number, forgotten, rules, free_bytes_min }: Order) -> Work {
        let names = ForgottenNames::new(forgotten.clone(), rules);
        let rewriting =
            |log: &RewrittenLog| LogRewriting::new(&log.path, names.clone(), log.lock.clone(), free_bytes_min);
        let scan_log = self.scan_log.as_ref().map(rewriting);
        let segments = SegmentRewriting::new(&self.log.path, self.log.lock.clone(), free_bytes_min);
        Work { number, forgotten, names, segments, scan_log }
    }

    /// Where the records of the logs are.
    fn record_paths(&self) -> impl Iterator<Item = PathBuf> {
        let scan_log = self.scan_log.as_ref().map(|log| log.path.clone());
        [self.log.path.join("log")].into_iter().chain(scan_log)
    }

    fn records(&self) -> impl Iterator<Item = DoneRecord> {
        self.record_paths().map(|path| DoneRecord::read(&path))
    }

    fn remove_names(&self, work: &mut Work, commands: &mpsc::WeakSender<Command>) -> Result<(), Fault> {
        if self.records().all(|record| record.pending(&work.forgotten) == 0) {
            return Ok(());
        }
        let mut batches = 0_u64;
        let mut step = || {
            batches += 1;
            if batches.is_multiple_of(BATCHES_PER_STEP) {
                std::thread::sleep(STEP_PAUSE);
            }
            !self.is_stopping.load(Ordering::Relaxed)
        };
        let mut pending = |files| self.update(|status| status.files_pending = files);
        let done = work.segments.run(&|event| work.names.replace_in(event), &mut step, &mut pending);
        if matches!(done, Err(SegmentRewriteError::Stopped)) {
            return Err(Fault::Stopped);
        }
        if let Some(rewriting) = &mut work.scan_log {
            match self.rewrite_scan_log(rewriting, commands) {
                Err(RewriteError::Stopped) => return Err(Fault::Stopped),
                done => done?,
            }
        }
        let segments = done?;
        tracing::info!(segments, "forgotten names are removed from the log");
        let record = DoneRecord::new(work.names.times_ms());
        for path in self.record_paths() {
            record.write(&path).map_err(|source| RewriteError::Write { path, source })?;
        }
        Ok(())
    }

    fn rewrite_scan_log(
        &self,
        rewriting: &mut LogRewriting,
        commands: &mpsc::WeakSender<Command>,
    ) -> Result<(), RewriteError> {
        let mut pause = |duration| {
            std::thread::sleep(duration);
            !self.is_stopping.load(Ordering::Relaxed)
        };
        if rewriting.active_has_name(&mut pause)? {
            let (reply, rotated) = oneshot::channel();
            // Error: the engine thread has ended.
            let commands = commands.upgrade().ok_or(RewriteError::Stopped)?;
            commands.blocking_send(Command::RotateLog { reply }).map_err(|_| RewriteError::Stopped)?;
            drop(commands);
            if !rotated.blocking_recv().map_err(|_| RewriteError::Stopped)? {
                return Err(RewriteError::NotRotated(rewriting.path().to_owned()));
            }
        }
        let mut pending = |files| self.update(|status| status.files_pending = files);
        let done = rewriting.rewrite_closed_files(&mut pause, &mut pending)?;
        let (files, lines, lines_unreadable) = (done.files, done.lines, done.lines_unreadable);
        tracing::info!(files, lines, lines_unreadable, "forgotten names are removed from the scan log");
        Ok(())
    }

    fn finish(&self, number: u64) {
        let fault = self.update(|status| {
            status.files_pending = 0;
            if number == self.newest.load(Ordering::Relaxed) {
                status.names_pending = 0;
            }
            status.fault.take()
        });
        if fault.is_some() {
            tracing::info!("the fault of the scan log is over");
        }
    }

    /// Logs a fault when it begins and when its kind changes.
    fn report(&self, error: &Fault) {
        let (kind, now_ms) = (error.kind(), self.clock.now_ms());
        let message = anyhow::Chain::new(error).map(ToString::to_string).collect::<Vec<_>>().join(": ");
        let is_new = self.update(|status| {
            let since_ms = status.fault.as_ref().map_or(now_ms, |fault| fault.since_ms);
            let is_new = status.fault.as_ref().is_none_or(|fault| fault.kind != kind);
            status.fault = Some(ScanLogFault { kind: kind.to_owned(), since_ms, message: message.clone() });
            is_new
        });
        if is_new {
            tracing::error!(kind, "the log still contains forgotten names: {message}; clqd retries every minute");
        }
    }

    fn update<T>(&self, change: impl FnOnce(&mut ScanLogStatus) -> T) -> T {
        change(&mut self.status.lock().expect("status lock poisoned"))
    }
}
