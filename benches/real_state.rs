//! Compares builds of clqd in the state of a real installation: `cargo bench --bench real_state`.
//!
//! For each build it prepares a state: the build replays some weeks of a generated log, then
//! archives it to a private MariaDB, and scans every server of a simulated fleet once. Then each
//! build in turn is restarted on its own state, with the website and the archive, and scans the
//! same fleet. When all boards are built, and after a warm-up, it is measured, killed with
//! SIGKILL, and started again. One table is printed, with the medians of all rounds.
//!
//! ```sh
//! cargo bench --bench real_state -- --binary before=/tmp/clqd-1 --binary after=/tmp/clqd-2
//! ```
//!
//! `--help` lists the options. In the state `fresh` there are no weeks, no archive and no restart.
//!
//! - The CPU time of a thread is that of all threads with its name. *Ended threads* is the time of
//!   threads that ended between two samples, one second apart.
//! - Written bytes are those of `write_bytes` in `/proc/PID/io`, which counts pages. The growth of
//!   files that are only appended to is exact; *database, pages* is the rest.
//! - Builds that know no section `[log]` have a scan log, others have none.
//! - Checkpoints are made every 300 s, so the measured time should be a multiple of that.
//! - Lag is that of all scans since the start.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use database::{Database, Server};
use process::{Running, wait_until};
use process_sampler::{ProcessSampler, file_kind};
use serde_json::Value;

#[path = "../tests/support/database/mod.rs"]
mod database;
mod measure;
#[path = "measure/process.rs"]
mod process;
#[path = "measure/process_sampler.rs"]
mod process_sampler;

/// Interval of scans while the replayed weeks are archived, s.
const QUIET_INTERVAL_S: u64 = 3_600;

/// Settings of the archive: until the state is archived, and later.
const ARCHIVE_OF_FILL: &str = "interval_s = 60";
const ARCHIVE: &str = "interval_s = 600";

/// Lists in a row of one group of players in the generated log, and the time between them.
const LISTS_OF_GROUP: u64 = 3;
const LIST_GAP_MS: i64 = 120_000;

const WEEK_MS: i64 = 7 * 86_400_000;

/// The game of the fleet and of the generated log.
const GAME: &str = "baseq3";

/// Longest time until a started daemon is ready.
const START_MAX: Duration = Duration::from_secs(1_200);

