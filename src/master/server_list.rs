//! The servers of a list.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The servers of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerList {
    /// Each address once, and the scheme of its URL.
    pub servers: BTreeMap<SocketAddr, &'static str>,
    /// False if the end of the list did not arrive.
    pub is_complete: bool,
    /// Strings that are not addresses, such as host names.
    pub invalid: Vec<String>,
}

impl ServerList {
    /// A complete list without servers.
    pub(super) fn new() -> ServerList {
        ServerList { servers: BTreeMap::new(), is_complete: true, invalid: Vec::new() }
    }

    /// Adds a server. Any text that is not an address is invalid.
    pub(super) fn add(&mut self, text: &str, scheme: &'static str) {
        match text.parse::<SocketAddr>() {
            Ok(address) => {
                let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                self.servers.entry(address).or_insert(scheme);
            }
            Err(_) => self.invalid.push(text.to_owned()),
        }
    }

    /// The addresses with their schemes, or all with one scheme.
    pub fn with_scheme<'s>(&'s self, scheme: Option<&'s str>) -> impl Iterator<Item = (SocketAddr, &'s str)> {
        self.servers.iter().map(move |(&address, &own)| (address, scheme.unwrap_or(own)))
    }
}
