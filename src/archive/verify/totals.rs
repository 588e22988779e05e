//! Compares what the archive computes from its own rows, and what it has as a whole.

use std::ops::Range;

use super::{A_ROW, ExpectedRows, IN_LIST_MAX, RowDifference, Verification, compare};
use crate::archive::connect::Archive;
use crate::archive::error::ArchiveError;
use crate::archive::sql::{Table, literals, page_end, page_rows};
use crate::archive::write::checksums::of_week;
use crate::archive::write::player_totals::SUM_OF_POINTS_VARIANCES;
use crate::archive::write::tables::PLAYER_TOTAL;
use crate::model::WeekKey;
use crate::model::archive::ArchiveBounds;
use crate::model::calendar::week_label;

/// Numbers in `clq_number`: from 0.
const NUMBERS: u64 = 10_000;

/// Tables whose rows have a week or a time, and its column.
const DATED: [(&str, &str); 11] = [
    ("week", "week"),
    ("server_week", "week"),
    ("player_week", "week"),
    ("map_week", "week"),
    ("map_total", "week"),
    ("board_step", "week"),
    ("player_total", "week"),
    ("online_total", "at_ms"),
    ("online_hour", "at_ms"),
    ("online_day", "at_ms"),
    ("player_session", "end_ms"),
];

/// The checksum is written after the rest of the row.
const WEEK_WITH_CHECKSUM: Table =
    Table { name: "week", columns: &["week", "label", "start_ms", "end_ms", "checksum"], key_columns: 1 };

