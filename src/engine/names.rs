//! Finds players by name (docs/rules.md section 2), creates new players, and records how a name was
//! last written. Caches recent names, so that most lookups need no read of the store. If the
//! cache contains all names of the store, a miss means that a name is new.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::chunked_vec::ChunkedVec;
use super::{GlobalState, StateReader};
use crate::model::name::Name;
use crate::model::server::{PlayerEntry, PlayerRecord};
use crate::model::{GameKey, OutboxKey, PlayerKey};

/// Cached names. A full cache is cleared completely: it only saves reads.
#[derive(Debug, Default)]
pub(super) struct NameCache {
    known: FxHashMap<GameKey, FxHashMap<Name, CachedName>>,
    len: usize,
    /// The cache contains every name of the store.
    holds_all_names: bool,
}

#[derive(Clone, Copy, Debug)]
struct CachedName {
    player: PlayerKey,
    /// Hash of the spelling last seen: 64 bits for a text of 24 bytes.
    display: u64,
}

impl NameCache {
    /// The cache for a store that has no names.
    pub fn of_empty_store() -> NameCache {
        NameCache { holds_all_names: true, ..NameCache::default() }
    }

    fn find(&self, game: GameKey, name: &str) -> Option<CachedName> {
        self.known.get(&game)?.get(name).copied()
    }

    fn put(&mut self, game: GameKey, name: &Name, player: PlayerKey, display: &str) {
        let cached = CachedName { player, display: display_hash(display) };
        let before = self.known.entry(game).or_default().insert(name.clone(), cached);
        self.len += usize::from(before.is_none());
    }

    /// Clears the cache: names have moved to other players or were deleted.
    pub fn clear(&mut self) {
        *self = NameCache::default();
    }

    /// All cached names are in the store now. Clears the cache if it has more than `most`.
    pub fn evict_after_commit(&mut self, most: usize) {
        if self.len > most {
            self.clear();
        }
    }
}

fn display_hash(display: &str) -> u64 {
    FxBuildHasher.hash_one(display)
}

/// Records of players that are pending for a commit.
#[derive(Debug, Default)]
pub(super) struct PendingPlayers {
    /// Records of new players, which have consecutive keys.
    new: ChunkedVec<(PlayerKey, PlayerRecord), RECORDS_PER_CHUNK>,
    first_new: u32,
    changed: FxHashMap<PlayerKey, PlayerRecord>,
}

const RECORDS_PER_CHUNK: usize = 4_096;

impl PendingPlayers {
    pub fn get(&self, player: PlayerKey) -> Option<&PlayerRecord> {
        match self.new_index(player) {
            Some(index) => self.new.get(index).map(|(_, record)| record),
            None => self.changed.get(&player),
        }
    }

    /// The key must be the successor of the last new player's key.
    fn add(&mut self, player: PlayerKey, record: PlayerRecord) {
        if self.new.is_empty() {
            self.first_new = player.0;
        }
        debug_assert_eq!((player.0 - self.first_new) as usize, self.new.len());
        self.new.push((player, record));
    }

    fn change(&mut self, player: PlayerKey, record: PlayerRecord) {
        match self.new_index(player) {
            Some(index) => self.new[index].1 = record,
            None => _ = self.changed.insert(player, record),
        }
    }

    /// The index of a new player.
    fn new_index(&self, player: PlayerKey) -> Option<usize> {
        let index = player.0.checked_sub(self.first_new)? as usize;
        (!self.new.is_empty()).then_some(index)
    }

    pub fn len(&self) -> usize {
        self.new.len() + self.changed.len()
    }

    /// Returns chunks in order of key.
    pub fn into_chunks(self) -> Vec<Vec<(PlayerKey, PlayerRecord)>> {
        let mut changed: Vec<(PlayerKey, PlayerRecord)> = self.changed.into_iter().collect();
        changed.sort_unstable_by_key(|(player, _)| *player);
        // New players have keys above all others.
        std::iter::once(changed).chain(self.new.into_chunks()).filter(|chunk| !chunk.is_empty()).collect()
    }
}

impl GlobalState {
    /// The key of a normalised name; `None`: it has no key yet.
    pub(super) fn find_player<S: StateReader>(
        &self,
        source: &S,
        game: GameKey,
        name: &str,
    ) -> Result<Option<PlayerKey>, S::Error> {
        match self.name_cache.find(game, name) {
            Some(cached) => Ok(Some(cached.player)),
            None if self.name_cache.holds_all_names => Ok(None),
            None => Ok(source.player(game, name)?.map(|(player, _)| player)),
        }
    }

    /// The key of a usable entry's name; `None`: it has no key yet.
    pub(super) fn player_key<S: StateReader>(
        &mut self,
        source: &S,
        game: GameKey,
        entry: &PlayerEntry,
    ) -> Result<Option<PlayerKey>, S::Error> {
        if let Some(cached) = self.name_cache.find(game, &entry.name) {
            if cached.display != display_hash(entry.display()) {
                self.rename(source, cached.player, entry.display())?;
            }
            return Ok(Some(cached.player));
        }
        let stored = if self.name_cache.holds_all_names { None } else { source.player(game, &entry.name)? };
        let Some((player, display)) = stored else { return Ok(None) };
        // The store does not know a rename that is pending for a commit.
        if display != entry.display() || self.pending.players.get(player).is_some() {
            self.rename(source, player, entry.display())?;
        }
        // An alias has no spelling of its own: the spelling last seen is in the player's
        // record.
        if !display.is_empty() {
            self.name_cache.put(game, &entry.name, player, entry.display());
        }
        Ok(Some(player))
    }

    /// Assigns a key to an entry's name, which has none.
    pub(super) fn new_player(&mut self, game: GameKey, entry: &PlayerEntry) -> PlayerKey {
        let player = PlayerKey(self.meta.next_player);
        self.meta.next_player += 1;
        self.pending.meta = true;
        let record = PlayerRecord { game, name: entry.name.clone(), display: entry.display().into() };
        self.name_cache.put(game, &entry.name, player, entry.display());
        self.pending.players.add(player, record);
        self.enqueue(OutboxKey::Player(player));
        player
    }

    /// The record of a player as the next commit leaves it.
    pub(super) fn player_record<S: StateReader>(
        &self,
        source: &S,
        player: PlayerKey,
    ) -> Result<Option<PlayerRecord>, S::Error> {
        match self.pending.players.get(player) {
            Some(record) => Ok(Some(record.clone())),
            None => source.player_record(player),
        }
    }

    /// Records that a player's name is written differently from before.
    pub(super) fn rename<S: StateReader>(
        &mut self,
        source: &S,
        player: PlayerKey,
        display: &str,
    ) -> Result<(), S::Error> {
        if let Some(mut record) = self.player_record(source, player)?.filter(|record| record.display != display) {
            record.display = display.into();
            self.name_cache.put(record.game, &record.name, player, display);
            self.pending.players.change(player, record);
            self.enqueue(OutboxKey::Player(player));
        }
        Ok(())
    }
}
