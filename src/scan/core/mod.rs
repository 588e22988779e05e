//! The scan engine without IO: what is to be sent and when, and what a reply means.
//!
//! [`ScanCore::handle`] takes an [`Input`] and the time. What follows from it is taken out: packets
//! ([`ScanCore::take_packets`]), names to look up, outcomes, and the time at which something is due.
//! It has no socket and no clock, so a test runs it in virtual time, with any loss and any order
//! of the datagrams. Module `driver` has the sockets and the clock.
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
//! A scan over TCP has one connection at a time, for which it may wait (`AwaitingConnection`). Its requests are not
//! repeated: TCP does that.
//!
//! Only one scan at a time uses an address and port, so a reply cannot be
//! attributed to another scan. A reply changes the state of its own scan only.

mod address_locks;
#[cfg(test)]
mod connection_tests;
mod connections;
mod host_names;
mod packets;
mod rate_limit;
mod round_trips;
mod scan_state;
mod silent_hosts;
#[cfg(test)]
mod simulation_tests;
mod steps;
mod timers;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use self::address_locks::AddressLocks;
pub(super) use self::connections::ConnectionCommand;
use self::connections::Connections;
use self::host_names::HostNames;
pub(super) use self::host_names::{Addresses, LookupResult, MINECRAFT_SERVICE};
pub(super) use self::packets::{Packet, Packets, ScanToken, SocketCounts};
use self::rate_limit::RateLimits;
use self::round_trips::RoundTrips;
use self::scan_state::{Scan, State};
use self::silent_hosts::SilentHosts;
use self::timers::Timers;
use super::address;
use super::counters::ScanCounters;
use super::outcome::{MissReason, ScanOutcome};
use super::request::ScanRequest;
use super::settings::ScanSettings;
use crate::model::ServerKey;
use crate::proto::NonceKey;

/// Interval at which expired cache entries and idle rate limits are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(30);

/// One scan in this many of a server that answers the fallback of its protocol tries the protocol first.
const PROTOCOL_RETRY_SCANS: u8 = 16;

/// A server that answered its protocol, and then so many times in succession the fallback, does not answer the protocol
/// any more. Before, the lists of the fallback are partial: they have no map.
const FALLBACK_ANSWERS_MIN: u8 = 3;

/// A time on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Since the start. Never decreases.
    pub elapsed: Duration,
    pub unix_ms: i64,
}

