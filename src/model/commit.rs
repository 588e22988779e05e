//! A commit: all changes of a sequence of events, applied to the store as one atomic batch.
//! Only the engine creates one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strum::VariantNames;

use super::outbox::{ArchiveWriter, OutboxKey, ResyncState};
use super::row::{BestPositions, MapRow, PlayerWindow};
use super::server::{PlayerRecord, ServerRecord};
use super::session::{Seen, Session, SessionDay, SessionKey};
use super::window::{WindowKey, WindowType};
use crate::model::board_order::OrderOverrides;
use crate::model::keys::{GameKey, MapKey, PlayerKey, ServerKey, TagKey, WeekKey};
use crate::model::name_hash::NameHash;
use crate::model::packed_row::PackedRow;
use crate::model::packed_series::PackedSeries;

/// Values of the state as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    pub next_player: u32,
    pub next_server: u32,
    pub next_map: u32,
    pub next_game: u32,
    pub next_tag: u32,
    /// The latest time of any event, Unix ms. Recorded time never runs backwards past it.
    pub now_ms: i64,
    /// Time zone that weeks were counted in; it cannot change once there are any.
    pub time_zone: String,
    /// Weeks that have rows, oldest first.
    pub weeks: Vec<WeekState>,
    /// Windows other than weeks that have rows, and the next of each type; in order of key.
    pub windows: Vec<WindowState>,
    /// Types of windows other than weeks, in order of type.
    pub types: Vec<WindowTypeState>,
    /// Number of removed players: merged or forgotten.
    pub players_removed: u32,
    /// A resync is needed or in progress: the archive is new, or the outbox was full and
    /// dropped an entry.
    pub resync: bool,
    /// The orders of boards by which positions were last archived; `None`: nothing was archived
    /// yet.
    pub archived_orders: Option<OrderOverrides>,
    /// The progress of the resync, and its archive.
    pub resync_state: ResyncState,
    /// Weeks that an admin reopened and that are not closed again yet, in order.
    pub reopened_weeks: Vec<WeekKey>,
    /// Windows whose rows are being replaced by those of a rebuild. Records of earlier versions end before
    /// it.
    pub importing: Vec<WindowKey>,
    /// Players who were not seen for long are dropped: after the close of this week, up to this player.
    pub players_dropped: Option<(WeekKey, PlayerKey)>,
    /// The last writer of the archive from this state; `None`: any last writer is accepted.
    pub archive_writer: Option<ArchiveWriter>,
    /// Kept windows that have ended and whose boards are to be published as closed, or were; in order.
    pub ended: Vec<WindowKey>,
    /// Days whose sessions are kept, in order.
    pub session_days: Vec<SessionDay>,
    /// Of days that are opened now.
    pub session_generation: u8,
    /// Players with a smaller key come from an archive, which does not say when they were first seen.
    pub first_seen_from: PlayerKey,
}

impl Meta {
    /// Every window that has or will have rows: weeks, then others, in order.
    pub fn kept_windows(&self) -> impl Iterator<Item = WindowKey> + '_ {
        let weeks = self.weeks.iter().map(|state| WindowKey::from(state.week));
        weeks.chain(self.windows.iter().map(|state| state.window))
    }

    /// The kept windows, and the days whose sessions are kept: all that have records.
    pub fn stored_windows(&self) -> impl Iterator<Item = WindowKey> + '_ {
        self.kept_windows().chain(self.session_days.iter().map(|day| WindowKey::from(*day)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeekState {
    pub week: WeekKey,
    pub phase: WeekPhase,
}

/// A type of windows as in the last applied config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowTypeState {
    pub kind: WindowType,
    /// For a custom type: base, duration and interval, ms, and number of windows.
    pub bounds: Option<(i64, i64, i64, u32)>,
    /// Its windows are being rebuilt from the log; until then nothing is credited to them.
    pub rebuilding: bool,
}

/// A window other than a week, with the boundaries that it was opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowState {
    pub window: WindowKey,
    pub start_ms: i64,
    /// End of the window (exclusive), Unix ms.
    pub end_ms: i64,
}

