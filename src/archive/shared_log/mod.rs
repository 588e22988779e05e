//! The log of a cluster: the batches of one leader in the table `clq_log`, which every engine reads.
//!
//! - **Order.** The writer numbers its batches, so of two inserts of one number the second fails.
//! - **Fencing.** The row of `clq_leader` has the leader's epoch. Every transaction of a leader updates this row, where
//!   it matches its epoch. If it does not match, another engine has taken over, and nothing else is written.
//!   Reading the row would not do on a cluster of databases: only rows that are *written* are compared there.
//! - **A network that is cut.** A transaction is one message. So none stays open while its leader is cut off, whose lock
//!   of the row would keep the other engines from taking over.
//! - **Taking over** is one update that matches epoch and beat of the last leader as they were seen, so of two engines
//!   one succeeds, and a leader that has written meanwhile stays.
//! - **A lost answer.** A batch whose commit was not confirmed is inserted again: its number tells whether it is there.
//!
//! Every error drops the connection, with which its transaction ends. The caller tries again, at the next host.

use std::io::Read;

use mysql_async::prelude::FromRow;

use super::connect::{Archive, HostOrder};
use super::error::{ArchiveError, StatementError};
use super::settings::ArchiveSettings;
use super::sql::{RowFormat, Values, literal};
use super::sql_script::statements;
use super::writer_epoch::NOW_MS;
use crate::log::{SealedBatch, SegmentHeader};

const TABLES_SQL: &str = include_str!("tables.sql");

/// Limits of a connection attempt and of a statement, ms: a node that does not answer must not cost the lease.
const CONNECT_TIMEOUT_MS: u32 = 1_000;
const STATEMENT_TIMEOUT_MS: u32 = 3_000;

/// Batches of one read, which the engine applies at once: some 10 ms, in the worst case a second.
const BATCHES_PER_READ: usize = 8;

/// Rows that one transaction deletes: some MB, so that it does not stall the other nodes.
const DELETED_PER_TRANSACTION: u64 = 200;

/// A decompressed batch. A leader writes smaller ones.
const BATCH_BYTES_MAX: u64 = 64 << 20;

/// Whether the writer of a transaction still leads.
const LEADS: &str = "@clqd_leads = 1";

/// An engine of a cluster, as it introduces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// `cluster.engine`
    pub engine: String,
    /// `cluster.address`
    pub address: String,
    /// Random number of the process.
    pub instance: u64,
}

/// The row of the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    pub epoch: u64,
    pub beat: u64,
    pub member: Member,
}

impl Leader {
    /// Whether it has stopped, so that another engine need not wait.
    pub fn is_released(&self) -> bool {
        self.member.instance == RELEASED
    }
}

/// The instance of a leader that has stopped.
const RELEASED: u64 = 0;

/// A batch of the log.
#[derive(Debug)]
pub struct SharedBatch {
    /// `rules.number` by which its events are applied.
    pub version: u16,
    pub batch: SealedBatch,
}

/// An engine as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenEngine {
    pub member: Member,
    pub version: u16,
    /// The last batch that it has applied.
    pub seq: u64,
    /// Time since it said so, ms.
    pub age_ms: i64,
}

/// What is kept of the log.
#[derive(Clone, Copy, Debug)]
pub struct KeptLog {
    pub now_ms: i64,
    /// Segments whose successor was begun since then, Unix ms.
    pub since_ms: i64,
    /// But none that was begun before the last request to forget a player, Unix ms, or ended until then: they may contain
    /// the name. A state from before the request could not follow them without the name, and one from after it does not
    /// need them.
    pub forgotten_ms: i64,
}

/// Whether a leader may still write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fenced {
    No,
    /// Another engine has taken over: nothing was written.
    Yes,
}

/// A connection to the log of a cluster.
pub struct SharedLog {
    settings: ArchiveSettings,
    host_count: usize,
    order: HostOrder,
    connection: Option<Archive>,
}

impl SharedLog {
    /// In the database of an archive.
    pub fn new(archive: &ArchiveSettings) -> Result<SharedLog, ArchiveError> {
        let settings = ArchiveSettings {
            connect_timeout_ms: CONNECT_TIMEOUT_MS,
            query_timeout_ms: STATEMENT_TIMEOUT_MS,
            ..archive.clone()
        };
        let host_count = settings.parsed_url()?.host_count();
        Ok(SharedLog { settings, host_count, order: HostOrder::default(), connection: None })
    }

