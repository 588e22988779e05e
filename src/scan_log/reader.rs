//! Reads a scan log from a file, plain or zstd.
//!
//! [`LogReader`] returns every line and every error. [`LossyReader`] skips unreadable
//! lines and counts them in a [`Damage`]; its caller decides which damage it accepts.
//! An incomplete end ([`Truncation`]) is caused by a crash or a power cut: the last line
//! without its line feed, or compressed data that end inside a frame.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::damage::{Damage, Truncation};
use super::line::{self, LineError, parse};
use crate::engine::Outcome;
use crate::limits::SCAN_LOG_LINE_BYTES_MAX;
use crate::model::ServerUrl;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot read the scan log {}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line}", path = path.display())]
    Line { path: PathBuf, line: u64, source: LineError },
    #[error("{path}:{line}: not UTF-8", path = path.display())]
    NotUtf8 { path: PathBuf, line: u64 },
    #[error("{path}:{line}: longer than {SCAN_LOG_LINE_BYTES_MAX} bytes", path = path.display())]
    TooLong { path: PathBuf, line: u64 },
    #[error("{path}:{line}: t = {t_ms} is before the previous line's t = {before_ms}: a scan log must be in time order", path = path.display())]
    Order { path: PathBuf, line: u64, t_ms: i64, before_ms: i64 },
    #[error("{0}")]
    Truncated(Truncation),
    #[error("{path}:{line}: the compressed data are damaged; no line after this one can be read", path = path.display())]
    Decompress { path: PathBuf, line: u64, source: std::io::Error },
}

/// The lines of one file; empty lines are skipped. After an error in one line the next
/// line follows. After any other error the iterator ends.
pub struct LogReader {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    is_packed: bool,
    /// Number of the line in the buffer.
    line: u64,
    latest_ms: i64,
    /// The last line read, with its line feed; truncated to the maximum length.
    buffer: Vec<u8>,
    /// Length of that line, bytes.
    line_bytes: u64,
    /// The truncated part of the line is all zeros.
    rest_is_zeros: bool,
    ended: bool,
    /// Reported after the last line.
    cut: Option<Truncation>,
}

/// Opens a log; a file whose name ends in `.zst` is decompressed.
pub fn open(path: &Path) -> Result<LogReader, LogError> {
    let failed = |source| LogError::Io { path: path.to_owned(), source };
    from_file(path, File::open(path).map_err(failed)?)
}

/// The same for an open file; `path` shows whether it is compressed.
pub fn from_file(path: &Path, file: File) -> Result<LogReader, LogError> {
    let failed = |source| LogError::Io { path: path.to_owned(), source };
    let is_packed = path.extension().is_some_and(|e| e == "zst");
    let input: Box<dyn BufRead + Send> = match is_packed {
        true => Box::new(BufReader::with_capacity(1 << 18, zstd::Decoder::new(file).map_err(failed)?)),
        false => Box::new(BufReader::with_capacity(1 << 18, file)),
    };
    Ok(LogReader {
        path: path.to_owned(),
        input,
        is_packed,
        line: 0,
        latest_ms: i64::MIN,
        buffer: Vec::new(),
        line_bytes: 0,
        rest_is_zeros: true,
        ended: false,
        cut: None,
    })
}

/// Summary of a complete log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSummary {
    pub lines: u64,
    /// Times of the first and the last line, Unix ms; `i64::MAX` and `i64::MIN` if the
    /// log is empty.
    pub first_ms: i64,
    pub last_ms: i64,
}

/// Checks a complete log before any of it is applied. Unreadable lines are skipped and
/// returned as damage. It validates lines without building snapshots, which halves the
/// time. Error: the file cannot be read.
pub fn check(path: &Path) -> Result<(LogSummary, Damage), LogError> {
    let mut summary = LogSummary { lines: 0, first_ms: i64::MAX, last_ms: i64::MIN };
    let mut lines = LossyReader::new(open(path)?);
    while let Some(read) = lines.read(|text| line::check(text).map(|t_ms| (t_ms, t_ms))) {
        let t_ms = read?;
        summary.first_ms = summary.first_ms.min(t_ms);
        summary.last_ms = t_ms;
        summary.lines += 1;
    }
    Ok((summary, lines.damage))
}

