//! Keeps the totals of maps equal to the sums of their rows. The rows that a transaction replaces
//! are read first, and the totals change by the difference. So a repeated transaction changes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::replaced_rows::ReplacedRows;
use super::tables::{BOARD_STEP, MAP_WEEK, PLAYER_TOTAL, PLAYER_WEEK, SERVER_WEEK};
use super::{OperationContext, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::sql::{in_group, page_end, page_rows};
use crate::model::archive::WeekArchive;
use crate::model::{GameKey, WeekKey};

/// Servers in one SELECT: some thousand rows.
const SERVERS_MAX: usize = 500;

/// Totals in one statement.
const TOTALS_MAX: usize = 2_000;

/// All games together.
const ALL_GAMES: u32 = 0;

/// Changes of played_ms, player_ms and servers.
type Change = [i64; 3];

impl Archive {
    /// Adds the difference that the jobs make to the totals of a week. Call it before their rows
    /// are written. `games`: those of the servers. Returns the number of written rows.
    pub(super) async fn write_map_totals(
        &mut self,
        week: u32,
        jobs: &BTreeMap<u32, &WeekArchive>,
        games: &BTreeMap<u32, Option<GameKey>>,
    ) -> Result<u64, TransactionError> {
        let mut totals: BTreeMap<(u32, u32), Change> = BTreeMap::new();
        let mut count = |game: Option<u32>, map: u32, played_ms: i64, player_ms: i64, sign: i64| {
            let Some(game) = game else { return };
            for game in [game, ALL_GAMES] {
                let total = totals.entry((game, map)).or_default();
                for (sum, value) in total.iter_mut().zip([played_ms, player_ms, 1]) {
                    *sum += sign * value;
                }
            }
        };
        // Only the first chunk of a large week has maps.
        let jobs: Vec<(u32, &WeekArchive)> =
            jobs.iter().filter(|(_, job)| job.span.after.is_none()).map(|(&server, job)| (server, *job)).collect();
        for jobs in jobs.chunks(SERVERS_MAX) {
            self.doing = "map_week";
            let by_server: BTreeMap<u32, &WeekArchive> = jobs.iter().copied().collect();
            let select = format!(
                "SELECT server, map, game, played_ms, player_ms FROM map_week FORCE INDEX (PRIMARY) WHERE {}",
                in_group(("week", week), "server", by_server.keys())
            );
            let replaced: Vec<(u32, u32, Option<u32>, i64, i64)> = self.rows(&select).await.doing("map_week")?;
            for (server, map, game, played_ms, player_ms) in replaced {
                let job = by_server[&server];
                if job.is_complete || job.maps.iter().any(|row| row.map.0 == map) {
                    count(game, map, played_ms, player_ms, -1);
                }
            }
            for (server, job) in &by_server {
                let game = games[server].map(|game| game.0);
                for row in &job.maps {
                    let [played_ms, player_ms] =
                        [row.played_ms, row.player_ms].map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
                    count(game, row.map.0, played_ms, player_ms, 1);
                }
            }
        }
        totals.retain(|_, change| *change != Change::default());
        let rows = totals.len() as u64;
        let totals: Vec<((u32, u32), Change)> = totals.into_iter().collect();
        for totals in totals.chunks(TOTALS_MAX) {
            let mut insert =
                "INSERT INTO map_total (week, game, map, played_ms, player_ms, servers) VALUES ".to_owned();
            for (number, ((game, map), [played_ms, player_ms, servers])) in totals.iter().enumerate() {
                let comma = if number == 0 { "" } else { "," };
                let _ = write!(insert, "{comma}({week},{game},{map},{played_ms},{player_ms},{servers})");
            }
            insert.push_str(
                " ON DUPLICATE KEY UPDATE played_ms = played_ms + VALUES(played_ms), \
                 player_ms = player_ms + VALUES(player_ms), servers = servers + VALUES(servers)",
            );
            self.doing = "map_total";
            self.execute(&insert).await.doing("map_total")?;
        }
        Ok(rows)
    }

    /// Deletes what does not belong to a week: rows of servers that there are not, and totals of players without rows.
    /// Computes the totals of players who had such rows, and of maps, again. Returns the number of written rows. This is
    /// correct before and after the rows are written again, because each write changes the totals by its difference.
    pub(super) async fn rewrite_week_totals(&mut self, week: WeekKey) -> Result<u64, TransactionError> {
        self.doing = "server";
        let known: Vec<(u32,)> = self.rows("SELECT server FROM server").await.doing("server")?;
        let known: BTreeSet<u32> = known.into_iter().map(|(server,)| server).collect();
        let mut players: BTreeSet<u32> = BTreeSet::new();
        for table in [PLAYER_WEEK.name, MAP_WEEK.name, SERVER_WEEK.name, BOARD_STEP.name] {
            self.doing = table;
            // The servers are few, and found by steps in the primary key.
            let select = format!("SELECT DISTINCT server FROM {table} WHERE week = {week}");
            let found: Vec<(u32,)> = self.rows(&select).await.doing(table)?;
            let unknown = found.into_iter().filter(|(server,)| !known.contains(server));
            for (server,) in unknown.collect::<Vec<_>>() {
                if table == PLAYER_WEEK.name {
                    let select = format!("SELECT player FROM {table} WHERE week = {week} AND server = {server}");
                    players.extend(self.rows::<u32>(&select).await.doing(table)?);
                }
                let delete = format!("DELETE FROM {table} WHERE week = {week} AND server = {server}");
                self.execute(delete).await.doing(table)?;
            }
        }
        self.doing = PLAYER_TOTAL.name;
        let mut after = None;
        loop {
            let end = page_end(PLAYER_TOTAL.name, "player", after);
            let last = self.rows::<u64>(&end).await.doing(PLAYER_TOTAL.name)?.first().copied();
            let select = format!(
                "SELECT player FROM player_total WHERE {} AND week = {week} AND NOT EXISTS (SELECT 1 FROM player_week pw \
                 WHERE pw.week = player_total.week AND pw.player = player_total.player)",
                page_rows("player", after, last)
            );
            players.extend(self.rows::<u32>(&select).await.doing(PLAYER_TOTAL.name)?);
            after = last;
            if after.is_none() {
                break;
            }
        }
        self.write_player_totals(week.0, &BTreeMap::new(), ReplacedRows::default(), &players).await?;
        self.doing = "map_total";
        self.execute(&format!("DELETE FROM map_total WHERE week = {week}")).await.doing("map_total")?;
        for (game, group) in [("game", "game, map"), ("0", "map")] {
            let insert = format!(
                "INSERT INTO map_total (week, game, map, played_ms, player_ms, servers) \
                 SELECT week, {game}, map, SUM(played_ms), SUM(player_ms), COUNT(*) \
                 FROM map_week WHERE week = {week} AND game IS NOT NULL GROUP BY week, {group}"
            );
            self.execute(&insert).await.doing("map_total")?;
        }
        let count = format!("SELECT COUNT(*) FROM map_total WHERE week = {week}");
        let rows: Vec<(u64,)> = self.rows(&count).await.doing("map_total")?;
        Ok(rows.first().map_or(0, |(rows,)| *rows))
    }
}
