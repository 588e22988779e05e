//! Scans a whole fleet on one machine: `cargo bench --bench scan`.
//!
//! Starts a fleet of `CLQD_SERVERS` (default 20,000) simulated servers and a daemon, each
//! in a separate process, with a scan of every server every two minutes. After a warm-up it
//! prints, for `CLQD_SECONDS` (default 300) of steady scanning: scans a second, how late
//! they began, and the CPU share and memory of the daemon and the fleet.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clqd::api::Status;
use clqd::control::{Client, Request, Row};

fn main() -> anyhow::Result<()> {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (servers, seconds) = (number("CLQD_SERVERS", 20_000), number("CLQD_SECONDS", 300));
    let clqd = env!("CARGO_BIN_EXE_clqd");
    let dir = tempfile::tempdir()?;
    let (list, socket, config) =
        (dir.path().join("servers"), dir.path().join("control.sock"), dir.path().join("clqd.toml"));
    let archive = std::env::var("CLQD_MYSQL").map(|url| format!("[archive]\nurl = \"{url}\"\n")).unwrap_or_default();
    std::fs::write(
        &config,
        format!(
            "state_dir = {:?}\ncontrol_socket = {socket:?}\nlog_filter = \"warn\"\n[scan]\nallow_private = true\n\
             interval_class2_s = 120\nsubnet_packets_per_second_max = 1000\nsubnet_burst_packets = 1000\n{archive}",
            dir.path().join("state")
        ),
    )?;
    let fleet = Running(
        Command::new(clqd)
            .args(["fleet", "--activity", "4", "--faults", "default", "--status-interval", "0"])
            .args(["--quake3-port", "0", "--source-port", "0", "--servers", &servers.to_string(), "--server-list"])
            .arg(&list)
            .stdout(Stdio::null())
            .spawn()?,
    );
    wait_until("the fleet's list", || Ok(list.exists()))?;
    let daemon = Running(Command::new(clqd).arg("--config").arg(&config).arg("run").spawn()?);
    wait_until("the control socket", || Ok(Client::connect(&socket).is_ok()))?;
    let import = Command::new(clqd).arg("--config").arg(&config).args(["servers", "import"]).arg(&list).output()?;
    ensure!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));

    // Every server's first scan is due at once; the first round of two minutes determines
    // the classes.
    std::thread::sleep(Duration::from_secs(150));
    let (before, began) = (status(&socket)?, Instant::now());
    let used_before = [fleet.cpu_s()?, daemon.cpu_s()?];
    std::thread::sleep(Duration::from_secs(seconds));
    let (after, wall) = (status(&socket)?, began.elapsed().as_secs_f64());
    let used = [fleet.cpu_s()? - used_before[0], daemon.cpu_s()? - used_before[1]];
    let outcomes = |s: &Status| s.engine.counts.snapshots + s.engine.counts.partial_snapshots + s.engine.counts.misses;
    println!("servers      {}, by class {:?}", after.engine.servers, after.engine.servers_by_class);
    println!("scans        {:.1} a second", (outcomes(&after) - outcomes(&before)) as f64 / wall);
    println!("players      {} online, {} known", after.engine.players_online, after.engine.players_known);
    println!(
        "lag          p50 {:?} ms, p99 {:?} ms, of all scheduled scans since the start",
        after.engine.lag_ms_p50, after.engine.lag_ms_p99
    );
    println!(
        "late (> 2 s) {} of {} scans while measured",
        after.engine.counts.late_scans - before.engine.counts.late_scans,
        outcomes(&after) - outcomes(&before)
    );
    println!("daemon       {:.1} % of a core, {} MB resident", 100.0 * used[1] / wall, daemon.rss_kib()? >> 10);
    println!("fleet        {:.1} % of a core, {} MB resident", 100.0 * used[0] / wall, fleet.rss_kib()? >> 10);
    println!("outbox       {} waiting", after.outbox_entries);
    Ok(())
}

/// A child process that is stopped when dropped.
struct Running(Child);

impl Running {
    /// User and system time so far, seconds (proc_pid_stat(5), 100 ticks a second).
    fn cpu_s(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().context("stat")?.split_whitespace().collect();
        Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
    }

    fn rss_kib(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
        Ok(line.split_whitespace().next().context("VmRSS")?.parse()?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn status(socket: &Path) -> anyhow::Result<Status> {
    let mut found = None;
    Client::connect(socket)?.send(&Request::Status {}, &mut |row| {
        if let Row::Status(status) = row {
            found = Some(*status);
        }
        Ok(())
    })?;
    found.context("a status")
}

fn wait_until(what: &str, mut done: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let began = Instant::now();
    while !done()? {
        ensure!(began.elapsed() < Duration::from_secs(60), "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
