//! Backups: copies the records of a state, also while a daemon uses it, and restores such a
//! copy. Replaces a state directory by one that is written beside it.
//!
//! A backup is a state directory with one checkpoint file, a base with the records of a checkpoint. The
//! checksums of the file and the number of blocks at its end show any damage.

use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use super::checkpoint::{self, CheckpointFiles, FileDamage, Record, Records};
use super::error::StoreError;
use super::{Store, keys, state_files};
use crate::model::commit::Meta;
use crate::store::dir::read_copy::{self, WithLog};
use crate::store::dir::{files, lock};
use crate::store::working_copy::ComparisonTime;

/// Summary of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupSummary {
    /// Latest time of the state, Unix ms.
    pub now_ms: i64,
    /// Size of the files.
    pub bytes: u64,
    pub records: u64,
}

/// The file of a backup that says what the backup contains.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    /// The version that wrote it.
    clqd: String,
    /// Time of the latest event, Unix ms.
    latest_event_ms: i64,
    /// The number of the checkpoint file.
    checkpoint: u64,
    records: u64,
    /// The last batch of the log whose events it has: an engine of a cluster goes on after it.
    #[serde(default)]
    position: u64,
}

/// The files of a backup, relative to its directory.
pub fn backup_files(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    state_files::state_files(dir)
}

/// The last batch of the log whose events a backup has; 0: it was written without a log.
pub fn backup_position(dir: &Path) -> Result<u64, StoreError> {
    let path = dir.join(files::MANIFEST);
    let json = fs::read(&path).map_err(files::io_error("read", &path))?;
    let manifest: Manifest = serde_json::from_slice(&json)
        .map_err(|error| StoreError::Damaged { path: path.clone(), at: format!(" ({error})") })?;
    Ok(manifest.position)
}

impl Manifest {
    fn write(&self, dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(files::MANIFEST);
        let json = serde_json::to_vec_pretty(self).expect("strings and numbers are serialisable");
        let written = fs::write(&path, json).and_then(|()| File::open(&path)?.sync_all());
        written.and_then(|()| File::open(dir)?.sync_all()).map_err(files::io_error("write", &path))
    }

    /// Compares the manifest of a backup with a copy of it. A backup of an earlier version has none.
    fn check(backup: &Path, copy: &Path, latest_event_ms: i64) -> Result<(), StoreError> {
        let path = backup.join(files::MANIFEST);
        let json = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            json => json.map_err(files::io_error("read", &path))?,
        };
        let damaged = |at: String| StoreError::Damaged { path: path.clone(), at };
        let manifest: Manifest = serde_json::from_slice(&json).map_err(|error| damaged(format!(" ({error})")))?;
        let checkpoints = CheckpointFiles::open(copy)?;
        // A daemon that was started with the backup has continued it.
        if checkpoints.last_number() == Some(manifest.checkpoint) {
            let (expected, found) = ((manifest.records, manifest.latest_event_ms), count_records(&checkpoints)?);
            if expected != (found, latest_event_ms) {
                let (records, ms) = expected;
                let at = format!(
                    ", or the backup is: it should have {records} records as of {ms} ms, and has {found} as of \
                     {latest_event_ms} ms"
                );
                return Err(damaged(at));
            }
        }
        Ok(())
    }
}

fn count_records(files: &CheckpointFiles) -> Result<u64, StoreError> {
    files.records()?.try_fold(0, |records, record| record.map(|_| records + 1))
}

/// The records of a checkpoint, for another thread. Its files are open: the store may replace them.
#[derive(Debug)]
pub struct BackupSource {
    records: Records,
    number: u64,
    damage: FileDamage,
}

impl Store {
    /// The records of the last checkpoint.
    pub fn backup_source(&mut self) -> Result<BackupSource, StoreError> {
        self.finish_checkpoint()?;
        let files = self.writer.files();
        let damage = files.damage();
        let records = files.records().inspect_err(|error| damage.note(error))?;
        Ok(BackupSource { records, number: files.last_number().unwrap_or(1), damage })
    }
}

impl StoreError {
    /// The error of a backup by a running daemon.
    pub fn of_running_daemon(self) -> StoreError {
        match checkpoint::lost_file(&self) {
            Some(path) => StoreError::DamagedWhileRunning { path: path.to_owned() },
            None => self,
        }
    }
}

