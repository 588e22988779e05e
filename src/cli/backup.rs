//! `clqd backup`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};

use crate::api::requests::{Backup, BackupRow};
use crate::cli::context::CliContext;
use crate::cli::exit::DaemonNotRunning;
use crate::cli::offline::warn;
use crate::cli::output::{Print, Printer};
use crate::cli::stdio::{Output, note};
use crate::state::recovery;
use crate::store::{BackupSummary, MANIFEST};

/// Write a consistent copy of the state to a new directory
///
/// A running daemon writes the backup and continues to scan. The user of the daemon must be able to write to DIR. If
/// no daemon is running, the command copies the state directory. A backup is a state directory: `clqd export --state
/// DIR` reads it, `clqd restore DIR` restores it.
#[derive(Clone, Debug, clap::Args)]
pub struct BackupArgs {
    /// Directory to create; must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

pub fn backup(args: &BackupArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    // The current directory of the daemon may be another one.
    let dir = std::path::absolute(&args.dir).context("cannot determine the current directory")?;
    let name = dir.to_str().with_context(|| format!("{} is not UTF-8", dir.display()))?.to_owned();
    match app.connect() {
        Ok(mut client) => {
            note("clqd: the daemon writes the backup");
            let notes = client.send(&Backup { dir: name }, |row| print(app, row))?;
            notes.iter().for_each(|text| note(format_args!("clqd: {text}")));
            check_is_seen(&dir)?;
        }
        Err(error) if error.is::<DaemonNotRunning>() => {
            let config = app.config()?;
            let summary = recovery::backup_closed(&config, &config.state_dir, &dir, &warn)
                .with_context(|| format!("cannot back up {}", config.state_dir.display()))?;
            print(app, row(&dir, summary))?;
        }
        Err(error) => return Err(error),
    }
    Ok(ExitCode::SUCCESS)
}

/// A service with `PrivateTmp=yes` has a `/tmp` of its own, which systemd deletes with it.
fn check_is_seen(dir: &Path) -> anyhow::Result<()> {
    let manifest = dir.join(MANIFEST);
    ensure!(
        !matches!(manifest.try_exists(), Ok(false)),
        "the daemon has written the backup where this command does not see it: {} does not exist here. The daemon has \
         another /tmp and /var/tmp, which systemd deletes when it stops; name a directory below /var/lib/clqd-backup",
        manifest.display()
    );
    Ok(())
}

/// The output row for a new state directory.
pub(super) fn row(dir: &Path, summary: BackupSummary) -> BackupRow {
    let BackupSummary { now_ms: latest_event_ms, bytes, records } = summary;
    BackupRow { dir: dir.display().to_string(), latest_event_ms, bytes, records }
}

pub(super) fn print(app: &CliContext, row: impl Print) -> io::Result<()> {
    Printer::new(app.json(), Output::lasting()).line(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backup_in_another_tmp_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = check_is_seen(dir.path()).unwrap_err().to_string();
        assert!(error.contains("manifest.json does not exist here"), "{error}");
        std::fs::write(dir.path().join(MANIFEST), "{}").unwrap();
        check_is_seen(dir.path()).unwrap();
    }
}
