//! The table of protocols.

use std::net::SocketAddr;

use super::a2s::A2sQuery;
use super::exchange::Exchange;
use super::nonce::Nonce;
use super::{
    all_seeing_eye, armagetron, bedrock, bzflag, cube, doom3, fivem, frostbite, gamespy1, gamespy2, gamespy3,
    minecraft_status, mumble, odamex, quake2, quake3, quakeworld, redeclipse, samp, teeworlds, teeworlds7, unreal2,
    zandronum,
};
use crate::model::ServerUrl;

/// A protocol that can be scanned, and its URL scheme.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// The scheme of [`crate::model::ServerUrl`].
    pub scheme: &'static str,
    /// Protocols with the same wire format send the same requests; only one is tried per port.
    pub wire_format: WireFormat,
    pub transport: Transport,
    /// Ports that servers usually answer queries on; the first is the default of the scheme.
    pub default_ports: &'static [u16],
    /// Tried on the same port if a server does not answer. It has the same scheme, so a server has one URL.
    pub fallback: Option<&'static Protocol>,
    /// It is the fallback of another protocol, and not in [`PROTOCOLS`].
    pub is_fallback: bool,
    /// Packets sent to a server that replies to each at once; over TCP: requests.
    pub packets_typical: u32,
    /// Most different packets of a scan, whatever the server replies. Each may be sent again as often as
    /// `scan.retries` says.
    pub packets_max: u32,
    start: Start,
}

/// Starts a scan: the nonce authenticates replies where the protocol echoes one, the address is
/// the one that is queried.
type Start = fn(Nonce, SocketAddr) -> Box<dyn Exchange>;

impl Protocol {
    const fn new(
        scheme: &'static str,
        wire_format: WireFormat,
        default_ports: &'static [u16],
        packets_typical: u32,
        packets_max: u32,
        start: Start,
    ) -> Protocol {
        Protocol {
            scheme,
            wire_format,
            transport: Transport::Udp,
            default_ports,
            fallback: None,
            is_fallback: false,
            packets_typical,
            packets_max,
            start,
        }
    }

    const fn over_tcp(self) -> Protocol {
        Protocol { transport: Transport::Tcp, ..self }
    }

    const fn as_fallback(self) -> Protocol {
        Protocol { is_fallback: true, ..self }
    }

    const fn with_fallback(self, fallback: &'static Protocol) -> Protocol {
        Protocol { fallback: Some(fallback), ..self }
    }

    /// A new scan of an address.
    pub fn start(&self, nonce: Nonce, address: SocketAddr) -> Box<dyn Exchange> {
        (self.start)(nonce, address)
    }
}

/// What carries the requests and replies of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Udp,
    /// One connection for a scan.
    Tcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WireFormat {
    Quake3,
    QuakeWorld,
    Quake2,
    Source,
    GameSpy1,
    GameSpy2,
    GameSpy3,
    Unreal2,
    AllSeeingEye,
    Samp,
    Doom3,
    QuakeWars,
    Teeworlds,
    Teeworlds7,
    Bedrock,
    MinecraftStatus,
    FiveM,
    Frostbite,
    Sauerbraten,
    AssaultCube,
    RedEclipse,
    Zandronum,
    Odamex,
    Bzflag,
    Armagetron,
    Mumble,
}

/// The status of a Minecraft server, which most servers send; the query, which has the whole list, is off by default.
#[rustfmt::skip]
static MINECRAFT_STATUS: Protocol =
    Protocol::new("minecraft", WireFormat::MinecraftStatus, &[25565], 1, 1, |_, address| Box::new(minecraft_status::StatusQuery::new(address))).over_tcp().as_fallback();

