//! Executes requests.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;

use super::Shared;
use crate::api::{
    ApiError, ArchiveFault, ArchiveStatus, DaemonStatus, ErrorCode, Progress, Request, RescanSelector, Row, validate,
};
use crate::daemon::disk_space::free_bytes;
use crate::daemon::engine_thread::StartedRescan;
use crate::daemon::name_search::NameSearch;
use crate::engine::ViewError;
use crate::model::calendar::week_label;
use crate::model::view::ClockStatus;
use crate::model::view::export::ExportRow;
use crate::model::{ServerKey, WeekKey};
use crate::state::answer::{StateView, add_stored_sizes, view_error};
use crate::web::Rows;

/// Most servers in one chunk of an export.
const EXPORT_SERVERS_MAX: usize = 500;

/// Rows after which a chunk of an export ends: 10 ms.
const EXPORT_ROWS_MAX: usize = 2_000;

/// How often a rescan says that it goes on.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

impl Shared {
    /// Executes a request of an admin: sends its rows, and returns notes.
    pub(super) async fn run(&self, request: Request, rows: Rows) -> Result<Vec<String>, ApiError> {
        match request {
            Request::Reload {} => self.reload().await,
            Request::Rescan { servers } => self.rescan(servers, &rows).await,
            Request::ArchiveResend { weeks, take_over } => {
                self.resend(weeks, take_over, &rows).await.map(|()| Vec::new())
            }
            Request::ArchiveVerify { weeks } => self.verify_archive(weeks, &rows).await.map(|()| Vec::new()),
            Request::Export { week } => self.export(week, &rows).await.map(|()| Vec::new()),
            Request::Backup { dir } => self.backup(dir, &rows).await,
            request => {
                for row in self.ask(request).await? {
                    rows.row(row).await?;
                }
                Ok(Vec::new())
            }
        }
    }
}

impl Shared {
    /// Sends a request with a complete answer to the engine thread, and adds the daemon's
    /// fields to a status.
    pub(super) async fn ask(&self, request: Request) -> Result<Vec<Row>, ApiError> {
        if let Some(problem) = validate::check(&request) {
            return Err(ApiError::new(ErrorCode::BadRequest, problem));
        }
        let request = match request {
            Request::PlayerSearch { text, count } => match self.found_players(text, count).await? {
                Some(found) => found,
                None => return Ok(Vec::new()),
            },
            Request::ServersSearch { text, count } => return self.found_servers(text, count).await,
            Request::Map { map } => return self.map(map).await,
            Request::Maps { text, count } => return Ok(self.maps(text.as_deref(), count)),
            Request::ServersBest { url } => return self.best_players(url).await,
            other => other,
        };
        let with_bytes = matches!(request, Request::Windows { bytes: true });
        let is_read_only = request.is_read_only();
        let read = if is_read_only { self.views.answer(&request).await? } else { None };
        let mut rows = match read {
            Some(rows) => rows,
            None => {
                let rows = self.engine.request(request).await?;
                if !is_read_only {
                    self.changes.fetch_add(1, Ordering::Relaxed);
                }
                rows?
            }
        };
        for row in &mut rows {
            if let Row::Status(status) = row {
                let week_pending_close = self.views.current()?.week_pending_close();
                status.clock = Some(ClockStatus { week_pending_close, ..self.clock.status() });
                let state_dir = self.config.lock().expect("config lock poisoned").state_dir.clone();
                status.store.iter_mut().for_each(|store| store.disk_free_bytes = free_bytes(&state_dir));
                status.daemon = Some(self.daemon_status());
                status.archive = self.archive_status(status.engine.archive_complete_ms);
                status.log = Some(self.log_rewriter.get());
                status.counters = self.counters();
            }
        }
        if with_bytes { self.with_stored_sizes(rows).await } else { Ok(rows) }
    }

    /// Corrections and other changes by admins since the start.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// The request for the names of the players that a search finds; `None`: it finds none.
    async fn found_players(&self, text: String, count: u32) -> Result<Option<Request>, ApiError> {
        let player_keys = self.name_search()?.find_players(text, count as usize).await;
        Ok((!player_keys.is_empty()).then_some(Request::PlayerNames { player_keys }))
    }

    /// The servers that a search finds, those with most players first.
    async fn found_servers(&self, text: String, count: u32) -> Result<Vec<Row>, ApiError> {
        let servers = self.name_search()?.find_servers(text).await;
        let count = count as usize;
        let found = self.views.read(move |view| view.engine().busiest_servers(&servers, count)).await?;
        Ok(found.into_iter().map(|server| Row::Server(Box::new(server))).collect())
    }

    fn name_search(&self) -> Result<&NameSearch, ApiError> {
        let off = || ApiError::new(ErrorCode::Refused, "searches are off: see web.search_memory_bytes");
        self.name_search.as_deref().ok_or_else(off)
    }

