//! Requests of an admin: add and remove servers, rescan, greylist.

use super::tags::unique_tags;
use super::{AdminError, Engine, ReadError, ReadModel, ServerState, StoreReader};
use crate::limits::BOOSTS_MAX;
use crate::model::calendar::DAY_MS;
use crate::model::server::{Class, ServerRecord};
use crate::model::{OutboxKey, ServerKey, ServerUrl, WeekKey};

/// The effect of adding an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    New,
    /// The server had been removed and is restored with its history.
    Restored,
    AlreadyKnown {
        tags_added: bool,
        scan: KnownScan,
    },
}

/// The scan of a known server that is added again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownScan {
    /// The server answers, or its first scan has not ended: it is scanned as planned.
    AsPlanned,
    /// The server is of class 6 or 7 and is scanned now, or in its turn if many are requested.
    Requested,
    /// The server is of class 6 or 7, and adding it again requested a scan less than a day ago.
    RequestedEarlier {
        /// The next scan, Unix ms. `None`: it is in progress, or retries are off.
        next_scan_ms: Option<i64>,
    },
}

/// Adding a known server again requests at most one scan in this time.
const ADDED_AGAIN_INTERVAL_MS: i64 = DAY_MS;

/// The effect of a request to greylist a server, or to lift that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greylisted {
    Changed,
    /// It was greylisted for this reason already, or not greylisted.
    Unchanged,
}

/// The effect of a request to boost a server, or to end that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boosted {
    /// Unix ms.
    Until(i64),
    Ended,
    WasNotBoosted,
}

/// Which servers to scan now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RescanTarget {
    Url(ServerUrl),
    Class(Class),
    /// Classes 6 and 7.
    AllUnknown,
}

impl ReadModel {
    /// Servers that imports added until a time, and that never answered; at most `most`.
    pub fn silent_imports(&self, until_ms: i64, most: usize) -> Vec<ServerUrl> {
        let is_silent = |record: &&ServerRecord| {
            record.imported
                && !record.removed
                && record.last_seen_ms.is_none()
                && record.last_scan_ms.is_some()
                && record.added_ms <= until_ms
        };
        self.servers.records().filter(is_silent).take(most).map(|record| record.url.clone()).collect()
    }

    /// Whether a server was removed without ever having answered, and was scanned after a time.
    pub fn was_removed_silent(&self, url: &ServerUrl, since_ms: i64) -> bool {
        let server_state = self.servers.named(url);
        server_state.is_some_and(|(_, ServerState { record, .. })| {
            record.removed && record.last_seen_ms.is_none() && record.last_scan_ms > Some(since_ms)
        })
    }

    fn keys_by_class(&self, wanted: impl Fn(Class) -> bool) -> Vec<ServerKey> {
        self.listed_servers()
            .filter(|(_, server_state)| wanted(server_state.record.class))
            .map(|(key, _)| key)
            .collect()
    }

    pub(super) fn find_key(&self, url: &ServerUrl) -> Result<ServerKey, AdminError> {
        let (key, server_state) = self.servers.named(url).ok_or_else(|| AdminError::UnknownServer(url.clone()))?;
        match server_state.record.removed {
            true => Err(AdminError::RemovedServer(url.clone())),
            false => Ok(key),
        }
    }
}

