//! Recording, rotation, and restarts after a crash.

use std::fs;
use std::path::Path;

use super::*;
use crate::scan_log::reader::open;
use crate::scan_log::rotation::compressed_file;
use crate::scan_log::tail::read_tail;

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
        recorder.finish_compression();
    }
    let mut times = Vec::new();
    for file in [compressed_file(&path, 2), compressed_file(&path, 1), path.clone()] {
        times.extend(open(&file).unwrap().map(|line| line.unwrap().t_ms()));
    }
    assert_eq!(times, (times[0]..=20).collect::<Vec<_>>());
    assert!(times.len() >= 10 && !compressed_file(&path, 3).exists());
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
        recorder.finish_compression();
    }
    let count = (1..).take_while(|&n| compressed_file(&path, n).exists()).last().unwrap();
    let files = (1..=count).rev().map(|n| compressed_file(&path, n)).chain([path.clone()]);
    let times = files.flat_map(|file| open(&file).unwrap().map(|line| line.unwrap().t_ms()));
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
    recorder.finish_compression();
    let rotated: Vec<i64> = open(&compressed_file(&path, 1)).unwrap().map(|line| line.unwrap().t_ms()).collect();
    assert_eq!((rotated, fs::read_to_string(&path).unwrap()), (vec![1], String::new()));
    recorder.flush().unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap(), compressed_file(&path, 2).exists()), (miss(2), false));
}

/// The next start finishes an interrupted compression, at whatever step it was killed.
#[test]
fn interrupted_compression_is_finished_at_the_next_open() {
    let complete = |n: i64| format!("{{\"t\":{n},\"server\":\"quake3://h:1\",\"miss\":true}}\n");
    let zst = |text: &str| zstd::encode_all(text.as_bytes(), 3).unwrap();
    for done in ["rotated", "half compressed", "compressed"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scans.jsonl");
        fs::write(compressed_file(&path, 2), zst(&complete(1))).unwrap();
        fs::write(rotated_file(&path), complete(2)).unwrap();
        match done {
            "half compressed" => {
                fs::write(compressed_file(&path, 1).with_extension("tmp"), &zst(&complete(2))[..9]).unwrap()
            }
            "compressed" => fs::write(compressed_file(&path, 1), zst(&complete(2))).unwrap(),
            _ => {}
        }
        let settings = RecorderSettings { path: path.clone(), rotate_bytes: 1, keep_files: 0 };
        let mut recorder = Recorder::open(settings).unwrap();
        let url = ServerUrl::parse("quake3://h:1").unwrap();
        for t_ms in 3..=4 {
            recorder.add(&url, &Outcome::Miss { t_ms, reason: "timeout".into() });
            recorder.finish_compression();
            recorder.flush().unwrap();
        }
        drop(recorder);
        let files: Vec<PathBuf> = (1..=3).rev().map(|n| compressed_file(&path, n)).chain([path.clone()]).collect();
        let lines = files.iter().flat_map(|file| open(file).unwrap());
        let times: Vec<i64> = lines.map(|line| line.unwrap().t_ms()).collect();
        assert_eq!(times, [1, 2, 3, 4], "{done}");
        assert!(!rotated_file(&path).exists() && !compressed_file(&path, 4).exists(), "{done}");
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
    recorder.compressor = Some(thread::spawn(move || {
        ended.recv().map_err(|error| record_error("compress", Path::new("x"))(std::io::Error::other(error)))
    }));
    let url = ServerUrl::parse("quake3://h:1").unwrap();
    let add = |recorder: &mut Recorder, t_ms| {
        recorder.add(&url, &Outcome::Miss { t_ms, reason: "timeout".into() });
        recorder.flush().unwrap();
    };
    (1..=5).for_each(|t_ms| add(&mut recorder, t_ms));
    assert!(!compressed_file(&path, 1).exists() && !rotated_file(&path).exists());
    end.send(()).unwrap();
    recorder.finish_compression();
    add(&mut recorder, 6);
    drop(recorder);
    let times = |path: &Path| open(path).unwrap().map(|line| line.unwrap().t_ms()).collect();
    let (old, new): (Vec<i64>, Vec<i64>) = (times(&compressed_file(&path, 1)), times(&path));
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
        let is_new = |event: &LogEvent| event.t_ms() > held_ms;
        let mut tail = read_tail(&path, is_new).unwrap();
        let new_lines = std::iter::from_fn(|| tail.next_new(is_new).unwrap());
        let times: Vec<_> = new_lines.map(|event| event.t_ms()).collect();
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
                let complete = len == last.len() || len + 1 == last.len() && zeros == 0;
                let want = [before, if complete { &last } else { "" }, &miss(3)].concat();
                assert_eq!(fs::read_to_string(&path).unwrap(), want, "{len} + {zeros}");
            }
        }
    }
}

