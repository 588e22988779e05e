//! Recorded time and whether the system clock is trusted, as a state machine without clocks:
//! each reading is an argument.

use super::source::Reading;
use super::{ClockSettings, LARGE_JUMP_MS, SyncCheck};

/// The system clock has jumped if it gains or loses this much against the monotonic clock
/// between two readings. Adjusting its speed changes it by 0.05 %.
const JUMP_MS: i64 = 2_000;

/// How long a large jump of a synchronised clock must last before recorded time adopts it.
const LARGE_JUMP_DELAY_MS: i64 = 60_000;

/// A larger difference between recorded time and system time is logged.
const AHEAD_REPORT_MS: i64 = 1_000;

#[derive(Clone, Debug)]
pub(super) struct ClockState {
    pub(super) settings: ClockSettings,
    /// Recorded time, Unix ms, and the monotonic time at which it was computed.
    pub(super) now_ms: i64,
    pub(super) now_at_monotonic_ms: i64,
    /// The last reading.
    pub(super) last_reading: Reading,
    /// Since when the system clock has been ahead by a large jump, monotonic time.
    pub(super) ahead_since_ms: Option<i64>,
    pub(super) trust: Trust,
    pub(super) synchronised: Option<bool>,
    /// The last jump of the system clock, ms, and the recorded time of the jump.
    pub(super) jump: Option<(i64, i64)>,
    /// Whether it was logged that recorded time is ahead.
    pub(super) ahead_reported: bool,
    pub(super) start_time: StartTime,
}

/// The system time at the start, which recorded time took over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartTime {
    Accepted,
    /// It was much later than the last recorded time, and the clock is not trusted yet. Since then the clock has
    /// jumped by `gained_ms` in total.
    Open {
        gained_ms: i64,
    },
    /// It was too late by so much: the clock was set back and is synchronised now.
    Wrong {
        by_ms: i64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The monotonic time since which the clock has run without a jump.
    Untrusted(i64),
    Synchronised,
    Stable,
    Accepted,
}

impl ClockState {
    /// Recorded time is at least `floor_ms`, the latest recorded time of earlier runs.
    pub fn new(first: Reading, floor_ms: i64, settings: ClockSettings) -> ClockState {
        ClockState {
            settings,
            now_ms: first.system_ms.max(floor_ms),
            now_at_monotonic_ms: first.monotonic_ms,
            last_reading: first,
            ahead_since_ms: None,
            trust: Trust::Untrusted(first.monotonic_ms),
            synchronised: None,
            jump: None,
            ahead_reported: false,
            start_time: match settings.synchronised {
                SyncCheck::Auto if floor_ms > 0 && first.system_ms > floor_ms + LARGE_JUMP_MS => {
                    StartTime::Open { gained_ms: 0 }
                }
                _ => StartTime::Accepted,
            },
        }
    }

    pub fn advance(&mut self, now: Reading) {
        let gained_ms =
            (now.system_ms - self.last_reading.system_ms) - (now.monotonic_ms - self.last_reading.monotonic_ms);
        self.last_reading = now;
        if gained_ms.abs() >= JUMP_MS {
            self.record_jump(gained_ms);
        }
        let elapsed_ms = now.monotonic_ms - self.now_at_monotonic_ms;
        let is_large_jump = now.system_ms > self.now_ms + elapsed_ms + LARGE_JUMP_MS;
        if is_large_jump {
            let since_ms = *self.ahead_since_ms.get_or_insert(now.monotonic_ms);
            let delay_ms = match self.synchronised {
                Some(true) => LARGE_JUMP_DELAY_MS,
                _ => self.settings.trust_after_ms.max(LARGE_JUMP_DELAY_MS),
            };
            if now.monotonic_ms - since_ms >= delay_ms {
                return self.adopt_system_time();
            }
        } else if self.ahead_since_ms.take().is_some() {
            tracing::info!("the large jump of the system clock has ended");
        }
        let ms = match now.system_ms >= self.now_ms {
            true if !is_large_jump => now.system_ms,
            true => self.now_ms + elapsed_ms,
            false => self.now_ms + elapsed_ms * 9 / 10,
        };
        // An advance of less than 1 ms is counted the next time.
        if ms > self.now_ms {
            (self.now_ms, self.now_at_monotonic_ms) = (ms, now.monotonic_ms);
        }
    }

