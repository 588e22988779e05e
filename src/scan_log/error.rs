//! Why a scan log, or one of its lines, cannot be read.

use std::fmt;
use std::path::PathBuf;

use super::line::LineError;
use crate::limits::SCAN_LOG_LINE_BYTES_MAX;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot read the scan log {}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line}", path = path.display())]
    Line { path: PathBuf, line: u64, source: LineError },
    #[error("{path}:{line}: not UTF-8", path = path.display())]
    NotUtf8 { path: PathBuf, line: u64 },
    #[error("{path}:{line}: longer than {SCAN_LOG_LINE_BYTES_MAX} bytes", path = path.display())]
    TooLong { path: PathBuf, line: u64 },
    #[error("{path}:{line}: t = {t_ms} is before the previous line's t = {before_ms}: a scan log must be in time order", path = path.display())]
    Order { path: PathBuf, line: u64, t_ms: i64, before_ms: i64 },
    #[error("{0}")]
    Truncated(Truncation),
    #[error("{path}:{line}: the compressed data are damaged; no line after this one can be read", path = path.display())]
    Decompress { path: PathBuf, line: u64, source: std::io::Error },
}

/// An incomplete end, caused by a crash or a power cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncation {
    pub path: PathBuf,
    /// Number of the incomplete line, from 1.
    pub line: u64,
    /// Bytes of the line in the file, decompressed.
    pub bytes: u64,
    /// The compressed data end inside a frame: the amount of lost data is unknown.
    pub is_compressed: bool,
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Truncation { path, line, bytes, is_compressed } = self;
        let what = match is_compressed {
            true => "the compressed data are truncated, all further lines are lost",
            false => "the last line is incomplete",
        };
        write!(f, "{}:{line}: {what} ({bytes} bytes of this line are in the file)", path.display())
    }
}
