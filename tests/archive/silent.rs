//! What could stay wrong in the archive without anybody noticing: boards of closed weeks, an archive that is older
//! than the state, two copies of one state, and rows of a future week.

use std::path::Path;

use crate::database::Database;
use crate::scans;
use crate::state_source::{StateSource, open};
use clqd::archive::{Archive, ArchiveSettings, FaultKind, OnOlderDatabase};
use clqd::engine::Event;
use clqd::model::calendar::{MINUTE_MS, WEEK_MS};
use clqd::model::outbox::ArchiveStep;
use clqd::model::{ArchiveJob, PlayerKey, ServerUrl, WindowKey};
use clqd::state::State;
use clqd::view::board::PlayerSelector;

const MONDAY_MS: i64 = 1_763_942_400_000; // 2025-11-24 00:00 UTC
pub const NO_LIMIT: usize = usize::MAX;

/// Three servers, the first with a tag; the players of a week differ from those of the next.
fn play(state: &mut State, week: i64) {
    for minute in (0..60).step_by(2) {
        for (number, game) in [(1, "baseq3"), (2, "baseq3"), (3, "cstrike")] {
            let t_ms = MONDAY_MS + week * WEEK_MS + minute * MINUTE_MS + number;
            let points = |n: i64| (1 + (n * 5 + week * 3 + number) % 7) * minute / 3;
            let players = (0..6 + number).map(|n| (format!("{game} {n}"), points(n)));
            let mut snapshot = scans::snapshot(t_ms, players);
            snapshot.game = game.to_owned();
            scans::apply_snapshot(state, &url(number), snapshot);
        }
    }
}

fn url(number: i64) -> String {
    format!("quake3://10.0.0.{number}:27960")
}

fn new_state(dir: &Path) -> State {
    let mut state = open(dir);
    state.engine.add_server(ServerUrl::parse(&url(1)).unwrap(), vec!["ctf".to_owned()], MONDAY_MS).unwrap();
    state
}

/// Opens a state again that was dropped without anything else: what was not committed is lost.
pub fn reopen(state: State, dir: &Path) -> State {
    drop(state);
    open(dir)
}

/// The end of a week: it is closed.
fn close(state: &mut State, week: i64) {
    state.close_due_weeks(MONDAY_MS + (week + 1) * WEEK_MS + MINUTE_MS).unwrap();
}

/// Every published board as it should be: a line for each position, and one for each board.
fn expected_boards(state: &mut State) -> Vec<String> {
    let windows: Vec<WindowKey> = state.engine.model().weeks().iter().map(|week| week.week.into()).collect();
    let mut lines = Vec::new();
    for window in windows {
        state.commit_and_build_boards(window).unwrap();
        for board in state.engine.model().top_boards(Some(window), None, NO_LIMIT) {
            let head = format!(
                "{} '{}' {} {}",
                board.key.scope.name(),
                board.scope_name,
                board.window,
                board.key.ranking.name()
            );
            lines.push(format!("{head}: {} players, closed {}", board.size, u8::from(board.closed)));
            for (entry, position) in board.entries.iter().zip(1..) {
                lines.push(format!("{head} {position}: player {} {:.6}", entry.player.0, entry.score));
            }
        }
    }
    lines.sort();
    lines
}

async fn published_boards(database: &Database) -> Vec<String> {
    let head = "scope_type, scope, window_label, ranking";
    let boards = database.rows(&format!("SELECT {head}, players, closed FROM top_board")).await;
    let rows = format!("SELECT {head}, position, player, score FROM top_board JOIN top_board_row USING (board)");
    let rows = database.rows(&rows).await;
    let of = |row: &[String]| format!("{} '{}' {} {}", row[0], row[1], row[2], row[3]);
    let mut lines: Vec<String> =
        boards.iter().map(|row| format!("{}: {} players, closed {}", of(row), row[4], row[5])).collect();
    lines.extend(
        rows.iter()
            .map(|row| format!("{} {}: player {} {:.6}", of(row), row[4], row[5], row[6].parse::<f64>().unwrap())),
    );
    lines.sort();
    lines
}

async fn assert_boards(state: &mut State, database: &Database, when: &str) {
    let (want, found) = (expected_boards(state), published_boards(database).await);
    let missing: Vec<&String> = want.iter().filter(|line| !found.contains(line)).take(5).collect();
    let surplus: Vec<&String> = found.iter().filter(|line| !want.contains(line)).take(5).collect();
    assert!(want.len() > 100 && missing.is_empty() && surplus.is_empty(), "{when}: {missing:?} {surplus:?}");
}

