//! The archive's worker: fetches pending jobs from the [`JobSource`], writes them and
//! acknowledges them. It owns the connection and the back-off.
//!
//! It writes everything pending in passes, half an interval apart, so that the archive is
//! at most one interval old. A pass visits the keys once, in their order, so that rows
//! that change all the time cannot prolong it. While the database is unavailable the
//! worker backs off up to a limit. Nothing is lost: pending entries remain in the source.
//! If the archive has several hosts, the pass continues on the next one when one fails; the
//! worker backs off when all have failed.
//!
//! An archive that is new or incomplete gets a resync, chunk by chunk, in the same
//! passes: names, then servers, then all players, then weeks. A name is the name of a game,
//! a map or a player; a state is the values of a server or of a week. States from the
//! outbox wait until all names are written, because a state may refer to any name.
//!
//! A panic in the worker is a bug in clqd. It is reported as a fault, and the worker
//! restarts.

mod jobs;
mod large_week;
mod publish;
mod resync;
mod retention;

use std::any::Any;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, watch};

use self::publish::TaskOutcome;
use self::resync::ResyncOutcome;
use super::connect::{Archive, HostOrder, NameCheck};
use super::error::{ArchiveError, FaultKind};
use super::job_source::{JobSource, SourceClosed};
use super::settings::{ArchiveSettings, OnOlderDatabase};
use crate::archive::worker_status::{StatusReporter, WorkerStatus};
use crate::engine::WriterRefusal;
use crate::model::outbox::OutboxKey;

const OLDER_STOPS: &str = "Nothing is written to it (archive.on_older_database). To write everything to it again: clqd \
                           archive take-over";

/// Pause before the next pass while a resync waits for the outbox to become shorter.
const RESYNC_PAUSE: Duration = Duration::from_secs(1);

/// Runs the worker until `stop` resolves. Then it writes what is pending, for at most
/// `drain_timeout_s` seconds, unless the archive has a fault that lasts until an admin ends it, or could not be used
/// before. It also returns when the source closes. `now_ms` returns the time, Unix ms, and is used for the
/// status and for the interval of published boards only.
pub async fn run<S: JobSource>(
    settings: ArchiveSettings,
    source: S,
    now_ms: impl Fn() -> i64 + Send + Sync + 'static,
    stop: impl Future<Output = ()>,
    status: watch::Sender<WorkerStatus>,
) {
    let stopping = AtomicBool::new(false);
    let wake = Notify::new();
    let drain_timeout_s = settings.drain_timeout_s;
    let report = Arc::new(StatusReporter::new(status, now_ms, settings.target()));
    let at_stop = report.clone();
    let host_count = settings.parsed_url().map_or(1, |url| url.host_count());
    let mut worker = Worker {
        settings,
        source,
        report,
        host_count,
        hosts: HostOrder::default(),
        rejected: BTreeMap::new(),
        wait_ms: 0,
        published_ms: None,
        has_checked_keys: false,
        fills_other_archive: false,
        load_data_failed: false,
    };
    let drain_deadline = async {
        stop.await;
        if let Some(kind) = at_stop.fault_without_connection() {
            return log_undrained(kind);
        }
        stopping.store(true, Ordering::Relaxed);
        wake.notify_one();
        tokio::time::sleep(Duration::from_secs(drain_timeout_s.into())).await;
        tracing::warn!(
            seconds = drain_timeout_s,
            "the archive could not be updated in time; pending entries are written later"
        );
    };
    tokio::select! {
        biased;
        () = worker.run_with_restarts(&stopping, &wake) => {}
        () = drain_deadline => {}
    }
}

struct Worker<S> {
    settings: ArchiveSettings,
    source: S,
    report: Arc<StatusReporter>,
    /// Number of hosts of the archive.
    host_count: usize,
    hosts: HostOrder,
    /// Entries that the database rejects, and why.
    rejected: BTreeMap<OutboxKey, String>,
    /// When boards and totals were published last, Unix ms.
    published_ms: Option<i64>,
    /// The archive has no key that this state has not assigned.
    has_checked_keys: bool,
    /// A resync fills an archive that had another id and was not empty.
    fills_other_archive: bool,
    /// LOAD DATA failed once, so INSERT is used until the next start.
    load_data_failed: bool,
    /// The back-off after the last failure; 0 after a pass without one.
    wait_ms: u32,
}

