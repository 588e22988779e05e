//! Writes a log: one batch at a time, each synced to disk.
//!
//! A failed write or sync is final: what is on disk is unknown then, and a second `fdatasync`
//! may report success for pages that the first one has dropped. The process must end; the next
//! start reads what is there.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use super::batch::{BATCH_HEADER_BYTES, BODY_BYTES_MAX, BatchHeader, SegmentHeader, VERSION};
use super::encode::Encoder;
use super::error::LogError;
use super::segment::{Cut, LogReader, SegmentFile, segments};
use super::{LogEvent, sync_dir};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterSettings {
    pub dir: PathBuf,
    /// A segment that is larger ends with the current batch.
    pub segment_bytes_max: u64,
    /// A segment that is older ends with the current batch.
    pub segment_ms_max: i64,
}

impl WriterSettings {
    /// A segment ends after an hour or 64 MiB.
    pub fn new(dir: PathBuf) -> WriterSettings {
        WriterSettings { dir, segment_bytes_max: 64 << 20, segment_ms_max: 3_600_000 }
    }
}

/// The end of a log that is to be continued.
pub(super) struct LogEnd {
    pub lock: Flock<File>,
    /// It has read the last batches.
    pub reader: LogReader,
    pub next_seq: u64,
    /// What a crash left at the end; it is removed.
    pub cut: Option<Cut>,
    /// The newest segment, and the one before.
    pub last: Option<SegmentFile>,
    pub before: Option<SegmentFile>,
}

impl LogEnd {
    /// Locks a log and reads its end; creates the directory if it is missing. A log without a segment begins with batch
    /// `first_seq`.
    pub fn open(dir: &Path, first_seq: u64) -> Result<LogEnd, LogError> {
        create_dir(dir)?;
        let lock = lock(dir)?;
        let files = segments(dir)?;
        // Older segments were complete when their successor was begun.
        let mut reader = LogReader::of(files[files.len().saturating_sub(2)..].to_vec());
        while reader.read_batch(|_| ())?.is_some() {}
        let next_seq = reader.next_seq().unwrap_or(first_seq);
        let cut = reader.cut().cloned();
        if let Some(cut) = &cut {
            remove_cut(cut, dir)?;
        }
        let mut existing = files.into_iter().filter(|file| file.path.exists());
        let last = existing.next_back();
        Ok(LogEnd { lock, reader, next_seq, cut, last, before: existing.next_back() })
    }
}

/// Events that are written and synced together.
#[derive(Debug)]
pub struct Batch {
    /// Space for the header, then the events.
    bytes: Vec<u8>,
    events: u32,
    last_ms: i64,
    seq: u64,
    /// The next batch begins a new segment.
    ends_segment: bool,
}

impl Batch {
    /// Bytes of the events.
    pub fn bytes(&self) -> usize {
        self.bytes.len() - BATCH_HEADER_BYTES
    }

    /// Sequence number of the last batch with events, when this one is on disk.
    pub fn last_seq(&self) -> u64 {
        if self.events > 0 { self.seq } else { self.seq - 1 }
    }
}

/// A batch as a log has it: a header with checksums, and the events.
#[derive(Debug)]
pub struct SealedBatch {
    /// That of its segment.
    pub segment: SegmentHeader,
    header: BatchHeader,
    bytes: Vec<u8>,
    /// The next batch begins a new segment.
    ends_segment: bool,
}

impl SealedBatch {
    /// Reads a batch of another log. `None`: it is damaged, or not of this segment.
    pub fn of_bytes(segment: SegmentHeader, bytes: Vec<u8>) -> Option<SealedBatch> {
        let (header, len) = BatchHeader::read(segment.id, &bytes)?;
        let is_whole = len == bytes.len() && header.events > 0 && header.seq >= segment.first_seq;
        is_whole.then_some(SealedBatch { segment, header, bytes, ends_segment: false })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.bytes[BATCH_HEADER_BYTES..]
    }

    pub fn seq(&self) -> u64 {
        self.header.seq
    }

    /// Whether it is the first one of its segment.
    pub fn begins_segment(&self) -> bool {
        self.header.seq == self.segment.first_seq
    }

    /// Whether there are events. A segment may end without.
    pub fn has_events(&self) -> bool {
        self.header.events > 0
    }

    /// Time of the last event, Unix ms.
    pub fn last_ms(&self) -> i64 {
        self.header.last_ms
    }
}

/// Encodes events into the next batch, while a [`LogWriter`] writes the one before on another thread.
#[derive(Debug)]
pub struct BatchBuilder {
    segment_bytes_max: u64,
    segment_ms_max: i64,
    encoder: Encoder,
    bytes: Vec<u8>,
    events: u32,
    last_ms: i64,
    next_seq: u64,
    /// Bytes of the segment, without the batch that is being filled.
    segment_bytes: u64,
    segment_began_ms: i64,
}

