//! Runs the core in virtual time against thousands of simulated servers on a bad network. Each
//! test repeats exactly, whatever the machine does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::*;
use crate::limits::INCOMPLETE_BYTES_PER_SCAN_MAX;
use crate::model::{Completeness, ServerUrl};
use crate::scan::ScanMode;
use crate::scan::address::Subnet;
use crate::scan::settings::COOLDOWN;
use crate::scan::tests::{INFO, status};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Unix ms at the start.
const START_MS: i64 = 1_764_064_800_000;

/// Packets that a turn queues before they are sent.
const PACKETS_PER_TURN: usize = 256;

/// Servers of one host, and hosts of one subnet.
const PORTS: usize = 4;
const HOSTS: usize = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Replies with the nonce of the request.
    Quake3,
    /// Has a challenge for each request.
    Source,
    /// Replies to the first request only once it was sent again.
    DeafOnce,
    Silent,
    Closed,
    /// Replies, and sends junk, and replies with nonces of others.
    Liar,
}

const KINDS: [Kind; 10] = [
    Kind::Quake3,
    Kind::Source,
    Kind::Quake3,
    Kind::Liar,
    Kind::Source,
    Kind::DeafOnce,
    Kind::Quake3,
    Kind::Silent,
    Kind::Source,
    Kind::Closed,
];

/// What the network does to each datagram.
#[derive(Clone, Debug)]
struct Network {
    lost_percent: u32,
    doubled_percent: u32,
    /// Delay of one way, ms.
    delay_ms: std::ops::Range<u32>,
}

