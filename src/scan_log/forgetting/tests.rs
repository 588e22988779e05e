//! Rewriting of real files: what is replaced and what is not, kills, damage, rotation meanwhile.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::engine::Outcome;
use crate::log::LogEvent;
use crate::log::LogFileLock;
use crate::model::NameHash;
use crate::rank::NameRules;
use crate::scan_log::rotation::{compress, compressed_file, rotate};

const FORGOTTEN_MS: i64 = 5_000;

fn entry(name: &str) -> String {
    format!("{{\"name\":\"{name}\",\"points\":3,\"ping\":48,\"bot\":false}}")
}

fn line_of(t_ms: i64, game: &str, names: &[&str]) -> String {
    let players: Vec<String> = names.iter().map(|name| entry(name)).collect();
    format!(
        "{{\"t\":{t_ms},\"server\":\"quake3://10.0.0.1:27960\",\"game\":\"{game}\",\"map\":\"q3dm17\",\"hostname\":\"h\",\
         \"slots\":16,\"players\":[{}]}}\n",
        players.join(",")
    )
}

fn line(t_ms: i64, names: &[&str]) -> String {
    line_of(t_ms, "baseq3", names)
}

fn miss(t_ms: i64) -> String {
    format!("{{\"t\":{t_ms},\"server\":\"quake3://10.0.0.1:27960\",\"miss\":true,\"reason\":\"timeout\"}}\n")
}

/// More than two steps of the work.
fn long(from_ms: i64, names: &[&str]) -> String {
    (0..4_000).map(|n| line(from_ms + n / 1_000, names)).collect()
}

struct Log {
    dir: tempfile::TempDir,
}

impl Log {
    /// A log with these closed files, the newest first.
    fn new(files: &[&str]) -> Log {
        let log = Log { dir: tempfile::tempdir().unwrap() };
        for (number, text) in (1..).zip(files) {
            log.write(number, &zst(text));
        }
        fs::write(log.path(), "").unwrap();
        log
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("scans.jsonl")
    }

    fn file(&self, number: u32) -> PathBuf {
        compressed_file(&self.path(), number)
    }

    fn write(&self, number: u32, bytes: &[u8]) {
        fs::write(self.file(number), bytes).unwrap();
    }

