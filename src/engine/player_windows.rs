//! Caches the records of players in windows other than their rows (docs/rules.md sections 7 and 8). The
//! cache survives commits, so that a record is not read again for each list.

use std::collections::hash_map::Entry;
use std::hint::black_box;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{ReadError, StateReader};
use crate::model::row::PlayerWindow;
use crate::model::{GameKey, PlayerKey, WindowKey};

/// Player windows that were read or changed.
#[derive(Debug, Default)]
pub(super) struct PlayerWindowCache {
    known: ByPlayer,
    len: usize,
    /// Changed entries, each once, unless it was removed since.
    changed: Vec<(WindowKey, PlayerKey)>,
}

/// Lookups whose cache misses overlap.
const PREFETCH_LEN: usize = 32;

type ByPlayer = FxHashMap<WindowKey, FxHashMap<PlayerKey, CachedPlayerWindow>>;

#[derive(Debug)]
struct CachedPlayerWindow {
    /// Boxed: there are millions, and a hash table moves its values when it grows. A commit
    /// shares the same allocation while it is applied.
    player_window: Arc<PlayerWindow>,
    changed: bool,
}

impl PlayerWindowCache {
    /// Takes what changed since the last call. The cache is cleared if it has more than `most`
    /// entries.
    pub fn take_changed(&mut self, most: usize) -> Vec<((WindowKey, PlayerKey), Arc<PlayerWindow>)> {
        let changed = std::mem::take(&mut self.changed);
        let mut entries = Vec::with_capacity(changed.len());
        for chunk in changed.chunks(PREFETCH_LEN) {
            self.prefetch(chunk.iter().copied());
            for &(window, player) in chunk {
                let cached = self.known.get_mut(&window).and_then(|cached| cached.get_mut(&player));
                let Some(cached) = cached.filter(|cached| cached.changed) else { continue };
                cached.changed = false;
                entries.push(((window, player), cached.player_window.clone()));
            }
        }
        if self.len > most {
            (self.known, self.len) = (ByPlayer::default(), 0);
        }
        entries
    }

    pub fn remove(&mut self, window: WindowKey, player: PlayerKey) {
        let removed = self.known.get_mut(&window).and_then(|cached| cached.remove(&player));
        self.len -= usize::from(removed.is_some());
    }

    pub fn remove_window(&mut self, window: WindowKey) {
        self.len -= self.known.remove(&window).map_or(0, |cached| cached.len());
    }

    /// `source`: `None` if the store cannot have a record of the player.
    fn entry<'k>(
        cached: &'k mut ByPlayer,
        len: &mut usize,
        source: Option<&dyn StateReader>,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<&'k mut CachedPlayerWindow, ReadError> {
        Ok(match cached.entry(window).or_default().entry(player) {
            Entry::Occupied(cached) => cached.into_mut(),
            Entry::Vacant(place) => {
                let stored = source.map(|source| source.player_window(window, player)).transpose()?.flatten();
                *len += 1;
                let player_window = Arc::new(stored.unwrap_or_else(|| PlayerWindow::new(game)));
                place.insert(CachedPlayerWindow { player_window, changed: false })
            }
        })
    }

    /// The record of a player, from the cache or `source`; a new one, if there is none.
    pub fn get_or_read(
        &mut self,
        source: Option<&dyn StateReader>,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<&PlayerWindow, ReadError> {
        let PlayerWindowCache { known, len, .. } = self;
        Ok(&Self::entry(known, len, source, window, game, player)?.player_window)
    }

    /// As [`PlayerWindowCache::get_or_read`], to be changed.
    pub fn change(
        &mut self,
        source: Option<&dyn StateReader>,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<&mut PlayerWindow, ReadError> {
        let PlayerWindowCache { known, len, changed } = self;
        let cached = Self::entry(known, len, source, window, game, player)?;
        if !std::mem::replace(&mut cached.changed, true) {
            changed.push((window, player));
        }
        Ok(Arc::make_mut(&mut cached.player_window))
    }

    /// Keeps a record that was read and is not cached.
    pub fn keep(&mut self, window: WindowKey, player: PlayerKey, player_window: PlayerWindow) {
        let cached = CachedPlayerWindow { player_window: Arc::new(player_window), changed: false };
        self.known.entry(window).or_default().insert(player, cached);
        self.len += 1;
    }

    pub fn put(&mut self, window: WindowKey, player: PlayerKey, player_window: PlayerWindow) {
        let cached = CachedPlayerWindow { player_window: Arc::new(player_window), changed: true };
        let before = self.known.entry(window).or_default().insert(player, cached);
        self.len += usize::from(before.is_none());
        if before.is_none_or(|cached| !cached.changed) {
            self.changed.push((window, player));
        }
    }

    pub fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    pub fn changed_len(&self) -> usize {
        self.changed.len()
    }

    /// Players whose changes in a window are pending for the next commit.
    pub fn changed_in(&self, window: WindowKey) -> impl Iterator<Item = PlayerKey> {
        self.changed.iter().filter(move |(w, _)| *w == window).map(|(_, player)| *player)
    }

    /// Prefetches all entries of a list, so that their cache misses overlap.
    pub fn prefetch(&self, list: impl Iterator<Item = (WindowKey, PlayerKey)>) {
        // In two steps: first the hash table, then the records.
        let cached: SmallVec<[&CachedPlayerWindow; 64]> =
            list.filter_map(|(window, player)| self.known.get(&window)?.get(&player)).collect();
        black_box(cached.iter().fold(0, |all, cached| all ^ cached.player_window.game.0));
    }

    pub fn get(&self, window: WindowKey, player: PlayerKey) -> Option<&PlayerWindow> {
        self.known.get(&window)?.get(&player).map(|cached| &*cached.player_window)
    }
}
