//! The table of protocols.

use super::exchange::Exchange;
use super::nonce::Nonce;
use super::{a2s, quake3};

/// A protocol that can be scanned, and its URL scheme.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// The scheme of [`crate::model::ServerUrl`].
    pub scheme: &'static str,
    /// Protocols with the same wire format send the same requests; only one is tried per port.
    pub wire_format: WireFormat,
    /// Ports that servers usually use; the first is the default of the scheme.
    pub default_ports: &'static [u16],
    /// Packets sent to a server that replies to each at once.
    pub packets_typical: u32,
    start: fn(Nonce) -> Box<dyn Exchange>,
}

impl Protocol {
    /// A new scan. The nonce authenticates replies where the protocol echoes one.
    pub fn start(&self, nonce: Nonce) -> Box<dyn Exchange> {
        (self.start)(nonce)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WireFormat {
    Quake3,
    Source,
}

/// Every protocol that can be scanned.
pub static PROTOCOLS: &[Protocol] = &[
    Protocol {
        scheme: "quake3",
        wire_format: WireFormat::Quake3,
        default_ports: &[27960],
        packets_typical: 1,
        start: |nonce| Box::new(quake3::StatusQuery::new(nonce)),
    },
    Protocol {
        scheme: "darkplaces",
        wire_format: WireFormat::Quake3,
        default_ports: &[26000],
        packets_typical: 1,
        start: |nonce| Box::new(quake3::StatusQuery::new(nonce)),
    },
    Protocol {
        scheme: "source",
        wire_format: WireFormat::Source,
        default_ports: &[27015, 27016],
        packets_typical: 3,
        start: |_| Box::new(a2s::A2sQuery::new()),
    },
];

/// The protocol of a URL scheme, if it can be scanned.
pub fn protocol_of(scheme: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|p| p.scheme == scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_default_port_is_that_of_the_url_scheme() {
        for protocol in PROTOCOLS {
            let url = crate::model::ServerUrl::parse(&format!("{}://h", protocol.scheme)).unwrap();
            assert_eq!(url.port(), protocol.default_ports[0]);
            assert!(std::ptr::eq(protocol_of(protocol.scheme).unwrap(), protocol));
        }
        assert!(protocol_of("gopher").is_none());
    }
}
