//! Writes the totals of all servers, games and tags. The database computes those of hours and days from the values of
//! ten minutes, and those of tags from the servers, so that repeating it changes nothing.

use std::ops::RangeInclusive;

use super::tables::{ONLINE_TOTAL, SITE_TOTAL};
use super::{OperationContext, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::sql::comma_separated;
use crate::model::calendar::{HOUR_MS, MINUTE_MS};
use crate::model::top_board::SiteTotals;

/// Time between two values of the online totals.
const ONLINE_STEP_MS: i64 = 10 * MINUTE_MS;

/// All games together.
const ALL_GAMES: u32 = 0;

impl Archive {
    pub(super) async fn upsert_site_totals(&mut self, totals: &SiteTotals) -> Result<u64, TransactionError> {
        let mut site = self.upsert(&SITE_TOTAL);
        site.row(|row| {
            row.uint(1_u32).int(totals.now_ms).uint(totals.players_known).uint(totals.servers);
            row.uint(totals.servers_online).uint(totals.servers_greylisted);
            for servers in totals.servers_by_class {
                row.uint(servers);
            }
        });
        // The value of a slot is that of the last publication within its ten minutes.
        let at_ms = totals.now_ms - totals.now_ms.rem_euclid(ONLINE_STEP_MS);
        let all = totals.online.iter().fold((0_u64, 0_u64), |(players, servers), of_game| {
            (players + u64::from(of_game.players), servers + u64::from(of_game.servers))
        });
        let games = totals.online.iter().map(|it| (it.game.0, (it.players.into(), it.servers.into())));
        let mut online = self.upsert(&ONLINE_TOTAL);
        for (game, (players, servers)) in [(ALL_GAMES, all)].into_iter().chain(games) {
            online.row(|row| _ = row.uint(game).int(at_ms).uint(players).uint(servers));
        }
        let rows = self.execute_upsert(site).await? + self.execute_upsert(online).await?;
        // A game whose last server has gone offline since the publication before has no value any more.
        let games = comma_separated([ALL_GAMES].into_iter().chain(totals.online.iter().map(|it| it.game.0)));
        let offline = format!("DELETE FROM {} WHERE at_ms = {at_ms} AND game NOT IN ({games})", ONLINE_TOTAL.name);
        self.execute(offline).await.doing(ONLINE_TOTAL.name)?;
        let hour_ms = totals.now_ms - totals.now_ms.rem_euclid(HOUR_MS);
        let now_ms = totals.now_ms;
        self.write_online_means(("online_hour", hour_ms), "online_total", "MAX(players)", hour_ms..=now_ms).await?;
        // In some time zones a day begins within an hour.
        let day_ms = totals.day_start_ms;
        let hours = day_ms - day_ms.rem_euclid(HOUR_MS)..=now_ms;
        self.write_online_means(("online_day", day_ms), "online_hour", "MAX(players_max)", hours).await?;
        let known = format!(
            "UPDATE online_day SET players_known = {} WHERE game = {ALL_GAMES} AND at_ms = {}",
            totals.players_known, totals.day_start_ms
        );
        self.execute(known).await.doing("online_day")?;
        self.write_tag_totals().await?;
        Ok(rows)
    }

    /// Computes the means of an hour or a day that has not ended, from the values of a time range. A game without online
    /// servers has no value, which is zero players.
    async fn write_online_means(
        &mut self,
        (table, start_ms): (&'static str, i64),
        source: &str,
        players_max: &str,
        range: RangeInclusive<i64>,
    ) -> Result<(), TransactionError> {
        self.doing = table;
        // A clock that was ahead may have left later values.
        let within = format!("at_ms BETWEEN {} AND {}", range.start(), range.end());
        let values = format!("(SELECT COUNT(*) FROM {source} WHERE game = {ALL_GAMES} AND {within})");
        let insert = format!(
            "INSERT INTO {table} (game, at_ms, players, players_max, servers) \
             SELECT game, {start_ms}, SUM(players) * 1e0 / {values}, {players_max}, SUM(servers) * 1e0 / {values} \
             FROM {source} WHERE {within} GROUP BY game \
             ON DUPLICATE KEY UPDATE players = VALUES(players), players_max = VALUES(players_max), servers = VALUES(servers)"
        );
        self.execute(insert).await.doing(table)?;
        let offline = format!(
            "DELETE FROM {table} WHERE at_ms = {start_ms} AND NOT EXISTS \
             (SELECT 1 FROM {source} s WHERE s.game = {table}.game AND s.{within})"
        );
        self.execute(offline).await.doing(table)
    }

    async fn write_tag_totals(&mut self) -> Result<(), TransactionError> {
        const TABLE: &str = "tag_total";
        self.doing = TABLE;
        let servers = "FROM server_tag st JOIN server s ON s.server = st.server WHERE s.removed = 0";
        let insert = format!(
            "INSERT INTO {TABLE} (tag, servers, servers_online, players) \
             SELECT st.tag, COUNT(*), SUM(s.online), SUM(s.players) {servers} GROUP BY st.tag \
             ON DUPLICATE KEY UPDATE servers = VALUES(servers), servers_online = VALUES(servers_online), \
             players = VALUES(players)"
        );
        self.execute(insert).await.doing(TABLE)?;
        let delete = format!("DELETE FROM {TABLE} WHERE NOT EXISTS (SELECT 1 {servers} AND st.tag = {TABLE}.tag)");
        self.execute(delete).await.doing(TABLE)
    }
}
