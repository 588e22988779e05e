//! Reads the rows of weeks, and best positions.

use super::fields::{BadValue, Fields};
use super::{Page, PageKey, Query};
use crate::archive::connect::Archive;
use crate::archive::error::ArchiveError;
use crate::model::archive::{BoardOrder, BoardPlace, MapWeekArchive, OrderBytes, PlayerWeekArchive};
use crate::model::restored::{ArchivedBest, ArchivedResult, ArchivedServerWeek, ArchivedWeek};
use crate::model::row::{TopTen, Uncertainty};
use crate::model::{MapKey, PlayerKey, Ranking, ServerKey, WeekKey};

/// More than the best positions of one player on one server.
const BEST_ROWS_MIN: usize = 10;

impl Archive {
    pub async fn read_server_weeks(
        &mut self,
        week: WeekKey,
        after: Option<PageKey>,
        most: usize,
    ) -> Result<Page<ArchivedServerWeek>, ArchiveError> {
        let columns = "server_rank, closed, player_ms > 0 OR clq1_players > 0 OR clq2_players > 0 OR elo_players > 0 OR \
                       points_players > 0 OR time_players > 0 AS has_content";
        let query = Query { table: "server_week", keys: &["server"], columns, week: Some(week) };
        let server_week = |[server, _]: PageKey, it: &mut Fields| {
            let (rank, closed, has_content) = (it.opt()?, it.bool()?, it.bool()?);
            Ok(ArchivedServerWeek { server: ServerKey(server), rank, closed, has_content })
        };
        self.page(&query, after, most, server_week).await
    }

    /// Rows of players in order of server and player.
    pub async fn read_player_weeks(
        &mut self,
        week: &ArchivedWeek,
        after: Option<PageKey>,
        most: usize,
    ) -> Result<Page<(ServerKey, PlayerWeekArchive)>, ArchiveError> {
        const COLUMNS: &str = "measured_ms, starts, time_ms, time_est_ms, points, points_est, elo, elo_rounds, \
            elo_rounds_sure, time_est_variance, time_connected_ms, time_connected_variance, points_est_variance, clq1, clq2, \
            clq1_order, clq2_order, elo_order, points_order, time_order, clq1_reached_after_ms, clq2_reached_after_ms, \
            elo_reached_after_ms, points_reached_after_ms, time_reached_after_ms, clq1_segments, clq2_games";
        let query =
            Query { table: "player_week", keys: &["server", "player"], columns: COLUMNS, week: Some(week.week) };
        let start_ms = week.start_ms;
        let row = |[server, player]: PageKey, it: &mut Fields| {
            Ok((ServerKey(server), player_week_of(PlayerKey(player), start_ms, it)?))
        };
        self.page(&query, after, most, row).await
    }

    /// Rows of maps in order of server and map.
    pub async fn read_map_weeks(
        &mut self,
        week: WeekKey,
        after: Option<PageKey>,
        most: usize,
    ) -> Result<Page<(ServerKey, MapWeekArchive)>, ArchiveError> {
        let columns = "played_ms, player_ms";
        let query = Query { table: "map_week", keys: &["server", "map"], columns, week: Some(week) };
        let row = |[server, map]: PageKey, it: &mut Fields| {
            let (played_ms, player_ms) = (it.get()?, it.get()?);
            Ok((ServerKey(server), MapWeekArchive { map: MapKey(map), played_ms, player_ms }))
        };
        self.page(&query, after, most, row).await
    }

    /// The results of a closed week, in order of server and player.
    pub async fn read_results(
        &mut self,
        week: WeekKey,
        after: Option<PageKey>,
        most: usize,
    ) -> Result<Page<ArchivedResult>, ArchiveError> {
        let columns = "clq1_order, clq2_order, elo_order, elo";
        let query = Query { table: "player_week", keys: &["server", "player"], columns, week: Some(week) };
        let result = |[server, player]: PageKey, it: &mut Fields| {
            let mut positions = [None; 3];
            for position in &mut positions {
                *position = it.opt::<Vec<u8>>()?.and_then(|order| Some(u32::from_be_bytes(order.try_into().ok()?)));
            }
            let elo = it.double()?;
            Ok(ArchivedResult { server: ServerKey(server), player: PlayerKey(player), positions, elo })
        };
        self.page(&query, after, most, result).await
    }

