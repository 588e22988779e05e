//! The changes since the last commit.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::StoreReader;
use super::names::pending_players::PendingPlayers;
use crate::model::commit::{Corrections, RowKey};
use crate::model::packed_row::PackedRow;
use crate::model::row::{BestPositions, MapRow, PlayerRow};
use crate::model::{
    GameKey, MapKey, OutboxKey, PlayerKey, Seen, ServerKey, Session, SessionKey, TagKey, WeekKey, WindowKey,
};

/// Changes since the last commit.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) meta: bool,
    pub(super) games: Vec<(GameKey, String)>,
    pub(super) maps: Vec<(MapKey, String)>,
    pub(super) tags: Vec<(TagKey, String)>,
    pub(super) players: PendingPlayers,
    pub(super) servers: FxHashSet<ServerKey>,
    pub(super) series: FxHashSet<ServerKey>,
    pub(super) rows: FxHashMap<(WindowKey, ServerKey), BTreeMap<PlayerKey, PackedRow>>,
    /// Rows in `rows`, in total.
    pub(super) rows_len: usize,
    pub(super) map_rows: FxHashMap<(WeekKey, ServerKey), BTreeMap<MapKey, MapRow>>,
    pub(super) best: FxHashMap<(ServerKey, PlayerKey), BestPositions>,
    /// The records in `best` that are not stored yet.
    pub(super) new_best: Vec<(PlayerKey, ServerKey)>,
    pub(super) closed_servers: Vec<(WeekKey, ServerKey, u64)>,
    pub(super) ranks: FxHashMap<(WeekKey, ServerKey), u32>,
    pub(super) outbox: FxHashSet<OutboxKey>,
    pub(super) acknowledged: Vec<(OutboxKey, u64)>,
    /// The time of the last complete archive run has changed.
    pub(super) archive_complete: bool,
    pub(super) deleted_windows: Vec<WindowKey>,
    /// Complete sessions.
    pub(super) sessions: BTreeMap<SessionKey, Session>,
    pub(super) seen: BTreeMap<PlayerKey, Seen>,
    pub(super) corrections: Corrections,
}

impl Pending {
    pub fn row(&self, key: RowKey) -> Option<PlayerRow> {
        Some(self.rows.get(&(key.window, key.server))?.get(&key.player)?.unpack())
    }

    /// Whether the boards of a window are waiting to be published.
    pub fn has_unpublished_boards(&self, source: &dyn StoreReader, window: WindowKey) -> bool {
        let key = OutboxKey::TopBoards(window);
        self.outbox.contains(&key) || source.outbox_seq(key).is_some()
    }

    pub fn put_row(&mut self, key: RowKey, row: &PlayerRow) {
        let server_rows = self.rows.entry((key.window, key.server)).or_default();
        self.rows_len += usize::from(server_rows.insert(key.player, PackedRow::pack(row)).is_none());
    }
}
