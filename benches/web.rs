//! Requests of visitors to a daemon that scans: `cargo bench --bench web`.
//!
//! Starts a fleet of `CLQD_SERVERS` servers (20,000) with 8 players each, replays a log with
//! `CLQD_ROWS` players of the running week (1,000,000), each on one of these servers, and starts the
//! daemon, which then scans every server every 120 s. Then it prints:
//!
//! - the time from the start of the process to the first page, and to a page with a board;
//! - with `CLQD_RATE` requests a second (500) for `CLQD_SECONDS` (120) over 50 connections: the times
//!   of each kind of page, from the moment when the request was due; and the scans that were late,
//!   with and without these requests. Each request is for another server, player, page of the board
//!   or string, so nearly none is answered from the cache;
//! - with `wrk` (not with `CLQD_WRK=0`): answers a second of each kind, of one path and of 1,000 different ones, beside nginx
//!   which serves the same bytes as files, and the sizes of the answers;
//! - the same without the requests that were delayed because the memory of the machine was slow (`measure/memory_watch.rs`);
//! - the memory of the daemon with the web interface and, after a restart, without it.
//!
//! The players of [`UBIQUITOUS`] were on every server, so their pages cost most. Half of the requests for these are for
//! their first pages, eight in all, which the cache answers in part.
//!
//! `CLQD_ARCHIVE=1` starts a MariaDB, which has the whole state before the measurement and gets the changes meanwhile.
//! `CLQD_SYNC_DELAY_MS` is the additional time that each sync of a file takes the measured daemon.
//!
//! It needs Debian's packages `wrk` and `nginx-light`, and a C compiler for `CLQD_SYNC_DELAY_MS`.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, ensure};
use clqd::api::{Status, requests};
use clqd::client;
use clqd::engine::Outcome;
use clqd::model::{Completeness, Player, ServerUrl, Snapshot};
use clqd::scan_log;
use database::{Database, Server};
use memory_watch::MemoryWatch;
use process::{Running, scans_ended, status, wait_until};

#[path = "../tests/support/database/mod.rs"]
mod database;
mod measure;
#[path = "measure/memory_watch.rs"]
mod memory_watch;
#[path = "measure/process.rs"]
mod process;

/// Players of a list in the log, and lists in a row with the same players.
const LIST_PLAYERS: u64 = 16;
const LISTS_OF_PLAYERS: u64 = 2;

/// Between two lists of a server in the log.
const LIST_INTERVAL_MS: i64 = 60_000;

const INTERVAL_S: u64 = 120;

/// `web.search_memory_bytes`: enough for the names of 10 million players.
const SEARCH_BYTES: u64 = 600 << 20;

const CONNECTIONS: u64 = 50;

/// Different paths of a kind in the measurements with `wrk`.
const PATHS: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Home,
    Server,
    Board,
    Player,
    /// A page of one of [`UBIQUITOUS`].
    WorstPlayer,
    Search,
    /// While a visitor types.
    Suggest,
    Compare,
    Feed,
    Api,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Home,
        Kind::Server,
        Kind::Board,
        Kind::Player,
        Kind::WorstPlayer,
        Kind::Search,
        Kind::Suggest,
        Kind::Compare,
        Kind::Feed,
        Kind::Api,
    ];

    fn path(self, site: &Site, random: &mut Random) -> String {
        let server = &site.urls[random.below(site.urls.len() as u64) as usize];
        match self {
            Kind::Home => "/".to_owned(),
            Kind::Server => format!("/servers/{server}"),
            Kind::Board => format!("/games/{GAME}?ranking=points&start={}", 1 + random.below(site.rows)),
            Kind::Player => format!("/players/{}", 1 + random.below(site.rows)),
            Kind::WorstPlayer => {
                let key = site.ubiquitous[random.below(site.ubiquitous.len() as u64) as usize];
                match random.below(2) {
                    0 => format!("/players/{key}"),
                    _ => format!("/players/{key}?skip={}", random.below(site.urls.len() as u64)),
                }
            }
            // A whole name, its beginning, or a word inside it that many have.
            Kind::Search => {
                let player = random.below(site.rows);
                let text = name(player);
                match random.below(3) {
                    0 => format!("/search?q={text}"),
                    1 => format!("/search?q={}", &text[..6]),
                    _ => format!("/search?q={}", SECOND[player as usize / 16 % SECOND.len()]),
                }
            }
            Kind::Suggest => {
                let name = name(random.below(site.rows));
                format!("/suggest?q={}", &name[..3 + random.below(name.len() as u64 - 3) as usize])
            }
            Kind::Compare => {
                format!("/compare?a={}&b={}", 1 + random.below(site.rows), 1 + random.below(site.rows))
            }
            Kind::Feed => format!("/feeds/servers/{server}"),
            Kind::Api => format!("/api/v1/boards?server={server}&ranking=clq1"),
        }
    }
}

