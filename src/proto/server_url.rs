//! Parses and checks the URL of a server to scan: a scheme of a protocol, or the name of a game.
//!
//! The port of a URL is the one that answers queries. The name of a game stands for a protocol
//! and for the game's ports, which players know: `ut2004://host:7777` is `unreal2://host:7778`.

use super::protocol::{PROTOCOLS, Protocol, protocol_of};
use crate::model::ServerUrl;
use crate::model::url::UrlError;
use crate::nearest::nearest;

/// The scheme of a server whose protocol is found by trying all of them.
pub const AUTO_SCHEME: &str = "auto";

/// A name that people use for a protocol.
struct Game {
    name: &'static str,
    scheme: &'static str,
    /// The port that players connect to, unless the URL has another one.
    port: u16,
    query_port: QueryPort,
}

/// Where a server answers queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueryPort {
    /// On the port of the game.
    Same,
    /// That many ports above it.
    Above(u16),
    /// On this port. A URL with another port than the game's usual one names the query port.
    Fixed(u16),
}

use QueryPort::{Above, Fixed, Same};

const fn game(name: &'static str, scheme: &'static str, port: u16, query_port: QueryPort) -> Game {
    Game { name, scheme, port, query_port }
}

const GAMES: &[Game] = &[
    game("openarena", "quake3", 27960, Same),
    game("ioquake3", "quake3", 27960, Same),
    game("q3a", "quake3", 27960, Same),
    game("urbanterror", "quake3", 27960, Same),
    game("enemyterritory", "quake3", 27960, Same),
    game("etlegacy", "quake3", 27960, Same),
    game("rtcw", "quake3", 27960, Same),
    game("worldofpadman", "quake3", 27960, Same),
    game("smokinguns", "quake3", 27960, Same),
    game("unvanquished", "quake3", 27960, Same),
    game("tremulous", "quake3", 30720, Same),
    game("jediacademy", "quake3", 29070, Same),
    game("jedioutcast", "quake3", 28070, Same),
    game("sof2", "quake3", 20100, Same),
    game("cod", "quake3", 28960, Same),
    game("cod2", "quake3", 28960, Same),
    game("cod4", "quake3", 28960, Same),
    game("warsow", "quake3", 44400, Same),
    game("warfork", "quake3", 44400, Same),
    game("xonotic", "darkplaces", 26000, Same),
    game("nexuiz", "darkplaces", 26000, Same),
    game("qw", "quakeworld", 27500, Same),
    game("q2", "quake2", 27910, Same),
    game("alienarena", "quake2", 27910, Same),
    game("goldsrc", "source", 27015, Same),
    game("halflife", "source", 27015, Same),
    game("cs16", "source", 27015, Same),
    game("css", "source", 27015, Same),
    game("csgo", "source", 27015, Same),
    game("cs2", "source", 27015, Same),
    game("tf2", "source", 27015, Same),
    game("dods", "source", 27015, Same),
    game("hl2dm", "source", 27015, Same),
    game("l4d2", "source", 27015, Same),
    game("gmod", "source", 27015, Same),
    game("steam", "source", 27015, Same),
    game("valve", "source", 27015, Same),
    game("a2s", "source", 27015, Same),
    game("rust", "source", 28015, Same),
    game("arma3", "source", 2302, Above(1)),
    game("dayz", "source", 2302, Above(1)),
    game("ut99", "gamespy1", 7777, Above(1)),
    game("bf1942", "gamespy1", 14567, Fixed(23000)),
    game("bfvietnam", "gamespy2", 15567, Fixed(23000)),
    game("halo", "gamespy2", 2302, Same),
    game("bf2", "gamespy3", 16567, Fixed(29900)),
    game("bf2142", "gamespy3", 17567, Fixed(29900)),
    game("ut3", "gamespy3", 7777, Fixed(6500)),
    game("ut2003", "unreal2", 7777, Above(1)),
    game("ut2004", "unreal2", 7777, Above(1)),
    game("killingfloor", "unreal2", 7707, Above(1)),
    game("redorchestra", "unreal2", 7757, Above(1)),
    game("mta", "ase", 22003, Above(123)),
    game("mtasa", "ase", 22003, Above(123)),
    game("soldat", "ase", 23073, Above(123)),
    game("farcry", "ase", 49001, Above(123)),
    game("openmp", "samp", 7777, Same),
    game("quake4", "doom3", 28004, Same),
    game("prey", "doom3", 27719, Same),
    game("quakewars", "etqw", 27733, Same),
    game("ddnet", "teeworlds", 8303, Same),
    game("teeworlds6", "teeworlds", 8303, Same),
];

