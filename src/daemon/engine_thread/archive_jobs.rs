//! What the archive's worker asks of the engine: jobs, in steps of some milliseconds, and what it has done.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::EngineThread;
use super::handle::EngineHandle;
use crate::archive::{JobSource, OutboxQuery, SourceClosed};
use crate::daemon::views::View;
use crate::engine::{BegunJob, StoreReader, WriterPlan, WriterRefusal};
use crate::log::LogEvent;
use crate::model::WindowKey;
use crate::model::archive::{ArchiveBounds, ArchiveJob, ResyncStep, WeekChunk, WeekChunkRequest};
use crate::model::outbox::{ArchiveStep, OutboxEntry, OutboxKey, ResyncCursor, WriterBeat, WriterRow};
use crate::model::restored::LastKeys;
use crate::model::top_board::{SiteTotals, TopBoardKey, TopBoards};
use crate::state::State;
use crate::view::ClockTrust;

/// Names or servers in one chunk of a resync: 10 ms.
const RESYNC_STEPS_MAX: usize = 2_000;

/// Rows of weeks after which a chunk of a resync ends: 10 ms.
const RESYNC_ROWS_MAX: usize = 5_000;

/// Published boards in one answer: 1 ms.
const TOP_BOARDS_MAX: usize = 50;

/// The value of an entry; `None`: the object was deleted.
type ReadJob = (OutboxEntry, Option<ArchiveJob>);

/// Jobs to be archived, and the last of all entries that were read for them.
type FinishedJobs = (Vec<(OutboxEntry, ArchiveJob)>, Option<OutboxKey>);

/// Jobs of the archive that have begun.
enum BegunJobs {
    Read(Vec<ReadJob>),
    /// To be read from this view.
    OfView(Arc<View>, Vec<BegunJob>),
}

/// Reads on a thread where it may wait for the disk. A panic there is one of the archive's worker, which reports it.
async fn on_thread<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, SourceClosed> {
    match tokio::task::spawn_blocking(read).await {
        Ok(read) => Ok(read),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(SourceClosed),
    }
}

impl JobSource for EngineHandle {
    async fn pending_jobs(&self, mut query: OutboxQuery) -> Result<Vec<(OutboxEntry, ArchiveJob)>, SourceClosed> {
        loop {
            let begun = self.call(move |thread| thread.begin_jobs(query)).await?;
            let read = match begun {
                BegunJobs::Read(jobs) => Ok(jobs),
                BegunJobs::OfView(view, begun) => {
                    on_thread(move || view.model().archive_jobs(view.reader(), begun, query.rows_max)).await?
                }
            };
            let finished = self.call_later(move |thread, reply| {
                let finished = thread.finish_jobs(read?)?;
                thread.archive_when_synced(reply, finished);
                Ok(())
            });
            let (jobs, last) = finished.await?;
            match last {
                Some(_) if jobs.is_empty() => query.after = last,
                _ => return Ok(jobs),
            }
        }
    }

    /// The worker asks this before it writes anything.
    async fn archive_id(&self) -> Result<Option<u64>, SourceClosed> {
        let id = self.call_later(|thread, reply| {
            thread.reply_when_certain(reply, thread.state.engine.model().archive_id());
            Ok(())
        });
        Ok(id.await?)
    }

    async fn last_keys(&self) -> Result<Option<LastKeys>, SourceClosed> {
        Ok(self.call(|thread| Ok(Some(thread.state.engine.model().last_keys()))).await?)
    }

    async fn objects(&self, keys: Vec<OutboxKey>) -> Result<Vec<ArchiveJob>, SourceClosed> {
        let objects = self.call(move |thread| {
            let State { engine, store } = &thread.state;
            Ok(engine.model().archive_objects(store, &keys)?)
        });
        Ok(objects.await?)
    }

    async fn repairs(&self) -> Result<bool, SourceClosed> {
        Ok(self.call(|thread| Ok(thread.state.engine.model().repairs_archive())).await?)
    }

    async fn completed(&self, at_ms: i64) -> Result<(), SourceClosed> {
        // Committed at the commit interval.
        let completed = self.call(move |thread| {
            // While the disk is nearly full, nothing is given to the worker, although entries may be left.
            if !thread.disk.is_paused() {
                thread.state.engine.archive_completed(at_ms);
            }
            Ok(())
        });
        Ok(completed.await?)
    }

    async fn plan_writer(
        &self,
        found: Option<u64>,
        row: Option<WriterRow>,
        resyncs_older: bool,
    ) -> Result<Result<WriterPlan, WriterRefusal>, SourceClosed> {
        // Random: no other state may ever use the same id.
        let random = RandomState::new().build_hasher().finish();
        let plan = self.call_later(move |thread, reply| {
            let plan = thread.plan_archive_writer(found, row, random, resyncs_older)?;
            thread.reply_when_synced(reply, plan);
            Ok(())
        });
        Ok(plan.await?)
    }

