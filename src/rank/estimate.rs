//! Estimates points that players scored between scans (docs/rules.md section 15).
//!
//! A scan sees a list once every gap (usually 120 s). Two kinds of points are never seen: those
//! scored after the last scan of a round and before its end, and those scored after the last
//! scan that saw a player and before they left. `points_est` is `points` plus an estimate of
//! both, which a row stores as `points_unseen_thousandths`. It is never used for a ranking.
//!
//! The estimate is *rate x unseen time*.
//!
//! - **Rate** of a player, points per ms ([`Rates`]): `points_est / time_est_ms`
//!   of their row in the window, as if [`PRIOR_MS`] of play at the mean rate of
//!   the players of the list had come before. The mean is computed from all rows
//!   of the list. So a player with little history is rated like the others on
//!   the server, and only the rows are stored. Rates are computed from the rows
//!   before the snapshot.
//! - **Unseen time at the end of a round** ([`unseen_at_round_end`]): the gap, less the
//!   age of the new round, less [`INTERMISSION_MS`], and at least 0. The age is
//!   a weighted mean of two estimates: half of the gap, and `new points / rate`
//!   of the players who stayed. The more points are expected in a gap, the
//!   larger is the weight of the second estimate. These are the best linear
//!   weights for an end that is equally likely at each time in the gap (variance
//!   of the age: gap^2 / 12) and for random scores of [`POINTS_PER_SCORE`] points
//!   (variance of the age from points: `POINTS_PER_SCORE` x age / rate). This matters
//!   if rounds last a multiple of the scan interval: then the end of each round is
//!   at the same time in its gap, which need not be the middle.
//! - **Unseen time before leaving** ([`unseen_before_leaving`]): half of the gap,
//!   less half of an intermission if a round ended in it.
//!
//! Gaps of more than 720 s are not estimated.
//!
//! Measured with `cargo bench --bench estimates`: rows of players with at least
//! an hour of play, scans every 120 s of which 2 % are missed, against what the
//! players of a simulation really scored. Bias is the error of the sum, the
//! other figure the median of the error of a row.
//!
//! | scenario | `points` % | | `points_est` % | |
//! |---|---|---|---|---|
//! | | bias | median | bias | median |
//! | rounds of 5 to 20 min, intermissions of 20 to 30 s | -8.7 | 8.3 | 2.0 | 2.6 |
//! | the same without intermissions | -12.3 | 11.8 | -1.5 | 2.1 |
//! | rounds of 5 min | -15.8 | 15.7 | 3.1 | 4.1 |
//! | rounds of 5 min without intermissions | -24.2 | 24.5 | -4.7 | 5.0 |
//! | rounds of 5 min, intermissions of 30 s | -15.2 | 15.1 | 4.1 | 4.9 |
//! | rounds of 10 min in step with scans | -13.4 | 13.0 | -1.7 | 2.7 |
//! | a limit of 20 scores | -13.2 | 12.4 | 1.7 | 3.0 |
//! | 0.4 scores a minute (usually 1.5) | -8.8 | 8.5 | 1.8 | 3.7 |
//! | steps of 100 points | -8.7 | 8.3 | 2.9 | 3.7 |
//! | 3 players (usually 8) | -8.4 | 8.1 | 1.9 | 2.7 |
//! | stays of 12 min (usually 40) | -14.4 | 14.3 | 1.0 | 2.9 |
//! | 15 % of scans missed | -12.3 | 11.6 | 1.1 | 2.6 |
//! | 15 s of warm-up after each intermission | -8.8 | 8.5 | 3.2 | 3.4 |
//! | scans every 600 s | -51.8 | 51.7 | -29.1 | 27.5 |
//! | the simulated fleet (`clqd fleet`) | -10.8 | 9.1 | -1.5 | 2.5 |
//!
//! Scans cannot measure [`INTERMISSION_MS`]: scores do not change in an intermission, but also not in
//! any other pause. The value makes the errors at 0 s and at 30 s equal.
//!
//! Limits: if scans are 10 minutes apart and rounds are as short, several rounds may be in one
//! gap, and restarts on the same map are often not recognised (docs/rules.md section 4). Then
//! `points_est` is up to 30 % low (`points`: 52 %).
//!
//! Pure: no state, no clock. Sums are computed in the order of the list in `f64` with the four
//! basic operations and the square root, which are rounded exactly, so equal input gives equal bits on every machine.

use crate::model::row::{PlayerRow, Uncertainty};

/// Play at the mean rate of the list that is added to each player's history, ms. After that
/// time a player's individual rate has half of the weight.
const PRIOR_MS: f64 = 300_000.0;

/// Assumed time between two rounds without scores, ms.
const INTERMISSION_MS: f64 = 5_000.0;

