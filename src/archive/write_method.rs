//! How rows of the archive are written: what the status says, and what a connection has chosen.

use std::fmt;

/// How many rows are written at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WriteMethod {
    /// `LOAD DATA LOCAL INFILE ... REPLACE`
    LoadData,
    /// `INSERT ... ON DUPLICATE KEY UPDATE` of many rows
    Insert,
}

impl WriteMethod {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for WriteMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WriteMethod::LoadData => "LOAD DATA",
            WriteMethod::Insert => "INSERT",
        })
    }
}
