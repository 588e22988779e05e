//! `clqd clock`: corrections for a system clock that is not trusted, or was wrong.

use std::process::ExitCode;

use clap::Subcommand;

use super::admin::send;
use crate::api::requests;
use crate::cli::context::CliContext;

#[derive(Debug, Subcommand)]
pub enum ClockCommand {
    /// Trust the system clock for closing weeks until it jumps again
    ///
    /// Without this command the daemon waits until the clock is synchronised, or has run for ten minutes
    /// without a jump (clock.trust_after_s). A pending forward jump of more than ten minutes is applied
    /// immediately.
    Accept,
    /// Set recorded time back to the system clock, after the clock was ahead
    ///
    /// Recorded time never runs backwards by itself. Weeks that were closed and have not ended are reopened. Players
    /// seen at a later time count as having left. Rows remain in the weeks they were credited to.
    Reset {
        /// Set it even if the system clock is not known to be synchronised
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(command: ClockCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    match command {
        ClockCommand::Accept => send(app, &requests::ClockAccept {}),
        ClockCommand::Reset { yes } => send(app, &requests::ClockReset { force: yes }),
    }
}
