//! Encodes the records that a commit changes, by kind in order of key.
//!
//! Records are encoded one at a time into one reused buffer: a large commit has tens of
//! millions of them.

use std::hint::black_box;

use postcard::ser_flavors::Flavor;
use serde::Serialize;

use super::{StoreError, corrections, keys};
use crate::model::commit::{Commit, Meta};
use crate::model::server::PlayerRecord;
use crate::model::{OutboxKey, PlayerKey};

/// Receives one change: the key, and the new value; `None`: the record is deleted.
pub(super) type PutFn<'p> = dyn FnMut(&[u8], Option<&[u8]>) -> Result<(), StoreError> + 'p;

/// Encodes records into one reused buffer and passes them on.
pub(super) struct Changes<'p> {
    put: &'p mut PutFn<'p>,
    value: Vec<u8>,
}

impl<'p> Changes<'p> {
    pub(super) fn to(put: &'p mut PutFn<'p>) -> Changes<'p> {
        Changes { put, value: Vec::new() }
    }

    pub(super) fn set(&mut self, key: impl AsRef<[u8]>, value: &impl Serialize) -> Result<(), StoreError> {
        self.value.clear();
        encode_to(value, &mut self.value);
        (self.put)(key.as_ref(), Some(&self.value))
    }

    pub(super) fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<(), StoreError> {
        (self.put)(key.as_ref(), None)
    }

    pub(super) fn meta(&mut self, meta: &Meta) -> Result<(), StoreError> {
        self.set(keys::meta(), meta)
    }

    /// Encodes all records except the meta. `outbox_seq`: the sequence number of the new
    /// outbox entries. `is_archived`: whether an entry with that number is archived and can
    /// be deleted.
    pub(super) fn records(
        &mut self,
        commit: &Commit,
        outbox_seq: u64,
        is_archived: impl Fn(&OutboxKey, u64) -> bool,
    ) -> Result<(), StoreError> {
        commit.games.iter().try_for_each(|(key, name)| self.set(keys::number_key(keys::GAME, key.0), name))?;
        commit.maps.iter().try_for_each(|(key, name)| self.set(keys::number_key(keys::MAP, key.0), name))?;
        commit.tags.iter().try_for_each(|(key, name)| self.set(keys::number_key(keys::TAG, key.0), name))?;
        self.names(commit)?;
        for (key, player) in commit.players.iter().flatten() {
            self.set(keys::number_key(keys::PLAYER, key.0), &(player.game, &player.name))?;
        }
        commit.servers.iter().try_for_each(|(key, server)| self.set(keys::number_key(keys::SERVER, key.0), server))?;
        commit.series.iter().try_for_each(|(key, series)| self.set(keys::number_key(keys::SERIES, key.0), series))?;
        let both_ends = |bytes: &[u8]| bytes.first().copied().unwrap_or(0) ^ bytes.last().copied().unwrap_or(0);
        for (key, row) in prefetch(&commit.rows, |(_, row)| both_ends(row.bytes())) {
            (self.put)(&keys::row(*key), Some(row.bytes()))?;
        }
        for ((window, player), row) in prefetch(&commit.player_windows, |(_, row)| row.game.0 as u8) {
            self.set(keys::player_window(*window, *player), &**row)?;
        }
        commit.map_rows.iter().try_for_each(|(key, row)| self.set(keys::map_row(*key), row))?;
        for ((server, player), best) in &commit.best {
            self.set(keys::best(*server, *player), best)?;
        }
        commit.new_best.iter().try_for_each(|(player, server)| self.set(keys::best_server(*player, *server), &()))?;
        for (week, server, player_ms) in &commit.closed_servers {
            self.set(keys::closed(*week, *server), player_ms)?;
        }
        commit.ranks.iter().try_for_each(|(week, server, rank)| self.set(keys::rank(*week, *server), rank))?;
        commit.outbox.iter().try_for_each(|entry| self.set(keys::outbox(*entry), &outbox_seq))?;
        for (entry, seq) in &commit.acknowledged {
            if is_archived(entry, *seq) && commit.outbox.binary_search(entry).is_err() {
                self.remove(keys::outbox(*entry))?;
            }
        }
        corrections::encode(&commit.corrections, self)
    }

    /// In order of name: each page of names is visited once.
    fn names(&mut self, commit: &Commit) -> Result<(), StoreError> {
        let mut names: Vec<PlayerByName<'_>> = commit.players.iter().flatten().map(|it| (0, it)).collect();
        sort_by_name_prefix(&mut names, 0);
        let touch = |text: &str| text.as_bytes().first().copied().unwrap_or(0);
        for (_, (key, player)) in prefetch(&names, |(_, (_, player))| touch(&player.name) ^ touch(&player.display)) {
            self.set(keys::name(&player.name, player.game), &(key.0, &player.display))?;
        }
        Ok(())
    }
}

