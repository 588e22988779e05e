//! Board queries: finds the board, runs the query, and translates names and keys.
//!
//! [`ReadModel::scope_boards`] is the only function that knows where boards come from. The board
//! of a server has a few hundred players and is built from its rows for each query; the boards
//! of games and tags are in the board cache.

use std::borrow::Cow;
use std::hash::Hasher;
use std::sync::RwLockReadGuard;

use siphasher::sip::SipHasher24;

use crate::board::comparison::{NamedPlayer, Placing};
use crate::board::order::{Direction, Order, Orders};
use crate::board::query::{self, QueryError};
use crate::board::score_unit::CLQ1_PER_POINT_PER_SECOND;
use crate::board::{Board, BoardEntry, fusion, window};
use crate::engine::boards::group::{WindowBoards, board_id};
use crate::engine::boards::query_context::{QueryContext, standing_view};
use crate::engine::{Group, ReadModel, StateReader, ViewError};
use crate::model::scope::Scope;
use crate::model::{PlayerKey, Ranking, ServerKey, WindowKey};
use crate::rank::clq1;
use crate::view::board::{
    BoardAnswer, BoardHead, BoardQuery, BoardSelector, BoardsSelector, FusedAnswer, FusedHead, FusedQuery,
    FusedRanking, FusedView, OrderView, PlayerSelector, RankingWeight, StandingsView, WindowPhase, WindowSummary,
    WindowView,
};

const _: () = assert!(CLQ1_PER_POINT_PER_SECOND == clq1::SCORE_PER_POINT_PER_SECOND);

/// The boards of one scope in one window, one for each requested ranking.
struct ScopeBoards<'e> {
    window: WindowView,
    orders: Orders,
    source: BoardSource<'e>,
}

enum BoardSource<'e> {
    /// Sorted for the query.
    Server(Vec<Board>),
    /// Locked for the query.
    Cached { boards: RwLockReadGuard<'e, WindowBoards>, group: Group, rankings: Vec<Ranking> },
}

impl ScopeBoards<'_> {
    fn boards(&self) -> Vec<Cow<'_, Board>> {
        match &self.source {
            BoardSource::Server(boards) => boards.iter().map(Cow::Borrowed).collect(),
            BoardSource::Cached { boards, group, rankings } => {
                let board = |&ranking: &Ranking| match boards.board(*group, ranking) {
                    Some(board) => Cow::Borrowed(board),
                    None => Cow::Owned(boards.empty_board(*group, ranking)),
                };
                rankings.iter().map(board).collect()
            }
        }
    }
}

/// The window type of a query that names none.
const WEEK: &str = "week";

impl ReadModel {
    /// A copy of a board, with the head of its answers.
    pub fn board(&self, source: &dyn StateReader, name: &BoardSelector) -> Result<(BoardHead, Board), ViewError> {
        let found = self.scope_boards(source, &name.boards(), &[name.ranking])?;
        let board = found.boards().pop().expect("a board for each ranking").into_owned();
        Ok((self.board_head(name, &found, &board), board))
    }

    fn board_head(&self, name: &BoardSelector, found: &ScopeBoards<'_>, board: &Board) -> BoardHead {
        let mut head = board_head(&name.scope, found.window.clone(), &found.orders, name.ranking, board);
        head.first_score_ms = self.first_score_ms(&head);
        head
    }

    /// All players of a board, best first.
    pub fn board_placings(
        &self,
        source: &dyn StateReader,
        name: &BoardSelector,
    ) -> Result<Vec<Placing<NamedPlayer>>, ViewError> {
        let found = self.scope_boards(source, &name.boards(), &[name.ranking])?;
        let board = found.boards().pop().expect("a board for each ranking");
        let mut placings: Vec<Placing<NamedPlayer>> = Vec::with_capacity(board.len() as usize);
        let mut score = None;
        for (entry, position) in board.iter().zip(1..) {
            let is_equal = score.replace(entry.score()) == Some(entry.score());
            let shared = placings.last().filter(|_| is_equal).map(|last| last.competition);
            let record = self.global.player_record(source, entry.player)?;
            let player = record.map(|record| NamedPlayer {
                game: self.global.games.name(record.game.0).to_owned(),
                name: record.name.into(),
            });
            placings.push(Placing { player: player.unwrap_or_default(), competition: shared.unwrap_or(position) });
        }
        Ok(placings)
    }

