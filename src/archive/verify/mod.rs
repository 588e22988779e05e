//! Compares rows in the database with the values that the state expects. It only reads, while the
//! worker writes.
//!
//! Values are compared as literals, made by the functions with which rows are written.

mod boards;
mod objects;
mod totals;
mod weeks;

use std::collections::{BTreeMap, BTreeSet};

use mysql_async::Row;

use super::connect::Archive;
use super::error::ArchiveError;
use super::sql::{Table, read_literal};
use crate::model::{OutboxKey, ServerKey};

/// Keys in one IN list.
const IN_LIST_MAX: usize = 5_000;

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verification {
    /// Rows that were compared, the expected ones and the surplus ones, by server.
    pub rows: BTreeMap<Option<ServerKey>, u64>,
    pub differences: Vec<RowDifference>,
}

impl Verification {
    pub fn row_count(&self) -> u64 {
        self.rows.values().sum()
    }
}

/// A row that differs in one column, is missing, or is surplus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDifference {
    pub table: &'static str,
    /// The columns of the primary key with their values, as literals of SQL.
    pub key: Vec<(&'static str, String)>,
    /// `None`: the whole row is missing or surplus.
    pub column: Option<&'static str>,
    /// A literal of SQL; `None`: the row is surplus, or missing.
    pub expected: Option<String>,
    pub found: Option<String>,
    /// The object that the row belongs to; `None`: rows of weeks, totals and boards are not compared as objects.
    pub object: Option<OutboxKey>,
}

impl RowDifference {
    /// A number in the key.
    pub fn number(&self, column: &str) -> Option<u32> {
        self.key.iter().find(|(name, _)| *name == column)?.1.parse().ok()
    }

    /// `player=12`: the key without some columns.
    pub fn key_without(&self, columns: &[&str]) -> String {
        let named = self.key.iter().filter(|(name, _)| !columns.contains(name));
        named.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// A whole row that should not be there.
    fn surplus(table: &'static str, key: Vec<(&'static str, String)>) -> RowDifference {
        RowDifference { table, key, column: None, expected: None, found: Some(A_ROW.to_owned()), object: None }
    }
}

const A_ROW: &str = "a row";

/// Rows by their primary key. All values are literals.
type Rows = BTreeMap<Vec<String>, Vec<String>>;

/// The expected rows of one table.
struct ExpectedRows {
    table: &'static Table,
    rows: Rows,
}

impl ExpectedRows {
    fn new(table: &'static Table) -> ExpectedRows {
        ExpectedRows { table, rows: Rows::new() }
    }

    fn add(&mut self, mut row: Vec<String>) {
        assert_eq!(row.len(), self.table.columns.len(), "a value for each column of {}", self.table.name);
        let values = row.split_off(self.table.key_columns);
        self.rows.insert(row, values);
    }
}

impl Archive {
    /// Begins a transaction in which all reads are of one moment.
    pub(super) async fn begin_reading(&mut self) -> Result<(), ArchiveError> {
        self.run("begin", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
        self.run("begin", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY").await
    }

    pub(super) async fn end_reading(&mut self) -> Result<(), ArchiveError> {
        self.run("commit", "COMMIT").await
    }

    async fn read_rows(&mut self, table: &'static Table, condition: &str) -> Result<Rows, ArchiveError> {
        self.read_rows_from(table, &format!("FROM {} WHERE {condition}", table.name)).await
    }

    async fn read_rows_from(&mut self, table: &'static Table, from: &str) -> Result<Rows, ArchiveError> {
        let select = format!("SELECT {} {from}", table.columns.join(", "));
        let rows = self.read(table.name, &select).await?;
        Ok(rows
            .into_iter()
            .map(|mut row| {
                let values = row.split_off(table.key_columns);
                (row, values)
            })
            .collect())
    }

    /// Reads rows as literals.
    pub(super) async fn read(&mut self, doing: &'static str, select: &str) -> Result<Vec<Vec<String>>, ArchiveError> {
        self.doing = doing;
        let rows: Vec<Row> = self.rows(select).await.map_err(|fault| fault.classify(&self.target, doing))?;
        let literals = |row: Row| {
            let columns = row.columns();
            let values = row.unwrap().into_iter();
            values.zip(columns.iter()).map(|(value, column)| read_literal(&value, column)).collect()
        };
        Ok(rows.into_iter().map(literals).collect())
    }
}

/// Adds the differences between two sets of rows.
fn compare(expected: &ExpectedRows, found: &Rows, all: &mut Verification) {
    let table = expected.table;
    let server_at = table.columns[..table.key_columns].iter().position(|column| *column == "server");
    let server_of = |key: &[String]| server_at.and_then(|at| key[at].parse().ok()).map(ServerKey);
    let difference = |key: &[String], column, expected: Option<&str>, found: Option<&str>| RowDifference {
        table: table.name,
        key: table.columns.iter().copied().zip(key.iter().cloned()).collect(),
        column,
        expected: expected.map(str::to_owned),
        found: found.map(str::to_owned),
        object: None,
    };
    let keys: BTreeSet<&Vec<String>> = expected.rows.keys().chain(found.keys()).collect();
    for key in keys {
        *all.rows.entry(server_of(key)).or_default() += 1;
        match (expected.rows.get(key), found.get(key)) {
            (Some(wanted), Some(values)) => {
                let columns = table.columns[table.key_columns..].iter().zip(wanted.iter().zip(values));
                all.differences.extend(
                    columns
                        .filter(|(_, (wanted, value))| wanted != value)
                        .map(|(column, (wanted, value))| difference(key, Some(*column), Some(wanted), Some(value))),
                );
            }
            (Some(_), None) => all.differences.push(difference(key, None, Some(A_ROW), None)),
            (None, _) => all.differences.push(difference(key, None, None, Some(A_ROW))),
        }
    }
}
