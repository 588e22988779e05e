//! Text output of `clqd board`: a title line, then a table.

use std::io::{self, Write};

use super::{Print, Printer};
use crate::api::requests::{BoardLine, FusedLine};
use crate::cli::output::format::{bytes, format_time, group_digits, relative_time, sanitize, score, score_heading};
use crate::cli::output::table::{self, Align, Column, Table};
use crate::model::row::Ranking;
use crate::model::scope::Scope;
use crate::view::board::{
    BoardEntryView, BoardHead, EntryScore, FusedHead, FusedView, MissingPlayer, PositionForView, ScoreBounds,
    StandingView, StandingsView, WindowPhase, WindowSummary, WindowView,
};

/// The state of one response: its head and its table.
#[derive(Debug, Default)]
pub(super) struct BoardPrinter {
    /// Only position, name, score and time.
    pub(super) is_brief: bool,
    head: Option<BoardHead>,
    fused: Vec<Ranking>,
    table: Option<Table>,
    /// The range of scores that was asked for.
    pub(super) scores: ScoreBounds,
    /// Why the board is empty, if it is not for lack of play.
    pub(super) why_empty: Option<String>,
    /// Positions of the first and last entry shown.
    shown: Option<(u64, u64)>,
}

impl BoardPrinter {
    /// Prints buffered rows, and the cursors of the adjacent pages.
    pub fn finish(&mut self, out: &mut impl Write) -> io::Result<()> {
        if let Some(mut table) = self.table.take() {
            table.flush(out)?;
        }
        let Some(head) = self.head.take() else { return Ok(()) };
        let Some(page) = &head.page else { return Ok(()) };
        let (first, last) = self.shown.unwrap_or((head.size + 1, head.size));
        if first > 1 {
            writeln!(out, "previous page: --before {}", sanitize(&page.before))?;
        }
        if last < head.size {
            writeln!(out, "next page: --after {}", sanitize(&page.after))?;
        }
        Ok(())
    }

    /// The head's ranking; a response without a head prints plain scores.
    fn ranking(&self) -> Ranking {
        self.head.as_ref().map_or(Ranking::Points, |head| head.ranking)
    }

    fn print_head(&self, out: &mut impl Write, head: &BoardHead, now_ms: i64) -> io::Result<()> {
        let order = super::describe_order(head.order);
        let place = board_title(&head.scope, &head.window);
        writeln!(out, "{} on {place}, {}{order}", head.ranking.name(), players(head.size))?;
        if let Some(range) = head.range {
            let from = match range.count {
                0 => String::new(),
                _ => format!(", from position {}", group_digits(range.first)),
            };
            writeln!(out, "{}{}{from}", players(range.count), describe_range(head.ranking, self.scores))?;
        }
        if head.page.as_ref().is_some_and(|page| page.board_changed) {
            writeln!(out, "the board has changed since the cursor was created: entries may be repeated or missing")?;
        }
        match &self.why_empty {
            _ if !head.is_empty_and_open() => Ok(()),
            Some(why) => why.lines().try_for_each(|line| super::print_wrapped(out, line)),
            None => super::print_wrapped(out, &why_empty(head, now_ms)),
        }
    }

    fn entries(&mut self) -> &mut Table {
        let ranking = self.ranking();
        let columns = entry_columns(ranking);
        self.table.get_or_insert_with(|| match self.is_brief {
            true => Table::new(&BRIEF_COLUMNS.map(|at| columns[at])),
            false => Table::new(&columns).with_alternatives("#", SHARED_POSITIONS),
        })
    }

    fn entry(&mut self, out: &mut impl Write, entry: &BoardEntryView, now_ms: i64) -> io::Result<()> {
        let at = &entry.at;
        let (first, last) = self.shown.unwrap_or((at.position, at.position));
        self.shown = Some((first.min(at.position), last.max(at.position)));
        let mut cells = positions(at).to_vec();
        cells.extend([sanitize(&entry.name), entry.player_key.to_string()]);
        cells.extend([score(self.ranking(), at.score), relative_time(Some(at.reached_ms), now_ms)]);
        if self.is_brief {
            cells = BRIEF_COLUMNS.map(|at| std::mem::take(&mut cells[at])).to_vec();
        }
        self.entries().row(out, cells)
    }

    fn absent(&mut self, out: &mut impl Write, absent: &MissingPlayer) -> io::Result<()> {
        let dash = || "-".to_owned();
        let key = absent.player_key.map_or_else(dash, |key| key.to_string());
        let known = absent.player_key.is_some() && !absent.name.is_empty();
        let why = if known { "not ranked" } else { "unknown player" };
        self.entries().row(out, vec![dash(), dash(), dash(), sanitize(&absent.name), key, dash(), why.to_owned()])
    }

