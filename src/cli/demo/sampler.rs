//! The demo's data: requested from the daemon like any admin request.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use crate::api::{ServerFilter, Status, requests};
use crate::daemon::Daemon;
use crate::model::row::Ranking;
use crate::model::server::Class;
use crate::view::{PublicServer, Top};

/// Polls for which one ranking is shown.
const POLLS_PER_RANKING: u64 = 16;

/// Polls over which a rate is averaged.
const POLLS_PER_RATE: usize = 11;

/// Entries of the top list.
pub(super) const TOP_ROWS: u32 = 15;

/// The latest poll, and earlier data to show changes.
pub(super) struct DemoState {
    pub(super) socket: PathBuf,
    /// Address of the website.
    pub(super) website: String,
    pub(super) status: Status,
    /// Scans a second over the last seconds, by class.
    pub(super) per_second: [f64; 7],
    /// All scans a second, the newest last.
    pub(super) history: Vec<u64>,
    pub(super) server: Option<PublicServer>,
    pub(super) top: Option<Top>,
    /// Positions of the same board at the previous poll.
    before: HashMap<u32, u64>,
    looks: u64,
    looked_ms: i64,
    /// Snapshots by class at the last polls, the oldest first.
    counted: VecDeque<(i64, [u64; 7])>,
}

impl DemoState {
    pub(super) fn new(socket: PathBuf, website: String) -> DemoState {
        DemoState {
            socket,
            website,
            status: Status::default(),
            per_second: [0.0; 7],
            history: Vec::new(),
            server: None,
            top: None,
            before: HashMap::new(),
            looks: 0,
            looked_ms: 0,
            counted: VecDeque::new(),
        }
    }

    pub(super) fn ranking(&self) -> Ranking {
        Ranking::ALL[(self.looks / POLLS_PER_RANKING) as usize % Ranking::ALL.len()]
    }

    pub(super) async fn poll(&mut self, daemon: &Daemon) -> anyhow::Result<()> {
        let status = daemon.read(requests::Status {}).await?;
        let now_ms = crate::clock::system_ms();
        let seconds = (now_ms - self.looked_ms) as f64 / 1_000.0;
        if self.looks > 0 && seconds > 0.0 {
            let (old, new) = (&self.status.engine.counts, &status.engine.counts);
            self.history.push(((new.snapshots - old.snapshots) as f64 / seconds).round() as u64);
        }
        self.counted.push_back((now_ms, status.engine.counts.snapshots_by_class));
        if self.counted.len() > POLLS_PER_RATE {
            self.counted.pop_front();
        }
        if let (Some((from_ms, old)), Some((to_ms, new))) = (self.counted.front(), self.counted.back()) {
            let seconds = (to_ms - from_ms).max(1) as f64 / 1_000.0;
            for (class, rate) in self.per_second.iter_mut().enumerate() {
                *rate = (new[class] - old[class]) as f64 / seconds;
            }
        }
        self.status = status;
        self.looked_ms = now_ms;
        self.poll_board(daemon).await?;
        self.looks += 1;
        Ok(())
    }

    /// Loads the board of the server with most players. Keeps the server while it has
    /// players.
    async fn poll_board(&mut self, daemon: &Daemon) -> anyhow::Result<()> {
        let filter = ServerFilter { class: Class::new(1), ..ServerFilter::default() };
        let servers = daemon.read(requests::ServersList { filter }).await?;
        let mut servers: Vec<PublicServer> = servers.into_iter().map(|server| server.public).collect();
        let previous_key = self.server.as_ref().map(|server| server.key);
        servers.sort_by_key(|server| (Some(server.key) != previous_key, std::cmp::Reverse(server.assumed_players)));
        self.server = servers.into_iter().next();
        let Some(server) = &self.server else { return Ok(()) };
        let request = requests::Top {
            server: crate::model::ServerUrl::parse(&server.url)?,
            ranking: self.ranking(),
            week: None,
            count: TOP_ROWS,
        };
        let old = self.top.replace(daemon.read(request).await?);
        let new = self.top.as_ref().expect("just stored");
        self.before = match old {
            Some(old) if (&old.server, old.ranking) == (&new.server, new.ranking) => {
                old.rows.iter().map(|row| (row.player_key, row.position)).collect()
            }
            _ => new.rows.iter().map(|row| (row.player_key, row.position)).collect(),
        };
        Ok(())
    }

    /// The change of a player's position since the previous poll: "+2", "new", or
    /// nothing.
    pub(super) fn position_change(&self, player: u32, position: u64) -> String {
        match self.before.get(&player) {
            None => "new".to_owned(),
            Some(&before) if before == position => String::new(),
            Some(&before) => format!("{:+}", before as i64 - position as i64),
        }
    }

    /// One line for output without a screen.
    pub(super) fn line(&self) -> String {
        let engine = &self.status.engine;
        let rate: f64 = self.per_second.iter().sum();
        let mut line = format!(
            "{rate:.0} scans/s ({:.0} of class 1), {} players on {} servers, {} rounds, {} waiting for the archive",
            self.per_second[0], engine.players_online, engine.servers, engine.counts.rounds, self.status.outbox_entries
        );
        if let Some(top) = &self.top {
            let best: Vec<String> =
                top.rows.iter().take(3).map(|row| format!("{}. {}", row.position, row.name)).collect();
            line.push_str(&format!("; {} on {}: {}", top.ranking.name(), top.server, best.join(", ")));
        }
        line
    }
}