/// The phase of a week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum WeekPhase {
    /// Snapshots of this week are still credited.
    Running,
    /// Ended; its servers are being closed one after the other.
    Closing,
    /// Every server is closed; server ranks are being assigned.
    Ranking,
    /// Final. Only a correction by an admin changes it.
    Closed,
    /// An admin reopened it: the results of closing are being removed from the servers. Then it
    /// is running.
    Reopening,
}

impl WeekPhase {
    /// Whether snapshots are credited to the week: closing does not change rows, so they are while
    /// its results are removed, too.
    pub fn is_open(self) -> bool {
        matches!(self, WeekPhase::Running | WeekPhase::Reopening)
    }
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

/// Absolute new values: applying a commit is idempotent.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    pub meta: Option<Meta>,
    pub games: Vec<(GameKey, String)>,
    pub maps: Vec<(MapKey, String)>,
    /// In chunks, in order of key.
    pub players: Vec<Vec<(PlayerKey, PlayerRecord)>>,
    pub servers: Vec<(ServerKey, Arc<ServerRecord>)>,
    pub series: Vec<(ServerKey, PackedSeries)>,
    pub tags: Vec<(TagKey, String)>,
    pub rows: Vec<(RowKey, PackedRow)>,
    pub player_windows: Vec<((WindowKey, PlayerKey), PlayerWindow)>,
    pub map_rows: Vec<(MapRowKey, MapRow)>,
    pub best: Vec<((ServerKey, PlayerKey), BestPositions)>,
    /// Servers on which players have their first best positions.
    pub new_best: Vec<(PlayerKey, ServerKey)>,
    /// Servers closed for a week, each with the player-milliseconds that determine its rank.
    pub closed_servers: Vec<(WeekKey, ServerKey, u64)>,
    /// Server ranks of ended weeks, 1 is best.
    pub ranks: Vec<(WeekKey, ServerKey, u32)>,
    /// Keys to archive; the store assigns each the next sequence number.
    pub outbox: Vec<OutboxKey>,
    /// Archived entries: removed if the sequence number has not changed.
    pub acknowledged: Vec<(OutboxKey, u64)>,
    /// When everything pending was last in the archive, Unix ms; the inner `None`: never.
    pub archive_complete_ms: Option<Option<i64>>,
    /// Complete sessions, in order.
    pub sessions: Vec<(SessionKey, Session)>,
    pub seen: Vec<(PlayerKey, Seen)>,
    /// Windows whose rows are deleted.
    pub deleted_windows: Vec<WindowKey>,
    pub corrections: Corrections,
}

/// Deletions by an admin's corrections. The same commit writes none of these records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corrections {
    pub deleted_rows: Vec<RowKey>,
    pub deleted_player_windows: Vec<(WindowKey, PlayerKey)>,
    pub deleted_best: Vec<(ServerKey, PlayerKey)>,
    pub deleted_sessions: Vec<SessionKey>,
    /// Removed players, and the players that they were merged into, if any.
    pub removed_players: Vec<(PlayerKey, Option<PlayerKey>)>,
    /// Names that do not identify a player any more.
    pub deleted_names: Vec<(GameKey, String)>,
    /// Further names of players, each with the key of its player.
    pub aliases: Vec<(PlayerKey, GameKey, String)>,
    pub deleted_aliases: Vec<(PlayerKey, String)>,
    /// Names that are never stored again, each with the time of the request, Unix ms.
    pub forgotten: Vec<(NameHash, i64)>,
    pub allowed_names: Vec<NameHash>,
    /// Deleted tags. Records may still contain their keys, which are never reused.
    pub deleted_tags: Vec<TagKey>,
    /// Servers of a reopened week. They are no longer closed for it and have no rank in it.
    pub reopened_servers: Vec<(WeekKey, ServerKey)>,
}

impl Corrections {
    /// Approximate number of records that change.
    pub fn records(&self) -> usize {
        self.deleted_rows.len()
            + self.deleted_player_windows.len()
            + self.deleted_best.len()
            + 2 * self.deleted_sessions.len()
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
    /// Approximate number of records that it changes.
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
            + 2 * self.sessions.len()
            + self.seen.len()
            + self.corrections.records()
    }
}
