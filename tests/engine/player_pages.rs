//! The page of a player: rows of thousands of servers, and the order of best positions.

use std::collections::BTreeSet;

use clqd::engine::{EngineSettings, PLAYER_WEEKS_MAX};
use clqd::model::{PlayerKey, Ranking, ServerUrl, Snapshot};
use clqd::state::State;
use clqd::store::StoreSettings;

use crate::scans;

const NOW_MS: i64 = 1_764_064_800_000;

const SERVERS: u32 = 2_000;

fn url(number: u32) -> String {
    format!("quake3://10.0.{}.{}:27960", number / 256, number % 256)
}

/// The player stays longer on servers with larger numbers.
#[test]
fn rows_of_a_player_are_ranked_in_bounded_parts_most_time_first() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), settings, EngineSettings::default()).unwrap();
    for stay_ms in [0, 100_000] {
        for number in 0..SERVERS {
            let others = (0..20).map(|n| (format!("p{}", (number + n) % 500), 5));
            let players = others.chain([("Visor".to_owned(), 5)]);
            let t_ms = NOW_MS + stay_ms + if stay_ms > 0 { i64::from(number) * 100 } else { 0 };
            scans::apply_snapshot(&mut state, &url(number), scans::snapshot(t_ms, players));
        }
    }
    state.commit().unwrap();
    let by_name = state.engine.model().players(&state.store, "Visor").unwrap().remove(0);
    let key = PlayerKey(by_name.player_key);
    let (mut seen, mut listed, mut skip) = (BTreeSet::new(), 0, 0);
    let mut shortest_ms = u64::MAX;
    loop {
        let page = state.engine.model().player(&state.store, key, skip).unwrap();
        assert!(page.weeks.len() <= PLAYER_WEEKS_MAX, "{}", page.weeks.len());
        listed += page.weeks.len();
        assert_eq!(page.weeks_more, u64::from(SERVERS) - listed as u64);
        assert!(page.weeks.iter().all(|week| week.time_ms <= shortest_ms), "most time first");
        shortest_ms = page.weeks.iter().map(|week| week.time_ms).min().unwrap();
        seen.extend(page.weeks.into_iter().map(|week| week.server));
        let Some(next) = page.weeks_next else { break };
        skip = next as usize;
    }
    assert_eq!((listed, seen.len()), (SERVERS as usize, SERVERS as usize), "every server once");
    assert_eq!(by_name.weeks, state.engine.model().player(&state.store, key, 0).unwrap().weeks);
    assert_eq!(state.engine.model().player(&state.store, key, 5_000).unwrap().weeks, []);
}

/// Three servers with 2,600 other players each: the positions on two of them are one answer.
#[test]
fn an_answer_reads_a_bounded_number_of_rows() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), settings, EngineSettings::default()).unwrap();
    for list in 0..52 {
        for server in 0..3 {
            let points = |n: i64| (list % 2) * (n % 7);
            let others = (0..100).map(|n| (format!("p{}", list / 2 * 100 + n), points(n)));
            let players = others.chain([("Visor".to_owned(), points(server + 1))]);
            let snapshot = Snapshot { slots: 128, ..scans::snapshot(NOW_MS + list * 60_000, players) };
            scans::apply_snapshot(&mut state, &url(server as u32), snapshot);
        }
    }
    state.commit().unwrap();
    let key = state.engine.model().players(&state.store, "Visor").unwrap()[0].player_key;
    let (mut skip, mut counts) = (0, Vec::new());
    loop {
        let page = state.engine.model().player(&state.store, PlayerKey(key), skip).unwrap();
        counts.push(page.weeks.len());
        assert_eq!(page.weeks_partial, [page.weeks[0].week.clone()], "some servers are on other pages");
        assert_eq!(page.weeks_more as usize, 3 - counts.iter().sum::<usize>());
        for week in &page.weeks {
            let server = ServerUrl::parse(&week.server).unwrap();
            for ranking in Ranking::ALL {
                let board = state.engine.model().top(&state.store, &server, ranking, None, 3_000).unwrap();
                let found = board.rows.iter().find(|row| row.player_key == key).map(|row| row.position);
                assert_eq!(week.positions.get(&ranking).map(|it| u64::from(*it)), found, "{ranking:?} on {server}");
            }
        }
        let Some(next) = page.weeks_next else { break };
        skip = next as usize;
    }
    assert_eq!(counts, [2, 1]);
}

/// The player is third on the first server and best on the last one.
#[test]
fn best_positions_of_a_player_are_listed_best_first() {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), settings, EngineSettings::default()).unwrap();
    for (t_ms, is_over) in [(NOW_MS, false), (NOW_MS + 60_000, true)] {
        for (number, points) in [(0, 10), (1, 30), (2, 50)] {
            let players = [("Visor", points), ("Xaero", 40), ("Sarge", 20)];
            // All points at 0: the round has ended.
            let players = players.map(|(name, points)| (name, if is_over { 0 } else { points }));
            scans::apply_snapshot(&mut state, &url(number), scans::snapshot(t_ms, players));
        }
    }
    state.close_due_weeks(NOW_MS + 8 * 86_400_000).unwrap();
    let player = state.engine.model().players(&state.store, "Visor").unwrap().remove(0);
    let positions: Vec<u32> = player.best.iter().map(|best| best.position).collect();
    assert_eq!(positions, [1, 1, 2, 2, 3, 3], "clq2 and elo on three servers");
}
