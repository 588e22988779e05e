//! The font of banners. It is part of the program, so a PNG does not depend on the fonts of the
//! system.

use std::sync::{Arc, LazyLock};

use resvg::usvg::fontdb;
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};
use unicode_width::UnicodeWidthChar;

/// Latin, Greek, Cyrillic and symbols of DejaVu Sans Condensed; `LICENSE-DejaVu` states how the subset was made.
const DATA: &[u8] = include_bytes!("DejaVuSansCondensed.ttf");

/// Font families of an SVG, for viewers without this font.
pub(super) const FAMILIES: &str = "DejaVu Sans Condensed, DejaVu Sans, Verdana, sans-serif";

/// Width of a character that the font does not have, for each of its terminal columns, in the size
/// of the font: most fonts for Chinese and Japanese are twice as wide.
const MISSING_COLUMN: f32 = 0.5;

static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| FontRef::new(DATA).expect("the font is valid"));

static DATABASE: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut database = fontdb::Database::new();
    database.load_font_source(fontdb::Source::Binary(Arc::new(DATA)));
    assert_eq!(database.len(), 1, "the font is valid");
    Arc::new(database)
});

/// The font for the renderer.
pub(super) fn database() -> Arc<fontdb::Database> {
    DATABASE.clone()
}

/// The width of a character at this font size, pixels.
pub(super) fn width(c: char, font_size: f32) -> f32 {
    let columns = c.width().unwrap_or(0);
    if columns == 0 {
        return 0.0;
    }
    match FONT.charmap().map(c) {
        Some(glyph) => {
            let metrics = FONT.glyph_metrics(Size::new(font_size), LocationRef::default());
            metrics.advance_width(glyph).unwrap_or(font_size)
        }
        None => columns as f32 * MISSING_COLUMN * font_size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font() {
        assert_eq!(width('W', 20.0), 2.0 * width('W', 10.0));
        assert!(width('i', 10.0) < width('W', 10.0));
        assert_eq!(width('\u{301}', 10.0), 0.0);
        assert_eq!((width('中', 10.0), width('😀', 10.0)), (10.0, 10.0));
        for c in ['A', 'ß', 'Ω', 'Я', '€', '·', '…', '★', '□'] {
            assert!(FONT.charmap().map(c).is_some(), "{c}");
        }
    }
}
