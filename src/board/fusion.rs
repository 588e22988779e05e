//! Combines several boards into one list by reciprocal rank fusion. A player who is near the
//! top of many boards is near the top of the fused list. Only positions matter, so the
//! boards may have different units of score.
//!
//! The fused score of a player is the sum of `weight / (k + position)` over the boards that
//! contain the player. Of two players with equal scores, the one with the smaller key comes
//! first. The sum is computed in the order of the boards, so the same boards in the same
//! order give the same list, bit for bit.
//!
//! Fagin's threshold algorithm finds the best `n` players without reading all players. Each
//! step reads the next position of every board, from position 1, and computes the score of
//! every new player from the positions on all boards. Reading ends when no unseen player can
//! be among the best.
//!
//! The depth is the number of positions read. It is at most about the number of boards times
//! `k + n`, however large the boards are: each of the first `n` players of the board with
//! the largest weight has at least `weight / (k + n)` from this board alone. Boards with
//! similar orders are read little more than `n` positions deep.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use crate::board::Board;
use crate::model::PlayerKey;

/// Default of the constant `k`. A larger `k` reduces the advantage of the first positions
/// over the next ones.
pub const K_DEFAULT: f64 = 60.0;

/// A board and its weight. The weight is finite and above 0.
#[derive(Clone, Copy, Debug)]
pub struct WeightedBoard<'s> {
    pub board: &'s Board,
    pub weight: f64,
}

/// A player of a fused list.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedEntry {
    pub player: PlayerKey,
    pub score: f64,
    /// The position on each board, in the order of the boards. `None`: the board does not
    /// contain the player.
    pub positions: Vec<Option<u32>>,
}

/// Returns the best `n` players, best first. `k` is finite and at least 0.
pub fn top(boards: &[WeightedBoard], k: f64, n: usize) -> Vec<FusedEntry> {
    let (best, _) = walk(boards, k, n);
    best.into_iter().map(|candidate| fused(boards, k, candidate.player)).collect()
}

/// Returns the best `n` players, best first, and the depth to which the boards were read.
fn walk(boards: &[WeightedBoard], k: f64, n: usize) -> (Vec<Candidate>, u32) {
    assert!(k >= 0.0 && k.is_finite() && boards.iter().all(|board| board.weight > 0.0 && board.weight.is_finite()));
    let mut readers: Vec<_> = boards.iter().map(|weighted| weighted.board.iter()).collect();
    let longest = boards.iter().map(|weighted| weighted.board.len()).max().unwrap_or(0);
    let mut seen = FxHashSet::default();
    // A min-heap of at most `n` players: the worst of them is on top.
    let mut best: BinaryHeap<Reverse<Candidate>> = BinaryHeap::new();
    let mut depth = 0;
    while n > 0 && depth < longest {
        let unseen_bound = upper_bound(boards, k, depth + 1);
        if best.len() == n && best.peek().is_some_and(|worst| worst.0.score > unseen_bound) {
            break;
        }
        depth += 1;
        for entry in readers.iter_mut().filter_map(Iterator::next) {
            if !seen.insert(entry.player) {
                continue;
            }
            best.push(Reverse(Candidate { score: score(boards, k, entry.player), player: entry.player }));
            if best.len() > n {
                best.pop();
            }
        }
    }
    (best.into_sorted_vec().into_iter().map(|Reverse(candidate)| candidate).collect(), depth)
}

/// Returns the given players, each once, best first. A player who is on no board has score 0
/// and comes last.
pub fn of_players(boards: &[WeightedBoard], k: f64, players: &[PlayerKey]) -> Vec<FusedEntry> {
    let mut list: Vec<FusedEntry> = players.iter().map(|&player| fused(boards, k, player)).collect();
    list.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.player.cmp(&b.player)));
    list.dedup_by_key(|fused| fused.player);
    list
}

/// Upper bound of the score of a player whose position is `depth` or worse on every board.
/// No term is smaller than in the player's [`score`], and the terms are added in the same
/// order, so rounding cannot make the bound too small.
fn upper_bound(boards: &[WeightedBoard], k: f64, depth: u32) -> f64 {
    let bound = |weighted: &WeightedBoard| match depth <= weighted.board.len() {
        true => contribution(weighted.weight, k, depth),
        false => 0.0,
    };
    boards.iter().map(bound).sum()
}

fn score(boards: &[WeightedBoard], k: f64, player: PlayerKey) -> f64 {
    let board_contribution = |weighted: &WeightedBoard| {
        weighted.board.position(player).map_or(0.0, |position| contribution(weighted.weight, k, position))
    };
    boards.iter().map(board_contribution).sum()
}

fn contribution(weight: f64, k: f64, position: u32) -> f64 {
    weight / (k + f64::from(position))
}

fn fused(boards: &[WeightedBoard], k: f64, player: PlayerKey) -> FusedEntry {
    let positions = boards.iter().map(|weighted| weighted.board.position(player)).collect();
    FusedEntry { player, score: score(boards, k, player), positions }
}

