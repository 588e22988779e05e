//! A fixed number of connection slots. If all are in use, a new connection replaces the one that
//! has been idle longest, so idle connections cannot block an admin. One slot is reserved for
//! owners (root and the user of the daemon), so busy connections of other users cannot block them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

/// Slots that only an owner gets.
const RESERVED: usize = 1;

/// The connection slots of a listener.
#[derive(Clone, Debug)]
pub struct ConnectionSlots(Arc<Mutex<State>>);

/// Who is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// For the log.
    pub name: String,
    /// Whether it is root or the user of the daemon.
    pub is_owner: bool,
}

#[derive(Debug)]
struct State {
    /// The reserved ones included.
    free: usize,
    /// Slots that users other than owners may still take, also by eviction.
    free_for_others: usize,
    /// Idle connections, the one that has been idle longest first.
    idle: BTreeMap<u64, IdleConnection>,
    next: u64,
}

#[derive(Debug)]
struct IdleConnection {
    holder: Holder,
    /// Dropped when the slot is lost.
    _lost: oneshot::Sender<()>,
}

/// One slot, held for the life of a connection and released when dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    slots: ConnectionSlots,
    holder: Holder,
    /// Number in `State::idle`, while idle.
    idle: Option<u64>,
}

impl ConnectionSlots {
    /// `slots` for everybody, and the reserved ones.
    pub fn new(slots: usize) -> ConnectionSlots {
        ConnectionSlots(Arc::new(Mutex::new(State {
            free: slots + RESERVED,
            free_for_others: slots,
            idle: BTreeMap::new(),
            next: 0,
        })))
    }

    /// Takes a slot for a new connection. If none is free, the connection that has been idle
    /// longest loses its slot, and its holder is returned too. `None`: all holders are busy.
    pub fn acquire(&self, holder: Holder) -> Option<(ConnectionSlot, Option<Holder>)> {
        let mut guard = self.state();
        let state = &mut *guard;
        let may_evict = |idle: &IdleConnection| holder.is_owner || !idle.holder.is_owner || state.free_for_others > 0;
        let longest_idle = state.idle.iter().find(|(_, idle)| may_evict(idle)).map(|(&number, _)| number);
        let evicted = match longest_idle {
            _ if state.free > RESERVED => None,
            Some(number) => state.idle.remove(&number),
            None if holder.is_owner && state.free > 0 => None,
            None => return None,
        };
        match &evicted {
            Some(evicted) => state.free_for_others += usize::from(!evicted.holder.is_owner),
            None => state.free -= 1,
        }
        state.free_for_others -= usize::from(!holder.is_owner);
        drop(guard);
        // This wakes the evicted connection, and a waker may run any code, even drop its
        // slot.
        let evicted = evicted.map(|idle| idle.holder);
        Some((ConnectionSlot { slots: self.clone(), holder, idle: None }, evicted))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no code panics while holding the lock")
    }
}

impl ConnectionSlot {
    /// Marks the holder idle. The returned receiver completes when the slot is lost.
    pub fn set_idle(&mut self) -> oneshot::Receiver<()> {
        let (lost, on_loss) = oneshot::channel();
        let mut state = self.slots.state();
        let number = state.next;
        state.next += 1;
        state.idle.insert(number, IdleConnection { holder: self.holder.clone(), _lost: lost });
        drop(state);
        self.idle = Some(number);
        on_loss
    }

