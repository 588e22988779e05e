//! A screen of lines on a terminal, for the demonstrations: drawn over and over again, with
//! single keys as input.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use unicode_width::UnicodeWidthChar;

/// Terminals without a size are this large.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

/// Ctrl-C and Esc, as bytes of a terminal in raw mode.
const CTRL_C: u8 = 3;
const ESCAPE: u8 = 27;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    Plain,
    Title,
    Soft,
    Good,
    Bad,
    Warning,
    Graph,
}

impl Style {
    /// Parameters of the control sequence that begins it (ECMA-48, SGR).
    fn sgr(self) -> &'static str {
        match self {
            Style::Plain => "0",
            Style::Title => "0;1;30;46",
            Style::Soft => "0;90",
            Style::Good => "0;1;32",
            Style::Bad => "0;31",
            Style::Warning => "0;33",
            Style::Graph => "0;36",
        }
    }
}

/// A line of parts in different styles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line(Vec<(String, Style)>);

impl Line {
    pub fn new(text: impl Into<String>, style: Style) -> Line {
        Line(vec![(text.into(), style)])
    }

    pub fn and(mut self, text: impl Into<String>, style: Style) -> Line {
        self.0.push((text.into(), style));
        self
    }

    /// Adds the parts of another line.
    pub fn append(&mut self, Line(parts): Line) {
        self.0.extend(parts);
    }

    pub fn text(&self) -> String {
        self.0.iter().map(|(text, _)| text.as_str()).collect()
    }

    /// Truncates the line to a width in columns. Returns its width. Characters without a column are
    /// left out, control characters among them.
    fn cut(&mut self, width: usize) -> usize {
        let (mut used, mut is_full) = (0, false);
        for (text, _) in &mut self.0 {
            text.retain(|c| {
                let columns = c.width().unwrap_or(0);
                is_full |= used + columns > width;
                let is_kept = columns > 0 && !is_full;
                used += if is_kept { columns } else { 0 };
                is_kept
            });
        }
        used
    }

    /// Truncates the line, or adds spaces, to a width in columns.
    pub fn fit(mut self, width: usize) -> Line {
        let used = self.cut(width);
        self.and(" ".repeat(width - used), Style::Plain)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line::new(text, Style::Plain)
    }
}

/// A frame of this width and height around lines, with texts in its upper and its lower border; nothing if there is no
/// place for it.
pub fn framed(title: &str, below: &str, lines: Vec<Line>, (width, height): (usize, usize)) -> Vec<Line> {
    if height < 2 {
        return Vec::new();
    }
    let inside = width.saturating_sub(2);
    let border = |begin: &str, text: &str, end: &str| {
        let mut text = Line::from(text.to_owned());
        let used = text.cut(inside);
        Line::from(format!("{begin}{}{}{end}", text.text(), "─".repeat(inside - used)))
    };
    let rows = lines.into_iter().chain(std::iter::repeat_with(Line::default)).take(height.saturating_sub(2));
    let rows = rows.map(|line| {
        let mut row = Line::from("│".to_owned());
        row.append(line.fit(inside));
        row.and("│", Style::Plain)
    });
    let mut all = vec![border("┌", title, "┐")];
    all.extend(rows);
    all.push(border("└", below, "┘"));
    all
}

/// Two columns of lines; the left one is this wide.
pub fn beside(left: Vec<Line>, width: usize, right: Vec<Line>) -> Vec<Line> {
    let count = left.len().max(right.len());
    let mut right = right.into_iter();
    let left = left.into_iter().chain(std::iter::repeat_with(Line::default)).take(count);
    left.map(|line| {
        let mut line = line.fit(width);
        line.append(right.next().unwrap_or_default());
        line
    })
    .collect()
}

/// A graph of bars, one column for each value, as high as `height` lines for the largest.
pub fn bars(values: &[u64], height: usize) -> Vec<Line> {
    const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = values.iter().copied().max().unwrap_or(0).max(1);
    let eighths = |value: u64| (value as f64 / largest as f64 * 8.0 * height as f64).round() as usize;
    (0..height)
        .rev()
        .map(|row| {
            values.iter().map(|value| EIGHTHS[eighths(*value).saturating_sub(8 * row).min(8)]).collect::<String>()
        })
        .map(|line| Line::new(line, Style::Graph))
        .collect()
}

/// Columns and lines of the terminal of standard output.
pub fn size() -> Option<(usize, usize)> {
    size_of(io::stdout())
}

