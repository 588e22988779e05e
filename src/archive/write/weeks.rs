//! Writes the rows of servers in weeks.

use std::collections::{BTreeMap, BTreeSet};

use super::surplus::Keys;
use super::tables::{BEST, BEST_POSITION, MAP_WEEK, MAPS, PLAYER_WEEK, PLAYERS, SERVER_WEEK, WEEK};
use super::{OperationContext, PLAYERS_MAX, TransactionError};
use crate::archive::connect::Archive;
use crate::archive::error::StatementError;
use crate::archive::sql::{Values, in_group, literal};
use crate::model::archive::{
    BestArchive, BestPositionsByRanking, MapWeekArchive, PlayerKeyRange, PlayerWeekArchive, WeekArchive,
};
use crate::model::{GameKey, Ranking, WeekKey};

/// Servers in one statement.
const SERVERS_MAX: usize = 500;

/// `server_week.previous_rank` of the row `sw`, if `b` is the row of the week before.
pub(in crate::archive) const PREVIOUS_RANK: &str = "IF(sw.server_rank IS NULL, NULL, b.server_rank)";

impl Archive {
    pub(super) async fn upsert_weeks(&mut self, weeks: &[&WeekArchive]) -> Result<u64, TransactionError> {
        let mut week_rows = self.upsert(&WEEK);
        let mut server_weeks = self.upsert(&SERVER_WEEK);
        let mut players = self.upsert(&PLAYER_WEEK);
        let mut best = self.upsert(&BEST_POSITION);
        let mut maps = self.upsert(&MAP_WEEK);
        let mut by_week: BTreeMap<u32, BTreeMap<u32, &WeekArchive>> = BTreeMap::new();
        for job in weeks {
            by_week.entry(job.week.0).or_default().insert(job.server.0, job);
        }
        let mut games = BTreeMap::new();
        for (&week, servers) in &by_week {
            games.insert(week, self.games_of_servers(week, servers).await?);
        }
        for (&week, servers) in &by_week {
            let Some(first) = servers.values().next() else { continue };
            week_rows.row(|row| _ = row.uint(week).text(&first.label).int(first.week_start_ms).int(first.week_end_ms));
            for (server, job) in servers {
                let game = games[&week][server];
                server_weeks.row(|row| server_week_values(row, job, game));
                for it in &job.rows {
                    players.row(|row| player_week_values(row, job, it));
                }
                for it in &job.maps {
                    maps.row(|row| map_week_values(row, job, game, it));
                }
            }
        }
        // The primary key begins with the server, so one query reads all weeks.
        let mut by_server: BTreeMap<u32, BTreeMap<u32, BestPositionsByRanking>> = BTreeMap::new();
        for job in by_week.values().flat_map(|servers| servers.values()) {
            let all = self.with_earlier_best(job.server.0, &job.best).await.doing(BEST_POSITION.name)?;
            by_server.entry(job.server.0).or_default().extend(all);
        }
        for (&server, by_player) in &by_server {
            for (&player, three) in by_player {
                for (ranking, ordinal, position, week) in best_rows(three) {
                    best.row(|row| best_position_values(row, server, player, (ranking, ordinal, position, week)));
                }
            }
        }
        let mut rows = 0;
        let mut replaced = BTreeMap::new();
        for (&week, servers) in &by_week {
            rows += self.write_map_totals(week, servers, &games[&week]).await?;
            replaced.insert(week, self.replaced_rows(week, servers).await?);
        }
        for upsert in [week_rows, server_weeks, players, best, maps] {
            rows += self.execute_upsert(upsert).await?;
        }

        for (week, replaced) in replaced {
            let servers = &by_week[&week];
            self.write_previous_ranks(week, servers).await?;
            if servers.values().any(|job| !job.closed) {
                // A week that is reopened.
                let update = format!("UPDATE week SET checksum = NULL WHERE week = {week} AND checksum IS NOT NULL");
                self.execute(update).await.doing(WEEK.name)?;
            }
            rows += self.write_board_steps(week, servers).await?;
            let players_of =
                |server: u32| Keys::from_iter(servers[&server].rows.iter().map(|row| vec![row.player.to_string()]));
            let maps_of =
                |server: u32| Keys::from_iter(servers[&server].maps.iter().map(|row| vec![row.map.to_string()]));
            let with_other_players =
                replaced.servers_with_other_players.iter().map(|&server| (server, servers[&server])).collect();
            let mut deleted = BTreeSet::new();
            for (span, servers) in by_span(&with_other_players) {
                let among = player_range_condition(span);
                let surplus =
                    self.delete_surplus_where(&PLAYERS, Some(week), servers.into_iter(), &among, players_of).await?;
                deleted.extend(players_in(&surplus));
            }
            let with_other_maps = replaced.servers_with_other_maps.iter().copied();
            self.delete_surplus(&MAPS, Some(week), with_other_maps, maps_of).await?;
            rows += self.write_player_totals(week, servers, replaced, &deleted).await?;
        }
        for (&server, by_player) in &by_server {
            self.delete_surplus_positions(server, by_player).await?;
        }
        Ok(rows)
    }

