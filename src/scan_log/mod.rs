//! The scan log: one JSON object per line, in time order (docs/rules.md section 13).
//!
//! The interface between scanning and ranking: the engine does not know whether an
//! outcome came from its own scanner, a file or another machine.

mod damage;
mod fast_path;
mod line;
mod reader;
mod recorder;

pub use crate::scan_log::damage::{Damage, DamagedRange, Truncation};
pub use crate::scan_log::line::{LineError, check as check_line, parse, write};
pub use crate::scan_log::reader::{
    LogError, LogReader, LogSummary, LogTail, LossyReader, check, from_file, open, read_tail,
};
pub use crate::scan_log::recorder::{
    RecordError, Recorder, RecorderSettings, check_log_path, complete_copy, compressed_files, rotated_file,
};
