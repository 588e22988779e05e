//! The scan log: one JSON object a line, in order of time (RULES section 13).
//!
//! The seam between scanning and ranking: the engine does not know whether an
//! outcome came from its own scanner, a file or another machine.

mod damage;
mod line;
mod read;
mod record;
mod straight;

pub use damage::{Cut, Damage, Stretch};
pub use line::{LineError, check as check_line, parse, write};
pub use read::{LogError, LogLines, LogSpan, Salvage, Tail, check, of_file, open, tail};
pub use record::{RecordError, Recorder, RecorderSettings, check_record, closed_file, packed_files, whole_file};
