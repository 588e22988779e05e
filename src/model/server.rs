//! A server's record: its properties, its last snapshot with the present players, and the sums
//! in progress (docs/rules.md sections 3, 9 and 10).

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use strum::{IntoStaticStr, VariantArray};

use super::name::Name;
use super::row::{MapRow, PlayerRow};
use super::scan_budget::ScanBudget;
use super::session::Session;
use super::url::ServerUrl;
use super::window::WindowKey;
use crate::model::calendar::WEEK_MS;
use crate::model::keys::{GameKey, MapKey, PlayerKey, TagKey, WeekKey};

/// Scan classes 1 to 7 (docs/rules.md section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Class(u8);

impl Class {
    /// Unknown: a new address, or too many missed scans.
    pub const UNKNOWN: Class = Class(6);
    /// A scan of a server of class 6 or 7 failed. Scanned in exception mode.
    pub const FAILED: Class = Class(7);

    pub fn new(number: u8) -> Option<Class> {
        (1..=7).contains(&number).then_some(Class(number))
    }

    pub fn number(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Class {
    type Error = String;
    fn try_from(n: u8) -> Result<Class, String> {
        Class::new(n).ok_or_else(|| format!("scan class {n} is not one of 1 to 7"))
    }
}

impl From<Class> for u8 {
    fn from(class: Class) -> u8 {
        class.0
    }
}

/// All data of one server except its series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerRecord {
    pub url: ServerUrl,
    /// Assigned by the admin; each is a scope of boards (docs/rules.md section 8). Some may have been
    /// deleted since.
    pub tags: Vec<TagKey>,
    /// Why it is greylisted: scanned and shown, ignored by statistics.
    pub greylist_reason: Option<String>,
    /// Removed by the admin: not scanned, not listed, its history kept.
    pub removed: bool,
    pub added_ms: i64,
    pub class: Class,
    /// Scans missed since the last snapshot.
    pub missed: u32,
    pub last_scan_ms: Option<i64>,
    pub last_seen_ms: Option<i64>,
    pub game: Option<GameKey>,
    pub map: Option<MapKey>,
    pub hostname: String,
    pub slots: u32,
    /// Rank by player-seconds in `rank_week`, 1 is best.
    pub rank: Option<u32>,
    pub rank_week: Option<WeekKey>,
    /// Counts of non-bot players of the last three snapshots, oldest first.
    pub counts: ArrayVec<u32, 3>,
    /// The count shown now: of the last snapshot, or of a later partial one.
    pub count: u32,
    /// Sum of points of the last complete list, players only.
    pub total_points: i64,
    pub last_snapshot: Option<LastSnapshot>,
    pub map_time: Option<CurrentMapRow>,
    pub sums: SeriesSums,
    /// State of the screening; `None`: nothing yet.
    pub screening: Option<Box<Screening>>,
    /// Records that a version before rules 2 wrote end here.
    pub recent: RecentLists,
    /// Added by an import, and never by hand.
    pub imported: bool,
    /// How often it is scanned while it has players; `None`: as the setting says.
    pub scan_budget: Option<ScanBudget>,
}

/// What the lists before and after the last full one still say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecentLists {
    /// Players of the full list before the last one who are not in the last one, with their points. Empty
    /// unless the two lists are close in time (docs/rules.md section 4).
    pub left: Vec<(PlayerKey, i64)>,
    /// The points of the last full list are those of the list shortly before it (docs/rules.md section 4).
    pub unchanged: bool,
    /// The last partial list whose count was used, if it is newer than the last full one.
    pub partial: Option<PartialList>,
    /// `count` is only shown (docs/rules.md section 14.7).
    pub count_unverified: bool,
}

/// A partial list whose count was used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartialList {
    pub t_ms: i64,
    /// The map that time is counted for.
    pub map: Option<MapKey>,
}

impl ServerRecord {
    /// The present players, by the last list.
    pub fn presences(&self) -> impl Iterator<Item = &Presence> {
        self.last_snapshot.iter().flat_map(|last| &last.entries).filter_map(|entry| entry.presence.as_ref())
    }

    /// The players by the last count; 0 if that is not believed.
    pub fn believed_count(&self) -> u32 {
        if self.recent.count_unverified { 0 } else { self.count }
    }

