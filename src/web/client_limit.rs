//! The request rate of each client. A client is an IPv4 address or an IPv6 /64, the smallest
//! network that a subscriber gets.
//!
//! Behind a reverse proxy on the same machine all connections come from a loopback address.
//! For these the last address of `X-Forwarded-For` counts: the one that the proxy has added.
//! Other connections cannot choose their address by that header.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
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

/// The client of a request from a connected address.
pub(super) fn client_of(peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let peer = peer.to_canonical();
    let forwarded = || {
        let last = headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
        last.rsplit(',').next()?.trim().parse::<IpAddr>().ok()
    };
    let client = if peer.is_loopback() { forwarded().unwrap_or(peer) } else { peer };
    network_of(client)
}

/// An IPv4 address itself, or the /64 of an IPv6 address.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_local_proxy_names_the_client() {
        #[track_caller]
        fn check(peer: &str, forwarded: &[&'static str], want: &str) {
            let mut headers = HeaderMap::new();
            forwarded.iter().for_each(|text| _ = headers.append("x-forwarded-for", HeaderValue::from_static(text)));
            let client = client_of(peer.parse().expect("an address"), &headers);
            assert_eq!(client, want.parse::<IpAddr>().expect("an address"), "{peer} {forwarded:?}");
        }
        check("192.0.2.7", &[], "192.0.2.7");
        check("192.0.2.7", &["198.51.100.1"], "192.0.2.7");
        check("::ffff:192.0.2.7", &[], "192.0.2.7");
        check("2001:db8:1:2:3:4:5:6", &[], "2001:db8:1:2::");
        check("127.0.0.1", &[], "127.0.0.1");
        check("127.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check("::1", &["203.0.113.9, 198.51.100.1"], "198.51.100.1");
        check("127.0.0.1", &["203.0.113.9", "2001:db8::5"], "2001:db8::");
        check("127.0.0.1", &["nonsense"], "127.0.0.1");
    }

    #[test]
    fn each_client_has_its_own_burst() {
        let settings = WebSettings {
            listen: ([127, 0, 0, 1], 0).into(),
            client_requests_per_second_max: 1,
            client_burst_requests: 3,
        };
        let limits = ClientLimits::new(&settings);
        let [a, b] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        // A permit may return while the test runs, so only more requests than seconds are certain
        // to be refused.
        let granted = (0..1_000).filter(|_| limits.check(a).is_ok()).count();
        assert!((3..1_000).contains(&granted), "{granted}");
        assert!(limits.check(b).is_ok());
    }
}
