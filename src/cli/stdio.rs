//! Standard output and standard error of the commands.
//!
//! Either may be a pipe whose reader has exited, as with `clqd servers import FILE 2>&1 | head`.
//! `println!` and `eprintln!` panic then, so the lints `print_stdout` and `print_stderr` forbid
//! them.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};
use std::sync::OnceLock;

use super::output::format::{sanitize_multiline, wrapped_below};
use super::screen;

/// See [`width`].
static WIDTH: OnceLock<Option<usize>> = OnceLock::new();

/// Determines the width of standard output, once per process.
pub fn detect_width() {
    let by_user = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let of_terminal = || screen::size().map(|(columns, _)| columns);
    let width = by_user.filter(|&width| width > 0).or_else(of_terminal);
    _ = WIDTH.set(width);
}

/// The columns of the terminal, or the value of the variable COLUMNS. `None`: lines may be of any
/// length, because standard output is a file or a pipe, or [`detect_width`] was not called.
pub fn width() -> Option<usize> {
    WIDTH.get().copied().flatten()
}

/// Prints text to standard error, without control characters: it may have text of strangers. On a terminal long lines are
/// wrapped. An error is ignored: it could be reported nowhere.
pub fn note(text: impl Display) {
    let text = sanitize_multiline(&text.to_string());
    let width = screen::size_of(io::stderr()).map_or(usize::MAX, |(columns, _)| columns);
    for line in text.split('\n').flat_map(|line| wrapped_below(line, width)) {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Whether somebody can answer a question.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question on the terminal; `None`: there is none.
pub fn confirm(question: impl Display) -> io::Result<Option<bool>> {
    if !is_interactive() {
        return Ok(None);
    }
    note(format_args!("{question} [y/N]"));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(Some(answer.trim().eq_ignore_ascii_case("y")))
}

/// Prints a line to standard output for a program that continues if nobody reads it, such as
/// `clqd fleet`.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// The error of a write to a pipe whose reader has exited.
pub fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == ErrorKind::BrokenPipe
}

/// Standard output of a command.
#[derive(Debug)]
pub struct Output {
    out: StdoutLock<'static>,
    if_closed: IfClosed,
}

#[derive(Debug, PartialEq, Eq)]
enum IfClosed {
    Fail,
    Discard,
}

impl Output {
    /// For a command that ends when nobody reads its output: writing fails with
    /// [`ErrorKind::BrokenPipe`].
    pub fn ending() -> Output {
        Output { out: io::stdout().lock(), if_closed: IfClosed::Fail }
    }

    /// For a command that must do all of its work, such as adding servers: output is discarded if
    /// nobody reads it.
    pub fn lasting() -> Output {
        Output { out: io::stdout().lock(), if_closed: IfClosed::Discard }
    }

    fn checked<T>(&self, result: io::Result<T>, if_discarded: T) -> io::Result<T> {
        match result {
            Err(error) if self.if_closed == IfClosed::Discard && is_closed_pipe(&error) => Ok(if_discarded),
            result => result,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.checked(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.checked(flushed, ())
    }
}
