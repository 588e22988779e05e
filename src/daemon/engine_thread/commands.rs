//! Handles commands, except requests of clients.

use tokio::sync::oneshot;

use super::EngineThread;
use super::command::{Command, StartedRescan};
use super::requests::admin_error;
use crate::api::{ApiError, RescanSelector};
use crate::archive::OutboxQuery;
use crate::config::Config;
use crate::daemon::window_rebuild;
use crate::engine::{EngineSettings, RescanTarget, WriterPlan, WriterRefusal};
use crate::log::LogEvent;
use crate::model::WindowKey;
use crate::model::archive::{ArchiveJob, ResyncStep, WeekChunk};
use crate::model::outbox::{ArchiveStep, OutboxEntry, ResyncCursor, WriterRow};
use crate::model::server::Class;
use crate::model::top_board::{TopBoardKey, TopBoards};
use crate::scan::ScanMode;
use crate::state::State;

/// Names or servers in one chunk of a resync: 10 ms.
const RESYNC_STEPS_MAX: usize = 2_000;

/// Rows of weeks after which a chunk of a resync ends: 10 ms.
const RESYNC_ROWS_MAX: usize = 5_000;

/// Published boards in one answer: 1 ms.
const TOP_BOARDS_MAX: usize = 50;

impl EngineThread {
    pub(super) fn handle_command(&mut self, command: Command) -> anyhow::Result<()> {
        match command {
            Command::Request { request, reply } => {
                self.answer_or_wait_for_boards(request, reply)?;
            }
            Command::Rescan { servers, reply } => _ = reply.send(self.start_rescan(servers)?),
            Command::BackupSource { reply } => self.checkpoints.request_backup(reply),
            Command::PendingJobs { query, reply } => {
                let jobs = self.pending_jobs(query)?;
                self.archive_when_synced(reply, jobs);
            }
            Command::NextWeekChunk { request, reply } => {
                let mut chunk = self.state.engine.week_chunk(&self.state.store, request)?;
                if matches!(chunk, WeekChunk::Chunk { .. }) {
                    self.commit()?;
                    if self.disk.is_paused() {
                        chunk = WeekChunk::NotAvailable;
                    }
                }
                self.archive_when_synced(reply, chunk);
            }
            // The worker asks this before it writes anything.
            Command::ArchiveId { reply } => self.reply_when_certain(reply, self.state.engine.archive_id()),
            Command::LastKeys { reply } => _ = reply.send(self.state.engine.last_keys()),
            // Committed at the commit interval.
            Command::ArchiveCompleted { at_ms, reply } => {
                self.state.engine.archive_completed(at_ms);
                _ = reply.send(());
            }
            Command::PlanArchiveWriter { found, row, random, resyncs_older, reply } => {
                let plan = self.plan_archive_writer(found, row, random, resyncs_older)?;
                self.reply_when_synced(reply, plan);
            }
            Command::NextResyncChunk { from, reply } => {
                let step = self.next_resync_chunk(from)?;
                self.archive_when_synced(reply, step);
            }
            // Committed with the next chunk or at the commit interval. A crash before that
            // repeats a chunk.
            Command::AcknowledgeResyncChunk { from, next, postponed, at, reply } => {
                self.state.engine.archive_acknowledged(at);
                _ = reply.send(self.state.engine.acknowledge_resync(from, next, &postponed));
            }
            Command::TopBoards { window, after, reply } => {
                // Boards may show changes that are not on disk; the archive must not.
                self.commit()?;
                let boards = self.top_boards(window, after);
                self.archive_when_synced(reply, boards);
            }
            Command::ArchiveTasks { reply } => {
                self.commit()?;
                _ = reply.send(self.state.engine.archive_tasks(&self.state.store));
            }
            Command::ArchiveBounds { reply } => _ = reply.send(self.state.engine.archive_bounds()),
            Command::SiteTotals { reply } => _ = reply.send(self.state.engine.site_totals()),
            Command::Acknowledge { entries, at, reply } => {
                self.state.engine.acknowledge_archived(&entries);
                self.state.engine.archive_acknowledged(at);
                self.commit()?;
                _ = reply.send(());
            }
            Command::ArchivedWeeks { weeks, reply } => _ = reply.send(self.archived_weeks(weeks)),
            Command::ResendWeek { week, from, reply } => {
                let step = self.resend_week(week, from)?;
                self.reply_when_synced(reply, step);
            }
            Command::ResendAll { adopts, reply } => {
                let server_weeks = self.resend_all(adopts)?;
                self.reply_when_synced(reply, server_weeks);
            }
            Command::ExpectedWeeks { week, from, only, reply } => {
                _ = reply.send(self.expected_weeks(week, from, only.as_deref())?);
            }
            Command::ExpectedWeekChunk { request, reply } => {
                _ = reply.send(self.state.engine.expected_week_chunk(&self.state.store, request)?);
            }
            Command::ChangedWeeks { week, servers, reply } => {
                _ = reply.send(self.state.engine.changed_weeks(week, &servers));
            }
            Command::ExpectedNames { players, reply } => _ = reply.send(self.expected_names(&players)?),
            Command::EndVerification { reply } => {
                self.state.engine.end_verification();
                _ = reply.send(());
            }
            Command::Reload { config, engine, reply } => _ = reply.send(self.reload(&config, *engine)?),
            Command::StopScanning => self.probes = None,
            Command::Shutdown => unreachable!("the loop ends at Shutdown"),
        }
        Ok(())
    }

