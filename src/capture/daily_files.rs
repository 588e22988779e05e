//! The capture files of the daemon: one a day (UTC), `captures-2026-11-22.jsonl`, mode 0600.
//!
//! Captures are samples that help to find faults. A write error therefore never stops the daemon:
//! it is logged once a day and counted. Time is an argument.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, NaiveDate};

use super::line;
use crate::limits::CAPTURE_BYTES_PER_DAY_MAX;
use crate::model::ServerUrl;
use crate::scan::Capture;

const NAME_START: &str = "captures-";
const NAME_END: &str = ".jsonl";

/// Counts since the start of the daemon.
#[derive(Debug, Default)]
pub struct CaptureCounters {
    /// Captures written.
    pub written: AtomicU64,
    /// Captures that were not written: the day's file is full, the disk is nearly full, or the
    /// list has a forgotten name.
    pub dropped: AtomicU64,
    /// Failed writes and deletions.
    pub errors: AtomicU64,
}

/// The directory of capture files, and the file of the current day.
#[derive(Debug)]
pub struct CaptureFiles {
    dir: PathBuf,
    keep_days: u32,
    bytes_per_day_max: u64,
    today: NaiveDate,
    /// Opened at the first capture of a day.
    file: Option<DailyFile>,
    counters: Arc<CaptureCounters>,
    /// Whether an error, and a full file, were logged today.
    has_warned: bool,
    has_reported_full: bool,
}

#[derive(Debug)]
struct DailyFile {
    file: File,
    bytes: u64,
}

impl CaptureFiles {
    /// Creates the directory if it is missing, and deletes expired files. `keep_days`: days for
    /// which a file is kept, its own included. Errors are logged.
    pub fn open(dir: PathBuf, keep_days: u32, now_ms: i64, counters: Arc<CaptureCounters>) -> CaptureFiles {
        let mut files = CaptureFiles {
            dir,
            keep_days,
            bytes_per_day_max: CAPTURE_BYTES_PER_DAY_MAX,
            today: date_of(now_ms),
            file: None,
            counters,
            has_warned: false,
            has_reported_full: false,
        };
        if let Err(error) = DirBuilder::new().recursive(true).mode(0o750).create(&files.dir) {
            files.report_error("create the directory of captures", &error);
        }
        files.delete_expired();
        files
    }

    /// Appends a capture to the file of the day. Nothing is written for a silent server.
    pub fn append(&mut self, server: &ServerUrl, capture: &Capture, now_ms: i64) {
        if capture.datagrams.is_empty() {
            return;
        }
        self.advance_to(now_ms);
        let mut text = Vec::new();
        line::write(&mut text, server, capture).expect("writing to memory does not fail");
        match self.try_append(&text) {
            Ok(true) => _ = self.counters.written.fetch_add(1, Ordering::Relaxed),
            Ok(false) => {
                self.count_dropped();
                if !self.has_reported_full {
                    self.has_reported_full = true;
                    let (path, bytes_max) = (self.path_of(self.today), self.bytes_per_day_max);
                    tracing::info!(path = %path.display(), bytes_max, "the capture file of the day is full");
                }
            }
            Err(error) => self.report_error("write a capture file", &error),
        }
    }

