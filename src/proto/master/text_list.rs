//! Lists of masters over TCP: lines of text after one request, until the master closes the connection. The masters
//! of Sauerbraten and Red Eclipse.
//!
//! ```text
//! addserver 192.0.2.1 28785                                      Sauerbraten; the list ends with a zero byte
//!
//! clearservers                                                   Red Eclipse; the list has no end mark
//! addserver 192.0.2.1 28801 0 "name" "handle" "flags" "branch"
//! ```
//!
//! The listed port is that of the game. The addresses of a [`TextList`] have the port of queries, which is one higher.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use crate::limits::MASTER_ADDRESSES_MAX;

/// The line of a server.
const SERVER: &[u8] = b"addserver";

/// The first line of a Red Eclipse list.
const HEAD: &[u8] = b"clearservers";

/// A master that sends its list as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextMaster {
    Sauerbraten,
    RedEclipse,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The master closed it.
    Closed,
    /// By an error or a time limit.
    Broken,
}

/// The servers of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextList {
    /// Where the servers answer queries, each address once. An address need not be public.
    pub addresses: BTreeSet<SocketAddr>,
    /// Servers without a valid address or port, such as `host:28785`, as listed.
    pub invalid: Vec<String>,
    /// False if the end of the list is missing, or a limit cut it.
    pub is_complete: bool,
}

impl TextMaster {
    /// What the client sends.
    pub const REQUEST: &[u8] = b"list\n";

    /// Whether these bytes end with the end mark of a list, so that the connection need not be read further.
    pub fn has_end(self, bytes: &[u8]) -> bool {
        self == TextMaster::Sauerbraten && bytes.last() == Some(&0)
    }

    /// Decodes what the master has sent. `None`: it is not such a list. Other lines than those of servers are ignored.
    pub fn decode(self, bytes: &[u8], end: StreamEnd) -> Option<TextList> {
        let zero = bytes.iter().position(|&b| b == 0);
        let text = match self {
            TextMaster::Sauerbraten => &bytes[..zero.unwrap_or(bytes.len())],
            TextMaster::RedEclipse => bytes,
        };
        let has_end = match self {
            TextMaster::Sauerbraten => zero.is_some(),
            TextMaster::RedEclipse => end == StreamEnd::Closed,
        };
        let mut list = TextList { addresses: BTreeSet::new(), invalid: Vec::new(), is_complete: has_end };
        // An empty list of Sauerbraten is its end mark alone.
        let mut is_list = self == TextMaster::Sauerbraten && has_end && text.is_empty();
        let mut rest = text;
        while !rest.is_empty() {
            let Some(length) = rest.iter().position(|&b| b == b'\n') else {
                // Digits of the last line may be missing.
                list.is_complete = false;
                break;
            };
            let (line, after) = (&rest[..length], &rest[length + 1..]);
            rest = after;
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            match words.next() {
                Some(SERVER) => {
                    let Some(ip) = words.next() else { continue };
                    list.add(ip, words.next().unwrap_or_default());
                }
                Some(HEAD) if self == TextMaster::RedEclipse => {}
                _ => continue,
            }
            is_list = true;
        }
        is_list.then_some(list)
    }
}

impl TextList {
    fn add(&mut self, ip: &[u8], port: &[u8]) {
        let (ip, port) = (unquoted(ip), unquoted(port));
        if self.addresses.len() + self.invalid.len() >= MASTER_ADDRESSES_MAX {
            self.is_complete = false;
            return;
        }
        match query_address(&ip, &port) {
            Some(address) => _ = self.addresses.insert(address),
            None if port.is_empty() => self.invalid.push(ip),
            None => self.invalid.push(format!("{ip}:{port}")),
        }
    }
}

/// The address one port above that of the game.
fn query_address(ip: &str, port: &str) -> Option<SocketAddr> {
    let ip: IpAddr = ip.parse().ok()?;
    let port = port.parse().ok().filter(|&port: &u16| port > 0)?.checked_add(1)?;
    Some(SocketAddr::new(ip.to_canonical(), port))
}

