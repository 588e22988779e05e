//! Scans a whole fleet on one machine: `cargo bench --bench scan`.
//!
//! Starts a fleet of simulated servers and a daemon, each in a process of its own, and imports
//! all servers, with an interval of an hour. When each was scanned once, the daemon is
//! restarted with the interval to be measured: its lag then does not contain the first round,
//! in which all scans are due at once. It scans for `CLQD_WARMUP` seconds (one interval) and
//! is measured for `CLQD_SECONDS` (300).
//!
//! - `CLQD_SERVERS` (20,000) and `CLQD_INTERVAL` (120 s, for classes 1 and 2).
//! - `CLQD_PLAYERS`: a constant number of players on each server, all Quake 3 and without
//!   faults or behaviours. Without it players join and leave on servers of Quake 3 and Source,
//!   some of which have faults. `CLQD_FAULTS`, `CLQD_PROTOCOLS`: as the options of `clqd fleet`.
//! - `CLQD_SERIES`: sizes such as `1000,20000`, or 1 for 1,000 to 1,000,000 servers; it prints a
//!   table with a line for each. The defaults are then 4 players and one interval of measuring.
//! - `CLQD_MYSQL`: URL of an archive.
//!
//! Lost replies are those that the kernel dropped because a buffer of the daemon was full
//! (`scan.kernel_drops`), and overflow misses the scans that failed for that reason
//! (`scan.misses.receive_overflow`). The growth of the state directory is that of the measured
//! window, extrapolated to a day: new rows are most of it while a week is young, and a
//! compaction within the window makes it too small.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clqd::api::Status;
use process::{Running, scans_ended, status, wait_until};

mod measure;
#[path = "measure/process.rs"]
mod process;

/// Interval until all servers were scanned once, s: long enough that the first round is not
/// delayed by a second one.
const FIRST_ROUND_INTERVAL_S: u64 = 3_600;

const SERIES: [u64; 5] = [1_000, 10_000, 100_000, 200_000, 1_000_000];

/// The changes in memory (`store.changes_bytes_max`): the default, and more for more than 500,000 servers, as
/// docs/operations.md recommends.
const CHANGES_BYTES_DEFAULT: u64 = 512 << 20;
const CHANGES_BYTES_MAX: u64 = 1 << 30;

fn main() -> anyhow::Result<()> {
    let Some(series) = std::env::var("CLQD_SERIES").ok().filter(|text| text != "0") else {
        Setup::new(number("CLQD_SERVERS")?.unwrap_or(20_000), false)?.measure()?.print();
        return Ok(());
    };
    let sizes = match series.as_str() {
        "1" => SERIES.to_vec(),
        list => list.split(',').map(str::parse).collect::<Result<_, _>>().context("CLQD_SERIES")?,
    };
    Measured::print_header();
    for servers in sizes {
        Setup::new(servers, true)?.measure()?.print_row();
    }
    Ok(())
}

fn number(name: &str) -> anyhow::Result<Option<u64>> {
    let text = std::env::var(name).ok();
    text.map(|text| text.parse().with_context(|| format!("{name}={text}"))).transpose()
}

/// What is measured, and how long.
struct Setup {
    servers: u64,
    players: Option<u64>,
    interval_s: u64,
    warmup_s: u64,
    seconds: u64,
    dir: tempfile::TempDir,
}

