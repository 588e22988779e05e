//! Corrections with the real daemon and commands: two servers on the loopback interface whose
//! player lists the test sets, and MariaDB. After each command the daemon is killed, or stopped
//! and its state checked.
//!
//! The effect of corrections on boards is tested in `tests/engine/corrections.rs`.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::database::Database;
use crate::sandbox::{self, Sandbox, wait_for, wait_until};
use clqd::board::window;
use clqd::config::Config;
use clqd::engine::Outcome;
use clqd::log::LogEvent;
use clqd::model::{NameHash, Ranking, Scope, ServerUrl};
use clqd::scan_log;
use clqd::state::State;
use clqd::view::board::{BoardQuery, BoardRow, BoardSelector};
use serde_json::Value;

/// A Quake 3 server: every player on its list gains a point with each reply, and every
/// sixteen replies the map changes.
pub struct Server {
    pub url: String,
    list: Arc<Mutex<Vec<&'static str>>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(list: &[&'static str]) -> Server {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let url = format!("quake3://127.0.0.1:{}", socket.local_addr().unwrap().port());
        let list = Arc::new(Mutex::new(list.to_vec()));
        let stopping = Arc::new(AtomicBool::new(false));
        let (thread_list, thread_stopping) = (list.clone(), stopping.clone());
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            let mut replies = 0;
            while !thread_stopping.load(Ordering::Relaxed) {
                let Ok((len, client)) = socket.recv_from(&mut buffer) else { continue };
                let Some(nonce) = buffer[..len].strip_prefix(b"\xff\xff\xff\xffgetstatus ") else { continue };
                let nonce = String::from_utf8_lossy(nonce.trim_ascii()).into_owned();
                replies += 1;
                let mut reply = format!(
                    "statusResponse\n\\challenge\\{nonce}\\mapname\\map{}\\gamename\\baseq3\\sv_hostname\\S\\sv_maxclients\\8\n",
                    replies / 16 % 2
                );
                for (number, name) in (1..).zip(thread_list.lock().unwrap().iter()) {
                    reply += &format!("{} 50 \"{name}\"\n", replies % 16 * number);
                }
                socket.send_to(&[b"\xff\xff\xff\xff".as_slice(), reply.as_bytes()].concat(), client).unwrap();
            }
        });
        Server { url, list, stopping, thread: Some(thread) }
    }

    pub fn set_list(&self, list: &[&'static str]) {
        *self.list.lock().unwrap() = list.to_vec();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// Names on a board of a server, with their times.
fn times(sandbox: &Sandbox, server: &Server) -> BTreeMap<String, u64> {
    let top = sandbox.top(&server.url, "time");
    top.iter().map(|row| (row["name"].as_str().unwrap().to_owned(), row["score"].as_f64().unwrap() as u64)).collect()
}

/// Rated rounds of a player, of all weeks.
pub fn rounds(sandbox: &Sandbox, name: &str) -> u64 {
    let players = sandbox.run(["--json", "player", name]);
    let players: Vec<Value> = sandbox::rows(&players.out);
    let players = players.iter().filter(|row| row["kind"] == "player");
    players.flat_map(|it| it["weeks"].as_array().unwrap()).map(|week| week["elo_rounds"].as_u64().unwrap()).sum()
}

/// Opens the state of a daemon that has stopped.
fn open(sandbox: &Sandbox) -> State {
    let config = Config::load(&sandbox.config()).unwrap();
    wait_for("sled releases its lock", || State::open_configured(&config, &sandbox.state(), false).ok())
}

fn is_stored(state: &State, name: &str) -> bool {
    state.store.contains_bytes(name.as_bytes()).unwrap()
}

/// The players on the time board of every scope in the current week.
fn time_boards(state: &mut State, servers: &[&Server]) -> BTreeMap<String, Vec<String>> {
    let week = state.engine.model().running_windows().into_iter().find(|window| window.week().is_some()).unwrap();
    state.commit_and_build_boards(week).unwrap();
    let scopes = servers.iter().map(|it| Scope::Server(ServerUrl::parse(&it.url).unwrap()));
    let groups = [Scope::Game("baseq3".to_owned()), Scope::Tag("ctf".to_owned())];
    let mut boards = BTreeMap::new();
    for scope in scopes.chain(groups) {
        let label = scope.to_string();
        let board = BoardSelector { scope, ranking: Ranking::Time, window: Some(window::label(week)), at_ms: None };
        let response = state.engine.model().query_board(&state.store, &board, &BoardQuery::Top { count: 100 }).unwrap();
        let mut names: Vec<String> = response
            .rows
            .into_iter()
            .map(|row| match row {
                BoardRow::Entry(entry) => entry.name,
                other => panic!("{other:?}"),
            })
            .collect();
        names.sort();
        boards.insert(label, names);
    }
    boards
}

#[test]
fn corrections_survive_crashes_in_state_and_archive() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::new());
    let value = |sql: &str| runtime.block_on(database.value(sql));
    let one = Server::start(&["Visor", "^1Klesk", "Sarge", "Bones"]);
    let two = Server::start(&["Visor", "Bones", "Doom", "Hunter"]);
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!("[archive]\nurl = {:?}\ninterval_s = 2\ndrain_timeout_s = 60", database.url()));
    sandbox.ok(["migrate"]);
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", &one.url, "--tag", "ctf"]);
    sandbox.ok(["servers", "add", &two.url]);
    wait_until("rounds are rated", || rounds(&sandbox, "Bones") >= 2);
    wait_until("all rows are in MySQL", || {
        value("SELECT COUNT(DISTINCT server, player) FROM player_week WHERE elo_rounds > 0") == "8"
    });

    let of_all =
        "SELECT COUNT(*) FROM clq_top_board WHERE scope_type = 'all' AND window_type = 'week' AND ranking = 'time'";
    wait_until("boards of all games are in MySQL", || value(of_all) == "6");
    wait_until("totals are in MySQL", || value("SELECT players_known FROM clq_site_total") == "6");

    // Greylist, and a crash.
    assert_eq!(times(&sandbox, &two).len(), 4);
    sandbox.ok(["greylist", &two.url, "--reason", "fake"]);
    assert!(times(&sandbox, &two).is_empty());
    daemon.kill();
    let daemon = sandbox.start();
    assert!(times(&sandbox, &two).is_empty());
    let weeks_of_two = "SELECT COUNT(*) FROM player_week JOIN server USING (server) WHERE greylist_reason IS NOT NULL";
    wait_until("MySQL is updated", || {
        value("SELECT COUNT(*) FROM server WHERE greylist_reason IS NOT NULL") == "1" && value(weeks_of_two) == "0"
    });
    sandbox.ok(["greylist", &two.url, "--lift"]);
    assert_eq!(times(&sandbox, &two).len(), 4);
    wait_until("the rows are in MySQL again", || {
        value("SELECT COUNT(DISTINCT server, player) FROM player_week") == "8"
    });

    // Tags.
    assert_eq!(
        sandbox.ok(["servers", "tag", &two.url, "--add", "ctf"]),
        format!("{}  tags changed: it has the tag ctf\n", two.url)
    );
    assert_eq!(sandbox.list(&["--tag", "ctf"]).len(), 2);
    let none = sandbox.run(["servers", "tag", "quake3://127.9.9.9:1", "--remove", "ctf"]);
    assert_eq!(none.status.code(), Some(1), "{}", none.out);

    // Merge of two players of the same server.
    let hunter = sandbox.json(["player", "Hunter"])[0]["player_key"].as_u64().unwrap();
    let doom = sandbox.json(["player", "Doom"])[0]["player_key"].as_u64().unwrap();
    let (before, both) = (times(&sandbox, &two), times(&sandbox, &two));
    let merged = sandbox.json(["player", "merge", "Hunter", &format!("#{doom}"), "--game", "baseq3"]);
    assert_eq!((&merged[0]["outcome"], &merged[0]["player_key"]), (&"merged".into(), &hunter.into()));
    daemon.kill();
    let daemon = sandbox.start();
    let after = times(&sandbox, &two);
    assert!(!after.contains_key("Hunter") && after["Doom"] >= before["Doom"] + both["Hunter"], "{before:?} {after:?}");
    assert_eq!(sandbox.json(["player", "Hunter"])[0]["player_key"], doom);
    wait_until("MySQL is updated", || {
        value("SELECT COUNT(*) FROM player") == "5"
            && value(&format!("SELECT COUNT(DISTINCT server, player) FROM player_week WHERE player = {hunter}")) == "0"
            && value(&format!("SELECT COUNT(DISTINCT server, player) FROM player_week WHERE player = {doom}")) == "1"
    });

    // Forget, and an immediate crash.
    let unconfirmed = sandbox.run(["player", "forget", "Visor", "--game", "baseq3"]);
    assert_eq!(unconfirmed.status.code(), Some(2));
    assert!(unconfirmed.err.contains("--yes"), "{}", unconfirmed.err);
    let forgotten = sandbox.json(["player", "forget", "Visor", "--game", "baseq3", "--yes"]);
    daemon.kill();
    let hash = NameHash::of("baseq3", "Visor").to_string();
    assert_eq!(forgotten[0]["hashes"], serde_json::json!([hash]));
    let daemon = sandbox.start();
    assert_eq!(sandbox.run(["player", "Visor"]).status.code(), Some(1));
    assert_eq!(sandbox.json(["player", "forgotten"])[0]["hash"], hash.as_str());

    // The player returns.
    one.set_list(&["^2Vis^3or", "Klesk", "Sarge", "Bones"]);
    let rated = rounds(&sandbox, "Bones");
    wait_until("rounds are rated", || rounds(&sandbox, "Bones") >= rated + 2);
    let list = sandbox.json(["servers", "show", &one.url])[0]["players_listed"].clone();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["", "Klesk", "Sarge", "Bones"]);
    let printed = daemon.stop();
    assert!(!printed.contains("Visor"), "{printed}");
    let lines: Vec<_> = sandbox.log_lines().lines().map(|line| scan_log::parse(line).unwrap()).collect();
    let names = |event: &LogEvent| match event {
        LogEvent::Scan { outcome: Outcome::Snapshot(snapshot), .. } => {
            snapshot.players.iter().map(|it| it.name.to_string()).collect()
        }
        _ => Vec::new(),
    };
    let with_name = lines.iter().find(|event| names(event).iter().any(|name| name.contains("Vis")));
    assert!(lines.len() > 10 && with_name.is_none(), "{with_name:?}");

    let mut state = open(&sandbox);
    assert!(!is_stored(&state, "Visor") && is_stored(&state, "Sarge"));
    let want = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let all = want(&["Bones", "Doom", "Klesk", "Sarge"]);
    let boards = time_boards(&mut state, &[&one, &two]);
    let of = |scope: &str| boards[scope].clone();
    assert_eq!((of("game:baseq3"), of("tag:ctf")), (all.clone(), all));
    assert_eq!(of(&format!("server:{}", one.url)), want(&["Bones", "Klesk", "Sarge"]));
    assert_eq!(of(&format!("server:{}", two.url)), want(&["Bones", "Doom"]));
    drop(state);

    // The daemon wrote everything before it ended.
    for (table, column) in
        [("player", "name"), ("player", "display"), ("online_player", "name"), ("online_player", "display")]
    {
        assert_eq!(
            value(&format!("SELECT COUNT(*) FROM {table} WHERE {column} LIKE '%Vis%'")),
            "0",
            "{table}.{column}"
        );
    }
    assert_eq!(value("SELECT COUNT(*) FROM player"), "4");
    assert_eq!(value("SELECT COUNT(DISTINCT server, player) FROM player_week"), "5");
    assert_eq!(value("SELECT COUNT(*) FROM player_week LEFT JOIN player USING (player) WHERE name IS NULL"), "0");

    // After `player allow`, the name is a new player.
    let daemon = sandbox.start();
    sandbox.ok(["player", "allow", &hash]);
    assert!(sandbox.json(["player", "forgotten"]).is_empty());
    let new_key = wait_for("the name is known", || {
        let players = sandbox.run(["--json", "player", "Visor"]);
        let found = sandbox::rows(&players.out).into_iter().find(|row| row["kind"] == "player");
        found.map(|row| row["player_key"].as_u64().unwrap())
    });
    assert!(new_key > doom.max(hunter));
    daemon.stop();
    assert_eq!(value("SELECT player FROM player WHERE name = 'Visor'"), new_key.to_string());
}
