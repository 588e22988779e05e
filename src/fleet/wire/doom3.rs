//! Replies of Doom 3 and Quake 4 servers (`idAsyncServer`): names, pings and rates, without
//! points.

use super::datagrams::Datagrams;
use super::text::{put_c_str, put_text_c_str};
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// The id that ends the list: the greatest number of clients.
pub(super) const LIST_END: u8 = 32;

/// Version of the network protocol: 1.41.
const PROTOCOL_VERSION: u32 = 1 << 16 | 41;

/// Replies to `getInfo`, with the client's challenge: one datagram.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let challenge = query.strip_prefix(b"\xFF\xFFgetInfo\0")?.get(..4)?;
    let snapshot = server.snapshot;
    let is_quake4 = snapshot.game.contains("QUAKE4");
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(b"\xFF\xFFinfoResponse\0");
    bytes.extend_from_slice(challenge);
    bytes.extend_from_slice(&PROTOCOL_VERSION.to_le_bytes());
    put_c_str(bytes, "si_name");
    put_coloured(bytes, &snapshot.hostname);
    for (key, value) in [
        ("gamename", &*snapshot.game),
        ("si_map", &snapshot.map),
        ("si_maxPlayers", &snapshot.slots.to_string()),
        ("si_gameType", "deathmatch"),
        ("si_usePass", "0"),
        ("si_warmup", ""),
    ] {
        put_c_str(bytes, key);
        put_c_str(bytes, value);
    }
    // An empty key with an empty value.
    bytes.extend_from_slice(b"\0\0");
    for (id, player) in (0..LIST_END).zip(&snapshot.players) {
        bytes.push(id);
        bytes.extend_from_slice(&(player.ping.unwrap_or(0) as u16).to_le_bytes());
        bytes.extend_from_slice(&16_000_u32.to_le_bytes());
        put_coloured(bytes, &player.name);
        if is_quake4 {
            put_c_str(bytes, if id % 2 == 0 { "" } else { "clan" });
        }
    }
    bytes.push(LIST_END);
    bytes.extend_from_slice(&2_u32.to_le_bytes()); // the operating systems with game code
    out.end_datagram();
    Some(Answer::Players)
}

/// A name, every second one with colour codes.
pub(super) fn put_coloured(bytes: &mut Vec<u8>, name: &str) {
    bytes.extend_from_slice(if name.len().is_multiple_of(2) { b"^1" } else { b"" });
    put_text_c_str(bytes, name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};

    #[test]
    fn reply_equals_handwritten_bytes() {
        let mut server = snapshot(vec![player("Jörg", 0, 300, 0), player("ab", 0, 7, 0)]);
        (server.map, server.game) = ("game/mp/d3dm1".into(), "baseDOOM-1".into());
        let head =
            b"\xFF\xFFinfoResponse\0abcd\x29\0\x01\0si_name\0B\xFCro\0gamename\0baseDOOM-1\0si_map\0game/mp/d3dm1\0\
            si_maxPlayers\x0016\0si_gameType\0deathmatch\0si_usePass\x000\0si_warmup\0\0\0\0";
        let list = b"\0\x2C\x01\x80\x3E\0\0J\xF6rg\0\x01\x07\0\x80\x3E\0\0^1ab\0\x20\x02\0\0\0";
        let query = b"\xFF\xFFgetInfo\0abcd";
        assert_eq!(reply_to(Protocol::Doom3, &server, query), (Answer::Players, vec![[&head[..], list].concat()]));
        server.game = "baseQUAKE4-1".into();
        let list = b"\0\x2C\x01\x80\x3E\0\0J\xF6rg\0\0\x01\x07\0\x80\x3E\0\0^1ab\0clan\0\x20\x02\0\0\0";
        assert!(reply_to(Protocol::Doom3, &server, query).1[0].ends_with(list));
        assert!(refuses(Protocol::Doom3, &server, b"\xFF\xFFgetInfo\0abc"));
    }
}
