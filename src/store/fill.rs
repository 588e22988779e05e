//! Fills an empty tree: what comes in order of key makes full leaves, and nothing has
//! to be looked for.

use std::collections::BTreeMap;

use super::tree::{Tree, VERSION};
use super::{StoreError, keys};
use crate::store::tree::leaf;

/// Twice what a leaf has otherwise: sled takes half the time, and the first change of
/// a leaf makes two of it.
const BULK_LEAF_BYTES_MAX: usize = 2 * leaf::BYTES_MAX;

/// Takes changes one after the other, groups in any order. On disk after
/// [`Fill::finish`] and a flush of the tree.
pub(super) struct Fill<'t> {
    tree: &'t Tree,
    /// The last key that was taken of the group under way. Empty: none yet.
    last: Vec<u8>,
    /// Length of that group's prefix.
    shared: usize,
    /// The same of the groups before, by their prefixes.
    ends: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The leaf under way, and the key that it is to stand under. Empty: none.
    leaf: Vec<u8>,
    fence: Vec<u8>,
}

impl<'t> Fill<'t> {
    /// The tree must be empty.
    pub(super) fn of(tree: &'t Tree) -> Fill<'t> {
        let (last, leaf, fence) = (Vec::new(), Vec::new(), Vec::new());
        Fill { tree, last, shared: 0, ends: BTreeMap::new(), leaf, fence }
    }

    pub(super) fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        let Some(shared) = keys::group_prefix_len(key) else { return self.tree.write_one(key, value) };
        let (prefix, suffix) = key.split_at(shared);
        if self.last.get(..self.shared) != Some(prefix) {
            self.switch_group(prefix)?;
        }
        let Some(value) = value.filter(|_| *self.last < *key) else {
            // It is among those that are there.
            self.write_leaf()?;
            return self.tree.write_one(key, value);
        };
        if !self.leaf.is_empty() && self.leaf.len() + suffix.len() + value.len() > BULK_LEAF_BYTES_MAX {
            self.write_leaf()?;
        }
        if self.leaf.is_empty() {
            self.leaf.push(VERSION);
            // The first of a group stands under the prefix.
            self.fence.clear();
            self.fence.extend_from_slice(if self.last.is_empty() { prefix } else { key });
        }
        leaf::push(&mut self.leaf, (suffix, value));
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), StoreError> {
        self.write_leaf()
    }

    fn switch_group(&mut self, prefix: &[u8]) -> Result<(), StoreError> {
        self.write_leaf()?;
        let next = self.ends.remove(prefix).unwrap_or_default();
        let last = std::mem::replace(&mut self.last, next);
        if let Some(of_last) = last.get(..self.shared).filter(|_| !last.is_empty()) {
            self.ends.insert(of_last.to_vec(), last);
        }
        self.shared = prefix.len();
        Ok(())
    }

    fn write_leaf(&mut self) -> Result<(), StoreError> {
        if !self.leaf.is_empty() {
            self.tree.insert(&self.fence, &self.leaf)?;
            self.leaf.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GameKey;
    use crate::store::keys::tests::row;
    use crate::store::tree::encode;
    use crate::store::tree::tests::{all, tree};

    /// A first commit as it comes: kind by kind, each in order of key.
    #[test]
    fn bulk_loaded_records_are_all_found() {
        let dir = tempfile::tempdir().unwrap();
        let it = tree(dir.path());
        let rows = (0..30_000).map(|n| row(n / 700, n % 700));
        let mut names: Vec<Vec<u8>> = (0..9_000).map(|n| keys::name(&format!("name {n}"), GameKey(1))).collect();
        names.sort();
        let servers = (0..40).map(|n| keys::number_key(keys::SERVER, n));
        let mut want: Vec<Vec<u8>> = names.into_iter().chain(servers).chain(rows).collect();
        let value = |key: &[u8]| encode(&key.len());
        let mut fill = Fill::of(&it);
        want.iter().for_each(|key| fill.put(key, Some(&value(key))).unwrap());
        fill.finish().unwrap();
        want.sort();
        let found = all(&it, Vec::new()..vec![0xff]);
        assert!(found.iter().map(|(key, _)| key).eq(&want));
        assert!(found.iter().all(|(key, found)| *found == value(key)));
        assert!(want.iter().step_by(97).all(|key| it.get::<usize>(key).unwrap() == Some(key.len())));
        assert!(it.get::<usize>(&row(1, 700)).unwrap().is_none());
        // And it is written to as any other.
        it.apply(vec![(row(1, 700), Some(value(b"")))]).unwrap();
        assert_eq!(it.get::<usize>(&row(1, 700)).unwrap(), Some(0));
        it.clear().unwrap();
        assert_eq!(all(&it, Vec::new()..vec![0xff]), []);
    }
}
