//! URLs of master servers: the protocol, the host, and what is requested.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text_list::TextMaster;
use crate::limits::SERVER_URL_BYTES_MAX;
use crate::nearest::nearest;

/// Longest game name and longest Steam filter, bytes. A request is one small datagram.
const ARGUMENT_BYTES_MAX: usize = 255;

/// Schemes of master URLs and their default ports.
const SCHEMES: &[(&str, u16)] = &[
    ("dpmaster", 27_950),
    ("quakeworldmaster", 27_000),
    ("quake2master", 27_900),
    ("steammaster", 27_011),
    ("teeworldsmaster", 8_300),
    ("teeworlds7master", 8_283),
    ("odamexmaster", 15_000),
    ("zandronummaster", 15_300),
    ("cube2master", 28_787),
    ("eclipsemaster", 28_800),
];

/// The protocol of a master and the arguments of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterKind {
    /// The Quake 3 family.
    Dpmaster {
        /// `None`: Quake III Arena, which has no name in the older request.
        game: Option<String>,
        protocol: u32,
    },
    QuakeWorld,
    Quake2,
    Steam {
        /// Such as `\appid\440`; empty for all servers.
        filter: String,
    },
    /// Teeworlds 0.6.
    Teeworlds,
    /// Teeworlds 0.7, with another packet header.
    Teeworlds7,
    Odamex,
    Zandronum,
    /// A text over TCP. All others use UDP.
    Text(TextMaster),
}

impl MasterKind {
    /// The scheme of the URLs of the listed servers.
    pub fn server_scheme(&self) -> &'static str {
        match self {
            MasterKind::Dpmaster { .. } => "quake3",
            MasterKind::QuakeWorld => "quakeworld",
            MasterKind::Quake2 => "quake2",
            MasterKind::Steam { .. } => "source",
            MasterKind::Teeworlds => "teeworlds",
            MasterKind::Teeworlds7 => "teeworlds7",
            MasterKind::Odamex => "odamex",
            MasterKind::Zandronum => "zandronum",
            MasterKind::Text(TextMaster::Sauerbraten) => "cube2",
            MasterKind::Text(TextMaster::RedEclipse) => "eclipse",
        }
    }
}

/// A master server and what is requested from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MasterUrl {
    text: String,
    kind: MasterKind,
    host: String,
    port: u16,
}

/// The text is not the URL of a master.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("master URL {url:?}: {problem}")]
pub struct MasterUrlError {
    url: String,
    problem: String,
}

impl MasterUrl {
    pub fn kind(&self) -> &MasterKind {
        &self.kind
    }

    /// Host name or address, an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for MasterUrl {
    type Err = MasterUrlError;

    fn from_str(text: &str) -> Result<MasterUrl, MasterUrlError> {
        let parsed = parse(text);
        // A mistyped URL of a website may have an API key in its query.
        let shown = text.split('?').next().unwrap_or_default();
        parsed.map_err(|problem| MasterUrlError { url: shown.chars().take(SERVER_URL_BYTES_MAX).collect(), problem })
    }
}

fn parse(text: &str) -> Result<MasterUrl, String> {
    let (scheme, rest) = text.split_once("://").ok_or_else(|| format!("expected one of {}", forms()))?;
    let scheme = scheme.to_ascii_lowercase();
    let Some(&(scheme, default_port)) = SCHEMES.iter().find(|(name, _)| *name == scheme) else {
        let near = nearest(&scheme, SCHEMES.iter().map(|(name, _)| *name));
        let advice = near.map_or_else(String::new, |near| format!("; did you mean {near}://?"));
        return Err(format!("scheme {scheme:?} is not known{advice}; expected one of {}", forms()));
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = split_authority(authority)?;
    let port = match port {
        None => default_port,
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|&port: &u16| port > 0 && !digits.starts_with('+'))
            .ok_or_else(|| format!("port {digits:?} is not a number from 1 to 65535"))?,
    };
    let kind = match scheme {
        "dpmaster" => dpmaster(path)?,
        "steammaster" => MasterKind::Steam { filter: filter(path)? },
        _ if !path.is_empty() => return Err(format!("nothing may follow the port; found {path:?}")),
        "quakeworldmaster" => MasterKind::QuakeWorld,
        "quake2master" => MasterKind::Quake2,
        "teeworldsmaster" => MasterKind::Teeworlds,
        "teeworlds7master" => MasterKind::Teeworlds7,
        "odamexmaster" => MasterKind::Odamex,
        "zandronummaster" => MasterKind::Zandronum,
        "cube2master" => MasterKind::Text(TextMaster::Sauerbraten),
        "eclipsemaster" => MasterKind::Text(TextMaster::RedEclipse),
        other => unreachable!("the scheme {other} is in SCHEMES"),
    };
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let slash = if path.is_empty() { "" } else { "/" };
    Ok(MasterUrl { text: format!("{scheme}://{bracketed}:{port}{slash}{path}"), kind, host, port })
}

