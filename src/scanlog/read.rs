//! Reading a scan log from a file, plain or zstd.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::line::{self, LineError, parse};
use crate::engine::Outcome;
use crate::limits::SCAN_LOG_LINE_BYTES_MAX;
use crate::model::ServerUrl;

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("scan log {path:?}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line}", path = path.display())]
    Line { path: PathBuf, line: u64, source: LineError },
    #[error("{path}:{line}: not UTF-8", path = path.display())]
    NotUtf8 { path: PathBuf, line: u64 },
    #[error("{path}:{line}: longer than {SCAN_LOG_LINE_BYTES_MAX} bytes", path = path.display())]
    TooLong { path: PathBuf, line: u64 },
    #[error("{path}:{line}: t = {t_ms} is before the line above, t = {before_ms}: a scan log is in order of time", path = path.display())]
    Order { path: PathBuf, line: u64, t_ms: i64, before_ms: i64 },
}

/// The lines of one file, read one after the other; empty lines are passed over.
pub struct LogLines {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    line: u64,
    latest_ms: i64,
    buffer: Vec<u8>,
}

/// Opens a log; a name that ends in `.zst` is unpacked.
pub fn open(path: &Path) -> Result<LogLines, LogError> {
    let failed = |source| LogError::Io { path: path.to_owned(), source };
    of_file(path, File::open(path).map_err(failed)?)
}

/// The same of a file that is open; `path` tells whether it is packed.
pub fn of_file(path: &Path, file: File) -> Result<LogLines, LogError> {
    let failed = |source| LogError::Io { path: path.to_owned(), source };
    let input: Box<dyn BufRead + Send> = match path.extension().is_some_and(|e| e == "zst") {
        true => Box::new(BufReader::with_capacity(1 << 18, zstd::Decoder::new(file).map_err(failed)?)),
        false => Box::new(BufReader::with_capacity(1 << 18, file)),
    };
    Ok(LogLines { path: path.to_owned(), input, line: 0, latest_ms: i64::MIN, buffer: Vec::new() })
}

/// What a whole log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpan {
    pub lines: u64,
    /// Moments of the first and the last line, Unix ms; of an empty log the
    /// latest there is, and the earliest.
    pub first_ms: i64,
    pub last_ms: i64,
}

/// Reads a whole log and tells what is wrong with it first, so that nothing of
/// a malformed one is applied. Nothing is made of the lines, so it takes half of
/// the time that reading them takes.
pub fn check(path: &Path) -> Result<LogSpan, LogError> {
    let mut span = LogSpan { lines: 0, first_ms: i64::MAX, last_ms: i64::MIN };
    let mut lines = open(path)?;
    while let Some(moment) = lines.read(|text| line::check(text).map(|t_ms| (t_ms, t_ms))) {
        let t_ms = moment?;
        span.first_ms = span.first_ms.min(t_ms);
        span.last_ms = t_ms;
        span.lines += 1;
    }
    Ok(span)
}

/// Bytes of the end of a log that are looked at first.
const TAIL_BYTES: u64 = 1 << 20;

/// The last lines of a plain log, from the first that is news. Where one line
/// is not news, none before it is. Lines that cannot be read are passed over.
pub fn tail(path: &Path, is_news: impl Fn(&ServerUrl, i64) -> bool) -> Result<Vec<(ServerUrl, Outcome)>, LogError> {
    let failed = |source| LogError::Io { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    let mut window = TAIL_BYTES;
    loop {
        let from = len.saturating_sub(window);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        file.read_to_end(&mut bytes).map_err(failed)?;
        // All but the first are whole lines.
        let lines = bytes.split(|&b| b == b'\n').skip(usize::from(from > 0));
        let mut lines = lines.filter_map(|line| parse(std::str::from_utf8(line).ok()?).ok()).peekable();
        let is_news = |line: &(ServerUrl, Outcome)| is_news(&line.0, line.1.t_ms());
        if from == 0 || lines.peek().is_some_and(|first| !is_news(first)) {
            return Ok(lines.filter(is_news).collect());
        }
        window *= 2;
    }
}

impl LogLines {
    fn read_line(&mut self) -> Result<bool, LogError> {
        loop {
            self.buffer.clear();
            self.line += 1;
            if !self.read_to_line_feed()? {
                return Ok(false);
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Into the buffer, with the line feed; false where nothing is left.
    fn read_to_line_feed(&mut self) -> Result<bool, LogError> {
        loop {
            let part = match self.input.fill_buf() {
                Ok(part) => part,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(source) => return Err(LogError::Io { path: self.path.clone(), source }),
            };
            let end = memchr::memchr(b'\n', part);
            let len = end.map_or(part.len(), |end| end + 1);
            if self.buffer.len() + len > SCAN_LOG_LINE_BYTES_MAX {
                return Err(LogError::TooLong { path: self.path.clone(), line: self.line });
            }
            self.buffer.extend_from_slice(&part[..len]);
            self.input.consume(len);
            if end.is_some() || len == 0 {
                return Ok(!self.buffer.is_empty());
            }
        }
    }

    /// Reads the next line, as a moment and something with it.
    fn read<T>(&mut self, reader: impl Fn(&str) -> Result<(i64, T), LineError>) -> Option<Result<T, LogError>> {
        match self.read_line() {
            Ok(false) => return None,
            Ok(true) => {}
            Err(e) => return Some(Err(e)),
        }
        let (path, line) = (|| self.path.clone(), self.line);
        let Ok(text) = std::str::from_utf8(&self.buffer) else {
            return Some(Err(LogError::NotUtf8 { path: path(), line }));
        };
        let (t_ms, read) = match reader(text.trim_ascii()) {
            Ok(read) => read,
            Err(source) => return Some(Err(LogError::Line { path: path(), line, source })),
        };
        if t_ms < self.latest_ms {
            let before_ms = self.latest_ms;
            return Some(Err(LogError::Order { path: path(), line, t_ms, before_ms }));
        }
        self.latest_ms = t_ms;
        Some(Ok(read))
    }
}

impl Iterator for LogLines {
    type Item = Result<(ServerUrl, Outcome), LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read(|text| parse(text).map(|(url, outcome)| (outcome.t_ms(), (url, outcome))))
    }
}
