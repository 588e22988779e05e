//! The outbox at its limit: entries that it drops while MySQL is unavailable are archived by
//! a resync, and so is a state that had no archive before. No database is used: the archive
//! is a map from keys to values.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::scans::{self, Archived};
use clqd::engine::{EngineSettings, Event, Outcome, StoreReader};
use clqd::fleet::{SimulatedHistory, World, WorldSettings, address};
use clqd::model::archive::{BestPositionsByRanking, ResendStep, ResyncChunk, ResyncStep};
use clqd::model::calendar::HOUR_MS;
use clqd::model::outbox::ResyncCursor;
use clqd::model::{ArchiveJob, OutboxKey, PlayerKey, ServerKey, ServerUrl, WeekKey};
use clqd::state::State;
use clqd::store::StoreSettings;

const FROM_MS: i64 = 1_764_460_800_000; // Sunday 2025-11-30 00:00 UTC
const SERVERS: u32 = 40;
/// Names or servers in one chunk of a resync.
const CHUNK: usize = 20;

fn open(dir: &Path, archive: bool, outbox_entries_max: usize) -> State {
    let engine = EngineSettings { archive_enabled: archive, outbox_entries_max, ..EngineSettings::default() };
    State::open(dir, StoreSettings { cache_bytes: 16 << 20, create: true }, engine).expect("a state directory")
}

/// Applies the snapshots of these hours of Sunday (24 is Monday, when the week has ended), and
/// calls `after_commit` after every 50 snapshots.
fn play(state: &mut State, hours: std::ops::Range<i64>, mut after_commit: impl FnMut(&mut State)) {
    let mut world =
        World::new(WorldSettings { servers: SERVERS, start_ms: FROM_MS, truth: false, ..WorldSettings::default() });
    let urls: Vec<ServerUrl> = (0..SERVERS)
        .map(|server| format!("{}://{}:27960", world.protocol(server).scheme(), address::address_of(server)))
        .map(|url| ServerUrl::parse(&url).expect("a URL"))
        .collect();
    let (from, to) = (FROM_MS + hours.start * HOUR_MS, FROM_MS + hours.end * HOUR_MS);
    for (n, (t_ms, server, snapshot)) in (1..).zip(SimulatedHistory::new(&mut world, from, to)) {
        let url = urls[server as usize].clone();
        state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) }).unwrap();
        if n % 50 == 0 {
            state.commit().unwrap();
            state.handle(Event::Tick { now_ms: t_ms }).unwrap();
            state.commit().unwrap();
            after_commit(state);
        }
    }
    state.close_due_weeks(to).unwrap();
}

/// Archives one chunk of a resync and one batch of at most 20 entries, like the archive's
/// worker. Returns whether there was anything to archive.
fn archive_one_batch(state: &mut State, archived: &mut Archived) -> bool {
    let chunk = chunk(state);
    if let Some(chunk) = &chunk {
        chunk.names.iter().chain(&chunk.records).for_each(|job| scans::write(archived, job.clone()));
        assert!(state.engine.acknowledge_resync(chunk.from, chunk.next, &chunk.postponed));
    }
    state.commit().unwrap();
    let jobs = state.engine.archive_jobs(&state.store, None, None, 20, 10_000).unwrap();
    let entries: Vec<_> = jobs.iter().map(|(entry, _)| *entry).collect();
    jobs.into_iter().filter_map(|(_, job)| job).for_each(|job| scans::write(archived, job));
    state.engine.acknowledge_archived(&entries);
    state.commit().unwrap();
    chunk.is_some() || !entries.is_empty()
}

/// The next chunk of a resync, not acknowledged.
fn chunk(state: &mut State) -> Option<Box<ResyncChunk>> {
    state.commit().unwrap();
    match state.engine.model().resync_chunk(&state.store, None, CHUNK, 1_000).unwrap() {
        ResyncStep::Chunk(chunk) => Some(chunk),
        ResyncStep::DrainFirst | ResyncStep::Idle => None,
    }
}

fn archive_all(state: &mut State, archived: &mut Archived) {
    loop {
        let archived_any = archive_one_batch(state, archived);
        let now_ms = state.engine.model().now_ms();
        state.handle(Event::Tick { now_ms }).unwrap();
        if !state.commit().unwrap() && !archived_any {
            return;
        }
    }
}

/// The final content of an archive that is always available.
fn expected() -> Archived {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), true, 1_000_000);
    play(&mut state, 12..26, |_| {});
    play(&mut state, 26..30, |_| {});
    let mut archived = Archived::new();
    archive_all(&mut state, &mut archived);
    assert!(archived.len() > 500 && archived.values().any(|job| matches!(job, ArchiveJob::Week(w) if w.closed)));
    archived
}

