//! Compaction: replaces the database when its file has grown.
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
//! So another thread loads a new database from the checkpoint files, in the directory `db.N` of the state
//! directory, while checkpoints continue. The next checkpoint after that gives it the files written
//! meanwhile, replaces the file `current`, which names the database, and all readers continue in
//! it. Whenever the process is killed, the next start finds one of the two databases, and removes
//! the other.
//!
//! A compaction begins when the database file has 1.5 times the size that it had after the last one: the two
//! databases take at most 2.5 times the size of the records, plus what checkpoints add in the meantime.
//! `benches/size.rs` asserts that. One also begins after a name was forgotten, which the old database may
//! still have in unused segments.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::checkpoint::{self, CheckpointFiles, Records};
use super::error::StoreError;
use super::tree::Tree;
use super::working_copy;
use crate::store::dir::database::Database;
use crate::store::dir::files::{self, CurrentDatabase};
use crate::store::dir::lock;

/// The size at which a compaction begins, in percent of the size after the last one.
const GROWTH_PERCENT: u64 = 150;

/// The size at which a failed compaction is retried, in percent of the size at the failure.
const RETRY_GROWTH_PERCENT: u64 = 125;

/// Page cache of a database that is being loaded, bytes.
const LOAD_CACHE_BYTES: u64 = 16 << 20;

/// Pause after some hundred kilobytes: a load leaves most of a core, and most of the disk, to others.
const PAUSE: Duration = Duration::from_millis(5);

/// When the database is written and compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseSettings {
    /// Memory of changes that are in files, and with which the database gets them, bytes.
    pub waiting_bytes_max: usize,
    /// Minimum size of a file to compact, bytes; 0: only after a name was forgotten.
    pub compact_bytes_min: u64,
    /// Space that must stay free on the disk, bytes.
    pub disk_free_bytes_min: u64,
}

impl Default for DatabaseSettings {
    /// Without compactions.
    fn default() -> DatabaseSettings {
        DatabaseSettings { waiting_bytes_max: 256 << 20, compact_bytes_min: 0, disk_free_bytes_min: 0 }
    }
}

/// The compactions of a store. Dropping it cancels the one in progress.
#[derive(Debug)]
pub(super) struct Compaction {
    dir: PathBuf,
    cache_bytes: u64,
    /// The database in use; `None`: none was compacted yet.
    current: Option<CurrentDatabase>,
    /// File size at which a failed compaction is retried, bytes.
    retry_bytes: u64,
    is_requested: bool,
    running: Option<CompactionJob>,
    /// Replaced databases that still have readers.
    replaced: Vec<PathBuf>,
}

#[derive(Debug)]
struct CompactionJob {
    into: CurrentDatabase,
    is_cancelled: Arc<AtomicBool>,
    thread: JoinHandle<Result<Tree, StoreError>>,
}

impl Compaction {
    pub(super) fn new(dir: &Path, cache_bytes: u64) -> Result<Compaction, StoreError> {
        Ok(Compaction {
            dir: dir.to_owned(),
            cache_bytes,
            current: files::read_current(dir)?,
            retry_bytes: 0,
            is_requested: false,
            running: None,
            replaced: Vec::new(),
        })
    }

    /// Begins a compaction soon, whatever the size of the database.
    pub(super) fn request(&mut self) {
        // The one in progress may have begun too early.
        self.cancel();
        self.is_requested = true;
    }

    /// As [`Compaction::request`], unless one is in progress.
    pub(super) fn request_if_idle(&mut self) {
        self.is_requested |= self.running.is_none();
    }

    /// The state directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Replaces the database of `tree` if a new one is loaded. It then has the changes of all `files`.
    pub(super) fn switch_if_ready(&mut self, tree: &Tree, files: &CheckpointFiles) -> bool {
        self.remove_replaced();
        let Some(CompactionJob { mut into, thread, .. }) = self.running.take_if(|job| job.thread.is_finished()) else {
            return false;
        };
        let loaded = match thread.join() {
            Ok(loaded) => loaded,
            Err(_) => return self.postpone(tree, "its thread panicked"),
        };
        let caught_up = loaded.and_then(|new| working_copy::catch_up(&new, files).map(|()| new));
        into.bytes = caught_up.as_ref().map_or(0, Tree::database_bytes);
        let switched = caught_up.and_then(|new| {
            // If this fails, either database may be current: the next start takes it.
            files::write_current(&self.dir, &into)?;
            tree.switch_database(&new);
            Ok(())
        });
        if let Err(error) = switched {
            files.damage().note(&error);
            return self.postpone(tree, &error.with_causes());
        }
        tracing::debug!(bytes = into.bytes, "the state directory is compacted");
        self.replaced.push(self.current.as_ref().map_or_else(|| self.dir.clone(), |it| self.dir.join(it.name())));
        self.current = Some(into);
        self.retry_bytes = 0;
        true
    }

