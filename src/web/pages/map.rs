//! Maps: the list of the most played maps, and the page of a map, which shows how much it was
//! played in each week and the servers that play it now.

use std::sync::Arc;

use axum::extract::{Path, State};
use maud::{Markup, html};

use super::chart::{High, WeekValues, percent, tenths, week_chart};
use super::format::{count, short_days};
use super::layout::{About, Page, PageResult};
use super::server_table::{self, map_path};
use super::{busiest_servers, names, overview};
use crate::api::{ServerFilter, requests};
use crate::model::calendar::parse_week_label;
use crate::view::history::{MapView, MapWeekView};
use crate::web::context::WebContext;
use crate::web::segment::Segment;
use crate::web::texts::{rich_text, text};

const SERVERS: u32 = 50;

/// Maps of the list.
const MAPS: u32 = 200;

/// The most played maps of the kept weeks.
pub(super) async fn list(State(context): State<Arc<WebContext>>) -> PageResult {
    let maps = context.ask(requests::Maps { text: None, count: MAPS }).await?;
    let body = html! {
        h1 { (text!("maps-heading")) }
        @if maps.is_empty() { p { (text!("map-none-yet")) } } @else {
            div .scroll tabindex="0" role="region" aria-label=(text!("maps-heading")) { table {
                caption { (text!("map-list-caption", count = MAPS)) }
                thead {
                    tr {
                        th scope="col" { (text!("map")) } th scope="col" .n { (text!("map-week-count")) } th scope="col" .n { (text!("hours")) }
                        th scope="col" .n { (text!("mean-players")) } th scope="col" .n { (text!("map-share")) }
                    }
                }
                tbody {
                    @for map in &maps {
                        tr {
                            td .name { a href=(map_path(&map.map)) { (names::plain(&map.map)) } }
                            td .n { (count(map.weeks)) }
                            td .n { (tenths(map.minutes / 60.0)) }
                            td .n { (tenths(map.average_players)) }
                            td .n { (percent(map.share)) }
                        }
                    }
                }
            } }
        }
    };
    Ok(Page::new(text!("maps-heading"), body))
}

pub(super) async fn page(State(context): State<Arc<WebContext>>, Path(Segment(name)): Path<Segment>) -> PageResult {
    let map = context.ask(requests::Map { map: name.clone() }).await?;
    let overview = overview(&context).await?;
    let filter = ServerFilter { map: Some(name.clone()), ..ServerFilter::default() };
    let servers = busiest_servers(&context, filter, SERVERS, true).await?;
    let body = html! {
        h1 { (rich_text!("map-title", name = names::plain(&name))) }
        dl .figures {
            div { dt { (text!("map-players-now")) } dd { (count(map.players_online)) } }
            div { dt { (text!("map-servers-now")) } dd { (count(map.servers_online)) } }
        }
        h2 { (text!("map-weeks")) }
        (week_chart("hours", &text!("map-hours-title"), &text!("player-hours-unit"), &hours(&map), High::Large, &overview.week))
        div #weeks { (weeks(&map.weeks)) }
        h2 { (text!("map-servers-now")) }
        (server_table::table_of_map(&text!("map-servers-caption"), &servers))
    };
    let description = text!("map-description", name = name.as_str()).into_owned();
    let about = About { description: Some(description), path: Some(map_path(&name)), ..About::default() };
    Ok(Page::new(text!("map-title", name = name.as_str()), body).with(about))
}

fn player_hours(week: &MapWeekView) -> f64 {
    week.average_players * week.minutes / 60.0
}

fn hours(map: &MapView) -> WeekValues {
    map.weeks.iter().filter_map(|week| Some((parse_week_label(&week.week).ok()?, player_hours(week)))).collect()
}

fn weeks(weeks: &[MapWeekView]) -> Markup {
    html! {
        @if weeks.is_empty() { p { (text!("map-none-yet")) } } @else {
            div .scroll tabindex="0" role="region" aria-label=(text!("map-weeks")) { table {
                caption { (text!("map-weeks-caption")) }
                thead {
                    tr {
                        th scope="col" { (text!("week")) } th scope="col" .n { (text!("servers-heading")) } th scope="col" .n { (text!("hours")) }
                        th scope="col" .n { (text!("mean-players")) } th scope="col" .n { (text!("map-player-hours")) }
                        th scope="col" .n { (text!("map-share")) }
                    }
                }
                tbody {
                    @for week in weeks {
                        tr {
                            td .week title=(week.week) { (short_days(&week.week)) }
                            td .n { (count(week.servers)) }
                            td .n { (tenths(week.minutes / 60.0)) }
                            td .n { (tenths(week.average_players)) }
                            td .n { (tenths(player_hours(week))) }
                            td .n { (percent(week.share)) }
                        }
                    }
                }
            } }
        }
    }
}
