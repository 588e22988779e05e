//! Notifications to systemd: ready, reloading, stopping, and the progress of the scheduler.
//! Without systemd they do nothing.

use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;

use crate::daemon::engine_thread::Heartbeat;

/// Time without progress after which a start has failed.
const EXTENSION_US: u32 = 120_000_000;

/// Progress is more than this between two looks.
const PROGRESS_BYTES: u64 = 64 << 10;

const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

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

/// Lets a stop take that much longer from now on, also beyond TimeoutStopSec.
pub(super) fn extend_stop(time: Duration) {
    notify(&[NotifyState::ExtendTimeoutUsec(u32::try_from(time.as_micros()).unwrap_or(u32::MAX))]);
}

fn notify(state: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify systemd");
    }
}

/// Keeps the time limits of the unit from ending a long start, as the load or comparison of a large state is, while it
/// makes progress; stops when dropped.
pub(super) struct LongStart(tokio::task::JoinHandle<()>);

impl LongStart {
    pub(super) fn begin() -> LongStart {
        LongStart(tokio::spawn(extend_start()))
    }
}

impl Drop for LongStart {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Progress is what the process has read from files and written to them. A process that was started again in the place
/// of another one has its watchdog, too.
async fn extend_start() {
    let mut before = 0;
    loop {
        tokio::time::sleep(PROGRESS_INTERVAL).await;
        let done = std::fs::read_to_string("/proc/self/io").map_or(0, |io| bytes_done(&io));
        if done > before + PROGRESS_BYTES {
            notify(&[NotifyState::Watchdog, NotifyState::ExtendTimeoutUsec(EXTENSION_US)]);
        }
        before = done;
    }
}

/// Bytes read and written, from the page cache, too.
fn bytes_done(io: &str) -> u64 {
    let counts = io.lines().filter_map(|line| line.strip_prefix("rchar: ").or(line.strip_prefix("wchar: ")));
    counts.filter_map(|count| count.parse::<u64>().ok()).sum()
}

/// Notifies the watchdog while the engine loop runs; stops when dropped.
pub(super) struct Watchdog(Option<tokio::task::JoinHandle<()>>);

impl Watchdog {
    pub(super) fn start(heartbeat: Arc<Heartbeat>) -> Watchdog {
        let send = || notify(&[NotifyState::Watchdog]);
        Watchdog(sd_notify::watchdog_enabled().map(|limit| tokio::spawn(feed(heartbeat, limit, send))))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

async fn feed(heartbeat: Arc<Heartbeat>, limit: Duration, mut send: impl FnMut()) {
    let mut before = None;
    loop {
        let count = heartbeat.count();
        // The engine loop runs at least once a second: no new beat in a third of the limit
        // means that it hangs, and systemd must restart it.
        if before != Some(count) {
            send();
        }
        before = Some(count);
        tokio::time::sleep(limit / 3).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn watchdog_gets_one_message_for_each_beat_and_none_without() {
        const LIMIT: Duration = Duration::from_millis(6);
        let (heartbeat, messages) = (Arc::<Heartbeat>::default(), Arc::<AtomicU32>::default());
        let counted = messages.clone();
        let send = move || _ = counted.fetch_add(1, Ordering::Relaxed);
        let feeding = tokio::spawn(feed(heartbeat.clone(), LIMIT, send));
        // The first one follows the start.
        for beats in 1..=3 {
            // Each of these sleeps is longer than the time between two looks.
            for _ in 0..20 {
                tokio::time::sleep(LIMIT).await;
            }
            assert_eq!(messages.load(Ordering::Relaxed), beats);
            heartbeat.beat();
        }
        feeding.abort();
    }

    #[test]
    fn progress_is_read_from_proc() {
        assert_eq!(bytes_done("rchar: 12\nwchar: 30\nsyscr: 7\nread_bytes: 9\n"), 42);
        assert!(bytes_done(&std::fs::read_to_string("/proc/self/io").unwrap()) > 0);
    }
}