async fn archived(state: State, database: &Database, seed: usize) -> State {
    let source = StateSource::new(state, seed, NO_LIMIT);
    let status = source.archive(&database.settings()).await;
    assert_eq!(status.fault, None);
    source.into_state()
}

/// The daemon is killed again and again at random moments around the end of a week.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn boards_of_closed_week_are_published_despite_kills() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut state = new_state(dir.path());
    play(&mut state, 0);
    // Boards of the running week are published as far as it went.
    state = archived(state, &database, 1).await;
    for minute in [70, 72, 74] {
        let t_ms = MONDAY_MS + minute * MINUTE_MS;
        let late = scans::snapshot(t_ms, [("late", 900 + minute), ("baseq3 1", minute)]);
        scans::apply_snapshot(&mut state, &url(1), late);
    }
    close(&mut state, 0);
    play(&mut state, 1);
    state.commit().unwrap();
    let mut kills = 0;
    for requests in (1..).map(|n: usize| n * n % 23 + n / 2) {
        // What was not in a checkpoint is in the log, which this test does not have.
        state.write_checkpoint(0).unwrap();
        state = reopen(state, dir.path());
        let source = StateSource::new(state, 100 + kills, requests);
        source.archive(&database.settings()).await;
        state = source.into_state();
        kills += 1;
        if kills >= 50 {
            break;
        }
    }
    state = archived(state, &database, 2).await;
    assert_boards(&mut state, &database, "after kills").await;

    // Everything in MySQL that a resend repairs.
    database.run("DELETE FROM top_board_row WHERE position % 2 = 0").await;
    database.run("UPDATE top_board SET closed = 0, players = 7").await;
    database.run("INSERT INTO top_board SELECT board + 1, scope_type, 'gone', window_type, window_label, start_ms, end_ms, ranking, players, closed, published_ms FROM top_board WHERE scope = 'ctf'").await;
    state.engine.apply_archive_step(ArchiveStep::Resync { adopts: false });
    state = archived(state, &database, 3).await;
    assert_boards(&mut state, &database, "after a resend of everything").await;

    // A correction of a closed week.
    let State { engine, store } = &mut state;
    let name = PlayerSelector::Name("baseq3 3".to_owned());
    engine.forget_player(store, "baseq3", &name, MONDAY_MS + WEEK_MS + 100 * MINUTE_MS).unwrap();
    state.commit().unwrap();
    state = archived(state, &database, 4).await;
    assert_boards(&mut state, &database, "after a player was forgotten").await;
}

