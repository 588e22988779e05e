//! The fleet on real sockets, queried by a minimal client.

use std::net::SocketAddr;
use std::num::NonZeroU32;

use super::*;
use crate::fleet::faults::{FaultShares, SPOOFED_NAME};
use crate::fleet::protocol::ProtocolShares;
use crate::fleet::wire::{ProtocolVariant, SplitFormat};
use crate::fleet::world;
use crate::model::calendar::HOUR_MS;
use crate::model::name::decode_text;

fn fleet(servers: u32, speed: f64, faults: FaultShares) -> Fleet {
    let world = World::new(world::WorldSettings { servers, activity: 3.0, ..world::WorldSettings::default() });
    let live_from_ms = world.settings().start_ms + HOUR_MS;
    let settings = ServeSettings { ports: Ports::ANY, live_from_ms, speed, faults, ..ServeSettings::default() };
    Fleet::start(world, settings).unwrap()
}

fn client(timeout_ms: u64) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(timeout_ms))).unwrap();
    socket
}

fn request(socket: &UdpSocket, to: SocketAddr, bytes: &[u8]) -> Option<(SocketAddr, Vec<u8>)> {
    socket.send_to(bytes, to).unwrap();
    receive(socket)
}

fn receive(socket: &UdpSocket) -> Option<(SocketAddr, Vec<u8>)> {
    let mut buffer = vec![0; 65_535];
    let (length, from) = socket.recv_from(&mut buffer).ok()?;
    buffer.truncate(length);
    Some((from, buffer))
}

fn of_protocol(fleet: &Fleet, protocol: Protocol) -> Vec<(u32, SocketAddr)> {
    let at = |server| SocketAddr::from((address::address_of(server), fleet.port(protocol)));
    let is = |server: &u32| fleet.protocol(*server) == protocol;
    (0..fleet.servers()).filter(is).map(|server| (server, at(server))).collect()
}

#[test]
fn quake3_servers_reply_from_their_own_address() {
    let fleet = fleet(450, 0.000_1, FaultShares::NONE);
    let socket = client(2_000);
    let mut players_seen = 0;
    for (server, at) in of_protocol(&fleet, Protocol::Quake3).into_iter().step_by(5) {
        assert_eq!(fleet.url(server), format!("quake3://{at}"));
        let (from, reply) = request(&socket, at, b"\xFF\xFF\xFF\xFFgetstatus s3cret\n").unwrap();
        assert_eq!(from, at);
        let text = decode_text(&reply[4..]);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("statusResponse"));
        assert!(lines.next().unwrap().ends_with("\\challenge\\s3cret"));
        let list: Vec<(i64, String)> = lines
            .map(|line| {
                let (points, rest) = line.split_once(' ').unwrap();
                let name = rest.split_once(' ').unwrap().1;
                (points.parse().unwrap(), name.trim_matches('"').to_owned())
            })
            .collect();
        let want: Vec<_> =
            fleet.snapshot(server).players.into_iter().map(|p| (p.points.unwrap(), p.name.into_string())).collect();
        assert_eq!(list, want);
        players_seen += list.len();
    }
    assert!(players_seen > 20);
    // Another protocol's server, an address without a server, an unknown command.
    let quiet = client(50);
    let (_, source) = of_protocol(&fleet, Protocol::Source)[0];
    let port = fleet.port(Protocol::Quake3);
    assert_eq!(request(&quiet, (source.ip(), port).into(), b"\xFF\xFF\xFF\xFFgetstatus x\n"), None);
    assert_eq!(request(&quiet, ([127, 9, 9, 9], port).into(), b"\xFF\xFF\xFF\xFFgetstatus x\n"), None);
    let (_, at) = of_protocol(&fleet, Protocol::Quake3)[0];
    assert_eq!(request(&quiet, at, b"\xFF\xFF\xFF\xFFrcon x\n"), None);
    assert_eq!(fleet.stats().rejected, 3);
}

#[test]
fn burst_is_answered_once_by_each_server() {
    let fleet = fleet(300, 0.000_1, FaultShares::NONE);
    let socket = client(2_000);
    let mut servers: Vec<_> = of_protocol(&fleet, Protocol::Quake3).into_iter().map(|(_, at)| at).take(100).collect();
    for at in &servers {
        socket.send_to(b"\xFF\xFF\xFF\xFFgetstatus x\n", at).unwrap();
    }
    let mut answered: Vec<_> = servers.iter().map(|_| receive(&socket).unwrap().0).collect();
    servers.sort_unstable();
    answered.sort_unstable();
    assert_eq!(answered, servers);
    assert_eq!((fleet.stats().queries, fleet.stats().replies), (100, 100));
}

