//! The servers of a list on a website.

use std::collections::BTreeSet;
use std::net::SocketAddr;

/// The servers of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebList {
    /// Each address once.
    pub addresses: BTreeSet<SocketAddr>,
    /// The scheme of the servers.
    pub scheme: &'static str,
    /// Strings that are not addresses, such as host names.
    pub invalid: Vec<String>,
}

impl WebList {
    pub(super) fn new(scheme: &'static str) -> WebList {
        WebList { addresses: BTreeSet::new(), scheme, invalid: Vec::new() }
    }

    /// Adds an address. Any other text is invalid.
    pub(super) fn add(&mut self, text: &str) {
        match text.parse::<SocketAddr>() {
            Ok(address) => _ = self.addresses.insert(SocketAddr::new(address.ip().to_canonical(), address.port())),
            Err(_) => self.invalid.push(text.to_owned()),
        }
    }
}
