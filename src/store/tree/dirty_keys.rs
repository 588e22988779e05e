//! The keys written since a backup began. At most one backup is in progress.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Sled keys: at most as many as there are records and leaves.
#[derive(Debug, Default)]
pub(in crate::store) struct Changed {
    is_on: AtomicBool,
    keys: Mutex<BTreeSet<Vec<u8>>>,
}

impl Changed {
    /// Starts tracking keys. Returns `false` where a backup is already in progress.
    pub(in crate::store) fn begin(&self) -> bool {
        !self.is_on.swap(true, Ordering::SeqCst)
    }

    pub(in crate::store) fn end(&self) {
        self.is_on.store(false, Ordering::SeqCst);
        self.keys().clear();
    }

    pub(in crate::store) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::SeqCst)
    }

    /// Marks a written key. Must be called after the write: before it, the backup would
    /// read the old record.
    pub(in crate::store) fn note(&self, key: Vec<u8>) {
        if self.is_on() {
            self.keys().insert(key);
        }
    }

    pub(in crate::store) fn len(&self) -> usize {
        self.keys().len()
    }

    pub(in crate::store) fn take(&self) -> BTreeSet<Vec<u8>> {
        std::mem::take(&mut *self.keys())
    }

    fn keys(&self) -> MutexGuard<'_, BTreeSet<Vec<u8>>> {
        self.keys.lock().expect("key lock poisoned")
    }
}
