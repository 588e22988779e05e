//! The state directory: the store of the engine's state, in sled.
//!
//! One tree, one key space, one writer. A commit is one batch (a large one is written
//! record by record, see `redo`), flushed before `apply` returns. The crash test showed
//! that an unflushed batch is lost as a whole and a flushed one is never torn.
//! Keys are big-endian with a leading tag, so the records of a week, and within it of a
//! server, are adjacent. Values are postcard records; several small ones share a leaf
//! (`leaf`, `tree`).

mod backup;
mod commit_records;
mod commit_writer;
mod compaction;
mod dir;
mod error;
mod keys;
mod layout;
mod migrate;
mod online_copy;
mod redo;
mod source;
mod threads;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use backup::{RestoreSummary, StateReplacement, backup_closed, restore};
pub use compaction::CompactSettings;
pub use dir::read_copy::temp_root;
pub use error::StoreError;
pub use online_copy::{BackupSource, BackupSummary, BackupTarget, FinalChanges};
pub use threads::check_threads;

use crate::engine::LoadedState;
use crate::model::commit::{Commit, Meta, WeekPhase, WeekState};
use crate::model::server::{SeriesRecord, ServerRecord};
use crate::model::{GameKey, MapKey, OutboxKey, ServerKey, TagKey, WindowKey};
use crate::store::commit_records::PutFn;
use crate::store::commit_writer::CommitWriter;
use crate::store::compaction::Compaction;
use crate::store::dir::database::Database;
use crate::store::dir::{files, lock, read_copy, repair};
use crate::store::layout::VERSION;
use crate::store::tree::{RecordChange, Tree, sort_changes};

/// Most records of one batch.
const RECORDS_PER_BATCH: usize = 4_096;

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
    /// The number of the last checkpoint that began.
    checkpoint: u64,
    /// The directory of the files.
    dir: PathBuf,
    warnings: Vec<String>,
    writer: CommitWriter,
    compaction: Compaction,
    /// Commits since the store was opened.
    commits: u64,
    /// The private copy of a read-only store; removed after sled has closed it.
    _copy: Option<tempfile::TempDir>,
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

