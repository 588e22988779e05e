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
//! forward jump at once, because only an admin can set it back.

mod kernel;

use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::model::view::{ClockStatus, ClockTrust};

/// The system clock has jumped if it gains or loses this much against the monotonic clock
/// between two readings. Adjusting its speed changes it by 0.05 %.
const JUMP_MS: i64 = 2_000;

/// A larger forward jump is a large jump.
pub const LARGE_JUMP_MS: i64 = 600_000;

/// How long a large jump of a synchronised clock must last before recorded time adopts it.
const LARGE_JUMP_DELAY_MS: i64 = 60_000;

/// A larger difference between recorded time and system time is logged.
const AHEAD_REPORT_MS: i64 = 1_000;

/// Two readings that are further apart are repeated: the thread was interrupted.
const READ_MS_MAX: u128 = 100;

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
        kernel::synchronised()
    }
}

/// The system time, Unix ms: it may run backwards.
pub fn system_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
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

#[derive(Clone, Debug)]
struct ClockState {
    settings: ClockSettings,
    /// Recorded time, Unix ms, and the monotonic time at which it was computed.
    now_ms: i64,
    now_at_monotonic_ms: i64,
    /// The last reading.
    last_reading: Reading,
    /// Since when the system clock has been ahead by a large jump, monotonic time.
    ahead_since_ms: Option<i64>,
    trust: Trust,
    synchronised: Option<bool>,
    /// The last jump of the system clock, ms, and the recorded time of the jump.
    jump: Option<(i64, i64)>,
    leaps: u64,
    /// Whether it was logged that recorded time is ahead.
    ahead_reported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// The monotonic time since which the clock has run without a jump.
    Untrusted(i64),
    Synchronised,
    Stable,
    Accepted,
}

