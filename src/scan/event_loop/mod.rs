//! The one thread that holds every scan in flight.
//!
//! It works in turns: receive what has arrived, decode it, start and continue scans, send all
//! packets, hand over all outcomes. A turn handles many datagrams with few system calls, and
//! a pause between turns lets more arrive.
//!
//! A scan passes through these states from left to right. In exception mode it
//! returns to the second state for each further protocol:
//!
//! ```text
//! Resolving -> AwaitingAddress -> Cooldown -> Throttled -> AwaitingReply -> outcome
//!              (another scan      (1.1 s since   ^               |
//!              uses the address)  last packet)   '----resend-----'
//! ```
//!
//! Only one scan at a time uses an address and port, so a reply cannot be
//! attributed to another scan. A reply changes the state of its own scan only.

mod address_locks;
mod scan_state;
mod scan_steps;

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use tokio::sync::{mpsc, oneshot};

use self::address_locks::AddressLocks;
use self::scan_state::{Scan, ScanToken, State};
use super::address;
use super::counters::ScanCounters;
use super::outcome::{MissReason, ScanOutcome};
use super::rate_limit::RateLimits;
use super::request::{Now, ScanRequest};
use super::resolver::{Addresses, Resolver};
use super::round_trips::RoundTrips;
use super::settings::ScanSettings;
use super::silent_hosts::SilentHosts;
use super::socket::{Ready, ReceiveBatch, Sockets};
use super::timers::Timers;
use super::waker::Waker;
use crate::model::ServerKey;
use crate::proto::NonceKey;

/// Interval at which expired cache entries and idle rate limits are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(30);

/// Pause after a turn in which anything was sent or received: at 1,667 scans/s the next turn
/// handles 13 of each. The kernel notes when datagrams arrive, so round-trip times stay exact.
const TURN_PAUSE: Duration = Duration::from_millis(8);

/// Batches received from one socket before the others get their turn.
const RECEIVE_BATCHES_PER_TURN: usize = 8;

/// Most outcomes handed over in one batch.
pub(super) const OUTCOMES_PER_BATCH: usize = 512;

/// How soon the thread tries again to hand over outcomes.
const OUTCOME_RETRY: Duration = Duration::from_millis(5);

/// A turn starts scans until it has sent this fraction (1/4) of the datagrams that fit into the
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
pub(super) struct EventLoop {
    settings: ScanSettings,
    channels: Channels,
    now: Now,
    counters: Arc<ScanCounters>,
    key: NonceKey,
    /// Durations in this module count from here.
    start: Instant,
    sockets: Sockets,
    /// Taken out while its datagrams are handled.
    batch: Option<ReceiveBatch>,
    rate_limits: RateLimits,
    resolver: Resolver,
    timers: Timers<ScanToken>,
    scans: FxHashMap<ScanToken, Scan>,
    address_locks: AddressLocks,
    round_trips: RoundTrips,
    /// For servers that sent a list and its announced length since the start: whether no list was longer
    /// than announced.
    announce_enough: FxHashMap<ServerKey, bool>,
    silent_hosts: SilentHosts,
    /// Bytes of incomplete replies of all scans.
    held_bytes: usize,
    next_token: ScanToken,
    /// Outcomes for which the channel has no space. Scans and ended outcomes together
    /// never exceed `scans_in_flight_max`, because no request is accepted beyond that.
    finished: VecDeque<ScanOutcome>,
    /// Packets queued or sent, and datagrams received, in this turn.
    packets_queued: usize,
    datagrams: usize,
    cleanup_at: Duration,
    /// No more requests are accepted.
    draining: bool,
    /// When the remaining scans are cancelled.
    stop_at: Option<Duration>,
}

impl EventLoop {
    /// Must be called inside a tokio runtime: host names are looked up there.
    pub(super) fn new(
        settings: ScanSettings,
        channels: Channels,
        now: Now,
        counters: Arc<ScanCounters>,
    ) -> io::Result<EventLoop> {
        let mut nonce_key = [0; 16];
        getrandom::fill(&mut nonce_key)
            .map_err(|error| io::Error::other(format!("the system has no random numbers: {error}")))?;
        let sockets = Sockets::open(settings.sockets_per_ip_version as usize, settings.receive_buffer_bytes as usize)?;
        Ok(EventLoop {
            rate_limits: RateLimits::new(&settings),
            settings,
            resolver: Resolver::new(Handle::current(), channels.waker.clone()),
            channels,
            now,
            counters,
            key: NonceKey::new(nonce_key),
            start: Instant::now(),
            sockets,
            batch: Some(ReceiveBatch::default()),
            timers: Timers::default(),
            scans: FxHashMap::default(),
            address_locks: AddressLocks::default(),
            round_trips: RoundTrips::default(),
            announce_enough: FxHashMap::default(),
            silent_hosts: SilentHosts::default(),
            held_bytes: 0,
            next_token: 0,
            finished: VecDeque::new(),
            packets_queued: 0,
            datagrams: 0,
            cleanup_at: CLEANUP_INTERVAL,
            draining: false,
            stop_at: None,
        })
    }

