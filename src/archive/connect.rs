//! A connection to the archive with clqd's session settings: text as utf8mb4 (which is
//! verified), a timeout on everything, and an exclusive lock.
//!
//! Each connection holds a named lock (`GET_LOCK`) for the database, so only one daemon
//! writes an archive. A connection that the client has abandoned cannot overwrite newer
//! rows, because its successor holds the lock. The lock is local to one database server;
//! a cluster with several writing nodes does not share it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, DriverError, Error as MysqlError, Row};

use super::error::{ArchiveError, StatementError};
use super::settings::ArchiveSettings;

/// Largest statement, bytes. Larger ones are no faster, and every database accepts this
/// size (`max_allowed_packet` is 16 MiB or more by default).
const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// The database closes a connection that has been idle for this long, s. Then the lock of
/// a machine that failed is released.
const IDLE_TIMEOUT_S: u32 = 120;

/// A running statement is reported after this time without a response.
const SLOW_STATEMENT_AFTER: Duration = Duration::from_secs(5);

/// A text with characters of one to four bytes in UTF-8.
const CHARSET_PROBE: &str = "aß名😀";

/// An open archive. After an error other than `Rejected`, `KeyMismatch` or `Blocked` drop
/// it and connect again.
pub struct Archive {
    conn: Conn,
    pub(super) target: String,
    pub(super) batch_rows_max: usize,
    pub(super) statement_bytes_max: usize,
    query_timeout: Duration,
    /// Whether names are compared with the stored ones before they are written. Not
    /// needed while a resync fills an archive that belongs to this state.
    pub(super) checks_names: bool,
    /// Object of the running statement, for messages.
    pub(super) doing: &'static str,
    waits: Option<BlockedReporter>,
}

/// Receives reports of waits that are not errors yet.
pub(super) type BlockedReporter = Arc<dyn Fn(ArchiveError) + Send + Sync>;

impl Archive {
    /// Connects and waits for the archive's lock for a few seconds at most.
    pub async fn connect(settings: &ArchiveSettings) -> Result<Archive, ArchiveError> {
        Archive::reconnect(settings, &mut None).await
    }

    /// As `connect`. `previous` is the database's id of a connection that this process
    /// had and abandoned: if it still holds the lock, it is killed. `previous` is set to
    /// the id of the new connection.
    pub(super) async fn reconnect(
        settings: &ArchiveSettings,
        previous: &mut Option<u32>,
    ) -> Result<Archive, ArchiveError> {
        let opts = settings.opts()?;
        let target = settings.target();
        let query_timeout = Duration::from_millis(settings.query_timeout_ms.into());
        let within = Duration::from_millis(settings.connect_timeout_ms.into());
        let conn = match tokio::time::timeout(within, Conn::new(opts)).await {
            Ok(Ok(conn)) => conn,
            Ok(Err(error)) => return Err(StatementError::from(error).classify(&target, "connect")),
            Err(_) => {
                let why = "no response within archive.connect_timeout_ms".to_owned();
                return Err(ArchiveError::Unreachable { target, doing: "connect", why });
            }
        };
        let mut archive = Archive {
            conn,
            target,
            batch_rows_max: settings.batch_rows_max as usize,
            statement_bytes_max: STATEMENT_BYTES_MAX,
            query_timeout,
            checks_names: true,
            doing: "connect",
            waits: None,
        };
        archive.prepare_session(settings).await?;
        archive.acquire_lock(settings, previous).await?;
        Ok(archive)
    }

    /// Closes the connection, which releases the lock immediately.
    pub async fn close(self) {
        let within = Duration::from_secs(2).min(self.query_timeout);
        let _ = tokio::time::timeout(within, self.conn.disconnect()).await;
    }

    async fn prepare_session(&mut self, settings: &ArchiveSettings) -> Result<(), ArchiveError> {
        // Waiting for a row lock must time out before the statement does.
        let lock_s = (settings.query_timeout_ms / 3_000).max(1);
        // The server may ignore the character set of the handshake
        // (skip-character-set-client-handshake), and init_connect may change it.
        self.run("session", "SET NAMES utf8mb4").await?;
        let session = format!(
            "SET SESSION sql_mode='STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit=1, \
             wait_timeout={IDLE_TIMEOUT_S}, innodb_lock_wait_timeout={lock_s}"
        );
        self.run("session", &session).await?;
        self.check_charset().await?;
        let packet: Option<u64> = self.first("session", "SELECT @@max_allowed_packet").await?;
        // Half, because a statement ends with the row that exceeds the limit.
        self.statement_bytes_max = STATEMENT_BYTES_MAX.min(packet.unwrap_or(1 << 20) as usize / 2);
        Ok(())
    }

