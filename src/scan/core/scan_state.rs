//! The state of one scan in flight.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use smallvec::SmallVec;

use super::host_names::Addresses;
use super::packets::ScanToken;
use super::round_trips::RoundTrips;
use super::timers::Timers;
use crate::proto::{Exchange, Step, Transport};
use crate::scan::capture::Capture;
use crate::scan::outcome::{Attempt, MissReason};
use crate::scan::request::{ScanMode, ScanRequest};
use crate::scan::settings::{COOLDOWN, QUICK_PROBE_PAUSE, ScanSettings};
use crate::scan::target::{self, Effort, MINECRAFT_PORT, Target};

pub(super) struct Scan {
    pub(super) request: ScanRequest,
    pub(super) targets: Vec<Target>,
    /// Index of the target that is being queried.
    pub(super) target_index: usize,
    /// Addresses of the host, once they are known.
    pub(super) addresses: Addresses,
    /// Index of the address that is being queried.
    pub(super) address_index: usize,
    /// Ports of the current address on which nothing listens.
    pub(super) closed_ports: Vec<(Transport, u16)>,
    pub(super) state: State,
    /// The deadline of the valid timer entry. Entries with another deadline are stale.
    pub(super) deadline: Option<Duration>,
    pub(super) exchange: Option<Box<dyn Exchange>>,
    pub(super) socket: usize,
    /// How many times the current request was sent.
    pub(super) sends: u32,
    /// Packets to this target whose permits were taken, or are waited for, and that were not sent.
    pub(super) permits: u32,
    /// A packet was sent to this target; replies are accepted from now on.
    pub(super) is_sent: bool,
    /// Over TCP: the server has accepted a connection.
    pub(super) is_connected: bool,
    /// Since when the scan waits for a connection.
    pub(super) waits_since: Option<Duration>,
    /// This target has sent a usable reply.
    pub(super) is_answered: bool,
    pub(super) last_sent: Option<Duration>,
    /// The last packet to this target.
    pub(super) last_packet: Vec<u8>,
    /// When the first packet was sent, Unix ms.
    pub(super) first_sent_ms: Option<i64>,
    pub(super) rtt_ms: Option<u32>,
    /// Bytes of the datagrams that the exchange may hold.
    pub(super) held_bytes: usize,
    /// This target sent a datagram that was not usable.
    pub(super) received_invalid: bool,
    /// Bytes of the datagrams of this target that were decoded and found to be malformed.
    pub(super) malformed_bytes: usize,
    pub(super) drops_at_start: u64,
    pub(super) capture: Option<Box<Capture>>,
    pub(super) tried: Vec<Attempt>,
    /// Why the server counts as missed, if the last attempt does not say it.
    pub(super) shown_miss: Option<MissReason>,
    /// Addresses that the scan has locked, or waits for.
    pub(super) locked: SmallVec<[SocketAddr; 1]>,
    /// Quick probes of this scan whose replies may still come.
    pub(super) probes: Vec<SentProbe>,
}

/// A quick probe that was sent.
pub(super) struct SentProbe {
    pub(super) target_index: usize,
    pub(super) address: SocketAddr,
    pub(super) socket: usize,
    pub(super) exchange: Box<dyn Exchange>,
    pub(super) last_sent: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Resolving,
    AwaitingAddress,
    Cooldown,
    Throttled,
    /// Over TCP: all connections are in use.
    AwaitingConnection,
    AwaitingReply,
}

