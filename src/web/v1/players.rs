//! `/api/v1/players`: a player by name, in each game in which the name is known.
//! `/api/v1/players/{key}`: a player by key. `/api/v1/search`: players by a part of their names.

use std::sync::Arc;

use axum::extract::{Path, State};
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchParameters {
    text: String,
    limit: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Players {
    players: Vec<Row>,
}

pub(super) async fn players(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters { name } = query::parse(&uri)?;
    check_length("name", &name)?;
    let mut players = context.ask(Request::Player { name }).await?;
    for row in &mut players {
        let Row::Player(player) = row else { return Err(Problem::unexpected_row()) };
        // Newest first.
        player.weeks.truncate(PLAYER_WEEKS_MAX);
    }
    json_answer(&Players { players }, MAX_AGE_S)
}

pub(super) async fn by_key(
    State(context): State<Arc<WebContext>>,
    Path(key): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    let mut player = context.player(query::player_key(&key)?).await?;
    player.weeks.truncate(PLAYER_WEEKS_MAX);
    json_answer(&Row::Player(player), MAX_AGE_S)
}

pub(super) async fn search(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let SearchParameters { text, limit } = query::parse(&uri)?;
    let count = query::rows("limit", limit)?;
    check_length("text", &text)?;
    let players = context.ask(Request::PlayerSearch { text, count }).await?;
    json_answer(&Players { players }, MAX_AGE_S)
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
