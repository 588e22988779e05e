//! What every command is given: the global options, the configuration, the way
//! to an answer.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::offline::{self, Reader};
use crate::config::{Config, USUAL_FILE};
use crate::control::{Client, ClientError, End, Request, Row};

#[derive(Clone, Debug, Default, Args)]
pub struct Globals {
    /// Configuration file [default: /etc/clqd/clqd.toml if there is one, else the built-in defaults]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Control socket of the daemon [default: as the configuration says]
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long, global = true)]
    pub json: bool,
}

/// The global options at work.
#[derive(Debug)]
pub struct App {
    globals: Globals,
}

impl App {
    pub fn new(globals: Globals) -> App {
        App { globals }
    }

    pub fn json(&self) -> bool {
        self.globals.json
    }

    /// The configuration file in use; `None`: the built-in defaults.
    pub fn config_file(&self) -> Option<&Path> {
        match &self.globals.config {
            Some(file) => Some(file),
            None => Some(Path::new(USUAL_FILE)).filter(|file| file.exists()),
        }
    }

    pub fn config(&self) -> anyhow::Result<Config> {
        match self.config_file() {
            Some(file) => Ok(Config::load(file)?),
            None => Ok(Config::default()),
        }
    }

    /// Asks the daemon; where it is not running and the request changes
    /// nothing, the state directory answers, and standard error says so.
    pub fn ask(&self, request: &Request, each: &mut dyn FnMut(Row) -> io::Result<()>) -> anyhow::Result<End> {
        let socket = self.socket()?;
        loop {
            let error = match Client::connect(&socket) {
                Ok(mut client) => return Ok(client.ask(request, each)?),
                Err(error @ ClientError::NotRunning(_)) if request.reads_only() => error,
                Err(error) => return self.not_there(error),
            };
            let config = self.config()?;
            let dir = config.state_dir.display();
            // A daemon that is starting has it open, and soon answers.
            let answers = || Client::connect(&socket).is_ok();
            match offline::open(&config, &config.state_dir, &answers) {
                Ok(mut reader) => {
                    eprintln!("clqd: {error}; this is from the state directory {dir}");
                    return reader.ask(request, each);
                }
                Err(failed) if offline::is_locked(&failed) && answers() => {}
                Err(failed) => {
                    let context = format!("{error}, and the state directory {dir} cannot be read");
                    return Err(failed).context(context);
                }
            }
        }
    }

    /// A connection to the daemon, for several requests.
    pub fn connect(&self) -> anyhow::Result<Client> {
        Client::connect(&self.socket()?).or_else(|error| self.not_there(error))
    }

    /// The control socket in use.
    pub fn socket(&self) -> anyhow::Result<Cow<'_, Path>> {
        match &self.globals.socket {
            Some(socket) => Ok(Cow::Borrowed(socket)),
            None => Ok(Cow::Owned(self.config()?.control_socket)),
        }
    }

    fn not_there<T>(&self, error: ClientError) -> anyhow::Result<T> {
        let ClientError::NotRunning(path) = error else {
            return Err(error.into());
        };
        let run = match &self.globals.config {
            Some(file) => format!("clqd run --config {}", file.display()),
            None => "clqd run".to_owned(),
        };
        bail!(
            "The daemon is not running (no one answers on {}). Start it with `systemctl start clqd` or `{run}`.",
            path.display()
        )
    }
}
