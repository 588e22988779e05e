//! Checksums of closed weeks. That of a server comes from the state, with its rows. That of a week is the XOR of them.

use super::{OperationContext, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::error::ArchiveError;
use crate::model::WeekKey;

/// The checksum of rows of `player_week`: as [`WeekChecksum`](crate::model::archive::WeekChecksum) computes it from the
/// state. It is in docs/database.md, too.
pub(in crate::archive) const OF_ROWS: &str = "BIT_XOR(CRC32(CONCAT_WS(',', week, server, player, measured_ms, starts, time_ms, \
     time_est_ms, points, CAST(FLOOR(points_est * 1000 + 0.5) AS SIGNED), CAST(FLOOR(elo * 1000 + 0.5) AS SIGNED), \
     elo_rounds, elo_rounds_sure, time_est_variance, time_connected_ms, time_connected_variance, points_est_variance, \
     clq1, clq2, IFNULL(clq1_position, 0), IFNULL(clq2_position, 0), IFNULL(elo_position, 0), \
     IFNULL(points_position, 0), IFNULL(time_position, 0))))";

/// The checksum of a week; NULL if it is closed on no server, or not on one with players.
pub(in crate::archive) fn of_week(week: WeekKey) -> String {
    format!(
        "SELECT IF(IFNULL(SUM(closed), 0) = 0 OR SUM(closed = 0 AND player_ms > 0) > 0, NULL, \
         BIT_XOR(IFNULL(checksum, 0))) FROM server_week \
         WHERE week = {week}"
    )
}

impl Archive {
    /// Computes the checksum of a week, after the rows of its servers are written.
    pub(in crate::archive) async fn write_week_checksum(&mut self, week: WeekKey) -> Result<(), ArchiveError> {
        let update = format!("UPDATE week SET checksum = ({}) WHERE week = {week}", of_week(week));
        self.run_fenced("week", &update).await?;
        Ok(())
    }

    /// Computes checksums from the rows, after rows of players were moved or deleted: the state may not have these weeks
    /// any more. `weeks`: weeks and servers.
    pub(super) async fn rewrite_checksums(&mut self, weeks: &[(u32, u32)]) -> Result<(), TransactionError> {
        for (week, server) in weeks {
            let update = format!(
                "UPDATE server_week SET checksum = (SELECT {OF_ROWS} FROM player_week WHERE week = {week} AND server = {server}) \
                 WHERE week = {week} AND server = {server} AND checksum IS NOT NULL"
            );
            self.execute(update).await.doing("server_week")?;
        }
        let mut weeks: Vec<u32> = weeks.iter().map(|(week, _)| *week).collect();
        weeks.dedup();
        for week in weeks {
            let sum = of_week(WeekKey(week));
            let update = format!("UPDATE week SET checksum = ({sum}) WHERE week = {week} AND checksum IS NOT NULL");
            self.execute(update).await.doing("week")?;
        }
        Ok(())
    }
}
