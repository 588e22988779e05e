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
        Engines::start_every(1, config)
    }

    /// As `start_with`, with an interval of scans.
    pub fn start_every(interval_s: u64, config: impl Fn(usize) -> (String, String)) -> Engines {
        let sandbox_of = |engine: usize| {
            let (url, extra) = config(engine);
            let sandbox = Sandbox::new("");
            match interval_s {
                1 => configure(&sandbox, engine, &url, "", &extra),
                _ => configure_every(&sandbox, interval_s, engine, &url, &extra),
            }
            sandbox
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
        (0..ENGINES).find(|&engine| self.says_that_it_leads(engine))
    }

    fn says_that_it_leads(&self, engine: usize) -> bool {
        let is_leader = |row: &Value| row["engine"] == name(engine) && row["role"] == "leader";
        self.rows_of(engine).iter().any(is_leader)
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

    /// Pauses the leader until another engine leads.
    pub fn pause_until_another_leads(&self, leader: usize) {
        let daemon = self.daemons[leader].as_ref().expect("it runs");
        daemon.signal(Signal::SIGSTOP);
        wait_until("another engine leads", || {
            // A command to the paused engine would wait for it.
            (0..ENGINES).any(|engine| engine != leader && self.says_that_it_leads(engine))
        });
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
        let began_ms = now_ms();
        self.wait_until_seen("", "every server is scanned everywhere", |seen_ms| {
            seen_ms.iter().all(|&ms| ms > began_ms)
        });
    }

    /// Waits until every engine that runs has outcomes of new scans.
    pub fn wait_for_outcomes(&self) {
        let began_ms = now_ms();
        // Of 20,000 servers, a part: the list of all takes a second, and half of the servers are scanned within 30 s.
        let mut running = (0..ENGINES).filter(|&engine| self.daemons[engine].is_some());
        let part = if running.any(|engine| self.seen_ms(engine, "00").len() > 100) { "00" } else { "" };
        self.wait_until_seen(part, "scans go on everywhere", |seen_ms| seen_ms.iter().any(|&ms| ms > began_ms));
    }

    /// Waits until every engine that runs has seen every server within this time.
    pub fn wait_until_none_is_late(&self, age_max: Duration) {
        let age_max_ms = age_max.as_millis() as i64;
        self.wait_until_seen("", "no scan is late", |seen_ms| seen_ms.iter().all(|&ms| ms > now_ms() - age_max_ms));
    }

    /// When an engine has seen the servers whose URL, host name or map contains a text. None: it may just start again.
    fn seen_ms(&self, engine: usize, text: &str) -> Vec<i64> {
        let servers = crate::sandbox::rows(&self.sandboxes[engine].run(["--json", "servers", "list", text]).out);
        servers.iter().map(|server| server["last_seen_ms"].as_i64().unwrap_or_default()).collect()
    }

    /// Waits until a condition holds on every engine that runs for the times at which it has seen its servers.
    fn wait_until_seen(&self, text: &str, what: &str, condition: impl Fn(&[i64]) -> bool) {
        let holds = |engine: usize| {
            let seen_ms = self.seen_ms(engine, text);
            !seen_ms.is_empty() && condition(&seen_ms)
        };
        wait_until(what, || (0..ENGINES).filter(|&engine| self.daemons[engine].is_some()).all(holds));
    }
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    now.as_millis() as i64
}

/// What its configuration calls an engine.
pub fn name(engine: usize) -> String {
    ["a", "b", "c"][engine].to_owned()
}

/// Writes the config file of an engine. `store`: keys of `[store]`.
pub fn configure(sandbox: &Sandbox, engine: usize, url: &str, store: &str, extra: &str) {
    sandbox.configure_store(store, &own_sections(2, engine, url, extra));
}

/// As `configure`, with an interval of scans for all servers that answer.
fn configure_every(sandbox: &Sandbox, interval_s: u64, engine: usize, url: &str, extra: &str) {
    let intervals = [1, 2, 3].map(|class| format!("interval_class{class}_s = {interval_s}\n")).concat();
    sandbox.configure_scan(&intervals, &own_sections(interval_s / 2, engine, url, extra));
}

fn own_sections(archive_interval_s: u64, engine: usize, url: &str, extra: &str) -> String {
    let archive =
        format!("url = {url:?}\ninterval_s = {archive_interval_s}\nbackoff_s_max = 1\ndrain_timeout_s = 60\n");
    format!("[archive]\n{archive}[cluster]\nengine = \"{}\"\n{extra}", name(engine))
}
