//! The state of one scan in flight.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::proto::Exchange;
use crate::scan::outcome::{Attempt, MissReason};
use crate::scan::request::ScanRequest;
use crate::scan::settings::COOLDOWN;
use crate::scan::target::{self, Target};
use crate::scan::timers::Timers;

/// Identifies a scan in flight. Never reused.
pub(super) type ScanToken = u64;

pub(super) struct Scan {
    pub(super) request: ScanRequest,
    pub(super) targets: Vec<Target>,
    /// Index of the target that is being queried.
    pub(super) target_index: usize,
    pub(super) ip: Option<IpAddr>,
    pub(super) state: State,
    /// The deadline of the valid timer entry. Entries with another deadline are stale.
    pub(super) deadline: Option<Duration>,
    pub(super) exchange: Option<Box<dyn Exchange>>,
    pub(super) socket: usize,
    /// How often the current request was sent.
    pub(super) sends: u32,
    /// A packet was sent to this target; replies are accepted from now on.
    pub(super) is_sent: bool,
    pub(super) last_sent: Option<Duration>,
    /// When the first packet was sent, Unix ms.
    pub(super) first_sent_ms: Option<i64>,
    pub(super) rtt_ms: Option<u32>,
    /// This target sent a datagram that was not usable.
    pub(super) received_invalid: bool,
    pub(super) drops_at_start: u64,
    pub(super) tried: Vec<Attempt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Resolving,
    AwaitingAddress,
    Cooldown,
    Throttled,
    AwaitingReply,
}

impl Scan {
    pub(super) fn new(request: ScanRequest) -> Scan {
        Scan {
            targets: target::targets(&request.url, request.mode),
            target_index: 0,
            ip: None,
            state: State::Resolving,
            deadline: None,
            exchange: None,
            socket: 0,
            sends: 0,
            is_sent: false,
            last_sent: None,
            first_sent_ms: None,
            rtt_ms: None,
            received_invalid: false,
            drops_at_start: 0,
            tried: Vec::new(),
            request,
        }
    }

    pub(super) fn target(&self) -> Target {
        self.targets[self.target_index]
    }

    /// Prepares the scan for its current target. The time of the last packet stays: the
    /// previous target may have been another protocol on the same port.
    pub(super) fn reset_exchange(&mut self) {
        self.exchange = None;
        self.is_sent = false;
        self.sends = 0;
        self.received_invalid = false;
    }

    /// The end of the cooldown after the last packet.
    pub(super) fn cooldown_end(&self) -> Duration {
        self.last_sent.map_or(Duration::ZERO, |sent| sent + COOLDOWN)
    }

    /// Records the result of the current target, if there is one.
    pub(super) fn record_attempt(&mut self, result: Result<(), MissReason>) {
        if let Some(target) = self.targets.get(self.target_index) {
            self.tried.push(Attempt { scheme: target.protocol.scheme, port: target.port, result });
        }
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.ip?, self.targets.get(self.target_index)?.port))
    }

    pub(super) fn start_cooldown(&mut self, timers: &mut Timers<ScanToken>, token: ScanToken, until: Duration) {
        self.state = State::Cooldown;
        self.deadline = Some(until);
        timers.set(until, token);
    }

    /// Factor of the time-out and of the number of retries.
    pub(super) fn factor(&self) -> u32 {
        self.request.mode.factor()
    }
}
