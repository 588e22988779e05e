//! The settings of a running fleet, and the state that its handle and its threads share.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::rate_limiter::{RateLimit, RateLimitOf};
use crate::fleet::faults::FaultShares;
use crate::fleet::protocol::Ports;
use crate::fleet::world::World;

/// How the fleet is served.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    pub ports: Ports,
    /// The world's time when serving begins, Unix ms; not before its start.
    pub live_from_ms: i64,
    /// World time per real time, above 0; 1 is real time.
    pub speed: f64,
    pub faults: FaultShares,
    /// The rate limit of each server: [`RateLimit::of`], [`RateLimit::none`] or another.
    pub rate_limit: RateLimitOf,
}

impl Default for ServeSettings {
    fn default() -> Self {
        ServeSettings {
            ports: Ports::default(),
            live_from_ms: 0,
            speed: 1.0,
            faults: FaultShares::default(),
            rate_limit: RateLimit::none,
        }
    }
}

/// The state that the handle and the threads share.
pub(super) struct Shared {
    pub(super) world: Mutex<World>,
    pub(super) settings: ServeSettings,
    pub(super) seed: u64,
    pub(super) servers: u32,
    pub(super) began: Instant,
    /// Added to the world's time by [`Fleet::skip_time`](super::Fleet::skip_time).
    pub(super) skipped_ms: AtomicI64,
    pub(super) stopping: AtomicBool,
    pub(super) counters: Counters,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) queries: AtomicU64,
    pub(super) replies: AtomicU64,
    pub(super) datagrams_sent: AtomicU64,
    pub(super) rate_limited: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) send_failures: AtomicU64,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The world's current time, Unix ms.
    pub(super) fn now_ms(&self) -> i64 {
        let past_ms = self.began.elapsed().as_secs_f64() * 1_000.0 * self.settings.speed;
        self.settings.live_from_ms + past_ms as i64 + self.skipped_ms.load(Ordering::Relaxed)
    }
}
