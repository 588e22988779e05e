//! The text of values: literals in SQL, and fields of a file for LOAD DATA.
//!
//! Literals assume the settings of [`connect`](super::connect): utf8mb4 and backslash escapes.

use std::fmt::Write as _;
use std::io::Write as _;

use mysql_async::consts::ColumnType;
use mysql_async::{Column, Value};

/// A table to write: the first `key_columns` are its primary key.
pub(super) struct Table {
    pub name: &'static str,
    pub columns: &'static [&'static str],
    pub key_columns: usize,
}

/// How the values of rows are written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowFormat {
    /// Literals of an INSERT statement.
    Insert,
    /// Fields of a file for LOAD DATA: tabs between them, a line for each row, escaped by
    /// backslashes. Its bytes are stored as they are, so the character set is `binary`.
    LoadData,
}

/// The values of one row.
pub(super) struct Values<'a> {
    text: &'a mut Vec<u8>,
    format: RowFormat,
    /// Where each value ends in the text; `None`: not needed.
    ends: Option<&'a mut Vec<usize>>,
    count: usize,
}

/// The values of one row as literals, to compare them with a row that was read.
pub(super) fn literals(fill: impl FnOnce(&mut Values<'_>)) -> Vec<String> {
    let (mut text, mut ends) = (Vec::new(), Vec::new());
    fill(&mut Values { ends: Some(&mut ends), ..Values::new(&mut text, RowFormat::Insert) });
    let starts = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
    starts.zip(&ends).map(|(start, &end)| String::from_utf8_lossy(&text[start..end]).into_owned()).collect()
}

/// A value that was read, as a literal in the form of [`literals`].
pub(super) fn read_literal(value: &Value, column: &Column) -> String {
    const BINARY: u16 = 63;
    let Value::Bytes(bytes) = value else { return value.as_sql(false) };
    let text = || String::from_utf8_lossy(bytes);
    match column.column_type() {
        ColumnType::MYSQL_TYPE_DOUBLE => match text().parse::<f64>() {
            Ok(number) => format!("{number:e}"),
            Err(_) => text().into_owned(),
        },
        number if number.is_numeric_type() => text().into_owned(),
        _ if column.character_set() == BINARY => literals(|values| _ = values.bytes(bytes)).concat(),
        _ => literal(&text()),
    }
}

impl<'a> Values<'a> {
    /// Appends values to `text`.
    pub fn new(text: &'a mut Vec<u8>, format: RowFormat) -> Values<'a> {
        Values { text, format, ends: None, count: 0 }
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn uint(&mut self, value: impl Into<u64>) -> &mut Self {
        let value = value.into();
        self.put(|text, _| _ = write!(text, "{value}"))
    }

    pub fn int(&mut self, value: i64) -> &mut Self {
        self.put(|text, _| _ = write!(text, "{value}"))
    }

    pub fn opt_uint(&mut self, value: Option<u32>) -> &mut Self {
        match value {
            Some(value) => self.uint(value),
            None => self.null(),
        }
    }

    pub fn opt_int(&mut self, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => self.int(value),
            None => self.null(),
        }
    }

    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.uint(u8::from(value))
    }

    /// Exact to the last bit. Values that are not finite become NULL, which the database
    /// rejects; `Value::as_sql` would write a word that is a syntax error.
    pub fn double(&mut self, value: f64) -> &mut Self {
        if value.is_finite() { self.put(|text, _| _ = write!(text, "{value:e}")) } else { self.null() }
    }

    pub fn text(&mut self, value: &str) -> &mut Self {
        self.put(|text, format| match format {
            RowFormat::Insert => text.extend_from_slice(literal(value).as_bytes()),
            RowFormat::LoadData => push_field(text, value.as_bytes()),
        })
    }

    pub fn opt_text(&mut self, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(value),
            None => self.null(),
        }
    }

    /// As a literal, hexadecimal digits: `Value::as_sql` would write bytes that happen to be
    /// UTF-8 as text.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.put(|text, format| match format {
            RowFormat::Insert => {
                text.extend_from_slice(b"X'");
                for byte in value {
                    let _ = write!(text, "{byte:02X}");
                }
                text.push(b'\'');
            }
            RowFormat::LoadData => push_field(text, value),
        })
    }

    pub fn opt_bytes(&mut self, value: Option<&[u8]>) -> &mut Self {
        match value {
            Some(value) => self.bytes(value),
            None => self.null(),
        }
    }

    fn null(&mut self) -> &mut Self {
        self.put(|text, format| {
            text.extend_from_slice(match format {
                RowFormat::Insert => b"NULL",
                RowFormat::LoadData => b"\\N",
            })
        })
    }

    fn put(&mut self, push: impl FnOnce(&mut Vec<u8>, RowFormat)) -> &mut Self {
        if self.count > 0 {
            self.text.push(match self.format {
                RowFormat::Insert => b',',
                RowFormat::LoadData => b'\t',
            });
        }
        self.count += 1;
        push(self.text, self.format);
        if let Some(ends) = &mut self.ends {
            ends.push(self.text.len());
        }
        self
    }
}

