//! A query of a board as a value, and its result: what the API sends to the owner of the
//! board. [`crate::board::tree::lookup`] has the read operations; this module adds all
//! three ranks to every entry and the size of the board to every result.
//!
//! Scores are raw and players are keys: [`crate::board::score_unit`] converts units, the
//! engine resolves names.

use std::ops::RangeBounds;

use super::{BoardEntry, Score};
use crate::board::score_unit::RawRange;
use crate::board::tree::Set;
use crate::board::tree::lookup::{Cursor, Page, StaleCursor, Standing};
use crate::model::PlayerKey;

/// A query of a board. Positions are from 1; a page that begins after the last entry is
/// empty.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    Size,
    /// The best entries, best first.
    Top {
        count: u32,
    },
    /// The last entries, last first.
    Bottom {
        count: u32,
    },
    Page {
        position: u32,
        count: u32,
    },
    At {
        position: u32,
    },
    /// See [`Set::around`].
    Around {
        player: PlayerKey,
        count: u32,
    },
    /// Entries with scores in a range, from the `position`-th of them on.
    Range {
        scores: RawRange,
        position: u32,
        count: u32,
    },
    /// The number of entries with scores in a range.
    Count {
        scores: RawRange,
    },
    /// The position of a new player who reaches such a score now. `alike`: the range of raw
    /// scores with the same displayed score; empty if the displayed score lies between two.
    PositionFor {
        alike: RawRange,
    },
    Standing {
        player: PlayerKey,
    },
    Positions {
        players: Vec<PlayerKey>,
    },
    /// The entries after a cursor.
    After {
        cursor: Cursor,
        count: u32,
    },
    /// The entries before a cursor, best first.
    Before {
        cursor: Cursor,
        count: u32,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct QueryResult {
    /// Players on the board.
    pub size: u32,
    pub found: QueryData,
}

#[derive(Clone, Debug, PartialEq)]
pub enum QueryData {
    /// The result of [`Question::Size`].
    Size,
    Places(Vec<RankedEntry>),
    /// A page of `count` players whose positions begin with `first`.
    Range {
        first: u32,
        count: u32,
        places: Vec<RankedEntry>,
    },
    Page {
        places: Vec<RankedEntry>,
        /// Whether the board has changed since the cursor was created.
        moved: bool,
        /// For the previous page and for the next one.
        start: Cursor,
        end: Cursor,
    },
    /// The number of players, whose positions begin with `first`.
    Count {
        first: u32,
        count: u32,
    },
    Position(Ranks),
    /// `None`: the player is not on the board.
    Standing(Option<Standing>),
    /// In the order of the query.
    Positions(Vec<Option<RankedEntry>>),
}

/// An entry with its position in the three ways of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedEntry {
    pub place: BoardEntry,
    pub positions: Ranks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Ordinal position: no two players share one (docs/rules.md section 8).
    pub ordinal: u32,
    /// Competition rank: equal scores share the best position, and the next ones are skipped: 1 2 2 4.
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
            // Read by the cursor before it, so that the result has cursors for further
            // pages.
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
        Question::Range { scores, position, count } => {
            let within = set.range(scores);
            let from = within.start.saturating_add(position.max(1) - 1).min(within.end);
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
    let Page { run, moved, start, end } = page;
    QueryData::Page { places: ranked(set, run.position, run.places), moved, start, end }
}

fn ranked_page(set: &Set, position: u32, count: u32) -> Vec<RankedEntry> {
    let run = set.page(position, count);
    ranked(set, run.position, run.places)
}

/// Adds ranks to neighbouring entries: those of the first by the board's counts, those of
/// the others by counting on.
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
    // First all ordinals at once, which prefetches; the next lookups then find the memory
    // in the cache.
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

/// The ordinal after all players with such a score; competition and dense rank equal to
/// theirs, if there are any.
fn positions_for(set: &Set, alike: RawRange) -> Ranks {
    let alike = set.range((alike.start_bound().cloned(), alike.end_bound().cloned()));
    // The number of better scores is the dense rank of the last better entry.
    let better = alike.start - 1;
    let dense = set.at(better).and_then(|place| set.dense(place.player));
    Ranks { ordinal: alike.end, competition: alike.start, dense: dense.map_or(1, |dense| dense + 1) }
}

impl Question {
    /// The position of one raw score.
    pub fn position_for(score: Score) -> Question {
        let score = std::ops::Bound::Included(score.0);
        Question::PositionFor { alike: (score, score) }
    }
}

#[cfg(test)]
mod tests;
