//! Boards of servers, games and tags in every window: built, cached, queried.

pub(in crate::engine) mod build;
pub(in crate::engine) mod cache;
pub(in crate::engine) mod positions;
pub(in crate::engine) mod query;
mod query_context;
