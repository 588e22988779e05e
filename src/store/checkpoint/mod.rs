//! The checkpoint files of a state: what is durable of it, besides the log.
//!
//! A checkpoint writes the changes since the one before to a *delta* (`file`), waits until it is on disk, and
//! only then changes the database, which serves reads. The first file is a *base*: it has all records. When
//! the deltas are twice as large as the base, another thread merges all of them into the next base, reads
//! it back, and removes the older files. The files `checkpoints/N.base` and `N.delta` are numbered; a base
//! has the number of the last delta in it.
//!
//! The database is never trusted: when the state is opened, it is compared with the files, record by
//! record ([`CheckpointFiles::records`]), and loaded from them if it differs.

mod file;
mod merged;
mod set_aside;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use nix::errno::Errno;

pub(super) use self::file::Reader;
use self::file::{Kind, Writer};
pub(super) use self::merged::{Record, Records};
pub use self::set_aside::open_without_unusable_deltas;
use super::dir::files::{self, io_error};
use super::error::StoreError;
use super::tree::RecordChange;

/// The directory of the files in the state directory.
pub(super) const DIR: &str = "checkpoints";

/// Suffix of a file that is being written.
const TEMPORARY: &str = ".tmp";

/// With so many deltas they are merged, however small they are.
const DELTAS_MAX: usize = 32;

/// Records between two calls of `pace`.
const RECORDS_PER_PACE: u64 = 1_024;

/// Size of the deltas with which they are merged, in sizes of the base. Before a merge the database gets all changes
/// that wait in memory, which costs more than the base.
const DELTA_BASES_MAX: u64 = 2;

/// Size of the deltas with which they are merged into a base of any size.
const MERGE_BYTES_MIN: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CheckpointFile {
    kind: Kind,
    number: u64,
    bytes: u64,
}

impl CheckpointFile {
    fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Base => "base",
            Kind::Delta => "delta",
        };
        format!("{:012}.{kind}", self.number)
    }

    fn parse(name: &str) -> Option<CheckpointFile> {
        let (number, kind) = name.split_once('.')?;
        let kind = match kind {
            "base" => Kind::Base,
            "delta" => Kind::Delta,
            _ => return None,
        };
        Some(CheckpointFile { kind, number: number.parse().ok()?, bytes: 0 })
    }
}

/// Writes all records into a new state directory. Returns the size of the file.
pub(super) fn write_copy(
    state_dir: &Path,
    number: u64,
    records: impl Iterator<Item = Result<Record, StoreError>>,
) -> Result<u64, StoreError> {
    let dir = state_dir.join(DIR);
    files::create_dir(&dir)?;
    files::sync_dir(state_dir)?;
    Ok(write_base(&dir, number, records)?.bytes)
}

/// Whether the files must be written again from the database. Shared with the threads that read them.
#[derive(Clone, Debug, Default)]
pub(super) struct FileDamage(Arc<AtomicBool>);

impl FileDamage {
    /// Notes an error of a read, if a file is damaged or lost. The database has what the files had.
    pub(super) fn note(&self, error: &StoreError) {
        if lost_file(error).is_some() && !self.0.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the next checkpoint writes all records again, because a file is damaged or missing; check the disk: {}",
                error.with_causes()
            );
        }
    }
}

/// The damaged, missing or unreadable checkpoint file that an error names.
pub(super) fn lost_file(error: &StoreError) -> Option<&Path> {
    let path = match error {
        StoreError::Damaged { path, .. } | StoreError::MissingCheckpoint { path } => path,
        StoreError::File { operation: "open" | "read", path, source, .. }
            if source.kind() == ErrorKind::NotFound || source.raw_os_error() == Some(Errno::EIO as i32) =>
        {
            path
        }
        _ => return None,
    };
    parse_path(path).map(|_| path.as_path())
}

