//! SQL statement text: literals, and upserts of many rows.
//!
//! Statements are sent as text, not prepared: a statement contains as many rows as fit,
//! and text takes one round trip. Literals assume the settings of
//! [`connect`](super::connect): utf8mb4 and backslash escapes.

use std::fmt::Write as _;

use mysql_async::consts::ColumnType;
use mysql_async::{Column, Value};

/// A table to write: the first `key_columns` are its primary key.
pub(super) struct Table {
    pub name: &'static str,
    pub columns: &'static [&'static str],
    pub key_columns: usize,
}

/// Collects rows into `INSERT ... ON DUPLICATE KEY UPDATE` statements of at
/// most about `statement_bytes_max` bytes.
pub(super) struct Upsert {
    table: &'static Table,
    statement_bytes_max: usize,
    done: Vec<String>,
    current: String,
    rows: usize,
}

impl Upsert {
    pub fn new(table: &'static Table, statement_bytes_max: usize) -> Upsert {
        Upsert { table, statement_bytes_max, done: Vec::new(), current: String::new(), rows: 0 }
    }

    /// Adds a row; `fill` provides a value for each column, in order. Rows should be
    /// added in order of the primary key.
    pub fn row(&mut self, fill: impl FnOnce(&mut Values<'_>)) {
        if self.current.is_empty() {
            self.current = format!("INSERT INTO {} ({}) VALUES ", self.table.name, self.table.columns.join(","));
        } else {
            self.current.push(',');
        }
        self.current.push('(');
        let mut values = Values { text: &mut self.current, ends: None, count: 0 };
        fill(&mut values);
        assert_eq!(values.count, self.table.columns.len(), "a value for each column of {}", self.table.name);
        self.current.push(')');
        self.rows += 1;
        if self.current.len() >= self.statement_bytes_max {
            self.close();
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn table_name(&self) -> &'static str {
        self.table.name
    }

    pub fn into_statements(mut self) -> Vec<String> {
        self.close();
        self.done
    }

    fn close(&mut self) {
        if self.current.is_empty() {
            return;
        }
        let mut statement = std::mem::take(&mut self.current);
        statement.push_str(" ON DUPLICATE KEY UPDATE ");
        // If all columns are key columns there is nothing to update, but the clause must
        // name a column, or a repetition would be an error.
        let values = &self.table.columns[self.table.key_columns..];
        let named = if values.is_empty() { &self.table.columns[..1] } else { values };
        // VALUES() is deprecated since MySQL 8.0.20 in favour of a row alias that MariaDB
        // does not know; both accept it.
        for (i, column) in named.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let _ = write!(statement, "{comma}{column}=VALUES({column})");
        }
        self.done.push(statement);
    }
}

/// The values of one row.
pub(super) struct Values<'a> {
    text: &'a mut String,
    /// Where each value ends in the text; `None`: not needed.
    ends: Option<&'a mut Vec<usize>>,
    count: usize,
}

/// The values of one row as literals, for a comparison with a row that was read.
pub(super) fn literals(fill: impl FnOnce(&mut Values<'_>)) -> Vec<String> {
    let (mut text, mut ends) = (String::new(), Vec::new());
    fill(&mut Values { text: &mut text, ends: Some(&mut ends), count: 0 });
    let starts = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
    starts.zip(&ends).map(|(start, &end)| text[start..end].to_owned()).collect()
}

/// A value that was read, as the literal that [`literals`] makes of the same value.
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
        _ if column.character_set() == BINARY => {
            let mut literal = String::new();
            Values { text: &mut literal, ends: None, count: 0 }.bytes(bytes);
            literal
        }
        _ => literal(&text()),
    }
}

impl Values<'_> {
    pub fn uint(&mut self, value: impl Into<u64>) -> &mut Self {
        let value = value.into();
        self.put(|text| _ = write!(text, "{value}"))
    }

    pub fn int(&mut self, value: i64) -> &mut Self {
        self.put(|text| _ = write!(text, "{value}"))
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
        if value.is_finite() { self.put(|text| _ = write!(text, "{value:e}")) } else { self.null() }
    }

    pub fn text(&mut self, value: &str) -> &mut Self {
        self.put(|text| text.push_str(&literal(value)))
    }

    pub fn opt_text(&mut self, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(value),
            None => self.null(),
        }
    }

    /// As hexadecimal digits: `Value::as_sql` would write bytes that happen to be UTF-8 as
    /// text.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.put(|text| {
            text.push_str("X'");
            for byte in value {
                let _ = write!(text, "{byte:02X}");
            }
            text.push('\'');
        })
    }

    pub fn opt_bytes(&mut self, value: Option<&[u8]>) -> &mut Self {
        match value {
            Some(value) => self.bytes(value),
            None => self.null(),
        }
    }

    fn null(&mut self) -> &mut Self {
        self.put(|text| text.push_str("NULL"))
    }

    fn put(&mut self, push: impl FnOnce(&mut String)) -> &mut Self {
        if self.count > 0 {
            self.text.push(',');
        }
        self.count += 1;
        push(self.text);
        if let Some(ends) = &mut self.ends {
            ends.push(self.text.len());
        }
        self
    }
}

/// Text as a literal, including quotes. The session does not set NO_BACKSLASH_ESCAPES.
pub(super) fn literal(value: &str) -> String {
    Value::from(value).as_sql(false)
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

    const PAIR: Table = Table { name: "t", columns: &["a", "b"], key_columns: 1 };

    #[test]
    fn upsert_statements_stay_below_size_limit() {
        let mut upsert = Upsert::new(&PAIR, 60);
        for i in 0..3_u32 {
            upsert.row(|row| _ = row.uint(i).text("it's \\ so"));
        }
        assert_eq!(upsert.rows(), 3);
        let tail = " ON DUPLICATE KEY UPDATE b=VALUES(b)";
        assert_eq!(
            upsert.into_statements(),
            [
                format!(r"INSERT INTO t (a,b) VALUES (0,'it\'s \\ so'),(1,'it\'s \\ so'){tail}"),
                format!(r"INSERT INTO t (a,b) VALUES (2,'it\'s \\ so'){tail}"),
            ]
        );
    }

    #[test]
    fn values_become_sql_literals() {
        let mut text = String::new();
        let mut values = Values { text: &mut text, ends: None, count: 0 };
        values.double(887.5).double(-0.1).double(f64::NAN).bytes(&[0, 0xFE]).opt_uint(None).bool(true).int(-3);
        assert_eq!(text, "8.875e2,-1e-1,NULL,X'00FE',NULL,1,-3");
        assert_eq!(truncate_chars("añb", 2), "añ");
        assert_eq!(truncate_chars("añb", 3), "añb");
        assert_eq!(comma_separated([1, 2]), "1,2");
    }

    #[test]
    #[should_panic(expected = "a value for each column")]
    fn missing_column_value_panics() {
        Upsert::new(&PAIR, 60).row(|row| _ = row.uint(1_u32));
    }
}
