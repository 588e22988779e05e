//! What a restore from the archive reads in addition to [`archive`](super::archive), and its result.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::archive::ServerArchive;
use super::row::Ranking;
use crate::model::keys::{PlayerKey, ServerKey, WeekKey};

/// Most rejected rows that are reported one by one; further ones are only counted.
pub const REJECTED_LISTED_MAX: usize = 20;

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

/// What was restored from the archive, and what could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestoreReport {
    pub games: u64,
    pub maps: u64,
    pub players: u64,
    pub servers: u64,
    pub tags: u64,
    pub series: u64,
    /// Labels of the weeks whose rows were restored, oldest first.
    pub weeks: Vec<String>,
    /// The weeks among them that are not closed.
    pub open_weeks: Vec<String>,
    /// Weeks that stay in the archive only.
    pub weeks_left: u64,
    pub player_rows: u64,
    pub map_rows: u64,
    /// Players on servers with best positions.
    pub best_players: u64,
    /// Number of ratings in a game or tag that are estimated: the mean of the player's ratings on
    /// its servers.
    pub ratings_estimated: u64,
    /// Number of ratings in a game or tag that are taken from the published boards.
    pub ratings_published: u64,
    /// Players that were on a server in its last list.
    pub players_online: u64,
    /// Greylisted servers: their rows of open weeks are not in the archive.
    pub servers_greylisted: u64,
    /// Rows whose values could not be restored.
    pub rejected: u64,
    /// The first of these, at most [`REJECTED_LISTED_MAX`].
    pub rejected_rows: Vec<String>,
}

impl RestoreReport {
    pub fn reject(&mut self, row: &RejectedRow) {
        self.rejected += 1;
        if self.rejected_rows.len() < REJECTED_LISTED_MAX {
            self.rejected_rows.push(row.to_string());
        }
    }
}
