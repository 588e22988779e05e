//! Answers to requests that only read, computed from an engine and its store. The daemon and
//! offline readers give the same answers.

use crate::api::validate;
use crate::api::{ApiError, ErrorCode, Request, Row, ServersNext, Status};
use crate::board::cursor::BadCursor;
use crate::board::window;
use crate::engine::{Engine, StateReader, StoreReader, ViewError};
use crate::model::server_page::ServerCursor;
use crate::model::view::board::{BoardAnswer, FusedHead, FusedView, RankingWeight};
use crate::model::view::{ForgottenName, PlayerNameView, ServerSummary};
use crate::model::{MapKey, PlayerKey, Ranking, ServerKey, WindowKey};
use crate::state::history::{MapHistory, read_best};
use crate::state::{State, name_index};
use crate::store::Reader;

/// What answers are computed from: an engine or a replica of one, and a reader of its records.
pub struct StateView<'s> {
    pub engine: &'s Engine,
    pub reader: &'s dyn StateReader,
    /// Pending entries of the outbox.
    pub outbox_entries: u64,
}

impl State {
    /// It also shows uncommitted changes, but a search by name finds only committed players.
    pub fn view(&self) -> StateView<'_> {
        let State { engine, store } = self;
        StateView { engine, reader: store, outbox_entries: store.outbox_len() as u64 }
    }
}

/// Returns all rows of the answer.
///
/// [`Request::Status`] returns the engine's part and the outbox length; the daemon adds its own
/// values.
pub fn respond(view: &StateView<'_>, request: &Request) -> Result<Vec<Row>, ApiError> {
    let StateView { engine, reader: store, outbox_entries } = *view;
    match request {
        Request::Status {} => {
            Ok(vec![Row::Status(Box::new(Status { engine: engine.status(), outbox_entries, ..Status::default() }))])
        }
        Request::ServersList { filter } => {
            let mut servers: Vec<_> = engine.servers_that(filter.matcher()).collect();
            servers.sort_unstable_by(|a, b| a.url.cmp(&b.url));
            Ok(servers.into_iter().map(|server| Row::Server(Box::new(server))).collect())
        }
        Request::ServersPage { filter, after, count, order, recent } => {
            let page = engine.servers_page(*order, after.as_ref(), *count as usize, &filter.matcher());
            Ok(server_page_rows(engine, page, *recent))
        }
        Request::Series { game, tag } => {
            let group = engine.series_group(game.as_deref(), tag.as_deref()).map_err(view_error)?;
            let series = engine.online_series(group);
            Ok(series.into_iter().map(|series| Row::Series(Box::new(series))).collect())
        }
        Request::Overview {} => Ok(vec![Row::Overview(Box::new(engine.overview()))]),
        Request::ServersShow { url } => {
            let detail = engine.server_detail(store, url).map_err(view_error)?;
            Ok(vec![Row::ServerDetail(Box::new(detail))])
        }
        Request::Top { server, ranking, week, count } => {
            let top = engine.top(store, server, *ranking, week.as_deref(), *count as usize).map_err(view_error)?;
            Ok(vec![Row::Top(top)])
        }
        Request::Board { board, query } => {
            let answer = engine.query_board(store, board, query).map_err(view_error)?;
            Ok(board_rows(answer).collect())
        }
        Request::Boards { boards, query } => {
            let answers = engine.query_boards(store, boards, query).map_err(view_error)?;
            Ok(answers.into_iter().flat_map(board_rows).collect())
        }
        Request::Standings { boards, player, rankings } => {
            let rankings = if rankings.is_empty() { &Ranking::ALL[..] } else { rankings };
            Ok(vec![Row::Standings(engine.standings(store, boards, rankings, player).map_err(view_error)?)])
        }
        Request::Fused { boards, rankings, k, query } => {
            let all = Ranking::ALL.map(|ranking| RankingWeight { ranking, weight: 1.0 });
            let rankings = if rankings.is_empty() { &all[..] } else { rankings };
            Ok(fused_rows(engine.fused(store, boards, rankings, *k, query).map_err(view_error)?))
        }
        Request::Windows { .. } => {
            Ok(engine.windows().into_iter().map(|window| Row::Window(Box::new(window))).collect())
        }
        Request::Player { name } => {
            Ok(engine.players(store, name).map_err(view_error)?.into_iter().map(Row::Player).collect())
        }
        Request::PlayerNames { player_keys } => {
            let names = view.player_names(player_keys.iter().copied().map(PlayerKey).collect())?;
            Ok(names.into_iter().map(Row::PlayerName).collect())
        }
        Request::PlayerShow { player_key, skip } => {
            let player = engine.player(store, PlayerKey(*player_key), *skip as usize).map_err(view_error)?;
            Ok(vec![Row::Player(player)])
        }
        Request::PlayerForgotten {} => {
            let forgotten = engine.forgotten().into_iter();
            let row = |(hash, forgotten_ms)| Row::ForgottenName(ForgottenName { hash, forgotten_ms });
            Ok(forgotten.map(row).collect())
        }
        // The first requests are answered by the daemon beside the engine, and by `respond_once`. Every
        // request is listed, so a new request without an answer does not compile.
        Request::PlayerSearch { .. }
        | Request::Export { .. }
        | Request::Map { .. }
        | Request::Maps { .. }
        | Request::ServersSearch { .. }
        | Request::ServersBest { .. }
        | Request::ServersAdd { .. }
        | Request::WindowsDelete { .. }
        | Request::WindowsRecompute { .. }
        | Request::ServersRemove { .. }
        | Request::ServersTag { .. }
        | Request::ServersTrust { .. }
        | Request::TagDrop { .. }
        | Request::PlayerMerge { .. }
        | Request::PlayerForget { .. }
        | Request::PlayerAllow { .. }
        | Request::Rescan { .. }
        | Request::Boost { .. }
        | Request::Greylist { .. }
        | Request::Backup { .. }
        | Request::ClockAccept {}
        | Request::ClockReset { .. }
        | Request::WeekReopen { .. }
        | Request::ArchiveResend { .. }
        | Request::ArchiveVerify { .. }
        | Request::Reload {} => Err(ApiError::new(ErrorCode::Refused, "this needs the running daemon")),
    }
}

