//! `clqd restore --from-mysql`: the state directory is deleted, built again from MySQL by the real
//! program, and a daemon continues with it.

use std::fs;
use std::process::Stdio;

use crate::corrections::Server;
use crate::database::Database;
use crate::sandbox::{Sandbox, fleet, wait_for, wait_until};
use clqd::fleet::FaultShares;
use clqd::model::Ranking;
use mysql_async::prelude::Queryable;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn sandbox_with(database: &Database) -> Sandbox {
    let sandbox = Sandbox::new(&format!("[archive]\nurl = {:?}\ninterval_s = 2\ndrain_timeout_s = 60", database.url()));
    sandbox.ok(["migrate"]);
    sandbox
}

/// A daemon that stops during a permanent fault of the archive need not wait.
fn shorten_drain(sandbox: &Sandbox) {
    let text = fs::read_to_string(sandbox.config()).unwrap();
    fs::write(sandbox.config(), text.replace("drain_timeout_s = 60", "drain_timeout_s = 1")).unwrap();
}

/// The five boards of each server, by players and scores.
fn boards(sandbox: &Sandbox) -> Vec<Value> {
    let servers = sandbox.list(&[]);
    let urls = servers.iter().map(|server| server["url"].as_str().unwrap());
    let rankings = Ranking::ALL.map(Ranking::name);
    let all = urls.flat_map(|url| rankings.map(|ranking| (url, ranking)));
    let board = |(url, ranking)| sandbox.top(url, ranking);
    all.flat_map(board).collect()
}

#[test]
fn daemon_continues_with_a_state_that_was_restored_from_mysql() {
    let runtime = runtime();
    let database = runtime.block_on(Database::new());
    let value = |sql: &str| runtime.block_on(database.value(sql));
    let sandbox = sandbox_with(&database);
    let fleet = fleet(8, 41, 60.0, FaultShares::NONE);
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    wait_until("players are ranked in MySQL", || {
        value("SELECT COUNT(*) > 20 FROM player_week WHERE elo_rounds > 0") == "1"
    });
    let refused = sandbox.run(["restore", "--from-mysql"]);
    assert!(!refused.status.success() && refused.err.contains("the daemon is running"), "{}", refused.err);
    // A daemon that stops archives what is pending.
    daemon.stop();
    let (known, weeks) = (boards(&sandbox), sandbox.weeks());
    assert!(known.len() > 100);
    let state_id = value("SELECT state_id FROM clq_state");
    fs::remove_dir_all(sandbox.state()).unwrap();

    let restored = sandbox.json(["restore", "--from-mysql"]);
    let restored = &restored[0];
    assert_eq!((&restored["kind"], &restored["servers"]), (&"restored".into(), &8.into()), "{restored}");
    assert_eq!((&restored["weeks"], &restored["rejected"]), (&weeks.clone().into(), &0.into()), "{restored}");
    let players = value("SELECT COUNT(*) FROM player").parse::<u64>().unwrap();
    assert_eq!(restored["players"], players);
    assert!(restored["not_restored"].as_array().unwrap().len() > 6, "{restored}");
    assert_eq!((boards(&sandbox), sandbox.weeks()), (known, weeks));

    let daemon = sandbox.start();
    wait_until("further players are in MySQL", || {
        value("SELECT COUNT(*) FROM player").parse::<u64>().unwrap() > players + 5
    });
    let verified = wait_for("no server changes", || {
        let done = sandbox.run(["--json", "archive", "verify"]);
        let summary: Value = serde_json::from_str(done.out.lines().last()?).ok()?;
        assert_eq!(summary["differences"], 0, "{}", done.out);
        (summary["server_weeks"] != 0).then_some(summary)
    });
    assert!(verified["rows"].as_u64() > Some(50), "{verified}");
    let archive = &sandbox.status()["archive"];
    assert!(archive["fault"].is_null() && archive["resync"].is_null(), "{archive}");
    daemon.stop();
    assert_eq!(value("SELECT state_id FROM clq_state"), state_id, "the state continues the archive");
    assert_eq!(value("SELECT COUNT(*) FROM server"), "8");
    assert_eq!(value("SELECT COUNT(*) - COUNT(DISTINCT game, name) FROM player"), "0");

    let text = sandbox.run(["restore", "--from-mysql"]);
    assert!(text.err.contains("state.before-restore"), "{}", text.err);
    for want in ["restored:\n", "  8 servers with 0 tags", "not restored:\n", "players were online", "forgotten names"]
    {
        assert!(text.out.contains(want), "{want}: {}", text.out);
    }
}

