//! Parses a server list: one URL a line, followed by tags; text after # is ignored. The
//! caller interprets each line.

use std::io::{self, BufRead, Read};
use std::str::SplitWhitespace;

/// Longest line of a list, bytes: a URL, its tags and a comment of any reasonable length.
const LINE_BYTES_MAX: u64 = 64 * 1_024;

/// Passes on each line that is not empty: its number from 1, the first word, and the
/// other words. Error: the file cannot be read, or is not a list.
pub fn read(mut from: impl BufRead, mut each: impl FnMut(usize, &str, SplitWhitespace)) -> io::Result<()> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if (&mut from).take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() as u64 == LINE_BYTES_MAX && bytes.last() != Some(&b'\n') {
            return Err(io::Error::other(format!(
                "line {number} has more than {LINE_BYTES_MAX} bytes; this is not a server list"
            )));
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut words = text.split('#').next().unwrap_or_default().split_whitespace();
        if let Some(url) = words.next() {
            each(number, url, words);
        }
    }
    Ok(())
}
