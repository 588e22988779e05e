//! When changes are on disk.
//!
//! - Every event is added to the log when it is applied, and written some 200 ms later, or at once if
//!   a client waits for it.
//! - The engine's changes are committed to memory at the same interval, where all readers find them.
//! - A checkpoint writes the committed changes to the state directory, every
//!   `store.checkpoint_interval_s`. It begins when the log is on disk until its position. After that, the
//!   log before this position is not needed for a start.
//!
//! A start applies the events after the position of the last checkpoint. The first checkpoint follows at once:
//! before it, the database is compared with the checkpoint files, and until then nothing is archived. It waits
//! while the time at the start may be wrong, so that the log has all of it.

use anyhow::Context;
use tokio::sync::oneshot;

use super::change::Change;
use super::silence::Silence;
use super::{EngineThread, NameRemoval};
use crate::api::requests::PlayerForget;
use crate::api::{PublicStoreStatus, StoreStatus};
use crate::config::StoreConfig;
use crate::daemon::views::EngineThreadStatus;
use crate::model::calendar::week_label;
use crate::state::State;
use crate::state::clock_correction::ClockCorrection;
use crate::store::{BackupSource, StoreError};
use crate::view::ClockTrust;

/// A write that takes longer than this is taken for a failure of the disk: the watchdog restarts
/// the service.
const DISK_STALL_MS: i64 = 300_000;

/// Largest time between two writes of the leader of a cluster: they keep its lease.
pub(super) const BEAT_MS: i64 = 1_000;

/// The clock was wrong at the start and is right now. The next start corrects the times since then.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the clock was {} s ahead at the start and is right now; the next start corrects the times since then", by_ms / 1_000)]
pub(in crate::daemon) struct StartTimeWrong {
    by_ms: i64,
}

/// The records of a backup, and how many of the state it lacks, because the disk is nearly full.
pub(in crate::daemon) type BackupReply = (Result<BackupSource, StoreError>, usize);

/// Sends an answer when its events are on disk.
pub(super) type Unsynced = Box<dyn FnOnce() + Send>;

/// The checkpoints of the state.
#[derive(Debug)]
pub(super) struct Checkpoints {
    interval_ms: i64,
    /// Changes at which one begins, bytes. With twice as many scans are discarded.
    bytes: usize,
    /// When the last one began, Unix ms.
    began_ms: i64,
    is_requested: bool,
    in_progress: Option<InProgress>,
    /// When the last one was on disk.
    last_ms: Option<i64>,
    backups: Vec<WaitingBackup>,
}

/// A backup that waits for a checkpoint.
#[derive(Debug)]
struct WaitingBackup {
    reply: oneshot::Sender<BackupReply>,
    /// Whether the checkpoint in progress began after the request.
    is_in_checkpoint: bool,
}

#[derive(Debug)]
struct InProgress {
    /// The state on disk will contain the log until this batch.
    position: u64,
    /// `None`: the log is not on disk until there.
    writing: Option<Writing>,
}

/// A checkpoint that is being written.
#[derive(Debug)]
struct Writing {
    /// Is closed at the end.
    ended: oneshot::Receiver<()>,
    has_ended: bool,
}

impl Checkpoints {
    pub(super) fn new(config: &StoreConfig, now_ms: i64) -> Checkpoints {
        let interval_ms = config.checkpoint_interval_ms();
        Checkpoints {
            interval_ms,
            bytes: config.checkpoint_bytes(),
            began_ms: now_ms,
            is_requested: true,
            in_progress: None,
            last_ms: None,
            backups: Vec::new(),
        }
    }

    pub(super) fn reconfigure(&mut self, config: &StoreConfig) {
        self.interval_ms = config.checkpoint_interval_ms();
        self.bytes = config.checkpoint_bytes();
    }

    /// Begins a checkpoint soon.
    pub(super) fn request(&mut self) {
        self.is_requested = true;
    }

    /// Begins a checkpoint soon, for a backup.
    pub(super) fn request_backup(&mut self, reply: oneshot::Sender<BackupReply>) {
        self.backups.push(WaitingBackup { reply, is_in_checkpoint: false });
        self.request();
    }

    fn begin(&mut self, now_ms: i64) {
        self.is_requested = false;
        self.began_ms = now_ms;
        self.backups.iter_mut().for_each(|backup| backup.is_in_checkpoint = true);
    }