#[test]
fn source_servers_require_their_challenge_and_list_their_players() {
    let fleet = fleet(450, 0.000_1, FaultShares::NONE);
    let socket = client(2_000);
    let (mut challenged, mut split, mut players_seen) = (0, 0, 0);
    for (server, at) in of_protocol(&fleet, Protocol::Source) {
        let want = fleet.snapshot(server);
        let query = b"\xFF\xFF\xFF\xFFTSource Engine Query\0";
        let (from, mut reply) = request(&socket, at, query).unwrap();
        assert_eq!(from, at);
        if reply[4] == b'A' {
            challenged += 1;
            reply = request(&socket, at, &[query, &reply[5..9]].concat()).unwrap().1;
        }
        assert!(matches!(reply[4], b'I' | b'm'));
        let has = |text: &str| reply.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has(&want.hostname) && has(&want.map) && has(&want.game));

        let (_, challenge) = request(&socket, at, b"\xFF\xFF\xFF\xFFU\xFF\xFF\xFF\xFF").unwrap();
        assert_eq!(challenge[..5], *b"\xFF\xFF\xFF\xFFA");
        let query = [b"\xFF\xFF\xFF\xFFU", &challenge[5..9]].concat();
        let (from, reply) = request(&socket, at, &query).unwrap();
        assert_eq!(from, at);
        if reply[0] == 0xFE {
            split += 1;
            let profile = fleet.shared.lock().profile(server).clone();
            let goldsrc = ProtocolVariant::of(fleet.shared.seed, server, &profile).split == SplitFormat::GoldSrc;
            let total = if goldsrc { reply[8] & 0xF } else { reply[8] };
            for _ in 1..total {
                assert_eq!(receive(&socket).unwrap().0, at);
            }
            continue;
        }
        assert_eq!(usize::from(reply[5]), want.players.len());
        let mut at = 6;
        for player in &want.players {
            let name = player.name.as_bytes();
            assert_eq!(&reply[at + 1..at + 1 + name.len()], name);
            at += 2 + name.len();
            assert_eq!(reply[at..at + 4], (player.points.unwrap_or(0) as i32).to_le_bytes());
            at += 8;
            players_seen += 1;
        }
        assert_eq!(at, reply.len());
    }
    assert!(challenged > 50 && split > 1 && players_seen > 50, "{challenged} {split} {players_seen}");
}

#[test]
fn each_fault_shows_on_the_wire() {
    let one = |share: &str| {
        let fleet = fleet(20, 0.000_1, share.parse().unwrap());
        let (server, at) = of_protocol(&fleet, Protocol::Quake3)[0];
        (fleet, server, at)
    };
    let query = b"\xFF\xFF\xFF\xFFgetstatus abc\n";

    let (fleet, server, at) = one("silent=1");
    assert_eq!(fleet.fault(server), Some(Fault::Silent));
    assert_eq!(request(&client(50), at, query), None);

    let (_fleet, _, at) = one("slow=1");
    let started = Instant::now();
    assert_eq!(request(&client(4_000), at, query).unwrap().0, at);
    assert!(started.elapsed() >= Duration::from_millis(400));

    let (_fleet, _, at) = one("duplicating=1");
    let socket = client(2_000);
    assert_eq!(request(&socket, at, query), receive(&socket));

    let (_fleet, server, at) = one("spoofed=1");
    let socket = client(2_000);
    let guess = "challenge\\`cb\n";
    let (mut foreign, mut guessed) = (0, 0);
    for _ in 0..40 {
        let (from, spoofed) = request(&socket, at, query).unwrap();
        assert!(decode_text(&spoofed).contains("1000000 50 \"Spoofed1\""));
        match from.ip() {
            ip if ip == at.ip() => guessed += u32::from(decode_text(&spoofed).contains(guess)),
            ip => {
                foreign +=
                    u32::from(ip == address::spoofing_address(server) && decode_text(&spoofed).contains("\\abc\n"))
            }
        }
        let (from, good) = receive(&socket).unwrap();
        assert!(from == at && !decode_text(&good).contains(SPOOFED_NAME) && decode_text(&good).contains("\\abc\n"));
    }
    assert!(foreign > 5 && guessed > 5 && foreign + guessed == 40);
}

