//! What systemd is told: ready, reloading, stopping, and that the scheduler
//! makes progress. Without systemd nothing happens.

use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;

use crate::daemon::engine_thread::Heartbeat;

pub(super) fn ready() {
    notify(&[NotifyState::Ready]);
}

pub(super) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(_) => notify(&[NotifyState::Reloading]),
    }
}

pub(super) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

fn notify(state: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify systemd");
    }
}

/// Feeds the watchdog while the engine goes round; stops when dropped.
pub(super) struct Watchdog(Option<tokio::task::JoinHandle<()>>);

impl Watchdog {
    pub(super) fn start(beat: Arc<Heartbeat>) -> Watchdog {
        Watchdog(sd_notify::watchdog_enabled().map(|limit| tokio::spawn(feed(beat, limit))))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

async fn feed(beat: Arc<Heartbeat>, limit: Duration) {
    let mut before = None;
    loop {
        let count = beat.count();
        // The engine goes round at least once a second: no new beat in a third
        // of the limit means that it hangs, and then systemd is to act.
        if before != Some(count) {
            notify(&[NotifyState::Watchdog]);
        }
        before = Some(count);
        tokio::time::sleep(limit / 3).await;
    }
}
