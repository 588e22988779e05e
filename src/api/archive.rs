//! Rows of the commands that compare the archive with the state, and write it again.

use serde::{Deserialize, Serialize};

/// Weeks from the first through the last, as ISO labels such as `2026-W47`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeekRange {
    pub first: String,
    pub last: String,
}

/// What the archive will write again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResendRow {
    /// Labels of the weeks, in order.
    pub weeks: Vec<String>,
    /// Weeks of servers, each with all its rows.
    pub server_weeks: u64,
    /// Names and servers are written, too: a resync.
    pub everything: bool,
}
