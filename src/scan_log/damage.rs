//! What of a scan log cannot be read: an incomplete end, and damaged lines. Both are
//! counted and named by line, so that a person can look at them.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use crate::scan_log::reader::LogError;

/// Stretches of damaged lines that are named; all are counted.
const RANGES_LISTED_MAX: usize = 20;

/// An incomplete end, as a crash or a power cut leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncation {
    pub path: PathBuf,
    /// The line that is not whole, from 1.
    pub line: u64,
    /// Bytes of it that are there, unpacked.
    pub bytes: u64,
    /// The packed data end inside a frame: how much followed is unknown.
    pub is_packed: bool,
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Truncation { path, line, bytes, is_packed } = self;
        let what = match is_packed {
            true => "the packed data are incomplete and what followed is missing",
            false => "the last line is incomplete",
        };
        write!(f, "{}:{line}: {what} ({bytes} bytes of this line are there)", path.display())
    }
}

/// Neighbouring lines that cannot be read.
#[derive(Debug)]
pub struct DamagedRange {
    /// Numbers of the first and the last line, from 1.
    pub first: u64,
    pub last: u64,
    pub bytes: u64,
    /// What is wrong with the line that was found first.
    pub why: LogError,
}

impl fmt::Display for DamagedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DamagedRange { first, last, bytes, why } = self;
        write!(f, "{why}")?;
        let mut why: &dyn Error = why;
        while let Some(source) = why.source() {
            write!(f, ": {source}")?;
            why = source;
        }
        match first == last {
            true => write!(f, " ({bytes} bytes)"),
            false => write!(f, " (lines {first} to {last}, {bytes} bytes)"),
        }
    }
}

/// All that was skipped of a log.
#[derive(Debug, Default)]
pub struct Damage {
    /// The first ones, in order of discovery.
    pub stretches: Vec<DamagedRange>,
    /// All stretches, their lines and their bytes.
    pub places: u64,
    pub lines: u64,
    pub bytes: u64,
    pub cut: Option<Truncation>,
    /// First and last line of the stretch that was found last.
    latest: Option<(u64, u64)>,
}

impl Damage {
    /// Whether all of the log was read.
    pub fn is_empty(&self) -> bool {
        self.lines == 0 && self.cut.is_none()
    }

    /// Counts a line that is skipped.
    pub(in crate::scan_log) fn skip(&mut self, line: u64, bytes: u64, why: LogError) {
        self.lines += 1;
        self.bytes += bytes;
        let grown = match self.latest {
            Some((first, last)) if line == last + 1 => Some((first, line)),
            Some((first, last)) if line + 1 == first => Some((line, last)),
            _ => None,
        };
        self.latest = grown.or(Some((line, line)));
        match grown {
            None => {
                self.places += 1;
                if self.stretches.len() < RANGES_LISTED_MAX {
                    self.stretches.push(DamagedRange { first: line, last: line, bytes, why });
                }
            }
            // Where the list is full, the latest stretch is not in it.
            Some((first, last)) if self.places == self.stretches.len() as u64 => {
                let stretch = self.stretches.last_mut().expect("there is a latest one");
                stretch.bytes += bytes;
                (stretch.first, stretch.last) = (first, last);
            }
            Some(_) => {}
        }
    }

    /// What was skipped, one sentence for each stretch that is named, and one for all.
    pub fn messages(&self) -> impl Iterator<Item = String> {
        let named = self.stretches.iter().map(|stretch| format!("{stretch}: skipped"));
        let more = self.places - self.stretches.len() as u64;
        let all = (self.places > 1).then(|| {
            let more = if more == 0 { String::new() } else { format!(", {more} of them not named here") };
            format!("{} lines, {} bytes in {} places skipped{more}", self.lines, self.bytes, self.places)
        });
        named.chain(all).chain(self.cut.iter().map(|cut| format!("{cut}: dropped")))
    }
}
