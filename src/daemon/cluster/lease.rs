//! When a follower may take over. A leader writes at least once a second; a follower counts only the time in which it
//! saw that nothing was written, so it needs no clock that others have.

use crate::archive::Leader;

/// A leader that writes nothing for so long is replaced.
pub const LEASE_MS: u64 = 3_000;

/// Longest time between two looks that counts as seen. After a longer one, such as an outage of the database or a
/// pause of this process, the lease begins anew.
const LOOK_MS_MAX: u64 = 1_000;

/// What a follower has seen of the leader. Times are of a monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    seen: Option<Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    /// `None`: there has never been a leader.
    leader: Option<(u64, u64)>,
    /// Since when it is seen like this.
    since_ms: u64,
    looked_ms: u64,
}

impl Lease {
    /// Notes the row of the leader. Returns whether its lease has expired.
    pub fn look(&mut self, leader: Option<&Leader>, now_ms: u64) -> bool {
        let at = leader.map(|leader| (leader.epoch, leader.beat));
        let since_ms = match &self.seen {
            Some(seen) if seen.leader == at && now_ms - seen.looked_ms <= LOOK_MS_MAX => seen.since_ms,
            _ => now_ms,
        };
        self.seen = Some(Seen { leader: at, since_ms, looked_ms: now_ms });
        let is_released = leader.is_some_and(Leader::is_released);
        is_released || now_ms - since_ms >= LEASE_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::Member;

    fn leader(epoch: u64, beat: u64) -> Leader {
        Leader { epoch, beat, member: Member { engine: "a".into(), address: String::new(), instance: 7 } }
    }

    #[test]
    fn a_leader_that_writes_keeps_its_lease() {
        let mut lease = Lease::default();
        assert!((0..100).all(|n| !lease.look(Some(&leader(1, n / 10)), n * 200)));
    }

    #[test]
    fn a_silent_leader_is_replaced_after_the_lease() {
        let mut lease = Lease::default();
        let expired: Vec<u64> =
            (0..30).map(|n| n * 200).filter(|now_ms| lease.look(Some(&leader(1, 5)), *now_ms)).collect();
        assert_eq!(expired.first(), Some(&LEASE_MS));
        assert!(!lease.look(Some(&leader(2, 0)), 6_000), "another leader has a lease of its own");
        assert!(
            (0..20)
                .map(|n| n * 200)
                .any(|now_ms| Lease::default().look(None, now_ms) || lease.look(None, 6_200 + now_ms))
        );
    }

    #[test]
    fn time_without_a_look_does_not_count() {
        let mut lease = Lease::default();
        assert!(!lease.look(Some(&leader(1, 5)), 0));
        assert!(!lease.look(Some(&leader(1, 5)), 60_000), "the leader could not write either");
        assert!(!lease.look(Some(&leader(1, 5)), 60_900));
    }

    #[test]
    fn a_leader_that_has_stopped_is_replaced_at_once() {
        let mut released = leader(1, 5);
        released.member.instance = 0;
        assert!(Lease::default().look(Some(&released), 0));
    }
}
