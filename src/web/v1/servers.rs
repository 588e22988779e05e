//! `/api/v1/servers`, `/api/v1/servers/{url}`, and `/api/v1/best`: the best players of a server.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::responses::{Cached, NotFound, Refused, Removed};
use super::rows::{BestPlayersRow, ServerDetailRow, ServerRow};
use crate::api::{ServerFilter, requests};
use crate::model::server::Class;
use crate::model::server_page::ServerOrder;
use crate::web::answer::{MAX_AGE_S, json_answer, json_answer_of_content};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query::{self, CountryCode, Name, Number, RowCount, describe};

/// A scan class.
type ClassNumber = Number<1, 7>;

/// A filter, as of `clqd servers list`, and a page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListParameters {
    /// Servers of this scan class; 6 and 7 do not answer.
    #[param(inline)]
    class: Option<ClassNumber>,
    /// Servers with exactly this game.
    #[param(inline)]
    game: Option<Name>,
    /// Servers with exactly this current map.
    #[param(inline)]
    map: Option<Name>,
    /// Servers with exactly this tag.
    #[param(inline)]
    tag: Option<Name>,
    /// `true`: servers whose last list shows the current players; `false`: all others.
    online: Option<bool>,
    /// `true`: servers of which a screening check has refused something within the last 7 days;
    /// `false`: all others.
    screened: Option<bool>,
    /// Servers in the country with this code (ISO 3166-1), such as `DE`; 409 if the site does not know countries.
    #[param(inline)]
    country: Option<CountryCode>,
    /// Servers with this part of the URL, host name or map; case is ignored.
    #[param(inline)]
    text: Option<Name>,
    /// `added`: the order in which they were added; `players`: online servers, most players first;
    /// `rank`: ranked servers, the best first; `name`: servers that answer, by host name.
    #[param(value_type = Option<OrderName>, inline)]
    order: Option<ServerOrder>,
    /// Whether to include the players of the last 25 hours.
    #[serde(default)]
    #[param(default = false)]
    recent: bool,
    /// The cursor of the page: the `next` of the previous page.
    #[param(value_type = Option<query::Cursor>, inline)]
    after: Option<String>,
    /// Most servers.
    #[param(inline)]
    limit: Option<RowCount>,
}

/// A page of servers.
#[derive(Debug, Serialize, ToSchema)]
struct ServerList<'a> {
    /// In the order of the request.
    servers: Vec<ServerRow<'a>>,
    /// Continues the list, as `after`; `null` on the last page.
    next: Option<String>,
}

/// The description of the parameter `order`.
struct OrderName;

describe!(OrderName, query::names_schema(ServerOrder::ALL.map(ServerOrder::name), ServerOrder::default().name()));

/// Lists servers, in pages
///
/// A server must match all parameters. With a filter a page may have fewer servers than `limit`, even
/// none, although there are more: the list is complete only when `next` is `null`.
#[utoipa::path(get, path = "/api/v1/servers", operation_id = "list_servers", tag = "servers", params(ListParameters),
    responses((status = 200, description = "A page of servers.", body = ServerList), Cached, Refused))]
pub(super) async fn list(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let ListParameters { class, game, map, tag, online, screened, country, text, order, recent, after, limit } =
        query::parse(&uri)?;
    let class = class.and_then(|class| Class::new(class.to()));
    let after = after.as_deref().map(query::server_cursor).transpose()?;
    let [game, map, tag, text] = [game, map, tag, text].map(|name| name.map(|Name(name)| name));
    let country = country.map(|CountryCode(code)| code);
    let filter = ServerFilter { class, game, map, tag, online, screened, country, text, ..ServerFilter::default() };
    let (count, order) = (RowCount::of(limit), order.unwrap_or_default());
    let page = context.ask(requests::ServersPage { filter, after, count, order, recent }).await?;
    let servers = page.servers.iter().map(|server| ServerRow::from(&server.public)).collect();
    json_answer(&ServerList { servers, next: page.next.map(|next| next.to_string()) }, MAX_AGE_S)
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct BestParameters {
    /// The URL of the server.
    #[param(value_type = query::Url, inline)]
    server: String,
}

/// Returns the players of a server with the best positions
///
/// For CLQ1, CLQ2 and ELO, the ten players with the best positions on the server in all closed weeks.
#[utoipa::path(get, path = "/api/v1/best", operation_id = "get_best_players", tag = "servers", params(BestParameters),
    responses((status = 200, description = "The best players.", body = BestPlayersRow), Cached, NotFound, Removed))]
pub(super) async fn best(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let BestParameters { server } = query::parse(&uri)?;
    let url = query::server_url(&server)?;
    json_answer(&BestPlayersRow::from(&context.ask(requests::ServersBest { url }).await?), MAX_AGE_S)
}

/// Returns a server with its players, maps and series
#[utoipa::path(get, path = "/api/v1/servers/{url}", operation_id = "get_server", tag = "servers",
    params((
        "url" = inline(query::Url),
        Path,
        description = "The URL of the server, percent-encoded: `quake3%3A%2F%2F192.0.2.7%3A27960`.",
        example = "quake3://192.0.2.7:27960",
    )),
    responses((status = 200, description = "The server.", body = ServerDetailRow), Cached, NotFound, Removed))]
pub(super) async fn show(
    State(context): State<Arc<WebContext>>,
    Path(url): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    query::no_parameters(&uri)?;
    let detail = context.ask(requests::ServersShow { url: query::server_url(&url)? }).await?.public;
    json_answer_of_content(&ServerDetailRow::from(&detail), &detail.content(), MAX_AGE_S)
}
