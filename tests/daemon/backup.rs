//! `clqd backup` and `clqd restore`, with a running and with a stopped daemon; and the daemon on
//! a disk that is nearly full.
//!
//! `src/store/backup.rs` tests that a backup equals the state between two commits, record by
//! record.

use std::fs;
use std::path::{Path, PathBuf};

use crate::corrections::Server;
use crate::sandbox::{self, Daemon, Sandbox, fleet, wait_until};
use clqd::fleet::FaultShares;
use clqd::state::{ReplayFeed, State};
use nix::sys::signal::Signal;
use serde_json::Value;

fn players(sandbox: &Sandbox) -> u64 {
    sandbox.status()["engine"]["players_known"].as_u64().expect("a number")
}

/// A daemon that records scans of a busy fleet and has seen players.
fn start_with_players(sandbox: &Sandbox, fleet: &clqd::fleet::Fleet) -> Daemon {
    let daemon = sandbox.start();
    sandbox.add_servers(fleet);
    wait_until("players are seen", || players(sandbox) > 20);
    daemon
}

#[test]
fn online_backup_equals_state_at_one_time() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(8, 31, 60.0, FaultShares::NONE);
    let daemon = start_with_players(&sandbox, &fleet);
    let backup = sandbox.path("backup");
    let made = sandbox.json(["backup", backup.to_str().unwrap()]);
    assert_eq!((made.len(), &made[0]["kind"]), (1, &"backup".into()), "{made:?}");
    let backup_ms = made[0]["latest_event_ms"].as_i64().expect("a time");
    assert!(made[0]["bytes"].as_u64() > Some(0), "{made:?}");
    let second = sandbox.run(["backup", backup.to_str().unwrap()]);
    assert!(!second.status.success() && second.err.contains("exists already"), "{}", second.err);
    let inside = sandbox.run(["backup", sandbox.state().join("b").to_str().unwrap()]);
    assert!(!inside.status.success() && inside.err.contains("inside the state directory"), "{}", inside.err);
    // The daemon continues to scan.
    let known = players(&sandbox);
    wait_until("more players are seen", || players(&sandbox) > known);
    daemon.stop();
    let weeks = sandbox.weeks();

    // The backup equals a replay of the log up to a line of about that time.
    let config = clqd::config::Config::load(&sandbox.config()).unwrap();
    let mut opened = State::open_configured(&config, &sandbox.path("replayed"), true).unwrap();
    let of_backup: Vec<String> = weeks.iter().map(|week| sandbox.export(&backup, week)).collect();
    assert!(of_backup.concat().lines().count() > 20, "{of_backup:?}");
    let mut found = false;
    let mut feed = ReplayFeed::background();
    for line in sandbox.log_lines().lines() {
        let event = clqd::scan_log::parse(line).unwrap();
        let t_ms = event.t_ms();
        feed.observe(&mut opened, event).unwrap();
        if (t_ms - backup_ms).abs() > 5_000 || found {
            continue;
        }
        opened.commit().unwrap();
        found = weeks.iter().zip(&of_backup).all(|(week, of_backup)| {
            let mut rows = Vec::new();
            // Without rows at first: the log begins with the commands that add the servers.
            clqd::cli::export::write(&opened, week, &mut rows).is_ok() && rows == of_backup.as_bytes()
        });
    }
    assert!(found, "no replay up to a time near {backup_ms} equals the backup");

    // The restored backup with the rest of the log equals the latest state.
    let now: Vec<String> = weeks.iter().map(|week| sandbox.export(&sandbox.state(), week)).collect();
    let printed = sandbox.run(["restore", backup.to_str().unwrap()]);
    assert!(printed.status.success() && printed.err.contains("state.before-restore"), "{}", printed.err);
    let restored: Vec<String> = weeks.iter().map(|week| sandbox.export(&sandbox.state(), week)).collect();
    assert_eq!(restored, weeks.iter().map(|week| sandbox.export(&backup, week)).collect::<Vec<_>>());
    assert!(restored != now);
    let before = sandbox.path("state.before-restore");
    assert_eq!(now, weeks.iter().map(|week| sandbox.export(&before, week)).collect::<Vec<_>>());
    sandbox.replay(&before, &sandbox.state());
    assert_eq!(now, weeks.iter().map(|week| sandbox.export(&sandbox.state(), week)).collect::<Vec<_>>());
    let daemon = sandbox.start();
    assert_eq!(sandbox.list(&[]).len(), 8);
    daemon.stop();
}