    /// Counts a capture that the caller did not append.
    pub fn count_dropped(&self) {
        self.counters.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// At a new day, closes the file of the day before and deletes expired files.
    pub fn advance_to(&mut self, now_ms: i64) {
        let today = date_of(now_ms);
        if today != self.today {
            (self.today, self.file, self.has_warned, self.has_reported_full) = (today, None, false, false);
            self.delete_expired();
        }
    }

    /// Applies a reloaded setting, and deletes expired files. Errors may be logged again.
    pub fn set_keep_days(&mut self, keep_days: u32) {
        self.keep_days = keep_days;
        self.has_warned = false;
        self.delete_expired();
    }

    /// Deletes all capture files. Returns their number. Error: one could not be deleted; the
    /// others are.
    pub fn delete_all(&mut self) -> io::Result<u64> {
        self.file = None;
        self.delete_files(|_| true)
    }

    /// Returns whether the file of the day has space for the line.
    fn try_append(&mut self, line: &[u8]) -> io::Result<bool> {
        let path = self.path_of(self.today);
        let daily = match &mut self.file {
            Some(daily) => daily,
            none => none.insert(DailyFile::open(&path)?),
        };
        if daily.bytes + line.len() as u64 > self.bytes_per_day_max {
            return Ok(false);
        }
        if let Err(error) = daily.file.write_all(line) {
            // Part of the line may be in the file. Opening the file again ends that line.
            _ = daily.file.set_len(daily.bytes);
            self.file = None;
            return Err(error);
        }
        daily.bytes += line.len() as u64;
        Ok(true)
    }

    fn delete_expired(&mut self) {
        let (today, keep_days) = (self.today, i64::from(self.keep_days));
        // A file with a date in the future was written while the clock was wrong; it expires, too.
        if let Err(error) = self.delete_files(|date| (today - date).num_days().abs() >= keep_days) {
            self.report_error("delete expired capture files", &error);
        }
    }

    fn delete_files(&self, is_due: impl Fn(NaiveDate) -> bool) -> io::Result<u64> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        let (mut deleted, mut failed) = (0, None);
        for entry in entries {
            let entry = entry?;
            if !entry.file_name().to_str().and_then(date_of_name).is_some_and(&is_due) {
                continue;
            }
            match fs::remove_file(entry.path()) {
                Ok(()) => deleted += 1,
                Err(error) => {
                    failed = Some(io::Error::new(error.kind(), format!("{}: {error}", entry.path().display())));
                }
            }
        }
        failed.map_or(Ok(deleted), Err)
    }

    fn path_of(&self, date: NaiveDate) -> PathBuf {
        self.dir.join(format!("{NAME_START}{date}{NAME_END}"))
    }

    fn report_error(&mut self, what: &str, error: &io::Error) {
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        if !self.has_warned {
            self.has_warned = true;
            let dir = self.dir.display();
            tracing::warn!(%dir, %error, "cannot {what} (setting capture.dir); further errors of today are only counted");
        }
    }
}

impl DailyFile {
    /// Opens the file of a day, which an earlier daemon may have begun. An incomplete last line,
    /// left by a crash, is ended.
    fn open(path: &Path) -> io::Result<DailyFile> {
        let mut file = File::options().read(true).append(true).create(true).mode(0o600).open(path)?;
        let mut bytes = file.metadata()?.len();
        let mut last = [b'\n'];
        if bytes > 0 {
            file.read_exact_at(&mut last, bytes - 1)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
            bytes += 1;
        }
        Ok(DailyFile { file, bytes })
    }
}

fn date_of(t_ms: i64) -> NaiveDate {
    DateTime::from_timestamp_millis(t_ms).unwrap_or_default().date_naive()
}