    /// Creates what is missing of the tables.
    pub async fn create_tables(&mut self) -> Result<(), ArchiveError> {
        for statement in statements(TABLES_SQL) {
            self.run("the tables of the cluster", statement).await?;
        }
        Ok(())
    }

    pub async fn leader(&mut self) -> Result<Option<Leader>, ArchiveError> {
        let select = "SELECT epoch, beat, instance, engine, address FROM clq_leader WHERE singleton = 1";
        let rows: Vec<(u64, u64, u64, String, String)> = self.rows("clq_leader", select).await?;
        let leader = |(epoch, beat, instance, engine, address)| {
            let member = Member { engine, address, instance };
            Leader { epoch, beat, member }
        };
        Ok(rows.into_iter().next().map(leader))
    }

    /// The time of the database, Unix ms.
    pub async fn now_ms(&mut self) -> Result<i64, ArchiveError> {
        let rows: Vec<i64> = self.rows("the time", &format!("SELECT CAST({NOW_MS} AS SIGNED)")).await?;
        Ok(rows.first().copied().unwrap_or_default())
    }

    /// Some of the batches after a number, in order.
    pub async fn read_after(&mut self, seq: u64) -> Result<Vec<SharedBatch>, ArchiveError> {
        let select = format!(
            "SELECT version, segment, segment_id, segment_ms, body FROM clq_log WHERE seq > {seq} ORDER BY seq \
             LIMIT {BATCHES_PER_READ}"
        );
        let rows: Vec<(u16, u64, u64, i64, Vec<u8>)> = self.rows("clq_log", &select).await?;
        let batch = |(n, (version, first_seq, id, created_ms, body)): (usize, (_, _, _, _, Vec<u8>))| {
            let segment = SegmentHeader { version: SegmentHeader::VERSION, id, first_seq, created_ms };
            let batch = decompress(&body).and_then(|bytes| SealedBatch::of_bytes(segment, bytes));
            let batch = batch.ok_or_else(|| self.damaged(seq + 1 + n as u64))?;
            Ok(SharedBatch { version, batch })
        };
        rows.into_iter().enumerate().map(batch).collect()
    }

    /// The first batch of the segment that has a batch, or the one before it; `None`: neither is there.
    pub async fn segment_of(&mut self, seq: u64) -> Result<Option<u64>, ArchiveError> {
        let before = seq.saturating_sub(1);
        let select = format!("SELECT segment FROM clq_log WHERE seq IN ({before}, {seq}) ORDER BY seq DESC LIMIT 1");
        let rows: Vec<u64> = self.rows("clq_log", &select).await?;
        Ok(rows.first().copied())
    }

    /// The last batch; 0: there is none.
    pub async fn last_seq(&mut self) -> Result<u64, ArchiveError> {
        let rows: Vec<u64> = self.rows("clq_log", "SELECT COALESCE(MAX(seq), 0) FROM clq_log").await?;
        Ok(rows.first().copied().unwrap_or_default())
    }

    /// The time of the first batch that is there, Unix ms; `None`: there is none.
    pub async fn first_ms(&mut self) -> Result<Option<i64>, ArchiveError> {
        let rows: Vec<i64> = self.rows("clq_log", "SELECT last_ms FROM clq_log ORDER BY seq LIMIT 1").await?;
        Ok(rows.first().copied())
    }

    /// Takes over from a leader, if it has not written since it was seen. Returns the new epoch; `None`: it has, or
    /// another engine was faster.
    pub async fn take_over(&mut self, seen: Option<&Leader>, member: &Member) -> Result<Option<u64>, ArchiveError> {
        let Member { engine, address, instance } = member;
        let (engine, address) = (literal(engine), literal(address));
        let (epoch, sql) = match seen {
            None => (
                1,
                format!(
                    "INSERT IGNORE INTO clq_leader (singleton, epoch, beat, instance, engine, address) \
                     VALUES (1, 1, 0, {instance}, {engine}, {address})"
                ),
            ),
            Some(Leader { epoch, beat, .. }) => (
                epoch + 1,
                format!(
                    "UPDATE clq_leader SET epoch = {epoch} + 1, beat = 0, instance = {instance}, engine = {engine}, \
                     address = {address} WHERE singleton = 1 AND epoch = {epoch} AND beat = {beat}"
                ),
            ),
        };
        let changed = self.run("clq_leader", &sql).await?;
        Ok((changed == 1).then_some(epoch))
    }

