//! UDP sockets: a few shared ones, each with a task that receives.
//!
//! The receivers add the arrival time to every datagram and pass it on through a
//! bounded channel. While the channel is full they leave datagrams in the kernel's
//! buffer. The kernel counts overflows of that buffer (`SO_RXQ_OVFL`) and reports
//! the count with each datagram: such a loss is local, not a server's silence.
//! Port-unreachable messages are read from the error queue (`IP_RECVERR`).
//! `quinn-udp` reads neither, so the sockets are read with `nix`.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, sockopt, {self as sys},
};
use socket2::{Domain, Protocol, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::limits::DATAGRAM_BYTES_MAX;
use crate::scan::counters::ScanCounters;
use crate::scan::request::Now;

/// Capacity of the channel from the receivers to the engine. A burst of replies
/// fits; further datagrams wait in the kernel's buffers.
const EVENT_QUEUE_MAX: usize = 1_024;

/// Reads from one socket before the others get their turn.
const READ_BATCH_MAX: usize = 64;

/// `sendto` reports ICMP errors of earlier packets; each attempt clears one.
const SEND_ATTEMPTS_MAX: usize = 8;

/// A datagram or an error from a socket.
#[derive(Debug)]
pub enum SocketEvent {
    Datagram {
        socket: usize,
        from: SocketAddr,
        /// Arrival: Unix ms, and on the clock of the timers.
        t_ms: i64,
        at: tokio::time::Instant,
        bytes: Box<[u8]>,
    },
    /// The host reports that the port is closed.
    Refused { from: SocketAddr },
}

/// All sockets: first those for IPv4, then those for IPv6, if the system has IPv6.
#[derive(Debug)]
pub struct Sockets {
    sockets: Vec<Arc<UdpSocket>>,
    drops: Vec<Arc<AtomicU64>>,
    v4_count: usize,
    events: mpsc::Receiver<SocketEvent>,
    _receivers: JoinSet<()>,
}

impl Sockets {
    /// Opens `count` sockets for each family, on ports that the system chooses.
    ///
    /// Errors: no IPv4 socket. A machine without IPv6 is not an error, but servers
    /// with IPv6 addresses cannot be queried.
    pub fn open(
        count: usize,
        receive_buffer_bytes: usize,
        now: Now,
        counters: Arc<ScanCounters>,
    ) -> io::Result<Sockets> {
        assert!(count > 0, "settings are checked");
        let mut sockets = Vec::new();
        for _ in 0..count {
            sockets.push(Arc::new(open(Domain::IPV4, receive_buffer_bytes)?));
        }
        for _ in 0..count {
            match open(Domain::IPV6, receive_buffer_bytes) {
                Ok(socket) => sockets.push(Arc::new(socket)),
                Err(error) => {
                    tracing::debug!(%error, "IPv6 is not available");
                    break;
                }
            }
        }
        let (events_tx, events) = mpsc::channel(EVENT_QUEUE_MAX);
        let mut receivers = JoinSet::new();
        let mut drops = Vec::new();
        for (index, socket) in sockets.iter().enumerate() {
            let dropped = Arc::new(AtomicU64::new(0));
            drops.push(dropped.clone());
            let receiver = Receiver {
                index,
                socket: socket.clone(),
                events: events_tx.clone(),
                now: now.clone(),
                counters: counters.clone(),
                dropped,
                dropped_before: 0,
                is_v6: index >= count,
            };
            receivers.spawn(receiver.run());
        }
        Ok(Sockets { sockets, drops, v4_count: count, events, _receivers: receivers })
    }

    /// The socket for this address, always the same one; `None` if the address family
    /// is not available.
    pub fn index_for(&self, address: SocketAddr) -> Option<usize> {
        let (first, count) =
            if address.is_ipv4() { (0, self.v4_count) } else { (self.v4_count, self.sockets.len() - self.v4_count) };
        let spread = match address.ip() {
            IpAddr::V4(ip) => ip.to_bits() as usize,
            IpAddr::V6(ip) => ip.to_bits() as usize,
        };
        let spread = spread.wrapping_mul(31).wrapping_add(address.port().into());
        (count > 0).then(|| first + spread % count)
    }

    /// Datagrams that the kernel dropped at this socket, as far as it has reported.
    pub fn drops(&self, socket: usize) -> u64 {
        self.drops[socket].load(Ordering::Relaxed)
    }

    /// Sends one packet. Waits only while the kernel's buffer is full.
    pub async fn send(&self, socket: usize, address: SocketAddr, packet: &[u8]) -> io::Result<()> {
        let socket = &self.sockets[socket];
        let mut attempts = SEND_ATTEMPTS_MAX;
        loop {
            match socket.send_to(packet, address).await {
                Ok(_) => return Ok(()),
                Err(error) => {
                    attempts -= 1;
                    // Without a route each attempt fails; an old ICMP error is reported only once.
                    if attempts == 0 || !is_stale_icmp_error(&error) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// The next event. Cancel-safe.
    pub async fn next_event(&mut self) -> SocketEvent {
        match self.events.recv().await {
            Some(event) => event,
            // The receivers have ended; no further event arrives.
            None => std::future::pending().await,
        }
    }

    pub fn try_next_event(&mut self) -> Option<SocketEvent> {
        self.events.try_recv().ok()
    }
}

fn is_stale_icmp_error(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | Interrupted)
        || error.raw_os_error().is_some_and(|e| e == libc::EHOSTDOWN || e == libc::EPROTO || e == libc::ENOPROTOOPT)
}

fn open(domain: Domain, receive_buffer_bytes: usize) -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
    let any: IpAddr = if domain == Domain::IPV4 {
        sys::setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        socket.set_only_v6(true)?;
        sys::setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
        Ipv6Addr::UNSPECIFIED.into()
    };
    sys::setsockopt(&socket, sockopt::RxqOvfl, &1)?;
    // More than net.core.rmem_max needs CAP_NET_ADMIN; a smaller buffer is not an error.
    if sys::setsockopt(&socket, sockopt::RcvBufForce, &receive_buffer_bytes).is_err() {
        let _ = socket.set_recv_buffer_size(receive_buffer_bytes);
    }
    socket.bind(&SocketAddr::new(any, 0).into())?;
    UdpSocket::from_std(socket.into())
}

struct Receiver {
    index: usize,
    socket: Arc<UdpSocket>,
    events: mpsc::Sender<SocketEvent>,
    now: Now,
    counters: Arc<ScanCounters>,
    dropped: Arc<AtomicU64>,
    /// The kernel's last counter value; it wraps.
    dropped_before: u32,
    is_v6: bool,
}

impl Receiver {
    async fn run(mut self) {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let mut control = vec![0; 512];
        loop {
            if let Err(error) = self.socket.ready(Interest::READABLE | Interest::ERROR).await {
                tracing::error!(%error, "waiting for a scan socket failed");
                return;
            }
            while let Ok(error) =
                self.socket.try_io(Interest::ERROR, || read_error_queue(self.socket.as_raw_fd(), &mut control))
            {
                match error {
                    Icmp::Refused(from) => {
                        self.counters.icmp_port_unreachable.increment();
                        if self.events.send(SocketEvent::Refused { from }).await.is_err() {
                            return;
                        }
                    }
                    Icmp::Other => self.counters.icmp_other.increment(),
                }
            }
            for _ in 0..READ_BATCH_MAX {
                let fd = self.socket.as_raw_fd();
                let read = self.socket.try_io(Interest::READABLE, || receive(fd, &mut buffer, &mut control));
                match read {
                    Ok(read) => {
                        if !self.forward(read, &buffer).await {
                            return;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // The ICMP error of an earlier packet; it is in the error queue too.
                    Err(_) => {}
                }
            }
        }
    }

    async fn forward(&mut self, read: ReceivedDatagram, buffer: &[u8]) -> bool {
        let at = tokio::time::Instant::now();
        let t_ms = (self.now)();
        if let Some(dropped) = read.dropped {
            let more = u64::from(dropped.wrapping_sub(self.dropped_before));
            self.dropped_before = dropped;
            self.dropped.fetch_add(more, Ordering::Relaxed);
            self.counters.kernel_drops.add(more);
        }
        self.counters.packets_received.increment();
        self.counters.bytes_received.add(read.len as u64);
        let Some(from) = read.from.filter(|from| from.is_ipv6() == self.is_v6) else {
            return true;
        };
        let bytes = buffer[..read.len].into();
        self.events.send(SocketEvent::Datagram { socket: self.index, from, t_ms, at, bytes }).await.is_ok()
    }
}

struct ReceivedDatagram {
    len: usize,
    from: Option<SocketAddr>,
    /// The kernel's drop counter; sent only after the first drop.
    dropped: Option<u32>,
}

fn receive(fd: RawFd, buffer: &mut [u8], control: &mut [u8]) -> io::Result<ReceivedDatagram> {
    let mut parts = [IoSliceMut::new(buffer)];
    let message = sys::recvmsg::<SockaddrStorage>(fd, &mut parts, Some(control), MsgFlags::MSG_DONTWAIT)?;
    let dropped = message.cmsgs()?.find_map(|c| match c {
        ControlMessageOwned::RxqOvfl(dropped) => Some(dropped),
        _ => None,
    });
    Ok(ReceivedDatagram { len: message.bytes, from: message.address.as_ref().and_then(address), dropped })
}

enum Icmp {
    Refused(SocketAddr),
    Other,
}

/// Reads one message from the error queue. It contains the address of the sent packet.
fn read_error_queue(fd: RawFd, control: &mut [u8]) -> io::Result<Icmp> {
    let mut start = [0; 64];
    let mut parts = [IoSliceMut::new(&mut start)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_ERRQUEUE;
    let message = sys::recvmsg::<SockaddrStorage>(fd, &mut parts, Some(control), flags)?;
    let refused = message.cmsgs()?.any(|c| match c {
        ControlMessageOwned::Ipv4RecvErr(error, _) => error.ee_errno == libc::ECONNREFUSED as u32,
        ControlMessageOwned::Ipv6RecvErr(error, _) => error.ee_errno == libc::ECONNREFUSED as u32,
        _ => false,
    });
    Ok(match message.address.as_ref().and_then(address) {
        Some(target) if refused => Icmp::Refused(target),
        _ => Icmp::Other,
    })
}

/// Drops the IPv6 scope id and flow label: they do not identify a server.
fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = storage.as_sockaddr_in() {
        return Some(SocketAddr::new(v4.ip().into(), v4.port()));
    }
    storage.as_sockaddr_in6().map(|v6| SocketAddr::new(v6.ip().into(), v6.port()))
}
