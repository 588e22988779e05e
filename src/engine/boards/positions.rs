//! Computes positions of a server's rows in some rankings, in steps of any size: rows are added
//! in pages and sorted in steps.
//!
//! A server has some hundreds of rows a week; a server that invents players can have millions.
//! So each page of rows is sorted into a run, and the runs are merged with a heap. No step
//! takes longer than its size allows, and nothing of that size is copied to grow.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::board::order::{OrderKey, Orders};
use crate::engine::chunked_vec::ChunkedVec;
use crate::model::PlayerKey;
use crate::model::archive::step_spacing;
use crate::model::row::{PlayerRow, Ranking};

#[derive(Debug)]
pub(in crate::engine) struct PositionBuilder<const N: usize> {
    orders: Orders,
    rankings: [Ranking; N],
    /// The index of a row replaces its player key: rows are added in order of player key.
    runs: [SortedRuns<OrderKey>; N],
    /// By row index; 0: absent.
    positions: ChunkedVec<[u32; N], ROWS_PER_CHUNK>,
    sizes: [u32; N],
    steps: Vec<Step>,
    /// The ranking that is being sorted, and its next position.
    at: usize,
    next: u32,
}

/// The row at a position, every [`step_spacing`] positions.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Step {
    pub ranking: Ranking,
    pub position: u32,
    pub row_index: usize,
}

impl<const N: usize> PositionBuilder<N> {
    /// For a server whose boards have these orders.
    pub fn new(orders: Orders, rankings: [Ranking; N]) -> PositionBuilder<N> {
        let runs = std::array::from_fn(|_| SortedRuns::default());
        let positions = ChunkedVec::default();
        PositionBuilder { orders, rankings, runs, positions, sizes: [0; N], steps: Vec::new(), at: 0, next: 1 }
    }

    /// Adds the next rows, in order of player key.
    pub fn push_rows(&mut self, rows: &[(PlayerKey, PlayerRow)]) {
        let first = self.positions.len() as u32;
        for (at, ranking) in self.rankings.into_iter().enumerate() {
            let numbered = (first..).zip(rows);
            let key = |(number, (_, row)): (u32, &(PlayerKey, PlayerRow))| {
                let entry = self.orders.entry(PlayerKey(number), row, ranking)?;
                Some(self.orders.sort_key(ranking, &entry))
            };
            let run: Vec<OrderKey> = numbered.filter_map(key).collect();
            self.sizes[at] += run.len() as u32;
            self.runs[at].push(run);
        }
        rows.iter().for_each(|_| self.positions.push([0; N]));
    }

    /// Assigns at most `most` positions, once all rows are added. Returns how many; fewer than
    /// `most`: there are no more.
    pub fn assign(&mut self, most: usize) -> usize {
        let mut assigned = 0;
        while assigned < most && self.at < N {
            match self.runs[self.at].next() {
                Some((.., number)) => {
                    let row_index = number.0 as usize;
                    self.positions[row_index][self.at] = self.next;
                    if (self.next - 1).is_multiple_of(step_spacing(self.sizes[self.at])) {
                        self.steps.push(Step { ranking: self.rankings[self.at], position: self.next, row_index });
                    }
                    self.next += 1;
                    assigned += 1;
                }
                None => {
                    self.runs[self.at] = SortedRuns::default();
                    (self.at, self.next) = (self.at + 1, 1);
                }
            }
        }
        assigned
    }

    /// Whether every added row has its positions.
    pub fn is_complete(&self) -> bool {
        self.at == N
    }

    /// Rows on each board.
    pub fn sizes(&self) -> [u32; N] {
        self.sizes
    }

    /// In order of ranking and position, once all positions are assigned.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Positions of the row with this index, in the order of the rankings; `None`: absent.
    pub fn get(&self, number: usize) -> [Option<u32>; N] {
        self.positions[number].map(|position| (position > 0).then_some(position))
    }
}

/// Rows in a chunk of a [`ChunkedVec`]: about 100 kB of values of rows.
pub(in crate::engine) const ROWS_PER_CHUNK: usize = 2_048;

/// Merges sorted runs.
#[derive(Debug)]
struct SortedRuns<T> {
    runs: Vec<Vec<T>>,
    /// The next value of each run that has one, with the run and its index in the run.
    heads: BinaryHeap<Reverse<(T, u32, u32)>>,
}

impl<T: Ord> Default for SortedRuns<T> {
    fn default() -> SortedRuns<T> {
        SortedRuns { runs: Vec::new(), heads: BinaryHeap::new() }
    }
}

impl<T: Ord + Copy> SortedRuns<T> {
    fn push(&mut self, mut run: Vec<T>) {
        run.sort_unstable();
        run.shrink_to_fit();
        if let Some(&first) = run.first() {
            self.heads.push(Reverse((first, self.runs.len() as u32, 0)));
            self.runs.push(run);
        }
    }

    fn next(&mut self) -> Option<T> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((value, run, index)) = *head;
        match self.runs[run as usize].get(index as usize + 1) {
            Some(&next) => *head = Reverse((next, run, index + 1)),
            None => {
                PeekMut::pop(head);
                self.runs[run as usize] = Vec::new();
            }
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with many ties, and some that are absent from rankings.
    fn rows(n: u32) -> Vec<(PlayerKey, PlayerRow)> {
        let mut seed = 5_u64;
        let mut below = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        let mut row = |n: u32| {
            let mut row = PlayerRow::new(below(3) as i64, 1000.0 + below(5) as f64);
            (row.elo_rounds, row.elo_at_ms, row.points) = (below(2) as u32, below(3) as i64, below(9) as i64 - 3);
            row.has_points = below(4) > 0;
            row.clq1_segments.insert(below(20), below(3) as i64);
            row.clq2_games.insert(below(4), below(3) as i64);
            (PlayerKey(n * 3), row)
        };
        (1..=n).map(&mut row).collect()
    }

    #[test]
    fn positions_in_steps_equal_positions_at_once() {
        let rows = rows(ROWS_PER_CHUNK as u32 + 900);
        let low = ["clq1", "elo"].map(|text| text.parse().unwrap());
        let orders = Orders::for_scope(&low, &["clq2 elo".parse().unwrap()], None);
        let want = orders.positions(&rows);
        for (page, step) in [(1, 7), (17, 1), (1_000, 1_000), (rows.len(), usize::MAX)] {
            let mut positions = PositionBuilder::new(orders, Ranking::ALL);
            rows.chunks(page).for_each(|rows| positions.push_rows(rows));
            let mut steps = 0;
            while !positions.is_complete() {
                assert!(positions.assign(step) <= step);
                steps += 1;
            }
            let assigned = want.iter().flatten().flatten().count();
            assert!(steps >= assigned / step, "{steps} steps of {step} for {assigned} positions");
            let got: Vec<_> = (0..positions.positions.len()).map(|number| positions.get(number)).collect();
            assert_eq!(got, want, "pages of {page}");
        }
    }

    #[test]
    fn no_rows_have_no_positions() {
        let mut positions = PositionBuilder::new(Orders::default(), Ranking::WITH_BEST_POSITIONS);
        positions.push_rows(&[]);
        assert!(!positions.is_complete());
        assert_eq!((positions.assign(1), positions.is_complete()), (0, true));
    }
}
