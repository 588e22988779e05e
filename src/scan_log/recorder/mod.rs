//! Records the live scans as a scan log, rotated by size and compressed with zstd.
//!
//! The active file is plain text. Compressing 64 MB takes a quarter of a second, so a
//! separate thread does it ([`super::rotation`]). After a crash the next start compresses a
//! rotated file.
//!
//! A closed file that cannot be renamed, compressed or removed is logged, and tried again later;
//! meanwhile the active file grows.
//!
//! Its lines are synced before the batch of the log with the same events, so the state is never ahead
//! of them, even after a power cut.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::active_file::{RecordError, check_log_path, open_active_file, record_error, repair_last_line};
use super::line;
use super::reader::open;
use super::rotation::{self, compress, rotated_file, sync_directory};
use crate::engine::Outcome;
use crate::log::{LogEvent, LogFileLock, RecordedSettings};
use crate::model::ServerUrl;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderSettings {
    pub path: PathBuf,
    /// The active file is rotated and compressed when it is larger than this and the
    /// previous file is compressed.
    pub rotate_bytes: u64,
    /// Number of compressed files kept; 0: all.
    pub keep_files: u32,
}

/// After a failed rotation the next attempt is made when the active file has grown by this part of
/// `rotate_bytes`.
const RETRY_DIVISOR: u64 = 16;

/// Writes the events that the engine has processed, in the same order. The first line of each file
/// has all settings; further lines have those that changed.
#[derive(Debug)]
pub struct Recorder {
    settings: RecorderSettings,
    file: Arc<File>,
    bytes: u64,
    /// Size above which the active file is rotated: `rotate_bytes`, or more after a failure.
    rotate_above: u64,
    /// Whether the last rotation or compression failed.
    has_failed: bool,
    buffer: Vec<u8>,
    /// The settings that hold now.
    in_force: RecordedSettings,
    /// The settings in effect at the end of the active file, including the lines of the buffer.
    /// Empty: the file has none.
    recorded: RecordedSettings,
    /// Whether the next line must be one with settings: `recorded` and `in_force` differ.
    are_settings_due: bool,
    /// Time of the first line of the buffer, and the settings that held before it.
    buffer_start: (i64, RecordedSettings),
    compressor: Option<JoinHandle<Result<(), RecordError>>>,
    lock: LogFileLock,
}

impl Recorder {
    /// Opens the active file for appending. A line that a crash left incomplete is
    /// removed; a complete line without a line feed gets one.
    pub fn open(settings: RecorderSettings) -> Result<Recorder, RecordError> {
        check_log_path(&settings.path)?;
        let failed = |what| record_error(what, &settings.path);
        let mut file = open_active_file(&settings.path).map_err(failed("open"))?;
        let bytes = repair_last_line(&settings.path, &mut file).map_err(failed("repair the end of"))?;
        let recorded = open(&settings.path)?.last_settings()?;
        file.sync_all().and_then(|()| sync_directory(&settings.path)).map_err(failed("write to disk"))?;
        let mut recorder = Recorder {
            file: Arc::new(file),
            bytes,
            rotate_above: settings.rotate_bytes,
            has_failed: false,
            settings,
            buffer: Vec::new(),
            in_force: RecordedSettings::default(),
            recorded,
            are_settings_due: false,
            buffer_start: (0, RecordedSettings::default()),
            compressor: None,
            lock: LogFileLock::default(),
        };
        if rotated_file(&recorder.settings.path).exists() {
            recorder.begin_compression();
        }
        Ok(recorder)
    }

    /// The lock on the names of the closed files.
    pub fn file_lock(&self) -> &LogFileLock {
        &self.lock
    }

    /// Sets the settings in effect from the next event on. They are written with it.
    pub fn set_settings(&mut self, settings: RecordedSettings) {
        self.are_settings_due = self.recorded != settings;
        self.in_force = settings;
    }

    pub fn add(&mut self, url: &ServerUrl, outcome: &Outcome) {
        self.begin_line(outcome.t_ms());
        line::write(&mut self.buffer, url, outcome);
    }

    pub fn add_event(&mut self, event: &LogEvent) {
        // An event that sets the clock begins a file. Settings are not written before it, because they
        // would be earlier than the lines of the previous file.
        if !event.sets_clock() {
            self.begin_line(event.t_ms());
        }
        line::write_event(&mut self.buffer, event);
    }

    /// Writes the settings that changed since the line before.
    fn begin_line(&mut self, t_ms: i64) {
        if self.buffer.is_empty() {
            self.buffer_start = (t_ms, self.in_force.clone());
        }
        if std::mem::take(&mut self.are_settings_due) {
            let settings = self.in_force.changed_since(&self.recorded);
            line::write_event(&mut self.buffer, &LogEvent::Settings { t_ms, settings });
            self.recorded = self.in_force.clone();
        }
    }

