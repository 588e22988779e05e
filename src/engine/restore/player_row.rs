//! The row of a player from its archived values.

use crate::model::archive::PlayerWeekArchive;
use crate::model::row::{PlayerRow, Ranking};

/// Error: why the values do not fit.
pub(super) fn restore(archived: &PlayerWeekArchive) -> Result<PlayerRow, String> {
    let reached = |ranking: Ranking| archived.places[ranking as usize].as_ref().map(|place| place.reached_ms);
    let required = |ranking: Ranking| {
        let missing = || format!("{}_reached_after_ms is NULL, but there is a score", ranking.name());
        reached(ranking).ok_or_else(missing)
    };
    let time_at_ms = required(Ranking::Time)?;
    let mut row = PlayerRow::new(time_at_ms, archived.elo);
    (row.measured_ms, row.starts) = (archived.measured_ms, archived.starts);
    (row.elo_rounds, row.elo_rounds_sure) = (archived.elo_rounds, archived.elo_rounds_sure);
    row.uncertainty = archived.uncertainty;
    if archived.measured_ms > i64::MAX as u64 / 2 || row.time_ms() != archived.time_ms {
        return Err("time_ms is not measured_ms and 60 s for each start".to_owned());
    }
    if !archived.elo.is_finite() {
        return Err("elo is not a number".to_owned());
    }
    if archived.elo_rounds_sure > archived.elo_rounds {
        return Err("elo_rounds_sure is more than elo_rounds".to_owned());
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
    if let Some(ten_best) = &archived.ten_best {
        (row.clq1_segments, row.clq2_games) = (ten_best[0].clone(), ten_best[1].clone());
    }
    for (name, sum, ten) in
        [("clq1_segments", archived.clq1, &row.clq1_segments), ("clq2_games", archived.clq2, &row.clq2_games)]
    {
        if ten.values().try_fold(0_u64, u64::checked_add) != Some(sum) || sum > i64::MAX as u64 {
            return Err(format!("{name} do not add up"));
        }
    }
    Ok(row)
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
    use crate::model::row::{TopTen, Uncertainty};

    fn ten<const N: usize>(values: [(u64, i64); N]) -> TopTen {
        let mut ten = TopTen::default();
        values.into_iter().for_each(|(value, at_ms)| ten.insert(value, at_ms));
        ten
    }

    fn archived() -> PlayerWeekArchive {
        let place = |reached_ms| Some(BoardPlace { reached_ms, order: BoardOrder::Position(1) });
        PlayerWeekArchive {
            player: PlayerKey(1),
            measured_ms: 2_880_005,
            starts: 2,
            time_ms: 3_000_005,
            time_est_ms: 77,
            points: -3,
            points_est: -2.999,
            elo: 1_000.1 / 3.0,
            elo_rounds: 3,
            elo_rounds_sure: 1,
            uncertainty: Uncertainty {
                time_est_s2: 2_400,
                connected_difference_ms: -3_000,
                time_connected_s2: 300,
                points_est_thousandths: 81_000,
            },
            clq1: 100_003,
            clq2: 2,
            places: [place(11), place(12), place(13), place(14), place(15)],
            ten_best: Some(Box::new([ten([(100_000, 11), (3, 8)]), ten([(2, 12)])])),
        }
    }

    #[test]
    fn restored_row_has_the_archived_values() {
        let it = archived();
        let row = restore(&it).unwrap();
        assert_eq!((row.clq1(), row.clq2(), row.points, row.time_ms()), (it.clq1, it.clq2, -3, it.time_ms));
        assert_eq!((row.points_est(), row.elo, row.elo_rounds), (it.points_est, it.elo, 3));
        assert_eq!([row.clq1_segments.clone(), row.clq2_games.clone()], *it.ten_best.unwrap());
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
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        type Change = fn(&mut PlayerWeekArchive);
        let cases: [(Change, &str); 9] = [
            (|it| it.time_ms += 1, "time_ms"),
            (|it| it.elo = f64::NAN, "elo"),
            (|it| it.points_est = -3.5, "points_est"),
            (|it| it.points_est = 1e300, "points_est"),
            (|it| it.clq1 += 1, "clq1_segments"),
            (|it| it.ten_best = None, "clq1_segments"),
            (|it| it.ten_best.as_mut().unwrap()[1] = ten([(u64::MAX, 1), (3, 1)]), "clq2_games"),
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
