//! The engine thread: the only one that uses the engine and the store.
//!
//! It sends due probes to the scanner, and processes outcomes and commands. Each of them is an event
//! of the log. What was asked to change is acknowledged, and archived, when its event is on disk
//! ([`durability`]). Reads wait for no disk.

mod archive_jobs;
mod archive_requests;
mod archived;
mod board_reads;
mod change;
mod cluster;
mod corrections;
mod durability;
mod handle;
mod inbox;
mod long_requests;
mod outcomes;
mod reload;
mod server_changes;
mod silence;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::{mpsc, oneshot};

use self::archived::Marks;
use self::board_reads::WaitingRead;
pub(super) use self::change::Change;
pub(super) use self::durability::StartTimeWrong;
use self::durability::{Checkpoints, Unsynced};
pub(super) use self::handle::{Command, EngineEnded, EngineHandle, Heartbeat};
use self::inbox::{Inbox, Received};
pub(super) use self::long_requests::StartedRescan;
pub(super) use self::outcomes::HandedIn;
use self::silence::Silence;
use crate::board::window;
use crate::capture::CaptureFiles;
use crate::clock::Clock;
use crate::config::Config;
use crate::daemon::board_builder::BoardBuilder;
use crate::daemon::disk_space::DiskSpace;
use crate::daemon::log_rewriting::LogRewriter;
use crate::daemon::log_thread::LogThread;
use crate::daemon::rescan_results::RescanWaiters;
use crate::daemon::scanners::Scanners;
use crate::daemon::views::{EngineThreadStatus, Publisher, Views};
use crate::daemon::window_rebuild::{self, RebuildPaths, Rebuilder};
use crate::engine::{Engine, Event};
use crate::log::{LogEvent, RecordedSettings};
use crate::model::calendar::week_label;
use crate::model::commit::{WeekPhase, WeekState, WindowState};
use crate::model::rebuild::RebuildStep;
use crate::model::{NameHash, ServerKey, ServerUrl, WeekKey};
use crate::scan::{Outcomes, RequestSender, ScanMode, ScanRequest};
use crate::state::recovery::EventApplier;
use crate::state::{State, log_dir};

/// Interval at which due scans are passed to the scanner, which sends them together.
const PROBE_INTERVAL_MS: i64 = 10;

/// Time between two sweep steps.
const SWEEP_MS: i64 = 1_000;

/// Players whose board entries are updated after one commit (in memory). The limit keeps scans from being late.
/// Before a query of a board is answered, all its entries are updated. An update takes a few us.
const BOARD_UPDATES_PER_COMMIT: usize = 20_000;

/// Known servers that are added to the log in one tick: 5 ms.
const SERVERS_PER_TICK: usize = 1_000;

/// Rows of a rebuild wait while the log has more bytes to write.
const IMPORTED_BYTES_MAX: usize = 8 << 20;

/// Interval at which requests that wait for boards are checked again.
const BOARD_POLL_MS: i64 = 50;

/// What records scans.
pub(super) struct Recorders {
    pub(super) log: LogThread,
    /// Removes forgotten names from the log.
    pub(super) log_rewriter: LogRewriter,
    /// `None`: off.
    pub(super) captures: Option<CaptureFiles>,
}

/// Who scans.
pub(super) struct Scanning {
    /// The own scanner.
    pub(super) probes: RequestSender,
    /// Those on other machines.
    pub(super) scanners: Arc<Scanners>,
}

/// What the removal of forgotten names from the log waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameRemoval {
    /// Nothing is to be removed, or the removal has begun.
    Idle,
    /// The disk has space again: neither the request nor a checkpoint could be written.
    AfterPause,
    /// The leader of a cluster begins a new segment.
    AtNextSegment,
    /// A checkpoint has the log until this batch.
    AfterCheckpoint { position: u64 },
}

