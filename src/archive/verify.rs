//! Compares rows in the database with the values that the state expects. It only reads, while the
//! worker writes.
//!
//! Values are compared as literals, made by the functions with which rows are written.
//! `map_week.game` is not compared, because it is the game of the server when the row was written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use mysql_async::Row;

use super::connect::Archive;
use super::error::ArchiveError;
use super::sql::{Table, comma_separated, in_group, literal, literals, read_literal, truncate_chars};
use super::write::tables::{
    BEST_POSITION, BOARD_STEP, MAP_WEEK, PLAYER, PLAYER_TOTAL, PLAYER_WEEK, SERVER_WEEK, TOP_BOARD, TOP_BOARD_ROW, WEEK,
};
use super::write::top_boards::{board_key, entry_values, head_values};
use super::write::weeks::{
    best_position_values, best_rows, map_week_values, player_range_condition, player_week_values, server_week_values,
};
use crate::limits::NAME_BYTES_MAX;
use crate::model::archive::{ArchiveJob, WeekArchive};
use crate::model::calendar::week_label;
use crate::model::top_board::TopBoard;
use crate::model::{MapKey, ServerKey, WeekKey};

/// Keys in one IN list.
const IN_LIST_MAX: usize = 5_000;

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Rows that were compared, the expected ones and the surplus ones, by server.
    pub rows: BTreeMap<Option<ServerKey>, u64>,
    pub differences: Vec<RowDifference>,
}

/// A row that differs in one column, is missing, or is surplus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowDifference {
    /// `None`: the row belongs to no server.
    pub server: Option<ServerKey>,
    pub table: &'static str,
    /// The primary key without week and server: `player=12`. Empty: it has no other columns.
    pub key: String,
    /// `None`: the whole row is missing or surplus.
    pub column: Option<&'static str>,
    /// A literal of SQL; `None`: the row is surplus, or missing.
    pub expected: Option<String>,
    pub found: Option<String>,
    /// The map of a row of `map_week`.
    pub map: Option<MapKey>,
}

/// Rows by their primary key. All values are literals.
type Rows = BTreeMap<Vec<String>, Vec<String>>;

/// The expected rows of one table.
struct ExpectedRows {
    table: &'static Table,
    rows: Rows,
}

impl ExpectedRows {
    fn new(table: &'static Table) -> ExpectedRows {
        ExpectedRows { table, rows: Rows::new() }
    }

    fn add(&mut self, mut row: Vec<String>) {
        assert_eq!(row.len(), self.table.columns.len(), "a value for each column of {}", self.table.name);
        let values = row.split_off(self.table.key_columns);
        self.rows.insert(row, values);
    }
}

impl Archive {
    /// Compares weeks of servers, or a chunk of one, with the rows in the database. Rows of one
    /// call are of one moment.
    pub async fn verify_weeks(&mut self, week: WeekKey, jobs: &[&WeekArchive]) -> Result<Verification, ArchiveError> {
        self.begin_reading().await?;
        let mut all = Verification::default();
        for jobs in jobs.chunks(IN_LIST_MAX) {
            // The values of a whole week of a server, except players, are in its first chunk.
            let first: Vec<&WeekArchive> = jobs.iter().copied().filter(|job| job.span.after.is_none()).collect();
            self.verify_server_weeks(week, &first, &mut all).await?;
            self.verify_players(week, jobs, &mut all).await?;
            self.verify_maps(week, &first, &mut all).await?;
            self.verify_steps(week, &first, &mut all).await?;
            self.verify_best_positions(jobs, &mut all).await?;
        }
        self.end_reading().await?;
        Ok(all)
    }

    /// Compares names of players; `names` are jobs of players.
    pub async fn verify_names(&mut self, names: &[ArchiveJob]) -> Result<Verification, ArchiveError> {
        let mut expected = ExpectedRows::new(&PLAYER);
        let mut keys = Vec::new();
        for job in names {
            let ArchiveJob::Player { key, game, name, display } = job else { continue };
            keys.push(key.0);
            let display = truncate_chars(display, NAME_BYTES_MAX);
            expected.add(literals(|row| _ = row.uint(key.0).uint(game.0).text(name).text(display)));
        }
        let mut all = Verification::default();
        self.begin_reading().await?;
        for keys in keys.chunks(IN_LIST_MAX) {
            let condition = format!("player IN ({})", comma_separated(keys));
            let found = self.read_rows(&PLAYER, &condition).await?;
            let chunk: BTreeSet<String> = keys.iter().map(u32::to_string).collect();
            let rows = expected.rows.iter().filter(|(key, _)| chunk.contains(&key[0]));
            let rows = rows.map(|(key, values)| (key.clone(), values.clone())).collect();
            compare(&ExpectedRows { table: &PLAYER, rows }, &found, None, &mut all);
        }
        self.end_reading().await?;
        Ok(all)
    }

