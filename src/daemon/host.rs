//! What answers are computed from in the daemon: the current view, its indexes and sums, and what its parts say about
//! themselves.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use super::Shared;
use super::name_search::NameSearch;
use crate::api::{
    ApiError, ArchiveStatus, DaemonStatus, ErrorCode, Fault, Host, LogStatus, PublicArchiveStatus, PublicDaemonStatus,
    StateView, Status,
};
use crate::daemon::disk_space::free_bytes;
use crate::daemon::views::EngineThreadStatus;
use crate::model::search_text::Match;
use crate::model::{MapKey, PlayerKey, ServerKey, ServerUrl, WindowKey};
use crate::view::ClockStatus;
use crate::view::board::StorageUse;
use crate::view::history::{BestPlayers, MapTotals, MapWeekView};

/// The daemon, for one answer.
pub(super) struct DaemonHost<'a> {
    pub(super) shared: &'a Shared,
    /// `None`: the current one.
    pub(super) view: Option<&'a StateView<'a>>,
}

impl Host for DaemonHost<'_> {
    fn with_view(&self, read: &mut dyn FnMut(&StateView<'_>)) -> Result<(), ApiError> {
        match self.view {
            Some(view) => read(view),
            None => read(&self.shared.views.current()?.state()),
        }
        Ok(())
    }

    fn find_players(&self, text: &str, count: usize) -> Result<Vec<(Match, PlayerKey)>, ApiError> {
        Ok(self.shared.name_search()?.find_players(text, count))
    }

    fn find_servers(&self, text: &str) -> Result<Vec<ServerKey>, ApiError> {
        Ok(self.shared.name_search()?.find_servers(text))
    }

    fn weeks_of_map(&self, map: MapKey) -> Result<Vec<MapWeekView>, ApiError> {
        Ok(self.shared.history.maps().weeks_of(map))
    }

    fn most_played_maps(&self, text: Option<&str>, count: usize) -> Result<Vec<MapTotals>, ApiError> {
        Ok(self.shared.history.maps().most_played(text, count))
    }

    fn best_players(&self, server: &ServerUrl) -> Result<BestPlayers, ApiError> {
        self.shared.best_players(server)
    }

    fn stored_sizes(&self, windows: &[WindowKey]) -> Result<Vec<StorageUse>, ApiError> {
        // One at a time: it takes long, and answers of others need the threads.
        let Ok(_measuring) = self.shared.measuring.try_lock() else {
            return Err(ApiError::new(ErrorCode::Busy, "another request measures windows; try again later"));
        };
        let reader = self.shared.views.current()?.reader().clone();
        windows.iter().map(|window| reader.stored_size(*window).map_err(ApiError::internal)).collect()
    }

    fn complete_status(&self, status: &mut Status) -> Result<(), ApiError> {
        let shared = self.shared;
        let view = shared.views.current()?;
        let EngineThreadStatus { week_pending_close, silent_since_ms, .. } = view.engine_thread().clone();
        status.clock = Some(ClockStatus { week_pending_close, ..shared.clock.status() });
        let state_dir = shared.config.lock().expect("config lock poisoned").state_dir.clone();
        status.store.iter_mut().for_each(|store| store.disk_free_bytes = free_bytes(&state_dir));
        status.daemon = Some(shared.daemon_status(silent_since_ms));
        status.archive = shared.archive_status(status.engine.archive_complete_ms);
        let log = shared.log_rewriter.get();
        let in_database = shared.cluster.as_ref().map_or(0, |cluster| cluster.names_pending());
        status.log = Some(LogStatus { names_pending: log.names_pending.max(in_database), ..log });
        status.cluster = shared.cluster.as_ref().map(|cluster| cluster.status());
        status.scanners = shared.scanners.rows();
        status.counters = shared.counters();
        Ok(())
    }
}

impl Shared {
    fn name_search(&self) -> Result<&NameSearch, ApiError> {
        let off = || ApiError::new(ErrorCode::Refused, "searches are off: see web.search_memory_bytes");
        self.name_search.as_deref().ok_or_else(off)
    }

    fn daemon_status(&self, silent_since_ms: Option<i64>) -> DaemonStatus {
        let config = self.config.lock().expect("config lock poisoned");
        DaemonStatus {
            public: PublicDaemonStatus {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                started_ms: self.started_ms,
                contact: Some(config.scan.contact.clone()).filter(|contact| !contact.is_empty()),
                silent_since_ms,
            },
            pid: std::process::id(),
            state_dir: config.state_dir.display().to_string(),
            config_file: self.file.as_ref().map(|file| file.display().to_string()),
            web: self.web_address.map(|address| address.to_string()),
            commands_queued: self.engine.queued(),
        }
    }

    fn archive_status(&self, last_complete_ms: Option<i64>) -> Option<ArchiveStatus> {
        let status = self.archive_worker_status()?;
        let (fault, fault_message) = match status.fault {
            Some(fault) => {
                let shown = Fault { kind: fault.kind.name().to_owned(), since_ms: fault.since_ms };
                (Some(shown), Some(fault.message))
            }
            None => (None, None),
        };
        Some(ArchiveStatus {
            public: PublicArchiveStatus { connected: status.connected, last_complete_ms, fault, resync: status.resync },
            fault_message,
            target: status.target,
            host: status.host,
            write_method: status.write_method.map(|method| method.name().to_owned()),
            last_error: status.last_error,
            last_error_ms: status.last_error_ms,
        })
    }

    pub(super) fn archive_worker_status(&self) -> Option<crate::archive::WorkerStatus> {
        self.archive.lock().expect("archive lock poisoned").as_ref().map(|worker| worker.status())
    }

    /// All counters of the modules that keep their own, as `module.name`.
    fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = BTreeMap::new();
        let view = serde_json::to_value(self.counts.values()).expect("counters are plain data");
        flatten("scan", &view, &mut counters);
        if let Some(archive) = self.archive_worker_status() {
            for (name, value) in [
                ("passes", archive.passes),
                ("failures", archive.failures),
                ("failovers", archive.failovers),
                ("entries_written", archive.entries_written),
                ("rows_written", archive.rows_written),
                ("rejected", archive.rejected),
                ("restarts", archive.restarts),
            ] {
                counters.insert(format!("archive.{name}"), value);
            }
        }
        for (name, count) in [
            ("written", &self.captures.written),
            ("dropped", &self.captures.dropped),
            ("errors", &self.captures.errors),
        ] {
            counters.insert(format!("capture.{name}"), count.load(Ordering::Relaxed));
        }
        counters.extend(self.scanners.counters().map(|(name, count)| (format!("scanners.{name}"), count)));
        counters.insert("control.idle_connections_closed".to_owned(), self.admin_connections.idle_closed.get());
        counters.insert("control.connections_refused".to_owned(), self.admin_connections.refused.get());
        counters.insert("control.rescan_results_dropped".to_owned(), self.rescans_dropped.get());
        counters
    }
}

fn flatten(name: &str, value: &serde_json::Value, into: &mut BTreeMap<String, u64>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (field, value) in fields {
                flatten(&format!("{name}.{field}"), value, into);
            }
        }
        value => {
            into.insert(name.to_owned(), value.as_u64().unwrap_or(0));
        }
    }
}
