//! The row of a player from its archived values.
//!
//! The archive has the sums of the ten best segments and games, not each of them. A sum is divided
//! evenly, so the row has the same score. A later segment or game adds at most what it would have
//! added to the real values, because equal parts give the smallest sum of the ten best of all
//! divisions.

use crate::limits::BEST_MAX;
use crate::model::archive::PlayerWeekArchive;
use crate::model::row::{PlayerRow, Ranking, TopTen};

/// Length of a segment, ms (docs/rules.md section 5).
const SEGMENT_MS: u64 = 720_000;

/// Error: why the values do not fit.
pub(super) fn restore(archived: &PlayerWeekArchive) -> Result<PlayerRow, String> {
    let reached = |ranking: Ranking| archived.places[ranking as usize].as_ref().map(|place| place.reached_ms);
    let required = |ranking: Ranking| {
        let missing = || format!("{}_reached_after_ms is NULL, but there is a score", ranking.name());
        reached(ranking).ok_or_else(missing)
    };
    let time_at_ms = required(Ranking::Time)?;
    let mut row = PlayerRow::new(time_at_ms, archived.elo);
    (row.measured_ms, row.starts, row.elo_rounds) = (archived.measured_ms, archived.starts, archived.elo_rounds);
    if archived.measured_ms > i64::MAX as u64 / 2 || row.time_ms() != archived.time_ms {
        return Err("time_ms is not measured_ms and 60 s for each start".to_owned());
    }
    if !archived.elo.is_finite() {
        return Err("elo is not a number".to_owned());
    }
    if archived.elo_rounds > 0 {
        row.elo_at_ms = required(Ranking::Elo)?;
    }
    row.time_est_ms = archived.time_est_ms;
    row.points = archived.points;
    if let Some(reached_ms) = reached(Ranking::Points) {
        (row.has_points, row.points_at_ms) = (true, reached_ms);
    }
    row.points_unseen_thousandths = unseen_thousandths(archived.points, archived.points_est)?;
    if archived.clq1 > i64::MAX as u64 || archived.clq2 > i64::MAX as u64 {
        return Err("clq1 or clq2 is too large".to_owned());
    }
    if archived.clq1 > 0 {
        // One more segment may have begun in the week before.
        let segments = archived.measured_ms / SEGMENT_MS + 1;
        row.clq1_segments = parts(archived.clq1, segments, required(Ranking::Clq1)?);
    }
    if archived.clq2 > 0 {
        row.clq2_games = parts(archived.clq2, archived.elo_rounds.into(), required(Ranking::Clq2)?);
    }
    Ok(row)
}

/// A sum as at most `parts_max` values, reached at `at_ms`.
fn parts(sum: u64, parts_max: u64, at_ms: i64) -> TopTen {
    let parts = parts_max.clamp(1, BEST_MAX as u64);
    let mut ten = TopTen::default();
    for n in 0..parts {
        ten.insert(sum / parts + u64::from(n < sum % parts), at_ms);
    }
    ten
}

/// The estimated points that no scan saw, from which `points_est` follows.
fn unseen_thousandths(points: i64, points_est: f64) -> Result<u64, String> {
    let unseen = ((points_est - points as f64) * 1_000.0).round();
    // Beyond 2^53 a double has no thousandths. Such a row exists only if somebody changed it by
    // hand.
    if !(0.0..9.0e15).contains(&unseen) {
        return Err("points_est is not points or more".to_owned());
    }
    Ok(unseen as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PlayerKey;
    use crate::model::archive::{BoardOrder, BoardPlace};

    fn archived() -> PlayerWeekArchive {
        let place = |reached_ms| Some(BoardPlace { reached_ms, order: BoardOrder::Position(1) });
        PlayerWeekArchive {
            player: PlayerKey(1),
            measured_ms: 4 * SEGMENT_MS + 5,
            starts: 2,
            time_ms: 4 * SEGMENT_MS + 120_005,
            time_est_ms: 77,
            points: -3,
            points_est: -2.999,
            elo: 1_000.1 / 3.0,
            elo_rounds: 3,
            clq1: 100_003,
            clq2: 2,
            places: [place(11), place(12), place(13), place(14), place(15)],
        }
    }

    #[test]
    fn restored_row_has_the_archived_values() {
        let it = archived();
        let row = restore(&it).unwrap();
        assert_eq!((row.clq1(), row.clq2(), row.points, row.time_ms()), (it.clq1, it.clq2, -3, it.time_ms));
        assert_eq!((row.points_est(), row.elo, row.elo_rounds), (it.points_est, it.elo, 3));
        assert_eq!(row.clq1_segments.values().collect::<Vec<_>>(), [20_001, 20_001, 20_001, 20_000, 20_000]);
        assert_eq!(row.clq2_games.values().collect::<Vec<_>>(), [1, 1]);
        let reached = crate::board::scores(&row).map(|score| score.unwrap().1);
        assert_eq!(reached, [11, 12, 13, 14, 15]);
    }

    proptest::proptest! {
        #[test]
        fn points_est_is_exact_to_the_bit(points in -(1_i64 << 40)..1_i64 << 40, unseen in 0_u64..1 << 40) {
            let row = PlayerRow { points, points_unseen_thousandths: unseen, ..PlayerRow::new(0, 0.0) };
            let restored = unseen_thousandths(points, row.points_est()).unwrap();
            let restored = PlayerRow { points_unseen_thousandths: restored, ..row.clone() };
            proptest::prop_assert_eq!(restored.points_est(), row.points_est());
        }

        /// Further values never raise the score above that of the real segments.
        #[test]
        fn equal_parts_never_overstate_later_scores(
            real in proptest::collection::vec(1_u64..50, 1..10),
            later in proptest::collection::vec(1_u64..50, 0..12),
            further in 0_u64..4,
        ) {
            let mut exact = TopTen::default();
            real.iter().for_each(|value| exact.insert(*value, 1));
            let mut restored = parts(exact.sum(), real.len() as u64 + further, 1);
            proptest::prop_assert_eq!(restored.sum(), exact.sum());
            for value in later {
                exact.insert(value, 2);
                restored.insert(value, 2);
                proptest::prop_assert!(restored.sum() <= exact.sum());
            }
        }
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        type Change = fn(&mut PlayerWeekArchive);
        let cases: [(Change, &str); 7] = [
            (|it| it.time_ms += 1, "time_ms"),
            (|it| it.elo = f64::NAN, "elo"),
            (|it| it.points_est = -3.5, "points_est"),
            (|it| it.points_est = 1e300, "points_est"),
            (|it| it.clq1 = u64::MAX, "clq1"),
            (|it| it.measured_ms = u64::MAX, "time_ms"),
            (|it| it.places[4] = None, "time_reached_after_ms"),
        ];
        for (change, want) in cases {
            let mut it = archived();
            change(&mut it);
            let why = restore(&it).unwrap_err();
            assert!(why.contains(want), "{want}: {why}");
        }
        let mut unranked = archived();
        (unranked.places[3], unranked.points, unranked.points_est) = (None, 0, 0.0);
        assert!(!restore(&unranked).unwrap().has_points);
    }
}
