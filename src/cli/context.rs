//! The context of every command: the global options, the configuration and the connection
//! to the daemon.

use std::cell::{Cell, OnceCell};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;

use super::offline;
use crate::api::{Answer, LineOf, Read, Request};
use crate::cli::exit::{DaemonNotRunning, NeverStarted};
use crate::cli::output::format::format_time;
use crate::cli::stdio::note;
use crate::client::RESPONSE_TIMEOUT;
use crate::client::{AnswerItem, Client, ClientError};
use crate::config::{Config, ConfigError, DEFAULT_CONFIG_FILE};
use crate::state::State;

/// The help of each command lists the global options after its own.
const GLOBAL_OPTIONS: &str = "Options of all commands";

#[derive(Clone, Debug, Default, Args)]
pub struct GlobalOptions {
    /// Configuration file [default: /etc/clqd/clqd.toml]
    ///
    /// If there is no default file, the built-in defaults are used.
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL_OPTIONS)]
    pub config: Option<PathBuf>,
    /// Control socket [default: as configured]
    #[arg(long, global = true, value_name = "PATH", help_heading = GLOBAL_OPTIONS)]
    pub socket: Option<PathBuf>,
    /// Print JSON, one object a line
    ///
    /// Each has a `kind`. An error is the last line.
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS)]
    pub json: bool,
    /// Longest silence of the daemon [default: 30]
    ///
    /// The command fails if the daemon is silent for this long. A request may take longer: then the command asks whether the daemon lives.
    #[arg(long, global = true, value_name = "SECONDS", help_heading = GLOBAL_OPTIONS, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: Option<u32>,
}

/// What a request that only reads is answered from.
pub enum Source {
    Daemon(Box<Client>),
    State(Box<State>, Box<Config>),
}

impl Source {
    /// Whether it is a state that changes no more, because no daemon is running.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Source::State(..))
    }

    /// Passes on each line of the answer to a request. Returns the notes.
    pub fn read<R: Read>(
        &mut self,
        request: &R,
        mut each: impl FnMut(LineOf<R>) -> io::Result<()>,
    ) -> anyhow::Result<Vec<String>> {
        match self {
            Source::Daemon(client) => Ok(client.send(request, each)?),
            Source::State(state, config) => {
                state.answer(config, request)?.lines().try_for_each(&mut each)?;
                Ok(Vec::new())
            }
        }
    }

    /// All lines of an answer.
    pub fn lines<R: Read>(&mut self, request: &R) -> anyhow::Result<Vec<LineOf<R>>> {
        let mut lines = Vec::new();
        self.read(request, |line| {
            lines.push(line);
            Ok(())
        })?;
        Ok(lines)
    }
}

/// The global options, with the configuration loaded on demand.
#[derive(Debug)]
pub struct CliContext {
    globals: GlobalOptions,
    /// The control socket, once it is known.
    socket: OnceCell<PathBuf>,
    /// Whether the problems of the configuration file are printed already.
    has_warned: Cell<bool>,
}

impl CliContext {
    pub fn new(globals: GlobalOptions) -> CliContext {
        CliContext { globals, socket: OnceCell::new(), has_warned: Cell::new(false) }
    }

    pub fn json(&self) -> bool {
        self.globals.json
    }

    /// The configuration file in use; `None`: the built-in defaults.
    pub fn config_file(&self) -> Option<&Path> {
        match &self.globals.config {
            Some(file) => Some(file),
            None => Some(Path::new(DEFAULT_CONFIG_FILE)).filter(|file| file.exists()),
        }
    }

    /// The configuration. A command for which the control socket is enough uses
    /// [`CliContext::connect`] alone: it also works while the file has a problem.
    pub fn config(&self) -> anyhow::Result<Config> {
        match self.config_file() {
            Some(file) => Ok(Config::load(file)?),
            None => Ok(Config::default()),
        }
    }

    /// Sends a request to the daemon and passes on each line of the answer. Returns the notes.
    pub fn send<R: Request>(
        &self,
        request: &R,
        each: impl FnMut(AnswerItem<LineOf<R>>) -> io::Result<()>,
    ) -> anyhow::Result<Vec<String>> {
        Ok(self.connect()?.send_with_progress(request, each)?)
    }

