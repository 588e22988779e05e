//! The protocol of the control socket, version 2: one JSON object per line.
//!
//! A request, with an `id` that its response repeats:
//!
//! ```json
//! {"v":2,"id":7,"cmd":"servers.show","url":"quake3://127.0.0.1:27960"}
//! ```
//!
//! The response is any number of rows, then one end or one error:
//!
//! ```json
//! {"v":2,"id":7,"progress":{}}
//! {"v":2,"id":7,"row":{"kind":"server_detail", ...}}
//! {"v":2,"id":7,"end":{"notes":[]}}
//! {"v":2,"id":7,"error":{"code":"not_found","message":"..."}}
//! ```
//!
//! While the daemon works on a response and has no row to send, it sends a progress line
//! at least every five seconds. Longer silence means that the daemon is not running.
//!
//! Requests of one connection are answered one after the other. Unknown fields of a
//! request are refused, so that a misspelt filter never widens a command. Unknown fields
//! of rows are ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::limits::TAGS_MAX;
use crate::model::NameHash;
use crate::model::row::Ranking;
use crate::model::server::{Class, ScreenReason};
use crate::model::url::ServerUrl;
use crate::model::view::board::{
    BoardEntryView, BoardHead, BoardQuery, BoardRow, BoardSelector, BoardsSelector, FusedHead, FusedQuery, FusedView,
    MissingPlayer, PlayerSelector, PositionForView, RankingWeight, StandingView, StandingsView, WindowSummary,
    WindowView,
};
use crate::model::view::{
    ClockStatus, Correction, EngineStatus, ForgottenName, PlayerView, ResyncProgress, ServerDetail, ServerSummary, Top,
};
use crate::nearest::nearest;

/// Version of the protocol. It is raised when an old client would misunderstand.
pub const PROTOCOL_VERSION: u64 = 2;

/// Most URLs in one request; 1,000 of the longest stay below a third of
/// `limits::CONTROL_LINE_BYTES_MAX`. A client splits more into several requests.
pub const URLS_PER_REQUEST_MAX: usize = 1_000;

/// Longest tag, bytes.
pub const TAG_BYTES_MAX: usize = 64;

/// Most entries of one response.
pub const ROWS_PER_RESPONSE_MAX: u32 = 10_000;

const _: () = assert!(
    URLS_PER_REQUEST_MAX * (crate::limits::SERVER_URL_BYTES_MAX + 3) < crate::limits::CONTROL_LINE_BYTES_MAX / 3
);

