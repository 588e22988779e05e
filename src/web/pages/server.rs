//! The page of a server, and its series as tables.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use maud::{Markup, html};
use serde::Deserialize;

use super::boards::{self, BoardParameters};
use super::chart::{High, Series, chart, rounded};
use super::format::{count, ranking as ranking_name, short_time, signed, time};
use super::hours_of_week::HoursOfWeek;
use super::join::{Join, join};
use super::layout::{About, Page, PageResult};
use super::names;
use super::resolution::Resolution;
use super::server_table::{self, game_path, map_path, seen, server_path};
use super::sessions;
use super::{availability, banners, feeds};
use crate::api::requests;
use crate::geo;
use crate::model::scope::Scope;
use crate::model::shown_text::shown_name;
use crate::model::url::ServerUrl;
use crate::model::view::history::{BestOfRanking, BestPlayer, BestPlayers};
use crate::model::view::{ListedPlayer, PublicServer, PublicServerDetail, SeriesView};
use crate::web::banners::{BannerFormat, BannerSize, banner_path};
use crate::web::context::WebContext;
use crate::web::query;

pub(super) async fn page(State(context): State<Arc<WebContext>>, Path(url): Path<String>, uri: Uri) -> PageResult {
    let parameters: BoardParameters = query::parse(&uri)?;
    let url = query::server_url(&url)?;
    let detail = context.ask(requests::ServersShow { url: url.clone() }).await?.public;
    let best = context.ask(requests::ServersBest { url: url.clone() }).await?;
    let (last_s, count) = (Some(sessions::ON_SERVER_S), sessions::ON_SERVER_MAX);
    let sessions = context.ask(requests::ServersSessions { url: url.clone(), last_s, count }).await?;
    let path = server_path(url.as_str());
    let boards =
        boards::section(&context, &Scope::Server(url.clone()), &path, &parameters, Some(detail.coverage)).await?;
    let summary = &detail.server;
    let body = html! {
        h1 data-favourite=(path) { (names::hostname(&summary.hostname, &summary.url)) }
        div #figures data-part { (figures(&url, &detail)) }
        @if summary.greylisted { p { "This server is excluded from rankings." } }
        h2 { "Players now" }
        div #players data-part { (players(&detail.players_listed)) }
        (boards.markup)
        (folded("Players of the last 24 hours", true, sessions::on_server(&sessions)))
        (folded("Players over time", true, html! {
            @match &detail.series { Some(series) => (charts(series, &detail)), None => p { "No data yet." } }
        }))
        @if let Some(series) = detail.series.as_ref().filter(|series| series.hours.iter().any(Option::is_some)) {
            div .charts {
                section { (folded("Availability", true, availability::section(series, summary.added_ms))) }
                section { (folded("Busy hours", true, busy_hours(series))) }
            }
        }
        (folded("Maps of this week", true, maps(&detail)))
        (folded("All-time best", true, html! {
            (all_time_best(&best))
            p { a href=(feeds::path(&path)) { "The winners of each week as a feed" } }
        }))
        (folded("How it is scanned", false, scanning(&detail)))
        (banners::section(&context.public_url, &path, &format!("Game server {}", summary.url)))
    };
    let name = names::plain_hostname(&summary.hostname, &summary.url);
    let game = summary
        .game
        .as_ref()
        .map_or_else(String::new, |game| format!("{} ", names::plain_game(game, Some(&summary.url))));
    let address = join(&url, summary.game.as_deref()).address;
    let description = format!("{game}server at {address}: players now and over time, rankings by week, maps.");
    let card = banner_path(&path, BannerSize::Card, BannerFormat::Png);
    let query = boards.query.clone();
    let live = Some(format!("/api/v1/live?server={}", names::value(url.as_str())));
    let feed = Some(feeds::path(&path));
    let about = About {
        description: Some(description),
        path: Some(path.clone()),
        query,
        card: Some(card),
        live,
        feed,
        ..About::default()
    };
    Ok(Page::new(boards.page_title(&name), body).with(about))
}

