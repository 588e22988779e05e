//! Log output: to the journal if systemd started the process, else to standard error.

use std::backtrace::Backtrace;
use std::io::{IsTerminal, Write, stderr};
use std::os::fd::AsFd;
use std::panic::{self, PanicHookInfo};
use std::thread;

use anyhow::Context;
use nix::sys::stat::fstat;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// Changes the log filter at run time.
#[derive(Clone, Debug)]
pub struct LogFilter(reload::Handle<EnvFilter, Registry>);

impl LogFilter {
    /// Error: the string is not a filter, or logging has stopped.
    pub fn set(&self, filter: &str) -> anyhow::Result<()> {
        let filter =
            EnvFilter::try_new(limit_to_clqd(filter)).with_context(|| format!("{filter:?} is not a log filter"))?;
        self.0.reload(filter).context("cannot change the log filter")
    }
}

/// Restricts a bare level to clqd's own modules: the embedded database would fill the
/// journal with its own lines, unless the filter names it. At level `trace` the HTTP client would log URLs with API keys.
fn limit_to_clqd(filter: &str) -> String {
    match filter.contains([',', '=', '[']) {
        true => format!("sled=warn,{filter},ureq=info"),
        false => format!("warn,clqd={filter}"),
    }
}

/// Starts logging, once per process.
pub fn start(filter: &str) -> anyhow::Result<LogFilter> {
    let filter =
        EnvFilter::try_new(limit_to_clqd(filter)).with_context(|| format!("{filter:?} is not a log filter"))?;
    let (filter, handle) = reload::Layer::new(filter);
    let journal = if stderr_is_journal() { tracing_journald::layer().ok() } else { None };
    let lines = journal.is_none().then(|| {
        tracing_subscriber::fmt::layer().with_writer(stderr).with_ansi(stderr().is_terminal()).with_target(true)
    });
    tracing_subscriber::registry().with(filter).with(journal).with(lines).try_init().context("cannot start logging")?;
    Ok(LogFilter(handle))
}

/// Reports each panic in one line, in the log once logging has started. Libraries panic where a
/// command can only report an error, such as at a damaged database. At level `debug` the log
/// also has the backtrace.
pub fn report_panics_in_one_line() {
    panic::set_hook(Box::new(|panic| {
        let line = panic_line(panic);
        if tracing::dispatcher::has_been_set() {
            tracing::error!("{line}");
            tracing::debug!("{}", Backtrace::force_capture());
        } else {
            // The reader of standard error may have exited.
            _ = writeln!(stderr(), "clqd: {line}");
        }
    }));
}

fn panic_line(panic: &PanicHookInfo<'_>) -> String {
    let thread = thread::current();
    let payload = panic.payload();
    let message = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    let message = message.unwrap_or("no message").split_whitespace().collect::<Vec<_>>().join(" ");
    let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    format!("thread {:?} panicked{place}: {message}", thread.name().unwrap_or("unnamed"))
}

/// `$JOURNAL_STREAM` contains device and inode of the journal; standard error may have
/// been redirected since it was set.
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    fstat(stderr().as_fd()).is_ok_and(|at| stream == format!("{}:{}", at.st_dev, at.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_of_several_levels_leaves_out_the_database() {
        assert_eq!(limit_to_clqd("debug"), "warn,clqd=debug");
        assert_eq!(limit_to_clqd("debug,clqd::scan=info"), "sled=warn,debug,clqd::scan=info,ureq=info");
    }
}
