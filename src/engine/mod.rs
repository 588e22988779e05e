//! The engine: takes events, returns probes, notices and commits.
//!
//! It is built on the pure modules (`rank`, `schedule`, `series`, `board`) and owns the live
//! state of every server. It has no clock and does no IO: each event contains the time, and
//! what is not in memory is read through [`StateReader`]. The caller takes a [`Commit`] and
//! applies it to the store before it handles the next event. A commit contains all changes
//! since the previous one, so a crash loses only changes that were never visible outside.

mod boards;
mod corrections;
mod lag_histogram;
mod names;
mod online;
mod outbox;
mod player_windows;
mod rows;
mod servers;
mod settings;
mod snapshot;
mod tags;
mod view;
mod week_close;
mod windows;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};
pub use settings::EngineSettings;
pub use view::ViewError;

pub use crate::engine::boards::build::{BuildPlan, WindowReader, Workers};
use crate::engine::boards::cache;
pub use crate::engine::boards::cache::{Group, WindowBoards};
pub use crate::engine::boards::query::BoardAnswer;
pub use crate::engine::corrections::forget::ForgetResult;
pub use crate::engine::corrections::reset_time::TimeReset;
pub use crate::engine::corrections::{CorrectionError, MergeResult, RemovedPlayer};
pub use crate::engine::servers::{Added, AdminError, RescanTarget};
use crate::engine::week_close::reopen;
pub use crate::engine::week_close::reopen::ReopenError;
pub use crate::engine::windows::import::{RebuiltState, WindowImport};
use crate::model::calendar::Calendar;
use crate::model::commit::{Corrections, MapRowKey, Meta, RowKey, WeekPhase, WeekState};
use crate::model::name::Name;
use crate::model::packed_row::PackedRow;
use crate::model::row::{BestPositions, MapRow, PlayerRow, PlayerWindow};
use crate::model::server::{Class, PlayerRecord, SeriesRecord, ServerRecord};
use crate::model::view::EngineCounts;
use crate::model::{
    Commit, Completeness, GameKey, MapKey, NameHash, OutboxEntry, OutboxKey, PlayerKey, ServerKey, ServerUrl, Snapshot,
    TagKey, WeekKey, WindowKey, WindowType,
};
use crate::rank::player_list::{NameFamily, NameIndex};
use crate::schedule::Schedule;

/// What the engine reads from committed state. Reads see every applied commit.
pub trait StateReader {
    type Error: std::error::Error + Send + Sync + 'static;

    /// Key and display name of a player.
    fn player(&self, game: GameKey, name: &str) -> Result<Option<(PlayerKey, Name)>, Self::Error>;
    fn player_record(&self, player: PlayerKey) -> Result<Option<PlayerRecord>, Self::Error>;
    /// Returns at most `most` players with a key above `after` (from the first, without one).
    fn players_after(
        &self,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, PlayerRecord)>, Self::Error>;
    /// All players with this normalised name, in order of game.
    fn players_named(&self, name: &str) -> Result<Vec<(GameKey, PlayerKey)>, Self::Error>;
    /// Aliases of a player: names other than the one in their record, in order.
    fn aliases(&self, player: PlayerKey) -> Result<Vec<String>, Self::Error>;
    /// What happened to a removed player. `None`: the player exists or never existed.
    fn gone(&self, player: PlayerKey) -> Result<Option<RemovedPlayer>, Self::Error>;
    /// Returns at most `most` removed players with a key above `after` (from the first, without
    /// one).
    fn gone_after(&self, after: Option<PlayerKey>, most: usize) -> Result<Vec<PlayerKey>, Self::Error>;

    fn row(&self, key: RowKey) -> Result<Option<PlayerRow>, Self::Error>;
    /// Rows of a server, in order of player key.
    fn rows(&self, window: WindowKey, server: ServerKey) -> Result<Vec<(PlayerKey, PlayerRow)>, Self::Error>;
    /// Returns at most `most` rows of a server with a player key above `after` (from the first,
    /// without one).
    fn rows_after(
        &self,
        window: WindowKey,
        server: ServerKey,
        after: Option<PlayerKey>,
        most: usize,
    ) -> Result<Vec<(PlayerKey, PlayerRow)>, Self::Error>;
    fn player_window(&self, window: WindowKey, player: PlayerKey) -> Result<Option<PlayerWindow>, Self::Error>;
    /// Whether all records of a deleted window are deleted.
    fn is_swept(&self, window: WindowKey) -> bool;