    /// Refuses a session in which text would be stored otherwise than it is sent.
    async fn check_charset(&mut self) -> Result<(), ArchiveError> {
        const VARIABLES: [&str; 3] = ["character_set_client", "character_set_connection", "character_set_results"];
        let select = format!("SELECT {}", VARIABLES.map(|name| format!("COALESCE(@@{name}, 'NULL')")).join(", "));
        let found: Option<(String, String, String)> = self.first("session", &select).await?;
        let refuse = |target: &str, why: String| Err(ArchiveError::Charset { target: target.to_owned(), why });
        let Some((client, connection, results)) = found else {
            return refuse(&self.target, "the session's character set cannot be read".to_owned());
        };
        for (name, value) in VARIABLES.iter().zip([client, connection, results]) {
            if value != "utf8mb4" {
                let why = format!(
                    "{name} of the session is {value} after SET NAMES utf8mb4; check for a proxy or server that changes it"
                );
                return refuse(&self.target, why);
            }
        }
        let select = format!("SELECT HEX('{CHARSET_PROBE}'), '{CHARSET_PROBE}'");
        // The returned bytes may be invalid UTF-8.
        let found: Option<(Vec<u8>, Vec<u8>)> = self.first("session", &select).await?;
        let (stored, back) = found.unwrap_or_default();
        let sent: String = CHARSET_PROBE.bytes().map(|byte| format!("{byte:02X}")).collect();
        if stored != sent.as_bytes() || back != CHARSET_PROBE.as_bytes() {
            let why = format!(
                "of {CHARSET_PROBE:?} ({sent}) the server receives {} and returns {:?}; configure it to accept utf8mb4 from clients",
                String::from_utf8_lossy(&stored),
                String::from_utf8_lossy(&back)
            );
            return refuse(&self.target, why);
        }
        Ok(())
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

    async fn acquire_lock(
        &mut self,
        settings: &ArchiveSettings,
        previous: &mut Option<u32>,
    ) -> Result<(), ArchiveError> {
        const NAME: &str = "CONCAT('clqd.', LEFT(SHA1(DATABASE()), 32))";
        let holder = format!("SELECT IS_USED_LOCK({NAME})");
        let held_by = self.first::<Option<u64>>("lock", &holder).await?.flatten();
        if held_by.is_some() && held_by == previous.map(u64::from) {
            // It may have ended in the meantime, which is an error here.
            let _ = self.execute(&format!("KILL {}", held_by.unwrap_or_default())).await;
        }
        // Set before the request: the lock may be acquired although the response is lost.
        *previous = Some(self.conn.id());
        let wait_s = (settings.query_timeout_ms / 2_000).min(5);
        loop {
            let got = self.first::<Option<u8>>("lock", &format!("SELECT GET_LOCK({NAME}, {wait_s})")).await?;
            if got.flatten() == Some(1) {
                return Ok(());
            }
            // Otherwise no connection holds it: it was just released.
            if let Some(connection) = self.first::<Option<u64>>("lock", &holder).await?.flatten() {
                return Err(ArchiveError::InUse { target: self.target.clone(), connection });
            }
        }
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
        self.doing = doing;
        let rows: Result<Vec<T>, StatementError> = self.rows(sql).await;
        rows.map(|rows| rows.into_iter().next()).map_err(|fault| fault.classify(&self.target, doing))
    }

    /// Runs a statement; the error is not yet classified.
    pub(super) async fn execute(&mut self, sql: &str) -> Result<(), StatementError> {
        let Archive { conn, target, doing, waits, query_timeout, .. } = self;
        let report = |why| report_blocked(waits.as_ref(), target, doing, why);
        with_timeout(conn.query_drop(sql), *query_timeout, report).await
    }

    /// Returns all rows of a result.
    pub(super) async fn rows<T>(&mut self, sql: &str) -> Result<Vec<T>, StatementError>
    where
        T: FromRow + Send + 'static,
    {
        let Archive { conn, target, doing, waits, query_timeout, .. } = self;
        let report = |why| report_blocked(waits.as_ref(), target, doing, why);
        let rows: Vec<Row> = with_timeout(conn.query(sql), *query_timeout, report).await?;
        rows.into_iter()
            .map(|row| {
                T::from_row_opt(row)
                    .map_err(|error| StatementError::Mysql(DriverError::FromRow { row: error.0 }.into()))
            })
            .collect()
    }
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
        "no response for {} s; the table may be locked by another connection",
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
