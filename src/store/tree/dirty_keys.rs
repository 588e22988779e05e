//! The keys written since a backup or a compaction began. At most one of them is in
//! progress.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Sled keys: at most as many as there are records and leaves.
#[derive(Debug, Default)]
pub(in crate::store) struct DirtyKeys {
    is_tracking: AtomicBool,
    keys: Mutex<BTreeSet<Vec<u8>>>,
}

impl DirtyKeys {
    /// Starts tracking keys. Returns `false` if they are already tracked.
    pub(in crate::store) fn start_tracking(&self) -> bool {
        !self.is_tracking.swap(true, Ordering::SeqCst)
    }

    pub(in crate::store) fn stop_tracking(&self) {
        self.is_tracking.store(false, Ordering::SeqCst);
        self.keys().clear();
    }

    pub(in crate::store) fn is_tracking(&self) -> bool {
        self.is_tracking.load(Ordering::SeqCst)
    }

    /// Marks a written key while keys are tracked. Must be called after the write: before it,
    /// the copy would read the old record.
    pub(in crate::store) fn mark(&self, key: &[u8]) {
        if self.is_tracking() {
            self.keys().insert(key.to_vec());
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
