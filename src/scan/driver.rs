//! The thread that scans: it has the sockets, sleeps, and reads the clocks. [`ScanCore`] decides.
//!
//! It works in turns: receive what has arrived, hand it to the core, start and continue scans, send all
//! packets, hand over all outcomes. A turn handles many datagrams with few system calls, and
//! a pause between turns lets more arrive.

#![cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "round trips and pacing; never the time of a snapshot")
)]

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use tokio::sync::{mpsc, oneshot};

use super::connections::{ConnectionEvent, Connections};
use super::core::{ConnectionCommand, Input, Moment, Packets, ScanCore, ScanToken};
use super::counters::ScanCounters;
use super::outcome::ScanOutcome;
use super::request::{Now, ScanRequest};
use super::resolver::Resolver;
use super::settings::ScanSettings;
use super::socket::{IcmpError, Ready, ReceiveBatch, Sockets};
use super::waker::Waker;
use crate::proto::NonceKey;

/// Pause after a turn in which anything was sent or received: at 1,667 scans/s the next turn
/// handles 13 of each. The kernel notes when datagrams arrive, so round-trip times stay exact.
const TURN_PAUSE: Duration = Duration::from_millis(8);

/// Batches received from one socket before the others get their turn.
const RECEIVE_BATCHES_PER_TURN: usize = 8;

/// Most outcomes handed over in one batch.
pub(super) const OUTCOMES_PER_BATCH: usize = 512;

/// How soon the thread tries again to hand over outcomes.
const OUTCOME_RETRY: Duration = Duration::from_millis(5);

/// A turn starts scans until it has to send this fraction (1/4) of the datagrams that fit into the
/// receive buffers. So the replies fit, even if all arrive at once.
const SENDS_PER_TURN_DIVISOR: usize = 4;

/// Range of the number of packets that a turn sends. 256 packets take less than 1 ms, so their
/// times of sending are exact to 1 ms.
const SENDS_PER_TURN: RangeInclusive<usize> = 16..=256;

/// A command to the running thread.
pub(super) enum ScannerCommand {
    /// The sender is notified when the new settings are in effect.
    Reload(Box<ScanSettings>, oneshot::Sender<()>),
    /// Accept no new requests; end within this time.
    Stop(Duration),
}

/// What the thread receives and sends.
pub(super) struct Channels {
    pub(super) requests: mpsc::Receiver<ScanRequest>,
    pub(super) commands: mpsc::Receiver<ScannerCommand>,
    pub(super) outcomes: mpsc::Sender<Vec<ScanOutcome>>,
    /// Called after something was put into `requests` or `commands`.
    pub(super) waker: Waker,
}

/// See the file header.
pub(super) struct Driver {
    core: ScanCore,
    channels: Channels,
    unix_now: Now,
    counters: Arc<ScanCounters>,
    /// The core's durations count from here.
    start: Instant,
    sockets: Sockets,
    connections: Connections,
    batch: ReceiveBatch,
    /// An empty list, to be exchanged for packets.
    spare: Packets,
    resolver: Resolver,
    /// No more requests are accepted.
    draining: bool,
    /// When the remaining scans are cancelled.
    stop_at: Option<Duration>,
}

impl Driver {
    /// Must be called inside a tokio runtime: host names are looked up there.
    pub(super) fn new(
        settings: ScanSettings,
        channels: Channels,
        unix_now: Now,
        counters: Arc<ScanCounters>,
    ) -> io::Result<Driver> {
        let mut nonce_key = [0; 16];
        getrandom::fill(&mut nonce_key)
            .map_err(|error| io::Error::other(format!("the system has no random numbers: {error}")))?;
        let sockets = Sockets::open(settings.sockets_per_ip_version as usize, settings.receive_buffer_bytes as usize)?;
        Ok(Driver {
            core: ScanCore::new(settings, sockets.counts(), NonceKey::new(nonce_key), counters.clone()),
            resolver: Resolver::new(Handle::current(), channels.waker.clone()),
            channels,
            unix_now,
            counters,
            start: Instant::now(),
            sockets,
            connections: Connections::default(),
            batch: ReceiveBatch::default(),
            spare: Packets::default(),
            draining: false,
            stop_at: None,
        })
    }

