//! The list of servers: filters, orders and pages.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use maud::{Markup, html};
use serde::Deserialize;

use super::format::count;
use super::layout::{Page, PageResult};
use super::{most_played, names, overview, server_table};
use crate::api::ServerFilter;
use crate::api::requests::{self, ServerPage};
use crate::geo;
use crate::model::server_page::ServerOrder;
use crate::model::shown_text::shown_name;
use crate::view::{CountryCount, GroupOverview, Overview};
use crate::web::context::WebContext;
use crate::web::query;
use crate::web::texts::text;

const SERVERS: u32 = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    game: String,
    map: String,
    tag: String,
    country: String,
    text: String,
    /// `online` or empty.
    state: String,
    order: Option<String>,
    after: Option<String>,
}

pub(super) async fn page(State(context): State<Arc<WebContext>>, uri: Uri) -> PageResult {
    let parameters: Parameters = query::parse(&uri)?;
    let order = parameters.order.as_deref().map(query::server_order).transpose()?.unwrap_or(ServerOrder::Players);
    let after = parameters.after.as_deref().map(query::server_cursor).transpose()?;
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let filter = ServerFilter {
        game: given(&parameters.game),
        map: given(&parameters.map),
        tag: given(&parameters.tag),
        country: given(&parameters.country).filter(|_| geo::is_set()),
        online: (parameters.state == "online").then_some(true),
        text: given(&parameters.text),
        ..ServerFilter::default()
    };
    let request = requests::ServersPage { filter, after, count: SERVERS, order, recent: true };
    let ServerPage { servers, next } = context.ask(request).await?;
    let overview = overview(&context).await?;
    let countries = match geo::is_set() {
        true => context.ask_shared(&requests::ServersCountries {}).await?,
        false => Arc::default(),
    };
    let body = html! {
        h1 { (text!("servers-heading")) }
        (filters(&parameters, order, &overview, &countries))
        (server_table::table(&caption(order), &servers))
        @if let Some(next) = next {
            p { a rel="next" href={ "/servers?" (kept(&parameters, order)) "after=" (names::value(&next.to_string())) } { (text!("servers-further")) } }
        }
    };
    Ok(Page::new(text!("servers-heading"), body))
}

fn caption(order: ServerOrder) -> Cow<'static, str> {
    match order {
        ServerOrder::Added => text!("servers-caption-added"),
        ServerOrder::Players => text!("servers-caption-players"),
        ServerOrder::Rank => text!("servers-caption-rank"),
        ServerOrder::Name => text!("servers-caption-name"),
    }
}

/// The order as an option of a list.
fn order_text(order: ServerOrder) -> Cow<'static, str> {
    match order {
        ServerOrder::Added => text!("servers-order-added"),
        ServerOrder::Players => text!("servers-order-players"),
        ServerOrder::Rank => text!("servers-order-rank"),
        ServerOrder::Name => text!("servers-order-name"),
    }
}

/// The parameters of the list, for a link to its next page.
fn kept(parameters: &Parameters, order: ServerOrder) -> String {
    let Parameters { game, map, tag, country, text, state, .. } = parameters;
    let all = [("game", game), ("map", map), ("tag", tag), ("country", country), ("text", text), ("state", state)];
    let given = all.into_iter().filter(|(_, value)| !value.is_empty());
    let texts = given.map(|(name, value)| format!("{name}={}&", names::value(value)));
    texts.chain([format!("order={}&", order.name())]).collect()
}

/// A value of a filter, its text, and how many servers online have it.
type FilterOption = (String, String, u64);

/// The groups with the most players, and the one that is chosen.
fn options(groups: &[GroupOverview], chosen: &str, text: impl Fn(&str) -> String) -> Vec<FilterOption> {
    let option = |group: &GroupOverview| (group.name.clone(), text(&group.name), group.servers_online);
    let shown = most_played(groups);
    let others = groups[shown.len()..].iter().filter(|group| group.name == chosen);
    let mut options: Vec<FilterOption> = shown.iter().chain(others).map(option).collect();
    options.sort_by_key(|(_, text, _)| text.to_lowercase());
    options
}

/// A list of the values that servers online have, with their number.
fn choice(name: &str, label: &str, chosen: &str, options: &[FilterOption]) -> Markup {
    let is_listed = options.iter().any(|(value, ..)| value == chosen);
    html! {
        div {
            label for={ "filter-" (name) } { (label) }
            select id={ "filter-" (name) } name=(name) {
                option value="" selected[chosen.is_empty()] { (text!("servers-all")) }
                @if !chosen.is_empty() && !is_listed { option value=(chosen) selected { (shown_name(chosen)) " (0)" } }
                @for (value, text, servers) in options {
                    option value=(value) selected[value == chosen] { (text) " (" (count(*servers)) ")" }
                }
            }
        }
    }
}

fn filters(parameters: &Parameters, order: ServerOrder, overview: &Overview, countries: &[CountryCount]) -> Markup {
    let of_countries: Vec<FilterOption> = countries
        .iter()
        .map(|CountryCount { country, name, servers_online }| {
            (country.clone(), names::country(country, name), *servers_online)
        })
        .collect();
    let field = |name: &str, label: &str, value: &str| {
        html! {
            div {
                label for={ "filter-" (name) } { (label) }
                input id={ "filter-" (name) } name=(name) value=(value) maxlength="256" size="14";
            }
        }
    };
    html! {
        form .filters action="/servers" {
            (field("text", &text!("servers-contains"), &parameters.text))
            (choice("game", &text!("game"), &parameters.game, &options(&overview.games, &parameters.game, |game| names::plain_game(game, None))))
            (field("map", &text!("map"), &parameters.map))
            (choice("tag", &text!("tag"), &parameters.tag, &options(&overview.tags, &parameters.tag, shown_name)))
            @if !countries.is_empty() { (choice("country", &text!("country"), &parameters.country, &of_countries)) }
            div {
                label for="filter-state" { (text!("servers-state")) }
                select #filter-state name="state" {
                    option value="" selected[parameters.state != "online"] { (text!("servers-all")) }
                    option value="online" selected[parameters.state == "online"] { (text!("servers-online")) }
                }
            }
            div {
                label for="filter-order" { (text!("servers-order")) }
                select #filter-order name="order" {
                    @for other in ServerOrder::ALL { option value=(other.name()) selected[other == order] { (order_text(other)) } }
                }
            }
            button { (text!("show")) }
        }
    }
}