    /// The lines of the buffer go to a new file, which begins with all settings.
    fn begin_file(&mut self) {
        let (t_ms, settings) = &self.buffer_start;
        if self.buffer.is_empty() {
            self.recorded = RecordedSettings::default();
            self.are_settings_due = !self.in_force.is_empty();
        } else if !settings.is_empty() {
            let mut lines = Vec::new();
            line::write_event(&mut lines, &LogEvent::Settings { t_ms: *t_ms, settings: settings.clone() });
            lines.append(&mut self.buffer);
            self.buffer = lines;
        }
    }

    /// Bytes that were added and are not yet written.
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Writes the added lines. Returns the file, which must be synced before the log that the state
    /// follows; `None`: there was nothing to write. All lines that were written earlier are synced. Error:
    /// none of the added lines is in the log.
    pub fn write_out(&mut self) -> Result<Option<Arc<File>>, RecordError> {
        if self.buffer.is_empty() {
            return Ok(None);
        }
        if self.compressor.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish_compression();
        }
        // Rotate before writing, not after: until the new lines are synced they must be in the active
        // file.
        if self.bytes > self.rotate_above && self.compressor.is_none() {
            match rotated_file(&self.settings.path).exists() {
                true => self.begin_compression(),
                false => _ = self.rotate()?,
            }
        }
        if let Err(error) = (&*self.file).write_all(&self.buffer) {
            // An incomplete line must not remain before the next one.
            _ = self.file.set_len(self.bytes);
            return Err(record_error("write to", &self.settings.path)(error));
        }
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(Some(self.file.clone()))
    }

    /// Writes the added lines and waits until they are on disk.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        match self.write_out()? {
            Some(file) => file.sync_data().map_err(record_error("write to", &self.settings.path)),
            None => Ok(()),
        }
    }

    /// Rotates the active file, unless it is empty. Lines that are added but not written go
    /// to the new file, like all further ones. So the log contains all events of a rotated file, and the
    /// next start need not read it.
    ///
    /// Returns false if a file could not be renamed or removed, which has been logged: the active
    /// file is the same.
    pub fn start_new_file(&mut self) -> Result<bool, RecordError> {
        self.finish_compression();
        let rotated = rotated_file(&self.settings.path);
        if rotated.exists() {
            self.begin_compression();
            self.finish_compression();
        }
        match self.bytes {
            0 => Ok(true),
            _ if rotated.exists() => Ok(false),
            _ => self.rotate(),
        }
    }

    /// Rotates the active file and starts to compress it. There must be no other rotated file.
    /// Returns false if that failed before the active file was renamed.
    fn rotate(&mut self) -> Result<bool, RecordError> {
        let RecorderSettings { path, keep_files, .. } = &self.settings;
        let names = self.lock.lock_names();
        let renamed = rotation::rotate(path, *keep_files);
        drop(names);
        if let Err(error) = renamed {
            self.retry_later(&error);
            return Ok(false);
        }
        self.file = Arc::new(open_active_file(path).map_err(record_error("open", path))?);
        sync_directory(path).map_err(record_error("write the directory of", path))?;
        self.bytes = 0;
        self.begin_file();
        self.begin_compression();
        Ok(true)
    }

    fn begin_compression(&mut self) {
        let path = self.settings.path.clone();
        match thread::Builder::new().name("clqd-compress".to_owned()).spawn(move || compress(&path)) {
            Ok(thread) => self.compressor = Some(thread),
            Err(error) => {
                let path = rotated_file(&self.settings.path);
                self.retry_later(&record_error("start a thread that compresses", &path)(error));
            }
        }
    }

    /// Waits until the rotated file is compressed, if there is one.
    fn finish_compression(&mut self) {
        let Some(thread) = self.compressor.take() else { return };
        match thread.join().expect("compression does not panic") {
            Ok(()) => {
                self.rotate_above = self.settings.rotate_bytes;
                if std::mem::take(&mut self.has_failed) {
                    tracing::info!("the closed scan log is compressed now");
                }
            }
            Err(error) => self.retry_later(&error),
        }
    }

    /// Logs the first of successive failures.
    fn retry_later(&mut self, error: &RecordError) {
        self.rotate_above = self.bytes.max(self.settings.rotate_bytes) + self.settings.rotate_bytes / RETRY_DIVISOR;
        if !std::mem::replace(&mut self.has_failed, true) {
            let cause = std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"));
            tracing::warn!("{error}{cause}; the scan log goes on in one file, and clqd tries again when it has grown");
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.finish_compression();
    }
}

#[cfg(test)]
mod tests;
