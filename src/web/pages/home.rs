//! The first page: players online, busiest servers, leaders of the week, closed weeks.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use futures_util::future::join_all;
use maud::{Markup, html};
use tokio::time::timeout;

use super::boards;
use super::format::{count, ranking};
use super::layout::{About, Page, PageResult};
use super::online;
use super::resolution::Resolution;
use super::server_table::{self, game_path};
use super::{busiest_servers, names, overview};
use crate::api::{ServerFilter, requests};
use crate::model::Ranking;
use crate::model::scope::Scope;
use crate::model::view::Overview;
use crate::model::view::board::WindowPhase;
use crate::web::context::WebContext;

const BUSIEST_SERVERS: u32 = 10;
const GAMES_WITH_LEADERS: usize = 4;
const LEADERS: u32 = 5;

/// How long the page waits for the leaders.
const LEADERS_WAIT_MAX: Duration = Duration::from_millis(300);

pub(super) async fn page(State(context): State<Arc<WebContext>>) -> PageResult {
    let overview = overview(&context).await?;
    let busiest = busiest_servers(&context, ServerFilter::default(), BUSIEST_SERVERS).await?;
    let series = online::series(&context, None, None).await?;
    let leaders = overview.games.iter().take(GAMES_WITH_LEADERS).map(async |game| {
        let board = boards::top(&context, Scope::Game(game.name.clone()), None, Ranking::Clq1, LEADERS);
        // After a start, boards are in preparation for some seconds: the page does not wait for them.
        Some((game.name.clone(), timeout(LEADERS_WAIT_MAX, board).await.ok()?.ok()?))
    });
    let leaders: Vec<_> = join_all(leaders).await.into_iter().flatten().collect();
    let windows = context.ask_shared(&requests::Windows { bytes: false }).await?;
    let closed = windows.iter().filter(|window| window.kind == "week" && window.phase == WindowPhase::Closed);
    let closed: Vec<String> = closed.map(|window| window.window.window.clone()).collect();
    let body = html! {
        h1 { (context.identity.title) }
        p .soft { (context.identity.description) }
        div #figures data-part { (figures(&overview)) }
        section #favourites {}
        (online::charts(series.as_ref(), None, None, &[Resolution::TenMinutes, Resolution::Hours]))
        h2 { "Busiest servers" }
        div #busiest data-part { (server_table::table("Servers with most players now", &busiest)) }
        p { a href="/servers?order=players" { "All servers" } }
        h2 { "Leaders of week " (overview.week) }
        p .soft {
            "Provisional until the week ends. "
            @if let Some(share) = series.and_then(|series| series.week_coverage) { (boards::coverage(share)) }
            (ranking(Ranking::Clq1).0) ": " (ranking(Ranking::Clq1).1) " while playing."
        }
        div .grid {
            @for (game, board) in &leaders {
                section {
                    h3 { a href=(game_path(game)) { (names::game(game)) } }
                    (board.table(&Default::default()))
                }
            }
        }
        @if leaders.is_empty() { p { "None yet, or still in preparation after a start." } }
        h2 { "Closed weeks" }
        @if closed.is_empty() { p { "No week has been closed yet." } }
        @for week in &closed {
            h3 { (week) }
            ul .tabs {
                @for game in overview.games.iter().take(GAMES_WITH_LEADERS) {
                    li { a href={ (game_path(&game.name)) "?window=" (week) "#boards" } { (names::game(&game.name)) } }
                }
            }
        }
    };
    let about = About { live: Some("/api/v1/live".to_owned()), ..About::default() };
    Ok(Page { title: None, ..Page::new("", body) }.with(about))
}

fn figures(overview: &Overview) -> Markup {
    html! {
        dl .figures {
            div { dt { "Players online" } dd { (count(overview.players_online)) } }
            div { dt { "Servers online" } dd { (count(overview.servers_online)) } }
            div { dt { "Known servers" } dd { (count(overview.servers)) } }
            div { dt { "Known players" } dd { (count(overview.players_known)) } }
        }
    }
}
