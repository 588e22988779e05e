//! The engines of a cluster.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::kinds;
use crate::api::request::request;

kinds! {
    EngineRow: "engine", "Engine";
    StatePart: "state_part", "StatePart";
}

/// The engines of the cluster, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterEngines {}

request!(ClusterEngines: "cluster.engines", Access::Read => Vec<EngineRow>);

/// Copies the state of an engine of a cluster, as of a batch of its log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterCopy {}

request!(ClusterCopy: "cluster.copy", Access::REPLICATE => Vec<StatePart>);

/// A part of a file of a copy. The parts of a file follow each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatePart {
    /// The file, relative to the directory of the copy.
    pub file: String,
    /// The next bytes of the file, in Base64.
    pub bytes: String,
    /// The SHA-256 of the whole file, in hexadecimal digits; only in its last part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

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
    /// The latest version of the rules that it knows.
    pub version: u16,
    /// The last batch of the log that it has applied.
    pub seq: u64,
    /// Batches of the log that it has not applied yet.
    pub behind: u64,
    /// When it was last heard, ms ago on the clock of the database.
    pub heard_ago_ms: i64,
}
