//! The data that is written to the archive: the absolute values of outbox entries
//! (docs/rules.md section 12).

use super::server::SeriesRecord;
use super::view::{ResyncProgress, ResyncTarget, ScreenedView};
use crate::model::calendar;
use crate::model::keys::{GameKey, MapKey, PlayerKey, ServerKey, WeekKey};
use crate::model::outbox::{OutboxKey, ResyncCursor};

/// The absolute values of one outbox entry, read consistently.
#[derive(Clone, Debug, PartialEq)]
pub enum ArchiveJob {
    Game {
        key: GameKey,
        name: String,
    },
    Map {
        key: MapKey,
        name: String,
    },
    Player {
        key: PlayerKey,
        game: GameKey,
        name: String,
        display: String,
    },
    /// A removed player. Their data is moved to `into`, or deleted.
    PlayerRemoved {
        key: PlayerKey,
        into: Option<PlayerKey>,
    },
    Server(Box<ServerArchive>),
    Week(Box<WeekArchive>),
    /// A server's week with more rows than one job may have: it must be requested in chunks, see
    /// [`WeekChunkRequest`].
    LargeWeek {
        week: WeekKey,
        server: ServerKey,
    },
}

impl ArchiveJob {
    /// The outbox key of this job.
    pub fn key(&self) -> OutboxKey {
        match self {
            ArchiveJob::Game { key, .. } => OutboxKey::Game(*key),
            ArchiveJob::Map { key, .. } => OutboxKey::Map(*key),
            ArchiveJob::Player { key, .. } | ArchiveJob::PlayerRemoved { key, .. } => OutboxKey::Player(*key),
            ArchiveJob::Server(server) => OutboxKey::Server(server.key),
            ArchiveJob::Week(week) => OutboxKey::Week { week: week.week, server: week.server },
            ArchiveJob::LargeWeek { week, server } => OutboxKey::Week { week: *week, server: *server },
        }
    }
}

impl From<ResyncCursor> for ResyncProgress {
    fn from(cursor: ResyncCursor) -> ResyncProgress {
        let at = |step, key| ResyncProgress { step, key: Some(key), week: None };
        let whole = |step| ResyncProgress { step, key: None, week: None };
        match cursor {
            ResyncCursor::Game(key) => at(ResyncTarget::Games, key.0),
            ResyncCursor::Map(key) => at(ResyncTarget::Maps, key.0),
            ResyncCursor::RemovedPlayers { .. } => whole(ResyncTarget::RemovedPlayers),
            ResyncCursor::Server(key) => at(ResyncTarget::Servers, key.0),
            ResyncCursor::Player(key) => at(ResyncTarget::Players, key.0),
            ResyncCursor::Week { week: WeekKey(0), .. } => whole(ResyncTarget::Weeks),
            ResyncCursor::Week { week, server } => {
                ResyncProgress { week: Some(calendar::week_label(week)), ..at(ResyncTarget::Weeks, server.0) }
            }
            ResyncCursor::End => whole(ResyncTarget::End),
        }
    }
}

/// The next chunk of a resync.
#[derive(Clone, Debug, PartialEq)]
pub enum ResyncStep {
    Chunk(Box<ResyncChunk>),
    /// The outbox is too long and must be drained first.
    DrainFirst,
    /// No resync is in progress.
    Idle,
}

/// A chunk of a resync, read consistently.
#[derive(Clone, Debug, PartialEq)]
pub struct ResyncChunk {
    pub from: ResyncCursor,
    /// The start of the next chunk.
    pub next: ResyncCursor,
    /// To be written first. No outbox entry may be written between reading and writing these:
    /// older values would overwrite it.
    pub names: Vec<ArchiveJob>,
    /// May refer to names that are still in the outbox.
    pub records: Vec<ArchiveJob>,
    /// Not in this chunk: added to the outbox when the chunk is acknowledged.
    pub postponed: Vec<OutboxKey>,
}

/// A request for a chunk of a large week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeekChunkRequest {
    /// The first chunk of a new copy of the rows.
    First { week: WeekKey, server: ServerKey },
    /// The chunk after a player (or the first chunk) of the copy with this number.
    Next { copy_id: u64, after: Option<PlayerKey> },
    /// Releases the copy.
    Release { copy_id: u64 },
}

