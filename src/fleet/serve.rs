//! Serves the fleet on UDP: one process, two sockets, any number of servers.
//!
//! Each family has one socket on 0.0.0.0 and one thread. `IP_PKTINFO` returns the address
//! of 127.0.0.0/8 that a query was sent to, which identifies the server
//! ([`super::address`]), and sets the source address of the reply. Delayed datagrams wait
//! in a heap. The world is shared; a server is advanced to the current time when a query
//! arrives.
//!
//! Not for networks: it replies on loopback addresses only.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, setsockopt, sockopt,
};

use super::behaviours::Behaviour;
use super::faults::{
    FORGED_NAME, FORGED_POINTS, Fault, FaultShares, OutgoingDatagram, SpoofedReply, apply_fault, loses_datagram,
};
use super::games::Family;
use super::rng::{Rng, hash_parts};
use super::wire::{self, ClientQuery, Datagrams, ProtocolVariant};
use super::world::World;
use super::{address, truth};
use crate::model::{Player, Snapshot};

/// Queries received in a row before the heap is checked.
const RECEIVE_BATCH_MAX: usize = 64;

/// Longest query, bytes: real ones have about 140 at most.
const QUERY_BYTES_MAX: usize = 2_048;

/// Longest sleep: the maximum delay of a stop or of a delayed reply.
const POLL_TIMEOUT: Duration = Duration::from_millis(5);

/// Requested size of each socket's buffers, bytes; the kernel may grant less.
const SOCKET_BUFFER_BYTES: usize = 4 * 1_024 * 1_024;

/// Maximum number of delayed datagrams; further ones are dropped and counted.
const DELAYED_MAX: usize = 100_000;

/// Maximum number of rate limit buckets; beyond it all are dropped.
const RATE_BUCKETS_MAX: usize = 200_000;

/// How the fleet is served.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// Ports of the families; 0: the kernel chooses.
    pub quake3_port: u16,
    pub source_port: u16,
    /// The world's time when serving begins, Unix ms; not before its start.
    pub live_from_ms: i64,
    /// World time per real time, above 0; 1 is real time.
    pub speed: f64,
    pub faults: FaultShares,
    /// Rate limit of each server of the Quake 3 family; `None`: no limit.
    pub rate_limit: Option<RateLimit>,
}

impl Default for ServeSettings {
    fn default() -> Self {
        ServeSettings {
            quake3_port: 27_960,
            source_port: 27_015,
            live_from_ms: 0,
            speed: 1.0,
            faults: FaultShares::default(),
            rate_limit: None,
        }
    }
}

/// A token bucket for each (server, client), as in ioquake3.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    pub burst: f64,
    pub per_second: f64,
}

impl RateLimit {
    /// ioquake3's limit: a burst of ten, then one a second.
    pub const IOQUAKE3: RateLimit = RateLimit { burst: 10.0, per_second: 1.0 };
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetStats {
    /// Datagrams received for an address of the plan, valid or not.
    pub queries: u64,
    /// Replies built, each of one or more datagrams.
    pub replies: u64,
    pub datagrams_sent: u64,
    /// Queries not answered because of the rate limit.
    pub rate_limited: u64,
    /// Queries that are invalid, or for no server.
    pub rejected: u64,
    /// Datagrams that the kernel rejected, or for which the heap was full.
    pub send_failures: u64,
}

#[derive(Default)]
struct Counters {
    queries: AtomicU64,
    replies: AtomicU64,
    datagrams_sent: AtomicU64,
    limited: AtomicU64,
    refused: AtomicU64,
    unsent: AtomicU64,
}

/// A running fleet. Dropping it stops it.
pub struct Fleet {
    shared: Arc<Shared>,
    ports: [u16; 2],
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    world: Mutex<World>,
    settings: ServeSettings,
    seed: u64,
    servers: u32,
    began: Instant,
    /// Added to the world's time by [`Fleet::skip_time`].
    leapt_ms: AtomicI64,
    stopping: AtomicBool,
    counters: Counters,
}

impl Fleet {
    /// Binds both ports and starts to reply. Error: a port is in use, or the system has no
    /// `IP_PKTINFO`.
    pub fn start(world: World, settings: ServeSettings) -> io::Result<Fleet> {
        assert!(settings.speed > 0.0 && settings.speed.is_finite());
        let servers = world.servers();
        assert!(servers <= address::SERVERS_MAX);
        let quake3 = bind(settings.quake3_port, Family::Quake3)?;
        let source = bind(settings.source_port, Family::Source)?;
        let ports = [quake3.local_addr()?.port(), source.local_addr()?.port()];
        let shared = Arc::new(Shared {
            seed: world.settings().seed,
            servers,
            world: Mutex::new(world),
            settings,
            began: Instant::now(),
            leapt_ms: AtomicI64::new(0),
            stopping: AtomicBool::new(false),
            counters: Counters::default(),
        });
        let mut fleet = Fleet { shared, ports, threads: Vec::new() };
        for (family, socket) in [(Family::Quake3, quake3), (Family::Source, source)] {
            let port = socket.local_addr()?.port();
            let responder = Responder::new(family, socket, port, Arc::clone(&fleet.shared));
            let name = format!("fleet-{}", family.scheme());
            fleet.threads.push(std::thread::Builder::new().name(name).spawn(move || responder.run())?);
        }
        Ok(fleet)
    }

