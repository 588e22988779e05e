//! Replies of Enemy Territory: Quake Wars servers: names, pings and clans, then a second list with
//! teams and kills.

use super::datagrams::Datagrams;
use super::doom3::{LIST_END, put_coloured};
use super::text::put_c_str;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// A task and the version of the network protocol, 10.20.
const HEADER_WORDS: [u32; 2] = [0, 10 << 16 | 20];

/// Replies to `getInfoEx`, with the client's challenge: one datagram.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let challenge = query.strip_prefix(b"\xFF\xFFgetInfoEx\0")?.get(..4)?;
    let snapshot = server.snapshot;
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(b"\xFF\xFFinfoExResponse\0");
    bytes.extend_from_slice(challenge);
    HEADER_WORDS.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    put_c_str(bytes, "si_name");
    put_coloured(bytes, &snapshot.hostname);
    for (key, value) in [
        ("gamename", &*snapshot.game),
        ("si_map", &format!("maps/{}.entities", snapshot.map)),
        ("si_maxPlayers", &snapshot.slots.to_string()),
        ("si_rules", "sdGameRulesObjective"),
        ("si_needPass", "0"),
    ] {
        put_c_str(bytes, key);
        put_c_str(bytes, value);
    }
    // An empty key with an empty value.
    bytes.extend_from_slice(b"\0\0");
    for (id, player) in (0..LIST_END).zip(&snapshot.players) {
        bytes.push(id);
        bytes.extend_from_slice(&(player.ping.unwrap_or(0) as u16).to_le_bytes());
        put_coloured(bytes, &player.name);
        bytes.push(0); // the clan is before the name
        put_c_str(bytes, if id % 2 == 0 { "" } else { "clan" });
        bytes.push(player.bot.into());
    }
    bytes.push(LIST_END);
    bytes.extend_from_slice(&2_u32.to_le_bytes()); // the operating systems with game code
    bytes.push(1); // ranked
    bytes.extend_from_slice(&600_000_i32.to_le_bytes()); // time left, ms
    bytes.push(1); // the state of the round
    bytes.extend_from_slice(&[0, 0]); // no TV server; players who are interested
    for (id, player) in (0..LIST_END).zip(&snapshot.players) {
        bytes.push(id);
        bytes.extend_from_slice(&12.5_f32.to_le_bytes()); // experience
        put_c_str(bytes, if id % 2 == 0 { "gdf" } else { "strogg" });
        bytes.extend_from_slice(&(player.points.unwrap_or(0) as i32).to_le_bytes());
        bytes.extend_from_slice(&3_i32.to_le_bytes()); // deaths
    }
    bytes.push(LIST_END);
    out.end_datagram();
    Some(Answer::Players)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};

    #[test]
    fn reply_equals_handwritten_bytes() {
        let mut server = snapshot(vec![player("Jörg", -1, 300, 0), player("ab", 12, 0, 0)]);
        (server.map, server.game) = ("valley".into(), "baseETQW-1".into());
        server.players[1].bot = true;
        let head = b"\xFF\xFFinfoExResponse\0abcd\0\0\0\0\x14\0\x0A\0si_name\0B\xFCro\0gamename\0baseETQW-1\0\
            si_map\0maps/valley.entities\0si_maxPlayers\x0016\0si_rules\0sdGameRulesObjective\0si_needPass\x000\0\0\0";
        let players = b"\0\x2C\x01J\xF6rg\0\0\0\0\x01\0\0^1ab\0\0clan\0\x01\x20";
        let round = b"\x02\0\0\0\x01\xC0\x27\x09\0\x01\0\0";
        let kills = b"\0\0\0\x48\x41gdf\0\xFF\xFF\xFF\xFF\x03\0\0\0\x01\0\0\x48\x41strogg\0\x0C\0\0\0\x03\0\0\0\x20";
        let want = [&head[..], players, round, kills].concat();
        assert_eq!(reply_to(Protocol::Etqw, &server, b"\xFF\xFFgetInfoEx\0abcd"), (Answer::Players, vec![want]));
        assert!(refuses(Protocol::Etqw, &server, b"\xFF\xFFgetInfoEx\0abc"));
        assert!(refuses(Protocol::Etqw, &server, b"\xFF\xFFgetInfo\0abcd"));
        assert!(refuses(Protocol::Doom3, &server, b"\xFF\xFFgetInfoEx\0abcd"));
    }
}
