//! The bytes of a checkpoint file: changes of records in order of key, in compressed blocks with
//! checksums. A file is written once and never changed. All numbers are little-endian.
//!
//! | header | bytes | block | bytes |
//! |---|---|---|---|
//! | `clqd-chk` | 8 | length of the compressed changes; 0: the end | 4 |
//! | version of the format | 4 | length of the changes | 4 |
//! | kind: 0 delta, 1 base | 1 | CRC32C of the file's number, the block's number and all else | 4 |
//! | layout of the records | 1 | changes, compressed with zstd | |
//! | number of the file | 8 | | |
//! | CRC32C of the above | 4 | | |
//!
//! A change is `shared, suffix length, suffix, value`: the key without the bytes that it shares with the
//! key before it in the block. `value` is 0 for a deleted record, else its length + 1 and its bytes. Block
//! 0 has the prefixes whose records are deleted instead. In the block of the end, the length of the changes
//! is the number of blocks before it.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::model::varint::{Cursor, put_u64};
use crate::store::dir::files::io_error;
use crate::store::error::StoreError;
use crate::store::keys;
use crate::store::layout::VERSION;
use crate::store::migrate;
use crate::store::tree::RecordChange;

const MAGIC: &[u8; 8] = b"clqd-chk";
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 26;
const BLOCK_HEADER_BYTES: usize = 12;

/// Changes of a block, bytes, except that a block has at least one change.
const BLOCK_BYTES: usize = 64 << 10;

/// Largest block that a reader accepts: a damaged length allocates no more.
const BLOCK_BYTES_MAX: usize = 256 << 20;

/// The fastest level: a file is written every few minutes and read at a start.
const ZSTD_LEVEL: i32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Kind {
    /// The changes since the file before it.
    Delta,
    /// All records.
    Base,
}

/// Writes a file under a temporary name.
#[derive(Debug)]
pub(in crate::store) struct Writer {
    path: PathBuf,
    out: BufWriter<File>,
    number: u64,
    block: Vec<u8>,
    last_key: Vec<u8>,
    blocks: u32,
    bytes: u64,
}

impl Writer {
    /// `deleted_prefixes`: the file deletes all records of itself and of earlier files whose keys begin
    /// with one of them.
    pub(in crate::store) fn create(
        path: &Path,
        kind: Kind,
        number: u64,
        deleted_prefixes: &[Vec<u8>],
    ) -> Result<Writer, StoreError> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(path);
        let file = file.map_err(io_error("create", path))?;
        let mut writer = Writer {
            path: path.to_owned(),
            out: BufWriter::with_capacity(1 << 20, file),
            number,
            block: Vec::with_capacity(BLOCK_BYTES + 4_096),
            last_key: Vec::new(),
            blocks: 0,
            bytes: 0,
        };
        writer.write(&encode_header(kind, number, VERSION))?;
        for prefix in deleted_prefixes {
            put_u64(&mut writer.block, prefix.len() as u64);
            writer.block.extend_from_slice(prefix);
        }
        writer.end_block()?;
        Ok(writer)
    }

    /// The next change, in order of key.
    pub(in crate::store) fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        let shared = key.iter().zip(&self.last_key).take_while(|(a, b)| a == b).count();
        put_u64(&mut self.block, shared as u64);
        put_u64(&mut self.block, (key.len() - shared) as u64);
        self.block.extend_from_slice(&key[shared..]);
        match value {
            Some(value) => {
                put_u64(&mut self.block, value.len() as u64 + 1);
                self.block.extend_from_slice(value);
            }
            None => self.block.push(0),
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        if self.block.len() >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    /// Completes the file and waits until it is on disk. Returns its size.
    pub(in crate::store) fn finish(mut self) -> Result<u64, StoreError> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let end = block_header(self.number, self.blocks, self.blocks, &[]);
        self.write(&end)?;
        let Writer { out, path, bytes, .. } = self;
        let file = out.into_inner().map_err(|error| io_error("write to", &path)(error.into_error()))?;
        file.sync_all().map_err(io_error("sync", &path))?;
        // It is read back from the disk. Without this, from memory.
        _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        Ok(bytes)
    }

    fn end_block(&mut self) -> Result<(), StoreError> {
        let compressed =
            zstd::bulk::compress(&self.block, ZSTD_LEVEL).map_err(io_error("compress changes for", &self.path))?;
        let header = block_header(self.number, self.blocks, len_u32(self.block.len()), &compressed);
        self.write(&header)?;
        self.write(&compressed)?;
        self.block.clear();
        self.last_key.clear();
        self.blocks += 1;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(io_error("write to", &self.path))
    }
}