    /// The games that have boards in a window, sorted. Empty if the boards of the window are not cached.
    pub fn games_with_boards(&self, window: WindowKey) -> Vec<String> {
        let boards = self.boards(window);
        let groups = boards.iter().flat_map(|boards| boards.groups());
        let name = |group| match group {
            Group::Game(game) => Some(self.global.games.name(game.0).to_owned()),
            Group::Tag(_) => None,
        };
        let mut games: Vec<String> = groups.filter_map(name).collect();
        games.sort_unstable();
        games
    }

    /// When the first player of an empty clq1 board will have a score. `None`: nobody plays, or the board is
    /// not an empty clq1 board.
    fn first_score_ms(&self, head: &BoardHead) -> Option<i64> {
        let Scope::Server(url) = &head.scope else { return None };
        if head.ranking != Ranking::Clq1 || head.size > 0 || head.window.closed {
            return None;
        }
        let record = &self.find_server(url).ok()?.1.record;
        let entries = record.last_snapshot.iter().filter(|_| self.is_online(record)).flat_map(|last| &last.entries);
        let presences = entries.filter_map(|entry| entry.presence.as_ref());
        presences.map(|presence| presence.segment_start_ms + clq1::SEGMENT_MS).min()
    }

    /// Runs a query on the boards of all rankings. The rows of a server are read once.
    pub fn query_boards(
        &self,
        source: &dyn StateReader,
        name: &BoardsSelector,
        query: &BoardQuery,
    ) -> Result<Vec<BoardAnswer>, ViewError> {
        self.answers(source, name, &Ranking::ALL, query)
    }

    /// Runs a query on a board.
    pub fn query_board(
        &self,
        source: &dyn StateReader,
        name: &BoardSelector,
        query: &BoardQuery,
    ) -> Result<BoardAnswer, ViewError> {
        let answers = self.answers(source, &name.boards(), &[name.ranking], query)?;
        let mut answer = answers.into_iter().next().expect("an answer for each ranking");
        answer.head.first_score_ms = self.first_score_ms(&answer.head);
        Ok(answer)
    }

    /// Runs a query on a board of each ranking. Boards of games and tags are locked only meanwhile: names are read from
    /// the store before and after, since it may wait for the disk.
    fn answers(
        &self,
        source: &dyn StateReader,
        name: &BoardsSelector,
        rankings: &[Ranking],
        query: &BoardQuery,
    ) -> Result<Vec<BoardAnswer>, ViewError> {
        let context = |ranking| QueryContext { model: self, source, scope: &name.scope, ranking };
        let candidates = match query {
            BoardQuery::Positions { players } => context(Ranking::Clq1).candidates(players)?,
            BoardQuery::Around { player, .. } | BoardQuery::Standing { player } => {
                context(Ranking::Clq1).candidates([player])?
            }
            _ => Vec::new(),
        };
        let found = self.scope_boards(source, name, rankings)?;
        let run = |(&ranking, board): (&Ranking, Cow<'_, Board>)| {
            let context = context(ranking);
            let head = board_head(&name.scope, found.window.clone(), &found.orders, ranking, &board);
            let boards = [board];
            // Only `positions` accepts unknown players.
            let accepts_unknown = matches!(query, BoardQuery::Positions { .. });
            let player = |candidates| match accepts_unknown {
                true => context.choose(candidates, &boards),
                false => context.require(candidates, &boards).map(Some),
            };
            let players = candidates.iter().map(player).collect::<Result<Vec<_>, _>>()?;
            let raw_query = context.to_raw_query(query, &players)?;
            let answer = query::run(&boards[0], &raw_query).map_err(|error| match error {
                QueryError::Absent(_) => context.not_on_board(query, &head),
                QueryError::Stale(stale) => ViewError::Stale(stale),
            })?;
            Ok((head, players, answer.data))
        };
        let answers = rankings.iter().zip(found.boards()).map(run).collect::<Result<Vec<_>, ViewError>>()?;
        drop(found);
        let named =
            |(head, players, data): (BoardHead, Vec<_>, _)| context(head.ranking).answer(query, head, &players, data);
        answers.into_iter().map(named).collect()
    }

