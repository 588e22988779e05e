//! The website: pages for people, rendered here, complete without scripts. A page sends the same
//! requests to the engine as the API; it computes nothing but how to show the answers.
//!
//! - [`home`], [`servers`], [`server`], [`player`], [`compare`] (two players), [`groups`] (games and tags), [`map`] (and all maps),
//!   [`search`], [`about`], [`accuracy`], [`api`], [`problems`]: one page each.
//! - [`boards`]: the boards of a scope; [`online`]: players over time, in each [`resolution`];
//!   [`sessions`]: when somebody played; [`availability`]: when a server was there; [`server_table`]: lists of servers; [`banners`]: embed codes. They are parts of several pages.
//! - [`sitemap`]: for search engines. - [`feeds`]: for readers of news. - [`embed`]: for frames of other sites.
//! - [`layout`]: the frame of all pages, and errors as pages, with the status and the headers that programs get, too.
//! - [`names`], [`format`], [`chart`], [`hours_of_week`]: names, numbers and series as HTML and SVG.

mod about;
mod accuracy;
mod api;
mod availability;
mod banners;
mod boards;
pub(super) mod chart;
mod compare;
mod embed;
mod feeds;
pub(super) mod format;
mod groups;
mod home;
mod hours_of_week;
pub(super) mod join;
pub(super) mod layout;
mod map;
pub(super) mod names;
mod online;
mod player;
mod problems;
mod resolution;
mod search;
mod server;
mod server_table;
mod servers;
mod sessions;
mod sitemap;

use std::sync::Arc;

pub use self::server_table::{game_path, server_path, tag_path};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::Response;
use axum::routing::get;

use super::answer::{STATIC_MAX_AGE_S, answer};
use super::context::WebContext;
use super::problem::Problem;
use crate::api::{ServerFilter, requests};
use crate::model::server_page::ServerOrder;
use crate::view::{GroupOverview, Overview, ServerSummary};

/// Most requests to find the first matching servers. Each request examines 10,000 servers, which
/// takes the engine some 2 ms.
const SERVER_REQUESTS_MAX: usize = 10;

pub(super) fn routes() -> Router<Arc<WebContext>> {
    Router::new()
        .route("/", get(home::page))
        .route("/servers", get(servers::page))
        // The parameter is the rest of the path, because the URL of a server contains slashes.
        .route("/servers/{*url}", get(server::page))
        .route("/series", get(online::page))
        .route("/series/{*url}", get(server::series_page))
        .route("/players/{key}", get(player::page))
        .route("/compare", get(compare::page))
        .route("/games", get(groups::list))
        .route("/games/{name}", get(groups::game))
        .route("/tags/{name}", get(groups::tag))
        .route("/maps", get(map::list))
        .route("/maps/{name}", get(map::page))
        .route("/search", get(search::page))
        .route("/suggest", get(search::suggestions))
        .route("/about", get(about::page))
        .route("/about/accuracy", get(accuracy::page))
        .route("/problems/{name}", get(problems::page))
        .route("/api", get(api::page))
        .route("/style.css", get(style))
        .route("/icon.svg", get(icon))
        .route("/logo", get(logo))
        .route("/feeds/servers/{*url}", get(feeds::server))
        .route("/feeds/games/{name}", get(feeds::game))
        .route("/embed/servers/{*url}", get(embed::server))
        .route("/embed/boards/servers/{*url}", get(embed::board_of_server))
        .route("/embed/boards/games/{name}", get(embed::board_of_game))
        .route("/embed/players/{key}", get(embed::player))
        .route("/robots.txt", get(sitemap::robots))
        .route("/sitemap.xml", get(sitemap::index))
        .route("/sitemap/{part}", get(sitemap::part))
}

async fn style(State(context): State<Arc<WebContext>>) -> Result<Response, Problem> {
    answer("text/css; charset=utf-8", layout::style_sheet(&context.identity).into_bytes(), STATIC_MAX_AGE_S)
}

async fn logo(State(context): State<Arc<WebContext>>) -> Result<Response, Problem> {
    let logo = context.identity.logo.as_ref().ok_or_else(|| Problem::not_found("this site has no logo"))?;
    let mut response = answer(logo.content_type, logo.bytes.clone(), STATIC_MAX_AGE_S)?;
    // An SVG that is opened as a page runs nothing.
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'"));
    Ok(response)
}

/// A bar chart.
const ICON: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#1f6feb" d="M1 9h4v6H1zM6 1h4v14H6zM11 6h4v9h-4z"/></svg>"##;

async fn icon() -> Result<Response, Problem> {
    answer("image/svg+xml", ICON.as_bytes().to_vec(), STATIC_MAX_AGE_S)
}

async fn overview(context: &WebContext) -> Result<Arc<Overview>, Problem> {
    context.ask_shared(&requests::Overview {}).await
}

/// Games or tags that a page lists: a server may call its game as it likes, so there may be as many as servers.
const GROUPS: usize = 300;

/// The first of a list: those with most players.
fn most_played(groups: &[GroupOverview]) -> &[GroupOverview] {
    &groups[..groups.len().min(GROUPS)]
}

/// Servers online that match, those with most players first. Beyond [`SERVER_REQUESTS_MAX`] times
/// 10,000 servers, no further ones are looked at. `recent`: with the players of the last 25 hours.
async fn busiest_servers(
    context: &WebContext,
    filter: ServerFilter,
    most: u32,
    recent: bool,
) -> Result<Vec<ServerSummary>, Problem> {
    let (mut servers, mut after) = (Vec::new(), None);
    for _ in 0..SERVER_REQUESTS_MAX {
        let (filter, count) = (filter.clone(), most - servers.len() as u32);
        let request = requests::ServersPage { filter, after, count, order: ServerOrder::Players, recent };
        let page = context.ask(request).await?;
        servers.extend(page.servers);
        after = page.next;
        if after.is_none() || servers.len() >= most as usize {
            break;
        }
    }
    Ok(servers)
}
