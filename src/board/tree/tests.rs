//! Compares the board with a sorted `Vec`, and tests edge cases of leaderboards.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use super::*;
use crate::board::Score;
use crate::board::cursor::{Cursor, CursorEdge, StaleCursor};
use crate::board::order::Direction::{HighIsBetter as High, LowIsBetter as Low};

/// Pseudorandom numbers from a seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn entry(score: i64, at_ms: i64, player: u32) -> BoardEntry {
    tied(score, 0, at_ms, player)
}

fn tied(score: i64, tie: u64, at_ms: i64, player: u32) -> BoardEntry {
    BoardEntry::new(Score(score), at_ms, PlayerKey(player)).with_tie_break(tie)
}

/// Players 1, 2, ... with these scores, reached at 1, 2, ...
fn board_of(direction: Direction, scores: &[i64]) -> Board {
    let mut board = Board::new(direction, 1);
    for (&score, n) in scores.iter().zip(1..) {
        board.put(entry(score, i64::from(n), n));
    }
    board.check();
    board
}

fn players(entries: &[BoardEntry]) -> Vec<u32> {
    entries.iter().map(|entry| entry.player.0).collect()
}

impl Board {
    /// The share of the other players with a worse score, percent: 100 for a best score
    /// that only one player has, 0 for the worst; 100 for the only player.
    fn percentile(&self, player: PlayerKey) -> Option<f64> {
        self.standing(player).map(|standing| standing.percentile)
    }

    /// Number of distinct scores on the board.
    fn distinct_score_count(&self) -> u32 {
        self.root.distinct_scores_before(self.root.len())
    }

    /// The best `k`, best first.
    fn top(&self, k: u32) -> Vec<BoardEntry> {
        self.page(1, k).entries
    }

    /// The last `k`, last first.
    fn bottom(&self, k: u32) -> Vec<BoardEntry> {
        let k = k.min(self.len());
        let mut entries = self.page(self.len() - k + 1, k).entries;
        entries.reverse();
        entries
    }

    /// Number of players with scores in a range.
    fn count_in_range(&self, scores: impl std::ops::RangeBounds<i64>) -> u32 {
        self.positions_with_scores(scores).len() as u32
    }

    /// The position of a new player who reaches a score now: after all players with that
    /// score.
    fn position_for(&self, score: Score) -> u32 {
        self.at_least_as_good_count(score) + 1
    }

    /// The position that an entry has or would have.
    fn position_of(&self, entry: &BoardEntry) -> u32 {
        self.entries_before_key(&self.key(entry)) + 1
    }

    /// Like [`Board::put`], but does nothing if the player's current score is as good or better. An
    /// equal score thus keeps its time.
    fn put_if_better(&mut self, entry: BoardEntry) -> PutOutcome {
        match self.get(entry.player) {
            Some(old) if self.direction.sort_value(old.score()) <= self.direction.sort_value(entry.score()) => {
                PutOutcome::Unchanged
            }
            _ => self.put(entry),
        }
    }

