//! Replies of Armagetron Advanced servers: messages of 16-bit words, big-endian.

use super::datagrams::Datagrams;
use super::text::put_text;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// Replies to message 53, the request for the information, with message 51. The request has an id, no
/// data, and the number of a connection, which it does not need.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let &[0, 53, _, _, 0, 0, _, _] = query else { return None };
    let snapshot = server.snapshot;
    let mut data = Vec::new();
    put_number(&mut data, server.port.into());
    put_string(&mut data, ""); // the official address
    put_string(&mut data, &format!("0xff8800{}", snapshot.hostname));
    put_number(&mut data, server.announced() as u32);
    put_number(&mut data, 0); // the oldest and the newest version of clients
    put_number(&mut data, 17);
    put_string(&mut data, "0.2.9.1 unix dedicated");
    put_number(&mut data, snapshot.slots);
    put_string(&mut data, &snapshot.players.iter().map(|player| format!("{}\n", player.name)).collect::<String>());
    put_string(&mut data, "0xffffffAll settings at default values.");
    put_string(&mut data, "http://example.org/");
    put_string(&mut data, ""); // the accounts of the players
    let bytes = &mut out.bytes;
    for word in [51, 0, (data.len() / 2) as u16] {
        put_word(bytes, word);
    }
    bytes.extend_from_slice(&data);
    put_word(bytes, 0); // sent by the server
    out.end_datagram();
    Some(Answer::Players)
}

fn put_word(bytes: &mut Vec<u8>, word: u16) {
    bytes.extend_from_slice(&word.to_be_bytes());
}

/// The low word comes first.
fn put_number(bytes: &mut Vec<u8>, number: u32) {
    put_word(bytes, number as u16);
    put_word(bytes, (number >> 16) as u16);
}

/// The length with the final zero, then the sum of each character and 256 times the next one. They are
/// signed. An empty string has no zero.
fn put_string(bytes: &mut Vec<u8>, string: &str) {
    let mut text = Vec::new();
    put_text(&mut text, string);
    if !text.is_empty() {
        text.push(0);
    }
    put_word(bytes, text.len() as u16);
    for pair in text.chunks(2) {
        let character = |index: usize| i32::from(pair.get(index).copied().unwrap_or(0) as i8);
        put_word(bytes, (character(0) + 256 * character(1)) as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_of, reply_to, snapshot};

    const QUERY: &[u8] = b"\0\x35\0\0\0\0\0\x11";

    #[test]
    fn reply_equals_handwritten_bytes() {
        let server = snapshot(vec![player("é1", 0, 0, 0), player("CJ", 0, 0, 0)]);
        let want = [
            // 70 words of data, port 5,000
            &b"\0\x33\0\0\0\x46\x13\x88\0\0\0\0"[..],
            b"\0\x0Dx0ff8800\xFCBor\0\0",
            b"\0\x02\0\0\0\0\0\0\0\x11\0\0",
            b"\0\x17.0.2.9 1nuxid decitade\0\0",
            b"\0\x10\0\0",
            // A character from 80 takes one from the next.
            b"\0\x07\x30\xE9C\n\nJ\0\0",
            b"\0\x28x0fffffflA lesttnisga  tedaflu tavulse\0.",
            b"\0\x14thpt/:e/axpmelo.gr\0/",
            b"\0\0\0\0",
        ]
        .concat();
        assert_eq!(reply_to(Protocol::Armagetron, &server, QUERY), (Answer::Players, vec![want]));
    }

    #[test]
    fn missing_players_are_announced() {
        let server = snapshot(vec![player("a", 0, 0, 0)]);
        let (_, reply) = reply_of(Protocol::Armagetron, &server, |_, missing| *missing = 4, QUERY).unwrap();
        assert_eq!(reply[0][28..32], *b"\0\x05\0\0");
    }

    #[test]
    fn other_queries_are_refused() {
        let server = snapshot(vec![]);
        for query in [&QUERY[..6], &[QUERY, b"\0"].concat(), b"\0\x34\0\0\0\0\0\x11", b"\0\x35\0\0\0\x05\0\x11"] {
            assert!(refuses(Protocol::Armagetron, &server, query), "{query:x?}");
        }
    }
}
