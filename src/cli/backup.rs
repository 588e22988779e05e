//! `clqd backup` and `clqd restore`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::api::BackupRow;
use crate::cli::context::{CliContext, DaemonNotRunning};
use crate::cli::output::Printer;
use crate::control::{Request, Row};
use crate::store::{self, BackupSummary};

/// Write a consistent copy of the state to a new directory
///
/// A running daemon writes the backup while it works, so its user must be able to write to DIR. If it is not running,
/// the state directory is copied. A backup is a state directory: `clqd export --state DIR` reads it, `clqd restore
/// DIR` restores it.
#[derive(Clone, Debug, clap::Args)]
pub struct BackupArgs {
    /// Directory to create; must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Replace the state directory by a copy of a backup; the daemon must be stopped
///
/// The old state directory is kept next to it, with `.before-restore` added to its name.
#[derive(Clone, Debug, clap::Args)]
pub struct RestoreArgs {
    /// A backup created by `clqd backup`
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

pub fn backup(args: &BackupArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    // The daemon may have another current directory.
    let dir = std::path::absolute(&args.dir).context("cannot determine the current directory")?;
    let name = dir.to_str().with_context(|| format!("{} is not UTF-8", dir.display()))?.to_owned();
    match app.connect() {
        Ok(mut client) => {
            eprintln!("clqd: the daemon writes the backup");
            client.send(&Request::Backup { dir: name }, &mut |row| print(app, row))?;
        }
        Err(error) if error.is::<DaemonNotRunning>() => {
            let config = app.config()?;
            let summary = store::backup_closed(&config.state_dir, &dir, config.store.cache_bytes)
                .with_context(|| format!("cannot back up {}", config.state_dir.display()))?;
            print(app, row(&dir, summary))?;
        }
        Err(error) => return Err(error),
    }
    Ok(ExitCode::SUCCESS)
}

pub fn restore(args: &RestoreArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let state = without_trailing_slash(&config.state_dir);
    let restored = store::restore(&args.dir, &state, config.store.cache_bytes)
        .with_context(|| format!("cannot restore {} to {}", args.dir.display(), state.display()))?;
    print(app, row(&state, restored.summary))?;
    if let Some(old) = restored.before {
        eprintln!("clqd: the old state is kept in {}", old.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes a trailing slash, because suffixes are added to the name.
fn without_trailing_slash(dir: &Path) -> PathBuf {
    dir.components().collect()
}

fn row(dir: &Path, summary: BackupSummary) -> Row {
    Row::Backup(BackupRow { dir: dir.display().to_string(), latest_event_ms: summary.now_ms, bytes: summary.bytes })
}

fn print(app: &CliContext, row: Row) -> io::Result<()> {
    Printer::new(app.json(), io::stdout().lock()).row(row)
}