impl BackupSource {
    /// Writes a backup. `dir` must not exist, or be empty. Fails rather than leave less than `reserve_bytes`
    /// free on its disk, and when `is_cancelled` is set.
    pub fn write(self, dir: &Path, reserve_bytes: u64, is_cancelled: &AtomicBool) -> Result<BackupSummary, StoreError> {
        let target = BackupTarget::create(dir)?;
        target.check_space(reserve_bytes)?;
        let pace = || match is_cancelled.load(Ordering::Relaxed) {
            true => Err(StoreError::Cancelled { path: dir.to_owned() }),
            false => target.check_space(reserve_bytes),
        };
        let (mut now_ms, mut count, mut position) = (0, 0, 0);
        // A daemon that starts with the backup begins a log.
        let no_position = postcard::to_stdvec(&0_u64).expect("a number is serialisable");
        let mut to_backup = |(key, value): Record| {
            count += 1;
            if key == keys::log_position() {
                position = postcard::from_bytes(&value).map_err(|error| StoreError::corrupt(&key, error))?;
                return Ok((key, no_position.clone()));
            }
            if key == keys::meta() {
                let meta: Meta = postcard::from_bytes(&value).map_err(|error| StoreError::corrupt(&key, error))?;
                now_ms = meta.now_ms;
            }
            Ok((key, value))
        };
        let records = self.records.map(|record| record.inspect_err(|error| self.damage.note(error)));
        let records = checkpoint::paced(records, pace).map(|record| record.and_then(&mut to_backup));
        let bytes = checkpoint::write_copy(&target.partial, self.number, records)?;
        let clqd = env!("CARGO_PKG_VERSION").to_owned();
        let checkpoint = self.number;
        Manifest { clqd, latest_event_ms: now_ms, checkpoint, records: count, position }.write(&target.partial)?;
        target.finish()?;
        Ok(BackupSummary { now_ms, bytes, records: count })
    }
}

/// The directory of a backup that is being written, beside its destination. Removed unless it is finished.
#[derive(Debug)]
struct BackupTarget {
    partial: PathBuf,
    dir: PathBuf,
    is_finished: bool,
    /// Of the directory: other processes do not take it for that of a backup that was killed.
    _lock: Flock<File>,
}

impl BackupTarget {
    fn create(dir: &Path) -> Result<BackupTarget, StoreError> {
        // Without a slash at the end, to which a suffix would be a name inside.
        let dir: &Path = &dir.components().collect::<PathBuf>();
        check_absent_or_empty(dir)?;
        let partial = files::with_suffix(dir, ".partial");
        files::create_dir(&partial)?;
        let file = File::open(&partial).map_err(files::io_error("open", &partial))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
            nix::errno::Errno::EWOULDBLOCK => {
                StoreError::Locked { path: partial.clone(), holder: "another backup".to_owned(), waited_s: 0 }
            }
            errno => files::io_error("lock", &partial)(errno.into()),
        })?;
        state_files::remove_state_files(&partial)?;
        Ok(BackupTarget { partial, dir: dir.to_owned(), is_finished: false, _lock: lock })
    }

    fn check_space(&self, reserve: u64) -> Result<(), StoreError> {
        let free = files::free_bytes(&self.partial)?;
        if free < reserve {
            let dir = self.dir.parent().unwrap_or(&self.dir).to_owned();
            return Err(StoreError::NoSpaceForBackup { dir, free, reserve });
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), StoreError> {
        if self.dir.exists() {
            fs::remove_dir(&self.dir).map_err(files::io_error("replace", &self.dir))?;
        }
        fs::rename(&self.partial, &self.dir).map_err(files::io_error("rename", &self.partial))?;
        self.is_finished = true;
        files::sync_parent(&self.dir)
    }
}

impl Drop for BackupTarget {
    fn drop(&mut self) {
        if !self.is_finished
            && let Err(error) = state_files::remove_state_dir(&self.partial)
        {
            tracing::warn!("an unfinished backup cannot be removed: {}", error.with_causes());
        }
    }
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

/// Result of a restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreSummary {
    pub summary: BackupSummary,
    /// The new path of the previous state directory, if there was one.
    pub before: Option<PathBuf>,
}

