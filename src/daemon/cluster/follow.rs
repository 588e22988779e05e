//! The task of an engine in a cluster: it applies what the leader writes, takes over when the lease of the leader
//! expires, and then keeps the tables of the cluster.

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "the lease; other engines have other clocks"))]

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::lease::Lease;
use super::{Cluster, Leadership};
use crate::archive::{ArchiveError, ArchiveSettings, KeptLog, Leader, SharedBatch, SharedLog};
use crate::clock::Clock;
use crate::daemon::engine_thread::{EngineEnded, EngineHandle, EngineThread};
use crate::daemon::log_thread::LogThreadError;
use crate::model::calendar::{DAY_MS, HOUR_MS, utc};
use crate::rank::RULES_NUMBER;
use crate::state::recovery::WITHOUT_LOG;

/// Interval at which a follower reads the log.
const READ_INTERVAL: Duration = Duration::from_millis(200);

/// Interval at which an engine says that it is there.
const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// Interval at which the leader looks for old batches.
const REMOVE_INTERVAL: Duration = Duration::from_secs(60);

/// The log is kept for engines that were seen within this time.
const AWAY_MS_MAX: i64 = HOUR_MS;

/// Why the task of an engine ends.
#[derive(Debug, thiserror::Error)]
enum FollowError {
    #[error(transparent)]
    Database(#[from] ArchiveError),
    #[error(transparent)]
    Ended(#[from] EngineEnded),
    #[error(
        "the log of the cluster ends with batch {last}, but this state has the batches until {applied}: the database is a \
         copy of an earlier time, or this state is of another cluster. This engine does not lead"
    )]
    Behind { last: u64, applied: u64 },
    #[error(
        "the log of the cluster is empty, and engine {engine} has the batches until {seq} in its state, this one until \
         {applied}. Start that engine; if it is gone for ever, delete its row of clq_engine"
    )]
    Shorter { engine: String, seq: u64, applied: u64 },
    #[error(
        "the log of the cluster has no batch {missing} any more, because a player was forgotten, or this engine was away for \
         longer than cluster.keep_log_days: get the state of another engine with clqd cluster join. Until then this \
         engine shows what it has"
    )]
    Missing { missing: u64 },
    #[error(
        "the system clock is not synchronised, and differs from that of the database: {system} and {database}. This \
         engine does not lead before it agrees, or is accepted: clqd clock accept"
    )]
    Clock { system: String, database: String },
    #[error(
        "this state is not of this cluster: it has no log, and the cluster has one. Get the state of another engine: clqd \
         cluster join"
    )]
    Foreign,
}

/// An engine of a cluster.
pub struct Follower {
    log: SharedLog,
    has_tables: bool,
    archive: ArchiveSettings,
    keep_log_days: u32,
    cluster: Arc<Cluster>,
    engine: EngineHandle,
    /// The last batch that was applied. It may not be in the files yet.
    applied: u64,
    /// The files need a whole segment first, though the state has some of its batches.
    needs_segment: bool,
    lease: Lease,
    began: Instant,
    noted: Option<Instant>,
    clock: Arc<Clock>,
}

impl Follower {
    pub fn new(
        archive: ArchiveSettings,
        keep_log_days: u32,
        cluster: Arc<Cluster>,
        engine: EngineHandle,
        clock: Arc<Clock>,
    ) -> Result<Follower, ArchiveError> {
        let log = SharedLog::new(&archive)?;
        let (lease, began) = (Lease::default(), Instant::now());
        let has_tables = false;
        Ok(Follower {
            log,
            has_tables,
            archive,
            keep_log_days,
            cluster,
            engine,
            applied: 0,
            needs_segment: false,
            lease,
            began,
            noted: None,
            clock,
        })
    }

    /// Follows until this engine leads. Then it calls `begin`, and keeps the tables of the cluster up to date.
    pub async fn run(mut self, begin: impl AsyncFnOnce()) {
        let copied = |thread: &mut EngineThread| Ok((thread.log().copied(), thread.state().engine.model().now_ms()));
        let Ok((copied, state_ms)) = self.engine.call(copied).await else { return };
        (self.applied, self.needs_segment) = copied;
        self.note_state(state_ms);
        let epoch = loop {
            match self.step().await {
                Ok(Some(epoch)) => break epoch,
                Ok(None) => tokio::time::sleep(READ_INTERVAL).await,
                Err(FollowError::Ended(_)) => return,
                Err(error) => {
                    // The leader could not write either.
                    self.lease = Lease::default();
                    self.wait_after(&error).await;
                }
            }
        };
        begin().await;
        self.keep(epoch).await;
    }