impl Scan {
    /// `is_fallback_first`: the server probably answers the fallback of its protocol only.
    pub(super) fn new(request: ScanRequest, is_fallback_first: bool) -> Scan {
        let mut targets = target::targets(&request.url, request.mode);
        if let [first, second, ..] = &mut targets[..]
            && is_fallback_first
            && second.protocol.is_fallback
        {
            std::mem::swap(first, second);
        }
        Scan {
            targets,
            target_index: 0,
            addresses: Addresses::default(),
            address_index: 0,
            closed_ports: Vec::new(),
            state: State::Resolving,
            deadline: None,
            exchange: None,
            socket: 0,
            sends: 0,
            permits: 0,
            is_sent: false,
            is_connected: false,
            waits_since: None,
            is_answered: false,
            last_sent: None,
            last_packet: Vec::new(),
            first_sent_ms: None,
            rtt_ms: None,
            held_bytes: 0,
            received_invalid: false,
            malformed_bytes: 0,
            drops_at_start: 0,
            capture: None,
            tried: Vec::new(),
            shown_miss: None,
            locked: SmallVec::new(),
            probes: Vec::new(),
            request,
        }
    }

    pub(super) fn target(&self) -> Target {
        self.targets[self.target_index]
    }

    /// Prepares the scan for its current target.
    pub(super) fn reset_exchange(&mut self) {
        self.exchange = None;
        // It may have waited for permits of the target before.
        self.state = State::AwaitingAddress;
        self.is_sent = false;
        self.is_connected = false;
        self.waits_since = None;
        self.is_answered = false;
        self.last_packet = Vec::new();
        self.sends = 0;
        self.permits = 0;
        self.received_invalid = false;
        self.malformed_bytes = 0;
        self.capture = None;
    }

    /// The addresses of the host are known. If an SRV record says the port, nothing else is tried there: the machine may be of others.
    pub(super) fn resolve(&mut self, addresses: Addresses) {
        if let Some(port) = addresses.service_port {
            self.targets.retain(|target| target.is_of_service());
            self.targets.iter_mut().for_each(|target| target.port = port);
        }
        self.addresses = addresses;
    }

    /// The index of the target to try after the current one has failed. Ports on which nothing listens are left
    /// out.
    pub(super) fn next_target(&mut self, reason: MissReason) -> Option<usize> {
        let transport = self.target().protocol.transport;
        // A filter that drops packets to a port leaves the connection unanswered.
        let is_unanswered = transport == Transport::Tcp && !self.is_connected && reason == MissReason::Timeout;
        if reason == MissReason::Refused || is_unanswered {
            self.closed_ports.push((transport, self.target().port));
        }
        self.next_open_target()
    }

    /// Records the result of the current target, if there is one.
    pub(super) fn record_attempt(&mut self, result: Result<(), MissReason>) {
        if let Some(target) = self.targets.get(self.target_index) {
            // The one of the URL.
            let port = if self.addresses.service_port.is_some() { MINECRAFT_PORT } else { target.port };
            self.tried.push(Attempt { scheme: target.protocol.scheme, port, result });
        }
    }

    /// Whether another quick probe may follow the current one before its reply.
    fn is_followed_by_probe(&self) -> bool {
        let is_quick =
            |target: Target| target.effort == Effort::QuickProbe && target.protocol.transport == Transport::Udp;
        let next = self.next_open_target().map(|index| self.targets[index]);
        is_quick(self.target()) && next.is_some_and(is_quick)
    }

    /// When a quick probe ends that turned out to be the last one, because other ports are closed; or that no other follows
    /// soon, because another scan owns the next address.
    pub(super) fn last_probe_deadline(&self, now: Duration, is_next_taken: bool) -> Option<Duration> {
        let is_last_probe = self.target().effort == Effort::QuickProbe
            && !self.is_answered
            && (is_next_taken || !self.is_followed_by_probe());
        let until = self.last_sent.filter(|_| is_last_probe)? + COOLDOWN;
        (until > now).then_some(until)
    }

