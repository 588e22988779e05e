//! The redo file: makes a commit atomic that is too large for one sled batch.
//!
//! Sled keeps every old version of a page, some 4 kB a record, for the duration of a batch
//! and longer: 800,000 records in batches of 4,096 took 2.8 GB. So the records of a large
//! commit are written one by one. A redo file next to the database makes the commit atomic.
//! It holds the whole commit, is synced before the first record is written, and is removed
//! after the last record is flushed. A crash in between leaves the file, and the next start
//! applies all of it again. Values are absolute, so applying the file again is idempotent.
//! An incomplete file belongs to a commit of which nothing was written.
//!
//! Layout: `magic, version, (key len u32, key, value len u32 or MAX for a removal, value)*,
//! crc32`, little-endian. The version is that of the values' layout (`layout::VERSION`).

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::error::StoreError;
use super::layout::VERSION;
use super::tree::RecordChange;
use crate::store::dir::files;

const MAGIC: &[u8; 7] = b"clqdred";
/// The version byte in files of layout 3.
const VERSION_3: u8 = b'o';
/// Bytes of magic and version.
const HEADER_BYTES: u64 = 8;
const DELETED_LEN: u32 = u32::MAX;

pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join("redo")
}

/// Writes a redo file.
pub(super) struct Writer<'d> {
    dir: &'d Path,
    out: ChecksumWriter<BufWriter<File>>,
}

impl Writer<'_> {
    pub(super) fn create(dir: &Path) -> Result<Writer<'_>, StoreError> {
        let file = File::create(path(dir)).map_err(files::io_error("create", &path(dir)))?;
        let inner = BufWriter::with_capacity(1 << 20, file);
        let mut writer = Writer { dir, out: ChecksumWriter { inner, crc: crc32fast::Hasher::new() } };
        let header = [&MAGIC[..], &[VERSION]].concat();
        writer.out.write_all(&header).map_err(|e| writer.write_error(e))?;
        Ok(writer)
    }

    pub(super) fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        self.write_change(key, value).map_err(|e| self.write_error(e))
    }

    fn write_change(&mut self, key: &[u8], value: Option<&[u8]>) -> std::io::Result<()> {
        self.out.write_all(&(key.len() as u32).to_le_bytes())?;
        self.out.write_all(key)?;
        match value {
            Some(value) => {
                self.out.write_all(&(value.len() as u32).to_le_bytes())?;
                self.out.write_all(value)
            }
            None => self.out.write_all(&DELETED_LEN.to_le_bytes()),
        }
    }

    fn write_error(&self, source: std::io::Error) -> StoreError {
        files::io_error("write", &path(self.dir))(source)
    }

    /// Waits until the file is on disk. From then on the commit will be applied.
    pub(super) fn finish(self) -> Result<(), StoreError> {
        let path = path(self.dir);
        let crc = self.out.crc.finalize();
        let mut out = self.out.inner;
        let written = out.write_all(&crc.to_le_bytes()).and_then(|()| out.into_inner().map_err(|e| e.into_error()));
        let file = written.map_err(files::io_error("write", &path))?;
        file.sync_all().map_err(files::io_error("sync", &path))?;
        files::sync_dir(self.dir)
    }
}

/// Removes the file after the commit is applied.
pub(super) fn remove(dir: &Path) -> Result<(), StoreError> {
    let path = path(dir);
    fs::remove_file(&path).map_err(files::io_error("remove", &path))?;
    files::sync_dir(dir)
}

/// The changes of a complete redo file, and the version of their layout. `None`: there is
/// no file, or it is incomplete and has been removed.
pub(super) fn read(dir: &Path) -> Result<Option<(u8, Changes)>, StoreError> {
    let path = path(dir);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(files::io_error("open", &path)(error)),
    };
    match read_header(file).map_err(files::io_error("read", &path))? {
        Some((version, input)) => Ok(Some((version, Changes { input, path }))),
        None => {
            fs::remove_file(&path).map_err(files::io_error("remove", &path))?;
            Ok(None)
        }
    }
}