    /// The last count that was believed, which the class follows: one that is not believed says nothing.
    pub fn last_believed_count(&self) -> u32 {
        if self.recent.count_unverified { self.counts.last().copied().unwrap_or(0) } else { self.count }
    }

    /// Whether the server was added or restored and no scan has ended since. A server with too many
    /// missed scans is also of class 6, but its `missed` is not 0.
    pub fn awaits_first_scan(&self) -> bool {
        self.class == Class::UNKNOWN && self.missed == 0 && !self.removed
    }
}

/// The part of the last full snapshot that is compared with the next one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastSnapshot {
    pub t_ms: i64,
    pub map: MapKey,
    /// The map's name if it was counted as another map, because the server may not introduce
    /// more maps (docs/rules.md section 14.4).
    pub map_without_key: Option<Name>,
    /// The game to which the players of the entries belong.
    pub game: GameKey,
    /// All non-bot entries, usable or not, including spectators, in the order of the list.
    pub entries: Vec<PlayerEntry>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlayerEntry {
    /// As the server wrote it; empty if it equals `name`.
    pub display: Name,
    /// Normalised.
    pub name: Name,
    /// `None`: the protocol has no points.
    pub points: Option<i64>,
    pub ping: Option<i32>,
    /// Watches and does not play (docs/rules.md section 14.5).
    pub spectator: bool,
    /// `None`: the name is unusable (docs/rules.md section 2), or the entry is a spectator.
    pub presence: Option<Presence>,
}

impl PlayerEntry {
    /// A player who left, with the points of the last list that had the player. The name is empty, and the
    /// rows are not loaded.
    pub fn who_left(player: PlayerKey, points: i64) -> PlayerEntry {
        let rows = PresenceRows::new();
        PlayerEntry {
            display: Name::default(),
            name: Name::default(),
            points: Some(points),
            ping: None,
            spectator: false,
            presence: Some(Presence { player, segment_start_ms: 0, segment_points: 0.0, rows, session: None }),
        }
    }

    pub fn display(&self) -> &str {
        if self.display.is_empty() { &self.name } else { &self.display }
    }

    /// Points of a player who takes part in rounds; `None`: a spectator, or an entry without
    /// points.
    pub fn playing_points(&self) -> Option<i64> {
        self.points.filter(|_| !self.spectator)
    }
}

/// State of the screening of a server's lists (docs/rules.md section 14).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Screening {
    /// Normalised names seen in lists that only had bots, the most recently seen last. At most
    /// [`crate::limits::BOT_NAMES_MAX`].
    pub bot_names: Vec<Name>,
    /// Bots of the last full list that could not be distinguished from players.
    pub bots_unidentified: u32,
    /// The unchanged list; `None`: the last one has too few entries.
    pub unchanged: Option<UnchangedList>,
    /// New keys introduced by the server on one day.
    pub introduced: NewKeyCounts,
    /// Reasons that have applied, in order, each with the time when it last did, Unix ms.
    pub reasons_applied: Vec<(ScreenReason, i64)>,
    /// Reasons from which an admin has exempted the server, as bits in the order of
    /// [`ScreenReason::ALL`].
    pub exempt: u8,
}

/// A list that has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnchangedList {
    /// Digest of the map, and of names and points in any order.
    pub digest: u64,
    /// The time when it was first received, Unix ms.
    pub since_ms: i64,
}

/// Keys assigned for names from one server on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewKeyCounts {
    /// Local day as numbered by [`crate::model::calendar::Calendar::day`].
    pub day: i64,
    pub games: u32,
    pub maps: u32,
    pub names: u32,
}

/// Why a list, or a part of it, is not credible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ScreenReason {
    MorePlayersThanSlots,
    FrozenList,
    TooManyNewGames,
    TooManyNewMaps,
    TooManyNewNames,
    ImpossibleGain,
    UnverifiedCount,
}

impl ScreenReason {
    pub const ALL: &'static [ScreenReason] = ScreenReason::VARIANTS;

