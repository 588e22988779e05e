//! A banner as PNG: paints the shapes, and letters as outlines of the font.
//!
//! It takes 0.6 to 2.5 ms for the sizes of forums and 14 ms for a card (`rendering_time` in
//! `tests.rs`, renderer at `opt-level` 2).

use tiny_skia::{FillRule, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform};

use super::drawing::{BACKGROUND, BORDER, CORNER_RADIUS, Colour, Picture, Shape};
use super::font;

/// Paints a picture. It blocks for some milliseconds, so it must not run on the threads of the
/// runtime.
pub(super) fn render(picture: &Picture) -> Result<Vec<u8>, String> {
    let (width, height) = picture.size.pixels();
    let mut pixmap = Pixmap::new(width, height).expect("the size is not 0");
    let frame = Rect::from_xywh(0.5, 0.5, width as f32 - 1.0, height as f32 - 1.0);
    let frame = rounded(frame.expect("it is larger than its border"), CORNER_RADIUS);
    fill(&mut pixmap, frame.clone(), BACKGROUND);
    stroke(&mut pixmap, frame, BORDER, 1.0);
    for shape in &picture.shapes {
        match shape {
            Shape::Dot { x, y, radius, colour } => {
                fill(&mut pixmap, PathBuilder::from_circle(*x, *y, *radius), *colour);
            }
            Shape::Text { fitted, left, baseline, font_size, colour } => {
                fill(&mut pixmap, font::outline(&fitted.text, *left, *baseline, *font_size), *colour);
            }
            Shape::Line { runs, colour, width } => {
                let mut path = PathBuilder::new();
                for run in runs {
                    for (n, &(x, y)) in run.iter().enumerate() {
                        match n {
                            0 => path.move_to(x as f32, y as f32),
                            _ => path.line_to(x as f32, y as f32),
                        }
                    }
                }
                stroke(&mut pixmap, path.finish(), *colour, *width);
            }
        }
    }
    pixmap.encode_png().map_err(|error| error.to_string())
}

/// A rectangle with rounded corners.
fn rounded(rect: Rect, radius: f32) -> Option<Path> {
    let (left, top, right, bottom) = (rect.left(), rect.top(), rect.right(), rect.bottom());
    let mut path = PathBuilder::new();
    path.move_to(left + radius, top);
    path.line_to(right - radius, top);
    path.quad_to(right, top, right, top + radius);
    path.line_to(right, bottom - radius);
    path.quad_to(right, bottom, right - radius, bottom);
    path.line_to(left + radius, bottom);
    path.quad_to(left, bottom, left, bottom - radius);
    path.line_to(left, top + radius);
    path.quad_to(left, top, left + radius, top);
    path.close();
    path.finish()
}

fn paint(Colour(red, green, blue): Colour) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(red, green, blue, u8::MAX);
    paint
}

/// Fills a path; `None`: it is empty, as that of spaces.
fn fill(pixmap: &mut Pixmap, path: Option<Path>, colour: Colour) {
    if let Some(path) = path {
        pixmap.fill_path(&path, &paint(colour), FillRule::Winding, Transform::identity(), None);
    }
}

fn stroke(pixmap: &mut Pixmap, path: Option<Path>, colour: Colour, width: f32) {
    if let Some(path) = path {
        pixmap.stroke_path(&path, &paint(colour), &Stroke { width, ..Stroke::default() }, Transform::identity(), None);
    }
}
