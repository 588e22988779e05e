//! Prints the rows of `clqd recompute`, as JSON lines or as text.

use std::io::{self, Write};

use serde::Serialize;

use super::report::{BoardReport, LogReport, SettingsReport, TotalsReport};
use super::text::TextReport;
use crate::api::json;

/// Prints the rows, in this order: settings, log, totals, boards.
pub enum Report<W> {
    Json(W),
    Text(TextReport<W>),
}

impl<W: Write> Report<W> {
    pub fn new(out: W, json: bool) -> Report<W> {
        if json { Report::Json(out) } else { Report::Text(TextReport::new(out)) }
    }

    pub fn settings(&mut self, settings: &SettingsReport) -> io::Result<()> {
        match self {
            Report::Json(out) => write_row(out, "recompute_settings", settings),
            Report::Text(text) => text.settings(settings),
        }
    }

    pub fn log(&mut self, log: &LogReport) -> io::Result<()> {
        match self {
            Report::Json(out) => write_row(out, "recompute_log", log),
            Report::Text(text) => text.log(log),
        }
    }

    pub fn totals(&mut self, totals: &TotalsReport) -> io::Result<()> {
        match self {
            Report::Json(out) => write_row(out, "recompute_totals", totals),
            Report::Text(text) => text.totals(totals),
        }
    }

    /// The boards of one scope in one week, one for each ranking.
    pub fn boards(&mut self, boards: &[BoardReport]) -> io::Result<()> {
        match self {
            Report::Json(out) => boards.iter().try_for_each(|board| write_row(out, "recompute_board", board)),
            Report::Text(text) => text.boards(boards),
        }
    }

    pub fn finish(&mut self) -> io::Result<()> {
        match self {
            Report::Json(out) => out.flush(),
            Report::Text(text) => text.finish(),
        }
    }
}

fn write_row(out: &mut impl Write, kind: &'static str, row: &impl Serialize) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line<'r, R> {
        kind: &'static str,
        #[serde(flatten)]
        row: &'r R,
    }
    writeln!(out, "{}", json::to_string(&Line { kind, row }))
}
