//! Logs with every kind of damage.

use std::path::PathBuf;

use super::*;
use crate::limits::SCAN_LOG_LINE_BYTES_MAX;
use crate::scan_log::damage::DamagedRange;

fn line(t_ms: i64) -> String {
    format!(
        "{{\"t\":{t_ms},\"server\":\"quake3://10.0.0.1:27960\",\"game\":\"baseq3\",\"map\":\"q3dm17\",\
         \"hostname\":\"caf\u{e9} \\u00e9 \\ud83d\\ude00\",\"slots\":8,\"players\":[{{\"name\":\"\u{1f600}\",\
         \"points\":-12,\"ping\":48,\"bot\":false}}]}}\n"
    )
}

struct Log {
    dir: tempfile::TempDir,
    name: &'static str,
}

impl Log {
    fn new(name: &'static str) -> Log {
        Log { dir: tempfile::tempdir().unwrap(), name }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join(self.name)
    }

    fn check(&self, bytes: impl AsRef<[u8]>) -> (LogSummary, Damage) {
        std::fs::write(self.path(), bytes).unwrap();
        check(&self.path()).unwrap()
    }

    /// Times of the readable lines, and the messages about the others.
    fn salvage(&self, bytes: impl AsRef<[u8]>) -> (Vec<i64>, Vec<String>) {
        let (summary, damage) = self.check(bytes);
        let mut lines = LossyReader::new(open(&self.path()).unwrap());
        let times: Vec<i64> = lines.by_ref().map(|line| line.unwrap().t_ms()).collect();
        assert_eq!(times.len() as u64, summary.lines, "`check` and reading count the same lines");
        let messages: Vec<String> = damage.messages().collect();
        assert_eq!(lines.damage().messages().collect::<Vec<_>>(), messages);
        let shown = |text: String| text.replace(&*self.dir.path().display().to_string(), "");
        (times, messages.into_iter().map(shown).collect())
    }
}

#[test]
fn plain_log_cut_at_every_byte_of_the_last_line_keeps_the_lines_before() {
    let log = Log::new("x.jsonl");
    let before = [line(1), line(2)].concat();
    let last = line(3);
    for len in 0..=last.len() {
        for zeros in [0, 1, 5_000] {
            let mut bytes = [before.as_bytes(), &last.as_bytes()[..len]].concat();
            bytes.resize(bytes.len() + zeros, 0);
            let (span, damage) = log.check(&bytes);
            let cut = damage.truncation.as_ref().map(|cut| (cut.line, cut.bytes, cut.is_compressed));
            assert!(damage.ranges.is_empty(), "{len} + {zeros}: {damage:?}");
            match (len, zeros) {
                (0, 0) => assert_eq!((span.lines, cut), (2, None)),
                // Nothing but the line feed is missing.
                (_, 0) if len + 1 >= last.len() => assert_eq!((span.lines, cut), (3, None)),
                (_, zeros) if len == last.len() => {
                    assert_eq!((span.lines, cut), (3, Some((4, zeros as u64, false))))
                }
                _ => assert_eq!((span.lines, cut), (2, Some((3, (len + zeros) as u64, false))), "{len} + {zeros}"),
            }
            let lines = LossyReader::new(open(&log.path()).unwrap());
            assert_eq!(lines.filter(Result::is_ok).count() as u64, span.lines);
        }
    }
    let (_, messages) = log.salvage([before.as_bytes(), &last.as_bytes()[..20]].concat());
    assert_eq!(messages, ["/x.jsonl:3: the last line is incomplete (20 bytes of this line are in the file): dropped"]);
    // More zeros than a line may have bytes.
    let (times, messages) = log.salvage([before.as_bytes(), &vec![0; 5 << 20]].concat());
    assert_eq!((times.len(), messages.len()), (2, 1), "{messages:?}");
}

#[test]
fn compressed_log_cut_at_every_byte_of_the_last_frame_keeps_the_lines_before() {
    let log = Log::new("x.jsonl.1.zst");
    let compress =
        |times: std::ops::Range<i64>| zstd::encode_all(times.map(line).collect::<String>().as_bytes(), 3).unwrap();
    let (before, last) = (compress(0..2_000), compress(2_000..2_010));
    for len in 0..=last.len() {
        let (span, damage) = log.check([&before[..], &last[..len]].concat());
        assert!(damage.ranges.is_empty(), "{len}: {damage:?}");
        // A file that ends between two frames counts as complete.
        let whole = len == 0 || len == last.len();
        assert_eq!(damage.truncation.is_none(), whole, "{len}: {damage:?}");
        assert_eq!(span.lines, if len < last.len() { 2_000 } else { 2_010 }, "{len}");
        if let Some(cut) = damage.truncation {
            assert_eq!((cut.line, cut.bytes, cut.is_compressed), (2_001, 0, true));
        }
    }
    // All complete blocks of a truncated frame are read.
    for len in (0..before.len()).step_by(97) {
        let (times, messages) = log.salvage(&before[..len]);
        assert_eq!(times, (0..times.len() as i64).collect::<Vec<_>>());
        assert!(messages.len() == 1 && messages[0].contains("all further lines are lost"), "{len}: {messages:?}");
        assert!(times.len() < 2_000 && (len < before.len() / 2 || times.len() > 500), "{len}: {}", times.len());
    }
}

