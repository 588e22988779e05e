//! A copy of the log that another process writes: the same segments with the same batches, byte by byte. So
//! everything that reads a log reads the copy.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::Flock;

use super::LogEvent;
use super::batch::SegmentHeader;
use super::decode::{DecodeError, Decoder};
use super::error::LogError;
use super::segment::Cut;
use super::sync_dir;
use super::writer::{
    BatchBuilder, LogEnd, LogWriter, SealedBatch, Segment, WriterSettings, begin_segment, new_header, reopen_segment,
};

/// Why a batch cannot be the next one of a copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("batch {found} follows batch {last}: the batches between them are missing")]
    Gap { last: u64, found: u64 },
    #[error("batch {seq} belongs to a segment whose first batches are missing")]
    Segment { seq: u64 },
    #[error("batch {seq} cannot be decoded")]
    Decode { seq: u64, source: DecodeError },
}

/// Decodes the batches of a copy, one after the other.
#[derive(Debug)]
pub struct CopyDecoder {
    segment: Option<SegmentHeader>,
    decoder: Decoder,
    next_seq: u64,
}

impl CopyDecoder {
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Whether the copy has no segment, so that it needs all batches of that of the next batch.
    pub fn needs_segment(&self) -> bool {
        self.segment.is_none()
    }

    /// Decodes the next batch. After an error, the decoder cannot be used.
    pub fn decode(&mut self, batch: &SealedBatch, each: impl FnMut(LogEvent)) -> Result<(), CopyError> {
        let seq = batch.seq();
        // A copy without a segment begins with that of the next batch.
        let is_first = self.segment.is_none() && (batch.segment.first_seq..=self.next_seq).contains(&seq);
        if seq != self.next_seq && !is_first {
            return Err(CopyError::Gap { last: self.next_seq - 1, found: seq });
        }
        if self.segment != Some(batch.segment) {
            if batch.segment.first_seq != seq {
                return Err(CopyError::Segment { seq });
            }
            (self.segment, self.decoder) = (Some(batch.segment), Decoder::default());
        }
        self.decoder.decode(batch.body(), each).map_err(|source| CopyError::Decode { seq, source })?;
        self.next_seq = seq + 1;
        Ok(())
    }
}

/// Writes a copy. Only one process can.
#[derive(Debug)]
pub struct LogCopy {
    dir: PathBuf,
    lock: Flock<File>,
    /// The newest segment; `None`: there is none.
    segment: Option<Segment>,
    /// Whether that one has no batch. Then its first batch may come in another segment of the same name.
    is_empty: bool,
    /// The segment before, if nothing announces the newest one yet.
    unended: Option<PathBuf>,
    next_seq: u64,
    last_ms: i64,
}

impl LogCopy {
    /// Opens a log to continue it as a copy; creates the directory if it is missing. A log without a segment
    /// begins with batch `first_seq`. Returns the cut that a crash left at its end, which is removed.
    pub fn open(dir: &Path, first_seq: u64) -> Result<(LogCopy, CopyDecoder, Option<Cut>), LogError> {
        let LogEnd { lock, reader, next_seq, cut, last, before } = LogEnd::open(dir, first_seq)?;
        let segment = last.as_ref().map(|last| reopen_segment(&last.path)).transpose()?;
        let is_empty = last.as_ref().is_some_and(|last| last.first_seq == next_seq);
        let before = before.filter(|_| last.is_some_and(|last| !reader.is_announced(last.first_seq)));
        let last_ms = reader.last_ms();
        let of_segment = segment.as_ref().map(|segment| segment.header);
        let decoder = CopyDecoder { segment: of_segment, decoder: reader.into_decoder(), next_seq };
        let unended = before.filter(|_| is_empty).map(|before| before.path);
        Ok((LogCopy { dir: dir.to_owned(), lock, segment, is_empty, unended, next_seq, last_ms }, decoder, cut))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes the next batch. When it returns, the batch is on disk. Error: the process must end.
    pub fn write(&mut self, batch: &SealedBatch) -> Result<(), LogError> {
        assert!(batch.seq() == self.next_seq || self.segment.is_none(), "the decoder has seen the batch before");
        if self.segment.as_ref().is_none_or(|segment| segment.header != batch.segment) {
            self.begin(batch.segment)?;
        }
        self.end_before(batch.segment.first_seq)?;
        self.segment.as_mut().expect("it was begun").append(batch.bytes())?;
        (self.is_empty, self.next_seq, self.last_ms) = (false, batch.seq() + 1, batch.last_ms());
        Ok(())
    }

    fn begin(&mut self, header: SegmentHeader) -> Result<(), LogError> {
        self.segment = Some(match self.segment.take() {
            // Its name may be announced already, so there is never no file.
            Some(empty) if self.is_empty => replace_segment(&self.dir, &empty.path, header)?,
            last => {
                let next = begin_segment(&self.dir, header)?;
                last.map_or(Ok(()), |mut last| last.end(header.first_seq, self.last_ms))?;
                next
            }
        });
        self.is_empty = true;
        Ok(())
    }

    /// Announces the newest segment, if a crash has prevented that.
    fn end_before(&mut self, first_seq: u64) -> Result<(), LogError> {
        let Some(before) = self.unended.take() else { return Ok(()) };
        reopen_segment(&before)?.end(first_seq, self.last_ms)
    }

    /// Goes on as the writer of the log, in a new segment.
    pub fn into_writer(
        mut self,
        settings: &WriterSettings,
        now_ms: i64,
    ) -> Result<(LogWriter, BatchBuilder), LogError> {
        if !self.is_empty || self.segment.is_none() {
            self.begin(new_header(self.next_seq, now_ms))?;
        }
        self.end_before(self.next_seq)?;
        let builder = BatchBuilder::new(settings, self.next_seq, self.last_ms, now_ms);
        let segment = self.segment.expect("it was begun");
        Ok((LogWriter::of(self.dir, self.lock, segment), builder))
    }
}

/// Puts a new segment in the place of one without a batch.
fn replace_segment(dir: &Path, path: &Path, header: SegmentHeader) -> Result<Segment, LogError> {
    let new = path.with_extension("new");
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(&new)?;
        file.write_all(&header.encode())?;
        file.sync_all()
    };
    write().map_err(LogError::io("write", &new))?;
    fs::rename(&new, path).map_err(LogError::io("rename", &new))?;
    sync_dir(dir)?;
    reopen_segment(path)
}
