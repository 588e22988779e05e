//! Records the live scans as a scan log, rotated by size and compressed with zstd.
//!
//! The active file is plain text; `FILE.1.zst` is the newest compressed one. Compressing
//! 64 MB takes a quarter of a second, so a separate thread does it. A rotated file is
//! named `FILE.1.packing` until it is compressed. After a crash the next start
//! compresses it. The compressed file is renamed into place before the plain file is
//! deleted; if both exist, the plain file can be deleted.
//!
//! When [`Recorder::flush`] returns, its lines and the file names are on disk: a commit
//! that follows is never ahead of the log, even after a power cut.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use super::line;
use crate::engine::Outcome;
use crate::limits::SCAN_LOG_LINE_BYTES_MAX;
use crate::model::ServerUrl;
use crate::scan_log::reader::{LogError, open};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderSettings {
    pub path: PathBuf,
    /// The active file is rotated and compressed when it is larger than this and the
    /// previous file is compressed.
    pub rotate_bytes: u64,
    /// Number of compressed files kept; 0: all.
    pub keep_files: u32,
}

/// Why scans cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is not a file; name a file that the scan log is written to", .0.display())]
    NotAFile(PathBuf),
    #[error("{} ends in .zst, as compressed scan logs do; the active one is plain text", .0.display())]
    Packed(PathBuf),
    #[error("{} exists and is not a scan log; move it away, or name another file", path.display())]
    NotALog { path: PathBuf, source: LogError },
}

/// One of this many first lines must be a line of a scan log.
const PROBE_LINES_MAX: usize = 100;

/// The recorder writes this at the beginning of every line.
const LINE_PREFIX: &[u8] = b"{\"t\":";

/// Checks that scans can be recorded to a file: it does not exist, is empty, or is a
/// scan log. Changes nothing.
pub fn check_log_path(path: &Path) -> Result<(), RecordError> {
    if path.extension().is_some_and(|end| end == "zst") {
        return Err(RecordError::Packed(path.to_owned()));
    }
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(RecordError::Io { what: "read the metadata of", path: path.to_owned(), source }),
        Ok(found) if !found.is_file() => return Err(RecordError::NotAFile(path.to_owned())),
        Ok(_) => {}
    }
    let not_a_log = |source| match source {
        LogError::Io { path, source } => RecordError::Io { what: "read", path, source },
        source => RecordError::NotALog { path: path.to_owned(), source },
    };
    let mut lines = open(path).map_err(not_a_log)?;
    let mut first_error = None;
    for _ in 0..PROBE_LINES_MAX {
        match lines.next() {
            Some(Ok(_)) => return Ok(()),
            // The first line of the log is truncated.
            Some(Err(LogError::Truncated(_))) if first_error.is_none() && is_truncated_line_start(lines.buffer()) => {
                return Ok(());
            }
            Some(Err(error @ LogError::Io { .. })) => return Err(not_a_log(error)),
            Some(Err(error)) => _ = first_error.get_or_insert(error),
            None => break,
        }
    }
    first_error.map_or(Ok(()), |error| Err(not_a_log(error)))
}

/// Whether the bytes are the beginning of a recorded line, or zeros.
fn is_truncated_line_start(bytes: &[u8]) -> bool {
    let len = bytes.len().min(LINE_PREFIX.len());
    let written = bytes[..len].iter().position(|&byte| byte == 0).unwrap_or(len);
    bytes[..written] == LINE_PREFIX[..written]
}

