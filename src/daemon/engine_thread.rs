//! The engine thread: the only one that uses the engine and the store.
//!
//! It sends due probes to the scanner, processes outcomes and commands, commits at an
//! interval, and replies only after a commit, so that a crash never undoes what a client
//! was shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::sync::{mpsc, oneshot};

use super::backup::Begun;
use crate::api::protocol::{self, ApiError, ErrorCode, Request, RescanSelector, Row, ScanResult, ServerChange};
use crate::api::validate;
use crate::archive::OutboxQuery;
use crate::board::window;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::daemon::board_builder::BoardBuilder;
use crate::daemon::disk_space::DiskSpace;
use crate::daemon::rescan_results::{DropCounter, RescanWaiters, ScanResults};
use crate::daemon::window_rebuild::{self, RebuildPaths, Rebuilder};
use crate::engine::{
    Added, AdminError, CorrectionError, EngineSettings, Event, ForgetResult, Notice, Outcome, ReopenError,
    RescanTarget, TimeReset, WindowBoards,
};
use crate::model::archive::{
    ArchiveJob, OutboxEntry, OutboxKey, ResyncCursor, ResyncStep, WeekChunk, WeekChunkRequest,
};
use crate::model::calendar::{parse_week_label, week_label};
use crate::model::commit::{WeekPhase, WeekState};
use crate::model::server::Class;
use crate::model::view::{ClockStatus, Correction};
use crate::model::{ServerUrl, WeekKey, WindowKey};
use crate::scan::{ScanMode, ScanOutcome, ScanRequest};
use crate::scan_log::Recorder;
use crate::state::State;
use crate::state::answer::{board_window_of, respond, view_failure};
use crate::store::{FinalChanges, Reader, StoreError};

/// Outcomes applied in one batch before the next command is handled.
const OUTCOMES_PER_BATCH: usize = 512;

/// Time between two sweep steps.
const SWEEP_MS: i64 = 1_000;

/// Players whose board entries are updated after one commit, so that scans are not late;
/// before a board is answered from, all are updated. A few us each.
const BOARD_UPDATES_PER_COMMIT: usize = 20_000;

/// Names or servers in one chunk of a resync, and rows of weeks after which the chunk ends:
/// 10 ms.
const RESYNC_STEPS_MAX: usize = 2_000;
const RESYNC_ROWS_MAX: usize = 5_000;

/// Interval at which requests that wait for boards are checked again.
const BOARD_POLL_MS: i64 = 50;

type Answer = Result<Vec<Row>, ApiError>;

/// Commands to the engine thread.
pub(super) enum Order {
    Ask {
        request: Request,
        reply: oneshot::Sender<Answer>,
    },
    /// Each result is sent when it arrives, one for each server requested; the channel ends
    /// after the last.
    Rescan {
        which: RescanSelector,
        reply: oneshot::Sender<Result<StartedRescan, ApiError>>,
    },
    Jobs {
        ask: OutboxQuery,
        reply: oneshot::Sender<Vec<(OutboxEntry, ArchiveJob)>>,
    },
    Part {
        ask: WeekChunkRequest,
        reply: oneshot::Sender<WeekChunk>,
    },
    /// For a task that reads whole windows in parallel with the engine.
    Reader {
        reply: oneshot::Sender<Reader>,
    },
    /// Begins a backup. `None`: another one is in progress.
    BeginBackup {
        reply: oneshot::Sender<Begun>,
    },
    /// Ends a backup. `None`: it has to catch up first.
    EndBackup {
        rounds: u32,
        reply: oneshot::Sender<Result<Option<FinalChanges>, StoreError>>,
    },
    /// Determines which state fills the archive; `fresh` is an id that no state has.
    IdentifyArchive {
        found: Option<u64>,
        fresh: u64,
        reply: oneshot::Sender<u64>,
    },
    Resync {
        from: Option<ResyncCursor>,
        reply: oneshot::Sender<ResyncStep>,
    },
    Resynced {
        from: ResyncCursor,
        next: ResyncCursor,
        postponed: Vec<OutboxKey>,
        reply: oneshot::Sender<bool>,
    },
    Archived {
        entries: Vec<OutboxEntry>,
        reply: oneshot::Sender<()>,
    },
    Reload {
        engine: Box<EngineSettings>,
        store: config::StoreConfig,
        allow_private: bool,
        /// Messages for the admin about windows.
        reply: oneshot::Sender<Vec<String>>,
    },
    /// Stops sending probes; outcomes are still applied.
    StopScanning,
    /// Commit and end.
    Shutdown,
}

/// A rescan in progress.
pub(super) struct StartedRescan {
    pub servers: u64,
    /// The mode that takes longest among the servers.
    pub mode: ScanMode,
    /// One row for each server.
    pub results: ScanResults,
}

