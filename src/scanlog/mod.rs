//! The scan log: one JSON object a line, in order of time (RULES section 13).
//!
//! The seam between scanning and ranking: the engine does not know whether an
//! outcome came from its own scanner, a file or another machine.

mod line;
mod read;
mod record;
mod straight;

pub use line::{LineError, parse, write};
pub use read::{LogError, LogLines, LogSpan, check, of_file, open, tail};
pub use record::{Recorder, RecorderSettings, closed_file, packed_files};
