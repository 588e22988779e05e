//! The thread of a rebuild. It replays the recorded scans into a separate state: first the
//! log files, then, chunk by chunk, the scans recorded in the meantime, until few are left.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::engine::{EngineSettings, Outcome};
use crate::model::ServerUrl;
use crate::scan_log::{self, LogReader, LossyReader, ReadingGuard};
use crate::state::{ReplayFeed, State};
use crate::store::StoreSettings;

/// With fewer scans left the thread has caught up.
const CAUGHT_UP_LINES_MAX: u64 = 1_000;

/// Attempts to find a compressed file before it counts as removed.
const FIND_ATTEMPTS: usize = 3;

/// A chunk of the recorded scans, whole lines.
pub(super) struct LogChunk {
    pub path: PathBuf,
    pub lines: u64,
}

/// The input of the thread.
pub(super) struct ReplayJob {
    pub dir: PathBuf,
    pub store: StoreSettings,
    pub settings: EngineSettings,
    pub tags: Vec<(ServerUrl, Vec<String>)>,
    pub from_ms: i64,
    pub log: PathBuf,
    /// Compressed log files by inode number: a rotation renames them.
    pub compressed: Vec<u64>,
    /// The closed log file that is not yet compressed, if there is one. It is open here, so
    /// that it stays readable when compression removes it.
    pub closed: Option<File>,
    /// Until the compressed files are read, none of them is rewritten: a rewritten file has
    /// another inode number.
    pub log_reading: Option<ReadingGuard>,
    pub is_cancelled: Arc<AtomicBool>,
}

impl ReplayJob {
    pub fn run(&mut self, next_chunk: &mut dyn FnMut() -> Option<LogChunk>) -> anyhow::Result<State> {
        let mut state = State::open(&self.dir.join("state"), self.store, self.settings.clone())?;
        for (url, tags) in &self.tags {
            state.engine.add_server(url.clone(), tags.clone(), 0)?;
        }
        let feed = &mut ReplayFeed::background();
        for &number in self.compressed_from() {
            // A file deleted by retention is skipped.
            let Some(lines) = open_compressed(&self.log, number)? else { continue };
            replay(&mut state, feed, lines, self.from_ms, &self.is_cancelled)?;
        }
        self.log_reading = None;
        if let Some(closed) = self.closed.take() {
            replay(
                &mut state,
                feed,
                scan_log::from_file(&scan_log::rotated_file(&self.log), closed)?,
                self.from_ms,
                &self.is_cancelled,
            )?;
        }
        replay(&mut state, feed, scan_log::open(&self.dir.join("log.jsonl"))?, self.from_ms, &self.is_cancelled)?;
        loop {
            state.commit()?;
            let chunk = next_chunk().context("the daemon is stopping")?;
            replay(&mut state, feed, scan_log::open(&chunk.path)?, self.from_ms, &self.is_cancelled)?;
            _ = fs::remove_file(&chunk.path);
            if chunk.lines < CAUGHT_UP_LINES_MAX {
                state.commit()?;
                return Ok(state);
            }
        }
    }

    /// The compressed files that may have scans of `from_ms` or later.
    fn compressed_from(&self) -> &[u64] {
        let starts_before = |number: &u64| {
            let lines = open_compressed(&self.log, *number).ok().flatten();
            let first = lines.and_then(|mut lines| lines.find_map(Result::ok));
            first.is_some_and(|(_, outcome)| outcome.t_ms() <= self.from_ms)
        };
        &self.compressed[self.compressed.iter().rposition(starts_before).unwrap_or(0)..]
    }
}

/// Opens the compressed file with an inode number, whatever its current name is.
fn open_compressed(log: &Path, number: u64) -> anyhow::Result<Option<LogReader>> {
    // A file that is renamed during the search has a larger number at the next attempt.
    for path in (0..FIND_ATTEMPTS).flat_map(|_| scan_log::compressed_files(log)) {
        let Ok(file) = File::open(&path) else { continue };
        if file.metadata()?.ino() == number {
            return Ok(Some(scan_log::from_file(&path, file)?));
        }
    }
    Ok(None)
}

/// Applies the lines from a time on.
fn replay(
    state: &mut State,
    feed: &mut ReplayFeed,
    lines: LogReader,
    from_ms: i64,
    is_cancelled: &AtomicBool,
) -> anyhow::Result<()> {
    let mut lines = LossyReader::new(lines);
    while let Some((url, outcome)) = next_outcome(&mut lines, from_ms)? {
        feed.observe(state, url, outcome)?;
        if feed.is_at_check() {
            anyhow::ensure!(!is_cancelled.load(Ordering::Relaxed), "the rebuild was cancelled");
        }
    }
    Ok(())
}

/// The readable lines of a log.
pub(super) type Lines = LossyReader<(ServerUrl, Outcome)>;

/// The next line of `from_ms` or later. Unreadable lines are skipped, so that the others
/// still count, and are reported at the end.
pub(super) fn next_outcome(
    lines: &mut Lines,
    from_ms: i64,
) -> Result<Option<(ServerUrl, Outcome)>, scan_log::LogError> {
    for line in &mut *lines {
        match line? {
            (_, outcome) if outcome.t_ms() < from_ms => {}
            line => return Ok(Some(line)),
        }
    }
    for message in lines.damage().messages() {
        tracing::warn!("rebuild of windows: {message}");
    }
    Ok(None)
}