/// A request to the daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cmd", deny_unknown_fields)]
pub enum Request {
    /// One row, [`Row::Status`].
    #[serde(rename = "status")]
    Status {},
    /// A [`Row::Change`] for each URL, in order: added, restored, unchanged or refused.
    /// The tags are added to those that a known server has.
    #[serde(rename = "servers.add")]
    ServersAdd {
        urls: Vec<String>,
        #[serde(default)]
        tags: Vec<String>,
    },
    /// A [`Row::Change`] for each URL, in order: removed, not found or refused.
    #[serde(rename = "servers.remove")]
    ServersRemove { urls: Vec<String> },
    /// A [`Row::Server`] for each server that matches the whole filter, by URL.
    #[serde(rename = "servers.list")]
    ServersList {
        #[serde(default)]
        filter: ServerFilter,
    },
    /// One row, [`Row::ServerDetail`].
    #[serde(rename = "servers.show")]
    ServersShow { url: ServerUrl },
    /// A [`Row::Scan`] for each server as soon as its result is known.
    #[serde(rename = "rescan")]
    Rescan { servers: RescanSelector },
    /// One row, [`Row::Top`]; without `week`, of the running week.
    #[serde(rename = "top")]
    Top {
        server: ServerUrl,
        ranking: Ranking,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        week: Option<String>,
        count: u32,
    },
    /// A [`Row::BoardHead`], then a row for each entry or other result of the query.
    #[serde(rename = "board")]
    Board { board: BoardSelector, query: BoardQuery },
    /// One row, [`Row::Standings`]; without `rankings`, of all five.
    #[serde(rename = "standings")]
    Standings {
        boards: BoardsSelector,
        player: PlayerSelector,
        #[serde(default)]
        rankings: Vec<Ranking>,
    },
    /// A [`Row::FusedHead`], then a [`Row::Fused`] for each player. Without `rankings`
    /// all five have equal weights; the default of `k` is 60.
    #[serde(rename = "fused")]
    Fused {
        boards: BoardsSelector,
        #[serde(default)]
        rankings: Vec<RankingWeight>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        k: Option<f64>,
        query: FusedQuery,
    },
    /// A [`Row::Window`] for each window, newest first, by type.
    #[serde(rename = "windows")]
    Windows {
        /// Whether to report the size of each window in the state directory, which
        /// requires reading all of it.
        #[serde(default)]
        bytes: bool,
    },
    /// A [`Row::WindowDeleted`] for each deleted window. Deletes windows that ended
    /// before that time; weeks only if they are closed and archived.
    #[serde(rename = "windows.delete")]
    WindowsDelete { before_ms: i64 },
    /// A [`Row::Player`] for each game in which the name is known.
    #[serde(rename = "player")]
    Player { name: String },
    /// A [`Row::Change`] for each URL, in order: tagged, unchanged or not found.
    #[serde(rename = "servers.tag")]
    ServersTag {
        urls: Vec<ServerUrl>,
        #[serde(default)]
        add: Vec<String>,
        #[serde(default)]
        remove: Vec<String>,
    },
    /// One [`Row::Change`]: trusted, or unchanged. `except`: screening
    /// checks that no longer apply to a server; `revoke`: those that apply again.
    #[serde(rename = "servers.trust")]
    ServersTrust {
        url: ServerUrl,
        #[serde(default)]
        except: Vec<ScreenReason>,
        #[serde(default)]
        revoke: Vec<ScreenReason>,
    },
    /// One [`Row::Correction`]. Removes the tag from all servers and deletes its boards
    /// and ratings.
    #[serde(rename = "tag.drop")]
    TagDrop { tag: String },
    /// One [`Row::Correction`].
    #[serde(rename = "player.merge")]
    PlayerMerge { from: PlayerSelector, into: PlayerSelector, game: String },
    /// One [`Row::Correction`].
    #[serde(rename = "player.forget")]
    PlayerForget { player: PlayerSelector, game: String },
    /// A [`Row::ForgottenName`] for each, the oldest first.
    #[serde(rename = "player.forgotten")]
    PlayerForgotten {},
    /// One [`Row::Correction`].
    #[serde(rename = "player.allow")]
    PlayerAllow { hash: NameHash },
    /// One [`Row::Change`]. Without a reason the server is removed from the greylist.
    #[serde(rename = "greylist")]
    Greylist {
        url: ServerUrl,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Writes a backup. One [`Row::Backup`].
    #[serde(rename = "backup")]
    Backup {
        /// Absolute; must not exist, or be empty.
        dir: String,
    },
    /// One [`Row::Clock`]. The admin confirms that the system clock is right.
    #[serde(rename = "clock.accept")]
    ClockAccept {},
    /// One [`Row::Correction`]: sets recorded time back to system time. Requires `force`
    /// if the system clock is not known to be synchronised.
    #[serde(rename = "clock.reset")]
    ClockReset {
        #[serde(default)]
        force: bool,
    },
    /// One [`Row::Correction`].
    #[serde(rename = "week.reopen")]
    WeekReopen { week: String },
    /// No row; changes and settings that need a restart are in the notes.
    #[serde(rename = "reload")]
    Reload {},
}

/// Names of all commands.
pub const COMMANDS: [&str; 26] = [
    "status",
    "servers.add",
    "servers.remove",
    "servers.list",
    "servers.show",
    "rescan",
    "top",
    "board",
    "standings",
    "fused",
    "windows",
    "windows.delete",
    "player",
    "servers.tag",
    "servers.trust",
    "tag.drop",
    "player.merge",
    "player.forget",
    "player.forgotten",
    "player.allow",
    "greylist",
    "backup",
    "clock.accept",
    "clock.reset",
    "week.reopen",
    "reload",
];

impl Request {
    /// Whether the request is read-only, so that the state directory alone can answer it.
    pub fn is_read_only(&self) -> bool {
        match self {
            Request::Status {}
            | Request::ServersList { .. }
            | Request::ServersShow { .. }
            | Request::Top { .. }
            | Request::PlayerForgotten {}
            | Request::Board { .. }
            | Request::Standings { .. }
            | Request::Fused { .. }
            | Request::Windows { .. }
            | Request::Player { .. } => true,
            Request::ServersAdd { .. }
            | Request::WindowsDelete { .. }
            | Request::ServersRemove { .. }
            | Request::ServersTag { .. }
            | Request::ServersTrust { .. }
            | Request::TagDrop { .. }
            | Request::PlayerMerge { .. }
            | Request::PlayerForget { .. }
            | Request::PlayerAllow { .. }
            | Request::Rescan { .. }
            | Request::Greylist { .. }
            | Request::Backup { .. }
            | Request::ClockAccept {}
            | Request::ClockReset { .. }
            | Request::WeekReopen { .. }
            | Request::Reload {} => false,
        }
    }
}

/// Selects servers to list; all given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub game: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Part of the URL, host name or map; case is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl ServerFilter {
    pub fn matches(&self, server: &ServerSummary) -> bool {
        let class = self.class.is_none_or(|class| server.class == class.number());
        let game = self.game.as_ref().is_none_or(|game| server.game.as_ref() == Some(game));
        let tag = self.tag.as_ref().is_none_or(|tag| server.tags.contains(tag));
        let text = self.text.as_ref().is_none_or(|text| {
            let text = text.to_lowercase();
            let mut places = [Some(&server.url), Some(&server.hostname), server.map.as_ref()].into_iter().flatten();
            places.any(|place| place.to_lowercase().contains(&text))
        });
        class && game && tag && text
    }
}

