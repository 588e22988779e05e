//! Recording: the live scans as a scan log, rotated by size and packed with
//! zstd.
//!
//! The running file is plain text; `FILE.1.zst` is the newest packed one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::line;
use crate::engine::Outcome;
use crate::model::ServerUrl;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderSettings {
    pub path: PathBuf,
    /// The running file is packed when it is larger than this.
    pub rotate_bytes: u64,
    /// Packed files kept; 0: all.
    pub keep_files: u32,
}

/// Writes what the engine took in, in the order in which it did.
#[derive(Debug)]
pub struct Recorder {
    settings: RecorderSettings,
    file: File,
    bytes: u64,
    buffer: Vec<u8>,
}

impl Recorder {
    /// Opens the running file, to append. A line that a crash left unfinished
    /// is cut off.
    pub fn open(settings: RecorderSettings) -> io::Result<Recorder> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(&settings.path)?;
        let bytes = cut_unfinished_line(&mut file)?;
        Ok(Recorder { settings, file, bytes, buffer: Vec::new() })
    }

    pub fn add(&mut self, url: &ServerUrl, outcome: &Outcome) {
        line::write(&mut self.buffer, url, outcome);
    }

    /// Writes what was added, with the commit that it belongs to.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        // Not after writing: what is written now is committed only when this has
        // returned, and until then it is to be found in the running file.
        if self.bytes > self.settings.rotate_bytes {
            self.rotate()?;
        }
        self.file.write_all(&self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let RecorderSettings { path, keep_files, .. } = &self.settings;
        let there = (1..).take_while(|&n| packed(path, n).exists()).last().unwrap_or(0);
        let moved = if *keep_files == 0 { there } else { there.min(keep_files - 1) };
        for n in (1..=moved).rev() {
            fs::rename(packed(path, n), packed(path, n + 1))?;
        }
        let half = packed(path, 1).with_extension("tmp");
        let mut out = File::create(&half)?;
        zstd::stream::copy_encode(File::open(path)?, &mut out, 3)?;
        out.sync_all()?;
        fs::rename(&half, packed(path, 1))?;
        self.file.set_len(0)?;
        self.bytes = 0;
        Ok(())
    }
}

/// The packed files of a running one, oldest first.
pub fn packed_files(path: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = (1..).map(|n| packed(path, n)).take_while(|file| file.exists()).collect();
    files.reverse();
    files
}

/// `FILE.n.zst`.
fn packed(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}.zst"));
    name.into()
}

fn cut_unfinished_line(file: &mut File) -> io::Result<u64> {
    use std::io::{Read, Seek, SeekFrom};
    let len = file.metadata()?.len();
    let mut end = len;
    let mut chunk = [0; 4096];
    while end > 0 {
        let from = end.saturating_sub(chunk.len() as u64);
        let part = &mut chunk[..(end - from) as usize];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|&b| b == b'\n') {
            end = from + at as u64 + 1;
            break;
        }
        end = from;
    }
    if end < len {
        file.set_len(end)?;
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_rotated_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let settings = RecorderSettings { path: path.clone(), rotate_bytes: 300, keep_files: 2 };
        fs::write(&path, "{\"t\":0,\"server\":\"quake3://h:1\",\"miss\":true}\n{\"t\":1,\"ser").unwrap();
        let mut recorder = Recorder::open(settings).unwrap();
        let url = ServerUrl::parse("quake3://h:1").unwrap();
        for t_ms in 1..=20 {
            recorder.add(&url, &Outcome::Miss { t_ms, reason: "timeout".into() });
            recorder.flush().unwrap();
        }
        let mut times = Vec::new();
        for file in [packed(&path, 2), packed(&path, 1), path.clone()] {
            times.extend(super::super::open(&file).unwrap().map(|line| line.unwrap().1.t_ms()));
        }
        assert_eq!(times, (times[0]..=20).collect::<Vec<_>>());
        assert!(times.len() >= 10 && !packed(&path, 3).exists());
    }

    #[test]
    fn without_a_limit_every_file_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let mut recorder =
            Recorder::open(RecorderSettings { path: path.clone(), rotate_bytes: 100, keep_files: 0 }).unwrap();
        let url = ServerUrl::parse("quake3://h:1").unwrap();
        for t_ms in 1..=20 {
            recorder.add(&url, &Outcome::Miss { t_ms, reason: "timeout".into() });
            recorder.flush().unwrap();
        }
        let there = (1..).take_while(|&n| packed(&path, n).exists()).last().unwrap();
        let files = (1..=there).rev().map(|n| packed(&path, n)).chain([path.clone()]);
        let times = files.flat_map(|file| super::super::open(&file).unwrap().map(|line| line.unwrap().1.t_ms()));
        assert_eq!(times.collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
        assert!(there >= 5);
    }

    #[test]
    fn the_tail_is_what_is_new() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let mut recorder =
            Recorder::open(RecorderSettings { path: path.clone(), rotate_bytes: 1 << 30, keep_files: 0 }).unwrap();
        let url = ServerUrl::parse("quake3://h:1").unwrap();
        // More than one window of the reader.
        for t_ms in 1..=40_000 {
            recorder.add(&url, &Outcome::Miss { t_ms, reason: "timeout".into() });
        }
        recorder.flush().unwrap();
        for held_ms in [0, 1, 20_000, 39_999, 40_000] {
            let news = super::super::tail(&path, |_, t_ms| t_ms > held_ms).unwrap();
            let times: Vec<_> = news.iter().map(|(_, outcome)| outcome.t_ms()).collect();
            assert_eq!(times, (held_ms + 1..=40_000).collect::<Vec<_>>());
        }
    }
}
