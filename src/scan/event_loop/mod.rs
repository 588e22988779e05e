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

mod address_locks;
mod scan_state;
mod scan_steps;

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use self::address_locks::AddressLocks;
use self::scan_state::{Scan, ScanToken, State};
use super::address;
use super::counters::ScanCounters;
use super::outcome::{MissReason, ScanOutcome};
use super::rate_limit::RateLimits;
use super::request::{Now, ScanRequest};
use super::resolver::{Addresses, Resolver};
use super::settings::ScanSettings;
use super::socket::Sockets;
use super::timers::Timers;
use crate::proto::NonceKey;

/// Interval at which expired cache entries and idle rate limits are removed.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(30);

/// Socket events handled in a row before timers and requests are served.
const EVENT_BATCH_MAX: usize = 256;

/// A command to the running task.
pub(super) enum ScannerCommand {
    /// The sender is notified when the new settings are in effect.
    Reload(Box<ScanSettings>, oneshot::Sender<()>),
    /// Accept no new requests; end within this time.
    Stop(Duration),
}

/// See the file header.
pub(super) struct EventLoop {
    settings: ScanSettings,
    requests: mpsc::Receiver<ScanRequest>,
    commands: mpsc::Receiver<ScannerCommand>,
    now: Now,
    counters: Arc<ScanCounters>,
    key: NonceKey,
    /// Durations in this module count from here.
    start: Instant,
    sockets: Sockets,
    rate_limits: RateLimits,
    resolver: Resolver,
    timers: Timers<ScanToken>,
    scans: FxHashMap<ScanToken, Scan>,
    address_locks: AddressLocks,
    next_token: ScanToken,
    /// Outcomes for which the channel has no space. Scans and ended outcomes together
    /// never exceed `scans_in_flight_max`, because no request is accepted beyond that.
    finished: VecDeque<ScanOutcome>,
    /// No more requests are accepted.
    draining: bool,
    /// When the remaining scans are cancelled.
    stop_at: Option<Instant>,
}

impl EventLoop {
    pub(super) fn new(
        settings: ScanSettings,
        requests: mpsc::Receiver<ScanRequest>,
        commands: mpsc::Receiver<ScannerCommand>,
        now: Now,
        counters: Arc<ScanCounters>,
    ) -> io::Result<EventLoop> {
        let mut nonce_key = [0; 16];
        getrandom::fill(&mut nonce_key)
            .map_err(|error| io::Error::other(format!("the system has no random numbers: {error}")))?;
        let sockets = Sockets::open(
            settings.sockets_per_ip_version as usize,
            settings.receive_buffer_bytes as usize,
            now.clone(),
            counters.clone(),
        )?;
        Ok(EventLoop {
            rate_limits: RateLimits::new(&settings),
            settings,
            requests,
            commands,
            now,
            counters,
            key: NonceKey::new(nonce_key),
            start: Instant::now(),
            sockets,
            resolver: Resolver::default(),
            timers: Timers::default(),
            scans: FxHashMap::default(),
            address_locks: AddressLocks::default(),
            next_token: 0,
            finished: VecDeque::new(),
            draining: false,
            stop_at: None,
        })
    }

