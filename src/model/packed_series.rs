//! A server's series in memory and in the state directory, with runs of equal bytes packed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::server::SeriesRecord;

/// A [`SeriesRecord`] of 1.7 kB takes a few hundred bytes: most servers are empty most of the time, and few have been
/// known for a year. With 1,000,000 servers this saves up to 1.4 GB of memory, and as much that checkpoints would write. The
/// series is unpacked when a slot ends, every 10 minutes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "PackedBytes", try_from = "PackedBytes")]
pub struct PackedSeries(Arc<[u8]>);

#[derive(Serialize, Deserialize)]
struct PackedBytes(#[serde(with = "super::byte_list")] Vec<u8>);

impl From<PackedSeries> for PackedBytes {
    fn from(PackedSeries(packed): PackedSeries) -> PackedBytes {
        PackedBytes(packed.to_vec())
    }
}

impl TryFrom<PackedBytes> for PackedSeries {
    type Error = &'static str;

    fn try_from(PackedBytes(packed): PackedBytes) -> Result<PackedSeries, &'static str> {
        match decode(&packed) {
            Some(_) => Ok(PackedSeries(packed.into())),
            None => Err("not a packed series"),
        }
    }
}

impl PackedSeries {
    pub fn pack(series: &SeriesRecord) -> PackedSeries {
        let bytes = postcard::to_stdvec(series).expect("a series has bytes");
        PackedSeries(pack_runs(&bytes).into())
    }

    pub fn unpack(&self) -> SeriesRecord {
        decode(&self.0).expect("it was packed here")
    }

    /// Changes the series. `change` returns whether it did.
    pub fn change(&mut self, change: impl FnOnce(&mut SeriesRecord) -> bool) -> bool {
        let mut series = self.unpack();
        let is_changed = change(&mut series);
        if is_changed {
            *self = PackedSeries::pack(&series);
        }
        is_changed
    }
}

fn decode(packed: &[u8]) -> Option<SeriesRecord> {
    postcard::from_bytes(&unpack_runs(packed)?).ok()
}

/// Shorter runs are not worth their byte.
const RUN_MIN: usize = 3;
const RUN_MAX: usize = RUN_MIN + 0x7f;
const OTHERS_MAX: usize = 0x80;

/// For each run a byte from 0x80 on, for its length, and the byte that is repeated; for up to 128 other bytes one less
/// than their number, and they.
fn pack_runs(bytes: &[u8]) -> Vec<u8> {
    let run_at = |at: usize| bytes[at..].iter().take(RUN_MAX).take_while(|byte| **byte == bytes[at]).count();
    let mut packed = Vec::with_capacity(bytes.len() / 4);
    let mut at = 0;
    while at < bytes.len() {
        let run = run_at(at);
        if run >= RUN_MIN {
            packed.extend([0x80 + (run - RUN_MIN) as u8, bytes[at]]);
            at += run;
            continue;
        }
        let begin = at;
        while at < bytes.len() && at - begin < OTHERS_MAX && run_at(at) < RUN_MIN {
            at += 1;
        }
        packed.push((at - begin - 1) as u8);
        packed.extend(&bytes[begin..at]);
    }
    packed
}

/// `None`: the bytes are not those of [`pack_runs`].
fn unpack_runs(mut packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(2_048);
    while let [head, rest @ ..] = packed {
        packed = match head.checked_sub(0x80) {
            Some(more) => {
                let (repeated, rest) = rest.split_first()?;
                bytes.resize(bytes.len() + RUN_MIN + usize::from(more), *repeated);
                rest
            }
            None => {
                let (others, rest) = rest.split_at_checked(usize::from(*head) + 1)?;
                bytes.extend(others);
                rest
            }
        };
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_round_trip(runs in prop::collection::vec((0_u8..4, 1_usize..300), 0..40)) {
            let bytes: Vec<u8> = runs.iter().flat_map(|&(byte, len)| std::iter::repeat_n(byte, len % 140)).collect();
            prop_assert_eq!(unpack_runs(&pack_runs(&bytes)), Some(bytes));
        }

        #[test]
        fn any_bytes_grow_little(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
            let packed = pack_runs(&bytes);
            prop_assert!(packed.len() <= bytes.len() + bytes.len() / 64 + 1);
            prop_assert_eq!(unpack_runs(&packed), Some(bytes));
        }
    }

    #[test]
    fn series_are_changed_and_take_little() {
        let series = SeriesRecord {
            newest_ten_minutes_ms: 1_764_547_200_000,
            newest_hour_ms: 1_764_547_200_000,
            newest_day_ms: 0,
            newest_week_ms: 0,
            ten_minutes: vec![0xff; 244],
            hours: vec![0; 768],
            days: vec![0; 365],
            weeks: Vec::new(),
            ranks: vec![0; 110],
            newest_rank_week: None,
        };
        let mut packed = PackedSeries::pack(&series);
        assert_eq!(packed.unpack(), series);
        assert!(packed.0.len() < 100, "{} bytes", packed.0.len());
        let stored = postcard::to_stdvec(&packed).unwrap();
        assert_eq!(postcard::from_bytes::<PackedSeries>(&stored).unwrap(), packed);
        let damaged = (0..packed.0.len()).map(|len| PackedBytes(packed.0[..len].to_vec()));
        assert!(damaged.into_iter().all(|bytes| PackedSeries::try_from(bytes).is_err()));
        let before = packed.clone();
        assert!(!packed.change(|_| false) && packed == before);
        assert!(packed.change(|series| {
            series.weeks.push(7);
            true
        }));
        assert_eq!((packed.unpack().weeks, before.unpack().weeks), (vec![7], vec![]));
    }
}
