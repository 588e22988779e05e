//! Replicas: what readers on other threads ask in place of the engine.
//!
//! A replica is a copy of what the engine's own answers are computed from. It shares the records of servers, the names, the
//! models of rounds and the boards with the engine; the rest is small and copied. It has no pending changes, so it reads
//! what is committed.
//! To bring it up to date, the servers that have changed are replaced, and everything else is copied again.

use super::outbox::changes::ArchiveChanges;
use super::pending::Pending;
use super::player_windows::PlayerWindowCache;
use super::server_table::ScanPlan;
use super::week_close::WeekClose;
use super::windows::current::CurrentWindows;
use super::{Engine, GlobalState, ReadModel, ServerState, ServerTable, names};
use crate::model::{PlayerKey, ServerKey};
use crate::schedule::Schedule;

/// Servers as they were when the engine gave them.
#[derive(Debug, Default)]
pub struct ChangedServers(Vec<(ServerKey, ServerState)>);

impl ReadModel {
    /// A copy with these servers.
    fn replica(&self, servers: ServerTable) -> ReadModel {
        let global = &self.global;
        ReadModel {
            servers,
            schedule: Schedule::new(global.settings.intervals),
            scans_in_flight: Some(self.scans_in_flight()),
            elastic_scans: self.elastic_scans.clone(),
            counts: self.counts.clone(),
            lag_histogram: self.lag_histogram.clone(),
            week_close: self.week_close.as_ref().map(WeekClose::replica),
            sorted_servers: self.sorted_servers.clone(),
            site_series: self.site_series.replica(),
            global: GlobalState {
                settings: global.settings.clone(),
                published: global.published.clone(),
                calendar: global.calendar,
                meta: global.meta.clone(),
                games: global.games.clone(),
                maps: global.maps.clone(),
                tags: global.tags.clone(),
                current_windows: CurrentWindows::default(),
                name_cache: names::cache::NameCache::default(),
                known_before: None,
                player_windows: PlayerWindowCache::default(),
                cache_limits: global.cache_limits,
                board_cache: global.board_cache.replica(),
                changed_types: global.changed_types.clone(),
                pending: Pending::default(),
                archive_complete_ms: global.archive_complete_ms,
                archive_changes: ArchiveChanges::default(),
                first_uncommitted_player: PlayerKey(u32::MAX),
                forgotten: global.forgotten.clone(),
                blanked_names: Vec::new(),
                points_saturated: global.points_saturated,
                changed_servers: None,
                server_name_changes: global.server_name_changes.clone(),
            },
        }
    }

    fn server_for_replica(&self, key: ServerKey, server: &ServerState) -> ServerState {
        ServerState { plan: Some(self.scan_plan(key, server)), ..server.clone() }
    }

    /// When a server is scanned. A replica does not hear of the start of a scan: it begins at its due time.
    pub(super) fn scan_plan(&self, key: ServerKey, server: &ServerState) -> ScanPlan {
        match server.plan {
            Some(plan) if plan.due_ms.is_some_and(|due_ms| due_ms <= self.now_ms()) => {
                ScanPlan { due_ms: None, in_progress: true, ..plan }
            }
            Some(plan) => plan,
            None => ScanPlan {
                due_ms: self.schedule.due_ms(key),
                in_progress: self.schedule.is_in_flight(key),
                boosted: self.schedule.is_boosted(key, self.now_ms()),
            },
        }
    }
}

impl Engine {
    /// A replica of the present state. From now on the engine notes which servers change.
    pub fn replica(&mut self) -> ReadModel {
        self.model.global.changed_servers = Some(Vec::new());
        self.model.schedule.note_replanned();
        self.model.replica(self.model.servers.with(|key, server| self.model.server_for_replica(key, server)))
    }

    /// The servers that have changed since the last call, for replicas.
    pub fn take_changed_servers(&mut self) -> ChangedServers {
        let Some(mut keys) = self.model.global.changed_servers.as_mut().map(std::mem::take) else {
            return ChangedServers::default();
        };
        keys.extend(self.model.schedule.take_replanned());
        keys.sort_unstable();
        keys.dedup();
        let server = |key| Some((key, self.model.server_for_replica(key, self.model.servers.get(key)?)));
        ChangedServers(keys.into_iter().filter_map(server).collect())
    }

    /// Brings a replica up to date. `changed`: all changes that it lacks, in order.
    pub fn update_replica<'c>(&self, replica: &mut ReadModel, changed: impl Iterator<Item = &'c ChangedServers>) {
        let mut servers = std::mem::take(&mut replica.servers);
        for (key, server) in changed.flat_map(|changed| &changed.0) {
            servers.put(*key, server.clone());
        }
        *replica = self.model.replica(servers);
    }
}
