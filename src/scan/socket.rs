//! UDP sockets: a few shared ones, read and written in batches.
//!
//! The kernel notes the arrival of each datagram (`SO_TIMESTAMPNS`), so a datagram may wait for
//! the next turn of the scan thread without a false round-trip time. It counts overflows of the
//! receive buffer (`SO_RXQ_OVFL`) and reports the count with each datagram: such a loss is
//! local, not a server's silence. Port-unreachable messages are read from the error queue
//! (`IP_RECVERR`). `quinn-udp` reads none of these, so the sockets are used through `nix`.

#![cfg_attr(not(test), expect(clippy::disallowed_methods, reason = "how long ago the kernel received a datagram"))]
#![cfg_attr(not(test), expect(clippy::disallowed_types, reason = "the sockets of scans"))]

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, sockopt, {self as sys},
};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Type};

use super::connections::Connections;
use super::core::{Packet, Packets, ScanToken, SocketCounts};
use super::waker::Waker;
use crate::limits::DATAGRAM_BYTES_MAX;

/// Datagrams received or sent with one system call.
const BATCH_MAX: usize = 32;

/// `sendmmsg` reports ICMP errors of earlier packets; each attempt clears one.
const SEND_ATTEMPTS_MAX: usize = 8;

/// Longest wait for space in the kernel's send buffer.
const SEND_WAIT_MS: u16 = 100;

/// If the kernel's time of a datagram is older than this, the system clock has been set meanwhile.
/// The datagram then counts as received just now.
const AGE_MAX: Duration = Duration::from_secs(5);

/// What a small datagram takes from the receive buffer, bytes: the kernel counts the memory
/// that holds it.
const BUFFERED_DATAGRAM_BYTES: usize = 2_304;

/// All sockets: first those for IPv4, then those for IPv6, if the system has IPv6.
#[derive(Debug)]
pub struct Sockets {
    sockets: Vec<Socket>,
    counts: SocketCounts,
    /// How many small datagrams fit into the receive buffers of the IPv4 sockets.
    buffered_max: usize,
}

/// What a socket has for the scan thread.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    pub socket: usize,
    /// The error queue has messages.
    pub has_errors: bool,
}

impl Sockets {
    /// Opens `count` sockets for each family, on ports that the system chooses.
    ///
    /// Errors: no IPv4 socket. A machine without IPv6 is not an error, but servers
    /// with IPv6 addresses cannot be queried.
    pub fn open(count: usize, receive_buffer_bytes: usize) -> io::Result<Sockets> {
        assert!(count > 0, "settings are checked");
        let mut sockets = Vec::new();
        for _ in 0..count {
            let socket = Socket::open(Domain::IPV4, receive_buffer_bytes);
            sockets.push(
                socket.map_err(|error| io::Error::new(error.kind(), format!("cannot open a UDP socket: {error}")))?,
            );
        }
        for _ in 0..count {
            match Socket::open(Domain::IPV6, receive_buffer_bytes) {
                Ok(socket) => sockets.push(socket),
                Err(error) => {
                    tracing::debug!(%error, "IPv6 is not available");
                    break;
                }
            }
        }
        let granted = sockets[..count].iter().map(|socket| socket.receive_buffer_bytes().unwrap_or(0)).sum::<usize>();
        let counts = SocketCounts { v4: count, v6: sockets.len() - count };
        Ok(Sockets { sockets, counts, buffered_max: granted / BUFFERED_DATAGRAM_BYTES })
    }

    pub(super) fn counts(&self) -> SocketCounts {
        self.counts
    }

    /// How many small datagrams fit into the receive buffers of the IPv4 sockets.
    pub fn buffered_max(&self) -> usize {
        self.buffered_max
    }

