//! The rows of a response.

use serde::{Deserialize, Serialize};

use super::archive::{ArchiveDifference, ResendRow, VerifyRow};
use super::status::Status;
use crate::model::restore::RestoreReport;
use crate::model::server_page::ServerCursor;
use crate::model::view::board::{
    BoardEntryView, BoardHead, BoardRow, FusedHead, FusedView, MissingPlayer, PositionForView, StandingView,
    StandingsView, WindowSummary, WindowView,
};
use crate::model::view::export::ExportRow;
use crate::model::view::history::{BestPlayers, MapTotals, MapView};
use crate::model::view::{
    ClockStatus, Correction, ForgottenName, OnlineSeriesView, Overview, PlayerNameView, PlayerView, ServerDetail,
    ServerSummary, Top,
};

/// One row of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Row {
    Status(Box<Status>),
    Server(Box<ServerSummary>),
    ServersNext(ServersNext),
    Overview(Box<Overview>),
    Series(Box<OnlineSeriesView>),
    ServerDetail(Box<ServerDetail>),
    Change(ServerChange),
    Scan(Box<ScanRow>),
    Top(Top),
    BoardHead(Box<BoardHead>),
    Entry(BoardEntryView),
    Absent(MissingPlayer),
    Standing(StandingView),
    PositionFor(PositionForView),
    Standings(StandingsView),
    FusedHead(Box<FusedHead>),
    Fused(FusedView),
    Window(Box<WindowSummary>),
    WindowDeleted(WindowView),
    Player(PlayerView),
    PlayerName(PlayerNameView),
    Map(MapView),
    MapTotals(MapTotals),
    BestPlayers(BestPlayers),
    Correction(Correction),
    ForgottenName(ForgottenName),
    Backup(BackupRow),
    Restored(Box<RestoredRow>),
    Clock(ClockStatus),
    ArchiveResend(ResendRow),
    ArchiveDifference(Box<ArchiveDifference>),
    ArchiveVerified(VerifyRow),
    Export(Box<ExportRow>),
}

impl From<BoardRow> for Row {
    fn from(row: BoardRow) -> Row {
        match row {
            BoardRow::Entry(entry) => Row::Entry(entry),
            BoardRow::Absent(absent) => Row::Absent(absent),
            BoardRow::Standing(standing) => Row::Standing(standing),
            BoardRow::PositionFor(position) => Row::PositionFor(position),
        }
    }
}

/// There is a further page of servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServersNext {
    /// The cursor where that page begins.
    pub after: ServerCursor,
}

/// A backup that was created or restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRow {
    pub dir: String,
    /// Time of the latest event in the state, Unix ms.
    pub latest_event_ms: i64,
    /// Size of its files.
    pub bytes: u64,
    /// Records in it: players, servers, rows and others.
    pub records: u64,
}

/// A state that was restored from the archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredRow {
    pub dir: String,
    /// Time of the latest event in the state, Unix ms.
    pub latest_event_ms: i64,
    /// Size of its files.
    pub bytes: u64,
    #[serde(flatten)]
    pub report: RestoreReport,
    /// What the archive does not have, one sentence each.
    pub not_restored: Vec<String>,
}

/// The result of a change to one URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerChange {
    pub url: String,
    pub outcome: ChangeOutcome,
    /// Why it was refused or greylisted, or is unchanged; until when it is boosted; its tags or
    /// skipped checks after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeOutcome {
    Added,
    /// Was removed earlier; restored with its history.
    Restored,
    /// Nothing changed; `reason` says why: it is already in the list, has no such tag, is not
    /// greylisted.
    Unchanged,
    /// The server was added again. It is of class 6 or 7 and is scanned now. Tags may have been
    /// added.
    ScanRequested,
    /// The server was added again. It is of class 6 or 7, but is not scanned, because adding it
    /// requested a scan less than a day ago. Tags may have been added.
    NotAnswering,
    Removed,
    /// The server or tag was not found.
    NotFound,
    /// Its tags have changed.
    Tagged,
    /// The list of skipped screening checks has changed.
    Trusted,
    Greylisted,
    /// Removed from the greylist.
    Lifted,
    /// Scanned once a minute for a while; `reason` says until when.
    Boosted,
    /// No longer scanned once a minute.
    BoostEnded,
    Refused,
    /// The same import lists it more than once; this is not the first line. `reason` names that.
    ListedTwice,
}

/// The result of one requested scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanRow {
    pub url: String,
    pub t_ms: i64,
    pub result: ScanResult,
    /// Class after the scan.
    pub class: u8,
    /// Contents of a snapshot or partial snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub players: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// The URL under which the host answered although the server did not answer under its own URL:
    /// another protocol or port. It may be another server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers_at: Option<String>,
    /// Why the server was missed, if more is known than a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScanResult {
    Snapshot,
    Partial,
    Miss,
}
