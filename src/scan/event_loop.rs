//! The one task that holds every scan in flight.
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
use super::target::{self, Target};
use super::timers::Timers;
use super::{Attempt, Miss, MissReason, Now, ScanMode, ScanOutcome, ScanRequest, ScanSettings, ScannerCommand};
use crate::model::{Completeness, Snapshot};
use crate::proto::{Exchange, NonceKey, Step};
use crate::scan::counters::ScanCounters;
use crate::scan::rate_limit::{Admission, LimitScope, RateLimits};
use crate::scan::resolver::Resolver;

/// Servers answer one query a second and address (DarkPlaces), or one in 0.9 s
/// (QuakeForge). A server gets no further packet within this time.
pub(super) const COOLDOWN: Duration = Duration::from_millis(1_100);

/// Exception mode multiplies the time-out and the number of retries by this.
pub(super) const EXCEPTION_FACTOR: u32 = 3;

/// Interval at which expired cache entries and idle rate limits are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(30);

/// Socket events handled in a row before timers and requests are served.
const EVENT_BATCH_MAX: usize = 256;

/// Identifies a scan in flight. Never reused.
type ScanToken = u64;

/// See the file header.
pub(super) struct EventLoop {
    settings: ScanSettings,
    requests: mpsc::Receiver<ScanRequest>,
    orders: mpsc::Receiver<ScannerCommand>,
    now: Now,
    counts: Arc<ScanCounters>,
    key: NonceKey,
    /// Durations in this module count from here.
    start: Instant,
    sockets: Sockets,
    budgets: RateLimits,
    resolver: Resolver,
    timers: Timers<Duration, ScanToken>,
    scans: FxHashMap<ScanToken, Scan>,
    /// The scan that owns each address and port, and the scans queued for it. Uses
    /// std's keyed hasher, because attackers can choose addresses.
    address_locks: HashMap<SocketAddr, AddressLock>,
    next_token: ScanToken,
    /// Outcomes for which the channel has no space. Scans and ended outcomes together
    /// never exceed `scans_in_flight_max`, because no request is accepted beyond that.
    finished: VecDeque<ScanOutcome>,
    /// No more requests are accepted.
    draining: bool,
    /// When the remaining scans are cancelled.
    stop_at: Option<Instant>,
}

struct AddressLock {
    by: ScanToken,
    waiting: VecDeque<ScanToken>,
}

struct Scan {
    request: ScanRequest,
    targets: Vec<Target>,
    /// Index of the target that is being queried.
    target_index: usize,
    ip: Option<IpAddr>,
    state: State,
    /// The deadline of the valid timer entry. Entries with another deadline are stale.
    deadline: Option<Duration>,
    exchange: Option<Box<dyn Exchange>>,
    socket: usize,
    /// How often the current request was sent.
    sends: u32,
    /// A packet was sent to this target; replies are accepted from now on.
    is_sent: bool,
    last_sent: Option<Duration>,
    /// When the first packet was sent, Unix ms.
    first_sent_ms: Option<i64>,
    rtt_ms: Option<u32>,
    /// This target sent a datagram that was not usable.
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

