//! The page of a server, and its series as tables.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::Uri;
use maud::{Markup, html};
use serde::Deserialize;
use strum::VariantArray;

use super::boards::{self, BoardParameters};
use super::chart::{High, Series, chart, percent, rounded, tenths};
use super::format::{count, ranking as ranking_name, short_time, time};
use super::hours_of_week::HoursOfWeek;
use super::join::{Join, join};
use super::layout::{About, Page, PageResult, folded};
use super::names;
use super::resolution::{Resolution, VALUES_MIN};
use super::server_table::{self, game_path, map_path, seen, server_path};
use super::sessions;
use super::{availability, banners, feeds};
use crate::api::requests;
use crate::geo;
use crate::model::Ranking;
use crate::model::scope::Scope;
use crate::model::shown_text::shown_name;
use crate::model::url::ServerUrl;
use crate::view::board::WindowSummary;
use crate::view::history::{BestOfRanking, BestPlayer, BestPlayers, PositionOfWeek};
use crate::view::{ListedPlayer, PublicServer, PublicServerDetail, SeriesView, Setting};
use crate::web::banners::{BannerFormat, BannerSize, banner_path};
use crate::web::context::WebContext;
use crate::web::query;
use crate::web::texts::{grouped, rich_text, text};

pub(super) async fn page(State(context): State<Arc<WebContext>>, Path(url): Path<String>, uri: Uri) -> PageResult {
    let parameters: BoardParameters = query::parse(&uri)?;
    let url = query::server_url(&url)?;
    let detail = context.ask(requests::ServersShow { url: url.clone() }).await?.public;
    let best = context.ask(requests::ServersBest { url: url.clone() }).await?;
    let windows = context.ask_shared(&requests::Windows { bytes: false }).await?;
    let visitors = context.ask(sessions::visitors(url.clone())).await?;
    let site = context.ask_shared(&requests::Series { game: None, tag: None }).await?;
    let path = server_path(url.as_str());
    let boards =
        boards::section(&context, &Scope::Server(url.clone()), &path, &parameters, Some(detail.coverage)).await?;
    let summary = &detail.server;
    let body = html! {
        h1 data-favourite=(path) { (names::hostname(&summary.hostname, &summary.url)) }
        div #figures data-part { (figures(&url, &detail)) }
        @if summary.greylisted { p { (text!("server-excluded")) } }
        h2 { (text!("server-players-now")) }
        div #players data-part {
            @if summary.online { (players(&detail.players_listed)) } @else { p { (text!("server-no-answer")) } }
        }
        (boards.markup)
        (folded(&text!("server-players-of-day"), true, sessions::on_server(&visitors)))
        (folded(&text!("home-over-time"), true, html! {
            @match &detail.series { Some(series) => (charts(series, &detail)), None => p { (text!("no-data-yet")) } }
        }))
        @if let Some(series) = detail.series.as_ref().filter(|series| series.hours.iter().any(Option::is_some)) {
            div .charts {
                section { (folded(&text!("server-availability"), true, availability::section(series, summary.added_ms, Option::as_ref(&site)))) }
                section { (folded(&text!("server-busy-hours"), true, busy_hours(series))) }
            }
        }
        (folded(&text!("server-maps"), true, maps(&detail)))
        @if !detail.maps_seen.is_empty() { (folded(&text!("server-rotation"), false, rotation(&detail))) }
        (folded(&text!("server-best"), true, html! {
            (all_time_best(&best, &windows, &path))
            p { a href=(feeds::path(&path)) { (text!("winners-feed")) } }
        }))
        @if !detail.settings.is_empty() { (folded(&text!("server-settings"), false, settings(&detail.settings))) }
        (folded(&text!("server-scanning"), false, scanning(&detail)))
        (banners::section(&context.public_url, &path, &text!("server-image", url = summary.url.as_str())))
    };
    let name = names::plain_hostname(&summary.hostname, &summary.url);
    let address = join(&url, summary.game.as_deref()).address;
    let description = match &summary.game {
        Some(game) => {
            let game = names::plain_game(game, Some(&summary.url));
            text!("server-description-of-game", game = game, address = address)
        }
        None => text!("server-description", address = address),
    };
    let card = banner_path(&path, BannerSize::Card, BannerFormat::Png);
    let query = boards.query.clone();
    let live = Some(format!("/api/v1/live?server={}", names::value(url.as_str())));
    let feed = Some(feeds::path(&path));
    let about = About {
        description: Some(description.into_owned()),
        path: Some(path.clone()),
        query,
        card: Some(card),
        live,
        feed,
        ..About::default()
    };
    Ok(Page::new(boards.page_title(&name), body).with(about))
}

