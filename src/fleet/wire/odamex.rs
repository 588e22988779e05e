//! Replies of Odamex servers to a launcher, protocol version 7.

use std::ops::Range;

use super::datagrams::Datagrams;
use super::text::{put, put_c_str, put_text_c_str};
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;
use crate::model::Player;

/// `AD0`, the sender (1 launcher), the direction (1 query), and the message (2 information), little-endian.
const QUERY: &[u8; 4] = b"\x02\x10\x01\xAD";
/// The same of the server's reply.
const INFORMATION: &[u8; 4] = b"\x03\x20\x03\xAD";
/// The client's version is too old.
const TOO_OLD: &[u8; 4] = b"\x02\x20\x03\xAD";

/// 11.1.0: major times 256, minor times 10, patch.
const VERSION: u32 = 11 * 256 + 10;
const PROTOCOL_VERSION: u32 = 7;

/// Numbers of the types of the game.
const DEATHMATCH: u8 = 1;
const CAPTURE_THE_FLAG: u8 = 3;

/// Replies to a launcher: tag, its version, the version of its protocol, and its time.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let mut words = query.strip_prefix(QUERY)?.as_chunks::<4>().0.iter().copied();
    let (version, protocol, time) =
        (u32::from_le_bytes(words.next()?), u32::from_le_bytes(words.next()?), words.next()?);
    if version == 0 {
        return None;
    }
    let is_old = version / 256 < VERSION / 256;
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(if is_old { TOO_OLD } else { INFORMATION });
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&protocol.min(PROTOCOL_VERSION).to_le_bytes());
    bytes.extend_from_slice(&time);
    if !is_old {
        // These servers know no older version of the protocol.
        bytes.extend_from_slice(&PROTOCOL_VERSION.to_le_bytes());
        put_information(server, bytes);
    }
    out.end_datagram();
    Some(if is_old { Answer::Other } else { Answer::Players })
}

/// The time of the client.
pub(super) fn nonce(query: &[u8]) -> Option<Range<usize>> {
    query.starts_with(QUERY).then_some(12..16)
}

fn put_information(server: &ServerView, bytes: &mut Vec<u8>) {
    let snapshot = server.snapshot;
    let has_teams = server.game_type() == "CTF";
    // Some operators set no time limit.
    let has_time_limit = !snapshot.hostname.len().is_multiple_of(3);
    put_c_str(bytes, "11.1.0 (abcdef0-12345)");
    put_settings(server, has_teams, has_time_limit, bytes);
    // No password.
    bytes.push(0);
    put_text_c_str(bytes, &snapshot.map);
    if has_time_limit {
        bytes.extend_from_slice(b"\x07\0");
    }
    if has_teams {
        bytes.extend_from_slice(b"\x02Blue\0\0\0\xFF\0\x03\0Red\0\xFF\0\0\0\x01\0");
    }
    bytes.extend_from_slice(b"\x01patch.deh\0\x02odamex.wad\0\x04\x12\x34\x56\x78doom2.wad\0\x04\x9A\xBC\xDE\xF0");
    bytes.push(server.announced().min(255) as u8);
    for (number, player) in snapshot.players.iter().enumerate().take(255) {
        put_player(bytes, player, has_teams.then_some(number));
    }
}

/// Name, type, and value: 1 a switch that is on, 2 a byte, 3 a word, 4 an integer, 5 a decimal number, 6 text.
fn put_settings(server: &ServerView, has_teams: bool, has_time_limit: bool, bytes: &mut Vec<u8>) {
    let slots = server.snapshot.slots as u8;
    bytes.push(7 + u8::from(has_time_limit));
    bytes.extend_from_slice(b"sv_hostname\0\x06");
    put_text_c_str(bytes, &server.snapshot.hostname);
    bytes.extend_from_slice(b"sv_gametype\0\x02");
    bytes.push(if has_teams { CAPTURE_THE_FLAG } else { DEATHMATCH });
    bytes.extend_from_slice(b"sv_maxclients\0\x02");
    bytes.push(slots);
    bytes.extend_from_slice(b"sv_maxplayers\0\x02");
    bytes.push(slots);
    bytes.extend_from_slice(b"sv_allowexit\0\x01");
    bytes.extend_from_slice(b"sv_forcerespawntime\0\x03\x1E\0");
    bytes.extend_from_slice(b"sv_gravity\0\x04\x20\x03\0\0");
    if has_time_limit {
        bytes.extend_from_slice(b"sv_timelimit\0\x05");
        put(bytes, 15);
        bytes.push(0);
    }
}

