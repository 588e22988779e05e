//! Compaction: rewrites the database file when it has grown.
//!
//! Sled 0.34.7 appends every change of a page to a log of segments of 512 KiB. A segment
//! that is at most half used is queued; when its pages have been moved, the segment is
//! reused. But sled takes a page from this queue only when it replaces some page, at every
//! 11th change of a page. The segments of a daemon have hundreds of small changes, each of
//! another page, so more pages are queued than are ever taken: a week of 400 servers takes
//! 124 MB, which a replay writes in 21 MB. Sled's settings do not change that
//! (`segment_cleanup_threshold`, `flush_every_ms`). Replacing pages from outside sometimes
//! blocks sled forever: its segment accountant waits for a truncation of the file while
//! every thread that could do it waits for the accountant.
//!
//! So the store copies its records into a new database, as a backup does (`online_copy`): on
//! another thread, while commits continue; records that they change are copied again. The
//! new database is in the directory `db.N` in the state directory. Between two commits the
//! file `current` is replaced to name it, and all readers and writers continue in it. After
//! a crash before that the old database is used, after a crash after it the new one; the
//! next start removes the other.
//!
//! **The bound:** a compaction begins when the database file has 1.5 times the size that it
//! had after the last one. With the copy the directory takes 2.5 times the size of the
//! records, plus what commits add in the meantime. `benches/size.rs` asserts that this is
//! at most 2.5 times the directory of a replay.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::error::StoreError;
use super::online_copy::{BackupSource, BackupTarget, FinalChanges, SledChange};
use super::tree::Tree;
use crate::store::dir::database::Database;
use crate::store::dir::files::{self, CurrentDatabase};
use crate::store::dir::lock;

/// The size at which a compaction begins, in percent of the size after the last one.
const GROWTH_PERCENT: u64 = 150;

/// The size at which a failed compaction is retried, in percent of the size at the failure.
const RETRY_GROWTH_PERCENT: u64 = 125;

/// When to compact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactSettings {
    /// Minimum size of a file to compact, bytes; 0: never compact.
    pub bytes_min: u64,
    /// Space that must stay free on the disk, bytes.
    pub disk_free_bytes_min: u64,
}

/// The compactions of a store. Dropping it cancels the one in progress.
#[derive(Debug)]
pub(super) struct Compaction {
    settings: CompactSettings,
    dir: PathBuf,
    cache_bytes: u64,
    /// The database in use; `None`: none was compacted yet.
    current: Option<CurrentDatabase>,
    /// File size at which a failed compaction is retried, bytes.
    retry_bytes: u64,
    running: Option<CompactionJob>,
    /// Replaced databases that still have readers.
    replaced: Vec<PathBuf>,
}

#[derive(Debug)]
struct CompactionJob {
    is_cancelled: Arc<AtomicBool>,
    thread: JoinHandle<Result<CompactedDatabase, StoreError>>,
}

/// A new database with all records but the last changes. Dropping it removes its directory
/// unless `keep_dir` is set.
#[derive(Debug)]
struct CompactedDatabase {
    source: BackupSource,
    /// `None`: it is not open yet, or the store has taken it.
    db: Option<Database>,
    dir: PathBuf,
    bytes: u64,
    /// The file `current` names the directory, or may name it.
    keep_dir: bool,
}

impl Compaction {
    pub(super) fn new(dir: &Path, cache_bytes: u64) -> Result<Compaction, StoreError> {
        Ok(Compaction {
            settings: CompactSettings { bytes_min: 0, disk_free_bytes_min: 0 },
            dir: dir.to_owned(),
            cache_bytes,
            current: files::read_current(dir)?,
            retry_bytes: 0,
            running: None,
            replaced: Vec::new(),
        })
    }

    pub(super) fn set_settings(&mut self, settings: CompactSettings) {
        self.settings = settings;
    }

    /// Begins, continues or ends a compaction. Is called between two commits. After an
    /// error it is unknown which database is current: the process must end.
    pub(super) fn step(&mut self, tree: &Tree) -> Result<(), StoreError> {
        self.remove_replaced();
        let Some(running) = self.running.take_if(|running| running.thread.is_finished()) else {
            if self.running.is_none() {
                self.begin_if_due(tree);
            }
            return Ok(());
        };
        let copied = match running.thread.join() {
            Ok(Ok(copied)) => copied,
            Ok(Err(error)) => return self.postpone(&error.with_causes()),
            Err(_) => return self.postpone("its thread panicked"),
        };
        match copied.source.final_changes() {
            Ok(Some(last)) => self.switch(tree, copied, last),
            Ok(None) => {
                self.spawn(move |is_cancelled| copied.catch_up(is_cancelled));
                Ok(())
            }
            Err(error) => self.postpone(&error.with_causes()),
        }
    }

