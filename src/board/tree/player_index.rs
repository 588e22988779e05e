//! A hash index from players to the blocks of a board: five bytes a player.
//!
//! The hash table stores no keys. A player key is mixed by a bijection of 32 bits. The bucket
//! number encodes most of the result, and the entry only the rest. So an entry of four bytes
//! identifies the player exactly and has 18 or more bits for the block. A bucket is a cache line of
//! 16 entries. A player whose bucket is full goes to a second one (cuckoo hashing). So nine tenths
//! of the slots can be full, and a lookup reads one line, seldom two. The table grows by a quarter,
//! shard by shard. So a single call rebuilds only a 64th of it, which takes 5 ms at 10 million. Not
//! in this module: the index in the block (`block` finds it among 128 by comparing).

const SLOTS: usize = 16;
const SHARD_BITS: u32 = 6;
/// A table of this many players is divided into shards.
const SHARD_LEN_MIN: usize = 1 << 16;
/// Fewest buckets of a shard: with fewer there are no bits left for the block.
const BUCKETS_MIN: usize = 8;
/// Displacements tried to insert one player before the shard grows.
const KICKS_MAX: usize = 128;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket([u32; SLOTS]);

/// The location of an entry; valid until the next change of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryRef {
    shard: u32,
    bucket: u32,
    slot: u32,
}

/// The index (see the [module documentation](self)).
#[derive(Clone, Debug)]
pub(super) struct PlayerIndex {
    shards: Vec<Shard>,
    shard_bits: u32,
    len: usize,
}

