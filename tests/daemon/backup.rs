//! `clqd backup` and `clqd restore` as an admin uses them: for a running and for a stopped
//! daemon, and back; and with a disk that is nearly full.
//!
//! That a backup is the state between two commits, record by record, is tested in
//! `src/store/backup.rs`.

use std::fs;
use std::path::Path;

use crate::sandbox::{Daemon, Sandbox, fleet, scan_logs, wait_until};
use clqd::engine::Event;
use clqd::fleet::FaultShares;
use clqd::state::State;
use nix::sys::signal::Signal;
use serde_json::Value;

fn status(sandbox: &Sandbox) -> Value {
    sandbox.json(["status"]).remove(0)
}

fn players(sandbox: &Sandbox) -> u64 {
    status(sandbox)["engine"]["players_known"].as_u64().expect("a number")
}

/// Labels of all weeks that a state directory holds.
fn weeks(sandbox: &Sandbox) -> Vec<String> {
    let status = status(sandbox);
    let weeks = status["engine"]["weeks"].as_array().expect("weeks").iter();
    weeks.map(|week| week["week"].as_str().expect("a label").to_owned()).collect()
}

/// A daemon that records and watches a lively fleet, and has seen players.
fn start_with_players(sandbox: &Sandbox, fleet: &clqd::fleet::Fleet) -> Daemon {
    let daemon = sandbox.start();
    sandbox.ok([vec!["servers".into(), "add".into()], fleet.urls()].concat());
    wait_until("there are players", || players(sandbox) > 20);
    daemon
}

/// Replays all of the scan log into a state directory.
fn replay(sandbox: &Sandbox, state: &Path) {
    let mut args = vec!["replay".into(), "--state".into(), state.as_os_str().to_owned()];
    args.extend(scan_logs(&sandbox.path("scans.jsonl")).into_iter().map(Into::into));
    sandbox.ok(args);
}

#[test]
fn online_backup_equals_the_state_at_one_time() {
    let sandbox = Sandbox::new("");
    let record = sandbox.path("scans.jsonl");
    sandbox.configure(&format!("[scan_log]\npath = {record:?}"));
    let fleet = fleet(8, 31, 60.0, FaultShares::NONE);
    let daemon = start_with_players(&sandbox, &fleet);
    let backup = sandbox.path("backup");
    let made = sandbox.json(["backup", backup.to_str().unwrap()]);
    assert_eq!((made.len(), &made[0]["kind"]), (1, &"backup".into()), "{made:?}");
    let moment = made[0]["latest_event_ms"].as_i64().expect("a moment");
    assert!(made[0]["bytes"].as_u64() > Some(0), "{made:?}");
    let again = sandbox.run(["backup", backup.to_str().unwrap()]);
    assert!(!again.status.success() && again.err.contains("exists already"), "{}", again.err);
    let inside = sandbox.run(["backup", sandbox.state().join("b").to_str().unwrap()]);
    assert!(!inside.status.success() && inside.err.contains("inside the state directory"), "{}", inside.err);
    // It goes on.
    let known = players(&sandbox);
    wait_until("there are more players", || players(&sandbox) > known);
    daemon.stop();
    let weeks = weeks(&sandbox);

    // It is what the log gives up to one of the lines of about that moment.
    let config = clqd::config::Config::load(&sandbox.config()).unwrap();
    let mut opened = State::open_configured(&config, &sandbox.path("to-moment"), true).unwrap();
    let of_backup: Vec<String> = weeks.iter().map(|week| sandbox.export(&backup, week)).collect();
    assert!(of_backup.concat().lines().count() > 20, "{of_backup:?}");
    let mut is_found = false;
    for line in clqd::scan_log::open(&record).unwrap() {
        let (url, outcome) = line.unwrap();
        let t_ms = outcome.t_ms();
        opened.handle(Event::Replayed { url, outcome }).unwrap();
        if (t_ms - moment).abs() > 5_000 || is_found {
            continue;
        }
        opened.commit().unwrap();
        is_found = weeks.iter().zip(&of_backup).all(|(week, of_backup)| {
            let mut rows = Vec::new();
            clqd::cli::export::write(&opened, week, &mut rows).unwrap();
            rows == of_backup.as_bytes()
        });
    }
    assert!(is_found, "the backup is of no moment of the log near {moment}");

    // Back, and with the rest of the log it is the state of now.
    let now: Vec<String> = weeks.iter().map(|week| sandbox.export(&sandbox.state(), week)).collect();
    let printed = sandbox.run(["restore", backup.to_str().unwrap()]);
    assert!(printed.status.success() && printed.err.contains("state.before-restore"), "{}", printed.err);
    let restored: Vec<String> = weeks.iter().map(|week| sandbox.export(&sandbox.state(), week)).collect();
    assert_eq!(restored, weeks.iter().map(|week| sandbox.export(&backup, week)).collect::<Vec<_>>());
    assert!(restored != now);
    let before = sandbox.path("state.before-restore");
    assert_eq!(now, weeks.iter().map(|week| sandbox.export(&before, week)).collect::<Vec<_>>());
    replay(&sandbox, &sandbox.state());
    assert_eq!(now, weeks.iter().map(|week| sandbox.export(&sandbox.state(), week)).collect::<Vec<_>>());
    let daemon = sandbox.start();
    assert_eq!(sandbox.list(&[]).len(), 8);
    daemon.stop();
}

