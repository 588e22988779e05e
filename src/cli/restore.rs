//! `clqd restore`.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use indicatif::ProgressBar;

use crate::api::RestoredRow;
use crate::cli::backup::{print, row};
use crate::cli::context::CliContext;
use crate::cli::output::format::group_digits;
use crate::control::Row;
use crate::model::restore::RestoreReport;
use crate::state::restore::{RestoreLimits, Restored, restore_from_archive};
use crate::store;

/// Replace the state directory by a backup, or by what MySQL has; the daemon must be stopped
///
/// The old state directory is kept next to it, with `.before-restore` added to its name.
///
/// --from-mysql is for a state that was lost without a backup. It reads the archive that the configuration names, and
/// changes nothing there. The archive does not have everything: the output lists what is missing.
#[derive(Clone, Debug, clap::Args)]
pub struct RestoreArgs {
    /// A backup created by `clqd backup`
    #[arg(value_name = "DIR", required_unless_present = "from_mysql", conflicts_with = "from_mysql")]
    pub dir: Option<PathBuf>,
    /// Build the state from the archive in MySQL
    #[arg(long)]
    pub from_mysql: bool,
}

pub fn run(args: &RestoreArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let state = without_trailing_slash(&config.state_dir);
    let before = match &args.dir {
        Some(dir) => {
            let restored = store::restore(dir, &state, config.store.cache_bytes)
                .with_context(|| format!("cannot restore {} to {}", dir.display(), state.display()))?;
            print(app, row(&state, restored.summary))?;
            restored.before
        }
        None => {
            // Its state directory may be missing, and with it the lock.
            if app.connect().is_ok() {
                bail!("the daemon is running: stop it first, such as with `systemctl stop clqd`");
            }
            let Restored { directory, report } = from_mysql(app, &state)
                .with_context(|| format!("cannot restore {} from the archive", state.display()))?;
            print(app, restored_row(&state, directory.summary, report))?;
            directory.before
        }
    };
    if let Some(before) = before {
        eprintln!("clqd: the old state is kept in {}", before.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn from_mysql(app: &CliContext, state: &Path) -> anyhow::Result<Restored> {
    let config = app.config()?;
    let settings = config.engine_settings().context("time_zone or boards.windows")?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let bar = if stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let mut progress = |table: &str, rows: u64| bar.set_message(format!("{table}: {} rows", group_digits(rows)));
    let restored = runtime.block_on(restore_from_archive(
        &config.archive_settings(),
        &settings,
        state,
        config.store.cache_bytes,
        RestoreLimits::default(),
        &mut progress,
    ));
    bar.finish_and_clear();
    Ok(restored?)
}

fn restored_row(dir: &Path, summary: store::BackupSummary, report: RestoreReport) -> Row {
    Row::Restored(Box::new(RestoredRow {
        dir: dir.display().to_string(),
        latest_event_ms: summary.now_ms,
        bytes: summary.bytes,
        not_restored: not_restored(&report),
        report,
    }))
}

/// What the archive does not have. docs/operations.md explains each.
fn not_restored(report: &RestoreReport) -> Vec<String> {
    let counted = [
        (report.players_online, "players were online: their segments, rounds and the time since the last scan"),
        (
            report.rows_with_sums,
            "rows of players: single segments and games of clq1 and clq2, only their sums are known",
        ),
        (report.ratings_estimated, "ratings in games and tags: estimated by the ratings on their servers"),
        (report.servers_greylisted, "greylisted servers: their rows of weeks that are not closed"),
        (report.weeks_left, "older weeks: they stay in MySQL"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    let mut lines: Vec<String> = counted.map(|(count, what)| format!("{} {what}", group_digits(count))).collect();
    lines.extend(
        [
            "windows other than weeks, such as days and months: rebuilt from the scan log if there is one, else empty",
            "forgotten names: repeat `clqd player forget`, or they are stored again when they are seen",
            "former names of merged players: each becomes a player again when it is seen",
            "exemptions from screening (`clqd servers trust`), and what screening has learned",
            "tags without a server, and the order of the tags of a server",
            "changes after the last write to the archive",
        ]
        .map(str::to_owned),
    );
    lines
}

/// Removes a trailing slash, because suffixes are added to the name.
fn without_trailing_slash(dir: &Path) -> PathBuf {
    dir.components().collect()
}
