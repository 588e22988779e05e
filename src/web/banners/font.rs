//! The font of banners. It is part of the program, so a PNG does not depend on the fonts of the
//! system.

use std::sync::LazyLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, GlyphId, MetadataProvider};
use tiny_skia::{Path, PathBuilder};
use unicode_width::UnicodeWidthChar;

/// Latin, Greek, Cyrillic and symbols of DejaVu Sans Condensed; `LICENSE-DejaVu` states how the subset was made.
const DATA: &[u8] = include_bytes!("DejaVuSansCondensed.ttf");

/// Font families of an SVG, for viewers without this font.
pub(super) const FAMILIES: &str = "DejaVu Sans Condensed, DejaVu Sans, Verdana, sans-serif";

/// Width of a character that the font does not have, for each of its terminal columns, in the size
/// of the font: most fonts for Chinese and Japanese are twice as wide.
const MISSING_COLUMN: f32 = 0.5;

static FONT: LazyLock<FontRef<'static>> = LazyLock::new(|| FontRef::new(DATA).expect("the font is valid"));

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

/// The letters of a text on a baseline, each as wide as [`width`] has it. A character that the font does not have is a
/// box, or nothing if it has no width. `None`: nothing is visible, as of spaces.
pub(super) fn outline(text: &str, left: f32, baseline: f32, font_size: f32) -> Option<Path> {
    let glyphs = FONT.outline_glyphs();
    let mut pen = Pen { path: PathBuilder::new(), left, baseline };
    for c in text.chars() {
        let width = width(c, font_size);
        let missing = (width > 0.0).then_some(GlyphId::NOTDEF);
        if let Some(glyph) = FONT.charmap().map(c).or(missing).and_then(|glyph| glyphs.get(glyph)) {
            let settings = DrawSettings::unhinted(Size::new(font_size), LocationRef::default());
            glyph.draw(settings, &mut pen).expect("the font is valid");
        }
        pen.left += width;
    }
    pen.path.finish()
}

/// Takes the outline of a letter, whose y axis points up from the baseline.
struct Pen {
    path: PathBuilder,
    left: f32,
    baseline: f32,
}

impl OutlinePen for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.left + x, self.baseline - y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.left + x, self.baseline - y);
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.path.quad_to(self.left + cx, self.baseline - cy, self.left + x, self.baseline - y);
    }

    fn curve_to(&mut self, cx0: f32, cy0: f32, cx1: f32, cy1: f32, x: f32, y: f32) {
        let (left, baseline) = (self.left, self.baseline);
        self.path.cubic_to(left + cx0, baseline - cy0, left + cx1, baseline - cy1, left + x, baseline - y);
    }

    fn close(&mut self) {
        self.path.close();
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

    #[test]
    fn letters_are_drawn_on_the_baseline_within_their_width() {
        for text in ["The House", "AVAToWa", "Ωμέγα Привет", "★ i.l|W ★", "12/16 players", "中文 😀"]
        {
            let bounds = outline(text, 100.0, 50.0, 15.0).expect("visible").bounds();
            let width: f32 = text.chars().map(|c| width(c, 15.0)).sum();
            // Some letters begin slightly before their place.
            assert!(bounds.left() > 99.0 && bounds.right() < 101.0 + width, "{text}: {bounds:?}, {width} wide");
            assert!(bounds.right() > 98.0 + width - 7.5, "{text}: {bounds:?}, {width} wide");
            assert!(bounds.top() > 35.0 && bounds.top() < 42.0 && bounds.bottom() < 55.0, "{text}: {bounds:?}");
        }
        assert_eq!(outline(" ", 0.0, 0.0, 15.0), None);
    }
}
