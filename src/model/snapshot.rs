//! A snapshot: what one scan of one server revealed (RULES section 1).
//!
//! Made by `proto` from reply bytes or by `scanlog` from a line; consumed by
//! the engine. Text is already Unicode; names still carry their colour codes.

use serde::{Deserialize, Serialize};

use super::name::Name;

/// A server's whole state at one moment.
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
    /// In the order of the reply. Bots included, marked.
    pub players: Vec<Player>,
    pub completeness: Completeness,
}

/// Whether the player list is whole. Only full snapshots are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    Full,
    /// The protocol showed that entries are missing; `count` is the number of
    /// players that the server announced, where it did.
    Partial {
        count: Option<u32>,
    },
}

/// One entry of a server's player list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Player {
    /// As the server wrote it, colour codes and all.
    pub name: Name,
    /// Frags, score, points: whatever the game counts. Within +-`limits::POINTS_ABS_MAX`.
    pub points: i64,
    /// Milliseconds, where the protocol tells.
    pub ping: Option<i32>,
    /// How long the player has been connected, ms, where the protocol tells.
    pub connected_ms: Option<u64>,
    /// Marked as a bot by the protocol. The ping rule of RULES section 2 is
    /// applied later, by `rank`.
    pub bot: bool,
}
