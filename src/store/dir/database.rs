//! The sled database in a directory, with errors that name the operation and the file.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sled::IVec;

use super::{files, lock};
use crate::store::error::StoreError;
use crate::store::threads::{STORE_THREADS, check_threads};

/// Bytes of keys and records that are written before a flush, to all open databases. Sled 0.34.7 stops for ever if
/// all its threads write while it waits for one of them to shorten a file: then it creates no other thread. It has seven
/// for all databases of a process, each writes up to 512 KiB, and the log grows by two to three times the bytes counted
/// here. For the same reason it gets no flush as a task: a flush waits for a write that may be behind it in the queue.
pub(in crate::store) const UNFLUSHED_BYTES_MAX: usize = 512 * 1_024;

/// An open database. This process holds its lock until sled has closed it.
#[derive(Debug)]
pub(in crate::store) struct Database {
    db: sled::Db,
    /// For error messages.
    dir: Arc<Path>,
    /// Bytes written since sled last wrote all of them to its file.
    unflushed_bytes: AtomicUsize,
    open: OpenDatabase,
    files: Mutex<DatabaseFiles>,
}

/// Held for a write: those of several databases share sled's threads.
static ONE_WRITE: Mutex<()> = Mutex::new(());

static OPEN_DATABASES: AtomicUsize = AtomicUsize::new(0);

/// Counts an open database.
#[derive(Debug)]
struct OpenDatabase(());

impl OpenDatabase {
    fn new() -> OpenDatabase {
        OPEN_DATABASES.fetch_add(1, Ordering::Relaxed);
        OpenDatabase(())
    }

    /// All that are open, at least one.
    fn databases(&self) -> usize {
        OPEN_DATABASES.load(Ordering::Relaxed)
    }
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        OPEN_DATABASES.fetch_sub(1, Ordering::Relaxed);
    }
}

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
                let (unflushed_bytes, open) = (AtomicUsize::new(0), OpenDatabase::new());
                Ok(Some(Database { db, dir: dir.into(), unflushed_bytes, open, files }))
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
        self.write(key.len() + value.len(), || self.db.insert(key, value))
    }

    pub(in crate::store) fn remove(&self, key: &[u8]) -> Result<(), StoreError> {
        self.write(key.len(), || self.db.remove(key))
    }

    /// Applies a batch atomically. `bytes`: of its keys and records.
    pub(in crate::store) fn apply_batch(&self, batch: sled::Batch, bytes: usize) -> Result<(), StoreError> {
        self.write(bytes, || self.db.apply_batch(batch))
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

    /// Does a write of so many bytes, and writes out when too much was written since then.
    fn write<R>(&self, bytes: usize, write: impl FnOnce() -> sled::Result<R>) -> Result<(), StoreError> {
        let _one = ONE_WRITE.lock().unwrap_or_else(PoisonError::into_inner);
        write().map_err(|e| sled_error("write to", &self.dir, e))?;
        let unflushed_bytes = self.unflushed_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if unflushed_bytes > UNFLUSHED_BYTES_MAX / self.open.databases() { self.write_out() } else { Ok(()) }
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

/// Removes all databases of a state directory, in any condition. Waits until this process has closed them.
pub(in crate::store) fn remove_databases(dir: &Path, wait: Duration) -> Result<(), StoreError> {
    let dirs = files::database_dirs(dir)?;
    for database in &dirs {
        lock::retry_until_unlocked(database, wait, || Ok((!lock::is_database_locked(database)?).then_some(())))?;
    }
    files::remove_if_exists(&dir.join(files::CURRENT))?;
    files::remove_database_files(dir)?;
    dirs[1..].iter().try_for_each(|database| files::remove_database(database))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_any_kind_are_flushed_at_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path(), 16 << 20).unwrap();
        let unflushed = || db.unflushed_bytes.load(Ordering::Relaxed);
        // Other tests have databases open, too, which share the limit.
        let large = vec![7; UNFLUSHED_BYTES_MAX];
        for write in [&(|| db.insert(b"b", &large)) as &dyn Fn() -> Result<(), StoreError>, &|| {
            db.apply_batch(sled::Batch::default(), UNFLUSHED_BYTES_MAX + 1)
        }] {
            db.insert(b"a", b"1").unwrap();
            db.remove(b"a").unwrap();
            assert_eq!(unflushed(), 3);
            write().unwrap();
            assert_eq!(unflushed(), 0);
        }
    }
}
