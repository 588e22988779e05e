//! Result queues of rescans, from the engine to the clients that requested them.
//!
//! A client may read more slowly than servers answer, or stop reading. The engine does not
//! wait for it: each rescan has a queue of at most [`RESULTS_MAX`] results. Results that do
//! not fit are dropped and counted, and the client receives the number. The scans
//! themselves are applied as usual.

use std::collections::HashMap;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;

use crate::api::requests::ScanRow;
use crate::model::ServerKey;

/// Results of one rescan queued for its client. A result takes about 500 bytes, and each
/// connection runs one rescan, so all queues together take at most some 30 MB. `clqd
/// rescan` reads far faster than servers answer and never fills its queue.
const RESULTS_MAX: usize = 1_000;

/// The client's end of a rescan.
#[derive(Debug)]
pub(super) struct ScanResults {
    /// Ends after the last result.
    pub(super) rows: mpsc::Receiver<ScanRow>,
    /// Results that did not fit.
    pub(super) dropped: Counter,
}

#[derive(Clone, Debug)]
struct Waiter {
    rows: mpsc::Sender<ScanRow>,
    dropped: Counter,
}

/// The rescans that wait for results.
#[derive(Debug, Default)]
pub(super) struct RescanWaiters {
    waiting: HashMap<ServerKey, Vec<Waiter>>,
    /// Results that were dropped, of all rescans.
    dropped: Counter,
}

impl RescanWaiters {
    /// `dropped` counts the dropped results of all rescans.
    pub(super) fn new(dropped: Counter) -> RescanWaiters {
        RescanWaiters { waiting: HashMap::new(), dropped }
    }

    /// Registers a rescan for one result of each server.
    pub(super) fn begin(&mut self, servers: impl IntoIterator<Item = ServerKey>) -> ScanResults {
        let (rows, results) = mpsc::channel(RESULTS_MAX);
        let waiter = Waiter { rows, dropped: Counter::default() };
        for server in servers {
            let waiters = self.waiting.entry(server).or_default();
            // Disconnected clients must not accumulate until the server answers.
            waiters.retain(|waiter| !waiter.rows.is_closed());
            waiters.push(waiter.clone());
        }
        ScanResults { rows: results, dropped: waiter.dropped }
    }

    pub(super) fn is_waiting(&self, server: ServerKey) -> bool {
        self.waiting.contains_key(&server)
    }

    /// Removes the rescans' entries of a server that will have no result.
    pub(super) fn cancel(&mut self, server: ServerKey) {
        self.waiting.remove(&server);
    }

    /// The rescans that wait for the result of a server; they have no other result of it.
    pub(super) fn take(&mut self, server: ServerKey) -> Option<WaitingRescans> {
        let waiters = self.waiting.remove(&server)?;
        Some(WaitingRescans { waiters, dropped: self.dropped.clone() })
    }
}

/// Rescans that wait for one result.
pub(super) struct WaitingRescans {
    waiters: Vec<Waiter>,
    dropped: Counter,
}

impl WaitingRescans {
    /// Sends the result to all of them. Never blocks.
    pub(super) fn send(self, row: &ScanRow) {
        for waiter in self.waiters {
            if let Err(mpsc::error::TrySendError::Full(_)) = waiter.rows.try_send(row.clone()) {
                waiter.dropped.inc();
                self.dropped.inc();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::requests::ScanResult;

    fn row(n: u32) -> ScanRow {
        ScanRow {
            url: format!("quake3://10.0.0.1:{n}"),
            t_ms: 0,
            result: ScanResult::Miss,
            class: 7,
            hostname: None,
            game: None,
            map: None,
            players: None,
            slots: None,
            answers_at: None,
            reason: None,
        }
    }

    #[test]
    fn slow_client_loses_results_beyond_the_queue_and_gets_their_count() {
        let all = Counter::default();
        let mut rescans = RescanWaiters::new(all.clone());
        let servers = || (0..RESULTS_MAX as u32 + 500).map(ServerKey);
        let mut slow = rescans.begin(servers());
        let mut quick = rescans.begin(servers());
        let mut read = 0;
        for server in servers() {
            rescans.take(server).unwrap().send(&row(server.0));
            read += u32::from(quick.rows.try_recv().is_ok());
        }
        assert_eq!((read as usize, quick.dropped.get()), (RESULTS_MAX + 500, 0));
        let received = std::iter::from_fn(|| slow.rows.try_recv().ok()).count();
        assert_eq!((received, slow.dropped.get(), all.get()), (RESULTS_MAX, 500, 500));
        assert!(slow.rows.blocking_recv().is_none(), "the channel has ended");
    }

    #[test]
    fn disconnected_clients_are_removed() {
        let mut rescans = RescanWaiters::default();
        for _ in 0..1_000 {
            drop(rescans.begin([ServerKey(1)]));
        }
        let mut results = rescans.begin([ServerKey(1)]);
        assert_eq!(rescans.waiting[&ServerKey(1)].len(), 1);
        rescans.take(ServerKey(1)).unwrap().send(&row(1));
        assert!(results.rows.try_recv().is_ok() && rescans.waiting.is_empty() && rescans.dropped.get() == 0);
    }
}
