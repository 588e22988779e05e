//! Hosts on which several servers have stopped answering together. Probably a filter drops our
//! packets, or the host is down. The servers of such a host are not queried repeatedly.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use arrayvec::ArrayVec;

/// Least number of servers of one host that must have stopped answering, without a reply from any
/// other.
const SERVERS_MIN: usize = 3;

/// A host is forgotten after this time without a further silent server.
const EXPIRY: Duration = Duration::from_secs(86_400);

/// Uses std's keyed hasher, because attackers can choose addresses.
#[derive(Debug, Default)]
pub struct SilentHosts {
    hosts: HashMap<IpAddr, SilentHost>,
}

#[derive(Debug)]
struct SilentHost {
    /// Ports of servers that have fallen silent since the last reply from the host.
    ports: ArrayVec<u16, SERVERS_MIN>,
    /// When the last of them was missed: time since the start.
    last: Duration,
}

impl SilentHosts {
    /// Records that a server did not answer although it has answered before. Returns whether the
    /// host now counts as silent and did not before.
    pub fn record_silence(&mut self, ip: IpAddr, port: u16, now: Duration) -> bool {
        let host = self.hosts.entry(ip).or_insert_with(|| SilentHost { ports: ArrayVec::new(), last: now });
        host.last = now;
        if host.ports.contains(&port) || host.ports.is_full() {
            return false;
        }
        host.ports.push(port);
        host.ports.is_full()
    }

    /// A server of the host has answered.
    pub fn record_reply(&mut self, ip: IpAddr) {
        if !self.hosts.is_empty() {
            self.hosts.remove(&ip);
        }
    }

    pub fn is_silent(&self, ip: IpAddr) -> bool {
        self.hosts.get(&ip).is_some_and(|host| host.ports.is_full())
    }

    pub fn remove_expired(&mut self, now: Duration) {
        self.hosts.retain(|_, host| now < host.last + EXPIRY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_silent_after_three_servers_without_a_reply_between() {
        let mut hosts = SilentHosts::default();
        let [a, b] = [1, 2].map(|n| IpAddr::from([8, 8, 8, n]));
        let now = Duration::from_secs(5);
        assert!(
            !hosts.record_silence(a, 1, now) && !hosts.record_silence(a, 1, now) && !hosts.record_silence(a, 2, now)
        );
        hosts.record_reply(a);
        assert!(!hosts.record_silence(a, 3, now) && !hosts.record_silence(a, 1, now) && !hosts.is_silent(a));
        assert!(hosts.record_silence(a, 2, now), "the third server");
        assert!(!hosts.record_silence(a, 4, now), "counted once");
        assert_eq!((hosts.is_silent(a), hosts.is_silent(b)), (true, false));
        hosts.remove_expired(now + EXPIRY - Duration::from_secs(1));
        assert!(hosts.is_silent(a));
        hosts.remove_expired(now + EXPIRY);
        assert!(hosts.hosts.is_empty());
    }
}
