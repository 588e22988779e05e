//! `clqd week`: corrections of whole weeks.

use std::process::ExitCode;

use clap::Subcommand;

use super::admin::send;
use super::arguments::parse_week;
use crate::api::requests;
use crate::cli::context::CliContext;
use crate::cli::stdio::{confirm, note};

#[derive(Debug, Subcommand)]
pub enum WeekCommand {
    /// Reopen a week that was closed too early; it is closed again when it ends
    ///
    /// Its best positions and server ranks are deleted, here and in MySQL, until it is closed again.
    Reopen {
        /// Such as 2026-W47
        #[arg(value_name = "LABEL", value_parser = parse_week)]
        week: String,
        /// Do not ask on a terminal
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(command: WeekCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    match command {
        WeekCommand::Reopen { week, yes } => {
            let question = format_args!(
                "reopen {week}? Its best positions and server ranks are deleted until it is closed again."
            );
            if !yes && !confirm(question)?.unwrap_or(true) {
                note("clqd: nothing was reopened");
                return Ok(ExitCode::FAILURE);
            }
            send(app, &requests::WeekReopen { week })
        }
    }
}
