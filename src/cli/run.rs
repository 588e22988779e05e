//! `clqd run`: the daemon in the foreground.

use std::process::ExitCode;

use crate::cli::context::CliContext;
use crate::logging;

#[derive(Debug, clap::Args)]
pub struct RunArgs {}

pub fn run(RunArgs {}: RunArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let filter = logging::start(&config.log_filter)?;
    crate::daemon::run(config, app.config_file().map(Into::into), filter)?;
    Ok(ExitCode::SUCCESS)
}
