//! The first page: how many play what and where, who leads, closed weeks.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use futures_util::future::join_all;
use maud::{Markup, html};
use tokio::time::timeout;

use super::boards;
use super::format::{count, ranking, ranking_meaning, short_days, time};
use super::layout::{About, Page, PageResult, site_description, site_title};
use super::online;
use super::resolution::Resolution;
use super::server_table::{self, game_path};
use super::{busiest_servers, names, overview};
use crate::api::{ServerFilter, requests};
use crate::model::Ranking;
use crate::model::scope::Scope;
use crate::view::board::WindowView;
use crate::view::{Overview, PublicServer, ServerSummary};
use crate::web::context::WebContext;
use crate::web::texts::{rich_text, text};

/// Servers online that are looked at. Anyone can invent servers with many players, 64 at each address.
const CANDIDATES: u32 = 1_000;
const BUSIEST_SERVERS: usize = 10;
const GAMES: usize = 8;
const GAMES_WITH_LEADERS: usize = 4;
const LEADERS: u32 = 5;
const WINNERS: u32 = 3;
const MOVERS: usize = 8;

/// How long the page waits for a board.
const LEADERS_WAIT_MAX: Duration = Duration::from_millis(300);

pub(super) async fn page(State(context): State<Arc<WebContext>>) -> PageResult {
    let overview = overview(&context).await?;
    let windows = context.ask_shared(&requests::Windows { bytes: false }).await?;
    let closed = windows.iter().filter(|window| window.is_closed_week());
    let closed: Vec<&WindowView> = closed.map(|window| &window.window).collect();
    let filter = ServerFilter { greylisted: Some(false), ..ServerFilter::default() };
    let busiest = busiest_servers(&context, filter, CANDIDATES, false).await?;
    let busiest = settled(busiest, context.front_page_days_min, !closed.is_empty());
    let shown = &busiest[..busiest.len().min(BUSIEST_SERVERS)];
    let series = online::series(&context, None, None).await?;
    let status = context.status().await?;
    let silent_since_ms = status.daemon.as_ref().and_then(|daemon| daemon.public.silent_since_ms);
    let leaders = overview.games.iter().take(GAMES_WITH_LEADERS).map(async |game| {
        // After a start, boards are in preparation for some seconds: the page does not wait for them.
        let leaders = boards::leaders(&context, &game.name, &windows, overview.now_ms, LEADERS, LEADERS_WAIT_MAX);
        Some((game.name.clone(), leaders.await?))
    });
    let leaders: Vec<_> = join_all(leaders).await.into_iter().flatten().collect();
    let mut movers: Vec<_> =
        leaders.iter().flat_map(|(game, of)| of.movers.iter().map(move |mover| (game, mover))).collect();
    movers.sort_by_key(|(_, mover)| mover.order());
    movers.truncate(MOVERS);
    let closed_weeks = closed_weeks(&context, &overview, &closed).await;
    let (name, unit) = ranking(Ranking::Clq1);
    let body = html! {
        h1 { (site_title(&context.identity)) }
        p .soft { (site_description(&context.identity)) }
        div #silence data-part {
            @if let Some(since_ms) = silent_since_ms {
                p { strong { (rich_text!("home-silent", since = time(since_ms))) } }
            }
        }
        div #figures data-part { (figures(&overview)) }
        section #favourites {}
        div .sides {
            section {
                h2 { (text!("home-busiest")) }
                div #busiest data-part {
                    (server_table::short_table(&text!("home-busiest-caption"), shown))
                }
                p { a href="/servers?order=players" { (text!("home-all-servers")) } }
            }
            section {
                h2 { (text!("home-played")) }
                (games(&overview))
            }
        }
        h2 { (text!("home-leaders", week = short_days(&overview.week))) }
        p .soft {
            (text!("home-provisional")) " "
            @if let Some(share) = series.as_ref().and_then(|series| series.week_coverage) { (boards::coverage(share)) }
            (text!("home-unit", ranking = name, unit = unit)) " " (ranking_meaning(Ranking::Clq1).0)
        }
        div .grid .four {
            @for (game, of) in &leaders {
                section {
                    h3 { a href=(game_path(game)) { (names::game(game)) } }
                    (of.board.table(&Default::default()))
                }
            }
        }
        @if leaders.is_empty() { p { (text!("home-no-leaders")) } }
        @if !movers.is_empty() {
            h2 { (text!("home-changed")) }
            ul .news {
                @for (game, mover) in &movers {
                    li { (mover.text(&html! { a href=(game_path(game)) { (names::game(game)) } })) }
                }
            }
        }
        h2 { (text!("home-over-time")) }
        (online::charts(series.as_ref(), None, None, &[Resolution::TenMinutes, Resolution::Hours]))
        (closed_weeks)
    };
    let about = About { live: Some("/api/v1/live".to_owned()), ..About::default() };
    Ok(Page { title: None, ..Page::new("", body) }.with(about))
}

