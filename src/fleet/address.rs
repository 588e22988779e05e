//! The address plan: the loopback address of each simulated server.
//!
//! Server 0 is 127.1.0.1, server 199 is 127.1.0.200, server 200 is 127.1.1.1,
//! server 51,200 is 127.2.0.1, and so on: 200 servers in a /24, 256 /24s in a
//! /16. All servers of one protocol share one port. Linux accepts packets for all of
//! 127.0.0.0/8 without configuration.

use std::net::Ipv4Addr;

/// Servers in one /24; large enough to exercise the rate limit per /24.
pub const SERVERS_PER_24: u32 = 200;

/// Maximum number of servers of one fleet: 127.1.0.0 to 127.249.255.200. Spoofed
/// replies come from 127.250 and above.
pub const SERVERS_MAX: u32 = 249 * 256 * SERVERS_PER_24;

/// The address of a server. `server` is below [`SERVERS_MAX`].
pub fn address_of(server: u32) -> Ipv4Addr {
    debug_assert!(server < SERVERS_MAX);
    let net = server / SERVERS_PER_24;
    Ipv4Addr::new(127, (1 + net / 256) as u8, (net % 256) as u8, (1 + server % SERVERS_PER_24) as u8)
}

/// The server of an address, if the plan has one.
pub fn server_at(address: Ipv4Addr) -> Option<u32> {
    let [127, high @ 1..=249, low, host] = address.octets() else { return None };
    let net = (u32::from(high) - 1) * 256 + u32::from(low);
    let host = u32::from(host).checked_sub(1)?;
    (host < SERVERS_PER_24).then_some(net * SERVERS_PER_24 + host)
}

/// Source address of spoofed replies of a server: never a server's address.
pub fn spoofing_address(server: u32) -> Ipv4Addr {
    let [_, _, low, host] = address_of(server).octets();
    Ipv4Addr::new(127, 250, low, host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_maps_back_to_its_server() {
        for (number, text) in [
            (0, "127.1.0.1"),
            (199, "127.1.0.200"),
            (200, "127.1.1.1"),
            (51_200, "127.2.0.1"),
            (SERVERS_MAX - 1, "127.249.255.200"),
        ] {
            assert_eq!(address_of(number).to_string(), text);
        }
        for number in (0..SERVERS_MAX).step_by(997) {
            assert_eq!(server_at(address_of(number)), Some(number));
            assert_eq!(server_at(spoofing_address(number)), None);
        }
        for outside in ["127.0.0.1", "127.1.0.0", "127.1.0.201", "10.1.0.1", "127.250.0.1"] {
            assert_eq!(server_at(outside.parse().unwrap()), None, "{outside}");
        }
    }
}
