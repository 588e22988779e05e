//! Deletes rows that are older than the settings allow, in small steps. Best positions, names and
//! series are always kept.

use super::{PassError, Worker};
use crate::archive::connect::Archive;
use crate::archive::job_source::JobSource;
use crate::model::calendar::DAY_MS;

/// Rows that one transaction deletes: small enough for a cluster.
const ROWS_PER_STEP: u64 = 1_000;

/// Steps in one pass, for each table. The rest is deleted in later passes.
const STEPS_PER_PASS: u32 = 50;

/// Tables with a row or more for each server in a week.
const WEEK_TABLES: [&str; 5] = ["player_week", "map_week", "server_week", "map_total", "board_step"];

impl<S: JobSource> Worker<S> {
    /// Deletes some of the rows that are older than the settings allow.
    pub(super) async fn delete_old_rows(&mut self, archive: &mut Archive) -> Result<(), PassError> {
        let (now_ms, settings) = (self.report.now_ms(), &self.settings);
        let before_ms = |days: u32| now_ms - i64::from(days) * DAY_MS;
        let mut old: Vec<(&'static str, String)> = Vec::new();
        if settings.keep_weeks > 0 {
            let newest: Option<Option<u32>> = archive.first("week", "SELECT MAX(week) FROM week").await?;
            let oldest_kept = newest.flatten().unwrap_or(0).saturating_sub(settings.keep_weeks);
            old.extend(WEEK_TABLES.map(|table| (table, format!("week < {oldest_kept}"))));
        }
        if settings.keep_online_days > 0 {
            old.push(("online_total", format!("at_ms < {}", before_ms(settings.keep_online_days))));
        }
        if settings.keep_top_board_days > 0 {
            let ended = format!("end_ms < {}", before_ms(settings.keep_top_board_days));
            // The rows are deleted before their board, so a deleted board leaves no rows.
            old.push(("top_board_row", format!("board IN (SELECT board FROM top_board WHERE {ended})")));
            old.push((
                "top_board",
                format!(
                    "{ended} AND NOT EXISTS (SELECT 1 FROM top_board_row WHERE top_board_row.board = top_board.board)"
                ),
            ));
        }
        for (table, condition) in old {
            let delete = format!("DELETE FROM {table} WHERE {condition} LIMIT {ROWS_PER_STEP}");
            for _ in 0..STEPS_PER_PASS {
                let deleted = archive.run_fenced(table, &delete).await?;
                self.report.update(|it| it.rows_deleted += deleted);
                if deleted < ROWS_PER_STEP {
                    break;
                }
            }
        }
        Ok(())
    }
}
