//! Several engines with one log (docs/architecture.md, *Several engines*).
//!
//! - [`lease`]: when a follower may take over. [`leadership`]: the right to write the log.
//! - `copy`, [`join`]: the state of one engine becomes that of another one.
//! - [`follow`]: the task of an engine that follows, until it leads.

pub(super) mod copy;
mod follow;
pub mod join;
mod leadership;
mod lease;
#[cfg(test)]
mod simulation;
mod status;

pub(super) use self::follow::Follower;
pub(super) use self::leadership::{Appended, Leadership};
pub(super) use self::status::Cluster;
