//! How fast: packets a second to one address, to one subnet, to all.
//!
//! Who asks is let through or stands in line, first come, first served, at the
//! narrowest gate that holds him back; nobody is turned away. Only the head of
//! a line asks its limiter, so a thousand servers of one host do not all wake
//! for each packet. What one gate has granted is not asked for again: a scan
//! that waits at a wider gate does not eat the budget of a narrower one.
//!
//! Time is an argument: since some fixed moment, never running backwards.

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

use super::settings::ScanSettings;
use super::target::Subnet;
use super::timers::Timers;

type Middleware = NoOpMiddleware<Duration>;
type Keyed<K> = RateLimiter<K, HashMapStateStore<K>, ManualClock, Middleware>;

/// The limits on one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitScope {
    Address(IpAddr),
    Subnet(Subnet),
    Global,
}

/// Answer to [`RateLimits::ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Granted,
    /// Stands in line at this gate; [`RateLimits::poll`] will name the ticket.
    Waits(LimitScope),
}

/// The budgets and who waits for them.
pub struct RateLimits {
    time: ManualClock,
    limits: Limits,
    lines: HashMap<LimitScope, VecDeque<ThrottledScan>>,
    due: Timers<Duration, LimitScope>,
}

#[derive(Clone, Copy, Debug)]
struct ThrottledScan {
    ticket: u64,
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
}

impl RateLimits {
    /// `settings` must have been checked.
    pub fn new(settings: &ScanSettings) -> RateLimits {
        let time = ManualClock::default();
        RateLimits { limits: Limits::new(settings, &time), time, lines: HashMap::new(), due: Timers::default() }
    }

    /// New rates. Who stands in line stays there, and is served at the new rate.
    pub fn reload(&mut self, settings: &ScanSettings) {
        self.limits = Limits::new(settings, &self.time);
        for &gate in self.lines.keys() {
            self.due.set(self.time.now(), gate);
        }
    }

    /// Asks for `packets` packets to `ip`, all at once. A loopback address is our
    /// own machine: only the global limit holds for it.
    pub fn ask(&mut self, now: Duration, ticket: u64, ip: IpAddr, packets: u32) -> Admission {
        self.time.tell(now);
        let first = if ip.is_loopback() { LimitScope::Global } else { LimitScope::Address(ip) };
        let packets = NonZeroU32::new(packets).unwrap_or(NonZeroU32::MIN);
        self.pass(first, ThrottledScan { ticket, ip, packets })
    }

    /// Lets through whoever may go now: their tickets, in order.
    pub fn poll(&mut self, now: Duration) -> Vec<u64> {
        self.time.tell(now);
        let mut granted = Vec::new();
        while let Some((_, gate)) = self.due.pop_due(now) {
            while let Some(&head) = self.lines.get(&gate).and_then(VecDeque::front) {
                if let Err(wait) = self.limits.check(gate, head) {
                    self.due.set(now + wait, gate);
                    break;
                }
                let line = self.lines.get_mut(&gate).expect("its head was just seen");
                line.pop_front();
                if line.is_empty() {
                    self.lines.remove(&gate);
                }
                let through = match next_scope(gate, head.ip) {
                    Some(next) => self.pass(next, head) == Admission::Granted,
                    None => true,
                };
                if through {
                    granted.push(head.ticket);
                }
            }
        }
        granted
    }

    /// When to call [`RateLimits::poll`] next; `None` while nobody waits.
    pub fn next(&self) -> Option<Duration> {
        self.due.next()
    }

    /// Forgets addresses and subnets that have been quiet for long enough.
    pub fn tidy(&mut self) {
        self.limits.address.retain_recent();
        self.limits.subnet.retain_recent();
    }

    fn pass(&mut self, first: LimitScope, who: ThrottledScan) -> Admission {
        let mut gate = first;
        loop {
            if let Some(line) = self.lines.get_mut(&gate) {
                line.push_back(who);
                return Admission::Waits(gate);
            }
            if let Err(wait) = self.limits.check(gate, who) {
                self.lines.insert(gate, VecDeque::from([who]));
                self.due.set(self.time.now() + wait, gate);
                return Admission::Waits(gate);
            }
            match next_scope(gate, who.ip) {
                Some(next) => gate = next,
                None => return Admission::Granted,
            }
        }
    }
}

fn next_scope(gate: LimitScope, ip: IpAddr) -> Option<LimitScope> {
    match gate {
        LimitScope::Address(_) => Some(LimitScope::Subnet(Subnet::of(ip))),
        LimitScope::Subnet(_) => Some(LimitScope::Global),
        LimitScope::Global => None,
    }
}

impl Limits {
    fn new(settings: &ScanSettings, time: &ManualClock) -> Limits {
        // A twentieth of a second's packets at once keeps the load flat.
        let global_burst = burst((settings.per_second_max / 20.0) as u32);
        let address_burst = burst(settings.per_address_burst);
        let subnet_burst = burst(settings.per_subnet_burst);
        Limits {
            address: keyed(settings.per_address_per_second_max, address_burst, time),
            subnet: keyed(settings.per_subnet_per_second_max, subnet_burst, time),
            global: RateLimiter::new(
                quota(settings.per_second_max, global_burst),
                InMemoryState::default(),
                time.clone(),
            ),
            address_burst,
            subnet_burst,
            global_burst,
        }
    }

