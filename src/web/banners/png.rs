//! A banner as PNG.
//!
//! Rendering takes 4.0 to 5.7 ms with a graph and 1.3 to 1.5 ms in the smallest size, on one core of
//! a busy virtual machine with the renderer at `opt-level` 2 (`rendering_time` in `tests.rs`). A PNG
//! has 3 to 10 KB.

use std::sync::LazyLock;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{FontResolver, Options, Tree};

use super::font;
use super::size::Size;

static OPTIONS: LazyLock<Options<'static>> = LazyLock::new(|| Options {
    fontdb: font::database(),
    // There is one font only.
    font_resolver: FontResolver {
        select_font: Box::new(|_, fonts| fonts.faces().next().map(|face| face.id)),
        select_fallback: Box::new(|_, _, _| None),
    },
    ..Options::default()
});

/// Renders an SVG of [`super::drawing`]. The size of the image does not depend on the SVG. It
/// blocks for some milliseconds, so it must not run on the threads of the runtime.
pub(super) fn render(svg: &str, size: Size) -> Result<Vec<u8>, String> {
    let tree = Tree::from_str(svg, &OPTIONS).map_err(|error| error.to_string())?;
    let (width, height) = size.pixels();
    let mut pixmap = Pixmap::new(width, height).expect("the size is not 0");
    resvg::render(&tree, Transform::identity(), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| error.to_string())
}
