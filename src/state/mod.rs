//! An engine with its store. The engine handles events; a commit shows its changes to readers. When they
//! are on disk is described in `store`.
//!
//! Shared by the daemon, `clqd replay`, the demo and the offline readers.

pub mod answer;
pub mod archive_restore;
pub mod check;
pub mod clock_correction;
pub mod forget_again;
pub mod history;
pub mod log_import;
pub mod name_index;
pub mod recovery;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::config::{Config, WindowSettingsError};
use crate::engine::{
    BuildPlan, BuiltBoards, CacheLimits, CorrectionError, Engine, EngineSettings, Event, Outcome, ViewError, Workers,
    ZoneChanged, is_correction,
};
use crate::log::LogEvent;
use crate::model::outbox::ArchiveStep;
use crate::model::rebuild::RebuildStep;
use crate::model::{AdminCommand, ForgottenPlaceholder, NameHash, PlayerKey, ServerKey, ServerUrl, WindowKey};
use crate::store::{Reader, Store, StoreError, StoreSettings};

/// Ticks for each commit when no client waits for scans.
const TICKS_PER_COMMIT: usize = 4;

/// Records deleted in one sweep.
const SWEEP_RECORDS: usize = 5_000;

/// Scans of a log between two checks of pending records.
const SCANS_PER_CHECK: u64 = 1_000;

