//! A state that is lost is built again from a real MariaDB: its boards and rows equal those of the
//! lost one, the archive equals both, and play continues as in a state that was never lost.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::database::world::{Tables, assert_same, read};
use crate::database::{Database, Server};
use crate::scans;
use crate::state_source::StateSource;
use clqd::archive::{Archive, RowDifference};
use clqd::engine::{EngineSettings, Event, RestoreError, StateReader, StoreReader};
use clqd::model::archive::{ArchiveJob, ExpectedObjects, ExpectedStep, WeekArchive};
use clqd::model::calendar::{Calendar, MINUTE_MS, WEEK_MS, week_label};
use clqd::model::outbox::ResyncCursor;
use clqd::model::{GameKey, PlayerKey, Ranking, Scope, ServerKey, ServerUrl, WeekKey};
use clqd::state::State;
use clqd::state::archive_restore::{RestoreArchiveError, RestoreLimits, Restored, restore_from_archive};
use clqd::store::StoreSettings;
use clqd::view::board::{BoardEntryView, BoardQuery, BoardRow, BoardSelector, PlayerSelector};

const MONDAY_MS: i64 = 1_763_942_400_000; // 2025-11-24 00:00 UTC
const CACHE_BYTES: u64 = 16 << 20;

/// Two servers of one game, with a player on both, and one of another game.
const SERVERS: [(&str, &str); 3] =
    [("quake3://a:27960", "baseq3"), ("quake3://b:27960", "baseq3"), ("quake3://c:27960", "q3ut4")];

/// So small that every table has several pages and commits.
const LIMITS: RestoreLimits = RestoreLimits { page_rows: 7, page_servers: 2, commit_records: 20 };

fn settings() -> EngineSettings {
    let mut settings = EngineSettings { archive_enabled: true, keep_weeks: 2, ..EngineSettings::default() };
    settings.rules.screen.enabled = false;
    settings
}

fn open_with(dir: &Path, settings: EngineSettings) -> State {
    // Sled releases the lock of an earlier state with a delay; the store waits for it.
    State::open(dir, StoreSettings { cache_bytes: CACHE_BYTES, create: true }, settings).unwrap()
}

fn open(dir: &Path) -> State {
    open_with(dir, settings())
}

fn week_at(t_ms: i64) -> WeekKey {
    Calendar::default().week(t_ms)
}

/// Scans every two minutes; a round has twenty. `rounds` is the number of rounds before, which
/// decides who plays.
fn play(state: &mut State, from_ms: i64, minutes: i64, rounds: i64) {
    for minute in (0..minutes).step_by(2) {
        let (t_ms, round) = (from_ms + minute * MINUTE_MS, rounds + minute / 20);
        for ((url, game), server) in SERVERS.into_iter().zip(0_i64..) {
            let points = |n: i64| (n % 4 + 1) * (minute % 20) / 2;
            let plays = |n: &i64| (n * 7 + round * 3 + server) % 5 < 3;
            let name = |n: i64| format!("O'Brien \\ 名前 {server} {n}");
            let mut players: Vec<(String, i64)> = (0..9).filter(plays).map(|n| (name(n), points(n))).collect();
            if round % 2 == server {
                players.push(("^1Roamer".to_owned(), points(3)));
            }
            let mut snapshot = scans::snapshot(t_ms, players);
            (snapshot.game, snapshot.map) = (game.to_owned(), format!("map{}", round % 3));
            snapshot.hostname = format!("Server {server}");
            scans::apply_snapshot(state, url, snapshot);
        }
        state.handle(Event::Tick { now_ms: t_ms }).unwrap();
    }
    state.commit().unwrap();
}

/// Everybody leaves: the state has no presences and rounds that the archive does not have.
fn leave(state: &mut State, t_ms: i64) {
    for (url, game) in SERVERS {
        let mut snapshot = scans::snapshot::<String>(t_ms, []);
        (snapshot.game, snapshot.map) = (game.to_owned(), "map0".to_owned());
        scans::apply_snapshot(state, url, snapshot);
    }
    state.handle(Event::Tick { now_ms: t_ms }).unwrap();
    state.commit().unwrap();
}

/// Three weeks that are closed, of which two are kept, and a running one; archived after each week.
async fn history(state: &mut State, database: &Database) {
    state.engine.add_server(ServerUrl::parse(SERVERS[0].0).unwrap(), vec!["ctf".into()], MONDAY_MS).unwrap();
    state
        .engine
        .add_server(ServerUrl::parse(SERVERS[1].0).unwrap(), vec!["ctf".into(), "eu".into()], MONDAY_MS)
        .unwrap();
    for (url, tag) in [("quake3://never:27960", "eu"), ("quake3://gone:27960", "old"), ("quake3://grey:27960", "eu")] {
        state.engine.add_server(ServerUrl::parse(url).unwrap(), vec![tag.to_owned()], MONDAY_MS).unwrap();
    }
    state.engine.remove_server(&state.store, &ServerUrl::parse("quake3://gone:27960").unwrap()).unwrap();
    state
        .engine
        .greylist(&state.store, &ServerUrl::parse("quake3://grey:27960").unwrap(), Some("it's fake".to_owned()))
        .unwrap();
    for week in 0..4 {
        let from_ms = MONDAY_MS + week * WEEK_MS + 10 * MINUTE_MS;
        play(state, from_ms, 90 + 20 * week, 5 * week);
        if week < 3 {
            archive(state, database).await;
            state.close_due_weeks(MONDAY_MS + (week + 1) * WEEK_MS + MINUTE_MS).unwrap();
        }
        archive(state, database).await;
    }
}

