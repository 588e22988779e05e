//! What players did in windows beside their rows (RULES sections 7 and 8), as far as
//! it was read or changed: remembered across commits, so that who comes again is
//! not read again.

use std::collections::hash_map::Entry;
use std::hint::black_box;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{GlobalState, StateReader};
use crate::model::row::PlayerWindow;
use crate::model::{GameKey, PlayerKey, WindowKey};

/// What players did in windows, as far as it was read or changed.
#[derive(Debug, Default)]
pub(super) struct PlayerWindowCache {
    known: ByPlayer,
    len: usize,
    /// Each once, unless it was removed meanwhile.
    changed: Vec<(WindowKey, PlayerKey)>,
}

/// Lookups of which memory answers for all together.
const PREFETCH_LEN: usize = 32;

type ByPlayer = FxHashMap<WindowKey, FxHashMap<PlayerKey, CachedPlayerWindow>>;

#[derive(Debug)]
struct CachedPlayerWindow {
    /// Not in place: there are millions, and a table moves what it holds when it
    /// grows. A commit holds the same one, for as long as it takes.
    of_player: Arc<PlayerWindow>,
    changed: bool,
}

impl PlayerWindowCache {
    /// What changed since it was last taken. More than `most` are not remembered any
    /// longer.
    pub(super) fn take_changed(&mut self, most: usize) -> Vec<((WindowKey, PlayerKey), Arc<PlayerWindow>)> {
        let changed = std::mem::take(&mut self.changed);
        let mut taken = Vec::with_capacity(changed.len());
        for some in changed.chunks(PREFETCH_LEN) {
            self.ask_for(some.iter().copied());
            for &(window, player) in some {
                let known = self.known.get_mut(&window).and_then(|known| known.get_mut(&player));
                let Some(known) = known.filter(|known| known.changed) else { continue };
                known.changed = false;
                taken.push(((window, player), known.of_player.clone()));
            }
        }
        if self.len > most {
            (self.known, self.len) = (ByPlayer::default(), 0);
        }
        taken
    }

    pub(super) fn remove(&mut self, window: WindowKey, player: PlayerKey) {
        let gone = self.known.get_mut(&window).and_then(|known| known.remove(&player));
        self.len -= usize::from(gone.is_some());
    }

    pub(super) fn forget(&mut self, window: WindowKey) {
        self.len -= self.known.remove(&window).map_or(0, |known| known.len());
    }

    /// `source`: none where nothing of him can be stored.
    fn fetch<'k, S: StateReader>(
        known: &'k mut ByPlayer,
        len: &mut usize,
        source: Option<&S>,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<&'k mut CachedPlayerWindow, S::Error> {
        Ok(match known.entry(window).or_default().entry(player) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let stored = source.map(|source| source.player_window(window, player)).transpose()?.flatten();
                *len += 1;
                let of_player = Arc::new(stored.unwrap_or_else(|| PlayerWindow::new(game)));
                place.insert(CachedPlayerWindow { of_player, changed: false })
            }
        })
    }

    pub(super) fn put(&mut self, window: WindowKey, player: PlayerKey, of_player: PlayerWindow) {
        let known = CachedPlayerWindow { of_player: Arc::new(of_player), changed: true };
        let before = self.known.entry(window).or_default().insert(player, known);
        self.len += usize::from(before.is_none());
        if before.is_none_or(|known| !known.changed) {
            self.changed.push((window, player));
        }
    }

    pub(super) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    pub(super) fn changed_len(&self) -> usize {
        self.changed.len()
    }

    /// Whose changes in a window wait for the next commit.
    pub(super) fn changed_in(&self, window: WindowKey) -> impl Iterator<Item = PlayerKey> {
        self.changed.iter().filter(move |(w, _)| *w == window).map(|(_, player)| *player)
    }

    /// Looks up all of a list, so that memory answers for them together: afterwards
    /// each is at hand.
    pub(super) fn ask_for(&self, list: impl Iterator<Item = (WindowKey, PlayerKey)>) {
        // In two steps: where each is, then what is there.
        let known: SmallVec<[&CachedPlayerWindow; 64]> =
            list.filter_map(|(window, player)| self.known.get(&window)?.get(&player)).collect();
        black_box(known.iter().fold(0, |all, known| all ^ known.of_player.game.0));
    }

    pub(super) fn get(&self, window: WindowKey, player: PlayerKey) -> Option<&PlayerWindow> {
        self.known.get(&window)?.get(&player).map(|known| &*known.of_player)
    }
}

impl GlobalState {
    pub(super) fn player_window<S: StateReader>(
        &mut self,
        source: &S,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<&PlayerWindow, S::Error> {
        let source = (player < self.unstored).then_some(source);
        let PlayerWindowCache { known, len, .. } = &mut self.player_windows;
        Ok(&PlayerWindowCache::fetch(known, len, source, window, game, player)?.of_player)
    }

    /// The same, to be changed.
    pub(super) fn player_window_mut<S: StateReader>(
        &mut self,
        source: &S,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<&mut PlayerWindow, S::Error> {
        let source = (player < self.unstored).then_some(source);
        let PlayerWindowCache { known, len, changed } = &mut self.player_windows;
        let known = PlayerWindowCache::fetch(known, len, source, window, game, player)?;
        if !std::mem::replace(&mut known.changed, true) {
            changed.push((window, player));
        }
        Ok(Arc::make_mut(&mut known.of_player))
    }
}
