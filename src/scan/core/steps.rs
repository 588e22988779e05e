//! From a locked address to the result of a target: takes the permits of the rate limits,
//! sends, resends, and passes each datagram to the exchange of its protocol.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::connections::Opened;
use super::packets::ScanToken;
use super::rate_limit::{Admission, LimitScope};
use super::scan_state::State;
use super::{FALLBACK_ANSWERS_MIN, Moment, ScanCore};
use crate::limits::{INCOMPLETE_BYTES_PER_SCAN_MAX, INCOMPLETE_REPLY_BYTES_MAX, MALFORMED_BYTES_MAX};
use crate::model::{Completeness, ServerKey, Snapshot};
use crate::proto::{DetailLevel, IgnoreReason, Step, Transport};
use crate::scan::capture::Capture;
use crate::scan::outcome::{Miss, MissReason, ScanOutcome};
use crate::scan::request::ScanMode;
use crate::scan::settings::COOLDOWN;
use crate::scan::target::{Effort, Target};

/// What a connection counts for the limits, beside its requests: one packet opens it, one ends it.
const CONNECTION_PACKETS: u32 = 2;

impl ScanCore {
    /// Locks the address of the scan's current target, or queues for it.
    pub(super) fn begin_target(&mut self, token: ScanToken) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        let address = scan.address().expect("resolved, and a target is left");
        self.held_bytes -= std::mem::take(&mut scan.held_bytes);
        scan.reset_exchange();
        match self.address_locks.owner(address) {
            // The pause after a quick probe of this scan is over.
            Some(owner) if owner == token => return self.begin_exchange(token),
            // A scan that waits for an address owns no other: two scans could wait for each other for ever.
            Some(_) => {
                scan.probes.clear();
                self.release_addresses(token);
            }
            None => {}
        }
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        scan.locked.push(address);
        if !self.address_locks.lock(address, token) {
            scan.state = State::AwaitingAddress;
            self.counters.address_conflicts.increment();
            return;
        }
        let cooldown_end = self.address_locks.cooldown_end(address);
        if cooldown_end > self.now.elapsed {
            scan.start_cooldown(&mut self.timers, token, cooldown_end);
        } else {
            self.begin_exchange(token);
        }
    }

    /// Starts the exchange: the address is locked and its cooldown is over.
    pub(super) fn begin_exchange(&mut self, token: ScanToken) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        let address = scan.address().expect("resolved, and a target is left");
        let socket = if scan.is_over_tcp() { Some(0) } else { self.sockets.index_for(address) };
        let Some(socket) = socket else {
            return self.fail_target(token, MissReason::SendFailed);
        };
        // Each target of a scan has its own nonce.
        let nonce = self.key.nonce(address, token << 8 | scan.target_index as u64);
        let protocol = scan.target().protocol;
        let mut exchange = protocol.start(nonce, address);
        if self.announce_enough.get(&scan.request.server) == Some(&true) {
            exchange.trust_count();
        }
        let url = &scan.request.url;
        if url.host().parse::<IpAddr>().is_err() {
            exchange.set_host_name(url.host(), url.port());
        }
        scan.exchange = Some(exchange);
        let is_captured = nonce.is_sampled(self.settings.capture_share);
        scan.capture = is_captured.then(|| Box::new(Capture::new(protocol.scheme, address, nonce)));
        scan.socket = socket;
        scan.drops_at_start = self.drops[socket];
        self.acquire_permits(token);
    }

    /// Takes the rate limit permits for the next packet, and sends it when they are
    /// granted. The first packet takes the permits for all packets of a typical scan,
    /// so that the reply to the server's challenge is not throttled. Each further packet takes its own: a
    /// server may send challenge after challenge.
    fn acquire_permits(&mut self, token: ScanToken) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        if scan.state == State::Throttled {
            return; // The packet that waits is the one of the exchange's present state.
        }
        if scan.permits > 0 {
            return self.send(token);
        }
        // Most probes are not answered.
        let is_first_of_all = !scan.is_sent && scan.target().effort == Effort::Full;
        let packets = if is_first_of_all { scan.target().protocol.packets_typical } else { 1 };
        let overhead = if scan.is_over_tcp() && !self.connections.has(token) { CONNECTION_PACKETS } else { 0 };
        let ip = scan.ip().expect("resolved before it takes permits");
        scan.permits = packets;
        scan.deadline = None;
        scan.state = State::Throttled;
        match self.rate_limits.acquire(self.now.elapsed, token, ip, packets + overhead) {
            Admission::Granted => self.send(token),
            Admission::Throttled(LimitScope::Address(_)) => self.counters.throttled_address.increment(),
            Admission::Throttled(LimitScope::Subnet(_)) => self.counters.throttled_subnet.increment(),
            Admission::Throttled(LimitScope::Global) => self.counters.throttled_global.increment(),
        }
    }

    pub(super) fn send(&mut self, token: ScanToken) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        let address = scan.address().expect("resolved, and a target is left");
        let packet = scan.exchange.as_ref().expect("started before it sends").request();
        if !scan.is_over_tcp() {
            self.packets[scan.socket].push(address, &packet, token);
        } else {
            match self.connections.open(token, self.settings.tcp_connections_max) {
                Opened::Now => self.connections.write(token, address, packet.clone()),
                Opened::Later => {
                    scan.state = State::AwaitingConnection;
                    scan.deadline = None;
                    scan.waits_since = Some(self.now.elapsed);
                    return self.counters.connection_waits.increment();
                }
                // A local fault: the server is scanned again soon. No other target is tried, whose silence would count.
                Opened::Never => {
                    let partial = scan.exchange.as_mut().and_then(|exchange| exchange.partial_snapshot());
                    return self.finish_scan(token, partial.ok_or(MissReason::SendFailed));
                }
            }
        }
        self.counters.packets_sent.increment();
        self.counters.bytes_sent.add(packet.len() as u64);
        if scan.sends > 0 {
            self.counters.resends.increment();
        }
        let now = self.now.elapsed;
        scan.first_sent_ms.get_or_insert(self.now.unix_ms);
        scan.last_sent = Some(now);
        self.address_locks.record_packet(address, now);
        scan.sends += 1;
        scan.permits = scan.permits.saturating_sub(1);
        scan.is_sent = true;
        scan.last_packet = packet;
        scan.state = State::AwaitingReply;
        let timeout = scan.timeout(&self.settings, &self.round_trips);
        let is_last = scan.sends > scan.retries(&self.settings);
        let deadline = now + if is_last { timeout } else { timeout.max(COOLDOWN) };
        scan.deadline = Some(deadline);
        self.timers.set(deadline, token);
    }

    pub(super) fn on_timeout(&mut self, token: ScanToken) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        let ip = scan.ip().expect("resolved before it sends");
        if scan.sends <= scan.retries(&self.settings) && !self.silent_hosts.is_silent(ip) {
            let address = scan.address().expect("a packet was sent");
            let cooldown_end = self.address_locks.cooldown_end(address);
            if cooldown_end > self.now.elapsed {
                // The packet was sent later than it was queued.
                scan.deadline = Some(cooldown_end);
                self.timers.set(cooldown_end, token);
                return;
            }
            return self.acquire_permits(token);
        }
        let next_owner = scan.following_address().and_then(|next| self.address_locks.owner(next));
        let is_next_taken = next_owner.is_some_and(|owner| owner != token);
        if let Some(until) = scan.last_probe_deadline(self.now.elapsed, is_next_taken) {
            scan.deadline = Some(until);
            return self.timers.set(until, token);
        }
        if let Some(snapshot) = scan.exchange.as_mut().and_then(|exchange| exchange.partial_snapshot()) {
            return self.finish_scan(token, Ok(snapshot));
        }
        scan.keep_probe();
        let reason = if scan.received_invalid {
            MissReason::Malformed
        } else if !scan.is_over_tcp() && self.drops[scan.socket] > scan.drops_at_start {
            MissReason::ReceiveOverflow
        } else {
            MissReason::Timeout
        };
        let port = scan.target().port;
        if reason == MissReason::Timeout
            && self.round_trips.is_known(scan.request.server)
            && self.silent_hosts.record_silence(ip, port, self.now.elapsed)
        {
            self.counters.silent_hosts.increment();
            tracing::debug!(%ip, "several servers of this address have fallen silent together");
        }
        self.fail_target(token, reason);
    }

    pub(super) fn on_port_closed(&mut self, from: SocketAddr) {
        self.counters.icmp_port_unreachable.increment();
        let Some(token) = self.address_locks.owner(from) else { return };
        let scan = self.scans.get_mut(&token).expect("the owner of an address is in flight");
        if scan.is_sent && !scan.is_over_tcp() && scan.address() == Some(from) {
            return self.end_early(token, MissReason::Refused);
        }
        // Of an earlier quick probe.
        if scan.probes.iter().any(|probe| probe.address == from) {
            scan.closed_ports.push((Transport::Udp, from.port()));
        }
    }

    /// The connection of a scan is open. The handshake took one round trip.
    pub(super) fn on_connected(&mut self, token: ScanToken) {
        self.counters.connections.increment();
        let Some(scan) = self.scans.get_mut(&token) else { return };
        scan.is_connected = true;
        if let Some(ip) = scan.ip() {
            self.silent_hosts.record_reply(ip);
        }
        self.record_round_trip(token, self.now.elapsed);
    }

    /// Bytes were received from the connection of a scan.
    pub(super) fn on_received(&mut self, token: ScanToken, bytes: &[u8]) {
        self.counters.packets_received.increment();
        self.counters.bytes_received.add(bytes.len() as u64);
        let scan = self.scans.get_mut(&token).filter(|scan| scan.is_sent && scan.is_over_tcp());
        let Some(exchange) = scan.and_then(|scan| scan.exchange.as_mut()) else {
            return self.counters.unsolicited.increment();
        };
        let step = exchange.handle_datagram(self.now.unix_ms, bytes);
        self.take_reply(token, self.now, bytes, step);
    }

    /// The connection of a scan has ended. Another scan may have one now.
    pub(super) fn on_connection_ended(&mut self, token: ScanToken, is_refused: bool) {
        if self.connections.record_end(token) {
            self.give_connections();
        }
        let Some(scan) = self.scans.get_mut(&token).filter(|scan| scan.is_over_tcp()) else { return };
        // The next request opens another connection.
        if scan.state != State::AwaitingReply {
            return;
        }
        if is_refused {
            return self.end_early(token, MissReason::Refused);
        }
        if !scan.is_connected {
            // A host or network that cannot be reached.
            return self.end_early(token, MissReason::Timeout);
        }
        if let Some(capture) = &mut scan.capture {
            capture.add(self.now.unix_ms, b"");
        }
        let exchange = scan.exchange.as_mut().expect("the exchange has started");
        match exchange.handle_end(self.now.unix_ms) {
            // Also the same request, on a new connection, which counts for the limits.
            Step::Send => {
                (scan.sends, scan.permits) = (0, 0);
                self.acquire_permits(token);
            }
            step => self.follow(token, step, b""),
        }
    }

    /// Lets the scans that wait for a connection send their requests, as long as there are connections.
    pub(super) fn give_connections(&mut self) {
        while let Some(token) = self.connections.next_waiting(self.settings.tcp_connections_max) {
            let scan = self.scans.get_mut(&token).filter(|scan| scan.state == State::AwaitingConnection);
            let Some(scan) = scan else { continue };
            let waited = scan.waits_since.take().map(|since| self.now.elapsed.saturating_sub(since));
            if waited.is_some_and(|waited| waited < COOLDOWN) {
                self.send(token);
            } else {
                // Its permits are those of another time: many scans of one address may have waited.
                scan.permits = 0;
                self.acquire_permits(token);
                let is_throttled = self.scans.get(&token).is_some_and(|scan| scan.state == State::Throttled);
                if is_throttled {
                    // Stop here until the next input. If all waiting scans took permits now, most would find no
                    // connection when these are granted, and would have to take permits again.
                    return;
                }
            }
        }
    }

    fn record_round_trip(&mut self, token: ScanToken, at: Duration) {
        let Some(scan) = self.scans.get_mut(&token).filter(|scan| scan.rtt_ms.is_none()) else { return };
        let Some(sent_at) = scan.last_sent else { return };
        let rtt_ms = at.saturating_sub(sent_at).as_millis().min(u32::MAX.into()) as u32;
        scan.rtt_ms = Some(rtt_ms);
        self.round_trips.record(scan.request.server, rtt_ms);
    }

    /// A datagram was received. `at`: its arrival.
    pub(super) fn on_datagram(&mut self, socket: usize, from: SocketAddr, at: Moment, bytes: &[u8]) {
        self.counters.packets_received.increment();
        self.counters.bytes_received.add(bytes.len() as u64);
        let Some(token) = self.address_locks.owner(from) else { return self.counters.unsolicited.increment() };
        let scan = self.scans.get_mut(&token).expect("the owner of an address is in flight");
        let is_asked = scan.is_sent && !scan.is_over_tcp() && scan.socket == socket && scan.address() == Some(from);
        let exchange = scan.exchange.as_mut().filter(|_| is_asked);
        let own = exchange.map(|exchange| exchange.handle_datagram(at.unix_ms, bytes));
        if matches!(own, None | Some(Step::Ignore(_)))
            && let Some(step) = scan.take_late_reply(socket, from, at.unix_ms, bytes)
        {
            self.close_connection(token);
            return self.take_reply(token, at, bytes, step);
        }
        match own {
            Some(step) => self.take_reply(token, at, bytes, step),
            None => self.counters.unsolicited.increment(),
        }
    }

    /// What a server sent has given the exchange of its scan this step.
    fn take_reply(&mut self, token: ScanToken, at: Moment, bytes: &[u8], step: Step) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        if let Some(capture) = &mut scan.capture {
            capture.add(at.unix_ms, bytes);
        }
        // Also what is not usable yet: some servers must answer twice.
        if let Some(ip) = scan.ip() {
            self.silent_hosts.record_reply(ip);
        }
        if !matches!(step, Step::Ignore(_) | Step::Fail(_)) {
            if !std::mem::replace(&mut scan.is_answered, true) && scan.target().effort == Effort::QuickProbe {
                // The rest of the reply may take longer than the next probe would have waited.
                let deadline = self.now.elapsed + scan.timeout(&self.settings, &self.round_trips);
                scan.deadline = Some(deadline);
                self.timers.set(deadline, token);
            }
            scan.held_bytes += bytes.len();
            self.held_bytes += bytes.len();
            self.record_round_trip(token, at.elapsed);
        }
        self.follow(token, step, bytes);
    }

    /// Does what the exchange of a scan wants. `bytes`: what the server sent last.
    fn follow(&mut self, token: ScanToken, step: Step, bytes: &[u8]) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        let exchange = scan.exchange.as_ref().expect("the exchange has started");
        match step {
            Step::Ignore(reason) => {
                scan.received_invalid = true;
                self.counters.ignored(reason).increment();
                scan.malformed_bytes += if reason == IgnoreReason::Malformed { bytes.len() } else { 0 };
                if scan.malformed_bytes > MALFORMED_BYTES_MAX {
                    self.end_early(token, MissReason::Malformed);
                }
            }
            Step::Wait if scan.held_bytes > INCOMPLETE_BYTES_PER_SCAN_MAX => {
                self.end_early(token, MissReason::Malformed)
            }
            Step::Wait if self.held_bytes > INCOMPLETE_REPLY_BYTES_MAX => {
                self.counters.incomplete_replies_dropped.increment();
                self.end_early(token, MissReason::ReceiveOverflow);
            }
            Step::Fail(reason) => {
                self.counters.ignored(reason).increment();
                self.end_early(token, MissReason::Malformed);
            }
            Step::Wait => {}
            // A challenge that arrived twice. The same packet again would be a resend, and those have a pause.
            Step::Send if exchange.request() == scan.last_packet => {}
            Step::Send => {
                // A new request has its own resends.
                scan.sends = 0;
                self.acquire_permits(token);
            }
            Step::Done(snapshot) => self.complete_scan(token, Ok(*snapshot), bytes),
        }
    }

    /// Ends a scan with the partial snapshot that it has, or else its target.
    pub(super) fn end_early(&mut self, token: ScanToken, reason: MissReason) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        match scan.exchange.as_mut().and_then(|exchange| exchange.partial_snapshot()) {
            Some(snapshot) => self.finish_scan(token, Ok(snapshot)),
            None => self.fail_target(token, reason),
        }
    }

    /// The current target failed: continue with the next, or end the scan.
    pub(super) fn fail_target(&mut self, token: ScanToken, reason: MissReason) {
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        let Some(next) = scan.next_target(reason) else {
            return self.fail_address(token, reason);
        };
        scan.record_attempt(Err(reason));
        scan.deadline = None;
        // Replies to quick probes may still come from their addresses.
        let is_released = scan.probes.is_empty();
        self.close_connection(token);
        if is_released {
            self.release_addresses(token);
        }
        self.scans.get_mut(&token).expect("a scan in flight").target_index = next;
        self.begin_target(token);
    }

    /// Ends a scan that no datagram completes.
    pub(super) fn finish_scan(&mut self, token: ScanToken, result: Result<Snapshot, MissReason>) {
        self.complete_scan(token, result, b"");
    }

    /// Ends a scan. `last_datagram`: the one that completed it.
    fn complete_scan(&mut self, token: ScanToken, result: Result<Snapshot, MissReason>, last_datagram: &[u8]) {
        self.release_addresses(token);
        let mut scan = self.scans.remove(&token).expect("a scan in flight");
        self.held_bytes -= scan.held_bytes;
        if let Some(enough) = scan.exchange.as_ref().and_then(|exchange| exchange.announced_enough()) {
            *self.announce_enough.entry(scan.request.server).or_insert(true) &= enough;
        }
        let authentication = scan.exchange.as_ref().map(|exchange| exchange.authentication());
        let authentication = authentication.filter(|_| result.is_ok());
        let exchange = scan.exchange.as_ref().filter(|_| result.is_ok());
        let wanted = scan.request.wants_settings.then_some(DetailLevel::Rules);
        let details = self.settings.details.or(wanted).zip(exchange);
        let details = details.map(|(level, exchange)| Box::new(exchange.details(last_datagram, level)));
        let mut result = result;
        if let Ok(snapshot) = &mut result
            && scan.request.mode == ScanMode::Normal
            && self.is_chance_answer(scan.request.server, scan.target())
        {
            withhold_list(snapshot);
        }
        if let Ok(snapshot) = &mut result
            && authentication.is_some_and(|grade| grade < self.settings.authentication_min)
        {
            self.counters.unauthenticated.increment();
            withhold_list(snapshot);
        }
        if let Ok(snapshot) = &mut result {
            snapshot.drop_impossible_values();
        }
        scan.record_attempt(result.as_ref().map(|_| ()).map_err(|&reason| reason));
        let result = result.map_err(|reason| scan.shown_miss.unwrap_or(reason));
        match &result {
            Ok(Snapshot { completeness: Completeness::Full, .. }) => self.counters.snapshots.increment(),
            Ok(_) => self.counters.partials.increment(),
            Err(reason) => self.counters.miss(*reason).increment(),
        }
        self.outcomes.push_back(ScanOutcome {
            id: scan.request.id,
            server: scan.request.server,
            sent_ms: scan.first_sent_ms,
            rtt_ms: scan.rtt_ms.filter(|_| result.is_ok()),
            result: result.map_err(|reason| Miss { t_ms: self.now.unix_ms, reason }),
            authentication,
            details,
            capture: scan.capture,
            attempts: scan.tried,
        });
    }

    /// Records which protocol a server has answered. Returns whether its own was probably lost by chance.
    fn is_chance_answer(&mut self, server: ServerKey, target: Target) -> bool {
        if target.protocol.is_fallback {
            let answers = self.fallback_answers.entry(server).or_insert(FALLBACK_ANSWERS_MIN);
            *answers = if *answers == u8::MAX { FALLBACK_ANSWERS_MIN } else { *answers + 1 };
            return !self.answers_fallback(server);
        }
        if target.protocol.fallback.is_some() {
            self.fallback_answers.insert(server, 0);
        }
        false
    }

    /// Closes the connection of a scan, if it has one, which then another scan may have.
    fn close_connection(&mut self, token: ScanToken) {
        if self.connections.close(token) {
            self.give_connections();
        }
    }

    /// Releases the addresses of a scan, or leaves their queues, and passes each to the next scan.
    pub(super) fn release_addresses(&mut self, token: ScanToken) {
        self.close_connection(token);
        let scan = self.scans.get_mut(&token).expect("a scan in flight");
        for address in std::mem::take(&mut scan.locked) {
            let Some(next) = self.address_locks.release(address, token) else { continue };
            // The next scan starts from a timer, so ending one scan does not start another recursively.
            let at = self.address_locks.cooldown_end(address).max(self.now.elapsed);
            let scan = self.scans.get_mut(&next).expect("a queued scan is in flight");
            scan.start_cooldown(&mut self.timers, next, at);
        }
    }
}

/// Makes a snapshot partial, because its authentication is too weak, or because it is that of a fallback, so that its
/// players are not ranked, also by a replay. The player count remains.
fn withhold_list(snapshot: &mut Snapshot) {
    if snapshot.completeness == Completeness::Full {
        if snapshot.count.is_none() {
            snapshot.count = Some(snapshot.players.len() as u32);
            snapshot.bots = Some(snapshot.players.iter().filter(|player| player.bot).count() as u32);
        }
        snapshot.completeness = Completeness::Partial;
    }
}
