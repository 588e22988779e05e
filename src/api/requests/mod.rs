//! All requests. A file for each noun; a new request is a type in one of them, and a line in [`requests!`].

mod archive;
mod boards;
mod cluster;
mod corrections;
mod daemon;
mod maps;
mod players;
mod scanners;
mod servers;
mod sessions;
mod site;

pub use self::archive::{
    ArchiveDifference, ArchiveResend, ArchiveVerify, DifferenceKind, ResendRow, VerifyLine, VerifyRow, WeekRange,
};
pub use self::boards::{
    Board, BoardLine, Boards, Fused, FusedLine, Standings, Top, Windows, WindowsDelete, WindowsRecompute,
};
pub use self::cluster::{ClusterCopy, ClusterEngines, StatePart};
pub use self::corrections::{ClockAccept, ClockReset, TagDrop, WeekReopen};
pub use self::daemon::{Backup, BackupRow, Export, Reload, RestoredRow};
pub use self::maps::{Map, Maps};
pub use self::players::{
    Player, PlayerAllow, PlayerForget, PlayerForgotten, PlayerMerge, PlayerNamed, PlayerSearch, PlayerShow,
};
pub use self::scanners::{
    SCANS_MAX, ScanAttempt, ScanTask, ScannedServer, ScannerSettings, ScannersExchange, ScannersList, Scans,
    check_scanner_name,
};
pub use self::servers::{
    Boost, ChangeOutcome, Greylist, Rescan, RescanSelector, ScanResult, ScanRow, ServerChange, ServerPage,
    ServerPageLine, ServersAdd, ServersBest, ServersBudget, ServersCountries, ServersList, ServersNext, ServersPage,
    ServersRemove, ServersSearch, ServersShow, ServersTag, ServersTags, ServersTrust,
};
pub use self::sessions::{ExportSessions, PlayerCompanions, PlayerSessions, ServersSessions, ServersVisitors};
pub use self::site::{Overview, Series, Status};
use super::request::RequestInfo;

/// Passes all requests to a macro: those that only read, those that the engine thread executes, and those that go on
/// beside it.
macro_rules! requests {
    ($pass:ident) => {
        $pass! {
            read Board, Boards, Fused, Map, Maps, Overview, Player, PlayerCompanions, PlayerForgotten, PlayerNamed, PlayerSearch, PlayerSessions,
                PlayerShow, Series, ServersBest, ServersCountries, ServersList, ServersPage, ServersSearch, ServersSessions, ServersShow, ServersTags, ServersVisitors, Standings, Status, Top, Windows;
            change Boost, ClockAccept, ClockReset, Greylist, PlayerAllow, PlayerForget, PlayerMerge, ServersAdd,
                ServersRemove, ServersTag, ServersTrust, ServersBudget, TagDrop, WeekReopen, WindowsDelete, WindowsRecompute;
            run ArchiveResend, ArchiveVerify, Backup, ClusterCopy, ClusterEngines, Export, ExportSessions, Reload, Rescan, ScannersExchange, ScannersList;
        }
    };
}
pub(crate) use requests;

macro_rules! infos {
    ($($how:ident $($request:ident),*;)*) => { &[$($(RequestInfo::of::<$request>(),)*)*] };
}

/// All requests.
pub const REQUESTS: &[RequestInfo] = requests!(infos);

#[cfg(test)]
mod tests;
