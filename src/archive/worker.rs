//! The archive's worker: fetches pending jobs from the [`JobSource`], writes them and
//! acknowledges them. It owns the connection and the back-off.
//!
//! It writes everything pending in passes, half an interval apart, so that the archive is
//! at most one interval old. A pass visits the keys once, in their order, so that rows
//! that change all the time cannot prolong it. While the database is unavailable the
//! worker backs off up to a limit. Nothing is lost: pending entries remain in the source.
//!
//! An archive that is new or incomplete gets a resync, chunk by chunk, in the same
//! passes: names, then servers, then all players, then weeks. A name is the name of a game,
//! a map or a player; a state is the values of a server or of a week. States from the
//! outbox wait until all names are written, because a state may refer to any name.
//!
//! A panic in the worker is a bug in clqd. It is reported as a fault, and the worker
//! restarts.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::connect::Archive;
use super::error::ArchiveError;
use super::settings::ArchiveSettings;
use super::write::CONFLICT_TRIES_MAX;
use crate::archive::status::{FaultKind, StatusReporter, WorkerStatus};
use crate::archive::week_chunks::WriteOutcome;
use crate::model::ServerKey;
use crate::model::archive::{
    ArchiveJob, OutboxEntry, OutboxKey, PartRequest, ResyncChunk, ResyncCursor, ResyncStep, WeekArchive, WeekChunk,
};

/// Most entries of one fetch: the database writes them in a few seconds.
const FETCH_ENTRIES_MAX: usize = 1_000;

/// Rows after which a source should stop a fetch: 20,000 rows of 16 numbers are 3 MB.
const FETCH_ROWS_MAX: usize = 20_000;

/// Pause between two requests for a chunk of a large week that the source is still
/// preparing. It leaves the source time for its other work.
const STEP_PAUSE: Duration = Duration::from_millis(20);

/// Pause before the next pass while a resync waits for the outbox to become shorter.
const RESYNC_PAUSE: Duration = Duration::from_secs(1);

/// Requests for a chunk that is still being prepared, between two keep-alive statements.
const STEPS_PER_KEEP_ALIVE: u32 = 500;

/// The boundary between names and states in key order. No entry has this key, because no
/// server has key 0.
const FIRST_STATE_KEY: OutboxKey = OutboxKey::Server(ServerKey(0));

/// A range of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutboxQuery {
    /// Only keys greater than this one; `None`: from the first.
    pub after: Option<OutboxKey>,
    /// Only keys smaller than this one; `None`: to the last.
    pub before: Option<OutboxKey>,
    /// Most entries to return.
    pub entries_max: usize,
    /// Stop after the entry with which the rows of `WeekArchive`s (players and
    /// maps) reach this number.
    pub rows_max: usize,
}

impl OutboxQuery {
    /// Whether the key is in this range.
    pub fn contains(&self, key: OutboxKey) -> bool {
        self.after.is_none_or(|after| key > after) && self.before.is_none_or(|before| key < before)
    }
}

/// The source has closed: the daemon is stopping and no longer responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the source of archive jobs has closed")]
pub struct SourceClosed;

/// The source of jobs: the outbox, and the engine that knows the current values.
pub trait JobSource: Send + Sync {
    /// Returns pending entries of a range in key order, with their current values. An empty
    /// list means that there are no more. Entries whose object no longer exists are not
    /// returned. All returned values must be durable.
    fn pending_jobs(
        &self,
        ask: OutboxQuery,
    ) -> impl Future<Output = Result<Vec<(OutboxEntry, ArchiveJob)>, SourceClosed>> + Send;

    /// `found` is the id in the archive: it identifies the daemon's state directory that
    /// last filled it. Returns the id that the archive must have from now on; the returned
    /// id is durable. If it differs from `found`, a resync begins.
    fn claim_archive(&self, found: Option<u64>) -> impl Future<Output = Result<u64, SourceClosed>> + Send {
        async move { Ok(found.unwrap_or_default()) }
    }

    /// Returns the resync chunk at a position; `None`: the first chunk that is not
    /// acknowledged. All returned values must be durable.
    fn next_resync_chunk(
        &self,
        _from: Option<ResyncCursor>,
    ) -> impl Future<Output = Result<ResyncStep, SourceClosed>> + Send {
        async { Ok(ResyncStep::Idle) }
    }

