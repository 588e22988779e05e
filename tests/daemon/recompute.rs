//! `clqd recompute`: its figures equal those computed from the exports of two replays, one with the recorded
//! settings and one with the others.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use clqd::fleet::FaultShares;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, fleet, rows, wait_until};
use crate::web::openapi::assert_described;

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 1_440 * MINUTE_MS;

/// Monday 2025-11-17 00:00 UTC, the start of 2025-W47.
const WEEK_47_MS: i64 = 1_763_337_600_000;

const SERVERS: [&str; 3] = ["quake3://10.0.0.1:27960", "quake3://10.0.0.2:27960", "quake3://10.0.0.3:27960"];

/// A list that has more entries than the server has slots, so screening does not use it.
const SCREENED_SERVER: &str = "quake3://10.0.0.4:27960";

const RANKINGS: [&str; 5] = ["clq1", "clq2", "elo", "points", "time"];

/// A scan log from noon of 2025-W47's Monday to Wednesday of 2025-W50: an hour a day on each server, in rounds
/// of ten minutes. `elo.k` changes in 2025-W49.
fn played_log() -> String {
    let mut log = String::new();
    let first_ms = WEEK_47_MS + DAY_MS / 2;
    let settings = |log: &mut String, t_ms: i64, k: f64| {
        writeln!(log, "{}", json!({"t": t_ms, "settings": {"elo.k": k, "screen.enabled": true}})).unwrap();
    };
    settings(&mut log, first_ms, 25.0);
    let mut random = 1_u64;
    let mut below = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    for day in 0..24 {
        if day == 16 {
            settings(&mut log, first_ms + day * DAY_MS, 32.0);
        }
        let mut points: BTreeMap<(usize, u64), i64> = BTreeMap::new();
        for minute in (1..=60).step_by(2) {
            let t_ms = first_ms + day * DAY_MS + minute * MINUTE_MS;
            for (number, server) in SERVERS.iter().enumerate() {
                if minute % 10 == 1 {
                    points.retain(|(of, _), _| *of != number);
                    (0..12).for_each(|_| _ = points.insert((number, below(30)), 0));
                }
                let mut players = Vec::new();
                for ((_, player), points) in points.iter_mut().filter(|((of, _), _)| *of == number) {
                    *points += below(2 + player / 3) as i64;
                    let name = format!("player {player}");
                    players.push(json!({"name": name, "points": *points, "ping": 40, "bot": false}));
                }
                writeln!(log, "{}", scan(t_ms, server, 16, &players)).unwrap();
            }
            let entry = |n: i64| json!({"name": format!("extra {n}"), "points": n * minute, "ping": 40, "bot": false});
            let players: Vec<Value> = (0..20).map(entry).collect();
            writeln!(log, "{}", scan(t_ms, SCREENED_SERVER, 8, &players)).unwrap();
        }
    }
    log
}

fn scan(t_ms: i64, server: &str, slots: u32, players: &[Value]) -> Value {
    json!({"t": t_ms, "server": server, "game": "baseq3", "map": "q3dm17", "hostname": "h", "slots": slots,
           "players": players})
}

/// The log without its settings.
fn without_settings(log: &str) -> String {
    log.lines().filter(|line| !line.contains("\"settings\":")).map(|line| line.to_owned() + "\n").collect()
}

/// A player's position and score on a board.
type Boards = BTreeMap<(String, String), (u64, f64)>;

/// The board of a server, from its rows.
fn board(exported: &[Value], server: &str, ranking: &str) -> Boards {
    let score = if ranking == "time" { "time_ms" } else { ranking };
    let of_server = exported.iter().filter(|row| row["server"] == server);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let entry = |row: &Value| {
        let at = (row["pos"][ranking].as_u64()?, row[score].as_f64().expect("a number"));
        Some(((text(&row["game"]), text(&row["player"])), at))
    };
    of_server.filter_map(entry).collect()
}

