//! Sampled captures of the daemon: they can be replayed, and do not outlive a forgotten player.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::sandbox::{self, Sandbox, fleet, wait_for, wait_until};
use clqd::fleet::FaultShares;
use serde_json::Value;

fn files(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default()
}

fn lines(dir: &Path) -> usize {
    files(dir).iter().map(|file| fs::read_to_string(file).unwrap_or_default().lines().count()).sum()
}

fn replay(sandbox: &Sandbox, file: &Path) -> Vec<Value> {
    let out = sandbox.ok(["--json".as_ref(), "query".as_ref(), "--replay".as_ref(), file.as_os_str()]);
    sandbox::rows(&out)
}

fn names(rows: &[Value]) -> impl Iterator<Item = &str> {
    rows.iter().flat_map(|row| row["players"].as_array().unwrap()).map(|player| player["name"].as_str().unwrap())
}

#[test]
fn every_capture_is_replayed_and_forgetting_deletes_them() {
    let fleet = fleet(6, 22, 60.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let dir = sandbox.path("captures");
    let configure = |share: &str| sandbox.configure(&format!("[capture]\ndir = {dir:?}\nshare = {share}"));
    configure("1.0");
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    // A player can be forgotten when the ranking knows them.
    let server = wait_for("a server has players", || {
        let servers = sandbox.list(&[]);
        let server = servers.iter().find(|server| server["players"].as_u64() > Some(1))?;
        Some(server["url"].as_str().unwrap().to_owned())
    });
    let (name, game) = wait_for("a player is ranked", || {
        let name = sandbox.top(&server, "time").first()?["name"].as_str()?.to_owned();
        let servers = sandbox.json(["servers", "show", &server]);
        Some((name, servers[0]["game"].as_str()?.to_owned()))
    });
    wait_until("scans are captured", || lines(&dir) > 12);
    configure("0.0");
    sandbox.ok(["reload"]);
    let counted = || sandbox.status()["counters"]["capture.written"].as_u64().unwrap() as usize;
    wait_until("the captures in flight are written", || counted() == lines(&dir));
    let mut is_captured = false;
    for file in files(&dir) {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        // A scan that was in flight may still be written.
        let copy = sandbox.path("copy.jsonl");
        fs::copy(&file, &copy).unwrap();
        let rows = replay(&sandbox, &copy);
        assert_eq!(rows.len(), fs::read_to_string(&copy).unwrap().lines().count());
        assert!(rows.iter().all(|row| row["kind"] == "query" && row["miss"].is_null()), "{rows:?}");
        is_captured |= names(&rows).any(|listed| listed == name);
    }
    assert!(is_captured, "{name}");

    configure("1.0");
    sandbox.ok(["reload"]);
    let forgotten = sandbox.ok(["player", "forget", &name, "--game", &game, "--yes"]);
    assert!(forgotten.contains("capture files deleted: "), "{forgotten}");
    let before = counted();
    wait_until("scans are captured again", || counted() > before + 12);
    let log = daemon.stop();
    assert!(log.contains("capture files deleted"), "{log}");
    for file in files(&dir) {
        let rows = replay(&sandbox, &file);
        assert!(names(&rows).all(|listed| listed != name), "{name}");
    }
}

#[test]
fn capture_directory_that_is_not_writable_does_not_stop_the_daemon() {
    let fleet = fleet(3, 23, 60.0, FaultShares::NONE);
    let sandbox = Sandbox::new("");
    let dir = sandbox.path("captures");
    sandbox.configure(&format!("[capture]\ndir = {dir:?}\nshare = 1.0"));
    let daemon = sandbox.start();
    fs::remove_dir(&dir).unwrap();
    fs::write(&dir, "a file").unwrap();
    sandbox.add_servers(&fleet);
    wait_until("errors are counted", || sandbox.status()["counters"]["capture.errors"].as_u64() > Some(3));
    let log = daemon.stop();
    assert_eq!(log.matches("cannot write a capture file").count(), 1, "{log}");
}
