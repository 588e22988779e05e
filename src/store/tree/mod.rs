//! The records of the store in one sled tree. Small neighbouring records share leaves
//! (`leaf`).
//!
//! The keys of one group begin with the same prefix ([`keys::group_prefix_len`]), and a leaf
//! contains records of one group. The sled key of a leaf is its fence: the group's prefix
//! for the first leaf of the group, for any other the key of its first record at the split.
//! A leaf contains the records from its fence up to the next fence.
//!
//! A fence never changes, and a split writes all resulting leaves in one batch. A forward
//! scan that runs during a split therefore misses no record that existed when the scan
//! began: it reads either the old leaf or the new leaves. A scan that reads the old leaf and
//! then a new leaf skips the records that it has already seen.
//!
//! A record that is not in a group is a sled record of its own. In this module, a *record*
//! is a record of the store, and a *sled record* is such a single record or a whole leaf.

pub(in crate::store) mod leaf;
pub(in crate::store) mod mem_table;

use std::ops::{Bound, ControlFlow, Range};
use std::sync::{Arc, PoisonError, RwLock};

use serde::de::DeserializeOwned;

use super::error::StoreError;
use super::keys;
use super::layout::VERSION;
use crate::store::dir::database::Database;
use crate::store::tree::mem_table::{MemTable, VisitFn, read_through};

/// Maximum number of changes that [`Tree::write_unlogged`] buffers in memory, and that one batch of sled has: it must fill
/// few of sled's buffers.
const CHANGES_PER_BATCH: usize = 1_024;

/// A change of a record: its key and its new value. `None` deletes the record.
pub(super) type RecordChange = (Vec<u8>, Option<Vec<u8>>);

/// The sled tree of the store (see the module documentation). Clones share the database.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// A compaction replaces the database. Readers clone the inner `Arc` and release the
    /// lock before they read: a second read lock in the same thread can deadlock when a
    /// writer waits.
    db: Arc<RwLock<Arc<Database>>>,
    tables: Arc<RwLock<MemTables>>,
}

/// The changes that are not in the database. Reads see them as if they were applied.
#[derive(Clone, Debug, Default)]
struct MemTables {
    /// The changes since the last checkpoint began.
    newest: Arc<MemTable>,
    /// Those of the checkpoint that is being written. They do not change.
    frozen: Option<Arc<MemTable>>,
    /// Those of earlier checkpoints that are in files, but not in the database.
    durable: Arc<MemTable>,
}

impl MemTables {
    fn newest_first(self) -> impl Iterator<Item = Arc<MemTable>> {
        [Some(self.newest), self.frozen, Some(self.durable)].into_iter().flatten()
    }
}

/// A sled record, of any layout version.
#[derive(Debug)]
pub(super) struct SledRecord {
    pub key: sled::IVec,
    /// The version byte and the body.
    pub bytes: sled::IVec,
}

impl SledRecord {
    /// The layout version. A version newer than [`VERSION`] is an error.
    pub(super) fn version(&self) -> Result<u8, StoreError> {
        match self.bytes.first() {
            Some(&version) if version <= VERSION => Ok(version),
            Some(&found) => Err(StoreError::NewerVersion { key: keys::display(&self.key), found }),
            None => Err(StoreError::corrupt(&self.key, "empty")),
        }
    }

    /// The bytes after the version byte, of any version.
    pub(super) fn body(&self) -> &[u8] {
        self.bytes.get(1..).unwrap_or(&[])
    }
}

impl Tree {
    pub(super) fn new(db: Database) -> Tree {
        Tree { db: Arc::new(RwLock::new(Arc::new(db))), tables: Arc::default() }
    }

    /// The database with the durable changes.
    pub(super) fn durable(&self) -> Tree {
        let tables = MemTables { durable: self.durable_changes(), ..MemTables::default() };
        Tree { db: self.db.clone(), tables: Arc::new(RwLock::new(tables)) }
    }