/// Writes all that is pending, and publishes boards, as the archive's worker does.
/// Writes what is in the outbox, and returns it.
pub(crate) async fn write_pending(state: &mut State, archive: &mut Archive) -> Vec<ArchiveJob> {
    let mut written = Vec::new();
    loop {
        state.commit().unwrap();
        let jobs = state.engine.archive_jobs(&state.store, None, None, 100_000, 1_000_000).unwrap();
        if jobs.is_empty() {
            return written;
        }
        let (entries, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
        let jobs: Vec<ArchiveJob> = jobs.into_iter().flatten().collect();
        archive.write(&jobs).await.unwrap();
        written.extend(jobs);
        scans::acknowledge(state, &entries);
    }
}

async fn archive(state: &mut State, database: &Database) {
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    let found = archive.state_id().await.unwrap();
    let id = scans::claim_archive(state, found, 77);
    archive.write(&scans::resync(state)).await.unwrap();
    database.run(&format!("REPLACE INTO clq_state VALUES (1, {id})")).await;
    write_pending(state, &mut archive).await;
    let now_ms = state.engine.model().now_ms();
    state.commit_and_build_boards(week_at(now_ms).into()).unwrap();
    for board in state.engine.model().top_boards(None, None, 10_000) {
        archive.write_top_board(&board, now_ms).await.unwrap();
    }
    archive.write_site_totals(&state.engine.model().site_totals()).await.unwrap();
    archive.close().await;
}

async fn restore(database: &Database, dir: &Path) -> Result<Restored, RestoreArchiveError> {
    restore_with(database, dir, settings()).await
}

async fn restore_with(
    database: &Database,
    dir: &Path,
    settings: EngineSettings,
) -> Result<Restored, RestoreArchiveError> {
    restore_from_archive(&database.settings(), &settings, dir, CACHE_BYTES, LIMITS, &mut |_, _| (), |_| ()).await
}

/// Sends statements of all kinds: of a writer, of its worker, of a restore and of a comparison.
pub(crate) async fn write_and_read_all(database: &Database) {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(&dir.path().join("first"));
    history(&mut state, database).await;
    let state = StateSource::new(state, 5, usize::MAX);
    state.archive(&database.settings()).await;
    drop(state);
    restore(database, &dir.path().join("state")).await.unwrap();
    assert_archived(&mut open(&dir.path().join("state")), database).await;
}

/// The archived values of all kept weeks.
fn values(state: &mut State) -> BTreeMap<(WeekKey, ServerKey), WeekArchive> {
    state.commit().unwrap();
    let mut all = BTreeMap::new();
    for week in (0..6).map(|n| week_at(MONDAY_MS + n * WEEK_MS)) {
        let step = state.engine.expected_weeks(&state.store, week, ServerKey(1), None, 1_000, 1_000_000).unwrap();
        let ExpectedStep::Weeks { weeks, .. } = step else { continue };
        for expected in weeks {
            assert!(!expected.is_pending, "archived");
            all.insert((week, expected.server), *expected.values.unwrap());
        }
    }
    state.engine.end_verification();
    all
}

/// Compares the archive with the values of a state.
pub(crate) async fn assert_archived(state: &mut State, database: &Database) {
    let mut archive = Archive::connect_to_read(&database.settings()).await.unwrap();
    let all = values(state);
    assert!(all.values().map(|week| week.rows.len()).sum::<usize>() >= 50);
    for (&(week, _), values) in &all {
        let last_game = GameKey(state.engine.model().last_keys().game);
        let found = archive.verify_weeks(week, &[values], last_game).await.unwrap();
        assert_eq!(found.differences, [], "{week}");
        assert_eq!(archive.verify_map_totals(week).await.unwrap().differences, []);
    }
    let (differences, objects) = verify_objects(state, &mut archive).await;
    assert!(objects > 25);
    // A restored state has no lists until the next scans.
    let others: Vec<_> = differences.iter().filter(|it| it.table != "online_player").collect();
    assert_eq!(others, Vec::<&RowDifference>::new());
    archive.close().await;
}

/// Compares names, servers, best positions and sessions with the rows in the database. Returns the differences and the
/// number of objects.
pub(crate) async fn verify_objects(state: &State, archive: &mut Archive) -> (Vec<RowDifference>, usize) {
    let (mut differences, mut count) = (Vec::new(), 0);
    let mut from = ResyncCursor::START;
    while from != ResyncCursor::End {
        let expected = state.engine.model().expected_objects(&state.store, from, 25, 100).unwrap();
        let ExpectedObjects { range, objects, next } = expected.expect("no resync");
        if let Some(range) = range {
            let jobs: Vec<&ArchiveJob> = objects.iter().map(|(job, _)| job).collect();
            differences.extend(archive.verify_objects(&range, &jobs).await.unwrap().differences);
            count += jobs.len();
        }
        from = if matches!(next, ResyncCursor::Week { .. }) { ResyncCursor::BEST_POSITIONS } else { next };
    }
    (differences, count)
}

/// The entries of a board.
fn board(state: &mut State, scope: Scope, week: WeekKey, ranking: Ranking) -> Vec<BoardEntryView> {
    if matches!(scope, Scope::Game(_) | Scope::Tag(_)) {
        state.commit_and_build_boards(week.into()).unwrap();
    }
    let board = BoardSelector { scope, ranking, window: Some(week_label(week)), at_ms: None };
    let answer = state.engine.model().query_board(&state.store, &board, &BoardQuery::Top { count: 1_000 }).unwrap();
    let entry = |row| match row {
        BoardRow::Entry(entry) => entry,
        other => panic!("{other:?}"),
    };
    answer.rows.into_iter().map(entry).collect()
}

fn server_scope(url: &str) -> Scope {
    Scope::Server(ServerUrl::parse(url).unwrap())
}

#[tokio::test]
async fn restored_state_equals_the_lost_one() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut lost = open(&dir.path().join("lost"));
    history(&mut lost, &database).await;
    let tables = read(&database).await;

    let restored = restore(&database, &dir.path().join("state")).await.unwrap();
    assert!(restored.directory.before.is_none() && !dir.path().join("state.restoring").exists());
    let report = restored.report;
    assert_eq!((report.rejected, &*report.rejected_rows), (0, &[][..]));
    assert_eq!((report.games, report.maps, report.servers, report.tags, report.servers_greylisted), (2, 3, 6, 3, 1));
    let weeks: Vec<String> = (1..4).map(|n| week_label(week_at(MONDAY_MS + n * WEEK_MS))).collect();
    assert_eq!((&report.weeks, &report.open_weeks[..], report.weeks_left), (&weeks, &weeks[2..], 1));
    assert!(report.players_online > 10 && report.ratings_published > 10, "{report:?}");
    let mut state = open(&dir.path().join("state"));
    assert_eq!(state.engine.model().now_ms(), lost.engine.model().now_ms());
    assert_eq!((state.engine.model().archive_id(), state.engine.model().resync_position()), (Some(77), None));
    assert_eq!(state.store.outbox_len(), 0, "there is nothing to archive");
    state.handle(Event::Tick { now_ms: lost_now(&lost) }).unwrap();
    state.commit().unwrap();
    assert_eq!(state.store.outbox_len(), 0, "the boards of closed weeks have been published");

    // Rows, positions, steps, maps and ranks.
    let (found, wanted) = (values(&mut state), values(&mut lost));
    assert_eq!(found.len(), 18);
    for (key, wanted) in &wanted {
        assert_eq!(&found[key], wanted, "{key:?}");
    }
    let best = |state: &State| -> Vec<_> {
        (1..7).map(|server| state.store.best_after(ServerKey(server), None, usize::MAX).unwrap()).collect()
    };
    let (found, wanted) = (best(&state), best(&lost));
    assert_eq!(found, wanted);
    assert!(wanted.iter().flatten().any(|(_, best)| best.top_three()[0].len() == 3));
    assert_archived(&mut state, &database).await;

    // Boards, of servers and of groups.
    let published = |state: &State| state.engine.model().top_boards(None, None, 10_000);
    for week in (1..4).map(|n| week_at(MONDAY_MS + n * WEEK_MS)) {
        for ranking in Ranking::ALL {
            let scopes = SERVERS.map(|(url, _)| server_scope(url));
            for scope in scopes.into_iter().chain([Scope::Game("q3ut4".into())]) {
                let wanted = board(&mut lost, scope.clone(), week, ranking);
                assert!(!wanted.is_empty());
                assert_eq!(board(&mut state, scope.clone(), week, ranking), wanted, "{scope:?} {week} {ranking:?}");
            }
            for scope in [Scope::Game("baseq3".into()), Scope::Tag("ctf".into())] {
                let scores = |board: Vec<BoardEntryView>| -> BTreeMap<String, f64> {
                    board.into_iter().map(|entry| (entry.name, entry.at.score)).collect()
                };
                // Ratings of closed weeks are those that were published while they ran.
                if ranking == Ranking::Elo && week != week_at(MONDAY_MS + 3 * WEEK_MS) {
                    continue;
                }
                let found = scores(board(&mut state, scope.clone(), week, ranking));
                for (name, score) in scores(board(&mut lost, scope.clone(), week, ranking)) {
                    assert_eq!(found[&name], score, "{scope:?} {week} {ranking:?} {name}");
                }
            }
        }
    }
    assert!(!published(&state).is_empty());

    // Servers.
    for (found, wanted) in state.engine.model().servers().zip(lost.engine.model().servers()) {
        assert_eq!(found, wanted);
        let url = ServerUrl::parse(&wanted.public.url).unwrap();
        let found = state.engine.model().server_detail(&state.store, &url).unwrap();
        let wanted = lost.engine.model().server_detail(&lost.store, &url).unwrap();
        assert_eq!(
            (found.public.series, found.public.maps, found.public.total_points),
            (wanted.public.series, wanted.public.maps, wanted.public.total_points)
        );
    }
    assert_eq!(state.engine.model().servers().count(), 5);
    for player in (1..60).map(PlayerKey) {
        let record = |state: &State| state.store.player_record(player).unwrap();
        assert_eq!(record(&state), record(&lost));
    }

    // Keys continue behind the last ones.
    for it in [&mut state, &mut lost] {
        let mut snapshot = scans::snapshot(lost_now(it) + MINUTE_MS, [("new", 1)]);
        (snapshot.game, snapshot.map) = ("new game".into(), "new map".into());
        scans::apply_snapshot(it, "quake3://new:27960", snapshot);
        it.commit().unwrap();
    }
    let new = |state: &State| {
        let jobs = state.engine.model().servers().find(|server| server.public.url == "quake3://new:27960").unwrap();
        (jobs.public.key, state.engine.model().players(&state.store, "new").unwrap())
    };
    assert_eq!(new(&state), new(&lost));
    assert_same(&read(&database).await, &tables, "a restore only reads");
}