impl Setup {
    fn new(servers: u64, in_series: bool) -> anyhow::Result<Setup> {
        let interval_s = number("CLQD_INTERVAL")?.unwrap_or(120);
        Ok(Setup {
            servers,
            players: number("CLQD_PLAYERS")?.or(in_series.then_some(4)),
            interval_s,
            warmup_s: number("CLQD_WARMUP")?.unwrap_or(interval_s),
            seconds: number("CLQD_SECONDS")?.unwrap_or(if in_series { interval_s } else { 300 }),
            dir: tempfile::tempdir()?,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn measure(&self) -> anyhow::Result<Measured> {
        self.write_config(self.interval_s.max(FIRST_ROUND_INTERVAL_S))?;
        let fleet = self.start_fleet()?;
        let daemon = self.start_daemon()?;
        let import = self.clqd().args(["servers", "import"]).arg(self.path("servers")).output()?;
        ensure!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
        wait_until("the first round of scans", || {
            let engine = self.status()?.engine;
            // Class 6: not scanned yet.
            Ok(engine.servers == self.servers && engine.servers_by_class[5] == 0)
        })?;
        daemon.stop()?;
        self.write_config(self.interval_s)?;
        let daemon = self.start_daemon()?;
        std::thread::sleep(Duration::from_secs(self.warmup_s));

        let state_dir = self.path("state");
        let (before, began) = (self.status()?, Instant::now());
        let (fleet_s, daemon_s, state_bytes) = (fleet.cpu_s()?, daemon.cpu_s()?, measure::on_disk(&state_dir)?);
        std::thread::sleep(Duration::from_secs(self.seconds));
        let (after, wall_s) = (self.status()?, began.elapsed().as_secs_f64());
        let counted = |name: &str| {
            let value = |status: &Status| status.counters.get(name).copied().unwrap_or(0);
            value(&after) - value(&before)
        };
        Ok(Measured {
            wall_s,
            scans: scans_ended(&after) - scans_ended(&before),
            late: after.engine.counts.late_scans - before.engine.counts.late_scans,
            misses: after.engine.counts.misses - before.engine.counts.misses,
            lost_replies: counted("scan.kernel_drops"),
            overflow_misses: counted("scan.misses.receive_overflow"),
            daemon_s: daemon.cpu_s()? - daemon_s,
            fleet_s: fleet.cpu_s()? - fleet_s,
            daemon_mb: daemon.rss_kib()? >> 10,
            fleet_mb: fleet.rss_kib()? >> 10,
            state_bytes_before: state_bytes,
            state_bytes: measure::on_disk(&state_dir)?,
            status: after,
        })
    }

    /// The rate limit allows a first round within a quarter of the measured interval; 200
    /// servers of the fleet are in one /24.
    fn write_config(&self, interval_s: u64) -> anyhow::Result<()> {
        let archive = std::env::var("CLQD_MYSQL").map(|url| format!("[archive]\nurl = \"{url}\"\n"));
        let text = format!(
            "state_dir = {:?}\ncontrol_socket = {:?}\nlog_filter = \"warn\"\n\
             [scan]\nallow_private = true\nlimit_loopback = false\n\
             interval_class1_s = {}\ninterval_class2_s = {}\ninterval_class3_s = {}\n\
             packets_per_second_max = {}\nscans_in_flight_max = {}\n\
             subnet_packets_per_second_max = 1000\nsubnet_burst_packets = 1000\n\
             budget = 0.0\n[web]\nlisten = \"\"\n[store]\nchanges_bytes_max = {}\n{}",
            self.path("state"),
            self.path("control.sock"),
            interval_s,
            interval_s,
            interval_s.max(3_600),
            (self.servers * 4 / self.interval_s).clamp(5_000, 1_000_000),
            (self.servers / 10).clamp(20_000, 1_000_000),
            (self.servers * 1_024).clamp(CHANGES_BYTES_DEFAULT, CHANGES_BYTES_MAX),
            archive.unwrap_or_default(),
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
        let or = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
        let mut command = self.clqd();
        command.args(["fleet", "--quake3-port", "0", "--source-port", "0", "--status-interval", "0"]);
        command.args(["--servers", &self.servers.to_string(), "--server-list"]).arg(&list);
        match self.players {
            Some(players) => {
                command.args(["--players", &players.to_string(), "--behaviours", "none"]);
                command.args(["--faults", &or("CLQD_FAULTS", "none")]);
                command.args(["--protocols", &or("CLQD_PROTOCOLS", "source=0")]);
            }
            None => {
                command.args(["--activity", "4", "--faults", &or("CLQD_FAULTS", "default")]);
                command.args(["--protocols", &or("CLQD_PROTOCOLS", "default")]);
            }
        }
        let fleet = Running::start(command.stdout(Stdio::null()))?;
        wait_until("the fleet's list", || Ok(list.exists()))?;
        Ok(fleet)
    }

    fn start_daemon(&self) -> anyhow::Result<Running> {
        let daemon = Running::start(self.clqd().arg("run"))?;
        wait_until("the control socket", || Ok(self.status().is_ok()))?;
        Ok(daemon)
    }

    fn status(&self) -> anyhow::Result<Status> {
        status(&self.path("control.sock"))
    }
}

/// What was measured. Differences are those of the window, sizes those at its end.
struct Measured {
    wall_s: f64,
    scans: u64,
    late: u64,
    misses: u64,
    lost_replies: u64,
    overflow_misses: u64,
    daemon_s: f64,
    fleet_s: f64,
    daemon_mb: u64,
    fleet_mb: u64,
    state_bytes_before: u64,
    state_bytes: u64,
    status: Status,
}

impl Measured {
    fn scans_per_s(&self) -> f64 {
        self.scans as f64 / self.wall_s
    }

    fn us_per_scan(&self, cpu_s: f64) -> f64 {
        cpu_s * 1e6 / self.scans as f64
    }

    fn state_mb(&self) -> f64 {
        self.state_bytes as f64 / 1e6
    }

    fn state_mb_per_day(&self) -> f64 {
        (self.state_bytes as f64 - self.state_bytes_before as f64) / 1e6 * 86_400.0 / self.wall_s
    }

    fn print(&self) {
        let engine = &self.status.engine;
        println!("servers      {}, by class {:?}", engine.servers, engine.servers_by_class);
        println!("scans        {:.1} a second, {} without a usable reply", self.scans_per_s(), self.misses);
        println!("players      {} online, {} known", engine.players_online, engine.players_known);
        println!(
            "lag          p50 {:?} ms, p99 {:?} ms, of all scheduled scans since the restart",
            engine.lag_ms_p50, engine.lag_ms_p99
        );
        println!("late (> 2 s) {} of {} scans while measured", self.late, self.scans);
        println!(
            "lost         {} replies in the daemon's buffers, {} overflow misses",
            self.lost_replies, self.overflow_misses
        );
        for (name, cpu_s, mb) in [("daemon", self.daemon_s, self.daemon_mb), ("fleet", self.fleet_s, self.fleet_mb)] {
            println!(
                "{name:<12} {:.1} us of CPU time a scan, {:.1} % of a core, {mb} MB resident",
                self.us_per_scan(cpu_s),
                100.0 * cpu_s / self.wall_s,
            );
        }
        println!(
            "state        {:.1} MB, {:+.1} MB a day, extrapolated from {:.0} s",
            self.state_mb(),
            self.state_mb_per_day(),
            self.wall_s
        );
        println!("outbox       {} waiting", self.status.outbox_entries);
    }

    fn print_header() {
        println!(
            "  servers  scans/s  lag ms p50    p99   late  missed   lost overflow | daemon us/scan  % core     MB \
             | fleet us/scan     MB | state MB  MB/day"
        );
    }

    fn print_row(&self) {
        let engine = &self.status.engine;
        let ms = |lag: Option<u64>| lag.map_or("-".to_owned(), |ms| ms.to_string());
        println!(
            "{:>9} {:>8.1} {:>11} {:>6} {:>6} {:>7} {:>6} {:>8} | {:>14.1} {:>7.1} {:>6} | {:>13.1} {:>6} | {:>8.1} {:>7.0}",
            engine.servers,
            self.scans_per_s(),
            ms(engine.lag_ms_p50),
            ms(engine.lag_ms_p99),
            self.late,
            self.misses,
            self.lost_replies,
            self.overflow_misses,
            self.us_per_scan(self.daemon_s),
            100.0 * self.daemon_s / self.wall_s,
            self.daemon_mb,
            self.us_per_scan(self.fleet_s),
            self.fleet_mb,
            self.state_mb(),
            self.state_mb_per_day(),
        );
    }
}
