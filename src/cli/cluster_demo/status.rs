//! What the parts are doing, and what has happened.

use std::time::{Duration, Instant};

use super::{COUNT, Demo};
use crate::api::{Status, requests};
use crate::client::Client;
use crate::view::ServerSummary;

/// How long an engine may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Messages that the screen has space for.
const EVENTS_MAX: usize = 100;

/// The demonstration at a moment.
pub struct Picture {
    servers: u32,
    began: Instant,
    nodes: [bool; COUNT],
    engines: [Option<Status>; COUNT],
    leader: Option<usize>,
    /// Scans a second of the engine that leads.
    scans_per_s: f64,
    counted: Option<(Instant, usize, u64)>,
    /// The oldest answer of a server, as the leader has it, ms.
    oldest_ms: Option<i64>,
    events: Vec<String>,
    printed: usize,
    kills: usize,
    /// The last part that was killed, and when, until all servers are scanned again.
    killed: Option<(Instant, String)>,
}

impl Picture {
    pub fn new(servers: u32) -> Picture {
        Picture {
            servers,
            began: Instant::now(),
            nodes: [false; COUNT],
            engines: Default::default(),
            leader: None,
            scans_per_s: 0.0,
            counted: None,
            oldest_ms: None,
            events: Vec::new(),
            printed: 0,
            kills: 0,
            killed: None,
        }
    }

    /// Asks all parts.
    pub fn look(&mut self, demo: &Demo) {
        for node in 0..COUNT {
            self.nodes[node] = demo.runtime.block_on(demo.nodes.is_ready(node));
        }
        for engine in 0..COUNT {
            self.engines[engine] = if demo.engines[engine].is_away() { None } else { status_of(demo, engine) };
        }
        let leads = |engine: &usize| {
            let cluster = self.engines[*engine].as_ref().and_then(|status| status.cluster.as_ref());
            cluster.is_some_and(|cluster| cluster.leads)
        };
        // One that has just been fenced may say so for a moment.
        let epoch =
            |engine: &usize| self.engines[*engine].as_ref().and_then(|it| it.cluster.as_ref()).map(|it| it.epoch);
        let leader = (0..COUNT).filter(leads).max_by_key(epoch);
        if leader != self.leader && leader.is_some() && self.kills > 0 {
            let name = leader.map_or("", |leader| demo.engines[leader].name.as_str()).to_owned();
            let after = self.after_kill();
            self.event(format!("{name} leads{after}"));
        }
        self.leader = leader;
        self.count_scans();
        self.oldest_ms = leader.and_then(|leader| oldest_answer_ms(demo, leader));
        let scanned_since =
            |since: &Instant| self.oldest_ms.is_some_and(|oldest_ms| oldest_ms < since.elapsed().as_millis() as i64);
        if self.killed.as_ref().is_some_and(|(since, _)| scanned_since(since)) {
            let after = self.after_kill();
            self.event(format!("all servers are scanned again{after}"));
            self.killed = None;
        }
    }

    fn count_scans(&mut self) {
        let Some(leader) = self.leader else { return self.counted = None };
        let Some(status) = &self.engines[leader] else { return };
        let (now, scans) = (Instant::now(), status.engine.counts.snapshots);
        if let Some((at, _, before)) = self.counted.filter(|(_, engine, _)| *engine == leader) {
            if now - at < Duration::from_secs(2) {
                return;
            }
            self.scans_per_s = scans.saturating_sub(before) as f64 / (now - at).as_secs_f64();
        }
        self.counted = Some((now, leader, scans));
    }

    pub fn leader(&self) -> Option<usize> {
        self.leader
    }

    pub fn kills(&self) -> usize {
        self.kills
    }

    /// A part was killed; `None`: it was away.
    pub fn killed(&mut self, part: Option<String>) {
        let Some(part) = part else { return };
        self.kills += 1;
        self.event(format!("{part} is killed"));
        self.killed = Some((Instant::now(), part));
    }

    fn after_kill(&self) -> String {
        let after = |(since, part): &(Instant, String)| {
            format!(", {:.1} s after {part} was killed", since.elapsed().as_secs_f64())
        };
        self.killed.as_ref().map(after).unwrap_or_default()
    }