    fn map_row(&self, key: MapRowKey) -> Result<Option<MapRow>, Self::Error>;
    /// In order of map key.
    fn map_rows(&self, week: WeekKey, server: ServerKey) -> Result<Vec<(MapKey, MapRow)>, Self::Error>;

    fn best(&self, server: ServerKey, player: PlayerKey) -> Result<Option<BestPositions>, Self::Error>;
    /// Servers on which a player has best positions, in order.
    fn servers_with_best(&self, player: PlayerKey) -> Result<Vec<ServerKey>, Self::Error>;
    fn rank(&self, week: WeekKey, server: ServerKey) -> Result<Option<u32>, Self::Error>;

    /// Entries after `after` (from the first, without one) in archiving order.
    fn outbox(&self, after: Option<OutboxKey>, limit: usize) -> Vec<OutboxEntry>;
    fn outbox_len(&self) -> usize;
    /// Whether the outbox contains an entry of this week.
    fn outbox_holds_week(&self, week: WeekKey) -> bool;
}

/// The part of the state that is held in memory, as the store returns it at start.
#[derive(Debug, Default)]
pub struct LoadedState {
    pub meta: Meta,
    pub games: Vec<(GameKey, String)>,
    pub maps: Vec<(MapKey, String)>,
    pub tags: Vec<(TagKey, String)>,
    pub servers: Vec<(ServerKey, ServerRecord, Option<SeriesRecord>)>,
    /// Hashes of forgotten names, each with the time of the request, Unix ms.
    pub forgotten: Vec<(NameHash, i64)>,
    /// For the week that is being closed: its closed servers in order of key, each with its
    /// player-milliseconds.
    pub closed_servers: Option<(WeekKey, Vec<(ServerKey, u64)>)>,
}

/// Input of the engine, except requests of an admin.
#[derive(Clone, Debug)]
pub enum Event {
    /// A scan that the engine requested has ended.
    Scanned { server: ServerKey, id: u64, sent_ms: Option<i64>, outcome: Outcome },
    /// A scan from a scan log, in order of time. An unknown server is added.
    Replayed { url: ServerUrl, outcome: Outcome },
    /// Time passes. Sent once in every [`Engine::tick_interval_ms`].
    Tick { now_ms: i64 },
}

/// How a scan ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    Snapshot(Snapshot),
    Miss { t_ms: i64, reason: String },
}

impl Outcome {
    pub fn t_ms(&self) -> i64 {
        match self {
            Outcome::Snapshot(snapshot) => snapshot.t_ms,
            Outcome::Miss { t_ms, .. } => *t_ms,
        }
    }

    /// Returns this outcome without its player list, which only shows that the server is alive.
    /// The scan log of a greylisted server contains such outcomes, because a replay does not
    /// know the greylist.
    pub fn without_list(&self) -> Outcome {
        match self {
            Outcome::Snapshot(snapshot) => {
                let count = match snapshot.completeness {
                    Completeness::Full => snapshot.count.or(Some(snapshot.players.len() as u32)),
                    Completeness::Partial => snapshot.count,
                };
                let completeness = Completeness::Partial;
                Outcome::Snapshot(Snapshot { players: Vec::new(), completeness, count, ..snapshot.clone() })
            }
            miss => miss.clone(),
        }
    }

    /// Blanks these names, which are given as the server wrote them. The entries remain.
    pub fn with_blanked_names(mut self, names: &[Name]) -> Outcome {
        if let (Outcome::Snapshot(snapshot), false) = (&mut self, names.is_empty()) {
            snapshot.players.iter_mut().filter(|it| names.contains(&it.name)).for_each(|it| it.name.clear());
        }
        self
    }

    /// Clamps the time of the outcome to `least_ms..=most_ms`. Outcomes arrive over several
    /// sockets, and one that timed out has the time of its last datagram, but a scan log must
    /// be in order of time. After the clock was set back, outcomes in flight may have future
    /// times.
    pub fn clamped_to(mut self, least_ms: i64, most_ms: i64) -> Outcome {
        let (Outcome::Snapshot(Snapshot { t_ms, .. }) | Outcome::Miss { t_ms, .. }) = &mut self;
        *t_ms = least_ms.max(most_ms.min(*t_ms));
        self
    }
}

