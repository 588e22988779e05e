//! Who holds the places for connections. There is a fixed number of them; when all
//! are taken, whoever has been idle for longest loses its place to the newcomer, so
//! that idle connections never keep an admin out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

/// The places of a listener.
#[derive(Clone, Debug)]
pub struct ConnectionSlots(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    /// Idle holders, the one that has been idle for longest first.
    idle: BTreeMap<u64, IdleConnection>,
    next: u64,
}

#[derive(Debug)]
struct IdleConnection {
    holder: String,
    /// Dropped when the place is lost.
    _lost: oneshot::Sender<()>,
}

/// One place, from the beginning of a connection to its end. Given back when dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    places: ConnectionSlots,
    /// Who holds it, for the log.
    holder: String,
    /// Number in `ClockState::idle`, while idle.
    idle: Option<u64>,
}

impl ConnectionSlots {
    pub fn new(places: usize) -> ConnectionSlots {
        ConnectionSlots(Arc::new(Mutex::new(State { free: places, idle: BTreeMap::new(), next: 0 })))
    }

    /// A place for a new connection, and who lost it where none was free. `None`: all
    /// holders are at work.
    pub fn take(&self, holder: String) -> Option<(ConnectionSlot, Option<String>)> {
        let mut state = self.state();
        let lost = match state.free {
            0 => Some(state.idle.pop_first()?.1),
            _ => {
                state.free -= 1;
                None
            }
        };
        drop(state);
        // This wakes the loser, and a waker may do anything: also drop its place.
        let loser = lost.map(|idle| idle.holder);
        Some((ConnectionSlot { places: self.clone(), holder, idle: None }, loser))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while it holds the places")
    }
}

impl ConnectionSlot {
    /// The holder is idle from now on. What is returned is done when the place is lost.
    pub fn rest(&mut self) -> oneshot::Receiver<()> {
        let (lost, is_lost) = oneshot::channel();
        let mut state = self.places.state();
        let number = state.next;
        state.next += 1;
        state.idle.insert(number, IdleConnection { holder: self.holder.clone(), _lost: lost });
        drop(state);
        self.idle = Some(number);
        is_lost
    }

    /// The holder has work. Returns whether it still has its place.
    pub fn work(&mut self) -> bool {
        let Some(number) = self.idle else { return true };
        // The lock is released before what waits for a loss is woken.
        let idle = self.places.state().idle.remove(&number);
        if idle.is_some() {
            self.idle = None;
        }
        idle.is_some()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        if self.work() {
            self.places.state().free += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Wake, Waker};

    use super::*;

    #[test]
    fn longest_idle_connection_is_evicted_and_busy_ones_stay() {
        let places = ConnectionSlots::new(2);
        let take = |name: &str| places.take(name.to_owned());
        let (mut a, loser) = take("a").expect("free");
        assert_eq!(loser, None);
        let (mut b, _) = take("b").expect("free");
        assert!(take("c").is_none(), "both are at work");
        let mut a_lost = a.rest();
        let mut b_lost = b.rest();
        assert!(a.work(), "it works, so that b has been idle for longer");
        assert!(a.work(), "twice is once");
        let _a_rests = a.rest();
        let (c, loser) = take("c").expect("b's");
        assert_eq!(loser.as_deref(), Some("b"));
        assert!(b_lost.try_recv().is_err() && !b.work());
        assert!(matches!(a_lost.try_recv(), Err(oneshot::error::TryRecvError::Closed)), "that rest has ended");
        drop(b);
        assert_eq!(places.state().free, 0, "what was lost is not given back");
        drop((a, c));
        let state = places.state();
        assert_eq!((state.free, state.idle.len()), (2, 0));
    }

    /// Whether the lock was free, each time when a holder was woken.
    struct Woken(ConnectionSlots, Mutex<Vec<bool>>);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            let is_free = self.0.0.try_lock().is_ok();
            self.1.lock().unwrap().push(is_free);
        }
    }

    #[test]
    fn holders_are_woken_without_the_lock() {
        let places = ConnectionSlots::new(1);
        let woken = Arc::new(Woken(places.clone(), Mutex::default()));
        let waker = Waker::from(Arc::clone(&woken));
        let (mut a, _) = places.take("a".to_owned()).expect("free");
        let mut lost = a.rest();
        assert!(Pin::new(&mut lost).poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(a.work());
        let mut lost = a.rest();
        assert!(Pin::new(&mut lost).poll(&mut Context::from_waker(&waker)).is_pending());
        let (_b, loser) = places.take("b".to_owned()).expect("a's");
        assert_eq!((loser.as_deref(), &woken.1.lock().unwrap()[..]), (Some("a"), &[true, true][..]));
    }
}
