//! The protocols of the simulated servers: schemes, ports, what a player list contains,
//! and how many servers speak which.

use std::borrow::Cow;
use std::str::FromStr;

use strum::{IntoStaticStr, VariantArray};

use super::shares::{ShareListError, Shares};
use crate::model::url::default_port;

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Protocol {
    Quake3,
    Source,
    QuakeWorld,
    Quake2,
    GameSpy1,
    GameSpy2,
    GameSpy3,
    Unreal2,
    /// All-Seeing Eye.
    Ase,
    SaMp,
    Doom3,
    /// 0.6, of the original server or of DDNet.
    Teeworlds,
    /// 0.7.
    Teeworlds7,
    /// Minecraft (Java), by the query protocol of GameSpy 3.
    Minecraft,
    /// Minecraft (Java), by the status over TCP only.
    MinecraftStatus,
    /// Over HTTP.
    FiveM,
    /// Minecraft (Bedrock), by the ping of RakNet.
    Bedrock,
    /// Enemy Territory: Quake Wars.
    Etqw,
    /// Battlefield 4 and Hardline.
    Frostbite,
    /// Sauerbraten.
    Cube2,
    /// AssaultCube.
    Cube1,
    /// Red Eclipse.
    Eclipse,
    Zandronum,
    Odamex,
    Bzflag,
    Armagetron,
    Mumble,
}

/// Number of protocols.
const COUNT: usize = Protocol::VARIANTS.len();

/// The largest number of players of a SA-MP server that still sends its list.
pub const SAMP_LIST_PLAYERS_MAX: usize = 100;

/// Clients in a reply of the original Teeworlds 0.6 server.
pub const TEEWORLDS_CLIENTS_MAX: u16 = 16;

/// Which names the servers of a protocol show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFormat {
    /// Any text with colour codes of Quake 3.
    Coloured,
    /// Any text.
    Plain,
    /// UTF-8 of at most this many bytes.
    Short(usize),
    /// Printable ASCII of at most this many bytes.
    Ascii(usize),
    /// ASCII letters, digits and `_`, at most 16.
    Word,
}

impl NameFormat {
    /// The name of a person whose name in other games is `plain`.
    pub fn apply(self, plain: &str) -> Cow<'_, str> {
        let replaced = |is_valid: fn(char) -> bool, bytes_max: usize| {
            let name: String = plain.chars().map(|c| if is_valid(c) { c } else { '_' }).take(bytes_max).collect();
            Cow::Owned(name.trim_end().to_owned())
        };
        match self {
            NameFormat::Coloured | NameFormat::Plain => plain.into(),
            NameFormat::Short(bytes_max) => {
                let end = (0..=bytes_max.min(plain.len())).rev().find(|&at| plain.is_char_boundary(at)).unwrap_or(0);
                plain[..end].trim_end().into()
            }
            NameFormat::Ascii(bytes_max) => replaced(|c| matches!(c, ' '..='~'), bytes_max),
            NameFormat::Word => replaced(|c| c.is_ascii_alphanumeric() || c == '_', 16),
        }
    }
}

/// What a player list contains.
#[derive(Clone, Copy, Debug)]
pub struct ListFormat {
    pub names: NameFormat,
    pub has_ping: bool,
    /// Unit of the connect times, ms; `None`: the list has none.
    pub connected_unit_ms: Option<u64>,
}

