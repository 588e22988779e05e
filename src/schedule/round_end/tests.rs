//! The model with tables, and the extra scans of one server under the real schedule.

use proptest::prelude::*;

use super::*;
use crate::model::server::Class;
use crate::schedule::{Intervals, Schedule, next_due_ms};

const SERVER: ServerKey = ServerKey(7);
const START_MS: i64 = 1_763_942_400_000;
const INTERVAL_MS: i64 = 120_000;

fn class() -> Class {
    Class::new(1).unwrap()
}

/// Feeds the lists of rounds that begin at these times, s, each scanned at these times and with
/// these best points at the end.
fn model(scans_s: &[u32], starts_s: &[u32], limit: i64) -> RoundModel {
    let mut model = RoundModel::default();
    let round = |s: u32| starts_s.partition_point(|start| *start <= s);
    let best = |s: u32| {
        let at = round(s).max(1);
        let start = starts_s[at - 1];
        let end = starts_s.get(at).copied().unwrap_or(start + 600);
        limit * i64::from(s.saturating_sub(start)) / i64::from(end - start)
    };
    for pair in scans_s.windows(2) {
        let transition = if round(pair[0]) == round(pair[1]) { Transition::SameRound } else { Transition::NewRound };
        model.observe(ListSeen {
            t_ms: i64::from(pair[1]) * 1_000,
            previous_ms: i64::from(pair[0]) * 1_000,
            transition,
            best_before: best(pair[0]),
            best: best(pair[1]),
        });
    }
    model
}

fn every_120_s(to_s: u32) -> Vec<u32> {
    (1_000..to_s).step_by(120).collect()
}

#[test]
fn time_limit_is_learned_and_narrows_with_each_round() {
    // Rounds of 630 s; the points differ widely.
    let starts: Vec<u32> = (0..7).map(|round| 1_050 + 630 * round).collect();
    let mut widths = Vec::new();
    for rounds in 3..=6 {
        let end_s = starts[rounds];
        let scans = every_120_s(end_s + 121);
        let model = model(&scans, &starts[..=rounds], 0);
        let forecast = model.forecast(i64::from(*scans.last().unwrap()) * 1_000, 0).expect("enough rounds");
        let Basis::RoundLength { shortest_s, longest_s, .. } = forecast.basis else { panic!("{forecast:?}") };
        assert!((shortest_s..=longest_s).contains(&630), "{forecast:?}");
        let [early, middle, late] = forecast.quantiles_s().expect("not overdue");
        let next_s = f64::from(end_s + 630);
        assert!(early - 5.0 <= next_s && next_s <= late + 5.0, "{rounds}: {early} {middle} {late}, not {next_s}");
        widths.push(late - early);
    }
    assert!(widths.is_sorted_by(|a, b| a > b) && widths[3] < 140.0, "{widths:?}");
}

#[test]
fn point_limit_is_learned_from_equal_final_points() {
    // Lengths differ; each round ends at 50 points.
    let starts = [1_050, 1_650, 2_730, 3_200, 4_100];
    let scans = every_120_s(4_400);
    let mut model = model(&scans, &starts, 50);
    model.final_points_mut().for_each(|points| *points = 50.0); // as seen in the intermissions
    let (t_s, best) = (*scans.last().unwrap(), 20);
    let forecast = model.forecast(i64::from(t_s) * 1_000, best).expect("enough rounds");
    assert_eq!(forecast.basis, Basis::PointLimit { points: 50, rounds: 4 });
    let middle = forecast.quantiles_s().unwrap()[1];
    let earlier = model.forecast(i64::from(t_s) * 1_000, 40).unwrap().quantiles_s().unwrap()[1];
    assert!(earlier < middle && earlier > f64::from(t_s), "{earlier} {middle}");
}

#[test]
fn nothing_is_expected_without_two_ends_or_a_start() {
    let starts: Vec<u32> = (0..7).map(|round| 1_050 + 630 * round).collect();
    let learned = |to_s: u32| model(&every_120_s(to_s), &starts, 0);
    assert_eq!(learned(1_600).forecast(1_600_000, 0), None, "one end");
    let mut model = learned(4_000);
    assert!(model.forecast(4_000_000, 0).is_some());
    model.observe(ListSeen {
        t_ms: 4_100_000,
        previous_ms: 4_000_000,
        transition: Transition::Unknown,
        best_before: 0,
        best: 0,
    });
    assert_eq!(model.forecast(4_100_000, 0), None, "the start is unknown");
}