    /// Acknowledges that the chunk from one position to another is in the archive, except
    /// for `postponed`. Returns `false` if the resync has restarted at another position.
    fn acknowledge_resync_chunk(
        &self,
        _from: ResyncCursor,
        _next: ResyncCursor,
        _postponed: Vec<OutboxKey>,
    ) -> impl Future<Output = Result<bool, SourceClosed>> + Send {
        async { Ok(false) }
    }

    /// Returns a chunk of a week that was returned as [`ArchiveJob::LargeWeek`], or
    /// reports that the chunk is still being prepared. All returned values must be durable.
    fn next_week_chunk(&self, _ask: PartRequest) -> impl Future<Output = Result<WeekChunk, SourceClosed>> + Send {
        async { Ok(WeekChunk::NotAvailable) }
    }

    /// Acknowledges entries that are in the archive. They are removed from the outbox if
    /// their sequence number is unchanged.
    fn acknowledge(&self, entries: Vec<OutboxEntry>) -> impl Future<Output = Result<(), SourceClosed>> + Send;
}

/// Runs the worker until `stop` resolves. Then it writes what is pending, for at most
/// `drain_timeout_s` seconds. It also returns when the source closes. `now_ms` returns the
/// time, Unix ms, and is used for the status only.
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
    let mut worker = Worker { settings, source, report, previous: None, rejected: BTreeMap::new(), wait_ms: 0 };
    let drain_deadline = async {
        stop.await;
        stopping.store(true, Ordering::Relaxed);
        wake.notify_one();
        tokio::time::sleep(Duration::from_secs(drain_timeout_s.into())).await;
    };
    tokio::select! {
        biased;
        () = worker.run_with_restarts(&stopping, &wake) => {}
        () = drain_deadline => {
            tracing::warn!(
                seconds = drain_timeout_s,
                "the archive could not be updated in time; pending entries are written after the next start"
            );
        }
    }
}

struct Worker<S> {
    settings: ArchiveSettings,
    source: S,
    report: Arc<StatusReporter>,
    /// The database's id of the last connection, if it was not closed. The database may
    /// still keep it open, and with it the lock on the archive.
    previous: Option<u32>,
    /// Entries that the database rejects, and why.
    rejected: BTreeMap<OutboxKey, String>,
    /// The back-off after the last failure; 0 after a pass without one.
    wait_ms: u32,
}

/// The result of writing names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamesOutcome {
    Written,
    /// A player was removed: states fetched earlier are out of date.
    PlayersRemoved,
}

fn removes_player(job: &ArchiveJob) -> bool {
    matches!(job, ArchiveJob::PlayerRemoved { .. })
}

