//! The leaf codec: neighbouring records in one sled record.
//!
//! Sled 0.34 takes some 6 us to write a record, however small: it copies the node, links
//! the change, and splits nodes of more than 16 records. A player row is 60 bytes, and a
//! week of all players has tens of millions of rows. So small neighbouring records share
//! leaves of up to [`BYTES_MAX`]; writing a leaf costs as much as writing one record.
//! Larger leaves would make a change of one record expensive, because its whole leaf is
//! written again.
//!
//! Layout: `(suffix len, suffix, value len, value)*` in order of suffix, the lengths as
//! varints. The suffix is the key without the prefix that all keys of the group share. Pure
//! functions on bytes; `tree` decides under which key a leaf is stored.

use crate::model::varint::{Cursor, put_u64};

/// A leaf that would be larger is split, unless it is a single record.
pub(in crate::store) const BYTES_MAX: usize = 2048;

/// A record of a leaf: the suffix of its key, and its value.
pub(in crate::store) type Record<'l> = (&'l [u8], &'l [u8]);

/// A change of a record: the suffix of its key, and its new value; `None`: it is deleted.
pub(in crate::store) type Change<'c> = (&'c [u8], Option<&'c [u8]>);

/// A leaf to write: its first suffix, and its bytes.
pub(in crate::store) type NewLeaf = (Vec<u8>, Vec<u8>);

/// The bytes are not a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct MalformedLeaf;

/// The records of a leaf, in order.
#[derive(Clone, Debug)]
pub(in crate::store) struct Records<'l> {
    left: Cursor<'l>,
}

pub(in crate::store) fn records(leaf: &[u8]) -> Records<'_> {
    Records { left: Cursor::new(leaf) }
}

impl<'l> Records<'l> {
    fn read_bytes(&mut self) -> Option<&'l [u8]> {
        let len = usize::try_from(self.left.u64()?).ok()?;
        self.left.bytes(len)
    }
}

impl<'l> Iterator for Records<'l> {
    type Item = Result<Record<'l>, MalformedLeaf>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let record = match (self.read_bytes(), self.read_bytes()) {
            (Some(suffix), Some(value)) => Ok((suffix, value)),
            _ => {
                self.left = Cursor::new(&[]);
                Err(MalformedLeaf)
            }
        };
        Some(record)
    }
}

/// The value of a record.
pub(in crate::store) fn find<'l>(leaf: &'l [u8], suffix: &[u8]) -> Result<Option<&'l [u8]>, MalformedLeaf> {
    for record in records(leaf) {
        let (at, value) = record?;
        if at >= suffix {
            return Ok((at == suffix).then_some(value));
        }
    }
    Ok(None)
}

