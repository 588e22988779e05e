//! `/api/v1/overview` and `/api/v1/series`: the whole site at a glance, and over time.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use crate::api::{Request, Row};
use crate::web::answer::{MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query;

pub(super) async fn overview(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    match &context.ask(Request::Overview {}).await?[..] {
        [row @ Row::Overview(_)] => json_answer(row, MAX_AGE_S),
        _ => Err(Problem::unexpected_row()),
    }
}

/// A game, a tag, or neither.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    game: Option<String>,
    tag: Option<String>,
}

#[derive(Debug, Serialize)]
struct OnlineSeries<'a> {
    series: Option<&'a Row>,
}

pub(super) async fn series(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters { game, tag } = query::parse(&uri)?;
    match &context.ask(Request::Series { game, tag }).await?[..] {
        [] => json_answer(&OnlineSeries { series: None }, MAX_AGE_S),
        [row @ Row::Series(_)] => json_answer(&OnlineSeries { series: Some(row) }, MAX_AGE_S),
        _ => Err(Problem::unexpected_row()),
    }
}
