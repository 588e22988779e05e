//! Search for servers, players, games and maps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use futures_util::future::join_all;
use maud::{Markup, html};
use serde::Deserialize;
use tokio::time::timeout;

use super::format::{ago, count, ranking, time};
use super::layout::{About, Page, PageResult, fragment};
use super::server_table::{self, game_path, map_path, server_path};
use super::{busiest_servers, names, overview};
use crate::api::{ServerFilter, requests};
use crate::games;
use crate::model::Ranking;
use crate::model::scope::Scope;
use crate::model::search_text::fold;
use crate::view::board::{BoardQuery, BoardRow, BoardSelector, PlayerSelector};
use crate::view::session::SessionView;
use crate::view::{GroupOverview, Overview, PlayerNameView, ServerSummary};
use crate::web::context::WebContext;
use crate::web::problem::{Problem, ProblemKind};
use crate::web::query::{self, Name};
use crate::web::texts::{rich_text, text};

const SERVERS: u32 = 50;

const MAPS: u32 = 50;

const PLAYERS: u32 = 100;

/// Players whose server and position are shown.
const DETAILED: usize = 10;

/// The ranking whose positions are shown, and how long the page waits for a board that is not in memory.
const RANKED_BY: Ranking = Ranking::Clq1;
const BOARD_WAIT_MAX: Duration = Duration::from_millis(100);

#[derive(Debug, Deserialize)]
struct Parameters {
    #[serde(default)]
    q: Name,
}

pub(super) async fn page(State(context): State<Arc<WebContext>>, uri: Uri) -> PageResult {
    let Parameters { q: Name(q) } = query::parse(&uri)?;
    let text = q.trim();
    if text.is_empty() {
        let body = html! { h1 { (text!("search-title")) } p { (text!("search-enter")) } };
        return Ok(Page::new(text!("search-title"), body));
    }
    let mut players = players(&context, text, PLAYERS).await?;
    let (sessions, positions) = (last_sessions(&context, &players).await, positions(&context, &players).await);
    let is_playing = |player: &PlayerNameView| sessions.get(&player.player_key).is_some_and(|session| session.open);
    players.sort_by_key(|player| !is_playing(player));
    let servers = servers(&context, text, SERVERS).await?;
    let games = games(&*overview(&context).await?, text);
    let maps = maps(&context, text, &servers).await?;
    let body = html! {
        h1 { (rich_text!("search-for", text = names::plain(text))) }
        @if players.is_empty() && servers.is_empty() && games.is_empty() && maps.is_empty() {
            p role="status" { (rich_text!("search-nothing", text = names::plain(text))) }
        }
        @if !players.is_empty() {
            h2 { (text!("players-heading")) }
            (player_table(&players, &sessions, &positions))
            @if players.len() >= PLAYERS as usize { p { (text!("search-more-players")) } }
        }
        @if !servers.is_empty() {
            h2 { (text!("servers-heading")) }
            (server_table::table(&text!("search-servers-caption"), &servers))
            @if servers.len() >= SERVERS as usize { p { (text!("search-more-servers")) } }
        }
        @if !games.is_empty() || !maps.is_empty() {
            h2 { (text!("search-games-and-maps")) }
            ul {
                @for game in &games { li { (rich_text!("search-game", name = html! { a href=(game_path(game)) { (names::game(game)) } })) } }
                @for map in &maps { li { (rich_text!("search-map", name = html! { a href=(map_path(map)) { (names::plain(map)) } })) } }
            }
        }
    };
    Ok(Page::new(text!("search-title"), body).with(About { is_hidden: true, ..About::default() }))
}

/// `sessions` and `positions` are those of the first players.
fn player_table(
    players: &[PlayerNameView],
    sessions: &BTreeMap<u32, SessionView>,
    positions: &BTreeMap<u32, u64>,
) -> Markup {
    let caption = text!("search-players-caption");
    html! {
        div .scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead {
                    tr {
                        th scope="col" { (text!("player")) } th scope="col" { (text!("game")) }
                        th scope="col" .n { (text!("search-rank", ranking = ranking(RANKED_BY).0)) }
                        th scope="col" { (text!("last-seen")) } th scope="col" { (text!("server")) }
                    }
                }
                tbody {
                    @for player in players {
                        @let session = sessions.get(&player.player_key);
                        tr {
                            td .name { a href={ "/players/" (player.player_key) } { (names::player(&player.display, &player.name)) } }
                            td { (names::game_badge(&player.game, None)) }
                            td .n { @if let Some(position) = positions.get(&player.player_key) { (count(*position)) } }
                            td {
                                @match (session, player.last_seen_ms) {
                                    (Some(session), _) if session.open => strong { (text!("now")) },
                                    (Some(session), _) => (ago(session.end_ms)),
                                    (None, Some(at_ms)) => (ago(at_ms)),
                                    (None, None) => {},
                                }
                            }
                            td .name { @if let Some(session) = session { a href=(server_path(&session.server)) { (names::hostname(&session.hostname, &session.server)) } } }
                        }
                    }
                }
            }
        }
    }
}

/// The last session of each of the first players.
async fn last_sessions(context: &WebContext, players: &[PlayerNameView]) -> BTreeMap<u32, SessionView> {
    let last = players.iter().take(DETAILED).map(async |player| {
        let player = PlayerSelector::Key(player.player_key);
        context.ask(requests::PlayerSessions { player, count: 1 }).await.ok()?.into_iter().next()
    });
    let sessions = join_all(last).await.into_iter().flatten();
    sessions.map(|session| (session.player_key, session)).collect()
}

/// The positions of the first players on the boards of their games in the running week, as far as these are in memory.
async fn positions(context: &WebContext, players: &[PlayerNameView]) -> BTreeMap<u32, u64> {
    let mut by_game: BTreeMap<&str, Vec<PlayerSelector>> = BTreeMap::new();
    for player in players.iter().take(DETAILED) {
        by_game.entry(&player.game).or_default().push(PlayerSelector::Key(player.player_key));
    }
    let found = by_game.into_iter().map(async |(game, players)| {
        let scope = Scope::Game(game.to_owned());
        let board = BoardSelector { scope, ranking: RANKED_BY, window: None, at_ms: None };
        let asked = context.ask(requests::Board { board, query: BoardQuery::Positions { players } });
        Some(timeout(BOARD_WAIT_MAX, asked).await.ok()?.ok()?.rows)
    });
    let rows = join_all(found).await.into_iter().flatten().flatten();
    let position = |row| match row {
        BoardRow::Entry(entry) => Some((entry.player_key, entry.at.position)),
        _ => None,
    };
    rows.filter_map(position).collect()
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
    let of_game = |game: &String| (game_path(game), rich_text!("search-game", name = names::game(game)));
    let of_games = games.iter().take(SUGGESTIONS as usize).map(of_game);
    let of_servers = servers.iter().map(|ServerSummary { public: server, .. }| {
        let players = html! { (server_table::players(server)) "/" (count(server.slots)) };
        let now = match &server.map {
            Some(map) => rich_text!("search-players-on", players = players, map = names::plain(map)),
            None => players,
        };
        let text = html! { (names::hostname(&server.hostname, &server.url)) " " small .soft { (now) } };
        (server_path(&server.url), text)
    });
    let of_players = players.iter().map(|player| {
        let text = html! {
            (names::player(&player.display, &player.name)) " " (names::game_badge(&player.game, None)) " "
            @if let Some(at_ms) = player.last_seen_ms { small .soft { (rich_text!("search-last-seen", time = time(at_ms))) } }
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
    let mut players = context.ask(requests::PlayerNamed { name: text.to_owned() }).await?;
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
