//! Recording: the live scans as a scan log, rotated by size and packed with
//! zstd.
//!
//! The running file is plain text; `FILE.1.zst` is the newest packed one. Packing
//! takes a quarter of a second for 64 MB, so it has a thread of its own: a file
//! that is closed is `FILE.1.packing` until it is packed. Who was killed meanwhile
//! finds it there, and packs it at the next start. The packed file comes to its
//! name whole and before the plain one goes: where both are there, the plain one
//! has been packed.
//!
//! What [`Recorder::flush`] has written is on disk when it returns, and so are the
//! names of the files: a commit that follows is never ahead of the log, even after a
//! power cut.

use std::fs::{
    File, OpenOptions, {self},
};
use std::io::{
    Read, Seek, SeekFrom, Write, {self},
};
use std::path::{Path, PathBuf};
use std::thread::{
    JoinHandle, {self},
};

use super::line;
use crate::engine::Outcome;
use crate::limits::SCAN_LOG_LINE_BYTES_MAX;
use crate::model::ServerUrl;
use crate::scan_log::reader::{LogError, open};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderSettings {
    pub path: PathBuf,
    /// The running file is closed and packed when it is larger than this, and the
    /// one before is packed.
    pub rotate_bytes: u64,
    /// Packed files kept; 0: all.
    pub keep_files: u32,
}

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is not a file; name a file that the scan log is written to", .0.display())]
    NotAFile(PathBuf),
    #[error("{} ends in .zst, as packed scan logs do; the running one is plain text", .0.display())]
    Packed(PathBuf),
    #[error("{} exists and is not a scan log; move it away, or name another file", path.display())]
    NotALog { path: PathBuf, source: LogError },
}

/// Lines at the beginning of a file one of which must be of a scan log.
const PROBE_LINES_MAX: usize = 100;

/// What the recorder begins every line with.
const LINE_PREFIX: &[u8] = b"{\"t\":";

/// Whether scans can be recorded to a file: it does not exist, or is empty, or is a
/// scan log. Changes nothing.
pub fn check_log_path(path: &Path) -> Result<(), RecordError> {
    if path.extension().is_some_and(|end| end == "zst") {
        return Err(RecordError::Packed(path.to_owned()));
    }
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(RecordError::Io { what: "look at", path: path.to_owned(), source }),
        Ok(found) if !found.is_file() => return Err(RecordError::NotAFile(path.to_owned())),
        Ok(_) => {}
    }
    let not_a_log = |source| match source {
        LogError::Io { path, source } => RecordError::Io { what: "read", path, source },
        source => RecordError::NotALog { path: path.to_owned(), source },
    };
    let mut lines = open(path).map_err(not_a_log)?;
    let mut first_fault = None;
    for _ in 0..PROBE_LINES_MAX {
        match lines.next() {
            Some(Ok(_)) => return Ok(()),
            // The very first line was cut off.
            Some(Err(LogError::Truncated(_))) if first_fault.is_none() && is_truncated_line_start(lines.buffer()) => {
                return Ok(());
            }
            Some(Err(error @ LogError::Io { .. })) => return Err(not_a_log(error)),
            Some(Err(error)) => _ = first_fault.get_or_insert(error),
            None => break,
        }
    }
    first_fault.map_or(Ok(()), |fault| Err(not_a_log(fault)))
}

/// Whether it is the beginning of a line that the recorder wrote, or zeros.
fn is_truncated_line_start(bytes: &[u8]) -> bool {
    let len = bytes.len().min(LINE_PREFIX.len());
    let written = bytes[..len].iter().position(|&byte| byte == 0).unwrap_or(len);
    bytes[..written] == LINE_PREFIX[..written]
}

/// Writes what the engine took in, in the order in which it did.
#[derive(Debug)]
pub struct Recorder {
    settings: RecorderSettings,
    file: File,
    bytes: u64,
    buffer: Vec<u8>,
    compressor: Option<JoinHandle<io::Result<()>>>,
}

