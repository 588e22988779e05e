//! The recorded events that a command reads: the log in a state directory, or the files of a scan log.
//!
//! Files are checked completely before anything is passed on. A crash or a power cut can leave the end of the
//! last file incomplete: the incomplete part is skipped with a warning. Files with other damage are refused,
//! unless `--salvage` is given. Damage of a log in a state directory is an error, or with `--salvage` its end.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::Seek;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use crate::cli::stdio::note;
use crate::log::{self, LogEvent, ReplayedEvents};
use crate::scan_log::{self, Damage, LogError, LogSummary, LossyReader};
use crate::state::log_dir;

/// Recorded events that can be read several times.
pub enum RecordedLogs {
    Log(LogDir),
    Files(CheckedLogs),
}

impl RecordedLogs {
    /// `paths`: the files of a scan log, or a state directory.
    pub fn open(paths: &[PathBuf], salvage: bool) -> anyhow::Result<RecordedLogs> {
        match paths {
            [dir] if dir.is_dir() => match RecordedLogs::of_state(dir)? {
                RecordedLogs::Log(log) => Ok(RecordedLogs::Log(LogDir { salvage, ..log })),
                files => Ok(files),
            },
            files => Ok(RecordedLogs::Files(CheckedLogs::check(files, salvage)?)),
        }
    }

    /// The log in a state directory, or that directory itself.
    pub fn of_state(dir: &Path) -> anyhow::Result<RecordedLogs> {
        let in_state = log_dir(dir);
        let log = if in_state.is_dir() || !dir.exists() { in_state } else { dir.to_owned() };
        ensure!(log::has_segments(&log)?, "{} is neither a state directory with a log, nor a log", dir.display());
        Ok(RecordedLogs::of_log(log))
    }

    /// The directory of a log.
    pub fn of_log(path: PathBuf) -> RecordedLogs {
        RecordedLogs::Log(LogDir { path, salvage: false })
    }

    /// Where the events are: the directory, or the files in order of time.
    pub fn parts(&self) -> Vec<RecordedLog<'_>> {
        match self {
            RecordedLogs::Log(log) => vec![RecordedLog::Log(log)],
            RecordedLogs::Files(CheckedLogs(files)) => files.iter().map(RecordedLog::File).collect(),
        }
    }

    /// The first event.
    pub fn first(&self) -> anyhow::Result<Option<LogEvent>> {
        match self {
            RecordedLogs::Log(LogDir { path, .. }) => {
                let (mut reader, mut first) = (log::LogReader::open(path)?, None);
                let mut note = |event| _ = first.get_or_insert(event);
                reader.read_batch(&mut note)?;
                Ok(first)
            }
            RecordedLogs::Files(files) => Ok(files.first()?),
        }
    }

    /// Passes on all events, in the order in which they were applied.
    pub fn each_event(&self, each: &mut dyn FnMut(LogEvent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        self.parts().into_iter().try_for_each(|part| part.each_event(each))
    }
}

/// The directory of a log.
pub struct LogDir {
    path: PathBuf,
    /// Damage ends it with a warning: what follows cannot be decoded without what is missing.
    salvage: bool,
}

/// One part of the recorded events.
pub enum RecordedLog<'l> {
    Log(&'l LogDir),
    File(&'l CheckedLog),
}

impl RecordedLog<'_> {
    pub fn path(&self) -> &Path {
        match self {
            RecordedLog::Log(log) => &log.path,
            RecordedLog::File(file) => &file.path,
        }
    }

    pub fn each_event(&self, each: &mut dyn FnMut(LogEvent) -> anyhow::Result<()>) -> anyhow::Result<()> {
        match self {
            RecordedLog::Log(LogDir { path, salvage }) => {
                let mut reader = log::LogReader::open(path)?;
                let (mut replayed, mut events) = (ReplayedEvents::default(), Vec::new());
                loop {
                    let read = reader.read_batch(|event| replayed.add(event, &mut |event| events.push(event)));
                    match read {
                        Ok(Some(_)) => events.drain(..).try_for_each(&mut *each)?,
                        Ok(None) => break,
                        Err(damage) if *salvage && damage.is_damage() => {
                            let damage = anyhow::Error::new(damage);
                            note(format_args!("clqd: warning: {damage:#}: what follows is left out"));
                            break;
                        }
                        Err(damage) => return Err(damage.into()),
                    }
                }
                if let Some(cut) = reader.cut() {
                    note(format_args!("clqd: warning: {cut}"));
                }
                Ok(())
            }
            RecordedLog::File(file) => file.events()?.try_for_each(|event| each(event?)),
        }
    }
}

/// A file of a scan log and the result of its check.
pub struct CheckedLog {
    path: PathBuf,
    /// The open file: another program may rename or delete it meanwhile.
    file: File,
    span: LogSummary,
    damage: Damage,
}