fn figures(url: &ServerUrl, detail: &PublicServerDetail) -> Markup {
    let server = &detail.server;
    let Join { address, link } = join(url, server.game.as_deref());
    html! {
        @if !server.online {
            p {
                span .badge .down {
                    @match server.last_seen_ms { Some(at_ms) => (rich_text!("server-offline-since", time = time(at_ms))), None => (text!("offline")) }
                }
            }
        }
        dl .figures {
            div { dt { (text!("address")) } dd { code data-copy { (address) } } }
            @if server.online { div { dt { (text!("player-count")) } dd { (rich_text!("of-most", count = server_table::players(server), most = server.slots)) } } }
            @if let Some(map) = &server.map { div { dt { @if server.online { (text!("map")) } @else { (text!("sessions-last-map")) } } dd { a href=(map_path(map)) { (names::plain(map)) } } } }
            @if let Some(game) = &server.game { div { dt { (text!("game")) } dd { a href=(game_path(game)) { (names::server_game(game, &server.url)) } } } }
            @if let Some(country) = geo::country_of_url(&server.url) {
                div { dt { (text!("country")) } dd { a href={ "/servers?country=" (country.code) } { (country.flag()) " " (names::country(&country.code, &country.name)) } } }
            }
            @if let Some(rank) = server.rank { div { dt { (text!("server-rank")) } dd { (count(rank)) } } }
            @if server.online { div { dt { (text!("last-seen")) } dd { (seen(server)) } } }
        }
        @if let Some(link) = link.filter(|_| server.online) { p { a href=(link) { (text!("server-join")) } } }
        @if !server.tags.is_empty() {
            @let tags = html! { @for tag in &server.tags { a .badge href={ "/tags/" (names::segment(tag)) } { (names::plain(tag)) } " " } };
            p { (rich_text!("server-tags", tags = tags)) }
        }
    }
}

/// A line for favourites.
pub(super) fn now(server: &PublicServer) -> String {
    let now = match &server.map {
        _ if !server.online => text!("offline"),
        Some(map) => text!("server-now", count = server.players, most = server.slots, map = shown_name(map)),
        None => text!("of-most", count = server.players, most = server.slots),
    };
    now.into_owned()
}

