//! Untrusted strings as people see them: on pages, on banners and on terminals. Every character of
//! the result is visible, stays on its line and does not change the direction of others.

use unicode_general_category::{GeneralCategory, get_general_category};

use super::name::is_control_or_format;

/// Shown instead of a blank letter, such as U+3164, so that names of blank letters are visible and
/// can be distinguished.
const BLANK_SHOWN: char = '␣';

/// Shown instead of a name without visible characters.
pub const NO_NAME: &str = "(no name)";

/// Joins emoji into one, such as a family.
const ZERO_WIDTH_JOINER: char = '\u{200D}';

/// Most combining marks of a letter: Thai, Hebrew and Arabic need two. Stacked marks grow beyond their
/// line.
const MARKS_MAX: usize = 2;

/// Replaces or removes the characters of a string, one after another.
#[derive(Debug, Default)]
pub struct ShownChars {
    /// Marks that the last letter may still have.
    marks_left: usize,
    /// The last character may be a part of an emoji.
    is_emoji: bool,
}

impl ShownChars {
    /// Returns what is shown for a character that is followed by `next`. `None`: nothing. Each
    /// white-space character becomes one space.
    pub fn show(&mut self, c: char, next: Option<char>) -> Option<char> {
        if c == ZERO_WIDTH_JOINER {
            return (self.is_emoji && next.is_some_and(is_emoji)).then_some(c);
        }
        if c.is_whitespace() {
            *self = ShownChars::default();
            return Some(' ');
        }
        if is_control_or_format(c) || is_no_character(c) {
            return None;
        }
        if matches!(get_general_category(c), GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark) {
            self.marks_left = self.marks_left.checked_sub(1)?;
            return Some(c);
        }
        self.is_emoji = is_emoji(c) || (self.is_emoji && is_skin_tone(c));
        self.marks_left = MARKS_MAX;
        Some(if is_blank(c) { BLANK_SHOWN } else { c })
    }
}

/// A string as it is shown: in one line, without white space at its ends and with single spaces. It
/// is empty if the string has no visible character.
pub fn shown(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut shown_chars = ShownChars::default();
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match shown_chars.show(c, chars.peek().copied()) {
            Some(' ') if out.is_empty() || out.ends_with(' ') => (),
            Some(c) => out.push(c),
            None => (),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Whether a string is shown as it is: visible ASCII, and single spaces between its words. So are most names.
fn is_plain(text: &str) -> bool {
    let mut last = b' ';
    let is_plain = text.bytes().all(|byte| {
        let before = std::mem::replace(&mut last, byte);
        byte.is_ascii_graphic() || byte == b' ' && before != b' '
    });
    is_plain && last != b' '
}

/// As [`shown`], for an object that always has a name: never empty.
pub fn shown_name(name: &str) -> String {
    let shown = shown(name);
    if shown.is_empty() { NO_NAME.to_owned() } else { shown }
}

/// Letters and symbols without ink: fillers of Hangul, the empty pattern of Braille, a note without a
/// head.
fn is_blank(c: char) -> bool {
    matches!(c, '\u{115F}' | '\u{1160}' | '\u{3164}' | '\u{FFA0}' | '\u{2800}' | '\u{1D159}')
}

/// Nearly all parts of emoji are of this category; the others are arrows.
fn is_emoji(c: char) -> bool {
    get_general_category(c) == GeneralCategory::OtherSymbol && !is_blank(c) || matches!(c, '\u{2194}' | '\u{2195}')
}

fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1F3FB}'..='\u{1F3FF}')
}

/// Code points that are never characters, and reserved ones that are never shown.
fn is_no_character(c: char) -> bool {
    let code = c as u32;
    code & 0xFFFE == 0xFFFE
        || matches!(c, '\u{FDD0}'..='\u{FDEF}' | '\u{2065}' | '\u{FFF0}'..='\u{FFF8}')
        || (0xE0000..=0xE0FFF).contains(&code) && get_general_category(c) == GeneralCategory::Unassigned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_seen_is_shown() {
        for (text, want) in [
            ("", ""),
            (" \t\n ", ""),
            ("  a \u{2028}\u{a0} b ", "a b"),
            ("a\u{202E}b\u{2066}c\u{200F}\u{7}\0", "abc"),
            ("a\u{FFFE}\u{FFFF}\u{1FFFF}\u{FDD0}\u{E0FFF}b", "ab"),
            ("<&\"'>", "<&\"'>"),
            ("a b", "a b"),
            ("a  b", "a b"),
            (" a", "a"),
            ("a ", "a"),
            ("a\u{7f}", "a"),
            ("😀中", "😀中"),
            // Zero width alone, and blank letters.
            ("\u{200B}\u{2060}\u{FEFF}\u{200D}\u{AD}", ""),
            ("\u{3164}", "␣"),
            ("\u{115F}\u{1160}\u{FFA0}\u{2800}", "␣␣␣␣"),
            ("Visor\u{3164}", "Visor␣"),
            // Marks without a letter, and stacked ones.
            ("\u{301}a \u{301}b", "a b"),
            ("\u{34F}\u{FE0F}", ""),
            ("Z\u{300}\u{301}\u{302}\u{303}o\u{300}", "Z\u{300}\u{301}o\u{300}"),
            ("Z\u{489}\u{489}\u{489}", "Z\u{489}\u{489}"),
            ("ก\u{E34}\u{E48}", "ก\u{E34}\u{E48}"),
            // Emoji of several code points, and the same joiner elsewhere.
            ("👨\u{200D}👩\u{200D}👧!", "👨\u{200D}👩\u{200D}👧!"),
            ("👩🏽\u{200D}🚀", "👩🏽\u{200D}🚀"),
            ("❤\u{FE0F}\u{200D}🔥", "❤\u{FE0F}\u{200D}🔥"),
            ("1\u{FE0F}\u{20E3}", "1\u{FE0F}\u{20E3}"),
            ("a\u{200D}b 👨\u{200D}b 👨\u{200D}", "ab 👨b 👨"),
        ] {
            assert_eq!(shown(text), want, "{text:?}");
        }
    }
}
