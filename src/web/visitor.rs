//! What visitors see of rows that have fields for admins only. Each row is taken apart field by
//! field, so a new field does not compile until it is decided who sees it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::api::{ArchiveFault, ArchiveStatus, DaemonStatus, ScanLogFault, ScanLogStatus, Status, StoreStatus};
use crate::model::view::{
    ClockStatus, EngineStatus, ListedPlayer, MapShare, RecentSeriesView, ResyncProgress, RoundEndView, ScreenedView,
    SeriesView, ServerDetail, ServerSummary,
};

/// A status without process, directories, files, hosts, and messages that name any.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename = "status")]
pub(super) struct VisitorStatus<'a> {
    daemon: Option<VisitorDaemon<'a>>,
    engine: &'a EngineStatus,
    clock: &'a Option<ClockStatus>,
    outbox_entries: u64,
    archive: Option<VisitorArchive<'a>>,
    store: Option<VisitorStore>,
    scan_log: Option<VisitorScanLog<'a>>,
    counters: &'a BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct VisitorDaemon<'a> {
    version: &'a str,
    started_ms: i64,
    contact: &'a Option<String>,
}

#[derive(Debug, Serialize)]
struct VisitorArchive<'a> {
    connected: bool,
    last_complete_ms: Option<i64>,
    fault: Option<VisitorFault<'a>>,
    resync: &'a Option<ResyncProgress>,
}

#[derive(Debug, Serialize)]
struct VisitorStore {
    paused_since_ms: Option<i64>,
    pending_records: u64,
    scans_discarded: u64,
    commits: u64,
    last_commit_ms: Option<i64>,
    database_bytes: u64,
}

#[derive(Debug, Serialize)]
struct VisitorScanLog<'a> {
    fault: Option<VisitorFault<'a>>,
}

#[derive(Debug, Serialize)]
struct VisitorFault<'a> {
    kind: &'a str,
    since_ms: i64,
}

impl<'a> From<&'a Status> for VisitorStatus<'a> {
    fn from(status: &'a Status) -> VisitorStatus<'a> {
        let Status { daemon, engine, clock, outbox_entries, archive, store, scan_log, counters } = status;
        VisitorStatus {
            daemon: daemon.as_ref().map(VisitorDaemon::from),
            engine,
            clock,
            outbox_entries: *outbox_entries,
            archive: archive.as_ref().map(VisitorArchive::from),
            store: store.as_ref().map(VisitorStore::from),
            scan_log: scan_log.as_ref().map(VisitorScanLog::from),
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

impl<'a> From<&'a ScanLogStatus> for VisitorScanLog<'a> {
    fn from(scan_log: &'a ScanLogStatus) -> VisitorScanLog<'a> {
        let ScanLogStatus { names_pending: _, files_pending: _, fault } = scan_log;
        let visible =
            |ScanLogFault { kind, since_ms, message: _ }: &'a ScanLogFault| VisitorFault { kind, since_ms: *since_ms };
        VisitorScanLog { fault: fault.as_ref().map(visible) }
    }
}

/// A server without the reason of its greylisting, as in the views of MySQL.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename = "server")]
pub(super) struct VisitorServer<'a> {
    #[serde(flatten)]
    summary: VisitorSummary<'a>,
}

#[derive(Debug, Serialize)]
struct VisitorSummary<'a> {
    key: u32,
    url: &'a str,
    class: u8,
    missed: u32,
    hostname: &'a str,
    game: &'a Option<String>,
    map: &'a Option<String>,
    online: bool,
    players: u32,
    assumed_players: u32,
    slots: u32,
    rank: Option<u32>,
    added_ms: i64,
    last_scan_ms: Option<i64>,
    last_seen_ms: Option<i64>,
    /// Excluded from rankings.
    greylisted: bool,
    tags: &'a [String],
    screened: &'a [ScreenedView],
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<&'a RecentSeriesView>,
}

/// A server with details, without the exemptions from screening.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename = "server_detail")]
pub(super) struct VisitorDetail<'a> {
    #[serde(flatten)]
    summary: VisitorSummary<'a>,
    next_scan_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    round_end: Option<&'a RoundEndView>,
    total_points: i64,
    bots_unidentified: u32,
    authentication: &'a Option<String>,
    players_listed: &'a [ListedPlayer],
    series: &'a Option<SeriesView>,
    maps: &'a [MapShare],
    coverage: f64,
}

impl<'a> From<&'a ServerSummary> for VisitorServer<'a> {
    fn from(server: &'a ServerSummary) -> VisitorServer<'a> {
        VisitorServer { summary: VisitorSummary::from(server) }
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
            assumed_players,
            slots,
            rank,
            added_ms,
            last_scan_ms,
            last_seen_ms,
            greylist_reason,
            tags,
            screened,
            recent,
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
            assumed_players: *assumed_players,
            slots: *slots,
            rank: *rank,
            added_ms: *added_ms,
            last_scan_ms: *last_scan_ms,
            last_seen_ms: *last_seen_ms,
            greylisted: greylist_reason.is_some(),
            tags,
            screened,
            recent: recent.as_ref(),
        }
    }
}

impl<'a> From<&'a ServerDetail> for VisitorDetail<'a> {
    fn from(detail: &'a ServerDetail) -> VisitorDetail<'a> {
        let ServerDetail {
            summary,
            next_scan_ms,
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
