//! Published boards and totals: they equal the engine's, and only changed rows are written.

use crate::database::Database;
use crate::scans;
use clqd::archive::Archive;
use clqd::engine::EngineSettings;
use clqd::model::Ranking;
use clqd::model::calendar::{MINUTE_MS, WEEK_MS};
use clqd::model::top_board::{SiteTotals, TopBoard, TopScope};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::PlayerSelector;

const MONDAY_MS: i64 = 1_763_942_400_000; // 2025-11-24 00:00 UTC

/// Two servers of one game and one of another; the first has a tag.
fn play(state: &mut State, from_ms: i64, minutes: i64) {
    for minute in (0..minutes).step_by(2) {
        for (number, game) in [(1, "baseq3"), (2, "baseq3"), (3, "cstrike")] {
            let players = (0..8 + number).map(|n| (format!("{game} {n}"), (n + number) * (minute % 60) / 3));
            let mut snapshot = scans::snapshot(from_ms + minute * MINUTE_MS, players);
            snapshot.game = game.to_owned();
            scans::apply_snapshot(state, &format!("quake3://10.0.0.{number}:27960"), snapshot);
        }
    }
}

/// All boards, as the archive's worker requests them.
fn boards(state: &mut State) -> Vec<TopBoard> {
    for window in state.engine.model().published_windows() {
        state.commit_and_build_boards(window).unwrap();
    }
    let mut all: Vec<TopBoard> = Vec::new();
    loop {
        let some = state.engine.model().top_boards(None, all.last().map(|board| board.key), 4);
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

async fn write(archive: &mut Archive, boards: &[TopBoard]) -> u64 {
    let mut rows = 0;
    for board in boards {
        rows += archive.write_top_board(board, 5).await.unwrap().1;
    }
    rows
}

/// Name and score in the order of positions.
async fn published(database: &Database, scope: &str, ranking: Ranking) -> Vec<Vec<String>> {
    let sql = format!(
        "SELECT position, name, score FROM clq_top_board WHERE scope_type = '{}' AND scope = '{scope}' \
         AND window_type = 'week' AND ranking = '{}' ORDER BY position",
        match scope {
            "" => "all",
            "ctf" => "tag",
            _ => "game",
        },
        ranking.name()
    );
    database.rows(&sql).await
}

#[tokio::test]
async fn published_boards_equal_the_boards_of_the_engine() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let engine = EngineSettings { archive_enabled: true, ..EngineSettings::default() };
    let mut state = State::open(dir.path(), store, engine).unwrap();
    let url = clqd::model::ServerUrl::parse("quake3://10.0.0.1:27960").unwrap();
    state.engine.add_server(url, vec!["ctf".to_owned()], MONDAY_MS).unwrap();
    play(&mut state, MONDAY_MS, 120);
    state.commit().unwrap();
    let jobs = state.engine.archive_jobs(&state.store, None, None, 1_000, 10_000).unwrap();
    archive.write(&jobs.into_iter().filter_map(|(_, job)| job).collect::<Vec<_>>()).await.unwrap();

    let all = boards(&mut state);
    // Two games, a tag and all games, five rankings each, in the running week.
    assert_eq!(all.len(), 20);
    write(&mut archive, &all).await;
    let games = ["baseq3", "cstrike", "ctf", ""];
    let mut worldwide = 0;
    for (scope, ranking) in games.into_iter().flat_map(|scope| Ranking::ALL.map(|ranking| (scope, ranking))) {
        let rows = published(&database, scope, ranking).await;
        let positions = rows.iter().map(|row| row[0].parse::<usize>().unwrap());
        assert!(!rows.is_empty() && positions.eq(1..=rows.len()), "{scope} {ranking:?}: {rows:?}");
        let scores: Vec<f64> = rows.iter().map(|row| row[2].parse().unwrap()).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scope} {ranking:?}: {scores:?}");
        let of = |board: &&TopBoard| board.scope_name == scope && board.key.ranking == ranking;
        let board = all.iter().find(of).unwrap();
        assert_eq!(board.entries.iter().map(|entry| entry.score).collect::<Vec<_>>(), scores, "{scope} {ranking:?}");
        if board.key.scope == TopScope::All {
            worldwide += rows.len();
        }
    }
    assert!(worldwide > 80, "each player of both games in most rankings: {worldwide}");
    let of_game = published(&database, "baseq3", Ranking::Points).await;
    assert_eq!((of_game[0][1].as_str(), of_game.len()), ("baseq3 8", 10), "{of_game:?}");

    // Nothing has changed: one row for each board says when it was published.
    assert_eq!(write(&mut archive, &boards(&mut state)).await, 20);
    // A forgotten player leaves every board; the positions behind are written again.
    let forgotten = PlayerSelector::Name("baseq3 8".to_owned());
    let State { engine, store } = &mut state;
    engine.forget_player(store, "baseq3", &forgotten, MONDAY_MS + 119 * MINUTE_MS).unwrap();
    write(&mut archive, &boards(&mut state)).await;
    let of_game = published(&database, "baseq3", Ranking::Points).await;
    assert_eq!((of_game[0][1].as_str(), of_game.len()), ("baseq3 7", 9), "{of_game:?}");

    // The next week shows who moved.
    let next_ms = MONDAY_MS + WEEK_MS;
    play(&mut state, next_ms, 120);
    let next = boards(&mut state);
    let is_new = |board: &&TopBoard| board.start_ms == Some(next_ms);
    write(&mut archive, &next.iter().filter(is_new).cloned().collect::<Vec<_>>()).await;
    let moved = "SELECT position, previous_position, moved FROM clq_top_board WHERE scope = 'baseq3' AND ranking = 'time' \
                 AND previous_position IS NOT NULL ORDER BY moved DESC";
    let moved = database.rows(moved).await;
    assert_eq!(moved.len(), 9, "all but the forgotten player, who is new: {moved:?}");
    for row in &moved {
        let number = |at: usize| row[at].parse::<i64>().unwrap();
        assert_eq!(number(2), number(1) - number(0), "{row:?}");
    }

    let totals = state.engine.model().site_totals();
    assert_eq!((totals.servers_online, totals.online.len()), (3, 2));
    for _ in 0..2 {
        archive.write_site_totals(&totals).await.unwrap();
    }
    let online = database.rows("SELECT game, players, servers FROM clq_online_total ORDER BY game").await;
    assert_eq!(online, [["0", "30", "3"], ["1", "19", "2"], ["2", "11", "1"]]);
    let site = database.rows("SELECT players_known, servers, servers_online FROM clq_site_total").await;
    assert_eq!(site, [["20", "3", "3"]]);
    // A game whose last server goes offline within the ten minutes has no value any more, nor has its hour.
    let without = SiteTotals { online: totals.online[..1].to_vec(), ..totals };
    archive.write_site_totals(&without).await.unwrap();
    for view in ["clq_online_total", "clq_online_hour", "clq_online_day"] {
        let online = database.rows(&format!("SELECT game, players, servers FROM {view} ORDER BY game")).await;
        assert_eq!(online, [["0", "19", "2"], ["1", "19", "2"]], "{view}");
    }
}

