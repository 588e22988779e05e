//! Text output of `clqd restore --from-mysql`.

use std::io::{self, Write};

use crate::api::requests::RestoredRow;
use crate::cli::output::format::{group_digits, sanitize, time_utc};

pub fn print(out: &mut impl Write, restored: &RestoredRow) -> io::Result<()> {
    let RestoredRow { dir, latest_event_ms, bytes, report, not_restored } = restored;
    let n = group_digits;
    writeln!(out, "{}  {} bytes, state as of {}", sanitize(dir), n(*bytes), time_utc(*latest_event_ms))?;
    let names = [(report.games, "games"), (report.maps, "maps"), (report.players, "players")];
    let names: Vec<String> = names.into_iter().map(|(count, what)| format!("{} {what}", n(count))).collect();
    writeln!(out, "restored:")?;
    writeln!(out, "  {}", names.join(", "))?;
    let (servers, tags, series) = (n(report.servers), n(report.tags), n(report.series));
    writeln!(out, "  {servers} servers with {tags} tags, {series} with player counts over time")?;
    let weeks = match (report.weeks.first(), report.weeks.last()) {
        (Some(first), Some(last)) if first == last => first.clone(),
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => "no weeks".to_owned(),
    };
    let open = match report.open_weeks.is_empty() {
        true => "all closed".to_owned(),
        false => format!("not closed: {}", report.open_weeks.join(", ")),
    };
    let (rows, maps) = (n(report.player_rows), n(report.map_rows));
    writeln!(out, "  {} ({}): {rows} rows of players, {maps} of maps", sanitize(&weeks), sanitize(&open))?;
    writeln!(out, "  best positions of {} players on servers", n(report.best_players))?;
    writeln!(out, "not restored:")?;
    not_restored.iter().try_for_each(|line| writeln!(out, "  {}", sanitize(line)))?;
    if report.rejected > 0 {
        writeln!(out, "{} rows have values that do not fit and were left out:", n(report.rejected))?;
        report.rejected_rows.iter().try_for_each(|row| writeln!(out, "  {}", sanitize(row)))?;
        let more = report.rejected - report.rejected_rows.len() as u64;
        if more > 0 {
            writeln!(out, "  and {} more", n(more))?;
        }
    }
    Ok(())
}