/// Shows that the engine is alive: counts the scheduler's checks for due probes.
#[derive(Debug, Default)]
pub(super) struct Heartbeat(AtomicU64);

impl Heartbeat {
    fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(super) struct Work {
    state: State,
    recorder: Option<Recorder>,
    clock: Arc<Clock>,
    /// `None`: scanning has stopped.
    requests: Option<mpsc::Sender<ScanRequest>>,
    commit_interval_ms: i64,
    disk: DiskSpace,
    /// Windows are to be rebuilt as soon as commits are possible again.
    rebuild_due: bool,
    allow_private: bool,
    beat: Arc<Heartbeat>,
    /// Time of the oldest uncommitted change.
    changed_ms: Option<i64>,
    ticked_ms: i64,
    swept_ms: i64,
    /// Time of the last outcome applied: outcomes are applied, and recorded, in order of
    /// time.
    taken_ms: i64,
    rescans: RescanWaiters,
    /// Phases of the weeks, and the week whose closing the clock blocks, as last logged.
    weeks: Vec<WeekState>,
    week_held: Option<WeekKey>,
    /// Clock jumps after which the scan log has begun a new file.
    leaps: u64,
    boards: BoardBuilder,
    rebuilder: Rebuilder,
    place: RebuildPaths,
    /// Requests that wait for the boards of a window.
    askers: Vec<(WindowKey, Request, oneshot::Sender<Answer>)>,
}

impl Work {
    pub(super) fn new(
        mut state: State,
        recorder: Option<Recorder>,
        clock: Arc<Clock>,
        requests: mpsc::Sender<ScanRequest>,
        config: &Config,
        beat: Arc<Heartbeat>,
        dropped: DropCounter,
    ) -> Work {
        state.store.set_compaction(config.store.compaction());
        let log = recorder.is_some().then(|| config.scan_log.path.clone());
        let disk = DiskSpace::new(&config.state_dir, log.as_deref(), config.store.disk_free_bytes_min);
        let place = RebuildPaths { state_dir: config.state_dir.clone(), log, cache_bytes: config.store.cache_bytes };
        Work {
            rebuilder: Rebuilder::new(&place),
            place,
            taken_ms: state.engine.now_ms(),
            boards: BoardBuilder::new(state.store.reader()),
            askers: Vec::new(),
            weeks: state.engine.weeks().to_vec(),
            week_held: None,
            leaps: clock.adopted_jumps(),
            state,
            recorder,
            clock,
            requests: Some(requests),
            commit_interval_ms: config.store.commit_interval_ms as i64,
            disk,
            rebuild_due: false,
            allow_private: config.scan.allow_private,
            beat,
            changed_ms: None,
            ticked_ms: 0,
            swept_ms: 0,
            rescans: RescanWaiters::new(dropped),
        }
    }

