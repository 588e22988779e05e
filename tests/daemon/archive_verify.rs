//! `clqd archive verify` and `resend`: rows that are changed by hand in MySQL are listed exactly
//! while the daemon runs, and written again.

use std::collections::BTreeSet;

use crate::database::Database;
use crate::sandbox::{Sandbox, fleet, rows, wait_for, wait_until};
use crate::web::openapi::assert_described;
use clqd::config::Config;
use clqd::engine::{Event, Outcome};
use clqd::fleet::{FaultShares, SimulatedHistory, World, WorldSettings, address};
use clqd::model::calendar::{Calendar, HOUR_MS, MINUTE_MS, WEEK_MS};
use clqd::model::{Completeness, Player, ServerUrl, Snapshot};
use clqd::state::State;
use serde_json::Value;

const SUNDAY_MS: i64 = 1_764_460_800_000; // 2025-11-30 00:00 UTC, in 2025-W48
const SERVERS: u32 = 12;
/// More than the archive takes in one job.
const LARGE_WEEK_PLAYERS: i64 = 6_000;

/// A state with a closed week, 2025-W48, and an open one, 2025-W49, in which one server has many
/// players.
fn play(sandbox: &Sandbox) {
    let config = Config::load(&sandbox.config()).unwrap();
    let mut state = State::open_configured(&config, &sandbox.state(), true).unwrap();
    let world = WorldSettings { servers: SERVERS, start_ms: SUNDAY_MS, truth: false, ..WorldSettings::default() };
    let mut world = World::new(world);
    let url = |world: &World, server| {
        ServerUrl::parse(&format!("{}://{}:27960", world.protocol(server).scheme(), address::address_of(server)))
            .unwrap()
    };
    let urls: Vec<ServerUrl> = (0..SERVERS).map(|server| url(&world, server)).collect();
    for hours in [12..27, 27..30] {
        let (from, to) = (SUNDAY_MS + hours.start * HOUR_MS, SUNDAY_MS + hours.end * HOUR_MS);
        for (t_ms, server, snapshot) in SimulatedHistory::new(&mut world, from, to) {
            let url = urls[server as usize].clone();
            state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) }).unwrap();
            state.handle(Event::Tick { now_ms: t_ms }).unwrap();
        }
        state.close_due_weeks(to).unwrap();
    }
    let from = SUNDAY_MS + 31 * HOUR_MS;
    for scan in 0..12 {
        let players = (0..1_000).map(|n| Player {
            name: format!("guest {}", scan / 2 * 1_000 + n).as_str().into(),
            points: Some(scan % 2 * n),
            ping: Some(50),
            ..Player::default()
        });
        let snapshot = Snapshot {
            t_ms: from + scan * 2 * MINUTE_MS,
            game: "baseq3".into(),
            map: "q3dm17".into(),
            hostname: "Many".into(),
            slots: 1_000,
            players: players.collect(),
            completeness: Completeness::Full,
            count: None,
            bots: None,
        };
        let url = ServerUrl::parse("quake3://127.9.9.9:27960").unwrap();
        state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) }).unwrap();
    }
    state.commit().unwrap();
    state.close_due_weeks(from + HOUR_MS).unwrap();
}

