//! Text output of `clqd servers list` and `clqd servers show`.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::named_line::print_named;
use super::print_table;
use crate::cli::output::format::{
    duration, group_digits, points, relative_time, rough_relative_time, sanitize, sanitize_name, sparkline,
};
use crate::cli::output::table::{self, Align, Column};
use crate::model::server::Class;
use crate::view::{
    ElasticOff, ElasticView, ListedPlayer, PublicServer, RoundEndBasis, SeriesView, ServerDetail, ServerSummary,
};

/// Most hours of the player count series to show.
const HOURS_SHOWN: usize = 48;

/// Most days of the player count series to show, and most weeks.
const DAYS_SHOWN: usize = 60;

/// Columns of `clqd servers list`.
pub(super) const COLUMNS: [Column; 9] = [
    ("server", Align::Left),
    ("class", Align::Right),
    ("players", Align::Right),
    ("game", table::GAME_COLUMN),
    ("map", table::MAP_COLUMN),
    ("name", table::HOSTNAME_COLUMN),
    ("rank", Align::Right),
    ("seen", Align::Left),
    ("notes", Align::Truncate(40)),
];

/// Columns of `clqd servers list --greylisted`.
pub(super) const GREYLIST_COLUMNS: [Column; 4] =
    [("server", Align::Left), ("game", table::GAME_COLUMN), ("name", table::HOSTNAME_COLUMN), ("reason", Align::Left)];

/// Columns that the list of the greylist lacks on a narrow terminal, the least important first.
pub(super) const GREYLIST_OPTIONAL_COLUMNS: &[&str] = &["game", "name"];

/// Columns that the list lacks on a narrow terminal, the least important first.
pub(super) const OPTIONAL_COLUMNS: &[&str] = &["rank", "class", "game", "notes"];

/// The number of players, with a mark if it is not believed.
fn players(server: &PublicServer) -> String {
    format!("{}{}", server.players, if server.players_unverified { "?" } else { "" })
}

/// Returns the cells of a server's row in `clqd servers list`, in the order of [`COLUMNS`].
pub(super) fn cells(server: &PublicServer, now_ms: i64) -> Vec<String> {
    let text = |text: &str| sanitize_name(text, &server.url);
    vec![
        sanitize(&server.url),
        server.class.to_string(),
        format!("{}/{}", players(server), server.slots),
        text(server.game.as_deref().unwrap_or("-")),
        text(server.map.as_deref().unwrap_or("-")),
        text(&server.hostname),
        server.rank.map_or("-".to_owned(), |rank| group_digits(rank.into())),
        rough_relative_time(server.last_seen_ms, now_ms),
        server_notes(server),
    ]
}

/// As [`cells`], in the order of [`GREYLIST_COLUMNS`].
pub(super) fn greylist_cells(server: &ServerSummary) -> Vec<String> {
    let ServerSummary { public, greylist_reason } = server;
    let text = |text: &str| sanitize_name(text, &public.url);
    vec![
        sanitize(&public.url),
        text(public.game.as_deref().unwrap_or("-")),
        text(&public.hostname),
        sanitize(greylist_reason.as_deref().unwrap_or_default()),
    ]
}

/// Returns the greylist state, missed scans, applied checks and tags of a server.
fn server_notes(server: &PublicServer) -> String {
    let mut notes = Vec::new();
    if server.greylisted {
        notes.push("greylisted".to_owned());
    }
    if server.missed > 0 {
        notes.push(format!("missed {}", server.missed));
    }
    notes.extend(server.screened.iter().map(|screened| screened.reason.name().to_owned()));
    notes.extend(server.tags.iter().map(|tag| sanitize(tag)));
    notes.join(", ")
}