    async fn with_stored_sizes(&self, mut rows: Vec<Row>) -> Result<Vec<Row>, ApiError> {
        let reader = self.views.current()?.reader().clone();
        let measuring = tokio::task::spawn_blocking(move || add_stored_sizes(&reader, &mut rows).map(|()| rows));
        measuring.await.map_err(|_| ApiError::new(ErrorCode::Stopping, "the daemon is stopping"))?
    }

    /// Sends the rows of a week, some servers at a time.
    async fn export(&self, week: String, rows: &Rows) -> Result<(), ApiError> {
        let listed = self.views.read(move |view| view.engine().exported_servers(&week)).await?;
        let (week, servers) = listed.map_err(view_error)?;
        let mut at = 0;
        while at < servers.len() {
            let next: Vec<ServerKey> = servers[at..].iter().copied().take(EXPORT_SERVERS_MAX).collect();
            let (exported, done) = self.views.read(move |view| export_servers(&view.state(), week, &next)).await??;
            for row in exported {
                rows.row(row).await?;
            }
            at += done;
        }
        Ok(())
    }

    async fn rescan(&self, servers: RescanSelector, rows: &Rows) -> Result<Vec<String>, ApiError> {
        let started = self.engine.call(|thread| thread.start_rescan(servers)).await??;
        let StartedRescan { servers, mode, mut results } = started;
        let settings = self.config.lock().expect("config lock poisoned").scan_settings();
        let expected_ms = Some(settings.duration_ms_max(mode, servers));
        rows.progress(Progress { servers: Some(servers), expected_ms }).await?;
        let mut n = 0;
        loop {
            match timeout(PROGRESS_INTERVAL, results.rows.recv()).await {
                Ok(Some(row)) => {
                    rows.row(row).await?;
                    n += 1;
                }
                Ok(None) => break,
                Err(_) => rows.progress(Progress::default()).await?,
            }
        }
        let mut notes = Vec::new();
        match (servers, n) {
            (0, _) => notes.push("no server is of class 6 or 7".to_owned()),
            (1, 0) => notes.push("the server was removed before its scan ended".to_owned()),
            (_, 0) => notes.push("the servers were removed before their scans ended".to_owned()),
            _ => {}
        }
        if let dropped @ 1.. = results.dropped.count() {
            notes.push(format!(
                "{dropped} results are missing because they were not read in time; those servers were scanned nevertheless"
            ));
        }
        Ok(notes)
    }

    fn daemon_status(&self) -> DaemonStatus {
        let config = self.config.lock().expect("config lock poisoned");
        DaemonStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started_ms: self.started_ms,
            state_dir: config.state_dir.display().to_string(),
            config_file: self.file.as_ref().map(|file| file.display().to_string()),
            contact: Some(config.scan.contact.clone()).filter(|contact| !contact.is_empty()),
            web: self.web_address.map(|address| address.to_string()),
            commands_queued: self.engine.queued(),
        }
    }

    fn archive_status(&self, last_complete_ms: Option<i64>) -> Option<ArchiveStatus> {
        let status = self.archive_worker_status()?;
        Some(ArchiveStatus {
            target: status.target,
            connected: status.connected,
            host: status.host,
            write_method: status.write_method.map(|method| method.name().to_owned()),
            last_complete_ms,
            last_error: status.last_error,
            last_error_ms: status.last_error_ms,
            fault: status.fault.map(|fault| ArchiveFault {
                kind: fault.kind.name().to_owned(),
                since_ms: fault.since_ms,
                message: fault.message,
            }),
            resync: status.resync,
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
        counters.insert("control.idle_connections_closed".to_owned(), self.admin_connections.idle_closed.get());
        counters.insert("control.connections_refused".to_owned(), self.admin_connections.refused.get());
        counters.insert("control.rescan_results_dropped".to_owned(), self.rescans_dropped.count());
        counters
    }
}

/// The rows of a week of the first of these servers, and the number of these servers.
fn export_servers(
    StateView { engine, reader, .. }: &StateView<'_>,
    week: WeekKey,
    servers: &[ServerKey],
) -> Result<(Vec<Row>, usize), ApiError> {
    let label = week_label(week);
    let mut rows = Vec::new();
    for (server, done) in servers.iter().zip(1..) {
        let exported = engine.export_server(*reader, week, *server, &mut |server, game, player, row, positions| {
            rows.push(Row::Export(Box::new(ExportRow::new(&label, server, game, player, row, positions))));
            Ok::<(), ViewError>(())
        });
        exported.map_err(view_error)?;
        if rows.len() >= EXPORT_ROWS_MAX {
            return Ok((rows, done));
        }
    }
    Ok((rows, servers.len()))
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
