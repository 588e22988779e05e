//! A network in virtual time between a virtual scanner and a world of game servers. It
//! carries the real packets of the real protocols, and it loses, duplicates, delays,
//! reorders and corrupts them, and lets spoofed replies arrive first, in addition to each
//! server's own fault (`clqd::fleet::faults`). No sockets, no clock: the time is an
//! argument of each call.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4};

use clqd::fleet::address;
use clqd::fleet::faults::{
    FORGED_NAME, FORGED_POINTS, Fault, FaultShares, OutgoingDatagram, SpoofedReply, apply_fault, loses_datagram,
};
use clqd::fleet::games::Family;
use clqd::fleet::rng::{Rng, hash_parts};
use clqd::fleet::wire::{self, ClientQuery, Datagrams, ProtocolVariant};
use clqd::fleet::world::World;
use clqd::model::Player;

pub const QUAKE3_PORT: u16 = 27_960;
pub const SOURCE_PORT: u16 = 27_015;

/// More of each fault than a fleet usually has.
const FAULTS: FaultShares = FaultShares {
    silent: 0.03,
    slow: 0.03,
    lossy: 0.05,
    duplicating: 0.03,
    spoofed: 0.03,
    malformed: 0.02,
    partial: 0.03,
};

/// Share of all datagrams, in each direction.
const LOST: f64 = 0.02;
const DOUBLED: f64 = 0.02;
/// Share of replies that a spoofed reply precedes, or that are corrupted.
const FORGED: f64 = 0.01;
const SPOILT: f64 = 0.01;

/// Points by name, in order: a list as a server sent it.
pub type List = Vec<(String, i64)>;

