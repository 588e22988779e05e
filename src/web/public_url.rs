//! The address under which visitors reach the site: the beginning of absolute links.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::http::Uri;

/// Longest text, bytes.
const BYTES_MAX: usize = 256;

/// `http://` or `https://`, a host, and maybe a port; without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the address of a site, such as \"https://stats.example.org\", without a path")]
pub struct BadPublicUrl(String);

impl PublicUrl {
    /// The address of a listener: right for visitors who connect to it directly.
    pub fn of_listener(address: SocketAddr, has_tls: bool) -> PublicUrl {
        let scheme = if has_tls { "https" } else { "http" };
        // A socket address may have an IPv6 zone, which a URL may not.
        PublicUrl(format!("{scheme}://{}", SocketAddr::new(address.ip(), address.port())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PublicUrl {
    type Err = BadPublicUrl;

    fn from_str(text: &str) -> Result<PublicUrl, BadPublicUrl> {
        parse(text).map(PublicUrl).ok_or_else(|| BadPublicUrl(text.chars().take(60).collect()))
    }
}

fn parse(text: &str) -> Option<String> {
    let uri: Uri = text.parse().ok().filter(|_| text.len() <= BYTES_MAX)?;
    let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme))?;
    let host = uri.host().filter(|host| is_host(host))?;
    let url = match uri.port_u16() {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    };
    // There is nothing else: no user, path or query.
    url.eq_ignore_ascii_case(text).then(|| url.to_ascii_lowercase())
}

/// A name, an IPv4 address, or an IPv6 address in brackets.
fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[') {
        return address.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    host.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_a_listener_is_a_public_url() {
        for (address, want) in [
            ("127.0.0.1:8480", "http://127.0.0.1:8480"),
            ("[2001:db8::7]:8480", "http://[2001:db8::7]:8480"),
            ("[fe80::7%2]:8480", "http://[fe80::7]:8480"),
        ] {
            let url = PublicUrl::of_listener(address.parse().expect("an address"), false);
            assert_eq!(url.as_str(), want);
            assert_eq!(want.parse(), Ok(url));
        }
    }

    #[test]
    fn only_scheme_host_and_port_are_accepted() {
        for text in [
            "https://stats.example.org",
            "http://stats.example.org:8080",
            "https://xn--bcher-kva.example",
            "http://192.0.2.7",
            "http://[2001:db8::7]:8480",
            "http://localhost",
        ] {
            assert_eq!(text.parse::<PublicUrl>().map(|url| url.to_string()).as_deref(), Ok(text));
        }
        let url: PublicUrl = "HTTPS://Stats.Example.org".parse().expect("valid");
        assert_eq!(url.as_str(), "https://stats.example.org");
        for text in [
            "",
            "stats.example.org",
            "//stats.example.org",
            "ftp://stats.example.org",
            "javascript:alert(1)",
            "https://",
            "https://:8480",
            "https://stats.example.org/",
            "https://stats.example.org/clqd",
            "https://stats.example.org?x",
            "https://stats.example.org#x",
            "https://user@stats.example.org",
            "https://stats.example.org:",
            "https://stats.example.org:99999",
            "https://stats.example.org:080",
            "https://stats..example.org",
            "https://b\u{fc}cher.example",
            "https://a b.example",
            "https://a\"b.example",
            "https://[2001:db8::7",
            "https://[192.0.2.7]",
        ] {
            assert!(text.parse::<PublicUrl>().is_err(), "{text}");
        }
        assert!(format!("https://{}.example", "x".repeat(BYTES_MAX)).parse::<PublicUrl>().is_err());
    }
}
