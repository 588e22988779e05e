//! One closed file: whether it contains forgotten names, and a copy without them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use super::{ForgottenNames, RewriteError};
use crate::scan_log::damage::Damage;
use crate::scan_log::error::LogError;
use crate::scan_log::line;
use crate::scan_log::reader::{LogReader, parse_with_time};

/// Bytes of text after which the work pauses; they take some milliseconds.
const BYTES_PER_STEP: u64 = 256 << 10;

/// The pause. Much longer than the step, so that the work takes a small part of one core.
const STEP_PAUSE: Duration = Duration::from_millis(5);

/// Waits for a duration. Returns false if the work must stop.
pub(super) type Pause<'a> = &'a mut dyn FnMut(Duration) -> bool;

/// The replacement of an unreadable line.
const UNREADABLE_START: &[u8] = b"{\"unreadable_bytes\":";

/// A line, and what to write instead.
enum Line {
    Unchanged,
    Replaced(Vec<u8>),
    Unreadable(LogError),
}

/// The result of rewriting a file.
#[derive(Debug, Default)]
pub(super) struct Rewritten {
    /// Lines with a forgotten name.
    pub(super) lines: u64,
    pub(super) damage: Damage,
}

/// Whether a file must be rewritten. `is_active`: an incomplete last line is still being written.
pub(super) fn must_be_rewritten(
    mut lines: LogReader,
    names: &ForgottenNames,
    is_active: bool,
    pause: Pause,
) -> Result<bool, RewriteError> {
    let mut steps = Steps::new(pause);
    while let Some(line) = next_line(&mut lines, names)? {
        steps.add(lines.line_bytes)?;
        match line {
            Line::Unchanged => {}
            Line::Unreadable(LogError::Truncated(_)) if is_active => {}
            Line::Replaced(_) | Line::Unreadable(_) => return Ok(true),
        }
    }
    Ok(false)
}

/// Writes a copy without forgotten names, and returns when it is on disk. After an error there may
/// be a part of the copy. `like`: the original, whose access rights the copy gets.
pub(super) fn write_copy(
    mut lines: LogReader,
    like: &File,
    to: &Path,
    names: &ForgottenNames,
    pause: Pause,
) -> Result<Rewritten, RewriteError> {
    let failed = |source| RewriteError::Write { path: to.to_owned(), source };
    let mut out = create(to, like).map_err(failed)?;
    let mut steps = Steps::new(pause);
    let mut rewritten = Rewritten::default();
    let mut readable = 0_u64;
    while let Some(line) = next_line(&mut lines, names)? {
        steps.add(lines.line_bytes)?;
        let written = match line {
            Line::Unchanged => {
                readable += 1;
                let text = lines.buffer();
                let end: &[u8] = if text.ends_with(b"\n") { b"" } else { b"\n" };
                out.write_all(text).and_then(|()| out.write_all(end))
            }
            Line::Replaced(text) => {
                readable += 1;
                rewritten.lines += 1;
                out.write_all(&text)
            }
            Line::Unreadable(error) => {
                rewritten.damage.skip(lines.line, lines.line_bytes, error);
                writeln!(out, "{}{}}}", String::from_utf8_lossy(UNREADABLE_START), lines.line_bytes)
            }
        };
        written.map_err(failed)?;
    }
    if let (0, Some(first)) = (readable, rewritten.damage.ranges.pop()) {
        return Err(RewriteError::NothingReadable { path: lines.path.clone(), source: first.why });
    }
    let finished = out.finish().and_then(|out| Ok(out.into_inner()?));
    finished.and_then(|file| file.sync_all()).map_err(failed)?;
    Ok(rewritten)
}

fn create<'a>(path: &Path, like: &File) -> io::Result<zstd::Encoder<'a, BufWriter<File>>> {
    let file = File::create(path)?;
    fs::set_permissions(path, like.metadata()?.permissions())?;
    let mut out = zstd::Encoder::new(BufWriter::new(file), 3)?;
    // Detects flipped bits.
    out.include_checksum(true)?;
    Ok(out)
}

/// The next line that is not empty. Error: the file cannot be read.
fn next_line(lines: &mut LogReader, names: &ForgottenNames) -> Result<Option<Line>, LogError> {
    Ok(match lines.read(parse_with_time) {
        None => None,
        Some(Ok(read)) => {
            let mut event = read.value;
            Some(match names.replace_in(&mut event) {
                false => Line::Unchanged,
                true => {
                    let mut text = Vec::new();
                    line::write_event(&mut text, &event);
                    Line::Replaced(text)
                }
            })
        }
        Some(Err(error @ LogError::Io { .. })) => return Err(error),
        Some(Err(LogError::Line { .. })) if is_unreadable_mark(lines.buffer()) => Some(Line::Unchanged),
        Some(Err(error)) => Some(Line::Unreadable(error)),
    })
}

/// Whether a line stands for an unreadable one.
fn is_unreadable_mark(line: &[u8]) -> bool {
    let digits = line.trim_ascii().strip_prefix(UNREADABLE_START).and_then(|rest| rest.strip_suffix(b"}"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

/// Divides the work into steps with pauses.
struct Steps<'a> {
    pause: Pause<'a>,
    bytes: u64,
}

impl Steps<'_> {
    fn new(pause: Pause) -> Steps {
        Steps { pause, bytes: 0 }
    }

    /// Error: the work must stop.
    fn add(&mut self, bytes: u64) -> Result<(), RewriteError> {
        self.bytes += bytes;
        if self.bytes < BYTES_PER_STEP {
            return Ok(());
        }
        self.bytes = 0;
        if (self.pause)(STEP_PAUSE) { Ok(()) } else { Err(RewriteError::Stopped) }
    }
}