#[test]
fn offline_backup_can_be_restored() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(4, 32, 60.0, FaultShares::NONE);
    start_with_players(&sandbox, &fleet).stop();
    let weeks = weeks(&sandbox);
    let backup = sandbox.path("backup");
    let done = sandbox.ok(["backup", backup.to_str().unwrap()]);
    assert!(done.starts_with(backup.to_str().unwrap()), "{done}");
    let of = |state: &Path| weeks.iter().map(|week| sandbox.export(state, week)).collect::<String>();
    let held = of(&sandbox.state());
    assert!(held.lines().count() > 10 && held == of(&backup));
    fs::remove_dir_all(sandbox.state()).unwrap();
    let done = sandbox.run(["restore", backup.to_str().unwrap()]);
    assert!(done.status.success() && !done.err.contains("before-restore"), "{}", done.err);
    assert_eq!(of(&sandbox.state()), held);

    // Never below a daemon.
    let daemon = sandbox.start();
    let refused = sandbox.run(["restore", backup.to_str().unwrap()]);
    assert!(!refused.status.success(), "{}", refused.out);
    assert!(refused.err.contains(&format!("in use by process {}", daemon.pid())), "{}", refused.err);
    assert!(!sandbox.path("state.before-restore").exists() && !sandbox.path("state.restoring").exists());
    let nothing = sandbox.run(["restore", sandbox.path("nothing").to_str().unwrap()]);
    assert!(!nothing.status.success(), "{}", nothing.out);
    daemon.stop();
}

/// Sets the minimum of free bytes.
fn configure(sandbox: &Sandbox, record: &Path, min_bytes: u64) {
    sandbox.configure(&format!("[scan_log]\npath = {record:?}"));
    let text = fs::read_to_string(sandbox.config()).unwrap();
    let store = format!("[store]\ndisk_free_bytes_min = {min_bytes}\n");
    fs::write(sandbox.config(), text.replace("[store]\n", &store)).unwrap();
}

