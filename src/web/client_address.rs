//! Which client a request comes from: an IPv4 address, or an IPv6 /64, the smallest network that a
//! subscriber gets.
//!
//! A reverse proxy appends the address of its client to `X-Forwarded-For`. The header is read from
//! right to left, up to the first address that is not a proxy. A client may have invented the
//! addresses to the left of it. The header of a peer that is not a proxy is ignored.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue};
use cidr::IpCidr;

use crate::model::network::network_of;

/// The client that a request came from: an address behind a proxy, or a network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client(pub IpAddr);

/// The addresses whose header is used.
#[derive(Debug)]
pub(super) struct Proxies(Vec<IpCidr>);

impl Proxies {
    pub fn new(networks: &[IpCidr]) -> Proxies {
        Proxies(networks.to_vec())
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client of a request from a connected address.
    pub fn client_of(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        let mut forwarded = headers.get_all("x-forwarded-for").iter().rev().flat_map(addresses_from_right);
        while self.contains(client) {
            // If an element is not an address, the elements to its left are not trusted either.
            let Some(Some(address)) = forwarded.next() else { break };
            client = address;
        }
        network_of(client)
    }
}

/// The elements of a header; `None` is one that is not an address.
fn addresses_from_right(value: &HeaderValue) -> impl Iterator<Item = Option<IpAddr>> {
    // A value with other bytes than ASCII has no usable element.
    let elements = value.to_str().unwrap_or("?").rsplit(',').map(str::trim);
    elements.filter(|element| !element.is_empty()).map(parse_address)
}

/// Some proxies add the port: `192.0.2.7:1234`, `[2001:db8::7]:1234`.
fn parse_address(text: &str) -> Option<IpAddr> {
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse().ok().or_else(|| in_brackets().map(IpAddr::V6)).or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: &[&str] = &["127.0.0.0/8", "::1"];

    #[track_caller]
    fn check(proxies: &[&str], peer: &str, forwarded: &[&[u8]], want: &str) {
        let networks: Vec<IpCidr> = proxies.iter().map(|text| text.parse().expect("a network")).collect();
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", HeaderValue::from_bytes(value).expect("a header value"));
        }
        let client = Proxies::new(&networks).client_of(peer.parse().expect("an address"), &headers);
        let values: Vec<_> = forwarded.iter().map(|value| String::from_utf8_lossy(value)).collect();
        assert_eq!(client, want.parse::<IpAddr>().expect("an address"), "{peer} {values:?}");
    }

    #[test]
    fn only_a_proxy_names_the_client() {
        check(LOCAL, "192.0.2.7", &[], "192.0.2.7");
        check(LOCAL, "192.0.2.7", &[b"198.51.100.1"], "192.0.2.7");
        check(LOCAL, "::ffff:192.0.2.7", &[b"198.51.100.1"], "192.0.2.7");
        check(LOCAL, "2001:db8:1:2:3:4:5:6", &[], "2001:db8:1:2::");
        check(LOCAL, "127.0.0.1", &[], "127.0.0.1");
        check(LOCAL, "127.0.0.1", &[b"198.51.100.1"], "198.51.100.1");
        check(LOCAL, "::ffff:127.0.0.1", &[b"198.51.100.1"], "198.51.100.1");
        check(LOCAL, "127.200.0.1", &[b"198.51.100.1"], "198.51.100.1");
        check(LOCAL, "::1", &[b"198.51.100.1"], "198.51.100.1");
        check(&[], "127.0.0.1", &[b"198.51.100.1"], "127.0.0.1");
        check(&["10.1.0.0/16"], "10.1.2.3", &[b"198.51.100.1"], "198.51.100.1");
        check(&["10.1.0.0/16"], "10.2.2.3", &[b"198.51.100.1"], "10.2.2.3");
        check(&["2001:db8:9::/48"], "2001:db8:9::5", &[b"198.51.100.1"], "198.51.100.1");
    }

    #[test]
    fn right_most_address_that_is_not_a_proxy_counts() {
        let proxies = ["127.0.0.1", "10.0.0.0/8", "2001:db8:9::/48"];
        check(&proxies, "127.0.0.1", &[b"203.0.113.9, 198.51.100.1"], "198.51.100.1");
        check(&proxies, "127.0.0.1", &[b"203.0.113.9", b"198.51.100.1"], "198.51.100.1");
        check(&proxies, "127.0.0.1", &[b"203.0.113.9, 198.51.100.1, 10.0.0.7"], "198.51.100.1");
        check(&proxies, "127.0.0.1", &[b"203.0.113.9,198.51.100.1", b"10.0.0.7 ,\t2001:db8:9::1"], "198.51.100.1");
        check(&proxies, "127.0.0.1", &[b"203.0.113.9, 198.51.100.1", b"10.0.0.7", b"10.0.0.8"], "198.51.100.1");
        check(&proxies, "127.0.0.1", &[b"198.51.100.1, ::ffff:10.0.0.7"], "198.51.100.1");
        // A client cannot hide its address by inventing an address of a proxy.
        check(&proxies, "127.0.0.1", &[b"10.0.0.7, 198.51.100.1, 10.0.0.8"], "198.51.100.1");
        // Requests of a proxy itself.
        check(&proxies, "127.0.0.1", &[b"10.0.0.7, 10.0.0.8"], "10.0.0.7");
    }

    #[test]
    fn garbage_is_ignored_with_all_that_is_left_of_it() {
        check(LOCAL, "127.0.0.1", &[b"nonsense"], "127.0.0.1");
        check(LOCAL, "127.0.0.1", &[b""], "127.0.0.1");
        check(LOCAL, "127.0.0.1", &[b"198.51.100.1", b"\xff\xfe"], "127.0.0.1");
        check(LOCAL, "127.0.0.1", &[b"\xff\xfe", b"198.51.100.1"], "198.51.100.1");
        check(LOCAL, "127.0.0.1", &[b"nonsense, 198.51.100.1"], "198.51.100.1");
        check(LOCAL, "127.0.0.1", &[b"198.51.100.1, unknown"], "127.0.0.1");
        check(LOCAL, "127.0.0.1", &[b"198.51.100.1, unknown, 127.0.0.2"], "127.0.0.2");
        check(LOCAL, "127.0.0.1", &[b", 198.51.100.1, ,"], "198.51.100.1");
        for text in
            ["198.51.100", "198.51.100.1.2", "198.51.100.1/24", "198.51.100.1:99999", "[198.51.100.1]", "[2001:db8::5"]
        {
            check(LOCAL, "127.0.0.1", &[text.as_bytes()], "127.0.0.1");
        }
    }

    #[test]
    fn ports_brackets_and_ipv6_are_understood() {
        check(LOCAL, "127.0.0.1", &[b"198.51.100.1:1234"], "198.51.100.1");
        check(LOCAL, "127.0.0.1", &[b"203.0.113.9", b"2001:db8::5"], "2001:db8::");
        check(LOCAL, "127.0.0.1", &[b"[2001:db8:0:1:2::5]"], "2001:db8:0:1::");
        check(LOCAL, "127.0.0.1", &[b"[2001:db8::5]:1234"], "2001:db8::");
        check(LOCAL, "127.0.0.1", &[b"::ffff:198.51.100.1"], "198.51.100.1");
        check(LOCAL, "::1", &[b"198.51.100.1, [::1]:80"], "198.51.100.1");
    }
}