pub struct VirtualNetwork {
    pub world: World,
    seed: u64,
    rng: Rng,
    in_flight: BinaryHeap<Reverse<Datagram>>,
    number: u64,
    /// The lists that each server sent recently, with their times.
    told: HashMap<SocketAddrV4, Vec<(i64, List)>>,
    pub lost: u64,
    pub doubled: u64,
    pub forged: u64,
    pub spoilt: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Datagram {
    at_ms: i64,
    /// Distinguishes arrivals at the same time.
    number: u64,
    /// The process of the daemon that sent the request; a later one has another port.
    life: u32,
    way: Route,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Route {
    To(SocketAddrV4),
    From(SocketAddrV4),
}

/// A datagram that arrives at the scanner.
pub struct Delivery {
    pub life: u32,
    pub from: SocketAddrV4,
    pub bytes: Vec<u8>,
}

impl VirtualNetwork {
    pub fn new(world: World) -> VirtualNetwork {
        let seed = world.settings().seed;
        VirtualNetwork {
            world,
            seed,
            rng: Rng::new(&[seed, 0x4E7]),
            in_flight: BinaryHeap::new(),
            number: 0,
            told: HashMap::new(),
            lost: 0,
            doubled: 0,
            forged: 0,
            spoilt: 0,
        }
    }

    pub fn url(&self, server: u32) -> String {
        let family = self.world.family(server);
        format!("{}://{}:{}", family.scheme(), address::address_of(server), port(family))
    }

    /// Whether the server's host is off: one in thirty goes off for an hour, some time after
    /// its first scan.
    pub fn is_down(&self, server: u32, now_ms: i64) -> bool {
        let fate = hash_parts(&[self.seed, 0x0FF, u64::from(server)]);
        let from_ms = self.world.settings().start_ms + 45 * 60_000 + (fate >> 32) as i64 % (40 * 60_000);
        fate.is_multiple_of(30) && (from_ms..from_ms + 3_600_000).contains(&now_ms)
    }

    /// When `receive` has the next datagram.
    pub fn next_ms(&self) -> Option<i64> {
        self.in_flight.peek().map(|Reverse(datagram)| datagram.at_ms)
    }

    /// Sends a query from the scanner.
    pub fn send(&mut self, now_ms: i64, life: u32, to: SocketAddrV4, bytes: Vec<u8>) {
        self.enqueue(now_ms, life, Route::To(to), bytes);
    }

    /// The next datagram that has arrived at the scanner by now. Queries that have arrived at
    /// their servers are answered first.
    pub fn receive(&mut self, now_ms: i64) -> Option<Delivery> {
        while self.in_flight.peek().is_some_and(|Reverse(first)| first.at_ms <= now_ms) {
            let Reverse(datagram) = self.in_flight.pop()?;
            match datagram.way {
                Route::To(to) => self.answer(datagram.at_ms, datagram.life, to, &datagram.bytes),
                Route::From(from) => return Some(Delivery { life: datagram.life, from, bytes: datagram.bytes }),
            }
        }
        None
    }

    /// Drops lists that are too old to be still in flight.
    pub fn expire_sent_lists(&mut self, by: SocketAddrV4, now_ms: i64) {
        if let Some(told) = self.told.get_mut(&by) {
            told.retain(|(at_ms, _)| now_ms - at_ms < 10_000);
        }
    }

    pub fn told(&self, by: SocketAddrV4) -> impl Iterator<Item = &List> {
        self.told.get(&by).into_iter().flatten().map(|(_, list)| list)
    }

    fn enqueue(&mut self, now_ms: i64, life: u32, way: Route, bytes: Vec<u8>) {
        let (Route::To(peer) | Route::From(peer)) = way;
        if self.rng.bool(LOST) {
            self.lost += 1;
            return;
        }
        let copies = 1 + usize::from(self.rng.bool(DOUBLED));
        self.doubled += copies as u64 - 1;
        for _ in 0..copies {
            // Half a round trip of 10 to 200 ms, and at times much more: what was sent later comes first.
            let distance_ms = 5 + (hash_parts(&[self.seed, 0xD157, u64::from(peer.ip().to_bits())]) % 95) as i64;
            let jitter_ms_max = if self.rng.bool(0.02) { 1_500 } else { 8 };
            let jitter_ms = self.rng.below(jitter_ms_max) as i64;
            self.number += 1;
            self.in_flight.push(Reverse(Datagram {
                at_ms: now_ms + distance_ms + jitter_ms,
                number: self.number,
                life,
                way,
                bytes: bytes.clone(),
            }));
        }
    }

    fn answer(&mut self, now_ms: i64, life: u32, to: SocketAddrV4, query: &[u8]) {
        let server = address::server_at(*to.ip()).filter(|&server| server < self.world.servers());
        let Some(server) = server.filter(|&server| port(self.world.family(server)) == to.port()) else { return };
        let family = self.world.family(server);
        let Some(query) = ClientQuery::parse(family, query) else { return };
        let mut fault = FAULTS.fault(self.seed, server);
        if self.is_down(server, now_ms) {
            return;
        }
        if fault == Some(Fault::Silent) || (fault == Some(Fault::Lossy) && loses_datagram(&mut self.rng)) {
            return;
        }
        self.world.advance(server, now_ms);
        let missing = usize::from(fault == Some(Fault::Partial) && self.rng.bool(0.5));
        let reply = self.reply(server, to, life, now_ms, query, missing);
        if fault.is_none() {
            fault = match self.rng.unit() {
                x if x < FORGED => Some(Fault::Spoofed),
                x if x < FORGED + SPOILT => Some(Fault::Malformed),
                _ => None,
            };
        }
        self.spoilt += u64::from(fault == Some(Fault::Malformed));
        let forgery = (fault == Some(Fault::Spoofed)).then(|| self.forgery(server, query));
        let at_once = |bytes: &[u8]| OutgoingDatagram { from: *to.ip(), bytes: bytes.to_vec(), delay_ms: 0 };
        let sendings = match fault {
            Some(fault) => apply_fault(fault, family, server, &reply, forgery.as_ref(), &mut self.rng),
            None => reply.iter().map(at_once).collect(),
        };
        for OutgoingDatagram { from, bytes, delay_ms } in sendings {
            self.enqueue(now_ms + delay_ms as i64, life, Route::From(SocketAddrV4::new(from, to.port())), bytes);
        }
    }

    fn reply(
        &mut self,
        server: u32,
        to: SocketAddrV4,
        life: u32,
        now_ms: i64,
        query: ClientQuery,
        missing: usize,
    ) -> Datagrams {
        let mut out = Datagrams::default();
        let snapshot = self.world.snapshot(server);
        let nature = self.world.nature(server);
        let variant = ProtocolVariant::of(self.seed, server, nature);
        let challenge = wire::challenge(self.seed, server, u64::from(life));
        if let ClientQuery::Status { .. } | ClientQuery::A2sPlayer { .. } = query {
            let list = snapshot.players.iter().map(|p| (p.name.to_string(), p.points.unwrap())).collect();
            self.told.entry(to).or_default().push((now_ms, list));
        }
        match query {
            ClientQuery::Status { challenge } => wire::quake3_status(&snapshot, challenge, &mut out),
            ClientQuery::Info { challenge } => wire::quake3_info(&snapshot, challenge, &mut out),
            ClientQuery::A2sInfo { challenge: given } if variant.info_challenge && given != Some(challenge) => {
                wire::a2s_challenge(challenge, &mut out);
            }
            ClientQuery::A2sInfo { .. } => {
                wire::a2s_info(&snapshot, nature, &variant, snapshot.players.len(), to.port(), &mut out);
            }
            ClientQuery::A2sPlayer { challenge: given } | ClientQuery::A2sRules { challenge: given }
                if given != challenge =>
            {
                wire::a2s_challenge(challenge, &mut out);
            }
            ClientQuery::A2sPlayer { .. } => {
                let players = &snapshot.players;
                wire::a2s_players(players, players.len() + missing, &variant, self.rng.next_u64() as u32, &mut out);
            }
            ClientQuery::A2sRules { .. } => wire::a2s_rules(&mut out),
        }
        out
    }

    /// A spoofed reply with a wrong nonce from the server's address, or with the right nonce from another address.
    fn forgery(&mut self, server: u32, query: ClientQuery) -> SpoofedReply {
        self.forged += 1;
        let mut snapshot = self.world.snapshot(server);
        let forged = |number| Player {
            name: format!("{FORGED_NAME}{number}").into(),
            points: Some(FORGED_POINTS),
            ping: Some(50),
            connected_ms: Some(600_000),
            bot: false,
            spectator: false,
        };
        snapshot.players = (1..=6).map(forged).collect();
        let nature = self.world.nature(server);
        let variant = ProtocolVariant::of(self.seed, server, nature);
        let mut reply = Datagrams::default();
        let guessing = self.rng.bool(0.5);
        match query {
            ClientQuery::Status { challenge } => {
                wire::quake3_status(&snapshot, if guessing { b"0123456789abcdef" } else { challenge }, &mut reply);
            }
            ClientQuery::A2sInfo { .. } => wire::a2s_info(&snapshot, nature, &variant, 6, SOURCE_PORT, &mut reply),
            ClientQuery::A2sPlayer { .. } => wire::a2s_players(&snapshot.players, 6, &variant, 7, &mut reply),
            ClientQuery::Info { .. } | ClientQuery::A2sRules { .. } => {}
        }
        // A2S repeats no nonce: from the server's own address nothing would be wrong.
        let blind = guessing && matches!(query, ClientQuery::Status { .. });
        let from: Ipv4Addr = if blind { address::address_of(server) } else { address::spoofing_address(server) };
        SpoofedReply { from, reply }
    }
}

pub fn port(family: Family) -> u16 {
    match family {
        Family::Quake3 => QUAKE3_PORT,
        Family::Source => SOURCE_PORT,
    }
}
