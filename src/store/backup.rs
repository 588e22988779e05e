//! Backups: copies a state directory, also while a daemon uses it, and restores such a
//! copy.
//!
//! A file that sled is writing cannot be copied: the copy would not be consistent at any
//! point in time. So a backup of a store in use copies record by record into a new
//! directory, on another thread, while commits continue. The keys that commits write are
//! tracked (`dirty_keys`), and their records copied again, in rounds, until few remain.
//! Those are read between two commits: the backup is the state after the first of the two.
//! Only this last step blocks the writer.
//!
//! A backup is an ordinary state directory. It is written next to its destination under the
//! name `DIR.partial`, and is renamed when all of it is on disk.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::tree::Tree;
use super::{Store, StoreError, keys, open_database};
use crate::model::commit::Meta;
use crate::store::dir::{files, lock, read_copy};

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

/// A changed record: its key, and its value; `None`: it was deleted.
pub(super) type Changed = (Vec<u8>, Option<sled::IVec>);

/// The last changed records of a backup.
#[derive(Debug, Default)]
pub struct FinalChanges {
    records: Vec<Changed>,
    now_ms: i64,
}

impl FinalChanges {
    pub(super) fn records(self) -> Vec<Changed> {
        self.records
    }
}

impl Store {
    /// Begins a backup. `None`: another one is in progress.
    pub fn begin_backup(&mut self) -> Option<BackupSource> {
        self.compaction.stop();
        BackupSource::begin(&self.tree)
    }

    /// Ends a backup between two commits: it equals the current state. `None`: too much has
    /// changed, it has to catch up first.
    pub fn end_backup(&self, rounds: u32) -> Result<Option<FinalChanges>, StoreError> {
        last_changes(&self.tree, rounds)
    }
}

fn last_changes(tree: &Tree, rounds: u32) -> Result<Option<FinalChanges>, StoreError> {
    if !is_near_end(tree, rounds) {
        return Ok(None);
    }
    let meta: Option<Meta> = tree.get(&keys::meta())?;
    Ok(Some(FinalChanges { records: take_changes(tree)?, now_ms: meta.map_or(0, |meta| meta.now_ms) }))
}

/// Whether the keys changed since the last round are few enough to be read between two
/// commits, or do not become fewer.
fn is_near_end(tree: &Tree, rounds: u32) -> bool {
    tree.changed().len() <= FINAL_KEYS_MAX || rounds >= ROUNDS_MAX
}

fn take_changes(tree: &Tree) -> Result<Vec<Changed>, StoreError> {
    let with_value = |key: Vec<u8>| tree.raw(&key).map(|value| (key, value));
    tree.changed().take().into_iter().map(with_value).collect()
}

impl BackupSource {
    /// Begins a backup. `None`: another one is in progress.
    pub(super) fn begin(tree: &Tree) -> Option<BackupSource> {
        tree.changed().begin().then(|| BackupSource { tree: tree.clone(), rounds: 0 })
    }

