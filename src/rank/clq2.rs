//! CLQ2: scores for reaching the top (docs/rules.md section 6).

/// How the quarter of the pivot's points is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quarter {
    /// The points fit at most four whole times into the pivot's points.
    #[default]
    Whole,
    /// `4 * points >= pivot`.
    Exact,
}

/// Game points of a final list, given its points in descending order.
pub fn game_points(points: &[i64], quarter: Quarter) -> Vec<u64> {
    let mut scores = vec![0; points.len()];
    let k = (points.len() / 4).max(1);
    let Some(&pivot) = points.get(k - 1) else { return scores };
    if pivot <= 0 {
        return scores;
    }
    let serious = points
        .iter()
        .take_while(|&&p| {
            p > 0
                && match quarter {
                    Quarter::Whole => pivot / p <= 4,
                    Quarter::Exact => 4 * p >= pivot,
                }
        })
        .count();
    let mut position = 1;
    for i in 0..serious {
        if i > 0 && points[i] < points[i - 1] {
            position = i + 1;
        }
        scores[i] = (serious - position + 1) as u64;
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: [i64; 12] = [120, 100, 90, 89, 70, 40, 30, 20, 12, 3, 1, 0];

    #[test]
    fn twelve_player_example_of_rules_scores_8_to_1() {
        assert_eq!(game_points(&EXAMPLE, Quarter::Whole), [8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0]);
        assert_eq!(game_points(&EXAMPLE, Quarter::Exact), [7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn tied_players_share_the_score_and_no_pivot_scores_zero() {
        assert_eq!(game_points(&[10, 10, 5, 5, 1], Quarter::Whole), [4, 4, 2, 2, 0]);
        assert_eq!(game_points(&[3, 0], Quarter::Whole), [1, 0]);
        assert_eq!(game_points(&[3, -2], Quarter::Whole), [1, 0]);
        assert_eq!(game_points(&[1, 0, 0, 0, 0, 0, 0, 0], Quarter::Whole), [0; 8]);
        assert_eq!(game_points(&[], Quarter::Whole), [0; 0]);
    }
}
