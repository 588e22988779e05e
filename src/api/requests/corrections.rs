//! Corrections of tags, weeks and the time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::kinds;
use crate::api::request::request;
use crate::view::{ClockStatus, Correction};

kinds! {
    Correction: "correction", "Correction";
    ClockStatus: "clock", "Clock";
}

/// Removes a tag from all servers and deletes its boards and ratings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TagDrop {
    /// The tag.
    pub tag: String,
}

request!(TagDrop: "tag.drop", Access::CORRECTIONS => Correction);

/// Reopens a closed week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WeekReopen {
    /// Such as `2026-W47`.
    pub week: String,
}

request!(WeekReopen: "week.reopen", Access::CORRECTIONS => Correction);

/// The admin confirms that the system clock is right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockAccept {}

request!(ClockAccept: "clock.accept", Access::Machine => ClockStatus);

/// Sets recorded time back to system time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockReset {
    /// Although the system clock is not known to be synchronised.
    #[serde(default)]
    pub force: bool,
}

request!(ClockReset: "clock.reset", Access::Machine => Correction);
