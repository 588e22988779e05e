//! The final positions on one server in the rankings whose best positions are kept permanently,
//! computed from its rows in small steps: see [`PositionBuilder`].

use crate::board::order::Orders;
use crate::engine::boards::positions::{PositionBuilder, ROWS_PER_CHUNK};
use crate::engine::chunked_vec::ChunkedVec;
use crate::model::PlayerKey;
use crate::model::row::{PlayerRow, Ranking};

const RANKINGS: usize = Ranking::WITH_BEST_POSITIONS.len();

#[derive(Debug)]
pub(super) struct FinalPositions {
    /// With their ratings, in order of player key.
    players: ChunkedVec<(PlayerKey, f64), ROWS_PER_CHUNK>,
    positions: PositionBuilder<RANKINGS>,
    last_read: Option<PlayerKey>,
    is_read: bool,
    next_index: usize,
}

/// The result of a closed week for a player on the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FinalPosition {
    pub player: PlayerKey,
    /// In the order of [`Ranking::WITH_BEST_POSITIONS`]; `None`: absent.
    pub positions: [Option<u32>; RANKINGS],
    pub elo: f64,
}

impl FinalPositions {
    /// For a server whose boards have these orders.
    pub fn new(orders: Orders) -> FinalPositions {
        let positions = PositionBuilder::new(orders, Ranking::WITH_BEST_POSITIONS);
        FinalPositions { players: ChunkedVec::default(), positions, last_read: None, is_read: false, next_index: 0 }
    }

    /// Adds the next rows, in order of player key.
    pub fn push_rows(&mut self, rows: &[(PlayerKey, PlayerRow)]) {
        for (key, row) in rows {
            debug_assert!(!self.is_read && self.last_read < Some(*key));
            self.last_read = Some(*key);
            self.players.push((*key, row.elo));
        }
        self.positions.push_rows(rows);
    }

    pub fn last_read(&self) -> Option<PlayerKey> {
        self.last_read
    }

    /// Marks all rows as read.
    pub fn finish_reading(&mut self) {
        self.is_read = true;
    }

    pub fn all_rows_read(&self) -> bool {
        self.is_read
    }

    /// Assigns at most `most` positions; returns how many.
    pub fn assign(&mut self, most: usize) -> usize {
        self.positions.assign(most)
    }

    pub fn is_complete(&self) -> bool {
        self.positions.is_complete()
    }

    pub fn is_empty(&self) -> bool {
        self.players.len() == 0
    }

    /// The first player that was not passed.
    pub fn current(&self) -> Option<FinalPosition> {
        if self.next_index == self.players.len() {
            return None;
        }
        let (player, elo) = self.players[self.next_index];
        Some(FinalPosition { player, positions: self.positions.get(self.next_index), elo })
    }

    pub fn advance(&mut self) {
        self.next_index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_player_is_not_returned_again() {
        let row = |rounds, elo| PlayerRow { elo_rounds: rounds, ..PlayerRow::new(0, elo) };
        let mut positions = FinalPositions::new(Orders::default());
        positions.push_rows(&[(PlayerKey(3), row(1, 900.0)), (PlayerKey(5), row(0, 1000.0))]);
        positions.push_rows(&[(PlayerKey(9), row(2, 950.0))]);
        assert_eq!((positions.last_read(), positions.all_rows_read()), (Some(PlayerKey(9)), false));
        positions.finish_reading();
        while !positions.is_complete() {
            positions.assign(1);
        }
        let mut got = Vec::new();
        while let Some(position) = positions.current() {
            got.push((position.player.0, position.positions[2], position.elo));
            positions.advance();
        }
        assert_eq!(got, [(3, Some(2), 900.0), (5, None, 1000.0), (9, Some(1), 950.0)]);
    }
}
