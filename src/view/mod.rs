//! Answers for readers: on the control socket, with `--json` and in tables. The engine creates
//! them; times are Unix ms, keys are numbers.

pub mod board;
pub mod export;
pub mod history;
pub mod restore_report;
mod schemas;
pub mod session;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use utoipa::ToSchema;

use crate::model::Ranking;
use crate::model::WeekKey;
use crate::model::calendar::week_label;
use crate::model::name_hash::NameHash;
use crate::model::outbox::ResyncCursor;
use crate::model::server::ScreenReason;
use crate::view::board::OrderView;
use crate::view::export::EstimatesView;

/// The engine's part of the status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EngineStatus {
    /// The recorded time, Unix ms.
    pub now_ms: i64,
    /// Label of the current week.
    pub week: String,
    /// Weeks that have rows, oldest first, with their phase.
    pub weeks: Vec<WeekStatus>,
    /// Known servers.
    pub servers: u64,
    /// Known servers by class 1 to 7.
    pub servers_by_class: [u64; 7],
    /// Servers of classes 6 and 7 that have not answered. A server whose first scan has not ended is
    /// not one of them.
    #[serde(default)]
    pub servers_failed: u64,
    /// The next scan of one of these servers, Unix ms; `null` if none is planned.
    pub next_retry_ms: Option<i64>,
    /// Interval at which each of these servers is scanned again, s; `null` if they are scanned on
    /// request only.
    pub retry_failed_s: Option<u64>,
    /// Servers that are excluded from rankings.
    pub greylisted: u64,
    /// Scans in progress.
    pub in_flight: u64,
    /// Batches of scan results that wait for the engine.
    #[serde(default)]
    pub outcomes_queued: u64,
    /// Known players (keys).
    pub players_known: u64,
    /// Players on servers now.
    pub players_online: u64,
    /// Counters since the daemon started.
    pub counts: EngineCounts,
    /// First packet of a scheduled scan minus its due time, ms: the 50th percentile since the start.
    /// At most 10,000.
    pub lag_ms_p50: Option<u64>,
    /// As `lag_ms_p50`, the 99th percentile.
    pub lag_ms_p99: Option<u64>,
    /// Memory of all cached boards, bytes: the sum of `memory_bytes` of all windows.
    #[serde(default)]
    pub boards_memory_bytes: u64,
    /// The time zone in which the state counts its weeks.
    #[serde(default)]
    pub time_zone: String,
    /// When everything pending was last in the archive, Unix ms; `None`: never.
    pub archive_complete_ms: Option<i64>,
    /// Types of windows that are being rebuilt from the log, and windows that are being recomputed.
    #[serde(default)]
    pub rebuilding: Vec<String>,
}

/// A week that has rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WeekStatus {
    /// Such as `2026-W47`.
    pub week: String,
    /// Its phase.
    pub phase: crate::model::commit::WeekPhase,
}

/// Counted since the daemon started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EngineCounts {
    /// Full snapshots: scans with a complete list of players.
    pub snapshots: u64,
    /// Full snapshots by class 1 to 7.
    pub snapshots_by_class: [u64; 7],
    /// Scans with an incomplete list of players.
    pub partial_snapshots: u64,
    /// Full snapshots that screening treated as partial.
    #[serde(default)]
    pub implausible_snapshots: u64,
    /// Gains that overflowed a sum of points: the sum stays at the largest number.
    #[serde(default)]
    pub points_saturated: u64,
    /// Scans without an answer.
    pub misses: u64,
    /// Scans of the daemon that became no full snapshot although the server answered, by the class
    /// before the scan.
    #[serde(default)]
    pub partial_snapshots_by_class: [u64; 7],
    /// Scans of the daemon without an answer, by the class before the scan.
    #[serde(default)]
    pub misses_by_class: [u64; 7],
    /// Rounds that ended.
    pub rounds: u64,
    /// Those of them whose last list shows the end of the round.
    #[serde(default)]
    pub rounds_sure: u64,
    /// The sum over all of them: how long the last list was before the end of the round at most, ms; of each at most
    /// 720 s.
    #[serde(default)]
    pub rounds_unseen_ms_max: u64,
    /// Events older than the last one of the server; ignored.
    pub out_of_order: u64,
    /// Scheduled scans that began more than 2 s after their due time.
    pub late_scans: u64,
    /// Scans of servers with players whose time was chosen within the budget.
    #[serde(default)]
    pub elastic_scans: u64,
}