fn lost_now(state: &State) -> i64 {
    state.engine.model().now_ms()
}

/// Rows of weeks before one.
fn rows_before(tables: &Tables, week: WeekKey) -> BTreeMap<&'static str, Vec<Vec<String>>> {
    let of_weeks = ["server_week", "player_week", "map_week", "board_step"];
    let is_before = |row: &&Vec<String>| row[0].parse::<u32>().unwrap() < week.0;
    of_weeks.map(|name| (name, tables[name].iter().filter(is_before).cloned().collect())).into_iter().collect()
}

#[tokio::test]
async fn removed_players_are_not_known_after_a_restore() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut lost = open(&dir.path().join("lost"));
    play(&mut lost, MONDAY_MS, 40, 0);
    leave(&mut lost, MONDAY_MS + 40 * MINUTE_MS);
    let [from, into] = [1, 2].map(PlayerSelector::Key);
    let State { engine, store } = &mut lost;
    engine.merge_players(store, "baseq3", &from, &into).unwrap();
    archive(&mut lost, &database).await;
    let known = lost.engine.model().status().players_known;
    assert_eq!(known + 1, u64::from(lost.engine.model().last_keys().player));
    restore(&database, &dir.path().join("state")).await.unwrap();
    assert_eq!(open(&dir.path().join("state")).engine.model().status().players_known, known);
}

