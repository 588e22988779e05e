//! The log: everything that changes the state, in the order in which the engine applies it
//! (docs/architecture.md, "The log").
//!
//! A log is a directory of segments. A segment is a header and a sequence of batches; a batch
//! is what one `fdatasync` makes durable. Each batch has a sequence number and a CRC32C, so
//! every damage is noticed: see [`segment`]. Within a segment, each string is stored once,
//! and a player list refers to the list before it of the same server: see [`encode`].

// Bytes come from outside.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod batch;
mod copy;
mod decode;
mod done_record;
mod encode;
mod error;
mod event;
mod file_lock;
mod forgotten_names;
mod history_writer;
mod replayed;
mod retention;
mod rewriting;
mod segment;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::Path;

pub use self::batch::SegmentHeader;
pub use self::copy::{CopyDecoder, CopyError, LogCopy};
pub use self::decode::{DecodeError, Decoder};
pub use self::done_record::DoneRecord;
pub use self::encode::Encoder;
pub use self::error::LogError;
pub use self::event::{EachEvent, LogEvent, RecordedSettings};
pub use self::file_lock::{LogFileLock, ReadingGuard};
pub use self::forgotten_names::ForgottenNames;
pub use self::history_writer::HistoryWriter;
pub use self::replayed::ReplayedEvents;
pub use self::retention::Retention;
pub use self::rewriting::{SegmentRewriteError, SegmentRewriting};
pub use self::segment::{
    Cut, LogReader, SegmentSummary, check, has_segments, position_before, read_from_disk, segments,
};
pub use self::writer::{Batch, BatchBuilder, LogWriter, SealedBatch, WriterSettings};

pub(crate) fn sync_dir(dir: &Path) -> Result<(), LogError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(LogError::io("sync", dir))
}

/// Space on the disk of a log, bytes.
fn free_bytes(dir: &Path) -> Result<u64, LogError> {
    let disk = nix::sys::statvfs::statvfs(dir);
    let disk = disk.map_err(|error| LogError::io("check the disk of", dir)(error.into()))?;
    Ok(disk.blocks_available() * disk.fragment_size())
}
