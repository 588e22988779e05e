//! The scan log: one JSON object per line, in time order (docs/rules.md section 13): scans, commands
//! of admins, and settings.
//!
//! The interface between scanning and ranking: the engine does not know whether an
//! outcome came from its own scanner, a file or another machine.

mod active_file;
mod damage;
mod error;
mod fast_path;
mod forgetting;
mod line;
mod lossy_reader;
mod raw_line;
mod reader;
mod recorder;
mod rotation;
mod tail;

pub use self::active_file::{RecordError, check_log_path};
pub use self::damage::{Damage, DamagedRange};
pub use self::error::{LogError, Truncation};
pub use self::forgetting::{DoneRecord, ForgottenNames, LogRewriting, RewriteError, RewritingSummary};
pub use self::line::{LineError, check as check_line, parse, parse_scan, write, write_event};
pub use self::lossy_reader::{LogSummary, LossyReader, check};
pub use self::reader::{LogReader, from_file, open};
pub use self::recorder::{Recorder, RecorderSettings};
pub use self::rotation::{complete_copy, compressed_files, place_in_log, rotated_file};
pub use self::tail::{LogTail, read_tail};