#[tokio::test]
async fn play_after_a_restore_equals_play_without_a_loss() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut kept = open(&dir.path().join("kept"));
    history(&mut kept, &database).await;
    // For hours nobody plays, which the mean of the day shows.
    (200..500).step_by(30).for_each(|minute| leave(&mut kept, MONDAY_MS + 3 * WEEK_MS + minute * MINUTE_MS));
    let left_ms = kept.engine.model().now_ms();
    archive(&mut kept, &database).await;
    restore(&database, &dir.path().join("state")).await.unwrap();
    let mut state = open(&dir.path().join("state"));
    let before = read(&database).await;

    // The rest of the week, its closing, and the beginning of the next one.
    for it in [&mut state, &mut kept] {
        play(it, left_ms + 20 * MINUTE_MS, 50, 3);
        leave(it, left_ms + 80 * MINUTE_MS);
    }
    archive(&mut state, &database).await;
    let unchanged = rows_before(&before, week_at(left_ms));
    assert!(unchanged["player_week"].len() > 60);
    assert_eq!(rows_before(&read(&database).await, week_at(left_ms)), unchanged, "closed weeks do not change");
    assert_archived(&mut state, &database).await;
    for it in [&mut state, &mut kept] {
        it.close_due_weeks(MONDAY_MS + 4 * WEEK_MS + MINUTE_MS).unwrap();
        play(it, MONDAY_MS + 4 * WEEK_MS + 10 * MINUTE_MS, 50, 9);
    }
    archive(&mut state, &database).await;
    assert_archived(&mut state, &database).await;
    assert_eq!(rows_before(&read(&database).await, week_at(left_ms)), unchanged, "closed weeks do not change");

    let other = Database::new().await;
    other.migrate().await;
    archive(&mut kept, &other).await;
    let (mut found, mut wanted) = (read(&database).await, read(&other).await);
    // The other archive has no earlier weeks.
    let oldest = week_at(MONDAY_MS + 2 * WEEK_MS);
    for table in ["server_week", "player_week", "map_week", "board_step", "map_total", "week"] {
        let rows = found.get_mut(table).unwrap();
        rows.retain(|row| row[0].parse::<u32>().unwrap() >= oldest.0);
    }
    // Nor the ranks in them.
    let without_previous = |mut row: Vec<String>| {
        if row[0] == oldest.to_string() {
            let at = row.len() - 2;
            row[at..].fill("NULL".to_owned());
        }
        row
    };
    let server_weeks = found.remove("server_week").unwrap();
    found.insert("server_week", server_weeks.into_iter().map(without_previous).collect());
    found.get_mut("player_total").unwrap().retain(|row| row[1].parse::<u32>().unwrap() >= oldest.0);
    // Nor the sessions that the state does not keep.
    let end_ms = |row: &Vec<String>| row[1].parse::<i64>().unwrap();
    let oldest_ms = wanted["player_session"].iter().map(end_ms).min().unwrap();
    assert!(wanted["player_session"].len() > 50);
    found.get_mut("player_session").unwrap().retain(|row| end_ms(row) >= oldest_ms);
    assert!(wanted["best_position"].len() > 50);
    // A series lacks the samples of the ten minutes of the loss, and its means were rounded.
    assert_eq!(found.remove("server_series").unwrap().len(), wanted.remove("server_series").unwrap().len());
    for (url, _) in SERVERS {
        let series = |state: &State| {
            let url = ServerUrl::parse(url).unwrap();
            state.engine.model().server_detail(&state.store, &url).unwrap().public.series.unwrap()
        };
        let (found, wanted) = (series(&state), series(&kept));
        let close = |found: &[Option<f64>], wanted: &[Option<f64>], lost: usize| {
            let differ = found.iter().zip(wanted).filter(|(found, wanted)| match (found, wanted) {
                (Some(found), Some(wanted)) => (found - wanted).abs() > 0.05 * wanted + 0.3,
                _ => found != wanted,
            });
            assert!(found.len() == wanted.len() && differ.count() <= lost, "{url}: {found:?}, {wanted:?}");
        };
        close(&found.ten_minutes, &wanted.ten_minutes, 0);
        close(&found.hours, &wanted.hours, 1);
        close(&found.days, &wanted.days, 0);
        close(&found.weeks, &wanted.weeks, 0);
        assert!(wanted.weeks.iter().flatten().count() >= 3 && wanted.hours.iter().flatten().count() > 6);
        assert_eq!(found.ranks, wanted.ranks);
    }
    // A resync also writes weeks of servers without players.
    for tables in [&mut found, &mut wanted] {
        tables
            .get_mut("server_week")
            .unwrap()
            .retain(|row| row[4..].iter().any(|value| !["0", "1", "NULL"].contains(&&**value)));
    }
    assert_same(&found, &wanted, "after a restore");
    let (found, wanted) = (values(&mut state), values(&mut kept));
    assert_eq!(found, wanted);
}

/// How far the closing of a week is in the archive.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ClosedInArchive {
    No,
    /// One server is closed and ranked.
    OneServer,
    /// All servers are closed, none is ranked.
    WithoutRanks,
}