    /// The address of the target to try if the current one fails.
    pub(super) fn following_address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.ip()?, self.targets[self.next_open_target()?].port))
    }

    /// The next target whose port is not known to be closed.
    fn next_open_target(&self) -> Option<usize> {
        let is_closed = |target: &Target| self.closed_ports.contains(&(target.protocol.transport, target.port));
        (self.target_index + 1..self.targets.len()).find(|&index| !is_closed(&self.targets[index]))
    }

    /// If the current target is a quick probe, keeps its exchange, so that a late reply is accepted while the next
    /// probes are sent.
    pub(super) fn keep_probe(&mut self) {
        // It had its full timeout. Kept again and again, it would let a server hold the scan.
        if self.is_answered {
            return;
        }
        let (Some(address), Some(last_sent)) = (self.address(), self.last_sent) else { return };
        if self.is_followed_by_probe()
            && let Some(exchange) = self.exchange.take()
        {
            let (target_index, socket) = (self.target_index, self.socket);
            self.probes.push(SentProbe { target_index, address, socket, exchange, last_sent });
        }
    }

    /// Passes a datagram to the probes that were sent to its address. If one takes it, the scan continues with that
    /// probe.
    pub(super) fn take_late_reply(&mut self, socket: usize, from: SocketAddr, t_ms: i64, bytes: &[u8]) -> Option<Step> {
        let asked =
            self.probes.iter_mut().enumerate().filter(|(_, probe)| (probe.address, probe.socket) == (from, socket));
        let (index, request, step) = asked.into_iter().find_map(|(index, probe)| {
            let request = probe.exchange.request();
            let step = probe.exchange.handle_datagram(t_ms, bytes);
            (!matches!(step, Step::Ignore(_))).then_some((index, request, step))
        })?;
        let probe = self.probes.swap_remove(index);
        self.reset_exchange();
        self.target_index = probe.target_index;
        self.last_packet = request;
        (self.exchange, self.socket, self.last_sent) = (Some(probe.exchange), probe.socket, Some(probe.last_sent));
        (self.sends, self.is_sent, self.deadline, self.state) = (1, true, None, State::AwaitingReply);
        Some(step)
    }

    pub(super) fn is_over_tcp(&self) -> bool {
        self.target().protocol.transport == Transport::Tcp
    }

    /// The address that is being queried.
    pub(super) fn ip(&self) -> Option<IpAddr> {
        self.addresses.ips.get(self.address_index).map(IpAddr::to_canonical)
    }

    /// Continues with the first target on the next address.
    pub(super) fn next_address(&mut self) {
        self.probes.clear();
        self.address_index += 1;
        self.target_index = 0;
        self.closed_ports.clear();
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.ip()?, self.targets.get(self.target_index)?.port))
    }

    pub(super) fn start_cooldown(&mut self, timers: &mut Timers<ScanToken>, token: ScanToken, until: Duration) {
        self.state = State::Cooldown;
        self.deadline = Some(until);
        timers.set(until, token);
    }

    /// How long the reply to a packet to the current target may take.
    pub(super) fn timeout(&self, settings: &ScanSettings, round_trips: &RoundTrips) -> Duration {
        let timeout = Duration::from_millis(u64::from(settings.timeout_ms * self.request.mode.factor()));
        match (self.target().effort, self.request.mode) {
            // Requests over TCP are not repeated by us, so one takes as long as all attempts together.
            (Effort::Full, mode) if self.is_over_tcp() => timeout * (settings.retries * mode.factor() + 1),
            (Effort::Full, ScanMode::Normal) => round_trips.timeout(self.request.server, timeout),
            (Effort::Full, ScanMode::Exception) => timeout,
            (Effort::QuickProbe, _) if self.is_answered => timeout,
            (Effort::QuickProbe, _) if self.is_followed_by_probe() => QUICK_PROBE_PAUSE,
            (Effort::Probe | Effort::QuickProbe, _) => COOLDOWN,
        }
    }

    /// How often a packet to the current target is repeated.
    pub(super) fn retries(&self, settings: &ScanSettings) -> u32 {
        match self.target().effort {
            Effort::Full if self.is_over_tcp() => 0,
            Effort::Full => settings.retries * self.request.mode.factor(),
            Effort::Probe | Effort::QuickProbe => 0,
        }
    }
}
