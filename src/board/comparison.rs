//! Compares two orders of the players of one board, for example with other settings of the rules.
//!
//! Pure functions of lists. [`ReadModel::board_placings`](crate::engine::ReadModel::board_placings) reads the lists.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use serde::Serialize;

/// Positions up to this one are the top of a board.
const TOP_POSITIONS: u32 = 10;

/// A player by game and normalised name. States of different replays have different keys for one player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct NamedPlayer {
    pub game: String,
    #[serde(rename = "player")]
    pub name: String,
}

/// A player on a board. The place in the list is the position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placing<P> {
    pub player: P,
    /// Equal scores share the best position: 1 2 2 4.
    pub competition: u32,
}

/// The differences between two orders of a board, `before` and `after`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison<P> {
    pub players_before: u32,
    pub players_after: u32,
    /// Players on both boards.
    pub players_both: u32,
    /// Players on both boards whose position differs.
    pub moved: u32,
    /// By how many positions the moved players moved; `None`: no player moved.
    pub moved_by: Option<MovedBy>,
    /// Spearman's rank correlation of the players on both boards, -1 to 1. Players with equal scores
    /// have the mean of their ranks. `None`: it is not defined, because fewer than two players are on both
    /// boards, or all of them have the same score.
    pub spearman: Option<f64>,
    /// Players who enter the first ten, in order of their new position.
    pub top_entered: Vec<TopChange<P>>,
    /// Players who leave the first ten, in order of their old position.
    pub top_left: Vec<TopChange<P>>,
}

/// Numbers of positions: at least this share of the moved players moved by this number or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovedBy {
    pub median: u32,
    pub p99: u32,
}

/// A player who enters or leaves the first ten. A position is `None` if the player is not on the board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopChange<P> {
    #[serde(flatten)]
    pub player: P,
    pub before: Option<u32>,
    pub after: Option<u32>,
}

impl<P> Comparison<P> {
    /// Players who are on the new board and not on the old one.
    pub fn gained(&self) -> u32 {
        self.players_after - self.players_both
    }

    /// Players who are on the old board and not on the new one.
    pub fn lost(&self) -> u32 {
        self.players_before - self.players_both
    }

    /// Whether a player has another position, or is on only one of the boards.
    pub fn is_different(&self) -> bool {
        self.moved + self.gained() + self.lost() > 0
    }
}

/// Compares two boards, best player first. A player is in a list at most once.
pub fn compare<P: Clone + Eq + Hash>(before: &[Placing<P>], after: &[Placing<P>]) -> Comparison<P> {
    let position = |index: usize| index as u32 + 1;
    let index_of = |list: &[Placing<P>]| -> FxHashMap<P, usize> {
        list.iter().enumerate().map(|(index, placing)| (placing.player.clone(), index)).collect()
    };
    let (in_before, in_after) = (index_of(before), index_of(after));
    // Indices in both lists, in the order of `before`.
    let both: Vec<(usize, usize)> = before
        .iter()
        .enumerate()
        .filter_map(|(index, placing)| Some((index, *in_after.get(&placing.player)?)))
        .collect();
    let mut moves: Vec<u32> = both.iter().map(|(b, a)| b.abs_diff(*a) as u32).filter(|&by| by > 0).collect();
    moves.sort_unstable();
    let top = |list: &[Placing<P>], other: &FxHashMap<P, usize>| -> Vec<P> {
        let is_below = |player: &P| other.get(player).is_none_or(|&index| position(index) > TOP_POSITIONS);
        let first = list.iter().take(TOP_POSITIONS as usize).map(|placing| &placing.player);
        first.filter(|player| is_below(player)).cloned().collect()
    };
    let change = |player: P| {
        let of = |index: &FxHashMap<P, usize>| index.get(&player).copied().map(position);
        TopChange { before: of(&in_before), after: of(&in_after), player }
    };
    Comparison {
        players_before: before.len() as u32,
        players_after: after.len() as u32,
        players_both: both.len() as u32,
        moved: moves.len() as u32,
        moved_by: moved_by(&moves),
        spearman: spearman(before, after, &both),
        top_entered: top(after, &in_before).into_iter().map(change).collect(),
        top_left: top(before, &in_after).into_iter().map(change).collect(),
    }
}