/// The restored state closes a week that has ended.
#[tokio::test]
async fn week_that_was_not_closed_is_closed_after_the_restore() {
    for closed in [ClosedInArchive::No, ClosedInArchive::OneServer, ClosedInArchive::WithoutRanks] {
        let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
        database.migrate().await;
        let mut kept = open(&dir.path().join("kept"));
        history(&mut kept, &database).await;
        let week = week_at(MONDAY_MS + 3 * WEEK_MS);
        let monday_ms = MONDAY_MS + 4 * WEEK_MS;
        leave(&mut kept, monday_ms - 10 * MINUTE_MS);
        archive(&mut kept, &database).await;
        kept.close_due_weeks(monday_ms + MINUTE_MS).unwrap();
        match closed {
            ClosedInArchive::No => {}
            ClosedInArchive::OneServer => {
                kept.commit().unwrap();
                let jobs = kept.engine.archive_jobs(&kept.store, None, None, 100_000, 1_000_000).unwrap();
                let is_of_first = |job: &ArchiveJob| match job {
                    ArchiveJob::Server(server) => server.key == ServerKey(1),
                    ArchiveJob::Week(of) => of.server == ServerKey(1),
                    _ => false,
                };
                let chosen: Vec<ArchiveJob> = jobs.into_iter().filter_map(|(_, job)| job).filter(is_of_first).collect();
                assert_eq!(chosen.len(), 2);
                let mut archive = Archive::connect(&database.settings()).await.unwrap();
                archive.write(&chosen).await.unwrap();
                archive.close().await;
            }
            ClosedInArchive::WithoutRanks => {
                archive(&mut kept, &database).await;
                let before = week.0 - 1;
                database.run(&format!("UPDATE server_week SET server_rank = NULL WHERE week = {week}")).await;
                database
                    .run(&format!(
                        "UPDATE server SET server_rank_week = {before}, server_rank = (SELECT sw.server_rank FROM \
                         server_week sw WHERE sw.week = {before} AND sw.server = server.server) \
                         WHERE server_rank_week = {week}"
                    ))
                    .await;
            }
        }
        let restored = restore(&database, &dir.path().join("state")).await.unwrap();
        assert_eq!(restored.report.open_weeks, [week_label(week)], "{closed:?}");
        let mut state = open(&dir.path().join("state"));
        state.close_due_weeks(monday_ms + MINUTE_MS).unwrap();
        archive(&mut state, &database).await;
        assert_archived(&mut state, &database).await;
        let other = Database::new().await;
        other.migrate().await;
        archive(&mut kept, &other).await;
        // Old weeks are deleted when nothing of them is in the outbox.
        [&mut state, &mut kept].into_iter().for_each(|it| it.close_due_weeks(monday_ms + MINUTE_MS).unwrap());
        let (found, wanted) = (values(&mut state), values(&mut kept));
        assert!(found[&(week, ServerKey(1))].server_rank.is_some());
        assert_eq!(found, wanted, "{closed:?}");
        let ranks = |state: &State| state.engine.model().servers().map(|server| server.public.rank).collect::<Vec<_>>();
        assert_eq!(ranks(&state), ranks(&kept));
    }
}

/// The rows of a server may be newer than its other values. What is in them must not be applied again
/// from the scan log.
#[tokio::test]
async fn scans_that_are_in_the_rows_are_not_applied_again() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut lost = open(&dir.path().join("lost"));
    history(&mut lost, &database).await;
    let from_ms = MONDAY_MS + 3 * WEEK_MS + 180 * MINUTE_MS;
    play(&mut lost, from_ms, 10, 40);
    let jobs = lost.engine.archive_jobs(&lost.store, None, None, 100_000, 1_000_000).unwrap();
    let weeks: Vec<ArchiveJob> =
        jobs.into_iter().filter_map(|(_, job)| job).filter(|job| matches!(job, ArchiveJob::Week(_))).collect();
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    archive.write(&weeks).await.unwrap();
    archive.close().await;
    restore(&database, &dir.path().join("state")).await.unwrap();
    let state = open(&dir.path().join("state"));
    for (url, _) in SERVERS {
        let url = ServerUrl::parse(url).unwrap();
        let last_ms = from_ms + 8 * MINUTE_MS;
        assert!(
            !state.engine.model().is_newer(&url, last_ms) && state.engine.model().is_newer(&url, last_ms + 1),
            "{url}"
        );
    }
    assert_eq!(state.engine.model().now_ms(), lost.engine.model().now_ms());
}

