//! Servers that stop replying: their players are removed from the daemon's responses and
//! from the archive by a tick or by the last miss alone.

use crate::scans;
use clqd::model::calendar::MINUTE_MS;
use std::path::Path;

use clqd::engine::{EngineSettings, Event, Outcome};
use clqd::model::archive::ServerArchive;
use clqd::model::row::Ranking;
use clqd::model::{ArchiveJob, ServerUrl};
use clqd::state::State;
use clqd::store::StoreSettings;

const FROM_MS: i64 = 1_764_064_800_000; // Tuesday 2025-11-25 10:00 UTC
const SERVER: &str = "quake3://10.0.0.1:27960";

fn open(dir: &Path) -> State {
    let engine = EngineSettings { archive_enabled: true, ..EngineSettings::default() };
    State::open(dir, StoreSettings { cache_bytes: 16 << 20, create: true }, engine).unwrap()
}

fn tick(state: &mut State, now_ms: i64) {
    state.handle(Event::Tick { now_ms }).unwrap();
    state.commit().unwrap();
}

fn miss(state: &mut State, t_ms: i64) {
    let outcome = Outcome::Miss { t_ms, reason: "timeout".into() };
    state.handle(Event::Replayed { url: ServerUrl::parse(SERVER).unwrap(), outcome }).unwrap();
}

/// Acknowledges the pending jobs and returns the job of the server.
fn archived(state: &mut State) -> Option<ServerArchive> {
    state.commit().unwrap();
    let jobs = state.engine.archive_jobs(&state.store, None, None, 1_000, 1_000).unwrap();
    state.engine.acknowledge_archived(&jobs.iter().map(|(entry, _)| *entry).collect::<Vec<_>>());
    state.commit().unwrap();
    jobs.into_iter().find_map(|(_, job)| match job {
        Some(ArchiveJob::Server(server)) => Some(*server),
        _ => None,
    })
}

/// Players on the server according to the archive and the daemon's responses.
fn assert_online(state: &mut State, archived: &ServerArchive, players: u32) {
    assert_eq!((archived.players, archived.list.len()), (players, players as usize), "the archive");
    assert_eq!(state.engine.model().status().players_online, u64::from(players), "the status");
    let detail = state.engine.model().server_detail(&state.store, &ServerUrl::parse(SERVER).unwrap()).unwrap();
    assert_eq!(
        (detail.public.server.players, detail.public.players_listed.len()),
        (players, players as usize),
        "the server's page"
    );
}

#[test]
fn server_that_missed_three_scans_has_no_players_online() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    let names = ["Visor", "Klesk", "Sarge"].map(|name| (name, 5));
    scans::apply_snapshot(&mut state, SERVER, scans::snapshot(FROM_MS, names));
    let in_archive = archived(&mut state).unwrap();
    assert_online(&mut state, &in_archive, 3);
    for n in 1..=2 {
        miss(&mut state, FROM_MS + n * 2 * MINUTE_MS);
        let in_archive = archived(&mut state).unwrap();
        assert_online(&mut state, &in_archive, 3);
    }
    miss(&mut state, FROM_MS + 6 * MINUTE_MS);
    let in_archive = archived(&mut state).unwrap();
    assert_online(&mut state, &in_archive, 0);

    // The server replies again within 720 s: the presences continue.
    let names = ["Visor", "Klesk", "Sarge"].map(|name| (name, 9));
    scans::apply_snapshot(&mut state, SERVER, scans::snapshot(FROM_MS + 11 * MINUTE_MS, names));
    let in_archive = archived(&mut state).unwrap();
    assert_online(&mut state, &in_archive, 3);
    let player = &state.engine.model().players(&state.store, "Visor").unwrap()[0].weeks[0];
    assert_eq!((player.starts, player.points), (1, 4));
}

#[test]
fn unscanned_server_has_no_players_online_after_20_minutes() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    for n in 0..5 {
        scans::apply_snapshot(&mut state, SERVER, scans::snapshot(FROM_MS + n * 10 * MINUTE_MS, [("Visor", n)]));
        tick(&mut state, FROM_MS + n * 10 * MINUTE_MS + 1);
        let in_archive = archived(&mut state).unwrap();
        assert_online(&mut state, &in_archive, 1);
    }
    let last_ms = FROM_MS + 40 * MINUTE_MS;
    tick(&mut state, last_ms + 20 * MINUTE_MS - 1);
    assert!(archived(&mut state).is_none(), "nothing has changed");
    tick(&mut state, last_ms + 20 * MINUTE_MS);
    let in_archive = archived(&mut state).expect("a tick archives the server");
    assert_online(&mut state, &in_archive, 0);
    tick(&mut state, last_ms + 60 * MINUTE_MS);
    assert!(archived(&mut state).is_none(), "the server is archived once");
}

#[test]
fn server_lost_during_downtime_has_no_players_online() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    scans::apply_snapshot(&mut state, SERVER, scans::snapshot(FROM_MS, [("Visor", 1)]));
    let in_archive = archived(&mut state).unwrap();
    assert_online(&mut state, &in_archive, 1);
    drop(state);
    let mut state = open(dir.path());
    tick(&mut state, FROM_MS + 100 * MINUTE_MS);
    let in_archive = archived(&mut state).expect("the server is archived at the start");
    assert_online(&mut state, &in_archive, 0);
}

#[test]
fn current_week_without_rows_has_an_empty_top_list_also_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path());
    miss(&mut state, FROM_MS);
    let url = ServerUrl::parse(SERVER).unwrap();
    for week in [None, Some("2025-W48")] {
        let top = state.engine.model().top(&state.store, &url, Ranking::Points, week, 10).unwrap();
        assert_eq!((top.week.as_str(), top.rows.len()), ("2025-W48", 0));
    }
    assert!(state.engine.model().top(&state.store, &url, Ranking::Points, Some("2025-W47"), 10).is_err());
}