    /// Panics if a derived value differs from its source.
    fn check(&self) {
        let (mut last, mut entries, mut blocks) = (None::<SortKey>, 0, 0);
        for (g, &group_id) in self.root.children.iter().enumerate() {
            let group = &self.groups[group_id as usize];
            assert_eq!(group.index as usize, g);
            assert!((1..=GROUP_MAX).contains(&group.len()));
            assert!(g == 0 || self.root.low(g) <= group.low(0));
            let mut total = NodeCounts::default();
            for (b, &id) in group.children.iter().enumerate() {
                let block = &self.blocks[id as usize];
                assert_eq!((block.group, block.index as usize), (group_id, b));
                block.check();
                let low = if b == 0 { self.root.low(g) } else { group.low(b) };
                assert!(low <= block.key(0) || (g, b) == (0, 0), "{low:?} {:?}", block.key(0));
                assert!(last.is_none_or(|last| last < low.max(block.key(0)) && (last < low || (g, b) == (0, 0))));
                assert_eq!(block.continues_score, last.is_some_and(|last| last.score == block.key(0).score));
                let counts = NodeCounts { entries: block.len() as u32, distinct_scores: block.new_distinct_scores() };
                assert_eq!(group.counts(b), counts);
                total = NodeCounts {
                    entries: total.entries + counts.entries,
                    distinct_scores: total.distinct_scores + counts.distinct_scores,
                };
                for key in block.keys() {
                    assert_eq!(self.player_index.block(key.player), Some(id));
                }
                last = Some(block.key(block.len() - 1));
                blocks += 1;
            }
            assert_eq!(self.root.counts(g), total);
            entries += total.entries;
        }
        assert_eq!(entries, self.len());
        assert_eq!(blocks + self.blocks_free.len(), self.blocks.len());
        assert_eq!(self.root.len() + self.groups_free.len(), self.groups.len());
    }
}

/// A sorted `Vec` with the same read operations.
struct Oracle {
    direction: Direction,
    entries: Vec<BoardEntry>,
}

impl Oracle {
    fn of(direction: Direction, players: &BTreeMap<u32, (i64, u64, i64)>) -> Oracle {
        let mut entries: Vec<BoardEntry> =
            players.iter().map(|(&player, &(score, tie, at))| tied(score, tie, at, player)).collect();
        entries.sort_by(|a, b| {
            let by_score = a.score().0.cmp(&b.score().0);
            let by_score = if direction == High { by_score.reverse() } else { by_score };
            by_score.then(a.tie.cmp(&b.tie)).then(a.at_ms.cmp(&b.at_ms)).then(a.player.cmp(&b.player))
        });
        Oracle { direction, entries }
    }

    fn better_count(&self, score: i64) -> usize {
        let better = |entry: &&BoardEntry| match self.direction {
            High => entry.score().0 > score,
            Low => entry.score().0 < score,
        };
        self.entries.iter().filter(better).count()
    }

    fn check(&self, board: &Board, numbers: &mut Numbers) {
        board.check();
        let players = self.entries.len() as u32;
        assert_eq!(board.len(), players);
        assert!(board.iter().eq(self.entries.iter().copied()));
        let mut scores: Vec<i64> = self.entries.iter().map(|entry| entry.score().0).collect();
        scores.dedup();
        assert_eq!(board.distinct_score_count() as usize, scores.len());
        let keys: Vec<PlayerKey> = self.entries.iter().map(|entry| entry.player).collect();
        assert!(board.positions(&keys).into_iter().eq((1..=players).map(Some)));
        for _ in 0..10.min(players) {
            let position = numbers.below(u64::from(players)) as u32 + 1;
            let here = self.entries[position as usize - 1];
            let score = here.score().0;
            assert_eq!(board.entry_at(position), Some(here));
            assert_eq!(board.position(here.player), Some(position), "rank(select(i)) = i");
            assert_eq!(board.position_of(&here), position);
            let standing = board.standing(here.player).unwrap();
            assert_eq!((standing.entry, standing.position, standing.players), (here, position, players));
            assert_eq!(standing.competition as usize, self.better_count(score) + 1);
            assert_eq!(standing.dense as usize, scores.iter().position(|&s| s == score).unwrap() + 1);
            assert_eq!(board.competition_rank(here.player), Some(standing.competition));
            assert_eq!(board.dense_rank(here.player), Some(standing.dense));
            for score in [score.saturating_sub(1), score.saturating_add(1), numbers.next() as i64] {
                assert_eq!(board.better_count(Score(score)) as usize, self.better_count(score));
                let equal = self.entries.iter().filter(|entry| entry.score().0 == score).count();
                assert_eq!(board.at_least_as_good_count(Score(score)) as usize, self.better_count(score) + equal);
            }
            let other = self.entries[numbers.below(u64::from(players)) as usize].score().0;
            let (low, high) = (score.min(other), score.max(other));
            for range in [
                (Included(low), Included(high)),
                (Excluded(low), Included(high)),
                (Included(low), Excluded(high)),
                (Excluded(low), Excluded(high)),
                (Unbounded, Excluded(high)),
                (Excluded(low), Unbounded),
            ] {
                let within: Vec<BoardEntry> = self
                    .entries
                    .iter()
                    .copied()
                    .filter(|p| std::ops::RangeBounds::contains(&range, &p.score().0))
                    .collect();
                let got = board.positions_with_scores(range);
                assert_eq!(board.page(got.start, got.len() as u32).entries, within, "{range:?}");
            }
        }
    }
}

