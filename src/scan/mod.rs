//! The scan engine: takes requests, queries servers over UDP, returns outcomes.
//!
//! One task holds every scan in flight. A few shared sockets, each with a task
//! that only receives, serve all scans. A silent server needs one table entry and
//! one timer, but no socket and no task. Module `proto` defines requests and
//! decodes replies. This module decides when, how often and how fast requests are
//! sent.
//!
//! - [`request`], [`outcome`]: what goes in and what comes out. - [`settings`]: the configuration.
//! - [`target`]: which protocols and ports are queried. - [`address`]: which addresses are.
//! - [`rate_limit`]: packets a second. - [`timers`]: deadlines. - [`resolver`]: host names.
//! - [`capture`]: datagrams as received. - [`socket`]: sending and receiving. - [`counters`]: metrics. - [`event_loop`]: the task.

mod address;
mod capture;
mod counters;
mod event_loop;
mod outcome;
mod rate_limit;
mod request;
mod resolver;
mod settings;
mod socket;
pub mod target;
mod timers;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use self::address::{NetworkError, is_public, is_unicast, parse_network};
pub use self::capture::Capture;
pub use self::counters::{ScanCounterValues, ScanCounters};
use self::event_loop::{EventLoop, ScannerCommand};
pub use self::outcome::{Attempt, Miss, MissReason, ScanOutcome};
pub use self::request::{Now, ScanMode, ScanRequest};
pub use self::settings::{DNS_CACHE_TTL_S, ScanSettings, SettingsError, TIMEOUT_MS};

/// A handle to a running scan engine. If it is dropped without [`Scanner::shutdown`],
/// the engine ends when the request sender or the outcome receiver is dropped.
#[derive(Debug)]
pub struct Scanner {
    counters: Arc<ScanCounters>,
    commands: mpsc::Sender<ScannerCommand>,
    task: JoinHandle<()>,
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
        let counters = Arc::new(ScanCounters::default());
        let (commands, commands_rx) = mpsc::channel(4);
        let event_loop = EventLoop::new(settings, requests, commands_rx, now, counters.clone())?;
        Ok(Scanner { counters, commands, task: tokio::spawn(event_loop.run(outcomes)) })
    }

    /// The shared counters, which outlive the scanner. They count from the start.
    pub fn counters(&self) -> Arc<ScanCounters> {
        self.counters.clone()
    }

    /// A handle for changing the settings, which outlives the scanner.
    pub fn reloader(&self) -> Reloader {
        Reloader { commands: self.commands.clone() }
    }

    /// Accepts no more requests, waits at most `grace` for the scans in flight, and
    /// cancels the rest. Cancelled scans have no outcome: an interrupted scan says
    /// nothing about its server.
    pub async fn shutdown(self, grace: Duration) {
        let _ = self.commands.send(ScannerCommand::Stop(grace)).await;
        let mut task = self.task;
        // The task itself ends within `grace`. This time-out covers a consumer that no
        // longer reads outcomes.
        if tokio::time::timeout(grace + Duration::from_secs(1), &mut task).await.is_err() {
            task.abort();
        }
    }
}

/// Applies new settings to a running scan engine.
#[derive(Clone, Debug)]
pub struct Reloader {
    commands: mpsc::Sender<ScannerCommand>,
}

impl Reloader {
    /// Applies new settings; they are in effect when this returns. `sockets_per_ip_version`
    /// and `receive_buffer_bytes` take effect at the next start only.
    pub async fn reload(&self, settings: ScanSettings) -> Result<(), SettingsError> {
        settings.check()?;
        // If the engine has ended, there is nothing to reload.
        let (done, wait) = oneshot::channel();
        if self.commands.send(ScannerCommand::Reload(Box::new(settings), done)).await.is_ok() {
            let _ = wait.await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
