//! The command line: the clap definitions and their dispatch.
//!
//! Commands that control or show a daemon are requests to its control socket ([`admin`]).
//! If it is not running, read-only requests are answered from its state directory
//! ([`offline`]). Both are printed by [`output`].
//!
//! Exit codes: 0 success, 1 failure, 2 usage error ([`exit`]). Rows go to standard
//! output, everything else to standard error. With `--json` every line of standard output
//! is a JSON object with a `kind`, and an error is the last of them; notes remain on
//! standard error.

pub mod admin;
mod aliases;
mod archive;
mod arguments;
pub mod backup;
pub mod board;
pub mod check_config;
pub mod clock;
mod cluster;
mod cluster_demo;
pub mod context;
pub mod demo;
mod detect;
pub mod exit;
pub mod export;
pub mod fleet;
mod games;
mod generate;
pub mod import;
pub mod list;
pub mod log;
pub mod migrate;
mod not_found;
pub mod offline;
pub mod output;
pub mod player;
pub mod query;
pub mod recompute;
pub mod recorded_logs;
pub mod replay;
mod rescan_progress;
mod restore;
pub mod run;
mod scan;
mod scan_once;
mod screen;
pub mod server_list;
pub mod stdio;
mod token;
pub mod truth;
pub mod week;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nix::sys::stat::{Mode, umask};

use crate::cli::context::{CliContext, GlobalOptions};
use crate::client::ClientError;
use crate::logging;

/// Scan game servers and rank their players week by week.
#[derive(Debug, Parser)]
#[command(name = "clqd", version, about, disable_help_subcommand = true, after_help = RARE_COMMANDS, max_term_width = 80)]
pub struct Cli {
    #[command(flatten)]
    pub globals: GlobalOptions,
    #[command(subcommand)]
    pub command: Command,
}

/// Commands that the help does not list.
const RARE_COMMANDS: &str = "Less common commands: boost, clock, cluster, export, fleet, generate, log,
migrate, recompute, replay, scan, scanners, series, token, truth, week. All
commands have --help.";

// A new command is a line here, a line in `Cli::run` and its own file with `Args` and `fn
// run(args, &CliContext) -> anyhow::Result<ExitCode>`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon in the foreground, as systemd does
    Run(run::RunArgs),
    /// Check a configuration file
    CheckConfig(check_config::CheckConfigArgs),
    /// Create the archive's MySQL tables, or migrate them
    #[command(hide = true)]
    Migrate(migrate::MigrateArgs),
    Status(admin::StatusArgs),
    /// Show how many players and servers are online, by game and tag
    Overview,
    #[command(hide = true)]
    Series(admin::SeriesArgs),
    /// Add, remove, list, import or show servers
    #[command(subcommand, alias = "server")]
    Servers(admin::ServersCommand),
    /// Scan servers now and print each result as it is received
    Rescan(admin::RescanArgs),
    Top(board::TopArgs),
    /// Query a board: around a player, pages, windows
    #[command(subcommand, alias = "boards")]
    Board(board::BoardCommand),
    #[command(alias = "players")]
    Player(player::PlayerArgs),
    /// Show who plays a map now, and how much it was played by week
    Map {
        /// Such as q3dm17
        name: String,
    },
    Maps(admin::MapsArgs),
    #[command(alias = "game")]
    Games(games::GamesArgs),
    Greylist(admin::GreylistArgs),
    /// Scan a server once a minute for a while
    ///
    /// For example while somebody looks at it.
    #[command(hide = true)]
    Boost(admin::BoostArgs),
    /// Trust the system clock, or set recorded time back to it
    #[command(hide = true)]
    #[command(subcommand)]
    Clock(clock::ClockCommand),
    /// Reopen a week that was closed too early
    #[command(hide = true)]
    #[command(subcommand)]
    Week(week::WeekCommand),
    /// Compare the archive in MySQL with the state, or write it again
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Reload the configuration file
    Reload,
    /// Make a token for a program on another machine
    #[command(hide = true)]
    #[command(subcommand)]
    Token(token::TokenCommand),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    #[command(hide = true)]
    Scan(scan::ScanArgs),
    /// List the scanners on other machines
    #[command(hide = true)]
    Scanners,
    /// Show the engines of a cluster
    #[command(hide = true)]
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Query game servers directly, without a daemon
    Query(query::QueryArgs),
    /// Check, print, repair or import the log in the state directory
    #[command(hide = true)]
    #[command(subcommand)]
    Log(log::LogCommand),
    /// Replay a log into a state directory
    #[command(hide = true)]
    Replay(replay::ReplayArgs),
    #[command(hide = true)]
    Recompute(recompute::RecomputeArgs),
    #[command(hide = true)]
    Export(export::ExportArgs),
    #[command(hide = true)]
    Truth(truth::TruthArgs),
    /// Run simulated game servers on 127.0.0.0/8
    #[command(hide = true)]
    Fleet(Box<fleet::FleetArgs>),
    /// Run a demonstration with simulated servers
    Demo(demo::DemoArgs),
    /// Generate man pages or shell completions
    #[command(hide = true)]
    #[command(subcommand)]
    Generate(generate::GenerateCommand),
}

