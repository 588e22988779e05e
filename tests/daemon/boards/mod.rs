//! Every query of a board, with the real program, on the state of a small scan log whose export
//! was computed by an independent implementation: once to the daemon over its socket, once with
//! the commands without a daemon.
//!
//! The queries themselves are tested in `src/board`; here the requests, names, units, cursors
//! and errors.

mod past;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use self::past::{A, B, C, Past};
use crate::sandbox::{self, Sandbox, wait_until};
use clqd::api::ErrorCode;
use clqd::api::requests::{self, BoardLine, FusedLine};
use clqd::client::{Client, ClientError};
use clqd::model::Ranking;
use clqd::view::board::{
    BoardEntryView, BoardHead, BoardQuery, BoardSelector, BoardsSelector, FusedQuery, PlayerSelector, ScoreBounds,
};
use serde_json::Value;

const WEEK: &str = "2025-W47";
const SERVERS: [&str; 2] = ["source://127.0.1.0:27960", "quake3://127.0.1.1:27960"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A sandbox whose state is the replay of the small log.
fn replayed() -> Sandbox {
    let sandbox = Sandbox::new("");
    let (log, state) = (fixture("scan-log.jsonl"), sandbox.state());
    sandbox.ok(["replay".as_ref(), log.as_os_str(), "--state".as_ref(), state.as_os_str()]);
    sandbox
}

/// Names in order of position, as the export has them.
fn exported(server: &str, ranking: Ranking) -> Vec<String> {
    let text = std::fs::read_to_string(fixture("export.jsonl")).expect("the export");
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let of_board = rows.filter(|row| row["server"] == server && row["week"] == WEEK);
    let positions: BTreeMap<u64, String> = of_board
        .filter_map(|row| Some((row["pos"][ranking.name()].as_u64()?, row["player"].as_str()?.to_owned())))
        .collect();
    positions.into_values().collect()
}

fn board(server: &str, ranking: Ranking) -> BoardSelector {
    let scope = format!("server:{server}").parse().expect("a scope");
    BoardSelector { scope, ranking, window: Some(WEEK.to_owned()), at_ms: None }
}

/// Sends a query of a board to the daemon. Returns the head and the rows.
fn query_board(client: &mut Client, board: &BoardSelector, query: BoardQuery) -> (BoardHead, Vec<BoardLine>) {
    let mut rows = client.lines(&requests::Board { board: board.clone(), query }).expect("a response");
    let BoardLine::BoardHead(head) = rows.remove(0) else { panic!("the first row is the head") };
    assert_eq!((head.window.window.as_str(), head.ranking, &head.scope), (WEEK, board.ranking, &board.scope));
    (*head, rows)
}

fn entries(rows: Vec<BoardLine>) -> Vec<BoardEntryView> {
    rows.into_iter()
        .map(|row| match row {
            BoardLine::Entry(entry) => entry,
            other => panic!("no entry: {other:?}"),
        })
        .collect()
}

#[test]
fn daemon_queries_equal_export() {
    let sandbox = replayed();
    let daemon = sandbox.start();
    let mut client = Client::connect(&sandbox.socket()).expect("connected");
    for (server, ranking) in SERVERS.into_iter().flat_map(|server| Ranking::ALL.map(|ranking| (server, ranking))) {
        let (client, board) = (&mut client, &board(server, ranking));
        let (head, rows) = query_board(client, board, BoardQuery::Top { count: 10_000 });
        let all = entries(rows);
        let names: Vec<&str> = all.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, exported(server, ranking), "{ranking:?} on {server}");
        assert!(all.len() >= 2 && head.size == all.len() as u64);
        check_positions(&all);
        check_pages(client, board, &all);
        check_ranges(client, board, &all);
        check_players(client, board, &all);
    }
    daemon.stop();
}

/// Compares ordinal, competition and dense positions with counts of better scores.
fn check_positions(all: &[BoardEntryView]) {
    for (i, entry) in all.iter().enumerate() {
        let mut better: Vec<i64> =
            all[..i].iter().map(|p| p.at.raw_score).filter(|&raw| raw != entry.at.raw_score).collect();
        let competition = better.len() as u64 + 1;
        better.dedup();
        let got = (entry.at.position, entry.at.competition, entry.at.dense);
        assert_eq!(got, (i as u64 + 1, competition, better.len() as u64 + 1));
    }
}

