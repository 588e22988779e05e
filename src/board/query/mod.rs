//! A query of a board as a value, and its result. The engine owns the boards and runs the
//! queries of the API. [`crate::board::tree::lookup`] has the read operations. This module
//! adds the size of the board to every result and all three ranks to the entries.
//!
//! Scores are raw numbers and players are keys. [`crate::board::score_unit`] converts scores
//! to display units. The engine resolves player names.

use std::ops::RangeBounds;

use super::{BoardEntry, Score};
use crate::board::score_unit::RawRange;
use crate::board::tree::Set;
use crate::board::tree::lookup::{Cursor, Page, StaleCursor, Standing};
use crate::model::PlayerKey;

/// A query of a board. The first position is 1. A page that begins after the last entry is
/// empty. `count` is the maximum number of entries in the result.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
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
    /// The entries around a player, including the player's ([`Set::around`]).
    Around { player: PlayerKey, count: u32 },
    /// Entries with scores in a range. `start` is the position of the first returned entry among
    /// these entries, not on the board.
    Range { scores: RawRange, start: u32, count: u32 },
    /// The number of entries with scores in a range.
    Count { scores: RawRange },
    /// The position that a new player would have with a given displayed score. `alike` is the
    /// range of raw scores with that displayed score. It is empty if no raw score has it.
    PositionFor { alike: RawRange },
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
    pub found: QueryData,
}

/// The part of a result that depends on the query.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryData {
    /// The result of [`Question::Size`]. The size is [`QueryResult::size`].
    Size,
    /// The result of [`Question::Top`], `Bottom`, `At` and `Around`.
    Places(Vec<RankedEntry>),
    /// `count` players have scores in the range, and `first` is the position of the best of
    /// them. `places` are the requested entries of these players.
    Range { first: u32, count: u32, places: Vec<RankedEntry> },
    /// The result of [`Question::Page`], `After` and `Before`.
    Page {
        places: Vec<RankedEntry>,
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
    /// The result of [`Question::PositionFor`].
    Position(Ranks),
    /// `None`: the player is not on the board.
    Standing(Option<Standing>),
    /// In the order of the players in the query. `None`: the player is not on the board.
    Positions(Vec<Option<RankedEntry>>),
}

/// An entry with its three ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedEntry {
    pub place: BoardEntry,
    pub positions: Ranks,
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
pub fn run(set: &Set, question: &Question) -> Result<QueryResult, QueryError> {
    let found = match *question {
        Question::Size => QueryData::Size,
        Question::Top { count } => QueryData::Places(ranked_page(set, 1, count)),
        Question::Bottom { count } => {
            let count = count.min(set.len());
            let mut places = ranked_page(set, set.len() - count + 1, count);
            places.reverse();
            QueryData::Places(places)
        }
        Question::Page { position, count } => {
            // Reads from the cursor before `position`: the result of `page_after` contains
            // the cursors of the neighbouring pages.
            let page = set.page_after(&set.cursor_at(position.max(1)), count)?;
            found_page(set, page)
        }
        Question::At { position } => {
            let count = u32::from(set.at(position).is_some());
            QueryData::Places(ranked_page(set, position, count))
        }
        Question::Around { player, count } => {
            let run = set.around(player, count).ok_or(QueryError::Absent(player))?;
            QueryData::Places(ranked(set, run.position, run.places))
        }
        Question::Range { scores, start, count } => {
            let within = set.range(scores);
            let from = within.start.saturating_add(start.max(1) - 1).min(within.end);
            let places = ranked_page(set, from, count.min(within.end - from));
            QueryData::Range { first: within.start, count: within.len() as u32, places }
        }
        Question::Count { scores } => {
            let within = set.range(scores);
            QueryData::Count { first: within.start, count: within.len() as u32 }
        }
        Question::PositionFor { alike } => QueryData::Position(positions_for(set, alike)),
        Question::Standing { player } => QueryData::Standing(set.standing(player)),
        Question::Positions { ref players } => QueryData::Positions(of_players(set, players)),
        Question::After { cursor, count } => found_page(set, set.page_after(&cursor, count)?),
        Question::Before { cursor, count } => found_page(set, set.page_before(&cursor, count)?),
    };
    Ok(QueryResult { size: set.len(), found })
}

fn found_page(set: &Set, page: Page) -> QueryData {
    let Page { run, board_changed, start, end } = page;
    QueryData::Page { places: ranked(set, run.position, run.places), board_changed, start, end }
}

fn ranked_page(set: &Set, position: u32, count: u32) -> Vec<RankedEntry> {
    let run = set.page(position, count);
    ranked(set, run.position, run.places)
}

/// Adds ranks to consecutive entries, the first of which is at `position`. Looks up the ranks
/// of the first entry on the board and derives the ranks of the others from it.
fn ranked(set: &Set, position: u32, places: Vec<BoardEntry>) -> Vec<RankedEntry> {
    let Some(first) = places.first() else { return Vec::new() };
    let first_ranks = set.competition(first.player).zip(set.dense(first.player));
    let (mut competition, mut dense) = first_ranks.expect("the entry is on the board");
    let mut score = first.score();
    let numbered = (position..).zip(places);
    numbered
        .map(|(ordinal, place)| {
            if place.score() != score {
                (score, competition, dense) = (place.score(), ordinal, dense + 1);
            }
            RankedEntry { place, positions: Ranks { ordinal, competition, dense } }
        })
        .collect()
}

fn of_players(set: &Set, players: &[PlayerKey]) -> Vec<Option<RankedEntry>> {
    // `positions` prefetches in batches, so the lookups of the other ranks find the memory in
    // the CPU cache.
    let ordinals = set.positions(players);
    let with_ordinals = players.iter().zip(ordinals);
    with_ordinals
        .map(|(&player, ordinal)| {
            let positions =
                Ranks { ordinal: ordinal?, competition: set.competition(player)?, dense: set.dense(player)? };
            Some(RankedEntry { place: set.get(player)?, positions })
        })
        .collect()
}

/// The ranks of a new player whose score is in `alike`. The ordinal position is after all
/// players with such a score. The competition and dense ranks equal theirs, if there are any.
fn positions_for(set: &Set, alike: RawRange) -> Ranks {
    let positions = set.range((alike.start_bound().cloned(), alike.end_bound().cloned()));
    // The number of distinct better scores is the dense rank of the last better entry.
    let last_better = positions.start - 1;
    let dense = set.at(last_better).and_then(|place| set.dense(place.player));
    Ranks { ordinal: positions.end, competition: positions.start, dense: dense.map_or(1, |dense| dense + 1) }
}

impl Question {
    /// The query for the position that a new player would have with a raw score.
    pub fn position_for(score: Score) -> Question {
        let score = std::ops::Bound::Included(score.0);
        Question::PositionFor { alike: (score, score) }
    }
}

#[cfg(test)]
mod tests;