/// The archive still has the name, because it was off when the name was forgotten.
#[test]
fn restore_from_mysql_forgets_what_the_old_state_has_forgotten() {
    let runtime = runtime();
    let database = runtime.block_on(Database::new());
    let value = |sql: &str| runtime.block_on(database.value(sql));
    let sandbox = sandbox_with(&database);
    let with_archive = fs::read_to_string(sandbox.config()).unwrap();
    let server = Server::start(&["Visor", "Klesk"]);
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", &server.url]);
    wait_until("the players are in MySQL", || value("SELECT COUNT(*) FROM player") == "2");
    daemon.stop();
    sandbox.configure("");
    let daemon = sandbox.start();
    sandbox.ok(["player", "forget", "Visor", "--game", "baseq3", "--yes"]);
    let requests = sandbox.json(["player", "forgotten"]);
    daemon.stop();
    fs::write(sandbox.config(), with_archive).unwrap();
    assert_eq!(value("SELECT COUNT(*) FROM player WHERE name = 'Visor'"), "1");

    let done = sandbox.run(["restore", "--from-mysql"]);
    assert!(done.status.success() && done.err.contains("1 name that was forgotten later"), "{}", done.err);
    let is_known = |name: &str| sandbox.run(["player", name]).status.success();
    assert_eq!((requests.len(), sandbox.json(["player", "forgotten"])), (1, requests));
    assert!(is_known("Klesk") && !is_known("Visor"));
    let daemon = sandbox.start();
    wait_until("the name is deleted from MySQL", || value("SELECT COUNT(*) FROM player WHERE name = 'Visor'") == "0");
    let scans = || sandbox.status()["engine"]["counts"]["snapshots"].as_u64();
    let seen = scans();
    wait_until("the server is scanned", || scans() > seen.map(|seen| seen + 3));
    assert!(is_known("Klesk") && !is_known("Visor"));
    daemon.stop();

    // Without the old state nothing is known of it.
    fs::remove_dir_all(sandbox.state()).unwrap();
    let done = sandbox.run(["restore", "--from-mysql"]);
    assert!(done.status.success() && done.err.contains("repeat `clqd player forget` for them"), "{}", done.err);
}

