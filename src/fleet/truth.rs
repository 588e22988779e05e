//! Ground truth of the simulated servers, recorded from `start_ms` on. Tests compare
//! clqd's rankings with it.
//!
//! A person's points and time count for the week (UTC) in which they were gained.
//! Presence is counted from tick to tick, so `present_ms` is a multiple of the tick,
//! except at the start and end of a week and at `start_ms`.

use std::collections::VecDeque;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fleet::population::Person;
use crate::model::WeekKey;

/// What one person did on one server in one week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlayerTruth {
    /// Points gained; never reduced.
    pub points_gained: i64,
    /// Points lost by suicides. The points at any time are the gained minus the lost points
    /// since the start of the round, or since the player's points were reset.
    pub points_lost: i64,
    pub present_ms: i64,
    /// The part of `present_ms` spent spectating.
    pub spectated_ms: i64,
    /// Number of joins.
    pub starts: u32,
    /// Rated rounds (docs/rules.md section 4) at whose end the person was on the server.
    pub rounds: u32,
    /// The number of these rounds that the person won.
    pub wins: u32,
}

impl PlayerTruth {
    pub(super) fn add(&mut self, more: PlayerTruth) {
        self.points_gained += more.points_gained;
        self.points_lost += more.points_lost;
        self.present_ms += more.present_ms;
        self.spectated_ms += more.spectated_ms;
        self.starts += more.starts;
        self.rounds += more.rounds;
        self.wins += more.wins;
    }
}

/// The result of a round, in the order of points, without bots and spectators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundResult {
    pub t_ms: i64,
    /// When the next round began: after the intermission.
    pub next_round_ms: i64,
    pub map: &'static str,
    pub final_list: Vec<(Person, i32)>,
}

/// The ground truth of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTruth {
    pub players: FxHashMap<(WeekKey, Person), PlayerTruth>,
    /// Rounds ended, and the number of rated rounds (docs/rules.md section 4: at least two
    /// players that are not bots, best points above 0).
    pub rounds: u64,
    pub rounds_rated: u64,
    /// The final lists of the last rated rounds, oldest first.
    pub final_lists: VecDeque<RoundResult>,
}

/// A line of the printed ground truth.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TruthLine {
    Server {
        server: String,
        game: &'static str,
        t_ms: i64,
        rounds: u64,
        rounds_rated: u64,
        players: usize,
        /// The special behaviour of the server ([`super::Behaviour::name`]).
        #[serde(skip_serializing_if = "Option::is_none")]
        behaviour: Option<&'static str>,
    },
    /// Ordered by week, then person.
    Player {
        server: String,
        week: String,
        person_id: u32,
        /// As shown by the server.
        name: String,
        /// Normalised as in clqd's keys (docs/rules.md section 2). Several persons may have the same
        /// name: clqd adds their values up, or ranks neither while both are on the server.
        normalised: String,
        bot: bool,
        #[serde(flatten)]
        totals: PlayerTruth,
    },
    /// Oldest first.
    Round {
        server: String,
        t_ms: i64,
        /// When the next round began: after the intermission.
        #[serde(skip)]
        next_round_ms: i64,
        map: &'static str,
        final_list: Vec<(String, i32)>,
    },
}

/// Writes lines as JSON, one object per line. Error: writing to `out` failed.
pub fn write(lines: impl IntoIterator<Item = TruthLine>, out: &mut impl Write) -> io::Result<()> {
    for line in lines {
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
