//! Reading a server list: one URL a line, tags behind it, # begins a comment.
//! What a line is good for is its reader's to say.

use std::io::{
    BufRead, Read, {self},
};
use std::str::SplitWhitespace;

/// Longest line of a list, bytes: a URL, its tags and a comment of any sane length.
const LINE_BYTES_MAX: u64 = 64 * 1_024;

/// Gives each line that names something: its number from 1, the first word, and
/// those behind it. Error: it cannot be read, or is no list at all.
pub fn read(mut from: impl BufRead, mut each: impl FnMut(usize, &str, SplitWhitespace)) -> io::Result<()> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if (&mut from).take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() as u64 == LINE_BYTES_MAX && bytes.last() != Some(&b'\n') {
            return Err(io::Error::other(format!("line {number} has more than {LINE_BYTES_MAX} bytes; is it a list?")));
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