#[test]
fn nearly_full_disk_stops_only_writes() {
    let sandbox = Sandbox::new("");
    let record = sandbox.path("scans.jsonl");
    configure(&sandbox, &record, 1 << 20);
    let fleet = fleet(6, 33, 60.0, FaultShares::NONE);
    let daemon = start_with_players(&sandbox, &fleet);
    let known = players(&sandbox);
    // More than there is.
    configure(&sandbox, &record, 1 << 50);
    sandbox.ok(["reload"]);
    let log = daemon.wait_for_log("the disk is nearly full");
    let lines = |log: &str| log.matches("the disk is nearly full").count();
    assert_eq!(lines(&log), 1, "{log}");
    wait_until("what is scanned waits in memory", || {
        let status = status(&sandbox);
        let store = &status["store"];
        store["paused_since_ms"].is_i64() && store["pending_records"].as_u64() > Some(0)
    });
    wait_until("answers show it", || players(&sandbox) > known);
    let said = sandbox.ok(["status"]);
    assert!(said.contains("NEARLY FULL") && said.contains("store.disk_free_bytes_min"), "{said}");
    for args in [&["servers", "add", "quake3://127.0.0.1:1"][..], &["greylist", &fleet.urls()[0], "--reason", "x"]] {
        let refused = sandbox.run(args);
        assert_eq!(refused.status.code(), Some(1), "{}", refused.out);
        assert!(refused.err.contains("nearly full"), "{}", refused.err);
    }
    // Nothing is written.
    let sizes = || (fs::metadata(&record).unwrap().len(), fs::metadata(sandbox.state().join("db")).unwrap().len());
    let (before, known) = (sizes(), players(&sandbox));
    wait_until("scanning goes on", || players(&sandbox) > known);
    assert_eq!(sizes(), before);

    configure(&sandbox, &record, 0);
    sandbox.ok(["reload"]);
    let log = daemon.wait_for_log("writing resumes");
    assert_eq!(lines(&log), 1, "reported once: {log}");
    wait_until("it is written", || status(&sandbox)["store"]["paused_since_ms"].is_null());
    sandbox.ok(["servers", "add", "quake3://127.0.0.1:1"]);
    // Full again, and stopped: what waits is written into what was kept free.
    configure(&sandbox, &record, 1 << 50);
    daemon.signal(Signal::SIGHUP);
    wait_until("it is full again", || status(&sandbox)["store"]["paused_since_ms"].is_i64());
    let known = players(&sandbox);
    wait_until("there are more players", || players(&sandbox) > known);
    let known = players(&sandbox);
    daemon.stop();
    assert!(players(&sandbox) >= known, "all that was shown is there");
    let (weeks, fresh) = (weeks(&sandbox), sandbox.path("fresh"));
    replay(&sandbox, &fresh);
    for week in weeks {
        assert_eq!(sandbox.export(&sandbox.state(), &week), sandbox.export(&fresh, &week), "the log has all of it");
    }
}

#[test]
fn writes_stop_before_the_disk_is_full() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("not tested: only root can mount a small file system");
        return;
    }
    let sandbox = Sandbox::new("");
    let small = sandbox.path("small");
    fs::create_dir(&small).unwrap();
    let mount = |args: &[&str]| std::process::Command::new("mount").args(args).arg(&small).output();
    match mount(&["-t", "tmpfs", "-o", "size=32m", "tmpfs"]) {
        Ok(done) if done.status.success() => {}
        other => {
            eprintln!("not tested: cannot mount a tmpfs: {other:?}");
            return;
        }
    }
    struct Unmount<'p>(&'p Path);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            _ = std::process::Command::new("umount").arg("-l").arg(self.0).status();
        }
    }
    let _unmount = Unmount(&small);
    configure(&sandbox, &small.join("scans.jsonl"), 8 << 20);
    let text = fs::read_to_string(sandbox.config()).unwrap();
    fs::write(sandbox.config(), text.replace(&format!("{:?}", sandbox.state()), &format!("{:?}", small.join("state"))))
        .unwrap();
    let fleet = fleet(4, 34, 60.0, FaultShares::NONE);
    let mut daemon = start_with_players(&sandbox, &fleet);
    // Somebody else takes the room.
    let other = small.join("other");
    let free = status(&sandbox)["store"]["disk_free_bytes"].as_u64().unwrap();
    fs::write(&other, vec![1; free as usize - (6 << 20)]).unwrap();
    daemon.wait_for_log("the disk is nearly full");
    let known = players(&sandbox);
    wait_until("scanning goes on", || players(&sandbox) > known);
    assert!(daemon.exit_status().is_none());
    fs::remove_file(&other).unwrap();
    daemon.wait_for_log("writing resumes");
    let log = daemon.stop();
    assert!(!log.contains("No space left"), "{log}");
}
