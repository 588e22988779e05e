//! The order of the boards of a scope, for each ranking: the only module that compares rows
//! (docs/rules.md section 8), used wherever a position is shown or stored.
//! [`crate::model::board_order`] parses orders from the configuration; a board of millions
//! applies its order in a [`Board`](crate::board::Board).

use super::{BoardEntry, Score, score_of};
use crate::model::PlayerKey;
use crate::model::archive::OrderBytes;
pub use crate::model::board_order::{LowIsBetter, OrderParseError, TieBreaker};
use crate::model::row::{PlayerRow, Ranking};
use crate::model::scope::Scope;

/// Which scores are best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    #[default]
    HighIsBetter,
    LowIsBetter,
}

impl Direction {
    /// The sign bit: flipped, it makes unsigned order equal to signed order.
    pub(super) const SIGN: u64 = 1 << 63;

    /// The sort value of a score: ascending, best first. Every `i64` has one.
    pub(super) fn sort_value(self, score: Score) -> u64 {
        let ascending = score.0 as u64 ^ Direction::SIGN;
        match self {
            Direction::HighIsBetter => !ascending,
            Direction::LowIsBetter => ascending,
        }
    }

    /// The score of a sort value.
    pub(super) fn score(self, sort_value: u64) -> Score {
        let ascending = match self {
            Direction::HighIsBetter => !sort_value,
            Direction::LowIsBetter => sort_value,
        };
        Score((ascending ^ Direction::SIGN) as i64)
    }
}

/// The order of one board: by score, then by the tie-breaker, then by the earlier time at
/// which the score was reached, then by the smaller player key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Order {
    pub direction: Direction,
    /// The tie-breaker: another ranking, whose better score comes first among equal scores,
    /// and its direction in this scope.
    pub tie: Option<(Ranking, Direction)>,
}

/// Score, tie, time and player, as numbers that sort ascending, best first.
pub type OrderKey = (u64, u64, i64, PlayerKey);

/// The orders of the five boards of one scope. By default the highest score is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders([Order; 5]);