    /// The name in JSON, MySQL and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn from_name(name: &str) -> Option<ScreenReason> {
        ScreenReason::ALL.iter().copied().find(|reason| reason.name() == name)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Screening {
    pub fn is_exempt(&self, reason: ScreenReason) -> bool {
        self.exempt & reason.bit() != 0
    }

    pub fn set_exempt(&mut self, reason: ScreenReason, exempt: bool) {
        self.exempt = if exempt { self.exempt | reason.bit() } else { self.exempt & !reason.bit() };
    }

    pub fn record_reason(&mut self, reason: ScreenReason, t_ms: i64) {
        match self.reasons_applied.binary_search_by_key(&reason, |(applied, _)| *applied) {
            Ok(at) => self.reasons_applied[at].1 = t_ms,
            Err(at) => self.reasons_applied.insert(at, (reason, t_ms)),
        }
    }

    /// Reasons that are reported at `now_ms`, each with the time when it last applied.
    pub fn reasons(&self, now_ms: i64) -> impl Iterator<Item = (ScreenReason, i64)> + '_ {
        self.reasons_applied.iter().copied().filter(move |(_, applied_ms)| now_ms - applied_ms < REASON_TTL_MS)
    }

    pub fn exempt_reasons(&self) -> impl Iterator<Item = ScreenReason> + '_ {
        ScreenReason::ALL.iter().copied().filter(|reason| self.is_exempt(*reason))
    }
}

/// How long a reason is reported after it last applied: 7 days.
const REASON_TTL_MS: i64 = WEEK_MS;

/// Usually there are only weeks: one cache miss for the row, none for the window key.
pub type PresenceRows = SmallVec<[(WindowKey, Box<PlayerRow>); 1]>;

/// A player from joining to leaving.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Presence {
    pub player: PlayerKey,
    /// Start of the current segment of 720 s, Unix ms.
    pub segment_start_ms: i64,
    /// Points gained in the current segment.
    pub segment_points: f64,
    /// The player's row of each window, while it is newer than the stored one; in order of
    /// window. Boxed, so that it is not copied on its way to the next commit.
    pub rows: PresenceRows,
    /// `None`: it is complete, because the server has been invisible for too long, or the player is only in
    /// a final list.
    pub session: Option<Session>,
}

impl Presence {
    pub fn row(&self, window: WindowKey) -> Option<&PlayerRow> {
        self.rows.iter().find(|(w, _)| *w == window).map(|(_, row)| &**row)
    }

    pub fn row_mut(&mut self, window: WindowKey) -> Option<&mut PlayerRow> {
        self.rows.iter_mut().find(|(w, _)| *w == window).map(|(_, row)| &mut **row)
    }
}

/// The row of the current map, while it is newer than the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentMapRow {
    pub week: WeekKey,
    pub map: MapKey,
    pub row: MapRow,
}

/// Sums of the slots in progress (docs/rules.md section 10). A mean is `sum / n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesSums {
    /// Number of the current slot: Unix ms / 600,000. All sums belong to the slot, hour, day
    /// and week that contain it.
    pub slot: i64,
    pub slot_sum: f64,
    pub slot_n: u32,
    pub hour_sum: f64,
    pub hour_n: u32,
    pub day_sum: f64,
    pub day_n: u32,
    pub week_sum: f64,
    pub week_n: u32,
}

/// A server's series, encoded as in docs/rules.md section 10. Oldest value first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesRecord {
    /// Start of the newest slot of each series, Unix ms; 0 while it is empty.
    pub newest_ten_minutes_ms: i64,
    pub newest_hour_ms: i64,
    pub newest_day_ms: i64,
    pub newest_week_ms: i64,
    /// 250 bytes: 150 slots of 10 minutes, 13 bits each.
    #[serde(with = "super::byte_list")]
    pub ten_minutes: Vec<u8>,
    /// 768 bytes: hours, 8 bits each.
    #[serde(with = "super::byte_list")]
    pub hours: Vec<u8>,
    /// 365 bytes: days.
    #[serde(with = "super::byte_list")]
    pub days: Vec<u8>,
    /// One byte for each week, kept permanently.
    #[serde(with = "super::byte_list")]
    pub weeks: Vec<u8>,
    /// 110 bytes: 55 weekly ranks, u16 big-endian.
    #[serde(with = "super::byte_list")]
    pub ranks: Vec<u8>,
    /// Week of the newest rank.
    pub newest_rank_week: Option<WeekKey>,
}

/// The name of a player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerRecord {
    pub game: GameKey,
    /// Normalised.
    pub name: Name,
    /// As last seen, including colour codes.
    pub display: Name,
}