    pub(super) fn run(
        mut self,
        mut orders: mpsc::Receiver<Order>,
        mut outcomes: mpsc::Receiver<ScanOutcome>,
    ) -> anyhow::Result<()> {
        // This runtime only runs the waits of this thread.
        let waiter = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let mut batch = Vec::with_capacity(OUTCOMES_PER_BATCH);
        let mut scanning = true;
        for window in self.state.engine.running_windows() {
            self.boards.enqueue(window);
        }
        self.rebuild()?;
        loop {
            let now_ms = self.clock.now_ms();
            self.boards.start_next(|window| self.state.engine.plan_boards(window)).context("cannot start a thread")?;
            self.send_probes(now_ms);
            self.beat.beat();
            let wait = Duration::from_millis(self.next_wake_ms(now_ms).saturating_sub(now_ms).max(0) as u64);
            let mut built = None;
            let mut step = None;
            let command = waiter.block_on(async {
                tokio::select! {
                    biased;
                    boards = self.boards.next_result() => {
                        built = Some(boards);
                        None
                    }
                    next = self.rebuilder.next_event() => {
                        step = Some(next);
                        None
                    }
                    n = outcomes.recv_many(&mut batch, OUTCOMES_PER_BATCH), if scanning => {
                        scanning = n > 0;
                        orders.try_recv().ok()
                    }
                    command = orders.recv() => Some(command.unwrap_or(Order::Shutdown)),
                    () = tokio::time::sleep(wait) => None,
                }
            });
            if let Some(built) = built {
                self.cache_boards(built.context("cannot read the rows of a window")?);
            }
            if let Some(step) = step {
                self.rebuilder.handle_event(step);
                self.take_over()?;
            }
            if !scanning && self.requests.is_some() && command.is_none() {
                // At a stop, `StopScanning` is already in the command queue.
                bail!("the scanner has ended unexpectedly");
            }
            if !batch.is_empty() {
                let now_ms = self.now_ms()?;
                for outcome in batch.drain(..) {
                    self.apply_outcome(outcome, now_ms)?;
                }
            }
            if self.state.engine.has_changes() || self.state.engine.has_notices() {
                self.changed_ms.get_or_insert(now_ms);
            }
            match command {
                Some(Order::Shutdown) => {
                    let now_ms = self.now_ms()?;
                    while let Ok(outcome) = outcomes.try_recv() {
                        self.apply_outcome(outcome, now_ms)?;
                    }
                    return self.last_commit();
                }
                Some(command) => self.handle_command(command)?,
                None => {}
            }
            let now_ms = self.clock.now_ms();
            if now_ms - self.ticked_ms >= self.state.engine.tick_interval_ms() {
                self.ticked_ms = now_ms;
                self.clock.update_trust();
                self.state.engine.set_close_limit(self.clock.close_until_ms());
                // Closing a week changes much, and no request waits for it.
                if !self.disk.is_stopped() {
                    self.state.handle(Event::Tick { now_ms })?;
                }
                self.log_weeks();
            }
            if now_ms - self.swept_ms >= SWEEP_MS {
                self.swept_ms = now_ms;
                if self.disk.is_stopped() || self.rebuild_due {
                    // There may be space again, whether or not anything has changed.
                    self.commit()?;
                }
                if !self.disk.is_stopped() {
                    self.state.sweep()?;
                    if std::mem::take(&mut self.rebuild_due) {
                        self.rebuild()?;
                    }
                }
                self.take_over()?;
            } else if self.rebuilder.is_importing() {
                self.take_over()?;
            }
            self.answer_waiting_requests()?;
            if self.changed_ms.is_some_and(|since| now_ms - since >= self.commit_interval_ms) {
                self.commit()?;
            }
        }
    }

    fn next_wake_ms(&mut self, now_ms: i64) -> i64 {
        if self.rebuilder.is_importing() && !self.disk.is_stopped() {
            return now_ms;
        }
        let tick = self.ticked_ms + self.state.engine.tick_interval_ms();
        let commit = self.changed_ms.map_or(i64::MAX, |since| since + self.commit_interval_ms);
        let full = self.requests.as_ref().is_none_or(|requests| requests.capacity() == 0);
        // While the scanner's queue is full, try again in 10 ms.
        let due = match self.state.engine.next_due_ms() {
            Some(_) if self.requests.is_none() => i64::MAX,
            Some(due) if full => due.max(now_ms + 10),
            Some(due) => due,
            None => i64::MAX,
        };
        let askers = if self.askers.is_empty() { i64::MAX } else { now_ms + BOARD_POLL_MS };
        tick.min(commit).min(due).min(askers)
    }

    fn send_probes(&mut self, now_ms: i64) {
        let Some(requests) = &self.requests else { return };
        while let Ok(permit) = requests.try_reserve() {
            let Some(probe) = self.state.engine.poll_probe(now_ms) else { return };
            let mode = if probe.exception_mode { ScanMode::Exception } else { ScanMode::Normal };
            permit.send(ScanRequest { id: probe.id, server: probe.server, url: probe.url, mode });
        }
    }

    /// The current time for recorded outcomes. After a clock jump the scan log begins a new
    /// file.
    fn now_ms(&mut self) -> anyhow::Result<i64> {
        let now_ms = self.clock.now_ms();
        let leaps = self.clock.adopted_jumps();
        if leaps > self.leaps {
            self.leaps = leaps;
            self.begin_log_file()?;
        }
        Ok(now_ms)
    }

    fn begin_log_file(&mut self) -> anyhow::Result<()> {
        self.commit()?;
        let begun = self.recorder.as_mut().map_or(Ok(()), Recorder::start_new_file);
        begun.context("cannot start a new scan log file")
    }

