//! The commit that the changes become.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::{CacheLimits, Engine, ReadModel};
use crate::model::commit::{MapRowKey, RowKey};
use crate::model::{Commit, PlayerKey, ServerKey};

impl ReadModel {
    /// Whether records are to be deleted that the next tick may write again: of players, or the results of a week that
    /// is reopened. A replay commits them after the same tick.
    pub fn has_deletions(&self) -> bool {
        let corrections = &self.global.pending.corrections;
        !(corrections.deleted_best.is_empty() && corrections.reopened_servers.is_empty())
    }

    /// Whether the next commit deletes a week.
    pub fn deletes_weeks(&self) -> bool {
        self.global.pending.deleted_windows.iter().any(|window| window.week().is_some())
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
                && p.sessions.is_empty()
                && p.seen.is_empty()
                && p.deleted_windows.is_empty()
                && p.corrections.is_empty())
    }

    /// Rows and players that a commit would contain.
    pub fn pending_records(&self) -> usize {
        self.global.pending.rows_len + self.global.player_windows.changed_len() + self.global.pending.players.len()
    }
}

impl Engine {
    /// Sets the limits of the caches; the next commit applies them.
    pub fn set_cache_limits(&mut self, memory: CacheLimits) {
        self.model.global.cache_limits = memory;
    }

    /// Takes everything that changed since the last commit. It must be applied before the next
    /// event, because reads do not see it until then.
    pub fn take_commit(&mut self) -> Commit {
        let changed = self.model.has_changes();
        let pending = std::mem::take(&mut self.model.global.pending);
        debug_assert_eq!(pending.rows_len, pending.rows.values().map(BTreeMap::len).sum::<usize>());
        self.model.global.first_uncommitted_player = PlayerKey(self.model.global.meta.next_player);
        self.model.global.name_cache.evict_after_commit(self.model.global.cache_limits.names_max);
        let server_state = |key: &ServerKey| self.model.servers.get(*key).expect("changed servers exist");
        // With fewer than there are players online, half of them were read for each rated round: a quarter of the engine
        // thread's time with 8 million.
        let player_windows_max = self.model.global.cache_limits.most_player_windows(self.model.servers.end());
        let mut commit = Commit {
            meta: changed.then(|| self.model.global.meta.clone()),
            games: pending.games,
            maps: pending.maps,
            tags: pending.tags,
            player_windows: self.model.global.player_windows.take_changed(player_windows_max),
            players: pending.players.into_chunks(),
            servers: pending.servers.iter().map(|key| (*key, server_state(key).record.share())).collect(),
            series: pending.series.iter().filter_map(|key| Some((*key, server_state(key).series.clone()?))).collect(),
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
            sessions: pending.sessions.into_iter().collect(),
            seen: pending.seen.into_iter().collect(),
            archive_complete_ms: pending.archive_complete.then_some(self.model.global.archive_complete_ms),
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

/// Sorts by key. The value of each key is sorted already.
fn sorted_by_key<K: Ord + Copy, V>(by_key: FxHashMap<K, V>) -> impl Iterator<Item = (K, V)> {
    let mut by_key: Vec<(K, V)> = by_key.into_iter().collect();
    by_key.sort_unstable_by_key(|(key, _)| *key);
    by_key.into_iter()
}
