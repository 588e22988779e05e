//! `clqd check-config FILE`: reads a configuration file and changes nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use super::app::App;
use crate::config::{Config, ConfigError, Problem};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to check [default: the one in use]
    file: Option<PathBuf>,
}

pub fn run(args: Args, app: &App) -> anyhow::Result<ExitCode> {
    let Some(file) = args.file.as_deref().or(app.config_file()) else {
        println!("there is no configuration file; the built-in defaults are in use");
        return Ok(ExitCode::SUCCESS);
    };
    match Config::load(file) {
        Ok(config) => {
            print_ok(file, &config, app);
            Ok(ExitCode::SUCCESS)
        }
        Err(ConfigError::Problems { file, problems }) => {
            for problem in &problems {
                if app.json() {
                    let Problem { line, key, message } = problem;
                    println!("{}", json!({"file": file, "line": line, "key": key, "message": message}));
                } else {
                    println!("{}:{}: {problem}", file.display(), problem.line);
                }
            }
            if !app.json() {
                println!("{} {}", problems.len(), if problems.len() == 1 { "problem" } else { "problems" });
            }
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error.into()),
    }
}

fn print_ok(file: &Path, config: &Config, app: &App) {
    let changes = Config::default().diff_reload(config);
    let mut changed: Vec<String> = changes.changed.into_iter().chain(changes.needs_restart).collect();
    changed.sort();
    if app.json() {
        println!("{}", json!({"file": file, "ok": true, "changed": changed}));
        return;
    }
    println!("{}: ok", file.display());
    println!("  state     {}", config.state_dir.display());
    println!("  socket    {}", config.control_socket.display());
    println!("  weeks     begin in {}", config.time_zone);
    println!("  archive   {}", if config.archive.is_on() { config.archive.url_shown() } else { "none".to_owned() });
    let record = config.record.display().to_string();
    println!("  scan log  {}", if record.is_empty() { "none" } else { &record });
    let changed = if changed.is_empty() { "nothing".to_owned() } else { changed.join(", ") };
    println!("  changed   {changed}");
    let password = &config.archive.password_file;
    if config.archive.is_on() && !password.as_os_str().is_empty() {
        if let Err(error) = std::fs::File::open(password) {
            println!("note: archive.password_file {}: {error}", password.display());
        }
    }
}