fn split_authority(authority: &str) -> Result<(String, Option<&str>), String> {
    let bad_host = |host: &str| format!("host {host:?} is neither an address nor a host name");
    if let Some(after) = authority.strip_prefix('[') {
        let (host, tail) = after.split_once(']').ok_or_else(|| bad_host(authority))?;
        let address: Ipv6Addr = host.parse().map_err(|_| bad_host(host))?;
        let port = match tail {
            "" => None,
            tail => Some(tail.strip_prefix(':').ok_or_else(|| bad_host(authority))?),
        };
        return Ok((address.to_string(), port));
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let is_name = host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    let is_numeric = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if host.is_empty() || host.len() > 253 || !is_name || (is_numeric && host.parse::<IpAddr>().is_err()) {
        return Err(bad_host(host));
    }
    Ok((host.to_ascii_lowercase(), port))
}

fn dpmaster(path: &str) -> Result<MasterKind, String> {
    let (game, protocol) = match path.split_once('/') {
        Some((game, protocol)) => (Some(game), protocol),
        None => (None, path),
    };
    let protocol = protocol.parse().map_err(|_| {
        format!("{protocol:?} is not a protocol number; expected dpmaster://HOST[:PORT]/[GAME/]PROTOCOL")
    })?;
    let game = game
        .map(|game| {
            let is_valid =
                !game.is_empty() && game.len() <= ARGUMENT_BYTES_MAX && game.bytes().all(|b| b.is_ascii_graphic());
            if is_valid { Ok(game.to_owned()) } else { Err(format!("{game:?} is not the name of a game")) }
        })
        .transpose()?;
    Ok(MasterKind::Dpmaster { game, protocol })
}

fn filter(path: &str) -> Result<String, String> {
    let is_valid = path.is_empty()
        || (path.starts_with('\\') && path.len() <= ARGUMENT_BYTES_MAX && !path.bytes().any(|b| b.is_ascii_control()));
    if is_valid {
        Ok(path.to_owned())
    } else {
        Err(format!("{path:?} is not a filter; expected nothing, or text such as \\appid\\440 (in quotes in a shell)"))
    }
}

fn forms() -> &'static str {
    "dpmaster://HOST/PROTOCOL, dpmaster://HOST/GAME/PROTOCOL, quakeworldmaster://HOST, quake2master://HOST, \
     steammaster://HOST/FILTER, teeworldsmaster://HOST, teeworlds7master://HOST, odamexmaster://HOST, \
     zandronummaster://HOST, cube2master://HOST, eclipsemaster://HOST, or the http:// or https:// URL of a list on a \
     website"
}

/// The canonical text, with the port.
impl fmt::Display for MasterUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for MasterUrl {
    type Error = MasterUrlError;

    fn try_from(text: String) -> Result<MasterUrl, MasterUrlError> {
        text.parse()
    }
}

