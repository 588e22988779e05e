//! Prints lines of answers as tables for people, or as JSON lines for programs.

mod archive;
mod board;
mod clock;
mod correction;
pub mod format;
mod history;
mod named_line;
mod overview;
pub mod player;
mod restored;
mod server;
pub mod status;
pub mod table;

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use crate::api::requests::{
    BackupRow, ChangeOutcome, ResendRow, RestoredRow, ScanResult, ScanRow, ServerChange, VerifyLine,
};
use crate::api::{EngineRow, Line, NoLine, ScannerRow, Status, json};
use crate::cli::output::format::{
    duration, format_time, group_digits, points, relative_time, sanitize, sanitize_name, score, score_heading,
    time_utc, wrapped_below,
};
use crate::cli::output::table::{Align, Column, Table, pad, truncate};
use crate::cli::stdio;
use crate::model::row::Ranking;
use crate::view::board::{OrderView, ScoreBounds};
use crate::view::export::ExportRow;
use crate::view::history::{BestPlayers, MapTotals, MapView};
use crate::view::session::{ExportedSession, SessionView};
use crate::view::{
    CaptureDeletion, ClockStatus, Correction, ForgottenName, OnlineSeriesView, Overview, PlayerNameView, PlayerView,
    ServerDetail, ServerSummary, TagSummary, Top,
};

/// The command that scans all servers of classes 6 and 7 now.
pub const RESCAN_FAILED: &str = "clqd rescan --all-unknown";

/// Prints the lines of one answer.
#[derive(Debug)]
pub struct Printer<W: Write> {
    json: bool,
    /// The time when the printer was created, Unix ms. Relative times refer to it.
    now_ms: i64,
    out: W,
    /// The table of a list of servers or maps; `None` before the first row.
    list: Option<Table>,
    /// A list of servers has the reasons why they are greylisted.
    of_greylist: bool,
    /// The state is that of a daemon that is not running: nothing in it happens now.
    pub of_stopped: bool,
    /// Prints the lines of board queries.
    board: board::BoardPrinter,
}

impl<W: Write> Printer<W> {
    pub fn new(json: bool, out: W) -> Printer<W> {
        let (now_ms, board) = (crate::clock::system_ms(), board::BoardPrinter::default());
        Printer { json, now_ms, out, list: None, of_greylist: false, of_stopped: false, board }
    }

    /// Prints boards without shared positions and keys.
    pub fn brief(mut self) -> Printer<W> {
        self.board.is_brief = true;
        self
    }

    /// Prints lists of servers with the reasons why they are greylisted.
    pub fn of_greylist(mut self) -> Printer<W> {
        self.of_greylist = true;
        self
    }

    /// Names the range of scores that the entries of a board are in.
    pub fn in_range(mut self, scores: ScoreBounds) -> Printer<W> {
        self.board.scores = scores;
        self
    }

    /// Gives the reason why a board is empty, in place of what its ranking needs.
    pub fn explain_empty(mut self, why: String) -> Printer<W> {
        self.board.why_empty = Some(why);
        self
    }

    /// Prints a line of an answer. A table buffers its first rows to compute the column widths.
    pub fn line<L: Print>(&mut self, line: L) -> io::Result<()> {
        if self.json {
            let mut text = line.to_json();
            text.push(b'\n');
            return self.out.write_all(&text);
        }
        line.print(self)
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

/// A line that is printed as text.
pub trait Print: Line {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()>;

    /// Whether the command exits with 1 after it.
    fn is_failure(&self) -> bool {
        false
    }
}

/// Implements [`Print`] for lines that need nothing but the output and the current time.
macro_rules! print_with {
    ($($line:ty: |$out:ident, $row:ident, $now_ms:pat_param| $print:expr;)*) => { $(
        impl Print for $line {
            fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
                let ($out, $row, $now_ms) = (&mut printer.out, self, printer.now_ms);
                $print
            }
        }
    )* };
}

print_with! {
    Status: |out, status, _| status::print(out, &status);
    Overview: |out, overview, _| overview::print(out, &overview);
    OnlineSeriesView: |out, series, _| overview::print_series(out, &series);
    ScanRow: |out, scan, _| print_scan(out, &scan);
    Top: |out, top, now_ms| print_top(out, &top, now_ms);
    MapView: |out, map, _| history::print_map(out, &map);
    BestPlayers: |out, best, _| history::print_best_players(out, &best);
    PlayerView: |out, player, now_ms| player::print(out, &player, now_ms);
    ClockStatus: |out, clock, _| writeln!(out, "{}", clock::describe_clock(&clock));
    ForgottenName: |out, name, _| correction::print_forgotten(out, &name);
    BackupRow: |out, backup, _| print_backup(out, &backup);
    RestoredRow: |out, restored, _| restored::print(out, &restored);
    ExportRow: |out, row, _| writeln!(out, "{}", json::to_string(&row));
    ExportedSession: |out, session, _| writeln!(out, "{}", json::to_string(&session));
    ResendRow: |out, resend, _| archive::print_resend(out, &resend);
}

impl Print for Correction {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        correction::print(&mut printer.out, &self, printer.now_ms)
    }

