//! The rate limit of simulated servers.

use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota};

/// Queries between two removals of idle entries. Bounds the memory: each adds at most one.
const QUERIES_PER_CLEANUP: u32 = 200_000;

/// A token bucket for each (server, client), as in ioquake3.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    pub burst: NonZeroU32,
    /// Replies a second after the burst, above 0.
    pub per_second: f64,
}

impl RateLimit {
    /// ioquake3's limit: a burst of ten, then one a second.
    pub const IOQUAKE3: RateLimit = RateLimit { burst: NonZeroU32::new(10).unwrap(), per_second: 1.0 };
}

/// Applies a limit to the servers of one protocol.
pub(super) struct RateLimiter {
    buckets: DefaultKeyedRateLimiter<(u32, Ipv4Addr)>,
    queries: u32,
}

impl RateLimiter {
    pub(super) fn new(limit: RateLimit) -> RateLimiter {
        let period = Duration::from_secs_f64(1.0 / limit.per_second);
        let quota = Quota::with_period(period).expect("a period above zero").allow_burst(limit.burst);
        RateLimiter { buckets: DefaultKeyedRateLimiter::keyed(quota), queries: 0 }
    }

    /// Whether a server may reply to a client now.
    pub(super) fn allows(&mut self, server: u32, client: Ipv4Addr) -> bool {
        self.queries += 1;
        if self.queries == QUERIES_PER_CLEANUP {
            self.queries = 0;
            self.buckets.retain_recent();
        }
        self.buckets.check_key(&(server, client)).is_ok()
    }
}