/// The whole site at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// The recorded time, Unix ms.
    pub now_ms: i64,
    /// Label of the current week.
    pub week: String,
    /// Listed servers.
    pub servers: u64,
    /// Servers whose last list shows the current players.
    pub servers_online: u64,
    /// Players on them, without bots.
    pub players_online: u64,
    /// Known players (keys).
    pub players_known: u64,
    /// Games with online servers, those with most players first.
    pub games: Vec<GroupOverview>,
    /// Tags with online servers, those with most players first.
    pub tags: Vec<GroupOverview>,
}

/// Servers in a country, by their addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CountryCount {
    /// Its code (ISO 3166-1).
    pub country: String,
    /// Its name in English.
    pub name: String,
    /// Servers whose last list shows the current players.
    pub servers_online: u64,
}

/// Players and servers online over time: sums of the means of servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OnlineSeriesView {
    /// In slots of ten minutes.
    pub ten_minutes: SlotsView,
    /// In slots of an hour.
    pub hours: SlotsView,
    /// In slots of a day, in the time zone of the site.
    pub days: SlotsView,
    /// In slots of a week, in the time zone of the site.
    pub weeks: SlotsView,
    /// Share of the hours of the running week in which its servers were seen, 0 to 1. `null` until the
    /// first hour of the week is complete.
    pub week_coverage: Option<f64>,
}

/// Slots of time, the newest last; `null`: no server was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Slots)]
pub struct SlotsView {
    /// Start of the newest slot, Unix ms.
    pub newest_ms: i64,
    /// Players: the sum of the means of all servers.
    pub players: Vec<Option<f64>>,
    /// Servers that were seen.
    pub servers: Vec<Option<u32>>,
}

/// The online servers of a game, or with a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupOverview {
    /// Name of the game or tag.
    pub name: String,
    /// Servers whose last list shows the current players.
    pub servers_online: u64,
    /// Players on them, without bots.
    pub players_online: u64,
}

/// A server, as everybody may see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PublicServer {
    /// The number of the server; it never changes.
    pub key: u32,
    /// Such as `quake3://192.0.2.7:27960`.
    pub url: String,
    /// Scan class: 1 is scanned every 2 minutes, 5 weekly; 6 and 7 do not answer.
    #[schema(minimum = 1, maximum = 7)]
    pub class: u8,
    /// Scans without an answer since the last answer.
    pub missed: u32,
    /// The host name as the server sent it, with colour codes; empty if the server was never seen.
    pub hostname: String,
    /// The game; `null` if unknown.
    pub game: Option<String>,
    /// The current map; `null` if unknown.
    pub map: Option<String>,
    /// The last list shows the current players.
    #[serde(default)]
    pub online: bool,
    /// Players now, without bots; 0 if the server does not answer any more.
    pub players: u32,
    /// `players` is not believed, and not used: the server announces more than it can have.
    #[serde(default)]
    pub players_unverified: bool,
    /// The median of the last three counts of players.
    pub assumed_players: u32,
    /// Places for players.
    pub slots: u32,
    /// Rank of the server in the last closed week, from 1; `null` if it is not ranked.
    pub rank: Option<u32>,
    /// When the server was added, Unix ms.
    pub added_ms: i64,
    /// Days of the last 365 on which the server was seen, in the time zone of the site.
    #[serde(default)]
    pub days_seen: u32,
    /// Time of the last scan, Unix ms.
    pub last_scan_ms: Option<i64>,
    /// Time of the last answer, Unix ms.
    pub last_seen_ms: Option<i64>,
    /// Excluded from rankings.
    #[serde(default)]
    pub greylisted: bool,
    /// Tags that an admin has assigned.
    pub tags: Vec<String>,
    /// Reasons why lists, or parts of them, were not used within the last 7 days.
    #[serde(default)]
    pub screened: Vec<ScreenedView>,
    /// The players of the last 25 hours: only if requested, and if the server was ever seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recent: Option<RecentSeriesView>,
}

impl PublicServer {
    /// The number of players; 0 if it is not believed.
    pub fn believed_players(&self) -> u32 {
        if self.players_unverified { 0 } else { self.players }
    }
}

/// A server, as an admin sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerSummary {
    #[serde(flatten)]
    pub public: PublicServer,
    /// Why it is excluded from rankings; `null`: it is not.
    pub greylist_reason: Option<String>,
}

