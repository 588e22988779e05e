//! A leaf of the board tree: neighbouring entries, packed.
//!
//! Four columns in one allocation. Scores, times and ties are differences from a base of
//! the block, in as many whole bytes (0 to 8) as the largest difference needs; players take
//! four bytes each. On a board without a tie-breaker ties take no bytes. Neighbours are
//! similar, so a score of a large board costs two or three bytes instead of eight. A value
//! that does not fit makes the block be packed again with wider columns, so nothing is ever
//! rounded. Capacity grows and shrinks by [`CAPACITY_STEP`] entries: partly filled blocks
//! cost no memory. Not in this module: which block a key belongs to (`tree`).

use std::cmp::Ordering;

/// Most entries in a block. A block is at least half full and takes up to 1.3 KiB. At 10 million
/// entries, block sizes of 64 to 256 are equally fast, because cache misses dominate. Smaller
/// blocks have more headers (2 bytes an entry at 64), larger ones move more data.
pub(super) const BLOCK_MAX: usize = 128;

/// Capacity is allocated in steps of this many entries.
const CAPACITY_STEP: usize = 16;

/// Bytes of a cache line.
const CACHE_LINE_BYTES: usize = 64;

const _: () = assert!(size_of::<Block>() == CACHE_LINE_BYTES);

/// Padding after the columns, so that eight bytes can be read at any value.
const PADDING: usize = 8;

/// An entry as four unsigned numbers that all sort ascending, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SortKey {
    pub score: u64,
    pub tie: u64,
    pub time: u64,
    pub player: u32,
}

impl SortKey {
    /// Sorts before all keys with this score and after all better ones.
    pub fn first_of(score: u64) -> SortKey {
        SortKey { score, tie: 0, time: 0, player: 0 }
    }
}

/// A block (see the [module documentation](self)). One cache line; the columns are
/// allocated separately.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Block {
    bytes: Box<[u8]>,
    score_base: u64,
    time_base: u64,
    tie_base: u64,
    /// The parent group, and the index among its children.
    pub group: u32,
    pub index: u32,
    len: u16,
    capacity: u16,
    /// Number of distinct scores in the block.
    distinct_scores: u16,
    score_width: u8,
    time_width: u8,
    tie_width: u8,
    /// The first score equals the last one of the previous block.
    pub continues_score: bool,
}

fn width(difference: u64) -> u8 {
    (64 - difference.leading_zeros()).div_ceil(8) as u8
}

fn mask(width: u8) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (64 - 8 * u32::from(width)) }
}

fn load(bytes: &[u8], at: usize, mask: u64) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) & mask
}

fn store(bytes: &mut [u8], at: usize, mask: u64, value: u64) {
    let kept = load(bytes, at, !mask);
    bytes[at..at + 8].copy_from_slice(&(kept | value).to_le_bytes());
}

impl Block {
    /// A block of keys in order, at most [`BLOCK_MAX`].
    pub fn new(keys: &[SortKey]) -> Block {
        assert!(keys.len() <= BLOCK_MAX, "{} keys in a block", keys.len());
        let score_base = keys.first().map_or(0, |key| key.score);
        let score_width = width(keys.last().map_or(0, |key| key.score) - score_base);
        let time_base = keys.iter().map(|key| key.time).min().unwrap_or(0);
        let time_width = width(keys.iter().map(|key| key.time).max().unwrap_or(0) - time_base);
        let tie_base = keys.iter().map(|key| key.tie).min().unwrap_or(0);
        let tie_width = width(keys.iter().map(|key| key.tie).max().unwrap_or(0) - tie_base);
        let capacity = keys.len().next_multiple_of(CAPACITY_STEP);
        let mut block = Block {
            bytes: vec![0; capacity * Block::stride(score_width, time_width, tie_width) + PADDING].into(),
            score_base,
            time_base,
            tie_base,
            group: 0,
            index: 0,
            len: keys.len() as u16,
            capacity: capacity as u16,
            distinct_scores: 0,
            score_width,
            time_width,
            tie_width,
            continues_score: false,
        };
        let mut before = None;
        for (i, key) in keys.iter().enumerate() {
            block.write(i, key);
            block.distinct_scores += u16::from(before != Some(key.score));
            before = Some(key.score);
        }
        block
    }