/// A week that has ended is published until it is closed, which is late if the clock is not trusted.
#[test]
fn ended_weeks_are_published_until_they_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
    let weeks = |state: &mut State| {
        let windows = boards(state).into_iter().filter(|board| board.window_type == "week");
        windows.map(|board| (board.window, board.closed)).collect::<std::collections::BTreeSet<_>>()
    };
    play(&mut state, MONDAY_MS + WEEK_MS - 30 * MINUTE_MS, 29);
    assert_eq!(weeks(&mut state), [("2025-W48".to_owned(), false)].into());
    let now_ms = MONDAY_MS + WEEK_MS + 5_000;
    state.handle(clqd::engine::Event::Tick { now_ms }).unwrap();
    assert_eq!(weeks(&mut state), [("2025-W48".to_owned(), false), ("2025-W49".to_owned(), false)].into());
    state.close_due_weeks(now_ms + MINUTE_MS).unwrap();
    assert_eq!(weeks(&mut state), [("2025-W49".to_owned(), false)].into());
}

/// MySQL takes names for equal that differ in spaces at their ends.
#[tokio::test]
async fn game_with_a_space_at_its_end_has_its_own_boards() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), store, EngineSettings::default()).unwrap();
    let long = "x".repeat(254);
    let games = ["baseq3", "baseq3 ", "baseq3  ", &long, &format!("{long} "), &format!("{long}  ")];
    for (number, game) in (1..).zip(games) {
        let snapshot = scans::snapshot(MONDAY_MS + number, [(format!("player {number}"), 5)]);
        let url = format!("quake3://10.0.0.{number}:27960");
        scans::apply_snapshot(&mut state, &url, clqd::model::Snapshot { game: game.to_owned(), ..snapshot });
    }
    let all = boards(&mut state);
    assert_eq!(all.len(), 5 * (games.len() + 1));
    write(&mut archive, &all).await;
    assert_eq!(database.value("SELECT COUNT(*) FROM top_board").await, all.len().to_string());
    let shown = database.rows("SELECT DISTINCT scope FROM top_board WHERE scope = 'baseq3'").await;
    assert_eq!(shown, [["baseq3"]]);
}
