//! The fields of a line, before they are validated.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// An undecoded line. The order of the fields is the order in which they are
/// written, and which the fast path expects. `P` is the type of a converted player.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RawLine<'a, P = RawPlayer<'a>> {
    pub(super) t: i64,
    #[serde(borrow)]
    pub(super) server: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) miss: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) game: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) map: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) hostname: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) slots: Option<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) partial: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bots: Option<u32>,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub(super) players: Option<Vec<P>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RawPlayer<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) points: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ping: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) connected_ms: Option<u64>,
    #[serde(default)]
    pub(super) bot: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) spectator: bool,
}

fn is_false(b: &bool) -> bool {
    !b
}
