//! Scan classes, due times, scans in flight (docs/rules.md section 9).
//!
//! Pure. Every server has a fixed phase within the interval of its class, so a million servers
//! make an even load and a restart needs no stored times. This includes servers that do not answer
//! (classes 6 and 7). Servers with players have no phase: [`elastic`] says when they are due.

pub mod elastic;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::ServerKey;
use crate::model::calendar::{DAY_MS, HOUR_MS, MINUTE_MS, WEEK_MS};
use crate::model::server::Class;

/// Time between two scans of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// Classes 1 to 5.
    pub classes_ms: [i64; 5],
    /// Classes 6 and 7. `None`: on request only.
    pub retry_failed_ms: Option<i64>,
}

impl Default for Intervals {
    fn default() -> Self {
        Intervals {
            classes_ms: [2 * MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, DAY_MS, WEEK_MS],
            retry_failed_ms: Some(DAY_MS),
        }
    }
}

impl Intervals {
    /// `None`: on request only.
    pub fn of(&self, class: Class) -> Option<i64> {
        self.classes_ms.get(usize::from(class.number()) - 1).copied().or(self.retry_failed_ms)
    }
}

/// The class of a server that has been seen.
///
/// `populated`: whether the last count or the median of the last three is at least the setting
/// `scan.class1_players_min`.
pub fn class_of(missed: u32, populated: bool) -> Class {
    let number = match missed {
        0..=2 if populated => 1,
        0..=10 => 2,
        11..=20 => 3,
        21..=30 => 4,
        31..=40 => 5,
        _ => return Class::UNKNOWN,
    };
    Class::new(number).expect("1 to 5 are classes")
}

/// Default of `scan.class1_players_min`: the minimum number of players for class 1.
pub const CLASS1_PLAYERS_MIN: u32 = 3;

/// A scan in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    pub id: u64,
    /// When it was due, Unix ms.
    pub due_ms: i64,
    pub class: Class,
    /// Whether the scan was requested.
    pub requested: bool,
    /// Whether its time was chosen by [`elastic`]; else it is that of the grid, or requested.
    pub elastic: bool,
}

/// When each server is due. Times are Unix ms.
#[derive(Debug, Default)]
pub struct Schedule {
    intervals: Intervals,
    /// Earliest first. May contain outdated entries and an entry twice: removing them at once
    /// took 4 % of a replay.
    due: BinaryHeap<Reverse<(i64, ServerKey)>>,
    /// By server: the valid due time.
    due_by_server: Vec<Option<i64>>,
    /// Number of servers with a due time.
    scheduled: usize,
    /// Servers whose due time was chosen by [`elastic`].
    elastic: FxHashSet<ServerKey>,
    in_flight: FxHashMap<ServerKey, InFlight>,
    /// Servers that are scanned once a minute until then, Unix ms.
    boosts: FxHashMap<ServerKey, i64>,
    /// The last second for which scans in turn were planned, Unix ms, and their number.
    last_turn: (i64, u32),
    next_id: u64,
    /// Scans with smaller numbers were begun by an earlier process, or by another engine that led.
    first_id: u64,
    /// Servers whose next scan was planned or cancelled, some several times. `None`: not noted.
    replanned: Option<Vec<ServerKey>>,
}

/// An outcome that is handed in again is at most such a part of the interval of class 1 later: 4 s of two minutes.
const REPEAT_SHARE: i64 = 30;
const REPEAT_MS_MAX: i64 = 4_000;

/// The time of an outcome of an earlier process is moved forward by this at most.
const MOVED_MS_MAX: i64 = 15_000;

/// Interval of the scans of a boosted server.
pub const BOOST_INTERVAL_MS: i64 = MINUTE_MS;

/// Scans in turn in a second. In exception mode a silent server takes two minutes and some 75 packets: these are a
/// quarter of the scans in flight and 3,000 packets/s, so servers that answer are still scanned in time.
pub const TURNS_PER_S: u32 = 40;

impl Schedule {
    pub fn new(intervals: Intervals) -> Schedule {
        Schedule { intervals, next_id: 1, first_id: 1, ..Schedule::default() }
    }