impl Protocol {
    /// As in `--protocols`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Scheme of the server's URL.
    pub fn scheme(self) -> &'static str {
        match self {
            Protocol::MinecraftStatus => "minecraft",
            _ => self.name(),
        }
    }

    /// Whether the servers listen on TCP, and not on UDP.
    pub fn is_over_tcp(self) -> bool {
        matches!(self, Protocol::MinecraftStatus | Protocol::FiveM | Protocol::Frostbite | Protocol::Bzflag)
    }

    /// A port that servers of this protocol use. Each protocol has its own, because all
    /// servers of one protocol share one socket.
    pub fn usual_port(self) -> u16 {
        match self {
            Protocol::Unreal2 => 7_708,
            Protocol::Teeworlds7 => 8_304,
            Protocol::MinecraftStatus => 25_566,
            Protocol::Odamex => 10_667,
            _ => default_port(self.scheme()).expect("each scheme has a default port"),
        }
    }

    /// What the player list contains.
    pub fn list_format(self) -> ListFormat {
        let format = |names, has_ping| ListFormat { names, has_ping, connected_unit_ms: None };
        use NameFormat::{Ascii, Coloured, Plain, Short, Word};
        match self {
            Protocol::Quake3 => format(Coloured, true),
            Protocol::Source => ListFormat { connected_unit_ms: Some(1), ..format(Plain, false) },
            Protocol::QuakeWorld => ListFormat { connected_unit_ms: Some(60_000), ..format(Ascii(31), true) },
            Protocol::Quake2 => format(Ascii(15), true),
            Protocol::SaMp => format(Ascii(24), false),
            Protocol::GameSpy1 | Protocol::GameSpy2 | Protocol::GameSpy3 => format(Plain, true),
            Protocol::Unreal2 | Protocol::Ase | Protocol::Doom3 | Protocol::Etqw => format(Plain, true),
            Protocol::Teeworlds | Protocol::Teeworlds7 => format(Short(15), false),
            Protocol::Minecraft | Protocol::MinecraftStatus => format(Word, false),
            Protocol::FiveM => format(Plain, true),
            Protocol::Bedrock | Protocol::Mumble => format(Plain, false),
            Protocol::Frostbite => format(Word, true),
            Protocol::Cube2 | Protocol::Cube1 => format(Ascii(15), true),
            Protocol::Eclipse => format(Ascii(24), false),
            Protocol::Zandronum => format(Ascii(31), true),
            Protocol::Odamex => ListFormat { connected_unit_ms: Some(60_000), ..format(Ascii(15), true) },
            Protocol::Bzflag => format(Ascii(31), false),
            Protocol::Armagetron => format(Short(15), false),
        }
    }

    /// Whether the list shows which entries are spectators.
    pub fn marks_spectators(self) -> bool {
        matches!(
            self,
            Protocol::QuakeWorld
                | Protocol::Teeworlds
                | Protocol::Teeworlds7
                | Protocol::Frostbite
                | Protocol::Cube2
                | Protocol::Cube1
                | Protocol::Zandronum
                | Protocol::Odamex
                | Protocol::Bzflag
        )
    }

    /// Whether a flag in the list shows which entries are bots.
    pub fn marks_bots(self) -> bool {
        matches!(self, Protocol::Teeworlds7 | Protocol::Etqw | Protocol::Cube2 | Protocol::Zandronum | Protocol::Bzflag)
    }

    /// Whether replies contain the name of the server.
    pub(super) fn has_hostname(self) -> bool {
        !matches!(self, Protocol::Bzflag | Protocol::Mumble)
    }

    /// Whether replies contain the players, and not only their number.
    pub fn has_list(self) -> bool {
        !matches!(self, Protocol::Bedrock | Protocol::Mumble)
    }

    /// Whether replies identify bots, by a ping of 0 or by a flag.
    pub fn shows_bots(self) -> bool {
        self == Protocol::Quake3 || self.marks_bots()
    }

    /// Player slots of a server that would have this many in another protocol.
    pub(super) fn slots(self, slots: u16) -> u16 {
        match self {
            // Most servers are large; the largest have 1,000 slots.
            Protocol::SaMp => slots * 8,
            // Ids end at 32; real servers have fewer slots.
            Protocol::Doom3 | Protocol::Etqw => slots.min(16),
            // A status has twelve names, so these lists are whole.
            Protocol::MinecraftStatus => slots.min(12),
            _ => slots,
        }
    }
}

/// The share of the servers that speak each protocol; the rest of the servers speaks `quake3`.
pub type ProtocolShares = Shares<Protocol, COUNT>;

impl Default for ProtocolShares {
    /// Quake 3 and Source.
    fn default() -> Self {
        ProtocolShares::source(0.4)
    }
}

