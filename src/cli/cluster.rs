//! `clqd cluster`: the engines that keep one state.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};

use super::admin::send;
use super::backup::{print, row};
use super::cluster_demo::{self, ClusterDemoArgs};
use super::restore::without_trailing_slash;
use crate::api::requests::ClusterEngines;
use crate::cli::context::CliContext;
use crate::cli::stdio::note;
use crate::config::Config;
use crate::daemon::cluster::join::{Source, get_copy};
use crate::model::commit::Meta;
use crate::state::recovery::{self, COPIED_SETTINGS};
use crate::store::{self, RestoreSummary};

#[derive(Debug, clap::Subcommand)]
pub enum ClusterCommand {
    /// List the engines, who leads, and how far the others are behind
    Status,
    /// Copy the state of another engine, so that the engine here can follow
    ///
    /// The daemon here must not run. A state that is there is kept beside the new one.
    Join(JoinArgs),
    /// Run a cluster with simulated servers on this machine
    ///
    /// Three database nodes, engines and scanners. A key kills a part, and the screen shows how the others go on. It needs
    /// MariaDB with Galera; all files are temporary.
    Demo(ClusterDemoArgs),
}

#[derive(Debug, clap::Args)]
pub struct JoinArgs {
    /// Another engine, such as https://a.example.org
    #[arg(value_name = "URL")]
    url: String,
    /// File with a token that may copy (clqd token new --may replicate)
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// PEM file of the authority of the engine's certificate
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

pub fn run(command: ClusterCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    match command {
        ClusterCommand::Status => send(app, &ClusterEngines {}),
        ClusterCommand::Join(args) => join(args, app),
        ClusterCommand::Demo(args) => cluster_demo::run(&args),
    }
}

fn join(args: JoinArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let config = app.config()?;
    ensure!(config.cluster.is_on(), "cluster.engine is empty: name this engine first");
    ensure!(app.connect().is_err(), "the daemon is running: stop it first, such as with `systemctl stop clqd`");
    let JoinArgs { url, token_file, ca } = args;
    let token = std::fs::read_to_string(&token_file)
        .with_context(|| format!("cannot read the token in {}", token_file.display()))?;
    let state = without_trailing_slash(&config.state_dir);
    store::check_can_be_renamed(&state)?;
    let parent = state.parent().context("state_dir has no directory above it")?;
    std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let copy = tempfile::Builder::new().prefix("clqd-join-").tempdir_in(parent);
    let copy = copy.with_context(|| format!("cannot create a directory in {}", parent.display()))?;
    get_copy(&Source { url, token: token.trim().to_owned(), ca }, copy.path())?;
    let position = store::backup_position(copy.path())?;
    ensure!(position > 0, "the copy has no position in a log: is the other engine one of a cluster?");
    let prepare = |_: &Meta, new: &Path| {
        let settings = new.join(COPIED_SETTINGS);
        std::fs::copy(copy.path().join(COPIED_SETTINGS), &settings)
            .and_then(|_| File::open(&settings)?.sync_all())
            .with_context(|| format!("cannot write {}", settings.display()))?;
        set_position(&config, new, position)
    };
    let restored: RestoreSummary = store::restore(copy.path(), &state, config.store.cache_bytes, prepare)?;
    print(app, row(&state, restored.summary))?;
    if let Some(before) = restored.before {
        note(format_args!("clqd: the old state is kept in {}", before.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The state has the log of the cluster until a batch.
fn set_position(config: &Config, dir: &Path, position: u64) -> anyhow::Result<()> {
    let mut state = recovery::open_with_copied_settings(config, dir)?;
    state.write_checkpoint(position)?;
    Ok(())
}