/// Compares pages from either end with the complete board.
fn check_pages(client: &mut Client, board: &BoardSelector, all: &[BoardEntryView]) {
    let size = all.len();
    let (head, rows) = query_board(client, board, BoardQuery::Size {});
    assert_eq!((head.size, rows.len()), (size as u64, 0));
    let (head, rows) = query_board(client, board, BoardQuery::Page { position: 1, count: 4 });
    let (mut read, mut page) = (entries(rows), head.page.expect("a page has cursors"));
    for _ in 0..size {
        let (head, rows) = query_board(client, board, BoardQuery::After { cursor: page.after, count: 4 });
        page = head.page.expect("a page has cursors");
        assert!(!page.board_changed, "no scan was applied");
        read.extend(entries(rows));
    }
    assert_eq!(read, all);
    let (_, rows) = query_board(client, board, BoardQuery::Before { cursor: page.before, count: 3 });
    let last_three = &all[size.saturating_sub(3)..];
    assert_eq!(entries(rows), last_three);
    let (_, rows) = query_board(client, board, BoardQuery::Bottom { count: 3 });
    assert!(entries(rows).iter().eq(last_three.iter().rev()));
    for position in [1, size, size + 1] {
        let (_, rows) = query_board(client, board, BoardQuery::At { position: position as u32 });
        assert_eq!(entries(rows), all[position - 1..].iter().take(1).cloned().collect::<Vec<_>>());
    }
}

/// Compares ranges and counts with the entries of the complete board.
fn check_ranges(client: &mut Client, board: &BoardSelector, all: &[BoardEntryView]) {
    for score in all.iter().map(|entry| entry.at.score) {
        let exactly = ScoreBounds { at_least: Some(score), at_most: Some(score), ..ScoreBounds::default() };
        let lower = ScoreBounds { below: Some(score), ..ScoreBounds::default() };
        let higher = ScoreBounds { above: Some(score), ..ScoreBounds::default() };
        for (scores, in_range) in [
            (exactly, &(|x| x == score) as &dyn Fn(f64) -> bool),
            (lower, &|x| x < score),
            (higher, &|x| x > score),
            (ScoreBounds { at_least: Some(score), ..ScoreBounds::default() }, &|x| x >= score),
        ] {
            let within: Vec<BoardEntryView> = all.iter().filter(|entry| in_range(entry.at.score)).cloned().collect();
            let (head, rows) = query_board(client, board, BoardQuery::Range { scores, start: 1, count: 10_000 });
            assert_eq!(head.range.expect("a range").count, within.len() as u64);
            assert_eq!(entries(rows), within, "{scores:?}");
            let (_, rows) = query_board(client, board, BoardQuery::Range { scores, start: 2, count: 1 });
            assert_eq!(entries(rows), within.iter().skip(1).take(1).cloned().collect::<Vec<_>>());
            let (head, rows) = query_board(client, board, BoardQuery::Count { scores });
            assert_eq!((head.range.expect("a count").count, rows.len()), (within.len() as u64, 0));
        }
        let (_, rows) = query_board(client, board, BoardQuery::PositionFor { score });
        let [BoardLine::PositionFor(printed)] = &rows[..] else { panic!("one position: {rows:?}") };
        let better = all.iter().filter(|entry| entry.at.score > score).count() as u64;
        let as_good = all.iter().filter(|entry| entry.at.score >= score).count() as u64;
        assert_eq!((printed.position, printed.competition), (as_good + 1, better + 1));
    }
}

/// Compares queries of players with the entries of the complete board.
fn check_players(client: &mut Client, board: &BoardSelector, all: &[BoardEntryView]) {
    let by_name = |entry: &BoardEntryView| PlayerSelector::Name(entry.name.clone());
    let (_, rows) = query_board(client, board, BoardQuery::Positions { players: all.iter().map(by_name).collect() });
    assert_eq!(entries(rows), all);
    for (i, entry) in all.iter().enumerate() {
        for player in [by_name(entry), PlayerSelector::Key(entry.player_key)] {
            let (_, rows) = query_board(client, board, BoardQuery::Around { player: player.clone(), count: 3 });
            let first = i.saturating_sub(1).min(all.len().saturating_sub(3));
            assert!(entries(rows).iter().eq(all[first..].iter().take(3)));
            let (_, rows) = query_board(client, board, BoardQuery::Standing { player });
            let [BoardLine::Standing(standing)] = &rows[..] else { panic!("one standing: {rows:?}") };
            assert_eq!((standing.entry, standing.size), (Some(entry.at), all.len() as u64));
            let worse = all.iter().filter(|other| other.at.score < entry.at.score).count() as f64;
            assert_eq!(standing.percentile, Some(worse * 100.0 / (all.len() - 1) as f64));
        }
    }
    let players = vec![PlayerSelector::Name("unknown name".to_owned()), by_name(&all[1]), PlayerSelector::Key(99_999)];
    let (_, rows) = query_board(client, board, BoardQuery::Positions { players });
    let [BoardLine::Absent(unknown), BoardLine::Entry(known), BoardLine::Absent(no_key)] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!((unknown.player_key, unknown.name.as_str(), no_key.player_key), (None, "unknown name", Some(99_999)));
    assert_eq!(known, &all[1]);
}

