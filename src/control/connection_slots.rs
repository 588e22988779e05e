//! A fixed number of connection slots. If all are in use, a new connection replaces the
//! one that has been idle longest, so idle connections cannot block an admin.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

/// The connection slots of a listener.
#[derive(Clone, Debug)]
pub struct ConnectionSlots(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    /// Idle connections, the one that has been idle longest first.
    idle: BTreeMap<u64, IdleConnection>,
    next: u64,
}

#[derive(Debug)]
struct IdleConnection {
    holder: String,
    /// Dropped when the slot is lost.
    _lost: oneshot::Sender<()>,
}

/// One slot, held for the life of a connection and released when dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    slots: ConnectionSlots,
    /// Who is connected, for the log.
    holder: String,
    /// Number in `State::idle`, while idle.
    idle: Option<u64>,
}

impl ConnectionSlots {
    pub fn new(slots: usize) -> ConnectionSlots {
        ConnectionSlots(Arc::new(Mutex::new(State { free: slots, idle: BTreeMap::new(), next: 0 })))
    }

    /// Takes a slot for a new connection. If none is free, the connection that has been idle
    /// longest loses its slot, and its holder is returned too. `None`: all holders are busy.
    pub fn acquire(&self, holder: String) -> Option<(ConnectionSlot, Option<String>)> {
        let mut state = self.state();
        let evicted = match state.free {
            0 => Some(state.idle.pop_first()?.1),
            _ => {
                state.free -= 1;
                None
            }
        };
        drop(state);
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
            self.slots.state().free += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Wake, Waker};

    use super::*;

    #[test]
    fn longest_idle_connection_is_evicted_and_busy_ones_remain() {
        let slots = ConnectionSlots::new(2);
        let take = |name: &str| slots.acquire(name.to_owned());
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
        assert_eq!(loser.as_deref(), Some("b"));
        assert!(b_lost.try_recv().is_err() && !b.set_busy());
        assert!(matches!(a_lost.try_recv(), Err(oneshot::error::TryRecvError::Closed)), "a is no longer idle");
        drop(b);
        assert_eq!(slots.state().free, 0, "a lost slot is not released again");
        drop((a, c));
        let state = slots.state();
        assert_eq!((state.free, state.idle.len()), (2, 0));
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
        let (mut a, _) = slots.acquire("a".to_owned()).expect("free");
        let mut lost = a.set_idle();
        assert!(Pin::new(&mut lost).poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(a.set_busy());
        let mut lost = a.set_idle();
        assert!(Pin::new(&mut lost).poll(&mut Context::from_waker(&waker)).is_pending());
        let (_b, loser) = slots.acquire("b".to_owned()).expect("a's");
        assert_eq!((loser.as_deref(), &woken.1.lock().unwrap()[..]), (Some("a"), &[true, true][..]));
    }
}
