//! `clqd export`: every row of a week as JSON lines (docs/rules.md section 13).

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use super::arguments::parse_week;
pub use super::offline::ExportError;
use super::offline::{self, each_row};
use crate::api::requests::Export;
use crate::api::{ApiError, Tagged, json};
use crate::cli::context::{CliContext, Source};
use crate::cli::stdio::Output;
use crate::engine::ViewError;
use crate::model::view::export::ExportRow;
use crate::state::State;

/// Print every row of a week as JSON lines
///
/// A running daemon sends the rows while it works: those of one server are of one moment.
#[derive(Clone, Debug, clap::Args)]
pub struct ExportArgs {
    /// Read this state directory, such as a backup, instead of that of the daemon
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// ISO label of the week, such as 2026-W47
    #[arg(long, value_name = "LABEL", value_parser = parse_week)]
    pub week: String,
}

pub fn run(args: &ExportArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::with_capacity(1 << 16, Output::ending());
    let mut rows = 0;
    let mut print = |row: ExportRow| {
        rows += 1;
        match app.json() {
            false => write_row(&mut out, &row),
            true => writeln!(out, "{}", json::to_string(&Tagged::from(&row))),
        }
    };
    let source = match &args.state {
        None => app.daemon_or_state()?,
        Some(dir) => {
            let config = app.config()?;
            let opened = offline::open(&config, dir, &|| false);
            let advice = match &opened {
                Err(error) if error.is_locked() => {
                    "cannot read the state; without --state the running daemon sends the rows"
                }
                _ => "cannot read the state",
            };
            Source::State(Box::new(opened.context(advice)?), Box::new(config))
        }
    };
    match source {
        Source::Daemon(mut client) => _ = client.send(&Export { week: args.week.clone() }, print)?,
        Source::State(state, _) => match each_row(&state, &args.week, &mut print) {
            Err(ExportError::View(error)) => return Err(ApiError::from(error).into()),
            written => written?,
        },
    }
    out.flush()?;
    if rows == 0 {
        return Err(ApiError::from(ViewError::EmptyWeek(args.week.clone())).into());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes all rows of a week, as [`each_row`] passes them on.
pub fn write(state: &State, week: &str, mut out: impl Write) -> Result<(), ExportError> {
    each_row(state, week, |row| write_row(&mut out, &row))?;
    Ok(out.flush()?)
}

fn write_row(out: &mut impl Write, row: &ExportRow) -> io::Result<()> {
    json::to_writer(&mut *out, row)?;
    out.write_all(b"\n")
}
