//! `clqd archive verify` and `resend`: rows that are changed by hand in MySQL are listed exactly
//! while the daemon runs, and written again.

use std::collections::BTreeSet;

use crate::database::Database;
use crate::sandbox::{Sandbox, fleet, rows, wait_for, wait_until};
use clqd::config::Config;
use clqd::engine::{Event, Outcome};
use clqd::fleet::{FaultShares, SimulatedHistory, World, WorldSettings, address};
use clqd::model::calendar::{HOUR_MS, MINUTE_MS};
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
            connected_ms: None,
            bot: false,
            spectator: false,
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

/// A difference: its kind, table, week, key and column.
type Found = (String, String, String, String, String);

/// Runs `clqd archive verify`. Returns the differences and the summary.
#[track_caller]
fn verify(sandbox: &Sandbox, args: &[&str]) -> (BTreeSet<Found>, Value) {
    let done = sandbox.run([&["--json", "archive", "verify"], args].concat());
    let mut all = rows(&done.out);
    let summary = all.pop().expect("a summary");
    assert_eq!(summary["kind"], "archive_verified", "{}", done.out);
    let differences = summary["differences"].as_u64().unwrap();
    assert_eq!(done.status.code(), Some(i32::from(differences > 0)), "{}", done.out);
    assert_eq!((differences, &summary["listed"]), (all.len() as u64, &differences.into()), "{summary}");
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let found = all.iter().map(|row| {
        assert_eq!(row["kind"], "archive_difference", "{row}");
        assert_eq!(row["difference"] == "value", row["expected"] != row["found"], "{row}");
        let is_of_server = !matches!(
            row["table"].as_str(),
            Some("player" | "map_total" | "player_total" | "week" | "top_board" | "top_board_row")
        );
        assert_eq!(row["server"].is_string(), is_of_server, "{row}");
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
        assert!(archive["fault"].is_null(), "{archive}");
        !archive["last_complete_ms"].is_null() && archive["resync"].is_null() && status["outbox_entries"] == 0
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
    let daemon = wait_for("sled releases its lock", || Some(sandbox.start()));
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
    let others: u64 = ["map_total", "top_board", "top_board_row", "week"].map(count).iter().sum();
    assert!((in_tables * 9 / 10..in_tables + others + 1).contains(&compared), "{compared} of {in_tables}");

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
        let columns = "measured_ms, starts, time_ms, time_est_ms, points, points_est, elo, elo_rounds, clq1, clq2";
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

    let best = one("SELECT server, player, position FROM best_position WHERE ranking = 'elo' AND ordinal = 1");
    let key = format!("server = {} AND player = {} AND ranking = 'elo' AND ordinal", best[0], best[1]);
    run(&format!("UPDATE best_position SET position = position + 1 WHERE {key} = 1"));
    expect("value", "best_position", &closed, format!("player={} ranking='elo' ordinal=1", best[1]), "position");
    run(&format!("INSERT INTO best_position VALUES ({}, {}, 'elo', 2, 7, 2000)", best[0], best[1]));
    expect("surplus", "best_position", &closed, format!("player={} ranking='elo' ordinal=2", best[1]), "");

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
    let name = &one(&format!("SELECT player FROM player_week WHERE week = {closed} ORDER BY player"))[0];
    run(&format!("UPDATE player SET display = 'it''s me' WHERE player = {name}"));
    expect("value", "player", "", format!("player={name}"), "display");

    let (found, summary) = verify(&sandbox, &[]);
    assert_eq!(found, expected, "{summary}");
    assert_eq!((&summary["resend_everything"], &summary["server_weeks_skipped"]), (&true.into(), &0.into()));
    let of_week = |week: &str| expected.iter().filter(|found| found.2 == week || found.2.is_empty()).cloned().collect();
    let (found, summary) = verify(&sandbox, &["--weeks", "2025-W48"]);
    assert_eq!(found, of_week("2025-W48"), "{summary}");
    let printed = sandbox.run(["archive", "verify", "--weeks", "2025-W48..2025-W49"]);
    let lines = [
        "player_week player=4000000: surplus\n".to_owned(),
        format!("player player={name}: display is 'it\\'s me', expected '"),
        format!(": {} differences\n", expected.len()),
        "repair: clqd archive resend\n".to_owned(),
    ];
    assert!(lines.iter().all(|line| printed.out.contains(line)), "{}", printed.out);

    // The weeks, and then the names.
    let resent = sandbox.json(["archive", "resend", "--weeks", "2025-W48..2025-W49"]).remove(0);
    assert_eq!((&resent["server_weeks"], &resent["everything"]), (&(2 * servers).into(), &false.into()), "{resent}");
    wait_until_archived(&sandbox);
    let (found, summary) = verify(&sandbox, &[]);
    let names: BTreeSet<Found> = expected.iter().filter(|found| found.1 == "player").cloned().collect();
    assert_eq!(found, names, "{summary}");
    let resent = sandbox.ok(["archive", "resend"]);
    assert!(resent.starts_with("everything is written again") && resent.contains("2025-W48 to 2025-W49"), "{resent}");
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
