//! Tests every query against the order of the board.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use super::*;
use crate::board::tree::Direction::{self, HighIsBetter as High, LowIsBetter as Low};

fn place(score: i64, at_ms: i64, player: u32) -> BoardEntry {
    BoardEntry::new(Score(score), at_ms, PlayerKey(player))
}

/// Players 1, 2, ... with these scores, reached at 1, 2, ...
fn board(direction: Direction, scores: &[i64]) -> Set {
    Set::build(direction, 1, scores.iter().zip(1..).map(|(&score, n)| place(score, i64::from(n), n)))
}

fn found(set: &Set, question: Question) -> QueryData {
    let answer = run(set, &question).unwrap();
    assert_eq!(answer.size, set.len());
    answer.found
}

#[track_caller]
fn places(set: &Set, question: Question) -> Vec<RankedEntry> {
    match found(set, question) {
        QueryData::Places(places) | QueryData::Page { places, .. } | QueryData::Range { places, .. } => places,
        other => panic!("no places: {other:?}"),
    }
}

fn players(places: &[RankedEntry]) -> Vec<u32> {
    places.iter().map(|ranked| ranked.place.player.0).collect()
}

fn numbers(places: &[RankedEntry]) -> Vec<(u32, u32, u32)> {
    places.iter().map(|r| (r.positions.ordinal, r.positions.competition, r.positions.dense)).collect()
}

#[test]
fn empty_board_answers_every_query() {
    let set = Set::new(High, 1);
    let all = (Unbounded, Unbounded);
    for question in [
        Question::Top { count: 5 },
        Question::Bottom { count: 5 },
        Question::Page { position: 1, count: 5 },
        Question::At { position: 1 },
        Question::Range { scores: all, start: 1, count: 5 },
        Question::After { cursor: set.start(), count: 5 },
        Question::Before { cursor: set.end(), count: 5 },
    ] {
        assert!(places(&set, question.clone()).is_empty(), "{question:?}");
    }
    assert_eq!(found(&set, Question::Size), QueryData::Size);
    assert_eq!(found(&set, Question::Count { scores: all }), QueryData::Count { first: 1, count: 0 });
    assert_eq!(found(&set, Question::Standing { player: PlayerKey(1) }), QueryData::Standing(None));
    assert_eq!(found(&set, Question::Positions { players: vec![PlayerKey(1)] }), QueryData::Positions(vec![None]));
    let first = Ranks { ordinal: 1, competition: 1, dense: 1 };
    assert_eq!(found(&set, Question::position_for(Score(0))), QueryData::Position(first));
    let around = run(&set, &Question::Around { player: PlayerKey(1), count: 3 });
    assert_eq!(around, Err(QueryError::Absent(PlayerKey(1))));
}

#[test]
fn page_entries_have_correct_ranks_at_any_offset() {
    let set = board(High, &[100, 90, 90, 80]);
    let all = [(1, 1, 1), (2, 2, 2), (3, 2, 2), (4, 4, 3)];
    assert_eq!(numbers(&places(&set, Question::Top { count: 9 })), all);
    for position in 1..=4 {
        let page = places(&set, Question::Page { position, count: 2 });
        let from = position as usize - 1;
        assert_eq!(numbers(&page), all[from..(from + 2).min(4)]);
        assert_eq!(numbers(&places(&set, Question::At { position })), all[from..=from]);
    }
    let mut last_first = all;
    last_first.reverse();
    assert_eq!(numbers(&places(&set, Question::Bottom { count: 9 })), last_first);
    assert_eq!(numbers(&places(&set, Question::Bottom { count: 1 })), last_first[..1]);
    assert!(places(&set, Question::At { position: 5 }).is_empty());
    assert!(places(&set, Question::At { position: 0 }).is_empty());
    assert!(places(&set, Question::Page { position: 5, count: 3 }).is_empty());
    let queried = [4, 9, 3, 4].map(PlayerKey).to_vec();
    let QueryData::Positions(ranks) = found(&set, Question::Positions { players: queried }) else {
        panic!("positions")
    };
    let ranks: Vec<_> = ranks.iter().map(|r| r.map(|r| numbers(&[r])[0])).collect();
    assert_eq!(ranks, [Some(all[3]), None, Some(all[2]), Some(all[3])]);
}

/// The same scores in both directions: among equal scores the earlier one stays first.
#[test]
fn direction_reverses_scores_but_not_tie_breaks() {
    let scores = [5, 7, 7, 5, 9];
    assert_eq!(players(&places(&board(High, &scores), Question::Top { count: 9 })), [5, 2, 3, 1, 4]);
    assert_eq!(players(&places(&board(Low, &scores), Question::Top { count: 9 })), [1, 4, 2, 3, 5]);
    assert_eq!(players(&places(&board(Low, &scores), Question::Bottom { count: 2 })), [5, 3]);
}