    /// The entry of one player on the boards of several rankings.
    pub fn standings(
        &self,
        source: &dyn StateReader,
        name: &BoardsSelector,
        rankings: &[Ranking],
        player: &PlayerSelector,
    ) -> Result<StandingsView, ViewError> {
        let context = QueryContext { model: self, source, scope: &name.scope, ranking: Ranking::Clq1 };
        let candidates = context.candidates([player])?;
        let found = self.scope_boards(source, name, rankings)?;
        let boards = found.boards();
        let player = context.require(&candidates[0], &boards)?;
        let standing =
            |(&ranking, board): (&Ranking, &Cow<'_, Board>)| standing_view(ranking, board, board.standing(player));
        let standings = rankings.iter().zip(&boards).map(standing).collect();
        drop(boards);
        let ScopeBoards { window, .. } = found;
        let (shown_name, display) = self.player_names(source, player)?;
        let scope = name.scope.clone();
        Ok(StandingsView { scope, window, player_key: player.0, name: shown_name, display, standings })
    }

    /// One list of several rankings (see [`fusion`]). `k` defaults to [`fusion::K_DEFAULT`].
    /// Weights are above 0, `k` is at least 0.
    pub fn fused(
        &self,
        source: &dyn StateReader,
        name: &BoardsSelector,
        rankings: &[RankingWeight],
        k: Option<f64>,
        query: &FusedQuery,
    ) -> Result<FusedAnswer, ViewError> {
        let k = k.unwrap_or(fusion::K_DEFAULT);
        let names: Vec<Ranking> = rankings.iter().map(|weighted| weighted.ranking).collect();
        let context = QueryContext { model: self, source, scope: &name.scope, ranking: Ranking::Clq1 };
        let candidates = match query {
            FusedQuery::Top { .. } => Vec::new(),
            FusedQuery::Players { players } => context.candidates(players)?,
        };
        let found = self.scope_boards(source, name, &names)?;
        let boards = found.boards();
        let weighted: Vec<fusion::WeightedBoard> =
            rankings.iter().zip(&boards).map(|(r, board)| fusion::WeightedBoard { board, weight: r.weight }).collect();
        let (list, first) = match query {
            FusedQuery::Top { count } => (fusion::top(&weighted, k, *count as usize), Some(1)),
            FusedQuery::Players { .. } => {
                let players: Result<Vec<PlayerKey>, _> =
                    candidates.iter().map(|candidates| context.require(candidates, &boards)).collect();
                (fusion::of_players(&weighted, k, &players?), None)
            }
        };
        let of = rankings.iter().zip(&boards);
        let rankings = of
            .map(|(r, board)| FusedRanking { ranking: r.ranking, weight: r.weight, size: board.len().into() })
            .collect();
        drop(weighted);
        drop(boards);
        // The boards are not locked while names are read.
        let ScopeBoards { window, .. } = found;
        let mut views = Vec::with_capacity(list.len());
        for (fused, n) in list.into_iter().zip(0..) {
            let (shown_name, display) = self.player_names(source, fused.player)?;
            let on = names.iter().zip(&fused.positions);
            views.push(FusedView {
                position: first.map(|first: u64| first + n),
                player_key: fused.player.0,
                name: shown_name,
                display,
                score: fused.score,
                positions: on.filter_map(|(&ranking, &position)| Some((ranking, position?))).collect(),
            });
        }
        Ok(FusedAnswer { head: FusedHead { scope: name.scope.clone(), window, k, rankings }, players: views })
    }

    /// The boards of a scope and window, one for each requested ranking, in order.
    fn scope_boards(
        &self,
        source: &dyn StateReader,
        name: &BoardsSelector,
        rankings: &[Ranking],
    ) -> Result<ScopeBoards<'_>, ViewError> {
        let key = self.find_window(name)?;
        let window = self.window_view(key);
        let group = match &name.scope {
            Scope::Server(url) => {
                let (server, _) = self.find_server(url)?;
                let rows = self.counted_rows(source, key, server)?;
                let orders = self.server_orders(server);
                let board = |&ranking: &Ranking| {
                    let order = orders.order(ranking);
                    let entries: Vec<BoardEntry> =
                        rows.iter().filter_map(|(player, row)| orders.entry(*player, row, ranking)).collect();
                    let generation = board_id(key, server, ranking, order);
                    let version = entries_digest(&entries);
                    Board::build_unique(order.direction, generation, vec![entries]).with_version(version)
                };
                let source = BoardSource::Server(rankings.iter().map(board).collect());
                return Ok(ScopeBoards { window, orders, source });
            }
            Scope::Game(game) => Group::Game(self.find_game(game)?),
            Scope::Tag(tag) => Group::Tag(self.find_tag(tag)?),
        };
        let boards =
            self.global.board_cache.boards(key).ok_or_else(|| ViewError::BoardsNotReady(window.window.clone()))?;
        let orders = boards.orders(group);
        let source = BoardSource::Cached { boards, group, rankings: rankings.to_vec() };
        Ok(ScopeBoards { window, orders, source })
    }