/// Returns the error of an invalid tag. Tags are used on command lines, in list files and
/// in SQL, so spaces and most punctuation are invalid.
pub fn check_tag(tag: &str) -> Option<String> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if tag.is_empty() || tag.len() > TAG_BYTES_MAX || !tag.chars().all(fits) {
        let shown: String = tag.chars().take(TAG_BYTES_MAX).collect();
        return Some(format!("tag {shown:?} is not 1 to {TAG_BYTES_MAX} bytes of letters, digits and - _ . :"));
    }
    None
}

/// Selects servers to rescan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RescanSelector {
    Url(ServerUrl),
    Class(Class),
    /// Classes 6 and 7.
    AllUnknown,
}

/// One row of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Row {
    Status(Box<Status>),
    Server(Box<ServerSummary>),
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
    Correction(Correction),
    ForgottenName(ForgottenName),
    Backup(BackupRow),
    Clock(ClockStatus),
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

/// `clqd status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Absent if the state directory was read without a daemon.
    pub daemon: Option<DaemonStatus>,
    pub engine: EngineStatus,
    /// Absent if the state directory was read without a daemon.
    #[serde(default)]
    pub clock: Option<ClockStatus>,
    /// Pending outbox entries.
    pub outbox_entries: u64,
    /// Absent if no archive is configured.
    pub archive: Option<ArchiveStatus>,
    /// Absent if the state directory was read without a daemon.
    #[serde(default)]
    pub store: Option<StoreStatus>,
    /// Counters since the daemon started, by module and name: `scan.packets_sent`.
    pub counters: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatus {
    pub version: String,
    pub pid: u32,
    pub started_ms: i64,
    pub state_dir: String,
    /// Absent if the built-in defaults are used.
    pub config_file: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveStatus {
    /// `user@host:port/database`.
    pub target: String,
    pub connected: bool,
    /// Time of the last pass that wrote everything pending, Unix ms.
    pub last_complete_ms: Option<i64>,
    pub last_error: Option<String>,
    pub last_error_ms: Option<i64>,
    /// The current fault, until a complete pass has succeeded.
    #[serde(default)]
    pub fault: Option<ArchiveFault>,
    /// Progress of the resync of an archive that is new or incomplete; absent if none is
    /// in progress.
    #[serde(default)]
    pub resync: Option<ResyncProgress>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveFault {
    /// `settings`, `unreachable`, `blocked`, `unavailable`, `access_denied`, `schema`,
    /// `charset`, `in_use`, `key_mismatch`, `rejected` or `panic`.
    pub kind: String,
    pub since_ms: i64,
    pub message: String,
}

/// Whether the daemon can write to disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// Free space of the state directory's or the scan log's file system, whichever is
    /// less.
    pub disk_free_bytes: u64,
    /// The setting; 0: no limit.
    pub disk_free_bytes_min: u64,
    /// Since when commits are paused for lack of space; absent if they are not.
    pub paused_since_ms: Option<i64>,
    /// Changed rows and players that are not committed yet.
    pub pending_records: u64,
    /// Scans whose results were discarded since the daemon started, because too much was
    /// pending.
    pub scans_discarded: u64,
}

/// A backup that was created or restored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRow {
    pub dir: String,
    /// Latest moment of the contained state, Unix ms.
    pub latest_event_ms: i64,
    /// Size of its files.
    pub bytes: u64,
}