#[test]
fn damaged_lines_are_skipped_and_reported() {
    let log = Log::new("x.jsonl");
    let long = format!("{{\"t\":1,\"x\":\"{}\"}}\n", "x".repeat(SCAN_LOG_LINE_BYTES_MAX));
    let no_time = line(3).replace("\"t\":3", "\"t\":-3");
    let text = [&*line(1), "{\"t\":2,,}\n", "hello\n", &line(3), &long, &no_time, &line(4), "\n", &line(5)].concat();
    let (times, messages) = log.salvage(&text);
    assert_eq!(times, [1, 3, 4, 5]);
    let [json, time, all] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(
        json,
        "/x.jsonl:2: not a line of a scan log: key must be a string at column 8 (lines 2 to 3, 16 bytes): skipped"
    );
    assert!(time.starts_with("/x.jsonl:5: longer than 2097152 bytes (lines 5 to 6, "), "{time}");
    assert!(all.starts_with("4 lines, ") && all.ends_with(" bytes in 2 ranges skipped"), "{all}");
    // A line feed shows that the last line is damaged, not truncated.
    let (times, messages) = log.salvage(line(1) + "{\"t\":2\n");
    assert!(times == [1] && messages[0].contains("x.jsonl:2: not a line"), "{messages:?}");
    let (times, messages) =
        log.salvage([line(1).as_bytes(), b"{\"t\":2,\"x\":\"\xff\"}\n", line(3).as_bytes()].concat());
    assert!(times == [1, 3] && messages[0].contains("x.jsonl:2: not UTF-8 (16 bytes)"), "{messages:?}");
    let (times, messages) = log.salvage(line(1) + "hello");
    assert!(times == [1] && messages[0].contains("x.jsonl:2: not a line"), "{messages:?}");
    assert!(!log.check("hello\n".repeat(1_000)).1.is_empty());
}

#[test]
fn damaged_ranges_beyond_the_limit_are_counted_and_not_listed() {
    let log = Log::new("x.jsonl");
    let text: String = (0..100).map(|t_ms| line(t_ms) + "x\ny\n").collect();
    let (span, damage) = log.check(text);
    assert_eq!((span.lines, damage.lines, damage.bytes, damage.range_count), (100, 200, 400, 100));
    assert!(damage.ranges.iter().all(|DamagedRange { first, last, bytes, .. }| (last - first, *bytes) == (1, 4)));
    let messages: Vec<String> = damage.messages().collect();
    assert_eq!(messages.len(), 21);
    assert_eq!(messages[20], "200 lines, 400 bytes in 100 ranges skipped, 80 of them not listed");
}

#[test]
fn line_with_a_wrong_time_is_skipped_alone() {
    let log = Log::new("x.jsonl");
    for (times, want, skipped) in [
        (&[10, 11, 9_999, 12, 13][..], &[10, 11, 12, 13][..], 3),
        (&[10, 11, 2, 12, 13], &[10, 11, 12, 13], 3),
        (&[9_999, 10, 11], &[10, 11], 1),
        (&[10, 10, 10], &[10, 10, 10], 0),
    ] {
        let (read, messages) = log.salvage(times.iter().map(|&t_ms| line(t_ms)).collect::<String>());
        assert_eq!(read, want);
        assert_eq!(messages.len(), usize::from(skipped > 0), "{messages:?}");
        let (_, damage) = log.check(times.iter().map(|&t_ms| line(t_ms)).collect::<String>());
        assert_eq!(damage.ranges.first().map_or(0, |range| range.first), skipped, "{times:?}");
    }
}

#[test]
fn flipped_bit_in_compressed_data_ends_the_log_with_an_error() {
    let log = Log::new("x.jsonl.1.zst");
    let text: String = (0..5_000).map(line).collect();
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    std::io::copy(&mut text.as_bytes(), &mut encoder).unwrap();
    let whole = encoder.finish().unwrap();
    for at in (10..whole.len()).step_by(whole.len() / 40) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let (times, messages) = log.salvage(&bytes);
        assert!(!messages.is_empty() && times.len() <= 5_000, "{at}");
    }
}
