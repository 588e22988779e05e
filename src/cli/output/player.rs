//! Text output of `clqd player`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::{print_wrapped, sure_rounds};
use crate::cli::output::format::{
    clq1_per_min, duration, elo, format_time, group_digits, points, quoted, relative_time, sanitize,
};
use crate::cli::output::table::{self, Align, Column, Table};
use crate::model::row::Ranking;
use crate::view::{BestView, PlayerView, PlayerWeekView};

/// A score and the position by it, for each ranking. `sure` is dropped on a narrow terminal.
const COLUMNS: [Column; 11] = [
    ("week", Align::Left),
    ("time", Align::Right),
    ("points", Align::Right),
    ("#", Align::Right),
    ("clq1", Align::Right),
    ("#", Align::Right),
    ("clq2", Align::Right),
    ("#", Align::Right),
    ("elo", Align::Right),
    ("#", Align::Right),
    ("sure", Align::Right),
];

/// Prints a player of one game: a line for each server, with its weeks below it.
pub(super) fn print(out: &mut impl Write, player: &PlayerView, now_ms: i64) -> io::Result<()> {
    writeln!(out, "{} in {} (player {})", sanitize(&player.name), sanitize(&player.game), player.player_key)?;
    if !player.aliases.is_empty() {
        let aliases: Vec<String> = player.aliases.iter().map(|alias| sanitize(alias)).collect();
        writeln!(out, "merged with: {}", aliases.join(", "))?;
    }
    if let Some(last_seen_ms) = player.last_seen_ms {
        let first = player.first_seen_ms.map_or_else(String::new, |ms| format!("first seen {} UTC, ", format_time(ms)));
        let online: Vec<String> = player.online_on.iter().map(|url| sanitize(url)).collect();
        let online = if online.is_empty() { String::new() } else { format!(", now on {}", online.join(", ")) };
        print_wrapped(out, &format!("{first}last seen {}{online}", relative_time(Some(last_seen_ms), now_ms)))?;
    }
    let mut table = Table::new(&COLUMNS).with_optional(&["sure"]);
    let mut servers = Vec::new();
    for week in &player.weeks {
        if !servers.contains(&&week.server) {
            servers.push(&week.server);
        }
    }
    for server in servers {
        table.heading(out, sanitize(server))?;
        let mut weeks = player.weeks.iter().filter(|week| week.server == *server);
        weeks.try_for_each(|week| table.row(out, week_cells(week)))?;
    }
    table.flush(out)?;
    if player.weeks_more > 0 {
        let more = group_digits(player.weeks_more);
        print_wrapped(
            out,
            &format!(
                "{more} further rows are not shown: older weeks, and servers where the player was for a shorter time"
            ),
        )?;
    }
    if !player.best.is_empty() {
        let best: Vec<String> = best_by_ranking(player)
            .map(|best| {
                let [week, server] = [&best.week, &best.server].map(|text| sanitize(text));
                format!("{} in {} ({week}, {server})", position(best), best.ranking.name())
            })
            .collect();
        print_wrapped(out, &format!("best final positions: {}", best.join("; ")))?;
    }
    Ok(())
}

/// Prints a name that is known in several games, the game with the newest player first. `is_command`: the name is that of a
/// command, too.
pub fn print_games(
    out: &mut impl Write,
    name: &str,
    is_command: bool,
    players: &[PlayerView],
    now_ms: i64,
) -> io::Result<()> {
    writeln!(out, "{} is a player of {} games", sanitize(name), players.len())?;
    let columns = [
        ("game", table::GAME_COLUMN),
        ("key", Align::Right),
        ("last seen", Align::Left),
        ("servers", Align::Right),
        ("time", Align::Right),
        ("best final position", Align::Left),
    ];
    super::print_table(out, &columns, players.iter().map(|player| game_cells(player, now_ms)))?;
    let newest = players.first().map_or_else(String::new, |player| quoted(&sanitize(&player.game)));
    let separator = if is_command { "-- " } else { "" };
    let name = quoted(&sanitize(name));
    writeln!(out, "weeks of one game: clqd player --game {newest} {separator}{name}")
}

fn game_cells(player: &PlayerView, now_ms: i64) -> Vec<String> {
    let seen = match player.online_on.is_empty() {
        true => player.last_seen_ms.map_or_else(|| "-".to_owned(), |t_ms| relative_time(Some(t_ms), now_ms)),
        false => "now".to_owned(),
    };
    let servers: BTreeSet<&str> = player.weeks.iter().map(|week| &*week.server).collect();
    let time = duration(player.weeks.iter().map(|week| week.time_ms).sum());
    let best = player.best.first();
    // Of the rows that fit into the answer.
    let over = if player.weeks_more == 0 { "" } else { "over " };
    vec![
        sanitize(&player.game),
        player.player_key.to_string(),
        seen,
        format!("{over}{}", group_digits(servers.len() as u64)),
        format!("{over}{time}"),
        match best {
            _ if player.weeks_more > 0 => "see --game".to_owned(),
            None => "-".to_owned(),
            Some(best) => format!("{} in {}, {}", position(best), best.ranking.name(), sanitize(&best.week)),
        },
    ]
}

/// The best position of each ranking, the best first: `best` is in order of positions.
fn best_by_ranking(player: &PlayerView) -> impl Iterator<Item = &BestView> {
    let is_first =
        move |at: usize, best: &BestView| player.best[..at].iter().all(|other| other.ranking != best.ranking);
    player.best.iter().enumerate().filter(move |(at, best)| is_first(*at, best)).map(|(_, best)| best)
}

fn position(best: &BestView) -> String {
    group_digits(best.position.into())
}

fn week_cells(week: &PlayerWeekView) -> Vec<String> {
    let position = |ranking| week.positions.get(&ranking).map_or(String::new(), |&p| group_digits(p.into()));
    // A player without a position in a ranking has no score in it.
    let ranked = |ranking, score: String| {
        if week.positions.contains_key(&ranking) { score } else { "-".to_owned() }
    };
    vec![
        sanitize(&week.week),
        duration(week.time_ms),
        points(week.points),
        position(Ranking::Points),
        ranked(Ranking::Clq1, format!("{:.2}", clq1_per_min(week.clq1))),
        position(Ranking::Clq1),
        ranked(Ranking::Clq2, group_digits(week.clq2)),
        position(Ranking::Clq2),
        ranked(Ranking::Elo, elo(week.elo)),
        position(Ranking::Elo),
        sure_rounds(week.elo_rounds_sure, week.elo_rounds),
    ]
}