/// A restore applies requests that are later than the backup, also for a name that the backup does not have.
#[test]
fn restore_applies_later_requests_to_forget() {
    let one = Server::start(&["Visor", "Klesk", "Sarge"]);
    let sandbox = Sandbox::new("");
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", &one.url]);
    let is_known = |name: &str| sandbox.run(["player", name]).status.success();
    wait_until("the players are known", || is_known("Visor") && is_known("Sarge"));
    let backup = sandbox.path("backup");
    sandbox.ok(["backup".as_ref(), backup.as_os_str()]);
    one.set_list(&["Visor", "Klesk", "Sarge", "Hunter"]);
    wait_until("the player is known", || is_known("Hunter"));
    for name in ["Visor", "Hunter"] {
        sandbox.ok(["player", "forget", name, "--game", "baseq3", "--yes"]);
    }
    let requests = sandbox.json(["player", "forgotten"]);
    assert_eq!(requests.len(), 2, "{requests:?}");
    daemon.stop();
    assert!(sandbox.export(&backup, &sandbox.weeks()[0]).contains("Visor"));

    let done = sandbox.run(["restore".as_ref(), backup.as_os_str()]);
    assert!(done.status.success() && done.err.contains("2 names that were forgotten later"), "{}", done.err);
    assert_eq!(sandbox.json(["player", "forgotten"]), requests);
    assert!(is_known("Klesk") && !is_known("Visor"));
    let daemon = sandbox.start();
    let scans = || sandbox.status()["engine"]["counts"]["snapshots"].as_u64();
    let seen = scans();
    wait_until("the server is scanned", || scans() > seen.map(|seen| seen + 3));
    assert!(is_known("Klesk") && !is_known("Visor") && !is_known("Hunter"));
    daemon.stop();

    // The requests in the old state cannot be read.
    fs::remove_dir_all(sandbox.path("state.before-restore")).unwrap();
    for file in ["log", "checkpoints"].iter().flat_map(|dir| fs::read_dir(sandbox.state().join(dir)).unwrap()) {
        let file = file.unwrap().path();
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..].iter_mut().take(64).for_each(|byte| *byte = !*byte);
        fs::write(file, bytes).unwrap();
    }
    let done = sandbox.run(["restore".as_ref(), backup.as_os_str()]);
    let warning =
        "warning: the requests to forget players in the old state cannot be applied; repeat `clqd player forget`";
    assert!(done.status.success() && done.err.contains(warning), "{}", done.err);
    assert!(is_known("Visor"));
}

/// The file of a backup is cut, changed and removed. Each restore is refused and changes nothing.
#[test]
fn restore_notices_every_damage_of_a_backup() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(4, 33, 60.0, FaultShares::NONE);
    let daemon = start_with_players(&sandbox, &fleet);
    let backup = sandbox.path("backup");
    sandbox.ok(["backup", backup.to_str().unwrap()]);
    daemon.stop();
    let weeks = sandbox.weeks();
    let export = |state: &Path| weeks.iter().map(|week| sandbox.export(state, week)).collect::<String>();
    let (of_backup, of_state) = (export(&backup), export(&sandbox.state()));
    let files: Vec<PathBuf> = ["", "checkpoints"]
        .iter()
        .flat_map(|dir| fs::read_dir(backup.join(dir)).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.is_file())
        .collect();
    let (manifest, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|path| path.ends_with("manifest.json"));
    let ([manifest], [path]) = (&manifest[..], &files[..]) else { panic!("{manifest:?}, {files:?}") };
    let whole = fs::read(path).unwrap();
    let middle = whole.len() / 2;
    let mut flipped = whole.clone();
    flipped[middle] ^= 16;
    let zeroed = [&whole[..middle], &vec![0; whole.len() - middle][..]].concat();
    let damages = [None, Some(whole[..whole.len() / 10].to_vec()), Some(flipped), Some(zeroed)];
    let before = sandbox.path("state.before-restore");
    for (case, damaged) in damages.into_iter().enumerate() {
        let name = match damaged {
            Some(bytes) => {
                fs::write(path, bytes).unwrap();
                path.file_name().unwrap().to_str().unwrap()
            }
            None => {
                fs::remove_file(path).unwrap();
                "no checkpoint file"
            }
        };
        let done = sandbox.run(["restore", backup.to_str().unwrap()]);
        assert!(!done.status.success() && done.err.contains(name), "damage {case}: {} {}", done.out, done.err);
        assert!(!before.exists() && export(&sandbox.state()) == of_state, "damage {case}");
        fs::write(path, &whole).unwrap();
    }
    // A file of another backup has valid checksums.
    let text = fs::read_to_string(manifest).unwrap();
    let Value::Number(records) = &serde_json::from_str::<Value>(&text).unwrap()["records"] else { panic!("{text}") };
    fs::write(manifest, text.replace(&records.to_string(), &format!("{records}1"))).unwrap();
    let done = sandbox.run(["restore", backup.to_str().unwrap()]);
    assert!(!done.status.success() && done.err.contains("manifest.json"), "{} {}", done.out, done.err);
    fs::write(manifest, &text).unwrap();
    let restored = sandbox.json(["restore", backup.to_str().unwrap()]);
    assert_eq!(restored[0]["records"].to_string(), records.to_string());
    assert_eq!(export(&sandbox.state()), of_backup);
    assert!(!sandbox.state().join("manifest.json").exists());
}

