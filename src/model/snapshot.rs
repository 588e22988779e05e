//! A snapshot: what one scan of one server revealed (RULES section 1).
//!
//! Made by `proto` from reply bytes or by `scan_log` from a line; consumed by
//! the engine. Text is already Unicode; names still carry their colour codes.

use serde::{Deserialize, Serialize};

use super::name::Name;

/// A server's whole state at one moment, as it was received: nothing is screened yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// When the reply that completed the player list arrived, Unix ms.
    pub t_ms: i64,
    /// The game as the server names it: `baseq3`, `cstrike`, ...
    pub game: String,
    pub map: String,
    pub hostname: String,
    /// Places for players, 0 where the protocol does not tell.
    pub slots: u32,
    /// In the order of the reply. Bots included, marked where the protocol marks them.
    pub players: Vec<Player>,
    pub completeness: Completeness,
    /// Players that the server announces beside its list, bots included; `None`:
    /// it announces no number.
    pub count: Option<u32>,
    /// Bots that the server announces beside its list, which may not say which
    /// entries they are (A2S); `None`: the protocol has no such number.
    pub bots: Option<u32>,
}

impl Snapshot {
    /// Players without bots that the server announces; `None`: it announces no number.
    pub fn announced_players(&self) -> Option<u32> {
        self.count.map(|count| count.saturating_sub(self.bots.unwrap_or(0)))
    }
}

/// Whether the player list is whole. Only full snapshots are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    Full,
    /// The protocol showed that entries are missing.
    Partial,
}

/// One entry of a server's player list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    /// As the server wrote it, colour codes and all.
    pub name: Name,
    /// Frags, score, points: whatever the game counts. Within +-`limits::POINTS_ABS_MAX`.
    /// `None`: the protocol has no points.
    pub points: Option<i64>,
    /// Milliseconds, where the protocol tells.
    pub ping: Option<i32>,
    /// How long the player has been connected, ms, where the protocol tells.
    pub connected_ms: Option<u64>,
    /// Marked as a bot by the protocol. The ping rule of RULES section 2 is
    /// applied later, by `rank`.
    pub bot: bool,
    /// Marked as a spectator by the protocol. Markers among the points are
    /// found later, by `rank::screen`.
    pub spectator: bool,
}