/// Bytes at the end of a log that are searched first.
const TAIL_WINDOW_BYTES: u64 = 1 << 20;

/// The end of a plain log, read line by line.
pub struct LogTail {
    lines: LogReader,
    has_news: bool,
    damaged: u64,
}

/// Opens a plain log at a line near its end, such that all new lines follow. If one
/// line is not new, no line before it is.
pub fn read_tail(path: &Path, is_news: impl Fn(&ServerUrl, i64) -> bool) -> Result<LogTail, LogError> {
    let failed = |source| LogError::Io { path: path.to_owned(), source };
    let len = std::fs::metadata(path).map_err(failed)?.len();
    let mut window = TAIL_WINDOW_BYTES;
    loop {
        let from = len.saturating_sub(window);
        let begin = || {
            let mut file = File::open(path).map_err(failed)?;
            file.seek(SeekFrom::Start(from)).map_err(failed)?;
            let mut tail = LogTail { lines: from_file(path, file)?, has_news: false, damaged: 0 };
            if from > 0 {
                // The first line may be incomplete; all others are complete.
                tail.lines.read_line()?;
            }
            Ok(tail)
        };
        let first = begin()?.next_line()?;
        if from == 0 || first.is_some_and(|(url, outcome)| !is_news(&url, outcome.t_ms())) {
            return begin();
        }
        window *= 2;
    }
}

impl LogTail {
    /// The next new line.
    pub fn next_news(
        &mut self,
        is_news: impl Fn(&ServerUrl, i64) -> bool,
    ) -> Result<Option<(ServerUrl, Outcome)>, LogError> {
        while let Some((url, outcome)) = self.next_line()? {
            if is_news(&url, outcome.t_ms()) {
                self.has_news = true;
                return Ok(Some((url, outcome)));
            }
            if !self.has_news {
                self.damaged = 0;
            }
        }
        Ok(None)
    }

    /// Number of unreadable lines among the new lines so far; they were skipped.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The next readable line.
    fn next_line(&mut self) -> Result<Option<(ServerUrl, Outcome)>, LogError> {
        loop {
            match self.lines.read(parsed) {
                None => return Ok(None),
                Some(Ok(read)) => return Ok(Some(read.value)),
                Some(Err(error @ LogError::Io { .. })) => return Err(error),
                Some(Err(_)) => self.damaged += 1,
            }
        }
    }
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    LineFeed,
    File,
}

/// A line that was parsed.
struct ParsedLine<T> {
    line: u64,
    bytes: u64,
    t_ms: i64,
    value: T,
}

impl LogReader {
    /// Returns the readable lines and counts the others.
    pub fn skip_damaged(self) -> LossyReader<(ServerUrl, Outcome)> {
        LossyReader::new(self)
    }

    /// The last line read, truncated to the maximum length.
    pub(in crate::scan_log) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Reads the next line that is not empty. `None` at the end of the file.
    fn read_line(&mut self) -> Result<Option<LineEnd>, LogError> {
        while !self.ended {
            self.buffer.clear();
            self.line += 1;
            (self.line_bytes, self.rest_is_zeros) = (0, true);
            let end = self.read_to_line_feed()?;
            self.ended = end == LineEnd::File;
            if self.line_bytes > self.buffer.len() as u64 || !self.buffer.trim_ascii().is_empty() {
                return Ok(Some(end));
            }
        }
        Ok(None)
    }

