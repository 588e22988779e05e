//! Notifications to systemd: ready, reloading, stopping, and the progress of the scheduler.
//! Without systemd they do nothing.

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

/// Notifies the watchdog while the engine loop runs; stops when dropped.
pub(super) struct Watchdog(Option<tokio::task::JoinHandle<()>>);

impl Watchdog {
    pub(super) fn start(heartbeat: Arc<Heartbeat>) -> Watchdog {
        Watchdog(sd_notify::watchdog_enabled().map(|limit| tokio::spawn(feed(heartbeat, limit))))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

async fn feed(heartbeat: Arc<Heartbeat>, limit: Duration) {
    let mut before = None;
    loop {
        let count = heartbeat.count();
        // The engine loop runs at least once a second: no new beat in a third of the limit
        // means that it hangs, and systemd must restart it.
        if before != Some(count) {
            notify(&[NotifyState::Watchdog]);
        }
        before = Some(count);
        tokio::time::sleep(limit / 3).await;
    }
}