    fn text(&self, number: u32) -> String {
        let mut text = String::new();
        zstd::Decoder::new(File::open(self.file(number)).unwrap()).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    fn rewriting(&self) -> LogRewriting {
        LogRewriting::new(&self.path(), names(), LogFileLock::default(), 0)
    }

    #[track_caller]
    fn rewrite(&self) -> RewritingSummary {
        self.rewriting().rewrite_closed_files(&mut |_| true, &mut |_| {}).unwrap()
    }

    /// All files of the directory.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn names() -> ForgottenNames {
    let hash = |name| (NameHash::of("baseq3", name), FORGOTTEN_MS);
    ForgottenNames::new(vec![hash("Visor")], NameRules::default())
}

/// As the daemon compresses a file.
fn zst(text: &str) -> Vec<u8> {
    let mut out = zstd::Encoder::new(Vec::new(), 3).unwrap();
    out.include_checksum(true).unwrap();
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

/// Content, time of change and inode number.
fn identity(path: &Path) -> (Vec<u8>, i64, i64, u64) {
    let metadata = fs::metadata(path).unwrap();
    (fs::read(path).unwrap(), metadata.mtime(), metadata.mtime_nsec(), metadata.ino())
}

const STANDS_FOR: &str = "forgotten-5000-1";

#[test]
fn names_are_replaced_and_files_without_them_are_unchanged() {
    let kept = [line(1, &["Klesk"]), miss(2), line_of(3, "baseoa", &["Visor"]), line(4, &["visor", "Visor2", ""])];
    let before = [line(10, &["Klesk", "^1Vis^2or", "Sarge"]), miss(11), line(5_000, &["  Visor "])];
    let after = line(5_001, &["Visor", "Klesk"]);
    let with_name = before.concat() + &kept.concat() + &after;
    let log = Log::new(&[&kept.concat(), &with_name, &kept.concat()]);
    fs::set_permissions(log.file(2), fs::Permissions::from_mode(0o640)).unwrap();
    let (newest, oldest) = (identity(&log.file(1)), identity(&log.file(3)));
    let mut pending = Vec::new();
    let summary = log.rewriting().rewrite_closed_files(&mut |_| true, &mut |left| pending.push(left)).unwrap();
    assert_eq!(summary, RewritingSummary { files: 1, lines: 3, lines_unreadable: 0 });
    assert_eq!(pending, [3, 2, 1, 0]);
    let want = [
        line(10, &["Klesk", STANDS_FOR, "Sarge"]),
        miss(11),
        line(5_000, &[STANDS_FOR]),
        kept.concat(),
        line(5_001, &["", "Klesk"]),
    ];
    assert_eq!(log.text(2), want.concat());
    assert_eq!(fs::metadata(log.file(2)).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!((identity(&log.file(1)), identity(&log.file(3))), (newest, oldest));
    // A repetition finds nothing to do.
    let rewritten = identity(&log.file(2));
    assert_eq!(log.rewrite(), RewritingSummary::default());
    assert_eq!(identity(&log.file(2)), rewritten);
    assert_eq!(log.names(), ["scans.jsonl", "scans.jsonl.1.zst", "scans.jsonl.2.zst", "scans.jsonl.3.zst"]);
}

#[test]
fn files_behind_a_gap_are_rewritten() {
    let log = Log::new(&[&line(1, &["Visor"])]);
    for number in [4, 9] {
        log.write(number, &zst(&line(1, &["Visor"])));
    }
    // Not files of this log.
    for other in ["scans.jsonl.x.zst", "other.jsonl.1.zst"] {
        fs::write(log.dir.path().join(other), "kept").unwrap();
    }
    assert_eq!(log.rewrite().files, 3);
    assert!([1, 4, 9].iter().all(|&number| log.text(number) == line(1, &[STANDS_FOR])));
}

#[test]
fn names_of_one_request_have_different_placeholders() {
    let hash = |name, forgotten_ms| (NameHash::of("baseq3", name), forgotten_ms);
    let names = ForgottenNames::new(vec![hash("a", 7), hash("b", 7), hash("c", 9)], NameRules::default());
    let text = line(1, &["a", "b", "c", "d"]);
    let mut event = crate::scan_log::parse(text.trim()).unwrap();
    assert!(names.replace_in(&mut event));
    let LogEvent::Scan { outcome: Outcome::Snapshot(snapshot), .. } = event else { panic!("a list") };
    let mut found: Vec<_> = snapshot.players.iter().map(|player| player.name.as_str()).collect();
    found.sort();
    assert_eq!(found, ["d", "forgotten-7-1", "forgotten-7-2", "forgotten-9-1"]);
    assert_eq!(names.times_ms(), [7, 7, 9]);
}

/// Stops at every pause of the work. A kill between two pauses leaves the same files: only the
/// rename at the end of a file changes one.
#[test]
fn stop_at_any_step_leaves_old_or_new_files_and_the_next_start_finishes() {
    let (with_name, clean) = (long(1, &["Klesk", "Visor"]), long(1, &["Klesk", STANDS_FOR]));
    let mut stops = 0;
    loop {
        let log = Log::new(&[&with_name, &with_name]);
        let mut left = stops;
        let mut pause = |_| {
            left -= 1;
            left >= 0
        };
        let result = log.rewriting().rewrite_closed_files(&mut pause, &mut |_| {});
        for number in [1, 2] {
            let text = log.text(number);
            assert!(text == with_name || text == clean, "file {number} after {stops} steps");
        }
        if result.is_ok() {
            assert!(stops > 4, "{stops}");
            break;
        }
        assert!(matches!(result, Err(RewriteError::Stopped)));
        assert_ne!(log.text(1), clean);
        // A kill also leaves a part of the copy.
        fs::write(log.dir.path().join(".scans.jsonl.rewriting"), &zst(&clean)[..99]).unwrap();
        log.rewrite();
        assert_eq!((log.text(1) == clean, log.text(2) == clean), (true, true));
        assert_eq!(log.names(), ["scans.jsonl", "scans.jsonl.1.zst", "scans.jsonl.2.zst"]);
        stops += 1;
    }
}

#[test]
fn unreadable_lines_are_replaced_by_their_length() {
    let bad = ["{\"t\":1,\"players\":[{\"name\":\"Visor\"", "Visor", "{\"unreadable_bytes\":x}", "{}"];
    let text: String = bad.iter().map(|bad| format!("{}{bad}\n", line(1, &["Klesk"]))).collect();
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(b"Vis\xffor\n");
    let log = Log::new(&[&line(1, &["Klesk"])]);
    log.write(2, &zstd::encode_all(&bytes[..], 3).unwrap());
    let summary = log.rewrite();
    assert_eq!(summary, RewritingSummary { files: 1, lines: 0, lines_unreadable: 5 });
    let want: String = [bad.map(str::len).map(|len| len + 1).to_vec(), vec![7]]
        .concat()
        .iter()
        .enumerate()
        .map(|(n, len)| {
            format!("{}{{\"unreadable_bytes\":{len}}}\n", if n < 4 { line(1, &["Klesk"]) } else { String::new() })
        })
        .collect();
    assert_eq!(log.text(2), want);
    // The loss remains visible to a replay, and another rewriting does not change the file.
    let (read, damage) = crate::scan_log::check(&log.file(2)).unwrap();
    assert_eq!((read.lines, damage.lines), (4, 5));
    let rewritten = identity(&log.file(2));
    assert_eq!(log.rewrite(), RewritingSummary::default());
    assert_eq!(identity(&log.file(2)), rewritten);
}

#[test]
fn damaged_compressed_data_keep_the_readable_lines() {
    let names: Vec<String> = (0..40_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let text: String = names.iter().map(|name| line(1, &[name, "Visor"])).collect();
    let whole = zst(&text);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x10;
    for (bytes, what) in [(&whole[..whole.len() / 2], "truncated"), (&flipped[..], "flipped")] {
        let log = Log::new(&[&line(1, &["Klesk"])]);
        log.write(2, bytes);
        let (before, damage) = crate::scan_log::check(&log.file(2)).unwrap();
        assert!(before.lines > 1_000 && before.lines < 40_000 && !damage.is_empty(), "{what}: {before:?}");
        let summary = log.rewrite();
        assert_eq!((summary.files, summary.lines), (1, before.lines), "{what}");
        let clean = log.text(2);
        assert!(!clean.contains("Visor"), "{what}");
        assert!(clean.lines().last().unwrap().starts_with("{\"unreadable_bytes\":"), "{what}");
        let (after, damage) = crate::scan_log::check(&log.file(2)).unwrap();
        assert_eq!((after.lines, damage.lines), (before.lines, summary.lines_unreadable), "{what}");
        assert_eq!(log.rewrite(), RewritingSummary::default(), "{what}");
    }
}

#[test]
fn file_without_any_readable_line_is_kept_and_the_others_are_rewritten() {
    let with_name = line(1, &["Visor"]);
    let log = Log::new(&[&with_name, "", &with_name]);
    log.write(2, b"not a compressed file: Visor");
    let mut rewriting = log.rewriting();
    for repetition in 0..2 {
        let mut pending = Vec::new();
        let error = rewriting.rewrite_closed_files(&mut |_| true, &mut |left| pending.push(left)).unwrap_err();
        assert_eq!(error.kind(), "unreadable");
        assert!(error.to_string().contains("scans.jsonl.2.zst can be read"), "{error}");
        // A repetition does not read the files that are done.
        assert_eq!(pending, if repetition == 0 { vec![3, 2, 2, 1] } else { vec![1, 1] });
    }
    assert_eq!(fs::read(log.file(2)).unwrap(), b"not a compressed file: Visor");
    assert_eq!([1, 3].map(|number| log.text(number)), [line(1, &[STANDS_FOR]), line(1, &[STANDS_FOR])]);
    fs::remove_file(log.file(2)).unwrap();
    rewriting.rewrite_closed_files(&mut |_| true, &mut |_| {}).unwrap();
}

#[test]
fn rotation_during_the_work_is_followed() {
    let (with_name, clean) = (long(1, &["Visor"]), long(1, &[STANDS_FOR]));
    for (keep_files, at) in [(0, 1), (0, 3), (2, 1), (2, 3)] {
        let log = Log::new(&[&with_name, &with_name]);
        fs::write(log.path(), line(4_000, &["Visor", "Klesk"])).unwrap();
        let mut step = 0;
        let mut pause = |_: Duration| {
            step += 1;
            if step == at {
                rotate(&log.path(), keep_files).unwrap();
                compress(&log.path()).unwrap();
                fs::write(log.path(), "").unwrap();
            }
            true
        };
        log.rewriting().rewrite_closed_files(&mut pause, &mut |_| {}).unwrap();
        assert!(step >= at);
        assert_eq!(log.text(1), line(4_000, &[STANDS_FOR, "Klesk"]), "{keep_files} {at}");
        assert!(log.text(2) == clean);
        assert_eq!(log.file(3).exists(), keep_files == 0);
        assert!(keep_files > 0 || log.text(3) == clean);
        assert!(!log.names().contains(&".scans.jsonl.rewriting".to_owned()));
    }
}

#[test]
fn files_are_replaced_only_when_no_reader_uses_them() {
    let log = Log::new(&[&line(1, &["Visor"])]);
    let lock = LogFileLock::default();
    let mut reading = Some(lock.begin_reading());
    let original = identity(&log.file(1));
    let mut waits = 0;
    let mut pause = |_: Duration| {
        waits += 1;
        assert_eq!(identity(&log.file(1)), original);
        if waits == 3 {
            reading = None;
        }
        true
    };
    let mut rewriting = LogRewriting::new(&log.path(), names(), lock, 0);
    rewriting.rewrite_closed_files(&mut pause, &mut |_| {}).unwrap();
    assert_eq!((waits, log.text(1)), (3, line(1, &[STANDS_FOR])));
}

#[test]
fn nearly_full_disk_stops_the_work_and_changes_nothing() {
    let log = Log::new(&[&line(1, &["Visor"]), &line(1, &["Klesk"])]);
    let original = identity(&log.file(1));
    let mut rewriting = LogRewriting::new(&log.path(), names(), LogFileLock::default(), u64::MAX);
    let error = rewriting.rewrite_closed_files(&mut |_| true, &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), "disk_full");
    assert_eq!(identity(&log.file(1)), original);
    assert_eq!(log.names(), ["scans.jsonl", "scans.jsonl.1.zst", "scans.jsonl.2.zst"]);
}

#[test]
fn active_file_with_a_name_must_be_rotated() {
    let log = Log::new(&[]);
    let has_name = |text: &str| {
        fs::write(log.path(), text).unwrap();
        log.rewriting().active_has_name(&mut |_| true).unwrap()
    };
    let klesk = line(1, &["Klesk"]);
    assert!(!has_name(""));
    // The daemon is writing the last line.
    assert!(!has_name(&format!("{klesk}{}", &klesk[..30])));
    assert!(has_name(&format!("{klesk}{}{klesk}", line(1, &["^5Visor"]))));
    assert!(has_name(&format!("{klesk}damaged\n{klesk}")));
    fs::remove_file(log.path()).unwrap();
    assert!(!log.rewriting().active_has_name(&mut |_| true).unwrap());
}

#[test]
fn done_record_counts_names_of_other_requests() {
    let log = Log::new(&[]);
    let hash = |name, forgotten_ms| (NameHash::of("baseq3", name), forgotten_ms);
    let forgotten = [hash("a", 7), hash("b", 7), hash("c", 9)];
    assert_eq!(DoneRecord::read(&log.path()).pending(&forgotten), 3);
    DoneRecord::new(vec![7, 7]).write(&log.path()).unwrap();
    // The clock was set back since.
    assert_eq!(DoneRecord::read(&log.path()).pending(&[&forgotten[..], &[hash("d", 3)]].concat()), 2);
    assert_eq!(log.names(), [".scans.jsonl.forgotten", "scans.jsonl"]);
    fs::write(log.dir.path().join(".scans.jsonl.forgotten"), "{\"forgotten").unwrap();
    assert_eq!(DoneRecord::read(&log.path()).pending(&forgotten), 3);
}
