//! Keeps the totals of players equal to the sums of their rows on all servers.
//!
//! Most players have no rows other than those of this transaction. Their rows are added up here.
//! The database computes all other totals from the rows that this transaction has written, which
//! takes three times as long. Those of players on many servers change by the difference ([`kept_totals`](super::kept_totals)).
//! Repeating any of these methods changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::replaced_rows::ReplacedRows;
use super::sums::Sums;
use super::tables::PLAYER_TOTAL;
use super::{OperationContext, PLAYERS_MAX, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::sql::in_group;
use crate::model::PlayerKey;
use crate::model::archive::WeekArchive;

const SUMS: &str = "COUNT(*), SUM(pw.time_ms), SUM(pw.time_est_ms), SUM(pw.points), ROUND(SUM(pw.points_est), 3), \
                    SUM(pw.elo_rounds), SUM(pw.elo_rounds_sure), SUM(pw.time_est_variance)";

/// A server that invents points can make the variance of one row the largest that its column holds; the sum is limited to
/// the same value.
pub(in crate::archive) const SUM_OF_POINTS_VARIANCES: &str = "LEAST(SUM(points_est_variance), 18446744073709551615)";

impl Archive {
    /// Computes totals of a week again, from the rows of servers that were written, and those of
    /// players that were deleted. Returns the number of written rows.
    pub(super) async fn write_player_totals(
        &mut self,
        week: u32,
        jobs: &BTreeMap<u32, &WeekArchive>,
        replaced: ReplacedRows,
        deleted: &BTreeSet<u32>,
    ) -> Result<u64, TransactionError> {
        self.doing = "player_total";
        let ReplacedRows { players_with_other_rows, players_on_many_servers, kept_totals, .. } = replaced;
        let mut sums: BTreeMap<u32, Sums> = kept_totals;
        for row in jobs.values().flat_map(|job| &job.rows) {
            sums.entry(row.player.0).or_default().add(&Sums::of_row(row));
        }
        let written = sums.len() as u64;
        let summed_by_database: BTreeSet<u32> = players_with_other_rows.union(deleted).copied().collect();
        let mut totals = self.upsert(&PLAYER_TOTAL);
        for (player, sums) in sums.iter().filter(|(player, _)| !summed_by_database.contains(player)) {
            totals.row(|row| sums.values(row, *player, week));
        }
        self.execute_upsert(totals).await?;

        let columns = PLAYER_TOTAL.columns.join(", ");
        for players in summed_by_database.iter().copied().collect::<Vec<_>>().chunks(PLAYERS_MAX) {
            let sums = format!(
                "REPLACE INTO player_total ({columns}) SELECT pw.player, {week}, {SUMS}, {SUM_OF_POINTS_VARIANCES}, \
                 (SELECT start_ms FROM week WHERE week = {week}) + MAX(pw.time_reached_after_ms) \
                 FROM player_week pw FORCE INDEX (player_week_by_player) WHERE {} GROUP BY pw.player",
                in_group(("pw.week", week), "pw.player", players)
            );
            self.execute(&sums).await.doing("player_total")?;
        }
        self.computed_totals.add(week, &players_on_many_servers);
        let deleted: Vec<u32> = deleted.iter().copied().collect();
        for deleted in deleted.chunks(PLAYERS_MAX) {
            let delete = format!(
                "DELETE FROM player_total WHERE {} AND NOT EXISTS (SELECT 1 FROM player_week pw \
                 WHERE pw.week = player_total.week AND pw.player = player_total.player)",
                in_group(("week", week), "player", deleted)
            );
            self.execute(&delete).await.doing("player_total")?;
        }
        Ok(written)
    }

    /// Adds the totals of a player to those of another one, after the rows are moved. In closed weeks that have all their
    /// rows, the totals are computed from the rows. Open weeks are written again by their jobs. Without a checksum, rows
    /// of a closed week may have been deleted because of their age.
    pub(super) async fn merge_player_totals(
        &mut self,
        player: PlayerKey,
        into: PlayerKey,
    ) -> Result<(), TransactionError> {
        self.doing = "player_total";
        let columns = PLAYER_TOTAL.columns.join(", ");
        let add = format!(
            "INSERT INTO player_total ({columns}) SELECT {into}, old.week, old.servers, old.time_ms, old.time_est_ms, \
             old.points, old.points_est, old.elo_rounds, old.elo_rounds_sure, old.time_est_variance, \
             old.points_est_variance, old.last_seen_ms FROM player_total old WHERE old.player = {player} \
             ON DUPLICATE KEY UPDATE servers = GREATEST(player_total.servers, VALUES(servers)), \
             time_ms = player_total.time_ms + VALUES(time_ms), time_est_ms = player_total.time_est_ms + VALUES(time_est_ms), \
             points = player_total.points + VALUES(points), points_est = player_total.points_est + VALUES(points_est), \
             elo_rounds = player_total.elo_rounds + VALUES(elo_rounds), \
             elo_rounds_sure = player_total.elo_rounds_sure + VALUES(elo_rounds_sure), \
             time_est_variance = player_total.time_est_variance + VALUES(time_est_variance), \
             points_est_variance = LEAST(CAST(player_total.points_est_variance AS DECIMAL(30)) + VALUES(points_est_variance), \
             {}), \
             last_seen_ms = GREATEST(COALESCE(player_total.last_seen_ms, VALUES(last_seen_ms)), \
             COALESCE(VALUES(last_seen_ms), player_total.last_seen_ms))",
            u64::MAX
        );
        self.execute(&add).await.doing("player_total")?;
        let sums = format!(
            "REPLACE INTO player_total ({columns}) SELECT pw.player, pw.week, {SUMS}, {SUM_OF_POINTS_VARIANCES}, \
             MAX(w.start_ms + pw.time_reached_after_ms) \
             FROM player_week pw JOIN week w ON w.week = pw.week \
             LEFT JOIN server_week sw ON sw.week = pw.week AND sw.server = pw.server \
             WHERE pw.player = {into} GROUP BY pw.player, pw.week HAVING COUNT(sw.checksum) = COUNT(*)"
        );
        self.execute(&sums).await.doing("player_total")
    }
}