/// What has happened outside.
#[derive(Debug)]
pub(super) enum Input<'a> {
    /// Scan a server. Only if [`ScanCore::has_capacity`].
    Request(ScanRequest),
    /// A datagram was received on a socket, at a time that may have passed.
    Datagram { socket: usize, from: SocketAddr, at: Moment, bytes: &'a [u8] },
    /// The kernel has dropped datagrams of a socket.
    Dropped { socket: usize, datagrams: u64 },
    /// A host reports that a port is closed.
    PortClosed(SocketAddr),
    /// A name was looked up.
    Resolved(LookupResult),
    /// The connection of a scan is open.
    Connected(ScanToken),
    /// Bytes were received from a connection.
    Received { token: ScanToken, bytes: &'a [u8] },
    /// A connection has ended, or none could be opened. `is_refused`: nothing listens on the port.
    ConnectionEnded { token: ScanToken, is_refused: bool },
    /// A packet was sent.
    Sent(SocketAddr),
    /// The system did not send a packet.
    NotSent { token: ScanToken, address: SocketAddr },
    /// New settings.
    Settings(Box<ScanSettings>),
    /// Time has passed.
    Time,
}

/// Every scan in flight. See the file header.
pub(super) struct ScanCore {
    settings: ScanSettings,
    counters: Arc<ScanCounters>,
    key: NonceKey,
    /// The time of the last input.
    now: Moment,
    sockets: SocketCounts,
    /// For each socket: packets to be sent.
    packets: Vec<Packets>,
    /// For each socket: datagrams that the kernel has dropped.
    drops: Vec<u64>,
    rate_limits: RateLimits,
    host_names: HostNames,
    timers: Timers<ScanToken>,
    scans: FxHashMap<ScanToken, Scan>,
    address_locks: AddressLocks,
    connections: Connections,
    round_trips: RoundTrips,
    /// For servers that sent a list and its announced length since the start: whether no list was longer
    /// than announced.
    announce_enough: FxHashMap<ServerKey, bool>,
    /// For servers whose protocol has a fallback: how often in succession they answered that.
    fallback_answers: FxHashMap<ServerKey, u8>,
    silent_hosts: SilentHosts,
    /// Bytes of incomplete replies of all scans.
    held_bytes: usize,
    next_token: ScanToken,
    /// Outcomes that were not taken yet. Scans and these together never exceed `scans_in_flight_max`,
    /// because no request is accepted beyond that.
    outcomes: VecDeque<ScanOutcome>,
    cleanup_at: Duration,
}

impl ScanCore {
    /// `settings` must have been checked; `key` is random.
    pub fn new(settings: ScanSettings, sockets: SocketCounts, key: NonceKey, counters: Arc<ScanCounters>) -> ScanCore {
        ScanCore {
            rate_limits: RateLimits::new(&settings),
            settings,
            counters,
            key,
            now: Moment { elapsed: Duration::ZERO, unix_ms: 0 },
            packets: (0..sockets.all()).map(|_| Packets::default()).collect(),
            drops: vec![0; sockets.all()],
            sockets,
            host_names: HostNames::default(),
            timers: Timers::default(),
            scans: FxHashMap::default(),
            address_locks: AddressLocks::default(),
            connections: Connections::default(),
            round_trips: RoundTrips::default(),
            announce_enough: FxHashMap::default(),
            fallback_answers: FxHashMap::default(),
            silent_hosts: SilentHosts::default(),
            held_bytes: 0,
            next_token: 0,
            outcomes: VecDeque::new(),
            cleanup_at: CLEANUP_INTERVAL,
        }
    }

    pub fn handle(&mut self, input: Input<'_>, now: Moment) {
        self.now = now;
        match input {
            Input::Request(request) => self.on_request(request),
            Input::Datagram { socket, from, at, bytes } => self.on_datagram(socket, from, at, bytes),
            Input::Dropped { socket, datagrams } => {
                self.counters.kernel_drops.add(datagrams);
                self.drops[socket] += datagrams;
            }
            Input::PortClosed(address) => self.on_port_closed(address),
            Input::Resolved(lookup) => {
                let ttl = Duration::from_secs(self.settings.dns_cache_ttl_s.into());
                let (tokens, answer) = self.host_names.complete(now.elapsed, lookup, ttl);
                for token in tokens {
                    self.on_resolved(token, answer.clone());
                }
                for (token, answer) in self.host_names.take_hopeless(now.elapsed) {
                    self.on_resolved(token, answer);
                }
            }
            Input::Connected(token) => self.on_connected(token),
            Input::Received { token, bytes } => self.on_received(token, bytes),
            Input::ConnectionEnded { token, is_refused } => self.on_connection_ended(token, is_refused),
            // The pause until the next packet counts from here, not from when it was queued.
            Input::Sent(address) => self.address_locks.record_packet(address, now.elapsed),
            Input::NotSent { token, address } => {
                self.counters.send_errors.increment();
                if self.scans.get(&token).is_some_and(|scan| scan.address() == Some(address)) {
                    self.end_early(token, MissReason::SendFailed);
                }
            }
            Input::Settings(settings) => self.on_settings(*settings),
            Input::Time => self.on_time(),
        }
    }

    /// Whether a request is accepted now.
    pub fn has_capacity(&self) -> bool {
        self.in_flight() < self.settings.scans_in_flight_max as usize
    }

    /// Scans that have no outcome, or whose outcome was not taken yet.
    pub fn in_flight(&self) -> usize {
        self.scans.len() + self.outcomes.len()
    }

    /// The number of packets that are to be sent.
    pub fn packets_queued(&self) -> usize {
        self.packets.iter().map(Packets::len).sum()
    }

    /// Takes the packets of a socket, and leaves an empty list, whose memory is used again.
    pub fn take_packets(&mut self, socket: usize, empty: Packets) -> Packets {
        std::mem::replace(&mut self.packets[socket], empty)
    }

    pub fn has_connection_commands(&self) -> bool {
        self.connections.has_commands()
    }

    /// Takes what is to be done with connections, in order.
    pub fn take_connection_commands(&mut self) -> Vec<ConnectionCommand> {
        self.connections.take_commands()
    }

    /// The next name that is to be looked up; its result is an input.
    pub fn next_lookup(&mut self) -> Option<String> {
        self.host_names.next_lookup()
    }

    pub fn has_outcomes(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// Takes up to `most` outcomes, oldest first.
    pub fn take_outcomes(&mut self, most: usize) -> Vec<ScanOutcome> {
        self.outcomes.drain(..self.outcomes.len().min(most)).collect()
    }

    /// When [`Input::Time`] is due: time since the start.
    pub fn next_due(&self) -> Duration {
        let due = [self.timers.next(), self.rate_limits.next_due()].into_iter().flatten().min();
        due.map_or(self.cleanup_at, |due| due.min(self.cleanup_at))
    }

    fn on_time(&mut self) {
        let now = self.now.elapsed;
        self.address_locks.remove_cooled(now);
        for token in self.rate_limits.poll(now) {
            if self.scans.get(&token).is_some_and(|scan| scan.state == State::Throttled) {
                self.send(token);
            }
        }
        self.give_connections();
        while let Some((at, token)) = self.timers.pop_due(now) {
            let Some(scan) = self.scans.get_mut(&token).filter(|scan| scan.deadline == Some(at)) else {
                continue;
            };
            scan.deadline = None;
            match scan.state {
                State::Cooldown => self.begin_exchange(token),
                State::AwaitingReply => self.on_timeout(token),
                State::Resolving | State::AwaitingAddress | State::Throttled | State::AwaitingConnection => {
                    unreachable!("these set no deadline")
                }
            }
        }
        if now >= self.cleanup_at {
            self.cleanup_at = now + CLEANUP_INTERVAL;
            self.rate_limits.evict_idle();
            self.host_names.remove_expired(now);
            self.silent_hosts.remove_expired(now);
        }
    }

    fn on_request(&mut self, request: ScanRequest) {
        self.counters.requests.increment();
        let token = self.next_token;
        self.next_token += 1;
        // Whether the server has begun to answer its own protocol is tried now and then.
        let answers = self.fallback_answers.get(&request.server).copied();
        let is_retry = answers.is_some_and(|answers| answers.is_multiple_of(PROTOCOL_RETRY_SCANS));
        let is_fallback_first = self.answers_fallback(request.server) && !is_retry;
        let scan = self.scans.entry(token).or_insert(Scan::new(request, is_fallback_first));
        if scan.targets.is_empty() {
            return self.finish_scan(token, Err(MissReason::UnsupportedScheme));
        }
        let host = host_names::looked_up(&scan.request.url);
        let cached = self.host_names.resolve(self.now.elapsed, &host, token);
        if let Some(answer) = cached {
            self.on_resolved(token, answer);
        }
    }

    /// Whether a server answers only the fallback of its protocol: its own was not lost by chance.
    fn answers_fallback(&self, server: ServerKey) -> bool {
        self.fallback_answers.get(&server).is_some_and(|&answers| answers >= FALLBACK_ANSWERS_MIN)
    }

    fn on_resolved(&mut self, token: ScanToken, answer: Result<Addresses, MissReason>) {
        let Some(scan) = self.scans.get_mut(&token) else { return };
        match answer {
            Ok(addresses) => {
                self.counters.resolved.increment();
                scan.resolve(addresses);
                self.begin_address(token);
            }
            Err(reason) => {
                self.counters.resolve_failures.increment();
                self.finish_scan(token, Err(reason));
            }
        }
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
        if scan.address_index + 1 == scan.addresses.ips.len() {
            // This machine may have no IPv6: what the other addresses have shown counts.
            let shown = scan.tried.iter().filter_map(|attempt| attempt.result.err()).find(|it| !it.is_local_fault());
            scan.shown_miss = shown.filter(|_| reason.is_local_fault());
            return self.finish_scan(token, Err(reason));
        }
        scan.record_attempt(Err(reason));
        scan.deadline = None;
        self.release_addresses(token);
        self.scans.get_mut(&token).expect("a scan in flight").next_address();
        self.begin_address(token);
    }

    fn on_settings(&mut self, settings: ScanSettings) {
        self.rate_limits.reload(&settings);
        self.settings = settings;
        self.give_connections();
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
