//! Board queries and their answers in the external interfaces: scores in displayed units, players
//! by name or key, cursors as strings. Times are Unix ms.
//!
//! The internal form, with raw scores and keys, is [`crate::board::query`]; the engine
//! translates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::row::Ranking;
use crate::model::scope::Scope;

/// The boards of one scope in one window: one for each ranking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardsSelector {
    /// Whose players: `server:URL`, `game:NAME` or `tag:NAME`.
    #[schema(value_type = String, example = "game:baseq3")]
    pub scope: Scope,
    /// A window, such as `2026-W47`, or a type of windows, such as `week`; absent: `week`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// With a type: its oldest window that contains this time, Unix ms; absent: the current window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<i64>,
}

/// One board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BoardSelector {
    /// Whose players: `server:URL`, `game:NAME` or `tag:NAME`.
    #[schema(value_type = String, example = "game:baseq3")]
    pub scope: Scope,
    /// What the board is ordered by.
    pub ranking: Ranking,
    /// A window, such as `2026-W47`, or a type of windows, such as `week`; absent: `week`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// With a type: its oldest window that contains this time, Unix ms; absent: the current window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ms: Option<i64>,
}

impl BoardSelector {
    /// The boards of the same scope and window.
    pub fn boards(&self) -> BoardsSelector {
        BoardsSelector { scope: self.scope.clone(), window: self.window.clone(), at_ms: self.at_ms }
    }
}

/// A player: their key, or their name in the game of the scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum PlayerSelector {
    /// The number of the player.
    Key(u32),
    /// A name, with or without colour codes.
    Name(String),
}

/// Bounds of a range of displayed scores, numeric for either direction of the board; absent: no
/// bound. At most one bound at each end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScoreBounds {
    /// Lowest score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Scores above this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// Highest score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Scores below this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
}

/// A query of a board. Positions are from 1, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BoardQuery {
    /// Only the head.
    Size {},
    /// The best entries, best first.
    Top {
        /// Most entries.
        count: u32,
    },
    /// The last entries, last first.
    Bottom {
        /// Most entries.
        count: u32,
    },
    /// Entries from a position on, with cursors for the next and previous page.
    Page {
        /// The first position.
        position: u32,
        /// Most entries.
        count: u32,
    },
    /// The entry at a position, if there is one.
    At {
        /// The position.
        position: u32,
    },
    /// `count` entries around a player, including the player.
    Around {
        /// The player.
        player: PlayerSelector,
        /// Most entries.
        count: u32,
    },
    /// Entries with scores in a range, from the `start`-th of them on.
    Range {
        /// The range; without it, all scores.
        #[serde(default)]
        scores: ScoreBounds,
        /// The first entry of the range, from 1.
        #[serde(default = "default_start")]
        start: u32,
        /// Most entries.
        count: u32,
    },
    /// Number of entries with scores in a range: only the head.
    Count {
        /// The range; without it, all scores.
        #[serde(default)]
        scores: ScoreBounds,
    },
    /// The position that a new player would get with this score now.
    PositionFor {
        /// In its unit.
        score: f64,
    },
    /// A player's entry.
    Standing {
        /// The player.
        player: PlayerSelector,
    },
    /// For each player, in the order of the query: the entry, or that the player is absent.
    Positions {
        /// At most 1,000.
        players: Vec<PlayerSelector>,
    },
    /// The page after a cursor.
    After {
        /// As `page` of a head has it.
        cursor: String,
        /// Most entries.
        count: u32,
    },
    /// The page before a cursor, best first.
    Before {
        /// As `page` of a head has it.
        cursor: String,
        /// Most entries.
        count: u32,
    },
}

fn default_start() -> u32 {
    1
}

/// A ranking of a fused list, with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RankingWeight {
    /// The ranking.
    pub ranking: Ranking,
    /// From 0.000001 to 1,000,000; without it, 1.
    #[serde(default = "default_weight")]
    pub weight: f64,
}

fn default_weight() -> f64 {
    1.0
}

/// The players of a fused list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FusedQuery {
    /// The best.
    Top {
        /// Most players.
        count: u32,
    },
    /// Some players.
    Players {
        /// At most 1,000.
        players: Vec<PlayerSelector>,
    },
}

/// The window of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WindowView {
    /// Such as `2026-W47`.
    pub window: String,
    /// Its start, Unix ms; `null` if there is none.
    pub start_ms: Option<i64>,
    /// Its end (exclusive), Unix ms; `null` if there is none.
    pub end_ms: Option<i64>,
    /// The window is closed: it does not change any more.
    pub closed: bool,
}

/// A window of time for which boards are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WindowSummary {
    /// Type: `hour`, `day`, `week`, `month`, `all-time`, or a number of the config.
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(flatten)]
    pub window: WindowView,
    /// Its phase.
    pub phase: WindowPhase,
    /// Players on the boards of games; `null` if the boards are not cached.
    pub players: Option<u64>,
    /// Memory of the boards of games and tags, bytes; `null` if the boards are not cached.
    pub memory_bytes: Option<u64>,
    /// Its use of the state directory, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<StorageUse>,
}

impl WindowSummary {
    pub fn is_closed_week(&self) -> bool {
        self.kind == "week" && self.phase == WindowPhase::Closed
    }
}

/// The records of a window in the state directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StorageUse {
    /// Number of records.
    pub records: u64,
    /// Size of keys and values; about twice as much on disk.
    pub bytes: u64,
}

/// The phase of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WindowPhase {
    /// It follows the current window.
    Upcoming,
    Running,
    Closed,
}

/// How a board is ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderView {
    /// The lowest score is the best.
    pub low_is_better: bool,
    /// The ranking that breaks ties before the time does, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tie_breaker: Option<Ranking>,
}

