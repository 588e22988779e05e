//! The text that BZFlag's list server sends: a line for each server.
//!
//! ```text
//! NAME[:PORT] BZFS0221 GAME IP TITLE
//! ```
//!
//! The name is that of a host, mostly a DNS name; IP is its address. GAME is a packed reply to a query, in hexadecimal.
//! A line such as `NOTICE: text` is a message.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::server_list::ServerList;
use crate::limits::MASTER_ADDRESSES_MAX;

/// The version of the protocol that clqd queries, and what all versions begin with.
const VERSION: &[u8] = b"BZFS0221";
const VERSION_PREFIX: &[u8] = b"BZFS";

/// The port of a server that is listed without one.
const DEFAULT_PORT: u16 = 5_154;

/// Longest part of a line in an error, characters.
const SHOWN_CHARS_MAX: usize = 60;

/// Why a text is not a list that can be imported.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BzflagListError {
    #[error("a BZFlag list, but it is cut: the last line ({line}) has no end")]
    Cut { line: usize },
    #[error("a BZFlag list, but line {line} is not that of a server: {text:?}")]
    Line { line: usize, text: String },
    #[error("a BZFlag list, but no server has the version BZFS0221; add version=BZFS0221 to the query of the URL")]
    OtherVersion,
    #[error("a BZFlag list, but it has more than {MASTER_ADDRESSES_MAX} servers")]
    TooMany,
}

/// Whether the first line that is not a message is that of a server.
pub(super) fn is_bzflag(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&b| b == b'\n').filter(|line| !is_message(line));
    let second = lines.next().and_then(|line| fields(line).nth(1));
    second.is_some_and(|version| version.starts_with(VERSION_PREFIX))
}

/// Servers of other versions are left out, because clqd cannot query them.
pub(super) fn parse(bytes: &[u8]) -> Result<ServerList, BzflagListError> {
    let mut list = ServerList::new();
    let (mut servers, mut has_version) = (0, false);
    let mut rest = bytes;
    for line in 1.. {
        if rest.is_empty() {
            break;
        }
        let length = memchr::memchr(b'\n', rest).ok_or(BzflagListError::Cut { line })?;
        let (text, after) = (&rest[..length], &rest[length + 1..]);
        rest = after;
        if is_message(text) {
            continue;
        }
        let server = Server::parse(text).ok_or_else(|| BzflagListError::Line { line, text: shown(text) })?;
        servers += 1;
        if servers > MASTER_ADDRESSES_MAX {
            return Err(BzflagListError::TooMany);
        }
        if server.version == VERSION {
            has_version = true;
            match server.address() {
                Some(address) => _ = list.servers.insert(address, "bzflag"),
                None => list.invalid.push(String::from_utf8_lossy(server.name).into_owned()),
            }
        }
    }
    if has_version { Ok(list) } else { Err(BzflagListError::OtherVersion) }
}

/// The first fields of a line.
struct Server<'l> {
    /// With the port.
    name: &'l [u8],
    version: &'l [u8],
    /// Of version BZFS0221: the address.
    fourth: &'l [u8],
}

impl Server<'_> {
    /// `None`: the line is not that of a server.
    fn parse(line: &[u8]) -> Option<Server<'_>> {
        let mut fields = fields(line);
        let (name, version, game) = (fields.next()?, fields.next()?, fields.next()?);
        let digits = version.strip_prefix(VERSION_PREFIX)?;
        let is_valid = digits.len() == 4 && digits.iter().all(u8::is_ascii_digit);
        let is_valid = is_valid && game.iter().all(u8::is_ascii_hexdigit);
        is_valid.then(|| Server { name, version, fourth: fields.next().unwrap_or_default() })
    }

    fn address(&self) -> Option<SocketAddr> {
        let name = std::str::from_utf8(self.name).ok()?;
        let port = match name.rsplit_once(':') {
            Some((_, port)) => port.parse().ok().filter(|&port| port > 0)?,
            None => DEFAULT_PORT,
        };
        let ip: Ipv4Addr = std::str::from_utf8(self.fourth).ok()?.parse().ok()?;
        Some(SocketAddr::new(IpAddr::V4(ip), port))
    }
}

/// The fields of a line, separated by spaces.
fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.split(|&b| b == b' ').filter(|field| !field.is_empty())
}

/// Whether a line is empty or a message: a word in capital letters and a colon.
fn is_message(line: &[u8]) -> bool {
    let Some(first) = fields(line).next() else { return true };
    first.strip_suffix(b":").is_some_and(|word| !word.is_empty() && word.iter().all(u8::is_ascii_uppercase))
}

