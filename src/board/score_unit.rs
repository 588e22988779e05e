//! Converts scores to their display units, and displayed numbers to ranges of raw scores
//! for queries by score.
//!
//! A displayed score is a number in the unit of its ranking: clq1 in points per second, elo
//! as rating, time in seconds, clq2 and points unchanged. A raw score is the `i64` that a
//! board stores ([`Score`]).
//!
//! Several raw scores may have the same displayed score, and a number may lie between two
//! displayed scores. The conversion of a displayed number therefore returns bounds of raw
//! scores, not one score. It finds them by a binary search that compares displayed scores,
//! so rounding cannot put a score on the wrong side of a bound.

use std::ops::Bound;

use super::{Score, float_to_ordered, ordered_to_float};
use crate::model::Ranking;

/// Raw clq1 score of one point per second. Raw clq1 scores are thousandths of a point, summed
/// over ten segments of 720 s (docs/rules.md section 5).
pub const CLQ1_PER_POINT_PER_SECOND: f64 = 10.0 * 720.0 * 1_000.0;

/// Raw time score of one second: raw time scores are milliseconds.
const TIME_PER_SECOND: f64 = 1_000.0;

/// Returns a score in the unit of its ranking.
pub fn display_score(ranking: Ranking, score: Score) -> f64 {
    let raw = score.0;
    match ranking {
        Ranking::Clq1 => raw as f64 / CLQ1_PER_POINT_PER_SECOND,
        Ranking::Clq2 | Ranking::Points => raw as f64,
        Ranking::Elo => ordered_to_float(raw),
        Ranking::Time => raw as f64 / TIME_PER_SECOND,
    }
}

/// A range of displayed scores; `None`: no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DisplayRange {
    pub low: Option<Bound<f64>>,
    pub high: Option<Bound<f64>>,
}

/// A range of raw scores, the argument of [`Board::positions_with_scores`](super::Board::positions_with_scores).
pub type RawRange = (Bound<i64>, Bound<i64>);

impl DisplayRange {
    /// Returns the range of exactly those raw scores whose displayed scores are in this range.
    pub fn raw(&self, ranking: Ranking) -> RawRange {
        let low = match self.low.unwrap_or(Bound::Unbounded) {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(x) => at_least(ranking, x),
            Bound::Excluded(x) => above(ranking, x),
        };
        let high = match self.high.unwrap_or(Bound::Unbounded) {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(x) => before(above(ranking, x)),
            Bound::Excluded(x) => before(at_least(ranking, x)),
        };
        (low, high)
    }
}

/// Returns the range of exactly those raw scores that are displayed as `x`. It is empty if
/// `x` lies between two displayed scores.
pub fn raw_range(ranking: Ranking, x: f64) -> RawRange {
    DisplayRange { low: Some(Bound::Included(x)), high: Some(Bound::Included(x)) }.raw(ranking)
}

/// Returns the lower bound of the raw scores displayed as `x` or more.
fn at_least(ranking: Ranking, x: f64) -> Bound<i64> {
    first_raw_where(ranking, |shown| shown >= x)
}

/// Returns the lower bound of the raw scores displayed as more than `x`.
fn above(ranking: Ranking, x: f64) -> Bound<i64> {
    first_raw_where(ranking, |shown| shown > x)
}

