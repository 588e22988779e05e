//! Rate limits: packets a second to one address, to one subnet, in total.
//!
//! A scan that exceeds a limit is queued at the narrowest exhausted limit. Queues
//! are first in, first out, and no scan is rejected. Only the head of a queue
//! checks its limiter, so a thousand servers of one host do not all wake for each
//! packet. Permits already granted are kept: a scan queued at the global limit
//! does not take permits of its address again.
//!
//! Time is an argument: the duration since a fixed start. It never decreases.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{NotUntil, Quota, RateLimiter};

use super::timers::Timers;
use crate::scan::address::Subnet;
use crate::scan::settings::ScanSettings;

type Middleware = NoOpMiddleware<Duration>;
type Keyed<K> = RateLimiter<K, HashMapStateStore<K>, ManualClock, Middleware>;

/// The scope of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitScope {
    Address(IpAddr),
    Subnet(Subnet),
    Global,
}

/// Result of [`RateLimits::acquire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Granted,
    /// Queued at this scope; [`RateLimits::poll`] returns the token later.
    Throttled(LimitScope),
}

/// The rate limits and the scans queued at them.
pub struct RateLimits {
    time: ManualClock,
    limits: Limits,
    queues: HashMap<LimitScope, VecDeque<ThrottledScan>>,
    due: Timers<LimitScope>,
}

#[derive(Clone, Copy, Debug)]
struct ThrottledScan {
    token: u64,
    ip: IpAddr,
    packets: NonZeroU32,
}

struct Limits {
    address: Keyed<IpAddr>,
    subnet: Keyed<Subnet>,
    global: RateLimiter<NotKeyed, InMemoryState, ManualClock, Middleware>,
    address_burst: NonZeroU32,
    subnet_burst: NonZeroU32,
    global_burst: NonZeroU32,
    limit_loopback: bool,
}

impl RateLimits {
    /// `settings` must have been checked.
    pub fn new(settings: &ScanSettings) -> RateLimits {
        let time = ManualClock::default();
        RateLimits { limits: Limits::new(settings, &time), time, queues: HashMap::new(), due: Timers::default() }
    }

    /// Applies new rates. Queued scans stay queued and are served at the new rate.
    pub fn reload(&mut self, settings: &ScanSettings) {
        self.limits = Limits::new(settings, &self.time);
        for &scope in self.queues.keys() {
            self.due.set(self.time.now(), scope);
        }
    }

    /// Requests permits for `packets` packets to `ip`, all at once. Only the global limit applies to a
    /// loopback address if the settings say so.
    pub fn acquire(&mut self, now: Duration, token: u64, ip: IpAddr, packets: u32) -> Admission {
        self.time.set(now);
        let is_exempt = ip.is_loopback() && !self.limits.limit_loopback;
        let first = if is_exempt { LimitScope::Global } else { LimitScope::Address(ip) };
        let packets = NonZeroU32::new(packets).unwrap_or(NonZeroU32::MIN);
        self.try_acquire(first, ThrottledScan { token, ip, packets })
    }

    /// Grants what is due: returns the tokens of the granted scans, in order.
    pub fn poll(&mut self, now: Duration) -> Vec<u64> {
        self.time.set(now);
        let mut granted = Vec::new();
        while let Some((_, scope)) = self.due.pop_due(now) {
            while let Some(&head) = self.queues.get(&scope).and_then(VecDeque::front) {
                if let Err(wait) = self.limits.check(scope, head) {
                    self.due.set(now + wait, scope);
                    break;
                }
                let queue = self.queues.get_mut(&scope).expect("its head exists");
                queue.pop_front();
                if queue.is_empty() {
                    self.queues.remove(&scope);
                }
                let is_granted = match next_scope(scope, head.ip) {
                    Some(next) => self.try_acquire(next, head) == Admission::Granted,
                    None => true,
                };
                if is_granted {
                    granted.push(head.token);
                }
            }
        }
        granted
    }

    /// When to call [`RateLimits::poll`] next; `None` while no scan is queued.
    pub fn next_due(&self) -> Option<Duration> {
        self.due.next()
    }

