//! `/api/v1/players`: a player by name, in each game in which the name is known.
//! `/api/v1/players/{key}`: a player by key. `/api/v1/search`: players by a part of their names.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::openapi::{Cached, NotFound, Refused};
use super::rows::{PlayerNameRow, PlayerRow};
use crate::api::{Request, Row};
use crate::limits::NAME_BYTES_MAX;
use crate::web::answer::{MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::limits::PLAYER_WEEKS_MAX;
use crate::web::problem::Problem;
use crate::web::query;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Parameters {
    /// The name of a player, with or without colour codes; at most 256 bytes.
    name: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchParameters {
    /// A part of a name, at most 256 bytes; case is ignored. A text of one or two characters is only
    /// looked for at the beginning.
    text: String,
    /// Most players.
    #[param(value_type = Option<query::RowCount>, inline)]
    limit: Option<u32>,
}

/// Players of one name.
#[derive(Debug, Serialize, ToSchema)]
struct PlayerList {
    /// One for each game in which the name is known.
    players: Vec<PlayerRow>,
}

/// Names of players.
#[derive(Debug, Serialize, ToSchema)]
struct PlayerNameList {
    /// Those that begin with the text, then those that contain it, the newest players first.
    players: Vec<PlayerNameRow>,
}

/// Lists the players of a name
///
/// Weeks are the newest 500 at most.
#[utoipa::path(get, path = "/api/v1/players", operation_id = "list_players", tag = "players", params(Parameters),
    responses((status = 200, description = "The players.", body = PlayerList), Cached, NotFound))]
pub(super) async fn players(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters { name } = query::parse(&uri)?;
    check_length("name", &name)?;
    let rows = context.ask(Request::Player { name }).await?;
    let mut players = Vec::with_capacity(rows.len());
    for row in rows {
        let Row::Player(mut player) = row else { return Err(Problem::unexpected_row()) };
        // Newest first.
        player.weeks.truncate(PLAYER_WEEKS_MAX);
        players.push(player.into());
    }
    json_answer(&PlayerList { players }, MAX_AGE_S)
}

/// Returns a player
///
/// Weeks are the newest 500 at most.
#[utoipa::path(get, path = "/api/v1/players/{key}", operation_id = "get_player", tag = "players",
    params(("key" = u32, Path, description = "The number of the player.")),
    responses((status = 200, description = "The player.", body = PlayerRow), Cached, NotFound))]
pub(super) async fn by_key(
    State(context): State<Arc<WebContext>>,
    Path(key): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    let mut player = context.player(query::player_key(&key)?).await?;
    player.weeks.truncate(PLAYER_WEEKS_MAX);
    json_answer(&PlayerRow::from(player), MAX_AGE_S)
}

/// Finds players by a part of their names
///
/// A new name is found within some seconds. 409 if searches are turned off.
#[utoipa::path(get, path = "/api/v1/search", operation_id = "search_players", tag = "players", params(SearchParameters),
    responses((status = 200, description = "The players that were found.", body = PlayerNameList), Cached, Refused))]
pub(super) async fn search(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let SearchParameters { text, limit } = query::parse(&uri)?;
    let count = query::rows("limit", limit)?;
    check_length("text", &text)?;
    let rows = context.ask(Request::PlayerSearch { text, count }).await?;
    let mut players = Vec::with_capacity(rows.len());
    for row in rows {
        let Row::PlayerName(player) = row else { return Err(Problem::unexpected_row()) };
        players.push(player.into());
    }
    json_answer(&PlayerNameList { players }, MAX_AGE_S)
}

fn check_length(parameter: &str, text: &str) -> Result<(), Problem> {
    match text.len() <= NAME_BYTES_MAX {
        true => Ok(()),
        false => {
            let detail = format!("{parameter} has {} bytes; names have at most {NAME_BYTES_MAX}", text.len());
            Err(Problem::bad_request(detail))
        }
    }
}