    async fn next_resync_chunk(&self, from: Option<ResyncCursor>) -> Result<ResyncStep, SourceClosed> {
        let step = self.call_later(move |thread, reply| {
            let step = thread.next_resync_chunk(from)?;
            thread.archive_when_synced(reply, step);
            Ok(())
        });
        Ok(step.await?)
    }

    async fn acknowledge_resync_chunk(
        &self,
        from: ResyncCursor,
        next: ResyncCursor,
        postponed: Vec<OutboxKey>,
        at: WriterBeat,
    ) -> Result<bool, SourceClosed> {
        // Committed with the next chunk or at the commit interval. A crash before that repeats a chunk.
        let acknowledged = self.call(move |thread| {
            thread.state.engine.archive_acknowledged(at);
            Ok(thread.state.engine.acknowledge_resync(from, next, &postponed))
        });
        Ok(acknowledged.await?)
    }

    async fn next_week_chunk(&self, request: WeekChunkRequest) -> Result<WeekChunk, SourceClosed> {
        let chunk = self.call_later(move |thread, reply| {
            let chunk = thread.next_week_chunk(request)?;
            thread.archive_when_synced(reply, chunk);
            Ok(())
        });
        Ok(chunk.await?)
    }

    async fn top_boards(
        &self,
        window: Option<WindowKey>,
        after: Option<TopBoardKey>,
    ) -> Result<TopBoards, SourceClosed> {
        let boards = self.call_later(move |thread, reply| {
            // Boards may show changes that are not on disk; the archive must not.
            thread.commit()?;
            let boards = thread.top_boards(window, after);
            thread.archive_when_synced(reply, boards);
            Ok(())
        });
        Ok(boards.await?)
    }

    async fn wanted(&self) {
        self.archive_wanted().await;
    }

    async fn tasks(&self) -> Result<Vec<OutboxEntry>, SourceClosed> {
        let tasks = self.call(|thread| {
            thread.commit()?;
            Ok(thread.state.engine.model().archive_tasks(&thread.state.store))
        });
        Ok(tasks.await?)
    }

    async fn bounds(&self) -> Result<Option<ArchiveBounds>, SourceClosed> {
        let bounds = self.call(|thread| {
            let is_time_trusted = thread.clock.status().trust != ClockTrust::Untrusted;
            Ok(Some(ArchiveBounds { is_time_trusted, ..thread.state.engine.model().archive_bounds() }))
        });
        Ok(bounds.await?)
    }

    async fn site_totals(&self) -> Result<Option<SiteTotals>, SourceClosed> {
        // It reads all servers.
        let view = self.call(|thread| Ok(thread.publisher.views().current())).await?.map_err(|_| SourceClosed)?;
        Ok(Some(on_thread(move || view.model().site_totals()).await?))
    }

    async fn acknowledge(&self, entries: Vec<OutboxEntry>, at: WriterBeat) -> Result<(), SourceClosed> {
        let acknowledged = self.call(move |thread| {
            thread.state.engine.acknowledge_archived(&entries);
            thread.state.engine.archive_acknowledged(at);
            thread.commit()
        });
        Ok(acknowledged.await?)
    }
}

impl EngineThread {
    fn next_week_chunk(&mut self, request: WeekChunkRequest) -> anyhow::Result<WeekChunk> {
        let chunk = self.state.engine.week_chunk(&self.state.store, request)?;
        if !matches!(chunk, WeekChunk::Chunk { .. }) {
            return Ok(chunk);
        }
        self.commit()?;
        Ok(if self.disk.is_paused() { WeekChunk::NotAvailable } else { chunk })
    }

    /// The next published boards of a window, or of all windows that are not closed. Boards that are not in memory
    /// are read into memory.
    fn top_boards(&mut self, window: Option<WindowKey>, after: Option<TopBoardKey>) -> TopBoards {
        let engine = &mut self.state.engine;
        if let Some(window) = window {
            if !engine.model().has_boards(window) {
                return TopBoards::Deleted;
            }
            // Not evicted next.
            engine.model().touch_boards(window);
        }
        let windows = window.map_or_else(|| engine.model().published_windows(), |window| vec![window]);
        let missing = windows.into_iter().filter(|window| engine.model().boards(*window).is_none());
        let outdated = engine.model().windows_with_stale_order();
        missing.chain(outdated).for_each(|window| self.boards.enqueue(window));
        match (window, self.disk.is_paused()) {
            (Some(window), is_paused) if is_paused || !engine.model().has_final_boards(window) => TopBoards::Building,
            // Only what is on disk is archived.
            (None, true) => TopBoards::Next(Vec::new()),
            // Windows that run are published without those of a new daemon, which has none before the first scan.
            _ => TopBoards::Next(engine.model().top_boards(window, after, TOP_BOARDS_MAX)),
        }
    }

