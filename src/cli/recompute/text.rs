//! The report of `clqd recompute` as text.

use std::io::{self, Write};

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::report::{BoardReport, LogReport, SettingsReport, TotalsReport};
use crate::board::comparison::{NamedPlayer, TopChange};
use crate::cli::output::format::{format_time, group_digits, sanitize};
use crate::cli::output::table::{Align, Table, truncate};
use crate::cli::stdio;

/// Width of running text if standard output is no terminal.
const WIDTH_DEFAULT: usize = 80;

/// Longest shown name of a player.
const NAME_WIDTH_MAX: usize = 32;

/// Explains the columns of the tables of boards.
const LEGEND: &str = "Players are on both boards, with the recorded and with the new settings. Gained and lost players are \
                      on one of them. Moved players have another position; median and 99 % are by how many positions \
                      they moved.";

pub struct TextReport<W> {
    out: W,
    width: usize,
    boards: u64,
    boards_different: u64,
}

impl<W: Write> TextReport<W> {
    pub fn new(out: W) -> TextReport<W> {
        TextReport { out, width: stdio::width().unwrap_or(WIDTH_DEFAULT), boards: 0, boards_different: 0 }
    }

    pub fn settings(&mut self, SettingsReport { settings }: &SettingsReport) -> io::Result<()> {
        if settings.is_empty() {
            return self.paragraph("", ["The log records the same settings: no ranking would change."], " ");
        }
        writeln!(self.out, "Settings that differ:")?;
        for setting in settings {
            let before = setting.before.iter().map(shown).collect::<Vec<_>>().join(", then ");
            let words = format!("{} -> {}", before, shown(&setting.after));
            let key = format!("  {}  ", setting.key);
            self.paragraph(&key, words.split(' '), " ")?;
        }
        self.out.flush()
    }

    pub fn log(&mut self, log: &LogReport) -> io::Result<()> {
        let (first, last) = (format_time(log.first_ms), format_time(log.last_ms));
        let scans = group_digits(log.scans);
        writeln!(self.out, "\nThe log has {scans} scans, from {first} to {last} UTC.")?;
        self.paragraph("Compared weeks: ", log.weeks.iter().map(String::as_str), ", ")?;
        if !log.partial_weeks.is_empty() {
            self.paragraph(
                "Weeks of which the log has only a part: ",
                log.partial_weeks.iter().map(String::as_str),
                ", ",
            )?;
        }
        self.out.flush()
    }

    pub fn totals(&mut self, TotalsReport { before, after }: &TotalsReport) -> io::Result<()> {
        let mut table = Table::new(&[("in all", Align::Left), ("recorded", Align::Right), ("new", Align::Right)]);
        writeln!(self.out)?;
        for (name, before, after) in [
            ("complete player lists", before.snapshots, after.snapshots),
            ("lists not used (screening)", before.screened_snapshots, after.screened_snapshots),
            ("rounds", before.rounds, after.rounds),
        ] {
            table.row(&mut self.out, vec![name.to_owned(), group_digits(before), group_digits(after)])?;
        }
        table.flush(&mut self.out)?;
        writeln!(self.out)?;
        self.paragraph("", LEGEND.split(' '), " ")
    }

    pub fn boards(&mut self, boards: &[BoardReport]) -> io::Result<()> {
        self.boards += boards.len() as u64;
        self.boards_different += boards.iter().filter(|board| board.is_different()).count() as u64;
        let Some(first) = boards.first() else { return Ok(()) };
        let partial = if first.partial { " (a part of the week)" } else { "" };
        let scope = format!("{} {}", first.scope.kind(), sanitize(first.scope.name()));
        let heading = format!("{}{partial}, {scope}", first.week);
        if boards.iter().all(|board| board.players_before + board.players_after == 0) {
            return writeln!(self.out, "\n{heading}: nobody is on a board");
        }
        writeln!(self.out, "\n{heading}")?;
        let columns = ["players", "gained", "lost", "moved", "median", "99 %", "Spearman", "first ten"];
        let columns: Vec<_> = columns.into_iter().map(|name| (name, Align::Right)).collect();
        let mut table = Table::new(&[&[("ranking", Align::Left)], &columns[..]].concat());
        for board in boards {
            let changes = board.top_ten_entered.len().max(board.top_ten_left.len());
            table.row(
                &mut self.out,
                vec![
                    board.ranking.name().to_owned(),
                    count(board.players_both),
                    count(board.gained),
                    count(board.lost),
                    count(board.moved),
                    board.moved_by_median.map_or_else(none, count),
                    board.moved_by_p99.map_or_else(none, count),
                    board.spearman.map_or_else(none, correlation),
                    match changes {
                        0 => "same".to_owned(),
                        changes => format!("{changes} new"),
                    },
                ],
            )?;
        }
        table.flush(&mut self.out)?;
        for board in boards {
            let name = board.ranking.name();
            self.changes(&format!("  {name}, enter the first ten: "), &board.top_ten_entered)?;
            self.changes(&format!("  {name}, leave the first ten: "), &board.top_ten_left)?;
        }
        Ok(())
    }

