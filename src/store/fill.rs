//! Bulk load of an empty tree: records in order of key fill whole leaves, and no leaf has
//! to be searched.

use std::collections::BTreeMap;

use super::tree::{Tree, VERSION};
use super::{StoreError, keys};
use crate::store::tree::leaf;

/// Twice the usual size of a leaf: sled takes half the time, and the first change of a leaf
/// splits it in two.
const BULK_LEAF_BYTES_MAX: usize = 2 * leaf::BYTES_MAX;

/// Writes changes one by one, groups in any order. They are on disk after [`Fill::finish`]
/// and a flush of the tree.
pub(super) struct Fill<'t> {
    tree: &'t Tree,
    /// The last key of the current group. Empty: none yet.
    last: Vec<u8>,
    /// Length of the current group's prefix.
    shared: usize,
    /// The last keys of the earlier groups, by group prefix.
    ends: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The leaf being filled, and its key in sled. Empty: none.
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
            // The key is not after the last one: change the stored leaf.
            self.write_leaf()?;
            return self.tree.write_one(key, value);
        };
        if !self.leaf.is_empty() && self.leaf.len() + suffix.len() + value.len() > BULK_LEAF_BYTES_MAX {
            self.write_leaf()?;
        }
        if self.leaf.is_empty() {
            self.leaf.push(VERSION);
            // The first leaf of a group is stored under the prefix.
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
        if let Some(last_prefix) = last.get(..self.shared).filter(|_| !last.is_empty()) {
            self.ends.insert(last_prefix.to_vec(), last);
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

    /// Records in the order of a first commit: kind by kind, each in order of key.
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
        // Later writes work as in any other tree.
        it.apply(vec![(row(1, 700), Some(value(b"")))]).unwrap();
        assert_eq!(it.get::<usize>(&row(1, 700)).unwrap(), Some(0));
        it.clear().unwrap();
        assert_eq!(all(&it, Vec::new()..vec![0xff]), []);
    }
}