    /// How the boards of a server are ordered.
    pub(in crate::engine) fn server_orders(&self, server: ServerKey) -> Orders {
        let scope = self.servers.get(server).map(|server_state| Scope::Server(server_state.record.url.clone()));
        self.global.settings.orders(scope.as_ref())
    }

    /// The window whose cached boards an answer needs: see [`Engine::plan_boards`](crate::engine::Engine::plan_boards). `None`: it
    /// needs none.
    pub fn boards_needed(&self, name: &BoardsSelector) -> Result<Option<WindowKey>, ViewError> {
        match name.scope {
            Scope::Server(_) => Ok(None),
            Scope::Game(_) | Scope::Tag(_) => self.find_window(name).map(Some),
        }
    }

    /// The window of a label, or the oldest window of a type that contains the time. Current
    /// windows may have no rows yet; other windows must be kept.
    fn find_window(&self, name: &BoardsSelector) -> Result<WindowKey, ViewError> {
        let windows = &self.global.settings.windows;
        let text = name.window.as_deref().unwrap_or(WEEK);
        let t_ms = name.at_ms.unwrap_or(self.now_ms());
        let exists = |window: &WindowKey| self.global.is_queryable(*window) || self.global.is_rebuild_target(*window);
        let types = || windows.specs().iter().map(|spec| window::type_name(spec.kind)).collect::<Vec<_>>();
        let found = match window::parse_type(text) {
            Ok(kind) if windows.specs().iter().all(|spec| spec.kind != kind) => {
                let types = types();
                let types = format!("{} {}", types.join(", "), if types.len() == 1 { "is" } else { "are" });
                return Err(ViewError::TypeNotConfigured { kind: window::type_name(kind), types });
            }
            Ok(kind) => windows.windows_at(t_ms).into_iter().filter(|window| window.kind == kind).find(exists),
            Err(kind) => match window::parse_label(text) {
                Ok(window) => {
                    let contains = |at_ms: i64| windows.span(window).is_none_or(|span| span.contains(&at_ms));
                    Some(window).filter(exists).filter(|_| name.at_ms.is_none_or(contains))
                }
                // An invalid label, such as the 32nd of a month.
                Err(_) if window::has_form(text) => None,
                // A string without digits is taken for the name of a type.
                Err(_) if !text.contains(|c: char| c.is_ascii_digit()) => {
                    return Err(ViewError::BadWindow(kind.to_string()));
                }
                Err(label) => {
                    let similar = window::similar_week(text, self.global.calendar.week(self.now_ms()));
                    return Err(ViewError::BadWindow(match similar {
                        Some(week) => {
                            format!("{text:?} is no window; did you mean {week}? `clqd board windows` lists all")
                        }
                        None => label.to_string(),
                    }));
                }
            },
        };
        if let Some(window) = found.filter(|window| self.global.is_rebuilding(*window)) {
            return Err(ViewError::Rebuilding(window::label(window)));
        }
        found.ok_or_else(|| ViewError::UnknownWindow {
            window: text.to_owned(),
            time: name.at_ms.map_or_else(String::new, |t_ms| format!(" that contains {}", rfc3339(t_ms))),
            types: types().join(", "),
        })
    }

