//! Whether this process may create threads.
//!
//! Sled 0.34.7 hands its work to a pool of seven threads. If no thread can be created, sled only
//! logs that, and waits for ever. So the threads are created once before it is opened.

use std::sync::Mutex;
use std::thread;

use super::error::StoreError;

/// Threads of sled, and the one that writes commits.
pub(super) const STORE_THREADS: usize = 8;

/// Fails if this process may not have `count` more threads now.
pub fn check_threads(count: usize) -> Result<(), StoreError> {
    // All exist at once: they wait until the last one is created.
    let gate = Mutex::new(());
    let closed = gate.lock();
    let created = thread::scope(|scope| {
        let wait = || drop(gate.lock());
        let created = (0..count).try_for_each(|_| thread::Builder::new().spawn_scoped(scope, wait).map(drop));
        drop(closed);
        created
    });
    created.map_err(|source| StoreError::NoThreads { count, source })
}
