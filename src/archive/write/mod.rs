//! Jobs to rows. Writes are absolute: after a job, the rows of its object are exactly
//! those of the job; all others are deleted. So every job may be written again. Player
//! removals ([`remove_player`]) are written before other player rows.
//!
//! Several jobs share a transaction, up to a number of rows; a job is never split. Weeks
//! with too many rows for one job are written by [`week_chunks`]. Inside
//! a transaction rows are written in order of table and primary key, so that two writers
//! wait for each other instead of deadlocking.

mod batch;
mod board_steps;
pub(super) mod checksums;
mod kept_totals;
mod map_totals;
mod names;
pub(super) mod objects;
pub(super) mod player_totals;
mod remove_player;
mod replaced_rows;
mod site_totals;
mod sums;
mod surplus;
pub(super) mod tables;
pub(super) mod top_boards;
mod week_chunks;
pub(super) mod weeks;

use self::batch::{Batch, batches};
pub(super) use self::week_chunks::WriteOutcome;
use super::connect::Archive;
use super::error::{ArchiveError, StatementError, TransactionError};
use super::load_data::FILE_BYTES_MAX;
use super::sql::{RowFormat, Table};
use super::upsert::{RowStatement, Upsert};
use super::write_method::WriteMethod;
use crate::model::archive::ArchiveJob;
use crate::model::top_board::{SiteTotals, TopBoard};

/// Players in one statement. MariaDB joins a temporary table for a list of 1,000 or more, which takes
/// twice as long.
const PLAYERS_MAX: usize = 400;

trait OperationContext<T> {
    fn doing(self, what: &'static str) -> Result<T, TransactionError>;
}

impl<T> OperationContext<T> for Result<T, StatementError> {
    fn doing(self, doing: &'static str) -> Result<T, TransactionError> {
        self.map_err(|fault| TransactionError::Fault { fault, doing })
    }
}

impl Archive {
    /// Writes jobs, names first; returns the number of rows. On an error some jobs may
    /// have been written, each of them completely.
    pub async fn write(&mut self, jobs: &[ArchiveJob]) -> Result<u64, ArchiveError> {
        let mut rows = 0;
        for batch in batches(jobs, self.batch_rows_max) {
            rows += self.write_batch(&batch).await?;
        }
        Ok(rows)
    }

    /// Publishes a board: its positions of one moment. Returns its key, and the number of written rows.
    pub async fn write_top_board(&mut self, board: &TopBoard, now_ms: i64) -> Result<(u64, u64), ArchiveError> {
        let key = top_boards::board_key(board, &board.window);
        Ok((key, self.write_batch(&Batch::TopBoard(board, now_ms)).await?))
    }

    /// Publishes the totals of all servers.
    pub async fn write_site_totals(&mut self, totals: &SiteTotals) -> Result<u64, ArchiveError> {
        self.write_batch(&Batch::SiteTotals(totals)).await
    }

    /// Tables that are written with LOAD DATA, and the columns that are written.
    pub fn loaded_tables() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        tables::LOADED.iter().map(|table| (table.name, table.columns))
    }

    async fn write_batch(&mut self, batch: &Batch<'_>) -> Result<u64, ArchiveError> {
        let mut tries = 1;
        loop {
            match self.transaction(batch).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => self.retry_conflict(failure, &mut tries).await?,
            }
        }
    }

    async fn transaction(&mut self, batch: &Batch<'_>) -> Result<u64, TransactionError> {
        self.begin().await?;
        let rows = match batch {
            Batch::Objects(kind, jobs) => self.upsert_objects(*kind, jobs).await?,
            Batch::RemovedPlayer(player, into) => self.apply_player_removal(*player, *into).await?,
            Batch::Weeks(weeks) => self.upsert_weeks(weeks).await?,
            Batch::TopBoard(board, now_ms) => self.upsert_top_board(board, *now_ms).await?,
            Batch::SiteTotals(totals) => self.upsert_site_totals(totals).await?,
            Batch::WeekTotals(week) => self.rewrite_week_totals(*week).await?,
        };
        self.commit().await?;
        Ok(rows)
    }

    fn upsert(&self, table: &'static Table) -> Upsert {
        let loads =
            self.write_method == WriteMethod::LoadData && tables::LOADED.iter().any(|loaded| loaded.name == table.name);
        match loads {
            true => Upsert::new(table, RowFormat::LoadData, FILE_BYTES_MAX),
            false => Upsert::new(table, RowFormat::Insert, self.statement_bytes_max),
        }
    }

    async fn execute_upsert(&mut self, upsert: Upsert) -> Result<u64, TransactionError> {
        let (rows, table) = (upsert.rows() as u64, upsert.table_name());
        self.doing = table;
        for statement in upsert.into_statements() {
            let written = match statement {
                RowStatement::Insert(sql) => self.execute(sql).await,
                RowStatement::LoadData { sql, rows } => self.load_data(&sql, rows).await,
            };
            written.doing(table)?;
        }
        Ok(rows)
    }
}
