//! The daemon: wiring, signals, start and stop order.
//!
//! One thread owns the engine and the store ([`engine_thread`]). The scanner, the archive
//! worker, the control socket and the web interface are tasks that communicate with it over
//! bounded channels. Start order: port of the web interface, state, scanner, archive, socket,
//! answers of the web interface, then READY. Stop order: socket, web interface, scanner (scans in
//! flight may complete), last commit, archive (drained up to a limit), state.

mod archive_resend;
mod archive_task;
mod archive_verify;
mod backup;
mod board_builder;
mod control_handler;
mod disk_space;
mod engine_thread;
mod history;
mod import_task;
mod log_rewriting;
mod name_search;
mod rescan_results;
mod systemd;
mod web_backend;
pub mod window_rebuild;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::capture::{CaptureCounters, CaptureFiles};
use crate::clock::{self, Clock, SystemClocks, TimeSource};
use crate::config::Config;
use crate::control::{ApiError, ControlCounters, ErrorCode, Listener, Request, ResponseEnd, Row};
use crate::daemon::engine_thread::{Command, EngineThread, Isolation, Recorders};
use crate::daemon::log_rewriting::{LogRewriter, LogRewriterStatus};
use crate::logging::LogFilter;
use crate::model::view::ClockTrust;
use crate::scan::{ScanCounters, Scanner};
use crate::scan_log::{self, Recorder};
use crate::shutdown;
use crate::state::{ReplayFeed, State};
use crate::web::{self, WebLimits};

/// Queued requests and archive commands. Each sender waits for its reply, so the queue is
/// longer than the number of senders.
const COMMAND_QUEUE_MAX: usize = 256;

/// Longest wait for scans in flight at a stop.
const SCAN_DRAIN_MAX: Duration = Duration::from_secs(5);

/// A running daemon.
pub struct Daemon {
    shared: Arc<Shared>,
    scanner: Scanner,
    engine_thread: tokio::task::JoinHandle<anyhow::Result<()>>,
    control: Option<(oneshot::Sender<()>, tokio::task::JoinHandle<()>)>,
    /// `None`: the web interface is off.
    web: Option<web::Server>,
    heartbeat: Arc<engine_thread::Heartbeat>,
}

/// State shared by the tasks of a daemon.
struct Shared {
    commands: mpsc::Sender<Command>,
    clock: Arc<Clock>,
    started_ms: i64,
    file: Option<PathBuf>,
    config: Mutex<Config>,
    log: Option<LogFilter>,
    counts: Arc<ScanCounters>,
    control: Arc<ControlCounters>,
    /// `None`: the web interface is off.
    web_address: Option<SocketAddr>,
    captures: Arc<CaptureCounters>,
    /// `None`: scans are not recorded.
    scan_log: Option<LogRewriterStatus>,
    /// Results of rescans that their clients did not read in time.
    rescans_dropped: rescan_results::DropCounter,
    /// `None`: searches are off.
    name_search: Option<Arc<name_search::NameSearch>>,
    history: Arc<history::History>,
    /// Requests that were not read-only.
    changes: AtomicU64,
    /// `None`: no archive is configured.
    archive: Mutex<Option<archive_task::Worker>>,
    /// Held while the archive is verified.
    verifying: tokio::sync::Mutex<()>,
    imports: Mutex<import_task::ImportTasks>,
    /// New scan settings for the scanner.
    reload_scan: mpsc::Sender<crate::scan::ScanSettings>,
}