/// A state of now with everything that is archived: a closed and an open week, players online, complete sessions, tags, a
/// server that was screened.
fn play_until(now_ms: i64, sandbox: &Sandbox) {
    let config = Config::load(&sandbox.config()).unwrap();
    let mut state = State::open_configured(&config, &sandbox.state(), true).unwrap();
    let calendar = Calendar::default();
    // The end of the last week but one, so that a Monday morning changes nothing.
    let monday_ms = calendar.week_start_ms(calendar.week(now_ms)) - WEEK_MS;
    let url = |server: i64| format!("quake3://127.9.8.{server}:27960");
    for server in 1..4 {
        let tags = vec![format!("tag {server}"), "all".to_owned()];
        state.engine.add_server(ServerUrl::parse(&url(server)).unwrap(), tags, monday_ms - 6 * HOUR_MS).unwrap();
    }
    // The last scan is 15 minutes old, so that the first tick ends all presences, and nothing changes later.
    for from_ms in [monday_ms - 3 * HOUR_MS, now_ms - 73 * MINUTE_MS] {
        for scan in 0..30 {
            for server in 1..4 {
                let t_ms = from_ms + scan * 2 * MINUTE_MS + server;
                // Players come and go.
                let players = (0..12).filter(|n| (scan + n * 5) % 19 > 6 || (server, scan) == (2, 20)).map(|n| {
                    let points = (1 + (n * 7 + server) % 5) * (scan % 10) * 3;
                    (format!("|é| player {server} {n}"), points)
                });
                let mut snapshot = crate::scans::snapshot(t_ms, players);
                snapshot.game = if server == 3 { "cstrike" } else { "baseq3" }.to_owned();
                snapshot.map = format!("map{}", scan / 10);
                snapshot.hostname = format!("House of {server}");
                snapshot.slots = if server == 2 && scan == 20 { 1 } else { 32 };
                let url = ServerUrl::parse(&url(server)).unwrap();
                state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) }).unwrap();
            }
        }
        state.close_due_weeks(from_ms + 61 * MINUTE_MS).unwrap();
    }
    state.commit().unwrap();
}

/// A difference: its kind, table, week, key and column.
type Found = (String, String, String, String, String);

/// Runs `clqd archive verify`. Returns the differences and the summary.
#[track_caller]
fn verify(sandbox: &Sandbox, args: &[&str]) -> (BTreeSet<Found>, Value) {
    // The status may show that nothing is resent some time after a request to resend.
    let done = wait_for("no resync is in progress", || {
        let done = sandbox.run([&["--json", "archive", "verify"], args].concat());
        (!done.out.contains("a resync is in progress")).then_some(done)
    });
    let mut all = rows(&done.out);
    assert_described("archive.verify", &all);
    let summary = all.pop().expect("a summary");
    assert_eq!(summary["kind"], "archive_verified", "{}", done.out);
    let differences = summary["differences"].as_u64().unwrap();
    assert_eq!(done.status.code(), Some(i32::from(differences > 0)), "{}", done.out);
    assert_eq!((differences, &summary["listed"]), (all.len() as u64, &differences.into()), "{summary}");
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let found = all.iter().map(|row| {
        assert_eq!(row["kind"], "archive_difference", "{row}");
        assert_eq!(row["difference"] == "value", row["expected"] != row["found"], "{row}");
        let is_of_server_week =
            matches!(row["table"].as_str(), Some("player_week" | "map_week" | "server_week" | "board_step"));
        assert!(!row["server"].is_string() || is_of_server_week, "{row}");
        let of = |field| text(row, field);
        (of("difference"), of("table"), of("week"), of("key"), of("column"))
    });
    (found.collect(), summary)
}

#[track_caller]
fn wait_until_archived(sandbox: &Sandbox) {
    wait_until("everything is in MySQL", || {
        let status = sandbox.status();
        let archive = &status["archive"];
        // A row of a later week is a fault until it is deleted, and so is a statement that takes long on a busy machine.
        let fault = &archive["fault"];
        assert!(fault.is_null() || fault["kind"] == "later_week" || fault["kind"] == "blocked", "{archive}");
        fault.is_null()
            && !archive["last_complete_ms"].is_null()
            && archive["resync"].is_null()
            && status["outbox_entries"] == 0
    });
}

