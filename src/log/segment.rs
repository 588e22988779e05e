//! Reads the segments of a log, with every damage.
//!
//! Segments are named by the sequence number of their first batch. The sequence has no holes,
//! and a segment that has a successor ends with a batch without events, so a missing segment
//! is noticed wherever it is.
//!
//! An invalid end of the newest segment with nothing valid after it is a [`Cut`]: a crash or a
//! power cut stopped the writing of a batch, whose events were never acknowledged. So is one of the
//! segment before, if the newest one is empty: then it is the batch without events that announces
//! the newest. Anything else that is not valid is an error.

use std::fmt;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::LogEvent;
use super::batch::{BODY_BYTES_MAX, BatchHeader, SEGMENT_HEADER_BYTES, SegmentHeader, VERSION};
use super::decode::Decoder;
use super::error::LogError;
use crate::model::calendar::utc;

const EXTENSION: &str = "log";

/// Segments are read as a whole.
const SEGMENT_BYTES_MAX: u64 = 2 * BODY_BYTES_MAX as u64;

/// The incomplete end of the newest segment, or of the one before an empty one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub path: PathBuf,
    /// Where it begins.
    pub position: u64,
    pub bytes: u64,
    /// Time of the last event before it, Unix ms; 0 if the log has none.
    pub last_ms: i64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cut { path, position, bytes, last_ms } = self;
        let (path, last) = (path.display(), utc(*last_ms));
        write!(
            f,
            "{path}: the log ends with an incomplete batch at byte {position}, {bytes} bytes, after the events of {last}. \
             Unless the disk is damaged, nothing in it was acknowledged"
        )
    }
}

/// The file of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    pub path: PathBuf,
    /// From the name.
    pub first_seq: u64,
}

impl SegmentFile {
    pub fn new(dir: &Path, first_seq: u64) -> SegmentFile {
        SegmentFile { path: dir.join(format!("{first_seq:020}.{EXTENSION}")), first_seq }
    }
}

/// The segments of a log, oldest first. Other files are ignored.
pub fn segments(dir: &Path) -> Result<Vec<SegmentFile>, LogError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(LogError::io("read", dir))? {
        let path = entry.map_err(LogError::io("read", dir))?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let Some(first_seq) = number.filter(|_| path.extension().is_some_and(|it| it == EXTENSION)) {
            found.push(SegmentFile { path, first_seq });
        }
    }
    found.sort_unstable_by_key(|segment| segment.first_seq);
    Ok(found)
}

/// Whether a directory exists and has segments.
pub fn has_segments(dir: &Path) -> Result<bool, LogError> {
    match segments(dir) {
        Err(LogError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(false),
        found => Ok(!found?.is_empty()),
    }
}

/// Lets the disk answer the next reads of the newest segments. After a failed sync, memory may have what the disk has not,
/// and a power cut would leave a hole before what is appended later.
pub fn read_from_disk(dir: &Path) -> Result<(), LogError> {
    for SegmentFile { path, .. } in segments(dir)?.iter().rev().take(2) {
        let file = fs::File::open(path).map_err(LogError::io("read", path))?;
        // Pages that are not written to the disk yet would stay in memory.
        file.sync_all().map_err(LogError::io("sync", path))?;
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
            .map_err(|error| LogError::io("read", path)(error.into()))?;
    }
    Ok(())
}

/// Events are at most that much earlier than the beginning of their segment.
const DISORDER_MS: i64 = 3_600_000;

/// The last batch before the segments that may have events of `from_ms` or later.
pub fn position_before(dir: &Path, from_ms: i64) -> Result<u64, LogError> {
    let files = segments(dir)?;
    let mut first = files.first();
    for file in &files {
        if header_of(file)?.created_ms > from_ms.saturating_sub(DISORDER_MS) {
            break;
        }
        first = Some(file);
    }
    Ok(first.map_or(0, |file| file.first_seq - 1))
}

pub(super) fn header_of(file: &SegmentFile) -> Result<SegmentHeader, LogError> {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    let read = fs::File::open(&file.path).and_then(|mut file| file.read_exact(&mut header));
    read.map_err(LogError::io("read", &file.path))?;
    SegmentHeader::decode(&header).ok_or_else(|| LogError::Header { path: file.path.clone() })
}

/// What a segment contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSummary {
    pub path: PathBuf,
    pub bytes: u64,
    pub first_seq: u64,
    pub batches: u64,
    pub events: u64,
    pub created_ms: i64,
    /// Time of the last event, Unix ms; `None`: there is none.
    pub last_ms: Option<i64>,
}

