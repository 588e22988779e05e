//! The board of all players: entries in order, with counts, in memory. An order-statistic
//! B+ tree.
//!
//! The tree has three levels. A block packs up to [`BLOCK_MAX`] neighbouring entries, a
//! group has up to [`GROUP_MAX`] blocks, and one list has all groups, 1,400 for 50 million
//! entries. A group stores the number of entries of each of its blocks. The list stores the
//! number of entries of each group. Finding a player's position therefore takes two sums of
//! counts, and finding the entry at a position takes two scans of counts. The counts stay in
//! the CPU cache. A player index maps every player to a block. Finding a position therefore
//! needs no search by score, and a caller that changes an entry need not know the old one.
//!
//! Measured by `benches/board.rs` on two cores of an EPYC shared with other work (load
//! average 3.4 to 4.1), every call on a random player with a random new score, compared
//! with Redis in pipelines of 64:
//!
//! | entries    | update  | rank    | rank x 64  | select  | bytes an entry | faster than Redis    | memory / Redis |
//! |------------|---------|---------|------------|---------|----------------|----------------------|----------------|
//! | 1 million  | 0.66 us | 0.28 us | 0.29 us    | 0.18 us | 18.1           | 13 x, 22 x           | 1/5.9          |
//! | 10 million | 0.99 us | 0.73 us | 0.52 us    | 0.48 us | 17.3           | 16 x, 13 x           | 1/7.0          |
//! | 50 million | 2.7 us  | 1.2 us  | 0.60 us    | 1.1 us  |                |                      |                |
//!
//! `update` is [`Board::put`], `rank` returns the position of a player, `rank x 64` does so in
//! batches of 64, `select` returns the entry at a position. Speed compared with Redis is
//! given for `update` and `rank`. All times are per player.
//!
//! Nearly all of this time is cache misses, and other processes use the same memory: on a quieter
//! machine (load average 1.1) an update at 10 million took 0.80 us. The worst run took 2.0 us. Elo,
//! whose scores need more bytes, takes 20.7 bytes an entry. [`Board::build`] of 10 million rows in
//! any order: 2.8 s.
//!
//! Memory use: [`Board::heap_bytes`]. Queries: [`lookup`]. Not in this module: which scores
//! compete (windows and scopes), files, clocks, threads. A board is a plain value; a caller
//! that shares it uses a lock, and readers under that lock see a consistent board.

mod block;
pub mod lookup;
mod node;
mod player_index;
mod rebalance;

use super::BoardEntry;
use crate::board::order::Direction;
use crate::board::tree::block::{BLOCK_MAX, Block, SortKey};
use crate::board::tree::node::{Node, NodeCounts};
use crate::board::tree::player_index::PlayerIndex;
use crate::model::PlayerKey;

/// Most blocks in a group. An update searches the scores of a group (4 KiB). Finding a
/// position adds up its counts (2 KiB).
const GROUP_MAX: usize = 512;
/// Entries in each block after [`Board::build`]. The blocks have space for later inserts. The
/// player index needs fewer block numbers than with half full blocks.
const BLOCK_FILL: usize = BLOCK_MAX * 3 / 4;

/// Players prefetched together. Two cache lines per player are about as many outstanding
/// misses as a core supports.
const PREFETCH_BATCH: usize = 32;
/// Least entries of a board for which a prefetch saves time. A smaller board (300 kB) mostly
/// stays in the cache.
const PREFETCH_ENTRIES_MIN: u32 = 1 << 14;

/// Result of [`Board::put`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    Added,
    /// The player already had this other entry.
    Replaced(BoardEntry),
    /// The board already had this entry.
    Unchanged,
}

/// A board (see the [module documentation](self)). At most `u32::MAX` entries; players are
/// unique.
#[derive(Clone, Debug)]
pub struct Board {
    direction: Direction,
    generation: u64,
    version: u64,
    root: Node,
    groups: Vec<Node>,
    groups_free: Vec<u32>,
    blocks: Vec<Block>,
    blocks_free: Vec<u32>,
    player_index: PlayerIndex,
}

/// The location of an entry: block, and index in the block.
#[derive(Clone, Copy, Debug)]
struct Location {
    block: u32,
    index: usize,
}

impl Board {
    /// An empty board. `generation` distinguishes it from every earlier board in its place
    /// (an earlier window, the same one before a rebuild), so that cursors of those are
    /// detected as stale.
    pub fn new(direction: Direction, generation: u64) -> Board {
        Board {
            direction,
            generation,
            version: 0,
            root: Node::default(),
            groups: Vec::new(),
            groups_free: Vec::new(),
            blocks: Vec::new(),
            blocks_free: Vec::new(),
            player_index: PlayerIndex::new(),
        }
    }

