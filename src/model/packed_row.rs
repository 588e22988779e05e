//! A packed row, in the encoding of the store.

use super::row::PlayerRow;

/// More than any row needs: fourteen numbers, a flag, a rating and twice ten pairs of numbers.
const BYTES_MAX: usize = 560;

/// A [`PlayerRow`] packed to a fraction of its size: most numbers are small, and many fields are 0. Most of the millions of
/// pending rows do not change again, and unpacking one costs less than a cache miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedRow(Box<[u8]>);

impl PackedRow {
    pub fn pack(row: &PlayerRow) -> PackedRow {
        let mut bytes = [0; BYTES_MAX];
        let packed = postcard::to_slice(row, &mut bytes).expect("a row fits the buffer");
        PackedRow(Box::from(&*packed))
    }

    /// Reads the bytes of a packed row; `None`: they are none.
    pub fn read(bytes: &[u8]) -> Option<PlayerRow> {
        postcard::from_bytes(bytes).ok()
    }

    pub fn unpack(&self) -> PlayerRow {
        postcard::from_bytes(&self.0).expect("it was packed here")
    }

    /// The encoding that the store writes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::row::{TopTen, Uncertainty};

    #[test]
    fn largest_and_smallest_rows_round_trip() {
        let mut largest = PlayerRow::new(i64::MIN, f64::MAX);
        (largest.measured_ms, largest.starts, largest.points) = (u64::MAX, u32::MAX, i64::MIN);
        (largest.elo_rounds, largest.elo_rounds_sure) = (u32::MAX, u32::MAX);
        largest.uncertainty = Uncertainty {
            time_est_s2: u32::MAX,
            connected_difference_ms: i64::MIN,
            time_connected_s2: u32::MAX,
            points_est_thousandths: u64::MAX,
        };
        (largest.time_est_ms, largest.points_unseen_thousandths, largest.has_points) = (u64::MAX, u64::MAX, true);
        let mut ten = TopTen::default();
        (0..10).for_each(|n| ten.insert(u64::MAX - n, i64::MIN));
        (largest.clq1_segments, largest.clq2_games) = (ten.clone(), ten);
        for row in [largest, PlayerRow::new(0, 1000.0)] {
            assert_eq!(PackedRow::pack(&row).unpack(), row);
        }
    }
}