static PERFECT: Network = Network { lost_percent: 0, doubled_percent: 0, delay_ms: 10..11 };
static BAD: Network = Network { lost_percent: 15, doubled_percent: 10, delay_ms: 1..400 };

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    ToServer { socket: usize, to: SocketAddr, bytes: Vec<u8> },
    ToCore { socket: usize, from: SocketAddr, bytes: Vec<u8> },
    PortClosed(SocketAddr),
    Resolved(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sent {
    at: Duration,
    to: SocketAddr,
    bytes: Vec<u8>,
}

struct World {
    core: ScanCore,
    kind: fn(usize) -> Kind,
    servers: usize,
    network: &'static Network,
    random: SplitMix64,
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    event_count: u64,
    sent: Vec<Sent>,
    /// For each server: packets that have reached it.
    heard: Vec<usize>,
    /// When a reply that completes a scan arrived, by server.
    complete: BTreeMap<usize, Vec<Duration>>,
}

fn address_of(server: usize) -> SocketAddr {
    let host = server / PORTS;
    let ip = [20, (host / HOSTS / 256) as u8, (host / HOSTS % 256) as u8, 1 + (host % HOSTS) as u8];
    SocketAddr::from((ip, 27_960 + (server % PORTS) as u16))
}

fn server_of(address: SocketAddr) -> usize {
    let IpAddr::V4(ip) = address.ip() else { panic!("{address}") };
    let [_, high, low, host] = ip.octets().map(usize::from);
    ((high * 256 + low) * HOSTS + host - 1) * PORTS + usize::from(address.port() - 27_960)
}

impl World {
    fn new(
        settings: ScanSettings,
        servers: usize,
        kind: fn(usize) -> Kind,
        network: &'static Network,
        seed: u64,
    ) -> World {
        let sockets = SocketCounts { v4: 2, v6: 0 };
        World {
            core: ScanCore::new(settings, sockets, NonceKey::new([7; 16]), Arc::default()),
            kind,
            servers,
            network,
            random: SplitMix64::seed_from_u64(seed),
            now: Duration::ZERO,
            events: BinaryHeap::new(),
            event_count: 0,
            sent: Vec::new(),
            heard: vec![0; servers],
            complete: BTreeMap::new(),
        }
    }

    fn moment(&self) -> Moment {
        Moment { elapsed: self.now, unix_ms: START_MS + self.now.as_millis() as i64 }
    }

    fn handle(&mut self, input: Input<'_>) {
        let now = self.moment();
        self.core.handle(input, now);
    }

    /// Requests a scan of the server with this key.
    fn request(&mut self, id: u64, url: ServerUrl, mode: ScanMode) {
        self.handle(Input::Request(ScanRequest { id, server: ServerKey(id as u32), url, mode, wants_settings: false }));
    }

    fn one_of(&mut self, count: u32) -> u32 {
        (self.random.next_u64() % u64::from(count)) as u32
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        self.event_count += 1;
        self.events.push(Reverse((self.now + after, self.event_count, event)));
    }

    /// A datagram is lost, arrives, or arrives twice, each time after its own delay.
    fn transmit(&mut self, event: &Event) {
        let Network { lost_percent, doubled_percent, delay_ms } = self.network.clone();
        let copies = match self.one_of(100) {
            roll if roll < lost_percent => 0,
            roll if roll < lost_percent + doubled_percent => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let delay_ms = delay_ms.start + self.one_of(delay_ms.end - delay_ms.start);
            self.schedule(MS(delay_ms.into()), event.clone());
        }
    }

    fn url(&self, server: usize) -> ServerUrl {
        let scheme = if (self.kind)(server) == Kind::Source { "source" } else { "quake3" };
        // Some have a host name.
        let host =
            if server.is_multiple_of(7) { format!("s{server}.test") } else { address_of(server).ip().to_string() };
        ServerUrl::parse(&format!("{scheme}://{host}:{}", address_of(server).port())).unwrap()
    }

    /// Scans these servers and returns an outcome for each request, in the order of their end.
    fn scan(&mut self, requests: &[usize]) -> Vec<ScanOutcome> {
        let mut waiting = requests.iter().copied().enumerate();
        let mut outcomes = Vec::new();
        while outcomes.len() < requests.len() {
            while self.core.has_capacity() && self.core.packets_queued() < PACKETS_PER_TURN {
                let Some((id, server)) = waiting.next() else { break };
                let (url, key) = (self.url(server), ServerKey(server as u32 + 1));
                let request =
                    ScanRequest { id: id as u64, server: key, url, mode: ScanMode::Normal, wants_settings: false };
                self.handle(Input::Request(request));
            }
            while let Some(host) = self.core.next_lookup() {
                let delay_ms = self.one_of(200);
                self.schedule(MS(delay_ms.into()), Event::Resolved(host));
            }
            self.send();
            outcomes.extend(self.core.take_outcomes(usize::MAX));
            self.advance();
        }
        outcomes
    }

    fn send(&mut self) {
        for socket in 0..2 {
            let packets = self.core.take_packets(socket, Packets::default());
            for packet in packets.list() {
                self.handle(Input::Sent(packet.to));
                let (to, bytes) = (packet.to, packets.bytes(packet).to_vec());
                self.sent.push(Sent { at: self.now, to, bytes: bytes.clone() });
                self.transmit(&Event::ToServer { socket, to, bytes });
            }
        }
    }

    /// Goes on to the next event, or to when the core has something to do.
    fn advance(&mut self) {
        let next = self.events.peek().map(|Reverse((at, ..))| *at);
        let due = self.core.next_due();
        self.now = self.now.max(next.map_or(due, |next| next.min(due)));
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > self.now {
                self.event_count += 1;
                self.events.push(Reverse((at, self.event_count, event)));
                break;
            }
            self.on_event(event);
        }
        self.handle(Input::Time);
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::ToServer { socket, to, bytes } => self.reply(socket, to, &bytes),
            Event::ToCore { socket, from, bytes } => {
                let is_last = bytes.ends_with(&list_end(server_of(from)));
                let at = self.moment();
                self.handle(Input::Datagram { socket, from, at, bytes: &bytes });
                if is_last {
                    self.complete.entry(server_of(from)).or_default().push(self.now);
                }
            }
            Event::PortClosed(address) => self.handle(Input::PortClosed(address)),
            Event::Resolved(host) => {
                let server: usize = host[1..].split('.').next().unwrap().parse().unwrap();
                self.handle(Input::Resolved(LookupResult::new(host, [address_of(server).ip()])));
            }
        }
    }

    /// A packet has reached a server.
    fn reply(&mut self, socket: usize, server_address: SocketAddr, packet: &[u8]) {
        if !(27_960..27_960 + PORTS).contains(&server_address.port().into()) {
            return; // nothing there answers
        }
        let server = server_of(server_address);
        assert!(server < self.servers);
        let begins: &[&[u8]] = match (self.kind)(server) {
            Kind::Source => &[b"\xff\xff\xff\xffT", b"\xff\xff\xff\xffU"],
            _ => &[b"\xff\xff\xff\xffgetstatus "],
        };
        if !begins.iter().any(|begin| packet.starts_with(begin)) {
            return; // another protocol
        }
        self.heard[server] += 1;
        let reply = match (self.kind)(server) {
            Kind::Silent => return,
            Kind::Closed => {
                let delay_ms = self.one_of(50);
                return self.schedule(MS(delay_ms.into()), Event::PortClosed(server_address));
            }
            Kind::DeafOnce if self.heard[server] == 1 => return,
            Kind::Source => source_reply(server, packet),
            Kind::Quake3 | Kind::DeafOnce => quake3_reply(server, packet),
            Kind::Liar => {
                let wrong = status(format!("{:14}0123456789abcdef", "").as_bytes(), "9 9 \"liar\"\n");
                // In the name of the server beside it.
                let neighbour = address_of(server ^ 1);
                for (from, bytes) in
                    [(server_address, b"junk".to_vec()), (server_address, wrong.clone()), (neighbour, wrong)]
                {
                    self.transmit(&Event::ToCore { socket, from, bytes });
                }
                quake3_reply(server, packet)
            }
        };
        self.transmit(&Event::ToCore { socket, from: server_address, bytes: reply });
    }

    /// No pause between two packets to one address is shorter than the cooldown, except where the
    /// second answers a challenge.
    fn assert_pauses(&self) {
        let mut last: BTreeMap<SocketAddr, &Sent> = BTreeMap::new();
        for sent in &self.sent {
            if let Some(before) = last.insert(sent.to, sent) {
                let is_answer = (self.kind)(server_of(sent.to)) == Kind::Source && sent.bytes != before.bytes;
                assert!(is_answer || sent.at - before.at >= COOLDOWN, "{before:?}, {sent:?}");
            }
        }
    }

    /// In each scope of a limit, no more packets than a bucket of `burst` permits that is filled with
    /// `per_second` grants.
    fn assert_limit<K: Ord>(&self, per_second: f64, burst: f64, scope: impl Fn(SocketAddr) -> K) {
        let mut buckets: BTreeMap<K, (f64, Duration)> = BTreeMap::new();
        for Sent { at, to, .. } in &self.sent {
            let (permits, since) = buckets.entry(scope(*to)).or_insert((burst, *at));
            *permits = burst.min(*permits + (*at - *since).as_secs_f64() * per_second) - 1.0;
            *since = *at;
            assert!(*permits > -0.01, "{to} at {at:?}: {permits}");
        }
    }
}