    /// The games of servers in a week. The state knows only the game of today: a week that is closed in the archive keeps
    /// its own.
    async fn games_of_servers(
        &mut self,
        week: u32,
        jobs: &BTreeMap<u32, &WeekArchive>,
    ) -> Result<BTreeMap<u32, Option<GameKey>>, TransactionError> {
        self.doing = SERVER_WEEK.name;
        let mut games: BTreeMap<u32, Option<GameKey>> = jobs.iter().map(|(&server, job)| (server, job.game)).collect();
        let counted: Vec<u32> = jobs.iter().filter(|(_, job)| job.game.is_some()).map(|(&server, _)| server).collect();
        for servers in counted.chunks(SERVERS_MAX) {
            let select = format!(
                "SELECT sw.server, sw.game FROM server_week sw FORCE INDEX (PRIMARY) JOIN game g ON g.game = sw.game \
                 WHERE {} AND sw.closed = 1",
                in_group(("sw.week", week), "sw.server", servers)
            );
            let closed: Vec<(u32, u32)> = self.rows(&select).await.doing(SERVER_WEEK.name)?;
            games.extend(closed.into_iter().map(|(server, game)| (server, Some(GameKey(game)))));
        }
        Ok(games)
    }

    /// Sets the ranks of the week before, in this week and in the one after it.
    async fn write_previous_ranks(
        &mut self,
        week: u32,
        jobs: &BTreeMap<u32, &WeekArchive>,
    ) -> Result<(), TransactionError> {
        for servers in jobs.keys().collect::<Vec<_>>().chunks(SERVERS_MAX) {
            for week in [week, week + 1] {
                let update = format!(
                    "UPDATE server_week sw FORCE INDEX (PRIMARY) \
                     LEFT JOIN server_week b ON b.week = sw.week - 1 AND b.server = sw.server \
                     SET sw.previous_rank = {PREVIOUS_RANK} WHERE {}",
                    in_group(("sw.week", week), "sw.server", servers)
                );
                self.execute(update).await.doing(SERVER_WEEK.name)?;
            }
        }
        Ok(())
    }

    /// Deletes other best positions of these players on a server.
    pub(super) async fn delete_surplus_positions(
        &mut self,
        server: u32,
        by_player: &BTreeMap<u32, BestPositionsByRanking>,
    ) -> Result<(), TransactionError> {
        let best_of = |player: u32| {
            let mut keys = Keys::new();
            for (ranking, positions) in Ranking::WITH_BEST_POSITIONS.iter().zip(by_player[&player].iter()) {
                keys.extend((1..=positions.len()).map(|ordinal| vec![literal(ranking.name()), ordinal.to_string()]));
            }
            keys
        };
        self.delete_surplus(&BEST, Some(server), by_player.keys().copied(), best_of).await?;
        Ok(())
    }
}

impl Archive {
    /// The best positions of players on a server, with the positions of weeks that only the archive knows.
    pub(in crate::archive) async fn with_earlier_best(
        &mut self,
        server: u32,
        best: &[BestArchive],
    ) -> Result<Vec<(u32, BestPositionsByRanking)>, StatementError> {
        let since: BTreeMap<u32, WeekKey> = best.iter().filter_map(|it| Some((it.player.0, it.since?))).collect();
        let mut earlier: BTreeMap<u32, Vec<(String, u32, u32)>> = BTreeMap::new();
        for players in since.keys().copied().collect::<Vec<_>>().chunks(PLAYERS_MAX) {
            let condition = in_group(("server", server), "player", players);
            let select = format!(
                "SELECT player, ranking, position, week FROM best_position FORCE INDEX (PRIMARY) WHERE {condition}"
            );
            for (player, ranking, position, week) in self.rows::<(u32, String, u32, u32)>(&select).await? {
                if week < since[&player].0 {
                    earlier.entry(player).or_default().push((ranking, position, week));
                }
            }
        }
        let merged = |it: &BestArchive| {
            let mut three = it.three.clone();
            for (ranking, position, week) in earlier.get(&it.player.0).into_iter().flatten() {
                let which = Ranking::WITH_BEST_POSITIONS.iter().position(|it| it.name() == ranking);
                // Of merged players the state may know some of these weeks.
                let is_known = |which: usize| three[which].iter().any(|(_, of)| of.0 == *week);
                if let Some(which) = which.filter(|which| !is_known(*which)) {
                    three[which].push((*position, WeekKey(*week)));
                }
            }
            for places in &mut three {
                places.sort_unstable();
                places.truncate(3);
            }
            (it.player.0, three)
        };
        Ok(best.iter().map(merged).collect())
    }
}

