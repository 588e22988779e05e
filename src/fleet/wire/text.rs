//! Text and numbers in replies.

use std::fmt::Display;
use std::io::Write;

use crate::model::name::decode_text;

/// Text as servers of games from before UTF-8 send it: Latin-1 if it decodes to the same
/// text, else UTF-8.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    if text.is_ascii() {
        return out.extend_from_slice(text.as_bytes());
    }
    match latin1(text) {
        Some(bytes) => out.extend_from_slice(&bytes),
        None => out.extend_from_slice(text.as_bytes()),
    }
}

/// The text in Latin-1, unless these bytes would be read as another text.
pub(super) fn latin1(text: &str) -> Option<Vec<u8>> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    bytes.filter(|bytes| decode_text(bytes) == text)
}

/// As [`put_text`], with the byte that ends a string in C.
pub(super) fn put_text_c_str(out: &mut Vec<u8>, text: &str) {
    put_text(out, text);
    out.push(0);
}

/// UTF-8, with the byte that ends a string in C.
pub(super) fn put_c_str(out: &mut Vec<u8>, text: impl Display) {
    put(out, text);
    out.push(0);
}

/// A number in decimal, or UTF-8.
pub(super) fn put(out: &mut Vec<u8>, value: impl Display) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{value}");
}

/// An integer in decimal.
pub(super) fn put_number(out: &mut Vec<u8>, value: impl Into<i64>) {
    let value = value.into();
    if value < 0 {
        out.push(b'-');
    }
    let (mut digits, mut rest) = ([0; 20], value.unsigned_abs());
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return out.extend_from_slice(&digits[first..]);
        }
    }
}

/// `\key\value`
pub(super) fn put_info_key(out: &mut Vec<u8>, key: &str, value: impl Display) {
    put_key(out, key);
    put(out, value);
}

fn put_key(out: &mut Vec<u8>, key: &str) {
    out.push(b'\\');
    out.extend_from_slice(key.as_bytes());
    out.push(b'\\');
}

/// `\key\value` with a value that may be Latin-1.
pub(super) fn put_info_text(out: &mut Vec<u8>, key: &str, value: &str) {
    put_key(out, key);
    put_text(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_display_does() {
        for value in [0, 7, -1, 10, 999, -666, 1_000_000, i64::MAX, i64::MIN] {
            let mut out = b"x".to_vec();
            put_number(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), format!("x{value}"));
        }
    }
}
