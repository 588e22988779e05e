//! Errors of the archive, grouped by who can fix them.

use mysql_async::{DriverError, Error as MysqlError, IoError, ServerError};

use serde::Serialize;

/// An invalid setting. Each message names the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("archive.url is empty: no archive is configured")]
    NoUrl,
    #[error("archive.url is not of the form mysql://user@host:3306/database: {0}")]
    Url(String),
    #[error("archive.url names no database: mysql://user@host:3306/database")]
    NoDatabase,
    #[error("archive.{name} = {value} is not in {min} to {max}")]
    Range { name: &'static str, value: u32, min: u32, max: u32 },
    #[error("archive.password_file and archive.credential are both set; use one")]
    ConflictingPasswordSources,
    #[error("archive.password_file {path}: {error}")]
    PasswordFile { path: String, error: String },
    #[error("archive.{name} {path}: {error}")]
    TlsFile { name: &'static str, path: String, error: String },
    #[error("archive.tls_cert and archive.tls_key belong together; set both or none")]
    TlsIdentity,
    #[error("archive.{name} is set, but archive.tls is \"off\"")]
    TlsIsOff { name: &'static str },
    #[error("archive.credential {name:?}: {error}")]
    Credential { name: String, error: String },
}

/// Why the archive could not be written. No data is lost: unwritten entries remain
/// pending.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The configuration is invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The database is down or unreachable, or the connection was lost.
    #[error("archive {target} cannot be reached ({doing}): {why}")]
    Unreachable { target: String, doing: &'static str, why: String },
    /// A statement gets no response, or conflicts with another transaction.
    #[error("archive {target} does not respond to a statement on {doing}: {why}")]
    Blocked { target: String, doing: &'static str, why: String },
    /// Text would be corrupted in transfer.
    #[error("archive {target} would corrupt text, so nothing is written: {why}")]
    Charset { target: String, why: String },
    /// The server responds but is unavailable: full, read-only, shutting down.
    #[error("archive {target} is unavailable ({doing}): {why}")]
    Unavailable { target: String, doing: &'static str, why: String },
    /// A node of a cluster sends its data to a new node. It is used if no other node is ready.
    #[error("archive {target} is unavailable (connect): the node sends its data to a new node of the cluster")]
    Donor { target: String },
    /// No host of several can be used. `kind` is the kind of their faults, or `Unreachable`
    /// if they differ.
    #[error("no host of archive {target} can be used: {reasons}")]
    AllHosts { target: String, kind: FaultKind, reasons: String },
    /// Authentication failed or a privilege is missing.
    #[error("archive {target} denies access ({doing}): {why}")]
    AccessDenied { target: String, doing: &'static str, why: String },
    /// There is no TLS connection as the settings demand it.
    #[error("archive {target} cannot be reached by TLS (archive.tls): {why}")]
    Tls { target: String, why: String },
    /// The tables do not match this version's schema.
    #[error("archive {target}: {why}")]
    Schema { target: String, why: String },
    /// Another writer holds the lock.
    #[error(
        "archive {target} is being written by another clqd (connection {connection} of the database); stop that one, \
         or if it no longer runs: KILL {connection}"
    )]
    InUse { target: String, connection: u64 },
    /// Another writer has the epoch, on any host.
    #[error("archive {target} is being written by another clqd: {why}")]
    OtherWriter { target: String, why: String },
    /// The archive lacks what it had acknowledged.
    #[error(
        "archive {target} is older than the state: it lacks what it had acknowledged, as after a failover to a replica that \
         lags, or a restored copy. {what}"
    )]
    Older { target: String, what: &'static str },
    /// The archive has weeks that are later than those of the state.
    #[error(
        "archive {target} has rows of {week}, which is later than the newest week of the state, {newest}. Everything is \
         written, but no old rows are deleted. If a wrong clock wrote them: clqd archive resend, which deletes them"
    )]
    LaterWeek { target: String, week: String, newest: String },
    /// The archive was written from another state: a name has another key there, or a key
    /// another name.
    #[error(
        "archive {target} does not belong to this state: {difference}. Nothing more is written to it, so it keeps all that \
         it has. If the state is older than the archive, for example a restored backup: stop clqd and run `clqd restore \
         --from-mysql`, which builds the state from the archive. To keep this state instead, set archive.url to an \
         empty database. If somebody has changed names in this archive: clqd archive resend"
    )]
    KeyMismatch { target: String, difference: String },
    /// The database rejects this value: a bug in clqd.
    #[error("archive {target} rejects a row of {what}: {why}")]
    Rejected { target: String, what: &'static str, why: String },
}