    /// Appends a batch as the leader of an epoch. After an error it may or may not be in the log: it is appended
    /// again.
    pub async fn append(&mut self, epoch: u64, version: u16, batch: &SealedBatch) -> Result<Fenced, ArchiveError> {
        let SegmentHeader { id, first_seq, created_ms, .. } = batch.segment;
        let (seq, last_ms) = (batch.seq(), batch.last_ms());
        let mut sql = format!(
            "INSERT INTO clq_log (seq, epoch, version, segment, segment_id, segment_ms, last_ms, body) \
             SELECT {seq}, {epoch}, {version}, {first_seq}, {id}, {created_ms}, {last_ms}, "
        )
        .into_bytes();
        let body = zstd::bulk::compress(batch.bytes(), 1).expect("memory suffices for a batch");
        Values::new(&mut sql, RowFormat::Insert).bytes(&body);
        // A log with a hole cannot be followed.
        let before = seq - 1;
        let condition = format!(
            " FROM DUAL WHERE {LEADS} AND (NOT EXISTS (SELECT 1 FROM clq_log) \
             OR EXISTS (SELECT 1 FROM clq_log WHERE seq IN ({before}, {seq}))) \
             ON DUPLICATE KEY UPDATE seq = VALUES(seq)"
        );
        sql.extend_from_slice(condition.as_bytes());
        match self.write_as(epoch, "clq_log", &sql).await? {
            None => return Ok(Fenced::Yes),
            Some(0) => {}
            Some(_) => return Ok(Fenced::No),
        }
        let select = format!("SELECT epoch, segment_id FROM clq_log WHERE seq = {seq}");
        let found: Vec<(u64, u64)> = self.rows("clq_log", &select).await?;
        match found.first() {
            // The commit whose answer was lost.
            Some(found) if *found == (epoch, id) => Ok(Fenced::No),
            Some(_) => Ok(Fenced::Yes),
            None => {
                let why = format!(
                    "batch {before} of clq_log is missing: the database has lost it, as after a start of the wrong node; \
                     nothing more is written"
                );
                Err(ArchiveError::Rejected { target: self.target(), what: "clq_log", why })
            }
        }
    }

    /// Ends an epoch: another engine need not wait for the end of the lease.
    pub async fn release(&mut self, epoch: u64) -> Result<(), ArchiveError> {
        let sql = format!("UPDATE clq_leader SET instance = {RELEASED} WHERE singleton = 1 AND epoch = {epoch}");
        self.run("clq_leader", &sql).await.map(drop)
    }

    /// Says that an engine is there, and what it has applied.
    pub async fn note_engine(&mut self, member: &Member, version: u16, seq: u64) -> Result<(), ArchiveError> {
        let Member { engine, address, instance } = member;
        let (engine, address) = (literal(engine), literal(address));
        let sql = format!(
            "INSERT INTO clq_engine (engine, instance, address, version, seq, seen_ms) \
             VALUES ({engine}, {instance}, {address}, {version}, {seq}, {NOW_MS}) ON DUPLICATE KEY UPDATE \
             instance = VALUES(instance), address = VALUES(address), version = VALUES(version), seq = VALUES(seq), \
             seen_ms = VALUES(seen_ms)"
        );
        self.run("clq_engine", &sql).await.map(drop)
    }

    /// The engines by name.
    pub async fn engines(&mut self) -> Result<Vec<SeenEngine>, ArchiveError> {
        let select = format!(
            "SELECT engine, address, instance, version, seq, CAST({NOW_MS} AS SIGNED) - seen_ms FROM clq_engine ORDER BY engine"
        );
        let rows: Vec<(String, String, u64, u16, u64, i64)> = self.rows("clq_engine", &select).await?;
        let engine = |(engine, address, instance, version, seq, age_ms)| SeenEngine {
            member: Member { engine, address, instance },
            version,
            seq,
            age_ms,
        };
        Ok(rows.into_iter().map(engine).collect())
    }