/// Waits some seconds while another process has the state directory open, or until
/// `is_cancelled` returns true. It need not exist.
pub fn wait_until_unlocked(path: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<(), StoreError> {
    lock::retry_unless_cancelled(is_cancelled, path, lock::LOCK_TIMEOUT, || Ok((!lock::is_locked(path)?).then_some(())))
}

impl Store {
    /// Opens a state directory for writing; only one process can. Waits some seconds for
    /// another one to end.
    pub fn open(path: &Path, settings: StoreSettings) -> Result<Store, StoreError> {
        Store::open_with_timeout(path, settings, lock::LOCK_TIMEOUT)
    }

    fn open_with_timeout(path: &Path, settings: StoreSettings, wait: Duration) -> Result<Store, StoreError> {
        match settings.create {
            true => files::create_dir(path)?,
            false => files::check_is_state(path)?,
        }
        files::check_access(path)?;
        let store = Store::open_at(path, path, settings.cache_bytes, wait)?;
        files::grant_group_read(path)?;
        Ok(store)
    }

    /// Opens a private copy of a state directory, which itself is not changed. It shows the
    /// state committed at that time. Waits some seconds while another process has the
    /// directory open, or until `is_cancelled` returns true.
    pub fn open_read_only(path: &Path, cache_bytes: u64, is_cancelled: &dyn Fn() -> bool) -> Result<Store, StoreError> {
        let copy = read_copy::create(path, is_cancelled)?;
        let mut store = Store::open_at(copy.path(), path, cache_bytes, lock::LOCK_TIMEOUT)
            .map_err(|error| error.with_original_path(copy.path(), path))?;
        read_copy::remove_unneeded_files(copy.path())?;
        store._copy = Some(copy);
        Ok(store)
    }

    /// Opens the database in `dir`. Errors of the open store name `dir_in_errors` instead.
    fn open_at(dir: &Path, dir_in_errors: &Path, cache_bytes: u64, wait: Duration) -> Result<Store, StoreError> {
        let mut warnings = Vec::new();
        let (db, database_dir) = lock::retry_until_unlocked(dir, wait, || {
            let database_dir = files::database_dir(dir)?;
            let Some(more) = repair::repair(&database_dir)? else { return Ok(None) };
            warnings.extend(more);
            let Some(db) = Database::try_open(&database_dir, cache_bytes)? else { return Ok(None) };
            // Before the lock, another process may have compacted the database and ended.
            let is_current = files::database_dir(dir).is_ok_and(|current| current == database_dir);
            Ok(is_current.then_some((db, database_dir)))
        })?;
        repair::sync_untracked_files(&database_dir)?;
        files::remove_other_databases(dir)?;
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let name = database_dir.strip_prefix(dir).expect("the database is in the state directory");
        let mut store = Store {
            tree: Tree::new(db.with_dir_in_errors(&dir_in_errors.join(name))),
            outbox: BTreeMap::new(),
            next_seq: 1,
            unswept: BTreeMap::new(),
            is_deferring: false,
            checkpoint: 0,
            dir: dir.to_owned(),
            warnings,
            writer: CommitWriter::default(),
            compaction: Compaction::new(dir, cache_bytes)?,
            commits: 0,
            _copy: None,
        };
        migrate::discard_partial_bulk_load(&store.tree, dir)?;
        migrate::run(&store.tree, dir_in_errors, &mut |_| ())?;
        store.replay_redo_file()?;
        let entry = |key: &[u8], seq: u64| match keys::read_outbox(key) {
            Some(entry) => Ok((entry, seq)),
            None => Err(StoreError::corrupt(key, "no such kind")),
        };
        store.outbox = store.tree.collect_prefix(&[keys::OUTBOX], entry)?.into_iter().collect::<Result<_, _>>()?;
        store.next_seq = store.outbox.values().max().map_or(1, |seq| seq + 1);
        Ok(store)
    }

    /// Messages for the admin about the files as they were found.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Commits since the store was opened, the one that is being written included.
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// Size of the database file.
    pub fn database_bytes(&self) -> u64 {
        self.compaction.file_bytes()
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
        let series = self.tree.collect_prefix(&[keys::SERIES], |key, series: SeriesRecord| (number(key), series))?;
        let mut series: BTreeMap<u32, SeriesRecord> = series.into_iter().collect();
        let servers = self.tree.collect_prefix(&[keys::SERVER], |key, server: ServerRecord| (number(key), server))?;
        let server = |(key, record)| (ServerKey(key), record, series.remove(&key));
        loaded.servers = servers.into_iter().map(server).collect();
        let closing = |state: &&WeekState| matches!(state.phase, WeekPhase::Closing | WeekPhase::Ranking);
        if let Some(state) = meta.weeks.iter().find(closing) {
            loaded.closed_servers = Some((state.week, self.closed_servers(state.week)?));
        }
        self.unswept = self.find_unswept_windows(&meta)?.into_iter().map(|window| (window, 0)).collect();
        loaded.meta = meta;
        Ok(loaded)
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
        if self.is_deferring {
            let table = self.tree.newest_changes();
            let mut table = table.write();
            self.encode(commit, &mut |key, value| {
                table.put(key, value);
                Ok(())
            })?;
            drop(table);
            self.update_outbox(commit);
            return Ok(());
        }
        if commit.records() <= RECORDS_PER_BATCH {
            commit_writer::write(&self.tree, &self.dir, &self.changes_of(commit)?)?;
        } else {
            self.write_redo(commit)?;
            self.replay_redo_file()?;
        }
        self.update_outbox(commit);
        self.compaction.step(&self.tree)
    }

    /// Freezes the changes in memory: together they are the next checkpoint. `log_position`: the last
    /// batch of the log whose events they contain. No checkpoint is being written.
    pub fn freeze(&mut self, log_position: u64) {
        let position = postcard::to_stdvec(&log_position).expect("a number is serialisable");
        self.tree.newest_changes().write().put(&keys::log_position(), Some(&position));
        self.tree.freeze();
        self.checkpoint += 1;
    }

    /// Begins to write the frozen changes. The log is on disk until their position.
    pub fn write_frozen(&mut self) -> Result<(), StoreError> {
        let frozen = self.tree.frozen_changes().expect("changes are frozen");
        self.writer.begin(&self.tree, &self.dir, frozen)
    }

    /// Returns whether the checkpoint that was being written is on disk since the last call. After an
    /// error the process must end.
    pub fn poll_checkpoint(&mut self) -> Result<bool, StoreError> {
        let has_ended = self.writer.poll(&self.tree)?;
        if has_ended {
            self.compaction.step(&self.tree)?;
        }
        Ok(has_ended)
    }

    /// Waits until the checkpoint in progress is on disk.
    pub fn finish_checkpoint(&mut self) -> Result<(), StoreError> {
        if self.writer.finish(&self.tree)? {
            self.compaction.step(&self.tree)?;
        }
        Ok(())
    }

    /// Writes the changes in memory and waits until they are on disk, as is the log until
    /// `log_position`.
    pub fn write_checkpoint(&mut self, log_position: u64) -> Result<(), StoreError> {
        if self.tree.frozen_changes().is_some() && !self.writer.is_writing() {
            self.write_frozen()?;
        }
        self.finish_checkpoint()?;
        self.freeze(log_position);
        self.write_frozen()?;
        self.finish_checkpoint()
    }

    /// Memory of the changes since the last checkpoint began, bytes.
    pub fn changed_bytes(&self) -> usize {
        self.tree.newest_changes().bytes()
    }

    /// Records that changed since the last checkpoint began.
    pub fn changed_records(&self) -> usize {
        self.tree.newest_changes().len()
    }

    /// The last batch of the log whose events the state on disk contains; `None`: the state was
    /// written without a log.
    pub fn log_position(&self) -> Result<Option<u64>, StoreError> {
        self.tree.get(&keys::log_position())
    }

    /// The changes of a commit, sorted by key, each key once.
    fn changes_of(&self, commit: &Commit) -> Result<Vec<RecordChange>, StoreError> {
        let mut changes: Vec<RecordChange> = Vec::with_capacity(commit.records());
        self.encode(commit, &mut |key, value| {
            changes.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            Ok(())
        })?;
        sort_changes(&mut changes);
        Ok(changes)
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
        let checkpoint = if self.is_deferring { self.checkpoint + 1 } else { self.checkpoint };
        self.unswept.extend(commit.deleted_windows.iter().map(|window| (*window, checkpoint)));
    }

    /// Sets when commits compact the database file (`compaction`).
    pub fn set_compaction(&mut self, settings: CompactSettings) {
        self.compaction.set_settings(settings);
    }

    fn write_redo(&self, commit: &Commit) -> Result<(), StoreError> {
        let mut redo = redo::Writer::create(&self.dir)?;
        self.encode(commit, &mut |key, value| redo.put(key, value))?;
        redo.finish()
    }

    /// Applies the commit of the redo file, if there is a complete one.
    fn replay_redo_file(&mut self) -> Result<(), StoreError> {
        let Some((version, changes)) = redo::read(&self.dir)? else { return Ok(()) };
        let convert = |(key, value): RecordChange| {
            let value = match value {
                Some(value) if version != VERSION => Some(migrate::convert(version, &key, value)?),
                value => value,
            };
            Ok((key, value))
        };
        self.tree.write_unlogged(changes.map(|change| change.and_then(convert)))?;
        self.tree.flush()?;
        redo::remove(&self.dir)
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

    /// Whether records of deleted windows stay until the next checkpoint.
    pub fn sweeps_after_checkpoint(&self) -> bool {
        self.unswept.values().any(|&checkpoint| checkpoint > self.checkpoint)
    }

    /// Windows that have records but are not in the meta record: they were deleted and are
    /// not yet swept.
    fn find_unswept_windows(&self, meta: &Meta) -> Result<BTreeSet<WindowKey>, StoreError> {
        let kept: BTreeSet<WindowKey> = meta.kept_windows().collect();
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
mod tests {
    use super::*;
    use crate::engine::StateReader;
    use crate::model::commit::RowKey;
    use crate::model::packed_row::PackedRow;
    use crate::model::{PlayerKey, PlayerRow, WeekKey};

    fn open(path: &Path) -> Store {
        Store::open(path, StoreSettings { cache_bytes: 16 << 20, create: true }).unwrap()
    }

    /// `n` rows of one week.
    fn rows(n: u32, points: i64) -> Vec<(RowKey, PackedRow)> {
        let row = |n: u32| PlayerRow { points, ..PlayerRow::new(i64::from(n), 1000.0) };
        let mut rows: Vec<_> = (0..n).map(|n| (key(n), PackedRow::pack(&row(n)))).collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        rows
    }

    fn key(n: u32) -> RowKey {
        RowKey { window: WeekKey(1).into(), server: ServerKey(n % 7), player: PlayerKey(n) }
    }

    /// More rows than one batch has.
    const N: u32 = 2 * RECORDS_PER_BATCH as u32 + 5;

    /// The number of stored rows with these points.
    fn stored(store: &Store, points: i64) -> u32 {
        (0..N).filter(|n| store.row(key(*n)).unwrap().is_some_and(|row| row.points == points)).count() as u32
    }

    #[test]
    fn interrupted_large_commit_is_completed_on_open() {
        let dir = tempfile::tempdir().unwrap();
        let mut commit = Commit { rows: rows(N, 1), ..Commit::default() };
        open(dir.path()).apply(&commit).unwrap();
        assert!(!dir.path().join("redo").exists());

        commit.rows = rows(N, 2);
        let store = open(dir.path());
        store.write_redo(&commit).unwrap();
        drop(store); // killed here, or after some of the records
        let store = open(dir.path());
        assert_eq!(stored(&store, 2), N);
        assert!(!dir.path().join("redo").exists());
    }

    #[test]
    fn interrupted_large_first_commit_is_complete_or_absent_on_open() {
        let dir = tempfile::tempdir().unwrap();
        let meta = Meta { next_player: N, ..Meta::default() };
        let commit = Commit { meta: Some(meta), rows: rows(N, 1), ..Commit::default() };
        let redo = dir.path().join("redo");
        let store = open(dir.path());
        store.write_redo(&commit).unwrap();
        drop(store);
        let whole = std::fs::read(&redo).unwrap();
        // Killed while the redo file was written.
        std::fs::write(&redo, &whole[..whole.len() / 2]).unwrap();
        let mut store = open(dir.path());
        assert_eq!((stored(&store, 1), store.load().unwrap().meta.next_player), (0, 0));
        drop(store);
        // Killed while its records were written.
        std::fs::write(&redo, &whole).unwrap();
        let store = open(dir.path());
        let mut changes: Vec<RecordChange> = Vec::new();
        let put = &mut |key: &[u8], value: Option<&[u8]>| {
            changes.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            Ok(())
        };
        store.encode(&commit, put).unwrap();
        store.tree.write_unlogged(changes.into_iter().take(5_000).map(Ok)).unwrap();
        drop(store);
        std::fs::write(&redo, &whole).unwrap();
        let mut store = open(dir.path());
        assert_eq!((stored(&store, 1), store.load().unwrap().meta.next_player), (N, N));
        assert!(!redo.exists());
    }

    /// Earlier versions wrote a large first commit without a redo file.
    #[test]
    fn killed_bulk_load_of_an_earlier_version_is_discarded_on_open() {
        let dir = tempfile::tempdir().unwrap();
        let marker = dir.path().join("first");
        let store = open(dir.path());
        let rows = rows(N, 1);
        let part = rows[..5_000].iter().map(|(key, row)| Ok((keys::row(*key), Some(row.bytes().to_vec()))));
        store.tree.write_unlogged(part).unwrap();
        assert_eq!(stored(&store, 1), 5_000);
        drop(store);
        std::fs::write(&marker, b"").unwrap();
        let mut store = open(dir.path());
        assert_eq!((stored(&store, 1), marker.exists()), (0, false));

        let meta = Meta { next_player: N, ..Meta::default() };
        store.apply(&Commit { meta: Some(meta), rows, ..Commit::default() }).unwrap();
        drop(store);
        // Killed after the meta was written, before the marker was removed.
        std::fs::write(&marker, b"").unwrap();
        assert_eq!(stored(&open(dir.path()), 1), N);
        assert!(!marker.exists());
    }
}