    fn stride(score_width: u8, time_width: u8, tie_width: u8) -> usize {
        usize::from(score_width) + usize::from(time_width) + 4 + usize::from(tie_width)
    }

    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Number of distinct scores that start in this block: without one continued from the
    /// previous block.
    pub fn new_distinct_scores(&self) -> u32 {
        u32::from(self.distinct_scores) - u32::from(self.continues_score)
    }

    /// Number of distinct scores among the first `n` entries.
    pub fn distinct_scores_before(&self, n: usize) -> u32 {
        let mut distinct_scores = u32::from(n > 0);
        for i in 1..n {
            distinct_scores += u32::from(self.score_delta(i) != self.score_delta(i - 1));
        }
        distinct_scores
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn time_column(&self) -> usize {
        usize::from(self.capacity) * usize::from(self.score_width)
    }

    fn player_column(&self) -> usize {
        usize::from(self.capacity) * (usize::from(self.score_width) + usize::from(self.time_width))
    }

    /// The last column, so that the others have the same offsets as without it.
    fn tie_column(&self) -> usize {
        self.player_column() + 4 * usize::from(self.capacity)
    }

    #[inline]
    fn score_delta(&self, i: usize) -> u64 {
        load(&self.bytes, i * usize::from(self.score_width), mask(self.score_width))
    }

    #[inline]
    pub fn score(&self, i: usize) -> u64 {
        self.score_base + self.score_delta(i)
    }

    #[inline]
    fn time(&self, i: usize) -> u64 {
        self.time_base + load(&self.bytes, self.time_column() + i * usize::from(self.time_width), mask(self.time_width))
    }

    #[inline]
    fn player(&self, i: usize) -> u32 {
        load(&self.bytes, self.player_column() + 4 * i, mask(4)) as u32
    }

    #[inline]
    fn tie(&self, i: usize) -> u64 {
        if self.tie_width == 0 {
            return self.tie_base;
        }
        self.tie_base + load(&self.bytes, self.tie_column() + i * usize::from(self.tie_width), mask(self.tie_width))
    }

    pub fn key(&self, i: usize) -> SortKey {
        assert!(i < self.len());
        SortKey { score: self.score(i), tie: self.tie(i), time: self.time(i), player: self.player(i) }
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = SortKey> + '_ {
        (0..self.len()).map(|i| self.key(i))
    }

    fn write(&mut self, i: usize, key: &SortKey) {
        let (time, player) = (self.time_column(), self.player_column());
        let (score_width, time_width) = (usize::from(self.score_width), usize::from(self.time_width));
        store(&mut self.bytes, i * score_width, mask(self.score_width), key.score - self.score_base);
        store(&mut self.bytes, time + i * time_width, mask(self.time_width), key.time - self.time_base);
        self.bytes[player + 4 * i..player + 4 * i + 4].copy_from_slice(&key.player.to_le_bytes());
        if self.tie_width > 0 {
            self.write_tie(i, key.tie);
        }
    }

    #[cold]
    fn write_tie(&mut self, i: usize, tie: u64) {
        let at = self.tie_column() + i * usize::from(self.tie_width);
        store(&mut self.bytes, at, mask(self.tie_width), tie - self.tie_base);
    }

    /// The index of a player: compares 16 players a step, one or two cache lines each.
    #[inline]
    pub fn index_of(&self, player: u32) -> Option<usize> {
        let from = self.player_column();
        let column = &self.bytes[from..from + 4 * self.len()];
        let is = |four: &[u8]| u32::from_le_bytes(four.try_into().expect("four bytes")) == player;
        let steps = column.chunks_exact(64);
        let (rest, rest_at) = (steps.remainder(), column.len() / 64 * 16);
        for (n, step) in steps.enumerate() {
            if step.chunks_exact(4).fold(false, |any, four| any | is(four)) {
                return step.chunks_exact(4).position(is).map(|i| 16 * n + i);
            }
        }
        rest.chunks_exact(4).position(is).map(|i| rest_at + i)
    }

    /// Touches every cache line.
    #[inline]
    pub fn prefetch(&self) -> u8 {
        self.bytes.iter().step_by(CACHE_LINE_BYTES).fold(0, |seen, byte| seen ^ byte)
    }

    /// Number of entries whose score sorts before `score`.
    #[inline]
    pub fn before_score(&self, score: u64) -> usize {
        let Some(delta) = score.checked_sub(self.score_base) else { return 0 };
        self.partition(0, self.len(), |block, i| block.score_delta(i) < delta)
    }

    /// Number of entries that sort before `key`.
    #[inline]
    pub fn before(&self, key: &SortKey) -> usize {
        let from = self.before_score(key.score);
        if from == self.len() || self.score(from) != key.score {
            return from;
        }
        self.before_in_equal_scores(from, key)
    }

    /// Like [`Block::before`], where the entry at `from` is the first with this score. A
    /// separate function, so that the common path stays short.
    #[inline(never)]
    fn before_in_equal_scores(&self, from: usize, key: &SortKey) -> usize {
        let delta = key.score - self.score_base;
        let to = self.partition(from, self.len(), |block, i| block.score_delta(i) <= delta);
        let (from, to) = self.tie_range(from, to, key.tie);
        self.partition(from, to, |block, i| (block.time(i), block.player(i)) < (key.time, key.player))
    }

    /// The range of entries with this tie among entries of one score, or where it would be.
    #[inline]
    fn tie_range(&self, from: usize, to: usize, tie: u64) -> (usize, usize) {
        if self.tie_width == 0 {
            // All entries of the block have the same tie.
            return match self.tie_base.cmp(&tie) {
                Ordering::Less => (to, to),
                Ordering::Equal => (from, to),
                Ordering::Greater => (from, from),
            };
        }
        let first = self.partition(from, to, |block, i| block.tie(i) < tie);
        (first, self.partition(first, to, |block, i| block.tie(i) <= tie))
    }

    /// The first index of `from..to` for which `is_before` is false.
    #[inline]
    fn partition(&self, from: usize, to: usize, is_before: impl Fn(&Block, usize) -> bool) -> usize {
        let (mut base, mut size) = (from, to - from);
        while size > 0 {
            let half = size / 2;
            let next = base + half + 1;
            let right = is_before(self, base + half);
            base = if right { next } else { base };
            size = if right { size - half - 1 } else { half };
        }
        base
    }

    fn fits(&self, key: &SortKey) -> bool {
        key.score.checked_sub(self.score_base).is_some_and(|delta| delta <= mask(self.score_width))
            && key.time.checked_sub(self.time_base).is_some_and(|delta| delta <= mask(self.time_width))
            && key.tie.checked_sub(self.tie_base).is_some_and(|delta| delta <= mask(self.tie_width))
    }

    /// Whether an entry of this score between the indices `before` and `after` adds a
    /// distinct score.
    fn adds_distinct_score(&self, score: u64, before: Option<usize>, after: usize) -> bool {
        !(before.is_some_and(|i| self.score(i) == score) || (after < self.len() && self.score(after) == score))
    }

    /// Inserts a key at index `i`, which is its sorted position; the block is not full.
    pub fn insert(&mut self, i: usize, key: &SortKey) {
        assert!(self.len() < BLOCK_MAX && i <= self.len());
        if !self.fits(key) {
            let mut keys: Vec<SortKey> = Vec::with_capacity(BLOCK_MAX);
            keys.extend(self.keys());
            keys.insert(i, *key);
            self.repack(&keys);
            return;
        }
        self.distinct_scores += u16::from(self.adds_distinct_score(key.score, i.checked_sub(1), i));
        if self.len == self.capacity {
            self.set_capacity(self.len() + CAPACITY_STEP);
        }
        self.slide(i, i + 1, self.len() - i);
        self.len += 1;
        self.write(i, key);
    }

    /// Removes the entry at index `i`.
    pub fn remove(&mut self, i: usize) -> SortKey {
        let key = self.key(i);
        self.distinct_scores -= u16::from(self.adds_distinct_score(key.score, i.checked_sub(1), i + 1));
        self.slide(i + 1, i, self.len() - i - 1);
        self.len -= 1;
        if self.len() + 2 * CAPACITY_STEP < usize::from(self.capacity) {
            self.set_capacity(self.len().next_multiple_of(CAPACITY_STEP));
        }
        key
    }

    /// Replaces the entry at index `from` by `key`, whose sorted position is `to` after the
    /// removal. `false`: the key does not fit, nothing has changed.
    pub fn move_entry(&mut self, from: usize, to: usize, key: &SortKey) -> bool {
        if !self.fits(key) {
            return false;
        }
        self.distinct_scores -= u16::from(self.adds_distinct_score(self.score(from), from.checked_sub(1), from + 1));
        match from < to {
            true => self.slide(from + 1, from, to - from),
            false => self.slide(to, to + 1, from - to),
        }
        self.distinct_scores += u16::from(self.adds_distinct_score(key.score, to.checked_sub(1), to + 1));
        self.write(to, key);
        true
    }

    /// Moves `n` entries of every column.
    fn slide(&mut self, from: usize, to: usize, n: usize) {
        let columns = [(0, self.score_width), (self.time_column(), self.time_width), (self.player_column(), 4)];
        for (column, width) in columns {
            self.slide_column(column, width, from, to, n);
        }
        // Most boards have no ties: skip the call.
        if self.tie_width > 0 {
            self.slide_ties(from, to, n);
        }
    }

    #[cold]
    fn slide_ties(&mut self, from: usize, to: usize, n: usize) {
        self.slide_column(self.tie_column(), self.tie_width, from, to, n);
    }

    #[inline(always)]
    fn slide_column(&mut self, column: usize, width: u8, from: usize, to: usize, n: usize) {
        let width = usize::from(width);
        let start = column + from * width;
        self.bytes.copy_within(start..start + n * width, column + to * width);
    }

    fn set_capacity(&mut self, capacity: usize) {
        let old = [
            (0, self.score_width),
            (self.time_column(), self.time_width),
            (self.player_column(), 4),
            (self.tie_column(), self.tie_width),
        ];
        let stride = Block::stride(self.score_width, self.time_width, self.tie_width);
        let mut bytes = vec![0; capacity * stride + PADDING].into_boxed_slice();
        let mut column = 0;
        for (from, width) in old {
            let n = self.len() * usize::from(width);
            bytes[column..column + n].copy_from_slice(&self.bytes[from..from + n]);
            column += capacity * usize::from(width);
        }
        self.bytes = bytes;
        self.capacity = capacity as u16;
    }

    /// Replaces the entries of the block by `keys`.
    fn repack(&mut self, keys: &[SortKey]) {
        let (group, index, continues_score) = (self.group, self.index, self.continues_score);
        *self = Block { group, index, continues_score, ..Block::new(keys) };
    }

    /// Removes and returns the entries from index `i` on.
    pub fn split_off(&mut self, i: usize) -> Vec<SortKey> {
        let mut keys: Vec<SortKey> = self.keys().collect();
        let tail = keys.split_off(i);
        self.repack(&keys);
        tail
    }

    /// Appends keys that sort after all keys of the block.
    pub fn append(&mut self, tail: &[SortKey]) {
        let mut keys: Vec<SortKey> = self.keys().collect();
        keys.extend_from_slice(tail);
        self.repack(&keys);
    }

    /// Panics if a derived field differs from the columns.
    #[cfg(test)]
    pub fn check(&self) {
        let keys: Vec<SortKey> = self.keys().collect();
        assert!(keys.is_sorted() && !keys.is_empty());
        assert_eq!(u32::from(self.distinct_scores), self.distinct_scores_before(keys.len()));
        assert!(self.len <= self.capacity && usize::from(self.capacity) <= BLOCK_MAX + 2 * CAPACITY_STEP);
        let stride = Block::stride(self.score_width, self.time_width, self.tie_width);
        assert_eq!(self.bytes.len(), usize::from(self.capacity) * stride + PADDING);
    }
}
