//! Compares `clqd query` with qstat: `cargo bench --bench query`.
//!
//! Both query the same fleet of `CLQD_SERVERS` (20,000) simulated Quake 3 servers with
//! `CLQD_PLAYERS` (12) players each, of which 0, 20 and 50 % are silent (`CLQD_SILENT`, a list
//! such as `0,20,50`), in turn, `CLQD_RUNS` (5) times. Both print every server with its players,
//! and both send three requests before a server counts as down: qstat 0, 1.0 and 1.5 s after its
//! start, until 2.0 s have passed; clqd at 0, 1.1 and 2.2 s, until 2.7 s, because it never sends
//! to an address twice within 1.1 s. With silent servers qstat has the shorter timeout.
//!
//! - `clqd query --file LIST --timeout-ms 500 --retries 2 --packets-per-second-max 1000000`;
//! - `quakestat -f LIST -maxsim 1000 -sendinterval 0 -retry 3 -interval 0.5 -raw`
//!   (Debian package qstat). Its `-retry` counts all requests. With -sendinterval 5, the
//!   default, it sends 200 requests a second at most.
//!
//! It prints medians of wall time, rate, CPU time (user and system, getrusage(2)) and the CPU
//! time of the fleet, and compares the printed lists with the fleet: every server that is not
//! silent must be there with all its players. Without quakestat it measures clqd alone.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clqd::fleet::{Fault, FaultShares, address};
use nix::sys::resource::{UsageWho, getrusage};

mod measure;

/// Seed of `clqd fleet` by default: it determines which servers are silent.
const SEED: u64 = 1;

fn main() -> anyhow::Result<()> {
    let text = |name: &str, or: &str| std::env::var(name).unwrap_or(or.to_owned());
    let servers = text("CLQD_SERVERS", "20000").parse().context("CLQD_SERVERS")?;
    let players = text("CLQD_PLAYERS", "12").parse().context("CLQD_PLAYERS")?;
    let runs: usize = text("CLQD_RUNS", "5").parse().context("CLQD_RUNS")?;
    let programs = match Command::new("quakestat").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(_) => &[Program::Clqd, Program::Qstat][..],
        Err(_) => {
            println!("quakestat is not installed (Debian package qstat): clqd alone");
            &[Program::Clqd]
        }
    };
    for silent in text("CLQD_SILENT", "0,20,50").split(',') {
        let silent: f64 = silent.parse().context("CLQD_SILENT")?;
        let fleet = Fleet::start(servers, players, silent / 100.0)?;
        let mut measured: HashMap<Program, Vec<Run>> = HashMap::new();
        for run in 0..runs {
            // The programs take turns to run first.
            for index in 0..programs.len() {
                let program = programs[(run + index) % programs.len()];
                measured.entry(program).or_default().push(fleet.run(program)?);
            }
        }
        fleet.print(programs, &measured);
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Program {
    Clqd,
    Qstat,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Clqd => "clqd query",
            Program::Qstat => "qstat",
        }
    }

    fn command(self, dir: &Path) -> Command {
        match self {
            Program::Clqd => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_clqd"));
                command.arg("--config").arg(dir.join("clqd.toml")).args([
                    "query",
                    "--timeout-ms",
                    "500",
                    "--retries",
                    "2",
                ]);
                command.args(["--packets-per-second-max", "1000000", "--file"]).arg(dir.join("clqd.list"));
                command
            }
            Program::Qstat => {
                let mut command = Command::new("quakestat");
                command.args(["-maxsim", "1000", "-sendinterval", "0", "-retry", "3", "-interval", "0.5"]);
                command.args(["-raw", "\x01", "-P", "-nnx", "-f"]).arg(dir.join("qstat.list"));
                command
            }
        }
    }

    /// Address and number of players of a line that shows a server that answered.
    fn server(self, line: &[u8]) -> Option<(&str, usize)> {
        let field = |index, separator: u8| {
            let mut fields = line.split(move |&byte| byte == separator).filter(|field| !field.is_empty());
            std::str::from_utf8(fields.nth(index)?).ok()
        };
        match self {
            // quake3://127.1.0.1:27960  0 ms  12/16  map ...
            Program::Clqd => {
                let (players, _) = field(3, b' ')?.split_once('/')?;
                // Bots follow a plus.
                let players = players.split('+').next()?;
                Some((field(0, b' ')?.strip_prefix("quake3://")?, players.parse().ok()?))
            }
            // Q3S, address, host name, map, slots, players, ...
            Program::Qstat => {
                let is_server = field(0, 1)? == "Q3S";
                Some((field(1, 1)?, field(5, 1)?.parse().ok()?)).filter(|_| is_server)
            }
        }
    }
}

/// What one run of a program used, and what it missed.
struct Run {
    wall: Duration,
    cpu: Duration,
    fleet_cpu: Duration,
    answered: usize,
    /// Servers that are not silent and not in the output.
    lost: usize,
    /// Servers with another number of players than the fleet's.
    wrong: usize,
}

/// A fleet in a process of its own, and the lists of its servers.
struct Fleet {
    process: Child,
    dir: tempfile::TempDir,
    servers: u32,
    players: usize,
    /// Addresses of the servers that are not silent.
    answering: Vec<String>,
}