/// Writes the outcomes that the engine has processed, in the same order.
#[derive(Debug)]
pub struct Recorder {
    settings: RecorderSettings,
    file: File,
    bytes: u64,
    buffer: Vec<u8>,
    compressor: Option<JoinHandle<io::Result<()>>>,
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
        let mut recorder = Recorder { settings, file, bytes, buffer: Vec::new(), compressor: None };
        let rotated = packing(&recorder.settings.path);
        if rotated.exists() {
            recorder.begin_packing().map_err(|source| RecordError::Io { what: "compress", path: rotated, source })?;
        }
        Ok(recorder)
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
            self.finish_packing()?;
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
        self.finish_packing()?;
        if self.bytes > 0 { self.rotate() } else { Ok(()) }
    }

    /// Rotates the active file and starts to compress it.
    fn rotate(&mut self) -> io::Result<()> {
        let RecorderSettings { path, keep_files, .. } = &self.settings;
        let count = (1..).take_while(|&n| packed(path, n).exists()).last().unwrap_or(0);
        let moved = if *keep_files == 0 { count } else { count.min(keep_files - 1) };
        for n in (1..=moved).rev() {
            fs::rename(packed(path, n), packed(path, n + 1))?;
        }
        // If one file is kept, it is deleted when it is replaced. It must not exist together
        // with a rotated file, because that would mean that the latter is compressed.
        if moved < count {
            fs::remove_file(packed(path, 1)).or_else(ignore_not_found)?;
        }
        fs::rename(path, packing(path))?;
        self.file = open_active_file(path)?;
        sync_directory(path)?;
        self.bytes = 0;
        self.begin_packing()
    }

    fn begin_packing(&mut self) -> io::Result<()> {
        let path = self.settings.path.clone();
        self.compressor = Some(thread::Builder::new().name("clqd-pack".to_owned()).spawn(move || pack(&path))?);
        Ok(())
    }

    /// Waits until the rotated file is compressed, if there is one.
    fn finish_packing(&mut self) -> io::Result<()> {
        self.compressor.take().map_or(Ok(()), |thread| thread.join().expect("compression does not panic"))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Err(error) = self.finish_packing() {
            let path = packing(&self.settings.path);
            tracing::warn!(%error, path = %path.display(), "a rotated scan log was not compressed; the next start will retry");
        }
    }
}