/// A player and their fused score. In the order, a better candidate is greater: one with a
/// higher score, or with an equal score and a smaller key.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    score: f64,
    player: PlayerKey,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> std::cmp::Ordering {
        self.score.total_cmp(&other.score).then(other.player.cmp(&self.player))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::board::order::Direction;
    use crate::board::{BoardEntry, Score};

    fn board(entries: impl IntoIterator<Item = (u32, i64)>) -> Board {
        let entries = entries.into_iter().map(|(player, score)| BoardEntry::new(Score(score), 0, PlayerKey(player)));
        Board::build(Direction::HighIsBetter, 1, entries)
    }

    fn brute_force(boards: &[WeightedBoard], k: f64, n: usize) -> Vec<FusedEntry> {
        let mut players: Vec<PlayerKey> =
            boards.iter().flat_map(|weighted| weighted.board.iter()).map(|entry| entry.player).collect();
        players.sort_unstable();
        players.dedup();
        let mut all = of_players(boards, k, &players);
        all.truncate(n);
        all
    }

    proptest! {
        #[test]
        fn threshold_algorithm_equals_brute_force(
            boards in prop::collection::vec((prop::collection::vec((0..60_u32, 0..20_i64), 0..80), 1..4_u8), 0..5),
            k in prop_oneof![Just(0.0), Just(K_DEFAULT), 0.0..500.0],
            n in 0..70_usize,
        ) {
            let weighted: Vec<(Board, f64)> =
                boards.into_iter().map(|(entries, weight)| (board(entries), f64::from(weight))).collect();
            let boards: Vec<WeightedBoard> = weighted.iter().map(|(board, weight)| WeightedBoard { board, weight: *weight }).collect();
            prop_assert_eq!(top(&boards, k, n), brute_force(&boards, k, n));
            let (_, depth) = walk(&boards, k, n);
            prop_assert!(f64::from(depth) <= boards.len() as f64 * (k + n as f64) + 1.0);
        }
    }

    /// Two boards in opposite order are the worst case: all players in the middle have nearly
    /// equal scores.
    #[test]
    fn opposite_boards_equal_brute_force_within_the_depth_bound() {
        let up = board((0..500).map(|n| (n, i64::from(n))));
        let down = board((0..500).map(|n| (n, -i64::from(n))));
        let boards = [WeightedBoard { board: &up, weight: 1.0 }, WeightedBoard { board: &down, weight: 1.0 }];
        for n in [1, 2, 9, 499, 500, 900] {
            assert_eq!(top(&boards, K_DEFAULT, n), brute_force(&boards, K_DEFAULT, n));
        }
        assert!(walk(&boards, 1.0, 9).1 <= 2 * 10, "twice k + n, of 500");
        assert_eq!(top(&boards, K_DEFAULT, 2).iter().map(|f| f.player.0).collect::<Vec<_>>(), [0, 499]);
    }

    #[test]
    fn equal_boards_are_read_n_entries_deep() {
        let one = board((0..10_000).map(|n| (n, i64::from(n))));
        let boards = [WeightedBoard { board: &one, weight: 1.0 }; 5];
        assert_eq!(walk(&boards, K_DEFAULT, 10).1, 10);
        assert_eq!(top(&boards, K_DEFAULT, 2).iter().map(|f| f.player.0).collect::<Vec<_>>(), [9_999, 9_998]);
    }

    #[test]
    fn fused_scores_equal_a_hand_calculation() {
        let (a, b) = (board([(1, 30), (2, 20), (3, 10)]), board([(2, 9), (4, 8)]));
        let boards = [WeightedBoard { board: &a, weight: 1.0 }, WeightedBoard { board: &b, weight: 2.0 }];
        let list = top(&boards, K_DEFAULT, 10);
        assert_eq!(list.iter().map(|f| f.player.0).collect::<Vec<_>>(), [2, 4, 1, 3]);
        assert_eq!(list[0].score, 1.0 / 62.0 + 2.0 / 61.0);
        assert_eq!(list[0].positions, [Some(2), Some(1)]);
        assert_eq!((list[1].score, &list[1].positions), (2.0 / 62.0, &vec![None, Some(2)]));
        let listed = of_players(&boards, K_DEFAULT, &[3, 9, 2, 3].map(PlayerKey));
        assert_eq!(
            listed.iter().map(|f| (f.player.0, f.score > 0.0)).collect::<Vec<_>>(),
            [(2, true), (3, true), (9, false)]
        );
        assert!(top(&[], K_DEFAULT, 3).is_empty() && top(&boards, K_DEFAULT, 0).is_empty());
    }

    #[test]
    fn equal_fused_scores_order_by_player_key() {
        let (a, b) = (board([(7, 2), (5, 1)]), board([(5, 2), (7, 1)]));
        let boards = [WeightedBoard { board: &a, weight: 1.0 }, WeightedBoard { board: &b, weight: 1.0 }];
        assert_eq!(top(&boards, K_DEFAULT, 1)[0].player, PlayerKey(5));
    }
}
