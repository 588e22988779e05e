//! The state directory: commands that read it while the daemon is stopped change nothing in it,
//! whichever user runs them; a start waits for processes that have it open; errors name the file
//! and the remedy.
//!
//! Its content is tested in `state_equals_oracle`, crashes in `crash`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sandbox::{Sandbox, copy_of_program, fleet, wait_until};
use clqd::fleet::FaultShares;
use nix::unistd::geteuid;

/// The metadata and content of a file: mode, owner and group, times, inode, content.
type FileState = ((u32, u32, u32), (i64, i64, i64, i64), u64, Vec<u8>);

/// Every file and directory at and below a path.
fn tree(path: &Path) -> BTreeMap<PathBuf, FileState> {
    let mut seen = BTreeMap::new();
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let file = fs::symlink_metadata(&path).expect("metadata");
        let bytes = if file.is_dir() { Vec::new() } else { fs::read(&path).expect("readable") };
        if file.is_dir() {
            pending.extend(fs::read_dir(&path).expect("readable").map(|entry| entry.expect("an entry").path()));
        }
        let times = (file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec());
        seen.insert(path, ((file.mode(), file.uid(), file.gid()), times, file.ino(), bytes));
    }
    seen
}

/// A sandbox whose daemon has scanned some servers and is stopped, and the URL of one of them.
fn stopped_sandbox() -> (Sandbox, String) {
    let sandbox = Sandbox::new("");
    let fleet = fleet(3, 21, 60.0, FaultShares::NONE);
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    wait_until("players are seen", || {
        sandbox.status()["engine"]["players_known"].as_u64().is_some_and(|players| players > 5)
    });
    daemon.stop();
    let server = fleet.urls().remove(0);
    (sandbox, server)
}

fn week(sandbox: &Sandbox) -> String {
    sandbox.status()["engine"]["week"].as_str().expect("a label").to_owned()
}

/// Every command that reads a state directory.
fn read_commands(sandbox: &Sandbox, server: &str, week: &str) -> Vec<Vec<String>> {
    let state = sandbox.state().display().to_string();
    let listed = sandbox.list(&[]).into_iter().find(|row| row["url"] == server).expect("a listed server");
    let game = listed["game"].as_str().expect("a game");
    [
        vec!["--json", "status"],
        vec!["--json", "servers", "list"],
        vec!["--json", "servers", "show", server],
        vec!["--json", "top", server],
        vec!["--json", "top", "--game", game],
        vec!["--json", "player", "search", "a"],
        vec!["--json", "maps"],
        vec!["--json", "board", "windows", "--bytes"],
        vec!["--json", "player", "forgotten"],
        vec!["export", "--state", &state, "--week", week],
    ]
    .map(|args| args.into_iter().map(str::to_owned).collect())
    .to_vec()
}

#[test]
fn offline_read_commands_change_no_file() {
    let (sandbox, server) = stopped_sandbox();
    let week = week(&sandbox);
    let snapshot = fs::read_dir(sandbox.state()).unwrap().map(|file| file.unwrap().path());
    let snapshot = snapshot.filter(|path| path.to_str().unwrap().contains("/snap.")).max();
    let conf = sandbox.state().join("conf");
    // Files that a crash or a disk failure may leave, and that a process that writes would repair,
    // apply or remove.
    let mut cases: Vec<(&str, PathBuf, Vec<u8>)> = vec![
        ("nothing", sandbox.state().join("db"), fs::read(sandbox.state().join("db")).unwrap()),
        ("an unfinished checkpoint", sandbox.state().join("checkpoints/000000000099.delta.tmp"), b"half".to_vec()),
        ("an empty database", sandbox.state().join("db"), Vec::new()),
        ("an unfinished snapshot", sandbox.state().join("snap.00000000FFFFFFFF.generating"), b"half".to_vec()),
        ("truncated settings", conf.clone(), fs::read(&conf).unwrap()[..7].to_vec()),
    ];
    if let Some(snapshot) = snapshot {
        let mut bytes = fs::read(&snapshot).unwrap();
        bytes[0] ^= 1;
        cases.push(("a damaged snapshot", snapshot, bytes));
    }
    let mut outputs = None;
    for (case, path, bytes) in cases {
        let original = fs::read(&path).ok();
        fs::write(&path, &bytes).unwrap();
        let before = tree(&sandbox.state());
        let mut printed = Vec::new();
        for args in read_commands(&sandbox, &server, &week) {
            let done = sandbox.run(&args);
            assert_eq!(done.status.code(), Some(0), "{case}, {args:?}: {}", done.err);
            printed.push(done.out);
            let after = tree(&sandbox.state());
            let changed: Vec<_> =
                after.iter().filter(|(path, seen)| before.get(*path) != Some(seen)).map(|(path, _)| path).collect();
            assert!(changed.is_empty() && before.len() == after.len(), "{case}, {args:?} changed {changed:?}");
        }
        assert!(printed.last().unwrap().lines().count() > 5, "{case}: the state has rows: {printed:?}");
        assert_eq!(*outputs.get_or_insert(printed.clone()), printed, "{case}");
        match original {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    }
    sandbox.start().stop();
}

#[test]
fn offline_read_leaves_no_temporary_files() {
    let (sandbox, _) = stopped_sandbox();
    let tmpdir = sandbox.path("tmpdir");
    fs::create_dir(&tmpdir).unwrap();
    let done = sandbox.command(["status"]).env("TMPDIR", &tmpdir).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read_dir(&tmpdir).unwrap().count(), 0);

    let missing = sandbox.path("missing");
    let done = sandbox.command(["status"]).env("TMPDIR", &missing).output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && err.contains("create a directory in") && err.contains("missing"), "{err}");
}