/// The comparison of two boards as the command prints it.
fn compared(before: &Boards, after: &Boards) -> Value {
    let both: Vec<_> = before.iter().filter_map(|(player, from)| Some((*from, *after.get(player)?))).collect();
    let mut moves: Vec<u64> = both.iter().map(|(from, to)| from.0.abs_diff(to.0)).filter(|by| *by > 0).collect();
    moves.sort_unstable();
    // The smallest move that is at least as large as this share of the moves.
    let percentile = |percent: usize| {
        moves.iter().find(|by| moves.iter().filter(|it| it <= by).count() * 100 >= moves.len() * percent).copied()
    };
    let in_top = |at: Option<&(u64, f64)>| at.is_some_and(|(position, _)| *position <= 10);
    let changes = |entered: bool| {
        let (this, other) = if entered { (after, before) } else { (before, after) };
        let is_change = |player: &(String, String)| in_top(this.get(player)) && !in_top(other.get(player));
        let mut changed: Vec<_> = this.iter().filter(|(player, _)| is_change(player)).collect();
        changed.sort_by_key(|(_, (position, _))| *position);
        let change = |(game, player): &(String, String)| {
            let at = |board: &Boards| board.get(&(game.clone(), player.clone())).map(|(position, _)| *position);
            json!({"game": game, "player": player, "before": at(before), "after": at(after)})
        };
        changed.into_iter().map(|(player, _)| change(player)).collect::<Vec<_>>()
    };
    json!({
        "players_before": before.len(), "players_after": after.len(), "players_both": both.len(),
        "gained": after.len() - both.len(), "lost": before.len() - both.len(),
        "moved": moves.len(), "moved_by_median": percentile(50), "moved_by_p99": percentile(99),
        "top_ten_entered": changes(true), "top_ten_left": changes(false),
    })
}

/// Spearman's correlation by its definition: of the mean ranks by score.
fn spearman(before: &Boards, after: &Boards) -> Option<f64> {
    let both: Vec<(f64, f64)> =
        before.iter().filter_map(|(player, from)| Some((from.1, after.get(player)?.1))).collect();
    let ranks = |scores: Vec<f64>| -> Vec<f64> {
        let rank = |score: &f64| {
            let better = scores.iter().filter(|it| *it > score).count() as f64;
            better + (scores.iter().filter(|it| *it == score).count() as f64 + 1.0) / 2.0
        };
        scores.iter().map(rank).collect()
    };
    let (a, b) = (ranks(both.iter().map(|it| it.0).collect()), ranks(both.iter().map(|it| it.1).collect()));
    let n = both.len() as f64;
    let mean = |list: &[f64]| list.iter().sum::<f64>() / n;
    let covariance = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>() / n - mean(x) * mean(y);
    let found = covariance(&a, &b) / (covariance(&a, &a) * covariance(&b, &b)).sqrt();
    found.is_finite().then_some(found)
}

/// Compares the command's rows of a server with the exports of two replays. The config of the sandbox is
/// the new one. Returns the number of moved players.
#[track_caller]
fn check_server(sandbox: &Sandbox, options: &[&str], server: &str, states: [&Path; 2]) -> u64 {
    let printed = sandbox.json([&["recompute", "--server", server], options].concat());
    let mut moved = 0;
    let boards: Vec<&Value> = printed.iter().filter(|row| row["kind"] == "recompute_board").collect();
    assert!(!boards.is_empty() && boards.len().is_multiple_of(RANKINGS.len()), "{printed:?}");
    for week in boards.chunks(RANKINGS.len()) {
        let label = week[0]["week"].as_str().expect("a label");
        let exported = states.map(|state| {
            let done = sandbox.run(["export", "--state", state.to_str().expect("a path"), "--week", label]);
            rows(&done.out)
        });
        for (ranking, row) in RANKINGS.iter().zip(week) {
            assert_eq!((&row["week"], &row["ranking"]), (&json!(label), &json!(ranking)));
            assert_eq!(row["scope"], format!("server:{server}"));
            let [before, after] = [0, 1].map(|n| board(&exported[n], server, ranking));
            let want = compared(&before, &after);
            for (field, want) in want.as_object().expect("an object") {
                assert_eq!(&row[field], want, "{server} {label} {ranking} {field}");
            }
            match spearman(&before, &after) {
                Some(want) => {
                    let found = row["spearman"].as_f64().expect("a number");
                    assert!((found - want).abs() < 1e-9, "{server} {label} {ranking}: {found} instead of {want}");
                }
                None => assert!(row["spearman"].is_null(), "{row}"),
            }
            moved += row["moved"].as_u64().expect("a number");
        }
    }
    moved
}

