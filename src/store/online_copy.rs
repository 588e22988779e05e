//! Copies the store into a new database while commits continue.
//!
//! A file that sled is writing cannot be copied: the copy would not be consistent at any
//! point in time. So the records are copied one by one, on another thread. The keys that
//! commits write are tracked (`dirty_keys`), and their records copied again, in rounds,
//! until few remain. Those are read between two commits: the copy is the state after the
//! first of the two. Only this last step blocks the writer.
//!
//! The new database is written next to its destination under the name `DIR.partial`, and
//! is renamed when all of it is on disk. Backups and compactions are such copies.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::error::StoreError;
use super::keys;
use super::layout::VERSION;
use super::tree::{SledRecord, Tree};
use super::working_copy;
use crate::model::commit::Meta;
use crate::store::dir::database::Database;
use crate::store::dir::{files, lock};

/// Bytes copied before they are flushed and the copy pauses: a concurrent commit waits for
/// no more than that.
const CHUNK_BYTES: usize = 1 << 20;

/// Pause after a chunk. With it a backup copies at most 100 MB/s.
const PAUSE: Duration = Duration::from_millis(10);

/// Most records read between two commits: some milliseconds.
const FINAL_KEYS_MAX: usize = 1_000;

/// After this many rounds the remaining keys are copied between two commits, however many
/// they are. A round is shorter than the one before unless commits write faster than the
/// backup reads.
const ROUNDS_MAX: u32 = 20;

/// Page cache of the database that a backup is written to, bytes.
const CACHE_BYTES: u64 = 16 << 20;

/// Summary of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupSummary {
    /// Latest time of the state, Unix ms.
    pub now_ms: i64,
    /// Size of the files.
    pub bytes: u64,
}

/// The source of a backup, for a thread other than the store's. Dropping it ends the
/// backup.
#[derive(Debug)]
pub struct BackupSource {
    tree: Tree,
    rounds: u32,
}

/// A changed sled record: its key, and its bytes; `None`: it was deleted.
pub(super) type SledChange = (Vec<u8>, Option<sled::IVec>);

/// The last changed records of a backup.
#[derive(Debug, Default)]
pub struct FinalChanges {
    records: Vec<SledChange>,
    now_ms: i64,
}

impl FinalChanges {
    /// The copy has everything until now. A daemon that starts with it begins a log.
    pub(super) fn begin_log(&mut self) {
        self.records.push((keys::log_position().to_vec(), Some(sled::IVec::from(&[VERSION, 0]))));
    }

    pub(super) fn records(self) -> Vec<SledChange> {
        self.records
    }
}

impl BackupSource {
    /// Begins a backup. `None`: another one is in progress.
    pub(super) fn begin(tree: &Tree) -> Option<BackupSource> {
        tree.dirty_keys().start_tracking().then(|| BackupSource { tree: tree.clone(), rounds: 0 })
    }

    /// Copies the records that are not yet in the backup: at first all, then those changed
    /// in the meantime, until few remain. Fails when `is_cancelled` is set.
    pub fn copy_to(&mut self, target: &mut BackupTarget, is_cancelled: &AtomicBool) -> Result<(), StoreError> {
        if is_cancelled.load(Ordering::Relaxed) {
            return Err(StoreError::Cancelled { path: target.dir.clone() });
        }
        if self.rounds == 0 {
            for record in self.tree.sled_records_after(&[]) {
                let SledRecord { key, bytes } = record?;
                target.put(&key, Some(&bytes), is_cancelled)?;
            }
        }
        loop {
            self.rounds += 1;
            for key in self.tree.dirty_keys().take() {
                let bytes = self.tree.sled_record(&key)?.map(|record| record.bytes);
                target.put(&key, bytes.as_deref(), is_cancelled)?;
            }
            if self.is_near_end() {
                return Ok(());
            }
        }
    }

    pub(super) fn is_near_end(&self) -> bool {
        is_near_end(&self.tree, self.rounds)
    }

    /// The records changed since the last round. Counts as a round.
    pub(super) fn next_changes(&mut self) -> Result<Vec<SledChange>, StoreError> {
        self.rounds += 1;
        take_changes(&self.tree)
    }

    /// See `Store::end_backup`.
    pub(super) fn final_changes(&self) -> Result<Option<FinalChanges>, StoreError> {
        final_changes(&self.tree, self.rounds)
    }

    /// The argument of `Store::end_backup`.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }
}

impl Drop for BackupSource {
    fn drop(&mut self) {
        self.tree.dirty_keys().stop_tracking();
    }
}

/// The directory of a backup that is being written. Removed unless it is finished.
#[derive(Debug)]
pub struct BackupTarget {
    /// `None`: the database is closed.
    db: Option<Database>,
    pub(super) partial: PathBuf,
    dir: PathBuf,
    chunk_bytes: usize,
    /// Space that must stay free on the disk, bytes.
    reserve_bytes: u64,
    is_finished: bool,
}

impl BackupTarget {
    /// `dir` must not exist, or be empty. The copy fails rather than leave less than `reserve_bytes`
    /// free on its disk.
    pub fn create(dir: &Path, reserve_bytes: u64) -> Result<BackupTarget, StoreError> {
        let mut target = BackupTarget::create_partial_dir(dir)?;
        target.reserve_bytes = reserve_bytes;
        target.check_space()?;
        let db = Database::try_open(&target.partial, CACHE_BYTES)?;
        target.db = Some(db.ok_or_else(|| StoreError::Locked {
            path: target.partial.clone(),
            holder: lock::holder(&target.partial),
            waited_s: 0,
        })?);
        Ok(target)
    }

