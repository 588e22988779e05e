//! Hot state at work: an engine with the store under it. Events go in, and
//! each commit is on disk before its effects can be seen.
//!
//! What the daemon, `clqd replay`, the demo and the offline readers share.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::config::{Config, WindowSettingsError};
use crate::engine::{Engine, EngineSettings, Event, Plan, WindowBoards, Workers, ZoneChanged};
use crate::model::WindowKey;
use crate::store::{Reader, Store, StoreError, StoreSettings};

/// Ticks of one commit where nobody waits for scans.
const TICKS_PER_COMMIT: usize = 4;

/// Records swept out at one go.
const SWEEP_RECORDS: usize = 5_000;

#[derive(Debug)]
pub struct Hot {
    pub engine: Engine,
    pub store: Store,
}

#[derive(Debug, thiserror::Error)]
pub enum HotError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Zone(#[from] ZoneChanged),
    #[error("time_zone or boards.windows")]
    Windows(#[from] WindowSettingsError),
}

impl Hot {
    pub fn open(path: &Path, store: StoreSettings, engine: EngineSettings) -> Result<Hot, HotError> {
        let mut store = Store::open(path, store)?;
        let loaded = store.load()?;
        let mut engine = Engine::new(engine, loaded)?;
        engine.see_outbox_len(crate::engine::Source::outbox_len(&store));
        Ok(Hot { engine, store })
    }

    /// Opens the state directory that the config names.
    pub fn of_config(config: &Config, path: &Path, create: bool) -> Result<Hot, HotError> {
        let store = StoreSettings { cache_bytes: config.store.cache_bytes, create };
        Hot::open(path, store, config.engine_settings()?)
    }

    pub fn handle(&mut self, event: Event) -> Result<(), StoreError> {
        self.engine.handle(&self.store, event)
    }

    /// Commits what changed, if anything did. Returns whether anything did.
    pub fn commit(&mut self) -> Result<bool, StoreError> {
        if !self.engine.has_changes() {
            return Ok(false);
        }
        let commit = self.engine.take_commit();
        self.store.apply(&commit)?;
        self.engine.see_outbox_len(crate::engine::Source::outbox_len(&self.store));
        Ok(true)
    }

    /// Ticks and commits until the weeks that are over at `now_ms` are closed
    /// and swept: for replay. The daemon spreads the same work over its ticks.
    pub fn settle(&mut self, now_ms: i64) -> Result<(), StoreError> {
        self.commit()?;
        loop {
            for _ in 0..TICKS_PER_COMMIT {
                self.handle(Event::Tick { now_ms })?;
            }
            // A tick may have read only.
            if !self.commit()? && !self.engine.has_week_to_close() {
                break;
            }
        }
        while self.store.sweep(SWEEP_RECORDS)? {}
        Ok(())
    }

    /// Has the boards of a window at hand, as of the last commit. Makes them here
    /// and now where they are not; the daemon does that beside its work.
    pub fn boards(&mut self, window: WindowKey) -> Result<(), StoreError> {
        self.commit()?;
        self.make_boards(window)
    }

    /// The same for a reader, who writes nothing: as the state was when it was
    /// opened.
    pub fn make_boards(&mut self, window: WindowKey) -> Result<(), StoreError> {
        if self.engine.boards(window).is_none() {
            let plan = self.engine.plan_boards(window);
            self.engine.shelve(make_boards(&plan, &self.store.reader())?);
        }
        while self.engine.refresh_boards(&self.store, usize::MAX)? {}
        Ok(())
    }

    /// One step of letting old weeks go.
    pub fn sweep(&mut self) -> Result<bool, StoreError> {
        self.store.sweep(SWEEP_RECORDS)
    }
}

/// Makes the boards of a window, on as many threads as there are cores.
pub fn make_boards(plan: &Plan, reader: &Reader) -> Result<WindowBoards, StoreError> {
    plan.build(reader, &Threads)
}

/// Most threads for one work.
const THREADS_MAX: usize = 4;

struct Threads;

impl Workers for Threads {
    fn all(&self, parts: u32, work: &(dyn Fn(u32) + Sync)) {
        let next = AtomicU32::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mine = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < parts);
                    while let Some(part) = mine() {
                        work(part);
                    }
                });
            }
        });
    }
}