/// The umask that the systemd unit sets for the daemon.
fn unit_mask() -> String {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/clqd.service");
    let text = fs::read_to_string(unit).unwrap();
    assert!(text.contains("StateDirectoryMode=0750"), "the group may enter the state directory");
    text.lines().find_map(|line| line.strip_prefix("UMask=")).expect("UMask in the unit").to_owned()
}

#[test]
fn replay_by_root_keeps_the_owner_of_the_state() {
    assert!(geteuid().is_root(), "only root can give files to other users");
    const OWNER: u32 = 64_004;
    let sandbox = Sandbox::new("");
    let state = sandbox.state();
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, PermissionsExt::from_mode(0o750)).unwrap();
    chown(&state, Some(OWNER), Some(OWNER)).unwrap();
    sandbox.replay(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scan-log.jsonl"), &state);
    let files = tree(&state);
    assert!(files.len() > 3, "{:?}", files.keys());
    for (path, ((_, user, group), ..)) in files {
        assert_eq!((user, group), (OWNER, OWNER), "{}", path.display());
    }
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn group_member_can_read_but_not_write_state() {
    assert!(geteuid().is_root(), "only root can run commands as other users");
    const OWNER: u32 = 64_001;
    const GROUP: u32 = 64_002;
    const MEMBER: u32 = 64_003;
    let (sandbox, _) = stopped_sandbox();
    // A directory that every user may enter, with a copy of the program.
    let shared = tempfile::Builder::new().prefix("clqd-modes-").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(shared.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = copy_of_program(shared.path());
    let state = shared.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, PermissionsExt::from_mode(0o750)).unwrap();
    chown(&state, Some(OWNER), Some(GROUP)).unwrap();
    let config = shared.path().join("clqd.toml");
    let text = fs::read_to_string(sandbox.config()).unwrap();
    let text = text.replace(&format!("{:?}", sandbox.state()), &format!("{state:?}"));
    fs::write(&config, text.replace(&format!("{:?}", sandbox.socket()), "\"/nonexistent/control.sock\"")).unwrap();
    let run = |user: u32, mask: &str, args: &[&str]| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "umask $0; exec \"$@\"", mask]).arg(&program).arg("--config").arg(&config).args(args);
        command.uid(user).gid(GROUP).current_dir("/").env_remove("TMPDIR");
        let done = command.output().unwrap();
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stdout).into_owned(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    // A scan log, replayed by the owner with the daemon's umask.
    let log = shared.path().join("log.jsonl");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scan-log.jsonl"), &log).unwrap();
    let state_name = state.display().to_string();
    let replay = ["replay", log.to_str().unwrap(), "--state", &state_name];
    assert_eq!(run(OWNER, &unit_mask(), &replay).0, Some(0));

    for stricter in [false, true] {
        if stricter {
            // Modes that an earlier clqd wrote, whose unit had UMask=0077.
            for (path, _) in tree(&state).into_iter().filter(|(path, _)| *path != state) {
                let mode = if path.is_dir() { 0o700 } else { 0o600 };
                fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
            }
            let refused = run(MEMBER, "0027", &["status"]);
            assert_eq!(refused.0, Some(1));
            assert!(
                refused.2.contains("/state/") && refused.2.contains("belongs to") && refused.2.contains("0600"),
                "{}",
                refused.2
            );
            // The next process that writes makes them readable.
            assert_eq!(run(OWNER, &unit_mask(), &replay).0, Some(0));
        }
        let before = tree(&state);
        for (path, ((mode, owner, group), ..)) in &before {
            assert_eq!((*owner, *group), (OWNER, GROUP), "{path:?}");
            assert_eq!(mode & 0o027, 0, "no access for others, no write access for the group: {path:?} {mode:o}");
            assert_eq!(mode & 0o040, 0o040, "read access for the group: {path:?} {mode:o}");
        }
        for args in [&["status"][..], &["servers", "list"], &["export", "--state", &state_name, "--week", "2025-W47"]] {
            let done = run(MEMBER, "0077", args);
            assert_eq!(done.0, Some(0), "{args:?}: {}", done.2);
        }
        // A read by root changes no owner.
        let done = Command::new(&program).arg("--config").arg(&config).arg("status").output().unwrap();
        assert!(done.status.success());
        assert!(before == tree(&state), "no file has changed");
        let refused = run(MEMBER, "0027", &replay);
        assert_eq!(refused.0, Some(1), "a member of the group cannot write");
        assert!(refused.2.contains("cannot write to") && refused.2.contains("/state"), "{}", refused.2);
    }
}

