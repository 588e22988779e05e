//! The keys that were written since a backup began. At most one backup is under way.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Keys as sled has them. There are at most as many as there are records and leaves.
#[derive(Debug, Default)]
pub(in crate::store) struct Changed {
    is_on: AtomicBool,
    keys: Mutex<BTreeSet<Vec<u8>>>,
}

impl Changed {
    /// Begins to note keys. Returns whether it did: not where a backup is under way.
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

    /// Notes a key that was written. Not one that is about to be: the backup would
    /// read what was there before.
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
        self.keys.lock().expect("nothing panics while it holds the keys")
    }
}
