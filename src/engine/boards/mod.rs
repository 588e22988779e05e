//! Boards of servers, games and tags in every window: built, cached, queried.

pub(super) mod build;
pub(super) mod cache;
pub(super) mod dirty;
pub(super) mod group;
mod kept_rows;
pub(super) mod known_rows;
pub(super) mod positions;
pub(super) mod query;
mod query_context;
pub(super) mod ranking_set;
mod refresh;
mod update;
