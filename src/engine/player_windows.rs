//! Caches the records of players in windows other than their rows (docs/rules.md sections 7 and 8). The
//! cache survives commits, so that a record is not read again for each list.

use std::borrow::Cow;
use std::hint::black_box;

use rustc_hash::FxHashMap;

use super::player_table::PlayerTable;
use super::{ReadError, StateReader};
use crate::model::row::{PlayerWindow, Rating};
use crate::model::{GameKey, PlayerKey, ServerKey, WindowKey};

/// Player windows that were read or changed.
#[derive(Debug, Default)]
pub(super) struct PlayerWindowCache {
    known: FxHashMap<WindowKey, KnownPlayerWindows>,
    /// Changed entries, each once, unless it was removed since.
    changed: Vec<(WindowKey, PlayerKey)>,
    /// How many times entries were removed. A removed entry may have been newer than a record that was read before.
    removals: u64,
}

/// Lookups whose cache misses overlap.
const PREFETCH_LEN: usize = 32;

pub(super) type KnownPlayerWindows = PlayerTable<CachedPlayerWindow>;

/// Most players have a row on one server and no rating in a tag: they take 40 bytes instead of 130. There are millions.
#[derive(Debug)]
pub(super) enum CachedPlayerWindow {
    /// `rating`: without rounds there is none.
    Single {
        changed: bool,
        game: GameKey,
        server: ServerKey,
        rating: Rating,
    },
    Other {
        changed: bool,
        player_window: Box<PlayerWindow>,
    },
}

const _: () = assert!(size_of::<CachedPlayerWindow>() == 40);

impl CachedPlayerWindow {
    /// As the store has it.
    pub fn stored(player_window: PlayerWindow) -> CachedPlayerWindow {
        CachedPlayerWindow::new(player_window, false)
    }

    fn new(player_window: PlayerWindow, changed: bool) -> CachedPlayerWindow {
        let PlayerWindow { game, servers, game_rating, tag_ratings } = &player_window;
        match (&servers[..], game_rating.unwrap_or(Rating::UNRATED)) {
            (&[server], rating) if tag_ratings.is_empty() && (game_rating.is_none() || rating.rounds > 0) => {
                CachedPlayerWindow::Single { changed, game: *game, server, rating }
            }
            _ => CachedPlayerWindow::Other { changed, player_window: Box::new(player_window) },
        }
    }

    /// Not a copy of one with several servers: names like `noob` are on thousands of them.
    fn player_window(&self) -> Cow<'_, PlayerWindow> {
        match self {
            CachedPlayerWindow::Single { game, server, rating, .. } => Cow::Owned(PlayerWindow {
                servers: std::iter::once(*server).collect(),
                game_rating: Some(*rating).filter(|rating| rating.rounds > 0),
                ..PlayerWindow::new(*game)
            }),
            CachedPlayerWindow::Other { player_window, .. } => Cow::Borrowed(player_window),
        }
    }

    /// Takes the record out; it is to be set again.
    fn take(&mut self) -> PlayerWindow {
        match self {
            CachedPlayerWindow::Single { .. } => self.player_window().into_owned(),
            CachedPlayerWindow::Other { player_window, .. } => {
                let empty = PlayerWindow::new(player_window.game);
                std::mem::replace(player_window, empty)
            }
        }
    }

    fn changed(&mut self) -> &mut bool {
        match self {
            CachedPlayerWindow::Single { changed, .. } | CachedPlayerWindow::Other { changed, .. } => changed,
        }
    }
}

impl PlayerWindowCache {
    /// Takes what changed since the last call. The cache is cleared if it has more than `most`
    /// entries.
    pub fn take_changed(&mut self, most: usize) -> Vec<((WindowKey, PlayerKey), PlayerWindow)> {
        let changed = std::mem::take(&mut self.changed);
        let mut entries = Vec::with_capacity(changed.len());
        for chunk in changed.chunks(PREFETCH_LEN) {
            self.prefetch(chunk.iter().copied());
            for &(window, player) in chunk {
                let cached = self.known.get_mut(&window).and_then(|cached| cached.get_mut(player));
                let Some(cached) = cached else { continue };
                if std::mem::take(cached.changed()) {
                    entries.push(((window, player), cached.player_window().into_owned()));
                }
            }
        }
        if self.len() > most {
            self.known.clear();
            self.removals += 1;
        }
        entries
    }

    fn len(&self) -> usize {
        self.known.values().map(PlayerTable::len).sum()
    }

    /// See [`PlayerWindowCache::adopt`].
    pub fn removals(&self) -> u64 {
        self.removals
    }

    /// Whether so many more entries would not be more than `most`.
    pub fn has_room_for(&self, entries: usize, most: usize) -> bool {
        self.len() + entries <= most
    }

