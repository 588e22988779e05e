//! Reads lists and captures line by line, with a limit for the length of a line.

use std::io::{self, BufRead, Read};

/// A line has more bytes than the limit. The rest of the file is not read: it would be read as
/// other lines.
#[derive(Debug)]
pub struct TooLong;

/// Passes on the number of each line, from 1, and its bytes with the line end.
pub fn read(
    mut from: impl BufRead,
    bytes_max: u64,
    mut each: impl FnMut(usize, Result<&[u8], TooLong>) -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if (&mut from).take(bytes_max).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() as u64 == bytes_max && bytes.last() != Some(&b'\n') {
            return each(number, Err(TooLong));
        }
        each(number, Ok(&bytes))?;
    }
    Ok(())
}
