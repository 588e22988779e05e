//! The real daemon in its own temporary directory: config file, state directory,
//! control socket and log. For tests that use `clqd` as a user does.
//!
//! Nothing here sleeps for a fixed time: [`wait_until`] and [`wait_for`] wait for a
//! condition, with a limit that is long enough for a loaded machine.

#![allow(dead_code, reason = "each test program uses a part of this module")]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clqd::api::requests;
use clqd::client::{Client, ClientError};
use clqd::fleet::{FaultShares, Fleet, Ports, ProtocolShares, RateLimit, ServeSettings, World, world};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Time limit for a condition. A passing test needs seconds.
pub const WAIT_MAX: Duration = Duration::from_secs(90);

/// Longest time until a process ends that is expected to end, so that a test that hangs says where. The longest
/// take some 20 s.
const END_MAX: Duration = Duration::from_secs(600);

/// A config of the web interface on a free port, for tests that send more requests than a visitor may.
pub const WEB_WITHOUT_RATE_LIMIT: &str =
    "[web]\nlisten = \"127.0.0.1:0\"\nclient_requests_per_second_max = 10000\nclient_burst_requests = 10000\n";

/// Keys of `[scan]` for tests that wait until a server has not answered.
pub const QUICK_TIMEOUTS: &str = "timeout_ms = 400\nretries = 1\n";

/// Waits until `condition` returns a value. Panics after [`WAIT_MAX`].
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(began.elapsed() < WAIT_MAX, "not within {WAIT_MAX:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until `condition` is true. Panics after [`WAIT_MAX`].
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Copies the program into a directory. Other users may not enter that of the build.
///
/// Another process writes the copy: a test that starts a process at that moment would pass it a file that this
/// process has open for writing, and a program that is open for writing cannot be started ("Text file busy").
pub fn copy_of_program(dir: &Path) -> PathBuf {
    let copy = dir.join("clqd");
    let status = Command::new("cp").arg(env!("CARGO_BIN_EXE_clqd")).arg(&copy).status().unwrap();
    assert!(status.success(), "cp: {status}");
    copy
}

/// The number in an environment variable.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |n| n.parse().unwrap_or_else(|_| panic!("{name} is not a number: {n}")))
}

/// The seed of a random test.
pub fn seed() -> u64 {
    let random = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_millis() as u64 % 1_000_000;
    number("CLQD_SEED", random)
}

/// Copies a file or a directory to a path that does not exist, or over a file.
#[track_caller]
pub fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// Runs a command that must succeed.
#[track_caller]
pub fn run(command: &mut Command) {
    try_run(command).unwrap_or_else(|error| panic!("{error}"));
}

/// Error: the command, its status and its output.
pub fn try_run(command: &mut Command) -> Result<(), String> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{command:?}: {}: {}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// A temporary directory with the files of a daemon.
pub struct Sandbox {
    dir: tempfile::TempDir,
    state: PathBuf,
    /// Added to the environment of every `clqd`.
    env: Vec<(String, String)>,
}

impl Sandbox {
    /// Writes a config that scans loopback addresses every second or two. `extra` is TOML:
    /// top-level keys first, then sections other than `[scan]` and `[store]`.
    pub fn new(extra: &str) -> Sandbox {
        let dir = tempfile::Builder::new().prefix("clqd-test-").tempdir().expect("a temporary directory");
        let state = dir.path().join("state");
        let sandbox = Sandbox { dir, state, env: Vec::new() };
        sandbox.configure(extra);
        sandbox
    }

