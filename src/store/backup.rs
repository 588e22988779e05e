//! Backups: a copy of a state directory, made while a daemon uses it or not, and the
//! way back.
//!
//! A file that sled is writing to cannot be copied: it would be of no moment. So a
//! backup of a store in use copies record by record into a new directory, from
//! another thread, while commits go on. The keys that they write are noted
//! (`changed`), and their records copied again, in rounds, until few are left. Those
//! are read between two commits: the backup is the state after the first of the two.
//! Only this last step holds up the writer.
//!
//! A backup is a state directory as any other. It is made beside its place, under
//! the name `DIR.partial`, and gets its name when all of it is on disk.

use std::fs::{
    File, {self},
};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::tree::Tree;
use super::{Store, StoreError, keys, open_database};
use crate::model::commit::Meta;
use crate::store::dir::{files, lock, read_copy};

/// Bytes that are copied before they are written to the disk and the copying pauses:
/// a commit beside it waits for no more than that.
const CHUNK_BYTES: usize = 1 << 20;

/// Pause after a chunk. With it a backup copies at most 100 MB/s.
const PAUSE: Duration = Duration::from_millis(10);

/// Most records that are read between two commits: some milliseconds.
const FINAL_KEYS_MAX: usize = 1_000;

/// After so many rounds the rest is taken however much it is. A round is shorter than
/// the one before unless commits write faster than the backup reads.
const ROUNDS_MAX: u32 = 20;

/// Cache of the store that a backup is written to.
const CACHE_BYTES: u64 = 16 << 20;

/// What a backup holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupSummary {
    /// Latest moment of the state, Unix ms.
    pub now_ms: i64,
    /// Size of the files.
    pub bytes: u64,
}

/// A store that a backup is made of, for another thread than its own. When it is
/// dropped the backup is over.
#[derive(Debug)]
pub struct BackupSource {
    tree: Tree,
    rounds: u32,
}

/// A record that was changed: its key, and its value, `None` where there is none any more.
pub(super) type Changed = (Vec<u8>, Option<sled::IVec>);

/// What a backup lacked at its last moment.
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
    /// Begins a backup. `None`: another one is under way.
    pub fn begin_backup(&mut self) -> Option<BackupSource> {
        self.compaction.stop();
        BackupSource::begin(&self.tree)
    }

    /// Ends a backup between two commits: it is as the store is now. `None`: so much
    /// has changed that it has to catch up first.
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

/// Whether what was changed since it was last taken is little enough to be read between
/// two commits, or does not become less.
fn is_near_end(tree: &Tree, rounds: u32) -> bool {
    tree.changed().len() <= FINAL_KEYS_MAX || rounds >= ROUNDS_MAX
}

fn take_changes(tree: &Tree) -> Result<Vec<Changed>, StoreError> {
    let with_value = |key: Vec<u8>| tree.raw(&key).map(|value| (key, value));
    tree.changed().take().into_iter().map(with_value).collect()
}

impl BackupSource {
    /// `None`: another one is under way.
    pub(super) fn begin(tree: &Tree) -> Option<BackupSource> {
        tree.changed().begin().then(|| BackupSource { tree: tree.clone(), rounds: 0 })
    }

    /// Copies what is not in the backup yet: at first everything, then what was
    /// changed meanwhile, until little is left. Fails when `is_over` is set.
    pub fn copy_to(&mut self, target: &mut BackupTarget, is_over: &AtomicBool) -> Result<(), StoreError> {
        if is_over.load(Ordering::Relaxed) {
            return Err(StoreError::Cancelled { path: target.dir.clone() });
        }
        if self.rounds == 0 {
            for record in self.tree.raw_all() {
                let (key, value) = record?;
                target.put(&key, Some(&value), is_over)?;
            }
        }
        loop {
            self.rounds += 1;
            for key in self.tree.changed().take() {
                target.put(&key, self.tree.raw(&key)?.as_deref(), is_over)?;
            }
            if self.is_near_end() {
                return Ok(());
            }
        }
    }

    pub(super) fn is_near_end(&self) -> bool {
        is_near_end(&self.tree, self.rounds)
    }

    /// What was changed since it was last taken. A round of its own.
    pub(super) fn next_changes(&mut self) -> Result<Vec<Changed>, StoreError> {
        self.rounds += 1;
        take_changes(&self.tree)
    }

    /// See [`StoreConfig::end_backup`].
    pub(super) fn last_changes(&self) -> Result<Option<FinalChanges>, StoreError> {
        last_changes(&self.tree, self.rounds)
    }

