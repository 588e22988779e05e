//! The addresses of host names: a cache with expiry, the scans that wait for a look-up, and the
//! names to look up, a bounded number at a time.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use smallvec::SmallVec;

use super::packets::ScanToken;
use crate::model::ServerUrl;
use crate::scan::target::MINECRAFT_PORT;

/// Concurrent look-ups. Each blocks a thread until the name server replies.
const LOOKUPS_MAX: usize = 64;

/// A name without an address is looked up again after at most this time.
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(60);

/// The addresses of a name are used for so long after they were looked up, while no name server answers (RFC 8767).
const STALE_MAX: Duration = Duration::from_secs(86_400);

/// Before the name of a host: its service, which has an SRV record or else the addresses of the host.
pub(in crate::scan) const MINECRAFT_SERVICE: &str = "_minecraft._tcp.";

/// Most addresses of a host name that are tried.
const ADDRESSES_MAX: usize = 4;

/// Where a host is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::scan) struct Addresses {
    /// In the order in which they are tried; none: the name has none.
    pub ips: SmallVec<[IpAddr; 1]>,
    /// Where the service is that was looked up, if it has an SRV record.
    pub service_port: Option<u16>,
}

/// What is looked up for the host of a URL: players find Minecraft servers by the SRV record of a host, unless they name another
/// port than the usual one.
pub(super) fn looked_up(url: &ServerUrl) -> Cow<'_, str> {
    let is_service = url.scheme() == "minecraft" && url.port() == MINECRAFT_PORT;
    match url.host() {
        host if is_service && host.parse::<IpAddr>().is_err() => format!("{MINECRAFT_SERVICE}{host}").into(),
        host => host.into(),
    }
}

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
    /// Nothing is known of the SRV record.
    is_service_unknown: bool,
}

impl LookupResult {
    /// The order of the addresses does not depend on that of the DNS reply. IPv4 first, because
    /// few game servers listen on IPv6.
    pub fn new(host: String, addresses: impl IntoIterator<Item = IpAddr>) -> LookupResult {
        let mut ips: SmallVec<[IpAddr; 1]> = addresses.into_iter().collect();
        ips.sort();
        ips.dedup();
        ips.truncate(ADDRESSES_MAX);
        LookupResult {
            host,
            addresses: Addresses { ips, service_port: None },
            is_failure: false,
            is_service_unknown: false,
        }
    }

    pub fn failure(host: String) -> LookupResult {
        LookupResult { host, addresses: Addresses::default(), is_failure: true, is_service_unknown: false }
    }

    /// As [`LookupResult::new`] for the addresses of a service with this name, on the port of its SRV record. An error: no name server
    /// has said whether it has one.
    pub fn of_service(self, name: String, port: Result<Option<u16>, ()>) -> LookupResult {
        let service_port = port.ok().flatten();
        let addresses = Addresses { service_port, ..self.addresses };
        LookupResult { host: name, addresses, is_service_unknown: port.is_err(), ..self }
    }
}

