//! The thread of one protocol: receives queries, sends replies.

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "the time of the simulated world"))]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, sendmsg};

use super::query_receiver::{QueryReceiver, ReceivedQuery};
use super::rate_limiter::{Excess, RateLimiter};
use super::shared::Shared;
use crate::fleet::address;
use crate::fleet::faults::{Fault, OutgoingDatagram, apply_fault, loses_datagram};
use crate::fleet::protocol::Protocol;
use crate::fleet::reply::{self, Listing, Peers, Spoofing};
use crate::fleet::rng::{RngExt, SplitMix64, hash_parts};
use crate::fleet::wire::{Datagrams, ProtocolVariant};
use crate::fleet::world::World;

/// Players that an incomplete reply announces and does not list: more than a client tolerates of a list of up
/// to 64 players (docs/rules.md section 14).
pub(super) const MISSING_PLAYERS: usize = 12;

/// Maximum number of delayed datagrams; further ones are dropped and counted.
const DELAYED_MAX: usize = 100_000;

/// One protocol's socket and the state of its thread.
pub(super) struct Responder {
    protocol: Protocol,
    port: u16,
    socket: UdpSocket,
    shared: Arc<Shared>,
    rng: SplitMix64,
    delayed: BinaryHeap<Reverse<DelayedDatagram>>,
    /// Number of delayed datagrams so far.
    delayed_count: u64,
    rate_limiter: Option<RateLimiter>,
    reply: Datagrams,
}

/// A delayed datagram. Ordered by due time, then by number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DelayedDatagram {
    due: Instant,
    number: u64,
    to: SocketAddrV4,
    from: Ipv4Addr,
    bytes: Vec<u8>,
}

/// Datagrams to be sent now, in one buffer.
#[derive(Default)]
struct SendBuffer {
    bytes: Vec<u8>,
    /// End of the datagram in `bytes`, destination, source address.
    items: Vec<(usize, SocketAddrV4, Ipv4Addr)>,
}

impl SendBuffer {
    fn push(&mut self, bytes: &[u8], to: SocketAddrV4, from: Ipv4Addr) {
        self.bytes.extend_from_slice(bytes);
        self.items.push((self.bytes.len(), to, from));
    }
}

impl Responder {
    pub(super) fn new(protocol: Protocol, socket: UdpSocket, port: u16, shared: Arc<Shared>) -> Responder {
        let rate_limit = (shared.settings.rate_limit)(protocol);
        Responder {
            protocol,
            port,
            rng: SplitMix64::from_parts(&[shared.seed, 0x1A4E, u64::from(port)]),
            socket,
            shared,
            delayed: BinaryHeap::new(),
            delayed_count: 0,
            rate_limiter: rate_limit.map(RateLimiter::new),
            reply: Datagrams::default(),
        }
    }

    pub(super) fn run(mut self) {
        let mut receiver = QueryReceiver::new();
        let mut send_buffer = SendBuffer::default();
        let shared = Arc::clone(&self.shared);
        while !shared.stopping.load(Ordering::Relaxed) {
            // An error is a timeout or a signal: a batch without queries.
            let rejected = receiver.receive(&self.socket, shared.servers).unwrap_or(0);
            add(&shared.counters.rejected, rejected);
            if !receiver.is_empty() {
                let now_ms = shared.now_ms();
                let mut world = shared.lock();
                for (query, bytes) in receiver.queries() {
                    self.answer(&mut world, now_ms, query, bytes, &mut send_buffer);
                }
            }
            self.send_now(&mut send_buffer);
            self.send_due();
        }
    }

