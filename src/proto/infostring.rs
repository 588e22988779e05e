//! Infostrings, `\key\value\key\value`: the settings of a server of the Quake family.

use super::fields;
use super::text::short_text;

/// Undecoded keys and values, in the order of the reply.
pub(super) struct Infostring<'a> {
    pairs: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Infostring<'a> {
    pub(super) fn read(infostring: &'a [u8]) -> Self {
        let infostring = infostring.strip_suffix(b"\r").unwrap_or(infostring);
        let infostring = infostring.strip_prefix(b"\\").unwrap_or(infostring);
        let mut parts = infostring.split(|&b| b == b'\\');
        let mut pairs = Vec::new();
        // A value may be empty; a key at the end may have lost its value.
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            pairs.push((key, value));
        }
        Infostring { pairs }
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + '_ {
        self.pairs.iter().copied()
    }

    /// The first non-empty value of the keys, in this order.
    pub(super) fn first_value(&self, keys: &[&str]) -> Option<&'a [u8]> {
        keys.iter().find_map(|key| {
            let named = |(k, v): &&(&[u8], &[u8])| k.eq_ignore_ascii_case(key.as_bytes()) && !v.is_empty();
            self.pairs.iter().find(named).map(|&(_, value)| value)
        })
    }

    pub(super) fn number(&self, keys: &[&str]) -> Option<u32> {
        fields::number(self.first_value(keys)?)
    }

    /// The first value of the keys as text; empty if there is none.
    pub(super) fn text(&self, keys: &[&str]) -> String {
        short_text(self.first_value(keys).unwrap_or_default())
    }

    /// The game: the first value of the keys that is not blank, else the default.
    pub(super) fn game(&self, keys: &[&str], default: &str) -> String {
        let game = self.first_value(keys).map(short_text);
        game.filter(|game| !game.trim().is_empty()).unwrap_or_else(|| default.to_owned())
    }
}

/// The first line, and what follows it; `None`: the first line has no line end.
pub(super) fn split_at_line_end(body: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b'\n', body) {
        Some(end) => (&body[..end], Some(&body[end + 1..])),
        None => (body, None),
    }
}

/// The bytes without zeros at their end: some servers send a string's terminating zero too.
pub(super) fn without_final_zeros(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() - bytes.iter().rev().take_while(|&&b| b == 0).count()]
}
