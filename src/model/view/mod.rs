//! Answers: what readers are shown, on the control socket, by `--json` and in
//! tables. Made by the engine; times are Unix ms, keys are numbers.

pub mod board;

use serde::{Deserialize, Serialize};

use super::row::Ranking;
use super::server::ScreenReason;
use crate::model::name_hash::NameHash;
use crate::model::view::board::OrderView;

/// The engine's part of `clqd status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineStatus {
    pub now_ms: i64,
    /// Label of the running week.
    pub week: String,
    /// Weeks that hold rows, oldest first, with their phase.
    pub weeks: Vec<WeekStatus>,
    /// Servers known, and of each class 1 to 7.
    pub servers: u64,
    pub servers_by_class: [u64; 7],
    pub greylisted: u64,
    pub in_flight: u64,
    /// Players (keys) known, and on servers now.
    pub players_known: u64,
    pub players_online: u64,
    pub counts: EngineCounts,
    /// First packet of a scheduled scan minus its due time, ms: half, and 99 of
    /// 100, of all since the start stay at or below. Up to 10,000.
    #[serde(default)]
    pub lag_ms_p50: Option<u64>,
    #[serde(default)]
    pub lag_ms_p99: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeekStatus {
    pub week: String,
    pub phase: super::commit::WeekPhase,
}

/// Counted since the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineCounts {
    /// Full snapshots, and how many came from each class 1 to 7.
    pub snapshots: u64,
    pub snapshots_by_class: [u64; 7],
    pub partials: u64,
    /// Full snapshots that screening treated as partial.
    #[serde(default)]
    pub implausible: u64,
    /// Gains that did not fit a sum of points: it stays at the largest number.
    #[serde(default)]
    pub points_saturated: u64,
    pub misses: u64,
    pub rounds: u64,
    /// Events older than what is known; not used.
    pub out_of_order: u64,
    /// Scheduled scans that began more than 2 s after they were due.
    pub late: u64,
}

/// One line of `clqd servers list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerSummary {
    pub key: u32,
    pub url: String,
    pub class: u8,
    pub missed: u32,
    pub hostname: String,
    pub game: Option<String>,
    pub map: Option<String>,
    /// Players now, bots left out, 0 where the server does not answer any more; and the
    /// median of the last three counts.
    pub players: u32,
    pub assumed_players: u32,
    pub slots: u32,
    pub rank: Option<u32>,
    pub added_ms: i64,
    pub last_scan_ms: Option<i64>,
    pub last_seen_ms: Option<i64>,
    pub greylist: Option<String>,
    pub tags: Vec<String>,
    /// Reasons for which lists, or parts of them, were not used.
    #[serde(default)]
    pub screened: Vec<ScreenedView>,
}

/// `clqd servers show URL`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerDetail {
    #[serde(flatten)]
    pub summary: ServerSummary,
    /// When it is scanned next; absent where only when asked.
    pub due_ms: Option<i64>,
    pub total_points: i64,
    /// Bots of the last list that could not be told from players.
    #[serde(default)]
    pub bots_unidentified: u32,
    /// Checks that an admin has exempted the server from.
    #[serde(default)]
    pub trusted: Vec<ScreenReason>,
    /// Empty where the server does not answer any more.
    pub list: Vec<ListedPlayer>,
    /// Mean players, newest last; `null` is no data. Absent where nothing was seen.
    pub series: Option<SeriesView>,
    /// Maps of the running week, most player time first.
    pub maps: Vec<MapShare>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedPlayer {
    pub name: String,
    pub display: String,
    /// Absent where the protocol has no points.
    pub points: Option<i64>,
    pub ping: Option<i32>,
    pub player: Option<u32>,
    #[serde(default)]
    pub spectator: bool,
}

/// A check of RULES section 14 that has applied to a server within the last 7 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenedView {
    pub reason: ScreenReason,
    /// When it last applied.
    pub applied_ms: i64,
}

/// Each series: start of its newest slot, then the values, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesView {
    pub newest_slot_ms: i64,
    pub slots: Vec<Option<f64>>,
    pub newest_hour_ms: i64,
    pub hours: Vec<Option<f64>>,
    pub newest_day_ms: i64,
    pub days: Vec<Option<f64>>,
    pub newest_week_ms: i64,
    pub weeks: Vec<Option<f64>>,
    /// Weekly ranks, 0 = not ranked.
    pub ranks: Vec<u16>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapShare {
    pub map: String,
    pub minutes: f64,
    pub average_players: f64,
}

