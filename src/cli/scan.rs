//! `clqd scan`: scans for a daemon on another machine. `clqd scanners`: those that have joined.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use super::admin::send_counting;
use crate::api::requests::ScannersList;
use crate::cli::context::CliContext;
use crate::cli::stdio::note;
use crate::daemon::scanners::process::{self, ScannerOptions};
use crate::logging;

const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Scan for a daemon on another machine
///
/// It takes scans from the daemon over HTTP and hands in the outcomes. Limits of packets are those of the section [scan]
/// of this machine's configuration file; other settings are the daemon's.
#[derive(Debug, clap::Args)]
pub struct ScanArgs {
    /// The daemon, such as https://stats.example.org; of a cluster, each engine
    #[arg(long, value_name = "URL", required = true)]
    join: Vec<String>,
    /// File with a token that may scan (clqd token new --may scan)
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// Where this scanner is, such as eu
    #[arg(long)]
    region: String,
    /// Another name than that of this machine
    #[arg(long)]
    name: Option<String>,
    /// PEM file of the authority of the daemon's certificate
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

pub fn run(args: ScanArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let ScanArgs { join, token_file, region, name, ca } = args;
    let token = std::fs::read_to_string(&token_file)
        .with_context(|| format!("cannot read the token in {}", token_file.display()))?;
    let name = match name {
        Some(name) => name,
        None => std::fs::read_to_string(HOST_NAME).context("this machine has no name: give --name")?.trim().to_owned(),
    };
    logging::start(&config.log_filter)?;
    let scan = config.scan_settings();
    process::run(ScannerOptions { join, token: token.trim().to_owned(), name, region, ca, scan })?;
    Ok(ExitCode::SUCCESS)
}

pub fn scanners(app: &CliContext) -> anyhow::Result<ExitCode> {
    let (code, lines) = send_counting(app, &ScannersList {})?;
    if lines == 0 {
        note("clqd: no scanner on another machine");
    }
    Ok(code)
}
