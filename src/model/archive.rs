//! The data that is written to the archive: the absolute values of outbox entries
//! (docs/rules.md section 12).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use arrayvec::{ArrayString, ArrayVec};

use super::row::{Ranking, TopTen, Uncertainty};
use super::server::{ScreenReason, SeriesRecord};
use crate::model::keys::{GameKey, MapKey, PlayerKey, ServerKey, WeekKey};
use crate::model::outbox::{OutboxKey, ResyncCursor};
use crate::model::session::{Session, SessionDay, SessionKey};

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
    BestPositions(Box<BestPositionsArchive>),
    Session(SessionKey, Session),
    /// The totals of a week are computed again from the rows in the archive.
    WeekTotals {
        week: WeekKey,
    },
}

/// The time range of the state, which bounds what may be deleted in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveBounds {
    /// Recorded time, Unix ms.
    pub now_ms: i64,
    /// The week of that time. The state has none of it before the first scan in it.
    pub now_week: WeekKey,
    /// Otherwise nothing is old: the clock may be ahead.
    pub is_time_trusted: bool,
    /// The oldest and the newest kept week; `None`: there is no week.
    pub weeks: Option<(WeekKey, WeekKey)>,
    /// Of each type of windows, when the oldest kept one ends, Unix ms.
    pub oldest_windows: BTreeMap<String, i64>,
    /// When the oldest day with kept sessions began, Unix ms; `None`: there is none.
    pub oldest_sessions_ms: Option<i64>,
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
            ArchiveJob::BestPositions(best) => {
                OutboxKey::BestPositions { server: best.server, after: best.players.after }
            }
            ArchiveJob::Session(key, _) => OutboxKey::Session(*key),
            ArchiveJob::WeekTotals { week } => OutboxKey::WeekTotals(*week),
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
    /// What it contains completely; `None`: weeks, each of which is complete, or removed players.
    pub range: Option<ObjectRange>,
    /// These are written first. No outbox entry may be written between reading and writing them,
    /// because their older values would overwrite it.
    pub names: Vec<ArchiveJob>,
    /// These may refer to names that are still in the outbox.
    pub records: Vec<ArchiveJob>,
    /// Entries that are not in this chunk. They are added to the outbox when the chunk is acknowledged.
    pub postponed: Vec<OutboxKey>,
}

/// Objects of one kind in a range of keys: the archive should have these and no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectRange {
    Games(KeyRange),
    Maps(KeyRange),
    Players(KeyRange),
    Servers(KeyRange),
    /// Best positions on these servers, of all players or, on one server, of some. `is_whole`: the state has
    /// never dropped any (`store.keep_players_weeks`); otherwise the archive may have more.
    BestPositions {
        servers: KeyRange,
        players: PlayerKeyRange,
        is_whole: bool,
    },
    /// Sessions that ended on these servers on a day. `is_whole`: the state has all of that day. Of the first day that
    /// it has, the archive may have more.
    Sessions {
        servers: KeyRange,
        day: SessionDay,
        is_whole: bool,
    },
}

/// A range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub first: u32,
    /// `None`: no upper bound.
    pub last: Option<u32>,
}

/// Objects that the archive should have.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedObjects {
    /// `None`: objects of other kinds are compared in other ways.
    pub range: Option<ObjectRange>,
    /// All objects in the range, each with whether it is not in the archive yet.
    pub objects: Vec<(ArchiveJob, bool)>,
    /// Where the next objects begin.
    pub next: ResyncCursor,
}

/// A step of queueing a week for the archive again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendStep {
    /// `next`: the first server of the next step; `None`: this was the last.
    Queued { servers: u64, next: Option<ServerKey> },
    /// The outbox has more than half of the entries that it may have. Nothing was queued.
    OutboxTooLong,
}

/// The values that the archive should have of some servers in one week.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectedStep {
    /// `next`: the first server of the next step; `None`: these were the last.
    Weeks { weeks: Vec<ExpectedWeek>, next: Option<ServerKey> },
    /// The week is not kept any more.
    NotKept,
    /// A resync is in progress, so the archive is incomplete.
    Resync,
}

