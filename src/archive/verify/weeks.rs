//! Compares the rows of servers in weeks.

use super::{ExpectedRows, IN_LIST_MAX, RowDifference, Rows, Verification, compare};
use crate::archive::connect::Archive;
use crate::archive::error::ArchiveError;
use crate::archive::sql::{Table, in_group, literals};
use crate::archive::write::tables::{BOARD_STEP, MAP_WEEK, PLAYER_WEEK, SERVER_WEEK};
use crate::archive::write::weeks::{
    PREVIOUS_RANK, map_week_values, player_range_condition, player_week_values, server_week_values,
};
use crate::model::archive::WeekArchive;
use crate::model::{GameKey, WeekKey};

impl Archive {
    /// Compares weeks of servers, or a chunk of one, with the rows in the database. Rows of one
    /// call are of one moment. `last_game`: the last game that there is.
    pub async fn verify_weeks(
        &mut self,
        week: WeekKey,
        jobs: &[&WeekArchive],
        last_game: GameKey,
    ) -> Result<Verification, ArchiveError> {
        self.begin_reading().await?;
        let mut all = Verification::default();
        for jobs in jobs.chunks(IN_LIST_MAX) {
            // The values of a whole week of a server, except players, are in its first chunk.
            let first: Vec<&WeekArchive> = jobs.iter().copied().filter(|job| job.span.after.is_none()).collect();
            self.verify_server_weeks(week, &first, last_game, &mut all).await?;
            self.verify_players(week, jobs, &mut all).await?;
            self.verify_maps(week, &first, last_game, &mut all).await?;
            self.verify_steps(week, &first, &mut all).await?;
        }
        self.end_reading().await?;
        Ok(all)
    }

    /// The servers with rows of a week, as surplus rows, by table.
    pub async fn servers_of_week(&mut self, week: WeekKey) -> Result<Vec<RowDifference>, ArchiveError> {
        const TABLES: [&Table; 4] = [&SERVER_WEEK, &PLAYER_WEEK, &MAP_WEEK, &BOARD_STEP];
        let mut all = Vec::new();
        for Table { name, .. } in TABLES {
            let select = format!("SELECT DISTINCT server FROM {name} WHERE week = {week} ORDER BY server");
            let found: Vec<(u32,)> = self.all(name, &select).await?;
            let key = |server: u32| vec![("week", week.to_string()), ("server", server.to_string())];
            all.extend(found.into_iter().map(|(server,)| RowDifference::surplus(name, key(server))));
        }
        Ok(all)
    }

    async fn verify_server_weeks(
        &mut self,
        week: WeekKey,
        jobs: &[&WeekArchive],
        last_game: GameKey,
        all: &mut Verification,
    ) -> Result<(), ArchiveError> {
        let mut found = self.read_rows_from(&SERVER_WEEK, &from_servers(&SERVER_WEEK, "", week, jobs)).await?;
        let mut expected = ExpectedRows::new(&SERVER_WEEK);
        for job in jobs {
            let mut row = literals(|row| server_week_values(row, job, job.game));
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
        expect_earlier_games(&mut expected, &found, last_game);
        compare(&expected, &found, all);
        // Computed from the rows of both weeks.
        let select = format!(
            "SELECT sw.week, sw.server, {PREVIOUS_RANK}, sw.previous_rank FROM server_week sw FORCE INDEX (PRIMARY) \
             LEFT JOIN server_week b ON b.week = sw.week - 1 AND b.server = sw.server \
             WHERE NOT ({PREVIOUS_RANK} <=> sw.previous_rank) AND {}",
            in_group(("sw.week", week), "sw.server", servers_of(jobs))
        );
        for row in self.read(SERVER_WEEK.name, &select).await? {
            let [week, server, expected, found] = <[String; 4]>::try_from(row).expect("columns of the query");
            all.differences.push(RowDifference {
                column: Some("previous_rank"),
                expected: Some(expected),
                found: Some(found),
                ..RowDifference::surplus(SERVER_WEEK.name, vec![("week", week), ("server", server)])
            });
        }
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
        let found = self.read_rows_from(&PLAYER_WEEK, &from_servers(&PLAYER_WEEK, &span, week, jobs)).await?;
        compare(&expected, &found, all);
        Ok(())
    }

    async fn verify_maps(
        &mut self,
        week: WeekKey,
        jobs: &[&WeekArchive],
        last_game: GameKey,
        all: &mut Verification,
    ) -> Result<(), ArchiveError> {
        let found = self.read_rows_from(&MAP_WEEK, &from_servers(&MAP_WEEK, "", week, jobs)).await?;
        let mut expected = ExpectedRows::new(&MAP_WEEK);
        for (job, row) in jobs.iter().flat_map(|job| job.maps.iter().map(move |row| (job, row))) {
            expected.add(literals(|values| map_week_values(values, job, job.game, row)));
        }
        expect_earlier_games(&mut expected, &found, last_game);
        compare(&expected, &found, all);
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
        let found = self.read_rows_from(&BOARD_STEP, &from_servers(&BOARD_STEP, "", week, jobs)).await?;
        compare(&expected, &found, all);
        Ok(())
    }
}

/// The game of a server's week and its maps, their first value, is that of the server when the row was written.
fn expect_earlier_games(expected: &mut ExpectedRows, found: &Rows, last_game: GameKey) {
    for (key, values) in &mut expected.rows {
        let Some(game) = found.get(key).and_then(|row| row.first()) else { continue };
        let is_known = game.parse().is_ok_and(|game: u32| (1..=last_game.0).contains(&game));
        if is_known || game == "NULL" {
            values[0].clone_from(game);
        }
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

/// `FROM table WHERE ...`: rows of some servers in a week, `among` those with another condition.
fn from_servers(table: &Table, among: &str, week: WeekKey, jobs: &[&WeekArchive]) -> String {
    let servers = in_group(("week", week), "server", servers_of(jobs));
    format!("FROM {} FORCE INDEX (PRIMARY) WHERE {among}{servers}", table.name)
}

/// The servers of jobs, and one that does not exist: an empty list is not valid SQL, and no server has key 0.
fn servers_of(jobs: &[&WeekArchive]) -> impl Iterator<Item = u32> {
    std::iter::once(0).chain(jobs.iter().map(|job| job.server.0))
}
