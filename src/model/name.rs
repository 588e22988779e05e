//! Player names: from bytes to the normalised form that keys are assigned to (docs/rules.md section 2).

use smallvec::SmallVec;
use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// A player's name, stored inline up to 24 bytes, as nearly all names are. Lists of players are
/// compared often, and a name on the heap would cost a cache miss.
pub type Name = compact_str::CompactString;

/// The colour codes that a name may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourCodes {
    /// None: Source, GoldSrc.
    None,
    /// `^` and one ASCII letter or digit.
    Quake3,
    /// As `Quake3`, and `^x` with three hex digits.
    DarkPlaces,
    /// `§` and one character.
    Minecraft,
}

impl ColourCodes {
    /// The codes in the host name of a server, by the scheme of its URL.
    pub fn of_url(url: &str) -> ColourCodes {
        url.split_once("://").map_or(ColourCodes::None, |(scheme, _)| ColourCodes::of_scheme(scheme))
    }

    pub fn of_scheme(scheme: &str) -> ColourCodes {
        match scheme {
            "darkplaces" => ColourCodes::DarkPlaces,
            "quake3" => ColourCodes::Quake3,
            "minecraft" | "bedrock" => ColourCodes::Minecraft,
            _ => ColourCodes::None,
        }
    }

    /// The character that each code begins with.
    pub fn mark(self) -> Option<char> {
        match self {
            ColourCodes::None => None,
            ColourCodes::Quake3 | ColourCodes::DarkPlaces => Some('^'),
            ColourCodes::Minecraft => Some('§'),
        }
    }
}

/// Windows-1252 for 0x80..=0x9F; the five undefined bytes map to the C1 controls of the same
/// number (as in the WHATWG encoding standard).
const WINDOWS_1252: [char; 32] = [
    '\u{20AC}', '\u{81}', '\u{201A}', '\u{192}', '\u{201E}', '\u{2026}', '\u{2020}', '\u{2021}', '\u{2C6}', '\u{2030}',
    '\u{160}', '\u{2039}', '\u{152}', '\u{8D}', '\u{17D}', '\u{8F}', '\u{90}', '\u{2018}', '\u{2019}', '\u{201C}',
    '\u{201D}', '\u{2022}', '\u{2013}', '\u{2014}', '\u{2DC}', '\u{2122}', '\u{161}', '\u{203A}', '\u{153}', '\u{9D}',
    '\u{17E}', '\u{178}',
];

/// Decodes bytes of a reply as UTF-8; each invalid byte as Windows-1252. Never fails. At most
/// three output bytes for each input byte.
pub fn decode_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for &byte in chunk.invalid() {
            text.push(match byte {
                0x80..=0x9F => WINDOWS_1252[usize::from(byte - 0x80)],
                _ => char::from(byte),
            });
        }
    }
    text
}

/// The normalised name, to which a player's key is assigned.
pub fn normalise(display: &str, codes: ColourCodes) -> String {
    normalise_name(display, codes).into_string()
}

/// As [`normalise`], but returns a [`Name`].
pub fn normalise_name(display: &str, codes: ColourCodes) -> Name {
    // Nearly every name is printable ASCII with no code and single spaces.
    if is_plain(display, codes) {
        return display.into();
    }
    if display.is_ascii() {
        return normalise_ascii(display.as_bytes(), codes);
    }
    let stripped = strip_colours(display, codes);
    let mut out = String::with_capacity(stripped.len());
    for c in stripped.chars() {
        if c.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else if !is_control_or_format(c) {
            out.push(c);
        }
    }
    let trimmed = out.trim_matches(' ');
    // Characters below U+0300 do not combine.
    let composed = out.bytes().all(|b| b < COMBINING_FIRST_BYTE) || is_nfc(trimmed);
    match composed {
        true => trimmed.into(),
        false => trimmed.nfc().collect(),
    }
}

/// First byte of U+0300, the first combining mark, in UTF-8.
const COMBINING_FIRST_BYTE: u8 = 0xCC;

/// Normalises ASCII in one pass: no character combines.
fn normalise_ascii(bytes: &[u8], codes: ColourCodes) -> Name {
    let mut out: SmallVec<[u8; 64]> = SmallVec::new();
    let mut before = b' ';
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        let code_len = if b == b'^' { code_len(&bytes[at..], codes) } else { 0 };
        if code_len > 0 {
            at += code_len;
            continue;
        }
        at += 1;
        let kept = match b {
            b' ' | b'\t'..=b'\r' if before == b' ' => continue,
            b' ' | b'\t'..=b'\r' => b' ',
            b'!'..=b'~' => b,
            _ => continue,
        };
        out.push(kept);
        before = kept;
    }
    if before == b' ' {
        out.pop();
    }
    std::str::from_utf8(&out).expect("ASCII is UTF-8").into()
}

