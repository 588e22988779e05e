//! The windows that snapshots are credited to now.

use std::ops::Range;

use crate::model::WindowKey;

/// The current windows, and the time range in which they are current.
#[derive(Debug, Default)]
pub(in crate::engine) struct CurrentWindows {
    pub(super) valid: Range<i64>,
    /// In order of key; not empty once there was a snapshot.
    pub keys: Vec<WindowKey>,
}
