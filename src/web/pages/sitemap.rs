//! For search engines: which pages there are, and which are not worth a visit.
//!
//! The map has parts: `site.xml` (games, tags and most played maps), `servers.xml` (those online), and the best players of
//! each game.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::html;
use strum::IntoEnumIterator;

use super::layout::{XML_MAX_AGE_S, xml};
use super::server_table::{game_path, map_path, server_path, tag_path};
use super::{boards, busiest_servers, most_played, names, overview};
use crate::api::{ServerFilter, requests};
use crate::model::Ranking;
use crate::model::scope::Scope;
use crate::web::answer::answer;
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::segment::Segment;
use crate::web::texts::Language;

/// Maps, servers, and players of a game. A sitemap may have 50,000 addresses; these are read in some milliseconds.
const MAPS: u32 = 1_000;
const SERVERS: u32 = 10_000;
const PLAYERS: u32 = 1_000;

const CONTENT_TYPE: &str = "application/xml; charset=utf-8";

/// Pages that are always there.
const FIXED: [&str; 6] = ["/", "/games", "/maps", "/about", "/about/accuracy", "/api"];

/// The rest of the name of a part with players, after that of the game.
const OF_PLAYERS: &str = ".players.xml";

pub(super) async fn robots(State(context): State<Arc<WebContext>>) -> Result<Response, Problem> {
    let searches: String =
        Language::iter().map(|language| format!("Disallow: /{}/search\n", language.code())).collect();
    let mut text = format!(
        "# Results of searches, and what is for programs.\nUser-agent: *\nDisallow: /search\n{searches}\
         Disallow: /api/v1/\nDisallow: /metrics\n"
    );
    if context.has_public_url {
        text += &format!("\nSitemap: {}/sitemap.xml\n", context.public_url);
    }
    answer("text/plain; charset=utf-8", text.into_bytes(), XML_MAX_AGE_S)
}

/// The list of the parts.
pub(super) async fn index(State(context): State<Arc<WebContext>>) -> Result<Response, Problem> {
    let overview = overview(&context).await?;
    let of_games =
        most_played(&overview.games).iter().map(|game| format!("{}{OF_PLAYERS}", names::segment(&game.name)));
    let parts = ["site.xml", "servers.xml"].map(str::to_owned).into_iter().chain(of_games);
    xml(
        CONTENT_TYPE,
        html! {
            sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" {
                @for part in parts { sitemap { loc { (context.public_url) "/sitemap/" (part) } } }
            }
        },
        XML_MAX_AGE_S,
    )
}

pub(super) async fn part(
    State(context): State<Arc<WebContext>>,
    Path(Segment(name)): Path<Segment>,
) -> Result<Response, Problem> {
    let paths = match &*name {
        "site.xml" => {
            let overview = overview(&context).await?;
            let maps = context.ask(requests::Maps { text: None, count: MAPS }).await?;
            let games = most_played(&overview.games).iter().map(|game| game_path(&game.name));
            let tags = most_played(&overview.tags).iter().map(|tag| tag_path(&tag.name));
            let maps = maps.iter().map(|map| map_path(&map.map));
            FIXED.map(str::to_owned).into_iter().chain(games).chain(tags).chain(maps).collect()
        }
        "servers.xml" => {
            let servers = busiest_servers(&context, ServerFilter::default(), SERVERS, false).await?;
            servers.iter().map(|server| server_path(&server.public.url)).collect::<Vec<_>>()
        }
        name => {
            let game = name.strip_suffix(OF_PLAYERS);
            let game = game.ok_or_else(|| Problem::not_found(format!("the sitemap has no part {name}")))?;
            let board = boards::top(&context, Scope::Game(game.to_owned()), None, Ranking::Time, PLAYERS).await?;
            board.player_keys().map(|key| format!("/players/{key}")).collect()
        }
    };
    xml(
        CONTENT_TYPE,
        html! {
            urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" {
                @for path in paths { url { loc { (context.public_url) (path) } } }
            }
        },
        XML_MAX_AGE_S,
    )
}