/// Best positions by server and player.
type Best = BTreeMap<(ServerKey, PlayerKey), BestPositionsByRanking>;

/// Removes weeks without rows: they may be archived or not, and nothing is written for them. Best positions are
/// apart: they come with the weeks, or after them in a resync.
fn without_empty_weeks(archived: Archived) -> (Archived, Best) {
    let (mut all, mut best) = (Archived::new(), Best::new());
    let (of_servers, others): (Vec<_>, Vec<_>) =
        archived.into_iter().partition(|(_, job)| matches!(job, ArchiveJob::BestPositions(_)));
    for (key, job) in others.into_iter().chain(of_servers) {
        match scans::complete(job) {
            ArchiveJob::BestPositions(job) => {
                best.extend(job.best.into_iter().map(|it| ((job.server, it.player), it.three)));
            }
            ArchiveJob::Week(mut week) => {
                best.extend(week.best.drain(..).map(|it| ((week.server, it.player), it.three)));
                if !week.rows.is_empty() || !week.maps.is_empty() {
                    all.insert(key, ArchiveJob::Week(week));
                }
            }
            job => _ = all.insert(key, job),
        }
    }
    (all, best)
}

fn resend(state: &mut State, week: WeekKey, from: ServerKey, servers_max: u32) -> ResendStep {
    let (step, event) = state.engine.model().plan_resend(&state.store, week, from, servers_max);
    event.into_iter().for_each(|event| state.engine.apply_archive_step(event));
    step
}

#[test]
fn entries_dropped_by_full_outbox_are_archived_by_resync() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), true, 60);
    let mut archived = Archived::new();
    let mut entries_max = 0;
    play(&mut state, 12..26, |state| entries_max = entries_max.max(state.store.outbox_len()));
    assert!((60..1_000).contains(&entries_max), "the outbox is limited to about 60 entries: {entries_max}");
    // The archive is available until it contains every player known so far ...
    let players = |archived: &Archived| archived.keys().filter(|key| matches!(key, OutboxKey::Player(_))).count();
    while players(&archived) < state.engine.model().status().players_known as usize {
        archive_one_batch(&mut state, &mut archived);
        let now_ms = state.engine.model().now_ms();
        state.handle(Event::Tick { now_ms }).unwrap();
    }
    // ... and then unavailable again: new players are dropped although the resync has already
    // passed the players.
    let before = state.engine.model().status().players_known;
    play(&mut state, 26..30, |_| {});
    assert!(state.engine.model().status().players_known > before + 60);
    archive_all(&mut state, &mut archived);
    assert_eq!(without_empty_weeks(archived), without_empty_weeks(expected()));
}

#[test]
fn resent_weeks_are_archived_with_all_rows_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), true, 1_000_000);
    play(&mut state, 12..26, |_| {});
    play(&mut state, 26..30, |_| {});
    let mut archived = Archived::new();
    archive_all(&mut state, &mut archived);
    let complete = archived.clone();
    let weeks = state.engine.model().archived_weeks(None).unwrap();
    assert_eq!(weeks.len(), 2);
    let (closed, running) = (weeks[0], weeks[1]);
    for (first, last, refused) in [
        (WeekKey(closed.0 - 3), running, "2025-W45 to 2025-W47; it keeps 2025-W48 to 2025-W49"),
        (closed, WeekKey(running.0 + 1), "2025-W50; it keeps"),
        (WeekKey(running.0 + 2), WeekKey(running.0 + 3), "2025-W51 to 2025-W52; it keeps"),
    ] {
        let error = state.engine.model().archived_weeks(Some((first, last))).unwrap_err().to_string();
        assert!(error.contains(refused), "{error}");
    }
    archived.retain(|key, _| !matches!(key, OutboxKey::Week { week, .. } if *week == closed));
    let (mut from, mut queued, mut steps) = (Some(ServerKey(1)), 0, 0);
    while let Some(server) = from {
        let step = resend(&mut state, closed, server, 7);
        let ResendStep::Queued { servers, next } = step else { panic!("{step:?}") };
        assert!(servers <= 7);
        (from, queued, steps) = (next, queued + servers, steps + 1);
        state.commit().unwrap();
    }
    assert_eq!((queued, steps), (u64::from(SERVERS), 6));
    drop(state);
    let mut state = open(dir.path(), true, 1_000_000);
    archive_all(&mut state, &mut archived);
    assert_eq!(archived.remove(&OutboxKey::WeekTotals(closed)), Some(ArchiveJob::WeekTotals { week: closed }));
    assert_eq!(without_empty_weeks(archived), without_empty_weeks(complete));

    drop(state);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let mut state = open(dir.path(), true, 60);
    for step in 0..10 {
        if resend(&mut state, closed, ServerKey(1), 20) == ResendStep::OutboxTooLong {
            assert!(step > 0 && state.engine.model().resync_position().is_none(), "no entry was dropped");
            return;
        }
        resend(&mut state, running, ServerKey(1), 20);
        state.commit().unwrap();
    }
    panic!("the outbox has no limit");
}

