//! The daemon: wiring, signals, start and stop order.
//!
//! One thread owns the engine and the store ([`engine_thread`]). The scanner, the archive
//! worker, the control socket and the web interface are tasks that communicate with it over
//! bounded channels. Start order: check of the state's lock, port of the web interface, state,
//! scanner, socket, then, after everything that can fail, the engine thread, the tasks and READY.
//! Stop order: socket, web interface, scanner (scans in flight may complete), last commit, archive
//! (drained up to a limit), state.

mod agent;
mod archive_resend;
mod archive_task;
mod archive_verify;
mod backup;
mod board_builder;
pub mod cluster;
mod disk_space;
mod engine_thread;
mod history;
mod host;
mod import_task;
mod list_lengths;
mod log_rewriting;
mod log_thread;
mod name_search;
mod requests;
mod rescan_results;
pub mod scanners;
mod section_tasks;
mod systemd;
mod views;
mod webhooks;
pub mod window_rebuild;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use prometheus_client::metrics::counter::Counter;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::api::{ApiError, ErrorCode, Read, checked};
use crate::archive::Member;
use crate::capture::{CaptureCounters, CaptureFiles};
use crate::clock::{Clock, SystemClocks, TimeSource};
use crate::config::Config;
use crate::daemon::cluster::{Cluster, Follower};
use crate::daemon::engine_thread::{Change, Command, EngineHandle, EngineThread, Recorders, Scanning, StartTimeWrong};
use crate::daemon::log_rewriting::{LogRewriter, LogRewriterStatus};
use crate::daemon::log_thread::{LogThread, LogThreadError};
use crate::daemon::views::Views;
use crate::games;
use crate::geo;
use crate::log::{BatchBuilder, LogCopy, LogWriter, WriterSettings};
use crate::logging::LogFilter;
use crate::scan::{Reloader, ScanCounters, ScanSettings, Scanner};
use crate::shutdown;
use crate::state::check::{StateCheck, check_open_state, check_state_dir};
use crate::state::recovery::{self, EventApplier, Recovered, WITHOUT_LOG};
use crate::state::{State, log_dir};
use crate::store::{self, StoreError};
use crate::web::{self, AdminSocket, ConnectionCounters, Site, WebLimits};

/// Threads of a daemon with every optional part. If they cannot be created, the start fails at
/// once, because some libraries panic or wait for ever without threads.
const THREADS_MIN: usize = 24;

/// Longest wait for scans in flight at a stop.
const SCAN_DRAIN_MAX: Duration = Duration::from_secs(5);

/// Time for the last commit of a stop, after the archive.
const LAST_COMMIT_MAX: Duration = Duration::from_secs(60);

/// Time after which a stop logs the step that it waits for.
const LOG_STOP_AFTER: Duration = Duration::from_secs(1);

/// A running daemon.
pub struct Daemon {
    shared: Arc<Shared>,
    scanner: Scanner,
    /// The result of the engine thread; closed without one if it panicked.
    engine_thread: oneshot::Receiver<anyhow::Result<()>>,
    control: Option<web::Server>,
    /// `None`: the web interface is off.
    web: Option<web::Server>,
    heartbeat: Arc<engine_thread::Heartbeat>,
    /// The engine does not wait for ever for the database of a cluster any more.
    stop_waiting: Arc<AtomicBool>,
    /// `None`: this is the only engine.
    follower: Option<JoinHandle<()>>,
}