    pub(in crate::engine) fn window_view(&self, window: WindowKey) -> WindowView {
        let span = self.global.settings.windows.span(window);
        let known = self.global.window_besides_weeks(window);
        let span = known.map(|state| state.start_ms..state.end_ms).or(span);
        WindowView {
            window: window::label(window),
            start_ms: span.as_ref().map(|span| span.start).filter(|&ms| ms > i64::MIN),
            end_ms: span.map(|span| span.end).filter(|&ms| ms < i64::MAX),
            closed: self.global.window_has_ended(window),
        }
    }

    /// All windows: those that have rows, those that run, and the next of each type. Sorted by
    /// type, newest first.
    pub fn windows(&self) -> Vec<WindowSummary> {
        let windows = &self.global.settings.windows;
        let now_ms = self.now_ms();
        let mut keys: Vec<WindowKey> = self.global.meta.kept_windows().collect();
        keys.extend(windows.windows_at(now_ms));
        keys.extend(windows.specs().iter().filter_map(|spec| windows.next_after(spec.kind, now_ms)));
        keys.sort_unstable_by_key(|key| (key.kind, std::cmp::Reverse(key.index)));
        keys.dedup();
        keys.into_iter()
            .map(|key| {
                let players = self.boards(key).map(|boards| boards.players() as u64);
                let view = self.window_view(key);
                let phase = match (view.closed, view.start_ms.is_some_and(|start_ms| start_ms > now_ms)) {
                    (true, _) => WindowPhase::Closed,
                    (false, true) => WindowPhase::Upcoming,
                    (false, false) => WindowPhase::Running,
                };
                WindowSummary {
                    kind: window::type_name(key.kind),
                    window: view,
                    phase,
                    players,
                    memory_bytes: self.global.board_cache.memory_bytes_of(key, now_ms),
                    stored: None,
                }
            })
            .collect()
    }
}

/// The head of an answer without a range or page.
fn board_head(scope: &Scope, window: WindowView, orders: &Orders, ranking: Ranking, board: &Board) -> BoardHead {
    BoardHead {
        scope: scope.clone(),
        window,
        ranking,
        order: order_view(orders.order(ranking)),
        size: board.len().into(),
        range: None,
        first_score_ms: None,
        page: None,
    }
}

pub(in crate::engine) fn order_view(order: Order) -> OrderView {
    OrderView { low_is_better: order.direction == Direction::LowIsBetter, tie_breaker: order.tie.map(|(by, _)| by) }
}

/// Formats a time as RFC 3339.
fn rfc3339(t_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(t_ms).map_or_else(|| t_ms.to_string(), |t| t.to_rfc3339())
}

/// The version of a board that does not count its changes: a digest of its entries.
fn entries_digest(entries: &[BoardEntry]) -> u64 {
    let mut hash = SipHasher24::new();
    for entry in entries {
        hash.write_i64(entry.score().0);
        hash.write_u64(entry.tie);
        hash.write_i64(entry.at_ms);
        hash.write_u32(entry.player.0);
    }
    hash.finish()
}
