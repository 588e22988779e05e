//! How requests are executed: those that only read beside the engine, those that change something on its thread, and
//! those that take long in a task of their own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use super::Shared;
use super::engine_thread::{Change, StartedRescan};
use super::host::DaemonHost;
use crate::api::requests::{
    self, ArchiveResend, ArchiveVerify, Backup, ClockAccept, ClusterCopy, ClusterEngines, Export, ExportSessions,
    Reload, Rescan, ScannersExchange, ScannersList, Scans,
};
use crate::api::{Access, Answer, ApiError, ErrorCode, Line, LineOf, Progress, Read, Request, StateView, decode};
use crate::engine::ViewError;
use crate::model::ServerKey;
use crate::model::calendar::week_label;
use crate::schedule::TURNS_PER_S;
use crate::view::board::BoardsSelector;
use crate::view::export::ExportRow;
use crate::view::session::ExportedSession;
use crate::web::{AdminWork, Backend, Lines, ReadWork};

/// Most servers in one chunk of an export.
const EXPORT_SERVERS_MAX: usize = 500;

/// Rows after which a chunk of an export ends: 10 ms.
const EXPORT_ROWS_MAX: usize = 2_000;

/// Requests that a follower executes, too: they change nothing in the state. To a scanner it answers who leads.
const OF_ANY_ENGINE: [&str; 5] =
    [Backup::NAME, Reload::NAME, ClockAccept::NAME, ScannersExchange::NAME, ClusterCopy::NAME];

/// How often a rescan says that it goes on.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// A request that goes on for long beside the engine. It sends its lines while it works, and returns notes.
trait Run: Request {
    fn run(
        self,
        shared: &Shared,
        lines: &Lines<LineOf<Self>>,
    ) -> impl Future<Output = Result<Vec<String>, ApiError>> + Send;
}

impl Backend for Shared {
    fn behind_ms(&self) -> Option<u64> {
        self.cluster.as_ref().and_then(|cluster| cluster.behind_ms())
    }

    fn read(
        self: Arc<Self>,
        boards: Option<BoardsSelector>,
        read: ReadWork,
    ) -> BoxFuture<'static, Result<(), ApiError>> {
        async move {
            let shared = self.clone();
            let Some(boards) = boards else {
                return self.views.on_thread(move || read(&DaemonHost { shared: &shared, view: None })).await;
            };
            let waits = self.views.read(move |view| {
                if !view.has_boards(&boards) {
                    return Some((boards, read));
                }
                read(&DaemonHost { shared: &shared, view: Some(&view.state()) });
                None
            });
            if let Some((boards, read)) = waits.await? {
                let shared = self.clone();
                let read = move |view: &StateView<'_>| read(&DaemonHost { shared: &shared, view: Some(view) });
                self.engine.read_boards(boards, Box::new(read)).await?;
            }
            Ok(())
        }
        .boxed()
    }

    fn prepare(self: Arc<Self>, name: &'static str, body: &[u8]) -> Result<AdminWork, ApiError> {
        prepare(self, name, body)
    }

    fn changes(&self) -> u64 {
        Shared::changes(self)
    }
}

macro_rules! prepare {
    (read $($read:ident),*; change $($change:ident),*; run $($run:ident),*;) => {
        /// The work on a request.
        fn prepare(shared: Arc<Shared>, name: &str, body: &[u8]) -> Result<AdminWork, ApiError> {
            match name {
                $(requests::$read::NAME => {
                    let request: requests::$read = decode(body)?;
                    Ok(complete(async move { (shared as Arc<dyn Backend>).answer(request).await }))
                })*
                $(requests::$change::NAME => {
                    let request: requests::$change = decode(body)?;
                    check_leads::<requests::$change>(&shared)?;
                    Ok(complete(async move { shared.change(request).await }))
                })*
                $(requests::$run::NAME => {
                    let request: requests::$run = decode(body)?;
                    check_leads::<requests::$run>(&shared)?;
                    Ok(Box::new(|sender| async move { request.run(&shared, &sender.of()).await }.boxed()))
                })*
                _ => Err(ApiError::new(ErrorCode::NotFound, format!("there is no request {name}"))),
            }
        }
    };
}
requests::requests!(prepare);

