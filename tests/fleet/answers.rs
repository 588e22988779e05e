//! Decodes replies of the simulated servers through real sockets, for every protocol. Encoder and decoders
//! share no code, so agreement means that both follow the protocol. The scan engine is
//! not involved: one query at a time, with a minimal client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use clqd::fleet::faults::SPOOFED_NAME;
use clqd::fleet::{
    Behaviour, BehaviourShares, Fault, FaultShares, Fleet, Ports, Protocol, ProtocolShares, ServeSettings, World,
    WorldSettings,
};
use clqd::model::{Completeness, Player, ServerUrl, Snapshot};
use clqd::proto::{self, Exchange, Nonce, Step, Transport};
use strum::VariantArray;

/// A fleet whose time almost does not pass, so that a reply can be compared with the
/// world afterwards.
fn fleet(servers: u32, faults: FaultShares) -> Fleet {
    fleet_of(WorldSettings { servers, seed: 4, activity: 4.0, ..WorldSettings::default() }, faults)
}

fn fleet_of(settings: WorldSettings, faults: FaultShares) -> Fleet {
    let world = World::new(settings);
    let live_from_ms = world.settings().start_ms + 3_600_000;
    let settings = ServeSettings { ports: Ports::ANY, live_from_ms, speed: 1e-6, faults, ..ServeSettings::default() };
    Fleet::start(world, settings).expect("free ports")
}

struct Client {
    socket: UdpSocket,
    tries: u32,
}

impl Client {
    fn new(timeout_ms: u64, tries: u32) -> Client {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(timeout_ms))).unwrap();
        Client { socket, tries }
    }

    /// The result of a scan of the server; `None` if it is a miss.
    fn scan(&self, url: &str) -> Option<Snapshot> {
        let url = ServerUrl::parse(url).unwrap();
        let at = SocketAddr::new(url.ip().unwrap(), url.port());
        let protocol = proto::protocol_of(url.scheme()).unwrap();
        let protocol = protocol.fallback.filter(|_| TcpStream::connect(at).is_ok()).unwrap_or(protocol);
        let exchange = protocol.start(Nonce(0x1234_5678_9abc_def0), at);
        match protocol.transport {
            Transport::Udp => self.scan_by_datagrams(at, exchange),
            Transport::Tcp => self.scan_by_connection(at, exchange),
        }
    }

    fn scan_by_connection(&self, at: SocketAddr, mut exchange: Box<dyn Exchange>) -> Option<Snapshot> {
        let mut buffer = [0; 1_000];
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(self.socket.read_timeout().unwrap()).unwrap();
        stream.write_all(&exchange.request()).unwrap();
        loop {
            let step = match stream.read(&mut buffer) {
                Ok(0) => exchange.handle_end(0),
                Ok(count) => exchange.handle_datagram(0, &buffer[..count]),
                Err(_) => return exchange.partial_snapshot(),
            };
            match step {
                Step::Done(snapshot) => return Some(*snapshot),
                Step::Send => stream.write_all(&exchange.request()).unwrap(),
                Step::Fail(_) => return exchange.partial_snapshot(),
                Step::Wait | Step::Ignore(_) => {}
            }
        }
    }

    fn scan_by_datagrams(&self, at: SocketAddr, mut exchange: Box<dyn Exchange>) -> Option<Snapshot> {
        let mut buffer = vec![0; 65_535];
        let mut tries_left = self.tries;
        self.socket.send_to(&exchange.request(), at).unwrap();
        loop {
            let Ok((length, from)) = self.socket.recv_from(&mut buffer) else {
                tries_left -= 1;
                if tries_left == 0 {
                    return exchange.partial_snapshot();
                }
                self.socket.send_to(&exchange.request(), at).unwrap();
                continue;
            };
            if from != at {
                continue;
            }
            match exchange.handle_datagram(0, &buffer[..length]) {
                Step::Done(snapshot) => return Some(*snapshot),
                Step::Send => drop(self.socket.send_to(&exchange.request(), at).unwrap()),
                Step::Wait | Step::Ignore(_) | Step::Fail(_) => {}
            }
        }
    }
}

/// The ground truth as a scan at time 0 would show it. Connect times are sent as 32-bit
/// seconds, which after a day are exact to 8 ms, and are compared separately.
fn timeless(mut snapshot: Snapshot) -> (Snapshot, Vec<Option<u64>>) {
    snapshot.t_ms = 0;
    let connected = snapshot.players.iter_mut().map(|player| player.connected_ms.take()).collect();
    (snapshot, connected)
}

#[track_caller]
fn assert_equal(url: &str, scanned: Snapshot, truth: Snapshot) {
    let ((scanned, scanned_ms), (truth, truth_ms)) = (timeless(scanned), timeless(truth));
    assert_eq!(scanned, truth, "{url}");
    for (scanned, truth) in scanned_ms.iter().zip(&truth_ms) {
        match (scanned, truth) {
            (Some(scanned), Some(truth)) => assert!(scanned.abs_diff(*truth) <= 8, "{url}: {scanned} {truth}"),
            _ => assert_eq!(scanned, truth, "{url}"),
        }
    }
}