#[test]
fn emptied_archive_is_resynced() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), true, 1_000_000);
    play(&mut state, 12..26, |_| {});
    play(&mut state, 26..30, |_| {});
    let (mut first, mut second) = (Archived::new(), Archived::new());
    archive_all(&mut state, &mut first);
    let tasks = state.engine.model().archive_tasks(&state.store);
    assert_eq!(state.store.outbox_len(), tasks.len(), "only tasks are left: {tasks:?}");
    assert_eq!(scans::claim_archive(&mut state, None, 1), 1);
    archive_all(&mut state, &mut second);
    assert_eq!(without_empty_weeks(second), without_empty_weeks(first));
}

/// Without an archive, and in a replay before the first one, nothing is noted: the archive gets everything by a
/// resync.
#[test]
fn existing_state_is_archived_by_its_first_archive() {
    let expected = without_empty_weeks(expected());
    for is_configured in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let mut state = open(dir.path(), is_configured, 1_000_000);
        if is_configured {
            state.engine.leave_all_to_first_archive();
        }
        play(&mut state, 12..26, |_| {});
        play(&mut state, 26..30, |_| {});
        assert_eq!(state.store.outbox_len(), 0);
        drop(state);
        let mut state = open(dir.path(), true, 1_000_000);
        let mut archived = Archived::new();
        archive_all(&mut state, &mut archived);
        assert_eq!(without_empty_weeks(archived), expected, "configured: {is_configured}");
    }
}

/// The archive's id is checked after every chunk, as in every pass of the worker. The state is
/// closed and opened again after every third chunk.
#[test]
fn resync_continues_after_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), true, 1_000_000);
    play(&mut state, 12..26, |_| {});
    archive_all(&mut state, &mut Archived::new());
    assert_eq!(scans::claim_archive(&mut state, None, 7), 7);

    let mut jobs = Vec::new();
    let mut chunks = 0;
    let mut at = ResyncCursor::START;
    while let Some(chunk) = chunk(&mut state) {
        assert!(chunk.from == at && chunk.next > at, "{at:?}, then {:?} to {:?}", chunk.from, chunk.next);
        // The name of a player on a server may be archived again later.
        jobs.extend(chunk.names.iter().chain(&chunk.records).map(ArchiveJob::key));
        assert!(state.engine.acknowledge_resync(chunk.from, chunk.next, &chunk.postponed));
        at = chunk.next;
        chunks += 1;
        if chunks % 3 == 0 {
            state.commit().unwrap();
            drop(state);
            state = open(dir.path(), true, 1_000_000);
        }
        assert_eq!(scans::claim_archive(&mut state, Some(7), 8), 7, "the same archive");
    }
    assert_eq!((at, state.engine.model().resync_position()), (ResyncCursor::End, None));

    let all: BTreeSet<OutboxKey> = jobs.iter().copied().collect();
    let count = |is: fn(&OutboxKey) -> bool| all.iter().filter(|key| is(key)).count() as u64;
    let status = state.engine.model().status();
    assert_eq!(count(|key| matches!(key, OutboxKey::Server(_))), status.servers);
    assert_eq!(count(|key| matches!(key, OutboxKey::Player(_))), status.players_known);
    assert_eq!(count(|key| matches!(key, OutboxKey::Week { .. })), status.servers * status.weeks.len() as u64);
    let repeated = jobs.len() - all.len();
    assert!(repeated as u64 <= status.players_online, "{repeated} names repeated, {} online", status.players_online);
    let position = |key: &OutboxKey| jobs.iter().position(|it| it == key).unwrap();
    let last_server = position(&OutboxKey::Server(ServerKey(SERVERS)));
    let players = jobs[..last_server].iter().filter(|key| matches!(key, OutboxKey::Player(_))).count() as u64;
    // The last servers may share their chunk with the first of all players.
    let players_max = status.players_online + CHUNK as u64;
    assert!(
        players <= players_max && players_max < status.players_known,
        "servers are archived before other players: {players}"
    );

    // A different archive, or the same one after it was emptied, is resynced from the start.
    assert_eq!(scans::claim_archive(&mut state, Some(8), 9), 9);
    assert_eq!(state.engine.model().resync_position(), Some(ResyncCursor::START));
}

