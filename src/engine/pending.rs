//! The changes since the last commit, and the commit that they become.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::names::PendingPlayers;
use super::{CacheLimits, Engine, GlobalState, StateReader, StoreReader};
use crate::model::commit::{Corrections, MapRowKey, RowKey, WeekPhase};
use crate::model::packed_row::PackedRow;
use crate::model::row::{BestPositions, MapRow, PlayerRow};
use crate::model::server::SeriesRecord;
use crate::model::{Commit, GameKey, MapKey, OutboxKey, PlayerKey, ServerKey, TagKey, WeekKey, WindowKey};

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
    pub(super) corrections: Corrections,
}

impl Pending {
    pub fn row(&self, key: RowKey) -> Option<PlayerRow> {
        Some(self.rows.get(&(key.window, key.server))?.get(&key.player)?.unpack())
    }

    /// Whether the boards of a window are waiting to be published.
    pub fn has_unpublished_boards<S: StoreReader>(&self, source: &S, window: WindowKey) -> bool {
        let key = OutboxKey::TopBoards(window);
        self.outbox.contains(&key) || source.outbox_contains(key)
    }

    pub fn put_row(&mut self, key: RowKey, row: &PlayerRow) {
        let server_rows = self.rows.entry((key.window, key.server)).or_default();
        self.rows_len += usize::from(server_rows.insert(key.player, PackedRow::pack(row)).is_none());
    }
}

impl Engine {
    /// Whether records of players are to be deleted.
    pub fn has_deletions(&self) -> bool {
        !self.global.pending.corrections.deleted_best.is_empty()
    }

    /// Whether a commit would contain anything.
    pub fn has_changes(&self) -> bool {
        let p = &self.global.pending;
        p.meta
            || p.archive_complete
            || !(p.servers.is_empty()
                && p.rows.is_empty()
                && p.players.len() == 0
                && p.outbox.is_empty()
                && p.acknowledged.is_empty()
                && !self.global.player_windows.is_changed()
                && p.closed_servers.is_empty()
                && p.best.is_empty()
                && p.deleted_windows.is_empty()
                && p.corrections.is_empty())
    }

    /// Sets the limits of the caches; the next commit applies them.
    pub fn set_cache_limits(&mut self, memory: CacheLimits) {
        self.global.cache_limits = memory;
    }

    /// Rows and players that a commit would contain.
    pub fn pending_records(&self) -> usize {
        self.global.pending.rows_len + self.global.player_windows.changed_len() + self.global.pending.players.len()
    }

    /// Takes everything that changed since the last commit. It must be applied before the next
    /// event, because reads do not see it until then.
    pub fn take_commit(&mut self) -> Commit {
        let changed = self.has_changes();
        let pending = std::mem::take(&mut self.global.pending);
        debug_assert_eq!(pending.rows_len, pending.rows.values().map(BTreeMap::len).sum::<usize>());
        self.global.first_uncommitted_player = PlayerKey(self.global.meta.next_player);
        self.global.name_cache.evict_after_commit(self.global.cache_limits.names_max);
        let server_state = |key: &ServerKey| self.servers[key.0 as usize].as_ref().expect("changed servers exist");
        let mut commit = Commit {
            meta: changed.then(|| self.global.meta.clone()),
            games: pending.games,
            maps: pending.maps,
            tags: pending.tags,
            player_windows: self.global.player_windows.take_changed(self.global.cache_limits.player_windows_max),
            players: pending.players.into_chunks(),
            servers: pending.servers.iter().map(|key| (*key, server_state(key).record.share())).collect(),
            series: pending
                .series
                .iter()
                .filter_map(|key| Some((*key, SeriesRecord::clone(server_state(key).series.as_ref()?))))
                .collect(),
            rows: sorted_by_key(pending.rows)
                .flat_map(|((window, server), rows)| {
                    rows.into_iter().map(move |(player, row)| (RowKey { window, server, player }, row))
                })
                .collect(),
            map_rows: sorted_by_key(pending.map_rows)
                .flat_map(|((week, server), rows)| {
                    rows.into_iter().map(move |(map, row)| (MapRowKey { week, server, map }, row))
                })
                .collect(),
            best: pending.best.into_iter().collect(),
            new_best: pending.new_best,
            closed_servers: pending.closed_servers,
            ranks: pending.ranks.into_iter().map(|((week, server), rank)| (week, server, rank)).collect(),
            outbox: pending.outbox.into_iter().collect(),
            acknowledged: pending.acknowledged,
            archive_complete_ms: pending.archive_complete.then_some(self.global.archive_complete_ms),
            deleted_windows: pending.deleted_windows,
            corrections: pending.corrections,
        };
        // Sorted by key: the same events make the same commit, and each page of the store is
        // written once.
        commit.servers.sort_unstable_by_key(|(key, _)| *key);
        commit.series.sort_unstable_by_key(|(key, _)| *key);
        commit.player_windows.sort_unstable_by_key(|(key, _)| *key);
        commit.best.sort_unstable_by_key(|(key, _)| *key);
        commit.new_best.sort_unstable();
        commit.ranks.sort_unstable();
        commit.outbox.sort_unstable();
        commit
    }
}

