//! A lock on the names of the closed files of a log.
//!
//! Retention removes files, a rotation of the scan log renames them, and a rewritten file takes the name
//! of the original. None may come between the other's steps. A reader that opens the files one after
//! another, over minutes, prevents that they are replaced.

use std::sync::{Arc, Mutex, MutexGuard};

/// Shared by the recorder, the rewriting and the readers of one log. Each process has its own:
/// other processes open a file by name and read it to its end.
#[derive(Clone, Debug, Default)]
pub struct LogFileLock {
    /// Number of readers.
    readers: Arc<Mutex<u64>>,
}

impl LogFileLock {
    /// Until the guard is dropped, no file is replaced.
    pub fn begin_reading(&self) -> ReadingGuard {
        *self.lock() += 1;
        ReadingGuard { lock: self.clone() }
    }

    /// Locks the names, for a rotation. Held for some renames.
    pub fn lock_names(&self) -> MutexGuard<'_, u64> {
        self.lock()
    }

    /// Locks the names, for replacing a file. `None`: the files are being read.
    pub fn lock_for_replacing(&self) -> Option<MutexGuard<'_, u64>> {
        let readers = self.lock();
        (*readers == 0).then_some(readers)
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.readers.lock().expect("lock of log files poisoned")
    }
}

/// A reader of the closed files.
#[derive(Debug)]
pub struct ReadingGuard {
    lock: LogFileLock,
}

impl Drop for ReadingGuard {
    fn drop(&mut self) {
        *self.lock.lock() -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_prevent_replacing_and_not_rotating() {
        let lock = LogFileLock::default();
        let (one, two) = (lock.begin_reading(), lock.begin_reading());
        assert!(lock.lock_for_replacing().is_none());
        drop(lock.lock_names());
        drop(one);
        assert!(lock.lock_for_replacing().is_none());
        drop(two);
        assert!(lock.lock_for_replacing().is_some());
    }
}