/// Prints the output of `clqd servers show`.
pub(super) fn print(out: &mut impl Write, detail: &ServerDetail, now_ms: i64, of_stopped: bool) -> io::Result<()> {
    let ServerDetail { public: detail, greylist_reason, scan_in_progress, exempt_checks } = detail;
    let server = &detail.server;
    let text = |text: &str| sanitize_name(text, &server.url);
    writeln!(out, "{}", format!("{}  {}", sanitize(&server.url), text(&server.hostname)).trim_end())?;
    let mut print_line = |name: &str, text: String| print_named(out, 2, name, &text);
    let missed = match server.missed {
        0 => String::new(),
        1 => ", 1 scan missed".to_owned(),
        missed => format!(", {missed} scans missed"),
    };
    let next = match detail.next_scan_ms {
        _ if of_stopped => String::new(),
        Some(t_ms) => format!(", next {}", relative_time(Some(t_ms), now_ms)),
        None if *scan_in_progress => ", next in progress".to_owned(),
        None => ", next on request".to_owned(),
    };
    let [scanned, seen, added] =
        [server.last_scan_ms, server.last_seen_ms, Some(server.added_ms)].map(|t_ms| relative_time(t_ms, now_ms));
    let class = format!("class {} ({}){missed}", server.class, describe_class(server));
    print_line("scanned", format!("{scanned}{next}; seen {seen}; {class}; added {added}"))?;
    // A new server has missed no scan yet.
    if server.class >= Class::UNKNOWN.number() && server.missed > 0 {
        print_line("retry", format!("does not answer; scan it now with: clqd rescan {}", sanitize(&server.url)))?;
    }
    print_line("playing", describe_play(server))?;
    if let Some(rank) = server.rank {
        print_line("rank", format!("{} of the servers last week", group_digits(rank.into())))?;
    }
    if let Some(grade) = &detail.authentication {
        print_line("replies", describe_authentication(grade))?;
    }
    if let Some(reason) = greylist_reason {
        print_line("greylist", sanitize(reason))?;
    }
    if !server.tags.is_empty() {
        print_line("tags", sanitize(&server.tags.join(", ")))?;
    }
    for screened in &server.screened {
        print_line(
            "screened",
            format!("{}, last {}", screened.reason.name(), relative_time(Some(screened.applied_ms), now_ms)),
        )?;
    }
    if detail.bots_unidentified > 0 {
        print_line("bots", format!("{} not identified", detail.bots_unidentified))?;
    }
    if !exempt_checks.is_empty() {
        let names: Vec<&str> = exempt_checks.iter().map(|reason| reason.name()).collect();
        print_line("trusted", format!("exempt from {}", names.join(", ")))?;
    }
    if let Some(elastic) = &detail.elastic {
        if let Some(round) = describe_round(elastic, now_ms) {
            print_line("round", round)?;
        }
        if let Some(budget) = describe_budget(elastic) {
            print_line("budget", budget)?;
        }
    }
    if let Some(series) = &detail.series {
        print_series(out, series)?;
    }
    if !detail.players_listed.is_empty() {
        writeln!(out)?;
        let columns = [("points", Align::Right), ("ping", Align::Right), ("player", table::PLAYER_COLUMN)];
        let mut players: Vec<&ListedPlayer> = detail.players_listed.iter().collect();
        players.sort_by_key(|player| (player.spectator, Reverse(player.points)));
        let rows = players.into_iter().map(|player| {
            vec![
                match player.spectator {
                    true => "watching".to_owned(),
                    false => player.points.map_or("-".to_owned(), points),
                },
                player.ping.map_or("-".to_owned(), |ping| ping.to_string()),
                sanitize(&player.name),
            ]
        });
        print_table(out, &columns, rows)?;
    }
    if !detail.maps.is_empty() {
        writeln!(out)?;
        let columns = [("map this week", table::MAP_COLUMN), ("minutes", Align::Right), ("players", Align::Right)];
        let rows = detail
            .maps
            .iter()
            .map(|map| vec![text(&map.map), format!("{:.0}", map.minutes), format!("{:.1}", map.average_players)]);
        print_table(out, &columns, rows)?;
    }
    Ok(())
}