/// A scan to send now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub id: u64,
    pub server: ServerKey,
    pub url: ServerUrl,
    /// Class 7: three times the timeout and retries, every protocol.
    pub exception_mode: bool,
    pub due_ms: i64,
}

/// A scan has ended. Tasks that wait for the scan of this server are notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub server: ServerKey,
    pub t_ms: i64,
    pub requested: bool,
    /// It replied, but the list was not complete.
    pub partial: bool,
    pub class_before: Class,
    pub class: Class,
    /// First packet minus due time, ms.
    pub lag_ms: Option<i64>,
    /// Why there was no reply; `None`: the server replied.
    pub missed: Option<String>,
}

/// How many records are cached across commits, so that they are not read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// Names, about 70 bytes each.
    pub names_max: usize,
    /// Records of players in windows, about 160 bytes each.
    pub player_windows_max: usize,
}

impl Default for CacheLimits {
    fn default() -> CacheLimits {
        // Few names: servers choose them, and could make all of them collide in a hash table.
        CacheLimits { names_max: 10_000, player_windows_max: 2_000_000 }
    }
}

/// One server in memory.
#[derive(Debug)]
struct ServerState {
    record: ServerRecord,
    series: Option<Box<SeriesRecord>>,
    scan_requested: bool,
    /// How the names of the last list were read; `None` until the first list after the start.
    name_index: Option<(NameFamily, NameIndex)>,
}

/// The engine. See the module documentation.
#[derive(Debug)]
pub struct Engine {
    /// Index is the server key; 0 is never used.
    servers: Vec<Option<ServerState>>,
    by_url: FxHashMap<ServerUrl, ServerKey>,
    schedule: Schedule,
    notices: VecDeque<Notice>,
    counts: EngineCounts,
    lag_histogram: lag_histogram::LagHistogram,
    online: online::OnlineExpiry,
    week_close: Option<week_close::WeekClose>,
    /// Weeks that end later are not closed, Unix ms. The driver, which knows the clock, sets
    /// it.
    close_limit_ms: i64,
    reopening: Option<reopen::Reopening>,
    /// A week of a server that is being archived in parts.
    large_week: Option<outbox::LargeWeek>,
    large_week_reads: u64,
    /// Servers that had a deleted tag and were not written since.
    servers_to_untag: BTreeSet<ServerKey>,
    /// Tags with this key or a higher one did not exist when the rebuild of windows began.
    rebuild_tag_limit: TagKey,
    global: GlobalState,
}

/// All state of the engine except the servers: rules, key tables, and the changes for the next
/// commit.
#[derive(Debug)]
struct GlobalState {
    settings: EngineSettings,
    calendar: Calendar,
    meta: Meta,
    games: KeyTable,
    maps: KeyTable,
    tags: KeyTable,
    /// The windows that snapshots are credited to now.
    current_windows: windows::CurrentWindows,
    name_cache: names::NameCache,
    player_windows: player_windows::PlayerWindowCache,
    cache_limits: CacheLimits,
    board_cache: cache::BoardCache,
    /// Window types that differ from those in the state.
    changed_types: Vec<WindowType>,
    /// Windows that are being imported: some of their rows are in the store already.
    importing: Vec<WindowKey>,
    pending: Pending,
    /// The first player key without any record in the store: this player and later ones are new
    /// since the last commit.
    first_uncommitted_player: PlayerKey,
    /// Hashes of forgotten names, each with the time of the request, Unix ms.
    forgotten: FxHashMap<NameHash, i64>,
    /// Forgotten names that were found in the last outcome.
    blanked_names: Vec<Name>,
    /// Gains that overflowed a sum of points, since the start.
    points_saturated: u64,
}

