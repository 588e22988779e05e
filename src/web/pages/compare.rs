//! Two players side by side: the weeks and servers that both have, and how often each was ahead.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use futures_util::future::join_all;
use maud::{Markup, html};
use serde::Deserialize;

use super::format::{ago, count, day, ranking as ranking_name, short_days};
use super::layout::{About, Page, PageResult};
use super::player::{compare_form, ranked_score, server_name, standings};
use super::server_table::{game_path, server_path};
use super::{names, search};
use crate::api::requests;
use crate::model::Ranking;
use crate::view::board::StandingsView;
use crate::view::{PlayerNameView, PlayerView, PlayerWeekView};
use crate::web::context::WebContext;
use crate::web::problem::{Problem, ProblemKind};
use crate::web::query::{self, Name, player_key};
use crate::web::texts::{rich_text, text};

/// Rows of weeks and servers that are shown; all that were read are counted.
const ROWS_MAX: usize = 100;

/// Players that are offered if a name does not say which one.
const OFFERED: u32 = 10;

#[derive(Debug, Deserialize)]
struct Parameters {
    /// The key of a player.
    a: Option<String>,
    /// The key of the other one, or a name.
    #[serde(default)]
    b: Name,
}

pub(super) async fn page(State(context): State<Arc<WebContext>>, uri: Uri) -> PageResult {
    let Parameters { a, b: Name(b) } = query::parse(&uri)?;
    let Some(a) = a else {
        let body = html! { h1 { (text!("compare-two")) } p { (text!("compare-search")) } };
        return Ok(Page::new(text!("compare-two"), body).with(About { is_hidden: true, ..About::default() }));
    };
    let a = context.ask(requests::PlayerShow { player_key: player_key(&a)?, skip: 0 }).await?;
    let other = match b.trim() {
        "" => Other::Offered(Vec::new()),
        b => other(&context, &a, b).await?,
    };
    let about = |is_hidden| About { is_hidden, ..About::default() };
    match other {
        Other::Player(b) => {
            let title = text!("compare-both-names", a = plain(&a), b = plain(&b));
            let query = format!("a={}&b={}", a.player_key, b.player_key);
            let standings = [&a, &b].map(|player| standings(&context, player));
            let page = Page::new(title, side_by_side(&a, &b, &join_all(standings).await));
            Ok(page.with(About { query: Some(query), ..about(false) }))
        }
        Other::Offered(players) => {
            let body = html! {
                h1 { (rich_text!("compare-one", player = names::player(&a.display, &a.name))) }
                (compare_form(a.player_key))
                @if !b.trim().is_empty() {
                    @if players.is_empty() { p role="status" { (rich_text!("compare-no-player", name = names::plain(&b))) } }
                    @else { p { (text!("compare-which")) } }
                }
                ul { @for player in &players {
                    li {
                        a href={ "/compare?a=" (a.player_key) "&b=" (player.player_key) } { (names::player(&player.display, &player.name)) }
                        " " (names::game_badge(&player.game, None))
                    }
                } }
            };
            Ok(Page::new(text!("compare-one", player = plain(&a)), body).with(about(true)))
        }
    }
}

/// With whom a player is compared.
enum Other {
    Player(Box<PlayerView>),
    /// The name does not say which player.
    Offered(Vec<PlayerNameView>),
}

/// A key, the whole name of a player of the same game, or a part of a name.
async fn other(context: &WebContext, a: &PlayerView, b: &str) -> Result<Other, Problem> {
    if let Ok(player_key) = b.parse() {
        match context.ask(requests::PlayerShow { player_key, skip: 0 }).await {
            Ok(player) => return Ok(Other::Player(Box::new(player))),
            // A name of digits.
            Err(problem) if problem.kind == ProblemKind::NotFound => (),
            Err(problem) => return Err(problem),
        }
    }
    match context.ask(requests::Player { name: b.to_owned() }).await {
        Ok(named) => {
            if let Some(player) = named.into_iter().find(|player| player.game == a.game) {
                return Ok(Other::Player(Box::new(player)));
            }
        }
        Err(problem) if problem.kind == ProblemKind::NotFound => (),
        Err(problem) => return Err(problem),
    }
    Ok(Other::Offered(search::players(context, b, OFFERED).await?))
}

