//! Removes forgotten names from the scan log, on a thread of its own that works in short steps.
//!
//! The names and the times of the requests are in the state. [`DoneRecord`] has the requests that
//! are done, so after a restart the work continues. It ends when no file of the log contains a
//! name: then the record is written.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::engine_thread::Command;
use crate::api::{ScanLogFault, ScanLogStatus};
use crate::clock::Clock;
use crate::model::NameHash;
use crate::rank::NameRules;
use crate::scan_log::{DoneRecord, ForgottenNames, LogFileLock, LogRewriting, RewriteError};

/// Time from a fault to the next attempt, which reads only the files that are not done.
const RETRY: Duration = Duration::from_secs(60);

/// The thread, and its orders. Ends the thread when dropped.
pub(super) struct LogRewriter {
    shared: Arc<Shared>,
    /// `None` only while it is dropped.
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    log: PathBuf,
    lock: LogFileLock,
    is_stopping: AtomicBool,
    status: Mutex<ScanLogStatus>,
    /// Number of the newest order.
    newest: AtomicU64,
    clock: Arc<Clock>,
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
    rewriting: LogRewriting,
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
        log: &Path,
        lock: LogFileLock,
        commands: mpsc::WeakSender<Command>,
        clock: Arc<Clock>,
    ) -> std::io::Result<LogRewriter> {
        LogRewriting::delete_leftover(log);
        let shared = Arc::new(Shared {
            log: log.to_owned(),
            lock,
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

    /// The names that the log must not contain: all forgotten ones, each with the time of the
    /// request, Unix ms. The scans recorded until then must be in the files of the log.
    pub(super) fn set_forgotten(&self, forgotten: Vec<(NameHash, i64)>, rules: NameRules, free_bytes_min: u64) {
        let pending = DoneRecord::read(&self.shared.log).pending(&forgotten);
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
                Ok(Order { number, forgotten, rules, free_bytes_min }) => {
                    let names = ForgottenNames::new(forgotten.clone(), rules);
                    let rewriting = LogRewriting::new(&self.log, names, self.lock.clone(), free_bytes_min);
                    work = Some(Work { number, forgotten, rewriting });
                }
            }
            let Some(Work { number, forgotten, rewriting }) = &mut work else { continue };
            let is_done = DoneRecord::read(&self.log).pending(forgotten) == 0;
            match if is_done { Ok(()) } else { self.remove_names(rewriting, commands) } {
                Ok(()) => {
                    self.finish(*number);
                    work = None;
                }
                Err(RewriteError::Stopped) => return,
                Err(error) => self.report(&error),
            }
        }
    }

    fn remove_names(
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
                return Err(RewriteError::NotRotated(self.log.clone()));
            }
        }
        let mut pending = |files| self.update(|status| status.files_pending = files);
        let done = rewriting.rewrite_closed_files(&mut pause, &mut pending)?;
        let record = DoneRecord::new(rewriting.names().times_ms());
        record.write(&self.log).map_err(|source| RewriteError::Write { path: self.log.clone(), source })?;
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
    fn report(&self, error: &RewriteError) {
        let (kind, now_ms) = (error.kind(), self.clock.now_ms());
        let message = anyhow::Chain::new(error).map(ToString::to_string).collect::<Vec<_>>().join(": ");
        let is_new = self.update(|status| {
            let since_ms = status.fault.as_ref().map_or(now_ms, |fault| fault.since_ms);
            let is_new = status.fault.as_ref().is_none_or(|fault| fault.kind != kind);
            status.fault = Some(ScanLogFault { kind: kind.to_owned(), since_ms, message: message.clone() });
            is_new
        });
        if is_new {
            tracing::error!(kind, "the scan log still contains forgotten names: {message}; clqd retries every minute");
        }
    }

    fn update<T>(&self, change: impl FnOnce(&mut ScanLogStatus) -> T) -> T {
        change(&mut self.status.lock().expect("status lock poisoned"))
    }
}