#[test]
fn figures_equal_those_of_two_replays() {
    let sandbox = Sandbox::new("");
    let log = sandbox.path("log.jsonl");
    fs::write(&log, played_log()).expect("written");
    let stripped = sandbox.path("stripped.jsonl");
    fs::write(&stripped, without_settings(&played_log())).expect("written");
    let (before, after) = (sandbox.path("before"), sandbox.path("after"));
    sandbox.replay(&log, &before);
    sandbox.configure("[elo]\nk = 60.0\nk_times_opponents_max = 0.0\n[screen]\nenabled = false\n");
    sandbox.replay(&stripped, &after);

    let log = log.to_str().expect("a path");
    let moved: u64 =
        SERVERS.iter().map(|server| check_server(&sandbox, &["--log", log], server, [&before, &after])).sum();
    assert!(moved > 20, "only {moved} players moved: the test compares nothing");
    // Its players are ranked only without screening.
    check_server(&sandbox, &["--log", log, "--weeks", "2"], SCREENED_SERVER, [&before, &after]);

    let printed = sandbox.json(["recompute", "--log", log]);
    let settings = |key: &str, before: Value, after: Value| json!({"key": key, "before": before, "after": after});
    let want = json!({"kind": "recompute_settings", "settings": [
        settings("elo.k", json!([25.0, 32.0]), json!(60.0)),
        settings("elo.k_times_opponents_max", json!([225.0]), json!(0.0)),
        settings("screen.enabled", json!([true]), json!(false)),
    ]});
    assert_eq!(printed[0], want);
    assert_eq!(printed[1]["weeks"], json!(["2025-W48", "2025-W49"]));
    assert_eq!(printed[1]["partial_weeks"], json!(["2025-W47", "2025-W50"]));
    assert_eq!(printed[1]["scans"], 24 * 30 * 4);
    let (of_before, of_after) = (&printed[2]["before"], &printed[2]["after"]);
    assert_eq!(of_before["snapshots"], 24 * 30 * 3);
    assert_eq!((&of_before["screened_snapshots"], &of_after["screened_snapshots"]), (&json!(24 * 30), &json!(0)));
    // Both weeks of the only game, in five rankings.
    assert_eq!(printed.len(), 3 + 2 * 5);
    let players = |row: &Value| [&row["players_both"], &row["gained"], &row["lost"]].map(|n| n.as_u64().expect("n"));
    let time = printed.iter().find(|row| row["ranking"] == "time").expect("a board");
    assert_eq!((&time["scope"], players(time)), (&json!("game:baseq3"), [30, 20, 0]));

    let docs = include_str!("../../docs/log.md");
    for field in printed.iter().flat_map(|row| row.as_object().expect("an object").keys()) {
        assert!(field == "kind" || docs.contains(&format!("`{field}`")), "docs/log.md does not name {field}");
    }

    // As text, and with options that do not fit the log.
    let text = sandbox.ok(["recompute", "--log", log, "--weeks", "1"]);
    assert!(text.starts_with("Settings that differ:\n  elo.k  25.0, then 32.0 -> 60.0\n"), "{text}");
    assert!(text.contains("\n2025-W50 (a part of the week), game baseq3\nranking "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let done = sandbox.run(["recompute", "--log", log, "--game", "baseq4"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.err.ends_with("clqd: the log has no game baseq4\n"), "{}", done.err);
}

#[test]
fn unchanged_settings_are_reported_and_nothing_is_replayed() {
    let sandbox = Sandbox::new("[elo]\nk = 32.0\n");
    let log = sandbox.path("log.jsonl");
    let settings = json!({"t": WEEK_47_MS, "settings": {"elo.k": 32.0}});
    fs::write(&log, format!("{settings}\n")).expect("written");
    let log = log.to_str().expect("a path");
    let text = sandbox.ok(["recompute", "--log", log]);
    assert_eq!(text, "The log records the same settings: no ranking would change.\n");
    assert_eq!(sandbox.json(["recompute", "--log", log]), [json!({"kind": "recompute_settings", "settings": []})]);
    // A log of a part of one week.
    sandbox.configure("[elo]\nk = 50.0\n");
    let done = sandbox.run(["recompute", "--log", log]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.err.contains("it has a part of 2025-W47; compare this part with --weeks 1"), "{}", done.err);
    let done = sandbox.run(["recompute"]);
    let state = sandbox.state();
    assert!(done.err.contains(&format!("{} is neither a state directory with a log", state.display())), "{}", done.err);
}

#[test]
fn log_of_a_running_daemon_is_recomputed() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(6, 5, 60.0, FaultShares::default());
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    wait_until("rounds have ended", || sandbox.status()["engine"]["counts"]["rounds"].as_u64() > Some(4));
    sandbox.configure("[elo]\nk = 90.0\n[clq2]\nquarter = \"exact\"\n");
    let printed = sandbox.json(["recompute", "--weeks", "1"]);
    assert_eq!(printed[0]["settings"][0]["key"], "clq2.quarter");
    assert!(printed.iter().any(|row| row["kind"] == "recompute_board"), "{printed:?}");
    daemon.stop();

    // The exported log has the same events.
    let lines = sandbox.log_lines();
    let exported = sandbox.path("exported.jsonl");
    fs::write(&exported, &lines).expect("written");
    let exported = exported.to_str().expect("UTF-8");
    let of_lines = sandbox.json(["recompute", "--weeks", "1", "--log", exported]);
    assert_eq!(sandbox.json(["recompute", "--weeks", "1"]), of_lines);

    let stripped = sandbox.path("stripped.jsonl");
    fs::write(&stripped, without_settings(&lines)).expect("written");
    let (before, after) = (sandbox.path("before"), sandbox.path("after"));
    sandbox.replay(&sandbox.state(), &before);
    sandbox.replay(&stripped, &after);
    fleet.urls().iter().for_each(|url| _ = check_server(&sandbox, &["--weeks", "1"], url, [&before, &after]));
}

/// What happens while windows are recomputed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    Kill,
    /// The rules change once more.
    Reload,
}

/// Sets other rules, has the daemon apply them to the running windows, and checks that its rankings are those of
/// a replay that has had the last rules from the beginning.
fn check_applied(meanwhile: Meanwhile) {
    let windows = "[boards]\nwindows = [\"all-time\"]\n";
    let sandbox = Sandbox::new(windows);
    let fleet = fleet(6, 5, 60.0, FaultShares::default());
    let mut daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    let rounds = |sandbox: &Sandbox| sandbox.status()["engine"]["counts"]["rounds"].as_u64().expect("a number");
    wait_until("rounds have ended", || rounds(&sandbox) > 4);
    let changed = format!("{windows}[elo]\nk = 90.0\n[clq2]\nquarter = \"exact\"\n");
    sandbox.configure(&changed);
    let done = sandbox.run(["recompute", "--weeks", "1", "--apply"]);
    assert_eq!(done.status.code(), Some(1));
    let refusal = "the daemon has other values of clq2.quarter, elo.k: install this configuration file and run \
                   `clqd reload` first";
    assert!(done.err.contains(refusal), "{}", done.err);
    assert_eq!(done.out, "", "nothing is computed before");
    sandbox.ok(["reload"]);
    if meanwhile == Meanwhile::Kill {
        let rows = sandbox.json(["recompute", "--weeks", "1", "--apply"]);
        let last = rows.last().expect("an answer");
        assert!(last.to_string().contains("all-time"), "{rows:?}");
        assert_described("windows.recompute", std::slice::from_ref(last));
    } else {
        let printed = sandbox.ok(["recompute", "--weeks", "1", "--apply"]);
        let last = printed.lines().last().expect("an answer");
        assert!(last.starts_with("recomputing ") && last.contains("all-time"), "{printed}");
        assert!(printed.lines().all(|line| line.chars().count() <= 80), "{printed}");
    }
    let finished = "windows were rebuilt from the log";
    let is_recomputing = || sandbox.status()["engine"]["rebuilding"] != json!([]);
    match meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::Kill => {
            daemon.kill();
            daemon = sandbox.start();
        }
        Meanwhile::Reload => {
            let mut k = 90;
            wait_until("rules change before the recomputation ends", || {
                k += 1;
                sandbox.configure(&changed.replace("90.0", &format!("{k}.0")));
                sandbox.ok(["reload"]);
                let is_early = is_recomputing();
                if !is_early {
                    sandbox.ok(["recompute", "--weeks", "1", "--apply"]);
                }
                is_early
            });
        }
    }
    daemon.wait_for_log(finished);
    wait_until("the windows are recomputed", || !is_recomputing());
    let before = rounds(&sandbox);
    wait_until("more rounds have ended", || rounds(&sandbox) > before + 2);
    daemon.stop();
    drop(fleet);

    // The log has the rows of the rebuild.
    let lines = sandbox.log_lines();
    assert!(lines.contains("\"rebuild\":\"server\"") && lines.contains("\"rebuild\":\"players\""));
    sandbox.assert_replay_equals_state();
    let scans: String =
        lines.lines().filter(|line| !line.contains("\"rebuild\":")).map(|line| format!("{line}\n")).collect();
    let stripped = sandbox.path("stripped.jsonl");
    fs::write(&stripped, without_settings(&scans)).expect("written");
    let replayed = sandbox.path("other-rules");
    sandbox.replay(&stripped, &replayed);
    for week in sandbox.weeks() {
        let (applied, want) = (sandbox.export(&sandbox.state(), &week), sandbox.export(&replayed, &week));
        assert!(want.lines().count() > 20, "{want}");
        let different = applied.lines().zip(want.lines()).find(|(a, b)| a != b);
        assert!(applied == want, "{different:?}");
    }
    for ranking in RANKINGS {
        let board = |window: &str| sandbox.json(["top", "--game", "baseq3", "--ranking", ranking, "--window", window]);
        assert_eq!(board("all-time")[1..], board("week")[1..], "{ranking}");
    }
}

