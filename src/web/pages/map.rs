//! The page of a map: the servers that play it now.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use maud::html;

use super::layout::{Page, PageResult};
use super::{busiest_servers, names, server_table};
use crate::api::ServerFilter;
use crate::clock::system_ms;
use crate::web::context::WebContext;
use crate::web::query;

const SERVERS: u32 = 50;

pub(super) async fn page(State(context): State<Arc<WebContext>>, Path(map): Path<String>, uri: Uri) -> PageResult {
    query::no_parameters(&uri)?;
    let filter = ServerFilter { map: Some(map.clone()), ..ServerFilter::default() };
    let servers = busiest_servers(&context, filter, SERVERS).await?;
    let body = html! {
        h1 { "Map " (names::plain(&map)) }
        h2 { "Servers that play it now" }
        (server_table::table("Servers with this map, most players first", &servers, system_ms()))
    };
    Ok(Page::new(format!("Map {map}"), body))
}
