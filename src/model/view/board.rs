//! Questions to boards and their answers, as the edges speak them: scores in
//! shown units, players by name or key, cursors as text. Times are Unix ms.
//!
//! What is asked of a board itself, in raw scores and keys, is
//! [`crate::board::query`]; the engine translates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::row::Ranking;
use crate::model::scope::Scope;

/// The boards of one scope in one window: one for each ranking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardsSelector {
    pub scope: Scope,
    /// A window, such as `2026-W47`, or a type of windows, such as `week`; absent: `week`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// With a type: its oldest window that contains this time; absent: the running one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<i64>,
}

/// One board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardSelector {
    pub scope: Scope,
    pub ranking: Ranking,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<i64>,
}

impl BoardSelector {
    /// The boards that it is one of.
    pub fn boards(&self) -> BoardsSelector {
        BoardsSelector { scope: self.scope.clone(), window: self.window.clone(), time_ms: self.time_ms }
    }
}

/// A player: his key, or his name in the game of the scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PlayerSelector {
    Key(u32),
    Name(String),
}

/// Bounds of a range of shown scores, by number whatever the direction of the
/// board; absent: no bound. At most one of each end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScoreBounds {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
}

/// What can be asked of a board. Positions are from 1, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BoardQuery {
    /// The head alone.
    Size {},
    /// The best, best first.
    Top { count: u32 },
    /// The last, last first.
    Bottom { count: u32 },
    /// Places from a position on, with cursors to go on.
    Page { position: u32, count: u32 },
    /// The place at a position, if there is one.
    At { position: u32 },
    /// `count` places around and with a player.
    Around { player: PlayerSelector, count: u32 },
    /// Places with scores in a range, from the `position`-th of them on.
    Range {
        #[serde(default)]
        scores: ScoreBounds,
        #[serde(default = "default_position")]
        position: u32,
        count: u32,
    },
    /// How many have scores in a range: the head alone.
    Count {
        #[serde(default)]
        scores: ScoreBounds,
    },
    /// The position that somebody would have who reached this score now.
    PositionFor { score: f64 },
    /// A player's place among all.
    Standing { player: PlayerSelector },
    /// A place for each player, or that he is absent, in the order asked.
    Positions { players: Vec<PlayerSelector> },
    /// The page behind a cursor.
    After { cursor: String, count: u32 },
    /// The page in front of a cursor, best first.
    Before { cursor: String, count: u32 },
}

fn default_position() -> u32 {
    1
}

/// A ranking of a fused list, and how much it counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankingWeight {
    pub ranking: Ranking,
    /// Above 0.
    #[serde(default = "default_weight")]
    pub weight: f64,
}

fn default_weight() -> f64 {
    1.0
}

/// Of whom a fused list is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FusedQuery {
    Top { count: u32 },
    Players { players: Vec<PlayerSelector> },
}

/// The window that an answer is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowView {
    /// Such as `2026-W47`.
    pub window: String,
    /// First moment, and the first one after it; absent where there is none.
    pub from_ms: Option<i64>,
    pub to_ms: Option<i64>,
    /// Nothing here changes any more.
    pub closed: bool,
}

/// One line of `clqd board windows`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Type: `hour`, `day`, `week`, `month`, `all-time`, or a number of the config.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(flatten)]
    pub window: WindowView,
    pub phase: WindowPhase,
    /// On the boards of games, and what those of games and tags hold in memory;
    /// absent where they are not held.
    pub players: Option<u64>,
    pub memory_bytes: Option<u64>,
    /// What it takes in the state directory, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StorageUse>,
}

/// What a window holds in the state directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageUse {
    pub records: u64,
    /// Of keys and values; on disk it is about twice that.
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowPhase {
    /// It comes next.
    Next,
    Running,
    Closed,
}

/// How a board is ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderView {
    pub low_is_better: bool,
    /// The ranking that parts equal scores before the moment does, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie: Option<Ranking>,
}

/// The head of an answer of a board; its places follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoardHead {
    pub scope: Scope,
    #[serde(flatten)]
    pub window: WindowView,
    pub ranking: Ranking,
    #[serde(flatten)]
    pub order: OrderView,
    /// Players on the board.
    pub size: u64,
    /// Of a range or count: the players within, and the position of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeView>,
    /// Of a page: how to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageView>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeView {
    /// Without anybody within: where he would be.
    pub first: u64,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageView {
    /// The board has changed since the cursor was made: this page and the one
    /// that the cursor is of may not join.
    pub moved: bool,
    /// Cursors for the page before and the one after.
    pub before: String,
    pub after: String,
}

/// A row behind a head.
#[derive(Clone, Debug, PartialEq)]
pub enum BoardRow {
    Place(BoardEntryView),
    Absent(MissingPlayer),
    Standing(StandingView),
    PositionFor(PositionForView),
}

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryScore {
    /// Every position is held once (RULES section 8).
    pub position: u64,
    /// Equal scores share the best position, and the next lacks: 1 2 2 4.
    pub competition: u64,
    /// Equal scores share a position, and none lacks: 1 2 2 3.
    pub dense: u64,
    /// In its unit: clq1 in points per second, elo as rating, time in seconds,
    /// clq2 and points as they are.
    pub score: f64,
    /// The whole number that the board orders by: clq1 in thousandths of a
    /// point, time in ms; of elo the bits, in order.
    pub raw: i64,
    /// When the score was reached.
    pub reached_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoardEntryView {
    pub player: u32,
    pub name: String,
    pub display: String,
    #[serde(flatten)]
    pub at: EntryScore,
}

/// Somebody asked for who is not on the board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingPlayer {
    /// Absent where nobody of this name is known in the scope.
    pub player: Option<u32>,
    pub name: String,
}

/// Where a player stands on one board.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StandingView {
    pub ranking: Ranking,
    /// Players on the board.
    pub size: u64,
    /// Absent where the player is not on the board.
    pub place: Option<EntryScore>,
    /// Which share of the others has a worse score, 0 to 100.
    pub percentile: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PositionForView {
    pub score: f64,
    pub position: u64,
    pub competition: u64,
    pub dense: u64,
}

/// One player on the boards of several rankings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StandingsView {
    pub scope: Scope,
    #[serde(flatten)]
    pub window: WindowView,
    pub player: u32,
    pub name: String,
    pub display: String,
    pub standings: Vec<StandingView>,
}

/// The head of a fused list; its players follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FusedHead {
    pub scope: Scope,
    #[serde(flatten)]
    pub window: WindowView,
    pub k: f64,
    pub rankings: Vec<FusedRanking>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FusedRanking {
    pub ranking: Ranking,
    pub weight: f64,
    /// Players on its board.
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FusedView {
    /// Among all; absent where single players were asked for.
    pub position: Option<u64>,
    pub player: u32,
    pub name: String,
    pub display: String,
    /// The sum of `weight / (k + position)`.
    pub score: f64,
    /// On the boards that the player is on.
    pub positions: BTreeMap<Ranking, u32>,
}
