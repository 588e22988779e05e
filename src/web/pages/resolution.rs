//! Resolutions of graphs over time.

use serde::Deserialize;

use super::format::utc;
use crate::model::calendar::{DAY_MS, HOUR_MS, MINUTE_MS, WEEK_MS};

/// Values of a graph, at least.
pub(super) const VALUES_MIN: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::IntoStaticStr, strum::VariantArray)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum Resolution {
    TenMinutes,
    Hours,
    Days,
    Weeks,
}

impl Resolution {
    /// The name in URLs.
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn slot_ms(self) -> i64 {
        match self {
            Resolution::TenMinutes => 10 * MINUTE_MS,
            Resolution::Hours => HOUR_MS,
            Resolution::Days => DAY_MS,
            Resolution::Weeks => WEEK_MS,
        }
    }

    /// Fewer values are not drawn if there is a graph of a finer resolution, which shows them better.
    pub fn values_min(self) -> usize {
        match self {
            Resolution::TenMinutes | Resolution::Hours => VALUES_MIN,
            Resolution::Days => 60,
            Resolution::Weeks => 8,
        }
    }

    /// The start of a slot, as short as the resolution allows.
    pub fn start_text(self, start_ms: i64) -> String {
        utc(start_ms, if self.slot_ms() < DAY_MS { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d" })
    }
}