    /// Logs the phases of weeks that have changed, and a week whose closing the clock
    /// blocks.
    fn log_weeks(&mut self) {
        let weeks = self.state.engine.weeks();
        if self.weeks != weeks {
            for current in weeks {
                let before = self.weeks.iter().find(|before| before.week == current.week).map(|before| before.phase);
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
            self.weeks = weeks.to_vec();
        }
        let blocked = self.state.engine.week_blocked();
        if let Some(week) = blocked.filter(|_| blocked != self.week_held) {
            tracing::warn!(
                week = week_label(week),
                "the week is over but is not closed: the system clock is not trusted, or is behind; see `clqd status`"
            );
        }
        self.week_held = blocked;
    }

    fn apply_outcome(&mut self, scan: ScanOutcome, now_ms: i64) -> Result<(), StoreError> {
        let outcome = match scan.result {
            Ok(snapshot) => Outcome::Snapshot(snapshot),
            // A local fault is no statement about the server.
            Err(miss) if miss.reason.is_local_fault() => {
                self.state.engine.handle_local_scan_failure(scan.server, scan.id, miss.t_ms, miss.reason.name());
                return Ok(());
            }
            Err(miss) => {
                // Of several attempts, the result of the intended one.
                let reason = scan.attempts.first().and_then(|attempt| attempt.result.err()).unwrap_or(miss.reason);
                Outcome::Miss { t_ms: miss.t_ms, reason: reason.name().to_owned() }
            }
        };
        let log_bytes = self.recorder.as_ref().map_or(0, Recorder::buffered_bytes);
        if self.disk.discards_scan(self.state.engine.pending_records(), log_bytes) {
            self.state.engine.handle_local_scan_failure(
                scan.server,
                scan.id,
                outcome.t_ms(),
                "discarded: the disk is nearly full",
            );
            return Ok(());
        }
        let outcome = outcome.clamped_to(self.taken_ms, now_ms);
        self.taken_ms = outcome.t_ms();
        let ignored = self.state.engine.is_greylisted(scan.server);
        let recorded = self.recorder.is_some().then(|| if ignored { outcome.without_list() } else { outcome.clone() });
        let used_before = self.state.engine.outcomes_applied();
        self.state.handle(Event::Scanned { server: scan.server, id: scan.id, sent_ms: scan.sent_ms, outcome })?;
        if let (Some(recorder), Some(outcome)) = (&mut self.recorder, recorded)
            && self.state.engine.outcomes_applied() > used_before
        {
            let url = self.state.engine.url_of(scan.server).expect("outcomes are of known servers");
            let outcome = outcome.with_blanked_names(self.state.engine.blanked_names());
            recorder.add(url, &outcome);
            self.rebuilder.record(url, &outcome);
        }
        Ok(())
    }

    /// Commits, unless the disk is nearly full: then the changes stay in memory.
    fn commit(&mut self) -> anyhow::Result<()> {
        let now_ms = self.clock.now_ms();
        if self.disk.check(now_ms) {
            return self.commit_now();
        }
        // Checked again after the interval.
        self.changed_ms = Some(now_ms);
        while let Some(notice) = self.state.engine.poll_notice() {
            self.send_scan_result(&notice);
        }
        Ok(())
    }

    /// The last commit of a daemon that stops.
    fn last_commit(&mut self) -> anyhow::Result<()> {
        let pending = self.state.engine.pending_records();
        if self.disk.check(self.clock.now_ms()) || self.disk.has_space_for(pending) {
            return self.commit_now();
        }
        tracing::error!(
            pending,
            since_ms = self.disk.status(pending).paused_since_ms,
            "the disk is full: scans made since it became nearly full are lost"
        );
        Ok(())
    }

    fn commit_now(&mut self) -> anyhow::Result<()> {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush().context("cannot write the scan log")?;
        }
        self.state.commit().context("cannot write the state")?;
        self.state
            .engine
            .refresh_boards(&self.state.store, BOARD_UPDATES_PER_COMMIT)
            .context("cannot read the state")?;
        self.changed_ms = None;
        while let Some(notice) = self.state.engine.poll_notice() {
            self.send_scan_result(&notice);
        }
        Ok(())
    }

    /// Starts a rebuild of windows from the scan log, if any window needs it.
    fn rebuild(&mut self) -> anyhow::Result<()> {
        if self.state.engine.types_to_rebuild().is_empty() {
            return Ok(());
        }
        // The scans recorded so far are in the log files. Later ones are also written to
        // the rebuild's chunk files.
        self.commit()?;
        if self.disk.is_stopped() {
            self.rebuild_due = true;
            return Ok(());
        }
        self.rebuilder.begin(&mut self.state.engine, &self.place);
        Ok(())
    }

    /// One step of importing rebuilt windows.
    fn take_over(&mut self) -> anyhow::Result<()> {
        if !self.rebuilder.is_ready() {
            return Ok(());
        }
        self.commit()?;
        if self.disk.is_stopped() {
            return Ok(());
        }
        if !self.rebuilder.import_step(&mut self.state)? {
            return Ok(());
        }
        self.commit()?;
        self.state.engine.running_windows().into_iter().for_each(|window| self.boards.enqueue(window));
        Ok(())
    }

    fn cache_boards(&mut self, boards: WindowBoards) {
        self.state.engine.install_boards(boards);
        self.queue_outdated_boards();
    }

