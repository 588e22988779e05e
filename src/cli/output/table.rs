//! Tables with aligned columns. The first rows are buffered, and the column widths are computed
//! from them. Later rows are written immediately, so a list of a million servers needs little
//! memory.
//!
//! A table that is wider than the terminal is narrowed: first its truncated columns, then it loses
//! its optional columns, those without any text first. Columns that are neither, such as URLs, stay complete. So a line
//! may still be longer than the terminal is wide.

use std::borrow::Cow;
use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::cli::stdio;

/// Number of buffered rows from which the column widths are computed.
const SAMPLE_ROWS: usize = 500;

/// Maximum width of a column. A longer cell is not truncated: it shifts the rest of its line.
const WIDTH_MAX: usize = 60;

/// Width to which truncated columns may be narrowed.
const NARROWED_MIN: usize = 10;

/// The part of its largest width that a truncated column keeps as long as there are optional columns: 20 of a host name's 48.
const KEPT_PART: (usize, usize) = (5, 12);

/// Width up to which a column that is not truncated gets what it needs, such as an IPv4 address and
/// its port.
const URL_WIDTH_MIN: usize = 30;

/// Space between two columns.
const GAP: &str = "  ";

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
    /// Names of columns that a narrow table may lack, in the order in which they are dropped.
    optional: &'static [&'static str],
    /// A column, and others that say more only if their text differs from its text.
    alternatives: Option<(&'static str, &'static [&'static str])>,
    /// The width of the terminal; `None`: no limit.
    width_max: Option<usize>,
    /// `None`: the column is dropped.
    widths: Vec<Option<usize>>,
    /// Rows that are buffered until the widths are computed.
    waiting: Vec<Vec<String>>,
    /// Whether the header is written and the widths are final.
    headed: bool,
}

impl Table {
    pub fn new(columns: &[Column]) -> Table {
        let widths = columns.iter().map(|(name, _)| Some(name.width())).collect();
        let width_max = stdio::width();
        Table {
            columns: columns.to_vec(),
            optional: &[],
            alternatives: None,
            width_max,
            widths,
            waiting: Vec::new(),
            headed: false,
        }
    }

    /// Sets the names of columns that a narrow table may lack, the least important first.
    pub fn with_optional(mut self, optional: &'static [&'static str]) -> Table {
        self.optional = optional;
        self
    }

    /// Drops each of these columns if it has the same text as `column` in all rows.
    pub fn with_alternatives(mut self, column: &'static str, others: &'static [&'static str]) -> Table {
        self.alternatives = Some((column, others));
        self
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
        if self.waiting.len() >= SAMPLE_ROWS { self.flush(out) } else { Ok(()) }
    }

    /// Adds a line above the following rows, such as the server that they are of. It has no columns.
    pub fn heading(&mut self, out: &mut impl Write, text: String) -> io::Result<()> {
        if self.headed {
            return writeln!(out, "{text}");
        }
        self.waiting.push(vec![text]);
        Ok(())
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
            let columns = self.columns.len();
            for row in rows.iter().filter(|row| row.len() == columns) {
                for (width, cell) in self.widths.iter_mut().flatten().zip(row) {
                    *width = (*width).max(cell.width().min(WIDTH_MAX));
                }
            }
            // Of a longer table not all rows are known.
            if rows.len() < SAMPLE_ROWS {
                self.drop_alternatives(&rows);
            }
            if let Some(width_max) = self.width_max {
                self.widths = self.narrowed(width_max, &rows);
            }
            let names: Vec<String> = self.columns.iter().map(|&(name, _)| name.to_owned()).collect();
            self.write(out, &names)?;
        }
        rows.iter().try_for_each(|row| self.write(out, row))
    }

    fn drop_alternatives(&mut self, rows: &[Vec<String>]) {
        let Some((column, others)) = self.alternatives else { return };
        let place =
            |name: &str| self.columns.iter().position(|(other, _)| *other == name).expect("a column of this table");
        let same = |at: usize| rows.iter().all(|row| row.get(at) == row.get(place(column)));
        let dropped: Vec<usize> = others.iter().map(|name| place(name)).filter(|at| same(*at)).collect();
        dropped.into_iter().for_each(|at| self.widths[at] = None);
    }

    fn is_heading(&self, cells: &[String]) -> bool {
        cells.len() < self.columns.len()
    }

    /// Widths with which a line fits, if possible.
    fn narrowed(&self, width_max: usize, rows: &[Vec<String>]) -> Vec<Option<usize>> {
        let mut widths = self.widths.clone();
        for (at, (name, _)) in self.columns.iter().enumerate() {
            let is_empty = |row: &Vec<String>| row.get(at).is_none_or(|cell| matches!(&**cell, "" | "-"));
            if self.optional.contains(name) && rows.iter().all(is_empty) {
                widths[at] = None;
            }
        }
        for (width, (name, align)) in widths.iter_mut().zip(&self.columns) {
            // A few long URLs should not narrow the other columns of all lines.
            if *align == Align::Left {
                *width = width.map(|width| width.min(URL_WIDTH_MIN.max(width_max * 2 / 5).max(name.width())));
            }
        }
        for dropped in self.optional {
            let mut narrowed = widths.clone();
            if self.narrow_truncated(&mut narrowed, width_max, KEPT_PART) {
                return narrowed;
            }
            let at = self.columns.iter().position(|(name, _)| name == dropped).expect("a column of this table");
            widths[at] = None;
        }
        self.narrow_truncated(&mut widths, width_max, (0, 1));
        widths
    }

    /// Narrows the widest of the truncated columns until a line fits, but no column below this part of its largest width.
    /// Returns whether a line fits.
    fn narrow_truncated(&self, widths: &mut [Option<usize>], width_max: usize, kept: (usize, usize)) -> bool {
        loop {
            let shown = widths.iter().flatten();
            if shown.clone().sum::<usize>() + GAP.len() * shown.count().saturating_sub(1) <= width_max {
                return true;
            }
            let truncated = widths.iter_mut().zip(&self.columns).filter_map(|(width, (name, align))| match align {
                Align::Truncate(most) => {
                    let least = NARROWED_MIN.max(name.width()).max(most * kept.0 / kept.1);
                    width.as_mut().filter(|width| **width > least)
                }
                Align::Left | Align::Right => None,
            });
            match truncated.max() {
                Some(widest) => *widest -= 1,
                None => return false,
            }
        }
    }

    fn write(&self, out: &mut impl Write, cells: &[String]) -> io::Result<()> {
        if self.is_heading(cells) {
            return writeln!(out, "{}", cells.concat());
        }
        let mut line = String::new();
        let shown = self.widths.iter().zip(cells).zip(&self.columns);
        for ((width, cell), (_, align)) in shown.filter_map(|((width, cell), column)| Some((((*width)?, cell), column)))
        {
            let cell = match align {
                Align::Truncate(_) if self.width_max.is_some() => truncate(cell, width),
                _ => Cow::Borrowed(cell.as_str()),
            };
            let padding = width.saturating_sub(cell.width());
            if !line.is_empty() {
                line.push_str(GAP);
            }
            match align {
                Align::Left | Align::Truncate(_) => {
                    line.push_str(&cell);
                    line.extend(std::iter::repeat_n(' ', padding));
                }
                Align::Right => {
                    line.extend(std::iter::repeat_n(' ', padding));
                    line.push_str(&cell);
                }
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}

/// Truncates text to this many terminal columns. Truncated text ends with an ellipsis.
pub fn truncate(text: &str, width_max: usize) -> Cow<'_, str> {
    // No character has more columns than bytes.
    if text.len() <= width_max || text.width() <= width_max {
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

    /// A list of servers with the longest strings, on a terminal of this width.
    fn list(width_max: usize, url: &str) -> String {
        let columns = [
            ("server", Align::Left),
            ("class", Align::Right),
            ("map", MAP_COLUMN),
            ("name", HOSTNAME_COLUMN),
            ("rank", Align::Right),
        ];
        let mut table = Table { width_max: Some(width_max), ..Table::new(&columns).with_optional(&["rank", "class"]) };
        let mut out = Vec::new();
        for name in ["x".repeat(90), "日".repeat(90), "Visor".to_owned()] {
            let cells = [url, "1", &"m".repeat(24), &name, "1,234"].map(str::to_owned);
            table.row(&mut out, cells.to_vec()).expect("written");
        }
        table.flush(&mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn table_is_narrowed_to_the_terminal() {
        let url = "quake3://192.0.2.7:27960";
        for width_max in 48..160 {
            let text = list(width_max, url);
            let widest = text.lines().map(|line| line.width()).max().expect("lines");
            assert!(widest <= width_max && text.lines().skip(1).all(|line| line.contains(url)), "{width_max}: {text}");
            assert!(widest + 1 >= width_max.min(114), "no space is wasted at {width_max}: {text}");
            assert_eq!(text.contains(" rank\n"), width_max >= 72, "{width_max}: {text}");
            assert_eq!(text.contains(" class "), width_max >= 65, "{width_max}: {text}");
        }
        let long = format!("quake3://{}:27960", "h".repeat(80));
        let text = list(80, &long);
        assert!(text.lines().skip(1).all(|line| line.starts_with(&long)), "URLs are not truncated: {text}");
        assert!(text.starts_with("server                            class  "), "{text}");
    }

    #[test]
    fn optional_columns_without_text_are_dropped_on_a_terminal() {
        let columns = [("n", Align::Right), ("notes", Align::Left), ("rank", Align::Left)];
        for (width_max, want) in [(Some(80), "n  rank\n1  7\n"), (None, "n  notes  rank\n1         7\n")] {
            let mut table = Table { width_max, ..Table::new(&columns).with_optional(&["rank", "notes"]) };
            let mut out = Vec::new();
            table.row(&mut out, ["1", "", "7"].map(str::to_owned).to_vec()).expect("written");
            table.flush(&mut out).expect("written");
            assert_eq!(String::from_utf8(out).expect("text"), want);
        }
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