/// A section that a visitor can fold: on a phone the page has many screens.
fn folded(title: &str, is_open: bool, content: Markup) -> Markup {
    html! {
        details .section open[is_open] {
            summary { h2 { (title) } }
            (content)
        }
    }
}

fn figures(url: &ServerUrl, detail: &PublicServerDetail) -> Markup {
    let server = &detail.server;
    let Join { address, link } = join(url, server.game.as_deref());
    html! {
        dl .figures {
            div { dt { "Address" } dd { code data-copy { (address) } } }
            div { dt { "Players" } dd { (server_table::players(server)) " of " (count(server.slots)) } }
            @if let Some(map) = &server.map { div { dt { "Map" } dd { a href=(map_path(map)) { (names::plain(map)) } } } }
            @if let Some(game) = &server.game { div { dt { "Game" } dd { a href=(game_path(game)) { (names::server_game(game, &server.url)) } } } }
            @if let Some(country) = geo::country_of_url(&server.url) {
                div { dt { "Country" } dd { a href={ "/servers?country=" (country.code) } { (country.flag()) " " (shown_name(&country.name)) } } }
            }
            @if let Some(rank) = server.rank { div { dt { "Rank of the last closed week" } dd { (count(rank)) } } }
            div { dt { "Last seen" } dd { (seen(server)) } }
        }
        @if let Some(link) = link { p { a href=(link) { "Join the game" } } }
        @if !server.tags.is_empty() {
            p { "Tags: " @for tag in &server.tags { a .badge href={ "/tags/" (names::segment(tag)) } { (names::plain(tag)) } " " } }
        }
    }
}

/// A line for favourites.
pub(super) fn now(server: &PublicServer) -> String {
    match (server.online, &server.map) {
        (true, Some(map)) => format!("{} of {} on {}", count(server.players), count(server.slots), shown_name(map)),
        (true, None) => format!("{} of {}", count(server.players), count(server.slots)),
        (false, _) => "offline".to_owned(),
    }
}

