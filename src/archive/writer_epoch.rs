//! Fencing: of several writers of one archive, only the last one can commit.
//!
//! The table `clq_writer` has one row. A writer takes the next epoch there, in a transaction of
//! its own. Every later transaction begins with an update of the row that matches this epoch.
//! If no row matches, another writer has taken a later epoch, and the transaction is rolled
//! back. Locks cannot do this on a cluster: a named lock and a row locked by `FOR UPDATE` exist
//! on one node only. An *updated* row takes part in the certification at the commit, so of two
//! writers on two nodes one fails.
//!
//! This holds for every transaction that writes rows: batches of jobs, weeks in chunks, the id
//! of the state. A migration is not fenced: data definitions commit by themselves, and it
//! inserts only rows that are always the same.
//!
//! Each of them may be repeated when the reply to its commit was lost. Jobs and the id are absolute values.
//! Totals of maps change by the difference to the rows that the same transaction reads and replaces. A
//! removed player has no rows the second time. An epoch that was taken in vain is followed by another.
//!
//! A new epoch also makes the reads of its transactions current: its commit follows every
//! commit of the epochs before, also on a node that applies the others' transactions late.
//!
//! **Lease.** Any writer may take the next epoch at any time, and no data is lost or mixed. But
//! two daemons would take it from each other in turn. On one database server the named lock
//! keeps the second one out. On a cluster, a writer takes no epoch while another state
//! directory holds it: until that writer closes its connection, or has not written for
//! [`LEASE_MS`]. If the clocks of the nodes differ, the wait is
//! shorter or longer; the fencing is not affected.
//!
//! **Copies.** Two copies of one state directory have the same id. So a state knows its own last epochs and the
//! number of transactions that were acknowledged ([`ArchiveWriter`](crate::model::outbox::ArchiveWriter)). The
//! source plans each epoch by that and by the row that it finds, and the epoch is taken only from that row.

use std::time::Duration;

use super::connect::{Archive, WriterEpoch};
use super::error::{ArchiveError, StatementError, TransactionError};
use crate::model::outbox::{WriterBeat, WriterRow};

/// Most attempts of a transaction that loses conflicts.
pub(super) const CONFLICT_TRIES_MAX: u32 = 5;

/// A writer that has not written for this long may be replaced by one of another state, ms. It
/// is as long as the database keeps an idle connection with its named lock.
const LEASE_MS: i64 = 120_000;

/// The time on the clock of the database server, Unix ms.
pub(super) const NOW_MS: &str = "FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000)";

/// Whether a writer must wait for the last one. `age_ms`: time since its last transaction; `None`: it has closed
/// its connection.
fn holds_lease(holder: Option<u64>, age_ms: Option<i64>, state_id: Option<u64>) -> bool {
    let is_same_state = state_id.is_some() && holder == state_id;
    !is_same_state && age_ms.is_some_and(|age_ms| age_ms < LEASE_MS)
}

impl Archive {
    /// Takes the next epoch, also from another writer: from now on, connections with earlier epochs cannot write.
    /// `state_id` identifies the state directory; `None`: there is none. Error `OtherWriter`: on
    /// a cluster, the archive is being written from another state.
    ///
    /// A transaction of a connection without an epoch does this by itself, without a state.
    pub async fn become_writer(&mut self, state_id: Option<u64>) -> Result<(), ArchiveError> {
        let previous = self.last_writer(state_id).await?.map_or(0, |row| row.at.epoch);
        self.take_epoch(previous, previous + 1, state_id).await
    }

    /// The row of the last writer. Error `OtherWriter`: on a cluster, the archive is being written from another
    /// state than `state_id`.
    pub async fn last_writer(&mut self, state_id: Option<u64>) -> Result<Option<WriterRow>, ArchiveError> {
        let select = format!(
            "SELECT epoch, beat, state_id, CAST({NOW_MS} AS SIGNED) - beat_ms FROM clq_writer WHERE singleton = 1"
        );
        let row: Option<(u64, u64, Option<u64>, Option<i64>)> = self.first("clq_writer", &select).await?;
        let Some((epoch, beat, holder, age_ms)) = row else { return Ok(None) };
        if self.is_cluster && holds_lease(holder, age_ms, state_id) {
            let age_s = age_ms.unwrap_or_default().max(0) / 1_000;
            let why = format!(
                "from another state directory, which last wrote {age_s} s ago; stop that one, or if it no longer runs, \
                 wait until it has not written for {} s",
                LEASE_MS / 1_000
            );
            return Err(ArchiveError::OtherWriter { target: self.target.clone(), why });
        }
        Ok(Some(WriterRow { at: WriterBeat { epoch, beat }, state_id: holder }))
    }

