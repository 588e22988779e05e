//! Changes of records in memory, in order of key. They overlay the database until they are in it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use sled::IVec;

use super::RecordChange;
use crate::model::ServerRecord;
use crate::store::error::StoreError;
use crate::store::keys;

/// Changes that a reader of a range copies while it holds the lock: some 50 us.
const CHANGES_PER_CHUNK: usize = 256;

/// Pause between two chunks. Without it the thread takes the lock again before waiting readers wake: with 3 million players,
/// no visitor got an answer for 0.8 s of every checkpoint.
const READERS_PAUSE: Duration = Duration::from_micros(100);

/// Memory of a change besides its value, bytes: its part of a node with the key, and the allocation of the value.
const OVERHEAD_BYTES: usize = 96;

/// Longer keys are in an allocation of their own.
const KEY_BYTES_INLINE: usize = 22;

/// An `IVec` has keys of up to 22 bytes in itself, which are all but names and sessions: a search does not follow a
/// pointer for each key that it compares.
type Changes = BTreeMap<IVec, Option<Value>>;

/// The new value of a record.
#[derive(Debug)]
enum Value {
    Encoded(Vec<u8>),
    /// The engine's own record, which is encoded when it is read: mostly once, for a checkpoint.
    Server(Arc<ServerRecord>),
}

impl Value {
    fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Value::Encoded(bytes) => Cow::Borrowed(bytes),
            Value::Server(record) => {
                Cow::Owned(postcard::to_stdvec(&**record).expect("no record has a sequence of unknown length"))
            }
        }
    }

    /// Memory besides that of the engine.
    fn len(&self) -> usize {
        match self {
            Value::Encoded(bytes) => bytes.len(),
            Value::Server(_) => 0,
        }
    }
}

#[derive(Debug, Default)]
pub(in crate::store) struct MemTable {
    content: RwLock<Content>,
}

#[derive(Debug, Default)]
struct Content {
    changes: Changes,
    bytes: usize,
    deleted_prefixes: Vec<Vec<u8>>,
    has_forgotten_names: bool,
}

/// The table, locked for a sequence of changes.
pub(in crate::store) struct MemTableWriter<'t>(RwLockWriteGuard<'t, Content>);

impl MemTableWriter<'_> {
    /// Records whose keys begin with `prefix` are not in the next checkpoint. Reads still find them.
    pub(in crate::store) fn delete_prefix(&mut self, prefix: Vec<u8>) {
        self.0.deleted_prefixes.push(prefix);
    }

    /// The changes delete names that must not stay in any file.
    pub(in crate::store) fn note_forgotten_names(&mut self) {
        self.0.has_forgotten_names = true;
    }

    /// Forgets the changes of records whose keys begin with one of the prefixes.
    pub(in crate::store) fn drop_prefixes(&mut self, prefixes: &[Vec<u8>]) {
        let Content { changes, bytes, .. } = &mut *self.0;
        changes.retain(|key, value| {
            let dropped = keys::has_prefix(key, prefixes);
            *bytes -= if dropped { bytes_of(key, value.as_ref().map_or(0, Value::len)) } else { 0 };
            !dropped
        });
    }

    /// Changes a record; `None` deletes it.
    pub(in crate::store) fn put(&mut self, key: &[u8], value: Option<&[u8]>) {
        let Content { changes, bytes, .. } = &mut *self.0;
        let value_bytes = value.map_or(0, <[u8]>::len);
        match changes.get_mut(key) {
            Some(old) => {
                *bytes -= old.as_ref().map_or(0, Value::len);
                *bytes += value_bytes;
                match (old, value) {
                    (Some(Value::Encoded(old)), Some(value)) => {
                        old.clear();
                        old.extend_from_slice(value);
                    }
                    (old, value) => *old = value.map(|value| Value::Encoded(value.to_vec())),
                }
            }
            None => {
                *bytes += bytes_of(key, value_bytes);
                changes.insert(key.into(), value.map(|value| Value::Encoded(value.to_vec())));
            }
        }
    }

    /// Changes the record of a server.
    pub(in crate::store) fn put_server(&mut self, key: &[u8], record: Arc<ServerRecord>) {
        self.set(key, Some(Value::Server(record)));
    }

    fn set(&mut self, key: &[u8], value: Option<Value>) {
        let Content { changes, bytes, .. } = &mut *self.0;
        let value_bytes = value.as_ref().map_or(0, Value::len);
        match changes.insert(key.into(), value) {
            Some(old) => *bytes = *bytes + value_bytes - old.as_ref().map_or(0, Value::len),
            None => *bytes += bytes_of(key, value_bytes),
        }
    }
}

fn change((key, value): (&IVec, &Option<Value>)) -> RecordChange {
    (key.to_vec(), value.as_ref().map(|value| value.bytes().into_owned()))
}

/// Memory of a change.
pub(in crate::store) fn bytes_of(key: &[u8], value_bytes: usize) -> usize {
    let key_bytes = if key.len() > KEY_BYTES_INLINE { key.len() } else { 0 };
    OVERHEAD_BYTES + key_bytes + value_bytes
}

