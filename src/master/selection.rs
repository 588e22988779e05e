//! From the addresses of a list to URLs of servers. Masters repeat what servers report, so a
//! list may contain any address.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use cidr::IpCidr;

use crate::limits::{IMPORTED_SERVERS_MAX, IMPORTED_SERVERS_PER_ADDRESS_MAX};
use crate::model::ServerUrl;
use crate::model::network::network_of;
use crate::proto::{ServerUrlError, parse_server_url};
use crate::scan::{is_public, is_unicast};

/// The URLs of a list, and what was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// In the order of the addresses.
    pub urls: Vec<ServerUrl>,
    pub dropped: DroppedCounts,
}

/// Which addresses are dropped: those that the scanner refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRules {
    /// `scan.allow_private`
    pub allow_private: bool,
    /// `scan.opt_out`
    pub opt_out: Vec<IpCidr>,
    /// The most servers of a list.
    pub servers_max: usize,
    /// The most servers of a list on one IPv4 address, or in one IPv6 /64.
    pub servers_per_address_max: usize,
}

impl Default for AddressRules {
    fn default() -> AddressRules {
        AddressRules {
            allow_private: false,
            opt_out: Vec::new(),
            servers_max: IMPORTED_SERVERS_MAX,
            servers_per_address_max: IMPORTED_SERVERS_PER_ADDRESS_MAX,
        }
    }
}

/// Addresses that cannot belong to a server that is scanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedCounts {
    /// Private, loopback, multicast or reserved.
    pub not_public: u64,
    /// In `scan.opt_out`.
    pub opted_out: u64,
    /// The port is below 1024, where no game server is.
    pub low_port: u64,
    /// More servers on their address, or in the /64 of their IPv6 address, than a list may have.
    pub same_address: u64,
    /// More servers than a list may have.
    pub too_many: u64,
}

/// Lowest port of a server in a list.
const PORT_MIN: u16 = 1_024;

impl Selection {
    /// `servers`: addresses with their schemes. Error: a scheme is not one that can be scanned.
    pub fn new<'s>(
        servers: impl IntoIterator<Item = (SocketAddr, &'s str)>,
        rules: &AddressRules,
    ) -> Result<Selection, ServerUrlError> {
        let mut selection = Selection::default();
        let mut by_network: HashMap<IpAddr, usize> = HashMap::new();
        for (address, scheme) in servers {
            let network = network_of(address.ip());
            if address.port() < PORT_MIN {
                selection.dropped.low_port += 1;
            } else if !is_unicast(address.ip()) || !(rules.allow_private || is_public(address.ip())) {
                selection.dropped.not_public += 1;
            } else if rules.opt_out.iter().any(|network| network.contains(&address.ip())) {
                selection.dropped.opted_out += 1;
            } else if selection.urls.len() >= rules.servers_max {
                selection.dropped.too_many += 1;
            } else if by_network.get(&network).is_some_and(|&servers| servers >= rules.servers_per_address_max) {
                selection.dropped.same_address += 1;
            } else {
                *by_network.entry(network).or_default() += 1;
                selection.urls.push(parse_server_url(&format!("{scheme}://{address}"))?);
            }
        }
        Ok(selection)
    }
}

impl DroppedCounts {
    pub fn is_empty(&self) -> bool {
        *self == DroppedCounts::default()
    }

    pub fn add(&mut self, other: DroppedCounts) {
        self.not_public += other.not_public;
        self.opted_out += other.opted_out;
        self.low_port += other.low_port;
        self.same_address += other.same_address;
        self.too_many += other.too_many;
    }
}

/// `4 not public, 1 with a port below 1024`
impl fmt::Display for DroppedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.not_public, "not public"),
            (self.opted_out, "opted out"),
            (self.low_port, "with a port below 1024"),
            (self.same_address, "too many on one address"),
            (self.too_many, "too many in the list"),
        ];
        let texts: Vec<String> =
            reasons.iter().filter(|(count, _)| *count > 0).map(|(count, reason)| format!("{count} {reason}")).collect();
        f.write_str(&texts.join(", "))
    }
}

/// Checks that servers of a scheme can be scanned. The error names the nearest scheme.
pub fn check_scheme(scheme: &str) -> Result<(), ServerUrlError> {
    parse_server_url(&format!("{scheme}://host:1")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(texts: &[&str], allow_private: bool) -> (Vec<String>, String) {
        let servers = texts.iter().map(|text| (text.parse().expect("an address"), "quake3"));
        let opt_out = vec!["9.9.0.0/16".parse().expect("a network")];
        let rules = AddressRules { allow_private, opt_out, servers_max: 7, servers_per_address_max: 2 };
        let selection = Selection::new(servers, &rules).expect("a known scheme");
        (selection.urls.into_iter().map(String::from).collect(), selection.dropped.to_string())
    }

    #[test]
    fn addresses_that_cannot_be_servers_are_dropped_and_counted() {
        let texts = [
            "9.9.8.8:1024",
            "8.8.8.8:1024",
            "[2a01:4f8::1]:2222",
            "127.0.0.1:3333",
            "10.0.0.1:4444",
            "224.0.0.1:5555",
            "9.9.9.9:0",
            "1.1.1.1:1023",
            "0.0.0.0:6666",
            "[::1]:7777",
        ];
        let (urls, dropped) = select(&texts, false);
        assert_eq!(urls, ["quake3://8.8.8.8:1024", "quake3://[2a01:4f8::1]:2222"]);
        assert_eq!(dropped, "5 not public, 1 opted out, 2 with a port below 1024");
        let (urls, dropped) = select(&texts, true);
        assert_eq!(urls.len(), 5);
        assert_eq!(dropped, "2 not public, 1 opted out, 2 with a port below 1024");
        assert_eq!(select(&["8.8.8.8:1024"], false).1, "");
    }

    #[test]
    fn lists_and_addresses_have_at_most_so_many_servers() {
        let texts: Vec<String> = (0..12).map(|n| format!("8.8.8.{}:{}", n / 3, 2_000 + n)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (urls, dropped) = select(&texts, false);
        assert_eq!(urls.len(), 7);
        assert_eq!(dropped, "3 too many on one address, 2 too many in the list");
        let of_one_host =
            ["[2a01:4f8::1]:2222", "[2a01:4f8::2]:2222", "[2a01:4f8::3:0:0:7]:2222", "[2a01:4f8:0:1::1]:2222"];
        let (urls, dropped) = select(&of_one_host, false);
        assert_eq!((urls.len(), &*dropped), (3, "1 too many on one address"));
    }

    #[test]
    fn unknown_scheme_is_refused() {
        assert!(check_scheme("quake3").is_ok());
        assert!(check_scheme("xonotik").expect_err("not a scheme").to_string().contains("xonotic://"));
        assert!(check_scheme("").is_err());
        let server = ("8.8.8.8:1024".parse().expect("an address"), "gopher");
        assert!(Selection::new([server], &AddressRules::default()).is_err());
    }
}
