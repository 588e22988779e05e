//! `/api/v1/status`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;

use crate::web::answer::{STATUS_MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query;
use crate::web::visitor::VisitorStatus;

pub(super) async fn status(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    let status = context.status().await?;
    json_answer(&VisitorStatus::from(&status), STATUS_MAX_AGE_S)
}
