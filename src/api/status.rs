//! The status of the daemon, its archive and its store. What everybody may see is a part of its own: it has no process,
//! directories, files, hosts, or messages that name any.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::machines::{EngineRow, ScannerRow};
use crate::view::{ClockStatus, EngineStatus, ResyncProgress};

/// The state of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = StatusFields)]
pub struct Status {
    /// The process; `null` if the state directory was read without a daemon.
    pub daemon: Option<DaemonStatus>,
    /// Servers, players and scans.
    pub engine: EngineStatus,
    /// The system clock; `null` if the state directory was read without a daemon.
    pub clock: Option<ClockStatus>,
    /// Changes that are not written to the archive yet.
    pub outbox_entries: u64,
    /// The archive in MySQL; `null` if none is configured, or another engine of the cluster writes it.
    pub archive: Option<ArchiveStatus>,
    /// The state directory; `null` if it was read without a daemon.
    pub store: Option<StoreStatus>,
    /// The log; `null` if the state directory was read without a daemon.
    pub log: Option<LogStatus>,
    /// The engines that keep one state; `null` if this is the only one.
    pub cluster: Option<ClusterStatus>,
    /// Scanners on other machines, by name.
    #[serde(default)]
    pub scanners: Vec<ScannerRow>,
    /// Counters since the daemon started, by module and name: `scan.packets_sent`.
    pub counters: BTreeMap<String, u64>,
}

/// The state of the daemon.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PublicStatusFields)]
pub struct PublicStatus<'a> {
    /// The process.
    daemon: Option<&'a PublicDaemonStatus>,
    /// Servers, players and scans.
    engine: &'a EngineStatus,
    /// The system clock.
    clock: Option<&'a ClockStatus>,
    /// Changes that are not written to the archive yet.
    outbox_entries: u64,
    /// The archive in MySQL; `null` if none is configured, or another engine of the cluster writes it.
    archive: Option<&'a PublicArchiveStatus>,
    /// The state directory.
    store: Option<&'a PublicStoreStatus>,
    /// The log; `null` in a status without a daemon.
    log: Option<&'a PublicLogStatus>,
    /// Counters since the daemon started, by module and name: `scan.packets_sent`.
    counters: &'a BTreeMap<String, u64>,
}

impl Status {
    /// What everybody may see.
    pub fn public(&self) -> PublicStatus<'_> {
        let Status { daemon, engine, clock, outbox_entries, archive, store, log, cluster: _, scanners: _, counters } =
            self;
        PublicStatus {
            daemon: daemon.as_ref().map(|daemon| &daemon.public),
            engine,
            clock: clock.as_ref(),
            outbox_entries: *outbox_entries,
            archive: archive.as_ref().map(|archive| &archive.public),
            store: store.as_ref().map(|store| &store.public),
            log: log.as_ref().map(|log| &log.public),
            counters,
        }
    }
}

/// The process of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = DaemonStatus)]
pub struct PublicDaemonStatus {
    /// Its version.
    pub version: String,
    /// When it started, Unix ms.
    pub started_ms: i64,
    /// The contact of the operator (`scan.contact`); `null` if none is set.
    pub contact: Option<String>,
    /// Since when no server answers, though several did, Unix ms: the network seems to be down, and misses do not count;
    /// `null`: servers answer.
    pub silent_since_ms: Option<i64>,
}

/// The process of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = AdminDaemonStatus)]
pub struct DaemonStatus {
    #[serde(flatten)]
    pub public: PublicDaemonStatus,
    /// Its number.
    pub pid: u32,
    /// The state directory.
    pub state_dir: String,
    /// The configuration file; `null` if the built-in defaults are used.
    pub config_file: Option<String>,
    /// Address and port of the web interface; `null` if it is off.
    pub web: Option<String>,
    /// Commands that wait for the engine thread.
    #[serde(default)]
    pub commands_queued: u64,
}