/// A tag of servers that are not removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TagSummary {
    /// The tag.
    pub tag: String,
    /// Servers that have it.
    pub servers: u64,
    /// Servers of them whose last list shows the current players.
    pub servers_online: u64,
    /// Players on them, without bots.
    pub players_online: u64,
}

/// The fields by which a list of servers is filtered.
#[derive(Clone, Debug)]
pub struct ServerFields<'a> {
    pub url: &'a str,
    pub class: u8,
    pub hostname: &'a str,
    pub game: Option<&'a str>,
    pub map: Option<&'a str>,
    pub online: bool,
    pub tags: SmallVec<[&'a str; 2]>,
    pub is_screened: bool,
    pub is_greylisted: bool,
    pub is_removed: bool,
}

/// Mean players in slots of ten minutes, oldest first; `null` is no data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = RecentSeries)]
pub struct RecentSeriesView {
    /// Start of the newest slot, Unix ms.
    pub newest_ten_minutes_ms: i64,
    /// The means.
    pub ten_minutes: Vec<Option<f64>>,
}

/// A server with its players, maps and series, as everybody may see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PublicServerDetail {
    #[serde(flatten)]
    pub server: PublicServer,
    /// The time of the next scan, Unix ms; `null` while a scan is in progress, or if the server is
    /// scanned on request only.
    pub next_scan_ms: Option<i64>,
    /// When scans of the server tell most. Absent: a setting keeps them on the fixed grid, or the state was
    /// read without the daemon, which keeps this in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticView>,
    /// The sum of the points of the last complete list, players only.
    pub total_points: i64,
    /// Bots of the last list that could not be distinguished from players.
    #[serde(default)]
    pub bots_unidentified: u32,
    /// Authentication of the last reply: `address`, `challenge` or `nonce`.
    /// `null` until the first reply after the start of the daemon.
    pub authentication: Option<String>,
    /// What the server publishes about its rules, by the names of the game, at most an hour old or as old as the last answer;
    /// empty until the first answer after the start of the daemon, and for protocols without settings.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// The last 24 maps in the order in which they were seen, the present one last; empty until the map has changed since the
    /// start of the daemon.
    #[serde(default)]
    pub maps_seen: Vec<MapSeen>,
    /// The map that has followed the present one each time since the start of the daemon, twice at least; `null`: none, or several.
    pub next_map: Option<String>,
    /// The players now; empty if the server does not answer any more.
    pub players_listed: Vec<ListedPlayer>,
    /// Mean players over time, newest last; `null` if the server was never seen.
    pub series: Option<SeriesView>,
    /// Maps of the current week, most player time first.
    pub maps: Vec<MapShare>,
    /// The share of the current week, until now, in which the server was seen, 0 to 1.
    #[serde(default)]
    pub coverage: f64,
}

impl PublicServerDetail {
    /// Without the fields that change with time alone, so not only with a scan or a correction.
    pub fn content(&self) -> PublicServerDetail {
        PublicServerDetail { coverage: 0.0, ..self.clone() }
    }
}

/// A server with its players, maps and series, as an admin sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServerDetail {
    #[serde(flatten)]
    pub public: PublicServerDetail,
    /// Why it is excluded from rankings; `null`: it is not.
    pub greylist_reason: Option<String>,
    /// A scan has been started and has not ended.
    #[serde(default)]
    pub scan_in_progress: bool,
    /// Checks from which an admin has exempted the server.
    #[serde(default)]
    pub exempt_checks: Vec<ScreenReason>,
}

/// An entry of a server's list of players.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ListedPlayer {
    /// Normalised: without colour codes.
    pub name: String,
    /// As the server sent it.
    pub display: String,
    /// `null` if the protocol has no points.
    pub points: Option<i64>,
    /// As the server reports it, ms.
    pub ping: Option<i32>,
    /// The number of the player; `null` if the name is not ranked.
    pub player_key: Option<u32>,
    /// The player only watches.
    #[serde(default)]
    pub spectator: bool,
    /// The first list with the player, Unix ms; `null`: it is not known.
    pub since_ms: Option<i64>,
}

