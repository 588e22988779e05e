//! The addresses of host names: a cache with expiry, the scans that wait for a look-up, and the
//! names to look up, a bounded number at a time.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use smallvec::SmallVec;

use super::packets::ScanToken;
use crate::model::ServerUrl;
use crate::scan::outcome::MissReason;
use crate::scan::target::MINECRAFT_PORT;

/// Concurrent look-ups. Each blocks a thread until the name server replies, or the system's resolver gives up, which may be after
/// the look-up has timed out.
const LOOKUPS_MAX: usize = 64;

/// A name without an address is looked up again after at most this time.
const NEGATIVE_TTL_MAX: Duration = Duration::from_secs(60);

/// The addresses of a name are used for so long after they were looked up, while no name server answers (RFC 8767). For so long
/// the silence of name servers is not the fault of a server without a known address, either.
const STALE_MAX: Duration = Duration::from_secs(86_400);

/// Since when the name servers of a name are silent is known for so long after the last look-up: longer than the longest interval of
/// a class, 28 days.
const SILENCE_KEPT: Duration = Duration::from_secs(30 * 86_400);

/// With more names, it is known for two days only.
const NAMES_MAX: usize = 100_000;

/// After so many failed look-ups in succession, name servers probably do not answer at all. A single one may be of a broken domain.
const FAILURES_MIN: u32 = 3;

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
    /// Look-ups that have failed since one was answered.
    failures: u32,
}

#[derive(Debug, Default)]
struct CacheEntry {
    /// `None`: no look-up has ended yet.
    known: Option<Known>,
    /// Until then it is used without another look-up. Time since the start.
    until: Duration,
    /// The scans that wait for the look-up in the queue or in progress; `None`: there is none.
    waiting: Option<Vec<ScanToken>>,
}

/// What is known of a name.
#[derive(Clone, Debug)]
struct Known {
    /// When the addresses were looked up; if no name server has answered yet, when the first look-up failed. Time since the
    /// start.
    looked_up: Duration,
    addresses: Addresses,
    /// No name server has answered since then.
    is_stale: bool,
}

impl Known {
    fn is_recent(&self, now: Duration) -> bool {
        now < self.looked_up + STALE_MAX
    }

    /// No name server has answered again.
    fn without_answer(mut self, now: Duration) -> Known {
        self.is_stale = true;
        if !self.is_recent(now) {
            self.addresses = Addresses::default();
        }
        self
    }

    /// The addresses, or why a scan without them is a miss.
    fn answer(&self, now: Duration) -> Result<Addresses, MissReason> {
        if !self.addresses.ips.is_empty() {
            Ok(self.addresses.clone())
        } else if self.is_stale && self.is_recent(now) {
            Err(MissReason::LookupFailed)
        } else {
            Err(MissReason::Unresolved)
        }
    }
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
    /// The addresses of a host, or why there are none, if that is known. Otherwise [`HostNames::complete`] returns the token
    /// later.
    pub fn resolve(&mut self, now: Duration, host: &str, token: ScanToken) -> Option<Result<Addresses, MissReason>> {
        if let Ok(ip) = host.parse() {
            return Some(Ok(Addresses { ips: SmallVec::from_elem(ip, 1), service_port: None }));
        }
        // An address that has expired is used while it is looked up, if that would probably take long, or fail.
        let is_slow = self.failures >= FAILURES_MIN || self.queue.len() >= LOOKUPS_MAX;
        let is_used =
            |before: &Known| (is_slow || before.is_stale) && before.is_recent(now) && !before.addresses.ips.is_empty();
        let is_silent = self.are_servers_silent();
        if !self.names.contains_key(host) {
            self.names.insert(host.to_owned(), CacheEntry::default());
        }
        let entry = self.names.get_mut(host).expect("it was inserted");
        if entry.waiting.is_none() {
            if let Some(known) = entry.known.as_ref().filter(|_| entry.until > now) {
                return Some(known.answer(now));
            }
            self.queue.push_back(host.to_owned());
        }
        let waiting = entry.waiting.get_or_insert_default();
        match &entry.known {
            Some(before) if is_used(before) => Some(before.answer(now)),
            before if is_silent => Some(answer_of_silent_servers(before.as_ref(), now)),
            _ => {
                waiting.push(token);
                None
            }
        }
    }

    /// Whether name servers probably do not answer, and many look-ups wait for them: each takes seconds. A scan that waited
    /// for one would only take the place of others.
    fn are_servers_silent(&self) -> bool {
        self.failures >= FAILURES_MIN && self.lookups + self.queue.len() >= LOOKUPS_MAX
    }

