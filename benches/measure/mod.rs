//! Measurements of this process: CPU time, memory, files.

#![allow(dead_code, reason = "each bench that includes this module uses its part of it")]

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

/// CPU time of this thread (schedstats in the kernel's docs): other load on the machine has
/// little effect.
pub fn on_core() -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns = text.split_whitespace().next().context("schedstat is empty")?;
    Ok(Duration::from_nanos(ns.parse()?))
}

/// CPU time of the living threads of a process (its number, or "self") whose names begin with
/// `prefix`.
pub fn threads_cpu(process: &str, prefix: &str) -> anyhow::Result<Duration> {
    let mut total_ns = 0;
    for task in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.starts_with(prefix) {
            let stat = std::fs::read_to_string(task.join("schedstat"))?;
            total_ns += stat.split_whitespace().next().context("schedstat is empty")?.parse::<u64>()?;
        }
    }
    Ok(Duration::from_nanos(total_ns))
}

/// Resident memory now, KiB.
pub fn resident_kib() -> anyhow::Result<u64> {
    status_kib("VmRSS:")
}

/// Peak resident memory, KiB.
pub fn peak_kib() -> anyhow::Result<u64> {
    status_kib("VmHWM:")
}

/// A value of proc_pid_status(5), KiB.
fn status_kib(what: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let number = status.lines().find_map(|line| line.strip_prefix(what)?.split_whitespace().next());
    Ok(number.map_or(Ok(0), str::parse)?)
}

/// Total size of all files in a directory, bytes.
pub fn on_disk(dir: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    let there = |result: std::io::Result<u64>| match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0), // removed meanwhile
        result => result,
    };
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let of_entry = || match entry.file_type()?.is_dir() {
            true => on_disk(&entry.path()),
            false => Ok(entry.metadata()?.len()),
        };
        bytes += there(of_entry())?;
    }
    Ok(bytes)
}