/// The player of a server, whose name nobody else has.
fn player(server: usize) -> String {
    format!("player {server}")
}

/// The last bytes of the reply that completes a scan.
fn list_end(server: usize) -> Vec<u8> {
    match KINDS[server % KINDS.len()] {
        Kind::Source => [player(server).as_bytes(), b"\0\x05\0\0\0\0\0\x80\x3f"].concat(),
        _ => format!("\"{}\"\n", player(server)).into_bytes(),
    }
}

fn quake3_reply(server: usize, packet: &[u8]) -> Vec<u8> {
    status(packet, &format!("5 40 \"{}\"\n", player(server)))
}

fn source_reply(server: usize, packet: &[u8]) -> Vec<u8> {
    let challenge = (server as u32 | 1 << 30).to_le_bytes();
    match (packet[4], packet.ends_with(&challenge)) {
        (b'T', true) => INFO.to_vec(),
        (b'U', true) => [b"\xff\xff\xff\xffD\x01\x00", &list_end(server)[..]].concat(),
        _ => [b"\xff\xff\xff\xffA", &challenge[..]].concat(),
    }
}

fn mixed(server: usize) -> Kind {
    KINDS[server % KINDS.len()]
}

fn settings() -> ScanSettings {
    ScanSettings { packets_per_second_max: 2_000.0, address_burst_packets: 4, ..ScanSettings::default() }
}