/// What a pass has written.
struct Written {
    /// Entries that the database rejects, and why.
    rejected: BTreeMap<OutboxKey, String>,
    resynced: ResyncOutcome,
    /// No task is left.
    is_complete: bool,
    /// What is wrong with the archive although everything was written.
    fault: Option<ArchiveError>,
}

/// Why a pass ended early.
enum PassError {
    Source,
    Archive(ArchiveError),
}

impl From<SourceClosed> for PassError {
    fn from(_: SourceClosed) -> PassError {
        PassError::Source
    }
}

impl From<ArchiveError> for PassError {
    fn from(error: ArchiveError) -> PassError {
        PassError::Archive(error)
    }
}

impl<S: JobSource> Worker<S> {
    /// Runs passes until the worker is stopped. Restarts after a panic.
    async fn run_with_restarts(&mut self, stopping: &AtomicBool, wake: &Notify) {
        // Unwind safety: after a panic the future is dropped. Only the worker is used again,
        // and its fields are consistent.
        while let Err(panic) = AssertUnwindSafe(self.run_passes(stopping, wake)).catch_unwind().await {
            let text = panic_message(&*panic);
            let wait = self.next_backoff();
            let message = format!("the archive's worker panicked, which is a bug in clqd: {text}; it restarts");
            self.report.fault(FaultKind::Panic, &message);
            self.report.update(|it| {
                it.connected = false;
                it.failures += 1;
                it.restarts += 1;
            });
            self.pause(wait, stopping, wake).await;
        }
    }

    async fn run_passes(&mut self, stopping: &AtomicBool, wake: &Notify) {
        loop {
            // Read before the pass: a pass that started before the stop may have missed the
            // engine's last entries.
            let is_last_pass = stopping.load(Ordering::Relaxed);
            if let (true, Some(kind)) = (is_last_pass, self.report.fault_kind())
                && kind.is_permanent()
            {
                return log_undrained(kind);
            }
            let wait = match self.run_pass().await {
                Ok(ResyncOutcome::Done) if is_last_pass => return,
                Ok(ResyncOutcome::Paused { .. }) => continue,
                Ok(ResyncOutcome::DrainOutboxFirst) => RESYNC_PAUSE,
                Ok(ResyncOutcome::Done) => self.half_interval(),
                Err(PassError::Source) => return,
                Err(PassError::Archive(error)) => self.record_failure(&error),
            };
            self.pause(wait, stopping, wake).await;
        }
    }

    /// Waits. A stop, or an admin's request for the next pass, ends the wait and resets the back-off. After a stop it
    /// waits only for the back-off after a failure.
    async fn pause(&mut self, wait: Duration, stopping: &AtomicBool, wake: &Notify) {
        let is_stopping = stopping.load(Ordering::Relaxed);
        if is_stopping && self.wait_ms == 0 {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            // This also applies if the stop was requested during the pass.
            () = wake.notified() => self.wait_ms = 0,
            () = self.source.wanted() => self.wait_ms = 0,
        }
    }

    fn half_interval(&self) -> Duration {
        Duration::from_millis(u64::from(self.settings.interval_s) * 500)
    }

    /// Writes everything pending once, and half an interval's worth of a resync. When a host
    /// fails, it continues with the next one at once, until all hosts have failed in a row
    /// without an entry written in between.
    ///
    /// Continuing is safe at any point. Entries that are not acknowledged are written again,
    /// and each transaction may be repeated, also if it was committed and its reply was lost.
    async fn run_pass(&mut self) -> Result<ResyncOutcome, PassError> {
        let mut failures = Vec::new();
        loop {
            let written_before = self.report.entries_written();
            let error = match self.run_pass_on_host().await {
                Err(PassError::Archive(error)) if error.is_of_host() && self.host_count > 1 => error,
                result => return result,
            };
            if self.report.entries_written() > written_before {
                failures.clear();
            }
            self.hosts.first_failed(self.host_count);
            failures.push(error);
            if failures.len() == self.host_count {
                return Err(ArchiveError::all_hosts(self.settings.target(), failures).into());
            }
            self.report.failover(&failures[failures.len() - 1]);
        }
    }