pub struct EngineThread {
    state: State,
    /// Applies the log of a cluster, while another engine leads.
    followed: EventApplier,
    /// Settings in batches that the state has, but its files do not have yet.
    settings_of_applied: Option<RecordedSettings>,
    marks: Marks,
    log: LogThread,
    /// What waits until its events are on disk, in order.
    unsynced: VecDeque<(u64, Unsynced)>,
    /// What scanners have handed in and is not in the log yet, by batch and name of the scanner.
    handed_in: BTreeMap<(u64, String), HandedIn>,
    /// What waits until database and time are certain.
    uncertain: Vec<Unsynced>,
    checkpoints: Checkpoints,
    /// The next known server to be added to the log; `None`: all are there.
    next_known: Option<ServerKey>,
    name_removal: NameRemoval,
    log_rewriter: LogRewriter,
    /// `None`: off.
    captures: Option<CaptureFiles>,
    clock: Arc<Clock>,
    /// `None`: scanning has stopped, or another engine of the cluster leads.
    probes: Option<RequestSender>,
    /// What becomes `probes` when this engine leads.
    idle_probes: Option<RequestSender>,
    scanners: Arc<Scanners>,
    probed_ms: i64,
    commit_interval_ms: i64,
    disk: DiskSpace,
    /// Windows are to be rebuilt as soon as commits are possible again, and the database of a cluster answers.
    rebuild_due: bool,
    allow_private: bool,
    /// `scan.forget_silent_days`
    forget_silent_days: u32,
    /// When silent imports were last looked for, Unix ms.
    silent_removed_ms: i64,
    heartbeat: Arc<Heartbeat>,
    /// Time of the oldest uncommitted change.
    changed_ms: Option<i64>,
    /// When the last batch of the log was handed over.
    written_ms: i64,
    ticked_ms: i64,
    swept_ms: i64,
    /// Time of the last outcome applied: outcomes are applied, and recorded, in order of
    /// time.
    last_outcome_ms: i64,
    /// Of servers elsewhere, and of those on this machine or in its network.
    silences: [Silence; 2],
    rescans: RescanWaiters,
    /// The URL that answered instead, of servers with a client that waits for a rescan.
    answers_at: BTreeMap<ServerKey, ServerUrl>,
    /// Phases of the weeks, and the week whose closing the clock blocks, as last logged.
    logged_weeks: Vec<WeekState>,
    blocked_week: Option<WeekKey>,
    boards: BoardBuilder,
    rebuilder: Rebuilder,
    rebuild_paths: RebuildPaths,
    /// Reads that wait for the boards of a window.
    waiting_reads: Vec<WaitingRead>,
    /// Batches of outcomes that were waiting when the last one was received.
    outcomes_queued: usize,
    publisher: Publisher,
}

/// The earliest time for outcomes of a new daemon: not before the last change, and after a request
/// to forget a player, see `correct_player`.
fn first_outcome_ms(engine: &Engine) -> i64 {
    let now_ms = engine.model().now_ms();
    let is_now = |&(_, forgotten_ms): &(NameHash, i64)| forgotten_ms == now_ms;
    now_ms + i64::from(engine.model().forgotten().iter().any(is_now))
}

impl EngineThread {
    /// Only to read: a change must get into the log.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Only to read.
    pub(super) fn log(&self) -> &LogThread {
        &self.log
    }

    pub(super) fn new(
        (mut state, followed): (State, EventApplier),
        recorders: Recorders,
        clock: Arc<Clock>,
        scanning: Scanning,
        config: &Config,
        heartbeat: Arc<Heartbeat>,
        dropped: Counter,
    ) -> EngineThread {
        let Recorders { log, log_rewriter, captures } = recorders;
        state.store.set_database_settings(config.store.database_settings());
        let disk = DiskSpace::new(&config.state_dir, config.store.disk_free_bytes_min);
        let (probes, idle_probes) = match log.is_following() {
            true => (None, Some(scanning.probes)),
            false => (Some(scanning.probes), None),
        };
        let rebuild_paths = RebuildPaths {
            state_dir: config.state_dir.clone(),
            log: log_dir(&config.state_dir),
            log_lock: log.file_lock().clone(),
            cache_bytes: config.store.cache_bytes,
            disk_free_bytes_min: config.store.disk_free_bytes_min,
        };
        let mut thread = EngineThread {
            publisher: Publisher::new(&mut state, EngineThreadStatus::default()),
            rebuilder: Rebuilder::new(&rebuild_paths),
            rebuild_paths,
            last_outcome_ms: first_outcome_ms(&state.engine),
            boards: BoardBuilder::new(state.store.reader()),
            waiting_reads: Vec::new(),
            log,
            unsynced: VecDeque::new(),
            handed_in: BTreeMap::new(),
            uncertain: Vec::new(),
            checkpoints: Checkpoints::new(&config.store, clock.now_ms()),
            outcomes_queued: 0,
            silences: Default::default(),
            next_known: None,
            name_removal: NameRemoval::Idle,
            logged_weeks: state.engine.model().weeks().to_vec(),
            blocked_week: None,
            state,
            followed,
            settings_of_applied: None,
            marks: Marks::default(),
            log_rewriter,
            captures,
            clock,
            probes,
            idle_probes,
            scanners: scanning.scanners,
            probed_ms: 0,
            commit_interval_ms: config.store.commit_interval_ms as i64,
            disk,
            rebuild_due: false,
            allow_private: config.scan.allow_private,
            forget_silent_days: config.scan.forget_silent_days,
            silent_removed_ms: 0,
            heartbeat,
            changed_ms: None,
            written_ms: 0,
            ticked_ms: 0,
            swept_ms: 0,
            rescans: RescanWaiters::new(dropped),
            answers_at: BTreeMap::new(),
        };
        thread.publish();
        thread
    }

