//! `/api/v1/players`: a player by name, in each game in which the name is known.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use crate::api::{Request, Row};
use crate::limits::NAME_BYTES_MAX;
use crate::web::answer::{MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::limits::PLAYER_WEEKS_MAX;
use crate::web::problem::Problem;
use crate::web::query;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    name: String,
}

#[derive(Debug, Serialize)]
struct Players {
    players: Vec<Row>,
}

pub(super) async fn players(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters { name } = query::parse(&uri)?;
    if name.len() > NAME_BYTES_MAX {
        let detail = format!("name has {} bytes; names have at most {NAME_BYTES_MAX}", name.len());
        return Err(Problem::bad_request(detail));
    }
    let mut players = context.ask(Request::Player { name }).await?;
    for row in &mut players {
        let Row::Player(player) = row else { return Err(Problem::unexpected_row()) };
        // Newest first.
        player.weeks.truncate(PLAYER_WEEKS_MAX);
    }
    json_answer(&Players { players }, MAX_AGE_S)
}