/// By how much a connected time may be longer than the time since a list without the player, ms: clocks differ, and
/// some servers count from before the player is in the list.
const CONNECTED_SLACK_MS: i64 = 5_000;

/// A connected time shows only the last join: the player may have joined and left earlier in the same gap. For that the
/// variance of the gap, divided by this, is added.
const EARLIER_PRESENCE: u32 = 5;

/// The end of a round is not equally likely at each time of a gap: intermissions are longer or shorter than assumed,
/// scans are placed before expected ends. That is similar for all rounds of a server, so it adds up. It is a standard
/// deviation of this share of the gap. Measured with `clqd truth`, so that the error of `points_est` holds in 80 % of the
/// cases: 86 % with a fixed grid, 75 to 81 % with scan.budget 1 to 3.
const COMMON_SHARE: f64 = 1.0 / 12.0;

/// The rate of a player is not exact, and scores come in series. Measured likewise.
const RANDOM_FACTOR: f64 = 1.6;

/// Assumed points of one score: determines the variance of the points.
const POINTS_PER_SCORE: f64 = 2.0;

/// The mean rate of the players of a list, towards which the rate of each player is shrunk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Points per ms; 0 without data.
    mean: f64,
}

impl Rates {
    /// Computes the mean from the rows of the players of a list, in the order of the list.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a PlayerRow>) -> Rates {
        let (mut points, mut time_ms) = (0.0, 0.0);
        for row in rows {
            points += row.points_est();
            time_ms += row.time_est_ms as f64;
        }
        Rates { mean: if time_ms > 0.0 { points / time_ms } else { 0.0 } }
    }

    /// Points per ms that a player of the list is expected to score. At least 0.
    pub fn rate(self, row: &PlayerRow) -> f64 {
        (row.points_est() + PRIOR_MS * self.mean) / (row.time_est_ms as f64 + PRIOR_MS)
    }
}

/// Time of a presence that no scan saw, and the variance of this estimate, s2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unseen {
    ms: u64,
    variance: u32,
}

impl Unseen {
    /// Before the first list of a server that was invisible. Nothing is known about it, so it has a variance as if it
    /// were twice as long or nothing.
    pub const BEFORE_VISIBLE: Unseen = Unseen { ms: 60_000, variance: 3_600 };

    /// A player joined or left in a gap, equally likely at each time.
    pub fn half_of(gap_ms: i64) -> Unseen {
        Unseen { ms: gap_ms as u64 / 2, variance: variance_of_span(gap_ms) }
    }

    /// The time since a player joined, by the connected time. `None`: the previous list, which does not have the player,
    /// contradicts it. `step_ms`: the protocol rounds down to this.
    pub fn connected(connected_ms: u64, gap_ms: i64, step_ms: i64) -> Option<Unseen> {
        let connected_ms = i64::try_from(connected_ms).ok().filter(|&ms| ms <= gap_ms + CONNECTED_SLACK_MS)?;
        // Between connected_ms and a step more, and not before the previous list.
        let latest_ms = (connected_ms + step_ms - 1).min(gap_ms);
        let earliest_ms = connected_ms.min(gap_ms);
        let ms = earliest_ms.midpoint(latest_ms).max(0);
        let variance = variance_of_span(latest_ms - earliest_ms) + variance_of_span(gap_ms) / EARLIER_PRESENCE;
        Some(Unseen { ms: ms.unsigned_abs(), variance })
    }

    /// Adds the time to a row. `connected`: what is known by connected times.
    pub fn add_to(self, row: &mut PlayerRow, connected: Option<Unseen>) {
        let connected = connected.unwrap_or(self);
        row.time_est_ms += self.ms;
        row.uncertainty.add(Uncertainty {
            time_est_s2: self.variance,
            connected_difference_ms: connected.ms as i64 - self.ms as i64,
            time_connected_s2: connected.variance,
            points_est_thousandths: 0,
        });
    }
}

/// The variance of a moment that is equally likely at each time of a span, s2, rounded down.
fn variance_of_span(span_ms: i64) -> u32 {
    u32::try_from(span_ms.saturating_mul(span_ms) / 12_000_000).unwrap_or(u32::MAX)
}

/// Time of play in which points were not seen, ms, and its variance, ms2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnseenPoints {
    pub ms: f64,
    variance: f64,
    /// Standard deviation of what is wrong in the same way at each round of the server, ms.
    common_ms: f64,
}

impl UnseenPoints {
    pub const NONE: UnseenPoints = UnseenPoints { ms: 0.0, variance: 0.0, common_ms: 0.0 };

