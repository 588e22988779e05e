//! The rows of a week as `clqd export` prints them (docs/rules.md section 13).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::row::{PlayerRow, Ranking};

/// What a player did on a server in a week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExportRow {
    /// Such as `2026-W47`.
    pub week: String,
    /// The URL of the server.
    pub server: String,
    /// The game.
    pub game: String,
    /// The name, normalised.
    pub player: String,
    /// The measured part of the time, ms.
    pub measured_ms: u64,
    /// Times that the player entered.
    pub starts: u32,
    /// The measured time and 60 s for each start, ms.
    pub time_ms: u64,
    #[serde(flatten)]
    pub estimates: EstimatesView,
    /// Points.
    pub points: i64,
    /// CLQ1, thousandths of a point.
    pub clq1: u64,
    /// The best segments, descending.
    pub clq1_segments: Vec<u64>,
    /// CLQ2.
    pub clq2: u64,
    /// The best games, descending.
    pub clq2_games: Vec<u64>,
    /// The rating.
    pub elo: f64,
    /// Rated rounds.
    pub elo_rounds: u32,
    /// Those of them whose winner is sure: the last list shows the end of the round.
    pub elo_rounds_sure: u32,
    /// Positions on the boards of the server by ranking; absent if not ranked.
    pub pos: BTreeMap<Ranking, u32>,
}

/// Estimates with what scans could not see; never ranked. In four cases of five the true value is not further away
/// than the error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Estimates)]
#[serde(default)]
pub struct EstimatesView {
    /// Estimated time, ms.
    pub time_est_ms: u64,
    /// Error of the estimated time, ms.
    pub time_est_error_ms: u64,
    /// Estimated time with the connected times that the server gives, ms; without them as `time_est_ms`.
    pub time_connected_ms: u64,
    /// Error of that time, ms.
    pub time_connected_error_ms: u64,
    /// Estimated points; three decimals.
    pub points_est: f64,
    /// Error of the estimated points; three decimals.
    pub points_est_error: f64,
}

impl EstimatesView {
    pub fn of(row: &PlayerRow) -> EstimatesView {
        EstimatesView {
            time_est_ms: row.time_est_ms,
            time_est_error_ms: row.time_est_error_ms(),
            time_connected_ms: row.time_connected_ms(),
            time_connected_error_ms: row.time_connected_error_ms(),
            points_est: row.points_est(),
            points_est_error: (row.points_est_error() * 1_000.0).round() / 1_000.0,
        }
    }
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
        ExportRow {
            week: week.to_owned(),
            server: server.to_owned(),
            game: game.to_owned(),
            player: player.to_owned(),
            measured_ms: row.measured_ms,
            starts: row.starts,
            time_ms: row.time_ms(),
            estimates: EstimatesView::of(row),
            points: row.points,
            clq1: row.clq1(),
            clq1_segments: row.clq1_segments.values().collect(),
            clq2: row.clq2(),
            clq2_games: row.clq2_games.values().collect(),
            elo: row.elo,
            elo_rounds: row.elo_rounds,
            elo_rounds_sure: row.elo_rounds_sure,
            pos: Ranking::ALL.into_iter().zip(positions).filter_map(|(of, at)| Some((of, at?))).collect(),
        }
    }
}
