//! Sessions on the pages of players and servers: when somebody played, and who was on a server. Times are UTC.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::format::{count, day_and_time, duration, short_day, weekday};
use super::hours_of_week::{HoursOfWeek, LEFT, PLOT_WIDTH, ROW, WIDTH, hour_mark};
use super::names;
use super::server_table::{map_path, server_path};
use crate::api::requests::ServersVisitors;
use crate::model::calendar::{DAY_MS, HOUR_MS, MINUTE_MS};
use crate::model::url::ServerUrl;
use crate::view::session::{Companion, SessionView, Visitor, Visitors};
use crate::web::texts::{grouped, rich_text, text};

/// Sessions that the pages are computed from, at most.
pub(super) const OF_PLAYER_MAX: u32 = 1_000;
const ON_SERVER_MAX: u32 = 2_000;

/// Sessions in the list of a player, and players in the list of a server: at first, and when more are unfolded.
const LISTED: usize = 10;
const FOLDED_MAX: usize = 30;

/// Seconds of which the players of a server are listed.
const ON_SERVER_S: u32 = 86_400;

/// What the page of a server asks for.
pub(super) fn visitors(url: ServerUrl) -> ServersVisitors {
    let count = (LISTED + FOLDED_MAX) as u32;
    ServersVisitors { url, last_s: ON_SERVER_S, sessions: ON_SERVER_MAX, count }
}

/// Players that are named as those who play with a player.
pub(super) const COMPANIONS: u32 = 8;

/// Days of the drawing of a player.
const DAYS_MAX: usize = 14;

/// The sessions of a player: drawings and a list.
pub(super) fn of_player(sessions: &[SessionView], player_key: u32) -> Markup {
    let (first, rest) = sessions.split_at(sessions.len().min(LISTED));
    html! {
        @if sessions.is_empty() { p { (text!("sessions-none")) } } @else {
            div .charts { (days(sessions)) (hours_of_the_week(sessions)) }
            p .soft { (text!("sessions-measured")) }
            (table_of_player(&text!("sessions-newest"), first))
            @if !rest.is_empty() {
                details {
                    summary { (text!("sessions-older")) }
                    (table_of_player(&text!("sessions-older-caption"), &rest[..rest.len().min(FOLDED_MAX)]))
                    @if rest.len() > FOLDED_MAX {
                        p { a href={ "/api/v1/sessions?player_key=" (player_key) "&limit=500" } { (text!("sessions-as-json")) } }
                    }
                }
            }
        }
    }
}

fn table_of_player(title: &str, sessions: &[SessionView]) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label=(title) {
            table {
                caption { (title) }
                thead {
                    tr {
                        th scope="col" { (text!("sessions-until")) } th scope="col" .n { (text!("sessions-for")) } th scope="col" { (text!("server")) }
                        th scope="col" .n { (text!("points")) } th scope="col" .wide-only { (text!("sessions-last-map")) }
                    }
                }
                tbody {
                    @for session in sessions {
                        tr {
                            td { (until(session.open, session.end_ms)) }
                            td .n { (length(session.end_ms - session.start_ms, 1)) }
                            td .name { a href=(server_path(&session.server)) { (names::hostname(&session.hostname, &session.server)) } }
                            td .n { (points(session.points)) }
                            td .wide-only { a href=(map_path(&session.map)) { (names::plain(&session.map)) } }
                        }
                    }
                }
            }
        }
    }
}

/// `27 Nov 03:44`, or `now`.
fn until(open: bool, end_ms: i64) -> Markup {
    match open {
        true => html! { strong { (text!("now")) } },
        false => day_and_time(end_ms),
    }
}

/// How long somebody was there in so many sessions.
fn length(ms: i64, sessions: u64) -> String {
    match (sessions, ms) {
        (1, 0) => text!("sessions-once").into_owned(),
        (_, ..MINUTE_MS) => format!("< {}", duration(MINUTE_MS)),
        _ => duration(ms),
    }
}

fn points(points: Option<i64>) -> String {
    points.map_or_else(|| "-".to_owned(), grouped)
}

/// The players who were on the same servers at the same time.
pub(super) fn companions(companions: &[Companion]) -> Markup {
    html! {
        @if !companions.is_empty() {
            p {
                (rich_text!("sessions-companions", players = html! {
                    @for (n, Companion { player_key, name, display, together_ms }) in companions.iter().enumerate() {
                        @if n > 0 { ", " }
                        a href={ "/players/" (player_key) } { (names::player(display, name)) } " "
                        small .soft { "(" (length(*together_ms, 2)) ")" }
                    }
                }))
            }
        }
    }
}

