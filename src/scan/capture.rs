//! The datagrams of one scan as they were received, so that they can be decoded again.

use std::net::SocketAddr;

use crate::limits::REPLY_BYTES_MAX;
use crate::proto::Nonce;

/// Most datagrams that are kept: a reply has at most 255 fragments.
const DATAGRAMS_MAX: usize = 256;

/// What the last exchange of a scan received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The scheme of the protocol that was used.
    pub scheme: &'static str,
    /// The address that was queried.
    pub address: SocketAddr,
    pub nonce: Nonce,
    /// Arrival, Unix ms, and content of each datagram from the queried address, also of those
    /// that were ignored. Together at most [`REPLY_BYTES_MAX`] bytes; later ones are left out.
    pub datagrams: Vec<(i64, Vec<u8>)>,
}

impl Capture {
    pub(super) fn new(scheme: &'static str, address: SocketAddr, nonce: Nonce) -> Capture {
        Capture { scheme, address, nonce, datagrams: Vec::new() }
    }

    pub(super) fn add(&mut self, t_ms: i64, bytes: &[u8]) {
        let held: usize = self.datagrams.iter().map(|(_, bytes)| bytes.len()).sum();
        if self.datagrams.len() < DATAGRAMS_MAX && held + bytes.len() <= REPLY_BYTES_MAX {
            self.datagrams.push((t_ms, bytes.to_vec()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_is_bounded() {
        let mut capture = Capture::new("quake3", "10.0.0.1:1".parse().unwrap(), Nonce(1));
        (0..1_000).for_each(|_| capture.add(1, b"x"));
        assert_eq!(capture.datagrams.len(), DATAGRAMS_MAX);
        let mut capture = Capture::new("quake3", "10.0.0.1:1".parse().unwrap(), Nonce(1));
        (0..20).for_each(|_| capture.add(1, &[0; 60_000]));
        assert_eq!(capture.datagrams.len(), REPLY_BYTES_MAX / 60_000);
    }
}
