//! What a restore from the archive reads in addition to [`archive`](super::archive).

use super::archive::ServerArchive;
use super::row::Ranking;
use crate::model::keys::{PlayerKey, ServerKey, WeekKey};

/// Most weeks that may be open: the running one, and one that has ended and is still being closed.
pub const OPEN_WEEKS_MAX: usize = 2;

/// Properties of the archive as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveFacts {
    /// Identifies the state that filled the archive.
    pub state_id: Option<u64>,
    /// In order of key.
    pub weeks: Vec<ArchivedWeek>,
    /// The largest keys in any table, 0 if there is none.
    pub last_keys: LastKeys,
    /// When totals were last published, Unix ms.
    pub published_ms: Option<i64>,
    /// When a server was last scanned, Unix ms.
    pub last_scan_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastKeys {
    pub game: u32,
    pub map: u32,
    pub player: u32,
    pub server: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedWeek {
    pub week: WeekKey,
    pub start_ms: i64,
    pub end_ms: i64,
}

/// A server without its list.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchivedServer {
    pub server: ServerArchive,
    /// Players in its last list.
    pub players_listed: u64,
    /// When a row of the server last changed, Unix ms. Rows may be newer than the server's values.
    pub last_row_ms: Option<i64>,
}

/// A server in a week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedServerWeek {
    pub server: ServerKey,
    pub rank: Option<u32>,
    pub closed: bool,
    /// Players were on the server in the week.
    pub has_content: bool,
}

/// A row of `best_position`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedBest {
    pub server: ServerKey,
    pub player: PlayerKey,
    pub ranking: Ranking,
    pub position: u32,
    pub week: WeekKey,
}

/// The result of a closed week for a player on a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArchivedResult {
    pub server: ServerKey,
    pub player: PlayerKey,
    /// In the order of [`Ranking::WITH_BEST_POSITIONS`]; `None`: not ranked.
    pub positions: [Option<u32>; 3],
    pub elo: f64,
}

/// The published rating of a player in a scope and a week.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRating {
    pub player: PlayerKey,
    pub elo: f64,
    pub at_ms: i64,
}

/// A row of the archive whose values cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{table} {key}: {why}")]
pub struct RejectedRow {
    pub table: &'static str,
    /// The primary key: `week=2968 server=7 player=12`.
    pub key: String,
    pub why: String,
}
