//! The windows of a custom type, which start at regular intervals.

use std::ops::Range;

use super::Shape;

/// The windows of a custom type: equally long, started at regular intervals.
#[derive(Clone, Copy)]
pub(super) struct Recurrence {
    base_ms: i64,
    duration_ms: i64,
    every_ms: i64,
    pub count: i64,
}

impl Recurrence {
    pub fn of(shape: Shape) -> Option<Recurrence> {
        let Shape::Custom { base_ms, duration_ms, every_ms, repeat } = shape else { return None };
        // Without an end the count is the largest number, which is beyond the year 9999.
        let count = i64::from(if repeat == 0 { u32::MAX } else { repeat });
        Some(Recurrence { base_ms, duration_ms, every_ms, count })
    }

    pub fn start(&self, index: i64) -> i64 {
        self.base_ms.saturating_add(self.every_ms.saturating_mul(index))
    }

    pub fn end(&self, index: i64) -> i64 {
        self.start(index).saturating_add(self.duration_ms)
    }

    /// The number of windows that have begun by the time: the index of the next one.
    pub fn started_count(&self, t_ms: i64) -> i64 {
        if t_ms < self.base_ms { 0 } else { ((t_ms - self.base_ms) / self.every_ms + 1).min(self.count) }
    }

    /// The number of windows that have ended: the index of the oldest that has not.
    pub fn ended_count(&self, t_ms: i64) -> i64 {
        self.started_count(t_ms - self.duration_ms)
    }

    /// The largest interval around the time in which the same windows run.
    pub fn stable_range(&self, t_ms: i64) -> Range<i64> {
        let (started, ended) = (self.started_count(t_ms), self.ended_count(t_ms));
        let before =
            |count: i64, of: fn(&Recurrence, i64) -> i64| if count > 0 { of(self, count - 1) } else { i64::MIN };
        let after =
            |count: i64, of: fn(&Recurrence, i64) -> i64| if count < self.count { of(self, count) } else { i64::MAX };
        let start = before(started, Recurrence::start).max(before(ended, Recurrence::end));
        let end = after(started, Recurrence::start).min(after(ended, Recurrence::end));
        start..end
    }
}
