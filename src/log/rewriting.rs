//! Replaces names in a log, after a player was forgotten.
//!
//! A segment with such a name is written again beside the original, with the same batches, and renamed
//! over it. So a crash leaves one of the two. The newest segment is not changed: a request to
//! forget ends it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::batch::{BATCH_HEADER_BYTES, BatchHeader, SegmentHeader};
use super::encode::Encoder;
use super::error::LogError;
use super::file_lock::LogFileLock;
use super::segment::{LogReader, SegmentFile, segments};
use super::{LogEvent, free_bytes, sync_dir};

const COPY_EXTENSION: &str = "rewriting";

/// Replaces the names of an event. Returns whether there were any.
pub type ReplaceNames<'a> = &'a dyn Fn(&mut LogEvent) -> bool;

/// Why a name may remain in the log.
#[derive(Debug, thiserror::Error)]
pub enum SegmentRewriteError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("{} has {free} bytes free; a copy of a segment of the log takes {needed}", path.display())]
    DiskFull { path: PathBuf, free: u64, needed: u64 },
    /// The caller's pause function ended the work.
    #[error("stopped")]
    Stopped,
}

/// The removal of names from one log. It remembers which segments are done, so that a repetition after a
/// fault reads only the others.
#[derive(Debug)]
pub struct SegmentRewriting {
    dir: PathBuf,
    lock: LogFileLock,
    /// Stays free on the disk, bytes.
    free_bytes_min: u64,
    done: BTreeSet<u64>,
}

impl SegmentRewriting {
    pub fn new(dir: &Path, lock: LogFileLock, free_bytes_min: u64) -> SegmentRewriting {
        SegmentRewriting { dir: dir.to_owned(), lock, free_bytes_min, done: BTreeSet::new() }
    }

    /// Rewrites the segments that contain a name, oldest first. `pause` is called after each batch; it
    /// returns false to end the work. `pending` gets the number of segments that are left. Returns how
    /// many were written again. If a segment cannot be read, the others are done.
    pub fn run(
        &mut self,
        replace: ReplaceNames,
        pause: &mut dyn FnMut() -> bool,
        pending: &mut dyn FnMut(u64),
    ) -> Result<u64, SegmentRewriteError> {
        self.remove_copies()?;
        let files = segments(&self.dir)?;
        let (mut rewritten, mut failed) = (0, None);
        for (n, pair) in files.windows(2).enumerate() {
            let file = &pair[0];
            if self.done.contains(&file.first_seq) {
                continue;
            }
            pending((files.len() - 1 - n) as u64);
            match self.rewrite(pair, replace, pause) {
                Ok(was_rewritten) => {
                    rewritten += u64::from(was_rewritten);
                    self.done.insert(file.first_seq);
                }
                // Retention has removed it.
                Err(SegmentRewriteError::Log(_)) if !file.path.exists() => {}
                Err(SegmentRewriteError::Log(error)) => failed = Some(error),
                Err(error) => return Err(error),
            }
        }
        failed.map_or(Ok(rewritten), |error| Err(error.into()))
    }

    /// Removes what an earlier process left.
    fn remove_copies(&self) -> Result<(), LogError> {
        for entry in fs::read_dir(&self.dir).map_err(LogError::io("read", &self.dir))? {
            let path = entry.map_err(LogError::io("read", &self.dir))?.path();
            if path.extension().is_some_and(|it| it == COPY_EXTENSION) {
                fs::remove_file(&path).map_err(LogError::io("remove", &path))?;
            }
        }
        Ok(())
    }

    fn rewrite(
        &self,
        with_next: &[SegmentFile],
        replace: ReplaceNames,
        pause: &mut dyn FnMut() -> bool,
    ) -> Result<bool, SegmentRewriteError> {
        let path = &with_next[0].path;
        let mut has_name = false;
        let mut find = |mut event| has_name |= replace(&mut event);
        each_batch(with_next, pause, |reader| Ok(reader.read_batch(&mut find)?.is_some()))?;
        if !has_name {
            return Ok(false);
        }
        let metadata = fs::metadata(path).map_err(LogError::io("read", path))?;
        self.check_space(metadata.len())?;
        let copy = path.with_extension(COPY_EXTENSION);
        self.write_copy(with_next, &copy, replace, pause)?;
        // A reader of the log has some segments open and will open others.
        let lock = loop {
            match self.lock.lock_for_replacing() {
                Some(lock) => break lock,
                None if pause() => {}
                None => return Err(SegmentRewriteError::Stopped),
            }
        };
        let is_same = fs::metadata(path).is_ok_and(|now| now.ino() == metadata.ino());
        let replaced = if is_same { fs::rename(&copy, path) } else { fs::remove_file(&copy) };
        drop(lock);
        replaced.map_err(LogError::io("replace", path))?;
        sync_dir(&self.dir)?;
        Ok(is_same)
    }

    fn check_space(&self, bytes: u64) -> Result<(), SegmentRewriteError> {
        let free = free_bytes(&self.dir)?;
        // A placeholder may be longer than a name.
        let needed = 2 * bytes + self.free_bytes_min;
        match free < needed {
            true => Err(SegmentRewriteError::DiskFull { path: self.dir.clone(), free, needed }),
            false => Ok(()),
        }
    }

    fn write_copy(
        &self,
        with_next: &[SegmentFile],
        copy: &Path,
        replace: ReplaceNames,
        pause: &mut dyn FnMut() -> bool,
    ) -> Result<(), SegmentRewriteError> {
        let path = &with_next[0].path;
        let failed = || LogError::io("write", copy);
        let header = fs::read(path).map_err(LogError::io("read", path))?;
        let header = SegmentHeader::decode(&header).ok_or_else(|| LogError::Header { path: path.clone() })?;
        let mut out = BufWriter::new(File::create(copy).map_err(failed())?);
        let permissions = fs::metadata(path).map_err(LogError::io("read", path))?.permissions();
        fs::set_permissions(copy, permissions).and_then(|()| out.write_all(&header.encode())).map_err(failed())?;
        let mut encoder = Encoder::default();
        let mut last_ms = 0;
        each_batch(with_next, pause, |reader| {
            let mut batch = vec![0; BATCH_HEADER_BYTES];
            let mut events = 0;
            let read = reader.read_batch(|mut event| {
                replace(&mut event);
                encoder.encode(&event, &mut batch);
                events += 1;
            })?;
            let Some(seq) = read else { return Ok(false) };
            last_ms = reader.last_ms();
            BatchHeader { seq, last_ms, events }.seal(header.id, &mut batch);
            out.write_all(&batch).map_err(failed())?;
            Ok(true)
        })?;
        let mut end = [0; BATCH_HEADER_BYTES];
        BatchHeader { seq: with_next[1].first_seq, last_ms, events: 0 }.seal(header.id, &mut end);
        out.write_all(&end).map_err(failed())?;
        let file = out.into_inner().map_err(|error| failed()(error.into_error()))?;
        Ok(file.sync_all().map_err(failed())?)
    }
}

/// Reads the first of two segments.
fn each_batch(
    with_next: &[SegmentFile],
    pause: &mut dyn FnMut() -> bool,
    mut read: impl FnMut(&mut LogReader) -> Result<bool, LogError>,
) -> Result<(), SegmentRewriteError> {
    let mut reader = LogReader::of(with_next.to_vec());
    while reader.next_seq().is_none_or(|next| next < with_next[1].first_seq) {
        if !pause() {
            return Err(SegmentRewriteError::Stopped);
        }
        if !read(&mut reader)? {
            break;
        }
    }
    Ok(())
}