/// The winners of the newest closed week, and a line for each older one.
async fn closed_weeks(context: &WebContext, overview: &Overview, closed: &[&WindowView]) -> Markup {
    let [newest, older @ ..] = closed else {
        return html! { h2 { (text!("home-closed")) } p { (text!("home-no-closed")) } };
    };
    let games = || overview.games.iter().take(GAMES_WITH_LEADERS).map(|game| &game.name);
    let winners = join_all(games().map(async |game| {
        let scope = Scope::Game(game.clone());
        let board = boards::top(context, scope, Some(&newest.window), Ranking::Clq1, WINNERS);
        timeout(LEADERS_WAIT_MAX, board).await.ok()?.ok()
    }));
    let winners = winners.await;
    let link = |game: &str, week: &WindowView| {
        html! { a href={ (game_path(game)) "?window=" (week.window) "#boards" } { (names::game(game)) } }
    };
    html! {
        h2 { (text!("home-winners", week = short_days(&newest.window))) }
        div .grid .four {
            @for (game, board) in games().zip(&winners) {
                section {
                    h3 { (link(game, newest)) }
                    @if let Some(board) = board { (board.list()) }
                }
            }
        }
        @if !older.is_empty() {
            details {
                summary { (text!("home-older-weeks")) }
                @for week in older {
                    ul .tabs {
                        li .week { (short_days(&week.window)) }
                        @for game in games() { li { (link(game, week)) } }
                    }
                }
            }
        }
    }
}

/// Servers that were seen on so many days and, once a week has been closed, have a rank: invented ones are new. Before that,
/// all of them, if there is no such server, because the site is new itself.
fn settled(servers: Vec<ServerSummary>, days_min: u32, has_closed_week: bool) -> Vec<ServerSummary> {
    let is_settled =
        |server: &PublicServer| server.days_seen >= days_min && (!has_closed_week || server.rank.is_some());
    match has_closed_week || servers.iter().any(|server| is_settled(&server.public)) {
        true => servers.into_iter().filter(|server| is_settled(&server.public)).collect(),
        false => servers,
    }
}

/// The games with most players.
fn games(overview: &Overview) -> Markup {
    html! {
        table {
            caption { span .unseen { (text!("home-played-caption")) } }
            thead { tr { th scope="col" { (text!("game")) } th scope="col" .n { (text!("player-count")) } th scope="col" .n { (text!("servers-heading")) } } }
            tbody {
                @for game in overview.games.iter().take(GAMES) {
                    tr {
                        td .name { (names::game_badge(&game.name, None)) " " a href=(game_path(&game.name)) { (names::game(&game.name)) } }
                        td .n { (count(game.players_online)) }
                        td .n { (count(game.servers_online)) }
                    }
                }
            }
        }
        @if overview.games.is_empty() { p { (text!("home-no-server")) } }
        @if overview.games.len() > GAMES { p { a href="/games" { (text!("home-all-games")) } } }
    }
}

fn figures(overview: &Overview) -> Markup {
    html! {
        dl .figures {
            div { dt { (text!("home-players-online")) } dd { (count(overview.players_online)) } }
            div { dt { (text!("home-servers-online")) } dd { (count(overview.servers_online)) } }
            div { dt { (text!("home-known-servers")) } dd { (count(overview.servers)) } }
            div { dt { (text!("home-known-players")) } dd { (count(overview.players_known)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_servers_do_not_fill_the_first_page() {
        let server = |key: u32, days_seen: u32, rank: Option<u32>| ServerSummary {
            public: PublicServer { key, days_seen, rank, ..PublicServer::default() },
            ..ServerSummary::default()
        };
        let shown = |servers: &[ServerSummary], has_closed_week| {
            let shown = settled(servers.to_vec(), 2, has_closed_week);
            shown.iter().map(|server| server.public.key).collect::<Vec<_>>()
        };
        let servers = [server(1, 1, None), server(2, 2, None), server(3, 70, Some(1)), server(4, 1, Some(2))];
        assert_eq!(shown(&servers, false), [2, 3]);
        assert_eq!(shown(&servers, true), [3]);
        assert_eq!(shown(&servers[..1], false), [1], "the site is new");
        assert_eq!(shown(&servers[..1], true), [] as [u32; 0]);
    }
}