    /// Compares published boards, at least one. Adds their keys to `keys`.
    pub async fn verify_top_boards(
        &mut self,
        boards: &[TopBoard],
        keys: &mut BTreeSet<u64>,
    ) -> Result<Verification, ArchiveError> {
        let (mut heads, mut rows) = (ExpectedRows::new(&TOP_BOARD), ExpectedRows::new(&TOP_BOARD_ROW));
        let mut all = Verification::default();
        self.begin_reading().await?;
        for board in boards {
            let key = board_key(board, &board.window.window);
            heads.add(literals(|row| head_values(row, board, key, 0)));
            let previous = self.previous_positions(board).await;
            let previous = previous.map_err(|fault| fault.classify(&self.target, TOP_BOARD_ROW.name))?;
            for (entry, position) in board.entries.iter().zip(1..) {
                rows.add(literals(|row| entry_values(row, key, position, entry, &previous)));
            }
        }
        let of_boards: Vec<u64> = boards.iter().map(|board| board_key(board, &board.window.window)).collect();
        let condition = format!("board IN ({})", comma_separated(&of_boards));
        keys.extend(of_boards);
        let mut found = self.read_rows(&TOP_BOARD, &condition).await?;
        // The last value is the time of publication.
        heads
            .rows
            .values_mut()
            .chain(found.values_mut())
            .filter_map(|values| values.last_mut())
            .for_each(String::clear);
        compare(&heads, &found, None, &mut all);
        compare(&rows, &self.read_rows(&TOP_BOARD_ROW, &condition).await?, None, &mut all);
        self.end_reading().await?;
        Ok(all)
    }

    /// Finds published boards of a window that there should not be. `boards`: the keys of all others, of which `last` is
    /// one.
    pub async fn verify_surplus_boards(
        &mut self,
        boards: &BTreeSet<u64>,
        last: &TopBoard,
    ) -> Result<Verification, ArchiveError> {
        let (window_type, label) = (literal(&last.window_type), literal(&last.window.window));
        let condition = format!("window_type = {window_type} AND window_label = {label}");
        let mut found = self.read_rows(&TOP_BOARD, &condition).await?;
        found.retain(|key, _| key[0].parse().is_ok_and(|board| !boards.contains(&board)));
        let mut all = Verification::default();
        compare(&ExpectedRows::new(&TOP_BOARD), &found, None, &mut all);
        Ok(all)
    }

    /// Compares the totals of players in a week with the rows in the database that they are sums of, and the row of
    /// the week. Both change in the same transaction.
    pub async fn verify_player_totals(
        &mut self,
        week: WeekKey,
        span: Range<i64>,
    ) -> Result<Verification, ArchiveError> {
        let mut all = Verification::default();
        let mut expected = ExpectedRows::new(&WEEK);
        expected.add(literals(|row| _ = row.uint(week.0).text(&week_label(week)).int(span.start).int(span.end)));
        self.begin_reading().await?;
        let found = self.read_rows(&WEEK, &format!("week = {week}")).await?;
        let has_rows =
            self.first::<u8>("player_week", &format!("SELECT 1 FROM player_week WHERE week = {week} LIMIT 1")).await?;
        if has_rows.is_some() || !found.is_empty() {
            compare(&expected, &found, None, &mut all);
        }
        // Sums of decimals differ by their order.
        let select = format!(
            "SELECT sums.*, total.servers, total.time_ms, total.time_est_ms, total.points, total.points_est, \
             total.last_seen_ms FROM (SELECT player, COUNT(*) AS servers, SUM(time_ms) AS time_ms, \
             SUM(time_est_ms) AS time_est_ms, SUM(points) AS points, ROUND(SUM(points_est), 3) AS points_est, \
             {} + MAX(time_reached_after_ms) AS last_seen_ms FROM player_week WHERE week = {week} GROUP BY player) AS sums \
             LEFT JOIN player_total AS total ON total.player = sums.player AND total.week = {week} \
             WHERE NOT (total.servers <=> sums.servers AND total.time_ms <=> sums.time_ms AND \
             total.time_est_ms <=> sums.time_est_ms AND total.points <=> sums.points AND \
             total.last_seen_ms <=> sums.last_seen_ms AND ABS(total.points_est - sums.points_est) < 0.0015) LIMIT {IN_LIST_MAX}",
            span.start
        );
        for row in self.read("player_total", &select).await? {
            let (player, values) = row.split_first().expect("columns of the query");
            let (sums, total) = values.split_at(values.len() / 2);
            let difference = |column, expected, found| RowDifference {
                server: None,
                table: PLAYER_TOTAL.name,
                key: format!("player={player}"),
                column,
                expected,
                found,
                map: None,
            };
            if total[0] == "NULL" {
                all.differences.push(difference(None, Some("a row".to_owned()), None));
                continue;
            }
            let columns = PLAYER_TOTAL.columns[PLAYER_TOTAL.key_columns..].iter().zip(sums.iter().zip(total));
            let different = columns.filter(|(_, (sum, total))| sum != total);
            all.differences.extend(
                different
                    .map(|(column, (sum, total))| difference(Some(*column), Some(sum.clone()), Some(total.clone()))),
            );
        }
        self.end_reading().await?;
        Ok(all)
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
        compare(&expected, &found, None, &mut all);
        for difference in &mut all.differences {
            let map = difference.key.rsplit_once("map=").and_then(|(_, map)| map.parse().ok());
            difference.map = map.map(MapKey);
        }
        Ok(all)
    }