    /// Sleeps until a socket or connection is ready, the waker is called, or the time is over; `is_idle` is
    /// checked once more before. Returns what is ready.
    pub(super) fn wait(
        &self,
        connections: &Connections,
        waker: &Waker,
        timeout: Duration,
        is_idle: impl FnOnce() -> bool,
    ) -> io::Result<(Vec<Ready>, Vec<ScanToken>)> {
        let timeout_ms = timeout.as_nanos().div_ceil(1_000_000);
        let mut fds: Vec<PollFd> =
            self.sockets.iter().map(|socket| PollFd::new(socket.socket.as_fd(), PollFlags::POLLIN)).collect();
        fds.push(PollFd::new(waker.fd(), PollFlags::POLLIN));
        let waiting = connections.waiting();
        fds.extend(waiting.iter().map(|(_, fd, events)| PollFd::new(*fd, *events)));
        waker.before_sleep();
        let timeout =
            if is_idle() { PollTimeout::try_from(timeout_ms).unwrap_or(PollTimeout::MAX) } else { PollTimeout::ZERO };
        let polled = poll(&mut fds, timeout);
        waker.after_sleep();
        match polled {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut events = fds.iter().map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
        let sockets: Vec<PollFlags> = events.by_ref().take(self.sockets.len()).collect();
        let ready_connections = waiting.iter().zip(events.skip(1)).filter(|(_, events)| !events.is_empty());
        let ready = sockets
            .into_iter()
            .enumerate()
            .filter(|(_, events)| !events.is_empty())
            .map(|(socket, events)| Ready { socket, has_errors: events.contains(PollFlags::POLLERR) });
        Ok((ready.collect(), ready_connections.map(|((token, ..), _)| *token).collect()))
    }

    /// Receives up to a batch of datagrams. Returns the number of those that the kernel has
    /// dropped since the last batch.
    pub fn receive(&mut self, socket: usize, batch: &mut ReceiveBatch) -> u64 {
        let is_v6 = self.counts.is_v6(socket);
        let socket = &mut self.sockets[socket];
        batch.receive(&socket.socket, is_v6);
        let Some(dropped) = batch.dropped else { return 0 };
        u64::from(dropped.wrapping_sub(std::mem::replace(&mut socket.dropped_before, dropped)))
    }

    /// The next message from the error queue; `None`: there is no more.
    pub fn next_icmp_error(&self, socket: usize) -> Option<IcmpError> {
        read_error_queue(&self.sockets[socket].socket).ok()
    }

    /// Sends packets. Returns those that the system did not send. Waits only while the kernel's buffer is full.
    pub(super) fn send<'p>(&self, socket: usize, packets: &'p Packets) -> Vec<(&'p Packet, Errno)> {
        let socket = &self.sockets[socket].socket;
        let mut failed = Vec::new();
        let mut left = packets.list();
        let mut attempts = SEND_ATTEMPTS_MAX;
        while !left.is_empty() {
            match send_batch(socket, packets, &left[..left.len().min(BATCH_MAX)]) {
                Ok(count) => {
                    left = &left[count..];
                    attempts = SEND_ATTEMPTS_MAX;
                }
                Err(error) => {
                    attempts -= 1;
                    let is_full = matches!(error, Errno::EAGAIN | Errno::ENOBUFS);
                    // Without a route each attempt fails; an old ICMP error is reported only once.
                    if attempts == 0 || !(is_full || is_stale_icmp_error(error)) {
                        failed.push((&left[0], error));
                        left = &left[1..];
                        attempts = SEND_ATTEMPTS_MAX;
                    } else if is_full {
                        let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
                        let _ = poll(&mut fds, SEND_WAIT_MS);
                    }
                }
            }
        }
        failed
    }
}

#[derive(Debug)]
struct Socket {
    socket: UdpSocket,
    /// The kernel's last counter value of dropped datagrams; it wraps.
    dropped_before: u32,
}

impl Socket {
    fn open(domain: Domain, receive_buffer_bytes: usize) -> io::Result<Socket> {
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
        sys::setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        // More than net.core.rmem_max needs CAP_NET_ADMIN; a smaller buffer is not an error.
        if sys::setsockopt(&socket, sockopt::RcvBufForce, &receive_buffer_bytes).is_err() {
            let _ = socket.set_recv_buffer_size(receive_buffer_bytes);
        }
        socket.bind(&SocketAddr::new(any, 0).into())?;
        Ok(Socket { socket: socket.into(), dropped_before: 0 })
    }

    fn receive_buffer_bytes(&self) -> io::Result<usize> {
        socket2::SockRef::from(&self.socket).recv_buffer_size()
    }
}

/// Sends packets with one system call. Returns how many were sent, at least one.
fn send_batch(socket: &UdpSocket, packets: &Packets, batch: &[Packet]) -> nix::Result<usize> {
    let parts: Vec<[IoSlice; 1]> = batch.iter().map(|packet| [IoSlice::new(packets.bytes(packet))]).collect();
    let to: Vec<Option<SockaddrStorage>> = batch.iter().map(|packet| Some(packet.to.into())).collect();
    let mut headers = MultiHeaders::preallocate(batch.len(), None);
    let sent = sys::sendmmsg(socket.as_raw_fd(), &mut headers, &parts, &to, [], MsgFlags::MSG_DONTWAIT)?;
    Ok(sent.count())
}

fn is_stale_icmp_error(error: Errno) -> bool {
    matches!(
        error,
        Errno::ECONNREFUSED
            | Errno::EHOSTUNREACH
            | Errno::ENETUNREACH
            | Errno::EHOSTDOWN
            | Errno::EPROTO
            | Errno::ENOPROTOOPT
            | Errno::EINTR
    )
}

