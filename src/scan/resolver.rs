//! Resolves host names without blocking the engine: a cache with expiry, and a
//! bounded number of concurrent look-ups. The system resolves the names
//! (`getaddrinfo`), so `/etc/hosts` and `nsswitch.conf` apply; `hickory-resolver` would
//! ignore the latter.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::mpsc;
use std::time::Duration;

use smallvec::SmallVec;
use tokio::runtime::Handle;

use super::waker::{WakeOnDrop, Waker};

/// Concurrent look-ups. Each blocks a thread until the name server replies.
const LOOKUPS_MAX: usize = 64;

/// Timeout of a look-up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// A name without an address is looked up again after at most this time.
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(60);

/// Most addresses of a host name that are tried.
const ADDRESSES_MAX: usize = 4;

/// The addresses of a host, in the order in which they are tried; none: the name has none.
pub type Addresses = SmallVec<[IpAddr; 1]>;

/// The cache of host names, and the scans that wait for a look-up.
#[derive(Debug)]
pub struct Resolver {
    /// Runs the look-ups.
    runtime: Handle,
    waker: Waker,
    names: HashMap<String, CacheEntry>,
    queue: VecDeque<String>,
    lookups: usize,
    results: mpsc::Receiver<LookupResult>,
    results_tx: mpsc::Sender<LookupResult>,
}

#[derive(Debug)]
enum CacheEntry {
    /// Valid until then; time since the start.
    Known {
        addresses: Addresses,
        until: Duration,
    },
    Pending {
        tokens: Vec<u64>,
    },
}

impl Resolver {
    /// `waker` is called when a look-up has ended.
    pub fn new(runtime: Handle, waker: Waker) -> Resolver {
        let (results_tx, results) = mpsc::channel();
        let (names, queue) = Default::default();
        Resolver { runtime, waker, names, queue, lookups: 0, results, results_tx }
    }

    /// The addresses of a host, if they are cached. Otherwise [`Resolver::complete`] returns the token later.
    pub fn resolve(&mut self, now: Duration, host: &str, token: u64) -> Option<Addresses> {
        if let Ok(ip) = host.parse() {
            return Some(Addresses::from_elem(ip, 1));
        }
        match self.names.get_mut(host) {
            Some(CacheEntry::Known { addresses, until }) if *until > now => return Some(addresses.clone()),
            Some(CacheEntry::Pending { tokens }) => tokens.push(token),
            _ => {
                self.names.insert(host.to_owned(), CacheEntry::Pending { tokens: vec![token] });
                self.queue.push_back(host.to_owned());
                self.start_lookups();
            }
        }
        None
    }

    /// The result of a look-up that has ended.
    pub fn next_result(&mut self) -> Option<LookupResult> {
        let result = self.results.try_recv().ok()?;
        self.lookups -= 1;
        Some(result)
    }

    /// Caches the result for `ttl` and returns the tokens that waited for it.
    pub fn complete(&mut self, now: Duration, result: LookupResult, ttl: Duration) -> Vec<u64> {
        let ttl = if result.addresses.is_empty() { ttl.min(NEGATIVE_TTL_MAX) } else { ttl };
        let entry = CacheEntry::Known { addresses: result.addresses, until: now + ttl };
        self.start_lookups();
        match self.names.insert(result.host, entry) {
            Some(CacheEntry::Pending { tokens }) => tokens,
            _ => Vec::new(),
        }
    }

    /// Enters the addresses of a host, as if they had been looked up.
    #[cfg(test)]
    pub fn insert(&mut self, host: &str, addresses: &[IpAddr]) {
        let result = LookupResult { host: host.to_owned(), addresses: in_order(addresses.iter().copied()) };
        self.complete(Duration::ZERO, result, Duration::from_secs(60));
    }

    /// Removes expired entries.
    pub fn remove_expired(&mut self, now: Duration) {
        self.names.retain(|_, name| !matches!(name, CacheEntry::Known { until, .. } if *until <= now));
    }

    fn start_lookups(&mut self) {
        while self.lookups < LOOKUPS_MAX {
            let Some(host) = self.queue.pop_front() else { return };
            self.lookups += 1;
            let (results, wake) = (self.results_tx.clone(), WakeOnDrop(self.waker.clone()));
            self.runtime.spawn(async move {
                let addresses = look_up(&host).await;
                // The scanner may have ended.
                let _ = results.send(LookupResult { host, addresses });
                drop(wake);
            });
        }
    }
}

/// Result of a look-up.
#[derive(Debug)]
pub struct LookupResult {
    host: String,
    pub addresses: Addresses,
}

async fn look_up(host: &str) -> Addresses {
    // `lookup_host` requires a port; it is not used.
    let addresses = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host, 1))).await;
    match addresses {
        Ok(Ok(addresses)) => in_order(addresses.map(|address| address.ip().to_canonical())),
        Ok(Err(_)) | Err(_) => Addresses::new(),
    }
}

/// The addresses in an order that does not depend on that of the DNS reply. IPv4 first, because
/// few game servers listen on IPv6.
fn in_order(addresses: impl Iterator<Item = IpAddr>) -> Addresses {
    let mut addresses: Addresses = addresses.collect();
    addresses.sort();
    addresses.dedup();
    addresses.truncate(ADDRESSES_MAX);
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_addresses_does_not_depend_on_that_of_the_reply() {
        let ips = ["2a01::1", "9.9.9.9", "8.8.8.8", "9.9.9.9"].map(|ip| ip.parse::<IpAddr>().unwrap());
        assert_eq!(in_order(ips.into_iter())[..], [ips[2], ips[1], ips[0]]);
        assert_eq!(in_order(ips.into_iter().rev())[..], [ips[2], ips[1], ips[0]]);
        assert_eq!(in_order((0..9).map(|n| IpAddr::from([10, 0, 0, n]))).len(), ADDRESSES_MAX);
    }

    #[tokio::test]
    async fn two_requests_share_one_lookup_and_the_result_is_cached() {
        let ms = Duration::from_millis;
        let mut resolver = Resolver::new(Handle::current(), Waker::new().unwrap());
        assert_eq!(resolver.resolve(ms(0), "8.8.8.8", 1), Some(Addresses::from_elem("8.8.8.8".parse().unwrap(), 1)));
        assert_eq!(resolver.resolve(ms(0), "localhost", 1), None);
        assert_eq!(resolver.resolve(ms(0), "localhost", 2), None);
        assert_eq!(resolver.lookups, 1);
        let result = loop {
            match resolver.next_result() {
                Some(result) => break result,
                None => tokio::time::sleep(ms(5)).await,
            }
        };
        let addresses = result.addresses.clone();
        assert!(!addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback), "{addresses:?}");
        assert_eq!(resolver.complete(ms(5), result, ms(100)), [1, 2]);
        assert_eq!(resolver.resolve(ms(104), "localhost", 3), Some(addresses));
        resolver.remove_expired(ms(105));
        assert_eq!(resolver.resolve(ms(105), "localhost", 3), None);
    }
}
