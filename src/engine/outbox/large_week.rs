//! A server's week with more rows than go in one job of the archive. Its rows are
//! read and put in order some at a time, and then handed out in parts.
//!
//! Scores and positions of one server are of one moment in the archive (RULES
//! section 12), and the world goes on while the parts are asked for. So what the
//! archive shows of a row is kept here, about 100 bytes of it, until all of it is
//! written: positions are those of just these scores. A row is of the moment at
//! which it was read, so rows may be some seconds apart. What changes meanwhile is
//! in the outbox anew. Nothing here is stored: after a crash the week is still in
//! the outbox, and is asked for from the first part again.

use super::super::{Engine, StateReader};
use crate::board::order::Orders;
use crate::engine::boards::positions::{ChunkedVec, PositionBuilder};
use crate::model::archive::{PartRequest, PlayerKeyRange, PlayerWeekArchive, WeekChunk};
use crate::model::row::{PlayerRow, Ranking};
use crate::model::{PlayerKey, ServerKey, WeekKey};

/// Positions that are given in one step: some milliseconds.
const POSITIONS_PER_STEP: usize = 20_000;

#[derive(Debug)]
pub(in super::super) struct LargeWeek {
    pub(in crate::engine::outbox) week: WeekKey,
    pub(in crate::engine::outbox) server: ServerKey,
    /// Tells these parts from those of any other moment.
    moment: u64,
    closed: bool,
    rows: ChunkedVec<ArchiveRow>,
    positions: PositionBuilder<5>,
    is_read: bool,
    /// The first part was handed out.
    is_out: bool,
}

/// What the archive shows of a row.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::outbox) struct ArchiveRow {
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
    pub(in crate::engine::outbox) fn new(player: PlayerKey, row: &PlayerRow) -> ArchiveRow {
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

    pub(in crate::engine::outbox) fn archived(self, positions: [Option<u32>; 5]) -> PlayerWeekArchive {
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
    fn new(week: WeekKey, server: ServerKey, orders: Orders, moment: u64, closed: bool) -> LargeWeek {
        LargeWeek {
            week,
            server,
            moment,
            closed,
            rows: ChunkedVec::default(),
            positions: PositionBuilder::new(orders, Ranking::ALL),
            is_read: false,
            is_out: false,
        }
    }

    fn last_read(&self) -> Option<PlayerKey> {
        self.rows.len().checked_sub(1).map(|last| self.rows.get(last).player)
    }

    /// The next rows after a player, at most so many, and who they are.
    fn rows_after(&self, after: Option<PlayerKey>, most: usize) -> (PlayerKeyRange, Vec<PlayerWeekArchive>) {
        let from = after.map_or(0, |after| self.rows.partition_point(|kept| kept.player <= after));
        let to = self.rows.len().min(from.saturating_add(most));
        let rows = (from..to).map(|at| self.rows.get(at).archived(self.positions.of(at)));
        let rows: Vec<PlayerWeekArchive> = rows.collect();
        let through = rows.last().map(|row| row.player).filter(|_| to < self.rows.len());
        (PlayerKeyRange { after, through }, rows)
    }
}

impl Engine {
    /// A part of a long week, or a step towards the first. It takes in what is not
    /// committed: before a part is handed on, there must be nothing such.
    pub fn week_part<S: StateReader>(&mut self, source: &S, ask: PartRequest) -> Result<WeekChunk, S::Error> {
        let at_hand = self.large_week.take();
        let (long, after) = match ask {
            PartRequest::First { week, server } => {
                let begun = at_hand.filter(|long| (long.week, long.server, long.is_out) == (week, server, false));
                let Some(long) = self.prepare_step(source, week, server, begun)? else {
                    return Ok(match self.large_week {
                        Some(_) => WeekChunk::Preparing,
                        None => WeekChunk::Gone,
                    });
                };
                (Some(long), None)
            }
            PartRequest::Next { moment, after } => (at_hand.filter(|long| long.moment == moment && long.is_out), after),
            PartRequest::Done { moment } => {
                self.large_week = at_hand.filter(|long| long.moment != moment);
                return Ok(WeekChunk::Gone);
            }
        };
        let Some(mut long) = long else { return Ok(WeekChunk::Gone) };
        if !self.global.is_kept(long.week.into()) {
            return Ok(WeekChunk::Gone);
        }
        let (span, rows) = long.rows_after(after, self.global.settings.archive_part_rows);
        let week = self.week_archive(source, long.week, long.server, long.closed, span, rows)?;
        long.is_out = true;
        let moment = long.moment;
        self.large_week = Some(long);
        Ok(WeekChunk::Part { moment, week: Box::new(week) })
    }

    /// One step: reads some rows, or puts some in order. `None`: there is more to do,
    /// and what is done so far is kept; or the week is gone, and nothing is.
    fn prepare_step<S: StateReader>(
        &mut self,
        source: &S,
        week: WeekKey,
        server: ServerKey,
        begun: Option<LargeWeek>,
    ) -> Result<Option<LargeWeek>, S::Error> {
        let counted = self.server_state(server).is_some_and(|slot| self.is_counted(slot, week.into(), server));
        if !counted || !self.global.is_kept(week.into()) {
            return Ok(None);
        }
        let closed = self.is_server_closed(week, server);
        let mut long = match begun {
            // Rows of a week that was open are not those of the closed one.
            Some(begun) if begun.closed == closed => begun,
            _ => {
                self.large_week_reads += 1;
                LargeWeek::new(week, server, self.server_orders(server), self.large_week_reads, closed)
            }
        };
        if !long.is_read {
            let most = self.global.settings.archive_part_rows;
            let portion = self.rows_after(source, week.into(), server, long.last_read(), most)?;
            long.positions.read(&portion.rows);
            portion.rows.iter().for_each(|(player, row)| long.rows.push(ArchiveRow::new(*player, row)));
            long.is_read = portion.is_last;
        } else if !long.positions.are_given() {
            long.positions.give(POSITIONS_PER_STEP);
        } else {
            return Ok(Some(long));
        }
        self.large_week = Some(long);
        Ok(None)
    }
}