/// `clqd top`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Top {
    pub server: String,
    pub week: String,
    pub ranking: Ranking,
    #[serde(flatten)]
    pub order: OrderView,
    /// The week is closed: nothing here changes any more.
    pub closed: bool,
    /// Players on the board.
    pub size: u64,
    pub rows: Vec<TopRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopRow {
    pub position: u64,
    pub player: u32,
    pub name: String,
    pub display: String,
    /// The score in its unit: clq1 in points per second, elo as rating, time in
    /// seconds, clq2 and points as they are.
    pub score: f64,
    /// When the score was reached.
    pub reached_ms: i64,
}

/// `clqd player NAME`: one for each game in which the name is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayerView {
    pub player: u32,
    pub game: String,
    pub name: String,
    pub display: String,
    /// Newest week first, then by server URL.
    pub weeks: Vec<PlayerWeekView>,
    pub best: Vec<BestView>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayerWeekView {
    pub week: String,
    pub server: String,
    pub measured_ms: u64,
    pub starts: u32,
    pub time_ms: u64,
    /// Estimated: see RULES section 15.
    #[serde(default)]
    pub time_est_ms: u64,
    pub points: i64,
    /// Estimated, with three decimals.
    #[serde(default)]
    pub points_est: f64,
    /// Thousandths of a point.
    pub clq1: u64,
    pub clq2: u64,
    pub elo: f64,
    pub elo_rounds: u32,
    /// Positions by ranking; absent where not ranked.
    pub positions: std::collections::BTreeMap<Ranking, u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BestView {
    pub server: String,
    pub ranking: Ranking,
    pub position: u32,
    pub week: String,
}

/// What the daemon makes of the system's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStatus {
    /// Whether, and why, weeks are closed by it.
    pub trust: ClockTrust,
    /// Whether it is synchronised; absent: it cannot be found out.
    #[serde(default)]
    pub synchronised: Option<bool>,
    /// While it is not trusted: when it will be, if it does not jump, ms.
    #[serde(default)]
    pub trusted_in_ms: Option<i64>,
    /// The time that is recorded, Unix ms.
    pub now_ms: i64,
    pub system_ms: i64,
    /// Recorded time minus the system's, ms; 0 where it is not ahead.
    pub ahead_ms: i64,
    /// How far the system's clock has leapt ahead, ms, while that is not followed.
    pub leap_ms: i64,
    /// The last jump of the system's clock since the start, ms: below 0, back; and the
    /// recorded time then, Unix ms.
    #[serde(default)]
    pub jump_ms: Option<i64>,
    #[serde(default)]
    pub jump_at_ms: Option<i64>,
    /// A week that is over and is not closed, since the clock is not trusted or says
    /// that it is not over.
    #[serde(default)]
    pub week_held: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockTrust {
    /// Not yet, or no longer: it is not synchronised.
    Waiting,
    Synchronised,
    /// It is not synchronised, but has run without a jump for long.
    Steady,
    /// An admin accepted it.
    Accepted,
}

/// What became of a player, a tag, a week or the time, by an admin's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Correction {
    /// All of `player` is `into`'s from now on.
    Merged { player: u32, into: u32, rows: u64 },
    /// All of `player` is gone, and these names are never stored again.
    Forgotten { player: u32, rows: u64, hashes: Vec<NameHash> },
    /// The name of this hash may be known again.
    Remembered { hash: NameHash },
    /// So many servers had the tag. Its boards and ratings are gone.
    TagDropped { tag: String, servers: u64 },
    /// The week is open; it is closed again when it is over. `before`: it was open
    /// already.
    WeekReopened { week: String, before: bool },
    /// Recorded time was set back, both Unix ms; so many servers had been scanned later.
    /// Closed weeks that are not over are reopened. `lost`: the running week, where its
    /// rows are not in the state any more: scans of it are not credited.
    TimeReset { before_ms: i64, now_ms: i64, servers: u64, reopened: Vec<String>, lost: Option<String> },
}

/// A name that is never stored again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenName {
    pub hash: NameHash,
    /// Unix ms.
    pub forgotten_ms: i64,
}
