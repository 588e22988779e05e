//! `clqd run`: the daemon in the foreground.

use std::process::ExitCode;

use super::app::App;
use super::log;

#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(Args {}: Args, app: &App) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let filter = log::start(&config.log)?;
    crate::daemon::run(config, app.config_file().map(Into::into), filter)?;
    Ok(ExitCode::SUCCESS)
}