/// State shared by the tasks of a daemon.
struct Shared {
    engine: EngineHandle,
    views: Arc<Views>,
    clock: Arc<Clock>,
    started_ms: i64,
    file: Option<PathBuf>,
    config: Mutex<Config>,
    log: Option<LogFilter>,
    counts: Arc<ScanCounters>,
    site: Arc<Site>,
    admin_connections: ConnectionCounters,
    /// `None`: the web interface is off.
    web_address: Option<SocketAddr>,
    captures: Arc<CaptureCounters>,
    log_rewriter: LogRewriterStatus,
    /// Results of rescans that their clients did not read in time.
    rescans_dropped: Counter,
    /// `None`: searches are off.
    name_search: Option<Arc<name_search::NameSearch>>,
    history: Arc<history::History>,
    /// Requests that were not read-only.
    changes: AtomicU64,
    /// `None`: no archive is configured.
    archive: Mutex<Option<archive_task::Worker>>,
    /// Held while the archive is verified.
    verifying: tokio::sync::Mutex<()>,
    /// Held while the state is copied for another engine.
    copying: tokio::sync::Mutex<()>,
    /// Held while the size of a window is measured.
    measuring: Mutex<()>,
    imports: Mutex<import_task::ImportTasks>,
    scanners: Arc<scanners::Scanners>,
    /// `None`: this is the only engine.
    cluster: Option<Arc<Cluster>>,
    webhooks: Mutex<webhooks::Webhooks>,
    /// New scan settings for the scanner.
    reload_scan: mpsc::Sender<crate::scan::ScanSettings>,
}

/// Runs until SIGTERM or SIGINT; reloads at SIGHUP.
pub fn run(config: Config, file: Option<PathBuf>, log: LogFilter) -> anyhow::Result<()> {
    store::check_threads(THREADS_MIN)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let started = runtime.block_on(async {
        let stop = shutdown::on_signal()?;
        let hangup = signal(SignalKind::hangup())?;
        tokio::select! {
            started = Daemon::start(config, file, Some(log)) => Ok(Some((started?, stop, hangup))),
            () = stop.cancelled() => {
                systemd::stopping();
                tracing::info!("stopped during the start");
                anyhow::Ok(None)
            }
        }
    });
    match started {
        Ok(Some((daemon, stop, hangup))) => {
            let result = runtime.block_on(daemon.run_until_stopped(stop.clone(), hangup));
            // Look-ups in progress must not delay the exit: their name servers may be silent.
            runtime.shutdown_background();
            match &result {
                Err(error) if is_mended_by_a_start(error) && stop.is_cancelled() => {
                    tracing::warn!("{error:#}; the next start mends it");
                    Ok(())
                }
                Err(error) if is_mended_by_a_start(error) => {
                    tracing::warn!("{error:#}; the daemon starts again");
                    start_again()
                }
                _ => result,
            }
        }
        ended => {
            // A thread may still read or migrate the state. It can be interrupted at any point.
            runtime.shutdown_background();
            ended.map(drop)
        }
    }
}

/// Whether the next start mends what an error reports, without a loss.
fn is_mended_by_a_start(error: &anyhow::Error) -> bool {
    let differs = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(StoreError::DatabaseDiffers { .. }))
            || matches!(cause.downcast_ref(), Some(LogThreadError::Fenced))
    };
    error.is::<StartTimeWrong>() || error.chain().any(differs)
}

/// Replaces this process by a new one of the same program, with the same number. Returns if that fails.
fn start_again() -> anyhow::Result<()> {
    let mut args = std::env::args_os();
    let program = args.next().context("the name of the program is unknown")?;
    // That of the running program; its file may have been replaced.
    let program = std::env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(|| program.into());
    Err(anyhow::Error::new(std::process::Command::new(&program).args(args).exec())
        .context(format!("cannot start {} again", program.display())))
}

impl Daemon {
    /// Starts all parts of the daemon. Must be called inside a tokio runtime.
    pub async fn start(config: Config, file: Option<PathBuf>, log: Option<LogFilter>) -> anyhow::Result<Daemon> {
        Daemon::start_with_time_source(Box::new(SystemClocks::default()), config, file, log).await
    }