    pub fn event(&mut self, what: String) {
        let s = self.began.elapsed().as_secs();
        self.events.push(format!("{:02}:{:02} {what}", s / 60, s % 60));
        if self.events.len() > EVENTS_MAX {
            self.events.remove(0);
            self.printed = self.printed.saturating_sub(1);
        }
    }

    /// The events since the last call.
    pub fn new_events(&mut self) -> Vec<String> {
        let new = self.events[self.printed..].to_vec();
        self.printed = self.events.len();
        new
    }

    /// The last events.
    pub fn last_events(&self, count: usize) -> &[String] {
        &self.events[self.events.len().saturating_sub(count)..]
    }

    /// What a part does, by its number.
    pub fn what(&self, demo: &Demo, number: usize) -> String {
        let (kind, n) = (number / COUNT, number % COUNT);
        if let Some(left) = demo.parts().nth(number).and_then(|part| part.starts_in()) {
            return format!("killed, starts again in {} s", left.as_secs() + 1);
        }
        match kind {
            0 if self.nodes[n] => "ready".to_owned(),
            0 => "joins the others".to_owned(),
            1 => self.what_engine_does(n),
            _ => self.what_scanner_does(n),
        }
    }

    fn what_engine_does(&self, engine: usize) -> String {
        let Some(cluster) = self.engines[engine].as_ref().and_then(|status| status.cluster.as_ref()) else {
            return "starts, or does not answer".to_owned();
        };
        match (cluster.leads, cluster.behind_ms, &cluster.fault_message) {
            (true, _, None) => format!("LEADS, epoch {}, {:.0} scans/s", cluster.epoch, self.scans_per_s),
            (true, _, Some(_)) => "LEADS; the database does not answer".to_owned(),
            (false, Some(behind_ms), None) => format!("follows, {:.1} s behind", behind_ms as f64 / 1_000.0),
            (false, _, Some(_)) => "waits for the database".to_owned(),
            (false, None, None) => "reads the log".to_owned(),
        }
    }

    fn what_scanner_does(&self, scanner: usize) -> String {
        let status = self.leader.and_then(|leader| self.engines[leader].as_ref());
        let rows = status.map(|status| status.scanners.as_slice()).unwrap_or_default();
        match rows.iter().find(|row| row.name == format!("s{}", scanner + 1)) {
            Some(row) => format!("in {}: {} answers, {} in progress", row.region, row.answered, row.in_progress),
            None => "looks for the leader".to_owned(),
        }
    }

    /// The servers in one line.
    pub fn servers(&self) -> String {
        let oldest = match (self.leader, self.oldest_ms) {
            (_, Some(oldest_ms)) => format!("every one scanned within the last {:.1} s", oldest_ms as f64 / 1_000.0),
            (Some(_), None) => "some not scanned yet".to_owned(),
            (None, None) => "no leader; scanners keep their answers".to_owned(),
        };
        format!("{} servers, {oldest}", self.servers)
    }

    /// Everything in one line.
    pub fn line(&self) -> String {
        let nodes = self.nodes.iter().filter(|is_ready| **is_ready).count();
        let engines = self.engines.iter().filter(|engine| engine.is_some()).count();
        let leader =
            self.leader.map_or("nobody leads".to_owned(), |leader| format!("{} leads", ["a", "b", "c"][leader]));
        let scans = self.scans_per_s;
        format!("{nodes} nodes ready, {engines} engines, {leader}, {scans:.0} scans/s; {}", self.servers())
    }
}

fn status_of(demo: &Demo, engine: usize) -> Option<Status> {
    let mut client = Client::connect_with_timeout(&demo.sockets[engine], ANSWER_MAX).ok()?;
    client.lines(&requests::Status {}).ok()?.pop()
}

/// The oldest last answer of all servers, ms ago. `None`: one has never answered.
fn oldest_answer_ms(demo: &Demo, leader: usize) -> Option<i64> {
    let mut client = Client::connect_with_timeout(&demo.sockets[leader], ANSWER_MAX).ok()?;
    let servers: Vec<ServerSummary> = client.lines(&requests::ServersList { filter: Default::default() }).ok()?;
    let seen: Option<Vec<i64>> = servers.iter().map(|server| server.public.last_seen_ms).collect();
    Some(crate::clock::system_ms() - seen?.into_iter().min()?)
}