impl Recorder {
    /// Opens the running file, to append. A line that a crash left unfinished
    /// is cut off; a whole one gets the line feed that it lacks.
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
        let closed = packing(&recorder.settings.path);
        if closed.exists() {
            recorder.begin_packing().map_err(|source| RecordError::Io { what: "pack", path: closed, source })?;
        }
        Ok(recorder)
    }

    pub fn add(&mut self, url: &ServerUrl, outcome: &Outcome) {
        line::write(&mut self.buffer, url, outcome);
    }

    /// Bytes that were added and not yet written.
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Writes what was added to disk, before the commit that it belongs to. Error: none
    /// of it is in the log.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if self.compressor.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish_packing()?;
        }
        // Not after writing: what is written now is committed only when this has
        // returned, and until then it is to be found in the running file.
        if self.bytes > self.settings.rotate_bytes && self.compressor.is_none() {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(&self.buffer).and_then(|()| self.file.sync_data()) {
            // Part of a line must not stay in front of the next.
            _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Closes the running file, unless it is empty: what comes now goes to another, and
    /// so does what was added and not yet flushed. Thus a closed file holds nothing that
    /// is not committed, and the next start need not read it. All that was flushed must
    /// be committed.
    pub fn start_new_file(&mut self) -> io::Result<()> {
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

    /// Waits until the closed file is packed, if there is one.
    fn finish_packing(&mut self) -> io::Result<()> {
        self.compressor.take().map_or(Ok(()), |packer| packer.join().expect("packing does not panic"))
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

/// Writes to disk what the files beside a path, and it itself, are called.
fn sync_directory(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(dir)?.sync_all()
}

fn open_active_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

/// Packs the closed file, unless that was done and only the plain one is left.
fn pack(path: &Path) -> io::Result<()> {
    let (closed, packed) = (packing(path), packed(path, 1));
    if !packed.exists() {
        let half = packed.with_extension("tmp");
        let mut out = zstd::Encoder::new(File::create(&half)?, 3)?;
        // So that a flipped bit is found.
        out.include_checksum(true)?;
        io::copy(&mut File::open(&closed)?, &mut out)?;
        out.finish()?.sync_all()?;
        fs::rename(&half, packed)?;
        // The plain file must not go before the packed one has its name.
        sync_directory(path)?;
    }
    fs::remove_file(closed)
}

fn ignore_not_found(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// `FILE.1.packing`.
fn packing(path: &Path) -> PathBuf {
    packed(path, 1).with_extension("packing")
}

/// The packed files of a running one, oldest first. While a file is closed and
/// packed a number is missing.
pub fn compressed_files(path: &Path) -> Vec<PathBuf> {
    let is_there = |n: u32| packed(path, n).exists();
    let numbers = (1..).take_while(|&n| is_there(n) || is_there(n + 1));
    let mut files: Vec<PathBuf> = numbers.map(|n| packed(path, n)).filter(|file| file.exists()).collect();
    files.reverse();
    files
}

/// The file that holds all of another, if there is one: `FILE.1.zst` of the closed
/// file that it was made of, and that of a packed file that is not finished.
pub fn complete_copy(path: &Path) -> Option<PathBuf> {
    let packed = path.with_extension("zst");
    let closed = path.with_extension("packing");
    let is_numbered = path.file_stem().is_some_and(|stem| {
        let number = Path::new(stem).extension().and_then(|number| number.to_str());
        number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    });
    let candidates: &[PathBuf] = match path.extension()?.to_str()? {
        "tmp" => &[packed, closed],
        "packing" => &[packed],
        _ => return None,
    };
    candidates.iter().find(|file| is_numbered && file.exists()).cloned()
}

/// Where a closed file is until it is packed. It is newer than those.
pub fn rotated_file(path: &Path) -> PathBuf {
    packing(path)
}

/// `FILE.n.zst`.
fn packed(path: &Path, n: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}.zst"));
    name.into()
}

/// Ends a log with a line feed. Returns its length.
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
    tracing::warn!(%path, bytes, "the last line of the scan log is incomplete, as a crash leaves it; it is cut off");
    file.set_len(whole)?;
    Ok(whole)
}

/// Where the last line that has its line feed ends.
fn complete_lines_len(file: &mut File, len: u64) -> io::Result<u64> {
    let mut end = len;
    let mut chunk = [0; 4096];
    while end > 0 {
        let from = end.saturating_sub(chunk.len() as u64);
        let part = &mut chunk[..(end - from) as usize];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|&b| b == b'\n') {
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
        let there = (1..).take_while(|&n| packed(&path, n).exists()).last().unwrap();
        let files = (1..=there).rev().map(|n| packed(&path, n)).chain([path.clone()]);
        let times = files.flat_map(|file| super::super::open(&file).unwrap().map(|line| line.unwrap().1.t_ms()));
        assert_eq!(times.collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
        assert!(there >= 5);
    }

    /// While the disk is nearly full nothing is flushed, since nothing is committed.
    #[test]
    fn scans_not_yet_flushed_go_to_the_file_that_is_begun() {
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
        let closed: Vec<i64> = open(&packed(&path, 1)).unwrap().map(|line| line.unwrap().1.t_ms()).collect();
        assert_eq!((closed, fs::read_to_string(&path).unwrap()), (vec![1], String::new()));
        recorder.flush().unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), packed(&path, 2).exists()), (miss(2), false));
    }

    /// What a life that was killed left is packed by the next, whatever it was
    /// about to do.
    #[test]
    fn interrupted_compression_is_finished_at_the_next_open() {
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
    fn compressed_files_are_found_while_one_is_compressed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        for there in [&[][..], &[1], &[2], &[1, 2, 3], &[2, 3, 4], &[1, 2, 4]] {
            there.iter().for_each(|&n| fs::write(packed(&path, n), "").unwrap());
            let files = compressed_files(&path);
            assert!(files.iter().eq(there.iter().rev().map(|&n| packed(&path, n)).collect::<Vec<_>>().iter()));
            files.iter().for_each(|file| fs::remove_file(file).unwrap());
        }
    }

    /// The running file goes on growing while the one before is packed.
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
    fn file_that_is_not_a_scan_log_is_refused_and_kept() {
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
        // One bad line does not make it another file.
        fs::write(&path, format!("damaged\n{}", miss(1))).unwrap();
        open(&path).unwrap();
    }

    #[test]
    fn unfinished_compression_is_detected_by_file_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        let half = packed(&path, 1).with_extension("tmp");
        let touch = |path: &Path| fs::write(path, "").unwrap();
        assert_eq!(complete_copy(&half), None);
        touch(&packing(&path));
        assert_eq!((complete_copy(&half), complete_copy(&packing(&path))), (Some(packing(&path)), None));
        touch(&packed(&path, 1));
        assert_eq!(
            (complete_copy(&half), complete_copy(&packing(&path))),
            (Some(packed(&path, 1)), Some(packed(&path, 1)))
        );
        assert_eq!((complete_copy(&path), complete_copy(&packed(&path, 1))), (None, None));
        touch(&dir.path().join("old.zst"));
        assert_eq!(complete_copy(&dir.path().join("old.tmp")), None);
    }
}