/// An entry that the outbox drops during a resync is archived by a second resync.
#[test]
fn entry_dropped_during_resync_causes_one_more_resync() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), true, 1_000_000);
    play(&mut state, 12..20, |_| {});
    archive_all(&mut state, &mut Archived::new());
    scans::claim_archive(&mut state, None, 7);
    while state.engine.model().resync_position() < Some(ResyncCursor::WEEKS) {
        let chunk = chunk(&mut state).unwrap();
        state.engine.acknowledge_resync(chunk.from, chunk.next, &chunk.postponed);
    }
    state.commit().unwrap();
    drop(state);
    // The outbox has no capacity.
    let mut state = open(dir.path(), true, 0);
    play(&mut state, 20..24, |_| {});
    drop(state);
    let mut state = open(dir.path(), true, 1_000_000);
    let mut starts = 0;
    while let Some(chunk) = chunk(&mut state) {
        starts += usize::from(chunk.from == ResyncCursor::START);
        state.engine.acknowledge_resync(chunk.from, chunk.next, &chunk.postponed);
    }
    assert_eq!(starts, 1, "the resync continued to its end, and one more followed");
}

#[test]
fn jobs_read_from_a_view_are_those_of_the_engine() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = open(dir.path(), true, 1_000_000);
    let mut weeks = 0;
    play(&mut state, 12..26, |state| {
        let view = state.engine.replica();
        let entries = state.engine.model().archive_entries(&state.store, None, None, usize::MAX);
        let begun = state.engine.begin_archive_jobs(entries.clone(), usize::MAX);
        let read = view.archive_jobs(&state.store.reader(), begun, usize::MAX).unwrap();
        let keys: Vec<OutboxKey> = entries.iter().map(|entry| entry.key).collect();
        assert!(state.engine.model().changed_since_begun(&keys).is_empty());
        // Not acknowledged: the next job has the same rows.
        let again = state.engine.begin_archive_jobs(entries.clone(), usize::MAX);
        assert_eq!(read, state.engine.model().archive_jobs(&state.store, again, usize::MAX).unwrap());
        weeks +=
            read.iter().filter(|(_, job)| matches!(job, Some(ArchiveJob::Week(week)) if !week.rows.is_empty())).count();
        state.engine.acknowledge_archived(&entries);
        state.commit().unwrap();
    });
    assert!(weeks > 100, "{weeks} weeks with rows");

    // Scans and the end of the week go on while jobs are read.
    let view = state.engine.replica();
    let entries = state.engine.model().archive_entries(&state.store, None, None, usize::MAX);
    let begun = state.engine.begin_archive_jobs(entries, usize::MAX);
    play(&mut state, 26..28, |_| {});
    let read = view.archive_jobs(&state.store.reader(), begun, usize::MAX).unwrap();
    let mut keys: Vec<OutboxKey> = read.iter().map(|(entry, _)| entry.key).collect();
    let server = |key: &OutboxKey| if let OutboxKey::Week { server, .. } = key { Some(*server) } else { None };
    let servers: BTreeSet<ServerKey> = keys.iter().filter_map(server).collect();
    keys.extend(servers.iter().map(|&server| OutboxKey::BestPositions { server, after: None }));
    let changed = state.engine.model().changed_since_begun(&keys);
    let changed_servers: BTreeSet<ServerKey> = changed.iter().filter_map(server).collect();
    assert!(!changed_servers.is_empty());
    for &server in &servers {
        let best = changed.contains(&OutboxKey::BestPositions { server, after: None });
        assert_eq!(best, changed_servers.contains(&server), "{server}");
    }
    let unchanged: Vec<_> = read.into_iter().filter(|(entry, _)| !changed.contains(&entry.key)).collect();
    let of_weeks: Vec<_> =
        unchanged.into_iter().filter(|(entry, _)| matches!(entry.key, OutboxKey::Week { .. })).collect();
    let again = state.engine.begin_archive_jobs(of_weeks.iter().map(|(entry, _)| *entry).collect(), usize::MAX);
    assert_eq!(of_weeks, state.engine.model().archive_jobs(&state.store, again, usize::MAX).unwrap());
}