/// The values that the archive should have of a server's week.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedWeek {
    pub server: ServerKey,
    pub url: String,
    /// Whether some of them are not in the archive yet.
    pub is_pending: bool,
    /// All rows; `None`: there are too many for one step, see [`WeekChunkRequest`].
    pub values: Option<Box<WeekArchive>>,
}

/// A request for a chunk of a large week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeekChunkRequest {
    /// The first chunk of a new copy of the rows.
    First { week: WeekKey, server: ServerKey },
    /// The chunk after a player (or the first chunk) of the copy with this number.
    Next { copy_id: u64, after: Option<PlayerKey> },
    /// Releases the copy of the rows.
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
    pub online: bool,
    /// Players now; 0 if the server is offline.
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
    pub screened: Vec<(ScreenReason, i64)>,
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
    /// The game whose totals include the server. `None`: no totals include it, because it was never
    /// seen or is greylisted.
    pub game: Option<GameKey>,
    /// Rank of the server in this week, once it is assigned.
    pub server_rank: Option<u32>,
    /// Player-milliseconds of all maps.
    pub player_ms: u64,
    /// Players on each board, in the order of `Ranking::ALL`.
    pub board_sizes: [u32; 5],
    /// Of all rows, once the week is closed: see [`WeekChecksum`]. `None`: it is not, or has no rows.
    pub checksum: Option<u32>,
    /// The range of players that `rows` was taken from.
    pub span: PlayerKeyRange,
    /// `rows` and `maps` are all that the week has in this range. Otherwise they are those that
    /// changed since they were archived.
    pub is_complete: bool,
    /// In order of player key.
    pub rows: Vec<PlayerWeekArchive>,
    /// In order of map key; only in the chunk with the first player.
    pub maps: Vec<MapWeekArchive>,
    /// All steps of the boards, in order of ranking and position; only in the chunk with the
    /// first player. A closed week has none: its rows have positions.
    pub steps: Vec<BoardStep>,
    /// Best positions of the players in `rows`, once the week is closed; in order of player
    /// key. Index 0 to 2: clq1, clq2, elo; best first.
    pub best: Vec<BestArchive>,
}

/// The best positions of some players on a server.
#[derive(Clone, Debug, PartialEq)]
pub struct BestPositionsArchive {
    pub server: ServerKey,
    /// `best` has every player in this range who has best positions.
    pub players: PlayerKeyRange,
    pub best: Vec<BestArchive>,
}

/// The best positions of a player on a server.
#[derive(Clone, Debug, PartialEq)]
pub struct BestArchive {
    pub player: PlayerKey,
    pub three: BestPositionsByRanking,
    /// The state does not know the positions of weeks before this one, and the archive may have some.
    pub since: Option<WeekKey>,
}

impl From<(PlayerKey, BestPositionsByRanking)> for BestArchive {
    /// All positions are known.
    fn from((player, three): (PlayerKey, BestPositionsByRanking)) -> BestArchive {
        BestArchive { player, three, since: None }
    }
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
    /// Those of them whose last list shows the end of the round.
    pub elo_rounds_sure: u32,
    pub uncertainty: Uncertainty,
    /// Thousandths of a point.
    pub clq1: u64,
    pub clq2: u64,
    /// Where the player is on each board, in the order of `Ranking::ALL`; `None`: not ranked.
    pub places: [Option<BoardPlace>; 5],
    /// The ten best segments and games, of which `clq1` and `clq2` are the sums; `None`: not read.
    pub ten_best: Option<Box<[TopTen; 2]>>,
}

impl PlayerWeekArchive {
    /// As [`PlayerRow::time_connected_ms`](crate::model::row::PlayerRow::time_connected_ms).
    pub fn time_connected_ms(&self) -> u64 {
        self.uncertainty.time_connected_ms(self.time_est_ms)
    }
}

/// The checksum of rows in a closed week: the XOR of the CRC-32 of each row. Anybody can compute it from the rows in
/// the archive, with the same text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeekChecksum(pub u32);

