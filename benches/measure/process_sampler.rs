//! What a process uses over some time: CPU time by thread, written bytes by kind of file.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Reads `/proc` and the sizes of files. What a thread or file had at the first sample is not
/// counted.
pub struct ProcessSampler {
    pid: u32,
    /// Directories of files that are only appended to.
    dirs: [PathBuf; 3],
    /// By number of the thread.
    threads: HashMap<u32, (String, Growth)>,
    /// By inode: a file may be renamed when it is complete.
    files: HashMap<u64, (&'static str, Growth)>,
    cpu_s_before: f64,
    written_before: u64,
}

/// What was used between two samples.
pub struct Usage {
    /// Of all threads, user and system time.
    pub cpu_s: f64,
    /// By name, without the number at its end; the largest first.
    pub threads_s: Vec<(String, f64)>,
    /// `write_bytes` of proc_pid_io(5).
    pub written: u64,
    /// Growth of files by kind, bytes.
    pub appended: BTreeMap<&'static str, u64>,
    /// Peak resident memory since the start of the process.
    pub peak_kib: u64,
}

/// A value that only grows, or begins at 0 again.
#[derive(Clone, Copy)]
struct Growth {
    first: u64,
    last: u64,
    before: u64,
}

impl Growth {
    fn from(first: u64) -> Growth {
        Growth { first, last: first, before: 0 }
    }

    fn add(&mut self, value: u64) {
        if value < self.last {
            self.before += self.last - self.first;
            self.first = 0;
        }
        self.last = value;
    }

    fn total(self) -> u64 {
        self.before + self.last - self.first
    }
}

/// The kind of a file of the log, of a checkpoint (also one that is being written), or of the scan log.
pub fn file_kind(name: &str) -> &'static str {
    match name {
        name if name.contains(".base") => "bases",
        name if name.contains(".delta") => "deltas",
        name if name.contains(".jsonl") => "scan log",
        _ => "log",
    }
}

impl ProcessSampler {
    pub fn new(pid: u32, state_dir: &Path, scan_log_dir: &Path) -> anyhow::Result<ProcessSampler> {
        let mut sampler = ProcessSampler {
            pid,
            dirs: [state_dir.join("log"), state_dir.join("checkpoints"), scan_log_dir.to_owned()],
            threads: HashMap::new(),
            files: HashMap::new(),
            cpu_s_before: 0.0,
            written_before: 0,
        };
        sampler.read(true)?;
        (sampler.cpu_s_before, sampler.written_before) = (sampler.cpu_s()?, sampler.written()?);
        Ok(sampler)
    }

    pub fn sample(&mut self) -> anyhow::Result<()> {
        self.read(false)
    }

    fn read(&mut self, is_first: bool) -> anyhow::Result<()> {
        let growth = |value| Growth::from(if is_first { value } else { 0 });
        for task in fs::read_dir(format!("/proc/{}/task", self.pid))? {
            let task = task?;
            // A thread may end between these calls.
            let Ok(stat) = fs::read_to_string(task.path().join("schedstat")) else { continue };
            let Ok(name) = fs::read_to_string(task.path().join("comm")) else { continue };
            let ns = stat.split_whitespace().next().context("schedstat is empty")?.parse()?;
            let name = name.trim_end().trim_end_matches(|c: char| c.is_ascii_digit() || c == '-').to_owned();
            let tid = task.file_name().to_string_lossy().parse()?;
            self.threads.entry(tid).or_insert_with(|| (name, growth(ns))).1.add(ns);
        }
        let entries = self.dirs.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten();
        for entry in entries {
            // A file may be removed between these calls.
            let Ok(metadata) = entry.metadata() else { continue };
            let (kind, len) = (file_kind(&entry.file_name().to_string_lossy()), metadata.len());
            self.files.entry(metadata.ino()).or_insert_with(|| (kind, growth(len))).1.add(len);
        }
        Ok(())
    }

    /// What was used since the first sample.
    pub fn usage(&mut self) -> anyhow::Result<Usage> {
        self.sample()?;
        let cpu_s = self.cpu_s()? - self.cpu_s_before;
        let mut by_name: BTreeMap<&str, f64> = BTreeMap::new();
        for (name, growth) in self.threads.values() {
            *by_name.entry(name).or_default() += growth.total() as f64 / 1e9;
        }
        let ended_s = cpu_s - by_name.values().sum::<f64>();
        by_name.insert("ended threads", ended_s.max(0.0));
        let mut threads_s: Vec<_> = by_name.into_iter().map(|(name, cpu_s)| (name.to_owned(), cpu_s)).collect();
        threads_s.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut appended = BTreeMap::new();
        for (kind, growth) in self.files.values() {
            *appended.entry(*kind).or_default() += growth.total();
        }
        Ok(Usage {
            cpu_s,
            threads_s,
            written: self.written()? - self.written_before,
            appended,
            peak_kib: self.peak_kib()?,
        })
    }

    /// proc_pid_stat(5), 100 ticks a second.
    fn cpu_s(&self) -> anyhow::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        let fields: Vec<&str> = stat.rsplit(')').next().context("stat")?.split_whitespace().collect();
        Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
    }

    fn written(&self) -> anyhow::Result<u64> {
        self.value("io", "write_bytes:")
    }

    fn peak_kib(&self) -> anyhow::Result<u64> {
        self.value("status", "VmHWM:")
    }

    fn value(&self, file: &str, name: &str) -> anyhow::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/{file}", self.pid))?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        Ok(value.with_context(|| name.to_owned())?.parse()?)
    }
}
