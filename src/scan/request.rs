//! What the scanner is given: requests to scan a server, and a clock.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::waker::WakeOnDrop;
use crate::model::{ServerKey, ServerUrl};

/// Returns the current time, Unix ms. Implemented by `clock`.
pub type Now = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A request to scan one server now.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// Copied to the outcome; not used here.
    pub id: u64,
    pub server: ServerKey,
    pub url: ServerUrl,
    pub mode: ScanMode,
    /// The outcome has the settings that the server publishes.
    pub wants_settings: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanMode {
    Normal,
    /// Three times the timeout and the retries; every protocol on the port and on
    /// its default ports (docs/rules.md section 9).
    Exception,
}

impl ScanMode {
    /// Factor of the timeout and of the number of retries.
    pub fn factor(self) -> u32 {
        match self {
            ScanMode::Normal => 1,
            ScanMode::Exception => 3,
        }
    }
}

/// Sends requests to the scanner. When the last sender is dropped, the scanner finishes the
/// scans in flight and ends.
#[derive(Clone, Debug)]
pub struct RequestSender {
    requests: mpsc::Sender<ScanRequest>,
    /// After the sender, so that the scanner sees that it is gone.
    wake: WakeOnDrop,
}

impl RequestSender {
    pub(super) fn new(requests: mpsc::Sender<ScanRequest>, wake: WakeOnDrop) -> RequestSender {
        RequestSender { requests, wake }
    }

    /// Sends a request, and waits while the queue is full. Returns whether the scanner runs.
    pub async fn send(&self, request: ScanRequest) -> bool {
        let sent = self.requests.send(request).await;
        self.wake.0.wake();
        sent.is_ok()
    }

    /// Sends all requests, many at a time: this task wakes when half of the queue is free. Ends early if the
    /// scanner has ended.
    pub async fn send_all(&self, requests: impl IntoIterator<Item = ScanRequest>) {
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() {
            let Ok(permits) = self.requests.reserve_many(self.requests.max_capacity() / 2).await else { return };
            permits.zip(requests.by_ref()).for_each(|(permit, request)| permit.send(request));
            self.wake.0.wake();
        }
    }

    /// Sends the requests that `next` returns until it has no more, or the queue is full.
    pub fn send_available(&self, mut next: impl FnMut() -> Option<ScanRequest>) {
        let mut sent = false;
        while let Ok(permit) = self.requests.try_reserve() {
            let Some(request) = next() else { break };
            permit.send(request);
            sent = true;
        }
        if sent {
            self.wake.0.wake();
        }
    }

    pub fn is_full(&self) -> bool {
        self.requests.capacity() == 0
    }
}