pub(super) fn players(listed: &[ListedPlayer]) -> Markup {
    let mut listed: Vec<&ListedPlayer> = listed.iter().collect();
    listed.sort_by_key(|player| std::cmp::Reverse(player.points));
    let has_pings = listed.iter().any(|player| player.ping.is_some());
    let note = |player: &ListedPlayer| match () {
        () if player.spectator => Some("spectator"),
        () if player.player_key.is_none() => Some("bot, or not ranked"),
        () => None,
    };
    let has_notes = listed.iter().any(|player| note(player).is_some());
    let has_starts = listed.iter().any(|player| player.since_ms.is_some());
    html! {
        @if listed.is_empty() { p { "Nobody." } } @else {
            div .scroll tabindex="0" role="region" aria-label="Players now" {
                table {
                    caption { "Players of the last scan" }
                    thead {
                        tr {
                            th scope="col" { "Player" } th scope="col" .n { "Points" }
                            @if has_pings { th scope="col" .n { "Ping, ms" } }
                            @if has_starts { th scope="col" { "Since" } }
                            @if has_notes { th scope="col" { "Note" } }
                        }
                    }
                    tbody {
                        @for player in listed {
                            tr {
                                td .name {
                                    @match player.player_key {
                                        Some(key) => a href={ "/players/" (key) } { (names::player(&player.display, &player.name)) },
                                        None => (names::player(&player.display, &player.name)),
                                    }
                                }
                                td .n { @if let Some(points) = player.points { (signed(points)) } }
                                @if has_pings { td .n { @if let Some(ping) = player.ping { (signed(ping.into())) } } }
                                @if has_starts { td { @if let Some(since_ms) = player.since_ms { (short_time(since_ms, "%H:%M")) } } }
                                @if has_notes { td { @if let Some(note) = note(player) { (note) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A graph of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Graph {
    Players(Resolution),
    Ranks,
}

impl Graph {
    fn all() -> impl Iterator<Item = Graph> {
        Resolution::ALL.into_iter().map(Graph::Players).chain([Graph::Ranks])
    }

    fn name(self) -> &'static str {
        match self {
            Graph::Players(resolution) => resolution.name(),
            Graph::Ranks => "ranks",
        }
    }

    fn title(self) -> String {
        match self {
            Graph::Players(resolution) => format!("Players over {}", resolution.span()),
            Graph::Ranks => "Rank of the server over 55 weeks".to_owned(),
        }
    }

    fn unit(self) -> String {
        match self {
            Graph::Players(resolution) => format!("mean of {}", resolution.slot()),
            Graph::Ranks => "1 is the first; gaps: not ranked".to_owned(),
        }
    }

    fn resolution(self) -> Resolution {
        match self {
            Graph::Players(resolution) => resolution,
            Graph::Ranks => Resolution::Weeks,
        }
    }

    fn high(self) -> High {
        match self {
            Graph::Players(_) => High::Large,
            Graph::Ranks => High::Small,
        }
    }

    /// Start of the newest slot, and the values.
    fn of(self, series: &SeriesView) -> (i64, Vec<Option<f64>>) {
        let ranks = || series.ranks.iter().map(|&rank| (rank > 0).then(|| f64::from(rank))).collect();
        match self {
            Graph::Players(Resolution::TenMinutes) => (series.newest_ten_minutes_ms, series.ten_minutes.clone()),
            Graph::Players(Resolution::Hours) => (series.newest_hour_ms, series.hours.clone()),
            Graph::Players(Resolution::Days) => (series.newest_day_ms, series.days.clone()),
            Graph::Players(Resolution::Weeks) => (series.newest_week_ms, series.weeks.clone()),
            Graph::Ranks => (series.newest_rank_week_ms.unwrap_or(0), ranks()),
        }
    }
}

fn charts(series: &SeriesView, detail: &PublicServerDetail) -> Markup {
    let table = format!("/series/{}", names::path(&detail.server.url));
    let drawn = Graph::all().map(|graph| (graph, graph.of(series)));
    let drawn = drawn.filter(|(_, (_, values))| values.iter().any(Option::is_some)).collect::<Vec<_>>();
    html! {
        div .charts {
            @for (graph, (newest_ms, values)) in &drawn {
                @let series = Series { newest_ms: *newest_ms, slot_ms: graph.resolution().slot_ms(), values, is_running: false };
                (chart(graph.name(), &graph.title(), &graph.unit(), &series, graph.high(), &format!("{table}?series={}", graph.name())))
            }
        }
        @if drawn.is_empty() { p { "The first slot of ten minutes has not ended yet." } }
    }
}

/// Mean players in each hour of the week.
fn busy_hours(series: &SeriesView) -> Markup {
    let means = HoursOfWeek::of_means(series.newest_hour_ms, &series.hours);
    let title = format!("Mean players in each hour of the week. Most: {}", rounded(means.largest()));
    let caption = "Mean players in each hour of the week over 32 days, UTC; stronger colour: more";
    means.draw("busy-title", &title, caption, |players| format!("{} players", rounded(players)))
}

fn maps(detail: &PublicServerDetail) -> Markup {
    let minutes: f64 = detail.maps.iter().map(|map| map.minutes).sum();
    html! {
        @if detail.maps.is_empty() { p { "None yet." } } @else {
            div .scroll tabindex="0" role="region" aria-label="Maps of this week" {
                table {
                    caption { "Maps that were played since the start of the week" }
                    thead { tr { th scope="col" { "Map" } th scope="col" .n { "Minutes" } th scope="col" .n { "Share" } th scope="col" .n { "Mean players" } } }
                    tbody {
                        @for map in &detail.maps {
                            tr {
                                td .name { a href=(map_path(&map.map)) { (names::plain(&map.map)) } }
                                td .n { (count(map.minutes.round() as u64)) }
                                td .n { (rounded(map.minutes / minutes.max(f64::MIN_POSITIVE) * 100.0)) " %" }
                                td .n { (rounded(map.average_players)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn all_time_best(best: &BestPlayers) -> Markup {
    html! {
        p .soft { "The players with the best positions in closed weeks, also in those that are no longer kept." }
        div .grid {
            @for BestOfRanking { ranking, players } in &best.rankings {
                section {
                    h3 { (ranking_name(*ranking).0) }
                    @if players.is_empty() { p { "None yet: positions count when a week is closed." } } @else {
                        div .scroll tabindex="0" role="region" aria-label={ "Best positions in " (ranking_name(*ranking).0) } {
                            table {
                                caption { "Best positions in " (ranking_name(*ranking).0) }
                                thead { tr { th scope="col" { "Player" } th scope="col" { "Positions and weeks" } } }
                                tbody { @for player in players { (best_player(player)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn best_player(player: &BestPlayer) -> Markup {
    html! {
        tr {
            td .name { a href={ "/players/" (player.player_key) } { (names::player(&player.display, &player.name)) } }
            td {
                @for (n, of) in player.positions.iter().enumerate() {
                    @if n > 0 { ", " }
                    (count(of.position)) " in " (of.week)
                }
            }
        }
    }
}

fn scanning(detail: &PublicServerDetail) -> Markup {
    let server = &detail.server;
    let authentication = detail.authentication.as_deref().unwrap_or("no reply since the start of clqd");
    html! {
        dl .figures {
            div { dt { "Queried at" } dd { code { (server.url) } } }
            div { dt { "Class" } dd { (server.class) } }
            div { dt { "Missed scans in a row" } dd { (count(server.missed)) } }
            div { dt { "Share of this week in which it was seen" } dd { (rounded(detail.coverage * 100.0)) " %" } }
            div { dt { "Authentication of its replies" } dd { (authentication) } }
        }
        @if !server.screened.is_empty() {
            p { "Parts of its answers were not used:" }
            ul { @for screened in &server.screened { li { code { (screened.reason.name()) } ", last " (time(screened.applied_ms)) } } }
        }
        p .soft { "Class 1 is scanned every 2 minutes, 2 every 10 minutes, 3 hourly, 4 daily, 5 weekly; 6 and 7 do not answer. " a href="/about" { "More" } }
    }
}

#[derive(Debug, Deserialize)]
struct SeriesParameters {
    series: String,
}

pub(super) async fn series_page(
    State(context): State<Arc<WebContext>>,
    Path(url): Path<String>,
    uri: Uri,
) -> PageResult {
    let SeriesParameters { series } = query::parse(&uri)?;
    let graph = query::one_of("series", &series, Graph::all().map(|graph| (graph.name(), graph)))?;
    let url = query::server_url(&url)?;
    let detail = context.ask(requests::ServersShow { url: url.clone() }).await?.public;
    let (newest_ms, values) = detail.series.as_ref().map(|series| graph.of(series)).unwrap_or_default();
    let series = Series { newest_ms, slot_ms: graph.resolution().slot_ms(), values: &values, is_running: false };
    let body = html! {
        h1 { (graph.title()) }
        p { a href=(server_path(url.as_str())) { (names::hostname(&detail.server.hostname, &detail.server.url)) } }
        table {
            caption { (graph.unit()) ", newest first, UTC" }
            thead { tr { th scope="col" { "From" } th scope="col" .n { "Value" } } }
            tbody {
                @for (slot, value) in values.iter().enumerate().rev() {
                    @if let Some(value) = value {
                        tr { td { (graph.resolution().start_text(series.slot_start_ms(slot))) } td .n { (rounded(*value)) } }
                    }
                }
            }
        }
        @if !series.has_data() { p { "No data yet." } }
    };
    let title = format!("{}: {}", graph.title(), names::plain_hostname(&detail.server.hostname, url.as_str()));
    Ok(Page::new(title, body).with(About { is_hidden: true, ..About::default() }))
}
