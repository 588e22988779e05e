//! Several engines that keep one state: they take over from each other, and are equal in the end.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use clqd::fleet::FaultShares;

use crate::database::{Database, Server};
use crate::engines::{ENGINES, Engines, configure, name};
use crate::sandbox::{Sandbox, fleet, wait_for, wait_until};

#[test]
fn engines_take_over_and_are_equal() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(Database::new());
    let mut engines = Engines::start(&database.url(), "");
    let fleet = fleet(12, 91, 60.0, FaultShares::NONE);
    engines.sandbox_of_leader().add_servers(&fleet);
    engines.wait_for_scans();

    // A follower changes nothing, and says who does.
    let leader = engines.leader();
    let follower = (leader + 1) % ENGINES;
    let refused = engines.sandboxes[follower].run(["servers", "add", "quake3://192.0.2.1:1"]);
    assert!(refused.err.contains("this engine follows engine"), "{}", refused.err);
    let shown = engines.sandboxes[follower].ok(["cluster", "status"]);
    assert!(shown.contains("leader") && shown.contains("follower"), "{shown}");
    crate::web::openapi::assert_described("cluster.engines", &engines.rows_of(follower));

    // Killed, and started again.
    engines.kill(leader);
    let second = engines.leader();
    assert_ne!(second, leader);
    engines.wait_for_scans();
    engines.sandboxes[second].ok(["servers", "tag", &fleet.urls()[0], "--add", "after"]);
    engines.start_again(leader);

    // Paused for longer than the lease: what it had applied alone is taken back.
    engines.pause_until_another_leads(second);
    let again = engines.daemons[second].as_ref().unwrap().wait_for_log("another engine of the cluster has taken over");
    assert!(again.contains("the daemon starts again"), "{again}");
    let third = engines.leader();
    assert_ne!(third, second);
    engines.wait_for_scans();

    // Stopped, which the others need not find out.
    engines.stop(third);
    engines.wait_for_scans();
    engines.start_again(third);
    engines.wait_for_scans();

    forget_a_player(&runtime, &database, &mut engines);

    // The outboxes of followers do not grow.
    wait_until("followers know what the archive has", || {
        let waiting = |engine: usize| engines.sandboxes[engine].status()["outbox_entries"].as_u64().unwrap();
        (0..ENGINES).all(|engine| waiting(engine) < 60)
    });
    drop(fleet);
    let content = engines.wait_until_equal();
    assert!(content.lines().count() > 20, "{content}");
    let leader = engines.leader();
    let followers = (0..ENGINES).filter(|&engine| engine != leader);
    followers.into_iter().for_each(|engine| drop(engines.stop(engine)));
    engines.stop(leader);
    // The batches of all epochs are in the log of every engine, byte by byte.
    let logs: Vec<_> = engines.sandboxes.iter().map(first_segments).collect();
    // The last one to stop has ended one more.
    let common = logs.iter().map(Vec::len).min().expect("engines");
    assert!(common > 2 && logs.iter().all(|log| log[..common] == logs[0][..common]), "{common} segments");
    engines.sandboxes.iter().for_each(Sandbox::assert_replay_equals_state);
}

/// Forgets a player while an engine is away: it forgets them, too, and then the name is in no log.
fn forget_a_player(runtime: &tokio::runtime::Runtime, database: &Database, engines: &mut Engines) {
    let leader = engines.leader();
    let away = (leader + 1) % ENGINES;
    let sandbox = &engines.sandboxes[leader];
    let known = sandbox.ok(["export", "--week", &sandbox.weeks()[0]]);
    let rows = known.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    // One whose name has no colour codes.
    let is_plain = |row: &serde_json::Value| has_in_log(&engines.sandboxes[away], row["player"].as_str().unwrap());
    let row = rows.into_iter().find(is_plain).expect("a plain name");
    let (name, game) = (row["player"].as_str().unwrap().to_owned(), row["game"].as_str().unwrap());
    engines.kill(away);
    let sandbox = &engines.sandboxes[leader];
    let forgotten = sandbox.json(["player", "forget", &name, "--game", game, "--yes"]);
    assert_eq!(forgotten[0]["hashes"].as_array().map(Vec::len), Some(1));
    wait_until("the log in the database is known to have the name", || {
        sandbox.status()["log"]["names_pending"].as_u64() > Some(0)
    });
    let t_ms = sandbox.json(["player", "forgotten"])[0]["forgotten_ms"].as_i64().expect("a time");
    engines.start_again(away);
    wait_until("the name is in no log", || {
        let is_done = |sandbox: &Sandbox| sandbox.status()["log"]["names_pending"].as_u64() == Some(0);
        engines.sandboxes.iter().all(is_done)
            && !engines.sandboxes.iter().any(|sandbox| has_in_log(sandbox, &name))
            && runtime.block_on(database.value(&format!("SELECT COUNT(*) FROM clq_log WHERE last_ms <= {t_ms}"))) == "0"
    });
    for sandbox in &engines.sandboxes {
        assert_eq!(sandbox.json(["player", "forgotten"])[0]["hash"], forgotten[0]["hashes"][0]);
        assert_eq!(sandbox.run(["player", &name]).status.code(), Some(1));
    }
}

