//! The only place that asks what time it is.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, Unix ms; 0 where the clock stands before 1970.
pub fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
