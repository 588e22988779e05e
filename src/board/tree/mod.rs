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
//! `update` is [`Set::put`], `rank` returns the position of a player, `rank x 64` does so in
//! batches of 64, `select` returns the entry at a position. Speed compared with Redis is
//! given for `update` and `rank`. All times are per player.
//!
//! Nearly all of this time is cache misses, and other processes use the same memory: on a
//! quieter machine (load average 1.1) an update at 10 million took 0.80 us, in the worst run 2.0 us.
//! Elo, whose scores need more bytes, takes 20.7 bytes an entry. [`Set::build`] of 10
//! million rows in any order: 2.8 s.
//!
//! Memory use: [`Set::heap_bytes`]. Queries: [`lookup`]. Not in this module: which scores
//! compete (windows and scopes), files, clocks, threads. A board is a plain value; a caller
//! that shares it uses a lock, and readers under that lock see a consistent board.

pub(in crate::board) mod block;
pub mod lookup;
pub(in crate::board) mod node;
pub(in crate::board) mod player_index;

use super::{BoardEntry, Score};
use crate::board::tree::block::{BLOCK_MAX, Block, SortKey};
use crate::board::tree::node::{Node, NodeCounts};
use crate::board::tree::player_index::PlayerIndex;
use crate::model::PlayerKey;

/// Most blocks in a group. An update searches the scores of a group (4 KiB). Finding a
/// position adds up its counts (2 KiB).
const GROUP_MAX: usize = 512;
/// Entries in each block after [`Set::build`]. The blocks have space for later inserts. The
/// player index needs fewer block numbers than with half full blocks.
const BLOCK_FILL: usize = BLOCK_MAX * 3 / 4;
/// A block or group that is filled to less than one part in this many is merged with a
/// neighbour, if the result has space for inserts.
const SPARSE_DIVISOR: usize = 4;

/// Players prefetched together. Two cache lines per player are about as many outstanding
/// misses as a core supports.
pub(super) const PREFETCH_BATCH: usize = 32;
/// Least entries of a board for which a prefetch saves time. A smaller board (20 MB) mostly
/// stays in the cache.
const PREFETCH_ENTRIES_MIN: u32 = 1 << 20;

/// Which scores are best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Direction {
    #[default]
    HighIsBetter,
    LowIsBetter,
}

impl Direction {
    /// The sign bit: flipped, it makes unsigned order equal to signed order.
    const SIGN: u64 = 1 << 63;

    /// The sort value of a score: ascending, best first. Every `i64` has one.
    pub(super) fn sort_value(self, score: Score) -> u64 {
        let ascending = score.0 as u64 ^ Direction::SIGN;
        match self {
            Direction::HighIsBetter => !ascending,
            Direction::LowIsBetter => ascending,
        }
    }

    /// The score of a sort value.
    pub(super) fn score(self, sort_value: u64) -> Score {
        let ascending = match self {
            Direction::HighIsBetter => !sort_value,
            Direction::LowIsBetter => sort_value,
        };
        Score((ascending ^ Direction::SIGN) as i64)
    }
}

/// Result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    Added,
    /// The previous entry of the player, or the removed one.
    From(BoardEntry),
    /// The board already had this entry.
    Unchanged,
}

/// A board (see the [module documentation](self)). At most `u32::MAX` entries; players are
/// unique.
#[derive(Clone, Debug)]
pub struct Set {
    direction: Direction,
    pub(super) generation: u64,
    pub(super) version: u64,
    pub(super) top: Node,
    pub(super) groups: Vec<Node>,
    groups_free: Vec<u32>,
    pub(super) blocks: Vec<Block>,
    blocks_free: Vec<u32>,
    members: PlayerIndex,
}

/// The location of an entry: block, and index in the block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub block: u32,
    pub index: usize,
}

impl Set {
    /// An empty board. `generation` distinguishes it from every earlier board in its place
    /// (an earlier window, the same one before a rebuild), so that cursors of those are
    /// detected as stale.
    pub fn new(direction: Direction, generation: u64) -> Set {
        Set {
            direction,
            generation,
            version: 0,
            top: Node::default(),
            groups: Vec::new(),
            groups_free: Vec::new(),
            blocks: Vec::new(),
            blocks_free: Vec::new(),
            members: PlayerIndex::new(),
        }
    }