/// Changes since the last commit.
#[derive(Debug, Default)]
struct Pending {
    meta: bool,
    games: Vec<(GameKey, String)>,
    maps: Vec<(MapKey, String)>,
    tags: Vec<(TagKey, String)>,
    players: names::PendingPlayers,
    servers: FxHashSet<ServerKey>,
    series: FxHashSet<ServerKey>,
    rows: FxHashMap<(WindowKey, ServerKey), BTreeMap<PlayerKey, PackedRow>>,
    /// Rows in `rows`, in total.
    rows_len: usize,
    map_rows: FxHashMap<(WeekKey, ServerKey), BTreeMap<MapKey, MapRow>>,
    best: FxHashMap<(ServerKey, PlayerKey), BestPositions>,
    /// The records in `best` that are not stored yet.
    new_best: Vec<(PlayerKey, ServerKey)>,
    closed_servers: Vec<(WeekKey, ServerKey, u64)>,
    ranks: FxHashMap<(WeekKey, ServerKey), u32>,
    outbox: FxHashSet<OutboxKey>,
    acknowledged: Vec<(OutboxKey, u64)>,
    deleted_windows: Vec<WindowKey>,
    corrections: Corrections,
}

/// Names with keys from 1 in order of appearance.
#[derive(Debug, Default)]
struct KeyTable {
    by_name: FxHashMap<String, u32>,
    names: Vec<String>,
}

impl KeyTable {
    fn load(entries: impl Iterator<Item = (u32, String)>) -> KeyTable {
        let mut table = KeyTable::default();
        for (key, name) in entries {
            let index = key as usize - 1;
            if table.names.len() <= index {
                table.names.resize(index + 1, String::new());
            }
            table.names[index].clone_from(&name);
            table.by_name.insert(name, key);
        }
        table
    }

    /// Assigns keys from `next` on: earlier names may have been deleted.
    fn with_next_key(mut self, next: u32) -> KeyTable {
        self.names.resize(next as usize - 1, String::new());
        self
    }

    /// The key of a name, and whether it is new.
    fn intern(&mut self, name: &str) -> (u32, bool) {
        if let Some(&key) = self.by_name.get(name) {
            return (key, false);
        }
        self.names.push(name.to_owned());
        let key = self.names.len() as u32;
        self.by_name.insert(name.to_owned(), key);
        (key, true)
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// Names that have ever had a key.
    fn len(&self) -> u32 {
        self.names.len() as u32
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| !name.is_empty())
    }

    fn keys(&self) -> impl Iterator<Item = u32> {
        self.by_name.values().copied()
    }

    /// Deletes a name. Its key is never reused.
    fn remove(&mut self, name: &str) -> Option<u32> {
        let key = self.by_name.remove(name)?;
        self.names[key as usize - 1].clear();
        Some(key)
    }

    fn name(&self, key: u32) -> &str {
        key.checked_sub(1).and_then(|i| self.names.get(i as usize)).map_or("", String::as_str)
    }
}

impl Engine {
    /// Error: the state was counted in another time zone.
    pub fn new(settings: EngineSettings, loaded: LoadedState) -> Result<Engine, ZoneChanged> {
        let calendar = *settings.windows.calendar();
        let mut meta = loaded.meta;
        if meta.time_zone.is_empty() {
            meta.time_zone = calendar.zone_name().to_owned();
            (meta.next_player, meta.next_server, meta.next_map, meta.next_game, meta.next_tag) = (1, 1, 1, 1, 1);
        } else if meta.time_zone != calendar.zone_name() {
            return Err(ZoneChanged { state: meta.time_zone, config: calendar.zone_name().to_owned() });
        }
        let next_tag = meta.next_tag;
        let mut engine = Engine {
            servers: Vec::new(),
            by_url: FxHashMap::default(),
            schedule: Schedule::new(settings.intervals),
            notices: VecDeque::new(),
            counts: EngineCounts::default(),
            lag_histogram: lag_histogram::LagHistogram::default(),
            online: online::OnlineExpiry::default(),
            week_close: loaded.closed_servers.map(|(week, closed)| week_close::WeekClose::new(week, closed)),
            close_limit_ms: i64::MAX,
            reopening: None,
            large_week: None,
            large_week_reads: 0,
            servers_to_untag: BTreeSet::new(),
            rebuild_tag_limit: TagKey(0),
            global: GlobalState {
                calendar,
                games: KeyTable::load(loaded.games.into_iter().map(|(k, n)| (k.0, n))),
                maps: KeyTable::load(loaded.maps.into_iter().map(|(k, n)| (k.0, n))),
                tags: KeyTable::load(loaded.tags.into_iter().map(|(k, n)| (k.0, n))).with_next_key(next_tag),
                current_windows: windows::CurrentWindows::default(),
                name_cache: match meta.next_player {
                    1 => names::NameCache::of_empty_store(),
                    _ => names::NameCache::default(),
                },
                player_windows: player_windows::PlayerWindowCache::default(),
                cache_limits: CacheLimits::default(),
                board_cache: cache::BoardCache::default(),
                changed_types: Vec::new(),
                importing: Vec::new(),
                pending: Pending::default(),
                first_uncommitted_player: PlayerKey(meta.next_player),
                forgotten: loaded.forgotten.into_iter().collect(),
                blanked_names: Vec::new(),
                points_saturated: 0,
                meta,
                settings,
            },
        };
        let now_ms = engine.global.meta.now_ms;
        for (key, record, series) in loaded.servers {
            let index = key.0 as usize;
            if engine.servers.len() <= index {
                engine.servers.resize_with(index + 1, || None);
            }
            engine.by_url.insert(record.url.clone(), key);
            // Adding a server requests a scan; the request outlives a crash.
            let asked = record.awaits_first_scan();
            if asked {
                engine.schedule.schedule_now(key, now_ms);
            } else if !record.removed {
                engine.schedule.schedule_next(key, record.class, now_ms);
            }
            engine.servers[index] =
                Some(ServerState { record, series: series.map(Box::new), scan_requested: asked, name_index: None });
            engine.queue_expiry_at_start(key);
        }
        engine.servers_to_untag = engine.servers_with_deleted_tags();
        engine.apply_window_settings();
        engine.global.update_board_orders();
        engine.archive_changed_orders();
        Ok(engine)
    }