#[derive(Parser)]
struct Args {
    /// A build to measure, may be repeated [default: this build]
    #[arg(long = "binary", value_name = "NAME=PATH", value_parser = named_path)]
    builds: Vec<(String, PathBuf)>,
    /// Servers of the fleet
    #[arg(long, default_value_t = 20_000)]
    servers: u64,
    /// Players on each server
    #[arg(long, default_value_t = 8)]
    players: u64,
    /// Known players of each server, rounded up to whole lists
    #[arg(long, default_value_t = 72)]
    known: u64,
    /// Weeks of the generated log, including the running one
    #[arg(long, default_value_t = 4)]
    weeks: u64,
    /// States to measure: real, fresh
    #[arg(long, value_delimiter = ',', default_value = "real")]
    states: Vec<StateKind>,
    /// Scan intervals, s
    #[arg(long, value_delimiter = ',', default_value = "30,120")]
    intervals: Vec<u64>,
    /// Time between the building of all boards and the measurement, s
    #[arg(long, default_value_t = 90)]
    warmup: u64,
    /// Time of each measurement, s
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// Measurements of each build
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Directory for all files [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StateKind {
    Real,
    Fresh,
}

fn named_path(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("expected NAME=PATH")?;
    Ok((name.to_owned(), path.into()))
}

fn main() -> anyhow::Result<()> {
    let mut args = Args::parse();
    if args.builds.is_empty() {
        args.builds.push(("current".to_owned(), env!("CARGO_BIN_EXE_clqd").into()));
    }
    let dir = match &args.dir {
        Some(dir) => tempfile::Builder::new().prefix("real_state-").tempdir_in(dir)?,
        None => tempfile::tempdir()?,
    };
    let list = dir.path().join("servers");
    let _fleet = start_fleet(&args, &list)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let archive = args.states.contains(&StateKind::Real).then(|| ArchiveServer::start(runtime));
    let log = dir.path().join("log.jsonl");
    if archive.is_some() {
        write_log(&args, &list, &log)?;
    }

    let mut table = Table::default();
    let mut installations = Vec::new();
    for (name, binary) in &args.builds {
        println!("{name}: {}", binary.display());
        for &state in &args.states {
            installations.push(Installation::new(&args, name, binary, &dir.path().join(name), state)?);
        }
    }
    if let Some(archive) = &archive {
        let is_real = |it: &&mut Installation| it.state == StateKind::Real;
        // At the same time: mostly they wait for MariaDB.
        std::thread::scope(|scope| {
            let log = &log;
            let real = installations.iter_mut().filter(is_real);
            let threads: Vec<_> = real
                .map(|it| (format!("{}, prepared", it.name), scope.spawn(move || it.prepare(archive, log))))
                .collect();
            for (column, thread) in threads {
                table.add(&column, thread.join().expect("no panic")?);
            }
            anyhow::Ok(())
        })?;
    }
    for round in 0..args.rounds {
        for &interval_s in &args.intervals {
            for installation in &installations {
                println!("round {}: {}, {interval_s} s", round + 1, installation.title());
                let measured = installation.measure(interval_s, &list, archive.as_ref())?;
                table.add(&format!("{}, {interval_s} s", installation.title()), measured);
            }
        }
    }
    table.print();
    Ok(())
}

fn start_fleet(args: &Args, list: &Path) -> anyhow::Result<Running> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clqd"));
    command.args(["fleet", "--quake3-port", "0", "--source-port", "0", "--status-interval", "0"]);
    command.args(["--behaviours", "none", "--faults", "none", "--protocols", "source=0"]);
    command.args(["--players", &args.players.to_string(), "--servers", &args.servers.to_string()]);
    let fleet = Running::start(command.arg("--server-list").arg(list).stdout(Stdio::null()))?;
    wait_until("the fleet's list", || Ok(list.exists()))?;
    Ok(fleet)
}

/// Lists of all servers in some weeks; the last one ends now. A week has half of the groups of
/// players of a server, and the weeks overlap. Every fifth player also plays on the server before.
fn write_log(args: &Args, list: &Path, log: &Path) -> anyhow::Result<()> {
    let urls = std::fs::read_to_string(list)?;
    let urls: Vec<&str> = urls.split_whitespace().collect();
    let groups = args.known.div_ceil(args.players.max(1));
    let groups_of_week = groups.div_ceil(2);
    let now_ms = clqd::clock::system_ms();
    let mut out = BufWriter::with_capacity(1 << 20, File::create(log)?);
    for week in 0..args.weeks {
        let end_ms = now_ms - (args.weeks - 1 - week) as i64 * WEEK_MS;
        let first_group = (groups - groups_of_week) * week / (args.weeks - 1).max(1);
        let lists = groups_of_week * LISTS_OF_GROUP;
        for list in 0..lists {
            let group = first_group + list / LISTS_OF_GROUP;
            for (server, url) in (0..).zip(&urls) {
                let at_ms =
                    end_ms - (lists - list) as i64 * LIST_GAP_MS + server as i64 * LIST_GAP_MS / urls.len() as i64;
                write!(
                    out,
                    "{{\"t\":{at_ms},\"server\":\"{url}\",\"game\":\"{GAME}\",\"map\":\"q3dm{}\",\
                     \"hostname\":\"A server of the bench {server}\",\"slots\":16,\"players\":[",
                    group % 17
                )?;
                for n in 0..args.players {
                    let player = group * args.players + n;
                    let home = if player.is_multiple_of(5) { u64::saturating_sub(server, 1) } else { server };
                    let points = (list % LISTS_OF_GROUP) * (5 + (player * 7 + server) % 13);
                    write!(
                        out,
                        "{}{{\"name\":\"^1[clan]^7 Player {}\",\"points\":{points},\"ping\":{},\"bot\":false}}",
                        if n == 0 { "" } else { "," },
                        home * groups * args.players + player,
                        20 + (player * 31 + server) % 100,
                    )?;
                }
                out.write_all(b"]}\n")?;
            }
        }
    }
    Ok(out.flush()?)
}

/// A MariaDB with a database for each build.
struct ArchiveServer {
    runtime: tokio::runtime::Runtime,
    server: Arc<Server>,
    admin: Database,
}

impl ArchiveServer {
    fn start(runtime: tokio::runtime::Runtime) -> ArchiveServer {
        let options = [
            "--innodb-buffer-pool-size=1G",
            "--innodb-log-file-size=256M",
            "--local-infile=1",
            "--max-allowed-packet=16M",
        ];
        let server = Arc::new(Server::start_with(&options));
        let admin = runtime.block_on(Database::on_server(server.clone()));
        ArchiveServer { runtime, server, admin }
    }

