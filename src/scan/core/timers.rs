//! Deadlines: a timer wheel with a slot for each millisecond.
//!
//! Setting a deadline and taking a due one cost the same however many there are. A deadline
//! further away than one turn of the wheel stays in its slot until its turn comes. A scan that
//! moves its deadline leaves the old entry in the wheel; its owner recognises it as stale when
//! it is due. A scan sets few deadlines, so there are few stale entries.
//!
//! Time is an argument: the duration since a fixed start.

use std::collections::VecDeque;
use std::time::Duration;

/// Slots, one for each ms: longer than most timeouts (default 2 s), and 96 KiB.
const SLOTS: u64 = 4_096;

/// Deadlines, each with a key. A deadline is due at the first whole ms that is not before it.
#[derive(Debug)]
pub struct Timers<K> {
    /// Deadlines of ms `n` are in slot `n % SLOTS`.
    slots: Box<[Vec<(Duration, K)>]>,
    /// A bit for each slot that has entries.
    occupied: [u64; SLOTS as usize / 64],
    /// The first ms that has not been taken yet.
    next_ms: u64,
    /// Taken from the slots, earliest first.
    due: VecDeque<(Duration, K)>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        let slots = (0..SLOTS).map(|_| Vec::new()).collect();
        Timers { slots, occupied: [0; SLOTS as usize / 64], next_ms: 0, due: VecDeque::new() }
    }
}

impl<K> Timers<K> {
    /// Sets a deadline. One that has passed is due at the next ms.
    pub fn set(&mut self, at: Duration, key: K) {
        let slot = (due_ms(at).max(self.next_ms) % SLOTS) as usize;
        self.slots[slot].push((at, key));
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// When to call [`Timers::pop_due`] next: at the earliest deadline, or before it.
    pub fn next(&self) -> Option<Duration> {
        if !self.due.is_empty() {
            return Some(Duration::ZERO);
        }
        self.next_occupied_ms().map(Duration::from_millis)
    }

    /// Removes and returns a deadline that is not after `now`, the earliest ms first.
    pub fn pop_due(&mut self, now: Duration) -> Option<(Duration, K)> {
        if self.due.is_empty() {
            self.take_due(now.as_millis() as u64);
        }
        self.due.pop_front()
    }

    /// Moves all deadlines up to this ms to `due`.
    fn take_due(&mut self, now_ms: u64) {
        // After a long pause every slot is visited once.
        let last_ms = now_ms.min(self.next_ms + SLOTS - 1);
        while let Some(ms) = self.next_occupied_ms().filter(|&ms| ms <= last_ms) {
            let slot = (ms % SLOTS) as usize;
            let due = self.slots[slot].extract_if(.., |(at, _)| due_ms(*at) <= now_ms);
            self.due.extend(due);
            if self.slots[slot].is_empty() {
                self.occupied[slot / 64] &= !(1 << (slot % 64));
            }
            self.next_ms = ms + 1;
        }
        self.next_ms = self.next_ms.max(now_ms + 1);
    }

    /// The first ms from `next_ms` on whose slot has entries.
    fn next_occupied_ms(&self) -> Option<u64> {
        let first = (self.next_ms % SLOTS) as usize;
        let words = self.occupied.len();
        // The first word twice: its bits from `first` on, and at the end those before it.
        (0..=words).find_map(|step| {
            let word = (first / 64 + step) % words;
            let mask = match step {
                0 => !0 << (first % 64),
                _ if step == words => !(!0 << (first % 64)),
                _ => !0,
            };
            let bits = self.occupied[word] & mask;
            let slot = (word * 64) as u64 + u64::from(bits.trailing_zeros());
            (bits != 0).then(|| self.next_ms + (slot + SLOTS - first as u64) % SLOTS)
        })
    }
}

/// The whole ms at which a deadline is due.
fn due_ms(at: Duration) -> u64 {
    at.as_nanos().div_ceil(1_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn deadlines_pop_in_order_and_not_before_they_are_due() {
        let mut timers = Timers::default();
        for (at, key) in [(5, 'a'), (3, 'b'), (9, 'c'), (3, 'd')] {
            timers.set(MS(at), key);
        }
        assert_eq!(timers.pop_due(MS(2)), None);
        assert_eq!(timers.next(), Some(MS(3)));
        let due: Vec<_> = std::iter::from_fn(|| timers.pop_due(MS(5))).collect();
        assert_eq!(due, [(MS(3), 'b'), (MS(3), 'd'), (MS(5), 'a')]);
        assert_eq!(timers.next(), Some(MS(9)));
        timers.set(MS(1), 'e');
        assert_eq!(
            (timers.pop_due(MS(5)), timers.next()),
            (None, Some(MS(6))),
            "a past deadline is due at the next ms"
        );
        timers.set(Duration::from_micros(6_001), 'f');
        assert_eq!((timers.pop_due(MS(6)), timers.pop_due(MS(6))), (Some((MS(1), 'e')), None));
    }

    proptest::proptest! {
        /// Sets and takes deadlines up to four turns of the wheel away, and compares with a list.
        #[test]
        fn wheel_equals_naive_list(
            steps in proptest::collection::vec((proptest::bool::ANY, 0_u64..4 * SLOTS * 1_000, 0_u64..3_000), 0..200),
        ) {
            let mut timers = Timers::default();
            let mut naive: Vec<(Duration, usize)> = Vec::new();
            let (mut now, mut taken_to) = (Duration::ZERO, None);
            for (key, (set, ahead_us, pass_ms)) in steps.into_iter().enumerate() {
                if set {
                    let at = now + Duration::from_micros(ahead_us);
                    timers.set(at, key);
                    naive.push((at, key));
                    continue;
                }
                now += MS(pass_ms);
                let mut got: Vec<_> = std::iter::from_fn(|| timers.pop_due(now)).collect();
                let is_due = |at: Duration| Some(due_ms(at)) <= Some(now.as_millis() as u64) && taken_to != Some(now);
                let mut want: Vec<_> = naive.iter().copied().filter(|(at, _)| is_due(*at)).collect();
                proptest::prop_assert!(got.is_sorted_by_key(|(at, _)| due_ms(*at).max(taken_to.map_or(0, |t: Duration| t.as_millis() as u64 + 1))));
                got.sort();
                want.sort();
                proptest::prop_assert_eq!(&got, &want);
                naive.retain(|entry| !got.contains(entry));
                taken_to = Some(now);
                let earliest = naive.iter().map(|(at, _)| due_ms(*at)).min();
                proptest::prop_assert_eq!(timers.next().is_some(), earliest.is_some());
                proptest::prop_assert!(timers.next() <= earliest.map(|ms| MS(ms.max(now.as_millis() as u64 + 1))));
            }
        }
    }
}
