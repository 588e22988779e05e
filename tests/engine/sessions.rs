//! Sessions that no snapshot completes, and those that are too old: ticks, deleted days, a clock that was set back,
//! restarts, and an archive that lags behind. What a session is, is compared with the oracle elsewhere.

use std::path::Path;

use crate::scans;
use clqd::engine::{EngineSettings, Event, StateReader, StoreReader};
use clqd::model::calendar::{DAY_MS, MINUTE_MS};
use clqd::model::{ArchiveJob, OutboxKey, ServerKey, ServerUrl, SessionDay};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::PlayerSelector;
use clqd::view::session::SessionView;

const FROM_MS: i64 = 1_764_064_800_000; // Tuesday 2025-11-25 10:00 UTC
const SERVER: &str = "quake3://10.0.0.1:27960";

fn open_with(dir: &Path, settings: EngineSettings) -> State {
    State::open(dir, StoreSettings { cache_bytes: 16 << 20, create: true }, settings).unwrap()
}

fn open(dir: &Path) -> State {
    open_with(dir, EngineSettings::default())
}

fn see(state: &mut State, t_ms: i64, names: &[&str]) {
    scans::apply_snapshot(state, SERVER, scans::snapshot(t_ms, names.iter().map(|name| (*name, 5))));
    state.commit().unwrap();
}

fn tick(state: &mut State, now_ms: i64) {
    state.handle(Event::Tick { now_ms }).unwrap();
    state.commit().unwrap();
    while state.sweep().unwrap() {}
}

/// Name, length and whether it is open of each session on the server, the newest first.
fn sessions(state: &State) -> Vec<(String, i64, bool)> {
    let url = ServerUrl::parse(SERVER).unwrap();
    let found = state.engine.model().server_sessions(&state.store, &url, None, 100).unwrap();
    found.into_iter().map(|session| (session.name, session.end_ms - session.start_ms, session.open)).collect()
}

fn of(name: &str, length_ms: i64, open: bool) -> (String, i64, bool) {
    (name.to_owned(), length_ms, open)
}

fn exported(state: &State) -> usize {
    state.engine.model().export_sessions(&state.store, ServerKey(1)).unwrap().len()
}

fn seen(state: &State, name: &str) -> (Option<i64>, Option<i64>) {
    let player = state.engine.model().players(&state.store, name).unwrap().remove(0);
    (player.first_seen_ms, player.last_seen_ms)
}

#[test]
fn an_invisible_server_completes_its_sessions_without_another_scan() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    see(&mut state, FROM_MS, &["Visor"]);
    see(&mut state, FROM_MS + MINUTE_MS, &["Visor", "Klesk"]);
    let last_ms = FROM_MS + MINUTE_MS;
    assert_eq!(sessions(&state), [of("Visor", MINUTE_MS, true), of("Klesk", 0, true)]);
    assert_eq!(exported(&state), 0);

    // As long as the server may still answer in time, it is not complete.
    tick(&mut state, last_ms + 720_000);
    assert_eq!(sessions(&state), [of("Visor", MINUTE_MS, true), of("Klesk", 0, true)]);
    // It is complete as soon as the time is over, and stored some seconds later.
    tick(&mut state, last_ms + 720_001);
    let complete = [of("Visor", MINUTE_MS, false), of("Klesk", 0, false)];
    assert_eq!((sessions(&state), exported(&state)), (complete.to_vec(), 2));
    let day = SessionDay::of(last_ms);
    assert_eq!(state.store.sessions_on(day, ServerKey(1), 10).unwrap().len(), 0);
    tick(&mut state, last_ms + 730_000);
    assert_eq!(state.store.sessions_on(day, ServerKey(1), 10).unwrap().len(), 2);
    assert_eq!((sessions(&state), exported(&state)), (complete.to_vec(), 2));
    assert_eq!(seen(&state, "Visor"), (Some(FROM_MS), Some(last_ms)));

    // Nothing is stored twice, and the next presence is another session.
    see(&mut state, last_ms + 900_000, &["Visor"]);
    tick(&mut state, last_ms + 3_000_000);
    assert_eq!(sessions(&state)[0], of("Visor", 0, false));
    assert_eq!((sessions(&state).len(), exported(&state)), (3, 3));
    assert_eq!(seen(&state, "Visor"), (Some(FROM_MS), Some(last_ms + 900_000)));
}