    /// Builds a board of entries in any order. If a player has several entries, the best one
    /// is kept. Sorting needs 32 bytes an entry in addition to the board itself.
    pub fn build(direction: Direction, generation: u64, entries: impl IntoIterator<Item = BoardEntry>) -> Board {
        let entries = entries.into_iter();
        let (mut board, mut keys) = Board::with_sorted_keys(direction, generation, entries.size_hint().0, entries);
        let mut kept = 0;
        keys.retain(|key| {
            let is_new = board.player_index.insert(key.player, (kept / BLOCK_FILL) as u32);
            kept += usize::from(is_new);
            is_new
        });
        board.build_blocks(&keys);
        board
    }

    /// Like [`Board::build`], for entries of different players, in half the time: it does not
    /// search for duplicates. Duplicate players produce a corrupt board. The chunks are
    /// freed one by one as they are read.
    pub fn build_unique(direction: Direction, generation: u64, chunks: Vec<Vec<BoardEntry>>) -> Board {
        let len = chunks.iter().map(Vec::len).sum();
        let (mut board, keys) = Board::with_sorted_keys(direction, generation, len, chunks.into_iter().flatten());
        board.player_index.fill(keys.iter().enumerate().map(|(i, key)| (key.player, (i / BLOCK_FILL) as u32)));
        debug_assert!(
            keys.iter().all(|key| board.player_index.block(key.player).is_some())
                && board.player_index.len() == keys.len()
        );
        board.build_blocks(&keys);
        board
    }

    /// An empty board with capacity for the players, and the sort keys in order.
    fn with_sorted_keys(
        direction: Direction,
        generation: u64,
        len: usize,
        entries: impl Iterator<Item = BoardEntry>,
    ) -> (Board, Vec<SortKey>) {
        let mut board = Board::new(direction, generation);
        let mut keys: Vec<SortKey> = Vec::with_capacity(len);
        keys.extend(entries.map(|entry| board.key(&entry)));
        keys.sort_unstable();
        board.player_index = PlayerIndex::with_capacity(keys.len(), keys.len().div_ceil(BLOCK_FILL));
        (board, keys)
    }

    /// Builds the blocks of an empty board from all keys, in order; the player index is
    /// already filled.
    fn build_blocks(&mut self, keys: &[SortKey]) {
        self.blocks.reserve_exact(keys.len().div_ceil(BLOCK_FILL));
        let mut last_score = None;
        for block_keys in keys.chunks(BLOCK_FILL) {
            self.push_block(block_keys, &mut last_score);
        }
        for (i, group) in self.groups.iter_mut().enumerate() {
            group.index = i as u32;
            self.root.insert(i, group.low(0), group.total(), i as u32);
        }
    }

    /// Returns the same board with another version. It is for boards that are rebuilt for
    /// each query, for which no changes are counted. The caller must give equal contents
    /// equal versions and different contents different ones.
    pub fn with_version(self, version: u64) -> Board {
        Board { version, ..self }
    }

    /// Appends a block to the last group, or to a new one. `last_score` is the last score of
    /// the previous block. The caller builds the list of groups afterwards.
    fn push_block(&mut self, keys: &[SortKey], last_score: &mut Option<u64>) {
        if self.groups.last().is_none_or(|group| group.len() == GROUP_MAX * 3 / 4) {
            self.groups.push(Node::default());
        }
        let id = self.blocks.len() as u32;
        let mut block = Block::new(keys);
        block.group = self.groups.len() as u32 - 1;
        let group = self.groups.last_mut().expect("was pushed");
        block.index = group.len() as u32;
        block.continues_score = *last_score == Some(keys[0].score);
        *last_score = keys.last().map(|key| key.score);
        group.insert(
            group.len(),
            keys[0],
            NodeCounts { entries: keys.len() as u32, distinct_scores: block.new_distinct_scores() },
            id,
        );
        self.blocks.push(block);
    }

