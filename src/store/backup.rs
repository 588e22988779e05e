//! Backups: copies a state directory, also while a daemon uses it, and restores such a
//! copy. Replaces a state directory by one that is written beside it.
//!
//! A backup is an ordinary state directory. If a store is in use, its records are copied
//! (`online_copy`). If no process has the state directory open, its files are copied.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::fcntl::Flock;

use super::Store;
use super::error::StoreError;
use super::online_copy::{self, BackupSource, BackupSummary, BackupTarget, FinalChanges};
use crate::model::commit::Meta;
use crate::store::dir::read_copy::{self, WithLog};
use crate::store::dir::{files, lock};

impl Store {
    /// Begins a backup. `None`: another one is in progress.
    pub fn begin_backup(&mut self) -> Result<Option<BackupSource>, StoreError> {
        self.finish_checkpoint()?;
        self.compaction.cancel();
        Ok(BackupSource::begin(&self.tree))
    }

    /// Ends a backup between two commits: it equals the current state. `None`: too much has
    /// changed, it has to catch up first.
    pub fn end_backup(&mut self, rounds: u32) -> Result<Option<FinalChanges>, StoreError> {
        self.finish_checkpoint()?;
        let mut last = online_copy::final_changes(&self.tree, rounds)?;
        if self.log_position()?.is_some() {
            last.iter_mut().for_each(FinalChanges::begin_log);
        }
        Ok(last)
    }
}

/// Backs up a state directory that no process has open. `complete` gets the copy, adds what the log
/// has in addition, and returns the values of the state as a whole.
pub fn backup_closed<E: From<StoreError>>(
    state: &Path,
    dir: &Path,
    cache_bytes: u64,
    complete: impl FnOnce(Store) -> Result<Meta, E>,
) -> Result<BackupSummary, E> {
    let target = BackupTarget::create_partial_dir(dir)?;
    let copy = &target.partial;
    read_copy::copy_into(state, copy, WithLog::No, &|| false)?;
    let store = Store::open_at(copy, copy, cache_bytes, lock::LOCK_TIMEOUT);
    let meta = complete(store.map_err(|error| error.with_original_path(copy, state))?)?;
    lock::wait_until_unlocked(copy)?;
    Ok(target.finish_closed(meta.now_ms)?)
}

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreSummary {
    pub summary: BackupSummary,
    /// The new path of the previous state directory, if there was one.
    pub before: Option<PathBuf>,
}

/// Replaces a state directory by a copy of a backup and renames the previous one to
/// `STATE.before-restore`. No process may have the state open. Nothing is replaced if `check` fails.
pub fn restore<E: From<StoreError>>(
    backup: &Path,
    state: &Path,
    cache_bytes: u64,
    check: impl FnOnce(&Meta) -> Result<(), E>,
) -> Result<RestoreSummary, E> {
    let replacement = StateReplacement::begin(state)?;
    let meta = copy_checked(backup, &replacement.new, cache_bytes)?;
    check(&meta)?;
    Ok(replacement.finish(meta.now_ms)?)
}

/// A state directory that will replace another one. It is written beside it, as `STATE.restoring`,
/// and removed when this is dropped before `finish`. Until then the other one is unchanged, also if
/// the process is killed.
#[derive(Debug)]
pub struct StateReplacement {
    state: PathBuf,
    new: PathBuf,
    /// The new path of the previous state directory.
    kept: PathBuf,
    before: Option<Metadata>,
    is_finished: bool,
    /// Keeps the daemon from starting with the previous state.
    _lock: Option<Flock<File>>,
}

impl StateReplacement {
    /// Creates the new directory, and removes one that an interrupted restore left. Waits some
    /// seconds for a process that has one of them open.
    pub fn begin(state: &Path) -> Result<StateReplacement, StoreError> {
        let before = files::metadata_if_exists(state)?;
        let kept = files::with_suffix(state, ".before-restore");
        if before.is_some() && kept.exists() {
            return Err(StoreError::EarlierStateKept { kept });
        }
        // A damaged directory without a database cannot be in use.
        let has_database = match files::database_dir(state) {
            Ok(database) => files::metadata_if_exists(&database.join("db"))?.is_some(),
            Err(_) => false,
        };
        let lock = match has_database {
            true => Some(lock::retry_until_unlocked(state, lock::LOCK_TIMEOUT, || lock::try_lock(state))?),
            false => None,
        };
        let new = files::with_suffix(state, ".restoring");
        if new.exists() {
            lock::wait_until_unlocked(&new).map_err(|error| match error {
                StoreError::Locked { path, holder, .. } => StoreError::RestoreInProgress { path, holder },
                error => error,
            })?;
            files::remove_state_dir(&new)?;
        }
        files::create_dir(&new)?;
        Ok(StateReplacement { state: state.to_owned(), new, kept, before, is_finished: false, _lock: lock })
    }

    /// Opens the new state, which is empty. Drop it before `finish`.
    pub fn open(&self, cache_bytes: u64) -> Result<Store, StoreError> {
        Store::open_at(&self.new, &self.new, cache_bytes, lock::LOCK_TIMEOUT)
    }

