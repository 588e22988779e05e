//! The only place that asks what time it is.
//!
//! Time as clqd counts it never runs backwards: not when the system's clock is
//! set back, and not from one run of the daemon to the next. While the system
//! is behind, our time goes on at nine tenths of its pace until the two meet. A
//! leap of the system's clock into the future is believed only when it has
//! lasted: believed at once, a wrong one could not be taken back.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A step forward that is larger is a leap.
const LEAP_MS: i64 = 600_000;

/// How long a leap must last until it is believed.
const LEAP_LASTS: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Clock {
    last: Mutex<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    ms: i64,
    at: Instant,
    /// Since when the system's clock has been a leap ahead.
    leap_since: Option<Instant>,
}

impl Clock {
    /// A clock that never shows less than `floor_ms`, the latest moment already
    /// recorded.
    pub fn new(floor_ms: i64) -> Clock {
        let last = Last { ms: system_ms().max(floor_ms), at: Instant::now(), leap_since: None };
        Clock { last: Mutex::new(last) }
    }

    /// Unix ms.
    pub fn now_ms(&self) -> i64 {
        let mut last = self.last.lock().expect("nothing panics while it holds the clock");
        *last = advance(*last, Instant::now(), system_ms());
        last.ms
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

fn advance(last: Last, now: Instant, system_ms: i64) -> Last {
    let elapsed_ms = now.duration_since(last.at).as_millis() as i64;
    let leap_since = (system_ms > last.ms + elapsed_ms + LEAP_MS).then(|| last.leap_since.unwrap_or(now));
    let believed = leap_since.is_none_or(|since| now.duration_since(since) >= LEAP_LASTS);
    let ms = match system_ms >= last.ms {
        true if believed => system_ms,
        true => last.ms + elapsed_ms,
        false => last.ms + elapsed_ms * 9 / 10,
    };
    if ms > last.ms {
        Last { ms, at: now, leap_since: leap_since.filter(|_| !believed) }
    } else {
        // What was too short to count is counted the next time.
        Last { leap_since, ..last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_backwards_and_no_leap_at_once() {
        let start = Instant::now();
        let last = Last { ms: 1_000, at: start, leap_since: None };
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(advance(last, at(10), 1_010).ms, 1_010);
        assert_eq!(advance(last, at(10), 9_000).ms, 9_000, "a step forward");
        assert_eq!(advance(last, at(10), 500).ms, 1_009, "slower until the system has caught up");
        let leapt = advance(last, at(10), 1_000_000_000);
        assert_eq!(leapt.ms, 1_010, "a leap is not believed");
        let later = advance(leapt, at(59_000), 1_000_059_000);
        assert_eq!(later.ms, 60_000);
        assert_eq!(advance(later, at(59_500), 60_500).ms, 60_500, "it has passed");
        assert_eq!(advance(later, at(60_010), 1_000_060_010).ms, 1_000_060_010, "it has lasted");

        let clock = Clock::new(system_ms() + 60_000);
        let first = clock.now_ms();
        assert!(clock.now_ms() >= first && clock.ahead_ms() > 50_000);
    }
}
