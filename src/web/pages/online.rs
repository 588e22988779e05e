//! Players and servers online over time: graphs, and their values as a table.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use maud::{Markup, html};
use serde::Deserialize;

use super::chart::{High, Series, chart, rounded};
use super::format::{count, utc};
use super::layout::{Page, PageResult};
use super::names;
use crate::api::{Request, Row};
use crate::model::calendar::{DAY_MS, HOUR_MS, MINUTE_MS, WEEK_MS};
use crate::model::view::{OnlineSeriesView, SlotsView};
use crate::web::context::WebContext;
use crate::web::problem::Problem;
use crate::web::query;

/// A resolution of the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Resolution {
    TenMinutes,
    Hours,
    Days,
    Weeks,
}

impl Resolution {
    pub const ALL: [Resolution; 4] = [Resolution::TenMinutes, Resolution::Hours, Resolution::Days, Resolution::Weeks];

    fn name(self) -> &'static str {
        match self {
            Resolution::TenMinutes => "ten_minutes",
            Resolution::Hours => "hours",
            Resolution::Days => "days",
            Resolution::Weeks => "weeks",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Resolution::TenMinutes => "Players online over 25 hours",
            Resolution::Hours => "Players online over 32 days",
            Resolution::Days => "Players online over a year",
            Resolution::Weeks => "Players online over all weeks",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Resolution::TenMinutes => "sum of the servers' means of 10 minutes",
            Resolution::Hours => "sum of the servers' means of an hour",
            Resolution::Days => "sum of the servers' means of a day",
            Resolution::Weeks => "sum of the servers' means of a week",
        }
    }

    fn slot_ms(self) -> i64 {
        match self {
            Resolution::TenMinutes => 10 * MINUTE_MS,
            Resolution::Hours => HOUR_MS,
            Resolution::Days => DAY_MS,
            Resolution::Weeks => WEEK_MS,
        }
    }

    fn of(self, series: &OnlineSeriesView) -> &SlotsView {
        match self {
            Resolution::TenMinutes => &series.ten_minutes,
            Resolution::Hours => &series.hours,
            Resolution::Days => &series.days,
            Resolution::Weeks => &series.weeks,
        }
    }
}

/// Whose players.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    game: Option<String>,
    tag: Option<String>,
    series: Resolution,
}

async fn series(
    context: &WebContext,
    game: Option<String>,
    tag: Option<String>,
) -> Result<Option<OnlineSeriesView>, Problem> {
    match context.ask(Request::Series { game, tag }).await?.pop() {
        Some(Row::Series(series)) => Ok(Some(*series)),
        None => Ok(None),
        Some(_) => Err(Problem::unexpected_row()),
    }
}

/// Graphs of a game, of a tag, or of all servers.
pub(super) async fn charts(
    context: &WebContext,
    game: Option<&str>,
    tag: Option<&str>,
    shown: &[Resolution],
) -> Result<Markup, Problem> {
    let series = series(context, game.map(str::to_owned), tag.map(str::to_owned)).await?;
    let of = match (game, tag) {
        (Some(game), _) => format!("game={}&", names::value(game)),
        (None, Some(tag)) => format!("tag={}&", names::value(tag)),
        (None, None) => String::new(),
    };
    let graph = |resolution: Resolution, slots: &SlotsView| {
        let values = Series { newest_ms: slots.newest_ms, slot_ms: resolution.slot_ms(), values: &slots.players };
        let table = format!("/series?{of}series={}", resolution.name());
        let id = format!("online-{}", resolution.name());
        values.has_data().then(|| chart(&id, resolution.title(), resolution.unit(), &values, High::Large, &table))
    };
    let graphs =
        series.iter().flat_map(|series| shown.iter().map(|&resolution| graph(resolution, resolution.of(series))));
    let graphs: Vec<Markup> = graphs.flatten().collect();
    Ok(html! {
        @if graphs.is_empty() { p { "There is no data yet: the first slot of ten minutes has not ended." } }
        div .charts { @for graph in graphs { (graph) } }
    })
}

/// The values of a graph.
pub(super) async fn page(State(context): State<Arc<WebContext>>, uri: Uri) -> PageResult {
    let Parameters { game, tag, series: resolution } = query::parse(&uri)?;
    let of = game.clone().or_else(|| tag.clone());
    let series = series(&context, game, tag).await?;
    let format = if resolution.slot_ms() < DAY_MS { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d" };
    let rows = series.iter().map(|series| resolution.of(series)).flat_map(|slots| {
        let values = slots.players.iter().zip(&slots.servers).rev().enumerate();
        values.filter_map(|(back, (players, servers))| {
            let from_ms = slots.newest_ms - back as i64 * resolution.slot_ms();
            Some((utc(from_ms, format), rounded((*players)?), count((*servers)?)))
        })
    });
    let body = html! {
        h1 { (resolution.title()) }
        @if let Some(of) = &of { p { (names::plain(of)) } }
        table {
            caption { "Newest first, UTC. Players: " (resolution.unit()) ". Servers: those that were seen." }
            thead { tr { th scope="col" { "From" } th scope="col" .n { "Players" } th scope="col" .n { "Servers" } } }
            tbody {
                @for (from, players, servers) in rows { tr { td { (from) } td .n { (players) } td .n { (servers) } } }
            }
        }
    };
    Ok(Page::new(resolution.title(), body))
}
