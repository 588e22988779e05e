//! Parses and checks the URL of a server to scan: a scheme of a protocol, or the name of a game.
//!
//! The port of a URL is the one that answers queries. The name of a game stands for a protocol
//! and for the game's ports, which players know: `ut2004://host:7777` is `unreal2://host:7778`.

use std::cmp::Reverse;

use super::protocol::{PROTOCOLS, Protocol, protocol_of};
use crate::games::{self, QueryPort};
use crate::model::ServerUrl;
use crate::model::url::UrlError;
use crate::nearest::nearest;

/// The scheme of a server whose protocol is found by trying all of them.
pub const AUTO_SCHEME: &str = "auto";

/// Further names of a protocol.
const PROTOCOL_NAMES: &[(&str, &str)] =
    &[("goldsrc", "source"), ("steam", "source"), ("valve", "source"), ("a2s", "source")];

/// A query that the usual port of games suggests.
struct UsualQuery {
    protocol: &'static Protocol,
    port: u16,
    is_fixed: bool,
    games: u32,
}

/// Most queries that the usual port of games suggests: each may take a second.
const USUAL_QUERIES_MAX: usize = 6;

/// Where a server answers that players connect to on this port, if it is the usual port of games: the protocols and
/// query ports of most of these games. Fixed ports come last: another server of the host may answer there.
pub fn usual_queries(port: u16) -> impl Iterator<Item = (&'static Protocol, u16)> {
    let of_protocols = PROTOCOLS.iter().filter(|protocol| protocol.default_ports.contains(&port));
    let mut found: Vec<UsualQuery> =
        of_protocols.map(|protocol| UsualQuery { protocol, port, is_fixed: false, games: u32::MAX }).collect();
    for game in games::all().iter().filter(|game| game.port == port) {
        let (Some(protocol), Some(query_port)) = (protocol_of(&game.protocol), game.query_port(port)) else { continue };
        let is_same = |other: &&mut UsualQuery| other.protocol.scheme == protocol.scheme && other.port == query_port;
        match found.iter_mut().find(is_same) {
            Some(same) => same.games = same.games.saturating_add(1),
            None => {
                let is_fixed = matches!(game.query, QueryPort::Fixed(_));
                found.push(UsualQuery { protocol, port: query_port, is_fixed, games: 1 });
            }
        }
    }
    found.sort_by_key(|query| Reverse(query.games));
    found.truncate(USUAL_QUERIES_MAX);
    found.sort_by_key(|query| query.is_fixed);
    found.into_iter().map(|query| (query.protocol, query.port))
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
    if let Some((_, scheme)) = PROTOCOL_NAMES.iter().find(|(other, _)| name.eq_ignore_ascii_case(other)) {
        return Some(ServerUrl::parse(&format!("{scheme}://{rest}")));
    }
    if protocol_of(&name.to_ascii_lowercase()).is_some() {
        return None;
    }
    let game = games::by_name(name)?;
    // The game's name has no default port, so this shows whether the URL has one.
    let (url, port) = match ServerUrl::parse(text) {
        Ok(url) => (url.clone(), url.port()),
        Err(UrlError::NoPort { .. }) => match ServerUrl::parse(&format!("{}://{rest}", game.protocol)) {
            Ok(url) => (url, game.port),
            Err(error) => return Some(Err(error)),
        },
        Err(error) => return Some(Err(error)),
    };
    let query_port = match game.query {
        // A URL with another port than the game's usual one names the query port.
        QueryPort::Fixed(_) if port != game.port => port,
        _ => game.query_port(port).unwrap_or(port),
    };
    Some(Ok(url.with_scheme_and_port(&game.protocol, query_port)))
}

fn schemes() -> String {
    PROTOCOLS.iter().map(|protocol| protocol.scheme).collect::<Vec<_>>().join(", ")
}

fn suggestion(scheme: &str) -> String {
    let names = games::all().iter().flat_map(|game| std::iter::once(&game.id).chain(&game.aliases));
    let known = PROTOCOLS.iter().map(|protocol| protocol.scheme).chain(names.map(|name| &name[..]));
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
            ("telescope://h:1", "scheme \"telescope\" is not known; known are quake3"),
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
            ("goldsrc://h", "source://h:27015"),
            ("valheim://h", "source://h:2457"),
            // One above the larger of the ports of the game and of RCON.
            ("rust://h", "source://h:28017"),
            ("unturned://h", "source://h:27015"),
            ("dayz://h:2402", "source://h:27116"),
            ("mta://h:22003", "ase://h:22126"),
            ("bf1942://h:14567", "gamespy1://h:23000"),
            ("bf1942://h:23001", "gamespy1://h:23001"),
            ("ddnet://h", "teeworlds://h:8303"),
        ] {
            assert_eq!(parse_server_url(text).map(|url| url.to_string()), Ok(want.to_owned()), "{text}");
        }
        for game in games::all() {
            let protocol = protocol_of(&game.protocol).unwrap_or_else(|| panic!("{game:?}"));
            for name in [&game.id].into_iter().chain(&game.aliases) {
                // The name of a protocol means the protocol.
                let url = parse_server_url(&format!("{name}://h")).unwrap_or_else(|error| panic!("{name}: {error}"));
                let scheme = if protocol_of(name).is_some() { name } else { protocol.scheme };
                assert_eq!(url.scheme(), scheme, "{name}");
            }
        }
    }
}
