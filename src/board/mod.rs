//! Boards: order and positions (RULES section 8).
//!
//! Floor 1: pure. A server's board of a few hundred players is ordered when it
//! is asked for; nothing is kept that a read of the rows can rebuild. A board of
//! the whole field, of millions, is a [`set::Set`], and [`query`] is what can be
//! asked of it. A [`question`] is one of those as a value, for the edges;
//! [`fusion`] makes one list of several boards, [`shown`] knows the units of
//! scores, `cursor` the text of a cursor.

mod block;
mod cursor;
pub mod fusion;
mod level;
mod members;
pub mod order;
pub mod query;
pub mod question;
pub mod set;
pub mod shown;
pub mod window;

pub use cursor::BadCursor;

use crate::model::row::{Ranking, WeekRow};
use crate::model::{PlayerKey, ServerKey};

/// A score that sorts as a number: higher is better in all five rankings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(pub i64);

/// A place in the order of a board: score descending, then the earlier moment
/// at which it was reached, then the smaller player key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    descending: std::cmp::Reverse<Score>,
    pub at_ms: i64,
    pub player: PlayerKey,
}

impl Place {
    pub fn new(score: Score, at_ms: i64, player: PlayerKey) -> Place {
        Place { descending: std::cmp::Reverse(score), at_ms, player }
    }

    pub fn score(&self) -> Score {
        self.descending.0
    }
}

/// The place of a row in a ranking; `None`: no score, absent from the board.
pub fn place(player: PlayerKey, row: &WeekRow, ranking: Ranking) -> Option<Place> {
    let (score, at_ms) = match ranking {
        Ranking::Clq1 => (Some(row.clq1()).filter(|&s| s > 0)? as i64, row.clq1_at),
        Ranking::Clq2 => (Some(row.clq2()).filter(|&s| s > 0)? as i64, row.clq2_at),
        Ranking::Elo if row.elo_rounds == 0 => return None,
        Ranking::Elo => (sortable(row.elo), row.elo_at),
        Ranking::Points => (row.points, row.points_at),
        Ranking::Time => (row.time_ms() as i64, row.time_at),
    };
    Some(Place::new(Score(score), at_ms, player))
}

/// A finite `f64` as an integer of the same order.
fn sortable(x: f64) -> i64 {
    let bits = (x + 0.0).to_bits() as i64; // -0.0 becomes 0.0
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The way back.
fn unsortable(sorted: i64) -> f64 {
    f64::from_bits((sorted ^ (((sorted >> 63) as u64) >> 1) as i64) as u64)
}

/// The board: places best first, position 1 at index 0.
pub fn board(rows: &[(PlayerKey, WeekRow)], ranking: Ranking) -> Vec<Place> {
    let mut places: Vec<Place> = rows.iter().filter_map(|(player, row)| place(*player, row, ranking)).collect();
    places.sort_unstable();
    places
}

/// Positions of every row in the five rankings, in the order of the rows, which
/// must be in order of player key.
pub fn positions(rows: &[(PlayerKey, WeekRow)]) -> Vec<[Option<u32>; 5]> {
    debug_assert!(rows.is_sorted_by_key(|(player, _)| *player));
    let mut positions = vec![[None; 5]; rows.len()];
    for ranking in Ranking::ALL {
        for (index, place) in board(rows, ranking).into_iter().enumerate() {
            let row =
                rows.binary_search_by_key(&place.player, |(player, _)| *player).expect("the board is of these rows");
            positions[row][ranking as usize] = Some(index as u32 + 1);
        }
    }
    positions
}

/// Servers in order of player-milliseconds of a week, descending, then smaller
/// key, each with its rank from 1; without any, no rank (RULES section 10).
pub fn server_ranks(mut player_ms: Vec<(ServerKey, u64)>) -> Vec<(ServerKey, u32)> {
    player_ms.retain(|&(_, ms)| ms > 0);
    player_ms.sort_unstable_by_key(|&(server, ms)| (std::cmp::Reverse(ms), server));
    player_ms.iter().zip(1..).map(|(&(server, _), rank)| (server, rank)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_keep_their_order() {
        let values = [-1e300, -2.0, -1.5, -0.0, 0.0, 1e-300, 887.5, 1000.0, 1e300];
        let sorted: Vec<i64> = values.iter().map(|&v| sortable(v)).collect();
        assert!(sorted.is_sorted());
        assert_eq!(sortable(-0.0), sortable(0.0));
        assert!(values.iter().all(|&v| unsortable(sortable(v)) == v));
    }

    #[test]
    fn order_and_absence() {
        let row = |points, at| {
            let mut row = WeekRow::new(at, 1000.0);
            row.points = points;
            row
        };
        let rows = vec![
            (PlayerKey(1), row(0, 50)),
            (PlayerKey(2), row(7, 30)),
            (PlayerKey(3), row(7, 20)),
            (PlayerKey(4), row(0, 50)),
            (PlayerKey(5), row(9, 99)),
        ];
        let order: Vec<u32> = board(&rows, Ranking::Points).iter().map(|p| p.player.0).collect();
        assert_eq!(order, [5, 3, 2, 1, 4]);
        assert!(board(&rows, Ranking::Elo).is_empty());
        assert_eq!(positions(&rows)[2], [None, None, None, Some(2), Some(1)]);
    }
}