    pub fn with_env(mut self, name: &str, value: impl Into<String>) -> Sandbox {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Another state directory, relative to the directory. Configs that are written later name it.
    pub fn with_state(mut self, name: &str) -> Sandbox {
        self.state = self.path(name);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.state.clone()
    }

    pub fn socket(&self) -> PathBuf {
        self.path("control.sock")
    }

    pub fn config(&self) -> PathBuf {
        self.path("clqd.toml")
    }

    /// Writes the config file again.
    pub fn configure(&self, extra: &str) {
        self.configure_all("", "", extra);
    }

    /// Writes the config file again, with further keys of `[scan]`.
    pub fn configure_scan(&self, scan: &str, extra: &str) {
        self.configure_all(scan, "", extra);
    }

    /// Writes the config file again, with further keys of `[store]`.
    pub fn configure_store(&self, store: &str, extra: &str) {
        self.configure_all("", store, extra);
    }

    /// Writes the config file again, with further keys of `[scan]` and `[store]`.
    pub fn configure_all(&self, scan: &str, store: &str, extra: &str) {
        let (state, socket) = (self.state(), self.socket());
        // Daemons of tests run in parallel, so they must not share the default port.
        let web = if extra.contains("[web]") { "" } else { "[web]\nlisten = \"\"\n" };
        let intervals =
            if scan.contains("interval_class1_s") { "" } else { "interval_class1_s = 1\ninterval_class2_s = 2\n" };
        // A server that misses its first scan is scanned again after a day only.
        let timeouts = if scan.contains("timeout_ms") { "" } else { "timeout_ms = 2000\nretries = 4\n" };
        let commit_interval = if store.contains("commit_interval_ms") { "" } else { "commit_interval_ms = 50\n" };
        let text = format!(
            "state_dir = {state:?}\ncontrol_socket = {socket:?}\n{extra}\n\
             [scan]\nallow_private = true\nlimit_loopback = false\n{timeouts}\
             address_packets_per_second_max = 1000\naddress_burst_packets = 1000\n\
             subnet_packets_per_second_max = 100000\nsubnet_burst_packets = 100000\n\
             {intervals}{scan}\n\
             {web}\
             [store]\ncache_bytes = 16777216\n{commit_interval}{store}\n"
        );
        fs::write(self.config(), text).expect("the config file");
    }

    /// A `clqd` command with this directory's config.
    pub fn command<I: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clqd"));
        command.arg("--config").arg(self.config()).args(args).stdin(Stdio::null());
        // Variables of the test's own environment must not affect the daemon.
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC").env_remove("JOURNAL_STREAM");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run<I: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = I>) -> CommandOutput {
        self.run_with_env(args, &[])
    }

    /// Runs a command with additional environment variables.
    pub fn run_with_env<I: AsRef<std::ffi::OsStr>>(
        &self,
        args: impl IntoIterator<Item = I>,
        env: &[(&str, &str)],
    ) -> CommandOutput {
        let mut command = self.command(args);
        command.envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("clqd starts");
        let pid = Pid::from_raw(child.id().cast_signed());
        let (ended, output) = mpsc::channel();
        std::thread::spawn(move || ended.send(child.wait_with_output()));
        let output = output.recv_timeout(END_MAX).unwrap_or_else(|_| {
            // The thread that reads its output waits for it.
            let _ = kill(pid, Signal::SIGKILL);
            panic!("did not end within {END_MAX:?}: {command:?}");
        });
        CommandOutput::of(output.expect("clqd ends"))
    }

