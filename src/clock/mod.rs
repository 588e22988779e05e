//! The only module that reads the time. It also decides whether the system clock is trusted.
//!
//! Recorded time never runs backwards: not when the system clock is set back, and not from one
//! run of the daemon to the next. While the system clock is behind, recorded time continues at
//! nine tenths of its speed until the two are equal, or until an admin sets it back
//! ([`Clock::reset`]).
//!
//! Closing a week is final, so it needs a trusted clock ([`Clock::close_until_ms`]): the kernel
//! reports that it is synchronised, or it has run for ten minutes without a jump, or an admin
//! accepted it. Each jump of the clock ends the trust. Recorded time does not adopt a large
//! forward jump at once, because only an admin can set it back. At a start it does. If that was wrong and the
//! clock is set right before it was trusted, the time is taken back ([`Clock::start_time_error_ms`]).

mod recorded_time;
mod source;
mod sync_status;

use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use self::recorded_time::{ClockState, StartTime, Trust};
pub use self::source::{Reading, SystemClocks, TimeSource, system_ms};
use crate::view::{ClockStatus, ClockTrust};

/// A larger forward jump is a large jump.
pub const LARGE_JUMP_MS: i64 = 600_000;

/// Whether the system clock is synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SyncCheck {
    /// As reported by the kernel or systemd-timesyncd.
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSettings {
    pub synchronised: SyncCheck,
    /// How long a clock that is not synchronised must run without a jump before weeks are
    /// closed by it, ms.
    pub trust_after_ms: i64,
}

impl Default for ClockSettings {
    fn default() -> ClockSettings {
        ClockSettings { synchronised: SyncCheck::Auto, trust_after_ms: 600_000 }
    }
}

pub struct Clock {
    source: Box<dyn TimeSource>,
    state: Mutex<ClockState>,
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clock").field("state", &self.state).finish_non_exhaustive()
    }
}

/// Recorded time before and after it was set back, Unix ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    pub previous_ms: i64,
    pub now_ms: i64,
}

impl Clock {
    /// The machine's clock. It never returns less than `floor_ms`, the latest recorded time.
    pub fn new(floor_ms: i64, settings: ClockSettings) -> Clock {
        Clock::with_source(Box::new(SystemClocks::default()), floor_ms, settings)
    }

    pub fn with_source(source: Box<dyn TimeSource>, floor_ms: i64, settings: ClockSettings) -> Clock {
        let seen = source.read();
        let state = Mutex::new(ClockState::new(seen, floor_ms, settings));
        let clock = Clock { source, state };
        clock.update_trust();
        clock
    }

    /// Unix ms.
    pub fn now_ms(&self) -> i64 {
        self.with_state(|state| state.now_ms)
    }

    /// How far recorded time is ahead of system time, ms; usually 0.
    pub fn ahead_ms(&self) -> i64 {
        self.with_state(|state| state.ahead_ms())
    }

    /// Checks again whether the clock is trusted, and logs changes. Must be called about once a
    /// second.
    pub fn update_trust(&self) {
        let synchronised = match self.with_state(|state| state.settings.synchronised) {
            SyncCheck::Auto => self.source.synchronised(),
            SyncCheck::Always => Some(true),
            SyncCheck::Never => Some(false),
        };
        self.with_state(|state| state.update_trust(synchronised));
    }

    /// Weeks that end later must not be closed, Unix ms. `i64::MIN`: no week, the clock is not
    /// trusted.
    pub fn close_until_ms(&self) -> i64 {
        self.with_state(|state| match state.trust {
            Trust::Untrusted(_) => i64::MIN,
            Trust::Synchronised | Trust::Stable | Trust::Accepted => state.now_ms.min(state.last_reading.system_ms),
        })
    }

    /// Whether weeks that have ended may be closed.
    pub fn is_trusted(&self) -> bool {
        self.with_state(|state| !matches!(state.trust, Trust::Untrusted(_)))
    }