    /// The next published boards of a window, or of all running windows. Boards that are not in memory are read
    /// into memory.
    fn top_boards(&mut self, window: Option<WindowKey>, after: Option<TopBoardKey>) -> TopBoards {
        let engine = &mut self.state.engine;
        if let Some(window) = window {
            if !engine.has_boards(window) {
                return TopBoards::Deleted;
            }
            // Not evicted next.
            engine.touch_boards(window);
        }
        let windows = window.map_or_else(|| engine.running_windows(), |window| vec![window]);
        let missing: Vec<WindowKey> = windows.into_iter().filter(|window| engine.boards(*window).is_none()).collect();
        missing.iter().for_each(|window| self.boards.enqueue(*window));
        match (window, self.disk.is_paused()) {
            (Some(_), is_paused) if is_paused || !missing.is_empty() => TopBoards::Building,
            // Only what is on disk is archived.
            (None, true) => TopBoards::Next(Vec::new()),
            // Running windows are published without those of a new daemon, which has none before the first scan.
            _ => TopBoards::Next(engine.top_boards(window, after, TOP_BOARDS_MAX)),
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

    /// Makes servers due now and registers the rescan for their results.
    fn start_rescan(&mut self, servers: RescanSelector) -> anyhow::Result<Result<StartedRescan, ApiError>> {
        // Outcomes of earlier scans do not belong to the rescan.
        self.commit()?;
        let target = match servers {
            RescanSelector::Url(url) => RescanTarget::Url(url),
            RescanSelector::AllUnknown => RescanTarget::AllUnknown,
        };
        let servers = match self.state.engine.rescan(&target, self.clock.now_ms()) {
            Ok(servers) => servers,
            Err(error) => return Ok(Err(admin_error(error))),
        };
        let class_of = |server| self.state.engine.summary_of(server).map(|summary| summary.class);
        let has_failed = match target {
            RescanTarget::Url(_) => servers.iter().any(|&server| class_of(server) == Some(Class::FAILED.number())),
            RescanTarget::Class(class) => class == Class::FAILED,
            RescanTarget::AllUnknown => true,
        };
        let mode = if has_failed { ScanMode::Exception } else { ScanMode::Normal };
        Ok(Ok(StartedRescan { servers: servers.len() as u64, mode, results: self.rescans.begin(servers) }))
    }

    /// Applies reloaded settings. Returns messages for the admin about windows.
    fn reload(&mut self, config: &Config, engine: EngineSettings) -> anyhow::Result<Vec<String>> {
        self.disk.set_min(config.store.disk_free_bytes_min);
        self.state.store.set_database_settings(config.store.database_settings());
        self.commit()?;
        self.state.engine.reload(engine);
        let mut notes = Vec::new();
        if self.state.engine.has_changed_types() {
            notes = window_rebuild::plan_window_types(&mut self.state.engine, &self.rebuild_paths.log);
            self.rebuild()?;
        }
        self.log.set_settings(self.state.engine.now_ms(), config.result_settings());
        self.log.set_retention(config.log_retention());
        self.checkpoints.reconfigure(&config.store);
        self.queue_outdated_boards();
        self.commit_interval_ms = config.store.commit_interval_ms as i64;
        self.allow_private = config.scan.allow_private;
        self.forget_silent_days = config.scan.forget_silent_days;
        self.captures.iter_mut().for_each(|captures| captures.set_keep_days(config.capture.keep_days));
        self.remove_names_from_log();
        Ok(notes)
    }

    /// Chooses the next epoch of the archive's writer, and records what that changes.
    fn plan_archive_writer(
        &mut self,
        found: Option<u64>,
        row: Option<WriterRow>,
        random: u64,
        resyncs_older: bool,
    ) -> anyhow::Result<Result<WriterPlan, WriterRefusal>> {
        let plan = self.state.engine.plan_archive_writer(found, row, random, resyncs_older);
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
        Ok(engine.resync_chunk(store, from, RESYNC_STEPS_MAX, RESYNC_ROWS_MAX)?)
    }

    /// The next jobs. Entries of deleted objects are acknowledged on the way: an empty
    /// result means that no jobs are left.
    fn pending_jobs(&mut self, mut query: OutboxQuery) -> anyhow::Result<Vec<(OutboxEntry, ArchiveJob)>> {
        loop {
            self.commit()?;
            if self.disk.is_paused() {
                // Only what is on disk is archived.
                return Ok(Vec::new());
            }
            let State { engine, store } = &mut self.state;
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
}
