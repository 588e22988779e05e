//! Windows: time ranges with separate boards (docs/rules.md section 8).
//!
//! A window is identified by its type and its number among the windows of that type. See
//! [`crate::board::window`] for when it begins and ends.

use serde::{Deserialize, Serialize};

use crate::model::keys::WeekKey;

/// The type of a window. Numbers below [`WindowType::CUSTOM_MIN`] are built in; the others are
/// defined by the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WindowType(pub u16);

impl WindowType {
    /// One window, without end.
    pub const ALL_TIME: WindowType = WindowType(0);
    /// Numbered by whole hours since 1970, as the hours of the series.
    pub const HOUR: WindowType = WindowType(1);
    /// Numbered by local days since Monday 1969-12-29.
    pub const DAY: WindowType = WindowType(2);
    /// Numbered by [`WeekKey`]. Always present.
    pub const WEEK: WindowType = WindowType(3);
    /// Numbered by calendar months since January of year 0.
    pub const MONTH: WindowType = WindowType(4);
    /// No window of boards: the sessions that ended on a day of UTC.
    pub const SESSIONS: WindowType = WindowType(5);
    /// The lowest number of a custom type in the config.
    pub const CUSTOM_MIN: u16 = 10;

    pub fn is_custom(self) -> bool {
        self.0 >= WindowType::CUSTOM_MIN
    }
}

/// One window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WindowKey {
    pub kind: WindowType,
    pub index: u32,
}

impl WindowKey {
    pub const ALL_TIME: WindowKey = WindowKey { kind: WindowType::ALL_TIME, index: 0 };

    /// The week, if this window is one.
    pub fn week(self) -> Option<WeekKey> {
        (self.kind == WindowType::WEEK).then_some(WeekKey(self.index))
    }
}

impl From<WeekKey> for WindowKey {
    fn from(week: WeekKey) -> WindowKey {
        WindowKey { kind: WindowType::WEEK, index: week.0 }
    }
}