#[test]
fn ten_thousand_servers_on_a_bad_network_get_one_right_outcome_for_each_request() {
    let mut world = World::new(settings(), 10_000, mixed, &BAD, 1);
    // Each server twice, in another order, so that scans of one address wait for each other, and replies of the
    // first arrive during the second.
    let requests: Vec<usize> = (0..10_000).chain((0..10_000).rev()).collect();
    let outcomes = world.scan(&requests);
    let mut ids: Vec<u64> = outcomes.iter().map(|outcome| outcome.id).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..requests.len() as u64), "one outcome for each request");
    let mut succeeded: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for outcome in &outcomes {
        let server = requests[outcome.id as usize];
        let kind = mixed(server);
        let counts = succeeded.entry(match kind {
            Kind::Quake3 | Kind::Liar => "one request",
            Kind::Source => "challenges",
            Kind::DeafOnce => "first packet ignored",
            Kind::Silent | Kind::Closed => "no reply",
        });
        let (tried, full) = counts.or_default();
        *tried += 1;
        match &outcome.result {
            Ok(snapshot) => {
                let names: Vec<&str> = snapshot.players.iter().map(|player| &player.name[..]).collect();
                let is_full = snapshot.completeness == Completeness::Full;
                *full += u32::from(is_full);
                // Of a Source server, INFO alone may have arrived.
                assert!(is_full || kind == Kind::Source, "{kind:?} {outcome:?}");
                assert_eq!(names, if is_full { vec![player(server)] } else { vec![] }, "{kind:?} {outcome:?}");
                // Of 400 ms at most each way.
                assert!(outcome.rtt_ms.is_some_and(|ms| ms < 800), "{outcome:?}");
            }
            Err(miss) => {
                let reasons = match kind {
                    Kind::Closed => vec![MissReason::Refused, MissReason::Timeout],
                    // Its neighbour may be a liar, or its own scan may get no more than lies and late replies.
                    _ => vec![MissReason::Timeout, MissReason::Malformed],
                };
                assert!(reasons.contains(&miss.reason), "{kind:?} {outcome:?}");
                let ended = MS((miss.t_ms - START_MS) as u64);
                let began = MS((outcome.sent_ms.unwrap() - START_MS) as u64);
                let missed = world.complete.get(&server).into_iter().flatten().find(|at| (began..ended).contains(at));
                // It may be one of the scan before, which has another nonce.
                let is_first = outcome.id < 10_000;
                assert!(missed.is_none() || !is_first || kind == Kind::Source, "{kind:?} {outcome:?} {missed:?}");
            }
        }
    }
    let percent = |name: &str| {
        let (tried, full) = succeeded[name];
        100.0 * f64::from(full) / f64::from(tried)
    };
    // A request and its reply arrive with 72 %, and are tried three times.
    assert!((96.0..99.5).contains(&percent("one request")), "{succeeded:?}");
    assert!((85.0..99.0).contains(&percent("challenges")), "{succeeded:?}");
    assert!((85.0..99.0).contains(&percent("first packet ignored")), "{succeeded:?}");
    assert_eq!(percent("no reply"), 0.0);
    world.assert_pauses();
    let counts = world.core.counters.values();
    assert!(counts.address_conflicts > 0 && counts.unsolicited > 0 && counts.ignored["wrong_nonce"] > 0, "{counts:?}");
    assert!(counts.throttled_address > 0 && counts.throttled_subnet > 0, "{counts:?}");
    assert_eq!((world.core.in_flight(), world.core.held_bytes), (0, 0));
}