    /// [`Daemon::start`] with another time source.
    pub async fn start_with_time_source(
        time: Box<dyn TimeSource>,
        config: Config,
        file: Option<PathBuf>,
        log: Option<LogFilter>,
    ) -> anyhow::Result<Daemon> {
        let _long_start = systemd::LongStart::begin();
        // Another process may be stopping, which takes some seconds; a daemon that serves its control socket is not.
        let (state_dir, control_socket) = (config.state_dir.clone(), config.control_socket.clone());
        let wait_for_state = move || {
            store::wait_until_unlocked(&state_dir, &|| UnixStream::connect(&control_socket).is_ok())
                .context("cannot start: stop the process that uses the state, or set another state_dir")
        };
        blocking(wait_for_state).await?;
        // Before the state is opened, which takes time.
        let mut settings = config.web_settings();
        let port = match settings.listen {
            Some(address) => Some(web::WebPort::bind(address).await?),
            None => None,
        };
        let web_address = port.as_ref().map(web::WebPort::address);
        settings.listen = web_address;
        if let Some(own) = config.own_games().context("cannot use the names of games (setting site.games)")? {
            games::set_own(own);
        }
        if let Some(countries) =
            config.countries().context("cannot use the database of countries (setting geo.database)")?
        {
            geo::set(countries);
        }
        settings.identity.logo = config.logo().context("cannot use the logo (setting site.logo)")?;
        let site = Arc::new(Site::new(&settings, WebLimits::default()));
        apply_web_settings(&site, &config)?;
        let web = port.map(|port| site.serve(port));
        let for_state = config.clone();
        let (state, log_thread, clock) = blocking(move || open_state(&for_state, time)).await?;
        cluster::copy::remove_leftovers(&config.state_dir);
        let cluster = config.cluster.is_on().then(|| {
            let instance = RandomState::new().build_hasher().finish().max(1);
            let (engine, address) = (config.cluster.engine.clone(), config.cluster.address.clone());
            let cluster = Cluster::new(Member { engine, address, instance });
            cluster.note_file_settings(config.log_settings());
            Arc::new(cluster)
        });
        let now = {
            let clock = clock.clone();
            Arc::new(move || clock.now_ms())
        };
        let (scanner, probes, outcomes) =
            Scanner::start(config.scan_settings(), now).context("cannot start the scanner: section [scan]")?;

        let (engine, commands) = EngineHandle::new();
        let heartbeat = Arc::new(engine_thread::Heartbeat::default());
        let rescans_dropped = Counter::default();
        let capture_counters = Arc::<CaptureCounters>::default();
        let captures = config.capture.is_enabled().then(|| {
            let config = &config.capture;
            CaptureFiles::open(config.dir.clone(), config.keep_days, clock.now_ms(), capture_counters.clone())
        });
        let (log_dir, log_lock) = (log_dir(&config.state_dir), log_thread.file_lock().clone());
        let log_rewriter = LogRewriter::start(log_dir, log_lock, clock.clone()).context("cannot start a thread")?;
        let log_rewriter_status = log_rewriter.status();
        let control = match config.control_socket.as_os_str().is_empty() {
            true => None,
            false => Some(open_control_socket(&config.control_socket)?),
        };
        let stop_waiting = log_thread.stop_flag();
        let scanners = Arc::new(scanners::Scanners::new(&config.scan.region, config.scan.confirm_miss_by));
        let thread = EngineThread::new(
            state,
            Recorders { log: log_thread, log_rewriter, captures },
            clock.clone(),
            Scanning { probes, scanners: scanners.clone() },
            &config,
            heartbeat.clone(),
            rescans_dropped.clone(),
        );
        let views = thread.views();
        let (begun, has_begun) = oneshot::channel();
        let engine_thread = thread.start(commands, outcomes, begun).context("cannot start a thread")?;
        _ = has_begun.await;

        // Nothing can fail from here on: the engine thread ends only by a command.
        let archive = match &cluster {
            // When this engine leads.
            Some(_) => None,
            None => archive_task::Worker::start(config.archive_settings(), engine.clone(), clock.clone()),
        };
        let for_cluster = match &cluster {
            Some(cluster) => {
                let (archive, keep_log_days) = (config.archive_settings(), config.cluster.keep_log_days);
                let follower = Follower::new(archive, keep_log_days, cluster.clone(), engine.clone(), clock.clone());
                Some(follower.context(
                    "cannot join the cluster (section [cluster]; its log is in the database of archive.url)",
                )?)
            }
            None => None,
        };
        let name_search = config.name_search_bytes().map(|bytes| Arc::new(name_search::NameSearch::new(bytes)));
        if let Some(search) = &name_search {
            tokio::spawn(search.clone().run(views.clone()));
            tokio::spawn(search.clone().run_servers(views.clone()));
        }
        let history = Arc::<history::History>::default();
        tokio::spawn(history.clone().run(views.clone()));
        let (reload_scan, reload_scan_rx) = mpsc::channel(1);
        let imports = import_task::ImportTasks::new(&config.state_dir, engine.clone(), views.clone());
        let shared = Arc::new_cyclic(|shared| Shared {
            engine,
            views,
            started_ms: clock.now_ms(),
            clock,
            file,
            log,
            counts: scanner.counters(),
            site,
            admin_connections: ConnectionCounters::default(),
            web_address,
            captures: capture_counters,
            log_rewriter: log_rewriter_status,
            rescans_dropped,
            name_search,
            history,
            changes: AtomicU64::new(0),
            archive: Mutex::new(archive),
            verifying: tokio::sync::Mutex::default(),
            copying: tokio::sync::Mutex::default(),
            measuring: Mutex::default(),
            imports: Mutex::new(imports),
            scanners,
            cluster,
            webhooks: Mutex::new(webhooks::Webhooks::new(shared.clone())),
            reload_scan,
            config: Mutex::new(config.clone()),
        });
        let follower = for_cluster.map(|follower| {
            let leads = shared.clone();
            tokio::spawn(follower.run(async move || leads.begin_to_lead().await))
        });
        if follower.is_none() {
            shared.apply_lists(&config);
        }
        shared.site.set_backend(shared.clone());
        let control = control.map(|socket| shared.site.serve_admins(socket, shared.admin_connections.clone()));
        if web.is_some() {
            tracing::info!(address = web_address.map(tracing::field::display), "the web interface is ready");
        }
        tokio::spawn(shared.scanners.clone().watch(shared.engine.clone()));
        tokio::spawn(reload_scanner(scanner.reloader(), reload_scan_rx));
        Ok(Daemon { shared, scanner, engine_thread, control, web, heartbeat, stop_waiting, follower })
    }

