//! The scan engine: takes requests, asks servers over UDP, gives outcomes.
//!
//! One task holds every scan in flight; a few shared sockets, each with a task
//! that only receives, serve them all. A silent server costs one entry in a
//! table and one in the timers: no socket, no task. What is asked and what an
//! answer means is `proto`'s; this room knows when, how often and how fast.
//!
//! - [`settings`]: what an admin can set. - [`target`]: where to ask, and where never.
//! - [`budget`]: how fast. - [`timers`]: what is due. - [`resolve`]: host names.
//! - [`socket`]: the system's side. - [`define_counters`]: what happened. - [`work`]: the task.

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

pub use self::settings::{ScanSettings, SettingsError};
pub use self::target::Cidr;
use crate::model::{ServerKey, ServerUrl, Snapshot};
use crate::proto::named_enum;
pub use crate::scan::counters::{ScanCounterValues, ScanCounters};

/// What time it is, Unix ms. Only `clock` knows how to tell.
pub type Now = Arc<dyn Fn() -> i64 + Send + Sync>;

/// One server, to be scanned now.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// Given back with the outcome; means nothing here.
    pub id: u64,
    pub server: ServerKey,
    pub url: ServerUrl,
    pub mode: ScanMode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanMode {
    #[default]
    Normal,
    /// Three times the time-out and the retries, and every protocol on the port
    /// and on its usual ports (RULES section 9).
    Exception,
}

/// How a scan ended. Every request gets one, unless the scanner is shut down.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanOutcome {
    pub id: u64,
    pub server: ServerKey,
    /// When the first packet left, Unix ms; `None` where none did.
    pub sent_ms: Option<i64>,
    /// A partial snapshot is a success: the server is alive.
    pub result: Result<Snapshot, Miss>,
    /// From a question to its answer; `None` where a resend leaves open which
    /// question was answered, and for a miss.
    pub rtt_ms: Option<u32>,
    /// What was tried, in order: one entry, or several in exception mode. At
    /// most the last has answered.
    pub attempts: Vec<Attempt>,
}

/// One protocol on one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub scheme: &'static str,
    pub port: u16,
    pub result: Result<(), MissReason>,
}

/// Nothing was learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// When the scan was given up, Unix ms.
    pub t_ms: i64,
    pub reason: MissReason,
}

named_enum!(
    /// Why a scan is a miss.
    MissReason {
        /// No answer to any of the tries.
        Timeout = "timeout",
        /// Something came, again and again, but no answer that could be used.
        Malformed = "malformed",
        /// The host says that nobody listens on the port (ICMP).
        Refused = "refused",
        /// The host name has no address.
        Unresolved = "unresolved",
        /// The address is private, loopback or the like, and `allow_private` is off.
        NotPublic = "not_public",
        /// The address is on the opt-out list.
        OptedOut = "opted_out",
        /// No protocol of that scheme.
        NoProtocol = "no_protocol",
        /// The system refused to send: no route, no IPv6, a firewall of our own.
        Unsendable = "unsendable",
        /// No answer, but our own socket lost datagrams meanwhile.
        Overrun = "overrun",
    }
);

impl MissReason {
    /// The fault may be ours: it says nothing about the server.
    pub fn is_local_fault(self) -> bool {
        matches!(self, MissReason::Unsendable | MissReason::Overrun)
    }
}

/// A handle to a running scan engine. Dropped without [`Scanner::shutdown`], the
/// engine ends when the sender of requests, or the receiver of outcomes, is gone.
#[derive(Debug)]
pub struct Scanner {
    counts: Arc<ScanCounters>,
    orders: mpsc::Sender<ScannerCommand>,
    task: JoinHandle<()>,
}

enum ScannerCommand {
    /// Answered once the new settings hold.
    Reload(Box<ScanSettings>, oneshot::Sender<()>),
    /// No new requests; end within the time given.
    Stop(Duration),
}

impl Scanner {
    /// Opens the sockets and starts. Must be called inside a tokio runtime.
    ///
    /// Requests are taken while fewer than `in_flight_max` scans are under way;
    /// beyond that they wait in their channel. When the sender of the requests
    /// is dropped, the scanner finishes what is in flight and ends, and with it
    /// the channel of outcomes.
    ///
    /// Errors: settings that cannot be (`InvalidInput`), or no socket.
    pub fn start(
        settings: ScanSettings,
        requests: mpsc::Receiver<ScanRequest>,
        outcomes: mpsc::Sender<ScanOutcome>,
        now: Now,
    ) -> io::Result<Scanner> {
        settings.check().map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        let counts = Arc::new(ScanCounters::default());
        let (orders, orders_rx) = mpsc::channel(4);
        let work = event_loop::EventLoop::new(settings, requests, orders_rx, now, counts.clone())?;
        Ok(Scanner { counts, orders, task: tokio::spawn(work.run(outcomes)) })
    }

    /// What happened since the start.
    pub fn counter_values(&self) -> ScanCounterValues {
        self.counts.view()
    }

    /// The counters themselves, for who outlives a borrow.
    pub fn counters(&self) -> Arc<ScanCounters> {
        self.counts.clone()
    }

    /// A handle for new settings that outlives a borrow.
    pub fn reloader(&self) -> Reloader {
        Reloader { orders: self.orders.clone() }
    }

    /// Takes no more requests, waits at most `grace` for what is in flight, and
    /// abandons the rest: it gets no outcome, for a scan cut short says nothing
    /// about its server.
    pub async fn shutdown(self, grace: Duration) {
        let _ = self.orders.send(ScannerCommand::Stop(grace)).await;
        let mut task = self.task;
        // The task keeps the bound itself; this one is for a consumer of outcomes
        // that no longer reads.
        if tokio::time::timeout(grace + Duration::from_secs(1), &mut task).await.is_err() {
            task.abort();
        }
    }

    /// Waits until every request is answered, after their sender was dropped.
    pub async fn join(self) {
        let _ = self.task.await;
    }
}

/// Brings new settings to a running scan engine.
#[derive(Clone, Debug)]
pub struct Reloader {
    orders: mpsc::Sender<ScannerCommand>,
}

impl Reloader {
    /// New settings; they hold when this returns. `sockets` and
    /// `receive_buffer_bytes` take effect at the next start only.
    pub async fn reload(&self, settings: ScanSettings) -> Result<(), SettingsError> {
        settings.check()?;
        // If it has ended there is nothing left to set.
        let (done, wait) = oneshot::channel();
        if self.orders.send(ScannerCommand::Reload(Box::new(settings), done)).await.is_ok() {
            let _ = wait.await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
