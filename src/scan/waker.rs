//! Wakes the scan thread, which otherwise sleeps until a datagram or a deadline.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Cheap to clone. A wake-up costs a system call only while the thread sleeps.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    event: EventFd,
    is_asleep: AtomicBool,
}

impl Waker {
    pub fn new() -> io::Result<Waker> {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Waker(Arc::new(Shared { event, is_asleep: AtomicBool::new(false) })))
    }

    /// Makes the thread look at its queues. Call it after something was queued.
    pub fn wake(&self) {
        if self.0.is_asleep.swap(false, Ordering::SeqCst) {
            // The counter cannot overflow: the flag admits one write for each sleep.
            let _ = self.0.event.write(1);
        }
    }

    /// Announces that the thread is about to sleep. Its queues must be looked at once more after
    /// this and before it sleeps: what is queued later wakes it.
    pub fn before_sleep(&self) {
        self.0.is_asleep.store(true, Ordering::SeqCst);
    }

    pub fn after_sleep(&self) {
        // A concurrent `wake` may write to the event after this read. The next sleep then ends at
        // once, which does no harm.
        self.0.is_asleep.store(false, Ordering::SeqCst);
        let _ = self.0.event.read();
    }

    /// Becomes readable when the thread is to wake up.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

/// Wakes the thread when it is dropped.
#[derive(Clone, Debug)]
pub struct WakeOnDrop(pub Waker);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}