    pub(super) fn is_writing(&self) -> bool {
        self.in_progress.as_ref().is_some_and(|it| it.writing.is_some())
    }

    /// Waits until the checkpoint that is being written ends, which [`EngineThread::advance_durability`] then handles.
    pub(super) async fn wait_for_end(&mut self) {
        match self.in_progress.as_mut().and_then(|it| it.writing.as_mut()) {
            Some(Writing { ended, has_ended: has_ended @ false }) => {
                _ = ended.await;
                *has_ended = true;
            }
            _ => std::future::pending().await,
        }
    }

    pub(super) fn last_ms(&self) -> Option<i64> {
        self.last_ms
    }
}

impl EngineThread {
    /// Commits the changes to memory, unless the disk is nearly full: then they stay in the engine, which
    /// limits them.
    pub(super) fn commit(&mut self) -> anyhow::Result<()> {
        let now_ms = self.clock.now_ms();
        let is_paused = !self.disk.check(now_ms);
        self.log.set_paused(is_paused);
        if is_paused {
            // What was committed until now must not wait in memory for hours.
            let changed = self.state.store.changed_records() + self.state.engine.model().pending_records();
            let must_write = self.state.store.changed_records() > 0 && !self.log.awaits_database(now_ms);
            if must_write && self.disk.has_space_for(changed) {
                self.state.commit().context("cannot write the state")?;
                self.write_checkpoint_now()?;
            }
            // Checked again after the interval. Results are reported although a crash would lose them.
            self.changed_ms = Some(now_ms);
            self.take_scan_results().into_iter().for_each(|send| send());
            self.publish();
            return Ok(());
        }
        self.state.commit().context("cannot write the state")?;
        self.mark_commit(now_ms);
        self.changed_ms = None;
        let seq = self.log.last_seq();
        let results = self.take_scan_results();
        self.unsynced.extend(results.into_iter().map(|send| (seq, send)));
        self.refresh_boards().context("cannot read the state")?;
        self.publish();
        Ok(())
    }

    /// Shows readers the committed state.
    pub(super) fn publish(&mut self) {
        let State { engine, store } = &self.state;
        let of_disk = self.disk.status(engine.model().pending_records());
        let public = PublicStoreStatus {
            commits: store.commits(),
            log_writing_since_ms: self.log.writing_since_ms(),
            last_commit_ms: self.checkpoints.last_ms(),
            database_bytes: store.database_bytes(),
            ..of_disk.public
        };
        let store = StoreStatus { public, ..of_disk };
        let week_pending_close = engine.week_blocked().map(week_label);
        let status = EngineThreadStatus {
            outcomes_queued: self.outcomes_queued as u64,
            store,
            week_pending_close,
            silent_since_ms: self.silences.iter().filter_map(Silence::since_ms).min(),
        };
        self.publisher.publish(&mut self.state, status, self.clock.now_ms());
    }