    /// Copies the records that are not yet in the backup: at first all, then those changed
    /// in the meantime, until few remain. Fails when `is_cancelled` is set.
    pub fn copy_to(&mut self, target: &mut BackupTarget, is_cancelled: &AtomicBool) -> Result<(), StoreError> {
        if is_cancelled.load(Ordering::Relaxed) {
            return Err(StoreError::Cancelled { path: target.dir.clone() });
        }
        if self.rounds == 0 {
            for record in self.tree.raw_all() {
                let (key, value) = record?;
                target.put(&key, Some(&value), is_cancelled)?;
            }
        }
        loop {
            self.rounds += 1;
            for key in self.tree.changed().take() {
                target.put(&key, self.tree.raw(&key)?.as_deref(), is_cancelled)?;
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
    pub(super) fn next_changes(&mut self) -> Result<Vec<Changed>, StoreError> {
        self.rounds += 1;
        take_changes(&self.tree)
    }

    /// See [`Store::end_backup`].
    pub(super) fn last_changes(&self) -> Result<Option<FinalChanges>, StoreError> {
        last_changes(&self.tree, self.rounds)
    }

    /// The argument of [`Store::end_backup`].
    pub fn rounds(&self) -> u32 {
        self.rounds
    }
}

impl Drop for BackupSource {
    fn drop(&mut self) {
        self.tree.changed().end();
    }
}

/// The directory of a backup that is being written. Removed unless it is finished.
#[derive(Debug)]
pub struct BackupTarget {
    /// `None`: the database is closed.
    db: Option<sled::Db>,
    partial: PathBuf,
    dir: PathBuf,
    chunk_bytes: usize,
    is_finished: bool,
}

impl BackupTarget {
    /// `dir` must not exist, or be empty.
    pub fn create(dir: &Path) -> Result<BackupTarget, StoreError> {
        let mut target = BackupTarget::create_partial_dir(dir)?;
        let db = open_database(&target.partial, CACHE_BYTES)?;
        target.db = Some(db.ok_or_else(|| StoreError::Locked {
            path: target.partial.clone(),
            holder: lock::holder(&target.partial),
            waited_s: 0,
        })?);
        Ok(target)
    }

    /// Creates an empty directory next to `dir`.
    fn create_partial_dir(dir: &Path) -> Result<BackupTarget, StoreError> {
        check_absent_or_empty(dir)?;
        let partial = sibling(dir, ".partial");
        if partial.exists() {
            // Left by a backup that was killed.
            if lock::is_locked(&partial)? {
                let (path, holder) = (partial.clone(), lock::holder(&partial));
                return Err(StoreError::Locked { path, holder, waited_s: 0 });
            }
            remove_state_dir(&partial)?;
        }
        fs::DirBuilder::new().mode(0o750).create(&partial).map_err(files::io_error("create", &partial))?;
        Ok(BackupTarget { db: None, partial, dir: dir.to_owned(), chunk_bytes: 0, is_finished: false })
    }

    fn put(&mut self, key: &[u8], value: Option<&[u8]>, is_cancelled: &AtomicBool) -> Result<(), StoreError> {
        let db = self.db.as_ref().expect("database is open until finish()");
        let put = match value {
            Some(value) => db.insert(key, value),
            None => db.remove(key),
        };
        put.map_err(|error| super::sled_error(&self.partial, error))?;
        self.chunk_bytes += key.len() + value.map_or(0, <[u8]>::len);
        if self.chunk_bytes >= CHUNK_BYTES {
            self.chunk_bytes = 0;
            db.flush().map_err(|error| super::sled_error(&self.partial, error))?;
            std::thread::sleep(PAUSE);
            if is_cancelled.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled { path: self.dir.clone() });
            }
        }
        Ok(())
    }

    /// Writes the last changes, waits until all is on disk and renames the directory.
    pub fn finish(mut self, last: FinalChanges) -> Result<BackupSummary, StoreError> {
        let never = AtomicBool::new(false);
        for (key, value) in last.records {
            self.put(&key, value.as_deref(), &never)?;
        }
        let db = self.db.take().expect("database is open until finish()");
        db.flush().map_err(|error| super::sled_error(&self.partial, error))?;
        drop(db);
        self.finish_closed(last.now_ms)
    }

    fn finish_closed(mut self, now_ms: i64) -> Result<BackupSummary, StoreError> {
        // Sled closes its files on another thread.
        lock::retry_until_unlocked(&self.partial, lock::LOCK_TIMEOUT, || {
            Ok((!lock::is_locked(&self.partial)?).then_some(()))
        })?;
        let bytes = sync_files(&self.partial)?;
        if self.dir.exists() {
            fs::remove_dir(&self.dir).map_err(files::io_error("replace", &self.dir))?;
        }
        fs::rename(&self.partial, &self.dir).map_err(files::io_error("rename", &self.partial))?;
        self.is_finished = true;
        sync_parent(&self.dir)?;
        Ok(BackupSummary { now_ms, bytes })
    }
}

impl Drop for BackupTarget {
    fn drop(&mut self) {
        if !self.is_finished {
            drop(self.db.take());
            if let Err(error) = remove_state_dir(&self.partial) {
                tracing::warn!("an unfinished backup cannot be removed: {error}");
            }
        }
    }
}

/// Backs up a state directory that no process has open.
pub fn backup_closed(state: &Path, dir: &Path, cache_bytes: u64) -> Result<BackupSummary, StoreError> {
    let target = BackupTarget::create_partial_dir(dir)?;
    let now_ms = copy_checked(state, &target.partial, cache_bytes)?;
    target.finish_closed(now_ms)
}

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreSummary {
    pub summary: BackupSummary,
    /// The new path of the previous state directory, if there was one.
    pub before: Option<PathBuf>,
}

/// Replaces a state directory by a copy of a backup and renames the previous one to
/// `STATE.before-restore`. No process may have the state open.
pub fn restore(backup: &Path, state: &Path, cache_bytes: u64) -> Result<RestoreSummary, StoreError> {
    let before = files::metadata_if_exists(state)?;
    let kept = sibling(state, ".before-restore");
    if before.is_some() && kept.exists() {
        return Err(StoreError::AlreadyExists { path: kept });
    }
    let lock = match files::metadata_if_exists(&files::database_dir(state)?.join("db"))? {
        Some(_) => Some(lock::retry_until_unlocked(state, lock::LOCK_TIMEOUT, || lock::try_lock(state))?),
        None => None,
    };
    let new = sibling(state, ".restoring");
    if new.exists() {
        remove_state_dir(&new)?;
    }
    fs::DirBuilder::new().mode(0o750).create(&new).map_err(files::io_error("create", &new))?;
    let now_ms = match copy_checked(backup, &new, cache_bytes) {
        Ok(now_ms) => now_ms,
        Err(error) => {
            _ = remove_state_dir(&new);
            return Err(error);
        }
    };
    // It gets the owner and mode of the previous directory, which belong to the daemon.
    if let Some(before) = &before {
        set_owner(&new, before.uid(), before.gid(), before.permissions().mode())?;
    }
    let bytes = sync_files(&new)?;
    if before.is_some() {
        fs::rename(state, &kept).map_err(files::io_error("rename", state))?;
    }
    if let Err(error) = fs::rename(&new, state) {
        _ = fs::rename(&kept, state);
        return Err(files::io_error("rename", &new)(error));
    }
    sync_parent(state)?;
    drop(lock);
    Ok(RestoreSummary { summary: BackupSummary { now_ms, bytes }, before: before.map(|_| kept) })
}

/// Copies the state files, and opens the copy to check it, which completes what a crash
/// left unfinished. Returns the latest time of the state.
fn copy_checked(from: &Path, to: &Path, cache_bytes: u64) -> Result<i64, StoreError> {
    read_copy::copy_into(from, to, &|| false)?;
    let opened = Store::open_at(to, to, cache_bytes, lock::LOCK_TIMEOUT).and_then(|mut store| store.load());
    let now_ms = opened.map_err(|error| error.with_original_path(to, from))?.meta.now_ms;
    lock::retry_until_unlocked(to, lock::LOCK_TIMEOUT, || Ok((!lock::is_locked(to)?).then_some(())))?;
    Ok(now_ms)
}

/// Changes the owner and group of a directory and of the files in it.
fn set_owner(dir: &Path, user: u32, group: u32, mode: u32) -> Result<(), StoreError> {
    let names = files::directories(dir)?.into_iter().chain(files::state_files(dir)?);
    for path in names.map(|name| dir.join(name)) {
        let Some(metadata) = files::metadata_if_exists(&path)? else { continue };
        if (metadata.uid(), metadata.gid()) != (user, group) {
            chown(&path, Some(user), Some(group)).map_err(files::io_error("change the owner of", &path))?;
        }
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(mode)).map_err(files::io_error("change", dir))
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

fn sibling(dir: &Path, end: &str) -> PathBuf {
    let mut name = dir.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Removes a state directory. Fails if it contains other files.
fn remove_state_dir(dir: &Path) -> Result<(), StoreError> {
    let directories = files::directories(dir)?;
    for path in files::state_files(dir)?.into_iter().map(|name| dir.join(name)) {
        fs::remove_file(&path).map_err(files::io_error("remove", &path))?;
    }
    for path in directories.into_iter().rev().map(|name| dir.join(name)) {
        fs::remove_dir(&path).map_err(files::io_error("remove", &path))?;
    }
    Ok(())
}

/// Waits until all files are on disk. Returns their total size.
fn sync_files(dir: &Path) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for path in files::state_files(dir)?.into_iter().chain(files::directories(dir)?.into_iter().rev()) {
        let path = dir.join(path);
        let file = File::open(&path).map_err(files::io_error("open", &path))?;
        file.sync_all().map_err(files::io_error("sync", &path))?;
        let metadata = file.metadata().map_err(files::io_error("read", &path))?;
        bytes += if metadata.is_file() { metadata.len() } else { 0 };
    }
    Ok(bytes)
}

fn sync_parent(dir: &Path) -> Result<(), StoreError> {
    // The parent of a single name is the empty path, which cannot be opened.
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|file| file.sync_all()).map_err(files::io_error("sync", parent))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::commit::{Commit, RowKey};
    use crate::model::packed_row::PackedRow;
    use crate::model::{GameKey, PlayerKey, PlayerRow, ServerKey, WeekKey};
    use crate::store::StoreSettings;

    pub const SETTINGS: StoreSettings = StoreSettings { cache_bytes: 16 << 20, create: true };

    pub fn records(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
        crate::store::tree::tests::all(&store.tree, vec![0]..vec![255])
    }

    pub fn commit(n: u32, rows: u32) -> Commit {
        let offset = |i: u32| i.wrapping_mul(2_654_435_761).wrapping_add(n * 7_919) % 400_000;
        let mut rows: Vec<_> = (0..rows)
            .map(|i| {
                let key = RowKey {
                    window: WeekKey(1).into(),
                    server: ServerKey(offset(i) % 200),
                    player: PlayerKey(offset(i) / 200),
                };
                let row = PlayerRow { points: i64::from(n), ..PlayerRow::new(i64::from(i), 1000.0) };
                (key, PackedRow::pack(&row))
            })
            .collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        rows.dedup_by_key(|(key, _)| *key);
        let meta = Meta { now_ms: i64::from(n), ..Meta::default() };
        let mut commit =
            Commit { meta: Some(meta), rows, games: vec![(GameKey(n), format!("game {n}"))], ..Commit::default() };
        if n % 5 == 4 {
            let deleted = RowKey { window: WeekKey(1).into(), server: ServerKey(n % 200), player: PlayerKey(n % 199) };
            commit.rows.retain(|(key, _)| *key != deleted);
            commit.corrections.deleted_rows = vec![deleted];
        }
        commit
    }

    #[test]
    fn backup_during_commits_equals_the_state_between_two_commits() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("state"), SETTINGS).unwrap();
        store.apply(&commit(0, 300_000)).unwrap();
        for (number, name) in ["first", "second"].into_iter().enumerate() {
            let (path, never) = (dir.path().join(name), AtomicBool::new(false));
            let source = store.begin_backup().expect("no other backup");
            assert!(store.begin_backup().is_none(), "one at a time");
            let (target, path) = (BackupTarget::create(&path).unwrap(), &path);
            let mut n = 1_000 * number as u32;
            let (copied_tx, copied_rx) = std::sync::mpsc::channel::<(BackupSource, BackupTarget)>();
            let copying =
                |mut source: BackupSource, mut target: BackupTarget, copied_tx: std::sync::mpsc::Sender<_>| {
                    source.copy_to(&mut target, &never).unwrap();
                    copied_tx.send((source, target)).unwrap();
                };
            let (expected, summary) = std::thread::scope(|scope| {
                scope.spawn({
                    let copied_tx = copied_tx.clone();
                    move || copying(source, target, copied_tx)
                });
                loop {
                    n += 1;
                    store.apply(&commit(n, 300)).unwrap();
                    // The copy runs during at least some commits.
                    if n % 1_000 < 20 {
                        continue;
                    }
                    let Ok((source, target)) = copied_rx.try_recv() else { continue };
                    let Some(last) = store.end_backup(source.rounds()).unwrap() else {
                        let copied_tx = copied_tx.clone();
                        scope.spawn(move || copying(source, target, copied_tx));
                        continue;
                    };
                    let expected = records(&store);
                    // Later commits are not in the backup.
                    store.apply(&commit(n + 1, 300)).unwrap();
                    drop(source);
                    break (expected, target.finish(last).unwrap());
                }
            });
            assert_eq!(summary.now_ms, i64::from(n));
            let backup = Store::open(path, SETTINGS).unwrap();
            assert!(records(&backup) == expected, "the same records");
            assert!(records(&store) != expected);
        }
    }

    #[test]
    fn cancelled_backup_leaves_no_files_and_the_next_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("state"), SETTINGS).unwrap();
        store.apply(&commit(0, 30_000)).unwrap();
        let path = dir.path().join("backup");
        let mut source = store.begin_backup().unwrap();
        let mut target = BackupTarget::create(&path).unwrap();
        let cancelled = source.copy_to(&mut target, &AtomicBool::new(true));
        assert!(matches!(cancelled, Err(StoreError::Cancelled { .. })), "{cancelled:?}");
        drop((source, target));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the state directory remains");

        // Left by a killed process.
        fs::create_dir(dir.path().join("backup.partial")).unwrap();
        fs::write(dir.path().join("backup.partial/db"), "half").unwrap();
        let mut source = store.begin_backup().unwrap();
        let mut target = BackupTarget::create(&path).unwrap();
        source.copy_to(&mut target, &AtomicBool::new(false)).unwrap();
        let last = store.end_backup(source.rounds()).unwrap().unwrap();
        target.finish(last).unwrap();
        assert!(records(&Store::open(&path, SETTINGS).unwrap()) == records(&store));
        let again = BackupTarget::create(&path);
        assert!(
            matches!(again, Err(StoreError::AlreadyExists { .. })),
            "another backup is never overwritten: {again:?}"
        );
    }

    #[test]
    fn restore_installs_the_backup_and_keeps_the_previous_state() {
        let dir = tempfile::tempdir().unwrap();
        let (state, backup) = (dir.path().join("state"), dir.path().join("backup"));
        let mut store = Store::open(&state, SETTINGS).unwrap();
        store.apply(&commit(0, 9_000)).unwrap();
        let first = records(&store);
        // A commit that a crash left in the redo file is part of the state.
        let redo_commit = commit(1, 9_000);
        store.write_redo(&redo_commit).unwrap();
        drop(store);
        let summary = backup_closed(&state, &backup, SETTINGS.cache_bytes).unwrap();
        assert_eq!(summary.now_ms, 1);
        assert!(state.join("redo").exists() && !backup.join("redo").exists(), "the state is unchanged");

        let mut store = Store::open(&state, SETTINGS).unwrap();
        let backed_up = records(&store);
        assert!(backed_up != first);
        store.apply(&commit(2, 9_000)).unwrap();
        let later = records(&store);
        std::thread::scope(|scope| {
            // The restore waits until the store is closed.
            let restoring = scope.spawn(|| restore(&backup, &state, SETTINGS.cache_bytes));
            drop(store);
            let restored = restoring.join().unwrap().unwrap();
            assert_eq!(restored.before.as_deref(), Some(&*dir.path().join("state.before-restore")));
        });
        assert!(records(&Store::open(&state, SETTINGS).unwrap()) == backed_up);
        assert!(records(&Store::open(&dir.path().join("state.before-restore"), SETTINGS).unwrap()) == later);
        let again = restore(&backup, &state, SETTINGS.cache_bytes);
        assert!(matches!(again, Err(StoreError::AlreadyExists { .. })), "{again:?}");
        // A restore where there was no state.
        let new = dir.path().join("new");
        assert_eq!(restore(&backup, &new, SETTINGS.cache_bytes).unwrap().before, None);
        assert!(records(&Store::open(&new, SETTINGS).unwrap()) == backed_up);
    }
}