    /// Reports READY, reloads at SIGHUP, and stops when `stop` is cancelled.
    async fn run_until_stopped(mut self, stop: CancellationToken, mut hangup: Signal) -> anyhow::Result<()> {
        systemd::ready();
        tracing::info!(version = env!("CARGO_PKG_VERSION"), "ready");
        let watchdog = systemd::Watchdog::start(self.heartbeat.clone());
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = hangup.recv() => {
                    systemd::reloading();
                    tokio::select! {
                        reloaded = self.shared.reload() => match reloaded {
                            Ok(notes) => notes.iter().for_each(|note| tracing::info!("{note}")),
                            Err(failure) => tracing::error!("{failure}; the old configuration stays in use"),
                        },
                        () = stop.cancelled() => break,
                    }
                    systemd::ready();
                }
                ended = &mut self.engine_thread => {
                    // The engine thread ends only at a shutdown command or at an error.
                    return ended.context("the engine thread panicked")?.context("the engine cannot continue");
                }
            }
        }
        systemd::stopping();
        tracing::info!("stopping");
        let result = self.stop().await;
        drop(watchdog);
        result
    }

    /// Answers a request that only reads.
    pub async fn read<R: Read>(&self, request: R) -> Result<R::Answer, ApiError> {
        self.shared.clone().read(request).await
    }

    /// Executes a request that changes something.
    pub async fn change<R: Change>(&self, request: R) -> Result<R::Answer, ApiError> {
        checked(&request)?;
        self.shared.change(request).await
    }

    /// Stops the parts in order. Error: the last commit failed.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.shared.site.set_stopping();
        // The engine may wait for the database of a cluster.
        self.stop_waiting.store(true, Ordering::Relaxed);
        if let Some(follower) = self.follower.filter(|_| self.shared.follows().is_some()) {
            // It must not take over from a leader that stops, too.
            follower.abort();
            _ = follower.await;
        }
        if let Some(control) = self.control {
            log_if_slow("requests of the control socket", control.stop()).await;
        }
        if let Some(web) = self.web {
            log_if_slow("answers of the web interface", web.stop()).await;
        }
        self.shared.imports.lock().expect("imports lock poisoned").stop();
        self.shared.webhooks.lock().expect("webhooks lock poisoned").stop();
        self.shared.engine.send(Command::StopScanning).await;
        let scanner = self.scanner.shutdown(SCAN_DRAIN_MAX);
        log_if_slow(&format!("scans in flight, at most {} s", SCAN_DRAIN_MAX.as_secs()), scanner).await;
        // The worker drains the outbox through the engine, which commits first.
        let drain_max_s = self.shared.config.lock().expect("config lock poisoned").archive.drain_timeout_s;
        systemd::extend_stop(Duration::from_secs(drain_max_s) + LAST_COMMIT_MAX);
        let archive = format!("the archive, at most {drain_max_s} s (archive.drain_timeout_s)");
        log_if_slow(&archive, self.shared.stop_archive()).await;
        self.shared.engine.send(Command::Shutdown).await;
        log_if_slow("the last commit", self.engine_thread).await.context("the engine thread panicked")?
    }
}