#[test]
fn other_rules_are_applied_to_running_windows() {
    check_applied(Meanwhile::Nothing);
}

#[test]
fn recomputation_continues_after_a_kill() {
    check_applied(Meanwhile::Kill);
}

#[test]
fn rules_changed_during_a_recomputation_hold_for_all_of_it() {
    check_applied(Meanwhile::Reload);
}

/// Segments are removed after the recomputation has begun; another engine of a cluster may have fewer, too.
#[test]
fn windows_that_the_log_has_no_more_are_not_recomputed() {
    let sandbox = Sandbox::new("");
    let fleet = fleet(6, 6, 60.0, FaultShares::default());
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    let rounds = |sandbox: &Sandbox| sandbox.status()["engine"]["counts"]["rounds"].as_u64().expect("a number");
    wait_until("rounds have ended", || rounds(&sandbox) > 4);
    daemon.stop();
    let segments = || {
        let files = fs::read_dir(sandbox.state().join("log")).expect("a log").map(|file| file.expect("a file").path());
        let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "log")).collect();
        files.sort();
        files
    };
    let (mut first, week) = (segments(), sandbox.weeks().remove(0));
    // The next start goes on in the last one, which is empty.
    first.pop();
    let times = |exported: &str| -> BTreeMap<(String, String), u64> {
        let key = |row: &Value| (row["server"].to_string(), row["player"].to_string());
        rows(exported).iter().map(|row| (key(row), row["time_ms"].as_u64().expect("a number"))).collect()
    };
    let before = times(&sandbox.export(&sandbox.state(), &week));
    wait_until("the daemon is killed before the recomputation ends", || {
        let daemon = sandbox.start();
        sandbox.ok(["recompute", "--weeks", "1", "--apply"]);
        daemon.kill();
        sandbox.status()["engine"]["rebuilding"] != json!([])
    });
    first.iter().for_each(|path| fs::remove_file(path).expect("removed"));
    let daemon = sandbox.start();
    let log = daemon.wait_for_log("windows are not recomputed");
    assert!(log.contains(&week), "{log}");
    assert_eq!(sandbox.status()["engine"]["rebuilding"], json!([]));
    daemon.stop();
    let after = times(&sandbox.export(&sandbox.state(), &week));
    assert!(before.len() > 20 && before.iter().all(|(row, time_ms)| after.get(row) >= Some(time_ms)));
}
