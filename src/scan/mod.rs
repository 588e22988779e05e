//! The scan engine: takes requests, queries servers over UDP, returns outcomes.
//!
//! One task holds every scan in flight. A few shared sockets, each with a task
//! that only receives, serve all scans. A silent server needs one table entry and
//! one timer, but no socket and no task. Module `proto` defines requests and
//! decodes replies. This module decides when, how often and how fast requests are
//! sent.
//!
//! - [`settings`]: the configuration. - [`target`]: which addresses and ports are queried.
//! - [`rate_limit`]: packets a second. - [`timers`]: deadlines. - [`resolver`]: host names.
//! - [`socket`]: sending and receiving. - [`counters`]: metrics. - [`event_loop`]: the task.

pub mod counters;
mod event_loop;
pub mod rate_limit;
pub mod resolver;
pub mod settings;
pub mod socket;
pub mod target;
pub mod timers;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use self::settings::{DNS_CACHE_TTL_S, ScanSettings, SettingsError, TIMEOUT_MS};
pub use self::target::Cidr;
use crate::model::{ServerKey, ServerUrl, Snapshot};
use crate::proto::named_enum;
pub use crate::scan::counters::{ScanCounterValues, ScanCounters};

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
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanMode {
    #[default]
    Normal,
    /// Three times the time-out and the retries; every protocol on the port and on
    /// its default ports (docs/rules.md section 9).
    Exception,
}

/// How a scan ended. Every request gets one, unless the scanner is shut down.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanOutcome {
    pub id: u64,
    pub server: ServerKey,
    /// When the first packet was sent, Unix ms; `None` if none was.
    pub sent_ms: Option<i64>,
    /// A partial snapshot is a success: the server is alive.
    pub result: Result<Snapshot, Miss>,
    /// Round-trip time. `None` for a miss, and after a resend, because the reply may
    /// belong to either packet.
    pub rtt_ms: Option<u32>,
    /// The attempts, in order: one, or several in exception mode. Only the last can
    /// have succeeded.
    pub attempts: Vec<Attempt>,
}

/// One protocol, tried on one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub scheme: &'static str,
    pub port: u16,
    pub result: Result<(), MissReason>,
}

/// A scan that learnt nothing about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// When the scan ended, Unix ms.
    pub t_ms: i64,
    pub reason: MissReason,
}

named_enum!(
    /// Why a scan is a miss.
    MissReason {
        /// No reply to any of the packets.
        Timeout = "timeout",
        /// Datagrams arrived, but no usable reply.
        Malformed = "malformed",
        /// The host reports that the port is closed (ICMP port unreachable).
        Refused = "refused",
        /// The host name has no address.
        Unresolved = "unresolved",
        /// The address is private, loopback or the like, and `allow_private` is off.
        NotPublic = "not_public",
        /// The address is on the opt-out list.
        OptedOut = "opted_out",
        /// The URL's scheme has no protocol.
        UnsupportedScheme = "unsupported_scheme",
        /// The system refused to send: no route, no IPv6, a local firewall.
        SendFailed = "send_failed",
        /// No reply, but the receive buffer of our socket overflowed during the scan.
        ReceiveOverflow = "receive_overflow",
    }
);

impl MissReason {
    /// Whether the cause may be local, so that the miss does not count against the server.
    pub fn is_local_fault(self) -> bool {
        matches!(self, MissReason::SendFailed | MissReason::ReceiveOverflow)
    }
}

/// A handle to a running scan engine. If it is dropped without [`Scanner::shutdown`],
/// the engine ends when the request sender or the outcome receiver is dropped.
#[derive(Debug)]
pub struct Scanner {
    counts: Arc<ScanCounters>,
    orders: mpsc::Sender<ScannerCommand>,
    task: JoinHandle<()>,
}

enum ScannerCommand {
    /// The sender is notified when the new settings are in effect.
    Reload(Box<ScanSettings>, oneshot::Sender<()>),
    /// Accept no new requests; end within this time.
    Stop(Duration),
}

impl Scanner {
    /// Opens the sockets and starts. Must be called inside a tokio runtime.
    ///
    /// Accepts requests while fewer than `scans_in_flight_max` scans are in flight; further
    /// ones wait in their channel. When the request sender is dropped, the scanner
    /// finishes the scans in flight, ends, and closes the channel of outcomes.
    ///
    /// Errors: invalid settings (`InvalidInput`), or no socket could be opened.
    pub fn start(
        settings: ScanSettings,
        requests: mpsc::Receiver<ScanRequest>,
        outcomes: mpsc::Sender<ScanOutcome>,
        now: Now,
    ) -> io::Result<Scanner> {
        settings.check().map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        let counts = Arc::new(ScanCounters::default());
        let (orders, orders_rx) = mpsc::channel(4);
        let event_loop = event_loop::EventLoop::new(settings, requests, orders_rx, now, counts.clone())?;
        Ok(Scanner { counts, orders, task: tokio::spawn(event_loop.run(outcomes)) })
    }

    /// The counters' current values. They count from the start.
    pub fn counter_values(&self) -> ScanCounterValues {
        self.counts.values()
    }

    /// The shared counters, which outlive the scanner.
    pub fn counters(&self) -> Arc<ScanCounters> {
        self.counts.clone()
    }

    /// A handle for changing the settings, which outlives the scanner.
    pub fn reloader(&self) -> Reloader {
        Reloader { orders: self.orders.clone() }
    }

    /// Accepts no more requests, waits at most `grace` for the scans in flight, and
    /// cancels the rest. Cancelled scans have no outcome: an interrupted scan says
    /// nothing about its server.
    pub async fn shutdown(self, grace: Duration) {
        let _ = self.orders.send(ScannerCommand::Stop(grace)).await;
        let mut task = self.task;
        // The task itself ends within `grace`. This time-out covers a consumer that no
        // longer reads outcomes.
        if tokio::time::timeout(grace + Duration::from_secs(1), &mut task).await.is_err() {
            task.abort();
        }
    }

    /// Waits until every request has its outcome, after the request sender was dropped.
    pub async fn join(self) {
        let _ = self.task.await;
    }
}

/// Applies new settings to a running scan engine.
#[derive(Clone, Debug)]
pub struct Reloader {
    orders: mpsc::Sender<ScannerCommand>,
}

impl Reloader {
    /// Applies new settings; they are in effect when this returns. `sockets_per_ip_version`
    /// and `receive_buffer_bytes` take effect at the next start only.
    pub async fn reload(&self, settings: ScanSettings) -> Result<(), SettingsError> {
        settings.check()?;
        // If the engine has ended, there is nothing to reload.
        let (done, wait) = oneshot::channel();
        if self.orders.send(ScannerCommand::Reload(Box::new(settings), done)).await.is_ok() {
            let _ = wait.await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
