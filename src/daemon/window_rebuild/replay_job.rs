//! The thread of a rebuild. It replays the recorded scans into a separate state: first the
//! log files, then, chunk by chunk, the scans recorded in the meantime, until few are left.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Seek;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::engine::{EngineSettings, RebuiltServer};
use crate::log::LogEvent;
use crate::model::{AdminCommand, ServerUrl};
use crate::scan_log::{self, LogReader, LossyReader, ReadingGuard};
use crate::state::{ReplayFeed, State};
use crate::store::{StoreError, StoreSettings};

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
    pub servers: Vec<RebuiltServer>,
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
        for server in &self.servers {
            state.engine.add_server(server.url.clone(), server.tags.clone(), 0)?;
            state.engine.trust_server(&server.url, &server.exempt, &[])?;
        }
        let mut replay = LogReplay {
            feed: ReplayFeed::background(),
            from_ms: self.from_ms,
            greylisted: self.greylisted_before_the_log()?,
            is_cancelled: self.is_cancelled.clone(),
        };
        for &number in self.compressed_from() {
            // A file deleted by retention is skipped.
            let Some(lines) = open_compressed(&self.log, number)? else { continue };
            replay.apply(&mut state, lines)?;
        }
        self.log_reading = None;
        if let Some(closed) = self.closed.take() {
            replay.apply(&mut state, scan_log::from_file(&scan_log::rotated_file(&self.log), reopened(&closed)?)?)?;
        }
        replay.apply(&mut state, scan_log::open(&self.dir.join("log.jsonl"))?)?;
        loop {
            state.commit()?;
            let chunk = next_chunk().context("the daemon is stopping")?;
            replay.apply(&mut state, scan_log::open(&chunk.path)?)?;
            _ = fs::remove_file(&chunk.path);
            if chunk.lines < CAUGHT_UP_LINES_MAX {
                state.commit()?;
                return Ok(state);
            }
        }
    }

    /// The servers that were greylisted when the log begins. These are the servers whose first greylist
    /// command in the log lifts the greylisting, and servers without such a command that are greylisted
    /// now.
    fn greylisted_before_the_log(&self) -> anyhow::Result<Vec<ServerUrl>> {
        let mut is_greylisted: BTreeMap<ServerUrl, bool> = BTreeMap::new();
        let mut note = |lines: LogReader| -> anyhow::Result<()> {
            for command in lines.commands() {
                check_cancelled(&self.is_cancelled)?;
                match command? {
                    (t_ms, _) if t_ms < self.from_ms => {}
                    (_, AdminCommand::Greylist { server, .. }) => _ = is_greylisted.entry(server).or_insert(false),
                    (_, AdminCommand::Lift { server }) => _ = is_greylisted.entry(server).or_insert(true),
                    _ => {}
                }
            }
            Ok(())
        };
        for &number in self.compressed_from() {
            open_compressed(&self.log, number)?.map_or(Ok(()), &mut note)?;
        }
        if let Some(closed) = &self.closed {
            note(scan_log::from_file(&scan_log::rotated_file(&self.log), reopened(closed)?)?)?;
        }
        note(scan_log::open(&self.dir.join("log.jsonl"))?)?;
        for server in self.servers.iter().filter(|server| server.is_greylisted) {
            is_greylisted.entry(server.url.clone()).or_insert(true);
        }
        let greylisted = is_greylisted.into_iter().filter(|(_, is_greylisted)| *is_greylisted);
        Ok(greylisted.map(|(server, _)| server).collect())
    }

    /// The compressed files that may have scans of `from_ms` or later.
    fn compressed_from(&self) -> &[u64] {
        let starts_before = |number: &u64| {
            let lines = open_compressed(&self.log, *number).ok().flatten();
            let first = lines.and_then(|mut lines| lines.find_map(Result::ok));
            first.is_some_and(|event| event.t_ms() <= self.from_ms)
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

/// The same file, from its beginning.
fn reopened(file: &File) -> std::io::Result<File> {
    let mut file = file.try_clone()?;
    file.rewind()?;
    Ok(file)
}

/// Applies the lines of files from a time on.
struct LogReplay {
    feed: ReplayFeed,
    from_ms: i64,
    /// The servers that were greylisted before the log. Version 1.0 recorded neither commands nor
    /// settings, and no lists of greylisted servers. So this applies from the first line with settings.
    greylisted: Vec<ServerUrl>,
    is_cancelled: Arc<AtomicBool>,
}

impl LogReplay {
    fn apply(&mut self, state: &mut State, lines: LogReader) -> anyhow::Result<()> {
        let mut lines = LossyReader::new(lines);
        while let Some(event) = next_event(&mut lines, self.from_ms)? {
            match event {
                LogEvent::Scan { server, outcome } => self.feed.observe_scan(state, server, outcome)?,
                LogEvent::Settings { .. } => {
                    for server in std::mem::take(&mut self.greylisted) {
                        state.engine.add_server(server.clone(), Vec::new(), 0)?;
                        state.engine.greylist(&server, Some("before the log".to_owned()))?;
                    }
                }
                event => apply_to_servers(state, &event)?,
            }
            if self.feed.is_at_check() {
                check_cancelled(&self.is_cancelled)?;
            }
        }
        Ok(())
    }
}

fn check_cancelled(is_cancelled: &AtomicBool) -> anyhow::Result<()> {
    anyhow::ensure!(!is_cancelled.load(Ordering::Relaxed), "the rebuild was cancelled");
    Ok(())
}

/// Applies a command that decides which lists of a server count. Other commands are not needed: the
/// import uses the present names of players and the present tags of servers, and the present
/// settings apply.
pub(super) fn apply_to_servers(state: &mut State, event: &LogEvent) -> Result<(), StoreError> {
    let LogEvent::Command { t_ms, command } = event else { return Ok(()) };
    match command {
        AdminCommand::Add { server, .. } => {
            state.apply_command(*t_ms, &AdminCommand::Add { server: server.clone(), tags: Vec::new() }).map(drop)
        }
        AdminCommand::Remove { .. }
        | AdminCommand::Greylist { .. }
        | AdminCommand::Lift { .. }
        | AdminCommand::Trust { .. } => state.apply_command(*t_ms, command).map(drop),
        _ => Ok(()),
    }
}

/// The readable lines of a log.
pub(super) type Lines = LossyReader<LogEvent>;

/// The next line of `from_ms` or later, or with settings. Unreadable lines are skipped, so that the others
/// still count, and are reported at the end.
pub(super) fn next_event(lines: &mut Lines, from_ms: i64) -> Result<Option<LogEvent>, scan_log::LogError> {
    for line in &mut *lines {
        match line? {
            event @ LogEvent::Settings { .. } => return Ok(Some(event)),
            event if event.t_ms() < from_ms => {}
            event => return Ok(Some(event)),
        }
    }
    for message in lines.damage().messages() {
        tracing::warn!("rebuild of windows: {message}");
    }
    Ok(None)
}