    /// As [`CliContext::send`], but reads the state directory if the daemon is not running.
    pub fn read<R: Read>(
        &self,
        request: &R,
        each: impl FnMut(LineOf<R>) -> io::Result<()>,
    ) -> anyhow::Result<Vec<String>> {
        self.daemon_or_state()?.read(request, each)
    }

    /// The daemon. If it is not running: its state directory, with a note to standard error.
    pub fn daemon_or_state(&self) -> anyhow::Result<Source> {
        let socket = self.socket();
        loop {
            let error = match Client::connect_with_timeout(socket, self.silence_max()) {
                Ok(client) => return Ok(Source::Daemon(Box::new(client))),
                Err(error @ ClientError::NotRunning(_)) => error,
                Err(error) => return Err(error.into()),
            };
            let config = self.config().map_err(|problems| {
                let why = format!(
                    "{error}, and the state directory cannot be read, because the configuration cannot be used"
                );
                match self.has_warned.get() && !self.json() {
                    true => anyhow!(why),
                    false => problems.context(why),
                }
            })?;
            let dir = config.state_dir.display();
            // A daemon that is starting holds the lock and will respond soon.
            let is_running = Cell::new(false);
            let daemon_responds = || {
                is_running.set(Client::connect_with_timeout(socket, self.silence_max()).is_ok());
                is_running.get()
            };
            match offline::open(&config, &config.state_dir, &daemon_responds) {
                Ok(state) => {
                    let as_of = match state.engine.model().now_ms() {
                        ..=0 => "this is the state, in which nothing was scanned,".to_owned(),
                        now_ms => format!("this is the state of {} UTC", format_time(now_ms)),
                    };
                    note(format_args!("clqd: {error}; {as_of} in {dir}"));
                    return Ok(Source::State(Box::new(state), Box::new(config)));
                }
                Err(failed) if failed.is_locked() && is_running.get() => {}
                Err(failed) if failed.is_state_dir_missing() => {
                    return Err(NeverStarted { state_dir: config.state_dir }.into());
                }
                Err(failed) => {
                    let context = format!("{error}, and the state directory {dir} cannot be read");
                    return Err(failed).context(context);
                }
            }
        }
    }

    /// Opens a connection to the daemon, for several requests.
    pub fn connect(&self) -> anyhow::Result<Client> {
        Client::connect_with_timeout(self.socket(), self.silence_max()).or_else(|error| self.not_running_error(error))
    }

    fn silence_max(&self) -> Duration {
        self.globals.timeout.map_or(RESPONSE_TIMEOUT, |s| Duration::from_secs(s.into()))
    }

    /// The path of the control socket. Problems of the configuration file are only a warning,
    /// because the daemon may run with the former content of the file.
    fn socket(&self) -> &Path {
        self.socket.get_or_init(|| {
            let (socket, error) = self.find_socket();
            if let Some(error) = error {
                self.has_warned.set(true);
                let (error, socket) = (anyhow::Error::new(error), socket.display());
                note(format_args!("clqd: warning: {error:#}"));
                note(format_args!(
                    "clqd: the file is ignored except for control_socket; trying the daemon at {socket}"
                ));
            }
            socket
        })
    }

    /// The problems of the configuration file, of which no warning is printed, for a command whose answer names them.
    pub fn expect_problems(&self) -> Option<ConfigError> {
        let (socket, error) = self.find_socket();
        _ = self.socket.set(socket);
        error
    }

    /// The path of the control socket, and why the other settings of the configuration file cannot
    /// be used.
    pub fn find_socket(&self) -> (PathBuf, Option<ConfigError>) {
        match (&self.globals.socket, self.config_file()) {
            (Some(socket), _) => (socket.clone(), None),
            (None, Some(file)) => Config::control_socket_of(file),
            (None, None) => (Config::default().control_socket, None),
        }
    }

    fn not_running_error<T>(&self, error: ClientError) -> anyhow::Result<T> {
        let ClientError::NotRunning(socket) = error else {
            return Err(error.into());
        };
        let run = match &self.globals.config {
            Some(file) => format!("clqd run --config {}", file.display()),
            None => "clqd run".to_owned(),
        };
        Err(DaemonNotRunning { socket, run }.into())
    }
}
