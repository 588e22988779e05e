//! Resolves host names without blocking the engine: a cache with expiry, and a
//! bounded number of concurrent look-ups. The system resolves the names
//! (`getaddrinfo`), so `/etc/hosts` and `nsswitch.conf` apply; `hickory-resolver` would
//! ignore the latter.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use tokio::task::JoinSet;

/// Concurrent look-ups. Each blocks a thread until the name server replies.
const LOOKUPS_MAX: usize = 64;

/// Time-out of a look-up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// A name without an address is looked up again after at most this time.
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(60);

/// The cache of host names, and the scans that wait for a look-up.
#[derive(Debug, Default)]
pub struct Resolver {
    names: HashMap<String, CacheEntry>,
    queue: VecDeque<String>,
    lookups: JoinSet<(String, Option<IpAddr>)>,
}

#[derive(Debug)]
enum CacheEntry {
    /// Valid until then; time since the start.
    Known {
        ip: Option<IpAddr>,
        until: Duration,
    },
    Pending {
        tokens: Vec<u64>,
    },
}

impl Resolver {
    /// The address of a host, if it is cached: `Some(None)` if the name has none.
    /// Otherwise [`Resolver::complete`] returns the token later.
    pub fn resolve(&mut self, now: Duration, host: &str, token: u64) -> Option<Option<IpAddr>> {
        if let Ok(ip) = host.parse() {
            return Some(Some(ip));
        }
        match self.names.get_mut(host) {
            Some(CacheEntry::Known { ip, until }) if *until > now => return Some(*ip),
            Some(CacheEntry::Pending { tokens }) => tokens.push(token),
            _ => {
                self.names.insert(host.to_owned(), CacheEntry::Pending { tokens: vec![token] });
                self.queue.push_back(host.to_owned());
                self.start_lookups();
            }
        }
        None
    }

    /// Waits for a look-up to end. Cancel-safe; pending forever while there is none.
    pub async fn next_result(&mut self) -> LookupResult {
        loop {
            match self.lookups.join_next().await {
                Some(Ok((host, ip))) => return LookupResult { host, ip },
                // The task panicked or was aborted, which this module never does.
                Some(Err(error)) => tracing::error!(%error, "the look-up of a host name failed internally"),
                None => std::future::pending().await,
            }
        }
    }

    /// Caches the result for `ttl` and returns the tokens that waited for it.
    pub fn complete(&mut self, now: Duration, result: LookupResult, ttl: Duration) -> Vec<u64> {
        let ttl = if result.ip.is_some() { ttl } else { ttl.min(NEGATIVE_TTL_MAX) };
        let entry = CacheEntry::Known { ip: result.ip, until: now + ttl };
        self.start_lookups();
        match self.names.insert(result.host, entry) {
            Some(CacheEntry::Pending { tokens }) => tokens,
            _ => Vec::new(),
        }
    }

    /// Removes expired entries.
    pub fn remove_expired(&mut self, now: Duration) {
        self.names.retain(|_, name| !matches!(name, CacheEntry::Known { until, .. } if *until <= now));
    }

    fn start_lookups(&mut self) {
        while self.lookups.len() < LOOKUPS_MAX {
            let Some(host) = self.queue.pop_front() else { return };
            self.lookups.spawn(async move {
                let ip = look_up(&host).await;
                (host, ip)
            });
        }
    }
}

/// Result of a look-up.
#[derive(Debug)]
pub struct LookupResult {
    host: String,
    pub ip: Option<IpAddr>,
}

async fn look_up(host: &str) -> Option<IpAddr> {
    // `lookup_host` requires a port; it is not used.
    let addresses = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host, 1))).await;
    choose(addresses.ok()?.ok()?.map(|address| address.ip().to_canonical()))
}

/// One of several addresses, always the same one: a server's address must not
/// depend on the order of the DNS reply. IPv4 first, because few game servers
/// listen on IPv6.
fn choose(ips: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    ips.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_address_does_not_depend_on_the_order_of_the_reply() {
        let ips = ["2a01::1", "9.9.9.9", "8.8.8.8"].map(|ip| ip.parse::<IpAddr>().unwrap());
        assert_eq!(choose(ips.into_iter()), Some(ips[2]));
        assert_eq!(choose(ips.into_iter().rev()), Some(ips[2]));
    }

    #[tokio::test]
    async fn two_requests_share_one_lookup_and_the_result_is_cached() {
        let ms = Duration::from_millis;
        let mut resolver = Resolver::default();
        assert_eq!(resolver.resolve(ms(0), "8.8.8.8", 1), Some(Some("8.8.8.8".parse().unwrap())));
        assert_eq!(resolver.resolve(ms(0), "localhost", 1), None);
        assert_eq!(resolver.resolve(ms(0), "localhost", 2), None);
        assert_eq!(resolver.lookups.len(), 1);
        let result = resolver.next_result().await;
        let ip = result.ip;
        assert!(ip.is_some_and(|ip| ip.is_loopback()), "{ip:?}");
        assert_eq!(resolver.complete(ms(5), result, ms(100)), [1, 2]);
        assert_eq!(resolver.resolve(ms(104), "localhost", 3), Some(ip));
        resolver.remove_expired(ms(105));
        assert_eq!(resolver.resolve(ms(105), "localhost", 3), None);
    }
}