    fn window(&mut self, out: &mut impl Write, listed: &WindowSummary) -> io::Result<()> {
        let number = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), group_digits);
        let size = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), bytes);
        let phase = match listed.phase {
            WindowPhase::Closed => "final",
            WindowPhase::Running => "running",
            WindowPhase::Upcoming => "upcoming",
        };
        let [from, to] = span(&listed.window);
        let mut cells = vec![sanitize(&listed.kind), sanitize(&listed.window.window), from, to, phase.to_owned()];
        cells.extend([number(listed.players), size(listed.memory_bytes)]);
        if let Some(stored) = listed.stored {
            cells.extend([group_digits(stored.records), bytes(stored.bytes)]);
        }
        let columns = &WINDOW_COLUMNS[..cells.len()];
        let optional = if listed.stored.is_some() { &["memory", "type", "phase"][..] } else { &["memory", "type"] };
        self.table.get_or_insert_with(|| Table::new(columns).with_optional(optional)).row(out, cells)
    }

    fn fused(&mut self, out: &mut impl Write, fused: &FusedView) -> io::Result<()> {
        let mut cells = vec![
            fused.position.map_or("-".to_owned(), group_digits),
            sanitize(&fused.name),
            fused.player_key.to_string(),
            format!("{:.6}", fused.score),
        ];
        let on = |ranking| fused.positions.get(ranking).map_or("-".to_owned(), |&p| group_digits(p.into()));
        cells.extend(self.fused.iter().map(on));
        let mut columns =
            vec![("#", Align::Right), ("player", table::PLAYER_COLUMN), ("key", Align::Right), ("score", Align::Right)];
        columns.extend(self.fused.iter().map(|ranking| (ranking.name(), Align::Right)));
        self.table.get_or_insert_with(|| Table::new(&columns)).row(out, cells)
    }
}

impl Print for BoardLine {
    fn print<W: Write>(self, Printer { board, out, now_ms, .. }: &mut Printer<W>) -> io::Result<()> {
        match self {
            BoardLine::BoardHead(head) => {
                board.print_head(out, &head, *now_ms)?;
                board.head = Some(*head);
                Ok(())
            }
            BoardLine::Entry(entry) => board.entry(out, &entry, *now_ms),
            BoardLine::Absent(absent) => board.absent(out, &absent),
            BoardLine::Standing(standing) => print_standings(out, &[standing], *now_ms),
            BoardLine::PositionFor(position) => print_position(out, board.ranking(), &position),
        }
    }
}

impl Print for FusedLine {
    fn print<W: Write>(self, Printer { board, out, .. }: &mut Printer<W>) -> io::Result<()> {
        match self {
            FusedLine::FusedHead(head) => {
                print_fused_head(out, &head)?;
                board.fused = head.rankings.iter().map(|weighed| weighed.ranking).collect();
                Ok(())
            }
            FusedLine::Fused(fused) => board.fused(out, &fused),
        }
    }
}

impl Print for StandingsView {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        print_player(&mut printer.out, &self, printer.now_ms)
    }
}

impl Print for WindowSummary {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        printer.board.window(&mut printer.out, &self)
    }
}

impl Print for WindowView {
    fn print<W: Write>(self, printer: &mut Printer<W>) -> io::Result<()> {
        let [from, to] = span(&self);
        writeln!(printer.out, "{}  deleted ({from} to {to})", sanitize(&self.window))
    }
}

/// The columns of `clqd board windows`; the last two only with --bytes.
const WINDOW_COLUMNS: [Column; 9] = [
    ("type", Align::Left),
    ("window", Align::Left),
    ("from", Align::Left),
    ("to", Align::Left),
    ("phase", Align::Left),
    ("players", Align::Right),
    ("memory", Align::Right),
    ("records", Align::Right),
    ("stored", Align::Right),
];

/// Start and end, in UTC.
fn span(window: &WindowView) -> [String; 2] {
    [window.start_ms, window.end_ms].map(|t_ms| t_ms.map_or_else(|| "-".to_owned(), format_time))
}

/// The three kinds of position, as `positions` fills them in.
const POSITIONS: [Column; 3] = [("#", Align::Right), ("shared", Align::Right), ("dense", Align::Right)];

/// Of [`POSITIONS`], those that differ from the first only if players have equal scores.
const SHARED_POSITIONS: &[&str] = &["shared", "dense"];

/// Of [`entry_columns`].
const BRIEF_COLUMNS: [usize; 4] = [0, 3, 5, 6];

fn entry_columns(ranking: Ranking) -> [Column; 7] {
    let [ordinal, competition, dense] = POSITIONS;
    let name = [("player", table::PLAYER_COLUMN), ("key", Align::Right)];
    let scored = [(score_heading(ranking), Align::Right), ("reached", Align::Left)];
    [ordinal, competition, dense, name[0], name[1], scored[0], scored[1]]
}

fn positions(at: &EntryScore) -> [String; 3] {
    [at.position, at.competition, at.dense].map(group_digits)
}

