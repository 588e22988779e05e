//! Read operations of a board. Positions are from 1, best first; a position beyond the
//! board has no entry, and a player who is not on it has no position.
//!
//! Costs at 10 million entries are listed in `benches/board.rs`: a position, an entry at a
//! position and the position of a score take less than a microsecond, a page takes as long
//! plus about 5 ns an entry.

use std::ops::{Bound, Range, RangeBounds};

use super::block::SortKey;
use crate::board::cursor::{Cursor, CursorEdge, StaleCursor};
use crate::board::order::Direction;
use crate::board::tree::{Board, Location, PREFETCH_BATCH};
use crate::board::{BoardEntry, Score};
use crate::model::PlayerKey;

/// A player's entry with all positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    pub entry: BoardEntry,
    /// Ordinal position: no two players share one (docs/rules.md section 8).
    pub position: u32,
    /// Competition rank: equal scores share the best position, and the next ones are skipped: 1 2 2 4.
    pub competition: u32,
    /// Dense rank: equal scores share a position, and none is skipped: 1 2 2 3.
    pub dense: u32,
    /// The share of the other players with a worse score, percent: 100 for a best score that
    /// only one player has, 0 for the worst; 100 for the only player.
    pub percentile: f64,
    /// Players on the board.
    pub players: u32,
}

/// Neighbouring entries, the first of them at `position`. If there are none, `position` is
/// where they would begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub position: u32,
    pub entries: Vec<BoardEntry>,
}

/// A page by cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub slice: Slice,
    /// The board has changed since the cursor was created: positions of this page and of
    /// the previous one may not be contiguous.
    pub board_changed: bool,
    /// Before the first entry: for the previous page.
    pub start: Cursor,
    /// After the last entry: for the next page.
    pub end: Cursor,
}

impl Board {
    /// A player's entry: the score and when it was reached.
    pub fn get(&self, player: PlayerKey) -> Option<BoardEntry> {
        self.locate(player).map(|location| self.entry(&self.key_at(location)))
    }

    /// A player's position.
    pub fn position(&self, player: PlayerKey) -> Option<u32> {
        self.locate(player).map(|location| self.entries_before(location) + 1)
    }

    /// Positions of several players, in the given order. Prefetches in batches, so that
    /// most cache misses overlap: prefer it to a loop.
    pub fn positions(&self, players: &[PlayerKey]) -> Vec<Option<u32>> {
        let mut positions = Vec::with_capacity(players.len());
        for chunk in players.chunks(PREFETCH_BATCH) {
            self.prefetch_players(chunk);
            positions.extend(chunk.iter().map(|&player| self.position(player)));
        }
        positions
    }

    /// One more than the players with a better score: 1 2 2 4.
    pub fn competition_rank(&self, player: PlayerKey) -> Option<u32> {
        self.locate(player).map(|location| self.better_count_at(location) + 1)
    }

    /// One more than the number of better scores: 1 2 2 3. Counts the scores of up to 128
    /// neighbours one by one; otherwise it costs as much as a position.
    pub fn dense_rank(&self, player: PlayerKey) -> Option<u32> {
        self.locate(player).map(|location| self.dense_rank_at(location))
    }

    /// A player's entry with all positions.
    pub fn standing(&self, player: PlayerKey) -> Option<Standing> {
        let location = self.locate(player)?;
        let entry = self.entry(&self.key_at(location));
        Some(Standing {
            entry,
            position: self.entries_before(location) + 1,
            competition: self.better_count_at(location) + 1,
            dense: self.dense_rank_at(location),
            percentile: self.percentile_of_score(entry.score()),
            players: self.len(),
        })
    }

    /// The entry at a position.
    pub fn entry_at(&self, position: u32) -> Option<BoardEntry> {
        self.locate_position(position).map(|location| self.entry(&self.key_at(location)))
    }

    /// Up to `count` entries from a position on.
    pub fn page(&self, position: u32, count: u32) -> Slice {
        let position = position.clamp(1, self.len() + 1);
        let count = count.min(self.len() + 1 - position) as usize;
        let mut entries = Vec::with_capacity(count);
        entries.extend(self.iter_from(position).take(count));
        Slice { position, entries }
    }

