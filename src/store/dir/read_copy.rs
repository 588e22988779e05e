//! A private copy of a state directory, for commands that only read.
//!
//! A read-only command copies the checkpoint files, and loads a database from the copy: the directory itself
//! is never changed. A state of an earlier version has no such files: its database is copied. The copy is a
//! reflink where the file system supports it.
//!
//! No lock is held during the copy: a daemon may start at any time. The copy is accepted
//! only if no process had the directory open before and after it, and the size, inode and
//! times of every file are unchanged. Otherwise it is repeated.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;
use tempfile::TempDir;

use super::{files, lock};
use crate::store::checkpoint;
use crate::store::error::StoreError;
use crate::store::state_files;

/// Directory for copies if `TMPDIR` is not set: it is on disk, whereas `/tmp` may be in
/// memory.
const DEFAULT_TMPDIR: &str = "/var/tmp";

/// Space left free in addition to a copy, bytes: opening writes a little.
const SPARE_BYTES: u64 = 16 << 20;

/// A directory that is younger may not be locked yet.
const ABANDONED_AGE_MIN: Duration = Duration::from_secs(2);

/// Identity, size and times of a file: they differ when the file was changed.
type FileStamp = (PathBuf, [i64; 7]);

/// The beginning of the names of copies.
const PREFIX: &str = "clqd-read-";

/// A copy, which is deleted when this is dropped.
#[derive(Debug)]
pub(in crate::store) struct ReadCopy {
    dir: TempDir,
    /// Of the directory, as long as a process uses it.
    _lock: Option<Flock<File>>,
}

impl ReadCopy {
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Copies the state files into a new directory. Waits for another process to close them, until `is_cancelled` returns true.
/// Removes copies that interrupted commands have left: they have names of players.
pub(in crate::store) fn create(source: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<ReadCopy, StoreError> {
    let root = temp_root();
    remove_abandoned(&root);
    let failed = files::io_error("create a directory in", &root);
    let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&root).map_err(failed)?;
    // Not every file system locks directories: there, nothing is removed either.
    let lock = lock_dir(dir.path()).ok();
    let copy = ReadCopy { dir, _lock: lock };
    let copied = copy_into(source, copy.path(), WithLog::No, is_cancelled);
    copied.map_err(|error| match error {
        StoreError::NoDiskSpace { dir, needed, free, .. } => {
            let advice = "free some space, or set another directory in the environment variable TMPDIR";
            StoreError::NoDiskSpace { dir, needed, free, advice }
        }
        error => error,
    })?;
    Ok(copy)
}

fn lock_dir(dir: &Path) -> io::Result<Flock<File>> {
    let locked = Flock::lock(File::open(dir)?, FlockArg::LockExclusiveNonblock);
    locked.map_err(|(_, errno)| errno.into())
}

/// What cannot be removed stays.
fn remove_abandoned(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let is_copy = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let metadata = entry.metadata().ok().filter(|it| is_copy && it.is_dir() && it.uid() == geteuid().as_raw());
        let Some(metadata) = metadata else { continue };
        // Another command has created it and not locked it yet.
        let is_new =
            metadata.modified().ok().and_then(|at| at.elapsed().ok()).is_none_or(|age| age < ABANDONED_AGE_MIN);
        if !is_new && let Ok(_lock) = lock_dir(&entry.path()) {
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether a copy also gets the log, which may be as large as the disk, and replaces the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum WithLog {
    Yes,
    No,
}

/// Copies the state files into an existing empty directory.
pub(in crate::store) fn copy_into(
    source: &Path,
    target: &Path,
    with_log: WithLog,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<(), StoreError> {
    state_files::check_is_state(source)?;
    lock::retry_unless_cancelled(is_cancelled, source, lock::LOCK_TIMEOUT, || {
        if lock::is_locked(source)? {
            return Ok(None);
        }
        if with_log == WithLog::Yes {
            files::check_times(source)?;
        }
        let Some(before) = file_stamps(source, with_log)? else { return Ok(None) };
        check_disk_space(&before, target)?;
        let is_same = copy(source, target, &before)?
            && !lock::is_locked(source)?
            && file_stamps(source, with_log)? == Some(before);
        if !is_same {
            remove_contents(target).map_err(files::io_error("remove the files in", target))?;
        }
        Ok(is_same.then_some(()))
    })?;
    // Names that are to be removed from the files are in the copy, too.
    match files::metadata_if_exists(&source.join(files::FORGETTING))?.filter(|_| with_log == WithLog::Yes) {
        Some(_) => files::create_synced(&target.join(files::FORGETTING)),
        None => Ok(()),
    }
}

/// The stamps of all state files; `None`: a file was removed in the meantime.
fn file_stamps(dir: &Path, with_log: WithLog) -> Result<Option<Vec<FileStamp>>, StoreError> {
    let mut stamps = Vec::new();
    let has_files = !checkpoint::list(dir)?.is_empty();
    let is_copied = |name: &PathBuf| match name.starts_with(files::LOG) {
        true => with_log == WithLog::Yes,
        false => !has_files || name.starts_with(checkpoint::DIR),
    };
    for name in state_files::state_files(dir)?.into_iter().filter(is_copied) {
        let Some(file) = files::metadata_if_exists(&dir.join(&name))? else { return Ok(None) };
        let stamp = [
            file.dev().cast_signed(),
            file.ino().cast_signed(),
            file.size().cast_signed(),
            file.mtime(),
            file.mtime_nsec(),
            file.ctime(),
            file.ctime_nsec(),
        ];
        stamps.push((name, stamp));
    }
    Ok(Some(stamps))
}

fn check_disk_space(stamps: &[FileStamp], target: &Path) -> Result<(), StoreError> {
    let bytes: u64 = stamps.iter().map(|(_, [_, _, size, ..])| size.cast_unsigned()).sum();
    let free = files::free_bytes(target)?;
    if free < bytes + SPARE_BYTES {
        let dir = target.parent().unwrap_or(target).to_owned();
        let advice = "free some space there";
        return Err(StoreError::NoDiskSpace { dir, needed: bytes + SPARE_BYTES, free, advice });
    }
    Ok(())
}

/// Copies the files. Returns whether all of them still existed.
fn copy(source: &Path, target: &Path, stamps: &[FileStamp]) -> Result<bool, StoreError> {
    for (name, _) in stamps {
        let (from, to) = (source.join(name), target.join(name));
        to.parent().map_or(Ok(()), files::create_dir)?;
        let mut input = match File::open(&from) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(files::io_error("open", &from))?,
        };
        let output = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(&to);
        let mut output = output.map_err(files::io_error("create", &to))?;
        // Uses copy_file_range(2), which shares the blocks where possible.
        io::copy(&mut input, &mut output).map_err(files::io_error("copy", &from))?;
    }
    Ok(true)
}

fn remove_contents(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// The directory for temporary states.
pub fn temp_root() -> PathBuf {
    match std::env::var_os("TMPDIR").filter(|path| !path.is_empty()) {
        Some(path) => path.into(),
        None if Path::new(DEFAULT_TMPDIR).is_dir() => DEFAULT_TMPDIR.into(),
        None => std::env::temp_dir(),
    }
}
