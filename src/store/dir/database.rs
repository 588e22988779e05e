//! The sled database in a directory, with errors that name the operation and the file.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use sled::IVec;

use super::{files, lock};
use crate::store::error::StoreError;
use crate::store::threads::{STORE_THREADS, check_threads};

/// Bytes of keys and records that are written before a flush. Sled 0.34.7 stops for ever if all
/// its threads write while it waits for one of them to shorten the file. It has seven threads, each
/// writes up to 512 KiB, and the log grows by two to three times the bytes counted here.
pub(in crate::store) const UNFLUSHED_BYTES_MAX: usize = 512 * 1_024;

/// An open database. This process holds its lock until sled has closed it.
#[derive(Debug)]
pub(in crate::store) struct Database {
    db: sled::Db,
    /// For error messages.
    dir: Arc<Path>,
    /// Bytes written since sled last wrote all of them to its file.
    unflushed_bytes: AtomicUsize,
    /// Number of writes, to see whether they go on.
    writes: AtomicU64,
    files: Mutex<DatabaseFiles>,
}

/// A sequence of writes in which none ends for this long may have stopped for ever.
const STOPPED_AFTER: Duration = Duration::from_secs(1);

impl Database {
    /// `None`: another process has it open.
    pub(in crate::store) fn try_open(dir: &Path, cache_bytes: u64) -> Result<Option<Database>, StoreError> {
        check_threads(STORE_THREADS)?;
        let config = sled::Config::new()
            .path(dir)
            .cache_capacity(cache_bytes)
            .mode(sled::Mode::HighThroughput)
            .flush_every_ms(None); // `flush` is called after each commit
        // On some damage sled panics instead of returning an error.
        let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| config.open()));
        match opened {
            Ok(Ok(db)) => {
                let files = Mutex::new(DatabaseFiles::open(dir)?);
                let (unflushed_bytes, writes) = (AtomicUsize::new(0), AtomicU64::new(0));
                Ok(Some(Database { db, dir: dir.into(), unflushed_bytes, writes, files }))
            }
            Ok(Err(sled::Error::Io(error))) if error.to_string().contains("could not acquire lock") => Ok(None),
            Ok(Err(error)) => Err(sled_error("open", dir, error)),
            Err(_) => Err(StoreError::Damaged { path: dir.join("db"), at: String::new() }),
        }
    }

    /// Waits until no other process has it open, for some seconds.
    pub(in crate::store) fn open(dir: &Path, cache_bytes: u64) -> Result<Database, StoreError> {
        lock::retry_until_unlocked(dir, lock::LOCK_TIMEOUT, || Database::try_open(dir, cache_bytes))
    }

    /// The same database. Its errors name `dir` instead of the directory that it is in.
    pub(in crate::store) fn with_dir_in_errors(self, dir: &Path) -> Database {
        Database { dir: dir.into(), ..self }
    }

    pub(in crate::store) fn get(&self, key: &[u8]) -> Result<Option<IVec>, StoreError> {
        self.db.get(key).map_err(|e| sled_error("read", &self.dir, e))
    }

    /// The records of a range, in order of key. The iterator may return some concurrent
    /// writes and miss others.
    pub(in crate::store) fn range<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> DatabaseRange {
        DatabaseRange { records: self.db.range(range), dir: self.dir.clone() }
    }

    pub(in crate::store) fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.db.insert(key, value).map_err(|e| sled_error("write to", &self.dir, e))?;
        self.limit_unflushed(key.len() + value.len())
    }

    pub(in crate::store) fn remove(&self, key: &[u8]) -> Result<(), StoreError> {
        self.db.remove(key).map_err(|e| sled_error("write to", &self.dir, e))?;
        self.limit_unflushed(key.len())
    }

    /// Applies a batch atomically. `bytes`: of its keys and records.
    pub(in crate::store) fn apply_batch(&self, batch: sled::Batch, bytes: usize) -> Result<(), StoreError> {
        self.db.apply_batch(batch).map_err(|e| sled_error("write to", &self.dir, e))?;
        self.limit_unflushed(bytes)
    }

    /// Size of its file, bytes. An unreadable file counts as empty. Takes 2 us.
    pub(in crate::store) fn file_bytes(&self) -> u64 {
        fs::metadata(&self.files.lock().expect("nobody panics with the lock").db_path).map_or(0, |file| file.len())
    }

    /// Waits until all earlier writes are on disk.
    pub(in crate::store) fn flush(&self) -> Result<(), StoreError> {
        self.write_out()?;
        self.files.lock().expect("nobody panics with the lock").sync()
    }

    /// Waits until sled has written all earlier writes to its file. They are not on disk yet: sled
    /// 0.34.7 ends each write with `sync_file_range`, which syncs neither the size of the file nor the
    /// cache of the drive, and it does not sync large records, which have files of their own.
    pub(in crate::store) fn write_out(&self) -> Result<(), StoreError> {
        self.unflushed_bytes.store(0, Ordering::Relaxed);
        flush_or_fail(&self.db).map_err(|e| sled_error("flush", &self.dir, e))
    }

    /// Does work that writes much. Several databases share sled's threads, and one batch may fill more buffers than
    /// there are threads: then all of them may write while sled waits for one of them to shorten the file, see
    /// [`UNFLUSHED_BYTES_MAX`]. So the work is watched, and sled gets another thread.
    pub(in crate::store) fn write_much<R>(&self, work: impl FnOnce() -> R) -> R {
        thread::scope(|scope| {
            let (working, done) = mpsc::channel::<()>();
            let watch = move || {
                let mut before = self.writes.load(Ordering::Relaxed);
                while done.recv_timeout(STOPPED_AFTER) == Err(RecvTimeoutError::Timeout) {
                    let writes = self.writes.load(Ordering::Relaxed);
                    if writes == before {
                        self.grow_thread_pool();
                    }
                    before = writes;
                }
            };
            // Without a thread for it, the work is not watched.
            let _watcher = thread::Builder::new().spawn_scoped(scope, watch);
            let result = work();
            drop(working);
            result
        })
    }

    /// Makes sled 0.34.7 create another thread, which takes the oldest task: sled does so when more than seven tasks
    /// wait. A flush is the only task that it can be given; nobody waits for these.
    fn grow_thread_pool(&self) {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..=STORE_THREADS {
            _ = pin!(self.db.flush_async()).poll(&mut context);
        }
    }

    /// Writes out when too much was written since then.
    fn limit_unflushed(&self, written_bytes: usize) -> Result<(), StoreError> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let unflushed_bytes = self.unflushed_bytes.fetch_add(written_bytes, Ordering::Relaxed) + written_bytes;
        if unflushed_bytes > UNFLUSHED_BYTES_MAX { self.write_out() } else { Ok(()) }
    }
}

