//! A banner as SVG, without scripts, styles and references. Text is escaped, and
//! `textLength` fixes its width, so it fits in every font.

use maud::{Markup, html};
use unicode_width::UnicodeWidthChar;

use super::drawing::{BACKGROUND, BORDER, CORNER_RADIUS, Picture, Shape};
use super::font;
use super::text::Fitted;
use crate::web::pages::chart::path_data;

pub(super) fn render(Picture { size, title, shapes }: &Picture) -> String {
    let (width, height) = size.pixels();
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) }
            role="img" aria-label=(title) font-family=(font::FAMILIES) {
            title { (title) }
            rect x="0.5" y="0.5" width=(width - 1) height=(height - 1) rx=(CORNER_RADIUS) fill=(BACKGROUND) stroke=(BORDER) {}
            @for shape in shapes { (element(shape)) }
        }
    };
    svg.into_string()
}

fn element(shape: &Shape) -> Markup {
    match shape {
        Shape::Dot { x, y, radius, colour } => html! { circle cx=(x) cy=(y) r=(radius) fill=(colour) {} },
        Shape::Text { fitted: Fitted { text, width }, left, baseline, font_size, colour } => {
            // A character that is wide in another font is a narrow box in this one. Stretching it would
            // stretch the letters beside it, too.
            let adjust = if text.chars().any(|c| c.width() == Some(2)) { "spacing" } else { "spacingAndGlyphs" };
            html! {
                text x=(rounded(*left)) y=(baseline) font-size=(font_size) fill=(colour) textLength=(rounded(*width))
                    lengthAdjust=(adjust) { (text) }
            }
        }
        Shape::Line { runs, width, colour } => html! {
            path d=(path_data(runs)) fill="none" stroke=(colour) stroke-width=(width) {}
        },
    }
}

fn rounded(pixels: f32) -> f32 {
    (pixels * 100.0).round() / 100.0
}