#[test]
fn standings_and_fused_list_equal_export() {
    let sandbox = replayed();
    let daemon = sandbox.start();
    let mut client = Client::connect(&sandbox.socket()).expect("connected");
    let server = SERVERS[0];
    let boards: BoardsSelector = board(server, Ranking::Elo).boards();
    let lists = Ranking::ALL.map(|ranking| exported(server, ranking));
    let position = |name: &str, ranking: Ranking| lists[ranking as usize].iter().position(|n| n == name);

    for name in &lists[Ranking::Time as usize] {
        let player = PlayerSelector::Name(name.clone());
        let request = requests::Standings { boards: boards.clone(), player, rankings: Vec::new() };
        let rows = client.lines(&request).expect("a response");
        let [printed] = &rows[..] else { panic!("one row: {rows:?}") };
        assert_eq!((&printed.name, printed.window.closed), (name, true));
        assert!(printed.standings.iter().map(|s| s.ranking).eq(Ranking::ALL));
        for standing in &printed.standings {
            let want = position(name, standing.ranking).map(|at| at as u64 + 1);
            assert_eq!(standing.entry.map(|entry| entry.position), want, "{name} {:?}", standing.ranking);
            assert_eq!(standing.size, lists[standing.ranking as usize].len() as u64);
        }
    }

    let mut names: Vec<&String> = lists.iter().flatten().collect();
    names.sort();
    names.dedup();
    let share = |name: &str, ranking| position(name, ranking).map_or(0.0, |at| 1.0 / (60.0 + (at + 1) as f64));
    let sum = |name: &str| Ranking::ALL.into_iter().map(|ranking| share(name, ranking)).sum::<f64>();
    let mut want: Vec<f64> = names.iter().map(|name| sum(name)).collect();
    want.sort_by(|a, b| b.total_cmp(a));
    let query = FusedQuery::Top { count: 10 };
    let request = requests::Fused { boards: boards.clone(), rankings: Vec::new(), k: None, query };
    let rows = client.lines(&request).expect("a response");
    let (FusedLine::FusedHead(head), list) = rows.split_first().expect("a head") else { panic!("{rows:?}") };
    assert_eq!((head.k, head.rankings.len(), list.len()), (60.0, 5, 10));
    for (n, (row, score)) in (1..).zip(list.iter().zip(want)) {
        let FusedLine::Fused(fused) = row else { panic!("{row:?}") };
        assert_eq!((fused.position, fused.score, sum(&fused.name)), (Some(n), score, score));
        for ranking in Ranking::ALL {
            let at = position(&fused.name, ranking).map(|at| at as u32 + 1);
            assert_eq!(fused.positions.get(&ranking).copied(), at);
        }
    }
    daemon.stop();
}

#[test]
fn invalid_board_request_gets_error_with_reason() {
    let sandbox = replayed();
    let daemon = sandbox.start();
    let mut client = Client::connect(&sandbox.socket()).expect("connected");
    let elo = board(SERVERS[0], Ranking::Elo);
    let mut refused = |board: &BoardSelector, query: BoardQuery| match client
        .lines(&requests::Board { board: board.clone(), query })
    {
        Err(ClientError::Failure(failure)) => (failure.code, failure.message),
        other => panic!("not refused: {other:?}"),
    };
    let top = || BoardQuery::Top { count: 3 };
    let (code, printed) = refused(&elo, BoardQuery::Top { count: 10_001 });
    assert_eq!((code, printed.as_str()), (ErrorCode::BadRequest, "count is 10001; expected 1 to 10000"));
    let after = |cursor: &str| BoardQuery::After { cursor: cursor.to_owned(), count: 3 };
    let (code, printed) = refused(&elo, after("nonsense"));
    assert!(code == ErrorCode::BadRequest && printed.contains("\"nonsense\" is damaged"), "{printed}");
    let window = |window: &str, at_ms| BoardSelector { window: Some(window.to_owned()), at_ms, ..elo.clone() };
    for (board, want) in [
        (window("2001-W01", None), "there is no window \"2001-W01\"; the types are week, and"),
        (window("day", None), "there are no windows of the type day: only week is configured (boards.windows)"),
        (window("2025-11-20", None), "there is no window \"2025-11-20\"; the types are week, and"),
        (BoardSelector { scope: "server:quake3://127.9.9.9:1".parse().unwrap(), ..elo.clone() }, "is not known"),
    ] {
        let (code, printed) = refused(&board, top());
        assert!(code == ErrorCode::NotFound && printed.contains(want), "{printed}");
    }
    let none = refused(&window("2025-02-30", None), top());
    assert!(none.0 == ErrorCode::NotFound && none.1.contains("there is no window \"2025-02-30\""), "{none:?}");
    let damaged = refused(&elo, after(&"A".repeat(30)));
    assert!(damaged.0 == ErrorCode::Refused && damaged.1.contains("is damaged"), "{damaged:?}");
    for (text, want) in
        [("weke", "did you mean \"week\"?"), ("2025-47", "did you mean 2025-W47?"), ("2025.47", "such as the hour")]
    {
        let (code, printed) = refused(&window(text, None), top());
        assert!(code == ErrorCode::BadRequest && printed.contains(want), "{printed}");
    }
    let (code, printed) = refused(&window(WEEK, Some(5)), top());
    let want = "there is no window \"2025-W47\" that contains 1970-01-01T00:00:00";
    assert!(code == ErrorCode::NotFound && printed.contains(want), "{printed}");
    let around = BoardQuery::Around { player: PlayerSelector::Name("Nobody".to_owned()), count: 3 };
    assert_eq!(refused(&elo, around).0, ErrorCode::NotFound);

    // A cursor is valid only for its board.
    let (head, _) = query_board(&mut client, &elo, BoardQuery::Page { position: 1, count: 3 });
    let cursor = head.page.expect("a page has cursors").after;
    let others = [board(SERVERS[1], Ranking::Elo), board(SERVERS[0], Ranking::Time), window("week", None)];
    for other in others {
        let request = requests::Board { board: other, query: after(&cursor) };
        let Err(ClientError::Failure(failure)) = client.lines(&request) else { panic!("{request:?}") };
        assert!(failure.code == ErrorCode::Refused && failure.message.contains("first page"), "{failure}");
    }
    daemon.stop();
}

