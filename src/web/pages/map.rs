//! Maps: the list of the most played maps, and the page of a map, which shows how much it was
//! played in each week and the servers that play it now.

use std::sync::Arc;

use axum::extract::{Path, State};
use maud::{Markup, html};

use super::chart::{High, WeekValues, rounded, week_chart};
use super::format::count;
use super::layout::{About, Page, PageResult};
use super::server_table::{self, map_path};
use super::{busiest_servers, names, overview};
use crate::api::{ServerFilter, requests};
use crate::model::calendar::parse_week_label;
use crate::model::view::history::{MapView, MapWeekView};
use crate::web::context::WebContext;
use crate::web::segment::Segment;

const SERVERS: u32 = 50;

/// Maps of the list.
const MAPS: u32 = 200;

/// The most played maps of the kept weeks.
pub(super) async fn list(State(context): State<Arc<WebContext>>) -> PageResult {
    let maps = context.ask(requests::Maps { text: None, count: MAPS }).await?;
    let body = html! {
        h1 { "Maps" }
        @if maps.is_empty() { p { "None yet: these figures are up to ten minutes old." } } @else {
            div .scroll tabindex="0" role="region" aria-label="Maps" { table {
                caption { "The maps that were played most in all kept weeks, on all servers; at most " (MAPS) }
                thead {
                    tr {
                        th scope="col" { "Map" } th scope="col" .n { "Weeks" } th scope="col" .n { "Minutes" }
                        th scope="col" .n { "Mean players" } th scope="col" .n { "Share of all play" }
                    }
                }
                tbody {
                    @for map in &maps {
                        tr {
                            td .name { a href=(map_path(&map.map)) { (names::plain(&map.map)) } }
                            td .n { (count(map.weeks)) }
                            td .n { (count(map.minutes.round() as u64)) }
                            td .n { (rounded(map.average_players)) }
                            td .n { (rounded(map.share * 100.0)) " %" }
                        }
                    }
                }
            } }
        }
    };
    Ok(Page::new("Maps", body))
}

pub(super) async fn page(State(context): State<Arc<WebContext>>, Path(Segment(name)): Path<Segment>) -> PageResult {
    let map = context.ask(requests::Map { map: name.clone() }).await?;
    let overview = overview(&context).await?;
    let filter = ServerFilter { map: Some(name.clone()), ..ServerFilter::default() };
    let servers = busiest_servers(&context, filter, SERVERS, true).await?;
    let body = html! {
        h1 { "Map " (names::plain(&name)) }
        dl .figures {
            div { dt { "Players now" } dd { (count(map.players_online)) } }
            div { dt { "Servers that play it now" } dd { (count(map.servers_online)) } }
        }
        (week_chart("hours", "Hours played by all players", "h in a week", &hours(&map), High::Large, &overview.week))
        h2 #weeks { "Weeks" }
        (weeks(&map.weeks))
        h2 { "Servers that play it now" }
        (server_table::table("Servers with this map, most players first", &servers))
    };
    let description = format!("The map {name}: how much it was played by week, and the servers that play it now.");
    let about = About { description: Some(description), path: Some(map_path(&name)), ..About::default() };
    Ok(Page::new(format!("Map {name}"), body).with(about))
}

fn player_hours(week: &MapWeekView) -> f64 {
    week.average_players * week.minutes / 60.0
}

fn hours(map: &MapView) -> WeekValues {
    map.weeks.iter().filter_map(|week| Some((parse_week_label(&week.week).ok()?, player_hours(week)))).collect()
}

fn weeks(weeks: &[MapWeekView]) -> Markup {
    html! {
        @if weeks.is_empty() { p { "None yet: these figures are up to ten minutes old." } } @else {
            div .scroll tabindex="0" role="region" aria-label="Weeks" { table {
                caption { "How much the map was played in each week, on all servers. The running week is provisional." }
                thead {
                    tr {
                        th scope="col" { "Week" } th scope="col" .n { "Servers" } th scope="col" .n { "Minutes" }
                        th scope="col" .n { "Mean players" } th scope="col" .n { "Hours of all players" }
                        th scope="col" .n { "Share of all play" }
                    }
                }
                tbody {
                    @for week in weeks {
                        tr {
                            td { (week.week) }
                            td .n { (count(week.servers)) }
                            td .n { (count(week.minutes.round() as u64)) }
                            td .n { (rounded(week.average_players)) }
                            td .n { (rounded(player_hours(week))) }
                            td .n { (rounded(week.share * 100.0)) " %" }
                        }
                    }
                }
            } }
        }
    }
}