const GAME: &str = "baseq3";

const FIRST: [&str; 16] = [
    "Iron", "Lucky", "Ghost", "Turbo", "Silent", "Mad", "Toxic", "Cyber", "Lazy", "Frag", "Grim", "Blue", "Nitro",
    "Shadow", "Super", "Pixel",
];
const SECOND: [&str; 16] = [
    "Bunny", "Wolf", "Monk", "Duck", "Angel", "Maker", "Rider", "Cat", "Jumper", "Reaper", "Goat", "Snake", "Hunter",
    "Lord", "Fox", "Viking",
];

/// Names of models and defaults that many players keep, in the first lists of every server.
const UBIQUITOUS: [&str; 8] = ["Padman", "Guest", "newbie", "ETPlayer", "Sarge", "Doom", "noob", "Ranger"];

fn name(player: u64) -> String {
    let [first, second] = [FIRST[player as usize % FIRST.len()], SECOND[player as usize / 16 % SECOND.len()]];
    format!("{first}{second}{}", player / 256)
}

/// The data from which paths are built.
struct Site {
    rows: u64,
    urls: Vec<String>,
    /// Keys of [`UBIQUITOUS`].
    ubiquitous: Vec<u64>,
}

/// Source of a library that makes each sync of a file take `DELAY_MS` longer.
const SLOW_SYNC: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <time.h>
static void delay(void) { struct timespec t = {DELAY_MS / 1000, DELAY_MS % 1000 * 1000000}; nanosleep(&t, 0); }
int fdatasync(int fd) { delay(); return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd); }
int fsync(int fd) { delay(); return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
int sync_file_range(int fd, off64_t at, off64_t n, unsigned flags) {
    delay();
    return ((int (*)(int, off64_t, off64_t, unsigned))dlsym(RTLD_NEXT, "sync_file_range"))(fd, at, n, flags);
}
"#;

/// A MariaDB for the archive.
struct Archive {
    url: String,
    _database: Database,
}

impl Archive {
    fn start() -> anyhow::Result<Archive> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let options = ["--innodb-buffer-pool-size=2G", "--innodb-log-file-size=512M", "--max-allowed-packet=16M"];
        let database = runtime.block_on(Database::on_server(Arc::new(Server::start_with(&options))));
        Ok(Archive { url: database.url(), _database: database })
    }
}

/// A linear congruential generator: the same paths in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

struct Setup {
    rows: u64,
    servers: u64,
    rate: u64,
    seconds: u64,
    has_wrk: bool,
    sync_delay_ms: u64,
    archive: Option<Archive>,
    port: u16,
    dir: tempfile::TempDir,
}

fn main() -> anyhow::Result<()> {
    MemoryWatch::watch_if_asked()?;
    let number = |name: &str, or: u64| match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name}={text}")),
        Err(_) => Ok(or),
    };
    let setup = Setup {
        rows: number("CLQD_ROWS", 1_000_000)?,
        servers: number("CLQD_SERVERS", 20_000)?,
        rate: number("CLQD_RATE", 500)?,
        seconds: number("CLQD_SECONDS", 120)?,
        has_wrk: number("CLQD_WRK", 1)? != 0,
        sync_delay_ms: number("CLQD_SYNC_DELAY_MS", 0)?,
        archive: (number("CLQD_ARCHIVE", 0)? != 0).then(Archive::start).transpose()?,
        port: TcpListener::bind("127.0.0.1:0")?.local_addr()?.port(),
        dir: tempfile::tempdir()?,
    };
    setup.run()
}