    /// Runs until the requests end, a command stops it, or nobody receives outcomes.
    pub(super) fn run(mut self) {
        let (mut ready, mut ready_connections) = (Vec::new(), Vec::new());
        loop {
            let mut received = self.receive(&ready);
            // What datagrams have ended is closed before its connection is read.
            self.command_connections();
            received += self.serve_connections(&ready_connections);
            self.handle_commands();
            self.handle_lookups();
            let now = self.now();
            self.core.handle(Input::Time, now);
            let is_busy = self.accept_requests();
            self.start_lookups();
            let sent = self.send();
            if self.deliver_outcomes().is_err() || self.stop_at.is_some_and(|at| self.start.elapsed() >= at) {
                return self.cancel_all();
            }
            if self.draining && self.core.in_flight() == 0 {
                return;
            }
            // Without new requests a pause saves little, and somebody waits for the last replies.
            if !is_busy && !self.draining && received + sent > 0 {
                std::thread::sleep(TURN_PAUSE);
            }
            (ready, ready_connections) = match self.wait() {
                Ok(ready) => ready,
                Err(error) => {
                    tracing::error!(%error, "waiting for the scan sockets failed");
                    return self.cancel_all();
                }
            };
        }
    }

    fn now(&self) -> Moment {
        Moment { elapsed: self.start.elapsed(), unix_ms: (self.unix_now)() }
    }

    fn handle(&mut self, input: Input<'_>) {
        let now = self.now();
        self.core.handle(input, now);
    }

    /// Sleeps until something is to be done.
    fn wait(&mut self) -> io::Result<(Vec<Ready>, Vec<ScanToken>)> {
        let now = self.start.elapsed();
        let retry_at = self.core.has_outcomes().then_some(now + OUTCOME_RETRY);
        let wake_at = [retry_at, self.stop_at].into_iter().flatten().fold(self.core.next_due(), Duration::min);
        let has_capacity = self.has_capacity();
        let Channels { requests, commands, waker, .. } = &self.channels;
        self.sockets.wait(&self.connections, waker, wake_at.saturating_sub(now), || {
            let has_requests = has_capacity && (!requests.is_empty() || requests.is_closed());
            !has_requests && commands.is_empty()
        })
    }

    fn has_capacity(&self) -> bool {
        !self.draining && self.core.has_capacity()
    }

    /// Returns the number of datagrams.
    fn receive(&mut self, ready: &[Ready]) -> usize {
        let mut received = 0;
        for ready in ready {
            if ready.has_errors {
                while let Some(error) = self.sockets.next_icmp_error(ready.socket) {
                    match error {
                        IcmpError::Refused(address) => self.handle(Input::PortClosed(address)),
                        IcmpError::Other => self.counters.icmp_other.increment(),
                    }
                }
            }
            // Also clears an error for which the error queue had no space: it would stay ready.
            received += self.receive_datagrams(ready.socket);
        }
        received
    }

    fn receive_datagrams(&mut self, socket: usize) -> usize {
        let mut received = 0;
        for _ in 0..RECEIVE_BATCHES_PER_TURN {
            let dropped = self.sockets.receive(socket, &mut self.batch);
            let now = self.now();
            if dropped > 0 {
                self.core.handle(Input::Dropped { socket, datagrams: dropped }, now);
            }
            let batch_at = self.batch.at().duration_since(self.start);
            for (datagram, bytes) in self.batch.datagrams() {
                let Some(from) = datagram.from else { continue };
                let at = Moment {
                    elapsed: batch_at.saturating_sub(datagram.age),
                    unix_ms: now.unix_ms - datagram.age.as_millis() as i64,
                };
                self.core.handle(Input::Datagram { socket, from, at, bytes }, now);
            }
            received += self.batch.len();
            if !self.batch.is_full() {
                break;
            }
        }
        received
    }

