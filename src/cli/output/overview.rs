//! Text output of `clqd overview`.

use std::io::{self, Write};

use super::print_table;
use crate::cli::output::format::{group_digits, sanitize};
use crate::cli::output::table::Align;
use crate::model::view::{GroupOverview, Overview};

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
