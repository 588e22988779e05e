//! Window types that are new or have new boundaries, with the real daemon: their windows are
//! rebuilt from the log while the daemon scans and responds. Then every board of every
//! window and scope equals, bit for bit, that of a new replay of the log with the new config.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::sandbox::{Daemon, Sandbox, fleet, wait_for, wait_until};
use clqd::board::window;
use clqd::clock::system_ms;
use clqd::config::Config;
use clqd::engine::{Outcome, StateReader};
use clqd::fleet::{FaultShares, Fleet, Ports, RateLimit, ServeSettings, SimulatedHistory, World, world};
use clqd::model::calendar::HOUR_MS;
use clqd::model::{Ranking, Scope, ServerKey, ServerUrl, Snapshot};
use clqd::scan_log;
use clqd::state::State;
use clqd::view::board::{BoardSelector, WindowPhase};
use nix::sys::signal::Signal;

/// Servers with the tag.
const TAGGED: usize = 4;

/// Age of the first line of the log: more than a day before some windows start.
const PAST_MS: i64 = 36 * HOUR_MS;

fn config(windows: &[String]) -> String {
    format!("time_zone = \"America/Havana\"\n[boards]\nwindows = {windows:?}\n")
}

/// A custom window type whose current window started `minutes_ago`.
fn custom(kind: u32, minutes_ago: i64, now_ms: i64) -> String {
    let base_ms = now_ms - now_ms.rem_euclid(60_000) - minutes_ago * 60_000 - 30 * HOUR_MS;
    format!("{kind} base={} duration=10h every=10h keep=0", rfc3339(base_ms))
}

/// Name, score, tie break and time, from the first position to the last.
type Board = Vec<(String, i64, u64, i64)>;