/// Replaces a state directory by a copy of a backup and renames the previous one to
/// `STATE.before-restore`. No process may have the state open. `prepare` gets the values of the backup and the
/// directory of the copy, which it may change; nothing is replaced if it fails.
pub fn restore<E: From<StoreError>>(
    backup: &Path,
    state: &Path,
    cache_bytes: u64,
    prepare: impl FnOnce(&Meta, &Path) -> Result<(), E>,
) -> Result<RestoreSummary, E> {
    let replacement = StateReplacement::begin(state)?;
    let meta = copy_checked(backup, &replacement.new, cache_bytes)?;
    prepare(&meta, &replacement.new)?;
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
        check_can_be_renamed(state)?;
        let before = files::metadata_if_exists(state)?;
        let kept = files::with_suffix(state, ".before-restore");
        if before.is_some() && kept.exists() {
            super::check_not_interrupted(state)?;
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
            remove_unfinished(&new)?;
        }
        files::create_dir(&new)?;
        Ok(StateReplacement { state: state.to_owned(), new, kept, before, is_finished: false, _lock: lock })
    }

    /// The directory of the new state. No process may have it open at `finish`.
    pub fn dir(&self) -> &Path {
        &self.new
    }

    /// Opens the new state, which is empty. Drop it before `finish`.
    pub fn open(&self, cache_bytes: u64) -> Result<Store, StoreError> {
        Store::open_at(&self.new, &self.new, cache_bytes, lock::LOCK_TIMEOUT, ComparisonTime::BeforeUse)
    }

    /// Renames the directories, once everything is on disk. `now_ms`: the latest time of the new
    /// state.
    pub fn finish(mut self, now_ms: i64) -> Result<RestoreSummary, StoreError> {
        let StateReplacement { state, new, kept, before, .. } = &self;
        lock::wait_until_unlocked(new)?;
        files::remove_other_databases(new)?;
        // It gets the owner and mode of the previous directory, which belong to the daemon.
        if let Some(before) = before {
            set_owner(new, before.uid(), before.gid(), before.permissions().mode())?;
        }
        let bytes = state_files::sync_files(new)?;
        let records = count_records(&CheckpointFiles::open(new)?)?;
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
        Ok(RestoreSummary { summary: BackupSummary { now_ms, bytes, records }, before })
    }
}

impl Drop for StateReplacement {
    fn drop(&mut self) {
        if !self.is_finished {
            _ = lock::wait_until_unlocked(&self.new);
            _ = remove_unfinished(&self.new);
        }
    }
}

/// Error: a state directory is a mount point. It need not exist.
pub fn check_can_be_renamed(state: &Path) -> Result<(), StoreError> {
    match (fs::symlink_metadata(state), fs::metadata(files::parent(state))) {
        (Ok(it), Ok(above)) if it.dev() != above.dev() => Err(StoreError::MountPoint { path: state.to_owned() }),
        _ => Ok(()),
    }
}

/// Removes the directory of a new state. It may have the second database of a compaction.
fn remove_unfinished(new: &Path) -> Result<(), StoreError> {
    files::remove_other_databases(new)?;
    state_files::remove_state_dir(new)
}

/// Copies the state files, and opens the copy to check it, which completes what a crash
/// left unfinished. Returns the values of the state as a whole.
fn copy_checked(from: &Path, to: &Path, cache_bytes: u64) -> Result<Meta, StoreError> {
    read_copy::copy_into(from, to, WithLog::Yes, &|| false)?;
    let opened = Store::open_at(to, to, cache_bytes, lock::LOCK_TIMEOUT, ComparisonTime::BeforeUse)
        .and_then(|mut store| store.load());
    let meta = opened.map_err(|error| error.with_original_path(to, from))?.meta;
    lock::wait_until_unlocked(to)?;
    Manifest::check(from, to, meta.now_ms)?;
    Ok(meta)
}

/// Changes the owner and group of a directory and of the files in it.
fn set_owner(dir: &Path, user: u32, group: u32, mode: u32) -> Result<(), StoreError> {
    let names = state_files::directories(dir)?.into_iter().chain(state_files::state_files(dir)?);
    let names = names.chain([files::FORGETTING.into()]);
    for path in names.map(|name| dir.join(name)) {
        let Some(metadata) = files::metadata_if_exists(&path)? else { continue };
        if (metadata.uid(), metadata.gid()) != (user, group) {
            chown(&path, Some(user), Some(group)).map_err(files::io_error("change the owner of", &path))?;
        }
    }
    fs::set_permissions(dir, fs::Permissions::from_mode(mode)).map_err(files::io_error("change the mode of", dir))
}

/// Gives all files of a state the owner of its directory: root has run a command on the state of another user.
pub fn keep_owner(dir: &Path) -> Result<(), StoreError> {
    match files::metadata_if_exists(dir)? {
        Some(of_dir) if geteuid().is_root() => set_owner(dir, of_dir.uid(), of_dir.gid(), of_dir.mode()),
        _ => Ok(()),
    }
}

/// Whether a new directory would be on the same disk as another one.
pub fn is_same_disk(dir: &Path, other: &Path) -> bool {
    let device = |path: &Path| path.ancestors().find_map(|path| Some(fs::metadata(path).ok()?.dev()));
    device(dir) == device(other)
}

