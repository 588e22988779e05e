//! What a request does, which decides who may send it.

use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It changes nothing, so the state directory alone can answer it.
    Read,
    /// A change that a token may permit.
    Change(Permission),
    /// It uses files of this machine, or its clock: only over the control socket.
    Machine,
}

impl Access {
    pub const RESCAN: Access = Access::Change(Permission::Rescan);
    pub const SERVERS: Access = Access::Change(Permission::Servers);
    pub const CORRECTIONS: Access = Access::Change(Permission::Corrections);
    pub const REPLICATE: Access = Access::Change(Permission::Replicate);
    pub const SCAN: Access = Access::Change(Permission::Scan);
}

/// What a token permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::EnumIter, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Permission {
    /// Requests that change nothing, also those that visitors do not have.
    Read,
    /// Scans now, and more often for a while.
    Rescan,
    /// Adding, removing, tagging, greylisting and trusting servers.
    Servers,
    /// Corrections of players, tags, weeks and windows, and of the archive.
    Corrections,
    /// Scanning for the daemon: `clqd scan --join`.
    Scan,
    /// Copying the state to another engine of the cluster: `clqd cluster join`.
    Replicate,
}

impl Permission {
    /// As in the configuration.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Error: the names.
    pub fn parse(text: &str) -> Result<Permission, String> {
        let names = || Permission::iter().map(Permission::name);
        let found = Permission::iter().find(|permission| permission.name() == text);
        found.ok_or_else(|| format!("expected one of {}", names().collect::<Vec<_>>().join(", ")))
    }
}