/// What the servers of a class have in common (docs/rules.md section 9).
fn describe_class(server: &PublicServer) -> &'static str {
    match server.class {
        1 => "several players",
        2 => "quiet",
        3..=5 => "silent for some time",
        _ if server.missed == 0 => "new",
        _ => "does not answer",
    }
}

/// Game, map and players; `usually` is the median of the last counts.
fn describe_play(server: &PublicServer) -> String {
    let text = |text: &str| sanitize_name(text, &server.url);
    let game = match (&server.game, &server.map) {
        (Some(game), Some(map)) => format!("{} on {}", text(game), text(map)),
        (Some(known), None) | (None, Some(known)) => text(known),
        (None, None) => return "not known yet".to_owned(),
    };
    format!("{game}, {} of {}, usually {}", players(server), server.slots, server.assumed_players)
}

fn describe_authentication(grade: &str) -> String {
    match grade {
        "nonce" => "nonce: they repeat a number that only this server received".to_owned(),
        "challenge" => "challenge: they carry one of this server, or come over TCP".to_owned(),
        "address" => "address: recognised by it only, and anybody can forge it".to_owned(),
        other => sanitize(other),
    }
}

/// When the round is expected to end, and why. `None`: nothing is known.
fn describe_round(elastic: &ElasticView, now_ms: i64) -> Option<String> {
    let why = match elastic.basis? {
        RoundEndBasis::RoundLength { shortest_s, longest_s, rounds } => {
            let [shortest, longest] = [shortest_s, longest_s].map(|s| duration(u64::from(s) * 1_000));
            match shortest == longest {
                true if rounds == 1 => format!("the last one took {shortest}"),
                true => format!("the last {rounds} took {shortest}"),
                false => format!("the last {rounds} took {shortest} to {longest}"),
            }
        }
        RoundEndBasis::PointLimit { points: limit, rounds } => {
            format!("the last {rounds} ended at {} points", points(limit))
        }
    };
    let end = match (elastic.expected_end_ms, elastic.earliest_end_ms, elastic.latest_end_ms) {
        (Some(expected_ms), Some(earliest_ms), Some(latest_ms)) => {
            let width = duration(latest_ms.abs_diff(earliest_ms) / 2);
            let left = duration(expected_ms.saturating_sub(now_ms).max(0).unsigned_abs());
            format!("ends in about {left} (+- {width})")
        }
        _ => "its end is overdue".to_owned(),
    };
    Some(format!("{end}; {why}"))
}

/// How many scans the server may have, if that was set for it, or why it has no budget. `None`: nothing is unusual.
fn describe_budget(elastic: &ElasticView) -> Option<String> {
    match elastic.off {
        None if !elastic.has_own_budget => None,
        None => Some(format!("{} scans in an interval of class 1, {:.1} saved", elastic.budget, elastic.saved_scans)),
        // Other lines say so.
        Some(ElasticOff::TooFewPlayers | ElasticOff::Missed | ElasticOff::Greylisted) => None,
        Some(ElasticOff::NoList) => Some("scanned on a fixed grid: its last list is not whole".to_owned()),
        Some(ElasticOff::Boosted) => Some("scanned once a minute: it is boosted".to_owned()),
    }
}

/// Prints a sparkline and the maximum of each series. Leading slots without data are
/// omitted; a series without data is not printed.
fn print_series(out: &mut impl Write, series: &SeriesView) -> io::Result<()> {
    for (name, values, values_max) in [
        ("hours", &series.hours, HOURS_SHOWN),
        ("days", &series.days, DAYS_SHOWN),
        ("weeks", &series.weeks, DAYS_SHOWN),
    ] {
        let newest = &values[values.len().saturating_sub(values_max)..];
        let first = newest.iter().position(Option::is_some).unwrap_or(newest.len());
        let most = newest[first..].iter().flatten().copied().fold(0.0, f64::max);
        if first < newest.len() {
            writeln!(out, "  {name:<9} {}  most {most:.1}", sparkline(&newest[first..]))?;
        }
    }
    Ok(())
}