#[test]
fn around_is_filled_at_the_ends_of_the_board() {
    let set = board(High, &[9, 8, 7, 6, 5]);
    let around = |player, count| players(&places(&set, Question::Around { player: PlayerKey(player), count }));
    assert_eq!((around(1, 3), around(2, 3), around(5, 3)), (vec![1, 2, 3], vec![1, 2, 3], vec![3, 4, 5]));
    assert_eq!((around(3, 4), around(3, 1), around(3, 99)), (vec![2, 3, 4, 5], vec![3], vec![1, 2, 3, 4, 5]));
    let absent = run(&set, &Question::Around { player: PlayerKey(6), count: 3 }).unwrap_err();
    assert_eq!(absent.to_string(), "player 6 is not on the board");
}

#[test]
fn pages_of_a_range_stay_inside_it() {
    let set = board(High, &[10, 20, 20, 30, 40]);
    let scores = (Included(10), Excluded(40));
    let range = |start, count| found(&set, Question::Range { scores, start, count });
    let QueryData::Range { first, count, places } = range(1, 2) else { panic!("a range") };
    assert_eq!((first, count, players(&places)), (2, 4, vec![4, 2]));
    assert_eq!(numbers(&places), [(2, 2, 2), (3, 3, 3)]);
    let QueryData::Range { places, .. } = range(3, 9) else { panic!("a range") };
    assert_eq!((players(&places), numbers(&places)), (vec![3, 1], vec![(4, 3, 3), (5, 5, 4)]));
    for past in [5, 6, u32::MAX] {
        let QueryData::Range { places, count, .. } = range(past, 9) else { panic!("a range") };
        assert_eq!((places.len(), count), (0, 4), "past the end of the range");
    }
    assert_eq!(range(0, 1), range(1, 1));
    assert_eq!(found(&set, Question::Count { scores }), QueryData::Count { first: 2, count: 4 });
    let no_score = (Excluded(20), Excluded(30));
    assert_eq!(found(&set, Question::Count { scores: no_score }), QueryData::Count { first: 3, count: 0 });
    let low = board(Low, &[10, 20, 20, 30, 40]);
    let QueryData::Range { first, places, .. } = found(&low, Question::Range { scores, start: 2, count: 2 }) else {
        panic!("a range")
    };
    assert_eq!((first, players(&places)), (1, vec![2, 3]));
}

#[test]
fn position_for_a_hypothetical_score() {
    let set = board(High, &[100, 90, 90, 80]);
    let low = board(Low, &[100, 90, 90, 80]);
    let of = |set: &Set, question| match found(set, question) {
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
        let question = Question::position_for(Score(score));
        assert_eq!((of(&set, question.clone()), of(&low, question)), (high_position, low_position), "{score}");
    }
    // Between 90 and 91, where a displayed score may lie: equal to no score.
    let between = Question::PositionFor { alike: (Included(91), Excluded(91)) };
    assert_eq!((of(&set, between.clone()), of(&low, between)), ((2, 2, 2), (4, 4, 3)));
    // Position for an absent score on a board with 5, 15, .. 95.
    let tens = board(Low, &(0..10).map(|n| 5 + 10 * n).collect::<Vec<_>>());
    for score in (0..=100).filter(|score| score % 10 != 5) {
        assert_eq!(of(&tens, Question::position_for(Score(score))).0 - 1, (score as u32 + 4) / 10);
    }
}

