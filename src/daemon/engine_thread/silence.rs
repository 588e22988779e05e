//! Whether the own network is down: servers of several hosts that answered lately are silent, one after the other, and none
//! answers in between. Then a silent server says nothing about itself. Pure.
//!
//! Without it, servers with players would be asked once an hour after an outage of two hours, because each miss makes the next
//! scan of its server rarer.

/// Silent hosts after which the network is taken for down. With one packet in ten lost, three times each, that is one case in
/// 10^24.
const HOSTS: usize = 8;

/// A longer silence does not count as an outage: the servers may be gone for good, and their misses count again.
const OUTAGE_MS_MAX: i64 = 86_400_000;

#[derive(Debug, Default)]
pub(super) struct Silence {
    /// Hosts of servers that answered lately, and have been silent since the last answer of any server.
    hosts: Vec<String>,
    /// The first of these silent scans, Unix ms.
    since_ms: i64,
    /// Silent scans while the network was taken for down.
    discarded: u64,
}

/// The end of an outage.
#[derive(Debug, PartialEq)]
pub(super) struct Outage {
    pub since_ms: i64,
    /// Scans that do not count.
    pub discarded: u64,
}

impl Silence {
    /// Since when the network is down, Unix ms.
    pub fn since_ms(&self) -> Option<i64> {
        (self.hosts.len() >= HOSTS).then_some(self.since_ms)
    }

    /// Whether no server was silent since the last answer.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Notes that a server has sent something, or that its host has refused. Returns the outage that ends by that.
    pub fn end(&mut self) -> Option<Outage> {
        let outage = self.since_ms().map(|since_ms| Outage { since_ms, discarded: self.discarded });
        *self = Silence::default();
        outage
    }

    /// Notes a silent server. `answered`: it answered lately. Returns whether the network is down, and this scan does not
    /// count.
    pub fn note(&mut self, host: &str, answered: bool, t_ms: i64) -> bool {
        if let Some(since_ms) = self.since_ms() {
            let is_outage = t_ms - since_ms < OUTAGE_MS_MAX;
            self.discarded += u64::from(is_outage);
            return is_outage;
        }
        if answered && !self.hosts.iter().any(|known| known == host) {
            if self.hosts.is_empty() {
                self.since_ms = t_ms;
            }
            self.hosts.push(host.to_owned());
        }
        // The scan that completes them counts, too: it is known only now.
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silent(silence: &mut Silence, hosts: std::ops::Range<usize>) -> usize {
        hosts.filter(|n| silence.note(&format!("192.0.2.{n}"), true, 1_000 + *n as i64)).count()
    }

    #[test]
    fn many_silent_hosts_without_an_answer_are_an_outage() {
        let mut silence = Silence::default();
        assert_eq!((silent(&mut silence, 1..HOSTS), silence.since_ms()), (0, None));
        assert_eq!(silence.end(), None, "one answers");
        assert_eq!(silent(&mut silence, 1..HOSTS + 1), 0);
        assert_eq!(silence.since_ms(), Some(1_001));
        assert_eq!(silent(&mut silence, 1..4), 3);
        assert!(silence.note("192.0.2.99", false, 9_000), "others do not count either");
        assert_eq!(silence.end(), Some(Outage { since_ms: 1_001, discarded: 4 }));
        assert_eq!((silence.end(), silence.since_ms()), (None, None));
    }

    #[test]
    fn after_a_day_misses_count() {
        let mut silence = Silence::default();
        silent(&mut silence, 1..HOSTS + 1);
        assert!(silence.note("192.0.2.1", true, 1_000 + OUTAGE_MS_MAX));
        assert!(!silence.note("192.0.2.1", true, 1_001 + OUTAGE_MS_MAX));
    }

    #[test]
    fn servers_that_were_silent_before_and_those_of_one_host_show_nothing() {
        let mut silence = Silence::default();
        assert!(!(0..100).any(|n| silence.note(&format!("192.0.2.{n}"), false, 0)));
        assert!(!(0..100).any(|_| silence.note("192.0.2.1", true, 0)));
        assert_eq!(silence.since_ms(), None);
    }
}