impl BatchBuilder {
    pub(super) fn new(settings: &WriterSettings, next_seq: u64, last_ms: i64, now_ms: i64) -> BatchBuilder {
        BatchBuilder {
            segment_bytes_max: settings.segment_bytes_max,
            segment_ms_max: settings.segment_ms_max,
            encoder: Encoder::default(),
            bytes: vec![0; BATCH_HEADER_BYTES],
            events: 0,
            last_ms,
            next_seq,
            segment_bytes: 0,
            segment_began_ms: now_ms,
        }
    }

    /// One that no event is added to: another process writes the log, which ends with batch `seq`.
    pub fn after(seq: u64) -> BatchBuilder {
        let settings = WriterSettings::new(PathBuf::new());
        BatchBuilder::new(&settings, seq + 1, 0, 0)
    }

    /// Adds an event. Returns the sequence number of its batch.
    pub fn append(&mut self, event: &LogEvent) -> u64 {
        self.encoder.encode(event, &mut self.bytes);
        self.events += 1;
        self.last_ms = event.t_ms();
        self.next_seq
    }

    /// Bytes of the events that were added since the last batch was taken.
    pub fn bytes(&self) -> usize {
        self.bytes.len() - BATCH_HEADER_BYTES
    }

    /// Sequence number of the last batch that was taken.
    pub fn last_seq(&self) -> u64 {
        self.next_seq - 1
    }

    /// Whether the next event begins a segment.
    pub fn is_at_segment_start(&self) -> bool {
        self.segment_bytes == 0 && self.events == 0
    }

    /// Takes the batch; `None`: no events were added.
    pub fn take(&mut self, now_ms: i64) -> Option<Batch> {
        let bytes = self.segment_bytes + self.bytes() as u64;
        let is_full = bytes >= self.segment_bytes_max || now_ms - self.segment_began_ms >= self.segment_ms_max;
        (self.events > 0).then(|| self.take_batch(is_full, now_ms))
    }

    /// Takes the batch and ends the segment with it; `None`: the segment is empty.
    pub fn take_and_end_segment(&mut self, now_ms: i64) -> Option<Batch> {
        (!self.is_at_segment_start()).then(|| self.take_batch(true, now_ms))
    }

    fn take_batch(&mut self, ends_segment: bool, now_ms: i64) -> Batch {
        self.segment_bytes += self.bytes() as u64;
        let bytes = std::mem::replace(&mut self.bytes, vec![0; BATCH_HEADER_BYTES]);
        let events = std::mem::take(&mut self.events);
        let batch = Batch { bytes, events, last_ms: self.last_ms, seq: self.next_seq, ends_segment };
        self.next_seq += u64::from(events > 0);
        if ends_segment {
            (self.segment_bytes, self.segment_began_ms, self.encoder) = (0, now_ms, Encoder::default());
        }
        batch
    }
}

/// Appends to a log. Only one process can.
#[derive(Debug)]
pub struct LogWriter {
    dir: PathBuf,
    _lock: Flock<File>,
    segment: Segment,
}

/// The segment that is written.
#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    pub(super) path: PathBuf,
    pub(super) header: SegmentHeader,
}

impl LogWriter {
    /// Opens a log for writing; creates the directory if it is missing. Begins a new segment; a log
    /// without one begins with batch `first_seq`. Returns the cut that a crash left at the end of the
    /// log, which is removed.
    pub fn open(
        settings: &WriterSettings,
        first_seq: u64,
        now_ms: i64,
    ) -> Result<(LogWriter, BatchBuilder, Option<Cut>), LogError> {
        let dir = &settings.dir;
        let LogEnd { lock, reader, next_seq, cut, last, before } = LogEnd::open(dir, first_seq)?;
        // A segment without a batch has the name of the new one, so the log continues in it.
        let (segment, before) = match last {
            Some(empty) if empty.first_seq == next_seq => (reopen_segment(&empty.path)?, before),
            last => (begin_segment(dir, new_header(next_seq, now_ms))?, last),
        };
        let last_ms = reader.last_ms();
        if let Some(before) = before.filter(|_| !reader.is_announced(next_seq)) {
            reopen_segment(&before.path)?.end(next_seq, last_ms)?;
        }
        let builder = BatchBuilder::new(settings, next_seq, last_ms, now_ms);
        Ok((LogWriter::of(dir.clone(), lock, segment), builder, cut))
    }