#[test]
fn no_limit_is_exceeded_and_nothing_waits_for_ever() {
    let settings = ScanSettings { packets_per_second_max: 500.0, ..settings() };
    let mut world = World::new(settings.clone(), 4_000, |_| Kind::Quake3, &BAD, 2);
    let outcomes = world.scan(&(0..4_000).collect::<Vec<_>>());
    assert_eq!(outcomes.len(), 4_000);
    let ScanSettings { subnet_packets_per_second_max, address_packets_per_second_max, .. } = settings;
    world.assert_limit(500.0, 25.0, |_| ());
    world.assert_limit(subnet_packets_per_second_max, settings.subnet_burst_packets.into(), |to| Subnet::of(to.ip()));
    world.assert_limit(address_packets_per_second_max, settings.address_burst_packets.into(), |to| to.ip());
    world.assert_pauses();
    assert!(world.core.counters.values().throttled_global > 0);
}

#[test]
fn perfect_network_loses_nothing_and_repeats_nothing() {
    let mut world = World::new(settings(), 2_000, mixed, &PERFECT, 3);
    for outcome in world.scan(&(0..2_000).collect::<Vec<_>>()) {
        let server = outcome.server.0 as usize - 1;
        match mixed(server) {
            Kind::Silent => assert_eq!(outcome.result.unwrap_err().reason, MissReason::Timeout),
            Kind::Closed => assert_eq!(outcome.result.unwrap_err().reason, MissReason::Refused),
            _ => {
                assert_eq!(outcome.result.unwrap().players[0].name, player(server));
                assert_eq!(outcome.rtt_ms, Some(20), "{server}");
            }
        }
    }
    let packets = |kind| world.sent.iter().filter(|sent| mixed(server_of(sent.to)) == kind).count();
    // 600 servers with one request, 600 with INFO, INFO with a challenge, and players with the same challenge.
    assert_eq!((packets(Kind::Quake3), packets(Kind::Liar), packets(Kind::Source)), (600, 200, 1_800));
    assert_eq!((packets(Kind::DeafOnce), packets(Kind::Silent), packets(Kind::Closed)), (400, 600, 200));
}

#[test]
fn same_seed_gives_the_same_packets_and_outcomes() {
    let run = |seed| {
        let mut world = World::new(settings(), 1_000, mixed, &BAD, seed);
        let outcomes = world.scan(&(0..1_000).collect::<Vec<_>>());
        (world.sent, outcomes)
    };
    let (first, again, other) = (run(4), run(4), run(5));
    assert!(first == again);
    assert!(first != other);
}

/// The protocol of a server is found although replies take longer than the pause between the probes.
#[test]
fn protocols_are_found_by_late_replies() {
    static SLOW: Network = Network { lost_percent: 0, doubled_percent: 20, delay_ms: 300..450 };
    for network in [&PERFECT, &SLOW] {
        for (server, scheme) in [(0, Some("quake3")), (1, Some("source")), (3, Some("quake3")), (7, None), (9, None)] {
            let mut world = World::new(ScanSettings::default(), 20, mixed, network, 7);
            let url = ServerUrl::parse(&format!("auto://{}", address_of(server))).unwrap();
            world.request(1, url, ScanMode::Normal);
            while !world.core.has_outcomes() {
                world.send();
                // Nothing accepts connections.
                for command in world.core.take_connection_commands() {
                    if let ConnectionCommand::Write { token, .. } = command {
                        world.handle(Input::ConnectionEnded { token, is_refused: true });
                    }
                }
                world.advance();
            }
            let outcome = world.core.take_outcomes(1).remove(0);
            let last = outcome.attempts.last().unwrap();
            let found = last.result.is_ok().then_some((last.scheme, last.port));
            assert_eq!(found, scheme.map(|scheme| (scheme, address_of(server).port())), "{outcome:?}");
            if scheme.is_some() {
                assert_eq!(outcome.result.unwrap().players[0].name, player(server));
                assert!(world.now < MS(4_000), "{:?}", world.now);
            }
            // A silent server; with the limits of the shipped configuration.
            assert!(world.now < MS(10_000), "{:?}", world.now);
            assert_eq!((world.core.in_flight(), world.core.held_bytes), (0, 0));
            let free = (0..20).map(address_of).all(|address| world.core.address_locks.owner(address).is_none());
            assert!(free);
        }
    }
}

