//! With `store.keep_players_weeks`, the state drops what it has of players who were not seen for long. When they
//! return, they have the same keys, and MySQL has the same best positions as if nothing had been dropped.

use std::path::Path;

use crate::database::Database;
use crate::restore::{verify_objects, write_pending};
use crate::scans;
use crate::silent::NO_LIMIT;
use crate::state_source::StateSource;
use clqd::archive::Archive;
use clqd::board::window::{Shape, WindowSpec, WindowTypes};
use clqd::engine::{EngineSettings, Event, StateReader};
use clqd::model::calendar::{Calendar, WEEK_MS};
use clqd::model::outbox::ArchiveStep;
use clqd::model::{ArchiveJob, GameKey, PlayerKey, ServerKey, WindowKey, WindowType};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::PlayerSelector;

const MONDAY_MS: i64 = 1_763_337_600_000; // 2025-11-17 00:00 UTC
const MINUTE_MS: i64 = 60_000;
const WEEKS: i64 = 14;
const SERVERS: [&str; 2] = ["quake3://10.0.0.1:27960", "quake3://10.0.0.2:27960"];

fn open(dir: &Path, keep_players_weeks: u32) -> State {
    let all_time = WindowSpec { kind: WindowType::ALL_TIME, shape: Shape::AllTime, keep: 0 };
    let windows = WindowTypes::new(Calendar::default(), [all_time]).unwrap();
    let settings = EngineSettings {
        windows,
        archive_enabled: true,
        keep_weeks: 1,
        keep_players_weeks,
        ..EngineSettings::default()
    };
    State::open(dir, StoreSettings { cache_bytes: 16 << 20, create: true }, settings).unwrap()
}

/// Who plays in a week. `old` returns after five weeks, `guest` and `visitor` never, `seldom` every third week.
fn names(week: i64) -> Vec<&'static str> {
    let mut names = vec!["always", "often", "some"];
    names.extend([(!(3..8).contains(&week)).then_some("old"), (week == 1).then_some("guest")].into_iter().flatten());
    names.extend([(week % 3 == 0).then_some("seldom"), (week == 2).then_some("visitor")].into_iter().flatten());
    names
}

/// Some rounds in which everybody's results differ from week to week, and then empty lists.
fn play(state: &mut State, week: i64) {
    let from_ms = MONDAY_MS + week * WEEK_MS;
    for minute in (0..120).step_by(2) {
        for (server, url) in (0..).zip(SERVERS) {
            let t_ms = from_ms + minute * MINUTE_MS + server;
            let points = |n: i64| (1 + (n * 5 + week * 3 + server) % 7) * (minute % 20) / 2;
            let list = names(week).into_iter().zip(0..).map(|(name, n)| (name.to_owned(), points(n)));
            scans::apply_snapshot(state, url, scans::snapshot(t_ms, list));
        }
    }
    for url in SERVERS {
        scans::apply_snapshot(state, url, scans::snapshot::<String>(from_ms + 130 * MINUTE_MS, []));
    }
    state.close_due_weeks(from_ms + WEEK_MS + MINUTE_MS).unwrap();
}

/// Archives what is pending. Returns the weeks that were written.
async fn archive(state: &mut State, database: &Database) -> Vec<ArchiveJob> {
    let mut archive = Archive::connect(&database.settings()).await.unwrap();
    let mut written = write_pending(state, &mut archive).await;
    written.retain(|job| matches!(job, ArchiveJob::Week(_)));
    archive.close().await;
    written
}

/// Ticks, in which old players are dropped.
fn tick(state: &mut State) {
    let now_ms = state.engine.model().now_ms();
    (0..3).for_each(|_| state.handle(Event::Tick { now_ms }).unwrap());
    state.commit().unwrap();
}

fn key_of(state: &State, name: &str) -> PlayerKey {
    let game = state.store.players_named(name).unwrap().remove(0).0;
    state.store.player(game, name).unwrap().unwrap().0
}

/// Servers with best positions, and whether there is a row of the all-time window.
fn kept(state: &State, name: &str) -> (usize, bool) {
    let player = key_of(state, name);
    let all_time = WindowKey { kind: WindowType::ALL_TIME, index: 0 };
    let row = state.store.rows(all_time, ServerKey(1)).unwrap().into_iter().any(|(of, _)| of == player);
    assert_eq!(state.store.player_window(all_time, player).unwrap().is_some(), row);
    (state.store.servers_with_best(player).unwrap().len(), row)
}