/// A bijection (murmur3's finalizer): no two players mix to the same.
fn mix(player: u32) -> u32 {
    let mut x = player;
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

impl PlayerIndex {
    pub fn new() -> PlayerIndex {
        PlayerIndex { shards: Vec::new(), shard_bits: 0, len: 0 }
    }

    /// An empty index with capacity for `len` players in `blocks` blocks.
    pub fn with_capacity(len: usize, blocks: usize) -> PlayerIndex {
        let shard_bits = if len >= SHARD_LEN_MIN { SHARD_BITS } else { 0 };
        let shards = 1 << shard_bits;
        let shard_len = len.div_ceil(shards);
        let shard_len = shard_len + 3 * shard_len.isqrt(); // shards are never quite equal
        let shard = Shard::new(32 - shard_bits, Shard::buckets_for(shard_len), blocks as u32);
        PlayerIndex { shards: vec![shard; shards], shard_bits, len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn heap_bytes(&self) -> usize {
        self.shards.capacity() * size_of::<Shard>()
            + self.shards.iter().map(|shard| shard.buckets.capacity() * size_of::<Bucket>()).sum::<usize>()
    }

    #[inline]
    fn shard_of(&self, player: u32) -> (usize, u32) {
        let mixed = u64::from(mix(player));
        let bits = 32 - self.shard_bits;
        ((mixed >> bits) as usize, (mixed & ((1 << bits) - 1)) as u32)
    }

    /// The block of a player, and the location of the entry.
    #[inline]
    pub fn find(&self, player: u32) -> Option<(u32, EntryRef)> {
        let (shard, hash) = self.shard_of(player);
        let (bucket, slot) = self.shards.get(shard)?.find(hash)?;
        let kept = &self.shards[shard];
        let block = (kept.buckets[bucket].0[slot] & kept.block_mask()) - 1;
        Some((block, EntryRef { shard: shard as u32, bucket: bucket as u32, slot: slot as u32 }))
    }

    #[inline]
    pub fn block(&self, player: u32) -> Option<u32> {
        self.find(player).map(|(block, _)| block)
    }

    /// Sets the block of the player at `at`. If the number is too large for the entries,
    /// the shard is rebuilt.
    pub fn set(&mut self, at: EntryRef, block: u32) {
        let shard = &mut self.shards[at.shard as usize];
        let mask = shard.block_mask();
        if block >= mask {
            let hash = shard.hash_at(at.bucket as usize, at.slot as usize);
            shard.rebuild(shard.buckets.len(), block + 1, None);
            let (bucket, slot) = shard.find(hash).expect("a rebuild keeps every entry");
            return self.set(EntryRef { shard: at.shard, bucket: bucket as u32, slot: slot as u32 }, block);
        }
        let entry = &mut shard.buckets[at.bucket as usize].0[at.slot as usize];
        *entry = *entry & !mask | (block + 1);
    }

    /// Sets the block of a player who is in the index.
    pub fn move_to(&mut self, player: u32, block: u32) {
        let (_, slot) = self.find(player).expect("the player is in the index");
        self.set(slot, block);
    }

    /// Adds a player. `false`: the player is already in the index, nothing has changed.
    pub fn insert(&mut self, player: u32, block: u32) -> bool {
        let is_new = self.block(player).is_none();
        if is_new {
            self.insert_new(player, block);
        }
        is_new
    }

    /// Adds a player who is not in the index.
    pub fn insert_new(&mut self, player: u32, block: u32) {
        if self.len + 1 >= SHARD_LEN_MIN && self.shard_bits == 0 {
            self.split_into_shards(block);
        }
        if self.shards.is_empty() {
            self.shards.push(Shard::new(32, BUCKETS_MIN, block + 1));
        }
        let (shard, hash) = self.shard_of(player);
        self.shards[shard].insert(hash, block);
        self.len += 1;
    }

    /// Adds different players who are not in the index, shard by shard, so that a shard's
    /// table stays in the cache.
    pub fn fill(&mut self, players: impl Iterator<Item = (u32, u32)>) {
        let mut by_shard = vec![Vec::new(); self.shards.len()];
        for (player, block) in players {
            let (shard, hash) = self.shard_of(player);
            by_shard[shard].push((hash, block));
        }
        for (shard, added) in self.shards.iter_mut().zip(by_shard) {
            self.len += added.len();
            added.into_iter().for_each(|(hash, block)| shard.insert(hash, block));
        }
    }

    /// Removes an entry.
    pub fn remove(&mut self, at: EntryRef) {
        let shard = &mut self.shards[at.shard as usize];
        shard.buckets[at.bucket as usize].0[at.slot as usize] = 0;
        shard.len -= 1;
        self.len -= 1;
        if shard.len < shard.shrink_below {
            shard.rebuild(Shard::buckets_for(shard.len), 0, None);
        }
    }

    /// Divides a single shard into 2^[`SHARD_BITS`].
    fn split_into_shards(&mut self, block: u32) {
        let old = std::mem::replace(self, PlayerIndex::with_capacity(SHARD_LEN_MIN, block as usize + 1));
        let bits = 32 - self.shard_bits;
        for (hash, block) in old.shards.iter().flat_map(Shard::iter) {
            self.shards[(hash >> bits) as usize].insert(hash & ((1 << bits) - 1), block);
        }
        self.len = old.len;
    }
}

/// A table of hashes of `hash_bits` bits.
#[derive(Clone, Debug)]
struct Shard {
    buckets: Vec<Bucket>,
    len: usize,
    hash_bits: u32,
    /// log2 of the number of buckets, rounded down: the bits of a hash that the bucket
    /// number encodes.
    known_bits: u32,
    /// Low bits of an entry: block + 1; 0: empty. Above: one bit that marks the second
    /// bucket, then the rest of the hash.
    block_bits: u32,
    /// With fewer players than this, a third of the maximum so far, the table is rebuilt.
    shrink_below: usize,
    /// Pseudorandom: selects the entry to displace.
    victim_seed: u32,
}

impl Shard {
    fn new(hash_bits: u32, buckets: usize, blocks: u32) -> Shard {
        let needed_bits = 32 - blocks.leading_zeros();
        // hash_bits - known_bits + 1 + needed_bits <= 32
        let known_bits = (hash_bits + needed_bits + 1).saturating_sub(32);
        let buckets = buckets.max(BUCKETS_MIN).max(1 << known_bits);
        let known_bits = buckets.ilog2();
        Shard {
            buckets: vec![Bucket([0; SLOTS]); buckets],
            len: 0,
            hash_bits,
            known_bits,
            block_bits: 31 + known_bits - hash_bits,
            shrink_below: 0,
            victim_seed: 0,
        }
    }

    /// Number of buckets for `len` players, a tenth of the slots free.
    fn buckets_for(len: usize) -> usize {
        (len * 10).div_ceil(SLOTS * 9).max(BUCKETS_MIN)
    }

    #[inline]
    fn block_mask(&self) -> u32 {
        (1 << self.block_bits) - 1
    }

    /// The first bucket of a hash, and the part of the hash that the bucket number does not
    /// encode. `hash * buckets` has the bucket in its high bits; its low bits distinguish
    /// the hashes of a bucket. Those differ by at least the number of buckets, so the
    /// lowest `known_bits` bits are not needed.
    #[inline]
    fn split_hash(&self, hash: u32) -> (usize, u32) {
        let product = u64::from(hash) * self.buckets.len() as u64;
        let low = product & ((1 << self.hash_bits) - 1);
        ((product >> self.hash_bits) as usize, (low >> self.known_bits) as u32)
    }

    /// Inverse of [`Shard::split_hash`].
    fn join_hash(&self, bucket: usize, rest: u32) -> u32 {
        let product = (bucket as u64) << self.hash_bits | u64::from(rest) << self.known_bits;
        product.div_ceil(self.buckets.len() as u64) as u32
    }

    /// The other one of the two buckets of a hash.
    #[inline]
    fn alternate_bucket(&self, bucket: usize, rest: u32) -> usize {
        let n = self.buckets.len();
        let sum = ((u64::from((rest + 1).wrapping_mul(0x9e37_79b1)) * n as u64) >> 32) as usize;
        if sum >= bucket { sum - bucket } else { sum + n - bucket }
    }

    fn entry(&self, rest: u32, second: u32, block: u32) -> u32 {
        (rest << 1 | second) << self.block_bits | (block + 1)
    }

    fn hash_at(&self, bucket: usize, slot: usize) -> u32 {
        let tag = self.buckets[bucket].0[slot] >> self.block_bits;
        let first = if tag & 1 == 0 { bucket } else { self.alternate_bucket(bucket, tag >> 1) };
        self.join_hash(first, tag >> 1)
    }

    fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let slots = self
            .buckets
            .iter()
            .enumerate()
            .flat_map(|(b, bucket)| bucket.0.iter().enumerate().map(move |(s, &e)| (b, s, e)));
        slots
            .filter(|&(_, _, entry)| entry != 0)
            .map(|(b, s, entry)| (self.hash_at(b, s), (entry & self.block_mask()) - 1))
    }

    #[inline]
    fn find(&self, hash: u32) -> Option<(usize, usize)> {
        let (first, rest) = self.split_hash(hash);
        let tag = (rest << 1) << self.block_bits;
        let mask = self.block_mask();
        if let Some(slot) = slot_of(&self.buckets[first], tag, mask) {
            return Some((first, slot));
        }
        let second = self.alternate_bucket(first, rest);
        slot_of(&self.buckets[second], tag | 1 << self.block_bits, mask).map(|slot| (second, slot))
    }

    /// Adds a hash that is not in the table.
    fn insert(&mut self, hash: u32, block: u32) {
        if block >= self.block_mask() || (self.len + 1) * 16 > self.buckets.len() * SLOTS * 15 {
            self.rebuild(self.buckets.len() * 5 / 4, block + 1, Some((hash, block)));
        } else if let Err(unplaced) = self.try_insert(hash, block) {
            self.rebuild(self.buckets.len() * 5 / 4, block + 1, Some(unplaced));
        }
    }

    /// Inserts a hash that is not in the table, displacing others. Fails with the entry
    /// that finds no slot in the end.
    fn try_insert(&mut self, hash: u32, block: u32) -> Result<(), (u32, u32)> {
        let (first, rest) = self.split_hash(hash);
        let (mut bucket, mut entry) = (first, self.entry(rest, 0, block));
        for _ in 0..KICKS_MAX {
            if self.put_in_bucket(bucket, entry) {
                return self.count_insert();
            }
            let rest = entry >> self.block_bits >> 1;
            let other = self.alternate_bucket(bucket, rest);
            let moved = entry ^ 1 << self.block_bits;
            if self.put_in_bucket(other, moved) {
                return self.count_insert();
            }
            self.victim_seed = self.victim_seed.wrapping_mul(0x915f_77f5).wrapping_add(1);
            let slot = (self.victim_seed >> 28) as usize;
            let victim = std::mem::replace(&mut self.buckets[other].0[slot], moved);
            entry = victim ^ 1 << self.block_bits;
            bucket = self.alternate_bucket(other, victim >> self.block_bits >> 1);
        }
        let rest = entry >> self.block_bits >> 1;
        let first = if entry >> self.block_bits & 1 == 0 { bucket } else { self.alternate_bucket(bucket, rest) };
        Err((self.join_hash(first, rest), (entry & self.block_mask()) - 1))
    }

    fn count_insert(&mut self) -> Result<(), (u32, u32)> {
        self.len += 1;
        self.shrink_below = self.shrink_below.max(self.len / 3);
        Ok(())
    }

    fn put_in_bucket(&mut self, bucket: usize, entry: u32) -> bool {
        let free = self.buckets[bucket].0.iter_mut().find(|slot| **slot == 0);
        free.map(|slot| *slot = entry).is_some()
    }

    /// Rebuilds the table with this many buckets, or more if needed, for block numbers
    /// below `blocks` and those in the table.
    fn rebuild(&mut self, buckets: usize, blocks: u32, unplaced: Option<(u32, u32)>) {
        let blocks = blocks.max(self.iter().map(|(_, block)| block + 1).max().unwrap_or(0));
        let mut buckets = buckets;
        loop {
            let mut table = Shard::new(self.hash_bits, buckets, blocks);
            if self.iter().chain(unplaced).all(|(hash, block)| table.try_insert(hash, block).is_ok()) {
                *self = table;
                return;
            }
            buckets += buckets / 8 + 1;
        }
    }
}

/// The slot whose entry has `tag` and a block.
#[inline]
fn slot_of(bucket: &Bucket, tag: u32, mask: u32) -> Option<usize> {
    let mut found = 0;
    for (i, &entry) in bucket.0.iter().enumerate() {
        found |= u32::from((entry ^ tag).wrapping_sub(1) < mask) << i;
    }
    (found != 0).then(|| found.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn hash_split_round_trips() {
        for (hash_bits, buckets) in [(32, 8), (32, 9), (32, 4_097), (26, 8), (26, 1_000), (26, 12_345), (26, 1 << 16)] {
            let shard = Shard::new(hash_bits, buckets, 1);
            for n in 0..40_000_u32 {
                for hash in [n, mix(n) >> (32 - hash_bits), (u64::from(u32::MAX - n) >> (32 - hash_bits)) as u32] {
                    let (bucket, rest) = shard.split_hash(hash);
                    assert_eq!(shard.join_hash(bucket, rest), hash);
                    let other = shard.alternate_bucket(bucket, rest);
                    assert!(other < buckets);
                    assert_eq!(shard.alternate_bucket(other, rest), bucket);
                }
            }
        }
    }

    #[test]
    fn player_index_equals_a_hash_map() {
        for (step, blocks) in [(1, 3), (7_919, 1_000), (7_919, 1 << 17)] {
            let (mut index, mut reference) = (PlayerIndex::new(), HashMap::new());
            let check = |index: &PlayerIndex, reference: &HashMap<u32, u32>| {
                assert_eq!(index.len(), reference.len());
                assert!(reference.iter().all(|(&player, &block)| index.block(player) == Some(block)));
                assert!((0..10_000).all(|n| reference.contains_key(&mix(n)) || index.block(mix(n)).is_none()));
            };
            for n in 0..120_000_u32 {
                let (player, block) = (n.wrapping_mul(step), mix(n) % blocks);
                assert_eq!(index.insert(player, block), reference.insert(player, block).is_none());
                assert!(!index.insert(player, 0), "the player is already in the index");
                if n % 3 == 0 {
                    index.move_to(player, block / 2);
                    reference.insert(player, block / 2);
                }
                if n % 5 == 0 {
                    let old = (n / 2).wrapping_mul(step);
                    if let Some((_, slot)) = index.find(old) {
                        index.remove(slot);
                    }
                    reference.remove(&old);
                }
                if n.is_power_of_two() {
                    check(&index, &reference);
                }
            }
            check(&index, &reference);
            let full = index.heap_bytes();
            let few_blocks = blocks <= 1_000; // many blocks need wide entries, so a large table
            assert!(!few_blocks || full < 9 * reference.len(), "{full} bytes for {}", reference.len());
            for player in reference.keys().copied().skip(100).collect::<Vec<_>>() {
                let (_, slot) = index.find(player).expect("the player is in the index");
                index.remove(slot);
                reference.remove(&player);
            }
            check(&index, &reference);
            assert!(!few_blocks || index.heap_bytes() * 2 < full);
        }
    }
}