    /// Cancels the compaction in progress, and waits until its thread has ended: some 20
    /// ms, longer while a large database is opened.
    pub(super) fn cancel(&mut self) {
        let Some(CompactionJob { is_cancelled, thread }) = self.running.take() else { return };
        is_cancelled.store(true, Ordering::Relaxed);
        if thread.join().is_err() {
            tracing::error!("the thread that compacted the state directory panicked");
        }
    }

    fn begin_if_due(&mut self, tree: &Tree) {
        let CompactSettings { bytes_min, disk_free_bytes_min } = self.settings;
        if bytes_min == 0 {
            return;
        }
        let bytes = self.file_bytes();
        let after_last = self.current.as_ref().map_or(0, |current| current.bytes);
        if bytes < bytes_min.max(after_last / 100 * GROWTH_PERCENT).max(self.retry_bytes) {
            return;
        }
        let free = files::free_bytes(&self.dir).unwrap_or(0);
        if free < bytes + disk_free_bytes_min {
            tracing::warn!(
                bytes,
                free,
                disk_free_bytes_min,
                "the state directory is not compacted: the disk has no space for a copy of it and \
                 store.disk_free_bytes_min"
            );
            self.retry_bytes = bytes / 100 * RETRY_GROWTH_PERCENT;
            return;
        }
        // No compaction during a backup.
        let Some(source) = BackupSource::begin(tree) else { return };
        let (dir, cache_bytes) = (self.dir.join(self.next_database(0).name()), self.cache_bytes);
        tracing::debug!(bytes, into = %dir.display(), "the state directory is being compacted");
        self.spawn(move |is_cancelled| CompactedDatabase::copy(source, &dir, cache_bytes, is_cancelled));
    }

    fn spawn(&mut self, work: impl FnOnce(&AtomicBool) -> Result<CompactedDatabase, StoreError> + Send + 'static) {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let thread_flag = is_cancelled.clone();
        let thread = std::thread::Builder::new().name("store-compact".to_owned()).spawn(move || work(&thread_flag));
        match thread {
            Ok(thread) => self.running = Some(CompactionJob { is_cancelled, thread }),
            Err(error) => _ = self.postpone(&error.to_string()),
        }
    }

    /// Logs why a compaction failed. It costs nothing but disk space: it is retried when
    /// the file has grown.
    fn postpone(&mut self, why: &str) -> Result<(), StoreError> {
        tracing::warn!("the state directory was not compacted: {why}");
        self.retry_bytes = self.file_bytes() / 100 * RETRY_GROWTH_PERCENT;
        Ok(())
    }

    fn switch(&mut self, tree: &Tree, mut copied: CompactedDatabase, last: FinalChanges) -> Result<(), StoreError> {
        if let Err(error) = copied.put(last.records()) {
            return self.postpone(&error.with_causes());
        }
        let next = self.next_database(copied.bytes);
        let old = self.database();
        // If this fails, either database may be current. The next start removes the other.
        copied.keep_dir = true;
        files::write_current(&self.dir, &next)?;
        tree.switch_database(copied.db.take().expect("database is open until it becomes current"));
        tracing::debug!(bytes = next.bytes, "the state directory is compacted");
        self.current = Some(next);
        self.retry_bytes = 0;
        self.replaced.push(old);
        Ok(())
    }

    /// Removes replaced databases without readers, on another thread: removing a large file
    /// takes a while.
    fn remove_replaced(&mut self) {
        if self.running.is_some() {
            return;
        }
        for old in std::mem::take(&mut self.replaced) {
            match lock::is_database_locked(&old) {
                Ok(false) if old == self.dir => remove_on_thread(move || files::remove_database_files(&old)),
                Ok(false) => remove_on_thread(move || files::remove_database(&old)),
                Ok(true) => self.replaced.push(old),
                Err(error) => warn_not_removed(&error.with_causes()),
            }
        }
    }

    /// The database that the next compaction makes current.
    fn next_database(&self, bytes: u64) -> CurrentDatabase {
        CurrentDatabase { number: self.current.as_ref().map_or(1, |current| current.number + 1), bytes }
    }

    /// Size of the database file. An unreadable file counts as empty. Takes 2 us.
    pub(super) fn file_bytes(&self) -> u64 {
        std::fs::metadata(self.database().join("db")).map_or(0, |file| file.len())
    }

    fn database(&self) -> PathBuf {
        self.current.as_ref().map_or_else(|| self.dir.clone(), |current| self.dir.join(current.name()))
    }
}

impl Drop for Compaction {
    fn drop(&mut self) {
        self.cancel();
    }
}

