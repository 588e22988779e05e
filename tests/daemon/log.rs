//! The log of the state directory, and a state that does not fit it.

use std::fs;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sandbox::{Sandbox, fleet, wait_until};
use clqd::fleet::FaultShares;

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

fn segments(sandbox: &Sandbox) -> Vec<PathBuf> {
    let files = fs::read_dir(sandbox.state().join("log")).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
    segments.sort();
    segments
}

/// The start fails, and names what is wrong.
fn refused(sandbox: &Sandbox, message: &str) {
    let mut daemon = sandbox.spawn();
    let status = daemon.wait();
    let log = daemon.log();
    assert!(!status.success() && log.contains(message), "{message}: {status}\n{log}");
}

/// A daemon is killed long after its last checkpoint. Everything is there: for commands, for a backup,
/// and after the start. Then each damage of the state is refused, and nothing of it is changed.
#[test]
fn state_and_log_survive_a_kill_and_refuse_what_does_not_fit() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(6, 51, 60.0, FaultShares::NONE);
    let mut daemon = sandbox.start();
    daemon.wait_until_ready();
    sandbox.add_servers(&fleet);
    let first = sandbox.path("first");
    copy(&sandbox.state(), &first);
    wait_until("players are ranked", || {
        sandbox.status()["engine"]["players_known"].as_u64().is_some_and(|known| known > 20)
    });
    sandbox.ok(["servers", "add", "quake3://127.9.9.9:1"]);
    // Each is a batch.
    for tag in ["one", "two"] {
        sandbox.ok(["servers", "tag", "quake3://127.9.9.9:1", "--add", tag]);
    }
    daemon.kill();
    // Later scans would change the rankings.
    drop(fleet);

    let listed = |sandbox: &Sandbox| -> Vec<String> {
        sandbox.list(&[]).iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect()
    };
    let stopped = listed(&sandbox);
    assert_eq!(stopped.len(), 7, "{stopped:?}");
    let weeks = sandbox.weeks();
    let exports = |state: &Path| weeks.iter().map(|week| sandbox.export(state, week)).collect::<Vec<_>>();
    let before = exports(&sandbox.state());
    assert!(before.iter().any(|export| export.lines().count() > 20), "{before:?}");
    let backup = sandbox.path("backup");
    sandbox.ok(["backup", backup.to_str().unwrap()]);
    assert!(exports(&backup) == before, "the backup differs");

    let killed = sandbox.path("killed");
    copy(&sandbox.state(), &killed);
    let again = |change: &dyn Fn(&Path)| {
        fs::remove_dir_all(sandbox.state()).unwrap();
        copy(&killed, &sandbox.state());
        change(&sandbox.state());
    };
    // The database is taken for empty.
    again(&|state| {
        fs::remove_file(state.join("db")).unwrap();
        for file in fs::read_dir(state).unwrap().map(|entry| entry.unwrap().path()) {
            if file.file_name().unwrap().to_str().unwrap().starts_with("snap.") {
                fs::remove_file(file).unwrap();
            }
        }
    });
    sandbox.start().stop();
    assert!(exports(&sandbox.state()) == before, "the database was loaded from the checkpoint files");
    again(&|state| {
        fs::remove_file(state.join("db")).unwrap();
        fs::remove_dir_all(state.join("checkpoints")).unwrap();
        for file in fs::read_dir(state).unwrap().map(|entry| entry.unwrap().path()) {
            if file.file_name().unwrap().to_str().unwrap().starts_with("snap.") {
                fs::remove_file(file).unwrap();
            }
        }
    });
    refused(&sandbox, "has a log, but the state beside it is empty");
    assert_eq!(segments(&sandbox).len(), 1, "the log is as it was");

    // A checkpoint, and the log from before it or none.
    again(&|_| ());
    let daemon = sandbox.start();
    // A stop before that leaves everything to the log.
    wait_until("a checkpoint", || sandbox.status()["store"]["last_commit_ms"].is_i64());
    daemon.stop();
    let stopped = sandbox.path("stopped");
    copy(&sandbox.state(), &stopped);
    assert!(exports(&sandbox.state()) == before, "the state after the start differs");
    fs::remove_dir_all(sandbox.state().join("log")).unwrap();
    refused(&sandbox, "the log in ");
    let lost = sandbox.path("lost");
    copy(&sandbox.state(), &lost);
    copy(&killed.join("log"), &sandbox.state().join("log"));
    refused(&sandbox, "the end of the log is missing");
    // An older database beside the log: the log has what it lacks, unless its beginning is missing.
    for is_whole in [true, false] {
        fs::remove_dir_all(sandbox.state()).unwrap();
        copy(&first, &sandbox.state());
        fs::remove_dir_all(sandbox.state().join("log")).unwrap();
        copy(&stopped.join("log"), &sandbox.state().join("log"));
        if is_whole {
            sandbox.start().stop();
            assert!(exports(&sandbox.state()) == before, "the state after the start differs");
        } else {
            fs::remove_file(&segments(&sandbox)[0]).unwrap();
            refused(&sandbox, "the log between them is missing");
        }
    }

    // A damaged log is given up on request, and what can be read is kept.
    for (case, state) in [("missing", &lost), ("header", &killed), ("damaged", &killed)] {
        fs::remove_dir_all(sandbox.state()).unwrap();
        copy(state, &sandbox.state());
        if case != "missing" {
            let segment = segments(&sandbox).remove(0);
            let mut bytes = fs::read(&segment).unwrap();
            // The header, or the last batch but one: an invalid last batch would be taken for a cut.
            let batches: Vec<usize> =
                bytes.windows(4).enumerate().filter(|(_, it)| it == b"CLQB").map(|(n, _)| n).collect();
            let at = if case == "header" { 3 } else { batches[batches.len() - 2] + 20 };
            bytes[at] ^= 4;
            fs::write(&segment, bytes).unwrap();
        }
        if case == "damaged" {
            // In another state, a replay keeps what comes before the damage, and --salvage accepts it.
            for options in [&[][..], &["--salvage"]] {
                let (log, replayed) =
                    (sandbox.state().join("log"), sandbox.path(&format!("replayed{}", options.len())));
                let paths = ["replay", log.to_str().unwrap(), "--state", replayed.to_str().unwrap()];
                let done = sandbox.run([&paths[..], options].concat());
                assert_eq!(done.status.success(), !options.is_empty(), "{}", done.err);
                assert!(done.err.contains("is damaged from byte"), "{}", done.err);
                assert!(sandbox.export(&replayed, &weeks[0]).lines().count() > 10, "{options:?}");
            }
        }
        let planned = sandbox.run(["log", "repair"]);
        assert_eq!(planned.status.code(), Some(1), "{case}: {}", planned.err);
        assert!(planned.out.contains("Nothing was changed"), "{case}: {}", planned.out);
        let mut daemon = sandbox.spawn();
        assert!(!daemon.wait().success(), "{case}: {}", daemon.log());
        let repaired = sandbox.json(["log", "repair", "--accept-loss"]).remove(0);
        match case {
            "missing" => assert_eq!(repaired["moved_to"], serde_json::Value::Null),
            _ => assert!(repaired["moved_to"].as_str().unwrap().ends_with("log.damaged-1"), "{case}: {repaired}"),
        }
        assert_eq!(repaired["kept_events"].as_u64().unwrap() > 0, case == "damaged", "{case}: {repaired}");
        // A delta that is damaged later is replaced by the new log, which has nothing of the repair.
        let checkpoints = fs::read_dir(sandbox.state().join("checkpoints")).unwrap();
        let names: Vec<_> = checkpoints.map(|file| file.unwrap().file_name()).collect();
        assert!(names.len() == 1 && names[0].to_str().unwrap().ends_with(".base"), "{case}: {names:?}");
        let kept = listed(&sandbox);
        // The killed daemon had no checkpoint with servers.
        assert_eq!(kept.is_empty(), case == "header", "{case}: {kept:?}");
        sandbox.start().stop();
        assert_eq!(listed(&sandbox), kept, "{case}");
        assert!(sandbox.ok(["log", "repair", "--accept-loss"]).contains("The log has no damage"), "{case}");
    }

    // The backup begins a log of its own.
    fs::remove_dir_all(sandbox.state()).unwrap();
    sandbox.ok(["restore", backup.to_str().unwrap()]);
    let daemon = sandbox.start();
    assert_eq!(listed(&sandbox).len(), 7);
    daemon.stop();
}