#[test]
fn random_operations_equal_a_sorted_vec() {
    for (seed, direction) in (1..=12).zip([High, Low].into_iter().cycle()) {
        let mut numbers = Numbers(seed);
        // Few scores give ties over many blocks. Many scores give no ties. Arbitrary scores give
        // every column width.
        let (kinds, player_count) = [(5, 3_000), (1_000, 6_000), (u64::MAX, 3_000)][seed as usize % 3];
        // No tie-breaker, or tie values that are few, or arbitrary.
        let tie_kinds = [1, 1, 3, u64::MAX][seed as usize / 7 * 2 + seed as usize % 2];
        let (mut board, mut reference) = (Board::new(direction, seed), BTreeMap::new());
        for step in 0..60_000_u64 {
            let player = (numbers.below(player_count) as u32).wrapping_mul(1_000_003);
            // The board grows, changes, and is emptied.
            let removes = if step < 20_000 {
                1
            } else if step < 35_000 {
                4
            } else {
                9
            };
            if numbers.below(10) < removes {
                let removed = reference.remove(&player);
                let expected = removed.map(|(score, tie, at)| tied(score, tie, at, player));
                assert_eq!(board.remove(PlayerKey(player)), expected);
            } else {
                let score = match numbers.below(40) {
                    0 => [i64::MIN, i64::MIN + 1, 0, i64::MAX][numbers.below(4) as usize],
                    _ => numbers.below(kinds) as i64,
                };
                let tie = match numbers.below(40) {
                    0 if tie_kinds > 1 => [0, 1, u64::MAX - 1, u64::MAX][numbers.below(4) as usize],
                    _ => numbers.below(tie_kinds),
                };
                let at = match numbers.below(20) {
                    0 => numbers.next() as i64,
                    _ => 1_763_942_400_000 + numbers.below(604_800) as i64 * 1000,
                };
                let before = reference.insert(player, (score, tie, at));
                let expected = match before {
                    None => PutOutcome::Added,
                    Some(same) if same == (score, tie, at) => PutOutcome::Unchanged,
                    Some((score, tie, at)) => PutOutcome::Replaced(tied(score, tie, at, player)),
                };
                assert_eq!(board.put(tied(score, tie, at, player)), expected);
            }
            if step % 997 == 0 {
                Oracle::of(direction, &reference).check(&board, &mut numbers);
            }
            if step < 600 || (30_000..30_100).contains(&step) {
                board.check();
            }
        }
        let built = Board::build(direction, 9, board.iter());
        Oracle::of(direction, &reference).check(&built, &mut numbers);
        while let Some((player, _)) = reference.pop_last() {
            board.remove(PlayerKey(player));
            if reference.len() % 200 == 0 {
                Oracle::of(direction, &reference).check(&board, &mut numbers);
            }
        }
        assert_eq!((board.len(), board.heap_bytes()), (0, 0), "an empty board has no heap memory");
    }
}