    pub fn servers(&self) -> u32 {
        self.shared.servers
    }

    pub fn port(&self, family: Family) -> u16 {
        self.ports[usize::from(family == Family::Source)]
    }

    /// `quake3://127.1.0.1:27960`
    pub fn url(&self, server: u32) -> String {
        let family = self.shared.lock().family(server);
        format!("{}://{}:{}", family.scheme(), address::address_of(server), self.port(family))
    }

    /// The URLs of all servers, ordered by server.
    pub fn urls(&self) -> Vec<String> {
        (0..self.servers()).map(|server| self.url(server)).collect()
    }

    /// The fault of a server, if it has one.
    pub fn fault(&self, server: u32) -> Option<Fault> {
        self.shared.settings.faults.fault(self.shared.seed, server)
    }

    /// The behaviour of a server, if it has one.
    pub fn behaviour(&self, server: u32) -> Option<Behaviour> {
        self.shared.lock().nature(server).behaviour
    }

    /// The world's current time, Unix ms.
    pub fn now_ms(&self) -> i64 {
        self.shared.now_ms()
    }

    /// Advances the world's time at once: for tests that need hours.
    pub fn skip_time(&self, by_ms: u32) {
        self.shared.leapt_ms.fetch_add(i64::from(by_ms), Ordering::Relaxed);
    }

    /// The snapshot that a scan without faults would return now.
    pub fn snapshot(&self, server: u32) -> Snapshot {
        let now_ms = self.now_ms();
        let mut world = self.shared.lock();
        world.advance(server, now_ms);
        world.snapshot(server)
    }

    /// Advances all servers to the current time, in batches, so that replies continue.
    pub fn advance_all(&self) {
        let now_ms = self.now_ms();
        for first in (0..self.servers()).step_by(64) {
            let mut world = self.shared.lock();
            for server in first..(first + 64).min(self.servers()) {
                world.advance(server, now_ms);
            }
        }
    }

    /// Players on all servers without bots, as of each server's last query.
    pub fn players_online(&self) -> u64 {
        self.shared.lock().players_online()
    }

    pub fn stats(&self) -> FleetStats {
        let counters = &self.shared.counters;
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FleetStats {
            queries: value(&counters.queries),
            replies: value(&counters.replies),
            datagrams_sent: value(&counters.datagrams_sent),
            rate_limited: value(&counters.limited),
            rejected: value(&counters.refused),
            send_failures: value(&counters.unsent),
        }
    }

    /// The ground truth up to now as lines ([`truth::TruthLine`]). For large, long-running
    /// fleets use [`Fleet::write_truth`].
    pub fn truth(&self) -> Vec<truth::TruthLine> {
        self.advance_all();
        let urls = self.urls();
        self.shared.lock().truth(|server| urls[server as usize].clone()).collect()
    }