    /// Adds the points that were probably scored at a rate per ms. Their variance is that of the time, and that of
    /// random scores.
    pub fn add_to(self, row: &mut PlayerRow, rate: f64) {
        let points = rate * self.ms;
        let random = rate * rate * self.variance + POINTS_PER_SCORE * points;
        let common = rate * self.common_ms;
        let before = row.uncertainty.points_est_thousandths as f64 / 1_000.0;
        let variance = RANDOM_FACTOR * random + common * common + 2.0 * common * before.sqrt();
        row.points_unseen_thousandths = row.points_unseen_thousandths.saturating_add(thousandths(points));
        row.uncertainty.add(Uncertainty { points_est_thousandths: thousandths(variance), ..Uncertainty::default() });
    }
}

/// Time of play between the last scan of a round and its end: from 0 to `gap_ms`.
///
/// `points` is the sum of the points of the remaining players in the new round, `rate` the sum
/// of their rates.
pub fn unseen_at_round_end(gap_ms: i64, points: i64, rate: f64) -> UnseenPoints {
    let gap = gap_ms as f64;
    let (mut age, mut weight) = (gap / 2.0, 0.0);
    if rate > 0.0 {
        weight = 1.0 / (1.0 + 6.0 * POINTS_PER_SCORE / (rate * gap));
        age += weight * (points.max(0) as f64 / rate - age);
    }
    // The points leave 1 - weight of the variance.
    UnseenPoints {
        ms: (gap - INTERMISSION_MS - age).max(0.0),
        variance: (1.0 - weight) * gap * gap / 12.0,
        common_ms: gap * COMMON_SHARE,
    }
}

/// Time of play between the last scan that saw a player and their leaving. `restarted`: a round ended in the gap.
pub fn unseen_before_leaving(gap_ms: i64, restarted: bool) -> UnseenPoints {
    let idle = if restarted { INTERMISSION_MS } else { 0.0 };
    let gap = (gap_ms as f64 - idle).max(0.0);
    UnseenPoints { ms: gap / 2.0, variance: gap * gap / 12.0, common_ms: 0.0 }
}

