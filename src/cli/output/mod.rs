//! Prints rows as tables for people, or as JSON lines for programs.

mod archive;
mod board;
mod clock;
mod correction;
pub mod format;
mod history;
mod overview;
mod restore;
mod server;
pub mod status;
pub mod table;

use std::io::{self, Write};

use crate::api::Row;
use crate::api::json;
use crate::api::{ChangeOutcome, ScanResult, ScanRow, ServerChange};
use crate::cli::output::format::{
    clq1_per_s, duration, elo, group_digits, points, relative_time, sanitize, sanitize_name, score, score_heading,
    time_utc,
};
use crate::cli::output::table::{Align, Column, Table, pad, truncate};
use crate::model::row::Ranking;
use crate::model::view::board::OrderView;
use crate::model::view::{PlayerView, PlayerWeekView, Top};

/// The command that scans all servers of classes 6 and 7 now.
pub const RESCAN_FAILED: &str = "clqd rescan --all-unknown";

/// Prints the rows of one response.
#[derive(Debug)]
pub struct Printer<W: Write> {
    json: bool,
    /// The time when the printer was created, Unix ms. Relative times refer to it.
    now_ms: i64,
    out: W,
    /// The table of a list of servers or maps; `None` before the first row.
    list: Option<Table>,
    /// Prints the rows of board queries.
    board: board::BoardPrinter,
}

impl<W: Write> Printer<W> {
    pub fn new(json: bool, out: W) -> Printer<W> {
        Printer { json, now_ms: crate::clock::system_ms(), out, list: None, board: board::BoardPrinter::default() }
    }

    /// Prints boards without shared positions and keys.
    pub fn brief(mut self) -> Printer<W> {
        self.board.is_brief = true;
        self
    }

    /// Prints a row. A table buffers its first rows to compute the column widths.
    pub fn row(&mut self, row: Row) -> io::Result<()> {
        if self.json {
            return writeln!(self.out, "{}", json::to_string(&row));
        }
        let now_ms = self.now_ms;
        let Some(row) = self.board.row(&mut self.out, row, now_ms)? else { return Ok(()) };
        match row {
            Row::Status(status) => status::print(&mut self.out, &status),
            Row::Server(summary) => {
                let table = || Table::new(&server::COLUMNS).with_optional(server::OPTIONAL_COLUMNS);
                let table = self.list.get_or_insert_with(table);
                table.row(&mut self.out, server::cells(&summary, now_ms))
            }
            Row::ServersNext(next) => writeln!(self.out, "more after {}", next.after),
            Row::Overview(overview) => overview::print(&mut self.out, &overview),
            Row::Series(series) => overview::print_series(&mut self.out, &series),
            Row::ServerDetail(detail) => server::print(&mut self.out, &detail, now_ms),
            Row::Change(change) => print_change(&mut self.out, &change),
            Row::Scan(scan) => print_scan(&mut self.out, &scan),
            Row::Top(top) => print_top(&mut self.out, &top, now_ms),
            Row::PlayerName(player) => {
                let (name, game) = (sanitize(&player.name), sanitize(&player.game));
                writeln!(self.out, "#{}  {name}  ({game})", player.player_key)
            }
            Row::Map(map) => history::print_map(&mut self.out, &map),
            Row::MapTotals(totals) => {
                let table = self.list.get_or_insert_with(|| Table::new(&history::TOTALS_COLUMNS));
                table.row(&mut self.out, history::totals_cells(&totals))
            }
            Row::BestPlayers(best) => history::print_best_players(&mut self.out, &best),
            Row::Player(player) => print_player(&mut self.out, &player),
            Row::Correction(correction) => correction::print(&mut self.out, &correction),
            Row::Clock(status) => writeln!(self.out, "{}", clock::describe_clock(&status)),
            Row::ForgottenName(name) => correction::print_forgotten(&mut self.out, &name),
            Row::Backup(backup) => {
                let as_of = time_utc(backup.latest_event_ms);
                writeln!(
                    self.out,
                    "{}  {} bytes, {} records, state as of {as_of}",
                    sanitize(&backup.dir),
                    group_digits(backup.bytes),
                    group_digits(backup.records)
                )
            }
            Row::Restored(restored) => restore::print(&mut self.out, &restored),
            Row::ArchiveDifference(difference) => archive::print_difference(&mut self.out, &difference),
            Row::ArchiveVerified(verified) => archive::print_verified(&mut self.out, &verified),
            Row::Export(row) => writeln!(self.out, "{}", json::to_string(&row)),
            Row::ArchiveResend(resend) => archive::print_resend(&mut self.out, &resend),
            Row::BoardHead(_)
            | Row::Entry(_)
            | Row::Absent(_)
            | Row::Standing(_)
            | Row::PositionFor(_)
            | Row::Standings(_)
            | Row::FusedHead(_)
            | Row::Fused(_)
            | Row::Window(_)
            | Row::WindowDeleted(_) => unreachable!("rows of boards are printed above"),
        }
    }

