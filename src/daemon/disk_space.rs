//! Commits are paused while the disk is nearly full.
//!
//! While less than `store.disk_free_bytes_min` is free, nothing is written: scans continue,
//! and their changes stay in memory. Answers to read requests include these changes, though
//! a crash would lose them. Requests that change something are refused, and nothing is
//! archived. Results of scans that no longer fit into memory are discarded and counted, as
//! if those scans had not been made. Commits resume as soon as there is space.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use crate::api::{ApiError, ErrorCode, PublicStoreStatus, StoreStatus};
use crate::limits::{PENDING_RECORDS_MAX, disk_resume_bytes};

/// Space that the last commit of a stopping daemon may take, bytes for each record.
/// Measured: a commit of a million rows takes 190 MB.
const BYTES_PER_RECORD: u64 = 400;

pub(super) struct DiskSpace {
    state_dir: PathBuf,
    min_bytes: u64,
    paused_since_ms: Option<i64>,
    discarded: u64,
}

impl DiskSpace {
    pub(super) fn new(state_dir: &Path, min_bytes: u64) -> DiskSpace {
        DiskSpace { state_dir: state_dir.to_owned(), min_bytes, paused_since_ms: None, discarded: 0 }
    }

    pub(super) fn min_bytes(&self) -> u64 {
        self.min_bytes
    }

    pub(super) fn set_min(&mut self, min_bytes: u64) {
        self.min_bytes = min_bytes;
    }

    /// Whether commits are paused, as of the last check.
    pub(super) fn is_paused(&self) -> bool {
        self.paused_since_ms.is_some()
    }

    /// Checks the free space. Returns whether a commit may be made.
    pub(super) fn check(&mut self, now_ms: i64) -> bool {
        if self.min_bytes == 0 && self.paused_since_ms.is_none() {
            return true;
        }
        let free = self.free();
        let min_bytes = self.min_bytes;
        match self.paused_since_ms {
            None if free < min_bytes => {
                tracing::error!(
                    path = %self.state_dir.display(), free, min_bytes, resume_bytes = disk_resume_bytes(min_bytes),
                    "the disk is nearly full: nothing is written until there is space again; scanning continues, and its \
                     changes stay in memory. Free some space, or lower store.disk_free_bytes_min and reload"
                );
                self.paused_since_ms = Some(now_ms);
            }
            Some(since_ms) if free >= disk_resume_bytes(min_bytes) => {
                let stopped_s = (now_ms - since_ms) / 1_000;
                tracing::info!(
                    free,
                    stopped_s,
                    scans_discarded = self.discarded,
                    "there is space on the disk again: writing resumes"
                );
                self.paused_since_ms = None;
            }
            _ => {}
        }
        self.paused_since_ms.is_none()
    }

    /// Whether changed records may be written although the disk is nearly full: the space kept free is
    /// reserved for them.
    pub(super) fn has_space_for(&self, records: usize) -> bool {
        self.free() > records as u64 * BYTES_PER_RECORD
    }

    /// Whether the result of a scan must be discarded, with that many records pending.
    pub(super) fn discards_scan(&mut self, records: usize) -> bool {
        let is_overflow = self.is_paused() && records > PENDING_RECORDS_MAX;
        self.discarded += u64::from(is_overflow);
        is_overflow
    }

    /// The error returned for a request that would change something.
    pub(super) fn refusal(&self) -> ApiError {
        let free = self.free();
        ApiError::new(
            ErrorCode::Refused,
            format!(
                "the disk is nearly full and nothing is written: {} has {free} bytes free, \
                 writing resumes at {} (store.disk_free_bytes_min and a sixteenth); free some space and try again",
                self.state_dir.display(),
                disk_resume_bytes(self.min_bytes)
            ),
        )
    }

    pub(super) fn status(&self, pending_records: usize) -> StoreStatus {
        let public = PublicStoreStatus {
            paused_since_ms: self.paused_since_ms,
            pending_records: pending_records as u64,
            scans_discarded: self.discarded,
            ..PublicStoreStatus::default()
        };
        StoreStatus { public, disk_free_bytes: 0, disk_free_bytes_min: self.min_bytes }
    }

    fn free(&self) -> u64 {
        free_bytes(&self.state_dir)
    }
}

/// Free space of a directory's file system, bytes. One that reports none counts as free: writing to it then fails with the
/// reason.
pub(super) fn free_bytes(dir: &Path) -> u64 {
    statvfs(dir).map_or(u64::MAX, |stat| stat.blocks_available() * stat.fragment_size())
}