/// Waits for a step of the stop. Logs what is waited for if it takes long.
async fn log_if_slow<T>(what: &str, step: impl Future<Output = T>) -> T {
    tokio::pin!(step);
    match timeout(LOG_STOP_AFTER, &mut step).await {
        Ok(done) => done,
        Err(_) => {
            tracing::info!("the stop waits for {what}");
            step.await
        }
    }
}

/// Runs blocking work on another thread. A stop during the start does not wait for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await?
}

/// Opens the log for writing. The state contains its events.
fn open_log(config: &Config, first_seq: u64, now_ms: i64) -> anyhow::Result<(LogWriter, BatchBuilder)> {
    let settings = WriterSettings::new(log_dir(&config.state_dir));
    let (writer, builder, cut) = LogWriter::open(&settings, first_seq, now_ms).context("cannot open the log")?;
    if let Some(cut) = cut {
        tracing::warn!("{cut}; it is removed");
    }
    Ok((writer, builder))
}

/// Opens the state and its log, and applies what the state does not have. Takes up to minutes.
fn open_state(
    config: &Config,
    time: Box<dyn TimeSource>,
) -> anyhow::Result<((State, EventApplier), LogThread, Arc<Clock>)> {
    create_parent(&config.state_dir, "state_dir")?;
    let failed = || format!("cannot open the state directory {}", config.state_dir.display());
    let recovered = recovery::open(config, &config.state_dir, &|| false).with_context(failed)?;
    let mut needs_checkpoint = recovered.needs_checkpoint();
    let Recovered { mut state, applier, position, events, last_seq, .. } = recovered;
    if events > 0 {
        tracing::info!(events, "applied the log since the last checkpoint");
    }
    if position.is_none() {
        // A state with a position and without a log has lost it.
        state.write_checkpoint(0).with_context(failed)?;
    }
    let system_ms = time.read().system_ms;
    let log = match config.cluster.is_on() {
        true => {
            let is_without_log = last_seq == 0 && state.engine.model().now_ms() > 0;
            open_copy(config, &applier, if is_without_log { WITHOUT_LOG } else { last_seq })?
        }
        false => {
            let (writer, builder) = open_log(config, position.unwrap_or(0) + 1, system_ms)?;
            let mut log = LogThread::start(writer, builder, config.result_settings(), config.log_retention())
                .context("cannot start a thread")?;
            // What is not an event of the log.
            let planned = window_rebuild::plan_window_types(&state.engine, &log_dir(&config.state_dir));
            if let Some((step, _)) = planned.context("cannot rebuild windows from the log")? {
                state.apply_rebuild(&step).with_context(failed)?;
                needs_checkpoint = true;
            }
            let began_ms = match state.engine.model().now_ms() {
                0 => system_ms,
                now_ms => now_ms,
            };
            log.begin_if_new(began_ms).context("cannot begin the log")?;
            log
        }
    };
    state.commit().with_context(failed)?;
    if needs_checkpoint {
        // Not with the settings of a new log, whose time may be corrected.
        state.write_checkpoint(log.earlier_seq()).with_context(failed)?;
    }
    let clock = Arc::new(Clock::with_source(time, state.engine.model().now_ms(), config.clock_settings()));
    if config.cluster.is_on() {
        // The log of a cluster cannot be taken back.
        clock.accept_start_time();
    }
    if clock.is_start_time_open() {
        tracing::info!(
            after_last_scan_s = (clock.now_ms() - state.engine.model().now_ms()) / 1_000,
            "the system clock is not synchronised; until the clock is trusted, nothing is archived and no checkpoint is \
             written, so that a wrong time can be taken back"
        );
    }
    state.engine.reschedule_all(clock.now_ms());
    Ok(((state, applier), log, clock))
}