    /// Writes the ground truth up to now, one JSON object per line. No query is answered
    /// during that time. Error: writing to `out` failed.
    pub fn write_truth(&self, out: &mut impl Write) -> io::Result<()> {
        self.advance_all();
        let urls = self.urls();
        truth::write(self.shared.lock().truth(|server| urls[server as usize].clone()), out)
    }

    /// Stops replying. Delayed replies are dropped.
    pub fn stop(self) {}
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread has already printed its panic message.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        let past_ms = self.began.elapsed().as_secs_f64() * 1_000.0 * self.settings.speed;
        self.settings.live_from_ms + past_ms as i64 + self.leapt_ms.load(Ordering::Relaxed)
    }
}

fn bind(port: u16, family: Family) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))
        .map_err(|error| io::Error::new(error.kind(), format!("port {port} for {}: {error}", family.scheme())))?;
    setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
    let buffers = socket2::SockRef::from(&socket);
    buffers.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    buffers.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.set_read_timeout(Some(POLL_TIMEOUT))?;
    Ok(socket)
}

/// One family's socket and the state of its thread.
struct Responder {
    family: Family,
    port: u16,
    socket: UdpSocket,
    shared: Arc<Shared>,
    rng: Rng,
    late: BinaryHeap<Reverse<DelayedDatagram>>,
    made: u64,
    buckets: HashMap<(u32, Ipv4Addr), (f64, Instant)>,
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

/// A received query.
struct ReceivedQuery {
    server: u32,
    asker: SocketAddrV4,
    length: usize,
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
    fn new(family: Family, socket: UdpSocket, port: u16, shared: Arc<Shared>) -> Responder {
        Responder {
            family,
            port,
            rng: Rng::new(&[shared.seed, 0x1A4E, u64::from(port)]),
            socket,
            shared,
            late: BinaryHeap::new(),
            made: 0,
            buckets: HashMap::new(),
            reply: Datagrams::default(),
        }
    }

    fn run(mut self) {
        let mut buffers = vec![[0_u8; QUERY_BYTES_MAX]; RECEIVE_BATCH_MAX];
        let mut control = nix::cmsg_space!(libc::in_pktinfo);
        let mut arrivals = Vec::with_capacity(RECEIVE_BATCH_MAX);
        let mut outbox = SendBuffer::default();
        let shared = Arc::clone(&self.shared);
        while !shared.stopping.load(Ordering::Relaxed) {
            arrivals.clear();
            // Wait for the first query, then take those that have already arrived.
            let mut flags = MsgFlags::empty();
            while arrivals.len() < RECEIVE_BATCH_MAX {
                match self.receive(&mut buffers[arrivals.len()], &mut control, flags) {
                    Ok(Some(arrival)) => arrivals.push(arrival),
                    Ok(None) => count(&shared.counters.refused, 1),
                    Err(_) => break,
                }
                flags = MsgFlags::MSG_DONTWAIT;
            }
            if !arrivals.is_empty() {
                let now_ms = shared.now_ms();
                let mut world = shared.lock();
                for (arrival, buffer) in arrivals.iter().zip(&buffers) {
                    self.answer(&mut world, now_ms, arrival, &buffer[..arrival.length], &mut outbox);
                }
            }
            self.send_now(&mut outbox);
            self.send_late();
        }
    }

