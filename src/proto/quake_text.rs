//! Names of QuakeWorld and Quake 2: bytes of the Quake character set, in which the high bit is
//! a colour and the lowest 32 values are drawn characters.

use crate::model::name::Name;
use crate::proto::text::player_name;

/// The ASCII character that looks like a byte of the Quake character set.
fn ascii_glyph(byte: u8) -> u8 {
    match byte & 0x7f {
        16 => b'[',
        17 => b']',
        digit @ 18..=27 => b'0' + (digit - 18),
        5 | 14 | 15 | 28 => b'.',
        13 => b'>',
        29 => b'<',
        30 => b'=',
        31 => b'>',
        0..=12 | 127 => b'_',
        printable => printable,
    }
}

/// A name in the Quake character set, as ASCII.
pub(super) fn quake_name(bytes: &[u8]) -> Name {
    let ascii: Vec<u8> = bytes.iter().map(|&byte| ascii_glyph(byte)).collect();
    player_name(&ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coloured_and_drawn_characters_become_ascii() {
        assert_eq!(quake_name(b"plain"), "plain");
        let coloured: Vec<u8> = b"red".iter().map(|b| b | 0x80).collect();
        assert_eq!(quake_name(&coloured), "red");
        assert_eq!(quake_name(b"\x10clan\x11\x92\x9b\x1d\x1f"), "[clan]09<>");
        assert_eq!(quake_name(b"\x00\x7f\xff"), "___");
        assert!(quake_name(&[0xff; 400]).len() <= 256);
    }
}