/// The running round of a server, and the scans that it may have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ElasticScans)]
pub struct ElasticView {
    /// Why the server is scanned on the fixed grid of its class; absent: it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<ElasticOff>,
    /// Mean number of scans in an interval of class 1.
    pub budget: f64,
    /// The budget was set for this server; otherwise it is the setting `scan.budget`.
    pub has_own_budget: bool,
    /// When the round is expected to end, Unix ms. `null`: unknown, or overdue.
    pub expected_end_ms: Option<i64>,
    /// Before this time the round ends with probability 0.1, Unix ms.
    pub earliest_end_ms: Option<i64>,
    /// Before this time the round ends with probability 0.9, Unix ms.
    pub latest_end_ms: Option<i64>,
    /// What the expected end is computed from; `null`: unknown.
    pub basis: Option<RoundEndBasis>,
    /// Scans that may be made besides; negative: too many were made.
    pub saved_scans: f64,
}

/// Why a server is scanned on the fixed grid of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ElasticOff {
    /// Too few players.
    TooFewPlayers,
    /// It does not answer.
    Missed,
    /// Its last list was not whole.
    NoList,
    /// The server is greylisted.
    Greylisted,
    /// It is boosted.
    Boosted,
}

/// What the expected end of a round is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "from")]
pub enum RoundEndBasis {
    /// Earlier rounds were about equally long.
    RoundLength {
        /// The shortest of them, s.
        shortest_s: u32,
        /// The longest of them, s.
        longest_s: u32,
        /// Number of the last rounds that had such a length.
        rounds: u8,
    },
    /// Earlier rounds ended when a player had about the same number of points.
    PointLimit {
        /// That number.
        points: i64,
        /// Number of the last rounds that ended at such a limit.
        rounds: u8,
    },
}

/// A screening check that has applied to a server within the last 7 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Screened)]
pub struct ScreenedView {
    /// What the check found.
    pub reason: ScreenReason,
    /// The time when it last applied, Unix ms.
    pub applied_ms: i64,
}

/// Mean players of a server over time: for each resolution the start of its newest slot, and the
/// values, oldest first; `null` is no data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ServerSeries)]
pub struct SeriesView {
    /// Start of the newest slot of ten minutes, Unix ms.
    pub newest_ten_minutes_ms: i64,
    /// Means of ten minutes.
    pub ten_minutes: Vec<Option<f64>>,
    /// Start of the newest hour, Unix ms.
    pub newest_hour_ms: i64,
    /// Means of hours.
    pub hours: Vec<Option<f64>>,
    /// Start of the newest day, Unix ms.
    pub newest_day_ms: i64,
    /// Means of days.
    pub days: Vec<Option<f64>>,
    /// Start of the newest week, Unix ms.
    pub newest_week_ms: i64,
    /// Means of weeks.
    pub weeks: Vec<Option<f64>>,
    /// Ranks of the server by week, oldest first; 0: not ranked.
    pub ranks: Vec<u16>,
    /// Start of the newest week of `ranks`, Unix ms; `null` if the server was never ranked.
    pub newest_rank_week_ms: Option<i64>,
}

/// A map of a server in the current week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MapShare {
    /// Its name.
    pub map: String,
    /// How long it was played, minutes.
    pub minutes: f64,
    /// Mean players meanwhile.
    pub average_players: f64,
}

/// A setting that a server publishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Setting {
    /// As the game calls it, at most 40 characters.
    pub name: String,
    /// At most 120 characters.
    pub value: String,
}

/// A map that a server has played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MapSeen {
    /// Its name.
    pub map: String,
    /// The first scan that saw it, Unix ms. Of the first map of the list: the scan that saw the next one.
    pub since_ms: i64,
}

/// The best players of a server in a week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Top {
    /// The URL of the server.
    pub server: String,
    /// Such as `2026-W47`.
    pub week: String,
    /// What the board is ordered by.
    pub ranking: Ranking,
    #[serde(flatten)]
    pub order: OrderView,
    /// The week is closed: the answer does not change any more.
    pub closed: bool,
    /// Players on the board.
    pub size: u64,
    /// The players, best first.
    pub rows: Vec<TopRow>,
}

/// A player of a server's board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopRow {
    /// From 1, best first.
    pub position: u64,
    /// The number of the player; it never changes.
    pub player_key: u32,
    /// Normalised: without colour codes.
    pub name: String,
    /// As a server sent it.
    pub display: String,
    /// The score in its unit: clq1 in points per second, elo as rating, time in seconds, clq2
    /// and points unchanged.
    pub score: f64,
    /// The time when the score was reached, Unix ms.
    pub reached_ms: i64,
    /// Rated rounds, which count for clq2 and elo.
    pub elo_rounds: u32,
    /// Those of them whose winner is sure.
    pub elo_rounds_sure: u32,
}