/// Writes the directory entries of a path and its neighbours to disk.
fn sync_directory(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

fn open_active_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

/// Compresses the rotated file. If the compressed file exists, only deletes the plain one.
fn pack(path: &Path) -> io::Result<()> {
    let (rotated, packed) = (packing(path), packed(path, 1));
    if !packed.exists() {
        let partial = packed.with_extension("tmp");
        let mut out = zstd::Encoder::new(File::create(&partial)?, 3)?;
        // Detects flipped bits.
        out.include_checksum(true)?;
        io::copy(&mut File::open(&rotated)?, &mut out)?;
        out.finish()?.sync_all()?;
        fs::rename(&partial, packed)?;
        // The plain file must not be deleted before the compressed one has its name.
        sync_directory(path)?;
    }
    fs::remove_file(rotated)
}

fn ignore_not_found(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// `FILE.1.packing`.
fn packing(path: &Path) -> PathBuf {
    packed(path, 1).with_extension("packing")
}

/// The compressed files of an active one, oldest first. While a file is being rotated
/// and compressed, one number is missing.
pub fn compressed_files(path: &Path) -> Vec<PathBuf> {
    let exists = |n: u32| packed(path, n).exists();
    let numbers = (1..).take_while(|&n| exists(n) || exists(n + 1));
    let mut files: Vec<PathBuf> = numbers.map(|n| packed(path, n)).filter(|file| file.exists()).collect();
    files.reverse();
    files
}

/// The file that contains all of another, if it exists: `FILE.1.zst` for the rotated
/// file that it was made from, and either of them for an unfinished compressed file.
pub fn complete_copy(path: &Path) -> Option<PathBuf> {
    let packed = path.with_extension("zst");
    let rotated = path.with_extension("packing");
    let is_numbered = path.file_stem().is_some_and(|stem| {
        let number = Path::new(stem).extension().and_then(|number| number.to_str());
        number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    });
    let candidates: &[PathBuf] = match path.extension()?.to_str()? {
        "tmp" => &[packed, rotated],
        "packing" => &[packed],
        _ => return None,
    };
    candidates.iter().find(|file| is_numbered && file.exists()).cloned()
}

/// Name of the rotated file until it is compressed. It is newer than the compressed ones.
pub fn rotated_file(path: &Path) -> PathBuf {
    packing(path)
}

/// `FILE.n.zst`.
fn packed(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}.zst"));
    name.into()
}

/// Makes a log end with a line feed. Returns its length.
fn repair_last_line(path: &Path, file: &mut File) -> io::Result<u64> {
    let len = file.metadata()?.len();
    let whole = complete_lines_len(file, len)?;
    if whole == len {
        return Ok(len);
    }
    if len - whole <= SCAN_LOG_LINE_BYTES_MAX as u64 {
        let mut last = String::new();
        file.seek(SeekFrom::Start(whole))?;
        if file.read_to_string(&mut last).is_ok() && line::check(last.trim_ascii()).is_ok() {
            file.write_all(b"\n")?;
            return Ok(len + 1);
        }
    }
    let (path, bytes) = (path.display(), len - whole);
    tracing::warn!(%path, bytes, "the last line of the scan log is incomplete, probably after a crash; it is removed");
    file.set_len(whole)?;
    Ok(whole)
}

/// The end of the last line that has a line feed.
fn complete_lines_len(file: &mut File, len: u64) -> io::Result<u64> {
    let mut end = len;
    let mut chunk = [0; 4096];
    while end > 0 {
        let from = end.saturating_sub(chunk.len() as u64);
        let window = &mut chunk[..(end - from) as usize];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(window)?;
        if let Some(at) = window.iter().rposition(|&b| b == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotated_log_reads_back_in_order() {
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
        let count = (1..).take_while(|&n| packed(&path, n).exists()).last().unwrap();
        let files = (1..=count).rev().map(|n| packed(&path, n)).chain([path.clone()]);
        let times = files.flat_map(|file| super::super::open(&file).unwrap().map(|line| line.unwrap().1.t_ms()));
        assert_eq!(times.collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
        assert!(count >= 5);
    }

    /// While the disk is nearly full, nothing is flushed because nothing is committed.
    #[test]
    fn scans_not_yet_flushed_go_to_the_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let settings = RecorderSettings { path: path.clone(), rotate_bytes: 1, keep_files: 0 };
        let mut recorder = Recorder::open(settings).unwrap();
        let url = ServerUrl::parse("quake3://h:1").unwrap();
        recorder.add(&url, &Outcome::Miss { t_ms: 1, reason: "timeout".into() });
        recorder.flush().unwrap();
        recorder.add(&url, &Outcome::Miss { t_ms: 2, reason: "timeout".into() });
        recorder.start_new_file().unwrap();
        recorder.finish_packing().unwrap();
        let rotated: Vec<i64> = open(&packed(&path, 1)).unwrap().map(|line| line.unwrap().1.t_ms()).collect();
        assert_eq!((rotated, fs::read_to_string(&path).unwrap()), (vec![1], String::new()));
        recorder.flush().unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), packed(&path, 2).exists()), (miss(2), false));
    }

    /// The next start finishes an interrupted compression, at whatever step it was killed.
    #[test]
    fn interrupted_compression_is_finished_at_the_next_open() {
        let whole = |n: i64| format!("{{\"t\":{n},\"server\":\"quake3://h:1\",\"miss\":true}}\n");
        let zst = |text: &str| zstd::encode_all(text.as_bytes(), 3).unwrap();
        for done in ["rotated", "half compressed", "compressed"] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("scans.jsonl");
            fs::write(packed(&path, 2), zst(&whole(1))).unwrap();
            fs::write(packing(&path), whole(2)).unwrap();
            match done {
                "half compressed" => fs::write(packed(&path, 1).with_extension("tmp"), &zst(&whole(2))[..9]).unwrap(),
                "compressed" => fs::write(packed(&path, 1), zst(&whole(2))).unwrap(),
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
    fn compressed_files_are_found_while_one_is_compressed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        for numbers in [&[][..], &[1], &[2], &[1, 2, 3], &[2, 3, 4], &[1, 2, 4]] {
            numbers.iter().for_each(|&n| fs::write(packed(&path, n), "").unwrap());
            let files = compressed_files(&path);
            assert!(files.iter().eq(numbers.iter().rev().map(|&n| packed(&path, n)).collect::<Vec<_>>().iter()));
            files.iter().for_each(|file| fs::remove_file(file).unwrap());
        }
    }

    /// The active file keeps growing while the previous one is compressed.
    #[test]
    fn one_file_is_compressed_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let settings = RecorderSettings { path: path.clone(), rotate_bytes: 1, keep_files: 0 };
        let mut recorder = Recorder::open(settings).unwrap();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        recorder.compressor = Some(thread::spawn(move || ended.recv().map_err(io::Error::other)));
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
    fn tail_returns_new_lines_only() {
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
            let is_news = |_: &ServerUrl, t_ms| t_ms > held_ms;
            let mut tail = super::super::read_tail(&path, is_news).unwrap();
            let news = std::iter::from_fn(|| tail.next_news(is_news).unwrap());
            let times: Vec<_> = news.map(|(_, outcome)| outcome.t_ms()).collect();
            assert_eq!(times, (held_ms + 1..=40_000).collect::<Vec<_>>());
        }
    }

    fn miss(t_ms: i64) -> String {
        format!("{{\"t\":{t_ms},\"server\":\"quake3://h:1\",\"miss\":true,\"reason\":\"timeout\"}}\n")
    }

    #[test]
    fn log_cut_at_any_byte_of_its_last_line_continues_after_complete_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let settings = RecorderSettings { path: path.clone(), rotate_bytes: 1 << 20, keep_files: 0 };
        let url = ServerUrl::parse("quake3://h:1").unwrap();
        for before in ["", &miss(1)] {
            let last = miss(2);
            for len in 0..=last.len() {
                for zeros in [0, 3] {
                    let mut bytes = [before.as_bytes(), &last.as_bytes()[..len]].concat();
                    bytes.resize(bytes.len() + zeros, 0);
                    fs::write(&path, bytes).unwrap();
                    let mut recorder = Recorder::open(settings.clone()).unwrap();
                    recorder.add(&url, &Outcome::Miss { t_ms: 3, reason: "timeout".into() });
                    recorder.flush().unwrap();
                    assert_eq!(recorder.bytes, fs::metadata(&path).unwrap().len());
                    let whole = len == last.len() || len + 1 == last.len() && zeros == 0;
                    let want = [before, if whole { &last } else { "" }, &miss(3)].concat();
                    assert_eq!(fs::read_to_string(&path).unwrap(), want, "{len} + {zeros}");
                }
            }
        }
    }

    #[test]
    fn file_that_is_not_a_scan_log_is_rejected_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let open = |path: &Path| {
            Recorder::open(RecorderSettings { path: path.to_owned(), rotate_bytes: 1 << 20, keep_files: 0 })
        };
        for bytes in [
            &b"hello"[..],
            b"hello\n",
            b"first line\nsecond line\nno line feed",
            b"{\"name\": \"a\"",
            b"{\n  \"t\": 1\n}\n",
            b"\x28\xb5\x2f\xfd\0\0",
            b"\x7fELF\0\0\0\0\n",
        ] {
            fs::write(&path, bytes).unwrap();
            let error = open(&path).map(drop).unwrap_err();
            assert!(matches!(&error, RecordError::NotALog { .. }), "{error:?}");
            assert!(error.to_string().contains("scans.jsonl exists and is not a scan log; move it away"), "{error}");
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        assert!(matches!(open(dir.path()).map(drop), Err(RecordError::NotAFile(_))));
        assert!(matches!(open(&dir.path().join("x.zst")).map(drop), Err(RecordError::Packed(_))));
        assert!(!dir.path().join("x.zst").exists());
        // One damaged line does not make it another kind of file.
        fs::write(&path, format!("damaged\n{}", miss(1))).unwrap();
        open(&path).unwrap();
    }

    #[test]
    fn unfinished_compression_is_detected_by_file_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let partial = packed(&path, 1).with_extension("tmp");
        let touch = |path: &Path| fs::write(path, "").unwrap();
        assert_eq!(complete_copy(&partial), None);
        touch(&packing(&path));
        assert_eq!((complete_copy(&partial), complete_copy(&packing(&path))), (Some(packing(&path)), None));
        touch(&packed(&path, 1));
        assert_eq!(
            (complete_copy(&partial), complete_copy(&packing(&path))),
            (Some(packed(&path, 1)), Some(packed(&path, 1)))
        );
        assert_eq!((complete_copy(&path), complete_copy(&packed(&path, 1))), (None, None));
        touch(&dir.path().join("old.zst"));
        assert_eq!(complete_copy(&dir.path().join("old.tmp")), None);
    }
}
