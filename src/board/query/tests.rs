//! Tests every query against the order of the board.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use super::*;
use crate::board::Score;
use crate::board::order::Direction::{self, HighIsBetter as High, LowIsBetter as Low};

fn entry(score: i64, at_ms: i64, player: u32) -> BoardEntry {
    BoardEntry::new(Score(score), at_ms, PlayerKey(player))
}

/// Players 1, 2, ... with these scores, reached at 1, 2, ...
fn board_of(direction: Direction, scores: &[i64]) -> Board {
    Board::build(direction, 1, scores.iter().zip(1..).map(|(&score, n)| entry(score, i64::from(n), n)))
}

/// The query for the position that a new player would have with a raw score.
fn position_for(score: Score) -> Query {
    Query::PositionFor { scores: (Included(score.0), Included(score.0)) }
}

fn found(board: &Board, query: Query) -> QueryData {
    let answer = run(board, &query).unwrap();
    assert_eq!(answer.size, board.len());
    answer.data
}

#[track_caller]
fn entries(board: &Board, query: Query) -> Vec<RankedEntry> {
    match found(board, query) {
        QueryData::Entries(entries) | QueryData::Page { entries, .. } | QueryData::Range { entries, .. } => entries,
        other => panic!("no entries: {other:?}"),
    }
}

fn players(entries: &[RankedEntry]) -> Vec<u32> {
    entries.iter().map(|ranked| ranked.entry.player.0).collect()
}

fn numbers(entries: &[RankedEntry]) -> Vec<(u32, u32, u32)> {
    entries.iter().map(|r| (r.ranks.ordinal, r.ranks.competition, r.ranks.dense)).collect()
}

#[test]
fn empty_board_answers_every_query() {
    let board = Board::new(High, 1);
    let all = (Unbounded, Unbounded);
    for query in [
        Query::Top { count: 5 },
        Query::Bottom { count: 5 },
        Query::Page { position: 1, count: 5 },
        Query::At { position: 1 },
        Query::Range { scores: all, start: 1, count: 5 },
        Query::After { cursor: board.start_cursor(), count: 5 },
        Query::Before { cursor: board.end_cursor(), count: 5 },
    ] {
        assert!(entries(&board, query.clone()).is_empty(), "{query:?}");
    }
    assert_eq!(found(&board, Query::Size), QueryData::Size);
    assert_eq!(found(&board, Query::Count { scores: all }), QueryData::Count { first: 1, count: 0 });
    assert_eq!(found(&board, Query::Standing { player: PlayerKey(1) }), QueryData::Standing(None));
    assert_eq!(found(&board, Query::Positions { players: vec![PlayerKey(1)] }), QueryData::Positions(vec![None]));
    let first = Ranks { ordinal: 1, competition: 1, dense: 1 };
    assert_eq!(found(&board, position_for(Score(0))), QueryData::Position(first));
    let around = run(&board, &Query::Around { player: PlayerKey(1), count: 3 });
    assert_eq!(around, Err(QueryError::Absent(PlayerKey(1))));
}

#[test]
fn page_entries_have_correct_ranks_at_any_offset() {
    let board = board_of(High, &[100, 90, 90, 80]);
    let all = [(1, 1, 1), (2, 2, 2), (3, 2, 2), (4, 4, 3)];
    assert_eq!(numbers(&entries(&board, Query::Top { count: 9 })), all);
    for position in 1..=4 {
        let page = entries(&board, Query::Page { position, count: 2 });
        let from = position as usize - 1;
        assert_eq!(numbers(&page), all[from..(from + 2).min(4)]);
        assert_eq!(numbers(&entries(&board, Query::At { position })), all[from..=from]);
    }
    let mut last_first = all;
    last_first.reverse();
    assert_eq!(numbers(&entries(&board, Query::Bottom { count: 9 })), last_first);
    assert_eq!(numbers(&entries(&board, Query::Bottom { count: 1 })), last_first[..1]);
    assert!(entries(&board, Query::At { position: 5 }).is_empty());
    assert!(entries(&board, Query::At { position: 0 }).is_empty());
    assert!(entries(&board, Query::Page { position: 5, count: 3 }).is_empty());
    let queried = [4, 9, 3, 4].map(PlayerKey).to_vec();
    let QueryData::Positions(ranks) = found(&board, Query::Positions { players: queried }) else { panic!("positions") };
    let ranks: Vec<_> = ranks.iter().map(|r| r.map(|r| numbers(&[r])[0])).collect();
    assert_eq!(ranks, [Some(all[3]), None, Some(all[2]), Some(all[3])]);
}

/// The same scores in both directions: among equal scores the earlier one stays first.
#[test]
fn direction_reverses_scores_but_not_tie_breaks() {
    let scores = [5, 7, 7, 5, 9];
    assert_eq!(players(&entries(&board_of(High, &scores), Query::Top { count: 9 })), [5, 2, 3, 1, 4]);
    assert_eq!(players(&entries(&board_of(Low, &scores), Query::Top { count: 9 })), [1, 4, 2, 3, 5]);
    assert_eq!(players(&entries(&board_of(Low, &scores), Query::Bottom { count: 2 })), [5, 3]);
}