fn moved_by(sorted: &[u32]) -> Option<MovedBy> {
    // The nearest rank: the smallest value that so many per cent of the values do not exceed.
    let percentile = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).checked_sub(1)?).copied();
    Some(MovedBy { median: percentile(50)?, p99: percentile(99)? })
}

/// The correlation of the ranks of the players in both lists.
fn spearman<P>(before: &[Placing<P>], after: &[Placing<P>], both: &[(usize, usize)]) -> Option<f64> {
    let ranks_before = mean_ranks(both.iter().map(|&(b, _)| before[b].competition));
    let mut by_after: Vec<usize> = (0..both.len()).collect();
    by_after.sort_unstable_by_key(|&at| both[at].1);
    let mut ranks_after = vec![0.0; both.len()];
    let sorted = mean_ranks(by_after.iter().map(|&at| after[both[at].1].competition));
    by_after.iter().zip(sorted).for_each(|(&at, rank)| ranks_after[at] = rank);
    rank_correlation(&ranks_before, &ranks_after)
}

/// Spearman's correlation of two lists of the ranks of the same players. `None`: all ranks of a list are equal.
pub fn rank_correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    // The mean of all ranks is the same in both.
    let mean = a.iter().sum::<f64>() / a.len() as f64;
    let sum_of_products = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum() };
    let (spread_a, spread_b) = (sum_of_products(a, a), sum_of_products(b, b));
    let is_defined = spread_a > 0.0 && spread_b > 0.0;
    is_defined.then(|| sum_of_products(a, b) / (spread_a * spread_b).sqrt())
}