/// Every protocol that can be scanned, the most common first: exception mode tries them in this
/// order.
#[rustfmt::skip]
pub static PROTOCOLS: &[Protocol] = &[
    Protocol::new("quake3", WireFormat::Quake3, &[27960], 1, 1, |nonce, _| Box::new(quake3::StatusQuery::new(nonce))),
    Protocol::new("darkplaces", WireFormat::Quake3, &[26000], 1, 1, |nonce, _| Box::new(quake3::StatusQuery::new(nonce))),
    Protocol::new("source", WireFormat::Source, &[27015, 27016], 3, 8, |_, _| Box::new(A2sQuery::new())),
    Protocol::new("teeworlds", WireFormat::Teeworlds, &[8303], 1, 1, |nonce, _| Box::new(teeworlds::InfoQuery::new(nonce))),
    Protocol::new("teeworlds7", WireFormat::Teeworlds7, &[8303], 2, 2, |nonce, _| Box::new(teeworlds7::InfoQuery::new(nonce))),
    Protocol::new("quakeworld", WireFormat::QuakeWorld, &[27500], 1, 1, |_, _| Box::new(quakeworld::StatusQuery::new())),
    Protocol::new("quake2", WireFormat::Quake2, &[27910], 1, 1, |_, _| Box::new(quake2::StatusQuery)),
    Protocol::new("samp", WireFormat::Samp, &[7777], 3, 3, |nonce, address| Box::new(samp::SampQuery::new(nonce, address))),
    Protocol::new("unreal2", WireFormat::Unreal2, &[7778], 2, 2, |_, address| Box::new(unreal2::Unreal2Query::new(address.port()))),
    Protocol::new("gamespy1", WireFormat::GameSpy1, &[7778, 23000], 1, 1, |_, address| Box::new(gamespy1::StatusQuery::new(address.port()))),
    Protocol::new("gamespy2", WireFormat::GameSpy2, &[23000], 1, 1, |nonce, address| Box::new(gamespy2::StatusQuery::new(nonce, address.port()))),
    Protocol::new("gamespy3", WireFormat::GameSpy3, &[29900], 2, 5, |nonce, address| Box::new(gamespy3::StatusQuery::new(nonce, address.port()))),
    Protocol::new("minecraft", WireFormat::GameSpy3, &[25565], 2, 5, |nonce, address| Box::new(gamespy3::StatusQuery::new(nonce, address.port()))).with_fallback(&MINECRAFT_STATUS),
    Protocol::new("bedrock", WireFormat::Bedrock, &[19132], 1, 1, |nonce, _| Box::new(bedrock::PingQuery::new(nonce))),
    Protocol::new("ase", WireFormat::AllSeeingEye, &[22126], 1, 1, |_, _| Box::new(all_seeing_eye::AllSeeingEyeQuery)),
    Protocol::new("doom3", WireFormat::Doom3, &[27666, 28004], 1, 1, |nonce, _| Box::new(doom3::InfoQuery::new(nonce, doom3::Form::Doom3))),
    Protocol::new("etqw", WireFormat::QuakeWars, &[27733], 1, 1, |nonce, _| Box::new(doom3::InfoQuery::new(nonce, doom3::Form::QuakeWars))),
    Protocol::new("cube2", WireFormat::Sauerbraten, &[28786, 42000], 2, 2, |nonce, _| Box::new(cube::CubeQuery::sauerbraten(nonce))),
    Protocol::new("cube1", WireFormat::AssaultCube, &[28764], 2, 2, |nonce, _| Box::new(cube::CubeQuery::assaultcube(nonce))),
    Protocol::new("eclipse", WireFormat::RedEclipse, &[28802], 1, 1, |nonce, _| Box::new(redeclipse::InfoQuery::new(nonce))),
    // Before Odamex: a Zandronum server sends nothing for ten seconds after a datagram of another protocol.
    Protocol::new("zandronum", WireFormat::Zandronum, &[10666], 1, 1, |nonce, _| Box::new(zandronum::LauncherQuery::new(nonce))),
    Protocol::new("odamex", WireFormat::Odamex, &[10666], 1, 1, |nonce, _| Box::new(odamex::LauncherQuery::new(nonce))),
    Protocol::new("armagetron", WireFormat::Armagetron, &[4534], 1, 1, |_, _| Box::new(armagetron::InformationQuery)),
    Protocol::new("mumble", WireFormat::Mumble, &[64738], 1, 1, |nonce, _| Box::new(mumble::PingQuery::new(nonce))),
    Protocol::new("fivem", WireFormat::FiveM, &[30120], 2, 2, |_, address| Box::new(fivem::FiveMQuery::new(address, "fivem"))).over_tcp(),
    Protocol::new("redm", WireFormat::FiveM, &[30120], 2, 2, |_, address| Box::new(fivem::FiveMQuery::new(address, "redm"))).over_tcp(),
    Protocol::new("frostbite", WireFormat::Frostbite, &[47200, 48888], 1, 1, |_, _| Box::new(frostbite::FrostbiteQuery::new())).over_tcp(),
    Protocol::new("bzflag", WireFormat::Bzflag, &[5154], 1, 1, |_, _| Box::new(bzflag::BzflagQuery::new())).over_tcp(),
];

/// The protocol of a URL scheme, if it can be scanned.
pub fn protocol_of(scheme: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|p| p.scheme == scheme)
}

/// The URLs under which the same server would be known: other schemes with the same wire format.
pub fn same_server(url: &ServerUrl) -> impl Iterator<Item = ServerUrl> {
    let own = protocol_of(url.scheme());
    let is_twin = move |other: &&Protocol| {
        own.is_some_and(|own| own.wire_format == other.wire_format && own.scheme != other.scheme)
    };
    let others = PROTOCOLS.iter().filter(is_twin);
    others.map(|other| url.with_scheme_and_port(other.scheme, url.port())).collect::<Vec<_>>().into_iter()
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