    /// Deletes the oldest segment, as the leader of an epoch, if all engines have its events, those until `applied`, and
    /// it is not kept any more. Returns whether it did; `None`: another engine has taken over.
    pub async fn remove_oldest(
        &mut self,
        epoch: u64,
        keep: &KeptLog,
        applied: u64,
    ) -> Result<Option<bool>, ArchiveError> {
        let select = "SELECT segment, segment_ms FROM clq_log ORDER BY seq LIMIT 1";
        let oldest: Vec<(u64, i64)> = self.rows("clq_log", select).await?;
        let Some((oldest, oldest_ms)) = oldest.first() else { return Ok(Some(false)) };
        let select = format!(
            "SELECT seq, segment_ms FROM clq_log WHERE seq > {oldest} AND segment > {oldest} ORDER BY seq LIMIT 1"
        );
        let next: Vec<(u64, i64)> = self.rows("clq_log", &select).await?;
        let Some(&(next, began_ms)) = next.first().filter(|(next, _)| *next <= applied + 1) else {
            return Ok(Some(false));
        };
        let last = format!("SELECT last_ms FROM clq_log WHERE seq < {next} ORDER BY seq DESC LIMIT 1");
        let last_ms: Vec<i64> = self.rows("clq_log", &last).await?;
        // Times in the future are of a clock that was set back since.
        let may_have_name = *oldest_ms < keep.forgotten_ms
            || last_ms.first().is_some_and(|last_ms| *last_ms <= keep.forgotten_ms || *last_ms > keep.now_ms);
        if began_ms >= keep.since_ms && !may_have_name {
            return Ok(Some(false));
        }
        let delete =
            format!("DELETE FROM clq_log WHERE {LEADS} AND seq < {next} ORDER BY seq LIMIT {DELETED_PER_TRANSACTION}");
        loop {
            match self.write_as(epoch, "clq_log", delete.as_bytes()).await? {
                None => return Ok(None),
                Some(deleted) if deleted < DELETED_PER_TRANSACTION => return Ok(Some(true)),
                Some(_) => {}
            }
        }
    }

    /// Runs a statement with the condition [`LEADS`] as the leader of an epoch. Returns the number of rows that it
    /// changed; `None`: another engine has taken over.
    async fn write_as(&mut self, epoch: u64, doing: &'static str, sql: &[u8]) -> Result<Option<u64>, ArchiveError> {
        let beat = format!(
            "START TRANSACTION; UPDATE clq_leader SET beat = beat + 1 WHERE singleton = 1 AND epoch = {epoch}; \
             SET @clqd_leads = ROW_COUNT(); "
        );
        let end = "; SET @clqd_rows = ROW_COUNT(); COMMIT; SELECT @clqd_leads = 1, @clqd_rows";
        let message = [beat.as_bytes(), sql, end.as_bytes()].concat();
        let written: Result<Vec<(bool, u64)>, _> = self.connect().await?.rows_of_last(message).await;
        let written = written.map_err(|fault| self.failed(fault, doing))?;
        Ok(written.first().filter(|(leads, _)| *leads).map(|(_, rows)| *rows))
    }

    /// Runs a statement that is a transaction of its own. Returns the number of rows that it changed.
    async fn run(&mut self, doing: &'static str, sql: &str) -> Result<u64, ArchiveError> {
        let connection = self.connect().await?;
        match connection.execute(sql).await {
            Ok(()) => Ok(connection.affected_rows()),
            Err(fault) => Err(self.failed(fault, doing)),
        }
    }

    async fn rows<T>(&mut self, doing: &'static str, sql: &str) -> Result<Vec<T>, ArchiveError>
    where
        T: FromRow + Send + 'static,
    {
        let rows = self.connect().await?.rows(sql).await;
        rows.map_err(|fault| self.failed(fault, doing))
    }

    async fn connect(&mut self) -> Result<&mut Archive, ArchiveError> {
        if self.connection.is_none() {
            self.connection = Some(Archive::connect_without_lock(&self.settings, &mut self.order).await?);
        }
        Ok(self.connection.as_mut().expect("it was just connected"))
    }

    /// Drops the connection, with which its transaction ends. The next one is to the next host.
    fn failed(&mut self, fault: StatementError, doing: &'static str) -> ArchiveError {
        let error = fault.classify(&self.target(), doing);
        self.connection = None;
        self.order.first_failed(self.host_count);
        error
    }

    fn target(&self) -> String {
        self.connection.as_ref().map_or_else(String::new, |connection| connection.target.clone())
    }

    fn damaged(&self, seq: u64) -> ArchiveError {
        let why = format!("batch {seq} of clq_log is damaged");
        ArchiveError::Rejected { target: self.target(), what: "clq_log", why }
    }
}

/// `None`: it is damaged, or too large.
fn decompress(body: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = zstd::Decoder::new(body).ok()?.take(BATCH_BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    (read as u64 <= BATCH_BYTES_MAX).then_some(bytes)
}