/// Finds the protocols of several ports of the host of server 0 at once. Returns what answers at each, in order.
fn found_together(network: &'static Network, ports: &[u16]) -> Vec<Option<(&'static str, u16)>> {
    let mut world = World::new(ScanSettings::default(), 20, mixed, network, 9);
    for (id, port) in (0..).zip(ports) {
        let url = ServerUrl::parse(&format!("auto://{}:{port}", address_of(0).ip())).unwrap();
        world.request(id + 1, url, ScanMode::Normal);
    }
    let mut outcomes = Vec::new();
    while outcomes.len() < ports.len() {
        world.send();
        // Nothing accepts connections.
        for command in world.core.take_connection_commands() {
            if let ConnectionCommand::Write { token, .. } = command {
                world.handle(Input::ConnectionEnded { token, is_refused: true });
            }
        }
        world.advance();
        outcomes.extend(world.core.take_outcomes(usize::MAX));
        assert!(world.now < MS(120_000), "{ports:?}: {} of the scans have ended", outcomes.len());
    }
    outcomes.sort_by_key(|outcome| outcome.id);
    let last = outcomes.iter().map(|outcome| outcome.attempts.last().unwrap());
    last.map(|last| last.result.is_ok().then_some((last.scheme, last.port))).collect()
}

/// The scan of each port wants to probe one that the other scan has probed.
#[test]
fn scans_of_a_silent_host_do_not_wait_for_each_others_ports() {
    for ports in [[7_777, 7_779], [27_014, 27_015], [10_480, 10_481], [5_445, 5_446], [28_015, 28_016]] {
        assert_eq!(found_together(&PERFECT, &ports), [None, None]);
    }
}

#[test]
fn scans_that_wait_for_each_others_ports_find_late_replies() {
    static SLOW: Network = Network { lost_percent: 0, doubled_percent: 20, delay_ms: 300..450 };
    let want = [("quake3", 27_960), ("source", 27_961), ("quake3", 27_962), ("quake3", 27_963)].map(Some);
    assert_eq!(found_together(&SLOW, &want.map(|found| found.unwrap().1)), want);
}

/// A late reply of which only a part arrives.
#[test]
fn part_of_a_late_reply_ends_the_scan_in_time() {
    let mut world = World::new(ScanSettings::default(), 20, |_| Kind::Silent, &PERFECT, 8);
    let at = address_of(1);
    let url = ServerUrl::parse(&format!("auto://{at}")).unwrap();
    world.request(1, url, ScanMode::Normal);
    let mut is_answered = false;
    while !world.core.has_outcomes() {
        world.send();
        let asked = world.sent.iter().find(|sent| sent.to == at && sent.bytes == b"\\status\\").map(|sent| sent.at);
        if !is_answered && asked.is_some_and(|asked| world.now >= asked + MS(300)) {
            is_answered = true;
            let (moment, socket) = (world.moment(), world.core.sockets.index_for(at).unwrap());
            let bytes = b"\\gamename\\ut\\mapname\\m\\player_0\\n\\frags_0\\7\\queryid\\1.1";
            world.handle(Input::Datagram { socket, from: at, at: moment, bytes });
        }
        world.advance();
        assert!(world.now < MS(20_000), "the scan does not end");
    }
    let outcome = world.core.take_outcomes(1).remove(0);
    let last = outcome.attempts.last().unwrap();
    assert_eq!((last.scheme, last.port, last.result), ("gamespy1", at.port(), Ok(())));
    assert_eq!(outcome.result.unwrap().completeness, Completeness::Partial);
    assert_eq!((world.core.in_flight(), world.core.held_bytes), (0, 0));
}