impl WeekChecksum {
    /// Adds a row. `positions`: in the order of `Ranking::ALL`.
    pub fn add(&mut self, week: WeekKey, server: ServerKey, row: &PlayerWeekArchive, positions: [Option<u32>; 5]) {
        let mut text = ArrayString::<TEXT_BYTES_MAX>::new();
        let PlayerWeekArchive {
            player,
            measured_ms,
            starts,
            time_ms,
            time_est_ms,
            points,
            elo_rounds,
            elo_rounds_sure,
            clq1,
            clq2,
            ..
        } = row;
        let Uncertainty { time_est_s2, time_connected_s2, points_est_thousandths, .. } = row.uncertainty;
        let time_connected_ms = row.time_connected_ms();
        let [points_est, elo] = [row.points_est, row.elo].map(thousandths);
        let [a, b, c, d, e] = positions.map(|position| position.unwrap_or(0));
        // The text cannot be too long: 23 numbers of at most 20 characters.
        _ = write!(
            text,
            "{week},{server},{player},{measured_ms},{starts},{time_ms},{time_est_ms},{points},{points_est},{elo},\
             {elo_rounds},{elo_rounds_sure},{time_est_s2},{time_connected_ms},{time_connected_s2},{points_est_thousandths},\
             {clq1},{clq2},{a},{b},{c},{d},{e}"
        );
        self.0 ^= crc32fast::hash(text.as_bytes());
    }
}

/// Most bytes of the text of a row.
const TEXT_BYTES_MAX: usize = 23 * 21;

/// In whole thousandths, as `FLOOR(x * 1000 + 0.5)` is in SQL. Saturates.
fn thousandths(value: f64) -> i64 {
    (value * 1_000.0 + 0.5).floor() as i64
}

/// Where a player is on a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardPlace {
    /// When the score was reached, Unix ms.
    pub reached_ms: i64,
    pub order: BoardOrder,
}

/// What a board is ordered by in the archive. While a week runs it is the sort key: when a
/// player moves up or down, only the row of this player changes. In a closed week it is the
/// position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardOrder {
    SortKey(OrderBytes),
    Position(u32),
}

impl BoardOrder {
    /// Bytes that compare like the order.
    pub fn to_bytes(&self) -> OrderBytes {
        match self {
            BoardOrder::SortKey(bytes) => bytes.clone(),
            BoardOrder::Position(position) => position.to_be_bytes().into_iter().collect(),
        }
    }
}

/// A sort key as bytes; see [`Orders::key_bytes`](crate::board::order::Orders::key_bytes).
pub type OrderBytes = ArrayVec<u8, 26>;

/// The sort key at one position of a board. A board has a step every [`step_spacing`] positions:
/// the position of any player follows from the step before it and the rows in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardStep {
    pub ranking: Ranking,
    /// 1, 1 + spacing, 1 + 2 x spacing, ...
    pub position: u32,
    pub order: OrderBytes,
}

/// Fewest positions from one step of a board to the next. When a player moves up or down, every
/// step between the old and the new position changes: fewer steps mean fewer writes, and more
/// rows to read for a position.
const STEP_SPACING_MIN: u32 = 32;

/// Most steps of a board, so that the cost of a cycle has a limit for a server that invents
/// players.
const STEPS_MAX: u32 = 1_024;

/// Positions from a step of a board of this size to the next.
pub fn step_spacing(board_size: u32) -> u32 {
    (board_size / STEPS_MAX).next_power_of_two().max(STEP_SPACING_MIN)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapWeekArchive {
    pub map: MapKey,
    pub played_ms: u64,
    pub player_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_bounded_by_spacing_and_number() {
        let of = [0, 31, 32_768, 65_535, 65_536, 1_000_000, u32::MAX].map(step_spacing);
        assert_eq!(of, [32, 32, 32, 64, 64, 1_024, 4_194_304]);
        assert!([32_767, 65_536, 999_999].iter().all(|&size| size / step_spacing(size) <= STEPS_MAX));
    }

    #[test]
    fn orders_of_a_closed_week_compare_like_positions() {
        let bytes = |position| BoardOrder::Position(position).to_bytes();
        assert!(bytes(2) < bytes(10) && bytes(255) < bytes(256));
    }
}
