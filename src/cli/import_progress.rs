//! Progress of `clqd servers import`, on standard error and only on a terminal.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::output::format::group_digits;

/// Time between two images of the spinner.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// A spinner while a master is queried, or a bar while servers are added.
#[derive(Debug, Default)]
pub struct ImportProgress {
    /// Only on a terminal.
    bar: Option<ProgressBar>,
}

impl ImportProgress {
    /// A master is queried; it may take a minute until it replies.
    pub fn querying(master: &str) -> ImportProgress {
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner} {prefix}: {msg}, {elapsed}").expect("a valid template");
            let bar = ProgressBar::new_spinner().with_style(style).with_prefix(master.to_owned());
            bar.set_message("waiting for a reply");
            bar.enable_steady_tick(SPINNER_INTERVAL);
            bar
        });
        ImportProgress { bar }
    }

    /// Number of addresses received so far.
    pub fn received(&self, addresses: usize) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} addresses", group_digits(addresses as u64)));
        }
    }

    /// This many servers are to be added.
    pub fn adding(servers: usize) -> ImportProgress {
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:30} {pos} of {len} servers, {elapsed}");
            ProgressBar::new(servers as u64).with_style(style.expect("a valid template"))
        });
        ImportProgress { bar }
    }

    /// Counts a server.
    pub fn added(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }
}

impl Drop for ImportProgress {
    /// Removes the bar.
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