/// Several shards of the player index and several groups: the board grows, the order of all
/// entries is reversed, then entries are removed in order.
#[test]
fn groups_split_and_merge() {
    let mut numbers = Numbers(7);
    let n = 180_000;
    let mut board = Board::new(High, 1);
    for player in 0..n {
        board.put(entry(i64::from(player) / 3, 0, player));
    }
    board.check();
    assert!(board.root.len() > 2, "{} groups", board.root.len());
    for player in 0..n {
        board.put(entry(-i64::from(player) / 3, numbers.below(1 << 40) as i64, player));
    }
    board.check();
    let built = Board::build(High, 1, board.iter());
    built.check();
    assert!(built.iter().eq(board.iter()));
    for player in (0..n).filter(|player| player % 10 != 0) {
        board.remove(PlayerKey(player));
        if player % 20_011 == 1 {
            board.check();
        }
    }
    board.check();
    assert_eq!(board.len(), n / 10);
    assert!(board.heap_bytes() * 2 < built.heap_bytes(), "{} of {}", board.heap_bytes(), built.heap_bytes());
    let compact = board.compacted();
    compact.check();
    assert!(compact.iter().eq(board.iter()));
    assert_eq!(compact.start_cursor(), board.start_cursor(), "cursors stay valid");
    assert!(compact.heap_bytes() * 9 < built.heap_bytes(), "{} of {}", compact.heap_bytes(), built.heap_bytes());
    // The removed players are added again between the others.
    for player in 0..n {
        board.put(entry(i64::from(player % 1000), 5, player));
    }
    board.check();
}

#[test]
fn empty_board_returns_nothing() {
    for board in [Board::new(High, 1), Board::build(Low, 1, [])] {
        board.check();
        assert!(board.is_empty());
        assert_eq!(
            (board.position(PlayerKey(1)), board.get(PlayerKey(1)), board.standing(PlayerKey(1))),
            (None, None, None)
        );
        assert_eq!((board.entry_at(0), board.entry_at(1)), (None, None));
        assert!(board.top(3).is_empty() && board.bottom(3).is_empty() && board.page(1, 9).entries.is_empty());
        assert_eq!(board.around(PlayerKey(1), 5), None);
        assert_eq!(
            (board.positions_with_scores(..), board.count_in_range(5..), board.distinct_score_count()),
            (1..1, 0, 0)
        );
        assert_eq!((board.position_for(Score(0)), board.better_count(Score(0))), (1, 0));
        assert_eq!(board.positions(&[PlayerKey(1), PlayerKey(2)]), [None, None]);
        assert!(board.page_after(&board.start_cursor(), 5).unwrap().slice.entries.is_empty());
        assert!(board.page_before(&board.end_cursor(), 5).unwrap().slice.entries.is_empty());
    }
}

#[test]
fn absent_and_deleted_players_have_no_position() {
    let mut board = board_of(High, &[10, 30, 20]);
    assert_eq!(board.position(PlayerKey(9)), None);
    assert_eq!(board.remove(PlayerKey(9)), None);
    assert_eq!(board.remove(PlayerKey(2)), Some(entry(30, 2, 2)));
    assert_eq!(board.remove(PlayerKey(2)), None, "removed twice");
    assert_eq!(
        (board.position(PlayerKey(2)), board.dense_rank(PlayerKey(2)), board.around(PlayerKey(2), 3)),
        (None, None, None)
    );
    assert_eq!(
        board.positions(&[PlayerKey(2), PlayerKey(1), PlayerKey(3), PlayerKey(1)]),
        [None, Some(2), Some(1), Some(2)]
    );
    assert_eq!(board.put(entry(30, 2, 2)), PutOutcome::Added, "is added again");
    assert_eq!(board.position(PlayerKey(2)), Some(1));
}