impl Archive {
    /// Compares the totals of players in a week with the rows in the database that they are sums of, and the row of
    /// the week. Both change in the same transaction, so each page of players is read in one of its own.
    pub async fn verify_player_totals(
        &mut self,
        week: WeekKey,
        span: Range<i64>,
    ) -> Result<Verification, ArchiveError> {
        let mut all = Verification::default();
        let mut expected = ExpectedRows::new(&WEEK_WITH_CHECKSUM);
        self.begin_reading().await?;
        // Those of servers are compared with the state.
        let checksum: Option<Option<u64>> = self.first("server_week", &of_week(week)).await?;
        let checksum = checksum.flatten().and_then(|checksum| u32::try_from(checksum).ok());
        expected.add(literals(|row| {
            row.uint(week.0).text(&week_label(week)).int(span.start).int(span.end).opt_uint(checksum);
        }));
        let found = self.read_rows(&WEEK_WITH_CHECKSUM, &format!("week = {week}")).await?;
        let has_rows =
            self.first::<u8>("player_week", &format!("SELECT 1 FROM player_week WHERE week = {week} LIMIT 1")).await?;
        if has_rows.is_some() || !found.is_empty() {
            compare(&expected, &found, &mut all);
        }
        self.end_reading().await?;
        let mut after = None;
        loop {
            self.begin_reading().await?;
            let last = self.first(PLAYER_TOTAL.name, &page_end(PLAYER_TOTAL.name, "player", after)).await?;
            self.compare_player_totals(week, span.start, &page_rows("player", after, last), &mut all).await?;
            self.end_reading().await?;
            after = last;
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// Compares the totals of the players that `players` selects.
    async fn compare_player_totals(
        &mut self,
        week: WeekKey,
        week_start_ms: i64,
        players: &str,
        all: &mut Verification,
    ) -> Result<(), ArchiveError> {
        // Sums of decimals differ by their order.
        let select = format!(
            "SELECT sums.*, total.servers, total.time_ms, total.time_est_ms, total.points, total.points_est, \
             total.elo_rounds, total.elo_rounds_sure, total.time_est_variance, total.points_est_variance, \
             total.last_seen_ms FROM (SELECT player, COUNT(*) AS servers, SUM(time_ms) AS time_ms, \
             SUM(time_est_ms) AS time_est_ms, SUM(points) AS points, ROUND(SUM(points_est), 3) AS points_est, \
             SUM(elo_rounds) AS elo_rounds, SUM(elo_rounds_sure) AS elo_rounds_sure, \
             SUM(time_est_variance) AS time_est_variance, {SUM_OF_POINTS_VARIANCES} AS points_est_variance, \
             {week_start_ms} + MAX(time_reached_after_ms) AS last_seen_ms \
             FROM player_week FORCE INDEX (player_week_by_player) WHERE {players} AND week = {week} GROUP BY player) AS sums \
             LEFT JOIN player_total AS total ON total.player = sums.player AND total.week = {week} \
             WHERE NOT (total.servers <=> sums.servers AND total.time_ms <=> sums.time_ms AND \
             total.time_est_ms <=> sums.time_est_ms AND total.points <=> sums.points AND \
             total.last_seen_ms <=> sums.last_seen_ms AND total.elo_rounds <=> sums.elo_rounds AND \
             total.elo_rounds_sure <=> sums.elo_rounds_sure AND \
             total.time_est_variance <=> sums.time_est_variance AND \
             total.points_est_variance <=> sums.points_est_variance AND \
             ABS(total.points_est - sums.points_est) < 0.0015) LIMIT {IN_LIST_MAX}"
        );
        let key = |player: &str| vec![("player", player.to_owned()), ("week", week.to_string())];
        for row in self.read(PLAYER_TOTAL.name, &select).await? {
            let (player, values) = row.split_first().expect("columns of the query");
            let (sums, total) = values.split_at(values.len() / 2);
            let difference = |column, expected: &str, found| RowDifference {
                column,
                expected: Some(expected.to_owned()),
                found,
                ..RowDifference::surplus(PLAYER_TOTAL.name, key(player))
            };
            if total[0] == "NULL" {
                all.differences.push(difference(None, A_ROW, None));
                continue;
            }
            let columns = PLAYER_TOTAL.columns[PLAYER_TOTAL.key_columns..].iter().zip(sums.iter().zip(total));
            let different = columns.filter(|(_, (sum, total))| sum != total);
            all.differences
                .extend(different.map(|(column, (sum, total))| difference(Some(*column), sum, Some(total.clone()))));
        }
        let select = format!(
            "SELECT player FROM player_total WHERE {players} AND week = {week} AND NOT EXISTS (SELECT 1 FROM player_week pw \
             WHERE pw.week = player_total.week AND pw.player = player_total.player) LIMIT {IN_LIST_MAX}"
        );
        let surplus = self.read(PLAYER_TOTAL.name, &select).await?;
        let surplus = surplus.iter().map(|row| RowDifference::surplus(PLAYER_TOTAL.name, key(&row[0])));
        all.differences.extend(surplus);
        Ok(())
    }

    /// Compares the totals of maps in a week with the rows in the database that they are sums of.
    /// Both change in the same transaction.
    pub async fn verify_map_totals(&mut self, week: WeekKey) -> Result<Verification, ArchiveError> {
        const TOTALS: Table = Table {
            name: "map_total",
            columns: &["week", "game", "map", "played_ms", "player_ms", "servers"],
            key_columns: 3,
        };
        self.begin_reading().await?;
        let mut expected = ExpectedRows::new(&TOTALS);
        for (game, group) in [("game", "game, map"), ("0", "map")] {
            let select = format!(
                "SELECT week, {game} AS game, map, SUM(played_ms), SUM(player_ms), COUNT(*) FROM map_week \
                 WHERE week = {week} AND game IS NOT NULL GROUP BY week, {group}"
            );
            self.read("map_week", &select).await?.into_iter().for_each(|row| expected.add(row));
        }
        let found = self.read_rows(&TOTALS, &format!("week = {week} AND servers <> 0")).await?;
        self.end_reading().await?;
        let mut all = Verification::default();
        compare(&expected, &found, &mut all);
        Ok(all)
    }

    /// Finds rows that are later than the state, and missing numbers of the schema.
    pub async fn verify_bounds(&mut self, bounds: &ArchiveBounds) -> Result<Verification, ArchiveError> {
        let mut all = Verification::default();
        for (table, column) in DATED {
            let newest = match column {
                "week" => bounds.weeks.map_or(bounds.now_week, |(_, newest)| newest.max(bounds.now_week)).0.into(),
                _ => bounds.now_ms,
            };
            let select = format!("SELECT DISTINCT {column} FROM {table} WHERE {column} > {newest} LIMIT {IN_LIST_MAX}");
            let later = self.read(table, &select).await?;
            all.differences
                .extend(later.iter().map(|row| RowDifference::surplus(table, vec![(column, row[0].clone())])));
        }
        let select = format!("SELECT COUNT(*), SUM(n < 0 OR n >= {NUMBERS}) FROM clq_number");
        for row in self.read("clq_number", &select).await? {
            if row[..] != [NUMBERS.to_string(), "0".to_owned()] {
                all.differences.push(RowDifference {
                    column: Some("n"),
                    expected: Some(format!("{NUMBERS} numbers from 0")),
                    found: Some(format!("{} numbers, {} of them others", row[0], row[1])),
                    ..RowDifference::surplus("clq_number", Vec::new())
                });
            }
        }
        Ok(all)
    }
}