impl CheckedLog {
    /// The readable lines that were checked. A daemon may have appended others since the check.
    fn events(&self) -> Result<impl Iterator<Item = Result<LogEvent, LogError>> + use<>, LogError> {
        let failed = |source| LogError::Io { path: self.path.clone(), source };
        let mut file = self.file.try_clone().map_err(failed)?;
        file.rewind().map_err(failed)?;
        let lines = LossyReader::new(scan_log::from_file(&self.path, file)?);
        Ok(lines.take(usize::try_from(self.span.lines).unwrap_or(usize::MAX)))
    }
}

/// The checked files of a scan log, in order of time.
pub struct CheckedLogs(Vec<CheckedLog>);

impl CheckedLogs {
    /// Checks all files completely. Prints a warning for damage that is skipped. Error: a file is not a
    /// scan log, two files are not of one log, or there is damage that is not skipped without `salvage`.
    pub fn check(files: &[PathBuf], salvage: bool) -> anyhow::Result<CheckedLogs> {
        let checked = check_and_sort_logs(files)?;
        report_damage(&checked, salvage)?;
        Ok(CheckedLogs(checked))
    }

    /// The first readable line.
    fn first(&self) -> Result<Option<LogEvent>, LogError> {
        let first = self.0.iter().find(|log| log.span.lines > 0);
        first.map(CheckedLog::events).transpose()?.and_then(|mut events| events.next()).transpose()
    }
}

/// Checks all logs completely and sorts them by time. Error: a file is not a scan log, or the
/// times of two files overlap.
fn check_and_sort_logs(logs: &[PathBuf]) -> anyhow::Result<Vec<CheckedLog>> {
    check_given_once(logs)?;
    let mut checked = Vec::with_capacity(logs.len());
    for path in logs {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let (span, damage) = scan_log::check(path)?;
        let is_same = identity(&file.metadata()?) == identity(&fs::metadata(path)?);
        ensure!(is_same, "{} was renamed or replaced while it was checked: run the command again", path.display());
        if let (0, Some(first)) = (span.lines, damage.ranges.first()) {
            bail!("{} is not a scan log: {first}", path.display());
        }
        checked.push(CheckedLog { path: path.to_owned(), file, span, damage });
    }
    checked.sort_by_key(|log| (log.span.first_ms, log.span.last_ms));
    for pair in checked.windows(2) {
        let [earlier, later] = pair else { unreachable!("windows of two") };
        ensure!(
            later.span.first_ms >= earlier.span.last_ms || later.span.begins_with_clock,
            "{} begins before {} ends: they are not files of one scan log",
            later.path.display(),
            earlier.path.display()
        );
    }
    Ok(checked)
}

/// Error: a file is given twice, or is not a regular file.
fn check_given_once(logs: &[PathBuf]) -> anyhow::Result<()> {
    let mut files: HashMap<(u64, u64), &Path> = HashMap::new();
    for path in logs {
        let found = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(found.is_file(), "{} is not a file; a scan log is read twice", path.display());
        match files.insert(identity(&found), path) {
            Some(other) if other == path => bail!("{} is given twice", path.display()),
            Some(other) => bail!("{} and {} are the same file", other.display(), path.display()),
            None => {}
        }
    }
    Ok(())
}

/// Device and inode number.
fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Prints a warning for all damage that will be skipped. Error: `--salvage` is not given, and
/// there is damage other than an incomplete end of the last log.
fn report_damage(logs: &[CheckedLog], salvage: bool) -> anyhow::Result<()> {
    // Empty files may follow the last log.
    let last = logs.iter().rposition(|log| log.span.lines > 0 || log.damage.truncation.is_some());
    for (index, log) in logs.iter().enumerate() {
        let Damage { ranges, range_count, lines, bytes, truncation, .. } = &log.damage;
        if let (Some(first), false) = (ranges.first(), salvage) {
            let noun = if *range_count == 1 { "range" } else { "ranges" };
            let all = format!("{lines} damaged lines, {bytes} bytes, in {range_count} {noun}");
            bail!("{first}. In all {all}; --salvage skips them and replays the others");
        }
        if let (Some(truncation), Some(next), false) = (truncation, logs.get(index + 1), salvage || Some(index) == last)
        {
            let next = next.path.display();
            bail!("{truncation}, and {next} continues after it; use --salvage to replay the readable part");
        }
        for sentence in log.damage.messages() {
            note(format_args!("clqd: warning: {sentence}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_lines_are_read_after_rotation() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("scan.jsonl");
        let miss = |t_ms: i64| format!("{{\"t\":{t_ms},\"server\":\"quake3://10.0.0.1:27960\",\"miss\":true}}\n");
        fs::write(&log, miss(1) + &miss(2)).unwrap();
        let checked = RecordedLogs::open(std::slice::from_ref(&log), false).unwrap();
        fs::rename(&log, dir.path().join("scan.jsonl.1")).unwrap();
        fs::write(&log, miss(3)).unwrap();
        for _ in 0..2 {
            let mut times = Vec::new();
            let mut note = |event: LogEvent| {
                times.push(event.t_ms());
                Ok(())
            };
            checked.each_event(&mut note).unwrap();
            assert_eq!(times, [1, 2]);
        }
    }
}