/// Runs until SIGTERM or SIGINT; reloads at SIGHUP.
pub fn run(config: Config, file: Option<PathBuf>, log: LogFilter) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let stop = shutdown::on_signal()?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut daemon = Daemon::start(config, file, Some(log)).await?;
        systemd::ready();
        tracing::info!(version = env!("CARGO_PKG_VERSION"), "ready");
        let watchdog = systemd::Watchdog::start(daemon.heartbeat.clone());
        let ended = loop {
            tokio::select! {
                () = stop.cancelled() => break None,
                _ = hangup.recv() => {
                    systemd::reloading();
                    match daemon.shared.reload().await {
                        Ok(end) => end.notes.iter().for_each(|note| tracing::info!("{note}")),
                        Err(failure) => tracing::error!("{failure}; the old configuration stays in use"),
                    }
                    systemd::ready();
                }
                ended = &mut daemon.engine_thread => break Some(ended),
            }
        };
        if let Some(ended) = ended {
            // The engine thread ends only at a shutdown command or at an error.
            return ended.context("the engine thread panicked")?.context("the engine cannot continue");
        }
        systemd::stopping();
        tracing::info!("stopping");
        let result = daemon.stop().await;
        drop(watchdog);
        result
    })
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
        // First: a port that is in use is reported at once, and opening the state takes time.
        let web = match config.web_settings() {
            Some(settings) => Some(web::Listener::bind(settings).await?),
            None => None,
        };
        let web_address = web.as_ref().map(web::Listener::address);
        let web = web.map(|listener| listener.start(WebLimits::default()));
        if let Some(parent) = config.state_dir.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        let (state_config, state_dir) = (config.clone(), config.state_dir.clone());
        let mut state =
            tokio::task::spawn_blocking(move || State::open_configured(&state_config, &state_config.state_dir, true))
                .await?
                .with_context(|| format!("cannot open the state directory {}", state_dir.display()))?;
        let mut recorder = config
            .recorder_settings()
            .map(|settings| {
                let path = settings.path.clone();
                let recorder = Recorder::open(settings).context("cannot record scans (setting scan_log.path)")?;
                window_rebuild::plan_window_types(&mut state.engine, Some(&path));
                apply_log_tail(&mut state, &path)?;
                anyhow::Ok(recorder)
            })
            .transpose()?;
        if recorder.is_none() {
            window_rebuild::plan_window_types(&mut state.engine, None);
        }
        let clock = Arc::new(Clock::with_source(time, state.engine.now_ms(), config.clock_settings()));
        state.engine.reschedule_all(clock.now_ms());
        // Scans recorded under a clock that may turn out to be wrong get their own file.
        let since_stop_ms = clock.now_ms().saturating_sub(state.engine.now_ms());
        if let Some(recorder) = &mut recorder
            && clock.status().trust == ClockTrust::Untrusted
            && since_stop_ms > clock::LARGE_JUMP_MS
        {
            recorder.start_new_file().context("cannot start a new scan log file")?;
        }

        let now = {
            let clock = clock.clone();
            Arc::new(move || clock.now_ms())
        };
        let (scanner, probes, outcomes) =
            Scanner::start(config.scan_settings(), now).context("cannot start the scanner: section [scan]")?;

        let (commands, commands_rx) = mpsc::channel(COMMAND_QUEUE_MAX);
        let heartbeat = Arc::new(engine_thread::Heartbeat::default());
        let rescans_dropped = rescan_results::DropCounter::default();
        let capture_counters = Arc::<CaptureCounters>::default();
        let captures = config.capture.is_enabled().then(|| {
            let config = &config.capture;
            CaptureFiles::open(config.dir.clone(), config.keep_days, clock.now_ms(), capture_counters.clone())
        });
        let log_rewriter = recorder.as_ref().map(|recorder| {
            let lock = recorder.file_lock().clone();
            LogRewriter::start(&config.scan_log.path, lock, commands.clone(), clock.clone())
        });
        let log_rewriter = log_rewriter.transpose().context("cannot start a thread")?;
        let scan_log = log_rewriter.as_ref().map(LogRewriter::status);
        let thread = EngineThread::new(
            state,
            Recorders { scan_log: recorder, log_rewriter, captures },
            clock.clone(),
            probes,
            &config,
            heartbeat.clone(),
            rescans_dropped.clone(),
        );
        let engine_thread = tokio::task::spawn_blocking(move || thread.run(commands_rx, outcomes));

        let archive = archive_task::Worker::start(config.archive_settings(), commands.clone(), clock.clone());
        let name_search = config.name_search_bytes().map(|bytes| Arc::new(name_search::NameSearch::new(bytes)));
        if let Some(search) = &name_search {
            tokio::spawn(search.clone().run(commands.clone()));
            tokio::spawn(search.clone().run_servers(commands.clone()));
        }
        let history = Arc::<history::History>::default();
        tokio::spawn(history.clone().run(commands.clone()));
        let (reload_scan, mut reload_scan_rx) = mpsc::channel(1);
        let shared = Arc::new(Shared {
            commands,
            started_ms: clock.now_ms(),
            clock,
            file,
            log,
            counts: scanner.counters(),
            control: Arc::default(),
            web_address,
            captures: capture_counters,
            scan_log,
            rescans_dropped,
            name_search,
            history,
            changes: AtomicU64::new(0),
            archive: Mutex::new(archive),
            verifying: tokio::sync::Mutex::default(),
            imports: Mutex::default(),
            reload_scan,
            config: Mutex::new(config.clone()),
        });
        shared.apply_imports(&config);
        let mut daemon = Daemon { shared: shared.clone(), scanner, engine_thread, control: None, web, heartbeat };

        if !config.control_socket.as_os_str().is_empty() {
            if let Some(parent) = config.control_socket.parent() {
                std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
            }
            let mut listener = Listener::bind(&config.control_socket).context("cannot open the control socket")?;
            listener.set_counters(shared.control.clone());
            let (stop, stopped) = oneshot::channel();
            let serving = tokio::spawn(listener.serve(shared.clone(), async move { _ = stopped.await }));
            daemon.control = Some((stop, serving));
        }
        if let Some(web) = &daemon.web {
            web.set_backend(shared.clone());
            tracing::info!(address = ?web_address, "the web interface is ready");
        }
        let scanner = daemon.scanner.reloader();
        tokio::spawn(async move {
            while let Some(settings) = reload_scan_rx.recv().await {
                if let Err(error) = scanner.reload(settings).await {
                    tracing::error!("{error}; the scanner keeps its old settings");
                }
            }
        });
        Ok(daemon)
    }

    /// Handles a request whose answer is complete at once, as over the control socket.
    pub async fn ask(&self, request: Request) -> Result<Vec<Row>, ApiError> {
        self.shared.ask(request, Isolation::ReadCommitted).await
    }

    /// Stops the parts in order. Error: the last commit failed.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.web.iter().for_each(web::Server::set_stopping);
        if let Some((stop, serving)) = self.control {
            _ = stop.send(());
            _ = serving.await;
        }
        if let Some(web) = self.web {
            web.stop().await;
        }
        self.shared.imports.lock().expect("imports lock poisoned").stop();
        _ = self.shared.commands.send(Command::StopScanning).await;
        self.scanner.shutdown(SCAN_DRAIN_MAX).await;
        // The worker drains the outbox through the engine, which commits first.
        self.shared.stop_archive().await;
        _ = self.shared.commands.send(Command::Shutdown).await;
        self.engine_thread.await.context("the engine thread panicked")??;
        tracing::info!("stopped; all state is on disk");
        Ok(())
    }
}

