//! A node of the two levels above the blocks of a board: children in order, each with the
//! lowest key it may have, its number of entries, and its number of scores.
//!
//! Stored in columns, so that a search reads only scores and a position adds up only
//! counts: a sum of some hundred neighbouring numbers is a few dozen instructions, and a
//! change of a count is one.

use super::block::SortKey;

/// Counts of a part of a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeCounts {
    pub entries: u32,
    /// Number of distinct scores, counted as entries at which a new score starts.
    pub distinct_scores: u32,
}

/// A node (see the [module documentation](self)).
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    scores: Vec<u64>,
    /// Empty while all are 0: on a board without a tie-breaker it takes no memory.
    ties: Vec<u64>,
    times: Vec<u64>,
    players: Vec<u32>,
    entries: Vec<u32>,
    distinct_scores: Vec<u32>,
    pub children: Vec<u32>,
    /// Index of this node among its parent's children.
    pub index: u32,
}

impl Node {
    pub fn len(&self) -> usize {
        self.children.len()
    }

    pub fn low(&self, i: usize) -> SortKey {
        SortKey { score: self.scores[i], tie: self.tie(i), time: self.times[i], player: self.players[i] }
    }

    #[inline]
    fn tie(&self, i: usize) -> u64 {
        self.ties.get(i).copied().unwrap_or(0)
    }

    /// Allocates the column of ties, for ties other than 0.
    fn allocate_tie_breaks(&mut self) {
        self.ties.resize(self.len(), 0);
    }

    pub fn set_low(&mut self, i: usize, low: SortKey) {
        (self.scores[i], self.times[i], self.players[i]) = (low.score, low.time, low.player);
        if low.tie != self.tie(i) {
            self.allocate_tie_breaks();
            self.ties[i] = low.tie;
        }
    }

    /// The child that a key belongs to; the first one also for a key that sorts before all.
    #[inline]
    pub fn child_of(&self, key: &SortKey) -> usize {
        let mut upto = self.scores.partition_point(|&score| score <= key.score);
        if upto > 0 && self.scores[upto - 1] == key.score {
            let from = self.scores[..upto].partition_point(|&score| score < key.score);
            // Among children that begin with the same score, the rest of the key decides.
            let (mut size, mut base) = (upto - from, from);
            while size > 0 {
                let mid = base + size / 2;
                match (self.tie(mid), self.times[mid], self.players[mid]) <= (key.tie, key.time, key.player) {
                    true => (base, size) = (mid + 1, size - size / 2 - 1),
                    false => size /= 2,
                }
            }
            upto = base;
        }
        upto.saturating_sub(1)
    }

    #[cfg(test)]
    pub fn counts(&self, i: usize) -> NodeCounts {
        NodeCounts { entries: self.entries[i], distinct_scores: self.distinct_scores[i] }
    }

    /// Number of entries in the children before `i`.
    #[inline]
    pub fn entries_before(&self, i: usize) -> u32 {
        self.entries[..i].iter().sum()
    }

    #[inline]
    pub fn distinct_scores_before(&self, i: usize) -> u32 {
        self.distinct_scores[..i].iter().sum()
    }

    pub fn total(&self) -> NodeCounts {
        NodeCounts { entries: self.entries.iter().sum(), distinct_scores: self.distinct_scores.iter().sum() }
    }

    /// The child that has entry `n` (from 0), and the entry's index in it.
    #[inline]
    pub fn child_at(&self, n: u32) -> (usize, u32) {
        let mut rest = n;
        let mut first = 0;
        for eight in self.entries.chunks_exact(8) {
            let sum: u32 = eight.iter().sum();
            if rest < sum {
                break;
            }
            rest -= sum;
            first += 8;
        }
        for (i, &entries) in self.entries[first..].iter().enumerate() {
            if rest < entries {
                return (first + i, rest);
            }
            rest -= entries;
        }
        unreachable!("entry {n} of {}", self.total().entries)
    }

    /// Sets the counts of a child; returns the previous ones.
    #[inline]
    pub fn set(&mut self, i: usize, counts: NodeCounts) -> NodeCounts {
        let before = NodeCounts { entries: self.entries[i], distinct_scores: self.distinct_scores[i] };
        (self.entries[i], self.distinct_scores[i]) = (counts.entries, counts.distinct_scores);
        before
    }

    /// Updates the counts of a child after those of a grandchild changed from `from` to
    /// `to`.
    #[inline]
    pub fn add_delta(&mut self, i: usize, from: NodeCounts, to: NodeCounts) {
        self.entries[i] = self.entries[i] + to.entries - from.entries;
        self.distinct_scores[i] = self.distinct_scores[i] + to.distinct_scores - from.distinct_scores;
    }

    pub fn insert(&mut self, i: usize, low: SortKey, counts: NodeCounts, child: u32) {
        if low.tie != 0 || !self.ties.is_empty() {
            self.allocate_tie_breaks();
            self.ties.insert(i, low.tie);
        }
        self.scores.insert(i, low.score);
        self.times.insert(i, low.time);
        self.players.insert(i, low.player);
        self.entries.insert(i, counts.entries);
        self.distinct_scores.insert(i, counts.distinct_scores);
        self.children.insert(i, child);
    }

    pub fn remove(&mut self, i: usize) {
        self.scores.remove(i);
        if !self.ties.is_empty() {
            self.ties.remove(i);
        }
        self.times.remove(i);
        self.players.remove(i);
        self.entries.remove(i);
        self.distinct_scores.remove(i);
        self.children.remove(i);
    }

    pub fn split_off(&mut self, i: usize) -> Node {
        Node {
            scores: self.scores.split_off(i),
            ties: self.ties.split_off(i.min(self.ties.len())),
            times: self.times.split_off(i),
            players: self.players.split_off(i),
            entries: self.entries.split_off(i),
            distinct_scores: self.distinct_scores.split_off(i),
            children: self.children.split_off(i),
            index: 0,
        }
    }

    pub fn append(&mut self, tail: &mut Node) {
        if !(self.ties.is_empty() && tail.ties.is_empty()) {
            self.allocate_tie_breaks();
            tail.allocate_tie_breaks();
            self.ties.append(&mut tail.ties);
        }
        self.scores.append(&mut tail.scores);
        self.times.append(&mut tail.times);
        self.players.append(&mut tail.players);
        self.entries.append(&mut tail.entries);
        self.distinct_scores.append(&mut tail.distinct_scores);
        self.children.append(&mut tail.children);
    }

    pub fn heap_bytes(&self) -> usize {
        8 * (self.scores.capacity() + self.ties.capacity() + self.times.capacity())
            + 4 * (self.players.capacity()
                + self.entries.capacity()
                + self.distinct_scores.capacity()
                + self.children.capacity())
    }
}