/// The effect of setting recorded time back, Unix ms.
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
        let state = ClockState {
            settings,
            now_ms: seen.system_ms.max(floor_ms),
            now_at_monotonic_ms: seen.monotonic_ms,
            last_reading: seen,
            ahead_since_ms: None,
            trust: Trust::Untrusted(seen.monotonic_ms),
            synchronised: None,
            jump: None,
            leaps: 0,
            ahead_reported: false,
        };
        let clock = Clock { source, state: Mutex::new(state) };
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

    /// Accepts the system clock on behalf of an admin: a large jump is adopted at once, and
    /// weeks are closed until the clock jumps again.
    pub fn accept(&self) -> ClockStatus {
        self.with_state(|state| {
            if state.ahead_since_ms.is_some() {
                state.adopt_system_time();
            }
            state.trust = Trust::Accepted;
            tracing::info!(system_ms = state.last_reading.system_ms, "an admin accepted the system clock");
        });
        self.status()
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

    /// Number of large jumps that were adopted.
    pub fn adopted_jumps(&self) -> u64 {
        self.with_state(|state| state.leaps)
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

impl ClockState {
    fn advance(&mut self, now: Reading) {
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
        self.trust = Trust::Untrusted(self.last_reading.monotonic_ms);
        // The new offset must last again.
        self.ahead_since_ms = None;
    }

    fn adopt_system_time(&mut self) {
        let by_ms = self.last_reading.system_ms - self.now_ms;
        tracing::warn!(
            synchronised = self.synchronised,
            "recorded time adopts the system clock, which has been {} ahead",
            shown(by_ms)
        );
        (self.now_ms, self.now_at_monotonic_ms, self.ahead_since_ms) =
            (self.last_reading.system_ms, self.last_reading.monotonic_ms, None);
        self.leaps += 1;
        // After this the clock must earn trust again.
        self.trust = Trust::Untrusted(self.last_reading.monotonic_ms);
    }

    fn update_trust(&mut self, synchronised: Option<bool>) {
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

    fn ahead_ms(&self) -> i64 {
        (self.now_ms - self.last_reading.system_ms).max(0)
    }

    fn trusted_in_ms(&self) -> Option<i64> {
        let Trust::Untrusted(since_ms) = self.trust else { return None };
        let steady_ms = self.settings.trust_after_ms;
        let left_ms = steady_ms - (self.last_reading.monotonic_ms - self.ahead_since_ms.unwrap_or(since_ms));
        Some(left_ms.max(0) + self.ahead_since_ms.map_or(0, |_| steady_ms))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const MINUTE: i64 = 60_000;
    const WEEK: i64 = 7 * 24 * 60 * MINUTE;
    const START: i64 = 1_764_000_000_000;

    /// Clocks that a test sets: monotonic, system, and whether the latter is synchronised.
    #[derive(Clone, Debug)]
    struct Fake(Arc<Mutex<(i64, i64, Option<bool>)>>);

    impl TimeSource for Fake {
        fn read(&self) -> Reading {
            let (steady_ms, system_ms, _) = *self.0.lock().unwrap();
            Reading { monotonic_ms: steady_ms, system_ms }
        }

        fn synchronised(&self) -> Option<bool> {
            self.0.lock().unwrap().2
        }
    }

    impl Fake {
        fn new(synchronised: bool) -> Fake {
            Fake(Arc::new(Mutex::new((5_000, START, Some(synchronised)))))
        }

        fn clock(&self, floor_ms: i64) -> Clock {
            Clock::with_source(Box::new(self.clone()), floor_ms, ClockSettings::default())
        }

        fn step(&self, by_ms: i64) {
            self.0.lock().unwrap().1 += by_ms;
        }

        fn synchronise(&self, synchronised: bool) {
            self.0.lock().unwrap().2 = Some(synchronised);
        }

        /// Lets time pass while the clock is read regularly.
        fn pass(&self, clock: &Clock, ms: i64) {
            for at in 0..ms.div_euclid(500) {
                let mut clocks = self.0.lock().unwrap();
                (clocks.0, clocks.1) = (clocks.0 + 500, clocks.1 + 500);
                drop(clocks);
                clock.now_ms();
                if at % 2 == 1 {
                    clock.update_trust();
                }
            }
        }
    }

    fn may_close(clock: &Clock) -> bool {
        clock.close_until_ms() > i64::MIN
    }

    #[test]
    fn synchronised_clock_is_trusted_at_once() {
        let fake = Fake::new(true);
        let clock = fake.clock(START - 52 * WEEK);
        assert_eq!((clock.now_ms(), clock.close_until_ms()), (START, START));
        assert_eq!((clock.status().trust, clock.status().trusted_in_ms), (ClockTrust::Synchronised, None));
    }

    #[test]
    fn unsynchronised_clock_is_trusted_after_ten_minutes_without_jump() {
        let fake = Fake::new(false);
        let clock = fake.clock(START - WEEK);
        assert_eq!(clock.now_ms(), START, "recorded time follows it");
        fake.pass(&clock, 9 * MINUTE);
        assert!(!may_close(&clock));
        assert_eq!(clock.status().trusted_in_ms, Some(MINUTE));
        // A jump restarts the ten minutes.
        fake.step(3_000);
        fake.pass(&clock, 9 * MINUTE);
        assert!(!may_close(&clock));
        assert_eq!(clock.status().last_jump_ms, Some(3_000));
        fake.pass(&clock, MINUTE + 1_000);
        assert_eq!((may_close(&clock), clock.status().trust), (true, ClockTrust::Stable));
        // Losing the synchronisation does not end the trust, nor does adjusting the speed.
        for _ in 0..600 {
            fake.step(1);
            fake.pass(&clock, 2_000);
        }
        assert!(may_close(&clock));
    }

    #[test]
    fn accepted_clock_is_trusted_until_it_jumps() {
        let fake = Fake::new(false);
        let clock = fake.clock(0);
        assert!(!may_close(&clock));
        assert_eq!(clock.accept().trust, ClockTrust::Accepted);
        assert!(may_close(&clock));
        fake.step(-3_000);
        clock.update_trust();
        assert!(!may_close(&clock));
        fake.synchronise(true);
        clock.update_trust();
        assert!(may_close(&clock));
    }

    /// Regression: the clock was a week ahead for 66 s.
    #[test]
    fn unsynchronised_large_jump_that_ends_is_not_adopted() {
        let fake = Fake::new(true);
        let clock = fake.clock(0);
        fake.synchronise(false);
        fake.step(WEEK);
        fake.pass(&clock, 66_000);
        assert_eq!(clock.now_ms(), START + 66_000);
        assert!(!may_close(&clock));
        assert_eq!((clock.status().pending_jump_ms, clock.adopted_jumps()), (WEEK, 0));
        fake.step(-WEEK);
        fake.synchronise(true);
        fake.pass(&clock, 2_000);
        assert_eq!((clock.now_ms(), clock.ahead_ms()), (START + 68_000, 0));
        assert!(may_close(&clock));
    }

    #[test]
    fn adopted_unsynchronised_jump_blocks_week_close_until_trusted() {
        let fake = Fake::new(true);
        let clock = fake.clock(0);
        fake.synchronise(false);
        fake.step(WEEK);
        fake.pass(&clock, 9 * MINUTE);
        assert_eq!(clock.now_ms(), START + 9 * MINUTE);
        fake.pass(&clock, MINUTE + 2_000);
        assert_eq!((clock.now_ms(), clock.adopted_jumps()), (START + WEEK + 10 * MINUTE + 2_000, 1));
        assert!(!may_close(&clock));
        fake.pass(&clock, 9 * MINUTE);
        assert!(!may_close(&clock), "the clock must earn trust again");
        fake.pass(&clock, 2 * MINUTE);
        assert!(may_close(&clock));
    }

    #[test]
    fn synchronised_large_jump_is_adopted_after_a_minute() {
        let fake = Fake::new(true);
        let clock = fake.clock(0);
        fake.step(WEEK);
        fake.pass(&clock, 59_000);
        assert_eq!(clock.now_ms(), START + 59_000);
        fake.pass(&clock, 3_000);
        assert_eq!(clock.now_ms(), START + WEEK + 62_000);
        assert!(may_close(&clock));
    }

    #[test]
    fn accepted_large_jump_is_adopted_at_once() {
        let fake = Fake::new(false);
        let clock = fake.clock(0);
        fake.step(WEEK);
        clock.update_trust();
        assert_eq!(clock.now_ms(), START);
        clock.accept();
        assert_eq!((clock.now_ms(), may_close(&clock)), (START + WEEK, true));
    }

    #[test]
    fn recorded_time_never_goes_back_and_weeks_end_by_the_system_clock() {
        let fake = Fake::new(true);
        let clock = fake.clock(0);
        fake.step(-100 * MINUTE);
        fake.pass(&clock, 10 * MINUTE);
        assert_eq!(clock.now_ms(), START + 9 * MINUTE);
        assert_eq!(clock.ahead_ms(), 99 * MINUTE);
        assert_eq!(clock.close_until_ms(), START - 90 * MINUTE);
        fake.pass(&clock, 1_000 * MINUTE);
        assert_eq!((clock.ahead_ms(), clock.now_ms()), (0, START + 910 * MINUTE));
        assert_eq!(clock.close_until_ms(), clock.now_ms());

        // The same from one run to the next.
        let clock = Fake::new(true).clock(START + WEEK);
        assert_eq!((clock.now_ms(), clock.ahead_ms(), clock.close_until_ms()), (START + WEEK, WEEK, START));
    }

    #[test]
    fn reset_sets_recorded_time_to_system_time() {
        let fake = Fake::new(true);
        let clock = fake.clock(START + WEEK);
        assert_eq!(clock.reset(), Some(Reset { previous_ms: START + WEEK, now_ms: START }));
        fake.pass(&clock, MINUTE);
        assert_eq!((clock.now_ms(), clock.ahead_ms(), clock.reset()), (START + MINUTE, 0, None));
    }

    #[test]
    fn setting_overrides_the_kernels_sync_status() {
        let fake = Fake::new(true);
        let settings = |synchronised, steady_ms| ClockSettings { synchronised, trust_after_ms: steady_ms };
        let clock = Clock::with_source(Box::new(fake.clone()), 0, settings(SyncCheck::Never, MINUTE));
        assert!(!may_close(&clock));
        fake.pass(&clock, 61_000);
        assert_eq!(clock.status().trust, ClockTrust::Stable);
        fake.synchronise(false);
        let clock = Clock::with_source(Box::new(fake.clone()), 0, settings(SyncCheck::Never, MINUTE));
        clock.reload(settings(SyncCheck::Always, MINUTE));
        assert_eq!((may_close(&clock), clock.status().synchronised), (true, Some(true)));
    }

    /// The status depends on the machine, but it can be read.
    #[test]
    fn kernel_reports_a_sync_status() {
        let clock = Clock::new(0, ClockSettings::default());
        let first = clock.now_ms();
        assert!(clock.now_ms() >= first && first > START);
        assert!(clock.status().synchronised.is_some(), "adjtimex needs no privileges to read");
    }
}