impl Setup {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self) -> anyhow::Result<()> {
        self.write_config(true)?;
        if self.archive.is_some() {
            let migrated = self.clqd().arg("migrate").output()?;
            ensure!(migrated.status.success(), "{}", String::from_utf8_lossy(&migrated.stderr));
        }
        let _fleet = self.start_fleet()?;
        let urls = std::fs::read_to_string(self.path("servers"))?;
        let urls: Vec<String> = urls.split_whitespace().map(str::to_owned).collect();
        let mut site = Site { rows: self.rows, urls, ubiquitous: Vec::new() };
        let began = Instant::now();
        self.write_log(&site.urls)?;
        let replay =
            self.clqd().arg("replay").arg(self.path("log.jsonl")).arg("--state").arg(self.path("state")).output()?;
        ensure!(replay.status.success(), "{}", String::from_utf8_lossy(&replay.stderr));
        std::fs::remove_file(self.path("log.jsonl"))?;
        println!(
            "{} players on {} servers, replayed in {:.0} s",
            self.rows,
            self.servers,
            began.elapsed().as_secs_f64()
        );

        // The first round, in which all scans are due at once, is not measured.
        let daemon = self.start_daemon(&site, &mut self.clqd())?;
        let mut socket = client::Client::connect(&self.path("control.sock"))?;
        for name in UBIQUITOUS {
            // Names are read after the start.
            wait_until(name, || {
                let named = socket.lines(&requests::PlayerNamed { name: name.to_owned() })?;
                site.ubiquitous.extend(named.first().map(|it| u64::from(it.player_key)));
                Ok(!named.is_empty())
            })?;
        }
        wait_until("the first round of scans", || Ok(scans_ended(&self.status()?) >= self.servers))?;
        if self.archive.is_some() {
            self.wait_until_archived()?;
            println!("archive      complete {:.0} s after the start of the replay", began.elapsed().as_secs_f64());
        }
        daemon.stop()?;
        let mut command = self.clqd();
        if self.sync_delay_ms > 0 {
            command.env("LD_PRELOAD", self.slow_sync()?);
        }
        let daemon = self.start_daemon(&site, &mut command)?;
        std::thread::sleep(Duration::from_secs(INTERVAL_S));
        println!("memory       {} MB after {INTERVAL_S} s", daemon.rss_kib()? >> 10);

        self.scan_for("without requests", &daemon, || {
            std::thread::sleep(Duration::from_secs(self.seconds));
            Ok(())
        })?;
        self.scan_for("with requests", &daemon, || self.request_at_rate(&site))?;
        println!("memory       {} MB after these requests", daemon.rss_kib()? >> 10);
        if self.has_wrk {
            self.scan_for("with wrk", &daemon, || self.compare_with_files(&site))?;
            println!("memory       {} MB after wrk", daemon.rss_kib()? >> 10);
        }
        daemon.stop()?;

