//! Reads a scan log that may be damaged: skips unreadable lines and counts them. The caller
//! decides which damage it accepts.

use std::path::Path;

use super::damage::Damage;
use super::error::LogError;
use super::reader::{LogReader, ParsedLine, open};
use crate::log::LogEvent;

/// Summary of a complete log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSummary {
    pub lines: u64,
    /// Times of the first and the last line, Unix ms; `i64::MAX` and `i64::MIN` if the
    /// log is empty.
    pub first_ms: i64,
    pub last_ms: i64,
    /// The first line sets recorded time back: the log continues one that ends later than it begins.
    pub begins_with_clock: bool,
}

/// Checks a complete log before any of it is applied. Unreadable lines are skipped and
/// returned as damage. Error: the file cannot be read.
pub fn check(path: &Path) -> Result<(LogSummary, Damage), LogError> {
    let mut summary = LogSummary { lines: 0, first_ms: i64::MAX, last_ms: i64::MIN, begins_with_clock: false };
    let mut lines = LossyReader::new(open(path)?);
    for event in lines.by_ref() {
        let event = event?;
        if summary.lines == 0 {
            (summary.first_ms, summary.begins_with_clock) = (event.t_ms(), event.sets_clock());
        }
        summary.last_ms = event.t_ms();
        summary.lines += 1;
    }
    Ok((summary, lines.damage))
}

/// The readable lines of a log, in time order. Error: the file cannot be read.
///
/// Reads one line ahead. If the next line is earlier than the pending line but not
/// earlier than the line before that, the pending line has the wrong time, and only it
/// is skipped. A line that sets recorded time back may be earlier than the one before it.
pub struct LossyReader {
    lines: LogReader,
    pending: Option<ParsedLine>,
    latest_ms: i64,
    damage: Damage,
}

impl LossyReader {
    /// Returns the readable lines of a log and counts the others.
    pub fn new(lines: LogReader) -> LossyReader {
        LossyReader { lines, pending: None, latest_ms: i64::MIN, damage: Damage::default() }
    }

    /// What was skipped so far.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Skips a line whose time is not in order with its neighbour.
    fn skip(&mut self, read: &ParsedLine, neighbour_ms: i64) {
        let (path, line, t_ms) = (self.lines.path.clone(), read.line, read.event.t_ms());
        let error = match t_ms < neighbour_ms {
            true => LogError::Order { path, line, t_ms, before_ms: neighbour_ms },
            false => LogError::Order { path, line: line + 1, t_ms: neighbour_ms, before_ms: t_ms },
        };
        self.damage.skip(line, read.bytes, error);
    }
}

impl Iterator for LossyReader {
    type Item = Result<LogEvent, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let new = match self.lines.read() {
                Some(Ok(new)) => new,
                Some(Err(error @ LogError::Io { .. })) => return Some(Err(error)),
                Some(Err(LogError::Truncated(truncation))) => {
                    self.damage.truncation = Some(truncation);
                    continue;
                }
                Some(Err(error)) => {
                    self.damage.skip(self.lines.line, self.lines.line_bytes, error);
                    continue;
                }
                None => return self.pending.take().map(|pending| Ok(pending.event)),
            };
            let (t_ms, sets_clock) = (new.event.t_ms(), new.event.sets_clock());
            match self.pending.take() {
                Some(pending) if t_ms >= pending.event.t_ms() || sets_clock => {
                    self.latest_ms = if sets_clock { t_ms } else { pending.event.t_ms() };
                    self.pending = Some(new);
                    return Some(Ok(pending.event));
                }
                Some(pending) if t_ms >= self.latest_ms && !pending.event.sets_clock() => {
                    self.skip(&pending, t_ms);
                    self.pending = Some(new);
                }
                Some(pending) => {
                    self.skip(&new, pending.event.t_ms());
                    self.pending = Some(pending);
                }
                None => self.pending = Some(new),
            }
        }
    }
}

#[cfg(test)]
mod tests;
