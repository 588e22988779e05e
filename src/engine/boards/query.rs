//! Boards for readers: which board is meant, what is asked of it, and names to
//! the keys of the answer.
//!
//! Where the boards of a scope and window come from is told in one place,
//! [`Engine::sets`]. The board of a server, of a few hundred players, is built
//! from its rows for each question; those of games and tags are on the `shelf`.

use std::borrow::Cow;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::board::order::{Order, Orders};
use crate::board::query::{
    QueryData, QueryError, {self},
};
use crate::board::score_unit::CLQ1_PER_POINT_PER_SECOND;
use crate::board::tree::{Direction, Set};
use crate::board::{BoardEntry, fusion, window};
use crate::engine::boards::cache::board_id;
use crate::engine::boards::query_context::{QueryContext, standing_view};
use crate::engine::{Engine, Group, StateReader, ViewError};
use crate::model::scope::Scope;
use crate::model::view::board::{
    BoardHead, BoardQuery, BoardRow, BoardSelector, BoardsSelector, FusedHead, FusedQuery, FusedRanking, FusedView,
    OrderView, PageView, PlayerSelector, RangeView, RankingWeight, StandingsView, WindowPhase, WindowSummary,
    WindowView,
};
use crate::model::{PlayerKey, Ranking, ServerKey, TagKey, WindowKey};
use crate::nearest::nearest;
use crate::rank::clq1;

const _: () = assert!(CLQ1_PER_POINT_PER_SECOND == clq1::SCORE_PER_POINT_PER_SECOND);

/// The boards of one scope in one window, one for each ranking asked.
struct ScopeBoards<'e> {
    window: WindowView,
    orders: Orders,
    sets: Vec<Cow<'e, Set>>,
}

/// The type of windows that is asked of where none is named.
const WEEK: &str = "week";

/// The answer to a question to one board.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardAnswer {
    pub head: BoardHead,
    pub rows: Vec<BoardRow>,
}

impl Engine {
    /// A board, and what stands above every answer of it.
    pub fn board<S: StateReader>(
        &self,
        source: &S,
        name: &BoardSelector,
    ) -> Result<(BoardHead, Cow<'_, Set>), ViewError<S::Error>> {
        let ScopeBoards { window, orders, mut sets } = self.scope_boards(source, &name.boards(), &[name.ranking])?;
        let order = orders.order(name.ranking);
        let set = sets.pop().expect("a board for each ranking");
        let head = BoardHead {
            scope: name.scope.clone(),
            window,
            ranking: name.ranking,
            order: order_view(order),
            size: set.len().into(),
            range: None,
            page: None,
        };
        Ok((head, set))
    }

    /// Asks a board.
    pub fn query_board<S: StateReader>(
        &self,
        source: &S,
        name: &BoardSelector,
        asked: &BoardQuery,
    ) -> Result<BoardAnswer, ViewError<S::Error>> {
        let (mut head, set) = self.board(source, name)?;
        let asking = QueryContext { engine: self, source, scope: &name.scope, ranking: name.ranking, sets: &[set] };
        // Who is asked for in a list may be unknown; nobody else may.
        let players = match asked {
            BoardQuery::Positions { players } => asking.players(players)?,
            BoardQuery::Around { player, .. } | BoardQuery::Standing { player } => {
                vec![Some(asking.known_player(player)?)]
            }
            _ => Vec::new(),
        };
        let question = asking.question(asked, &players)?;
        let answer = query::run(&asking.sets[0], &question).map_err(|error| match error {
            QueryError::Absent(_) => asking.not_on_board(asked, &head),
            QueryError::Stale(stale) => ViewError::Stale(stale),
        })?;
        let mut rows = Vec::new();
        match answer.found {
            QueryData::Size => (),
            QueryData::Places(places) => asking.places(&places, &mut rows)?,
            QueryData::Range { first, count, places } => {
                head.range = Some(RangeView { first: first.into(), count: count.into() });
                asking.places(&places, &mut rows)?;
            }
            QueryData::Page { places, moved, start, end } => {
                head.page = Some(PageView { moved, before: start.to_string(), after: end.to_string() });
                asking.places(&places, &mut rows)?;
            }
            QueryData::Count { first, count } => {
                head.range = Some(RangeView { first: first.into(), count: count.into() });
            }
            QueryData::Position(positions) => rows.push(asking.position_for(asked, positions)),
            QueryData::Standing(standing) => {
                rows.push(BoardRow::Standing(standing_view(name.ranking, &asking.sets[0], standing)));
            }
            QueryData::Positions(found) => asking.positions(asked, &players, found, &mut rows)?,
        }
        Ok(BoardAnswer { head, rows })
    }

