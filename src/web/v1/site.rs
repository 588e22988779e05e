//! `/api/v1/status`, `/api/v1/overview` and `/api/v1/series`: the daemon, and the whole site at a glance and over time.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::responses::{Cached, NotFound};
use super::rows::{OverviewRow, SeriesRow, StatusRow};
use crate::api::requests;
use crate::view::Overview;
use crate::web::answer::{MAX_AGE_S, STATUS_MAX_AGE_S, json_answer, json_answer_of_content};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query::{self, Name};

/// Returns the state of the daemon
#[utoipa::path(get, path = "/api/v1/status", operation_id = "get_status", tag = "site",
    responses((status = 200, description = "The state of the daemon.", body = StatusRow), Cached))]
pub(super) async fn status(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    let status = context.status().await?;
    json_answer(&StatusRow::from(&status.public()), STATUS_MAX_AGE_S)
}

/// Returns players and servers online, by game and tag
#[utoipa::path(get, path = "/api/v1/overview", operation_id = "get_overview", tag = "site",
    responses((status = 200, description = "The whole site at a glance.", body = OverviewRow), Cached))]
pub(super) async fn overview(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    let overview = context.ask(requests::Overview {}).await?;
    json_answer_of_content(&OverviewRow::from(&overview), &overview_content(&overview), MAX_AGE_S)
}

/// The overview without its time.
pub(super) fn overview_content(overview: &Overview) -> Overview {
    Overview { now_ms: 0, ..overview.clone() }
}

/// A game, a tag, or neither.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Parameters {
    /// Only the servers of a game.
    #[param(inline)]
    game: Option<Name>,
    /// Only the servers with a tag; not together with `game`.
    #[param(inline)]
    tag: Option<Name>,
}

/// Players and servers online over time, if they are known.
#[derive(Debug, Serialize, ToSchema)]
struct OnlineSeriesAnswer<'a> {
    /// `null` until the first slot of ten minutes has ended.
    series: Option<SeriesRow<'a>>,
}

/// Returns players and servers online over time
///
/// The sums are computed once in ten minutes. The slot of the last ten to twenty minutes is left out,
/// because servers are still being scanned.
#[utoipa::path(get, path = "/api/v1/series", operation_id = "get_series", tag = "site", params(Parameters),
    responses((status = 200, description = "The series.", body = OnlineSeriesAnswer), Cached, NotFound))]
pub(super) async fn series(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters { game, tag } = query::parse(&uri)?;
    let [game, tag] = [game, tag].map(|name| name.map(|Name(name)| name));
    let series = context.ask(requests::Series { game, tag }).await?;
    json_answer(&OnlineSeriesAnswer { series: series.as_ref().map(SeriesRow::from) }, MAX_AGE_S)
}
