//! What a scan queries: which protocols on which ports.

use crate::model::ServerUrl;
use crate::proto::{self, PROTOCOLS, Protocol};
use crate::scan::request::ScanMode;

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
}
