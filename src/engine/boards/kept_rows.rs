//! The rows of one player on several servers, and their sum after one of them has changed.
//!
//! Names like `noob` are on thousands of servers at once. So the rows are the leaves of a tree, in which each node is the
//! sum of up to 16 below it. With 5,000 rows, a change of one computes 4 sums of up to 16 rows each.

use crate::model::ServerKey;
use crate::model::packed_row::PackedRow;
use crate::model::row::PlayerRow;

/// Most rows or sums that are added up to one sum.
const FAN_OUT: usize = 16;

/// A row is some 150 bytes.
#[derive(Debug)]
pub(super) struct KeptRows {
    /// In order.
    servers: Box<[ServerKey]>,
    /// The rows on these servers, then the sums of each [`FAN_OUT`] of the level before; the last level has at most
    /// [`FAN_OUT`].
    levels: Vec<Box<[PackedRow]>>,
}

impl KeptRows {
    /// Of at least one row.
    pub fn new(mut rows: Vec<(ServerKey, PlayerRow)>) -> KeptRows {
        rows.sort_unstable_by_key(|(server, _)| *server);
        let mut level: Box<[PackedRow]> = rows.iter().map(|(_, row)| PackedRow::pack(row)).collect();
        let mut levels = Vec::with_capacity(1);
        while level.len() > FAN_OUT {
            let sums = level.chunks(FAN_OUT).map(|rows| PackedRow::pack(&sum(rows))).collect();
            levels.push(std::mem::replace(&mut level, sums));
        }
        levels.push(level);
        KeptRows { servers: rows.into_iter().map(|(server, _)| server).collect(), levels }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Replaces the row on a server. Returns the sum of all rows; `None`: there is none on this server.
    pub fn replace(&mut self, server: ServerKey, row: &PlayerRow) -> Option<PlayerRow> {
        let mut at = self.servers.binary_search(&server).ok()?;
        let mut changed = PackedRow::pack(row);
        let (top, below) = self.levels.split_last_mut()?;
        for level in below {
            level[at] = changed;
            at /= FAN_OUT;
            changed = PackedRow::pack(&sum(level.chunks(FAN_OUT).nth(at)?));
        }
        top[at] = changed;
        Some(sum(top))
    }
}

fn sum(rows: &[PackedRow]) -> PlayerRow {
    let rows = rows.iter().map(PackedRow::unpack);
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
        for count in [1_u32, 2, 15, 16, 17, 100, 256, 257, 5_000] {
            let row = |server: u32, points: i64| {
                let mut row = PlayerRow { points, measured_ms: u64::from(server), ..PlayerRow::new(0, 0.0) };
                row.clq1_segments.insert(u64::from(server * 7 % 31), points);
                row
            };
            // Not in order.
            let mut rows: Vec<_> = (0..count).rev().map(|n| (ServerKey(2 * n), row(n, 3))).collect();
            let mut kept = KeptRows::new(rows.clone());
            assert_eq!(kept.len(), count as usize);
            for at in [0, count / 2, count - 1] {
                let server = rows[at as usize].0;
                rows[at as usize].1 = row(server.0, i64::from(at) + 9);
                let expected = rows.iter().map(|(_, row)| row.clone()).reduce(|mut sum, row| {
                    sum.merge(&row);
                    sum
                });
                assert_eq!(kept.replace(server, &rows[at as usize].1), expected, "{count} rows, {at}");
            }
            assert_eq!(kept.replace(ServerKey(1), &row(1, 1)), None);
        }
    }
}