    /// Renames the directories, once everything is on disk. `now_ms`: the latest time of the new
    /// state.
    pub fn finish(mut self, now_ms: i64) -> Result<RestoreSummary, StoreError> {
        let StateReplacement { state, new, kept, before, .. } = &self;
        lock::wait_until_unlocked(new)?;
        // It gets the owner and mode of the previous directory, which belong to the daemon.
        if let Some(before) = before {
            set_owner(new, before.uid(), before.gid(), before.permissions().mode())?;
        }
        let bytes = files::sync_files(new)?;
        if before.is_some() {
            fs::rename(state, kept).map_err(files::io_error("rename", state))?;
        }
        if let Err(error) = fs::rename(new, state) {
            _ = fs::rename(kept, state);
            return Err(files::io_error("rename", new)(error));
        }
        let before = before.as_ref().map(|_| kept.clone());
        files::sync_parent(state)?;
        self.is_finished = true;
        Ok(RestoreSummary { summary: BackupSummary { now_ms, bytes }, before })
    }
}

impl Drop for StateReplacement {
    fn drop(&mut self) {
        if !self.is_finished {
            _ = lock::wait_until_unlocked(&self.new);
            _ = files::remove_state_dir(&self.new);
        }
    }
}

/// Copies the state files, and opens the copy to check it, which completes what a crash
/// left unfinished. Returns the values of the state as a whole.
fn copy_checked(from: &Path, to: &Path, cache_bytes: u64) -> Result<Meta, StoreError> {
    read_copy::copy_into(from, to, WithLog::Yes, &|| false)?;
    let opened = Store::open_at(to, to, cache_bytes, lock::LOCK_TIMEOUT).and_then(|mut store| store.load());
    let meta = opened.map_err(|error| error.with_original_path(to, from))?.meta;
    lock::wait_until_unlocked(to)?;
    Ok(meta)
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
    fs::set_permissions(dir, fs::Permissions::from_mode(mode)).map_err(files::io_error("change the mode of", dir))
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::model::commit::{Commit, RowKey, WeekPhase, WeekState};
    use crate::model::packed_row::PackedRow;
    use crate::model::{GameKey, PlayerKey, PlayerRow, ServerKey, WeekKey};
    use crate::store::StoreSettings;

    pub const SETTINGS: StoreSettings = StoreSettings { cache_bytes: 16 << 20, create: true };

    fn restore_unchecked(backup: &Path, state: &Path) -> Result<RestoreSummary, StoreError> {
        restore(backup, state, SETTINGS.cache_bytes, |_| Ok(()))
    }

    pub fn records(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut records = crate::store::tree::tests::all(&store.tree, vec![0]..vec![255]);
        records.retain(|(key, _)| *key != crate::store::keys::checkpoint());
        records
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
        let weeks = vec![WeekState { week: WeekKey(1), phase: WeekPhase::Running }];
        let meta = Meta { now_ms: i64::from(n), weeks, ..Meta::default() };
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
            let source = store.begin_backup().unwrap().expect("no other backup");
            assert!(store.begin_backup().unwrap().is_none(), "one at a time");
            let (target, path) = (BackupTarget::create(&path, 0).unwrap(), &path);
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
        let mut source = store.begin_backup().unwrap().unwrap();
        let mut target = BackupTarget::create(&path, 0).unwrap();
        let cancelled = source.copy_to(&mut target, &AtomicBool::new(true));
        assert!(matches!(cancelled, Err(StoreError::Cancelled { .. })), "{cancelled:?}");
        drop((source, target));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the state directory remains");

        // Left by a killed process.
        fs::create_dir(dir.path().join("backup.partial")).unwrap();
        fs::write(dir.path().join("backup.partial/db"), "half").unwrap();
        let mut source = store.begin_backup().unwrap().unwrap();
        let mut target = BackupTarget::create(&path, 0).unwrap();
        source.copy_to(&mut target, &AtomicBool::new(false)).unwrap();
        let last = store.end_backup(source.rounds()).unwrap().unwrap();
        target.finish(last).unwrap();
        assert!(records(&Store::open(&path, SETTINGS).unwrap()) == records(&store));
        let again = BackupTarget::create(&path, 0);
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
        // A checkpoint that the database does not have, because the process was killed, is part of the state.
        store.write_only_file(&commit(1, 9_000));
        drop(store);
        let summary = backup_closed(&state, &backup, SETTINGS.cache_bytes, |store| store.meta()).unwrap();
        assert_eq!(summary.now_ms, 1);

        let mut store = Store::open(&state, SETTINGS).unwrap();
        let backed_up = records(&store);
        assert!(backed_up != first);
        store.apply(&commit(2, 9_000)).unwrap();
        let later = records(&store);
        std::thread::scope(|scope| {
            // The restore waits until the store is closed.
            let restoring = scope.spawn(|| restore_unchecked(&backup, &state));
            drop(store);
            let restored = restoring.join().unwrap().unwrap();
            assert_eq!(restored.before.as_deref(), Some(&*dir.path().join("state.before-restore")));
        });
        assert!(records(&Store::open(&state, SETTINGS).unwrap()) == backed_up);
        assert!(records(&Store::open(&dir.path().join("state.before-restore"), SETTINGS).unwrap()) == later);
        let again = restore_unchecked(&backup, &state);
        assert!(matches!(again, Err(StoreError::EarlierStateKept { .. })), "{again:?}");
        // A restore to a path without a state.
        let new = dir.path().join("new");
        assert_eq!(restore_unchecked(&backup, &new).unwrap().before, None);
        assert!(records(&Store::open(&new, SETTINGS).unwrap()) == backed_up);
    }
}
