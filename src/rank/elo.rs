//! ELO (docs/rules.md section 7).

/// Initial rating, also used for every unusable entry.
pub const ELO_START: f64 = 1000.0;

/// Settings of docs/rules.md section 7: the section `elo` of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EloRules {
    pub k: f64,
    /// K times the number of opponents is at most this; 0: no limit.
    pub k_times_opponents_max: f64,
    /// Ratings continue from the previous week.
    pub carry_over: bool,
}

impl Default for EloRules {
    fn default() -> Self {
        EloRules { k: 25.0, k_times_opponents_max: 225.0, carry_over: false }
    }
}

/// New ratings of a final list, from the points and the ratings before the round, both in the
/// order of the snapshot's list. Sums are computed in that order, so the result is
/// bit-identical everywhere.
pub fn new_ratings(points: &[i64], ratings: &[f64], rules: EloRules) -> Vec<f64> {
    assert_eq!(points.len(), ratings.len());
    let n = points.len();
    if n < 2 {
        return ratings.to_vec();
    }
    let opponents = (n - 1) as f64;
    let k = match rules.k_times_opponents_max {
        cap if cap > 0.0 => rules.k.min(cap / opponents),
        _ => rules.k,
    };
    let total: f64 = ratings.iter().sum();
    let mut ascending = points.to_vec();
    ascending.sort_unstable();
    let new_rating = |(&own, &rating): (&i64, &f64)| {
        let beaten = ascending.partition_point(|&p| p < own);
        let tied = ascending.partition_point(|&p| p <= own) - beaten - 1;
        let won = beaten as f64 + tied as f64 / 2.0;
        let average = (total - rating) / opponents;
        let expected = opponents / (1.0 + 10f64.powf((average - rating) / 400.0));
        rating + k * (won - expected)
    };
    points.iter().zip(ratings).map(new_rating).collect()
}

/// As displayed: rounded half up.
pub fn shown(elo: f64) -> i64 {
    (elo + 0.5).floor() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenth_of_ten_becomes_888() {
        let points: Vec<i64> = (0..10).rev().collect();
        let new = new_ratings(&points, &[1000.0; 10], EloRules::default());
        assert_eq!(new[9], 887.5);
        assert_eq!(shown(new[9]), 888);
        assert_eq!(shown(new[0]), 1113);
    }

    #[test]
    fn two_player_round_equals_standard_elo() {
        let new = new_ratings(&[2, 1], &[1200.0, 1000.0], EloRules::default());
        let expected = 1.0 / (1.0 + 10f64.powf(-0.5));
        assert!((new[0] - (1200.0 + 25.0 * (1.0 - expected))).abs() < 1e-9);
        assert!((new[0] + new[1] - 2200.0).abs() < 1e-9);
    }

    #[test]
    fn tie_changes_nothing_and_k_is_capped() {
        assert_eq!(new_ratings(&[5, 5], &[1000.0; 2], EloRules::default()), [1000.0; 2]);
        let points: Vec<i64> = (0..64).rev().collect();
        let new = new_ratings(&points, &[1000.0; 64], EloRules::default());
        assert_eq!(new[0], 1000.0 + 225.0 / 63.0 * 31.5);
        let uncapped = EloRules { k_times_opponents_max: 0.0, ..EloRules::default() };
        assert_eq!(new_ratings(&points, &[1000.0; 64], uncapped)[0], 1000.0 + 25.0 * 31.5);
    }
}