impl ArchiveError {
    /// Whether only the written row is at fault, and not the archive.
    pub fn is_rejected(&self) -> bool {
        matches!(self, ArchiveError::Rejected { .. })
    }

    /// Whether only the connected host is at fault: another host may be able to write.
    pub(super) fn is_of_host(&self) -> bool {
        matches!(
            self,
            ArchiveError::Unreachable { .. } | ArchiveError::Unavailable { .. } | ArchiveError::Blocked { .. }
        )
    }
}

/// The driver's error, before classification, for code that checks its number.
#[derive(Debug)]
pub(super) enum StatementError {
    Mysql(MysqlError),
    Timeout,
    /// LOAD DATA was refused, or changed a value. An INSERT of the same rows stores them or says
    /// what is wrong.
    LoadData(String),
}

impl From<MysqlError> for StatementError {
    fn from(error: MysqlError) -> StatementError {
        StatementError::Mysql(error)
    }
}

impl std::fmt::Display for StatementError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StatementError::Mysql(MysqlError::Server(error)) => write!(f, "{}, error {}", error.message, error.code),
            StatementError::Mysql(error) => error.fmt(f),
            StatementError::Timeout => f.write_str("no response"),
            StatementError::LoadData(why) => write!(f, "LOAD DATA LOCAL INFILE: {why}"),
        }
    }
}

impl StatementError {
    /// The server's error number; 0 if the error is not from the server.
    pub fn code(&self) -> u16 {
        match self {
            StatementError::Mysql(MysqlError::Server(error)) => error.code,
            _ => 0,
        }
    }

    /// Whether the error is a conflict between two transactions, after which the loser
    /// may retry. 1205 lock wait timeout, 1213 deadlock, 1020 a row changed since it was
    /// read (MariaDB 11.6 and later).
    pub fn is_conflict(&self) -> bool {
        matches!(self.code(), 1020 | 1205 | 1213)
    }

    /// Whether the connection is unusable.
    pub fn is_fatal(&self) -> bool {
        match self {
            StatementError::Timeout => true,
            StatementError::Mysql(error) => error.is_fatal(),
            StatementError::LoadData(_) => false,
        }
    }

