//! Collects rows into statements that write many of them: `INSERT ... ON DUPLICATE KEY UPDATE`,
//! or `LOAD DATA`, for which the database parses each value once instead of building an expression
//! from it.
//!
//! Statements are sent as text, not prepared: a statement contains as many rows as fit, and text
//! takes one round trip.

use bytes::Bytes;

use super::sql::{RowFormat, Table, Values};

/// A statement that writes rows.
pub(super) enum RowStatement {
    Insert(Vec<u8>),
    /// A LOAD DATA statement, and the content of its file.
    LoadData {
        sql: String,
        rows: Bytes,
    },
}

/// Collects rows of a table into statements of at most about `statement_bytes_max` bytes.
pub(super) struct Upsert {
    table: &'static Table,
    format: RowFormat,
    statement_bytes_max: usize,
    done: Vec<RowStatement>,
    current: Vec<u8>,
    rows: usize,
}

impl Upsert {
    pub fn new(table: &'static Table, format: RowFormat, statement_bytes_max: usize) -> Upsert {
        Upsert { table, format, statement_bytes_max, done: Vec::new(), current: Vec::new(), rows: 0 }
    }

    /// Adds a row; `fill` provides a value for each column, in order. Rows should be
    /// added in order of the primary key.
    pub fn row(&mut self, fill: impl FnOnce(&mut Values<'_>)) {
        if self.format == RowFormat::Insert {
            if self.current.is_empty() {
                let insert = format!("INSERT INTO {} ({}) VALUES ", self.table.name, self.table.columns.join(","));
                self.current.extend_from_slice(insert.as_bytes());
            } else {
                self.current.push(b',');
            }
            self.current.push(b'(');
        }
        let mut values = Values::new(&mut self.current, self.format);
        fill(&mut values);
        assert_eq!(values.count(), self.table.columns.len(), "a value for each column of {}", self.table.name);
        self.current.push(match self.format {
            RowFormat::Insert => b')',
            RowFormat::LoadData => b'\n',
        });
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

    pub fn into_statements(mut self) -> Vec<RowStatement> {
        self.close();
        self.done
    }

    fn close(&mut self) {
        if self.current.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.current);
        let Table { name, columns, key_columns } = self.table;
        self.done.push(match self.format {
            RowFormat::Insert => RowStatement::Insert(on_duplicate_key_update(text, columns, *key_columns)),
            // REPLACE changes the row that has the same key. The file name is not used.
            RowFormat::LoadData => RowStatement::LoadData {
                sql: format!(
                    "LOAD DATA LOCAL INFILE 'rows' REPLACE INTO TABLE {name} CHARACTER SET binary ({})",
                    columns.join(",")
                ),
                rows: text.into(),
            },
        });
    }
}

/// Appends the clause that updates an existing row.
fn on_duplicate_key_update(mut insert: Vec<u8>, columns: &[&str], key_columns: usize) -> Vec<u8> {
    let values = &columns[key_columns..];
    // If all columns are key columns there is nothing to update, but the clause must name a
    // column, or a repetition would be an error.
    let named = if values.is_empty() { &columns[..1] } else { values };
    // VALUES() is deprecated since MySQL 8.0.20 in favour of a row alias, which MariaDB does not
    // support. Both accept VALUES().
    let updates: Vec<String> = named.iter().map(|column| format!("{column}=VALUES({column})")).collect();
    insert.extend_from_slice(b" ON DUPLICATE KEY UPDATE ");
    insert.extend_from_slice(updates.join(",").as_bytes());
    insert
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: Table = Table { name: "t", columns: &["a", "b"], key_columns: 1 };

    fn statements(format: RowFormat) -> Vec<RowStatement> {
        let mut upsert = Upsert::new(&PAIR, format, 60);
        for i in 0..9_u32 {
            upsert.row(|row| _ = row.uint(i).text("it's \\ so"));
        }
        assert_eq!(upsert.rows(), 9);
        upsert.into_statements()
    }

    #[test]
    fn insert_statements_stay_below_size_limit() {
        let text: Vec<String> = statements(RowFormat::Insert)
            .into_iter()
            .map(|statement| match statement {
                RowStatement::Insert(text) => String::from_utf8(text).expect("UTF-8"),
                RowStatement::LoadData { sql, .. } => panic!("{sql}"),
            })
            .collect();
        let tail = " ON DUPLICATE KEY UPDATE b=VALUES(b)";
        assert_eq!(text[0], format!(r"INSERT INTO t (a,b) VALUES (0,'it\'s \\ so'),(1,'it\'s \\ so'){tail}"));
        assert_eq!(text[4], format!(r"INSERT INTO t (a,b) VALUES (8,'it\'s \\ so'){tail}"));
        assert_eq!(text.len(), 5);
    }

    #[test]
    fn files_to_load_stay_below_size_limit() {
        let files: Vec<(String, Bytes)> = statements(RowFormat::LoadData)
            .into_iter()
            .map(|statement| match statement {
                RowStatement::LoadData { sql, rows } => (sql, rows),
                RowStatement::Insert(text) => panic!("{text:?}"),
            })
            .collect();
        assert_eq!(files.len(), 2);
        assert_eq!(files[0].0, "LOAD DATA LOCAL INFILE 'rows' REPLACE INTO TABLE t CHARACTER SET binary (a,b)");
        assert!(files[0].1.starts_with(b"0\tit's \\\\ so\n1\tit's"), "{:?}", files[0].1);
        assert_eq!(files[1].1.iter().filter(|&&byte| byte == b'\n').count(), 4);
    }

    #[test]
    #[should_panic(expected = "a value for each column")]
    fn missing_column_value_panics() {
        Upsert::new(&PAIR, RowFormat::Insert, 60).row(|row| _ = row.uint(1_u32));
    }
}