/// Where a server answers that players connect to on this port, if it is the usual port of a game: the
/// protocols of these games with their query ports.
pub fn usual_queries(port: u16) -> impl Iterator<Item = (&'static Protocol, u16)> {
    let of_protocols = PROTOCOLS.iter().filter(move |protocol| protocol.default_ports.contains(&port));
    let of_games = GAMES.iter().filter(move |game| game.port == port).filter_map(move |game| {
        let port = match game.query_port {
            Same => port,
            Above(distance) => port.checked_add(distance)?,
            Fixed(port) => port,
        };
        Some((protocol_of(game.scheme)?, port))
    });
    of_protocols.map(move |protocol| (protocol, port)).chain(of_games)
}

/// Why a server cannot be scanned under a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerUrlError {
    #[error("{}; known are {known}", self.brief())]
    UnknownScheme { url: String, scheme: String, advice: String, known: String },
    #[error("{error}; known schemes are {known}")]
    Syntax { error: UrlError, known: String },
    #[error(transparent)]
    Url(UrlError),
}

impl ServerUrlError {
    /// The message without the list of schemes, for one of many URLs.
    pub fn brief(&self) -> String {
        match self {
            ServerUrlError::UnknownScheme { url, scheme, advice, .. } => {
                format!("server URL {url:?}: scheme {scheme:?} is not known{advice}")
            }
            ServerUrlError::Syntax { error, .. } | ServerUrlError::Url(error) => error.to_string(),
        }
    }

    /// The schemes that are known, if the URL has none of them.
    pub fn known_schemes(&self) -> Option<&str> {
        match self {
            ServerUrlError::UnknownScheme { known, .. } | ServerUrlError::Syntax { known, .. } => Some(known),
            ServerUrlError::Url(_) => None,
        }
    }
}

/// Parses the URL of a server to scan. A missing port becomes the default port of the scheme or
/// of the game, and the name of a game becomes the scheme of its protocol.
pub fn parse_server_url(text: &str) -> Result<ServerUrl, ServerUrlError> {
    if let Some(url) = parse_game_url(text) {
        return url.map_err(ServerUrlError::Url);
    }
    let unknown = |scheme: &str| ServerUrlError::UnknownScheme {
        url: text.to_owned(),
        scheme: scheme.to_owned(),
        advice: suggestion(scheme),
        known: schemes(),
    };
    match ServerUrl::parse(text) {
        Ok(url) if protocol_of(url.scheme()).is_none() => Err(unknown(url.scheme())),
        Ok(url) => Ok(url),
        Err(UrlError::NoPort { scheme, .. }) if protocol_of(&scheme).is_none() => Err(unknown(&scheme)),
        Err(error @ UrlError::Form(_)) => Err(ServerUrlError::Syntax { error, known: schemes() }),
        Err(error) => Err(ServerUrlError::Url(error)),
    }
}

/// Parses the URL of a server whose protocol may be unknown: `auto://host:port`, or `host:port`.
pub fn parse_server_url_or_auto(text: &str) -> Result<ServerUrl, ServerUrlError> {
    let is_auto = text.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case(AUTO_SCHEME));
    if is_auto {
        return ServerUrl::parse(text).map_err(ServerUrlError::Url);
    }
    let is_address = !text.contains("://") && text.contains(':');
    if is_address && let Ok(url) = ServerUrl::parse(&format!("{AUTO_SCHEME}://{text}")) {
        return Ok(url);
    }
    parse_server_url(text)
}

