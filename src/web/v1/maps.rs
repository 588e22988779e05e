//! `/api/v1/maps/{name}`: a map now and in all weeks.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;

use crate::api::{Request, Row};
use crate::web::answer::{MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query;

pub(super) async fn show(
    State(context): State<Arc<WebContext>>,
    Path(map): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    match &context.ask(Request::Map { map }).await?[..] {
        [row @ Row::Map(_)] => json_answer(row, MAX_AGE_S),
        _ => Err(Problem::unexpected_row()),
    }
}