#[derive(Debug)]
pub struct State {
    pub engine: Engine,
    pub store: Store,
}

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Zone(#[from] ZoneChanged),
    #[error("time_zone or boards.windows")]
    Windows(#[from] WindowSettingsError),
}

impl State {
    pub fn open(path: &Path, store: StoreSettings, engine: EngineSettings) -> Result<State, StateError> {
        State::with_store(Store::open(path, store)?, engine)
    }

    fn with_store(mut store: Store, engine: EngineSettings) -> Result<State, StateError> {
        let loaded = store.load()?;
        let mut engine = Engine::new(engine, loaded)?;
        engine.load_outbox(&store);
        Ok(State { engine, store })
    }

    /// Opens the state directory that the config names.
    pub fn open_configured(config: &Config, path: &Path, create: bool) -> Result<State, StateError> {
        let store = StoreSettings { cache_bytes: config.store.cache_bytes, create };
        State::open(path, store, config.engine_settings()?)
    }

    /// Windows begin, and weeks that end until `close_until_ms` are closed, in steps.
    pub fn tick(&mut self, now_ms: i64, close_until_ms: i64) -> Result<(), StoreError> {
        self.engine.set_close_limit(close_until_ms);
        self.handle(Event::Tick { now_ms })
    }

    pub fn handle(&mut self, event: Event) -> Result<(), StoreError> {
        let is_tick = matches!(event, Event::Tick { .. });
        self.engine.handle(&self.store, event)?;
        // A tick may delete records that the next scan writes again.
        if is_tick && self.engine.model().has_deletions() {
            self.commit()?;
        }
        Ok(())
    }

    /// Handles a scan of a log. Of a scan of a removed server only the time counts.
    pub fn replay_scan(&mut self, url: ServerUrl, outcome: Outcome) -> Result<(), StoreError> {
        match self.engine.model().is_removed(&url) {
            true => {
                self.engine.note_time(outcome.t_ms());
                Ok(())
            }
            false => self.handle(Event::Replayed { url, outcome }),
        }
    }

    /// Handles a scan of a server. Returns the event that a log records for it; a replay of that
    /// event gives the same state. `None`: the scan was not used.
    pub fn handle_and_record(&mut self, server: ServerKey, event: Event) -> Result<Option<LogEvent>, StoreError> {
        let (Event::Scanned { outcome, .. } | Event::Replayed { outcome, .. }) = &event else {
            return self.handle(event).map(|()| None);
        };
        let recorded = outcome.clone();
        let used_before = self.engine.model().outcomes_applied();
        self.handle(event)?;
        let url = self.engine.model().url_of(server).filter(|_| self.engine.model().outcomes_applied() > used_before);
        Ok(url.map(|url| {
            let outcome = recorded.with_blanked_names(self.engine.model().blanked_names()).with_marked_names();
            LogEvent::Scan { server: url.clone(), outcome }
        }))
    }

    /// Applies a command of the time `t_ms`, Unix ms, with the commits that it needs. Returns false if
    /// it changes nothing, because the object is unknown or the state already contains the effect.
    pub fn apply_command(&mut self, t_ms: i64, command: &AdminCommand) -> Result<bool, StoreError> {
        let is_correction = is_correction(command);
        if is_correction {
            self.commit()?;
        }
        let applied = match self.engine.apply_command(&self.store, t_ms, command) {
            Ok(changed) => changed,
            Err(error) => match error.into_read_error() {
                Some(error) => return Err(error.into()),
                None => false,
            },
        };
        if is_correction {
            self.commit()?;
        }
        Ok(applied)
    }

    /// Whether a player that a log forgets has the name of a hash, and the log has no placeholder instead.
    fn has_name_to_forget(
        &self,
        game: &str,
        placeholder: &str,
        player: PlayerKey,
        hash: NameHash,
    ) -> Result<bool, StoreError> {
        let State { engine, store } = self;
        let has = engine
            .model()
            .has_recorded_name(store, game, player, hash)
            .and_then(|has| Ok(has && !engine.model().has_player_named(store, game, placeholder)?));
        has.or_else(|error| match error {
            CorrectionError::View(ViewError::Store(error)) => Err(error.into()),
            _ => Ok(false),
        })
    }

    /// Applies a step of a rebuild of windows.
    pub fn apply_rebuild(&mut self, step: &RebuildStep) -> Result<(), StoreError> {
        self.commit()?;
        self.engine.apply_rebuild(&self.store, step)?;
        self.commit().map(drop)
    }

    /// Commits the changes. Returns whether there were any.
    pub fn commit(&mut self) -> Result<bool, StoreError> {
        if !self.engine.model().has_changes() {
            return Ok(false);
        }
        let commit = self.engine.take_commit();
        self.store.apply(&commit)?;
        self.engine.set_outbox_len(crate::engine::StoreReader::outbox_len(&self.store));
        Ok(true)
    }

    /// Freezes all commits so far: together they are the next checkpoint. `log_position`: the last batch of the
    /// log whose events they contain. No checkpoint is being written.
    pub fn freeze(&mut self, log_position: u64) {
        self.put_unsaved_servers();
        self.store.freeze(log_position);
    }

    /// Writes all commits so far, and waits until they are on disk, as is the log until `log_position`.
    pub fn write_checkpoint(&mut self, log_position: u64) -> Result<(), StoreError> {
        self.put_unsaved_servers();
        self.store.write_checkpoint(log_position)
    }

    fn put_unsaved_servers(&mut self) {
        debug_assert!(!self.engine.model().has_changes(), "a checkpoint has whole commits");
        let servers = self.store.take_unsaved_servers();
        let record = |server: ServerKey| Some((server, self.engine.model().shared_record(server)?));
        self.store.put_servers(servers.into_iter().filter_map(record));
    }

    /// Ticks and commits until the weeks that have ended at `now_ms` are closed and swept: for
    /// replay. The daemon spreads the same work over its ticks.
    pub fn close_due_weeks(&mut self, now_ms: i64) -> Result<(), StoreError> {
        self.commit()?;
        loop {
            let before = self.store.commits();
            for _ in 0..TICKS_PER_COMMIT {
                self.handle(Event::Tick { now_ms })?;
            }
            self.commit()?;
            // A tick may only have read. One that deletes records has committed.
            if self.store.commits() == before && !self.engine.has_week_to_close() {
                break;
            }
        }
        while self.store.sweep(SWEEP_RECORDS)? {}
        Ok(())
    }

    /// Commits, and ensures that the boards of a window are cached and current. Builds missing
    /// boards in this call; the daemon does that on another thread.
    pub fn commit_and_build_boards(&mut self, window: WindowKey) -> Result<(), StoreError> {
        self.commit()?;
        self.ensure_boards(window)
    }

    /// As [`State::commit_and_build_boards`], for a reader, which writes nothing: the boards are
    /// those of the state when it was opened.
    pub fn ensure_boards(&mut self, window: WindowKey) -> Result<(), StoreError> {
        if self.engine.model().boards(window).is_none() {
            let plan = self.engine.plan_boards(window);
            self.engine.install_boards(build_boards(&plan, &self.store.reader())?);
        }
        while self.engine.refresh_boards(&self.store, None, usize::MAX)? {}
        Ok(())
    }

    /// Whether deleted windows that may be opened again still have records, which would be among the new ones.
    pub fn must_sweep(&self) -> bool {
        self.store.unswept().any(|window| self.engine.model().may_reopen(window))
    }

    /// Does one step of deleting old windows.
    pub fn sweep(&mut self) -> Result<bool, StoreError> {
        self.store.sweep(SWEEP_RECORDS)
    }
}

/// Memory of a row, a player or a player window while it is pending (160; measured: 10 million players who
/// each appeared once, 4.6 GB), and of its encoded changes while they are written.
const PENDING_RECORD_BYTES: u64 = 340;

/// Applies the scans and the commands of a log to the state. It commits when the pending records reach a limit.
/// Few commits are best: a record that changes twice before a commit is written once, and a
/// crash loses nothing that is not in the log.
///
/// A log that was rewritten after `clqd player forget` has placeholders for the player
/// ([`ForgottenPlaceholder`]). They are forgotten before the first scan after the request: older logs
/// have no command for that.
#[derive(Clone, Debug)]
pub struct ReplayFeed {
    scans: u64,
    pending_max: usize,
    /// Placeholders found so far, with their games; the next to be forgotten is first.
    placeholders: BTreeSet<(ForgottenPlaceholder, String)>,
    /// What the state contained before the first event; `None` before that.
    began: Option<Began>,
    commands: u64,
    commands_skipped: u64,
}

/// The state before a replay. It shows which commands the state contains already.
#[derive(Clone, Copy, Debug)]
struct Began {
    now_ms: i64,
    outcomes_applied: u64,
}

impl ReplayFeed {
    /// For a process that does nothing else and may use `memory` bytes in addition to the
    /// store's cache.
    pub fn exclusive(engine: &mut Engine, memory: u64) -> ReplayFeed {
        let of = |percent: u64, bytes_each: u64| (memory / 100 * percent / bytes_each) as usize;
        engine.set_cache_limits(CacheLimits {
            names_max: of(15, 70),
            player_windows_max: of(25, 80),
            ..CacheLimits::NONE
        });
        ReplayFeed::new(of(60, PENDING_RECORD_BYTES))
    }

    /// For a process that runs in parallel with a daemon: 30 MB.
    pub fn background() -> ReplayFeed {
        ReplayFeed::new(200_000)
    }

    fn new(pending_max: usize) -> ReplayFeed {
        ReplayFeed {
            scans: 0,
            pending_max,
            placeholders: BTreeSet::new(),
            began: None,
            commands: 0,
            commands_skipped: 0,
        }
    }

    /// Number of commands that were applied.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// Number of commands that were skipped: the state contains them, or they name something unknown.
    pub fn commands_skipped(&self) -> u64 {
        self.commands_skipped
    }

    /// Number of applied scans.
    pub fn scans(&self) -> u64 {
        self.scans
    }

    /// Whether to do periodic work between two scans.
    pub fn is_at_check(&self) -> bool {
        self.scans.is_multiple_of(SCANS_PER_CHECK)
    }

    /// Applies the next event, and commits if the limit is reached. The caller applies settings,
    /// because they need the config.
    pub fn observe(&mut self, state: &mut State, event: LogEvent) -> Result<(), StoreError> {
        let began =
            Began { now_ms: state.engine.model().now_ms(), outcomes_applied: state.engine.model().outcomes_applied() };
        let began = *self.began.get_or_insert(began);
        match event {
            LogEvent::Scan { server, outcome } => self.observe_scan(state, server, outcome),
            LogEvent::Command { t_ms, command } => {
                self.forget_until(state, t_ms - 1)?;
                let is_behind = self.commands > 0 || state.engine.model().outcomes_applied() > began.outcomes_applied;
                let is_applied = (is_behind || t_ms > began.now_ms) && state.apply_command(t_ms, &command)?;
                *(if is_applied { &mut self.commands } else { &mut self.commands_skipped }) += 1;
                Ok(())
            }
            LogEvent::Rebuild { t_ms, step } => {
                self.forget_until(state, t_ms - 1)?;
                state.apply_rebuild(&step)
            }
            LogEvent::Tick { t_ms, close_until_ms } => state.tick(t_ms, close_until_ms),
            // A restored state that gets the rest of the log continues the archive.
            LogEvent::Archive { step: step @ ArchiveStep::Epoch { .. }, .. }
                if state.engine.model().archive_id().is_some() =>
            {
                state.engine.apply_archive_step(step);
                Ok(())
            }
            LogEvent::Settings { .. } | LogEvent::Known { .. } | LogEvent::Archive { .. } => Ok(()),
        }
    }

    /// Applies the next scan.
    pub fn observe_scan(&mut self, state: &mut State, url: ServerUrl, outcome: Outcome) -> Result<(), StoreError> {
        while let Some(forgotten_ms) = self.next_forgotten_ms().filter(|&forgotten_ms| forgotten_ms < outcome.t_ms()) {
            self.forget_until(state, forgotten_ms)?;
        }
        self.note_placeholders(&outcome);
        state.replay_scan(url, outcome)?;
        self.scans += 1;
        if self.is_at_check() && state.engine.model().pending_records() >= self.pending_max {
            state.commit()?;
        }
        Ok(())
    }
}

impl ReplayFeed {
    /// When the next placeholder is to be forgotten, Unix ms.
    pub fn next_forgotten_ms(&self) -> Option<i64> {
        self.placeholders.first().map(|(placeholder, _)| placeholder.forgotten_ms)
    }

    /// Forgets the placeholders of requests until a time, Unix ms.
    pub fn forget_until(&mut self, state: &mut State, until_ms: i64) -> Result<(), StoreError> {
        while self.next_forgotten_ms().is_some_and(|forgotten_ms| forgotten_ms <= until_ms) {
            let Some((placeholder, game)) = self.placeholders.pop_first() else { break };
            state.commit()?;
            match state.engine.forget_placeholder(&state.store, &game, placeholder) {
                Ok(()) => _ = state.commit()?,
                Err(CorrectionError::View(ViewError::Store(error))) => return Err(error.into()),
                // The placeholder was never ranked, or an earlier replay has forgotten it.
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn note_placeholders(&mut self, outcome: &Outcome) {
        let Outcome::Snapshot(snapshot) = outcome else { return };
        for placeholder in snapshot.players.iter().filter_map(|player| ForgottenPlaceholder::parse(&player.name)) {
            // The rewriting leaves no placeholder after the time of the request.
            if placeholder.forgotten_ms >= snapshot.t_ms {
                self.placeholders.insert((placeholder, snapshot.game.clone()));
            }
        }
    }
}

/// Builds the boards of a window, on as many threads as there are cores.
pub fn build_boards(plan: &BuildPlan, reader: &Reader) -> Result<BuiltBoards, StoreError> {
    Ok(plan.build(reader, &ScopedThreads)?)
}

/// The maximum number of threads of one build.
const BUILD_THREADS_MAX: usize = 4;

struct ScopedThreads;

impl Workers for ScopedThreads {
    fn run(&self, parts: u32, work: &(dyn Fn(u32) + Sync)) {
        let next = AtomicU32::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(BUILD_THREADS_MAX);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let next_part = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < parts);
                    while let Some(part) = next_part() {
                        work(part);
                    }
                });
            }
        });
    }
}

