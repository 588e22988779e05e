//! Pages that other sites show in a frame: a server, a board or a player. They have no header, and their links open a page
//! of their own.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use maud::{Markup, html};
use serde::Deserialize;

use super::boards;
use super::format::{ranking as ranking_name, time, utc};
use super::layout::{About, Page, PageResult};
use super::server_table::{game_path, map_path, server_path};
use super::{names, server};
use crate::api::requests;
use crate::model::Ranking;
use crate::model::scope::Scope;
use crate::web::context::WebContext;
use crate::web::query;
use crate::web::segment::Segment;
use crate::web::texts::{rich_text, text};

const ENTRIES: u32 = 10;

fn embedded(title: String, body: Markup) -> Page {
    Page::new(title, body).with(About { is_embedded: true, is_hidden: true, ..About::default() })
}

pub(super) async fn server(State(context): State<Arc<WebContext>>, Path(url): Path<String>) -> PageResult {
    let url = query::server_url(&url)?;
    let detail = context.ask(requests::ServersShow { url: url.clone() }).await?.public;
    let summary = &detail.server;
    let body = html! {
        h1 { a href=(server_path(&summary.url)) { (names::hostname(&summary.hostname, &summary.url)) } }
        p data-now=(server::now(summary)) {
            @match &summary.map {
                _ if !summary.online => (text!("offline")),
                Some(map) => {
                    @let map = html! { a href=(map_path(map)) { (names::plain(map)) } };
                    (rich_text!("embed-players-on-map", count = summary.players, most = summary.slots, map = map))
                },
                None => (text!("embed-players", count = summary.players, most = summary.slots)),
            }
        }
        (server::players(&detail.players_listed))
    };
    Ok(embedded(names::plain_hostname(&summary.hostname, &summary.url), body))
}

#[derive(Debug, Deserialize)]
struct Parameters {
    ranking: Option<String>,
    window: Option<String>,
}

/// The best players of a server.
pub(super) async fn board_of_server(
    State(context): State<Arc<WebContext>>,
    Path(url): Path<String>,
    uri: Uri,
) -> PageResult {
    let url = query::server_url(&url)?;
    let server = context.ask(requests::ServersShow { url: url.clone() }).await?.public.server;
    let name = names::plain_hostname(&server.hostname, &server.url);
    board(&context, Scope::Server(url), name, server_path(&server.url), &uri).await
}

/// The best players of a game.
pub(super) async fn board_of_game(
    State(context): State<Arc<WebContext>>,
    Path(Segment(game)): Path<Segment>,
    uri: Uri,
) -> PageResult {
    let (name, path) = (names::plain_game(&game, None), game_path(&game));
    board(&context, Scope::Game(game), name, path, &uri).await
}

async fn board(context: &WebContext, scope: Scope, name: String, page: String, uri: &Uri) -> PageResult {
    let Parameters { ranking, window } = query::parse(uri)?;
    let ranking = ranking.as_deref().map_or(Ok(Ranking::Clq1), query::ranking)?;
    let board = boards::top(context, scope, window.as_deref(), ranking, ENTRIES).await?;
    let title = format!("{}, {}", ranking_name(ranking).0, board.window_text());
    let body = html! {
        h1 { a href={ (page) "?ranking=" (ranking.name()) "#boards" } { (name) } }
        p .soft { (title) }
        (board.table(&Default::default()))
    };
    Ok(embedded(text!("title-and-name", title = title, name = name).into_owned(), body))
}

pub(super) async fn player(State(context): State<Arc<WebContext>>, Path(key): Path<String>) -> PageResult {
    let player = context.ask(requests::PlayerShow { player_key: query::player_key(&key)?, skip: 0 }).await?;
    let windows = context.ask_shared(&requests::Windows { bytes: false }).await?;
    // A line for favourites.
    let now = match (player.online_on.is_empty(), player.last_seen_ms) {
        (false, _) => text!("embed-playing-now"),
        (true, Some(at_ms)) => text!("embed-last-seen", day = utc(at_ms, "%Y-%m-%d")),
        (true, None) => "".into(),
    };
    let game = names::game(&player.game);
    let body = html! {
        h1 { a href={ "/players/" (player.player_key) } { (names::player(&player.display, &player.name)) } }
        p data-now=(now) {
            @if let Some(url) = player.online_on.first() {
                @let server = html! { a href=(server_path(url)) { (super::player::server_name(&player, url)) } };
                (rich_text!("embed-playing-on", game = game, server = server))
            } @else if let Some(at_ms) = player.last_seen_ms {
                (rich_text!("embed-game-last-seen", game = game, time = time(at_ms)))
            } @else { (rich_text!("embed-never-seen", game = game)) }
        }
        (super::player::best_positions(&player, &windows))
    };
    Ok(embedded(names::plain_player(&player.display, &player.name), body))
}
