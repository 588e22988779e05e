//! The state directory: the store of the engine's state, in sled.
//!
//! One tree, one key space, one writer. Commits go to a table in memory, and from there in checkpoints to
//! files that are durable (`checkpoint`). The database serves reads, and can be loaded from the files at any
//! time (`working_copy`).
//! Keys are big-endian with a leading tag, so the records of a week, and within it of a
//! server, are adjacent. Values are postcard records; several small ones share a leaf
//! (`leaf`, `tree`).

#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod backup;
mod checkpoint;
mod checkpoint_writer;
mod commit_records;
mod compaction;
mod dir;
mod error;
mod keys;
mod layout;
mod migrate;
mod source;
mod state_files;
mod threads;
mod tree;
mod working_copy;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustc_hash::FxHashSet;

pub use backup::{
    BackupSource, BackupSummary, RestoreSummary, StateReplacement, backup_files, backup_position, check_can_be_renamed,
    dir_error, is_same_disk, keep_owner, restore,
};
pub use checkpoint::open_without_unusable_deltas;
pub use compaction::DatabaseSettings;
pub use dir::files::{CLOCK_CORRECTION, COPIED_SETTINGS, MANIFEST, check_times, io_error};
pub use dir::read_copy::temp_root;
pub use error::StoreError;
pub use threads::check_threads;

use crate::engine::LoadedState;
use crate::model::OutboxEntry;
use crate::model::commit::{Commit, Meta, WeekPhase, WeekState};
use crate::model::packed_series::PackedSeries;
use crate::model::server::ServerRecord;
use crate::model::{GameKey, MapKey, OutboxKey, ServerKey, TagKey, WindowKey};
use crate::store::checkpoint_writer::CheckpointWriter;
use crate::store::commit_records::PutFn;
use crate::store::compaction::Compaction;
use crate::store::dir::{files, lock, read_copy};
use crate::store::tree::Tree;
use crate::store::working_copy::{Comparison, ComparisonProgress, ComparisonTime};

/// The state on disk, with the outbox mirrored in memory.
#[derive(Debug)]
pub struct Store {
    tree: Tree,
    /// At most `archive.outbox_entries_max` entries of some 40 bytes.
    outbox: BTreeMap<OutboxKey, u64>,
    next_seq: u64,
    /// Deleted windows that still have records, each with the number of the checkpoint that must be on
    /// disk before they are removed: until then a replay of the log may read them.
    unswept: BTreeMap<WindowKey, u64>,
    /// Commits stay in memory until the next checkpoint.
    is_deferring: bool,
    /// Servers with changes of commits that were deferred.
    unsaved_servers: FxHashSet<ServerKey>,
    /// The number of the last checkpoint that began.
    checkpoint: u64,
    /// The directory of the files.
    dir: PathBuf,
    writer: CheckpointWriter,
    /// Of the comparison before the first checkpoint.
    comparison: Option<Arc<ComparisonProgress>>,
    database_settings: DatabaseSettings,
    /// Commits since the store was opened.
    commits: u64,
    /// The private copy of a read-only store; removed after sled has closed it.
    _copy: Option<read_copy::ReadCopy>,
}

/// Reads the rows of whole windows while the store is written to. It may see some concurrent
/// writes and miss others.
#[derive(Clone, Debug)]
pub struct Reader {
    tree: Tree,
}

/// How to open a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreSettings {
    /// Page cache, bytes. Resident memory grows to about twice that.
    pub cache_bytes: u64,
    /// Create the directory if it does not exist.
    pub create: bool,
}

/// Whether the process that had a state directory open ended before it had compared the database.
pub fn is_uncompared(dir: &Path) -> Result<bool, StoreError> {
    working_copy::is_uncompared(dir)
}

