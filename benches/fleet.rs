//! Measures the simulated servers themselves: `cargo bench --bench fleet`.
//!
//! Prints how fast two weeks of 2,000 servers are simulated (`CLQD_HISTORY=0` skips it).
//! Then it starts `CLQD_SERVERS` (20,000) Quake 3 servers with `CLQD_PLAYERS` (12) players
//! each in this process, and queries them over the loopback interface:
//!
//! - in one burst, without reading replies meanwhile: how many queries the fleet's socket
//!   loses;
//! - as fast as the replies arrive, for 5 s;
//! - at a constant rate, for `CLQD_SECONDS` (10), each server every `CLQD_INTERVAL` (120)
//!   seconds, sent in one batch every millisecond. Only after one interval does each query
//!   find a server that has to play for an interval.
//!
//! The CPU time is that of the fleet's threads only, from the scheduler's statistics.

use std::io::{IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use clqd::fleet::truth::TruthLine;
use clqd::fleet::{FaultShares, Fleet, Ports, Protocol, ProtocolShares, ServeSettings, SimulatedHistory};
use clqd::fleet::{World, WorldSettings, address};
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg, setsockopt, sockopt};

mod measure;

const START_MS: i64 = 1_763_683_200_000;
const QUERY: &[u8] = b"\xFF\xFF\xFF\xFFgetstatus x\n";
const REPLY_BYTES_MAX: usize = 16_384;

/// Datagrams of one system call.
const BATCH: usize = 64;

/// Queries without a reply at most, when the rate is not constant.
const WINDOW: u64 = 1_024;

/// Holds the replies of 20,000 servers.
const RECEIVE_BUFFER_BYTES: usize = 256 << 20;

fn main() -> anyhow::Result<()> {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    if number("CLQD_HISTORY", 1) > 0 {
        simulate_history();
    }
    let (servers, players) = (number("CLQD_SERVERS", 20_000) as u32, number("CLQD_PLAYERS", 12) as u16);
    let (interval_s, seconds) = (number("CLQD_INTERVAL", 120), number("CLQD_SECONDS", 10));
    let fleet = start(servers, players)?;
    let mut client = Client::new(&fleet)?;
    client.burst(&fleet)?;
    client.flood(Duration::from_secs(5))?;
    client.constant_rate(u64::from(servers) / interval_s, Duration::from_secs(seconds))
}

