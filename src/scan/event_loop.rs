//! The one task that holds every scan in flight.
//!
//! A scan goes through these states, from left to right, and back to the second
//! for each further protocol of exception mode:
//!
//! ```text
//! Resolving -> Queued -> Resting -> Budget -> Asked -> outcome
//!              (another scan  (1.1 s since  ^          |
//!                  has the        the last      `--resend--'
//!              address)       packet)
//! ```
//!
//! An address and port belongs to one scan at a time: its answers cannot be
//! taken for another's. What a server sends changes nothing but its own scan.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::socket::{SocketEvent, Sockets};
use super::target::{
    Target, {self},
};
use super::timers::Timers;
use super::{Attempt, Miss, MissReason, Now, ScanMode, ScanOutcome, ScanRequest, ScanSettings, ScannerCommand};
use crate::model::{Completeness, Snapshot};
use crate::proto::{Exchange, NonceKey, Step};
use crate::scan::counters::ScanCounters;
use crate::scan::rate_limit::{Admission, LimitScope, RateLimits};
use crate::scan::resolver::Resolver;

/// Servers answer one query a second and address (DarkPlaces), 0.9 s (QuakeForge):
/// nothing is asked of a server again sooner than this after the last packet.
pub(super) const COOLDOWN: Duration = Duration::from_millis(1_100);

/// Exception mode has this many times the time-out and the retries.
pub(super) const EXCEPTION_FACTOR: u32 = 3;

/// How often what is no longer needed is forgotten.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(30);

/// Things heard in a row before timers and requests get their turn.
const EVENT_BATCH_MAX: usize = 256;

/// A scan under way, named by a number that never comes again.
type ScanToken = u64;

/// See the file's head.
pub(super) struct EventLoop {
    settings: ScanSettings,
    requests: mpsc::Receiver<ScanRequest>,
    orders: mpsc::Receiver<ScannerCommand>,
    now: Now,
    counts: Arc<ScanCounters>,
    key: NonceKey,
    /// What all durations in this room count from.
    start: Instant,
    sockets: Sockets,
    budgets: RateLimits,
    resolver: Resolver,
    timers: Timers<Duration, ScanToken>,
    scans: FxHashMap<ScanToken, Scan>,
    /// Who has an address and port, and who waits for it. Not keyed by chance
    /// alone: addresses come from outside.
    addresses: HashMap<SocketAddr, AddressLock>,
    next_ticket: ScanToken,
    /// Outcomes that the channel has no room for. Together with the scans never
    /// more than `in_flight_max`, since no request is taken beyond that.
    ended: VecDeque<ScanOutcome>,
    /// No more requests come.
    closing: bool,
    /// Then whatever is left is abandoned.
    stop_at: Option<Instant>,
}

struct AddressLock {
    by: ScanToken,
    waiting: VecDeque<ScanToken>,
}

struct Scan {
    request: ScanRequest,
    targets: Vec<Target>,
    /// Index of the target that is being asked.
    target_index: usize,
    ip: Option<IpAddr>,
    state: State,
    /// Whose turn the timers announce; others are stale.
    deadline: Option<Duration>,
    exchange: Option<Box<dyn Exchange>>,
    socket: usize,
    /// Times that the present question was sent.
    sends: u32,
    /// A packet for this target has left: from now on answers count.
    is_sent: bool,
    last_sent: Option<Duration>,
    /// When the first packet left, Unix ms.
    first_sent_ms: Option<i64>,
    rtt_ms: Option<u32>,
    /// Something came from this target that was of no use.
    received_invalid: bool,
    drops_at_start: u64,
    tried: Vec<Attempt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Resolving,
    AwaitingAddress,
    Cooldown,
    Throttled,
    AwaitingReply,
}

impl Scan {
    fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.ip?, self.targets.get(self.target_index)?.port))
    }

    fn start_cooldown(&mut self, timers: &mut Timers<Duration, ScanToken>, ticket: ScanToken, until: Duration) {
        self.state = State::Cooldown;
        self.deadline = Some(until);
        timers.set(until, ticket);
    }

    fn factor(&self) -> u32 {
        match self.request.mode {
            ScanMode::Normal => 1,
            ScanMode::Exception => EXCEPTION_FACTOR,
        }
    }
}

