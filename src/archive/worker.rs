//! The archive's worker: asks for what is pending, writes it, says that it is
//! done. It owns the connection and the waiting; what is pending, and what its
//! values are, it asks the [`JobSource`].
//!
//! It writes everything that is pending in passes, half an interval apart: what
//! changed is at most one interval old in the archive. A pass goes through the
//! keys once, in their order, so that things which change all the time cannot
//! hold it. While the database is away it waits, longer each time up to a
//! limit, and nothing is lost: what is pending stays with the source.

use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Notify, watch};

use crate::model::ServerKey;
use crate::model::archive::{ArchiveJob, OutboxEntry, OutboxKey, PartAsk, WeekArchive, WeekPart};

use super::connect::Archive;
use super::error::ArchiveError;
use super::parts::Wrote;
use super::settings::ArchiveSettings;
use super::write::CONFLICT_TRIES_MAX;

/// Most entries asked for at once: some seconds' work for the database.
const ASK_ENTRIES_MAX: usize = 1_000;

/// Rows after which a source should stop: 20,000 rows of 16 numbers are 3 MB.
const ASK_ROWS_MAX: usize = 20_000;

/// Pause between two steps in which a source puts a long week in order: it has
/// other things to do.
const STEP_PAUSE: Duration = Duration::from_millis(20);

/// Steps after which the database is told that somebody is still there.
const STEPS_PER_STAY: u32 = 500;

/// Names come before what refers to them: no server has key 0.
const FIRST_STATE: OutboxKey = OutboxKey::Server(ServerKey(0));

/// A part of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Only keys greater than this one; `None`: from the first.
    pub after: Option<OutboxKey>,
    /// Only keys smaller than this one; `None`: to the last.
    pub before: Option<OutboxKey>,
    /// At most so many entries.
    pub entries_max: usize,
    /// Stop after the entry with which the rows of `WeekArchive`s (players and
    /// maps) reach this number.
    pub rows_max: usize,
}

impl Ask {
    /// Whether the key lies in this part.
    pub fn holds(&self, key: OutboxKey) -> bool {
        self.after.is_none_or(|after| key > after) && self.before.is_none_or(|before| key < before)
    }
}

/// The source is gone: the daemon is past the point where it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the source of archive jobs is gone")]
pub struct SourceGone;

/// Where jobs come from: the outbox and the engine that knows its values.
pub trait JobSource: Send + Sync {
    /// Pending entries of that part in order of their keys, with their values
    /// as they are now; none: there are no more in it. An entry whose thing no
    /// longer exists is not handed out. What is handed out must be durable.
    fn next(&self, ask: Ask) -> impl Future<Output = Result<Vec<(OutboxEntry, ArchiveJob)>, SourceGone>> + Send;

    /// The archive is empty: whatever was archived elsewhere before is to be
    /// handed out again.
    fn anew(&self) -> impl Future<Output = Result<(), SourceGone>> + Send {
        async { Ok(()) }
    }

    /// A part of a week that was handed out as [`ArchiveJob::LongWeek`], or a step
    /// towards it. What is handed out must be durable. Who hands out none such has
    /// no parts.
    fn part(&self, _ask: PartAsk) -> impl Future<Output = Result<WeekPart, SourceGone>> + Send {
        async { Ok(WeekPart::Gone) }
    }

    /// These are in the archive: to be trimmed, but only where the sequence
    /// number is still the one given.
    fn done(&self, entries: Vec<OutboxEntry>) -> impl Future<Output = Result<(), SourceGone>> + Send;
}

/// How the archive fares. Counts are since the worker started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveStatus {
    /// `user@host:port/database`.
    pub target: String,
    /// The last attempt reached the archive and could write.
    pub connected: bool,
    /// When everything that was pending had last been written, Unix ms.
    pub last_success_ms: Option<i64>,
    pub last_error: Option<String>,
    pub last_error_ms: Option<i64>,
    /// Passes that wrote everything, and attempts that failed.
    pub passes: u64,
    pub failures: u64,
    pub entries_written: u64,
    pub rows_written: u64,
    /// Entries that the database does not take; they stay pending.
    pub rejected: u64,
}