    /// Reads a line into the buffer, with the line feed. The rest of a line that is too
    /// long is read and dropped.
    fn read_to_line_feed(&mut self) -> Result<LineEnd, LogError> {
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return self.on_read_error(e),
            };
            let end = memchr::memchr(b'\n', chunk);
            let len = end.map_or(chunk.len(), |end| end + 1);
            self.line_bytes += len as u64;
            if self.line_bytes <= SCAN_LOG_LINE_BYTES_MAX as u64 {
                self.buffer.extend_from_slice(&chunk[..len]);
            } else {
                self.rest_is_zeros &= chunk[..len].iter().all(|&byte| byte == 0);
            }
            self.input.consume(len);
            if end.is_some() {
                return Ok(LineEnd::LineFeed);
            }
            if len == 0 {
                return Ok(LineEnd::File);
            }
        }
    }

    /// Truncated compressed data are treated as the end of the file and reported after the
    /// last line.
    fn on_read_error(&mut self, source: std::io::Error) -> Result<LineEnd, LogError> {
        self.ended = true;
        let (path, line) = (self.path.clone(), self.line);
        match source.kind() {
            ErrorKind::UnexpectedEof if self.is_packed => {
                self.cut = Some(Truncation { path, line, bytes: 0, is_compressed: true });
                Ok(LineEnd::File)
            }
            // Errors of the file system have an error number, those of the decoder do not.
            _ if self.is_packed && source.raw_os_error().is_none() => Err(LogError::Decompress { path, line, source }),
            _ => Err(LogError::Io { path, source }),
        }
    }

    /// Reads the next line, whatever its time.
    fn read<T>(
        &mut self,
        reader: impl Fn(&str) -> Result<(i64, T), LineError>,
    ) -> Option<Result<ParsedLine<T>, LogError>> {
        let end = match self.read_line() {
            Ok(Some(end)) => end,
            Ok(None) => return self.cut.take().map(|cut| Err(LogError::Truncated(cut))),
            Err(error) => return Some(Err(error)),
        };
        let (line, bytes) = (self.line, self.line_bytes);
        if bytes <= self.buffer.len() as u64
            && let Ok(text) = std::str::from_utf8(&self.buffer)
            && let Ok((t_ms, value)) = reader(text.trim_ascii())
        {
            if let Some(cut) = &mut self.cut {
                cut.line = line + 1;
            }
            return Some(Ok(ParsedLine { line, bytes, t_ms, value }));
        }
        if end == LineEnd::File && self.is_beginning_of_line() {
            self.cut = None;
            return Some(Err(LogError::Truncated(Truncation {
                path: self.path.clone(),
                line,
                bytes,
                is_compressed: self.is_packed,
            })));
        }
        Some(Err(self.line_error(reader)))
    }

    /// The error of the line in the buffer.
    fn line_error<T>(&self, reader: impl Fn(&str) -> Result<(i64, T), LineError>) -> LogError {
        let (path, line) = (self.path.clone(), self.line);
        if self.line_bytes > self.buffer.len() as u64 {
            return LogError::TooLong { path, line };
        }
        match std::str::from_utf8(&self.buffer).map(|text| reader(text.trim_ascii())) {
            Err(_) => LogError::NotUtf8 { path, line },
            Ok(Err(source)) => LogError::Line { path, line, source },
            Ok(Ok(_)) => unreachable!("it cannot be read"),
        }
    }

    /// Whether the buffer may be the beginning of a line: the file is truncated there, or
    /// padded with zeros, as some file systems do after a crash.
    fn is_beginning_of_line(&self) -> bool {
        let written = match self.buffer.iter().rposition(|&byte| byte != 0) {
            Some(last) => &self.buffer[..=last],
            None => &[],
        };
        let text = match std::str::from_utf8(written) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&written[..error.valid_up_to()]).expect("valid up to there")
            }
            Err(_) => return false,
        };
        let text = text.trim_ascii();
        // Zeros may also replace only the line feed.
        let is_padded = written.len() < self.buffer.len() && line::check(text).is_ok();
        self.rest_is_zeros && (is_padded || line::is_truncated_line(text))
    }
}

impl Iterator for LogReader {
    type Item = Result<(ServerUrl, Outcome), LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = match self.read(parsed)? {
            Ok(read) => read,
            Err(error) => return Some(Err(error)),
        };
        let (t_ms, before_ms) = (read.t_ms, self.latest_ms);
        if t_ms < before_ms {
            return Some(Err(LogError::Order { path: self.path.clone(), line: read.line, t_ms, before_ms }));
        }
        self.latest_ms = t_ms;
        Some(Ok(read.value))
    }
}

fn parsed(text: &str) -> Result<(i64, (ServerUrl, Outcome)), LineError> {
    parse(text).map(|(url, outcome)| (outcome.t_ms(), (url, outcome)))
}

/// The readable lines of a log, in time order. Error: the file cannot be read.
///
/// Reads one line ahead. If the next line is earlier than the pending line but not
/// earlier than the line before that, the pending line has the wrong time, and only it
/// is skipped.
pub struct LossyReader<T> {
    lines: LogReader,
    pending: Option<ParsedLine<T>>,
    latest_ms: i64,
    damage: Damage,
}