    /// Handles one event.
    pub fn handle<S: StateReader>(&mut self, source: &S, event: Event) -> Result<(), S::Error> {
        match event {
            Event::Scanned { server, id, sent_ms, outcome } => {
                self.handle_scanned(source, server, id, sent_ms, outcome)
            }
            Event::Replayed { url, outcome } => {
                let t_ms = outcome.t_ms();
                let server = match self.by_url.get(&url) {
                    Some(&server) => server,
                    None => self.insert_server(url, Vec::new(), t_ms),
                };
                self.advance_time(t_ms);
                self.apply_outcome(source, server, outcome).map(|_| ())
            }
            Event::Tick { now_ms } => {
                self.advance_time(now_ms);
                self.global.advance_windows(source);
                self.advance_weeks(source)?;
                self.untag_servers();
                self.expire_servers();
                Ok(())
            }
        }
    }

    /// The next scan that is due, if any.
    pub fn poll_probe(&mut self, now_ms: i64) -> Option<Probe> {
        let servers = &self.servers;
        let slot = |key: ServerKey| servers[key.0 as usize].as_ref().expect("planned servers exist");
        let (server, scan) =
            self.schedule.pop_due(now_ms, |key| slot(key).record.class, |key| slot(key).scan_requested)?;
        let record = &slot(server).record;
        Some(Probe {
            id: scan.id,
            server,
            url: record.url.clone(),
            exception_mode: record.class == Class::FAILED,
            due_ms: scan.due_ms,
        })
    }

    /// When `poll_probe` returns the next scan, Unix ms.
    pub fn next_due_ms(&mut self) -> Option<i64> {
        self.schedule.next_due_ms()
    }

    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    pub fn is_greylisted(&self, server: ServerKey) -> bool {
        self.server_state(server).is_some_and(|slot| slot.record.greylist_reason.is_some())
    }

    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// The latest time of any event, Unix ms.
    pub fn now_ms(&self) -> i64 {
        self.global.meta.now_ms
    }

    pub fn url_of(&self, server: ServerKey) -> Option<&ServerUrl> {
        self.server_state(server).map(|slot| &slot.record.url)
    }

    /// Whether the server is known and its last scan is older than `t_ms`.
    pub fn is_newer(&self, url: &ServerUrl, t_ms: i64) -> bool {
        let slot = self.by_url.get(url).and_then(|&server| self.server_state(server));
        slot.is_some_and(|slot| !slot.record.removed && slot.record.last_scan_ms < Some(t_ms))
    }

    /// Outcomes that were applied, since the start.
    pub fn outcomes_applied(&self) -> u64 {
        self.counts.snapshots + self.counts.partial_snapshots + self.counts.implausible_snapshots + self.counts.misses
    }