pub(super) fn players(listed: &[ListedPlayer]) -> Markup {
    let mut listed: Vec<&ListedPlayer> = listed.iter().collect();
    listed.sort_by_key(|player| std::cmp::Reverse(player.points));
    let has_pings = listed.iter().any(|player| player.ping.is_some());
    let note = |player: &ListedPlayer| match () {
        () if player.spectator => Some(text!("server-spectator")),
        () if player.player_key.is_none() => Some(text!("server-bot")),
        () => None,
    };
    let has_starts = listed.iter().any(|player| player.since_ms.is_some());
    html! {
        @if listed.is_empty() { p { (text!("nobody")) } } @else {
            div .scroll tabindex="0" role="region" aria-label=(text!("server-players-now")) {
                table .single {
                    caption { (text!("server-players-caption")) }
                    thead {
                        tr {
                            th scope="col" { (text!("player")) } th scope="col" .n { (text!("points")) }
                            @if has_pings { th scope="col" .n { (text!("server-ping")) } }
                            @if has_starts { th scope="col" { (text!("since")) } }
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
                                    @if let Some(note) = note(player) { " " small .soft { "(" (note) ")" } }
                                }
                                td .n { @if let Some(points) = player.points { (grouped(points)) } }
                                @if has_pings { td .n { @if let Some(ping) = player.ping { (grouped(ping.into())) } } }
                                @if has_starts { td { @if let Some(since_ms) = player.since_ms { (short_time(since_ms, "%H:%M")) } } }
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
        Resolution::VARIANTS.iter().copied().map(Graph::Players).chain([Graph::Ranks])
    }

    fn name(self) -> &'static str {
        match self {
            Graph::Players(resolution) => resolution.name(),
            Graph::Ranks => "ranks",
        }
    }

    fn title(self) -> Cow<'static, str> {
        match self {
            Graph::Players(Resolution::TenMinutes) => text!("server-over-25-hours"),
            Graph::Players(Resolution::Hours) => text!("server-over-32-days"),
            Graph::Players(Resolution::Days) => text!("server-over-a-year"),
            Graph::Players(Resolution::Weeks) => text!("server-over-all-weeks"),
            Graph::Ranks => text!("server-ranks"),
        }
    }

    fn unit(self) -> Cow<'static, str> {
        match self {
            Graph::Players(Resolution::TenMinutes) => text!("server-mean-of-10-minutes"),
            Graph::Players(Resolution::Hours) => text!("server-mean-of-an-hour"),
            Graph::Players(Resolution::Days) => text!("server-mean-of-a-day"),
            Graph::Players(Resolution::Weeks) => text!("server-mean-of-a-week"),
            Graph::Ranks => text!("server-ranks-unit"),
        }
    }

    fn resolution(self) -> Resolution {
        match self {
            Graph::Players(resolution) => resolution,
            Graph::Ranks => Resolution::Weeks,
        }
    }

    fn values_min(self) -> usize {
        match self {
            Graph::Players(resolution) => resolution.values_min(),
            Graph::Ranks => VALUES_MIN,
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
    let all: Vec<_> = Graph::all().map(|graph| (graph, graph.of(series))).collect();
    let mut drawn = Vec::new();
    for (graph, (newest_ms, values)) in &all {
        let (newest_ms, slot_ms) = (*newest_ms, graph.resolution().slot_ms());
        let series = Series { newest_ms, slot_ms, values, is_running: false };
        if series.has_values(if drawn.is_empty() { VALUES_MIN } else { graph.values_min() }) {
            drawn.push((graph, series));
        }
    }
    html! {
        div .charts {
            @for (graph, series) in &drawn {
                (chart(graph.name(), &graph.title(), &graph.unit(), series, graph.high(), &format!("{table}?series={}", graph.name())))
            }
        }
        @if drawn.is_empty() { p { (text!("server-no-slot")) } }
    }
}

/// Mean players in each hour of the week.
fn busy_hours(series: &SeriesView) -> Markup {
    let means = HoursOfWeek::of_means(series.newest_hour_ms, &series.hours);
    let title = text!("server-busy-title", most = rounded(means.largest()));
    means.draw("busy-title", &title, &text!("server-busy-caption"), rounded)
}

fn maps(detail: &PublicServerDetail) -> Markup {
    let minutes: f64 = detail.maps.iter().map(|map| map.minutes).sum();
    html! {
        @if detail.maps.is_empty() { p { (text!("none-yet")) } } @else {
            div .scroll tabindex="0" role="region" aria-label=(text!("server-maps")) {
                table {
                    caption { (text!("server-maps-caption")) }
                    thead {
                        tr {
                            th scope="col" { (text!("map")) } th scope="col" .n { (text!("hours")) }
                            th scope="col" .n { (text!("share")) } th scope="col" .n { (text!("mean-players")) }
                        }
                    }
                    tbody {
                        @for map in &detail.maps {
                            tr {
                                td .name { a href=(map_path(&map.map)) { (names::plain(&map.map)) } }
                                td .n { (tenths(map.minutes / 60.0)) }
                                td .n { (percent(map.minutes / minutes.max(f64::MIN_POSITIVE))) }
                                td .n { (tenths(map.average_players)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The order in which maps were played, and which one comes next.
fn rotation(detail: &PublicServerDetail) -> Markup {
    let link = |map: &str| html! { a href=(map_path(map)) { (names::plain(map)) } };
    html! {
        p .soft { (text!("server-rotation-meaning")) }
        @if let Some(next) = &detail.next_map { p { (rich_text!("server-next-map", map = link(next))) } }
        ol { @for seen in detail.maps_seen.iter().rev() { li { (link(&seen.map)) " " small .soft { (time(seen.since_ms)) } } } }
    }
}

fn settings(settings: &[Setting]) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label=(text!("server-settings")) {
            table {
                caption { (text!("server-settings-caption")) }
                thead { tr { th scope="col" { (text!("server-setting")) } th scope="col" { (text!("server-value")) } } }
                tbody { @for Setting { name, value } in settings { tr { td { bdi { (name) } } td { bdi { (value) } } } } }
            }
        }
    }
}

fn all_time_best(best: &BestPlayers, kept: &[WindowSummary], path: &str) -> Markup {
    html! {
        p .soft { (text!("server-best-meaning")) }
        div .grid {
            @for BestOfRanking { ranking, players } in &best.rankings {
                @let name = ranking_name(*ranking).0;
                section {
                    h3 { (name) }
                    @if players.is_empty() { p { (text!("player-no-positions")) } } @else {
                        @let caption = text!("server-best-caption", ranking = name);
                        div .scroll tabindex="0" role="region" aria-label=(caption) {
                            table {
                                caption { (caption) }
                                thead { tr { th scope="col" { (text!("player")) } th scope="col" .n { (text!("server-best-positions")) } th scope="col" { (text!("week")) } } }
                                tbody { @for player in players { (best_player(player, *ranking, kept, path)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The best position, how often it was reached (of the three best that are kept), and the newest week with it.
fn best_player(player: &BestPlayer, ranking: Ranking, kept: &[WindowSummary], path: &str) -> Markup {
    let best = player.positions.iter().map(|of| of.position).min();
    let weeks = || player.positions.iter().filter(|of| Some(of.position) == best).map(|of| &of.week[..]);
    let text = |of: &PositionOfWeek| text!("server-position-in-week", position = of.position, week = of.week.as_str());
    let all = player.positions.iter().map(text).collect::<Vec<_>>().join(", ");
    html! {
        tr {
            td .name { a href={ "/players/" (player.player_key) } { (names::player(&player.display, &player.name)) } }
            td .n title=(all) { @if let Some(best) = best { (count(best)) } @match weeks().count() { 0 | 1 => {}, 2 => " (2\u{d7})", _ => " (\u{2265}3\u{d7})" } }
            td .week { @if let Some(week) = weeks().max() { (boards::week_link(kept, path, week, ranking)) } }
        }
    }
}

fn scanning(detail: &PublicServerDetail) -> Markup {
    let server = &detail.server;
    let authentication = detail.authentication.as_deref().map_or_else(|| text!("server-no-reply"), Cow::from);
    html! {
        dl .figures {
            div { dt { (text!("server-queried")) } dd { code { (server.url) } } }
            div { dt { (text!("server-class")) } dd { (server.class) } }
            div { dt { (text!("server-missed")) } dd { (count(server.missed)) } }
            div { dt { (text!("server-coverage")) } dd { (percent(detail.coverage)) } }
            div { dt { (text!("server-authentication")) } dd { (authentication) } }
        }
        @if !server.screened.is_empty() {
            p { (text!("server-screened")) }
            ul {
                @for screened in &server.screened {
                    @let reason = html! { code { (screened.reason.name()) } };
                    li { (rich_text!("server-screened-last", reason = reason, time = time(screened.applied_ms))) }
                }
            }
        }
        p .soft { (text!("server-classes")) " " a href="/about" { (text!("more")) } }
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
            caption { (text!("server-series-caption", unit = graph.unit(), zone = series.zone())) }
            thead { tr { th scope="col" { (text!("online-from")) } th scope="col" .n { (text!("server-value")) } } }
            tbody {
                @for (slot, value) in values.iter().enumerate().rev() {
                    @if let Some(value) = value {
                        tr { td { (graph.resolution().start_text(series.slot_start_ms(slot))) } td .n { (rounded(*value)) } }
                    }
                }
            }
        }
        @if !series.has_data() { p { (text!("no-data-yet")) } }
    };
    let name = names::plain_hostname(&detail.server.hostname, url.as_str());
    let title = text!("title-and-name", title = graph.title(), name = name);
    Ok(Page::new(title, body).with(About { is_hidden: true, ..About::default() }))
}
