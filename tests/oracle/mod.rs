//! An independent implementation of docs/rules.md that the tests compare clqd with.
//!
//! It keeps the complete scan log, the result of the checks of docs/rules.md 14 for each list, every
//! fact from a pair of snapshots, and every round. From these it computes rows, boards,
//! ranks, series and classes at the end, slowly and simply. It shares no code with the
//! engine except the calendar, the normalisation of names and the parsing of URLs. It is
//! neither fast nor incremental, and rejects a log that is not in time order.
//!
//! A choice that docs/rules.md leaves open is marked **[open]**.

#![allow(dead_code, unused_imports, reason = "each test program uses a part of this module")]

pub mod adapter;
pub mod compare;
mod facts;
pub mod generate;
mod log;
mod rows;
mod screen;
mod servers;
mod windows;

use std::collections::HashMap;

use clqd::model::calendar::Calendar;
use facts::Revealed;
pub use facts::{Entry, Estimate, Fact, FactKind, Round, Snapshot, clq2_scores, elo_after};
pub use log::{Line, LineKind, read_log};
pub use rows::{Best, Row, Scope};
pub use screen::{Outcome, Reason, Report, Screen};
use screen::{Screened, screen};
pub use servers::{ClassStep, MapTime, SLOT_CODE_BITS, Series, decode, encode, median, pack_slots, ranks_blob};
pub use windows::{Window, WindowKind};

/// The settings that docs/rules.md names, with its defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    pub calendar: Calendar,
    pub count_bots: bool,
    pub ping_zero_is_bot: bool,
    pub ignore: Vec<String>,
    pub darkplaces_games: Vec<String>,
    pub round_drop_min: i64,
    pub round_drop_ratio: f64,
    pub clq2_quarter: Quarter,
    pub elo_k: f64,
    /// 0: no cap.
    pub elo_k_times_opponents_max: f64,
    pub elo_carry_over: bool,
    pub screen: Screen,
}

/// `clq2.quarter`: what "at least 25 % of the pivot's points" means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quarter {
    /// `floor(pivot / points) <= 4`.
    Whole,
    /// `4 * points >= pivot`.
    Exact,
}

impl Default for Settings {
    fn default() -> Settings {
        let ignore = ["UnnamedPlayer", "unnamed", "Player", "player", "unconnected", "nameless tee"];
        Settings {
            calendar: Calendar::default(),
            count_bots: false,
            ping_zero_is_bot: true,
            ignore: ignore.map(str::to_owned).to_vec(),
            darkplaces_games: vec!["Nexuiz".to_owned(), "Xonotic".to_owned()],
            round_drop_min: 5,
            round_drop_ratio: 0.5,
            clq2_quarter: Quarter::Whole,
            elo_k: 25.0,
            elo_k_times_opponents_max: 225.0,
            elo_carry_over: false,
            screen: Screen::default(),
        }
    }
}

/// The length of a segment, and the longest gap over which a player counts as present
/// (docs/rules.md 3 and 5).
pub const SEGMENT_MS: i64 = 720_000;

/// A player: a name in a game (docs/rules.md 2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayerId {
    pub game: String,
    pub name: String,
}

/// A scan log and everything that is derived from it.
pub struct Oracle {
    pub settings: Settings,
    pub lines: Vec<Line>,
    /// The result of the checks of docs/rules.md 14 for each line.
    pub outcomes: Vec<Outcome>,
    /// The full snapshots that are credible, in order of the log.
    pub snapshots: Vec<Snapshot>,
    /// All facts, in order of the log.
    pub facts: Vec<Fact>,
    /// The final lists that count, in order of the log.
    pub rounds: Vec<Round>,
    /// Parts of estimated times, in order of the log.
    pub estimates: Vec<Estimate>,
    /// The checks that applied; those of gains are last.
    pub reports: Vec<Report>,
    /// Bots that could not be identified, by server, in the last list that was not too long.
    pub unnamed_bots: HashMap<String, u32>,
    /// All players with keys: the key is the index + 1.
    pub players: Vec<PlayerId>,
    /// All servers in order of first appearance: the key is the index + 1.
    pub servers: Vec<String>,
    index: Index,
}