#[test]
fn a_restart_continues_open_sessions_and_their_deadlines() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    see(&mut state, FROM_MS, &["Visor"]);
    drop(state);
    let mut state = open(dir.path());
    see(&mut state, FROM_MS + 2 * MINUTE_MS, &["Visor"]);
    assert_eq!(sessions(&state), [of("Visor", 2 * MINUTE_MS, true)]);
    drop(state);
    let mut state = open(dir.path());
    tick(&mut state, FROM_MS + 30 * MINUTE_MS);
    let day = SessionDay::of(FROM_MS);
    let stored = state.store.sessions_on(day, ServerKey(1), 10).unwrap();
    assert_eq!((stored.len(), stored[0].1.seen, stored[0].1.points), (1, 2, Some(0)));
}

#[test]
fn old_sessions_are_hidden_at_once_and_deleted_by_day() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    see(&mut state, FROM_MS, &["Visor"]);
    see(&mut state, FROM_MS + MINUTE_MS, &[]);
    let day = SessionDay::of(FROM_MS);
    let stored = |state: &State| state.store.sessions_on(day, ServerKey(1), 10).unwrap().len();
    let player = PlayerSelector::Name("Visor".to_owned());
    let of_player = |state: &State| -> Vec<SessionView> {
        state.engine.model().player_sessions(&state.store, &player, 10).unwrap()
    };
    tick(&mut state, FROM_MS + 7 * DAY_MS);
    assert_eq!((exported(&state), of_player(&state).len(), stored(&state)), (1, 1, 1));
    tick(&mut state, FROM_MS + 7 * DAY_MS + 1);
    assert_eq!((exported(&state), of_player(&state).len(), stored(&state)), (0, 0, 1), "its day is not over");
    tick(&mut state, day.end_ms() + 7 * DAY_MS - 1);
    assert_eq!(stored(&state), 1);
    tick(&mut state, day.end_ms() + 7 * DAY_MS);
    assert_eq!(stored(&state), 0);
    assert!(state.store.is_swept(day.into()));
    assert_eq!(seen(&state, "Visor"), (Some(FROM_MS), Some(FROM_MS)), "these times are kept");
}

/// A clock that is ahead deletes a day; when it is set back, new sessions of that day must not be removed with the old
/// ones, which are removed later.
#[test]
fn a_day_that_comes_again_is_another_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    see(&mut state, FROM_MS, &["Visor"]);
    see(&mut state, FROM_MS + MINUTE_MS, &[]);
    state.handle(Event::Tick { now_ms: FROM_MS + 10 * DAY_MS }).unwrap();
    state.commit().unwrap();
    assert_eq!(exported(&state), 0);
    state.engine.reset_time(&state.store, FROM_MS + 2 * MINUTE_MS).unwrap();
    state.commit().unwrap();
    while state.engine.has_week_to_close() {
        state.handle(Event::Tick { now_ms: FROM_MS + 2 * MINUTE_MS }).unwrap();
        state.commit().unwrap();
    }
    see(&mut state, FROM_MS + 3 * MINUTE_MS, &["Klesk"]);
    see(&mut state, FROM_MS + 4 * MINUTE_MS, &[]);
    assert_eq!(sessions(&state), [of("Klesk", 0, false)]);
    while state.sweep().unwrap() {}
    tick(&mut state, FROM_MS + 5 * MINUTE_MS);
    assert_eq!(sessions(&state), [of("Klesk", 0, false)]);
    assert_eq!(seen(&state, "Klesk"), (Some(FROM_MS + 3 * MINUTE_MS), Some(FROM_MS + 3 * MINUTE_MS)));
}

