//! Packets to be sent, and the socket from which each is sent.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

/// Identifies a scan in flight. Never reused.
pub(in crate::scan) type ScanToken = u64;

/// Number of sockets: first those for IPv4, then those for IPv6, if the system has IPv6.
#[derive(Clone, Copy, Debug)]
pub(in crate::scan) struct SocketCounts {
    pub v4: usize,
    pub v6: usize,
}

impl SocketCounts {
    pub fn all(self) -> usize {
        self.v4 + self.v6
    }

    pub fn is_v6(self, socket: usize) -> bool {
        socket >= self.v4
    }

    /// The socket for this address, always the same one; `None` if the address family
    /// is not available.
    pub fn index_for(self, address: SocketAddr) -> Option<usize> {
        let (first, count) = if address.is_ipv4() { (0, self.v4) } else { (self.v4, self.v6) };
        let spread = match address.ip() {
            IpAddr::V4(ip) => ip.to_bits() as usize,
            IpAddr::V6(ip) => ip.to_bits() as usize,
        };
        let spread = spread.wrapping_mul(31).wrapping_add(address.port().into());
        (count > 0).then(|| first + spread % count)
    }
}

/// Packets to be sent from one socket, in one buffer.
#[derive(Debug, Default)]
pub(in crate::scan) struct Packets {
    bytes: Vec<u8>,
    list: Vec<Packet>,
}

/// A packet in the buffer of [`Packets`].
#[derive(Debug)]
pub(in crate::scan) struct Packet {
    range: Range<usize>,
    pub to: SocketAddr,
    /// The scan that sends it.
    pub token: ScanToken,
}

impl Packets {
    pub(super) fn push(&mut self, to: SocketAddr, packet: &[u8], token: ScanToken) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        self.list.push(Packet { range: start..self.bytes.len(), to, token });
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn list(&self) -> &[Packet] {
        &self.list
    }

    pub fn bytes(&self, packet: &Packet) -> &[u8] {
        &self.bytes[packet.range.clone()]
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.list.clear();
    }
}
