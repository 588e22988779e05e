//! Removes forgotten names from the log, on a thread of its own that works in short steps.
//!
//! The names and the times of the requests are in the state. A [`DoneRecord`] has the requests that are
//! done, so after a restart the work continues. It ends when no segment contains a name: then the record is
//! written.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::api::{Fault, LogStatus};
use crate::clock::Clock;
use crate::log::{DoneRecord, ForgottenNames, LogFileLock, SegmentRewriteError, SegmentRewriting};
use crate::model::NameHash;
use crate::rank::NameRules;

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

struct Shared {
    /// The directory of the log.
    log: PathBuf,
    lock: LogFileLock,
    is_stopping: AtomicBool,
    status: Mutex<LogStatus>,
    /// Number of the newest order.
    newest: AtomicU64,
    clock: Arc<Clock>,
}

/// The kind of an error as shown by `clqd status`.
fn kind(error: &SegmentRewriteError) -> &'static str {
    match error {
        SegmentRewriteError::DiskFull { .. } => "disk_full",
        SegmentRewriteError::Log(_) => "unreadable",
        SegmentRewriteError::Stopped => "stopped",
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
}

/// Reads the status from other threads.
#[derive(Clone)]
pub(super) struct LogRewriterStatus(Arc<Shared>);

impl LogRewriterStatus {
    pub(super) fn get(&self) -> LogStatus {
        self.0.status.lock().expect("status lock poisoned").clone()
    }
}

impl LogRewriter {
    /// Starts the thread, which waits for names.
    pub(super) fn start(log: PathBuf, lock: LogFileLock, clock: Arc<Clock>) -> std::io::Result<LogRewriter> {
        let shared = Arc::new(Shared {
            log,
            lock,
            is_stopping: AtomicBool::new(false),
            status: Mutex::default(),
            newest: AtomicU64::new(0),
            clock,
        });
        let (orders, received) = channel();
        let of_thread = shared.clone();
        let work = move || of_thread.run(&received);
        let thread = std::thread::Builder::new().name("clqd-forget".to_owned()).spawn(work)?;
        Ok(LogRewriter { shared, orders: Some(orders), thread: Some(thread) })
    }

    pub(super) fn status(&self) -> LogRewriterStatus {
        LogRewriterStatus(self.shared.clone())
    }

    /// The names that the log may not contain: all forgotten ones, each with the time of the request,
    /// Unix ms. The newest segment begins after it.
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
    fn run(&self, orders: &Receiver<Order>) {
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
            match self.remove_names(current) {
                Ok(()) => {
                    self.finish(current.number);
                    work = None;
                }
                Err(SegmentRewriteError::Stopped) => return,
                Err(error) => self.report(&error),
            }
        }
    }

    fn work_of(&self, Order { number, forgotten, rules, free_bytes_min }: Order) -> Work {
        let names = ForgottenNames::new(forgotten.clone(), rules);
        let segments = SegmentRewriting::new(&self.log, self.lock.clone(), free_bytes_min);
        Work { number, forgotten, names, segments }
    }

    fn remove_names(&self, work: &mut Work) -> Result<(), SegmentRewriteError> {
        if DoneRecord::read(&self.log).pending(&work.forgotten) == 0 {
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
        let segments = work.segments.run(&|event| work.names.replace_in(event), &mut step, &mut pending)?;
        tracing::info!(segments, "forgotten names are removed from the log");
        Ok(DoneRecord::new(work.names.times_ms()).write(&self.log)?)
    }

    fn finish(&self, number: u64) {
        let fault = self.update(|status| {
            status.files_pending = 0;
            if number == self.newest.load(Ordering::Relaxed) {
                status.names_pending = 0;
            }
            status.fault_message = None;
            status.public.fault.take()
        });
        if fault.is_some() {
            tracing::info!("the fault of the log is over");
        }
    }

    /// Logs a fault when it begins and when its kind changes.
    fn report(&self, error: &SegmentRewriteError) {
        let (kind, now_ms) = (kind(error), self.clock.now_ms());
        let message = anyhow::Chain::new(error).map(ToString::to_string).collect::<Vec<_>>().join(": ");
        let is_new = self.update(|status| {
            let fault = status.public.fault.take();
            let since_ms = fault.as_ref().map_or(now_ms, |fault| fault.since_ms);
            let is_new = fault.is_none_or(|fault| fault.kind != kind);
            status.public.fault = Some(Fault { kind: kind.to_owned(), since_ms });
            status.fault_message = Some(message.clone());
            is_new
        });
        if is_new {
            tracing::error!(kind, "the log still contains forgotten names: {message}; clqd retries every minute");
        }
    }

    fn update<T>(&self, change: impl FnOnce(&mut LogStatus) -> T) -> T {
        change(&mut self.status.lock().expect("status lock poisoned"))
    }
}
