//! Where the recorded events come from: the log in a state directory, or the JSON lines of a scan log.

use std::path::PathBuf;

use anyhow::ensure;

use crate::cli::replay::CheckedLogs;
use crate::config::Config;
use crate::log::{LogEvent, LogReader};
use crate::scan_log;
use crate::state::recovery;

/// Recorded events that can be read several times.
pub trait RecordedEvents {
    /// Passes on all events, in the order in which they were applied.
    fn each(&self, each: &mut dyn FnMut(LogEvent) -> anyhow::Result<()>) -> anyhow::Result<()>;
}

impl RecordedEvents for CheckedLogs {
    fn each(&self, each: &mut dyn FnMut(LogEvent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.each_event(each)
    }
}

/// The log in a state directory.
struct StateLog {
    dir: PathBuf,
}

impl RecordedEvents for StateLog {
    fn each(&self, each: &mut dyn FnMut(LogEvent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut reader = LogReader::open(&self.dir)?;
        let mut events = Vec::new();
        while reader.read_batch(|event| events.push(event))?.is_some() {
            // Weeks are closed by the times of the scans, as in a replay of a scan log.
            events.drain(..).filter(|event| !matches!(event, LogEvent::Tick { .. })).try_for_each(&mut *each)?;
        }
        Ok(())
    }
}

/// Opens the given files of a scan log. Without files: all files of the scan log of the config, or the
/// log in its state directory if it has none.
pub fn open(files: &[PathBuf], salvage: bool, config: &Config) -> anyhow::Result<Box<dyn RecordedEvents>> {
    let files = match files {
        [] if config.scan_log.path.as_os_str().is_empty() => {
            return Ok(Box::new(StateLog { dir: recovery::log_dir(&config.state_dir) }));
        }
        [] => files_of(config)?,
        files => files.to_vec(),
    };
    Ok(Box::new(CheckedLogs::check(&files, salvage)?))
}

/// The files of the scan log that the config names, oldest first.
fn files_of(config: &Config) -> anyhow::Result<Vec<PathBuf>> {
    let log = &config.scan_log.path;
    let newest = [scan_log::rotated_file(log), log.clone()].into_iter().filter(|file| file.exists());
    let files: Vec<PathBuf> = scan_log::compressed_files(log).into_iter().chain(newest).collect();
    ensure!(
        !files.is_empty(),
        "{}, the scan log of the configuration, does not exist; name another: --log PATH",
        log.display()
    );
    Ok(files)
}
