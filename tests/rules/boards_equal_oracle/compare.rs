//! Compares an engine's boards with the oracle's: players, scores, times of the scores, and
//! order. How the boards were built is tested elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use clqd::board::BoardEntry;
use clqd::board::order::{Direction, TieBreaker};
use clqd::board::score_unit::display_score;
use clqd::board::window::{self, WindowSpec};
use clqd::engine::EngineSettings;
use clqd::model::row::Ranking;
use clqd::model::scope::Scope as ScopeName;
use clqd::model::view::board::{BoardSelector, WindowSummary};
use clqd::model::{PlayerKey, ServerUrl, WindowKey, WindowType};
use clqd::state::State;

use crate::oracle::compare::Segments;
use crate::oracle::{Oracle, Row, Scope, WindowKind};

/// One board, from the best place to the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    pub places: Vec<BoardEntry>,
    pub low_is_better: bool,
    pub tie: Option<Ranking>,
    /// Before the first entry.
    pub generation: u64,
}

/// By scope, window and ranking.
pub type Boards = BTreeMap<(ScopeName, String, &'static str), Board>;

/// A scope as the engine and the oracle name it.
pub type Named = (ScopeName, Scope);

/// Each server, each game of full snapshots, and tags.
pub fn scopes(oracle: &Oracle, tags: &[(String, Vec<String>)]) -> Vec<Named> {
    let games: BTreeSet<&str> = oracle.snapshots.iter().map(|s| s.game.as_str()).collect();
    let url = |server: &String| ServerUrl::parse(server).expect("canonical");
    let servers = oracle.servers.iter().map(|s| (ScopeName::Server(url(s)), Scope::Server(s.clone())));
    let games = games.into_iter().map(|game| (ScopeName::Game(game.to_owned()), Scope::Game(game.to_owned())));
    let tags = tags.iter().map(|(tag, servers)| (ScopeName::Tag(tag.clone()), Scope::Tag(servers.clone())));
    servers.chain(games).chain(tags).collect()
}

pub fn listed(state: &State) -> Vec<WindowSummary> {
    state.engine.windows()
}

/// All windows that the engine lists.
pub fn windows_of(state: &State) -> Vec<WindowKey> {
    let keys = listed(state).into_iter().map(|listed| window::parse_label(&listed.window.window).expect("a label"));
    keys.collect()
}

/// Windows that the engine lists but for the next of each type, and weeks
/// without a row.
pub fn read(state: &State, scopes: &[Named], windows: &[WindowKey]) -> Boards {
    let mut boards = Boards::new();
    for &window in windows {
        for (scope, _) in scopes {
            for ranking in Ranking::ALL {
                let label = window::label(window);
                boards.insert((scope.clone(), label, ranking.name()), read_one(state, scope, window, ranking));
            }
        }
    }
    boards
}

pub fn read_one(state: &State, scope: &ScopeName, window: WindowKey, ranking: Ranking) -> Board {
    let name = BoardSelector { scope: scope.clone(), ranking, window: Some(window::label(window)), at_ms: None };
    let (head, board) = state.engine.board(&state.store, &name).unwrap_or_else(|e| panic!("{name:?}: {e}"));
    let places: Vec<BoardEntry> = board.iter().collect();
    assert_eq!(head.size, places.len() as u64, "{name:?}");
    assert_eq!(head.order.low_is_better, board.direction() == Direction::LowIsBetter, "{name:?}");
    for (place, position) in places.iter().zip(1..) {
        assert_eq!(board.position(place.player), Some(position), "{name:?}: position of {place:?}");
        assert_eq!(board.get(place.player), Some(*place), "{name:?}");
    }
    Board {
        places,
        low_is_better: head.order.low_is_better,
        tie: head.order.tie_breaker,
        generation: board.start_cursor().generation,
    }
}

/// The types of windows, with how the oracle counts them.
pub fn stretches(specs: &[WindowSpec]) -> Vec<(WindowType, WindowKind)> {
    use clqd::board::window::Shape;
    let of = |spec: &WindowSpec| match spec.shape {
        Shape::AllTime => WindowKind::AllTime,
        Shape::Hour => WindowKind::Hours,
        Shape::Day => WindowKind::Days,
        Shape::Week => WindowKind::Weeks,
        Shape::Month => WindowKind::Months,
        Shape::Custom { base_ms, duration_ms, every_ms, repeat } => {
            WindowKind::Custom { base_ms, duration_ms, every_ms, repeat }
        }
    };
    specs.iter().map(|spec| (spec.kind, of(spec))).collect()
}

/// Compares every board of every window of the oracle; boards of windows that the oracle
/// does not have must be empty. Returns the number of compared segments.
pub fn check(
    state: &mut State,
    oracle: &Oracle,
    settings: &EngineSettings,
    tags: &[(String, Vec<String>)],
    of: &str,
) -> Segments {
    let scopes = scopes(oracle, tags);
    let known = windows_of(state);
    let mut filled = BTreeSet::new();
    let mut compared = Segments::default();
    for (kind, stretches) in stretches(settings.windows.specs()) {
        for (index, span) in oracle.windows(&stretches) {
            let window = WindowKey { kind, index };
            let label = window::label(window);
            assert!(known.contains(&window), "{of}: {label} is not listed, only {known:?}");
            filled.insert(window);
            state.commit_and_build_boards(window).expect("a store");
            for (name, scope) in &scopes {
                // Ratings may go on from week to week, and from no other window.
                let rows = match window.week() {
                    Some(week) => oracle.rows(week.0, scope),
                    None => oracle.window_rows(&span, scope),
                };
                let boards = Ranking::ALL.map(|ranking| read_one(state, name, window, ranking));
                for (ranking, board) in Ranking::ALL.into_iter().zip(&boards) {
                    let of = format!("{of}: {} of {name} in {label}", ranking.name());
                    let low = settings.low_is_better.iter().any(|low| low.applies_to(ranking, name));
                    assert_eq!(board.low_is_better, low, "{of}");
                    assert_eq!(board.tie, tie(&settings.tie_breakers, ranking, name), "{of}");
                    let tie = board.tie.map(|by| &boards[by as usize]);
                    let segments = check_one(oracle, &rows, board, tie, ranking, &of);
                    if window.week().is_some() && matches!(scope, Scope::Server(_)) {
                        compared.add(segments); // each is in one week of one server
                    }
                }
            }
        }
    }
    let running = state.engine.running_windows();
    for window in known.into_iter().filter(|w| !filled.contains(w) && running.contains(w)) {
        state.commit_and_build_boards(window).expect("a store");
        let boards = read(state, &scopes, &[window]);
        assert!(boards.values().all(|board| board.places.is_empty()), "{of}: nothing was revealed in {window:?}");
    }
    compared
}

/// What is to part equal scores: the last that names the scope, or else the last
/// that names none.
fn tie(ties: &[TieBreaker], ranking: Ranking, scope: &ScopeName) -> Option<Ranking> {
    let of_ranking = || ties.iter().filter(|tie| tie.ranking == ranking);
    let here = of_ranking().rfind(|tie| tie.scope.as_ref() == Some(scope));
    here.or_else(|| of_ranking().rfind(|tie| tie.scope.is_none())).map(|tie| tie.by)
}

/// Exact, except for the last digits of ratings and one thousandth in a segment. The order
/// that follows from those is checked with the scores on the board.
fn check_one(
    oracle: &Oracle,
    rows: &[Row],
    board: &Board,
    tie: Option<&Board>,
    ranking: Ranking,
    of: &str,
) -> Segments {
    let name = ranking.name();
    let mut compared = Segments::default();
    let want: BTreeMap<PlayerKey, &Row> = rows
        .iter()
        .filter(|row| row.score(name).is_some())
        .map(|row| (PlayerKey(oracle.player_key(&row.who) as u32), row))
        .collect();
    let on_board: BTreeSet<PlayerKey> = board.places.iter().map(|place| place.player).collect();
    assert!(
        want.keys().eq(on_board.iter()),
        "{of}: who is on it\n   got {on_board:?}\noracle {:?}",
        want.keys().collect::<Vec<_>>()
    );
    for place in &board.places {
        let row = want[&place.player];
        let score = row.score(name).expect("it is among those with one");
        let differs = match ranking {
            Ranking::Elo => (display_score(ranking, place.score()) - score).abs() >= 1e-9,
            Ranking::Clq1 => {
                let off = (place.score().0 as f64 - score).abs();
                let segments = row.clq1_segments.len();
                compared.add(Segments { all: segments, off: off as usize });
                off > segments as f64
            }
            _ => place.score().0 as f64 != score,
        };
        assert!(!differs, "{of}: {place:?}, oracle {score} of {row:?}");
        assert_eq!(place.at_ms, row.reached[name], "{of}: when it was reached by {place:?}, oracle {row:?}");
    }
    let mut ordered = board.places.clone();
    ordered.sort_by_key(|place| {
        // What parts equal scores is the score on the other board, as that is held
        // against the oracle; who is not on it comes last.
        let on_other = tie.and_then(|other| {
            let there = other.places.iter().find(|it| it.player == place.player)?;
            Some(order_of(other, there))
        });
        (order_of(board, place), tie.is_some() && on_other.is_none(), on_other, place.at_ms, place.player)
    });
    assert_eq!(board.places, ordered, "{of}: order");
    if !board.low_is_better && tie.is_none() {
        let exact = board
            .places
            .iter()
            .all(|place| ranking != Ranking::Clq1 || Some(place.score().0 as f64) == want[&place.player].score(name));
        let by_position = |place: &BoardEntry| want[&place.player].pos[name];
        // A rating of equal opponents may differ in its last digit and so by a position.
        if exact && ranking != Ranking::Elo {
            let got: Vec<usize> = board.places.iter().map(by_position).collect();
            assert!(got.iter().copied().eq(1..=got.len()), "{of}: positions of the oracle {got:?}");
        }
    }
    compared
}

/// Smaller is better.
fn order_of(board: &Board, place: &BoardEntry) -> i128 {
    let score = i128::from(place.score().0);
    if board.low_is_better { score } else { -score }
}