#[test]
fn cursor_pages_forward_and_back() {
    let mut set = board(High, &[90, 80, 80, 70, 60]);
    let page = |set: &Set, question| match found(set, question) {
        QueryData::Page { places, board_changed, start, end } => {
            (players(&places), numbers(&places), board_changed, start, end)
        }
        other => panic!("{other:?}"),
    };
    let (page_players, _, board_changed, start, end) = page(&set, Question::Page { position: 2, count: 2 });
    assert_eq!((page_players, board_changed), (vec![2, 3], false));
    let (page_players, positions, _, _, last) = page(&set, Question::After { cursor: end, count: 9 });
    assert_eq!((page_players, positions), (vec![4, 5], vec![(4, 4, 3), (5, 5, 4)]));
    assert_eq!(page(&set, Question::Before { cursor: start, count: 9 }).0, [1]);
    set.put(place(95, 9, 9));
    let (page_players, positions, board_changed, ..) = page(&set, Question::Before { cursor: end, count: 2 });
    assert_eq!((page_players, positions, board_changed), (vec![2, 3], vec![(3, 3, 3), (4, 3, 3)], true));
    assert!(page(&set, Question::After { cursor: last, count: 9 }).0.is_empty());
    // The cursor is converted to text and back, then used on the board of another week.
    let cursor: Cursor = end.to_string().parse().unwrap();
    let other = Set::build(High, 2, set.iter());
    let stale = run(&other, &Question::After { cursor, count: 1 }).unwrap_err();
    assert_eq!(stale, QueryError::Stale(StaleCursor { cursor: 1, board: 2 }));
    assert!(stale.to_string().contains("first page"));
    // Rebuilt for each query: the version decides whether the board has changed.
    let again = |version| Set::build(High, 1, set.iter()).with_version(version);
    let (.., end) = page(&again(77), Question::Page { position: 1, count: 1 });
    assert!(!page(&again(77), Question::After { cursor: end, count: 1 }).2);
    assert!(page(&again(78), Question::After { cursor: end, count: 1 }).2);
}

#[test]
fn zero_and_extreme_integers_are_scores() {
    let scores = [0, i64::MIN, i64::MIN + 1, -7, i64::MAX];
    for (direction, order) in [(High, [5, 1, 4, 3, 2]), (Low, [2, 3, 4, 1, 5])] {
        let set = board(direction, &scores);
        let top = places(&set, Question::Top { count: 9 });
        assert_eq!(players(&top), order);
        for (position, player) in (1..).zip(order) {
            let QueryData::Standing(Some(standing)) = found(&set, Question::Standing { player: PlayerKey(player) })
            else {
                panic!("is on the board")
            };
            assert_eq!((standing.position, standing.competition, standing.dense), (position, position, position));
            assert_eq!(standing.percentile, f64::from(5 - position) * 25.0);
            let score = scores[player as usize - 1];
            let one = (Included(score), Included(score));
            assert_eq!(found(&set, Question::Count { scores: one }), QueryData::Count { first: position, count: 1 });
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
        let (mut set, mut truth) = (Set::new(direction, 1), BTreeMap::new());
        for step in 0..6_000 {
            let player = below(900) as u32;
            match below(4) {
                0 => {
                    set.remove(PlayerKey(player));
                    truth.remove(&player);
                }
                _ => {
                    let (score, at) = (below(60) as i64 - 30, below(50) as i64);
                    set.put(place(score, at, player));
                    truth.insert(player, (score, at));
                }
            }
            if step % 300 != 299 {
                continue;
            }
            let mut order: Vec<BoardEntry> = truth.iter().map(|(&p, &(score, at))| place(score, at, p)).collect();
            let sign = if direction == High { -1 } else { 1 };
            order.sort_by_key(|place| (sign * place.score().0, place.at_ms, place.player));
            let mut want = Vec::new();
            for (i, entry) in order.iter().enumerate() {
                let ahead = order[..i].iter().filter(|place| place.score() != entry.score());
                let mut kinds: Vec<i64> = ahead.clone().map(|place| place.score().0).collect();
                kinds.dedup();
                let (competition, dense) = (ahead.count() as u32 + 1, kinds.len() as u32 + 1);
                want.push(RankedEntry {
                    place: *entry,
                    positions: Ranks { ordinal: i as u32 + 1, competition, dense },
                });
            }
            assert_eq!(places(&set, Question::Top { count: u32::MAX }), want);
            for _ in 0..30 {
                let (position, count) = (below(want.len() as u64) as u32 + 1, below(200) as u32);
                let from = position as usize - 1;
                let to = (from + count as usize).min(want.len());
                assert_eq!(places(&set, Question::Page { position, count }), want[from..to]);
                let score = below(64) as i64 - 32;
                let high = score + below(10) as i64;
                let within: Vec<RankedEntry> =
                    want.iter().filter(|r| (score..=high).contains(&r.place.score().0)).copied().collect();
                let scores = (Included(score), Included(high));
                assert_eq!(places(&set, Question::Range { scores, start: 1, count: u32::MAX }), within);
                // Insert a player who comes last among equal scores: their ranks equal the
                // predicted ones.
                let QueryData::Position(predicted) = found(&set, Question::position_for(Score(score))) else {
                    panic!("a position")
                };
                let mut with = set.clone();
                with.put(place(score, i64::MAX, 5_000));
                let QueryData::Positions(placed) =
                    found(&with, Question::Positions { players: vec![PlayerKey(5_000)] })
                else {
                    panic!("positions")
                };
                assert_eq!(placed[0].unwrap().positions, predicted);
            }
        }
    }
}