/// Returns the lower bound of the raw scores for whose displayed scores `holds` is true.
/// `holds` must stay true for all greater scores. If it is true for none, the bound is
/// `Excluded(i64::MAX)`, which no raw score satisfies.
fn first_raw_where(ranking: Ranking, holds: impl Fn(f64) -> bool) -> Bound<i64> {
    let (mut low, mut high) = match ranking {
        // Raw scores beyond the infinities are NaN.
        Ranking::Elo => (float_to_ordered(f64::NEG_INFINITY), float_to_ordered(f64::INFINITY)),
        _ => (i64::MIN, i64::MAX),
    };
    if !holds(display_score(ranking, Score(high))) {
        return Bound::Excluded(i64::MAX);
    }
    while low < high {
        let middle = (i128::from(low) + i128::from(high)).div_euclid(2) as i64;
        match holds(display_score(ranking, Score(middle))) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    Bound::Included(low)
}

/// Returns the upper bound of the raw scores below a lower bound. If no raw score satisfies
/// the lower bound, all are below it.
fn before(low: Bound<i64>) -> Bound<i64> {
    match low {
        Bound::Included(first) => Bound::Excluded(first),
        Bound::Excluded(_) | Bound::Unbounded => Bound::Unbounded,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeBounds;

    use proptest::prelude::*;

    use super::*;

    const BOUNDS: [fn(f64) -> Bound<f64>; 2] = [Bound::Included, Bound::Excluded];

    fn raw(ranking: Ranking) -> impl Strategy<Value = i64> {
        match ranking {
            Ranking::Elo => {
                prop_oneof![(0.0..3_000.0).prop_map(float_to_ordered), (-1e9..1e9).prop_map(float_to_ordered)].boxed()
            }
            _ => prop_oneof![0..1_000_i64, 0..1_i64 << 40, any::<i64>(), Just(i64::MIN), Just(i64::MAX)].boxed(),
        }
    }

    fn check(ranking: Ranking, x: f64, other: f64, score: i64) {
        let shown = display_score(ranking, Score(score));
        for low in BOUNDS {
            for high in BOUNDS {
                let range = DisplayRange { low: Some(low(x)), high: Some(high(other)) };
                let is_within = (low(x), high(other)).contains(&shown);
                assert_eq!(range.raw(ranking).contains(&score), is_within, "{ranking:?} {shown} in {range:?}");
            }
            let open = [DisplayRange { low: Some(low(x)), high: None }, DisplayRange { low: None, high: Some(low(x)) }];
            assert_eq!(open[0].raw(ranking).contains(&score), (low(x), Bound::Unbounded).contains(&shown));
            assert_eq!(open[1].raw(ranking).contains(&score), (Bound::Unbounded, low(x)).contains(&shown));
        }
        assert_eq!(raw_range(ranking, x).contains(&score), shown == x, "{ranking:?} {shown} as {x}");
    }

    proptest! {
        /// The bounds are displayed scores, the floats next to them, and arbitrary numbers.
        #[test]
        fn display_bounds_select_the_exact_raw_scores(
            (ranking, a, b, c) in (0..5_usize).prop_flat_map(|r| {
                let ranking = Ranking::ALL[r];
                (Just(ranking), raw(ranking), raw(ranking), raw(ranking))
            }),
            near in -3..=3_i64,
            any: f64,
        ) {
            let a_shown = display_score(ranking, Score(a));
            let neighbour = if ranking == Ranking::Elo { a.wrapping_add(near) } else { a.saturating_add(near) };
            for x in [a_shown, a_shown.next_up(), a_shown.next_down()] {
                for score in [a, neighbour, b, c] {
                    check(ranking, x, display_score(ranking, Score(b)), score);
                }
            }
            prop_assume!(!any.is_nan());
            check(ranking, any, a_shown, c);
        }
    }

    #[test]
    fn display_unit_of_each_ranking() {
        let at_least = |ranking, x| DisplayRange { low: Some(Bound::Included(x)), high: None }.raw(ranking).0;
        assert_eq!(at_least(Ranking::Clq1, 2.5), Bound::Included(18_000_000));
        assert_eq!(at_least(Ranking::Time, 0.0015), Bound::Included(2));
        assert_eq!(at_least(Ranking::Points, -3.0), Bound::Included(-3));
        assert_eq!(at_least(Ranking::Elo, 1_000.0), Bound::Included(float_to_ordered(1_000.0)));
        assert_eq!(display_score(Ranking::Elo, Score(float_to_ordered(-887.25))), -887.25);
        assert_eq!(at_least(Ranking::Clq2, 1e300), Bound::Excluded(i64::MAX), "no raw score");
        assert_eq!(raw_range(Ranking::Points, 0.5), (Bound::Included(1), Bound::Excluded(1)));
    }
}
