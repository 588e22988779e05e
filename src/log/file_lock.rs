//! A lock on the names of the segments of a log.
//!
//! Retention removes segments, and a rewritten one takes the name of the original. A reader that opens the
//! segments one after another, over minutes, prevents both.

use std::sync::{Arc, Mutex, MutexGuard};

/// Shared by the writer, the rewriting and the readers of one log. Each process has its own:
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

    /// Locks the names, for replacing or removing a file. `None`: the files are being read.
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
    fn readers_prevent_replacing() {
        let lock = LogFileLock::default();
        let (one, two) = (lock.begin_reading(), lock.begin_reading());
        assert!(lock.lock_for_replacing().is_none());
        drop(one);
        assert!(lock.lock_for_replacing().is_none());
        drop(two);
        assert!(lock.lock_for_replacing().is_some());
    }
}
