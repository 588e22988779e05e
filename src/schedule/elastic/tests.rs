//! The model with tables, and the scans of one server in virtual time.

use proptest::prelude::*;

use super::*;

const SERVER: ServerKey = ServerKey(7);
const START_MS: i64 = 1_763_942_400_000;
const PACE: Pace = Pace { budget: BUDGET, interval_ms: 120_000 };

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
            best_before: 3,
            best: 0,
        });
    };
    observe(1_000, 1_010);
    observe(1_300, 1_310);
    observe(1_600, 1_610);
    observe(1_900, 2_500); // a second round may have ended in this gap
    let forecast = model.forecast(2_500_000, 0).unwrap();
    let Basis::RoundLength { shortest_s, longest_s, .. } = forecast.basis else { panic!("{forecast:?}") };
    assert!(shortest_s >= 290 && longest_s <= 310, "{forecast:?}");
}

/// An end is known better than from the two lists around it, and stays so.
#[test]
fn ends_by_time_limit_are_narrowed_by_scans_within_their_range() {
    let starts: Vec<u32> = (0..30).map(|round| 1_050 + 630 * round).collect();
    let width_s = |scans: &[u32]| {
        let model = model(scans, &starts, 0);
        let [early, _, late] =
            model.forecast(i64::from(*scans.last().unwrap()) * 1_000, 0).unwrap().quantiles_s().unwrap();
        late - early
    };
    let grid = every_120_s(1_050 + 13 * 630 + 20);
    let mut learned = grid.clone();
    learned.extend([9, 10, 11].iter().flat_map(|&round| [starts[round] - 4, starts[round] + 4]));
    learned.sort_unstable();
    let (from_grid_s, learned_s) = (width_s(&grid), width_s(&learned));
    assert!(learned_s < 35.0 && from_grid_s > 50.0, "{learned_s} {from_grid_s}");
}

#[test]
fn another_time_limit_is_learned() {
    let mut starts: Vec<u32> = (0..8).map(|round| 1_050 + 630 * round).collect();
    let last = *starts.last().unwrap();
    starts.extend((1..16).map(|round| last + 900 * round));
    let scans = every_120_s(last + 900 * 15 + 121);
    let model = model(&scans, &starts, 0);
    let forecast = model.forecast(i64::from(*scans.last().unwrap()) * 1_000, 0).unwrap();
    let Basis::RoundLength { shortest_s, longest_s, .. } = forecast.basis else { panic!("{forecast:?}") };
    assert!(shortest_s <= 900 && (900..960).contains(&longest_s), "{forecast:?}");
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
                forecast.ends(4.0).unseen_s(s + 240.0);
            }
        }
    }
}

#[test]
fn scan_is_made_shortly_before_a_known_end() {
    let starts: Vec<u32> = (0..7).map(|round| 1_050 + 630 * round).collect();
    // The end at 5,460 is known to a few seconds after scans close to the earlier ones.
    let mut scans = every_120_s(5_350);
    scans.extend(starts.iter().flat_map(|start| [start - 2, start + 2]));
    scans.sort_unstable();
    scans.retain(|s| *s <= 5_350);
    let model = model(&scans, &starts, 0);
    let last_s = *scans.last().unwrap();
    let moment = Moment { now_ms: i64::from(last_s) * 1_000, list_ms: i64::from(last_s) * 1_000, best: 0 };
    let forecast = model.forecast(moment.list_ms, 0).unwrap();
    let at_s = |price_s| f64::from(last_s) + best_gap_s(Some(&forecast), price_s, moment, 1.0, GAP_S_MAX);
    for price_s in [20.0, 40.0, 80.0] {
        assert!((5_430.0..=5_460.0).contains(&at_s(price_s)), "{} {forecast:?}", at_s(price_s));
    }
    // Too cheap to wait for it, and too expensive to be made for it.
    assert!(at_s(0.3) < 5_400.0 && at_s(400.0) > 5_500.0, "{} {}", at_s(0.3), at_s(400.0));
}

#[test]
fn times_scale_with_the_interval() {
    for (interval_ms, gap_ms) in [(120_000, 120_000), (30_000, 30_000)] {
        let mut scans = ElasticScans::default();
        let pace = Pace { budget: 1.0, interval_ms };
        let at = |now_ms| Moment { now_ms, list_ms: now_ms, best: 0 };
        let next_ms = scans.next_scan_ms(SERVER, pace, at(START_MS), false);
        assert_eq!(next_ms, next_due_ms(SERVER, interval_ms, START_MS), "on the grid");
        let mut now_ms = START_MS + gap_ms;
        for _ in 0..100 {
            let next_ms = scans.next_scan_ms(SERVER, pace, at(now_ms), false);
            assert!((next_ms - now_ms - gap_ms).abs() < gap_ms / 50, "{}", next_ms - now_ms);
            now_ms = next_ms;
        }
    }
}

