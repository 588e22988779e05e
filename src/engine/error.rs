//! Why a query or a request of an admin failed.

use super::state_reader::ReadError;
use crate::board::cursor::{BadCursor, StaleCursor};
use crate::limits::{BOOSTS_MAX, TAGS_MAX};
use crate::model::ServerUrl;

#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error("server {0} is not known")]
    UnknownServer(String),
    #[error("server {0} was removed: it is no longer scanned or listed")]
    RemovedServer(String),
    #[error("no player is named {0:?}; names are case-sensitive")]
    UnknownPlayer(String),
    #[error("week {week} is not in the state; weeks in the state: {available}")]
    UnknownWeek { week: String, available: String },
    #[error("week {0} has no rows: nobody who is ranked has played in it")]
    EmptyWeek(String),
    #[error("no player has key {0}")]
    UnknownPlayerKey(u32),
    #[error("{name:?} is a name in several games: {games}; select one by its player key")]
    AmbiguousName { name: String, games: String },
    #[error("{name:?} is not on the board {board}")]
    NotOnBoard { name: String, board: String },
    #[error("the boards of {0} are being built; retry in a few seconds")]
    BoardsNotReady(String),
    #[error("window {0} is being rebuilt from the log, because its type is new or its boundaries changed; retry later")]
    Rebuilding(String),
    #[error("no server of game {game:?} was ever seen{}", .nearest.as_ref().map_or_else(String::new, |n| format!("; did you mean {n:?}?")))]
    UnknownGame { game: String, nearest: Option<String> },
    #[error("no server was ever seen with the map {map:?}{}", .nearest.as_ref().map_or_else(String::new, |n| format!("; did you mean {n:?}?")))]
    UnknownMap { map: String, nearest: Option<String> },
    #[error("no server has the tag {tag:?}{}", .nearest.as_ref().map_or_else(String::new, |n| format!("; did you mean {n:?}?")))]
    UnknownTag { tag: String, nearest: Option<String> },
    #[error("there is no window {window:?}{time}; the types are {types}, and `clqd board windows` lists all windows")]
    UnknownWindow { window: String, time: String, types: String },
    #[error("there are no windows of the type {kind}: only {types} configured (boards.windows)")]
    TypeNotConfigured { kind: String, types: String },
    #[error("{0}")]
    BadWindow(String),
    #[error("{0}")]
    BadCursor(BadCursor),
    #[error("{0}")]
    Stale(StaleCursor),
    #[error(transparent)]
    Store(#[from] ReadError),
}

#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error("server {0} is not known; add it with: clqd servers add {0}")]
    UnknownServer(ServerUrl),
    #[error("server {0} was removed; restore it with: clqd servers add {0}")]
    RemovedServer(ServerUrl),
    #[error("there are {0} servers already, which is the maximum")]
    TooManyServers(usize),
    #[error("server {url} would have {tags} tags; the maximum is {TAGS_MAX}")]
    TooManyTags { url: ServerUrl, tags: usize },
    #[error("no server has the tag {tag:?}{}", .nearest.as_ref().map_or_else(String::new, |n| format!("; did you mean {n:?}?")))]
    UnknownTag { tag: String, nearest: Option<String> },
    #[error(
        "server {0} is of class {1}, because it has not answered; only servers of classes 1 to 5 can be boosted. Scan it \
         now with: clqd rescan {0}"
    )]
    NotScheduled(ServerUrl, u8),
    #[error("{BOOSTS_MAX} servers are boosted already, which is the maximum")]
    TooManyBoosts,
    #[error(transparent)]
    Store(#[from] ReadError),
}