    fn changes(&mut self, heading: &str, players: &[TopChange<NamedPlayer>]) -> io::Result<()> {
        let position = |position: Option<u32>| position.map_or_else(none, |position| position.to_string());
        let shown = |change: &TopChange<NamedPlayer>| {
            let name = sanitize(&change.player.name);
            format!("{} ({} -> {})", truncate(&name, NAME_WIDTH_MAX), position(change.before), position(change.after))
        };
        if players.is_empty() {
            return Ok(());
        }
        let players: Vec<String> = players.iter().map(shown).collect();
        self.paragraph(heading, players.iter().map(String::as_str), ", ")
    }

    pub fn finish(&mut self) -> io::Result<()> {
        let (boards, different) = (group_digits(self.boards), group_digits(self.boards_different));
        let sentence = match self.boards_different {
            0 => format!("\nNo difference in {boards} boards."),
            _ => format!("\n{different} of {boards} boards differ."),
        };
        writeln!(self.out, "{sentence}")?;
        self.out.flush()
    }

    /// Writes words after a heading, in lines that fit the width if possible. Further lines are indented.
    fn paragraph<'w>(
        &mut self,
        heading: &str,
        words: impl IntoIterator<Item = &'w str>,
        separator: &str,
    ) -> io::Result<()> {
        let indent = if heading.is_empty() { "" } else { "      " };
        let (mut line, mut is_first) = (heading.to_owned(), true);
        for word in words {
            let separator = if is_first { "" } else { separator };
            let needed = separator.width() + word.width() + separator.trim_end().width();
            if !is_first && line.width() + needed > self.width {
                writeln!(self.out, "{}", (line + separator).trim_end())?;
                line = format!("{indent}{word}");
            } else {
                line = line + separator + word;
            }
            is_first = false;
        }
        writeln!(self.out, "{line}")
    }
}

fn none() -> String {
    "-".to_owned()
}

fn count(n: u32) -> String {
    group_digits(n.into())
}

/// Four digits, rounded towards zero: only equal orders have 1.
fn correlation(spearman: f64) -> String {
    format!("{:.4}", (spearman * 10_000.0).trunc() / 10_000.0)
}

/// A value of a setting.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::String(text) => sanitize(text),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::board::comparison::{Placing, compare};
    use crate::cli::recompute::history::ChangedSetting;
    use crate::model::row::Ranking;
    use crate::model::scope::Scope;

    fn printed(print: impl FnOnce(&mut TextReport<Vec<u8>>)) -> String {
        let mut report = TextReport { out: Vec::new(), width: 80, boards: 0, boards_different: 0 };
        print(&mut report);
        String::from_utf8(report.out).unwrap()
    }

    #[test]
    fn settings_fit_the_width() {
        let names: Vec<String> = (0..12).map(|n| format!("player{n}")).collect();
        let setting = |key: &str, before, after| ChangedSetting { key: key.to_owned(), before, after };
        let settings = vec![
            setting("elo.k", vec![json!(25), json!(30.0)], json!(40.0)),
            setting("names.ignore", vec![json!([])], json!(names)),
        ];
        let text = printed(|report| report.settings(&SettingsReport { settings }).unwrap());
        assert!(
            text.starts_with("Settings that differ:\n  elo.k  25, then 30.0 -> 40.0\n  names.ignore  none -> player0,")
        );
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        let text = printed(|report| report.settings(&SettingsReport { settings: Vec::new() }).unwrap());
        assert_eq!(text, "The log records the same settings: no ranking would change.\n");
    }

    #[test]
    fn boards_of_large_numbers_fit_the_width() {
        let placing = |n: u32| Placing {
            player: NamedPlayer {
                game: "baseq3".to_owned(),
                name: format!("\u{202e}player with a rather long name {n}"),
            },
            competition: n,
        };
        let before: Vec<_> = (1..=12_345).map(placing).collect();
        let mut after = before.clone();
        after.rotate_left(6);
        let board = |ranking| {
            let scope = Scope::Game("baseq3".to_owned());
            BoardReport::new("2026-W47".to_owned(), true, &scope, ranking, compare(&before, &after))
        };
        let text = printed(|report| report.boards(&Ranking::ALL.map(board)).unwrap());
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        assert!(text.starts_with("\n2026-W47 (a part of the week), game baseq3\nranking "), "{text}");
        assert!(text.contains("(11 -> 5)"), "{text}");
        assert!(!text.contains('\u{202e}'));
    }

    #[test]
    fn only_equal_orders_have_a_correlation_of_one() {
        assert_eq!(correlation(1.0), "1.0000");
        assert_eq!(correlation(0.999_99), "0.9999");
        assert_eq!(correlation(-0.5), "-0.5000");
    }
}
