//! Snapshots and replies for the tests of the encoders.

use super::Datagrams;
use crate::model::{Completeness, Player, Snapshot};

pub(super) fn player(name: &str, points: i64, ping: i32, connected_ms: u64) -> Player {
    Player {
        name: name.into(),
        points: Some(points),
        ping: Some(ping),
        connected_ms: Some(connected_ms),
        bot: false,
        spectator: false,
    }
}

pub(super) fn snapshot(players: Vec<Player>) -> Snapshot {
    Snapshot {
        t_ms: 0,
        game: "baseq3".into(),
        map: "q3dm17".into(),
        hostname: "Büro".into(),
        slots: 16,
        players,
        completeness: Completeness::Full,
        count: None,
        bots: None,
    }
}

pub(super) fn only(out: &Datagrams) -> &[u8] {
    assert_eq!(out.len(), 1);
    out.iter().next().unwrap()
}