    async fn wait_after(&mut self, error: &FollowError) {
        let is_new = match error {
            FollowError::Database(error) => self.cluster.note_fault(error),
            _ => true,
        };
        if is_new {
            tracing::warn!("{error}");
        }
        tokio::time::sleep(NOTE_INTERVAL).await;
    }

    /// Applies what is new, and takes over if nobody leads. Returns the epoch of this engine.
    async fn step(&mut self) -> Result<Option<u64>, FollowError> {
        if !self.has_tables {
            self.log.create_tables().await?;
            self.has_tables = true;
        }
        let leader = self.log.leader().await?;
        let has_expired = self.lease.look(leader.as_ref(), self.began.elapsed().as_millis() as u64);
        self.cluster.note_leader(leader.clone());
        let began = Instant::now();
        if self.apply_all().await? {
            self.cluster.note_applied(began);
        }
        self.note().await?;
        // The answer to taking over may have been lost.
        let leads_already = leader.as_ref().filter(|leader| leader.member == *self.cluster.member());
        let epoch = match leads_already {
            Some(leader) => Some(leader.epoch),
            None if has_expired => self.take_over(leader.as_ref()).await?,
            None => None,
        };
        let Some(epoch) = epoch else { return Ok(None) };
        // Nobody else can write from now on.
        if !self.apply_all().await? {
            // The disk is nearly full, or too slow: the lease ends.
            return Ok(None);
        }
        let log = SharedLog::new(&self.archive)?;
        let leadership = Leadership::new(log, epoch, Handle::current());
        self.engine.call(move |thread| thread.lead(leadership)).await?;
        self.cluster.set_leads();
        // It leads, though the database may be away again.
        if let Ok(leader) = self.log.leader().await {
            self.cluster.note_leader(leader);
        }
        tracing::info!(epoch, batch = self.applied, "this engine leads the cluster");
        Ok(Some(epoch))
    }

    async fn take_over(&mut self, leader: Option<&Leader>) -> Result<Option<u64>, FollowError> {
        let (last, applied) = (self.log.last_seq().await?, self.applied);
        if last < applied && last > 0 {
            return Err(FollowError::Behind { last, applied });
        }
        if last == 0 {
            // Nobody has written it yet: the engine with the longest log of its own begins.
            let engines = self.log.engines().await?;
            if let Some(longer) = engines.into_iter().find(|engine| engine.seq > applied) {
                return Err(FollowError::Shorter { engine: longer.member.engine, seq: longer.seq, applied });
            }
        }
        if last > applied {
            // The disk of this engine is nearly full, or too slow.
            return Ok(None);
        }
        let database_ms = self.log.now_ms().await?;
        if !self.clock.agrees_with(database_ms) {
            return Err(FollowError::Clock { system: utc(self.clock.status().system_ms), database: utc(database_ms) });
        }
        if self.engine.call(|thread| Ok(thread.log().synced())).await? < applied {
            // Its files are behind: it could not write yet.
            return Ok(None);
        }
        if let Some(leader) = leader {
            tracing::warn!(
                engine = leader.member.engine,
                "the leader of the cluster is silent; this engine takes over"
            );
        }
        Ok(self.log.take_over(leader, self.cluster.member()).await?)
    }

    /// Returns whether it has applied everything.
    async fn apply_all(&mut self) -> Result<bool, FollowError> {
        if self.needs_segment && self.applied == WITHOUT_LOG && self.log.last_seq().await? > 0 {
            return Err(FollowError::Foreign);
        }
        if self.needs_segment
            && let Some(first) = self.log.segment_of(self.applied + 1).await?
        {
            self.applied = first - 1;
            self.needs_segment = false;
        }
        loop {
            let batches: Vec<SharedBatch> = self.log.read_after(self.applied).await?;
            let Some(first) = batches.first() else { return Ok(true) };
            if first.batch.seq() != self.applied + 1 {
                return Err(FollowError::Missing { missing: self.applied + 1 });
            }
            let before = self.applied;
            // It may take hours.
            self.note().await?;
            self.applied = self.engine.call(move |thread| thread.follow(batches)).await?;
            if self.applied == before {
                // The disk is nearly full, or too slow.
                return Ok(false);
            }
        }
    }