    /// Runs a command that must succeed. Returns its standard output.
    #[track_caller]
    pub fn ok<I: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = I>) -> String {
        let done = self.run(args);
        assert!(done.status.success(), "{}: {}{}", done.status, done.out, done.err);
        done.out
    }

    /// Runs a command with `--json`, which must succeed. Returns its rows.
    #[track_caller]
    pub fn json<I: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Vec<Value> {
        let mut all = vec![std::ffi::OsString::from("--json")];
        all.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        rows(&self.ok(all))
    }

    /// The rows of `servers list`.
    #[track_caller]
    pub fn list(&self, filter: &[&str]) -> Vec<Value> {
        self.json([&["servers", "list"], filter].concat())
    }

    /// The entries of the first 1,000 players of a server.
    #[track_caller]
    pub fn top(&self, server: &str, ranking: &str) -> Vec<Value> {
        let rows = self.json(["top", server, "--ranking", ranking, "-n", "1000"]);
        rows.into_iter().filter(|row| row["kind"] == "entry").collect()
    }

    /// Adds all servers of a fleet.
    #[track_caller]
    pub fn add_servers(&self, fleet: &Fleet) {
        self.ok([vec!["servers".into(), "add".into()], fleet.urls()].concat());
    }

    /// The response of `clqd status`.
    #[track_caller]
    pub fn status(&self) -> Value {
        self.json(["status"]).remove(0)
    }

    /// Labels of all weeks in the state.
    #[track_caller]
    pub fn weeks(&self) -> Vec<String> {
        let status = self.status();
        let weeks = status["engine"]["weeks"].as_array().expect("weeks").iter();
        weeks.map(|week| week["week"].as_str().expect("a label").to_owned()).collect()
    }

    /// Replays a log, which is a state directory or a file, into a state directory.
    #[track_caller]
    pub fn replay(&self, log: &Path, state: &Path) {
        self.ok(["replay".as_ref(), "--state".as_ref(), state.as_os_str(), log.as_os_str()]);
    }

    /// The log of the state directory as JSON lines.
    #[track_caller]
    pub fn log_lines(&self) -> String {
        self.ok(["log", "export"])
    }

    /// Compares the state of a stopped daemon with a replay of its log.
    #[track_caller]
    pub fn assert_replay_equals_state(&self) {
        let fresh = self.path("replayed");
        self.replay(&self.state(), &fresh);
        let weeks = self.weeks();
        assert!(!weeks.is_empty());
        for week in weeks {
            let (live, replayed) = (self.export(&self.state(), &week), self.export(&fresh, &week));
            assert!(!live.is_empty(), "{week}: the export has rows");
            let different = live.lines().zip(replayed.lines()).find(|(a, b)| a != b);
            assert!(live == replayed, "{week}: live and replayed rows differ: {different:?}");
        }
        let (live, replayed) = (self.export_sessions(&self.state()), self.export_sessions(&fresh));
        let replayed: Vec<&str> = replayed.lines().collect();
        match self.log_lines().contains(r#""command":"clock""#) {
            false => assert_eq!(live.lines().collect::<Vec<_>>(), replayed),
            // A clock that is ahead deletes what is old by it. A replay closes weeks and deletes at its end.
            true => assert!(live.lines().all(|session| replayed.contains(&session)), "{live}"),
        }
    }

    /// Every complete session of a state directory, as `clqd export` prints it.
    #[track_caller]
    pub fn export_sessions(&self, state: &Path) -> String {
        self.ok(["export".as_ref(), "--state".as_ref(), state.as_os_str(), "--sessions".as_ref()])
    }

    /// Every row of a week of a state directory, as `clqd export` prints it.
    #[track_caller]
    pub fn export(&self, state: &Path, week: &str) -> String {
        self.ok(["export".as_ref(), "--state".as_ref(), state.as_os_str(), "--week".as_ref(), week.as_ref()])
    }

    /// Starts the daemon and waits until it responds.
    pub fn start(&self) -> Daemon {
        let mut daemon = self.spawn();
        daemon.wait_until_ready();
        daemon
    }

    /// Starts the daemon with additional environment variables and waits until it responds.
    pub fn start_with_env(&self, env: &[(&str, &str)]) -> Daemon {
        let mut daemon = self.spawn_with_env(env);
        daemon.wait_until_ready();
        daemon
    }

    /// Starts the daemon without waiting until it responds.
    pub fn spawn(&self) -> Daemon {
        self.spawn_with_env(&[])
    }

    /// Starts the daemon with additional environment variables, without waiting until it responds.
    pub fn spawn_with_env(&self, env: &[(&str, &str)]) -> Daemon {
        let log = self.path("daemon.log");
        let file = fs::OpenOptions::new().create(true).append(true).open(&log).expect("the log");
        let log_from = file.metadata().expect("the log").len();
        let child = self
            .command(["run"])
            .envs(env.iter().copied())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .expect("clqd starts");
        Daemon { child, log, log_from, socket: self.socket() }
    }
}

