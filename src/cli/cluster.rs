//! `clqd cluster`: the engines that keep one state.

use std::process::ExitCode;

use super::admin::send;
use crate::api::requests::ClusterEngines;
use crate::cli::context::CliContext;

#[derive(Debug, clap::Subcommand)]
pub enum ClusterCommand {
    /// List the engines, who leads, and how far the others are behind
    Status,
}

pub fn run(command: ClusterCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    match command {
        ClusterCommand::Status => send(app, &ClusterEngines {}),
    }
}
