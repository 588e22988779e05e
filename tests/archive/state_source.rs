//! A state as the source of an archive's worker, with everything that the daemon gives: jobs, resyncs, boards,
//! tasks, and the right to write.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::scans;
use clqd::archive::{ArchiveSettings, JobSource, OutboxQuery, SourceClosed, WorkerStatus};
use clqd::engine::{EngineSettings, WriterPlan, WriterRefusal};
use clqd::model::archive::{ArchiveBounds, ResyncStep};
use clqd::model::outbox::{OutboxEntry, OutboxKey, ResyncCursor, WriterBeat, WriterRow};
use clqd::model::restored::LastKeys;
use clqd::model::top_board::{TopBoardKey, TopBoards};
use clqd::model::{ArchiveJob, WindowKey};
use clqd::state::State;
use clqd::store::StoreSettings;
use tokio::sync::watch;

pub fn open(dir: &Path) -> State {
    let engine = EngineSettings { archive_enabled: true, ..EngineSettings::default() };
    State::open(dir, StoreSettings { cache_bytes: 16 << 20, create: true }, engine).unwrap()
}

#[derive(Clone)]
pub struct StateSource {
    pub state: Arc<Mutex<State>>,
    /// Random numbers of the plans.
    random: Arc<AtomicUsize>,
    /// Requests until the source closes, as if the daemon was killed.
    requests_left: Arc<AtomicUsize>,
}

impl StateSource {
    pub fn new(state: State, seed: usize, requests_max: usize) -> StateSource {
        StateSource {
            state: Arc::new(Mutex::new(state)),
            random: Arc::new(AtomicUsize::new(seed)),
            requests_left: Arc::new(AtomicUsize::new(requests_max)),
        }
    }

    /// Runs passes of a worker until nothing is pending, there is a fault, or the source closes.
    pub async fn archive(&self, settings: &ArchiveSettings) -> WorkerStatus {
        let settings = ArchiveSettings { interval_s: 2, drain_timeout_s: 5, ..settings.clone() };
        let (status, seen) = watch::channel(WorkerStatus::default());
        clqd::archive::run(settings, self.clone(), || 1, async {}, status).await;
        seen.borrow().clone()
    }

    pub fn into_state(self) -> State {
        Arc::into_inner(self.state).expect("the worker has ended").into_inner().unwrap()
    }

    fn with<T>(&self, answer: impl FnOnce(&mut State) -> T) -> Result<T, SourceClosed> {
        let left = self.requests_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map_err(|_| SourceClosed)?;
        let mut state = self.state.lock().unwrap();
        state.commit().unwrap();
        let answer = answer(&mut state);
        state.commit().unwrap();
        Ok(answer)
    }
}

impl JobSource for StateSource {
    async fn pending_jobs(&self, query: OutboxQuery) -> Result<Vec<(OutboxEntry, ArchiveJob)>, SourceClosed> {
        self.with(|state| scans::pending_jobs(state, &query))
    }

    async fn archive_id(&self) -> Result<Option<u64>, SourceClosed> {
        self.with(|state| state.engine.model().archive_id())
    }

    async fn last_keys(&self) -> Result<Option<LastKeys>, SourceClosed> {
        self.with(|state| Some(state.engine.model().last_keys()))
    }

    async fn objects(&self, keys: Vec<OutboxKey>) -> Result<Vec<ArchiveJob>, SourceClosed> {
        self.with(|state| state.engine.model().archive_objects(&state.store, &keys).unwrap())
    }

    async fn repairs(&self) -> Result<bool, SourceClosed> {
        self.with(|state| state.engine.model().repairs_archive())
    }

    async fn plan_writer(
        &self,
        found: Option<u64>,
        row: Option<WriterRow>,
        resyncs_older: bool,
    ) -> Result<Result<WriterPlan, WriterRefusal>, SourceClosed> {
        let random = self.random.fetch_add(7_919, Ordering::Relaxed) as u64;
        self.with(|state| {
            let (plan, steps) = state.engine.model().plan_archive_writer(found, row, random, resyncs_older)?;
            steps.into_iter().for_each(|step| state.engine.apply_archive_step(step));
            Ok(plan)
        })
    }

    async fn next_resync_chunk(&self, from: Option<ResyncCursor>) -> Result<ResyncStep, SourceClosed> {
        self.with(|state| state.engine.model().resync_chunk(&state.store, from, 50, 1_000).unwrap())
    }

    async fn acknowledge_resync_chunk(
        &self,
        from: ResyncCursor,
        next: ResyncCursor,
        postponed: Vec<OutboxKey>,
        at: WriterBeat,
    ) -> Result<bool, SourceClosed> {
        self.with(|state| {
            state.engine.archive_acknowledged(at);
            state.engine.acknowledge_resync(from, next, &postponed)
        })
    }

    async fn top_boards(
        &self,
        window: Option<WindowKey>,
        after: Option<TopBoardKey>,
    ) -> Result<TopBoards, SourceClosed> {
        self.with(|state| {
            if window.is_some_and(|window| !state.engine.model().has_boards(window)) {
                return TopBoards::Deleted;
            }
            for window in window.map_or_else(|| state.engine.model().published_windows(), |window| vec![window]) {
                state.commit_and_build_boards(window).unwrap();
            }
            TopBoards::Next(state.engine.model().top_boards(window, after, 3))
        })
    }

    async fn tasks(&self) -> Result<Vec<OutboxEntry>, SourceClosed> {
        self.with(|state| state.engine.model().archive_tasks(&state.store))
    }

    async fn bounds(&self) -> Result<Option<ArchiveBounds>, SourceClosed> {
        self.with(|state| Some(state.engine.model().archive_bounds()))
    }

    async fn acknowledge(&self, entries: Vec<OutboxEntry>, at: WriterBeat) -> Result<(), SourceClosed> {
        self.with(|state| {
            state.engine.acknowledge_archived(&entries);
            state.engine.archive_acknowledged(at);
        })
    }
}
