//! `/api/v1/status`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;

use super::responses::Cached;
use super::rows::StatusRow;
use crate::web::answer::{STATUS_MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query;

/// Returns the state of the daemon
#[utoipa::path(get, path = "/api/v1/status", operation_id = "get_status", tag = "site",
    responses((status = 200, description = "The state of the daemon.", body = StatusRow), Cached))]
pub(super) async fn status(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    let status = context.status().await?;
    json_answer(&StatusRow::from(&status.public()), STATUS_MAX_AGE_S)
}