/// A locked table stops the restore at the same place each time.
#[test]
fn killed_restore_leaves_the_old_state_in_place() {
    let runtime = runtime();
    let database = runtime.block_on(Database::new());
    let sandbox = sandbox_with(&database);
    let fleet = fleet(4, 42, 60.0, FaultShares::NONE);
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    wait_until("rows are in MySQL", || runtime.block_on(database.value("SELECT COUNT(*) > 9 FROM player_week")) == "1");
    daemon.stop();
    let known = boards(&sandbox);
    let (new, before) = (sandbox.path("state.restoring"), sandbox.path("state.before-restore"));
    let mut conn = runtime.block_on(database.conn());
    for _ in 0..2 {
        runtime.block_on(conn.query_drop("LOCK TABLES top_board WRITE")).unwrap();
        let mut child =
            sandbox.command(["restore", "--from-mysql"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the restore writes", || new.join("db").exists());
        wait_until("the restore waits for the table", || {
            let waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for table%' AND db = DATABASE()";
            runtime.block_on(database.value(waiting)) == "1"
        });
        kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        runtime.block_on(conn.query_drop("UNLOCK TABLES")).unwrap();
        assert!(new.exists() && !before.exists());
        assert_eq!(boards(&sandbox), known, "the old state is in place");
    }
    let done = sandbox.run(["restore", "--from-mysql"]);
    assert!(done.status.success(), "{}", done.err);
    assert!(!new.exists() && before.exists());
    assert_eq!(boards(&sandbox), known);
}

/// A daemon with an archive, a backup, and players that were archived after the backup.
fn archive_newer_than_backup(database: &Database) -> (Sandbox, clqd::fleet::Fleet) {
    let runtime = runtime();
    let value = |sql: &str| runtime.block_on(database.value(sql)).parse::<u64>().unwrap();
    let sandbox = sandbox_with(database);
    let fleet = fleet(6, 43, 60.0, FaultShares::NONE);
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    wait_until("players are in MySQL", || value("SELECT COUNT(*) FROM player") > 10);
    let backup = sandbox.json(["backup", sandbox.path("backup").to_str().unwrap()]);
    let players = sandbox.status()["engine"]["players_known"].as_u64().unwrap();
    wait_until("later players are in MySQL", || value("SELECT COUNT(*) FROM player") > players + 5);
    assert_eq!(backup[0]["kind"], "backup");
    daemon.stop();
    (sandbox, fleet)
}

#[test]
fn older_backup_is_compared_with_the_archive_and_never_written_over_it() {
    let runtime = runtime();
    let database = runtime.block_on(Database::new());
    let value = |sql: &str| runtime.block_on(database.value(sql));
    let (sandbox, _fleet) = archive_newer_than_backup(&database);
    let backup = sandbox.path("backup");
    let backup = backup.to_str().unwrap();
    let known = boards(&sandbox);

    // Nothing is changed.
    let refused = sandbox.run(["restore", backup]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.out);
    for want in [
        "nothing was changed",
        "is newer than the backup",
        "the archive has scans until 20",
        "the archive has players with keys up to ",
        "clqd restore --from-mysql",
        "--ignore-archive",
        "key_mismatch",
    ] {
        assert!(refused.err.contains(want), "{want}: {}", refused.err);
    }
    assert!(!sandbox.path("state.before-restore").exists() && !sandbox.path("state.restoring").exists());
    assert_eq!(boards(&sandbox), known, "the state is unchanged");

    // An archive that cannot be reached may be newer.
    let text = fs::read_to_string(sandbox.config()).unwrap();
    fs::write(sandbox.config(), text.replace(&database.url(), "mysql://clqd@127.0.0.1:1/clqd")).unwrap();
    let refused = sandbox.run(["restore", backup]);
    assert!(!refused.status.success(), "{}", refused.out);
    for want in ["cannot be compared with the archive", "cannot be reached", "--ignore-archive"] {
        assert!(refused.err.contains(want), "{want}: {}", refused.err);
    }
    fs::write(sandbox.config(), text).unwrap();

    let done = sandbox.ok(["restore", backup, "--ignore-archive"]);
    assert!(done.contains(" UTC"), "with date and time: {done}");
    let rows = "SELECT SUM(CRC32(CONCAT_WS(',', week, server, player, time_ms, points))) FROM player_week";
    let (archived, players) = (value(rows), value("SELECT COUNT(*) FROM player"));
    shorten_drain(&sandbox);
    let daemon = sandbox.start();
    let log = daemon.wait_for_log("archive fault: ");
    // New players may soon have as many keys as the archive. Then its last writer shows that it is newer.
    let wants: &[&str] = match log.contains("is being written by another clqd") {
        true => &["before a backup was restored", "clqd archive take-over"],
        false => {
            &["does not belong to this state: ", "clqd restore --from-mysql", "set archive.url to an empty database"]
        }
    };
    for want in wants {
        assert!(log.contains(want), "{want}: {log}");
    }
    wait_until("archiving was tried several times", || {
        sandbox.status()["counters"]["archive.failures"].as_u64() > Some(2)
    });
    let kind = sandbox.status()["archive"]["fault"]["kind"].clone();
    assert!(kind == "key_mismatch" || kind == "in_use", "{kind}");
    let log = daemon.stop();
    assert!(!log.contains("everything is written to it"), "{log}");
    assert_eq!((value(rows), value("SELECT COUNT(*) FROM player")), (archived, players), "MySQL is unchanged");

    // A second restore: the state before the first one is still there.
    let second = sandbox.run(["restore", "--from-mysql"]);
    assert!(!second.status.success(), "{}", second.out);
    for want in ["state.before-restore\" exists: the state that an earlier restore replaced", "Delete it"] {
        assert!(second.err.contains(want), "{want}: {}", second.err);
    }
    fs::remove_dir_all(sandbox.path("state.before-restore")).unwrap();
    sandbox.ok(["restore", "--from-mysql"]);
    assert_eq!(boards(&sandbox), known, "nothing was lost");
}

/// The id of the archive is another one, so each pass would write everything, and says so.
#[test]
fn archive_of_another_state_is_reported_without_a_claim_that_it_is_written() {
    let runtime = runtime();
    let database = runtime.block_on(Database::new());
    let value = |sql: &str| runtime.block_on(database.value(sql));
    let sandbox = sandbox_with(&database);
    let fleet = fleet(4, 44, 60.0, FaultShares::NONE);
    let daemon = sandbox.start();
    daemon.wait_for_log("everything is written to it");
    sandbox.add_servers(&fleet);
    wait_until("players are in MySQL", || value("SELECT COUNT(*) > 5 FROM player") == "1");
    daemon.stop();
    let id = value("SELECT state_id FROM clq_state");
    fs::remove_dir_all(sandbox.state()).unwrap();
    shorten_drain(&sandbox);
    let daemon = sandbox.start();
    wait_until("archiving was tried several times", || {
        sandbox.status()["counters"]["archive.failures"].as_u64() > Some(2)
    });
    assert_eq!(sandbox.status()["archive"]["fault"]["kind"], "key_mismatch");
    let log = daemon.stop();
    assert!(!log.contains("everything is written to it"), "{log}");
    assert_eq!(value("SELECT state_id FROM clq_state"), id);
}

#[test]
fn time_of_the_last_complete_archive_run_survives_a_restart() {
    let runtime = runtime();
    let database = runtime.block_on(Database::new());
    let sandbox = sandbox_with(&database);
    let daemon = sandbox.start();
    let complete = wait_for("everything is archived", || sandbox.status()["archive"]["last_complete_ms"].as_i64());
    daemon.stop();
    let offline = &sandbox.status()["archive"];
    let archived = offline["last_complete_ms"].as_i64();
    assert!(archived >= Some(complete), "{offline}");
    assert!(
        database.url().contains("127.0.0.1") && offline["target"].as_str().unwrap().contains("127.0.0.1"),
        "{offline}"
    );
    let text = sandbox.ok(["status"]);
    assert!(text.contains(", not connected, last complete ") && !text.contains("last complete never"), "{text}");
    let config = fs::read_to_string(sandbox.config()).unwrap();
    fs::write(sandbox.config(), config.replace(&database.url(), "mysql://clqd@127.0.0.1:1/clqd")).unwrap();
    shorten_drain(&sandbox);
    let daemon = sandbox.start();
    assert_eq!(sandbox.status()["archive"]["last_complete_ms"].as_i64(), archived);
    daemon.stop();
}

#[test]
fn restore_takes_either_a_backup_or_mysql() {
    let sandbox = Sandbox::new("");
    for (arguments, want) in [
        (&["restore"][..], "required arguments were not provided"),
        (&["restore", "backup", "--from-mysql"], "cannot be used with"),
    ] {
        let refused = sandbox.run(arguments);
        assert_eq!(refused.status.code(), Some(2));
        assert!(refused.err.contains(want), "{}", refused.err);
    }
    let refused = sandbox.run(["restore", "--from-mysql"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.err.contains("no archive is configured"), "{}", refused.err);
    assert!(!sandbox.state().exists());
}
