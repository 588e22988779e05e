//! Read operations of a board. Positions are from 1, best first; a position beyond the
//! board has no entry, and a player who is not on it has no position.
//!
//! Costs at 10 million entries are listed in `benches/board.rs`: a position, an entry at a
//! position and the position of a score take less than a microsecond, a page that long plus
//! some 5 ns an entry.

use std::ops::{Bound, Range, RangeBounds};

use super::block::SortKey;
use crate::board::tree::{Direction, Location, PREFETCH_BATCH, Set};
use crate::board::{BoardEntry, Score};
use crate::model::PlayerKey;

/// A player's entry with all positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    pub place: BoardEntry,
    /// Ordinal position: no two players share one (docs/rules.md section 8).
    pub position: u32,
    /// Competition rank: equal scores share the best position, and the next ones are skipped: 1 2 2 4.
    pub competition: u32,
    /// Dense rank: equal scores share a position, and none is skipped: 1 2 2 3.
    pub dense: u32,
    /// See [`Set::percentile`].
    pub percentile: f64,
    /// Players on the board.
    pub players: u32,
}

/// Neighbouring entries, the first of them at `position`. If there are none, `position` is
/// where they would begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub position: u32,
    pub places: Vec<BoardEntry>,
}

/// A position between two entries, identified by a neighbouring entry instead of a number.
/// A client that pages by cursor therefore sees every entry that does not move exactly
/// once, whatever other entries do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Generation of the board; a board of another generation rejects the cursor.
    pub generation: u64,
    /// Version of the board when the cursor was created.
    pub version: u64,
    pub edge: CursorEdge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorEdge {
    Start,
    Before(BoardEntry),
    After(BoardEntry),
    End,
}

/// A page by cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub run: Slice,
    /// The board has changed since the cursor was created: positions of this page and of
    /// the previous one may not be contiguous.
    pub board_changed: bool,
    /// Before the first entry: for the previous page.
    pub start: Cursor,
    /// After the last entry: for the next page.
    pub end: Cursor,
}

/// A cursor of another board than the queried one: of an earlier window, or of this board
/// before it was rebuilt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cursor belongs to another board (generation {cursor}, now {board}): start again from the first page")]
pub struct StaleCursor {
    pub cursor: u64,
    pub board: u64,
}

impl Set {
    /// A player's entry: the score and when it was reached.
    pub fn get(&self, player: PlayerKey) -> Option<BoardEntry> {
        self.spot(player).map(|spot| self.place(&self.key_at(spot)))
    }

    /// A player's position.
    pub fn position(&self, player: PlayerKey) -> Option<u32> {
        self.spot(player).map(|spot| self.places_before(spot) + 1)
    }

    /// Positions of several players, in the given order. Prefetches in batches, so that
    /// most cache misses overlap: prefer it to a loop.
    pub fn positions(&self, players: &[PlayerKey]) -> Vec<Option<u32>> {
        let mut positions = Vec::with_capacity(players.len());
        for chunk in players.chunks(PREFETCH_BATCH) {
            self.read_ahead(chunk.iter().copied());
            positions.extend(chunk.iter().map(|&player| self.position(player)));
        }
        positions
    }

    /// One more than the players with a better score: 1 2 2 4.
    pub fn competition(&self, player: PlayerKey) -> Option<u32> {
        self.spot(player).map(|spot| self.better_entries(spot) + 1)
    }

    /// One more than the number of better scores: 1 2 2 3. Counts the scores of up to 128
    /// neighbours one by one; otherwise it costs as much as a position.
    pub fn dense(&self, player: PlayerKey) -> Option<u32> {
        self.spot(player).map(|spot| self.dense_at(spot))
    }

    /// A player's entry with all positions.
    pub fn standing(&self, player: PlayerKey) -> Option<Standing> {
        let spot = self.spot(player)?;
        let place = self.place(&self.key_at(spot));
        Some(Standing {
            place,
            position: self.places_before(spot) + 1,
            competition: self.better_entries(spot) + 1,
            dense: self.dense_at(spot),
            percentile: self.percentile_of_score(place.score()),
            players: self.len(),
        })
    }

