//! Corrections of tags, weeks and the time.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::{Access, Permission};
use crate::api::answer::kinds;
use crate::api::request::Request;
use crate::model::view::{ClockStatus, Correction};

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

impl Request for TagDrop {
    const NAME: &'static str = "tag.drop";
    const ACCESS: Access = Access::Change(Permission::Corrections);
    type Answer = Correction;
}

/// Reopens a closed week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WeekReopen {
    /// Such as `2026-W47`.
    pub week: String,
}

impl Request for WeekReopen {
    const NAME: &'static str = "week.reopen";
    const ACCESS: Access = Access::Change(Permission::Corrections);
    type Answer = Correction;
}

/// The admin confirms that the system clock is right.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockAccept {}

impl Request for ClockAccept {
    const NAME: &'static str = "clock.accept";
    const ACCESS: Access = Access::Machine;
    type Answer = ClockStatus;
}

/// Sets recorded time back to system time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClockReset {
    /// Although the system clock is not known to be synchronised.
    #[serde(default)]
    pub force: bool,
}

impl Request for ClockReset {
    const NAME: &'static str = "clock.reset";
    const ACCESS: Access = Access::Machine;
    type Answer = Correction;
}
