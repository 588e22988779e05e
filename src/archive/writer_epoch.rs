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
//! [`LEASE_MS`]. The process that has the last epoch does not wait, and neither does a daemon that
//! was restarted with the same state directory. If the clocks of the nodes differ, the wait is
//! shorter or longer; the fencing is not affected.

use std::time::Duration;

use super::connect::Archive;
use super::error::{ArchiveError, StatementError};
use super::write::{CONFLICT_TRIES_MAX, TransactionError};

/// A writer that has not written for this long may be replaced by one of another state, ms. It
/// is as long as the database keeps an idle connection with its named lock.
const LEASE_MS: i64 = 120_000;

/// The time on the clock of the database server, Unix ms.
const NOW_MS: &str = "FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000)";

/// The right of a connection to write.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WriterEpoch {
    /// `None`: not taken yet.
    epoch: Option<u64>,
    /// The id of the state that writes; `None`: none, such as a migration.
    state_id: Option<u64>,
    /// The last epoch that this process had, on any connection.
    previous: Option<u64>,
}

/// The row of the last writer.
struct Holder {
    epoch: u64,
    state_id: Option<u64>,
    /// Time since its last transaction; `None`: it has closed its connection.
    age_ms: Option<i64>,
}

impl Holder {
    /// Whether this writer must wait.
    fn excludes(&self, writer: &WriterEpoch) -> bool {
        let is_same_process = writer.previous == Some(self.epoch);
        let is_same_state = writer.state_id.is_some() && self.state_id == writer.state_id;
        !is_same_process && !is_same_state && self.age_ms.is_some_and(|age_ms| age_ms < LEASE_MS)
    }
}

impl Archive {
    /// Takes the next epoch: from now on, connections with earlier epochs cannot write.
    /// `state_id` identifies the state directory; `None`: there is none. Error `OtherWriter`: on
    /// a cluster, the archive is being written from another state.
    ///
    /// A transaction of a connection without an epoch does this by itself, without a state.
    pub async fn become_writer(&mut self, state_id: Option<u64>) -> Result<(), ArchiveError> {
        self.take_over(&mut None, state_id).await
    }

    /// As `become_writer`. `previous` is the last epoch that this process had on any connection,
    /// which may still be open. It is set to the new epoch.
    pub(super) async fn take_over(
        &mut self,
        previous: &mut Option<u64>,
        state_id: Option<u64>,
    ) -> Result<(), ArchiveError> {
        self.writer = WriterEpoch { epoch: None, state_id, previous: *previous };
        let mut tries = 1;
        loop {
            match self.take_epoch(previous).await {
                Ok(epoch) => {
                    self.writer.epoch = Some(epoch);
                    return Ok(());
                }
                Err(failure) => self.retry_conflict(failure, &mut tries).await?,
            }
        }
    }

    /// Sets the state that writes. It is stored with the next transaction.
    pub(super) fn set_writer_state(&mut self, state_id: u64) {
        self.writer.state_id = Some(state_id);
    }

    /// Starts a transaction that may write: as its first statement, it updates the row of this
    /// epoch. Error `OtherWriter`: a later epoch exists.
    pub(super) async fn begin(&mut self) -> Result<(), TransactionError> {
        if self.writer.epoch.is_none() {
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
        if let (true, Some(epoch)) = (self.is_cluster, self.writer.epoch) {
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
        self.execute_in("commit", "COMMIT").await?;
        Ok(rows)
    }

    async fn take_epoch(&mut self, previous: &mut Option<u64>) -> Result<u64, TransactionError> {
        self.execute_in("begin", "START TRANSACTION").await?;
        let held = format!(
            "SELECT epoch, state_id, CAST({NOW_MS} AS SIGNED) - beat_ms FROM clq_writer WHERE singleton = 1 FOR UPDATE"
        );
        let held: Option<(u64, Option<u64>, Option<i64>)> = self.row_in("clq_writer", &held).await?;
        let held = held.map(|(epoch, state_id, age_ms)| Holder { epoch, state_id, age_ms });
        if let Some(holder) = held
            && self.is_cluster
            && holder.excludes(&self.writer)
        {
            let age_s = holder.age_ms.unwrap_or_default().max(0) / 1_000;
            let why = format!(
                "from another state directory, which last wrote {age_s} s ago; stop that one, or if it no longer runs, \
                 wait until it has not written for {} s",
                LEASE_MS / 1_000
            );
            return Err(TransactionError::Error(ArchiveError::OtherWriter { target: self.target.clone(), why }));
        }
        // The first epoch is the time, so no epoch is used twice even if the row was deleted.
        let state = self.writer.state_id.map_or_else(|| "NULL".to_owned(), |id| id.to_string());
        let take = format!(
            "INSERT INTO clq_writer (singleton, epoch, beat, beat_ms, state_id) \
             VALUES (1, {NOW_MS}, 1, {NOW_MS}, {state}) ON DUPLICATE KEY UPDATE \
             epoch = epoch + 1, beat = 1, beat_ms = VALUES(beat_ms), state_id = VALUES(state_id)"
        );
        self.execute_in("clq_writer", &take).await?;
        let epoch = self.row_in::<u64>("clq_writer", "SELECT epoch FROM clq_writer WHERE singleton = 1").await?;
        let epoch = epoch.expect("the row was written in this transaction");
        // Before the commit, whose reply may be lost.
        *previous = Some(epoch);
        self.execute_in("commit", "COMMIT").await?;
        Ok(epoch)
    }

    async fn beat(&mut self) -> Result<(), TransactionError> {
        let WriterEpoch { epoch, state_id, .. } = self.writer;
        let epoch = epoch.expect("the epoch is taken before a transaction");
        let state = state_id.map_or_else(String::new, |id| format!(", state_id = {id}"));
        let update = format!(
            "UPDATE clq_writer SET beat = beat + 1, beat_ms = {NOW_MS}{state} WHERE singleton = 1 AND epoch = {epoch}"
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
            let holder = Holder { epoch: 5, state_id: holder, age_ms };
            let writer = |previous| WriterEpoch { epoch: None, state_id, previous };
            for previous in [None, Some(4)] {
                assert_eq!(holder.excludes(&writer(previous)), excludes, "{:?} {age_ms:?}", holder.state_id);
            }
            assert!(!holder.excludes(&writer(Some(5))), "it is this process");
        }
    }
}