fn remove_on_thread(remove: impl FnOnce() -> Result<(), StoreError> + Send + 'static) {
    let removing = std::thread::Builder::new().name("store-remove".to_owned()).spawn(move || {
        if let Err(error) = remove() {
            warn_not_removed(&error.with_causes());
        }
    });
    if let Err(error) = removing {
        warn_not_removed(&error.to_string());
    }
}

fn warn_not_removed(why: &str) {
    tracing::warn!("an unused database is not removed before the next start: {why}");
}

impl CompactedDatabase {
    /// Copies all records into a new database with a small cache, reopens it with the
    /// store's cache size, and copies the records changed in the meantime, until few
    /// remain.
    fn copy(
        mut source: BackupSource,
        dir: &Path,
        cache_bytes: u64,
        is_cancelled: &AtomicBool,
    ) -> Result<CompactedDatabase, StoreError> {
        let mut target = BackupTarget::create(dir, 0)?;
        source.copy_to(&mut target, is_cancelled)?;
        let bytes = target.finish_database()?.bytes;
        let mut copied = CompactedDatabase { source, db: None, dir: dir.to_owned(), bytes, keep_dir: false };
        copied.db = Some(Database::open(dir, cache_bytes)?);
        files::grant_group_read(dir)?;
        copied.catch_up(is_cancelled)
    }

    fn catch_up(mut self, is_cancelled: &AtomicBool) -> Result<CompactedDatabase, StoreError> {
        while !self.source.is_near_end() {
            if is_cancelled.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled { path: self.dir.clone() });
            }
            let changed = self.source.next_changes()?;
            self.put(changed)?;
        }
        Ok(self)
    }

    /// Writes records and waits until they are on disk.
    fn put(&self, records: Vec<SledChange>) -> Result<(), StoreError> {
        let db = self.db.as_ref().expect("database is open until it becomes current");
        let mut batch = sled::Batch::default();
        let mut bytes = 0;
        for (key, value) in records {
            bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        db.apply_batch(batch, bytes)?;
        db.flush()
    }
}

impl Drop for CompactedDatabase {
    fn drop(&mut self) {
        if self.keep_dir {
            return;
        }
        drop(self.db.take());
        let dir = self.dir.clone();
        remove_on_thread(move || {
            lock::wait_until_unlocked(&dir)?;
            files::remove_database(&dir)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::store::Store;
    use crate::store::backup::tests::{SETTINGS, commit, records};
    use crate::store::tree::SledRecord;

    const ALWAYS: CompactSettings = CompactSettings { bytes_min: 1 << 20, disk_free_bytes_min: 0 };

    fn open(dir: &Path) -> Store {
        let mut store = Store::open(dir, SETTINGS).unwrap();
        store.set_compaction(ALWAYS);
        store
    }

    /// Commits until `compactions` more compactions have finished. Returns the number of
    /// the next commit.
    fn commit_until_compacted(store: &mut Store, mut n: u32, compactions: u64) -> u32 {
        let number = |store: &Store| store.compaction.current.as_ref().map_or(0, |current| current.number);
        let end = number(store) + compactions;
        while number(store) < end {
            store.apply(&commit(n, 300)).unwrap();
            n += 1;
            assert!(n < 100_000, "a compaction finishes");
        }
        n
    }

    fn databases(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("db")).collect();
        names.sort();
        names
    }

    fn sled_records(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
        let parts = |record: SledRecord| (record.key.to_vec(), record.bytes.to_vec());
        tree.sled_records_after(&[]).map(|record| parts(record.unwrap())).collect()
    }

    #[test]
    fn compacted_store_has_the_records_of_one_that_was_not() {
        let dir = tempfile::tempdir().unwrap();
        let (compacted, other) = (dir.path().join("compacted"), dir.path().join("other"));
        let mut store = open(&compacted);
        let reader = store.reader();
        let mut uncompacted = Store::open(&other, SETTINGS).unwrap();
        store.apply(&commit(0, 30_000)).unwrap();
        let n = commit_until_compacted(&mut store, 1, 2);
        uncompacted.apply(&commit(0, 30_000)).unwrap();
        (1..n).for_each(|n| uncompacted.apply(&commit(n, 300)).unwrap());
        assert!(records(&store) == records(&uncompacted));
        let reader_records = sled_records(&reader.tree);
        assert!(reader_records == sled_records(&store.tree), "a reader reads the new database");
        drop((store, reader));
        let store = open(&compacted);
        assert!(records(&store) == records(&uncompacted), "after a restart");
        assert_eq!(databases(&compacted), ["db.2"], "old databases are removed");
        // The sizes depend on when the compaction ended: `cargo bench --bench size` compares them.
    }

    /// Copies the state directory as a kill at this point would leave it.
    fn killed(dir: &Path, to: &Path) {
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => killed(&entry.path(), &to.join(entry.file_name())),
                false => _ = fs::copy(entry.path(), to.join(entry.file_name())).unwrap(),
            }
        }
    }

