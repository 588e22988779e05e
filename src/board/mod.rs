//! Boards: order of players and their positions (docs/rules.md section 8).
//!
//! Pure code of layer 1. [`order`] defines how a board is ordered. A server's board of a
//! few hundred players is sorted on request; nothing is stored that can be rebuilt from the
//! rows. A board of all players, of millions, is a [`Board`], and [`tree::lookup`]
//! reads it. [`query`] has these reads as values, for the API. [`fusion`] combines several
//! boards into one list, [`score_unit`] converts scores to their display units, [`cursor`] is
//! for paging. [`comparison`] compares two orders of a board.

pub mod comparison;
pub mod cursor;
pub mod fusion;
pub mod order;
pub mod query;
pub mod score_unit;
pub mod tree;
pub mod window;

pub use tree::Board;

use crate::model::PlayerKey;
use crate::model::row::{PlayerRow, Ranking};

/// A score that sorts as a number. The board's order defines which end is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(pub i64);

/// An entry of a board: a player and the values that determine the player's position.
/// [`Order`](order::Order) compares entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardEntry {
    score: Score,
    /// Tie-break value: compared after the score and before the time, smaller is better; 0
    /// on boards without a tie-breaker. Set by [`Orders::entry`](order::Orders::entry).
    pub tie: u64,
    pub at_ms: i64,
    pub player: PlayerKey,
}

impl BoardEntry {
    pub fn new(score: Score, at_ms: i64, player: PlayerKey) -> BoardEntry {
        BoardEntry { score, tie: 0, at_ms, player }
    }

    fn with_tie_break(self, tie: u64) -> BoardEntry {
        BoardEntry { tie, ..self }
    }

    pub fn score(&self) -> Score {
        self.score
    }
}

/// The score of a row in a ranking, and when it was reached; `None`: the row has no score.
fn score_of(row: &PlayerRow, ranking: Ranking) -> Option<(Score, i64)> {
    let (score, at_ms) = match ranking {
        Ranking::Clq1 => (row.clq1() as i64, row.clq1_segments.at_ms()?),
        Ranking::Clq2 => (row.clq2() as i64, row.clq2_games.at_ms()?),
        Ranking::Elo if row.elo_rounds == 0 => return None,
        Ranking::Elo => (float_to_ordered(row.elo), row.elo_at_ms),
        Ranking::Points if !row.has_points => return None,
        Ranking::Points => (row.points, row.points_at_ms),
        Ranking::Time => (row.time_ms() as i64, row.time_at_ms),
    };
    Some((Score(score), at_ms))
}

/// The scores of a row, each with the time at which it was reached, in the order of
/// `Ranking::ALL`.
pub fn scores(row: &PlayerRow) -> [Option<(Score, i64)>; 5] {
    Ranking::ALL.map(|ranking| score_of(row, ranking))
}

/// A finite `f64` as an integer of the same order.
fn float_to_ordered(x: f64) -> i64 {
    let bits = (x + 0.0).to_bits() as i64; // -0.0 becomes 0.0
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Inverse of [`float_to_ordered`].
fn ordered_to_float(sorted: i64) -> f64 {
    f64::from_bits((sorted ^ (((sorted >> 63) as u64) >> 1) as i64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_integers_sort_like_their_floats() {
        let values = [-1e300, -2.0, -1.5, -0.0, 0.0, 1e-300, 887.5, 1000.0, 1e300];
        let sorted: Vec<i64> = values.iter().map(|&v| float_to_ordered(v)).collect();
        assert!(sorted.is_sorted());
        assert_eq!(float_to_ordered(-0.0), float_to_ordered(0.0));
        assert!(values.iter().all(|&v| ordered_to_float(float_to_ordered(v)) == v));
    }
}