#[test]
fn rows_changed_by_hand_are_listed_and_repaired() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::new());
    let run = |sql: &str| runtime.block_on(database.run(sql));
    let one = |sql: &str| runtime.block_on(database.rows(&format!("{sql} LIMIT 1"))).remove(0);
    // Untrusted, so the open week stays open. Screening would refuse so many names.
    let sandbox = Sandbox::new(&format!(
        "[clock]\nsynchronised = \"never\"\n[screen]\nenabled = false\n\
         [archive]\nurl = {:?}\ninterval_s = 2\ndrain_timeout_s = 60",
        database.url()
    ));
    sandbox.ok(["migrate"]);
    play(&sandbox);
    let daemon = sandbox.start();
    wait_until_archived(&sandbox);
    let (none, summary) = wait_for("no server changes", || {
        let verified = verify(&sandbox, &[]);
        (verified.1["server_weeks_skipped"] == 0).then_some(verified)
    });
    assert_eq!(none, BTreeSet::new());
    let servers = u64::from(SERVERS) + 1;
    assert_eq!(summary["server_weeks"], 2 * servers, "{summary}");
    let count = |table: &str| one(&format!("SELECT COUNT(*) FROM {table}"))[0].parse::<u64>().unwrap();
    let tables = ["player_week", "map_week", "server_week", "board_step", "best_position", "player"];
    let in_tables: u64 = tables.iter().map(|table| count(table)).sum();
    let compared = summary["rows"].as_u64().unwrap();
    assert!(
        count("player_week") > LARGE_WEEK_PLAYERS as u64 && count("board_step") > 100 && count("best_position") > 100
    );
    assert!(compared >= in_tables, "{compared} of {in_tables}");

    let closed = one("SELECT week FROM week WHERE label = '2025-W48'")[0].clone();
    let open = one("SELECT week FROM week WHERE label = '2025-W49'")[0].clone();
    let mut expected = BTreeSet::new();
    let mut expect = |difference: &str, table: &str, week: &str, key: String, column: &str| {
        let week = week.replace(&closed, "2025-W48").replace(&open, "2025-W49");
        assert!(expected.insert((difference.to_owned(), table.to_owned(), week, key, column.to_owned())));
    };

    let [server, player] = &one(&format!("SELECT server, player FROM player_week WHERE week = {closed}"))[..] else {
        panic!("a row");
    };
    run(&format!(
        "UPDATE player_week SET points = points + 1 WHERE (week, server, player) = ({closed}, {server}, {player})"
    ));
    expect("value", "player_week", &closed, format!("player={player}"), "points");

    let large =
        &one(&format!("SELECT server FROM player_week WHERE week = {open} GROUP BY server ORDER BY COUNT(*) DESC"))[0];
    let in_large = format!("FROM player_week WHERE week = {open} AND server = {large} AND time_order IS NOT NULL");
    let player = &one(&format!("SELECT player {in_large} ORDER BY player DESC"))[0];
    let row = format!("(week, server, player) = ({open}, {large}, {player})");
    run(&format!("UPDATE player_week SET time_order = X'00AB', elo = elo + 1e-9 WHERE {row}"));
    expect("value", "player_week", &open, format!("player={player}"), "time_order");
    expect("value", "player_week", &open, format!("player={player}"), "elo");
    let player = &one(&format!("SELECT player {in_large} ORDER BY player"))[0];
    run(&format!("DELETE FROM player_week WHERE (week, server, player) = ({open}, {large}, {player})"));
    expect("missing", "player_week", &open, format!("player={player}"), "");
    for week in [&closed, &open] {
        let columns = "measured_ms, starts, time_ms, time_est_ms, points, points_est, elo, elo_rounds, elo_rounds_sure, \
                       time_est_variance, time_connected_ms, time_connected_variance, points_est_variance, clq1, clq2";
        run(&format!(
            "INSERT INTO player_week (week, server, player, {columns}) SELECT week, server, 4000000, {columns} \
             FROM player_week WHERE week = {week} ORDER BY server DESC LIMIT 1"
        ));
        expect("surplus", "player_week", week, "player=4000000".to_owned(), "");
    }

    let maps = runtime.block_on(database.rows(&format!(
        "SELECT MIN(server), map FROM map_week WHERE week = {closed} AND game IS NOT NULL GROUP BY map ORDER BY map LIMIT 3"
    )));
    let (changed, deleted, total) = (&maps[0], &maps[1], &maps[2][1]);
    let key = |map: &[String]| format!("(week, server, map) = ({closed}, {}, {})", map[0], map[1]);
    run(&format!("UPDATE map_week SET player_ms = player_ms + 60000 WHERE {}", key(changed)));
    expect("value", "map_week", &closed, format!("map={}", changed[1]), "player_ms");
    run(&format!("DELETE FROM map_week WHERE {}", key(deleted)));
    expect("missing", "map_week", &closed, format!("map={}", deleted[1]), "");
    run(&format!("UPDATE map_total SET servers = servers + 1 WHERE week = {closed} AND map = {total} AND game = 0"));
    expect("value", "map_total", &closed, format!("game=0 map={total}"), "servers");

    run(&format!("DELETE FROM server_week WHERE week = {open} AND server = {large}"));
    expect("missing", "server_week", &open, String::new(), "");
    run(&format!("DELETE FROM board_step WHERE (week, server, ranking, position) = ({open}, {large}, 'time', 33)"));
    expect("missing", "board_step", &open, "ranking='time' position=33".to_owned(), "");
    let board =
        &one("SELECT board FROM top_board WHERE window_label = '2025-W48' AND ranking = 'elo' AND scope = ''")[0];
    run(&format!("UPDATE top_board SET closed = 0, players = players + 1 WHERE board = {board}"));
    for column in ["closed", "players"] {
        expect("value", "top_board", &closed, format!("board={board}"), column);
    }
    run(&format!("UPDATE top_board_row SET score = score + 1 WHERE (board, position) = ({board}, 1)"));
    expect("value", "top_board_row", &closed, format!("board={board} position=1"), "score");
    run(&format!("DELETE FROM top_board_row WHERE (board, position) = ({board}, 2)"));
    expect("missing", "top_board_row", &closed, format!("board={board} position=2"), "");
    run(&format!(
        "INSERT INTO top_board_row (board, position, player, score, reached_ms) VALUES ({board}, 999999, 1, 1, 1)"
    ));
    expect("surplus", "top_board_row", &closed, format!("board={board} position=999999"), "");
    run(
        "INSERT INTO top_board SELECT 7, scope_type, 'gone', window_type, window_label, start_ms, end_ms, ranking, players, \
         closed, published_ms FROM top_board WHERE window_label = '2025-W48' AND scope <> '' LIMIT 1",
    );
    expect("surplus", "top_board", &closed, "board=7".to_owned(), "");
    let last = &one(&format!("SELECT MAX(player) FROM player_week WHERE week = {closed} AND player < 4000000"))[0];
    run(&format!("UPDATE player_total SET time_ms = time_ms + 1 WHERE (player, week) = ({last}, {closed})"));
    expect("value", "player_total", &closed, format!("player={last}"), "time_ms");
    run(&format!("UPDATE week SET end_ms = end_ms + 1 WHERE week = {closed}"));
    expect("value", "week", &closed, String::new(), "end_ms");
    let (found, summary) = verify(&sandbox, &[]);
    assert_eq!(found, expected, "{summary}");
    assert_eq!((&summary["resend_everything"], &summary["server_weeks_skipped"]), (&false.into(), &0.into()));
    let of_week = |week: &str| expected.iter().filter(|found| found.2 == week).cloned().collect();
    let (found, summary) = verify(&sandbox, &["--weeks", "2025-W48"]);
    assert_eq!(found, of_week("2025-W48"), "{summary}");
    let printed = sandbox.run(["archive", "verify", "--weeks", "2025-W48..2025-W49"]);
    let lines = [
        "player_week player=4000000: surplus\n".to_owned(),
        format!(": {} differences\n", expected.len()),
        "repair: clqd archive resend --weeks 2025-W48..2025-W49\n".to_owned(),
    ];
    assert!(lines.iter().all(|line| printed.out.contains(line)), "{}", printed.out);

    let resent = sandbox.json(["archive", "resend", "--weeks", "2025-W48..2025-W49"]);
    assert_described("archive.resend", &resent);
    let resent = &resent[0];
    assert_eq!((&resent["server_weeks"], &resent["everything"]), (&(2 * servers).into(), &false.into()), "{resent}");
    wait_until_archived(&sandbox);
    let (found, summary) = verify(&sandbox, &[]);
    assert_eq!(found, BTreeSet::new(), "{summary}");
    let clean = sandbox.ok(["archive", "verify"]);
    assert!(clean.contains("compared (2025-W48 to 2025-W49): 0 differences\n") && !clean.contains("repair"), "{clean}");

    for command in ["resend", "verify"] {
        let refused = sandbox.run(["archive", command, "--weeks", "2025-W40..2025-W48"]);
        assert_eq!(refused.status.code(), Some(1));
        let want = "the state does not keep 2025-W40 to 2025-W47; it keeps 2025-W48 to 2025-W49";
        assert!(refused.err.contains(want), "{}", refused.err);
    }
    daemon.stop();
    let without = Sandbox::new("");
    let daemon = without.start();
    for command in ["resend", "verify"] {
        let refused = without.run(["archive", command]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(refused.err.contains("no archive is configured"), "{}", refused.err);
    }
    daemon.stop();
}

