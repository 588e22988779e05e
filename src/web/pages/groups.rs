//! Games and tags: the page with the list, and the page of a single game or tag.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use maud::{Markup, html};
use strum::VariantArray;

use super::boards::{self, BoardParameters};
use super::format::count;
use super::layout::{About, Page, PageResult};
use super::online;
use super::resolution::Resolution;
use super::server_table::{self, game_path, tag_path};
use super::{GROUPS, busiest_servers, feeds, most_played, names, overview};
use crate::api::ServerFilter;
use crate::model::scope::Scope;
use crate::model::shown_text;
use crate::view::{GroupOverview, OnlineSeriesView};
use crate::web::context::WebContext;
use crate::web::query;
use crate::web::segment::Segment;
use crate::web::texts::{rich_text, text};

const SERVERS: u32 = 5;

/// All games and tags with online servers.
pub(super) async fn list(State(context): State<Arc<WebContext>>) -> PageResult {
    let overview = overview(&context).await?;
    let body = html! {
        h1 { (text!("games-heading")) }
        (table(&text!("groups-games-caption"), &text!("game"), &overview.games, game_path, badge_and_name))
        @if !overview.tags.is_empty() {
        h2 { (text!("groups-tags")) }
        (table(&text!("groups-tags-caption"), &text!("tag"), &overview.tags, tag_path, names::plain))
        }
    };
    Ok(Page::new(text!("games-heading"), body))
}

fn badge_and_name(game: &str) -> Markup {
    html! { (names::game_badge(game, None)) " " (names::game(game)) }
}

fn table(
    caption: &str,
    title: &str,
    groups: &[GroupOverview],
    path: fn(&str) -> String,
    name: fn(&str) -> Markup,
) -> Markup {
    html! {
        table {
            caption { (caption) }
            thead { tr { th scope="col" { (title) } th scope="col" .n { (text!("servers-heading")) } th scope="col" .n { (text!("player-count")) } } }
            tbody {
                @for group in most_played(groups) {
                    tr {
                        td .name { a href=(path(&group.name)) { (name(&group.name)) } }
                        td .n { (count(group.servers_online)) }
                        td .n { (count(group.players_online)) }
                    }
                }
            }
        }
        @if groups.is_empty() { p { (text!("none")) } }
        @if groups.len() > GROUPS { p { (text!("groups-most-played", count = GROUPS, most = groups.len())) } }
    }
}

pub(super) async fn game(
    State(context): State<Arc<WebContext>>,
    Path(Segment(name)): Path<Segment>,
    uri: Uri,
) -> PageResult {
    let filter = ServerFilter { game: Some(name.clone()), ..ServerFilter::default() };
    group(&context, Scope::Game(name.clone()), &name, game_path(&name), filter, query::parse(&uri)?).await
}

pub(super) async fn tag(
    State(context): State<Arc<WebContext>>,
    Path(Segment(name)): Path<Segment>,
    uri: Uri,
) -> PageResult {
    let filter = ServerFilter { tag: Some(name.clone()), ..ServerFilter::default() };
    group(&context, Scope::Tag(name.clone()), &name, tag_path(&name), filter, query::parse(&uri)?).await
}

async fn group(
    context: &WebContext,
    scope: Scope,
    name: &str,
    path: String,
    filter: ServerFilter,
    parameters: BoardParameters,
) -> PageResult {
    let (game, tag, shown_name) = match &scope {
        Scope::Tag(_) => (None, Some(name), names::plain(name)),
        _ => (Some(name), None, names::game(name)),
    };
    let overview = overview(context).await?;
    let mut groups = if game.is_some() { &overview.games } else { &overview.tags }.iter();
    let of_overview = groups.find(|group| group.name == name);
    let series = online::series(context, game, tag).await?;
    let week_coverage = series.as_ref().and_then(|series| series.week_coverage);
    let boards = boards::section(context, &scope, &path, &parameters, week_coverage).await?;
    let list_query = match &scope {
        Scope::Tag(_) => format!("tag={}", names::value(name)),
        _ => format!("game={}", names::value(name)),
    };
    let servers = busiest_servers(context, filter, SERVERS, true).await?;
    let body = html! {
        h1 {
            @if game.is_some() { (rich_text!("groups-game", name = shown_name)) } @else { (rich_text!("groups-tag", name = shown_name)) }
        }
        (figures(of_overview, series.as_ref()))
        h2 { (text!("home-busiest")) }
        (server_table::table(&text!("home-busiest-caption"), &servers))
        p {
            a href={ "/servers?order=players&" (list_query) } {
                @if game.is_some() { (text!("groups-servers-of-game")) } @else { (text!("groups-servers-of-tag")) }
            }
        }
        (boards.markup)
        @if game.is_some() { p { a href=(feeds::path(&path)) { (text!("winners-feed")) } } }
        h2 { (text!("home-over-time")) }
        (online::charts(series.as_ref(), game, tag, Resolution::VARIANTS))
    };
    let plain_name = if game.is_some() { names::plain_game(name, None) } else { shown_text::shown_name(name) };
    let description = text!("groups-description", name = plain_name.as_str()).into_owned();
    let feed = game.map(|_| feeds::path(&path));
    let query = boards.query.clone();
    let about = About { description: Some(description), path: Some(path), query, feed, ..About::default() };
    Ok(Page::new(boards.page_title(&plain_name), body).with(about))
}

/// `group`: absent without servers online.
fn figures(group: Option<&GroupOverview>, series: Option<&OnlineSeriesView>) -> Markup {
    let known = series.into_iter().flat_map(|series| series.ten_minutes.players.iter().flatten());
    let peak = known.copied().reduce(f64::max);
    html! {
        dl .figures {
            div { dt { (text!("home-players-online")) } dd { (count(group.map_or(0, |group| group.players_online))) } }
            div { dt { (text!("home-servers-online")) } dd { (count(group.map_or(0, |group| group.servers_online))) } }
            @if let Some(peak) = peak { div { dt { (text!("groups-peak")) } dd { (count(peak.round() as u64)) } } }
        }
    }
}
