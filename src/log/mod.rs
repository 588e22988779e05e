//! The log: everything that changes the state, in the order in which the engine applies it
//! (docs/architecture.md, "The log").
//!
//! A log is a directory of segments. A segment is a header and a sequence of batches; a batch
//! is what one `fdatasync` makes durable. Each batch has a sequence number and a CRC32C, so
//! every damage is noticed: see [`segment`]. Within a segment, each string is stored once,
//! and a player list refers to the list before it of the same server: see [`encode`].

mod batch;
mod decode;
mod encode;
mod error;
mod event;
mod segment;
mod varint;
mod writer;

#[cfg(test)]
mod tests;

pub use self::decode::{DecodeError, Decoder};
pub use self::encode::Encoder;
pub use self::error::LogError;
pub use self::event::{LogEvent, RecordedSettings};
pub use self::segment::{Cut, LogReader, SegmentSummary, check, segments};
pub use self::writer::{Batch, BatchBuilder, LogWriter, WriterSettings};