/// A position that was the fourth becomes one of the three best.
#[tokio::test]
async fn reopened_week_shows_best_positions_of_other_weeks() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let settings = EngineSettings { keep_weeks: 4, ..settings() };
    let mut kept = open_with(&dir.path().join("kept"), settings.clone());
    history(&mut kept, &database).await;
    leave(&mut kept, MONDAY_MS + 3 * WEEK_MS + 200 * MINUTE_MS);
    kept.close_due_weeks(MONDAY_MS + 4 * WEEK_MS + MINUTE_MS).unwrap();
    archive(&mut kept, &database).await;
    restore_with(&database, &dir.path().join("state"), settings.clone()).await.unwrap();
    let mut state = open_with(&dir.path().join("state"), settings);
    let best = |state: &State| {
        let all = (1..60).flat_map(|player| (1..4).map(move |server| (ServerKey(server), PlayerKey(player))));
        all.map(|(server, player)| state.store.best(server, player).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(best(&state), best(&kept));
    let week = week_at(MONDAY_MS + 2 * WEEK_MS);
    for it in [&mut state, &mut kept] {
        it.engine.set_close_limit(0);
        assert!(it.engine.reopen_week(week).unwrap());
        it.close_due_weeks(it.engine.model().now_ms()).unwrap();
    }
    archive(&mut state, &database).await;
    let other = Database::new().await;
    other.migrate().await;
    archive(&mut kept, &other).await;
    assert_eq!(values(&mut state), values(&mut kept));
    assert_archived(&mut state, &database).await;
}

/// With `elo.carry_over`, ratings of weeks that are in MySQL only are carried over, too.
#[tokio::test]
async fn ratings_of_older_weeks_are_carried_over() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut settings = settings();
    settings.rules.elo.carry_over = true;
    let mut kept = open_with(&dir.path().join("kept"), settings.clone());
    let duel = |state: &mut State, week: i64, names: [&'static str; 2]| {
        let from_ms = MONDAY_MS + week * WEEK_MS + 10 * MINUTE_MS;
        for (minute, points) in [(0, [3, 1]), (2, [9, 5]), (4, [0, 0])] {
            let players = names.into_iter().zip(points);
            scans::apply_snapshot(state, SERVERS[0].0, scans::snapshot(from_ms + minute * MINUTE_MS, players));
        }
        scans::apply_snapshot(state, SERVERS[0].0, scans::snapshot::<String>(from_ms + 6 * MINUTE_MS, []));
        state.close_due_weeks(MONDAY_MS + (week + 1) * WEEK_MS + MINUTE_MS).unwrap();
    };
    duel(&mut kept, 0, ["Visor", "Anarki"]);
    archive(&mut kept, &database).await;
    for week in 1..4 {
        duel(&mut kept, week, ["Hunter", "Klesk"]);
        archive(&mut kept, &database).await;
    }
    restore_with(&database, &dir.path().join("state"), settings.clone()).await.unwrap();
    let mut state = open_with(&dir.path().join("state"), settings);
    for it in [&mut state, &mut kept] {
        duel(it, 4, ["Visor", "Anarki"]);
    }
    let week = week_at(MONDAY_MS + 4 * WEEK_MS);
    let elo = |state: &mut State| board(state, server_scope(SERVERS[0].0), week, Ranking::Elo);
    assert_eq!(elo(&mut state), elo(&mut kept));
    assert!(elo(&mut kept)[0].at.score > 1_012.5, "a second victory");
}

#[tokio::test]
async fn rows_that_do_not_fit_are_left_out_and_named() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let mut lost = open(&dir.path().join("lost"));
    history(&mut lost, &database).await;
    let week = week_at(MONDAY_MS + 3 * WEEK_MS);
    let players = database.rows(&format!("SELECT player FROM player_week WHERE week = {week} AND server = 1")).await;
    let row = |n: usize| format!("week = {week} AND server = 1 AND player = {}", players[n][0]);
    let named = |n: usize| format!("player_week week={week} server=1 player={}: ", players[n][0]);
    let best = database.rows("SELECT server, player FROM best_position LIMIT 1").await.remove(0);
    let maps = database.rows(&format!("SELECT map FROM map_week WHERE week = {week} AND server = 2")).await;
    for sql in [
        format!("UPDATE player_week SET time_reached_after_ms = NULL WHERE {}", row(0)),
        format!("UPDATE player_week SET points_est = points - 1 WHERE {}", row(1)),
        "ALTER TABLE player_week MODIFY elo DOUBLE NULL".to_owned(),
        format!("UPDATE player_week SET elo = NULL WHERE {}", row(2)),
        format!(
            "INSERT INTO player_week (week, server, player, measured_ms, starts, time_ms, points, elo, elo_rounds, clq1, clq2, time_reached_after_ms) \
                 VALUES ({week}, 1, 4000, 0, 1, 60000, 0, 1000, 0, 0, 0, 1)"
        ),
        "UPDATE server_series SET hours = X'0102' WHERE server = 2".to_owned(),
        "UPDATE server SET map = 99 WHERE server = 3".to_owned(),
        format!("INSERT INTO server_week (week, server, player_ms, closed) VALUES ({}, 50, 5, 1)", week.0 - 1),
        "INSERT INTO server_screening VALUES (1, 'no_such_check', 5)".to_owned(),
        format!(
            "UPDATE map_week SET player_ms = 18000000000000000000 WHERE week = {week} AND server = 2 AND map = {}",
            maps[0][0]
        ),
        format!(
            "UPDATE best_position SET position = -3 WHERE server = {} AND player = {} AND ordinal = 1 AND ranking = 'clq1'",
            best[0], best[1]
        ),
    ] {
        database.run(&sql).await;
    }
    let report = restore(&database, &dir.path().join("state")).await.unwrap().report;
    let wanted = [
        named(0) + "time_reached_after_ms is NULL",
        named(1) + "points_est",
        named(2) + "elo is NULL",
        format!("player_week week={week} server=1 player=4000: the player is not in table player"),
        "server_series server=2: a series has a wrong length".to_owned(),
        "server server=3: the map is not in table map".to_owned(),
        format!("server_week week={} server=50: the server is not in table server", week.0 - 1),
        "server_screening server=1 reason=no_such_check: the reason is not known".to_owned(),
        format!("map_week week={week} server=2 map={}: a time is too long", maps[0][0]),
        format!("best_position server={} player={}: position has a value", best[0], best[1]),
    ];
    assert_eq!(report.rejected, wanted.len() as u64, "{:#?}", report.rejected_rows);
    for want in &wanted {
        assert!(report.rejected_rows.iter().any(|row| row.starts_with(want)), "{want}: {:#?}", report.rejected_rows);
    }
    database.run(&format!("UPDATE map_week SET player_ms = 0 WHERE week = {week} AND server = 2")).await;
    assert_eq!(report.open_weeks, [week_label(week)], "closed weeks stay closed");
    // The state works without them. New keys are larger than all that were used.
    let mut state = open(&dir.path().join("state"));
    play(&mut state, MONDAY_MS + 3 * WEEK_MS + 400 * MINUTE_MS, 40, 1);
    let now_ms = state.engine.model().now_ms();
    scans::apply_snapshot(&mut state, SERVERS[0].0, scans::snapshot(now_ms + 1, [("new", 1)]));
    state.commit().unwrap();
    assert_eq!(state.engine.model().players(&state.store, "new").unwrap()[0].player_key, 4_001);
    let mut snapshot = scans::snapshot(state.engine.model().now_ms() + MINUTE_MS, [("new", 1)]);
    snapshot.map = "new map".to_owned();
    scans::apply_snapshot(&mut state, SERVERS[0].0, snapshot);
    archive(&mut state, &database).await;
    assert_eq!(database.value("SELECT map FROM map WHERE name = 'q3dm17'").await, "100");
    assert_eq!(database.value("SELECT map FROM map WHERE name = 'new map'").await, "101");
    // Keys without a name are not written by a resync.
    database.run("DELETE FROM clq_state").await;
    archive(&mut state, &database).await;
    assert_eq!(database.value("SELECT GROUP_CONCAT(map) FROM map").await, "1,2,3,100,101");
}