#[test]
fn around_is_filled_at_the_ends_of_the_board() {
    let board = board_of(High, &[9, 8, 7, 6, 5]);
    let around = |player, count| players(&entries(&board, Query::Around { player: PlayerKey(player), count }));
    assert_eq!((around(1, 3), around(2, 3), around(5, 3)), (vec![1, 2, 3], vec![1, 2, 3], vec![3, 4, 5]));
    assert_eq!((around(3, 4), around(3, 1), around(3, 99)), (vec![2, 3, 4, 5], vec![3], vec![1, 2, 3, 4, 5]));
    let absent = run(&board, &Query::Around { player: PlayerKey(6), count: 3 }).unwrap_err();
    assert_eq!(absent.to_string(), "player 6 is not on the board");
}

#[test]
fn pages_of_a_range_stay_inside_it() {
    let board = board_of(High, &[10, 20, 20, 30, 40]);
    let scores = (Included(10), Excluded(40));
    let range = |start, count| found(&board, Query::Range { scores, start, count });
    let QueryData::Range { first, count, entries } = range(1, 2) else { panic!("a range") };
    assert_eq!((first, count, players(&entries)), (2, 4, vec![4, 2]));
    assert_eq!(numbers(&entries), [(2, 2, 2), (3, 3, 3)]);
    let QueryData::Range { entries, .. } = range(3, 9) else { panic!("a range") };
    assert_eq!((players(&entries), numbers(&entries)), (vec![3, 1], vec![(4, 3, 3), (5, 5, 4)]));
    for past in [5, 6, u32::MAX] {
        let QueryData::Range { entries, count, .. } = range(past, 9) else { panic!("a range") };
        assert_eq!((entries.len(), count), (0, 4), "past the end of the range");
    }
    assert_eq!(range(0, 1), range(1, 1));
    assert_eq!(found(&board, Query::Count { scores }), QueryData::Count { first: 2, count: 4 });
    let no_score = (Excluded(20), Excluded(30));
    assert_eq!(found(&board, Query::Count { scores: no_score }), QueryData::Count { first: 3, count: 0 });
    let low = board_of(Low, &[10, 20, 20, 30, 40]);
    let QueryData::Range { first, entries, .. } = found(&low, Query::Range { scores, start: 2, count: 2 }) else {
        panic!("a range")
    };
    assert_eq!((first, players(&entries)), (1, vec![2, 3]));
}

#[test]
fn position_for_a_hypothetical_score() {
    let board = board_of(High, &[100, 90, 90, 80]);
    let low = board_of(Low, &[100, 90, 90, 80]);
    let of = |board: &Board, query| match found(board, query) {
        QueryData::Position(p) => (p.ordinal, p.competition, p.dense),
        other => panic!("{other:?}"),
    };
    for (score, high_position, low_position) in [
        (101, (1, 1, 1), (5, 5, 4)),
        (100, (2, 1, 1), (5, 4, 3)),
        (95, (2, 2, 2), (4, 4, 3)),
        (90, (4, 2, 2), (4, 2, 2)),
        (85, (4, 4, 3), (2, 2, 2)),
        (80, (5, 4, 3), (2, 1, 1)),
        (i64::MIN, (5, 5, 4), (1, 1, 1)),
        (i64::MAX, (1, 1, 1), (5, 5, 4)),
    ] {
        let query = position_for(Score(score));
        assert_eq!((of(&board, query.clone()), of(&low, query)), (high_position, low_position), "{score}");
    }
    // A displayed score between 90 and 91 equals no score.
    let between = Query::PositionFor { scores: (Included(91), Excluded(91)) };
    assert_eq!((of(&board, between.clone()), of(&low, between)), ((2, 2, 2), (4, 4, 3)));
    // Position for an absent score on a board with 5, 15, .. 95.
    let tens = board_of(Low, &(0..10).map(|n| 5 + 10 * n).collect::<Vec<_>>());
    for score in (0..=100).filter(|score| score % 10 != 5) {
        assert_eq!(of(&tens, position_for(Score(score))).0 - 1, (score as u32 + 4) / 10);
    }
}

