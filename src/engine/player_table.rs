//! Sets of players, and values of players, by key. Keys are numbers without large gaps.

use crate::model::PlayerKey;

/// The index of the word, or block, of a player, and the player's bit in it.
pub(super) fn place(player: PlayerKey) -> (usize, u64) {
    (player.0 as usize / 64, 1 << (player.0 % 64))
}

/// A set of players, a bit for each key.
#[derive(Debug, Default)]
pub(super) struct PlayerSet(Vec<u64>);

impl PlayerSet {
    pub fn contains(&self, player: PlayerKey) -> bool {
        let (at, bit) = place(player);
        self.0.get(at).is_some_and(|bits| bits & bit != 0)
    }

    pub fn insert(&mut self, player: PlayerKey) {
        let (at, bit) = place(player);
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= bit;
    }

    pub fn remove(&mut self, player: PlayerKey) {
        let (at, bit) = place(player);
        self.0.get_mut(at).into_iter().for_each(|bits| *bits &= !bit);
    }

    pub fn heap_bytes(&self) -> usize {
        8 * self.0.len()
    }
}

/// A value for some players, in blocks of 64 keys. It grows without moving all values, and has few empty places: a hash map
/// of eight million values of 40 bytes takes 800 MB, and its growth stops the engine for half a second.
#[derive(Debug)]
pub(super) struct PlayerTable<T> {
    blocks: Vec<Block<T>>,
    len: usize,
}

/// The values of players with a bit in `present`, in order of key.
#[derive(Debug)]
struct Block<T> {
    present: u64,
    values: Vec<T>,
}

/// Most places by which a full block grows.
const BLOCK_GROWTH_MAX: usize = 4;

impl<T> Default for PlayerTable<T> {
    fn default() -> PlayerTable<T> {
        PlayerTable { blocks: Vec::new(), len: 0 }
    }
}

impl<T> Block<T> {
    /// The index of the value whose bit this is, or where it belongs.
    fn find(&self, bit: u64) -> Result<usize, usize> {
        let at = (self.present & (bit - 1)).count_ones() as usize;
        if self.present & bit != 0 { Ok(at) } else { Err(at) }
    }
}

impl<T> PlayerTable<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, player: PlayerKey) -> Option<&T> {
        let (at, bit) = place(player);
        let block = self.blocks.get(at)?;
        block.find(bit).ok().map(|at| &block.values[at])
    }

    pub fn get_mut(&mut self, player: PlayerKey) -> Option<&mut T> {
        let (at, bit) = place(player);
        let block = self.blocks.get_mut(at)?;
        block.find(bit).ok().map(|at| &mut block.values[at])
    }

    /// Returns the value that was there before.
    pub fn insert(&mut self, player: PlayerKey, value: T) -> Option<T> {
        let (at, bit) = place(player);
        if at >= self.blocks.len() {
            self.blocks.resize_with(at + 1, || Block { present: 0, values: Vec::new() });
        }
        let block = &mut self.blocks[at];
        match block.find(bit) {
            Ok(at) => Some(std::mem::replace(&mut block.values[at], value)),
            Err(at) => {
                if block.values.len() == block.values.capacity() {
                    block.values.reserve_exact(block.values.len().clamp(1, BLOCK_GROWTH_MAX));
                }
                block.values.insert(at, value);
                block.present |= bit;
                self.len += 1;
                None
            }
        }
    }

    pub fn remove(&mut self, player: PlayerKey) -> Option<T> {
        let (at, bit) = place(player);
        let block = self.blocks.get_mut(at)?;
        let at = block.find(bit).ok()?;
        block.present &= !bit;
        self.len -= 1;
        Some(block.values.remove(at))
    }

    /// All players with values, in order of key.
    pub fn into_values(self) -> impl Iterator<Item = (PlayerKey, T)> {
        (0u32..).zip(self.blocks).flat_map(|(at, block)| {
            let players =
                (0..64).filter(move |bit| block.present & 1 << bit != 0).map(move |bit| PlayerKey(64 * at + bit));
            players.zip(block.values)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn player_table_behaves_like_a_map() {
        let mut random = SplitMix64::seed_from_u64(1);
        let mut below = move |end: u64| (random.next_u64() % end) as u32;
        let (mut table, mut map) = (PlayerTable::default(), BTreeMap::new());
        let mut set = PlayerSet::default();
        for value in 0..20_000u32 {
            let player = PlayerKey(below(1_000));
            match below(5) {
                0 | 1 => {
                    set.insert(player);
                    assert_eq!(table.insert(player, value), map.insert(player, value));
                }
                2 => {
                    set.remove(player);
                    assert_eq!(table.remove(player), map.remove(&player));
                }
                3 => assert_eq!(table.get_mut(player), map.get_mut(&player)),
                _ => {
                    assert_eq!((table.get(player), set.contains(player)), (map.get(&player), map.contains_key(&player)))
                }
            }
            assert_eq!(table.len(), map.len());
        }
        assert!(table.into_values().eq(map));
        assert!(!set.contains(PlayerKey(u32::MAX)));
    }
}
