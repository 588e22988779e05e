//! Replies of Minecraft (Java) servers to the query protocol, which has the form of GameSpy 3.
//! A reply is one datagram, although it contains `splitnum`.

use super::datagrams::Datagrams;
use super::gamespy3::{accepts, challenge_number, put_challenge};
use super::text::{put_c_str, put_text_c_str};
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// Replies to the request for a challenge and to the query for the full status: id, challenge
/// and four more bytes.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let &[kind, a, b, c, d, ref rest @ ..] = query.strip_prefix(b"\xFE\xFD")? else { return None };
    let id = [a, b, c, d];
    let number = challenge_number(server);
    match (kind, rest) {
        (9, []) => {
            // Here the server takes the id for text.
            put_challenge(String::from_utf8_lossy(&id).as_bytes(), number, out);
            Some(Answer::Other)
        }
        (0, &[e, f, g, h, _, _, _, _]) if accepts(server, i32::from_be_bytes([e, f, g, h]), number) => {
            put_status(server, id, out);
            Some(Answer::Players)
        }
        _ => None,
    }
}

fn put_status(server: &ServerView, id: [u8; 4], out: &mut Datagrams) {
    let snapshot = server.snapshot;
    let bytes = &mut out.bytes;
    bytes.push(0);
    bytes.extend_from_slice(&id);
    bytes.extend_from_slice(b"splitnum\0\x80\0hostname\0");
    put_text_c_str(bytes, &snapshot.hostname);
    for (key, value) in [
        ("gametype", "SMP"),
        ("game_id", "MINECRAFT"),
        ("version", "1.20.4"),
        ("plugins", ""),
        ("map", &snapshot.map),
        ("numplayers", &server.announced().to_string()),
        ("maxplayers", &snapshot.slots.to_string()),
        ("hostport", &server.port.to_string()),
        ("hostip", "127.0.0.1"),
    ] {
        put_c_str(bytes, key);
        put_c_str(bytes, value);
    }
    bytes.extend_from_slice(b"\0\x01player_\0\0");
    for player in &snapshot.players {
        put_c_str(bytes, &player.name);
    }
    bytes.push(0);
    out.end_datagram();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};

    #[test]
    fn reply_equals_handwritten_bytes() {
        let mut server = snapshot(vec![player("Steve", 0, 0, 0), player("Alex_2", 0, 0, 0)]);
        server.map = "world".into();
        let get = |query: &[u8]| reply_to(Protocol::Minecraft, &server, query);
        assert_eq!(get(b"\xFE\xFD\x09abcd"), (Answer::Other, vec![b"\x09abcd-67305985\0".to_vec()]));
        let other = get(b"\xFE\xFD\x09ab\xE4\xF6");
        assert_eq!(other, (Answer::Other, vec![b"\x09ab\xEF\xBF\xBD\xEF\xBF\xBD-67305985\0".to_vec()]));
        let want = b"\0abcdsplitnum\0\x80\0hostname\0B\xFCro\0gametype\0SMP\0game_id\0MINECRAFT\0version\x001.20.4\0\
            plugins\0\0map\0world\0numplayers\x002\0maxplayers\x0016\0hostport\x005000\0hostip\x00127.0.0.1\0\0\
            \x01player_\0\0Steve\0Alex_2\0\0";
        assert_eq!(get(b"\xFE\xFD\0abcd\xFB\xFC\xFD\xFF\0\0\0\0"), (Answer::Players, vec![want.to_vec()]));
        for query in [&b"\xFE\xFD\0abcd\xFB\xFC\xFD\xFE\0\0\0\0"[..], b"\xFE\xFD\0abcd", b"\xFE\x01"] {
            assert!(refuses(Protocol::Minecraft, &server, query));
        }
    }
}