impl From<MasterUrl> for String {
    fn from(url: MasterUrl) -> String {
        url.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn master_url_names_protocol_host_and_arguments() {
        let dpmaster = |game: Option<&str>, protocol| MasterKind::Dpmaster { game: game.map(str::to_owned), protocol };
        let steam = |filter: &str| MasterKind::Steam { filter: filter.to_owned() };
        for (text, want, kind) in [
            ("dpmaster://H.example/68", "dpmaster://h.example:27950/68", dpmaster(None, 68)),
            ("DPmaster://h:1/Xonotic/3", "dpmaster://h:1/Xonotic/3", dpmaster(Some("Xonotic"), 3)),
            ("dpmaster://[::1]/68", "dpmaster://[::1]:27950/68", dpmaster(None, 68)),
            ("quakeworldmaster://h", "quakeworldmaster://h:27000", MasterKind::QuakeWorld),
            ("quake2master://h/", "quake2master://h:27900", MasterKind::Quake2),
            ("steammaster://h", "steammaster://h:27011", steam("")),
            ("steammaster://h/\\appid\\440", "steammaster://h:27011/\\appid\\440", steam("\\appid\\440")),
            ("steammaster://h/\\map\\a/b", "steammaster://h:27011/\\map\\a/b", steam("\\map\\a/b")),
            ("teeworldsmaster://192.0.2.1:8303", "teeworldsmaster://192.0.2.1:8303", MasterKind::Teeworlds),
            ("teeworlds7master://h", "teeworlds7master://h:8283", MasterKind::Teeworlds7),
            ("odamexmaster://h", "odamexmaster://h:15000", MasterKind::Odamex),
            ("zandronummaster://h:1", "zandronummaster://h:1", MasterKind::Zandronum),
            ("cube2master://h", "cube2master://h:28787", MasterKind::Text(TextMaster::Sauerbraten)),
            ("eclipsemaster://h", "eclipsemaster://h:28800", MasterKind::Text(TextMaster::RedEclipse)),
        ] {
            let url: MasterUrl = text.parse().expect(text);
            assert_eq!((url.to_string().as_str(), url.kind()), (want, &kind));
            assert_eq!(want.parse::<MasterUrl>().expect("the canonical form"), url);
        }
        let url: MasterUrl = "dpmaster://[::1]:9/68".parse().expect("a URL");
        assert_eq!((url.host(), url.port()), ("::1", 9));
    }

    #[test]
    fn every_scheme_belongs_to_a_master_whose_servers_can_be_scanned() {
        for (scheme, port) in SCHEMES {
            let path = if *scheme == "dpmaster" { "/68" } else { "" };
            let url: MasterUrl = format!("{scheme}://h{path}").parse().expect("a URL");
            assert_eq!(url.port(), *port);
            assert!(crate::proto::protocol_of(url.kind().server_scheme()).is_some(), "{scheme}");
            assert!(forms().contains(&format!("{scheme}://")), "{scheme}");
        }
    }

    #[test]
    fn invalid_master_url_is_refused_with_reason() {
        for (text, want) in [
            ("", "expected one of dpmaster://HOST/PROTOCOL"),
            ("h:27950", "expected one of"),
            ("quake3://h/68", "scheme \"quake3\" is not known"),
            ("dpmastr://h/68", "did you mean dpmaster://?"),
            ("dpmaster://h", "\"\" is not a protocol number"),
            ("dpmaster://h/xonotic", "is not a protocol number"),
            ("dpmaster://h//68", "\"\" is not the name of a game"),
            ("dpmaster://h/a b/68", "is not the name of a game"),
            ("dpmaster://h:0/68", "port \"0\""),
            ("dpmaster://h:+1/68", "port \"+1\""),
            ("dpmaster:///68", "host \"\""),
            ("dpmaster://1.2.3/68", "host \"1.2.3\""),
            ("dpmaster://[::1/68", "is neither an address"),
            ("dpmaster://[::1]1/68", "is neither an address"),
            ("quake2master://h/68", "nothing may follow the port"),
            ("teeworlds7master://h/7", "nothing may follow the port"),
            ("cube2master://h/list", "nothing may follow the port"),
            ("zandronumaster://h", "did you mean zandronummaster://?"),
            ("steammaster://h/appid=440", "is not a filter"),
            ("steammaster://h/\\a\0", "is not a filter"),
        ] {
            let error = text.parse::<MasterUrl>().expect_err(text).to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "([a-z0-9]{0,16}://)?[^ ]{0,20}(:[0-9]{0,6})?(/.{0,20})?") {
            if let Ok(url) = text.parse::<MasterUrl>() {
                proptest::prop_assert_eq!(url.to_string().parse::<MasterUrl>().expect("the canonical form"), url);
            }
        }
    }
}
