//! Sanitises and truncates the text of strangers. The result is one line without characters that
//! control its direction or that XML forbids.

use super::font;
use crate::model::shown_text::shown;

/// Longest text, characters. No banner has space for more.
const CHARS_MAX: usize = 120;

/// The end of a truncated text.
const ELLIPSIS: char = '…';

/// Text and its width, pixels.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fitted {
    pub text: String,
    pub width: f32,
}

/// The visible form of a text; at most [`CHARS_MAX`] characters.
pub(super) fn clean(text: &str) -> String {
    let mut out = shown(text);
    if let Some((end, _)) = out.char_indices().nth(CHARS_MAX) {
        out.truncate(end);
        out.truncate(out.trim_end().len());
    }
    out
}

/// Truncates a clean text to a width. The result is empty if no character fits.
pub(super) fn fit(text: &str, font_size: f32, width_max: f32) -> Fitted {
    let ellipsis_width = font::width(ELLIPSIS, font_size);
    let mut width = 0.0;
    // The longest prefix that fits with an ellipsis.
    let (mut cut, mut cut_width) = (0, 0.0);
    for (at, c) in text.char_indices() {
        if width + ellipsis_width <= width_max {
            (cut, cut_width) = (at, width);
        }
        width += font::width(c, font_size);
        if width > width_max {
            let start = text[..cut].trim_end();
            if start.is_empty() {
                return Fitted { text: String::new(), width: 0.0 };
            }
            let spaces = text[start.len()..cut].chars().map(|c| font::width(c, font_size)).sum::<f32>();
            return Fitted { text: format!("{start}{ELLIPSIS}"), width: cut_width - spaces + ellipsis_width };
        }
    }
    Fitted { text: text.to_owned(), width }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_bounded() {
        assert_eq!(clean(" a\u{202E}b\n"), "ab");
        assert_eq!(clean(&"ab ".repeat(10_000)).chars().count(), CHARS_MAX - 1);
    }

    #[test]
    fn long_text_ends_in_an_ellipsis() {
        let whole = fit("The House", 10.0, 100.0);
        assert_eq!(whole.text, "The House");
        assert_eq!(fit("The House", 10.0, whole.width), whole);
        assert_eq!(fit("The House", 10.0, whole.width - 0.1).text, "The Hou…");
        // No space before the ellipsis.
        let start = fit("The", 10.0, 100.0).width + font::width(' ', 10.0) + font::width(ELLIPSIS, 10.0);
        let cut = fit("The House", 10.0, start);
        assert_eq!(cut, Fitted { text: "The…".into(), width: start - font::width(' ', 10.0) });
        assert_eq!(fit("The House", 10.0, 3.0), Fitted { text: String::new(), width: 0.0 });
        assert_eq!(fit("", 10.0, 3.0), Fitted { text: String::new(), width: 0.0 });
    }
}
