//! The settings that hold at the end of a log.

use std::io;
use std::path::Path;

use memchr::memmem;

use super::line::parse;
use crate::log::{LogEvent, RecordedSettings};

/// In every line with settings, and in no other: quotes inside of strings are escaped.
const MARK: &[u8] = b",\"settings\":{";

/// Reads the settings that hold at the end of a plain log: those of its first line, and later
/// changes. Empty if there are none.
pub(super) fn read_settings(log: &Path) -> io::Result<RecordedSettings> {
    let text = std::fs::read(log)?;
    let mut settings = RecordedSettings::default();
    for at in memmem::find_iter(&text, MARK) {
        let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end);
        let line = std::str::from_utf8(&text[start..end]).ok().and_then(|line| parse(line).ok());
        if let Some(LogEvent::Settings { settings: later, .. }) = line {
            settings.update(later);
        }
    }
    Ok(settings)
}