    /// What readers ask in place of the engine thread.
    pub(super) fn views(&self) -> Arc<Views> {
        self.publisher.views()
    }

    /// Starts the thread. `begun` is closed when views show the state of the present time, or the thread has ended. The
    /// receiver gets the thread's result, and is closed without one if it panics.
    pub(super) fn start(
        self,
        commands: mpsc::Receiver<Command>,
        outcomes: Outcomes,
        begun: oneshot::Sender<()>,
    ) -> std::io::Result<oneshot::Receiver<anyhow::Result<()>>> {
        let (result, ended) = oneshot::channel();
        // The daemon may have been dropped.
        let work = move || _ = result.send(self.run(commands, outcomes, begun));
        std::thread::Builder::new().name("engine".to_owned()).spawn(work)?;
        Ok(ended)
    }

    fn run(
        mut self,
        commands: mpsc::Receiver<Command>,
        outcomes: Outcomes,
        begun: oneshot::Sender<()>,
    ) -> anyhow::Result<()> {
        // This runtime is used only for the waits of this thread.
        let waiter = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let mut inbox = Inbox::new(commands, outcomes);
        self.rebuild()?;
        self.remove_names_from_log();
        if !self.is_following() {
            self.number_scans();
            self.remove_servers_known_twice(self.clock.now_ms());
        }
        self.tick(self.clock.now_ms())?;
        // The tick may have opened some.
        self.state.engine.model().windows_to_build().into_iter().for_each(|window| self.boards.enqueue(window));
        self.commit()?;
        drop(begun);
        loop {
            let now_ms = self.clock.now_ms();
            self.boards.start_next(|window| self.state.engine.plan_boards(window)).context("cannot start a thread")?;
            self.send_probes(now_ms);
            if !self.is_disk_stalled(now_ms) {
                self.heartbeat.beat();
            }
            let wait = Duration::from_millis(self.next_wake_ms(now_ms).saturating_sub(now_ms).max(0) as u64);
            let mut built = None;
            let mut rebuild_event = None;
            let mut written = Ok(());
            let received = waiter.block_on(async {
                tokio::select! {
                    biased;
                    boards = self.boards.next_result() => built = Some(boards),
                    next = self.rebuilder.next_event() => rebuild_event = Some(next),
                    result = self.log.next_result() => written = result,
                    () = self.checkpoints.wait_for_end() => {}
                    received = inbox.next() => return received,
                    () = tokio::time::sleep(wait) => {}
                }
                Ok(Received { batch: None, command: None })
            });
            let Received { batch, command } = received?;
            written?;
            self.outcomes_queued = inbox.batches_queued();
            if let Some(built) = built {
                self.cache_boards(built.context("cannot read the rows of a window")?);
            }
            if let Some(event) = rebuild_event {
                let last_seq = self.log.last_seq();
                if let Some(send) = self.rebuilder.handle_event(event, last_seq) {
                    self.unsynced.push_back((last_seq, Box::new(send)));
                }
                self.import_rebuilt_windows()?;
            }
            if let Some(batch) = batch {
                let now_ms = self.clock.now_ms();
                for outcome in batch {
                    self.apply_outcome(outcome, now_ms)?;
                }
            }
            if self.state.engine.model().has_changes() || self.state.engine.has_notices() {
                self.changed_ms.get_or_insert(now_ms);
            }
            match command {
                Some(Command::Shutdown) => {
                    let now_ms = self.clock.now_ms();
                    while let Some(batch) = inbox.next_queued_batch() {
                        for outcome in batch {
                            self.apply_outcome(outcome, now_ms)?;
                        }
                    }
                    return self.last_checkpoint();
                }
                Some(Command::Work(work)) => work(&mut self)?,
                Some(Command::StopScanning) => (self.probes, self.idle_probes) = (None, None),
                None => {}
            }
            let now_ms = self.clock.now_ms();
            if now_ms - self.ticked_ms >= self.state.engine.tick_interval_ms() {
                self.tick(now_ms)?;
            }
            if now_ms - self.swept_ms >= SWEEP_MS {
                self.sweep(now_ms)?;
            } else if self.rebuilder.is_importing() {
                self.import_rebuilt_windows()?;
            }
            self.do_waiting_reads()?;
            if self.changed_ms.is_some_and(|since| now_ms - since >= self.commit_interval_ms) {
                self.commit()?;
            }
            self.advance_durability(now_ms)?;
        }
    }

