//! `clqd restore --from-mysql`: the state directory is deleted, built again from MySQL by the real
//! program, and a daemon continues with it.

use std::fs;
use std::process::Stdio;

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

/// The five boards of each server, by players and scores.
fn boards(sandbox: &Sandbox) -> Vec<Value> {
    let servers = sandbox.list(&[]);
    let urls = servers.iter().map(|server| server["url"].as_str().unwrap());
    let rankings = Ranking::ALL.map(Ranking::name);
    let all = urls.flat_map(|url| rankings.map(|ranking| (url, ranking)));
    let board = |(url, ranking)| {
        let arguments = ["board", "top", "--server", url, "--ranking", ranking, "--count", "100"];
        sandbox.json(arguments).into_iter().filter(|row| row["kind"] == "entry")
    };
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
