//! Converts scores to their display units, and displayed numbers to ranges of raw scores
//! for queries by score.
//!
//! A displayed score is a number in the unit of its ranking: clq1 in points per second, elo
//! as rating, time in seconds, clq2 and points unchanged. Several raw scores may have the
//! same displayed score, and a number may lie between two displayed scores. The inverse
//! therefore returns bounds of raw scores, not one score. It finds them by comparing
//! displayed scores, not by arithmetic, so rounding cannot put a score on the wrong side.

use std::ops::Bound;

use super::{Score, sortable, unsortable};
use crate::model::Ranking;

/// Thousandths of a point over ten full segments of 720 s (docs/rules.md section 5).
pub const CLQ1_PER_POINT_PER_SECOND: f64 = 10.0 * 720.0 * 1_000.0;

/// Milliseconds.
const TIME_PER_SECOND: f64 = 1_000.0;

/// A score in the unit of its ranking.
pub fn display_score(ranking: Ranking, score: Score) -> f64 {
    let raw = score.0;
    match ranking {
        Ranking::Clq1 => raw as f64 / CLQ1_PER_POINT_PER_SECOND,
        Ranking::Clq2 | Ranking::Points => raw as f64,
        Ranking::Elo => unsortable(raw),
        Ranking::Time => raw as f64 / TIME_PER_SECOND,
    }
}

/// A range of displayed scores; `None`: no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DisplayRange {
    pub low: Option<Bound<f64>>,
    pub high: Option<Bound<f64>>,
}

/// A range of raw scores, the argument of [`Set::range`](super::tree::Set::range).
pub type RawRange = (Bound<i64>, Bound<i64>);

impl DisplayRange {
    /// Exactly the raw scores whose displayed scores are in the range.
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

/// Exactly the raw scores displayed as `x`; an empty range where `x` lies between two.
pub fn raw_range(ranking: Ranking, x: f64) -> RawRange {
    DisplayRange { low: Some(Bound::Included(x)), high: Some(Bound::Included(x)) }.raw(ranking)
}

/// The lower bound of the raw scores displayed as `x` or more.
fn at_least(ranking: Ranking, x: f64) -> Bound<i64> {
    first_raw_where(ranking, |shown| shown >= x)
}

fn above(ranking: Ranking, x: f64) -> Bound<i64> {
    first_raw_where(ranking, |shown| shown > x)
}

/// The lower bound of the raw scores for which `holds` is true. `holds` must be monotonic.
fn first_raw_where(ranking: Ranking, holds: impl Fn(f64) -> bool) -> Bound<i64> {
    let (mut low, mut high) = match ranking {
        // There are no numbers beyond the infinities.
        Ranking::Elo => (sortable(f64::NEG_INFINITY), sortable(f64::INFINITY)),
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

/// The upper bound that ends directly below a lower bound.
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
            Ranking::Elo => prop_oneof![(0.0..3_000.0).prop_map(sortable), (-1e9..1e9).prop_map(sortable)].boxed(),
            _ => prop_oneof![0..1_000_i64, 0..1_i64 << 40, any::<i64>(), Just(i64::MIN), Just(i64::MAX)].boxed(),
        }
    }

    fn check(ranking: Ranking, x: f64, other: f64, score: i64) {
        let seen = display_score(ranking, Score(score));
        for low in BOUNDS {
            for high in BOUNDS {
                let range = DisplayRange { low: Some(low(x)), high: Some(high(other)) };
                let within = (low(x), high(other)).contains(&seen);
                assert_eq!(range.raw(ranking).contains(&score), within, "{ranking:?} {seen} in {range:?}");
            }
            let open = [DisplayRange { low: Some(low(x)), high: None }, DisplayRange { low: None, high: Some(low(x)) }];
            assert_eq!(open[0].raw(ranking).contains(&score), (low(x), Bound::Unbounded).contains(&seen));
            assert_eq!(open[1].raw(ranking).contains(&score), (Bound::Unbounded, low(x)).contains(&seen));
        }
        assert_eq!(raw_range(ranking, x).contains(&score), seen == x, "{ranking:?} {seen} as {x}");
    }

    proptest! {
        /// Bounds that are displayed scores, their neighbours, and arbitrary numbers.
        #[test]
        fn display_bounds_select_the_exact_raw_scores(
            (ranking, a, b, c) in (0..5_usize).prop_flat_map(|r| {
                let ranking = Ranking::ALL[r];
                (Just(ranking), raw(ranking), raw(ranking), raw(ranking))
            }),
            near in -3..=3_i64,
            any: f64,
        ) {
            let a_seen = display_score(ranking, Score(a));
            let neighbour = if ranking == Ranking::Elo { a.wrapping_add(near) } else { a.saturating_add(near) };
            for x in [a_seen, a_seen.next_up(), a_seen.next_down()] {
                for score in [a, neighbour, b, c] {
                    check(ranking, x, display_score(ranking, Score(b)), score);
                }
            }
            prop_assume!(!any.is_nan());
            check(ranking, any, a_seen, c);
        }
    }

    #[test]
    fn display_unit_of_each_ranking() {
        let at_least = |ranking, x| DisplayRange { low: Some(Bound::Included(x)), high: None }.raw(ranking).0;
        assert_eq!(at_least(Ranking::Clq1, 2.5), Bound::Included(18_000_000));
        assert_eq!(at_least(Ranking::Time, 0.0015), Bound::Included(2));
        assert_eq!(at_least(Ranking::Points, -3.0), Bound::Included(-3));
        assert_eq!(at_least(Ranking::Elo, 1_000.0), Bound::Included(sortable(1_000.0)));
        assert_eq!(display_score(Ranking::Elo, Score(sortable(-887.25))), -887.25);
        assert_eq!(at_least(Ranking::Clq2, 1e300), Bound::Excluded(i64::MAX), "no raw score");
        assert_eq!(raw_range(Ranking::Points, 0.5), (Bound::Included(1), Bound::Excluded(1)));
    }
}