/// The date of a capture file; `None` for any other file.
fn date_of_name(name: &str) -> Option<NaiveDate> {
    let date = name.strip_prefix(NAME_START)?.strip_suffix(NAME_END)?;
    let parsed = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
    (parsed.to_string() == date).then_some(parsed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::proto::DetailLevel;
    use crate::proto::Nonce;

    const DAY_MS: i64 = 86_400_000;
    /// 2026-11-22, noon.
    const NOON_MS: i64 = 1_795_348_800_000;

    fn open(dir: &Path, keep_days: u32, now_ms: i64) -> CaptureFiles {
        CaptureFiles::open(dir.to_owned(), keep_days, now_ms, Arc::default())
    }

    fn append(files: &mut CaptureFiles, now_ms: i64) {
        let capture = Capture {
            scheme: "quake3",
            address: "10.0.0.1:27960".parse().unwrap(),
            nonce: Nonce(1),
            datagrams: vec![(now_ms, b"noise".to_vec())],
        };
        files.append(&ServerUrl::parse("quake3://10.0.0.1:27960").unwrap(), &capture, now_ms);
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn counts(files: &CaptureFiles) -> [u64; 3] {
        let CaptureCounters { written, dropped, errors } = &*files.counters;
        [written, dropped, errors].map(|count| count.load(Ordering::Relaxed))
    }

    fn lines(path: &Path) -> Vec<bool> {
        let mut good = Vec::new();
        let file = io::BufReader::new(File::open(path).unwrap());
        line::replay(file, DetailLevel::Summary, |_, result| {
            good.push(result.is_ok());
            Ok(())
        })
        .unwrap();
        good
    }

    #[test]
    fn each_day_has_a_file_that_expires() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("a/captures");
        let mut files = open(&dir, 2, NOON_MS);
        for name in ["captures-2026-11-21.jsonl.bak", "captures-2026-1-2.jsonl", "notes", "captures-2026-13-01.jsonl"] {
            fs::write(dir.join(name), "kept").unwrap();
        }
        let others = names(&dir);
        append(&mut files, NOON_MS);
        append(&mut files, NOON_MS + DAY_MS / 2 - 1);
        append(&mut files, NOON_MS + DAY_MS / 2);
        let captures = || names(&dir).into_iter().filter(|name| !others.contains(name)).collect::<Vec<_>>();
        assert_eq!(captures(), ["captures-2026-11-22.jsonl", "captures-2026-11-23.jsonl"]);
        let first = dir.join("captures-2026-11-22.jsonl");
        assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(lines(&first), [true, true]);
        files.advance_to(NOON_MS + 2 * DAY_MS);
        assert_eq!(captures(), ["captures-2026-11-23.jsonl"]);
        append(&mut files, NOON_MS + 2 * DAY_MS);
        files.set_keep_days(1);
        assert_eq!(captures(), ["captures-2026-11-24.jsonl"]);
        // At a start; also a file from a wrong clock.
        drop(open(&dir, 1, NOON_MS));
        assert!(captures().is_empty());
        assert_eq!(names(&dir), others);
        assert_eq!(counts(&files), [4, 0, 0]);
    }

    #[test]
    fn forgetting_deletes_all_files_and_writing_continues() {
        let temp = tempfile::tempdir().unwrap();
        let mut files = open(temp.path(), 7, NOON_MS);
        append(&mut files, NOON_MS);
        append(&mut files, NOON_MS + DAY_MS);
        assert_eq!(files.delete_all().unwrap(), 2);
        assert!(names(temp.path()).is_empty());
        append(&mut files, NOON_MS + DAY_MS);
        assert_eq!(lines(&temp.path().join("captures-2026-11-23.jsonl")), [true]);
    }

    #[test]
    fn full_file_drops_captures_until_the_next_day() {
        let temp = tempfile::tempdir().unwrap();
        let mut files = open(temp.path(), 7, NOON_MS);
        append(&mut files, NOON_MS);
        let first = temp.path().join("captures-2026-11-22.jsonl");
        files.bytes_per_day_max = 2 * fs::metadata(&first).unwrap().len() + 1;
        (0..3).for_each(|_| append(&mut files, NOON_MS));
        assert_eq!(counts(&files), [2, 2, 0]);
        // Also after a restart on that day.
        let limit = files.bytes_per_day_max;
        let mut files = open(temp.path(), 7, NOON_MS);
        files.bytes_per_day_max = limit;
        append(&mut files, NOON_MS);
        append(&mut files, NOON_MS + DAY_MS);
        assert_eq!((counts(&files), lines(&first)), ([1, 1, 0], vec![true, true]));
    }

    #[test]
    fn incomplete_last_line_is_ended_and_does_not_damage_the_next() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("captures-2026-11-22.jsonl");
        append(&mut open(temp.path(), 7, NOON_MS), NOON_MS);
        File::options().append(true).open(&path).unwrap().write_all(b"{\"server\":").unwrap();
        append(&mut open(temp.path(), 7, NOON_MS), NOON_MS);
        assert_eq!(lines(&path), [true, false, true]);
    }

    #[test]
    fn errors_are_counted_and_writing_is_retried() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("captures");
        fs::write(&dir, "a file").unwrap();
        let mut files = open(&dir, 7, NOON_MS);
        append(&mut files, NOON_MS);
        assert!(files.delete_all().is_err());
        let [written, dropped, errors] = counts(&files);
        assert_eq!((written, dropped), (0, 0));
        assert!(errors >= 2);
        fs::remove_file(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
        append(&mut files, NOON_MS);
        assert_eq!(counts(&files), [1, 0, errors]);
    }
}