/// Each datagram replaces the one before, so it is never decoded in vain for long.
#[test]
fn endless_parts_of_a_reply_end_the_scan() {
    let mut world = World::new(settings(), 20, mixed, &PERFECT, 7);
    let at = SocketAddr::new(address_of(9).ip(), 7_777);
    world.request(1, ServerUrl::parse(&format!("gamespy1://{at}")).unwrap(), ScanMode::Exception);
    while world.sent.is_empty() {
        world.send();
        world.advance();
    }
    let (moment, socket) = (world.moment(), world.core.sockets.index_for(at).unwrap());
    let bytes = [&b"\\queryid\\1.1"[..], &[b'\\'; 60_000]].concat();
    let mut datagrams = 0;
    while !world.core.has_outcomes() {
        world.handle(Input::Datagram { socket, from: at, at: moment, bytes: &bytes });
        datagrams += 1;
        assert!(datagrams * bytes.len() <= INCOMPLETE_BYTES_PER_SCAN_MAX + bytes.len(), "{datagrams}");
    }
    assert!(datagrams > 30, "{datagrams}");
    world.core.take_outcomes(1);
    assert_eq!((world.core.in_flight(), world.core.held_bytes), (0, 0));
}

#[test]
fn record_of_a_service_says_host_and_port() {
    let mut world = World::new(settings(), 20, mixed, &PERFECT, 6);
    let url = ServerUrl::parse("minecraft://play.test:25565").unwrap();
    world.request(1, url, ScanMode::Exception);
    let name = world.core.next_lookup().unwrap();
    assert_eq!(name, "_minecraft._tcp.play.test");
    let ip = address_of(9).ip();
    world.handle(Input::Resolved(LookupResult::new("node.test".to_owned(), [ip]).of_service(name, Ok(Some(7_000)))));
    let scan = world.core.scans.values_mut().next().unwrap();
    assert_eq!(scan.address(), Some(SocketAddr::new(ip, 7_000)));
    assert!(scan.targets.iter().all(|target| target.protocol.scheme == "minecraft"), "nothing else in exception mode");
    scan.record_attempt(Ok(()));
    assert_eq!(scan.tried.last().map(|attempt| attempt.port), Some(25_565), "the port of the URL");
}

#[test]
fn silence_of_name_servers_is_no_miss_of_the_server() {
    let mut world = World::new(settings(), 20, mixed, &PERFECT, 6);
    let url = world.url(0);
    world.request(1, url, ScanMode::Normal);
    let host = world.core.next_lookup().unwrap();
    world.handle(Input::Resolved(LookupResult::failure(host)));
    let outcome = world.core.take_outcomes(1).remove(0);
    assert_eq!(
        outcome.result.map_err(|miss| (miss.reason, miss.reason.is_local_fault())),
        Err((MissReason::LookupFailed, true))
    );
}

