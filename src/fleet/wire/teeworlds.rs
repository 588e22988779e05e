//! Replies of Teeworlds 0.6 servers: the original one, with at most 16 clients in one datagram,
//! and that of DDNet, which sends any number in several datagrams to a client that requests
//! the extended form.

use super::datagrams::Datagrams;
use super::text::put_c_str;
use super::{Answer, FF4, ServerView};
use crate::fleet::protocol::TEEWORLDS_CLIENTS_MAX;
use crate::fleet::rng::SplitMix64;
use crate::model::Player;

/// Longest datagram, bytes (`NET_MAX_PAYLOAD`).
const DATAGRAM_BYTES_MAX: usize = 1_394;

/// Replies to `gie3`. The six bytes before it are `FF`, or `xe`, two more bytes of the token,
/// and two zeros for the extended form. Every server takes other bytes for `FF`, too.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let (header, rest) = query.split_first_chunk::<6>()?;
    let &[token] = rest.strip_prefix(FF4)?.strip_prefix(b"gie3")? else { return None };
    match *header {
        [b'x', b'e', high, low, 0, 0] if server.variant.teeworlds_extended => {
            put_extended(server, u32::from_be_bytes([0, high, low, token]), out);
        }
        [b'x', b'e', ..] | [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF] => put_vanilla(server, token, out),
        _ => return None,
    }
    Some(Answer::Players)
}

fn put_head(kind: &[u8; 4], token: u32, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&[0xFF; 10]);
    bytes.extend_from_slice(kind);
    put_c_str(bytes, token);
}

/// Flags, and the numbers of players and clients with their maxima.
fn put_numbers(server: &ServerView, clients: usize, clients_max: u32, bytes: &mut Vec<u8>) {
    let playing = server.announced_playing().min(clients);
    for number in [0, playing, clients_max as usize, clients, clients_max as usize] {
        put_c_str(bytes, number);
    }
}

fn put_client(player: &Player, bytes: &mut Vec<u8>) {
    put_c_str(bytes, &player.name);
    put_c_str(bytes, if player.name.len().is_multiple_of(3) { "clan" } else { "" });
    put_c_str(bytes, -1);
    put_c_str(bytes, player.points.unwrap_or(0));
    put_c_str(bytes, u8::from(!player.spectator));
}

fn put_vanilla(server: &ServerView, token: u8, out: &mut Datagrams) {
    let snapshot = server.snapshot;
    let clients_max = usize::from(TEEWORLDS_CLIENTS_MAX);
    let bytes = &mut out.bytes;
    put_head(b"inf3", u32::from(token), bytes);
    for text in ["0.6.5", &*snapshot.hostname, &snapshot.map, server.game_type()] {
        put_c_str(bytes, text);
    }
    put_numbers(server, server.announced().min(clients_max), snapshot.slots.min(clients_max as u32), bytes);
    for player in snapshot.players.iter().take(clients_max) {
        put_client(player, bytes);
    }
    out.end_datagram();
}

fn put_extended(server: &ServerView, token: u32, out: &mut Datagrams) {
    let snapshot = server.snapshot;
    let mut body = Vec::new();
    put_head(b"iext", token, &mut body);
    for text in ["0.6.4, 18.0", &*snapshot.hostname, &snapshot.map, "1683261864", "5805", server.game_type()] {
        put_c_str(&mut body, text);
    }
    put_numbers(server, server.announced(), snapshot.slots, &mut body);
    put_c_str(&mut body, ""); // reserved
    let mut number = 0;
    for player in &snapshot.players {
        let mut client = Vec::new();
        put_client(player, &mut client);
        put_c_str(&mut client, ""); // reserved
        if body.len() + client.len() > DATAGRAM_BYTES_MAX {
            out.bytes.append(&mut body);
            out.end_datagram();
            number += 1;
            put_head(b"iex+", token, &mut body);
            put_c_str(&mut body, number);
            put_c_str(&mut body, ""); // reserved
        }
        body.append(&mut client);
    }
    out.bytes.append(&mut body);
    out.end_datagram();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::ProtocolVariant;
    use crate::fleet::wire::tests::{player, refuses, reply_of, snapshot};
    use crate::model::Snapshot;

    const VANILLA: &[u8] = b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFgie3\x2A";
    const EXTENDED: &[u8] = b"xe\x01\x02\0\0\xFF\xFF\xFF\xFFgie3\x2A";

    fn get(server: &Snapshot, extended: bool, query: &[u8]) -> Vec<Vec<u8>> {
        let change = |variant: &mut ProtocolVariant, _: &mut usize| variant.teeworlds_extended = extended;
        let (answer, reply) = reply_of(Protocol::Teeworlds, server, change, query).unwrap();
        assert_eq!(answer, Answer::Players);
        reply
    }

    #[test]
    fn replies_equal_handwritten_bytes() {
        let spectator = Player { spectator: true, ..player("Zoë", 0, 0, 0) };
        let mut server = snapshot(vec![player("nameless tee", -3, 0, 0), spectator]);
        (server.map, server.game, server.hostname) = ("dm1".into(), "DM".into(), "h".into());
        let head = b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
        let list = b"\x000\x001\x0016\x002\x0016\0nameless tee\0clan\0-1\0-3\x001\0Zo\xC3\xAB\0\0-1\x000\x000\0";
        let want = [[&head[..], b"inf3", b"42\x000.6.5\0h\0dm1\0DM", list].concat()];
        assert_eq!(get(&server, true, VANILLA), want);
        assert_eq!(get(&server, false, VANILLA), want);
        // The original server ignores the header.
        assert_eq!(get(&server, false, EXTENDED), want);
        let list = b"\x000\x001\x0016\x002\x0016\0\0nameless tee\0clan\0-1\0-3\x001\0\0Zo\xC3\xAB\0\0-1\x000\x000\0\0";
        // 0x01022A
        let want = [&head[..], b"iext", b"66090\x000.6.4, 18.0\0h\0dm1\x001683261864\x005805\0DM", list].concat();
        assert_eq!(get(&server, true, EXTENDED), [want]);
        for query in [&VANILLA[..14], b"xe\x01\x02\0\0\xFF\xFF\xFF\xFFfstd\x2A", &[VANILLA, b"x"].concat()] {
            assert!(refuses(Protocol::Teeworlds, &server, query));
        }
    }

    #[test]
    fn long_list_is_cut_or_continues() {
        let mut server = snapshot((0..64).map(|n| player(&format!("long name {n:04}"), n, 0, 0)).collect());
        server.slots = 64;
        let vanilla = &get(&server, true, VANILLA)[0];
        assert!(vanilla.ends_with(b"long name 0015\0\0-1\x0015\x001\0"));
        let extended = get(&server, true, EXTENDED);
        assert_eq!(extended.len(), 2);
        assert!(extended.iter().all(|datagram| datagram.len() <= DATAGRAM_BYTES_MAX));
        assert!(extended[1].starts_with(b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFiex+66090\x001\0\0long name 00"));
        assert!(extended[1].ends_with(b"long name 0063\0\0-1\x0063\x001\0\0"));
    }
}