#[test]
fn daemon_mends_the_damage_that_a_backup_finds() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(4, 35, 60.0, FaultShares::NONE);
    let daemon = start_with_players(&sandbox, &fleet);
    let backup = sandbox.path("backup");
    sandbox.ok(["backup", sandbox.path("first").to_str().unwrap()]);
    let files = fs::read_dir(sandbox.state().join("checkpoints")).unwrap().map(|file| file.unwrap().path());
    let base = files.max_by_key(|path| (path.extension().is_some_and(|end| end == "base"), path.clone())).unwrap();
    let mut bytes = fs::read(&base).unwrap();
    bytes[0] ^= 1;
    fs::write(&base, bytes).unwrap();
    let refused = sandbox.run(["backup", backup.to_str().unwrap()]);
    assert!(refused.err.contains("repeat the backup, and do not stop the daemon"), "{}", refused.err);
    sandbox.ok(["backup", backup.to_str().unwrap()]);
    daemon.stop();
    sandbox.start().stop();
}

#[test]
fn offline_backup_can_be_restored() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(4, 32, 60.0, FaultShares::NONE);
    start_with_players(&sandbox, &fleet).stop();
    let weeks = sandbox.weeks();
    let backup = sandbox.path("backup");
    let done = sandbox.ok(["backup", backup.to_str().unwrap()]);
    assert!(done.starts_with(backup.to_str().unwrap()), "{done}");
    let export = |state: &Path| weeks.iter().map(|week| sandbox.export(state, week)).collect::<String>();
    let exported = export(&sandbox.state());
    assert!(exported.lines().count() > 10 && exported == export(&backup));
    fs::remove_dir_all(sandbox.state()).unwrap();
    let done = sandbox.run(["restore", backup.to_str().unwrap()]);
    assert!(done.status.success() && !done.err.contains("before-restore"), "{}", done.err);
    // The old state is missing.
    assert!(done.err.contains("if names were forgotten after the time of this state, repeat `clqd"), "{}", done.err);
    assert_eq!(export(&sandbox.state()), exported);

    // Not while a daemon runs.
    let daemon = sandbox.start();
    let refused = sandbox.run(["restore", backup.to_str().unwrap()]);
    assert!(!refused.status.success(), "{}", refused.out);
    assert!(refused.err.contains("the daemon is running: stop it first"), "{}", refused.err);
    assert!(!sandbox.path("state.before-restore").exists() && !sandbox.path("state.restoring").exists());
    let missing = sandbox.run(["restore", sandbox.path("missing").to_str().unwrap()]);
    assert!(!missing.status.success(), "{}", missing.out);
    daemon.stop();
}

/// Sets the minimum of free bytes.
fn configure(sandbox: &Sandbox, min_bytes: u64) {
    sandbox.configure_store(&format!("disk_free_bytes_min = {min_bytes}"), "");
}

