//! The end of a scan log: the lines that a state does not contain yet.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use super::error::LogError;
use super::reader::{LogReader, from_file, parse_with_time};
use crate::log::LogEvent;

/// Bytes at the end of a log that are searched first.
const TAIL_WINDOW_BYTES: u64 = 1 << 20;

/// The end of a plain log, read line by line.
pub struct LogTail {
    lines: LogReader,
    has_new: bool,
    damaged: u64,
}

/// Opens a plain log at a line near its end, such that all new lines follow. If one
/// line is not new, no line before it is.
pub fn read_tail(path: &Path, is_new: impl Fn(&LogEvent) -> bool) -> Result<LogTail, LogError> {
    let failed = |source| LogError::Io { path: path.to_owned(), source };
    let len = std::fs::metadata(path).map_err(failed)?.len();
    let mut window = TAIL_WINDOW_BYTES;
    loop {
        let from = len.saturating_sub(window);
        let begin = || {
            let mut file = File::open(path).map_err(failed)?;
            file.seek(SeekFrom::Start(from)).map_err(failed)?;
            let mut tail = LogTail { lines: from_file(path, file)?, has_new: false, damaged: 0 };
            if from > 0 {
                // The first line may be incomplete; all others are complete.
                tail.lines.read_line()?;
            }
            Ok(tail)
        };
        let first = begin()?.next_line()?;
        if from == 0 || first.is_some_and(|event| !is_new(&event)) {
            return begin();
        }
        window *= 2;
    }
}

impl LogTail {
    /// The next new line.
    pub fn next_new(&mut self, is_new: impl Fn(&LogEvent) -> bool) -> Result<Option<LogEvent>, LogError> {
        while let Some(event) = self.next_line()? {
            if is_new(&event) {
                self.has_new = true;
                return Ok(Some(event));
            }
            if !self.has_new {
                self.damaged = 0;
            }
        }
        Ok(None)
    }

    /// Number of unreadable lines among the new lines so far; they were skipped.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The next readable line.
    fn next_line(&mut self) -> Result<Option<LogEvent>, LogError> {
        loop {
            match self.lines.read(parse_with_time) {
                None => return Ok(None),
                Some(Ok(read)) => return Ok(Some(read.value)),
                Some(Err(error @ LogError::Io { .. })) => return Err(error),
                Some(Err(_)) => self.damaged += 1,
            }
        }
    }
}