/// The archive in MySQL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ArchiveStatus)]
pub struct PublicArchiveStatus {
    /// There is a connection.
    pub connected: bool,
    /// Time of the last pass that wrote everything pending, Unix ms; a restart keeps it.
    pub last_complete_ms: Option<i64>,
    /// The current fault, until a complete pass has succeeded.
    pub fault: Option<Fault>,
    /// Progress of the resync of an archive that is new or incomplete; `null` if none is in progress.
    pub resync: Option<ResyncProgress>,
}

/// The archive in MySQL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = AdminArchiveStatus)]
pub struct ArchiveStatus {
    #[serde(flatten)]
    pub public: PublicArchiveStatus,
    /// What the fault is, in words.
    pub fault_message: Option<String>,
    /// `user@host:port/database`, with every host.
    pub target: String,
    /// The host of the last connection, if the archive has several: `host:port`.
    pub host: Option<String>,
    /// How rows are written: `load_data` or `insert`; `null` before the first connection.
    pub write_method: Option<String>,
    /// The last error since the start, in words.
    pub last_error: Option<String>,
    /// When it occurred, Unix ms.
    pub last_error_ms: Option<i64>,
}

/// A fault of the archive or of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// A fault of the archive is `settings`, `unreachable`, `blocked`, `unavailable`, `access_denied`, `tls`, `schema`,
    /// `charset`, `in_use`, `key_mismatch`, `older_database`, `later_week`, `rejected` or `panic`. A fault of the log is
    /// `disk_full` or `unreadable`.
    pub kind: String,
    /// Since when, Unix ms.
    pub since_ms: i64,
}

/// The state directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = StoreStatus)]
pub struct PublicStoreStatus {
    /// Since when commits are paused for lack of space, Unix ms; `null` if they are not.
    pub paused_since_ms: Option<i64>,
    /// Changed rows and players that are not committed yet.
    pub pending_records: u64,
    /// Scans whose results were discarded since the daemon started, because too much was pending.
    pub scans_discarded: u64,
    /// Commits since the daemon started.
    #[serde(default)]
    pub commits: u64,
    /// Since when the newest part of the log is being written, Unix ms; `null`: all is on disk.
    #[serde(default)]
    pub log_writing_since_ms: Option<i64>,
    /// When the last change was on disk, Unix ms; `null`: there was none since the start of the daemon.
    pub last_commit_ms: Option<i64>,
    /// Size of the database file.
    #[serde(default)]
    pub database_bytes: u64,
}

/// The state directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = AdminStoreStatus)]
pub struct StoreStatus {
    #[serde(flatten)]
    pub public: PublicStoreStatus,
    /// Free space of the state directory's file system.
    pub disk_free_bytes: u64,
    /// The setting `store.disk_free_bytes_min`; 0: no limit.
    pub disk_free_bytes_min: u64,
}

/// The engines that keep one state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClusterStatus {
    /// The name of this engine.
    pub engine: String,
    /// Whether it scans, takes changes, and writes the log and the archive.
    pub leads: bool,
    /// It shows everything until so long ago, ms, and of what came later perhaps a part; `null`: it leads, or has just
    /// started.
    pub behind_ms: Option<u64>,
    /// The name of the leader; `null`: nobody leads, or it is unknown.
    pub leader: Option<String>,
    /// How often an engine has begun to lead; 0: unknown.
    pub epoch: u64,
    /// All engines, by name.
    pub engines: Vec<EngineRow>,
    /// Why the database of the log does not answer; `null`: it does.
    pub fault_message: Option<String>,
    /// Which settings of the configuration file the log does not have; `null`: none.
    pub other_settings: Option<String>,
}

/// The log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LogStatus)]
pub struct PublicLogStatus {
    /// Why forgotten names cannot be removed from it, until all are.
    pub fault: Option<Fault>,
}

/// The log, and the names of forgotten players in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = AdminLogStatus)]
pub struct LogStatus {
    #[serde(flatten)]
    pub public: PublicLogStatus,
    /// What the fault is, in words.
    pub fault_message: Option<String>,
    /// Forgotten names that segments of the log may still contain. They are being removed.
    pub names_pending: u64,
    /// Segments that are not checked yet; 0 until the number is known.
    pub files_pending: u64,
}
