//! `/api/v1/boards`: a page of a board, or the entries around a player. `/api/v1/windows`: the windows
//! for which boards are kept.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::responses::{Cached, NotFound, Refused};
use super::rows::{BoardHeadRow, EntryRow, WindowRow};
use crate::api::requests;
use crate::board::window::TIME_MS_MAX;
use crate::model::row::Ranking;
use crate::model::scope::Scope;
use crate::view::board::{BoardAnswer, BoardQuery, BoardRow, BoardSelector, PlayerSelector};
use crate::web::answer::{CLOSED_MAX_AGE_S, MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query::{self, Name, Number, PlayerKey, Position, RowCount, describe};

/// The ranking without `ranking`, as of `clqd board`.
const RANKING_DEFAULT: Ranking = Ranking::Clq1;

/// Unix ms.
type Time = Number<0, TIME_MS_MAX>;

/// A scope, a window, and the part of the board.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct Parameters {
    /// The board of a server: its URL. Exactly one of `server`, `game` and `tag` is required.
    #[param(value_type = Option<query::Url>, inline)]
    server: Option<String>,
    /// The board of all servers of a game.
    #[param(inline)]
    game: Option<Name>,
    /// The board of the servers with a tag.
    #[param(inline)]
    tag: Option<Name>,
    /// What the board is ordered by.
    #[param(value_type = Option<RankingName>, inline)]
    ranking: Option<Ranking>,
    /// A window, such as `2026-W47`, or a type of windows, such as `week`; without it, the running week.
    #[param(value_type = Option<query::Window>, inline)]
    window: Option<String>,
    /// A time, Unix ms. With a type of windows: its oldest window that contains it. With a window: 404 if the
    /// window does not contain it.
    #[param(inline)]
    at_ms: Option<Time>,
    /// A page from this position on; without it, and without `player`, `player_key`, `after` and
    /// `before`, from 1.
    #[param(inline)]
    start: Option<Position>,
    /// Most entries.
    #[param(inline)]
    count: Option<RowCount>,
    /// Instead of `start`: the entries around the player with this name.
    #[param(inline)]
    player: Option<Name>,
    /// Instead of `start`: the entries around the player with this number.
    #[param(inline)]
    player_key: Option<PlayerKey>,
    /// Instead of `start`: the page after this cursor of `head.page`.
    #[param(value_type = Option<query::BoardCursor>, inline)]
    after: Option<String>,
    /// Instead of `start`: the page before this cursor of `head.page`.
    #[param(value_type = Option<query::BoardCursor>, inline)]
    before: Option<String>,
}

/// A part of a board.
#[derive(Debug, Serialize, ToSchema)]
struct Board<'a> {
    /// What the board is about.
    head: BoardHeadRow<'a>,
    /// The entries, best first.
    rows: Vec<EntryRow<'a>>,
}

/// All windows for which boards are kept.
#[derive(Debug, Serialize, ToSchema)]
struct WindowList<'a> {
    /// The newest first within a type.
    windows: Vec<WindowRow<'a>>,
}

/// The description of the parameter `ranking`.
struct RankingName;

describe!(RankingName, query::names_schema(Ranking::ALL.map(Ranking::name), RANKING_DEFAULT.name()));

/// Returns a part of a board
///
/// A page of the board of a server, a game or a tag, or the entries around a player.
#[utoipa::path(get, path = "/api/v1/boards", operation_id = "get_board", tag = "boards", params(Parameters),
    responses((status = 200, description = "A part of the board.", body = Board), Cached, NotFound, Refused))]
pub(super) async fn board(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let (board, query) = request(query::parse(&uri)?)?;
    let BoardAnswer { head, rows } = context.ask(requests::Board { board, query }).await?;
    let rows = rows.iter().filter_map(BoardRow::entry).map(EntryRow::from).collect();
    let max_age_s = if head.window.closed { CLOSED_MAX_AGE_S } else { MAX_AGE_S };
    json_answer(&Board { head: (&head).into(), rows }, max_age_s)
}