/// The state of a resync after a pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResyncOutcome {
    /// No resync is in progress.
    Done,
    /// The outbox must become shorter first.
    DrainOutboxFirst,
    /// Continues in the next pass. `has_names`: every name is in the archive.
    Paused { has_names: bool },
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
        while let Err(panic) = catch_panic(self.run_passes(stopping, wake)).await {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("no message");
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

    /// Waits. A stop ends the wait and resets the back-off. After a stop it waits only for
    /// the back-off after a failure.
    async fn pause(&mut self, wait: Duration, stopping: &AtomicBool, wake: &Notify) {
        let is_stopping = stopping.load(Ordering::Relaxed);
        if is_stopping && self.wait_ms == 0 {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = wake.notified(), if !is_stopping => self.wait_ms = 0,
        }
    }

    fn half_interval(&self) -> Duration {
        Duration::from_millis(u64::from(self.settings.interval_s) * 500)
    }

    /// Writes everything pending once, and half an interval's worth of a resync.
    async fn run_pass(&mut self) -> Result<ResyncOutcome, PassError> {
        let mut archive = Archive::reconnect(&self.settings, &mut self.previous).await?;
        archive.check_schema().await?;
        self.report.connected();
        let report = self.report.clone();
        archive
            .set_blocked_reporter(Arc::new(move |error: ArchiveError| report.fault(error.kind(), &error.to_string())));
        let found = archive.state_id().await?;
        let id = self.source.claim_archive(found).await?;
        let mut rejected = BTreeMap::new();
        self.write_names(&mut archive, &mut rejected).await?;
        let new_id = Some(id).filter(|_| found != Some(id));
        let resynced = self.resync(&mut archive, &mut rejected, new_id).await?;
        archive.checks_names = true;
        if resynced != (ResyncOutcome::Paused { has_names: false }) {
            self.write_states(&mut archive, &mut rejected).await?;
        }
        archive.close().await;
        self.previous = None;
        self.record_pass(rejected, resynced);
        Ok(resynced)
    }

    /// Writes the states of the outbox. Before each batch it writes the names that were added
    /// in the meantime.
    async fn write_states(
        &mut self,
        archive: &mut Archive,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), PassError> {
        let mut after = None;
        loop {
            let from = after.unwrap_or(FIRST_STATE_KEY);
            let jobs = self.source.pending_jobs(outbox_query(Some(from), None)).await?;
            let Some((last, _)) = jobs.last() else { return Ok(()) };
            let last = last.key;
            // Write names added since the fetch, because these jobs may refer to them. If
            // a player was removed since, the jobs may still contain that player: fetch
            // them again.
            if self.write_names(archive, rejected).await? == NamesOutcome::PlayersRemoved {
                continue;
            }
            after = Some(last);
            self.write(archive, jobs, rejected).await?;
        }
    }

    /// Continues a resync, if one is in progress, for half an interval. `new_id` is the id
    /// that the archive must get; `None`: it has the id already. The id is stored after the
    /// first write. If the archive belongs to another state, that write is rejected, and the
    /// archive keeps its own id.
    async fn resync(
        &mut self,
        archive: &mut Archive,
        rejected: &mut BTreeMap<OutboxKey, String>,
        mut new_id: Option<u64>,
    ) -> Result<ResyncOutcome, PassError> {
        let mut half_interval = pin!(tokio::time::sleep(self.half_interval()));
        let mut is_time_up = false;
        let mut step = self.source.next_resync_chunk(None).await?;
        loop {
            let ResyncChunk { from, next, names, records: states, mut postponed } = match step {
                ResyncStep::Chunk(chunk) => *chunk,
                ResyncStep::DrainFirst => return Ok(ResyncOutcome::DrainOutboxFirst),
                ResyncStep::Idle => {
                    if let Some(id) = new_id {
                        archive.set_state_id(id).await?;
                    }
                    return Ok(ResyncOutcome::Done);
                }
            };
            if is_time_up {
                return Ok(ResyncOutcome::Paused { has_names: from.is_past_names() });
            }
            self.report.update(|it| it.resync = Some(from.into()));
            let jobs = if states.is_empty() {
                names
            } else {
                let written = write_each(archive, &names).await?;
                postponed.extend(self.count_resynced(&names, written));
                if self.write_names(archive, rejected).await? == NamesOutcome::PlayersRemoved {
                    step = self.source.next_resync_chunk(Some(from)).await?;
                    continue;
                }
                states
            };
            // The next chunk is read while the database writes this one. Nothing of the
            // outbox may be written between reading that chunk and writing its names.
            archive.checks_names = new_id.is_some();
            let (written, following) =
                tokio::join!(write_each(archive, &jobs), self.source.next_resync_chunk(Some(next)));
            archive.checks_names = true;
            postponed.extend(self.count_resynced(&jobs, written?));
            if let Some(id) = new_id.take() {
                archive.set_state_id(id).await?;
            }
            step = match self.source.acknowledge_resync_chunk(from, next, postponed).await? {
                true if next != ResyncCursor::End => following?,
                _ => self.source.next_resync_chunk(None).await?,
            };
            tokio::select! {
                biased;
                () = &mut half_interval, if !is_time_up => is_time_up = true,
                () = std::future::ready(()) => {}
            }
        }
    }

    /// Counts a written resync chunk. Returns the keys that the database rejects.
    fn count_resynced(&self, jobs: &[ArchiveJob], written: Written) -> Vec<OutboxKey> {
        self.report.update(|it| {
            it.entries_written += (jobs.len() - written.rejected.len()) as u64;
            it.rows_written += written.rows;
        });
        written.rejected.into_iter().map(|(at, _)| jobs[at].key()).collect()
    }

    /// Writes the names of the outbox.
    async fn write_names(
        &mut self,
        archive: &mut Archive,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<NamesOutcome, PassError> {
        let mut after = None;
        let mut outcome = NamesOutcome::Written;
        loop {
            let jobs = self.source.pending_jobs(outbox_query(after, Some(FIRST_STATE_KEY))).await?;
            let Some((last, _)) = jobs.last() else { return Ok(outcome) };
            after = Some(last.key);
            if jobs.iter().any(|(entry, job)| removes_player(job) && !rejected.contains_key(&entry.key)) {
                outcome = NamesOutcome::PlayersRemoved;
            }
            self.write_jobs(archive, jobs, rejected).await?;
        }
    }

    /// Writes jobs, and large weeks after all others. If one is rejected, the others are still
    /// written.
    async fn write(
        &mut self,
        archive: &mut Archive,
        jobs: Vec<(OutboxEntry, ArchiveJob)>,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), PassError> {
        let is_large = |(_, job): &(OutboxEntry, ArchiveJob)| matches!(job, ArchiveJob::LargeWeek { .. });
        let (large, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_large);
        self.write_jobs(archive, jobs, rejected).await?;
        for (entry, job) in large {
            let ArchiveJob::LargeWeek { week, server } = job else { unreachable!("filtered above") };
            self.write_large_week(archive, entry, PartRequest::First { week, server }, rejected).await?;
        }
        Ok(())
    }

    /// Writes jobs that are not large weeks, and acknowledges those that are not rejected.
    async fn write_jobs(
        &mut self,
        archive: &mut Archive,
        jobs: Vec<(OutboxEntry, ArchiveJob)>,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), PassError> {
        let (entries, jobs): (Vec<OutboxEntry>, Vec<ArchiveJob>) = jobs.into_iter().unzip();
        let written = write_each(archive, &jobs).await?;
        let mut rejections = written.rejected.into_iter().peekable();
        let mut accepted = Vec::with_capacity(entries.len());
        for (at, entry) in entries.into_iter().enumerate() {
            match rejections.next_if(|(index, _)| *index == at) {
                Some((_, why)) => _ = rejected.insert(entry.key, why),
                None => accepted.push(entry),
            }
        }
        self.report.update(|it| {
            it.entries_written += accepted.len() as u64;
            it.rows_written += written.rows;
        });
        self.source.acknowledge(accepted).await?;
        Ok(())
    }

    /// Writes a large week chunk by chunk, in one transaction. If a player was removed or the
    /// transaction conflicts too often, the week remains pending.
    async fn write_large_week(
        &mut self,
        archive: &mut Archive,
        entry: OutboxEntry,
        ask: PartRequest,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), PassError> {
        let Some((moment, first)) = self.first_week_chunk(archive, ask).await? else { return Ok(()) };
        // Write names added since: the chunks refer to them.
        let written = match self.write_names(archive, rejected).await {
            Ok(NamesOutcome::Written) => self.write_week_chunks(archive, moment, first).await,
            Ok(NamesOutcome::PlayersRemoved) => Ok(None),
            Err(ended) => Err(ended),
        };
        self.source.next_week_chunk(PartRequest::Done { moment }).await?;
        match written {
            Ok(Some(rows)) => {
                self.report.update(|it| {
                    it.entries_written += 1;
                    it.rows_written += rows;
                });
                self.source.acknowledge(vec![entry]).await?;
            }
            Ok(None) => (),
            Err(PassError::Archive(error)) if error.is_rejected() => _ = rejected.insert(entry.key, error.to_string()),
            Err(ended) => return Err(ended),
        }
        Ok(())
    }

    /// Returns the first chunk of a large week, and the number of the source's copy of the
    /// rows. Waits while the source prepares it. `None`: the week has no chunks any more.
    async fn first_week_chunk(
        &mut self,
        archive: &mut Archive,
        ask: PartRequest,
    ) -> Result<Option<(u64, Box<WeekArchive>)>, PassError> {
        for step in 1_u32.. {
            match self.source.next_week_chunk(ask).await? {
                WeekChunk::Part { moment, week } => return Ok(Some((moment, week))),
                WeekChunk::NotAvailable => break,
                WeekChunk::Preparing => tokio::time::sleep(STEP_PAUSE).await,
            }
            if step % STEPS_PER_KEEP_ALIVE == 0 {
                archive.keep_alive().await?;
            }
        }
        Ok(None)
    }

    /// Writes all chunks of the copy with the number `moment` and returns the number of rows.
    /// `None`: the chunks no longer exist, or there were too many conflicts.
    async fn write_week_chunks(
        &mut self,
        archive: &mut Archive,
        moment: u64,
        first: Box<WeekArchive>,
    ) -> Result<Option<u64>, PassError> {
        let mut first = Some(first);
        for _ in 0..CONFLICT_TRIES_MAX {
            archive.begin_week_chunks().await?;
            let (mut rows, mut after) = (0, None);
            let has_conflict = loop {
                let part = match first.take() {
                    Some(first) => first,
                    None => match self.source.next_week_chunk(PartRequest::Next { version: moment, after }).await? {
                        WeekChunk::Part { week, .. } => week,
                        WeekChunk::Preparing | WeekChunk::NotAvailable => {
                            archive.rollback().await?;
                            return Ok(None);
                        }
                    },
                };
                let wrote = archive.write_week_chunk(&part).await?;
                let WriteOutcome::Done { rows: more } = wrote else { break true };
                rows += more;
                after = part.span.through;
                if after.is_none() {
                    break archive.commit_week_chunks().await? == WriteOutcome::Conflict;
                }
            };
            if !has_conflict {
                return Ok(Some(rows));
            }
        }
        tracing::warn!("a week with many rows conflicted with other writers of the archive; it is written later");
        Ok(None)
    }

    /// Reports the result of a pass that did not fail.
    fn record_pass(&mut self, rejected: BTreeMap<OutboxKey, String>, resynced: ResyncOutcome) {
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
        match rejected.values().next() {
            None => self.report.end_fault(),
            Some(why) => {
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

/// The result of writing jobs.
struct Written {
    rows: u64,
    /// Jobs that the database rejects, by index, and why.
    rejected: Vec<(usize, String)>,
}

/// Writes jobs. If one is rejected, the others are still written.
async fn write_each(archive: &mut Archive, jobs: &[ArchiveJob]) -> Result<Written, ArchiveError> {
    match archive.write(jobs).await {
        Ok(rows) => Ok(Written { rows, rejected: Vec::new() }),
        Err(error) if error.is_rejected() => {
            let mut written = Written { rows: 0, rejected: Vec::new() };
            for (at, job) in jobs.iter().enumerate() {
                match archive.write(std::slice::from_ref(job)).await {
                    Ok(rows) => written.rows += rows,
                    Err(error) if error.is_rejected() => written.rejected.push((at, error.to_string())),
                    Err(error) => return Err(error),
                }
            }
            Ok(written)
        }
        Err(error) => Err(error),
    }
}

/// Returns the output of a future, or its panic.
async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        // Unwind safety: after a panic the future is dropped. Only the worker is used
        // again, and its fields are consistent.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    })
    .await
}

fn outbox_query(after: Option<OutboxKey>, before: Option<OutboxKey>) -> OutboxQuery {
    OutboxQuery { after, before, entries_max: FETCH_ENTRIES_MAX, rows_max: FETCH_ROWS_MAX }
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
    use crate::model::MapKey;

    #[test]
    fn name_and_state_queries_do_not_overlap() {
        let names = outbox_query(None, Some(FIRST_STATE_KEY));
        let states = outbox_query(Some(FIRST_STATE_KEY), None);
        for key in [OutboxKey::Map(MapKey(1)), OutboxKey::Server(ServerKey(1))] {
            assert_ne!(names.contains(key), states.contains(key));
        }
        assert!(names.contains(OutboxKey::Map(MapKey(1))));
    }

    #[test]
    fn jitter_keeps_half_to_full_backoff() {
        for _ in 0..100 {
            let wait = with_jitter(1_000);
            assert!((500..=1_000).contains(&wait.as_millis()), "{wait:?}");
        }
        assert_eq!(with_jitter(0), Duration::ZERO);
    }
}