/// Runs until `stop` resolves, and then until everything is written or
/// `drain_s_max` is over; or until the source is gone. `now_ms` tells the
/// time, Unix ms, for the status only.
pub async fn run<S: JobSource>(
    settings: ArchiveSettings,
    source: S,
    now_ms: impl Fn() -> i64,
    stop: impl Future<Output = ()>,
    status: watch::Sender<ArchiveStatus>,
) {
    let stopping = AtomicBool::new(false);
    let wake = Notify::new();
    let drain_s_max = settings.drain_s_max;
    status.send_modify(|it| it.target = settings.target());
    let mut worker = Worker {
        settings,
        source,
        now_ms,
        status,
        previous: None,
        spoke: Spoke::Nothing,
        rejected: BTreeMap::new(),
        wait_ms: 0,
    };
    let out_of_time = async {
        stop.await;
        stopping.store(true, Ordering::Relaxed);
        wake.notify_one();
        tokio::time::sleep(Duration::from_secs(drain_s_max.into())).await;
    };
    tokio::select! {
        biased;
        () = worker.passes(&stopping, &wake) => {}
        () = out_of_time => {
            tracing::warn!(
                seconds = drain_s_max,
                "the archive could not be brought up to date in time; what is pending is written after the next start"
            );
        }
    }
}

struct Worker<S, N> {
    settings: ArchiveSettings,
    source: S,
    now_ms: N,
    status: watch::Sender<ArchiveStatus>,
    /// The last connection that asked for the lock; it may still live at the
    /// other end.
    previous: Option<u32>,
    spoke: Spoke,
    /// What the database does not take, and why.
    rejected: BTreeMap<OutboxKey, String>,
    /// The wait after the last failure.
    wait_ms: u32,
}

/// What was last logged of the connection: each change is logged once.
#[derive(PartialEq, Eq)]
enum Spoke {
    Nothing,
    Up,
    /// By kind of error; the messages of one kind may differ from time to time.
    Down(std::mem::Discriminant<ArchiveError>),
}

/// What there was among names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Written,
    /// A player is no more: states that were asked for before are out of date.
    SomebodyGone,
}

fn is_gone(job: &ArchiveJob) -> bool {
    matches!(job, ArchiveJob::PlayerGone { .. })
}

/// Why a pass ended early.
enum Ended {
    Source,
    Archive(ArchiveError),
}

impl From<SourceGone> for Ended {
    fn from(_: SourceGone) -> Ended {
        Ended::Source
    }
}

impl From<ArchiveError> for Ended {
    fn from(error: ArchiveError) -> Ended {
        Ended::Archive(error)
    }
}

impl<S: JobSource, N: Fn() -> i64> Worker<S, N> {
    async fn passes(&mut self, stopping: &AtomicBool, wake: &Notify) {
        loop {
            // A pass that began before the stop may have passed by what the
            // engine wrote last.
            let last = stopping.load(Ordering::Relaxed);
            let wait = match self.pass().await {
                Ok(()) if last => return,
                Ok(()) => Duration::from_millis(u64::from(self.settings.interval_s) * 500),
                Err(Ended::Source) => return,
                Err(Ended::Archive(error)) => self.failed(&error),
            };
            let in_a_hurry = stopping.load(Ordering::Relaxed);
            if in_a_hurry && self.wait_ms == 0 {
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = wake.notified(), if !in_a_hurry => self.wait_ms = 0,
            }
        }
    }

    /// Writes everything that is pending, once.
    async fn pass(&mut self) -> Result<(), Ended> {
        let mut archive = Archive::reconnect(&self.settings, &mut self.previous).await?;
        archive.check_schema().await?;
        self.up();
        if archive.is_empty().await? {
            self.source.anew().await?;
        }
        let mut rejected = BTreeMap::new();
        self.names(&mut archive, &mut rejected).await?;
        let mut after = None;
        loop {
            let from = after.unwrap_or(FIRST_STATE);
            let jobs = self.source.next(ask(Some(from), None)).await?;
            let Some((last, _)) = jobs.last() else { break };
            let last = last.key;
            // Names that came up since: these jobs may refer to them. And if
            // somebody is no more, they may still speak of him.
            if self.names(&mut archive, &mut rejected).await? == Names::SomebodyGone {
                continue;
            }
            after = Some(last);
            self.write(&mut archive, jobs, &mut rejected).await?;
        }
        archive.close().await;
        self.previous = None;
        self.finished(rejected);
        Ok(())
    }