    /// Begins a compaction if the database is large. It has the changes of all `files`.
    pub(super) fn begin_if_due(&mut self, tree: &Tree, files: &CheckpointFiles, settings: DatabaseSettings) {
        let DatabaseSettings { compact_bytes_min, disk_free_bytes_min, .. } = settings;
        if self.running.is_some() || compact_bytes_min == 0 && !self.is_requested {
            return;
        }
        let bytes = tree.database_bytes();
        let after_last = self.current.as_ref().map_or(0, |current| current.bytes);
        let is_large = bytes >= compact_bytes_min.max(after_last / 100 * GROWTH_PERCENT).max(self.retry_bytes);
        if !is_large && !self.is_requested {
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
        self.is_requested = false;
        let into = CurrentDatabase { number: self.current.as_ref().map_or(1, |current| current.number + 1), bytes: 0 };
        let (dir, cache_bytes) = (self.dir.join(into.name()), self.cache_bytes);
        tracing::debug!(bytes, into = %dir.display(), "the state directory is being compacted");
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let thread_flag = is_cancelled.clone();
        let spawned = files.records().and_then(|records| {
            let number = files.last_number().unwrap_or(0);
            let load = move || load(records, number, &dir, cache_bytes, &thread_flag);
            let spawned = std::thread::Builder::new().name("store-compact".to_owned()).spawn(load);
            spawned.map_err(files::io_error("start a thread for", &self.dir))
        });
        match spawned {
            Ok(thread) => self.running = Some(CompactionJob { into, is_cancelled, thread }),
            Err(error) => {
                files.damage().note(&error);
                self.postpone(tree, &error.with_causes());
            }
        }
    }

    /// Cancels the compaction in progress, and waits until its thread has ended: some 20
    /// ms, longer while a large database is opened.
    pub(super) fn cancel(&mut self) {
        let Some(CompactionJob { into, is_cancelled, thread }) = self.running.take() else { return };
        is_cancelled.store(true, Ordering::Relaxed);
        match thread.join() {
            // It was complete already.
            Ok(Ok(tree)) => {
                let dir = self.dir.join(into.name());
                drop(tree);
                let removed = lock::wait_until_unlocked(&dir).and_then(|()| files::remove_database(&dir));
                removed.unwrap_or_else(|error| warn_not_removed(&error.with_causes()));
            }
            // It has removed the database.
            Ok(Err(_)) => {}
            Err(_) => tracing::error!("the thread that compacted the state directory panicked"),
        }
    }

    /// Logs why a compaction failed. It costs nothing but disk space: it is retried when
    /// the file has grown.
    fn postpone(&mut self, tree: &Tree, why: &str) -> bool {
        tracing::warn!("the state directory was not compacted: {why}");
        self.retry_bytes = tree.database_bytes() / 100 * RETRY_GROWTH_PERCENT;
        false
    }

    /// Removes replaced databases without readers, on another thread: removing a large file
    /// takes a while.
    fn remove_replaced(&mut self) {
        for old in std::mem::take(&mut self.replaced) {
            match lock::is_database_locked(&old) {
                Ok(false) if old == self.dir => remove_on_thread(move || files::remove_database_files(&old)),
                Ok(false) => remove_on_thread(move || files::remove_database(&old)),
                Ok(true) => self.replaced.push(old),
                Err(error) => warn_not_removed(&error.with_causes()),
            }
        }
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

/// Loads records into a new database with a small cache, and opens it with the cache of the store. `number`:
/// of the last checkpoint file that they are from. Removes the database after an error.
fn load(
    records: Records,
    number: u64,
    dir: &Path,
    cache_bytes: u64,
    is_cancelled: &AtomicBool,
) -> Result<Tree, StoreError> {
    let pace = || match is_cancelled.load(Ordering::Relaxed) {
        true => Err(StoreError::Cancelled { path: dir.to_owned() }),
        false => {
            std::thread::sleep(PAUSE);
            Ok(())
        }
    };
    let load = || {
        if files::metadata_if_exists(dir)?.is_some() {
            // Left by one that was cancelled.
            files::remove_database(dir)?;
        }
        files::create_dir(dir)?;
        let tree = Tree::new(Database::open(dir, LOAD_CACHE_BYTES)?);
        working_copy::load(&tree, checkpoint::paced(records, pace), number)?;
        drop(tree);
        let tree = Tree::new(Database::open(dir, cache_bytes)?);
        super::state_files::grant_group_read(dir)?;
        Ok(tree)
    };
    load().inspect_err(|_| {
        let removed = lock::wait_until_unlocked(dir).and_then(|()| files::remove_database(dir));
        removed.unwrap_or_else(|error| warn_not_removed(&error.with_causes()));
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::store::Store;
    use crate::store::backup::tests::{SETTINGS, commit, records};
    use crate::store::tree::SledRecord;

    const ALWAYS: DatabaseSettings =
        DatabaseSettings { waiting_bytes_max: 0, compact_bytes_min: 1 << 20, disk_free_bytes_min: 0 };

    fn open(dir: &Path) -> Store {
        let mut store = Store::open(dir, SETTINGS).unwrap();
        store.set_database_settings(ALWAYS);
        store
    }

    /// Commits until `compactions` more compactions have finished. Returns the number of
    /// the next commit.
    fn commit_until_compacted(store: &mut Store, mut n: u32, compactions: u64) -> u32 {
        let number = |store: &mut Store| store.writer.compaction().current.as_ref().map_or(0, |current| current.number);
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

    /// Waits for the new database.
    fn finish_loading(store: &mut Store) {
        while !store.writer.compaction().running.as_ref().unwrap().thread.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
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
        for n in [1, 2] {
            store.writer.compaction().request();
            store.apply(&commit(10 * n, 300)).unwrap();
            assert!(store.writer.compaction().is_running());
            check(&store, "begun");
            finish_loading(&mut store);
            check(&store, "loaded");
            store.apply(&commit(10 * n + 1, 300)).unwrap();
            assert_eq!(store.writer.compaction().current.as_ref().map(|it| it.number), Some(n.into()));
            store.writer.compaction().replaced.clear();
            check(&store, "switched, the old database not removed");
        }
    }

    /// A window that is deleted while the new database is loaded is not in it, also if its records were
    /// already removed from the old one.
    #[test]
    fn window_deleted_during_a_compaction_stays_deleted() {
        use crate::model::WeekKey;
        use crate::model::commit::Commit;

        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path(), SETTINGS).unwrap();
        store.apply(&commit(0, 3_000)).unwrap();
        store.writer.compaction().request();
        store.apply(&commit(1, 300)).unwrap();
        finish_loading(&mut store);
        // Commits that begin no compaction and end none.
        let running = store.writer.compaction().running.take();
        let deletion = Commit { deleted_windows: vec![WeekKey(1).into()], ..Commit::default() };
        store.apply(&deletion).unwrap();
        while store.sweep(1_000).unwrap() {}
        let expected = records(&store);
        store.writer.compaction().running = running;
        store.apply(&Commit::default()).unwrap();
        assert!(store.writer.compaction().current.is_some(), "the new database is used");
        assert!(records(&store) == expected);
    }

    #[test]
    fn full_disk_postpones_a_compaction_and_fails_no_commit() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path(), SETTINGS).unwrap();
        store.set_database_settings(DatabaseSettings { disk_free_bytes_min: u64::MAX >> 1, ..ALWAYS });
        store.apply(&commit(0, 30_000)).unwrap();
        (1..200).for_each(|n| store.apply(&commit(n, 300)).unwrap());
        assert!(store.writer.compaction().running.is_none() && store.writer.compaction().current.is_none());
        assert!(store.writer.compaction().retry_bytes > 0);
    }

    #[test]
    fn compaction_that_cannot_open_its_database_removes_it_and_the_next_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(dir.path());
        // Sled refuses to open a database with such a small cache.
        let cache_bytes = std::mem::replace(&mut store.writer.compaction().cache_bytes, 0);
        store.apply(&commit(0, 30_000)).unwrap();
        let mut n = 1;
        while store.writer.compaction().retry_bytes == 0 {
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
        store.writer.compaction().cache_bytes = cache_bytes;
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
