//! A private copy of a state directory, for commands that only read.
//!
//! Sled opens its files for writing, repairs them and replaces its snapshot, and so
//! do we with the redo file. So a reader opens a copy, and the directory stays as it
//! is, whoever reads. The copy is a reflink where the file system can make one.
//!
//! No lock is held meanwhile: a daemon may start at any moment. The copy counts only
//! if nobody had the directory open before and after, and every file is the same
//! by size, number and times; else it is made again.

use std::fs::{
    File, OpenOptions, {self},
};
use std::io::{
    ErrorKind, {self},
};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use tempfile::TempDir;

use super::{files, lock};
use crate::store::StoreError;

/// Where copies are made unless `TMPDIR` says so: it is on disk, `/tmp` may be memory.
const DEFAULT_TMPDIR: &str = "/var/tmp";

/// Left free beside a copy, bytes: opening writes a little.
const SPARE_BYTES: u64 = 16 << 20;

/// What tells a file from what it was before.
type FileStamp = (PathBuf, [i64; 7]);

/// Copies the state files into a new directory, which is removed with what is
/// returned. Waits for another process to close them, until that `is_in_vain`.
pub(in crate::store) fn create(source: &Path, is_in_vain: &dyn Fn() -> bool) -> Result<TempDir, StoreError> {
    let place = temp_root();
    let failed = files::io_error("make a directory in", &place);
    let copy = tempfile::Builder::new().prefix("clqd-read-").tempdir_in(&place).map_err(failed)?;
    copy_into(source, copy.path(), is_in_vain)?;
    Ok(copy)
}

/// Copies the state files into a directory that is there and empty.
pub(in crate::store) fn copy_into(
    source: &Path,
    target: &Path,
    is_in_vain: &dyn Fn() -> bool,
) -> Result<(), StoreError> {
    files::check_is_state(source)?;
    lock::retry_unless_cancelled(is_in_vain, source, lock::LOCK_TIMEOUT, || {
        if lock::is_locked(source)? {
            return Ok(None);
        }
        let Some(before) = file_stamps(source)? else { return Ok(None) };
        check_disk_space(&before, target)?;
        let is_same =
            copy(source, target, &before)? && !lock::is_locked(source)? && file_stamps(source)? == Some(before);
        if !is_same {
            remove_contents(target).map_err(files::io_error("empty", target))?;
        }
        Ok(is_same.then_some(()))
    })
}

/// All state files; `None`: one was removed meanwhile.
fn file_stamps(dir: &Path) -> Result<Option<Vec<FileStamp>>, StoreError> {
    let mut seen = Vec::new();
    for name in files::state_files(dir)? {
        let Some(file) = files::metadata_if_exists(&dir.join(&name))? else { return Ok(None) };
        let of_file = [
            file.dev() as i64,
            file.ino() as i64,
            file.size() as i64,
            file.mtime(),
            file.mtime_nsec(),
            file.ctime(),
            file.ctime_nsec(),
        ];
        seen.push((name, of_file));
    }
    Ok(Some(seen))
}

fn check_disk_space(seen: &[FileStamp], target: &Path) -> Result<(), StoreError> {
    let bytes: u64 = seen.iter().map(|(_, [_, _, size, ..])| *size as u64).sum();
    let room = statvfs(target).map_err(|errno| files::io_error("read the free space of", target)(errno.into()))?;
    let free = room.blocks_available() * room.fragment_size();
    if free < bytes + SPARE_BYTES {
        let place = target.parent().unwrap_or(target).to_owned();
        return Err(StoreError::NoDiskSpace { place, needed: bytes + SPARE_BYTES, free });
    }
    Ok(())
}

/// Whether all of them were still there.
fn copy(source: &Path, target: &Path, seen: &[FileStamp]) -> Result<bool, StoreError> {
    for name in files::directories(source)? {
        let dir = target.join(name);
        fs::DirBuilder::new().recursive(true).mode(0o750).create(&dir).map_err(files::io_error("make", &dir))?;
    }
    for (name, _) in seen {
        let (from, to) = (source.join(name), target.join(name));
        let mut input = match File::open(&from) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(files::io_error("open", &from))?,
        };
        let output = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(&to);
        let mut output = output.map_err(files::io_error("write", &to))?;
        // With copy_file_range(2), which shares the blocks where it can.
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

fn temp_root() -> PathBuf {
    match std::env::var_os("TMPDIR").filter(|place| !place.is_empty()) {
        Some(place) => place.into(),
        None if Path::new(DEFAULT_TMPDIR).is_dir() => DEFAULT_TMPDIR.into(),
        None => std::env::temp_dir(),
    }
}

/// Removes what sled has open or does not need again, so that little is left behind
/// where the process is killed.
pub(in crate::store) fn remove_unneeded_files(copy: &Path) -> Result<(), StoreError> {
    for name in files::state_files(copy)?
        .into_iter()
        .filter(|name| !name.parent().is_some_and(|dir| dir.ends_with(files::BLOBS)))
    {
        fs::remove_file(copy.join(&name)).map_err(files::io_error("remove", &copy.join(&name)))?;
    }
    Ok(())
}