impl ProtocolShares {
    /// The same share of each protocol.
    pub const ALL: ProtocolShares = ProtocolShares::new([1.0 / COUNT as f64; COUNT]);

    /// Source, and Quake 3 for the rest.
    pub fn source(share: f64) -> ProtocolShares {
        ProtocolShares::NONE.with(Protocol::Source, share)
    }

    /// One protocol only.
    pub fn only(protocol: Protocol) -> ProtocolShares {
        ProtocolShares::NONE.with(protocol, 1.0)
    }

    /// The protocol for a random number of `0.0..1.0`.
    pub(super) fn pick(&self, number: f64) -> Protocol {
        self.with(Protocol::Quake3, 0.0).value_at(number).unwrap_or(Protocol::Quake3)
    }
}

impl FromStr for ProtocolShares {
    type Err = ShareListError;

    /// `default`, `all` ([`ProtocolShares::ALL`]), or `teeworlds=0.5,source=0.2,...`; omitted ones
    /// are 0.
    fn from_str(text: &str) -> Result<ProtocolShares, ShareListError> {
        match text {
            "default" => Ok(ProtocolShares::default()),
            "all" => Ok(ProtocolShares::ALL),
            _ => ProtocolShares::parse_list(text, "protocols"),
        }
    }
}

/// The port of each protocol; 0: the kernel chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports([u16; COUNT]);

impl Default for Ports {
    /// [`Protocol::usual_port`].
    fn default() -> Self {
        Ports(std::array::from_fn(|index| Protocol::VARIANTS[index].usual_port()))
    }
}

impl Ports {
    /// The kernel chooses all.
    pub const ANY: Ports = Ports([0; COUNT]);

    pub fn of(&self, protocol: Protocol) -> u16 {
        self.0[protocol as usize]
    }

    pub fn set(&mut self, protocol: Protocol, port: u16) {
        self.0[protocol as usize] = port;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_shares_are_parsed_and_drawn() {
        assert_eq!("default".parse(), Ok(ProtocolShares::source(0.4)));
        assert_eq!("source=0.4".parse(), Ok(ProtocolShares::default()));
        assert_eq!("samp=1".parse(), Ok(ProtocolShares::only(Protocol::SaMp)));
        let error = "quake=1".parse::<ProtocolShares>().unwrap_err().to_string();
        assert!(error.contains("quake3, source, quakeworld") && error.contains("teeworlds7"), "{error}");
        let shares: ProtocolShares = "source=0.25,teeworlds=0.25,quake3=0.1".parse().unwrap();
        for (number, want) in [
            (0.0, Protocol::Source),
            (0.249, Protocol::Source),
            (0.25, Protocol::Teeworlds),
            (0.5, Protocol::Quake3),
            (0.999, Protocol::Quake3),
        ] {
            assert_eq!(shares.pick(number), want, "{number}");
        }
        let all: std::collections::HashSet<_> =
            (0..COUNT).map(|index| ProtocolShares::ALL.pick((index as f64 + 0.5) / COUNT as f64)).collect();
        assert_eq!(all.len(), COUNT);
    }

    #[test]
    fn usual_ports_differ() {
        let ports: std::collections::HashSet<_> = Ports::default().0.into_iter().collect();
        assert_eq!(ports.len(), COUNT);
    }

    #[test]
    fn names_fit_their_format() {
        for (format, plain, want) in [
            (NameFormat::Plain, "Jürgen 1", "Jürgen 1"),
            (NameFormat::Short(15), "Dark the  Wolf", "Dark the  Wolf"),
            (NameFormat::Short(7), "玩家一号", "玩家"),
            (NameFormat::Short(8), "Grim the  Cat", "Grim the"),
            (NameFormat::Ascii(5), "Jürgen", "J_rge"),
            (NameFormat::Word, "{ESL}Jürgen the Great", "_ESL_J_rgen_the_"),
        ] {
            assert_eq!(format.apply(plain), want);
        }
    }
}
