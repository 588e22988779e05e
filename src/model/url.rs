//! Server URLs, `scheme://host:port`: the names that server keys are assigned to.
//!
//! Canonical form: scheme and host in lower case, the port always written, an IPv6 address in
//! brackets. Any scheme is accepted, because a scan log may contain any; [`crate::proto`] knows
//! which schemes can be scanned.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::limits::SERVER_URL_BYTES_MAX;

/// The longest scheme. The known ones have at most ten letters.
const SCHEME_BYTES_MAX: usize = 32;

/// A server's URL in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerUrl {
    text: String,
    scheme_len: u8,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("server URL {0:?} is not of the form scheme://host:port")]
    Form(String),
    #[error("server URL {0:?} is longer than {SERVER_URL_BYTES_MAX} bytes")]
    TooLong(String),
    #[error("server URL {url:?}: port {port:?} is not a number from 1 to 65535")]
    Port { url: String, port: String },
    #[error("server URL {url:?}: host {host:?} is neither an address nor a host name")]
    Host { url: String, host: String },
    #[error("server URL {url:?} has no port, and scheme {scheme:?} has no default port")]
    NoPort { url: String, scheme: String },
}

impl ServerUrl {
    /// Parses a URL. A missing port becomes the default port of the scheme.
    pub fn parse(input: &str) -> Result<ServerUrl, UrlError> {
        match parse_canonical(input) {
            Some((scheme_len, port)) => Ok(ServerUrl { text: input.to_owned(), scheme_len, port }),
            None => ServerUrl::parse_any(input),
        }
    }

    /// Returns the error that [`ServerUrl::parse`] would return.
    pub fn check(input: &str) -> Result<(), UrlError> {
        match parse_canonical(input) {
            Some(_) => Ok(()),
            None => ServerUrl::parse_any(input).map(drop),
        }
    }

    fn parse_any(input: &str) -> Result<ServerUrl, UrlError> {
        let form = || UrlError::Form(input.chars().take(SERVER_URL_BYTES_MAX).collect());
        if input.len() > SERVER_URL_BYTES_MAX {
            return Err(UrlError::TooLong(input.chars().take(SERVER_URL_BYTES_MAX).collect()));
        }
        let (scheme, rest) = input.split_once("://").ok_or_else(form)?;
        let scheme = scheme.to_ascii_lowercase();
        let scheme_ok = scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme.len() <= SCHEME_BYTES_MAX
            && scheme.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if !scheme_ok {
            return Err(form());
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = if let Some(after) = rest.strip_prefix('[') {
            let (host, tail) = after.split_once(']').ok_or_else(form)?;
            match tail {
                "" => (host, None),
                _ => (host, Some(tail.strip_prefix(':').ok_or_else(form)?)),
            }
        } else {
            match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            }
        };
        let bad_host = || UrlError::Host { url: input.to_owned(), host: host.to_owned() };
        let host = if rest.starts_with('[') {
            let addr: std::net::Ipv6Addr = host.parse().map_err(|_| bad_host())?;
            format!("[{addr}]")
        } else {
            let host = host.to_ascii_lowercase();
            let bytes_ok = host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-' || b == b'_');
            let numeric = !host.is_empty() && host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            if host.is_empty() || !bytes_ok || (numeric && host.parse::<std::net::Ipv4Addr>().is_err()) {
                return Err(bad_host());
            }
            host
        };
        let port = match port {
            Some(text) => match text.parse::<u16>() {
                Ok(port) if port > 0 && !text.starts_with('+') => port,
                _ => {
                    return Err(UrlError::Port { url: input.to_owned(), port: text.to_owned() });
                }
            },
            None => default_port(&scheme)
                .ok_or_else(|| UrlError::NoPort { url: input.to_owned(), scheme: scheme.clone() })?,
        };
        Ok(ServerUrl { text: format!("{scheme}://{host}:{port}"), scheme_len: scheme.len() as u8, port })
    }

    /// The canonical text, `scheme://host:port`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn scheme(&self) -> &str {
        &self.text[..self.scheme_len as usize]
    }

    /// Host name or address, an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        let end = self.text.rfind(':').unwrap_or(self.text.len());
        self.text[self.scheme_len as usize + 3..end].trim_start_matches('[').trim_end_matches(']')
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the same host with another scheme, which must be a valid one, and port.
    pub fn with_scheme_and_port(&self, scheme: &str, port: u16) -> ServerUrl {
        let end = self.text.rfind(':').unwrap_or(self.text.len());
        let host = &self.text[self.scheme_len as usize..end];
        ServerUrl { text: format!("{scheme}{host}:{port}"), scheme_len: scheme.len() as u8, port }
    }

    /// The address, if the host is one and not a name.
    pub fn ip(&self) -> Option<IpAddr> {
        self.host().parse().ok()
    }

    /// Whether servers of this scheme use the protocol of the Quake 3 family, in which names
    /// contain colour codes and a ping of 0 means a bot (docs/rules.md section 2).
    pub fn is_quake3_family(&self) -> bool {
        matches!(self.scheme(), "quake3" | "darkplaces")
    }
}