/// Another value of a column.
fn other_value(data_type: &str, column: &str) -> String {
    match data_type {
        "varchar" => format!("CONCAT('x', LEFT({column}, 10))"),
        "varbinary" | "blob" => format!("CONCAT(X'01', LEFT({column}, 3))"),
        "enum" => format!("IF({column} + 0 = 1, 2, 1)"),
        "tinyint" => format!("({column} + 1) % 8"),
        _ => format!("{column} + 1"),
    }
}

/// Tables and columns that verify does not compare.
const NOT_COMPARED: [(&str, &str); 11] = [
    ("clq_schema_version", "*"),
    ("clq_state", "*"),
    ("clq_writer", "*"),
    // `clqd migrate` writes the missing ones.
    ("clq_number", "*"),
    ("top_board", "published_ms"),
    // They are written again in each interval.
    ("site_total", "*"),
    ("online_total", "*"),
    ("online_hour", "*"),
    ("online_day", "*"),
    ("tag_total", "*"),
    // The game of the server when the row was written.
    ("server_week", "game"),
];

fn is_compared(table: &str, column: &str) -> bool {
    !NOT_COMPARED.iter().any(|(of, name)| *of == table && (*name == "*" || *name == column))
}

/// What somebody does to a table.
#[derive(Debug)]
struct Tampering {
    table: String,
    sql: Vec<String>,
}

