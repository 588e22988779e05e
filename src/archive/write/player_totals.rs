//! Keeps the totals of players equal to the sums of their rows on all servers. The database computes
//! them from the rows that the same transaction has written, so repeating it changes nothing.

use std::collections::BTreeSet;

use super::{OperationContext, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::sql::in_group;
use crate::model::PlayerKey;

/// Players in one statement. MariaDB joins a temporary table for a list of 1,000 or more, which takes
/// twice as long.
const PLAYERS_MAX: usize = 400;

const COLUMNS: &str = "player, week, servers, time_ms, time_est_ms, points, points_est, last_seen_ms";

const SUMS: &str = "COUNT(*), SUM(pw.time_ms), SUM(pw.time_est_ms), SUM(pw.points), ROUND(SUM(pw.points_est), 3)";

impl Archive {
    /// Computes totals of a week again, from rows that were written or deleted. Returns the number
    /// of written rows.
    pub(super) async fn write_player_totals(
        &mut self,
        (week, week_start_ms): (u32, i64),
        written: &BTreeSet<u32>,
        deleted: &BTreeSet<u32>,
    ) -> Result<u64, TransactionError> {
        self.doing = "player_total";
        let players: Vec<u32> = written.union(deleted).copied().collect();
        for players in players.chunks(PLAYERS_MAX) {
            // The key that begins with the player: those that begin with the week are as long as
            // the week.
            let sums = format!(
                "REPLACE INTO player_total ({COLUMNS}) SELECT pw.player, {week}, {SUMS}, \
                 {week_start_ms} + MAX(pw.time_reached_after_ms) \
                 FROM player_week pw FORCE INDEX (player_week_by_player) WHERE {} GROUP BY pw.player",
                in_group(("pw.week", week), "pw.player", players)
            );
            self.execute(&sums).await.doing("player_total")?;
        }
        let deleted: Vec<u32> = deleted.iter().copied().collect();
        for deleted in deleted.chunks(PLAYERS_MAX) {
            let delete = format!(
                "DELETE FROM player_total WHERE {} AND NOT EXISTS (SELECT 1 FROM player_week pw \
                 WHERE pw.week = player_total.week AND pw.player = player_total.player)",
                in_group(("week", week), "player", deleted)
            );
            self.execute(&delete).await.doing("player_total")?;
        }
        Ok(written.len() as u64)
    }

    /// Adds the totals of a player to those of another one, whose rows are written: in weeks
    /// that still have rows they are computed from these.
    pub(super) async fn merge_player_totals(
        &mut self,
        player: PlayerKey,
        into: PlayerKey,
    ) -> Result<(), TransactionError> {
        self.doing = "player_total";
        let add = format!(
            "INSERT INTO player_total ({COLUMNS}) SELECT {into}, old.week, old.servers, old.time_ms, old.time_est_ms, \
             old.points, old.points_est, old.last_seen_ms FROM player_total old WHERE old.player = {player} \
             ON DUPLICATE KEY UPDATE servers = GREATEST(player_total.servers, VALUES(servers)), \
             time_ms = player_total.time_ms + VALUES(time_ms), time_est_ms = player_total.time_est_ms + VALUES(time_est_ms), \
             points = player_total.points + VALUES(points), points_est = player_total.points_est + VALUES(points_est), \
             last_seen_ms = GREATEST(COALESCE(player_total.last_seen_ms, VALUES(last_seen_ms)), \
             COALESCE(VALUES(last_seen_ms), player_total.last_seen_ms))"
        );
        self.execute(&add).await.doing("player_total")?;
        let sums = format!(
            "REPLACE INTO player_total ({COLUMNS}) SELECT pw.player, pw.week, {SUMS}, \
             MAX(w.start_ms + pw.time_reached_after_ms) \
             FROM player_week pw JOIN week w ON w.week = pw.week WHERE pw.player = {into} GROUP BY pw.player, pw.week"
        );
        self.execute(&sums).await.doing("player_total")
    }
}

/// The players of some rows, from their literals.
pub(super) fn players_of<'k>(keys: impl IntoIterator<Item = &'k Vec<String>>) -> BTreeSet<u32> {
    keys.into_iter().filter_map(|key| key.first()?.parse().ok()).collect()
}
