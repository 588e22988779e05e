//! Serves the fleet: one process, a few sockets, any number of servers.
//!
//! Each protocol that a server speaks has one socket on 0.0.0.0 and one thread; over TCP the address of a connection
//! is that of its server. Over UDP: `IP_PKTINFO` returns the address
//! of 127.0.0.0/8 that a query was sent to. This address identifies the server ([`super::address`]).
//! `IP_PKTINFO` also sets the source address of the reply. Delayed datagrams wait in a heap. The world is
//! shared; a server is advanced to the current time when a query arrives.
//!
//! It replies on loopback addresses only, so it cannot be used in a network.

#![cfg_attr(not(test), expect(clippy::disallowed_types, reason = "the sockets of simulated servers"))]
#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "the time of the simulated world"))]

mod connection_responder;
mod master;
mod query_receiver;
mod rate_limiter;
mod responder;
mod shared;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use strum::VariantArray;

use self::connection_responder::ConnectionResponder;
pub use self::rate_limiter::{Excess, RateLimit, RateLimitOf, TokenBucket};
use self::responder::Responder;
pub use self::shared::ServeSettings;
use self::shared::{Counters, Shared};
use super::address;
use super::behaviours::Behaviour;
use super::faults::Fault;
use super::protocol::{Ports, Protocol};
use super::truth::{self, TruthLine};
use super::world::World;
use crate::model::Snapshot;

/// Longest sleep: the maximum delay of a stop or of a delayed reply.
const POLL_TIMEOUT: Duration = Duration::from_millis(5);

/// Requested size of each socket's buffers, bytes: a query takes some 800, so a burst of 80,000
/// fits. The kernel grants at most `net.core.rmem_max` without CAP_NET_ADMIN.
const SOCKET_BUFFER_BYTES: usize = 64 * 1_024 * 1_024;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FleetStats {
    /// Datagrams received for an address of the plan, valid or not.
    pub queries: u64,
    /// Replies built, each of one or more datagrams.
    pub replies: u64,
    pub datagrams_sent: u64,
    /// Queries not answered, or answered without the list, because of the rate limit.
    pub rate_limited: u64,
    /// Queries that are invalid, or for no server.
    pub rejected: u64,
    /// Datagrams that the kernel rejected, or for which the heap was full.
    pub send_failures: u64,
}

/// A running fleet. Dropping it stops it.
pub struct Fleet {
    shared: Arc<Shared>,
    /// 0 for protocols that no server speaks.
    ports: Ports,
    threads: Vec<JoinHandle<()>>,
}

impl Fleet {
    /// Binds the ports of the protocols that a server speaks and starts to reply. Error: a port
    /// is in use, or the system has no `IP_PKTINFO`.
    pub fn start(world: World, settings: ServeSettings) -> io::Result<Fleet> {
        assert!(settings.speed > 0.0 && settings.speed.is_finite());
        let servers = world.servers();
        assert!(servers <= address::SERVERS_MAX);
        let mut ports = Ports::ANY;
        let mut sockets = Vec::new();
        for &protocol in Protocol::VARIANTS {
            if (0..servers).any(|server| world.protocol(server) == protocol) {
                let socket = BoundSocket::bind(settings.ports.of(protocol), protocol)?;
                ports.set(protocol, socket.port()?);
                sockets.push((protocol, socket));
            }
        }
        let shared = Arc::new(Shared {
            seed: world.settings().seed,
            servers,
            world: Mutex::new(world),
            settings,
            began: Instant::now(),
            skipped_ms: AtomicI64::new(0),
            stopping: AtomicBool::new(false),
            counters: Counters::default(),
        });
        let mut fleet = Fleet { shared, ports, threads: Vec::new() };
        for (protocol, socket) in sockets {
            let (port, shared) = (ports.of(protocol), Arc::clone(&fleet.shared));
            let thread = std::thread::Builder::new().name(format!("fleet-{}", protocol.name()));
            fleet.threads.push(thread.spawn(move || match socket {
                BoundSocket::Udp(socket) => Responder::new(protocol, socket, port, shared).run(),
                BoundSocket::Tcp(listener) => ConnectionResponder::new(protocol, listener, port, shared).run(),
            })?);
        }
        Ok(fleet)
    }

