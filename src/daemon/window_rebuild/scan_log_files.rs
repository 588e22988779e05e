//! The files of the scan log that a rebuild reads, as they were when it began.

use std::fs::{self, File};
use std::io::Seek;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::replay_job::is_needed;
use crate::log::{LogEvent, LogFileLock, ReadingGuard};
use crate::scan_log::{self, LogReader, LossyReader};

/// Attempts to find a compressed file before it counts as removed.
const FIND_ATTEMPTS: usize = 3;

pub(super) struct ScanLogFiles {
    log: PathBuf,
    /// Compressed files by inode number: a rotation renames them.
    compressed: Vec<u64>,
    /// The closed file that is not yet compressed, if there is one. It is open here, so that it
    /// stays readable when compression removes it.
    closed: Option<File>,
    /// A copy of the active file: a rotation truncates it.
    active: PathBuf,
    /// While the files are read, none of them is rewritten: a rewritten file has another inode number.
    _reading: ReadingGuard,
}

impl ScanLogFiles {
    /// All recorded scans are in the files. `dir`: gets a copy of the active one.
    pub fn open(log: &Path, lock: &LogFileLock, dir: &Path) -> anyhow::Result<ScanLogFiles> {
        let active = dir.join("log.jsonl");
        fs::copy(log, &active).with_context(|| format!("cannot copy {}", log.display()))?;
        let reading = lock.begin_reading();
        // Opened before the others are listed: if it is compressed in the meantime it is
        // also among them, and duplicate scans are skipped.
        let closed = File::open(scan_log::rotated_file(log)).ok();
        let compressed = scan_log::compressed_files(log).into_iter().map(|file| Ok(fs::metadata(file)?.ino()));
        let compressed = compressed.collect::<std::io::Result<_>>().context("cannot read the scan log")?;
        Ok(ScanLogFiles { log: log.to_owned(), compressed, closed, active, _reading: reading })
    }

    /// Passes on the events from `from_ms` on, and settings. Unreadable lines are skipped, so that the
    /// others still count, and are reported.
    pub fn each(&self, from_ms: i64, each: &mut dyn FnMut(LogEvent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.each_file(from_ms, &mut |lines| {
            let mut lines = LossyReader::new(lines);
            for event in &mut lines {
                let event = event?;
                if is_needed(&event, from_ms) {
                    each(event)?;
                }
            }
            for message in lines.damage().messages() {
                tracing::warn!("rebuild of windows: {message}");
            }
            Ok(())
        })
    }

    /// Passes on the commands from `from_ms` on.
    pub fn each_command(
        &self,
        from_ms: i64,
        each: &mut dyn FnMut(LogEvent) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.each_file(from_ms, &mut |lines| {
            for command in lines.commands() {
                let (t_ms, command) = command?;
                if t_ms >= from_ms {
                    each(LogEvent::Command { t_ms, command })?;
                }
            }
            Ok(())
        })
    }

    fn each_file(&self, from_ms: i64, each: &mut dyn FnMut(LogReader) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for &number in self.compressed_from(from_ms) {
            // A file deleted by retention is skipped.
            self.open_compressed(number)?.map_or(Ok(()), &mut *each)?;
        }
        if let Some(closed) = &self.closed {
            let mut file = closed.try_clone()?;
            file.rewind()?;
            each(scan_log::from_file(&scan_log::rotated_file(&self.log), file)?)?;
        }
        each(scan_log::open(&self.active)?)
    }

    /// The compressed files that may have scans of `from_ms` or later.
    fn compressed_from(&self, from_ms: i64) -> &[u64] {
        let starts_before = |number: &u64| {
            let lines = self.open_compressed(*number).ok().flatten();
            let first = lines.and_then(|mut lines| lines.find_map(Result::ok));
            first.is_some_and(|event| event.t_ms() <= from_ms)
        };
        &self.compressed[self.compressed.iter().rposition(starts_before).unwrap_or(0)..]
    }

    /// Opens the compressed file with an inode number, whatever its current name is.
    fn open_compressed(&self, number: u64) -> anyhow::Result<Option<LogReader>> {
        // A file that is renamed during the search has a larger number at the next attempt.
        for path in (0..FIND_ATTEMPTS).flat_map(|_| scan_log::compressed_files(&self.log)) {
            let Ok(file) = File::open(&path) else { continue };
            if file.metadata()?.ino() == number {
                return Ok(Some(scan_log::from_file(&path, file)?));
            }
        }
        Ok(None)
    }
}

/// Time of the oldest readable scan.
pub(super) fn first_scan_ms(log: &Path) -> Option<i64> {
    let files = scan_log::compressed_files(log).into_iter().chain([scan_log::rotated_file(log), log.to_owned()]);
    let first_scan = |file: PathBuf| {
        let mut events = scan_log::open(&file).ok()?.filter_map(Result::ok);
        events.find(|event| matches!(event, LogEvent::Scan { .. }))
    };
    files.into_iter().find_map(first_scan).map(|event| event.t_ms())
}
