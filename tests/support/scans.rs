//! Synthetic snapshots: a test sets the players of a server and their points; the other fields
//! have defaults.

#![allow(dead_code, reason = "each test program uses a part of this module")]

use std::collections::BTreeMap;

use clqd::archive::OutboxQuery;
use clqd::engine::{Event, Outcome};
use clqd::model::archive::{ArchiveJob, ResyncStep, WeekChunk, WeekChunkRequest};
use clqd::model::name::Name;
use clqd::model::outbox::{OutboxEntry, OutboxKey};
use clqd::model::{Completeness, Player, ServerKey, ServerUrl, Snapshot, WeekKey};
use clqd::state::State;

/// A full snapshot of players with a ping.
pub fn snapshot<N: Into<Name>>(t_ms: i64, players: impl IntoIterator<Item = (N, i64)>) -> Snapshot {
    let player = |(name, points): (N, i64)| Player {
        name: name.into(),
        points: Some(points),
        ping: Some(40),
        ..Player::default()
    };
    Snapshot {
        t_ms,
        game: "baseq3".into(),
        map: "q3dm17".into(),
        hostname: String::new(),
        slots: 16,
        players: players.into_iter().map(player).collect(),
        completeness: Completeness::Full,
        count: None,
        bots: None,
    }
}

/// Applies a snapshot of a server.
pub fn apply_snapshot(state: &mut State, server: &str, snapshot: Snapshot) {
    let url = ServerUrl::parse(server).expect("a URL");
    state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) }).expect("a store");
}

/// The pending jobs of a range of the outbox. All changes are committed first.
pub fn pending_jobs(state: &mut State, query: &OutboxQuery) -> Vec<(OutboxEntry, ArchiveJob)> {
    state.commit().expect("a store");
    let OutboxQuery { after, before, entries_max, rows_max } = *query;
    let jobs = state.engine.archive_jobs(&state.store, after, before, entries_max, rows_max).expect("a store");
    let is_deleted = |(entry, job): &(OutboxEntry, _)| matches!((entry.key, job), (OutboxKey::Session(_), None));
    let (deleted, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_deleted);
    // Of a day that waited for the archive as long as it may, or of a player who was forgotten.
    state.engine.acknowledge_archived(&deleted.into_iter().map(|(entry, _)| entry).collect::<Vec<_>>());
    jobs.into_iter().map(|(entry, job)| (entry, job.expect("no week was deleted"))).collect()
}

/// Fills the archive with the id `found`, or another one from the start, as an archive's worker does. Returns its id.
pub fn claim_archive(state: &mut State, found: Option<u64>, fresh: u64) -> u64 {
    let (plan, steps) =
        state.engine.model().plan_archive_writer(found, None, fresh, true).expect("an older one is adopted");
    if found != Some(plan.id) {
        steps.into_iter().for_each(|step| state.engine.apply_archive_step(step));
    }
    plan.id
}

/// Removes archived entries from the outbox, and tasks as if they were done.
pub fn acknowledge(state: &mut State, entries: &[OutboxEntry]) {
    state.engine.acknowledge_archived(entries);
    let tasks = state.engine.model().archive_tasks(&state.store);
    state.engine.acknowledge_archived(&tasks);
    state.commit().expect("a store");
}

/// The content of an archive: the last job of each object.
pub type Archived = BTreeMap<OutboxKey, ArchiveJob>;

/// Writes a job as the archive does: the changed rows of a week replace those with the same key.
pub fn write(archived: &mut Archived, job: ArchiveJob) {
    if let ArchiveJob::Week(changed) = &job
        && !changed.is_complete
        && let Some(ArchiveJob::Week(week)) = archived.get_mut(&job.key())
    {
        fn replace<T: Clone, K: Ord>(rows: &mut Vec<T>, changed: &[T], key: impl Fn(&T) -> K) {
            rows.retain(|row| !changed.iter().any(|it| key(it) == key(row)));
            rows.extend_from_slice(changed);
            rows.sort_by_key(key);
        }
        let mut written = (**changed).clone();
        (written.rows, written.maps, written.best) =
            (std::mem::take(&mut week.rows), std::mem::take(&mut week.maps), std::mem::take(&mut week.best));
        written.is_complete = week.is_complete;
        replace(&mut written.rows, &changed.rows, |row| row.player);
        replace(&mut written.maps, &changed.maps, |row| row.map);
        replace(&mut written.best, &changed.best, |best| best.player);
        **week = written;
        return;
    }
    archived.insert(job.key(), job);
}

/// A job that contains all rows of its object since the start, also if they are changed rows.
pub fn complete(mut job: ArchiveJob) -> ArchiveJob {
    if let ArchiveJob::Week(week) = &mut job {
        week.is_complete = true;
    }
    job
}

/// A large week in chunks, like the archive's worker.
pub fn week_chunks(state: &mut State, week: WeekKey, server: ServerKey) -> Vec<ArchiveJob> {
    let mut chunks = Vec::new();
    let mut request = WeekChunkRequest::First { week, server };
    loop {
        let chunk = state.engine.week_chunk(&state.store, request).expect("a store");
        state.commit().expect("a store");
        match chunk {
            WeekChunk::Preparing => {}
            WeekChunk::NotAvailable => panic!("the week is available"),
            WeekChunk::Chunk { copy_id, week } => {
                let after = week.span.through;
                chunks.push(ArchiveJob::Week(week));
                if after.is_none() {
                    state.engine.week_chunk(&state.store, WeekChunkRequest::Release { copy_id }).expect("a store");
                    return chunks;
                }
                request = WeekChunkRequest::Next { copy_id, after };
            }
        }
    }
}

/// The jobs of a resync in order, acknowledged; none if no resync is due.
pub fn resync(state: &mut State) -> Vec<ArchiveJob> {
    let mut jobs = Vec::new();
    loop {
        state.commit().expect("a store");
        match state.engine.model().resync_chunk(&state.store, None, 50, 1_000).expect("a store") {
            ResyncStep::Chunk(chunk) => {
                jobs.extend(chunk.names.into_iter().chain(chunk.records));
                assert!(
                    state.engine.acknowledge_resync(chunk.from, chunk.next, &chunk.postponed),
                    "the chunk is the next one"
                );
            }
            ResyncStep::DrainFirst | ResyncStep::Idle => return jobs,
        }
    }
}
