//! The log after `clqd player forget`, with the real daemon: no segment contains the name, and a
//! replay gives the same rows as the state.

use std::fs;

use crate::corrections::{Server, rounds};
use crate::sandbox::{Sandbox, fleet, wait_for, wait_until};
use clqd::fleet::FaultShares;

/// The name, and a part of it that remains if it has colour codes.
const NAME: &str = "Xaero77";
const PART: &[u8] = b"Xae";

/// All segments of the log.
fn segments(sandbox: &Sandbox) -> Vec<(String, Vec<u8>)> {
    let files = clqd::log::segments(&sandbox.state().join("log")).expect("a log");
    files.iter().map(|file| (file.path.display().to_string(), fs::read(&file.path).expect("a file"))).collect()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Whether the names are removed, according to `clqd status`.
fn is_done(sandbox: &Sandbox) -> bool {
    let log = &sandbox.status()["log"];
    assert_eq!(log["fault"], serde_json::Value::Null);
    log["names_pending"] == 0
}

/// The daemon is killed as soon as it has replied to the request.
#[test]
fn forgotten_name_is_in_no_file_and_a_replay_equals_the_state() {
    let one = Server::start(&[NAME, "^1Klesk", "Sarge", "Bones"]);
    let two = Server::start(&["Klesk", "Bones", "^4Xae^7ro77", "Hunter"]);
    let fleet = fleet(16, 31, 60.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let mut daemon = sandbox.start();
    sandbox.ok(["servers", "add", &one.url, &two.url, "--tag", "ctf"]);
    sandbox.add_servers(&fleet);
    wait_until("rounds are rated", || rounds(&sandbox, NAME) >= 4 && rounds(&sandbox, "Bones") >= 4);
    // Each start begins a segment.
    let scans = || sandbox.status()["engine"]["counts"]["snapshots"].as_u64();
    for _ in 0..2 {
        daemon.stop();
        daemon = sandbox.start();
        wait_until("servers are scanned", || scans() > Some(20));
    }
    let with_name = segments(&sandbox).into_iter().filter(|(_, bytes)| contains(bytes, NAME.as_bytes())).count();
    assert!(with_name >= 3, "{with_name}");

    sandbox.ok(["player", "forget", NAME, "--game", "baseq3", "--yes"]);
    daemon.kill();
    let daemon = sandbox.start();
    wait_until("the names are removed", || is_done(&sandbox));
    for (file, bytes) in segments(&sandbox) {
        assert!(!contains(&bytes, PART), "{file}");
    }
    // The player is still there.
    one.set_list(&["^2Xae^3ro77", "Klesk", "Sarge", "Bones"]);
    let rated = rounds(&sandbox, "Bones");
    wait_until("rounds are rated", || rounds(&sandbox, "Bones") >= rated + 2);
    let log = daemon.stop();
    assert!(log.contains("forgotten names are removed from the log"), "{log}");
    let segments = segments(&sandbox);
    assert!(segments.iter().all(|(_, bytes)| !contains(bytes, PART)));
    assert!(segments.iter().filter(|(_, bytes)| contains(bytes, b"forgotten-")).count() >= 3);
    sandbox.assert_replay_equals_state();
    // Nothing is left to do at the next start.
    let log = {
        let daemon = sandbox.start();
        assert!(is_done(&sandbox));
        daemon.stop()
    };
    assert!(!log.contains("removed from the log"), "{log}");
}

#[test]
fn segment_that_cannot_be_read_is_a_fault_until_it_can() {
    let one = Server::start(&[NAME, "Klesk"]);
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", &one.url]);
    wait_until("the player is known", || sandbox.run(["player", NAME]).status.success());
    daemon.stop();
    let daemon = sandbox.start();
    let (first, whole) = segments(&sandbox).remove(0);
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&first, damaged).expect("written");
    sandbox.ok(["player", "forget", NAME, "--game", "baseq3", "--yes"]);
    let fault = wait_for("a fault", || Some(sandbox.status()["log"].clone()).filter(|log| !log["fault"].is_null()));
    assert_eq!((&fault["fault"]["kind"], &fault["names_pending"]), (&"unreadable".into(), &1.into()), "{fault}");
    let message = fault["fault_message"].as_str().expect("a text");
    assert!(message.contains(&first), "{message}");
    let printed = sandbox.ok(["status"]);
    assert!(printed.contains("log       1 forgotten name being removed, FAULT for"), "{printed}");

    fs::write(&first, whole).expect("written");
    sandbox.ok(["reload"]);
    wait_until("the fault is over", || sandbox.status()["log"]["fault"].is_null());
    assert!(is_done(&sandbox));
    let log = daemon.stop();
    assert_eq!(log.matches("the log still contains forgotten names").count(), 1, "{log}");
    assert!(segments(&sandbox).iter().all(|(_, bytes)| !contains(bytes, PART)));
}