/// A file of a directory of checkpoint files, which has its name: it is complete.
fn parse_path(path: &Path) -> Option<CheckpointFile> {
    let is_checkpoint = path.parent().is_some_and(|dir| dir.ends_with(DIR));
    path.file_name()?.to_str().filter(|_| is_checkpoint).and_then(CheckpointFile::parse)
}

/// The files, and the merge in progress.
#[derive(Debug)]
pub(super) struct CheckpointFiles {
    dir: PathBuf,
    /// A base and the deltas after it, without a gap.
    files: Vec<CheckpointFile>,
    merge: Option<Merge>,
    /// Whether the older files have something that must be removed.
    is_merge_requested: bool,
    /// The next base is perhaps much larger than the last one.
    has_merge_failed: bool,
    damage: FileDamage,
}

#[derive(Debug)]
struct Merge {
    is_cancelled: Arc<AtomicBool>,
    thread: JoinHandle<Result<CheckpointFile, StoreError>>,
}

impl CheckpointFiles {
    /// Lists the files of a state directory. It need not have any. Error: a file is missing.
    pub(super) fn open(state_dir: &Path) -> Result<CheckpointFiles, StoreError> {
        let dir = state_dir.join(DIR);
        let files = listed(&dir)?;
        CheckpointFiles::of(dir, files)
    }

    fn of(dir: PathBuf, found: Vec<CheckpointFile>) -> Result<CheckpointFiles, StoreError> {
        let mut opened = CheckpointFiles {
            dir,
            files: found,
            merge: None,
            is_merge_requested: false,
            has_merge_failed: false,
            damage: FileDamage::default(),
        };
        // What is before the newest base was merged into it.
        let base = opened.files.iter().rposition(|file| file.kind == Kind::Base);
        opened.files.drain(..base.unwrap_or(0));
        let first = opened.files.first().copied();
        match first {
            Some(CheckpointFile { kind: Kind::Delta, number, .. }) => {
                let path = opened.dir.join(format!("{:012}.base", number - 1));
                return Err(StoreError::MissingCheckpoint { path });
            }
            Some(first) => {
                for (file, expected) in opened.files.iter().zip(first.number..) {
                    if file.number != expected {
                        let missing = CheckpointFile { kind: Kind::Delta, number: expected, bytes: 0 };
                        return Err(StoreError::MissingCheckpoint { path: opened.dir.join(missing.name()) });
                    }
                }
            }
            None => {}
        }
        Ok(opened)
    }