    #[test]
    fn kill_at_any_step_leaves_the_state_and_the_next_start_cleans_up() {
        let dir = tempfile::tempdir().unwrap();
        let (state, mut number) = (dir.path().join("state"), 0);
        let mut store = Store::open(&state, SETTINGS).unwrap();
        store.apply(&commit(0, 30_000)).unwrap();
        let mut check = |store: &Store, step: &str| {
            let copy = dir.path().join(format!("{number} {step}"));
            number += 1;
            killed(&state, &copy);
            let reopened = Store::open(&copy, SETTINGS).unwrap();
            assert!(records(&reopened) == records(store), "{step}");
            assert_eq!(databases(&copy).len(), 1, "{step}: {:?}", databases(&copy));
        };
        for dir in ["db.1", "db.2"] {
            // The parts of `step`, one after another.
            let source = BackupSource::begin(&store.tree).unwrap();
            fs::create_dir(state.join(format!("{dir}.partial"))).unwrap();
            check(&store, "begun");
            fs::remove_dir(state.join(format!("{dir}.partial"))).unwrap();
            let never = AtomicBool::new(false);
            let copied = CompactedDatabase::copy(source, &state.join(dir), SETTINGS.cache_bytes, &never).unwrap();
            check(&store, "copied");
            if dir == "db.1" {
                let last = copied.source.final_changes().unwrap().unwrap();
                store.compaction.switch(&store.tree, copied, last).unwrap();
                store.compaction.replaced.clear();
                store.apply(&commit(1, 300)).unwrap();
                check(&store, "switched, the old database not removed");
            }
        }
    }

    #[test]
    fn backup_cancels_a_compaction_and_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(&dir.path().join("state"));
        store.apply(&commit(0, 100_000)).unwrap();
        let mut n = 1;
        // On a busy machine a compaction may be over before the commit after it begins.
        while store.compaction.running.is_none() {
            store.apply(&commit(n, 300)).unwrap();
            n += 1;
        }
        let mut source = store.begin_backup().unwrap().expect("the compaction is cancelled");
        let path = dir.path().join("backup");
        let mut target = BackupTarget::create(&path, 0).unwrap();
        source.copy_to(&mut target, &AtomicBool::new(false)).unwrap();
        let last = store.end_backup(source.rounds()).unwrap().unwrap();
        assert!(store.compaction.running.is_none(), "no compaction begins during a backup");
        drop(source);
        target.finish(last).unwrap();
        assert!(records(&Store::open(&path, SETTINGS).unwrap()) == records(&store));
        commit_until_compacted(&mut store, n, 1);
    }

    #[test]
    fn full_disk_postpones_a_compaction_and_fails_no_commit() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path(), SETTINGS).unwrap();
        store.set_compaction(CompactSettings { bytes_min: 1 << 20, disk_free_bytes_min: u64::MAX >> 1 });
        store.apply(&commit(0, 30_000)).unwrap();
        (1..200).for_each(|n| store.apply(&commit(n, 300)).unwrap());
        assert!(store.compaction.running.is_none() && store.compaction.current.is_none());
        assert!(store.compaction.retry_bytes > 0);
    }

    #[test]
    fn compaction_that_cannot_open_its_database_removes_it_and_the_next_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(dir.path());
        // Sled refuses to open a database with such a small cache.
        let cache_bytes = std::mem::replace(&mut store.compaction.cache_bytes, 0);
        store.apply(&commit(0, 30_000)).unwrap();
        let mut n = 1;
        while store.compaction.retry_bytes == 0 {
            store.apply(&commit(n, 300)).unwrap();
            n += 1;
            assert!(n < 100_000, "the compaction fails");
        }
        for _ in 0..600 {
            if databases(dir.path()) == ["db"] {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(databases(dir.path()), ["db"], "the new database is removed");
        store.compaction.cache_bytes = cache_bytes;
        commit_until_compacted(&mut store, n, 1);
        assert!(databases(dir.path()).contains(&"db.1".to_owned()));
    }

    #[test]
    fn damaged_file_that_names_the_database_costs_a_load() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(dir.path());
        store.apply(&commit(0, 3_000)).unwrap();
        commit_until_compacted(&mut store, 1, 1);
        let expected = records(&store);
        drop(store);
        let path = dir.path().join("current");
        let whole = fs::read_to_string(&path).unwrap();
        for bad in ["", "db.1", "db.1 7", "db.x 7\n", "../x 7\n", "db.9 7\n", &whole[1..]] {
            fs::write(&path, bad).unwrap();
            assert!(records(&Store::open(dir.path(), SETTINGS).unwrap()) == expected, "{bad:?}");
        }
    }
}