    /// Receives one datagram. `None`: it is not for a server of this family.
    fn receive(&self, buffer: &mut [u8], control: &mut [u8], flags: MsgFlags) -> Result<Option<ReceivedQuery>, Errno> {
        let mut parts = [IoSliceMut::new(buffer)];
        let message = recvmsg::<SockaddrIn>(self.socket.as_raw_fd(), &mut parts, Some(control), flags)?;
        let destination = message.cmsgs()?.find_map(|cmsg| match cmsg {
            ControlMessageOwned::Ipv4PacketInfo(info) => Some(Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr))),
            _ => None,
        });
        let server = destination.and_then(address::server_at).filter(|&server| server < self.shared.servers);
        let Some((server, asker)) = server.zip(message.address) else { return Ok(None) };
        let asker = SocketAddrV4::new(asker.ip(), asker.port());
        Ok(Some(ReceivedQuery { server, asker, length: message.bytes }))
    }

    fn answer(
        &mut self,
        world: &mut World,
        now_ms: i64,
        arrival: &ReceivedQuery,
        query: &[u8],
        outbox: &mut SendBuffer,
    ) {
        let shared = Arc::clone(&self.shared);
        let &ReceivedQuery { server, asker, .. } = arrival;
        count(&shared.counters.queries, 1);
        let query = ClientQuery::parse(self.family, query);
        let Some(query) = query.filter(|_| world.family(server) == self.family) else {
            return count(&shared.counters.refused, 1);
        };
        let fault = shared.settings.faults.fault(shared.seed, server);
        let lost = fault == Some(Fault::Lossy) && loses_datagram(&mut self.rng);
        if lost || fault == Some(Fault::Silent) {
            return;
        }
        if self.family == Family::Quake3 && self.is_rate_limited(server, *asker.ip()) {
            return count(&shared.counters.limited, 1);
        }
        world.advance(server, now_ms);
        self.reply.clear();
        let partial = fault == Some(Fault::Partial) && self.rng.bool(0.5);
        self.make_reply(world, server, asker, query, usize::from(partial));
        let forgery = (fault == Some(Fault::Spoofed)).then(|| self.make_forgery(world, server, query));
        count(&shared.counters.replies, 1);
        let own = address::address_of(server);
        let Some(fault) = fault else {
            return self.reply.iter().for_each(|bytes| outbox.push(bytes, asker, own));
        };
        for OutgoingDatagram { from, bytes, delay_ms } in
            apply_fault(fault, self.family, server, &self.reply, forgery.as_ref(), &mut self.rng)
        {
            if delay_ms == 0 {
                outbox.push(&bytes, asker, from);
            } else if self.late.len() < DELAYED_MAX {
                self.made += 1;
                let due = Instant::now() + Duration::from_millis(delay_ms);
                self.late.push(Reverse(DelayedDatagram { due, number: self.made, to: asker, from, bytes }));
            } else {
                count(&shared.counters.unsent, 1);
            }
        }
    }

    /// Fills `self.reply`. `missing` players are announced but not listed.
    fn make_reply(&mut self, world: &mut World, server: u32, asker: SocketAddrV4, query: ClientQuery, missing: usize) {
        let out = &mut self.reply;
        let asker = hash_parts(&[u64::from(asker.ip().to_bits()), u64::from(asker.port())]);
        let challenge = wire::challenge(self.shared.seed, server, asker);
        let variant = ProtocolVariant::of(self.shared.seed, server, world.nature(server));
        match query {
            ClientQuery::Status { challenge } => wire::quake3_status(&world.snapshot(server), challenge, out),
            ClientQuery::Info { challenge } => wire::quake3_info(&world.snapshot(server), challenge, out),
            ClientQuery::A2sInfo { challenge: given } if variant.info_challenge && given != Some(challenge) => {
                wire::a2s_challenge(challenge, out);
            }
            ClientQuery::A2sInfo { .. } => {
                let snapshot = world.snapshot(server);
                wire::a2s_info(&snapshot, world.nature(server), &variant, snapshot.players.len(), self.port, out);
            }
            ClientQuery::A2sPlayer { challenge: given } | ClientQuery::A2sRules { challenge: given }
                if given != challenge =>
            {
                wire::a2s_challenge(challenge, out);
            }
            ClientQuery::A2sPlayer { .. } => {
                let players = world.snapshot(server).players;
                let id = self.rng.next_u64() as u32;
                wire::a2s_players(&players, players.len() + missing, &variant, id, out);
            }
            ClientQuery::A2sRules { .. } => wire::a2s_rules(out),
        }
    }

    /// A spoofed reply: either from the server's address with a wrong challenge, or from
    /// another address with the right one.
    fn make_forgery(&mut self, world: &mut World, server: u32, query: ClientQuery) -> SpoofedReply {
        let mut snapshot = world.snapshot(server);
        snapshot.players = (1..=6)
            .map(|number| Player {
                name: format!("{FORGED_NAME}{number}").into(),
                points: Some(FORGED_POINTS),
                ping: Some(50),
                connected_ms: Some(600_000),
                bot: false,
                spectator: false,
            })
            .collect();
        let mut reply = Datagrams::default();
        let out = &mut reply;
        let variant = ProtocolVariant::of(self.shared.seed, server, world.nature(server));
        // A2S replies carry no challenge: from the server's address the reply would be valid.
        let from_server = self.family == Family::Quake3 && self.rng.bool(0.5);
        match query {
            ClientQuery::Status { .. } if from_server => wire::quake3_status(&snapshot, b"guessed", out),
            ClientQuery::Info { .. } if from_server => wire::quake3_info(&snapshot, b"guessed", out),
            ClientQuery::Status { challenge } => wire::quake3_status(&snapshot, challenge, out),
            ClientQuery::Info { challenge } => wire::quake3_info(&snapshot, challenge, out),
            ClientQuery::A2sInfo { .. } => wire::a2s_info(&snapshot, world.nature(server), &variant, 6, self.port, out),
            ClientQuery::A2sPlayer { .. } => wire::a2s_players(&snapshot.players, 6, &variant, 1, out),
            ClientQuery::A2sRules { .. } => wire::a2s_rules(out),
        }
        let from = if from_server { address::address_of(server) } else { address::spoofing_address(server) };
        SpoofedReply { from, reply }
    }

    fn is_rate_limited(&mut self, server: u32, asker: Ipv4Addr) -> bool {
        let Some(limit) = self.shared.settings.rate_limit else { return false };
        if self.buckets.len() >= RATE_BUCKETS_MAX {
            self.buckets.clear();
        }
        let now = Instant::now();
        let (tokens, filled) = self.buckets.entry((server, asker)).or_insert((limit.burst, now));
        let refill = now.duration_since(*filled).as_secs_f64() * limit.per_second;
        *tokens = (*tokens + refill).min(limit.burst);
        *filled = now;
        if *tokens < 1.0 {
            return true;
        }
        *tokens -= 1.0;
        false
    }

    fn send_now(&self, outbox: &mut SendBuffer) {
        let mut from = 0;
        for &(end, to, source) in &outbox.items {
            self.send(&outbox.bytes[from..end], to, source);
            from = end;
        }
        outbox.bytes.clear();
        outbox.items.clear();
    }

    fn send_late(&mut self) {
        while self.late.peek().is_some_and(|Reverse(first)| first.due <= Instant::now()) {
            let Some(Reverse(late)) = self.late.pop() else { return };
            self.send(&late.bytes, late.to, late.from);
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
        count(if sent.is_ok() { &counters.datagrams_sent } else { &counters.unsent }, 1);
    }
}

fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::fleet::world;
    use crate::model::name::decode_text;

    fn fleet(servers: u32, speed: f64, faults: FaultShares) -> Fleet {
        let world = World::new(world::WorldSettings { servers, activity: 3.0, ..world::WorldSettings::default() });
        let live_from_ms = world.settings().start_ms + 3_600_000;
        let settings =
            ServeSettings { quake3_port: 0, source_port: 0, live_from_ms, speed, faults, ..ServeSettings::default() };
        Fleet::start(world, settings).unwrap()
    }

    fn client(timeout_ms: u64) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(timeout_ms))).unwrap();
        socket
    }

    fn ask(socket: &UdpSocket, to: SocketAddr, query: &[u8]) -> Option<(SocketAddr, Vec<u8>)> {
        socket.send_to(query, to).unwrap();
        hear(socket)
    }

    fn hear(socket: &UdpSocket) -> Option<(SocketAddr, Vec<u8>)> {
        let mut buffer = vec![0; 65_535];
        let (length, from) = socket.recv_from(&mut buffer).ok()?;
        buffer.truncate(length);
        Some((from, buffer))
    }

    fn of_family(fleet: &Fleet, family: Family) -> Vec<(u32, SocketAddr)> {
        let at = |server| SocketAddr::from((address::address_of(server), fleet.port(family)));
        let is = |server: &u32| fleet.shared.lock().family(*server) == family;
        (0..fleet.servers()).filter(is).map(|server| (server, at(server))).collect()
    }

    #[test]
    fn quake3_servers_reply_from_their_own_address() {
        let fleet = fleet(450, 0.000_1, FaultShares::NONE);
        let socket = client(2_000);
        let mut players_seen = 0;
        for (server, at) in of_family(&fleet, Family::Quake3).into_iter().step_by(5) {
            assert_eq!(fleet.url(server), format!("quake3://{at}"));
            let (from, reply) = ask(&socket, at, b"\xFF\xFF\xFF\xFFgetstatus s3cret\n").unwrap();
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
        // Another family's server, an address without a server, an unknown command.
        let quiet = client(50);
        let (_, source) = of_family(&fleet, Family::Source)[0];
        let port = fleet.port(Family::Quake3);
        assert_eq!(ask(&quiet, (source.ip(), port).into(), b"\xFF\xFF\xFF\xFFgetstatus x\n"), None);
        assert_eq!(ask(&quiet, ([127, 9, 9, 9], port).into(), b"\xFF\xFF\xFF\xFFgetstatus x\n"), None);
        let (_, at) = of_family(&fleet, Family::Quake3)[0];
        assert_eq!(ask(&quiet, at, b"\xFF\xFF\xFF\xFFrcon x\n"), None);
        assert_eq!(fleet.stats().rejected, 3);
    }

    #[test]
    fn source_servers_require_their_challenge_and_list_their_players() {
        let fleet = fleet(450, 0.000_1, FaultShares::NONE);
        let socket = client(2_000);
        let (mut challenged, mut split, mut players_seen) = (0, 0, 0);
        for (server, at) in of_family(&fleet, Family::Source) {
            let want = fleet.snapshot(server);
            let query = b"\xFF\xFF\xFF\xFFTSource Engine Query\0";
            let (from, mut reply) = ask(&socket, at, query).unwrap();
            assert_eq!(from, at);
            if reply[4] == b'A' {
                challenged += 1;
                reply = ask(&socket, at, &[query, &reply[5..9]].concat()).unwrap().1;
            }
            assert!(matches!(reply[4], b'I' | b'm'));
            let has = |text: &str| reply.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(has(&want.hostname) && has(&want.map) && has(&want.game));

            let (_, challenge) = ask(&socket, at, b"\xFF\xFF\xFF\xFFU\xFF\xFF\xFF\xFF").unwrap();
            assert_eq!(challenge[..5], *b"\xFF\xFF\xFF\xFFA");
            let query = [b"\xFF\xFF\xFF\xFFU", &challenge[5..9]].concat();
            let (from, reply) = ask(&socket, at, &query).unwrap();
            assert_eq!(from, at);
            if reply[0] == 0xFE {
                split += 1;
                let profile = fleet.shared.lock().nature(server).clone();
                let goldsrc =
                    ProtocolVariant::of(fleet.shared.seed, server, &profile).split == wire::SplitFormat::GoldSrc;
                let total = if goldsrc { reply[8] & 0xF } else { reply[8] };
                for _ in 1..total {
                    assert_eq!(hear(&socket).unwrap().0, at);
                }
                continue;
            }
            assert_eq!(usize::from(reply[5]), want.players.len());
            let mut at = 6;
            for player in &want.players {
                let name = player.name.as_bytes();
                assert_eq!(&reply[at + 1..at + 1 + name.len()], name);
                at += 2 + name.len();
                assert_eq!(reply[at..at + 4], (player.points.unwrap() as i32).to_le_bytes());
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
            let (server, at) = of_family(&fleet, Family::Quake3)[0];
            (fleet, server, at)
        };
        let query = b"\xFF\xFF\xFF\xFFgetstatus abc\n";

        let (fleet, server, at) = one("silent=1");
        assert_eq!(fleet.fault(server), Some(Fault::Silent));
        assert_eq!(ask(&client(50), at, query), None);

        let (_fleet, _, at) = one("slow=1");
        let started = Instant::now();
        assert_eq!(ask(&client(4_000), at, query).unwrap().0, at);
        assert!(started.elapsed() >= Duration::from_millis(400));

        let (_fleet, _, at) = one("duplicating=1");
        let socket = client(2_000);
        assert_eq!(ask(&socket, at, query), hear(&socket));

        let (_fleet, server, at) = one("spoofed=1");
        let socket = client(2_000);
        let (mut foreign, mut guessed) = (0, 0);
        for _ in 0..40 {
            let (from, forged) = ask(&socket, at, query).unwrap();
            assert!(decode_text(&forged).contains("1000000 50 \"Forged1\""));
            match from.ip() {
                ip if ip == at.ip() => guessed += u32::from(decode_text(&forged).contains("challenge\\guessed")),
                ip => {
                    foreign +=
                        u32::from(ip == address::spoofing_address(server) && decode_text(&forged).contains("\\abc"))
                }
            }
            let (from, good) = hear(&socket).unwrap();
            assert!(from == at && !decode_text(&good).contains(FORGED_NAME) && decode_text(&good).contains("\\abc"));
        }
        assert!(foreign > 5 && guessed > 5 && foreign + guessed == 40);
    }

    #[test]
    fn rate_limit_is_a_token_bucket_per_server() {
        let world = World::new(world::WorldSettings::default());
        let settings = ServeSettings {
            quake3_port: 0,
            source_port: 0,
            live_from_ms: world.settings().start_ms,
            faults: FaultShares::NONE,
            rate_limit: Some(RateLimit { burst: 3.0, per_second: 0.001 }),
            ..ServeSettings::default()
        };
        let fleet = Fleet::start(world, settings).unwrap();
        let servers = of_family(&fleet, Family::Quake3);
        let socket = client(100);
        let is_answered = |at| ask(&socket, at, b"\xFF\xFF\xFF\xFFgetstatus x\n").is_some();
        let answered: Vec<bool> = (0..5).map(|_| is_answered(servers[0].1)).collect();
        assert_eq!(answered, [true, true, true, false, false]);
        assert!(is_answered(servers[1].1));
        assert_eq!(fleet.stats().rate_limited, 2);
    }

    #[test]
    fn world_time_runs_at_the_configured_speed() {
        let fleet = fleet(3, 600.0, FaultShares::NONE);
        let (_, at) = of_family(&fleet, Family::Quake3)[0];
        let before_ms = fleet.now_ms();
        std::thread::sleep(Duration::from_millis(100));
        assert!(fleet.now_ms() - before_ms >= 60_000);
        assert!(ask(&client(2_000), at, b"\xFF\xFF\xFF\xFFgetstatus x\n").is_some());
        let lines = fleet.truth();
        assert!(lines.iter().filter(|line| matches!(line, truth::TruthLine::Server { .. })).count() == 3);
        fleet.stop();
    }

    #[test]
    #[ignore = "a measurement"]
    fn speed() {
        let fleet = Arc::new(fleet(20_000, 1.0, FaultShares::NONE));
        fleet.advance_all();
        let servers = of_family(&fleet, Family::Quake3);
        let socket = client(200);
        socket2::SockRef::from(&socket).set_recv_buffer_size(SOCKET_BUFFER_BYTES).unwrap();
        let mut buffer = vec![0; 65_535];
        let (started, mut replies, mut bytes) = (Instant::now(), 0_u64, 0_u64);
        for window in servers.chunks(200).cycle().take(1_000) {
            for (_, at) in window {
                socket.send_to(b"\xFF\xFF\xFF\xFFgetstatus x\n", at).unwrap();
            }
            for _ in window {
                let Ok(length) = socket.recv(&mut buffer) else { break };
                replies += 1;
                bytes += length as u64;
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        println!("{replies} replies, {bytes} bytes, {:.0} replies/s", replies as f64 / seconds);
        // On a busy machine the processor time of the thread is more precise.
        for task in std::fs::read_dir("/proc/self/task").unwrap() {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            let (name, rest) = stat.rsplit_once(')').unwrap();
            let fields: Vec<&str> = rest.split_whitespace().collect();
            if name.contains("fleet-quake3") {
                let ticks = [11, 12].map(|field| fields[field].parse::<f64>().unwrap() / 100.0);
                println!("user and system seconds of its thread: {ticks:?}");
            }
        }
    }
}