#[test]
fn equal_scores_order_by_time_then_key() {
    for direction in [High, Low] {
        let mut board = Board::new(direction, 1);
        for (at, player) in [(50, 1), (30, 2), (30, 9), (20, 4), (i64::MIN, 8), (i64::MAX, 0)] {
            board.put(entry(7, at, player));
        }
        assert_eq!(players(&board.top(9)), [8, 4, 2, 9, 1, 0]);
        assert_eq!(players(&board.bottom(2)), [0, 1]);
        assert!((1..=6).all(|p| board.competition_rank(board.entry_at(p).unwrap().player) == Some(1)));
        assert_eq!(
            (board.distinct_score_count(), board.position_for(Score(7)), board.better_count(Score(7))),
            (1, 7, 0)
        );
    }
}

/// A tie-breaker orders entries of equal score, but does not change their shared ranks.
#[test]
fn tie_break_precedes_time_and_keeps_shared_ranks() {
    for direction in [High, Low] {
        let mut board = Board::new(direction, 1);
        let others = [(9, 1), (2, 2), (2, 3), (0, 4), (u64::MAX, 5)];
        others.into_iter().for_each(|(tie, player)| _ = board.put(tied(7, tie, 100 - i64::from(player), player)));
        board.put(tied(if direction == High { 8 } else { 6 }, u64::MAX, 999, 6));
        board.check();
        assert_eq!(players(&board.top(9)), [6, 4, 3, 2, 1, 5]);
        assert!(
            (1..=5)
                .all(|p| board.competition_rank(PlayerKey(p)) == Some(2) && board.dense_rank(PlayerKey(p)) == Some(2))
        );
        assert_eq!(
            (board.distinct_score_count(), board.position_for(Score(7)), board.better_count(Score(7))),
            (2, 7, 1)
        );
        let page = board.page_after(&board.start_cursor(), 4).unwrap();
        let cursor = page.end.to_string().parse().unwrap();
        assert_eq!(players(&board.page_after(&cursor, 9).unwrap().slice.entries), [1, 5]);
        assert_eq!(
            board.put(tied(7, 1, 95, 5)),
            PutOutcome::Replaced(tied(7, u64::MAX, 95, 5)),
            "another tie value is another entry"
        );
        assert_eq!(players(&board.page_before(&cursor, 9).unwrap().slice.entries), [6, 4, 5, 3, 2]);
    }
}