#[test]
fn cursor_pages_forward_and_back() {
    let mut board = board_of(High, &[90, 80, 80, 70, 60]);
    let page = |board: &Board, query| match found(board, query) {
        QueryData::Page { entries, board_changed, start, end } => {
            (players(&entries), numbers(&entries), board_changed, start, end)
        }
        other => panic!("{other:?}"),
    };
    let (page_players, _, board_changed, start, end) = page(&board, Query::Page { position: 2, count: 2 });
    assert_eq!((page_players, board_changed), (vec![2, 3], false));
    let (page_players, positions, _, _, last) = page(&board, Query::After { cursor: end, count: 9 });
    assert_eq!((page_players, positions), (vec![4, 5], vec![(4, 4, 3), (5, 5, 4)]));
    assert_eq!(page(&board, Query::Before { cursor: start, count: 9 }).0, [1]);
    board.put(entry(95, 9, 9));
    let (page_players, positions, board_changed, ..) = page(&board, Query::Before { cursor: end, count: 2 });
    assert_eq!((page_players, positions, board_changed), (vec![2, 3], vec![(3, 3, 3), (4, 3, 3)], true));
    assert!(page(&board, Query::After { cursor: last, count: 9 }).0.is_empty());
    // The cursor is converted to text and back, then used on the board of another week.
    let cursor: Cursor = end.to_string().parse().unwrap();
    let other = Board::build(High, 2, board.iter());
    let stale = run(&other, &Query::After { cursor, count: 1 }).unwrap_err();
    assert_eq!(stale, QueryError::Stale(StaleCursor { cursor: 1, board: 2 }));
    assert!(stale.to_string().contains("first page"));
    // The board is rebuilt for each query, so its version decides whether it has changed.
    let again = |version| Board::build(High, 1, board.iter()).with_version(version);
    let (.., end) = page(&again(77), Query::Page { position: 1, count: 1 });
    assert!(!page(&again(77), Query::After { cursor: end, count: 1 }).2);
    assert!(page(&again(78), Query::After { cursor: end, count: 1 }).2);
}

#[test]
fn zero_and_extreme_integers_are_scores() {
    let scores = [0, i64::MIN, i64::MIN + 1, -7, i64::MAX];
    for (direction, order) in [(High, [5, 1, 4, 3, 2]), (Low, [2, 3, 4, 1, 5])] {
        let board = board_of(direction, &scores);
        let top = entries(&board, Query::Top { count: 9 });
        assert_eq!(players(&top), order);
        for (position, player) in (1..).zip(order) {
            let QueryData::Standing(Some(standing)) = found(&board, Query::Standing { player: PlayerKey(player) })
            else {
                panic!("is on the board")
            };
            assert_eq!((standing.position, standing.competition, standing.dense), (position, position, position));
            assert_eq!(standing.percentile, f64::from(5 - position) * 25.0);
            let score = scores[player as usize - 1];
            let one = (Included(score), Included(score));
            assert_eq!(found(&board, Query::Count { scores: one }), QueryData::Count { first: position, count: 1 });
        }
    }
}

/// After any writes, every query agrees with a sorted list of all entries.
#[test]
fn queries_after_random_writes_equal_a_sorted_vec() {
    let mut seed = 41_u64;
    let mut below = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for direction in [High, Low] {
        let (mut board, mut reference) = (Board::new(direction, 1), BTreeMap::new());
        for step in 0..6_000 {
            let player = below(900) as u32;
            match below(4) {
                0 => {
                    board.remove(PlayerKey(player));
                    reference.remove(&player);
                }
                _ => {
                    let (score, at) = (below(60) as i64 - 30, below(50) as i64);
                    board.put(entry(score, at, player));
                    reference.insert(player, (score, at));
                }
            }
            if step % 300 != 299 {
                continue;
            }
            let mut order: Vec<BoardEntry> = reference.iter().map(|(&p, &(score, at))| entry(score, at, p)).collect();
            let sign = if direction == High { -1 } else { 1 };
            order.sort_by_key(|entry| (sign * entry.score().0, entry.at_ms, entry.player));
            let mut want = Vec::new();
            for (i, entry) in order.iter().enumerate() {
                let ahead = order[..i].iter().filter(|other| other.score() != entry.score());
                let mut kinds: Vec<i64> = ahead.clone().map(|entry| entry.score().0).collect();
                kinds.dedup();
                let (competition, dense) = (ahead.count() as u32 + 1, kinds.len() as u32 + 1);
                want.push(RankedEntry { entry: *entry, ranks: Ranks { ordinal: i as u32 + 1, competition, dense } });
            }
            assert_eq!(entries(&board, Query::Top { count: u32::MAX }), want);
            for _ in 0..30 {
                let (position, count) = (below(want.len() as u64) as u32 + 1, below(200) as u32);
                let from = position as usize - 1;
                let to = (from + count as usize).min(want.len());
                assert_eq!(entries(&board, Query::Page { position, count }), want[from..to]);
                let score = below(64) as i64 - 32;
                let high = score + below(10) as i64;
                let within: Vec<RankedEntry> =
                    want.iter().filter(|r| (score..=high).contains(&r.entry.score().0)).copied().collect();
                let scores = (Included(score), Included(high));
                assert_eq!(entries(&board, Query::Range { scores, start: 1, count: u32::MAX }), within);
                // Insert a player who comes last among equal scores: their ranks equal the
                // predicted ones.
                let QueryData::Position(predicted) = found(&board, position_for(Score(score))) else {
                    panic!("a position")
                };
                let mut with = board.clone();
                with.put(entry(score, i64::MAX, 5_000));
                let QueryData::Positions(placed) = found(&with, Query::Positions { players: vec![PlayerKey(5_000)] })
                else {
                    panic!("positions")
                };
                assert_eq!(placed[0].unwrap().ranks, predicted);
            }
        }
    }
}