    pub(super) fn of(dir: PathBuf, lock: Flock<File>, segment: Segment) -> LogWriter {
        LogWriter { dir, _lock: lock, segment }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes a batch. When it returns, the batch is on disk. Error: the process must end.
    pub fn write(&mut self, batch: Batch, now_ms: i64) -> Result<(), LogError> {
        let sealed = self.seal(batch);
        self.write_sealed(&sealed, now_ms)
    }

    /// The bytes of a batch as they will be in this log.
    pub fn seal(&self, mut batch: Batch) -> SealedBatch {
        assert!(batch.bytes.len() - BATCH_HEADER_BYTES <= BODY_BYTES_MAX, "the caller limits what is not synced");
        let header = BatchHeader { seq: batch.seq, last_ms: batch.last_ms, events: batch.events };
        header.seal(self.segment.header.id, &mut batch.bytes);
        let ends_segment = batch.ends_segment;
        SealedBatch { segment: self.segment.header, header, bytes: batch.bytes, ends_segment }
    }

    /// As [`LogWriter::write`].
    pub fn write_sealed(&mut self, batch: &SealedBatch, now_ms: i64) -> Result<(), LogError> {
        let BatchHeader { seq, last_ms, events } = batch.header;
        if events > 0 {
            self.segment.append(&batch.bytes)?;
        }
        if batch.ends_segment {
            self.begin_next_segment(new_header(seq + u64::from(events > 0), now_ms), last_ms)?;
        }
        Ok(())
    }

    fn begin_next_segment(&mut self, header: SegmentHeader, last_ms: i64) -> Result<(), LogError> {
        let next = begin_segment(&self.dir, header)?;
        self.segment.end(header.first_seq, last_ms)?;
        self.segment = next;
        Ok(())
    }
}

impl Segment {
    /// When it returns, the batch is on disk.
    pub(super) fn append(&mut self, batch: &[u8]) -> Result<(), LogError> {
        let Segment { file, path, .. } = self;
        file.write_all(batch).and_then(|()| file.sync_data()).map_err(LogError::io("write", path))
    }

    /// Announces the successor, which is on disk.
    pub(super) fn end(&mut self, next_seq: u64, last_ms: i64) -> Result<(), LogError> {
        let mut end = [0; BATCH_HEADER_BYTES];
        BatchHeader { seq: next_seq, last_ms, events: 0 }.seal(self.header.id, &mut end);
        self.append(&end)
    }
}

/// The header of a new segment.
pub(super) fn new_header(first_seq: u64, now_ms: i64) -> SegmentHeader {
    let mut id = [0; 8];
    getrandom::fill(&mut id).expect("the kernel has random numbers");
    SegmentHeader { version: VERSION, id: u64::from_le_bytes(id), first_seq, created_ms: now_ms }
}

/// Creates a segment. Its header and its name are on disk.
pub(super) fn begin_segment(dir: &Path, header: SegmentHeader) -> Result<Segment, LogError> {
    let path = SegmentFile::new(dir, header.first_seq).path;
    let mut options = OpenOptions::new();
    let file = options.append(true).create_new(true).mode(0o640).open(&path);
    let mut file = file.map_err(LogError::io("create", &path))?;
    let written = file.write_all(&header.encode()).and_then(|()| file.sync_all());
    written.map_err(LogError::io("write", &path))?;
    sync_dir(dir)?;
    Ok(Segment { file, path, header })
}

/// Opens an existing segment for appending.
pub(super) fn reopen_segment(path: &Path) -> Result<Segment, LogError> {
    let bytes = fs::read(path).map_err(LogError::io("read", path))?;
    let header = SegmentHeader::decode(&bytes).ok_or_else(|| LogError::Header { path: path.to_owned() })?;
    let file = OpenOptions::new().append(true).open(path).map_err(LogError::io("open", path))?;
    Ok(Segment { file, path: path.to_owned(), header })
}

fn remove_cut(cut: &Cut, dir: &Path) -> Result<(), LogError> {
    let path = &cut.path;
    match cut.position {
        // Not even the header was on disk.
        0 => fs::remove_file(path).map_err(LogError::io("remove", path))?,
        position => {
            let file = OpenOptions::new().write(true).open(path).map_err(LogError::io("open", path))?;
            file.set_len(position).and_then(|()| file.sync_all()).map_err(LogError::io("cut", path))?;
        }
    }
    sync_dir(dir)
}

fn create_dir(dir: &Path) -> Result<(), LogError> {
    if dir.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(dir).map_err(LogError::io("create", dir))?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sync_dir(parent)
}

/// Locks a log. Its owner's process number is in the file.
fn lock(dir: &Path) -> Result<Flock<File>, LogError> {
    let path = dir.join("lock");
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o640).open(&path);
    let file = file.map_err(LogError::io("open", &path))?;
    let mut lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => lock,
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => {
            let owner = fs::read_to_string(&path).unwrap_or_default();
            let owner = format!("process {}", owner.trim());
            return Err(LogError::Locked { dir: dir.to_owned(), owner });
        }
        Err((_, error)) => return Err(LogError::io("lock", &path)(error.into())),
    };
    let written = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
    written.map_err(LogError::io("write", &path))?;
    Ok(lock)
}