/// Opens the log as a copy of that of a leader. The state contains its events.
fn open_copy(config: &Config, applier: &EventApplier, applied: u64) -> anyhow::Result<LogThread> {
    let (copy, decoder, cut) =
        LogCopy::open(&log_dir(&config.state_dir), applied + 1).context("cannot open the log")?;
    if let Some(cut) = cut {
        tracing::warn!("{cut}; it is removed");
    }
    let log = LogThread::start_following((copy, decoder), applied, applier.settings(), config.log_retention());
    log.context("cannot start a thread")
}

/// Tokens and certificate are read again at each reload.
fn apply_web_settings(site: &Site, config: &Config) -> anyhow::Result<()> {
    if let Some(files) = config.tls_files() {
        site.set_certificate(
            files.load().context("cannot use the certificate (settings web.tls_cert and web.tls_key)")?,
        );
    }
    site.set_tokens(&config.tokens());
    Ok(())
}

async fn reload_scanner(reloader: Reloader, mut settings: mpsc::Receiver<ScanSettings>) {
    while let Some(settings) = settings.recv().await {
        if let Err(error) = reloader.reload(settings).await {
            tracing::error!("{error}; the scanner keeps its old settings");
        }
    }
}

fn open_control_socket(path: &Path) -> anyhow::Result<AdminSocket> {
    create_parent(path, "control_socket")?;
    AdminSocket::bind(path).context("cannot open the control socket (setting control_socket)")
}

/// Creates the directory of a configured path.
fn create_parent(path: &Path, setting: &str) -> anyhow::Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    std::fs::create_dir_all(parent)
        .with_context(|| format!("cannot create the directory {} (setting {setting})", parent.display()))
}

/// Whether the next start could open the state that a new config names.
async fn state_check(current: &Config, new: &Config) -> StateCheck {
    if current.state_dir == new.state_dir {
        let windows = current.windows().expect("the config in use is valid");
        return check_open_state(new, windows.calendar().zone_name());
    }
    let new = new.clone();
    tokio::task::spawn_blocking(move || check_state_dir(&new)).await.unwrap_or(StateCheck::Fits)
}

impl Shared {
    /// Whether another engine of a cluster changes the state.
    fn follows(&self) -> Option<&Cluster> {
        self.cluster.as_deref().filter(|cluster| !cluster.leads())
    }

    /// This engine leads its cluster from now on.
    async fn begin_to_lead(&self) {
        let config = self.config.lock().expect("config lock poisoned").clone();
        self.reload_archive(config.archive_settings()).await;
        self.apply_lists(&config);
    }

