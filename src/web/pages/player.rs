//! The page of a player: current server, sessions, weeks and positions, best positions.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use maud::{Markup, html};
use serde::Deserialize;
use tokio::time::timeout;

use super::banners;
use super::chart::{High, WeekValues, week_chart};
use super::format::{ago, count, day, duration, ranking, score, short_days};
use super::layout::{About, Page, PageError};
use super::server_table::{game_path, server_path};
use super::{boards, names, overview, sessions};
use crate::api::requests;
use crate::board::Score;
use crate::board::score_unit::display_score;
use crate::model::Ranking;
use crate::model::calendar::{HOUR_MS, parse_week_label};
use crate::model::scope::Scope;
use crate::view::board::{BoardsSelector, PlayerSelector, StandingView, StandingsView, WindowSummary};
use crate::view::{BestView, PlayerNameView, PlayerView, PlayerWeekView};
use crate::web::answer::moved_to;
use crate::web::banners::{BannerFormat, BannerSize, banner_path};
use crate::web::context::WebContext;
use crate::web::query::{self, Number, Skip};
use crate::web::texts::{grouped, rich_text, text};

/// Players of other games who are named.
const SAME_NAMES_MAX: usize = 20;

/// Best positions before those that are folded.
const BEST_SHOWN: usize = 10;

/// Servers whose ratings are drawn.
const RATING_CHARTS_MAX: usize = 4;

/// How long the page waits for the boards of the game, if they are not in memory.
const BOARDS_WAIT_MAX: Duration = Duration::from_millis(300);

#[derive(Debug, Deserialize)]
struct Parameters {
    /// Number of rows of weeks on the previous pages.
    skip: Option<Skip>,
}

pub(super) async fn page(
    State(context): State<Arc<WebContext>>,
    Path(key): Path<String>,
    uri: Uri,
) -> Result<Response, PageError> {
    let Parameters { skip } = query::parse(&uri)?;
    let skip: u32 = skip.map_or(0, Number::to);
    let player_key = query::player_key(&key)?;
    let player = context.ask(requests::PlayerShow { player_key, skip }).await?;
    if player.player_key != player_key {
        return Ok(moved_to(&format!("/players/{}", player.player_key)));
    }
    let sessions = requests::PlayerSessions { player: PlayerSelector::Key(player_key), count: sessions::OF_PLAYER_MAX };
    let sessions = if skip == 0 { context.ask(sessions).await? } else { Vec::new() };
    let companions = requests::PlayerCompanions { player_key, count: sessions::COMPANIONS };
    let companions = if skip == 0 { context.ask(companions).await? } else { Vec::new() };
    let named = context.ask(requests::PlayerNamed { name: player.name.clone() }).await?;
    let others = named.into_iter().filter(|other| other.player_key != player.player_key);
    let same_name: Vec<PlayerNameView> = others.take(SAME_NAMES_MAX).collect();
    let overview = overview(&context).await?;
    let windows = context.ask_shared(&requests::Windows { bytes: false }).await?;
    let standings = if skip == 0 { standings(&context, &player).await } else { Vec::new() };
    // Sums of only some of the rows would be misleading.
    let is_complete = skip == 0 && player.weeks_more == 0;
    let name = names::plain_player(&player.display, &player.name);
    let title = text!("player-title", name = name.as_str()).into_owned();
    let body = html! {
        h1 data-favourite={ "/players/" (player_key) } { (names::player(&player.display, &player.name)) }
        (rank(&player, &standings))
        dl .figures {
            div { dt { (text!("game")) } dd { a href=(game_path(&player.game)) { (names::game(&player.game)) } } }
            @match player.last_seen_ms {
                _ if !player.online_on.is_empty() => div { dt { (text!("last-seen")) } dd { (text!("player-playing-now")) } },
                Some(last_seen_ms) => div { dt { (text!("last-seen")) } dd { (ago(last_seen_ms)) } },
                None => {},
            }
            @if let Some(first_seen_ms) = player.first_seen_ms { div { dt { (text!("player-first-seen")) } dd { (day(first_seen_ms)) } } }
            @if skip == 0 { (favourites(&player)) }
            @if is_complete {
                div { dt { (text!("player-points-counted")) } dd { (grouped(points(&player.weeks))) } }
                div { dt { (text!("player-time-counted")) } dd { (duration(time_ms(&player.weeks))) } }
            }
        }
        @if is_complete { (estimates(&player.weeks)) }
        @if !player.online_on.is_empty() {
            p {
                (rich_text!("player-playing-on", servers = html! {
                    @for url in &player.online_on { a href=(server_path(url)) { (server_name(&player, url)) } " " }
                }))
            }
        }
        @if !player.aliases.is_empty() {
            p {
                (rich_text!("player-merged", names = html! {
                    @for alias in &player.aliases { span .badge { (names::plain(alias)) } " " }
                }))
            }
        }
        @if !same_name.is_empty() {
            p {
                (rich_text!("player-same-name", games = html! {
                    @for other in &same_name { a href={ "/players/" (other.player_key) } { (names::game_badge(&other.game, None)) } " " }
                }))
            }
        }
        (compare_form(player_key))
        @if skip == 0 {
            h2 { (text!("sessions")) }
            (sessions::of_player(&sessions, player_key))
            (sessions::companions(&companions))
        }
        h2 { (text!("player-weeks")) }
        (charts(&player, &overview.week))
        (position_charts(&player, &overview.week))
        p #weeks .soft { (text!("player-weeks-kept")) }
        (weeks(&player))
        h2 { (text!("player-best-positions")) }
        (best(&player, &windows))
        (banners::section(&context.public_url, &format!("/players/{player_key}"), &title))
    };
    let description = text!("player-description", name = name, game = names::plain_game(&player.game, None));
    let path = format!("/players/{player_key}");
    let card = Some(banner_path(&path, BannerSize::Card, BannerFormat::Png));
    let description = Some(description.into_owned());
    let about = About { description, path: Some(path), card, is_hidden: skip > 0, ..About::default() };
    Ok(Page::new(title, body).with(about).into_response())
}

