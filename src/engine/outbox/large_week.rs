//! A server's week with more rows than one archive job may have. Its rows are read and sorted
//! in steps, and then returned in chunks.
//!
//! In the archive, scores and positions of one server must be consistent (docs/rules.md section 12),
//! but rows change while the chunks are requested. So the archived values of each row, about 200
//! bytes, are copied here until the whole week is written: the positions belong to exactly
//! these scores. A row is copied when it is read, so rows may be some seconds apart. Changes
//! during this time are in the outbox again. The copy is not stored: after a crash the week is
//! still in the outbox, and is requested from the first chunk again.

use super::BestPositionsIn;
use super::changes::ChangedRows;
use super::week_rows::WeekRows;
use crate::engine::{Engine, ReadError, StoreReader};
use crate::model::archive::{WeekChunk, WeekChunkRequest};
use crate::model::{ServerKey, WeekKey};

/// Positions that are assigned in one step: some milliseconds.
const POSITIONS_PER_STEP: usize = 20_000;

#[derive(Debug)]
pub(in crate::engine) struct LargeWeek {
    pub(super) week: WeekKey,
    pub(super) server: ServerKey,
    /// Identifies this copy and its chunks.
    copy_id: u64,
    rows: WeekRows,
    is_read: bool,
    is_complete: bool,
    /// The first chunk was returned.
    first_chunk_sent: bool,
}

/// Which rows the chunks contain.
#[derive(Clone, Copy)]
enum RowSelection {
    /// Rows that changed since they were archived. Preparing the chunks begins an archive job.
    Changed,
    All,
}

impl Engine {
    /// Returns a chunk of a large week, or does a step towards the first chunk. The copy may
    /// contain uncommitted changes: the caller must commit before it passes on a chunk.
    pub fn week_chunk(&mut self, source: &dyn StoreReader, request: WeekChunkRequest) -> Result<WeekChunk, ReadError> {
        self.week_chunk_of(source, request, RowSelection::Changed)
    }

    /// As [`Engine::week_chunk`], but with all rows, from a copy of its own: to compare them with
    /// the archive.
    pub fn expected_week_chunk(
        &mut self,
        source: &dyn StoreReader,
        request: WeekChunkRequest,
    ) -> Result<WeekChunk, ReadError> {
        std::mem::swap(&mut self.large_week, &mut self.verified_week);
        let chunk = self.week_chunk_of(source, request, RowSelection::All);
        std::mem::swap(&mut self.large_week, &mut self.verified_week);
        chunk
    }

    /// Deletes the copies: they may contain rows of a removed player, or positions of another order.
    pub(in crate::engine) fn drop_large_weeks(&mut self) {
        (self.large_week, self.verified_week) = (None, None);
    }

    fn week_chunk_of(
        &mut self,
        source: &dyn StoreReader,
        request: WeekChunkRequest,
        selection: RowSelection,
    ) -> Result<WeekChunk, ReadError> {
        let current = self.large_week.take();
        let (large, after) = match request {
            WeekChunkRequest::First { week, server } => {
                let begun =
                    current.filter(|large| (large.week, large.server, large.first_chunk_sent) == (week, server, false));
                let Some(large) = self.prepare_step(source, week, server, begun, selection)? else {
                    return Ok(match self.large_week {
                        Some(_) => WeekChunk::Preparing,
                        None => WeekChunk::NotAvailable,
                    });
                };
                (Some(large), None)
            }
            WeekChunkRequest::Next { copy_id, after } => {
                (current.filter(|large| large.copy_id == copy_id && large.first_chunk_sent), after)
            }
            WeekChunkRequest::Release { copy_id } => {
                self.large_week = current.filter(|large| large.copy_id != copy_id);
                return Ok(WeekChunk::NotAvailable);
            }
        };
        let Some(mut large) = large else { return Ok(WeekChunk::NotAvailable) };
        if !self.model.global.is_kept(large.week.into()) {
            return Ok(WeekChunk::NotAvailable);
        }
        let most = self.model.global.settings.archive_chunk_rows;
        let week = self.model.week_archive(
            source,
            (large.week, large.server),
            &large.rows,
            after,
            most,
            BestPositionsIn::Week,
        )?;
        large.first_chunk_sent = true;
        let copy_id = large.copy_id;
        self.large_week = Some(large);
        Ok(WeekChunk::Chunk { copy_id, week: Box::new(week) })
    }

    /// Does one step: reads or sorts some rows. `None`: there is more to do and the progress is
    /// kept, or the week was deleted and nothing is kept.
    fn prepare_step(
        &mut self,
        source: &dyn StoreReader,
        week: WeekKey,
        server: ServerKey,
        begun: Option<LargeWeek>,
        selection: RowSelection,
    ) -> Result<Option<LargeWeek>, ReadError> {
        let counted = self
            .model
            .servers
            .get(server)
            .is_some_and(|server_state| self.model.is_counted(server_state, week.into(), server));
        if !counted || !self.model.global.is_kept(week.into()) {
            return Ok(None);
        }
        let closed = self.model.is_server_closed(week, server);
        let mut large = match begun {
            // Rows of an open week differ from those of the closed one.
            Some(begun) if begun.rows.closed == closed => begun,
            _ => {
                self.last_copy_id += 1;
                let copy_id = self.last_copy_id;
                let changed = match selection {
                    RowSelection::Changed => self.model.global.archive_changes.begin_job(week, server),
                    RowSelection::All => ChangedRows::All,
                };
                let rows = WeekRows::new((week, server), self.model.server_orders(server), closed, changed);
                LargeWeek { week, server, copy_id, rows, is_read: false, is_complete: false, first_chunk_sent: false }
            }
        };
        if !large.is_read {
            let most = self.model.global.settings.archive_chunk_rows;
            let page = self.model.rows_after(source, week.into(), server, large.rows.last_read(), most)?;
            large.rows.changed.add_players(self.model.live_players(week, server));
            large.rows.push_rows(&page.rows);
            large.is_read = page.is_last;
        } else if !large.is_complete {
            large.is_complete = large.rows.assign_positions(POSITIONS_PER_STEP);
        } else {
            return Ok(Some(large));
        }
        self.large_week = Some(large);
        Ok(None)
    }
}