/// Whether the log in files has a name.
fn has_in_log(sandbox: &Sandbox, name: &str) -> bool {
    let files = fs::read_dir(sandbox.state().join("log")).expect("a log").map(|entry| entry.unwrap().path());
    let contains = |path: std::path::PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(name.len()).any(|window| window == name.as_bytes())
    };
    files.into_iter().any(contains)
}

/// The segments that are complete in every engine.
fn first_segments(sandbox: &Sandbox) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(sandbox.state().join("log")).expect("a log").map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "log")).collect();
    files.sort();
    files.pop();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), fs::read(path).expect("a segment"))).collect()
}

/// The log in the database does not reach back to the first batch: an engine without a state needs a copy.
#[test]
fn an_engine_joins_with_a_copy() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(Database::new());
    let maker = Sandbox::new("");
    let made = maker.ok(["token", "new", "engines", "--may", "replicate", "--may", "scan"]);
    let (token, section) = made.split_once("\n\n").expect("a token and a section");
    // No other test listens at this address.
    let mut engines = Engines::start(&database.url(), &format!("[web]\nlisten = \"127.0.0.10:0\"\n{section}"));
    let fleet = fleet(8, 94, 60.0, FaultShares::NONE);
    engines.sandbox_of_leader().add_servers(&fleet);
    engines.wait_for_scans();
    let lost = engines.leader();
    engines.kill(lost);
    engines.wait_for_scans();
    runtime.block_on(database.run("DELETE FROM clq_log WHERE epoch = 1"));

    let sandbox = &engines.sandboxes[lost];
    fs::remove_dir_all(sandbox.state()).expect("a state");
    let daemon = sandbox.spawn();
    daemon.wait_for_log("the log of the cluster has no batch 1 any more");
    daemon.stop();
    fs::write(sandbox.path("token"), token).expect("written");
    let file = sandbox.path("token").display().to_string();
    let other = (lost + 1) % ENGINES;
    let wrong = sandbox.run(["cluster", "join", "http://127.0.0.10:1", "--token-file", &file]);
    assert!(wrong.err.contains("cannot reach the engine"), "{}", wrong.err);
    // The daemon of a package may write only inside its state directory, where an earlier copy was killed.
    let state_of_other = engines.sandboxes[other].state();
    fs::write(state_of_other.with_extension("copy"), "not a directory").expect("written");
    engines.kill(other);
    fs::create_dir(state_of_other.join("copy")).expect("a directory");
    fs::write(state_of_other.join("copy/left"), "").expect("written");
    engines.start_again(other);
    assert!(!state_of_other.join("copy").exists());
    engines.wait_for_scans();
    let address = engines.sandboxes[other].status()["daemon"]["web"].as_str().expect("an address").to_owned();
    let sandbox = &engines.sandboxes[lost];
    let joined = sandbox.ok(["cluster", "join", &format!("http://{address}"), "--token-file", &file]);
    assert!(!state_of_other.join("copy").exists());
    assert!(joined.contains("records"), "{joined}");
    engines.start_again(lost);
    engines.wait_for_scans();

    // Answers of a follower say how old they may be.
    let behind_ms = |engine: usize| {
        let address = engines.sandboxes[engine].status()["daemon"]["web"].as_str().unwrap().to_owned();
        let answer = crate::web::http::get(&address, "/servers");
        answer.header("clqd-behind-ms").map(|ms| ms.parse::<u64>().expect("a number"))
    };
    assert_eq!(behind_ms(engines.leader()), None);
    assert!(behind_ms(lost).is_some());
    let address = engines.sandboxes[lost].status()["daemon"]["web"].as_str().unwrap().to_owned();
    let metrics = crate::web::http::get(&address, "/metrics").text().to_owned();
    for metric in
        ["clqd_cluster_leads 0.0", "clqd_cluster_engines{state=\"heard\"} 3.0", "clqd_cluster_behind_seconds 0."]
    {
        assert!(metrics.contains(metric), "{metric}: {metrics}");
    }
    assert!(engines.sandboxes[lost].ok(["status"]).contains(" follows "));

    // A scanner that knows a follower finds the leader.
    let (leader, follower) = (engines.leader(), (engines.leader() + 1) % ENGINES);
    let address_of = |engine: usize| engines.sandboxes[engine].status()["daemon"]["web"].as_str().unwrap().to_owned();
    let [join, then] = [follower, leader].map(|engine| format!("http://{}", address_of(engine)));
    let arguments =
        ["scan", "--join", &join, "--join", &then, "--region", "eu", "--name", "one", "--token-file", &file];
    let mut scanner = engines.sandboxes[lost].command(arguments).stderr(std::process::Stdio::null()).spawn().unwrap();
    wait_until("the scanner scans for the leader", || {
        let rows = engines.sandboxes[leader].json(["scanners"]);
        rows.iter().any(|row| row["answered"].as_u64().is_some_and(|answered| answered > 5))
    });
    scanner.kill().expect("it runs");
    scanner.wait().expect("it has ended");
    engines.wait_for_scans();
    drop(fleet);
    engines.wait_until_equal();
    let followers = (0..ENGINES).filter(|&engine| engine != leader);
    followers.into_iter().for_each(|engine| drop(engines.stop(engine)));
    engines.stop(leader);
}