/// Waits some seconds while another process has the state directory open, or until
/// `is_cancelled` returns true. It need not exist.
pub fn wait_until_unlocked(path: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<(), StoreError> {
    lock::retry_unless_cancelled(is_cancelled, path, lock::LOCK_TIMEOUT, || Ok((!lock::is_locked(path)?).then_some(())))
}

/// Creates a state directory if there is none. Error: a restore that was interrupted has moved it; systemd may have created an
/// empty one since.
fn create_state_dir(path: &Path) -> Result<(), StoreError> {
    check_not_interrupted(path)?;
    files::create_dir(path)
}

fn check_not_interrupted(path: &Path) -> Result<(), StoreError> {
    let [kept, new] = [".before-restore", ".restoring"].map(|suffix| files::with_suffix(path, suffix));
    let found = state_files::check_is_state(path);
    let is_missing = matches!(found, Err(StoreError::MissingStateDir { .. } | StoreError::NotAStateDir { .. }));
    if is_missing && kept.exists() && new.exists() {
        return Err(StoreError::InterruptedRestore { path: path.to_owned(), kept, new });
    }
    Ok(())
}

impl Store {
    /// Opens a state directory for writing; only one process can. Waits some seconds for
    /// another one to end.
    pub fn open(path: &Path, settings: StoreSettings) -> Result<Store, StoreError> {
        Store::open_with_timeout(path, settings, lock::LOCK_TIMEOUT, ComparisonTime::BeforeUse)
    }

    /// Like [`Store::open`], but compares the database with the checkpoint files before the first checkpoint,
    /// unless the process before ended in between.
    pub fn open_comparing_later(path: &Path, settings: StoreSettings) -> Result<Store, StoreError> {
        Store::open_with_timeout(path, settings, lock::LOCK_TIMEOUT, ComparisonTime::BeforeWrite)
    }

    fn open_with_timeout(
        path: &Path,
        settings: StoreSettings,
        wait: Duration,
        when: ComparisonTime,
    ) -> Result<Store, StoreError> {
        match settings.create {
            true => create_state_dir(path)?,
            false => state_files::check_is_state(path)?,
        }
        state_files::check_access(path)?;
        let store = Store::open_at(path, path, settings.cache_bytes, wait, when)?;
        state_files::grant_group_read(path)?;
        Ok(store)
    }

    /// Opens a private copy of a state directory, which itself is not changed. It shows the
    /// state committed at that time. Waits some seconds while another process has the
    /// directory open, or until `is_cancelled` returns true.
    pub fn open_read_only(
        path: &Path,
        cache_bytes: u64,
        is_cancelled: &dyn Fn() -> bool,
        has_log_after: &dyn Fn(u64) -> bool,
    ) -> Result<Store, StoreError> {
        let copy = read_copy::create(path, is_cancelled)?;
        let open = || Store::open_at(copy.path(), path, cache_bytes, lock::LOCK_TIMEOUT, ComparisonTime::BeforeUse);
        let mut store = open_without_unusable_deltas(copy.path(), has_log_after, &open)
            .map_err(|error| error.with_original_path(copy.path(), path))?;
        files::unlink_databases(copy.path())?;
        store._copy = Some(copy);
        Ok(store)
    }

    /// Opens the database in `dir`. Errors of the open store name `dir_in_errors` instead.
    fn open_at(
        dir: &Path,
        dir_in_errors: &Path,
        cache_bytes: u64,
        wait: Duration,
        when: ComparisonTime,
    ) -> Result<Store, StoreError> {
        let opened = working_copy::open(dir, dir_in_errors, cache_bytes, wait, when)?;
        let compaction = Compaction::new(dir, cache_bytes)?;
        let mut store = Store {
            tree: opened.tree.clone(),
            comparison: opened.comparison.as_ref().map(Comparison::progress),
            writer: CheckpointWriter::new(opened, compaction),
            database_settings: DatabaseSettings::default(),
            outbox: BTreeMap::new(),
            next_seq: 1,
            unswept: BTreeMap::new(),
            is_deferring: false,
            unsaved_servers: FxHashSet::default(),
            checkpoint: 0,
            dir: dir.to_owned(),
            commits: 0,
            _copy: None,
        };
        let entry = |key: &[u8], seq: u64| match keys::read_outbox(key) {
            Some(entry) => Ok((entry, seq)),
            None => Err(StoreError::corrupt(key, "no such kind")),
        };
        store.outbox = store.tree.collect_prefix(&[keys::OUTBOX], entry)?.into_iter().collect::<Result<_, _>>()?;
        store.next_seq = store.outbox.values().max().map_or(1, |seq| seq + 1);
        Ok(store)
    }

    /// Commits since the store was opened, the one that is being written included.
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// Size of the database file.
    pub fn database_bytes(&self) -> u64 {
        self.tree.database_bytes()
    }

    /// Reads the values of the state as a whole.
    pub fn meta(&self) -> Result<Meta, StoreError> {
        Ok(self.tree.get(&keys::meta())?.unwrap_or_default())
    }

    /// Reads the part of the state that the engine keeps in memory.
    pub fn load(&mut self) -> Result<LoadedState, StoreError> {
        let meta = self.meta()?;
        let number = |key: &[u8]| keys::read_u32(key, 1);
        let mut loaded = LoadedState {
            games: self.tree.collect_prefix(&[keys::GAME], |key, name| (GameKey(number(key)), name))?,
            maps: self.tree.collect_prefix(&[keys::MAP], |key, name| (MapKey(number(key)), name))?,
            tags: self.tree.collect_prefix(&[keys::TAG], |key, name| (TagKey(number(key)), name))?,
            archive_complete_ms: self.tree.get::<Option<i64>>(&keys::archive_complete())?.flatten(),
            ..LoadedState::default()
        };
        let forgotten = |key: &[u8], forgotten_ms| match keys::read_forgotten(key) {
            Some(hash) => Ok((hash, forgotten_ms)),
            None => Err(StoreError::corrupt(key, "no hash")),
        };
        loaded.forgotten =
            self.tree.collect_prefix(&[keys::FORGOTTEN], forgotten)?.into_iter().collect::<Result<_, _>>()?;
        let series = self.tree.collect_prefix(&[keys::SERIES], |key, series: PackedSeries| (number(key), series))?;
        let mut series: BTreeMap<u32, PackedSeries> = series.into_iter().collect();
        let servers = self.tree.collect_prefix(&[keys::SERVER], |key, server: ServerRecord| (number(key), server))?;
        let server = |(key, record)| (ServerKey(key), record, series.remove(&key));
        loaded.servers = servers.into_iter().map(server).collect();
        let closing = |state: &&WeekState| matches!(state.phase, WeekPhase::Closing | WeekPhase::Ranking);
        if let Some(state) = meta.weeks.iter().find(closing) {
            loaded.closed_servers = Some((state.week, self.closed_servers(state.week)?));
        }
        // Their records may be left of an interrupted import, and then the files have them, too. The next checkpoint
        // deletes them from the files and from memory; after that they are removed from the database.
        let unswept = self.find_unswept_windows(&meta)?;
        let table = self.tree.newest_changes();
        unswept.iter().for_each(|window| table.write().delete_prefix(keys::window_prefix(*window)));
        self.unswept = unswept.into_iter().map(|window| (window, self.checkpoint + 1)).collect();
        loaded.meta = meta;
        Ok(loaded)
    }

    /// Whether the database was compared with the checkpoint files. Until then it may have older records, or
    /// none: nothing that is computed from them must be archived.
    pub fn is_compared(&self) -> bool {
        self.comparison.as_ref().is_none_or(|progress| progress.is_done.load(Ordering::Acquire))
    }

    /// Cancels the comparison if it is not done. Returns whether it is: otherwise no checkpoint can be written
    /// any more, and the next start makes it.
    pub fn end_comparison(&mut self) -> Result<bool, StoreError> {
        if let Some(progress) = &self.comparison {
            progress.is_cancelled.store(true, Ordering::Relaxed);
        }
        match self.finish_checkpoint() {
            Ok(()) | Err(StoreError::Cancelled { .. }) => {}
            Err(error) => return Err(error),
        }
        self.writer.drop_comparison()?;
        Ok(self.is_compared())
    }

    /// From now on commits stay in memory until [`Store::checkpoint`] or [`Store::freeze`]. What a crash
    /// loses must be in a log.
    pub fn defer_commits(&mut self) {
        self.is_deferring = true;
    }

    /// From now on commits are on disk when they return. No changes are in memory.
    pub fn stop_deferring(&mut self) {
        assert_eq!(self.changed_records(), 0, "a checkpoint has written the changes");
        self.is_deferring = false;
    }

    /// Applies a commit atomically. Unless commits are deferred, waits until it is on disk.
    pub fn apply(&mut self, commit: &Commit) -> Result<(), StoreError> {
        self.commits += 1;
        let table = self.tree.newest_changes();
        let mut table = table.write();
        self.encode(commit, &mut |key, value| {
            table.put(key, value);
            Ok(())
        })?;
        if self.is_deferring {
            self.unsaved_servers.extend(commit.servers.iter().map(|(key, _)| *key));
        } else {
            commit.servers.iter().for_each(|(key, record)| table.put_server(&keys::server(*key), record.clone()));
        }
        commit.deleted_windows.iter().for_each(|window| table.delete_prefix(keys::window_prefix(*window)));
        if !commit.corrections.deleted_names.is_empty() {
            table.note_forgotten_names();
        }
        drop(table);
        self.update_outbox(commit);
        if self.is_deferring { Ok(()) } else { self.write_changes() }
    }

    /// The servers whose records changed since the last checkpoint began: their records are not among the
    /// changes yet, so that each is encoded once for a checkpoint.
    pub fn take_unsaved_servers(&mut self) -> Vec<ServerKey> {
        let mut servers: Vec<ServerKey> = std::mem::take(&mut self.unsaved_servers).into_iter().collect();
        servers.sort_unstable();
        servers
    }

    /// Adds the records of servers to the changes in memory.
    pub fn put_servers(&mut self, servers: impl Iterator<Item = (ServerKey, Arc<ServerRecord>)>) {
        let table = self.tree.newest_changes();
        let mut table = table.write();
        servers.for_each(|(key, record)| table.put_server(&keys::server(key), record));
    }

    /// Freezes the changes in memory: together they are the next checkpoint. `log_position`: the last
    /// batch of the log whose events they contain. No checkpoint is being written.
    pub fn freeze(&mut self, log_position: u64) {
        let position = postcard::to_stdvec(&log_position).expect("a number is serialisable");
        self.tree.newest_changes().write().put(&keys::log_position(), Some(&position));
        self.freeze_changes();
    }

    fn freeze_changes(&mut self) {
        self.tree.freeze();
        self.checkpoint += 1;
    }

    /// Writes the changes in memory and waits until they are on disk.
    fn write_changes(&mut self) -> Result<(), StoreError> {
        self.freeze_changes();
        let frozen = self.tree.frozen_changes().expect("changes are frozen");
        self.writer.write(&frozen, self.database_settings)?;
        self.tree.drop_frozen();
        Ok(())
    }

    /// Begins to write the frozen changes. The log is on disk until their position. `ended` is dropped when the
    /// writing ends; then comes [`Store::finish_checkpoint`].
    pub fn write_frozen(&mut self, ended: impl Send + 'static) -> Result<(), StoreError> {
        let frozen = self.tree.frozen_changes().expect("changes are frozen");
        self.writer.begin(&self.dir, frozen, self.database_settings, ended)
    }

    /// Waits until the checkpoint in progress is on disk. After an error the process must end.
    pub fn finish_checkpoint(&mut self) -> Result<(), StoreError> {
        if self.writer.finish()? {
            self.tree.drop_frozen();
        }
        Ok(())
    }

    /// Writes the changes in memory and waits until they are on disk, as is the log until
    /// `log_position`.
    pub fn write_checkpoint(&mut self, log_position: u64) -> Result<(), StoreError> {
        if self.tree.frozen_changes().is_some() && !self.writer.is_writing() {
            self.write_frozen(())?;
        }
        self.finish_checkpoint()?;
        self.freeze(log_position);
        self.write_frozen(())?;
        self.finish_checkpoint()
    }

    /// Merges all checkpoint files into a base. Ends what has changed the state without the log: a damaged delta is
    /// replaced by the log alone ([`open_without_unusable_deltas`]).
    pub fn merge_files(&mut self) -> Result<(), StoreError> {
        self.finish_checkpoint()?;
        self.freeze_changes();
        let frozen = self.tree.frozen_changes().expect("changes are frozen");
        self.writer.write_merged(&frozen, self.database_settings)?;
        self.tree.drop_frozen();
        Ok(())
    }

    /// Memory of the changes since the last checkpoint began, bytes.
    pub fn changed_bytes(&self) -> usize {
        self.tree.newest_changes().bytes()
    }

    /// Records that changed since the last checkpoint began.
    pub fn changed_records(&self) -> usize {
        self.tree.newest_changes().len() + self.unsaved_servers.len()
    }

    /// The last batch of the log whose events the state on disk contains; `None`: the state was
    /// written without a log.
    pub fn log_position(&self) -> Result<Option<u64>, StoreError> {
        self.tree.get(&keys::log_position())
    }

    /// The number that the entries of the next commit will have in the outbox.
    pub fn next_outbox_seq(&self) -> u64 {
        self.next_seq
    }

    /// The smallest number of an entry; `None`: the outbox is empty. Some ms with a million entries.
    pub fn oldest_outbox_seq(&self) -> Option<u64> {
        self.outbox.values().min().copied()
    }

    /// The entries with smaller numbers.
    pub fn outbox_before(&self, seq: u64) -> Vec<OutboxEntry> {
        let before = self.outbox.iter().filter(|(_, of_entry)| **of_entry < seq);
        before.map(|(&key, &seq)| OutboxEntry { key, seq }).collect()
    }

    fn update_outbox(&mut self, commit: &Commit) {
        self.outbox.extend(commit.outbox.iter().map(|entry| (*entry, self.next_seq)));
        // One number for the whole commit: its entries changed together.
        self.next_seq += 1;
        for (entry, seq) in &commit.acknowledged {
            if self.outbox.get(entry) == Some(seq) {
                self.outbox.remove(entry);
            }
        }
        self.unswept.extend(commit.deleted_windows.iter().map(|window| (*window, self.checkpoint + 1)));
    }

    /// Sets when checkpoints write and compact the database file (`checkpoint_writer`, `compaction`).
    pub fn set_database_settings(&mut self, settings: DatabaseSettings) {
        self.database_settings = settings;
    }

    /// Encodes every record that a commit changes, by kind in order of key.
    fn encode(&self, commit: &Commit, put: &mut PutFn<'_>) -> Result<(), StoreError> {
        let is_archived = |entry: &OutboxKey, seq| self.outbox.get(entry) == Some(&seq);
        commit_records::encode(commit, self.next_seq, is_archived, put)
    }

    /// Removes up to `most` sled records of deleted windows. Returns whether there may be
    /// more. Sled reuses the space; the file does not shrink.
    pub fn sweep(&mut self, most: usize) -> Result<bool, StoreError> {
        let written = self.checkpoint - u64::from(self.tree.frozen_changes().is_some());
        let mut sweepable = self.unswept.iter().filter(|&(_, checkpoint)| *checkpoint <= written);
        let Some((&window, _)) = sweepable.next() else { return Ok(false) };
        if !self.tree.remove_batch(&keys::window_prefix(window), most)? {
            self.unswept.remove(&window);
        }
        Ok(!self.unswept.is_empty())
    }

    /// Deleted windows that still have records.
    pub fn unswept(&self) -> impl Iterator<Item = WindowKey> + '_ {
        self.unswept.keys().copied()
    }

    /// Whether records of deleted windows stay until the next checkpoint.
    pub fn sweeps_after_checkpoint(&self) -> bool {
        self.unswept.values().any(|&checkpoint| checkpoint > self.checkpoint)
    }

    /// Windows that have records but are not in the meta record: they were deleted and are
    /// not yet swept.
    fn find_unswept_windows(&self, meta: &Meta) -> Result<BTreeSet<WindowKey>, StoreError> {
        let kept: BTreeSet<WindowKey> = meta.stored_windows().collect();
        let mut found = BTreeSet::new();
        let mut from = vec![keys::WINDOW];
        while let Some(key) = self.tree.next_key(from, vec![keys::WINDOW + 1])? {
            let Some(window) = keys::read_window(&key) else { return Err(StoreError::corrupt(&key, "no such window")) };
            if !kept.contains(&window) {
                found.insert(window);
            }
            // After all keys of this window: no tag is above 0xfe.
            from = keys::window_prefix(window);
            from.push(0xff);
        }
        Ok(found)
    }

    /// A reader for another thread.
    pub fn reader(&self) -> Reader {
        Reader { tree: self.tree.clone() }
    }

    /// Whether any key or record contains these bytes. Reads everything. For tests that check
    /// that a forgotten name is gone.
    pub fn contains_bytes(&self, bytes: &[u8]) -> Result<bool, StoreError> {
        self.tree.contains_bytes(bytes)
    }
}

#[cfg(test)]
mod tests;