/// A player in one game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlayerView {
    /// The number of the player; it never changes.
    pub player_key: u32,
    /// The game in which the name is known.
    pub game: String,
    /// Normalised: without colour codes.
    pub name: String,
    /// As a server sent it.
    pub display: String,
    /// Names that were merged into this player, normalised.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Start of the player's first session, Unix ms; `null`: it is not known.
    pub first_seen_ms: Option<i64>,
    /// The last list with the player, Unix ms; `null`: it is not known.
    pub last_seen_ms: Option<i64>,
    /// URLs of the servers on which the player is now.
    #[serde(default)]
    pub online_on: Vec<String>,
    /// Newest week first, then by server URL. Of the last week in the answer there may be only the servers
    /// where the player was longest.
    pub weeks: Vec<PlayerWeekView>,
    /// Labels of the weeks of which `weeks` has only some servers.
    #[serde(default)]
    pub weeks_partial: Vec<String>,
    /// Rows of weeks after these.
    #[serde(default)]
    pub weeks_more: u64,
    /// The number of rows before those: the `skip` of a request for them; `null` if there are none.
    pub weeks_next: Option<u64>,
    /// The best positions in closed weeks on the servers of `weeks`.
    pub best: Vec<BestView>,
    /// The servers of `online_on`, `weeks` and `best`, by URL.
    #[serde(default)]
    pub servers: Vec<ServerNameView>,
}

/// How a server is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerNameView {
    /// Its URL.
    pub url: String,
    /// The host name of the last snapshot; empty if there was none.
    pub hostname: String,
}

/// The name of a player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlayerNameView {
    /// The number of the player; it never changes.
    pub player_key: u32,
    /// The game in which the name is known.
    pub game: String,
    /// Normalised: without colour codes.
    pub name: String,
    /// As a server sent it.
    pub display: String,
    /// The last list with the player, Unix ms; `null`: it is not known.
    pub last_seen_ms: Option<i64>,
}

/// A player on one server in one week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PlayerWeek)]
pub struct PlayerWeekView {
    /// Such as `2026-W47`.
    pub week: String,
    /// Its URL.
    pub server: String,
    /// The part of the time in which points were compared, ms.
    pub measured_ms: u64,
    /// How often the player came to the server.
    pub starts: u32,
    /// Time on the server, ms.
    pub time_ms: u64,
    #[serde(flatten)]
    pub estimates: EstimatesView,
    /// Points made.
    pub points: i64,
    /// CLQ1, in thousandths of a point.
    pub clq1: u64,
    /// CLQ2, in points.
    pub clq2: u64,
    /// ELO rating at the end of the week.
    pub elo: f64,
    /// Rounds that were rated for ELO and CLQ2.
    pub elo_rounds: u32,
    /// Those of them whose winner is sure: the last list shows the end of the round.
    #[serde(default)]
    pub elo_rounds_sure: u32,
    /// Positions by ranking; absent if not ranked.
    pub positions: std::collections::BTreeMap<Ranking, u32>,
}

/// One of the best positions of a player on a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = BestPosition)]
pub struct BestView {
    /// Its URL.
    pub server: String,
    /// Ranking of the board.
    pub ranking: Ranking,
    /// From 1, best first.
    pub position: u32,
    /// Such as `2026-W47`.
    pub week: String,
}

/// The daemon's view of the system clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClockStatus {
    /// Whether the clock is trusted to close weeks, and why.
    pub trust: ClockTrust,
    /// Whether the clock is synchronised; `null`: unknown.
    pub synchronised: Option<bool>,
    /// While it is not trusted: the time until it is, if it does not jump, ms.
    pub trusted_in_ms: Option<i64>,
    /// The recorded time, Unix ms.
    pub now_ms: i64,
    /// The time of the system clock, Unix ms.
    pub system_ms: i64,
    /// Recorded time minus system time, ms; 0 if it is not ahead.
    pub ahead_ms: i64,
    /// The size of a large forward jump of the system clock that recorded time has not adopted,
    /// ms.
    pub pending_jump_ms: i64,
    /// The last jump of the system clock since the start, ms, negative if backward.
    pub last_jump_ms: Option<i64>,
    /// The recorded time of that jump, Unix ms.
    pub last_jump_at_ms: Option<i64>,
    /// A week that has ended but is not closed, because the clock is not trusted or because by
    /// the system clock it has not ended.
    pub week_pending_close: Option<String>,
}

