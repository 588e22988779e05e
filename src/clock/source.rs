//! The clocks of the machine, or those of a test.

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "this is the clock"))]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::sync_status;

/// Two readings that are further apart are repeated: the thread was interrupted.
const READ_MS_MAX: u128 = 100;

/// The source of time.
pub trait TimeSource: Send + Sync {
    /// Reads both clocks at the same time.
    fn read(&self) -> Reading;
    /// Whether the system clock is synchronised; `None`: unknown.
    fn synchronised(&self) -> Option<bool>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Since an arbitrary time; never set.
    pub monotonic_ms: i64,
    /// Unix ms.
    pub system_ms: i64,
}

/// The clocks of the machine.
#[derive(Debug)]
pub struct SystemClocks {
    begun: Instant,
}

impl Default for SystemClocks {
    fn default() -> SystemClocks {
        SystemClocks { begun: Instant::now() }
    }
}

impl TimeSource for SystemClocks {
    fn read(&self) -> Reading {
        for _ in 0..3 {
            let before = self.begun.elapsed();
            let system_ms = system_ms();
            let after = self.begun.elapsed();
            if (after - before).as_millis() < READ_MS_MAX {
                return Reading { monotonic_ms: before.as_millis() as i64, system_ms };
            }
        }
        Reading { monotonic_ms: self.begun.elapsed().as_millis() as i64, system_ms: system_ms() }
    }

    fn synchronised(&self) -> Option<bool> {
        sync_status::synchronised()
    }
}

/// The system time, Unix ms: it may run backwards.
pub fn system_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}
