//! The rows of one player on several servers, and their sum after one of them has changed.
//!
//! Names like `noob` are on thousands of servers at once. So the rows are the leaves of a tree, in which each node is the
//! sum of up to 8 below it. With 5,000 rows, a change of one computes 5 sums of up to 8 rows each.

use crate::model::ServerKey;
use crate::model::packed_row::PackedRow;
use crate::model::row::PlayerRow;

/// Most rows or sums that are added up to one sum.
const FAN_OUT: usize = 8;

/// A row is some 150 bytes.
#[derive(Debug)]
pub(super) struct KeptRows {
    /// In the order in which their rows were added: a search through 5,000 of them takes less time than one sum.
    servers: Vec<ServerKey>,
    /// The rows on these servers, then the sums of each [`FAN_OUT`] of the level before; the last level has at most
    /// [`FAN_OUT`].
    levels: Vec<Vec<PackedRow>>,
}

impl KeptRows {
    /// Of at least one row.
    pub fn new(rows: &[(ServerKey, PlayerRow)]) -> KeptRows {
        let leaves = rows.iter().map(|(_, row)| PackedRow::pack(row)).collect();
        let mut kept = KeptRows { servers: rows.iter().map(|(server, _)| *server).collect(), levels: vec![leaves] };
        kept.add_levels();
        kept
    }

    /// Adds levels of sums until the last is short enough.
    fn add_levels(&mut self) {
        while let Some(level) = self.levels.last().filter(|level| level.len() > FAN_OUT) {
            let sums =
                level.chunks(FAN_OUT).map(|rows| PackedRow::pack(&sum(rows.iter().map(PackedRow::unpack)))).collect();
            self.levels.push(sums);
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// The sum of all rows.
    pub fn sum(&self) -> PlayerRow {
        sum(self.levels.last().expect("there is a level").iter().map(PackedRow::unpack))
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = (ServerKey, &PackedRow)> {
        self.servers.iter().copied().zip(&self.levels[0])
    }

    /// Replaces the row on a server. Returns the sum of all rows; `None`: there is no row on the server.
    pub fn replace(&mut self, server: ServerKey, row: &PlayerRow) -> Option<PlayerRow> {
        let at = self.servers.iter().position(|known| *known == server)?;
        Some(self.set(at, row.clone()))
    }

    /// Adds the row on a server that has none. Returns the sum of all rows.
    pub fn add(&mut self, server: ServerKey, row: &PlayerRow) -> PlayerRow {
        self.servers.push(server);
        self.set(self.servers.len() - 1, row.clone());
        self.add_levels();
        self.sum()
    }

    /// Sets a row or adds it at the end, and computes the sums above it. Returns the sum of the last level's first
    /// [`FAN_OUT`]. What has just changed is not unpacked: nearly all players have a few rows, in one level.
    fn set(&mut self, mut at: usize, row: PlayerRow) -> PlayerRow {
        let mut changed = row;
        for level in &mut self.levels {
            let packed = PackedRow::pack(&changed);
            match level.get_mut(at) {
                Some(before) => *before = packed,
                None => level.push(packed),
            }
            let from = at / FAN_OUT * FAN_OUT;
            let (before, others) = level[from..].split_at(at - from);
            let after = others.iter().take(from + FAN_OUT - at).skip(1);
            let rows = before.iter().map(PackedRow::unpack).chain([changed]).chain(after.map(PackedRow::unpack));
            changed = sum(rows);
            at /= FAN_OUT;
        }
        changed
    }
}

fn sum(rows: impl Iterator<Item = PlayerRow>) -> PlayerRow {
    let sum = rows.reduce(|mut sum, row| {
        sum.merge(&row);
        sum
    });
    sum.expect("at least one row")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_is_that_of_all_rows() {
        let row = |server: u32, points: i64| {
            let mut row = PlayerRow { points, measured_ms: u64::from(server), ..PlayerRow::new(0, 0.0) };
            row.clq1_segments.insert(u64::from(server * 7 % 31), points);
            row
        };
        for count in [1_u32, 2, 7, 8, 9, 63, 64, 65, 100, 5_000] {
            // Not in order.
            let mut rows: Vec<_> = (0..count).rev().map(|n| (ServerKey(2 * n), row(n, 3))).collect();
            let mut kept = KeptRows::new(&rows);
            let check = |kept: &KeptRows, rows: &[(ServerKey, PlayerRow)]| {
                let expected = rows.iter().map(|(_, row)| row.clone()).reduce(|mut sum, row| {
                    sum.merge(&row);
                    sum
                });
                assert_eq!(Some(kept.sum()), expected, "{} rows", rows.len());
                assert_eq!(kept.len(), rows.len());
                assert!(kept.rows().map(|(server, row)| (server, row.unpack())).eq(rows.iter().cloned()));
            };
            check(&kept, &rows);
            for at in [0, count / 2, count - 1] {
                let server = rows[at as usize].0;
                rows[at as usize].1 = row(server.0, i64::from(at) + 9);
                let sum = kept.replace(server, &rows[at as usize].1);
                assert_eq!(sum, Some(kept.sum()));
                check(&kept, &rows);
            }
            assert_eq!(kept.replace(ServerKey(1), &row(1, 1)), None);
            for n in 0..20 {
                rows.push((ServerKey(2 * n + 1), row(n, 5)));
                assert_eq!(kept.add(ServerKey(2 * n + 1), &row(n, 5)), kept.sum());
                check(&kept, &rows);
            }
        }
    }
}