impl Tampering {
    /// Of tables with the same name here one row differs at a time: a difference of a row hides that of its total.
    fn group(&self) -> &str {
        match self.table.as_str() {
            "map_total" => "map_week",
            "player_total" => "player_week",
            table => table,
        }
    }
}

/// For every table of the schema: each column changed, a row deleted, a row added.
fn all_tampering(rows_of: impl Fn(&str) -> Vec<Vec<String>>) -> Vec<Tampering> {
    let columns = rows_of(
        "SELECT table_name, column_name, data_type, column_key = 'PRI' FROM information_schema.columns JOIN \
         information_schema.tables USING (table_schema, table_name) WHERE table_schema = DATABASE() AND \
         table_type = 'BASE TABLE' AND (generation_expression IS NULL OR generation_expression = '') \
         ORDER BY table_name, ordinal_position",
    );
    let tables: BTreeSet<&str> = columns.iter().map(|column| column[0].as_str()).collect();
    let mut all = Vec::new();
    for table in tables.into_iter().filter(|table| is_compared(table, "*")) {
        let mut add = |sql: Vec<String>| all.push(Tampering { table: table.to_owned(), sql });
        let of_table: Vec<&Vec<String>> = columns.iter().filter(|column| column[0] == table).collect();
        let names: Vec<&str> = of_table.iter().map(|column| column[1].as_str()).collect();
        let is_key = |column: &&&Vec<String>| column[3] == "1";
        let key: Vec<&str> = of_table.iter().filter(is_key).map(|column| column[1].as_str()).collect();
        let key = key.join(", ");
        assert_ne!(rows_of(&format!("SELECT COUNT(*) FROM {table}"))[0][0], "0", "{table} has no rows");
        // Of the first day with sessions the state may not have all.
        let order = if table == "player_session" { "end_ms DESC" } else { &key };
        // A board that is missing in a running window is published again before anybody notices.
        let among = match table {
            "top_board" => "closed",
            "top_board_row" => "board NOT IN (SELECT board FROM top_board WHERE closed)",
            _ => "TRUE",
        };
        let row = |condition: &str, skip: usize| {
            let select = format!(
                "SELECT {key} FROM {table} WHERE {among} AND {condition} ORDER BY {order} LIMIT 1 OFFSET {skip}"
            );
            let found = rows_of(&select);
            let literal = |value: &String| format!("'{}'", value.replace('\'', "''"));
            Some(format!("({key}) = ({})", found.first()?.iter().map(literal).collect::<Vec<_>>().join(", ")))
        };
        for (at, column) in of_table.iter().enumerate() {
            let (name, data_type) = (&column[1], &column[2]);
            if !is_compared(table, name) || column[3] == "1" {
                continue;
            }
            let with_value =
                row(&format!("{name} IS NOT NULL"), at % 3).or_else(|| row(&format!("{name} IS NOT NULL"), 0));
            let (row, value) = match with_value {
                Some(row) => (row, other_value(data_type, name)),
                None => (row("TRUE", 0).expect("a row"), "1".to_owned()),
            };
            let mut sql = vec![format!("UPDATE {table} SET {name} = {value} WHERE {row}")];
            if (table, name.as_str()) == ("top_board", "ranking") {
                // No two boards have the same scope, window and ranking.
                sql.insert(0, format!("DELETE FROM top_board WHERE NOT {row}"));
            }
            add(sql);
        }
        let row = row("TRUE", 0).expect("a row");
        add(vec![format!("DELETE FROM {table} WHERE {row}")]);
        // Another row has another number in its key.
        let is_number = |column: &&&Vec<String>| column[3] == "1" && column[2] != "varchar" && column[2] != "enum";
        let number = of_table.iter().rev().find(is_number).expect("a number in the key");
        let step = if number[2] == "tinyint" { 7 } else { 3_000_000 };
        let value = |name: &&str| match *name {
            name if name == number[1] => format!("{name} + {step}"),
            name if ["name", "url", "label", "scope"].contains(&name) => format!("CONCAT({name}, ' copy')"),
            name => name.to_owned(),
        };
        let values: Vec<String> = names.iter().map(value).collect();
        let (names, values) = (names.join(", "), values.join(", "));
        add(vec![format!("INSERT INTO {table} ({names}) SELECT {values} FROM {table} WHERE {row}")]);
    }
    all
}