/// The parts of a session in each hour of time: start of the hour and length, ms.
fn hours(session: &SessionView) -> impl Iterator<Item = (i64, i64)> {
    let (start_ms, end_ms) = (session.start_ms, session.end_ms);
    let hours = start_ms.div_euclid(HOUR_MS)..=end_ms.div_euclid(HOUR_MS);
    hours.map(move |hour| {
        let hour_ms = hour * HOUR_MS;
        (hour_ms, end_ms.min(hour_ms + HOUR_MS) - start_ms.max(hour_ms))
    })
}

/// A row for each day, with the times at which the player was there.
fn days(sessions: &[SessionView]) -> Markup {
    let mut days: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for session in sessions {
        for day in session.start_ms.div_euclid(DAY_MS)..=session.end_ms.div_euclid(DAY_MS) {
            let (from_ms, to_ms) = (session.start_ms - day * DAY_MS, session.end_ms - day * DAY_MS);
            days.entry(day).or_default().push((from_ms.max(0), to_ms.min(DAY_MS)));
        }
    }
    let newest = days.keys().next_back().copied().unwrap_or_default();
    // One day more: for visitors east of UTC the newest day may be a later one.
    let oldest = days.keys().next().map_or(newest, |&oldest| (oldest - 1).max(newest - DAYS_MAX as i64 + 1));
    let x = |ms: i64| LEFT + ms * PLOT_WIDTH / DAY_MS;
    let height = (newest - oldest + 1) * ROW + 18;
    html! {
        figure {
            // With the minutes of all sessions, scripts draw the days of the visitor's time zone.
            svg viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH) height=(height) role="img" aria-labelledby="days-title"
                data-played=(spans(sessions, (oldest - 1) * DAY_MS)) data-left=(LEFT) data-width=(PLOT_WIDTH) {
                title id="days-title" { (text!("sessions-days-title")) }
                @for (day, y) in (oldest..=newest).rev().zip((0..).step_by(ROW as usize)) {
                    @let played = days.get(&day).map_or(&[][..], Vec::as_slice);
                    @let played_ms: i64 = played.iter().map(|(from_ms, to_ms)| to_ms - from_ms).sum();
                    g .day data-y=(y) {
                        text x="0" y=(y + 12) { (weekday(day * DAY_MS)) " " (short_day(day * DAY_MS)) }
                        line .axis x1=(LEFT) x2=(LEFT + PLOT_WIDTH) y1=(y + 8) y2=(y + 8) {}
                        path .heat d=(played.iter().map(|&(from, to)| bar(x(from), x(to), y)).collect::<String>()) {}
                        text x=(WIDTH) y=(y + 12) text-anchor="end" { @if played_ms > 0 { (hours_and_minutes(played_ms)) } }
                    }
                }
                @for hour in [0, 6, 12, 18, 24] { (hour_mark(hour, height)) }
            }
            figcaption { (text!("sessions-days-caption")) }
        }
    }
}

/// The first and the last minute of each session that ended after a time.
fn spans(sessions: &[SessionView], after_ms: i64) -> String {
    let newer = sessions.iter().filter(|session| session.end_ms >= after_ms);
    let span = |session: &SessionView| format!("{}-{}", session.start_ms / MINUTE_MS, session.end_ms / MINUTE_MS);
    newer.map(span).collect::<Vec<_>>().join(" ")
}

/// A rectangle as a part of a path.
fn bar(left: i64, right: i64, row: i64) -> String {
    let width = (right - left).max(2);
    format!("M{left} {}h{width}v10h-{width}z", row + 3)
}

/// The minutes of all sessions in each hour of the week.
fn hours_of_the_week(sessions: &[SessionView]) -> Markup {
    let mut played = HoursOfWeek::default();
    for (hour_ms, ms) in sessions.iter().flat_map(hours) {
        *played.at(hour_ms).get_or_insert(0.0) += ms as f64;
    }
    let text = |ms: f64| hours_and_minutes(ms as i64);
    let largest = text(played.largest());
    let title = text!("sessions-hours-title", largest = largest);
    played.draw("hours-title", &title, &text!("sessions-hours-caption"), text)
}