/// In thousandths, rounded half up.
fn thousandths(value: f64) -> u64 {
    (value * 1_000.0 + 0.5).floor() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAP_MS: i64 = 120_000;
    const HOUR_MS: u64 = 3_600_000;

    fn row(points: i64, time_est_ms: u64) -> PlayerRow {
        PlayerRow { points, time_est_ms, ..PlayerRow::new(0, 1_000.0) }
    }

    fn per_minute(rate: f64) -> f64 {
        (rate * 60_000.0 * 1e6).round() / 1e6
    }

    #[test]
    fn rate_moves_from_list_mean_to_own_rate() {
        // 180 points in two hours: 1.5 a minute.
        let rates = Rates::of([&row(150, HOUR_MS), &row(30, HOUR_MS)]);
        assert_eq!(per_minute(rates.rate(&row(0, 0))), 1.5);
        // After 5 minutes half of each: 3 a minute for the player.
        assert_eq!(per_minute(rates.rate(&row(15, 300_000))), 2.25);
        // After an hour 12 parts of 13: (150 + 7.5) / 65.
        assert_eq!(per_minute(rates.rate(&row(150, HOUR_MS))), 2.423077);
    }

    #[test]
    fn without_history_the_rate_is_0() {
        for rates in [Rates::of([]), Rates::of([&row(0, 0)]), Rates::of([&row(0, HOUR_MS)])] {
            assert_eq!(rates.rate(&row(0, 0)), 0.0);
        }
    }

    #[test]
    fn without_a_rate_a_round_ends_in_the_middle_of_the_gap() {
        assert_eq!(unseen_at_round_end(GAP_MS, 0, 0.0).ms, 55_000.0);
        assert_eq!(unseen_at_round_end(GAP_MS, 40, 0.0).ms, 55_000.0);
    }

    #[test]
    fn new_points_determine_the_age_of_the_new_round() {
        // Ten players with 1.2 points a minute each: 24 points in a gap, weight 2/3.
        let rate = 12.0 / 60_000.0;
        for (points, age_ms) in [
            (0, 20_000.0),   // 60 s, and two thirds of the way to 0
            (12, 60_000.0),  // 60 s by both
            (18, 80_000.0),  // two thirds of the way to 90 s
            (24, 100_000.0), // two thirds of the way to 120 s
        ] {
            let unseen = unseen_at_round_end(GAP_MS, points, rate).ms;
            assert!((unseen - (115_000.0 - age_ms)).abs() < 1e-6, "{points}: {unseen}");
        }
    }

    #[test]
    fn unseen_time_is_within_the_gap() {
        for gap_ms in [1, 4_000, GAP_MS, 720_000] {
            for points in [i64::MIN, -50, 0, 7, 1_000, i64::MAX] {
                for rate in [0.0, 1e-12, 1e-4, 1e9] {
                    let unseen = unseen_at_round_end(gap_ms, points, rate).ms;
                    assert!((0.0..=gap_ms as f64).contains(&unseen), "{gap_ms} {points} {rate}: {unseen}");
                }
            }
        }
    }

    #[test]
    fn unseen_time_before_leaving_is_half_the_gap() {
        assert_eq!(unseen_before_leaving(GAP_MS, false).ms, 60_000.0);
        assert_eq!(unseen_before_leaving(GAP_MS, true).ms, 57_500.0);
        assert_eq!(unseen_before_leaving(4_000, true).ms, 0.0);
    }

    /// A complete example of docs/rules.md section 15: two players with an hour each, 90 and 30 points.
    /// The map changes; one has 2 points in the new round, the other has left.
    #[test]
    fn worked_example_of_rules_section_15() {
        let (one, other) = (row(90, HOUR_MS), row(30, HOUR_MS));
        let rates = Rates::of([&one, &other]);
        // The mean is 1 a minute; (90 + 5) / 65 and (30 + 5) / 65 a minute.
        let (rate, rate_other) = (rates.rate(&one), rates.rate(&other));
        assert_eq!((per_minute(rate), per_minute(rate_other)), (1.461538, 0.538462));
        // 2.923 points are expected in a gap: weight 1 / (1 + 12 / 2.923) = 0.1959.
        // 2 points are worth 82.1 s: age 60 + 0.1959 x 22.1 = 64.3 s.
        let unseen = unseen_at_round_end(GAP_MS, 2, rate);
        assert_eq!(unseen.ms.round(), 50_670.0);
        let (mut one, mut other) = (one, other);
        unseen.add_to(&mut one, rate);
        assert_eq!(one.points_unseen_thousandths, 1_234);
        // 1.6 times 80.4 % of the variance of the gap at 1.46 a minute (0.572) and that of random scores (2.469); and that
        // of 10 s that are wrong in every round (0.059).
        assert_eq!(one.uncertainty.points_est_thousandths, 4_925);
        assert_eq!((one.points_est_error() * 1e3).round(), 2_844.0);
        // Again the same, and 2 x 0.244 x 2.219 for what both have in common.
        unseen.add_to(&mut one, rate);
        assert_eq!(one.uncertainty.points_est_thousandths, 4_925 + 6_006);
        // 57.5 s at 0.538 a minute.
        unseen_before_leaving(GAP_MS, true).add_to(&mut other, rate_other);
        assert_eq!(other.points_unseen_thousandths, 516);
    }

    #[test]
    fn joining_and_leaving_have_the_variance_of_their_gap() {
        let mut row = row(0, 0);
        Unseen::BEFORE_VISIBLE.add_to(&mut row, None);
        assert_eq!((row.time_est_ms, row.time_connected_ms()), (60_000, 60_000));
        assert_eq!((row.uncertainty.time_est_s2, row.uncertainty.time_connected_s2), (3_600, 3_600));
        // 120 s: 14,400 / 12.
        Unseen::half_of(GAP_MS).add_to(&mut row, None);
        assert_eq!(
            (row.time_est_ms, row.uncertainty.time_est_s2, row.uncertainty.time_connected_s2),
            (120_000, 4_800, 4_800)
        );
        assert_eq!(row.time_est_error_ms(), (1_281.552 * 4_800_f64.sqrt()).round() as u64);
        // Connected for 100 s: between 100 and 100.999 s.
        Unseen::half_of(GAP_MS).add_to(&mut row, Unseen::connected(100_000, GAP_MS, 1_000));
        assert_eq!((row.time_est_ms, row.time_connected_ms()), (180_000, 220_499));
        assert_eq!((row.uncertainty.time_est_s2, row.uncertainty.time_connected_s2), (6_000, 4_800 + 240));
    }

    #[test]
    fn connected_times_are_used_within_the_gap_only() {
        let of =
            |connected_ms, step_ms| Unseen::connected(connected_ms, GAP_MS, step_ms).map(|it| (it.ms, it.variance));
        assert_eq!(of(0, 1_000), Some((499, 240)));
        // Whole minutes: between 60 and 120 s.
        assert_eq!(of(60_000, 60_000), Some((89_999, 299 + 240)));
        assert_eq!(of(120_000, 60_000), Some((120_000, 240)));
        // A little too long, and contradicted by the list before.
        assert_eq!(of(125_000, 1_000), Some((120_000, 240)));
        assert_eq!(of(125_001, 1_000), None);
        assert_eq!(of(u64::MAX, 1_000), None);
    }
}