        self.write_config(false)?;
        let daemon = Running::start(self.clqd().arg("run"))?;
        wait_until("the control socket", || Ok(self.status().is_ok()))?;
        std::thread::sleep(Duration::from_secs(INTERVAL_S));
        println!("memory       {} MB without the web interface after {INTERVAL_S} s", daemon.rss_kib()? >> 10);
        daemon.stop()
    }

    /// Until MySQL has had everything once.
    fn wait_until_archived(&self) -> anyhow::Result<()> {
        wait_until("the archive", || {
            Ok(self.status()?.archive.context("an archive")?.public.last_complete_ms.is_some())
        })
    }

    /// A library for `LD_PRELOAD`, made of [`SLOW_SYNC`].
    fn slow_sync(&self) -> anyhow::Result<PathBuf> {
        let (source, library) = (self.path("slow_sync.c"), self.path("slow_sync.so"));
        std::fs::write(&source, SLOW_SYNC)?;
        let delay = format!("-DDELAY_MS={}", self.sync_delay_ms);
        let compiled =
            Command::new("cc").args(["-shared", "-fPIC", &delay, "-o"]).arg(&library).arg(&source).status()?;
        ensure!(compiled.success(), "cc: {compiled}");
        Ok(library)
    }

    fn write_config(&self, has_web: bool) -> anyhow::Result<()> {
        let archive = match &self.archive {
            Some(it) => format!("[archive]\nurl = {:?}\n", it.url),
            None => String::new(),
        };
        let listen = if has_web { format!("127.0.0.1:{}", self.port) } else { String::new() };
        let text = format!(
            "state_dir = {:?}\ncontrol_socket = {:?}\nlog_filter = \"warn\"\n\
             [scan]\nallow_private = true\nlimit_loopback = false\ninterval_class1_s = {INTERVAL_S}\ninterval_class2_s = {INTERVAL_S}\n\
             packets_per_second_max = 5000\nscans_in_flight_max = 20000\n\
             subnet_packets_per_second_max = 1000\nsubnet_burst_packets = 1000\nbudget = 0.0\n\
             [web]\nlisten = {listen:?}\nclient_requests_per_second_max = 100000\n\
             client_burst_requests = 100000\nsearch_memory_bytes = {SEARCH_BYTES}\n{archive}",
            self.path("state"),
            self.path("control.sock"),
        );
        Ok(std::fs::write(self.path("clqd.toml"), text)?)
    }

    fn clqd(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clqd"));
        command.arg("--config").arg(self.path("clqd.toml"));
        command
    }

    fn start_fleet(&self) -> anyhow::Result<Running> {
        let list = self.path("servers");
        let mut command = self.clqd();
        command.args(["fleet", "--quake3-port", "0", "--source-port", "0", "--status-interval", "0"]);
        command.args(["--players", "8", "--behaviours", "none", "--faults", "none", "--protocols", "source=0"]);
        command.args(["--servers", &self.servers.to_string(), "--server-list"]).arg(&list);
        let fleet = Running::start(command.stdout(Stdio::null()))?;
        wait_until("the fleet's list", || Ok(list.exists()))?;
        Ok(fleet)
    }

    /// Lists of each server that end now; each group of players is in [`LISTS_OF_PLAYERS`] of them.
    fn write_log(&self, urls: &[String]) -> anyhow::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(self.path("log.jsonl"))?);
        let urls: Vec<ServerUrl> = urls.iter().map(|url| ServerUrl::parse(url)).collect::<Result<_, _>>()?;
        let groups_of_server = self.rows.div_ceil(LIST_PLAYERS * urls.len() as u64);
        let lists = groups_of_server * LISTS_OF_PLAYERS;
        let now_ms = clqd::clock::system_ms();
        let (mut line, mut random) = (Vec::new(), Random(7));
        for list in 0..lists {
            for (server, url) in (0..).zip(&urls) {
                let group = list / LISTS_OF_PLAYERS * urls.len() as u64 + server;
                let at_ms = now_ms - (lists - list) as i64 * LIST_INTERVAL_MS
                    + server as i64 * LIST_INTERVAL_MS / urls.len() as i64;
                let players = (0..LIST_PLAYERS).map(|n| group * LIST_PLAYERS + n).filter(|player| *player < self.rows);
                let base = 20 * (list % LISTS_OF_PLAYERS) as i64;
                let names = players.map(name);
                let others = UBIQUITOUS.iter().filter(|_| list < LISTS_OF_PLAYERS).map(|&name| name.to_owned());
                let lines = names.chain(others).map(|name| Player {
                    name: name.into(),
                    points: Some(base + random.below(20) as i64),
                    ping: Some(40),
                    ..Player::default()
                });
                let snapshot = Snapshot {
                    t_ms: at_ms,
                    game: GAME.into(),
                    map: "q3dm6".into(),
                    hostname: "server".into(),
                    slots: 32,
                    players: lines.collect(),
                    completeness: Completeness::Full,
                    count: None,
                    bots: None,
                };
                line.clear();
                scan_log::write(&mut line, url, &Outcome::Snapshot(snapshot));
                out.write_all(&line)?;
            }
        }
        Ok(out.flush()?)
    }

    /// Starts the daemon; prints when it answers.
    fn start_daemon(&self, site: &Site, command: &mut Command) -> anyhow::Result<Running> {
        let began = Instant::now();
        let daemon = Running::start(command.arg("run"))?;
        let board = Kind::Board.path(site, &mut Random(1));
        for path in ["/about", "/", &board] {
            wait_until(path, || {
                Ok(self.connect().and_then(|mut client| client.get(path)).is_ok_and(|answer| answer.is_ok))
            })?;
            println!("start        {:.2} s to {path}", began.elapsed().as_secs_f64());
        }
        Ok(daemon)
    }

    fn status(&self) -> anyhow::Result<Status> {
        status(&self.path("control.sock"))
    }

    /// Scans of the daemon while something else happens.
    fn scan_for(&self, what: &str, daemon: &Running, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let (before, began, cpu_s) = (self.status()?, Instant::now(), daemon.cpu_s()?);
        work()?;
        let (after, cpu_s) = (self.status()?, daemon.cpu_s()? - cpu_s);
        let wall_s = began.elapsed().as_secs_f64();
        println!(
            "scans        {what}: {:.1} a second, {} late (> 2 s); lag since the start p50 {:?} ms, p99 {:?} ms; {:.1} % of a core",
            (scans_ended(&after) - scans_ended(&before)) as f64 / wall_s,
            after.engine.counts.late_scans - before.engine.counts.late_scans,
            after.engine.lag_ms_p50,
            after.engine.lag_ms_p99,
            100.0 * cpu_s / wall_s,
        );
        Ok(())
    }

    fn connect(&self) -> anyhow::Result<Client> {
        Client::connect(self.port)
    }

    fn request_at_rate(&self, site: &Site) -> anyhow::Result<()> {
        let watch = MemoryWatch::start()?;
        let (began, began_at) = (Instant::now(), SystemTime::now());
        let connection = |number: u64| {
            let mut client = self.connect()?;
            let mut random = Random(number);
            let mut times: Vec<(Kind, Duration, bool, SystemTime)> = Vec::new();
            let period = Duration::from_secs(CONNECTIONS).div_f64(self.rate as f64);
            let count = self.rate * self.seconds / CONNECTIONS;
            for request in 0..count {
                let kind = Kind::ALL[((request + number) % Kind::ALL.len() as u64) as usize];
                let path = kind.path(site, &mut random);
                let due = began + period * request as u32 + period.mul_f64(number as f64 / CONNECTIONS as f64);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let answer = client.get(&path)?;
                times.push((kind, due.elapsed(), answer.is_ok, began_at + due.duration_since(began)));
            }
            anyhow::Ok(times)
        };
        let times = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CONNECTIONS).map(|number| scope.spawn(move || connection(number))).collect();
            let joined = threads.into_iter().map(|thread| thread.join().expect("a client does not panic"));
            joined.collect::<anyhow::Result<Vec<_>>>()
        })?
        .concat();
        let slow = watch.stop()?;
        println!("{} requests a second, ms:    p50      p99      max   not 200", self.rate);
        let print = |title: &str, times: &[&(Kind, Duration, bool, SystemTime)]| {
            let mut sorted: Vec<f64> = times.iter().map(|(_, time, ..)| time.as_secs_f64() * 1e3).collect();
            sorted.sort_by(f64::total_cmp);
            let at = |share: f64| sorted.get(((sorted.len().max(1) - 1) as f64 * share) as usize).unwrap_or(&f64::NAN);
            let failed = times.iter().filter(|(_, _, is_ok, _)| !is_ok).count();
            println!("  {title:<20} {:>8.1} {:>8.1} {:>8.1} {failed:>9}", at(0.5), at(0.99), at(1.0));
        };
        for kind in Kind::ALL {
            print(&format!("{kind:?}"), &times.iter().filter(|(of, ..)| *of == kind).collect::<Vec<_>>());
        }
        print("all", &times.iter().collect::<Vec<_>>());
        if !slow.is_empty() {
            let others: Vec<_> = times.iter().filter(|(.., due)| !slow.delay(*due)).collect();
            let share = 100.0 - 100.0 * others.len() as f64 / times.len() as f64;
            print(&format!("without {share:.1} %"), &others);
            println!("  These were due when the memory of the machine was slow, or shortly after.");
        }
        Ok(())
    }

    /// Answers a second, beside nginx with the same bytes.
    fn compare_with_files(&self, site: &Site) -> anyhow::Result<()> {
        let root = self.path("files");
        std::fs::create_dir(&root)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let conf = format!(
            "daemon off; pid {0}/nginx.pid; error_log {0}/nginx.log; worker_processes 2; events {{ }}\n\
             http {{ access_log off; sendfile on; keepalive_requests 10000000; open_file_cache max=10000; \
             server {{ listen 127.0.0.1:{port}; root {0}/files; }} }}\n",
            self.dir.path().display()
        );
        std::fs::write(self.path("nginx.conf"), conf)?;
        // Its workers run as another user.
        std::fs::set_permissions(self.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let nginx = Running::start(Command::new("nginx").arg("-c").arg(self.path("nginx.conf")).stderr(Stdio::null()))?;
        println!(
            "answers a second     bytes    gzip |  one path    nginx  ratio | {PATHS} paths    nginx  ratio   p50 ms   p99 ms"
        );
        for kind in Kind::ALL {
            // The daemon closes idle connections.
            let mut client = self.connect()?;
            let mut random = Random(99);
            let mut paths: Vec<String> = (0..PATHS).map(|_| kind.path(site, &mut random)).collect();
            paths.dedup();
            let mut files = Vec::new();
            for path in &paths {
                let answer = client.get(path)?;
                ensure!(answer.is_ok, "{path}: not 200");
                let file = format!("{kind:?}{}", files.len());
                std::fs::write(root.join(&file), &answer.body)?;
                files.push(format!("/{file}"));
            }
            let bytes = client.get(&paths[0])?.body.len();
            let gzip = client.get_with(&paths[0], "accept-encoding: gzip\r\n")?.body.len();
            let one = self.wrk(self.port, &paths[..1])?;
            let one_file = self.wrk(port, &files[..1])?;
            let many = self.wrk(self.port, &paths)?;
            let many_files = self.wrk(port, &files)?;
            println!(
                "  {:<16} {bytes:>8} {gzip:>7} | {:>9.0} {:>8.0} {:>6.2} | {:>10.0} {:>8.0} {:>6.2} {:>8} {:>8}",
                format!("{kind:?}"),
                one.per_s,
                one_file.per_s,
                one.per_s / one_file.per_s,
                many.per_s,
                many_files.per_s,
                many.per_s / many_files.per_s,
                many.p50,
                many.p99,
            );
        }
        drop(nginx);
        Ok(())
    }

    fn wrk(&self, port: u16, paths: &[String]) -> anyhow::Result<Wrk> {
        let script = self.path("paths.lua");
        let list: Vec<String> = paths.iter().map(|path| format!("{path:?}")).collect();
        let text = format!(
            "local paths = {{{}}}\nlocal n = 0\n\
             request = function() n = n + 1; return wrk.format(\"GET\", paths[n % #paths + 1]) end\n",
            list.join(",")
        );
        std::fs::write(&script, text)?;
        let address = format!("http://127.0.0.1:{port}");
        let output = Command::new("wrk")
            .args(["-t1", "-c32", "-d10s", "--latency", "-s"])
            .arg(&script)
            .arg(&address)
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
            line.map(|rest| rest.trim().to_owned()).with_context(|| format!("{name} in {text:?}"))
        };
        ensure!(!text.contains("Non-2xx"), "{text}");
        Ok(Wrk { per_s: value("Requests/sec:")?.parse()?, p50: value("50%")?, p99: value("99%")? })
    }
}