/// Arguments of `clqd board` for the first server.
fn board_args<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["board"], args, &["--server", SERVERS[0], "--window", WEEK]].concat()
}

#[test]
fn board_commands_work_without_daemon() {
    let sandbox = replayed();
    let top = sandbox.json(["top", SERVERS[0], "--window", WEEK, "-n", "5", "--ranking", "points"]);
    let head = &top[0];
    assert_eq!((head["kind"].as_str(), head["closed"].as_bool()), (Some("board_head"), Some(true)));
    let names: Vec<&str> = top[1..].iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, exported(SERVERS[0], Ranking::Points)[..5]);
    let second = names[1];
    let key = top[2]["player_key"].to_string();
    for (args, lines, printed) in [
        (vec!["bottom", "-n", "3"], 5, "clq1 on source://127.0.1.0:27960 in 2025-W47 (final), 19 players\n"),
        (vec!["bottom", "-n", "3", "--ranking", "time"], 5, "time on "),
        (vec!["page", "--position", "4", "-n", "3"], 7, "previous page: --before A"),
        (vec!["at", "2", "--ranking", "points"], 3, second),
        (vec!["around", second, "-n", "3", "--ranking", "points"], 5, second),
        (vec!["around", "--key", &key, "-n", "3", "--ranking", "points"], 5, second),
        (
            vec!["range", "--above", "0", "--start", "2", "-n", "2"],
            5,
            "19 players with more than 0.00 points/min, from position 1",
        ),
        (vec!["count", "--at-least", "0.003"], 2, "3 players with at least 0.18 points/min"),
        (vec!["position-for", "-1", "--ranking", "points"], 2, "-1 reached now: position 29, shared 29, dense 22"),
        (vec!["standing", second], 7, "ranking"),
        (vec!["standing", second, "--ranking", "points"], 3, "ahead of"),
        (vec!["positions", second, "Nobody", "--key", &key], 5, "unknown player"),
        (vec!["fused", "-n", "3"], 5, "together, k 60"),
        (vec!["fused", "--ranking", "elo=2", "--ranking", "time", "-k", "1", "--player", second], 3, "elo x 2"),
    ] {
        let out = sandbox.ok(board_args(&args));
        assert!(out.lines().count() == lines && out.contains(printed), "{args:?}:\n{out}");
        assert!(sandbox.json(board_args(&args))[0]["kind"].is_string(), "{args:?}");
    }
    let page = sandbox.json(board_args(&["page", "-n", "4"]));
    let after = page[0]["page"]["after"].as_str().unwrap();
    let next = sandbox.json(board_args(&["page", "--after", after, "-n", "4"]));
    assert_eq!(next[1]["position"], 5);
    let before = next[0]["page"]["before"].as_str().unwrap();
    assert_eq!(sandbox.json(board_args(&["page", "--before", before, "-n", "4"]))[1..], page[1..]);

    let board_top = ["top", SERVERS[0]];
    let at_time =
        |time: &str| sandbox.json([&board_top[..], &["--window", "week", "--time", time]].concat())[0].clone();
    assert_eq!(
        (&at_time("2025-11-20T12:00:00Z")["window"], &at_time("1763640000000")["window"]),
        (&Value::from(WEEK), &Value::from(WEEK))
    );
    for (args, code, printed) in [
        (vec!["top", "--game", "baseq4"], 1, "did you mean \"baseq3\"?"),
        (vec!["top", "--tag", "a b"], 2, "tag \"a b\" is not"),
        (board_args(&["page", "--after", after, "--ranking", "elo"]), 1, "first page"),
        (board_args(&["page", "--after", "A"]), 2, "is damaged"),
        (board_args(&["around", "Nobody"]), 1, "no player is named \"Nobody\""),
        (board_args(&["standing", "--key", "99999"]), 1, "no player has key 99999"),
        (board_args(&["count", "--above", "1", "--at-least", "1"]), 2, "cannot be used with"),
        (board_args(&["fused", "--ranking", "elo", "--ranking", "elo"]), 2, "elo is named twice"),
    ] {
        let done = sandbox.run(&args);
        assert_eq!((done.status.code(), done.out.as_str()), (Some(code), ""), "{args:?}: {}", done.err);
        assert!(done.err.contains(printed), "{args:?}: {}", done.err);
    }
}