/// All boards that are not empty, by window, scope and ranking.
type Boards = BTreeMap<(String, String, &'static str), Board>;

fn open(sandbox: &Sandbox) -> State {
    let config = Config::load(&sandbox.config()).expect("the config");
    wait_for("the state is closed", || State::open_configured(&config, &sandbox.state(), true).ok())
}

fn boards(state: &mut State) -> Boards {
    let servers: Vec<_> = state.engine.model().servers().collect();
    let games: BTreeSet<&str> = servers.iter().filter_map(|server| server.public.game.as_deref()).collect();
    let scopes = servers.iter().map(|server| format!("server:{}", server.public.url));
    let scopes = scopes.chain(games.into_iter().map(|game| format!("game:{game}"))).chain(["tag:some".to_owned()]);
    let scopes: Vec<Scope> = scopes.map(|scope| scope.parse().expect("a scope")).collect();
    let mut boards = Boards::new();
    for listed in state.engine.model().windows().into_iter().filter(|listed| listed.phase != WindowPhase::Upcoming) {
        let label = listed.window.window;
        state.commit_and_build_boards(window::parse_label(&label).expect("a label")).expect("a store");
        for (scope, ranking) in scopes.iter().flat_map(|scope| Ranking::ALL.map(|ranking| (scope, ranking))) {
            let name = BoardSelector { scope: scope.clone(), ranking, window: Some(label.clone()), at_ms: None };
            let (_, board) =
                state.engine.model().board(&state.store, &name).unwrap_or_else(|e| panic!("{name:?}: {e}"));
            // Keys are assigned in order of appearance and include names that only the live
            // engine has seen, so boards are compared by name.
            let named = |entry: clqd::board::BoardEntry| {
                let record = state.store.player_record(entry.player).expect("a store").expect("a player");
                (record.name.into(), entry.score().0, entry.tie, entry.at_ms)
            };
            let board: Board = board.iter().map(named).collect();
            if !board.is_empty() {
                boards.insert((label.clone(), scope.to_string(), ranking.name()), board);
            }
        }
    }
    boards
}

/// Adds servers, the first ones with a tag: a scan log has neither.
fn add_servers(sandbox: &Sandbox, urls: &[String]) {
    let mut state = open(sandbox);
    for (n, url) in urls.iter().enumerate() {
        let tags = if n < TAGGED { vec!["some".to_owned()] } else { Vec::new() };
        state.engine.add_server(ServerUrl::parse(url).unwrap(), tags, 0).expect("a new server");
    }
    state.commit().expect("a store");
}

/// A busy fleet whose earlier scans are written to a scan log.
fn fleet_with_past(log: &Path, now_ms: i64) -> Fleet {
    let start_ms = 1_763_683_200_000;
    let live_from_ms = start_ms + PAST_MS;
    let world = || {
        World::new(world::WorldSettings {
            servers: 8,
            seed: 11,
            start_ms,
            activity: 4.0,
            truth: false,
            ..Default::default()
        })
    };
    let serve = ServeSettings {
        ports: Ports::ANY,
        live_from_ms,
        speed: 20.0,
        faults: FaultShares::default(),
        rate_limit: RateLimit::none,
    };
    let fleet = Fleet::start(world(), serve).expect("a fleet on free ports");
    let urls: Vec<ServerUrl> = fleet.urls().iter().map(|url| ServerUrl::parse(url).expect("canonical")).collect();
    let mut lines = Vec::new();
    for (t_ms, server, snapshot) in SimulatedHistory::new(&mut world(), start_ms, live_from_ms) {
        let snapshot = Snapshot { t_ms: t_ms + now_ms - live_from_ms, ..snapshot };
        scan_log::write(&mut lines, &urls[server as usize], &Outcome::Snapshot(snapshot));
    }
    std::fs::write(log, lines).expect("the log");
    fleet
}

/// A daemon that has recorded scans of a busy fleet.
fn start_and_record(sandbox: &Sandbox) -> (Daemon, Fleet, Vec<String>) {
    let fleet = fleet(12, 7, 40.0, FaultShares::default());
    let daemon = sandbox.start();
    let urls = fleet.urls();
    let (tagged, others) = urls.split_at(TAGGED);
    sandbox
        .ok([&["servers", "add", "--tag", "some"], &tagged.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    sandbox.ok([&["servers", "add"], &others.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    wait_until("scans are recorded", || scans(sandbox) > 300);
    (daemon, fleet, urls)
}

fn scans(sandbox: &Sandbox) -> u64 {
    sandbox.status()["engine"]["counts"]["snapshots"].as_u64().expect("a number")
}

fn is_rebuilt(sandbox: &Sandbox, kind: &str) -> bool {
    let done = sandbox.run(["top", "--tag", "some", "--window", kind]);
    assert!(done.status.success() || done.err.contains("is being rebuilt"), "{}", done.err);
    done.status.success()
}

#[test]
fn windows_with_new_boundaries_are_rebuilt_from_log() {
    let now_ms = system_ms();
    let sandbox = Sandbox::new("");
    sandbox.configure(&config(&[custom(12, 1, now_ms), custom(13, 2, now_ms)]));
    let (daemon, fleet, urls) = start_and_record(&sandbox);
    assert!(is_rebuilt(&sandbox, "12") && is_rebuilt(&sandbox, "13"), "without a past nothing is rebuilt");

    let windows = [custom(12, 7, now_ms), custom(13, 2, now_ms), "day keep=3".to_owned(), "all-time".to_owned()];
    sandbox.configure(&config(&windows));
    daemon.signal(Signal::SIGHUP);
    let log = daemon.wait_for_log("are being rebuilt from the log");
    assert!(log.contains("windows of type all-time, day, 12 are being rebuilt"), "{log}");
    // Other windows are not affected, and the daemon responds meanwhile.
    assert!(is_rebuilt(&sandbox, "13") && is_rebuilt(&sandbox, "week"));
    assert!(sandbox.status()["engine"]["servers"].as_u64() >= Some(12));
    daemon.wait_for_log("windows were rebuilt from the log");
    assert!(["12", "day", "all-time"].iter().all(|kind| is_rebuilt(&sandbox, kind)));
    let reloaded = sandbox.ok(["reload"]);
    assert!(!reloaded.contains("rebuilt"), "the same settings change nothing: {reloaded}");

    // New scans are credited to the rebuilt windows.
    let seen = scans(&sandbox);
    wait_until("scans continue", || scans(&sandbox) > seen + 100);
    let log = daemon.stop();
    assert_eq!(log.matches("windows were rebuilt").count(), 1, "{log}");
    drop(fleet);
    assert!(!sandbox.state().join("rebuild").exists());
    check_equals_replay(&sandbox, &windows, &urls);
}

/// Checks that the boards of a sandbox whose daemon has ended equal those of a new replay.
fn check_equals_replay(sandbox: &Sandbox, windows: &[String], urls: &[String]) -> (State, Boards) {
    let fresh = Sandbox::new(&config(windows));
    add_servers(&fresh, urls);
    let args = ["replay".into(), "--state".into(), fresh.state().into_os_string(), sandbox.state().into_os_string()];
    wait_for("the state is closed", || fresh.run(&args).status.success().then_some(()));
    let mut state = open(sandbox);
    let (rebuilt, want) = (boards(&mut state), boards(&mut open(&fresh)));
    for (name, board) in &want {
        assert_eq!(rebuilt.get(name), Some(board), "{name:?}");
    }
    assert_eq!(rebuilt.len(), want.len());
    assert!(want.values().filter(|board| board.len() > 3).count() > 20, "enough boards have players");
    (state, want)
}

#[test]
fn windows_with_long_presences_are_rebuilt_exactly() {
    let now_ms = system_ms();
    let sandbox = Sandbox::new("");
    let record = sandbox.path("scans.jsonl");
    sandbox.configure(&config(&[custom(12, 1, now_ms), custom(13, 2, now_ms)]));
    let fleet = fleet_with_past(&record, now_ms);
    let urls = fleet.urls();
    add_servers(&sandbox, &urls);
    wait_for("the state is closed", || {
        sandbox.run(["log".as_ref(), "import".as_ref(), record.as_os_str()]).status.success().then_some(())
    });
    let refused = sandbox.run(["log".as_ref(), "import".as_ref(), record.as_os_str()]);
    assert!(refused.err.contains("has events already"), "{}", refused.err);
    let daemon = sandbox.start();
    // First only the part of the past that the windows and the day before them need is replayed;
    // then all of it.
    let late = format!("12 base={} duration=2h every=1h keep=0", rfc3339(now_ms - 3 * HOUR_MS - 600_000));
    let windows = [late, custom(13, 2, now_ms)];
    sandbox.configure(&config(&windows));
    daemon.signal(Signal::SIGHUP);
    daemon.wait_for_log("windows of type 12 are being rebuilt");
    daemon.wait_for_log("windows were rebuilt from the log");
    let all = ["hour keep=0", "day keep=0", "month keep=0", "all-time"].map(str::to_owned);
    let windows = [&windows[..], &all].concat();
    sandbox.configure(&config(&windows));
    daemon.signal(Signal::SIGHUP);
    daemon.wait_for_log("windows of type all-time, hour, day, month are being rebuilt");
    wait_until("the windows are rebuilt", || daemon.log().matches("windows were rebuilt").count() == 2);
    let seen = scans(&sandbox);
    wait_until("scans continue", || scans(&sandbox) > seen + 20);
    daemon.stop();
    drop(fleet);

    let (state, boards) = check_equals_replay(&sandbox, &windows, &urls);
    for ranking in Ranking::ALL {
        for kind in ["12", "13", "hour", "day", "month", "all-time"] {
            let matches = |(label, scope, name): &&(String, String, &str)| {
                let window = window::parse_label(label).expect("a label");
                window::type_name(window.kind) == kind && !scope.starts_with("server:") && *name == ranking.name()
            };
            assert!(boards.keys().filter(matches).count() >= 2, "{kind}: {} of games and the tag", ranking.name());
        }
    }
    let all_time = window::parse_label("all-time").expect("a label");
    let rows = (0..=urls.len() as u32).flat_map(|key| state.store.rows(all_time, ServerKey(key)).expect("a store"));
    let detailed =
        rows.filter(|(_, row)| row.clq1_segments.values().count() >= 4 && row.clq2_games.values().count() >= 2);
    let detailed = detailed.filter(|(_, row)| row.elo_rounds >= 3).count();
    assert!(detailed > 20, "{detailed} rows with several segments, games and rounds");
}

fn rfc3339(t_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(t_ms).expect("a time").to_rfc3339()
}

#[test]
fn rebuild_after_restart_and_crash_equals_replay() {
    let now_ms = system_ms();
    let sandbox = Sandbox::new("");
    sandbox.configure(&config(&[custom(12, 1, now_ms)]));
    let (daemon, fleet, urls) = start_and_record(&sandbox);
    daemon.stop();
    let windows = [custom(12, 7, now_ms), "all-time".to_owned()];
    sandbox.configure(&config(&windows));
    // The daemon is killed as soon as it logs the rebuild: the next one starts the rebuild again,
    // or finds it complete.
    let daemon = sandbox.spawn();
    daemon.wait_for_log("windows of type all-time, 12 are being rebuilt");
    daemon.kill();
    let leftover = sandbox.state().join("rebuild/left/state");
    std::fs::create_dir_all(&leftover).expect("created");
    std::fs::write(leftover.join("db"), "half").expect("written");
    let daemon = sandbox.start();
    assert!(!leftover.exists(), "the start removes files of an unfinished rebuild");
    wait_until("the windows are rebuilt", || is_rebuilt(&sandbox, "12") && is_rebuilt(&sandbox, "all-time"));
    daemon.stop();
    drop(fleet);
    check_equals_replay(&sandbox, &windows, &urls);
}

/// The log has every scan since the first start: the all-time window becomes equal to a window that
/// began before it.
#[test]
fn windows_of_two_segments_are_rebuilt() {
    let now_ms = system_ms();
    let long = custom(12, 60, now_ms);
    let sandbox = Sandbox::new(&format!("[boards]\nwindows = {:?}\n", [&long]));
    let fleet = fleet(4, 7, 20.0, FaultShares::default());
    let mut daemon = sandbox.start();
    let urls = fleet.urls();
    sandbox
        .ok([&["servers", "add", "--tag", "some"], &urls.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
    let top = |kind: &str| sandbox.json(["top", "--tag", "some", "--ranking", "time", "--window", kind]);
    wait_until("players are seen", || top("12").len() > 3);
    // A result is shown before its scan is on disk; without a scan there is nothing to rebuild from.
    wait_until("their scans are in the log", || sandbox.log_lines().contains("\"players\""));
    // A second segment, whose beginning is not in a checkpoint.
    daemon.kill();
    daemon = sandbox.start();
    sandbox.configure(&format!("[boards]\nwindows = {:?}\n", [long, "all-time".to_owned()]));
    let printed = sandbox.run(["reload"]);
    assert!(
        printed.err.contains("windows of type all-time are being rebuilt from the log, which begins at"),
        "{}",
        printed.err
    );
    wait_until("the windows are rebuilt", || is_rebuilt(&sandbox, "all-time"));
    daemon.stop();
    assert!(top("12").len() > 3);
    // Without the head, which has the times of the window.
    assert_eq!(top("all-time")[1..], top("12")[1..]);
}
