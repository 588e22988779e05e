//! The engines of a cluster.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::kinds;
use crate::api::machines::EngineRow;
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