fn unquoted(word: &[u8]) -> String {
    let inner = word.strip_prefix(b"\"").and_then(|word| word.strip_suffix(b"\""));
    String::from_utf8_lossy(inner.unwrap_or(word)).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MASTERS: [TextMaster; 2] = [TextMaster::Sauerbraten, TextMaster::RedEclipse];

    #[track_caller]
    fn check(
        master: TextMaster,
        bytes: &[u8],
        end: StreamEnd,
        addresses: &[&str],
        invalid: &[&str],
        is_complete: bool,
    ) {
        let list = master.decode(bytes, end).expect("a list");
        assert_eq!(list.addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>(), addresses);
        assert_eq!((list.invalid, list.is_complete), (invalid.iter().map(|&s| s.to_owned()).collect(), is_complete));
    }

    #[test]
    fn sauerbraten_list_has_query_ports_and_ends_with_a_zero() {
        let text = b"echo welcome\naddserver 1.2.3.4 28785\naddserver 1.2.3.4 28785\r\naddserver 5.6.7.8 65534\n\0";
        let addresses = ["1.2.3.4:28786", "5.6.7.8:65535"];
        for end in [StreamEnd::Closed, StreamEnd::Broken] {
            check(TextMaster::Sauerbraten, text, end, &addresses, &[], true);
            check(TextMaster::Sauerbraten, &text[..text.len() - 1], end, &addresses, &[], false);
            check(TextMaster::Sauerbraten, &text[..text.len() - 2], end, &addresses[..1], &[], false);
            check(TextMaster::Sauerbraten, b"\0", end, &[], &[], true);
        }
        assert!(TextMaster::Sauerbraten.has_end(text));
        assert!(!TextMaster::Sauerbraten.has_end(b"addserver 1.2.3.4 28785\n"));
    }

    #[test]
    fn red_eclipse_list_has_quoted_words_after_the_port() {
        let text = b"clearservers\naddserver 1.2.3.4 28801 12 \"a ^\"b addserver 9.9.9.9 9\" \"\" \"\" \"stable\"\n\
                     setversion 1 2\naddserver \"5.6.7.8\" \"28803\"\n";
        let addresses = ["1.2.3.4:28802", "5.6.7.8:28804"];
        check(TextMaster::RedEclipse, text, StreamEnd::Closed, &addresses, &[], true);
        check(TextMaster::RedEclipse, text, StreamEnd::Broken, &addresses, &[], false);
        check(TextMaster::RedEclipse, &text[..text.len() - 1], StreamEnd::Closed, &addresses[..1], &[], false);
        check(TextMaster::RedEclipse, b"clearservers\n", StreamEnd::Closed, &[], &[], true);
        assert!(!TextMaster::RedEclipse.has_end(b"clearservers\n\0"));
    }

    #[test]
    fn list_of_a_real_red_eclipse_master_is_read() {
        // Of version 1.6.0, on loopback.
        let text = b"clearservers\naddserver 127.0.0.1 38811 0 \"127.0.0.1:[38811]\" \"\" \"\" \"?\"\n";
        check(TextMaster::RedEclipse, text, StreamEnd::Closed, &["127.0.0.1:38812"], &[], true);
    }

    #[test]
    fn server_without_a_valid_address_is_invalid() {
        let text = b"addserver host 28785\naddserver 1.2.3.4 0\naddserver 1.2.3.4 65535\naddserver 1.2.3.4 x\n\
                     addserver\naddserver \xff\naddserver 1.2.3.4 28785\n\0";
        let invalid = ["host:28785", "1.2.3.4:0", "1.2.3.4:65535", "1.2.3.4:x", "\u{fffd}"];
        check(TextMaster::Sauerbraten, text, StreamEnd::Closed, &["1.2.3.4:28786"], &invalid, true);
    }

    #[test]
    fn other_texts_are_not_lists() {
        for master in MASTERS {
            for bytes in
                [&b""[..], b"addserver", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"echo hello\n\0", b"\x16\x03\0\0\n"]
            {
                assert_eq!(master.decode(bytes, StreamEnd::Closed), None, "{master:?} {bytes:?}");
            }
        }
        assert_eq!(TextMaster::Sauerbraten.decode(b"clearservers\n\0", StreamEnd::Closed), None);
        assert_eq!(TextMaster::RedEclipse.decode(b"\0", StreamEnd::Closed), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(
            lines in proptest::collection::vec(
                (0..4_usize, proptest::collection::vec(prop_oneof![any::<u8>(), Just(b' '), Just(b'\n')], 0..40)),
                0..20,
            ),
        ) {
            let heads = [&b"addserver "[..], b"addserver 1.2.3.4 ", b"clearservers\n", b"\n"];
            let bytes: Vec<u8> = lines.iter().flat_map(|(head, rest)| [heads[*head], rest].concat()).collect();
            for master in MASTERS {
                if let Some(list) = master.decode(&bytes, StreamEnd::Closed) {
                    let servers = list.addresses.len() + list.invalid.len();
                    prop_assert!(servers <= bytes.windows(SERVER.len()).filter(|window| *window == SERVER).count());
                    prop_assert!(list.addresses.iter().all(|address| address.port() > 1));
                }
            }
        }

        #[test]
        fn cut_list_is_incomplete(
            servers in proptest::collection::vec((any::<[u8; 4]>(), 1..65_535_u16), 1..9),
            cut in any::<prop::sample::Index>(),
        ) {
            let lines = servers.iter().map(|([a, b, c, d], port)| format!("addserver {a}.{b}.{c}.{d} {port}\n"));
            let text = lines.collect::<String>() + "\0";
            let whole = TextMaster::Sauerbraten.decode(text.as_bytes(), StreamEnd::Closed).expect("a list");
            prop_assert!(whole.is_complete);
            let want = servers.iter().map(|&(ip, port)| SocketAddr::from((ip, port + 1)));
            prop_assert_eq!(&whole.addresses, &want.collect());
            let cut = &text.as_bytes()[..cut.index(text.len())];
            if let Some(list) = TextMaster::Sauerbraten.decode(cut, StreamEnd::Closed) {
                prop_assert!(!list.is_complete && list.addresses.is_subset(&whole.addresses));
            }
        }
    }
}
