//! A commit: everything that a run of events changed, applied to the store as
//! one atomic batch. Only the engine makes one.

use serde::{Deserialize, Serialize};

use super::archive::OutboxKey;
use super::key::{GameKey, MapKey, PlayerKey, ServerKey, WeekKey};
use super::row::{BestPositions, MapRow, WeekRow};
use super::server::{PlayerRecord, SeriesRecord, ServerRecord};

/// The few numbers that belong to the whole state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    pub next_player: u32,
    pub next_server: u32,
    pub next_map: u32,
    pub next_game: u32,
    /// The latest moment of any event, Unix ms. Time never runs backwards past it.
    pub now_ms: i64,
    /// Time zone that weeks were counted in; it cannot change once there are any.
    pub zone: String,
    /// Weeks that hold rows, oldest first.
    pub weeks: Vec<WeekState>,
    /// The outbox was full and let something go: everything must be archived anew.
    pub resync: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeekState {
    pub week: WeekKey,
    pub phase: WeekPhase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeekPhase {
    /// Snapshots of this week still come in.
    Open,
    /// Over; its servers are being closed one after the other.
    Closing,
    /// Every server is closed; server ranks are being given.
    Ranking,
    /// Final. Never changes again.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    pub week: WeekKey,
    pub server: ServerKey,
    pub player: PlayerKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapRowKey {
    pub week: WeekKey,
    pub server: ServerKey,
    pub map: MapKey,
}

/// Absolute new values; applying one twice is the same as once.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    pub meta: Option<Meta>,
    pub games: Vec<(GameKey, String)>,
    pub maps: Vec<(MapKey, String)>,
    pub players: Vec<(PlayerKey, PlayerRecord)>,
    pub servers: Vec<(ServerKey, ServerRecord)>,
    pub series: Vec<(ServerKey, SeriesRecord)>,
    pub rows: Vec<(RowKey, WeekRow)>,
    /// Rows that came to be, whether they are written yet or live with their
    /// presence: what finds the servers of a player.
    pub appeared: Vec<RowKey>,
    pub map_rows: Vec<(MapRowKey, MapRow)>,
    pub best: Vec<((ServerKey, PlayerKey), BestPositions)>,
    /// Servers closed for a week.
    pub closed: Vec<(WeekKey, ServerKey)>,
    /// Server ranks of weeks that are over, 1 is best.
    pub ranks: Vec<(WeekKey, ServerKey, u32)>,
    /// To be archived; the store gives each the next sequence number.
    pub outbox: Vec<OutboxKey>,
    /// Archived: removed where the sequence number is still the one given.
    pub archived: Vec<(OutboxKey, u64)>,
    /// Weeks whose hot rows are let go.
    pub dropped_weeks: Vec<WeekKey>,
}

impl Commit {
    pub fn is_empty(&self) -> bool {
        let Commit {
            meta,
            games,
            maps,
            players,
            servers,
            series,
            rows,
            appeared,
            map_rows,
            best,
            closed,
            ranks,
            outbox,
            archived,
            dropped_weeks,
        } = self;
        meta.is_none()
            && games.is_empty()
            && maps.is_empty()
            && players.is_empty()
            && servers.is_empty()
            && series.is_empty()
            && rows.is_empty()
            && appeared.is_empty()
            && map_rows.is_empty()
            && best.is_empty()
            && closed.is_empty()
            && ranks.is_empty()
            && outbox.is_empty()
            && archived.is_empty()
            && dropped_weeks.is_empty()
    }
}
