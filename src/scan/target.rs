//! What a scan queries: which protocols on which ports.

use crate::model::ServerUrl;
use crate::proto::{self, AUTO_SCHEME, PROTOCOLS, Protocol, Transport, WireFormat};
use crate::scan::request::ScanMode;

/// One protocol on one port.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub protocol: &'static Protocol,
    pub port: u16,
    pub effort: Effort,
}

/// The port of Minecraft: a URL with it leads to the SRV record of its host.
pub const MINECRAFT_PORT: u16 = 25565;

impl Target {
    /// Whether the SRV record of the host says its port.
    pub fn is_of_service(&self) -> bool {
        self.protocol.scheme == "minecraft" && self.port == MINECRAFT_PORT
    }

    /// Whether a lost packet could hide a server of a common protocol. TCP repeats what is lost.
    fn is_repeated(&self) -> bool {
        let is_same = |protocol: &Protocol| protocol.wire_format == self.protocol.wire_format;
        let is_common = PROTOCOLS.iter().take(COMMON_PROTOCOLS).any(is_same);
        is_common && self.protocol.transport == Transport::Udp
    }
}

/// How long a target is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// With the timeout and the retries of the settings; in exception mode three times as many.
    Full,
    /// One packet. The reply may take as long as the pause before the next packet.
    Probe,
    /// One packet. The next one may follow after [`QUICK_PROBE_PAUSE`](super::settings::QUICK_PROBE_PAUSE); a reply
    /// that comes after it is accepted, too.
    QuickProbe,
}

/// How many times each probe of a common protocol on the port of the URL is sent, so that a lost packet does not hide
/// the server.
const PROBE_PASSES: usize = 2;

/// The first so many of [`PROTOCOLS`] are common ones.
const COMMON_PROTOCOLS: usize = 10;

/// Distances from the port of the game to the port that answers queries: Unreal and Unreal 2, Arma 3 and
/// some twenty other games, the games of the Cube engine, All-Seeing Eye, Battlefield.
const QUERY_PORT_DISTANCES: [(WireFormat, u16); 8] = [
    (WireFormat::Unreal2, 1),
    (WireFormat::GameSpy1, 1),
    (WireFormat::Source, 1),
    (WireFormat::Sauerbraten, 1),
    (WireFormat::AssaultCube, 1),
    (WireFormat::RedEclipse, 1),
    (WireFormat::AllSeeingEye, 123),
    (WireFormat::Frostbite, 22_000),
];

/// The targets to try for a URL, in order. Empty if the scheme has no protocol.
///
/// Exception mode (docs/rules.md section 9), and the scheme [`AUTO_SCHEME`]: after the URL's own
/// protocol come the queries of games that usually have this port, then every other wire format on the
/// port, and then the query ports that games have beside it. In exception mode each protocol is then tried
/// on its default ports. What answers there is another server, so it does not belong to a port that
/// somebody asks for. No request is sent to the same port for two protocols with the same wire format.
pub fn targets(url: &ServerUrl, mode: ScanMode) -> Vec<Target> {
    let own = proto::protocol_of(url.scheme());
    let with_fallback = own.into_iter().chain(own.and_then(|protocol| protocol.fallback));
    let own_targets = with_fallback.map(|protocol| Target { protocol, port: url.port(), effort: Effort::Full });
    let is_auto = url.scheme() == AUTO_SCHEME;
    if !is_auto && (mode == ScanMode::Normal || own.is_none()) {
        return own_targets.collect();
    }
    let mut plan: Vec<Target> = own_targets.collect();
    let effort = if is_auto { Effort::QuickProbe } else { Effort::Probe };
    for (protocol, port) in proto::usual_queries(url.port()) {
        add_to(&mut plan, protocol, port, effort);
    }
    let usual = plan.len();
    let mut add = |protocol: &'static Protocol, port| add_to(&mut plan, protocol, port, effort);
    for protocol in PROTOCOLS {
        add(protocol, url.port());
    }
    for (format, distance) in QUERY_PORT_DISTANCES {
        let protocol = PROTOCOLS.iter().find(|protocol| protocol.wire_format == format);
        if let (Some(protocol), Some(port)) = (protocol, url.port().checked_add(distance)) {
            add(protocol, port);
        }
    }
    for protocol in own.into_iter().chain(PROTOCOLS).filter(|_| !is_auto) {
        for &port in protocol.default_ports {
            add(protocol, port);
        }
    }
    let is_repeated = |target: &Target| target.effort == effort && target.port == url.port() && target.is_repeated();
    let repeated: Vec<Target> = plan.iter().copied().filter(is_repeated).collect();
    plan.extend((1..PROBE_PASSES).flat_map(|_| repeated.iter().copied()));
    if is_auto {
        // Quick probes over UDP follow each other; a connection is waited for.
        plan[usual..].sort_by_key(|target| target.protocol.transport == Transport::Tcp);
    }
    plan
}