    /// Until the end of the log is reached, the state is as old as its last event.
    fn note_state(&self, state_ms: i64) {
        let age = Duration::from_millis((self.clock.now_ms() - state_ms).max(0) as u64);
        // An empty one is as old as this process.
        let at = if state_ms > 0 { Instant::now().checked_sub(age) } else { None };
        self.cluster.note_state(at.unwrap_or(self.began));
    }

    /// Says that this engine is there, and reads which others are.
    async fn note(&mut self) -> Result<(), FollowError> {
        if self.noted.is_some_and(|noted| noted.elapsed() < NOTE_INTERVAL) {
            return Ok(());
        }
        let state = |thread: &mut EngineThread| {
            Ok((thread.log().synced(), thread.log_settings(), thread.state().engine.model().now_ms()))
        };
        let (synced, settings, state_ms) = self.engine.call(state).await?;
        self.note_state(state_ms);
        self.cluster.note_log_settings(settings);
        self.log.note_engine(self.cluster.member(), RULES_NUMBER as u16, self.applied.min(synced)).await?;
        let last = self.log.last_seq().await?;
        self.cluster.note_engines(self.log.engines().await?, last);
        self.noted = Some(Instant::now());
        Ok(())
    }

    /// What a leader does beside writing the log.
    async fn keep(mut self, epoch: u64) {
        let mut removed = Instant::now();
        // Until when the table is known to have no forgotten name.
        let mut removed_until_ms = 0;
        loop {
            tokio::time::sleep(NOTE_INTERVAL).await;
            let Ok((applied, forgotten_ms)) = self.engine.call(|thread| Ok(thread.synced_and_forgotten())).await else {
                return;
            };
            self.applied = applied;
            let last_ms = forgotten_ms.last().copied().unwrap_or_default();
            let is_due = removed.elapsed() >= REMOVE_INTERVAL || last_ms != removed_until_ms;
            let kept = match self.keep_tables(epoch).await {
                Ok(()) if is_due => self.remove_old(epoch, &forgotten_ms).await,
                kept => kept,
            };
            match kept {
                Ok(()) if is_due => {
                    removed = Instant::now();
                    if self.cluster.names_pending() == 0 {
                        removed_until_ms = last_ms;
                    }
                }
                Ok(()) => {}
                Err(error) => self.wait_after(&error).await,
            }
        }
    }

    async fn keep_tables(&mut self, epoch: u64) -> Result<(), FollowError> {
        let leader = self.log.leader().await?;
        if leader.as_ref().is_some_and(|leader| leader.epoch != epoch) {
            // It writes nothing at the moment, such as on a full disk, and would not notice.
            self.engine.call(|_| Err::<(), _>(LogThreadError::Fenced.into())).await?;
        }
        self.cluster.note_leader(leader);
        self.note().await
    }

    /// Removes what is old from the log, and what may contain a forgotten name. `forgotten_ms`: the times of the
    /// requests, in order.
    async fn remove_old(&mut self, epoch: u64, forgotten_ms: &[i64]) -> Result<(), FollowError> {
        let engines = self.log.engines().await?;
        let present = engines.iter().filter(|engine| engine.age_ms < AWAY_MS_MAX);
        let applied = present.map(|engine| engine.seq).min().unwrap_or_default();
        let now_ms = self.clock.now_ms();
        // Nothing is old by a wrong clock.
        let keep_ms = i64::from(self.keep_log_days) * DAY_MS;
        let since_ms = if self.clock.is_trusted() { now_ms - keep_ms } else { i64::MIN };
        let keep = KeptLog { now_ms, since_ms, forgotten_ms: forgotten_ms.last().copied().unwrap_or_default() };
        // If it is fenced, the thread that writes the log ends this engine.
        while self.log.remove_oldest(epoch, &keep, applied).await? == Some(true) {}
        let first_ms = self.log.first_ms().await?.unwrap_or(i64::MAX);
        let pending = forgotten_ms.iter().filter(|forgotten_ms| **forgotten_ms >= first_ms).count();
        self.cluster.note_names_pending(pending as u64);
        Ok(())
    }
}