    /// Creates an empty directory next to `dir`.
    pub(super) fn create_partial_dir(dir: &Path) -> Result<BackupTarget, StoreError> {
        check_absent_or_empty(dir)?;
        let partial = files::with_suffix(dir, ".partial");
        if partial.exists() {
            // Left by a backup that was killed.
            if lock::is_locked(&partial)? {
                let (path, holder) = (partial.clone(), lock::holder(&partial));
                return Err(StoreError::Locked { path, holder, waited_s: 0 });
            }
            files::remove_state_dir(&partial)?;
        }
        files::create_dir(&partial)?;
        Ok(BackupTarget {
            db: None,
            partial,
            dir: dir.to_owned(),
            chunk_bytes: 0,
            reserve_bytes: 0,
            is_finished: false,
        })
    }

    fn put(&mut self, key: &[u8], value: Option<&[u8]>, is_cancelled: &AtomicBool) -> Result<(), StoreError> {
        let db = self.db.as_ref().expect("database is open until finish()");
        match value {
            Some(value) => db.insert(key, value)?,
            None => db.remove(key)?,
        }
        self.chunk_bytes += key.len() + value.map_or(0, <[u8]>::len);
        if self.chunk_bytes >= CHUNK_BYTES {
            self.chunk_bytes = 0;
            db.flush()?;
            self.check_space()?;
            std::thread::sleep(PAUSE);
            if is_cancelled.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled { path: self.dir.clone() });
            }
        }
        Ok(())
    }

    fn check_space(&self) -> Result<(), StoreError> {
        let (free, reserve) = (files::free_bytes(&self.partial)?, self.reserve_bytes);
        if free < reserve {
            let dir = self.dir.parent().unwrap_or(&self.dir).to_owned();
            return Err(StoreError::NoSpaceForBackup { dir, free, reserve });
        }
        Ok(())
    }

    /// Writes the last changes and the checkpoint file, waits until all is on disk and renames the directory.
    pub fn finish(mut self, mut last: FinalChanges) -> Result<BackupSummary, StoreError> {
        let now_ms = last.now_ms;
        // Its checkpoint files begin anew.
        last.records.push((keys::checkpoint().to_vec(), None));
        self.close(last)?;
        drop(working_copy::open(&self.partial, &self.dir, CACHE_BYTES, lock::LOCK_TIMEOUT)?);
        self.finish_closed(now_ms)
    }

    /// Like [`BackupTarget::finish`], for a database without a checkpoint file.
    pub(super) fn finish_database(mut self) -> Result<BackupSummary, StoreError> {
        self.close(FinalChanges::default())?;
        self.finish_closed(0)
    }

    fn close(&mut self, last: FinalChanges) -> Result<(), StoreError> {
        let never = AtomicBool::new(false);
        for (key, value) in last.records {
            self.put(&key, value.as_deref(), &never)?;
        }
        let db = self.db.take().expect("database is open until finish()");
        db.flush()?;
        drop(db);
        lock::wait_until_unlocked(&self.partial)
    }

    pub(super) fn finish_closed(mut self, now_ms: i64) -> Result<BackupSummary, StoreError> {
        lock::wait_until_unlocked(&self.partial)?;
        let bytes = files::sync_files(&self.partial)?;
        if self.dir.exists() {
            fs::remove_dir(&self.dir).map_err(files::io_error("replace", &self.dir))?;
        }
        fs::rename(&self.partial, &self.dir).map_err(files::io_error("rename", &self.partial))?;
        self.is_finished = true;
        files::sync_parent(&self.dir)?;
        Ok(BackupSummary { now_ms, bytes })
    }
}

impl Drop for BackupTarget {
    fn drop(&mut self) {
        if !self.is_finished {
            drop(self.db.take());
            if let Err(error) = files::remove_state_dir(&self.partial) {
                tracing::warn!("an unfinished backup cannot be removed: {}", error.with_causes());
            }
        }
    }
}

pub(super) fn final_changes(tree: &Tree, rounds: u32) -> Result<Option<FinalChanges>, StoreError> {
    if !is_near_end(tree, rounds) {
        return Ok(None);
    }
    let meta: Option<Meta> = tree.get(&keys::meta())?;
    Ok(Some(FinalChanges { records: take_changes(tree)?, now_ms: meta.map_or(0, |meta| meta.now_ms) }))
}

/// Whether the keys changed since the last round are few enough to be read between two
/// commits, or do not become fewer.
fn is_near_end(tree: &Tree, rounds: u32) -> bool {
    tree.dirty_keys().len() <= FINAL_KEYS_MAX || rounds >= ROUNDS_MAX
}

fn take_changes(tree: &Tree) -> Result<Vec<SledChange>, StoreError> {
    let with_bytes = |key: Vec<u8>| tree.sled_record(&key).map(|record| (key, record.map(|record| record.bytes)));
    tree.dirty_keys().take().into_iter().map(with_bytes).collect()
}

fn check_absent_or_empty(dir: &Path) -> Result<(), StoreError> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(files::io_error("list", dir)(error)),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(StoreError::AlreadyExists { path: dir.to_owned() }),
        },
    }
}