    /// For [`StoreConfig::end_backup`].
    pub fn rounds(&self) -> u32 {
        self.rounds
    }
}

impl Drop for BackupSource {
    fn drop(&mut self) {
        self.tree.changed().end();
    }
}

/// The directory that a backup is written to. Removed unless it is finished.
#[derive(Debug)]
pub struct BackupTarget {
    /// `None`: it is closed.
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

    /// An empty directory beside `dir`.
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
        fs::DirBuilder::new().mode(0o750).create(&partial).map_err(files::io_error("make", &partial))?;
        Ok(BackupTarget { db: None, partial, dir: dir.to_owned(), chunk_bytes: 0, is_finished: false })
    }

    fn put(&mut self, key: &[u8], value: Option<&[u8]>, is_over: &AtomicBool) -> Result<(), StoreError> {
        let db = self.db.as_ref().expect("open until it is finished");
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
            if is_over.load(Ordering::Relaxed) {
                return Err(StoreError::Cancelled { path: self.dir.clone() });
            }
        }
        Ok(())
    }

    /// Puts in the last changes, waits until all is on disk and gives it its name.
    pub fn finish(mut self, last: FinalChanges) -> Result<BackupSummary, StoreError> {
        let never = AtomicBool::new(false);
        for (key, value) in last.records {
            self.put(&key, value.as_deref(), &never)?;
        }
        let db = self.db.take().expect("open until it is finished");
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
                tracing::warn!("a backup that was not finished is left: {error}");
            }
        }
    }
}

/// Makes a backup of a state directory that no process has open.
pub fn backup_closed(state: &Path, dir: &Path, cache_bytes: u64) -> Result<BackupSummary, StoreError> {
    let target = BackupTarget::create_partial_dir(dir)?;
    let now_ms = copy_checked(state, &target.partial, cache_bytes)?;
    target.finish_closed(now_ms)
}

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreSummary {
    pub summary: BackupSummary,
    /// Where the state directory of before is now, if there was one.
    pub before: Option<PathBuf>,
}

/// Puts a copy of a backup in the place of a state directory, which is kept under
/// the name `STATE.before-restore`. No process may have the state open.
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
    fs::DirBuilder::new().mode(0o750).create(&new).map_err(files::io_error("make", &new))?;
    let now_ms = match copy_checked(backup, &new, cache_bytes) {
        Ok(now_ms) => now_ms,
        Err(error) => {
            _ = remove_state_dir(&new);
            return Err(error);
        }
    };
    // The daemon's, as the directory of before was.
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

/// Copies the state files, and opens the copy to see that it can be: what a crash
/// left undone is done in it. Returns the latest moment of the state.
fn copy_checked(from: &Path, to: &Path, cache_bytes: u64) -> Result<i64, StoreError> {
    read_copy::copy_into(from, to, &|| false)?;
    let opened = Store::open_at(to, to, cache_bytes, lock::LOCK_TIMEOUT).and_then(|mut store| store.load());
    let now_ms = opened.map_err(|error| error.with_original_path(to, from))?.meta.now_ms;
    lock::retry_until_unlocked(to, lock::LOCK_TIMEOUT, || Ok((!lock::is_locked(to)?).then_some(())))?;
    Ok(now_ms)
}

/// Gives a directory and what is in it to a user and a group.
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

/// Removes a directory of ours. Fails where anything else is in it.
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