    /// Best positions in order of server and player, all of a player on a server in one page.
    pub async fn read_best(&mut self, after: Option<PageKey>, most: usize) -> Result<Page<ArchivedBest>, ArchiveError> {
        let query = Query {
            table: "best_position",
            keys: &["server", "player"],
            columns: "ranking, position, week",
            week: None,
        };
        let best = |[server, player]: PageKey, it: &mut Fields| {
            let ranking = Ranking::from_name(&it.get::<String>()?);
            let ranking = ranking.filter(|ranking| Ranking::WITH_BEST_POSITIONS.contains(ranking));
            let ranking = ranking.ok_or_else(|| it.bad("has a value that does not fit"))?;
            let position: u32 = it.get()?;
            if position == 0 {
                return Err(it.bad("is 0"));
            }
            let week = WeekKey(it.get()?);
            Ok(ArchivedBest { server: ServerKey(server), player: PlayerKey(player), ranking, position, week })
        };
        let mut page = self.page(&query, after, most.max(BEST_ROWS_MIN), best).await?;
        if let Some(last) = page.next {
            // The rest of this player's rows may be in the next page: it begins with this player.
            let before = |it: &ArchivedBest| [it.server.0, it.player.0] != last;
            let Some(kept) = page.rows.iter().rposition(before) else { return Ok(page) };
            page.rows.truncate(kept + 1);
            let ArchivedBest { server, player, .. } = page.rows[kept];
            page.next = Some([server.0, player.0]);
            let key = format!("server={} player={}", last[0], last[1]);
            page.rejected.retain(|row| row.key != key);
        }
        Ok(page)
    }
}

fn player_week_of(player: PlayerKey, start_ms: i64, it: &mut Fields) -> Result<PlayerWeekArchive, BadValue> {
    let mut row = PlayerWeekArchive {
        player,
        measured_ms: it.get()?,
        starts: it.get()?,
        time_ms: it.get()?,
        time_est_ms: it.get()?,
        points: it.get()?,
        points_est: it.double()?,
        elo: it.double()?,
        elo_rounds: it.get()?,
        elo_rounds_sure: it.get()?,
        uncertainty: Uncertainty {
            time_est_s2: it.get()?,
            connected_difference_ms: it.get::<i64>()?,
            time_connected_s2: it.get()?,
            points_est_thousandths: it.get()?,
        },
        clq1: it.get()?,
        clq2: it.get()?,
        places: [const { None }; 5],
        ten_best: None,
    };
    // The column is the time itself.
    row.uncertainty.connected_difference_ms =
        row.uncertainty.connected_difference_ms.saturating_sub_unsigned(row.time_est_ms);
    let mut orders = [const { None }; 5];
    for order in &mut orders {
        *order = it.opt::<Vec<u8>>()?;
    }
    for (place, order) in row.places.iter_mut().zip(orders) {
        let Some(after_ms) = it.opt::<u32>()? else { continue };
        // The order is determined by the values.
        let bytes: OrderBytes = order.into_iter().flatten().take(26).collect();
        *place = Some(BoardPlace { reached_ms: start_ms + i64::from(after_ms), order: BoardOrder::SortKey(bytes) });
    }
    let mut ten_best = [const { None }; 2];
    for ten in &mut ten_best {
        if let Some(bytes) = it.opt::<Vec<u8>>()? {
            let best = TopTen::from_bytes(&bytes, start_ms);
            *ten = Some(best.ok_or_else(|| it.bad("has a value that does not fit"))?);
        }
    }
    if ten_best != [None, None] {
        row.ten_best = Some(Box::new(ten_best.map(Option::unwrap_or_default)));
    }
    Ok(row)
}