    fn answer(
        &mut self,
        world: &mut World,
        now_ms: i64,
        received: &ReceivedQuery,
        query: &[u8],
        send_buffer: &mut SendBuffer,
    ) {
        let shared = Arc::clone(&self.shared);
        let &ReceivedQuery { server, client, .. } = received;
        increment(&shared.counters.queries);
        if world.protocol(server) != self.protocol {
            return increment(&shared.counters.rejected);
        }
        let fault = shared.settings.faults.fault(shared.seed, server);
        let lost = fault == Some(Fault::Lossy) && loses_datagram(&mut self.rng);
        if lost || fault == Some(Fault::Silent) {
            return;
        }
        let excess = self.rate_limiter.as_mut().filter(|_| has_rate_limit(world, server));
        let excess = excess.and_then(|limiter| (!limiter.allows(server, *client.ip())).then_some(limiter.excess()));
        if excess.is_some() {
            increment(&shared.counters.rate_limited);
        }
        if excess == Some(Excess::Ignored) {
            return;
        }
        world.advance(server, now_ms);
        self.reply.clear();
        let partial = fault == Some(Fault::Partial) && self.rng.bool(0.5);
        let client_id = hash_parts(&[u64::from(client.ip().to_bits()), u64::from(client.port())]);
        let peers = Peers { server, port: self.port, client: client_id };
        let listing = match excess {
            Some(_) => Listing::Withheld,
            None => Listing::Missing(if partial { MISSING_PLAYERS } else { 0 }),
        };
        if reply::reply(world, peers, query, listing, &mut self.rng, &mut self.reply).is_none() {
            return increment(&shared.counters.rejected);
        }
        let spoofed = (fault == Some(Fault::Spoofed)).then(|| {
            let spoofing = if self.rng.bool(0.5) { Spoofing::Address } else { Spoofing::Nonce };
            reply::spoofed_reply(world, peers, query, spoofing, &mut self.rng)
        });
        increment(&shared.counters.replies);
        let own = address::address_of(server);
        let Some(fault) = fault else {
            return self.reply.iter().for_each(|bytes| send_buffer.push(bytes, client, own));
        };
        for OutgoingDatagram { from, bytes, delay_ms } in
            apply_fault(fault, self.protocol, server, &self.reply, spoofed.as_ref(), &mut self.rng)
        {
            if delay_ms == 0 {
                send_buffer.push(&bytes, client, from);
            } else if self.delayed.len() < DELAYED_MAX {
                self.delayed_count += 1;
                let due = Instant::now() + Duration::from_millis(delay_ms);
                self.delayed.push(Reverse(DelayedDatagram {
                    due,
                    number: self.delayed_count,
                    to: client,
                    from,
                    bytes,
                }));
            } else {
                increment(&shared.counters.send_failures);
            }
        }
    }

    fn send_now(&self, send_buffer: &mut SendBuffer) {
        let mut from = 0;
        for &(end, to, source) in &send_buffer.items {
            self.send(&send_buffer.bytes[from..end], to, source);
            from = end;
        }
        send_buffer.bytes.clear();
        send_buffer.items.clear();
    }

    fn send_due(&mut self) {
        while self.delayed.peek().is_some_and(|Reverse(first)| first.due <= Instant::now()) {
            let Some(Reverse(datagram)) = self.delayed.pop() else { return };
            self.send(&datagram.bytes, datagram.to, datagram.from);
        }
    }

    fn send(&self, bytes: &[u8], to: SocketAddrV4, source: Ipv4Addr) {
        let info = libc::in_pktinfo {
            ipi_ifindex: 0,
            ipi_spec_dst: libc::in_addr { s_addr: source.to_bits().to_be() },
            ipi_addr: libc::in_addr { s_addr: 0 },
        };
        let sent = sendmsg(
            self.socket.as_raw_fd(),
            &[IoSlice::new(bytes)],
            &[ControlMessage::Ipv4PacketInfo(&info)],
            MsgFlags::empty(),
            Some(&SockaddrIn::from(to)),
        );
        let counters = &self.shared.counters;
        increment(if sent.is_ok() { &counters.datagrams_sent } else { &counters.send_failures });
    }
}

/// Whether a server runs the program that the limit of its protocol belongs to.
fn has_rate_limit(world: &World, server: u32) -> bool {
    let profile = world.profile(server);
    profile.game.protocol != Protocol::Teeworlds
        || ProtocolVariant::of(world.settings().seed, server, profile).teeworlds_extended
}

pub(super) fn increment(counter: &AtomicU64) {
    add(counter, 1);
}

pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