/// The error in the path of a new backup, if there is one.
pub fn dir_error(dir: &Path, state_dir: &Path) -> Option<String> {
    if !dir.is_absolute() || dir.components().any(|part| part == Component::ParentDir) {
        return Some(format!("{dir:?} is not an absolute path without \"..\""));
    }
    dir.starts_with(state_dir).then(|| format!("{dir:?} is inside the state directory {state_dir:?}"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::commit::{Commit, RowKey, WeekPhase, WeekState};
    use crate::model::packed_row::PackedRow;
    use crate::model::{GameKey, PlayerKey, PlayerRow, ServerKey, WeekKey};
    use crate::store::StoreSettings;
    use crate::store::dir::database::Database;

    pub const SETTINGS: StoreSettings = StoreSettings { cache_bytes: 16 << 20, create: true };

    #[test]
    fn backup_inside_the_state_directory_is_refused() {
        let problem = |dir: &str| dir_error(Path::new(dir), Path::new("/var/lib/clqd"));
        assert_eq!(problem("/var/lib/clqd-backup/a"), None);
        for bad in ["backup", "/var/lib/clqd/backup", "/var/lib/clqd", "/var/lib/x/../clqd/backup"] {
            assert!(problem(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn mount_point_cannot_be_renamed() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/proc", &link).unwrap();
        for path in [dir.path(), &dir.path().join("missing"), &link] {
            check_can_be_renamed(path).unwrap();
        }
        let refused = StateReplacement::begin(Path::new("/proc"));
        assert!(matches!(refused, Err(StoreError::MountPoint { .. })), "{refused:?}");
    }

    fn restore_unchecked(backup: &Path, state: &Path) -> Result<RestoreSummary, StoreError> {
        restore(backup, state, SETTINGS.cache_bytes, |_, _| Ok(()))
    }

    pub fn records(store: &Store) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut records = crate::store::tree::tests::all(&store.tree, vec![0]..vec![255]);
        records.retain(|(key, _)| *key != keys::checkpoint() && *key != keys::applied());
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

    fn back_up(store: &mut Store, path: &Path) -> BackupSummary {
        store.backup_source().unwrap().write(path, 0, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn backup_during_commits_equals_the_state_at_its_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("state"), SETTINGS).unwrap();
        store.apply(&commit(0, 100_000)).unwrap();
        for (number, name) in ["first", "second"].into_iter().enumerate() {
            let n = 1_000 * number as u32 + 1;
            store.apply(&commit(n, 300)).unwrap();
            let (expected, path) = (records(&store), &dir.path().join(name));
            let source = store.backup_source().unwrap();
            let summary = std::thread::scope(|scope| {
                let writing = scope.spawn(move || source.write(path, 0, &AtomicBool::new(false)).unwrap());
                // Merges replace the files that the backup reads. Later commits are not in it.
                (1..100).for_each(|i| store.apply(&commit(n + i, 300)).unwrap());
                writing.join().unwrap()
            });
            assert_eq!(summary.now_ms, i64::from(n));
            assert_eq!(state_files::state_files(path).unwrap().len(), 2, "one file, and the manifest");
            assert_eq!(summary.records, expected.len() as u64);
            assert!(records(&Store::open(path, SETTINGS).unwrap()) == expected, "the same records");
            assert!(records(&store) != expected);
        }
    }

    #[test]
    fn cancelled_backup_leaves_no_files_and_the_next_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("state"), SETTINGS).unwrap();
        store.apply(&commit(0, 30_000)).unwrap();
        let path = dir.path().join("backup");
        let cancelled = store.backup_source().unwrap().write(&path, 0, &AtomicBool::new(true));
        assert!(matches!(cancelled, Err(StoreError::Cancelled { .. })), "{cancelled:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the state directory remains");

        let target = BackupTarget::create(&path).unwrap();
        let other = store.backup_source().unwrap().write(&path, 0, &AtomicBool::new(false));
        assert!(matches!(other, Err(StoreError::Locked { .. })), "one at a time in one directory: {other:?}");
        drop(target);

        // Left by a killed process.
        fs::create_dir_all(dir.path().join("backup.partial/checkpoints")).unwrap();
        fs::write(dir.path().join("backup.partial/checkpoints/000000000001.base.tmp"), "half").unwrap();
        back_up(&mut store, &path);
        assert!(records(&Store::open(&path, SETTINGS).unwrap()) == records(&store));
        let again = store.backup_source().unwrap().write(&path, 0, &AtomicBool::new(false));
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
        let mut copy = Store::open_read_only(&state, SETTINGS.cache_bytes, &|| false, &|_| false).unwrap();
        assert_eq!(back_up(&mut copy, &backup).now_ms, 1);
        drop(copy);

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
        // A restore to a path without a state. One that was killed during a compaction has left its files.
        let new = dir.path().join("new");
        let left = dir.path().join("new.restoring");
        drop(Store::open(&left, SETTINGS).unwrap());
        drop(Database::open(&left.join("db.1"), SETTINGS.cache_bytes).unwrap());
        lock::wait_until_unlocked(&left.join("db.1")).unwrap();
        assert_eq!(restore_unchecked(&backup, &new).unwrap().before, None);
        assert!(records(&Store::open(&new, SETTINGS).unwrap()) == backed_up);
    }
}