/// Every column of the schema: a changed value, a deleted row and another row are each noticed, and repaired by a
/// resend of everything.
#[test]
fn every_column_is_compared_and_repaired() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::new());
    let sandbox = Sandbox::new("");
    let config = format!(
        "[clock]\nsynchronised = \"never\"\n[sessions]\nkeep_days = 20\n[archive]\nurl = {:?}\ninterval_s = 2\n\
         drain_timeout_s = 60",
        database.url()
    );
    // No scan comes in between.
    sandbox.configure_scan(
        "budget = 0.0\ninterval_class1_s = 3600\ninterval_class2_s = 3600\ninterval_class3_s = 3600",
        &config,
    );
    sandbox.ok(["migrate"]);
    play_until(chrono::Utc::now().timestamp_millis(), &sandbox);
    let daemon = sandbox.start();
    wait_until_archived(&sandbox);
    let mut left = all_tampering(|sql| runtime.block_on(database.rows(sql)));
    assert!(left.len() > 130, "{}", left.len());
    let mut unnoticed = Vec::new();
    while !left.is_empty() {
        let mut used = BTreeSet::new();
        let (round, others) = left.into_iter().partition::<Vec<_>, _>(|change| used.insert(change.group().to_owned()));
        left = others;
        for sql in round.iter().flat_map(|change| &change.sql) {
            runtime.block_on(database.run(sql));
        }
        let found = wait_for("nothing is skipped", || {
            let (found, summary) = verify(&sandbox, &[]);
            let skipped = ["server_weeks_skipped", "objects_skipped", "boards_skipped"];
            skipped.iter().all(|name| summary[name] == 0).then_some(found)
        });
        // The game of a row is that of the server at the time, so only the totals can tell.
        let of_group = |change: &Tampering| {
            found.iter().any(|difference| {
                difference.1 == change.table || difference.1 == "map_total" && change.group() == "map_week"
            })
        };
        unnoticed.extend(round.iter().filter(|change| !of_group(change)).map(|change| change.sql.clone()));
        sandbox.ok(["archive", "resend"]);
        wait_until_archived(&sandbox);
        let (found, summary) = verify(&sandbox, &[]);
        assert_eq!(found, BTreeSet::new(), "after {round:?}: {summary}");
    }
    assert!(unnoticed.is_empty(), "{unnoticed:#?}");
    daemon.stop();
}