impl HostNames {
    /// The addresses of a host, if they are cached. Otherwise [`HostNames::complete`] returns the token later.
    pub fn resolve(&mut self, now: Duration, host: &str, token: ScanToken) -> Option<Addresses> {
        if let Ok(ip) = host.parse() {
            return Some(Addresses { ips: SmallVec::from_elem(ip, 1), service_port: None });
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
        // A port that is known is better than none.
        let is_of_use =
            |before: &Addresses| result.is_failure || result.is_service_unknown && before.service_port.is_some();
        let before = before.filter(|(looked_up, before)| is_of_use(before) && now < *looked_up + STALE_MAX);
        let before = before.filter(|(_, addresses)| !addresses.ips.is_empty());
        let is_new = !result.is_failure && !result.addresses.ips.is_empty();
        let is_stale = before.is_some();
        let (looked_up, addresses) = before.unwrap_or((now, result.addresses));
        let until = now + if is_new { ttl } else { ttl.min(NEGATIVE_TTL_MAX) };
        self.names.insert(result.host, CacheEntry::Known { looked_up, addresses, until, is_stale });
        tokens
    }

    /// Removes names that were not asked for since they expired, unless their addresses may still be of use.
    pub fn remove_expired(&mut self, now: Duration) {
        let is_kept = |name: &CacheEntry| match name {
            CacheEntry::Known { until, addresses, .. } if addresses.ips.is_empty() => *until > now,
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

    fn known(ips: &[&str]) -> Addresses {
        Addresses { ips: ips.iter().map(|text| ip(text)).collect(), service_port: None }
    }

    #[test]
    fn service_of_a_host_is_looked_up_at_the_usual_port() {
        let name = |url: &str| looked_up(&ServerUrl::parse(url).unwrap()).into_owned();
        assert_eq!(name("minecraft://play.example.org:25565"), "_minecraft._tcp.play.example.org");
        assert_eq!(name("minecraft://play.example.org:25566"), "play.example.org");
        assert_eq!(name("minecraft://192.0.2.7:25565"), "192.0.2.7");
        assert_eq!(name("quake3://play.example.org:25565"), "play.example.org");
    }

    #[test]
    fn port_of_a_service_is_the_last_known_while_no_name_server_says_it() {
        let (mut names, name) = (HostNames::default(), "_minecraft._tcp.a.test");
        let mut look_up = |seconds: u64, address: &str, port: Result<Option<u16>, ()>| {
            let now = Duration::from_secs(seconds);
            _ = names.resolve(now, name, 1);
            names.next_lookup().expect("it has expired");
            let host = LookupResult::new("a.test".to_owned(), [ip(address)]);
            names.complete(now, host.of_service(name.to_owned(), port), Duration::from_secs(100));
            names.resolve(now, name, 1).expect("an answer")
        };
        let at = |address: &str, service_port: Option<u16>| Addresses { service_port, ..known(&[address]) };
        assert_eq!(look_up(0, "9.9.9.1", Err(())), at("9.9.9.1", None));
        assert_eq!(look_up(100, "9.9.9.2", Err(())), at("9.9.9.2", None), "the host has moved");
        assert_eq!(look_up(200, "9.9.9.3", Ok(Some(7))), at("9.9.9.3", Some(7)));
        assert_eq!(look_up(300, "9.9.9.1", Err(())), at("9.9.9.3", Some(7)));
        assert_eq!(look_up(400, "9.9.9.4", Ok(None)), at("9.9.9.4", None));
    }

    #[test]
    fn order_of_addresses_does_not_depend_on_that_of_the_reply() {
        let in_order = |ips: Vec<IpAddr>| LookupResult::new(String::new(), ips).addresses.ips;
        let ips = ["2a01::1", "9.9.9.9", "8.8.8.8", "9.9.9.9"].map(ip);
        assert_eq!(in_order(ips.to_vec())[..], [ips[2], ips[1], ips[0]]);
        assert_eq!(in_order(ips.into_iter().rev().collect())[..], [ips[2], ips[1], ips[0]]);
        assert_eq!(in_order((0..9).map(|n| IpAddr::from([10, 0, 0, n])).collect()).len(), ADDRESSES_MAX);
    }

    #[test]
    fn two_requests_share_one_lookup_and_the_result_is_cached() {
        let mut names = HostNames::default();
        assert_eq!(names.resolve(MS(0), "8.8.8.8", 1), Some(known(&["8.8.8.8"])));
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
        let nine = known(&["9.9.9.9"]);
        assert_eq!(look_up(MS(0), failure()), (None, known(&[])), "nothing was known before");
        let found = || LookupResult::new(host.to_owned(), [ip("9.9.9.9")]);
        assert_eq!(look_up(NEGATIVE_TTL_MAX, found()), (None, nine.clone()));
        assert_eq!(look_up(MS(11 * 60_000), failure()), (None, nine.clone()));
        for minutes in [12, 13, 24 * 60] {
            assert_eq!(look_up(MS(minutes * 60_000), failure()), (Some(nine.clone()), nine.clone()));
        }
        assert_eq!(look_up(NEGATIVE_TTL_MAX + STALE_MAX, failure()), (None, known(&[])), "a day later");
        // A name server that answers is believed.
        let later = STALE_MAX * 2;
        assert_eq!(look_up(later, found()), (None, nine));
        let none = || LookupResult::new(host.to_owned(), []);
        assert_eq!(look_up(later + ttl, none()), (None, known(&[])));
        assert_eq!(look_up(later + ttl + NEGATIVE_TTL_MAX, failure()), (None, known(&[])));
    }
}
