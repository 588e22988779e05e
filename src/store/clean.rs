//! Cleaning of sled's file while records are written, so that the state directory
//! stays small.
//!
//! Sled 0.34.7 appends every change of a page to a log of segments of 512 KiB. A segment
//! that is used by half or less is queued: the pages that still have something in it are
//! to be written elsewhere, then it is used again. But sled takes a page from this queue only
//! when it replaces some page, which is at every 11th change of a page
//! (`PageCache::replace`). Its own thread is no help (`flush_every_ms`): it stops after
//! one segment per interval and waits for the disk each time. A segment of a replay holds
//! few large changes, one of a running daemon hundreds of small ones, each of another
//! page. So more pages are queued than are ever taken, and the file grows: after 105 hours
//! of 400 servers, 161 of 211 segments were used by less than a tenth. The settings that
//! sound like a remedy (`mode`, `segment_cleanup_threshold`) do nothing in this version.
//!
//! So the store replaces pages itself: a tree of its own has one record of 8 bytes, and
//! every 11th change of it takes one page from the queue. A commit of `n` records has at
//! most `n` pages queued later, and many of them have moved by then; [`PERCENT`] of `n`
//! are taken. That is done by a thread, 60 us a page, so that no commit waits for it. What is
//! moved is not flushed; it comes to the disk with the next commit, and until then the old
//! place is not used again.
//!
//! **The bound:** the directory of a daemon takes at most 2.5 times that of a replay of
//! the same scans, plus 4 MB. `benches/size.rs` asserts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Pages taken from the queue for 100 records written. With half as many the directory of
/// 5,000 servers is 2.4 times as large; more make it hardly smaller (`benches/size.rs`).
const PERCENT: u64 = 25;

/// Changes of one page until it is replaced.
const CHANGES_PER_PAGE: u64 = 11;

/// See the head of the file. Dropping it stops the thread and waits for its end: the
/// database is not held any longer.
#[derive(Debug)]
pub(super) struct Cleaner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Changes to be made, in hundredths.
    owed: AtomicU64,
    stop: AtomicBool,
}

impl Cleaner {
    pub(super) fn start(db: &sled::Db) -> sled::Result<Cleaner> {
        let tree = db.open_tree("clean")?;
        let shared: Arc<Shared> = Arc::default();
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name("store-clean".to_owned()).spawn(move || of_thread.run(&tree))?;
        Ok(Cleaner { shared, thread: Some(thread) })
    }

    /// So many records of sled were written.
    pub(super) fn written(&self, records: usize) {
        self.shared.owed.fetch_add(records as u64 * PERCENT * CHANGES_PER_PAGE, Ordering::Relaxed);
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        if thread.join().is_err() {
            tracing::error!("the thread that cleans the state directory has panicked");
        }
    }
}

impl Shared {
    fn run(&self, tree: &sled::Tree) {
        // Sled passes over a change to the same value.
        let mut value = 0_u64;
        while !self.stop.load(Ordering::Relaxed) {
            let owed = self.owed.load(Ordering::Relaxed);
            if owed < 100 {
                std::thread::park();
                continue;
            }
            self.owed.fetch_sub(100, Ordering::Relaxed);
            value += 1;
            if let Err(error) = tree.insert(b"n", &value.to_le_bytes()) {
                // The next commit fails for the same reason, and says so where it is handled.
                return tracing::error!("the state directory is no longer cleaned: {error}");
            }
        }
    }
}

#[cfg(test)]
impl Cleaner {
    /// Waits until what was written is cleaned.
    pub(super) fn wait(&self) {
        while self.shared.owed.load(Ordering::Relaxed) >= 100 {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::store::keys;
    use crate::store::tree::tests::tree;

    #[test]
    fn file_stays_small_however_often_its_records_change() {
        const SERVERS: u32 = 5_000;
        const RECORD: usize = 400;
        let dir = tempfile::tempdir().unwrap();
        let it = tree(dir.path());
        let mut random = 7_u64;
        for n in 0..200_u32 {
            let changes = (0..500).map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let server = (random >> 33) as u32 % SERVERS;
                Ok((keys::of(keys::SERVER, server), Some(vec![n as u8; RECORD])))
            });
            it.write(changes).unwrap();
            it.flush().unwrap();
            it.wait_for_cleaner();
        }
        // Without cleaning it is nine times.
        let bytes = std::fs::metadata(dir.path().join("db")).unwrap().len();
        let (records, held) = it.size(&[keys::SERVER]).unwrap();
        assert_eq!(records, u64::from(SERVERS));
        assert!(bytes < 4 * held, "{bytes} bytes for {held}");
    }
}
