//! Applies removed players to the tables: rows of a merged player are moved to the target
//! player, rows of a forgotten player are deleted.
//!
//! Rows of weeks that are still in the state are rewritten later by those weeks' jobs.
//! For all earlier weeks this change is final.

use std::collections::BTreeMap;

use super::tables::BEST_POSITION;
use super::{OperationContext, TransactionError};
use crate::archive::connect::Archive;
use crate::model::row::BestPositions;
use crate::model::{PlayerKey, Ranking, WeekKey};

impl Archive {
    /// Returns the number of rows written. Repeating it changes nothing.
    pub(super) async fn apply_player_removal(
        &mut self,
        player: PlayerKey,
        into: Option<PlayerKey>,
    ) -> Result<u64, TransactionError> {
        self.doing = "player";
        let mut rows = 0;
        let select =
            format!("SELECT DISTINCT week, server FROM player_week WHERE player = {player} ORDER BY week, server");
        let weeks: Vec<(u32, u32)> = self.rows(&select).await.doing("player_week")?;
        let listed = match into {
            Some(into) => {
                rows += self.merge_best_positions(player, into).await?;
                // If both have a row in one week on one server, the target's row is kept.
                let weeks = format!("UPDATE IGNORE player_week SET player = {into} WHERE player = {player}");
                self.execute(&weeks).await.doing("player_week")?;
                self.merge_player_totals(player, into).await?;
                let sessions = format!("UPDATE IGNORE player_session SET player = {into} WHERE player = {player}");
                self.execute(&sessions).await.doing("player_session")?;
                // Boards of windows that the state does not keep are never published again. If both are on one, so is the
                // target twice: a gap would look like a missing row.
                let boards = format!("UPDATE top_board_row SET player = {into} WHERE player = {player}");
                self.execute(&boards).await.doing("top_board_row")?;
                format!("player = {into}")
            }
            None => "name = '', display = '', player = NULL".to_owned(),
        };
        for table in ["player_week", "player_total", "best_position", "player_word", "top_board_row", "player_session"]
        {
            self.execute(&format!("DELETE FROM {table} WHERE player = {player}")).await.doing(table)?;
        }
        self.rewrite_checksums(&weeks).await?;
        let listed = format!("UPDATE online_player SET {listed} WHERE player = {player}");
        self.execute(&listed).await.doing("online_player")?;
        self.execute(&format!("DELETE FROM player WHERE player = {player}")).await.doing("player")?;
        Ok(rows)
    }

    async fn merge_best_positions(&mut self, player: PlayerKey, into: PlayerKey) -> Result<u64, TransactionError> {
        let select = format!(
            "SELECT b.server, b.player, b.ranking, b.position, b.week FROM best_position b \
             JOIN (SELECT DISTINCT server FROM best_position WHERE player = {player}) s ON s.server = b.server \
             WHERE b.player IN ({player}, {into})"
        );
        let found: Vec<(u32, u32, String, u32, u32)> = self.rows(&select).await.doing("best_position")?;
        let mut by_server: BTreeMap<u32, BTreeMap<u32, BestPositions>> = BTreeMap::new();
        for (server, player, ranking, position, week) in found {
            let which = Ranking::WITH_BEST_POSITIONS.iter().position(|it| it.name() == ranking);
            let Some(which) = which else { continue };
            by_server.entry(server).or_default().entry(player).or_default().set(which, Some(position), WeekKey(week));
        }
        let mut upsert = self.upsert(&BEST_POSITION);
        for (server, mut by_player) in by_server {
            let mut best = by_player.remove(&into.0).unwrap_or_default();
            by_player.values().for_each(|other| best.merge(other));
            for (ranking, positions) in Ranking::WITH_BEST_POSITIONS.iter().zip(best.top_three()) {
                for (ordinal, (position, week)) in (1_u32..).zip(positions) {
                    upsert.row(|row| {
                        row.uint(server).uint(into.0).text(ranking.name()).uint(ordinal).uint(position).uint(week.0);
                    });
                }
            }
        }
        self.execute_upsert(upsert).await
    }
}
