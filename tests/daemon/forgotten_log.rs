//! A scan log after `clqd player forget`, with the real daemon: no file contains the name, and a
//! replay gives the same rows as the state.

use std::fs;
use std::path::Path;

use crate::corrections::{Server, rounds};
use crate::sandbox::{Sandbox, fleet, scan_logs, wait_for, wait_until};
use clqd::fleet::FaultShares;

/// The name, and a part of it that remains if it has colour codes.
const NAME: &str = "Xaero77";
const PART: &[u8] = b"Xae";

/// All text of all files beside the log, its own hidden files included.
fn texts(record: &Path) -> Vec<(String, Vec<u8>)> {
    let prefix = record.file_name().expect("a file").to_str().expect("UTF-8");
    let entries = fs::read_dir(record.parent().expect("a directory")).expect("a directory");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().expect("a file").to_str().expect("UTF-8").to_owned();
        if !name.trim_start_matches('.').starts_with(prefix) {
            return None;
        }
        let bytes = fs::read(&path).expect("a file");
        let is_compressed = bytes.starts_with(b"\x28\xb5\x2f\xfd");
        Some((name, if is_compressed { zstd::decode_all(&bytes[..]).expect("a whole file") } else { bytes }))
    };
    files.filter_map(read).collect()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Whether the names are removed, according to `clqd status`.
fn is_done(sandbox: &Sandbox) -> bool {
    let log = &sandbox.status()["scan_log"];
    assert_eq!(log["fault"], serde_json::Value::Null);
    log["names_pending"] == 0
}

/// The daemon is killed as soon as it has replied to the request.
#[test]
fn forgotten_name_is_in_no_file_and_a_replay_equals_the_state() {
    let one = Server::start(&[NAME, "^1Klesk", "Sarge", "Bones"]);
    let two = Server::start(&["Klesk", "Bones", "^4Xae^7ro77", "Hunter"]);
    let fleet = fleet(16, 31, 60.0, FaultShares::NONE);
    let (sandbox, record) = Sandbox::recording("rotate_bytes = 65536");
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", &one.url, &two.url, "--tag", "ctf"]);
    sandbox.add_servers(&fleet);
    wait_until("rounds are rated", || rounds(&sandbox, NAME) >= 4 && rounds(&sandbox, "Bones") >= 4);
    wait_until("the log has several files", || scan_logs(&record).len() >= 4);
    let with_name = texts(&record).into_iter().filter(|(_, text)| contains(text, NAME.as_bytes())).count();
    assert!(with_name >= 3, "{with_name}");

    sandbox.ok(["player", "forget", NAME, "--game", "baseq3", "--yes"]);
    daemon.kill();
    let daemon = sandbox.start();
    wait_until("the names are removed", || is_done(&sandbox));
    for (file, text) in texts(&record) {
        assert!(!contains(&text, PART), "{file}");
    }
    // The player is still there.
    one.set_list(&["^2Xae^3ro77", "Klesk", "Sarge", "Bones"]);
    let rated = rounds(&sandbox, "Bones");
    wait_until("rounds are rated", || rounds(&sandbox, "Bones") >= rated + 2);
    let log = daemon.stop();
    assert!(log.contains("forgotten names are removed from the scan log"), "{log}");
    let texts = texts(&record);
    assert!(texts.iter().all(|(_, text)| !contains(text, PART)));
    assert!(texts.iter().filter(|(_, text)| contains(text, b"\"forgotten-")).count() >= 3);
    sandbox.assert_replay_equals_state(&record);
    // Nothing is left to do at the next start.
    let log = {
        let daemon = sandbox.start();
        assert!(is_done(&sandbox));
        daemon.stop()
    };
    assert!(!log.contains("removed from the scan log"), "{log}");
}

#[test]
fn file_that_cannot_be_read_is_a_fault_until_it_is_gone() {
    let one = Server::start(&[NAME, "Klesk"]);
    let (sandbox, record) = Sandbox::recording("");
    let unreadable = sandbox.path("scans.jsonl.1.zst");
    fs::write(&unreadable, "not a scan log").expect("written");
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", &one.url]);
    wait_until("the player is known", || sandbox.run(["player", NAME]).status.success());
    sandbox.ok(["player", "forget", NAME, "--game", "baseq3", "--yes"]);
    let fault =
        wait_for("a fault", || Some(sandbox.status()["scan_log"].clone()).filter(|log| !log["fault"].is_null()));
    assert_eq!((&fault["fault"]["kind"], &fault["names_pending"]), (&"unreadable".into(), &1.into()), "{fault}");
    let message = fault["fault"]["message"].as_str().expect("a text");
    // The active file was rotated.
    assert!(message.contains("no line of ") && message.contains("scans.jsonl.2.zst can be read"), "{message}");
    let printed = sandbox.ok(["status"]);
    assert!(printed.contains("scan log  1 forgotten name being removed, FAULT for"), "{printed}");

    fs::remove_file(sandbox.path("scans.jsonl.2.zst")).expect("a file");
    sandbox.ok(["reload"]);
    wait_until("the fault is over", || {
        let log = &sandbox.status()["scan_log"];
        log["fault"].is_null() && log["names_pending"] == 0
    });
    let log = daemon.stop();
    assert_eq!(log.matches("the log still contains forgotten names").count(), 1, "{log}");
    assert!(texts(&record).iter().all(|(_, text)| !contains(text, PART)));
}
