//! Which addresses belong to one client or host.

use std::net::{IpAddr, Ipv6Addr};

/// An IPv4 address or `::1` itself, or the /64 of an IPv6 address: the smallest network that a customer gets.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address => address,
    }
}