impl Engine {
    /// Adds an address, which is scanned at once.
    pub fn add_server(
        &mut self,
        url: ServerUrl,
        tags: Vec<String>,
        now_ms: i64,
    ) -> Result<(ServerKey, Added), AdminError> {
        self.advance_time(now_ms);
        if let Some(key) = self.model.servers.find(&url) {
            let tags_added = self.change_tags(key, &tags, &[])?;
            let server_state = self.model.servers.get_mut(key).expect("named servers exist");
            let restored = std::mem::take(&mut server_state.record.removed);
            if restored {
                if server_state.record.last_seen_ms.is_none() {
                    server_state.record.added_ms = now_ms;
                }
                server_state.record.class = Class::UNKNOWN;
                server_state.record.missed = 0;
                server_state.scan_requested = true;
                self.model.schedule.schedule_now(key, now_ms);
                self.model.global.server_changed(key);
                self.model.global.server_name_changed(key);
                self.model.global.board_cache.mark_server_dirty(key, &[]);
                return Ok((key, Added::Restored));
            }
            return Ok((key, Added::AlreadyKnown { tags_added, scan: self.scan_known(key, now_ms) }));
        }
        if self.model.servers.end().0 as usize > crate::limits::SERVERS_MAX {
            return Err(AdminError::TooManyServers(crate::limits::SERVERS_MAX));
        }
        let tags = unique_tags(&url, tags.into_iter())?;
        let key = self.insert_server(url, tags, now_ms);
        self.model.servers.get_mut(key).expect("just inserted").scan_requested = true;
        self.model.schedule.schedule_now(key, now_ms);
        Ok((key, Added::New))
    }

    /// Records whether only imports have added a server. Returns whether adding it changed anything.
    pub fn mark_imported(&mut self, key: ServerKey, added: Added, import: bool) -> bool {
        let Some(server_state) = self.model.servers.get_mut(key) else { return false };
        let imported = import && (added == Added::New || server_state.record.imported);
        let is_changed = server_state.record.imported != imported;
        if is_changed {
            server_state.record.imported = imported;
            self.model.global.server_changed(key);
        }
        is_changed || !matches!(added, Added::AlreadyKnown { tags_added: false, .. })
    }

    /// Requests a scan of a known server that does not answer, at most once a day.
    fn scan_known(&mut self, key: ServerKey, now_ms: i64) -> KnownScan {
        let server_state = self.model.servers.get_mut(key).expect("named servers exist");
        let record = &server_state.record;
        if record.class < Class::UNKNOWN || record.awaits_first_scan() {
            return KnownScan::AsPlanned;
        }
        if server_state.scan_requested {
            return KnownScan::Requested;
        }
        // The clock may have been set back.
        let waits = |last_ms: i64| (last_ms..last_ms + ADDED_AGAIN_INTERVAL_MS).contains(&now_ms);
        if server_state.added_again_ms.is_some_and(waits) {
            return KnownScan::RequestedEarlier { next_scan_ms: self.model.schedule.due_ms(key) };
        }
        // An import may add many of them.
        server_state.added_again_ms = Some(now_ms);
        server_state.scan_requested = true;
        self.model.schedule.schedule_in_turn(key, now_ms);
        KnownScan::Requested
    }

    /// Removes a server: it is no longer scanned or listed. Its history is kept.
    pub fn remove_server(&mut self, source: &dyn StoreReader, url: &ServerUrl) -> Result<ServerKey, AdminError> {
        let key = self.model.find_key(url)?;
        self.end_presences(source, key)?;
        self.model.schedule.cancel(key);
        self.model.elastic_scans().forget(key);
        self.model.global.published.forget(key);
        let server_state = self.model.servers.get_mut(key).expect("named servers exist");
        server_state.record.removed = true;
        server_state.scan_requested = false;
        self.model.global.server_changed(key);
        self.model.global.server_name_changed(key);
        Ok(key)
    }

