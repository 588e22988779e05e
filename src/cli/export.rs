//! `clqd export`: every row of a week as JSON lines (docs/rules.md section 13).

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use serde::Serialize;

use super::admin::parse_week;
use super::offline;
use crate::api::json;
use crate::cli::context::CliContext;
use crate::engine::ViewError;
use crate::model::row::{PlayerRow, Ranking};
use crate::state::State;
use crate::store::StoreError;

#[derive(Clone, Debug, clap::Args)]
pub struct ExportArgs {
    /// State directory
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// ISO label of the week, such as 2026-W47
    #[arg(long, value_name = "LABEL", value_parser = parse_week)]
    pub week: String,
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    week: &'a str,
    server: &'a str,
    game: &'a str,
    player: &'a str,
    measured_ms: u64,
    starts: u32,
    time_ms: u64,
    time_est_ms: u64,
    points: i64,
    points_est: f64,
    clq1: u64,
    clq1_segments: Vec<u64>,
    clq2: u64,
    clq2_games: Vec<u64>,
    elo: f64,
    elo_rounds: u32,
    pos: Positions,
}

#[derive(Serialize)]
struct Positions {
    #[serde(skip_serializing_if = "Option::is_none")]
    clq1: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clq2: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elo: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    points: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<u32>,
}

pub fn run(args: &ExportArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let state =
        offline::open(&app.config()?, &args.state, &|| false).map_err(|error| match offline::is_locked(&error) {
            true => anyhow!("{error}; stop the daemon before an export"),
            false => anyhow!(error).context("cannot read the state"),
        })?;
    let out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    match write_rows(&state, &args.week, app.json().then_some("export"), out) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(ExportError::Io(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        // A week without play has no rows.
        Err(ExportError::View(e @ ViewError::UnknownWeek { .. })) => {
            eprintln!("clqd: {e}");
            Ok(ExitCode::SUCCESS)
        }
        Err(e) => Err(e.into()),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    View(#[from] ViewError<StoreError>),
    #[error("cannot write the rows")]
    Io(#[from] std::io::Error),
}

/// Writes all rows of a week, in order of server URL, player name, game.
pub fn write(state: &State, week: &str, out: impl Write) -> Result<(), ExportError> {
    write_rows(state, week, None, out)
}

/// As [`write()`]; with a kind, each line begins with it.
fn write_rows(state: &State, week: &str, kind: Option<&str>, mut out: impl Write) -> Result<(), ExportError> {
    state.engine.export(&state.store, week, |server, game, player, row: &PlayerRow, positions| {
        let line = Line {
            kind,
            week,
            server,
            game,
            player,
            measured_ms: row.measured_ms,
            starts: row.starts,
            time_ms: row.time_ms(),
            time_est_ms: row.time_est_ms,
            points: row.points,
            points_est: row.points_est(),
            clq1: row.clq1(),
            clq1_segments: row.clq1_segments.values().collect(),
            clq2: row.clq2(),
            clq2_games: row.clq2_games.values().collect(),
            elo: row.elo,
            elo_rounds: row.elo_rounds,
            pos: Positions {
                clq1: positions[Ranking::Clq1 as usize],
                clq2: positions[Ranking::Clq2 as usize],
                elo: positions[Ranking::Elo as usize],
                points: positions[Ranking::Points as usize],
                time: positions[Ranking::Time as usize],
            },
        };
        json::to_writer(&mut out, &line)?;
        out.write_all(b"\n").map_err(ExportError::Io)
    })?;
    out.flush()?;
    Ok(())
}
