//! The only place that asks what time it is.
//!
//! Time as clqd counts it never runs backwards: not when the system's clock is
//! set back, and not from one run of the daemon to the next. While the system
//! is behind, our time goes on at nine tenths of its pace until the two meet.

use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug)]
pub struct Clock {
    last: Mutex<(i64, Instant)>,
}

impl Clock {
    /// A clock that never shows less than `floor_ms`, the latest moment already
    /// recorded.
    pub fn new(floor_ms: i64) -> Clock {
        Clock { last: Mutex::new((system_ms().max(floor_ms), Instant::now())) }
    }

    /// Unix ms.
    pub fn now_ms(&self) -> i64 {
        let mut last = self.last.lock().expect("nothing panics while it holds the clock");
        let now = Instant::now();
        let elapsed_ms = now.duration_since(last.1).as_millis() as i64;
        let next = advance(last.0, elapsed_ms, system_ms());
        if next > last.0 {
            *last = (next, now);
        }
        next
    }

    /// How far our time is ahead of the system's, ms; 0 as a rule.
    pub fn ahead_ms(&self) -> i64 {
        (self.now_ms() - system_ms()).max(0)
    }
}

/// What the system's clock says, Unix ms: it may run backwards.
pub fn system_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}

fn advance(last_ms: i64, elapsed_ms: i64, system_ms: i64) -> i64 {
    if system_ms >= last_ms { system_ms } else { last_ms + elapsed_ms * 9 / 10 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_backwards() {
        assert_eq!(advance(1_000, 10, 1_010), 1_010);
        assert_eq!(advance(1_000, 10, 9_000), 9_000, "forward at once");
        assert_eq!(advance(1_000, 10, 500), 1_009, "slower until the system has caught up");
        let clock = Clock::new(system_ms() + 60_000);
        let first = clock.now_ms();
        assert!(clock.now_ms() >= first && clock.ahead_ms() > 50_000);
    }
}
