//! A cluster of engines: real daemons with one log, which are killed, paused and started again.

#![allow(dead_code, reason = "each test program uses a part of this module")]

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::sandbox::{Daemon, Sandbox, wait_for, wait_until};

pub const ENGINES: usize = 3;

pub struct Engines {
    pub sandboxes: Vec<Sandbox>,
    /// `None`: it is stopped.
    pub daemons: Vec<Option<Daemon>>,
}

impl Engines {
    /// Starts engines whose log is in the database of a URL. `extra`: more of their configuration.
    pub fn start(url: &str, extra: &str) -> Engines {
        Engines::start_with(|_| (url.to_owned(), extra.to_owned()))
    }

    /// As `start`, by the number of the engine.
    pub fn start_with(config: impl Fn(usize) -> (String, String)) -> Engines {
        let sandbox_of = |engine: usize| {
            let (url, extra) = config(engine);
            sandbox(engine, &url, &extra)
        };
        let sandboxes: Vec<Sandbox> = (0..ENGINES).map(sandbox_of).collect();
        sandboxes[0].ok(["migrate"]);
        let daemons = sandboxes.iter().map(|sandbox| Some(sandbox.start())).collect();
        let engines = Engines { sandboxes, daemons };
        engines.leader();
        engines
    }

    /// The engines that one of them knows; none while it is away.
    pub fn rows_of(&self, engine: usize) -> Vec<Value> {
        match &self.daemons[engine] {
            Some(_) => crate::sandbox::rows(&self.sandboxes[engine].run(["--json", "cluster", "status"]).out),
            None => Vec::new(),
        }
    }

    /// The engine that says itself that it leads.
    pub fn find_leader(&self) -> Option<usize> {
        (0..ENGINES).find(|&engine| {
            let is_leader = |row: &Value| row["engine"] == name(engine) && row["role"] == "leader";
            self.rows_of(engine).iter().any(is_leader)
        })
    }

    /// Waits until an engine leads.
    pub fn leader(&self) -> usize {
        wait_for("an engine leads", || self.find_leader())
    }

    pub fn sandbox_of_leader(&self) -> &Sandbox {
        &self.sandboxes[self.leader()]
    }

    pub fn kill(&mut self, engine: usize) {
        self.daemons[engine].take().expect("it runs").kill();
    }

    /// Stops an engine as an admin does.
    pub fn stop(&mut self, engine: usize) -> String {
        self.daemons[engine].take().expect("it runs").stop()
    }

    pub fn start_again(&mut self, engine: usize) {
        self.daemons[engine] = Some(self.sandboxes[engine].start());
    }

    pub fn pause(&self, engine: usize, time: Duration) {
        let daemon = self.daemons[engine].as_ref().expect("it runs");
        daemon.signal(Signal::SIGSTOP);
        std::thread::sleep(time);
        daemon.signal(Signal::SIGCONT);
    }

    /// Rows and sessions of an engine that runs.
    fn content(&self, engine: usize) -> String {
        let sandbox = &self.sandboxes[engine];
        let weeks = sandbox.weeks().into_iter().map(|week| sandbox.ok(["export", "--week", &week]));
        weeks.chain([sandbox.ok(["export", "--sessions"])]).collect()
    }

    /// Waits until all engines have the same rows and sessions. Nothing is scanned any more.
    pub fn wait_until_equal(&self) -> String {
        let mut content = String::new();
        wait_until("all engines are equal", || {
            content = self.content(0);
            (1..ENGINES).all(|engine| self.content(engine) == content)
        });
        content
    }

    /// Waits until every engine that runs has seen every server again. They all answer.
    pub fn wait_for_scans(&self) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let now_ms = now.as_millis() as i64;
        let has_seen = |engine: usize| {
            // It may just start again.
            let servers = crate::sandbox::rows(&self.sandboxes[engine].run(["--json", "servers", "list"]).out);
            let is_new = |server: &Value| server["last_seen_ms"].as_i64().is_some_and(|seen_ms| seen_ms > now_ms);
            !servers.is_empty() && servers.iter().all(is_new)
        };
        wait_until("scans go on everywhere", || {
            (0..ENGINES).filter(|&engine| self.daemons[engine].is_some()).all(has_seen)
        });
    }
}

fn name(engine: usize) -> String {
    ["a", "b", "c"][engine].to_owned()
}

fn sandbox(engine: usize, url: &str, extra: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    configure(&sandbox, engine, url, "", extra);
    sandbox
}

/// Writes the config file of an engine. `store`: keys of `[store]`.
pub fn configure(sandbox: &Sandbox, engine: usize, url: &str, store: &str, extra: &str) {
    let own = format!(
        "[archive]\nurl = {url:?}\ninterval_s = 2\nbackoff_s_max = 1\ndrain_timeout_s = 60\n[cluster]\nengine = \"{}\"\n{extra}",
        name(engine)
    );
    sandbox.configure_store(store, &own);
}
