//! Decides which servers are online, that is, whose last list shows the current players. A
//! server that stops answering must lose its players, in answers and in the archive.
//!
//! A server is online while it has missed at most two scans in a row (the misses that class 1
//! allows, docs/rules.md section 9) and has answered within twice the interval of class 2. The second
//! condition applies to servers of class 2, and when no scans get through at all.

use super::{Engine, ReadModel};
use crate::model::server::{Class, ServerRecord};
use crate::model::{OutboxKey, ServerKey};
use crate::rank::INVISIBLE_GAP_MS;

/// Scans in a row that an online server may have missed.
const ONLINE_MISSED_MAX: u32 = 2;

/// Servers checked in one tick: 1 ms.
const EXPIRED_PER_TICK: usize = 10_000;

/// After this time an expired server was certainly archived: in ten minutes of ticks six
/// million servers expire.
const EXPIRY_LAG_MS_MAX: i64 = 600_000;

impl ReadModel {
    /// Whether the last list of a server shows the current players.
    pub(super) fn is_online(&self, record: &ServerRecord) -> bool {
        self.online_until_ms(record).is_some_and(|until_ms| self.now_ms() < until_ms)
    }

    /// The time at which a server stops being online unless it answers again, Unix ms; `None`:
    /// it is not online at any time.
    fn online_until_ms(&self, record: &ServerRecord) -> Option<i64> {
        let seen_ms = record.last_seen_ms.filter(|_| record.missed <= ONLINE_MISSED_MAX && !record.removed)?;
        let class_2 = Class::new(2).expect("there are seven classes");
        let interval_ms = self.global.settings.intervals.of(class_2).unwrap_or_default();
        Some(seen_ms.saturating_add(INVISIBLE_GAP_MS.max(2 * interval_ms)))
    }
}

impl Engine {
    /// As [`Engine::queue_expiry`], for a server of a state that was just opened. Servers that
    /// had expired before the state was written were archived as such.
    pub(super) fn queue_expiry_at_start(&mut self, server: ServerKey) {
        let until_ms =
            self.model.servers.get(server).and_then(|server_state| self.model.online_until_ms(&server_state.record));
        if until_ms.is_some_and(|until_ms| until_ms > self.model.now_ms() - EXPIRY_LAG_MS_MAX) {
            self.queue_expiry(server);
        }
    }

    /// Queues the check whether an online server has expired.
    pub(super) fn queue_expiry(&mut self, server: ServerKey) {
        if self.online.is_queued(server) {
            return;
        }
        let until_ms =
            self.model.servers.get(server).and_then(|server_state| self.model.online_until_ms(&server_state.record));
        if let Some(until_ms) = until_ms {
            self.online.queue(server, until_ms);
        }
    }

    /// Archives servers that are not online any more because time has passed. Servers with too
    /// many missed scans were archived by the last of these scans.
    pub(super) fn expire_servers(&mut self) {
        for _ in 0..EXPIRED_PER_TICK {
            let Some(server) = self.online.pop_due(self.model.now_ms()) else { return };
            let record = self.model.servers.record(server);
            let until_ms = record.and_then(|record| self.model.online_until_ms(record));
            match until_ms.is_some_and(|until_ms| until_ms <= self.model.now_ms()) {
                true => self.model.global.enqueue(OutboxKey::Server(server)),
                false => self.queue_expiry(server),
            }
        }
    }
}