/// Flushes. Returns the error if a write of one of sled's threads fails meanwhile. Sled 0.34.7 stores such an
/// error, but does not always wake the threads that wait for that write. A second flush returns the
/// stored error at once, and wakes them. So a flush that takes long is repeated on another thread.
fn flush_or_fail(db: &sled::Db) -> sled::Result<()> {
    thread::scope(|scope| {
        let (flushing, flushed) = mpsc::channel::<()>();
        let wake = move || {
            let mut wait = Duration::from_secs(1);
            while flushed.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                scope.spawn(|| db.flush());
                wait *= 2;
            }
        };
        let _waker = thread::Builder::new().spawn_scoped(scope, wake)?;
        let result = db.flush();
        drop(flushing);
        result.map(drop)
    })
}

/// The files of a database, to sync them.
#[derive(Debug)]
struct DatabaseFiles {
    db: File,
    db_path: PathBuf,
    /// The directory of large records.
    blobs: PathBuf,
    /// The number of the newest synced file of a large record.
    synced_blob: i64,
}

impl DatabaseFiles {
    /// Also syncs the directories, so that the new files of a new database have names.
    fn open(dir: &Path) -> Result<DatabaseFiles, StoreError> {
        let db_path = dir.join("db");
        let db = File::open(&db_path).map_err(files::io_error("open", &db_path))?;
        files::sync_dir(dir)?;
        dir.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), files::sync_dir)?;
        let blobs = dir.join(files::BLOBS);
        Ok(DatabaseFiles { db, db_path, blobs, synced_blob: i64::MIN })
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        self.sync_blobs()?;
        self.db.sync_data().map_err(files::io_error("sync", &self.db_path))
    }

    /// Syncs the new files of large records. Their numbers grow. There are few: records of more than
    /// half a megabyte.
    fn sync_blobs(&mut self) -> Result<(), StoreError> {
        let entries = match fs::read_dir(&self.blobs) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(files::io_error("read", &self.blobs))?,
        };
        let mut newest = self.synced_blob;
        for entry in entries {
            let entry = entry.map_err(files::io_error("read", &self.blobs))?;
            let number = entry.file_name().to_str().and_then(|name| name.parse::<i64>().ok());
            let Some(number) = number.filter(|&number| number > self.synced_blob) else { continue };
            newest = newest.max(number);
            match File::open(entry.path()).and_then(|file| file.sync_all()) {
                // A newer version of the record has replaced it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                synced => synced.map_err(files::io_error("sync", &entry.path()))?,
            }
        }
        if newest > self.synced_blob {
            files::sync_dir(&self.blobs)?;
            self.synced_blob = newest;
        }
        Ok(())
    }
}