impl Orders {
    /// The configured orders of a scope; without a scope, those of scopes that the
    /// configuration does not name.
    pub fn for_scope<'s>(
        low_is_better: &[LowIsBetter],
        tie_breakers: &[TieBreaker],
        scope: impl Into<Option<&'s Scope>>,
    ) -> Orders {
        let scope = scope.into();
        let direction = |ranking| match low_is_better.iter().any(|low| low.applies_to(ranking, scope)) {
            true => Direction::LowIsBetter,
            false => Direction::HighIsBetter,
        };
        Orders(Ranking::ALL.map(|ranking| {
            let tie = TieBreaker::find(tie_breakers, ranking, scope).map(|by| (by, direction(by)));
            Order { direction: direction(ranking), tie }
        }))
    }

    pub fn order(&self, ranking: Ranking) -> Order {
        self.0[ranking as usize]
    }

    /// Whether the rating has a tie-breaker or is one. A caller that stores ratings apart
    /// from rows must then join them.
    pub fn tie_break_uses_rating(&self) -> bool {
        let ties = Ranking::ALL.into_iter().filter_map(|ranking| Some((ranking, self.order(ranking).tie?.0)));
        ties.into_iter().any(|(ranking, by)| ranking == Ranking::Elo || by == Ranking::Elo)
    }

    /// The entry of a row in a ranking; `None`: the row has no score and is absent from the
    /// board.
    pub fn entry(&self, player: PlayerKey, row: &PlayerRow, ranking: Ranking) -> Option<BoardEntry> {
        self.entry_of(player, |ranking| score_of(row, ranking), ranking)
    }

    /// As [`Orders::entry`], for the scores of a row in each ranking.
    pub fn entry_of(
        &self,
        player: PlayerKey,
        score_of: impl Fn(Ranking) -> Option<(Score, i64)>,
        ranking: Ranking,
    ) -> Option<BoardEntry> {
        let (score, at_ms) = score_of(ranking)?;
        let entry = BoardEntry::new(score, at_ms, player);
        let Some((by, direction)) = self.order(ranking).tie else { return Some(entry) };
        // A player without a score in the tie-breaker comes after all players with one.
        Some(entry.with_tie_break(score_of(by).map_or(u64::MAX, |(score, _)| direction.sort_value(score))))
    }

    /// The sort key of an entry on its board.
    pub fn sort_key(&self, ranking: Ranking, entry: &BoardEntry) -> OrderKey {
        let Order { direction, .. } = self.order(ranking);
        (direction.sort_value(entry.score()), entry.tie, entry.at_ms, entry.player)
    }

    /// A sort key as bytes that compare like it, for a database: score, tie (only on a board
    /// with a tie-breaker), time and player.
    pub fn key_bytes(&self, ranking: Ranking, key: OrderKey) -> OrderBytes {
        let (score, tie, at_ms, player) = key;
        let mut bytes = OrderBytes::default();
        bytes.extend(score.to_be_bytes());
        if self.order(ranking).tie.is_some() {
            bytes.extend(tie.to_be_bytes());
        }
        // 48 bits: until the year 6429.
        let at_ms = (at_ms.clamp(0, (1 << 48) - 1) as u64).to_be_bytes();
        bytes.extend(at_ms[2..].iter().copied());
        bytes.extend(player.0.to_be_bytes());
        bytes
    }

    /// Sorts the entries of one board, best first.
    pub fn sort(&self, ranking: Ranking, entries: &mut [BoardEntry]) {
        entries.sort_unstable_by_key(|entry| self.sort_key(ranking, entry));
    }

    /// The board: entries best first, position 1 at index 0.
    pub fn board(&self, rows: &[(PlayerKey, PlayerRow)], ranking: Ranking) -> Vec<BoardEntry> {
        let entries = rows.iter().filter_map(|(player, row)| self.entry(*player, row, ranking));
        let mut entries: Vec<BoardEntry> = entries.collect();
        self.sort(ranking, &mut entries);
        entries
    }

    /// Positions of the row at an index in the five rankings: one more than the rows before it.
    pub fn positions_of(&self, rows: &[(PlayerKey, PlayerRow)], at: usize) -> [Option<u32>; 5] {
        let key = |(player, row): &(PlayerKey, PlayerRow), ranking| {
            self.entry(*player, row, ranking).map(|entry| self.sort_key(ranking, &entry))
        };
        Ranking::ALL.map(|ranking| {
            let own = key(&rows[at], ranking)?;
            Some(1 + rows.iter().filter_map(|row| key(row, ranking)).filter(|other| *other < own).count() as u32)
        })
    }

    /// Positions of every row in the five rankings, in the order of the rows, which
    /// must be in order of player key.
    pub fn positions(&self, rows: &[(PlayerKey, PlayerRow)]) -> Vec<[Option<u32>; 5]> {
        debug_assert!(rows.is_sorted_by_key(|(player, _)| *player));
        let mut positions = vec![[None; 5]; rows.len()];
        for ranking in Ranking::ALL {
            for (index, entry) in self.board(rows, ranking).into_iter().enumerate() {
                let row = rows
                    .binary_search_by_key(&entry.player, |(player, _)| *player)
                    .expect("the board was built from these rows");
                positions[row][ranking as usize] = Some(index as u32 + 1);
            }
        }
        positions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(points: i64, at_ms: i64) -> PlayerRow {
        let mut row = PlayerRow::new(at_ms, 1000.0);
        (row.points, row.has_points) = (points, true);
        row
    }

    fn rows() -> Vec<(PlayerKey, PlayerRow)> {
        let rows = [row(0, 50), row(7, 30), row(7, 20), row(0, 50), row(9, 99)];
        (1..).map(PlayerKey).zip(rows).collect()
    }

    fn players(orders: &Orders, ranking: Ranking) -> Vec<u32> {
        orders.board(&rows(), ranking).iter().map(|entry| entry.player.0).collect()
    }

    #[test]
    fn players_without_a_score_are_absent() {
        let orders = Orders::default();
        assert_eq!(players(&orders, Ranking::Points), [5, 3, 2, 1, 4]);
        assert!(orders.board(&rows(), Ranking::Elo).is_empty());
        assert_eq!(orders.positions(&rows())[2], [None, None, None, Some(2), Some(1)]);
    }

    #[test]
    fn low_is_better_orders_ascending() {
        let of_scope = |low: &str, scope: Option<&Scope>| Orders::for_scope(&[low.parse().unwrap()], &[], scope);
        let (quake, race) = (Scope::Game("baseq3".to_owned()), Scope::Tag("race".to_owned()));
        for orders in [of_scope("points", Some(&quake)), of_scope("points game:baseq3", Some(&quake))] {
            assert_eq!(players(&orders, Ranking::Points), [1, 4, 3, 2, 5]);
            assert_eq!(
                orders.positions(&rows())[2],
                [None, None, None, Some(3), Some(1)],
                "the time ranking is unchanged"
            );
        }
        assert_eq!(of_scope("points game:baseq3", Some(&race)), Orders::default());
        assert_eq!(of_scope("points game:baseq3", None), Orders::default());
        assert_ne!(of_scope("points", None), Orders::default());
    }

    #[test]
    fn positions_of_one_row_are_those_of_the_board() {
        for tie in [&[][..], &["points time".parse().unwrap()]] {
            for low in [&[][..], &["points".parse().unwrap()]] {
                let orders = Orders::for_scope(low, tie, None);
                let of_one: Vec<_> = (0..rows().len()).map(|at| orders.positions_of(&rows(), at)).collect();
                assert_eq!(of_one, orders.positions(&rows()));
            }
        }
    }

    #[test]
    fn key_bytes_compare_like_the_keys() {
        for tie in [&[][..], &["points time".parse().unwrap()]] {
            for low in [&[][..], &["points".parse().unwrap()]] {
                let orders = Orders::for_scope(low, tie, None);
                let board = orders.board(&rows(), Ranking::Points);
                let bytes = |entry| orders.key_bytes(Ranking::Points, orders.sort_key(Ranking::Points, entry));
                assert_eq!(bytes(&board[0]).len(), if tie.is_empty() { 18 } else { 26 });
                assert!(board.windows(2).all(|pair| bytes(&pair[0]) < bytes(&pair[1])), "{board:?}");
            }
        }
    }

    #[test]
    fn tie_breaker_uses_its_own_direction() {
        let mut rows = rows();
        let board = |rows: &[_], low: &[&str], tie: &str| {
            let low: Vec<LowIsBetter> = low.iter().map(|text| text.parse().unwrap()).collect();
            let orders = Orders::for_scope(&low, &[tie.parse().unwrap()], None);
            let board = orders.board(rows, Ranking::Points);
            assert_eq!(orders.positions(rows)[0][Ranking::Points as usize], Some(4));
            board.iter().map(|entry| entry.player.0).collect::<Vec<_>>()
        };
        (rows[0].1.measured_ms, rows[1].1.measured_ms) = (9, 1);
        assert_eq!(board(&rows, &[], "points time"), [5, 2, 3, 1, 4]);
        (rows[0].1.measured_ms, rows[3].1.measured_ms) = (1, 9);
        assert_eq!(board(&rows, &["time"], "points time"), [5, 3, 2, 1, 4]);
        // Players without a rating, and players with equal ratings, are ordered by time, the
        // earlier first.
        rows[1].1.elo_rounds = 1;
        assert_eq!(board(&rows, &["elo"], "points elo"), [5, 2, 3, 1, 4]);
        rows[2].1.elo_rounds = 1;
        assert_eq!(board(&rows, &["elo"], "points elo"), [5, 3, 2, 1, 4]);
    }
}