    /// `doing` is the attempted operation, such as a table's name.
    pub fn classify(self, target: &str, doing: &'static str) -> ArchiveError {
        let target = target.to_owned();
        match self {
            StatementError::Timeout => {
                let why = "no response within archive.query_timeout_ms; the table may be locked by another connection, \
                           the disk of the database may be full, or this connection is dead";
                ArchiveError::Blocked { target, doing, why: why.into() }
            }
            StatementError::Mysql(MysqlError::Server(error)) => classify_server(target, doing, &error),
            StatementError::Mysql(MysqlError::Driver(DriverError::UnknownAuthPlugin { name })) => {
                let why = format!(
                    "the account logs in by plugin {name}, which clqd does not know; \
                     give it a password (IDENTIFIED BY '...')"
                );
                ArchiveError::AccessDenied { target, doing, why }
            }
            StatementError::Mysql(MysqlError::Driver(
                DriverError::CleartextPluginDisabled | DriverError::MysqlOldPasswordDisabled,
            )) => {
                ArchiveError::AccessDenied { target, doing, why: "its authentication method is not supported".into() }
            }
            StatementError::Mysql(MysqlError::Driver(DriverError::NoClientSslFlagFromServer)) => {
                ArchiveError::Tls { target, why: "the server does not offer it".into() }
            }
            StatementError::Mysql(MysqlError::Driver(error @ DriverError::NoKeyFound)) => {
                ArchiveError::Tls { target, why: format!("archive.tls_key: {error}") }
            }
            StatementError::Mysql(MysqlError::Io(IoError::Tls(error))) => {
                ArchiveError::Tls { target, why: error.to_string() }
            }
            // A handshake that fails is reported as invalid data.
            StatementError::Mysql(MysqlError::Io(IoError::Io(error)))
                if error.kind() == std::io::ErrorKind::InvalidData =>
            {
                ArchiveError::Tls { target, why: error.to_string() }
            }
            // The driver's text begins with "Input/output error: Input/output error: ".
            StatementError::Mysql(MysqlError::Io(IoError::Io(error))) => {
                ArchiveError::Unreachable { target, doing, why: error.to_string() }
            }
            StatementError::LoadData(why) => ArchiveError::Rejected { target, what: doing, why },
            StatementError::Mysql(error) => ArchiveError::Unreachable { target, doing, why: error.to_string() },
        }
    }
}

fn classify_server(target: String, doing: &'static str, error: &ServerError) -> ArchiveError {
    let why = format!("{} (error {})", error.message, error.code);
    match error.code {
        // Access denied (1044, 1045, 1698), host not allowed or blocked, a missing
        // privilege, password expired, TLS required, account locked.
        1044 | 1045 | 1129 | 1130 | 1141 | 1142 | 1143 | 1227 | 1251 | 1370 | 1419 | 1524 | 1698 | 1820 | 1862
        | 3118 | 3159 | 3879 | 4151 => ArchiveError::AccessDenied { target, doing, why },
        1049 => ArchiveError::Schema {
            target,
            why: format!("{why}; create it with CREATE DATABASE ... CHARACTER SET utf8mb4, then run `clqd migrate`"),
        },
        // No such table, column or routine.
        1054 | 1146 | 1305 => ArchiveError::Schema { target, why: format!("{why}; run `clqd migrate`") },
        // Shutdown, kill, too many connections, statement stopped, idle too long.
        1040 | 1053 | 1077..=1079 | 1152 | 1159 | 1161 | 1203 | 1226 | 1317 | 1927 | 3024 | 4031 => {
            ArchiveError::Unreachable { target, doing, why }
        }
        // A row changed, lock wait timeout, deadlock.
        1020 | 1205 | 1213 => ArchiveError::Blocked { target, doing, why },
        // Full disk or table, out of memory, read-only, storage engine in trouble, a cluster's node not ready.
        1021 | 1026 | 1030 | 1037 | 1038 | 1041 | 1047 | 1114 | 1135 | 1180 | 1206 | 1290 | 1792 | 1836 | 1969
        | 3100 | 3101 | 3168 => ArchiveError::Unavailable { target, doing, why },
        _ => ArchiveError::Rejected { target, what: doing, why },
    }
}

/// Why a transaction failed.
pub(super) enum TransactionError {
    Fault { fault: StatementError, doing: &'static str },
    Error(ArchiveError),
}

/// The kind of a fault. Faults of one kind are logged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FaultKind {
    Settings,
    Unreachable,
    Blocked,
    Unavailable,
    AccessDenied,
    Tls,
    Schema,
    Charset,
    InUse,
    KeyMismatch,
    OlderDatabase,
    LaterWeek,
    Rejected,
    /// A bug in clqd: the worker panicked.
    Panic,
}