/// Reads a whole log and decodes every event.
pub fn check(dir: &Path) -> Result<(Vec<SegmentSummary>, Option<Cut>), LogError> {
    let mut reader = LogReader::open(dir)?;
    while reader.read_batch(|_| ())?.is_some() {}
    Ok((reader.summaries, reader.cut))
}

/// Reads the batches of a log, oldest first.
#[derive(Debug)]
pub struct LogReader {
    segments: std::vec::IntoIter<SegmentFile>,
    segment: Option<OpenSegment>,
    /// Sequence number of the next batch; `None` before the first segment.
    next_seq: Option<u64>,
    last_ms: i64,
    /// The last segment announced another one.
    expects_segment: bool,
    /// The last batch number that a segment announced as the first one of the next segment.
    announced_seq: Option<u64>,
    cut: Option<Cut>,
    summaries: Vec<SegmentSummary>,
    /// What the events of the last segment left.
    decoder: Decoder,
}

#[derive(Debug)]
struct OpenSegment {
    path: PathBuf,
    bytes: Vec<u8>,
    position: usize,
    header: SegmentHeader,
    decoder: Decoder,
    is_last: bool,
}

impl LogReader {
    pub fn open(dir: &Path) -> Result<LogReader, LogError> {
        Ok(LogReader::of(segments(dir)?))
    }

    /// Reads the segments with the batches after `position`. The first of them may begin earlier.
    pub fn open_after(dir: &Path, position: u64) -> Result<LogReader, LogError> {
        let mut files = segments(dir)?;
        let first = files.iter().rposition(|file| file.first_seq <= position + 1);
        match (first, files.first()) {
            (Some(first), _) => Ok(LogReader::of(files.split_off(first))),
            (None, Some(file)) => Err(LogError::Gap { path: file.path.clone(), first: file.first_seq, position }),
            (None, None) => Err(LogError::Missing { dir: dir.to_owned(), position }),
        }
    }

    /// Reads some segments that follow each other.
    pub(super) fn of(segments: Vec<SegmentFile>) -> LogReader {
        LogReader {
            segments: segments.into_iter(),
            segment: None,
            next_seq: None,
            last_ms: 0,
            expects_segment: false,
            announced_seq: None,
            cut: None,
            summaries: Vec::new(),
            decoder: Decoder::default(),
        }
    }

    /// Decodes what is added to the last segment. Everything was read.
    pub(super) fn into_decoder(self) -> Decoder {
        self.decoder
    }