/// Applies the scans that are in the scan log and not in the state: the log is written just
/// before each commit, and a crash may come between the two. A replay of the log therefore
/// always yields the recorded state.
///
/// Reads only the current file: a file is closed when all its scans are committed. Older
/// files may have later times than the state, if an admin has set recorded time back.
fn apply_log_tail(state: &mut State, log: &Path) -> anyhow::Result<()> {
    let mut tail = scan_log::read_tail(log, |url, t_ms| state.engine.is_newer(url, t_ms))?;
    let mut feed = ReplayFeed::background();
    while let Some((url, outcome)) = tail.next_new(|url, t_ms| state.engine.is_newer(url, t_ms))? {
        feed.observe(state, url, outcome)?;
    }
    if tail.damaged() > 0 {
        let (log, damaged) = (log.display(), tail.damaged());
        tracing::warn!(damaged, %log, "lines at the end of the scan log cannot be read and are skipped");
    }
    if feed.scans() > 0 {
        tracing::info!(
            scans = feed.scans(),
            "the last scans of the scan log were not in the state and have been applied"
        );
        state.commit()?;
    }
    Ok(())
}

impl Shared {
    /// Sends a command to the engine thread and waits for the reply.
    async fn send_command<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, ApiError> {
        let reply = Command::send(&self.commands, command).await;
        reply.ok_or_else(|| ApiError::new(ErrorCode::ShuttingDown, "the daemon is stopping"))
    }