    /// The URL of a new database.
    fn create(&self, name: &str) -> String {
        self.runtime.block_on(self.admin.run(&format!("CREATE DATABASE `{name}` CHARACTER SET utf8mb4")));
        format!("{}/{name}", self.server.url())
    }

    fn bytes(&self, name: &str) -> anyhow::Result<f64> {
        let sql = format!(
            "SELECT COALESCE(SUM(FILE_SIZE), 0) FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME LIKE '{name}/%'"
        );
        Ok(self.runtime.block_on(self.admin.value(&sql)).parse()?)
    }
}

/// A build with a state of its own.
struct Installation {
    name: String,
    binary: PathBuf,
    dir: PathBuf,
    state: StateKind,
    port: u16,
    servers: u64,
    first_interval_s: u64,
    warmup: Duration,
    seconds: Duration,
    has_scan_log: bool,
    archive_url: Option<String>,
}

impl Installation {
    fn new(args: &Args, name: &str, binary: &Path, dir: &Path, state: StateKind) -> anyhow::Result<Installation> {
        let dir = match state {
            StateKind::Real => dir.to_owned(),
            StateKind::Fresh => dir.with_extension("fresh"),
        };
        std::fs::create_dir_all(dir.join("scan-log"))?;
        let mut installation = Installation {
            name: name.to_owned(),
            binary: binary.to_owned(),
            dir,
            state,
            port: TcpListener::bind("127.0.0.1:0")?.local_addr()?.port(),
            servers: args.servers,
            first_interval_s: *args.intervals.first().context("no interval")?,
            warmup: Duration::from_secs(args.warmup),
            seconds: Duration::from_secs(args.seconds),
            has_scan_log: false,
            archive_url: None,
        };
        let config = installation.path("probe.toml");
        std::fs::write(&config, format!("state_dir = {:?}\n[log]\nkeep_days = 8\n", installation.path("state")))?;
        let check = Command::new(binary).arg("check-config").arg(&config).output();
        installation.has_scan_log = !check.with_context(|| format!("{}", binary.display()))?.status.success();
        Ok(installation)
    }