    pub fn counts(&self) -> &EngineCounts {
        &self.counts
    }

    /// Whether a commit would contain anything.
    pub fn has_changes(&self) -> bool {
        let p = &self.global.pending;
        p.meta
            || !(p.servers.is_empty()
                && p.rows.is_empty()
                && p.players.len() == 0
                && p.outbox.is_empty()
                && p.acknowledged.is_empty()
                && !self.global.player_windows.is_changed()
                && p.closed_servers.is_empty()
                && p.best.is_empty()
                && p.deleted_windows.is_empty()
                && p.corrections.is_empty())
    }

    /// Sets the limits of the caches; the next commit applies them.
    pub fn set_cache_limits(&mut self, memory: CacheLimits) {
        self.global.cache_limits = memory;
    }

    /// Rows and players that a commit would contain.
    pub fn pending_records(&self) -> usize {
        self.global.pending.rows_len + self.global.player_windows.changed_len() + self.global.pending.players.len()
    }

    /// Takes everything that changed since the last commit. It must be applied before the next
    /// event, because reads do not see it until then.
    pub fn take_commit(&mut self) -> Commit {
        let changed = self.has_changes();
        let pending = std::mem::take(&mut self.global.pending);
        debug_assert_eq!(pending.rows_len, pending.rows.values().map(BTreeMap::len).sum::<usize>());
        self.global.first_uncommitted_player = PlayerKey(self.global.meta.next_player);
        self.global.name_cache.evict_after_commit(self.global.cache_limits.names_max);
        let slot = |key: &ServerKey| self.servers[key.0 as usize].as_ref().expect("changed servers exist");
        let mut commit = Commit {
            meta: changed.then(|| self.global.meta.clone()),
            games: pending.games,
            maps: pending.maps,
            tags: pending.tags,
            player_windows: self.global.player_windows.take_changed(self.global.cache_limits.player_windows_max),
            players: pending.players.into_chunks(),
            servers: pending.servers.iter().map(|key| (*key, slot(key).record.clone())).collect(),
            series: pending
                .series
                .iter()
                .filter_map(|key| Some((*key, SeriesRecord::clone(slot(key).series.as_deref()?))))
                .collect(),
            rows: sorted_by_key(pending.rows)
                .flat_map(|((window, server), rows)| {
                    rows.into_iter().map(move |(player, row)| (RowKey { window, server, player }, row))
                })
                .collect(),
            map_rows: sorted_by_key(pending.map_rows)
                .flat_map(|((week, server), rows)| {
                    rows.into_iter().map(move |(map, row)| (MapRowKey { week, server, map }, row))
                })
                .collect(),
            best: pending.best.into_iter().collect(),
            new_best: pending.new_best,
            closed_servers: pending.closed_servers,
            ranks: pending.ranks.into_iter().map(|((week, server), rank)| (week, server, rank)).collect(),
            outbox: pending.outbox.into_iter().collect(),
            acknowledged: pending.acknowledged,
            deleted_windows: pending.deleted_windows,
            corrections: pending.corrections,
        };
        // Sorted by key: the same events make the same commit, and each page of the store is
        // written once.
        commit.servers.sort_unstable_by_key(|(key, _)| *key);
        commit.series.sort_unstable_by_key(|(key, _)| *key);
        commit.player_windows.sort_unstable_by_key(|(key, _)| *key);
        commit.best.sort_unstable_by_key(|(key, _)| *key);
        commit.new_best.sort_unstable();
        commit.ranks.sort_unstable();
        commit.outbox.sort_unstable();
        commit
    }

    fn advance_time(&mut self, t_ms: i64) {
        let meta = &mut self.global.meta;
        if t_ms > meta.now_ms {
            meta.now_ms = t_ms;
            // No reason to commit: the next commit contains it.
        }
    }

    fn server_state(&self, server: ServerKey) -> Option<&ServerState> {
        self.servers.get(server.0 as usize)?.as_ref()
    }

    fn server_state_mut(&mut self, server: ServerKey) -> Option<&mut ServerState> {
        self.servers.get_mut(server.0 as usize)?.as_mut()
    }

