//! Addresses and networks: which are public, which share a subnet, and how an admin writes
//! them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use cidr::{IpCidr, IpInet};

/// IPv4 blocks that are not globally reachable, from the IANA IPv4 Special-Purpose Address
/// Registry and the IPv4 Multicast Address Space Registry.
/// <https://www.iana.org/assignments/iana-ipv4-special-registry/>
static NOT_PUBLIC_V4: LazyLock<Vec<IpCidr>> = LazyLock::new(|| {
    networks(&[
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        // Its two anycast addresses are globally reachable, but belong to no game server.
        "192.0.0.0/24",
        "192.0.2.0/24",
        // Former 6to4 relays (RFC 7526).
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        // Multicast, and 240.0.0.0/4, which is reserved.
        "224.0.0.0/3",
    ])
});

/// All of IPv6 that is allocated for unicast (IANA IPv6 Address Space Registry).
static UNICAST_V6: LazyLock<Vec<IpCidr>> = LazyLock::new(|| networks(&["2000::/3"]));

/// Blocks of [`UNICAST_V6`] that are not globally reachable, from the IANA IPv6
/// Special-Purpose Address Registry.
/// <https://www.iana.org/assignments/iana-ipv6-special-registry/>
static NOT_PUBLIC_V6: LazyLock<Vec<IpCidr>> = LazyLock::new(|| {
    networks(&[
        // Protocol assignments, Teredo and benchmarking included.
        "2001::/23",
        "2001:db8::/32",
        // 6to4.
        "2002::/16",
        "3fff::/20",
    ])
});

/// Parts of [`NOT_PUBLIC_V6`] that the same registry lists as globally reachable.
static PUBLIC_V6: LazyLock<Vec<IpCidr>> = LazyLock::new(|| {
    networks(&[
        "2001:1::1/128",
        "2001:1::2/128",
        "2001:1::3/128",
        "2001:3::/32",
        "2001:4:112::/48",
        "2001:20::/28",
        "2001:30::/28",
    ])
});

fn networks(texts: &[&str]) -> Vec<IpCidr> {
    texts.iter().map(|text| text.parse().expect("the tables contain networks")).collect()
}

/// Whether the address can belong to a server on the internet.
pub fn is_public(ip: IpAddr) -> bool {
    let within = |blocks: &[IpCidr]| blocks.iter().any(|block| block.contains(&ip));
    match ip {
        IpAddr::V4(_) => !within(&NOT_PUBLIC_V4),
        IpAddr::V6(_) => within(&UNICAST_V6) && (!within(&NOT_PUBLIC_V6) || within(&PUBLIC_V6)),
    }
}

/// Whether the address can belong to a single server, in any network.
pub fn is_unicast(ip: IpAddr) -> bool {
    !(ip.is_unspecified() || ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST))
}

/// The /24 of an IPv4 address, the /48 of an IPv6 one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subnet(IpCidr);

impl Subnet {
    pub fn of(ip: IpAddr) -> Subnet {
        let bits = if ip.is_ipv4() { 24 } else { 48 };
        Subnet(IpInet::new(ip, bits).expect("a prefix shorter than an address").network())
    }
}

/// The string is not a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a network such as \"192.0.2.0/24\"")]
pub struct NetworkError(pub String);

/// Parses an address, or a network such as `192.0.2.0/24`. Bits after the prefix are an
/// error: a mistyped prefix is more likely than intent.
pub fn parse_network(text: &str) -> Result<IpCidr, NetworkError> {
    text.trim().parse().map_err(|_| NetworkError(text.chars().take(60).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_addresses_are_not_public() {
        for text in [
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.88.98.1",
            "192.88.100.1",
            "198.20.0.1",
            "223.255.255.255",
            "2a01:4f8::1",
            "2001:200::1",
            "2001:4860::1",
            "2003::1",
            "3ffe::1",
            "3fff:1000::1",
            // Globally reachable parts of 2001::/23.
            "2001:1::1",
            "2001:1::3",
            "2001:3::1",
            "2001:4:112::1",
            "2001:20::1",
            "2001:3f::1",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
        for text in [
            "127.0.0.1",
            "10.1.1.1",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.1.1",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "198.51.100.1",
            "203.0.113.1",
            "198.18.0.1",
            "198.19.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "64:ff9b::808:808",
            "100::1",
            "5f00::1",
            "2001::1",
            "2001:0:53aa:64c::1",
            "2001:1::4",
            "2001:2::1",
            "2001:4:113::1",
            "2001:10::1",
            "2001:40::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:808:808::1",
            "3fff::1",
            "3fff:fff::1",
            "::ffff:8.8.8.8",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        assert!(is_unicast("127.0.0.1".parse().unwrap()));
        for text in ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"] {
            assert!(!is_unicast(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn network_matches_its_addresses_and_rejects_host_bits() {
        let net = parse_network("192.0.2.0/24").unwrap();
        assert!(net.contains(&"192.0.2.255".parse().unwrap()));
        assert!(!net.contains(&"192.0.3.0".parse().unwrap()));
        assert!(!net.contains(&"::1".parse().unwrap()));
        let one = parse_network("2001:db8::5").unwrap();
        assert!(one.contains(&"2001:db8::5".parse().unwrap()) && !one.contains(&"2001:db8::6".parse().unwrap()));
        assert!(parse_network("0.0.0.0/0").unwrap().contains(&"9.9.9.9".parse().unwrap()));
        for bad in ["", "x", "1.2.3.4/33", "1.2.3.4/24", "1.2.3/24", "::1/129", "1.2.3.4/", "10/8"] {
            assert!(parse_network(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn subnet_is_a_24_or_a_48() {
        let same = |a: &str, b: &str| Subnet::of(a.parse().unwrap()) == Subnet::of(b.parse().unwrap());
        assert!(same("10.0.0.1", "10.0.0.200") && !same("10.0.0.1", "10.0.1.1"));
        assert!(same("2a01:1:2::1", "2a01:1:2:ffff::1") && !same("2a01:1:2::1", "2a01:1:3::1"));
    }
}