/// Ranks from 1 in the given order. Neighbours with the same number have the mean of their ranks.
fn mean_ranks(competition: impl Iterator<Item = u32>) -> Vec<f64> {
    let competition: Vec<u32> = competition.collect();
    let mut ranks = Vec::with_capacity(competition.len());
    for equal in competition.chunk_by(|a, b| a == b) {
        let first = ranks.len() as f64 + 1.0;
        ranks.extend(equal.iter().map(|_| first + (equal.len() as f64 - 1.0) / 2.0));
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A board of players without equal scores.
    fn board(players: &str) -> Vec<Placing<char>> {
        players.chars().zip(1..).map(|(player, competition)| Placing { player, competition }).collect()
    }

    /// A board of groups with equal scores, such as "a bc d".
    fn tied_board(groups: &str) -> Vec<Placing<char>> {
        let mut board: Vec<Placing<char>> = Vec::new();
        for group in groups.split(' ') {
            let competition = board.len() as u32 + 1;
            board.extend(group.chars().map(|player| Placing { player, competition }));
        }
        board
    }

    #[track_caller]
    fn assert_spearman(before: &[Placing<char>], after: &[Placing<char>], want: f64) {
        let found = compare(before, after).spearman.expect("defined");
        assert!((found - want).abs() < 1e-12, "{found} instead of {want}");
    }

    #[test]
    fn equal_boards_do_not_differ() {
        let compared = compare(&board("abcde"), &board("abcde"));
        assert!(!compared.is_different());
        assert_eq!((compared.players_both, compared.moved, compared.moved_by), (5, 0, None));
        assert_eq!(compared.spearman, Some(1.0));
        assert!(compared.top_entered.is_empty() && compared.top_left.is_empty());
    }

    #[test]
    fn spearman_without_ties_is_the_sum_of_squared_differences() {
        // 1 - 6 * sum(d^2) / (n * (n^2 - 1))
        assert_spearman(&board("abcde"), &board("edcba"), -1.0);
        // d = 1 1 0 0 0: 1 - 6 * 2 / 120.
        assert_spearman(&board("abcde"), &board("bacde"), 0.9);
        // d = 2 1 1 0: 1 - 6 * 6 / 60.
        assert_spearman(&board("abcd"), &board("bcad"), 0.4);
    }

    #[test]
    fn spearman_of_ties_uses_mean_ranks() {
        // Ranks 1 2.5 2.5 4 and 1 2 3 4: products 2.25 + 0 + 0 + 2.25, spreads 4.5 and 5.
        assert_spearman(&tied_board("a bc d"), &board("abcd"), 4.5 / 22.5_f64.sqrt());
        // The order within a tie changes nothing.
        assert_spearman(&tied_board("a bc d"), &tied_board("a cb d"), 1.0);
        // Ranks of a b c d: 1.5 1.5 3.5 3.5 and 3.5 1.5 3.5 1.5. Products: -1 + 1 + 1 - 1.
        assert_spearman(&tied_board("ab cd"), &tied_board("bd ac"), 0.0);
    }

    #[test]
    fn spearman_is_undefined_for_one_player_or_one_score() {
        assert_eq!(compare(&board("a"), &board("a")).spearman, None);
        assert_eq!(compare(&board("ab"), &board("cd")).spearman, None);
        assert_eq!(compare(&tied_board("abc"), &board("abc")).spearman, None);
    }

    #[test]
    fn spearman_ranks_only_players_on_both_boards() {
        // Without x and y: a b c and b a c, 1 - 6 * 2 / 24.
        assert_spearman(&board("xabc"), &board("bayc"), 0.5);
    }

    #[test]
    fn empty_boards_have_no_differences() {
        let none: [Placing<char>; 0] = [];
        let compared = compare(&none, &none);
        assert!(!compared.is_different());
        assert_eq!((compared.players_both, compared.moved_by, compared.spearman), (0, None, None));
        let compared = compare(&none, &board("ab"));
        assert_eq!((compared.gained(), compared.lost(), compared.moved), (2, 0, 0));
        assert_eq!(compared.top_entered[0], TopChange { player: 'a', before: None, after: Some(1) });
        assert_eq!(compare(&board("ab"), &none).lost(), 2);
    }

    #[test]
    fn lost_player_moves_all_players_below() {
        let compared = compare(&board("abcde"), &board("acde"));
        assert_eq!((compared.players_both, compared.gained(), compared.lost(), compared.moved), (4, 0, 1, 3));
        assert_eq!(compared.moved_by, Some(MovedBy { median: 1, p99: 1 }));
        assert_eq!(compared.spearman, Some(1.0));
    }

    #[test]
    fn percentiles_are_nearest_ranks_of_the_moved_players() {
        assert_eq!(moved_by(&[]), None);
        assert_eq!(moved_by(&[3]), Some(MovedBy { median: 3, p99: 3 }));
        assert_eq!(moved_by(&[1, 2, 3, 4]), Some(MovedBy { median: 2, p99: 4 }));
        let all: Vec<u32> = (1..=200).collect();
        assert_eq!(moved_by(&all), Some(MovedBy { median: 100, p99: 198 }));
    }

    #[test]
    fn top_ten_changes_have_both_positions() {
        let compared = compare(&board("abcdefghijkl"), &board("kbcdefghiylj"));
        let change = |player, before, after| TopChange { player, before, after };
        assert_eq!(compared.top_entered, [change('k', Some(11), Some(1)), change('y', None, Some(10))]);
        assert_eq!(compared.top_left, [change('a', Some(1), None), change('j', Some(10), Some(12))]);
        assert_eq!((compared.moved, compared.gained(), compared.lost()), (3, 1, 1));
        // k moved by 10, j by 2, l by 1.
        assert_eq!(compared.moved_by, Some(MovedBy { median: 2, p99: 10 }));
    }
}
