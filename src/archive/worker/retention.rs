//! Deletes rows that are older than the settings allow, in small steps, and rows that are later than the state. Best
//! positions, names and series are always kept.
//!
//! What is old follows from the state and not from the database, where one row of a future week would make all
//! weeks old. What the state has is never deleted, and nothing while the clock is not trusted.

use super::publish::TaskOutcome;
use super::{PassError, Worker};
use crate::archive::connect::Archive;
use crate::archive::error::ArchiveError;
use crate::archive::job_source::JobSource;
use crate::archive::sql::{comma_separated, literal, page_end, page_rows};
use crate::model::WeekKey;
use crate::model::calendar::{DAY_MS, week_label};

/// Rows that one transaction deletes: small enough for a cluster.
const ROWS_PER_STEP: u64 = 1_000;

/// Steps in one pass, for each table. The rest is deleted in later passes.
const STEPS_PER_PASS: u32 = 50;

/// Keys in one statement. MariaDB joins a temporary table for a list of 1,000 or more.
const KEYS_MAX: usize = 500;

/// Tables with a row or more for each server in a week.
const WEEK_TABLES: [&str; 5] = ["player_week", "map_week", "server_week", "map_total", "board_step"];

impl<S: JobSource> Worker<S> {
    /// Deletes some of the rows that are older than the settings allow. Returns a fault if the archive has later
    /// weeks than the state: then it deletes nothing.
    pub(super) async fn delete_old_rows(&mut self, archive: &mut Archive) -> Result<Option<ArchiveError>, PassError> {
        let Some(bounds) = self.source.bounds().await? else { return Ok(None) };
        if let Some((_, newest)) = bounds.weeks
            && let Some(fault) = archive.later_week(newest.max(bounds.now_week)).await?
        {
            return Ok(Some(fault));
        }
        if !bounds.is_time_trusted {
            return Ok(None);
        }
        let settings = &self.settings;
        let before_ms = |days: u32| bounds.now_ms - i64::from(days) * DAY_MS;
        let mut old: Vec<(&'static str, String)> = Vec::new();
        if let (1.., Some((oldest, newest))) = (settings.keep_weeks, bounds.weeks) {
            // A clock that was ahead may have opened a future week.
            let newest = newest.min(bounds.now_week);
            let oldest_kept = newest.0.saturating_sub(settings.keep_weeks).min(oldest.0);
            let forget = format!("UPDATE week SET checksum = NULL WHERE week < {oldest_kept} AND checksum IS NOT NULL");
            archive.run_fenced("week", &forget).await?;
            let forget = format!(
                "UPDATE server_week SET checksum = NULL WHERE week < {oldest_kept} AND checksum IS NOT NULL \
                 LIMIT {ROWS_PER_STEP}"
            );
            for _ in 0..STEPS_PER_PASS {
                if archive.run_fenced("server_week", &forget).await? < ROWS_PER_STEP {
                    // Only now: a week with checksums has all its rows.
                    old.extend(WEEK_TABLES.map(|table| {
                        // Ranks are kept for a week more, because the next week refers to them (`previous_rank`).
                        let first = if table == "server_week" { oldest_kept.saturating_sub(1) } else { oldest_kept };
                        (table, format!("week < {first}"))
                    }));
                    break;
                }
            }
        }
        if settings.keep_online_days > 0 {
            old.push(("online_total", format!("at_ms < {}", before_ms(settings.keep_online_days))));
        }
        if settings.keep_sessions_days > 0 {
            let before_ms = before_ms(settings.keep_sessions_days).min(bounds.oldest_sessions_ms.unwrap_or(i64::MAX));
            old.push(("player_session", format!("end_ms < {before_ms}")));
        }
        self.delete(archive, old).await?;
        if self.settings.keep_top_board_days > 0 {
            let mut condition = format!("end_ms < {}", before_ms(self.settings.keep_top_board_days));
            for (window_type, oldest_ms) in &bounds.oldest_windows {
                condition += &format!(" AND NOT (window_type = {} AND end_ms >= {oldest_ms})", literal(window_type));
            }
            self.delete_by_key(archive, ("top_board", "board"), Some("top_board_row"), &condition).await?;
        }
        Ok(None)
    }

    /// Deletes the rows that are later than the state.
    pub(super) async fn delete_later_rows(&mut self, archive: &mut Archive) -> Result<TaskOutcome, PassError> {
        let Some(bounds) = self.source.bounds().await? else { return Ok(TaskOutcome::Done) };
        let (mut later, mut is_complete): (Vec<(&'static str, String)>, bool) = (Vec::new(), true);
        if let Some((_, newest)) = bounds.weeks {
            let newest = newest.max(bounds.now_week);
            later.extend(WEEK_TABLES.into_iter().chain(["week"]).map(|table| (table, format!("week > {}", newest.0))));
            let totals = format!("week > {}", newest.0);
            is_complete &= self.delete_by_key(archive, ("player_total", "player"), None, &totals).await?;
        }
        later.extend(
            ["online_total", "online_hour", "online_day"].map(|table| (table, format!("at_ms > {}", bounds.now_ms))),
        );
        later.push(("player_session", format!("end_ms > {}", bounds.now_ms)));
        let boards = format!("start_ms > {}", bounds.now_ms);
        is_complete &= self.delete_by_key(archive, ("top_board", "board"), Some("top_board_row"), &boards).await?;
        match self.delete(archive, later).await? && is_complete {
            true => Ok(TaskOutcome::Done),
            false => Ok(TaskOutcome::Later),
        }
    }

    /// Deletes rows of tables, as many as one pass may. Returns whether all are deleted.
    async fn delete(&mut self, archive: &mut Archive, rows: Vec<(&'static str, String)>) -> Result<bool, PassError> {
        let mut is_complete = true;
        for (table, condition) in rows {
            is_complete &= self.delete_steps(archive, table, &condition, &mut 0).await?;
        }
        Ok(is_complete)
    }

    /// As `delete`, for rows of a table that no index finds: their keys are read page by page. `children`: the table whose
    /// rows with such a key are deleted before.
    async fn delete_by_key(
        &mut self,
        archive: &mut Archive,
        (table, key): (&'static str, &str),
        children: Option<&'static str>,
        condition: &str,
    ) -> Result<bool, PassError> {
        let (mut steps, mut after) = (0, None);
        loop {
            let last: Option<u64> = archive.first(table, &page_end(table, key, after)).await?;
            let page = page_rows(key, after, last);
            let select = format!("SELECT DISTINCT {key} FROM {table} WHERE {page} AND {condition}");
            let keys: Vec<u64> = archive.all(table, &select).await?;
            for keys in keys.chunks(KEYS_MAX) {
                let keys = format!("{key} IN ({})", comma_separated(keys));
                let rows = children.map(|table| (table, keys.clone()));
                for (table, condition) in rows.into_iter().chain([(table, format!("{keys} AND {condition}"))]) {
                    if !self.delete_steps(archive, table, &condition, &mut steps).await? {
                        return Ok(false);
                    }
                }
            }
            after = last;
            if after.is_none() {
                return Ok(true);
            }
        }
    }

    /// Deletes rows until `steps` is the number of a pass. Returns whether all are deleted.
    async fn delete_steps(
        &mut self,
        archive: &mut Archive,
        table: &'static str,
        condition: &str,
        steps: &mut u32,
    ) -> Result<bool, PassError> {
        let delete = format!("DELETE FROM {table} WHERE {condition} LIMIT {ROWS_PER_STEP}");
        while *steps < STEPS_PER_PASS {
            let deleted = archive.run_fenced(table, &delete).await?;
            self.report.update(|it| it.rows_deleted += deleted);
            *steps += 1;
            if deleted < ROWS_PER_STEP {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Archive {
    /// The fault of an archive with a later week than the newest one of the state.
    async fn later_week(&mut self, newest: WeekKey) -> Result<Option<ArchiveError>, ArchiveError> {
        let found: Option<Option<u32>> = self.first("week", "SELECT MAX(week) FROM week").await?;
        let later = found.flatten().filter(|found| *found > newest.0);
        Ok(later.map(|found| ArchiveError::LaterWeek {
            target: self.target.clone(),
            week: week_label(WeekKey(found)),
            newest: week_label(newest),
        }))
    }
}