    /// Prints buffered rows.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(mut table) = self.list.take() {
            table.flush(&mut self.out)?;
        }
        self.board.finish(&mut self.out)?;
        self.out.flush()
    }
}

fn print_table(
    out: &mut impl Write,
    columns: &[Column],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<()> {
    print_optional_table(out, columns, &[], rows)
}

/// As [`print_table`], with columns that a narrow table may lack.
fn print_optional_table(
    out: &mut impl Write,
    columns: &[Column],
    optional: &'static [&'static str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<()> {
    let mut table = Table::new(columns).with_optional(optional);
    rows.into_iter().try_for_each(|row| table.row(out, row))?;
    table.flush(out)
}

fn print_change(out: &mut impl Write, change: &ServerChange) -> io::Result<()> {
    let outcome = match change.outcome {
        ChangeOutcome::Added => "added",
        ChangeOutcome::Restored => "restored with its history",
        ChangeOutcome::Unchanged => "unchanged",
        ChangeOutcome::ScanRequested => "scan requested",
        ChangeOutcome::NotAnswering => "does not answer",
        ChangeOutcome::Removed => "removed",
        ChangeOutcome::NotFound => "not found",
        ChangeOutcome::Tagged => "tags changed",
        ChangeOutcome::Trusted => "checks changed",
        ChangeOutcome::Greylisted => "greylisted",
        ChangeOutcome::Lifted => "removed from the greylist",
        ChangeOutcome::Boosted => "scanned once a minute",
        ChangeOutcome::BoostEnded => "no longer scanned once a minute",
        ChangeOutcome::Refused => "refused",
        ChangeOutcome::ListedTwice => "listed twice",
    };
    let reason = change.reason.as_ref().map(|reason| format!(": {}", sanitize(reason))).unwrap_or_default();
    writeln!(out, "{}  {outcome}{reason}", sanitize(&change.url))
}

/// Prints the result of one scan on one line and flushes it. The results of one response
/// arrive over minutes, so the columns have fixed widths and no table buffers them.
fn print_scan(out: &mut impl Write, scan: &ScanRow) -> io::Result<()> {
    let text = |text: &Option<String>| sanitize_name(text.as_deref().unwrap_or(""), &scan.url);
    let result = match scan.result {
        ScanResult::Miss => {
            let elsewhere = scan.answers_at.as_deref().map(|url| format!("; {} answers", sanitize(url)));
            format!("no response  {}{}", text(&scan.reason), elsewhere.unwrap_or_default())
        }
        ScanResult::Snapshot | ScanResult::Partial => {
            let partial = if scan.result == ScanResult::Partial { "  (partial list)" } else { "" };
            let players = scan.players.map_or("?".to_owned(), |n| n.to_string());
            let occupancy = format!("{players}/{}", scan.slots.unwrap_or(0));
            let (game, map) = (pad(&text(&scan.game), 12), pad(&text(&scan.map), 16));
            format!("{occupancy:>9}  {game} {map} {}{partial}", truncate(&text(&scan.hostname), 48))
        }
    };
    writeln!(out, "{:<36} class {}  {}", sanitize(&scan.url), scan.class, result.trim_end())?;
    out.flush()
}

/// The suffix of a title line that describes a board's order. Empty for the default order:
/// highest score first, without a ranking for ties.
fn describe_order(order: OrderView) -> String {
    let direction = if order.low_is_better { ", lowest first" } else { "" };
    let tie = order.tie_breaker.map(|by| format!(", ties by {}", by.name()));
    direction.to_owned() + &tie.unwrap_or_default()
}

fn print_top(out: &mut impl Write, top: &Top, now_ms: i64) -> io::Result<()> {
    let state = if top.closed { "final" } else { "running" };
    let players = if top.size == 1 { "player" } else { "players" };
    let order = describe_order(top.order);
    let board = sanitize(&format!("{} in {} ({state})", top.server, top.week));
    writeln!(out, "{} on {board}, {} {players}{order}", top.ranking.name(), group_digits(top.size))?;
    let columns = [
        ("#", Align::Right),
        ("player", table::PLAYER_COLUMN),
        (score_heading(top.ranking), Align::Right),
        ("reached", Align::Left),
    ];
    let rows = top.rows.iter().map(|row| {
        vec![
            group_digits(row.position),
            sanitize(&row.name),
            score(top.ranking, row.score),
            relative_time(Some(row.reached_ms), now_ms),
        ]
    });
    print_table(out, &columns, rows)
}

fn print_player(out: &mut impl Write, player: &PlayerView) -> io::Result<()> {
    writeln!(out, "{} in {} (player {})", sanitize(&player.name), sanitize(&player.game), player.player_key)?;
    if !player.aliases.is_empty() {
        let aliases: Vec<String> = player.aliases.iter().map(|alias| sanitize(alias)).collect();
        writeln!(out, "merged with: {}", aliases.join(", "))?;
    }
    let columns = [
        ("week", Align::Left),
        ("server", Align::Left),
        ("time", Align::Right),
        ("points", Align::Right),
        ("#points", Align::Right),
        ("points/s", Align::Right),
        ("#clq1", Align::Right),
        ("clq2", Align::Right),
        ("#clq2", Align::Right),
        ("elo", Align::Right),
        ("#elo", Align::Right),
    ];
    let optional = &["elo", "clq2", "points/s", "points", "time"];
    print_optional_table(out, &columns, optional, player.weeks.iter().map(week_cells))?;
    if player.weeks_more > 0 {
        let more = group_digits(player.weeks_more);
        writeln!(
            out,
            "{more} further rows are not shown: older weeks, and servers where the player was for a shorter time"
        )?;
    }
    if !player.best.is_empty() {
        writeln!(out, "best positions of closed weeks")?;
        let columns = [("ranking", Align::Left), ("server", Align::Left), ("#", Align::Right), ("week", Align::Left)];
        let rows = player.best.iter().map(|best| {
            vec![
                best.ranking.name().to_owned(),
                sanitize(&best.server),
                group_digits(best.position.into()),
                sanitize(&best.week),
            ]
        });
        print_table(out, &columns, rows)?;
    }
    writeln!(out)
}

fn week_cells(week: &PlayerWeekView) -> Vec<String> {
    let position = |ranking| week.positions.get(&ranking).map_or(String::new(), |&p| group_digits(p.into()));
    // A player without a position in a ranking has no score in it.
    let ranked = |ranking, score: String| {
        if week.positions.contains_key(&ranking) { score } else { "-".to_owned() }
    };
    vec![
        sanitize(&week.week),
        sanitize(&week.server),
        duration(week.time_ms),
        points(week.points),
        position(Ranking::Points),
        ranked(Ranking::Clq1, format!("{:.4}", clq1_per_s(week.clq1))),
        position(Ranking::Clq1),
        ranked(Ranking::Clq2, group_digits(week.clq2)),
        position(Ranking::Clq2),
        ranked(Ranking::Elo, elo(week.elo)),
        position(Ranking::Elo),
    ]
}

#[cfg(test)]
mod tests;