/// Replays lines into the state; lines that it already contains are skipped.
fn replay(sandbox: &Sandbox, lines: &str) {
    let (log, state) = (sandbox.path("part.jsonl"), sandbox.state());
    std::fs::write(&log, lines).expect("the log");
    sandbox.ok(["replay".as_ref(), log.as_os_str(), "--state".as_ref(), state.as_os_str()]);
}

#[test]
fn cursor_survives_restart_and_reports_changed_board() {
    let sandbox = Sandbox::new("");
    let log = std::fs::read_to_string(fixture("scan-log.jsonl")).expect("the log");
    let lines: Vec<&str> = log.lines().collect();
    replay(&sandbox, &lines[..60].join("\n"));
    let page = |args: &[&str]| {
        let page = sandbox.json(board_args(&[&["page", "-n", "3", "--ranking", "time"], args].concat()));
        let names: Vec<Value> = page[1..].iter().map(|row| row["name"].clone()).collect();
        (page[0]["page"].clone(), names)
    };
    let (first, _) = page(&[]);
    let after = first["after"].as_str().expect("a cursor");
    let (same, _) = page(&["--after", after]);
    assert_eq!((&first["board_changed"], &same["board_changed"]), (&false.into(), &false.into()));
    replay(&sandbox, &lines[..120].join("\n"));
    let (moved, _) = page(&["--after", after]);
    assert_eq!(moved["board_changed"], true);
    let human = sandbox.ok(board_args(&["page", "--ranking", "time", "--after", after]));
    assert!(human.contains("the board has changed since the cursor was created"), "{human}");
}

#[test]
fn name_in_several_games_requires_key_or_current_game() {
    let sandbox = Sandbox::new("");
    let scan = |minute: i64, server: &str, game: &str, player: &str| {
        let t = 1_763_683_200_000 + minute * 60_000;
        format!(
            r#"{{"t":{t},"server":"{server}","game":"{game}","map":"m","hostname":"h","slots":8,"players":[{{"name":"{player}","points":{minute},"ping":20,"bot":false}}]}}"#
        )
    };
    let (a, b) = ("quake3://127.0.0.1:1", "quake3://127.0.0.1:2");
    let lines = [
        scan(0, a, "baseq3", "Visor"),
        scan(2, a, "baseq3", "^1Visor"),
        scan(4, a, "baseoa", "Visor"),
        scan(5, b, "baseoa", "Visor"),
        scan(6, a, "baseoa", "Visor"),
    ];
    replay(&sandbox, &lines.join("\n"));
    let standing = |server: &str, player: &[&str]| {
        sandbox.run([&["--json", "board", "standing", "--server", server, "--time", "1763683200000"], player].concat())
    };
    let key = |done: sandbox::CommandOutput| {
        assert!(done.status.success(), "{}", done.err);
        serde_json::from_str::<Value>(&done.out).expect("a row")["player_key"].clone()
    };
    assert_eq!(key(standing(a, &["Visor"])), 2, "the player of the server's current game");
    assert_eq!(key(standing(b, &["^4Visor"])), 2, "colour codes are ignored");
    assert_eq!(key(standing(a, &["--key", "1"])), 1);
    replay(&sandbox, &scan(8, a, "q3ut4", "Anarki"));
    let refused = standing(a, &["Visor"]);
    assert_eq!(refused.status.code(), Some(2));
    let printed = "\"Visor\" is a name in several games: baseq3 (player 1), baseoa (player 2); select one by";
    let refused: Value = serde_json::from_str(&refused.out).expect("a row");
    assert_eq!((&refused["kind"], &refused["code"]), (&"error".into(), &"bad_request".into()));
    assert!(refused["message"].as_str().is_some_and(|message| message.contains(printed)), "{refused}");
    assert_eq!(key(standing(a, &["--key", "2"])), 2);
}

