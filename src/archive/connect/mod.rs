//! A connection to the archive with clqd's session settings: text as utf8mb4 (which is
//! verified), a timeout on everything, and an exclusive lock.
//!
//! - [`host_order`]: which host of `archive.url` is tried next, and the error if all fail.
//! - [`session`]: the settings of a session, the check of the character set, and the named lock
//!   that keeps two daemons from one database server.
//! - [`node`]: whether a host is a node of a cluster, and whether that node can be written.
//!
//! Only one daemon writes an archive. On one database server the lock ensures this: an abandoned
//! connection cannot overwrite newer rows, because its successor holds the lock. A cluster has no
//! common locks. There, and wherever else the lock fails, the epoch of
//! [`writer_epoch`](super::writer_epoch) ensures it.

mod host_order;
mod node;
mod session;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::{AsQuery, FromRow, Queryable};
use mysql_async::{Conn, DriverError, Error as MysqlError, InfileData, Opts, OptsBuilder, Row};

use self::host_order::Attempt;
pub(super) use self::host_order::HostOrder;
use super::computed_totals::ComputedTotals;
use super::error::{ArchiveError, StatementError};
use super::hosts::ArchiveUrl;
use super::settings::{ArchiveSettings, Tls};
use super::write_method::WriteMethod;
use crate::model::outbox::WriterBeat;

/// A running statement is reported after this time without a response.
const SLOW_STATEMENT_AFTER: Duration = Duration::from_secs(5);

/// An open archive: a connection to one host. After an error other than `Rejected`,
/// `KeyMismatch` or `Blocked` drop it and connect again.
pub struct Archive {
    conn: Conn,
    /// `user@host:port/database`, with the host of this connection.
    pub(super) target: String,
    /// `host:port`.
    pub(super) host: String,
    pub(super) batch_rows_max: usize,
    pub(super) statement_bytes_max: usize,
    query_timeout: Duration,
    /// Whether the database is a node of a cluster: a lock of its own protects only this node,
    /// and large transactions stall the others.
    pub(super) is_cluster: bool,
    /// How many rows are written at once.
    pub(super) write_method: WriteMethod,
    /// The database allows LOAD DATA LOCAL INFILE.
    pub(super) is_local_infile_on: bool,
    /// LOAD DATA failed on this connection.
    pub(super) load_data_failed: bool,
    /// The right to write.
    pub(super) writer: WriterEpoch,
    /// How names are compared with the stored ones before they are written.
    pub(super) name_check: NameCheck,
    /// Totals of players on many servers that need not be computed from all rows.
    pub(super) computed_totals: ComputedTotals,
    /// Object of the running statement, for messages.
    pub(super) doing: &'static str,
    waits: Option<BlockedReporter>,
}

/// What happens to a stored name with another key, or a stored key with another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) enum NameCheck {
    /// Nothing is written: the archive was written from another state.
    Refuse,
    /// It is deleted: somebody has changed an archive that belongs to this state.
    Delete,
    /// Names are not compared, which is faster: a resync fills the archive, and nobody else has changed it.
    Skip,
}

/// The right of a connection to write.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WriterEpoch {
    /// The epoch, and the transactions of it that were committed; `None`: not taken yet.
    pub(super) at: Option<WriterBeat>,
    /// The id of the state that writes; `None`: none, such as a migration.
    pub(super) state_id: Option<u64>,
}

/// Receives reports of waits that are not errors yet.
pub(super) type BlockedReporter = Arc<dyn Fn(ArchiveError) + Send + Sync>;

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The connection holds the archive's lock.
    Write,
    WriteWithoutLock,
    Read,
}

impl Archive {
    /// Connects to the first host that can be written, and waits for the archive's lock for a
    /// few seconds at most.
    pub async fn connect(settings: &ArchiveSettings) -> Result<Archive, ArchiveError> {
        Archive::reconnect(settings, &mut HostOrder::default()).await
    }

    /// As `connect`, but begins with the host that is first in `order`.
    pub(super) async fn reconnect(settings: &ArchiveSettings, order: &mut HostOrder) -> Result<Archive, ArchiveError> {
        Archive::connect_for(Purpose::Write, settings, order).await
    }

    /// Connects to the first host that can be written, without the archive's lock, only to read. On
    /// a cluster, each transaction sees all transactions that were committed before it on any node.
    pub async fn connect_to_read(settings: &ArchiveSettings) -> Result<Archive, ArchiveError> {
        Archive::connect_for(Purpose::Read, settings, &mut HostOrder::default()).await
    }

