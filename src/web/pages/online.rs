//! Players and servers online over time: graphs, and their values as a table.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use maud::{Markup, html};
use serde::Deserialize;

use super::chart::{High, Series, chart, rounded};
use super::format::count;
use super::layout::{About, Page, PageResult};
use super::names;
use super::resolution::{Resolution, VALUES_MIN};
use crate::api::requests;
use crate::view::{OnlineSeriesView, SlotsView};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query;
use crate::web::texts::text;

fn title(resolution: Resolution) -> Cow<'static, str> {
    match resolution {
        Resolution::TenMinutes => text!("online-over-25-hours"),
        Resolution::Hours => text!("online-over-32-days"),
        Resolution::Days => text!("online-over-a-year"),
        Resolution::Weeks => text!("online-over-all-weeks"),
    }
}

fn unit(resolution: Resolution) -> Cow<'static, str> {
    match resolution {
        Resolution::TenMinutes => text!("online-means-of-10-minutes"),
        Resolution::Hours => text!("online-means-of-an-hour"),
        Resolution::Days => text!("online-means-of-a-day"),
        Resolution::Weeks => text!("online-means-of-a-week"),
    }
}

fn slots(resolution: Resolution, series: &OnlineSeriesView) -> &SlotsView {
    match resolution {
        Resolution::TenMinutes => &series.ten_minutes,
        Resolution::Hours => &series.hours,
        Resolution::Days => &series.days,
        Resolution::Weeks => &series.weeks,
    }
}

fn players(resolution: Resolution, slots: &SlotsView) -> Series<'_> {
    let (newest_ms, slot_ms) = (slots.newest_ms, resolution.slot_ms());
    Series { newest_ms, slot_ms, values: &slots.players, is_running: false }
}

/// The servers whose players are counted.
#[derive(Debug, Deserialize)]
struct Parameters {
    game: Option<String>,
    tag: Option<String>,
    series: Resolution,
}

/// Players over time of a game, of a tag, or of all servers. `None`: not computed yet.
pub(super) async fn series(
    context: &WebContext,
    game: Option<&str>,
    tag: Option<&str>,
) -> Result<Option<OnlineSeriesView>, Problem> {
    let [game, tag] = [game, tag].map(|name| name.map(str::to_owned));
    context.ask(requests::Series { game, tag }).await
}

/// Graphs of a series.
pub(super) fn charts(
    series: Option<&OnlineSeriesView>,
    game: Option<&str>,
    tag: Option<&str>,
    shown: &[Resolution],
) -> Markup {
    let of = match (game, tag) {
        (Some(game), _) => format!("game={}&", names::value(game)),
        (None, Some(tag)) => format!("tag={}&", names::value(tag)),
        (None, None) => String::new(),
    };
    let mut graphs = Vec::new();
    for (&resolution, series) in shown.iter().flat_map(|resolution| series.map(|series| (resolution, series))) {
        let values = players(resolution, slots(resolution, series));
        if values.has_values(if graphs.is_empty() { VALUES_MIN } else { resolution.values_min() }) {
            let table = format!("/series?{of}series={}", resolution.name());
            let id = format!("online-{}", resolution.name());
            graphs.push(chart(&id, &title(resolution), &unit(resolution), &values, High::Large, &table));
        }
    }
    html! {
        @if graphs.is_empty() { p { (text!("online-no-data")) } }
        div .charts { @for graph in graphs { (graph) } }
    }
}

/// The values of a graph.
pub(super) async fn page(State(context): State<Arc<WebContext>>, uri: Uri) -> PageResult {
    let Parameters { game, tag, series: resolution } = query::parse(&uri)?;
    let series = series(&context, game.as_deref(), tag.as_deref()).await?;
    let empty = SlotsView { newest_ms: 0, players: Vec::new(), servers: Vec::new() };
    let slots = series.as_ref().map_or(&empty, |series| slots(resolution, series));
    let graph = players(resolution, slots);
    let values = slots.players.iter().zip(&slots.servers).enumerate().rev();
    let rows = values.filter_map(|(slot, (players, servers))| {
        Some((resolution.start_text(graph.slot_start_ms(slot)), rounded((*players)?), count((*servers)?)))
    });
    let body = html! {
        h1 { (title(resolution)) }
        @if let Some(of) = game.as_ref().or(tag.as_ref()) { p { (names::plain(of)) } }
        table {
            caption { (text!("online-caption", unit = unit(resolution), zone = graph.zone())) }
            thead { tr { th scope="col" { (text!("online-from")) } th scope="col" .n { (text!("player-count")) } th scope="col" .n { (text!("servers-heading")) } } }
            tbody {
                @for (from, players, servers) in rows { tr { td { (from) } td .n { (players) } td .n { (servers) } } }
            }
        }
    };
    Ok(Page::new(title(resolution), body).with(About { is_hidden: true, ..About::default() }))
}