    /// Runs until the requests end, a command stops it, or nobody receives outcomes.
    pub(super) fn run(mut self) {
        let mut ready = Vec::new();
        loop {
            (self.packets_queued, self.datagrams) = (0, 0);
            self.receive(&ready);
            self.on_commands();
            self.on_lookups();
            self.on_timers();
            let is_busy = self.accept_requests();
            self.flush();
            if self.deliver_outcomes().is_err() || self.is_stopped() {
                return self.cancel_all();
            }
            if self.draining && self.scans.is_empty() && self.finished.is_empty() {
                return;
            }
            self.clean_up();
            if !is_busy && self.packets_queued + self.datagrams > 0 {
                std::thread::sleep(TURN_PAUSE);
            }
            ready = match self.wait() {
                Ok(ready) => ready,
                Err(error) => {
                    tracing::error!(%error, "waiting for the scan sockets failed");
                    return self.cancel_all();
                }
            };
        }
    }

    /// Sleeps until something is to be done.
    fn wait(&mut self) -> io::Result<Vec<Ready>> {
        let due = [self.timers.next(), self.rate_limits.next_due(), self.stop_at].into_iter().flatten().min();
        let mut wake_at = due.unwrap_or(self.cleanup_at).min(self.cleanup_at);
        let now = self.start.elapsed();
        if !self.finished.is_empty() {
            wake_at = wake_at.min(now + OUTCOME_RETRY);
        }
        let has_capacity = self.has_capacity();
        let Channels { requests, commands, waker, .. } = &self.channels;
        self.sockets.wait(waker, wake_at.saturating_sub(now), || {
            let has_requests = has_capacity && (!requests.is_empty() || requests.is_closed());
            !has_requests && commands.is_empty()
        })
    }

    fn has_capacity(&self) -> bool {
        !self.draining && self.scans.len() + self.finished.len() < self.settings.scans_in_flight_max as usize
    }

    fn receive(&mut self, ready: &[Ready]) {
        for ready in ready {
            if ready.has_errors {
                while let Some(error) = self.sockets.next_icmp_error(ready.socket) {
                    self.on_icmp_error(error);
                }
            }
            // Also clears an error for which the error queue had no space: it would stay ready.
            self.receive_datagrams(ready.socket);
        }
    }

    fn receive_datagrams(&mut self, socket: usize) {
        let mut batch = self.batch.take().expect("put back below");
        for _ in 0..RECEIVE_BATCHES_PER_TURN {
            self.counters.kernel_drops.add(self.sockets.receive(socket, &mut batch));
            let now_ms = (self.now)();
            for (datagram, bytes) in batch.datagrams() {
                self.counters.packets_received.increment();
                self.counters.bytes_received.add(bytes.len() as u64);
                let Some(from) = datagram.from else { continue };
                let t_ms = now_ms - datagram.age.as_millis() as i64;
                self.on_datagram(socket, from, t_ms, batch.at() - datagram.age, bytes);
            }
            self.datagrams += batch.len();
            if !batch.is_full() {
                break;
            }
        }
        self.batch = Some(batch);
    }