    /// Applies changed archive settings: the old worker writes what it can, then the new
    /// one starts.
    async fn reload_archive(&self, settings: crate::archive::ArchiveSettings) {
        let same = |worker: &archive_task::Worker| *worker.settings() == settings;
        let current = self.archive.lock().expect("archive lock poisoned").as_ref().map(same);
        if current.unwrap_or(!settings.is_on()) {
            return;
        }
        self.stop_archive().await;
        let worker = archive_task::Worker::start(settings, self.commands.clone(), self.clock.clone());
        *self.archive.lock().expect("archive lock poisoned") = worker;
    }

    async fn stop_archive(&self) {
        let worker = self.archive.lock().expect("archive lock poisoned").take();
        if let Some(worker) = worker {
            worker.stop().await;
        }
    }

    fn apply_imports(&self, config: &Config) {
        let mut imports = self.imports.lock().expect("imports lock poisoned");
        imports.apply(config, &self.commands);
    }

    /// Reads the configuration file again. On an error all settings stay as they are.
    async fn reload(&self) -> Result<ResponseEnd, ApiError> {
        let Some(file) = &self.file else {
            return Err(ApiError::new(
                ErrorCode::Refused,
                "there is no configuration file: the built-in defaults are in use",
            ));
        };
        let refused = |error: String| ApiError::new(ErrorCode::Refused, error);
        let new = Config::load(file).map_err(|error| refused(error.to_string()))?;
        let reloaded = self.config.lock().expect("config lock poisoned").plan_reload(&new);
        let config = reloaded.config;
        let engine = config.engine_settings().map_err(|error| refused(error.to_string()))?;
        if let Some(log) = &self.log {
            log.set(&config.log_filter).map_err(|error| refused(format!("{error:#}")))?;
        }
        let store = config.store.clone();
        let (reply, of_windows) = oneshot::channel();
        let allow_private = config.scan.allow_private;
        let engine = Box::new(engine);
        let capture_keep_days = config.capture.keep_days;
        let command = Command::Reload { engine, store, allow_private, capture_keep_days, reply };
        _ = self.commands.send(command).await;
        self.clock.reload(config.clock_settings());
        _ = self.reload_scan.send(config.scan_settings()).await;
        self.reload_archive(config.archive_settings()).await;
        self.apply_imports(&config);
        *self.config.lock().expect("config lock poisoned") = config;
        let mut notes = Vec::new();
        if !reloaded.changed.is_empty() {
            notes.push(format!("changed: {}", reloaded.changed.join(", ")));
        }
        if !reloaded.needs_restart.is_empty() {
            notes.push(format!("kept until a restart: {}", reloaded.needs_restart.join(", ")));
        }
        notes.extend(of_windows.await.unwrap_or_default());
        // Settings may change answers, such as the order of boards.
        self.changes.fetch_add(1, Ordering::Relaxed);
        if notes.is_empty() {
            notes.push("nothing has changed".to_owned());
        }
        Ok(ResponseEnd { notes })
    }
}