/// Waits until all files are on disk. Returns their size.
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
    // Of a name alone it is the empty path, which cannot be opened.
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
        let of = |i: u32| i.wrapping_mul(2_654_435_761).wrapping_add(n * 7_919) % 400_000;
        let mut rows: Vec<_> = (0..rows)
            .map(|i| {
                let key = RowKey {
                    window: WeekKey(1).into(),
                    server: ServerKey(of(i) % 200),
                    player: PlayerKey(of(i) / 200),
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
            let gone = RowKey { window: WeekKey(1).into(), server: ServerKey(n % 200), player: PlayerKey(n % 199) };
            commit.rows.retain(|(key, _)| *key != gone);
            commit.corrections.deleted_rows = vec![gone];
        }
        commit
    }

    #[test]
    fn backup_during_commits_equals_the_state_between_two_commits() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("state"), SETTINGS).unwrap();
        store.apply(&commit(0, 300_000)).unwrap();
        for (number, name) in ["first", "second"].into_iter().enumerate() {
            let (place, never) = (dir.path().join(name), AtomicBool::new(false));
            let source = store.begin_backup().expect("no other");
            assert!(store.begin_backup().is_none(), "one at a time");
            let (target, place) = (BackupTarget::create(&place).unwrap(), &place);
            let mut n = 1_000 * number as u32;
            let (asks, asked) = std::sync::mpsc::channel::<(BackupSource, BackupTarget)>();
            let copying = |mut source: BackupSource, mut target: BackupTarget, asks: std::sync::mpsc::Sender<_>| {
                source.copy_to(&mut target, &never).unwrap();
                asks.send((source, target)).unwrap();
            };
            let (held, summary) = std::thread::scope(|scope| {
                scope.spawn({
                    let asks = asks.clone();
                    move || copying(source, target, asks)
                });
                loop {
                    n += 1;
                    store.apply(&commit(n, 300)).unwrap();
                    // The copying goes on beside at least some.
                    if n % 1_000 < 20 {
                        continue;
                    }
                    let Ok((source, target)) = asked.try_recv() else { continue };
                    let Some(last) = store.end_backup(source.rounds()).unwrap() else {
                        let asks = asks.clone();
                        scope.spawn(move || copying(source, target, asks));
                        continue;
                    };
                    let held = records(&store);
                    // What comes later is not in it.
                    store.apply(&commit(n + 1, 300)).unwrap();
                    drop(source);
                    break (held, target.finish(last).unwrap());
                }
            });
            assert_eq!(summary.now_ms, i64::from(n));
            let backup = Store::open(place, SETTINGS).unwrap();
            assert!(records(&backup) == held, "the same records");
            assert!(records(&store) != held);
        }
    }

    #[test]
    fn cancelled_backup_leaves_no_files_and_the_next_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("state"), SETTINGS).unwrap();
        store.apply(&commit(0, 30_000)).unwrap();
        let place = dir.path().join("backup");
        let mut source = store.begin_backup().unwrap();
        let mut target = BackupTarget::create(&place).unwrap();
        let stopped = source.copy_to(&mut target, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(StoreError::Cancelled { .. })), "{stopped:?}");
        drop((source, target));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the state alone");

        // Left by a kill.
        fs::create_dir(dir.path().join("backup.partial")).unwrap();
        fs::write(dir.path().join("backup.partial/db"), "half").unwrap();
        let mut source = store.begin_backup().unwrap();
        let mut target = BackupTarget::create(&place).unwrap();
        source.copy_to(&mut target, &AtomicBool::new(false)).unwrap();
        let last = store.end_backup(source.rounds()).unwrap().unwrap();
        target.finish(last).unwrap();
        assert!(records(&Store::open(&place, SETTINGS).unwrap()) == records(&store));
        let again = BackupTarget::create(&place);
        assert!(matches!(again, Err(StoreError::AlreadyExists { .. })), "never over another backup: {again:?}");
    }

    #[test]
    fn restore_installs_the_backup_and_keeps_the_previous_state() {
        let dir = tempfile::tempdir().unwrap();
        let (state, backup) = (dir.path().join("state"), dir.path().join("backup"));
        let mut store = Store::open(&state, SETTINGS).unwrap();
        store.apply(&commit(0, 9_000)).unwrap();
        let held = records(&store);
        // A commit that a crash left in the redo file is part of the state.
        let redone = commit(1, 9_000);
        store.write_redo(&redone).unwrap();
        drop(store);
        let summary = backup_closed(&state, &backup, SETTINGS.cache_bytes).unwrap();
        assert_eq!(summary.now_ms, 1);
        assert!(state.join("redo").exists() && !backup.join("redo").exists(), "the state is as it was");

        let mut store = Store::open(&state, SETTINGS).unwrap();
        let of_backup = records(&store);
        assert!(of_backup != held);
        store.apply(&commit(2, 9_000)).unwrap();
        let later = records(&store);
        std::thread::scope(|scope| {
            // Once it is closed.
            let restoring = scope.spawn(|| restore(&backup, &state, SETTINGS.cache_bytes));
            drop(store);
            let restored = restoring.join().unwrap().unwrap();
            assert_eq!(restored.before.as_deref(), Some(&*dir.path().join("state.before-restore")));
        });
        assert!(records(&Store::open(&state, SETTINGS).unwrap()) == of_backup);
        assert!(records(&Store::open(&dir.path().join("state.before-restore"), SETTINGS).unwrap()) == later);
        let again = restore(&backup, &state, SETTINGS.cache_bytes);
        assert!(matches!(again, Err(StoreError::AlreadyExists { .. })), "{again:?}");
        // Where there was none.
        let new = dir.path().join("new");
        assert_eq!(restore(&backup, &new, SETTINGS.cache_bytes).unwrap().before, None);
        assert!(records(&Store::open(&new, SETTINGS).unwrap()) == of_backup);
    }
}