    /// Where one player stands on the boards of several rankings.
    pub fn standings<S: StateReader>(
        &self,
        source: &S,
        name: &BoardsSelector,
        rankings: &[Ranking],
        player: &PlayerSelector,
    ) -> Result<StandingsView, ViewError<S::Error>> {
        let ScopeBoards { window, sets, .. } = self.scope_boards(source, name, rankings)?;
        let asking = QueryContext { engine: self, source, scope: &name.scope, ranking: Ranking::Clq1, sets: &sets };
        let player = asking.known_player(player)?;
        let (shown_name, display) = self.player_names(source, player)?;
        let boards = rankings.iter().zip(&sets);
        Ok(StandingsView {
            scope: name.scope.clone(),
            window,
            player: player.0,
            name: shown_name,
            display,
            standings: boards.map(|(&ranking, set)| standing_view(ranking, set, set.standing(player))).collect(),
        })
    }

    /// One list of several rankings (see [`fusion`]); `k` as [`fusion::K_DEFAULT`]
    /// where none is given. Weights are above 0, `k` is not below it.
    pub fn fused<S: StateReader>(
        &self,
        source: &S,
        name: &BoardsSelector,
        rankings: &[RankingWeight],
        k: Option<f64>,
        asked: &FusedQuery,
    ) -> Result<(FusedHead, Vec<FusedView>), ViewError<S::Error>> {
        let k = k.unwrap_or(fusion::K_DEFAULT);
        let names: Vec<Ranking> = rankings.iter().map(|weighed| weighed.ranking).collect();
        let ScopeBoards { window, sets, .. } = self.scope_boards(source, name, &names)?;
        let boards: Vec<fusion::WeightedBoard> =
            rankings.iter().zip(&sets).map(|(r, set)| fusion::WeightedBoard { set, weight: r.weight }).collect();
        let (list, first) = match asked {
            FusedQuery::Top { count } => (fusion::top(&boards, k, *count as usize), Some(1)),
            FusedQuery::Players { players } => {
                let asking =
                    QueryContext { engine: self, source, scope: &name.scope, ranking: Ranking::Clq1, sets: &sets };
                let players: Result<Vec<PlayerKey>, _> = players.iter().map(|p| asking.known_player(p)).collect();
                (fusion::of_players(&boards, k, &players?), None)
            }
        };
        let mut views = Vec::with_capacity(list.len());
        for (fused, n) in list.into_iter().zip(0..) {
            let (shown_name, display) = self.player_names(source, fused.player)?;
            let on = names.iter().zip(&fused.positions);
            views.push(FusedView {
                position: first.map(|first: u64| first + n),
                player: fused.player.0,
                name: shown_name,
                display,
                score: fused.score,
                positions: on.filter_map(|(&ranking, &position)| Some((ranking, position?))).collect(),
            });
        }
        let of = rankings.iter().zip(&sets);
        let rankings =
            of.map(|(r, set)| FusedRanking { ranking: r.ranking, weight: r.weight, size: set.len().into() }).collect();
        Ok((FusedHead { scope: name.scope.clone(), window, k, rankings }, views))
    }