    /// The share of the other players with a worse score, percent: 100 for a best score
    /// that only one player has, 0 for the worst; 100 for the only player.
    pub fn percentile(&self, player: PlayerKey) -> Option<f64> {
        self.get(player).map(|place| self.percentile_of_score(place.score()))
    }

    /// Number of distinct scores on the board.
    pub fn distinct_score_count(&self) -> u32 {
        self.top.starts_before(self.top.len())
    }

    /// The entry at a position.
    pub fn at(&self, position: u32) -> Option<BoardEntry> {
        self.spot_at(position).map(|spot| self.place(&self.key_at(spot)))
    }

    /// The best `k`, best first.
    pub fn top(&self, k: u32) -> Vec<BoardEntry> {
        self.page(1, k).places
    }

    /// The last `k`, last first.
    pub fn bottom(&self, k: u32) -> Vec<BoardEntry> {
        let k = k.min(self.len());
        let mut places = self.page(self.len() - k + 1, k).places;
        places.reverse();
        places
    }

    /// Up to `count` entries from a position on.
    pub fn page(&self, position: u32, count: u32) -> Slice {
        let position = position.clamp(1, self.len() + 1);
        let count = count.min(self.len() + 1 - position) as usize;
        let mut places = Vec::with_capacity(count);
        places.extend(self.iter_from(position).take(count));
        Slice { position, places }
    }