fn server_page_rows(engine: &Engine, page: (Vec<ServerSummary>, Option<ServerCursor>), recent: bool) -> Vec<Row> {
    let (servers, next) = page;
    let servers = servers.into_iter().map(|mut server| {
        server.recent = if recent { engine.recent_series(ServerKey(server.key)) } else { None };
        Row::Server(Box::new(server))
    });
    servers.chain(next.map(|after| Row::ServersNext(ServersNext { after }))).collect()
}

fn fused_rows((head, list): (FusedHead, Vec<FusedView>)) -> Vec<Row> {
    std::iter::once(Row::FusedHead(Box::new(head))).chain(list.into_iter().map(Row::Fused)).collect()
}

/// As [`respond`], for a process that ends after the answer. It also answers the requests for which
/// the daemon has indexes and caches, and which take longer without them.
pub fn respond_once(state: &mut State, request: &Request) -> Result<Vec<Row>, ApiError> {
    if let Some(problem) = validate::check(request) {
        return Err(ApiError::new(ErrorCode::BadRequest, problem));
    }
    if let Some(window) = board_window_of(&state.engine, request) {
        state.ensure_boards(window).map_err(store_error)?;
    }
    if let Request::Series { .. } = request {
        state.engine.complete_site_series();
    }
    let State { engine, store } = &*state;
    let reader = store.reader();
    let map_history = || MapHistory::default().next(engine.map_history_plan(), &reader).map_err(store_error);
    match request {
        Request::PlayerSearch { text, count } => {
            let found = name_index::find_players(&reader, text, *count as usize).map_err(store_error)?;
            Ok(state.view().player_names(found)?.into_iter().map(Row::PlayerName).collect())
        }
        Request::ServersSearch { text, count } => {
            let found = name_index::find_servers(&engine.server_names(0..u32::MAX), text);
            let busiest = engine.busiest_servers(&found, *count as usize).into_iter();
            Ok(busiest.map(|server| Row::Server(Box::new(server))).collect())
        }
        Request::Map { map } => {
            let mut view = engine.map(map).map_err(view_error)?;
            view.weeks = map_history()?.weeks_of(MapKey(view.map_key));
            Ok(vec![Row::Map(view)])
        }
        Request::Maps { text, count } => {
            let maps = map_history()?.most_played(text.as_deref(), *count as usize);
            Ok(maps.into_iter().map(Row::MapTotals).collect())
        }
        Request::ServersBest { url } => {
            let plan = engine.best_players_plan(url).map_err(view_error)?;
            let best = read_best(&plan, &reader).map_err(store_error)?;
            let names = state.view().player_names(best.player_keys().into_iter().map(PlayerKey).collect())?;
            Ok(vec![Row::BestPlayers(best.view(url.to_string(), names))])
        }
        Request::Windows { bytes: true } => {
            let mut rows = respond(&state.view(), request)?;
            add_stored_sizes(&reader, &mut rows)?;
            Ok(rows)
        }
        _ => respond(&state.view(), request),
    }
}