    /// Answers requests whose boards are in memory and include the last commit.
    fn answer_waiting_requests(&mut self) -> anyhow::Result<()> {
        if self.askers.is_empty() {
            return Ok(());
        }
        self.commit()?;
        for (_, request, reply) in std::mem::take(&mut self.askers) {
            self.answer_or_wait_for_boards(request, reply)?;
        }
        Ok(())
    }

    /// Answers a request, at once or when its boards are in memory.
    fn answer_or_wait_for_boards(&mut self, request: Request, reply: oneshot::Sender<Answer>) -> anyhow::Result<()> {
        match board_window_of(&self.state, &request) {
            _ if reply.is_closed() => {} // the client has disconnected
            Some(window) if self.state.engine.boards(window).is_none() => {
                self.boards.enqueue(window);
                self.askers.push((window, request, reply));
            }
            Some(window) => {
                self.commit()?;
                // The boards are new, or a large server has changed: the changes are
                // applied commit by commit.
                if self.state.engine.dirty_players(window).is_none_or(|behind| behind > BOARD_UPDATES_PER_COMMIT) {
                    self.askers.push((window, request, reply));
                    return Ok(());
                }
                self.state.engine.touch_boards(window);
                while self.state.engine.refresh_boards(&self.state.store, usize::MAX)? {}
                _ = reply.send(self.handle_request(request)?);
            }
            None => _ = reply.send(self.handle_request(request)?),
        }
        Ok(())
    }

    fn send_scan_result(&mut self, notice: &Notice) {
        if !self.rescans.is_waiting(notice.server) {
            return;
        }
        let Some(server) = self.state.engine.summary_of(notice.server) else {
            return self.rescans.cancel(notice.server);
        };
        let answered = notice.missed.is_none();
        let row = protocol::ScanRow {
            url: server.url,
            t_ms: notice.t_ms,
            result: match (answered, notice.partial) {
                (true, false) => ScanResult::Snapshot,
                (true, true) => ScanResult::Partial,
                (false, _) => ScanResult::Miss,
            },
            class: server.class,
            hostname: answered.then_some(server.hostname),
            game: server.game.filter(|_| answered),
            map: server.map.filter(|_| answered),
            players: answered.then_some(server.players),
            slots: answered.then_some(server.slots),
            reason: notice.missed.clone(),
        };
        self.rescans.finish(notice.server, &Row::Scan(Box::new(row)));
    }

    fn handle_command(&mut self, command: Order) -> anyhow::Result<()> {
        match command {
            Order::Ask { request, reply } => self.answer_or_wait_for_boards(request, reply)?,
            Order::Rescan { which, reply } => {
                // Outcomes of earlier scans do not belong to the rescan.
                self.commit()?;
                let which = match which {
                    RescanSelector::Url(url) => RescanTarget::Url(url),
                    RescanSelector::Class(class) => RescanTarget::Class(class),
                    RescanSelector::AllUnknown => RescanTarget::AllUnknown,
                };
                let targets = self.state.engine.rescan(&which, self.clock.now_ms());
                let results = targets.map(|servers| {
                    let class_of = |server| self.state.engine.summary_of(server).map(|summary| summary.class);
                    let failed = match which {
                        RescanTarget::Url(_) => {
                            servers.iter().any(|&server| class_of(server) == Some(Class::FAILED.number()))
                        }
                        RescanTarget::Class(class) => class == Class::FAILED,
                        RescanTarget::AllUnknown => true,
                    };
                    let mode = if failed { ScanMode::Exception } else { ScanMode::Normal };
                    StartedRescan { servers: servers.len() as u64, mode, results: self.rescans.begin(servers) }
                });
                _ = reply.send(results.map_err(refused));
            }
            Order::Reader { reply } => _ = reply.send(self.state.store.reader()),
            Order::BeginBackup { reply } => _ = reply.send(self.state.store.begin_backup()),
            Order::EndBackup { rounds, reply } => {
                self.commit()?;
                _ = reply.send(self.state.store.end_backup(rounds));
            }
            Order::Jobs { ask, reply } => _ = reply.send(self.jobs(ask)?),
            Order::Part { ask, reply } => {
                let mut part = self.state.engine.week_chunk(&self.state.store, ask)?;
                if matches!(part, WeekChunk::Chunk { .. }) {
                    self.commit()?;
                    if self.disk.is_stopped() {
                        part = WeekChunk::NotAvailable;
                    }
                }
                _ = reply.send(part);
            }
            Order::IdentifyArchive { found, fresh, reply } => {
                let id = self.state.engine.check_archive_id(found, fresh);
                if found != Some(id) {
                    tracing::info!("the archive is new or was filled by another state: everything is written to it");
                }
                self.commit()?;
                _ = reply.send(id);
            }
            Order::Resync { from, reply } => {
                self.commit()?;
                if self.disk.is_stopped() {
                    // Only what is on disk is archived.
                    _ = reply.send(ResyncStep::DrainFirst);
                    return Ok(());
                }
                let State { engine, store } = &self.state;
                _ = reply.send(engine.resync_chunk(store, from, RESYNC_STEPS_MAX, RESYNC_ROWS_MAX)?);
            }
            // Committed with the next chunk or at the commit interval. A crash before that
            // repeats a chunk.
            Order::Resynced { from, next, postponed, reply } => {
                _ = reply.send(self.state.engine.acknowledge_resync(from, next, &postponed));
            }
            Order::Archived { entries, reply } => {
                self.state.engine.acknowledge_archived(&entries);
                self.commit()?;
                _ = reply.send(());
            }
            Order::Reload { engine, store, allow_private, reply } => {
                self.disk.set_min(store.disk_free_bytes_min);
                self.state.store.set_compaction(store.compaction());
                self.commit()?;
                self.state.engine.reload(*engine);
                let notes = match self.state.engine.has_changed_types() {
                    true => {
                        let notes =
                            window_rebuild::plan_window_types(&mut self.state.engine, self.place.log.as_deref());
                        self.rebuild()?;
                        notes
                    }
                    false => Vec::new(),
                };
                _ = reply.send(notes);
                self.queue_outdated_boards();
                self.commit_interval_ms = store.commit_interval_ms as i64;
                self.allow_private = allow_private;
            }
            Order::StopScanning => self.requests = None,
            Order::Shutdown => unreachable!("the loop ends at Shutdown"),
        }
        Ok(())
    }

