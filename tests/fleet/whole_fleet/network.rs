//! A network in virtual time between a virtual scanner and a world of game servers. It
//! carries the real packets of the real protocols, and it loses, duplicates, delays,
//! reorders and corrupts them, and lets spoofed replies arrive first, in addition to each
//! server's own fault (`clqd::fleet::faults`). No sockets, no clock: the time is an
//! argument of each call.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddrV4;

use clqd::fleet::address;
use clqd::fleet::faults::{Fault, FaultShares, OutgoingDatagram, apply_fault, loses_datagram};
use clqd::fleet::protocol::Protocol;
use clqd::fleet::reply::{self, Listing, Peers, Spoofing};
use clqd::fleet::rng::{RngExt, SplitMix64, hash_parts};
use clqd::fleet::wire::{Answer, Datagrams};
use clqd::fleet::world::World;

/// More of each fault than a fleet usually has, in the order of [`Fault`].
const FAULTS: FaultShares = FaultShares::new([0.03, 0.03, 0.05, 0.03, 0.03, 0.02, 0.03]);

/// Shares of all datagrams, in each direction.
const LOST: f64 = 0.02;
const DUPLICATED: f64 = 0.02;
/// Shares of the replies of servers without a fault.
const SPOOFED: f64 = 0.01;
const CORRUPTED: f64 = 0.01;

/// Points by name, in order: a list as a server sent it.
pub type List = Vec<(String, i64)>;

