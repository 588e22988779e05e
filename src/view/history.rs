//! Answers that need all weeks: maps over time, and the best players of a server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::row::Ranking;

/// A map, now and in the kept weeks. Maps of the same name in different games are one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MapView {
    /// The number of the map; it never changes.
    pub map_key: u32,
    /// Its name.
    pub map: String,
    /// Servers that play it now.
    pub servers_online: u64,
    /// Players on them, without bots.
    pub players_online: u64,
    /// Weeks in which it was played, newest first.
    pub weeks: Vec<MapWeekView>,
}

/// A map in a list: how much it was played in all kept weeks, on all servers that are not greylisted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MapTotals {
    /// The number of the map; it never changes.
    pub map_key: u32,
    /// Its name.
    pub map: String,
    /// Kept weeks in which it was played.
    pub weeks: u32,
    /// How long servers played it, minutes.
    pub minutes: f64,
    /// Mean players meanwhile.
    pub average_players: f64,
    /// Share of this map in all players' time in the kept weeks, 0 to 1.
    pub share: f64,
}

/// A map in a week, on all servers that are not greylisted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = MapWeek)]
pub struct MapWeekView {
    /// Such as `2026-W47`.
    pub week: String,
    /// Servers that played it.
    pub servers: u32,
    /// How long they played it, minutes.
    pub minutes: f64,
    /// Mean players meanwhile.
    pub average_players: f64,
    /// Share of this map in all players' time in the week, 0 to 1.
    pub share: f64,
}

/// The players of a server with the best positions in closed weeks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BestPlayers {
    /// Its URL.
    pub server: String,
    /// CLQ1, CLQ2 and ELO: the rankings whose best positions are kept.
    pub rankings: Vec<BestOfRanking>,
}

/// The best players of a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BestOfRanking {
    /// Ranking of the positions.
    pub ranking: Ranking,
    /// Ordered by the best position, then the second, then the third; of equal positions, that of
    /// the earlier week is first.
    pub players: Vec<BestPlayer>,
}

/// A player with their best positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BestPlayer {
    /// The number of the player; it never changes.
    pub player_key: u32,
    /// Normalised: without colour codes.
    pub name: String,
    /// As a server sent it.
    pub display: String,
    /// At most three, the best first.
    pub positions: Vec<PositionOfWeek>,
}

/// A position on a board in a closed week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PositionOfWeek {
    /// From 1, best first.
    pub position: u32,
    /// Such as `2026-W47`.
    pub week: String,
}