impl Command {
    /// Whether this process may create a state or a backup.
    fn writes_state(&self) -> bool {
        matches!(
            self,
            Command::Run(_)
                | Command::Backup(_)
                | Command::Restore(_)
                | Command::Log(log::LogCommand::Repair(_))
                | Command::Replay(_)
                | Command::Recompute(_)
                | Command::Demo(_)
        )
    }
}

/// Gives new directories at most mode 0750 and new files at most 0640, as the systemd unit does.
fn keep_files_from_others() {
    let others_and_group_write = Mode::S_IRWXO | Mode::S_IWGRP;
    let stricter = umask(others_and_group_write);
    umask(others_and_group_write | stricter);
}

impl Cli {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let app = CliContext::new(self.globals);
        if self.command.writes_state() {
            keep_files_from_others();
        }
        match self.command {
            Command::Run(args) => run::run(args, &app),
            Command::CheckConfig(args) => check_config::run(args, &app),
            Command::Status(args) => admin::status(&args, &app),
            Command::Overview => admin::overview(&app),
            Command::Series(args) => admin::series(args, &app),
            Command::Servers(command) => admin::servers(command, &app),
            Command::Rescan(args) => admin::rescan(args, &app),
            Command::Top(args) => board::top(args, &app),
            Command::Board(command) => board::run(command, &app),
            Command::Player(args) => player::player(args, &app),
            Command::Map { name } => admin::map(name, &app),
            Command::Maps(args) => admin::maps(args, &app),
            Command::Games(args) => games::run(&args, &app),
            Command::Greylist(args) => admin::greylist(args, &app),
            Command::Boost(args) => admin::boost(args, &app),
            Command::Clock(command) => clock::run(command, &app),
            Command::Week(command) => week::run(command, &app),
            Command::Archive(command) => archive::run(command, &app),
            Command::Reload => admin::reload(&app),
            Command::Token(command) => token::run(command, &app),
            Command::Scan(_) if app.json() => Err(no_json("scan")),
            Command::Scan(args) => scan::run(args, &app),
            Command::Scanners => scan::scanners(&app),
            Command::Cluster(cluster::ClusterCommand::Demo(_)) if app.json() => Err(no_json("cluster demo")),
            Command::Cluster(command) => cluster::run(command, &app),
            Command::Backup(args) => backup::backup(&args, &app),
            Command::Restore(args) => restore::run(&args, &app),
            Command::Query(args) => query::run(&args, &app),
            Command::Migrate(args) => migrate::run(&args, &app),
            Command::Truth(args) => truth::run(&args, &app),
            Command::Demo(_) if app.json() => Err(no_json("demo")),
            Command::Demo(args) => demo::run(&args),
            Command::Fleet(_) if app.json() => Err(no_json("fleet")),
            Command::Fleet(args) => fleet::run(*args),
            Command::Generate(_) if app.json() => Err(no_json("generate")),
            Command::Generate(command) => generate::run(&command),
            Command::Log(command) => log::run(&command, &app),
            Command::Replay(args) => replay::run(&args, &app.config()?),
            Command::Recompute(args) => recompute::run(&args, &app),
            Command::Export(args) => export::run(&args, &app),
        }
    }
}

fn no_json(command: &str) -> anyhow::Error {
    exit::UsageError(format!("clqd {command} has no JSON output")).into()
}

/// The whole program: parses the arguments, runs the command, reports an error once.
pub fn main() -> ExitCode {
    logging::report_panics_in_one_line();
    stdio::detect_width();
    // `--json` is searched for as a string, because the command line may not be parsed.
    let json = std::env::args_os().any(|arg| arg == "--json");
    let args = match aliases::replace(std::env::args_os().collect()) {
        Ok(args) => args,
        Err(error) => {
            let error = exit::UsageError(error).into();
            exit::report(&error, json);
            return exit::exit_code(&error);
        }
    };
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return exit::report_usage(error, json),
    };
    let json = cli.globals.json;
    match cli.run() {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            exit::report(&error, json);
            exit::exit_code(&error)
        }
    }
}

/// `clqd servers list | head` is no error. A closed connection to the daemon is one.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().all(|cause| !matches!(cause.downcast_ref(), Some(ClientError::ConnectionLost { .. })))
        && error.chain().any(|cause| cause.downcast_ref().is_some_and(stdio::is_closed_pipe))
}

#[cfg(test)]
mod tests;