    /// Whether the system clock is right for sure, or nearly equal to another one. Without synchronisation it counts as trusted
    /// after ten minutes, though it may be wrong by days.
    pub fn agrees_with(&self, other_ms: i64) -> bool {
        self.with_state(|state| {
            matches!(state.trust, Trust::Synchronised | Trust::Accepted)
                || state.last_reading.system_ms.abs_diff(other_ms) <= LARGE_JUMP_MS.unsigned_abs()
        })
    }

    /// Accepts the system clock on behalf of an admin: a large jump is adopted at once, and
    /// weeks are closed until the clock jumps again.
    pub fn accept(&self) -> ClockStatus {
        self.with_state(|state| {
            if state.ahead_since_ms.is_some() {
                state.adopt_system_time();
            }
            state.trust = Trust::Accepted;
            state.start_time = StartTime::Accepted;
            tracing::info!(system_ms = state.last_reading.system_ms, "an admin accepted the system clock");
        });
        self.status()
    }

    /// Whether the time at the start may be taken back: nothing that cannot be taken back may be done.
    pub fn is_start_time_open(&self) -> bool {
        self.with_state(|state| state.start_time != StartTime::Accepted)
    }

    /// By how much the time at the start was too late, if the clock has been set right since.
    pub fn start_time_error_ms(&self) -> Option<i64> {
        self.with_state(|state| match state.start_time {
            StartTime::Wrong { by_ms } => Some(by_ms),
            _ => None,
        })
    }

    /// The time at the start cannot be taken back any more. Returns whether it could until now.
    pub fn accept_start_time(&self) -> bool {
        self.with_state(|state| std::mem::replace(&mut state.start_time, StartTime::Accepted) != StartTime::Accepted)
    }

    /// Sets recorded time back to system time. `None`: it is not ahead.
    pub fn reset(&self) -> Option<Reset> {
        self.with_state(|state| {
            let reset = Reset { previous_ms: state.now_ms, now_ms: state.last_reading.system_ms };
            if state.ahead_ms() == 0 {
                return None;
            }
            (state.now_ms, state.now_at_monotonic_ms, state.ahead_reported) =
                (reset.now_ms, state.last_reading.monotonic_ms, false);
            Some(reset)
        })
    }

    /// Recorded time is system time from now on, but at least `floor_ms`, which others have recorded.
    pub fn continue_from(&self, floor_ms: i64) {
        self.with_state(|state| {
            state.now_ms = state.last_reading.system_ms.max(floor_ms);
            state.now_at_monotonic_ms = state.last_reading.monotonic_ms;
        });
    }

    /// Applies new settings.
    pub fn reload(&self, settings: ClockSettings) {
        self.with_state(|state| state.settings = settings);
        self.update_trust();
    }

    pub fn status(&self) -> ClockStatus {
        self.with_state(|state| ClockStatus {
            trust: match state.trust {
                Trust::Untrusted(_) => ClockTrust::Untrusted,
                Trust::Synchronised => ClockTrust::Synchronised,
                Trust::Stable => ClockTrust::Stable,
                Trust::Accepted => ClockTrust::Accepted,
            },
            synchronised: state.synchronised,
            trusted_in_ms: state.trusted_in_ms(),
            now_ms: state.now_ms,
            system_ms: state.last_reading.system_ms,
            ahead_ms: state.ahead_ms(),
            pending_jump_ms: state.ahead_since_ms.map_or(0, |_| state.last_reading.system_ms - state.now_ms),
            last_jump_ms: state.jump.map(|(by_ms, _)| by_ms),
            last_jump_at_ms: state.jump.map(|(_, at_ms)| at_ms),
            week_pending_close: None,
        })
    }

    /// Reads the clocks and advances recorded time.
    fn with_state<T>(&self, with: impl FnOnce(&mut ClockState) -> T) -> T {
        let mut state = self.state.lock().expect("no thread panics while it holds the lock");
        // Within the lock: readings are applied in their order.
        state.advance(self.source.read());
        with(&mut state)
    }
}

#[cfg(test)]
mod tests;