    /// Starts a master server on 127.0.0.1 that lists the fleet; port 0: the kernel chooses.
    /// Returns the port. Error: the port is in use.
    pub fn serve_master(&mut self, port: u16) -> io::Result<u16> {
        let servers = (0..self.servers()).map(|server| {
            let protocol = self.protocol(server);
            (protocol.scheme(), SocketAddrV4::new(address::address_of(server), self.port(protocol)))
        });
        let (port, thread) = master::start(port, servers.collect(), Arc::clone(&self.shared))?;
        self.threads.push(thread);
        Ok(port)
    }

    pub fn servers(&self) -> u32 {
        self.shared.servers
    }

    /// The port of a protocol's servers; 0 if there is none.
    pub fn port(&self, protocol: Protocol) -> u16 {
        self.ports.of(protocol)
    }

    /// `quake3://127.1.0.1:27960`
    pub fn url(&self, server: u32) -> String {
        let protocol = self.protocol(server);
        format!("{}://{}:{}", protocol.scheme(), address::address_of(server), self.port(protocol))
    }

    /// The URLs of all servers, ordered by server.
    pub fn urls(&self) -> Vec<String> {
        (0..self.servers()).map(|server| self.url(server)).collect()
    }

    pub fn protocol(&self, server: u32) -> Protocol {
        self.shared.lock().protocol(server)
    }

    /// The fault of a server, if it has one.
    pub fn fault(&self, server: u32) -> Option<Fault> {
        self.shared.settings.faults.fault(self.shared.seed, server)
    }

    /// The behaviour of a server, if it has one.
    pub fn behaviour(&self, server: u32) -> Option<Behaviour> {
        self.shared.lock().profile(server).behaviour
    }

    /// The world's current time, Unix ms.
    pub fn now_ms(&self) -> i64 {
        self.shared.now_ms()
    }

    /// Advances the world's time at once: for tests that need hours.
    pub fn skip_time(&self, by_ms: u32) {
        self.shared.skipped_ms.fetch_add(i64::from(by_ms), Ordering::Relaxed);
    }

    /// The snapshot that a scan without faults would return now.
    pub fn snapshot(&self, server: u32) -> Snapshot {
        let now_ms = self.now_ms();
        let mut world = self.shared.lock();
        world.advance(server, now_ms);
        let mut snapshot = world.snapshot(server);
        if world.protocol(server) == Protocol::Source {
            // The 0 of an entry without a name is no score.
            snapshot.players.iter_mut().filter(|player| player.name.is_empty()).for_each(|player| player.points = None);
        }
        snapshot
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
            rate_limited: value(&counters.rate_limited),
            rejected: value(&counters.rejected),
            send_failures: value(&counters.send_failures),
        }
    }

    /// The ground truth up to now as lines ([`TruthLine`]). For large, long-running
    /// fleets use [`Fleet::write_truth`].
    pub fn truth(&self) -> Vec<TruthLine> {
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

/// The socket of a protocol.
enum BoundSocket {
    Udp(UdpSocket),
    Tcp(TcpListener),
}

impl BoundSocket {
    fn bind(port: u16, protocol: Protocol) -> io::Result<BoundSocket> {
        let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
        let error =
            |error: io::Error| io::Error::new(error.kind(), format!("port {port} for {}: {error}", protocol.name()));
        if protocol.is_over_tcp() {
            let listener = TcpListener::bind(address).map_err(error)?;
            listener.set_nonblocking(true)?;
            return Ok(BoundSocket::Tcp(listener));
        }
        let socket = UdpSocket::bind(address).map_err(error)?;
        setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
        let buffers = socket2::SockRef::from(&socket);
        if setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BUFFER_BYTES).is_err() {
            buffers.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
        }
        buffers.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
        socket.set_read_timeout(Some(POLL_TIMEOUT))?;
        Ok(BoundSocket::Udp(socket))
    }

    fn port(&self) -> io::Result<u16> {
        let address = match self {
            BoundSocket::Udp(socket) => socket.local_addr(),
            BoundSocket::Tcp(listener) => listener.local_addr(),
        };
        address.map(|address| address.port())
    }
}

#[cfg(test)]
mod tests;