#[test]
fn silent_name_servers_do_not_fill_the_scanner() {
    const NAMES: u64 = 2_000;
    let mut world = World::new(ScanSettings { scans_in_flight_max: 100, ..settings() }, 20, mixed, &PERFECT, 6);
    let url = |n: u64| ServerUrl::parse(&format!("quake3://n{n}.test:27960")).unwrap();
    let (mut requested, mut outcomes, mut looked_up) = (0, Vec::new(), Vec::new());
    let mut request_all = |world: &mut World| {
        loop {
            outcomes.extend(world.core.take_outcomes(usize::MAX));
            if !world.core.has_capacity() || requested == NAMES {
                return (requested, outcomes.len());
            }
            requested += 1;
            world.request(requested, url(requested), ScanMode::Normal);
        }
    };
    let mut look_up = |world: &mut World| {
        let hosts: Vec<String> = std::iter::from_fn(|| world.core.next_lookup()).collect();
        looked_up.extend(hosts.iter().cloned());
        hosts
    };
    assert_eq!(request_all(&mut world), (100, 0), "all wait for the name servers");
    let hosts = look_up(&mut world);
    world.now += MS(10_000);
    for host in hosts {
        world.handle(Input::Resolved(LookupResult::failure(host)));
    }
    let (requested, ended) = request_all(&mut world);
    assert_eq!(requested, NAMES);
    assert!(ended >= NAMES as usize - 64, "{ended} have ended: the others wait for a look-up that is in progress");
    // Another server is scanned meanwhile.
    assert!(world.core.has_capacity());
    // All names are looked up, and found as soon as a name server answers.
    loop {
        let hosts = look_up(&mut world);
        if hosts.is_empty() {
            break;
        }
        for host in hosts {
            world.handle(Input::Resolved(LookupResult::new(host, [IpAddr::from([10, 0, 0, 1])])));
        }
    }
    looked_up.sort_unstable();
    looked_up.dedup();
    assert_eq!(looked_up.len() as u64, NAMES);
    world.request(NAMES + 1, url(NAMES), ScanMode::Normal);
    assert!(world.core.next_lookup().is_none());
    let last = world.core.take_outcomes(usize::MAX).pop().unwrap();
    assert_eq!(last.result.map_err(|miss| miss.reason), Err(MissReason::NotPublic), "its address is known");
}

#[test]
fn addresses_of_a_host_name_are_tried_in_order() {
    let (closed, open) = (address_of(9), address_of(13));
    assert_eq!((mixed(9), mixed(13), closed.port()), (Kind::Closed, Kind::Liar, open.port()));
    let [closed, open, excluded] = [closed.ip(), open.ip(), IpAddr::from([10, 0, 0, 1])];
    let without_socket = IpAddr::from([0x2a01, 4, 0, 0, 0, 0, 0, 1]);
    let (refused, failed) = (Err(MissReason::Refused), Err(MissReason::SendFailed));
    for (host, ips, want, miss) in [
        ("two.test", vec![open, closed], vec![refused, Ok(())], None),
        ("none.test", vec![closed], vec![refused], Some(MissReason::Refused)),
        ("excluded.test", vec![excluded, open], vec![Err(MissReason::NotPublic), Ok(())], None),
        // The server is missed, though this machine has no IPv6.
        ("dead.test", vec![without_socket, closed], vec![refused, failed], Some(MissReason::Refused)),
        ("unreachable.test", vec![without_socket], vec![failed], Some(MissReason::SendFailed)),
    ] {
        let mut world = World::new(settings(), 20, mixed, &PERFECT, 6);
        let url = ServerUrl::parse(&format!("quake3://{host}:{}", address_of(13).port())).unwrap();
        world.request(1, url, ScanMode::Normal);
        let host = world.core.next_lookup().unwrap();
        world.handle(Input::Resolved(LookupResult::new(host, ips)));
        while !world.core.has_outcomes() {
            world.send();
            world.advance();
        }
        let outcome = world.core.take_outcomes(1).remove(0);
        let results: Vec<_> = outcome.attempts.iter().map(|attempt| attempt.result).collect();
        assert_eq!(results, want, "{outcome:?}");
        assert_eq!(outcome.result.as_ref().err().map(|miss| miss.reason), miss, "{outcome:?}");
        assert_eq!(outcome.first_miss().filter(|_| miss.is_some()), miss, "{outcome:?}");
    }
}