    /// Greylists a server with a reason, or lifts the greylisting with `None`. After that,
    /// players are credited as after an invisible time. While a server is greylisted, its rows
    /// in windows that are not closed do not count.
    pub fn greylist(
        &mut self,
        source: &dyn StoreReader,
        url: &ServerUrl,
        reason: Option<String>,
    ) -> Result<Greylisted, AdminError> {
        let key = self.model.find_key(url)?;
        if self.model.servers.get(key).expect("named servers exist").record.greylist_reason == reason {
            return Ok(Greylisted::Unchanged);
        }
        self.end_presences(source, key)?;
        let record = &mut self.model.servers.get_mut(key).expect("named servers exist").record;
        record.greylist_reason = reason;
        let tags = record.tags.clone();
        self.model.global.server_changed(key);
        self.model.global.board_cache.mark_server_dirty(key, &tags);
        let mut weeks: Vec<WeekKey> = self.model.global.meta.weeks.iter().map(|state| state.week).collect();
        weeks.retain(|week| !self.model.is_server_closed(*week, key));
        for week in weeks {
            self.model.global.enqueue(OutboxKey::Week { week, server: key });
        }
        // Closed weeks do not change.
        self.model.global.enqueue_boards_of_ended(|window| window.week().is_none());
        Ok(Greylisted::Changed)
    }

    /// Makes servers due now, many of them in turn; their notices have `requested` set. Returns the servers.
    pub fn rescan(&mut self, which: &RescanTarget, now_ms: i64) -> Result<Vec<ServerKey>, AdminError> {
        let keys: Vec<ServerKey> = match which {
            RescanTarget::Url(url) => vec![self.model.find_key(url)?],
            RescanTarget::Class(class) => self.model.keys_by_class(|c| c == *class),
            RescanTarget::AllUnknown => self.model.keys_by_class(|c| c == Class::UNKNOWN || c == Class::FAILED),
        };
        for &key in &keys {
            self.model.servers.get_mut(key).expect("listed servers exist").scan_requested = true;
            match which {
                RescanTarget::Url(_) => self.model.schedule.schedule_now(key, now_ms),
                RescanTarget::Class(_) | RescanTarget::AllUnknown => {
                    self.model.schedule.schedule_in_turn(key, now_ms);
                }
            }
        }
        Ok(keys)
    }

    /// Scans a server at least once a minute for a time; 0 ends that. It is not stored: a restart
    /// ends it.
    pub fn boost(&mut self, url: &ServerUrl, for_s: u32, now_ms: i64) -> Result<Boosted, AdminError> {
        let key = self.model.find_key(url)?;
        if for_s == 0 && !self.model.schedule.is_boosted(key, now_ms) {
            return Ok(Boosted::WasNotBoosted);
        }
        let class = self.model.servers.get(key).expect("found").record.class;
        if for_s > 0 && (class == Class::UNKNOWN || class == Class::FAILED) {
            return Err(AdminError::NotScheduled(url.clone(), class.number()));
        }
        if for_s > 0 && self.model.schedule.other_boosts(key, now_ms) >= BOOSTS_MAX {
            return Err(AdminError::TooManyBoosts);
        }
        let until_ms = now_ms + i64::from(for_s) * 1_000;
        self.model.schedule.boost(key, class, until_ms, now_ms);
        Ok(if for_s > 0 { Boosted::Until(until_ms) } else { Boosted::Ended })
    }

    /// Ends all presences. The next list is not compared with the previous one. If a read fails, nothing has
    /// changed.
    pub(super) fn end_presences(&mut self, source: &dyn StoreReader, key: ServerKey) -> Result<(), ReadError> {
        self.read_seen(source, key)?;
        let Some(server_state) = self.model.servers.get_mut(key) else { return Ok(()) };
        let last = server_state.record.last_snapshot.take();
        let map_time = server_state.record.map_time.take();
        server_state.record.recent.partial = None;
        let week = last.as_ref().map(|last| self.model.global.calendar.week(last.t_ms));
        if let Some(last) = last {
            for entry in last.entries {
                self.model.global.end_presence(source, key, entry.presence, (last.t_ms, last.map))?;
            }
        }
        self.model.global.flush_map_time(key, map_time);
        let is_kept = |week: &WeekKey| self.model.global.meta.weeks.iter().any(|state| state.week == *week);
        if let Some(week) = week.filter(is_kept) {
            self.model.global.enqueue(OutboxKey::Week { week, server: key });
        }
        Ok(())
    }
}