/// A damaged or missing delta is replaced by the log; a damaged base is refused.
#[test]
fn log_replaces_a_damaged_or_missing_delta() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(4, 54, 60.0, FaultShares::default());
    for start in 0..3 {
        let daemon = sandbox.start();
        if start == 0 {
            sandbox.add_servers(&fleet);
        }
        sandbox.ok(["servers", "tag", &fleet.urls()[0], "--add", &format!("start{start}")]);
        let scans = || sandbox.status()["engine"]["counts"]["snapshots"].as_u64();
        let before = scans();
        wait_until("servers are scanned", || scans() > before.map(|before| before + 10));
        daemon.stop();
    }
    sandbox.configure_scan("opt_out = [\"127.0.0.0/8\"]", "");
    let files = |kind: &str| {
        let listed = fs::read_dir(sandbox.state().join("checkpoints")).unwrap().map(|file| file.unwrap().path());
        let mut found: Vec<PathBuf> = listed.filter(|path| path.extension().is_some_and(|end| end == kind)).collect();
        found.sort();
        found
    };
    let exported =
        || -> Vec<String> { sandbox.weeks().iter().map(|week| sandbox.export(&sandbox.state(), week)).collect() };
    let tags = || sandbox.list(&[]).iter().map(|row| (row["url"].clone(), row["tags"].clone())).collect::<Vec<_>>();
    let (rows, listed) = (exported(), tags());
    assert!(rows.concat().lines().count() > 5 && files("delta").len() >= 3, "{:?}", files("delta"));
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        fs::write(path, bytes).unwrap();
    };
    let missing = |path: &Path| fs::remove_file(path).unwrap();
    for damage in [&flip as &dyn Fn(&Path), &missing] {
        let deltas = files("delta");
        let path = &deltas[deltas.len() / 2];
        damage(path);
        let damaged = files("delta");
        assert_eq!((exported(), tags()), (rows.clone(), listed.clone()), "from a private copy");
        sandbox.ok(["check-config"]);
        sandbox.ok(["log", "repair"]);
        assert_eq!(files("delta"), damaged, "nothing was changed");
        let daemon = sandbox.start();
        let log = daemon.stop();
        assert!(log.contains("the log since then replaces them"), "{log}");
        assert_eq!((exported(), tags()), (rows.clone(), listed.clone()));
    }
    flip(&files("base")[0]);
    let failed = sandbox.run(["run"]);
    assert!(failed.status.code() == Some(1) && failed.err.contains(".base"), "{}", failed.err);
}

