//! The thread that writes the log. The engine fills the next batch meanwhile, and never waits for
//! the disk except at rare commands.
//!
//! In a cluster, a batch of the leader is first in the database, then in its files; it counts as written when it is in
//! both. A follower copies the batches of the leader into its files.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::daemon::cluster::{Appended, Leadership};
use crate::log::{
    Batch, BatchBuilder, CopyDecoder, CopyError, LogCopy, LogError, LogEvent, LogFileLock, LogWriter, RecordedSettings,
    Retention, SealedBatch, WriterSettings,
};
use crate::model::calendar::DAY_MS;

/// Size of the next batch at which scans are discarded. The batch that is being written is at most as
/// large.
const UNSYNCED_BYTES_MAX: usize = 128 << 20;

/// Size at which a batch of a cluster is handed over, so that it fits into a statement of the database.
const SHARED_BATCH_BYTES: usize = 128 << 10;

/// A database that has not accepted a batch of a cluster after this time may be away for long.
const DATABASE_MS_MAX: i64 = 1_000;

/// Ticks alone are written at this interval, so that an idle daemon leaves the disk in peace.
const TICKS_WRITTEN_AFTER_MS: i64 = 10_000;

/// A failure of the thread. What is on disk is unknown: the process must end.
#[derive(Debug, thiserror::Error)]
pub(super) enum LogThreadError {
    #[error("cannot write the log")]
    Log(#[from] LogError),
    /// What this engine has applied since its last batch in the log never happened.
    #[error("another engine of the cluster has taken over")]
    Fenced,
    #[error("the database does not answer: the scans that wait for it are lost")]
    NotShared,
    #[error("the log of the cluster does not continue the log of this state")]
    Copy(#[from] CopyError),
    #[error("the thread that writes the log has ended")]
    Ended,
}

/// Where the log goes to.
enum Writer {
    Log(LogWriter),
    /// First to the database.
    Shared(LogWriter, Box<Leadership>),
    /// Of the log of a leader.
    Copy(LogCopy),
}

enum Work {
    Write {
        batch: Batch,
        /// `rules.number` of the last of its events.
        rules: u16,
        now_ms: i64,
    },
    Copy(SealedBatch),
    /// The follower becomes the leader.
    Lead {
        leadership: Box<Leadership>,
        now_ms: i64,
        builder: Sender<Result<BatchBuilder, LogError>>,
    },
    /// Removes old segments. A start needs the batches after `position`.
    RemoveOld {
        position: u64,
        now_ms: i64,
        retention: Retention,
    },
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    bytes: usize,
    /// When it was handed over, Unix ms.
    since_ms: i64,
}

pub(super) struct LogThread {
    builder: BatchBuilder,
    /// `None`: this engine writes the log.
    decoder: Option<CopyDecoder>,
    is_shared: bool,
    /// The work of a leader ends although the database does not answer.
    stop: Arc<AtomicBool>,
    /// When what is not written is to be written, Unix ms; `None`: everything is written.
    write_due_ms: Option<i64>,
    /// The settings that hold now. Each segment begins with them.
    settings: RecordedSettings,
    /// The last day of which a segment was begun, and whether its known servers are to be added.
    day: i64,
    needs_servers: bool,
    retention: Retention,
    file_lock: LogFileLock,
    work: Sender<Work>,
    thread: Option<JoinHandle<()>>,
    results: UnboundedReceiver<Result<u64, LogThreadError>>,
    /// Nothing is written, because the disk is nearly full.
    is_paused: bool,
    /// Batches of a cluster that were completed meanwhile.
    held: Vec<Batch>,
    /// The batches that are being written: one, in a cluster several.
    in_flight: VecDeque<InFlight>,
    /// Everything until this batch is on disk.
    synced: u64,
    /// The last batch of earlier processes.
    earlier: u64,
}

impl LogThread {
    pub(super) fn start(
        writer: LogWriter,
        builder: BatchBuilder,
        settings: RecordedSettings,
        retention: Retention,
    ) -> std::io::Result<LogThread> {
        LogThread::start_with(Writer::Log(writer), builder, None, settings, retention)
    }

    /// Of an engine of a cluster, which follows until it leads. `applied`: the last batch of its state; the copy may lack
    /// some until there.
    pub(super) fn start_following(
        (copy, decoder): (LogCopy, CopyDecoder),
        applied: u64,
        settings: RecordedSettings,
        retention: Retention,
    ) -> std::io::Result<LogThread> {
        let builder = BatchBuilder::after(applied);
        LogThread::start_with(Writer::Copy(copy), builder, Some(decoder), settings, retention)
    }

    fn start_with(
        writer: Writer,
        builder: BatchBuilder,
        decoder: Option<CopyDecoder>,
        settings: RecordedSettings,
        retention: Retention,
    ) -> std::io::Result<LogThread> {
        let stop = Arc::<AtomicBool>::default();
        let stopped = stop.clone();
        let file_lock = LogFileLock::default();
        let lock = file_lock.clone();
        let (work, received) = std::sync::mpsc::channel();
        let (results_tx, results) = unbounded_channel();
        let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            let mut writer = Some(writer);
            for work in received {
                let result = perform(&mut writer, work, &lock, &stopped);
                let is_failed = matches!(result, Some(Err(_)));
                // The daemon may have been dropped.
                if result.is_some_and(|result| results_tx.send(result).is_err()) || is_failed {
                    return;
                }
            }
            if let Some(Writer::Shared(_, leadership)) = writer {
                leadership.release();
            }
        })?;
        let synced = builder.last_seq();
        Ok(LogThread {
            builder,
            is_shared: decoder.is_some(),
            decoder,
            stop,
            write_due_ms: None,
            settings,
            day: i64::MIN,
            needs_servers: false,
            retention,
            file_lock,
            work,
            thread: Some(thread),
            results,
            is_paused: false,
            held: Vec::new(),
            in_flight: VecDeque::new(),
            synced,
            earlier: synced,
        })
    }

