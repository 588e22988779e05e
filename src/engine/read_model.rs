//! What answers are computed from: the servers, the state that belongs to no server, and what is shown of both.
//!
//! The engine changes it, and a replica is a copy of it (`replica`). It has no method that changes anything: whatever
//! only reads is implemented for [`ReadModel`], whatever changes something for [`Engine`](super::Engine).

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

use super::global::GlobalState;
use super::lag_histogram::LagHistogram;
use super::server_pages::SortedServers;
use super::server_table::{ServerState, ServerTable};
use super::site_series::SiteSeries;
use super::week_close::WeekClose;
use crate::model::server::ServerRecord;
use crate::model::{ServerKey, ServerUrl};
use crate::schedule::Schedule;
use crate::schedule::elastic::ElasticScans;
use crate::view::EngineCounts;

/// What answers are computed from. See the module documentation.
#[derive(Debug)]
pub struct ReadModel {
    pub(super) servers: ServerTable,
    pub(super) schedule: Schedule,
    /// Scans in progress; `None`: the schedule has them. Only a replica has a number.
    pub(super) scans_in_flight: Option<u64>,
    /// Models of rounds. They are not stored, and are learned again after a restart. Shared with replicas.
    pub(super) elastic_scans: Arc<RwLock<ElasticScans>>,
    pub(super) counts: EngineCounts,
    pub(super) lag_histogram: LagHistogram,
    pub(super) week_close: Option<WeekClose>,
    /// For pages of the list; not a part of the state.
    pub(super) sorted_servers: Arc<Mutex<SortedServers>>,
    /// Computed from the series of servers.
    pub(super) site_series: SiteSeries,
    pub(super) global: GlobalState,
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

    pub(super) fn elastic_scans(&self) -> RwLockWriteGuard<'_, ElasticScans> {
        self.elastic_scans.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn scans_in_flight(&self) -> u64 {
        self.scans_in_flight.unwrap_or(self.schedule.in_flight() as u64)
    }
}
