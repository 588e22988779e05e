//! `clqd export`: every row of a week, or every session, as JSON lines (docs/rules.md sections 13 and 16).

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;

use super::arguments::parse_week;
pub use super::offline::ExportError;
use super::offline::{self, each_row};
use crate::api::requests::{Export, ExportSessions};
use crate::api::{Answer, ApiError, Kind, Line, Request, Tagged, json};
use crate::cli::context::{CliContext, Source};
use crate::cli::stdio::Output;
use crate::engine::ViewError;
use crate::state::State;

/// Print every row of a week, or every session, as JSON lines
///
/// A running daemon sends the rows while it works: those of one server are of one moment.
#[derive(Clone, Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["week", "sessions"])))]
pub struct ExportArgs {
    /// Read this state directory, such as a backup, instead of that of the daemon
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// ISO label of the week, such as 2026-W47
    #[arg(long, value_name = "LABEL", value_parser = parse_week)]
    pub week: Option<String>,
    /// Complete sessions that are kept, instead of the rows of a week
    #[arg(long)]
    pub sessions: bool,
}

pub fn run(args: &ExportArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::with_capacity(1 << 16, Output::ending());
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
    let rows = match &args.week {
        Some(week) => {
            print(app, source, Export { week: week.clone() }, &mut out, |state, each| each_row(state, week, each))?
        }
        None => print(app, source, ExportSessions {}, &mut out, offline::each_session)?,
    };
    out.flush()?;
    match &args.week {
        Some(week) if rows == 0 => Err(ApiError::from(ViewError::EmptyWeek(week.clone())).into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Prints the rows that a daemon sends for a request, or that are read from a state. Returns their number.
fn print<R: Request<Answer = Vec<T>>, T: Kind + Line>(
    app: &CliContext,
    source: Source,
    request: R,
    out: &mut impl Write,
    read: impl Fn(&State, &mut dyn FnMut(T) -> io::Result<()>) -> Result<(), ExportError>,
) -> anyhow::Result<u64>
where
    Vec<T>: Answer<Line = T>,
{
    let mut rows = 0;
    let mut print = |row: T| {
        rows += 1;
        match app.json() {
            false => write_row(out, &row),
            true => writeln!(out, "{}", json::to_string(&Tagged::from(&row))),
        }
    };
    match source {
        Source::Daemon(mut client) => _ = client.send(&request, print)?,
        Source::State(state, _) => match read(&state, &mut print) {
            Err(ExportError::View(error)) => return Err(ApiError::from(error).into()),
            written => written?,
        },
    }
    Ok(rows)
}

/// Writes all rows of a week, as [`each_row`] passes them on.
pub fn write(state: &State, week: &str, mut out: impl Write) -> Result<(), ExportError> {
    each_row(state, week, &mut |row| write_row(&mut out, &row))?;
    Ok(out.flush()?)
}

fn write_row(out: &mut impl Write, row: &impl Serialize) -> io::Result<()> {
    json::to_writer(&mut *out, row)?;
    out.write_all(b"\n")
}