/// Adds a protocol and its fallback, unless the same wire format is tried on the port already.
fn add_to(plan: &mut Vec<Target>, protocol: &'static Protocol, port: u16, effort: Effort) {
    for protocol in [protocol].into_iter().chain(protocol.fallback) {
        if !plan.iter().any(|target| target.protocol.wire_format == protocol.wire_format && target.port == port) {
            plan.push(Target { protocol, port, effort });
        }
    }
}

/// Maximum number of probes for any URL.
pub fn probes_max(mode: ScanMode) -> usize {
    // No protocol has default port 1.
    let urls = PROTOCOLS.iter().filter_map(|protocol| ServerUrl::parse(&format!("{}://h:1", protocol.scheme)).ok());
    let probes = |url: &ServerUrl| targets(url, mode).iter().filter(|target| target.effort != Effort::Full).count();
    urls.map(|url| probes(&url)).max().unwrap_or(0)
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
        for url in ["source://h:9", "darkplaces://h:27960", "auto://h:9"] {
            let plan = targets(&ServerUrl::parse(url).unwrap(), Exception);
            let (full, probes): (Vec<&Target>, Vec<&Target>) =
                plan.iter().partition(|target| target.effort == Effort::Full);
            assert_eq!(full.len(), usize::from(!url.starts_with("auto")), "{url}");
            let port = ServerUrl::parse(url).unwrap().port();
            let mut passes = std::collections::BTreeMap::new();
            for target in full.iter().chain(&probes) {
                *passes.entry((target.protocol.wire_format, target.port)).or_insert(0) += 1;
            }
            for ((format, at), count) in &passes {
                let is_own = full.iter().any(|own| own.protocol.wire_format == *format && own.port == *at);
                let protocols = PROTOCOLS.iter().chain(PROTOCOLS.iter().filter_map(|own| own.fallback));
                let protocol = protocols.into_iter().find(|protocol| protocol.wire_format == *format).unwrap();
                let is_repeated = Target { protocol, port, effort: Effort::Probe }.is_repeated();
                let want = if *at == port && !is_own && is_repeated { PROBE_PASSES } else { 1 };
                assert_eq!(*count, want, "{url}: {format:?} on {at}");
            }
            for protocol in PROTOCOLS {
                let usual = if url.starts_with("auto") { &[][..] } else { protocol.default_ports };
                for port in usual.iter().chain([&port]) {
                    assert!(
                        passes.contains_key(&(protocol.wire_format, *port)),
                        "{url}: {} on {port}",
                        protocol.scheme
                    );
                }
            }
        }
        let planned = planned("source://h:9", Exception);
        assert_eq!(planned[..2], [("source", 9), ("quake3", 9)]);
        assert!(planned.contains(&("unreal2", 10)) && planned.contains(&("ase", 132)));
    }

    #[test]
    fn auto_scheme_probes_in_every_mode() {
        let modes = [ScanMode::Normal, ScanMode::Exception];
        let [normal, exception] = modes.map(|mode| planned("auto://h:9", mode));
        assert_eq!(normal, exception);
        assert_eq!(normal[0], ("quake3", 9));
    }

    #[test]
    fn usual_ports_of_games_are_tried_first() {
        for (port, first) in [
            (25565, &[("minecraft", 25565)][..]),
            (16567, &[("gamespy3", 29900)]),
            (2302, &[("gamespy1", 2303), ("source", 2303), ("gamespy2", 2302)]),
            (7777, &[("samp", 7777), ("gamespy1", 7778), ("unreal2", 7778)]),
        ] {
            let plan = planned(&format!("auto://h:{port}"), ScanMode::Normal);
            assert_eq!(plan[..first.len()], *first, "{port}");
        }
    }
}
