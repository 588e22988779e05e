//! The parts of rows that visitors see; some fields are for admins only. Each row is destructured
//! field by field, so a new field does not compile until it is decided who sees it.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::api::{ArchiveFault, ArchiveStatus, DaemonStatus, LogFault, LogStatus, Status, StoreStatus};
use crate::model::view::{
    ClockStatus, EngineStatus, ListedPlayer, MapShare, RecentSeriesView, ResyncProgress, RoundEndView, ScreenedView,
    SeriesView, ServerDetail, ServerSummary,
};

/// A status without process, directories, files, hosts, and messages that name any.
#[derive(Debug, Serialize, ToSchema)]
#[schema(description = "The state of the daemon.")]
pub(super) struct VisitorStatus<'a> {
    /// The process.
    daemon: Option<VisitorDaemon<'a>>,
    /// Servers, players and scans.
    engine: &'a EngineStatus,
    /// The system clock.
    clock: &'a Option<ClockStatus>,
    /// Changes that are not written to the archive yet.
    outbox_entries: u64,
    /// The archive in MySQL; `null` if none is configured.
    archive: Option<VisitorArchive<'a>>,
    /// The state directory.
    store: Option<VisitorStore>,
    /// The log; `null` in a status without a daemon.
    log: Option<VisitorLog<'a>>,
    /// Counters since the daemon started, by module and name: `scan.packets_sent`.
    counters: &'a BTreeMap<String, u64>,
}

/// The process of the daemon.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DaemonStatus)]
struct VisitorDaemon<'a> {
    /// Its version.
    version: &'a str,
    /// When it started, Unix ms.
    started_ms: i64,
    /// The contact of the operator; `null` if none is set.
    contact: &'a Option<String>,
}

/// The archive in MySQL.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ArchiveStatus)]
struct VisitorArchive<'a> {
    /// There is a connection.
    connected: bool,
    /// Time of the last pass that wrote everything pending, Unix ms.
    last_complete_ms: Option<i64>,
    /// The current fault, until a complete pass has succeeded.
    fault: Option<VisitorFault<'a>>,
    /// Progress of the resync of an archive that is new or incomplete; `null` if none is in progress.
    resync: &'a Option<ResyncProgress>,
}

/// Whether the daemon can write to disk.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoreStatus)]
struct VisitorStore {
    /// Since when commits are paused for lack of space, Unix ms; `null` if they are not.
    paused_since_ms: Option<i64>,
    /// Changed rows and players that are not committed yet.
    pending_records: u64,
    /// Scans whose results were discarded since the daemon started, because too much was pending.
    scans_discarded: u64,
    /// Commits since the daemon started.
    commits: u64,
    /// When the last change was on disk, Unix ms; `null`: there was none since the start of the daemon.
    last_commit_ms: Option<i64>,
    /// Size of the database file.
    database_bytes: u64,
}

/// The log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogStatus)]
struct VisitorLog<'a> {
    /// Why forgotten names cannot be removed from it, until all are.
    fault: Option<VisitorFault<'a>>,
}

/// A fault of the archive or of the log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Fault)]
struct VisitorFault<'a> {
    /// A fault of the archive is `settings`, `unreachable`, `blocked`, `unavailable`, `access_denied`, `tls`, `schema`,
    /// `charset`, `in_use`, `key_mismatch`, `older_database`, `later_week`, `rejected` or `panic`. A fault of the log is `disk_full` or
    /// `unreadable`.
    kind: &'a str,
    /// Since when, Unix ms.
    since_ms: i64,
}

impl<'a> From<&'a Status> for VisitorStatus<'a> {
    fn from(status: &'a Status) -> VisitorStatus<'a> {
        let Status { daemon, engine, clock, outbox_entries, archive, store, log, counters } = status;
        VisitorStatus {
            daemon: daemon.as_ref().map(VisitorDaemon::from),
            engine,
            clock,
            outbox_entries: *outbox_entries,
            archive: archive.as_ref().map(VisitorArchive::from),
            store: store.as_ref().map(VisitorStore::from),
            log: log.as_ref().map(VisitorLog::from),
            counters,
        }
    }
}

