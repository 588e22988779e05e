//! Atom feeds of closed weeks: the first of each ranking on a server, or in a game.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};

use super::boards::{self, window_text};
use super::format::{ranking as ranking_name, score, utc};
use super::layout::{XML_MAX_AGE_S, site_title, xml};
use super::names;
use super::server_table::{game_path, server_path};
use crate::api::requests;
use crate::model::scope::Scope;
use crate::view::board::WindowView;
use crate::web::context::WebContext;
use crate::web::problem::{Problem, ProblemKind};
use crate::web::query;
use crate::web::segment::Segment;
use crate::web::texts::language::Chosen;
use crate::web::texts::text;

const CONTENT_TYPE: &str = "application/atom+xml; charset=utf-8";

/// Closed weeks, the newest first.
const WEEKS: usize = 8;

/// How long a feed may be kept that lacks weeks, s.
const INCOMPLETE_MAX_AGE_S: u32 = 60;

/// Of each ranking.
const PLAYERS: u32 = 3;

/// The path of the feed of the page of a server or a game.
pub(super) fn path(page: &str) -> String {
    format!("/feeds{page}")
}

pub(super) async fn server(
    State(context): State<Arc<WebContext>>,
    Path(url): Path<String>,
) -> Result<Response, Problem> {
    let url = query::server_url(&url)?;
    let server = context.ask(requests::ServersShow { url: url.clone() }).await?.public.server;
    let name = names::plain_hostname(&server.hostname, &server.url);
    feed(&context, Scope::Server(url), &name, &server_path(&server.url)).await
}

pub(super) async fn game(
    State(context): State<Arc<WebContext>>,
    Path(Segment(name)): Path<Segment>,
) -> Result<Response, Problem> {
    let (shown, path) = (names::plain_game(&name, None), game_path(&name));
    feed(&context, Scope::Game(name), &shown, &path).await
}

async fn feed(context: &WebContext, scope: Scope, name: &str, page: &str) -> Result<Response, Problem> {
    // An unknown game or server is an error, though no week is closed.
    boards::all_tops(context, &scope, None, 1).await?;
    let windows = context.ask_shared(&requests::Windows { bytes: false }).await?;
    let closed = windows.iter().filter(|window| window.is_closed_week());
    let (mut entries, mut max_age_s) = (Vec::new(), XML_MAX_AGE_S);
    for window in closed.map(|window| &window.window).take(WEEKS) {
        match boards::all_tops(context, &scope, Some(&window.window), PLAYERS).await {
            Ok(boards) => entries.push((window, boards)),
            // The week was deleted meanwhile.
            Err(Problem { kind: ProblemKind::NotFound | ProblemKind::Conflict, .. }) => (),
            // The boards of older weeks are not in memory yet: now they are being built.
            Err(Problem { kind: ProblemKind::Busy, .. }) if !entries.is_empty() => {
                max_age_s = INCOMPLETE_MAX_AGE_S;
                break;
            }
            Err(problem) => return Err(problem),
        }
    }
    let site = format!("{}{}", context.public_url, Chosen::of_visitor().prefix());
    let url = format!("{site}{page}");
    let updated = entries.first().map_or_else(|| "1970-01-01T00:00:00Z".to_owned(), |(window, _)| ended(window));
    let feed = html! {
        feed xmlns="http://www.w3.org/2005/Atom" {
            title { (text!("feeds-title", name = name)) }
            id { (url) }
            link href=(url) {}
            link rel="self" href={ (site) (path(page)) } {}
            updated { (updated) }
            author { name { (site_title(&context.identity)) } }
            @for (window, boards) in &entries {
                @let week = format!("{url}?window={}", names::value(&window.window));
                entry {
                    title { (name) ", " (window_text(window)) }
                    id { (week) }
                    link href=(week) {}
                    updated { (ended(window)) }
                    // HTML as text, as Atom wants it.
                    content type="html" { (winners(boards).into_string()) }
                }
            }
        }
    };
    xml(CONTENT_TYPE, feed, max_age_s)
}

/// The end of a window, as in RFC 3339.
fn ended(window: &WindowView) -> String {
    utc(window.end_ms.unwrap_or(0), "%Y-%m-%dT%H:%M:%SZ")
}

fn winners(boards: &[boards::BoardPart]) -> Markup {
    html! {
        @for board in boards {
            @let ranking = board.ranking();
            p { (text!("feeds-ranking", ranking = ranking_name(ranking).0)) " " }
            ol { @for (name, value) in board.names_and_scores() { li { (name) ", " (score(ranking, value)) } } }
        }
    }
}
