//! Search for servers, players, games and maps.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use maud::html;
use serde::Deserialize;

use super::format::{count, time};
use super::layout::{About, Page, PageResult, fragment};
use super::server_table::{self, game_path, map_path, server_path};
use super::{busiest_servers, names, overview};
use crate::api::{ServerFilter, requests};
use crate::games;
use crate::model::search_text::fold;
use crate::model::view::{GroupOverview, Overview, PlayerNameView, PlayerView, ServerSummary};
use crate::web::context::WebContext;
use crate::web::problem::{Problem, ProblemKind};
use crate::web::query::{self, Name};

const SERVERS: u32 = 50;

const MAPS: u32 = 50;

const PLAYERS: u32 = 100;

#[derive(Debug, Deserialize)]
struct Parameters {
    #[serde(default)]
    q: Name,
}

pub(super) async fn page(State(context): State<Arc<WebContext>>, uri: Uri) -> PageResult {
    let Parameters { q: Name(q) } = query::parse(&uri)?;
    let text = q.trim();
    if text.is_empty() {
        return Ok(Page::new(
            "Search",
            html! { h1 { "Search" } p { "Enter the name of a server, player, game or map." } },
        ));
    }
    let players = players(&context, text, PLAYERS).await?;
    let servers = servers(&context, text, SERVERS).await?;
    let games = games(&*overview(&context).await?, text);
    let maps = maps(&context, text, &servers).await?;
    let body = html! {
        h1 { "Search for " (names::plain(text)) }
        h2 { "Players" }
        ul .names {
            @for player in &players {
                li {
                    a href={ "/players/" (player.player_key) } { (names::player(&player.display, &player.name)) } ", " (names::game(&player.game))
                    @if let Some(last_seen_ms) = player.last_seen_ms { small .soft { ", last seen " (time(last_seen_ms)) } }
                }
            }
        }
        @if players.is_empty() { p { "None." } }
        @if players.len() >= PLAYERS as usize { p { "There are more. A longer text finds fewer." } }
        h2 { "Servers" }
        (server_table::table("Servers whose name or address fits the text", &servers))
        @if servers.len() >= SERVERS as usize { p { "There may be more. A longer text finds fewer." } }
        h2 { "Games and maps" }
        ul {
            @for game in &games { li { a href=(game_path(game)) { (names::game(game)) } ", game" } }
            @for map in &maps { li { a href=(map_path(map)) { (names::plain(map)) } ", map" } }
        }
        @if games.is_empty() && maps.is_empty() { p { "None." } }
    };
    Ok(Page::new("Search", body).with(About { is_hidden: true, ..About::default() }))
}

/// People write `css`, `cs:s` and `cs s`.
fn joined(folded: &str) -> String {
    folded.replace(' ', "")
}

/// Of each kind, while a visitor types.
const SUGGESTIONS: u32 = 5;

/// What a text may mean, as the options of a list: the script of the site puts them below the form.
pub(super) async fn suggestions(State(context): State<Arc<WebContext>>, uri: Uri) -> Result<Response, Problem> {
    let Parameters { q: Name(q) } = query::parse(&uri)?;
    let text = q.trim();
    let (players, servers, games) = match text.is_empty() {
        true => Default::default(),
        false => (
            players(&context, text, SUGGESTIONS).await?,
            servers(&context, text, SUGGESTIONS).await?,
            games(&*overview(&context).await?, text),
        ),
    };
    let of_games =
        games.iter().take(SUGGESTIONS as usize).map(|game| (game_path(game), html! { (names::game(game)) ", game" }));
    let of_servers = servers.iter().map(|ServerSummary { public: server, .. }| {
        let text = html! {
            (names::hostname(&server.hostname, &server.url)) " "
            small .soft { (server_table::players(server)) "/" (count(server.slots)) @if let Some(map) = &server.map { " on " (names::plain(map)) } }
        };
        (server_path(&server.url), text)
    });
    let of_players = players.iter().map(|player| {
        let text = html! {
            (names::player(&player.display, &player.name)) " " (names::game_badge(&player.game, None)) " "
            @if let Some(last_seen_ms) = player.last_seen_ms { small .soft { "last seen " (time(last_seen_ms)) } }
        };
        (format!("/players/{}", player.player_key), text)
    });
    let options = of_games.chain(of_servers).chain(of_players).enumerate();
    fragment(html! {
        ul { @for (n, (path, text)) in options { li role="option" id={ "suggestion-" (n) } data-href=(path) { (text) } } }
    })
}

/// Names of games with servers online that fit a text.
fn games(overview: &Overview, text: &str) -> Vec<String> {
    let folded = fold(text);
    let is_found = |game: &&GroupOverview| {
        let label = games::label(None, &game.name);
        let is_short = label.as_ref().is_some_and(|label| joined(&fold(&label.short)) == joined(&folded));
        let names = [Some(game.name.clone()), label.map(|label| label.name)];
        is_short || names.into_iter().flatten().any(|name| fold(&name).contains(&folded))
    };
    overview.games.iter().filter(is_found).map(|game| game.name.clone()).collect()
}

/// Servers whose name or address contains the string, those with most players first.
async fn servers(context: &WebContext, text: &str, count: u32) -> Result<Vec<ServerSummary>, Problem> {
    match context.ask(requests::ServersSearch { text: text.to_owned(), count }).await {
        // Searches are off, so only online servers are examined.
        Err(problem) if problem.kind == ProblemKind::Conflict => {
            let filter = ServerFilter { text: Some(text.to_owned()), ..ServerFilter::default() };
            busiest_servers(context, filter, count, true).await
        }
        found => found,
    }
}

/// Maps that were played in the kept weeks, and maps of these servers. The list of played maps is
/// up to ten minutes old.
async fn maps(context: &WebContext, text: &str, servers: &[ServerSummary]) -> Result<Vec<String>, Problem> {
    let found = context.ask(requests::Maps { text: Some(text.to_owned()), count: MAPS }).await?;
    let mut maps: Vec<String> = found.into_iter().map(|map| map.map).collect();
    let lower = text.to_lowercase();
    for map in servers.iter().filter_map(|server| server.public.map.as_ref()) {
        if map.to_lowercase().contains(&lower) && !maps.contains(map) {
            maps.push(map.clone());
        }
    }
    Ok(maps)
}

/// Players with this name, then those whose names begin with it or contain it.
pub(super) async fn players(context: &WebContext, text: &str, count: u32) -> Result<Vec<PlayerNameView>, Problem> {
    let mut players = Vec::new();
    let name_of = |player: PlayerView| {
        let PlayerView { player_key, game, name, display, last_seen_ms, .. } = player;
        PlayerNameView { player_key, game, name, display, last_seen_ms }
    };
    match context.ask(requests::Player { name: text.to_owned() }).await {
        Ok(named) => players.extend(named.into_iter().map(name_of)),
        Err(problem) if problem.kind == ProblemKind::NotFound => (),
        Err(problem) => return Err(problem),
    }
    match context.ask(requests::PlayerSearch { text: text.to_owned(), count }).await {
        Ok(found) => {
            for player in found {
                if players.iter().all(|known: &PlayerNameView| known.player_key != player.player_key) {
                    players.push(player);
                }
            }
        }
        // Searches for parts of names are off.
        Err(problem) if problem.kind == ProblemKind::Conflict => (),
        Err(problem) => return Err(problem),
    }
    players.truncate(count as usize);
    Ok(players)
}
