//! A question to a board as a value, and its answer: what the edges send to
//! whoever holds the board. The asking itself is [`crate::board::tree::lookup`]; this adds
//! all three positions to every place and the size of the board to every answer.
//!
//! Scores are raw here and players are keys: units are [`crate::board::score_unit`]'s,
//! names the engine's.

use std::ops::RangeBounds;

use super::{BoardEntry, Score};
use crate::board::score_unit::RawRange;
use crate::board::tree::Set;
use crate::board::tree::lookup::{Cursor, Page, StaleCursor, Standing};
use crate::model::PlayerKey;

/// What a board can be asked. Positions are from 1; a page that begins behind
/// the last place is empty.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    Size,
    /// The best, best first.
    Top {
        count: u32,
    },
    /// The last, last first.
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
    /// See [`FragmentSet::around`].
    Around {
        player: PlayerKey,
        count: u32,
    },
    /// Places with scores in a range, from the `position`-th of them on.
    Range {
        scores: RawRange,
        position: u32,
        count: u32,
    },
    /// How many have scores in a range.
    Count {
        scores: RawRange,
    },
    /// The position that somebody would have who reached such a score now. A
    /// range of scores that are shown alike; empty between two of them.
    PositionFor {
        alike: RawRange,
    },
    Standing {
        player: PlayerKey,
    },
    Positions {
        players: Vec<PlayerKey>,
    },
    /// Behind a cursor.
    After {
        cursor: Cursor,
        count: u32,
    },
    /// In front of a cursor, best first.
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
    /// The size was asked for.
    Size,
    Places(Vec<RankedEntry>),
    /// Some of `count` players whose positions begin with `first`.
    Range {
        first: u32,
        count: u32,
        places: Vec<RankedEntry>,
    },
    Page {
        places: Vec<RankedEntry>,
        /// Of the board, since the cursor was made.
        moved: bool,
        /// For the page before and for the next one.
        start: Cursor,
        end: Cursor,
    },
    /// So many players, whose positions begin with `first`.
    Count {
        first: u32,
        count: u32,
    },
    Position(Ranks),
    /// `None`: the player is not on the board.
    Standing(Option<Standing>),
    /// In the order asked.
    Positions(Vec<Option<RankedEntry>>),
}

/// A place with its position in the three ways of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedEntry {
    pub place: BoardEntry,
    pub positions: Ranks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Every position is held once (RULES section 8).
    pub ordinal: u32,
    /// Equal scores share the best position, and the next lacks: 1 2 2 4.
    pub competition: u32,
    /// Equal scores share a position, and none lacks: 1 2 2 3.
    pub dense: u32,
}

/// Why a question has no answer on this board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("player {0} is not on the board")]
    Absent(PlayerKey),
    #[error(transparent)]
    Stale(#[from] StaleCursor),
}

/// Asks a board.
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
            // By the cursor in front of it, so that it has cursors to go on with.
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

/// Positions of neighbours: of the first by the board's counts, of the others
/// by walking.
fn ranked(set: &Set, position: u32, places: Vec<BoardEntry>) -> Vec<RankedEntry> {
    let Some(first) = places.first() else { return Vec::new() };
    let of_first = set.competition(first.player).zip(set.dense(first.player));
    let (mut competition, mut dense) = of_first.expect("a place of the board is on the board");
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
    // Many at once first: it reads ahead, and what follows finds the memory warm.
    let ordinals = set.positions(players);
    let asked = players.iter().zip(ordinals);
    asked
        .map(|(&player, ordinal)| {
            let positions =
                Ranks { ordinal: ordinal?, competition: set.competition(player)?, dense: set.dense(player)? };
            Some(RankedEntry { place: set.get(player)?, positions })
        })
        .collect()
}

/// Behind all that have such a score; sharing their position, where equal ones do.
fn positions_for(set: &Set, alike: RawRange) -> Ranks {
    let alike = set.range((alike.start_bound().cloned(), alike.end_bound().cloned()));
    // The scores that are better: one more than the dense position of the last of them.
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
