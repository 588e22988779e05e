//! Host names to addresses, without holding anyone up: a table of what is known
//! for how long, and a bounded number of look-ups under way. Looking up itself
//! is the system's (`getaddrinfo`).

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use tokio::task::JoinSet;

/// Look-ups at the same time: each holds a thread while the name server thinks.
const LOOKUPS_MAX: usize = 64;

/// A name server that has not answered by then is not waited for.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// A name without an address is tried again after this time at the latest.
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(60);

/// What is known of host names, and who waits to know.
#[derive(Debug, Default)]
pub struct Resolver {
    names: HashMap<String, CacheEntry>,
    queue: VecDeque<String>,
    lookups: JoinSet<(String, Option<IpAddr>)>,
}

#[derive(Debug)]
enum CacheEntry {
    /// Until then, time since the start.
    Known {
        ip: Option<IpAddr>,
        until: Duration,
    },
    Pending {
        tickets: Vec<u64>,
    },
}

impl Resolver {
    /// The address of a host, if it is known by now: `Some(None)` is a name that
    /// has none. Otherwise the ticket comes out of [`Resolver::answered`] later.
    pub fn resolve(&mut self, now: Duration, host: &str, ticket: u64) -> Option<Option<IpAddr>> {
        if let Ok(ip) = host.parse() {
            return Some(Some(ip));
        }
        match self.names.get_mut(host) {
            Some(CacheEntry::Known { ip, until }) if *until > now => return Some(*ip),
            Some(CacheEntry::Pending { tickets }) => tickets.push(ticket),
            _ => {
                self.names.insert(host.to_owned(), CacheEntry::Pending { tickets: vec![ticket] });
                self.queue.push_back(host.to_owned());
                self.start_lookups();
            }
        }
        None
    }

    /// Waits for a look-up to end. Cancel-safe; for ever pending while there is none.
    pub async fn next_result(&mut self) -> LookupResult {
        loop {
            match self.lookups.join_next().await {
                Some(Ok((host, ip))) => return LookupResult { host, ip },
                // It panicked or was aborted; neither is done to it here.
                Some(Err(error)) => tracing::error!(%error, "a look-up of a host name ended without an answer"),
                None => std::future::pending().await,
            }
        }
    }

    /// Keeps the answer for `ttl` and gives the tickets that waited for it.
    pub fn complete(&mut self, now: Duration, looked: LookupResult, ttl: Duration) -> Vec<u64> {
        let ttl = if looked.ip.is_some() { ttl } else { ttl.min(NEGATIVE_TTL_MAX) };
        let known = CacheEntry::Known { ip: looked.ip, until: now + ttl };
        self.start_lookups();
        match self.names.insert(looked.host, known) {
            Some(CacheEntry::Pending { tickets }) => tickets,
            _ => Vec::new(),
        }
    }

    /// Forgets what is no longer valid.
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

/// What a look-up found.
#[derive(Debug)]
pub struct LookupResult {
    host: String,
    pub ip: Option<IpAddr>,
}

async fn look_up(host: &str) -> Option<IpAddr> {
    // The port only fills a place that the call asks for.
    let found = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host, 1))).await;
    choose(found.ok()?.ok()?.map(|address| address.ip().to_canonical()))
}

/// One of several addresses, the same one each time: a server must not change
/// its place with the order of the answer. IPv4 first, for game servers seldom
/// listen on IPv6.
fn choose(ips: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    ips.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_address_does_not_depend_on_the_order_of_the_answer() {
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
        let looked = resolver.next_result().await;
        let ip = looked.ip;
        assert!(ip.is_some_and(|ip| ip.is_loopback()), "{ip:?}");
        assert_eq!(resolver.complete(ms(5), looked, ms(100)), [1, 2]);
        assert_eq!(resolver.resolve(ms(104), "localhost", 3), Some(ip));
        resolver.remove_expired(ms(105));
        assert_eq!(resolver.resolve(ms(105), "localhost", 3), None);
    }
}