/// Boards of a week that has ended are compared also before it is closed.
#[test]
fn boards_of_a_week_that_awaits_its_close_are_compared() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::new());
    let sandbox = Sandbox::new("");
    let config = format!(
        "[clock]\nsynchronised = \"never\"\n[log]\nkeep_days = 1000\n[archive]\nurl = {:?}\ninterval_s = 2",
        database.url()
    );
    sandbox.configure_scan(
        "budget = 0.0\ninterval_class1_s = 3600\ninterval_class2_s = 3600\ninterval_class3_s = 3600",
        &config,
    );
    sandbox.ok(["migrate"]);
    let monday_ms = SUNDAY_MS + 24 * HOUR_MS;
    play_until(monday_ms + 5 * MINUTE_MS, &sandbox);
    let library = crate::clock::faketime_library();
    let behind_s = (clqd::clock::system_ms() - monday_ms) / 1_000 - 300;
    let fake_time = format!("-{behind_s}s");
    let daemon = sandbox.start_with_env(&[
        ("LD_PRELOAD", library.as_str()),
        ("FAKETIME", &fake_time),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ]);
    wait_until_archived(&sandbox);
    let verified = || {
        wait_for("nothing is skipped", || {
            let (found, summary) = verify(&sandbox, &[]);
            (summary["boards_skipped"] == 0).then_some(found)
        })
    };
    assert_eq!(verified(), BTreeSet::new());
    let of_week = "WHERE window_label = '2025-W48' AND NOT closed AND ranking = 'points' AND scope = ''";
    let board = runtime.block_on(database.rows(&format!("SELECT board FROM top_board {of_week}"))).remove(0).remove(0);
    let row = format!("WHERE (board, position) = ({board}, 2)");
    runtime.block_on(database.run(&format!("UPDATE top_board_row SET score = score + 1 {row}")));
    let found = verified();
    let of_row = |found: &Found| (found.1.as_str(), found.4.as_str()) == ("top_board_row", "content");
    assert!(found.len() == 1 && found.iter().all(of_row), "{found:?}");
    sandbox.ok(["archive", "resend"]);
    wait_until_archived(&sandbox);
    assert_eq!(verified(), BTreeSet::new());
    daemon.stop();
}

#[test]
fn changing_weeks_are_never_reported_as_differences() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(Database::new());
    let sandbox = Sandbox::new(&format!("[archive]\nurl = {:?}\ninterval_s = 2", database.url()));
    sandbox.ok(["migrate"]);
    let fleet = fleet(8, 5, 60.0, FaultShares::NONE);
    let daemon = sandbox.start();
    sandbox.add_servers(&fleet);
    wait_until("rows are in MySQL", || {
        runtime.block_on(database.value("SELECT COUNT(*) > 20 FROM player_week")) == "1"
    });
    for _ in 0..6 {
        let (found, summary) = verify(&sandbox, &[]);
        assert_eq!(found, BTreeSet::new(), "{summary}");
    }
    // At rest, everything is compared.
    drop(fleet);
    let summary = wait_for("no server changes", || {
        let (found, summary) = verify(&sandbox, &[]);
        assert_eq!(found, BTreeSet::new(), "{summary}");
        (summary["server_weeks_skipped"] == 0).then_some(summary)
    });
    assert!(summary["rows"].as_u64() > Some(20), "{summary}");
    daemon.stop();
}
