//! A server has one URL: protocols with the same wire format are the same server on the same address and port.

use crate::sandbox::{Sandbox, wait_until};

const QUAKE3: &str = "quake3://127.9.0.1:27960";
const DARKPLACES: &str = "darkplaces://127.9.0.1:27960";

#[test]
fn server_is_not_added_under_a_second_protocol() {
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", QUAKE3]);
    let refused = sandbox.run(["servers", "add", DARKPLACES, "darkplaces://127.9.0.1:27961"]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.out);
    let all = refused.out + &refused.err;
    assert!(all.contains(&format!("it is known as {QUAKE3}")), "{all}");
    assert_eq!(sandbox.list(&[]).len(), 2);
    // The way that the message names.
    sandbox.ok(["servers", "remove", QUAKE3]);
    sandbox.ok(["servers", "add", DARKPLACES]);
    assert_eq!(sandbox.list(&[]).len(), 2);
    daemon.stop();
}

/// Versions before added both. A replay of their log has both, too.
#[test]
fn server_that_is_known_twice_is_removed_at_the_start() {
    let sandbox = Sandbox::new("");
    let scan = |t: i64, url: &str, points: i64| {
        format!(
            "{{\"t\":{t},\"server\":\"{url}\",\"game\":\"g\",\"map\":\"m\",\"slots\":8,\
             \"players\":[{{\"name\":\"ann\",\"points\":{points},\"ping\":9,\"bot\":false}}]}}\n"
        )
    };
    let start = 1_763_683_200_000;
    let lines: String = (0..4)
        .flat_map(|n| [scan(start + n * 60_000, DARKPLACES, n), scan(start + n * 60_000 + 1, QUAKE3, n)])
        .collect();
    let log = sandbox.path("scans.jsonl");
    std::fs::write(&log, lines).unwrap();
    sandbox.replay(&log, &sandbox.state());
    assert_eq!(sandbox.list(&[]).len(), 2);
    let daemon = sandbox.start();
    daemon.wait_for_log(&format!("{QUAKE3} is the same server as {DARKPLACES}"));
    // Readers see it after the next commit.
    let listed = || sandbox.list(&[]).iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    wait_until("one server is left", || listed() == [DARKPLACES]);
    daemon.stop();
    // Its past stays.
    let export = sandbox.ok(["export", "--week", "2025-W47"]);
    assert!(export.contains(QUAKE3) && export.contains(DARKPLACES), "{export}");
}
