//! Scans that a test makes up: who is on a server, with how many points. Of what a
//! snapshot tells besides, a test says only what it is about.

#![allow(dead_code)] // each test binary uses its part

use clqd::engine::{Event, Outcome};
use clqd::model::archive::{ArchiveJob, ResyncStep};
use clqd::model::name::Name;
use clqd::model::{Completeness, Player, ServerUrl, Snapshot};
use clqd::state::State;

/// A full one of people with a ping.
pub fn snapshot<N: Into<Name>>(t_ms: i64, players: impl IntoIterator<Item = (N, i64)>) -> Snapshot {
    let player = |(name, points): (N, i64)| Player {
        name: name.into(),
        points: Some(points),
        ping: Some(40),
        connected_ms: None,
        bot: false,
        spectator: false,
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

/// Brings a snapshot of a server in.
pub fn apply_snapshot(state: &mut State, server: &str, snapshot: Snapshot) {
    let url = ServerUrl::parse(server).expect("a URL");
    state.handle(Event::Replayed { url, outcome: Outcome::Snapshot(snapshot) }).expect("a store");
}

/// What a resync hands out, in order and acknowledged; nothing where none is needed.
pub fn resync(state: &mut State) -> Vec<ArchiveJob> {
    let mut jobs = Vec::new();
    loop {
        state.commit().expect("a store");
        match state.engine.resync_chunk(&state.store, None, 50, 1_000).expect("a store") {
            ResyncStep::Chunk(chunk) => {
                jobs.extend(chunk.names.into_iter().chain(chunk.records));
                assert!(
                    state.engine.acknowledge_resync(chunk.from, chunk.next, &chunk.postponed),
                    "it was the next one"
                );
            }
            ResyncStep::DrainFirst | ResyncStep::Idle => return jobs,
        }
    }
}
