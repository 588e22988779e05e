//! `clqd clock`: what to do when the system's clock is not trusted, or was wrong.

use std::process::ExitCode;

use clap::Subcommand;

use super::admin::send;
use crate::cli::context::CliContext;
use crate::control::Request;

#[derive(Debug, Subcommand)]
pub enum ClockCommand {
    /// Accept the system's clock: close weeks by it until it jumps again
    ///
    /// Without it the daemon waits until the clock is synchronised, or has run for ten minutes without a jump
    /// (clock.steady_s). A leap ahead of more than ten minutes is followed at once.
    Accept,
    /// Set recorded time back to the system's clock, after that was ahead
    ///
    /// Recorded time never runs backwards by itself. Weeks that were closed and are not over are reopened. Whoever was
    /// seen at a later time counts as having left. Rows stay in the weeks that they were credited to.
    Reset {
        /// Do it although the system's clock is not known to be synchronised
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(command: ClockCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    match command {
        ClockCommand::Accept => send(app, &Request::ClockAccept {}),
        ClockCommand::Reset { yes } => send(app, &Request::ClockReset { sure: yes }),
    }
}
