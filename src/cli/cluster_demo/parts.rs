//! The parts of the demonstration: processes that are killed, and started again.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

/// How long a killed part is away.
const AWAY: Duration = Duration::from_secs(8);

/// Kills a process when its parent ends, however that happens; ends with the process.
const SUPERVISOR: &str = r#"exec 3<&0; "$@" 3<&- & process=$!; { read -r line <&3; kill -9 $process; } & reader=$!
    wait $process 2>/dev/null; kill $reader 2>/dev/null"#;

/// A process.
pub struct Part {
    pub name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
    log: PathBuf,
    /// `None`: it is away.
    supervisor: Option<Child>,
    started: Option<Instant>,
    killed: Option<Instant>,
}

impl Part {
    pub fn new(name: String, program: &Path, arguments: Vec<OsString>, log: PathBuf) -> Part {
        Part { name, program: program.to_owned(), arguments, log, supervisor: None, started: None, killed: None }
    }

    /// Starts it, with further arguments.
    pub fn start(&mut self, more: &[String]) -> anyhow::Result<()> {
        let failed = || format!("cannot start {}", self.name);
        let log = OpenOptions::new().create(true).append(true).open(&self.log).with_context(failed)?;
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISOR, "supervisor"]).arg(&self.program).args(&self.arguments).args(more);
        command.stdin(Stdio::piped()).stdout(log.try_clone().with_context(failed)?).stderr(log);
        self.supervisor = Some(command.spawn().with_context(failed)?);
        (self.started, self.killed) = (Some(Instant::now()), None);
        Ok(())
    }

    /// The last line that it has logged.
    pub fn last_log_line(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).lines().next_back().unwrap_or("nothing").trim().to_owned()
    }

    pub fn kill(&mut self) {
        if let Some(mut supervisor) = self.supervisor.take() {
            drop(supervisor.stdin.take());
            _ = supervisor.wait();
            self.killed = Some(Instant::now());
        }
    }

    /// Notes whether it has ended by itself: Galera ends a node that cannot get its state. It starts again, as with systemd.
    pub fn note_end(&mut self) -> bool {
        let has_ended = self.supervisor.as_mut().is_some_and(|supervisor| !matches!(supervisor.try_wait(), Ok(None)));
        if has_ended {
            self.kill();
            // It has nothing newer than at its start.
            self.killed = self.started;
        }
        has_ended
    }

    /// How long until it starts again; `None`: it has started.
    pub fn starts_in(&self) -> Option<Duration> {
        self.killed.map(|killed| AWAY.saturating_sub(killed.elapsed()))
    }

    pub fn is_away(&self) -> bool {
        self.supervisor.is_none()
    }

    pub fn killed(&self) -> Option<Instant> {
        self.killed
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.kill();
    }
}