#[test]
fn every_protocol_variant_is_decoded_exactly() {
    let fleet = fleet(1_500, FaultShares::NONE);
    let client = Client::new(2_000, 1);
    let mut players = 0;
    for (server, url) in fleet.urls().iter().enumerate() {
        let scanned = client.scan(url).unwrap_or_else(|| panic!("{url} did not reply"));
        players += scanned.players.len();
        assert_equal(url, scanned, fleet.snapshot(server as u32));
    }
    assert!(players > 3_000, "{players}");
}

#[test]
fn servers_of_each_behaviour_are_decoded_exactly() {
    let behaviours = BehaviourShares::new([0.2; Behaviour::VARIANTS.len()]);
    let settings = WorldSettings { servers: 300, seed: 4, activity: 4.0, behaviours, ..WorldSettings::default() };
    let fleet = fleet_of(settings, FaultShares::NONE);
    let client = Client::new(2_000, 1);
    let mut seen = [0; Behaviour::VARIANTS.len()];
    for (server, url) in fleet.urls().iter().enumerate() {
        let scanned = client.scan(url).unwrap_or_else(|| panic!("{url} did not reply"));
        if let Some(behaviour) = fleet.behaviour(server as u32) {
            seen[behaviour as usize] += 1;
        }
        assert_equal(url, scanned, fleet.snapshot(server as u32));
    }
    assert!(seen.iter().all(|&count| count > 10), "{seen:?}");
}

#[test]
fn full_snapshot_is_correct_under_every_fault() {
    // The fault, the step from one scanned server to the next, the timeout of a reply in ms,
    // and the minimum number of full snapshots.
    for (faults, step, timeout_ms, full_min) in [
        ("silent=1", 20, 40, 0),
        ("slow=1", 60, 1_500, 1),
        ("lossy=1", 2, 40, 45),
        ("duplicating=1", 1, 100, 115),
        ("spoofed=1", 1, 100, 115),
        ("malformed=1", 4, 40, 0),
        ("partial=1", 2, 40, 15),
    ] {
        let fleet = fleet(120, faults.parse().unwrap());
        let client = Client::new(timeout_ms, 6);
        let (mut full, mut partial) = (0, 0);
        for (server, url) in fleet.urls().iter().enumerate().step_by(step) {
            let Some(scanned) = client.scan(url) else { continue };
            assert!(scanned.players.iter().all(|player| !player.name.starts_with(SPOOFED_NAME)), "{url}");
            if scanned.completeness == Completeness::Full {
                full += 1;
                assert_equal(url, scanned, fleet.snapshot(server as u32));
            } else {
                partial += 1;
            }
        }
        let fault = fleet.fault(0).unwrap();
        assert!(full >= full_min, "{fault:?}: {full} full, {partial} partial");
        match fault {
            Fault::Silent => assert_eq!(full + partial, 0),
            // A malformed server never sends its true list.
            Fault::Malformed => assert_eq!(full, 0),
            Fault::Partial => assert!(partial >= 8, "{full} full, {partial} partial"),
            _ => {}
        }
    }
}

/// Schemes with the wire format of another one.
const NOT_SIMULATED: &[&str] = &["darkplaces", "redm"];

#[test]
fn every_scanned_protocol_is_simulated() {
    for protocol in proto::PROTOCOLS {
        let simulated = Protocol::VARIANTS.iter().any(|simulated| simulated.scheme() == protocol.scheme);
        assert!(simulated != NOT_SIMULATED.contains(&protocol.scheme), "{}", protocol.scheme);
    }
    for protocol in Protocol::VARIANTS {
        assert!(proto::protocol_of(protocol.scheme()).is_some(), "{protocol:?}");
    }
}

/// Counts of the snapshots of a protocol's servers.
#[derive(Debug, Default)]
struct Compared {
    full: usize,
    partial: usize,
    players: usize,
    spectators: usize,
    bots: usize,
    without_points: usize,
}

