//! Finds players by name (docs/rules.md section 2), creates new players, and records how a name was
//! last written. Caches recent names, so that most lookups need no read of the store. If the
//! cache contains all names of the store, a miss means that a name is new.

pub(super) mod cache;
pub(super) mod pending_players;

use self::cache::display_hash;
use super::{GlobalState, ReadError, StateReader};
use crate::model::server::{PlayerEntry, PlayerRecord};
use crate::model::{GameKey, OutboxKey, PlayerKey};

impl GlobalState {
    /// The key of a normalised name; `None`: it has no key yet.
    pub(super) fn find_player(
        &self,
        source: &dyn StateReader,
        game: GameKey,
        name: &str,
    ) -> Result<Option<PlayerKey>, ReadError> {
        match self.name_cache.find(game, name) {
            Some(cached) => Ok(Some(cached.player)),
            None if self.name_cache.holds_all_names => Ok(None),
            None => Ok(source.player(game, name)?.map(|(player, _)| player)),
        }
    }

    /// The key of a usable entry's name; `None`: it has no key yet.
    pub(super) fn player_key(
        &mut self,
        source: &dyn StateReader,
        game: GameKey,
        entry: &PlayerEntry,
    ) -> Result<Option<PlayerKey>, ReadError> {
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
    pub(super) fn player_record(
        &self,
        source: &dyn StateReader,
        player: PlayerKey,
    ) -> Result<Option<PlayerRecord>, ReadError> {
        match self.pending.players.get(player) {
            Some(record) => Ok(Some(record.clone())),
            None => source.player_record(player),
        }
    }

    /// Records that a player's name is written differently from before.
    pub(super) fn rename(
        &mut self,
        source: &dyn StateReader,
        player: PlayerKey,
        display: &str,
    ) -> Result<(), ReadError> {
        if let Some(mut record) = self.player_record(source, player)?.filter(|record| record.display != display) {
            record.display = display.into();
            self.name_cache.put(record.game, &record.name, player, display);
            self.pending.players.change(player, record);
            self.enqueue(OutboxKey::Player(player));
        }
        Ok(())
    }
}