#[test]
fn gaps_have_bounds_with_every_interval() {
    for interval_s in [1, 10, 60, 300, 600, 3_600] {
        for budget in [0.5, 1.15, 4.0] {
            let pace = Pace { budget, interval_ms: interval_s * 1_000 };
            let mean_ms = (pace.interval_ms as f64 / budget) as i64;
            let (least_ms, most_ms) = (mean_ms.min(8_000), 660_000.max(mean_ms * 11 / 10).max(pace.interval_ms));
            let mut run = Run::new(pace, ends_every(907_000, 400));
            for _ in 0..300 {
                run.scan(false);
                if run.now_ms > *run.round_ends.last().unwrap() {
                    break;
                }
            }
            // The second scan is on the grid.
            for pair in run.times_ms.windows(2).skip(1) {
                let gap_ms = pair[1] - pair[0];
                assert!((least_ms..=most_ms).contains(&gap_ms), "{gap_ms} with {pace:?}");
            }
        }
    }
}

/// A server whose rounds end at these times, scanned for a while.
struct Run {
    scans: ElasticScans,
    pace: Pace,
    round_ends: Vec<i64>,
    now_ms: i64,
    list_ms: i64,
    /// Times of all scans, and rounds whose last list is at most 30 s before the next one.
    times_ms: Vec<i64>,
    ends_seen: usize,
}

impl Run {
    fn new(pace: Pace, round_ends: Vec<i64>) -> Run {
        let (scans, times_ms) = (ElasticScans::default(), Vec::new());
        Run { scans, pace, round_ends, now_ms: START_MS, list_ms: START_MS, times_ms, ends_seen: 0 }
    }

    /// Points rise at a rate that differs between rounds.
    fn best(&self, t_ms: i64) -> i64 {
        let round = self.round_ends.partition_point(|end_ms| *end_ms <= t_ms);
        let began_ms = round.checked_sub(1).map_or(START_MS, |at| self.round_ends[at]);
        (t_ms - began_ms) / 1_000 / [4, 9, 23, 13][round % 4]
    }

    fn scan(&mut self, missed: bool) {
        self.times_ms.push(self.now_ms);
        if !missed {
            let round = |t_ms: i64| self.round_ends.partition_point(|end_ms| *end_ms <= t_ms);
            let is_same = round(self.list_ms) == round(self.now_ms);
            self.ends_seen += usize::from(!is_same && self.round_ends[round(self.list_ms)] - self.list_ms <= 30_000);
            self.scans.observe(
                SERVER,
                ListSeen {
                    t_ms: self.now_ms,
                    previous_ms: self.list_ms,
                    transition: if is_same { Transition::SameRound } else { Transition::NewRound },
                    best_before: self.best(self.list_ms),
                    best: self.best(self.now_ms),
                },
            );
            self.list_ms = self.now_ms;
        }
        let moment = Moment { now_ms: self.now_ms, list_ms: self.list_ms, best: self.best(self.list_ms) };
        self.now_ms = self.scans.next_scan_ms(SERVER, self.pace, moment, false);
    }

    /// Scans in an interval of class 1.
    fn mean(&self) -> f64 {
        let (first_ms, last_ms) = (self.times_ms[0], self.times_ms[self.times_ms.len() - 1]);
        (self.times_ms.len() - 1) as f64 * self.pace.interval_ms as f64 / (last_ms - first_ms) as f64
    }
}

fn ends_every(length_ms: i64, rounds: i64) -> Vec<i64> {
    (1..=rounds).map(|round| START_MS + 41_000 + round * length_ms).collect()
}

#[test]
fn most_ends_of_a_time_limit_are_caught() {
    let mut run = Run::new(PACE, ends_every(907_000, 400));
    (0..2_500).for_each(|_| run.scan(false));
    let rounds = run.round_ends.partition_point(|end_ms| *end_ms <= run.now_ms);
    assert!(run.ends_seen * 3 > rounds * 2, "{} of {rounds} ends", run.ends_seen);
    let view = run.scans.view(SERVER, Moment { now_ms: run.now_ms, list_ms: run.list_ms, best: 9 }).unwrap();
    assert!(matches!(view.basis, Some(Basis::RoundLength { rounds: 5, .. })), "{view:?}");
}

proptest! {
    /// Whatever the rounds are, the mean number of scans is the budget, and no two are too close or too far.
    #[test]
    fn mean_keeps_to_the_budget(
        budget in 0.75..6.0,
        lengths_s in prop_oneof![
            prop::collection::vec(60_i64..3_000, 1..12),
            prop::collection::vec(60_i64..200, 1..2),
        ],
        missed in prop::collection::vec(prop::bool::weighted(0.1), 1..50),
    ) {
        let mut end_ms = START_MS;
        let ends = (0..4_000).map(|round| {
            end_ms += lengths_s[round % lengths_s.len()] * 1_000;
            end_ms
        });
        let mut run = Run::new(Pace { budget, ..PACE }, ends.collect());
        let rounds_end_ms = *run.round_ends.last().unwrap();
        for scan in 0..3_000 {
            if run.now_ms >= rounds_end_ms {
                break;
            }
            run.scan(missed[scan % missed.len()]);
        }
        for pair in run.times_ms.windows(2) {
            prop_assert!((8_000..=240_000).contains(&(pair[1] - pair[0])), "{}", pair[1] - pair[0]);
        }
        let count = run.times_ms.len() as f64;
        // The scans that a server has saved at the end, at most 8, are not yet made.
        let range = 0.99 - 20.0 / count..1.01 + 20.0 / count;
        prop_assert!(range.contains(&(run.mean() / budget)), "{} of {budget} in {count}", run.mean());
    }
}
