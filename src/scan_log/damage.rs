//! Damage of a scan log: a truncated end, and damaged lines. Both are counted and
//! reported with line numbers, so that an admin can inspect them.

use std::fmt;

use super::error::{LogError, Truncation};

/// Maximum number of damaged ranges that are listed; all are counted.
const RANGES_LISTED_MAX: usize = 20;

/// Consecutive lines that cannot be read.
#[derive(Debug)]
pub struct DamagedRange {
    /// Numbers of the first and the last line, from 1.
    pub first: u64,
    pub last: u64,
    pub bytes: u64,
    /// The error of the line that was found first.
    pub why: LogError,
}

impl fmt::Display for DamagedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DamagedRange { first, last, bytes, why } = self;
        write!(f, "{why}")?;
        for cause in anyhow::Chain::new(why).skip(1) {
            write!(f, ": {cause}")?;
        }
        match first == last {
            true => write!(f, " ({bytes} bytes)"),
            false => write!(f, " (lines {first} to {last}, {bytes} bytes)"),
        }
    }
}

/// Everything that was skipped in a log.
#[derive(Debug, Default)]
pub struct Damage {
    /// The first ranges, in order of discovery.
    pub ranges: Vec<DamagedRange>,
    /// Totals: ranges, also those that are not listed, lines and bytes.
    pub range_count: u64,
    pub lines: u64,
    pub bytes: u64,
    pub truncation: Option<Truncation>,
    /// First and last line of the range found last.
    latest: Option<(u64, u64)>,
}

impl Damage {
    /// Whether the complete log was read.
    pub fn is_empty(&self) -> bool {
        self.lines == 0 && self.truncation.is_none()
    }

    /// Counts a skipped line.
    pub(in crate::scan_log) fn skip(&mut self, line: u64, bytes: u64, why: LogError) {
        self.lines += 1;
        self.bytes += bytes;
        let extended = match self.latest {
            Some((first, last)) if line == last + 1 => Some((first, line)),
            Some((first, last)) if line + 1 == first => Some((line, last)),
            _ => None,
        };
        self.latest = extended.or(Some((line, line)));
        match extended {
            None => {
                self.range_count += 1;
                if self.ranges.len() < RANGES_LISTED_MAX {
                    self.ranges.push(DamagedRange { first: line, last: line, bytes, why });
                }
            }
            // If the list is full, the latest range is not in it.
            Some((first, last)) if self.range_count == self.ranges.len() as u64 => {
                let range = self.ranges.last_mut().expect("a range was listed");
                range.bytes += bytes;
                (range.first, range.last) = (first, last);
            }
            Some(_) => {}
        }
    }

    /// What was skipped: one sentence for each listed range, and one for the total.
    pub fn messages(&self) -> impl Iterator<Item = String> {
        let listed = self.ranges.iter().map(|range| format!("{range}: skipped"));
        let more = self.range_count - self.ranges.len() as u64;
        let total = (self.range_count > 1).then(|| {
            let more = if more == 0 { String::new() } else { format!(", {more} of them not listed") };
            format!("{} lines, {} bytes in {} ranges skipped{more}", self.lines, self.bytes, self.range_count)
        });
        listed.chain(total).chain(self.truncation.iter().map(|truncation| format!("{truncation}: dropped")))
    }
}