#[test]
fn equal_scores_share_competition_and_dense_ranks() {
    let board = board_of(High, &[100, 90, 90, 80]);
    let standings: Vec<_> = (1..=4).map(|n| board.standing(PlayerKey(n)).unwrap()).collect();
    assert_eq!(standings.iter().map(|s| s.position).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(standings.iter().map(|s| s.competition).collect::<Vec<_>>(), [1, 2, 2, 4]);
    assert_eq!(standings.iter().map(|s| s.dense).collect::<Vec<_>>(), [1, 2, 2, 3]);
    let percent: Vec<_> = standings.iter().map(|s| s.percentile).collect();
    assert_eq!(percent, [100.0, 100.0 / 3.0, 100.0 / 3.0, 0.0]);
    assert_eq!(board_of(High, &[5]).percentile(PlayerKey(1)), Some(100.0));
    let low = board_of(Low, &[100, 90, 90, 80]);
    assert_eq!((low.competition_rank(PlayerKey(1)), low.dense_rank(PlayerKey(1))), (Some(4), Some(3)));
}

#[test]
fn extreme_scores_sort_in_both_directions() {
    let scores = [0, i64::MAX, i64::MIN, -1, i64::MIN + 1, 1, i64::MAX - 1, -5_000_000_000];
    let (high, low) = (board_of(High, &scores), board_of(Low, &scores));
    assert_eq!(players(&high.top(9)), [2, 7, 6, 1, 4, 8, 5, 3]);
    assert_eq!(players(&low.top(9)), [3, 5, 8, 4, 1, 6, 7, 2]);
    assert!(high.iter().chain(low.iter()).all(|p| p.score().0 == scores[p.player.0 as usize - 1]));
    assert_eq!(high.count_in_range(i64::MIN..=i64::MAX), 8);
    assert_eq!((high.count_in_range(i64::MIN..i64::MAX), low.count_in_range(i64::MIN..i64::MAX)), (7, 7));
    assert_eq!(
        (high.count_in_range(..0), high.count_in_range(0..), low.count_in_range(..0), low.count_in_range(0..)),
        (4, 4, 4, 4)
    );
    assert_eq!(
        (
            high.positions_with_scores((Excluded(i64::MAX), Unbounded)),
            low.positions_with_scores((Unbounded, Excluded(i64::MIN)))
        ),
        (1..1, 1..1)
    );
    assert_eq!((high.position_for(Score(i64::MIN)), low.position_for(Score(i64::MAX))), (9, 9));
    assert_eq!((high.better_count(Score(i64::MAX)), low.better_count(Score(i64::MIN))), (0, 0));
}

#[test]
fn counts_for_a_score_that_no_entry_has() {
    let scores: Vec<i64> = (0..10).map(|n| 5 + 10 * n).collect();
    let (low, high) = (board_of(Low, &scores), board_of(High, &scores));
    for score in 0..=100_i64 {
        assert_eq!(i64::from(low.better_count(Score(score))), (score + 4) / 10);
        assert_eq!(i64::from(high.at_least_as_good_count(Score(score))), 10 - (score + 4) / 10);
    }
}

#[test]
fn ranges_honour_open_and_closed_bounds() {
    let board = board_of(High, &[10, 20, 20, 30]);
    assert_eq!(board.positions_with_scores(10..=30), 1..5);
    assert_eq!(board.positions_with_scores(10..30), 2..5);
    assert_eq!(board.positions_with_scores((Excluded(10), Included(30))), 1..4);
    assert_eq!(board.positions_with_scores((Excluded(10), Excluded(30))), 2..4);
    assert_eq!(
        (
            board.positions_with_scores(31..),
            board.positions_with_scores(..10),
            board.positions_with_scores(40..50),
            board.positions_with_scores(11..20)
        ),
        (1..1, 5..5, 1..1, 4..4)
    );
    #[expect(clippy::reversed_empty_ranges, reason = "a user may send it")]
    let reversed = board.positions_with_scores(30..10);
    assert_eq!(reversed.len(), 0);
    let low = board_of(Low, &[10, 20, 20, 30]);
    assert_eq!(
        (low.positions_with_scores(10..30), low.positions_with_scores((Excluded(10), Included(30)))),
        (1..4, 2..5)
    );
}

#[test]
fn repeated_and_worse_writes_change_nothing() {
    let mut board = board_of(High, &[50, 40]);
    let version = board.start_cursor().version;
    assert_eq!(board.put(entry(40, 2, 2)), PutOutcome::Unchanged, "the same entry");
    assert_eq!(board.put_if_better(entry(39, 9, 2)), PutOutcome::Unchanged, "worse");
    assert_eq!(board.put_if_better(entry(40, 9, 2)), PutOutcome::Unchanged, "no better: the time stays");
    assert_eq!((board.start_cursor().version, board.get(PlayerKey(2))), (version, Some(entry(40, 2, 2))));
    assert_eq!(board.put_if_better(entry(60, 9, 2)), PutOutcome::Replaced(entry(40, 2, 2)));
    assert_eq!(board.put_if_better(entry(1, 9, 3)), PutOutcome::Added);
    assert_eq!(players(&board.top(9)), [2, 1, 3]);
    let mut low = board_of(Low, &[50, 40]);
    assert_eq!(low.put_if_better(entry(60, 9, 2)), PutOutcome::Unchanged);
    assert_eq!(low.put_if_better(entry(30, 9, 1)), PutOutcome::Replaced(entry(50, 1, 1)));
    // Several rows of a player: the best one counts.
    let built = Board::build(High, 1, [entry(5, 1, 1), entry(7, 9, 1), entry(7, 3, 1), entry(6, 1, 2)]);
    assert_eq!(built.top(9), [entry(7, 3, 1), entry(6, 1, 2)]);
    // Zero is a score.
    assert_eq!(board_of(High, &[0, -1, 1]).position(PlayerKey(1)), Some(2));
}

#[test]
fn pages_cross_block_boundaries() {
    let n = 5 * BLOCK_MAX as u32;
    let board = Board::build(Low, 1, (1..=n).map(|i| entry(i64::from(i), 0, i)));
    let edge = BLOCK_MAX as u32 * 3 / 4;
    assert_eq!(board.blocks[0].len() as u32, edge);
    for position in [1, edge - 1, edge, edge + 1, 2 * edge, 2 * edge + 1, n - 1, n] {
        for count in [0, 1, 2, edge, edge + 1, 3 * edge, n] {
            let run = board.page(position, count);
            assert_eq!(run.position, position);
            assert_eq!(players(&run.entries), (position..=n).take(count as usize).collect::<Vec<_>>());
        }
    }
    assert_eq!((board.page(n + 1, 5).entries.len(), board.page(u32::MAX, 5).entries.len()), (0, 0));
    assert_eq!(board.page(0, 2), board.page(1, 2));
    assert_eq!(players(&board.bottom(3)), [n, n - 1, n - 2]);
    assert_eq!(board.bottom(u32::MAX).len() as u32, n);
}

#[test]
fn around_returns_the_neighbours() {
    let board = board_of(Low, &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let around = |player, n| players(&board.around(PlayerKey(player), n).unwrap().entries);
    assert_eq!(around(5, 3), [4, 5, 6]);
    assert_eq!(around(5, 4), [4, 5, 6, 7], "even: one more worse entry");
    assert_eq!(around(5, 1), [5]);
    assert_eq!((around(1, 3), around(2, 3), around(2, 5)), (vec![1, 2, 3], vec![1, 2, 3], vec![1, 2, 3, 4, 5]));
    assert_eq!((around(9, 3), around(8, 4)), (vec![7, 8, 9], vec![6, 7, 8, 9]));
    assert_eq!((around(5, 100).len(), around(5, u32::MAX).len(), around(5, 0).len()), (9, 9, 0));
    assert_eq!(board.around(PlayerKey(5), 3).unwrap().position, 4);
    let tiny = board_of(High, &[3]);
    assert_eq!(players(&tiny.around(PlayerKey(1), 5).unwrap().entries), [1]);
}

#[test]
fn cursor_stays_valid_while_entries_move() {
    let mut board = board_of(High, &[90, 80, 70, 60, 50, 40, 30]);
    let first = board.page_after(&board.start_cursor(), 3).unwrap();
    assert_eq!((players(&first.slice.entries), first.slice.position, first.board_changed), (vec![1, 2, 3], 1, false));
    // A new player takes position 1, and the last one of the page is removed.
    board.put(entry(95, 8, 8));
    board.remove(PlayerKey(3));
    let second = board.page_after(&first.end, 3).unwrap();
    assert_eq!((players(&second.slice.entries), second.slice.position, second.board_changed), (vec![4, 5, 6], 4, true));
    let back = board.page_before(&second.start, 2).unwrap();
    assert_eq!((players(&back.slice.entries), back.slice.position, back.board_changed), (vec![1, 2], 2, false));
    let back = board.page_before(&back.start, 5).unwrap();
    assert_eq!(players(&back.slice.entries), [8]);
    assert!(board.page_before(&back.start, 5).unwrap().slice.entries.is_empty());
    let last = board.page_after(&second.end, 9).unwrap();
    assert_eq!(players(&last.slice.entries), [7]);
    let none = board.page_after(&last.end, 9).unwrap();
    assert_eq!((none.slice.entries.len(), none.slice.position), (0, 8));
    assert_eq!(players(&board.page_before(&none.start, 1).unwrap().slice.entries), [7]);
    assert_eq!(players(&board.page_before(&board.end_cursor(), 2).unwrap().slice.entries), [6, 7]);
    assert_eq!(board.cursor_at(2).edge, CursorEdge::Before(entry(90, 1, 1)));
    assert_eq!(board.cursor_at(99).edge, CursorEdge::End);
}

#[test]
fn cursor_of_another_generation_is_stale() {
    let board = board_of(High, &[1, 2, 3]);
    let cursor = board.page_after(&board.start_cursor(), 1).unwrap().end;
    let rolled_over = Board::build(High, 2, board.iter());
    assert_eq!(rolled_over.page_after(&cursor, 1), Err(StaleCursor { cursor: 1, board: 2 }));
    assert_eq!(rolled_over.page_before(&cursor, 1), Err(StaleCursor { cursor: 1, board: 2 }));
    let start = Cursor { edge: CursorEdge::Start, ..cursor };
    assert_eq!(rolled_over.page_after(&start, 1), Err(StaleCursor { cursor: 1, board: 2 }));
}

/// An entry that does not move is returned once, whatever the others do between pages.
#[test]
fn paging_returns_each_unmoved_entry_once() {
    let mut numbers = Numbers(11);
    let mut board = Board::build(High, 1, (0..4_000).map(|n| entry(i64::from(n % 50), i64::from(n), n)));
    let (mut cursor, mut seen) = (board.start_cursor(), Vec::new());
    loop {
        let page = board.page_after(&cursor, 37).unwrap();
        if page.slice.entries.is_empty() {
            break;
        }
        seen.extend(players(&page.slice.entries).into_iter().filter(|player| player % 2 == 0));
        cursor = page.end;
        for _ in 0..100 {
            let player = numbers.below(2_000) as u32 * 2 + 1;
            match numbers.below(3) {
                0 => drop(board.remove(PlayerKey(player))),
                _ => drop(board.put(entry(numbers.below(60) as i64, 9, player))),
            }
        }
    }
    let stayed: Vec<u32> = board.iter().map(|entry| entry.player.0).filter(|player| player % 2 == 0).collect();
    assert_eq!(seen, stayed);
}

/// A wide value widens the columns of its block only, and nothing is rounded.
#[test]
fn wide_value_widens_only_its_block() {
    let narrow =
        Board::build(High, 1, (0..10_000).map(|n| entry(i64::from(n / 4), 1_763_942_400_000 + i64::from(n), n)));
    let per_entry = narrow.heap_bytes() as f64 / 10_000.0;
    assert!(per_entry < 14.0, "{per_entry}");
    let mut wide = narrow.clone();
    wide.put(entry(i64::MIN, i64::MIN, 20_000));
    wide.put(entry(i64::MAX, i64::MAX, 20_001));
    wide.put(entry(600, i64::MIN, 20_002));
    wide.check();
    assert!(wide.heap_bytes() < narrow.heap_bytes() + 3 * 16 * 300);
    let mut tied_board = narrow.clone();
    tied_board.put(tied(600, u64::MAX, 0, 20_000));
    tied_board.check();
    assert!(tied_board.heap_bytes() < narrow.heap_bytes() + 8 * 128 + 8 * GROUP_MAX + 300, "only one block grows");
    assert_eq!(wide.get(PlayerKey(20_002)), Some(entry(600, i64::MIN, 20_002)));
    assert_eq!(
        (wide.entry_at(1), wide.entry_at(10_003)),
        (Some(entry(i64::MAX, i64::MAX, 20_001)), Some(entry(i64::MIN, i64::MIN, 20_000)))
    );
}

/// One player is on two boards independently.
#[test]
fn boards_are_independent() {
    let (mut one, other) = (board_of(High, &[5, 6]), board_of(Low, &[5, 6]));
    one.remove(PlayerKey(1));
    assert_eq!((one.position(PlayerKey(1)), other.position(PlayerKey(1))), (None, Some(1)));
}