impl<T> LossyReader<T> {
    fn new(lines: LogReader) -> LossyReader<T> {
        LossyReader { lines, pending: None, latest_ms: i64::MIN, damage: Damage::default() }
    }

    /// What was skipped so far.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    fn read(&mut self, reader: impl Fn(&str) -> Result<(i64, T), LineError>) -> Option<Result<T, LogError>> {
        loop {
            let new = match self.lines.read(&reader) {
                Some(Ok(new)) => new,
                Some(Err(error @ LogError::Io { .. })) => return Some(Err(error)),
                Some(Err(LogError::Truncated(cut))) => {
                    self.damage.cut = Some(cut);
                    continue;
                }
                Some(Err(error)) => {
                    self.damage.skip(self.lines.line, self.lines.line_bytes, error);
                    continue;
                }
                None => return self.pending.take().map(|held| Ok(held.value)),
            };
            match self.pending.take() {
                Some(held) if new.t_ms >= held.t_ms => {
                    self.latest_ms = held.t_ms;
                    self.pending = Some(new);
                    return Some(Ok(held.value));
                }
                Some(held) if new.t_ms >= self.latest_ms => {
                    self.skip(&held, new.t_ms);
                    self.pending = Some(new);
                }
                Some(held) => {
                    self.skip(&new, held.t_ms);
                    self.pending = Some(held);
                }
                None => self.pending = Some(new),
            }
        }
    }

    /// Skips a line whose time is not in order with its neighbour.
    fn skip(&mut self, read: &ParsedLine<T>, neighbour_ms: i64) {
        let (path, line, t_ms) = (self.lines.path.clone(), read.line, read.t_ms);
        let error = match t_ms < neighbour_ms {
            true => LogError::Order { path, line, t_ms, before_ms: neighbour_ms },
            false => LogError::Order { path, line: line + 1, t_ms: neighbour_ms, before_ms: t_ms },
        };
        self.damage.skip(line, read.bytes, error);
    }
}

impl Iterator for LossyReader<(ServerUrl, Outcome)> {
    type Item = Result<(ServerUrl, Outcome), LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan_log::damage::DamagedRange;

    fn line(t_ms: i64) -> String {
        format!(
            "{{\"t\":{t_ms},\"server\":\"quake3://10.0.0.1:27960\",\"game\":\"baseq3\",\"map\":\"q3dm17\",\
             \"hostname\":\"caf\u{e9} \\u00e9 \\ud83d\\ude00\",\"slots\":8,\"players\":[{{\"name\":\"\u{1f600}\",\
             \"points\":-12,\"ping\":48,\"bot\":false}}]}}\n"
        )
    }

    struct Log {
        dir: tempfile::TempDir,
        name: &'static str,
    }

    impl Log {
        fn new(name: &'static str) -> Log {
            Log { dir: tempfile::tempdir().unwrap(), name }
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join(self.name)
        }

        fn check(&self, bytes: impl AsRef<[u8]>) -> (LogSummary, Damage) {
            std::fs::write(self.path(), bytes).unwrap();
            check(&self.path()).unwrap()
        }

        /// Times of the readable lines, and the messages about the others.
        fn salvage(&self, bytes: impl AsRef<[u8]>) -> (Vec<i64>, Vec<String>) {
            let (summary, damage) = self.check(bytes);
            let mut lines = open(&self.path()).unwrap().skip_damaged();
            let times: Vec<i64> = lines.by_ref().map(|line| line.unwrap().1.t_ms()).collect();
            assert_eq!(times.len() as u64, summary.lines, "`check` and reading count the same lines");
            let messages: Vec<String> = damage.messages().collect();
            assert_eq!(lines.damage().messages().collect::<Vec<_>>(), messages);
            let shown = |text: String| text.replace(&*self.dir.path().display().to_string(), "");
            (times, messages.into_iter().map(shown).collect())
        }
    }

