//! What really happened on the simulated servers: the measure for what clqd
//! makes of it from the outside. Counted while a world goes on, from the
//! world's start.
//!
//! A person's points and time are credited to the week (UTC) in which they
//! came. A player is seen from one tick to another, so `present_ms` is a
//! multiple of the tick, except at a week's first moment and at the start.

use std::collections::VecDeque;
use std::io::{
    Write, {self},
};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fleet::population::Person;
use crate::model::WeekKey;

/// What one person did on one server in one week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlayerTruth {
    /// Points won; never taken back.
    pub gained: i64,
    /// Points lost: suicides. Points at any moment are what was gained less
    /// what was lost since the round began or the player began again.
    pub lost: i64,
    pub present_ms: i64,
    /// The part of `present_ms` in which they only watched.
    pub spectated_ms: i64,
    /// Times of coming.
    pub starts: u32,
    /// Rounds at whose end the person was there and which count (RULES section 4).
    pub rounds: u32,
    /// Rounds of these with nobody above.
    pub wins: u32,
}

impl PlayerTruth {
    pub(super) fn add(&mut self, more: PlayerTruth) {
        self.gained += more.gained;
        self.lost += more.lost;
        self.present_ms += more.present_ms;
        self.spectated_ms += more.spectated_ms;
        self.starts += more.starts;
        self.rounds += more.rounds;
        self.wins += more.wins;
    }
}

/// How a round ended; bots and spectators left out, in the order of points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundResult {
    pub t_ms: i64,
    pub map: &'static str,
    pub list: Vec<(Person, i32)>,
}

/// One server's books.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTruth {
    pub deeds: FxHashMap<(WeekKey, Person), PlayerTruth>,
    /// Rounds ended, and how many of them count (RULES section 4: at least two
    /// players that are not bots, best points above 0).
    pub rounds: u64,
    pub rounds_counting: u64,
    /// The last final lists of rounds that count, oldest first.
    pub finals: VecDeque<RoundResult>,
}

/// A line of the printed truth.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TruthLine {
    Server {
        server: String,
        game: &'static str,
        t: i64,
        rounds: u64,
        rounds_counting: u64,
        players: usize,
        /// What is special about the server ([`super::Behaviour::name`]).
        #[serde(skip_serializing_if = "Option::is_none")]
        behaviour: Option<&'static str>,
    },
    /// In order of week, then person.
    Player {
        server: String,
        week: String,
        person: u32,
        /// As shown.
        name: String,
        /// As clqd's keys see it (RULES section 2). Several people may bear one
        /// name: their sums belong together, or are lost to both where they met.
        normalised: String,
        bot: bool,
        #[serde(flatten)]
        deeds: PlayerTruth,
    },
    /// Oldest first.
    Round { server: String, t: i64, map: &'static str, list: Vec<(String, i32)> },
}

/// Writes lines as JSON, one object a line. Error: whatever `out` says.
pub fn write(lines: impl IntoIterator<Item = TruthLine>, out: &mut impl Write) -> io::Result<()> {
    for line in lines {
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