impl StateView<'_> {
    /// The names of the given players that exist.
    pub fn player_names(&self, players: Vec<PlayerKey>) -> Result<Vec<PlayerNameView>, ApiError> {
        let names = players.into_iter().filter_map(|player| self.engine.player_name(self.reader, player).transpose());
        names.collect::<Result<_, _>>().map_err(store_error)
    }
}

pub fn store_error(error: impl std::error::Error) -> ApiError {
    ApiError::new(ErrorCode::Internal, error.to_string())
}

fn board_rows(answer: BoardAnswer) -> impl Iterator<Item = Row> {
    let head = Row::BoardHead(Box::new(answer.head));
    std::iter::once(head).chain(answer.rows.into_iter().map(Row::from))
}

pub fn view_error(error: ViewError) -> ApiError {
    let code = match error {
        ViewError::Store(_) => ErrorCode::Internal,
        ViewError::BadCursor(BadCursor::Form(_)) | ViewError::BadWindow(_) | ViewError::AmbiguousName { .. } => {
            ErrorCode::BadRequest
        }
        ViewError::BadCursor(_) | ViewError::Stale(_) => ErrorCode::Refused,
        ViewError::Rebuilding(_) => ErrorCode::Busy,
        ViewError::RemovedServer(_) => ErrorCode::Removed,
        _ => ErrorCode::NotFound,
    };
    ApiError::new(code, error.to_string())
}

/// Adds the storage use of the windows of an answer.
///
/// Reads all records of these windows, about a second for a million records, so it is not part
/// of [`respond`]: the daemon does it outside the engine's thread.
pub fn add_stored_sizes(reader: &Reader, rows: &mut [Row]) -> Result<(), ApiError> {
    for row in rows {
        let Row::Window(listed) = row else { continue };
        let Ok(window) = window::parse_label(&listed.window.window) else { continue };
        listed.stored = Some(reader.stored_size(window).map_err(store_error)?);
    }
    Ok(())
}

/// The window whose boards of games and tags an answer needs, see
/// [`crate::engine::Engine::plan_boards`]. `None` for an invalid query too: its answer is the
/// error.
pub fn board_window_of(engine: &Engine, request: &Request) -> Option<WindowKey> {
    let boards = match request {
        Request::Board { board, .. } => &board.boards(),
        Request::Boards { boards, .. } | Request::Standings { boards, .. } | Request::Fused { boards, .. } => boards,
        _ => return None,
    };
    engine.boards_needed(boards).ok().flatten()
}