/// The result of a change to one URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerChange {
    pub url: String,
    pub outcome: ChangeOutcome,
    /// Why it was refused or greylisted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeOutcome {
    Added,
    /// Was removed earlier; restored with its history.
    Restored,
    /// Nothing changed: the server is already in the list (tags may have been added), or the
    /// request makes no difference.
    Unchanged,
    Removed,
    /// Not in the list.
    NotFound,
    /// Its tags have changed.
    Tagged,
    /// The list of skipped screening checks has changed.
    Trusted,
    Greylisted,
    /// Removed from the greylist.
    Lifted,
    Refused,
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

/// The end of a successful response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseEnd {
    /// Notes for the admin, besides the rows.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The end of a failed response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: String,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> ApiError {
        ApiError { code, message: message.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The line is longer than `limits::CONTROL_LINE_BYTES_MAX`.
    LineTooLong,
    /// The line is not a JSON object, or has no `id`.
    MalformedLine,
    UnsupportedVersion,
    UnknownCommand,
    /// The command is known, but its fields are invalid.
    BadRequest,
    /// No such server, week or player.
    NotFound,
    /// The request is valid but is not executed, such as a reload of a broken file.
    Refused,
    /// Too many connections, or a full queue: try again.
    Busy,
    ShuttingDown,
    Internal,
    /// An error code of a newer daemon.
    #[serde(other)]
    Other,
}

/// One line of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub v: u64,
    /// Absent if the request's id could not be read.
    pub id: Option<u64>,
    #[serde(flatten)]
    pub body: ResponseBody,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseBody {
    /// Before, between and after rows; not part of the result.
    Progress(Progress),
    Row(Row),
    End(ResponseEnd),
    Error(ApiError),
}

/// The daemon is working on the request. Empty unless the request says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// `rescan`, first line: number of servers being scanned, one row each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<u64>,
    /// `rescan`, first line: how long it takes if no server responds, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_ms: Option<u64>,
}

/// The line of a request, with its line end.
pub fn encode_request(id: u64, request: &Request) -> String {
    #[derive(Serialize)]
    struct Line<'r> {
        v: u64,
        id: u64,
        #[serde(flatten)]
        request: &'r Request,
    }
    let mut line = serde_json::to_string(&Line { v: PROTOCOL_VERSION, id, request }).expect("requests are plain data");
    line.push('\n');
    line
}