    /// Builds a board of entries in any order. If a player has several entries, the best one
    /// is kept. Sorting needs 32 bytes an entry in addition to the board itself.
    pub fn build(direction: Direction, generation: u64, places: impl IntoIterator<Item = BoardEntry>) -> Set {
        let places = places.into_iter();
        let (mut set, mut keys) = Set::with_sorted_keys(direction, generation, places.size_hint().0, places);
        let mut kept = 0;
        keys.retain(|key| {
            let is_new = set.members.insert(key.player, (kept / BLOCK_FILL) as u32);
            kept += usize::from(is_new);
            is_new
        });
        set.build_blocks(&keys);
        set
    }

    /// Like [`Set::build`], for entries of different players, in half the time: it does not
    /// search for duplicates. Duplicate players produce a corrupt board. The chunks are
    /// freed one by one as they are read.
    pub fn build_unique(direction: Direction, generation: u64, parts: Vec<Vec<BoardEntry>>) -> Set {
        let len = parts.iter().map(Vec::len).sum();
        let (mut set, keys) = Set::with_sorted_keys(direction, generation, len, parts.into_iter().flatten());
        set.members.fill(keys.iter().enumerate().map(|(i, key)| (key.player, (i / BLOCK_FILL) as u32)));
        debug_assert!(
            keys.iter().all(|key| set.members.block(key.player).is_some()) && set.members.len() == keys.len()
        );
        set.build_blocks(&keys);
        set
    }