    /// Reads the next batch and passes its events on. Returns its sequence number; `None` at the
    /// end of the log.
    pub fn read_batch(&mut self, each: impl FnMut(LogEvent)) -> Result<Option<u64>, LogError> {
        loop {
            let Some(segment) = &mut self.segment else {
                match self.open_next()? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            let seq = self.next_seq.expect("a segment is open");
            let rest = &segment.bytes[segment.position..];
            let summary = self.summaries.last_mut().expect("a segment is open");
            match BatchHeader::read(segment.header.id, rest) {
                Some((batch, len)) if batch.seq == seq => {
                    let body = &rest[super::batch::BATCH_HEADER_BYTES..len];
                    let position = segment.position as u64;
                    segment.position += len;
                    if batch.events == 0 {
                        (self.expects_segment, self.announced_seq) = (true, Some(seq));
                        self.end_segment()?;
                        continue;
                    }
                    segment.decoder.decode(body, each).map_err(|source| LogError::Decode {
                        path: segment.path.clone(),
                        position,
                        seq,
                        source,
                    })?;
                    (self.next_seq, self.last_ms) = (Some(seq + 1), batch.last_ms);
                    summary.batches += 1;
                    summary.events += u64::from(batch.events);
                    summary.last_ms = Some(batch.last_ms);
                    return Ok(Some(seq));
                }
                _ => self.end_segment()?,
            }
        }
    }

    /// The cut at which the log ended, if there is one.
    pub fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// Whether a segment announced another one that begins with this batch.
    pub(super) fn is_announced(&self, first_seq: u64) -> bool {
        self.announced_seq == Some(first_seq)
    }

    /// Sequence number of the batch that will follow.
    pub fn next_seq(&self) -> Option<u64> {
        self.next_seq
    }

    /// Time of the last event read, Unix ms; 0 before the first.
    pub fn last_ms(&self) -> i64 {
        self.last_ms
    }

    /// Opens the next segment. Returns false after the last one.
    fn open_next(&mut self) -> Result<bool, LogError> {
        let file = match (self.segments.next(), self.summaries.last()) {
            (Some(file), _) => file,
            (None, Some(last)) if self.expects_segment => {
                // A daemon may have begun it after the segments were listed.
                let next = SegmentFile::new(last.path.parent().unwrap_or(Path::new(".")), self.next_seq.unwrap_or(0));
                if !next.path.exists() {
                    let (path, last) = (last.path.clone(), next.first_seq.saturating_sub(1));
                    return Err(LogError::MissingSegment { path, last });
                }
                next
            }
            (None, _) => return Ok(false),
        };
        let path = file.path;
        let is_last = self.segments.len() == 0;
        let bytes = fs::metadata(&path).map_err(LogError::io("read", &path))?.len();
        if bytes > SEGMENT_BYTES_MAX {
            return Err(LogError::TooLarge { path, bytes });
        }
        let bytes = fs::read(&path).map_err(LogError::io("read", &path))?;
        let Some(header) = SegmentHeader::decode(&bytes) else {
            // A segment is announced after its header is on disk.
            if is_last && !self.expects_segment && bytes.len() <= SEGMENT_HEADER_BYTES {
                self.cut = Some(Cut { path, position: 0, bytes: bytes.len() as u64, last_ms: self.last_ms });
                return Ok(false);
            }
            return Err(LogError::Header { path });
        };
        if header.version > VERSION {
            return Err(LogError::NewerVersion { path, version: header.version });
        }
        let expected = self.next_seq.unwrap_or(file.first_seq);
        if header.first_seq != expected || file.first_seq != expected {
            return Err(LogError::Sequence { path, expected, found: header.first_seq });
        }
        self.next_seq = Some(expected);
        self.expects_segment = false;
        self.summaries.push(SegmentSummary {
            path: path.clone(),
            bytes: bytes.len() as u64,
            first_seq: expected,
            batches: 0,
            events: 0,
            created_ms: header.created_ms,
            last_ms: None,
        });
        let decoder = Decoder::default();
        self.segment = Some(OpenSegment { path, bytes, position: SEGMENT_HEADER_BYTES, header, decoder, is_last });
        Ok(true)
    }

    /// Whether the next segment is the last one, and has no batch. It is written after the end of the one before.
    fn is_next_empty(&self) -> bool {
        let [next] = self.segments.as_slice() else { return false };
        let is_empty = |file: fs::Metadata| file.len() == SEGMENT_HEADER_BYTES as u64;
        Some(next.first_seq) == self.next_seq && fs::metadata(&next.path).is_ok_and(is_empty)
    }

    /// Ends the open segment at a position without a further batch. Error: the segment is damaged
    /// there.
    fn end_segment(&mut self) -> Result<(), LogError> {
        let mut segment = self.segment.take().expect("a segment is open");
        self.decoder = std::mem::take(&mut segment.decoder);
        let rest = &segment.bytes[segment.position..];
        if rest.is_empty() {
            return Ok(());
        }
        let (path, position) = (segment.path, segment.position as u64);
        let seq = self.next_seq.expect("a segment is open");
        let follows = match BatchHeader::find(segment.header.id, rest) {
            Some((at, batch)) => format!("batch {} follows at byte {}", batch.seq, segment.position + at),
            None if self.expects_segment => "bytes follow the end of the segment".to_owned(),
            None if !segment.is_last && !self.is_next_empty() => "another segment follows".to_owned(),
            None => {
                self.cut = Some(Cut { path, position, bytes: rest.len() as u64, last_ms: self.last_ms });
                return Ok(());
            }
        };
        Err(LogError::Damaged { path, position, seq, follows })
    }
}
