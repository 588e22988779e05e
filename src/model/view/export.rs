//! The rows of a week as `clqd export` prints them (docs/rules.md section 13).

use serde::{Deserialize, Serialize};

use crate::model::row::{PlayerRow, Ranking};

/// What a player did on a server in a week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExportRow {
    pub week: String,
    pub server: String,
    pub game: String,
    pub player: String,
    pub measured_ms: u64,
    pub starts: u32,
    pub time_ms: u64,
    pub time_est_ms: u64,
    pub points: i64,
    pub points_est: f64,
    /// Thousandths of a point.
    pub clq1: u64,
    pub clq1_segments: Vec<u64>,
    pub clq2: u64,
    pub clq2_games: Vec<u64>,
    pub elo: f64,
    pub elo_rounds: u32,
    pub pos: ExportedPositions,
}

/// Absent where the player is not ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedPositions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clq1: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clq2: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elo: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<u32>,
}

impl ExportRow {
    /// `positions` are by [`Ranking`].
    pub fn new(
        week: &str,
        server: &str,
        game: &str,
        player: &str,
        row: &PlayerRow,
        positions: [Option<u32>; 5],
    ) -> ExportRow {
        let position = |ranking| positions[ranking as usize];
        ExportRow {
            week: week.to_owned(),
            server: server.to_owned(),
            game: game.to_owned(),
            player: player.to_owned(),
            measured_ms: row.measured_ms,
            starts: row.starts,
            time_ms: row.time_ms(),
            time_est_ms: row.time_est_ms,
            points: row.points,
            points_est: row.points_est(),
            clq1: row.clq1(),
            clq1_segments: row.clq1_segments.values().collect(),
            clq2: row.clq2(),
            clq2_games: row.clq2_games.values().collect(),
            elo: row.elo,
            elo_rounds: row.elo_rounds,
            pos: ExportedPositions {
                clq1: position(Ranking::Clq1),
                clq2: position(Ranking::Clq2),
                elo: position(Ranking::Elo),
                points: position(Ranking::Points),
                time: position(Ranking::Time),
            },
        }
    }
}
