//! The engine: takes events, returns probes, notices and commits.
//!
//! It is built on the pure modules (`rank`, `schedule`, `series`, `board`) and owns the live
//! state of every server. It has no clock and does no IO: each event contains the time, and
//! what is not in memory is read through [`StateReader`]. The caller takes a
//! [`Commit`](crate::model::Commit) and applies it to the store before it handles the next
//! event. A commit contains all changes since the previous one, so a crash loses only changes
//! that were never visible outside.

mod admin_commands;
mod boards;
mod chunked_vec;
mod commit;
mod corrections;
mod deadlines;
mod elastic;
mod error;
mod event;
mod global;
mod history;
mod key_table;
mod known_before;
mod lag_histogram;
mod names;
mod online;
mod outbox;
mod overview;
mod pending;
mod player_table;
mod player_windows;
mod published;
mod reload;
mod replica;
mod restore;
mod rows;
mod server_pages;
mod server_table;
mod servers;
mod sessions;
mod settings;
mod shared;
mod site_series;
mod snapshot;
mod state_reader;
mod tags;
mod top_boards;
mod url_table;
mod view;
mod week_close;
mod windows;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

pub use self::admin_commands::{CommandError, is_correction};
pub use self::boards::build::{BuildPlan, BuiltBoards, WindowReader, Workers};
pub use self::boards::group::{Group, WindowBoards};
pub use self::corrections::forget::ForgetResult;
pub use self::corrections::reset_time::TimeReset;
pub use self::corrections::{CorrectionError, MergeResult};
use self::deadlines::Deadlines;
pub use self::error::{AdminError, ViewError};
pub use self::event::{Event, Notice, Outcome, Probe};
use self::global::GlobalState;
pub use self::global::SERVER_NAMES_CHUNK;
pub use self::history::{BestPlayersPlan, MapHistoryPlan};
use self::key_table::KeyTable;
pub use self::known_before::KnownBefore;
pub use self::outbox::{BegunJob, WeekRangeError, WriterPlan, WriterRefusal};
pub use self::replica::ChangedServers;
pub use self::restore::{RestoreError, StateRestore};
pub use self::server_pages::ServerName;
use self::server_table::{ServerState, ServerTable};
pub use self::servers::{Added, Boosted, Greylisted, KnownScan, RescanTarget};
pub use self::settings::{CacheLimits, EngineSettings};
pub use self::site_series::SeriesGroup;
pub use self::state_reader::{LoadedState, ReadError, RemovedPlayer, StateReader, StoreReader};
pub use self::view::PLAYER_WEEKS_MAX;
pub use self::week_close::reopen::ReopenError;
use self::week_close::reopen::Reopening;
pub use self::windows::import::{RebuiltState, WindowImport};
use crate::model::calendar::Calendar;
use crate::model::server::{Class, ServerRecord};
use crate::model::{PlayerKey, ServerKey, ServerUrl};
use crate::proto::{Authentication, Details};
use crate::schedule::Schedule;
use crate::schedule::elastic::ElasticScans;
use crate::view::EngineCounts;

/// What answers are computed from: the servers, the state that belongs to no server, and what is shown of both. The
/// engine changes it, and a replica is a copy of it. It has no method that changes anything: whatever only reads is
/// implemented for it, whatever changes something for [`Engine`].
#[derive(Debug)]
pub struct ReadModel {
    servers: ServerTable,
    schedule: Schedule,
    /// Scans in progress; `None`: the schedule has them. Only a replica has a number.
    scans_in_flight: Option<u64>,
    /// Models of rounds. They are not stored, and are learned again after a restart. Shared with replicas.
    elastic_scans: Arc<RwLock<ElasticScans>>,
    counts: EngineCounts,
    lag_histogram: lag_histogram::LagHistogram,
    week_close: Option<week_close::WeekClose>,
    /// For pages of the list; not a part of the state.
    sorted_servers: Arc<Mutex<server_pages::SortedServers>>,
    /// Computed from the series of servers.
    site_series: site_series::SiteSeries,
    global: GlobalState,
}

/// The engine. See the module documentation.
#[derive(Debug)]
pub struct Engine {
    model: ReadModel,
    notices: VecDeque<Notice>,
    /// When to check whether servers are still online.
    online: Deadlines,
    /// When to check whether servers have become invisible, and their sessions are complete.
    invisible: Deadlines,
    /// Weeks that end later are not closed, Unix ms. The driver, which knows the clock, sets
    /// it.
    close_limit_ms: i64,
    reopening: Option<Reopening>,
    /// A week of a server that is being archived in chunks.
    large_week: Option<outbox::LargeWeek>,
    /// A week of a server that is being compared with the archive in chunks.
    verified_week: Option<outbox::LargeWeek>,
    /// Identifies the last copy of a large week.
    last_copy_id: u64,
    /// Servers that had a deleted tag and were not written since.
    servers_to_untag: BTreeSet<ServerKey>,
}

