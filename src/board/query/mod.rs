//! A query of a board as a value, and its result. The engine owns the boards and runs the
//! queries of the API. [`crate::board::tree::lookup`] has the read operations. This module
//! adds the size of the board to every result and all three ranks to the entries.
//!
//! Scores are raw numbers and players are keys. [`crate::board::score_unit`] converts scores
//! to display units. The engine resolves player names.

use super::BoardEntry;
use crate::board::Board;
use crate::board::cursor::{Cursor, StaleCursor};
use crate::board::score_unit::RawRange;
use crate::board::tree::lookup::{Page, Standing};
use crate::model::PlayerKey;

/// A query of a board. The first position is 1. A page that begins after the last entry is
/// empty. `count` is the maximum number of entries in the result.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// The number of players on the board.
    Size,
    /// The best entries, best first.
    Top { count: u32 },
    /// The last entries, last first.
    Bottom { count: u32 },
    /// The entries from a position on, with cursors for the neighbouring pages.
    Page { position: u32, count: u32 },
    /// The entry at a position.
    At { position: u32 },
    /// The entries around a player, including the player's ([`Board::around`]).
    Around { player: PlayerKey, count: u32 },
    /// Entries with scores in a range. `start` is the position of the first returned entry among
    /// these entries, not on the board.
    Range { scores: RawRange, start: u32, count: u32 },
    /// The number of entries with scores in a range.
    Count { scores: RawRange },
    /// The ranks that a new player would have with a given displayed score. `scores` is the
    /// range of raw scores with that displayed score. It is empty if no raw score has it.
    PositionFor { scores: RawRange },
    /// A player's entry with all ranks and the percentile.
    Standing { player: PlayerKey },
    /// The entries of several players.
    Positions { players: Vec<PlayerKey> },
    /// The entries after a cursor, best first.
    After { cursor: Cursor, count: u32 },
    /// The entries before a cursor, best first.
    Before { cursor: Cursor, count: u32 },
}

#[derive(Clone, Debug, PartialEq)]
pub struct QueryResult {
    /// Players on the board.
    pub size: u32,
    pub data: QueryData,
}

/// The part of a result that depends on the query.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryData {
    /// The result of [`Query::Size`]. The size is [`QueryResult::size`].
    Size,
    /// The result of [`Query::Top`], `Bottom`, `At` and `Around`.
    Entries(Vec<RankedEntry>),
    /// `count` players have scores in the range, and `first` is the position of the best of
    /// them. `entries` are the requested entries of these players.
    Range { first: u32, count: u32, entries: Vec<RankedEntry> },
    /// The result of [`Query::Page`], `After` and `Before`.
    Page {
        entries: Vec<RankedEntry>,
        /// Whether the board has changed since the cursor of the query was created.
        board_changed: bool,
        /// The cursor before the first entry, for the previous page.
        start: Cursor,
        /// The cursor after the last entry, for the next page.
        end: Cursor,
    },
    /// `count` players have scores in the range, and `first` is the position of the best of
    /// them.
    Count { first: u32, count: u32 },
    /// The result of [`Query::PositionFor`].
    Position(Ranks),
    /// `None`: the player is not on the board.
    Standing(Option<Standing>),
    /// In the order of the players in the query. `None`: the player is not on the board.
    Positions(Vec<Option<RankedEntry>>),
}

/// An entry with its three ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedEntry {
    pub entry: BoardEntry,
    pub ranks: Ranks,
}

/// The three ranks of an entry. They differ only in how they number equal scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Ordinal position: no two players share one (docs/rules.md section 8).
    pub ordinal: u32,
    /// Competition rank: equal scores share the best position, and the next ones are
    /// skipped: 1 2 2 4.
    pub competition: u32,
    /// Dense rank: equal scores share a position, and none is skipped: 1 2 2 3.
    pub dense: u32,
}

/// Errors of a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("player {0} is not on the board")]
    Absent(PlayerKey),
    #[error(transparent)]
    Stale(#[from] StaleCursor),
}

