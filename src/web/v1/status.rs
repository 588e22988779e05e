//! `/api/v1/status`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::Deserialize;

use crate::web::answer::{STATUS_MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query;
use crate::web::visitor::VisitorStatus;

/// It has no parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {}

pub(super) async fn status(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters {} = query::parse(&uri)?;
    let status = context.status().await?;
    json_answer(&VisitorStatus::from(&status), STATUS_MAX_AGE_S)
}