    /// The current database. An iterator continues in the database in which it began.
    fn db(&self) -> Arc<Database> {
        self.db.read().expect("database lock poisoned").clone()
    }

    /// Continues in the database of another tree, in all clones of this tree. It must have the same
    /// records, those of the frozen and durable changes included.
    pub(super) fn switch_database(&self, other: &Tree) {
        *self.db.write().expect("database lock poisoned") = other.db();
    }

    /// Size of the database's file, bytes.
    pub(super) fn database_bytes(&self) -> u64 {
        self.db().file_bytes()
    }

    /// One lock for all tables: a reader that comes while a table is frozen finds it in one of the
    /// two places.
    fn tables(&self) -> MemTables {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_tables(&self, change: impl FnOnce(&mut MemTables)) {
        change(&mut self.tables.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// The table of new changes. The caller is the only one that writes to it or freezes it.
    pub(super) fn newest_changes(&self) -> Arc<MemTable> {
        self.tables().newest
    }

    /// Freezes the table of new changes, and begins another one. No table is frozen.
    pub(super) fn freeze(&self) -> Arc<MemTable> {
        let frozen = self.newest_changes();
        self.set_tables(|tables| (tables.newest, tables.frozen) = (Arc::default(), Some(frozen.clone())));
        frozen
    }

    /// The changes that are to be written, or are being written.
    pub(super) fn frozen_changes(&self) -> Option<Arc<MemTable>> {
        self.tables().frozen
    }

    /// The frozen changes are in the durable ones, or in the database.
    pub(super) fn drop_frozen(&self) {
        self.set_tables(|tables| tables.frozen = None);
    }

    /// The changes that checkpoint files have, but not the database. Only the thread that writes checkpoints
    /// changes them.
    pub(super) fn durable_changes(&self) -> Arc<MemTable> {
        self.tables().durable
    }

    /// The durable changes are in the database.
    pub(super) fn drop_durable(&self) {
        self.set_tables(|tables| tables.durable = Arc::default());
    }

    /// Reads and decodes a record.
    pub(super) fn get<T: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        for table in self.tables().newest_first() {
            if let Some(changed) = table.get(key, |value| value.map(|value| decode(key, value)).transpose()) {
                return changed;
            }
        }
        match keys::group_prefix_len(key) {
            None => {
                let found = self.db().get(key)?;
                found.map(|record| decode(key, body(key, &record)?)).transpose()
            }
            Some(prefix_len) => {
                let Some((fence, record)) = self.leaf_at(key, prefix_len)? else { return Ok(None) };
                let found =
                    leaf::find(body(&fence, &record)?, &key[prefix_len..]).map_err(|e| malformed_leaf(&fence, e))?;
                found.map(|value| decode(key, value)).transpose()
            }
        }
    }

    /// Passes the records of a range to `visit`, in order of key, until `visit` returns
    /// `Break`.
    pub(super) fn for_each<T: DeserializeOwned>(
        &self,
        range: Range<Vec<u8>>,
        mut visit: impl FnMut(&[u8], T) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.for_each_encoded(range, |key, value| Ok(visit(key, decode(key, value)?)))
    }

    /// Like [`Tree::for_each`], with encoded values.
    pub(super) fn for_each_encoded(
        &self,
        range: Range<Vec<u8>>,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let tables: Vec<_> = self.tables().newest_first().filter(|table| table.len() > 0).collect();
        self.read_through_all(&tables, range, &mut visit)
    }

    fn read_through_all(
        &self,
        newest_first: &[Arc<MemTable>],
        range: Range<Vec<u8>>,
        visit: &mut VisitFn<'_>,
    ) -> Result<(), StoreError> {
        let Some((newest, older)) = newest_first.split_first() else { return self.for_each_in_database(range, visit) };
        let read_older = |visit: &mut VisitFn<'_>| self.read_through_all(older, range.clone(), visit);
        read_through(newest, range.clone(), read_older, visit)
    }

    /// Like [`Tree::for_each_encoded`], without the changes in memory.
    fn for_each_in_database(&self, range: Range<Vec<u8>>, visit: &mut VisitFn<'_>) -> Result<(), StoreError> {
        let Range { start, end } = range;
        let first = match keys::group_prefix_len(&start) {
            Some(prefix_len) => self.leaf_at(&start, prefix_len)?.map(|(fence, _)| fence),
            None => None,
        };
        let from = first.map_or_else(|| start.clone(), |fence| fence.to_vec());
        let (mut key, mut last_key) = (Vec::new(), Vec::new());
        for item in self.db().range(&from[..]..&end[..]) {
            let (fence, record) = item?;
            let Some(prefix_len) = keys::group_prefix_len(&fence) else {
                match visit(&fence, body(&fence, &record)?)? {
                    ControlFlow::Continue(()) => continue,
                    ControlFlow::Break(()) => return Ok(()),
                }
            };
            key.clear();
            key.extend_from_slice(&fence[..prefix_len]);
            for record in leaf::records(body(&fence, &record)?) {
                let (suffix, value) = record.map_err(|e| malformed_leaf(&fence, e))?;
                key.truncate(prefix_len);
                key.extend_from_slice(suffix);
                // A record up to `last_key` was read before a concurrent split of its leaf.
                if key < start || key <= last_key {
                    continue;
                }
                if key >= end || visit(&key, value)?.is_break() {
                    return Ok(());
                }
            }
            last_key.clone_from(&key);
        }
        Ok(())
    }

    /// Passes the records whose keys begin with `prefix` to `visit`, in order of key, until
    /// `visit` returns `Break`.
    pub(super) fn for_each_with_prefix<T: DeserializeOwned>(
        &self,
        prefix: &[u8],
        visit: impl FnMut(&[u8], T) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.for_each(prefix.to_vec()..prefix_end(prefix), visit)
    }

    /// The results of `convert` for the records whose keys begin with `prefix`, in order of
    /// key.
    pub(super) fn collect_prefix<T: DeserializeOwned, R>(
        &self,
        prefix: &[u8],
        convert: impl Fn(&[u8], T) -> R,
    ) -> Result<Vec<R>, StoreError> {
        let mut found = Vec::new();
        self.for_each_with_prefix(prefix, |key, record| {
            found.push(convert(key, record));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// The number of records whose keys begin with `prefix`, and the bytes of their keys
    /// and values.
    pub(super) fn prefix_size(&self, prefix: &[u8]) -> Result<(u64, u64), StoreError> {
        let (mut records, mut bytes) = (0, 0);
        self.for_each_encoded(prefix.to_vec()..prefix_end(prefix), |key, value| {
            records += 1;
            bytes += (key.len() + value.len()) as u64;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((records, bytes))
    }

    /// The first key in `from..end`: of a record in memory, or a sled key, which is that of a single record or the
    /// fence of a leaf.
    pub(super) fn next_key(&self, from: Vec<u8>, end: Vec<u8>) -> Result<Option<Vec<u8>>, StoreError> {
        let in_database = self.db().range(&from[..]..&end[..]).next().transpose()?.map(|(key, _)| key.to_vec());
        let in_memory = self.tables().newest_first().filter_map(|table| {
            let found = table.range(from.clone()..end.clone()).find(|(_, value)| value.is_some());
            found.map(|(key, _)| key)
        });
        Ok(in_memory.chain(in_database).min())
    }

    /// Applies changes in order. Each run ([`Tree::leaf_run_len`]) is atomic, the changes as
    /// a whole are not. They are durable only after [`Tree::flush`].
    pub(super) fn write_unlogged(
        &self,
        changes: impl Iterator<Item = Result<RecordChange, StoreError>>,
    ) -> Result<(), StoreError> {
        in_batches(changes, |changes| self.write_slice_unlogged(changes))
    }

    /// Like [`Tree::write_unlogged`], with all changes in memory.
    pub(super) fn write_slice_unlogged(&self, changes: &[RecordChange]) -> Result<(), StoreError> {
        let mut remaining = changes;
        while !remaining.is_empty() {
            let run;
            (run, remaining) = remaining.split_at(self.leaf_run_len(remaining)?);
            self.write_run(run)?;
        }
        Ok(())
    }

    /// Writes a run of changes of one single record or one leaf ([`Tree::leaf_run_len`]).
    fn write_run(&self, run: &[RecordChange]) -> Result<(), StoreError> {
        let mut records: Vec<RecordChange> = Vec::new();
        self.encode_run(run, &mut |key, record| records.push((key, record)))?;
        match <[RecordChange; 1]>::try_from(records) {
            Ok([(key, Some(record))]) => self.put_sled_record(&key, &record)?,
            Ok([(key, None)]) => self.remove_sled_record(&key)?,
            Err(records) => {
                let mut batch = Batch::default();
                records.into_iter().for_each(|(key, record)| batch.add(key, record));
                batch.apply(self)?;
            }
        }
        Ok(())
    }

    /// Writes a sled record. `bytes` include the version byte.
    pub(super) fn put_sled_record(&self, key: &[u8], bytes: &[u8]) -> Result<(), StoreError> {
        self.db().insert(key, bytes)
    }

    /// Writes two sled records atomically.
    pub(super) fn put_sled_record_pair(&self, one: (&[u8], &[u8]), other: (&[u8], &[u8])) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        [one, other].into_iter().for_each(|(key, bytes)| batch.add(key.to_vec(), Some(bytes.to_vec())));
        batch.apply(self)
    }

    pub(super) fn remove_sled_record(&self, key: &[u8]) -> Result<(), StoreError> {
        self.db().remove(key)
    }

    pub(super) fn sled_record(&self, key: &[u8]) -> Result<Option<SledRecord>, StoreError> {
        let found = self.db().get(key)?;
        Ok(found.map(|bytes| SledRecord { key: key.into(), bytes }))
    }

    /// All sled records after a key, in order of key. The iterator may return some
    /// concurrent writes and miss others. The caller may overwrite records that it has
    /// returned.
    pub(super) fn sled_records_after(
        &self,
        key: &[u8],
    ) -> impl Iterator<Item = Result<SledRecord, StoreError>> + use<> {
        let records = self.db().range((Bound::Excluded(key), Bound::Unbounded));
        records.map(|record| record.map(|(key, bytes)| SledRecord { key, bytes }))
    }

    /// Whether the database has no records.
    pub(super) fn is_empty(&self) -> Result<bool, StoreError> {
        self.sled_records_after(&[]).next().transpose().map(|first| first.is_none())
    }

    /// Waits until all earlier writes are on disk.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.db().flush()
    }

    /// Waits until all earlier writes are in the database's file. A power cut may lose them.
    pub(super) fn write_out(&self) -> Result<(), StoreError> {
        self.db().write_out()
    }

    /// The last checkpoint file.
    pub(super) fn checkpoint(&self) -> Result<Option<u64>, StoreError> {
        self.get(&keys::checkpoint())
    }

    /// The last checkpoint file whose changes the database has.
    pub(super) fn applied(&self) -> Result<Option<u64>, StoreError> {
        // Earlier versions have no other number.
        self.get(&keys::applied())?.map_or_else(|| self.checkpoint(), |applied| Ok(Some(applied)))
    }

    /// Notes that a checkpoint file is the last one, and whether the database has its changes.
    pub(super) fn set_checkpoint(&self, number: u64, is_applied: bool) -> Result<(), StoreError> {
        let value = postcard::to_extend(&number, vec![VERSION]).expect("a number is serialisable");
        if is_applied {
            self.put_sled_record(&keys::applied(), &value)?;
        }
        self.put_sled_record(&keys::checkpoint(), &value)?;
        self.write_out()
    }

    /// Removes up to `most` sled records (whole leaves) whose keys begin with `prefix`.
    /// Returns `true` if there may be more.
    pub(super) fn remove_batch(&self, prefix: &[u8], most: usize) -> Result<bool, StoreError> {
        let mut batch = Batch::default();
        let mut n = 0;
        for record in self.db().range(prefix..&prefix_end(prefix)[..]).take(most) {
            let (key, _) = record?;
            batch.add(key.to_vec(), None);
            n += 1;
        }
        batch.apply(self)?;
        Ok(n == most)
    }

    /// Whether any sled key or sled record contains these bytes. Scans the whole database.
    pub(super) fn contains_bytes(&self, bytes: &[u8]) -> Result<bool, StoreError> {
        let found = |stored: &[u8]| stored.windows(bytes.len().max(1)).any(|window| window == bytes);
        if self.tables().newest_first().any(|table| table.contains(found)) {
            return Ok(true);
        }
        for record in self.sled_records_after(&[]) {
            let SledRecord { key, bytes } = record?;
            if found(&key) || found(&bytes) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The leaf whose range contains a key: its fence and its sled record. `prefix_len` is the
    /// length of the group's prefix.
    fn leaf_at(&self, key: &[u8], prefix_len: usize) -> Result<Option<(sled::IVec, sled::IVec)>, StoreError> {
        self.db().range(&key[..prefix_len]..=key).next_back().transpose()
    }

    /// The length of the first run: the leading changes that belong to the same single record
    /// or leaf as the first change and whose keys are strictly ascending.
    fn leaf_run_len(&self, changes: &[RecordChange]) -> Result<usize, StoreError> {
        let (first, _) = &changes[0];
        let Some(prefix_len) = keys::group_prefix_len(first) else { return Ok(1) };
        let prefix = &first[..prefix_len];
        let after_first = (Bound::Excluded(first.as_slice()), Bound::Unbounded);
        let next = self.db().range(after_first).next().transpose()?;
        let next = next.map(|(key, _)| key).filter(|next| next.starts_with(prefix));
        let is_in_leaf = |key: &[u8]| key.starts_with(prefix) && next.as_ref().is_none_or(|next| key < &next[..]);
        let leaf_len = changes.iter().take_while(|(key, _)| is_in_leaf(key)).count();
        let in_order = changes[..leaf_len].windows(2).take_while(|pair| pair[0].0 < pair[1].0).count();
        Ok(in_order + 1)
    }

    /// Encodes a run of changes as sled records and passes each of them to `put`; `None`
    /// deletes the sled record.
    fn encode_run(
        &self,
        run: &[RecordChange],
        put: &mut dyn FnMut(Vec<u8>, Option<Vec<u8>>),
    ) -> Result<(), StoreError> {
        let (key, value) = &run[0];
        let Some(prefix_len) = keys::group_prefix_len(key) else {
            let value = value.as_ref().map(|value| [&[VERSION], value.as_slice()].concat());
            put(key.clone(), value);
            return Ok(());
        };
        let prefix = &key[..prefix_len];
        let (fence, record) = match self.leaf_at(key, prefix_len)? {
            Some((fence, record)) => (fence.to_vec(), Some(record)),
            None => (prefix.to_vec(), None),
        };
        let old_records = record.as_ref().map(|record| body(&fence, record)).transpose()?;
        let changes: Vec<leaf::Change<'_>> =
            run.iter().map(|(key, value)| (&key[prefix_len..], value.as_deref())).collect();
        let leaves = leaf::apply_changes(old_records.unwrap_or(&[]), &changes, &[VERSION])
            .map_err(|e| malformed_leaf(&fence, e))?;
        if leaves.is_empty() {
            if old_records.is_some() {
                put(fence, None);
            }
            return Ok(());
        }
        let mut fence = Some(fence);
        for (first, leaf) in leaves {
            put(fence.take().unwrap_or_else(|| [prefix, &first].concat()), Some(leaf));
        }
        Ok(())
    }
}

/// Passes changes to `write` in batches of up to [`CHANGES_PER_BATCH`].
fn in_batches(
    mut changes: impl Iterator<Item = Result<RecordChange, StoreError>>,
    mut write: impl FnMut(&[RecordChange]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut batch: Vec<RecordChange> = Vec::with_capacity(CHANGES_PER_BATCH);
    loop {
        batch.clear();
        while batch.len() < CHANGES_PER_BATCH
            && let Some(change) = changes.next()
        {
            batch.push(change?);
        }
        if batch.is_empty() {
            return Ok(());
        }
        write(&batch)?;
    }
}

/// A sled batch.
#[derive(Default)]
struct Batch {
    batch: sled::Batch,
    /// Bytes of its keys and records.
    bytes: usize,
}

impl Batch {
    fn add(&mut self, key: Vec<u8>, record: Option<Vec<u8>>) {
        self.bytes += key.len() + record.as_ref().map_or(0, Vec::len);
        match record {
            Some(record) => self.batch.insert(key, record),
            None => self.batch.remove(key),
        }
    }

    fn apply(self, tree: &Tree) -> Result<(), StoreError> {
        tree.db().apply_batch(self.batch, self.bytes)
    }
}

/// The first key after all keys that begin with `prefix`. Empty if `prefix` has only 0xff
/// bytes.
fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}

fn decode<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    postcard::from_bytes(value).map_err(|e| StoreError::corrupt(key, e))
}

/// The bytes after the version byte. A version other than [`VERSION`] is an error.
fn body<'r>(key: &[u8], record: &'r [u8]) -> Result<&'r [u8], StoreError> {
    match record.split_first() {
        Some((&VERSION, body)) => Ok(body),
        Some((&found, _)) if found > VERSION => Err(StoreError::NewerVersion { key: keys::display(key), found }),
        Some((&found, _)) => Err(StoreError::UnsupportedVersion { key: keys::display(key), found }),
        None => Err(StoreError::corrupt(key, "empty")),
    }
}

fn malformed_leaf(fence: &[u8], leaf::MalformedLeaf: leaf::MalformedLeaf) -> StoreError {
    StoreError::corrupt(fence, "a malformed leaf")
}

#[cfg(test)]
pub(super) fn encode<T: serde::Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("no record has a sequence of unknown length")
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::model::{GameKey, PlayerKey, WeekKey};
    use crate::store::keys::tests::row;

    /// Waits for the lock: sled releases it on another thread after a database is dropped.
    pub fn tree(dir: &Path) -> Tree {
        Tree::new(Database::open(dir, 16 << 20).unwrap())
    }

    pub fn all(tree: &Tree, range: Range<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
        first(tree, range, usize::MAX)
    }

    /// The first `most` records of a range.
    fn first(tree: &Tree, range: Range<Vec<u8>>, most: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        tree.for_each_encoded(range, |key, value| {
            found.push((key.to_owned(), value.to_owned()));
            Ok(if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })
        .unwrap();
        found
    }

    /// Sorts changes by key. If a record has several changes, the last one stays.
    fn sort_changes(changes: &mut Vec<RecordChange>) {
        // The sort is stable, and `dedup_by` keeps the first change of each key. On the
        // reversed list, that is the last change.
        changes.sort_by(|(a, _), (b, _)| a.cmp(b));
        changes.reverse();
        changes.dedup_by(|(a, _), (b, _)| a == b);
        changes.reverse();
    }

    fn apply(tree: &Tree, mut changes: Vec<RecordChange>) {
        sort_changes(&mut changes);
        tree.write_slice_unlogged(&changes).unwrap();
    }

    /// A key of one of five kinds. Keys of one group are close to each other.
    fn key(kind: u32, n: u32) -> Vec<u8> {
        match kind {
            0 => keys::number_key(keys::SERVER, n % 9),
            1 => keys::number_key(keys::PLAYER, n),
            2 => keys::name(&"n".repeat(n as usize % 60), GameKey(n % 7)),
            3 => keys::player_window(WeekKey(n % 3).into(), PlayerKey(n / 3)),
            _ => row(n % 5, n / 5),
        }
    }

    /// As the thread that writes checkpoints, without a file.
    fn make_durable(tree: &Tree) {
        if let Some(frozen) = tree.frozen_changes() {
            let durable = tree.durable_changes();
            let absorbed: Vec<RecordChange> = durable.all_with(&frozen).collect();
            durable.absorb(&frozen);
            assert!(durable.all().eq(absorbed.iter().cloned()) && durable.all_with(&frozen).eq(absorbed));
            tree.drop_frozen();
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(40))]
        /// Applies changes in order of key or as they come, or keeps them in memory in one or
        /// two tables, reopens the store, and compares records and ranges with those of a
        /// `BTreeMap`.
        #[test]
        fn tree_equals_a_btree_map(
            rounds in proptest::collection::vec(
                (0..4_u8, proptest::collection::vec((0_u32..6, 0_u32..400, proptest::option::of(0_usize..300)), 1..300)),
                1..8,
            ),
            ranges in proptest::collection::vec(((0_u32..6, 0_u32..400), (0_u32..6, 0_u32..400)), 20),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut it = tree(dir.path());
            let mut map = BTreeMap::new();
            let modes: Vec<u8> = rounds.iter().map(|(mode, _)| *mode).collect();
            for (n, (mode, round)) in rounds.into_iter().enumerate() {
                let change = |(kind, key_n, len): (u32, u32, Option<usize>)| {
                    (key(kind, key_n), len.map(|len| encode(&vec![n as u8; len])))
                };
                let changes: Vec<RecordChange> = round.into_iter().map(change).collect();
                match mode {
                    0 => it.write_unlogged(changes.iter().cloned().map(Ok)).unwrap(),
                    1 => apply(&it, changes.clone()),
                    _ => {
                        if mode == 3 {
                            make_durable(&it);
                            it.freeze();
                        }
                        let table = it.newest_changes();
                        let mut table = table.write();
                        changes.iter().for_each(|(key, value)| table.put(key, value.as_deref()));
                    }
                }
                for (key, value) in changes {
                    match value {
                        Some(value) => _ = map.insert(key, value),
                        None => _ = map.remove(&key),
                    }
                }
                let want: Vec<_> = map.clone().into_iter().collect();
                proptest::prop_assert_eq!(all(&it, Vec::new()..vec![0xff]), want.clone());
                for (a, b) in &ranges {
                    let range = key(a.0, a.1)..key(b.0, b.1);
                    if range.start < range.end {
                        let of_map = map.range(range.clone());
                        let want: Vec<_> = of_map.map(|(key, value)| (key.clone(), value.clone())).collect();
                        proptest::prop_assert_eq!(first(&it, range.clone(), 3), want[..want.len().min(3)].to_vec());
                        proptest::prop_assert_eq!(all(&it, range.clone()), want);
                    }
                    let found: Option<Vec<u8>> = it.get(&range.start).unwrap();
                    proptest::prop_assert_eq!(found.map(|value| encode(&value)), map.get(&range.start).cloned());
                }
                // Changes in memory come before the others until they are in the database.
                let is_last_in_memory = modes.get(n + 1).is_none_or(|&next| next < 2);
                for _ in 0..if is_last_in_memory { 2 } else { 0 } {
                    if it.tables().frozen.is_none() {
                        it.freeze();
                    }
                    make_durable(&it);
                    proptest::prop_assert_eq!(all(&it, Vec::new()..vec![0xff]), want.clone());
                }
                if is_last_in_memory {
                    apply(&it, it.durable_changes().all().collect());
                    it.drop_durable();
                    proptest::prop_assert_eq!(all(&it, Vec::new()..vec![0xff]), want);
                }
                if is_last_in_memory && n >= 3 {
                    it.flush().unwrap();
                    drop(it);
                    it = tree(dir.path());
                }
            }
        }
    }

    /// Records in the order of a large first commit: kind by kind, each in order of key.
    #[test]
    fn records_written_to_an_empty_tree_are_all_found() {
        let dir = tempfile::tempdir().unwrap();
        let it = tree(dir.path());
        let rows = (0..30_000).map(|n| row(n / 700, n % 700));
        let mut names: Vec<Vec<u8>> = (0..9_000).map(|n| keys::name(&format!("name {n}"), GameKey(1))).collect();
        names.sort();
        let servers = (0..40).map(|n| keys::number_key(keys::SERVER, n));
        let mut want: Vec<Vec<u8>> = names.into_iter().chain(servers).chain(rows).collect();
        let value = |key: &[u8]| encode(&key.len());
        it.write_unlogged(want.iter().map(|key| Ok((key.clone(), Some(value(key)))))).unwrap();
        want.sort();
        let found = all(&it, Vec::new()..vec![0xff]);
        assert!(found.iter().map(|(key, _)| key).eq(&want));
        assert!(found.iter().all(|(key, found)| *found == value(key)));
        assert!(want.iter().step_by(97).all(|key| it.get::<usize>(key).unwrap() == Some(key.len())));
        assert!(it.get::<usize>(&row(1, 700)).unwrap().is_none());
        apply(&it, vec![(row(1, 700), Some(value(b"")))]);
        assert_eq!(it.get::<usize>(&row(1, 700)).unwrap(), Some(0));
    }

    /// No change is lost when one call changes many records of one leaf.
    #[test]
    fn large_batch_on_one_leaf_keeps_every_change() {
        let dir = tempfile::tempdir().unwrap();
        let it = tree(dir.path());
        let keys = || (0..3 * CHANGES_PER_BATCH as u32).map(|n| row(1, n));
        for value in [7_u8, 8] {
            apply(&it, keys().map(|key| (key, Some(encode(&value)))).collect());
            let mut stored = Vec::new();
            it.for_each_with_prefix(&[keys::WINDOW], |key, found: u8| {
                stored.push((key.to_owned(), found));
                ControlFlow::Continue(())
            })
            .unwrap();
            assert!(stored.into_iter().eq(keys().map(|key| (key, value))));
        }
        apply(&it, keys().map(|key| (key, None)).collect());
        assert_eq!(it.prefix_size(&[keys::WINDOW]).unwrap(), (0, 0));
    }

    /// While a writer splits leaves and sled nodes, a reader sees every record that existed
    /// before, exactly once.
    #[test]
    fn concurrent_reader_sees_every_earlier_record_once() {
        let dir = tempfile::tempdir().unwrap();
        let it = tree(dir.path());
        let even: Vec<Vec<u8>> = (0..20_000).map(|n| row(n / 400, n % 400 * 2)).collect();
        let value = || Some(encode(&vec![7_u8; 40]));
        it.write_unlogged(even.iter().map(|key| Ok((key.clone(), value())))).unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut rounds = 0;
                while !ended.load(Relaxed) || rounds == 0 {
                    let mut expected = even.iter().peekable();
                    let mut last_key = Vec::new();
                    it.for_each_with_prefix(&[keys::WINDOW], |key, _: Vec<u8>| {
                        assert!(*key > *last_key, "records are in order, once each");
                        last_key = key.to_owned();
                        expected.next_if(|want| want.as_slice() == key);
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                    assert_eq!(expected.next(), None, "a record is missing in round {rounds}");
                    rounds += 1;
                }
                rounds
            });
            for n_round in 0..40_u32 {
                let odd = (0..20_000).filter(|n| n % 40 == (n_round * 17) % 40).map(|n| row(n / 400, n % 400 * 2 + 1));
                it.write_unlogged(odd.map(|key| Ok((key, value())))).unwrap();
            }
            ended.store(true, Relaxed);
            assert!(reader.join().unwrap() > 0);
        });
        assert_eq!(it.prefix_size(&[keys::WINDOW]).unwrap().0, 40_000);
    }
}