/// For any protocol: three replies for each client of a server.
fn three_replies(_: Protocol, excess: Excess) -> Option<RateLimit> {
    let burst = NonZeroU32::new(3)?;
    Some(RateLimit { client: Some(TokenBucket { burst, per_second: 0.001 }), server: None, excess })
}

#[test]
fn ddnet_servers_above_their_limit_reply_without_the_list() {
    let protocols = ProtocolShares::only(Protocol::Teeworlds);
    let world =
        World::new(world::WorldSettings { servers: 120, activity: 12.0, protocols, ..world::WorldSettings::default() });
    let settings = ServeSettings {
        ports: Ports::ANY,
        live_from_ms: world.settings().start_ms + HOUR_MS,
        speed: 0.000_1,
        faults: FaultShares::NONE,
        rate_limit: |protocol| three_replies(protocol, Excess::WithoutList),
    };
    let fleet = Fleet::start(world, settings).unwrap();
    let socket = client(2_000);
    let (mut ddnet, mut vanilla) = (0, 0);
    for (server, at) in of_protocol(&fleet, Protocol::Teeworlds) {
        let players = fleet.snapshot(server).players;
        if players.is_empty() || players.len() > 10 {
            continue;
        }
        let replies: Vec<_> =
            (0..4).map(|_| request(&socket, at, b"xe\0\0\0\0\xFF\xFF\xFF\xFFgie3\x07").unwrap().1).collect();
        assert!(replies[..3].iter().all(|reply| *reply == replies[0]));
        let count = format!("\0{}\0", players.len());
        assert!(replies[3].windows(count.len()).any(|window| window == count.as_bytes()), "the number stays");
        let name = players[0].name.as_bytes();
        let lists = |reply: &[u8]| reply.windows(name.len()).any(|window| window == name);
        assert!(lists(&replies[0]));
        match replies[0].starts_with(b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFiext") {
            true => ddnet += usize::from(!lists(&replies[3])),
            false => vanilla += usize::from(replies[3] == replies[0]),
        }
    }
    assert!(ddnet > 5 && vanilla > 5, "{ddnet} of DDNet, {vanilla} others");
    assert_eq!(fleet.stats().rate_limited, ddnet as u64);
}

#[test]
fn rate_limit_is_a_token_bucket_per_server() {
    let world = World::new(world::WorldSettings::default());
    let settings = ServeSettings {
        ports: Ports::ANY,
        live_from_ms: world.settings().start_ms,
        faults: FaultShares::NONE,
        rate_limit: |protocol| three_replies(protocol, Excess::Ignored),
        ..ServeSettings::default()
    };
    let fleet = Fleet::start(world, settings).unwrap();
    let servers = of_protocol(&fleet, Protocol::Quake3);
    let socket = client(30_000);
    for _ in 0..5 {
        socket.send_to(b"\xFF\xFF\xFF\xFFgetstatus x\n", servers[0].1).unwrap();
    }
    let began = Instant::now();
    while fleet.stats().rate_limited < 2 {
        assert!(began.elapsed() < Duration::from_secs(300), "{:?}", fleet.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..3 {
        assert_eq!(socket.recv_from(&mut [0; 2_048]).unwrap().1, servers[0].1);
    }
    assert!(request(&socket, servers[1].1, b"\xFF\xFF\xFF\xFFgetstatus x\n").is_some());
    assert_eq!(fleet.stats().rate_limited, 2);
}

#[test]
fn world_time_runs_at_the_configured_speed() {
    let fleet = fleet(3, 600.0, FaultShares::NONE);
    let (_, at) = of_protocol(&fleet, Protocol::Quake3)[0];
    let before_ms = fleet.now_ms();
    std::thread::sleep(Duration::from_millis(100));
    assert!(fleet.now_ms() - before_ms >= 60_000);
    assert!(request(&client(2_000), at, b"\xFF\xFF\xFF\xFFgetstatus x\n").is_some());
    let lines = fleet.truth();
    assert!(lines.iter().filter(|line| matches!(line, TruthLine::Server { .. })).count() == 3);
    fleet.stop();
}
