//! `clqd replay`: a scan log through the same engine as live scans.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::config::Config;
use crate::engine::Event;
use crate::hot::Hot;
use crate::scanlog;

/// Lines between two commits: few enough for memory, enough that the commit
/// of a server's state is shared by many of its snapshots.
const LINES_PER_COMMIT: u64 = 50_000;

#[derive(Clone, Debug, clap::Args)]
pub struct ReplayArgs {
    /// Scan logs, plain or .zst, in order of time
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// State directory; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
}

/// Lines between two looks for weeks that are over.
const LINES_PER_LOOK: u64 = 1_000;

/// What a replay did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    pub lines: u64,
    /// Older than what the state holds of the server, or of a closed week.
    pub passed_over: u64,
}

pub fn run(args: &ReplayArgs, config: &Config) -> anyhow::Result<ExitCode> {
    // All of it first: of a malformed log nothing is applied.
    for log in &args.logs {
        scanlog::check_order(log)?;
    }
    let mut hot = Hot::of_config(config, &args.state, true).context("cannot open the state directory")?;
    for log in &args.logs {
        let done = replay(&mut hot, log)?;
        eprintln!(
            "{}: {} lines, {} of them passed over (older than the state)",
            log.display(),
            done.lines,
            done.passed_over
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Replays one log. What was replayed before is passed over, so an interrupted
/// replay is simply run again.
pub fn replay(hot: &mut Hot, log: &Path) -> anyhow::Result<Replayed> {
    let out_of_order = hot.engine.counts().out_of_order;
    let mut done = Replayed::default();
    for line in scanlog::open(log)? {
        let (url, outcome) = line?;
        if done.lines % LINES_PER_LOOK == 0 && outcome.t_ms() >= hot.engine.week_over_ms() {
            hot.settle(outcome.t_ms())?;
        }
        hot.handle(Event::Observed { url, outcome })?;
        done.lines += 1;
        if done.lines % LINES_PER_COMMIT == 0 {
            hot.commit()?;
        }
    }
    hot.settle(hot.engine.now_ms())?;
    done.passed_over = hot.engine.counts().out_of_order - out_of_order;
    Ok(done)
}