    pub(super) async fn run(mut self, outcomes: mpsc::Sender<ScanOutcome>) {
        let mut cleanup_at = CLEANUP_INTERVAL;
        let mut commands_open = true;
        loop {
            if self.draining && self.scans.is_empty() && self.finished.is_empty() {
                return;
            }
            let due = [self.timers.next(), self.rate_limits.next_due(), Some(cleanup_at)].into_iter().flatten().min();
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
                    let addresses = lookup.addresses.clone();
                    for token in self.resolver.complete(self.start.elapsed(), lookup, ttl) {
                        self.on_resolved(token, addresses.clone()).await;
                    }
                }
                command = self.commands.recv(), if commands_open => match command {
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
                    None => commands_open = false,
                },
            }
            self.on_timers().await;
            if self.start.elapsed() >= cleanup_at {
                cleanup_at = self.start.elapsed() + CLEANUP_INTERVAL;
                self.rate_limits.evict_idle();
                self.resolver.remove_expired(self.start.elapsed());
            }
            if self.stop_at.is_some_and(|stop_at| Instant::now() >= stop_at) {
                return self.cancel_all();
            }
        }
    }

    fn cancel_all(self) {
        self.counters.cancelled.add((self.scans.len() + self.finished.len()) as u64);
    }

    async fn on_timers(&mut self) {
        let now = self.start.elapsed();
        self.address_locks.remove_cooled(now);
        for token in self.rate_limits.poll(now) {
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
        self.counters.requests.increment();
        let token = self.next_token;
        self.next_token += 1;
        let scan = self.scans.entry(token).or_insert(Scan::new(request));
        if scan.targets.is_empty() {
            return self.finish_scan(token, Err(MissReason::UnsupportedScheme));
        }
        let cached = self.resolver.resolve(self.start.elapsed(), scan.request.url.host(), token);
        if let Some(addresses) = cached {
            self.on_resolved(token, addresses).await;
        }
    }

    async fn on_resolved(&mut self, token: ScanToken, addresses: Addresses) {
        let Some(scan) = self.scans.get_mut(&token) else { return };
        if addresses.is_empty() {
            self.counters.resolve_failures.increment();
            return self.finish_scan(token, Err(MissReason::Unresolved));
        }
        self.counters.resolved.increment();
        scan.addresses = addresses;
        self.begin_address(token).await;
    }

    /// Tries the targets on the scan's current address.
    async fn begin_address(&mut self, token: ScanToken) {
        let scan = &self.scans[&token];
        let ip = scan.ip().expect("an address is left");
        match exclusion_reason(&self.settings, ip) {
            Some(reason) => self.fail_address(token, reason).await,
            None => self.begin_target(token).await,
        }
    }

    /// No target answers on the current address: continue with the next, or end the scan.
    async fn fail_address(&mut self, token: ScanToken, reason: MissReason) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        if scan.address_index + 1 == scan.addresses.len() {
            return self.finish_scan(token, Err(reason));
        }
        scan.record_attempt(Err(reason));
        scan.deadline = None;
        self.release_address(token);
        self.scans.get_mut(&token).expect("a scan in flight").next_address();
        // Boxed, because several addresses can fail in a row without a pause.
        Box::pin(self.begin_address(token)).await;
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
    use crate::model::{ServerKey, ServerUrl};
    use crate::scan::ScanMode;
    use crate::scan::tests::{Server, clock, quick, reason, status};

    #[tokio::test]
    async fn addresses_of_a_host_name_are_tried_in_order() {
        let server = Server::start_at("127.0.0.3:0", |_, packet| vec![status(packet, "")]).await;
        let port = server.address.port();
        let (request_tx, requests) = mpsc::channel(4);
        let (_commands, commands_rx) = mpsc::channel(1);
        let (outcome_tx, mut outcomes) = mpsc::channel(4);
        let mut event_loop =
            EventLoop::new(quick(), requests, commands_rx, clock(), Arc::new(ScanCounters::default())).unwrap();
        let [first, second, third] = [1, 2, 3].map(|n| IpAddr::from([127, 0, 0, n]));
        event_loop.resolver.insert("two.test", &[third, first]);
        event_loop.resolver.insert("none.test", &[first, second]);
        event_loop.resolver.insert("excluded.test", &[IpAddr::from([0, 0, 0, 0]), third]);
        let running = tokio::spawn(event_loop.run(outcome_tx));
        for (id, host) in (0..).zip(["two.test", "none.test", "excluded.test"]) {
            let url = ServerUrl::parse(&format!("quake3://{host}:{port}")).unwrap();
            request_tx.send(ScanRequest { id, server: ServerKey(1), url, mode: ScanMode::Normal }).await.unwrap();
        }
        drop(request_tx);
        let mut all = Vec::new();
        while let Some(outcome) = outcomes.recv().await {
            all.push(outcome);
        }
        running.await.unwrap();
        all.sort_by_key(|outcome| outcome.id);
        let results = |n: usize| all[n].attempts.iter().map(|attempt| attempt.result).collect::<Vec<_>>();
        assert_eq!(results(0), [Err(MissReason::Refused), Ok(())], "{:?}", all[0]);
        assert_eq!((results(1), reason(&all[1])), (vec![Err(MissReason::Refused); 2], MissReason::Refused));
        assert_eq!(results(2), [Err(MissReason::NotPublic), Ok(())]);
    }
}
