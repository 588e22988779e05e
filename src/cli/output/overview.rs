//! Text output of `clqd overview`.

use std::io::{self, Write};

use super::print_table;
use crate::cli::output::format::{group_digits, sanitize, sparkline};
use crate::cli::output::table::Align;
use crate::cli::stdio;
use crate::view::{GroupOverview, OnlineSeriesView, Overview, SlotsView};

pub(super) fn print(out: &mut impl Write, overview: &Overview) -> io::Result<()> {
    let Overview { now_ms: _, week, servers, servers_online, players_online, players_known, games, tags } = overview;
    writeln!(
        out,
        "week {week}  {} of {} servers online with {} players; {} players known",
        group_digits(*servers_online),
        group_digits(*servers),
        group_digits(*players_online),
        group_digits(*players_known)
    )?;
    for (title, groups) in [("game", games), ("tag", tags)] {
        if !groups.is_empty() {
            writeln!(out)?;
            let columns = [(title, Align::Left), ("servers", Align::Right), ("players", Align::Right)];
            let cells = |group: &GroupOverview| {
                vec![sanitize(&group.name), group_digits(group.servers_online), group_digits(group.players_online)]
            };
            print_table(out, &columns, groups.iter().map(cells))?;
        }
    }
    Ok(())
}

/// Most values on a line.
const VALUES_SHOWN: usize = 60;

pub(super) fn print_series(out: &mut impl Write, series: &OnlineSeriesView) -> io::Result<()> {
    let OnlineSeriesView { ten_minutes, hours, days, weeks, week_coverage } = series;
    // The rest of a line has some 48 columns.
    let shown = stdio::width().map_or(VALUES_SHOWN, |width| width.saturating_sub(48).clamp(10, VALUES_SHOWN));
    for (title, SlotsView { newest_ms: _, players, servers }) in
        [("10 minutes", ten_minutes), ("hours", hours), ("days", days), ("weeks", weeks)]
    {
        let from = players.len().saturating_sub(shown);
        let newest = |value: Option<f64>| value.map_or("-".to_owned(), |value| group_digits(value.round() as u64));
        let last_servers = servers.last().copied().flatten().map(f64::from);
        let bars = sparkline(&players[from..]);
        let players = newest(players.last().copied().flatten());
        writeln!(out, "{title:>10}  {bars}  {players} players on {} servers", newest(last_servers))?;
    }
    if let Some(share) = week_coverage {
        writeln!(out, "running week: its servers were seen in {:.1} % of its hours", share * 100.0)?;
    }
    Ok(())
}