    #[test]
    fn plain_log_cut_at_every_byte_of_the_last_line_keeps_the_lines_before() {
        let log = Log::new("x.jsonl");
        let before = [line(1), line(2)].concat();
        let last = line(3);
        for len in 0..=last.len() {
            for zeros in [0, 1, 5_000] {
                let mut bytes = [before.as_bytes(), &last.as_bytes()[..len]].concat();
                bytes.resize(bytes.len() + zeros, 0);
                let (span, damage) = log.check(&bytes);
                let cut = damage.cut.as_ref().map(|cut| (cut.line, cut.bytes, cut.is_compressed));
                assert!(damage.stretches.is_empty(), "{len} + {zeros}: {damage:?}");
                match (len, zeros) {
                    (0, 0) => assert_eq!((span.lines, cut), (2, None)),
                    // Nothing but the line feed is missing.
                    (_, 0) if len + 1 >= last.len() => assert_eq!((span.lines, cut), (3, None)),
                    (_, zeros) if len == last.len() => {
                        assert_eq!((span.lines, cut), (3, Some((4, zeros as u64, false))))
                    }
                    _ => assert_eq!((span.lines, cut), (2, Some((3, (len + zeros) as u64, false))), "{len} + {zeros}"),
                }
                assert_eq!(open(&log.path()).unwrap().filter(Result::is_ok).count() as u64, span.lines);
            }
        }
        let (_, sentences) = log.salvage([before.as_bytes(), &last.as_bytes()[..20]].concat());
        assert_eq!(
            sentences,
            ["/x.jsonl:3: the last line is incomplete (20 bytes of this line are in the file): dropped"]
        );
        // More zeros than a line may have bytes.
        let (times, sentences) = log.salvage([before.as_bytes(), &vec![0; 5 << 20]].concat());
        assert_eq!((times.len(), sentences.len()), (2, 1), "{sentences:?}");
    }

    #[test]
    fn compressed_log_cut_at_every_byte_of_the_last_frame_keeps_the_lines_before() {
        let log = Log::new("x.jsonl.1.zst");
        let compress =
            |times: std::ops::Range<i64>| zstd::encode_all(times.map(line).collect::<String>().as_bytes(), 3).unwrap();
        let (before, last) = (compress(0..2_000), compress(2_000..2_010));
        for len in 0..=last.len() {
            let (span, damage) = log.check([&before[..], &last[..len]].concat());
            assert!(damage.stretches.is_empty(), "{len}: {damage:?}");
            // A file that ends between two frames counts as complete.
            let whole = len == 0 || len == last.len();
            assert_eq!(damage.cut.is_none(), whole, "{len}: {damage:?}");
            assert_eq!(span.lines, if len < last.len() { 2_000 } else { 2_010 }, "{len}");
            if let Some(cut) = damage.cut {
                assert_eq!((cut.line, cut.bytes, cut.is_compressed), (2_001, 0, true));
            }
        }
        // All complete blocks of a truncated frame are read.
        for len in (0..before.len()).step_by(97) {
            let (times, sentences) = log.salvage(&before[..len]);
            assert_eq!(times, (0..times.len() as i64).collect::<Vec<_>>());
            assert!(
                sentences.len() == 1 && sentences[0].contains("all further lines are lost"),
                "{len}: {sentences:?}"
            );
            assert!(times.len() < 2_000 && (len < before.len() / 2 || times.len() > 500), "{len}: {}", times.len());
        }
    }