impl EventLoop {
    pub(super) fn new(
        settings: ScanSettings,
        requests: mpsc::Receiver<ScanRequest>,
        orders: mpsc::Receiver<ScannerCommand>,
        now: Now,
        counts: Arc<ScanCounters>,
    ) -> io::Result<EventLoop> {
        let sockets = Sockets::open(
            settings.sockets as usize,
            settings.receive_buffer_bytes as usize,
            now.clone(),
            counts.clone(),
        )?;
        Ok(EventLoop {
            budgets: RateLimits::new(&settings),
            settings,
            requests,
            orders,
            now,
            counts,
            key: NonceKey::new(random_nonce_key()),
            start: Instant::now(),
            sockets,
            resolver: Resolver::default(),
            timers: Timers::default(),
            scans: FxHashMap::default(),
            addresses: HashMap::new(),
            next_ticket: 0,
            ended: VecDeque::new(),
            closing: false,
            stop_at: None,
        })
    }

    pub(super) async fn run(mut self, outcomes: mpsc::Sender<ScanOutcome>) {
        let mut tidy_at = CLEANUP_INTERVAL;
        let mut orders_open = true;
        loop {
            if self.closing && self.scans.is_empty() && self.ended.is_empty() {
                return;
            }
            let due = [self.timers.next(), self.budgets.next(), Some(tidy_at)].into_iter().flatten().min();
            let mut wake_at = self.start + due.unwrap_or(tidy_at);
            wake_at = self.stop_at.map_or(wake_at, |stop_at| stop_at.min(wake_at));
            let has_room = self.scans.len() + self.ended.len() < self.settings.in_flight_max as usize;
            tokio::select! {
                heard = self.sockets.next_event() => {
                    self.on_heard(heard).await;
                    for _ in 1..EVENT_BATCH_MAX {
                        let Some(heard) = self.sockets.try_next_event() else { break };
                        self.on_heard(heard).await;
                    }
                }
                () = sleep_until(wake_at) => {}
                request = self.requests.recv(), if has_room && !self.closing => match request {
                    Some(request) => self.on_request(request).await,
                    None => self.closing = true,
                },
                room = outcomes.reserve(), if !self.ended.is_empty() => match room {
                    Ok(room) => if let Some(outcome) = self.ended.pop_front() { room.send(outcome) },
                    // Nobody wants to know any more.
                    Err(_) => return self.abandon(),
                },
                looked = self.resolver.next_result() => {
                    let ttl = Duration::from_secs(self.settings.resolve_ttl_s.into());
                    let ip = looked.ip;
                    for ticket in self.resolver.complete(self.start.elapsed(), looked, ttl) {
                        self.on_resolved(ticket, ip).await;
                    }
                }
                order = self.orders.recv(), if orders_open => match order {
                    Some(ScannerCommand::Reload(settings, done)) => {
                        self.on_reload(*settings);
                        // Whether anyone still waits for it is not our concern.
                        let _ = done.send(());
                    }
                    Some(ScannerCommand::Stop(grace)) => {
                        self.closing = true;
                        self.stop_at = Some(Instant::now() + grace);
                    }
                    // The scanner was dropped: work goes on while requests come.
                    None => orders_open = false,
                },
            }
            self.on_time().await;
            if self.start.elapsed() >= tidy_at {
                tidy_at = self.start.elapsed() + CLEANUP_INTERVAL;
                self.budgets.tidy();
                self.resolver.remove_expired(self.start.elapsed());
            }
            if self.stop_at.is_some_and(|stop_at| Instant::now() >= stop_at) {
                return self.abandon();
            }
        }
    }

    fn abandon(self) {
        self.counts.abandoned.add((self.scans.len() + self.ended.len()) as u64);
    }