    /// An empty board with capacity for the players, and the sort keys in order.
    fn with_sorted_keys(
        direction: Direction,
        generation: u64,
        len: usize,
        places: impl Iterator<Item = BoardEntry>,
    ) -> (Set, Vec<SortKey>) {
        let mut set = Set::new(direction, generation);
        let mut keys: Vec<SortKey> = Vec::with_capacity(len);
        keys.extend(places.map(|place| set.key(&place)));
        keys.sort_unstable();
        set.members = PlayerIndex::with_room(keys.len(), keys.len().div_ceil(BLOCK_FILL));
        (set, keys)
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
            self.top.insert(i, group.low(0), group.total(), i as u32);
        }
    }

    /// Returns the same board with another version. It is for boards that are rebuilt for
    /// each query, for which no changes are counted. The caller must give equal contents
    /// equal versions and different contents different ones.
    pub fn with_version(self, version: u64) -> Set {
        Set { version, ..self }
    }

    /// Appends a block to the last group, or to a new one. `last_score` is the last score of
    /// the previous block. The caller builds the list of groups afterwards.
    fn push_block(&mut self, keys: &[SortKey], last_score: &mut Option<u64>) {
        if self.groups.last().is_none_or(|group| group.len() == GROUP_MAX * 3 / 4) {
            self.groups.push(Node::default());
        }
        let id = self.blocks.len() as u32;
        let mut block = Block::of(keys);
        block.group = self.groups.len() as u32 - 1;
        let group = self.groups.last_mut().expect("was pushed");
        block.index = group.len() as u32;
        block.joined = *last_score == Some(keys[0].score);
        *last_score = keys.last().map(|key| key.score);
        group.insert(group.len(), keys[0], NodeCounts { places: keys.len() as u32, starts: block.new_scores() }, id);
        self.blocks.push(block);
    }

    /// See [`Set::new`].
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Players on the board.
    pub fn len(&self) -> u32 {
        self.members.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Heap memory of the board, bytes, exactly as allocated. The allocator's own 8 to 16
    /// bytes an allocation are not included. Takes one pass over the blocks, a few ms at 10
    /// million entries. Resident memory was 2 to 3 bytes an entry larger after millions of updates.
    pub fn heap_bytes(&self) -> usize {
        self.members.heap_bytes()
            + self.blocks.capacity() * size_of::<Block>()
            + self.blocks.iter().map(Block::heap_bytes).sum::<usize>()
            + self.top.heap_bytes()
            + self.groups.capacity() * size_of::<Node>()
            + self.groups.iter().map(Node::heap_bytes).sum::<usize>()
            + 4 * (self.groups_free.capacity() + self.blocks_free.capacity())
    }

    /// Inserts or moves a player's entry. Writing the same entry again changes nothing.
    pub fn put(&mut self, place: BoardEntry) -> PutOutcome {
        let key = self.key(&place);
        let Some(block) = self.members.block(key.player) else {
            let block = self.insert(&key);
            self.members.insert_new(key.player, block);
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
        if to != block || !self.shift(block, index, &key) {
            self.take_entry(Location { block, index });
            let to = self.insert(&key);
            if to != block {
                // Searches the index again: a split in `insert` may have rebuilt it.
                self.members.move_to(key.player, to);
            }
            self.settle(block);
        }
        PutOutcome::From(self.place(&old))
    }

    /// Calls [`Set::put`] for several entries, in order, and `changed` with each result. On a
    /// board that is larger than the cache it prefetches, so that the cache misses of many
    /// entries overlap. At 10 million entries this was between 15 % slower and 40 % faster
    /// than one by one, and mostly faster.
    pub fn put_all(&mut self, places: &[BoardEntry], mut changed: impl FnMut(BoardEntry, PutOutcome)) {
        for chunk in places.chunks(PREFETCH_BATCH) {
            self.read_ahead(chunk.iter().map(|place| place.player));
            self.read_ahead_of(chunk.iter().map(|place| self.block_of(&self.key(place))));
            for &place in chunk {
                let outcome = self.put(place);
                changed(place, outcome);
            }
        }
    }

    /// Prefetches the memory that finding up to [`PREFETCH_BATCH`] players needs.
    pub(super) fn read_ahead(&self, players: impl Iterator<Item = PlayerKey>) {
        if self.len() < PREFETCH_ENTRIES_MIN {
            return;
        }
        let mut blocks = [u32::MAX; PREFETCH_BATCH];
        for (block, player) in blocks.iter_mut().zip(players) {
            *block = self.members.block(player.0).unwrap_or(u32::MAX);
        }
        self.read_ahead_of(blocks.into_iter());
    }

    /// Prefetches blocks; ignores invalid block numbers.
    fn read_ahead_of(&self, blocks: impl Iterator<Item = u32>) {
        if self.len() >= PREFETCH_ENTRIES_MIN {
            let blocks = blocks.filter_map(|id| self.blocks.get(id as usize));
            // Keeps the compiler from removing the reads.
            std::hint::black_box(blocks.fold(0, |seen, block| seen ^ block.read_ahead()));
        }
    }

    /// Like [`Set::put`], but does nothing if the player's current score is as good or better. An
    /// equal score thus keeps its time.
    pub fn put_if_better(&mut self, place: BoardEntry) -> PutOutcome {
        match self.get(place.player) {
            Some(old) if self.direction.sort_value(old.score()) <= self.direction.sort_value(place.score()) => {
                PutOutcome::Unchanged
            }
            _ => self.put(place),
        }
    }

    /// Removes a player; `Unchanged`: the player was not on the board.
    pub fn remove(&mut self, player: PlayerKey) -> PutOutcome {
        let Some((block, slot)) = self.members.find(player.0) else { return PutOutcome::Unchanged };
        let index = self.blocks[block as usize].index_of(player.0).expect("player index and block agree");
        let old = self.take_entry(Location { block, index });
        self.members.remove(slot);
        self.settle(block);
        self.version += 1;
        PutOutcome::From(self.place(&old))
    }

    /// Rebuilds the board with minimal memory. It is for a window that has ended, or after
    /// most players were removed. It takes as long as [`Set::build`] of sorted entries.
    /// Query results do not change, and cursors remain valid.
    pub fn compact(&mut self) {
        let built = Set::build(self.direction, self.generation, self.iter());
        *self = Set { version: self.version, ..built };
    }

    pub(super) fn key(&self, place: &BoardEntry) -> SortKey {
        let at = place.at_ms as u64 ^ Direction::SIGN;
        SortKey { score: self.direction.sort_value(place.score()), tie: place.tie, at, player: place.player.0 }
    }

    pub(super) fn place(&self, key: &SortKey) -> BoardEntry {
        let at_ms = (key.at ^ Direction::SIGN) as i64;
        BoardEntry::new(self.direction.score(key.score), at_ms, PlayerKey(key.player)).with_tie_break(key.tie)
    }

    /// Returns the location of a player's entry: looks up the block in the player index, then
    /// searches the block.
    #[inline]
    pub(super) fn spot(&self, player: PlayerKey) -> Option<Location> {
        let block = self.members.block(player.0)?;
        let index = self.blocks[block as usize].index_of(player.0).expect("player index and block agree");
        Some(Location { block, index })
    }

    /// The block that a key belongs to; on an empty board an invalid number.
    #[inline]
    pub(super) fn block_of(&self, key: &SortKey) -> u32 {
        if self.top.len() == 0 {
            return u32::MAX;
        }
        let group = &self.groups[self.top.children[self.top.child_of(key)] as usize];
        group.children[group.child_of(key)]
    }

    /// Inserts a key that is not on the board; returns its block.
    fn insert(&mut self, key: &SortKey) -> u32 {
        if self.top.len() == 0 {
            return self.insert_first(key);
        }
        let mut id = self.block_of(key);
        if self.blocks[id as usize].len() == BLOCK_MAX {
            self.split(id);
            id = self.block_of(key);
        }
        let block = &mut self.blocks[id as usize];
        let index = block.before(key);
        block.insert(index, key);
        self.update_counts(id, index == 0, index + 1 == self.blocks[id as usize].len());
        id
    }

    /// Inserts the first entry of an empty board.
    fn insert_first(&mut self, key: &SortKey) -> u32 {
        let mut block = Block::of(&[*key]);
        (block.group, block.index) = (0, 0);
        let counts = NodeCounts { places: 1, starts: 1 };
        let mut group = Node::default();
        group.insert(0, *key, counts, 0);
        self.top.insert(0, *key, counts, 0);
        self.groups = vec![group];
        self.blocks = vec![block];
        0
    }

    /// Moves an entry within its block and sets its key. `false`: the new key does not fit the
    /// widths of the block's columns.
    fn shift(&mut self, id: u32, from: usize, key: &SortKey) -> bool {
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
    /// [`Set::settle`] afterwards.
    fn take_entry(&mut self, spot: Location) -> SortKey {
        let block = &mut self.blocks[spot.block as usize];
        let key = block.remove(spot.index);
        let (len, at_end) = (block.len(), spot.index == block.len());
        if len > 0 {
            self.update_counts(spot.block, spot.index == 0, at_end);
        } else {
            block.joined = false;
            self.recount(spot.block);
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
        block.joined = block.len() > 0 && end == Some(block.score(0));
    }

    /// Updates the counts of a block in the levels above.
    #[inline]
    fn recount(&mut self, id: u32) {
        let block = &self.blocks[id as usize];
        let counts = NodeCounts { places: block.len() as u32, starts: block.new_scores() };
        let group = &mut self.groups[block.group as usize];
        let previous = group.set(block.index as usize, counts);
        self.top.add_delta(group.index as usize, previous, counts);
    }

    pub(super) fn next(&self, id: u32) -> Option<u32> {
        let block = &self.blocks[id as usize];
        let group = &self.groups[block.group as usize];
        if let Some(&next) = group.children.get(block.index as usize + 1) {
            return Some(next);
        }
        let group = *self.top.children.get(group.index as usize + 1)?;
        self.groups[group as usize].children.first().copied()
    }

    pub(super) fn previous(&self, id: u32) -> Option<u32> {
        let block = &self.blocks[id as usize];
        let group = &self.groups[block.group as usize];
        if let Some(before) = block.index.checked_sub(1) {
            return Some(group.children[before as usize]);
        }
        let group = self.top.children[group.index.checked_sub(1)? as usize];
        self.groups[group as usize].children.last().copied()
    }

    /// Splits a full block in halves and updates the player index for the new one. Takes a
    /// few us, about once in 64 inserts.
    fn split(&mut self, id: u32) {
        let tail = self.blocks[id as usize].split_off(BLOCK_MAX / 2);
        let mut block = Block::of(&tail);
        let (group, index) = (self.blocks[id as usize].group, self.blocks[id as usize].index as usize + 1);
        block.joined = self.blocks[id as usize].score(BLOCK_MAX / 2 - 1) == tail[0].score;
        block.group = group;
        let new = match self.blocks_free.pop() {
            Some(free) => {
                self.blocks[free as usize] = block;
                free
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() as u32 - 1
            }
        };
        for key in &tail {
            self.members.move_to(key.player, new);
        }
        self.groups[group as usize].insert(index, tail[0], NodeCounts::default(), new);
        self.number(group, index);
        self.recount(id);
        self.recount(new);
        if self.groups[group as usize].len() > GROUP_MAX {
            self.split_group(group);
        }
    }

    /// Splits a full group in halves.
    fn split_group(&mut self, id: u32) {
        let old = &mut self.groups[id as usize];
        let index = old.index as usize;
        let group = old.split_off(GROUP_MAX / 2);
        let (low, total, rest) = (group.low(0), group.total(), old.total());
        let new = match self.groups_free.pop() {
            Some(free) => {
                self.groups[free as usize] = group;
                free
            }
            None => {
                self.groups.push(group);
                self.groups.len() as u32 - 1
            }
        };
        self.top.set(index, rest);
        self.top.insert(index + 1, low, total, new);
        self.number_groups(index + 1);
        self.number(new, 0);
    }

    /// Updates the group and index of the blocks from child `from` of a group on.
    fn number(&mut self, group: u32, from: usize) {
        for (index, &child) in self.groups[group as usize].children.iter().enumerate().skip(from) {
            let block = &mut self.blocks[child as usize];
            (block.group, block.index) = (group, index as u32);
        }
    }

    /// Updates the index of the groups from `from` on.
    fn number_groups(&mut self, from: usize) {
        for (index, &child) in self.top.children.iter().enumerate().skip(from) {
            self.groups[child as usize].index = index as u32;
        }
    }

    /// Drops a block that is empty after a removal, or merges a sparse one with a neighbour.
    fn settle(&mut self, id: u32) {
        let len = self.blocks[id as usize].len();
        if len == 0 {
            return self.drop_block(id);
        }
        if len >= BLOCK_MAX / SPARSE_DIVISOR {
            return;
        }
        let (group, index) = (self.blocks[id as usize].group as usize, self.blocks[id as usize].index as usize);
        let children = &self.groups[group].children;
        let has_space = |other: u32| self.blocks[other as usize].len() + len <= BLOCK_MAX * 3 / 4;
        let before = index.checked_sub(1).map(|before| children[before]).filter(|&b| has_space(b));
        let next = children.get(index + 1).copied().filter(|&b| has_space(b));
        let Some((left, right)) = before.map(|b| (b, id)).or(next.map(|n| (id, n))) else { return };
        let keys: Vec<SortKey> = self.blocks[right as usize].keys().collect();
        self.blocks[left as usize].append(&keys);
        for key in &keys {
            self.members.move_to(key.player, left);
        }
        self.recount(left);
        self.drop_block(right);
    }

    /// Removes a block, whose entries were moved, from its group.
    fn drop_block(&mut self, id: u32) {
        if self.is_empty() {
            let emptied = Set::new(self.direction, self.generation);
            *self = Set { version: self.version, ..emptied };
            return;
        }
        let next = self.next(id);
        let (group, index) = (self.blocks[id as usize].group, self.blocks[id as usize].index as usize);
        self.blocks[id as usize] = Block::of(&[]);
        (self.blocks[id as usize].group, self.blocks[id as usize].index) = (group, index as u32);
        self.recount(id);
        self.blocks_free.push(id);
        self.groups[group as usize].remove(index);
        self.number(group, index);
        self.settle_group(group);
        if let Some(next) = next {
            self.update_continues(next);
            self.recount(next);
        }
    }

    /// Drops a group that is empty, or merges a sparse one with a neighbour.
    fn settle_group(&mut self, id: u32) {
        let (len, index) = (self.groups[id as usize].len(), self.groups[id as usize].index as usize);
        if len == 0 {
            return self.drop_group(id);
        }
        if len >= GROUP_MAX / SPARSE_DIVISOR {
            return;
        }
        let children = &self.top.children;
        let has_space = |other: u32| self.groups[other as usize].len() + len <= GROUP_MAX * 3 / 4;
        let before = index.checked_sub(1).map(|before| children[before]).filter(|&g| has_space(g));
        let next = children.get(index + 1).copied().filter(|&g| has_space(g));
        let Some((left, right)) = before.map(|b| (b, id)).or(next.map(|n| (id, n))) else { return };
        let mut tail = std::mem::take(&mut self.groups[right as usize]);
        // Its first child also covers the keys between the group's low key and its own.
        tail.set_low(0, self.top.low(tail.index as usize));
        let from = self.groups[left as usize].len();
        self.groups[left as usize].append(&mut tail);
        self.groups[right as usize].index = tail.index;
        self.number(left, from);
        let group = &self.groups[left as usize];
        self.top.set(group.index as usize, group.total());
        self.drop_group(right);
    }

    fn drop_group(&mut self, id: u32) {
        let index = self.groups[id as usize].index as usize;
        self.groups[id as usize] = Node::default();
        self.groups_free.push(id);
        self.top.remove(index);
        self.number_groups(index);
    }
}

#[cfg(test)]
mod tests;