    async fn verify_server_weeks(
        &mut self,
        week: WeekKey,
        jobs: &[&WeekArchive],
        all: &mut Verification,
    ) -> Result<(), ArchiveError> {
        let mut found = self.read_rows(&SERVER_WEEK, &of_servers(week, jobs)).await?;
        let mut expected = ExpectedRows::new(&SERVER_WEEK);
        for job in jobs {
            let mut row = literals(|row| server_week_values(row, job));
            let key = &row[..SERVER_WEEK.key_columns];
            if is_empty(job) {
                // A server that has no rows and is not closed may lack this row.
                match found.get_mut(key) {
                    None => continue,
                    Some(values) => {
                        let closed = SERVER_WEEK.columns.iter().position(|column| *column == "closed");
                        let closed = closed.expect("a column of the table");
                        row[closed].clone_from(&values[closed - SERVER_WEEK.key_columns]);
                    }
                }
            }
            expected.add(row);
        }
        compare(&expected, &found, Some(1), all);
        Ok(())
    }

    async fn verify_players(
        &mut self,
        week: WeekKey,
        jobs: &[&WeekArchive],
        all: &mut Verification,
    ) -> Result<(), ArchiveError> {
        let mut expected = ExpectedRows::new(&PLAYER_WEEK);
        for (job, row) in jobs.iter().flat_map(|job| job.rows.iter().map(move |row| (job, row))) {
            expected.add(literals(|values| player_week_values(values, job, row)));
        }
        let span = jobs.first().map_or_else(String::new, |job| player_range_condition(job.span));
        assert!(jobs.len() < 2 || jobs.iter().all(|job| job.span == jobs[0].span), "a chunk is compared alone");
        let found = self.read_rows(&PLAYER_WEEK, &format!("{span}{}", of_servers(week, jobs))).await?;
        compare(&expected, &found, Some(1), all);
        Ok(())
    }

    async fn verify_maps(
        &mut self,
        week: WeekKey,
        jobs: &[&WeekArchive],
        all: &mut Verification,
    ) -> Result<(), ArchiveError> {
        let mut found = self.read_rows(&MAP_WEEK, &of_servers(week, jobs)).await?;
        let mut expected = ExpectedRows::new(&MAP_WEEK);
        for (job, row) in jobs.iter().flat_map(|job| job.maps.iter().map(move |row| (job, row))) {
            expected.add(literals(|values| map_week_values(values, job, row)));
        }
        // The first value is the game.
        expected.rows.values_mut().chain(found.values_mut()).for_each(|values| values[0].clear());
        let before = all.differences.len();
        compare(&expected, &found, Some(1), all);
        for difference in &mut all.differences[before..] {
            difference.map = difference.key.strip_prefix("map=").and_then(|map| map.parse().ok()).map(MapKey);
        }
        Ok(())
    }

    async fn verify_steps(
        &mut self,
        week: WeekKey,
        jobs: &[&WeekArchive],
        all: &mut Verification,
    ) -> Result<(), ArchiveError> {
        let mut expected = ExpectedRows::new(&BOARD_STEP);
        for (job, step) in jobs.iter().flat_map(|job| job.steps.iter().map(move |step| (job, step))) {
            expected.add(literals(|row| {
                row.uint(week.0).uint(job.server.0).text(step.ranking.name()).uint(step.position).bytes(&step.order);
            }));
        }
        let found = self.read_rows(&BOARD_STEP, &of_servers(week, jobs)).await?;
        compare(&expected, &found, Some(1), all);
        Ok(())
    }

