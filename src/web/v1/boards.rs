//! `/api/v1/boards`: a page of a board, or the entries around a player.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use crate::api::{Request, Row};
use crate::model::row::Ranking;
use crate::model::scope::Scope;
use crate::model::view::board::{BoardQuery, BoardSelector, PlayerSelector};
use crate::web::answer::{CLOSED_MAX_AGE_S, MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query;

/// The ranking without `ranking`, as of `clqd board`.
const RANKING_DEFAULT: Ranking = Ranking::Clq1;

/// A scope, a window, and the part of the board.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Parameters {
    server: Option<String>,
    game: Option<String>,
    tag: Option<String>,
    ranking: Option<String>,
    window: Option<String>,
    at_ms: Option<i64>,
    start: Option<u32>,
    count: Option<u32>,
    player: Option<String>,
    player_key: Option<u32>,
    after: Option<String>,
    before: Option<String>,
}

#[derive(Debug, Serialize)]
struct Board<'a> {
    head: &'a Row,
    rows: &'a [Row],
}

pub(super) async fn board(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let (board, query) = request(query::parse(&uri)?)?;
    let rows = context.ask(Request::Board { board, query }).await?;
    let Some((head @ Row::BoardHead(of_board), rows)) = rows.split_first() else {
        return Err(Problem::unexpected_row());
    };
    let max_age_s = if of_board.window.closed { CLOSED_MAX_AGE_S } else { MAX_AGE_S };
    json_answer(&Board { head, rows }, max_age_s)
}

fn request(parameters: Parameters) -> Result<(BoardSelector, BoardQuery), Problem> {
    let Parameters { server, game, tag, ranking, window, at_ms, start, count, player, player_key, after, before } =
        parameters;
    let scope = match (server, game, tag) {
        (Some(url), None, None) => Scope::Server(query::server_url(&url)?),
        (None, Some(game), None) => Scope::Game(game),
        (None, None, Some(tag)) => Scope::Tag(tag),
        _ => return Err(Problem::bad_request("expected one of server, game and tag")),
    };
    let ranking = ranking.as_deref().map_or(Ok(RANKING_DEFAULT), query::ranking)?;
    let count = query::rows("count", count)?;
    let player = match (player, player_key) {
        (None, None) => None,
        (Some(name), None) => Some(PlayerSelector::Name(name)),
        (None, Some(key)) => Some(PlayerSelector::Key(key)),
        (Some(_), Some(_)) => return Err(Problem::bad_request("expected only one of player and player_key")),
    };
    let query = match (start, player, after, before) {
        (start, None, None, None) => BoardQuery::Page { position: start.unwrap_or(1), count },
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
        check("game=a&ranking=point", Err("did you mean points?"));
        check("game=a&count=501", Err("count is 501; expected 1 to 500"));
        check("game=a&count=0", Err("count is 0"));
        check("game=a&start=x", Err("start"));
        check("game=a&start=1&player=b", Err("only one of start, player, after and before"));
        check("game=a&player=b&player_key=1", Err("only one of player and player_key"));
        check("game=a&rankin=elo", Err("unknown field `rankin`"));
        check("game=a&game=b", Err("duplicate field `game`"));
    }
}
