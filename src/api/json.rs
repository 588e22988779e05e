//! JSON for output: what clqd prints and sends contains no character that could control a
//! terminal or reorder a line of text.
//!
//! Controls (U+007F and C1; serde_json escapes C0 itself), format characters (including
//! the bidirectional overrides), and the line and paragraph separators are written as
//! `\uXXXX`. A JSON reader gets the original text.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

use crate::model::name::is_control_or_format;

/// Returns one line of JSON, without its line end.
pub fn to_string(value: &impl Serialize) -> String {
    String::from_utf8(to_vec(value)).expect("JSON is text")
}

/// As [`to_string`], as bytes.
pub fn to_vec(value: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    to_writer(&mut out, value).expect("serializing plain data to memory does not fail");
    out
}

/// Writes a line of JSON, without its line end.
pub fn to_writer(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, Escaping);
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// Escapes existing JSON text. JSON is ASCII outside strings, so every escaped character
/// is in a string.
pub fn escape(json: &str) -> Cow<'_, str> {
    if is_harmless(json) {
        return Cow::Borrowed(json);
    }
    let mut out = Vec::with_capacity(json.len() + 64);
    write_escaped(&mut out, json).expect("writing to memory does not fail");
    Cow::Owned(String::from_utf8(out).expect("text and ASCII are text"))
}

struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        if is_harmless(fragment) {
            return out.write_all(fragment.as_bytes());
        }
        write_escaped(out, fragment)
    }
}

/// Fast check whether nothing needs escaping.
fn is_harmless(text: &str) -> bool {
    text.bytes().all(|b| b < 0x7f)
}

fn write_escaped<W: Write + ?Sized>(out: &mut W, text: &str) -> io::Result<()> {
    let mut plain_from = 0;
    for (at, c) in text.char_indices() {
        if !is_escaped(c) {
            continue;
        }
        out.write_all(&text.as_bytes()[plain_from..at])?;
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}")?;
        }
        plain_from = at + c.len_utf8();
    }
    out.write_all(&text.as_bytes()[plain_from..])
}

/// C0 controls are not checked: serde_json has escaped them in strings, and a line of
/// JSON has none elsewhere.
fn is_escaped(c: char) -> bool {
    c >= '\u{7f}' && (is_control_or_format(c) || matches!(c, '\u{2028}' | '\u{2029}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_bidi_characters_are_escaped() {
        let text =
            "a\u{1b}[2J \u{7f}\u{80}\u{9b}\u{9f} \u{202e}x\u{2066}\u{200f}\u{2028}\u{feff}\u{e0041} é日\u{1f600}\"";
        let value = serde_json::json!({ "text": text, text: 1 });
        let json = to_string(&value);
        assert!(
            json.contains(r"\u001b[2J \u007f\u0080\u009b\u009f \u202ex\u2066\u200f\u2028\ufeff\udb40\udc41 é日😀"),
            "{json}"
        );
        assert!(json.chars().all(|c| !is_escaped(c) && c >= ' '), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).expect("JSON"), value);
        assert_eq!(escape(&serde_json::to_string(&value).expect("plain")), json);
        assert_eq!(escape("{\"a\":\"é\"}"), "{\"a\":\"é\"}");
    }

    proptest::proptest! {
        #[test]
        fn escaped_text_parses_to_itself(text in "\\PC{0,8}|(?s).{0,20}|[\u{70}-\u{a5}\u{200a}-\u{2070}\"\\\\]{0,20}") {
            let json = to_string(&text);
            proptest::prop_assert_eq!(&serde_json::from_str::<String>(&json).expect("JSON"), &text);
            proptest::prop_assert!(json.chars().all(|c| !is_escaped(c) && c >= ' '));
            let plain = serde_json::to_string(&text).expect("text");
            proptest::prop_assert_eq!(escape(&plain), json);
        }
    }
}
