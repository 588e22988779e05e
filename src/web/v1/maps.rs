//! `/api/v1/maps`: the most played maps. `/api/v1/maps/{name}`: a map now and in all weeks.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::responses::{Cached, NotFound};
use super::rows::{MapTotalsRow, TaggedMap};
use crate::api::requests;
use crate::web::answer::{MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query::{self, Name, RowCount};
use crate::web::segment::Segment;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParameters {
    /// Only maps whose names equal this string, begin with it or contain it, in this order. Case is
    /// ignored. A string of one or two characters is not searched for inside names.
    #[param(inline)]
    text: Option<Name>,
    /// Most maps.
    #[param(inline)]
    limit: Option<RowCount>,
}

/// Maps, the most played first.
#[derive(Debug, Serialize, ToSchema)]
struct MapList<'a> {
    /// The maps.
    maps: Vec<MapTotalsRow<'a>>,
}

/// Lists the maps that were played most in all kept weeks
///
/// The figures are at most ten minutes old. Greylisted and removed servers do not count.
#[utoipa::path(get, path = "/api/v1/maps", operation_id = "list_maps", tag = "maps", params(ListParameters),
    responses((status = 200, description = "The maps.", body = MapList), Cached))]
pub(super) async fn list(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let ListParameters { text, limit } = query::parse(&uri)?;
    let request = requests::Maps { text: text.map(|Name(text)| text), count: RowCount::of(limit) };
    let maps = context.ask(request).await?;
    json_answer(&MapList { maps: maps.iter().map(MapTotalsRow::from).collect() }, MAX_AGE_S)
}

/// Returns a map now and in all weeks
///
/// Maps of the same name in different games are one. Greylisted and removed servers do not count.
#[utoipa::path(get, path = "/api/v1/maps/{name}", operation_id = "get_map", tag = "maps",
    params((
        "name" = inline(Segment),
        Path,
        description = "The name of the map, percent-encoded. The names `.` and `..` are written `~.` and `~..`.",
        example = "q3dm17",
    )),
    responses((status = 200, description = "The map.", body = TaggedMap), Cached, NotFound))]
pub(super) async fn show(
    State(context): State<Arc<WebContext>>,
    Path(Segment(map)): Path<Segment>,
    uri: Uri,
) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    let Name(map) = query::name(map)?;
    json_answer(&TaggedMap::from(&context.ask(requests::Map { map }).await?), MAX_AGE_S)
}