    async fn run_pass_on_host(&mut self) -> Result<ResyncOutcome, PassError> {
        let mut archive = Archive::reconnect(&self.settings, &mut self.hosts).await?;
        archive.check_schema().await?;
        self.report.connected(Some(archive.host.clone()).filter(|_| self.host_count > 1));
        if self.load_data_failed {
            archive.stop_load_data();
        }
        self.report.write_method(archive.write_method, archive.write_method_reason());
        let written = self.write_pending(&mut archive).await;
        self.load_data_failed |= archive.load_data_failed;
        self.report.write_method(archive.write_method, archive.write_method_reason());
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                // Otherwise a cluster keeps other writers out until the lease ends.
                if matches!(&error, PassError::Archive(error) if !error.is_of_host()) {
                    archive.release_epoch().await;
                }
                return Err(error);
            }
        };
        archive.close().await;
        self.hosts.closed();
        let resynced = written.resynced;
        if resynced == ResyncOutcome::Done && written.rejected.is_empty() && written.is_complete {
            self.source.completed(self.report.now_ms()).await?;
        }
        self.record_pass(written);
        Ok(resynced)
    }

    /// Writes what is pending.
    async fn write_pending(&mut self, archive: &mut Archive) -> Result<Written, PassError> {
        let report = self.report.clone();
        archive
            .set_blocked_reporter(Arc::new(move |error: ArchiveError| report.fault(error.kind(), &error.to_string())));
        let (id, found) = self.become_writer(archive).await?;
        let (mut rejected, mut is_complete, mut fault) = (BTreeMap::new(), false, None);
        let new_id = Some(id).filter(|_| found != Some(id));
        let repairs = new_id.is_none() && self.source.repairs().await?;
        archive.name_check = if repairs { NameCheck::Delete } else { NameCheck::Refuse };
        self.write_names(archive, &mut rejected).await?;
        if new_id.is_some() {
            self.forget_published();
        }
        let resynced = self.resync(archive, &mut rejected, new_id, repairs).await?;
        if resynced != (ResyncOutcome::Paused { has_names: false }) {
            self.write_states(archive, &mut rejected).await?;
            // Boards have the positions of the window before, whose last boards are a task.
            self.run_tasks(archive, &mut rejected, |key| key != OutboxKey::LaterRows).await?;
            self.publish(archive, &mut rejected).await?;
            // Deletions are last: one that fails prevents nothing else.
            self.run_tasks(archive, &mut rejected, |key| key == OutboxKey::LaterRows).await?;
            fault = self.delete_old_rows(archive).await?;
            is_complete = self.source.tasks().await?.is_empty();
        }
        Ok(Written { rejected, resynced, is_complete, fault })
    }

    /// Does some tasks of the outbox, up to a number, or to the first one that cannot be done yet: otherwise the source would
    /// read the boards of many windows into memory. The others are left to the next pass.
    async fn run_tasks(
        &mut self,
        archive: &mut Archive,
        rejected: &mut BTreeMap<OutboxKey, String>,
        is_wanted: impl Fn(OutboxKey) -> bool,
    ) -> Result<(), PassError> {
        for task in self.source.tasks().await?.into_iter().filter(|task| is_wanted(task.key)) {
            let outcome = match task.key {
                OutboxKey::TopBoards(window) => self.finish_window(archive, window, rejected).await,
                OutboxKey::LaterRows => self.delete_later_rows(archive).await,
                key => unreachable!("{key:?} is no task"),
            };
            match outcome {
                Ok(TaskOutcome::Done) => {
                    self.report.update(|it| it.entries_written += 1);
                    self.source.acknowledge(vec![task], archive.acknowledged()).await?;
                }
                Ok(TaskOutcome::Later) => return Ok(()),
                Err(PassError::Archive(error)) if error.is_rejected() => {
                    rejected.insert(task.key, error.to_string());
                }
                Err(ended) => return Err(ended),
            }
        }
        Ok(())
    }

    /// Takes the right to write, after everything that speaks against it was checked. Returns the id that the
    /// archive must have, and the one that it has.
    async fn become_writer(&mut self, archive: &mut Archive) -> Result<(u64, Option<u64>), PassError> {
        let state_id = self.source.archive_id().await?;
        let found = archive.state_id().await?;
        // This is first, because the archive is claimed only while no other daemon writes it.
        let row = archive.last_writer(state_id).await?;
        let is_other_archive = state_id.is_none() || found != state_id;
        let must_check = is_other_archive || !self.has_checked_keys && !self.source.repairs().await?;
        if must_check && let Some(last_keys) = self.source.last_keys().await? {
            archive.check_last_keys(last_keys).await?;
            self.has_checked_keys = true;
        }
        if is_other_archive {
            let sample = archive.sampled_keys().await?;
            self.fills_other_archive = !sample.is_empty();
            archive.compare_names(&self.source.objects(sample).await?).await?;
        }
        let resyncs_older = self.settings.on_older_database == OnOlderDatabase::Resync;
        let plan = match self.source.plan_writer(found, row, resyncs_older).await? {
            Ok(plan) => plan,
            Err(WriterRefusal::Older) => return Err(archive.older(OLDER_STOPS).into()),
            Err(WriterRefusal::WrittenByOther) => return Err(archive.written_by_other().into()),
        };
        if plan.is_older {
            let error = archive.older("Everything is written to it again");
            self.report.fault(error.kind(), &error.to_string());
            self.forget_published();
        }
        archive.take_epoch(plan.previous, plan.epoch, Some(plan.id)).await?;
        Ok((plan.id, found))
    }

    /// Everything is published again: the archive may not have it.
    fn forget_published(&mut self) {
        self.published_ms = None;
        self.report.update(|it| it.published_boards = Arc::default());
    }

    /// Reports the result of a pass that did not fail.
    fn record_pass(&mut self, written: Written) {
        let Written { rejected, resynced, is_complete: _, fault } = written;
        self.wait_ms = 0;
        for (key, why) in &rejected {
            if self.rejected.get(key) != Some(why) {
                tracing::error!(?key, "{why}");
            }
        }
        let now_ms = self.report.now_ms();
        self.report.update(|it| {
            it.passes += 1;
            it.rejected = rejected.len() as u64;
            if resynced == ResyncOutcome::Done {
                it.resync = None;
                if rejected.is_empty() {
                    it.last_success_ms = Some(now_ms);
                }
            }
        });
        match (rejected.values().next(), fault) {
            (None, None) => self.report.end_fault(),
            (None, Some(fault)) => self.report.fault(fault.kind(), &fault.to_string()),
            (Some(why), _) => {
                let message = format!("{} entries remain pending, the first: {why}", rejected.len());
                self.report.fault(FaultKind::Rejected, &message);
            }
        }
        self.rejected = rejected;
    }

    /// Reports a failed pass and returns the back-off.
    fn record_failure(&mut self, error: &ArchiveError) -> Duration {
        self.report.fault(error.kind(), &error.to_string());
        self.report.update(|it| {
            it.connected = false;
            it.failures += 1;
        });
        self.next_backoff()
    }

    /// Returns the back-off after a failure: longer each time.
    fn next_backoff(&mut self) -> Duration {
        let (min, max) = (self.settings.backoff_ms_min, self.settings.backoff_ms_max);
        self.wait_ms = self.wait_ms.saturating_mul(2).clamp(min, max);
        with_jitter(self.wait_ms)
    }
}

/// Logs that a stop leaves entries pending.
fn log_undrained(kind: FaultKind) {
    let kind = kind.name();
    tracing::warn!(kind, "the archive has a fault; what is pending for it is written later");
}

/// The message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let message = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    message.unwrap_or("no message")
}

/// Returns a random duration from half of `wait_ms` to all of it, so that many daemons do
/// not reconnect at the same time.
fn with_jitter(wait_ms: u32) -> Duration {
    let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let half = u64::from(wait_ms / 2);
    Duration::from_millis(u64::from(wait_ms) - half + random % (half + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_keeps_half_to_full_backoff() {
        for _ in 0..100 {
            let wait = with_jitter(1_000);
            assert!((500..=1_000).contains(&wait.as_millis()), "{wait:?}");
        }
        assert_eq!(with_jitter(0), Duration::ZERO);
    }
}
