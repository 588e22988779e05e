//! Captures: the datagrams of single scans, as they were received, so that they can be decoded
//! again. `clqd query --capture` and `--replay` write and read a file of them; the daemon samples
//! its scans into one file a day.
//!
//! A capture contains names of players. The daemon's files therefore expire
//! (`capture.keep_days`), and `clqd player forget` deletes all of them.

// Bytes come from outside.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod daily_files;
mod line;

pub use self::daily_files::{CaptureCounters, CaptureFiles};
pub use self::line::{LineError, replay, write};
