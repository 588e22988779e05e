//! Parses a server list: one URL a line, followed by tags; text after # is ignored. The
//! caller interprets each line.

use std::io::{self, BufRead};
use std::str::SplitWhitespace;

use crate::lines;

/// Longest line of a list, bytes: a URL, its tags and a comment of any reasonable length.
const LINE_BYTES_MAX: u64 = 64 * 1_024;

/// Passes on each line that is not empty: its number from 1, the first word, and the
/// other words. Error: the file cannot be read, or is not a list.
pub fn read(from: impl BufRead, mut each: impl FnMut(usize, &str, SplitWhitespace)) -> io::Result<()> {
    lines::read(from, LINE_BYTES_MAX, |number, line| {
        let Ok(bytes) = line else {
            return Err(io::Error::other(format!(
                "line {number} has more than {LINE_BYTES_MAX} bytes; this is not a server list"
            )));
        };
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut words = text.split('#').next().unwrap_or_default().split_whitespace();
        if let Some(url) = words.next() {
            each(number, url, words);
        }
        Ok(())
    })
}