impl FaultKind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it lasts until an admin ends it, so that a retry some seconds later is useless.
    pub(super) fn is_permanent(self) -> bool {
        match self {
            FaultKind::Settings
            | FaultKind::AccessDenied
            | FaultKind::Tls
            | FaultKind::Schema
            | FaultKind::Charset
            | FaultKind::KeyMismatch
            | FaultKind::OlderDatabase => true,
            FaultKind::Unreachable
            | FaultKind::Blocked
            | FaultKind::Unavailable
            | FaultKind::InUse
            | FaultKind::LaterWeek
            | FaultKind::Rejected
            | FaultKind::Panic => false,
        }
    }
}

impl ArchiveError {
    pub fn kind(&self) -> FaultKind {
        match self {
            ArchiveError::Settings(_) => FaultKind::Settings,
            ArchiveError::Unreachable { .. } => FaultKind::Unreachable,
            ArchiveError::Blocked { .. } => FaultKind::Blocked,
            ArchiveError::Unavailable { .. } | ArchiveError::Donor { .. } => FaultKind::Unavailable,
            ArchiveError::AllHosts { kind, .. } => *kind,
            ArchiveError::AccessDenied { .. } => FaultKind::AccessDenied,
            ArchiveError::Tls { .. } => FaultKind::Tls,
            ArchiveError::Schema { .. } => FaultKind::Schema,
            ArchiveError::Charset { .. } => FaultKind::Charset,
            ArchiveError::InUse { .. } | ArchiveError::OtherWriter { .. } => FaultKind::InUse,
            ArchiveError::KeyMismatch { .. } => FaultKind::KeyMismatch,
            ArchiveError::Older { .. } => FaultKind::OlderDatabase,
            ArchiveError::LaterWeek { .. } => FaultKind::LaterWeek,
            ArchiveError::Rejected { .. } => FaultKind::Rejected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_an_io_error_is_that_of_its_cause() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = StatementError::from(MysqlError::from(refused)).classify("c@h:1/d", "connect");
        assert_eq!(error.to_string(), "archive c@h:1/d cannot be reached (connect): connection refused");
    }

    #[test]
    fn error_code_determines_kind() {
        let kind = |code: u16| {
            let error = ServerError { code, message: "m".into(), state: "HY000".into() };
            match StatementError::from(MysqlError::Server(error)).classify("t", "player") {
                ArchiveError::AccessDenied { .. } => "access_denied",
                ArchiveError::Schema { .. } => "schema",
                ArchiveError::Unreachable { .. } => "unreachable",
                ArchiveError::Blocked { .. } => "blocked",
                ArchiveError::Unavailable { .. } => "unavailable",
                ArchiveError::Rejected { .. } => "rejected",
                other => panic!("{other}"),
            }
        };
        for (code, want) in [
            (1045, "access_denied"),
            (1049, "schema"),
            (1146, "schema"),
            (1053, "unreachable"),
            (1114, "unavailable"),
            (1213, "blocked"),
            (1205, "blocked"),
            (1264, "rejected"),
            (1406, "rejected"),
        ] {
            assert_eq!(kind(code), want, "{code}");
        }
    }

    #[test]
    fn another_host_is_tried_unless_the_data_or_account_is_at_fault() {
        let of_host = |error: StatementError| error.classify("t", "player").is_of_host();
        let server =
            |code: u16| MysqlError::Server(ServerError { code, message: "m".into(), state: "HY000".into() }).into();
        // Not ready, shutting down, killed, read-only, conflicts that did not end.
        for code in [1047, 1053, 1927, 1290, 1205, 1213] {
            assert!(of_host(server(code)), "{code}");
        }
        // Where other clients report 2002, 2003 and 2013, the driver has no number.
        let lost = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(of_host(MysqlError::from(lost).into()));
        assert!(of_host(MysqlError::from(DriverError::ConnectionClosed).into()));
        assert!(of_host(StatementError::Timeout));
        for code in [1045, 1146, 1264] {
            assert!(!of_host(server(code)), "{code}");
        }
    }
}
