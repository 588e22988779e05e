//! Lines of a name and a text, such as those of `clqd status`.

use std::io::{self, Write};

use crate::cli::output::format::wrapped;
use crate::cli::stdio;

/// Columns between the margin and the text.
const INDENT: usize = 10;

/// Prints a name of up to 9 characters, then the text. A text that is too long for the terminal continues below its
/// beginning. A line without a name continues the one above.
pub(super) fn print_named(out: &mut impl Write, margin: usize, name: &str, text: &str) -> io::Result<()> {
    let width = stdio::width().map_or(usize::MAX, |width| width.saturating_sub(margin + INDENT));
    for (i, part) in wrapped(text, width).iter().enumerate() {
        writeln!(out, "{:margin$}{:<9} {part}", "", if i == 0 { name } else { "" })?;
    }
    Ok(())
}
