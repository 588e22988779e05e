//! The request rate of each client. Clients are those of [`super::client_address`].

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "when clients were last removed"))]

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::WebSettings;
use super::limits::CLIENTS_MAX;

/// Shortest time between two removals of clients that are no longer limited.
const PRUNE_INTERVAL: Duration = Duration::from_secs(1);

/// Stands for all clients beyond [`CLIENTS_MAX`].
const OTHER_CLIENTS: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// The rate limit of each client.
pub(super) struct ClientLimits {
    limiter: DefaultKeyedRateLimiter<IpAddr>,
    clock: DefaultClock,
    pruned: Mutex<Option<Instant>>,
}

impl ClientLimits {
    pub fn new(settings: &WebSettings) -> ClientLimits {
        let positive = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(positive(settings.client_requests_per_second_max))
            .allow_burst(positive(settings.client_burst_requests));
        ClientLimits { limiter: RateLimiter::keyed(quota), clock: DefaultClock::default(), pruned: Mutex::default() }
    }

    /// Counts a request. Error: how long the client has to wait.
    pub fn check(&self, client: IpAddr) -> Result<(), Duration> {
        let client = if self.has_space() { client } else { OTHER_CLIENTS };
        self.limiter.check_key(&client).map_err(|until| until.wait_time_from(self.clock.now()))
    }

    fn has_space(&self) -> bool {
        if self.limiter.len() < CLIENTS_MAX {
            return true;
        }
        let mut pruned = self.pruned.lock().expect("no code panics while holding the lock");
        if pruned.is_none_or(|pruned| pruned.elapsed() >= PRUNE_INTERVAL) {
            *pruned = Some(Instant::now());
            self.limiter.retain_recent();
        }
        self.limiter.len() < CLIENTS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_burst() {
        let settings = WebSettings {
            listen: None,
            has_tls: false,
            client_requests_per_second_max: 1,
            client_burst_requests: 3,
            proxies: Vec::new(),
            public_url: None,
            identity: crate::web::Identity::default(),
            front_page_days_min: 0,
        };
        let limits = ClientLimits::new(&settings);
        let [a, b] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        // Permits are refilled while the test runs. So a refusal is certain only if there are more
        // requests than the seconds of the test.
        let granted = (0..1_000).filter(|_| limits.check(a).is_ok()).count();
        assert!((3..1_000).contains(&granted), "{granted}");
        assert!(limits.check(b).is_ok());
    }
}