    /// Takes an epoch, if the last writer still has `previous`; 0: there is none. Error `OtherWriter`: another one
    /// has taken an epoch.
    pub async fn take_epoch(&mut self, previous: u64, epoch: u64, state_id: Option<u64>) -> Result<(), ArchiveError> {
        self.writer = WriterEpoch { at: None, state_id };
        let mut tries = 1;
        loop {
            match self.try_take_epoch(previous, epoch).await {
                Ok(()) => {
                    self.writer.at = Some(WriterBeat { epoch, beat: 1 });
                    return Ok(());
                }
                Err(failure) => self.retry_conflict(failure, &mut tries).await?,
            }
        }
    }

    /// The error that the archive lacks what it had acknowledged.
    pub(super) fn older(&self, what: &'static str) -> ArchiveError {
        ArchiveError::Older { target: self.target.clone(), what }
    }

    /// The error that another copy of the state has written.
    pub(super) fn written_by_other(&self) -> ArchiveError {
        let why = "the last writer had another copy of this state, such as a copied directory, or this one before a backup was \
                   restored. Stop it; or let this one fill the archive: clqd archive take-over";
        ArchiveError::OtherWriter { target: self.target.clone(), why: why.to_owned() }
    }

    /// The epoch of this connection, and the number of its committed transactions.
    pub(super) fn acknowledged(&self) -> WriterBeat {
        self.writer.at.unwrap_or_default()
    }

    /// Starts a transaction that may write: as its first statement, it updates the row of this
    /// epoch. Error `OtherWriter`: a later epoch exists.
    pub(super) async fn begin(&mut self) -> Result<(), TransactionError> {
        if self.writer.at.is_none() {
            self.become_writer(None).await.map_err(TransactionError::Error)?;
        }
        self.execute_in("begin", "START TRANSACTION").await?;
        self.beat().await
    }