    /// The scans that waited for look-ups in the queue when the name servers turned out to be silent, and what they get.
    pub fn take_hopeless(&mut self, now: Duration) -> Vec<(ScanToken, Result<Addresses, MissReason>)> {
        let mut hopeless = Vec::new();
        // Later ones do not begin to wait.
        if self.failures != FAILURES_MIN || !self.are_servers_silent() {
            return hopeless;
        }
        for host in &self.queue {
            let Some(CacheEntry { known, waiting: Some(waiting), .. }) = self.names.get_mut(host) else { continue };
            let answer = answer_of_silent_servers(known.as_ref(), now);
            hopeless.extend(waiting.drain(..).map(|token| (token, answer.clone())));
        }
        hopeless
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

    /// Caches the result for `ttl`. Returns the tokens that waited for it, and what their scans get.
    pub fn complete(
        &mut self,
        now: Duration,
        result: LookupResult,
        ttl: Duration,
    ) -> (Vec<ScanToken>, Result<Addresses, MissReason>) {
        self.lookups -= 1;
        self.failures = if result.is_failure { self.failures.saturating_add(1) } else { 0 };
        let CacheEntry { known: before, waiting, .. } = self.names.remove(&result.host).unwrap_or_default();
        let is_new = !result.is_failure && !result.addresses.ips.is_empty();
        let until = now + if is_new { ttl } else { ttl.min(NEGATIVE_TTL_MAX) };
        // A port that is known is better than none.
        let has_port = |before: &Known| !before.addresses.ips.is_empty() && before.addresses.service_port.is_some();
        let is_kept = |before: &Known| {
            result.is_failure || result.is_service_unknown && before.is_recent(now) && has_port(before)
        };
        let known = match before.filter(is_kept) {
            Some(before) => before.without_answer(now),
            None => Known { looked_up: now, addresses: result.addresses, is_stale: result.is_failure },
        };
        let answer = known.answer(now);
        self.names.insert(result.host, CacheEntry { known: Some(known), until, waiting: None });
        (waiting.unwrap_or_default(), answer)
    }

    /// Removes names that were not asked for since they expired, unless what is known of them may still be of use.
    pub fn remove_expired(&mut self, now: Duration) {
        let kept = if self.names.len() > NAMES_MAX { 2 * STALE_MAX } else { SILENCE_KEPT };
        let is_kept = |CacheEntry { known, until, waiting }: &CacheEntry| {
            let is_useful = |known: &Known| match known.is_stale {
                // Since when its name servers are silent must not be forgotten between two scans.
                true => *until + kept > now,
                false => !known.addresses.ips.is_empty() && known.is_recent(now),
            };
            waiting.is_some() || *until > now || known.as_ref().is_some_and(is_useful)
        };
        self.names.retain(|_, entry| is_kept(entry));
    }
}

/// What a scan gets that does not wait for silent name servers.
fn answer_of_silent_servers(before: Option<&Known>, now: Duration) -> Result<Addresses, MissReason> {
    before.map_or(Err(MissReason::LookupFailed), |before| before.clone().without_answer(now).answer(now))
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
            _ = names.complete(now, host.of_service(name.to_owned(), port), Duration::from_secs(100));
            names.resolve(now, name, 1).expect("an answer").expect("addresses")
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
        assert_eq!(names.resolve(MS(0), "8.8.8.8", 1), Some(Ok(known(&["8.8.8.8"]))));
        assert_eq!(names.resolve(MS(0), "a.test", 1), None);
        assert_eq!(names.resolve(MS(0), "a.test", 2), None);
        assert_eq!((names.next_lookup().as_deref(), names.next_lookup()), (Some("a.test"), None));
        let result = LookupResult::new("a.test".to_owned(), [ip("9.9.9.9")]);
        let answer = Ok(known(&["9.9.9.9"]));
        assert_eq!(names.complete(MS(5), result, MS(100)), (vec![1, 2], answer.clone()));
        assert_eq!(names.resolve(MS(104), "a.test", 3), Some(answer));
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
            let waiting = if at_once.is_some() { vec![] } else { vec![1, 2] };
            let (tokens, answer) = names.complete(now, result, ttl);
            assert_eq!((tokens, names.resolve(now, host, 1)), (waiting, Some(answer.clone())));
            (at_once, answer)
        };
        let failure = || LookupResult::failure(host.to_owned());
        let nine = Ok(known(&["9.9.9.9"]));
        assert_eq!(look_up(MS(0), failure()), (None, Err(MissReason::LookupFailed)), "nothing was known before");
        let found = || LookupResult::new(host.to_owned(), [ip("9.9.9.9")]);
        assert_eq!(look_up(NEGATIVE_TTL_MAX, found()), (None, nine.clone()));
        assert_eq!(look_up(MS(11 * 60_000), failure()), (None, nine.clone()));
        for minutes in [12, 13, 24 * 60] {
            assert_eq!(look_up(MS(minutes * 60_000), failure()), (Some(nine.clone()), nine.clone()));
        }
        let unresolved = || (None, Err(MissReason::Unresolved));
        assert_eq!(look_up(NEGATIVE_TTL_MAX + STALE_MAX, failure()), unresolved(), "a day later");
        // A name server that answers is believed.
        let later = STALE_MAX * 2;
        assert_eq!(look_up(later, found()), (None, nine));
        let none = || LookupResult::new(host.to_owned(), []);
        assert_eq!(look_up(later + ttl, none()), unresolved());
    }

    #[test]
    fn expired_address_is_used_at_once_while_look_ups_fail_or_wait() {
        let mut names = HostNames::default();
        let (start, ttl) = (MS(0), MS(100));
        let look_up = |names: &mut HostNames, now: Duration, host: &str, ips: Option<&[IpAddr]>| {
            let at_once = names.resolve(now, host, 1);
            assert_eq!(names.next_lookup().as_deref(), Some(host));
            let result = LookupResult::failure(host.to_owned());
            _ = names.complete(
                now,
                ips.map_or(result, |ips| LookupResult::new(host.to_owned(), ips.iter().copied())),
                ttl,
            );
            at_once
        };
        let found = [ip("9.9.9.9")];
        let at_once = Some(Ok(known(&["9.9.9.9"])));
        for host in ["a.test", "b.test", "c.test"] {
            assert_eq!(look_up(&mut names, start, host, Some(&found)), None);
        }
        for host in ["x.test", "y.test"] {
            look_up(&mut names, ttl, host, None);
        }
        assert_eq!(names.resolve(ttl, "a.test", 1), None, "the domains of two names may be broken");
        assert_eq!(names.next_lookup().as_deref(), Some("a.test"));
        _ = names.complete(ttl, LookupResult::failure("a.test".to_owned()), ttl);
        assert_eq!(look_up(&mut names, ttl, "b.test", Some(&found)), at_once, "look-ups fail");
        assert_eq!(look_up(&mut names, ttl, "c.test", Some(&found)), None, "one was answered");
        for n in 0..LOOKUPS_MAX {
            assert_eq!(names.resolve(ttl, &format!("{n}.test"), 1), None);
        }
        assert_eq!(names.resolve(ttl * 2, "b.test", 1), at_once, "many wait");
        assert_eq!(names.resolve(ttl * 2, "b.test", 1), at_once, "its own look-up waits, too");
        assert_eq!(names.resolve(STALE_MAX + ttl, "c.test", 1), None, "too old");
    }

    #[test]
    fn failed_look_ups_of_a_name_without_an_address_are_local_faults_for_a_day() {
        let mut names = HostNames::default();
        let mut failure_after = |hours: u64| {
            let now = Duration::from_secs(hours * 3_600);
            names.remove_expired(now);
            assert_eq!(names.resolve(now, "a.test", 1), None);
            names.next_lookup().expect("it has expired");
            let (tokens, answer) = names.complete(now, LookupResult::failure("a.test".to_owned()), MS(600_000));
            assert_eq!(tokens, [1]);
            answer.expect_err("no address")
        };
        assert_eq!([0, 1, 23].map(&mut failure_after), [MissReason::LookupFailed; 3]);
        assert_eq!([24, 25, 49, 73].map(&mut failure_after), [MissReason::Unresolved; 4], "also of daily scans");
        assert_eq!(failure_after(73 + 28 * 24), MissReason::Unresolved, "also of scans every four weeks");
        assert_eq!(failure_after(70 * 24), MissReason::LookupFailed, "nobody has asked for it for long");
    }

    #[test]
    fn address_is_used_for_its_whole_time_though_that_is_longer_than_a_day() {
        let (mut names, week, answer) = (HostNames::default(), 7 * STALE_MAX, Ok(known(&["9.9.9.9"])));
        assert_eq!(names.resolve(MS(0), "a.test", 1), None);
        names.next_lookup().expect("it is new");
        _ = names.complete(MS(0), LookupResult::new("a.test".to_owned(), [ip("9.9.9.9")]), week);
        for now in [STALE_MAX, week - MS(1)] {
            names.remove_expired(now);
            assert_eq!(names.resolve(now, "a.test", 2), Some(answer.clone()), "at {now:?}");
        }
        names.remove_expired(week);
        assert_eq!((names.resolve(week, "a.test", 3), names.next_lookup().as_deref()), (None, Some("a.test")));
    }
}