/// Parses a URL whose scheme is the name of a game. `None`: it is not.
fn parse_game_url(text: &str) -> Option<Result<ServerUrl, UrlError>> {
    let (name, rest) = text.split_once("://")?;
    let game = GAMES.iter().find(|game| name.eq_ignore_ascii_case(game.name))?;
    // The game's name has no default port, so this shows whether the URL has one.
    let (url, port) = match ServerUrl::parse(text) {
        Ok(url) => (url.clone(), url.port()),
        Err(UrlError::NoPort { .. }) => match ServerUrl::parse(&format!("{}://{rest}", game.scheme)) {
            Ok(url) => (url, game.port),
            Err(error) => return Some(Err(error)),
        },
        Err(error) => return Some(Err(error)),
    };
    let query_port = match game.query_port {
        Same => port,
        Above(distance) => port.saturating_add(distance),
        Fixed(query_port) if port == game.port => query_port,
        Fixed(_) => port,
    };
    Some(Ok(url.with_scheme_and_port(game.scheme, query_port)))
}

fn schemes() -> String {
    PROTOCOLS.iter().map(|protocol| protocol.scheme).collect::<Vec<_>>().join(", ")
}

fn suggestion(scheme: &str) -> String {
    let known = PROTOCOLS.iter().map(|protocol| protocol.scheme).chain(GAMES.iter().map(|game| game.name));
    nearest(scheme, known).map_or_else(String::new, |right| format!("; did you mean {right}://?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_scheme_error_names_the_nearest_and_all_known() {
        for (text, want) in [
            ("xonotik://h", "\"xonotik\" is not known; did you mean xonotic://?; known are quake3, darkplaces"),
            ("quak3://h:1", "did you mean quake3://?"),
            ("sources://h:1", "did you mean source://?"),
            ("gopher://h:1", "scheme \"gopher\" is not known; known are quake3"),
            ("h:27960", "scheme://host:port; known schemes are quake3"),
            ("quake3://h:0", "port \"0\""),
            ("openarena://h:0", "port \"0\""),
            ("openarena://", "host \"\""),
        ] {
            let error = parse_server_url(text).expect_err(text).to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
        assert_eq!(parse_server_url("quake3://h").map(|url| url.port()), Ok(27_960));
    }

    #[test]
    fn server_of_unknown_protocol_needs_a_port() {
        let parse = |text: &str| parse_server_url_or_auto(text).map(|url| url.to_string()).map_err(|e| e.to_string());
        assert_eq!(parse("auto://H:9"), Ok("auto://h:9".to_owned()));
        assert_eq!(parse("192.0.2.1:9"), Ok("auto://192.0.2.1:9".to_owned()));
        assert_eq!(parse("[2001:db8::1]:9"), Ok("auto://[2001:db8::1]:9".to_owned()));
        assert_eq!(parse("openarena://h"), Ok("quake3://h:27960".to_owned()));
        for (text, want) in [("auto://h", "has no port"), ("h", "scheme://host:port"), ("h:0", "scheme://host:port")] {
            assert!(parse(text).unwrap_err().contains(want), "{text}: {:?}", parse(text));
        }
        assert!(parse_server_url("auto://h:9").is_err());
    }

    #[test]
    fn name_of_a_game_stands_for_its_protocol_and_ports() {
        for (text, want) in [
            ("openarena://h", "quake3://h:27960"),
            ("Xonotic://H:26001/", "darkplaces://h:26001"),
            ("cs16://[2001:DB8::1]", "source://[2001:db8::1]:27015"),
            ("ut2004://h", "unreal2://h:7778"),
            ("ut2004://h:8000", "unreal2://h:8001"),
            ("ut2004://h:65535", "unreal2://h:65535"),
            ("mta://h:22003", "ase://h:22126"),
            ("bf1942://h:14567", "gamespy1://h:23000"),
            ("bf1942://h:23001", "gamespy1://h:23001"),
            ("ddnet://h", "teeworlds://h:8303"),
        ] {
            assert_eq!(parse_server_url(text).map(|url| url.to_string()), Ok(want.to_owned()), "{text}");
        }
        for game in GAMES {
            assert!(protocol_of(game.scheme).is_some() && protocol_of(game.name).is_none(), "{}", game.name);
            assert_eq!(GAMES.iter().filter(|other| other.name == game.name).count(), 1, "{}", game.name);
            assert!(ServerUrl::parse(&format!("{}://h", game.name)).is_err(), "{} has a default port", game.name);
        }
    }
}