#[test]
fn nearly_full_disk_stops_only_writes() {
    let sandbox = Sandbox::new("");
    configure(&sandbox, 1 << 20);
    let fleet = fleet(6, 33, 60.0, FaultShares::NONE);
    let daemon = start_with_players(&sandbox, &fleet);
    let known = players(&sandbox);
    // More than the disk has.
    configure(&sandbox, 1 << 50);
    sandbox.ok(["reload"]);
    let log = daemon.wait_for_log("the disk is nearly full");
    let lines = |log: &str| log.matches("the disk is nearly full").count();
    assert_eq!(lines(&log), 1, "{log}");
    wait_until("scans are kept in memory", || {
        let status = sandbox.status();
        let store = &status["store"];
        store["paused_since_ms"].is_i64() && store["pending_records"].as_u64() > Some(0)
    });
    wait_until("responses include them", || players(&sandbox) > known);
    let printed = sandbox.ok(["status"]);
    assert!(printed.contains("NEARLY FULL") && printed.contains("store.disk_free_bytes_min"), "{printed}");
    for args in [&["servers", "add", "quake3://127.0.0.1:1"][..], &["greylist", &fleet.urls()[0], "--reason", "x"]] {
        let refused = sandbox.run(args);
        assert_eq!(refused.status.code(), Some(1), "{}", refused.out);
        assert!(refused.err.contains("nearly full"), "{}", refused.err);
    }
    // Nothing is written.
    let log_bytes = || {
        let files = fs::read_dir(sandbox.state().join("log")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
    };
    let sizes = || (log_bytes(), fs::metadata(sandbox.state().join("db")).unwrap().len());
    let (before, known) = (sizes(), players(&sandbox));
    wait_until("scanning continues", || players(&sandbox) > known);
    assert_eq!(sizes(), before);

    configure(&sandbox, 0);
    sandbox.ok(["reload"]);
    let log = daemon.wait_for_log("writing resumes");
    assert_eq!(lines(&log), 1, "reported once: {log}");
    wait_until("writing has resumed", || sandbox.status()["store"]["paused_since_ms"].is_null());
    sandbox.ok(["servers", "add", "quake3://127.0.0.1:1"]);
    // Nearly full again, then stopped: pending records are written to the reserved space.
    configure(&sandbox, 1 << 50);
    daemon.signal(Signal::SIGHUP);
    wait_until("writing is paused again", || sandbox.status()["store"]["paused_since_ms"].is_i64());
    let known = players(&sandbox);
    wait_until("more players are seen", || players(&sandbox) > known);
    let known = players(&sandbox);
    daemon.stop();
    assert!(players(&sandbox) >= known, "everything that was reported is stored");
    let (weeks, fresh) = (sandbox.weeks(), sandbox.path("fresh"));
    sandbox.replay(&sandbox.state(), &fresh);
    for week in weeks {
        assert_eq!(
            sandbox.export(&sandbox.state(), &week),
            sandbox.export(&fresh, &week),
            "the log contains all scans"
        );
    }
}

#[test]
fn writes_stop_before_disk_is_full() {
    assert!(nix::unistd::geteuid().is_root(), "only root can mount a small file system");
    let sandbox = Sandbox::new("");
    let small = sandbox.path("small");
    fs::create_dir(&small).unwrap();
    sandbox::run(std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=32m", "tmpfs"]).arg(&small));
    struct Unmount<'p>(&'p Path);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            _ = std::process::Command::new("umount").arg("-l").arg(self.0).status();
        }
    }
    let _unmount = Unmount(&small);
    configure(&sandbox, 8 << 20);
    let text = fs::read_to_string(sandbox.config()).unwrap();
    fs::write(sandbox.config(), text.replace(&format!("{:?}", sandbox.state()), &format!("{:?}", small.join("state"))))
        .unwrap();
    let fleet = fleet(4, 34, 60.0, FaultShares::NONE);
    let mut daemon = start_with_players(&sandbox, &fleet);
    // Another program uses the free space.
    let other = small.join("other");
    let free = sandbox.status()["store"]["disk_free_bytes"].as_u64().unwrap();
    fs::write(&other, vec![1; free as usize - (4 << 20)]).unwrap();
    daemon.wait_for_log("the disk is nearly full");
    let known = players(&sandbox);
    wait_until("scanning continues", || players(&sandbox) > known);
    assert!(daemon.exit_status().is_none());
    // A backup would use the space that is kept for the state. On another disk it helps.
    let refused = sandbox.run(["backup", small.join("backup").to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.out);
    assert!(refused.err.contains("of which the backup must leave 8388608"), "{}", refused.err);
    assert!(!small.join("backup").exists() && !small.join("backup.partial").exists());
    let backup = sandbox.path("backup");
    let made = sandbox.run(["backup", backup.to_str().unwrap()]);
    assert!(made.status.success() && made.out.contains(", state as of 20"), "{}{}", made.out, made.err);
    assert!(made.out.contains(" UTC") && made.err.contains("changes wait in memory"), "{}{}", made.out, made.err);
    let weeks = sandbox.weeks();
    assert!(weeks.iter().any(|week| !sandbox.export(&backup, week).is_empty()));
    fs::remove_file(&other).unwrap();
    daemon.wait_for_log("writing resumes");
    // Full when the daemon stops: not even the reserved space is left.
    let free = sandbox.status()["store"]["disk_free_bytes"].as_u64().unwrap();
    fs::write(&other, vec![1; free as usize - (4 << 20)]).unwrap();
    wait_until("writing is paused again", || sandbox.status()["store"]["paused_since_ms"].is_i64());
    let known = players(&sandbox);
    wait_until("players are kept in memory", || players(&sandbox) > known);
    assert!(!daemon.log().contains("No space left"), "{}", daemon.log());
    _ = fs::write(small.join("rest"), vec![1; 32 << 20]);
    let log = daemon.stop();
    assert!(log.contains("are lost") && !log.contains("all state is on disk"), "{log}");
}