    /// Runs one statement in a transaction of its own. Returns the number of rows that it changed.
    pub(super) async fn run_fenced(&mut self, doing: &'static str, sql: &str) -> Result<u64, ArchiveError> {
        let mut tries = 1;
        loop {
            match self.try_run_fenced(doing, sql).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => self.retry_conflict(failure, &mut tries).await?,
            }
        }
    }

    /// Keeps the database from closing the connection as idle, and the lease from expiring.
    pub(super) async fn keep_alive(&mut self) -> Result<(), ArchiveError> {
        self.run_fenced("keep-alive", "DO 0").await.map(|_| ())
    }

    /// Releases the lease, so a writer of another state can begin at once. After a failure, that
    /// writer has to wait.
    pub(super) async fn release_epoch(&mut self) {
        if let (true, Some(WriterBeat { epoch, .. })) = (self.is_cluster, self.writer.at) {
            let release = format!("UPDATE clq_writer SET beat_ms = NULL WHERE singleton = 1 AND epoch = {epoch}");
            let _ = self.execute(&release).await;
        }
    }

    /// After a transaction failed: rolls it back, and waits before the next try if it lost a
    /// conflict. Error: it failed for another reason, or for the last time.
    pub(super) async fn retry_conflict(
        &mut self,
        failure: TransactionError,
        tries: &mut u32,
    ) -> Result<(), ArchiveError> {
        match failure {
            TransactionError::Fault { fault, .. } if *tries < CONFLICT_TRIES_MAX && self.can_repeat_after(&fault) => {
                self.run("rollback", "ROLLBACK").await?;
                tokio::time::sleep(Duration::from_millis(10 << *tries)).await;
                *tries += 1;
                Ok(())
            }
            failure => Err(self.roll_back(failure).await),
        }
    }

    /// Whether a transaction that failed may succeed if it is repeated: it lost a conflict, or
    /// LOAD DATA failed, which is not used from now on. Reports it.
    pub(super) fn can_repeat_after(&mut self, fault: &StatementError) -> bool {
        if fault.is_conflict() {
            self.report_conflict(fault);
            return true;
        }
        let is_of_load_data = matches!(fault, StatementError::LoadData(_));
        if is_of_load_data {
            tracing::warn!(archive = self.target, table = self.doing, "{fault}; rows are written with INSERT instead");
            self.stop_load_data();
        }
        is_of_load_data
    }

    /// Rolls back after a failure, and returns it as an error.
    pub(super) async fn roll_back(&mut self, failure: TransactionError) -> ArchiveError {
        match failure {
            TransactionError::Fault { fault, doing } => {
                if !fault.is_fatal() {
                    let _ = self.execute("ROLLBACK").await;
                }
                fault.classify(&self.target, doing)
            }
            TransactionError::Error(error) => {
                // The reason of the error matters more than a connection lost after it.
                let _ = self.execute("ROLLBACK").await;
                error
            }
        }
    }

    async fn try_run_fenced(&mut self, doing: &'static str, sql: &str) -> Result<u64, TransactionError> {
        self.begin().await?;
        self.execute_in(doing, sql).await?;
        let rows = self.affected_rows();
        self.commit().await?;
        Ok(rows)
    }

    /// Commits a transaction.
    pub(super) async fn commit(&mut self) -> Result<(), TransactionError> {
        self.execute_in("commit", "COMMIT").await?;
        self.writer.at.iter_mut().for_each(|at| at.beat += 1);
        Ok(())
    }

    async fn try_take_epoch(&mut self, previous: u64, epoch: u64) -> Result<(), TransactionError> {
        self.execute_in("begin", "START TRANSACTION").await?;
        let select = "SELECT epoch FROM clq_writer WHERE singleton = 1 FOR UPDATE";
        let found: Option<u64> = self.row_in("clq_writer", select).await?;
        if found.unwrap_or(0) != previous {
            let why = "it has just taken over; only one of them may run".to_owned();
            return Err(TransactionError::Error(ArchiveError::OtherWriter { target: self.target.clone(), why }));
        }
        let state = self.writer.state_id.map_or_else(|| "NULL".to_owned(), |id| id.to_string());
        let take = format!(
            "INSERT INTO clq_writer (singleton, epoch, beat, beat_ms, state_id) \
             VALUES (1, {epoch}, 1, {NOW_MS}, {state}) ON DUPLICATE KEY UPDATE \
             epoch = VALUES(epoch), beat = 1, beat_ms = VALUES(beat_ms), state_id = VALUES(state_id)"
        );
        self.execute_in("clq_writer", &take).await?;
        self.execute_in("commit", "COMMIT").await
    }

    async fn beat(&mut self) -> Result<(), TransactionError> {
        let WriterBeat { epoch, .. } = self.writer.at.expect("the epoch is taken before a transaction");
        let update = format!(
            "UPDATE clq_writer SET beat = beat + 1, beat_ms = {NOW_MS} WHERE singleton = 1 AND epoch = {epoch}"
        );
        self.execute_in("clq_writer", &update).await?;
        // The update changes the row in any case, so it counts as affected with and without
        // CLIENT_FOUND_ROWS.
        if self.affected_rows() == 1 {
            return Ok(());
        }
        let why = "it has taken over since this clqd connected; only one of them may run".to_owned();
        Err(TransactionError::Error(ArchiveError::OtherWriter { target: self.target.clone(), why }))
    }

    async fn execute_in(&mut self, doing: &'static str, sql: &str) -> Result<(), TransactionError> {
        self.doing = doing;
        self.execute(sql).await.map_err(|fault: StatementError| TransactionError::Fault { fault, doing })
    }

    async fn row_in<T>(&mut self, doing: &'static str, sql: &str) -> Result<Option<T>, TransactionError>
    where
        T: mysql_async::prelude::FromRow + Send + 'static,
    {
        self.doing = doing;
        let rows = self.rows(sql).await.map_err(|fault| TransactionError::Fault { fault, doing })?;
        Ok(rows.into_iter().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_live_writer_of_another_state_excludes() {
        for (holder, age_ms, state_id, excludes) in [
            (Some(1), Some(0), Some(2), true),
            (Some(1), Some(LEASE_MS - 1), Some(2), true),
            (Some(1), Some(LEASE_MS), Some(2), false),
            // This happens if the clock of the other node is ahead.
            (Some(1), Some(-5_000), Some(2), true),
            (Some(1), None, Some(2), false),
            (Some(1), Some(0), Some(1), false),
            (Some(1), Some(0), None, true),
            // Without a state, the writer cannot be identified.
            (None, Some(0), None, true),
            (None, Some(0), Some(1), true),
            (None, None, None, false),
        ] {
            assert_eq!(holds_lease(holder, age_ms, state_id), excludes, "{holder:?} {age_ms:?} {state_id:?}");
        }
    }
}