/// Runs the documented statement for all closed weeks: the servers whose rows are not those that were closed.
async fn changed_servers(database: &Database) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string("docs/database.md").unwrap();
    let section = page.split("## Checksums of closed weeks").nth(1).unwrap();
    let statement = section.split("```sql").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let mut changed = Vec::new();
    for week in database.rows("SELECT label FROM week").await {
        let statement = statement.replace("2026-W46", &week[0]);
        changed.extend(database.rows(statement.trim_end().trim_end_matches(';')).await);
    }
    changed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checksums_show_whether_a_closed_week_was_changed() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut state = new_state(dir.path());
    play(&mut state, 0);
    state = archived(state, &database, 1).await;
    let sums = "SELECT w.week, w.checksum, BIT_XOR(s.checksum), COUNT(s.checksum) FROM week w JOIN server_week s ON \
                s.week = w.week GROUP BY w.week ORDER BY w.week";
    assert_eq!(database.rows(sums).await[0][1], "NULL", "the week runs");
    close(&mut state, 0);
    play(&mut state, 1);
    state = archived(state, &database, 2).await;
    let closed = database.rows(sums).await;
    assert_eq!((closed.len(), &closed[0][1], &*closed[0][3], &*closed[1][1]), (2, &closed[0][2], "3", "NULL"));
    assert_eq!(changed_servers(&database).await, Vec::<Vec<String>>::new());

    // Every number of a row counts, also positions.
    let row = "(week, server, player) = (SELECT * FROM (SELECT MIN(week), 1, MIN(player) FROM player_week WHERE server = 1) AS it)";
    let estimates = ["time_est_ms", "time_est_variance", "time_connected_ms", "time_connected_variance"];
    let estimates = estimates.into_iter().chain(["points_est", "points_est_variance"]);
    for column in
        ["starts", "points", "elo", "elo_rounds", "elo_rounds_sure", "clq1", "clq2"].into_iter().chain(estimates)
    {
        database.run(&format!("UPDATE player_week SET {column} = {column} + 1 WHERE {row}")).await;
        let changed = changed_servers(&database).await;
        assert_eq!((changed.len(), &*changed[0][0]), (1, "1"), "{column}");
        database.run(&format!("UPDATE player_week SET {column} = {column} - 1 WHERE {row}")).await;
    }
    database.run(&format!("UPDATE player_week SET elo_order = X'00000063' WHERE {row}")).await;
    assert_eq!(changed_servers(&database).await.len(), 1);
    database.run("DELETE FROM player_week WHERE server = 2 AND week = (SELECT MIN(week) FROM week)").await;
    assert_eq!(changed_servers(&database).await.len(), 2);
    state.engine.apply_archive_step(ArchiveStep::Resync { adopts: false });
    state = archived(state, &database, 3).await;
    assert_eq!(database.rows(sums).await[0], closed[0]);
    assert_eq!(changed_servers(&database).await, Vec::<Vec<String>>::new());

    // A correction of a week that the state has, and one of a week that it has no more.
    let State { engine, store } = &mut state;
    let name = PlayerSelector::Name("baseq3 3".to_owned());
    engine.forget_player(store, "baseq3", &name, MONDAY_MS + WEEK_MS + 100 * MINUTE_MS).unwrap();
    state.commit().unwrap();
    drop(archived(state, &database, 4).await);
    let corrected = database.rows(sums).await;
    assert!(corrected[0][1] == corrected[0][2] && corrected[0] != closed[0]);
    assert_eq!(changed_servers(&database).await, Vec::<Vec<String>>::new());
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    let [one, into] = ["baseq3 4", "baseq3 5"].map(|name| format!("SELECT player FROM player WHERE name = '{name}'"));
    let key = async |select: &str| PlayerKey(database.value(select).await.parse().unwrap());
    let (one, into) = (key(&one).await, key(&into).await);
    database.run(&format!("DELETE FROM player_week WHERE player = {into} AND server = 1")).await;
    archive.write(&[ArchiveJob::PlayerRemoved { key: one, into: Some(into) }]).await.unwrap();
    let merged = database.rows(sums).await;
    assert!(merged[0][1] == merged[0][2] && merged[0] != corrected[0]);
    assert_eq!(changed_servers(&database).await, Vec::<Vec<String>>::new());
}

/// Tables, each with its columns that are not generated.
async fn tables(database: &Database) -> Vec<(String, String)> {
    let select = "SELECT table_name, GROUP_CONCAT(column_name ORDER BY ordinal_position) FROM information_schema.columns JOIN \
                  information_schema.tables USING (table_schema, table_name) WHERE table_schema = DATABASE() AND \
                  table_type = 'BASE TABLE' AND (generation_expression IS NULL OR generation_expression = '') GROUP BY table_name";
    database.rows(select).await.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect()
}