#[test]
fn a_day_waits_for_the_archive_but_not_for_ever() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open_with(dir.path(), EngineSettings { archive_enabled: true, ..EngineSettings::default() });
    see(&mut state, FROM_MS, &["Visor"]);
    see(&mut state, FROM_MS + MINUTE_MS, &[]);
    let day = SessionDay::of(FROM_MS);
    let stored = |state: &State| state.store.sessions_on(day, ServerKey(1), 10).unwrap().len();
    let archive = |state: &mut State| {
        let jobs = state.engine.archive_jobs(&state.store, None, None, usize::MAX, usize::MAX).unwrap();
        let entries: Vec<_> = jobs.iter().map(|(entry, _)| *entry).collect();
        state.engine.acknowledge_archived(&entries);
        state.commit().unwrap();
        let sessions = jobs.into_iter().filter(|(entry, _)| matches!(entry.key, OutboxKey::Session(_)));
        sessions.map(|(_, job)| job).collect::<Vec<Option<ArchiveJob>>>()
    };
    tick(&mut state, day.end_ms() + 7 * DAY_MS);
    assert_eq!(stored(&state), 1, "it is not archived yet");
    assert!(matches!(archive(&mut state)[..], [Some(ArchiveJob::Session(_, session))] if session.seen == 1));
    tick(&mut state, day.end_ms() + 7 * DAY_MS + 1);
    assert_eq!(stored(&state), 0);

    let again_ms = FROM_MS + 20 * DAY_MS;
    see(&mut state, again_ms, &["Klesk"]);
    see(&mut state, again_ms + MINUTE_MS, &[]);
    let day = SessionDay::of(again_ms);
    let stored = |state: &State| state.store.sessions_on(day, ServerKey(1), 10).unwrap().len();
    tick(&mut state, day.end_ms() + 14 * DAY_MS - 1);
    assert_eq!(stored(&state), 1);
    tick(&mut state, day.end_ms() + 14 * DAY_MS);
    assert_eq!(stored(&state), 0);
    assert!(matches!(archive(&mut state)[..], [None]), "there is nothing to write any more");
}

#[test]
fn sessions_are_not_kept_with_zero_days() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    see(&mut state, FROM_MS, &["Visor"]);
    see(&mut state, FROM_MS + MINUTE_MS, &["Klesk"]);
    assert_eq!(exported(&state), 1);
    state.engine.reload(EngineSettings { keep_sessions_days: 0, ..EngineSettings::default() });
    tick(&mut state, FROM_MS + 2 * MINUTE_MS);
    see(&mut state, FROM_MS + 3 * MINUTE_MS, &["Sarge"]);
    assert_eq!(exported(&state), 0);
    assert_eq!(seen(&state, "Klesk"), (Some(FROM_MS + MINUTE_MS), Some(FROM_MS + MINUTE_MS)));
    state.engine.reload(EngineSettings::default());
    see(&mut state, FROM_MS + 4 * MINUTE_MS, &["Sarge"]);
    see(&mut state, FROM_MS + 5 * MINUTE_MS, &[]);
    tick(&mut state, FROM_MS + 6 * MINUTE_MS);
    assert_eq!(sessions(&state), [of("Sarge", MINUTE_MS, false)], "the day begins again");
}

/// Two records; docs/benchmarks.md has the number.
#[test]
fn a_session_takes_few_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    let names: Vec<String> = (0..20).map(|n| format!("player {n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for minute in 0..40 {
        // Everybody comes and goes every ten minutes.
        see(&mut state, FROM_MS + minute * MINUTE_MS, if minute % 10 < 8 { &names } else { &[] });
    }
    let sessions = exported(&state);
    let used = state.store.reader().stored_size(SessionDay::of(FROM_MS).into()).unwrap();
    assert_eq!((sessions, used.records), (80, 160));
    let bytes = used.bytes as f64 / sessions as f64;
    println!("{bytes} bytes of keys and values for a session");
    assert!((40.0..70.0).contains(&bytes), "{bytes}");
}

/// Open sessions that a clock ahead has made longer end when it is set back.
#[test]
fn sessions_end_at_the_latest_when_the_clock_is_set_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    see(&mut state, FROM_MS, &["Visor"]);
    see(&mut state, FROM_MS + 10 * MINUTE_MS, &["Visor", "Klesk"]);
    state.engine.reset_time(&state.store, FROM_MS + 4 * MINUTE_MS).unwrap();
    state.commit().unwrap();
    assert_eq!(sessions(&state), [of("Visor", 4 * MINUTE_MS, false), of("Klesk", 0, false)]);
    let day = SessionDay::of(FROM_MS);
    let kept = state.store.sessions_on(day, ServerKey(1), 10).unwrap();
    assert!(kept.len() == 2 && kept.iter().all(|(key, _)| key.end_ms == FROM_MS + 4 * MINUTE_MS), "{kept:?}");
}
