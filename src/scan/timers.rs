//! Deadlines of all scans.
//!
//! A heap of deadlines. A scan that moves its deadline leaves the old entry in
//! the heap; its owner recognises it as stale when it is due. A scan sets few
//! deadlines, so there are few stale entries.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Deadlines of type `T`, each with a key.
#[derive(Debug)]
pub struct Timers<T, K> {
    heap: BinaryHeap<Reverse<(T, K)>>,
}

impl<T: Ord + Copy, K: Ord> Default for Timers<T, K> {
    fn default() -> Self {
        Timers { heap: BinaryHeap::new() }
    }
}

impl<T: Ord + Copy, K: Ord> Timers<T, K> {
    pub fn set(&mut self, at: T, key: K) {
        self.heap.push(Reverse((at, key)));
    }

    /// The earliest deadline, stale ones included.
    pub fn next(&self) -> Option<T> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Removes and returns the earliest deadline that is not after `now`.
    pub fn pop_due(&mut self, now: T) -> Option<(T, K)> {
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
        let mut timers = Timers::default();
        for (at, key) in [(5, 'a'), (3, 'b'), (9, 'c'), (3, 'a')] {
            timers.set(at, key);
        }
        assert_eq!(timers.pop_due(2), None);
        let due: Vec<_> = std::iter::from_fn(|| timers.pop_due(5)).collect();
        assert_eq!(due, [(3, 'a'), (3, 'b'), (5, 'a')]);
        assert_eq!(timers.next(), Some(9));
    }
}
