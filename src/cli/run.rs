//! `clqd run`: the daemon in the foreground.

use std::process::ExitCode;

use crate::cli::context::App;
use crate::logging;

#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(Args {}: Args, app: &App) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let filter = logging::start(&config.log)?;
    crate::daemon::run(config, app.config_file().map(Into::into), filter)?;
    Ok(ExitCode::SUCCESS)
}