/// Name, colour, team, ping, minutes, mark of spectators, frags, kills, deaths.
fn put_player(bytes: &mut Vec<u8>, player: &Player, number_in_teams: Option<usize>) {
    put_text_c_str(bytes, &player.name);
    bytes.extend_from_slice(b"\0\x40\xCF\0");
    if let Some(number) = number_in_teams {
        bytes.push((number % 2) as u8);
    }
    bytes.extend_from_slice(&(player.ping.unwrap_or(0) as u16).to_le_bytes());
    bytes.extend_from_slice(&((player.connected_ms.unwrap_or(0) / 60_000) as u16).to_le_bytes());
    bytes.push(u8::from(player.spectator));
    for count in [player.points.unwrap_or(0) as i16, 0, 2] {
        bytes.extend_from_slice(&count.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};

    const LAUNCHER: &[u8] = b"\x02\x10\x01\xAD\x00\xFF\0\0\x07\0\0\0time";

    #[test]
    fn replies_equal_handwritten_bytes() {
        let spectator = Player { spectator: true, ..player("Tee", 0, 7, 60_000) };
        let mut server = snapshot(vec![player("Zo", 258, 300, 300 * 60_000), spectator]);
        (server.map, server.game, server.hostname) = ("MAP01".into(), "CTF".into(), "host".into());
        let head = b"\x03\x20\x03\xAD\x0A\x0B\0\0\x07\0\0\0time\x07\0\0\x0011.1.0 (abcdef0-12345)\0";
        let settings = b"sv_maxclients\0\x02\x10sv_maxplayers\0\x02\x10sv_allowexit\0\x01\
            sv_forcerespawntime\0\x03\x1E\0sv_gravity\0\x04\x20\x03\0\0";
        let files = b"\x01patch.deh\0\x02odamex.wad\0\x04\x12\x34\x56\x78doom2.wad\0\x04\x9A\xBC\xDE\xF0";
        let list = b"\x02Zo\0\0\x40\xCF\0\x00\x2C\x01\x2C\x01\0\x02\x01\0\0\x02\0\
            Tee\0\0\x40\xCF\0\x01\x07\0\x01\0\x01\0\0\0\0\x02\0";
        let want = [
            &head[..],
            b"\x08sv_hostname\0\x06host\0sv_gametype\0\x02\x03",
            settings,
            b"sv_timelimit\0\x0515\0\0MAP01\0\x07\0\x02Blue\0\0\0\xFF\0\x03\0Red\0\xFF\0\0\0\x01\0",
            files,
            list,
        ]
        .concat();
        assert_eq!(reply_to(Protocol::Odamex, &server, LAUNCHER), (Answer::Players, vec![want]));
        (server.game, server.hostname) = ("Deathmatch".into(), "hos".into());
        server.players.clear();
        let want =
            [&head[..], b"\x07sv_hostname\0\x06hos\0sv_gametype\0\x02\x01", settings, b"\0MAP01\0", files, b"\0"];
        assert_eq!(reply_to(Protocol::Odamex, &server, LAUNCHER), (Answer::Players, vec![want.concat()]));
    }

    #[test]
    fn old_clients_are_told_so_and_other_queries_are_refused() {
        let server = snapshot(vec![player("a", 1, 2, 3)]);
        let old = b"\x02\x10\x01\xAD\xFF\x0A\0\0\x07\0\0\0time";
        let want = b"\x02\x20\x03\xAD\x0A\x0B\0\0\x07\0\0\0time".to_vec();
        assert_eq!(reply_to(Protocol::Odamex, &server, old), (Answer::Other, vec![want]));
        for query in [
            &LAUNCHER[..15],
            b"\x02\x20\x03\xAD\x00\xFF\0\0\x07\0\0\0time",
            b"\x02\x10\x01\xAC\x00\xFF\0\0\x07\0\0\0time",
            b"\x02\x10\x01\xAD\0\0\0\0\x07\0\0\0time",
            b"",
        ] {
            assert!(refuses(Protocol::Odamex, &server, query), "{query:?}");
        }
        assert_eq!((nonce(LAUNCHER), nonce(b"\x02")), (Some(12..16), None));
    }
}