    /// Evicts addresses and subnets that have been idle for long enough.
    pub fn evict_idle(&mut self) {
        self.limits.address.retain_recent();
        self.limits.subnet.retain_recent();
    }

    fn try_acquire(&mut self, first: LimitScope, scan: ThrottledScan) -> Admission {
        let mut scope = first;
        loop {
            if let Some(queue) = self.queues.get_mut(&scope) {
                queue.push_back(scan);
                return Admission::Throttled(scope);
            }
            if let Err(wait) = self.limits.check(scope, scan) {
                self.queues.insert(scope, VecDeque::from([scan]));
                self.due.set(self.time.now() + wait, scope);
                return Admission::Throttled(scope);
            }
            match next_scope(scope, scan.ip) {
                Some(next) => scope = next,
                None => return Admission::Granted,
            }
        }
    }
}

fn next_scope(scope: LimitScope, ip: IpAddr) -> Option<LimitScope> {
    match scope {
        LimitScope::Address(_) => Some(LimitScope::Subnet(Subnet::of(ip))),
        LimitScope::Subnet(_) => Some(LimitScope::Global),
        LimitScope::Global => None,
    }
}

impl Limits {
    fn new(settings: &ScanSettings, time: &ManualClock) -> Limits {
        // A burst of a twentieth of a second's packets keeps the load even.
        let global_burst = burst((settings.packets_per_second_max / 20.0) as u32);
        let address_burst = burst(settings.address_burst_packets);
        let subnet_burst = burst(settings.subnet_burst_packets);
        Limits {
            address: keyed(settings.address_packets_per_second_max, address_burst, time),
            subnet: keyed(settings.subnet_packets_per_second_max, subnet_burst, time),
            global: RateLimiter::new(
                quota(settings.packets_per_second_max, global_burst),
                InMemoryState::default(),
                time.clone(),
            ),
            address_burst,
            subnet_burst,
            global_burst,
            limit_loopback: settings.limit_loopback,
        }
    }

    /// Error: the time until the next check can succeed.
    fn check(&self, scope: LimitScope, scan: ThrottledScan) -> Result<(), Duration> {
        // More than a burst is never granted at once, so a burst is the maximum that is taken.
        let checked = match scope {
            LimitScope::Address(ip) => self.address.check_key_n(&ip, scan.packets.min(self.address_burst)),
            LimitScope::Subnet(subnet) => self.subnet.check_key_n(&subnet, scan.packets.min(self.subnet_burst)),
            LimitScope::Global => self.global.check_n(scan.packets.min(self.global_burst)),
        };
        let checked = checked.expect("at most a burst is taken");
        checked.map_err(|until: NotUntil<Duration>| {
            // A wait rounded to zero would cause a busy loop.
            until.wait_time_from(self.address.clock().now()).max(Duration::from_micros(50))
        })
    }
}

fn keyed<K: std::hash::Hash + Eq + Clone>(per_second: f64, burst: NonZeroU32, time: &ManualClock) -> Keyed<K> {
    RateLimiter::new(quota(per_second, burst), HashMapStateStore::default(), time.clone())
}

fn quota(per_second: f64, burst: NonZeroU32) -> Quota {
    let period = Duration::from_secs_f64(1.0 / per_second).max(Duration::from_nanos(1));
    Quota::with_period(period).expect("a period above zero").allow_burst(burst)
}

fn burst(packets: u32) -> NonZeroU32 {
    NonZeroU32::new(packets).unwrap_or(NonZeroU32::MIN)
}

