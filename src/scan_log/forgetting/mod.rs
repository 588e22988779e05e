//! Removes forgotten names from a scan log, after `clqd player forget`.
//!
//! If a closed file contains such a name, a new file is written beside the original and renamed
//! over it, so a crash at any time leaves one of the two. Other files are only read. The active
//! file is not changed; a rotation makes it a closed file.
//!
//! A line that cannot be read may contain a name, and only the hash of the name is known, so it
//! is replaced by its length, `{"unreadable_bytes":123}`. Readers treat that as a damaged line:
//! the loss remains visible, and line numbers do not change.

mod done_record;
mod file;
mod names;
mod rewriting;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub use self::done_record::DoneRecord;
pub use self::names::ForgottenNames;
pub use self::rewriting::{LogRewriting, RewritingSummary};
use super::error::LogError;

/// Why a name may remain in the log.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    #[error(transparent)]
    Read(#[from] LogError),
    #[error("no line of {} can be read, so it may contain a forgotten name; move it away, or delete it", path.display())]
    NothingReadable { path: PathBuf, source: LogError },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{} has {free} bytes free; rewriting a file of the scan log takes {needed}, and store.disk_free_bytes_min \
         remain free; free some space",
        path.display()
    )]
    DiskFull { path: PathBuf, free: u64, needed: u64 },
    #[error(
        "{} contains a forgotten name and cannot be closed, because the disk is nearly full or a closed file cannot be \
         removed (see the log)",
        .0.display()
    )]
    NotRotated(PathBuf),
    /// The caller's pause function ended the work.
    #[error("stopped")]
    Stopped,
}

impl RewriteError {
    /// The kind as shown by `clqd status`.
    pub fn kind(&self) -> &'static str {
        match self {
            RewriteError::Read(_) | RewriteError::NothingReadable { .. } => "unreadable",
            RewriteError::DiskFull { .. } | RewriteError::NotRotated(_) => "disk_full",
            RewriteError::Write { source, .. } if is_disk_full(source) => "disk_full",
            RewriteError::Write { .. } => "write_failed",
            RewriteError::Stopped => "stopped",
        }
    }
}

fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// `.FILE.end`, beside the log. The name begins with a dot, so that `FILE*` matches only logs.
fn hidden_file(log: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(log.file_name().unwrap_or_default());
    name.push(end);
    log.with_file_name(name)
}

#[cfg(test)]
mod tests;
