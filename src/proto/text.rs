//! Bytes of a reply as the values of a snapshot, within their limits.

use crate::limits;
use crate::model::name::{Name, decode_text};

/// Bytes of a reply as a player's name, at most `limits::NAME_BYTES_MAX` long.
pub fn player_name(bytes: &[u8]) -> Name {
    name(bytes, limits::NAME_BYTES_MAX)
}

/// As [`short_text`], without an allocation for most texts.
pub fn short_name(bytes: &[u8]) -> Name {
    name(bytes, limits::TEXT_BYTES_MAX)
}

/// Bytes of a reply as a map, game or host name, at most `limits::TEXT_BYTES_MAX` long.
pub fn short_text(bytes: &[u8]) -> String {
    text(bytes, limits::TEXT_BYTES_MAX)
}

/// The bytes without colour codes, `^` and a letter or digit: for protocols whose names the rules
/// take as they are.
pub fn without_caret_colours(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = match (first, after) {
            (b'^', [code, after @ ..]) if code.is_ascii_alphanumeric() => after,
            _ => {
                out.push(*first);
                after
            }
        };
    }
    out
}

fn name(bytes: &[u8], bytes_max: usize) -> Name {
    // Nearly every name is short ASCII, and is not copied into a string first.
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.len() <= bytes_max => text.into(),
        _ => text(bytes, bytes_max).into(),
    }
}

fn text(bytes: &[u8], bytes_max: usize) -> String {
    // Decoding never shortens a byte, so bytes beyond this limit cannot be in the result.
    let mut text = decode_text(&bytes[..bytes.len().min(bytes_max + 4)]);
    truncate_at_char(&mut text, bytes_max);
    text
}

fn truncate_at_char(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = (0..=bytes_max).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
    }
}

/// Points, clamped to the limits of a snapshot.
pub fn points(raw: i64) -> i64 {
    raw.clamp(-limits::POINTS_ABS_MAX, limits::POINTS_ABS_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_name_is_truncated_at_a_char_boundary() {
        let long = "é".repeat(200);
        let truncated = player_name(long.as_bytes());
        assert_eq!(truncated.len(), 256);
        assert!(long.starts_with(truncated.as_str()));
        let odd = format!("a{long}");
        assert_eq!(player_name(odd.as_bytes()).len(), 255);
        // 300 bytes that are not UTF-8: Windows-1252, two or three bytes each.
        assert!(player_name(&[0x80; 300]).len() <= 256);
    }

    #[test]
    fn caret_colours_are_removed_once() {
        for (text, want) in [("^1red", "red"), ("a^^1b", "a^b"), ("^", "^"), ("^ x", "^ x"), ("^^11", "^1")] {
            assert_eq!(without_caret_colours(text.as_bytes()), want.as_bytes(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn truncating_before_decoding_gives_the_same_name(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut whole = decode_text(&bytes);
            truncate_at_char(&mut whole, limits::NAME_BYTES_MAX);
            prop_assert_eq!(player_name(&bytes), whole);
        }
    }
}
