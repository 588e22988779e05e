//! Scans that a test makes up: who is on a server, with how many points. Of what a
//! snapshot tells besides, a test says only what it is about.

use clqd::engine::{Event, Outcome};
use clqd::hot::Hot;
use clqd::model::name::Name;
use clqd::model::{Completeness, Player, ServerUrl, Snapshot};

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
pub fn observe(hot: &mut Hot, server: &str, snapshot: Snapshot) {
    let url = ServerUrl::parse(server).expect("a URL");
    hot.handle(Event::Observed { url, outcome: Outcome::Snapshot(snapshot) }).expect("a store");
}