/// Reads a file. Every byte is checked before it is used.
#[derive(Debug)]
pub(in crate::store) struct Reader {
    path: PathBuf,
    input: BufReader<File>,
    number: u64,
    layout: u8,
    deleted_prefixes: Vec<Vec<u8>>,
    /// Where the current block begins.
    position: u64,
    blocks: u32,
    block: Vec<u8>,
    /// How much of the block is read.
    read: usize,
    is_at_end: bool,
    key: Vec<u8>,
}

impl Reader {
    pub(in crate::store) fn open(path: &Path, kind: Kind, number: u64) -> Result<Reader, StoreError> {
        let file = File::open(path).map_err(io_error("open", path))?;
        let mut reader = Reader {
            path: path.to_owned(),
            input: BufReader::with_capacity(1 << 18, file),
            number,
            layout: VERSION,
            deleted_prefixes: Vec::new(),
            position: 0,
            blocks: 0,
            block: Vec::new(),
            read: 0,
            is_at_end: false,
            key: Vec::new(),
        };
        let header: [u8; HEADER_BYTES] = reader.read()?;
        if header[..8] != *MAGIC {
            return Err(reader.damaged());
        }
        // A newer format may have another header.
        match header[8..12] {
            _ if header[8..12] == FORMAT.to_le_bytes() => {}
            _ => return Err(StoreError::NewerCheckpoint { path: path.to_owned() }),
        }
        reader.layout = header[13];
        if header != encode_header(kind, number, reader.layout) {
            return Err(reader.damaged());
        }
        if reader.layout > VERSION {
            return Err(StoreError::NewerCheckpoint { path: path.to_owned() });
        }
        reader.position = HEADER_BYTES as u64;
        if !reader.next_block()? {
            return Err(reader.damaged());
        }
        let mut prefixes = Cursor::new(&reader.block);
        let mut found = Vec::new();
        while !prefixes.is_empty() {
            let prefix = prefixes.u64().and_then(|len| prefixes.bytes(usize::try_from(len).ok()?));
            found.push(prefix.ok_or_else(|| reader.damaged())?.to_vec());
        }
        reader.deleted_prefixes = found;
        reader.read = reader.block.len();
        Ok(reader)
    }

    /// The file deletes all records of itself and of earlier files whose keys begin with one of them.
    pub(in crate::store) fn deleted_prefixes(&self) -> &[Vec<u8>] {
        &self.deleted_prefixes
    }

    /// The prefixes, and the changes of the file that they do not delete.
    pub(in crate::store) fn into_changes(
        self,
    ) -> (Vec<Vec<u8>>, impl Iterator<Item = Result<RecordChange, StoreError>>) {
        let prefixes = self.deleted_prefixes.clone();
        let deleted = prefixes.clone();
        (prefixes, self.filter(move |change| !matches!(change, Ok((key, _)) if keys::has_prefix(key, &deleted))))
    }

    /// The next change, in order of key, with the value in the current layout. `None`: the file ends here,
    /// as it should.
    pub(in crate::store) fn next_change(&mut self) -> Result<Option<RecordChange>, StoreError> {
        if self.read == self.block.len() {
            self.is_at_end = self.is_at_end || !self.next_block()?;
            if self.is_at_end {
                return Ok(None);
            }
        }
        let parsed = parse_change(&self.block[self.read..], &mut self.key);
        let Some((value, len)) = parsed else { return Err(self.damaged()) };
        self.read += len;
        let value = match value {
            Some(value) if self.layout != VERSION => Some(migrate::convert(self.layout, &self.key, value)?),
            value => value,
        };
        Ok(Some((self.key.clone(), value)))
    }