    /// Writes the settings as the first batch of a new log. Checkpoints refer to it, so a start notices if the log is
    /// lost.
    pub(super) fn begin_if_new(&mut self, now_ms: i64) -> Result<(), LogThreadError> {
        if self.builder.last_seq() > 0 {
            return Ok(());
        }
        self.append_settings(now_ms);
        self.begin_write(now_ms)?;
        self.finish_write()
    }

    /// The last batch of earlier processes.
    pub(super) fn earlier_seq(&self) -> u64 {
        self.earlier
    }

    /// The beginning of a segment.
    fn append_settings(&mut self, t_ms: i64) {
        let day = t_ms.div_euclid(DAY_MS);
        self.needs_servers |= std::mem::replace(&mut self.day, day) != day;
        self.builder.append(&LogEvent::Settings { t_ms, settings: self.settings.clone() });
    }

    /// When it is set, the thread does not wait for ever for the database of a cluster any more.
    pub(super) fn stop_flag(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// The last batch to which nothing is added any more.
    pub(super) fn last_ended_seq(&self) -> u64 {
        self.builder.last_seq()
    }

    /// The last batch of the copy, and whether it needs a whole segment first.
    pub(super) fn copied(&self) -> (u64, bool) {
        let decoder = self.decoder.as_ref();
        decoder.map_or((self.last_seq(), false), |decoder| (decoder.next_seq() - 1, decoder.needs_segment()))
    }

    /// Whether the log is that of a cluster.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Whether another engine writes the log.
    pub(super) fn is_following(&self) -> bool {
        self.decoder.is_some()
    }

    /// Decodes the next batch of the leader, and begins to write it.
    pub(super) fn copy(
        &mut self,
        batch: SealedBatch,
        now_ms: i64,
        each: impl FnMut(LogEvent),
    ) -> Result<(), LogThreadError> {
        let decoder = self.decoder.as_mut().expect("a leader copies nothing");
        decoder.decode(&batch, each)?;
        self.builder = BatchBuilder::after(self.builder.last_seq().max(batch.seq()));
        self.in_flight.push_back(InFlight { bytes: batch.bytes().len(), since_ms: now_ms });
        self.work.send(Work::Copy(batch)).map_err(|_| LogThreadError::Ended)
    }

    /// Writes the log from now on, with the settings that hold in it.
    pub(super) fn lead(
        &mut self,
        leadership: Leadership,
        settings: RecordedSettings,
        now_ms: i64,
    ) -> Result<(), LogThreadError> {
        self.finish_write()?;
        let (sender, builder) = std::sync::mpsc::channel();
        let work = Work::Lead { leadership: Box::new(leadership), now_ms, builder: sender };
        self.work.send(work).map_err(|_| LogThreadError::Ended)?;
        self.builder = builder.recv().map_err(|_| LogThreadError::Ended)??;
        (self.decoder, self.settings) = (None, settings);
        Ok(())
    }

    /// Adds an event to the next batch.
    pub(super) fn append(&mut self, event: &LogEvent) {
        assert!(!self.is_following(), "only the leader changes the state");
        if self.builder.is_at_segment_start() {
            self.append_settings(event.t_ms());
        }
        self.builder.append(event);
        match event {
            // In a cluster, ticks show that the leader is there.
            LogEvent::Tick { t_ms, .. } if !self.is_shared => {
                _ = self.write_due_ms.get_or_insert(t_ms + TICKS_WRITTEN_AFTER_MS);
            }
            _ => self.write_due_ms = Some(i64::MIN),
        }
        if self.is_shared && self.builder.bytes() >= SHARED_BATCH_BYTES {
            match self.is_paused {
                true => self.held.extend(self.builder.take(event.t_ms())),
                // If the thread has ended, the next result says why.
                false => _ = self.begin_write(event.t_ms()),
            }
        }
    }

    /// While the disk is nearly full, no batch is handed over because of its size: the lease of the leader ends.
    pub(super) fn set_paused(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// Ticks changed something, such as a week that is being closed.
    pub(super) fn write_ticks(&mut self) {
        self.write_due_ms = Some(i64::MIN);
    }

    /// The settings that hold now.
    pub(super) fn settings(&self) -> &RecordedSettings {
        &self.settings
    }

    /// Sets the settings that hold from the next event on.
    pub(super) fn set_settings(&mut self, t_ms: i64, settings: RecordedSettings) {
        let changed = settings.changed_since(&self.settings);
        if !changed.is_empty() {
            self.append(&LogEvent::Settings { t_ms, settings: changed });
        }
        self.settings = settings;
    }

    /// Whether a day's first segment has begun since the last call: all known servers are to be added.
    pub(super) fn take_needs_servers(&mut self) -> bool {
        std::mem::take(&mut self.needs_servers)
    }

    /// The batch of the last event.
    pub(super) fn last_seq(&self) -> u64 {
        self.builder.last_seq() + u64::from(self.builder.bytes() > 0)
    }

    /// Everything until this batch is on disk.
    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Whether there are events to write now.
    pub(super) fn has_unwritten(&self, now_ms: i64) -> bool {
        self.write_due_ms.is_some_and(|due_ms| now_ms >= due_ms)
    }

    /// When the batch that is being written was handed over, Unix ms.
    pub(super) fn writing_since_ms(&self) -> Option<i64> {
        self.in_flight.front().map(|batch| batch.since_ms)
    }

    /// Whether the database of a cluster has not accepted a batch of this leader for so long that nothing waits for it.
    pub(super) fn awaits_database(&self, now_ms: i64) -> bool {
        let is_leader = self.is_shared && !self.is_following();
        is_leader && self.writing_since_ms().is_some_and(|since_ms| now_ms - since_ms >= DATABASE_MS_MAX)
    }

    /// Bytes of the events that wait, but for the batch that is being written.
    pub(super) fn waiting_bytes(&self) -> usize {
        let held = self.held.iter().map(Batch::bytes);
        self.builder.bytes() + held.chain(self.in_flight.iter().skip(1).map(|batch| batch.bytes)).sum::<usize>()
    }

    pub(super) fn is_behind(&self) -> bool {
        self.waiting_bytes() > UNSYNCED_BYTES_MAX
    }

    /// Hands the events over. No batch is being written.
    pub(super) fn begin_write(&mut self, now_ms: i64) -> Result<(), LogThreadError> {
        let batch = self.builder.take(now_ms);
        self.send(batch, now_ms)
    }

    /// As `begin_write`, and ends the segment.
    pub(super) fn begin_write_and_end_segment(&mut self, now_ms: i64) -> Result<(), LogThreadError> {
        let batch = self.builder.take_and_end_segment(now_ms);
        self.send(batch, now_ms)
    }

    fn send(&mut self, batch: Option<Batch>, now_ms: i64) -> Result<(), LogThreadError> {
        assert!(self.in_flight.is_empty() || self.is_shared, "one batch at a time");
        self.write_due_ms = None;
        let rules = self.settings.0.get("rules.number").and_then(|number| number.as_u64());
        let rules = rules.and_then(|number| u16::try_from(number).ok()).unwrap_or_default();
        for batch in self.held.drain(..).chain(batch) {
            self.in_flight.push_back(InFlight { bytes: batch.bytes(), since_ms: now_ms });
            self.work.send(Work::Write { batch, rules, now_ms }).map_err(|_| LogThreadError::Ended)?;
        }
        Ok(())
    }

    /// Waits until the batch that is being written is on disk; for ever, if there is none.
    pub(super) async fn next_result(&mut self) -> Result<(), LogThreadError> {
        if self.in_flight.is_empty() {
            return std::future::pending().await;
        }
        let result = self.results.recv().await;
        self.note_result(result)
    }

    /// As `next_result`, but blocks, and returns at once if no batch is being written.
    pub(super) fn finish_write(&mut self) -> Result<(), LogThreadError> {
        while !self.in_flight.is_empty() {
            let result = self.results.blocking_recv();
            self.note_result(result)?;
        }
        Ok(())
    }

    fn note_result(&mut self, result: Option<Result<u64, LogThreadError>>) -> Result<(), LogThreadError> {
        self.synced = self.synced.max(result.ok_or(LogThreadError::Ended)??);
        self.in_flight.pop_front();
        Ok(())
    }

    /// Removes the segments that are neither kept nor needed by a start, which begins after `position`.
    pub(super) fn remove_old(&self, position: u64, now_ms: i64) -> Result<(), LogThreadError> {
        let work = Work::RemoveOld { position, now_ms, retention: self.retention };
        self.work.send(work).map_err(|_| LogThreadError::Ended)
    }

    pub(super) fn set_retention(&mut self, retention: Retention) {
        self.retention = retention;
    }

    pub(super) fn file_lock(&self) -> &LogFileLock {
        &self.file_lock
    }
}

impl Drop for LogThread {
    /// Waits for the thread, which holds the lock of the log.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.work = std::sync::mpsc::channel().0;
        if let Some(thread) = self.thread.take() {
            // It has already printed its panic message.
            let _ = thread.join();
        }
    }
}

/// Returns the batch that is on disk, or an error, if the caller waits for it.
fn perform(
    writer: &mut Option<Writer>,
    work: Work,
    lock: &LogFileLock,
    stop: &AtomicBool,
) -> Option<Result<u64, LogThreadError>> {
    match (work, writer.as_mut()?) {
        (Work::Write { batch, now_ms, .. }, Writer::Log(log)) => {
            let seq = batch.last_seq();
            Some(log.write(batch, now_ms).map(|()| seq).map_err(LogThreadError::Log))
        }
        (Work::Write { batch, rules, now_ms }, Writer::Shared(log, leadership)) => {
            let seq = batch.last_seq();
            let sealed = log.seal(batch);
            let appended = if sealed.has_events() { leadership.append(&sealed, rules, stop) } else { Appended::Yes };
            Some(match appended {
                Appended::Yes => log.write_sealed(&sealed, now_ms).map(|()| seq).map_err(LogThreadError::Log),
                Appended::Fenced => Err(LogThreadError::Fenced),
                Appended::GaveUp => Err(LogThreadError::NotShared),
            })
        }
        (Work::Copy(batch), Writer::Copy(copy)) => {
            Some(copy.write(&batch).map(|()| batch.seq()).map_err(LogThreadError::Log))
        }
        (Work::Lead { leadership, now_ms, builder }, _) => {
            let Some(Writer::Copy(copy)) = writer.take() else { return Some(Err(LogThreadError::Ended)) };
            let settings = WriterSettings::new(copy.dir().to_owned());
            let begun = copy.into_writer(&settings, now_ms).map(|(log, first)| {
                *writer = Some(Writer::Shared(log, leadership));
                first
            });
            // The engine thread waits for it.
            _ = builder.send(begun);
            None
        }
        (Work::RemoveOld { position, now_ms, retention }, writer) => {
            let dir = match writer {
                Writer::Log(log) | Writer::Shared(log, _) => log.dir(),
                Writer::Copy(copy) => copy.dir(),
            };
            if let Err(error) = retention.apply(dir, lock, position, now_ms) {
                tracing::warn!("{:#}; the next checkpoint tries again", anyhow::Error::new(error));
            }
            None
        }
        (Work::Write { .. }, Writer::Copy(_)) | (Work::Copy(_), _) => Some(Err(LogThreadError::Ended)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AdminCommand;

    #[test]
    fn a_leader_hands_nothing_over_while_the_disk_is_nearly_full() {
        let dir = tempfile::tempdir().unwrap();
        let (copy, decoder, _) = LogCopy::open(dir.path(), 1).unwrap();
        let retention = crate::config::Config::default().log_retention();
        let settings = RecordedSettings::default();
        let mut log = LogThread::start_following((copy, decoder), 0, settings, retention).unwrap();
        log.decoder = None;
        log.set_paused(true);
        let mut tags = (0..).map(|n| format!("{n:0>60}"));
        while log.waiting_bytes() < 4 * SHARED_BATCH_BYTES {
            let command = AdminCommand::DropTag { tag: tags.next().unwrap() };
            log.append(&LogEvent::Command { t_ms: 5, command });
        }
        assert!(log.in_flight.is_empty() && log.held.len() >= 3);
        assert!(log.held.iter().all(|batch| batch.bytes() < 2 * SHARED_BATCH_BYTES));
        log.set_paused(false);
        // The thread has no database, and ends.
        _ = log.begin_write(6);
        assert!(log.held.is_empty() && !log.in_flight.is_empty());
    }
}