    /// The name is not gone everywhere.
    fn is_failure(&self) -> bool {
        matches!(self, Correction::Forgotten { captures: Some(CaptureDeletion::Failed { .. }), .. })
    }
}

impl Print for NoLine {
    fn print<W: Write>(self, _: &mut Printer<W>) -> io::Result<()> {
        match self {}
    }
}

impl Print for ServerSummary {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        if printer.of_greylist {
            let table = || Table::new(&server::GREYLIST_COLUMNS).with_optional(server::GREYLIST_OPTIONAL_COLUMNS);
            let cells = server::greylist_cells(&self);
            return printer.list.get_or_insert_with(table).row(&mut printer.out, cells);
        }
        let table = || Table::new(&server::COLUMNS).with_optional(server::OPTIONAL_COLUMNS);
        let cells = server::cells(&self.public, printer.now_ms);
        printer.list.get_or_insert_with(table).row(&mut printer.out, cells)
    }
}

impl Print for ServerDetail {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        let Printer { out, now_ms, of_stopped, .. } = printer;
        server::print(out, &self, *now_ms, *of_stopped)
    }
}

impl Print for MapTotals {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        let table = printer.list.get_or_insert_with(|| Table::new(&history::TOTALS_COLUMNS));
        table.row(&mut printer.out, history::totals_cells(&self))
    }
}

impl Print for TagSummary {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        let number = Align::Right;
        let columns = [("tag", Align::Left), ("servers", number), ("online", number), ("players", number)];
        let TagSummary { tag, servers, servers_online, players_online } = self;
        let [servers, online, players] = [servers, servers_online, players_online].map(group_digits);
        let table = printer.list.get_or_insert_with(|| Table::new(&columns));
        table.row(&mut printer.out, vec![sanitize(&tag), servers, online, players])
    }
}

impl Print for SessionView {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        let columns = [
            ("until (UTC)", Align::Left),
            ("for", Align::Right),
            ("player", Align::Left),
            ("points", Align::Right),
            ("server", Align::Left),
            ("map", Align::Left),
        ];
        let is_open = self.open && !printer.of_stopped;
        let until = if is_open { "now".to_owned() } else { format_time(self.end_ms) };
        let cells = vec![
            until,
            duration(self.end_ms.saturating_sub(self.start_ms).max(0) as u64),
            sanitize(&self.name),
            self.points.map_or_else(|| "-".to_owned(), points),
            if self.hostname.is_empty() { sanitize(&self.server) } else { sanitize_name(&self.hostname, &self.server) },
            sanitize(&self.map),
        ];
        let table = printer.list.get_or_insert_with(|| Table::new(&columns).with_optional(&["map", "points"]));
        table.row(&mut printer.out, cells)
    }
}

impl Print for PlayerNameView {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        let columns = [
            ("player", table::PLAYER_COLUMN),
            ("game", table::GAME_COLUMN),
            ("key", Align::Right),
            ("last seen", Align::Left),
        ];
        // An old state does not know the time.
        let seen = self.last_seen_ms.map_or_else(|| "-".to_owned(), |t_ms| relative_time(Some(t_ms), printer.now_ms));
        let cells = vec![sanitize(&self.name), sanitize(&self.game), self.player_key.to_string(), seen];
        printer.list.get_or_insert_with(|| Table::new(&columns)).row(&mut printer.out, cells)
    }
}

impl Print for ScannerRow {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        let number = Align::Right;
        let columns = [
            ("scanner", Align::Left),
            ("region", Align::Left),
            ("heard", number),
            ("in progress", number),
            ("answered", number),
            ("missed", number),
        ];
        let cells = vec![
            self.name,
            self.region,
            format!("{:.1} s ago", self.heard_ago_ms as f64 / 1_000.0),
            group_digits(self.in_progress),
            group_digits(self.answered),
            group_digits(self.missed),
        ];
        let table = printer.list.get_or_insert_with(|| Table::new(&columns));
        table.row(&mut printer.out, cells)
    }
}

impl Print for EngineRow {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        let number = Align::Right;
        let columns = [
            ("engine", Align::Left),
            ("role", Align::Left),
            ("batch", number),
            ("behind", number),
            ("heard", number),
            ("address", Align::Left),
        ];
        let cells = vec![
            self.engine,
            <&str>::from(self.role).to_owned(),
            self.seq.to_string(),
            group_digits(self.behind),
            format!("{:.1} s ago", self.heard_ago_ms as f64 / 1_000.0),
            sanitize(&self.address),
        ];
        let table = printer.list.get_or_insert_with(|| Table::new(&columns));
        table.row(&mut printer.out, cells)
    }
}