    /// See [`Board::new`].
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Players on the board.
    pub fn len(&self) -> u32 {
        self.player_index.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Heap memory of the board, bytes, exactly as allocated. The allocator's own 8 to 16
    /// bytes an allocation are not included. Takes one pass over the blocks, a few ms at 10
    /// million entries. Resident memory was 2 to 3 bytes an entry larger after millions of updates.
    pub fn heap_bytes(&self) -> usize {
        self.player_index.heap_bytes()
            + self.blocks.capacity() * size_of::<Block>()
            + self.blocks.iter().map(Block::heap_bytes).sum::<usize>()
            + self.root.heap_bytes()
            + self.groups.capacity() * size_of::<Node>()
            + self.groups.iter().map(Node::heap_bytes).sum::<usize>()
            + 4 * (self.groups_free.capacity() + self.blocks_free.capacity())
    }

    /// Inserts or moves a player's entry. Writing the same entry again changes nothing.
    pub fn put(&mut self, entry: BoardEntry) -> PutOutcome {
        let key = self.key(&entry);
        let Some((block, slot)) = self.player_index.find(key.player) else {
            let (block, _) = self.insert(self.block_of(&key), &key);
            self.player_index.insert_new(key.player, block);
            self.version += 1;
            return PutOutcome::Added;
        };
        // The new block is searched before the old block is read, so that the two cache misses overlap.
        let to = self.block_of(&key);
        let index = self.blocks[block as usize].index_of(key.player).expect("player index and block agree");
        let old = self.blocks[block as usize].key(index);
        if old == key {
            return PutOutcome::Unchanged;
        }
        self.version += 1;
        if to != block || !self.move_within_block(block, index, &key) {
            self.remove_from_block(Location { block, index });
            match self.insert(to, &key) {
                // A split may have rebuilt the index.
                (to, true) => self.player_index.move_to(key.player, to),
                (to, false) => self.player_index.set(slot, to),
            }
            self.merge_if_sparse(block);
        }
        PutOutcome::Replaced(self.entry(&old))
    }

    /// Prefetches the memory that moving the entries of some players needs.
    pub fn prefetch(&self, players: &[PlayerKey]) {
        players.chunks(PREFETCH_BATCH).for_each(|batch| self.prefetch_players(batch));
    }

    /// Prefetches the memory that finding up to [`PREFETCH_BATCH`] players needs. Does nothing
    /// on a board that stays in the CPU cache.
    fn prefetch_players(&self, players: &[PlayerKey]) {
        if self.len() < PREFETCH_ENTRIES_MIN {
            return;
        }
        let mut blocks = [None; PREFETCH_BATCH];
        for (block, player) in blocks.iter_mut().zip(players) {
            *block = self.player_index.block(player.0);
        }
        let blocks = blocks.into_iter().flatten().map(|id| &self.blocks[id as usize]);
        // Keeps the compiler from removing the reads.
        std::hint::black_box(blocks.fold(0, |seen, block| seen ^ block.prefetch()));
    }

    /// Removes a player. Returns the removed entry; `None`: the player was not on the board.
    pub fn remove(&mut self, player: PlayerKey) -> Option<BoardEntry> {
        let (block, slot) = self.player_index.find(player.0)?;
        let index = self.blocks[block as usize].index_of(player.0).expect("player index and block agree");
        let old = self.remove_from_block(Location { block, index });
        self.player_index.remove(slot);
        self.merge_if_sparse(block);
        self.version += 1;
        Some(self.entry(&old))
    }

    /// The same board with minimal memory. It is for a window that has ended, or after
    /// most players were removed. It takes as long as [`Board::build`] of sorted entries.
    /// Query results do not change, and cursors remain valid.
    pub fn compacted(&self) -> Board {
        let built = Board::build(self.direction, self.generation, self.iter());
        Board { version: self.version, ..built }
    }

    fn key(&self, entry: &BoardEntry) -> SortKey {
        let time = entry.at_ms as u64 ^ Direction::SIGN;
        SortKey { score: self.direction.sort_value(entry.score()), tie: entry.tie, time, player: entry.player.0 }
    }

    fn entry(&self, key: &SortKey) -> BoardEntry {
        let at_ms = (key.time ^ Direction::SIGN) as i64;
        BoardEntry::new(self.direction.score(key.score), at_ms, PlayerKey(key.player)).with_tie_break(key.tie)
    }

    /// Returns the location of a player's entry: looks up the block in the player index, then
    /// searches the block.
    #[inline]
    fn locate(&self, player: PlayerKey) -> Option<Location> {
        let block = self.player_index.block(player.0)?;
        let index = self.blocks[block as usize].index_of(player.0).expect("player index and block agree");
        Some(Location { block, index })
    }

    /// The block that a key belongs to; on an empty board an invalid number.
    #[inline]
    fn block_of(&self, key: &SortKey) -> u32 {
        if self.root.len() == 0 {
            return u32::MAX;
        }
        let group = &self.groups[self.root.children[self.root.child_of(key)] as usize];
        group.children[group.child_of(key)]
    }

    /// Inserts a key that is not on the board and belongs to a block; returns its block, and whether one was split.
    fn insert(&mut self, mut id: u32, key: &SortKey) -> (u32, bool) {
        if self.root.len() == 0 {
            return (self.insert_first(key), false);
        }
        let is_full = self.blocks[id as usize].len() == BLOCK_MAX;
        if is_full {
            self.split_block(id);
            id = self.block_of(key);
        }
        let block = &mut self.blocks[id as usize];
        let index = block.before(key);
        block.insert(index, key);
        self.update_counts(id, index == 0, index + 1 == self.blocks[id as usize].len());
        (id, is_full)
    }

    /// Inserts the first entry of an empty board.
    fn insert_first(&mut self, key: &SortKey) -> u32 {
        let mut block = Block::new(&[*key]);
        (block.group, block.index) = (0, 0);
        let counts = NodeCounts { entries: 1, distinct_scores: 1 };
        let mut group = Node::default();
        group.insert(0, *key, counts, 0);
        self.root.insert(0, *key, counts, 0);
        self.groups = vec![group];
        self.blocks = vec![block];
        0
    }

    /// Moves an entry within its block and sets its key. `false`: the new key does not fit the
    /// widths of the block's columns.
    fn move_within_block(&mut self, id: u32, from: usize, key: &SortKey) -> bool {
        let block = &mut self.blocks[id as usize];
        let before = block.before(key);
        let to = if before > from { before - 1 } else { before };
        if !block.move_entry(from, to, key) {
            return false;
        }
        let last = block.len() - 1;
        self.update_counts(id, from == 0 || to == 0, from == last || to == last);
        true
    }

    /// Removes an entry from its block. The block may become sparse or empty: the caller calls
    /// [`Board::merge_if_sparse`] afterwards.
    fn remove_from_block(&mut self, location: Location) -> SortKey {
        let block = &mut self.blocks[location.block as usize];
        let key = block.remove(location.index);
        let (len, at_end) = (block.len(), location.index == block.len());
        if len > 0 {
            self.update_counts(location.block, location.index == 0, at_end);
        } else {
            block.continues_score = false;
            self.recount(location.block);
        }
        key
    }

    /// Updates the counts in the levels above after a change in a block. `at_start`: its first
    /// entry changed. `at_end`: its last entry changed. Also updates whether this block and
    /// the next one begin with the last score of the previous block.
    #[inline]
    fn update_counts(&mut self, id: u32, at_start: bool, at_end: bool) {
        if at_start {
            self.update_continues(id);
        }
        self.recount(id);
        if at_end && let Some(next) = self.next(id) {
            self.update_continues(next);
            self.recount(next);
        }
    }

    /// Updates whether a block begins with the score that the previous one ends with.
    fn update_continues(&mut self, id: u32) {
        let mut before = self.previous(id);
        while let Some(empty) = before.filter(|&b| self.blocks[b as usize].len() == 0) {
            before = self.previous(empty);
        }
        let end = before.map(|b| &self.blocks[b as usize]).map(|block| block.score(block.len() - 1));
        let block = &mut self.blocks[id as usize];
        block.continues_score = block.len() > 0 && end == Some(block.score(0));
    }

    /// Updates the counts of a block in the levels above.
    #[inline]
    fn recount(&mut self, id: u32) {
        let block = &self.blocks[id as usize];
        let counts = NodeCounts { entries: block.len() as u32, distinct_scores: block.new_distinct_scores() };
        let group = &mut self.groups[block.group as usize];
        let previous = group.set(block.index as usize, counts);
        self.root.add_delta(group.index as usize, previous, counts);
    }

    fn next(&self, id: u32) -> Option<u32> {
        let block = &self.blocks[id as usize];
        let group = &self.groups[block.group as usize];
        if let Some(&next) = group.children.get(block.index as usize + 1) {
            return Some(next);
        }
        let group = *self.root.children.get(group.index as usize + 1)?;
        self.groups[group as usize].children.first().copied()
    }

    fn previous(&self, id: u32) -> Option<u32> {
        let block = &self.blocks[id as usize];
        let group = &self.groups[block.group as usize];
        if let Some(before) = block.index.checked_sub(1) {
            return Some(group.children[before as usize]);
        }
        let group = self.root.children[group.index.checked_sub(1)? as usize];
        self.groups[group as usize].children.last().copied()
    }
}

#[cfg(test)]
mod tests;
