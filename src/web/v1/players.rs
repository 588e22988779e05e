//! `/api/v1/players`: a player by name, in each game in which the name is known.
//! `/api/v1/players/{key}`: a player by key.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::openapi::{Cached, NotFound};
use super::rows::PlayerRow;
use crate::api::{Request, Row};
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

/// Players of one name.
#[derive(Debug, Serialize, ToSchema)]
struct PlayerList {
    /// One for each game in which the name is known.
    players: Vec<PlayerRow>,
}

/// Lists the players of a name
///
/// Weeks are the newest 500 at most.
#[utoipa::path(get, path = "/api/v1/players", operation_id = "list_players", tag = "players", params(Parameters),
    responses((status = 200, description = "The players.", body = PlayerList), Cached, NotFound))]
pub(super) async fn players(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters { name } = query::parse(&uri)?;
    query::name_length("name", &name)?;
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