/// Queries boards of every scope in windows of every type and compares them with the history.
/// Returns the responses.
fn query_top_boards(sandbox: &Sandbox, past: &Past) -> Vec<Vec<Value>> {
    let mut responses = Vec::new();
    type InScope = fn(&past::Play) -> bool;
    let scopes: [(&str, &str, InScope); 4] = [
        ("--game", "baseq3", |play| past::game(play.server) == "baseq3"),
        ("--game", "cstrike", |play| past::game(play.server) == "cstrike"),
        ("--tag", "pro", |play| play.server == B || play.server == C),
        ("--server", A, |play| play.server == A),
    ];
    for window in past.windows() {
        let label = Past::label(window);
        for (option, scope, in_scope) in scopes {
            let scope_args = if option == "--server" { vec![scope] } else { vec![option, scope] };
            let top = sandbox.json([&["top"], &scope_args[..], &["--window", &label, "--ranking", "points"]].concat());
            let printed: Vec<(String, i64)> = top[1..]
                .iter()
                .map(|row| (row["name"].as_str().unwrap().to_owned(), row["score"].as_f64().unwrap() as i64))
                .collect();
            assert_eq!(printed, past.points(in_scope, window), "{option} {scope} in {label}");
            assert_eq!(top[0]["window"], label.as_str());
            responses.push(top);
        }
    }
    responses
}