    /// Removes what interrupted writes and merges left. Only for the process that writes the state.
    pub(super) fn remove_leftovers(&self) -> Result<(), StoreError> {
        for name in file_names(&self.dir)? {
            let Some(name) = name.to_str() else { continue };
            let is_leftover = name.ends_with(TEMPORARY)
                || CheckpointFile::parse(name).is_some() && !self.files.iter().any(|file| file.name() == name);
            if is_leftover {
                files::remove_if_exists(&self.dir.join(name))?;
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The number of the first file, the base.
    pub(super) fn base_number(&self) -> Option<u64> {
        self.files.first().map(|file| file.number)
    }

    /// The number of the last file.
    pub(super) fn last_number(&self) -> Option<u64> {
        self.files.last().map(|file| file.number)
    }

    /// The path of the file with a number; for messages.
    pub(super) fn path_of(&self, number: u64) -> PathBuf {
        self.dir.join(CheckpointFile { kind: Kind::Delta, number, bytes: 0 }.name())
    }

    /// All records, in order of key.
    pub(super) fn records(&self) -> Result<Records, StoreError> {
        records(&self.dir, &self.files)
    }

    /// The files after `number`, oldest first.
    pub(super) fn deltas_after(&self, number: u64) -> impl Iterator<Item = Result<Reader, StoreError>> {
        let files = self.files.iter().filter(move |file| file.number > number);
        files.map(|file| Reader::open(&self.dir.join(file.name()), file.kind, file.number))
    }

    /// Checks all files without reading their records.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.files
            .iter()
            .try_for_each(|file| Reader::open(&self.dir.join(file.name()), file.kind, file.number)?.check())
    }

    /// The next merge removes what older files have of deleted records.
    pub(super) fn request_merge(&mut self) {
        self.is_merge_requested = true;
    }

    /// Writes the next file and waits until it is on disk. Returns its number. Changes are in order of
    /// key. The first file is a base: its changes must be all records.
    pub(super) fn write(
        &mut self,
        deleted_prefixes: &[Vec<u8>],
        mut changes: impl Iterator<Item = RecordChange>,
    ) -> Result<u64, StoreError> {
        self.end_merge_if_finished();
        let number = self.last_number().map_or(1, |last| last + 1);
        self.write_numbered(number, deleted_prefixes, |writer| {
            changes.try_for_each(|(key, value)| writer.put(&key, value.as_deref()))
        })?;
        Ok(number)
    }

    /// Writes all records as a base with a number, the first one or that of the last file. It replaces all files. Error:
    /// there is no space for it and `reserve` bytes.
    pub(super) fn write_base(
        &mut self,
        number: u64,
        reserve: u64,
        put_all: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        if let Some(merge) = self.merge.take() {
            // Its base would be older.
            merge.is_cancelled.store(true, Ordering::Relaxed);
            self.end_merge(merge);
        }
        self.create_dir()?;
        self.check_space(with_margin(reserve))?;
        let put = |writer: &mut Writer| put_all(&mut |key, value| writer.put(key, Some(value)));
        let base = write_file(&self.dir, Kind::Base, number, &[], put)?;
        self.begin_with(base);
        self.damage = FileDamage::default();
        Ok(())
    }

    /// Whether the files must be written again from the database.
    pub(super) fn is_damaged(&self) -> bool {
        self.damage.0.load(Ordering::Relaxed)
    }

    /// For what reads the files, until they are written again.
    pub(super) fn damage(&self) -> FileDamage {
        self.damage.clone()
    }

    fn create_dir(&self) -> Result<(), StoreError> {
        if self.is_empty() {
            files::create_dir(&self.dir)?;
            files::sync_parent(&self.dir)?;
        }
        Ok(())
    }

    fn write_numbered(
        &mut self,
        number: u64,
        deleted_prefixes: &[Vec<u8>],
        put: impl FnOnce(&mut Writer) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.create_dir()?;
        let kind = if self.is_empty() { Kind::Base } else { Kind::Delta };
        let written = write_file(&self.dir, kind, number, deleted_prefixes, put)?;
        self.files.push(written);
        Ok(())
    }

    /// Whether the deltas are large, or a merge was requested.
    pub(super) fn is_merge_due(&self) -> bool {
        let Some((base, deltas)) = self.files.split_first() else { return false };
        let delta_bytes: u64 = deltas.iter().map(|file| file.bytes).sum();
        let is_due = deltas.len() >= DELTAS_MAX
            || delta_bytes >= (base.bytes * DELTA_BASES_MAX).max(MERGE_BYTES_MIN)
            || self.is_merge_requested;
        is_due && !deltas.is_empty() && self.merge.is_none()
    }

    /// Bytes that the next base is expected to have at most: one and a half times those of the last one, because most changes
    /// replace others. If a merge has failed, the bytes of all files: it cannot be larger.
    fn merge_bytes(&self) -> u64 {
        match self.has_merge_failed {
            true => self.files.iter().map(|file| file.bytes).sum(),
            false => self.files.first().map_or(0, |base| base.bytes / 2 * 3),
        }
    }

    fn check_space(&self, reserve: u64) -> Result<(), StoreError> {
        check_space(&self.dir, self.merge_bytes().saturating_add(reserve))
    }

    /// Begins to merge the files. The database must have their changes. Without space for the next base and `reserve` bytes
    /// the files stay. A merge that needs more than expected ends itself ([`merge`]).
    pub(super) fn begin_merge(&mut self, reserve: u64) {
        let reserve = with_margin(reserve);
        if let Err(error) = self.check_space(reserve) {
            return warn_not_merged(&error.with_causes());
        }
        self.is_merge_requested = false;
        let (dir, files, is_cancelled) = (self.dir.clone(), self.files.clone(), Arc::new(AtomicBool::new(false)));
        let thread_flag = is_cancelled.clone();
        let run = move || merge(&dir, &files, reserve, &thread_flag);
        let spawned = std::thread::Builder::new().name("store-merge".to_owned()).spawn(run);
        match spawned {
            Ok(thread) => self.merge = Some(Merge { is_cancelled, thread }),
            Err(error) => warn_not_merged(&error.to_string()),
        }
    }

    fn end_merge_if_finished(&mut self) {
        if let Some(merge) = self.merge.take_if(|merge| merge.thread.is_finished()) {
            self.end_merge(merge);
        }
    }

    /// Merges the files, and waits until that is done. The database must have their changes.
    pub(super) fn merge_now(&mut self, reserve: u64) {
        self.finish_merge();
        if self.files.len() > 1 {
            self.begin_merge(reserve);
            self.finish_merge();
        }
    }

    /// Waits for the merge in progress.
    pub(super) fn finish_merge(&mut self) {
        if let Some(merge) = self.merge.take() {
            self.end_merge(merge);
        }
    }

    /// Replaces the merged files. A failed merge costs disk space only: it is repeated when there is space for all of it.
    fn end_merge(&mut self, merge: Merge) {
        let base = match merge.thread.join() {
            Ok(Ok(base)) => base,
            Ok(Err(error)) if lost_file(&error).is_some() => return self.damage.note(&error),
            Ok(Err(error)) => {
                self.has_merge_failed = true;
                return warn_not_merged(&error.with_causes());
            }
            Err(_) => return warn_not_merged("its thread panicked"),
        };
        self.begin_with(base);
    }

    /// Replaces the files until a base by it.
    fn begin_with(&mut self, base: CheckpointFile) {
        self.has_merge_failed = false;
        let is_merged = |file: &CheckpointFile| file.number <= base.number;
        let merged: Vec<CheckpointFile> =
            self.files.iter().copied().filter(|file| is_merged(file) && *file.name() != *base.name()).collect();
        self.files.retain(|file| !is_merged(file));
        self.files.insert(0, base);
        for file in merged {
            if let Err(error) = files::remove_if_exists(&self.dir.join(file.name())) {
                tracing::warn!("an old checkpoint file is not removed before the next start: {}", error.with_causes());
            }
        }
    }
}

impl Drop for CheckpointFiles {
    /// Another process may write the next files.
    fn drop(&mut self) {
        if let Some(Merge { is_cancelled, thread }) = self.merge.take() {
            is_cancelled.store(true, Ordering::Relaxed);
            if let Err(_) | Ok(Err(StoreError::Damaged { .. })) = thread.join() {
                tracing::error!("the checkpoint files cannot be merged");
            }
        }
    }
}

/// All checkpoint files in a directory, in order.
fn listed(dir: &Path) -> Result<Vec<CheckpointFile>, StoreError> {
    let mut found = Vec::new();
    for name in file_names(dir)? {
        let Some(file) = name.to_str().and_then(CheckpointFile::parse) else { continue };
        let bytes = files::metadata_if_exists(&dir.join(&name))?.map_or(0, |metadata| metadata.len());
        found.push(CheckpointFile { bytes, ..file });
    }
    found.sort_by_key(|file| (file.number, file.kind == Kind::Base));
    Ok(found)
}

fn records(dir: &Path, files: &[CheckpointFile]) -> Result<Records, StoreError> {
    let readers = files.iter().map(|file| Reader::open(&dir.join(file.name()), file.kind, file.number));
    Records::new(readers.collect::<Result<_, _>>()?)
}

/// Merges files into a base, and reads it back. Stops rather than leave less than `reserve` bytes on the disk.
fn merge(
    dir: &Path,
    files: &[CheckpointFile],
    reserve: u64,
    is_cancelled: &AtomicBool,
) -> Result<CheckpointFile, StoreError> {
    let number = files.last().expect("a merge has files").number;
    let pace = || match is_cancelled.load(Ordering::Relaxed) {
        true => Err(StoreError::Cancelled { path: dir.to_owned() }),
        false => check_space(dir, reserve),
    };
    write_base(dir, number, paced(records(dir, files)?, pace))
}

/// Writing pauses while less than `reserve` is free. A base must not cause that.
fn with_margin(reserve: u64) -> u64 {
    reserve.saturating_add(reserve / 16)
}

fn check_space(dir: &Path, needed: u64) -> Result<(), StoreError> {
    let free = files::free_bytes(dir)?;
    let advice = "free some space, or lower store.disk_free_bytes_min";
    match free < needed {
        true => Err(StoreError::NoDiskSpace { dir: dir.to_owned(), needed, free, advice }),
        false => Ok(()),
    }
}

/// Records, with a call of `pace` now and then, whose error ends them.
pub(super) fn paced(
    records: impl Iterator<Item = Result<Record, StoreError>>,
    mut pace: impl FnMut() -> Result<(), StoreError>,
) -> impl Iterator<Item = Result<Record, StoreError>> {
    records.zip(1_u64..).map(move |(record, n)| match n.is_multiple_of(RECORDS_PER_PACE) {
        true => pace().and(record),
        false => record,
    })
}

/// Writes all records as a base into a directory, and reads it back.
fn write_base(
    dir: &Path,
    number: u64,
    records: impl Iterator<Item = Result<Record, StoreError>>,
) -> Result<CheckpointFile, StoreError> {
    write_file(dir, Kind::Base, number, &[], |writer| {
        for record in records {
            let (key, value) = record?;
            writer.put(&key, Some(&value))?;
        }
        Ok(())
    })
}

/// Writes a file, reads it back, and gives it its name. All of it is on disk then.
fn write_file(
    dir: &Path,
    kind: Kind,
    number: u64,
    deleted_prefixes: &[Vec<u8>],
    put: impl FnOnce(&mut Writer) -> Result<(), StoreError>,
) -> Result<CheckpointFile, StoreError> {
    let file = CheckpointFile { kind, number, bytes: 0 };
    let path = dir.join(file.name());
    let temporary = files::with_suffix(&path, TEMPORARY);
    let write = || -> Result<u64, StoreError> {
        let mut writer = Writer::create(&temporary, kind, number, deleted_prefixes)?;
        put(&mut writer)?;
        let bytes = writer.finish()?;
        let read_back = || -> Result<(), StoreError> {
            let mut reader = Reader::open(&temporary, kind, number)?;
            while reader.next_change()?.is_some() {}
            Ok(())
        };
        // One read that fails says nothing about the file.
        read_back().or_else(|_| read_back())?;
        Ok(bytes)
    };
    let bytes = write().inspect_err(|_| _ = fs::remove_file(&temporary))?;
    fs::rename(&temporary, &path).map_err(io_error("rename", &temporary))?;
    files::sync_dir(dir)?;
    Ok(CheckpointFile { bytes, ..file })
}

fn warn_not_merged(why: &str) {
    tracing::warn!("the checkpoint files were not merged, and take more space until they are: {why}");
}

fn file_names(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        entries => entries.map_err(io_error("list", dir))?,
    };
    entries.map(|entry| Ok(entry.map_err(io_error("list", dir))?.file_name().into())).collect()
}

/// The files of a state directory that belong to its checkpoints, relative to it.
pub(super) fn list(state_dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut names = file_names(&state_dir.join(DIR))?;
    names.retain(|name| {
        name.to_str().is_some_and(|name| name.ends_with(TEMPORARY) || CheckpointFile::parse(name).is_some())
    });
    Ok(names.into_iter().map(|name| Path::new(DIR).join(name)).collect())
}

#[cfg(test)]
mod tests;
