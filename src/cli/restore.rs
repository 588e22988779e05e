//! `clqd restore`.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::ArgGroup;
use indicatif::ProgressBar;
use tokio::runtime::Runtime;

use crate::api::requests::RestoredRow;
use crate::archive::{Archive, ArchiveError};
use crate::cli::backup::{print, row};
use crate::cli::context::CliContext;
use crate::cli::offline::warn;
use crate::cli::output::format::group_digits;
use crate::cli::stdio::note;
use crate::config::Config;
use crate::model::NameHash;
use crate::model::commit::Meta;
use crate::model::restored::ArchiveFacts;
use crate::state::archive_restore::{
    ArchiveIsNewer, RestoreLimits, Restored, compare_with_archive, restore_from_archive,
};
use crate::state::forget_again::{forget_again, forgotten_names};
use crate::state::recovery::RecoveryError;
use crate::store;
use crate::view::restore_report::RestoreReport;

/// Replace the state by a backup, or by what MySQL has
///
/// The daemon must be stopped. The old state directory is kept next to it, with `.before-restore` added to its name. A
/// backup that is older than a configured archive is refused.
///
/// --from-mysql is for a state that was lost without a backup. It only reads the archive. The output lists what the
/// archive does not have.
#[derive(Clone, Debug, clap::Args)]
#[command(group = ArgGroup::new("source").args(["dir", "from_mysql"]).required(true))]
pub struct RestoreArgs {
    /// A backup created by `clqd backup`
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Build the state from the archive in MySQL
    #[arg(long)]
    pub from_mysql: bool,
    /// Do not compare the backup with the archive in MySQL
    ///
    /// Before you start the daemon, replay the log, or set archive.url to an empty database: else archiving stops with
    /// the fault key_mismatch.
    #[arg(long, conflicts_with = "from_mysql")]
    pub ignore_archive: bool,
}

pub fn run(args: &RestoreArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    let state = without_trailing_slash(&config.state_dir);
    // The state directory of the daemon may be missing, and with it the lock.
    if app.connect().is_ok() {
        bail!("the daemon is running: stop it first, such as with `systemctl stop clqd`");
    }
    // The previous state is locked while it is replaced.
    let requests = state.exists().then(|| forgotten_names(&config, &state, &warn));
    let before = match &args.dir {
        Some(dir) => {
            let refused = || format!("cannot restore {} to {}; nothing was changed", dir.display(), state.display());
            let archived = if args.ignore_archive { None } else { archive_facts(&config).with_context(refused)? };
            let prepare = |backup: &Meta, new: &Path| -> anyhow::Result<()> {
                if let Some(facts) = &archived {
                    compare_with_archive(backup, facts).map_err(|newer| advice(&config, dir, &newer))?;
                }
                forget_again_in(new, &config, requests);
                Ok(())
            };
            let restored = store::restore(dir, &state, config.store.cache_bytes, prepare).with_context(refused)?;
            print(app, row(&state, restored.summary))?;
            restored.before
        }
        None => {
            let Restored { directory, report } = from_mysql(app, &state, requests)
                .with_context(|| format!("cannot restore {} from the archive", state.display()))?;
            print(app, restored_row(&state, directory.summary, report))?;
            directory.before
        }
    };
    if let Some(before) = before {
        note(format_args!("clqd: the old state is kept in {}", before.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The requests to forget of the state that is replaced, which the restored one may lack.
type Requests = Result<Vec<(NameHash, i64)>, RecoveryError>;

/// Applies them to the restored state.
fn forget_again_in(new: &Path, config: &Config, requests: Option<Requests>) {
    let Some(requests) = requests else {
        return note(
            "clqd: if names were forgotten after the time of this state, repeat `clqd player forget` for them",
        );
    };
    match requests.and_then(|requests| forget_again(config, new, requests, &warn)) {
        Ok(0) => {}
        Ok(1) => note("clqd: 1 name that was forgotten later is forgotten in the restored state, too"),
        Ok(names) => {
            note(format_args!(
                "clqd: {names} names that were forgotten later are forgotten in the restored state, too"
            ));
        }
        Err(error) => note(format_args!(
            "clqd: warning: the requests to forget players in the old state cannot be applied; repeat `clqd player forget` \
             for those that are later than the restored state: {:#}",
            anyhow::Error::new(error)
        )),
    }
}

/// What the configured archive has. `None`: no archive is configured, or it has no tables yet.
fn archive_facts(config: &Config) -> anyhow::Result<Option<ArchiveFacts>> {
    if !config.archive.is_enabled() {
        return Ok(None);
    }
    let settings = config.archive_settings();
    let read = async {
        let mut archive = Archive::connect_to_read(&settings).await?;
        let facts = archive.read_facts().await?;
        archive.close().await;
        Ok::<_, ArchiveError>(facts)
    };
    runtime()?.block_on(read).context(
        "the backup cannot be compared with the archive, which may be newer. Make the archive reachable, or add \
         --ignore-archive to restore the backup without the comparison",
    )
}

/// The error about a backup that is older than the archive: what is possible now.
fn advice(config: &Config, dir: &Path, newer: &ArchiveIsNewer) -> anyhow::Error {
    let (dir, archive) = (dir.display(), config.archive_settings().target());
    let differences: String = newer.differences.iter().map(|difference| format!("\n  {difference}")).collect();
    anyhow!(
        "the archive {archive} is newer than the backup:{differences}\n\
         Use one of these:\n  \
         clqd restore --from-mysql\n    \
         builds the state from the archive, which keeps all that it has\n  \
         clqd restore {dir} --ignore-archive\n    \
         restores the backup. Before you start the daemon, run `clqd replay` with the log of the time since then,\n    \
         or set archive.url to an empty database; else archiving stops with the fault key_mismatch"
    )
}

fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")
}

fn from_mysql(app: &CliContext, state: &Path, requests: Option<Requests>) -> anyhow::Result<Restored> {
    let config = app.config()?;
    let settings = config.engine_settings().context("time_zone or boards.windows")?;
    let bar = if stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let mut progress = |table: &str, rows: u64| bar.set_message(format!("{table}: {} rows", group_digits(rows)));
    let restored = runtime()?.block_on(restore_from_archive(
        &config.archive_settings(),
        &settings,
        state,
        config.store.cache_bytes,
        RestoreLimits::default(),
        &mut progress,
        |new| forget_again_in(new, &config, requests),
    ));
    bar.finish_and_clear();
    Ok(restored?)
}

fn restored_row(dir: &Path, summary: store::BackupSummary, report: RestoreReport) -> RestoredRow {
    RestoredRow {
        dir: dir.display().to_string(),
        latest_event_ms: summary.now_ms,
        bytes: summary.bytes,
        not_restored: not_restored(&report),
        report,
    }
}

/// What the archive does not have. docs/backup-and-restore.md explains each.
fn not_restored(report: &RestoreReport) -> Vec<String> {
    let counted = [
        (report.players_online, "players were online: their segments, rounds and the time since the last scan"),
        (report.ratings_estimated, "ratings in games and tags: estimated by the ratings on their servers"),
        (report.servers_greylisted, "greylisted servers: their rows of weeks that are not closed"),
        (report.weeks_left, "older weeks: they stay in MySQL"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    let mut lines: Vec<String> = counted.map(|(count, what)| format!("{} {what}", group_digits(count))).collect();
    lines.extend(
        [
            "windows other than weeks, such as days and months: they begin empty",
            "forgotten names, if the old state is missing: repeat `clqd player forget`, or they are stored again when they are seen",
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
pub(super) fn without_trailing_slash(dir: &Path) -> PathBuf {
    dir.components().collect()
}
