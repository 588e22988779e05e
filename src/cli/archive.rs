//! `clqd archive`: compares the archive with the state, and writes weeks to it again.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::admin::{send, send_long};
use crate::api::requests;
use crate::api::requests::WeekRange;
use crate::cli::context::CliContext;
use crate::model::calendar::parse_week_label;

#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// Write all rows of kept weeks to the archive again
    ///
    /// Use it after rows were lost or changed in MySQL. Surplus rows are deleted. The daemon queues the weeks at once and
    /// writes them in the background: `clqd status` shows the length of the queue. Without --weeks it writes everything
    /// again: names, servers, players and all kept weeks.
    Resend(WeeksArgs),
    /// Compare the archive with the state and list the differences
    ///
    /// The daemon continues to scan meanwhile. A week of a server that changes, or that waits to be archived, is
    /// compared again after the next two passes of the archive, which takes an interval (archive.interval_s).
    /// Exits with 1 if there are differences. `clqd archive resend` repairs them.
    Verify(WeeksArgs),
    /// Write an archive that another copy of this state has written
    ///
    /// Use it when `clqd status` shows the fault in_use or older_database, and no other clqd shall write the archive.
    /// Everything is written again, as by `clqd archive resend`. A clqd that has written until now stops writing.
    TakeOver,
}

#[derive(Debug, Args)]
pub struct WeeksArgs {
    /// Such as 2026-W45..2026-W47 [default: all]
    ///
    /// Or one week, such as 2026-W47. The default is all that the state keeps.
    #[arg(long, value_name = "LABEL[..LABEL]", value_parser = parse_weeks)]
    weeks: Option<WeekRange>,
}

pub fn run(command: ArchiveCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    match command {
        ArchiveCommand::Resend(WeeksArgs { weeks }) => send(app, &requests::ArchiveResend { weeks, take_over: false }),
        ArchiveCommand::TakeOver => send(app, &requests::ArchiveResend { weeks: None, take_over: true }),
        ArchiveCommand::Verify(WeeksArgs { weeks }) => send_long(app, &requests::ArchiveVerify { weeks }),
    }
}

fn parse_weeks(text: &str) -> Result<WeekRange, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let week = |label: &str| parse_week_label(label).map_err(|error| error.to_string());
    if week(first)? > week(last)? {
        return Err(format!("the first week, {first}, is after the last, {last}"));
    }
    Ok(WeekRange { first: first.to_owned(), last: last.to_owned() })
}