/// The scope, window and ranking of a board; its entries follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BoardHead {
    /// Whose players are on the board: `server:URL`, `game:NAME` or `tag:NAME`.
    #[schema(value_type = String, pattern = "^(server|game|tag):", example = "game:baseq3")]
    pub scope: Scope,
    #[serde(flatten)]
    pub window: WindowView,
    /// What the board is ordered by.
    pub ranking: Ranking,
    #[serde(flatten)]
    pub order: OrderView,
    /// Players on the board.
    pub size: u64,
    /// For a range or count: the number of players in it, and the position of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeView>,
    /// For the empty clq1 board of a server in a running window: when the first of the players online will
    /// have played for 12 minutes, Unix ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_score_ms: Option<i64>,
    /// Cursors of a page; absent for the entries around a player.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<PageView>,
}

impl BoardHead {
    /// Whether nobody is on the board of a window that is not closed.
    pub fn is_empty_and_open(&self) -> bool {
        self.size == 0 && !self.window.closed
    }
}

/// The players with scores in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ScoreRange)]
pub struct RangeView {
    /// The position of the first player in the range; if there is none, of the next player.
    pub first: u64,
    /// Players in the range.
    pub count: u64,
}

/// Cursors of a page of a board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = BoardCursors)]
pub struct PageView {
    /// The board has changed since the cursor was created: this page and the page of the cursor
    /// may not be adjacent.
    pub board_changed: bool,
    /// Cursor of the previous page.
    pub before: String,
    /// Cursor of the next page.
    pub after: String,
}

/// A row after a head.
#[derive(Clone, Debug, PartialEq)]
pub enum BoardRow {
    Entry(BoardEntryView),
    Absent(MissingPlayer),
    Standing(StandingView),
    PositionFor(PositionForView),
}

impl BoardRow {
    /// A player on the board.
    pub fn entry(&self) -> Option<&BoardEntryView> {
        match self {
            BoardRow::Entry(entry) => Some(entry),
            _ => None,
        }
    }
}

/// Position and score of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EntryScore {
    /// From 1, best first; no two players share one.
    pub position: u64,
    /// Equal scores share the best position, and the following positions are skipped: 1 2 2 4.
    pub competition: u64,
    /// Equal scores share a position, and no position is skipped: 1 2 2 3.
    pub dense: u64,
    /// In its unit: clq1 in points per second, elo as rating, time in seconds, clq2 and points
    /// unchanged.
    pub score: f64,
    /// The integer by which the board is ordered: clq1 in thousandths of a point, time in ms;
    /// for elo the bits, in order.
    pub raw_score: i64,
    /// The time when the score was reached, Unix ms.
    pub reached_ms: i64,
}

/// A player on a board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BoardEntryView {
    /// The number of the player; it never changes.
    pub player_key: u32,
    /// Normalised: without colour codes.
    pub name: String,
    /// As a server sent it.
    pub display: String,
    #[serde(flatten)]
    pub at: EntryScore,
}

/// A requested player who is not on the board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MissingPlayer {
    /// The number of the player; `null` if no player of this name is known in the scope.
    pub player_key: Option<u32>,
    /// The name.
    pub name: String,
}

/// A player's entry on one board.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StandingView {
    /// The ranking.
    pub ranking: Ranking,
    /// Players on the board.
    pub size: u64,
    /// The player's position and score; `null` if the player is not on the board.
    pub entry: Option<EntryScore>,
    /// The share of the other players with a worse score, 0 to 100.
    pub percentile: Option<f64>,
}

/// The position that a score would have now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PositionForView {
    /// The score, in its unit.
    pub score: f64,
    /// From 1, best first; no two players share one.
    pub position: u64,
    /// Equal scores share the best position, and the following positions are skipped: 1 2 2 4.
    pub competition: u64,
    /// Equal scores share a position, and no position is skipped: 1 2 2 3.
    pub dense: u64,
}

/// One player on the boards of several rankings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StandingsView {
    /// Whose players: `server:URL`, `game:NAME` or `tag:NAME`.
    #[schema(value_type = String)]
    pub scope: Scope,
    #[serde(flatten)]
    pub window: WindowView,
    /// The number of the player; it never changes.
    pub player_key: u32,
    /// Normalised: without colour codes.
    pub name: String,
    /// As a server sent it.
    pub display: String,
    /// One for each ranking.
    pub standings: Vec<StandingView>,
}

/// The head of a fused list; the players follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FusedHead {
    /// Whose players: `server:URL`, `game:NAME` or `tag:NAME`.
    #[schema(value_type = String)]
    pub scope: Scope,
    #[serde(flatten)]
    pub window: WindowView,
    /// As in the query.
    pub k: f64,
    /// The rankings, with their weights.
    pub rankings: Vec<FusedRanking>,
}

/// A ranking of a fused list.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FusedRanking {
    /// The ranking.
    pub ranking: Ranking,
    /// Its weight.
    pub weight: f64,
    /// Players on the board of this ranking.
    pub size: u64,
}

/// A player of a fused list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FusedView {
    /// The position in the whole list; `null` if single players were requested.
    pub position: Option<u64>,
    /// The number of the player; it never changes.
    pub player_key: u32,
    /// Normalised: without colour codes.
    pub name: String,
    /// As a server sent it.
    pub display: String,
    /// The sum of `weight / (k + position)`.
    pub score: f64,
    /// The player's position on each board that contains the player.
    pub positions: BTreeMap<Ranking, u32>,
}

/// A fused list.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedAnswer {
    pub head: FusedHead,
    pub players: Vec<FusedView>,
}

/// The answer to a query of one board.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardAnswer {
    pub head: BoardHead,
    pub rows: Vec<BoardRow>,
}