impl GlobalState {
    /// Notes that replicas lack a change of a server.
    pub(super) fn note_for_replicas(&mut self, server: ServerKey) {
        self.changed_servers.iter_mut().for_each(|changed| changed.push(server));
    }

    /// The record of a server has changed.
    pub(super) fn server_changed(&mut self, server: ServerKey) {
        self.pending.servers.insert(server);
        self.note_for_replicas(server);
        self.enqueue(OutboxKey::Server(server));
    }

    /// Adds an entry to the outbox, and a server's week with all its rows. Without an archive, records that everything must be
    /// archived later.
    pub(super) fn enqueue(&mut self, key: OutboxKey) {
        if !self.records_archive_changes() {
            self.require_resync();
            return;
        }
        self.enqueue_now(key);
    }

    /// As [`GlobalState::enqueue`], also if the outbox is full.
    pub(super) fn enqueue_now(&mut self, key: OutboxKey) {
        if let OutboxKey::Week { week, server } = key {
            self.archive_changes.add_all_rows(week, server);
            self.enqueue_boards_of_closed(week);
        }
        self.pending.outbox.insert(key);
    }

    /// After a change of a week: if it is closed, its boards are published again.
    fn enqueue_boards_of_closed(&mut self, week: WeekKey) {
        // The running week is the last one. The boards of the week after have positions of this one.
        for state in self.meta.weeks.iter().rev().take_while(|state| state.week >= week) {
            if state.phase == WeekPhase::Closed && state.week.0 <= week.0 + 1 {
                self.pending.outbox.insert(OutboxKey::TopBoards(state.week.into()));
            }
        }
    }

    /// Adds a server's week to the outbox. Its changed rows are recorded separately: see
    /// [`ArchiveChanges`](super::outbox::changes::ArchiveChanges).
    pub(super) fn enqueue_changed_rows(&mut self, week: WeekKey, server: ServerKey) {
        if !self.records_archive_changes() {
            self.require_resync();
            return;
        }
        self.archive_changes.add_week(week, server);
        self.enqueue_boards_of_closed(week);
        self.pending.outbox.insert(OutboxKey::Week { week, server });
    }

    /// Whether changes are added to the outbox. Otherwise there is no archive, or the outbox drops
    /// entries and everything is archived later.
    pub(super) fn records_archive_changes(&self) -> bool {
        self.settings.archive_enabled && !self.settings.outbox_full
    }

    /// Best positions that are committed. Records that the player will have some, if there are
    /// none; `week` is their first week.
    pub(super) fn best_or_new<S: StateReader>(
        &mut self,
        source: &S,
        server: ServerKey,
        player: PlayerKey,
        week: Option<WeekKey>,
    ) -> Result<BestPositions, S::Error> {
        Ok(source.best(server, player)?.unwrap_or_else(|| {
            self.pending.new_best.push((player, server));
            let since = week.filter(|_| self.meta.players_dropped.is_some());
            BestPositions::known_since(since)
        }))
    }
}

/// Sorts by key. The value of each key is sorted already.
fn sorted_by_key<K: Ord + Copy, V>(by_key: FxHashMap<K, V>) -> impl Iterator<Item = (K, V)> {
    let mut by_key: Vec<(K, V)> = by_key.into_iter().collect();
    by_key.sort_unstable_by_key(|(key, _)| *key);
    by_key.into_iter()
}