    fn on_commands(&mut self) {
        while let Ok(command) = self.channels.commands.try_recv() {
            match command {
                ScannerCommand::Reload(settings, done) => {
                    self.on_reload(*settings);
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

    fn on_lookups(&mut self) {
        while let Some(lookup) = self.resolver.next_result() {
            let ttl = Duration::from_secs(self.settings.dns_cache_ttl_s.into());
            let addresses = lookup.addresses.clone();
            for token in self.resolver.complete(self.start.elapsed(), lookup, ttl) {
                self.on_resolved(token, addresses.clone());
            }
        }
    }

    fn on_timers(&mut self) {
        let now = self.start.elapsed();
        self.address_locks.remove_cooled(now);
        for token in self.rate_limits.poll(now) {
            if self.scans.get(&token).is_some_and(|scan| scan.state == State::Throttled) {
                self.send(token);
            }
        }
        while let Some((at, token)) = self.timers.pop_due(now) {
            let Some(scan) = self.scans.get_mut(&token).filter(|scan| scan.deadline == Some(at)) else {
                continue;
            };
            scan.deadline = None;
            match scan.state {
                State::Cooldown => self.begin_exchange(token),
                State::AwaitingReply => self.on_timeout(token),
                State::Resolving | State::AwaitingAddress | State::Throttled => unreachable!("these set no deadline"),
            }
        }
    }

    /// Starts scans. Returns whether there may be more requests.
    fn accept_requests(&mut self) -> bool {
        let sends_max = self.sockets.buffered_max() / SENDS_PER_TURN_DIVISOR;
        let sends_max = sends_max.clamp(*SENDS_PER_TURN.start(), *SENDS_PER_TURN.end());
        while self.has_capacity() {
            if self.packets_queued >= sends_max {
                return true;
            }
            match self.channels.requests.try_recv() {
                Ok(request) => self.on_request(request),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => self.draining = true,
            }
        }
        false
    }

    /// Sends all packets that are queued.
    fn flush(&mut self) {
        loop {
            // The pause until the next packet counts from here, not from when it was queued.
            let (locks, start) = (&mut self.address_locks, self.start);
            let mut sent_at = None;
            let failed = self.sockets.flush(|address| {
                locks.record_packet(address, *sent_at.get_or_insert_with(|| start.elapsed()));
            });
            if failed.is_empty() {
                return;
            }
            for (token, address, error) in failed {
                tracing::debug!(%address, %error, "a packet could not be sent");
                self.counters.send_errors.increment();
                if self.scans.get(&token).is_some_and(|scan| scan.address() == Some(address)) {
                    self.fail_target(token, MissReason::SendFailed);
                }
            }
        }
    }

    /// Hands over the outcomes for which there is space. Error: the receiver was dropped.
    fn deliver_outcomes(&mut self) -> Result<(), TrySendError<()>> {
        while !self.finished.is_empty() {
            match self.channels.outcomes.try_reserve() {
                Ok(permit) => {
                    let count = self.finished.len().min(OUTCOMES_PER_BATCH);
                    permit.send(self.finished.drain(..count).collect());
                }
                Err(TrySendError::Full(())) => return Ok(()),
                Err(closed) => return Err(closed),
            }
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stop_at.is_some_and(|stop_at| self.start.elapsed() >= stop_at)
    }

    fn clean_up(&mut self) {
        let now = self.start.elapsed();
        if now >= self.cleanup_at {
            self.cleanup_at = now + CLEANUP_INTERVAL;
            self.rate_limits.evict_idle();
            self.resolver.remove_expired(now);
            self.silent_hosts.remove_expired(now);
        }
    }

    fn cancel_all(self) {
        self.counters.cancelled.add((self.scans.len() + self.finished.len()) as u64);
    }

    fn on_request(&mut self, request: ScanRequest) {
        self.counters.requests.increment();
        let token = self.next_token;
        self.next_token += 1;
        let scan = self.scans.entry(token).or_insert(Scan::new(request));
        if scan.targets.is_empty() {
            return self.finish_scan(token, Err(MissReason::UnsupportedScheme));
        }
        let cached = self.resolver.resolve(self.start.elapsed(), scan.request.url.host(), token);
        if let Some(addresses) = cached {
            self.on_resolved(token, addresses);
        }
    }

    fn on_resolved(&mut self, token: ScanToken, addresses: Addresses) {
        let Some(scan) = self.scans.get_mut(&token) else { return };
        if addresses.is_empty() {
            self.counters.resolve_failures.increment();
            return self.finish_scan(token, Err(MissReason::Unresolved));
        }
        self.counters.resolved.increment();
        scan.addresses = addresses;
        self.begin_address(token);
    }

    /// Tries the targets on the scan's current address.
    fn begin_address(&mut self, token: ScanToken) {
        let scan = &self.scans[&token];
        let ip = scan.ip().expect("an address is left");
        match exclusion_reason(&self.settings, ip) {
            Some(reason) => self.fail_address(token, reason),
            None => self.begin_target(token),
        }
    }

    /// No target answers on the current address: continue with the next, or end the scan.
    fn fail_address(&mut self, token: ScanToken, reason: MissReason) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        if scan.address_index + 1 == scan.addresses.len() {
            return self.finish_scan(token, Err(reason));
        }
        scan.record_attempt(Err(reason));
        scan.deadline = None;
        self.release_address(token);
        self.scans.get_mut(&token).expect("a scan in flight").next_address();
        self.begin_address(token);
    }

    fn on_reload(&mut self, settings: ScanSettings) {
        self.rate_limits.reload(&settings);
        self.settings = settings;
        // End the scans of addresses that are now opted out.
        let excluded: Vec<_> = self
            .scans
            .iter()
            .filter_map(|(&token, scan)| Some((token, exclusion_reason(&self.settings, scan.ip()?)?)))
            .collect();
        for (token, reason) in excluded {
            self.finish_scan(token, Err(reason));
        }
    }
}

fn exclusion_reason(settings: &ScanSettings, ip: IpAddr) -> Option<MissReason> {
    if settings.opt_out.iter().any(|network| network.contains(&ip)) {
        return Some(MissReason::OptedOut);
    }
    let allowed = address::is_unicast(ip) && (settings.allow_private || address::is_public(ip));
    (!allowed).then_some(MissReason::NotPublic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::INCOMPLETE_REPLY_BYTES_MAX;
    use crate::model::{ServerKey, ServerUrl};
    use crate::scan::ScanMode;
    use crate::scan::tests::{Server, clock, quick, reason, status};

    #[tokio::test]
    async fn addresses_of_a_host_name_are_tried_in_order() {
        let server = Server::start_at("127.0.0.3:0", |_, packet| vec![status(packet, "")]);
        let port = server.address.port();
        let (request_tx, requests) = mpsc::channel(4);
        let (_commands, commands) = mpsc::channel(1);
        let (outcome_tx, mut outcomes) = mpsc::channel(4);
        let channels = Channels { requests, commands, outcomes: outcome_tx, waker: Waker::new().unwrap() };
        let mut event_loop = EventLoop::new(quick(), channels, clock(), Arc::default()).unwrap();
        let [first, second, third] = [1, 2, 3].map(|n| IpAddr::from([127, 0, 0, n]));
        event_loop.resolver.insert("two.test", &[third, first]);
        event_loop.resolver.insert("none.test", &[first, second]);
        event_loop.resolver.insert("excluded.test", &[IpAddr::from([0, 0, 0, 0]), third]);
        for (id, host) in (0..).zip(["two.test", "none.test", "excluded.test"]) {
            let url = ServerUrl::parse(&format!("quake3://{host}:{port}")).unwrap();
            request_tx.send(ScanRequest { id, server: ServerKey(1), url, mode: ScanMode::Normal }).await.unwrap();
        }
        drop(request_tx);
        let running = tokio::task::spawn_blocking(|| event_loop.run());
        let mut all = Vec::new();
        while let Some(outcomes) = outcomes.recv().await {
            all.extend(outcomes);
        }
        running.await.unwrap();
        all.sort_by_key(|outcome| outcome.id);
        let results = |n: usize| all[n].attempts.iter().map(|attempt| attempt.result).collect::<Vec<_>>();
        assert_eq!(results(0), [Err(MissReason::Refused), Ok(())], "{:?}", all[0]);
        assert_eq!((results(1), reason(&all[1])), (vec![Err(MissReason::Refused); 2], MissReason::Refused));
        assert_eq!(results(2), [Err(MissReason::NotPublic), Ok(())]);
    }

    #[tokio::test]
    async fn incomplete_reply_is_partial_when_all_together_take_too_much_memory() {
        // The first datagram of a reply to GameSpy's status: `final` is missing.
        let first = b"\\gamename\\ut\\hostname\\h\\mapname\\m\\numplayers\\9\\maxplayers\\16\\queryid\\1.1".to_vec();
        let server = Server::start_at("127.0.0.1:0", move |_, _| vec![first.clone()]);
        for (held_bytes, dropped) in [(0, 0), (INCOMPLETE_REPLY_BYTES_MAX, 1)] {
            let (request_tx, requests) = mpsc::channel(1);
            let (_commands, commands) = mpsc::channel(1);
            let (outcome_tx, mut outcomes) = mpsc::channel(1);
            let channels = Channels { requests, commands, outcomes: outcome_tx, waker: Waker::new().unwrap() };
            let counters: Arc<ScanCounters> = Arc::default();
            let mut event_loop = EventLoop::new(quick(), channels, clock(), counters.clone()).unwrap();
            event_loop.held_bytes = held_bytes;
            let url = ServerUrl::parse(&format!("gamespy1://{}", server.address)).unwrap();
            let request = ScanRequest { id: 1, server: ServerKey(1), url, mode: ScanMode::Normal };
            request_tx.send(request).await.unwrap();
            drop(request_tx);
            let running = tokio::task::spawn_blocking(|| event_loop.run());
            let outcome = outcomes.recv().await.unwrap().remove(0);
            assert_eq!(outcome.result.unwrap().completeness, crate::model::Completeness::Partial);
            assert_eq!(counters.values().incomplete_replies_dropped, dropped);
            running.await.unwrap();
        }
    }
}
