//! `/api/v1/servers`, `/api/v1/servers/{url}`, and `/api/v1/best`: the best players of a server.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use crate::api::{Request, Row, ServerFilter};
use crate::model::server::Class;
use crate::web::answer::{MAX_AGE_S, json_answer};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query;
use crate::web::visitor::{VisitorDetail, VisitorServer};

/// A filter, as of `clqd servers list`, and a page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListParameters {
    class: Option<u8>,
    game: Option<String>,
    map: Option<String>,
    tag: Option<String>,
    online: Option<bool>,
    screened: Option<bool>,
    text: Option<String>,
    order: Option<String>,
    /// With the players of the last 25 hours.
    #[serde(default)]
    recent: bool,
    /// The `next` of the page before.
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Debug, Serialize)]
struct ServerList<'a> {
    servers: Vec<VisitorServer<'a>>,
    /// Continues the list; absent on the last page.
    next: Option<String>,
}

pub(super) async fn list(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let ListParameters { class, game, map, tag, online, screened, text, order, recent, after, limit } =
        query::parse(&uri)?;
    let class = class.map(Class::try_from).transpose().map_err(Problem::bad_request)?;
    let after = after.as_deref().map(query::server_cursor).transpose()?;
    let order = order.as_deref().map(query::server_order).transpose()?.unwrap_or_default();
    let filter = ServerFilter { class, game, map, tag, online, screened, text };
    let count = query::rows("limit", limit)?;
    let rows = context.ask(Request::ServersPage { filter, after, count, order, recent }).await?;
    let mut list = ServerList { servers: Vec::with_capacity(rows.len()), next: None };
    for row in &rows {
        match row {
            Row::Server(server) => list.servers.push(VisitorServer::from(&**server)),
            Row::ServersNext(next) => list.next = Some(next.after.to_string()),
            _ => return Err(Problem::unexpected_row()),
        }
    }
    json_answer(&list, MAX_AGE_S)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BestParameters {
    server: String,
}

pub(super) async fn best(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let BestParameters { server } = query::parse(&uri)?;
    let url = query::server_url(&server)?;
    match &context.ask(Request::ServersBest { url }).await?[..] {
        [row @ Row::BestPlayers(_)] => json_answer(row, MAX_AGE_S),
        _ => Err(Problem::unexpected_row()),
    }
}

pub(super) async fn show(
    State(context): State<Arc<WebContext>>,
    Path(url): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    let detail = context.server(query::server_url(&url)?).await?;
    json_answer(&VisitorDetail::from(&detail), MAX_AGE_S)
}