/// Error: the leader of the cluster executes the request, and this is another engine.
fn check_leads<R: Request>(shared: &Shared) -> Result<(), ApiError> {
    let is_of_any = R::ACCESS == Access::Read || OF_ANY_ENGINE.contains(&R::NAME);
    match shared.follows().filter(|_| !is_of_any) {
        Some(cluster) => Err(cluster.refusal()),
        None => Ok(()),
    }
}

/// Work with an answer that is complete before its first line is sent.
fn complete<A: Answer>(answer: impl Future<Output = Result<A, ApiError>> + Send + 'static) -> AdminWork {
    Box::new(|sender| {
        let work = async move {
            let lines = sender.of();
            for line in answer.await?.lines() {
                lines.send(line).await?;
            }
            Ok(Vec::new())
        };
        work.boxed()
    })
}

impl Shared {
    /// Answers a request that only reads.
    pub(super) async fn read<R: Read>(self: Arc<Self>, request: R) -> Result<R::Answer, ApiError> {
        (self as Arc<dyn Backend>).answer(request).await
    }

    /// Executes a request that changes something.
    pub(super) async fn change<R: Change>(&self, request: R) -> Result<R::Answer, ApiError> {
        let answer = self.engine.change(request).await?;
        self.changes.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// Corrections and other changes by admins since the start.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}

impl Run for Reload {
    async fn run(self, shared: &Shared, _: &Lines<LineOf<Reload>>) -> Result<Vec<String>, ApiError> {
        shared.reload().await
    }
}

impl Run for Backup {
    async fn run(self, shared: &Shared, lines: &Lines<LineOf<Backup>>) -> Result<Vec<String>, ApiError> {
        shared.backup(self.dir, lines).await
    }
}

impl Run for ArchiveResend {
    async fn run(self, shared: &Shared, lines: &Lines<LineOf<ArchiveResend>>) -> Result<Vec<String>, ApiError> {
        lines.send(shared.resend(self.weeks, self.take_over).await?).await?;
        Ok(Vec::new())
    }
}

impl Run for ArchiveVerify {
    async fn run(self, shared: &Shared, lines: &Lines<LineOf<ArchiveVerify>>) -> Result<Vec<String>, ApiError> {
        shared.verify_archive(self.weeks, lines).await.map(|()| Vec::new())
    }
}

/// Sends the rows of a week, some servers at a time.
impl Run for Export {
    async fn run(self, shared: &Shared, lines: &Lines<ExportRow>) -> Result<Vec<String>, ApiError> {
        let (week, servers) = shared.views.read(move |view| view.model().exported_servers(&self.week)).await??;
        let label = week_label(week);
        export(shared, servers, lines, move |StateView { model, reader, .. }, server| {
            let mut rows = Vec::new();
            model.export_server(*reader, week, server, &mut |server, game, player, row, positions| {
                rows.push(ExportRow::new(&label, server, game, player, row, positions));
                Ok::<(), ViewError>(())
            })?;
            Ok(rows)
        })
        .await
    }
}

/// Sends the sessions that are kept, some servers at a time.
impl Run for ExportSessions {
    async fn run(self, shared: &Shared, lines: &Lines<ExportedSession>) -> Result<Vec<String>, ApiError> {
        let servers = shared.views.read(|view| view.model().servers_by_url()).await?;
        export(shared, servers, lines, |StateView { model, reader, .. }, server| model.export_sessions(*reader, server))
            .await
    }
}

/// Sends the rows of all servers. Those of one server are of one moment.
async fn export<R: Line>(
    shared: &Shared,
    servers: Vec<ServerKey>,
    lines: &Lines<R>,
    rows_of: impl Fn(&StateView<'_>, ServerKey) -> Result<Vec<R>, ViewError> + Clone + Send + 'static,
) -> Result<Vec<String>, ApiError> {
    let mut at = 0;
    while at < servers.len() {
        let next: Vec<ServerKey> = servers[at..].iter().copied().take(EXPORT_SERVERS_MAX).collect();
        let rows_of = rows_of.clone();
        let read = shared.views.read(move |view| {
            let (mut rows, mut done) = (Vec::new(), 0);
            while done < next.len() && rows.len() < EXPORT_ROWS_MAX {
                rows.extend(rows_of(&view.state(), next[done])?);
                done += 1;
            }
            Ok::<_, ViewError>((rows, done))
        });
        let (rows, done) = read.await??;
        for row in rows {
            lines.send(row).await?;
        }
        at += done;
    }
    Ok(Vec::new())
}

impl Run for ScannersExchange {
    async fn run(self, shared: &Shared, lines: &Lines<LineOf<ScannersExchange>>) -> Result<Vec<String>, ApiError> {
        if let Some(cluster) = shared.follows() {
            let leader = Some(cluster.leader_address());
            lines.send(Scans { batch: self.batch_known, leader, ..Scans::default() }).await?;
            return Ok(Vec::new());
        }
        let settings = shared.config.lock().expect("config lock poisoned").scan_settings();
        lines.send(shared.scanners.exchange(&shared.engine, &settings, shared.clock.now_ms(), self).await?).await?;
        Ok(Vec::new())
    }
}

impl Run for ClusterCopy {
    async fn run(self, shared: &Shared, lines: &Lines<LineOf<ClusterCopy>>) -> Result<Vec<String>, ApiError> {
        shared.copy_state(lines).await
    }
}

impl Run for ClusterEngines {
    async fn run(self, shared: &Shared, lines: &Lines<LineOf<ClusterEngines>>) -> Result<Vec<String>, ApiError> {
        let Some(cluster) = &shared.cluster else {
            return Err(ApiError::new(ErrorCode::NotFound, "this is the only engine: cluster.engine is empty"));
        };
        for row in cluster.rows() {
            lines.send(row).await?;
        }
        let old = |fault| format!("the rows may be old, because the database of the log does not answer: {fault}");
        Ok(cluster.fault().map(old).into_iter().chain(cluster.other_settings()).collect())
    }
}

impl Run for ScannersList {
    async fn run(self, shared: &Shared, lines: &Lines<LineOf<ScannersList>>) -> Result<Vec<String>, ApiError> {
        for row in shared.scanners.rows() {
            lines.send(row).await?;
        }
        Ok(Vec::new())
    }
}

impl Run for Rescan {
    async fn run(self, shared: &Shared, lines: &Lines<LineOf<Rescan>>) -> Result<Vec<String>, ApiError> {
        let started = shared.engine.call(move |thread| thread.start_rescan(self.servers)).await??;
        let StartedRescan { servers, mode, mut results } = started;
        let settings = shared.config.lock().expect("config lock poisoned").scan_settings();
        // They become due in turn.
        let last_ms = servers * 1_000 / u64::from(TURNS_PER_S) + settings.duration_ms_max(mode, 1);
        let expected_ms = Some(settings.duration_ms_max(mode, servers).max(last_ms));
        lines.progress(Progress { servers: Some(servers), expected_ms }).await?;
        let mut n = 0;
        loop {
            match timeout(PROGRESS_INTERVAL, results.rows.recv()).await {
                Ok(Some(row)) => {
                    lines.send(row).await?;
                    n += 1;
                }
                Ok(None) => break,
                Err(_) => lines.progress(Progress::default()).await?,
            }
        }
        let mut notes = Vec::new();
        match (servers, n) {
            (0, _) => notes.push("no server is of class 6 or 7".to_owned()),
            (1, 0) => notes.push("the server was removed before its scan ended".to_owned()),
            (_, 0) => notes.push("the servers were removed before their scans ended".to_owned()),
            _ => {}
        }
        if let dropped @ 1.. = results.dropped.get() {
            notes.push(format!(
                "{dropped} results are missing because they were not read in time; those servers were scanned nevertheless"
            ));
        }
        Ok(notes)
    }
}