fn plain(player: &PlayerView) -> String {
    names::plain_player(&player.display, &player.name)
}

/// Weeks on a server that both players have.
type Shared<'p> = (&'p PlayerWeekView, &'p PlayerWeekView);

fn shared<'p>(a: &'p PlayerView, b: &'p PlayerView) -> Vec<Shared<'p>> {
    let of_b: BTreeMap<(&str, &str), &PlayerWeekView> =
        b.weeks.iter().map(|week| ((&week.week[..], &week.server[..]), week)).collect();
    let both = a.weeks.iter().filter_map(|week| Some((week, *of_b.get(&(&week.week[..], &week.server[..]))?)));
    both.collect()
}

/// How often the first, the second and neither was ahead, where both are ranked.
fn ahead(shared: &[Shared<'_>], ranking: Ranking) -> [u64; 3] {
    let mut counts = [0; 3];
    for (a, b) in shared {
        let (Some(a), Some(b)) = (a.positions.get(&ranking), b.positions.get(&ranking)) else { continue };
        counts[match a.cmp(b) {
            Ordering::Less => 0,
            Ordering::Greater => 1,
            Ordering::Equal => 2,
        }] += 1;
    }
    counts
}

/// `standings`: those of both players in the newest weeks.
fn side_by_side(a: &PlayerView, b: &PlayerView, standings: &[Vec<StandingsView>]) -> Markup {
    let shared = shared(a, b);
    let link = |player: &PlayerView| html! { a href={ "/players/" (player.player_key) } { (names::player(&player.display, &player.name)) } };
    let is_partial = a.weeks_more > 0 || b.weeks_more > 0;
    html! {
        h1 { (rich_text!("compare-both-names", a = names::player(&a.display, &a.name), b = names::player(&b.display, &b.name))) }
        div .scroll tabindex="0" role="region" aria-label=(text!("compare-both")) {
            table {
                caption { span .unseen { (text!("compare-both")) } }
                thead { tr { th scope="col" { span .unseen { (text!("compare-what")) } } th scope="col" .name { (link(a)) } th scope="col" .name { (link(b)) } } }
                tbody {
                    tr { th scope="row" { (text!("game")) } @for player in [a, b] { td { a href=(game_path(&player.game)) { (names::game(&player.game)) } } } }
                    tr { th scope="row" { (text!("player-first-seen")) } @for player in [a, b] { td { @if let Some(at_ms) = player.first_seen_ms { (day(at_ms)) } @else { "-" } } } }
                    tr {
                        th scope="row" { (text!("last-seen")) }
                        @for player in [a, b] {
                            td {
                                @if !player.online_on.is_empty() { (text!("player-playing-now")) }
                                @else if let Some(at_ms) = player.last_seen_ms { (ago(at_ms)) }
                                @else { "-" }
                            }
                        }
                    }
                    @for ranking in Ranking::ALL {
                        tr {
                            th scope="row" { (text!("search-rank", ranking = ranking_name(ranking).0)) }
                            @for of_player in standings { td { (position(of_player, ranking)) } }
                        }
                    }
                }
            }
        }
        h2 { (text!("compare-ahead")) }
        @if shared.is_empty() { p { (text!("compare-no-week")) } } @else {
            p .soft {
                (text!("compare-weeks", count = shared.len())) " " (text!("compare-counted"))
                @if is_partial { " " (text!("compare-partial")) }
            }
            div .scroll tabindex="0" role="region" aria-label=(text!("compare-ahead")) {
                table {
                    caption { span .unseen { (text!("compare-ahead-caption")) } }
                    thead { tr { th scope="col" { (text!("player-ranking")) } th scope="col" .n { (names::player(&a.display, &a.name)) } th scope="col" .n { (names::player(&b.display, &b.name)) } } }
                    tbody {
                        @for ranking in Ranking::ALL {
                            @let [first, second, _] = ahead(&shared, ranking);
                            tr {
                                th scope="row" { (ranking_name(ranking).0) }
                                td .n { (better(first > second, count(first))) }
                                td .n { (better(second > first, count(second))) }
                            }
                        }
                    }
                }
            }
            h2 { (text!("compare-by-week")) }
            div .scroll tabindex="0" role="region" aria-label=(text!("compare-by-week")) {
                table {
                    caption { (text!("compare-by-week-caption")) }
                    thead {
                        tr {
                            th scope="col" { (text!("week")) } th scope="col" { (text!("server")) }
                            @for ranking in Ranking::ALL { th scope="col" .n { (ranking_name(ranking).0) } }
                        }
                    }
                    tbody { @for both in shared.iter().take(ROWS_MAX) { (row(a, both)) } }
                }
            }
            @if shared.len() > ROWS_MAX { p .soft { (text!("compare-newest", count = ROWS_MAX)) } }
        }
        (compare_form(a.player_key))
    }
}

/// `3 of 625`: in the running week, on the board of the game.
fn position(standings: &[StandingsView], ranking: Ranking) -> Cow<'static, str> {
    let running = standings.iter().filter(|week| !week.window.closed).flat_map(|week| &week.standings);
    let ranked = running.filter(|standing| standing.ranking == ranking);
    let found = ranked.filter_map(|standing| Some((standing.entry?.position, standing.size))).next();
    found.map_or("-".into(), |(position, size)| text!("of-most", count = position, most = size))
}

