//! Recording: the live scans as a scan log, rotated by size and packed with
//! zstd.
//!
//! The running file is plain text; `FILE.1.zst` is the newest packed one. Packing
//! takes a quarter of a second for 64 MB, so it has a thread of its own: a file
//! that is closed is `FILE.1.packing` until it is packed. Who was killed meanwhile
//! finds it there, and packs it at the next start. The packed file comes to its
//! name whole and before the plain one goes: where both are there, the plain one
//! has been packed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use super::line;
use crate::engine::Outcome;
use crate::model::ServerUrl;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderSettings {
    pub path: PathBuf,
    /// The running file is closed and packed when it is larger than this, and the
    /// one before is packed.
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
    packer: Option<JoinHandle<io::Result<()>>>,
}

impl Recorder {
    /// Opens the running file, to append. A line that a crash left unfinished
    /// is cut off.
    pub fn open(settings: RecorderSettings) -> io::Result<Recorder> {
        let mut file = running(&settings.path)?;
        let bytes = cut_unfinished_line(&mut file)?;
        let mut recorder = Recorder { settings, file, bytes, buffer: Vec::new(), packer: None };
        if packing(&recorder.settings.path).exists() {
            recorder.begin_packing()?;
        }
        Ok(recorder)
    }

    pub fn add(&mut self, url: &ServerUrl, outcome: &Outcome) {
        line::write(&mut self.buffer, url, outcome);
    }

    /// Writes what was added, with the commit that it belongs to.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if self.packer.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish_packing()?;
        }
        // Not after writing: what is written now is committed only when this has
        // returned, and until then it is to be found in the running file.
        if self.bytes > self.settings.rotate_bytes && self.packer.is_none() {
            self.rotate()?;
        }
        self.file.write_all(&self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Closes the running file, unless it is empty: what comes now goes to another. All
    /// that was added must be committed.
    pub fn begin_file(&mut self) -> io::Result<()> {
        self.flush()?;
        self.finish_packing()?;
        if self.bytes > 0 { self.rotate() } else { Ok(()) }
    }

    /// Closes the running file and has it packed.
    fn rotate(&mut self) -> io::Result<()> {
        let RecorderSettings { path, keep_files, .. } = &self.settings;
        let there = (1..).take_while(|&n| packed(path, n).exists()).last().unwrap_or(0);
        let moved = if *keep_files == 0 { there } else { there.min(keep_files - 1) };
        for n in (1..=moved).rev() {
            fs::rename(packed(path, n), packed(path, n + 1))?;
        }
        // Where one file is kept, it stays until the new one takes its place; but
        // beside a closed file it would say that this one is packed.
        if moved < there {
            fs::remove_file(packed(path, 1)).or_else(none_there)?;
        }
        fs::rename(path, packing(path))?;
        self.file = running(path)?;
        self.bytes = 0;
        self.begin_packing()
    }

    fn begin_packing(&mut self) -> io::Result<()> {
        let path = self.settings.path.clone();
        self.packer = Some(thread::Builder::new().name("clqd-pack".to_owned()).spawn(move || pack(&path))?);
        Ok(())
    }

    /// Waits until the closed file is packed, if there is one.
    fn finish_packing(&mut self) -> io::Result<()> {
        self.packer.take().map_or(Ok(()), |packer| packer.join().expect("packing does not panic"))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Err(error) = self.finish_packing() {
            let path = packing(&self.settings.path);
            tracing::warn!(%error, path = %path.display(), "a closed scan log is not packed; the next start will try");
        }
    }
}

