//! Records the live scans as a scan log, rotated by size and compressed with zstd.
//!
//! The active file is plain text. Compressing 64 MB takes a quarter of a second, so a
//! separate thread does it ([`super::rotation`]). After a crash the next start compresses a
//! rotated file.
//!
//! When [`Recorder::flush`] returns, its lines and the file names are on disk: a commit
//! that follows is never ahead of the log, even after a power cut.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use super::active_file::{RecordError, check_log_path, open_active_file, repair_last_line};
use super::file_lock::LogFileLock;
use super::line;
use super::rotation::{self, compress, rotated_file, sync_directory};
use crate::engine::Outcome;
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

/// Writes the outcomes that the engine has processed, in the same order.
#[derive(Debug)]
pub struct Recorder {
    settings: RecorderSettings,
    file: File,
    bytes: u64,
    buffer: Vec<u8>,
    compressor: Option<JoinHandle<io::Result<()>>>,
    lock: LogFileLock,
}

impl Recorder {
    /// Opens the active file for appending. A line that a crash left incomplete is
    /// removed; a complete line without a line feed gets one.
    pub fn open(settings: RecorderSettings) -> Result<Recorder, RecordError> {
        check_log_path(&settings.path)?;
        let failed = |what| {
            let path = settings.path.clone();
            move |source| RecordError::Io { what, path, source }
        };
        let mut file = open_active_file(&settings.path).map_err(failed("open"))?;
        let bytes = repair_last_line(&settings.path, &mut file).map_err(failed("repair the end of"))?;
        file.sync_all().and_then(|()| sync_directory(&settings.path)).map_err(failed("write to disk"))?;
        let mut recorder =
            Recorder { settings, file, bytes, buffer: Vec::new(), compressor: None, lock: LogFileLock::default() };
        let rotated = rotated_file(&recorder.settings.path);
        if rotated.exists() {
            recorder.begin_compression().map_err(|source| RecordError::Io {
                what: "compress",
                path: rotated,
                source,
            })?;
        }
        Ok(recorder)
    }

    /// The lock on the names of the closed files.
    pub fn file_lock(&self) -> &LogFileLock {
        &self.lock
    }

    pub fn add(&mut self, url: &ServerUrl, outcome: &Outcome) {
        line::write(&mut self.buffer, url, outcome);
    }

    /// Bytes that were added and are not yet written.
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Writes the added lines to disk, before the commit that they belong to. Error: none
    /// of them is in the log.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if self.compressor.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish_compression()?;
        }
        // Rotate before writing, not after: the caller commits after `flush` returns, and
        // until then the new lines must be in the active file.
        if self.bytes > self.settings.rotate_bytes && self.compressor.is_none() {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(&self.buffer).and_then(|()| self.file.sync_data()) {
            // An incomplete line must not remain before the next one.
            _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Rotates the active file, unless it is empty. Lines that are added but not flushed go
    /// to the new file, like all further ones. So a rotated file holds only committed lines,
    /// and the next start need not read it. Everything flushed must be committed.
    pub fn start_new_file(&mut self) -> io::Result<()> {
        self.finish_compression()?;
        if self.bytes > 0 { self.rotate() } else { Ok(()) }
    }

    /// Rotates the active file and starts to compress it.
    fn rotate(&mut self) -> io::Result<()> {
        let RecorderSettings { path, keep_files, .. } = &self.settings;
        let names = self.lock.lock_names();
        rotation::rotate(path, *keep_files)?;
        drop(names);
        self.file = open_active_file(path)?;
        sync_directory(path)?;
        self.bytes = 0;
        self.begin_compression()
    }

    fn begin_compression(&mut self) -> io::Result<()> {
        let path = self.settings.path.clone();
        self.compressor = Some(thread::Builder::new().name("clqd-compress".to_owned()).spawn(move || compress(&path))?);
        Ok(())
    }

    /// Waits until the rotated file is compressed, if there is one.
    fn finish_compression(&mut self) -> io::Result<()> {
        self.compressor.take().map_or(Ok(()), |thread| thread.join().expect("compression does not panic"))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Err(error) = self.finish_compression() {
            let path = rotated_file(&self.settings.path);
            tracing::warn!(%error, path = %path.display(), "a rotated scan log was not compressed; the next start will retry");
        }
    }
}

#[cfg(test)]
mod tests;
