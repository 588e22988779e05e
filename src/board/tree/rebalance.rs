//! Splits full blocks and groups of a board, and merges sparse ones.

use super::block::{BLOCK_MAX, Block, SortKey};
use super::node::{Node, NodeCounts};
use super::{Board, GROUP_MAX};

/// A block or group that is filled to less than one part in this many is merged with a
/// neighbour, if the result has space for inserts.
const SPARSE_DIVISOR: usize = 4;

impl Board {
    /// Splits a full block in halves and updates the player index for the new one. Takes a
    /// few us, about once in 64 inserts.
    pub(super) fn split_block(&mut self, id: u32) {
        let tail = self.blocks[id as usize].split_off(BLOCK_MAX / 2);
        let mut block = Block::new(&tail);
        let (group, index) = (self.blocks[id as usize].group, self.blocks[id as usize].index as usize + 1);
        block.continues_score = self.blocks[id as usize].score(BLOCK_MAX / 2 - 1) == tail[0].score;
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
            self.player_index.move_to(key.player, new);
        }
        self.groups[group as usize].insert(index, tail[0], NodeCounts::default(), new);
        self.renumber_blocks(group, index);
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
        self.root.set(index, rest);
        self.root.insert(index + 1, low, total, new);
        self.renumber_groups(index + 1);
        self.renumber_blocks(new, 0);
    }

    /// Updates the group and index of the blocks from child `from` of a group on.
    fn renumber_blocks(&mut self, group: u32, from: usize) {
        for (index, &child) in self.groups[group as usize].children.iter().enumerate().skip(from) {
            let block = &mut self.blocks[child as usize];
            (block.group, block.index) = (group, index as u32);
        }
    }

    /// Updates the index of the groups from `from` on.
    fn renumber_groups(&mut self, from: usize) {
        for (index, &child) in self.root.children.iter().enumerate().skip(from) {
            self.groups[child as usize].index = index as u32;
        }
    }

    /// Drops a block that is empty after a removal, or merges a sparse one with a neighbour.
    pub(super) fn merge_if_sparse(&mut self, id: u32) {
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
            self.player_index.move_to(key.player, left);
        }
        self.recount(left);
        self.drop_block(right);
    }

    /// Removes a block, whose entries were moved, from its group.
    fn drop_block(&mut self, id: u32) {
        if self.is_empty() {
            let emptied = Board::new(self.direction, self.generation);
            *self = Board { version: self.version, ..emptied };
            return;
        }
        let next = self.next(id);
        let (group, index) = (self.blocks[id as usize].group, self.blocks[id as usize].index as usize);
        self.blocks[id as usize] = Block::new(&[]);
        (self.blocks[id as usize].group, self.blocks[id as usize].index) = (group, index as u32);
        self.recount(id);
        self.blocks_free.push(id);
        self.groups[group as usize].remove(index);
        self.renumber_blocks(group, index);
        self.merge_group_if_sparse(group);
        if let Some(next) = next {
            self.update_continues(next);
            self.recount(next);
        }
    }

    /// Drops a group that is empty, or merges a sparse one with a neighbour.
    fn merge_group_if_sparse(&mut self, id: u32) {
        let (len, index) = (self.groups[id as usize].len(), self.groups[id as usize].index as usize);
        if len == 0 {
            return self.drop_group(id);
        }
        if len >= GROUP_MAX / SPARSE_DIVISOR {
            return;
        }
        let children = &self.root.children;
        let has_space = |other: u32| self.groups[other as usize].len() + len <= GROUP_MAX * 3 / 4;
        let before = index.checked_sub(1).map(|before| children[before]).filter(|&g| has_space(g));
        let next = children.get(index + 1).copied().filter(|&g| has_space(g));
        let Some((left, right)) = before.map(|b| (b, id)).or(next.map(|n| (id, n))) else { return };
        let mut tail = std::mem::take(&mut self.groups[right as usize]);
        // Its first child also covers the keys between the group's low key and its own.
        tail.set_low(0, self.root.low(tail.index as usize));
        let from = self.groups[left as usize].len();
        self.groups[left as usize].append(&mut tail);
        self.groups[right as usize].index = tail.index;
        self.renumber_blocks(left, from);
        let group = &self.groups[left as usize];
        self.root.set(group.index as usize, group.total());
        self.drop_group(right);
    }

    fn drop_group(&mut self, id: u32) {
        let index = self.groups[id as usize].index as usize;
        self.groups[id as usize] = Node::default();
        self.groups_free.push(id);
        self.root.remove(index);
        self.renumber_groups(index);
    }
}