fn board_title(scope: &Scope, window: &WindowView) -> String {
    let scope = match scope {
        Scope::Server(url) => url.as_str().to_owned(),
        Scope::Game(name) | Scope::Tag(name) => format!("{} {}", scope.kind(), sanitize(name)),
    };
    let state = if window.closed { "final" } else { "running" };
    format!("{scope} in {} ({state})", sanitize(&window.window))
}

fn players(n: u64) -> String {
    format!("{} {}", group_digits(n), if n == 1 { "player" } else { "players" })
}

/// ` with at least 1.20 and less than 2.40 points/min`; empty without bounds.
fn describe_range(ranking: Ranking, scores: ScoreBounds) -> String {
    let ScoreBounds { at_least, above, at_most, below } = scores;
    let bounds = [("at least", at_least), ("more than", above), ("at most", at_most), ("less than", below)];
    let bounds = bounds.into_iter().filter_map(|(what, bound)| Some(format!("{what} {}", score(ranking, bound?))));
    let bounds = bounds.collect::<Vec<_>>().join(" and ");
    let unit = match ranking {
        Ranking::Clq1 => " points/min",
        Ranking::Points => " points",
        Ranking::Clq2 => " in clq2",
        Ranking::Elo => " in elo",
        Ranking::Time => "",
    };
    if bounds.is_empty() { bounds } else { format!(" with {bounds}{unit}") }
}

/// Why nobody is on the board of a running window, and when that changes.
fn why_empty(head: &BoardHead, now_ms: i64) -> String {
    match (head.ranking, head.first_score_ms) {
        (Ranking::Clq1, Some(t_ms)) => {
            let when = relative_time(Some(t_ms.max(now_ms)), now_ms);
            format!("nobody has played for 12 minutes yet, which a score in clq1 needs; the first will have {when}")
        }
        (Ranking::Clq1, None) => {
            "a score in clq1 needs 12 minutes of uninterrupted play; nobody has one in this window yet".to_owned()
        }
        (Ranking::Clq2 | Ranking::Elo, _) => {
            format!(
                "a score in {} needs a round that has ended; nobody has one in this window yet",
                head.ranking.name()
            )
        }
        (Ranking::Points | Ranking::Time, _) => "nobody who is ranked has played in this window yet".to_owned(),
    }
}

fn print_position(out: &mut impl Write, ranking: Ranking, view: &PositionForView) -> io::Result<()> {
    let score = score(ranking, view.score);
    let PositionForView { position, competition, dense, .. } = view;
    writeln!(
        out,
        "{score} reached now: position {}, shared {}, dense {}",
        group_digits(*position),
        group_digits(*competition),
        group_digits(*dense)
    )
}

fn print_player(out: &mut impl Write, player: &StandingsView, now_ms: i64) -> io::Result<()> {
    let board = board_title(&player.scope, &player.window);
    writeln!(out, "{} (player {}) on {board}", sanitize(&player.name), player.player_key)?;
    print_standings(out, &player.standings, now_ms)
}

fn print_standings(out: &mut impl Write, standings: &[StandingView], now_ms: i64) -> io::Result<()> {
    let mut columns = vec![("ranking", Align::Left)];
    columns.extend(POSITIONS);
    columns.extend([
        ("of", Align::Right),
        ("ahead of", Align::Right),
        ("score", Align::Right),
        ("reached", Align::Left),
    ]);
    let rows = standings.iter().map(|standing| {
        let mut cells = vec![standing.ranking.name().to_owned()];
        match &standing.entry {
            Some(at) => cells.extend(positions(at)),
            None => cells.extend(std::iter::repeat_n("-".to_owned(), POSITIONS.len())),
        }
        cells.push(group_digits(standing.size));
        cells.push(standing.percentile.map_or("-".to_owned(), |percent| format!("{percent:.1} %")));
        cells.push(standing.entry.map_or("-".to_owned(), |at| score(standing.ranking, at.score)));
        cells.push(standing.entry.map_or("-".to_owned(), |at| relative_time(Some(at.reached_ms), now_ms)));
        cells
    });
    let mut table = Table::new(&columns).with_alternatives("#", SHARED_POSITIONS);
    rows.into_iter().try_for_each(|row| table.row(out, row))?;
    table.flush(out)
}

fn print_fused_head(out: &mut impl Write, head: &FusedHead) -> io::Result<()> {
    let weighed = head.rankings.iter().map(|r| {
        let weight = if r.weight == 1.0 { String::new() } else { format!(" x {}", r.weight) };
        format!("{}{weight} ({})", r.ranking.name(), players(r.size))
    });
    let weighed = weighed.collect::<Vec<_>>().join(", ");
    let title = board_title(&head.scope, &head.window);
    super::print_wrapped(out, &format!("{title} together, k {}: {weighed}", head.k))
}