/// The directory of the log in a state directory.
pub fn log_dir(state_dir: &Path) -> PathBuf {
    state_dir.join("log")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Completeness, Player, Snapshot};

    #[test]
    fn replay_commits_when_pending_reaches_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let store = StoreSettings { cache_bytes: 16 << 20, create: true };
        let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
        let mut feed = ReplayFeed::new(3_000);
        let mut most = 0;
        for n in 0..2 * SCANS_PER_CHECK as i64 + 1 {
            let player =
                Player { name: format!("player {n}").into(), points: Some(1), ping: Some(30), ..Player::default() };
            let snapshot = Snapshot {
                t_ms: 1_764_064_800_000 + n * 60_000,
                game: "baseq3".into(),
                map: "q3dm17".into(),
                hostname: String::new(),
                slots: 8,
                players: vec![player],
                completeness: Completeness::Full,
                count: None,
                bots: None,
            };
            let url = ServerUrl::parse("quake3://10.0.0.1:27960").unwrap();
            feed.observe_scan(&mut state, url, Outcome::Snapshot(snapshot)).unwrap();
            most = most.max(state.engine.model().pending_records());
        }
        // Each new player has a row, a window record and a name.
        assert!((3_000..=3_000 + 3 * SCANS_PER_CHECK as usize).contains(&most), "{most}");
        assert!(state.engine.model().pending_records() < 3_000, "a commit must have been made");
        assert_eq!((feed.scans(), feed.is_at_check()), (2 * SCANS_PER_CHECK + 1, false));
    }
}
