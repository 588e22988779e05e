//! The parameters of a world.

use crate::fleet::behaviours::BehaviourShares;
use crate::fleet::protocol::ProtocolShares;

/// Time between two steps of a server, ms.
pub(super) const TICK_MS: i64 = 10_000;

/// Maximum of [`WorldSettings::constant_players`]: the most slots of a usual server.
pub const CONSTANT_PLAYERS_MAX: u16 = 64;

/// Most persons, if their number is not given: 15 for each of a million servers. With fewer, each person would be on
/// several servers at once, as few real players are.
pub(super) const POPULATION_MAX: u32 = 16_000_000;

/// The parameters of a world.
#[derive(Clone, Debug)]
pub struct WorldSettings {
    /// Number of servers.
    pub servers: u32,
    pub seed: u64,
    /// Start of the ground truth, Unix ms; no state before it can be queried.
    pub start_ms: i64,
    /// Shares of the protocols.
    pub protocols: ProtocolShares,
    /// Factor for the number of arriving players. With the normal value of 1, a server has about 2
    /// players on average, and most servers are empty.
    pub activity: f64,
    /// Number of persons; 0: 15 for each server and 500 more, at most [`POPULATION_MAX`].
    pub population: u32,
    /// Number of players on each server at all times, at most [`CONSTANT_PLAYERS_MAX`]. They score
    /// and play rounds, but nobody joins or leaves, and there are no bots. `None`: players join
    /// and leave.
    pub constant_players: Option<u16>,
    /// Whether servers show the final list for 10 to 30 s before a new round begins, as most real
    /// ones do. Off: the new round begins at once. The same seed gives a different world with each
    /// value.
    pub intermissions: bool,
    /// Shares of the behaviours that must not be ranked.
    pub behaviours: BehaviourShares,
    /// Whether the ground truth is recorded. Without it a server can skip entire days.
    pub truth: bool,
    /// Number of newest final lists kept for each server; `usize::MAX` for all.
    pub round_results_max: usize,
}

impl Default for WorldSettings {
    fn default() -> Self {
        WorldSettings {
            servers: 100,
            seed: 1,
            start_ms: 1_763_683_200_000,
            protocols: ProtocolShares::default(),
            activity: 1.0,
            population: 0,
            constant_players: None,
            intermissions: false,
            behaviours: BehaviourShares::NONE,
            truth: true,
            round_results_max: 8,
        }
    }
}
