//! `/api/v1/sessions`: when players were on servers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::responses::{Cached, NotFound};
use super::rows::SessionRow;
use crate::api::requests;
use crate::view::board::PlayerSelector;
use crate::web::answer::{MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query::{self, PlayerKey, RowCount};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Parameters {
    /// The URL of a server.
    #[param(value_type = Option<query::Url>, inline)]
    server: Option<String>,
    /// The number of a player.
    #[param(inline)]
    player_key: Option<PlayerKey>,
    /// Most sessions.
    #[param(inline)]
    limit: Option<RowCount>,
}

/// Sessions.
#[derive(Debug, Serialize, ToSchema)]
struct SessionList<'a> {
    /// Open ones first, then the newest.
    sessions: Vec<SessionRow<'a>>,
}

/// Lists the newest sessions of a player or on a server
///
/// A session is one presence of a player on a server, as scans show it. Complete sessions are kept for
/// `sessions.keep_days`.
#[utoipa::path(get, path = "/api/v1/sessions", operation_id = "list_sessions", tag = "players", params(Parameters),
    responses((status = 200, description = "The sessions.", body = SessionList), Cached, NotFound))]
pub(super) async fn list(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters { server, player_key, limit } = query::parse(&uri)?;
    let count = RowCount::of(limit);
    let sessions = match (server, player_key) {
        (Some(server), None) => {
            context.ask(requests::ServersSessions { url: query::server_url(&server)?, last_s: None, count }).await?
        }
        (None, Some(key)) => {
            context.ask(requests::PlayerSessions { player: PlayerSelector::Key(key.to()), count }).await?
        }
        _ => return Err(Problem::bad_request("exactly one of server and player_key is required")),
    };
    json_answer(&SessionList { sessions: sessions.iter().map(SessionRow::from).collect() }, MAX_AGE_S)
}