/// Copies all rows of `from`, in place of those of `to`.
pub async fn copy_rows(from: &Database, to: &Database) {
    for (table, columns) in tables(from).await {
        to.run(&format!("DELETE FROM {table}")).await;
        to.run(&format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM {}.{table}", from.name())).await;
    }
}

/// All rows, but when they were written and by which connection.
pub async fn content(database: &Database) -> Vec<(String, Vec<Vec<String>>)> {
    let mut all = Vec::new();
    for (table, columns) in tables(database).await {
        if ["clq_writer", "clq_schema_version", "site_total", "online_total"].contains(&table.as_str()) {
            continue;
        }
        let columns: Vec<String> =
            columns.split(',').filter(|name| *name != "published_ms").map(|name| format!("HEX({name})")).collect();
        let mut rows = database.rows(&format!("SELECT {} FROM {table}", columns.join(", "))).await;
        rows.sort();
        all.push((table, rows));
    }
    all
}

pub fn assert_content(found: &[(String, Vec<Vec<String>>)], want: &[(String, Vec<Vec<String>>)], when: &str) {
    for ((table, found), (_, want)) in found.iter().zip(want) {
        let missing: Vec<_> = want.iter().filter(|row| !found.contains(row)).take(3).collect();
        let surplus: Vec<_> = found.iter().filter(|row| !want.contains(row)).take(3).collect();
        assert!(missing.is_empty() && surplus.is_empty(), "{when}: {table}: {missing:?} {surplus:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_database_is_noticed_and_filled_again() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let copy = database.beside("copy_of_earlier_time").await;
    let mut state = new_state(dir.path());
    play(&mut state, 0);
    state = archived(state, &database, 1).await;
    copy_rows(&database, &copy).await;
    close(&mut state, 0);
    play(&mut state, 1);
    state = archived(state, &database, 2).await;
    let whole = content(&database).await;

    copy_rows(&copy, &database).await;
    assert_ne!(content(&database).await, whole);
    let stop = ArchiveSettings { on_older_database: OnOlderDatabase::Stop, ..database.settings() };
    let source = StateSource::new(state, 3, NO_LIMIT);
    let fault = source.archive(&stop).await.fault.expect("the database is older");
    assert_eq!(fault.kind, FaultKind::OlderDatabase, "{}", fault.message);
    assert_ne!(content(&database).await, whole, "nothing is written");
    let status = source.archive(&database.settings()).await;
    assert!(status.last_error.is_some_and(|error| error.contains("is older than the state")), "it is reported");
    assert_eq!(status.fault, None);
    state = source.into_state();
    assert_content(&content(&database).await, &whole, "everything is written again");

    // The database that was ahead returns: it has another history.
    copy_rows(&database, &copy).await;
    state = archived(state, &database, 4).await;
    assert_eq!(state.engine.model().resync_position(), None, "the right one causes no resync");
    drop(state);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_copies_of_a_state_never_both_write() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let (first_dir, second_dir) = (dir.path().join("first"), dir.path().join("second"));
    let mut first = new_state(&first_dir);
    play(&mut first, 0);
    first = archived(first, &database, 1).await;
    first.write_checkpoint(0).unwrap();
    drop(first);
    let copied = std::process::Command::new("cp").arg("-r").args([&first_dir, &second_dir]).status().unwrap();
    assert!(copied.success());

    // Both continue: the first one that writes has the archive.
    let mut second = open(&second_dir);
    play(&mut second, 1);
    second = archived(second, &database, 2).await;
    let of_second = content(&database).await;
    let mut first = open(&first_dir);
    close(&mut first, 0);
    first.engine.handle(&first.store, Event::Tick { now_ms: MONDAY_MS + WEEK_MS + 2 * MINUTE_MS }).unwrap();
    let source = StateSource::new(first, 3, NO_LIMIT);
    let writer = "SELECT epoch, beat FROM clq_writer";
    let before = database.rows(writer).await;
    for _ in 0..3 {
        let fault = source.archive(&database.settings()).await.fault.expect("another one writes");
        assert_eq!(fault.kind, FaultKind::InUse, "{}", fault.message);
        assert!(fault.message.contains("clqd archive take-over"), "{}", fault.message);
    }
    assert!(content(&database).await == of_second && database.rows(writer).await == before);
    // The second one is not disturbed.
    second = archived(second, &database, 4).await;
    assert!(content(&database).await == of_second);

    // An admin decides for the first one. The second one stops.
    source.state.lock().unwrap().engine.apply_archive_step(ArchiveStep::Resync { adopts: true });
    assert_eq!(source.archive(&database.settings()).await.fault, None);
    let of_first = content(&database).await;
    play(&mut second, 2);
    let second = StateSource::new(second, 5, NO_LIMIT);
    let fault = second.archive(&database.settings()).await.fault.expect("another one writes");
    assert_eq!(fault.kind, FaultKind::InUse, "{}", fault.message);
    assert!(content(&database).await == of_first);
}

/// A state with other keys takes neither the lease nor the archive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_state_is_refused_before_it_takes_the_lease() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut state = new_state(&dir.path().join("own"));
    play(&mut state, 0);
    state = archived(state, &database, 1).await;
    let writer = "SELECT epoch, beat, beat_ms, state_id FROM clq_writer";
    let before = database.rows(writer).await;
    let foreign = StateSource::new(new_state(&dir.path().join("foreign")), 2, NO_LIMIT);
    for _ in 0..3 {
        let fault = foreign.archive(&database.settings()).await.fault.expect("it has other keys");
        assert_eq!(fault.kind, FaultKind::KeyMismatch, "{}", fault.message);
    }
    assert_eq!(database.rows(writer).await, before);
    drop(archived(state, &database, 3).await);
}

/// As after it was left running until it had as many keys. The games, which are written first, are equal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_state_with_more_keys_is_refused_by_its_names() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let of_players = |name: &str, count: i64, servers: i64| {
        let mut state = new_state(&dir.path().join(name));
        for server in 1..=servers {
            let names = (0..count).map(|n| (format!("{name} {n}"), n));
            let url = format!("quake3://10.8.0.{server}:27960");
            scans::apply_snapshot(&mut state, &url, scans::snapshot(MONDAY_MS + server, names));
        }
        state.commit().unwrap();
        state
    };
    let mut own = archived(of_players("own", 5, 1), &database, 1).await;
    let (writer, before) = ("SELECT epoch, beat, beat_ms, state_id FROM clq_writer", content(&database).await);
    let last = database.rows(writer).await;
    let foreign = StateSource::new(of_players("foreign", 9, 2), 2, NO_LIMIT);
    for _ in 0..3 {
        let fault = foreign.archive(&database.settings()).await.fault.expect("it has other players");
        assert_eq!(fault.kind, FaultKind::KeyMismatch, "{}", fault.message);
        assert!(fault.message.contains("\"foreign "), "{}", fault.message);
    }
    assert!(content(&database).await == before && database.rows(writer).await == last);
    // Its own state may fill it again.
    database.run("DELETE FROM clq_state").await;
    own = archived(own, &database, 3).await;
    let state_id = own.engine.model().archive_id().unwrap();
    assert_eq!(database.value("SELECT state_id FROM clq_state").await, state_id.to_string());
    let mut after = content(&database).await;
    after.retain(|(table, _)| table != "clq_state");
    assert!(after.iter().all(|table| before.contains(table)) && after.len() + 1 == before.len());
}