/// Other queries, with a daemon or without. Returns the responses.
fn query_other_boards(sandbox: &Sandbox, past: &Past) -> Vec<Vec<Value>> {
    let late = past.plays.iter().find(|play| play.server == B).expect("a play");
    let time = late.t_ms.to_string();
    let query = |args: &[&str]| sandbox.json([&["board"], args].concat());
    let in_hour = ["--game", "baseq3", "--window", "hour", "--time", &time];
    let standing = query(&[&["standing", "Anarki"], &in_hour[..]].concat());
    let positions: Vec<(&str, &Value)> = standing[0]["standings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|standing| (standing["ranking"].as_str().unwrap(), &standing["entry"]["position"]))
        .collect();
    assert_eq!(positions[3..], [("points", &Value::from(1)), ("time", &Value::from(2))]);
    let fused = query(&[&["fused", "--ranking", "points", "-n", "2"], &in_hour[..]].concat());
    assert_eq!((&fused[1]["name"], &fused[2]["name"]), (&"Anarki".into(), &"Visor".into()));
    // The oldest of three overlapping windows.
    let oldest = sandbox.json(["top", "--tag", "pro", "--window", "12", "--time", &time]);
    assert_eq!(oldest[0]["start_ms"], late.t_ms - late.t_ms.rem_euclid(past::HOUR_MS) - 2 * past::HOUR_MS);
    vec![standing, fused, oldest]
}

#[test]
fn boards_of_every_scope_and_window_type_equal_history() {
    let sandbox = Sandbox::new(&Past::config());
    let past = Past::new(clqd::clock::system_ms());
    replay(&sandbox, &past.log());
    let daemon = sandbox.start();
    sandbox.ok(["servers", "add", B, C, "--tag", "pro"]);
    // Cached boards are used until they are rebuilt.
    let tagged = || sandbox.json(["top", "--tag", "pro", "--window", "all-time", "--ranking", "points"]);
    wait_until("the tag has boards", || tagged().len() > 1);
    let of_daemon = (query_top_boards(&sandbox, &past), query_other_boards(&sandbox, &past));
    for (args, printed) in [
        (["--game", "basq3", "--window", "day"], "did you mean \"baseq3\"?"),
        (["--tag", "prp", "--window", "day"], "did you mean \"pro\"?"),
        (["--game", "baseq3", "--window", "2001-11-21"], "there is no window \"2001-11-21\""),
        (["--game", "baseq3", "--window", "13"], "only all-time, hour, day, week, month, 12 are configured"),
    ] {
        let done = sandbox.run([&["top"], &args[..]].concat());
        assert!(done.status.code() == Some(1) && done.err.contains(printed), "{args:?}: {}", done.err);
    }
    check_windows(&sandbox, &past);
    daemon.stop();

    let without = (query_top_boards(&sandbox, &past), query_other_boards(&sandbox, &past));
    assert_eq!(of_daemon, without, "from the state directory");
    check_windows(&sandbox, &past);
    let daemon = sandbox.start();
    let restarted = (query_top_boards(&sandbox, &past), query_other_boards(&sandbox, &past));
    assert_eq!(of_daemon, restarted, "after a restart");
    // Boards may change between the two commands.
    wait_until("the status has the memory of all windows", || {
        let windows = sandbox.json(["board", "windows"]);
        let bytes: u64 = windows.iter().filter_map(|row| row["memory_bytes"].as_u64()).sum();
        bytes > 0 && sandbox.status()["engine"]["boards_memory_bytes"] == bytes
    });
    daemon.stop();
}

fn check_windows(sandbox: &Sandbox, past: &Past) {
    let listed = sandbox.json(["board", "windows", "--bytes"]);
    for window in past.windows() {
        let label = Past::label(window);
        let row = listed.iter().find(|row| row["window"] == label.as_str()).unwrap_or_else(|| panic!("{label}"));
        // Rows of players that are still present are stored with the server.
        assert!(row["stored"]["records"].as_u64() >= Some(2) && row["stored"]["bytes"].as_u64() > Some(30), "{row}");
        let running = row["end_ms"].as_i64().is_none_or(|end_ms| end_ms > clqd::clock::system_ms());
        // One that has just ended may have been listed before.
        let has_just_ended = row["end_ms"].as_i64().is_some_and(|end_ms| clqd::clock::system_ms() - end_ms < 60_000);
        // A week that has ended waits for a trusted clock, which this daemon does not have yet.
        let waits = row["type"] == "week" && row["phase"] == "running";
        assert!(
            row["phase"] == if running { "running" } else { "closed" } || waits || !running && has_just_ended,
            "{row}"
        );
    }
    for kind in ["hour", "day", "month", "12"] {
        assert!(listed.iter().any(|row| row["type"] == kind && row["phase"] == "upcoming"), "the upcoming {kind}");
    }
    assert!(sandbox.json(["board", "windows"]).iter().all(|row| row["stored"].is_null()));
    assert!(sandbox.ok(["board", "windows"]).starts_with("type "));
}

/// Boards of closed windows are built when they are requested; other requests for them wait.
#[test]
fn queries_during_board_build_succeed() {
    let sandbox = Sandbox::new(&Past::config());
    let past = Past::new(clqd::clock::system_ms());
    replay(&sandbox, &past.log());
    let daemon = sandbox.start();
    let windows = past.windows();
    // The number of windows depends on the date; the daemon accepts 64 connections.
    let clients_per_window = (60 / windows.len()).max(1);
    std::thread::scope(|scope| {
        for _ in 0..clients_per_window {
            for &window in &windows {
                let (sandbox, past) = (&sandbox, &past);
                scope.spawn(move || {
                    let mut client = Client::connect(&sandbox.socket()).expect("connected");
                    let board = BoardSelector {
                        scope: "game:baseq3".parse().expect("a scope"),
                        ranking: Ranking::Points,
                        window: Some(Past::label(window)),
                        at_ms: None,
                    };
                    let top = requests::Board { board, query: BoardQuery::Top { count: 10 } };
                    let rows = client.lines(&top).expect("a response");
                    let printed: Vec<(String, i64)> = entries(rows.into_iter().skip(1).collect())
                        .into_iter()
                        .map(|entry| (entry.name, entry.at.raw_score))
                        .collect();
                    assert_eq!(printed, past.points(|play| play.server != C, window));
                });
            }
        }
    });
    daemon.stop();
}

#[test]
fn ended_windows_can_be_deleted() {
    let sandbox = Sandbox::new(&Past::config());
    let past = Past::new(clqd::clock::system_ms());
    replay(&sandbox, &past.log());
    let daemon = sandbox.start();
    let last_ms = past.plays.iter().map(|play| play.t_ms).max().expect("plays");
    let before_ms = last_ms - last_ms.rem_euclid(past::HOUR_MS);
    let before = before_ms.to_string();
    let refused = sandbox.run(["board", "delete-before", &before]);
    assert!(refused.status.code() == Some(2) && refused.err.contains("--yes"), "{}", refused.err);

    // Weeks are deleted only after they are closed, which takes a tick.
    let listed = || sandbox.json(["board", "windows", "--bytes"]);
    let has_ended = |row: &Value| row["end_ms"].as_i64().is_some_and(|end_ms| end_ms <= before_ms);
    wait_until("ended windows are closed", || {
        listed().iter().filter(|row| has_ended(row)).all(|row| row["phase"] == "closed")
    });
    let before_delete = listed();
    let labels = |rows: &[Value]| -> Vec<String> {
        let mut labels: Vec<_> = rows.iter().map(|row| row["window"].as_str().unwrap().to_owned()).collect();
        labels.sort();
        labels
    };
    let ended: Vec<Value> = before_delete.iter().filter(|row| has_ended(row)).cloned().collect();
    assert!(ended.len() >= 4, "two hours, and windows of type 12: {ended:?}");
    let deleted = sandbox.json(["board", "delete-before", &before, "--yes"]);
    assert_eq!(labels(&deleted), labels(&ended));
    crate::web::openapi::assert_described("windows.delete", &deleted);
    let remaining = listed();
    assert!(remaining.iter().all(|row| !has_ended(row)));
    assert_eq!(
        labels(&remaining).len() + labels(&deleted).len(),
        labels(&before_delete).len(),
        "no other window is deleted"
    );
    let find = |rows: &[Value], label: &str| rows.iter().find(|row| row["window"] == label).expect(label).clone();
    assert_eq!(find(&remaining, "all-time")["stored"], find(&before_delete, "all-time")["stored"]);
    let done = sandbox.run(["top", "--game", "baseq3", "--window", &labels(&deleted)[0]]);
    assert!(done.status.code() == Some(1) && done.err.contains("there is no window"), "{}", done.err);
    assert_eq!(sandbox.json(["board", "delete-before", &before, "--yes"]), Vec::<Value>::new());
    daemon.stop();

    // The daemon sweeps once a second; sweep the rest here, after a checkpoint.
    let state = clqd::store::StoreSettings { cache_bytes: 16 << 20, create: false };
    let config = clqd::config::Config::load(&sandbox.config()).expect("the config");
    let mut opened =
        clqd::state::State::open(&sandbox.state(), state, config.engine_settings().unwrap()).expect("the state");
    let position = opened.store.log_position().expect("a store").expect("a log");
    opened.write_checkpoint(position).expect("a store");
    while opened.sweep().expect("a store") {}
    for row in &ended {
        let label = row["window"].as_str().unwrap();
        let window = clqd::board::window::parse_label(label).expect("a label");
        let stored = opened.store.reader().stored_size(window).expect("a store");
        assert_eq!((stored.records, stored.bytes), (0, 0), "{label}");
        assert!(row["stored"]["records"].as_u64() >= Some(2), "{label} had records before");
    }
}

/// Bytes of all files of a state directory. Sled deletes blob files from its own threads, so
/// a file may disappear while the directory is read.
fn size_on_disk(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| match entry.file_type().expect("a type").is_dir() {
            true => size_on_disk(&entry.path()),
            false => match entry.metadata() {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
                metadata => metadata.expect("metadata").len(),
            },
        })
        .sum()
}