/// The values of a row of `server_week`.
pub(in crate::archive) fn server_week_values(row: &mut Values<'_>, job: &WeekArchive, game: Option<GameKey>) {
    row.uint(job.week.0).uint(job.server.0).opt_uint(game.map(|game| game.0));
    row.opt_uint(job.server_rank).uint(job.player_ms).bool(job.closed);
    for size in job.board_sizes {
        row.uint(size);
    }
    row.opt_uint(job.checksum);
}

/// The values of a row of `player_week`.
pub(in crate::archive) fn player_week_values(row: &mut Values<'_>, job: &WeekArchive, it: &PlayerWeekArchive) {
    row.uint(job.week.0).uint(job.server.0).uint(it.player.0);
    row.uint(it.measured_ms).uint(it.starts).uint(it.time_ms).uint(it.time_est_ms);
    row.int(it.points).double(it.points_est);
    row.double(it.elo).uint(it.elo_rounds).uint(it.elo_rounds_sure);
    row.uint(it.uncertainty.time_est_s2).uint(it.time_connected_ms()).uint(it.uncertainty.time_connected_s2);
    row.uint(it.uncertainty.points_est_thousandths).uint(it.clq1).uint(it.clq2);
    for place in &it.places {
        row.opt_bytes(place.as_ref().map(|place| place.order.to_bytes()).as_deref());
    }
    for place in &it.places {
        row.opt_uint(place.as_ref().map(|place| after_ms(place.reached_ms, job.week_start_ms)));
    }
    for at in 0..2 {
        let ten = it.ten_best.as_ref().map(|ten_best| &ten_best[at]).filter(|ten| !ten.is_empty());
        row.opt_bytes(ten.map(|ten| ten.to_bytes(job.week_start_ms)).as_deref());
    }
}

/// The values of a row of `map_week`.
pub(in crate::archive) fn map_week_values(
    row: &mut Values<'_>,
    job: &WeekArchive,
    game: Option<GameKey>,
    it: &MapWeekArchive,
) {
    row.uint(job.week.0).uint(job.server.0).uint(it.map.0).opt_uint(game.map(|game| game.0));
    row.uint(it.played_ms).uint(it.player_ms);
}

/// Ranking, ordinal, position and week of a best position.
type BestRow = (Ranking, u32, u32, WeekKey);

/// The rows of `best_position` of one player.
pub(in crate::archive) fn best_rows(three: &BestPositionsByRanking) -> impl Iterator<Item = BestRow> {
    let by_ranking = Ranking::WITH_BEST_POSITIONS.iter().zip(three);
    by_ranking.flat_map(|(&ranking, positions)| {
        (1_u32..).zip(positions).map(move |(ordinal, &(position, week))| (ranking, ordinal, position, week))
    })
}

/// The values of a row of `best_position`.
pub(in crate::archive) fn best_position_values(
    row: &mut Values<'_>,
    server: u32,
    player: u32,
    (ranking, ordinal, position, week): BestRow,
) {
    row.uint(server).uint(player).text(ranking.name()).uint(ordinal).uint(position).uint(week.0);
}

/// The players of some rows, parsed from literals.
fn players_in<'k>(keys: impl IntoIterator<Item = &'k Vec<String>>) -> BTreeSet<u32> {
    keys.into_iter().filter_map(|key| key.first()?.parse().ok()).collect()
}

/// Milliseconds from the start of a week to a time in it.
fn after_ms(at_ms: i64, week_start_ms: i64) -> u32 {
    u32::try_from(at_ms.saturating_sub(week_start_ms).max(0)).unwrap_or(u32::MAX)
}

/// Groups the servers of a week by the span of players in their jobs. Nearly always every
/// job contains all players.
pub(super) fn by_span(servers: &BTreeMap<u32, &WeekArchive>) -> Vec<(PlayerKeyRange, Vec<u32>)> {
    let mut spans: Vec<(PlayerKeyRange, Vec<u32>)> = Vec::new();
    for (&server, job) in servers {
        match spans.iter_mut().find(|(span, _)| *span == job.span) {
            Some((_, servers)) => servers.push(server),
            None => spans.push((job.span, vec![server])),
        }
    }
    spans
}

/// The condition that selects rows of these players.
pub(in crate::archive) fn player_range_condition(span: PlayerKeyRange) -> String {
    let after = span.after.map(|player| format!("player > {player} AND "));
    let through = span.through.map(|player| format!("player <= {player} AND "));
    after.into_iter().chain(through).collect()
}
