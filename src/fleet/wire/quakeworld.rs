//! Replies of QuakeWorld servers (mvdsv `SVC_Status`).
//!
//! The server prints the reply piece by piece into a buffer and sends a datagram whenever
//! the next piece does not fit. So a datagram may end inside a line: a player's team and the
//! end of the line are pieces of their own.

use super::datagrams::Datagrams;
use super::text::{put, put_info_key};
use super::{Answer, FF4, ServerView};
use crate::fleet::rng::SplitMix64;
use crate::model::Player;

/// Text in one datagram, bytes (mvdsv `MAX_MSGLEN` - 10).
const PRINT_BYTES_MAX: usize = 1_440;

/// Flags of the query.
const SERVER_INFO: u32 = 1;
const PLAYERS: u32 = 2;
const SPECTATORS: u32 = 4;
const TEAMS: u32 = 16;

/// Replies to `status`, with flags or without.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let line = query.strip_prefix(FF4)?.split(|b| matches!(b, b'\n' | 0)).next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    if words.next()? != "status" {
        return None;
    }
    let flags = match words.next().and_then(|word| word.parse().ok()) {
        None | Some(0) => SERVER_INFO | PLAYERS,
        Some(flags) => flags,
    };
    let snapshot = server.snapshot;
    let mut redirect = Redirect { out, text: Vec::new() };
    if flags & SERVER_INFO != 0 {
        redirect.print(|text| {
            put_info_key(text, "maxclients", snapshot.slots);
            put_info_key(text, "maxspectators", 8);
            text.extend_from_slice(b"\\hostname\\");
            put_quake_charset(text, &snapshot.hostname);
            put_info_key(text, "map", &snapshot.map);
            put_info_key(text, "*gamedir", &snapshot.game);
            put_info_key(text, "*version", "MVDSV 0.36");
            put_info_key(text, "fraglimit", 0);
            text.push(b'\n');
        });
    }
    for (number, player) in (1..).zip(&snapshot.players) {
        if flags & (if player.spectator { SPECTATORS } else { PLAYERS }) == 0 {
            continue;
        }
        redirect.print(|text| put_player(text, number, player));
        if flags & TEAMS != 0 {
            let team = ["red", "blue", ""][number % 3];
            redirect.print(|text| put(text, format_args!(" \"{team}\"")));
        }
        redirect.print(|text| text.push(b'\n'));
    }
    redirect.flush();
    Some(if flags & PLAYERS != 0 { Answer::Players } else { Answer::Other })
}

/// User id, frags, minutes, ping, name, skin, colours.
fn put_player(text: &mut Vec<u8>, number: usize, player: &Player) {
    let minutes = player.connected_ms.unwrap_or(0) / 60_000;
    let ping = player.ping.unwrap_or(0);
    let (frags, ping, mark) = match player.spectator {
        true => (-9_999, -ping, "\\s\\"),
        false => (player.points.unwrap_or(0), ping, ""),
    };
    put(text, format_args!("{} {frags} {minutes} {ping} \"{mark}", number + 100));
    put_quake_charset(text, &player.name);
    put(text, format_args!("\" \"base\" {} 4", number % 14));
}

/// Encodes a string in the charset of Quake. Most letters exist in white and, with bit 7 set, in
/// brown. Brackets and golden digits also exist at low numbers. The string is ASCII; the charset
/// has no other characters.
fn put_quake_charset(out: &mut Vec<u8>, text: &str) {
    let style = text.len() % 3;
    for c in text.chars() {
        let glyph = match c {
            '0'..='9' if style == 1 => 0x12 + (c as u8 - b'0'),
            '[' if style == 1 => 0x10,
            ']' if style == 1 => 0x91,
            '!'..='~' if style == 2 && c != '"' && c != '\\' => c as u8 | 0x80,
            ' '..='~' => c as u8,
            _ => b'_',
        };
        out.push(glyph);
    }
}

/// The output that is redirected to a client.
struct Redirect<'a> {
    out: &'a mut Datagrams,
    text: Vec<u8>,
}

impl Redirect<'_> {
    fn print(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let mut piece = Vec::new();
        put(&mut piece);
        if self.text.len() + piece.len() > PRINT_BYTES_MAX {
            self.flush();
        }
        self.text.append(&mut piece);
    }

    fn flush(&mut self) {
        let bytes = &mut self.out.bytes;
        bytes.extend_from_slice(FF4);
        bytes.push(b'n');
        bytes.append(&mut self.text);
        bytes.push(0);
        self.out.end_datagram();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};

    #[test]
    fn status_equals_handwritten_bytes() {
        let spectator = Player { spectator: true, ..player("watcher", 0, 33, 60_000) };
        let mut server = snapshot(vec![player("[k]7", 12, 48, 185_000), spectator, player("abcde", -1, 13, 0)]);
        (server.hostname, server.map, server.game) = ("host".into(), "dm4".into(), "qw".into());
        let info = b"\\maxclients\\16\\maxspectators\\8\\hostname\\host\\map\\dm4\\*gamedir\\qw\\*version\\MVDSV 0.36\\fraglimit\\0\n";
        let (answer, reply) = reply_to(Protocol::QuakeWorld, &server, b"\xFF\xFF\xFF\xFFstatus 23\n");
        // The host name has four letters, so it is in white.
        let list = b"101 12 3 48 \"\x10k\x91\x19\" \"base\" 1 4 \"blue\"\n\
            102 -9999 1 -33 \"\\s\\watcher\" \"base\" 2 4 \"\"\n\
            103 -1 0 13 \"\xE1\xE2\xE3\xE4\xE5\" \"base\" 3 4 \"red\"\n\0";
        assert_eq!(answer, Answer::Players);
        assert_eq!(reply, [[&b"\xFF\xFF\xFF\xFFn"[..], info, list].concat()]);

        let (_, reply) = reply_to(Protocol::QuakeWorld, &server, b"\xFF\xFF\xFF\xFFstatus");
        let list = b"101 12 3 48 \"\x10k\x91\x19\" \"base\" 1 4\n103 -1 0 13 \"\xE1\xE2\xE3\xE4\xE5\" \"base\" 3 4\n\0";
        assert_eq!(reply, [[&b"\xFF\xFF\xFF\xFFn"[..], info, list].concat()]);
        assert!(refuses(Protocol::QuakeWorld, &server, b"\xFF\xFF\xFF\xFFping"));
    }

    #[test]
    fn long_status_is_several_datagrams_without_a_number() {
        let server = snapshot((0..60).map(|n| player(&format!("player with number {n}"), n, 20, 0)).collect());
        let (_, reply) = reply_to(Protocol::QuakeWorld, &server, b"\xFF\xFF\xFF\xFFstatus 23");
        assert_eq!(reply.len(), 3);
        let mut text = Vec::new();
        for datagram in &reply {
            assert!(datagram.len() <= PRINT_BYTES_MAX + 6);
            text.extend_from_slice(datagram.strip_prefix(b"\xFF\xFF\xFF\xFFn").unwrap().strip_suffix(b"\0").unwrap());
        }
        assert!(reply[..2].iter().all(|datagram| datagram.len() > PRINT_BYTES_MAX - 60));
        assert_eq!(text.iter().filter(|&&b| b == b'\n').count(), 61);
    }
}