/// Parses the line of a request. Error: the response to send, with the id if there was
/// one.
pub fn decode_request(line: &[u8]) -> Result<(u64, Request), (Option<u64>, ApiError)> {
    let failure = |id, code, message: String| Err((id, ApiError { code, message }));
    let mut object = match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return failure(None, ErrorCode::MalformedLine, "expected a JSON object".to_owned()),
        Err(error) => return failure(None, ErrorCode::MalformedLine, format!("not JSON: {error}")),
    };
    let id = object.remove("id");
    let (id, has_id) = (id.as_ref().and_then(Value::as_u64), id.is_some());
    match object.remove("v") {
        Some(v) if v.as_u64() == Some(PROTOCOL_VERSION) => (),
        Some(v) => {
            let message = format!(
                "this daemon speaks version {PROTOCOL_VERSION} of the control protocol, not {v}; \
                 use the clqd program of the daemon"
            );
            return failure(id, ErrorCode::UnsupportedVersion, message);
        }
        None => {
            return failure(
                id,
                ErrorCode::UnsupportedVersion,
                format!("\"v\" is missing; expected \"v\":{PROTOCOL_VERSION}"),
            );
        }
    }
    let Some(number) = id else {
        let what = if has_id { "must be" } else { "is missing; expected" };
        return failure(None, ErrorCode::MalformedLine, format!("\"id\" {what} a whole number of at least 0"));
    };
    let Some(command) = object.get("cmd").and_then(Value::as_str) else {
        let message = format!("\"cmd\" is missing; the commands are {}", COMMANDS.join(", "));
        return failure(id, ErrorCode::BadRequest, message);
    };
    if !COMMANDS.contains(&command) {
        let advice = match nearest(command, COMMANDS) {
            Some(right) => format!("did you mean {right}?"),
            None => format!("the commands are {}", COMMANDS.join(", ")),
        };
        let shown: String = command.chars().take(40).collect();
        return failure(id, ErrorCode::UnknownCommand, format!("unknown command {shown:?}; {advice}"));
    }
    let command = command.to_owned();
    let request: Request = match serde_json::from_value(Value::Object(object)) {
        Ok(request) => request,
        Err(error) => return failure(id, ErrorCode::BadRequest, format!("{command}: {error}")),
    };
    match request {
        Request::ServersAdd { ref urls, .. } | Request::ServersRemove { ref urls }
            if urls.len() > URLS_PER_REQUEST_MAX =>
        {
            let message = format!("{command}: {} URLs; at most {URLS_PER_REQUEST_MAX} in one request", urls.len());
            failure(id, ErrorCode::BadRequest, message)
        }
        Request::ServersTag { ref urls, .. } if urls.len() > URLS_PER_REQUEST_MAX => {
            let message = format!("{command}: {} URLs; at most {URLS_PER_REQUEST_MAX} in one request", urls.len());
            failure(id, ErrorCode::BadRequest, message)
        }
        Request::ServersTag { ref add, ref remove, .. } if add.len().max(remove.len()) > TAGS_MAX => {
            let message = format!("{command}: {} tags; at most {TAGS_MAX}", add.len().max(remove.len()));
            failure(id, ErrorCode::BadRequest, message)
        }
        Request::ServersTag { ref add, .. } if add.iter().any(|tag| check_tag(tag).is_some()) => {
            let problem = add.iter().find_map(|tag| check_tag(tag)).unwrap_or_default();
            failure(id, ErrorCode::BadRequest, format!("{command}: {problem}"))
        }
        Request::ServersAdd { ref tags, .. } if tags.len() > TAGS_MAX => {
            let message = format!("{command}: {} tags; at most {TAGS_MAX}", tags.len());
            failure(id, ErrorCode::BadRequest, message)
        }
        Request::ServersAdd { ref tags, .. } if tags.iter().any(|tag| check_tag(tag).is_some()) => {
            let problem = tags.iter().find_map(|tag| check_tag(tag)).unwrap_or_default();
            failure(id, ErrorCode::BadRequest, format!("{command}: {problem}"))
        }
        Request::Top { count, .. } if count == 0 || count > ROWS_PER_RESPONSE_MAX => {
            failure(id, ErrorCode::BadRequest, format!("top: count is {count}; expected 1 to {ROWS_PER_RESPONSE_MAX}"))
        }
        request => Ok((number, request)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::scope::Scope;

    fn url(text: &str) -> ServerUrl {
        ServerUrl::parse(text).expect("a URL")
    }

    #[test]
    fn every_request_round_trips_and_is_listed() {
        let all = [
            Request::Status {},
            Request::ServersAdd { urls: vec!["quake3://a:1".into()], tags: vec!["ctf".into()] },
            Request::ServersRemove { urls: vec!["quake3://a:1".into()] },
            Request::ServersList { filter: ServerFilter { class: Class::new(2), game: None, tag: None, text: None } },
            Request::ServersShow { url: url("quake3://a:1") },
            Request::Rescan { servers: RescanSelector::AllUnknown },
            Request::Top { server: url("source://b:2"), ranking: Ranking::Clq1, week: None, count: 10 },
            Request::Board {
                board: BoardSelector {
                    scope: Scope::Server(url("source://b:2")),
                    ranking: Ranking::Clq1,
                    window: Some("2026-W47".into()),
                    at_ms: None,
                },
                query: BoardQuery::Around { player: PlayerSelector::Name("Visor".into()), count: 5 },
            },
            Request::Standings {
                boards: BoardsSelector { scope: Scope::Tag("pro".into()), window: None, at_ms: Some(5) },
                player: PlayerSelector::Key(12),
                rankings: vec![],
            },
            Request::Fused {
                boards: BoardsSelector { scope: Scope::Game("baseq3".into()), window: None, at_ms: None },
                rankings: vec![RankingWeight { ranking: Ranking::Elo, weight: 0.1 }],
                k: Some(60.0),
                query: FusedQuery::Top { count: 3 },
            },
            Request::Windows { bytes: true },
            Request::WindowsDelete { before_ms: 1_763_683_200_000 },
            Request::Player { name: "Visor".into() },
            Request::ServersTag { urls: vec![url("quake3://a:1")], add: vec!["ctf".into()], remove: Vec::new() },
            Request::ServersTrust {
                url: url("source://b:2"),
                except: vec![ScreenReason::FrozenList],
                revoke: Vec::new(),
            },
            Request::TagDrop { tag: "ctf".into() },
            Request::PlayerMerge {
                from: PlayerSelector::Key(7),
                into: PlayerSelector::Name("7".into()),
                game: "g".into(),
            },
            Request::PlayerForget { player: PlayerSelector::Name("Visor".into()), game: "baseq3".into() },
            Request::PlayerForgotten {},
            Request::PlayerAllow { hash: NameHash::of("baseq3", "Visor") },
            Request::Greylist { url: url("source://b:2"), reason: Some("two servers, one list".into()) },
            Request::Backup { dir: "/var/lib/clqd-backup/a".into() },
            Request::ClockAccept {},
            Request::ClockReset { force: true },
            Request::WeekReopen { week: "2026-W47".into() },
            Request::Reload {},
        ];
        assert_eq!(all.len(), COMMANDS.len());
        for (request, command) in all.iter().zip(COMMANDS) {
            let line = encode_request(7, request);
            assert_eq!(decode_request(line.as_bytes()), Ok((7, request.clone())));
            assert!(line.contains(&format!("\"cmd\":\"{command}\"")), "{line}");
        }
    }

    #[test]
    fn documented_lines_decode() {
        let read = |line: &str| decode_request(line.as_bytes()).map_err(|(id, failure)| (id, failure.code));
        let show = r#"{"v":2,"id":7,"cmd":"servers.show","url":"QUAKE3://127.0.0.1"}"#;
        assert_eq!(read(show), Ok((7, Request::ServersShow { url: url("quake3://127.0.0.1:27960") })));
        let list = r#"{"v":2,"id":0,"cmd":"servers.list"}"#;
        assert_eq!(read(list), Ok((0, Request::ServersList { filter: ServerFilter::default() })));
        let rescan = r#"{"v":2,"id":1,"cmd":"rescan","servers":{"class":6}}"#;
        assert_eq!(read(rescan), Ok((1, Request::Rescan { servers: RescanSelector::Class(Class::UNKNOWN) })));
        let rescan = r#"{"v":2,"id":1,"cmd":"rescan","servers":"all_unknown"}"#;
        assert_eq!(read(rescan), Ok((1, Request::Rescan { servers: RescanSelector::AllUnknown })));
        let end = Response { v: PROTOCOL_VERSION, id: Some(7), body: ResponseBody::End(ResponseEnd::default()) };
        assert_eq!(serde_json::to_string(&end).expect("plain"), r#"{"v":2,"id":7,"end":{"notes":[]}}"#);
    }

    #[test]
    fn invalid_requests_get_specific_errors() {
        #[track_caller]
        fn refused(line: &str, id: Option<u64>, code: ErrorCode, message: &str) {
            let (got_id, failure) = decode_request(line.as_bytes()).expect_err(line);
            assert_eq!((got_id, failure.code), (id, code), "{line}");
            assert!(failure.message.contains(message), "{line}: {}", failure.message);
        }
        refused("", None, ErrorCode::MalformedLine, "not JSON");
        refused("[]", None, ErrorCode::MalformedLine, "expected a JSON object");
        refused(r#"{"v":2,"cmd":"status"}"#, None, ErrorCode::MalformedLine, "\"id\" is missing");
        for id in ["-1", "1.5", "\"1\"", "null"] {
            let line = format!(r#"{{"v":2,"id":{id},"cmd":"status"}}"#);
            refused(&line, None, ErrorCode::MalformedLine, "\"id\" must be a whole number of at least 0");
        }
        refused(r#"{"v":1,"id":3,"cmd":"status"}"#, Some(3), ErrorCode::UnsupportedVersion, "version 2");
        refused(r#"{"id":3,"cmd":"status"}"#, Some(3), ErrorCode::UnsupportedVersion, "\"v\" is missing");
        refused(r#"{"v":2,"id":3}"#, Some(3), ErrorCode::BadRequest, "\"cmd\" is missing");
        refused(r#"{"v":2,"id":3,"cmd":"statsu"}"#, Some(3), ErrorCode::UnknownCommand, "did you mean status?");
        refused(r#"{"v":2,"id":3,"cmd":"server.add"}"#, Some(3), ErrorCode::UnknownCommand, "mean servers.add?");
        refused(r#"{"v":2,"id":3,"cmd":"zz"}"#, Some(3), ErrorCode::UnknownCommand, "the commands are status, ");
        refused(r#"{"v":2,"id":3,"cmd":"status","x":1}"#, Some(3), ErrorCode::BadRequest, "x");
        refused(r#"{"v":2,"id":3,"cmd":"servers.list","filter":{"clas":1}}"#, Some(3), ErrorCode::BadRequest, "clas");
        refused(r#"{"v":2,"id":3,"cmd":"servers.list","filter":{"class":8}}"#, Some(3), ErrorCode::BadRequest, "8");
        refused(r#"{"v":2,"id":3,"cmd":"servers.show","url":"x"}"#, Some(3), ErrorCode::BadRequest, "scheme://");
        let top = r#"{"v":2,"id":3,"cmd":"top","server":"quake3://a:1","ranking":"elo","count":0}"#;
        refused(top, Some(3), ErrorCode::BadRequest, "expected 1 to 10000");
        let board = |query: &str| {
            let board = r#""board":{"scope":"server:quake3://a:1","ranking":"elo"}"#;
            format!(r#"{{"v":2,"id":3,"cmd":"board",{board},"query":{query}}}"#)
        };
        refused(&board(r#"{"topp":{"count":3}}"#), Some(3), ErrorCode::BadRequest, "topp");
        refused(&board(r#"{"top":{"count":3,"n":4}}"#), Some(3), ErrorCode::BadRequest, "unknown field `n`");
        refused(&board(r#"{"range":{"count":3,"scores":{"over":4}}}"#), Some(3), ErrorCode::BadRequest, "over");
        let scope = r#"{"v":2,"id":3,"cmd":"standings","boards":{"scope":"quake3://a:1"},"player":"a"}"#;
        refused(scope, Some(3), ErrorCode::BadRequest, "did you mean server:");
        let tagged = Request::ServersAdd { urls: Vec::new(), tags: vec!["a b".into()] };
        refused(&encode_request(3, &tagged), Some(3), ErrorCode::BadRequest, "tag \"a b\" is not");
        let many = Request::ServersRemove { urls: vec![String::new(); URLS_PER_REQUEST_MAX + 1] };
        refused(&encode_request(3, &many), Some(3), ErrorCode::BadRequest, "at most 1000");
    }

    #[test]
    fn client_of_version_1_gets_error_with_both_versions() {
        let line = r#"{"v":1,"id":3,"cmd":"top","server":"quake3://a:1","ranking":"elo","n":10}"#;
        let (id, failure) = decode_request(line.as_bytes()).expect_err("another version");
        assert_eq!((id, failure.code), (Some(3), ErrorCode::UnsupportedVersion));
        assert_eq!(
            failure.message,
            "this daemon speaks version 2 of the control protocol, not 1; use the clqd program of the daemon"
        );
        let failed = Response { v: PROTOCOL_VERSION, id, body: ResponseBody::Error(failure) };
        let text = serde_json::to_string(&failed).expect("plain");
        assert!(text.starts_with(r#"{"v":2,"id":3,"error":{"code":"unsupported_version","message":"#), "{text}");
    }

    #[test]
    fn rows_round_trip_and_unknown_fields_are_ignored() {
        let detail = ServerDetail {
            summary: ServerSummary {
                key: 1,
                url: "quake3://a:1".into(),
                class: 1,
                missed: 0,
                hostname: "^1A".into(),
                game: Some("baseq3".into()),
                map: None,
                players: 3,
                assumed_players: 2,
                slots: 16,
                rank: None,
                added_ms: 5,
                last_scan_ms: Some(6),
                last_seen_ms: None,
                greylist_reason: None,
                tags: vec!["ctf".into()],
                screened: Vec::new(),
            },
            next_scan_ms: Some(9),
            total_points: -4,
            bots_unidentified: 0,
            exempt_checks: Vec::new(),
            players_listed: Vec::new(),
            series: None,
            maps: Vec::new(),
        };
        let status = Status { archive: Some(ArchiveStatus::default()), ..Status::default() };
        let change = ServerChange { url: "x".into(), outcome: ChangeOutcome::Refused, reason: Some("no".into()) };
        for row in [Row::ServerDetail(Box::new(detail)), Row::Status(Box::new(status)), Row::Change(change)] {
            let answer = Response { v: PROTOCOL_VERSION, id: Some(3), body: ResponseBody::Row(row) };
            let text = serde_json::to_string(&answer).expect("plain");
            assert_eq!(serde_json::from_str::<Response>(&text).expect(&text), answer);
        }
        let newer = r#"{"v":2,"id":1,"row":{"kind":"change","url":"x","outcome":"added","since":5}}"#;
        assert!(serde_json::from_str::<Response>(newer).is_ok());
        let newer = r#"{"v":2,"id":1,"error":{"code":"too_hot","message":"m"}}"#;
        let newer: Response = serde_json::from_str(newer).expect("an error of a newer daemon");
        assert_eq!(newer.body, ResponseBody::Error(ApiError::new(ErrorCode::Other, "m")));
    }

    #[test]
    fn filter_requires_every_condition() {
        let server = ServerSummary {
            key: 1,
            url: "quake3://a.example:1".into(),
            class: 2,
            missed: 0,
            hostname: "The House".into(),
            game: Some("baseq3".into()),
            map: Some("q3dm17".into()),
            players: 0,
            assumed_players: 0,
            slots: 0,
            rank: None,
            added_ms: 0,
            last_scan_ms: None,
            last_seen_ms: None,
            greylist_reason: None,
            tags: vec!["ctf".into()],
            screened: Vec::new(),
        };
        let text = |text: &str| ServerFilter { text: Some(text.into()), ..ServerFilter::default() };
        for (filter, fits) in [
            (ServerFilter::default(), true),
            (ServerFilter { class: Class::new(2), ..text("house") }, true),
            (ServerFilter { class: Class::new(1), ..text("house") }, false),
            (text("Q3DM"), true),
            (text("a.EX"), true),
            (text("dm18"), false),
            (ServerFilter { tag: Some("ctf".into()), ..ServerFilter::default() }, true),
            (ServerFilter { tag: Some("CTF".into()), ..ServerFilter::default() }, false),
            (ServerFilter { game: Some("baseoa".into()), ..ServerFilter::default() }, false),
        ] {
            assert_eq!(filter.matches(&server), fits, "{filter:?}");
        }
    }
}