    /// Closes what has ended, and publishes that time has passed.
    fn tick(&mut self, now_ms: i64) -> anyhow::Result<()> {
        self.ticked_ms = now_ms;
        self.clock.update_trust();
        if self.is_following() {
            self.log_weeks();
            if !self.state.engine.model().has_changes() {
                self.publish();
            }
            return Ok(());
        }
        self.correct_start_time()?;
        let close_until_ms = self.clock.close_until_ms();
        self.state.engine.set_close_limit(close_until_ms);
        // Closing a week changes many records, and no request waits for it.
        if !self.disk.is_paused() {
            self.state.handle(Event::Tick { now_ms })?;
            self.log.append(&LogEvent::Tick { t_ms: now_ms, close_until_ms });
            if self.state.engine.model().has_changes() {
                self.log.write_ticks();
            }
        }
        if !self.disk.is_paused() {
            self.remove_silent_imports(now_ms);
        }
        self.log_weeks();
        self.log_known_servers();
        self.log_archived_if_due(now_ms);
        // Without changes time passes, too. Changes, also those of this tick, are published by the commit, with
        // their rows and boards.
        if !self.state.engine.model().has_changes() {
            self.publish();
        }
        Ok(())
    }

    /// What is done once a second: removes rows of deleted windows, and looks whether the disk has space again.
    fn sweep(&mut self, now_ms: i64) -> anyhow::Result<()> {
        self.swept_ms = now_ms;
        self.captures.iter_mut().for_each(|captures| captures.advance_to(now_ms));
        if self.disk.is_paused() || self.rebuild_due {
            // There may be space again, whether or not anything has changed.
            self.commit()?;
        }
        if !self.disk.is_paused() {
            self.state.sweep()?;
            // New windows may wait until the rows of deleted ones are removed.
            if self.state.store.sweeps_after_checkpoint() {
                self.checkpoints.request();
            }
            if std::mem::take(&mut self.rebuild_due) {
                self.rebuild()?;
            }
        }
        self.import_rebuilt_windows()
    }

    /// Begins to scan: no scan of an earlier process, which a scanner may still have, has the same number.
    fn number_scans(&mut self) {
        let first = self.clock.now_ms().unsigned_abs() << 20;
        self.state.engine.number_scans_from(first);
        self.scanners.number_scans_from(first);
    }