#[test]
fn missed_end_is_not_learned_as_long_round() {
    let mut model = RoundModel::default();
    let mut observe = |previous_s: i64, t_s: i64| {
        model.observe(ListSeen {
            t_ms: t_s * 1_000,
            previous_ms: previous_s * 1_000,
            transition: Transition::NewRound,
            best_before: 9,
            best: 0,
        });
    };
    observe(1_000, 1_010);
    observe(1_300, 1_310);
    observe(1_600, 1_610);
    observe(1_900, 2_500); // a second round may have ended in this gap
    assert_eq!(model.median_length_s(), Some(300));
}

#[test]
fn times_outside_the_range_do_not_overflow() {
    let mut model = RoundModel::default();
    for t_ms in [i64::MIN, -1, 0, 1_000, 700_000, 1_400_000, i64::MAX / 2, i64::MAX - 1, i64::MAX] {
        for transition in [Transition::NewRound, Transition::SameRound] {
            let previous_ms = t_ms.saturating_sub(120_000);
            model.observe(ListSeen { t_ms, previous_ms, transition, best_before: i64::MAX, best: i64::MIN });
            if let Some(forecast) = model.forecast(t_ms, i64::MIN) {
                forecast.quantiles_s();
                let s = t_ms as f64 / 1_000.0;
                forecast.best_scan(s, s + 15.0, s + 105.0, s + 120.0);
            }
        }
    }
}

#[test]
fn best_scan_is_shortly_before_a_known_end() {
    let starts: Vec<u32> = (0..7).map(|round| 1_050 + 630 * round).collect();
    // The end at 5,460 is known to a few seconds after scans close to the earlier ones.
    let mut scans = every_120_s(5_350);
    scans.extend(starts.iter().flat_map(|start| [start - 2, start + 2]));
    scans.sort_unstable();
    scans.retain(|s| *s <= 5_350);
    let model = model(&scans, &starts, 0);
    let last_s = f64::from(*scans.last().unwrap());
    let forecast = model.forecast((last_s * 1_000.0) as i64, 0).unwrap();
    let (at_s, worth_s) = forecast.best_scan(last_s, last_s + 15.0, 5_485.0, 5_500.0).unwrap();
    assert!((5_440.0..=5_460.0).contains(&at_s), "{at_s} {forecast:?}");
    assert!(worth_s > 0.8 * (at_s - last_s), "{worth_s}");
    // Without an end before the next regular scan, an extra scan has no worth.
    let (_, worth_s) = forecast.best_scan(last_s, last_s + 15.0, last_s + 60.0, last_s + 75.0).unwrap();
    assert_eq!(worth_s, 0.0);
}

/// One server under the schedule, with rounds of these lengths.
struct Run {
    schedule: Schedule,
    ends: RoundEnds,
    share: f64,
    /// Ends of rounds, Unix ms, ascending.
    round_ends: Vec<i64>,
    regular: u32,
    extra: u32,
    /// Extra scans that were the last list of a round.
    last_lists: u32,
    previous_ms: i64,
    /// Whether points change between lists.
    plays: bool,
}

impl Run {
    fn new(share: f64, round_ends: Vec<i64>) -> Run {
        let mut schedule = Schedule::new(Intervals::default());
        schedule.schedule_next(SERVER, class(), START_MS);
        let ends = RoundEnds::default();
        Run {
            schedule,
            ends,
            share,
            round_ends,
            regular: 0,
            extra: 0,
            last_lists: 0,
            previous_ms: START_MS,
            plays: true,
        }
    }

    /// Makes the next scan, and checks its time.
    fn scan(&mut self) {
        let regular_ms = next_due_ms(SERVER, INTERVAL_MS, self.previous_ms);
        let now_ms = self.schedule.next_due_ms().expect("the server is due");
        let (_, scan) = self.schedule.pop_due(now_ms, |_| class(), |_| false).expect("due");
        self.schedule.complete(SERVER, scan.id).expect("in flight");
        if scan.at_round_end {
            self.ends.spend(SERVER);
            self.extra += 1;
            let distance_ms = (now_ms - self.previous_ms).min(regular_ms - now_ms);
            assert!(self.regular > 0 && distance_ms >= 15_000, "{distance_ms} ms from another scan");
        } else {
            self.regular += 1;
            assert_eq!(now_ms, regular_ms, "the regular phase is kept");
        }
        let round = |t_ms: i64| self.round_ends.partition_point(|end_ms| *end_ms <= t_ms);
        let is_same = round(self.previous_ms) == round(now_ms);
        let seen = ListSeen {
            t_ms: now_ms,
            previous_ms: self.previous_ms,
            transition: if is_same { Transition::SameRound } else { Transition::NewRound },
            best_before: self.best(self.previous_ms),
            best: self.best(now_ms),
        };
        let was_last = self.ends.observe(SERVER, seen, 2, scan.at_round_end, self.plays);
        self.last_lists += u32::from(was_last);
        if !scan.at_round_end {
            self.ends.earn(SERVER, self.share);
        }
        assert!(f64::from(self.extra) <= self.share * f64::from(self.regular) + f64::from(SAVED_SCANS_MAX));
        self.previous_ms = now_ms;
        self.schedule.schedule_next(SERVER, class(), now_ms);
        if let Some(at_ms) = self.ends.extra_scan_ms(SERVER, self.times()) {
            self.schedule.schedule_extra(SERVER, at_ms);
        }
    }