    /// Numbers scans from here on, above those of earlier processes.
    pub fn number_scans_from(&mut self, id: u64) {
        (self.next_id, self.first_id) = (id, id);
    }

    pub fn set_intervals(&mut self, intervals: Intervals) {
        self.intervals = intervals;
    }

    /// From now on the schedule notes which servers it plans again.
    pub fn note_replanned(&mut self) {
        self.replanned = Some(Vec::new());
    }

    /// The servers whose next scan was planned or cancelled since the last call, some several times.
    pub fn take_replanned(&mut self) -> Vec<ServerKey> {
        self.replanned.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sets the next due time from class and phase: the first time after `now_ms` with the
    /// server's phase.
    pub fn schedule_next(&mut self, server: ServerKey, class: Class, now_ms: i64) {
        self.forget_ended_boost(server, now_ms);
        match self.interval_ms(server, class, now_ms) {
            Some(interval_ms) => self.set_due(server, next_due_ms(server, interval_ms, now_ms)),
            None => self.cancel(server),
        }
    }

    /// Scans a server at least once a minute until a time; a time in the past ends that. Servers
    /// of class 6 and 7 are not scanned more often.
    pub fn boost(&mut self, server: ServerKey, class: Class, until_ms: i64, now_ms: i64) {
        self.boosts.retain(|_, until_ms| *until_ms > now_ms);
        self.boosts.insert(server, until_ms);
        // A server that is due now, or whose first scan is requested, stays so.
        if self.due_ms(server).is_some_and(|due_ms| due_ms > now_ms) {
            self.schedule_next(server, class, now_ms);
        }
    }

    pub fn is_boosted(&self, server: ServerKey, now_ms: i64) -> bool {
        self.boosts.get(&server).is_some_and(|&until_ms| until_ms > now_ms)
    }

    /// Number of boosted servers other than this one.
    pub fn other_boosts(&self, server: ServerKey, now_ms: i64) -> usize {
        self.boosts.iter().filter(|&(&other, &until_ms)| other != server && until_ms > now_ms).count()
    }

    fn forget_ended_boost(&mut self, server: ServerKey, now_ms: i64) {
        if self.boosts.get(&server).is_some_and(|&until_ms| until_ms <= now_ms) {
            self.boosts.remove(&server);
        }
    }

    /// Makes a server due now, on request.
    pub fn schedule_now(&mut self, server: ServerKey, now_ms: i64) {
        self.set_due(server, now_ms);
    }

    /// Makes one of many servers due on request: now if few were requested, otherwise in its turn, or as planned if
    /// that is earlier.
    pub fn schedule_in_turn(&mut self, server: ServerKey, now_ms: i64) {
        let (second_ms, scans) = self.last_turn;
        let turn = match () {
            () if second_ms + 1_000 <= now_ms => (now_ms, 1),
            () if scans < TURNS_PER_S => (second_ms, scans + 1),
            () => (second_ms + 1_000, 1),
        };
        if self.due_ms(server).is_none_or(|due_ms| due_ms > turn.0) {
            self.last_turn = turn;
            self.set_due(server, turn.0);
        }
    }

    /// The clock was set back: later turns were those of the wrong clock.
    pub fn forget_turns(&mut self) {
        self.last_turn = (0, 0);
    }

    /// Makes a server due at a time that [`elastic`] has chosen.
    pub fn schedule_elastic(&mut self, server: ServerKey, at_ms: i64) {
        self.set_due(server, at_ms);
        self.elastic.insert(server);
    }

    /// The interval of the scans of a server on the grid now.
    pub fn interval_ms(&self, server: ServerKey, class: Class, now_ms: i64) -> Option<i64> {
        let interval_ms = self.intervals.of(class)?;
        Some(if class < Class::UNKNOWN && self.is_boosted(server, now_ms) {
            interval_ms.min(BOOST_INTERVAL_MS)
        } else {
            interval_ms
        })
    }

    /// Removes the due time. A scan in flight is not affected.
    pub fn cancel(&mut self, server: ServerKey) {
        self.replanned.iter_mut().for_each(|replanned| replanned.push(server));
        let before = self.due_by_server.get_mut(server.0 as usize).and_then(Option::take);
        self.scheduled -= usize::from(before.is_some());
        self.elastic.remove(&server);
        self.remove_outdated();
    }

    pub fn due_ms(&self, server: ServerKey) -> Option<i64> {
        self.due_by_server.get(server.0 as usize).copied().flatten()
    }

    /// The earliest due time.
    pub fn next_due_ms(&mut self) -> Option<i64> {
        self.first().map(|(at, _)| at)
    }

    fn first(&mut self) -> Option<(i64, ServerKey)> {
        while let Some(&Reverse((at, server))) = self.due.peek() {
            if self.due_ms(server) == Some(at) {
                return Some((at, server));
            }
            self.due.pop();
        }
        None
    }

    /// Takes the next server that is due at `now_ms` and puts its scan in flight. A server
    /// whose last scan is still in flight is skipped: its outcome schedules it again.
    pub fn pop_due(
        &mut self,
        now_ms: i64,
        class_of: impl Fn(ServerKey) -> Class,
        is_requested: impl Fn(ServerKey) -> bool,
    ) -> Option<(ServerKey, InFlight)> {
        while let Some((due_ms, server)) = self.first() {
            if due_ms > now_ms {
                return None;
            }
            let elastic = self.elastic.contains(&server);
            self.due.pop();
            self.cancel(server);
            if self.in_flight.contains_key(&server) {
                continue; // its outcome schedules it again
            }
            let requested = is_requested(server);
            let scan = InFlight { id: self.next_id, due_ms, class: class_of(server), requested, elastic };
            self.next_id += 1;
            self.in_flight.insert(server, scan);
            return Some((server, scan));
        }
        None
    }

    /// Removes a scan in flight. `None`: there is no such scan, and its outcome is ignored.
    pub fn complete(&mut self, server: ServerKey, id: u64) -> Option<InFlight> {
        match self.in_flight.get(&server) {
            Some(scan) if scan.id == id => self.in_flight.remove(&server),
            _ => None,
        }
    }

    /// Whether an earlier process began a scan, so that its outcome comes from a scanner on another machine.
    pub fn is_earlier(&self, id: u64) -> bool {
        id < self.first_id
    }

    /// Whether the outcome of an earlier process's scan comes too late. The server was scanned at `scanned_ms`, and the
    /// newest outcome of all is of `newest_ms`.
    ///
    /// - If that process has applied it, and the scanner hands it in again because it got no answer, its time can be a
    ///   little later: clocks and ways of machines differ. Two elastic scans of a server are twice as far apart.
    /// - It would get the time of the newest outcome, because time never goes back.
    pub fn is_late(&self, id: u64, t_ms: i64, scanned_ms: i64, newest_ms: i64) -> bool {
        let margin_ms = (self.intervals.classes_ms[0] / REPEAT_SHARE).min(REPEAT_MS_MAX);
        let is_repeated = t_ms <= scanned_ms.saturating_add(margin_ms);
        self.is_earlier(id) && (is_repeated || newest_ms.saturating_sub(t_ms) > MOVED_MS_MAX)
    }

    pub fn is_in_flight(&self, server: ServerKey) -> bool {
        self.in_flight.contains_key(&server)
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn set_due(&mut self, server: ServerKey, at: i64) {
        self.replanned.iter_mut().for_each(|replanned| replanned.push(server));
        let index = server.0 as usize;
        if index >= self.due_by_server.len() {
            self.due_by_server.resize(index + 1, None);
        }
        let before = self.due_by_server[index].replace(at);
        self.elastic.remove(&server);
        self.scheduled += usize::from(before.is_none());
        if before != Some(at) {
            self.due.push(Reverse((at, server)));
        }
        self.remove_outdated();
    }

    /// Leaves one entry for each due time, if there are many more.
    fn remove_outdated(&mut self) {
        if self.due.len() > 2 * self.scheduled + OUTDATED_ENTRIES_MIN {
            let mut entries = std::mem::take(&mut self.due).into_vec();
            entries.retain(|&Reverse((at, server))| self.due_by_server[server.0 as usize] == Some(at));
            entries.sort_unstable();
            entries.dedup();
            self.due = entries.into();
        }
    }
}

/// Outdated entries are removed only if there are more than this.
const OUTDATED_ENTRIES_MIN: usize = 64;

/// The first time after `now_ms` with the server's phase in the interval. Phases of successive
/// keys follow the golden ratio: any number of servers is spread as evenly as possible,
/// whichever of them are in the class.
pub fn next_due_ms(server: ServerKey, interval_ms: i64, now_ms: i64) -> i64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let fraction = u64::from(server.0).wrapping_mul(GOLDEN);
    let phase = ((u128::from(fraction) * interval_ms as u128) >> 64) as i64;
    let from_phase = now_ms - phase;
    phase + (from_phase.div_euclid(interval_ms) + 1) * interval_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_equal_the_table_of_rules_section_9() {
        let numbers = |populated: bool| -> Vec<u8> {
            [0, 2, 3, 10, 11, 20, 21, 30, 31, 40, 41].map(|missed| class_of(missed, populated).number()).to_vec()
        };
        assert_eq!(numbers(true), [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]);
        assert_eq!(numbers(false), [2, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6]);
    }

    #[test]
    fn boosted_server_is_due_every_minute_until_the_end() {
        let mut schedule = Schedule::new(Intervals::default());
        let (server, class) = (ServerKey(7), Class::new(4).unwrap());
        let start_ms = 1_763_683_200_000;
        schedule.schedule_next(server, class, start_ms);
        assert!(schedule.due_ms(server).unwrap() > start_ms + HOUR_MS);
        schedule.boost(server, class, start_ms + 10 * MINUTE_MS, start_ms);
        let mut now_ms = start_ms;
        let mut scans = 0;
        while schedule.due_ms(server).unwrap() < start_ms + HOUR_MS {
            let due_ms = schedule.due_ms(server).unwrap();
            assert!((1..=MINUTE_MS).contains(&(due_ms - now_ms)), "{}", due_ms - now_ms);
            now_ms = due_ms;
            let (_, scan) = schedule.pop_due(now_ms, |_| class, |_| false).unwrap();
            schedule.complete(server, scan.id).unwrap();
            schedule.schedule_next(server, class, now_ms);
            scans += 1;
        }
        assert!((10..=11).contains(&scans), "{scans}");
        assert!(schedule.boosts.is_empty(), "an ended boost is forgotten");
        // A boost that is ended early.
        schedule.boost(server, class, now_ms + HOUR_MS, now_ms);
        assert_eq!(schedule.other_boosts(ServerKey(8), now_ms), 1);
        schedule.boost(server, class, now_ms, now_ms);
        assert!(schedule.due_ms(server).unwrap() > now_ms + HOUR_MS);
        assert_eq!(schedule.other_boosts(ServerKey(8), now_ms), 0);
    }

    #[test]
    fn due_times_of_20000_servers_are_even() {
        let mut per_second = vec![0; 120];
        for key in 1..=20_000 {
            let due = next_due_ms(ServerKey(key), 120_000, 1_763_683_200_000);
            assert!(due > 1_763_683_200_000 && due <= 1_763_683_320_000);
            per_second[((due - 1) / 1_000 % 120) as usize] += 1;
        }
        let (lowest, highest) = (per_second.iter().min().unwrap(), per_second.iter().max().unwrap());
        assert!(*lowest >= 164 && *highest <= 169, "{lowest} to {highest} of 166.7");
    }

    #[test]
    fn due_times_keep_the_servers_phase() {
        let first = next_due_ms(ServerKey(7), 120_000, 1_000_000);
        assert_eq!(next_due_ms(ServerKey(7), 120_000, first), first + 120_000);
        assert_eq!(next_due_ms(ServerKey(7), 120_000, first - 1), first);
    }

    const FAILED_CLASSES: [Class; 2] = [Class::UNKNOWN, Class::FAILED];

    /// A million servers that do not answer are scheduled when their first scans fail, and again by
    /// each of some restarts on the same day.
    #[test]
    fn retries_of_a_million_servers_are_even_and_survive_restarts() {
        const SERVERS: u32 = 1_000_000;
        let start_ms = 1_763_683_200_000;
        let mut schedule = Schedule::new(Intervals::default());
        for key in 1..=SERVERS {
            schedule.schedule_next(ServerKey(key), FAILED_CLASSES[key as usize % 2], start_ms + i64::from(key) / 50);
        }
        assert!(schedule.due.len() <= SERVERS as usize, "one entry a server");
        let mut per_minute = [0_u32; 24 * 60];
        for key in 1..=SERVERS {
            let due_ms = schedule.due_ms(ServerKey(key)).unwrap();
            assert!(due_ms > start_ms && due_ms <= start_ms + DAY_MS + 20_000);
            per_minute[((due_ms - start_ms) / MINUTE_MS % (24 * 60)) as usize] += 1;
        }
        let (fewest, most) = (per_minute.iter().min().unwrap(), per_minute.iter().max().unwrap());
        assert!(*fewest >= 690 && *most <= 699, "{fewest} to {most} of 694.4 a minute");
        for restart_ms in [HOUR_MS, 5 * HOUR_MS, 23 * HOUR_MS].map(|after_ms| start_ms + after_ms) {
            let mut restarted = Schedule::new(Intervals::default());
            for key in (1..=SERVERS).step_by(997) {
                let (server, class) = (ServerKey(key), Class::FAILED);
                restarted.schedule_next(server, class, restart_ms);
                let due_ms = schedule.due_ms(server).unwrap();
                let want_ms = if due_ms > restart_ms { due_ms } else { due_ms + DAY_MS };
                assert_eq!(restarted.due_ms(server), Some(want_ms), "a restart neither repeats nor delays a retry");
            }
        }
    }

    #[test]
    fn failed_servers_are_scanned_on_request_only_if_retries_are_off() {
        let mut schedule = Schedule::new(Intervals { retry_failed_ms: None, ..Intervals::default() });
        let server = ServerKey(3);
        for class in FAILED_CLASSES {
            schedule.schedule_next(server, class, 1_000);
            assert_eq!((schedule.due_ms(server), schedule.next_due_ms()), (None, None));
            schedule.schedule_now(server, 2_000);
            assert_eq!(schedule.pop_due(2_000, |_| class, |_| true).map(|(it, _)| it), Some(server));
            schedule.in_flight.clear();
        }
        // As by a reload: retries are turned on, and off again.
        schedule.set_intervals(Intervals::default());
        schedule.schedule_next(server, Class::FAILED, 2_000);
        assert!(schedule.due_ms(server).is_some_and(|due_ms| due_ms <= 2_000 + DAY_MS));
        schedule.set_intervals(Intervals { retry_failed_ms: None, ..Intervals::default() });
        schedule.schedule_next(server, Class::FAILED, 3_000);
        assert_eq!(schedule.next_due_ms(), None);
    }

    #[test]
    fn boosted_server_that_does_not_answer_is_not_scanned_more_often() {
        let mut schedule = Schedule::new(Intervals::default());
        let (server, now_ms) = (ServerKey(3), 1_763_683_200_000);
        schedule.boost(server, Class::new(2).unwrap(), now_ms + DAY_MS, now_ms);
        for class in FAILED_CLASSES {
            assert_eq!(schedule.interval_ms(server, class, now_ms), Some(DAY_MS));
        }
    }

    #[test]
    fn server_in_flight_is_not_due_again() {
        let mut schedule = Schedule::new(Intervals::default());
        let class = Class::new(1).unwrap();
        let server = ServerKey(3);
        schedule.schedule_now(server, 1_000);
        assert_eq!(schedule.pop_due(999, |_| class, |_| true), None);
        let (_, scan) = schedule.pop_due(1_000, |_| class, |_| true).unwrap();
        schedule.schedule_now(server, 1_500);
        assert_eq!(schedule.pop_due(2_000, |_| class, |_| true), None, "still in flight");
        assert_eq!(schedule.complete(server, scan.id + 1), None);
        assert_eq!(schedule.complete(server, scan.id), Some(scan));
        schedule.schedule_next(server, class, 2_000);
        assert!(schedule.due_ms(server).unwrap() <= 122_000);
        schedule.cancel(server);
        assert_eq!(schedule.next_due_ms(), None);
    }

    #[test]
    fn due_time_that_is_set_and_removed_again_and_again_takes_no_memory() {
        let mut schedule = Schedule::new(Intervals::default());
        for _ in 0..10_000 {
            for at in [1_000, 2_000, 1_000] {
                schedule.schedule_now(ServerKey(3), at);
            }
            schedule.cancel(ServerKey(4));
            assert!(schedule.due.len() <= 2 + OUTDATED_ENTRIES_MIN, "{}", schedule.due.len());
            schedule.cancel(ServerKey(3));
            assert!(schedule.due.len() <= OUTDATED_ENTRIES_MIN, "{}", schedule.due.len());
        }
        assert_eq!(schedule.next_due_ms(), None);
    }

    proptest::proptest! {
        /// A server that never answers is tried exactly once in each interval of its phase,
        /// whatever else happens.
        #[test]
        fn failed_server_is_tried_once_in_each_interval(
            key in 1_u32.., interval_s in 1_i64..200_000, restarts in proptest::collection::vec(0_i64..500_000, 0..20)
        ) {
            let interval_ms = interval_s * 1_000;
            let intervals = Intervals { retry_failed_ms: Some(interval_ms), ..Intervals::default() };
            let server = ServerKey(key % 1_000_000);
            let start_ms = 1_763_683_200_000;
            let mut restarts: Vec<i64> = restarts.into_iter().map(|after_s| start_ms + after_s * 1_000).collect();
            restarts.sort_unstable();
            let mut schedule = Schedule::new(intervals);
            schedule.schedule_next(server, Class::FAILED, start_ms);
            let first_ms = schedule.due_ms(server).unwrap();
            proptest::prop_assert!(first_ms > start_ms && first_ms <= start_ms + interval_ms);
            let mut restarts = restarts.into_iter().peekable();
            for n in 0..5 {
                let due_ms = first_ms + n * interval_ms;
                while let Some(restart_ms) = restarts.next_if(|restart_ms| *restart_ms < due_ms) {
                    schedule = Schedule::new(intervals);
                    schedule.schedule_next(server, Class::FAILED, restart_ms);
                }
                proptest::prop_assert_eq!(schedule.due_ms(server), Some(due_ms));
                let (_, scan) = schedule.pop_due(due_ms, |_| Class::FAILED, |_| false).unwrap();
                schedule.complete(server, scan.id).unwrap();
                schedule.schedule_next(server, Class::FAILED, due_ms);
            }
        }

        /// Schedules, requests, cancels and takes scans in any order, and compares with a map.
        #[test]
        fn schedule_equals_naive_map(steps in proptest::collection::vec((0_u8..4, 0_u32..9, 0_i64..50), 0..400)) {
            let class = Class::new(1).unwrap();
            let mut schedule = Schedule::new(Intervals::default());
            let mut due: std::collections::BTreeMap<ServerKey, i64> = Default::default();
            for (step, server, now_ms) in steps {
                let server = ServerKey(server);
                match step {
                    0 => {
                        schedule.cancel(server);
                        due.remove(&server);
                    }
                    1 | 2 => {
                        schedule.schedule_now(server, now_ms);
                        due.insert(server, now_ms);
                    }
                    _ => {
                        let want = due.iter().map(|(server, at)| (*at, *server)).min().filter(|(at, _)| *at <= now_ms);
                        let got = schedule.pop_due(now_ms, |_| class, |_| true);
                        proptest::prop_assert_eq!(got.map(|(server, scan)| (scan.due_ms, server)), want);
                        if let Some((server, scan)) = got {
                            due.remove(&server);
                            schedule.complete(server, scan.id);
                        }
                    }
                }
                proptest::prop_assert_eq!(schedule.next_due_ms(), due.values().min().copied());
                proptest::prop_assert!(schedule.due.len() <= 2 * due.len() + OUTDATED_ENTRIES_MIN);
            }
        }
    }
}