/// The result of a command that has ended.
pub struct CommandOutput {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    fn of(output: Output) -> CommandOutput {
        let text = |bytes| String::from_utf8(bytes).expect("clqd prints UTF-8");
        CommandOutput { status: output.status, out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Parses lines of JSON.
#[track_caller]
pub fn rows(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// A running daemon; killed when dropped.
pub struct Daemon {
    child: Child,
    log: PathBuf,
    log_from: u64,
    socket: PathBuf,
}

impl Daemon {
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    pub fn wait_until_ready(&mut self) {
        let began = Instant::now();
        loop {
            // A client waits, which a thread of a test's runtime may not.
            let answers = || Client::connect(&self.socket)?.send(&requests::Status {}, |_| Ok(()));
            if std::thread::scope(|scope| scope.spawn(answers).join().expect("no panic").is_ok()) {
                return;
            }
            if let Some(status) = self.child.try_wait().expect("a child process") {
                panic!("the daemon ended during its start, {status}: {}", self.log());
            }
            assert!(began.elapsed() < WAIT_MAX, "the daemon does not respond: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until it responds or ends. Returns whether it responds.
    pub fn becomes_ready(&mut self) -> bool {
        wait_for("the daemon responds or ends", || match self.exit_status() {
            Some(_) => Some(false),
            None => {
                let status = self.client().and_then(|mut client| client.lines(&requests::Status {}));
                status.is_ok().then_some(true)
            }
        })
    }

    /// A connection to its control socket.
    pub fn client(&self) -> Result<Client, ClientError> {
        Client::connect(&self.socket)
    }

    /// The log of this daemon so far.
    pub fn log(&self) -> String {
        let all = fs::read(&self.log).expect("the log");
        String::from_utf8_lossy(&all[self.log_from as usize..]).into_owned()
    }

    #[track_caller]
    pub fn wait_for_log(&self, text: &str) -> String {
        let began = Instant::now();
        loop {
            let log = self.log();
            if log.contains(text) {
                return log;
            }
            assert!(began.elapsed() < WAIT_MAX, "{text:?} was not logged: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("a running child");
    }

    /// The exit status, if the daemon has ended.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child process")
    }

    /// Waits until it ends. Panics after [`END_MAX`].
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.exit_status() {
                return status;
            }
            assert!(began.elapsed() < END_MAX, "the daemon did not end within {END_MAX:?}: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends SIGKILL; panics if the daemon had already ended.
    pub fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        let status = self.wait();
        assert_eq!(status.signal(), Some(9), "the daemon ended before the kill, {status}: {}", self.log());
    }

    /// Sends SIGTERM; the daemon must exit successfully.
    #[track_caller]
    pub fn stop(mut self) -> String {
        self.signal(Signal::SIGTERM);
        let status = self.wait();
        let log = self.log();
        assert_eq!(status.code(), Some(0), "{status}: {log}");
        log
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Usually the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A fleet with many players on free loopback ports, with game time that runs `speed` times as
/// fast. Stops when dropped.
pub fn fleet(servers: u32, seed: u64, speed: f64, faults: FaultShares) -> Fleet {
    fleet_of(ProtocolShares::default(), servers, seed, speed, faults)
}

/// A [`fleet`] of other protocols than Quake 3 and Source.
pub fn fleet_of(protocols: ProtocolShares, servers: u32, seed: u64, speed: f64, faults: FaultShares) -> Fleet {
    let start_ms = 1_763_683_200_000;
    let settings =
        world::WorldSettings { servers, seed, start_ms, activity: 6.0, protocols, truth: false, ..Default::default() };
    let serve = ServeSettings {
        ports: Ports::ANY,
        live_from_ms: start_ms + 86_400_000,
        speed,
        faults,
        rate_limit: RateLimit::none,
    };
    Fleet::start(World::new(settings), serve).expect("a fleet on free ports")
}

/// An address with no listener: no test listens at a port below 1024. Each call gives another one.
pub fn closed_port_url() -> String {
    static CALLS: AtomicU16 = AtomicU16::new(0);
    let n = CALLS.fetch_add(1, Ordering::Relaxed);
    format!("quake3://127.9.{}.{}:1", 100 + n / 250, 1 + n % 250)
}

/// A socket that receives and never replies, until it is dropped.
pub fn silent_socket() -> (std::net::UdpSocket, String) {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let url = format!("quake3://127.0.0.1:{}", socket.local_addr().expect("bound").port());
    (socket, url)
}