/// The database loses records without an error. A daemon notices it when it compares them, before it writes to
/// the database, and starts again.
#[test]
fn database_that_differs_is_loaded_again_by_a_new_start() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(4, 55, 60.0, FaultShares::default());
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    wait_until("players are seen", || sandbox.status()["engine"]["counts"]["snapshots"].as_u64() > Some(10));
    daemon.stop();
    sandbox.configure_scan("opt_out = [\"127.0.0.0/8\"]", "");
    // All records are in the base.
    let backup = sandbox.path("backup");
    sandbox.ok(["backup".as_ref(), backup.as_os_str()]);
    fs::remove_dir_all(sandbox.state()).unwrap();
    sandbox.ok(["restore".as_ref(), backup.as_os_str()]);
    let exported =
        || -> Vec<String> { sandbox.weeks().iter().map(|week| sandbox.export(&sandbox.state(), week)).collect() };
    sandbox.start().stop();
    let rows = exported();
    assert!(rows.concat().lines().count() > 5);

    let current = fs::read_to_string(sandbox.state().join("current")).ok();
    let name = current.as_ref().map_or("", |current| current.split(' ').next().expect("a name"));
    let database = sled::open(sandbox.state().join(name)).expect("a database");
    let names: Vec<_> = database.scan_prefix(b"N").keys().collect::<Result<_, _>>().expect("records");
    assert!(!names.is_empty(), "the names of players");
    names.iter().for_each(|key| _ = database.remove(key).expect("removed"));
    drop(database);

    let daemon = sandbox.spawn();
    daemon.wait_for_log("differs from its checkpoint files");
    daemon.wait_for_log("is loaded from the checkpoint files again");
    wait_until("it is ready again", || daemon.log().contains("the daemon starts again") && daemon.client().is_ok());
    let log = daemon.stop();
    assert!(log.contains("nothing is lost"), "{log}");
    assert_eq!(exported(), rows);
    sandbox.start().stop();
}

