//! An independent implementation of docs/rules.md that the tests compare clqd with.
//!
//! It keeps the complete scan log, the result of the checks of docs/rules.md 14 for each list, every
//! fact from a pair of snapshots, and every round. From these it computes rows, boards,
//! ranks, series and classes at the end, slowly and simply. It shares no code with the
//! engine except the calendar, the normalisation of names and the parsing of URLs. It is
//! neither fast nor incremental, and rejects a log that is not in time order.
//!
//! A log may contain commands of an admin and settings (docs/rules.md 13). They are applied in
//! order, each to what the lines before it have revealed. Facts are never changed afterwards: they
//! name the player whom a name stood for at that time. Rows are sums over the facts of a scope in
//! order of the log, in which a merge, a forgotten player or deleted windows are steps of their own.
//! A row of a moment is such a sum over the lines before it.
//!
//! A choice that docs/rules.md leaves open is marked **[open]**.

#![allow(dead_code, unused_imports, reason = "each test program uses a part of this module")]

pub mod adapter;
mod commands;
pub mod compare;
mod facts;
pub mod generate;
mod history;
mod log;
mod names;
mod rows;
mod screen;
mod servers;
mod sessions;
mod settings;
mod sums;
mod windows;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use commands::{Known, MapGap, Run};
use facts::Revealed;
pub use facts::{Entry, Estimate, EstimatedTime, Fact, FactKind, Round, Snapshot, clq2_scores, elo_after};
use history::{History, Target};
pub use log::{Command, Line, LineKind, Logged, What, read_log};
pub use rows::{Best, Row, Scope};
pub use screen::{Outcome, Reason, Report, Screen, normalised};
pub use servers::{ClassStep, MapTime, SLOT_CODE_BITS, Series, decode, encode, median, pack_slots, ranks_blob};
use sessions::Sessions;
pub use settings::{Quarter, Settings};
pub use windows::{Window, WindowKind};

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
    /// Those at the end of the log.
    pub settings: Settings,
    /// The scans.
    pub lines: Vec<Line>,
    /// The result of the checks of docs/rules.md 14 for each scan.
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
    /// All players that ever had a key: the key is the index + 1. Merged and forgotten ones too.
    pub players: Vec<PlayerId>,
    /// The players at the end, by key: without merged and forgotten ones.
    pub current_players: BTreeMap<usize, PlayerId>,
    /// All servers in order of first appearance: the key is the index + 1. Removed ones too.
    pub servers: Vec<String>,
    /// Commands that named something unknown, and settings with unknown keys.
    pub skipped: usize,
    /// The tags of each server at the end.
    pub tags: HashMap<String, BTreeSet<String>>,
    /// Servers that are removed, and that are greylisted, at the end.
    pub removed: BTreeSet<String>,
    pub greylisted: BTreeSet<String>,
    /// Gaps that are credited to maps, in order of the log.
    map_gaps: Vec<MapGap>,
    last_lists: HashMap<String, Snapshot>,
    pub sessions: Sessions,
    history: History,
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
    /// Panics on a log that violates docs/rules.md 13. `settings` hold until the log sets others.
    pub fn new(log: &str, settings: Settings) -> Oracle {
        Oracle::of_lines(read_log(log), settings)
    }

    /// A recomputation: ignores the settings in the log.
    pub fn recompute(log: &str, settings: Settings) -> Oracle {
        let mut lines = read_log(log);
        for line in &mut lines {
            if let What::Settings(settings) = &mut line.what {
                settings.clear();
            }
        }
        Oracle::of_lines(lines, settings)
    }

    fn of_lines(log: Vec<Logged>, settings: Settings) -> Oracle {
        let Run {
            settings,
            lines,
            outcomes,
            snapshots,
            comparer,
            screener,
            servers,
            known,
            history,
            skipped,
            map_gaps,
            ..
        } = Run::over(log, settings);
        let last_lists =
            servers.iter().filter_map(|server| Some((server.clone(), comparer.last_list(server)?.clone())));
        let last_lists = last_lists.collect();
        let sessions = comparer.sessions;
        let Revealed { facts, rounds, estimates, reports: of_gains } = comparer.revealed;
        let current_players = screener.names.current();
        let index = Index {
            player_keys: screener.names.keys,
            server_keys: servers.iter().cloned().zip(1..).collect(),
            snapshots: by_server(snapshots.iter().map(|s| &s.server)),
            lines: by_server(lines.iter().map(|line| &line.server)),
            facts: by_server(facts.iter().map(|fact| &fact.server)),
            rounds: by_server(rounds.iter().map(|round| &round.server)),
            estimates: by_server(estimates.iter().map(|estimate| &estimate.server)),
        };
        let servers_with = |is: fn(&Known) -> bool| -> BTreeSet<String> {
            known.iter().filter(|(_, known)| is(known)).map(|(server, _)| server.clone()).collect()
        };
        Oracle {
            settings,
            lines,
            outcomes,
            snapshots,
            facts,
            rounds,
            estimates,
            reports: screener.reports.into_iter().chain(of_gains).collect(),
            unnamed_bots: screener.unnamed_bots,
            players: screener.names.players,
            current_players,
            servers,
            skipped,
            removed: servers_with(|known| known.removed),
            greylisted: servers_with(|known| known.greylisted),
            tags: known.into_iter().map(|(server, known)| (server, known.tags)).collect(),
            map_gaps,
            last_lists,
            sessions,
            history,
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
        self.history.times.last().map(|t| self.settings.calendar.week(*t).0)
    }

    /// Whether a week is closed at the end of the log.
    pub fn is_closed(&self, week: u32) -> bool {
        let closed = self.history.closed(&Target::week(&self.settings.calendar, week));
        closed.last().is_some_and(|closed| closed.end == usize::MAX)
    }

    /// Whether the server of a scan was greylisted then.
    pub fn was_greylisted_at(&self, line: &Line) -> bool {
        let removed = self.outcome_of(line) == Outcome::Ignored;
        !removed && self.history.was_greylisted(&line.server, line.number)
    }

    pub fn outcome_of(&self, line: &Line) -> Outcome {
        let at = self.lines.binary_search_by_key(&line.number, |line| line.number);
        self.outcomes[at.expect("a line of the log")]
    }

    /// The list with which the next one of the server is compared, after merges and without the
    /// names of forgotten players. `None`: the next one has no previous list.
    pub fn last_list(&self, server: &str) -> Option<&Snapshot> {
        self.last_lists.get(server)
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
