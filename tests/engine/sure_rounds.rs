//! Sure rounds (docs/rules.md section 4) and connected times (section 15), by hand-computed examples, with restarts.

use clqd::engine::{EngineSettings, Event};
use clqd::model::row::PlayerRow;
use clqd::scan_log;
use clqd::state::State;
use clqd::store::StoreSettings;
use serde_json::{Value, json};

const START_MS: i64 = 1_763_942_400_000;

/// Applies lists of Ann and Bob, and returns the rows of both, and how long the last list of the round was before its end at
/// most, ms. A list is seconds, map, points of Ann, points of Bob.
/// `restart`: after each list.
fn rows(lists: &[(i64, &str, Option<i64>, Option<i64>)], restart: bool) -> ([PlayerRow; 2], u64) {
    let entries = |ann: Option<i64>, bob: Option<i64>| {
        let named = [("Ann", ann), ("Bob", bob)];
        named.into_iter().filter_map(|(name, points)| Some(json!({"name": name, "points": points?}))).collect()
    };
    let lists = lists.iter().map(|&(second, map, ann, bob)| (second, map, entries(ann, bob)));
    let (rows, unseen_ms) = apply("quake3://10.0.0.1:27960", lists.collect(), restart);
    (["Ann", "Bob"].map(|name| rows.iter().find(|(of, _)| of == name).unwrap().1.clone()), unseen_ms)
}

fn apply(server: &str, lists: Vec<(i64, &str, Value)>, restart: bool) -> (Vec<(String, PlayerRow)>, u64) {
    let dir = tempfile::tempdir().unwrap();
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let open = || State::open(dir.path(), store, EngineSettings::default()).unwrap();
    let (mut state, mut unseen_ms) = (open(), 0);
    for (second, map, players) in lists {
        let line = json!({"t": START_MS + second * 1_000, "server": server, "game": "g", "map": map, "slots": 16,
                          "players": players});
        let (url, outcome) = scan_log::parse_scan(&line.to_string()).unwrap();
        state.handle(Event::Replayed { url, outcome }).unwrap();
        state.commit().unwrap();
        unseen_ms = state.engine.model().counts().rounds_unseen_ms_max.max(unseen_ms);
        if restart {
            drop(state);
            state = open();
        }
    }
    let week = clqd::model::calendar::week_label(state.engine.model().weeks()[0].week);
    let mut rows = Vec::new();
    let add = |_: &str, _: &str, name: &str, row: &PlayerRow, _: [Option<u32>; 5]| {
        rows.push((name.to_owned(), row.clone()));
        Ok::<(), clqd::engine::ViewError>(())
    };
    state.engine.model().export(&state.store, &week, add).unwrap();
    (rows, unseen_ms)
}

#[test]
fn round_is_sure_if_a_list_shows_its_end() {
    let some = |ann, bob| (Some(ann), Some(bob));
    // Seconds and points of the lists before the map changes, the time of the list after that, whether it is sure, and
    // the time from the last list to its end at most, s.
    let cases = [
        (vec![(0, some(1, 1)), (120, some(9, 5))], 240, false, 120),
        (vec![(0, some(1, 1)), (120, some(9, 5))], 135, true, 15),
        (vec![(0, some(1, 1)), (120, some(9, 5))], 136, false, 16),
        // Unchanged for 8 to 35 s.
        (vec![(100, some(9, 5)), (107, some(9, 5))], 240, false, 133),
        (vec![(100, some(9, 5)), (108, some(9, 5))], 240, true, 0),
        (vec![(100, some(9, 5)), (135, some(9, 5))], 240, true, 0),
        (vec![(100, some(9, 5)), (136, some(9, 5))], 240, false, 104),
        (vec![(100, some(9, 5)), (120, some(9, 6))], 240, false, 120),
        // Several rounds may have ended in a long gap.
        (vec![(100, some(9, 5)), (120, some(9, 5))], 840, true, 0),
        (vec![(100, some(9, 5)), (120, some(9, 5))], 841, false, 720),
        // Only the last two lists count.
        (vec![(100, some(9, 5)), (120, some(9, 5)), (140, some(9, 6))], 240, false, 100),
        // Nobody has points before the second of them.
        (vec![(100, some(0, 0)), (120, some(0, 0)), (240, some(4, 3))], 360, false, 120),
        // One has left: the rest is unchanged.
        (vec![(100, some(9, 5)), (120, (None, Some(5)))], 240, true, 0),
    ];
    for (lists, end, sure, unseen_s) in cases {
        for restart in [false, true] {
            let mut all: Vec<_> = lists.iter().map(|&(second, (ann, bob))| (second, "m1", ann, bob)).collect();
            all.push((end, "m2", Some(0), Some(0)));
            let (rows, unseen_ms) = rows(&all, restart);
            assert_eq!(unseen_ms, unseen_s * 1_000, "{all:?} {restart}");
            for row in rows {
                assert_eq!((row.elo_rounds, row.elo_rounds_sure), (1, u32::from(sure)), "{all:?} {restart}");
            }
        }
    }
}

#[test]
fn connected_time_tells_when_a_presence_began() {
    let list = |players: &[(&str, Option<i64>)]| -> Value {
        let entry = |(name, connected_ms): &(&str, Option<i64>)| match connected_ms {
            Some(ms) => json!({"name": name, "points": 1, "connected_ms": ms}),
            None => json!({"name": name, "points": 1}),
        };
        players.iter().map(entry).collect()
    };
    for (server, step_s) in [("source://10.0.0.1:27015", 1), ("quakeworld://10.0.0.1:27500", 60)] {
        let lists = vec![
            (0, "m", list(&[("first", Some(900_000))])),
            (
                120,
                "m",
                list(&[("first", Some(1_020_000)), ("known", Some(60_000)), ("long", Some(500_000)), ("no", None)]),
            ),
            (
                240,
                "m",
                list(&[("first", Some(1_140_000)), ("known", Some(180_000)), ("long", Some(620_000)), ("no", None)]),
            ),
        ];
        let (found, _) = apply(server, lists, true);
        let of = |name: &str| &found.iter().find(|(of, _)| of == name).unwrap().1;
        // The first list of a server says nothing about the time before it.
        assert_eq!((of("first").time_est_ms, of("first").time_connected_ms()), (300_000, 300_000));
        // 60 s and the half of a step, instead of half of the gap.
        let known = if step_s == 1 { 60_499 } else { 89_999 };
        assert_eq!((of("known").time_est_ms, of("known").time_connected_ms()), (180_000, 120_000 + known));
        // Contradicted by the list before, or not there.
        for name in ["long", "no"] {
            assert_eq!((of(name).time_est_ms, of(name).time_connected_ms()), (180_000, 180_000), "{name}");
            assert_eq!(of(name).time_est_error_ms(), of(name).time_connected_error_ms());
        }
        assert!(of("known").time_connected_error_ms() < of("known").time_est_error_ms());
    }
}