    async fn names(
        &mut self,
        archive: &mut Archive,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<Names, Ended> {
        let mut after = None;
        let mut names = Names::Written;
        loop {
            let jobs = self.source.next(ask(after, Some(FIRST_STATE))).await?;
            let Some((last, _)) = jobs.last() else { return Ok(names) };
            after = Some(last.key);
            if jobs.iter().any(|(entry, job)| is_gone(job) && !rejected.contains_key(&entry.key)) {
                names = Names::SomebodyGone;
            }
            self.write_whole(archive, jobs, rejected).await?;
        }
    }

    /// Writes jobs; where one is rejected, the others.
    async fn write(
        &mut self,
        archive: &mut Archive,
        jobs: Vec<(OutboxEntry, ArchiveJob)>,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), Ended> {
        let is_long = |(_, job): &(OutboxEntry, ArchiveJob)| matches!(job, ArchiveJob::LongWeek { .. });
        let (long, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_long);
        self.write_whole(archive, jobs, rejected).await?;
        for (entry, job) in long {
            let ArchiveJob::LongWeek { week, server } = job else { unreachable!("sorted out above") };
            self.write_long(archive, entry, PartAsk::First { week, server }, rejected).await?;
        }
        Ok(())
    }

    async fn write_whole(
        &mut self,
        archive: &mut Archive,
        jobs: Vec<(OutboxEntry, ArchiveJob)>,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), Ended> {
        let (mut entries, jobs): (Vec<OutboxEntry>, Vec<ArchiveJob>) = jobs.into_iter().unzip();
        let rows = match archive.write(&jobs).await {
            Ok(rows) => rows,
            Err(error) if error.is_rejected() => {
                let mut rows = 0;
                let mut taken = Vec::new();
                for (entry, job) in entries.into_iter().zip(&jobs) {
                    match archive.write(std::slice::from_ref(job)).await {
                        Ok(more) => {
                            rows += more;
                            taken.push(entry);
                        }
                        Err(error) if error.is_rejected() => _ = rejected.insert(entry.key, error.to_string()),
                        Err(error) => return Err(error.into()),
                    }
                }
                entries = taken;
                rows
            }
            Err(error) => return Err(error.into()),
        };
        self.status.send_modify(|it| {
            it.entries_written += entries.len() as u64;
            it.rows_written += rows;
        });
        self.source.done(entries).await?;
        Ok(())
    }

    /// Writes a week part by part, in one transaction. Where it cannot be done now,
    /// because somebody was corrected meanwhile, it stays pending.
    async fn write_long(
        &mut self,
        archive: &mut Archive,
        entry: OutboxEntry,
        ask: PartAsk,
        rejected: &mut BTreeMap<OutboxKey, String>,
    ) -> Result<(), Ended> {
        let Some((moment, first)) = self.first_part(archive, ask).await? else { return Ok(()) };
        // Names that came up since: the parts refer to them.
        let written = match self.names(archive, rejected).await {
            Ok(Names::Written) => self.write_parts(archive, moment, first).await,
            Ok(Names::SomebodyGone) => Ok(None),
            Err(ended) => Err(ended),
        };
        self.source.part(PartAsk::Done { moment }).await?;
        match written {
            Ok(Some(rows)) => {
                self.status.send_modify(|it| {
                    it.entries_written += 1;
                    it.rows_written += rows;
                });
                self.source.done(vec![entry]).await?;
            }
            Ok(None) => (),
            Err(Ended::Archive(error)) if error.is_rejected() => _ = rejected.insert(entry.key, error.to_string()),
            Err(ended) => return Err(ended),
        }
        Ok(())
    }

    async fn first_part(
        &mut self,
        archive: &mut Archive,
        ask: PartAsk,
    ) -> Result<Option<(u64, Box<WeekArchive>)>, Ended> {
        for step in 1_u32.. {
            match self.source.part(ask).await? {
                WeekPart::Part { moment, week } => return Ok(Some((moment, week))),
                WeekPart::Gone => break,
                WeekPart::Preparing => tokio::time::sleep(STEP_PAUSE).await,
            }
            if step % STEPS_PER_STAY == 0 {
                archive.stay().await?;
            }
        }
        Ok(None)
    }

    /// Returns the number of rows; `None`: there are no such parts any more, or the
    /// database had others before us too often.
    async fn write_parts(
        &mut self,
        archive: &mut Archive,
        moment: u64,
        first: Box<WeekArchive>,
    ) -> Result<Option<u64>, Ended> {
        let mut first = Some(first);
        for _ in 0..CONFLICT_TRIES_MAX {
            archive.begin_parts().await?;
            let (mut rows, mut after) = (0, None);
            let lost = loop {
                let part = match first.take() {
                    Some(first) => first,
                    None => match self.source.part(PartAsk::Next { moment, after }).await? {
                        WeekPart::Part { week, .. } => week,
                        WeekPart::Preparing | WeekPart::Gone => {
                            archive.take_back().await?;
                            return Ok(None);
                        }
                    },
                };
                let wrote = archive.write_part(&part).await?;
                let Wrote::Done { rows: more } = wrote else { break true };
                rows += more;
                after = part.span.through;
                if after.is_none() {
                    break archive.commit_parts().await? == Wrote::Lost;
                }
            };
            if !lost {
                return Ok(Some(rows));
            }
        }
        tracing::warn!("a week of many rows was in the way of other writers of the archive; it is written later");
        Ok(None)
    }

    fn up(&mut self) {
        if self.spoke != Spoke::Up {
            tracing::info!(archive = self.settings.target(), "archive connected");
            self.spoke = Spoke::Up;
        }
        self.status.send_modify(|it| it.connected = true);
    }

    fn finished(&mut self, rejected: BTreeMap<OutboxKey, String>) {
        let now_ms = (self.now_ms)();
        self.wait_ms = 0;
        for (key, why) in &rejected {
            if self.rejected.get(key) != Some(why) {
                tracing::error!(?key, "{why}");
            }
        }
        self.status.send_modify(|it| {
            it.passes += 1;
            it.rejected = rejected.len() as u64;
            match rejected.values().next() {
                None => it.last_success_ms = Some(now_ms),
                Some(why) => (it.last_error, it.last_error_ms) = (Some(why.clone()), Some(now_ms)),
            }
        });
        self.rejected = rejected;
    }

    /// Returns how long to wait.
    fn failed(&mut self, error: &ArchiveError) -> Duration {
        let kind = Spoke::Down(std::mem::discriminant(error));
        if self.spoke != kind {
            tracing::warn!("{error}; trying again, nothing is lost");
            self.spoke = kind;
        }
        let now_ms = (self.now_ms)();
        self.status.send_modify(|it| {
            it.connected = false;
            it.failures += 1;
            it.last_error = Some(error.to_string());
            it.last_error_ms = Some(now_ms);
        });
        let (min, max) = (self.settings.retry_ms_min, self.settings.retry_ms_max);
        self.wait_ms = self.wait_ms.saturating_mul(2).clamp(min, max);
        jittered(self.wait_ms)
    }
}

fn ask(after: Option<OutboxKey>, before: Option<OutboxKey>) -> Ask {
    Ask { after, before, entries_max: ASK_ENTRIES_MAX, rows_max: ASK_ROWS_MAX }
}

/// Half to all of it, so that many daemons do not come back in step.
fn jittered(wait_ms: u32) -> Duration {
    let dice = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let half = u64::from(wait_ms / 2);
    Duration::from_millis(u64::from(wait_ms) - half + dice % (half + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::MapKey;

    #[test]
    fn names_are_asked_for_apart() {
        let names = ask(None, Some(FIRST_STATE));
        let states = ask(Some(FIRST_STATE), None);
        for key in [OutboxKey::Map(MapKey(1)), OutboxKey::Server(ServerKey(1))] {
            assert_ne!(names.holds(key), states.holds(key));
        }
        assert!(names.holds(OutboxKey::Map(MapKey(1))));
    }

    #[test]
    fn a_wait_is_half_to_all_of_what_is_meant() {
        for _ in 0..100 {
            let wait = jittered(1_000);
            assert!((500..=1_000).contains(&wait.as_millis()), "{wait:?}");
        }
        assert_eq!(jittered(0), Duration::ZERO);
    }
}