    /// Sends an answer when every event so far is on disk.
    pub(super) fn reply_when_synced<T: Send + 'static>(&mut self, reply: oneshot::Sender<T>, answer: T) {
        self.unsynced.push_back((self.log.last_seq(), Box::new(move || _ = reply.send(answer))));
    }

    /// Does what is due: writes the log, and begins, continues or ends a checkpoint. Is called in every
    /// turn, and does not wait for the disk.
    pub(super) fn advance_durability(&mut self, now_ms: i64) -> anyhow::Result<()> {
        self.release_synced();
        match &mut self.checkpoints.in_progress {
            Some(InProgress { position, writing: writing @ None }) if self.log.synced() >= *position => {
                let (end, ended) = oneshot::channel::<()>();
                self.state.store.write_frozen(end).context("cannot write the state")?;
                *writing = Some(Writing { ended, has_ended: false });
            }
            Some(InProgress { position, writing: Some(Writing { has_ended: true, .. }) }) => {
                let position = *position;
                self.state.store.finish_checkpoint().context("cannot write the state")?;
                self.end_checkpoint(position)?;
            }
            _ => {}
        }
        if self.disk.is_paused() && self.checkpoints.in_progress.is_none() {
            // No checkpoint begins.
            self.send_backup_sources(|_| true);
        }
        if self.log.writing_since_ms().is_some() || self.disk.is_paused() {
            return Ok(());
        }
        if self.name_removal == NameRemoval::AfterPause {
            self.name_removal = NameRemoval::Idle;
            return PlayerForget::commit(self);
        }
        if self.is_checkpoint_due(now_ms) {
            return self.begin_checkpoint(now_ms);
        }
        let is_due = !self.unsynced.is_empty() || now_ms - self.written_ms >= self.write_interval_ms();
        if is_due && (self.log.has_unwritten(now_ms) || self.log.synced() < self.first_unsynced()) {
            self.written_ms = now_ms;
            self.log.begin_write(now_ms)?;
        }
        Ok(())
    }

    /// When [`EngineThread::advance_durability`] has something to do that no channel reports.
    pub(super) fn next_write_ms(&self, now_ms: i64) -> i64 {
        if self.publisher.can_catch_up(&self.state.engine) {
            return now_ms + 1;
        }
        match self.log.writing_since_ms().is_none() && !self.disk.is_paused() {
            true if !self.unsynced.is_empty() => now_ms,
            true if self.log.has_unwritten(now_ms) => self.written_ms + self.write_interval_ms(),
            _ => i64::MAX,
        }
    }

    fn write_interval_ms(&self) -> i64 {
        match self.log.is_shared() {
            true => self.commit_interval_ms.min(BEAT_MS),
            false => self.commit_interval_ms,
        }
    }

    /// The first batch that something waits for; 0: nothing waits.
    fn first_unsynced(&self) -> u64 {
        self.unsynced.front().map_or(0, |(seq, _)| *seq)
    }

    /// A checkpoint begins.
    fn accept_start_time(&self) {
        if self.clock.accept_start_time() {
            tracing::warn!(
                "a checkpoint is necessary before the clock is trusted; if it is wrong, the times since the start are not \
                 corrected"
            );
        }
    }

    /// If the clock was wrong at the start and has been set right, asks the next start to correct the times since
    /// then. Error: the process must start again.
    pub(super) fn correct_start_time(&mut self) -> anyhow::Result<()> {
        let Some(by_ms) = self.clock.start_time_error_ms() else { return Ok(()) };
        self.sync()?;
        ClockCorrection::new(self.log.earlier_seq(), by_ms).request(&self.rebuild_paths.state_dir)?;
        Err(StartTimeWrong { by_ms }.into())
    }

    /// Sends an answer when the database was compared with the checkpoint files, and the time at the start cannot
    /// be taken back.
    pub(super) fn reply_when_certain<T: Send + 'static>(&mut self, reply: oneshot::Sender<T>, answer: T) {
        match self.state.store.is_compared() && !self.clock.is_start_time_open() {
            true => _ = reply.send(answer),
            false => self.uncertain.push(Box::new(move || _ = reply.send(answer))),
        }
    }

    fn release_synced(&mut self) {
        let synced = self.log.synced();
        while let Some(first) = self.handed_in.first_entry().filter(|first| first.key().0 <= synced) {
            let ((_, scanner), handed_in) = first.remove_entry();
            self.scanners.note_logged(&scanner, handed_in);
        }
        if self.publisher.can_catch_up(&self.state.engine) {
            self.publish();
        }
        // A client must find its change in what it reads after the answer.
        if self.publisher.is_behind() {
            return;
        }
        while self.unsynced.front().is_some_and(|(seq, _)| *seq <= synced) {
            let Some((_, send)) = self.unsynced.pop_front() else { return };
            send();
        }
    }

    fn is_checkpoint_due(&self, now_ms: i64) -> bool {
        let Checkpoints { interval_ms, bytes, began_ms, is_requested, in_progress, .. } = &self.checkpoints;
        // A checkpoint cannot be taken back. It does not wait if a backup or the memory needs it.
        let can_wait = self.checkpoints.backups.is_empty() && self.state.store.changed_bytes() < *bytes;
        if can_wait && self.clock.is_start_time_open() {
            return false;
        }
        let is_due = *is_requested
            || !(0..*interval_ms).contains(&(now_ms - began_ms))
            || self.state.store.changed_bytes() >= *bytes;
        is_due && in_progress.is_none()
    }

    /// Freezes the changes so far. No batch is being written.
    fn begin_checkpoint(&mut self, now_ms: i64) -> anyhow::Result<()> {
        self.commit()?;
        if self.disk.is_paused() {
            return Ok(());
        }
        self.accept_start_time();
        self.checkpoints.begin(now_ms);
        self.log.begin_write(now_ms)?;
        let position = self.log.last_seq();
        self.state.freeze(position);
        self.checkpoints.in_progress = Some(InProgress { position, writing: None });
        Ok(())
    }

    fn end_checkpoint(&mut self, position: u64) -> anyhow::Result<()> {
        self.checkpoints.in_progress = None;
        self.checkpoints.last_ms = Some(self.clock.now_ms());
        self.uncertain.drain(..).for_each(|send| send());
        if matches!(self.name_removal, NameRemoval::AfterCheckpoint { position: needed } if position >= needed) {
            self.name_removal = NameRemoval::Idle;
            self.remove_names_from_complete_segments();
        }
        self.send_backup_sources(|backup| backup.is_in_checkpoint);
        // A wrong clock would remove what is not old.
        match self.clock.status().trust {
            ClockTrust::Untrusted => Ok(()),
            _ => Ok(self.log.remove_old(position, self.clock.now_ms())?),
        }
    }

    fn send_backup_sources(&mut self, is_ready: impl Fn(&WaitingBackup) -> bool) {
        for WaitingBackup { reply, .. } in self.checkpoints.backups.extract_if(.., |backup| is_ready(backup)) {
            let State { engine, store } = &mut self.state;
            let missing =
                if self.disk.is_paused() { engine.model().pending_records() + store.changed_records() } else { 0 };
            _ = reply.send((store.backup_source(), missing));
        }
    }

    /// Writes a checkpoint and waits until it is on disk, for changes that are not events of the log.
    pub(super) fn checkpoint(&mut self) -> anyhow::Result<()> {
        self.commit()?;
        if self.disk.is_paused() {
            return Ok(());
        }
        self.write_checkpoint_now()
    }

    fn write_checkpoint_now(&mut self) -> anyhow::Result<()> {
        self.accept_start_time();
        self.log.finish_write()?;
        let now_ms = self.clock.now_ms();
        self.log.begin_write_and_end_segment(now_ms)?;
        self.log.finish_write()?;
        let position = self.log.last_seq();
        self.state.write_checkpoint(position).context("cannot write the state")?;
        self.checkpoints.begin(now_ms);
        self.end_checkpoint(position)?;
        self.release_synced();
        Ok(())
    }

    /// Waits until every event so far is on disk.
    pub(super) fn sync(&mut self) -> anyhow::Result<()> {
        self.log.finish_write()?;
        self.log.begin_write(self.clock.now_ms())?;
        self.log.finish_write()?;
        self.release_synced();
        Ok(())
    }

    /// The last checkpoint of a daemon that stops.
    pub(super) fn last_checkpoint(&mut self) -> anyhow::Result<()> {
        let pending = self.state.engine.model().pending_records();
        if !self.disk.check(self.clock.now_ms()) && !self.disk.has_space_for(pending) {
            let since_ms = self.disk.status(pending).public.paused_since_ms;
            tracing::error!(pending, since_ms, "the disk is full: scans made since it became nearly full are lost");
            tracing::info!("stopped");
            return Ok(());
        }
        self.state.commit().context("cannot write the state")?;
        let is_compared = self.state.store.is_compared() || {
            // The comparison may take minutes, and the log has everything.
            self.sync()?;
            self.state.store.end_comparison().context("cannot write the state")?
        };
        if is_compared {
            self.write_checkpoint_now()?;
        }
        tracing::info!("stopped; all state is on disk");
        Ok(())
    }

    pub(super) fn is_disk_stalled(&self, now_ms: i64) -> bool {
        // The comparison of the database after a start takes long.
        let is_writing = self.checkpoints.is_writing() && self.state.store.is_compared();
        let checkpoint_ms = is_writing.then_some(self.checkpoints.began_ms);
        // A database that does not answer is not mended by a start.
        let log_ms = self.log.writing_since_ms().filter(|_| !self.log.is_shared());
        let oldest = [log_ms, checkpoint_ms].into_iter().flatten().min();
        oldest.is_some_and(|since_ms| now_ms - since_ms >= DISK_STALL_MS)
    }

    /// Whether the disk is so slow that scans must be discarded.
    pub(super) fn is_disk_behind(&self) -> bool {
        self.log.is_behind() || self.state.store.changed_bytes() >= 2 * self.checkpoints.bytes
    }
}