#[tokio::test]
async fn archive_that_cannot_be_restored_is_refused_and_nothing_changes() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    let state_dir = dir.path().join("state");
    let refused = async |database: &Database, want: &str| {
        let error = restore(database, &state_dir).await.unwrap_err().to_string();
        assert!(error.contains(want), "{want}: {error}");
        assert!(!state_dir.exists() && !dir.path().join("state.restoring").exists(), "{want}");
    };
    refused(&database, "has no clqd tables yet; run `clqd migrate`").await;
    database.migrate().await;
    refused(&database, "there is nothing to restore").await;
    let mut lost = open(&dir.path().join("lost"));
    history(&mut lost, &database).await;
    drop(lost);

    for (change, undo, want) in [
        (
            "UPDATE clq_schema_version SET version = 99",
            "UPDATE clq_schema_version SET version = 10",
            "schema version 99",
        ),
        (
            "UPDATE clq_schema_version SET version = 3",
            "UPDATE clq_schema_version SET version = 10",
            "run `clqd migrate`",
        ),
        (
            "UPDATE week SET start_ms = start_ms + 3600000",
            "UPDATE week SET start_ms = start_ms - 3600000",
            "is not a week of time zone \"UTC\"",
        ),
        (
            "UPDATE player SET game = 9 WHERE player = 3",
            "UPDATE player SET game = 1 WHERE player = 3",
            "player player=3: game 9 is not in table game",
        ),
        (
            "UPDATE server SET url = 'quake3://' WHERE server = 2",
            "UPDATE server SET url = 'quake3://b:27960' WHERE server = 2",
            "server server=2: server URL \"quake3://\"",
        ),
        (
            "UPDATE server SET class = 9 WHERE server = 2",
            "UPDATE server SET class = 1 WHERE server = 2",
            "class 9 is not one of 1 to 7",
        ),
        (
            "UPDATE server SET last_seen_ms = 9000000000000000000 WHERE server = 2",
            "UPDATE server SET last_seen_ms = 5 WHERE server = 2",
            "server server=2: 9000000000000000000 is not a time",
        ),
        (
            "INSERT INTO server_tag VALUES (4294967295, 'x', 0, NULL)",
            "DELETE FROM server_tag WHERE server = 4294967295",
            "server key 4294967295, and clqd restores keys up to 4000000",
        ),
        ("INSERT INTO game VALUES (0, 'zero')", "DELETE FROM game WHERE game = 0", "game game=0: 0 is not a key"),
    ] {
        database.run(change).await;
        refused(&database, want).await;
        database.run(undo).await;
    }
    let mut far = database.settings();
    far.url = "mysql://clqd@127.0.0.1:1/clqd".to_owned();
    let error = restore_from_archive(&far, &settings(), &state_dir, CACHE_BYTES, LIMITS, &mut |_, _| (), |_| ()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("cannot be reached"), "{error}");
    far.url = String::new();
    let error = restore_from_archive(&far, &settings(), &state_dir, CACHE_BYTES, LIMITS, &mut |_, _| (), |_| ()).await;
    assert!(error.unwrap_err().to_string().contains("no archive is configured"));
    assert!(matches!(clqd::engine::StateRestore::new(settings(), &Default::default()), Err(RestoreError::Empty)));
    restore(&database, &state_dir).await.unwrap();
}

#[tokio::test]
async fn failed_restore_leaves_the_old_state_and_can_be_repeated() {
    let (database, dir) = (Database::new().await, tempfile::tempdir().unwrap());
    database.migrate().await;
    let state_dir = dir.path().join("state");
    let (new, before) = (dir.path().join("state.restoring"), dir.path().join("state.before-restore"));
    let mut old = open(&state_dir);
    history(&mut old, &database).await;
    let wanted = values(&mut old);
    drop(old);

    // What a killed restore leaves is removed, also if this one fails, early or late.
    let last = database.value("SELECT MAX(player) FROM player").await;
    for sql in [
        format!("UPDATE player SET game = 9 WHERE player = {last}"),
        "ALTER TABLE best_position DROP COLUMN week".to_owned(),
    ] {
        database.run(&sql).await;
        std::fs::create_dir(&new).unwrap();
        std::fs::create_dir(new.join("blobs")).unwrap();
        ["db", "conf"].iter().for_each(|file| std::fs::write(new.join(file), "half of it").unwrap());
        restore(&database, &state_dir).await.unwrap_err();
        assert!(!new.exists() && !before.exists(), "{sql}");
        database.run(&format!("UPDATE player SET game = 1 WHERE player = {last}")).await;
    }
    let mut old = open(&state_dir);
    assert_eq!(values(&mut old), wanted, "the old state is unchanged");
    drop(old);

    database.run("DROP TABLE best_position").await;
    database.migrate().await;
    std::fs::create_dir(&new).unwrap();
    std::fs::write(new.join("db"), "half of it").unwrap();
    let restored = restore(&database, &state_dir).await.unwrap();
    assert_eq!(restored.directory.before.as_ref(), Some(&before));
    assert!(!new.exists());
    let rows = |values: &BTreeMap<_, WeekArchive>| values.values().map(|week| week.rows.clone()).collect::<Vec<_>>();
    assert_eq!(rows(&values(&mut open(&state_dir))), rows(&wanted));
    assert_eq!(values(&mut open(&before)), wanted);
    let again = restore(&database, &state_dir).await.unwrap_err().to_string();
    assert!(again.contains("state.before-restore") && again.contains("an earlier restore"), "{again}");
}