    /// Points rise at a rate that differs between rounds.
    fn best(&self, t_ms: i64) -> i64 {
        let round = self.round_ends.partition_point(|end_ms| *end_ms <= t_ms);
        let began_ms = round.checked_sub(1).map_or(START_MS, |at| self.round_ends[at]);
        (t_ms - began_ms) / 1_000 / [4, 9, 23, 13][round % 4]
    }

    fn times(&self) -> ScanTimes {
        ScanTimes {
            list_ms: self.previous_ms,
            best: self.best(self.previous_ms),
            now_ms: self.previous_ms,
            due_ms: next_due_ms(SERVER, INTERVAL_MS, self.previous_ms),
            interval_ms: INTERVAL_MS,
        }
    }
}

fn ends_every(length_ms: i64, rounds: i64) -> Vec<i64> {
    (1..=rounds).map(|round| START_MS + 41_000 + round * length_ms).collect()
}

#[test]
fn most_ends_of_a_time_limit_are_caught() {
    let mut run = Run::new(ROUND_END_SHARE, ends_every(907_000, 400));
    (0..2_000).for_each(|_| run.scan());
    // A round has 7.6 regular scans, which earn 1.1 extra ones.
    let rounds = run.round_ends.partition_point(|end_ms| *end_ms <= run.previous_ms) as u32;
    assert!(run.last_lists * 3 > rounds * 2, "{} of {rounds} ends, {} extra scans", run.last_lists, run.extra);
    let view = run.ends.view(SERVER, run.times());
    assert!(matches!(view.basis, Some(Basis::RoundLength { rounds: 5, .. })), "{view:?}");
    assert_eq!(view.off, None);
}

#[test]
fn server_is_turned_off_where_extra_scans_do_not_help() {
    // The points do not change before the end: the regular list shows as much.
    let mut run = Run::new(ROUND_END_SHARE, ends_every(907_000, 400));
    run.plays = false;
    let is_off = |run: &Run| matches!(run.ends.view(SERVER, run.times()).off, Some(Off::NoBenefit { .. }));
    (0..400).for_each(|_| run.scan());
    assert!(is_off(&run), "{:?}", run.ends.view(SERVER, run.times()));
    let extra = run.extra;
    assert!((12..=13).contains(&extra), "{extra}");
    // A day later, extra scans are tried again.
    (0..800).for_each(|_| run.scan());
    assert!(run.extra > extra && run.extra < extra + 12, "{} after {extra}", run.extra);
}

#[test]
fn rounds_shorter_than_the_interval_get_no_extra_scans() {
    let mut run = Run::new(1.0, ends_every(100_000, 4_000));
    (0..500).for_each(|_| run.scan());
    assert_eq!(run.extra, 0);
    assert!(run.ends.view(SERVER, run.times()).off.is_some());
}

#[test]
fn server_without_players_takes_no_memory() {
    let mut ends = RoundEnds::default();
    let seen = ListSeen {
        t_ms: START_MS,
        previous_ms: START_MS - INTERVAL_MS,
        transition: Transition::SameRound,
        best_before: 0,
        best: 0,
    };
    ends.observe(SERVER, seen, 1, false, true);
    assert!(ends.servers.is_empty());
    ends.observe(SERVER, seen, 2, false, true);
    assert_eq!(ends.servers.len(), 1);
    ends.forget(SERVER);
    assert!(ends.servers.is_empty());
}

proptest! {
    /// `Run::scan` checks the budget, the distance and the phase at each scan.
    #[test]
    fn budget_distance_and_phase_hold_for_any_rounds(
        lengths_s in proptest::collection::vec(20_i64..2_000, 60),
        is_regular in any::<bool>(),
        share in 0.0..=1.0,
    ) {
        let mut end_ms = START_MS;
        let lengths = lengths_s.iter().map(|s| if is_regular { lengths_s[0] } else { *s });
        let round_ends = lengths.map(|s| { end_ms += s * 1_000; end_ms }).collect();
        let mut run = Run::new(share, round_ends);
        (0..300).for_each(|_| run.scan());
    }
}
