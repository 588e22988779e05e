//! The status of the daemon, its archive and its store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::view::{ClockStatus, EngineStatus, ResyncProgress};

/// `clqd status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Absent if the state directory was read without a daemon.
    pub daemon: Option<DaemonStatus>,
    pub engine: EngineStatus,
    /// Absent if the state directory was read without a daemon.
    #[serde(default)]
    pub clock: Option<ClockStatus>,
    /// Pending outbox entries.
    pub outbox_entries: u64,
    /// Absent if no archive is configured.
    pub archive: Option<ArchiveStatus>,
    /// Absent if the state directory was read without a daemon.
    #[serde(default)]
    pub store: Option<StoreStatus>,
    /// Absent if the state directory was read without a daemon.
    #[serde(default)]
    pub log: Option<LogStatus>,
    /// Counters since the daemon started, by module and name: `scan.packets_sent`.
    pub counters: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatus {
    pub version: String,
    pub pid: u32,
    pub started_ms: i64,
    pub state_dir: String,
    /// Absent if the built-in defaults are used.
    pub config_file: Option<String>,
    /// `scan.contact`; absent if it is empty.
    #[serde(default)]
    pub contact: Option<String>,
    /// Address and port of the web interface; absent if it is off.
    #[serde(default)]
    pub web: Option<String>,
    /// Commands that wait for the engine thread.
    #[serde(default)]
    pub commands_queued: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveStatus {
    /// `user@host:port/database`, with every host.
    pub target: String,
    pub connected: bool,
    /// The host of the last connection, if the archive has several: `host:port`.
    #[serde(default)]
    pub host: Option<String>,
    /// How rows are written: `load_data` or `insert`; absent before the first connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_method: Option<String>,
    /// Time of the last pass that wrote everything pending, Unix ms; a restart keeps it.
    pub last_complete_ms: Option<i64>,
    pub last_error: Option<String>,
    pub last_error_ms: Option<i64>,
    /// The current fault, until a complete pass has succeeded.
    #[serde(default)]
    pub fault: Option<ArchiveFault>,
    /// Progress of the resync of an archive that is new or incomplete; absent if none is
    /// in progress.
    #[serde(default)]
    pub resync: Option<ResyncProgress>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveFault {
    /// `settings`, `unreachable`, `blocked`, `unavailable`, `access_denied`, `tls`, `schema`,
    /// `charset`, `in_use`, `key_mismatch`, `older_database`, `later_week`, `rejected` or `panic`.
    pub kind: String,
    pub since_ms: i64,
    pub message: String,
}

/// Whether the daemon can write to disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// Free space of the state directory's file system.
    pub disk_free_bytes: u64,
    /// The setting; 0: no limit.
    pub disk_free_bytes_min: u64,
    /// Since when commits are paused for lack of space; absent if they are not.
    pub paused_since_ms: Option<i64>,
    /// Changed rows and players that are not committed yet.
    pub pending_records: u64,
    /// Scans whose results were discarded since the daemon started, because too much was
    /// pending.
    pub scans_discarded: u64,
    /// Commits since the daemon started.
    #[serde(default)]
    pub commits: u64,
    /// When the last change was on disk; absent: there was none since the start of the daemon.
    #[serde(default)]
    pub last_commit_ms: Option<i64>,
    /// Size of the database file.
    #[serde(default)]
    pub database_bytes: u64,
}

/// Whether the log contains names of forgotten players.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogStatus {
    /// Forgotten names that segments of the log may still contain. They are being removed.
    pub names_pending: u64,
    /// Segments that are not checked yet; 0 until the number is known.
    pub files_pending: u64,
    /// Why names cannot be removed, until all are.
    pub fault: Option<LogFault>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFault {
    /// `disk_full` or `unreadable`.
    pub kind: String,
    pub since_ms: i64,
    pub message: String,
}
