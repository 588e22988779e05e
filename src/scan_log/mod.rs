//! Scan logs: the events of a log as JSON lines, one object a line, in order of time (docs/rules.md
//! section 13). `clqd log export` prints them, and `clqd replay`, `clqd recompute` and `clqd log import`
//! read them, from files of other programs, too.

// Bytes come from outside.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod damage;
mod error;
mod line;
mod lossy_reader;
mod reader;

pub use self::damage::{Damage, DamagedRange};
pub use self::error::{LogError, Truncation};
pub use self::line::{LineError, parse, parse_scan, write, write_event};
pub use self::lossy_reader::{LogSummary, LossyReader, check};
pub use self::reader::{LogReader, from_file, open};