/// The version, and the bytes of the changes; `None`: the file is incomplete.
fn read_header(mut file: File) -> std::io::Result<Option<(u8, std::io::Take<BufReader<File>>)>> {
    let len = file.metadata()?.len();
    if !has_valid_checksum(&file, len)? {
        return Ok(None);
    }
    file.rewind()?;
    let mut input = BufReader::with_capacity(1 << 20, file);
    let mut head = [0; HEADER_BYTES as usize];
    input.read_exact(&mut head)?;
    let version = match head[MAGIC.len()] {
        VERSION_3 => 3,
        version => version,
    };
    Ok(Some((version, input.take(len - HEADER_BYTES - 4))))
}

fn has_valid_checksum(file: &File, len: u64) -> std::io::Result<bool> {
    let Some(body) = len.checked_sub(4).filter(|body| *body >= HEADER_BYTES) else { return Ok(false) };
    let mut input = BufReader::with_capacity(1 << 20, file);
    let mut crc = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    let (mut remaining, mut magic) = (body, true);
    while remaining > 0 {
        let n = remaining.min(buffer.len() as u64) as usize;
        input.read_exact(&mut buffer[..n])?;
        if remaining == body {
            magic = buffer.starts_with(MAGIC);
        }
        crc.update(&buffer[..n]);
        remaining -= n as u64;
    }
    let mut expected = [0; 4];
    input.read_exact(&mut expected)?;
    Ok(magic && crc.finalize() == u32::from_le_bytes(expected))
}

/// Reads the changes one by one, in the order in which they were written.
pub(super) struct Changes {
    input: std::io::Take<BufReader<File>>,
    path: PathBuf,
}

impl Changes {
    fn read_change(&mut self) -> std::io::Result<Option<RecordChange>> {
        if self.input.limit() == 0 {
            return Ok(None);
        }
        let key_len = self.number()?;
        let key = self.bytes(key_len)?;
        let value = match self.number()? {
            DELETED_LEN => None,
            len => Some(self.bytes(len)?),
        };
        Ok(Some((key, value)))
    }

    fn number(&mut self) -> std::io::Result<u32> {
        let mut bytes = [0; 4];
        self.input.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn bytes(&mut self, len: u32) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; len as usize];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Iterator for Changes {
    type Item = Result<RecordChange, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let change = self.read_change().map_err(files::io_error("read", &self.path));
        change.transpose()
    }
}

/// Writes bytes through and computes their checksum.
struct ChecksumWriter<W> {
    inner: W,
    crc: crc32fast::Hasher,
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.crc.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes() -> Vec<RecordChange> {
        let mut changes: Vec<RecordChange> =
            (0..5_000_u32).map(|n| (n.to_be_bytes().to_vec(), Some(vec![7; n as usize % 90]))).collect();
        changes[17].1 = None;
        changes
    }

    fn write(dir: &Path) {
        let mut writer = Writer::create(dir).unwrap();
        changes().iter().for_each(|(key, value)| writer.put(key, value.as_deref()).unwrap());
        writer.finish().unwrap();
    }

    #[test]
    fn redo_file_round_trips() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        write(dir.path());
        let read_back: Vec<RecordChange> = read(dir.path()).unwrap().unwrap().1.map(Result::unwrap).collect();
        assert_eq!(read_back, changes());
        remove(dir.path()).unwrap();
        assert!(read(dir.path()).unwrap().is_none());
    }

    #[test]
    fn truncated_or_corrupt_redo_file_is_discarded() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path());
        let whole = fs::read(path(dir.path())).unwrap();
        let mut corrupt = whole.clone();
        corrupt[whole.len() / 2] ^= 1;
        for bytes in [&whole[..0], &whole[..3], &whole[..11], &whole[..whole.len() - 1], &corrupt] {
            fs::write(path(dir.path()), bytes).unwrap();
            assert!(read(dir.path()).unwrap().is_none());
            assert!(!path(dir.path()).exists());
        }
    }
}