    /// Checks the rest of the file without decompressing it, at the speed of the disk.
    pub(in crate::store) fn check(mut self) -> Result<(), StoreError> {
        while self.read_block()?.is_some() {}
        Ok(())
    }

    /// The next block. `false`: it is the end, and nothing follows it.
    fn next_block(&mut self) -> Result<bool, StoreError> {
        let Some((compressed, block_len)) = self.read_block()? else { return Ok(false) };
        let block = zstd::bulk::decompress(&compressed, block_len);
        let block = block.ok().filter(|block| block.len() == block_len).ok_or_else(|| self.damaged())?;
        self.block = block;
        self.read = 0;
        self.key.clear();
        Ok(true)
    }

    /// The compressed changes of the next block, and the length of the changes.
    fn read_block(&mut self) -> Result<Option<(Vec<u8>, usize)>, StoreError> {
        let header: [u8; BLOCK_HEADER_BYTES] = self.read()?;
        let len = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes")) as usize;
        let (compressed_len, block_len) = (len(0), len(4));
        if compressed_len.max(block_len) > BLOCK_BYTES_MAX {
            return Err(self.damaged());
        }
        let mut compressed = vec![0; compressed_len];
        self.read_exact(&mut compressed)?;
        if header != block_header(self.number, self.blocks, len_u32(block_len), &compressed) {
            return Err(self.damaged());
        }
        if compressed_len == 0 {
            let is_end = block_len == self.blocks as usize && self.has_no_more_bytes()?;
            return if is_end { Ok(None) } else { Err(self.damaged()) };
        }
        self.position += (BLOCK_HEADER_BYTES + compressed_len) as u64;
        self.blocks += 1;
        Ok(Some((compressed, block_len)))
    }

    fn has_no_more_bytes(&mut self) -> Result<bool, StoreError> {
        let read = self.input.read(&mut [0]).map_err(io_error("read", &self.path))?;
        Ok(read == 0)
    }

    fn read<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), StoreError> {
        match self.input.read_exact(bytes) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.damaged()),
            read => read.map_err(io_error("read", &self.path)),
        }
    }

    fn damaged(&self) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), at: format!(" at byte {}", self.position) }
    }
}

impl Iterator for Reader {
    type Item = Result<RecordChange, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_change().transpose()
    }
}

/// Reads a change and changes the key before it to its key. Returns its value and its length.
fn parse_change(bytes: &[u8], key: &mut Vec<u8>) -> Option<(Option<Vec<u8>>, usize)> {
    let mut cursor = Cursor::new(bytes);
    let shared = usize::try_from(cursor.u64()?).ok().filter(|&shared| shared <= key.len())?;
    let suffix_len = usize::try_from(cursor.u64()?).ok()?;
    let suffix = cursor.bytes(suffix_len)?;
    let value = match cursor.u64()? {
        0 => None,
        len => Some(cursor.bytes(usize::try_from(len - 1).ok()?)?.to_vec()),
    };
    key.truncate(shared);
    key.extend_from_slice(suffix);
    Some((value, bytes.len() - cursor.remaining()))
}

fn encode_header(kind: Kind, number: u64, layout: u8) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[12] = u8::from(kind == Kind::Base);
    bytes[13] = layout;
    bytes[14..22].copy_from_slice(&number.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..22]);
    bytes[22..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn len_u32(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a block is smaller than BLOCK_BYTES_MAX")
}

fn block_header(number: u64, block: u32, block_len: u32, compressed: &[u8]) -> [u8; BLOCK_HEADER_BYTES] {
    let mut bytes = [0; BLOCK_HEADER_BYTES];
    bytes[..4].copy_from_slice(&len_u32(compressed.len()).to_le_bytes());
    bytes[4..8].copy_from_slice(&block_len.to_le_bytes());
    let crc = crc32c::crc32c(&number.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &block.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &bytes[..8]);
    let crc = crc32c::crc32c_append(crc, compressed);
    bytes[8..].copy_from_slice(&crc.to_le_bytes());
    bytes
}
