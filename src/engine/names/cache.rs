//! Recent names of players. If the cache contains all names of the store, a miss means that a name is new.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::model::name::Name;
use crate::model::{GameKey, PlayerKey};

/// Cached names. A full cache is cleared completely: it only saves reads.
#[derive(Debug, Default)]
pub(in crate::engine) struct NameCache {
    known: FxHashMap<GameKey, FxHashMap<Name, CachedName>>,
    len: usize,
    /// The cache contains every name of the store.
    pub(super) holds_all_names: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CachedName {
    pub player: PlayerKey,
    /// Hash of the spelling last seen: 64 bits for a text of 24 bytes.
    pub display: u64,
}

impl NameCache {
    /// The cache for a store that has no names.
    pub(in crate::engine) fn of_empty_store() -> NameCache {
        NameCache { holds_all_names: true, ..NameCache::default() }
    }

    pub(super) fn find(&self, game: GameKey, name: &str) -> Option<CachedName> {
        self.known.get(&game)?.get(name).copied()
    }

    pub(super) fn put(&mut self, game: GameKey, name: &Name, player: PlayerKey, display: &str) {
        let cached = CachedName { player, display: display_hash(display) };
        let before = self.known.entry(game).or_default().insert(name.clone(), cached);
        self.len += usize::from(before.is_none());
    }

    /// Clears the cache: names have moved to other players or were deleted.
    pub(in crate::engine) fn clear(&mut self) {
        *self = NameCache::default();
    }

    /// All cached names are in the store now. Clears the cache if it has more than `most`.
    pub(in crate::engine) fn evict_after_commit(&mut self, most: usize) {
        if self.len > most {
            self.clear();
        }
    }
}

pub(super) fn display_hash(display: &str) -> u64 {
    FxBuildHasher.hash_one(display)
}
