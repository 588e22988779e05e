//! The result of a restore from the archive.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::restored::RejectedRow;

/// Most rejected rows that are reported one by one; further ones are only counted.
pub const REJECTED_LISTED_MAX: usize = 20;

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