    fn insert_server(&mut self, url: ServerUrl, tags: Vec<String>, now_ms: i64) -> ServerKey {
        let global = &mut self.global;
        let key = ServerKey(global.meta.next_server);
        let tags = global.tag_keys(&tags);
        global.meta.next_server += 1;
        global.pending.meta = true;
        let record = ServerRecord {
            url: url.clone(),
            tags,
            greylist_reason: None,
            removed: false,
            added_ms: now_ms,
            class: Class::UNKNOWN,
            missed: 0,
            last_scan_ms: None,
            last_seen_ms: None,
            game: None,
            map: None,
            hostname: String::new(),
            slots: 0,
            rank: None,
            rank_week: None,
            counts: Default::default(),
            count: 0,
            total_points: 0,
            last_snapshot: None,
            map_time: None,
            sums: Default::default(),
            screening: None,
        };
        let index = key.0 as usize;
        if self.servers.len() <= index {
            self.servers.resize_with(index + 1, || None);
        }
        self.servers[index] = Some(ServerState { record, series: None, scan_requested: false, name_index: None });
        self.by_url.insert(url, key);
        global.server_changed(key);
        key
    }
}

impl Pending {
    fn row(&self, key: RowKey) -> Option<PlayerRow> {
        Some(self.rows.get(&(key.window, key.server))?.get(&key.player)?.unpack())
    }

    fn put_row(&mut self, key: RowKey, row: &PlayerRow) {
        let server_rows = self.rows.entry((key.window, key.server)).or_default();
        self.rows_len += usize::from(server_rows.insert(key.player, PackedRow::pack(row)).is_none());
    }
}

/// Sorts by key. The value of each key is sorted already.
fn sorted_by_key<K: Ord + Copy, V>(by_key: FxHashMap<K, V>) -> impl Iterator<Item = (K, V)> {
    let mut by_key: Vec<(K, V)> = by_key.into_iter().collect();
    by_key.sort_unstable_by_key(|(key, _)| *key);
    by_key.into_iter()
}

impl GlobalState {
    fn server_changed(&mut self, server: ServerKey) {
        self.pending.servers.insert(server);
        self.enqueue(OutboxKey::Server(server));
    }

    /// Adds an entry to the outbox. Without an archive, records that everything must be
    /// archived later.
    fn enqueue(&mut self, key: OutboxKey) {
        if !self.settings.archive_enabled || self.settings.outbox_full {
            self.require_resync();
            return;
        }
        self.pending.outbox.insert(key);
    }

    fn game_key(&mut self, name: &str) -> GameKey {
        let (key, new) = self.games.intern(name);
        if new {
            self.meta.next_game = key + 1;
            self.pending.meta = true;
            self.pending.games.push((GameKey(key), name.to_owned()));
            self.enqueue(OutboxKey::Game(GameKey(key)));
            self.update_board_orders();
        }
        GameKey(key)
    }

    fn map_key(&mut self, name: &str) -> MapKey {
        let (key, new) = self.maps.intern(name);
        if new {
            self.meta.next_map = key + 1;
            self.pending.meta = true;
            self.pending.maps.push((MapKey(key), name.to_owned()));
            self.enqueue(OutboxKey::Map(MapKey(key)));
        }
        MapKey(key)
    }

    /// The phase of a week. A new week is opened; a week older than the oldest one that still
    /// has rows is closed.
    fn week_phase(&mut self, week: WeekKey) -> WeekPhase {
        let weeks = &mut self.meta.weeks;
        match weeks.binary_search_by_key(&week, |state| state.week) {
            Ok(at) => weeks[at].phase,
            Err(0) if !weeks.is_empty() => WeekPhase::Closed,
            Err(at) => {
                weeks.insert(at, WeekState { week, phase: WeekPhase::Running });
                self.pending.meta = true;
                WeekPhase::Running
            }
        }
    }

    fn set_week_phase(&mut self, week: WeekKey, phase: WeekPhase) {
        if let Some(state) = self.meta.weeks.iter_mut().find(|state| state.week == week) {
            state.phase = phase;
            self.pending.meta = true;
        }
    }
}

/// Weeks that were counted in one time zone cannot be counted again in another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the state was counted in time zone {state:?}, the config says {config:?}: weeks cannot be counted again; \
     set time_zone back or start with an empty state directory"
)]
pub struct ZoneChanged {
    pub state: String,
    pub config: String,
}