/// The beginning of a line.
fn shown(line: &[u8]) -> String {
    let text: Cow<'_, str> = String::from_utf8_lossy(line);
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GAME: &str = "0002000100000000000000000000000000000000000000000000000000";

    fn addresses(list: &ServerList) -> Vec<String> {
        list.servers.keys().map(SocketAddr::to_string).collect()
    }

    #[test]
    fn list_has_address_and_port_of_each_server() {
        let text = format!(
            "NOTICE: hello\nTOKEN: 123\na.example.org:5155 BZFS0221 {GAME} 192.0.2.1 A title: 9.9.9.9\r\n\n\
             b.example.org BZFS0221 {GAME} 192.0.2.2 \nc.example.org:5155 BZFS0221 {GAME} 192.0.2.1\n\
             HOST:5156  BZFS0221 {GAME} 192.0.2.3 \n"
        );
        assert!(is_bzflag(text.as_bytes()));
        let list = parse(text.as_bytes()).expect("a list");
        assert_eq!(addresses(&list), ["192.0.2.1:5155", "192.0.2.2:5154", "192.0.2.3:5156"]);
        assert!(list.servers.values().all(|&scheme| scheme == "bzflag"));
        assert_eq!(list.invalid, [""; 0]);
    }

    #[test]
    fn server_without_a_valid_address_is_invalid() {
        let mut text = Vec::new();
        for name in ["host:0", "host:65536", "host:", "host:+a"] {
            text.extend_from_slice(format!("{name} BZFS0221 {GAME} 192.0.2.1 t\n").as_bytes());
        }
        text.extend_from_slice(b"host BZFS0221 00 host t\nhost:1 BZFS0221 00\n\xff BZFS0221 00 192.0.2.1\n");
        let list = parse(&text).expect("a list");
        assert_eq!(addresses(&list), [""; 0]);
        assert_eq!(list.invalid, ["host:0", "host:65536", "host:", "host:+a", "host", "host:1", "\u{fffd}"]);
    }

    #[test]
    fn server_of_another_version_is_left_out() {
        let text = format!("a BZFS0225 {GAME} A title\nb BZFS0221 {GAME} 192.0.2.2 \n");
        assert_eq!(addresses(&parse(text.as_bytes()).expect("a list")), ["192.0.2.2:5154"]);
        let text = format!("a BZFS0225 {GAME} A title\n");
        assert!(is_bzflag(text.as_bytes()));
        assert_eq!(parse(text.as_bytes()), Err(BzflagListError::OtherVersion));
    }

    #[test]
    fn bad_line_is_refused_with_its_number() {
        let long = "é".repeat(100);
        for (line, text) in [
            ("<html>", "<html>"),
            ("b BZFS022 00 192.0.2.1 t", "b BZFS022 00 192.0.2.1 t"),
            ("b BZFS0221", "b BZFS0221"),
            ("b BZFS0221 xyz 192.0.2.1", "b BZFS0221 xyz 192.0.2.1"),
            (long.as_str(), &long[..60 * 2]),
        ] {
            let list = format!("a BZFS0221 {GAME} 192.0.2.1 t\n{line}\n");
            assert!(is_bzflag(list.as_bytes()));
            let error = parse(list.as_bytes()).expect_err(line);
            assert_eq!(error, BzflagListError::Line { line: 2, text: text.to_owned() });
        }
    }

    #[test]
    fn other_documents_are_not_lists() {
        for text in [&b""[..], b"\n", b"NOTICE: x\n", b"quake3://h\n", b"h:1\n", b"a b c\n", b"BZFS0221\n"] {
            assert!(!is_bzflag(text), "{text:?}");
        }
    }

    #[test]
    fn list_cut_at_any_byte_is_refused() {
        let text = format!("a BZFS0221 {GAME} 192.0.2.1 t\n");
        for length in 0..text.len() {
            assert!(parse(&text.as_bytes()[..length]).is_err(), "{length}");
        }
        assert_eq!(parse(format!("{text}b").as_bytes()), Err(BzflagListError::Cut { line: 2 }));
    }

    proptest! {
        #[test]
        fn any_lines_are_parsed_or_refused(
            lines in proptest::collection::vec("[ -~]{0,9}( BZFS0221)? [0-9a-f]{0,4}( 192.0.2.1)?.{0,9}", 0..9),
        ) {
            let text = lines.join("\n") + "\n";
            is_bzflag(text.as_bytes());
            if let Ok(list) = parse(text.as_bytes()) {
                prop_assert!(list.servers.len() + list.invalid.len() <= lines.len());
            }
        }
    }
}
