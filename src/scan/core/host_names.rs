//! The addresses of host names: a cache with expiry, the scans that wait for a look-up, and the
//! names to look up, a bounded number at a time.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use smallvec::SmallVec;

use super::packets::ScanToken;

/// Concurrent look-ups. Each blocks a thread until the name server replies.
const LOOKUPS_MAX: usize = 64;

/// A name without an address is looked up again after at most this time.
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(60);

/// The addresses of a name are used for so long after they were looked up, while no name server answers (RFC 8767).
const STALE_MAX: Duration = Duration::from_secs(86_400);

/// Most addresses of a host name that are tried.
const ADDRESSES_MAX: usize = 4;

/// The addresses of a host, in the order in which they are tried; none: the name has none.
pub(in crate::scan) type Addresses = SmallVec<[IpAddr; 1]>;

/// The cache of host names, and the scans that wait for a look-up.
#[derive(Debug, Default)]
pub(super) struct HostNames {
    names: HashMap<String, CacheEntry>,
    queue: VecDeque<String>,
    lookups: usize,
}

#[derive(Debug)]
enum CacheEntry {
    /// Times are since the start.
    Known {
        looked_up: Duration,
        addresses: Addresses,
        until: Duration,
        /// No name server has answered since they were looked up.
        is_stale: bool,
    },
    Pending {
        tokens: Vec<ScanToken>,
        /// The addresses that were known before, and when they were looked up.
        before: Option<(Duration, Addresses)>,
        /// They are stale already, so scans use them and do not wait.
        is_stale: bool,
    },
}

/// Result of a look-up.
#[derive(Debug)]
pub(in crate::scan) struct LookupResult {
    host: String,
    pub addresses: Addresses,
    /// No name server has answered, so nothing is known.
    is_failure: bool,
}

impl LookupResult {
    /// The order of the addresses does not depend on that of the DNS reply. IPv4 first, because
    /// few game servers listen on IPv6.
    pub fn new(host: String, addresses: impl IntoIterator<Item = IpAddr>) -> LookupResult {
        let mut addresses: Addresses = addresses.into_iter().collect();
        addresses.sort();
        addresses.dedup();
        addresses.truncate(ADDRESSES_MAX);
        LookupResult { host, addresses, is_failure: false }
    }

    pub fn failure(host: String) -> LookupResult {
        LookupResult { host, addresses: Addresses::new(), is_failure: true }
    }
}

impl HostNames {
    /// The addresses of a host, if they are cached. Otherwise [`HostNames::complete`] returns the token later.
    pub fn resolve(&mut self, now: Duration, host: &str, token: ScanToken) -> Option<Addresses> {
        if let Ok(ip) = host.parse() {
            return Some(Addresses::from_elem(ip, 1));
        }
        match self.names.get_mut(host) {
            Some(CacheEntry::Known { addresses, until, .. }) if *until > now => return Some(addresses.clone()),
            Some(CacheEntry::Pending { before: Some((looked_up, addresses)), is_stale: true, .. })
                if now < *looked_up + STALE_MAX =>
            {
                return Some(addresses.clone());
            }
            Some(CacheEntry::Pending { tokens, .. }) => tokens.push(token),
            known => {
                let (before, is_stale) = match known {
                    Some(CacheEntry::Known { looked_up, addresses, is_stale, .. }) => {
                        let is_of_use = *is_stale && now < *looked_up + STALE_MAX;
                        (Some((*looked_up, std::mem::take(addresses))), is_of_use)
                    }
                    _ => (None, false),
                };
                let used = before.as_ref().filter(|_| is_stale).map(|(_, addresses)| addresses.clone());
                let tokens = if is_stale { Vec::new() } else { vec![token] };
                self.names.insert(host.to_owned(), CacheEntry::Pending { tokens, before, is_stale });
                self.queue.push_back(host.to_owned());
                return used;
            }
        }
        None
    }

    /// The next name to look up. Its result is given to [`HostNames::complete`].
    pub fn next_lookup(&mut self) -> Option<String> {
        if self.lookups == LOOKUPS_MAX {
            return None;
        }
        let host = self.queue.pop_front()?;
        self.lookups += 1;
        Some(host)
    }

