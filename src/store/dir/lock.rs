//! Waits for a state directory that another process has open.
//!
//! Sled locks `db` with flock(2) and does not wait. A lock may be held for a short time
//! after its process is done: sled releases it on another thread, and a child forked while
//! it was held keeps it until it executes another program. So opening retries for some
//! seconds.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::stat::{major, minor};

use crate::store::error::StoreError;

/// Time to wait for the lock. The wait is a sum of sleeps: on a busy machine it is longer,
/// never shorter.
pub(in crate::store) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

const RETRY_EVERY: Duration = Duration::from_millis(20);

/// How often the list of all locks is read until it has the lock.
const LOCK_LIST_ATTEMPTS: u32 = 10;

/// Time after which the wait is logged.
const LOG_AFTER: Duration = Duration::from_secs(1);

/// Calls `attempt` until it returns `Some`, for at most `wait`. `None` means that the lock
/// is held.
pub(in crate::store) fn retry_until_unlocked<T>(
    dir: &Path,
    wait: Duration,
    attempt: impl FnMut() -> Result<Option<T>, StoreError>,
) -> Result<T, StoreError> {
    retry_unless_cancelled(&|| false, dir, wait, attempt)
}

/// Like [`retry_until_unlocked`], but stops when `is_cancelled` returns true.
pub(in crate::store) fn retry_unless_cancelled<T>(
    is_cancelled: &dyn Fn() -> bool,
    dir: &Path,
    wait: Duration,
    mut attempt: impl FnMut() -> Result<Option<T>, StoreError>,
) -> Result<T, StoreError> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(value) = attempt()? {
            return Ok(value);
        }
        if waited >= wait || is_cancelled() {
            return Err(StoreError::Locked { path: dir.to_owned(), holder: holder(dir), waited_s: waited.as_secs() });
        }
        if waited == LOG_AFTER {
            tracing::info!(state = %dir.display(), by = %holder(dir), "waiting for the state directory, which is in use");
        }
        std::thread::sleep(RETRY_EVERY);
        waited += RETRY_EVERY;
    }
}

/// Whether another process has the directory open for writing. The check takes a shared
/// lock and releases it at once; a process that opens the directory in the meantime
/// retries.
pub(in crate::store) fn is_locked(dir: &Path) -> Result<bool, StoreError> {
    match super::files::database_dir(dir) {
        // It is loaded again, unless a process has any of them open.
        Err(StoreError::Damaged { .. }) => super::files::database_dirs(dir)?
            .iter()
            .try_fold(false, |locked, dir| Ok(locked || is_database_locked(dir)?)),
        database => is_database_locked(&database?),
    }
}

/// Like [`is_locked`], for the directory of a database.
pub(in crate::store) fn is_database_locked(dir: &Path) -> Result<bool, StoreError> {
    let path = dir.join("db");
    let db = match File::open(&path) {
        Ok(db) => db,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(super::files::io_error("open", &path)(error)),
    };
    match Flock::lock(db, FlockArg::LockSharedNonblock) {
        Ok(_lock) => Ok(false),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(true),
        Err((_, errno)) => Err(super::files::io_error("lock", &path)(errno.into())),
    }
}

/// Waits until no process has the directory open, for some seconds. Also for the caller that
/// has just dropped its database: sled releases the lock a little later, on another thread.
pub(in crate::store) fn wait_until_unlocked(dir: &Path) -> Result<(), StoreError> {
    retry_until_unlocked(dir, LOCK_TIMEOUT, || Ok((!is_locked(dir)?).then_some(())))
}

/// Takes the same lock as opening the database. `None`: another process has it.
pub(in crate::store) fn try_lock(dir: &Path) -> Result<Option<Flock<File>>, StoreError> {
    let path = super::files::database_dir(dir)?.join("db");
    let db = File::options().read(true).write(true).open(&path).map_err(super::files::io_error("open", &path))?;
    match Flock::lock(db, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, errno)) => Err(super::files::io_error("lock", &path)(errno.into())),
    }
}

