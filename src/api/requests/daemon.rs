//! The daemon itself: its backups and settings, and exports of whole weeks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::access::Access;
use crate::api::answer::{Done, kinds};
use crate::api::request::request;
use crate::view::export::ExportRow;
use crate::view::restore_report::RestoreReport;

kinds! {
    BackupRow: "backup", "Backup";
    RestoredRow: "restored", "Restored";
    ExportRow: "export", "ExportedRow";
}

/// Writes a backup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// The directory: absolute; must not exist, or be empty.
    pub dir: String,
}

request!(Backup: "backup", Access::Machine => BackupRow);

/// All rows of a week, in order of server URL, player name and game. The rows of one server are of one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Export {
    /// Such as `2026-W47`.
    pub week: String,
}

request!(Export: "export", Access::Read => Vec<ExportRow>);

/// Reads the configuration again. Changes and settings that need a restart are in the notes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reload {}

request!(Reload: "reload", Access::Machine => Done);

/// A backup that was created or restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupRow {
    /// The directory.
    pub dir: String,
    /// Time of the latest event in the state, Unix ms.
    pub latest_event_ms: i64,
    /// Size of its files, bytes.
    pub bytes: u64,
    /// Records in it: players, servers, rows and others.
    pub records: u64,
}

/// A state that was restored from the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestoredRow {
    /// The directory.
    pub dir: String,
    /// Time of the latest event in the state, Unix ms.
    pub latest_event_ms: i64,
    /// Size of its files, bytes.
    pub bytes: u64,
    #[serde(flatten)]
    pub report: RestoreReport,
    /// What the archive does not have, one sentence each.
    pub not_restored: Vec<String>,
}