/// The records of a range of keys.
pub(in crate::store) struct DatabaseRange {
    records: sled::Iter,
    dir: Arc<Path>,
}

impl Iterator for DatabaseRange {
    type Item = Result<(IVec, IVec), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.records.next()?.map_err(|e| sled_error("read", &self.dir, e)))
    }
}

impl DoubleEndedIterator for DatabaseRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.records.next_back()?.map_err(|e| sled_error("read", &self.dir, e)))
    }
}

/// Adds the operation and the affected file to an error of sled.
fn sled_error(operation: &'static str, dir: &Path, source: sled::Error) -> StoreError {
    let db = dir.join("db");
    match source {
        sled::Error::Corruption { at: Some(sled::DiskPtr::Blob(_, blob)), .. } => {
            StoreError::Damaged { path: dir.join(files::BLOBS).join(blob.to_string()), at: String::new() }
        }
        sled::Error::Corruption { at: Some(at), .. } => {
            StoreError::Damaged { path: db, at: format!(" at byte {}", at.lid()) }
        }
        sled::Error::Corruption { at: None, .. } => StoreError::Damaged { path: db, at: String::new() },
        source => StoreError::Sled { operation, path: db, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_seems_to_have_stopped_gets_a_thread_and_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path(), 16 << 20).unwrap();
        db.write_much(|| {
            db.insert(b"a", b"1").unwrap();
            thread::sleep(2 * STOPPED_AFTER + STOPPED_AFTER / 2);
            db.insert(b"b", b"2").unwrap();
        });
        db.flush().unwrap();
        assert_eq!(db.get(b"b").unwrap().as_deref(), Some(&b"2"[..]));
    }

    #[test]
    fn writes_of_any_kind_are_flushed_at_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path(), 16 << 20).unwrap();
        let unflushed = || db.unflushed_bytes.load(Ordering::Relaxed);
        db.insert(b"a", &vec![7; UNFLUSHED_BYTES_MAX - 1]).unwrap();
        assert_eq!(unflushed(), UNFLUSHED_BYTES_MAX);
        db.remove(b"a").unwrap();
        assert_eq!(unflushed(), 0);
        db.apply_batch(sled::Batch::default(), UNFLUSHED_BYTES_MAX).unwrap();
        assert_eq!(unflushed(), UNFLUSHED_BYTES_MAX);
        db.insert(b"b", b"").unwrap();
        assert_eq!(unflushed(), 0);
    }
}
