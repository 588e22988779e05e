//! Removes the oldest segments of a log.

use std::fs;
use std::path::Path;

use super::error::LogError;
use super::file_lock::LogFileLock;
use super::free_bytes;
use super::segment::{header_of, segments};

/// How much of a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub keep_ms: i64,
    /// The oldest segments are removed when all of them are larger.
    pub bytes_max: u64,
    /// The oldest segments are removed when less is free on the disk.
    pub free_bytes_min: u64,
}

impl Retention {
    /// Removes segments that are too old or too many, the oldest first. Keeps the batches after `position`,
    /// which a start needs, and everything while the log is being read.
    pub fn apply(&self, dir: &Path, lock: &LogFileLock, position: u64, now_ms: i64) -> Result<(), LogError> {
        let Some(_lock) = lock.lock_for_replacing() else { return Ok(()) };
        let files = segments(dir)?;
        let sizes =
            files.iter().map(|file| Ok(fs::metadata(&file.path).map_err(LogError::io("read", &file.path))?.len()));
        let sizes = sizes.collect::<Result<Vec<u64>, LogError>>()?;
        let mut bytes: u64 = sizes.iter().sum();
        let missing = self.free_bytes_min.saturating_sub(free_bytes(dir)?);
        let bytes_max = self.bytes_max.min(bytes.saturating_sub(missing));
        for (pair, size) in files.windows(2).zip(sizes) {
            let [oldest, next] = pair else { unreachable!("windows of two") };
            let is_needed = next.first_seq > position + 1;
            if is_needed || (bytes <= bytes_max && header_of(next)?.created_ms >= now_ms.saturating_sub(self.keep_ms)) {
                return Ok(());
            }
            fs::remove_file(&oldest.path).map_err(LogError::io("remove", &oldest.path))?;
            bytes -= size;
        }
        Ok(())
    }
}