/// The positions on the boards of the game in the running week and in the last closed one, of those that are in memory.
pub(super) async fn standings(context: &WebContext, player: &PlayerView) -> Vec<StandingsView> {
    let windows = context.ask_shared(&requests::Windows { bytes: false }).await.unwrap_or_default();
    let closed = windows.iter().find(|window| window.is_closed_week()).map(|week| week.window.window.clone());
    let asked = iter::once(None).chain(closed.map(Some)).map(async |window| {
        let boards = BoardsSelector { scope: Scope::Game(player.game.clone()), window, at_ms: None };
        let player = PlayerSelector::Key(player.player_key);
        let asked = context.ask(requests::Standings { boards, player, rankings: Vec::new() });
        timeout(BOARDS_WAIT_MAX, asked).await.ok()?.ok()
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Position and score of each ranking of the game, by week.
fn rank(player: &PlayerView, standings: &[StandingsView]) -> Markup {
    let is_ranked = standings.iter().flat_map(|week| &week.standings).any(|standing| standing.entry.is_some());
    let game = names::plain_game(&player.game, None);
    html! {
        @if is_ranked {
            h2 { (rich_text!("player-rank", game = names::game(&player.game))) }
            div .scroll tabindex="0" role="region" aria-label=(text!("player-rank", game = game.as_str())) {
                table .narrow {
                    caption { span .unseen { (text!("player-rank", game = game.as_str())) } }
                    thead {
                        tr {
                            th scope="col" { (text!("player-ranking")) }
                            @for week in standings {
                                th scope="col" .n { @if week.window.closed { (short_days(&week.window.window)) } @else { (text!("player-this-week")) } }
                                th scope="col" .n .wide-only[week.window.closed] { (text!("score")) }
                            }
                        }
                    }
                    tbody {
                        @for of in Ranking::ALL {
                            tr {
                                th scope="row" { abbr title=(ranking(of).1) { (ranking(of).0) } }
                                @for week in standings { (standing(player, of, week)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `3 of 625`, with a link to that place of the board, and the score.
fn standing(player: &PlayerView, of: Ranking, week: &StandingsView) -> Markup {
    let found = week.standings.iter().find(|standing| standing.ranking == of);
    html! {
        @if let Some(StandingView { size, entry: Some(entry), .. }) = found {
            @let query = format!("?window={}&ranking={}&player={}#boards", week.window.window, of.name(), names::value(&player.name));
            td .n { a href={ (game_path(&player.game)) (query) } { (text!("of-most", count = entry.position, most = *size)) } }
            td .n .wide-only[week.window.closed] { (score(of, entry.score)) }
        } @else { td .n { "-" } td .n .wide-only[week.window.closed] { "-" } }
    }
}

/// The form that leads to the comparison with another player.
pub(super) fn compare_form(player_key: u32) -> Markup {
    html! {
        form .filters action="/compare" {
            input type="hidden" name="a" value=(player_key);
            div { label for="compare-with" { (text!("player-compare-with")) } input #compare-with name="b" maxlength="100" required; }
            button { (text!("player-compare")) }
        }
    }
}

/// The best position of the newest week, and the server with most time.
fn favourites(player: &PlayerView) -> Markup {
    let newest = player.weeks.first().map_or("", |week| &week.week);
    let of_newest = player.weeks.iter().take_while(|week| week.week == newest);
    let best = of_newest
        .flat_map(|week| week.positions.iter().map(move |(of, position)| (*position, *of, week)))
        .min_by_key(|(position, of, _)| (*position, *of));
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for week in &player.weeks {
        *times.entry(&week.server).or_default() += week.time_ms;
    }
    let most = times.into_iter().max_by_key(|(_, time_ms)| *time_ms);
    html! {
        @if let Some((position, of, week)) = best {
            div {
                dt { (text!("player-best-of-week", week = short_days(&week.week))) }
                dd { a href={ (server_path(&week.server)) "?window=" (week.week) "&ranking=" (of.name()) "#boards" } {
                    (rich_text!("player-position", position = position, ranking = ranking(of).0, server = server_name(player, &week.server)))
                } }
            }
        }
        @if let Some((server, _)) = most { div { dt { (text!("player-most-on")) } dd { a href=(server_path(server)) { (server_name(player, server)) } } } }
    }
}

fn points(weeks: &[PlayerWeekView]) -> i64 {
    weeks.iter().map(|week| week.points).sum()
}

fn time_ms(weeks: &[PlayerWeekView]) -> i64 {
    weeks.iter().map(|week| week.time_ms as i64).sum()
}

/// Points and time with what no scan has seen, if that is more than was counted.
fn estimates(weeks: &[PlayerWeekView]) -> Markup {
    let estimates = || weeks.iter().map(|week| week.estimates);
    let points_est = estimates().map(|of| of.points_est).sum::<f64>().round() as i64;
    let time_est_ms = estimates().map(|of| of.time_connected_ms as i64).sum();
    // Errors of time are independent of each other; those of points have much in common on one server.
    let root_of_squares = |errors: &mut dyn Iterator<Item = f64>| errors.map(|error| error * error).sum::<f64>().sqrt();
    let time_error_ms = root_of_squares(&mut estimates().map(|of| of.time_connected_error_ms as f64)).ceil() as i64;
    let mut by_server: BTreeMap<&str, f64> = BTreeMap::new();
    weeks.iter().for_each(|week| *by_server.entry(&week.server).or_default() += week.estimates.points_est_error);
    let points_error = root_of_squares(&mut by_server.into_values()).ceil() as i64;
    let (has_points, has_time) = (points_est > points(weeks), time_est_ms > time_ms(weeks));
    html! {
        @if has_points || has_time {
            details {
                summary { (text!("player-estimates")) }
                p .soft { (text!("player-estimated-meaning")) }
                dl .figures {
                    @if has_points { div { dt { (text!("player-points-estimated")) } dd { (grouped(points_est)) " \u{b1} " (grouped(points_error)) } } }
                    @if has_time { div { dt { (text!("player-time-estimated")) } dd { (duration(time_est_ms)) " \u{b1} " (duration(time_error_ms)) } } }
                }
            }
        }
    }
}

/// The name of a server of the player.
pub(super) fn server_name(player: &PlayerView, url: &str) -> Markup {
    names::hostname(hostname(player, url), url)
}

/// Empty: it is not known.
fn hostname<'p>(player: &'p PlayerView, url: &str) -> &'p str {
    player.servers.iter().find(|server| server.url == url).map_or("", |server| &server.hostname)
}

/// Hours played in each week, and the ratings on the servers with most weeks.
fn charts(player: &PlayerView, running_week: &str) -> Markup {
    let mut hours: WeekValues = BTreeMap::new();
    let mut ratings: BTreeMap<&str, WeekValues> = BTreeMap::new();
    for week in &player.weeks {
        let Ok(key) = parse_week_label(&week.week) else { continue };
        // The sum over some servers would be misleading.
        if !player.weeks_partial.contains(&week.week) {
            *hours.entry(key).or_default() += week.time_ms as f64 / HOUR_MS as f64;
        }
        if week.elo_rounds > 0 {
            ratings.entry(&week.server).or_default().insert(key, week.elo);
        }
    }
    let mut ratings: Vec<(&str, WeekValues)> = ratings.into_iter().collect();
    ratings.sort_by_key(|(_, values)| Reverse(values.len()));
    let ratings = ratings.iter().take(RATING_CHARTS_MAX).enumerate();
    html! {
        div .charts {
            (week_chart("hours", &text!("player-hours-played"), &text!("player-hours-unit"), &hours, High::Large, running_week))
            @for (n, (server, values)) in ratings {
                @let title = ranking_on(Ranking::Elo, player, server);
                (week_chart(&format!("elo-{n}"), &title, &text!("rating"), values, High::LargeFromSmallest, running_week))
            }
        }
    }
}

/// `ELO on Warfare`.
fn ranking_on(of: Ranking, player: &PlayerView, server: &str) -> Cow<'static, str> {
    text!(
        "player-ranking-on",
        ranking = ranking(of).0,
        server = names::plain_hostname(hostname(player, server), server)
    )
}

/// The position in each ranking by week, on the server with most weeks.
fn position_charts(player: &PlayerView, running_week: &str) -> Markup {
    let mut weeks: BTreeMap<&str, usize> = BTreeMap::new();
    player.weeks.iter().for_each(|week| *weeks.entry(&week.server).or_default() += 1);
    let Some((server, _)) = weeks.into_iter().max_by_key(|(_, weeks)| *weeks) else { return html! {} };
    let positions = |of: Ranking| -> WeekValues {
        let on_server = player.weeks.iter().filter(|week| week.server == server);
        let position =
            |week: &PlayerWeekView| Some((parse_week_label(&week.week).ok()?, f64::from(*week.positions.get(&of)?)));
        on_server.filter_map(position).collect()
    };
    let charts: Vec<Markup> = Ranking::ALL
        .into_iter()
        .map(|of| {
            let (id, title) = (format!("positions-{}", of.name()), ranking_on(of, player, server));
            week_chart(&id, &title, &text!("server-ranks-unit"), &positions(of), High::Small, running_week)
        })
        .filter(|chart| !chart.0.is_empty())
        .collect();
    html! {
        @if !charts.is_empty() {
            details {
                summary { (text!("player-more-rankings")) }
                div .charts { @for chart in &charts { (chart) } }
            }
        }
    }
}

fn weeks(player: &PlayerView) -> Markup {
    let PlayerView { player_key, weeks, weeks_more, weeks_next, .. } = player;
    html! {
        div .scroll tabindex="0" role="region" aria-label=(text!("player-weeks")) {
            table {
                caption { (text!("player-weeks-caption")) }
                thead {
                    tr {
                        th scope="col" { (text!("week")) } th scope="col" { (text!("server")) }
                        @for of in Ranking::ALL { th scope="col" .n { abbr title=(ranking(of).1) { (ranking(of).0) } } th scope="col" .n { "#" } }
                        th scope="col" .n .wide-only { abbr title=(text!("player-sure-rounds-meaning")) { (text!("player-sure-rounds")) } }
                    }
                }
                tbody {
                    @for week in weeks {
                        tr {
                            td .week title=(week.week) { (short_days(&week.week)) }
                            td .name { a href={ (server_path(&week.server)) "?window=" (week.week) "#boards" } { (server_name(player, &week.server)) } }
                            @for of in Ranking::ALL {
                                td .n { (ranked_score(week, of)) }
                                td .n { @match week.positions.get(&of) { Some(position) => (count(*position)), None => "-" } }
                            }
                            td .n .wide-only { (text!("of-most", count = week.elo_rounds_sure, most = week.elo_rounds)) }
                        }
                    }
                }
            }
        }
        @if weeks.is_empty() { p { (text!("player-no-weeks")) } }
        @if let Some(next) = weeks_next {
            p { a rel="next" href={ "/players/" (player_key) "?skip=" (next) "#weeks" } { (text!("player-more-weeks", count = *weeks_more)) } }
        }
    }
}

/// The score as people read it; without a position there is none.
pub(super) fn ranked_score(week: &PlayerWeekView, of: Ranking) -> String {
    if week.positions.contains_key(&of) { score(of, shown_score(week, of)) } else { "-".to_owned() }
}

/// The score in the unit of the ranking.
fn shown_score(week: &PlayerWeekView, ranking: Ranking) -> f64 {
    match ranking {
        Ranking::Clq1 => display_score(ranking, Score(week.clq1 as i64)),
        Ranking::Clq2 => week.clq2 as f64,
        Ranking::Elo => week.elo,
        Ranking::Points => week.points as f64,
        Ranking::Time => week.time_ms as f64 / 1_000.0,
    }
}

fn best(player: &PlayerView, kept: &[WindowSummary]) -> Markup {
    let positions = sorted_best(player);
    let (first, rest) = positions.split_at(positions.len().min(BEST_SHOWN));
    html! {
        @if positions.is_empty() { p { (text!("player-no-positions")) } } @else {
            (best_table(player, kept, &text!("player-best-caption"), first))
            @if !rest.is_empty() { details { summary { (text!("more")) } (best_table(player, kept, &text!("player-more-positions"), rest)) } }
        }
    }
}

/// The best first.
fn sorted_best(player: &PlayerView) -> Vec<&BestView> {
    let mut positions: Vec<_> = player.best.iter().collect();
    positions.sort_by_key(|best| (best.position, Reverse(&best.week)));
    positions
}

/// The first of them, for a frame.
pub(super) fn best_positions(player: &PlayerView, kept: &[WindowSummary]) -> Markup {
    let positions = sorted_best(player);
    best_table(player, kept, &text!("player-best-caption"), &positions[..positions.len().min(BEST_SHOWN)])
}

fn best_table(player: &PlayerView, kept: &[WindowSummary], caption: &str, positions: &[&BestView]) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { th scope="col" .n { "#" } th scope="col" { (text!("player-ranking")) } th scope="col" { (text!("week")) } th scope="col" { (text!("server")) } } }
                tbody {
                    @for best in positions {
                        tr {
                            td .n { (count(best.position)) }
                            td { (ranking(best.ranking).0) }
                            td .week { (boards::week_link(kept, &server_path(&best.server), &best.week, best.ranking)) }
                            td .name { a href=(server_path(&best.server)) { (server_name(player, &best.server)) } }
                        }
                    }
                }
            }
        }
    }
}
