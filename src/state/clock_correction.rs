//! Corrects the times of the events since a start with a wrong clock.
//!
//! A daemon whose clock was wrong at its start, and is set right before it was trusted, has written events with
//! wrong times to the log, and no checkpoint. It asks for a correction and starts again. The start writes
//! these events again, with the right times, into `log.corrected`, puts them in the place of the others, and
//! then applies the log as always. Each step can be repeated after a crash.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::log_dir;
use crate::log::{HistoryWriter, LogError, LogReader, WriterSettings, segments, sync_dir};
use crate::store::CLOCK_CORRECTION;

/// The events after a batch are too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockCorrection {
    /// The last batch with right times. A segment ends with it.
    after_seq: u64,
    by_ms: i64,
    /// Whether `log.corrected` is complete.
    is_written: bool,
}

impl ClockCorrection {
    pub fn new(after_seq: u64, by_ms: i64) -> ClockCorrection {
        ClockCorrection { after_seq, by_ms, is_written: false }
    }

    fn path(state_dir: &Path) -> PathBuf {
        state_dir.join(CLOCK_CORRECTION)
    }

    /// Asks the next start for the correction. The log is on disk.
    pub fn request(self, state_dir: &Path) -> Result<(), LogError> {
        let path = ClockCorrection::path(state_dir);
        let new = path.with_extension("new");
        let json = serde_json::to_vec(&self).expect("numbers are serialisable");
        fs::write(&new, json).and_then(|()| File::open(&new)?.sync_all()).map_err(LogError::io("write", &new))?;
        fs::rename(&new, &path).map_err(LogError::io("rename", &new))?;
        sync_dir(state_dir)
    }

    fn requested(state_dir: &Path) -> Result<Option<ClockCorrection>, LogError> {
        let path = ClockCorrection::path(state_dir);
        let json = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            json => json.map_err(LogError::io("read", &path))?,
        };
        let parsed = serde_json::from_slice(&json).map_err(|error| LogError::io("read", &path)(error.into()))?;
        Ok(Some(parsed))
    }

    fn write(mut self, state_dir: &Path, corrected: &Path) -> Result<(), LogError> {
        remove_dir(corrected)?;
        let mut reader = LogReader::open_after(&log_dir(state_dir), self.after_seq)?;
        let (mut events, mut writer) = (Vec::new(), None);
        let settings = WriterSettings::new(corrected.to_owned());
        while let Some(seq) = reader.read_batch(|event| events.push(event))? {
            for mut event in events.drain(..).filter(|_| seq > self.after_seq) {
                event.rewind(self.by_ms);
                if writer.is_none() {
                    writer = Some(HistoryWriter::open(&settings, self.after_seq + 1, event.t_ms())?);
                }
                writer.iter_mut().try_for_each(|writer| writer.append(&event))?;
            }
        }
        writer.map_or(Ok(0), HistoryWriter::finish)?;
        self.is_written = true;
        self.request(state_dir)
    }

    fn put_in_place(self, state_dir: &Path, corrected: &Path) -> Result<(), LogError> {
        let log = log_dir(state_dir);
        // Without any event after the start there is nothing to correct, and the last segment stays, which the one before
        // has announced.
        if corrected.exists() {
            for wrong in segments(&log)?.into_iter().filter(|segment| segment.first_seq > self.after_seq) {
                fs::remove_file(&wrong.path).map_err(LogError::io("remove", &wrong.path))?;
            }
            for right in segments(corrected)? {
                let name = right.path.file_name().expect("a segment has a name");
                fs::hard_link(&right.path, log.join(name)).map_err(LogError::io("link", &right.path))?;
            }
        }
        sync_dir(&log)?;
        let path = ClockCorrection::path(state_dir);
        fs::remove_file(&path).map_err(LogError::io("remove", &path))?;
        sync_dir(state_dir)
    }
}

/// Makes the correction that was requested, if one was. No process writes the log.
pub(super) fn apply_requested(state_dir: &Path) -> Result<(), LogError> {
    let corrected = state_dir.join("log.corrected");
    while let Some(correction) = ClockCorrection::requested(state_dir)? {
        if correction.is_written {
            correction.put_in_place(state_dir, &corrected)?;
            tracing::warn!(by_ms = correction.by_ms, "the times of the events since the wrong clock are corrected");
        } else {
            correction.write(state_dir, &corrected)?;
        }
    }
    remove_dir(&corrected)
}

/// Withdraws a correction whose log is moved away. Returns by how many ms its events are too late; `None`: none was requested.
pub(super) fn withdraw(state_dir: &Path) -> Result<Option<i64>, LogError> {
    // One that cannot be read is not applied, either.
    let by_ms = ClockCorrection::requested(state_dir).ok().flatten().map(|correction| correction.by_ms);
    let path = ClockCorrection::path(state_dir);
    match fs::remove_file(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        removed => removed.map_err(LogError::io("remove", &path))?,
    }
    sync_dir(state_dir)?;
    remove_dir(&state_dir.join("log.corrected"))?;
    Ok(by_ms)
}

