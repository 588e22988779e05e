//! What must still be archived: outbox entries, and the progress of a resync (docs/rules.md
//! section 12).
//!
//! The outbox holds keys of changed objects, not values: the values are read when they are
//! archived, consistently for each server. So during an outage of MySQL each object needs one
//! small entry, however often it changes.

use serde::{Deserialize, Serialize};

use crate::model::keys::{GameKey, MapKey, PlayerKey, ServerKey, WeekKey};

/// An object to be archived. The order is the order of archiving: names before objects that
/// refer to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OutboxKey {
    Game(GameKey),
    Map(MapKey),
    /// A player, possibly removed.
    Player(PlayerKey),
    Server(ServerKey),
    Week {
        week: WeekKey,
        server: ServerKey,
    },
    /// The totals of maps in a week, computed again from the rows in the archive.
    MapTotals(WeekKey),
}

/// An outbox key and the sequence number of its last change. The entry may only be removed
/// while it has this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxEntry {
    pub key: OutboxKey,
    pub seq: u64,
}

/// A position in a resync: what is written next. A resync writes the whole state in this order;
/// concurrent changes go through the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ResyncCursor {
    Game(GameKey),
    Map(MapKey),
    /// Merged and forgotten players with a greater key. Their names may belong to other players
    /// now.
    RemovedPlayers {
        after: Option<PlayerKey>,
    },
    /// Servers, each after the players of its list.
    Server(ServerKey),
    Player(PlayerKey),
    Week {
        week: WeekKey,
        server: ServerKey,
    },
    End,
}

impl ResyncCursor {
    pub const START: ResyncCursor = ResyncCursor::Game(GameKey(1));
    pub const WEEKS: ResyncCursor = ResyncCursor::Week { week: WeekKey(0), server: ServerKey(1) };

    /// Whether all names are written, so that servers and weeks may refer to any of them.
    pub fn is_past_names(self) -> bool {
        self >= ResyncCursor::WEEKS
    }
}

/// The state's part of a resync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResyncState {
    /// Identifies the archive: the same number is stored there when its first resync begins. An
    /// archive with another number, or without one, is filled from the start.
    pub archive_id: Option<u64>,
    /// Everything before this position is written.
    pub next: ResyncCursor,
    /// The outbox dropped an entry since the start: another resync follows this one.
    pub repeat: bool,
}

impl Default for ResyncState {
    fn default() -> ResyncState {
        ResyncState { archive_id: None, next: ResyncCursor::START, repeat: false }
    }
}