    fn record_jump(&mut self, by_ms: i64) {
        let direction = if by_ms > 0 { "forward" } else { "back" };
        tracing::warn!("the system clock has jumped {direction} by {}", shown(by_ms));
        self.jump = Some((by_ms, self.now_ms));
        if let StartTime::Open { gained_ms } = &mut self.start_time {
            *gained_ms += by_ms;
        }
        self.trust = Trust::Untrusted(self.last_reading.monotonic_ms);
        // The new offset must last again.
        self.ahead_since_ms = None;
    }

    pub(super) fn adopt_system_time(&mut self) {
        let by_ms = self.last_reading.system_ms - self.now_ms;
        tracing::warn!(
            synchronised = self.synchronised,
            "recorded time adopts the system clock, which has been {} ahead",
            shown(by_ms)
        );
        (self.now_ms, self.now_at_monotonic_ms, self.ahead_since_ms) =
            (self.last_reading.system_ms, self.last_reading.monotonic_ms, None);
        // After this the clock must earn trust again.
        self.trust = Trust::Untrusted(self.last_reading.monotonic_ms);
    }

    pub fn update_trust(&mut self, synchronised: Option<bool>) {
        self.synchronised = synchronised;
        if let Trust::Untrusted(since_ms) = self.trust
            && self.ahead_since_ms.is_none()
        {
            if synchronised == Some(true) {
                self.trust = Trust::Synchronised;
                tracing::info!("the system clock is synchronised; weeks are closed by it");
            } else if self.last_reading.monotonic_ms - since_ms >= self.settings.trust_after_ms {
                self.trust = Trust::Stable;
                let duration = shown(self.settings.trust_after_ms);
                tracing::warn!(
                    "the system clock is not known to be synchronised, but has run without a jump for {duration}; weeks \
                     are closed by it"
                );
            }
        }
        if let StartTime::Open { gained_ms } = self.start_time {
            self.start_time = match synchronised {
                Some(true) if gained_ms <= -JUMP_MS => StartTime::Wrong { by_ms: -gained_ms },
                Some(false) if matches!(self.trust, Trust::Untrusted(_)) => self.start_time,
                _ => StartTime::Accepted,
            };
        }
        let ahead_ms = self.ahead_ms();
        if ahead_ms > AHEAD_REPORT_MS && !self.ahead_reported {
            self.ahead_reported = true;
            tracing::warn!(
                "recorded time is {} ahead of the system clock; it continues a tenth slower until they are equal. If the \
                 system clock is right: clqd clock reset",
                shown(ahead_ms)
            );
        } else if ahead_ms == 0 && self.ahead_reported {
            self.ahead_reported = false;
            tracing::info!("the system clock has caught up with recorded time");
        }
    }

    pub fn ahead_ms(&self) -> i64 {
        (self.now_ms - self.last_reading.system_ms).max(0)
    }

    pub fn trusted_in_ms(&self) -> Option<i64> {
        let Trust::Untrusted(since_ms) = self.trust else { return None };
        let trust_after_ms = self.settings.trust_after_ms;
        let left_ms = trust_after_ms - (self.last_reading.monotonic_ms - self.ahead_since_ms.unwrap_or(since_ms));
        Some(left_ms.max(0) + self.ahead_since_ms.map_or(0, |_| trust_after_ms))
    }
}

/// Formats a duration for the log.
fn shown(ms: i64) -> String {
    let s = ms.unsigned_abs() / 1_000;
    match s {
        0..120 => format!("{s} s"),
        120..7_200 => format!("{} min", s / 60),
        7_200..172_800 => format!("{} h", s / 3_600),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3_600),
    }
}
