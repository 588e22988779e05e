//! The active file of a scan log: whether a path can be one, and the repair of its end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::LogError;
use super::line;
use super::reader::open;
use crate::limits::SCAN_LOG_LINE_BYTES_MAX;

/// Why scans cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is not a file; name a file that the scan log is written to", .0.display())]
    NotAFile(PathBuf),
    #[error("{} ends in .zst, as compressed scan logs do; the active one is plain text", .0.display())]
    Compressed(PathBuf),
    #[error(transparent)]
    Read(#[from] LogError),
    #[error("{} exists and is not a scan log; move it away, or name another file", path.display())]
    NotALog { path: PathBuf, source: LogError },
}

/// The error of an operation on a file.
pub(super) fn record_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    move |source| RecordError::Io { what, path: path.to_owned(), source }
}

/// One of this many first lines must be a line of a scan log.
const PROBE_LINES_MAX: usize = 100;

/// The recorder writes this at the beginning of every line.
const LINE_PREFIX: &[u8] = b"{\"t\":";

/// Checks that scans can be recorded to a file: it does not exist, is empty, or is a
/// scan log. Changes nothing.
pub fn check_log_path(path: &Path) -> Result<(), RecordError> {
    if path.extension().is_some_and(|end| end == "zst") {
        return Err(RecordError::Compressed(path.to_owned()));
    }
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(RecordError::Io { what: "read the metadata of", path: path.to_owned(), source }),
        Ok(found) if !found.is_file() => return Err(RecordError::NotAFile(path.to_owned())),
        Ok(_) => {}
    }
    let not_a_log = |source| match source {
        LogError::Io { path, source } => RecordError::Io { what: "read", path, source },
        source => RecordError::NotALog { path: path.to_owned(), source },
    };
    let mut lines = open(path).map_err(not_a_log)?;
    let mut first_error = None;
    for _ in 0..PROBE_LINES_MAX {
        match lines.next() {
            Some(Ok(_)) => return Ok(()),
            // The first line of the log is truncated.
            Some(Err(LogError::Truncated(_))) if first_error.is_none() && is_truncated_line_start(lines.buffer()) => {
                return Ok(());
            }
            Some(Err(error @ LogError::Io { .. })) => return Err(not_a_log(error)),
            Some(Err(error)) => _ = first_error.get_or_insert(error),
            None => break,
        }
    }
    first_error.map_or(Ok(()), |error| Err(not_a_log(error)))
}

/// Whether the bytes are the beginning of a recorded line, or zeros.
fn is_truncated_line_start(bytes: &[u8]) -> bool {
    let len = bytes.len().min(LINE_PREFIX.len());
    let written = bytes[..len].iter().position(|&byte| byte == 0).unwrap_or(len);
    bytes[..written] == LINE_PREFIX[..written]
}

/// Opens the active file for appending.
pub(super) fn open_active_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

/// Makes a log end with a line feed. Returns its length.
pub(super) fn repair_last_line(path: &Path, file: &mut File) -> io::Result<u64> {
    let len = file.metadata()?.len();
    let complete = complete_lines_len(file, len)?;
    if complete == len {
        return Ok(len);
    }
    if len - complete <= SCAN_LOG_LINE_BYTES_MAX as u64 {
        let mut last = String::new();
        file.seek(SeekFrom::Start(complete))?;
        if file.read_to_string(&mut last).is_ok() && line::check(last.trim_ascii()).is_ok() {
            file.write_all(b"\n")?;
            return Ok(len + 1);
        }
    }
    let (path, bytes) = (path.display(), len - complete);
    tracing::warn!(%path, bytes, "the last line of the scan log is incomplete, probably after a crash; it is removed");
    file.set_len(complete)?;
    Ok(complete)
}

/// The end of the last line that has a line feed.
fn complete_lines_len(file: &mut File, len: u64) -> io::Result<u64> {
    let mut end = len;
    let mut chunk = [0; 4096];
    while end > 0 {
        let from = end.saturating_sub(chunk.len() as u64);
        let window = &mut chunk[..(end - from) as usize];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(window)?;
        if let Some(at) = window.iter().rposition(|&b| b == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}