/// A log whose beginning is gone, as after `log.keep_days`, has tags, greylisting and exemptions.
#[test]
fn replay_of_the_end_of_a_log_knows_the_servers() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(4, 53, 60.0, FaultShares::default());
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    let urls = fleet.urls();
    sandbox.ok(["servers", "tag", &urls[0], "--add", "ctf"]);
    sandbox.ok(["greylist", &urls[1], "--reason", "a test"]);
    sandbox.ok(["servers", "trust", &urls[2], "--except", "frozen_list"]);
    sandbox.ok(["servers", "remove", &urls[3]]);
    daemon.stop();
    let daemon = sandbox.start();
    let scans = || sandbox.status()["engine"]["counts"]["snapshots"].as_u64();
    wait_until("servers are scanned", || scans() > Some(20));
    daemon.stop();
    let segments = clqd::log::segments(&sandbox.state().join("log")).unwrap();
    fs::remove_file(&segments[0].path).unwrap();

    let other = Sandbox::new("");
    other.replay(&sandbox.state(), &other.state());
    let facts = |of: &Sandbox, n: usize| {
        let shown = of.json(["servers", "show", &urls[n]]).remove(0);
        ["tags", "greylist_reason", "exempt_checks", "game"].map(|field| shown[field].clone())
    };
    for n in 0..3 {
        assert_eq!(facts(&other, n), facts(&sandbox, n));
    }
    let facts = [0, 1, 2].map(|n| facts(&sandbox, n));
    assert_eq!(
        (&facts[0][0][0], &facts[1][1], &facts[2][2][0]),
        (&"ctf".into(), &"a test".into(), &"frozen_list".into())
    );
    assert!(other.list(&[]).iter().all(|row| row["url"] != urls[3].as_str()));
}

/// The exported log has what the daemon did, over several segments, and replays to the same rows as the log.
#[test]
fn exported_log_has_all_events() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(4, 52, 60.0, FaultShares::default());
    for starts in 0..3 {
        let daemon = sandbox.start();
        sandbox.add_servers(&fleet);
        let url = &fleet.urls()[starts];
        sandbox.ok(["servers", "tag", url, "--add", &format!("start{starts}")]);
        sandbox.ok(["greylist", url, "--reason", "a test"]);
        sandbox.ok(["greylist", url, "--lift"]);
        let scans = || sandbox.status()["engine"]["counts"]["snapshots"].as_u64();
        let before = scans();
        wait_until("servers are scanned", || scans() > before.map(|before| before + 10));
        match starts {
            0 => daemon.kill(),
            _ => _ = daemon.stop(),
        }
    }
    let exported = sandbox.log_lines();
    let lines: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |is: &dyn Fn(&Value) -> bool| lines.iter().filter(|line| is(line)).count();
    assert_eq!(count(&|line| line["command"] == "add"), 4, "{exported}");
    assert_eq!(count(&|line| line["command"] == "greylist"), 3);
    assert_eq!(count(&|line| line["add"][0].as_str().is_some_and(|tag| tag.starts_with("start"))), 3);
    assert_eq!(count(&|line| line["settings"].is_object()), 1, "later segments have the same settings");
    assert!(count(&|line| line["players"].is_array()) > 30);
    let times: Vec<_> = lines.iter().map(|line| line["t"].as_i64().unwrap()).collect();
    assert!(times.is_sorted());
    sandbox.assert_replay_equals_state();
    let file = sandbox.path("exported.jsonl");
    fs::write(&file, exported).unwrap();
    let (of_log, of_lines) = (sandbox.path("replayed"), sandbox.path("of-lines"));
    sandbox.replay(&file, &of_lines);
    for week in sandbox.weeks() {
        assert_eq!(sandbox.export(&of_log, &week), sandbox.export(&of_lines, &week));
    }

    let checked = sandbox.json(["log", "check"]);
    let (log, segments) = checked.split_last().unwrap();
    assert!(segments.len() >= 3, "one of each start: {segments:?}");
    let count = segments.len().into();
    assert_eq!((&log["kind"], &log["segments"], &log["incomplete_bytes"]), (&"log".into(), &count, &0.into()));
    assert!(log["events"].as_u64().unwrap() as usize > lines.len());
    let printed = sandbox.ok(["log", "check"]);
    assert!(printed.contains("The log has no damage: ") && printed.lines().all(|line| line.len() <= 80), "{printed}");
    let first = self::segments(&sandbox).remove(0);
    let mut bytes = fs::read(&first).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 16;
    fs::write(&first, bytes).unwrap();
    for command in ["check", "export"] {
        let done = sandbox.run(["log", command]);
        assert_eq!(done.status.code(), Some(1));
        assert!(done.err.contains(&format!("{} is damaged from byte", first.display())), "{}", done.err);
    }
}