pub struct VirtualNetwork {
    pub world: World,
    seed: u64,
    rng: SplitMix64,
    in_flight: BinaryHeap<Reverse<Datagram>>,
    number: u64,
    /// The lists that each server sent recently, with their times.
    sent_lists: HashMap<SocketAddrV4, Vec<(i64, List)>>,
    pub lost: u64,
    pub duplicated: u64,
    pub spoofed: u64,
    pub corrupted: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Datagram {
    at_ms: i64,
    /// Distinguishes arrivals at the same time.
    number: u64,
    /// The process of the daemon that sent the request; a later one has another port.
    instance: u32,
    route: Route,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Route {
    To(SocketAddrV4),
    From(SocketAddrV4),
}

/// A datagram that arrives at the scanner.
pub struct Delivery {
    /// The process that sent the request.
    pub instance: u32,
    pub from: SocketAddrV4,
    pub bytes: Vec<u8>,
}

impl VirtualNetwork {
    pub fn new(world: World) -> VirtualNetwork {
        let seed = world.settings().seed;
        VirtualNetwork {
            world,
            seed,
            rng: SplitMix64::from_parts(&[seed, 0x4E7]),
            in_flight: BinaryHeap::new(),
            number: 0,
            sent_lists: HashMap::new(),
            lost: 0,
            duplicated: 0,
            spoofed: 0,
            corrupted: 0,
        }
    }

    pub fn url(&self, server: u32) -> String {
        let protocol = self.world.protocol(server);
        format!("{}://{}:{}", protocol.scheme(), address::address_of(server), port(protocol))
    }

    /// Whether the server's host is off: one in thirty goes off for an hour, some time after
    /// its first scan.
    pub fn is_down(&self, server: u32, now_ms: i64) -> bool {
        let bits = hash_parts(&[self.seed, 0x0FF, u64::from(server)]);
        let from_ms = self.world.settings().start_ms + 45 * 60_000 + (bits >> 32) as i64 % (40 * 60_000);
        bits.is_multiple_of(30) && (from_ms..from_ms + 3_600_000).contains(&now_ms)
    }

    /// When `receive` has the next datagram.
    pub fn next_ms(&self) -> Option<i64> {
        self.in_flight.peek().map(|Reverse(datagram)| datagram.at_ms)
    }

    /// Sends a query from the scanner.
    pub fn send(&mut self, now_ms: i64, instance: u32, to: SocketAddrV4, bytes: Vec<u8>) {
        self.enqueue(now_ms, instance, Route::To(to), bytes);
    }

    /// The next datagram that has arrived at the scanner by now. Queries that have arrived at
    /// their servers are answered first.
    pub fn receive(&mut self, now_ms: i64) -> Option<Delivery> {
        while self.in_flight.peek().is_some_and(|Reverse(first)| first.at_ms <= now_ms) {
            let Reverse(datagram) = self.in_flight.pop()?;
            match datagram.route {
                Route::To(to) => self.answer(datagram.at_ms, datagram.instance, to, &datagram.bytes),
                Route::From(from) => {
                    return Some(Delivery { instance: datagram.instance, from, bytes: datagram.bytes });
                }
            }
        }
        None
    }

    /// Drops lists that are too old to be still in flight.
    pub fn expire_sent_lists(&mut self, by: SocketAddrV4, now_ms: i64) {
        if let Some(lists) = self.sent_lists.get_mut(&by) {
            lists.retain(|(at_ms, _)| now_ms - at_ms < 10_000);
        }
    }

    /// The lists that a server sent recently.
    pub fn sent_lists(&self, by: SocketAddrV4) -> impl Iterator<Item = &List> {
        self.sent_lists.get(&by).into_iter().flatten().map(|(_, list)| list)
    }

    fn enqueue(&mut self, now_ms: i64, instance: u32, route: Route, bytes: Vec<u8>) {
        let (Route::To(peer) | Route::From(peer)) = route;
        if self.rng.bool(LOST) {
            self.lost += 1;
            return;
        }
        let copies = 1 + usize::from(self.rng.bool(DUPLICATED));
        self.duplicated += copies as u64 - 1;
        for _ in 0..copies {
            // Half a round trip of 10 to 200 ms, and sometimes much more, so that a later datagram
            // arrives first.
            let distance_ms = 5 + (hash_parts(&[self.seed, 0xD157, u64::from(peer.ip().to_bits())]) % 95) as i64;
            let jitter_ms_max = if self.rng.bool(0.02) { 1_500 } else { 8 };
            let jitter_ms = self.rng.below(jitter_ms_max) as i64;
            self.number += 1;
            self.in_flight.push(Reverse(Datagram {
                at_ms: now_ms + distance_ms + jitter_ms,
                number: self.number,
                instance,
                route,
                bytes: bytes.clone(),
            }));
        }
    }

    fn answer(&mut self, now_ms: i64, instance: u32, to: SocketAddrV4, query: &[u8]) {
        let server = address::server_at(*to.ip()).filter(|&server| server < self.world.servers());
        let Some(server) = server.filter(|&server| port(self.world.protocol(server)) == to.port()) else { return };
        let protocol = self.world.protocol(server);
        let mut fault = FAULTS.fault(self.seed, server);
        if self.is_down(server, now_ms) {
            return;
        }
        if fault == Some(Fault::Silent) || (fault == Some(Fault::Lossy) && loses_datagram(&mut self.rng)) {
            return;
        }
        self.world.advance(server, now_ms);
        let missing = usize::from(fault == Some(Fault::Partial) && self.rng.bool(0.5));
        let peers = Peers { server, port: to.port(), client: u64::from(instance) };
        let mut reply = Datagrams::default();
        let answer = reply::reply(&mut self.world, peers, query, Listing::Missing(missing), &mut self.rng, &mut reply);
        let Some(answer) = answer else { return };
        if answer == Answer::Players {
            let players = self.world.snapshot(server).players;
            let list = players.iter().map(|p| (p.name.to_string(), p.points.unwrap_or(0))).collect();
            self.sent_lists.entry(to).or_default().push((now_ms, list));
        }
        if fault.is_none() {
            fault = match self.rng.unit() {
                x if x < SPOOFED => Some(Fault::Spoofed),
                x if x < SPOOFED + CORRUPTED => Some(Fault::Malformed),
                _ => None,
            };
        }
        self.corrupted += u64::from(fault == Some(Fault::Malformed));
        let spoofed = (fault == Some(Fault::Spoofed)).then(|| {
            self.spoofed += 1;
            let spoofing = if self.rng.bool(0.5) { Spoofing::Address } else { Spoofing::Nonce };
            reply::spoofed_reply(&mut self.world, peers, query, spoofing, &mut self.rng)
        });
        let at_once = |bytes: &[u8]| OutgoingDatagram { from: *to.ip(), bytes: bytes.to_vec(), delay_ms: 0 };
        let datagrams = match fault {
            Some(fault) => apply_fault(fault, protocol, server, &reply, spoofed.as_ref(), &mut self.rng),
            None => reply.iter().map(at_once).collect(),
        };
        for OutgoingDatagram { from, bytes, delay_ms } in datagrams {
            self.enqueue(now_ms + delay_ms as i64, instance, Route::From(SocketAddrV4::new(from, to.port())), bytes);
        }
    }
}

pub fn port(protocol: Protocol) -> u16 {
    protocol.usual_port()
}
