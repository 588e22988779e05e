//! A server's week with more rows than one archive job may have. Its rows are read and sorted
//! in steps, and then returned in chunks.
//!
//! In the archive, scores and positions of one server must be consistent (docs/rules.md section 12),
//! but rows change while the chunks are requested. So the archived values of each row, about 100
//! bytes, are copied here until the whole week is written: the positions belong to exactly
//! these scores. A row is copied when it is read, so rows may be some seconds apart. Changes
//! during this time are in the outbox again. The copy is not stored: after a crash the week is
//! still in the outbox, and is requested from the first chunk again.

use crate::board::order::Orders;
use crate::engine::boards::positions::{PositionBuilder, ROWS_PER_CHUNK};
use crate::engine::chunked_vec::ChunkedVec;
use crate::engine::{Engine, StateReader};
use crate::model::archive::{PlayerKeyRange, PlayerWeekArchive, WeekChunk, WeekChunkRequest};
use crate::model::row::{PlayerRow, Ranking};
use crate::model::{PlayerKey, ServerKey, WeekKey};

/// Positions that are assigned in one step: some milliseconds.
const POSITIONS_PER_STEP: usize = 20_000;

#[derive(Debug)]
pub(in crate::engine) struct LargeWeek {
    pub(super) week: WeekKey,
    pub(super) server: ServerKey,
    /// Identifies this copy and its chunks.
    copy_id: u64,
    closed: bool,
    rows: ChunkedVec<ArchiveRow, ROWS_PER_CHUNK>,
    positions: PositionBuilder<5>,
    is_read: bool,
    /// The first chunk was returned.
    first_chunk_sent: bool,
}

/// The archived values of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArchiveRow {
    player: PlayerKey,
    starts: u32,
    measured_ms: u64,
    time_ms: u64,
    time_est_ms: u64,
    points: i64,
    points_est: f64,
    elo: f64,
    clq1: u64,
    clq2: u64,
    elo_rounds: u32,
}

impl ArchiveRow {
    pub fn new(player: PlayerKey, row: &PlayerRow) -> ArchiveRow {
        ArchiveRow {
            player,
            starts: row.starts,
            measured_ms: row.measured_ms,
            time_ms: row.time_ms(),
            time_est_ms: row.time_est_ms,
            points: row.points,
            points_est: row.points_est(),
            elo: row.elo,
            clq1: row.clq1(),
            clq2: row.clq2(),
            elo_rounds: row.elo_rounds,
        }
    }

    pub fn into_archive(self, positions: [Option<u32>; 5]) -> PlayerWeekArchive {
        PlayerWeekArchive {
            player: self.player,
            measured_ms: self.measured_ms,
            starts: self.starts,
            time_ms: self.time_ms,
            time_est_ms: self.time_est_ms,
            points: self.points,
            points_est: self.points_est,
            elo: self.elo,
            elo_rounds: self.elo_rounds,
            clq1: self.clq1,
            clq2: self.clq2,
            positions,
        }
    }
}

impl LargeWeek {
    fn new(week: WeekKey, server: ServerKey, orders: Orders, copy_id: u64, closed: bool) -> LargeWeek {
        LargeWeek {
            week,
            server,
            copy_id,
            closed,
            rows: ChunkedVec::default(),
            positions: PositionBuilder::new(orders, Ranking::ALL),
            is_read: false,
            first_chunk_sent: false,
        }
    }

    fn last_read(&self) -> Option<PlayerKey> {
        self.rows.len().checked_sub(1).map(|last| self.rows[last].player)
    }

    /// Returns at most `most` rows after a player, and their key range.
    fn rows_after(&self, after: Option<PlayerKey>, most: usize) -> (PlayerKeyRange, Vec<PlayerWeekArchive>) {
        let from = after.map_or(0, |after| self.rows.partition_point(|kept| kept.player <= after));
        let to = self.rows.len().min(from.saturating_add(most));
        let rows = (from..to).map(|at| self.rows[at].into_archive(self.positions.get(at)));
        let rows: Vec<PlayerWeekArchive> = rows.collect();
        let through = rows.last().map(|row| row.player).filter(|_| to < self.rows.len());
        (PlayerKeyRange { after, through }, rows)
    }
}

impl Engine {
    /// Returns a chunk of a large week, or does a step towards the first chunk. The copy may
    /// contain uncommitted changes: the caller must commit before it passes on a chunk.
    pub fn week_chunk<S: StateReader>(&mut self, source: &S, request: WeekChunkRequest) -> Result<WeekChunk, S::Error> {
        let current = self.large_week.take();
        let (large, after) = match request {
            WeekChunkRequest::First { week, server } => {
                let begun =
                    current.filter(|large| (large.week, large.server, large.first_chunk_sent) == (week, server, false));
                let Some(large) = self.prepare_step(source, week, server, begun)? else {
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
        if !self.global.is_kept(large.week.into()) {
            return Ok(WeekChunk::NotAvailable);
        }
        let (span, rows) = large.rows_after(after, self.global.settings.archive_chunk_rows);
        let week = self.week_archive(source, large.week, large.server, large.closed, span, rows)?;
        large.first_chunk_sent = true;
        let copy_id = large.copy_id;
        self.large_week = Some(large);
        Ok(WeekChunk::Chunk { copy_id, week: Box::new(week) })
    }

    /// Does one step: reads some rows, or sorts some. `None`: either there is more to do and
    /// the progress is kept, or the week was deleted and nothing is kept.
    fn prepare_step<S: StateReader>(
        &mut self,
        source: &S,
        week: WeekKey,
        server: ServerKey,
        begun: Option<LargeWeek>,
    ) -> Result<Option<LargeWeek>, S::Error> {
        let counted =
            self.server_state(server).is_some_and(|server_state| self.is_counted(server_state, week.into(), server));
        if !counted || !self.global.is_kept(week.into()) {
            return Ok(None);
        }
        let closed = self.is_server_closed(week, server);
        let mut large = match begun {
            // Rows of an open week differ from those of the closed one.
            Some(begun) if begun.closed == closed => begun,
            _ => {
                self.last_copy_id += 1;
                LargeWeek::new(week, server, self.server_orders(server), self.last_copy_id, closed)
            }
        };
        if !large.is_read {
            let most = self.global.settings.archive_chunk_rows;
            let page = self.rows_after(source, week.into(), server, large.last_read(), most)?;
            large.positions.push_rows(&page.rows);
            page.rows.iter().for_each(|(player, row)| large.rows.push(ArchiveRow::new(*player, row)));
            large.is_read = page.is_last;
        } else if !large.positions.is_complete() {
            large.positions.assign(POSITIONS_PER_STEP);
        } else {
            return Ok(Some(large));
        }
        self.large_week = Some(large);
        Ok(None)
    }
}