/// `3:05`.
fn hours_and_minutes(ms: i64) -> String {
    let minutes = ms / 60_000;
    format!("{}:{:02}", minutes / 60, minutes % 60)
}

/// The players of the last 24 hours of a server, those who were there longest first.
pub(super) fn on_server(visitors: &Visitors) -> Markup {
    let (first, rest) = visitors.longest.split_at(visitors.longest.len().min(LISTED));
    html! {
        @if first.is_empty() { p { (text!("nobody")) } } @else {
            p .soft { (text!("sessions-players", count = visitors.count)) }
            (table_on_server(&text!("sessions-longest"), first))
            @if !rest.is_empty() {
                details {
                    summary { (text!("sessions-more-players")) }
                    (table_on_server(&text!("sessions-more-players"), rest))
                }
            }
        }
    }
}

fn table_on_server(title: &str, visitors: &[Visitor]) -> Markup {
    html! {
        div .scroll tabindex="0" role="region" aria-label=(title) {
            table {
                caption { (title) }
                thead {
                    tr {
                        th scope="col" { (text!("player")) } th scope="col" .n { (text!("sessions-for")) } th scope="col" .n { (text!("points")) }
                        th scope="col" .n { (text!("sessions")) } th scope="col" { (text!("last-seen")) }
                    }
                }
                tbody {
                    @for visitor in visitors {
                        tr {
                            td .name { a href={ "/players/" (visitor.player_key) } { (names::player(&visitor.display, &visitor.name)) } }
                            td .n { (length(visitor.time_ms, visitor.sessions.into())) }
                            td .n { (points(visitor.points)) }
                            td .n { (count(visitor.sessions)) }
                            td { (until(visitor.open, visitor.last_ms)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(start_ms: i64, end_ms: i64) -> SessionView {
        SessionView {
            player_key: 7,
            game: "baseq3".into(),
            name: "<b>".into(),
            display: "^1<b>".into(),
            server: "quake3://192.0.2.7:27960".into(),
            hostname: String::new(),
            start_ms,
            end_ms,
            points: Some(5),
            map: "q3dm17".into(),
            seen: 2,
            open: false,
        }
    }

    #[test]
    fn a_session_is_in_each_hour_that_it_touches() {
        let parts: Vec<_> = hours(&session(HOUR_MS / 2, 2 * HOUR_MS + 5)).collect();
        assert_eq!(parts, [(0, HOUR_MS / 2), (HOUR_MS, HOUR_MS), (2 * HOUR_MS, 5)]);
        assert_eq!(hours(&session(9, 9)).collect::<Vec<_>>(), [(0, 0)]);
    }

    #[test]
    fn a_session_of_one_scan_has_no_length() {
        assert_eq!(
            [length(0, 1), length(0, 2), length(8_000, 1), length(60_000, 1)],
            ["seen once", "< 1 min", "< 1 min", "1 min"]
        );
    }

    #[test]
    fn days_have_their_weekday_and_time() {
        // Thursday 22:00 to Friday 01:30.
        let drawn = days(&[session(22 * HOUR_MS, DAY_MS + 90 * 60_000)]).into_string();
        assert!(drawn.contains("Thu 1 Jan") && drawn.contains("Fri 2 Jan"), "{drawn}");
        assert!(drawn.contains("Wed 31 Dec") && !drawn.contains("Tue 30 Dec"), "one day more: {drawn}");
        assert!(drawn.contains(">2:00<") && drawn.contains(">1:30<"), "{drawn}");
        assert!(drawn.contains("data-played=\"1320-1530\""), "{drawn}");
        let week = hours_of_the_week(&[session(22 * HOUR_MS, DAY_MS + 90 * 60_000)]).into_string();
        assert!(week.contains(">22:00, 1:00<") && week.contains(">1:00, 0:30<") && !week.contains(">2:00, "), "{week}");
    }

    #[test]
    fn players_of_a_server_are_listed() {
        let sum = Visitor {
            display: "<b>".into(),
            time_ms: 2 * HOUR_MS,
            points: Some(10),
            sessions: 2,
            last_ms: DAY_MS,
            ..Visitor::of(7)
        };
        let drawn = on_server(&Visitors { count: 1, longest: vec![sum] }).into_string();
        assert!(drawn.contains("1 player.") && drawn.contains("2 h 00 min") && drawn.contains(">10<"), "{drawn}");
        assert!(drawn.contains("&lt;b&gt;") && !drawn.contains("<b>"), "{drawn}");
    }
}