/// Compares all servers of one protocol with the truth. A list that the protocol cuts is a
/// part of it.
fn compare(protocol: Protocol) -> Compared {
    let behaviours = "spectators=0.3,generic_names=0.1,frozen=0.1".parse().expect("behaviours");
    let protocols = ProtocolShares::only(protocol);
    let settings =
        WorldSettings { servers: 200, seed: 4, activity: 12.0, behaviours, protocols, ..WorldSettings::default() };
    let fleet = fleet_of(settings, FaultShares::NONE);
    // Some QuakeWorld replies have no end that can be seen: they take all of this time.
    let client = Client::new(5_000, 1);
    let mut compared = Compared::default();
    for (server, url) in fleet.urls().iter().enumerate() {
        let mut scanned = client.scan(url).unwrap_or_else(|| panic!("{url} did not reply"));
        let mut truth = fleet.snapshot(server as u32);
        let count = |is: fn(&Player) -> bool| scanned.players.iter().filter(|player| is(player)).count();
        compared.players += scanned.players.len();
        compared.spectators += count(|player| player.spectator);
        compared.bots += count(|player| player.bot);
        compared.without_points += count(|player| player.points.is_none() && !player.name.is_empty());
        if scanned.completeness == Completeness::Full {
            compared.full += 1;
        } else {
            compared.partial += 1;
            match protocol {
                // The server drops the end of a long list; whether it did cannot be seen.
                Protocol::Quake2 => truth.players.truncate(scanned.players.len()),
                // Whether another datagram follows a full one cannot be seen.
                Protocol::QuakeWorld => {}
                _ => assert_eq!(truth.completeness, Completeness::Partial, "{url}: {scanned:?}"),
            }
            scanned.completeness = truth.completeness;
        }
        assert_equal(url, scanned, truth);
    }
    compared
}

#[test]
fn every_protocol_is_decoded_exactly() {
    for &protocol in Protocol::VARIANTS {
        let compared = compare(protocol);
        println!("{}: {compared:?}", protocol.name());
        let Compared { full, partial, players, spectators, bots, without_points } = compared;
        let (full_min, partial_min) = match protocol {
            _ if !protocol.has_list() => (0, 200),
            Protocol::SaMp => (120, 5),
            Protocol::QuakeWorld | Protocol::Quake2 => (160, 1),
            _ => (200, 0),
        };
        assert!(full >= full_min && partial >= partial_min, "{protocol:?}: {full} full, {partial} partial");
        assert!(players > 200 || !protocol.has_list(), "{protocol:?}: {players}");
        assert_eq!(spectators > 20, protocol.marks_spectators(), "{protocol:?}: {spectators}");
        assert_eq!(bots > 0, protocol.marks_bots(), "{protocol:?}: {bots}");
        match protocol {
            Protocol::Eclipse | Protocol::Armagetron => assert_eq!(without_points, players),
            Protocol::Doom3 | Protocol::Minecraft | Protocol::MinecraftStatus | Protocol::FiveM => {
                assert_eq!(without_points, players)
            }
            Protocol::Ase => assert!((50..players - 50).contains(&without_points)),
            _ => assert_eq!(without_points, spectators, "{protocol:?}"),
        }
    }
}

fn sorted(mut snapshot: Snapshot) -> Snapshot {
    snapshot.players.sort_by(|a, b| (&a.name, a.points, a.ping).cmp(&(&b.name, b.points, b.ping)));
    snapshot
}

#[test]
fn faults_of_every_protocol_never_falsify_a_full_snapshot() {
    for (faults, timeout_ms, full_min) in [
        ("lossy=1", 50, 70),
        ("duplicating=1", 200, 170),
        ("spoofed=1", 200, 170),
        ("malformed=1", 15, 0),
        ("partial=1", 30, 80),
    ] {
        let settings = WorldSettings {
            servers: 240,
            seed: 4,
            activity: 12.0,
            protocols: ProtocolShares::ALL,
            ..WorldSettings::default()
        };
        let fleet = fleet_of(settings, faults.parse().unwrap());
        let client = Client::new(timeout_ms, 5);
        let (mut full, mut partial) = (0, [0; Protocol::VARIANTS.len()]);
        for (server, url) in fleet.urls().iter().enumerate() {
            let protocol = fleet.protocol(server as u32);
            let truth = fleet.snapshot(server as u32);
            // Their datagrams are not numbered: a loss in the middle cannot be seen.
            let unnumbered = matches!(protocol, Protocol::QuakeWorld | Protocol::Unreal2)
                && truth.players.len() > 10
                && faults == "lossy=1";
            let Some(mut scanned) = client.scan(url).filter(|_| !unnumbered) else { continue };
            if protocol == Protocol::Unreal2 && faults == "partial=1" {
                // A server that announces more than it lists has bots.
                scanned.bots = None;
            }
            assert!(scanned.players.iter().all(|player| !player.name.starts_with(SPOOFED_NAME)), "{faults}: {url}");
            if scanned.completeness == Completeness::Full {
                full += 1;
                // Without numbers, datagrams of a repeated reply may add players in another order.
                assert_equal(url, sorted(scanned), sorted(truth));
            } else if truth.completeness == Completeness::Full {
                partial[protocol as usize] += 1;
            }
        }
        println!("{faults}: {full} full, {partial:?} partial");
        assert!(full >= full_min, "{faults}: {full} full");
        match faults {
            "malformed=1" => assert_eq!(full, 0),
            "partial=1" => {
                let visible = Protocol::VARIANTS.iter().filter(|&&protocol| partial[protocol as usize] > 0).count();
                assert!(visible >= 10, "{partial:?}");
            }
            _ => {}
        }
    }
}