    /// All entries, best first.
    pub fn iter(&self) -> impl Iterator<Item = BoardEntry> + '_ {
        self.iter_from(1)
    }

    /// `n` entries around a player, including the player's. As many are better as worse; if `n` is
    /// even, one more is worse. At an end of the board, the missing entries are taken from the
    /// other side.
    pub fn around(&self, player: PlayerKey, n: u32) -> Option<Slice> {
        let position = self.position(player)?;
        let n = n.min(self.len());
        let first = position.saturating_sub(n.saturating_sub(1) / 2).max(1);
        Some(self.page(first.min(self.len() + 1 - n), n))
    }

    /// Positions of the players with scores in a range of numbers, independent of the
    /// board's direction: `10..20`, `(Excluded(10), Unbounded)`.
    pub fn positions_with_scores(&self, scores: impl RangeBounds<i64>) -> Range<u32> {
        let (low, high) = (scores.start_bound().cloned(), scores.end_bound().cloned());
        let (best, worst) = match self.direction() {
            Direction::HighIsBetter => (high, low),
            Direction::LowIsBetter => (low, high),
        };
        let start = match best {
            Bound::Unbounded => 0,
            Bound::Included(score) => self.better_count(Score(score)),
            Bound::Excluded(score) => self.at_least_as_good_count(Score(score)),
        };
        let end = match worst {
            Bound::Unbounded => self.len(),
            Bound::Included(score) => self.at_least_as_good_count(Score(score)),
            Bound::Excluded(score) => self.better_count(Score(score)),
        };
        start + 1..end.max(start) + 1
    }

    /// Number of players with a better score than this, which need not be on the board.
    pub fn better_count(&self, score: Score) -> u32 {
        self.entries_before_key(&SortKey::first_of(self.direction().sort_value(score)))
    }

    /// Number of players with this score or a better one.
    pub fn at_least_as_good_count(&self, score: Score) -> u32 {
        match self.direction().sort_value(score).checked_add(1) {
            Some(score) => self.entries_before_key(&SortKey::first_of(score)),
            None => self.len(),
        }
    }

    /// The cursor before the first entry.
    #[cfg(test)]
    pub(in crate::board) fn start_cursor(&self) -> Cursor {
        self.cursor(CursorEdge::Start)
    }

    /// The cursor after the last entry.
    pub fn end_cursor(&self) -> Cursor {
        self.cursor(CursorEdge::End)
    }

    /// The cursor before a position.
    pub fn cursor_at(&self, position: u32) -> Cursor {
        self.entry_at(position).map_or_else(|| self.end_cursor(), |entry| self.cursor(CursorEdge::Before(entry)))
    }

    /// Up to `count` entries after a cursor.
    pub fn page_after(&self, cursor: &Cursor, count: u32) -> Result<Page, StaleCursor> {
        let before = self.entries_before_edge(cursor)?;
        Ok(self.page_of(cursor, before + 1, count))
    }

    /// Up to `count` entries before a cursor, best first.
    pub fn page_before(&self, cursor: &Cursor, count: u32) -> Result<Page, StaleCursor> {
        let before = self.entries_before_edge(cursor)?;
        let count = count.min(before);
        Ok(self.page_of(cursor, before - count + 1, count))
    }

    fn cursor(&self, edge: CursorEdge) -> Cursor {
        Cursor { generation: self.generation, version: self.version, edge }
    }

    fn entries_before_edge(&self, cursor: &Cursor) -> Result<u32, StaleCursor> {
        if cursor.generation != self.generation {
            return Err(StaleCursor { cursor: cursor.generation, board: self.generation });
        }
        Ok(match cursor.edge {
            CursorEdge::Start => 0,
            CursorEdge::Before(entry) => self.entries_before_key(&self.key(&entry)),
            CursorEdge::After(entry) => {
                let key = self.key(&entry);
                let before = self.entries_before_key(&key);
                before + u32::from(self.get(entry.player) == Some(entry))
            }
            CursorEdge::End => self.len(),
        })
    }

    fn page_of(&self, cursor: &Cursor, position: u32, count: u32) -> Page {
        let slice = self.page(position, count);
        Page {
            board_changed: cursor.version != self.version,
            start: self.cursor(slice.entries.first().map_or(cursor.edge, |&entry| CursorEdge::Before(entry))),
            end: self.cursor(slice.entries.last().map_or(cursor.edge, |&entry| CursorEdge::After(entry))),
            slice,
        }
    }

    fn key_at(&self, location: Location) -> SortKey {
        self.blocks[location.block as usize].key(location.index)
    }

    fn entries_before(&self, location: Location) -> u32 {
        let block = &self.blocks[location.block as usize];
        let group = &self.groups[block.group as usize];
        self.root.entries_before(group.index as usize)
            + group.entries_before(block.index as usize)
            + location.index as u32
    }

    pub(super) fn entries_before_key(&self, key: &SortKey) -> u32 {
        if self.is_empty() {
            return 0;
        }
        let block = self.block_of(key);
        self.entries_before(Location { block, index: self.blocks[block as usize].before(key) })
    }

    fn better_count_at(&self, location: Location) -> u32 {
        let block = &self.blocks[location.block as usize];
        let score = block.score(location.index);
        match block.before_score(score) {
            0 if block.continues_score => self.entries_before_key(&SortKey::first_of(score)),
            index => self.entries_before(Location { index, ..location }),
        }
    }

    fn dense_rank_at(&self, location: Location) -> u32 {
        let block = &self.blocks[location.block as usize];
        let group = &self.groups[block.group as usize];
        let before =
            self.root.distinct_scores_before(group.index as usize) + group.distinct_scores_before(block.index as usize);
        before + block.distinct_scores_before(location.index + 1) - u32::from(block.continues_score)
    }

    fn percentile_of_score(&self, score: Score) -> f64 {
        match self.len() {
            1 => 100.0,
            players => f64::from(players - self.at_least_as_good_count(score)) * 100.0 / f64::from(players - 1),
        }
    }

    fn locate_position(&self, position: u32) -> Option<Location> {
        if position == 0 || position > self.len() {
            return None;
        }
        let (index, rest) = self.root.child_at(position - 1);
        let group = &self.groups[self.root.children[index] as usize];
        let (index, rest) = group.child_at(rest);
        Some(Location { block: group.children[index], index: rest as usize })
    }

    fn iter_from(&self, position: u32) -> impl Iterator<Item = BoardEntry> + '_ {
        let first = self.locate_position(position);
        let mut from = first.map_or(0, |location| location.index);
        std::iter::successors(first.map(|location| location.block), |&block| self.next(block)).flat_map(move |block| {
            let block = &self.blocks[block as usize];
            (std::mem::take(&mut from)..block.len()).map(|index| self.entry(&block.key(index)))
        })
    }
}
