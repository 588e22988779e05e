//! Locks of addresses: only one scan at a time uses an address and port, and a scan starts no
//! earlier than the cooldown after the last packet, whichever scan sent that.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use super::packets::ScanToken;
use crate::scan::settings::COOLDOWN;

/// The scan that owns each address and port, the scans queued for it, and its cooldown. Uses
/// std's keyed hasher, because attackers can choose addresses.
#[derive(Default)]
pub(super) struct AddressLocks {
    locks: HashMap<SocketAddr, AddressLock>,
    /// Released addresses with the end of their cooldown, in the order of their release.
    cooling: VecDeque<(Duration, SocketAddr)>,
}

struct AddressLock {
    /// `None`: released, and kept until the cooldown ends.
    owner: Option<ScanToken>,
    queue: VecDeque<ScanToken>,
    /// Time since the start; zero before the first packet.
    cooldown_end: Duration,
}

impl AddressLocks {
    /// The scan that owns an address.
    pub(super) fn owner(&self, address: SocketAddr) -> Option<ScanToken> {
        self.locks.get(&address).and_then(|lock| lock.owner)
    }

    /// Locks an address for a scan, or queues the scan for it. Returns whether it is locked.
    pub(super) fn lock(&mut self, address: SocketAddr, token: ScanToken) -> bool {
        let new = || AddressLock { owner: None, queue: VecDeque::new(), cooldown_end: Duration::ZERO };
        let lock = self.locks.entry(address).or_insert_with(new);
        match lock.owner {
            None => lock.owner = Some(token),
            Some(owner) => {
                assert_ne!(owner, token, "a scan releases its address first");
                lock.queue.push_back(token);
            }
        }
        lock.owner == Some(token)
    }

    /// A packet was sent to an address that is locked.
    pub(super) fn record_packet(&mut self, address: SocketAddr, now: Duration) {
        if let Some(lock) = self.locks.get_mut(&address) {
            lock.cooldown_end = now + COOLDOWN;
        }
    }

    /// When the next scan of an address may start.
    pub(super) fn cooldown_end(&self, address: SocketAddr) -> Duration {
        self.locks.get(&address).map_or(Duration::ZERO, |lock| lock.cooldown_end)
    }

    /// Releases the address, or leaves its queue. Returns the new owner, if it changes and
    /// a scan is queued.
    pub(super) fn release(&mut self, address: SocketAddr, token: ScanToken) -> Option<ScanToken> {
        let lock = self.locks.get_mut(&address)?;
        if lock.owner != Some(token) {
            lock.queue.retain(|&queued| queued != token);
            return None;
        }
        lock.owner = lock.queue.pop_front();
        if lock.owner.is_none() {
            self.cooling.push_back((lock.cooldown_end, address));
        }
        lock.owner
    }

    /// Removes released addresses whose cooldown is over.
    pub(super) fn remove_cooled(&mut self, now: Duration) {
        while let Some(&(_, address)) = self.cooling.front().filter(|(end, _)| *end <= now) {
            self.cooling.pop_front();
            match self.locks.get(&address).filter(|lock| lock.owner.is_none()).map(|lock| lock.cooldown_end) {
                Some(end) if end <= now => _ = self.locks.remove(&address),
                Some(end) => self.cooling.push_back((end, address)),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn addresses() -> [SocketAddr; 2] {
        [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)))
    }

    #[test]
    fn address_passes_to_the_scans_in_the_order_of_their_requests() {
        let mut locks = AddressLocks::default();
        let [a, b] = addresses();
        assert!(locks.lock(a, 1) && locks.lock(b, 2));
        assert!(!locks.lock(a, 3) && !locks.lock(a, 4) && !locks.lock(a, 5));
        assert_eq!(locks.release(a, 4), None, "it leaves the queue");
        assert_eq!((locks.owner(a), locks.owner(b)), (Some(1), Some(2)));
        assert_eq!((locks.release(a, 1), locks.owner(a)), (Some(3), Some(3)));
        assert_eq!((locks.release(a, 3), locks.release(a, 5)), (Some(5), None));
        assert_eq!((locks.owner(a), locks.owner(b)), (None, Some(2)));
    }

    #[test]
    fn cooldown_outlives_the_scan_and_is_forgotten_when_it_is_over() {
        let mut locks = AddressLocks::default();
        let [a, b] = addresses();
        assert!(locks.lock(a, 1) && locks.lock(b, 2));
        locks.record_packet(a, MS(100));
        assert_eq!((locks.release(a, 1), locks.release(b, 2)), (None, None));
        assert_eq!((locks.cooldown_end(a), locks.cooldown_end(b)), (MS(1_200), Duration::ZERO));
        locks.remove_cooled(MS(1_199));
        assert!(locks.lock(a, 3));
        assert_eq!(locks.cooldown_end(a), MS(1_200), "another scan waits for it");
        locks.record_packet(a, MS(1_200));
        assert_eq!(locks.release(a, 3), None);
        locks.remove_cooled(MS(2_299));
        assert_eq!(locks.cooldown_end(a), MS(2_300));
        locks.remove_cooled(MS(2_300));
        assert!(locks.locks.is_empty() && locks.cooling.is_empty());
    }
}