/// Columns and lines of a terminal; `None`: it is a file or a pipe.
pub fn size_of(terminal: impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(terminal).ok()?;
    Some((size.ws_col.into(), size.ws_row.into())).filter(|&(columns, lines)| columns > 0 && lines > 0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// `q`, Esc or Ctrl-C, which is a key in raw mode, not a signal.
    Quit,
    Digit(u8),
}

impl Key {
    /// The first digit of what a terminal sent, unless it also has a key that quits. An escape sequence, such as that of
    /// an arrow key, is no key.
    fn parse(mut bytes: &[u8]) -> Option<Key> {
        let mut first = None;
        loop {
            bytes = match bytes {
                [] => return first,
                [ESCAPE, b'[', rest @ ..] => {
                    let end = rest.iter().position(|byte| (b'@'..=b'~').contains(byte));
                    &rest[end.map_or(rest.len(), |end| end + 1)..]
                }
                [ESCAPE, b'O', _, rest @ ..] => rest,
                [ESCAPE | CTRL_C | b'q', ..] => return Some(Key::Quit),
                [digit @ b'0'..=b'9', rest @ ..] => {
                    first = first.or(Some(Key::Digit(digit - b'0')));
                    rest
                }
                [_, rest @ ..] => rest,
            };
        }
    }
}

/// The terminal in raw mode, with a screen of its own. Dropping it restores the terminal.
pub struct Screen {
    before: Termios,
}

impl Screen {
    pub fn start() -> io::Result<Screen> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let screen = Screen { before };
        // The message of a panic would disappear with the alternate screen.
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let print = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if IS_SHOWN.swap(false, Ordering::Relaxed) {
                    leave();
                }
                print(panic);
            }));
        });
        IS_SHOWN.store(true, Ordering::Relaxed);
        // The alternate screen, empty, without a cursor.
        io::stdout().write_all(b"\x1b[?1049h\x1b[?25l\x1b[2J")?;
        Ok(screen)
    }

    /// Draws the lines that a picture has at the present size of the terminal.
    pub fn draw(&mut self, picture: impl FnOnce((usize, usize)) -> Vec<Line>) -> io::Result<()> {
        let size = size().unwrap_or(DEFAULT_SIZE);
        let (width, height) = size;
        let lines = picture(size).into_iter().chain(std::iter::repeat_with(Line::default));
        let mut out = String::from("\x1b[H");
        for (n, line) in lines.take(height).enumerate() {
            out.push_str(if n == 0 { "" } else { "\r\n" });
            for (text, style) in line.fit(width).0 {
                out.push_str(&format!("\x1b[{}m{text}", style.sgr()));
            }
        }
        out.push_str("\x1b[0m");
        let mut stdout = io::stdout();
        stdout.write_all(out.as_bytes())?;
        stdout.flush()
    }

    /// Waits for a key, at most this long.
    pub fn key(&mut self, wait: Duration) -> io::Result<Option<Key>> {
        let stdin = io::stdin();
        let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 64];
        match rustix::io::read(&stdin, &mut bytes)? {
            // The terminal was closed.
            0 => Ok(Some(Key::Quit)),
            count => Ok(Key::parse(&bytes[..count])),
        }
    }
}

/// Whether the alternate screen is shown.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Leaves the alternate screen, with a cursor.
fn leave() {
    _ = io::stdout().write_all(b"\x1b[0m\x1b[?25h\x1b[?1049l");
    _ = io::stdout().flush();
}

/// Whether there is a terminal to draw on and to read keys from.
pub fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

impl Drop for Screen {
    fn drop(&mut self) {
        if IS_SHOWN.swap(false, Ordering::Relaxed) {
            leave();
        }
        _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::text).collect()
    }

    fn line(text: &str) -> Line {
        Line::from(text.to_owned())
    }

    #[test]
    fn lines_fit_a_width() {
        assert_eq!(line("ab").fit(4).text(), "ab  ");
        assert_eq!(line("abcd").and("ef", Style::Bad).fit(5).text(), "abcde");
        assert_eq!(line("a中b").fit(2).text(), "a ", "a wide character is not cut");
        assert_eq!(line("a\x1b[31m\u{301}\nb").fit(8).text(), "a[31mb  ");
    }

    #[test]
    fn frames_have_their_size() {
        let lines = framed(" scans ", " url ", vec![line("one"), line("two")], (11, 5));
        assert_eq!(texts(&lines), ["┌ scans ──┐", "│one      │", "│two      │", "│         │", "└ url ────┘"]);
        let lines = framed(" a long title ", "", vec![line("a long line")], (6, 3));
        assert_eq!(texts(&lines), ["┌ a l┐", "│a lo│", "└────┘"]);
        assert!(framed("", "", vec![line("a")], (6, 1)).is_empty());
        let lines = beside(vec![line("a")], 3, vec![line("b"), line("c")]);
        assert_eq!(texts(&lines), ["a  b", "   c"]);
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        assert_eq!(texts(&bars(&[0, 4, 8, 12, 16], 2)), ["   ▄█", " ▄███"]);
        assert_eq!(texts(&bars(&[0, 0], 1)), ["  "]);
    }

    #[test]
    fn keys_are_told_from_sequences() {
        for (bytes, key) in [
            (&b"q"[..], Some(Key::Quit)),
            (b"\x03", Some(Key::Quit)),
            (b"\x1b", Some(Key::Quit)),
            (b"\x1b[A", None),
            (b"7", Some(Key::Digit(7))),
            (b"x", None),
            // Several within one wait.
            (b"\x1b[A\x1b[1;5Bq", Some(Key::Quit)),
            (b"x\x03", Some(Key::Quit)),
            (b"\x1b\x1b", Some(Key::Quit)),
            (b"\x1bOP13", Some(Key::Digit(1))),
            (b"1q", Some(Key::Quit)),
            (b"\x1b[1", None),
        ] {
            assert_eq!(Key::parse(bytes), key, "{bytes:?}");
        }
    }
}