    /// Marks the holder busy. Returns whether it still has its slot.
    pub fn set_busy(&mut self) -> bool {
        let Some(number) = self.idle else { return true };
        // The lock is released before the waiter for the loss is woken.
        let idle = self.slots.state().idle.remove(&number);
        if idle.is_some() {
            self.idle = None;
        }
        idle.is_some()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        if self.set_busy() {
            let mut state = self.slots.state();
            state.free += 1;
            state.free_for_others += usize::from(!self.holder.is_owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Wake, Waker};

    use super::*;

    fn other(name: &str) -> Holder {
        Holder { name: name.to_owned(), is_owner: false }
    }

    fn owner(name: &str) -> Holder {
        Holder { is_owner: true, ..other(name) }
    }

    #[test]
    fn reserved_slot_is_given_to_an_owner_only_if_all_others_are_busy() {
        let slots = ConnectionSlots::new(1);
        let (mut a, _) = slots.acquire(other("a")).expect("free");
        assert!(slots.acquire(other("b")).is_none(), "the reserved slot is not for others");
        let (root, evicted) = slots.acquire(owner("root")).expect("the reserved slot");
        assert_eq!(evicted, None);
        assert!(slots.acquire(owner("second")).is_none(), "one slot is reserved");
        drop(root);
        let _lost = a.set_idle();
        let (_root, evicted) = slots.acquire(owner("root")).expect("a's slot");
        assert_eq!(evicted, Some(other("a")), "an idle connection is evicted first");
        assert!(slots.acquire(other("b")).is_none());
        assert!(slots.acquire(owner("second")).is_some(), "the reserved slot was still free");
    }

    #[test]
    fn others_cannot_evict_an_owner_to_get_the_reserved_slot() {
        let slots = ConnectionSlots::new(1);
        let (_a, _) = slots.acquire(other("a")).expect("free");
        let (mut root, _) = slots.acquire(owner("root")).expect("the reserved slot");
        let mut lost = root.set_idle();
        assert!(slots.acquire(other("b")).is_none());
        assert!(lost.try_recv() == Err(oneshot::error::TryRecvError::Empty) && root.set_busy());
        // An owner may use the slots for everybody; then others may evict it.
        let slots = ConnectionSlots::new(1);
        let (mut root, _) = slots.acquire(owner("root")).expect("free");
        let _lost = root.set_idle();
        let (_b, evicted) = slots.acquire(other("b")).expect("root's slot");
        assert_eq!(evicted, Some(owner("root")));
        assert!(slots.acquire(other("c")).is_none());
    }

    #[test]
    fn longest_idle_connection_is_evicted_and_busy_ones_remain() {
        let slots = ConnectionSlots::new(2);
        let take = |name: &str| slots.acquire(other(name));
        let (mut a, loser) = take("a").expect("free");
        assert_eq!(loser, None);
        let (mut b, _) = take("b").expect("free");
        assert!(take("c").is_none(), "both are busy");
        let mut a_lost = a.set_idle();
        let mut b_lost = b.set_idle();
        assert!(a.set_busy(), "a is busy, so b has been idle longer");
        assert!(a.set_busy(), "a second call changes nothing");
        let _a_rests = a.set_idle();
        let (c, loser) = take("c").expect("b's");
        assert_eq!(loser, Some(other("b")));
        assert!(b_lost.try_recv().is_err() && !b.set_busy());
        assert!(matches!(a_lost.try_recv(), Err(oneshot::error::TryRecvError::Closed)), "a is no longer idle");
        drop(b);
        assert_eq!(slots.state().free, RESERVED, "a lost slot is not released again");
        drop((a, c));
        let state = slots.state();
        assert_eq!((state.free, state.free_for_others, state.idle.len()), (2 + RESERVED, 2, 0));
    }

    /// Whether the lock was free each time a holder was woken.
    struct Woken(ConnectionSlots, Mutex<Vec<bool>>);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            let is_free = self.0.0.try_lock().is_ok();
            self.1.lock().unwrap().push(is_free);
        }
    }

    #[test]
    fn holders_are_woken_without_the_lock() {
        let slots = ConnectionSlots::new(1);
        let woken = Arc::new(Woken(slots.clone(), Mutex::default()));
        let waker = Waker::from(Arc::clone(&woken));
        let (mut a, _) = slots.acquire(other("a")).expect("free");
        let mut lost = a.set_idle();
        assert!(Pin::new(&mut lost).poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(a.set_busy());
        let mut lost = a.set_idle();
        assert!(Pin::new(&mut lost).poll(&mut Context::from_waker(&waker)).is_pending());
        let (_b, loser) = slots.acquire(other("b")).expect("a's");
        assert_eq!((loser, &woken.1.lock().unwrap()[..]), (Some(other("a")), &[true, true][..]));
    }
}