    async fn on_time(&mut self) {
        let now = self.start.elapsed();
        for ticket in self.budgets.poll(now) {
            if self.scans.get(&ticket).is_some_and(|scan| scan.state == State::Throttled) {
                self.send(ticket).await;
            }
        }
        while let Some((at, ticket)) = self.timers.pop_due(now) {
            let Some(scan) = self.scans.get_mut(&ticket).filter(|scan| scan.deadline == Some(at)) else {
                continue;
            };
            scan.deadline = None;
            match scan.state {
                State::Cooldown => self.begin_dialogue(ticket).await,
                State::AwaitingReply => self.on_timeout(ticket).await,
                State::Resolving | State::AwaitingAddress | State::Throttled => unreachable!("these set no deadline"),
            }
        }
    }

    async fn on_request(&mut self, request: ScanRequest) {
        self.counts.requests.increment();
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let scan = Scan {
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
        };
        let known = match scan.targets.is_empty() {
            true => None,
            false => self.resolver.resolve(self.start.elapsed(), scan.request.url.host(), ticket),
        };
        let has_protocol = !scan.targets.is_empty();
        self.scans.insert(ticket, scan);
        match known {
            _ if !has_protocol => self.end(ticket, Err(MissReason::NoProtocol)),
            Some(ip) => self.on_resolved(ticket, ip).await,
            None => {}
        }
    }

    async fn on_resolved(&mut self, ticket: ScanToken, ip: Option<IpAddr>) {
        let Some(scan) = self.scans.get_mut(&ticket) else { return };
        let Some(ip) = ip else {
            self.counts.unresolved.increment();
            return self.end(ticket, Err(MissReason::Unresolved));
        };
        let ip = ip.to_canonical();
        self.counts.resolved.increment();
        scan.ip = Some(ip);
        match exclusion_reason(&self.settings, ip) {
            Some(reason) => self.end(ticket, Err(reason)),
            None => self.begin_target(ticket).await,
        }
    }

    /// Takes the address of the scan's present target, or queues for it.
    async fn begin_target(&mut self, ticket: ScanToken) {
        let scan = self.scans.get_mut(&ticket).expect("a scan in flight");
        let address = scan.address().expect("resolved, and a target is left");
        scan.exchange = None;
        scan.is_sent = false;
        scan.sends = 0;
        scan.received_invalid = false;
        if let Some(held) = self.addresses.get_mut(&address) {
            assert_ne!(held.by, ticket, "a scan gives its address up first");
            held.waiting.push_back(ticket);
            scan.state = State::AwaitingAddress;
            self.counts.serialized.increment();
            return;
        }
        self.addresses.insert(address, AddressLock { by: ticket, waiting: VecDeque::new() });
        // The target before may have been another protocol on the same port.
        let rested_at = scan.last_sent.map_or(Duration::ZERO, |sent| sent + COOLDOWN);
        if rested_at > self.start.elapsed() {
            scan.start_cooldown(&mut self.timers, ticket, rested_at);
        } else {
            self.begin_dialogue(ticket).await;
        }
    }

    /// The address is ours, and the server has had its rest.
    async fn begin_dialogue(&mut self, ticket: ScanToken) {
        let scan = self.scans.get_mut(&ticket).expect("a scan in flight");
        let address = scan.address().expect("resolved, and a target is left");
        let Some(socket) = self.sockets.index_for(address) else {
            return self.end_target(ticket, MissReason::Unsendable).await;
        };
        // Each target of a scan is a question of its own.
        let nonce = self.key.nonce(address, ticket << 8 | scan.target_index as u64);
        scan.exchange = Some(scan.targets[scan.target_index].protocol.start(nonce));
        scan.socket = socket;
        scan.drops_at_start = self.sockets.drops(socket);
        self.pay(ticket).await;
    }

    /// Asks the budgets for what the next question costs, and sends it when they
    /// allow. The first pays for all packets of a usual scan, so that an answer
    /// to the server's challenge need not wait.
    async fn pay(&mut self, ticket: ScanToken) {
        let scan = self.scans.get_mut(&ticket).expect("a scan in flight");
        let packets = if scan.is_sent { 1 } else { scan.targets[scan.target_index].protocol.packets_typical };
        let ip = scan.ip.expect("resolved before it pays");
        scan.state = State::Throttled;
        match self.budgets.ask(self.start.elapsed(), ticket, ip, packets) {
            Admission::Granted => self.send(ticket).await,
            Admission::Waits(LimitScope::Address(_)) => self.counts.deferred_address.increment(),
            Admission::Waits(LimitScope::Subnet(_)) => self.counts.deferred_subnet.increment(),
            Admission::Waits(LimitScope::Global) => self.counts.deferred_global.increment(),
        }
    }