    /// As `reconnect`, but without the archive's lock: the caller excludes other writers itself.
    pub(super) async fn connect_without_lock(
        settings: &ArchiveSettings,
        order: &mut HostOrder,
    ) -> Result<Archive, ArchiveError> {
        Archive::connect_for(Purpose::WriteWithoutLock, settings, order).await
    }

    async fn connect_for(
        purpose: Purpose,
        settings: &ArchiveSettings,
        order: &mut HostOrder,
    ) -> Result<Archive, ArchiveError> {
        let url = settings.parsed_url()?;
        let opts = settings.opts()?;
        let mut search = order.search(url.host_count());
        while let Some(attempt) = search.next() {
            let connected = match Archive::open(&url, &opts, attempt.index, settings).await {
                Ok(archive) => archive.prepare(purpose, settings, &attempt, url.host_count(), order).await,
                Err(error) => Err(error),
            };
            match connected {
                Ok(archive) => {
                    order.connected(attempt.index);
                    return Ok(archive);
                }
                Err(error) => search.failed(attempt, error)?,
            }
        }
        Err(search.into_error(url.target()))
    }

    async fn open(
        url: &ArchiveUrl,
        opts: &Opts,
        index: usize,
        settings: &ArchiveSettings,
    ) -> Result<Archive, ArchiveError> {
        let target = url.target_of(index);
        let opts = url.at_host(opts, index);
        let within = Duration::from_millis(settings.connect_timeout_ms.into());
        let connected = async {
            match Conn::new(opts.clone()).await {
                Err(MysqlError::Driver(DriverError::NoClientSslFlagFromServer)) if settings.tls == Tls::Preferred => {
                    Conn::new(OptsBuilder::from_opts(opts).ssl_opts(None)).await
                }
                connected => connected,
            }
        };
        let conn = match tokio::time::timeout(within, connected).await {
            Ok(Ok(conn)) => conn,
            Ok(Err(error)) => return Err(StatementError::from(error).classify(&target, "connect")),
            Err(_) => {
                let why = "no response within archive.connect_timeout_ms".to_owned();
                return Err(ArchiveError::Unreachable { target, doing: "connect", why });
            }
        };
        Ok(Archive {
            conn,
            target,
            host: url.host(index).to_string(),
            batch_rows_max: settings.batch_rows_max as usize,
            statement_bytes_max: session::STATEMENT_BYTES_MAX,
            query_timeout: Duration::from_millis(settings.query_timeout_ms.into()),
            is_cluster: false,
            write_method: WriteMethod::Insert,
            is_local_infile_on: false,
            load_data_failed: false,
            writer: WriterEpoch::default(),
            name_check: NameCheck::Refuse,
            computed_totals: ComputedTotals::default(),
            doing: "connect",
            waits: None,
        })
    }

    async fn prepare(
        mut self,
        purpose: Purpose,
        settings: &ArchiveSettings,
        attempt: &Attempt,
        host_count: usize,
        order: &mut HostOrder,
    ) -> Result<Archive, ArchiveError> {
        // This check is first, because a node that is not ready answers most other statements with
        // an error.
        self.check_node(host_count, attempt.accepts_donor).await?;
        self.prepare_session(settings, purpose).await?;
        self.wait_before_reads().await?;
        if purpose == Purpose::Write && !self.is_cluster {
            self.acquire_lock(settings, order.open_connection(attempt.index)).await?;
        }
        Ok(self)
    }

    /// On a cluster, lets a read wait until the node has applied what was committed before: a
    /// node that is used after another one may not have its tables or its last rows yet.
    async fn wait_before_reads(&mut self) -> Result<(), ArchiveError> {
        if self.is_cluster {
            self.run("session", "SET SESSION wsrep_sync_wait = 1").await?;
        }
        Ok(())
    }

    /// Closes the connection, which releases the lock and the epoch immediately.
    pub async fn close(mut self) {
        let within = Duration::from_secs(2).min(self.query_timeout);
        let closed = async {
            self.release_epoch().await;
            self.conn.disconnect().await
        };
        let _ = tokio::time::timeout(within, closed).await;
    }

    /// The cipher of the connection; empty: it is not encrypted.
    pub async fn cipher(&mut self) -> Result<String, ArchiveError> {
        let row: Option<(String, String)> = self.first("session", "SHOW SESSION STATUS LIKE 'Ssl_cipher'").await?;
        Ok(row.map_or_else(String::new, |(_, cipher)| cipher))
    }

    /// Sets the timeout of statements. Returns the one before.
    pub(super) fn set_query_timeout(&mut self, timeout: Duration) -> Duration {
        std::mem::replace(&mut self.query_timeout, timeout)
    }

    /// Sets the callback that receives reports of waits.
    pub(super) fn set_blocked_reporter(&mut self, waits: BlockedReporter) {
        self.waits = Some(waits);
    }

