//! The scan engine: takes requests, queries servers over UDP or TCP, returns outcomes.
//!
//! One thread holds every scan in flight. It receives and sends in batches on a few shared
//! sockets, decodes replies where they were received, and returns outcomes in batches. A
//! silent server needs one table entry and one timer, but no socket and no task. Module
//! `proto` defines requests and decodes replies. This module decides when, how often and how
//! fast requests are sent.
//!
//! - [`request`], [`outcome`]: what goes in and what comes out. - [`settings`]: the configuration.
//! - [`core`]: all decisions, without IO and without a clock: scans, limits, timeouts, host names.
//! - [`driver`]: the thread. - [`socket`]: sending and receiving. - [`connections`]: the same over TCP. - [`waker`]: wakes the thread. - [`resolver`]: looks host names up; [`service`]: SRV records.
//! - [`target`]: which protocols and ports are queried. - [`address`]: which addresses are.
//! - [`capture`]: datagrams as received. - [`counters`]: metrics.

mod address;
mod capture;
mod connections;
mod core;
mod counters;
mod driver;
mod outcome;
mod request;
mod resolver;
mod service;
mod settings;
mod socket;
pub mod target;
mod waker;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

pub use self::address::{NetworkError, is_public, is_unicast, parse_network};
pub use self::capture::Capture;
pub use self::counters::{ScanCounterValues, ScanCounters};
use self::driver::{Channels, Driver, ScannerCommand};
pub use self::outcome::{Attempt, Miss, MissReason, ScanOutcome};
pub use self::request::{Now, RequestSender, ScanMode, ScanRequest};
pub use self::settings::{DNS_CACHE_TTL_S, ScanSettings, SettingsError, TCP_CONNECTIONS_MAX, TIMEOUT_MS};
use self::waker::{WakeOnDrop, Waker};

/// Requests that wait for the scanner. Each is taken within a turn while there is capacity.
const REQUEST_QUEUE_MAX: usize = 4_096;

/// Batches of outcomes that wait for the consumer: five seconds' worth at 2,000 scans/s. When there are more, the scanner keeps
/// outcomes, accepts fewer requests, and scans begin later.
const OUTCOME_BATCHES_MAX: usize = 20;

/// A handle to a running scan engine. If it is dropped without [`Scanner::shutdown`],
/// the engine ends when the request sender or the outcome receiver is dropped.
#[derive(Debug)]
pub struct Scanner {
    counters: Arc<ScanCounters>,
    reloader: Reloader,
    /// Closed when the thread has ended.
    ended: oneshot::Receiver<()>,
}

/// The outcomes of scans, in batches. Closed when the scanner has ended.
pub type Outcomes = mpsc::Receiver<Vec<ScanOutcome>>;

impl Scanner {
    /// Opens the sockets and starts the thread. Must be called inside a tokio runtime, which
    /// resolves host names.
    ///
    /// Accepts requests while fewer than `scans_in_flight_max` scans are in flight; further
    /// ones wait in their queue. When the request senders are dropped, the scanner
    /// finishes the scans in flight, ends, and closes the channel of outcomes.
    ///
    /// Errors: invalid settings (`InvalidInput`), no socket could be opened, no thread started.
    pub fn start(settings: ScanSettings, now: Now) -> io::Result<(Scanner, RequestSender, Outcomes)> {
        settings.check().map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        let counters = Arc::new(ScanCounters::default());
        let waker = Waker::new()?;
        let (requests_tx, requests) = mpsc::channel(REQUEST_QUEUE_MAX);
        let (commands_tx, commands) = mpsc::channel(4);
        let (outcomes, outcomes_rx) = mpsc::channel(OUTCOME_BATCHES_MAX);
        let channels = Channels { requests, commands, outcomes, waker: waker.clone() };
        let driver = Driver::new(settings, channels, now, counters.clone())?;
        let (running, ended) = oneshot::channel();
        std::thread::Builder::new().name("scan".to_owned()).spawn(move || {
            driver.run();
            drop(running);
        })?;
        let reloader = Reloader { commands: commands_tx, waker: waker.clone() };
        let requests = RequestSender::new(requests_tx, WakeOnDrop(waker));
        Ok((Scanner { counters, reloader, ended }, requests, outcomes_rx))
    }

    /// The shared counters, which outlive the scanner. They count from the start.
    pub fn counters(&self) -> Arc<ScanCounters> {
        self.counters.clone()
    }

    /// A handle for changing the settings, which outlives the scanner.
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// Accepts no more requests, waits at most `grace` for the scans in flight, and
    /// cancels the rest. Cancelled scans have no outcome: an interrupted scan says
    /// nothing about its server.
    pub async fn shutdown(self, grace: Duration) {
        self.reloader.send(ScannerCommand::Stop(grace)).await;
        let _ = self.ended.await;
    }
}

/// Applies new settings to a running scan engine.
#[derive(Clone, Debug)]
pub struct Reloader {
    commands: mpsc::Sender<ScannerCommand>,
    waker: Waker,
}

impl Reloader {
    /// Applies new settings; they are in effect when this returns. `sockets_per_ip_version`
    /// and `receive_buffer_bytes` take effect at the next start only.
    pub async fn reload(&self, settings: ScanSettings) -> Result<(), SettingsError> {
        settings.check()?;
        // If the engine has ended, there is nothing to reload.
        let (done, wait) = oneshot::channel();
        self.send(ScannerCommand::Reload(Box::new(settings), done)).await;
        let _ = wait.await;
        Ok(())
    }

    async fn send(&self, command: ScannerCommand) {
        // If the thread has ended, the command is dropped.
        let _ = self.commands.send(command).await;
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests;