/// The holder of the lock, for a message: `process 1234 (clqd)`.
pub(in crate::store) fn holder(dir: &Path) -> String {
    let db = super::files::database_dir(dir).and_then(|dir| super::files::metadata_if_exists(&dir.join("db")));
    let pid = db.ok().flatten().and_then(|db| {
        let file = format!("{:02x}:{:02x}:{}", major(db.dev()), minor(db.dev()), db.ino());
        // The kernel prints the list in parts: while other locks are released, it may leave out some.
        (0..LOCK_LIST_ATTEMPTS).find_map(|_| holder_pid(&fs::read_to_string("/proc/locks").ok()?, &file))
    });
    let name = |pid| fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    match pid.and_then(|pid| Some((pid, name(pid)?))) {
        Some((pid, name)) => format!("process {pid} ({})", name.trim_end()),
        // The process is not visible from here, or has ended and left the lock to a child.
        None => "another process".to_owned(),
    }
}

/// The pid in lines such as `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`. A line with
/// an arrow is a process that waits for the lock.
fn holder_pid(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, "FLOCK", _, _, pid, locked_file, ..] if locked_file == file => pid.parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::store::working_copy::ComparisonTime;
    use crate::store::{Store, StoreSettings};

    const SETTINGS: StoreSettings = StoreSettings { cache_bytes: 16 << 20, create: true };

    fn db(dir: &Path) -> File {
        File::options().read(true).write(true).open(dir.join("db")).unwrap()
    }

    #[test]
    fn lock_holder_is_found_by_device_and_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fd:01:5678 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 99 fd:01:5678 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 8 00:2e:5678 0 EOF\n";
        assert_eq!(holder_pid(locks, "fd:01:5678"), Some(1234));
        assert_eq!(holder_pid(locks, "fd:02:5678"), None);

        let dir = tempfile::tempdir().unwrap();
        let _store = Store::open(dir.path(), SETTINGS).unwrap();
        assert!(holder(dir.path()).starts_with(&format!("process {} (", std::process::id())), "{}", holder(dir.path()));
    }

    #[test]
    fn open_waits_for_a_forked_child_to_close_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open(dir.path(), SETTINGS).unwrap());
        wait_until_unlocked(dir.path()).unwrap();
        // The child has the lock as its standard input; this process has closed it.
        let lock = Flock::lock(db(dir.path()), FlockArg::LockExclusive).unwrap();
        let input = Stdio::from(lock.try_clone().unwrap());
        let mut child = Command::new("sleep").arg("600").stdin(input).spawn().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&*lock);
        std::mem::forget(lock);
        nix::unistd::close(fd).unwrap();
        assert!(is_locked(dir.path()).unwrap());
        let short =
            Store::open_with_timeout(dir.path(), SETTINGS, Duration::from_millis(100), ComparisonTime::BeforeUse);
        assert!(matches!(short, Err(StoreError::Locked { .. })), "{short:?}");

        std::thread::scope(|scope| {
            let opening = scope.spawn(|| Store::open(dir.path(), SETTINGS).map(|_| ()));
            std::thread::sleep(RETRY_EVERY);
            child.kill().unwrap();
            child.wait().unwrap();
            opening.join().unwrap().expect("opened once the child has ended");
        });
    }

    #[test]
    fn open_waits_for_the_last_reader_of_a_closed_store() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), SETTINGS).unwrap();
        let (reader, (sender, receiver)) = (store.reader(), std::sync::mpsc::channel());
        drop(store);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                receiver.recv().unwrap();
                drop(reader);
            });
            assert!(is_locked(dir.path()).unwrap(), "sled holds the lock while a reader exists");
            let opening = scope.spawn(|| Store::open(dir.path(), SETTINGS).map(|_| ()));
            sender.send(()).unwrap();
            opening.join().unwrap().expect("opened once the reader is dropped");
        });
        // This is repeated without a pause, because it failed now and then.
        for _ in 0..50 {
            drop(Store::open(dir.path(), SETTINGS).expect("opened"));
        }
    }
}