fn simulate_history() {
    let began = Instant::now();
    let mut world = World::new(WorldSettings { servers: 2_000, start_ms: START_MS, ..WorldSettings::default() });
    println!("2,000 servers created in {:.1} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    let (mut snapshots, mut players) = (0_u64, 0_u64);
    for (_, _, snapshot) in SimulatedHistory::new(&mut world, START_MS, START_MS + 14 * 86_400_000) {
        snapshots += 1;
        players += snapshot.players.len() as u64;
    }
    let simulated_s = began.elapsed().as_secs_f64();
    let rows = world.truth(|_| String::new()).filter(|line| matches!(line, TruthLine::Player { .. })).count();
    println!("{snapshots} snapshots of {players} players, {rows} rows, in {simulated_s:.1} s");
}

fn start(servers: u32, players: u16) -> anyhow::Result<Fleet> {
    let (began, resident_kib) = (Instant::now(), measure::resident_kib()?);
    let world = World::new(WorldSettings {
        servers,
        protocols: ProtocolShares::only(Protocol::Quake3),
        constant_players: Some(players),
        truth: false,
        ..WorldSettings::default()
    });
    let created_s = began.elapsed().as_secs_f64();
    let live_from_ms = world.settings().start_ms + 3_600_000;
    let settings =
        ServeSettings { ports: Ports::ANY, live_from_ms, faults: FaultShares::NONE, ..ServeSettings::default() };
    let fleet = Fleet::start(world, settings)?;
    fleet.advance_all();
    println!(
        "{servers} servers with {players} players: created in {created_s:.1} s, ready after {:.1} s, {} MB",
        began.elapsed().as_secs_f64(),
        (measure::resident_kib()? - resident_kib) >> 10
    );
    Ok(fleet)
}

/// A client that queries the servers in turn.
struct Client {
    socket: UdpSocket,
    servers: Vec<Option<SockaddrIn>>,
    next: usize,
    buffers: Vec<[u8; REPLY_BYTES_MAX]>,
    sent: u64,
    replies: u64,
    bytes: u64,
}

impl Client {
    fn new(fleet: &Fleet) -> anyhow::Result<Client> {
        let port = fleet.port(Protocol::Quake3);
        let at = |server| {
            let [a, b, c, d] = address::address_of(server).octets();
            Some(SockaddrIn::new(a, b, c, d, port))
        };
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
            println!("not root: the client may lose replies of the burst");
            socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
        }
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        let servers = (0..fleet.servers()).map(at).collect();
        let buffers = vec![[0; REPLY_BYTES_MAX]; BATCH];
        Ok(Client { socket, servers, next: 0, buffers, sent: 0, replies: 0, bytes: 0 })
    }

    /// Sends queries to the next servers in turn.
    fn send(&mut self, count: usize) -> anyhow::Result<()> {
        let mut missing = count;
        while missing > 0 {
            let until = self.servers.len().min(self.next + missing.min(BATCH));
            let batch = &self.servers[self.next..until];
            let mut headers = MultiHeaders::preallocate(batch.len(), None);
            let slices = vec![[IoSlice::new(QUERY)]; batch.len()];
            let sent = sendmmsg(self.socket.as_raw_fd(), &mut headers, &slices, batch, [], MsgFlags::empty())?.count();
            missing -= sent;
            self.sent += sent as u64;
            self.next = (self.next + sent) % self.servers.len();
        }
        Ok(())
    }

    /// Receives a batch of replies. Returns their number; 0 on timeout.
    fn receive(&mut self, flags: MsgFlags) -> usize {
        let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
        let mut slices: Vec<_> = self.buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
        let received = recvmmsg(self.socket.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None);
        let lengths: Vec<_> = received.into_iter().flatten().map(|message| message.bytes as u64).collect();
        self.replies += lengths.len() as u64;
        self.bytes += lengths.iter().sum::<u64>();
        lengths.len()
    }

    fn receive_rest(&mut self) {
        while self.receive(MsgFlags::MSG_WAITFORONE) > 0 {}
    }

    fn burst(&mut self, fleet: &Fleet) -> anyhow::Result<()> {
        let cpu = fleet_cpu()?;
        let count = self.servers.len().min(20_000);
        self.send(count)?;
        self.receive_rest();
        let received = fleet.stats().queries;
        println!("burst of {count} queries: {received} received, {} replies", self.replies);
        self.print_cpu(cpu)
    }

    fn flood(&mut self, duration: Duration) -> anyhow::Result<()> {
        (self.sent, self.replies) = (0, 0);
        let (began, cpu) = (Instant::now(), fleet_cpu()?);
        self.bytes = 0;
        while began.elapsed() < duration {
            while self.sent.saturating_sub(self.replies) < WINDOW {
                self.send(BATCH)?;
            }
            if self.receive(MsgFlags::MSG_WAITFORONE) == 0 {
                println!("{} queries or replies were lost", self.sent.saturating_sub(self.replies));
                self.sent = self.replies;
            }
        }
        self.receive_rest();
        let (replies, seconds) = (self.replies as f64, began.elapsed().as_secs_f64());
        println!("as fast as possible: {:.0} replies/s of {:.0} bytes", replies / seconds, self.bytes as f64 / replies);
        self.print_cpu(cpu)
    }

    fn constant_rate(&mut self, per_second: u64, duration: Duration) -> anyhow::Result<()> {
        (self.sent, self.replies) = (0, 0);
        let (began, cpu) = (Instant::now(), fleet_cpu()?);
        while began.elapsed() < duration {
            let due = (began.elapsed().as_secs_f64() * per_second as f64) as u64;
            self.send((due - self.sent) as usize)?;
            while self.receive(MsgFlags::MSG_DONTWAIT) > 0 {}
            std::thread::sleep(Duration::from_millis(1));
        }
        self.receive_rest();
        println!("{per_second} queries/s: {} of {} answered", self.replies, self.sent);
        self.print_cpu(cpu)?;
        println!("{} MB resident, with the client", measure::resident_kib()? >> 10);
        Ok(())
    }

    fn print_cpu(&self, before: Duration) -> anyhow::Result<()> {
        let used = fleet_cpu()? - before;
        println!("  fleet: {:.2} us of CPU time a reply", used.as_secs_f64() * 1e6 / self.replies as f64);
        Ok(())
    }
}

/// CPU time of the fleet's threads.
fn fleet_cpu() -> anyhow::Result<Duration> {
    measure::threads_cpu("self", "fleet-")
}
