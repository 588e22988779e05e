//! Players by their names (RULES section 2): who a name belongs to, who is new, and
//! how it was last written. Names that were met lately are known without asking the
//! store, and where every name of the store is among them, so is that one is new.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{GlobalState, StateReader};
use crate::model::name::Name;
use crate::model::server::{PlayerEntry, PlayerRecord};
use crate::model::{GameKey, OutboxKey, PlayerKey};

/// The names that were met. A full memory is let go whole: it only saves reading.
#[derive(Debug, Default)]
pub(super) struct NameCache {
    known: FxHashMap<GameKey, FxHashMap<Name, CachedName>>,
    len: usize,
    /// Every name of the store is known.
    complete: bool,
}

#[derive(Clone, Copy, Debug)]
struct CachedName {
    player: PlayerKey,
    /// Of how the name was last written: 64 bits for a text of 24 bytes.
    display: u64,
}

impl NameCache {
    /// Of a store that holds no names.
    pub(super) fn of_empty_store() -> NameCache {
        NameCache { complete: true, ..NameCache::default() }
    }

    fn find(&self, game: GameKey, name: &str) -> Option<CachedName> {
        self.known.get(&game)?.get(name).copied()
    }

    fn put(&mut self, game: GameKey, name: &Name, player: PlayerKey, display: &str) {
        let known = CachedName { player, display: display_hash(display) };
        let before = self.known.entry(game).or_default().insert(name.clone(), known);
        self.len += usize::from(before.is_none());
    }

    /// Names have come to belong to others, or to nobody.
    pub(super) fn forget_all(&mut self) {
        *self = NameCache::default();
    }

    /// Everything met is in the store now; lets it go where it is more than `most`.
    pub(super) fn committed(&mut self, most: usize) {
        if self.len > most {
            self.forget_all();
        }
    }
}

fn display_hash(display: &str) -> u64 {
    FxBuildHasher.hash_one(display)
}

/// Records of players that wait for a commit.
#[derive(Debug, Default)]
pub(super) struct PendingPlayers {
    /// Who is new has the next key each time: their records stand in order, in
    /// portions, which are never moved.
    new: Vec<Vec<(PlayerKey, PlayerRecord)>>,
    first_new: u32,
    changed: FxHashMap<PlayerKey, PlayerRecord>,
}

/// Records in a portion of new ones.
const CHUNK_LEN: usize = 4_096;

impl PendingPlayers {
    pub(super) fn get(&self, player: PlayerKey) -> Option<&PlayerRecord> {
        match self.place(player) {
            Some((portion, at)) => self.new.get(portion)?.get(at).map(|(_, record)| record),
            None => self.changed.get(&player),
        }
    }

    /// The key must be the one behind that of the last who was new.
    fn add(&mut self, player: PlayerKey, record: PlayerRecord) {
        if self.new.is_empty() {
            self.first_new = player.0;
        }
        if self.new.last().is_none_or(|portion| portion.len() == CHUNK_LEN) {
            // The first grows: mostly there are a few.
            self.new.push(Vec::with_capacity(if self.new.is_empty() { 0 } else { CHUNK_LEN }));
        }
        let portion = self.new.last_mut().expect("just put");
        portion.push((player, record));
        debug_assert_eq!((player.0 - self.first_new) as usize % CHUNK_LEN + 1, portion.len());
    }

    fn change(&mut self, player: PlayerKey, record: PlayerRecord) {
        match self.place(player) {
            Some((portion, at)) => self.new[portion][at].1 = record,
            None => _ = self.changed.insert(player, record),
        }
    }

    /// Where one who is new stands.
    fn place(&self, player: PlayerKey) -> Option<(usize, usize)> {
        let at = player.0.checked_sub(self.first_new)? as usize;
        (!self.new.is_empty()).then_some((at / CHUNK_LEN, at % CHUNK_LEN))
    }

    pub(super) fn len(&self) -> usize {
        let new = self.new.split_last().map_or(0, |(last, whole)| whole.len() * CHUNK_LEN + last.len());
        new + self.changed.len()
    }

    /// In portions, in order of key.
    pub(super) fn into_portions(self) -> Vec<Vec<(PlayerKey, PlayerRecord)>> {
        let mut changed: Vec<(PlayerKey, PlayerRecord)> = self.changed.into_iter().collect();
        changed.sort_unstable_by_key(|(player, _)| *player);
        // Who is new has a key above all others.
        std::iter::once(changed).chain(self.new).filter(|portion| !portion.is_empty()).collect()
    }
}

impl GlobalState {
    /// The key of a usable entry's name; `None`: it has none yet.
    pub(super) fn player_key<S: StateReader>(
        &mut self,
        source: &S,
        game: GameKey,
        entry: &PlayerEntry,
    ) -> Result<Option<PlayerKey>, S::Error> {
        if let Some(known) = self.names.find(game, &entry.name) {
            if known.display != display_hash(entry.display()) {
                self.rename(source, known.player, entry.display())?;
            }
            return Ok(Some(known.player));
        }
        let stored = if self.names.complete { None } else { source.player(game, &entry.name)? };
        let Some((player, display)) = stored else { return Ok(None) };
        // The store does not know of a rename that waits for its commit.
        if display != entry.display() || self.pending.players.get(player).is_some() {
            self.rename(source, player, entry.display())?;
        }
        // A name that leads to the player of another has no display of its own:
        // what is last written is told by his record.
        if !display.is_empty() {
            self.names.put(game, &entry.name, player, entry.display());
        }
        Ok(Some(player))
    }

    /// Hands out a key for an entry's name, which has none.
    pub(super) fn new_player(&mut self, game: GameKey, entry: &PlayerEntry) -> PlayerKey {
        let player = PlayerKey(self.meta.next_player);
        self.meta.next_player += 1;
        self.pending.meta = true;
        let record = PlayerRecord { game, name: entry.name.clone(), display: entry.display().into() };
        self.names.put(game, &entry.name, player, entry.display());
        self.pending.players.add(player, record);
        self.archive(OutboxKey::Player(player));
        player
    }

    /// A player's name is written otherwise than before.
    pub(super) fn rename<S: StateReader>(
        &mut self,
        source: &S,
        player: PlayerKey,
        display: &str,
    ) -> Result<(), S::Error> {
        let record = match self.pending.players.get(player) {
            Some(record) => Some(record.clone()),
            None => source.player_record(player)?,
        };
        if let Some(mut record) = record.filter(|record| record.display != display) {
            record.display = display.into();
            self.names.put(record.game, &record.name, player, display);
            self.pending.players.change(player, record);
            self.archive(OutboxKey::Player(player));
        }
        Ok(())
    }
}