/// `cargo test --release --test archive restore -- --ignored --nocapture` prints the duration and the
/// memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement of some minutes"]
async fn restore_of_many_rows_is_measured() {
    const SERVERS: u64 = 1_000;
    let rows: u64 = std::env::var("CLQD_RESTORE_ROWS").map_or(200_000, |rows| rows.parse().unwrap());
    let options = ["--innodb-buffer-pool-size=1G", "--max-allowed-packet=16M"];
    let server = tokio::task::spawn_blocking(move || Server::start_with(&options)).await.unwrap();
    let database = Database::on_server(Arc::new(server)).await;
    database.migrate().await;
    let week = week_at(MONDAY_MS + WEEK_MS);
    let numbers = format!(
        "(SELECT a.n + 10000 * b.n AS n FROM clq_number a JOIN clq_number b WHERE b.n < {}) AS numbers WHERE n < {rows}",
        rows.div_ceil(10_000)
    );
    let columns = "measured_ms, starts, time_ms, time_est_ms, points, points_est, elo, elo_rounds, clq1, clq2";
    let values =
        "3600000 + n, 1, 3660000 + n, 7, n % 900, n % 900 + 0.125, 900 + n % 1400 / 7, 5, 60000 + n % 9999, n % 90 + 9";
    let reached = ["clq1", "clq2", "elo", "points", "time"].map(|name| format!("{name}_reached_after_ms")).join(", ");
    let orders = "clq1_order, clq2_order, elo_order, points_order, time_order";
    let order = |length: u32| vec![format!("UNHEX(LPAD(HEX(n + 1), {}, '0'))", 2 * length); 5].join(", ");
    let mut statements = vec![
        "INSERT INTO game VALUES (1, 'baseq3')".to_owned(),
        format!(
            "INSERT INTO player (player, game, name, display) SELECT n + 1, 1, CONCAT('player ', n), CONCAT('^1player ', n) FROM {numbers}"
        ),
        format!(
            "INSERT INTO server (server, url, hostname, game, slots, class, missed, players, assumed_players, total_points, added_ms, \
             server_rank, server_rank_week, removed) SELECT n + 1, CONCAT('quake3://10.0.', n DIV 250, '.', n % 250, ':27960'), '', 1, 16, 1, 0, \
             0, 0, 0, {MONDAY_MS}, n + 1, {}, 0 FROM clq_number WHERE n < {SERVERS}",
            week.0 - 1
        ),
    ];
    for (week, closed, length) in [(week.0 - 1, 1, 4), (week.0, 0, 18)] {
        let start_ms = Calendar::default().week_start_ms(WeekKey(week));
        let (label, end_ms) = (week_label(WeekKey(week)), start_ms + WEEK_MS);
        statements.extend([
            format!("INSERT INTO week VALUES ({week}, '{label}', {start_ms}, {end_ms})"),
            format!(
                "INSERT INTO server_week (week, server, server_rank, player_ms, closed) SELECT {week}, n + 1, \
                 IF({closed}, n + 1, NULL), 5000, {closed} FROM clq_number WHERE n < {SERVERS}"
            ),
            format!(
                "INSERT INTO player_week (week, server, player, {columns}, {orders}, {reached}) \
                 SELECT {week}, 1 + n % {SERVERS}, n + 1, {values}, {}, n % 9999, n % 9999, n % 9999, n % 9999, n % 9999 FROM {numbers}",
                order(length)
            ),
        ]);
    }
    for ranking in ["clq1", "clq2", "elo"] {
        statements.push(format!(
            "INSERT INTO best_position SELECT 1 + n % {SERVERS}, n + 1, '{ranking}', 1, n + 1, {} FROM {numbers}",
            week.0 - 1
        ));
    }
    for statement in statements {
        database.run(&statement).await;
    }
    let (dir, began) = (tempfile::tempdir().unwrap(), Instant::now());
    let mut last = String::new();
    let mut progress = |table: &str, rows: u64| {
        if last != table {
            println!("{:6.1} s: {table}, {rows} rows", began.elapsed().as_secs_f64());
            last = table.to_owned();
        }
    };
    let state = dir.path().join("state");
    let limits = RestoreLimits::default();
    let restored =
        restore_from_archive(&database.settings(), &settings(), &state, 256 << 20, limits, &mut progress, |_| ())
            .await
            .unwrap();
    let seconds = began.elapsed().as_secs_f64();
    assert_eq!((restored.report.player_rows, restored.report.best_players), (2 * rows, rows));
    let memory = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = memory.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_owned();
    println!(
        "{rows} players, 2 weeks of {rows} rows, {rows} players with best positions: {seconds:.1} s, {:.0} rows/s; {peak}; {} MB",
        (6 * rows) as f64 / seconds,
        restored.directory.summary.bytes >> 20
    );
}