#[tokio::test]
async fn dropped_players_return_with_their_keys_and_archived_positions() {
    let dir = tempfile::tempdir().unwrap();
    let databases = [Database::new().await, Database::new().await];
    let mut states = [open(&dir.path().join("all"), 0), open(&dir.path().join("some"), 3)];
    for (state, database) in states.iter_mut().zip(&databases) {
        database.migrate().await;
        let mut archive = Archive::connect(&database.settings()).await.unwrap();
        let id = scans::claim_archive(state, archive.state_id().await.unwrap(), 77);
        archive.write(&scans::resync(state)).await.unwrap();
        database.run(&format!("REPLACE INTO clq_state VALUES (1, {id})")).await;
        archive.close().await;
    }
    let best = "SELECT server, player, ranking, ordinal, position, week FROM best_position ORDER BY 1, 2, 3, 4";
    let mut keys = Vec::new();
    for week in 0..WEEKS {
        let mut written = Vec::new();
        for (state, database) in states.iter_mut().zip(&databases) {
            if week == 10 {
                // Of `old` the state knows the weeks since week 8, and of `visitor` none.
                for pair in [["old", "often"], ["visitor", "always"]] {
                    let [from, into] = pair.map(|name| PlayerSelector::Name(name.to_owned()));
                    state.engine.merge_players(&state.store, "baseq3", &from, &into).unwrap();
                    state.commit().unwrap();
                }
            }
            play(state, week);
            written = archive(state, database).await;
            tick(state);
        }
        assert_eq!(databases[1].rows(best).await, databases[0].rows(best).await, "week {week}");
        // What the state has dropped is no difference.
        let mut archive = Archive::connect_to_read(&databases[1].settings()).await.unwrap();
        for job in &written {
            let ArchiveJob::Week(job) = job else { unreachable!("they are weeks") };
            assert_eq!(
                archive.verify_weeks(job.week, &[job], GameKey(1)).await.unwrap().differences,
                [],
                "week {week}"
            );
        }
        archive.close().await;
        let [all, some] = &states;
        let of = |state: &State| ["old", "guest", "seldom", "always"].map(|name| kept(state, name));
        match week {
            2 => keys = ["old", "guest"].map(|name| key_of(some, name)).to_vec(),
            // The last row of `guest` is of week 1, that of `old` of week 2.
            4 => assert_eq!(of(some), of(all)),
            5 => assert_eq!(of(some), [(2, true), (0, false), (2, true), (2, true)]),
            6 => assert_eq!(of(some), [(0, false), (0, false), (2, true), (2, true)]),
            8 => {
                assert_eq!(of(some), [(2, true), (0, false), (2, true), (2, true)]);
                assert_eq!([key_of(all, "old"), key_of(some, "old")], [keys[0]; 2]);
                let old =
                    databases[1].rows(&format!("SELECT week FROM best_position WHERE player = {}", keys[0].0)).await;
                let oldest = Calendar::default().week(MONDAY_MS).0;
                assert!(old.iter().any(|row| row[0].parse::<u32>().unwrap() < oldest + 3), "{old:?}");
            }
            _ => {}
        }
    }
    let [all, some] = &states;
    assert_eq!(key_of(some, "guest"), keys[1]);
    for (from, into) in [("old", "often"), ("visitor", "always")] {
        assert_eq!(key_of(all, from), key_of(some, into), "they were merged");
    }
    let of_visitor = format!(
        "SELECT COUNT(*) FROM best_position WHERE player = {} AND week = {}",
        key_of(some, "always"),
        Calendar::default().week(MONDAY_MS).0 + 2
    );
    assert_ne!(databases[1].value(&of_visitor).await, "0", "positions of `visitor`");

    // Nor does a resend delete what only MySQL has.
    let [_, mut some] = states;
    let before = databases[1].rows(best).await;
    assert!(before.iter().any(|row| row[1] == keys[1].0.to_string()), "positions of `guest`");
    let mut archive = Archive::connect_to_read(&databases[1].settings()).await.unwrap();
    let (differences, _) = verify_objects(&some, &mut archive).await;
    archive.close().await;
    assert!(differences.iter().all(|it| it.table != "best_position"), "{differences:?}");
    // First it takes the archive over: this test has written it.
    for adopts in [true, false] {
        some.engine.apply_archive_step(ArchiveStep::Resync { adopts });
        let source = StateSource::new(some, 7, NO_LIMIT);
        assert_eq!(source.archive(&databases[1].settings()).await.fault, None);
        assert_eq!(databases[1].rows(best).await, before);
        some = source.into_state();
    }
}
