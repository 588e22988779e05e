//! Reads the lines of a scan log, plain or zstd, with every error.
//!
//! An incomplete end ([`Truncation`]) is caused by a crash or a power cut: the last line
//! without its line feed, or compressed data that end inside a frame.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use super::error::{LogError, Truncation};
use super::line::{self, LineError, parse};
use crate::limits::SCAN_LOG_LINE_BYTES_MAX;
use crate::log::LogEvent;

/// The lines of one file; empty lines are skipped. After an error in one line the next
/// line follows. After any other error there is none.
pub struct LogReader {
    pub(super) path: PathBuf,
    input: Box<dyn BufRead + Send>,
    is_compressed: bool,
    /// Number of the line in the buffer.
    pub(super) line: u64,
    /// The last line read, with its line feed; truncated to the maximum length.
    buffer: Vec<u8>,
    /// Length of that line, bytes.
    pub(super) line_bytes: u64,
    /// The truncated part of the line is all zeros.
    rest_is_zeros: bool,
    ended: bool,
    /// Reported after the last line.
    truncation: Option<Truncation>,
}

/// Opens a log; a file whose name ends in `.zst` is decompressed.
pub fn open(path: &Path) -> Result<LogReader, LogError> {
    let failed = |source| LogError::Io { path: path.to_owned(), source };
    from_file(path, File::open(path).map_err(failed)?)
}

/// The same for an open file; `path` shows whether it is compressed.
pub fn from_file(path: &Path, file: File) -> Result<LogReader, LogError> {
    let failed = |source| LogError::Io { path: path.to_owned(), source };
    let is_compressed = path.extension().is_some_and(|e| e == "zst");
    let input: Box<dyn BufRead + Send> = match is_compressed {
        true => Box::new(BufReader::with_capacity(1 << 18, zstd::Decoder::new(file).map_err(failed)?)),
        false => Box::new(BufReader::with_capacity(1 << 18, file)),
    };
    Ok(LogReader {
        path: path.to_owned(),
        input,
        is_compressed,
        line: 0,
        buffer: Vec::new(),
        line_bytes: 0,
        rest_is_zeros: true,
        ended: false,
        truncation: None,
    })
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    LineFeed,
    File,
}

/// A line that was parsed.
pub(super) struct ParsedLine {
    pub(super) line: u64,
    pub(super) bytes: u64,
    pub(super) event: LogEvent,
}

impl LogReader {
    /// Reads the next line that is not empty. `None` at the end of the file.
    pub(super) fn read_line(&mut self) -> Result<Option<LineEnd>, LogError> {
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
            ErrorKind::UnexpectedEof if self.is_compressed => {
                self.truncation = Some(Truncation { path, line, bytes: 0, is_compressed: true });
                Ok(LineEnd::File)
            }
            // Errors of the file system have an error number, those of the decoder do not.
            _ if self.is_compressed && source.raw_os_error().is_none() => {
                Err(LogError::Decompress { path, line, source })
            }
            _ => Err(LogError::Io { path, source }),
        }
    }

    /// Reads the next line, whatever its time.
    pub(super) fn read(&mut self) -> Option<Result<ParsedLine, LogError>> {
        let end = match self.read_line() {
            Ok(Some(end)) => end,
            Ok(None) => return self.truncation.take().map(|truncation| Err(LogError::Truncated(truncation))),
            Err(error) => return Some(Err(error)),
        };
        let (line, bytes) = (self.line, self.line_bytes);
        let error = match self.parse_line() {
            Ok(event) => {
                if let Some(truncation) = &mut self.truncation {
                    truncation.line = line + 1;
                }
                return Some(Ok(ParsedLine { line, bytes, event }));
            }
            Err(error) => error,
        };
        if end == LineEnd::File && self.is_beginning_of_line() {
            self.truncation = None;
            return Some(Err(LogError::Truncated(Truncation {
                path: self.path.clone(),
                line,
                bytes,
                is_compressed: self.is_compressed,
            })));
        }
        Some(Err(error))
    }

    /// Parses the line in the buffer.
    fn parse_line(&self) -> Result<LogEvent, LogError> {
        let (path, line) = (&self.path, self.line);
        if self.line_bytes > self.buffer.len() as u64 {
            return Err(LogError::TooLong { path: path.clone(), line });
        }
        let text = std::str::from_utf8(&self.buffer).map_err(|_| LogError::NotUtf8 { path: path.clone(), line })?;
        parse(text.trim_ascii()).map_err(|source: LineError| LogError::Line { path: path.clone(), line, source })
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
        let is_padded = written.len() < self.buffer.len() && parse(text).is_ok();
        self.rest_is_zeros && (is_padded || line::is_truncated_line(text))
    }
}