#[test]
fn file_that_is_not_a_scan_log_is_rejected_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("scans.jsonl");
    let open =
        |path: &Path| Recorder::open(RecorderSettings { path: path.to_owned(), rotate_bytes: 1 << 20, keep_files: 0 });
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
    assert!(matches!(open(&dir.path().join("x.zst")).map(drop), Err(RecordError::Compressed(_))));
    assert!(!dir.path().join("x.zst").exists());
    // One damaged line does not make it another kind of file.
    fs::write(&path, format!("damaged\n{}", miss(1))).unwrap();
    open(&path).unwrap();
}

#[test]
fn closed_file_that_cannot_be_removed_is_retried_and_recording_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("scans.jsonl");
    // Not even root can remove it as a file.
    let closed = rotated_file(&path);
    fs::create_dir(&closed).unwrap();
    fs::write(compressed_file(&path, 1), zstd::encode_all(&b""[..], 1).unwrap()).unwrap();
    let settings = RecorderSettings { path: path.clone(), rotate_bytes: 1_600, keep_files: 0 };
    let mut recorder = Recorder::open(settings).unwrap();
    let url = ServerUrl::parse("quake3://h:1").unwrap();
    let record = |recorder: &mut Recorder, t_ms| {
        recorder.add(&url, &Outcome::Miss { t_ms, reason: "timeout".into() });
        recorder.flush().unwrap();
    };
    for t_ms in 1..=50 {
        record(&mut recorder, t_ms);
        recorder.finish_compression();
    }
    assert!(recorder.has_failed && recorder.bytes > 1_600, "one file goes on");
    assert!(!recorder.start_new_file().unwrap());
    assert_eq!(open(&path).unwrap().count(), 50);
    fs::remove_dir(&closed).unwrap();
    fs::write(&closed, "").unwrap();
    for t_ms in 51..=60 {
        record(&mut recorder, t_ms);
        recorder.finish_compression();
    }
    assert!(!recorder.has_failed && recorder.bytes < 1_600);
    let files = [compressed_file(&path, 1), path.clone()];
    let times: Vec<_> = files.iter().flat_map(|file| open(file).unwrap().map(|line| line.unwrap().t_ms())).collect();
    assert_eq!(times, (1..=60).collect::<Vec<_>>());
}

fn recorded(text: &str) -> RecordedSettings {
    serde_json::from_str(text).unwrap()
}

/// The lines with settings of a file, and its first line.
fn settings_in(text: &str) -> (Vec<String>, String) {
    let lines = text.lines().filter(|line| line.contains("\"settings\"")).map(str::to_owned);
    (lines.collect(), text.lines().next().unwrap_or_default().to_owned())
}

#[test]
fn each_file_begins_with_all_settings_and_later_lines_have_changes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("scans.jsonl");
    let open_recorder = |settings: &str| {
        let of_file = RecorderSettings { path: path.clone(), rotate_bytes: 1 << 20, keep_files: 0 };
        let mut recorder = Recorder::open(of_file).unwrap();
        recorder.set_settings(recorded(settings));
        recorder
    };
    let url = ServerUrl::parse("quake3://h:1").unwrap();
    let add = |recorder: &mut Recorder, t_ms| {
        recorder.add(&url, &Outcome::Miss { t_ms, reason: "timeout".into() });
        recorder.flush().unwrap();
    };
    let mut recorder = open_recorder(r#"{"elo.k":25.0,"names.count_bots":false}"#);
    add(&mut recorder, 1);
    add(&mut recorder, 2);
    drop(recorder);
    // A restart with the same settings, then with another one.
    add(&mut open_recorder(r#"{"elo.k":25.0,"names.count_bots":false}"#), 3);
    let mut recorder = open_recorder(r#"{"elo.k":30.0,"names.count_bots":false}"#);
    add(&mut recorder, 4);
    let all = r#"{"t":1,"settings":{"elo.k":25.0,"names.count_bots":false}}"#.to_owned();
    let changed = r#"{"t":4,"settings":{"elo.k":30.0}}"#.to_owned();
    assert_eq!(settings_in(&fs::read_to_string(&path).unwrap()), (vec![all.clone(), changed], all));

    // Lines that are added before the file is rotated go to the new file.
    recorder.add(&url, &Outcome::Miss { t_ms: 5, reason: "timeout".into() });
    recorder.start_new_file().unwrap();
    recorder.flush().unwrap();
    recorder.start_new_file().unwrap();
    add(&mut recorder, 6);
    recorder.finish_compression();
    for (file, t_ms) in [(compressed_file(&path, 1), 5), (path.clone(), 6)] {
        let text = open(&file).unwrap().map(|event| event.unwrap()).fold(Vec::new(), |mut text, event| {
            line::write_event(&mut text, &event);
            text
        });
        let all = format!("{{\"t\":{t_ms},\"settings\":{{\"elo.k\":30.0,\"names.count_bots\":false}}}}");
        let found = settings_in(std::str::from_utf8(&text).unwrap());
        assert_eq!(found, (vec![all.clone()], all), "{}", file.display());
    }
}