/// Lists the windows for which boards are kept
#[utoipa::path(get, path = "/api/v1/windows", operation_id = "list_windows", tag = "boards",
    responses((status = 200, description = "The windows.", body = WindowList), Cached))]
pub(super) async fn windows(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    let windows = context.ask_shared(&requests::Windows { bytes: false }).await?;
    json_answer(&WindowList { windows: windows.iter().map(WindowRow::from).collect() }, MAX_AGE_S)
}

fn request(parameters: Parameters) -> Result<(BoardSelector, BoardQuery), Problem> {
    let Parameters { server, game, tag, ranking, window, at_ms, start, count, player, player_key, after, before } =
        parameters;
    let scope = match (server, game, tag) {
        (Some(url), None, None) => Scope::Server(query::server_url(&url)?),
        (None, Some(Name(game)), None) => Scope::Game(game),
        (None, None, Some(Name(tag))) => Scope::Tag(tag),
        _ => return Err(Problem::bad_request("expected one of server, game and tag")),
    };
    let (ranking, at_ms) = (ranking.unwrap_or(RANKING_DEFAULT), at_ms.map(Number::to));
    let count = RowCount::of(count);
    let player = match (player, player_key) {
        (None, None) => None,
        (Some(Name(name)), None) => Some(PlayerSelector::Name(name)),
        (None, Some(key)) => Some(PlayerSelector::Key(key.to())),
        (Some(_), Some(_)) => return Err(Problem::bad_request("expected only one of player and player_key")),
    };
    let query = match (start, player, after, before) {
        (start, None, None, None) => BoardQuery::Page { position: start.map_or(1, Number::to), count },
        (None, Some(player), None, None) => BoardQuery::Around { player, count },
        (None, None, Some(cursor), None) => BoardQuery::After { cursor, count },
        (None, None, None, Some(cursor)) => BoardQuery::Before { cursor, count },
        _ => return Err(Problem::bad_request("expected only one of start, player, after and before")),
    };
    Ok((BoardSelector { scope, ranking, window, at_ms }, query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Result<BoardQuery, &str>) {
        let uri = format!("/boards?{text}").parse().expect("a URI");
        let query = query::parse(&uri).and_then(request).map(|(_, query)| query);
        match (query, want) {
            (Ok(query), Ok(want)) => assert_eq!(query, want, "{text}"),
            (Err(problem), Err(want)) => assert!(problem.detail.contains(want), "{text}: {}", problem.detail),
            (got, want) => panic!("{text}: {got:?} instead of {want:?}"),
        }
    }

    #[test]
    fn each_part_of_a_board_has_one_form() {
        let name = |name: &str| PlayerSelector::Name(name.to_owned());
        check("game=baseq3", Ok(BoardQuery::Page { position: 1, count: 50 }));
        check("tag=pro&start=501&count=500", Ok(BoardQuery::Page { position: 501, count: 500 }));
        check("game=a&player=Vi%20sor%2B", Ok(BoardQuery::Around { player: name("Vi sor+"), count: 50 }));
        check("game=a&player_key=7&count=3", Ok(BoardQuery::Around { player: PlayerSelector::Key(7), count: 3 }));
        check("game=a&after=AB", Ok(BoardQuery::After { cursor: "AB".into(), count: 50 }));
        check("game=a&before=AB", Ok(BoardQuery::Before { cursor: "AB".into(), count: 50 }));
        check("", Err("expected one of server, game and tag"));
        check("game=a&tag=b", Err("expected one of server, game and tag"));
        check("server=x", Err("server URL \"x\""));
        check("game=a&ranking=point", Err("ranking is \"point\"; did you mean points?"));
        check("game=a&count=501", Err("count is \"501\"; expected 1 to 500"));
        check("game=a&count=0", Err("count is \"0\""));
        check("game=a&start=x", Err("start is \"x\"; expected 1 to 4294967295"));
        check("game=a&start=1&player=b", Err("only one of start, player, after and before"));
        check("game=a&player=b&player_key=1", Err("only one of player and player_key"));
        check("game=a&rankin=elo", Err("there is no parameter \"rankin\"; did you mean ranking?"));
        check("game=a&game=b", Err("the parameter game is there twice"));
    }
}
