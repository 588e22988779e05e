//! Search for servers, players, games and maps.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use maud::html;
use serde::Deserialize;

use super::layout::{Page, PageResult};
use super::server_table::{self, game_path, map_path};
use super::{names, overview, server_rows};
use crate::api::{Request, Row, ServerFilter};
use crate::clock::system_ms;
use crate::limits::NAME_BYTES_MAX;
use crate::model::server_page::ServerOrder;
use crate::web::context::WebContext;
use crate::web::problem::{Problem, ProblemKind};
use crate::web::query;

const SERVERS: u32 = 50;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    #[serde(default)]
    q: String,
}

pub(super) async fn page(State(context): State<Arc<WebContext>>, uri: Uri) -> PageResult {
    let Parameters { q } = query::parse(&uri)?;
    let text = q.trim();
    if text.len() > NAME_BYTES_MAX {
        return Err(Problem::bad_request(format!("the text has {} bytes; at most {NAME_BYTES_MAX}", text.len())).into());
    }
    if text.is_empty() {
        return Ok(Page::new(
            "Search",
            html! { h1 { "Search" } p { "Enter the name of a server, player, game or map." } },
        ));
    }
    let players = match context.ask(Request::Player { name: text.to_owned() }).await {
        Ok(rows) => rows,
        Err(problem) if problem.kind == ProblemKind::NotFound => Vec::new(),
        Err(problem) => return Err(problem.into()),
    };
    let filter = ServerFilter { text: Some(text.to_owned()), ..ServerFilter::default() };
    let request =
        Request::ServersPage { filter, after: None, count: SERVERS, order: ServerOrder::Players, recent: true };
    let (servers, _) = server_rows(context.ask(request).await?)?;
    let overview = overview(&context).await?;
    let lower = text.to_lowercase();
    let games = overview.games.iter().filter(|game| game.name.to_lowercase().contains(&lower));
    let games: Vec<&str> = games.map(|game| game.name.as_str()).collect();
    let mut maps: Vec<&str> = servers.iter().filter_map(|server| server.map.as_deref()).collect();
    maps.retain(|map| map.to_lowercase().contains(&lower));
    maps.sort_unstable();
    maps.dedup();
    let body = html! {
        h1 { "Search for " (names::plain(text)) }
        h2 { "Players with this name" }
        ul {
            @for row in &players {
                @if let Row::Player(player) = row {
                    li { a href={ "/players/" (player.player_key) } { (names::player(&player.display, &player.name)) } ", " (names::plain(&player.game)) }
                }
            }
        }
        @if players.is_empty() { p { "None." } }
        h2 { "Servers online" }
        (server_table::table("Servers whose name, address or map contains the text", &servers, system_ms()))
        h2 { "Games and maps" }
        ul {
            @for game in &games { li { a href=(game_path(game)) { (names::plain(game)) } ", game" } }
            @for map in &maps { li { a href=(map_path(map)) { (names::plain(map)) } ", map" } }
        }
        @if games.is_empty() && maps.is_empty() { p { "None." } }
    };
    Ok(Page::new("Search", body))
}