/// Which windows there are, and how long weeks are kept, is the same in all engines, whatever their files say.
#[test]
fn windows_of_all_engines_come_from_the_log() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(Database::new());
    let mut engines = Engines::start(&database.url(), "");
    let fleet = fleet(6, 95, 60.0, FaultShares::NONE);
    engines.sandbox_of_leader().add_servers(&fleet);
    engines.wait_for_scans();
    let (days, store) = ("[boards]\nwindows = [\"day keep=3\"]\n", "keep_weeks = 9\n");
    let day_of =
        |sandbox: &Sandbox| sandbox.run(["--json", "top", "--game", "baseq3", "--ranking", "time", "--window", "day"]);

    // The file of one engine.
    let leader = engines.leader();
    let follower = (leader + 1) % ENGINES;
    configure(&engines.sandboxes[follower], follower, &database.url(), store, days);
    engines.stop(follower);
    engines.start_again(follower);
    let said = engines.daemons[follower].as_ref().unwrap().wait_for_log("the configuration file of this engine has");
    assert!(said.contains("other values of boards.windows, store.keep_weeks: those of the log apply"), "{said}");
    assert!(engines.sandboxes[follower].run(["cluster", "status"]).err.contains("store.keep_weeks"));
    assert_ne!(day_of(&engines.sandboxes[follower]).status.code(), Some(0));
    // It does not apply it by taking over.
    engines.kill(leader);
    engines.kill(3 - leader - follower);
    assert_eq!(engines.leader(), follower);
    engines.wait_for_scans();
    assert_ne!(day_of(&engines.sandboxes[follower]).status.code(), Some(0));
    engines.start_again(leader);
    engines.start_again(3 - leader - follower);

    // The leader's, which applies them: all engines get the rows of the day, which are rebuilt from its log.
    let notes = engines.sandboxes[follower].run(["reload"]).err;
    assert!(notes.contains("windows of type day are being rebuilt"), "{notes}");
    wait_until("its file agrees with the log", || {
        !engines.sandboxes[follower].run(["cluster", "status"]).err.contains("keep_weeks")
    });
    engines.wait_for_scans();
    engines.kill(follower);
    engines.wait_for_scans();
    engines.start_again(follower);
    engines.wait_for_scans();
    drop(fleet);
    engines.wait_until_equal();
    wait_until("the days are equal", || {
        let days: Vec<String> = engines.sandboxes.iter().map(|sandbox| day_of(sandbox).out).collect();
        days[0].lines().count() > 2 && days.iter().all(|day| *day == days[0])
    });
}