/// Removes colour codes in one pass from the left: a code that a removal creates is not
/// removed.
pub fn strip_colours(name: &str, codes: ColourCodes) -> std::borrow::Cow<'_, str> {
    let Some(mark) = codes.mark().filter(|&mark| name.contains(mark)) else { return name.into() };
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(mark) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (code_len, mark_len) = (code_len(rest.as_bytes(), codes), mark.len_utf8());
        if code_len == 0 {
            out.push(mark);
        }
        rest = &rest[code_len.max(mark_len)..];
    }
    out.push_str(rest);
    out.into()
}

/// Length of the colour code at the start of the bytes of a text, which begin with the mark of codes; 0:
/// there is no colour code.
pub fn code_len(bytes: &[u8], codes: ColourCodes) -> usize {
    let is_quake3 = || bytes.get(1).is_some_and(u8::is_ascii_alphanumeric);
    let is_hex = || bytes.len() >= 5 && bytes[1] == b'x' && bytes[2..5].iter().all(u8::is_ascii_hexdigit);
    match codes {
        ColourCodes::None => 0,
        ColourCodes::DarkPlaces if is_hex() => 5,
        ColourCodes::Quake3 | ColourCodes::DarkPlaces => {
            if is_quake3() {
                2
            } else {
                0
            }
        }
        ColourCodes::Minecraft => match bytes.strip_prefix("§".as_bytes()) {
            Some(&[first, ..]) => 2 + utf8_len(first),
            _ => 0,
        },
    }
}

/// Length of the character that begins with a byte, in UTF-8.
fn utf8_len(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

/// Whether a name is printable ASCII with single spaces and without codes, and so equals its
/// normalised form. Some normalised names are not plain.
pub fn is_plain(name: &str, codes: ColourCodes) -> bool {
    let mut before = b' ';
    for &b in name.as_bytes() {
        let plain =
            matches!(b, b' '..=b'~') && !(b == b'^' && codes.mark() == Some('^')) && !(b == b' ' && before == b' ');
        if !plain {
            return false;
        }
        before = b;
    }
    // A leading space fails above, since `before` starts as one.
    before != b' ' || name.is_empty()
}

/// Whether a character is a control or a format character (general categories Cc and Cf), such
/// as an escape or a bidirectional override.
pub fn is_control_or_format(c: char) -> bool {
    matches!(get_general_category(c), GeneralCategory::Control | GeneralCategory::Format)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: [ColourCodes; 4] =
        [ColourCodes::None, ColourCodes::Quake3, ColourCodes::DarkPlaces, ColourCodes::Minecraft];

    #[test]
    fn names_are_normalised() {
        use ColourCodes::*;
        for (input, codes, want) in [
            ("Visor", Quake3, "Visor"),
            ("^1Visor", Quake3, "Visor"),
            ("^1Visor", None, "^1Visor"),
            ("^^11", Quake3, "^1"),
            ("Klesk^", Quake3, "Klesk^"),
            ("^xF00red", DarkPlaces, "red"),
            ("^xF00red", Quake3, "F00red"),
            ("^xF0", DarkPlaces, "F0"),
            ("^é", Quake3, "^é"),
            ("  a \t\u{a0}\u{3000} b ", Quake3, "a b"),
            ("a\u{200b}b\u{7}c\u{85}d", Quake3, "abc d"),
            ("a \u{200b} b", None, "a b"),
            ("e\u{301}", None, "\u{e9}"),
            ("", Quake3, ""),
            (" ", Quake3, ""),
            ("^7", Quake3, ""),
            ("§4Admin§r §lBob§", Minecraft, "Admin Bob§"),
            ("§日a^1", Minecraft, "a^1"),
            ("§4Admin", None, "§4Admin"),
        ] {
            assert_eq!(normalise(input, codes), want, "{input:?} {codes:?}");
        }
    }

    #[test]
    fn invalid_utf8_decodes_as_windows_1252() {
        assert_eq!(decode_text(b"caf\xe9 \x80"), "café €");
        assert_eq!(decode_text("日本".as_bytes()), "日本");
        assert_eq!(decode_text("日\u{e9}".as_bytes()), "日é");
        assert_eq!(normalise(&decode_text(b"a\x81b"), ColourCodes::None), "ab");
    }

    proptest::proptest! {
        #[test]
        fn plain_name_fast_path_equals_full_normalisation(name in ".{0,20}|[ ^§a-f0-9x]{0,12}", which in 0..4) {
            let codes = CODES[which as usize];
            // A character that is removed forces the full normalisation.
            let forced = normalise(&format!("\u{200b}{name}"), codes);
            if is_plain(&name, codes) {
                proptest::prop_assert_eq!(&forced, &name);
            }
            proptest::prop_assert_eq!(forced, normalise(&name, codes));
        }

        #[test]
        fn ascii_fast_path_equals_full_normalisation(name in "[\\x00-\\x7f]{0,12}|[ ^a-f0-9x\t\x01]{0,12}", which in 0..4) {
            let codes = CODES[which as usize];
            proptest::prop_assert_eq!(normalise(&format!("\u{200b}{name}"), codes), normalise(&name, codes));
        }
    }
}
