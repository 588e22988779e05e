//! When a follower may take over. A leader writes at least once a second; a follower counts only the time in which it
//! saw that nothing was written, so it needs no clock that others have.

use crate::archive::Leader;

/// A leader that writes nothing for so long is replaced.
pub const LEASE_MS: u64 = 3_000;

/// Time between two looks counts up to this: in a longer one, the database may have hung, or both processes were paused.
const LOOK_MS_MAX: u64 = 1_000;

/// What a follower has seen of the leader since the database answers. Times are of a monotonic clock.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    seen: Option<Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    /// `None`: there has never been a leader.
    leader: Option<(u64, u64)>,
    /// For how long it is seen like this.
    silent_ms: u64,
    looked_ms: u64,
}

impl Lease {
    /// Notes the row of the leader. Returns whether its lease has expired.
    pub fn look(&mut self, leader: Option<&Leader>, now_ms: u64) -> bool {
        let at = leader.map(|leader| (leader.epoch, leader.beat));
        let silent_ms = match &self.seen {
            Some(seen) if seen.leader == at => seen.silent_ms + (now_ms - seen.looked_ms).min(LOOK_MS_MAX),
            _ => 0,
        };
        self.seen = Some(Seen { leader: at, silent_ms, looked_ms: now_ms });
        leader.is_some_and(Leader::is_released) || silent_ms >= LEASE_MS
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
    fn long_time_without_a_look_hardly_counts() {
        let mut lease = Lease::default();
        assert!(!lease.look(Some(&leader(1, 5)), 0));
        assert!(!lease.look(Some(&leader(1, 5)), 60_000), "the leader may have been paused, too");
        assert!(!lease.look(Some(&leader(1, 5)), 60_900));
    }

    #[test]
    fn a_slow_database_does_not_keep_a_silent_leader() {
        let mut lease = Lease::default();
        let expired = (0..).map(|n| n * 1_100).find(|now_ms| lease.look(Some(&leader(1, 5)), *now_ms));
        assert_eq!(expired, Some(3_300));
    }

    #[test]
    fn a_leader_that_has_stopped_is_replaced_at_once() {
        let mut released = leader(1, 5);
        released.member.instance = 0;
        assert!(Lease::default().look(Some(&released), 0));
    }
}
