//! Deadlines of all scans.
//!
//! A heap of deadlines. A scan that moves its deadline leaves the old entry in
//! the heap; its owner recognises it as stale when it is due. A scan sets few
//! deadlines, so there are few stale entries.
//!
//! Not `tokio_util::time::DelayQueue`: it reads the runtime's clock, and the rate
//! limits, which use these timers too, are tested with time as an argument.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Deadlines, each with a key. Durations since a fixed start.
#[derive(Debug)]
pub struct Timers<K> {
    heap: BinaryHeap<Reverse<(Duration, K)>>,
}

impl<K: Ord> Default for Timers<K> {
    fn default() -> Self {
        Timers { heap: BinaryHeap::new() }
    }
}

impl<K: Ord> Timers<K> {
    pub fn set(&mut self, at: Duration, key: K) {
        self.heap.push(Reverse((at, key)));
    }

    /// The earliest deadline, stale ones included.
    pub fn next(&self) -> Option<Duration> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes and returns the earliest deadline that is not after `now`.
    pub fn pop_due(&mut self, now: Duration) -> Option<(Duration, K)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_pop_in_order_and_not_before_they_are_due() {
        let ms = Duration::from_millis;
        let mut timers = Timers::default();
        for (at, key) in [(5, 'a'), (3, 'b'), (9, 'c'), (3, 'a')] {
            timers.set(ms(at), key);
        }
        assert_eq!(timers.pop_due(ms(2)), None);
        let due: Vec<_> = std::iter::from_fn(|| timers.pop_due(ms(5))).collect();
        assert_eq!(due, [(ms(3), 'a'), (ms(3), 'b'), (ms(5), 'a')]);
        assert_eq!(timers.next(), Some(ms(9)));
    }
}