/// Runs a query on a board.
pub fn run(board: &Board, query: &Query) -> Result<QueryResult, QueryError> {
    let data = match *query {
        Query::Size => QueryData::Size,
        Query::Top { count } => QueryData::Entries(ranked_page(board, 1, count)),
        Query::Bottom { count } => {
            let count = count.min(board.len());
            let mut entries = ranked_page(board, board.len() - count + 1, count);
            entries.reverse();
            QueryData::Entries(entries)
        }
        Query::Page { position, count } => {
            // Reads from the cursor before `position`: the result of `page_after` contains
            // the cursors of the neighbouring pages.
            let page = board.page_after(&board.cursor_at(position.max(1)), count)?;
            page_data(board, page)
        }
        Query::At { position } => {
            let count = u32::from(board.entry_at(position).is_some());
            QueryData::Entries(ranked_page(board, position, count))
        }
        Query::Around { player, count } => {
            let slice = board.around(player, count).ok_or(QueryError::Absent(player))?;
            QueryData::Entries(ranked(board, slice.position, slice.entries))
        }
        Query::Range { scores, start, count } => {
            let within = board.positions_with_scores(scores);
            let from = within.start.saturating_add(start.max(1) - 1).min(within.end);
            let entries = ranked_page(board, from, count.min(within.end - from));
            QueryData::Range { first: within.start, count: within.len() as u32, entries }
        }
        Query::Count { scores } => {
            let within = board.positions_with_scores(scores);
            QueryData::Count { first: within.start, count: within.len() as u32 }
        }
        Query::PositionFor { scores } => QueryData::Position(ranks_for_scores(board, scores)),
        Query::Standing { player } => QueryData::Standing(board.standing(player)),
        Query::Positions { ref players } => QueryData::Positions(entries_of_players(board, players)),
        Query::After { cursor, count } => page_data(board, board.page_after(&cursor, count)?),
        Query::Before { cursor, count } => page_data(board, board.page_before(&cursor, count)?),
    };
    Ok(QueryResult { size: board.len(), data })
}

fn page_data(board: &Board, page: Page) -> QueryData {
    let Page { slice, board_changed, start, end } = page;
    QueryData::Page { entries: ranked(board, slice.position, slice.entries), board_changed, start, end }
}

fn ranked_page(board: &Board, position: u32, count: u32) -> Vec<RankedEntry> {
    let slice = board.page(position, count);
    ranked(board, slice.position, slice.entries)
}

/// Adds ranks to consecutive entries, the first of which is at `position`. Looks up the ranks
/// of the first entry on the board and derives the ranks of the others from it.
fn ranked(board: &Board, position: u32, entries: Vec<BoardEntry>) -> Vec<RankedEntry> {
    let Some(first) = entries.first() else { return Vec::new() };
    let first_ranks = board.competition_rank(first.player).zip(board.dense_rank(first.player));
    let (mut competition, mut dense) = first_ranks.expect("the entry is on the board");
    let mut score = first.score();
    let numbered = (position..).zip(entries);
    numbered
        .map(|(ordinal, entry)| {
            if entry.score() != score {
                (score, competition, dense) = (entry.score(), ordinal, dense + 1);
            }
            RankedEntry { entry, ranks: Ranks { ordinal, competition, dense } }
        })
        .collect()
}

fn entries_of_players(board: &Board, players: &[PlayerKey]) -> Vec<Option<RankedEntry>> {
    // `positions` prefetches in batches, so the lookups of the other ranks find the memory in
    // the CPU cache.
    let ordinals = board.positions(players);
    let with_ordinals = players.iter().zip(ordinals);
    with_ordinals
        .map(|(&player, ordinal)| {
            let ranks = Ranks {
                ordinal: ordinal?,
                competition: board.competition_rank(player)?,
                dense: board.dense_rank(player)?,
            };
            Some(RankedEntry { entry: board.get(player)?, ranks })
        })
        .collect()
}

/// The ranks of a new player whose score is in `scores`. The ordinal position is after all
/// players with such a score. The competition and dense ranks equal theirs, if there are any.
fn ranks_for_scores(board: &Board, scores: RawRange) -> Ranks {
    let positions = board.positions_with_scores(scores);
    // The number of distinct better scores is the dense rank of the last better entry.
    let last_better = positions.start - 1;
    let dense = board.entry_at(last_better).and_then(|entry| board.dense_rank(entry.player));
    Ranks { ordinal: positions.end, competition: positions.start, dense: dense.map_or(1, |dense| dense + 1) }
}

#[cfg(test)]
mod tests;