/// New rules apply when every engine knows them; one that does not know them stops.
#[test]
fn rules_change_when_all_engines_know_them() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(Database::new());
    let mut engines = Engines::start(&database.url(), "[rules]\nnumber = 1\n");
    let leader = engines.leader();
    let store = "commit_interval_ms = 10000\n";
    configure(&engines.sandboxes[leader], leader, &database.url(), store, "[rules]\nnumber = 2\n");
    runtime.block_on(database.run(
        "INSERT INTO clq_engine (engine, instance, address, version, seq, seen_ms) \
         VALUES ('old', 1, '', 1, 1, 1000 * UNIX_TIMESTAMP() + 600000)",
    ));
    let reload = |sandbox: &Sandbox| sandbox.run(["reload"]);
    let why = wait_for("the leader has seen the engine", || {
        let error = reload(&engines.sandboxes[leader]).err;
        error.contains("engine old knows").then_some(error)
    });
    assert!(why.contains("rules.number: engine old knows the rules until number 1"), "{why}");
    runtime.block_on(database.run("DELETE FROM clq_engine WHERE engine = 'old'"));
    wait_until("the rules have changed", || reload(&engines.sandboxes[leader]).status.success());

    // Commits are rare, one in 10 s; the lease needs more.
    let mut first: Option<[u64; 2]> = None;
    wait_until("the leader keeps its lease without commits", || {
        let select = format!("SELECT epoch, beat FROM clq_leader WHERE engine = '{}'", name(leader));
        let rows = runtime.block_on(database.rows(&select));
        let now = rows.first().map(|row| [0, 1].map(|n| row[n].parse::<u64>().expect("a number")));
        let (Some([epoch, beat]), Some([first_epoch, first_beat])) = (now, first) else {
            first = now;
            return false;
        };
        if epoch != first_epoch {
            first = now;
        }
        epoch == first_epoch && beat >= first_beat + 8
    });

    // An engine of an older version.
    let follower = (leader + 1) % ENGINES;
    engines.stop(follower);
    let last = runtime.block_on(database.value("SELECT MAX(seq) FROM clq_log"));
    wait_until("there is another batch", || {
        runtime.block_on(database.run(&format!("UPDATE clq_log SET version = 99 WHERE seq = {last} + 1")));
        runtime.block_on(database.value("SELECT COUNT(*) FROM clq_log WHERE version = 99")) == "1"
    });
    let mut daemon = engines.sandboxes[follower].spawn();
    let said = daemon.wait_for_log("has rules.number = 99");
    assert!(said.contains("this program knows the rules until number 2: install the newer program"), "{said}");
    assert!(!daemon.wait().success());
}

/// A restored state begins the log of its cluster with the second batch, and has the first position only after its first
/// checkpoint.
#[test]
fn restored_state_begins_a_log_and_is_killed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(Database::new());
    let sandbox = Sandbox::new("");
    let fleet = fleet(4, 95, 60.0, FaultShares::NONE);
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    wait_until("servers are scanned", || sandbox.status()["engine"]["counts"]["snapshots"].as_u64() > Some(8));
    daemon.stop();
    let backup = sandbox.path("backup");
    sandbox.ok(["backup", backup.to_str().unwrap()]);
    fs::remove_dir_all(sandbox.state()).expect("a state");
    sandbox.ok(["restore", backup.to_str().unwrap()]);
    let restored = sandbox.path("restored");
    crate::sandbox::copy(&sandbox.state(), &restored);
    configure(&sandbox, 0, &database.url(), "", "");
    sandbox.ok(["migrate"]);
    let leads = || {
        let daemon = sandbox.start();
        daemon.wait_for_log("this engine leads the cluster");
        assert_eq!(sandbox.list(&[]).len(), 4);
        daemon
    };
    leads().kill();
    // The log as it is, and the state as before its first checkpoint.
    let (log, kept) = (sandbox.state().join("log"), sandbox.path("log"));
    fs::rename(&log, &kept).expect("a log");
    fs::remove_dir_all(sandbox.state()).expect("a state");
    crate::sandbox::copy(&restored, &sandbox.state());
    fs::rename(&kept, &log).expect("the log is moved");
    leads().stop();
}

#[test]
fn engines_wait_for_their_database() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = Arc::new(Server::start());
    let database = runtime.block_on(Database::on_server(server.clone()));
    let engines = Engines::start(&database.url(), "");
    let fleet = fleet(6, 92, 60.0, FaultShares::NONE);
    engines.sandbox_of_leader().add_servers(&fleet);
    engines.wait_for_scans();
    let leader = engines.leader();
    server.kill();
    engines.daemons[leader].as_ref().unwrap().wait_for_log("scans are kept in memory until the log of the cluster");
    // The engine refuses what must be in the database after a second without it. Until then it would wait for it.
    wait_until("scans have waited for a second", || {
        let status = engines.sandboxes[leader].status();
        let since_ms = status["store"]["log_writing_since_ms"].as_i64();
        since_ms.is_some_and(|since_ms| status["engine"]["now_ms"].as_i64() >= Some(since_ms + 1_000))
    });
    let refused = engines.sandboxes[leader].run(["clock", "reset", "--yes"]).err;
    assert!(refused.contains("the database of the log does not answer"), "{refused}");
    // Reads are answered meanwhile.
    assert_eq!(engines.sandboxes[leader].list(&[]).len(), 6);
    assert_eq!(engines.sandboxes[(leader + 1) % ENGINES].list(&[]).len(), 6);
    server.kill_and_restart();
    engines.wait_for_scans();
    drop(fleet);
    engines.wait_until_equal();
}