    fn title(&self) -> String {
        let state = match self.state {
            StateKind::Real => "real",
            StateKind::Fresh => "fresh",
        };
        format!("{}, {state}", self.name)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn clqd(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--config").arg(self.path("clqd.toml"));
        command
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<Vec<u8>> {
        let output = self.clqd().args(args).output()?;
        ensure!(output.status.success(), "{} {args:?}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
    }

    /// The packet rate is enough for all scans of an interval. In a fresh state it spreads the first
    /// scans over an interval.
    fn write_config(&self, interval_s: u64, archive: &str) -> anyhow::Result<()> {
        let packets_per_s = match self.state {
            StateKind::Real => (self.servers * 4 / interval_s).clamp(5_000, 1_000_000),
            StateKind::Fresh => (self.servers * 11 / 10 / interval_s).max(10),
        };
        let mut text = format!(
            "state_dir = {:?}\ncontrol_socket = {:?}\nlog_filter = \"warn\"\n\
             [scan]\nallow_private = true\nlimit_loopback = false\n\
             interval_class1_s = {interval_s}\ninterval_class2_s = {interval_s}\ninterval_class3_s = {}\n\
             packets_per_second_max = {packets_per_s}\nscans_in_flight_max = {}\n\
             subnet_packets_per_second_max = 1000\nsubnet_burst_packets = 1000\n\
             [web]\nlisten = \"127.0.0.1:{}\"\n[clock]\nsynchronised = \"always\"\n[store]\ncache_bytes = {}\n",
            self.path("state"),
            self.path("control.sock"),
            interval_s.max(3_600),
            (self.servers / 10).clamp(20_000, 1_000_000),
            self.port,
            (self.servers * 4_096).clamp(268_435_456, 805_306_368),
        );
        if let Some(url) = &self.archive_url {
            text += &format!("[archive]\nurl = \"{url}\"\n{archive}\n");
        }
        if self.has_scan_log {
            text += &format!("[scan_log]\npath = {:?}\n", self.path("scan-log").join("scan.jsonl"));
        }
        Ok(std::fs::write(self.path("clqd.toml"), text)?)
    }

    /// Replays the log, archives the result, and scans each server once.
    fn prepare(&mut self, archive: &ArchiveServer, log: &Path) -> anyhow::Result<Vec<(String, f64)>> {
        self.archive_url = Some(archive.create(&self.name));
        // Few scans: their rows would be archived over and over again.
        self.write_config(QUIET_INTERVAL_S, ARCHIVE_OF_FILL)?;
        let began = Instant::now();
        self.run(&["migrate"])?;
        self.run(&["replay", &log.display().to_string(), "--state", &self.path("state").display().to_string()])?;
        let replayed_s = began.elapsed().as_secs_f64();
        let daemon = self.start()?;
        // It connects, and finds out that the database is empty.
        std::thread::sleep(Duration::from_secs(5));
        wait_until("the archive", || {
            let status = self.status()?;
            let is_null = |path| status.pointer(path).is_none_or(Value::is_null);
            let is_archived = is_null("/archive/resync") && status.pointer("/archive/connected") == Some(&true.into());
            // Some servers are always being scanned.
            let is_idle = number(&status, "/outbox_entries") <= self.servers as f64 / 20.0;
            Ok(is_archived && is_idle && is_null("/clock/week_pending_close"))
        })?;
        daemon.stop()?;
        self.write_config(self.first_interval_s, ARCHIVE)?;
        let daemon = self.start()?;
        self.wait_until_scanned()?;
        let players = number(&self.status()?, "/engine/players_known");
        daemon.stop()?;
        println!(
            "{}: replayed in {replayed_s:.0} s, archived after {:.0} s",
            self.title(),
            began.elapsed().as_secs_f64()
        );
        let mut rows = Rows::default();
        rows.add("players known", players);
        self.add_sizes(&mut rows, Some(archive))?;
        Ok(rows.0)
    }

    /// Sizes of the state and of the archive.
    fn add_sizes(&self, rows: &mut Rows, archive: Option<&ArchiveServer>) -> anyhow::Result<()> {
        for (kind, bytes) in state_sizes(&self.path("state"))? {
            rows.add(&format!("{kind}, MB"), bytes as f64 / 1e6);
        }
        if let Some(archive) = archive.filter(|_| self.archive_url.is_some()) {
            rows.add("MariaDB, MB", archive.bytes(&self.name)? / 1e6);
        }
        Ok(())
    }

    fn measure(
        &self,
        interval_s: u64,
        list: &Path,
        archive: Option<&ArchiveServer>,
    ) -> anyhow::Result<Vec<(String, f64)>> {
        self.write_config(interval_s, ARCHIVE)?;
        if self.state == StateKind::Fresh && self.path("state").exists() {
            std::fs::remove_dir_all(self.path("state"))?;
        }
        let began = Instant::now();
        let daemon = self.start()?;
        let ready_s = began.elapsed().as_secs_f64();
        match self.state {
            StateKind::Fresh => {
                self.run(&["servers", "import", &list.display().to_string()])?;
                self.wait_until_scanned()?;
            }
            StateKind::Real => {
                let board = format!("/games/{GAME}?ranking=points&start=1");
                wait_until("the board of the game", || Ok(self.answers(&board)))?;
            }
        }
        let boards_s = began.elapsed().as_secs_f64();
        println!("  pid {}, ready after {ready_s:.1} s, boards after {boards_s:.1} s", daemon.id());
        std::thread::sleep(self.warmup);

        let mut sampler = ProcessSampler::new(daemon.id(), &self.path("state"), &self.path("scan-log"))?;
        let (before, began) = (self.status()?, Instant::now());
        while began.elapsed() < self.seconds {
            std::thread::sleep(Duration::from_secs(1).min(self.seconds));
            sampler.sample()?;
        }
        let (after, wall_s) = (self.status()?, began.elapsed().as_secs_f64());
        let usage = sampler.usage()?;
        let since_checkpoint_s = newest_age_s(&self.path("state").join("checkpoints"))?;
        drop(daemon); // SIGKILL

        let began = Instant::now();
        let daemon = self.start()?;
        let ready_after_kill_s = began.elapsed().as_secs_f64();
        daemon.stop()?;

        let grown = |path: &str| number(&after, path) - number(&before, path);
        let counts = ["snapshots", "partial_snapshots", "misses"];
        let scans: f64 = counts.iter().map(|name| grown(&format!("/engine/counts/{name}"))).sum();
        ensure!(scans > 0.0, "{}: nothing was scanned", self.title());
        let mut rows = Rows::default();
        rows.add("scans/s", scans / wall_s);
        rows.add("scans", scans);
        rows.add("misses", grown("/engine/counts/misses"));
        rows.add("late scans", grown("/engine/counts/late_scans"));
        rows.add("lag p50, ms", number(&after, "/engine/lag_ms_p50"));
        rows.add("lag p99, ms", number(&after, "/engine/lag_ms_p99"));
        rows.add("CPU a scan, us", usage.cpu_s * 1e6 / scans);
        for (thread, cpu_s) in &usage.threads_s {
            rows.add(&format!("- {thread}"), cpu_s * 1e6 / scans);
        }
        rows.add("written a scan, bytes", usage.written as f64 / scans);
        let appended: u64 = usage.appended.values().sum();
        for (kind, bytes) in &usage.appended {
            rows.add(&format!("- {kind}, bytes"), *bytes as f64 / scans);
        }
        rows.add("- database, pages, bytes", (usage.written as f64 - appended as f64) / scans);
        rows.add("memory at most, MB", usage.peak_kib as f64 / 1_024.0);
        rows.add("ready after a start, s", ready_s);
        rows.add("boards after a start, s", boards_s);
        rows.add("ready after SIGKILL, s", ready_after_kill_s);
        if let Some(since_s) = since_checkpoint_s {
            rows.add("age of the checkpoint at SIGKILL, s", since_s);
        }
        rows.add("players known", number(&after, "/engine/players_known"));
        if let Some(bytes) = usage.appended.get(if self.has_scan_log { "scan log" } else { "log" }) {
            rows.add("log or scan log a day, MB", *bytes as f64 / wall_s * 86_400.0 / 1e6);
        }
        self.add_sizes(&mut rows, archive)?;
        Ok(rows.0)
    }

    /// Starts the daemon and waits until it is ready.
    fn start(&self) -> anyhow::Result<Running> {
        let errors = File::options().create(true).append(true).open(self.path("stderr"))?;
        let daemon = Running::start(self.clqd().arg("run").stdout(Stdio::null()).stderr(errors))?;
        let began = Instant::now();
        while !self.answers("/readyz") {
            if began.elapsed() > START_MAX {
                bail!("{} is not ready: {}", self.title(), std::fs::read_to_string(self.path("stderr"))?);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(daemon)
    }

    /// Whether a page has status 200.
    fn answers(&self, path: &str) -> bool {
        let answer = || -> std::io::Result<Vec<u8>> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            write!(stream, "GET {path} HTTP/1.1\r\nhost: clqd\r\nconnection: close\r\n\r\n")?;
            let mut status = vec![0; 12];
            stream.read_exact(&mut status)?;
            Ok(status)
        };
        answer().is_ok_and(|status| status == b"HTTP/1.1 200")
    }

    fn wait_until_scanned(&self) -> anyhow::Result<()> {
        wait_until("a scan of every server", || {
            let status = self.status()?;
            // Class 6: not scanned yet.
            let unknown = number(&status, "/engine/servers_by_class/5");
            Ok(unknown == 0.0 && number(&status, "/engine/counts/snapshots") >= self.servers as f64)
        })
    }

    /// By the build's own command: the protocol of the control socket may differ.
    fn status(&self) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.run(&["status", "--json"])?)?)
    }
}

fn number(status: &Value, path: &str) -> f64 {
    status.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// Sizes of the parts of a state directory, bytes.
fn state_sizes(dir: &Path) -> anyhow::Result<BTreeMap<&'static str, u64>> {
    let mut sizes = BTreeMap::from([("state", measure::on_disk(dir)?)]);
    for part in ["log", "checkpoints"] {
        let Ok(entries) = std::fs::read_dir(dir.join(part)) else { continue };
        for entry in entries {
            let entry = entry?;
            *sizes.entry(file_kind(&entry.file_name().to_string_lossy())).or_default() += entry.metadata()?.len();
        }
    }
    let others: u64 = sizes.iter().filter(|(kind, _)| **kind != "state").map(|(_, bytes)| bytes).sum();
    sizes.insert("database", sizes["state"] - others);
    Ok(sizes)
}

/// Time since the newest file of a directory was written; none if there is no such directory.
fn newest_age_s(dir: &Path) -> anyhow::Result<Option<f64>> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(None) };
    let times = entries.filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok());
    Ok(times.max().and_then(|time| Some(time.elapsed().ok()?.as_secs_f64())))
}