/// A clock with the time that was set. `governor` reads it.
#[derive(Clone, Debug, Default)]
struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    fn set(&self, now: Duration) {
        self.0.fetch_max(now.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> ScanSettings {
        ScanSettings {
            packets_per_second_max: 1_000.0,
            address_packets_per_second_max: 4.0,
            address_burst_packets: 8,
            subnet_packets_per_second_max: 10.0,
            subnet_burst_packets: 20,
            ..ScanSettings::default()
        }
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Requests all at time 0, then polls when due. Returns (ms, token) of each grant.
    fn run(limits: &mut RateLimits, requests: &[(u64, &str, u32)]) -> Vec<(u64, u64)> {
        let mut granted = Vec::new();
        for &(token, ip, packets) in requests {
            if limits.acquire(ms(0), token, ip.parse().unwrap(), packets) == Admission::Granted {
                granted.push((0, token));
            }
        }
        let mut polls = 0;
        while let Some(at) = limits.next_due() {
            granted.extend(limits.poll(at).into_iter().map(|token| (at.as_millis() as u64, token)));
            polls += 1;
            assert!(polls < 10_000);
        }
        granted
    }

    #[test]
    fn address_limit_grants_the_burst_then_the_rate_in_fifo_order() {
        let requests: Vec<_> = (0..20).map(|token| (token, "8.8.8.8", 1)).collect();
        let granted = run(&mut RateLimits::new(&settings()), &requests);
        assert_eq!(granted.iter().map(|g| g.1).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
        for &(at, token) in &granted {
            let due = if token < 8 { 0 } else { (token - 7) * 250 };
            assert!((due..=due + 1).contains(&at), "token {token} at {at}, due {due}");
        }
    }

    #[test]
    fn scan_of_three_packets_takes_three_permits() {
        let requests: Vec<_> = (0..4).map(|token| (token, "8.8.8.8", 3)).collect();
        let at: Vec<_> = run(&mut RateLimits::new(&settings()), &requests).iter().map(|g| g.0).collect();
        // Two at once; the third when one more permit is free, the fourth 3/4 s later.
        assert!(at[1] == 0 && (250..=251).contains(&at[2]) && (1_000..=1_002).contains(&at[3]), "{at:?}");
        // A request for more than a burst takes a burst.
        assert_eq!(run(&mut RateLimits::new(&settings()), &[(1, "8.8.8.8", 100)]), [(0, 1)]);
    }

    #[test]
    fn subnet_limit_bounds_its_addresses_without_starvation() {
        let ips: Vec<String> = (0..100).map(|i| format!("8.8.8.{}", i % 50)).collect();
        let requests: Vec<_> = ips.iter().enumerate().map(|(i, ip)| (i as u64, ip.as_str(), 1)).collect();
        let granted = run(&mut RateLimits::new(&settings()), &requests);
        assert_eq!(granted.len(), 100);
        assert_eq!(granted.iter().filter(|g| g.0 == 0).count(), 20);
        let last = granted.last().unwrap().0;
        assert!((8_000..=8_010).contains(&last), "{last}");
    }

    #[test]
    fn exhausted_address_does_not_delay_another() {
        let mut requests: Vec<_> = (0..50).map(|token| (token, "8.8.8.8", 1)).collect();
        requests.push((99, "9.9.9.9", 1));
        let granted = run(&mut RateLimits::new(&settings()), &requests);
        assert!(granted.contains(&(0, 99)));
    }

    #[test]
    fn loopback_may_be_exempt_from_all_limits_but_the_global_one() {
        let requests: Vec<_> = (0..1_000).map(|token| (token, "127.0.0.1", 1)).collect();
        let exempt = ScanSettings { limit_loopback: false, ..settings() };
        let limited = run(&mut RateLimits::new(&settings()), &requests[..30]);
        assert!(limited.iter().filter(|g| g.0 == 0).count() < 30);
        let granted = run(&mut RateLimits::new(&exempt), &requests);
        assert_eq!(granted.iter().filter(|g| g.0 == 0).count(), 50);
        let last = granted.last().unwrap().0;
        assert!((945..=955).contains(&last), "{last}");
    }

    #[test]
    fn reload_keeps_the_queue_and_applies_the_new_rate() {
        let mut limits = RateLimits::new(&settings());
        for token in 0..108 {
            limits.acquire(ms(0), token, "8.8.8.8".parse().unwrap(), 1);
        }
        limits.reload(&ScanSettings {
            address_packets_per_second_max: 1_000.0,
            subnet_packets_per_second_max: 1_000.0,
            ..settings()
        });
        let mut granted = 0;
        while let Some(at) = limits.next_due().filter(|&at| at <= ms(200)) {
            granted += limits.poll(at).len();
        }
        assert_eq!(granted, 100);
    }
}