    /// All entries, best first.
    pub fn iter(&self) -> impl Iterator<Item = BoardEntry> + '_ {
        self.iter_from(1)
    }

    /// `n` entries around a player, including the player's: as many better as worse ones,
    /// one more worse one if `n` is even. At an end of the board the missing ones are taken
    /// from the other side.
    pub fn around(&self, player: PlayerKey, n: u32) -> Option<Slice> {
        let position = self.position(player)?;
        let n = n.min(self.len());
        let first = position.saturating_sub(n.saturating_sub(1) / 2).max(1);
        Some(self.page(first.min(self.len() + 1 - n), n))
    }

    /// Positions of the players with scores in a range of numbers, independent of the
    /// board's direction: `10..20`, `(Excluded(10), Unbounded)`.
    pub fn range(&self, scores: impl RangeBounds<i64>) -> Range<u32> {
        let (low, high) = (scores.start_bound().cloned(), scores.end_bound().cloned());
        let (best, worst) = match self.direction() {
            Direction::HighIsBetter => (high, low),
            Direction::LowIsBetter => (low, high),
        };
        let start = match best {
            Bound::Unbounded => 0,
            Bound::Included(score) => self.better(Score(score)),
            Bound::Excluded(score) => self.as_good(Score(score)),
        };
        let end = match worst {
            Bound::Unbounded => self.len(),
            Bound::Included(score) => self.as_good(Score(score)),
            Bound::Excluded(score) => self.better(Score(score)),
        };
        start + 1..end.max(start) + 1
    }

    /// Number of players with scores in a range.
    pub fn count_in_range(&self, scores: impl RangeBounds<i64>) -> u32 {
        self.range(scores).len() as u32
    }

    /// Number of players with a better score than this, which need not be on the board.
    pub fn better(&self, score: Score) -> u32 {
        self.places_before_key(&SortKey::first_of(self.direction().sort_value(score)))
    }

    /// Number of players with this score or a better one.
    pub fn as_good(&self, score: Score) -> u32 {
        match self.direction().sort_value(score).checked_add(1) {
            Some(score) => self.places_before_key(&SortKey::first_of(score)),
            None => self.len(),
        }
    }

    /// The position of a new player who reaches a score now: after all players with that
    /// score.
    pub fn position_for(&self, score: Score) -> u32 {
        self.as_good(score) + 1
    }

    /// The position that an entry has or would have.
    pub fn position_of(&self, place: &BoardEntry) -> u32 {
        self.places_before_key(&self.key(place)) + 1
    }

    /// The cursor before the first entry.
    pub fn start(&self) -> Cursor {
        self.cursor(CursorEdge::Start)
    }

    /// The cursor after the last entry.
    pub fn end(&self) -> Cursor {
        self.cursor(CursorEdge::End)
    }

    /// The cursor before a position.
    pub fn cursor_at(&self, position: u32) -> Cursor {
        self.at(position).map_or_else(|| self.end(), |place| self.cursor(CursorEdge::Before(place)))
    }

    /// Up to `count` entries after a cursor.
    pub fn page_after(&self, cursor: &Cursor, count: u32) -> Result<Page, StaleCursor> {
        let before = self.places_before_edge(cursor)?;
        Ok(self.page_of(cursor, before + 1, count))
    }

    /// Up to `count` entries before a cursor, best first.
    pub fn page_before(&self, cursor: &Cursor, count: u32) -> Result<Page, StaleCursor> {
        let before = self.places_before_edge(cursor)?;
        let count = count.min(before);
        Ok(self.page_of(cursor, before - count + 1, count))
    }

    fn cursor(&self, edge: CursorEdge) -> Cursor {
        Cursor { generation: self.generation, version: self.version, edge }
    }

    fn places_before_edge(&self, cursor: &Cursor) -> Result<u32, StaleCursor> {
        if cursor.generation != self.generation {
            return Err(StaleCursor { cursor: cursor.generation, board: self.generation });
        }
        Ok(match cursor.edge {
            CursorEdge::Start => 0,
            CursorEdge::Before(place) => self.places_before_key(&self.key(&place)),
            CursorEdge::After(place) => {
                let key = self.key(&place);
                let before = self.places_before_key(&key);
                before + u32::from(self.get(place.player) == Some(place))
            }
            CursorEdge::End => self.len(),
        })
    }

    fn page_of(&self, cursor: &Cursor, position: u32, count: u32) -> Page {
        let run = self.page(position, count);
        Page {
            board_changed: cursor.version != self.version,
            start: self.cursor(run.places.first().map_or(cursor.edge, |&place| CursorEdge::Before(place))),
            end: self.cursor(run.places.last().map_or(cursor.edge, |&place| CursorEdge::After(place))),
            run,
        }
    }

    fn key_at(&self, spot: Location) -> SortKey {
        self.blocks[spot.block as usize].key(spot.index)
    }

    fn places_before(&self, spot: Location) -> u32 {
        let block = &self.blocks[spot.block as usize];
        let group = &self.groups[block.group as usize];
        self.top.places_before(group.index as usize) + group.places_before(block.index as usize) + spot.index as u32
    }

    fn places_before_key(&self, key: &SortKey) -> u32 {
        if self.is_empty() {
            return 0;
        }
        let block = self.block_of(key);
        self.places_before(Location { block, index: self.blocks[block as usize].before(key) })
    }

    fn better_entries(&self, spot: Location) -> u32 {
        let block = &self.blocks[spot.block as usize];
        let score = block.score(spot.index);
        match block.before_score(score) {
            0 if block.joined => self.places_before_key(&SortKey::first_of(score)),
            index => self.places_before(Location { index, ..spot }),
        }
    }

    fn dense_at(&self, spot: Location) -> u32 {
        let block = &self.blocks[spot.block as usize];
        let group = &self.groups[block.group as usize];
        let before = self.top.starts_before(group.index as usize) + group.starts_before(block.index as usize);
        before + block.kinds_before(spot.index + 1) - u32::from(block.joined)
    }

    fn percentile_of_score(&self, score: Score) -> f64 {
        match self.len() {
            1 => 100.0,
            players => f64::from(players - self.as_good(score)) * 100.0 / f64::from(players - 1),
        }
    }

    fn spot_at(&self, position: u32) -> Option<Location> {
        if position == 0 || position > self.len() {
            return None;
        }
        let (index, rest) = self.top.child_at(position - 1);
        let group = &self.groups[self.top.children[index] as usize];
        let (index, rest) = group.child_at(rest);
        Some(Location { block: group.children[index], index: rest as usize })
    }

    fn iter_from(&self, position: u32) -> impl Iterator<Item = BoardEntry> + '_ {
        let first = self.spot_at(position);
        let mut from = first.map_or(0, |spot| spot.index);
        std::iter::successors(first.map(|spot| spot.block), |&block| self.next(block)).flat_map(move |block| {
            let block = &self.blocks[block as usize];
            (std::mem::take(&mut from)..block.len()).map(|index| self.place(&block.key(index)))
        })
    }
}