    /// Keeps records of a window that were read from the store. `removals`: the number of removals before the first was read.
    /// Entries that are cached are kept, because they are as new or newer. The records are dropped if entries were
    /// removed meanwhile, which may have been newer, or if there could be more than `most` entries.
    pub fn adopt(&mut self, window: WindowKey, mut read: KnownPlayerWindows, removals: u64, most: usize) {
        if removals != self.removals || !self.has_room_for(read.len(), most) {
            return;
        }
        let mut cached = self.known.remove(&window).unwrap_or_default();
        if cached.len() < read.len() {
            cached.into_values().for_each(|(player, record)| _ = read.insert(player, record));
            cached = read;
        } else {
            for (player, record) in read.into_values() {
                if cached.get(player).is_none() {
                    cached.insert(player, record);
                }
            }
        }
        self.known.insert(window, cached);
    }

    pub fn remove(&mut self, window: WindowKey, player: PlayerKey) {
        self.known.get_mut(&window).and_then(|cached| cached.remove(player));
        self.removals += 1;
    }

    pub fn remove_window(&mut self, window: WindowKey) {
        self.known.remove(&window);
        self.removals += 1;
    }

    /// `source`: `None` if the store cannot have a record of the player.
    fn entry<'k>(
        known: &'k mut FxHashMap<WindowKey, KnownPlayerWindows>,
        source: Option<&dyn StateReader>,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<&'k mut CachedPlayerWindow, ReadError> {
        let cached = known.entry(window).or_default();
        if cached.get(player).is_none() {
            let stored = source.map(|source| source.player_window(window, player)).transpose()?.flatten();
            cached.insert(player, CachedPlayerWindow::stored(stored.unwrap_or_else(|| PlayerWindow::new(game))));
        }
        Ok(cached.get_mut(player).expect("it was cached, or is now"))
    }

    /// The record of a player, from the cache or `source`; a new one, if there is none.
    pub fn get_or_read(
        &mut self,
        source: Option<&dyn StateReader>,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
    ) -> Result<Cow<'_, PlayerWindow>, ReadError> {
        Ok(Self::entry(&mut self.known, source, window, game, player)?.player_window())
    }

    /// Changes what [`PlayerWindowCache::get_or_read`] returns.
    pub fn change<T>(
        &mut self,
        source: Option<&dyn StateReader>,
        window: WindowKey,
        game: GameKey,
        player: PlayerKey,
        change: impl FnOnce(&mut PlayerWindow) -> T,
    ) -> Result<T, ReadError> {
        let cached = Self::entry(&mut self.known, source, window, game, player)?;
        if !*cached.changed() {
            self.changed.push((window, player));
        }
        let mut player_window = cached.take();
        let result = change(&mut player_window);
        *cached = CachedPlayerWindow::new(player_window, true);
        Ok(result)
    }

    /// Keeps a record that was read and is not cached.
    pub fn keep(&mut self, window: WindowKey, player: PlayerKey, player_window: PlayerWindow) {
        self.known.entry(window).or_default().insert(player, CachedPlayerWindow::stored(player_window));
    }

    pub fn put(&mut self, window: WindowKey, player: PlayerKey, player_window: PlayerWindow) {
        let cached = CachedPlayerWindow::new(player_window, true);
        let before = self.known.entry(window).or_default().insert(player, cached);
        if before.is_none_or(|mut cached| !*cached.changed()) {
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
        let cached = list.filter_map(|(window, player)| self.known.get(&window)?.get(player));
        black_box(cached.filter(|cached| matches!(cached, CachedPlayerWindow::Single { .. })).count());
    }

    pub fn get(&self, window: WindowKey, player: PlayerKey) -> Option<Cow<'_, PlayerWindow>> {
        self.known.get(&window)?.get(player).map(CachedPlayerWindow::player_window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TagKey;

    #[test]
    fn records_are_returned_as_they_were_put() {
        let (rating, unrated) = (Rating { elo: 1_010.5, rounds: 3, sure: 1, at_ms: 5 }, Rating::UNRATED);
        let of = |servers: &[u32], game_rating, tags: &[(TagKey, Rating)]| PlayerWindow {
            servers: servers.iter().copied().map(ServerKey).collect(),
            game_rating,
            tag_ratings: tags.into(),
            ..PlayerWindow::new(GameKey(2))
        };
        let records = [
            of(&[], None, &[]),
            of(&[7], None, &[]),
            of(&[7], Some(rating), &[]),
            of(&[7], Some(unrated), &[]),
            of(&[7], Some(rating), &[(TagKey(1), rating)]),
            of(&[7, 9], Some(rating), &[]),
        ];
        let window = WindowKey::from(crate::model::WeekKey(3));
        let mut cache = PlayerWindowCache::default();
        for (player, record) in (0..).map(PlayerKey).zip(&records) {
            cache.put(window, player, record.clone());
            assert_eq!(cache.get(window, player).as_deref(), Some(record));
        }
        let taken: Vec<_> = cache.take_changed(100).into_iter().map(|(_, record)| record).collect();
        assert_eq!(taken, records);
        cache.change(None, window, GameKey(2), PlayerKey(1), |it| it.servers.push(ServerKey(8))).unwrap();
        assert_eq!(cache.take_changed(0), [((window, PlayerKey(1)), of(&[7, 8], None, &[]))]);
        assert_eq!(cache.get(window, PlayerKey(1)), None, "too many were cached");
    }
}