    async fn send(&mut self, ticket: ScanToken) {
        let scan = self.scans.get_mut(&ticket).expect("a scan in flight");
        let address = scan.address().expect("resolved, and a target is left");
        let packet = scan.exchange.as_ref().expect("begun before it sends").packet();
        if let Err(error) = self.sockets.send(scan.socket, address, &packet).await {
            tracing::debug!(%address, %error, "a packet could not be sent");
            self.counts.send_errors.increment();
            return self.end_target(ticket, MissReason::Unsendable).await;
        }
        self.counts.packets_sent.increment();
        self.counts.bytes_sent.add(packet.len() as u64);
        if scan.sends > 0 {
            self.counts.resends.increment();
        }
        let now = self.start.elapsed();
        scan.first_sent_ms.get_or_insert_with(|| (self.now)());
        scan.last_sent = Some(now);
        scan.sends += 1;
        scan.is_sent = true;
        scan.state = State::AwaitingReply;
        let timeout = Duration::from_millis(u64::from(self.settings.timeout_ms * scan.factor()));
        let is_last = scan.sends > self.settings.retries * scan.factor();
        let deadline = now + if is_last { timeout } else { timeout.max(COOLDOWN) };
        scan.deadline = Some(deadline);
        self.timers.set(deadline, ticket);
    }

    async fn on_timeout(&mut self, ticket: ScanToken) {
        let scan = self.scans.get_mut(&ticket).expect("a scan in flight");
        if scan.sends <= self.settings.retries * scan.factor() {
            return self.pay(ticket).await;
        }
        if let Some(snapshot) = scan.exchange.as_mut().and_then(|dialogue| dialogue.give_up()) {
            return self.end(ticket, Ok(snapshot));
        }
        let reason = if scan.received_invalid {
            MissReason::Malformed
        } else if self.sockets.drops(scan.socket) > scan.drops_at_start {
            MissReason::Overrun
        } else {
            MissReason::Timeout
        };
        self.end_target(ticket, reason).await;
    }

    async fn on_heard(&mut self, heard: SocketEvent) {
        match heard {
            SocketEvent::Datagram { socket, from, t_ms, at, bytes } => {
                let ticket = self.addresses.get(&from).map(|held| held.by);
                let asked =
                    ticket.filter(|t| self.scans.get(t).is_some_and(|scan| scan.is_sent && scan.socket == socket));
                match asked {
                    Some(ticket) => self.on_datagram(ticket, t_ms, at, &bytes).await,
                    None => self.counts.unasked.increment(),
                }
            }
            SocketEvent::Refused { from } => {
                let Some(ticket) = self.addresses.get(&from).map(|held| held.by) else { return };
                let scan = self.scans.get_mut(&ticket).expect("whoever holds an address is in flight");
                if !scan.is_sent {
                    return;
                }
                match scan.exchange.as_mut().and_then(|dialogue| dialogue.give_up()) {
                    Some(snapshot) => self.end(ticket, Ok(snapshot)),
                    None => self.end_target(ticket, MissReason::Refused).await,
                }
            }
        }
    }

    async fn on_datagram(&mut self, ticket: ScanToken, t_ms: i64, at: Instant, bytes: &[u8]) {
        let scan = self.scans.get_mut(&ticket).expect("looked up just now");
        let dialogue = scan.exchange.as_mut().expect("asked, so begun");
        let step = dialogue.on_datagram(t_ms, bytes);
        if !matches!(step, Step::Ignore(_)) && scan.sends == 1 && scan.rtt_ms.is_none() {
            let sent_at = self.start + scan.last_sent.expect("asked, so sent");
            scan.rtt_ms = Some(at.saturating_duration_since(sent_at).as_millis().min(u32::MAX.into()) as u32);
        }
        match step {
            Step::Ignore(reason) => {
                scan.received_invalid = true;
                self.counts.ignored(reason).increment();
            }
            Step::Wait => {}
            Step::Send => {
                // A new question: it has tries of its own.
                scan.sends = 0;
                self.send(ticket).await;
            }
            Step::Done(snapshot) => self.end(ticket, Ok(*snapshot)),
        }
    }

