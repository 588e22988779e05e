//! The rewriting of all closed files of a log, while the daemon rotates and compresses them.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::statvfs::statvfs;

use super::file::{Pause, Rewritten, must_be_rewritten, write_copy};
use super::{ForgottenNames, RewriteError, hidden_file};
use crate::log::LogFileLock;
use crate::scan_log::error::LogError;
use crate::scan_log::reader::from_file;
use crate::scan_log::rotation::{compressed_file, rotated_file, sync_directory};

/// Interval at which a rotated file is checked for its compression, and readers for their end.
const POLL: Duration = Duration::from_millis(100);

/// Counts of one run over the closed files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewritingSummary {
    /// Files written anew.
    pub files: u64,
    /// Lines from which names were removed.
    pub lines: u64,
    /// Unreadable lines that were removed.
    pub lines_unreadable: u64,
}

/// The removal of names from one log. It remembers which files are done, so that a repetition
/// after a fault reads only the others.
#[derive(Debug)]
pub struct LogRewriting {
    log: PathBuf,
    names: ForgottenNames,
    lock: LogFileLock,
    free_bytes_min: u64,
    done: HashSet<FileId>,
}

/// The closed files of a log, oldest first. Unlike
/// [`compressed_files`](crate::scan_log::compressed_files), it also finds the files after a gap in the
/// numbers. An admin may have removed a file.
fn closed_files(log: &Path) -> Result<Vec<PathBuf>, LogError> {
    let prefix = log.file_name().unwrap_or_default().to_string_lossy().into_owned() + ".";
    let number = |name: &str| name.strip_prefix(&prefix)?.strip_suffix(".zst")?.parse::<u32>().ok();
    let dir = directory(log);
    let failed = |source| LogError::Io { path: dir.to_owned(), source };
    let mut numbers = BTreeSet::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        numbers.extend(entry.map_err(failed)?.file_name().to_str().and_then(number));
    }
    Ok(numbers.into_iter().rev().map(|number| compressed_file(log, number)).filter(|file| file.is_file()).collect())
}

