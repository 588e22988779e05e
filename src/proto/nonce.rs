//! Nonces authenticate a reply as one to our own request, without state per server:
//! a keyed hash of address and scan, as in zmap.

use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

use siphasher::sip::SipHasher24;

/// A value that the server must repeat. It is the same for every resend of one
/// scan, so that a late reply to the first packet is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce(pub u64);

impl Nonce {
    /// 16 hex digits: valid in an infostring, far below the 128 that servers accept.
    pub fn hex(self) -> String {
        format!("{:016x}", self.0)
    }

    /// Four bytes, for protocols that echo as many.
    pub fn bytes4(self) -> [u8; 4] {
        ((self.0 & 0xffff_ffff) as u32).to_be_bytes()
    }

    /// Whether this nonce is in a sample of this share, 0 to 1, of all nonces. They are hashes,
    /// so each is in it with this probability, independently of the server.
    pub fn is_sampled(self, share: f64) -> bool {
        const NONCES: f64 = (1_u128 << 64) as f64;
        // The largest nonces are rounded up to their number.
        share >= 1.0 || (self.0 as f64) < share * NONCES
    }
}

/// The secret key of one process.
#[derive(Clone)]
pub struct NonceKey([u8; 16]);

impl NonceKey {
    /// The bytes must be random and must not leave the process.
    pub fn new(random: [u8; 16]) -> Self {
        NonceKey(random)
    }

    /// The nonce of one scan of one address. `scan` is never repeated in a process.
    pub fn nonce(&self, address: SocketAddr, scan: u64) -> Nonce {
        let mut hash = SipHasher24::new_with_key(&self.0);
        match address.ip() {
            IpAddr::V4(ip) => hash.write(&ip.octets()),
            IpAddr::V6(ip) => hash.write(&ip.octets()),
        }
        hash.write(&address.port().to_le_bytes());
        hash.write(&scan.to_le_bytes());
        Nonce(hash.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_contains_its_share_of_nonces() {
        let key = NonceKey::new([1; 16]);
        let address = "10.0.0.1:1".parse().unwrap();
        let sampled = |share| (0..10_000).filter(|&scan| key.nonce(address, scan).is_sampled(share)).count();
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 10_000));
        assert!((400..600).contains(&sampled(0.05)), "{}", sampled(0.05));
        assert!(!Nonce(0).is_sampled(0.0) && Nonce(u64::MAX).is_sampled(1.0) && !Nonce(u64::MAX).is_sampled(0.999));
    }

    #[test]
    fn nonce_depends_on_key_address_port_and_scan() {
        let key = NonceKey::new([1; 16]);
        let a: SocketAddr = "10.0.0.1:1".parse().unwrap();
        let base = key.nonce(a, 1);
        assert_eq!(base, key.nonce(a, 1));
        assert_ne!(base, key.nonce(a, 2));
        assert_ne!(base, key.nonce("10.0.0.1:2".parse().unwrap(), 1));
        assert_ne!(base, key.nonce("10.0.0.2:1".parse().unwrap(), 1));
        assert_ne!(base, NonceKey::new([2; 16]).nonce(a, 1));
        assert_eq!(Nonce(7).hex(), "0000000000000007");
    }
}