/// The result of `wrk`.
struct Wrk {
    per_s: f64,
    p50: String,
    p99: String,
}

/// One connection of a visitor.
struct Client(BufReader<TcpStream>);

struct Answer {
    is_ok: bool,
    body: Vec<u8>,
}

impl Client {
    fn connect(port: u16) -> anyhow::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Client(BufReader::new(stream)))
    }

    fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.get_with(path, "")
    }

    fn get_with(&mut self, path: &str, headers: &str) -> anyhow::Result<Answer> {
        self.0.get_mut().write_all(format!("GET {path} HTTP/1.1\r\nhost: clqd\r\n{headers}\r\n").as_bytes())?;
        let (mut is_ok, mut length, mut line) = (false, None, String::new());
        for number in 0.. {
            line.clear();
            ensure!(self.0.read_line(&mut line)? > 0, "the connection was closed");
            match line.trim_end() {
                "" => break,
                status if number == 0 => is_ok = status.contains(" 200 "),
                header => {
                    let (name, value) = header.split_once(':').context("a header")?;
                    if name.eq_ignore_ascii_case("content-length") {
                        length = Some(value.trim().parse()?);
                    }
                }
            }
        }
        let mut body = vec![0; length.context("content-length")?];
        self.0.read_exact(&mut body)?;
        Ok(Answer { is_ok, body })
    }
}
