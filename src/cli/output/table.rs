//! Tables with aligned columns. The first rows are buffered, and the column widths are computed
//! from them. Later rows are written immediately, so a list of a million servers needs little
//! memory.

use std::borrow::Cow;
use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Number of buffered rows from which the column widths are computed.
const SAMPLE_ROWS: usize = 500;

/// Maximum width of a column. A longer cell is not truncated: it shifts the rest of its line.
const WIDTH_MAX: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
    /// Left-aligned and truncated to this width. For text that servers and players choose.
    Truncate(usize),
}

// Columns of text that servers and players choose. `--json` prints this text untruncated.

pub const GAME_COLUMN: Align = Align::Truncate(20);
pub const MAP_COLUMN: Align = Align::Truncate(24);
pub const HOSTNAME_COLUMN: Align = Align::Truncate(48);
pub const PLAYER_COLUMN: Align = Align::Truncate(40);

/// Name and alignment of a column.
pub type Column = (&'static str, Align);

#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    widths: Vec<usize>,
    /// Rows that are buffered until the widths are computed.
    waiting: Vec<Vec<String>>,
    /// Whether the header is written and the widths are final.
    headed: bool,
}

impl Table {
    pub fn new(columns: &[Column]) -> Table {
        let widths = columns.iter().map(|(name, _)| name.width()).collect();
        Table { columns: columns.to_vec(), widths, waiting: Vec::new(), headed: false }
    }

    /// Adds a row, with one cell per column. The row is buffered or written.
    pub fn row(&mut self, out: &mut impl Write, mut cells: Vec<String>) -> io::Result<()> {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        for (cell, (_, align)) in cells.iter_mut().zip(&self.columns) {
            if let Align::Truncate(width_max) = *align
                && cell.width() > width_max
            {
                *cell = truncate(cell, width_max).into_owned();
            }
        }
        if self.headed {
            return self.write(out, &cells);
        }
        self.waiting.push(cells);
        if self.waiting.len() == SAMPLE_ROWS { self.flush(out) } else { Ok(()) }
    }

    /// Writes the header and the buffered rows. Call it after the last row. A table without rows
    /// writes nothing.
    pub fn flush(&mut self, out: &mut impl Write) -> io::Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        if rows.is_empty() {
            return Ok(());
        }
        if !self.headed {
            self.headed = true;
            for row in &rows {
                for (width, cell) in self.widths.iter_mut().zip(row) {
                    *width = (*width).max(cell.width().min(WIDTH_MAX));
                }
            }
            let names: Vec<String> = self.columns.iter().map(|&(name, _)| name.to_owned()).collect();
            self.write(out, &names)?;
        }
        rows.iter().try_for_each(|row| self.write(out, row))
    }

    fn write(&self, out: &mut impl Write, cells: &[String]) -> io::Result<()> {
        let mut line = String::new();
        for (i, cell) in cells.iter().enumerate() {
            let padding = self.widths[i].saturating_sub(cell.width());
            if i > 0 {
                line.push_str("  ");
            }
            match self.columns[i].1 {
                Align::Left | Align::Truncate(_) => {
                    line.push_str(cell);
                    line.extend(std::iter::repeat_n(' ', padding));
                }
                Align::Right => {
                    line.extend(std::iter::repeat_n(' ', padding));
                    line.push_str(cell);
                }
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// Truncates text to this many terminal columns. Truncated text ends with an ellipsis.
pub fn truncate(text: &str, width_max: usize) -> Cow<'_, str> {
    if text.width() <= width_max {
        return Cow::Borrowed(text);
    }
    let mut width = 0;
    let end = text.char_indices().find(|(_, c)| {
        width += c.width().unwrap_or(0);
        width > width_max.saturating_sub(1)
    });
    Cow::Owned(format!("{}…", &text[..end.map_or(text.len(), |(at, _)| at)]))
}

/// Pads or truncates text to exactly this many terminal columns.
pub fn pad(text: &str, width: usize) -> String {
    let text = truncate(text, width);
    let padding = width.saturating_sub(text.width());
    text.into_owned() + &" ".repeat(padding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_truncated_by_display_width() {
        for (text, width_max, want) in [
            ("Visor", 5, "Visor"),
            ("Visor!", 5, "Viso…"),
            ("日本語日本語", 7, "日本語…"),
            ("日本語日本語", 6, "日本…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
        ] {
            assert_eq!(truncate(text, width_max), want);
            assert_eq!(pad(text, 8).width(), 8, "{text}");
        }
        let mut out = Vec::new();
        let mut table = Table::new(&[("game", GAME_COLUMN), ("n", Align::Right)]);
        for game in ["baseq3".to_owned(), "x".repeat(400), "日".repeat(90)] {
            table.row(&mut out, vec![game, "1".to_owned()]).expect("written");
        }
        table.flush(&mut out).expect("written");
        let text = String::from_utf8(out).expect("text");
        assert!(text.lines().all(|line| line.width() == 23), "{text}");
    }

    fn written(rows: usize, cells: impl Fn(usize) -> Vec<String>) -> String {
        let mut out = Vec::new();
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        for i in 0..rows {
            table.row(&mut out, cells(i)).expect("written");
        }
        table.flush(&mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn columns_align_by_display_width() {
        let names = ["日本", "e\u{301}", "Visor"];
        let text = written(3, |i| vec![names[i].to_owned(), format!("{}", 9 * i)]);
        assert_eq!(text, "name    n\n日本    0\ne\u{301}       9\nVisor  18\n");
        assert_eq!(written(0, |_| vec![]), "");
    }

    #[test]
    fn long_table_prints_header_once() {
        let text = written(3 * SAMPLE_ROWS + 1, |i| vec!["x".to_owned(), i.to_string()]);
        assert_eq!(text.lines().count(), 3 * SAMPLE_ROWS + 2);
        assert_eq!(text.matches("name").count(), 1);
    }
}