impl Print for ServerChange {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        print_change(&mut printer.out, &self)
    }

    fn is_failure(&self) -> bool {
        matches!(self.outcome, ChangeOutcome::Refused | ChangeOutcome::NotFound)
    }
}

impl Print for VerifyLine {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        match self {
            VerifyLine::ArchiveDifference(difference) => archive::print_difference(&mut printer.out, &difference),
            VerifyLine::ArchiveVerified(verified) => archive::print_verified(&mut printer.out, &verified),
        }
    }

    fn is_failure(&self) -> bool {
        matches!(self, VerifyLine::ArchiveVerified(verified) if verified.differences > 0)
    }
}

fn print_table(
    out: &mut impl Write,
    columns: &[Column],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<()> {
    let mut table = Table::new(columns);
    rows.into_iter().try_for_each(|row| table.row(out, row))?;
    table.flush(out)
}

fn print_backup(out: &mut impl Write, backup: &BackupRow) -> io::Result<()> {
    let as_of = match backup.latest_event_ms {
        0 => "nothing was scanned yet".to_owned(),
        t_ms => format!("state as of {}", time_utc(t_ms)),
    };
    let (bytes, records) = (group_digits(backup.bytes), group_digits(backup.records));
    print_wrapped(out, &format!("{}  {bytes} bytes, {records} records, {as_of}", sanitize(&backup.dir)))
}

/// Prints text in lines that fit the terminal.
fn print_wrapped(out: &mut impl Write, text: &str) -> io::Result<()> {
    let width = stdio::width().unwrap_or(usize::MAX);
    wrapped_below(text, width).iter().try_for_each(|line| writeln!(out, "{line}"))
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
        ChangeOutcome::BudgetSet => "budget set",
        ChangeOutcome::Greylisted => "greylisted",
        ChangeOutcome::Lifted => "removed from the greylist",
        ChangeOutcome::Boosted => "scanned once a minute",
        ChangeOutcome::BoostEnded => "no longer scanned once a minute",
        ChangeOutcome::Refused => "refused",
        ChangeOutcome::ListedTwice => "listed twice",
    };
    let reason = change.reason.as_ref().map(|reason| format!(": {}", sanitize(reason))).unwrap_or_default();
    // The scheme of a server without one.
    let asked = change.url.strip_prefix("auto://").unwrap_or(&change.url);
    writeln!(out, "{}  {outcome}{reason}", sanitize(asked))
}

/// Prints the result of one scan on one line and flushes it. The results of one response
/// arrive over minutes, so the columns have fixed widths and no table buffers them.
fn print_scan(out: &mut impl Write, scan: &ScanRow) -> io::Result<()> {
    let width = stdio::width().unwrap_or(usize::MAX);
    let is_narrow = width < SCAN_WIDTH;
    let url_width = if is_narrow { 30 } else { 36 };
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
            let game_and_map = match is_narrow {
                true => pad(&text(&scan.map), 12),
                false => format!("{} {}", pad(&text(&scan.game), 12), pad(&text(&scan.map), 16)),
            };
            let hostname_width = width.saturating_sub(url_width + 22 + game_and_map.width()).clamp(8, 48);
            format!("{occupancy:>9}  {game_and_map} {}{partial}", truncate(&text(&scan.hostname), hostname_width))
        }
    };
    writeln!(out, "{:<url_width$} class {}  {}", sanitize(&scan.url), scan.class, result.trim_end())?;
    out.flush()
}

/// On a narrower terminal scans are printed without the game.
const SCAN_WIDTH: usize = 110;

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
    let mut columns = vec![
        ("#", Align::Right),
        ("player", table::PLAYER_COLUMN),
        (score_heading(top.ranking), Align::Right),
        ("reached", Align::Left),
    ];
    let of_rounds = matches!(top.ranking, Ranking::Clq2 | Ranking::Elo);
    columns.extend(of_rounds.then_some(("sure rounds", Align::Right)));
    let rows = top.rows.iter().map(|row| {
        let mut cells = vec![
            group_digits(row.position),
            sanitize(&row.name),
            score(top.ranking, row.score),
            relative_time(Some(row.reached_ms), now_ms),
        ];
        cells.extend(of_rounds.then(|| sure_rounds(row.elo_rounds_sure, row.elo_rounds)));
        cells
    });
    print_table(out, &columns, rows)
}

/// How many of a player's rated rounds have a sure winner.
fn sure_rounds(sure: u32, rounds: u32) -> String {
    match rounds {
        0 => String::new(),
        rounds => format!("{} of {}", group_digits(sure.into()), group_digits(rounds.into())),
    }
}

#[cfg(test)]
mod tests;
