//! A commit: everything that a run of events changed, applied to the store as
//! one atomic batch. Only the engine makes one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::archive::{OutboxKey, ResyncState};
use super::row::{BestPositions, MapRow, PlayerWindow};
use super::server::{PlayerRecord, SeriesRecord, ServerRecord};
use super::window::{WindowKey, WindowType};
use crate::model::board_order::OrderOverrides;
use crate::model::keys::{GameKey, MapKey, PlayerKey, ServerKey, TagKey, WeekKey};
use crate::model::name_hash::NameHash;
use crate::model::packed_row::PackedRow;

/// The few numbers that belong to the whole state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    pub next_player: u32,
    pub next_server: u32,
    pub next_map: u32,
    pub next_game: u32,
    pub next_tag: u32,
    /// The latest moment of any event, Unix ms. Time never runs backwards past it.
    pub now_ms: i64,
    /// Time zone that weeks were counted in; it cannot change once there are any.
    pub time_zone: String,
    /// Weeks that hold rows, oldest first.
    pub weeks: Vec<WeekState>,
    /// Windows other than weeks, those that hold rows and the next of each type;
    /// in order of key.
    pub windows: Vec<WindowState>,
    /// Types of windows other than weeks, in order of type.
    pub types: Vec<WindowTypeState>,
    /// Players who are no more: merged into others, or forgotten.
    pub players_removed: u32,
    /// A resync is needed or in progress: the archive is new, or the outbox was full
    /// and dropped something.
    pub resync: bool,
    /// How boards are ordered by which positions were last archived; `None`: nothing
    /// ever was.
    pub archived_orders: Option<OrderOverrides>,
    /// How far the resync is, and of which archive.
    pub resync_state: ResyncState,
    /// Weeks that an admin reopened and that are not closed again yet, in order.
    pub reopened_weeks: Vec<WeekKey>,
}

impl Meta {
    /// Every window that holds rows or is to: weeks, then others, in order.
    pub fn kept_windows(&self) -> impl Iterator<Item = WindowKey> + '_ {
        let weeks = self.weeks.iter().map(|state| WindowKey::from(state.week));
        weeks.chain(self.windows.iter().map(|state| state.window))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeekState {
    pub week: WeekKey,
    pub phase: WeekPhase,
}

/// A type of windows as the config had it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowTypeState {
    pub kind: WindowType,
    /// Of a type of the config's own: base, duration and distance, ms, and how many.
    pub repeats: Option<(i64, i64, i64, u32)>,
    /// Its windows are being made from the scan log; until then none is credited.
    pub rebuilding: bool,
}

/// A window other than a week, as it was when it came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowState {
    pub window: WindowKey,
    pub start_ms: i64,
    /// First moment after it.
    pub end_ms: i64,
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
    /// Final. Changes only by an admin's correction.
    Closed,
    /// An admin reopened it: what closing gave to servers is being removed. Then it
    /// is open.
    Reopening,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    pub window: WindowKey,
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
    /// In portions, in order of key.
    pub players: Vec<Vec<(PlayerKey, PlayerRecord)>>,
    pub servers: Vec<(ServerKey, ServerRecord)>,
    pub series: Vec<(ServerKey, SeriesRecord)>,
    pub tags: Vec<(TagKey, String)>,
    pub rows: Vec<(RowKey, PackedRow)>,
    pub player_windows: Vec<((WindowKey, PlayerKey), Arc<PlayerWindow>)>,
    pub map_rows: Vec<(MapRowKey, MapRow)>,
    pub best: Vec<((ServerKey, PlayerKey), BestPositions)>,
    /// Servers on which players have best positions since now.
    pub new_best: Vec<(PlayerKey, ServerKey)>,
    /// Servers closed for a week, each with the player-milliseconds that it is
    /// ranked by.
    pub closed_servers: Vec<(WeekKey, ServerKey, u64)>,
    /// Server ranks of weeks that are over, 1 is best.
    pub ranks: Vec<(WeekKey, ServerKey, u32)>,
    /// To be archived; the store gives each the next sequence number.
    pub outbox: Vec<OutboxKey>,
    /// Archived: removed where the sequence number is still the one given.
    pub acknowledged: Vec<(OutboxKey, u64)>,
    /// Windows whose rows are let go.
    pub deleted_windows: Vec<WindowKey>,
    pub corrections: Corrections,
}

/// What an admin's corrections take away. None of it is among the values of the
/// same commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corrections {
    pub deleted_rows: Vec<RowKey>,
    pub deleted_player_windows: Vec<(WindowKey, PlayerKey)>,
    pub deleted_best: Vec<(ServerKey, PlayerKey)>,
    /// Players who are no more, and who they were merged into, if they were.
    pub removed_players: Vec<(PlayerKey, Option<PlayerKey>)>,
    /// Names that nobody is known by any more.
    pub deleted_names: Vec<(GameKey, String)>,
    /// Further names of players: they lead to their keys.
    pub aliases: Vec<(PlayerKey, GameKey, String)>,
    pub deleted_aliases: Vec<(PlayerKey, String)>,
    /// Names never to be stored again, each with when that was asked for, Unix ms.
    pub forgotten: Vec<(NameHash, i64)>,
    pub allowed_names: Vec<NameHash>,
    /// Tags that were dropped. Their keys, which records may still name, are never
    /// handed out again.
    pub deleted_tags: Vec<TagKey>,
    /// Servers of a reopened week: they are not closed any more, and have no rank.
    pub reopened_servers: Vec<(WeekKey, ServerKey)>,
}

impl Corrections {
    /// About how many records change.
    pub fn records(&self) -> usize {
        self.deleted_rows.len()
            + self.deleted_player_windows.len()
            + self.deleted_best.len()
            + 2 * (self.removed_players.len() + self.aliases.len())
            + self.deleted_names.len()
            + self.deleted_aliases.len()
            + self.forgotten.len()
            + self.allowed_names.len()
            + self.deleted_tags.len()
            + 2 * self.reopened_servers.len()
    }

    pub fn is_empty(&self) -> bool {
        *self == Corrections::default()
    }
}

impl Commit {
    /// Records that it changes, about.
    pub fn records(&self) -> usize {
        2 * self.players.iter().map(Vec::len).sum::<usize>()
            + self.servers.len()
            + self.series.len()
            + self.rows.len()
            + self.player_windows.len()
            + self.map_rows.len()
            + self.best.len()
            + self.new_best.len()
            + self.closed_servers.len()
            + self.ranks.len()
            + self.outbox.len()
            + self.acknowledged.len()
            + self.corrections.records()
    }

    pub fn is_empty(&self) -> bool {
        let Commit {
            meta,
            games,
            maps,
            players,
            servers,
            series,
            tags,
            rows,
            player_windows,
            map_rows,
            best,
            new_best: best_new,
            closed_servers: closed,
            ranks,
            outbox,
            acknowledged: archived,
            deleted_windows: dropped,
            corrections,
        } = self;
        meta.is_none()
            && games.is_empty()
            && maps.is_empty()
            && players.is_empty()
            && servers.is_empty()
            && series.is_empty()
            && tags.is_empty()
            && rows.is_empty()
            && player_windows.is_empty()
            && map_rows.is_empty()
            && best.is_empty()
            && best_new.is_empty()
            && closed.is_empty()
            && ranks.is_empty()
            && outbox.is_empty()
            && archived.is_empty()
            && dropped.is_empty()
            && corrections.is_empty()
    }
}
