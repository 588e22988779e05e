//! Player-count series: log code, packing, slots (docs/rules.md section 10).
//!
//! Pure functions. A series is a sequence of encoded means, oldest first; the start of its
//! newest slot is stored with it.

pub mod log_code;
pub mod slots;

use crate::model::ServerRecord;

/// The count that is assumed to be true: the median of the last three counts. With two counts it is
/// the smaller one, without any it is 0.
pub fn assumed_count(counts: &[u32]) -> u32 {
    match *counts {
        [] => 0,
        [a] => a,
        [a, b] => a.min(b),
        [a, b, c, ..] => a.max(b).min(a.min(b).max(c)),
    }
}

/// [`assumed_count`] of a server's record.
pub fn assumed_players(server: &ServerRecord) -> u32 {
    assumed_count(&server.counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assumed_count_is_the_median_of_three() {
        assert_eq!(assumed_count(&[]), 0);
        assert_eq!(assumed_count(&[7]), 7);
        assert_eq!(assumed_count(&[7, 3]), 3);
        for p in [[1, 5, 9], [9, 5, 1], [5, 1, 9], [5, 9, 1], [1, 9, 5], [9, 1, 5]] {
            assert_eq!(assumed_count(&p), 5, "{p:?}");
        }
        assert_eq!(assumed_count(&[4, 4, 0]), 4);
    }
}
