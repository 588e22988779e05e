//! Players whose records have changed since the last commit.

use rustc_hash::FxHashMap;

use crate::engine::chunked_vec::ChunkedVec;
use crate::model::PlayerKey;
use crate::model::server::PlayerRecord;

/// Records of players that are pending for a commit.
#[derive(Debug, Default)]
pub(in crate::engine) struct PendingPlayers {
    /// Records of new players, which have consecutive keys.
    new: ChunkedVec<(PlayerKey, PlayerRecord), RECORDS_PER_CHUNK>,
    first_new: u32,
    changed: FxHashMap<PlayerKey, PlayerRecord>,
}

const RECORDS_PER_CHUNK: usize = 4_096;

impl PendingPlayers {
    pub(in crate::engine) fn get(&self, player: PlayerKey) -> Option<&PlayerRecord> {
        match self.new_index(player) {
            Some(index) => self.new.get(index).map(|(_, record)| record),
            None => self.changed.get(&player),
        }
    }

    /// The key must be the successor of the last new player's key.
    pub(super) fn add(&mut self, player: PlayerKey, record: PlayerRecord) {
        if self.new.is_empty() {
            self.first_new = player.0;
        }
        debug_assert_eq!((player.0 - self.first_new) as usize, self.new.len());
        self.new.push((player, record));
    }

    pub(super) fn change(&mut self, player: PlayerKey, record: PlayerRecord) {
        match self.new_index(player) {
            Some(index) => self.new[index].1 = record,
            None => _ = self.changed.insert(player, record),
        }
    }

    /// The index of a new player.
    pub(super) fn new_index(&self, player: PlayerKey) -> Option<usize> {
        let index = player.0.checked_sub(self.first_new)? as usize;
        (!self.new.is_empty()).then_some(index)
    }

    pub(in crate::engine) fn len(&self) -> usize {
        self.new.len() + self.changed.len()
    }

    /// Returns chunks in order of key.
    pub(in crate::engine) fn into_chunks(self) -> Vec<Vec<(PlayerKey, PlayerRecord)>> {
        let mut changed: Vec<(PlayerKey, PlayerRecord)> = self.changed.into_iter().collect();
        changed.sort_unstable_by_key(|(player, _)| *player);
        // New players have keys above all others.
        std::iter::once(changed).chain(self.new.into_chunks()).filter(|chunk| !chunk.is_empty()).collect()
    }
}