/// Applies changes, in order of suffix and each suffix once, to a leaf. Returns the leaves
/// that replace it, none if no record remains. `header` is put before each.
pub(in crate::store) fn apply_changes(
    leaf: &[u8],
    changes: &[Change<'_>],
    header: &[u8],
) -> Result<Vec<NewLeaf>, MalformedLeaf> {
    let mut merged: Vec<Record<'_>> = Vec::with_capacity(64 + changes.len());
    let mut remaining = changes.iter().peekable();
    for record in records(leaf) {
        let (suffix, value) = record?;
        while let Some((new, value)) = remaining.next_if(|(new, _)| *new < suffix) {
            merged.extend(value.map(|value| (*new, value)));
        }
        match remaining.next_if(|(new, _)| *new == suffix) {
            Some((_, value)) => merged.extend(value.map(|value| (suffix, value))),
            None => merged.push((suffix, value)),
        }
    }
    // Increasing keys are appended. A full leaf then stays full; splitting it in halves
    // would leave halves that are never filled.
    let appended = merged.len();
    merged.extend(remaining.filter_map(|(suffix, value)| value.map(|value| (*suffix, value))));
    let total: usize = merged.iter().map(|record| encoded_len(*record)).sum();
    let target_len = match appended > 0 && appended + changes.len() == merged.len() {
        true => BYTES_MAX,
        false => total.div_ceil(total.div_ceil(BYTES_MAX).max(1)),
    };
    let mut leaves: Vec<NewLeaf> = Vec::new();
    for record in merged {
        let has_space = |(_, leaf): &&mut NewLeaf| {
            let len = leaf.len() - header.len();
            len < target_len && len + encoded_len(record) <= BYTES_MAX
        };
        let leaf = match leaves.last_mut().filter(has_space) {
            Some((_, leaf)) => leaf,
            None => {
                let mut leaf = Vec::with_capacity(header.len() + BYTES_MAX.min(total));
                leaf.extend_from_slice(header);
                leaves.push((record.0.to_owned(), leaf));
                &mut leaves.last_mut().expect("was just pushed").1
            }
        };
        push(leaf, record);
    }
    Ok(leaves)
}

/// Appends a record to a leaf.
pub(in crate::store) fn push(leaf: &mut Vec<u8>, (suffix, value): Record<'_>) {
    for bytes in [suffix, value] {
        put_u64(leaf, bytes.len() as u64);
        leaf.extend_from_slice(bytes);
    }
}

/// Bytes of a record in a leaf.
fn encoded_len((suffix, value): Record<'_>) -> usize {
    let varint = |len: usize| (usize::BITS - len.leading_zeros()).div_ceil(7).max(1) as usize;
    varint(suffix.len()) + suffix.len() + varint(value.len()) + value.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const HEAD: &[u8] = &[9];

    fn read(leaf: &[u8]) -> Vec<Record<'_>> {
        records(leaf).map(|record| record.expect("a valid leaf")).collect()
    }

    proptest::proptest! {
        /// Applies changes to a leaf, and to the leaves that it is split into, compared
        /// with a map.
        #[test]
        fn leaf_changes_equal_a_btree_map(
            rounds in proptest::collection::vec(
                proptest::collection::btree_map("[a-f]{0,3}", proptest::option::of(0_usize..3000), 0..40),
                1..6,
            ),
        ) {
            // The first leaf covers everything before the second, like the first leaf of a
            // group.
            let mut leaves: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            let mut map = BTreeMap::new();
            for (n, round) in rounds.iter().enumerate() {
                let changes: Vec<(Vec<u8>, Option<Vec<u8>>)> = round
                    .iter()
                    .map(|(key, len)| (key.clone().into_bytes(), len.map(|len| vec![n as u8; len % (7 + 900 * (n % 2))])))
                    .collect();
                let mut remaining = changes.iter().peekable();
                while let Some((first, _)) = remaining.peek() {
                    let fence = leaves.range(..=first.clone()).next_back().map_or(Vec::new(), |(fence, _)| fence.clone());
                    let leaf = leaves.remove(&fence).unwrap_or_else(|| HEAD.to_vec());
                    let end = leaves.range(fence.clone()..).next().map(|(end, _)| end.clone());
                    let mut of_leaf: Vec<Change<'_>> = Vec::new();
                    while let Some((key, value)) = remaining.next_if(|(key, _)| end.as_ref().is_none_or(|end| key < end)) {
                        of_leaf.push((key, value.as_deref()));
                    }
                    let replaced = apply_changes(&leaf[HEAD.len()..], &of_leaf, HEAD).expect("a valid leaf");
                    for (n, (first, leaf)) in replaced.into_iter().enumerate() {
                        let is_single = read(&leaf[HEAD.len()..]).len() == 1;
                        proptest::prop_assert!(leaf.len() <= HEAD.len() + BYTES_MAX || is_single);
                        leaves.insert(if n == 0 { fence.clone() } else { first }, leaf);
                    }
                }
                for (key, value) in changes {
                    match value {
                        Some(value) => _ = map.insert(key, value),
                        None => _ = map.remove(&key),
                    }
                }
                let found: Vec<_> = leaves.values().flat_map(|leaf| read(&leaf[HEAD.len()..])).collect();
                let want: Vec<Record<'_>> = map.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
                proptest::prop_assert_eq!(found, want);
                for (key, value) in &map {
                    let (_, leaf) = leaves.range(..=key.clone()).next_back().expect("a leaf covers every key");
                    proptest::prop_assert_eq!(find(&leaf[HEAD.len()..], key), Ok(Some(value.as_slice())));
                }
            }
        }

        /// Records read from arbitrary bytes are no longer than the bytes.
        #[test]
        fn arbitrary_bytes_are_read_within_bounds(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
            let all: Result<Vec<_>, MalformedLeaf> = records(&bytes).collect();
            if let Ok(all) = all {
                let sum: usize = all.iter().map(|record| encoded_len(*record)).sum();
                proptest::prop_assert!(sum <= bytes.len());
            }
        }

        /// A leaf cut inside a record, and a leaf with a length beyond its end.
        #[test]
        fn truncated_or_overlong_leaf_is_malformed(
            whole in proptest::collection::vec(("[a-f]{0,3}", 0_usize..300), 1..6),
            cut in proptest::prelude::any::<proptest::sample::Index>(),
            beyond in 1_usize..1_000,
        ) {
            let (mut leaf, mut ends) = (Vec::new(), vec![0]);
            for (suffix, value_len) in &whole {
                push(&mut leaf, (suffix.as_bytes(), &vec![7; *value_len]));
                ends.push(leaf.len());
            }
            let at = cut.index(leaf.len());
            let malformed = records(&leaf[..at]).any(|record| record == Err(MalformedLeaf));
            proptest::prop_assert_eq!(malformed, !ends.contains(&at), "cut at {} of {}", at, leaf.len());
            put_u64(&mut leaf, beyond as u64);
            leaf.extend(vec![7; beyond - 1]);
            proptest::prop_assert_eq!(records(&leaf).last(), Some(Err(MalformedLeaf)));
            proptest::prop_assert_eq!(find(&leaf, b"g"), Err(MalformedLeaf));
            proptest::prop_assert_eq!(apply_changes(&leaf, &[], HEAD), Err(MalformedLeaf));
        }
    }

    #[test]
    fn appended_records_fill_leaves() {
        let keys: Vec<[u8; 4]> = (0..1_000_u32).map(u32::to_be_bytes).collect();
        let (mut full, mut last) = (Vec::new(), Vec::new());
        for key in &keys {
            let mut leaves = apply_changes(&last, &[(key, Some(&[7; 20]))], &[]).unwrap();
            last = leaves.pop().unwrap().1;
            full.extend(leaves);
        }
        assert!(full.iter().all(|(_, leaf)| leaf.len() > BYTES_MAX - 30), "each leaf is full");
        assert_eq!(full.len(), 1_000 * 26 / BYTES_MAX);
    }

    #[test]
    fn find_in_a_truncated_leaf_fails() {
        let leaf = apply_changes(&[], &[(b"a", Some(b"1")), (b"b", Some(&[7; 200]))], &[]).unwrap().remove(0).1;
        assert_eq!(find(&leaf, b"a"), Ok(Some(&b"1"[..])));
        assert_eq!(find(&leaf, b"aa"), Ok(None));
        assert_eq!(find(&leaf[..leaf.len() - 1], b"b"), Err(MalformedLeaf));
        assert_eq!(find(&[0xff; 9], b"b"), Err(MalformedLeaf));
    }
}