fn row(player: &PlayerView, (a, b): &Shared<'_>) -> Markup {
    html! {
        tr {
            td .week title=(a.week) { (short_days(&a.week)) }
            td .name { a href={ (server_path(&a.server)) "?window=" (a.week) "#boards" } { (server_name(player, &a.server)) } }
            @for of in Ranking::ALL {
                @let place = |week: &PlayerWeekView| week.positions.get(&of).copied().unwrap_or(u32::MAX);
                td .n {
                    (better(place(a) < place(b), ranked_score(a, of))) " : "
                    (better(place(b) < place(a), ranked_score(b, of)))
                }
            }
        }
    }
}

fn better(is_better: bool, text: String) -> Markup {
    if is_better {
        html! { strong { (text) } }
    } else {
        html! { (text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::export::EstimatesView;

    fn week(week: &str, server: &str, positions: &[(Ranking, u32)]) -> PlayerWeekView {
        PlayerWeekView {
            week: week.to_owned(),
            server: server.to_owned(),
            measured_ms: 0,
            starts: 0,
            time_ms: 0,
            estimates: EstimatesView { time_est_ms: 0, points_est: 0.0, ..EstimatesView::default() },
            points: 0,
            clq1: 0,
            clq2: 0,
            elo: 1_000.0,
            elo_rounds: 0,
            elo_rounds_sure: 0,
            positions: positions.iter().copied().collect(),
        }
    }

    fn player(player_key: u32, weeks: Vec<PlayerWeekView>) -> PlayerView {
        PlayerView {
            player_key,
            game: "baseq3".to_owned(),
            name: "<i>".to_owned(),
            display: "<i>".to_owned(),
            aliases: Vec::new(),
            first_seen_ms: None,
            last_seen_ms: None,
            online_on: Vec::new(),
            weeks,
            weeks_partial: Vec::new(),
            weeks_more: 0,
            weeks_next: None,
            best: Vec::new(),
            servers: Vec::new(),
        }
    }

    #[test]
    fn only_weeks_on_the_same_server_are_compared() {
        let elo = |position| [(Ranking::Elo, position)];
        let a =
            player(1, vec![week("2026-W48", "s", &elo(2)), week("2026-W47", "s", &elo(9)), week("2026-W47", "t", &[])]);
        let b =
            player(2, vec![week("2026-W48", "s", &elo(1)), week("2026-W47", "t", &elo(3)), week("2026-W46", "s", &[])]);
        let both = shared(&a, &b);
        assert_eq!(
            both.iter().map(|(a, _)| (&a.week[..], &a.server[..])).collect::<Vec<_>>(),
            [("2026-W48", "s"), ("2026-W47", "t")]
        );
        assert_eq!((ahead(&both, Ranking::Elo), ahead(&both, Ranking::Time)), ([0, 1, 0], [0, 0, 0]));
        let page = side_by_side(&a, &b, &[Vec::new(), Vec::new()]).into_string();
        assert!(
            page.contains("1000 : <strong>1000</strong>")
                && page.contains("- : <strong>1000</strong>")
                && !page.contains("<i>"),
            "{page}"
        );
    }
}