impl ReadModel {
    /// The record of a server, to be written.
    pub(crate) fn shared_record(&self, server: ServerKey) -> Option<Arc<ServerRecord>> {
        self.servers.get(server).map(|server_state| server_state.record.share())
    }

    /// The latest time of any event, Unix ms.
    pub fn now_ms(&self) -> i64 {
        self.global.meta.now_ms
    }

    pub fn url_of(&self, server: ServerKey) -> Option<&ServerUrl> {
        self.servers.get(server).map(|server_state| &server_state.record.url)
    }

    /// Whether the server is known and not removed.
    pub fn is_listed(&self, url: &ServerUrl) -> bool {
        self.find_key(url).is_ok()
    }

    /// When a listed server was added, Unix ms.
    pub fn added_ms(&self, url: &ServerUrl) -> Option<i64> {
        let server = self.find_key(url).ok()?;
        self.servers.get(server).map(|server_state| server_state.record.added_ms)
    }

    /// Whether the server is known and its last scan is older than `t_ms`.
    pub fn is_newer(&self, url: &ServerUrl, t_ms: i64) -> bool {
        let named = self.servers.named(url);
        named.is_some_and(|(_, ServerState { record, .. })| !record.removed && record.last_scan_ms < Some(t_ms))
    }

    /// Outcomes that were applied, since the start.
    pub fn outcomes_applied(&self) -> u64 {
        self.counts.snapshots + self.counts.partial_snapshots + self.counts.implausible_snapshots + self.counts.misses
    }

    pub fn counts(&self) -> &EngineCounts {
        &self.counts
    }

    /// Whether a server was removed.
    pub fn is_removed(&self, url: &ServerUrl) -> bool {
        self.servers.named(url).is_some_and(|(_, server_state)| server_state.record.removed)
    }

