//! Tables with aligned columns. The width of a column comes from the first
//! rows; later ones are written as they come, so that a list of a million
//! servers needs no memory.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

/// Rows that the widths are taken from.
const SAMPLE_ROWS: usize = 500;

/// Widest a column grows; longer texts push their line out.
const WIDTH_MAX: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Name and alignment of a column.
pub type Column = (&'static str, Align);

#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    widths: Vec<usize>,
    waiting: Vec<Vec<String>>,
    headed: bool,
}

impl Table {
    pub fn new(columns: &[Column]) -> Table {
        let widths = columns.iter().map(|(name, _)| name.width()).collect();
        Table { columns: columns.to_vec(), widths, waiting: Vec::new(), headed: false }
    }

    /// A row, with as many cells as there are columns.
    pub fn row(&mut self, out: &mut impl Write, cells: Vec<String>) -> io::Result<()> {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        if self.headed {
            return self.write(out, &cells);
        }
        self.waiting.push(cells);
        if self.waiting.len() == SAMPLE_ROWS { self.flush(out) } else { Ok(()) }
    }

    /// Writes what waits. A table without rows writes nothing.
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
            let fill = self.widths[i].saturating_sub(cell.width());
            if i > 0 {
                line.push_str("  ");
            }
            match self.columns[i].1 {
                Align::Left => {
                    line.push_str(cell);
                    line.extend(std::iter::repeat_n(' ', fill));
                }
                Align::Right => {
                    line.extend(std::iter::repeat_n(' ', fill));
                    line.push_str(cell);
                }
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn columns_are_aligned_by_what_is_seen() {
        let names = ["日本", "e\u{301}", "Visor"];
        let text = written(3, |i| vec![names[i].to_owned(), format!("{}", 9 * i)]);
        assert_eq!(text, "name    n\n日本    0\ne\u{301}       9\nVisor  18\n");
        assert_eq!(written(0, |_| vec![]), "");
    }

    #[test]
    fn a_long_table_has_one_heading() {
        let text = written(3 * SAMPLE_ROWS + 1, |i| vec!["x".to_owned(), i.to_string()]);
        assert_eq!(text.lines().count(), 3 * SAMPLE_ROWS + 2);
        assert_eq!(text.matches("name").count(), 1);
    }
}
