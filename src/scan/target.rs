//! What a scan queries: which protocols on which ports; which addresses are
//! public, opted out, or in the same subnet.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::Deserialize;

use super::ScanMode;
use crate::model::ServerUrl;
use crate::proto::{self, PROTOCOLS, Protocol};

/// One protocol on one port.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub protocol: &'static Protocol,
    pub port: u16,
}

/// The targets to try for a URL, in order. Empty if the scheme has no protocol.
///
/// Exception mode (docs/rules.md section 9): every wire format on the port, the URL's own
/// first; then each protocol on its default ports. No request is sent twice to
/// the same port for two protocols with the same wire format.
pub fn targets(url: &ServerUrl, mode: ScanMode) -> Vec<Target> {
    let own = proto::protocol_of(url.scheme());
    let mut plan: Vec<Target> = Vec::new();
    let mut add = |protocol: &'static Protocol, port| {
        if !plan.iter().any(|t| t.protocol.wire_format == protocol.wire_format && t.port == port) {
            plan.push(Target { protocol, port });
        }
    };
    if let Some(own) = own {
        add(own, url.port());
    }
    if mode == ScanMode::Exception {
        for protocol in PROTOCOLS {
            add(protocol, url.port());
        }
        for protocol in own.into_iter().chain(PROTOCOLS) {
            for &port in protocol.default_ports {
                add(protocol, port);
            }
        }
    }
    plan
}

/// Maximum number of targets of any URL.
pub fn targets_max(mode: ScanMode) -> usize {
    // No protocol has default port 1.
    let urls = PROTOCOLS.iter().filter_map(|protocol| ServerUrl::parse(&format!("{}://h:1", protocol.scheme)).ok());
    urls.map(|url| targets(&url, mode).len()).max().unwrap_or(0)
}

/// Whether the address can belong to a server on the internet.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            !(a == 0
                || a == 10
                || a == 127
                || a >= 224
                || (a == 100 && (64..128).contains(&b))
                || (a == 169 && b == 254)
                || (a == 172 && (16..32).contains(&b))
                || (a == 192 && b == 168)
                || (a == 192 && b == 0 && (c == 0 || c == 2))
                || (a == 198 && (b == 18 || b == 19))
                || (a == 198 && b == 51 && c == 100)
                || (a == 203 && b == 0 && c == 113))
        }
        IpAddr::V6(ip) => {
            let [a, b, ..] = ip.segments();
            // Only 2000::/3 is allocated; 2001:db8::/32 is reserved for documentation.
            a & 0xe000 == 0x2000 && !(a == 0x2001 && b == 0x0db8)
        }
    }
}

/// Whether the address can belong to a single server, in any network.
pub fn is_unicast(ip: IpAddr) -> bool {
    !(ip.is_unspecified() || ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST))
}

/// The /24 of an IPv4 address, the /48 of an IPv6 one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subnet(IpAddr);

impl Subnet {
    pub fn of(ip: IpAddr) -> Subnet {
        Subnet(mask(ip, if ip.is_ipv4() { 24 } else { 48 }))
    }
}

fn mask(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
        }
    }
}

/// A network such as `192.0.2.0/24`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Cidr {
    network: IpAddr,
    bits: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a network such as \"192.0.2.0/24\"")]
pub struct CidrError(pub String);

impl Cidr {
    pub fn contains(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.network.is_ipv4() && mask(ip, self.bits) == self.network
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Cidr, CidrError> {
        let bad = || CidrError(text.chars().take(60).collect());
        let (ip, bits) = match text.split_once('/') {
            Some((ip, bits)) => (ip, Some(bits.parse::<u8>().map_err(|_| bad())?)),
            None => (text, None),
        };
        let ip: IpAddr = ip.trim().parse().map_err(|_| bad())?;
        let bits_max = if ip.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(bits_max);
        // Bits after the mask are more likely a typing error than intended.
        if bits > bits_max || mask(ip, bits) != ip {
            return Err(bad());
        }
        Ok(Cidr { network: ip, bits })
    }
}

impl TryFrom<String> for Cidr {
    type Error = CidrError;

    fn try_from(text: String) -> Result<Cidr, CidrError> {
        text.parse()
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(url: &str, mode: ScanMode) -> Vec<(&'static str, u16)> {
        let plan = targets(&ServerUrl::parse(url).unwrap(), mode);
        plan.into_iter().map(|t| (t.protocol.scheme, t.port)).collect()
    }

    #[test]
    fn exception_mode_tries_each_protocol_once_per_port() {
        use ScanMode::*;
        assert_eq!(planned("source://h:9", Normal), [("source", 9)]);
        assert_eq!(planned("gopher://h:9", Normal), []);
        assert_eq!(
            planned("source://h:9", Exception),
            [
                ("source", 9),
                ("quake3", 9),
                ("source", 27015),
                ("source", 27016),
                ("quake3", 27960),
                ("darkplaces", 26000)
            ]
        );
        assert_eq!(
            planned("darkplaces://h:27960", Exception),
            [("darkplaces", 27960), ("source", 27960), ("darkplaces", 26000), ("source", 27015), ("source", 27016)]
        );
    }

    #[test]
    fn reserved_addresses_are_not_public() {
        for text in ["8.8.8.8", "100.63.0.1", "172.32.0.1", "192.0.1.1", "2a01:4f8::1"] {
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
            "255.255.255.255",
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "2001:db8::1",
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
    fn cidr_matches_its_network_and_rejects_host_bits() {
        let net: Cidr = "192.0.2.0/24".parse().unwrap();
        assert!(net.contains("192.0.2.255".parse().unwrap()));
        assert!(!net.contains("192.0.3.0".parse().unwrap()));
        assert!(!net.contains("::1".parse().unwrap()));
        let one: Cidr = "2001:db8::5".parse().unwrap();
        assert!(one.contains("2001:db8::5".parse().unwrap()) && !one.contains("2001:db8::6".parse().unwrap()));
        assert!("0.0.0.0/0".parse::<Cidr>().unwrap().contains("9.9.9.9".parse().unwrap()));
        for bad in ["", "x", "1.2.3.4/33", "1.2.3.4/24", "1.2.3/24", "::1/129", "1.2.3.4/"] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad}");
        }
        let same = |a: &str, b: &str| Subnet::of(a.parse().unwrap()) == Subnet::of(b.parse().unwrap());
        assert!(same("10.0.0.1", "10.0.0.200") && !same("10.0.0.1", "10.0.1.1"));
        assert!(same("2a01:1:2::1", "2a01:1:2:ffff::1") && !same("2a01:1:2::1", "2a01:1:3::1"));
    }
}
