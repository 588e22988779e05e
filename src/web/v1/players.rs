//! `/api/v1/players`: a player by name, in each game in which the name is known.
//! `/api/v1/players/{key}`: a player by key.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::responses::{Cached, Moved, NotFound};
use super::rows::TaggedPlayer;
use crate::api::requests;
use crate::web::answer::{MAX_AGE_S, json_answer, moved_to};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query::{self, Name, Number, PlayerKey, Skip};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Parameters {
    /// The name of a player, with or without colour codes; at most 256 characters.
    #[param(inline)]
    name: Name,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ByKeyParameters {
    /// Number of rows of `weeks` to skip: the `weeks_next` of the previous answer.
    #[param(inline)]
    skip: Option<Skip>,
}

/// Players of one name.
#[derive(Debug, Serialize, ToSchema)]
struct PlayerList<'a> {
    /// One for each game in which the name is known.
    players: Vec<TaggedPlayer<'a>>,
}

/// Lists the players of a name
///
/// All players together have some 100 rows of `weeks` at most; a request by key continues them.
#[utoipa::path(get, path = "/api/v1/players", operation_id = "list_players", tag = "players", params(Parameters),
    responses((status = 200, description = "The players.", body = PlayerList), Cached, NotFound))]
pub(super) async fn players(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters { name: Name(name) } = query::parse(&uri)?;
    let players = context.ask(requests::Player { name }).await?;
    json_answer(&PlayerList { players: players.iter().map(TaggedPlayer::from).collect() }, MAX_AGE_S)
}

/// Returns a player
///
/// The address of a player who was merged into another one is redirected to that one. An answer has at
/// most 100 rows of `weeks`, and the best positions on their servers.
#[utoipa::path(get, path = "/api/v1/players/{key}", operation_id = "get_player", tag = "players",
    params(("key" = inline(PlayerKey), Path, description = "The number of the player."), ByKeyParameters),
    responses((status = 200, description = "The player.", body = TaggedPlayer), Cached, NotFound, Moved))]
pub(super) async fn by_key(
    State(context): State<Arc<WebContext>>,
    Path(key): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let ByKeyParameters { skip } = query::parse(&uri)?;
    let player_key = query::player_key(&key)?;
    let skip = skip.map_or(0, Number::to);
    let player = context.ask(requests::PlayerShow { player_key, skip }).await?;
    if player.player_key != player_key {
        return Ok(moved_to(&format!("/api/v1/players/{}", player.player_key)));
    }
    json_answer(&TaggedPlayer::from(&player), MAX_AGE_S)
}
