//! Why a log cannot be read or written.

use std::io;
use std::path::PathBuf;

use super::batch::VERSION;
use super::decode::DecodeError;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is open in another process ({owner})", dir.display())]
    Locked { dir: PathBuf, owner: String },
    #[error("{} has format version {version}, this program reads at most {VERSION}: use the newer program", path.display())]
    NewerVersion { path: PathBuf, version: u32 },
    #[error("{} is not a segment of a log: its header is damaged", path.display())]
    Header { path: PathBuf },
    #[error("{} should begin with batch {expected}, but begins with {found}: a segment is missing or is another log's", path.display())]
    Sequence { path: PathBuf, expected: u64, found: u64 },
    #[error("{} begins with batch {first}, but the state has the batches until {position}: the log between them is missing", path.display())]
    Gap { path: PathBuf, first: u64, position: u64 },
    #[error("the log in {} ends with batch {last}, but the state has the batches until {position}: the end of the log is missing", dir.display())]
    Behind { dir: PathBuf, last: u64, position: u64 },
    #[error("the log in {} is missing: the state has its batches until {position}, later ones are lost", dir.display())]
    Missing { dir: PathBuf, position: u64 },
    #[error("the log ends with batch {last}, and {} says that another segment follows: a segment is missing", path.display())]
    MissingSegment { path: PathBuf, last: u64 },
    /// Bytes that are not a batch, and after them valid batches or another segment.
    #[error("{} is damaged from byte {position} on: batch {seq} cannot be read, and {follows}", path.display())]
    Damaged { path: PathBuf, position: u64, seq: u64, follows: String },
    #[error("{}: batch {seq} at byte {position} cannot be decoded", path.display())]
    Decode { path: PathBuf, position: u64, seq: u64, source: DecodeError },
    #[error("{} is larger than a segment may be ({bytes} bytes)", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
}

impl LogError {
    /// Whether the log itself is not as it was written, and not only cannot be read now, or by this program.
    pub fn is_damage(&self) -> bool {
        !matches!(self, LogError::Io { .. } | LogError::Locked { .. } | LogError::NewerVersion { .. })
    }

    pub fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> LogError {
        let path = path.to_owned();
        move |source| LogError::Io { what, path, source }
    }
}