impl MemTable {
    /// Deletes what a later table deletes by prefix. Returns the other changes of that table.
    fn begin_absorbing<'l>(&self, later: &'l MemTable) -> impl Iterator<Item = RecordChange> + use<'l> {
        let prefixes = later.deleted_prefixes();
        if !prefixes.is_empty() {
            self.write().drop_prefixes(&prefixes);
        }
        later.all().filter(move |(key, _)| !keys::has_prefix(key, &prefixes))
    }

    /// All changes as if this table had absorbed a later one, in order of key.
    pub(in crate::store) fn all_with<'t>(&'t self, later: &'t MemTable) -> impl Iterator<Item = RecordChange> + 't {
        let (mut newer, mut older) = (self.begin_absorbing(later).peekable(), self.all().peekable());
        std::iter::from_fn(move || {
            let Some((next, _)) = newer.peek() else { return older.next() };
            if let Some(earlier) = older.next_if(|(key, _)| key < next) {
                return Some(earlier);
            }
            older.next_if(|(key, _)| key == next);
            newer.next()
        })
    }

    /// Adds the changes of a later table, and deletes what it deletes; in chunks, so that readers do not wait for long.
    pub(in crate::store) fn absorb(&self, later: &MemTable) {
        let mut changes = self.begin_absorbing(later);
        loop {
            // Copied and encoded before the lock is taken.
            let chunk: Vec<RecordChange> = changes.by_ref().take(CHANGES_PER_CHUNK).collect();
            if chunk.is_empty() {
                return;
            }
            let mut table = self.write();
            chunk.into_iter().for_each(|(key, value)| table.set(&key, value.map(Value::Encoded)));
            drop(table);
            std::thread::sleep(READERS_PAUSE);
        }
    }

    pub(in crate::store) fn write(&self) -> MemTableWriter<'_> {
        MemTableWriter(self.content.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn read(&self) -> RwLockReadGuard<'_, Content> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory that it takes.
    pub(in crate::store) fn bytes(&self) -> usize {
        self.read().bytes
    }

    pub(in crate::store) fn len(&self) -> usize {
        self.read().changes.len()
    }

    /// Passes the new value of a record to `use_value`; `None`: it is deleted. Returns `None` if the
    /// record is not changed.
    pub(super) fn get<R>(&self, key: &[u8], use_value: impl FnOnce(Option<&[u8]>) -> R) -> Option<R> {
        let table = self.read();
        let value = table.changes.get(key)?.as_ref().map(Value::bytes);
        Some(use_value(value.as_deref()))
    }

    /// The changes of a range, in order of key. They are copied in chunks; changes that are made
    /// meanwhile may be among them.
    pub(in crate::store) fn range(&self, range: Range<Vec<u8>>) -> impl Iterator<Item = RecordChange> + '_ {
        let Range { start, end } = range;
        let mut from = Some(Bound::Included(start));
        let mut chunk = Vec::new().into_iter();
        std::iter::from_fn(move || {
            if let Some(change) = chunk.next() {
                return Some(change);
            }
            let first = from.take()?;
            if matches!(&first, Bound::Included(start) | Bound::Excluded(start) if *start >= end) {
                return None;
            }
            let bounds = (first.as_ref().map(Vec::as_slice), Bound::Excluded(&end[..]));
            let copied: Vec<RecordChange> =
                self.read().changes.range::<[u8], _>(bounds).take(CHANGES_PER_CHUNK).map(change).collect();
            from = copied
                .last()
                .filter(|_| copied.len() == CHANGES_PER_CHUNK)
                .map(|(key, _)| Bound::Excluded(key.clone()));
            chunk = copied.into_iter();
            chunk.next()
        })
    }

    pub(in crate::store) fn deleted_prefixes(&self) -> Vec<Vec<u8>> {
        self.read().deleted_prefixes.clone()
    }

    pub(in crate::store) fn has_forgotten_names(&self) -> bool {
        self.read().has_forgotten_names
    }

    /// All changes, as [`MemTable::range`].
    pub(in crate::store) fn all(&self) -> impl Iterator<Item = RecordChange> + '_ {
        self.range(Vec::new()..vec![u8::MAX])
    }

    pub(super) fn contains(&self, is_match: impl Fn(&[u8]) -> bool) -> bool {
        self.read()
            .changes
            .iter()
            .any(|(key, value)| is_match(key) || value.as_ref().is_some_and(|value| is_match(&value.bytes())))
    }
}

/// Receives the records of a range.
pub(super) type VisitFn<'v> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StoreError> + 'v;

/// Passes the records of a range to `visit`: those of `read_lower`, with the changes of the table.
pub(super) fn read_through(
    table: &MemTable,
    range: Range<Vec<u8>>,
    read_lower: impl FnOnce(&mut VisitFn<'_>) -> Result<(), StoreError>,
    visit: &mut VisitFn<'_>,
) -> Result<(), StoreError> {
    let mut changed = table.range(range).peekable();
    let mut is_over = false;
    read_lower(&mut |key, stored| {
        while let Some((earlier, value)) = changed.next_if(|(changed, _)| changed.as_slice() < key) {
            if let Some(value) = value
                && visit(&earlier, &value)?.is_break()
            {
                is_over = true;
                return Ok(ControlFlow::Break(()));
            }
        }
        let flow = match changed.next_if(|(changed, _)| changed == key) {
            Some((_, Some(value))) => visit(key, &value)?,
            Some((_, None)) => ControlFlow::Continue(()),
            None => visit(key, stored)?,
        };
        is_over = flow.is_break();
        Ok(flow)
    })?;
    for (key, value) in changed {
        if is_over {
            break;
        }
        is_over = value.map_or(Ok(ControlFlow::Continue(())), |value| visit(&key, &value))?.is_break();
    }
    Ok(())
}