    fn next_wake_ms(&mut self, now_ms: i64) -> i64 {
        if self.rebuilder.is_importing() && self.can_import() {
            return now_ms;
        }
        let tick = self.ticked_ms + self.state.engine.tick_interval_ms();
        let commit = match self.changed_ms {
            Some(since) => since + self.commit_interval_ms,
            None => i64::MAX,
        };
        let write = self.next_write_ms(now_ms);
        let full = self.probes.as_ref().is_none_or(RequestSender::is_full);
        // While the scanner's queue is full, try again in 10 ms.
        let due = match self.state.engine.next_due_ms() {
            Some(_) if self.probes.is_none() => i64::MAX,
            Some(due) if full => due.max(now_ms + 10),
            Some(due) => due.max(self.probed_ms + PROBE_INTERVAL_MS),
            None => i64::MAX,
        };
        let waiting_reads = if self.waiting_reads.is_empty() { i64::MAX } else { now_ms + BOARD_POLL_MS };
        tick.min(commit).min(write).min(due).min(waiting_reads)
    }

    fn send_probes(&mut self, now_ms: i64) {
        let Some(probes) = &self.probes else { return };
        // A step back of the clock does not stop the probes.
        if (0..PROBE_INTERVAL_MS).contains(&(now_ms - self.probed_ms)) && !self.scanners.has_own() {
            return;
        }
        self.probed_ms = now_ms;
        let mut next = || {
            let probe = self.state.engine.poll_probe(now_ms)?;
            let mode = if probe.exception_mode { ScanMode::Exception } else { ScanMode::Normal };
            let wants_settings = probe.wants_settings;
            Some(ScanRequest { id: probe.id, server: probe.server, url: probe.url, mode, wants_settings })
        };
        probes.send_available(|| {
            if let Some(given_back) = self.scanners.take_own() {
                return Some(given_back);
            }
            loop {
                if let Some(own) = self.scanners.assign(next()?) {
                    return Some(own);
                }
            }
        });
        if probes.is_full() {
            self.scanners.assign_to_others(next);
        }
    }

    /// Removes the forgotten names from the log, in the background, but for its newest segment. All recorded scans and
    /// the names must be on disk.
    fn remove_names_from_log(&mut self) {
        match () {
            // The log on disk does not have the request yet.
            () if self.name_removal == NameRemoval::AfterPause => (),
            // The newest segment may have one of the names: all wait for its end.
            () if self.is_following() => self.name_removal = NameRemoval::AtNextSegment,
            () if self.log.is_shared() => self.remove_names_after_checkpoint(),
            () => self.remove_names_from_complete_segments(),
        }
    }

    /// The newest segment has no forgotten name.
    fn remove_names_after_checkpoint(&mut self) {
        self.name_removal = NameRemoval::AfterCheckpoint { position: self.log.last_seq() };
        self.checkpoints.request();
    }

    fn remove_names_from_complete_segments(&self) {
        let engine = &self.state.engine;
        self.log_rewriter.set_forgotten(
            engine.model().forgotten(),
            engine.model().name_rules().clone(),
            self.disk.min_bytes(),
        );
    }

    /// Adds what is known of servers to the first segment of a day, in steps.
    fn log_known_servers(&mut self) {
        if self.log.take_needs_servers() {
            self.next_known = Some(ServerKey(0));
        }
        let Some(from) = self.next_known.filter(|_| !self.disk.is_paused()) else { return };
        // No scan that follows is earlier.
        let t_ms = self.last_outcome_ms;
        let engine = &self.state.engine;
        for server in engine.model().servers_for_log(from, SERVERS_PER_TICK) {
            self.log.append(&LogEvent::Known { t_ms, server });
        }
        let next = ServerKey(from.0 + SERVERS_PER_TICK as u32);
        self.next_known = (next < engine.model().next_server()).then_some(next);
    }

    /// Logs the phases of weeks that have changed, and a week whose closing the clock
    /// blocks.
    fn log_weeks(&mut self) {
        let weeks = self.state.engine.model().weeks();
        if self.logged_weeks != weeks {
            for current in weeks {
                let before =
                    self.logged_weeks.iter().find(|before| before.week == current.week).map(|before| before.phase);
                let week = week_label(current.week);
                match current.phase {
                    phase if before == Some(phase) => {}
                    WeekPhase::Running if before.is_none() => tracing::info!(week, "a new week has begun"),
                    WeekPhase::Running => tracing::info!(week, "the week is open again"),
                    WeekPhase::Closing => tracing::info!(week, "the week is over and is being closed"),
                    WeekPhase::Ranking => {
                        tracing::info!(week, "all servers of the week are closed; they are being ranked")
                    }
                    WeekPhase::Closed => tracing::info!(week, "the week is closed"),
                    WeekPhase::Reopening => tracing::info!(week, "the week is being reopened"),
                }
            }
            self.logged_weeks = weeks.to_vec();
        }
        let blocked = self.state.engine.week_blocked();
        if let Some(week) = blocked.filter(|_| blocked != self.blocked_week) {
            tracing::warn!(
                week = week_label(week),
                "the week is over but is not closed: the system clock is not trusted, or is behind; see `clqd status`"
            );
        }
        self.blocked_week = blocked;
    }