/// Why the clock is trusted, or that it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockTrust {
    /// The clock is not trusted yet, or no longer.
    Untrusted,
    Synchronised,
    /// It is not synchronised, but has run without a jump for long enough.
    Stable,
    /// An admin accepted it.
    Accepted,
}

/// The position of a resync: everything before it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResyncProgress {
    /// What is being written.
    pub step: ResyncTarget,
    /// The next key; the key of the server in `weeks`. `null` if the step writes no keys in
    /// order, or has not begun.
    pub key: Option<u32>,
    /// The week that is being written, in `weeks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub week: Option<String>,
}

/// What a step of a resync writes, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResyncTarget {
    Games,
    Maps,
    /// Merged and forgotten players.
    RemovedPlayers,
    Servers,
    Players,
    Weeks,
    BestPositions,
    Sessions,
    /// Everything is written.
    End,
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
                ResyncProgress { week: Some(week_label(week)), ..at(ResyncTarget::Weeks, server.0) }
            }
            ResyncCursor::BestPositions { server, .. } => at(ResyncTarget::BestPositions, server.0),
            ResyncCursor::Sessions { .. } => whole(ResyncTarget::Sessions),
            ResyncCursor::End => whole(ResyncTarget::End),
        }
    }
}

impl std::fmt::Display for ResyncProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.step {
            ResyncTarget::Games => "games",
            ResyncTarget::Maps => "maps",
            ResyncTarget::RemovedPlayers => "merged and forgotten players",
            ResyncTarget::Servers => "servers",
            ResyncTarget::Players => "players",
            ResyncTarget::Weeks => "weeks",
            ResyncTarget::BestPositions => "best positions",
            ResyncTarget::Sessions => "sessions",
            ResyncTarget::End => "end",
        })?;
        if let Some(week) = &self.week {
            write!(f, ", {week}")?;
        }
        self.key.map_or(Ok(()), |key| write!(f, ", key {key}"))
    }
}

/// The effect of an admin's correction of a player, a tag, a week or the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Correction {
    /// All data of player `player_key` belongs to `into_key`.
    Merged {
        /// The number of the player whose data and name moved to the other one.
        player_key: u32,
        /// The number of the player who remains.
        into_key: u32,
        /// Rows of servers that were merged, in all windows.
        rows: u64,
    },
    /// All data of the player is deleted, and these names are never stored again.
    Forgotten {
        /// The number that the player had.
        player_key: u32,
        /// Rows of servers that were deleted, in all windows.
        rows: u64,
        /// Hashes of the names.
        #[schema(value_type = Vec<String>)]
        hashes: Vec<NameHash>,
        /// What happened to the capture files; absent if captures are off.
        #[serde(skip_serializing_if = "Option::is_none")]
        captures: Option<CaptureDeletion>,
    },
    /// The name with this hash is allowed again.
    Allowed {
        /// The hash.
        #[schema(value_type = String)]
        hash: NameHash,
    },
    /// The tag was deleted, with its boards and ratings.
    TagDropped {
        /// The tag.
        tag: String,
        /// Servers that had it.
        servers: u64,
    },
    /// The week is reopened, and closed again when it has ended.
    WeekReopened {
        /// Such as `2026-W47`.
        week: String,
        /// It was open before.
        already_open: bool,
        /// An earlier request is reopening it.
        #[serde(default)]
        in_progress: bool,
    },
    /// The running windows are being recomputed.
    Recomputing {
        /// These windows.
        windows: Vec<String>,
        /// Windows of which the log has only a part; they are kept.
        kept: Vec<String>,
    },
    /// Recorded time was set back. Closed weeks that have not ended are reopened.
    TimeReset {
        /// Recorded time before, Unix ms.
        previous_ms: i64,
        /// Recorded time now, Unix ms.
        now_ms: i64,
        /// Servers that had been scanned later.
        servers: u64,
        /// Weeks that are open again.
        reopened: Vec<String>,
        /// The current week, if its rows are no longer in the state: scans of it are not credited.
        uncredited_week: Option<String>,
    },
}

/// The deletion of all capture files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureDeletion {
    /// All were deleted.
    Deleted {
        /// Their number.
        files: u64,
    },
    /// At least one file is left.
    Failed {
        /// Why.
        error: String,
    },
}

/// A name that is never stored again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForgottenName {
    /// The hash of the game and the name.
    #[schema(value_type = String)]
    pub hash: NameHash,
    /// When it was forgotten, Unix ms.
    pub forgotten_ms: i64,
}