/// One row of a future week once deleted all rows of players.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_future_week_are_a_fault_and_delete_nothing() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut state = new_state(dir.path());
    for week in 0..6 {
        play(&mut state, week);
        close(&mut state, week);
    }
    state = archived(state, &database, 1).await;
    let rows = "SELECT week, COUNT(*) FROM player_week GROUP BY week ORDER BY week";
    let whole = database.rows(rows).await;
    assert_eq!(whole.len(), 6);
    let newest: u32 = whole[5][0].parse().unwrap();
    let future = newest + 500;
    let start_ms = MONDAY_MS + 506 * WEEK_MS;
    database
        .run(&format!(
            "INSERT INTO week (week, label, start_ms, end_ms) VALUES ({future}, '2035-W31', {start_ms}, {start_ms} + 1)"
        ))
        .await;
    database.run(&format!("INSERT INTO online_total VALUES (0, {start_ms}, 5, 2)")).await;

    let settings = ArchiveSettings { keep_weeks: 1, ..database.settings() };
    let source = StateSource::new(state, 2, NO_LIMIT);
    let fault = source.archive(&settings).await.fault.expect("a later week");
    assert_eq!(fault.kind, FaultKind::LaterWeek, "{}", fault.message);
    assert!(fault.message.contains("2035-W31") && fault.message.contains("resend"), "{}", fault.message);
    assert_eq!(database.rows(rows).await, whole);

    // What the message says repairs it. Then weeks that the state does not have may be deleted, and no others.
    source.state.lock().unwrap().engine.apply_archive_step(ArchiveStep::Resync { adopts: false });
    assert_eq!(source.archive(&settings).await.fault, None);
    assert_eq!(database.value("SELECT MAX(week) FROM week").await, newest.to_string());
    assert_eq!(database.value(&format!("SELECT COUNT(*) FROM online_total WHERE at_ms >= {start_ms}")).await, "0");
    // The state deletes weeks whose boards are published, and then they are old in MySQL, too.
    let mut state = source.into_state();
    close(&mut state, 5);
    let source = StateSource::new(state, 3, NO_LIMIT);
    assert_eq!(source.archive(&settings).await.fault, None);
    let state = source.into_state();
    let oldest = state.engine.model().weeks()[0].week.0;
    let kept = whole.iter().filter(|row| row[0].parse::<u32>().unwrap() >= oldest).cloned().collect::<Vec<_>>();
    assert!((2..6).contains(&kept.len()), "the state keeps some weeks: {kept:?}");
    assert_eq!(database.rows(rows).await, kept);
}