    fn elastic_scans(&self) -> RwLockWriteGuard<'_, ElasticScans> {
        self.elastic_scans.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn scans_in_flight(&self) -> u64 {
        self.scans_in_flight.unwrap_or(self.schedule.in_flight() as u64)
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
        } else {
            ZoneChanged::check(&meta.time_zone, &calendar)?;
        }
        let (next_game, next_map, next_tag) = (meta.next_game, meta.next_map, meta.next_tag);
        let model = ReadModel {
            servers: ServerTable::default(),
            schedule: Schedule::new(settings.intervals),
            scans_in_flight: None,
            elastic_scans: Arc::default(),
            counts: EngineCounts::default(),
            lag_histogram: lag_histogram::LagHistogram::default(),
            week_close: loaded.closed_servers.map(|(week, closed)| week_close::WeekClose::new(week, closed)),
            sorted_servers: Arc::default(),
            site_series: site_series::SiteSeries::default(),
            global: GlobalState {
                calendar,
                games: KeyTable::load(loaded.games.into_iter().map(|(k, n)| (k.0, n))).with_next_key(next_game),
                maps: KeyTable::load(loaded.maps.into_iter().map(|(k, n)| (k.0, n))).with_next_key(next_map),
                tags: KeyTable::load(loaded.tags.into_iter().map(|(k, n)| (k.0, n))).with_next_key(next_tag),
                current_windows: windows::current::CurrentWindows::default(),
                known_before: None,
                name_cache: match meta.next_player {
                    1 => names::cache::NameCache::of_empty_store(),
                    _ => names::cache::NameCache::default(),
                },
                player_windows: player_windows::PlayerWindowCache::default(),
                cache_limits: CacheLimits::default(),
                board_cache: boards::cache::BoardCache::default(),
                changed_types: Vec::new(),
                pending: pending::Pending::default(),
                archive_complete_ms: loaded.archive_complete_ms,
                archive_changes: outbox::changes::ArchiveChanges::default(),
                first_uncommitted_player: PlayerKey(meta.next_player),
                forgotten: Arc::new(loaded.forgotten.into_iter().collect()),
                blanked_names: Vec::new(),
                points_saturated: 0,
                changed_servers: None,
                server_name_changes: Vec::new(),
                meta,
                settings: Arc::new(settings),
                published: Arc::default(),
            },
        };
        let mut engine = Engine {
            model,
            notices: VecDeque::new(),
            online: Deadlines::default(),
            invisible: Deadlines::default(),
            close_limit_ms: i64::MAX,
            reopening: None,
            large_week: None,
            verified_week: None,
            last_copy_id: 0,
            servers_to_untag: BTreeSet::new(),
        };
        let now_ms = engine.model.global.meta.now_ms;
        for (key, record, series) in loaded.servers {
            // Adding a server requests a scan; the request outlives a crash.
            let scan_requested = record.awaits_first_scan();
            if scan_requested {
                engine.model.schedule.schedule_now(key, now_ms);
            } else if !record.removed {
                engine.model.schedule.schedule_next(key, record.class, now_ms);
            }
            let added_again_ms = record.last_scan_ms.filter(|_| record.missed > 1);
            let server_state = ServerState { added_again_ms, series, scan_requested, ..ServerState::new(record) };
            engine.model.servers.put(key, server_state);
            engine.queue_expiry_at_start(key);
            engine.queue_invisible(key);
        }
        engine.servers_to_untag = engine.model.servers_with_deleted_tags();
        engine.apply_window_settings();
        engine.model.global.update_board_orders();
        engine.archive_changed_orders();
        Ok(engine)
    }

    /// What answers are computed from, with all changes.
    pub fn model(&self) -> &ReadModel {
        &self.model
    }

    /// Handles one event.
    pub fn handle(&mut self, source: &dyn StoreReader, event: Event) -> Result<(), ReadError> {
        match event {
            Event::Scanned { server, id, sent_ms, outcome } => {
                self.handle_scanned(source, server, id, sent_ms, outcome)
            }
            Event::Replayed { url, outcome } => {
                let t_ms = outcome.t_ms();
                let server = match self.model.servers.find(&url) {
                    Some(server) => server,
                    None => self.insert_server(url, Vec::new(), t_ms),
                };
                self.advance_time(t_ms);
                self.apply_outcome(source, server, outcome).map(|_| ())
            }
            Event::Tick { now_ms } => {
                self.advance_time(now_ms);
                self.model.global.advance_windows(source);
                self.advance_weeks(source)?;
                self.untag_servers();
                self.expire_servers();
                self.advance_sessions(source)?;
                self.advance_site_series();
                Ok(())
            }
        }
    }

    /// Numbers scans from here on, above those of earlier processes.
    pub fn number_scans_from(&mut self, id: u64) {
        self.model.schedule.number_scans_from(id);
    }

    /// The next scan that is due, if any.
    pub fn poll_probe(&mut self, now_ms: i64) -> Option<Probe> {
        let servers = &self.model.servers;
        let server_state = |key: ServerKey| servers.get(key).expect("planned servers exist");
        let (server, scan) = self.model.schedule.pop_due(
            now_ms,
            |key| server_state(key).record.class,
            |key| server_state(key).scan_requested,
        )?;
        self.model.counts.elastic_scans += u64::from(scan.elastic);
        let record = &server_state(server).record;
        Some(Probe {
            id: scan.id,
            server,
            url: record.url.clone(),
            exception_mode: match record.class {
                Class::FAILED => true,
                Class::UNKNOWN => !scan.requested,
                _ => false,
            },
            due_ms: scan.due_ms,
            elastic: scan.elastic,
            wants_settings: self.model.global.published.needs_settings(server, now_ms),
        })
    }

    /// Keeps the settings that a server has published. They are only shown.
    pub fn set_published(&mut self, server: ServerKey, t_ms: i64, details: &Details) {
        if self.model.servers.get(server).is_some_and(|server_state| !server_state.record.removed) {
            self.model.global.published.set_settings(server, t_ms, details.published());
        }
    }

    /// When `poll_probe` returns the next scan, Unix ms.
    pub fn next_due_ms(&mut self) -> Option<i64> {
        self.model.schedule.next_due_ms()
    }

    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    /// Sets the authentication of the last reply. It is shown and has no other
    /// effect: it is not stored, and a replay does not know it.
    pub fn set_authentication(&mut self, server: ServerKey, authentication: Authentication) {
        if let Some(server_state) = self.model.servers.get_mut(server) {
            server_state.authentication = Some(authentication);
            self.model.global.note_for_replicas(server);
        }
    }

    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// The time of a command of an admin: later than that of every event before it. Recorded time is
    /// advanced to it, so a state shows whether it contains the command.
    pub fn begin_command(&mut self, now_ms: i64) -> i64 {
        let t_ms = now_ms.max(self.model.now_ms() + 1);
        self.advance_time(t_ms);
        t_ms
    }

    /// Notes a time at which nothing happened.
    pub fn note_time(&mut self, t_ms: i64) {
        self.advance_time(t_ms);
        self.model.global.pending.meta = true;
    }

    fn advance_time(&mut self, t_ms: i64) {
        let meta = &mut self.model.global.meta;
        if t_ms > meta.now_ms {
            meta.now_ms = t_ms;
            // This alone is no reason to commit: the next commit contains it.
        }
    }

    fn insert_server(&mut self, url: ServerUrl, tags: Vec<String>, now_ms: i64) -> ServerKey {
        let global = &mut self.model.global;
        let key = ServerKey(global.meta.next_server);
        let tags = global.tag_keys(&tags);
        global.meta.next_server += 1;
        global.pending.meta = true;
        let record = ServerRecord {
            url,
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
            recent: Default::default(),
            imported: false,
            scan_budget: None,
        };
        self.model.servers.put(key, ServerState::new(record));
        global.server_changed(key);
        global.server_name_changed(key);
        key
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

impl ZoneChanged {
    /// Compares the time zone of a state, empty if it has none yet, with that of the settings.
    pub fn check(state: &str, settings: &Calendar) -> Result<(), ZoneChanged> {
        let config = settings.zone_name();
        if state.is_empty() || state == config {
            return Ok(());
        }
        Err(ZoneChanged { state: state.to_owned(), config: config.to_owned() })
    }
}