/// The answer to [`WeekChunkRequest`].
#[derive(Clone, Debug, PartialEq)]
pub enum WeekChunk {
    /// Rows are still being read or sorted: request again.
    Preparing,
    Chunk {
        /// The number of the copy, equal in all its chunks.
        copy_id: u64,
        week: Box<WeekArchive>,
    },
    /// There is no such chunk: chunks of this copy that were written must be rolled back.
    NotAvailable,
}

/// A server's state and series.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerArchive {
    pub key: ServerKey,
    pub url: String,
    pub hostname: String,
    pub game: Option<GameKey>,
    pub map: Option<MapKey>,
    pub slots: u32,
    pub class: u8,
    pub missed: u32,
    /// Players now; 0 if the server does not answer any more.
    pub players: u32,
    /// Median of the last three counts.
    pub assumed_players: u32,
    pub total_points: i64,
    pub added_ms: i64,
    pub last_scan_ms: Option<i64>,
    pub last_seen_ms: Option<i64>,
    pub rank: Option<u32>,
    pub rank_week: Option<WeekKey>,
    pub greylist_reason: Option<String>,
    pub removed: bool,
    pub tags: Vec<String>,
    /// The last complete list: normalised name, display name, points, player key; empty if the
    /// server does not answer any more.
    pub list: Vec<ListEntry>,
    pub series: Option<SeriesRecord>,
    /// Current reasons of screening (docs/rules.md section 14), each with the time when it last
    /// applied, Unix ms.
    pub screened: Vec<ScreenedView>,
    /// Bots of the last list that could not be distinguished from players.
    pub bots_unidentified: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntry {
    pub name: String,
    pub display: String,
    /// `None`: the protocol has no points.
    pub points: Option<i64>,
    pub player: Option<PlayerKey>,
    pub spectator: bool,
}

/// A range of player keys; a chunk of a large week contains the players of one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerKeyRange {
    /// `None`: from the first.
    pub after: Option<PlayerKey>,
    /// The last key; `None`: no upper bound.
    pub through: Option<PlayerKey>,
}

impl PlayerKeyRange {
    pub const ALL: PlayerKeyRange = PlayerKeyRange { after: None, through: None };
}

/// One server in one week: rows with positions, maps, best positions; written in one
/// transaction. Or a chunk of it; then all chunks of one copy are written in one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct WeekArchive {
    pub week: WeekKey,
    pub server: ServerKey,
    /// `2026-W47`.
    pub label: String,
    pub week_start_ms: i64,
    pub week_end_ms: i64,
    /// The week is closed on the server.
    pub closed: bool,
    /// Rank of the server in this week, once it is assigned.
    pub server_rank: Option<u32>,
    /// Player-milliseconds of all maps.
    pub player_ms: u64,
    /// The range of players in `rows`: the week has no other players in this range.
    pub span: PlayerKeyRange,
    /// In order of player key.
    pub rows: Vec<PlayerWeekArchive>,
    /// In order of map key; only in the chunk with the first player.
    pub maps: Vec<MapWeekArchive>,
    /// Best positions of the players in `rows`, once the week is closed; in order of player
    /// key. Index 0 to 2: clq1, clq2, elo; best first.
    pub best: Vec<(PlayerKey, BestPositionsByRanking)>,
}

/// (position, week) in clq1, clq2 and elo, each best first, at most three.
pub type BestPositionsByRanking = [Vec<(u32, WeekKey)>; 3];

#[derive(Clone, Debug, PartialEq)]
pub struct PlayerWeekArchive {
    pub player: PlayerKey,
    pub measured_ms: u64,
    pub starts: u32,
    pub time_ms: u64,
    /// Estimated (docs/rules.md section 15).
    pub time_est_ms: u64,
    pub points: i64,
    /// Estimated, to thousandths.
    pub points_est: f64,
    pub elo: f64,
    pub elo_rounds: u32,
    /// Thousandths of a point.
    pub clq1: u64,
    pub clq2: u64,
    /// Positions in the order of `Ranking::ALL`; `None`: not ranked.
    pub positions: [Option<u32>; 5],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapWeekArchive {
    pub map: MapKey,
    pub played_ms: u64,
    pub player_ms: u64,
}