    /// Error: how long until it may be asked again.
    fn check(&self, gate: LimitScope, who: ThrottledScan) -> Result<(), Duration> {
        // More than a burst could never pass: the burst is then the price.
        let checked = match gate {
            LimitScope::Address(ip) => self.address.check_key_n(&ip, who.packets.min(self.address_burst)),
            LimitScope::Subnet(subnet) => self.subnet.check_key_n(&subnet, who.packets.min(self.subnet_burst)),
            LimitScope::Global => self.global.check_n(who.packets.min(self.global_burst)),
        };
        let checked = checked.expect("the price is at most a burst");
        checked.map_err(|until: NotUntil<Duration>| {
            // A rounding of nothing must not make us ask in a loop.
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

/// A clock that shows what it was told: `governor` asks it, we tell it.
#[derive(Clone, Debug, Default)]
struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    fn tell(&self, now: Duration) {
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
            per_second_max: 1_000.0,
            per_address_per_second_max: 4.0,
            per_address_burst: 8,
            per_subnet_per_second_max: 10.0,
            per_subnet_burst: 20,
            ..ScanSettings::default()
        }
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Asks for all at time 0, then polls when told to: (ms, ticket) of each grant.
    fn run(budgets: &mut RateLimits, asks: &[(u64, &str, u32)]) -> Vec<(u64, u64)> {
        let mut granted = Vec::new();
        for &(ticket, ip, packets) in asks {
            if budgets.ask(ms(0), ticket, ip.parse().unwrap(), packets) == Admission::Granted {
                granted.push((0, ticket));
            }
        }
        let mut polls = 0;
        while let Some(at) = budgets.next() {
            granted.extend(budgets.poll(at).into_iter().map(|ticket| (at.as_millis() as u64, ticket)));
            polls += 1;
            assert!(polls < 10_000);
        }
        granted
    }

    #[test]
    fn address_limit_grants_the_burst_then_the_rate_in_fifo_order() {
        let asks: Vec<_> = (0..20).map(|ticket| (ticket, "8.8.8.8", 1)).collect();
        let granted = run(&mut RateLimits::new(&settings()), &asks);
        assert_eq!(granted.iter().map(|g| g.1).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
        for &(at, ticket) in &granted {
            let due = if ticket < 8 { 0 } else { (ticket - 7) * 250 };
            assert!((due..=due + 1).contains(&at), "ticket {ticket} at {at}, due {due}");
        }
    }

    #[test]
    fn scan_of_three_packets_takes_three_permits() {
        let asks: Vec<_> = (0..4).map(|ticket| (ticket, "8.8.8.8", 3)).collect();
        let at: Vec<_> = run(&mut RateLimits::new(&settings()), &asks).iter().map(|g| g.0).collect();
        // Two at once; the third when one more packet is free, the fourth 3/4 s later.
        assert!(at[1] == 0 && (250..=251).contains(&at[2]) && (1_000..=1_002).contains(&at[3]), "{at:?}");
        // More than a burst is let through at the price of the burst.
        assert_eq!(run(&mut RateLimits::new(&settings()), &[(1, "8.8.8.8", 100)]), [(0, 1)]);
    }

    #[test]
    fn subnet_limit_bounds_its_addresses_without_starvation() {
        let ips: Vec<String> = (0..100).map(|i| format!("8.8.8.{}", i % 50)).collect();
        let asks: Vec<_> = ips.iter().enumerate().map(|(i, ip)| (i as u64, ip.as_str(), 1)).collect();
        let granted = run(&mut RateLimits::new(&settings()), &asks);
        assert_eq!(granted.len(), 100);
        assert_eq!(granted.iter().filter(|g| g.0 == 0).count(), 20);
        let last = granted.last().unwrap().0;
        assert!((8_000..=8_010).contains(&last), "{last}");
    }

    #[test]
    fn exhausted_address_does_not_delay_another() {
        let mut asks: Vec<_> = (0..50).map(|ticket| (ticket, "8.8.8.8", 1)).collect();
        asks.push((99, "9.9.9.9", 1));
        let granted = run(&mut RateLimits::new(&settings()), &asks);
        assert!(granted.contains(&(0, 99)));
    }

    #[test]
    fn global_limit_applies_to_loopback() {
        let asks: Vec<_> = (0..1_000).map(|ticket| (ticket, "127.0.0.1", 1)).collect();
        let granted = run(&mut RateLimits::new(&settings()), &asks);
        assert_eq!(granted.iter().filter(|g| g.0 == 0).count(), 50);
        let last = granted.last().unwrap().0;
        assert!((945..=955).contains(&last), "{last}");
    }

    #[test]
    fn reload_keeps_the_queue_and_applies_the_new_rate() {
        let mut budgets = RateLimits::new(&settings());
        for ticket in 0..108 {
            budgets.ask(ms(0), ticket, "8.8.8.8".parse().unwrap(), 1);
        }
        budgets.reload(&ScanSettings {
            per_address_per_second_max: 1_000.0,
            per_subnet_per_second_max: 1_000.0,
            ..settings()
        });
        let mut served = 0;
        while let Some(at) = budgets.next().filter(|&at| at <= ms(200)) {
            served += budgets.poll(at).len();
        }
        assert_eq!(served, 100);
    }
}