/// Eight bytes of a player's name, and the player.
type PlayerByName<'c> = (u64, &'c (PlayerKey, PlayerRecord));

/// Sorts by name, then game. All names are equal before byte `at`. It compares eight bytes
/// at a time, so most names are read from memory once and their cache misses overlap.
fn sort_by_name_prefix(names: &mut [PlayerByName<'_>], at: usize) {
    for (eight, (_, player)) in names.iter_mut() {
        let mut bytes = [0; 8];
        let rest = player.name.as_bytes().get(at..).unwrap_or(&[]);
        let len = rest.len().min(8);
        bytes[..len].copy_from_slice(&rest[..len]);
        *eight = u64::from_be_bytes(bytes);
    }
    names.sort_unstable_by_key(|(eight, _)| *eight);
    for equal in names.chunk_by_mut(|a, b| a.0 == b.0).filter(|equal| equal.len() > 1) {
        // Names contain no zero byte.
        match equal[0].0 as u8 {
            0 => equal.sort_unstable_by_key(|(_, (_, player))| player.game),
            _ => sort_by_name_prefix(equal, at + 8),
        }
    }
}

/// Items whose memory is prefetched together.
const PREFETCH_BATCH: usize = 32;

/// Yields the items in order after touching the memory of the next `PREFETCH_BATCH` items.
/// The items are scattered over gigabytes; the cache misses of one batch overlap.
fn prefetch<T>(items: &[T], touch: impl Fn(&T) -> u8) -> impl Iterator<Item = &T> {
    items.chunks(PREFETCH_BATCH).flat_map(move |batch| {
        black_box(batch.iter().fold(0, |all, item| all ^ touch(item)));
        batch
    })
}

fn encode_to(value: &impl Serialize, bytes: &mut Vec<u8>) {
    postcard::serialize_with_flavor(value, Behind(bytes)).expect("no record has a sequence of unknown length");
}

/// Appends to a buffer.
struct Behind<'b>(&'b mut Vec<u8>);

impl Flavor for Behind<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::GameKey;

    proptest::proptest! {
        #[test]
        fn sort_by_name_orders_by_name_then_game(names in proptest::collection::vec(("[ab]{0,20}|.{0,9}", 0_u32..3), 0..80)) {
            let players: Vec<(PlayerKey, PlayerRecord)> = names
                .iter()
                .filter(|(name, _)| !name.contains('\0'))
                .zip(0..)
                .map(|((name, game), n)| {
                    let record = PlayerRecord { game: GameKey(*game), name: name.as_str().into(), display: "".into() };
                    (PlayerKey(n), record)
                })
                .collect();
            let key = |it: &(PlayerKey, PlayerRecord)| keys::name(&it.1.name, it.1.game);
            let mut sorted: Vec<PlayerByName<'_>> = players.iter().map(|it| (0, it)).collect();
            sort_by_name_prefix(&mut sorted, 0);
            proptest::prop_assert!(sorted.iter().map(|(_, it)| key(it)).is_sorted());
            proptest::prop_assert_eq!(sorted.len(), players.len());
        }
    }
}