    /// Applies changed archive settings: the old worker writes what it can, then the new
    /// one starts.
    async fn reload_archive(&self, settings: crate::archive::ArchiveSettings) {
        if self.follows().is_some() {
            return;
        }
        let same = |worker: &archive_task::Worker| *worker.settings() == settings;
        let current = self.archive.lock().expect("archive lock poisoned").as_ref().map(same);
        if current.unwrap_or(!settings.is_on()) {
            return;
        }
        self.stop_archive().await;
        let worker = archive_task::Worker::start(settings, self.engine.clone(), self.clock.clone());
        *self.archive.lock().expect("archive lock poisoned") = worker;
    }

    async fn stop_archive(&self) {
        let worker = self.archive.lock().expect("archive lock poisoned").take();
        if let Some(worker) = worker {
            worker.stop().await;
        }
    }

    fn apply_lists(&self, config: &Config) {
        if self.follows().is_some() {
            return;
        }
        let mut imports = self.imports.lock().expect("imports lock poisoned");
        imports.apply(config);
        self.webhooks.lock().expect("webhooks lock poisoned").apply(config);
    }

    /// Reads the configuration file again. On an error all settings stay as they are.
    async fn reload(&self) -> Result<Vec<String>, ApiError> {
        let Some(file) = &self.file else {
            return Err(ApiError::new(
                ErrorCode::Refused,
                "there is no configuration file: the built-in defaults are in use",
            ));
        };
        let refused = |error: String| ApiError::new(ErrorCode::Refused, error);
        // A configuration that the next start would refuse is refused now.
        let checked = Config::check_as_daemon(file).map_err(|error| refused(error.to_string()))?;
        let current = self.config.lock().expect("config lock poisoned").clone();
        if let StateCheck::Problem { key, message } = state_check(&current, &checked.config).await {
            return Err(refused(checked.problem(key, message).to_string()));
        }
        let reloaded = current.plan_reload(&checked.config);
        let config = reloaded.config;
        if let Some(cluster) = self.cluster.as_ref().filter(|cluster| cluster.leads()) {
            cluster.reload_refusal(&config).map_or(Ok(()), |error| Err(refused(error)))?;
        }
        let engine = config.engine_settings().map_err(|error| refused(error.to_string()))?;
        if config.boards.windows != current.boards.windows && self.follows().is_none() {
            self.engine.call(|thread| Ok(thread.check_log())).await??;
        }
        if let Some(log) = &self.log {
            log.set(&config.log_filter).map_err(|error| refused(format!("{error:#}")))?;
        }
        apply_web_settings(&self.site, &config).map_err(|error| refused(format!("{error:#}")))?;
        let reloaded_config = config.clone();
        let reload = self.engine.call_later(move |thread, reply| {
            let notes = thread.reload(&reloaded_config, engine)?;
            thread.reply_to_reload(reply, notes);
            Ok(())
        });
        let of_windows = reload.await?;
        self.clock.reload(config.clock_settings());
        _ = self.reload_scan.send(config.scan_settings()).await;
        self.reload_archive(config.archive_settings()).await;
        self.apply_lists(&config);
        self.cluster.iter().for_each(|cluster| cluster.note_file_settings(config.log_settings()));
        *self.config.lock().expect("config lock poisoned") = config;
        let mut notes = checked.notes;
        if !reloaded.changed.is_empty() {
            notes.push(format!("changed: {}", reloaded.changed.join(", ")));
        }
        if !reloaded.needs_restart.is_empty() {
            notes.push(format!("kept until a restart: {}", reloaded.needs_restart.join(", ")));
        }
        notes.extend(of_windows);
        // Settings may change answers, such as the order of boards.
        self.changes.fetch_add(1, Ordering::Relaxed);
        if notes.is_empty() {
            notes.push("nothing has changed".to_owned());
        }
        Ok(notes)
    }
}
