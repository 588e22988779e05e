//! Locks of addresses: only one scan at a time uses an address and port.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use super::scan_state::ScanToken;

/// The scan that owns each address and port, and the scans queued for it. Uses std's
/// keyed hasher, because attackers can choose addresses.
#[derive(Default)]
pub(super) struct AddressLocks {
    locks: HashMap<SocketAddr, AddressLock>,
}

struct AddressLock {
    owner: ScanToken,
    queue: VecDeque<ScanToken>,
}

impl AddressLocks {
    /// The scan that owns an address.
    pub(super) fn owner(&self, address: SocketAddr) -> Option<ScanToken> {
        self.locks.get(&address).map(|lock| lock.owner)
    }

    /// Locks an address for a scan, or queues the scan for it. Returns whether it is locked.
    pub(super) fn lock(&mut self, address: SocketAddr, token: ScanToken) -> bool {
        if let Some(lock) = self.locks.get_mut(&address) {
            assert_ne!(lock.owner, token, "a scan releases its address first");
            lock.queue.push_back(token);
            return false;
        }
        self.locks.insert(address, AddressLock { owner: token, queue: VecDeque::new() });
        true
    }

    /// Releases the address, or leaves its queue. Returns the new owner, if it changes and
    /// a scan is queued.
    pub(super) fn release(&mut self, address: SocketAddr, token: ScanToken) -> Option<ScanToken> {
        let lock = self.locks.get_mut(&address)?;
        if lock.owner != token {
            lock.queue.retain(|&queued| queued != token);
            return None;
        }
        match lock.queue.pop_front() {
            Some(next) => {
                lock.owner = next;
                Some(next)
            }
            None => {
                self.locks.remove(&address);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_passes_to_the_scans_in_the_order_of_their_requests() {
        let mut locks = AddressLocks::default();
        let [a, b] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        assert!(locks.lock(a, 1) && locks.lock(b, 2));
        assert!(!locks.lock(a, 3) && !locks.lock(a, 4) && !locks.lock(a, 5));
        assert_eq!(locks.release(a, 4), None, "it leaves the queue");
        assert_eq!((locks.owner(a), locks.owner(b)), (Some(1), Some(2)));
        assert_eq!((locks.release(a, 1), locks.owner(a)), (Some(3), Some(3)));
        assert_eq!((locks.release(a, 3), locks.release(a, 5)), (Some(5), None));
        assert_eq!((locks.owner(a), locks.owner(b)), (None, Some(2)));
    }
}