    /// Starts a rebuild of windows from the log, if any window needs it.
    fn rebuild(&mut self) -> anyhow::Result<()> {
        if !self.state.engine.model().has_rebuild() || self.is_following() {
            return Ok(());
        }
        self.commit()?;
        let is_paused = self.disk.is_paused() || self.log.awaits_database(self.clock.now_ms());
        if is_paused || !self.rebuilder.has_space(&self.rebuild_paths) {
            self.rebuild_due = true;
            return Ok(());
        }
        self.give_up_unrecorded_windows()?;
        if !self.state.engine.model().has_rebuild() {
            return Ok(());
        }
        self.sync()?;
        self.rebuilder.begin(&self.state, &self.rebuild_paths, self.log.last_seq());
        Ok(())
    }

    /// Ends the recomputation of windows that begin before the log of this engine: they would lose what it does not have.
    /// Another engine may have begun it, whose log is longer, or old segments were removed since then.
    fn give_up_unrecorded_windows(&mut self) -> anyhow::Result<()> {
        let model = self.state.engine.model();
        let recomputed = model.recomputed_windows();
        if recomputed.is_empty() {
            return Ok(());
        }
        let reading = self.rebuild_paths.log_lock.begin_reading();
        let from_ms = match window_rebuild::log_from_ms(&self.rebuild_paths.log, model.first_added_ms()) {
            Ok(from_ms) => from_ms,
            // The rebuild fails, and says why.
            Err(_) => return Ok(()),
        };
        drop(reading);
        let is_recorded = |state: &WindowState| from_ms.is_some_and(|from_ms| state.start_ms >= from_ms);
        let lost: Vec<WindowState> = recomputed.into_iter().filter(|state| !is_recorded(state)).collect();
        if lost.is_empty() {
            return Ok(());
        }
        let labels: Vec<String> = lost.iter().map(|state| window::label(state.window)).collect();
        tracing::warn!(
            windows = labels.join(", "),
            "windows are not recomputed: they begin before the log of this engine, and keep the rows that they have"
        );
        let step = RebuildStep::GiveUp { windows: lost.iter().map(|state| state.window).collect() };
        // No scan that follows is earlier.
        self.log.append(&LogEvent::Rebuild { t_ms: self.last_outcome_ms, step: step.clone() });
        self.state.apply_rebuild(&step)?;
        self.commit()
    }

    /// Whether the disk, and the database of a cluster, keep up with the rows of a rebuild.
    fn can_import(&self) -> bool {
        let is_paused = self.disk.is_paused() || self.log.awaits_database(self.clock.now_ms());
        !is_paused && self.log.waiting_bytes() < IMPORTED_BYTES_MAX
    }

    /// One step of importing rebuilt windows.
    fn import_rebuilt_windows(&mut self) -> anyhow::Result<()> {
        if !self.rebuilder.is_ready() {
            return Ok(());
        }
        self.commit()?;
        if !self.can_import() {
            return Ok(());
        }
        // No scan that follows is earlier.
        let (t_ms, log) = (self.last_outcome_ms, &mut self.log);
        let mut log = |step: &RebuildStep| log.append(&LogEvent::Rebuild { t_ms, step: step.clone() });
        if !self.rebuilder.import_step(&mut self.state, &mut log)? {
            return Ok(());
        }
        match self.log.is_shared() {
            // The engine does not wait for the database, unless it failed. All of it is in the log.
            true => {
                self.sweep_reopened_windows()?;
                self.checkpoints.request();
            }
            false => self.checkpoint()?,
        }
        self.state.engine.model().running_windows().into_iter().for_each(|window| self.boards.enqueue(window));
        Ok(())
    }
}
