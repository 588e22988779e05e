//! From the addresses of a list to URLs of servers. Masters repeat what servers report, so a
//! list may contain any address.

use std::fmt;
use std::net::SocketAddr;

use cidr::IpCidr;

use crate::model::ServerUrl;
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressRules {
    /// `scan.allow_private`
    pub allow_private: bool,
    /// `scan.opt_out`
    pub opt_out: Vec<IpCidr>,
}

/// Addresses that cannot belong to a server that is scanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedCounts {
    /// Private, loopback, multicast or reserved.
    pub not_public: u64,
    /// In `scan.opt_out`.
    pub opted_out: u64,
    /// The port is 0.
    pub no_port: u64,
}

impl Selection {
    /// Error: the scheme is not one that can be scanned.
    pub fn new(
        addresses: impl IntoIterator<Item = SocketAddr>,
        scheme: &str,
        rules: &AddressRules,
    ) -> Result<Selection, ServerUrlError> {
        let mut selection = Selection::default();
        for address in addresses {
            if address.port() == 0 {
                selection.dropped.no_port += 1;
            } else if !is_unicast(address.ip()) || !(rules.allow_private || is_public(address.ip())) {
                selection.dropped.not_public += 1;
            } else if rules.opt_out.iter().any(|network| network.contains(&address.ip())) {
                selection.dropped.opted_out += 1;
            } else {
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
        self.no_port += other.no_port;
    }
}

/// `4 not public, 1 without a port`
impl fmt::Display for DroppedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons =
            [(self.not_public, "not public"), (self.opted_out, "opted out"), (self.no_port, "without a port")];
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
        let addresses = texts.iter().map(|text| text.parse().expect("an address"));
        let rules = AddressRules { allow_private, opt_out: vec!["9.9.0.0/16".parse().expect("a network")] };
        let selection = Selection::new(addresses, "quake3", &rules).expect("a known scheme");
        (selection.urls.into_iter().map(String::from).collect(), selection.dropped.to_string())
    }

    #[test]
    fn addresses_that_cannot_be_servers_are_dropped_and_counted() {
        let texts = [
            "9.9.8.8:1",
            "8.8.8.8:1",
            "[2a01:4f8::1]:2",
            "127.0.0.1:3",
            "10.0.0.1:4",
            "224.0.0.1:5",
            "9.9.9.9:0",
            "0.0.0.0:6",
            "[::1]:7",
        ];
        let (urls, dropped) = select(&texts, false);
        assert_eq!(urls, ["quake3://8.8.8.8:1", "quake3://[2a01:4f8::1]:2"]);
        assert_eq!(dropped, "5 not public, 1 opted out, 1 without a port");
        let (urls, dropped) = select(&texts, true);
        assert_eq!(urls.len(), 5);
        assert_eq!(dropped, "2 not public, 1 opted out, 1 without a port");
        assert_eq!(select(&["8.8.8.8:1"], false).1, "");
    }

    #[test]
    fn unknown_scheme_is_refused() {
        assert!(check_scheme("quake3").is_ok());
        assert!(check_scheme("xonotik").expect_err("not a scheme").to_string().contains("xonotic://"));
        assert!(check_scheme("").is_err());
        assert!(
            Selection::new(["8.8.8.8:1".parse().expect("an address")], "gopher", &AddressRules::default()).is_err()
        );
    }
}
