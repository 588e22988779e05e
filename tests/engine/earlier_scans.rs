//! Answers to scans that an earlier process began, and a scanner on another machine has made.

use crate::scans;
use clqd::engine::{EngineSettings, Event, Outcome};
use clqd::model::{ServerKey, ServerUrl};
use clqd::state::State;
use clqd::store::StoreSettings;

const START_MS: i64 = 1_763_942_400_000;

fn scanned(id: u64, outcome: Outcome) -> Event {
    Event::Scanned { server: ServerKey(1), id, sent_ms: None, outcome }
}

fn answer(t_ms: i64) -> Outcome {
    Outcome::Snapshot(scans::snapshot(t_ms, vec![("Visor", 3)]))
}

#[test]
fn answers_count_and_misses_do_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = StoreSettings { cache_bytes: 16 << 20, create: true };
    let mut state = State::open(dir.path(), store, EngineSettings::default()).expect("a state");
    state.engine.number_scans_from(1_000);
    let url = ServerUrl::parse("quake3://10.0.0.1:27960").expect("a URL");
    state.engine.add_server(url, Vec::new(), START_MS).expect("added");

    // Scans of this process that are not in flight, and misses of earlier ones, change nothing.
    state.handle(scanned(1_000, answer(START_MS + 1))).expect("a store");
    state.handle(scanned(999, Outcome::Miss { t_ms: START_MS + 2, reason: "timeout".into() })).expect("a store");
    assert_eq!(state.engine.model().status().counts.snapshots, 0);
    assert_eq!(state.engine.model().status().counts.misses, 0);

    let probe = state.engine.poll_probe(START_MS + 3).expect("the first scan is due");
    assert_eq!(probe.id, 1_000);
    let recorded = state.handle_and_record(ServerKey(1), scanned(999, answer(START_MS + 4))).expect("a store");
    assert!(recorded.is_some(), "a replay has the answer, too");
    assert_eq!(state.engine.model().status().players_online, 1);
    // The scan of this process goes on, and then the next one is due.
    assert!(state.engine.poll_probe(START_MS + 300_000).is_none());
    state.handle(scanned(probe.id, answer(START_MS + 5))).expect("a store");
    assert!(state.engine.poll_probe(START_MS + 300_000).is_some());
    assert_eq!(state.engine.model().status().counts.snapshots, 2);

    // Late ones are recognised before their times are moved forward, and so is one that is handed in again.
    let is_late = |id, after_ms, newest_ms| {
        let (t_ms, newest_ms) = (START_MS + 5 + after_ms, START_MS + newest_ms);
        state.engine.model().is_late(ServerKey(1), id, t_ms, newest_ms)
    };
    assert!(is_late(999, 0, 5) && is_late(999, 4_000, 5));
    assert!(!is_late(999, 4_001, 5) && !is_late(1_001, 0, 5));
    // Its time would be moved forward by more than 15 s.
    assert!(!is_late(999, 4_001, 19_006) && is_late(999, 4_001, 19_007));
}