impl Fleet {
    fn start(servers: u32, players: usize, silent: f64) -> anyhow::Result<Fleet> {
        let dir = tempfile::tempdir()?;
        let list = dir.path().join("clqd.list");
        let process = Command::new(env!("CARGO_BIN_EXE_clqd"))
            .args(["fleet", "--seed", &SEED.to_string(), "--servers", &servers.to_string()])
            .args(["--players", &players.to_string(), "--faults", &format!("silent={silent}")])
            .args(["--behaviours", "none", "--source-share", "0", "--quake3-port", "0", "--status-interval", "0"])
            .arg("--server-list")
            .arg(&list)
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the fleet")?;
        let mut fleet = Fleet { process, dir, servers, players, answering: Vec::new() };
        while !list.exists() {
            ensure!(fleet.process.try_wait()?.is_none(), "the fleet has exited");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::write(fleet.dir.path().join("clqd.toml"), "[scan]\nlimit_loopback = false\n")?;
        let urls = std::fs::read_to_string(&list)?;
        let addresses: Vec<&str> = urls.lines().filter_map(|url| url.strip_prefix("quake3://")).collect();
        ensure!(addresses.len() == servers as usize, "the list has {} servers", addresses.len());
        let lines: String = addresses.iter().map(|address| format!("Q3S {address}\n")).collect();
        std::fs::write(fleet.dir.path().join("qstat.list"), lines)?;
        let shares = FaultShares::NONE.with(Fault::Silent, silent);
        let answering = |server: &u32| shares.fault(SEED, *server).is_none();
        let port = addresses[0].rsplit_once(':').context("a port")?.1;
        fleet.answering =
            (0..servers).filter(answering).map(|server| format!("{}:{port}", address::address_of(server))).collect();
        Ok(fleet)
    }

    fn run(&self, program: Program) -> anyhow::Result<Run> {
        let output = self.dir.path().join("output");
        let mut command = program.command(self.dir.path());
        command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(Stdio::null());
        let fleet_pid = self.process.id().to_string();
        let (fleet_cpu, cpu, began) = (measure::threads_cpu(&fleet_pid, "")?, children_cpu()?, Instant::now());
        let status = command.status().with_context(|| format!("cannot start {}", program.name()))?;
        let (wall, cpu) = (began.elapsed(), children_cpu()? - cpu);
        let fleet_cpu = measure::threads_cpu(&fleet_pid, "")? - fleet_cpu;
        // clqd exits with 1 if servers do not respond.
        ensure!(matches!(status.code(), Some(0 | 1)), "{}: {status}", program.name());
        let output = std::fs::read(output)?;
        let mut seen: HashMap<&str, usize> = output.split(|&b| b == b'\n').filter_map(|l| program.server(l)).collect();
        let answered = seen.len();
        let counts: Vec<_> = self.answering.iter().map(|address| seen.remove(&address[..])).collect();
        ensure!(seen.is_empty(), "{}: silent servers answered", program.name());
        let lost = counts.iter().filter(|count| count.is_none()).count();
        let wrong = counts.iter().flatten().filter(|count| **count != self.players).count();
        Ok(Run { wall, cpu, fleet_cpu, answered, lost, wrong })
    }

    fn print(&self, programs: &[Program], measured: &HashMap<Program, Vec<Run>>) {
        println!(
            "{} Quake 3 servers with {} players, {} silent; medians of {} runs, lost and wrong servers of all",
            self.servers,
            self.players,
            self.servers as usize - self.answering.len(),
            measured[&programs[0]].len(),
        );
        println!("              wall s  answers/s   CPU s  us/answer  answered   lost  wrong  fleet CPU s");
        let mut results = Vec::new();
        for program in programs {
            let runs = &measured[program];
            let (wall_s, cpu_s) = (median(runs, |run| run.wall), median(runs, |run| run.cpu));
            let mut answered: Vec<usize> = runs.iter().map(|run| run.answered).collect();
            answered.sort_unstable();
            let answered = answered[answered.len() / 2];
            let rate = answered as f64 / wall_s;
            println!(
                "{:<12} {wall_s:>7.2} {rate:>10.0} {cpu_s:>7.2} {:>10.1} {answered:>9} {:>6} {:>6} {:>12.2}",
                program.name(),
                cpu_s * 1e6 / answered as f64,
                runs.iter().map(|run| run.lost).sum::<usize>(),
                runs.iter().map(|run| run.wrong).sum::<usize>(),
                median(runs, |run| run.fleet_cpu),
            );
            results.push((rate, cpu_s));
        }
        if let [(rate, cpu_s), (rate_qstat, cpu_s_qstat)] = results[..] {
            println!(
                "clqd: {:.1} times the rate of qstat, {:.2} of its CPU time\n",
                rate / rate_qstat,
                cpu_s / cpu_s_qstat
            );
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// Median in seconds.
fn median(runs: &[Run], value: fn(&Run) -> Duration) -> f64 {
    let mut values: Vec<Duration> = runs.iter().map(value).collect();
    values.sort_unstable();
    values[values.len() / 2].as_secs_f64()
}

/// User and system time of all children that have ended.
fn children_cpu() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let total = usage.user_time() + usage.system_time();
    Ok(Duration::new(total.tv_sec() as u64, total.tv_usec() as u32 * 1_000))
}
