//! `/api/v1/maps/{name}`: a map now and in all weeks.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;

use super::openapi::{Cached, NotFound};
use super::rows::MapRow;
use crate::api::{Request, Row};
use crate::web::answer::{MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query;

/// Returns a map now and in all weeks
///
/// Maps of the same name in different games are one. Greylisted and removed servers do not count.
#[utoipa::path(get, path = "/api/v1/maps/{name}", operation_id = "get_map", tag = "maps",
    params(("name" = String, Path, description = "The name of the map.", example = "q3dm17")),
    responses((status = 200, description = "The map.", body = MapRow), Cached, NotFound))]
pub(super) async fn show(
    State(context): State<Arc<WebContext>>,
    Path(map): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    match &context.ask(Request::Map { map }).await?[..] {
        [Row::Map(map)] => json_answer(&MapRow::from(map), MAX_AGE_S),
        _ => Err(Problem::unexpected_row()),
    }
}