    /// Caches the result for `ttl` and returns the tokens that waited for it.
    pub fn complete(&mut self, now: Duration, result: LookupResult, ttl: Duration) -> Vec<ScanToken> {
        self.lookups -= 1;
        let (tokens, before) = match self.names.remove(&result.host) {
            Some(CacheEntry::Pending { tokens, before, .. }) => (tokens, before),
            _ => (Vec::new(), None),
        };
        let before = before.filter(|(looked_up, _)| result.is_failure && now < *looked_up + STALE_MAX);
        let before = before.filter(|(_, addresses)| !addresses.is_empty());
        let (is_new, is_stale) = (!result.addresses.is_empty(), before.is_some());
        let (looked_up, addresses) = before.unwrap_or((now, result.addresses));
        let until = now + if is_new { ttl } else { ttl.min(NEGATIVE_TTL_MAX) };
        self.names.insert(result.host, CacheEntry::Known { looked_up, addresses, until, is_stale });
        tokens
    }

    /// Removes names that were not asked for since they expired, unless their addresses may still be of use.
    pub fn remove_expired(&mut self, now: Duration) {
        let is_kept = |name: &CacheEntry| match name {
            CacheEntry::Known { until, addresses, .. } if addresses.is_empty() => *until > now,
            CacheEntry::Known { looked_up, .. } => *looked_up + STALE_MAX > now,
            CacheEntry::Pending { .. } => true,
        };
        self.names.retain(|_, name| is_kept(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn order_of_addresses_does_not_depend_on_that_of_the_reply() {
        let in_order = |ips: Vec<IpAddr>| LookupResult::new(String::new(), ips).addresses;
        let ips = ["2a01::1", "9.9.9.9", "8.8.8.8", "9.9.9.9"].map(ip);
        assert_eq!(in_order(ips.to_vec())[..], [ips[2], ips[1], ips[0]]);
        assert_eq!(in_order(ips.into_iter().rev().collect())[..], [ips[2], ips[1], ips[0]]);
        assert_eq!(in_order((0..9).map(|n| IpAddr::from([10, 0, 0, n])).collect()).len(), ADDRESSES_MAX);
    }

    #[test]
    fn two_requests_share_one_lookup_and_the_result_is_cached() {
        let mut names = HostNames::default();
        assert_eq!(names.resolve(MS(0), "8.8.8.8", 1), Some(Addresses::from_elem(ip("8.8.8.8"), 1)));
        assert_eq!(names.resolve(MS(0), "a.test", 1), None);
        assert_eq!(names.resolve(MS(0), "a.test", 2), None);
        assert_eq!((names.next_lookup().as_deref(), names.next_lookup()), (Some("a.test"), None));
        let result = LookupResult::new("a.test".to_owned(), [ip("9.9.9.9")]);
        let addresses = result.addresses.clone();
        assert_eq!(names.complete(MS(5), result, MS(100)), [1, 2]);
        assert_eq!(names.resolve(MS(104), "a.test", 3), Some(addresses));
        assert_eq!(names.resolve(MS(105), "a.test", 3), None);
    }

    #[test]
    fn addresses_are_used_for_a_day_while_no_name_server_answers() {
        let mut names = HostNames::default();
        let (ttl, host) = (MS(600_000), "a.test");
        // What a scan gets at once, and after the look-up.
        let mut look_up = |now: Duration, result: LookupResult| {
            names.remove_expired(now);
            let at_once = names.resolve(now, host, 1);
            assert_eq!(names.resolve(now, host, 2), at_once, "at {now:?}");
            assert_eq!((names.next_lookup().as_deref(), names.next_lookup()), (Some(host), None));
            let waiting: &[ScanToken] = if at_once.is_some() { &[] } else { &[1, 2] };
            assert_eq!(names.complete(now, result, ttl), waiting);
            (at_once, names.resolve(now, host, 1).expect("an answer"))
        };
        let failure = || LookupResult::failure(host.to_owned());
        let known = Addresses::from_elem(ip("9.9.9.9"), 1);
        assert_eq!(look_up(MS(0), failure()), (None, Addresses::new()), "nothing was known before");
        let found = || LookupResult::new(host.to_owned(), [ip("9.9.9.9")]);
        assert_eq!(look_up(NEGATIVE_TTL_MAX, found()), (None, known.clone()));
        assert_eq!(look_up(MS(11 * 60_000), failure()), (None, known.clone()));
        for minutes in [12, 13, 24 * 60] {
            assert_eq!(look_up(MS(minutes * 60_000), failure()), (Some(known.clone()), known.clone()));
        }
        assert_eq!(look_up(NEGATIVE_TTL_MAX + STALE_MAX, failure()), (None, Addresses::new()), "a day later");
        // A name server that answers is believed.
        let later = STALE_MAX * 2;
        assert_eq!(look_up(later, found()), (None, known));
        let none = || LookupResult::new(host.to_owned(), []);
        assert_eq!(look_up(later + ttl, none()), (None, Addresses::new()));
        assert_eq!(look_up(later + ttl + NEGATIVE_TTL_MAX, failure()), (None, Addresses::new()));
    }
}