    /// The next jobs. Entries of deleted objects are acknowledged on the way: an empty
    /// result means that no jobs are left.
    fn jobs(&mut self, mut query: OutboxQuery) -> anyhow::Result<Vec<(OutboxEntry, ArchiveJob)>> {
        loop {
            self.commit()?;
            if self.disk.is_stopped() {
                // Only what is on disk is archived.
                return Ok(Vec::new());
            }
            let State { engine, store } = &self.state;
            let jobs = engine.archive_jobs(store, query.after, query.before, query.entries_max, query.rows_max)?;
            let deleted: Vec<OutboxEntry> =
                jobs.iter().filter(|(_, job)| job.is_none()).map(|(entry, _)| *entry).collect();
            let last = jobs.last().map(|(entry, _)| entry.key);
            let kept: Vec<_> = jobs.into_iter().filter_map(|(entry, job)| Some((entry, job?))).collect();
            self.state.engine.acknowledge_archived(&deleted);
            if !kept.is_empty() || deleted.is_empty() {
                return Ok(kept);
            }
            query.after = last;
        }
    }

    fn handle_request(&mut self, request: Request) -> anyhow::Result<Result<Vec<Row>, ApiError>> {
        let now_ms = self.clock.now_ms();
        if !request.is_read_only() && !self.disk.check(now_ms) {
            return Ok(Err(self.disk.refusal()));
        }
        let rows = match &request {
            Request::ServersAdd { urls, tags } => Ok(urls.iter().map(|url| self.add(url, tags, now_ms)).collect()),
            Request::ServersRemove { urls } => Ok(urls.iter().map(|url| self.remove(url)).collect()),
            Request::Greylist { url, reason } => match self.state.engine.greylist(url, reason.clone()) {
                Ok(_) => {
                    tracing::info!(%url, reason, "greylist changed");
                    let outcome = if reason.is_some() {
                        protocol::ChangeOutcome::Greylisted
                    } else {
                        protocol::ChangeOutcome::Lifted
                    };
                    Ok(vec![Row::Change(ServerChange { url: url.to_string(), outcome, reason: reason.clone() })])
                }
                Err(error) => Err(refused(error)),
            },
            Request::ServersTag { urls, add, remove } => {
                Ok(urls.iter().map(|url| self.tag(url, add, remove)).collect())
            }
            Request::ServersTrust { url, except, revoke } => {
                match self.state.engine.trust_server(url, except, revoke) {
                    Ok(changed) => {
                        let outcome =
                            if changed { protocol::ChangeOutcome::Trusted } else { protocol::ChangeOutcome::Unchanged };
                        tracing::info!(%url, ?except, ?revoke, changed, "screening of a server changed");
                        Ok(vec![Row::Change(ServerChange { url: url.to_string(), outcome, reason: None })])
                    }
                    Err(error) => Err(refused(error)),
                }
            }
            Request::TagDrop { tag } => match self.state.engine.delete_tag(tag) {
                Ok(servers) => {
                    tracing::info!(tag, servers, "tag dropped");
                    let dropped = Correction::TagDropped { tag: tag.clone(), servers: servers as u64 };
                    Ok(vec![Row::Correction(dropped)])
                }
                Err(error) => Err(refused(error)),
            },
            Request::PlayerMerge { .. } | Request::PlayerForget { .. } | Request::PlayerAllow { .. } => {
                self.correct_player(&request, now_ms)?
            }
            Request::ClockAccept {} => {
                let clock = self.clock.accept();
                self.state.engine.set_close_limit(self.clock.close_until_ms());
                Ok(vec![Row::Clock(clock)])
            }
            Request::ClockReset { force } => self.reset_clock(*force)?,
            Request::WeekReopen { week } => self.reopen_week(week)?,
            Request::WindowsDelete { before_ms } => match validate::validate(&request) {
                Some(problem) => Err(ApiError::new(ErrorCode::BadRequest, problem)),
                None => Ok(self.delete_windows(*before_ms)),
            },
            reads => {
                self.commit()?;
                let mut rows = respond(&self.state, reads);
                for row in rows.iter_mut().flatten() {
                    if let Row::Status(status) = row {
                        status.store = Some(self.disk.status(self.state.engine.pending_records()));
                        let week_pending_close = self.state.engine.week_blocked().map(week_label);
                        status.clock = Some(ClockStatus { week_pending_close, ..self.clock.status() });
                    }
                }
                return Ok(rows);
            }
        };
        self.commit()?;
        Ok(rows)
    }