/// Appends a field of a file for LOAD DATA.
fn push_field(text: &mut Vec<u8>, value: &[u8]) {
    for &byte in value {
        let escaped = match byte {
            b'\\' => b'\\',
            b'\t' => b't',
            b'\n' => b'n',
            0 => b'0',
            _ => {
                text.push(byte);
                continue;
            }
        };
        text.extend_from_slice(&[b'\\', escaped]);
    }
}

/// Text as a literal, including quotes. The session does not set NO_BACKSLASH_ESCAPES.
pub(super) fn literal(value: &str) -> String {
    Value::from(value).as_sql(false)
}

/// The condition for rows of some objects in one group, such as servers in a week: `week = 2968 AND server IN (1,2)`.
///
/// A SELECT must name the index (`FORCE INDEX`). Otherwise the database may read the whole week: its statistics are
/// old while a table grows, and then the week seems small. `(week,server) IN ((2968,1),(2968,2))` prevents that,
/// too, but MariaDB's time for it grows with the square of the list if the index begins with the group: 4.5 ms for 100
/// members, 92 ms for 400, instead of 0.5 and 0.9 ms.
pub(super) fn in_group<T: std::fmt::Display>(
    (group_column, group): (&str, impl std::fmt::Display),
    member_column: &str,
    members: impl IntoIterator<Item = T>,
) -> String {
    format!("{group_column} = {group} AND {member_column} IN ({})", comma_separated(members))
}

/// `a,b,c`.
pub(super) fn comma_separated<T: std::fmt::Display>(values: impl IntoIterator<Item = T>) -> String {
    let mut text = String::new();
    for value in values {
        if !text.is_empty() {
            text.push(',');
        }
        let _ = write!(text, "{value}");
    }
    text
}

/// Rows in a page of a table: some 50 ms.
const PAGE_ROWS: u32 = 20_000;

/// Selects the last key of the page that begins after a key; no row: there are no more pages. A statement that reads all of a
/// table that grows would one day exceed `archive.query_timeout_ms`, in each pass again. `key`: the first column of
/// the primary key.
pub(super) fn page_end(table: &str, key: &str, after: Option<u64>) -> String {
    let rows = page_rows(key, after, None);
    format!(
        "SELECT {key} FROM {table} FORCE INDEX (PRIMARY) WHERE {rows} ORDER BY {key} LIMIT 1 OFFSET {}",
        PAGE_ROWS - 1
    )
}

/// The condition for the rows of a page: those after a key until another one.
pub(super) fn page_rows(key: &str, after: Option<u64>, last: Option<u64>) -> String {
    let after = after.map_or_else(|| "TRUE".to_owned(), |after| format!("{key} > {after}"));
    last.map_or_else(|| after.clone(), |last| format!("{after} AND {key} <= {last}"))
}

/// The first `chars_max` characters.
pub(super) fn truncate_chars(text: &str, chars_max: usize) -> &str {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_sql_literals() {
        let values = literals(|values| {
            values.double(887.5).double(-0.1).double(f64::NAN).bytes(&[0, 0xFE]).opt_uint(None).bool(true).int(-3);
        });
        assert_eq!(values, ["8.875e2", "-1e-1", "NULL", "X'00FE'", "NULL", "1", "-3"]);
        assert_eq!(truncate_chars("añb", 2), "añ");
        assert_eq!(truncate_chars("añb", 3), "añb");
        assert_eq!(comma_separated([1, 2]), "1,2");
    }

    #[test]
    fn values_become_fields_of_a_file() {
        let mut text = Vec::new();
        Values::new(&mut text, RowFormat::LoadData)
            .text("a\tb\\c\nñ'")
            .bytes(&[0, b'\\', 0xFE, b'N'])
            .opt_bytes(None)
            .double(0.5)
            .int(-3);
        assert_eq!(text, b"a\\tb\\\\c\\n\xC3\xB1'\t\\0\\\\\xFEN\t\\N\t5e-1\t-3");
    }
}