fn running(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

/// Packs the closed file, unless that was done and only the plain one is left.
fn pack(path: &Path) -> io::Result<()> {
    let (closed, packed) = (packing(path), packed(path, 1));
    if !packed.exists() {
        let half = packed.with_extension("tmp");
        let mut out = File::create(&half)?;
        zstd::stream::copy_encode(File::open(&closed)?, &mut out, 3)?;
        out.sync_all()?;
        fs::rename(&half, packed)?;
    }
    fs::remove_file(closed)
}

fn none_there(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// `FILE.1.packing`.
fn packing(path: &Path) -> PathBuf {
    packed(path, 1).with_extension("packing")
}

/// The packed files of a running one, oldest first. While a file is closed and
/// packed a number is missing.
pub fn packed_files(path: &Path) -> Vec<PathBuf> {
    let is_there = |n: u32| packed(path, n).exists();
    let numbers = (1..).take_while(|&n| is_there(n) || is_there(n + 1));
    let mut files: Vec<PathBuf> = numbers.map(|n| packed(path, n)).filter(|file| file.exists()).collect();
    files.reverse();
    files
}

/// Where a closed file is until it is packed. It is newer than those.
pub fn closed_file(path: &Path) -> PathBuf {
    packing(path)
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
            recorder.finish_packing().unwrap();
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
            recorder.finish_packing().unwrap();
        }
        let there = (1..).take_while(|&n| packed(&path, n).exists()).last().unwrap();
        let files = (1..=there).rev().map(|n| packed(&path, n)).chain([path.clone()]);
        let times = files.flat_map(|file| super::super::open(&file).unwrap().map(|line| line.unwrap().1.t_ms()));
        assert_eq!(times.collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
        assert!(there >= 5);
    }

    /// What a life that was killed left is packed by the next, whatever it was
    /// about to do.
    #[test]
    fn killed_while_packing() {
        let whole = |n: i64| format!("{{\"t\":{n},\"server\":\"quake3://h:1\",\"miss\":true}}\n");
        let zst = |text: &str| zstd::encode_all(text.as_bytes(), 3).unwrap();
        for done in ["closed", "half packed", "packed"] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("scans.jsonl");
            fs::write(packed(&path, 2), zst(&whole(1))).unwrap();
            fs::write(packing(&path), whole(2)).unwrap();
            match done {
                "half packed" => fs::write(packed(&path, 1).with_extension("tmp"), &zst(&whole(2))[..9]).unwrap(),
                "packed" => fs::write(packed(&path, 1), zst(&whole(2))).unwrap(),
                _ => {}
            }
            let settings = RecorderSettings { path: path.clone(), rotate_bytes: 1, keep_files: 0 };
            let mut recorder = Recorder::open(settings).unwrap();
            let url = ServerUrl::parse("quake3://h:1").unwrap();
            for t_ms in 3..=4 {
                recorder.add(&url, &Outcome::Miss { t_ms, reason: "timeout".into() });
                recorder.finish_packing().unwrap();
                recorder.flush().unwrap();
            }
            drop(recorder);
            let files: Vec<PathBuf> = (1..=3).rev().map(|n| packed(&path, n)).chain([path.clone()]).collect();
            let lines = files.iter().flat_map(|file| super::super::open(file).unwrap());
            let times: Vec<i64> = lines.map(|line| line.unwrap().1.t_ms()).collect();
            assert_eq!(times, [1, 2, 3, 4], "{done}");
            assert!(!packing(&path).exists() && !packed(&path, 4).exists(), "{done}");
        }
    }

    #[test]
    fn packed_files_are_found_while_one_is_packed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        for there in [&[][..], &[1], &[2], &[1, 2, 3], &[2, 3, 4], &[1, 2, 4]] {
            there.iter().for_each(|&n| fs::write(packed(&path, n), "").unwrap());
            let files = packed_files(&path);
            assert!(files.iter().eq(there.iter().rev().map(|&n| packed(&path, n)).collect::<Vec<_>>().iter()));
            files.iter().for_each(|file| fs::remove_file(file).unwrap());
        }
    }

    /// The running file goes on growing while the one before is packed.
    #[test]
    fn one_file_is_packed_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let settings = RecorderSettings { path: path.clone(), rotate_bytes: 1, keep_files: 0 };
        let mut recorder = Recorder::open(settings).unwrap();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        recorder.packer = Some(thread::spawn(move || ended.recv().map_err(io::Error::other)));
        let url = ServerUrl::parse("quake3://h:1").unwrap();
        let add = |recorder: &mut Recorder, t_ms| {
            recorder.add(&url, &Outcome::Miss { t_ms, reason: "timeout".into() });
            recorder.flush().unwrap();
        };
        (1..=5).for_each(|t_ms| add(&mut recorder, t_ms));
        assert!(!packed(&path, 1).exists() && !packing(&path).exists());
        end.send(()).unwrap();
        recorder.finish_packing().unwrap();
        add(&mut recorder, 6);
        drop(recorder);
        let times = |path: &Path| super::super::open(path).unwrap().map(|line| line.unwrap().1.t_ms()).collect();
        let (old, new): (Vec<i64>, Vec<i64>) = (times(&packed(&path, 1)), times(&path));
        assert_eq!((old, new), (vec![1, 2, 3, 4, 5], vec![6]));
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