    fn start_cooldown(&mut self, timers: &mut Timers<Duration, ScanToken>, token: ScanToken, until: Duration) {
        self.state = State::Cooldown;
        self.deadline = Some(until);
        timers.set(until, token);
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
            settings.sockets_per_ip_version as usize,
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
            address_locks: HashMap::new(),
            next_token: 0,
            finished: VecDeque::new(),
            draining: false,
            stop_at: None,
        })
    }

    pub(super) async fn run(mut self, outcomes: mpsc::Sender<ScanOutcome>) {
        let mut cleanup_at = CLEANUP_INTERVAL;
        let mut orders_open = true;
        loop {
            if self.draining && self.scans.is_empty() && self.finished.is_empty() {
                return;
            }
            let due = [self.timers.next(), self.budgets.next_due(), Some(cleanup_at)].into_iter().flatten().min();
            let mut wake_at = self.start + due.unwrap_or(cleanup_at);
            wake_at = self.stop_at.map_or(wake_at, |stop_at| stop_at.min(wake_at));
            let has_capacity = self.scans.len() + self.finished.len() < self.settings.scans_in_flight_max as usize;
            tokio::select! {
                event = self.sockets.next_event() => {
                    self.on_socket_event(event).await;
                    for _ in 1..EVENT_BATCH_MAX {
                        let Some(event) = self.sockets.try_next_event() else { break };
                        self.on_socket_event(event).await;
                    }
                }
                () = sleep_until(wake_at) => {}
                request = self.requests.recv(), if has_capacity && !self.draining => match request {
                    Some(request) => self.on_request(request).await,
                    None => self.draining = true,
                },
                permit = outcomes.reserve(), if !self.finished.is_empty() => match permit {
                    Ok(permit) => if let Some(outcome) = self.finished.pop_front() { permit.send(outcome) },
                    // The outcome receiver was dropped.
                    Err(_) => return self.cancel_all(),
                },
                lookup = self.resolver.next_result() => {
                    let ttl = Duration::from_secs(self.settings.dns_cache_ttl_s.into());
                    let ip = lookup.ip;
                    for token in self.resolver.complete(self.start.elapsed(), lookup, ttl) {
                        self.on_resolved(token, ip).await;
                    }
                }
                command = self.orders.recv(), if orders_open => match command {
                    Some(ScannerCommand::Reload(settings, done)) => {
                        self.on_reload(*settings);
                        // The caller may no longer wait for it.
                        let _ = done.send(());
                    }
                    Some(ScannerCommand::Stop(grace)) => {
                        self.draining = true;
                        self.stop_at = Some(Instant::now() + grace);
                    }
                    // The scanner was dropped: continue while requests arrive.
                    None => orders_open = false,
                },
            }
            self.on_timers().await;
            if self.start.elapsed() >= cleanup_at {
                cleanup_at = self.start.elapsed() + CLEANUP_INTERVAL;
                self.budgets.evict_idle();
                self.resolver.remove_expired(self.start.elapsed());
            }
            if self.stop_at.is_some_and(|stop_at| Instant::now() >= stop_at) {
                return self.cancel_all();
            }
        }
    }

    fn cancel_all(self) {
        self.counts.cancelled.add((self.scans.len() + self.finished.len()) as u64);
    }

    async fn on_timers(&mut self) {
        let now = self.start.elapsed();
        for token in self.budgets.poll(now) {
            if self.scans.get(&token).is_some_and(|scan| scan.state == State::Throttled) {
                self.send(token).await;
            }
        }
        while let Some((at, token)) = self.timers.pop_due(now) {
            let Some(scan) = self.scans.get_mut(&token).filter(|scan| scan.deadline == Some(at)) else {
                continue;
            };
            scan.deadline = None;
            match scan.state {
                State::Cooldown => self.begin_exchange(token).await,
                State::AwaitingReply => self.on_timeout(token).await,
                State::Resolving | State::AwaitingAddress | State::Throttled => unreachable!("these set no deadline"),
            }
        }
    }

    async fn on_request(&mut self, request: ScanRequest) {
        self.counts.requests.increment();
        let token = self.next_token;
        self.next_token += 1;
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
        let cached = match scan.targets.is_empty() {
            true => None,
            false => self.resolver.resolve(self.start.elapsed(), scan.request.url.host(), token),
        };
        let has_protocol = !scan.targets.is_empty();
        self.scans.insert(token, scan);
        match cached {
            _ if !has_protocol => self.finish_scan(token, Err(MissReason::UnsupportedScheme)),
            Some(ip) => self.on_resolved(token, ip).await,
            None => {}
        }
    }

    async fn on_resolved(&mut self, token: ScanToken, ip: Option<IpAddr>) {
        let Some(scan) = self.scans.get_mut(&token) else { return };
        let Some(ip) = ip else {
            self.counts.resolve_failures.increment();
            return self.finish_scan(token, Err(MissReason::Unresolved));
        };
        let ip = ip.to_canonical();
        self.counts.resolved.increment();
        scan.ip = Some(ip);
        match exclusion_reason(&self.settings, ip) {
            Some(reason) => self.finish_scan(token, Err(reason)),
            None => self.begin_target(token).await,
        }
    }

    /// Locks the address of the scan's current target, or queues for it.
    async fn begin_target(&mut self, token: ScanToken) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        let address = scan.address().expect("resolved, and a target is left");
        scan.exchange = None;
        scan.is_sent = false;
        scan.sends = 0;
        scan.received_invalid = false;
        if let Some(held) = self.address_locks.get_mut(&address) {
            assert_ne!(held.by, token, "a scan releases its address first");
            held.waiting.push_back(token);
            scan.state = State::AwaitingAddress;
            self.counts.address_conflicts.increment();
            return;
        }
        self.address_locks.insert(address, AddressLock { by: token, waiting: VecDeque::new() });
        // The previous target may have been another protocol on the same port.
        let cooldown_end = scan.last_sent.map_or(Duration::ZERO, |sent| sent + COOLDOWN);
        if cooldown_end > self.start.elapsed() {
            scan.start_cooldown(&mut self.timers, token, cooldown_end);
        } else {
            self.begin_exchange(token).await;
        }
    }

    /// Starts the exchange: the address is locked and its cooldown is over.
    async fn begin_exchange(&mut self, token: ScanToken) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        let address = scan.address().expect("resolved, and a target is left");
        let Some(socket) = self.sockets.index_for(address) else {
            return self.fail_target(token, MissReason::SendFailed).await;
        };
        // Each target of a scan has its own nonce.
        let nonce = self.key.nonce(address, token << 8 | scan.target_index as u64);
        scan.exchange = Some(scan.targets[scan.target_index].protocol.start(nonce));
        scan.socket = socket;
        scan.drops_at_start = self.sockets.drops(socket);
        self.acquire_permits(token).await;
    }

    /// Takes the rate limit permits for the next packet, and sends it when they are
    /// granted. The first packet takes the permits for all packets of a typical scan,
    /// so that the reply to the server's challenge is not throttled.
    async fn acquire_permits(&mut self, token: ScanToken) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        let packets = if scan.is_sent { 1 } else { scan.targets[scan.target_index].protocol.packets_typical };
        let ip = scan.ip.expect("resolved before it takes permits");
        scan.state = State::Throttled;
        match self.budgets.acquire(self.start.elapsed(), token, ip, packets) {
            Admission::Granted => self.send(token).await,
            Admission::Throttled(LimitScope::Address(_)) => self.counts.throttled_address.increment(),
            Admission::Throttled(LimitScope::Subnet(_)) => self.counts.throttled_subnet.increment(),
            Admission::Throttled(LimitScope::Global) => self.counts.throttled_global.increment(),
        }
    }

    async fn send(&mut self, token: ScanToken) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        let address = scan.address().expect("resolved, and a target is left");
        let packet = scan.exchange.as_ref().expect("started before it sends").request();
        if let Err(error) = self.sockets.send(scan.socket, address, &packet).await {
            tracing::debug!(%address, %error, "a packet could not be sent");
            self.counts.send_errors.increment();
            return self.fail_target(token, MissReason::SendFailed).await;
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
        self.timers.set(deadline, token);
    }

    async fn on_timeout(&mut self, token: ScanToken) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        if scan.sends <= self.settings.retries * scan.factor() {
            return self.acquire_permits(token).await;
        }
        if let Some(snapshot) = scan.exchange.as_mut().and_then(|exchange| exchange.partial_snapshot()) {
            return self.finish_scan(token, Ok(snapshot));
        }
        let reason = if scan.received_invalid {
            MissReason::Malformed
        } else if self.sockets.drops(scan.socket) > scan.drops_at_start {
            MissReason::ReceiveOverflow
        } else {
            MissReason::Timeout
        };
        self.fail_target(token, reason).await;
    }

    async fn on_socket_event(&mut self, event: SocketEvent) {
        match event {
            SocketEvent::Datagram { socket, from, t_ms, at, bytes } => {
                let token = self.address_locks.get(&from).map(|held| held.by);
                let pending =
                    token.filter(|t| self.scans.get(t).is_some_and(|scan| scan.is_sent && scan.socket == socket));
                match pending {
                    Some(token) => self.on_datagram(token, t_ms, at, &bytes).await,
                    None => self.counts.unsolicited.increment(),
                }
            }
            SocketEvent::Refused { from } => {
                let Some(token) = self.address_locks.get(&from).map(|held| held.by) else { return };
                let scan = self.scans.get_mut(&token).expect("the owner of an address is in flight");
                if !scan.is_sent {
                    return;
                }
                match scan.exchange.as_mut().and_then(|exchange| exchange.partial_snapshot()) {
                    Some(snapshot) => self.finish_scan(token, Ok(snapshot)),
                    None => self.fail_target(token, MissReason::Refused).await,
                }
            }
        }
    }

    async fn on_datagram(&mut self, token: ScanToken, t_ms: i64, at: Instant, bytes: &[u8]) {
        let scan = self.scans.get_mut(&token).expect("lookup up by the caller");
        let exchange = scan.exchange.as_mut().expect("the exchange has started");
        let step = exchange.handle_datagram(t_ms, bytes);
        if !matches!(step, Step::Ignore(_)) && scan.sends == 1 && scan.rtt_ms.is_none() {
            let sent_at = self.start + scan.last_sent.expect("a packet was sent");
            scan.rtt_ms = Some(at.saturating_duration_since(sent_at).as_millis().min(u32::MAX.into()) as u32);
        }
        match step {
            Step::Ignore(reason) => {
                scan.received_invalid = true;
                self.counts.ignored(reason).increment();
            }
            Step::Wait => {}
            Step::Send => {
                // A new request: it has its own resends.
                scan.sends = 0;
                self.send(token).await;
            }
            Step::Done(snapshot) => self.finish_scan(token, Ok(*snapshot)),
        }
    }

    fn on_reload(&mut self, settings: ScanSettings) {
        self.budgets.reload(&settings);
        self.settings = settings;
        // End the scans of addresses that are now opted out.
        let excluded: Vec<_> = self
            .scans
            .iter()
            .filter_map(|(&token, scan)| Some((token, exclusion_reason(&self.settings, scan.ip?)?)))
            .collect();
        for (token, reason) in excluded {
            self.finish_scan(token, Err(reason));
        }
    }

    /// The current target failed: continue with the next, or end the scan.
    async fn fail_target(&mut self, token: ScanToken, reason: MissReason) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        if scan.target_index + 1 == scan.targets.len() {
            return self.finish_scan(token, Err(reason));
        }
        let target = scan.targets[scan.target_index];
        scan.tried.push(Attempt { scheme: target.protocol.scheme, port: target.port, result: Err(reason) });
        scan.deadline = None;
        self.release_address(token);
        self.scans.get_mut(&token).expect("a scan in flight").target_index += 1;
        // Boxed, because several targets can fail in a row without a pause.
        Box::pin(self.begin_target(token)).await;
    }

    fn finish_scan(&mut self, token: ScanToken, result: Result<Snapshot, MissReason>) {
        self.release_address(token);
        let mut scan = self.scans.remove(&token).expect("a scan in flight");
        match &result {
            Ok(Snapshot { completeness: Completeness::Full, .. }) => self.counts.snapshots.increment(),
            Ok(_) => self.counts.partials.increment(),
            Err(reason) => self.counts.miss(*reason).increment(),
        }
        if let Some(target) = scan.targets.get(scan.target_index) {
            let result = result.as_ref().map(|_| ()).map_err(|&reason| reason);
            scan.tried.push(Attempt { scheme: target.protocol.scheme, port: target.port, result });
        }
        self.finished.push_back(ScanOutcome {
            id: scan.request.id,
            server: scan.request.server,
            sent_ms: scan.first_sent_ms,
            rtt_ms: scan.rtt_ms.filter(|_| result.is_ok()),
            result: result.map_err(|reason| Miss { t_ms: (self.now)(), reason }),
            attempts: scan.tried,
        });
    }

    /// Releases the address, or leaves its queue, and passes the address to the next scan.
    fn release_address(&mut self, token: ScanToken) {
        let scan = &self.scans[&token];
        let Some(address) = scan.address() else { return };
        let last_sent = scan.last_sent;
        let Some(held) = self.address_locks.get_mut(&address) else { return };
        if held.by != token {
            held.waiting.retain(|&waiting| waiting != token);
            return;
        }
        let Some(next) = held.waiting.pop_front() else {
            self.address_locks.remove(&address);
            return;
        };
        held.by = next;
        // The next scan starts from a timer, so ending one scan does not start another recursively.
        let at = last_sent.map_or(Duration::ZERO, |sent| sent + COOLDOWN).max(self.start.elapsed());
        let scan = self.scans.get_mut(&next).expect("a queued scan is in flight");
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

/// Sixteen bytes that no one outside can predict: the standard library keys its
/// hash maps from the system's randomness.
fn random_nonce_key() -> [u8; 16] {
    let half = || RandomState::new().build_hasher().finish().to_le_bytes();
    let (a, b) = (half(), half());
    std::array::from_fn(|i| if i < 8 { a[i] } else { b[i - 8] })
}