impl<'a> From<&'a DaemonStatus> for VisitorDaemon<'a> {
    fn from(daemon: &'a DaemonStatus) -> VisitorDaemon<'a> {
        let DaemonStatus {
            version,
            pid: _,
            started_ms,
            state_dir: _,
            config_file: _,
            contact,
            web: _,
            commands_queued: _,
        } = daemon;
        VisitorDaemon { version, started_ms: *started_ms, contact }
    }
}

impl<'a> From<&'a ArchiveStatus> for VisitorArchive<'a> {
    fn from(archive: &'a ArchiveStatus) -> VisitorArchive<'a> {
        let ArchiveStatus {
            target: _,
            connected,
            host: _,
            write_method: _,
            last_complete_ms,
            last_error: _,
            last_error_ms: _,
            fault,
            resync,
        } = archive;
        let visible =
            |ArchiveFault { kind, since_ms, message: _ }: &'a ArchiveFault| VisitorFault { kind, since_ms: *since_ms };
        let (connected, last_complete_ms) = (*connected, *last_complete_ms);
        VisitorArchive { connected, last_complete_ms, fault: fault.as_ref().map(visible), resync }
    }
}

impl From<&StoreStatus> for VisitorStore {
    fn from(store: &StoreStatus) -> VisitorStore {
        let StoreStatus {
            disk_free_bytes: _,
            disk_free_bytes_min: _,
            paused_since_ms,
            pending_records,
            scans_discarded,
            commits,
            last_commit_ms,
            database_bytes,
        } = *store;
        VisitorStore { paused_since_ms, pending_records, scans_discarded, commits, last_commit_ms, database_bytes }
    }
}

impl<'a> From<&'a LogStatus> for VisitorLog<'a> {
    fn from(log: &'a LogStatus) -> VisitorLog<'a> {
        let LogStatus { names_pending: _, files_pending: _, fault } = log;
        let visible =
            |LogFault { kind, since_ms, message: _ }: &'a LogFault| VisitorFault { kind, since_ms: *since_ms };
        VisitorLog { fault: fault.as_ref().map(visible) }
    }
}

/// A server without the reason of its greylisting, as in the views of MySQL.
#[derive(Debug, Serialize, ToSchema)]
#[schema(description = "A server.")]
pub(super) struct VisitorServer<'a> {
    #[serde(flatten)]
    summary: VisitorSummary<'a>,
    /// The players of the last 25 hours: only if requested, and if the server was ever seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<&'a RecentSeriesView>,
}

#[derive(Debug, Serialize, ToSchema)]
struct VisitorSummary<'a> {
    /// The number of the server; it never changes.
    key: u32,
    /// Such as `quake3://192.0.2.7:27960`.
    url: &'a str,
    /// Scan class: 1 is scanned every 2 minutes, 5 weekly; 6 and 7 do not answer.
    #[schema(minimum = 1, maximum = 7)]
    class: u8,
    /// Scans without an answer since the last answer.
    missed: u32,
    /// The host name as the server sent it, with colour codes; empty if the server was never seen.
    hostname: &'a str,
    /// The game; `null` if unknown.
    game: &'a Option<String>,
    /// The current map; `null` if unknown.
    map: &'a Option<String>,
    /// The last list shows the current players.
    online: bool,
    /// Players now, without bots; 0 if the server does not answer any more.
    players: u32,
    /// `players` is not believed, and not used: the server announces more than it can have.
    players_unverified: bool,
    /// The median of the last three counts of players.
    assumed_players: u32,
    /// Places for players.
    slots: u32,
    /// Rank of the server in the last closed week, from 1; `null` if it is not ranked.
    rank: Option<u32>,
    /// When the server was added, Unix ms.
    added_ms: i64,
    /// Time of the last scan, Unix ms.
    last_scan_ms: Option<i64>,
    /// Time of the last answer, Unix ms.
    last_seen_ms: Option<i64>,
    /// Excluded from rankings.
    greylisted: bool,
    /// Tags that an admin has assigned.
    tags: &'a [String],
    /// Reasons why lists, or parts of them, were not used within the last 7 days.
    screened: &'a [ScreenedView],
}

