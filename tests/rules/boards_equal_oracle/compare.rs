//! Compares an engine's boards with the oracle's: players, scores, times of the scores, and
//! order.

use std::collections::{BTreeMap, BTreeSet};

use clqd::board::BoardEntry;
use clqd::board::order::{Direction, TieBreaker};
use clqd::board::score_unit::display_score;
use clqd::board::window::{self, WindowSpec};
use clqd::engine::EngineSettings;
use clqd::model::row::Ranking;
use clqd::model::scope::Scope as ScopeName;
use clqd::model::{PlayerKey, ServerUrl, WindowKey, WindowType};
use clqd::state::State;
use clqd::view::board::{BoardSelector, WindowSummary};

use crate::oracle::compare::Segments;
use crate::oracle::{Oracle, Row, Scope, WindowKind};

/// One board, from the first position to the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    pub entries: Vec<BoardEntry>,
    pub low_is_better: bool,
    pub tie: Option<Ranking>,
    /// Generation in the cursor before the first entry.
    pub generation: u64,
}

/// By scope, window and ranking.
pub type Boards = BTreeMap<(ScopeName, String, &'static str), Board>;

/// A scope as the engine and the oracle name it.
pub type NamedScope = (ScopeName, Scope);

/// Scopes of each server, each game of full snapshots, and the tags.
pub fn scopes(oracle: &Oracle, tags: &[(String, Vec<String>)]) -> Vec<NamedScope> {
    let games: BTreeSet<&str> = oracle.snapshots.iter().map(|s| s.game.as_str()).collect();
    let url = |server: &String| ServerUrl::parse(server).expect("canonical");
    let servers = oracle.servers.iter().map(|s| (ScopeName::Server(url(s)), Scope::Server(s.clone())));
    let games = games.into_iter().map(|game| (ScopeName::Game(game.to_owned()), Scope::Game(game.to_owned())));
    let tags = tags.iter().map(|(tag, servers)| (ScopeName::Tag(tag.clone()), Scope::Tag(servers.clone())));
    servers.chain(games).chain(tags).collect()
}

pub fn listed(state: &State) -> Vec<WindowSummary> {
    state.engine.model().windows()
}

/// All windows that the engine lists.
pub fn windows_of(state: &State) -> Vec<WindowKey> {
    let keys = listed(state).into_iter().map(|listed| window::parse_label(&listed.window.window).expect("a label"));
    keys.collect()
}

/// Reads the boards of these windows in all scopes and rankings.
pub fn read(state: &State, scopes: &[NamedScope], windows: &[WindowKey]) -> Boards {
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
    let (head, board) = state.engine.model().board(&state.store, &name).unwrap_or_else(|e| panic!("{name:?}: {e}"));
    let entries: Vec<BoardEntry> = board.iter().collect();
    assert_eq!(head.size, entries.len() as u64, "{name:?}");
    assert_eq!(head.order.low_is_better, board.direction() == Direction::LowIsBetter, "{name:?}");
    for (entry, position) in entries.iter().zip(1..) {
        assert_eq!(board.position(entry.player), Some(position), "{name:?}: position of {entry:?}");
        assert_eq!(board.get(entry.player), Some(*entry), "{name:?}");
    }
    Board {
        entries,
        low_is_better: head.order.low_is_better,
        tie: head.order.tie_breaker,
        generation: board.generation(),
    }
}

/// The window types with the oracle's equivalents.
pub fn window_kinds(specs: &[WindowSpec]) -> Vec<(WindowType, WindowKind)> {
    use clqd::board::window::Shape;
    let oracle_kind = |spec: &WindowSpec| match spec.shape {
        Shape::AllTime => WindowKind::AllTime,
        Shape::Hour => WindowKind::Hours,
        Shape::Day => WindowKind::Days,
        Shape::Week => WindowKind::Weeks,
        Shape::Month => WindowKind::Months,
        Shape::Custom { base_ms, duration_ms, every_ms, repeat } => {
            WindowKind::Custom { base_ms, duration_ms, every_ms, repeat }
        }
    };
    specs.iter().map(|spec| (spec.kind, oracle_kind(spec))).collect()
}

/// Compares every board of every window of the oracle; boards of windows that the oracle
/// does not have must be empty. Returns the number of compared segments.
pub fn check(
    state: &mut State,
    oracle: &Oracle,
    settings: &EngineSettings,
    tags: &[(String, Vec<String>)],
    context: &str,
) -> Segments {
    let scopes = scopes(oracle, tags);
    let known = windows_of(state);
    let mut with_rows = BTreeSet::new();
    let mut compared = Segments::default();
    for (kind, oracle_kind) in window_kinds(settings.windows.specs()) {
        for (index, span) in oracle.windows(&oracle_kind) {
            let window = WindowKey { kind, index };
            let label = window::label(window);
            assert!(known.contains(&window), "{context}: {label} is not listed, only {known:?}");
            with_rows.insert(window);
            state.commit_and_build_boards(window).expect("a store");
            for (name, scope) in &scopes {
                // Ratings may be carried over between weeks, but not between other windows.
                let rows = match window.week() {
                    Some(week) => oracle.rows(week.0, scope),
                    None => oracle.window_rows(&span, scope),
                };
                let boards = Ranking::ALL.map(|ranking| read_one(state, name, window, ranking));
                for (ranking, board) in Ranking::ALL.into_iter().zip(&boards) {
                    let context = format!("{context}: {} of {name} in {label}", ranking.name());
                    let low = settings.low_is_better.iter().any(|low| low.applies_to(ranking, name));
                    assert_eq!(board.low_is_better, low, "{context}");
                    assert_eq!(board.tie, tie(&settings.tie_breakers, ranking, name), "{context}");
                    let tie = board.tie.map(|by| &boards[by as usize]);
                    let segments = check_one(oracle, &rows, board, tie, ranking, &context);
                    if window.week().is_some() && matches!(scope, Scope::Server(_)) {
                        compared.add(segments); // each segment is in one week of one server
                    }
                }
            }
        }
    }
    let running = state.engine.model().running_windows();
    for window in known.into_iter().filter(|w| !with_rows.contains(w) && running.contains(w)) {
        state.commit_and_build_boards(window).expect("a store");
        let boards = read(state, &scopes, &[window]);
        assert!(boards.values().all(|board| board.entries.is_empty()), "{context}: no rows are expected in {window:?}");
    }
    compared
}

/// The ranking that breaks ties: of the last setting for the scope, or else of the last without a
/// scope.
fn tie(ties: &[TieBreaker], ranking: Ranking, scope: &ScopeName) -> Option<Ranking> {
    let of_ranking = || ties.iter().filter(|tie| tie.ranking == ranking);
    let here = of_ranking().rfind(|tie| tie.scope.as_ref() == Some(scope));
    here.or_else(|| of_ranking().rfind(|tie| tie.scope.is_none())).map(|tie| tie.by)
}

/// Compares exactly, except for the last digits of ratings and one thousandth in a segment. The
/// order is checked with the scores on the board.
fn check_one(
    oracle: &Oracle,
    rows: &[Row],
    board: &Board,
    tie: Option<&Board>,
    ranking: Ranking,
    context: &str,
) -> Segments {
    let name = ranking.name();
    let mut compared = Segments::default();
    let want: BTreeMap<PlayerKey, &Row> = rows
        .iter()
        .filter(|row| row.score(name).is_some())
        .map(|row| (PlayerKey(oracle.player_key(&row.player) as u32), row))
        .collect();
    let on_board: BTreeSet<PlayerKey> = board.entries.iter().map(|entry| entry.player).collect();
    assert!(
        want.keys().eq(on_board.iter()),
        "{context}: players on the board\n   got {on_board:?}\noracle {:?}",
        want.keys().collect::<Vec<_>>()
    );
    for entry in &board.entries {
        let row = want[&entry.player];
        let score = row.score(name).expect("a score");
        let differs = match ranking {
            Ranking::Elo => (display_score(ranking, entry.score()) - score).abs() >= 1e-9,
            Ranking::Clq1 => {
                let off = (entry.score().0 as f64 - score).abs();
                let segments = row.clq1_segments.len();
                compared.add(Segments { all: segments, off: off as usize });
                off > segments as f64
            }
            _ => entry.score().0 as f64 != score,
        };
        assert!(!differs, "{context}: {entry:?}, oracle {score} of {row:?}");
        assert_eq!(entry.at_ms, row.reached[name], "{context}: time of the score of {entry:?}, oracle {row:?}");
    }
    let mut ordered = board.entries.clone();
    ordered.sort_by_key(|entry| {
        // Ties are broken by the score on the other board, which is compared with the oracle
        // itself; players who are not on it are last.
        let on_other = tie.and_then(|other| {
            let on_other = other.entries.iter().find(|it| it.player == entry.player)?;
            Some(sort_key(other, on_other))
        });
        (sort_key(board, entry), tie.is_some() && on_other.is_none(), on_other, entry.at_ms, entry.player)
    });
    assert_eq!(board.entries, ordered, "{context}: order");
    if !board.low_is_better && tie.is_none() {
        let exact = board
            .entries
            .iter()
            .all(|entry| ranking != Ranking::Clq1 || Some(entry.score().0 as f64) == want[&entry.player].score(name));
        let by_position = |entry: &BoardEntry| want[&entry.player].pos[name];
        // The ratings of equal opponents may differ in the last digit, and so their positions.
        if exact && ranking != Ranking::Elo {
            let got: Vec<usize> = board.entries.iter().map(by_position).collect();
            assert!(got.iter().copied().eq(1..=got.len()), "{context}: positions of the oracle {got:?}");
        }
    }
    compared
}

/// Smaller is better.
fn sort_key(board: &Board, entry: &BoardEntry) -> i128 {
    let score = i128::from(entry.score().0);
    if board.low_is_better { score } else { -score }
}
