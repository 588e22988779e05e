//! Writes the scans and commands that are recorded during a rebuild to chunk files.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::replay_job::LogChunk;
use crate::log::LogEvent;
use crate::scan_log;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 1 << 16;

pub(super) struct ChunkWriter {
    dir: PathBuf,
    /// Recorded events that are not yet in `file`.
    buffer: Vec<u8>,
    file: File,
    number: u64,
    lines: u64,
}

impl ChunkWriter {
    pub fn new(dir: &Path) -> std::io::Result<ChunkWriter> {
        let file = File::create(chunk_path(dir, 0))?;
        Ok(ChunkWriter { dir: dir.to_owned(), buffer: Vec::new(), file, number: 0, lines: 0 })
    }

    /// Adds a recorded event to the current chunk.
    pub fn add(&mut self, event: &LogEvent) -> anyhow::Result<()> {
        scan_log::write_event(&mut self.buffer, event);
        self.lines += 1;
        if self.buffer.len() > BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Finishes the current chunk file and starts the next.
    pub fn next_chunk(&mut self) -> anyhow::Result<LogChunk> {
        self.flush()?;
        let chunk = LogChunk { path: chunk_path(&self.dir, self.number), lines: self.lines };
        (self.number, self.lines) = (self.number + 1, 0);
        let path = chunk_path(&self.dir, self.number);
        self.file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(chunk)
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let written = self.file.write_all(&self.buffer);
        written.with_context(|| format!("cannot write to {}", self.dir.display()))?;
        self.buffer.clear();
        Ok(())
    }
}

pub(super) fn chunk_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("chunk-{number}.jsonl"))
}