    /// Applies and records an event that changes what is archived.
    pub(super) fn apply_archive_step(&mut self, step: ArchiveStep) {
        self.state.engine.apply_archive_step(step);
        // No scan that follows is earlier.
        self.record(&LogEvent::Archive { t_ms: self.last_outcome_ms, step });
    }

    /// Sends what will be archived when the log is on disk until its changes.
    fn archive_when_synced<T: Send + 'static>(&mut self, reply: oneshot::Sender<T>, answer: T) {
        match self.disk.is_paused() {
            // Nothing is written, and the answer has nothing to archive.
            true => _ = reply.send(answer),
            false => self.reply_when_synced(reply, answer),
        }
    }

    /// Chooses the next epoch of the archive's writer, and records what that changes.
    fn plan_archive_writer(
        &mut self,
        found: Option<u64>,
        row: Option<WriterRow>,
        random: u64,
        resyncs_older: bool,
    ) -> anyhow::Result<Result<WriterPlan, WriterRefusal>> {
        let plan = self.state.engine.model().plan_archive_writer(found, row, random, resyncs_older);
        let plan = plan.map(|(plan, steps)| {
            steps.into_iter().for_each(|step| self.apply_archive_step(step));
            plan
        });
        self.commit()?;
        Ok(plan)
    }

    fn next_resync_chunk(&mut self, from: Option<ResyncCursor>) -> anyhow::Result<ResyncStep> {
        self.commit()?;
        if self.disk.is_paused() {
            // Only what is on disk is archived.
            return Ok(ResyncStep::DrainFirst);
        }
        let State { engine, store } = &self.state;
        Ok(engine.model().resync_chunk(store, from, RESYNC_STEPS_MAX, RESYNC_ROWS_MAX)?)
    }

    /// Begins the next jobs. They are read from a view, so that scans do not wait, unless the view of the last commit is
    /// delayed: an older one would lack changes.
    fn begin_jobs(&mut self, query: OutboxQuery) -> anyhow::Result<BegunJobs> {
        self.commit()?;
        if self.disk.is_paused() {
            // New changes do not get on disk, and only what is there may be archived.
            return Ok(BegunJobs::Read(Vec::new()));
        }
        let State { engine, store } = &mut self.state;
        let entries = engine.model().archive_entries(store, query.after, query.before, query.entries_max);
        let begun = engine.begin_archive_jobs(entries, query.rows_max);
        match self.publisher.views().current() {
            Ok(view) if !self.publisher.is_behind() => Ok(BegunJobs::OfView(view, begun)),
            _ => Ok(BegunJobs::Read(engine.model().archive_jobs(store, begun, query.rows_max)?)),
        }
    }

    /// Jobs of servers whose rows have changed since they were begun are read again, now, so that scores and positions of a
    /// server are those of one moment. Entries of deleted objects are acknowledged.
    fn finish_jobs(&mut self, mut jobs: Vec<ReadJob>) -> anyhow::Result<FinishedJobs> {
        let last = jobs.last().map(|(entry, _)| entry.key);
        let keys: Vec<OutboxKey> = jobs.iter().map(|(entry, _)| entry.key).collect();
        let changed = self.state.engine.model().changed_since_begun(&keys);
        if !changed.is_empty() {
            self.commit()?;
        }
        if self.disk.is_paused() {
            // New changes do not get on disk, and only what is there may be archived.
            return Ok((Vec::new(), None));
        }
        if !changed.is_empty() {
            let State { engine, store } = &mut self.state;
            let entry = |key| Some(OutboxEntry { key, seq: store.outbox_seq(key)? });
            let begun = engine.begin_archive_jobs(changed.iter().copied().filter_map(entry).collect(), usize::MAX);
            jobs.retain(|(entry, _)| !changed.contains(&entry.key));
            jobs.extend(engine.model().archive_jobs(store, begun, usize::MAX)?);
            jobs.sort_unstable_by_key(|(entry, _)| entry.key);
        }
        let deleted: Vec<OutboxEntry> = jobs.iter().filter(|(_, job)| job.is_none()).map(|(entry, _)| *entry).collect();
        self.state.engine.acknowledge_archived(&deleted);
        Ok((jobs.into_iter().filter_map(|(entry, job)| Some((entry, job?))).collect(), last))
    }
}