fn remove_dir(dir: &Path) -> Result<(), LogError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(LogError::io("remove", dir)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{LogEvent, LogWriter};
    use crate::model::calendar::DAY_MS;

    const BEGAN_MS: i64 = 1_764_000_000_000;

    fn append(log: &Path, first_seq: u64, times: std::ops::Range<i64>) -> u64 {
        let settings = WriterSettings { segment_ms_max: 20_000, ..WriterSettings::new(log.to_owned()) };
        let mut writer = HistoryWriter::open(&settings, first_seq, times.start).unwrap();
        for t_ms in times.step_by(1_000) {
            writer.append(&LogEvent::Tick { t_ms, close_until_ms: i64::MIN }).unwrap();
        }
        writer.finish().unwrap()
    }

    fn times(log: &Path) -> Vec<i64> {
        let (mut reader, mut found) = (LogReader::open(log).unwrap(), Vec::new());
        while reader.read_batch(|event| found.push(event.t_ms())).unwrap().is_some() {}
        found
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            match entry.path().is_dir() {
                true => copy(&entry.path(), &to.join(entry.file_name())),
                false => _ = fs::copy(entry.path(), to.join(entry.file_name())).unwrap(),
            }
        }
    }

    #[test]
    fn correction_without_events_keeps_announced_segment() {
        let place = tempfile::tempdir().unwrap();
        let (dir, right) = (place.path(), BEGAN_MS..BEGAN_MS + 30_000);
        let after_seq = append(&log_dir(dir), 1, right.clone());
        drop(LogWriter::open(&WriterSettings::new(log_dir(dir)), 1, BEGAN_MS + 9 * DAY_MS).unwrap());
        ClockCorrection::new(after_seq, 8 * DAY_MS).request(dir).unwrap();
        apply_requested(dir).unwrap();
        assert_eq!(times(&log_dir(dir)), right.step_by(1_000).collect::<Vec<_>>());
        assert!(!ClockCorrection::path(dir).exists());
        LogWriter::open(&WriterSettings::new(log_dir(dir)), 1, BEGAN_MS).unwrap();
    }

    #[test]
    fn withdrawn_correction_needs_no_log() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path();
        append(&log_dir(dir), 1, BEGAN_MS..BEGAN_MS + 30_000);
        ClockCorrection::new(7, 8 * DAY_MS).request(dir).unwrap();
        fs::rename(log_dir(dir), dir.join("log.damaged-1")).unwrap();
        assert!(apply_requested(dir).is_err());
        // The second one after a kill between the two removals.
        for by_ms in [Some(8 * DAY_MS), None] {
            fs::create_dir_all(dir.join("log.corrected")).unwrap();
            assert_eq!(withdraw(dir).unwrap(), by_ms);
            assert!(!dir.join("log.corrected").exists());
            apply_requested(dir).unwrap();
        }
    }

    /// A correction that was killed at any point is completed by the next start.
    #[test]
    fn interrupted_correction_is_completed() {
        let place = tempfile::tempdir().unwrap();
        let (dir, killed) = (place.path().join("state"), place.path().join("killed"));
        let log = log_dir(&dir);
        let (right, wrong_ms) = (BEGAN_MS..BEGAN_MS + 60_000, BEGAN_MS + 9 * DAY_MS);
        let after_seq = append(&log, 1, right.clone());
        append(&log, after_seq + 1, wrong_ms..wrong_ms + 90_000);
        let correction = ClockCorrection::new(after_seq, 8 * DAY_MS);
        let corrected_ms = BEGAN_MS + DAY_MS;
        let expected: Vec<i64> = right.chain(corrected_ms..corrected_ms + 90_000).step_by(1_000).collect();
        correction.request(&dir).unwrap();
        for step in 0..5 {
            _ = fs::remove_dir_all(&killed);
            copy(&dir, &killed);
            let corrected = killed.join("log.corrected");
            match step {
                0 => {}
                1 => _ = append(&corrected, after_seq + 1, corrected_ms..corrected_ms + 5_000),
                _ => correction.write(&killed, &corrected).unwrap(),
            }
            let log = log_dir(&killed);
            let mut wrong = segments(&log).unwrap().into_iter().filter(|it| it.first_seq > after_seq);
            match step {
                3 => fs::remove_file(wrong.next_back().unwrap().path).unwrap(),
                4 => {
                    wrong.for_each(|it| fs::remove_file(it.path).unwrap());
                    let first = segments(&corrected).unwrap().remove(0).path;
                    fs::hard_link(&first, log.join(first.file_name().unwrap())).unwrap();
                }
                _ => {}
            }
            apply_requested(&killed).unwrap();
            assert_eq!(times(&log), expected, "step {step}");
            assert!(!corrected.exists() && !ClockCorrection::path(&killed).exists());
            // Nothing is requested any more. The directory is left of a process that was killed before it removed it.
            fs::create_dir(&corrected).unwrap();
            apply_requested(&killed).unwrap();
            assert!(!corrected.exists() && times(&log) == expected);
        }
    }
}