    fn on_reload(&mut self, settings: ScanSettings) {
        self.budgets.reload(&settings);
        self.settings = settings;
        // Who has opted out by now is not listened to any more either.
        let refused: Vec<_> = self
            .scans
            .iter()
            .filter_map(|(&ticket, scan)| Some((ticket, exclusion_reason(&self.settings, scan.ip?)?)))
            .collect();
        for (ticket, reason) in refused {
            self.end(ticket, Err(reason));
        }
    }

    /// The present target has not answered: on to the next, or to the end.
    async fn end_target(&mut self, ticket: ScanToken, reason: MissReason) {
        let scan = self.scans.get_mut(&ticket).expect("a scan in flight");
        if scan.target_index + 1 == scan.targets.len() {
            return self.end(ticket, Err(reason));
        }
        let target = scan.targets[scan.target_index];
        scan.tried.push(Attempt { scheme: target.protocol.scheme, port: target.port, result: Err(reason) });
        scan.deadline = None;
        self.release(ticket);
        self.scans.get_mut(&ticket).expect("a scan in flight").target_index += 1;
        // Boxed, for targets can fail one after the other without a pause.
        Box::pin(self.begin_target(ticket)).await;
    }

    fn end(&mut self, ticket: ScanToken, result: Result<Snapshot, MissReason>) {
        self.release(ticket);
        let mut scan = self.scans.remove(&ticket).expect("a scan in flight");
        match &result {
            Ok(Snapshot { completeness: Completeness::Full, .. }) => self.counts.snapshots.increment(),
            Ok(_) => self.counts.partials.increment(),
            Err(reason) => self.counts.miss(*reason).increment(),
        }
        if let Some(target) = scan.targets.get(scan.target_index) {
            let result = result.as_ref().map(|_| ()).map_err(|&reason| reason);
            scan.tried.push(Attempt { scheme: target.protocol.scheme, port: target.port, result });
        }
        self.ended.push_back(ScanOutcome {
            id: scan.request.id,
            server: scan.request.server,
            sent_ms: scan.first_sent_ms,
            rtt_ms: scan.rtt_ms.filter(|_| result.is_ok()),
            result: result.map_err(|reason| Miss { t_ms: (self.now)(), reason }),
            attempts: scan.tried,
        });
    }

    /// Gives up the address, or the place in its queue, and lets the next have it.
    fn release(&mut self, ticket: ScanToken) {
        let scan = &self.scans[&ticket];
        let Some(address) = scan.address() else { return };
        let last_sent = scan.last_sent;
        let Some(held) = self.addresses.get_mut(&address) else { return };
        if held.by != ticket {
            held.waiting.retain(|&waiting| waiting != ticket);
            return;
        }
        let Some(next) = held.waiting.pop_front() else {
            self.addresses.remove(&address);
            return;
        };
        held.by = next;
        // It begins by the timer, so that ends do not nest.
        let at = last_sent.map_or(Duration::ZERO, |sent| sent + COOLDOWN).max(self.start.elapsed());
        let scan = self.scans.get_mut(&next).expect("whoever waits is in flight");
        scan.start_cooldown(&mut self.timers, next, at);
    }
}

fn exclusion_reason(settings: &ScanSettings, ip: IpAddr) -> Option<MissReason> {
    if settings.opt_out.iter().any(|net| net.contains(ip)) {
        return Some(MissReason::OptedOut);
    }
    let allowed = target::is_unicast(ip) && (settings.allow_private || target::is_public(ip));
    (!allowed).then_some(MissReason::NotPublic)
}

/// Sixteen bytes that nobody outside can know: the standard library's hash maps
/// are keyed by the system's randomness.
fn random_nonce_key() -> [u8; 16] {
    let half = || RandomState::new().build_hasher().finish().to_le_bytes();
    let (a, b) = (half(), half());
    std::array::from_fn(|i| if i < 8 { a[i] } else { b[i - 8] })
}
