//! Tests of recorded time and of trust, with clocks that the test sets.

use std::sync::{Arc, Mutex};

use super::*;
use crate::model::calendar::{MINUTE_MS, WEEK_MS};

const START: i64 = 1_764_000_000_000;

/// Clocks that a test sets: monotonic, system, and whether the latter is synchronised.
#[derive(Clone, Debug)]
struct Fake(Arc<Mutex<(i64, i64, Option<bool>)>>);

impl TimeSource for Fake {
    fn read(&self) -> Reading {
        let (monotonic_ms, system_ms, _) = *self.0.lock().unwrap();
        Reading { monotonic_ms, system_ms }
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
    let clock = fake.clock(START - 52 * WEEK_MS);
    assert_eq!((clock.now_ms(), clock.close_until_ms()), (START, START));
    assert_eq!((clock.status().trust, clock.status().trusted_in_ms), (ClockTrust::Synchronised, None));
}

#[test]
fn wrong_time_at_the_start_is_noticed_until_the_clock_is_trusted() {
    let fake = Fake::new(false);
    let floor_ms = START - WEEK_MS;
    // The clock was a week ahead when the daemon started.
    let clock = fake.clock(floor_ms);
    fake.pass(&clock, MINUTE_MS);
    assert!(clock.is_start_time_open() && clock.start_time_error_ms().is_none());
    fake.step(-WEEK_MS);
    fake.pass(&clock, MINUTE_MS);
    assert!(clock.is_start_time_open() && clock.start_time_error_ms().is_none(), "not yet known to be right");
    fake.synchronise(true);
    clock.update_trust();
    assert_eq!(clock.start_time_error_ms(), Some(WEEK_MS));

    // The time is right, the clock is trusted without synchronisation, or it is synchronised later.
    let fake = Fake::new(false);
    let clock = fake.clock(floor_ms);
    fake.step(1_000);
    fake.synchronise(true);
    clock.update_trust();
    assert!(!clock.is_start_time_open());
    let fake = Fake::new(false);
    let clock = fake.clock(floor_ms);
    fake.pass(&clock, 10 * MINUTE_MS);
    assert!(!clock.is_start_time_open());
    fake.step(-WEEK_MS);
    fake.synchronise(true);
    fake.pass(&clock, MINUTE_MS);
    assert!(clock.start_time_error_ms().is_none() && clock.ahead_ms() > 0);
    // Nothing that matters can be wrong.
    assert!(!fake.clock(0).is_start_time_open(), "a new state");
    assert!(!Fake::new(false).clock(START - MINUTE_MS).is_start_time_open(), "a short pause");
    assert!(!Fake::new(true).clock(floor_ms).is_start_time_open());
}

#[test]
fn unsynchronised_clock_is_trusted_after_ten_minutes_without_jump() {
    let fake = Fake::new(false);
    let clock = fake.clock(START - WEEK_MS);
    assert_eq!(clock.now_ms(), START, "recorded time follows it");
    fake.pass(&clock, 9 * MINUTE_MS);
    assert!(!may_close(&clock));
    assert_eq!(clock.status().trusted_in_ms, Some(MINUTE_MS));
    // A jump restarts the ten minutes.
    fake.step(3_000);
    fake.pass(&clock, 9 * MINUTE_MS);
    assert!(!may_close(&clock));
    assert_eq!(clock.status().last_jump_ms, Some(3_000));
    fake.pass(&clock, MINUTE_MS + 1_000);
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
    fake.step(WEEK_MS);
    fake.pass(&clock, 66_000);
    assert_eq!(clock.now_ms(), START + 66_000);
    assert!(!may_close(&clock));
    assert_eq!(clock.status().pending_jump_ms, WEEK_MS);
    fake.step(-WEEK_MS);
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
    fake.step(WEEK_MS);
    fake.pass(&clock, 9 * MINUTE_MS);
    assert_eq!(clock.now_ms(), START + 9 * MINUTE_MS);
    fake.pass(&clock, MINUTE_MS + 2_000);
    assert_eq!(clock.now_ms(), START + WEEK_MS + 10 * MINUTE_MS + 2_000);
    assert!(!may_close(&clock));
    fake.pass(&clock, 9 * MINUTE_MS);
    assert!(!may_close(&clock), "the clock must earn trust again");
    fake.pass(&clock, 2 * MINUTE_MS);
    assert!(may_close(&clock));
}

#[test]
fn synchronised_large_jump_is_adopted_after_a_minute() {
    let fake = Fake::new(true);
    let clock = fake.clock(0);
    fake.step(WEEK_MS);
    fake.pass(&clock, 59_000);
    assert_eq!(clock.now_ms(), START + 59_000);
    fake.pass(&clock, 3_000);
    assert_eq!(clock.now_ms(), START + WEEK_MS + 62_000);
    assert!(may_close(&clock));
}

#[test]
fn accepted_large_jump_is_adopted_at_once() {
    let fake = Fake::new(false);
    let clock = fake.clock(0);
    fake.step(WEEK_MS);
    clock.update_trust();
    assert_eq!(clock.now_ms(), START);
    clock.accept();
    assert_eq!((clock.now_ms(), may_close(&clock)), (START + WEEK_MS, true));
}

#[test]
fn recorded_time_never_goes_back_and_weeks_end_by_the_system_clock() {
    let fake = Fake::new(true);
    let clock = fake.clock(0);
    fake.step(-100 * MINUTE_MS);
    fake.pass(&clock, 10 * MINUTE_MS);
    assert_eq!(clock.now_ms(), START + 9 * MINUTE_MS);
    assert_eq!(clock.ahead_ms(), 99 * MINUTE_MS);
    assert_eq!(clock.close_until_ms(), START - 90 * MINUTE_MS);
    fake.pass(&clock, 1_000 * MINUTE_MS);
    assert_eq!((clock.ahead_ms(), clock.now_ms()), (0, START + 910 * MINUTE_MS));
    assert_eq!(clock.close_until_ms(), clock.now_ms());

    // The same from one run to the next.
    let clock = Fake::new(true).clock(START + WEEK_MS);
    assert_eq!((clock.now_ms(), clock.ahead_ms(), clock.close_until_ms()), (START + WEEK_MS, WEEK_MS, START));
}

#[test]
fn reset_sets_recorded_time_to_system_time() {
    let fake = Fake::new(true);
    let clock = fake.clock(START + WEEK_MS);
    assert_eq!(clock.reset(), Some(Reset { previous_ms: START + WEEK_MS, now_ms: START }));
    fake.pass(&clock, MINUTE_MS);
    assert_eq!((clock.now_ms(), clock.ahead_ms(), clock.reset()), (START + MINUTE_MS, 0, None));
}

#[test]
fn setting_overrides_the_kernels_sync_status() {
    let fake = Fake::new(true);
    let settings = |synchronised, trust_after_ms| ClockSettings { synchronised, trust_after_ms };
    let clock = Clock::with_source(Box::new(fake.clone()), 0, settings(SyncCheck::Never, MINUTE_MS));
    assert!(!may_close(&clock));
    fake.pass(&clock, 61_000);
    assert_eq!(clock.status().trust, ClockTrust::Stable);
    fake.synchronise(false);
    let clock = Clock::with_source(Box::new(fake.clone()), 0, settings(SyncCheck::Never, MINUTE_MS));
    clock.reload(settings(SyncCheck::Always, MINUTE_MS));
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
