//! Boards of windows that have ended are to be published again after every change that changes them.

use std::collections::BTreeSet;
use std::path::Path;

use crate::scans;
use clqd::board::window::{WindowTypes, label};
use clqd::engine::{EngineSettings, Event};
use clqd::model::calendar::{Calendar, HOUR_MS, MINUTE_MS};
use clqd::model::commit::WindowState;
use clqd::model::rebuild::RebuildStep;
use clqd::model::{OutboxKey, ServerUrl};
use clqd::state::State;
use clqd::store::StoreSettings;
use clqd::view::board::PlayerSelector;

/// Sunday, 2025-11-30 22:00 UTC: the week ends in two hours.
const FROM_MS: i64 = 1_764_540_000_000;

fn open(dir: &Path) -> State {
    let engine = EngineSettings {
        windows: WindowTypes::new(Calendar::default(), ["hour keep=48".parse().unwrap()]).unwrap(),
        archive_enabled: true,
        ..EngineSettings::default()
    };
    State::open(dir, StoreSettings { cache_bytes: 16 << 20, create: true }, engine).unwrap()
}

fn url(server: i64) -> ServerUrl {
    ServerUrl::parse(&format!("quake3://10.0.0.{server}:27960")).unwrap()
}

/// Both servers have players in each hour of these minutes.
fn play(state: &mut State, minutes: std::ops::Range<i64>) {
    for minute in minutes.step_by(2) {
        for server in [1, 2] {
            let t_ms = FROM_MS + minute * MINUTE_MS;
            let players = (0..3).map(|n| (format!("player {server} {n}"), minute % 60 * n));
            scans::apply_snapshot(state, url(server).as_str(), scans::snapshot(t_ms, players));
        }
    }
    state.commit().unwrap();
}

/// The windows whose boards are to be published, which are published now. Nothing else is pending afterwards.
fn published(state: &mut State) -> BTreeSet<String> {
    state.commit().unwrap();
    let jobs = state.engine.archive_jobs(&state.store, None, None, usize::MAX, usize::MAX).unwrap();
    state.engine.acknowledge_archived(&jobs.into_iter().map(|(entry, _)| entry).collect::<Vec<_>>());
    let tasks = state.engine.model().archive_tasks(&state.store);
    state.engine.acknowledge_archived(&tasks);
    state.commit().unwrap();
    let windows = tasks.iter().filter_map(|task| match task.key {
        OutboxKey::TopBoards(window) => Some(label(window)),
        _ => None,
    });
    windows.collect()
}

fn set(labels: &[&str]) -> BTreeSet<String> {
    labels.iter().map(|&label| label.to_owned()).collect()
}

/// A state at 00:30 on Monday, with a closed week and three closed hours, all published.
fn played(dir: &Path) -> State {
    let mut state = open(dir);
    state.engine.add_server(url(1), vec!["duel".to_owned()], FROM_MS).unwrap();
    scans::claim_archive(&mut state, None, 7);
    scans::resync(&mut state);
    play(&mut state, 0..150);
    state.close_due_weeks(FROM_MS + 150 * MINUTE_MS).unwrap();
    assert_eq!(published(&mut state), set(&["2025-W48", "2025-11-30T22Z", "2025-11-30T23Z"]));
    state
}

#[test]
fn ended_windows_are_published_after_changes_of_tags_servers_and_players() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = played(dir.path());
    let ended = ["2025-W48", "2025-11-30T22Z", "2025-11-30T23Z"];
    let tag = |name: &str| vec![name.to_owned()];

    assert!(state.engine.tag_server(&url(2), &tag("duel"), &[]).unwrap());
    assert_eq!(published(&mut state), set(&ended));
    assert!(!state.engine.tag_server(&url(2), &tag("duel"), &[]).unwrap());
    assert_eq!(published(&mut state), set(&[]), "nothing has changed");
    state.engine.delete_tag("duel").unwrap();
    assert_eq!(published(&mut state), set(&ended));
    state.engine.add_server(url(3), tag("new"), FROM_MS + 150 * MINUTE_MS).unwrap();
    assert_eq!(published(&mut state), set(&[]), "it was never seen");

    // A closed week does not change.
    state.engine.greylist(&state.store, &url(2), Some("fake".to_owned())).unwrap();
    assert_eq!(published(&mut state), set(&ended[1..]));
    state.engine.greylist(&state.store, &url(2), None).unwrap();
    assert_eq!(published(&mut state), set(&ended[1..]));

    let [from, into, forgotten] =
        ["player 1 0", "player 1 1", "player 2 2"].map(|name| PlayerSelector::Name(name.to_owned()));
    state.engine.merge_players(&state.store, "baseq3", &from, &into).unwrap();
    assert_eq!(published(&mut state), set(&ended));
    state.engine.forget_player(&state.store, "baseq3", &forgotten, FROM_MS + 150 * MINUTE_MS).unwrap();
    assert_eq!(published(&mut state), set(&ended));
}

#[test]
fn hour_that_ended_too_early_by_the_clock_is_published_when_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = played(dir.path());
    let tick = |state: &mut State, minute: i64| {
        state.handle(Event::Tick { now_ms: FROM_MS + minute * MINUTE_MS }).unwrap();
        published(state)
    };
    // The clock is ahead, and is set back.
    assert_eq!(tick(&mut state, 190), set(&["2025-12-01T00Z"]));
    state.engine.reset_time(&state.store, FROM_MS + 155 * MINUTE_MS).unwrap();
    assert_eq!(tick(&mut state, 156), set(&[]));
    play(&mut state, 156..178);
    assert_eq!(tick(&mut state, 179), set(&[]));
    assert_eq!(tick(&mut state, 181), set(&["2025-12-01T00Z"]));
    assert_eq!(FROM_MS % HOUR_MS, 0);
}

#[test]
fn ended_windows_are_published_again_when_their_rows_were_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = played(dir.path());
    let windows: Vec<_> =
        state.engine.model().begun_windows().into_iter().filter(|window| window.week().is_none()).take(2).collect();
    let state_of = |n: usize| {
        let start_ms = FROM_MS + n as i64 * HOUR_MS;
        WindowState { window: windows[n], start_ms, end_ms: start_ms + HOUR_MS }
    };
    let mut apply = |step: RebuildStep| {
        state.apply_rebuild(&step).unwrap();
        state.handle(Event::Tick { now_ms: FROM_MS + 151 * MINUTE_MS }).unwrap();
        published(&mut state)
    };
    assert_eq!(apply(RebuildStep::Begin { windows: vec![state_of(0)] }), set(&[]));
    let with_next = ["2025-11-30T22Z", "2025-11-30T23Z"];
    assert_eq!(apply(RebuildStep::End {}), set(&with_next), "positions of the hour before");
    // One is given up while the other goes on.
    assert_eq!(apply(RebuildStep::Begin { windows: vec![state_of(0), state_of(1)] }), set(&[]));
    let before = apply(RebuildStep::GiveUp { windows: vec![windows[0]] });
    let after = apply(RebuildStep::End {});
    assert!(before.contains(with_next[0]) && after.contains(with_next[1]), "{before:?}, {after:?}");
}
