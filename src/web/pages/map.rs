//! The page of a map: the servers that play it now.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use maud::html;

use super::boards::no_parameters;
use super::layout::{Page, PageResult};
use super::{names, server_rows, server_table};
use crate::api::{Request, ServerFilter};
use crate::clock::system_ms;
use crate::model::server_page::ServerOrder;
use crate::web::context::WebContext;

const SERVERS: u32 = 50;

pub(super) async fn page(State(context): State<Arc<WebContext>>, Path(map): Path<String>, uri: Uri) -> PageResult {
    no_parameters(&uri)?;
    let filter = ServerFilter { map: Some(map.clone()), ..ServerFilter::default() };
    let request =
        Request::ServersPage { filter, after: None, count: SERVERS, order: ServerOrder::Players, recent: true };
    let (servers, _) = server_rows(context.ask(request).await?)?;
    let body = html! {
        h1 { "Map " (names::plain(&map)) }
        h2 { "Servers that play it now" }
        (server_table::table("Servers with this map, most players first", &servers, system_ms()))
    };
    Ok(Page::new(format!("Map {map}"), body))
}
