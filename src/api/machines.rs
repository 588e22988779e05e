//! The machines that work together: engines of a cluster, and scanners.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What an engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EngineRole {
    /// It scans, takes changes, and writes the log and the archive.
    Leader,
    /// It applies the log, and answers what changes nothing.
    Follower,
    /// It has not been heard for 5 s.
    Gone,
}

/// An engine of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EngineRow {
    /// Its name.
    pub engine: String,
    /// What it does.
    pub role: EngineRole,
    /// The URL of its HTTP server; empty: unknown.
    pub address: String,
    /// The latest `rules.number` that it knows.
    pub version: u16,
    /// The last batch of the log that it has applied.
    pub seq: u64,
    /// Batches of the log that it has not applied yet.
    pub behind: u64,
    /// When it was last heard, ms ago on the clock of the database.
    pub heard_ago_ms: i64,
}

/// A scanner that has joined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScannerRow {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub region: String,
    /// When it was last heard, ms ago.
    pub heard_ago_ms: u64,
    /// Scans that it has.
    pub in_progress: u64,
    /// Scans that got an answer since it joined.
    pub answered: u64,
    /// Scans that got none.
    pub missed: u64,
}
