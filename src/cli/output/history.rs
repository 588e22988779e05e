//! Maps over time and the best players of a server as tables.

use std::io::{self, Write};

use super::format::{group_digits, sanitize};
use super::print_table;
use super::table::{Align, Column, MAP_COLUMN, PLAYER_COLUMN};
use crate::view::history::{BestPlayers, MapTotals, MapView};

pub(super) fn print_map(out: &mut impl Write, map: &MapView) -> io::Result<()> {
    let MapView { map_key: _, map, servers_online, players_online, weeks } = map;
    let [servers, players] = [servers_online, players_online].map(|count| group_digits(*count));
    writeln!(out, "{}: {players} players on {servers} servers now", sanitize(map))?;
    let columns = [
        ("week", Align::Left),
        ("servers", Align::Right),
        ("minutes", Align::Right),
        ("players", Align::Right),
        ("share", Align::Right),
    ];
    let rows = weeks.iter().map(|week| {
        vec![
            week.week.clone(),
            group_digits(week.servers.into()),
            group_digits(week.minutes.round() as u64),
            format!("{:.1}", week.average_players),
            format!("{:.1} %", week.share * 100.0),
        ]
    });
    print_table(out, &columns, rows)
}

pub(super) const TOTALS_COLUMNS: [Column; 5] = [
    ("map", MAP_COLUMN),
    ("weeks", Align::Right),
    ("minutes", Align::Right),
    ("players", Align::Right),
    ("share", Align::Right),
];

pub(super) fn totals_cells(totals: &MapTotals) -> Vec<String> {
    let MapTotals { map_key: _, map, weeks, minutes, average_players, share } = totals;
    vec![
        sanitize(map),
        group_digits((*weeks).into()),
        group_digits(minutes.round() as u64),
        format!("{average_players:.1}"),
        format!("{:.1} %", share * 100.0),
    ]
}

pub(super) fn print_best_players(out: &mut impl Write, best: &BestPlayers) -> io::Result<()> {
    for ranking in &best.rankings {
        let none = if ranking.players.is_empty() { ": none" } else { "" };
        writeln!(out, "best positions in {} on {}{none}", ranking.ranking.name(), best.server)?;
        let columns = [("player", PLAYER_COLUMN), ("key", Align::Right), ("positions", Align::Left)];
        let rows = ranking.players.iter().map(|player| {
            let positions =
                player.positions.iter().map(|of| format!("{} in {}", group_digits(of.position.into()), of.week));
            vec![sanitize(&player.name), player.player_key.to_string(), positions.collect::<Vec<_>>().join(", ")]
        });
        print_table(out, &columns, rows)?;
    }
    Ok(())
}