fn directory(log: &Path) -> &Path {
    log.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Identifies a file and its content: a rotation changes its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileId {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    bytes: u64,
}

impl FileId {
    fn of(file: &Metadata) -> FileId {
        let modified = (file.mtime(), file.mtime_nsec());
        FileId { device: file.dev(), inode: file.ino(), modified, bytes: file.len() }
    }
}

impl LogRewriting {
    /// `free_bytes_min`: remains free on the disk. Deletes what an interrupted rewriting left.
    pub fn new(log: &Path, names: ForgottenNames, lock: LogFileLock, free_bytes_min: u64) -> LogRewriting {
        let rewriting = LogRewriting { log: log.to_owned(), names, lock, free_bytes_min, done: HashSet::new() };
        rewriting.delete_copy();
        rewriting
    }

    /// Deletes an unfinished copy of an earlier process.
    pub fn delete_leftover(log: &Path) {
        _ = fs::remove_file(hidden_file(log, ".rewriting"));
    }

    /// The active file.
    pub fn path(&self) -> &Path {
        &self.log
    }

    /// Whether the active file contains a name, so that it must be rotated first.
    pub fn active_has_name(&self, pause: Pause) -> Result<bool, RewriteError> {
        let file = match File::open(&self.log) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file.map_err(|source| LogError::Io { path: self.log.clone(), source })?,
        };
        must_be_rewritten(from_file(&self.log, file)?, &self.names, true, pause)
    }

    /// Rewrites the closed files that contain a name, oldest first; first waits until a rotated
    /// file is compressed. `pending` gets the number of files that are left.
    ///
    /// Error: a file may contain a name. If only that file cannot be read, the other files are
    /// done.
    pub fn rewrite_closed_files(
        &mut self,
        pause: Pause,
        pending: &mut dyn FnMut(u64),
    ) -> Result<RewritingSummary, RewriteError> {
        let mut summary = RewritingSummary::default();
        let mut failed = HashSet::new();
        let mut first_error = None;
        while rotated_file(&self.log).exists() {
            if !pause(POLL) {
                return Err(RewriteError::Stopped);
            }
        }
        while let Some((path, file, id)) = self.next_file(&failed, pending)? {
            let opened = file.map_err(|source| RewriteError::Read(LogError::Io { path: path.clone(), source }));
            match opened.and_then(|file| self.rewrite_file(&path, &file, pause)) {
                Ok(None) => _ = self.done.insert(id),
                Ok(Some(rewritten)) => {
                    summary.files += 1;
                    summary.lines += rewritten.lines;
                    summary.lines_unreadable += rewritten.damage.lines;
                }
                Err(error @ (RewriteError::Read(_) | RewriteError::NothingReadable { .. })) => {
                    failed.insert(id);
                    first_error.get_or_insert(error);
                }
                Err(error) => {
                    self.delete_copy();
                    return Err(error);
                }
            }
            self.delete_copy();
        }
        first_error.map_or(Ok(summary), Err)
    }

    /// Opens the next closed file that is not done.
    fn next_file(
        &self,
        failed: &HashSet<FileId>,
        pending: &mut dyn FnMut(u64),
    ) -> Result<Option<(PathBuf, io::Result<File>, FileId)>, RewriteError> {
        let names = self.lock.lock_names();
        let mut next = None;
        let mut left = 0;
        for path in closed_files(&self.log)? {
            let io_error = |source| LogError::Io { path: path.clone(), source };
            let id = FileId::of(&fs::metadata(&path).map_err(io_error)?);
            if self.done.contains(&id) {
                continue;
            }
            left += 1;
            if next.is_none() && !failed.contains(&id) {
                next = Some((path.clone(), File::open(&path), id));
            }
        }
        drop(names);
        pending(left);
        Ok(next)
    }

    /// `None`: the file contains no name.
    fn rewrite_file(&mut self, path: &Path, file: &File, pause: Pause) -> Result<Option<Rewritten>, RewriteError> {
        let failed = |source| LogError::Io { path: path.to_owned(), source };
        let lines = || {
            let mut file = file.try_clone().map_err(failed)?;
            file.rewind().map_err(failed)?;
            from_file(path, file)
        };
        if !must_be_rewritten(lines()?, &self.names, false, pause)? {
            return Ok(None);
        }
        let metadata = file.metadata().map_err(failed)?;
        self.check_free_space(metadata.len())?;
        let copy = self.copy_path();
        let rewritten = write_copy(lines()?, file, &copy, &self.names, pause)?;
        for range in &rewritten.damage.ranges {
            tracing::warn!("{range}: removed from the scan log, because it may contain a forgotten name");
        }
        if rewritten.damage.range_count > rewritten.damage.ranges.len() as u64 {
            let (ranges, lines, path) = (rewritten.damage.range_count, rewritten.damage.lines, path.display());
            tracing::warn!(%path, ranges, lines, "not all unreadable lines that were removed are listed above");
        }
        self.replace(&metadata, &copy, pause)?;
        Ok(Some(rewritten))
    }

    /// Renames the copy over the original, which a rotation may have renamed meanwhile. If the
    /// original was deleted by `scan_log.keep_files`, nothing replaces it.
    fn replace(&mut self, original: &Metadata, copy: &Path, pause: Pause) -> Result<(), RewriteError> {
        let names = loop {
            if let Some(names) = self.lock.lock_for_replacing() {
                break names;
            }
            if !pause(POLL) {
                return Err(RewriteError::Stopped);
            }
        };
        let is_original = |path: &PathBuf| {
            fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (original.dev(), original.ino()))
        };
        let Some(path) = closed_files(&self.log)?.into_iter().find(is_original) else { return Ok(()) };
        let failed = |source| RewriteError::Write { path: path.clone(), source };
        let id = FileId::of(&fs::metadata(copy).map_err(failed)?);
        fs::rename(copy, &path).map_err(failed)?;
        drop(names);
        sync_directory(&path).map_err(failed)?;
        self.done.insert(id);
        Ok(())
    }

    /// The copy is about as large as the original.
    fn check_free_space(&self, bytes: u64) -> Result<(), RewriteError> {
        let dir = directory(&self.log);
        // A file system that reports nothing counts as free: writing then fails with the reason.
        let Ok(stat) = statvfs(dir) else { return Ok(()) };
        let free = stat.blocks_available() * stat.fragment_size();
        match free < self.free_bytes_min.saturating_add(bytes) {
            true => Err(RewriteError::DiskFull { path: dir.to_owned(), free, needed: bytes }),
            false => Ok(()),
        }
    }

    fn copy_path(&self) -> PathBuf {
        hidden_file(&self.log, ".rewriting")
    }

    fn delete_copy(&self) {
        LogRewriting::delete_leftover(&self.log);
    }
}