/// A backup of a stopped state obeys the same rules as one by the daemon.
#[test]
fn stopped_state_is_backed_up_where_a_daemon_would() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(4, 33, 60.0, FaultShares::NONE);
    start_with_players(&sandbox, &fleet).stop();
    let inside = sandbox.run(["backup", sandbox.state().join("b").to_str().unwrap()]);
    assert!(!inside.status.success() && inside.err.contains("inside the state directory"), "{}", inside.err);
    let backup = sandbox.path("backup");
    configure(&sandbox, 1 << 50);
    let reserved = sandbox.run(["backup", backup.to_str().unwrap()]);
    assert!(!reserved.status.success() && !backup.exists(), "{}", reserved.err);
    assert!(reserved.err.contains("of which the backup must leave 1125899906842624"), "{}", reserved.err);
    sandbox.configure("");
    // As the completion of a shell writes it.
    fs::create_dir(&backup).unwrap();
    sandbox.ok(["backup", &format!("{}/", backup.display())]);
    assert!(backup.join("manifest.json").is_file());

    // What an interrupted command has left.
    let (left, tmp) = (sandbox.path("tmp/clqd-read-left"), sandbox.path("tmp"));
    fs::create_dir_all(&left).unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::open(&left).unwrap().set_modified(old).unwrap();
    assert!(sandbox.command(["status"]).env("TMPDIR", &tmp).output().expect("clqd starts").status.success());
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);

    // A restore that was killed before its last step; then systemd creates an empty directory.
    let state = sandbox.state();
    let beside = |end: &str| PathBuf::from(format!("{}{end}", state.display()));
    fs::rename(&state, beside(".before-restore")).unwrap();
    fs::rename(&backup, beside(".restoring")).unwrap();
    for create in [false, true] {
        if create {
            fs::create_dir(&state).unwrap();
        }
        for command in [&["run"][..], &["restore", beside(".before-restore").to_str().unwrap()]] {
            // Without a directory, the restore begins again.
            if create || command.len() == 1 {
                let refused = sandbox.run(command);
                assert!(
                    refused.err.contains("a restore was interrupted between its last two steps"),
                    "{}",
                    refused.err
                );
            }
        }
    }
}

#[test]
fn scan_logs_are_not_imported_into_a_state_without_servers() {
    let sandbox = Sandbox::new("");
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/scan-log.jsonl");
    let import = || sandbox.run(["log", "import", log]);
    let missing = import();
    assert!(!missing.status.success() && !sandbox.state().exists(), "{}", missing.err);
    let config = clqd::config::Config::load(&sandbox.config()).unwrap();
    drop(State::open_configured(&config, &sandbox.state(), true).unwrap());
    let empty = import();
    assert!(empty.err.contains("has no servers, so no event is new to it: use clqd replay"), "{}", empty.err);
}