    async fn verify_best_positions(
        &mut self,
        jobs: &[&WeekArchive],
        all: &mut Verification,
    ) -> Result<(), ArchiveError> {
        for job in jobs {
            for best in job.best.chunks(IN_LIST_MAX) {
                let mut expected = ExpectedRows::new(&BEST_POSITION);
                let name = BEST_POSITION.name;
                let positions = self.with_earlier_best(job.server.0, best).await;
                for (player, three) in positions.map_err(|fault| fault.classify(&self.target, name))? {
                    for row in best_rows(&three) {
                        expected.add(literals(|values| best_position_values(values, job.server.0, player, row)));
                    }
                }
                let players = best.iter().map(|it| it.player);
                let condition = in_group(("server", job.server), "player", players);
                let found = self.read_rows(&BEST_POSITION, &condition).await?;
                compare(&expected, &found, Some(0), all);
            }
        }
        Ok(())
    }

    /// Begins a transaction in which all reads are of one moment.
    pub(super) async fn begin_reading(&mut self) -> Result<(), ArchiveError> {
        self.run("begin", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
        self.run("begin", "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY").await
    }

    pub(super) async fn end_reading(&mut self) -> Result<(), ArchiveError> {
        self.run("commit", "COMMIT").await
    }

    async fn read_rows(&mut self, table: &'static Table, condition: &str) -> Result<Rows, ArchiveError> {
        let select = format!("SELECT {} FROM {} WHERE {condition}", table.columns.join(", "), table.name);
        let rows = self.read(table.name, &select).await?;
        Ok(rows
            .into_iter()
            .map(|mut row| {
                let values = row.split_off(table.key_columns);
                (row, values)
            })
            .collect())
    }

    async fn read(&mut self, doing: &'static str, select: &str) -> Result<Vec<Vec<String>>, ArchiveError> {
        self.doing = doing;
        let rows: Vec<Row> = self.rows(select).await.map_err(|fault| fault.classify(&self.target, doing))?;
        let literals = |row: Row| {
            let columns = row.columns();
            let values = row.unwrap().into_iter();
            values.zip(columns.iter()).map(|(value, column)| read_literal(&value, column)).collect()
        };
        Ok(rows.into_iter().map(literals).collect())
    }
}

/// A week for which nothing needs to be in the archive.
fn is_empty(job: &WeekArchive) -> bool {
    job.rows.is_empty()
        && job.maps.is_empty()
        && job.player_ms == 0
        && job.server_rank.is_none()
        && job.board_sizes == [0; 5]
}

fn of_servers(week: WeekKey, jobs: &[&WeekArchive]) -> String {
    // An empty list is not valid SQL; no server has key 0.
    in_group(("week", week), "server", std::iter::once(0).chain(jobs.iter().map(|job| job.server.0)))
}

/// Adds the differences between two sets of rows. `server_column`: which column of the key is the
/// server.
fn compare(expected: &ExpectedRows, found: &Rows, server_column: Option<usize>, all: &mut Verification) {
    let table = expected.table;
    let server_of = |key: &[String]| server_column.and_then(|at| key[at].parse().ok()).map(ServerKey);
    let difference = |key: &[String], column, expected: Option<&String>, found: Option<&String>| {
        let named = table.columns.iter().zip(key).filter(|(name, _)| !matches!(**name, "week" | "server"));
        RowDifference {
            server: server_of(key),
            table: table.name,
            key: named.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "),
            column,
            expected: expected.cloned(),
            found: found.cloned(),
            map: None,
        }
    };
    let keys: BTreeSet<&Vec<String>> = expected.rows.keys().chain(found.keys()).collect();
    for key in keys {
        *all.rows.entry(server_of(key)).or_default() += 1;
        match (expected.rows.get(key), found.get(key)) {
            (Some(wanted), Some(values)) => {
                let columns = table.columns[table.key_columns..].iter().zip(wanted.iter().zip(values));
                all.differences.extend(
                    columns
                        .filter(|(_, (wanted, value))| wanted != value)
                        .map(|(column, (wanted, value))| difference(key, Some(*column), Some(wanted), Some(value))),
                );
            }
            (Some(_), None) => all.differences.push(difference(key, None, Some(&"a row".to_owned()), None)),
            (None, _) => all.differences.push(difference(key, None, None, Some(&"a row".to_owned()))),
        }
    }
}