/// A server with details, without the exemptions from screening.
#[derive(Debug, Serialize, ToSchema)]
#[schema(description = "A server with its players, maps and series.")]
pub(super) struct VisitorDetail<'a> {
    #[serde(flatten)]
    summary: VisitorSummary<'a>,
    /// The time of the next scan, Unix ms; `null` while a scan is in progress, or if the server is
    /// scanned on request only.
    next_scan_ms: Option<i64>,
    /// Extra scans at the ends of rounds; absent if a setting turns them off.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_end: Option<&'a RoundEndView>,
    /// The sum of the points of the last complete list, players only.
    total_points: i64,
    /// Bots of the last list that could not be distinguished from players.
    bots_unidentified: u32,
    /// Authentication of the last reply: `address`, `challenge` or `nonce`.
    /// `null` until the first reply after the start of the daemon.
    authentication: &'a Option<String>,
    /// The players now; empty if the server does not answer any more.
    players_listed: &'a [ListedPlayer],
    /// Players over time; `null` if the server was never seen.
    series: &'a Option<SeriesView>,
    /// Maps of the current week, most player time first.
    maps: &'a [MapShare],
    /// The share of the current week, until now, in which the server was seen, 0 to 1.
    coverage: f64,
}

impl<'a> From<&'a ServerSummary> for VisitorServer<'a> {
    fn from(server: &'a ServerSummary) -> VisitorServer<'a> {
        VisitorServer { summary: VisitorSummary::from(server), recent: server.recent.as_ref() }
    }
}

impl<'a> From<&'a ServerSummary> for VisitorSummary<'a> {
    fn from(server: &'a ServerSummary) -> VisitorSummary<'a> {
        let ServerSummary {
            key,
            url,
            class,
            missed,
            hostname,
            game,
            map,
            online,
            players,
            players_unverified,
            assumed_players,
            slots,
            rank,
            added_ms,
            last_scan_ms,
            last_seen_ms,
            greylist_reason,
            tags,
            screened,
            // Only lists have this field.
            recent: _,
        } = server;
        VisitorSummary {
            key: *key,
            url,
            class: *class,
            missed: *missed,
            hostname,
            game,
            map,
            online: *online,
            players: *players,
            players_unverified: *players_unverified,
            assumed_players: *assumed_players,
            slots: *slots,
            rank: *rank,
            added_ms: *added_ms,
            last_scan_ms: *last_scan_ms,
            last_seen_ms: *last_seen_ms,
            greylisted: greylist_reason.is_some(),
            tags,
            screened,
        }
    }
}

impl VisitorDetail<'_> {
    /// The fields that change only with a scan or a correction. The coverage changes with time
    /// alone.
    pub fn content(self) -> Self {
        VisitorDetail { coverage: 0.0, ..self }
    }
}

impl<'a> From<&'a ServerDetail> for VisitorDetail<'a> {
    fn from(detail: &'a ServerDetail) -> VisitorDetail<'a> {
        let ServerDetail {
            summary,
            next_scan_ms,
            scan_in_progress: _,
            round_end,
            total_points,
            bots_unidentified,
            authentication,
            exempt_checks: _,
            players_listed,
            series,
            maps,
            coverage,
        } = detail;
        VisitorDetail {
            summary: VisitorSummary::from(summary),
            next_scan_ms: *next_scan_ms,
            round_end: round_end.as_ref(),
            total_points: *total_points,
            bots_unidentified: *bots_unidentified,
            authentication,
            players_listed,
            series,
            maps,
            coverage: *coverage,
        }
    }
}