    /// Sets recorded time back to the system clock. The scan log begins a new file first,
    /// so that the next start does not take older lines for new ones.
    fn reset_clock(&mut self, force: bool) -> anyhow::Result<Answer> {
        let refuse = |message: String| Ok(Err(ApiError::new(ErrorCode::Refused, message)));
        let clock = self.clock.status();
        if clock.ahead_ms == 0 {
            return refuse("recorded time is not ahead of the system clock: there is nothing to set back".to_owned());
        }
        if clock.synchronised != Some(true) && !force {
            return refuse(format!(
                "recorded time would be set back by {} s, but the system clock is not known to be synchronised; if it \
                 is right, add --yes",
                clock.ahead_ms / 1_000
            ));
        }
        self.begin_log_file()?;
        if self.disk.is_stopped() {
            // The disk has just become full. Scans that wait to be written would be later than their time.
            return Ok(Err(self.disk.refusal()));
        }
        let Some(reset) = self.clock.reset() else {
            return refuse("the system clock has just caught up with recorded time".to_owned());
        };
        let result = self.state.engine.reset_time(reset.now_ms);
        (self.taken_ms, self.ticked_ms, self.swept_ms) = (reset.now_ms, 0, 0);
        self.commit()?;
        self.rebuild()?;
        let reopened: Vec<String> = result.reopened.iter().copied().map(week_label).collect();
        tracing::warn!(
            previous_ms = reset.previous_ms,
            now_ms = reset.now_ms,
            servers = result.servers,
            reopened = reopened.join(", "),
            "an admin set recorded time back"
        );
        let TimeReset { previous_ms, now_ms, servers, uncredited_week, .. } = result;
        let uncredited_week = uncredited_week.map(week_label);
        let reset = Correction::TimeReset { previous_ms, now_ms, servers, reopened, uncredited_week };
        Ok(Ok(vec![Row::Correction(reset)]))
    }

    fn reopen_week(&mut self, text: &str) -> anyhow::Result<Answer> {
        let week = match parse_week_label(text) {
            Ok(week) => week,
            Err(error) => return Ok(Err(ApiError::new(ErrorCode::BadRequest, error.to_string()))),
        };
        self.commit()?;
        Ok(match self.state.engine.reopen_week(week) {
            Ok(reopened) => {
                if reopened {
                    tracing::warn!(week = text, "an admin reopened a week");
                }
                self.ticked_ms = 0;
                Ok(vec![Row::Correction(Correction::WeekReopened { week: text.to_owned(), already_open: !reopened })])
            }
            Err(error @ ReopenError::RowsDeleted { .. }) => Err(ApiError::new(ErrorCode::NotFound, error.to_string())),
            Err(error) => Err(ApiError::new(ErrorCode::Refused, error.to_string())),
        })
    }