/// Indexes for lookups, so that a fleet of thousands of servers can be compared.
#[derive(Default)]
struct Index {
    player_keys: HashMap<PlayerId, usize>,
    server_keys: HashMap<String, usize>,
    snapshots: HashMap<String, Vec<usize>>,
    lines: HashMap<String, Vec<usize>>,
    facts: HashMap<String, Vec<usize>>,
    rounds: HashMap<String, Vec<usize>>,
    estimates: HashMap<String, Vec<usize>>,
}

impl Oracle {
    /// Panics on a log that violates docs/rules.md 13.
    pub fn new(log: &str, settings: Settings) -> Oracle {
        let lines = read_log(log);
        let Screened { outcomes, snapshots, players, mut reports, unnamed_bots } = screen(&lines, &settings);
        let (mut servers, mut index) = (Vec::new(), Index::default());
        index.player_keys = players.iter().cloned().zip(1..).collect();
        for line in &lines {
            index.server_keys.entry(line.server.clone()).or_insert_with(|| {
                servers.push(line.server.clone());
                servers.len()
            });
        }
        let revealed = facts::compare_all(&snapshots, &settings);
        let Revealed { facts, rounds, estimates, reports: gain_reports } = revealed;
        reports.extend(gain_reports);
        index.snapshots = by_server(snapshots.iter().map(|s| &s.server));
        index.lines = by_server(lines.iter().map(|line| &line.server));
        index.facts = by_server(facts.iter().map(|fact| &fact.server));
        index.rounds = by_server(rounds.iter().map(|round| &round.server));
        index.estimates = by_server(estimates.iter().map(|estimate| &estimate.server));
        Oracle {
            settings,
            lines,
            outcomes,
            snapshots,
            facts,
            rounds,
            estimates,
            reports,
            unnamed_bots,
            players,
            servers,
            index,
        }
    }

    /// Assigns keys to servers in the order in which they were added, instead of that of the log.
    pub fn order_servers(&mut self, servers: Vec<String>) {
        self.index.server_keys = servers.iter().cloned().zip(1..).collect();
        assert!(self.servers.iter().all(|server| self.index.server_keys.contains_key(server)));
        self.servers = servers;
    }

    /// Weeks with a fact or a round, oldest first.
    pub fn weeks(&self) -> Vec<u32> {
        let mut weeks: Vec<u32> = self.facts.iter().map(|f| f.week).chain(self.rounds.iter().map(|r| r.week)).collect();
        weeks.sort_unstable();
        weeks.dedup();
        weeks
    }

    /// The week of the last line, which is not closed.
    pub fn current_week(&self) -> Option<u32> {
        self.lines.last().map(|line| self.settings.calendar.week(line.t).0)
    }

    pub fn player_key(&self, player: &PlayerId) -> usize {
        *self.index.player_keys.get(player).expect("every player with a fact has a key")
    }

    pub fn server_key(&self, server: &str) -> usize {
        *self.index.server_keys.get(server).expect("a server of the log")
    }
}

/// The indices of each server's items, in order.
fn by_server<'a>(servers: impl Iterator<Item = &'a String>) -> HashMap<String, Vec<usize>> {
    let mut indices: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, server) in servers.enumerate() {
        match indices.get_mut(server) {
            Some(indices) => indices.push(index),
            None => drop(indices.insert(server.clone(), vec![index])),
        }
    }
    indices
}

/// The items of one server, in order.
fn of_server<'a, T>(indices: &HashMap<String, Vec<usize>>, items: &'a [T], server: &str) -> Vec<&'a T> {
    indices.get(server).into_iter().flatten().map(|&index| &items[index]).collect()
}
