//! The archived values of a server's week: copied from its rows, sorted for positions, and
//! returned with the steps of its boards.
//!
//! In the archive, scores and positions of one server must be consistent (docs/rules.md section
//! 12). All rows are read, because the steps follow from all, but only changed rows are returned.

use super::changes::ChangedRows;
use crate::board::order::Orders;
use crate::board::{Score, scores};
use crate::engine::boards::positions::{PositionBuilder, ROWS_PER_CHUNK};
use crate::engine::chunked_vec::ChunkedVec;
use crate::model::archive::{BoardOrder, BoardPlace, BoardStep, PlayerKeyRange, PlayerWeekArchive, WeekChecksum};
use crate::model::row::{PlayerRow, Ranking, TopTen, Uncertainty};
use crate::model::{PlayerKey, ServerKey, WeekKey};

#[derive(Debug)]
pub(super) struct WeekRows {
    week: WeekKey,
    server: ServerKey,
    /// The week is closed on the server: its rows have positions, and there are no steps.
    pub closed: bool,
    /// The rows that are returned.
    pub changed: ChangedRows,
    orders: Orders,
    rows: ChunkedVec<ArchiveRow, ROWS_PER_CHUNK>,
    positions: PositionBuilder<5>,
    /// Of a closed week, and the rows that it has.
    checksum: (WeekChecksum, usize),
}

impl WeekRows {
    pub fn new((week, server): (WeekKey, ServerKey), orders: Orders, closed: bool, changed: ChangedRows) -> WeekRows {
        let positions = PositionBuilder::new(orders, Ranking::ALL);
        WeekRows {
            week,
            server,
            closed,
            changed,
            orders,
            rows: ChunkedVec::default(),
            positions,
            checksum: (WeekChecksum::default(), 0),
        }
    }

    /// Adds the next rows, in order of player key.
    pub fn push_rows(&mut self, rows: &[(PlayerKey, PlayerRow)]) {
        self.positions.push_rows(rows);
        for (player, row) in rows {
            // Only changed rows are returned.
            let ten_best = (self.changed.has_player(*player))
                .then(|| Box::new([row.clq1_segments.clone(), row.clq2_games.clone()]));
            self.rows.push(ArchiveRow::new(*player, row, ten_best));
        }
    }

    pub fn last_read(&self) -> Option<PlayerKey> {
        self.rows.len().checked_sub(1).map(|last| self.rows[last].player)
    }

    /// Assigns at most `most` positions, once all rows are added. Returns whether all are
    /// assigned.
    pub fn assign_positions(&mut self, most: usize) -> bool {
        self.positions.assign(most);
        if !self.positions.is_complete() || !self.closed {
            return self.positions.is_complete();
        }
        let (mut checksum, from) = self.checksum;
        let until = from.saturating_add(most).min(self.rows.len());
        for at in from..until {
            let row = self.rows[at].to_archive([const { None }; 5]);
            checksum.add(self.week, self.server, &row, self.positions.get(at));
        }
        self.checksum = (checksum, until);
        until == self.rows.len()
    }

    /// Of a closed week with rows.
    pub fn checksum(&self) -> Option<u32> {
        (self.closed && !self.rows.is_empty()).then_some(self.checksum.0.0)
    }

    /// Players on each board.
    pub fn board_sizes(&self) -> [u32; 5] {
        self.positions.sizes()
    }

    /// The steps of all boards.
    pub fn steps(&self) -> Vec<BoardStep> {
        if self.closed {
            return Vec::new();
        }
        let step = |step: &crate::engine::boards::positions::Step| {
            let row = &self.rows[step.row_index];
            let entry = self.orders.entry_of(row.player, |ranking| row.score(ranking), step.ranking)?;
            let order = self.orders.key_bytes(step.ranking, self.orders.sort_key(step.ranking, &entry));
            Some(BoardStep { ranking: step.ranking, position: step.position, order })
        };
        self.positions.steps().iter().filter_map(step).collect()
    }

    /// Returns at most `most` changed rows after a player, and the range that they were taken
    /// from.
    pub fn rows_after(&self, after: Option<PlayerKey>, most: usize) -> (PlayerKeyRange, Vec<PlayerWeekArchive>) {
        let from = after.map_or(0, |after| self.rows.partition_point(|kept| kept.player <= after));
        let mut rows = Vec::new();
        for at in from..self.rows.len() {
            let row = &self.rows[at];
            if !self.changed.has_player(row.player) {
                continue;
            }
            rows.push(row.to_archive(self.places(at)));
            if rows.len() == most && at + 1 < self.rows.len() {
                return (PlayerKeyRange { after, through: Some(row.player) }, rows);
            }
        }
        (PlayerKeyRange { after, through: None }, rows)
    }

    fn places(&self, at: usize) -> [Option<BoardPlace>; 5] {
        let (row, positions) = (&self.rows[at], self.positions.get(at));
        Ranking::ALL.map(|ranking| {
            let entry = self.orders.entry_of(row.player, |ranking| row.score(ranking), ranking)?;
            let order = match positions[ranking as usize] {
                Some(position) if self.closed => BoardOrder::Position(position),
                _ => BoardOrder::SortKey(self.orders.key_bytes(ranking, self.orders.sort_key(ranking, &entry))),
            };
            Some(BoardPlace { reached_ms: entry.at_ms, order })
        })
    }
}

/// The archived values of a row.
#[derive(Clone, Debug)]
struct ArchiveRow {
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
    elo_rounds_sure: u32,
    uncertainty: Uncertainty,
    /// In the order of `Ranking::ALL`; `None`: absent from the board.
    scores: [Option<(Score, i64)>; 5],
    ten_best: Option<Box<[TopTen; 2]>>,
}

impl ArchiveRow {
    fn new(player: PlayerKey, row: &PlayerRow, ten_best: Option<Box<[TopTen; 2]>>) -> ArchiveRow {
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
            elo_rounds_sure: row.elo_rounds_sure,
            uncertainty: row.uncertainty,
            scores: scores(row),
            ten_best,
        }
    }

    fn score(&self, ranking: Ranking) -> Option<(Score, i64)> {
        self.scores[ranking as usize]
    }

    fn to_archive(&self, places: [Option<BoardPlace>; 5]) -> PlayerWeekArchive {
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
            elo_rounds_sure: self.elo_rounds_sure,
            uncertainty: self.uncertainty,
            clq1: self.clq1,
            clq2: self.clq2,
            places,
            ten_best: self.ten_best.clone(),
        }
    }
}
