//! The values of a row, each checked: a person may have changed tables and rows.

use mysql_async::prelude::FromValue;
use mysql_async::{Row, Value};

use crate::model::restored::RejectedRow;

/// The values of a row in the order of its columns.
pub(super) struct Fields {
    row: Row,
    at: usize,
}

/// Why a value does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadValue {
    pub column: String,
    pub why: &'static str,
}

impl BadValue {
    pub fn in_row(self, table: &'static str, key: String) -> RejectedRow {
        RejectedRow { table, key, why: format!("{} {}", self.column, self.why) }
    }
}

impl Fields {
    pub fn new(row: Row) -> Fields {
        Fields { row, at: 0 }
    }

    /// The next value; `None`: NULL.
    pub fn opt<T: FromValue>(&mut self) -> Result<Option<T>, BadValue> {
        let at = self.next();
        match self.row.take_opt::<Option<T>, _>(at) {
            Some(Ok(value)) => Ok(value),
            Some(Err(_)) => Err(self.bad("has a value that does not fit")),
            None => Err(self.bad("is missing")),
        }
    }

    /// The next value, which is required.
    pub fn get<T: FromValue>(&mut self) -> Result<T, BadValue> {
        self.opt()?.ok_or_else(|| self.bad("is NULL"))
    }

    pub fn bool(&mut self) -> Result<bool, BadValue> {
        Ok(self.get::<i64>()? != 0)
    }

    /// Exact to the last bit.
    pub fn double(&mut self) -> Result<f64, BadValue> {
        let at = self.next();
        let value = match self.row.take::<Value, _>(at) {
            Some(Value::Double(value)) => Some(value),
            Some(Value::Bytes(text)) => std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()),
            Some(Value::NULL) => return Err(self.bad("is NULL")),
            _ => None,
        };
        value.ok_or_else(|| self.bad("has a value that does not fit"))
    }

    /// An error at the value that was returned last.
    pub fn bad(&self, why: &'static str) -> BadValue {
        let column = self.row.columns_ref().get(self.at.saturating_sub(1));
        BadValue { column: column.map_or_else(String::new, |column| column.name_str().into_owned()), why }
    }

    fn next(&mut self) -> usize {
        self.at += 1;
        self.at - 1
    }
}
