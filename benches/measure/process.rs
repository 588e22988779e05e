//! Processes of clqd that a bench starts and watches.

#![allow(dead_code, reason = "each bench that includes this module uses its part of it")]

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clqd::api::Status;
use clqd::api::requests;
use clqd::client::Client;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Longest time for a step of the preparation. Archiving the weeks of 200,000 servers takes hours.
const STEP_MAX: Duration = Duration::from_secs(4 * 3_600);

/// A child process that is killed when dropped.
pub struct Running(Child);

impl Running {
    pub fn start(command: &mut Command) -> anyhow::Result<Running> {
        Ok(Running(command.spawn()?))
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// See [`cpu_s`].
    pub fn cpu_s(&self) -> anyhow::Result<f64> {
        cpu_s(self.0.id())
    }

    pub fn rss_kib(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
        Ok(line.split_whitespace().next().context("VmRSS")?.parse()?)
    }

    /// Stops the process with SIGTERM and waits until it has ended.
    pub fn stop(mut self) -> anyhow::Result<()> {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM)?;
        let status = self.0.wait()?;
        ensure!(status.success(), "the daemon ended with {status}");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// User and system time of a process so far, seconds (proc_pid_stat(5), 100 ticks a second).
pub fn cpu_s(process: u32) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().context("stat")?.split_whitespace().collect();
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
}

/// The status of a running daemon.
pub fn status(socket: &Path) -> anyhow::Result<Status> {
    Client::connect(socket)?.lines(&requests::Status {})?.pop().context("a status")
}

/// Scans that have ended since the daemon started.
pub fn scans_ended(status: &Status) -> u64 {
    let counts = &status.engine.counts;
    counts.snapshots + counts.partial_snapshots + counts.misses
}

/// Waits until `done`; error: it takes longer than [`STEP_MAX`].
pub fn wait_until(what: &str, mut done: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let began = Instant::now();
    while !done()? {
        ensure!(began.elapsed() < STEP_MAX, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