#[test]
fn daemon_starts_while_readers_loop() {
    let (sandbox, _) = stopped_sandbox();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = [0, 1].map(|_| {
            scope.spawn(|| {
                let mut succeeded = 0;
                while !done.load(Ordering::Relaxed) {
                    let output = sandbox.run(["status"]);
                    succeeded += u32::from(output.status.success());
                    // While the daemon stops, it may not respond.
                    assert!(
                        output.status.success()
                            || output.err.contains("closed the connection")
                            || output.err.contains("stopping")
                            || output.err.contains("broke"),
                        "{}",
                        output.err
                    );
                }
                succeeded
            })
        });
        for _ in 0..10 {
            sandbox.start().stop();
        }
        done.store(true, Ordering::Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().expect("no reader failed") > 0));
    });
}

#[test]
fn export_of_a_running_daemon_equals_that_of_its_state() {
    let (sandbox, _) = stopped_sandbox();
    let week = week(&sandbox);
    let export = ["export", "--week", &week];
    let without_daemon = sandbox.ok(export);
    assert_eq!(without_daemon, sandbox.export(&sandbox.state(), &week));
    let no_rows = sandbox.run(["export", "--week", "2001-W01"]);
    assert_eq!(no_rows.status.code(), Some(1), "{}", no_rows.out);
    assert!(no_rows.err.contains("week 2001-W01 is not in the state; weeks in the state: "), "{}", no_rows.err);
    let daemon = sandbox.start();
    assert_eq!(sandbox.ok(export), without_daemon, "its servers do not answer any more");
    let json = sandbox.json(export);
    assert!(json.len() == without_daemon.lines().count() && json.iter().all(|row| row["kind"] == "export"));
    let no_rows = sandbox.run(["export", "--week", "2001-W01"]);
    assert_eq!(no_rows.status.code(), Some(1), "{}", no_rows.out);
    assert!(no_rows.err.contains("week 2001-W01 is not in the state; weeks in the state: "), "{}", no_rows.err);
    let done = sandbox.run(["export", "--state", sandbox.state().to_str().unwrap(), "--week", &week]);
    assert_eq!(done.status.code(), Some(1));
    let pid = daemon.pid();
    assert!(done.err.contains(&format!("is in use by process {pid} (")), "{}", done.err);
    assert!(done.err.contains("without --state the running daemon sends the rows"), "{}", done.err);
    daemon.stop();
}

#[test]
fn non_state_directory_is_rejected() {
    let sandbox = Sandbox::new("");
    let export = |path: &Path| {
        let done = sandbox.run(["export", "--state", path.to_str().unwrap(), "--week", "2026-W47"]);
        assert_eq!(done.status.code(), Some(1));
        done.err
    };
    let file = sandbox.path("file");
    fs::write(&file, "text").unwrap();
    let empty = sandbox.path("empty");
    fs::create_dir(&empty).unwrap();
    assert!(export(&sandbox.path("absent")).contains("does not exist"));
    for path in [&file, &empty] {
        assert!(export(path).contains(&format!("{path:?} is not a state directory of clqd")), "{}", export(path));
    }
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "no file was created in it");
}