    /// The boards of a scope and window, one for each ranking asked, in order:
    /// the one place that knows where they come from.
    fn scope_boards<S: StateReader>(
        &self,
        source: &S,
        name: &BoardsSelector,
        rankings: &[Ranking],
    ) -> Result<ScopeBoards<'_>, ViewError<S::Error>> {
        let key = self.find_window(name)?;
        let window = self.window_view(key);
        let group = match &name.scope {
            Scope::Server(url) => {
                let (server, _) = self.find_server(url)?;
                let rows = self.counted_rows(source, key, server)?;
                let orders = self.server_orders(server);
                let board = |&ranking: &Ranking| {
                    let order = orders.order(ranking);
                    let places: Vec<BoardEntry> =
                        rows.iter().filter_map(|(player, row)| orders.place(*player, row, ranking)).collect();
                    let generation = board_id(key, server, ranking, order);
                    let version = places_digest(&places);
                    Cow::Owned(Set::build_unique(order.direction, generation, vec![places]).with_version(version))
                };
                let sets = rankings.iter().map(board).collect();
                return Ok(ScopeBoards { window, orders, sets });
            }
            Scope::Game(game) => Group::Game(self.find_game(game)?),
            Scope::Tag(tag) => Group::Tag(TagKey(self.global.tags.find(tag).ok_or_else(|| ViewError::UnknownTag {
                tag: tag.clone(),
                nearest: nearest(tag, self.global.tags.names()).map(str::to_owned),
            })?)),
        };
        let boards = self.global.shelf.boards(key).ok_or_else(|| ViewError::BoardsNotReady(window.window.clone()))?;
        let board = |&ranking: &Ranking| match boards.board(group, ranking) {
            Some(set) => Cow::Borrowed(set),
            None => Cow::Owned(boards.empty_board(group, ranking)),
        };
        Ok(ScopeBoards { window, orders: boards.orders(group), sets: rankings.iter().map(board).collect() })
    }

    /// How the boards of a server are ordered.
    pub(in crate::engine) fn server_orders(&self, server: ServerKey) -> Orders {
        let scope = self.server_state(server).map(|slot| Scope::Server(slot.record.url.clone()));
        self.global.settings.orders(scope.as_ref())
    }

    /// The window whose boards of groups an answer needs: see
    /// [`Engine::plan_boards`]. `None`: it needs none.
    pub fn boards_needed<E: std::error::Error + 'static>(
        &self,
        name: &BoardsSelector,
    ) -> Result<Option<WindowKey>, ViewError<E>> {
        match name.scope {
            Scope::Server(_) => Ok(None),
            Scope::Game(_) | Scope::Tag(_) => self.find_window(name).map(Some),
        }
    }

    /// The window of a label; or, of a type, the oldest that contains the time.
    /// The running ones may hold nothing yet; any other must be at hand.
    fn find_window<E: std::error::Error + 'static>(&self, name: &BoardsSelector) -> Result<WindowKey, ViewError<E>> {
        let windows = &self.global.settings.windows;
        let text = name.window.as_deref().unwrap_or(WEEK);
        let t_ms = name.time_ms.unwrap_or(self.now_ms());
        let exists = |window: &WindowKey| self.global.window_exists(*window) || self.global.is_rebuilt(*window);
        let found = match window::parse_type(text) {
            Ok(kind) => windows.at(t_ms).into_iter().filter(|window| window.kind == kind).find(exists),
            Err(_) if name.time_ms.is_some() => return Err(ViewError::TimeWithWindow(text.to_owned())),
            Err(_) => {
                // Types have names, windows have numbers.
                let bad = |label: window::BadLabel| match window::parse_type(text) {
                    Err(kind) if !text.contains(|c: char| c.is_ascii_digit()) => ViewError::BadWindow(kind.to_string()),
                    _ => ViewError::BadWindow(label.to_string()),
                };
                Some(window::parse(text).map_err(bad)?).filter(exists)
            }
        };
        if let Some(window) = found.filter(|window| self.global.is_rebuilding(*window)) {
            return Err(ViewError::Rebuilding(window::label(window)));
        }
        found.ok_or_else(|| ViewError::UnknownWindow {
            window: text.to_owned(),
            time: name.time_ms.map_or_else(String::new, |t_ms| format!(" that contains {}", rfc3339(t_ms))),
            types: windows.specs().iter().map(|spec| window::type_name(spec.kind)).collect::<Vec<_>>().join(", "),
        })
    }

    fn window_view(&self, window: WindowKey) -> WindowView {
        let span = self.global.settings.windows.span(window);
        let known = self.global.meta.windows.iter().find(|state| state.window == window);
        let span = known.map(|state| state.start_ms..state.end_ms).or(span);
        WindowView {
            window: window::label(window),
            from_ms: span.as_ref().map(|span| span.start).filter(|&ms| ms > i64::MIN),
            to_ms: span.map(|span| span.end).filter(|&ms| ms < i64::MAX),
            closed: self.global.window_is_over(window),
        }
    }

    /// Every window there is: those that hold rows, those that run, and the next
    /// of each type. Newest first, by type.
    pub fn windows(&self) -> Vec<WindowSummary> {
        let windows = &self.global.settings.windows;
        let now_ms = self.now_ms();
        let mut keys: Vec<WindowKey> = self.global.meta.kept_windows().collect();
        keys.extend(windows.at(now_ms));
        keys.extend(windows.specs().iter().filter_map(|spec| windows.next(spec.kind, now_ms)));
        keys.sort_unstable_by_key(|key| (key.kind, std::cmp::Reverse(key.index)));
        keys.dedup();
        keys.into_iter()
            .map(|key| {
                let boards = self.global.shelf.boards(key);
                let view = self.window_view(key);
                let phase = match (view.closed, view.from_ms.is_some_and(|from_ms| from_ms > now_ms)) {
                    (true, _) => WindowPhase::Closed,
                    (false, true) => WindowPhase::Next,
                    (false, false) => WindowPhase::Running,
                };
                WindowSummary {
                    kind: window::type_name(key.kind),
                    window: view,
                    phase,
                    players: boards.map(|boards| boards.players() as u64),
                    memory_bytes: boards.map(|boards| boards.heap_bytes() as u64),
                    stored: None,
                }
            })
            .collect()
    }
}

pub(in crate::engine) fn order_view(order: Order) -> OrderView {
    OrderView { low_is_better: order.direction == Direction::LowIsBetter, tie: order.tie.map(|(by, _)| by) }
}

/// A moment in the words of RFC 3339.
fn rfc3339(t_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(t_ms).map_or_else(|| t_ms.to_string(), |t| t.to_rfc3339())
}

/// Of a board that nobody counts the changes of: a digest of its places.
fn places_digest(places: &[BoardEntry]) -> u64 {
    let mut hash = SipHasher24::new();
    for place in places {
        hash.write_i64(place.score().0);
        hash.write_u64(place.tie);
        hash.write_i64(place.at_ms);
        hash.write_u32(place.player.0);
    }
    hash.finish()
}
