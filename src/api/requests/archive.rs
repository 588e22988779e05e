//! The archive in MySQL: comparisons with the state, and writing it again.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::{Answer, kinds, lines};
use crate::api::request::request;

kinds! {
    ResendRow: "archive_resend", "ArchiveResent";
    ArchiveDifference: "archive_difference", "ArchiveDifference";
    VerifyRow: "archive_verified", "ArchiveVerified";
}

/// Writes all rows of kept weeks to the archive again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchiveResend {
    /// Which weeks; without them, everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weeks: Option<WeekRange>,
    /// Everything, also to an archive that another copy of the state has written, or that is older than the state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take_over: bool,
}

request!(ArchiveResend: "archive.resend", Access::CORRECTIONS => ResendRow);

/// Compares the archive with the state: everything, or some weeks. The answer has the first 5,000 differences, then the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchiveVerify {
    /// Which weeks; without them, everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weeks: Option<WeekRange>,
}

request!(ArchiveVerify: "archive.verify", Access::CORRECTIONS => Vec<VerifyLine>);

lines! {
    /// A line of a comparison.
    VerifyLine {
        ArchiveDifference(Box<ArchiveDifference>),
        ArchiveVerified(VerifyRow),
    }
}

impl Answer for Vec<VerifyLine> {
    type Line = VerifyLine;

    fn lines(self) -> impl Iterator<Item = VerifyLine> + Send {
        self.into_iter()
    }
}

/// Weeks from the first through the last, as ISO labels such as `2026-W47`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WeekRange {
    /// The first week.
    pub first: String,
    /// The last week.
    pub last: String,
}

/// What the archive will write again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResendRow {
    /// Labels of the weeks, in order.
    pub weeks: Vec<String>,
    /// Weeks of servers, each with all its rows.
    pub server_weeks: u64,
    /// Names and servers are written, too: a resync.
    pub everything: bool,
}

/// A row of the archive that differs from the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArchiveDifference {
    /// What differs.
    pub difference: DifferenceKind,
    /// The week; absent for rows that belong to no week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub week: Option<String>,
    /// The URL of the server; absent for rows that do not belong to a server's week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The table.
    pub table: String,
    /// The primary key, such as `player=12`, without the week and the server that are given; empty if it has no other
    /// columns.
    pub key: String,
    /// Column of a value that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What the state has, as a literal of SQL; of a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What the archive has, as a literal of SQL; of a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// How a row differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// A column has another value.
    Value,
    /// The archive does not have the row.
    Missing,
    /// The state does not have the row.
    Surplus,
}

/// The result of a comparison of the archive with the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerifyRow {
    /// Labels of the weeks that were compared, in order.
    pub weeks: Vec<String>,
    /// Weeks of servers that were compared.
    pub server_weeks: u64,
    /// Rows that were compared.
    pub rows: u64,
    /// Differences, listed or not.
    pub differences: u64,
    /// Differences that were listed; the others were only counted.
    pub listed: u64,
    /// Weeks of servers that were not compared, because they changed or waited in the outbox each
    /// time.
    pub server_weeks_skipped: u64,
    /// Names, servers, best positions and sessions that were not compared, because they changed or waited in the outbox
    /// each time.
    pub objects_skipped: u64,
    /// Windows whose published boards and totals of players were not compared, because they waited in the outbox each
    /// time.
    pub boards_skipped: u64,
    /// Weeks with differences that `clqd archive resend --weeks` repairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend_weeks: Option<WeekRange>,
    /// Only a resend of everything repairs some of the differences: those without a week.
    pub resend_everything: bool,
}
