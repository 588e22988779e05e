//! Progress of a rescan: expected duration and scanned servers. Printed to standard
//! error, as a bar only on a terminal.

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "when progress was last printed"))]

use std::io::{self, IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::api::Progress;
use crate::cli::output::format::{duration, group_digits};
use crate::cli::stdio::note;

/// Time between two lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The progress of one `clqd rescan`.
#[derive(Debug, Default)]
pub struct ScanProgress {
    servers: u64,
    scanned: u64,
    /// Only on a terminal.
    bar: Option<ProgressBar>,
    line_at: Option<Instant>,
}

impl ScanProgress {
    /// Handles a progress line: the daemon has started, or is still scanning.
    pub fn progress(&mut self, progress: Progress) {
        if let Some(servers) = progress.servers.filter(|&servers| servers > 0) {
            self.servers = servers;
            note(start_message(servers, progress.expected_ms));
            if stderr().is_terminal() {
                let style = ProgressStyle::with_template("{bar:30} {pos} of {len} servers, {elapsed}");
                self.bar = Some(ProgressBar::new(servers).with_style(style.expect("a valid template")));
            }
            self.line_at = Some(Instant::now() + LINE_INTERVAL);
            return;
        }
        match &self.bar {
            Some(bar) => bar.tick(),
            None if self.line_at.is_some_and(|at| Instant::now() >= at) => {
                note(format_args!(
                    "clqd: {} of {} servers scanned",
                    group_digits(self.scanned),
                    group_digits(self.servers)
                ));
                self.line_at = Some(Instant::now() + LINE_INTERVAL);
            }
            None => {}
        }
    }

    /// Counts a scanned server; `print` prints its line.
    pub fn scanned(&mut self, print: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        self.scanned += 1;
        match &self.bar {
            Some(bar) => {
                let printed = bar.suspend(print);
                bar.inc(1);
                printed
            }
            None => print(),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn start_message(servers: u64, expected_ms: Option<u64>) -> String {
    let noun = if servers == 1 { "server" } else { "servers" };
    let expected = expected_ms.map_or_else(String::new, |ms| format!("; expect up to {}", duration(ms)));
    format!("clqd: scanning {} {noun}{expected}", group_digits(servers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_message_names_servers_and_expected_time() {
        assert_eq!(start_message(1, Some(252_000)), "clqd: scanning 1 server; expect up to 4 min 12 s");
        assert_eq!(start_message(1_200, None), "clqd: scanning 1,200 servers");
    }
}