    /// Corrects one player. The correction has its own commit.
    fn correct_player(&mut self, request: &Request, now_ms: i64) -> anyhow::Result<Answer> {
        self.commit()?;
        let State { engine, store } = &mut self.state;
        let result = match request {
            Request::PlayerMerge { from, into, game } => engine.merge_players(store, game, from, into).map(|result| {
                tracing::info!(from = result.from.0, into = result.into.0, "players merged");
                Correction::Merged { player_key: result.from.0, into_key: result.into.0, rows: result.rows as u64 }
            }),
            Request::PlayerForget { player, game } => {
                engine.forget_player(store, game, player, now_ms).map(|result| {
                    // Without the name: the log is kept longer than the name.
                    tracing::info!(player = result.player.0, "player forgotten");
                    let ForgetResult { player, rows, hashes } = result;
                    Correction::Forgotten { player_key: player.0, rows: rows as u64, hashes }
                })
            }
            Request::PlayerAllow { hash } => engine.allow_name(*hash).map(|()| Correction::Allowed { hash: *hash }),
            _ => unreachable!("the caller passes only corrections of players"),
        };
        Ok(result.map(|correction| vec![Row::Correction(correction)]).map_err(not_corrected))
    }

    fn tag(&mut self, url: &ServerUrl, add: &[String], remove: &[String]) -> Row {
        let (outcome, reason) = match self.state.engine.tag_server(url, add, remove) {
            Ok(true) => (protocol::ChangeOutcome::Tagged, None),
            Ok(false) => (protocol::ChangeOutcome::Unchanged, None),
            Err(AdminError::UnknownServer(_)) => (protocol::ChangeOutcome::NotFound, None),
            Err(error) => (protocol::ChangeOutcome::Refused, Some(error.to_string())),
        };
        Row::Change(ServerChange { url: url.to_string(), outcome, reason })
    }

    fn queue_outdated_boards(&mut self) {
        self.state.engine.windows_with_stale_order().into_iter().for_each(|window| self.boards.enqueue(window));
    }

    fn add(&mut self, text: &str, tags: &[String], now_ms: i64) -> Row {
        let change = |url: String, outcome, reason| Row::Change(ServerChange { url, outcome, reason });
        let refuse = |reason: String| change(text.to_owned(), protocol::ChangeOutcome::Refused, Some(reason));
        let url = match crate::proto::parse_server_url(text) {
            Ok(url) => url,
            Err(error) => return refuse(error.to_string()),
        };
        if url.ip().is_some_and(|ip| !self.allow_private && !crate::scan::is_public(ip)) {
            return refuse("the address is not a public one (setting scan.allow_private)".to_owned());
        }
        match self.state.engine.add_server(url.clone(), tags.to_vec(), now_ms) {
            Ok((_, Added::New)) => change(url.to_string(), protocol::ChangeOutcome::Added, None),
            Ok((_, Added::Restored)) => change(url.to_string(), protocol::ChangeOutcome::Restored, None),
            Ok((_, Added::AlreadyKnown)) => change(url.to_string(), protocol::ChangeOutcome::Unchanged, None),
            Err(error) => refuse(error.to_string()),
        }
    }

    fn delete_windows(&mut self, before_ms: i64) -> Vec<Row> {
        // Deleted windows cannot be listed afterwards.
        let mut windows = self.state.engine.windows();
        let deleted = self.state.engine.delete_windows_before(&self.state.store, before_ms);
        let labels: Vec<String> = deleted.into_iter().map(window::label).collect();
        windows.retain(|listed| labels.contains(&listed.window.window));
        if !labels.is_empty() {
            tracing::info!(windows = labels.len(), before_ms, "windows deleted");
        }
        windows.into_iter().map(|listed| Row::WindowDeleted(listed.window)).collect()
    }

    fn remove(&mut self, text: &str) -> Row {
        let change = |url: String, outcome, reason| Row::Change(ServerChange { url, outcome, reason });
        match ServerUrl::parse(text) {
            Err(error) => change(text.to_owned(), protocol::ChangeOutcome::Refused, Some(error.to_string())),
            Ok(url) => match self.state.engine.remove_server(&url) {
                Ok(server) => {
                    // Its scans are no longer reported.
                    self.rescans.cancel(server);
                    tracing::info!(%url, "server removed");
                    change(url.to_string(), protocol::ChangeOutcome::Removed, None)
                }
                Err(_) => change(url.to_string(), protocol::ChangeOutcome::NotFound, None),
            },
        }
    }
}

fn not_corrected(error: CorrectionError<StoreError>) -> ApiError {
    let code = match error {
        CorrectionError::View(error) => return view_failure(error),
        CorrectionError::SamePlayer(_) => ErrorCode::Refused,
        _ => ErrorCode::NotFound,
    };
    ApiError::new(code, error.to_string())
}

fn refused(error: AdminError) -> ApiError {
    let code = match error {
        AdminError::UnknownServer(_) | AdminError::UnknownTag { .. } => ErrorCode::NotFound,
        AdminError::TooManyServers(_) | AdminError::TooManyTags { .. } => ErrorCode::Refused,
    };
    ApiError::new(code, error.to_string())
}