/// Values of a measurement, in the order of the table.
#[derive(Default)]
struct Rows(Vec<(String, f64)>);

impl Rows {
    fn add(&mut self, name: &str, value: f64) {
        self.0.push((name.to_owned(), value));
    }
}

/// The values of all rounds, by row and column.
#[derive(Default)]
struct Table {
    columns: Vec<String>,
    rows: Vec<(String, BTreeMap<String, Vec<f64>>)>,
}

impl Table {
    fn add(&mut self, column: &str, measured: Vec<(String, f64)>) {
        if !self.columns.iter().any(|it| it == column) {
            self.columns.push(column.to_owned());
        }
        let mut after = 0;
        for (name, value) in measured {
            let at = self.rows.iter().position(|(row, _)| *row == name).unwrap_or_else(|| {
                self.rows.insert(after, (name, BTreeMap::new()));
                after
            });
            self.rows[at].1.entry(column.to_owned()).or_default().push(value);
            after = at + 1;
        }
        // What is known if a later measurement fails.
        self.print();
    }

    /// Medians, as a table in Markdown.
    fn print(&self) {
        println!("| | {} |", self.columns.join(" | "));
        println!("|---|{}", "---|".repeat(self.columns.len()));
        for (name, values) in &self.rows {
            let cell = |column: &String| values.get(column).map_or("-".to_owned(), |values| shown(median(values)));
            let cells: Vec<String> = self.columns.iter().map(cell).collect();
            println!("| {name} | {} |", cells.join(" | "));
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) { (sorted[middle - 1] + sorted[middle]) / 2.0 } else { sorted[middle] }
}

fn shown(value: f64) -> String {
    match value {
        value if value.is_nan() => "-".to_owned(),
        value if value.abs() >= 100.0 || value == 0.0 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}