/// Windows are created and deleted; new ones reuse the disk space of deleted ones.
#[test]
fn space_of_deleted_windows_is_reused() {
    let dir = tempfile::tempdir().expect("a directory");
    let windows = ["hour keep=1", "all-time"].map(|text| text.parse().expect("a type"));
    let engine = clqd::engine::EngineSettings {
        windows: clqd::board::window::WindowTypes::new(Default::default(), windows).expect("types"),
        ..Default::default()
    };
    let store = clqd::store::StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut opened = clqd::state::State::open(dir.path(), store, engine).expect("a state");
    let first_ms = 1_763_683_200_000 + 5 * past::MINUTE_MS;
    let mut sizes = Vec::new();
    for hour in 0..24 {
        for scan in 0..3 {
            let t_ms = first_ms + hour * past::HOUR_MS + scan * past::MINUTE_MS;
            for server in 0..60 {
                let player = |n: i64| format!(r#"{{"name":"p{n} of {server}","points":{},"ping":9}}"#, scan * n);
                let players: Vec<String> = (1..=50).map(player).collect();
                let line = format!(
                    r#"{{"t":{t_ms},"server":"quake3://127.0.0.1:{}","game":"g","map":"m{scan}","slots":64,"players":[{}]}}"#,
                    1_000 + server,
                    players.join(",")
                );
                let (url, outcome) = clqd::scan_log::parse_scan(&line).expect("a line");
                opened.handle(clqd::engine::Event::Replayed { url, outcome }).expect("a store");
            }
            opened.commit().expect("a store");
        }
        opened.close_due_weeks(first_ms + hour * past::HOUR_MS + 10 * past::MINUTE_MS).expect("a store");
        sizes.push(size_on_disk(dir.path()));
    }
    println!("bytes on disk by hour: {sizes:?}");
    // A rotation writes 3 MB at first. Eight without reuse of space would add 24 MB; the number
    // of sled's segments varies.
    let largest = |hours: std::ops::Range<usize>| *sizes[hours].iter().max().expect("a size");
    assert!(largest(16..24) < largest(8..16) * 3 / 2, "the size grew over eight more rotations: {sizes:?}");
    let all_time = opened.store.reader().stored_size(clqd::model::WindowKey::ALL_TIME).expect("a store");
    assert_eq!(all_time.records, 2 * 60 * 50, "a row and a standing of each player");
}