    #[test]
    fn damaged_lines_are_skipped_and_reported() {
        let log = Log::new("x.jsonl");
        let long = format!("{{\"t\":1,\"x\":\"{}\"}}\n", "x".repeat(SCAN_LOG_LINE_BYTES_MAX));
        let no_time = line(3).replace("\"t\":3", "\"t\":-3");
        let text =
            [&*line(1), "{\"t\":2,,}\n", "hello\n", &line(3), &long, &no_time, &line(4), "\n", &line(5)].concat();
        let (times, sentences) = log.salvage(&text);
        assert_eq!(times, [1, 3, 4, 5]);
        let [json, time, all] = &sentences[..] else { panic!("{sentences:?}") };
        assert_eq!(
            json,
            "/x.jsonl:2: not a line of a scan log: key must be a string at column 8 (lines 2 to 3, 16 bytes): skipped"
        );
        assert!(time.starts_with("/x.jsonl:5: longer than 2097152 bytes (lines 5 to 6, "), "{time}");
        assert!(all.starts_with("4 lines, ") && all.ends_with(" bytes in 2 ranges skipped"), "{all}");
        // A line feed shows that the last line is damaged, not truncated.
        let (times, sentences) = log.salvage(line(1) + "{\"t\":2\n");
        assert!(times == [1] && sentences[0].contains("x.jsonl:2: not a line"), "{sentences:?}");
        let (times, sentences) =
            log.salvage([line(1).as_bytes(), b"{\"t\":2,\"x\":\"\xff\"}\n", line(3).as_bytes()].concat());
        assert!(times == [1, 3] && sentences[0].contains("x.jsonl:2: not UTF-8 (16 bytes)"), "{sentences:?}");
        let (times, sentences) = log.salvage(line(1) + "hello");
        assert!(times == [1] && sentences[0].contains("x.jsonl:2: not a line"), "{sentences:?}");
        assert!(!log.check("hello\n".repeat(1_000)).1.is_empty());
    }

    #[test]
    fn damaged_ranges_beyond_the_limit_are_counted_and_not_listed() {
        let log = Log::new("x.jsonl");
        let text: String = (0..100).map(|t_ms| line(t_ms) + "x\ny\n").collect();
        let (span, damage) = log.check(text);
        assert_eq!((span.lines, damage.lines, damage.bytes, damage.places), (100, 200, 400, 100));
        assert!(
            damage.stretches.iter().all(|DamagedRange { first, last, bytes, .. }| (last - first, *bytes) == (1, 4))
        );
        let sentences: Vec<String> = damage.messages().collect();
        assert_eq!(sentences.len(), 21);
        assert_eq!(sentences[20], "200 lines, 400 bytes in 100 ranges skipped, 80 of them not listed");
    }

    #[test]
    fn line_with_a_wrong_time_is_skipped_alone() {
        let log = Log::new("x.jsonl");
        for (times, want, skipped) in [
            (&[10, 11, 9_999, 12, 13][..], &[10, 11, 12, 13][..], 3),
            (&[10, 11, 2, 12, 13], &[10, 11, 12, 13], 3),
            (&[9_999, 10, 11], &[10, 11], 1),
            (&[10, 10, 10], &[10, 10, 10], 0),
        ] {
            let (read, sentences) = log.salvage(times.iter().map(|&t_ms| line(t_ms)).collect::<String>());
            assert_eq!(read, want);
            assert_eq!(sentences.len(), usize::from(skipped > 0), "{sentences:?}");
            let (_, damage) = log.check(times.iter().map(|&t_ms| line(t_ms)).collect::<String>());
            assert_eq!(damage.stretches.first().map_or(0, |stretch| stretch.first), skipped, "{times:?}");
        }
    }

    #[test]
    fn flipped_bit_in_compressed_data_ends_the_log_with_an_error() {
        let log = Log::new("x.jsonl.1.zst");
        let text: String = (0..5_000).map(line).collect();
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        std::io::copy(&mut text.as_bytes(), &mut encoder).unwrap();
        let whole = encoder.finish().unwrap();
        for at in (10..whole.len()).step_by(whole.len() / 40) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            let (times, sentences) = log.salvage(&bytes);
            assert!(!sentences.is_empty() && times.len() <= 5_000, "{at}");
            let all: Vec<_> = open(&log.path()).unwrap().take(20_000).collect();
            assert!(all.len() < 20_000 && all.iter().any(Result::is_err), "reading ends: {at}");
        }
    }

    #[test]
    fn tail_counts_damage_among_new_lines_only() {
        let log = Log::new("x.jsonl");
        let text = [line(1), "old\n".into(), line(2), "x\n\0\0\n".into(), line(3), "y".into(), line(4)].concat();
        std::fs::write(log.path(), text + &line(5) + "{\"t\":6").unwrap();
        let is_news = |_: &ServerUrl, t_ms| t_ms > 2;
        let mut tail = read_tail(&log.path(), is_news).unwrap();
        let mut times = Vec::new();
        while let Some((_, outcome)) = tail.next_news(is_news).unwrap() {
            times.push(outcome.t_ms());
        }
        assert_eq!((times, tail.damaged()), (vec![3, 5], 4));
    }
}
