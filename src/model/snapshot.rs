//! A snapshot: the result of one scan of one server (docs/rules.md section 1).
//!
//! `proto` creates it from reply bytes, `scan_log` from a line; the engine consumes it. Strings are
//! already Unicode; names still contain their colour codes.

use serde::{Deserialize, Serialize};

use super::name::Name;
use crate::limits::{CONNECTED_MS_MAX, SLOTS_MAX};

/// A server's state at one time, as received, before screening.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When the reply that completed the player list arrived, Unix ms.
    pub t_ms: i64,
    /// The game as the server names it: `baseq3`, `cstrike`, ...
    pub game: String,
    pub map: String,
    pub hostname: String,
    /// Player slots, 0 if the protocol does not report them.
    pub slots: u32,
    /// In the order of the reply, including bots, which are flagged if the protocol does so.
    pub players: Vec<Player>,
    pub completeness: Completeness,
    /// The player count that the server reports in addition to its list, including bots;
    /// `None`: it reports none.
    pub count: Option<u32>,
    /// The bot count that the server reports in addition to its list, which may not show which
    /// entries are bots (A2S); `None`: the protocol has no such number.
    pub bots: Option<u32>,
}

/// The map of a whole list that names none: some games have no maps.
pub const NO_MAP: &str = "(none)";

impl Snapshot {
    /// Reported player count without bots; `None`: the server reports none.
    pub fn announced_players(&self) -> Option<u32> {
        self.count.map(|count| count.saturating_sub(self.bots.unwrap_or(0)))
    }

    /// Replaces impossible values by "unknown", and no map by [`NO_MAP`].
    pub fn drop_impossible_values(&mut self) {
        if self.slots > SLOTS_MAX {
            self.slots = 0;
        }
        self.count = self.count.filter(|&count| count <= SLOTS_MAX);
        self.bots = self.bots.filter(|&bots| bots <= SLOTS_MAX);
        // A partial list without a map says nothing about it.
        if self.map.is_empty() && self.completeness == Completeness::Full {
            NO_MAP.clone_into(&mut self.map);
        }
        for player in &mut self.players {
            player.connected_ms = player.connected_ms.filter(|&ms| ms <= CONNECTED_MS_MAX);
        }
    }
}

/// Whether the player list is complete. Only full snapshots are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completeness {
    Full,
    /// The protocol showed that entries are missing.
    Partial,
}

impl Completeness {
    pub fn full_if(is_full: bool) -> Completeness {
        if is_full { Completeness::Full } else { Completeness::Partial }
    }
}

/// One entry of a server's player list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    /// As the server wrote it, including colour codes.
    pub name: Name,
    /// Frags, score, points: whatever the game counts. Within +-`limits::POINTS_ABS_MAX`.
    /// `None`: the protocol has no points.
    pub points: Option<i64>,
    /// Milliseconds, if the protocol reports it.
    pub ping: Option<i32>,
    /// How long the player has been connected, ms, if the protocol reports it.
    pub connected_ms: Option<u64>,
    /// Flagged as a bot by the protocol. `rank` applies the ping rule of docs/rules.md section 2 later.
    pub bot: bool,
    /// Flagged as a spectator by the protocol. `rank::screen` detects spectators by their
    /// points later.
    pub spectator: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_values_become_unknown_and_others_stay() {
        let player = |connected_ms| Player { name: "n".into(), points: Some(1), connected_ms, ..Player::default() };
        let mut snapshot = Snapshot {
            t_ms: 0,
            game: "g".into(),
            map: "m".into(),
            hostname: "h".into(),
            slots: u32::MAX,
            players: vec![player(Some(u64::MAX)), player(Some(CONNECTED_MS_MAX)), player(None)],
            completeness: Completeness::Full,
            count: Some(u32::MAX),
            bots: Some(2),
        };
        snapshot.drop_impossible_values();
        assert_eq!(snapshot.map, "m");
        assert_eq!((snapshot.slots, snapshot.count, snapshot.bots), (0, None, Some(2)));
        let connected: Vec<_> = snapshot.players.iter().map(|player| player.connected_ms).collect();
        assert_eq!(connected, [None, Some(CONNECTED_MS_MAX), None]);
        for (completeness, map) in [(Completeness::Full, NO_MAP), (Completeness::Partial, "")] {
            let mut without_map = Snapshot { map: String::new(), completeness, ..snapshot.clone() };
            without_map.drop_impossible_values();
            assert_eq!(without_map.map, map);
        }
    }
}
