//! Replies of open.mp servers. SA-MP servers answer `d` (list with pings), too.

use std::ops::Range;

use super::datagrams::Datagrams;
use super::text::latin1;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// `SAMP`, the server's address and port, and the query's letter.
const HEADER_BYTES: usize = 11;

/// Replies to `p` (ping), `i` (information), `r` (rules) and `c` (list). A reply begins with the header
/// of the query. Above 100 players the list is empty.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let (header, rest) = query.split_at_checked(HEADER_BYTES)?;
    if !header.starts_with(b"SAMP") {
        return None;
    }
    let kind = header[HEADER_BYTES - 1];
    if rest.len() != if kind == b'p' { 4 } else { 0 } || !matches!(kind, b'p' | b'i' | b'r' | b'c') {
        return None;
    }
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(header);
    match kind {
        b'p' => bytes.extend_from_slice(rest),
        b'i' => put_information(server, bytes),
        b'r' => put_rules(bytes),
        _ => put_list(server, bytes),
    }
    out.end_datagram();
    Some(if kind == b'c' { Answer::Players } else { Answer::Other })
}

/// The four bytes of a ping.
pub(super) fn nonce(query: &[u8]) -> Option<Range<usize>> {
    (query.get(HEADER_BYTES - 1) == Some(&b'p')).then_some(HEADER_BYTES..HEADER_BYTES + 4)
}

fn put_information(server: &ServerView, bytes: &mut Vec<u8>) {
    let snapshot = server.snapshot;
    bytes.push(0); // no password
    bytes.extend_from_slice(&(server.announced() as u16).to_le_bytes());
    bytes.extend_from_slice(&(snapshot.slots as u16).to_le_bytes());
    for text in [&*snapshot.hostname, &snapshot.map, "English"] {
        let text = text_bytes(text);
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&text);
    }
}

fn put_rules(bytes: &mut Vec<u8>) {
    let rules = [
        ("lagcomp", "On"),
        ("mapname", "San Andreas"),
        ("version", "0.3.7-R2"),
        ("weather", "10"),
        ("weburl", "www.sa-mp.com"),
        ("worldtime", "12:00"),
    ];
    bytes.extend_from_slice(&(rules.len() as u16).to_le_bytes());
    for text in rules.into_iter().flat_map(|(name, value)| [name, value]) {
        put_short_text(bytes, text);
    }
}

fn put_list(server: &ServerView, bytes: &mut Vec<u8>) {
    // The snapshot of a server with more than 100 players lists none.
    let players = &server.snapshot.players;
    bytes.extend_from_slice(&(players.len() as u16).to_le_bytes());
    for player in players {
        put_short_text(bytes, &player.name);
        bytes.extend_from_slice(&(player.points.unwrap_or(0) as i32).to_le_bytes());
    }
}

fn text_bytes(text: &str) -> Vec<u8> {
    latin1(text).unwrap_or_else(|| text.as_bytes().to_vec())
}

fn put_short_text(bytes: &mut Vec<u8>, text: &str) {
    let text = text_bytes(text);
    bytes.push(text.len() as u8);
    bytes.extend_from_slice(&text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};

    #[test]
    fn replies_equal_handwritten_bytes() {
        let mut server = snapshot(vec![player("CJ", 258, 48, 0), player("Ryder_1", -1, 7, 0)]);
        server.map = "Stunt".into();
        let get =
            |letters: &[u8]| reply_to(Protocol::SaMp, &server, &[b"SAMP\x7F\x01\0\x01\x61\x1E", letters].concat());
        let same = |rest: &[u8]| vec![[b"SAMP\x7F\x01\0\x01\x61\x1E", rest].concat()];
        assert_eq!(get(b"pabcd"), (Answer::Other, same(b"pabcd")));
        let want = b"i\0\x02\0\x10\0\x04\0\0\0B\xFCro\x05\0\0\0Stunt\x07\0\0\0English";
        assert_eq!(get(b"i"), (Answer::Other, same(want)));
        assert_eq!(get(b"c"), (Answer::Players, same(b"c\x02\0\x02CJ\x02\x01\0\0\x07Ryder_1\xFF\xFF\xFF\xFF")));
        let (_, rules) = get(b"r");
        assert!(rules[0][10..].starts_with(b"r\x06\0\x07lagcomp\x02On\x07mapname\x0BSan Andreas\x07version"));
        for query in [
            &b"SAMP\x7F\x01\0\x01\x61\x1Ex"[..],
            b"SAMP\x7F\x01\0\x01\x61\x1Ed",
            b"SAMP\x7F\x01\0\x01\x61\x1Epabc",
            b"SAMP",
            b"SBMP\x7F\x01\0\x01\x61\x1Ei",
        ] {
            assert!(refuses(Protocol::SaMp, &server, query));
        }
    }
}