    /// Reports a conflict with another transaction.
    pub(super) fn report_conflict(&self, fault: &StatementError) {
        report_blocked(
            self.waits.as_ref(),
            &self.target,
            self.doing,
            format!("a conflict with another transaction ({fault})"),
        );
    }

    /// Runs a statement.
    pub(super) async fn run(&mut self, doing: &'static str, sql: &str) -> Result<(), ArchiveError> {
        self.doing = doing;
        self.execute(sql).await.map_err(|fault| fault.classify(&self.target, doing))
    }

    /// Returns the first row of a result.
    pub(super) async fn first<T>(&mut self, doing: &'static str, sql: &str) -> Result<Option<T>, ArchiveError>
    where
        T: FromRow + Send + 'static,
    {
        Ok(self.all(doing, sql).await?.into_iter().next())
    }

    /// Returns all rows of a result.
    pub(super) async fn all<T>(&mut self, doing: &'static str, sql: &str) -> Result<Vec<T>, ArchiveError>
    where
        T: FromRow + Send + 'static,
    {
        self.doing = doing;
        self.rows(sql).await.map_err(|fault| fault.classify(&self.target, doing))
    }

    /// Runs a statement; the error is not yet classified.
    pub(super) async fn execute(&mut self, sql: impl AsQuery) -> Result<(), StatementError> {
        let Archive { conn, target, doing, waits, query_timeout, .. } = self;
        let report = |why| report_blocked(waits.as_ref(), target, doing, why);
        with_timeout(conn.query_drop(sql), *query_timeout, report).await
    }

    /// Sets what is sent if the next statement requests a file.
    pub(super) fn set_file_to_send(
        &mut self,
        file: impl Future<Output = Result<InfileData, MysqlError>> + Send + Sync + 'static,
    ) {
        self.conn.set_infile_handler(file);
    }

    /// The number of warnings of the last statement.
    pub(super) fn warnings(&self) -> u16 {
        self.conn.get_warnings()
    }

    /// The number of rows that the last statement changed.
    pub(super) fn affected_rows(&self) -> u64 {
        self.conn.affected_rows()
    }

    /// Returns all rows of a result; the error is not yet classified.
    pub(super) async fn rows<T>(&mut self, sql: &str) -> Result<Vec<T>, StatementError>
    where
        T: FromRow + Send + 'static,
    {
        let Archive { conn, target, doing, waits, query_timeout, .. } = self;
        let report = |why| report_blocked(waits.as_ref(), target, doing, why);
        typed(with_timeout(conn.query(sql), *query_timeout, report).await?)
    }

    /// Sends several statements in one message. Returns the rows of the last one.
    pub(super) async fn rows_of_last<T>(&mut self, sql: impl AsQuery) -> Result<Vec<T>, StatementError>
    where
        T: FromRow + Send + 'static,
    {
        let Archive { conn, target, doing, waits, query_timeout, .. } = self;
        let report = |why| report_blocked(waits.as_ref(), target, doing, why);
        let rows = async {
            let mut result = conn.query_iter(sql).await?;
            let mut rows: Vec<Row> = Vec::new();
            while !result.is_empty() {
                rows = result.collect().await?;
            }
            Ok(rows)
        };
        typed(with_timeout(rows, *query_timeout, report).await?)
    }
}

fn typed<T: FromRow>(rows: Vec<Row>) -> Result<Vec<T>, StatementError> {
    let typed =
        |row| T::from_row_opt(row).map_err(|error| StatementError::Mysql(DriverError::FromRow { row: error.0 }.into()));
    rows.into_iter().map(typed).collect()
}

/// Waits for a response up to a limit, and reports a long wait before that.
async fn with_timeout<T>(
    answer: impl Future<Output = Result<T, MysqlError>>,
    limit: Duration,
    report: impl Fn(String),
) -> Result<T, StatementError> {
    let mut answer = pin!(answer);
    let reported_after = SLOW_STATEMENT_AFTER.min(limit / 4);
    if let Ok(result) = tokio::time::timeout(reported_after, &mut answer).await {
        return result.map_err(StatementError::from);
    }
    report(format!(
        "no response for {} s; the table may be locked by another connection, or the disk of the database is full and it waits for space",
        reported_after.as_secs_f32()
    ));
    match tokio::time::timeout(limit - reported_after, answer).await {
        Ok(result) => result.map_err(StatementError::from),
        Err(_) => Err(StatementError::Timeout),
    }
}

fn report_blocked(waits: Option<&BlockedReporter>, target: &str, doing: &'static str, why: String) {
    if let Some(waits) = waits {
        waits(ArchiveError::Blocked { target: target.to_owned(), doing, why });
    }
}
