//! `/api/v1/search`: players, servers and maps by a part of their names.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::responses::{Cached, Refused};
use super::rows::{MapTotalsRow, PlayerNameRow, ServerRow};
use crate::api::requests;
use crate::web::answer::{MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query::{self, Name, RowCount};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Parameters {
    /// A part of a name, at most 256 characters; case is ignored. A string of one or two characters is
    /// searched for only at the beginning of names.
    #[param(inline)]
    text: Name,
    /// Most players, most servers and most maps.
    #[param(inline)]
    limit: Option<RowCount>,
}

/// What a search found.
#[derive(Debug, Serialize, ToSchema)]
struct Found<'a> {
    /// Players whose names have all words of the text: names that are equal to it, then those that begin with it,
    /// then others; each the newest players first.
    players: Vec<PlayerNameRow<'a>>,
    /// Servers whose host name has all words of the text, or whose address contains it; those with most players first.
    servers: Vec<ServerRow<'a>>,
    /// The map with this name, those whose names begin with the string, then those whose names contain it;
    /// each in order of the time that it was played in the kept weeks.
    maps: Vec<MapTotalsRow<'a>>,
}

/// Finds players, servers and maps by a part of their names
///
/// A new name is found within some seconds, a new map within ten minutes. 409 if searches are turned
/// off.
#[utoipa::path(get, path = "/api/v1/search", operation_id = "search", tag = "site", params(Parameters),
    responses((status = 200, description = "What was found.", body = Found), Cached, Refused))]
pub(super) async fn search(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters { text: Name(text), limit } = query::parse(&uri)?;
    let count = RowCount::of(limit);
    let players = context.ask(requests::PlayerSearch { text: text.clone(), count }).await?;
    let servers = context.ask(requests::ServersSearch { text: text.clone(), count }).await?;
    let maps = context.ask(requests::Maps { text: Some(text), count }).await?;
    let found = Found {
        players: players.iter().map(PlayerNameRow::from).collect(),
        servers: servers.iter().map(|server| ServerRow::from(&server.public)).collect(),
        maps: maps.iter().map(MapTotalsRow::from).collect(),
    };
    json_answer(&found, MAX_AGE_S)
}