/// Datagrams of one socket, received together.
#[derive(Debug)]
pub struct ReceiveBatch {
    /// A slot of [`DATAGRAM_BYTES_MAX`] for each datagram.
    slots: Vec<u8>,
    received: Vec<ReceivedDatagram>,
    /// The kernel's drop counter; reported only after the first drop.
    dropped: Option<u32>,
    /// The time at which the batch was received.
    at: Instant,
}

/// A datagram of a batch.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedDatagram {
    pub len: usize,
    /// `None`: not an address of the socket's family.
    pub from: Option<SocketAddr>,
    /// How long ago the kernel received it.
    pub age: Duration,
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        ReceiveBatch {
            slots: vec![0; BATCH_MAX * DATAGRAM_BYTES_MAX],
            received: Vec::with_capacity(BATCH_MAX),
            dropped: None,
            at: Instant::now(),
        }
    }
}

impl ReceiveBatch {
    /// The datagrams in the order of their arrival.
    pub fn datagrams(&self) -> impl Iterator<Item = (&ReceivedDatagram, &[u8])> {
        let slots = self.slots.chunks_exact(DATAGRAM_BYTES_MAX);
        self.received.iter().zip(slots).map(|(datagram, slot)| (datagram, &slot[..datagram.len]))
    }

    pub fn len(&self) -> usize {
        self.received.len()
    }

    pub fn is_full(&self) -> bool {
        self.received.len() == BATCH_MAX
    }

    /// When the batch was received.
    pub fn at(&self) -> Instant {
        self.at
    }

    pub(super) fn receive(&mut self, socket: &UdpSocket, is_v6: bool) {
        self.received.clear();
        self.dropped = None;
        // `recvmmsg` of nix 0.31 keeps the lengths that the kernel wrote into the headers, so
        // they are made anew for every batch.
        let control = nix::cmsg_space!(TimeSpec, u32);
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH_MAX, Some(control));
        let mut parts: Vec<[IoSliceMut; 1]> =
            self.slots.chunks_exact_mut(DATAGRAM_BYTES_MAX).map(|slot| [IoSliceMut::new(slot)]).collect();
        // The error belongs to a packet that was sent earlier, and is in the error queue, too.
        let fd = socket.as_raw_fd();
        let messages = sys::recvmmsg(fd, &mut headers, parts.iter_mut(), MsgFlags::MSG_DONTWAIT, None);
        self.at = Instant::now();
        let Ok(messages) = messages else { return };
        let system_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for message in messages {
            let mut age = Duration::ZERO;
            for cmsg in message.cmsgs().into_iter().flatten() {
                match cmsg {
                    ControlMessageOwned::ScmTimestampns(at) => age = system_time.saturating_sub(at.into()),
                    ControlMessageOwned::RxqOvfl(dropped) => self.dropped = Some(dropped),
                    _ => {}
                }
            }
            let from = message.address.as_ref().and_then(address).filter(|from| from.is_ipv6() == is_v6);
            let age = if age > AGE_MAX { Duration::ZERO } else { age };
            self.received.push(ReceivedDatagram { len: message.bytes.min(DATAGRAM_BYTES_MAX), from, age });
        }
    }
}

/// An ICMP message about a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpError {
    /// The host reports that the port is closed.
    Refused(SocketAddr),
    Other,
}

/// Reads one message from the error queue. It contains the address of the sent packet.
fn read_error_queue(socket: &UdpSocket) -> io::Result<IcmpError> {
    let mut start = [0; 64];
    let mut control = [0; 512];
    let mut parts = [IoSliceMut::new(&mut start)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_ERRQUEUE;
    let message = sys::recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let refused = message.cmsgs()?.any(|c| match c {
        ControlMessageOwned::Ipv4RecvErr(error, _) => error.ee_errno == libc::ECONNREFUSED as u32,
        ControlMessageOwned::Ipv6RecvErr(error, _) => error.ee_errno == libc::ECONNREFUSED as u32,
        _ => false,
    });
    Ok(match message.address.as_ref().and_then(address) {
        Some(target) if refused => IcmpError::Refused(target),
        _ => IcmpError::Other,
    })
}

/// Drops the IPv6 scope id and flow label: they do not identify a server.
fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = storage.as_sockaddr_in() {
        return Some(SocketAddr::new(v4.ip().into(), v4.port()));
    }
    storage.as_sockaddr_in6().map(|v6| SocketAddr::new(v6.ip().into(), v6.port()))
}