/// Length of the scheme, and port, of a URL that is in canonical form already, as nearly all
/// stored URLs are. IPv6 addresses have too many forms for this fast path.
fn parse_canonical(input: &str) -> Option<(u8, u16)> {
    let bytes = input.as_bytes();
    if bytes.len() > SERVER_URL_BYTES_MAX {
        return None;
    }
    let scheme_len = bytes.iter().take(SCHEME_BYTES_MAX + 1).position(|&b| b == b':')?;
    let (scheme, rest) = bytes.split_at(scheme_len);
    let word = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    if !scheme.first()?.is_ascii_lowercase() || !scheme.iter().all(word) {
        return None;
    }
    let rest = rest.strip_prefix(b"://")?;
    let colon = rest.iter().rposition(|&b| b == b':')?;
    let (host, port) = (&rest[..colon], &rest[colon + 1..]);
    if !(1..=5).contains(&port.len()) || port[0] == b'0' || !port.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let port = port.iter().fold(0, |port, digit| port * 10 + u32::from(digit - b'0'));
    if host.is_empty() || !host.iter().all(|b| word(b) || matches!(b, b'.' | b'-' | b'_')) {
        return None;
    }
    if host.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
        std::str::from_utf8(host).ok()?.parse::<std::net::Ipv4Addr>().ok()?;
    }
    Some((scheme_len as u8, port.try_into().ok()?))
}

/// The port of a URL without one, if the scheme has such a port.
pub(crate) fn default_port(scheme: &str) -> Option<u16> {
    Some(match scheme {
        "quake3" => 27960,
        "darkplaces" => 26000,
        "source" => 27015,
        "quakeworld" => 27500,
        "quake2" => 27910,
        "gamespy1" | "unreal2" => 7778,
        "gamespy2" => 23000,
        "gamespy3" => 29900,
        "ase" => 22126,
        "samp" => 7777,
        "doom3" => 27666,
        "etqw" => 27733,
        "teeworlds" | "teeworlds7" => 8303,
        "minecraft" => 25565,
        "bedrock" => 19132,
        "fivem" | "redm" => 30120,
        "frostbite" => 47200,
        "bzflag" => 5154,
        "cube2" => 28786,
        "cube1" => 28764,
        "eclipse" => 28802,
        "zandronum" | "odamex" => 10666,
        "armagetron" => 4534,
        "mumble" => 64738,
        _ => return None,
    })
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for ServerUrl {
    type Error = UrlError;
    fn try_from(text: String) -> Result<Self, UrlError> {
        match parse_canonical(&text) {
            Some((scheme_len, port)) => Ok(ServerUrl { text, scheme_len, port }),
            None => ServerUrl::parse_any(&text),
        }
    }
}

impl From<ServerUrl> for String {
    fn from(url: ServerUrl) -> String {
        url.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_canonicalised() {
        for (input, want) in [
            ("quake3://127.0.0.1:27960", "quake3://127.0.0.1:27960"),
            ("QUAKE3://Example.ORG", "quake3://example.org:27960"),
            ("source://[::1]", "source://[::1]:27015"),
            ("source://[2001:DB8::1]:9", "source://[2001:db8::1]:9"),
            ("source://host:27015/", "source://host:27015"),
        ] {
            let url = ServerUrl::parse(input).unwrap();
            assert_eq!(url.as_str(), want);
            assert_eq!(ServerUrl::parse(want).unwrap(), url);
        }
        let url = ServerUrl::parse("source://[::1]:9").unwrap();
        assert_eq!(url.with_scheme_and_port("quake3", 10), ServerUrl::parse("quake3://[::1]:10").unwrap());
        assert_eq!((url.scheme(), url.host(), url.port()), ("source", "::1", 9));
    }

    #[test]
    fn invalid_urls_are_refused() {
        for bad in [
            "",
            "quake3",
            "quake3:/x",
            "://x:1",
            "quake3://",
            "quake3://:1",
            "quake3://x:0",
            "quake3://x:65536",
            "quake3://x:+1",
            "quake3://x:1:2",
            "quake3://999.1.1.1:1",
            "quake3://a b:1",
            "q-3://x:1",
            "foo://x",
            "quake3://[::g]:1",
            "quake3://[::1]1",
        ] {
            assert!(ServerUrl::parse(bad).is_err(), "{bad:?}");
        }
        assert!(ServerUrl::parse(&format!("quake3://{}:1", "a".repeat(300))).is_err());
    }

    proptest::proptest! {
        /// Strings similar to a URL, and complete URLs with one change.
        #[test]
        fn canonical_fast_path_equals_full_parser(
            url in "[a-zA-Z0-9-]{0,4}:?/{0,2}(\\[::1\\]|[a-zA-Z0-9._é -]{0,6}|[0-9]{1,3}(\\.[0-9]{1,3}){3})(:[0-9+]{0,6})?/?",
        ) {
            let long = ServerUrl::parse_any(&url);
            proptest::prop_assert_eq!(ServerUrl::check(&url), long.clone().map(drop));
            proptest::prop_assert_eq!(ServerUrl::try_from(url.clone()), long.clone());
            if let Ok(url) = &long {
                proptest::prop_assert_eq!(&ServerUrl::parse(url.as_str()), &long);
                proptest::prop_assert!(parse_canonical(url.as_str()).is_some() || url.as_str().contains('['));
            }
            proptest::prop_assert_eq!(ServerUrl::parse(&url), long);
        }
    }
}
