//! `clqd check-config FILE`: validates a configuration file, compares it with the state, and changes
//! nothing. The state is that of the running daemon, or that of the state directory.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use crate::api::json::to_string;
use crate::api::requests;
use crate::cli::context::CliContext;
use crate::cli::stdio::Output;
use crate::client::Client;
use crate::config::{CheckedConfig, Config, ConfigError, ConfigProblem};
use crate::state::check::{StateCheck, check_open_state, check_state_dir};

#[derive(Debug, clap::Args)]
pub struct CheckConfigArgs {
    /// The file to check [default: the one in use]
    file: Option<PathBuf>,
}

pub fn run(args: CheckConfigArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let mut out = Output::ending();
    let Some(file) = args.file.as_deref().or(app.config_file()) else {
        let note = "there is no configuration file; the built-in defaults are in use";
        match app.json() {
            true => writeln!(out, "{}", to_string(&json!({"kind": "notes", "notes": [note]})))?,
            false => writeln!(out, "{note}")?,
        }
        return Ok(ExitCode::SUCCESS);
    };
    match Config::check(file).and_then(|checked| check_state(checked, app)) {
        Ok(CheckedConfig { config, notes, .. }) => {
            print_ok(&mut out, file, &config, &notes, app)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(ConfigError::Problems { file, problems }) => {
            for problem in &problems {
                if app.json() {
                    let ConfigProblem { line, key, message } = problem;
                    let problem =
                        json!({"kind": "problem", "file": file, "line": line, "key": key, "message": message});
                    writeln!(out, "{}", to_string(&problem))?;
                } else {
                    writeln!(out, "{}:{}: {problem}", file.display(), problem.line)?;
                }
            }
            if !app.json() {
                writeln!(out, "{} {}", problems.len(), if problems.len() == 1 { "problem" } else { "problems" })?;
            }
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks that the daemon could start with the state that it has or had.
fn check_state(mut checked: CheckedConfig, app: &CliContext) -> Result<CheckedConfig, ConfigError> {
    let config = &checked.config;
    let sockets = [config.control_socket.clone(), app.find_socket().0];
    let time_zone = sockets.iter().find_map(|socket| time_zone_of_daemon(socket, &config.state_dir));
    let found = match time_zone {
        Some(time_zone) => check_open_state(config, &time_zone),
        None => check_state_dir(config),
    };
    match found {
        StateCheck::Fits => Ok(checked),
        StateCheck::Problem { key, message } => Err(checked.problem(key, message)),
        StateCheck::Unknown(note) => {
            checked.notes.push(note);
            Ok(checked)
        }
    }
}

/// The time zone of a state directory that a daemon has open. `None`: no daemon that answers has it
/// open.
fn time_zone_of_daemon(socket: &Path, state_dir: &Path) -> Option<String> {
    let status = Client::connect(socket).ok()?.lines(&requests::Status {}).ok()?.pop()?;
    let of_daemon = Path::new(&status.daemon?.state_dir).canonicalize().ok()?;
    let is_same = state_dir.canonicalize().ok()? == of_daemon;
    Some(status.engine.time_zone).filter(|zone| is_same && !zone.is_empty())
}

fn print_ok(out: &mut impl Write, file: &Path, config: &Config, notes: &[String], app: &CliContext) -> io::Result<()> {
    let changes = Config::default().plan_reload(config);
    let mut changed: Vec<String> = changes.changed.into_iter().chain(changes.needs_restart).collect();
    changed.sort();
    if app.json() {
        let mut checked = json!({"kind": "config", "file": file, "ok": true, "changed": changed});
        if !notes.is_empty() {
            checked["notes"] = json!(notes);
        }
        writeln!(out, "{}", to_string(&checked))?;
        return Ok(());
    }
    writeln!(out, "{}: ok", file.display())?;
    writeln!(out, "  state     {}", config.state_dir.display())?;
    writeln!(out, "  socket    {}", config.control_socket.display())?;
    let web = if config.web.listen.is_empty() { "none" } else { &config.web.listen };
    writeln!(out, "  web       {web}")?;
    writeln!(out, "  weeks     begin in {}", config.time_zone)?;
    let archive = if config.archive.is_enabled() { config.archive.url_without_password() } else { "none".to_owned() };
    writeln!(out, "  archive   {archive}")?;
    let changed = if changed.is_empty() { "nothing".to_owned() } else { changed.join(", ") };
    writeln!(out, "  changed   {changed}")?;
    for note in notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}