    /// Reads from the connections. Returns the number of those that had something.
    fn serve_connections(&mut self, ready: &[ScanToken]) -> usize {
        for &token in ready {
            let now = self.now();
            // What another connection brought may have ended this one.
            let Some(event) = self.connections.advance(token) else { continue };
            match event {
                ConnectionEvent::Nothing => {}
                ConnectionEvent::Opened => self.core.handle(Input::Connected(token), now),
                ConnectionEvent::Received(bytes) => self.core.handle(Input::Received { token, bytes }, now),
                ConnectionEvent::Ended { is_refused } => {
                    self.core.handle(Input::ConnectionEnded { token, is_refused }, now);
                }
            }
            self.command_connections();
        }
        ready.len()
    }

    /// Opens, writes and closes what the core wants. Returns the number of requests.
    fn command_connections(&mut self) -> usize {
        let mut requests = 0;
        while self.core.has_connection_commands() {
            for command in self.core.take_connection_commands() {
                match command {
                    ConnectionCommand::Close(token) => self.connections.close(token),
                    ConnectionCommand::Write { token, to, request } => {
                        requests += 1;
                        if let Err(error) = self.connections.write(token, to, &request) {
                            tracing::debug!(address = %to, %error, "a connection could not be opened");
                            let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
                            self.handle(match is_refused {
                                true => Input::ConnectionEnded { token, is_refused },
                                false => Input::NotSent { token, address: to },
                            });
                        }
                    }
                }
            }
        }
        requests
    }

    fn handle_commands(&mut self) {
        while let Ok(command) = self.channels.commands.try_recv() {
            match command {
                ScannerCommand::Reload(settings, done) => {
                    self.handle(Input::Settings(settings));
                    // The caller may have stopped waiting for the notification.
                    let _ = done.send(());
                }
                ScannerCommand::Stop(grace) => {
                    self.draining = true;
                    self.stop_at = Some(self.start.elapsed() + grace);
                }
            }
        }
    }

    fn handle_lookups(&mut self) {
        while let Some(result) = self.resolver.next_result() {
            self.handle(Input::Resolved(result));
        }
    }

    fn start_lookups(&mut self) {
        while let Some(host) = self.core.next_lookup() {
            self.resolver.start(host);
        }
    }

    /// Starts scans. Returns whether there may be more requests.
    fn accept_requests(&mut self) -> bool {
        let sends_max = self.sockets.buffered_max() / SENDS_PER_TURN_DIVISOR;
        let sends_max = sends_max.clamp(*SENDS_PER_TURN.start(), *SENDS_PER_TURN.end());
        while self.has_capacity() {
            if self.core.packets_queued() >= sends_max {
                return true;
            }
            match self.channels.requests.try_recv() {
                Ok(request) => self.handle(Input::Request(request)),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => self.draining = true,
            }
        }
        false
    }

    /// Sends all packets, also those that follow from one that could not be sent. Returns their number.
    fn send(&mut self) -> usize {
        let mut sent = self.command_connections();
        while self.core.packets_queued() > 0 {
            for socket in 0..self.sockets.counts().all() {
                let mut packets = self.core.take_packets(socket, std::mem::take(&mut self.spare));
                let failed = self.sockets.send(socket, &packets);
                let now = self.now();
                for packet in packets.list() {
                    self.core.handle(Input::Sent(packet.to), now);
                }
                for (packet, error) in failed {
                    tracing::debug!(address = %packet.to, %error, "a packet could not be sent");
                    self.core.handle(Input::NotSent { token: packet.token, address: packet.to }, now);
                }
                sent += packets.len();
                packets.clear();
                self.spare = packets;
            }
            sent += self.command_connections();
        }
        sent
    }

    /// Hands over the outcomes for which there is space. Error: the receiver was dropped.
    fn deliver_outcomes(&mut self) -> Result<(), TrySendError<()>> {
        while self.core.has_outcomes() {
            match self.channels.outcomes.try_reserve() {
                Ok(permit) => permit.send(self.core.take_outcomes(OUTCOMES_PER_BATCH)),
                Err(TrySendError::Full(())) => return Ok(()),
                Err(closed) => return Err(closed),
            }
        }
        Ok(())
    }

    fn cancel_all(self) {
        self.counters.cancelled.add(self.core.in_flight() as u64);
    }
}
