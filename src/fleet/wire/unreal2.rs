//! Replies of Unreal Engine 2 servers, such as Unreal Tournament 2004 and Killing Floor.

use super::datagrams::Datagrams;
use super::text::latin1;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// Longest datagram of a list, bytes.
const DATAGRAM_BYTES_MAX: usize = 500;

/// Red, in a text: escape, then red, green and blue, which are never 0.
const COLOUR: [u8; 4] = [0x1B, 0xFF, 0x40, 0x01];

/// Replies to the queries for details (0), rules (1) and players (2). Players are in several
/// datagrams without number or end mark.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let &[kind @ 0..=2] = query.strip_prefix(b"\x79\0\0\0")? else { return None };
    out.bytes.extend_from_slice(&[0x80, 0, 0, 0, kind]);
    match kind {
        0 => put_details(server, &mut out.bytes),
        1 => put_rules(&mut out.bytes),
        _ => {
            put_players(server, out);
            out.end_datagram();
            return Some(Answer::Players);
        }
    }
    out.end_datagram();
    Some(Answer::Other)
}

fn put_details(server: &ServerView, bytes: &mut Vec<u8>) {
    let snapshot = server.snapshot;
    put_i32(bytes, 0);
    put_pstr(bytes, "", None);
    put_i32(bytes, i32::from(server.port) - 1);
    put_i32(bytes, i32::from(server.port));
    let is_coloured = snapshot.hostname.len().is_multiple_of(2);
    put_pstr(bytes, &snapshot.hostname, is_coloured.then_some(COLOUR));
    put_pstr(bytes, &snapshot.map, None);
    put_pstr(bytes, server.game_type(), None);
    put_i32(bytes, server.announced() as i32);
    put_i32(bytes, snapshot.slots as i32);
    put_i32(bytes, 0);
}

fn put_rules(bytes: &mut Vec<u8>) {
    for (key, value) in [("ServerMode", "dedicated"), ("AdminName", ""), ("GamePassword", "False"), ("Mutator", "")] {
        put_pstr(bytes, key, None);
        put_pstr(bytes, value, None);
    }
}

fn put_players(server: &ServerView, out: &mut Datagrams) {
    let mut length = 5;
    let mut put = |entry: Vec<u8>| {
        if length + entry.len() > DATAGRAM_BYTES_MAX {
            out.end_datagram();
            out.bytes.extend_from_slice(b"\x80\0\0\0\x02");
            length = 5;
        }
        length += entry.len();
        out.bytes.extend_from_slice(&entry);
    };
    let entry = |id: i32, name: &str, colour, ping: i32, score: i32, stats: i32| {
        let mut entry = Vec::new();
        put_i32(&mut entry, id);
        put_pstr(&mut entry, name, colour);
        [ping, score, stats].into_iter().for_each(|number| put_i32(&mut entry, number));
        entry
    };
    for (id, player) in (1..).zip(&server.snapshot.players) {
        let colour = (player.name.len().is_multiple_of(4)).then_some(COLOUR);
        put(entry(id, &player.name, colour, player.ping.unwrap_or(0), player.points.unwrap_or(0) as i32, 0));
    }
    // The list of a team game ends with the teams; their id is 0.
    if server.snapshot.map.starts_with("CTF") {
        put(entry(0, "Red Team", None, 0, 3, 0x2000_0000));
        put(entry(0, "Blue Team", None, 0, 1, 0x4000_0000));
    }
}

fn put_i32(bytes: &mut Vec<u8>, number: i32) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

/// A string: its length with the terminating zero as a compact index, then Latin-1. If bit 7 of the
/// length is set, UTF-16 follows instead. An empty string is the length 0.
fn put_pstr(bytes: &mut Vec<u8>, text: &str, colour: Option<[u8; 4]>) {
    if text.is_empty() {
        return bytes.push(0);
    }
    let colour = colour.as_ref().map_or(&[][..], |colour| colour);
    if let Some(text) = latin1(text) {
        put_length(bytes, 0, colour.len() + text.len() + 1);
        bytes.extend_from_slice(colour);
        bytes.extend_from_slice(&text);
        return bytes.push(0);
    }
    let units: Vec<u16> = colour.iter().map(|&byte| u16::from(byte)).chain(text.encode_utf16()).chain([0]).collect();
    put_length(bytes, 0x80, units.len());
    bytes.extend(units.into_iter().flat_map(u16::to_le_bytes));
}

/// A compact index: six bits and the flag, then seven bits a byte; bit 6, then bit 7 say that another byte
/// follows.
fn put_length(bytes: &mut Vec<u8>, flag: u8, length: usize) {
    let mut rest = length >> 6;
    bytes.push(flag | (length & 0x3f) as u8 | if rest > 0 { 0x40 } else { 0 });
    while rest > 0 {
        let byte = (rest & 0x7f) as u8;
        rest >>= 7;
        bytes.push(byte | if rest > 0 { 0x80 } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};

    #[test]
    fn replies_equal_handwritten_bytes() {
        let mut server = snapshot(vec![player("玩1", 258, 48, 0), player("Jür", -1, 0, 0)]);
        (server.map, server.game, server.hostname) = ("CTF-Face".into(), "xCTFGame".into(), "hä2".into());
        let get = |query: &[u8]| reply_to(Protocol::Unreal2, &server, query);
        let want = b"\x80\0\0\0\0\0\0\0\0\0\x87\x13\0\0\x88\x13\0\0\x08\x1B\xFF\x40\x01h\xE42\0\x09CTF-Face\0\
            \x09xCTFGame\0\x02\0\0\0\x10\0\0\0\0\0\0\0";
        assert_eq!(get(b"\x79\0\0\0\0"), (Answer::Other, vec![want.to_vec()]));
        let want = b"\x80\0\0\0\x02\
            \x01\0\0\0\x87\x1B\0\xFF\0\x40\0\x01\0\xA9\x731\0\0\0\x30\0\0\0\x02\x01\0\0\0\0\0\0\
            \x02\0\0\0\x08\x1B\xFF\x40\x01J\xFCr\0\0\0\0\0\xFF\xFF\xFF\xFF\0\0\0\0\
            \0\0\0\0\x09Red Team\0\0\0\0\0\x03\0\0\0\0\0\0\x20\
            \0\0\0\0\x0ABlue Team\0\0\0\0\0\x01\0\0\0\0\0\0\x40";
        assert_eq!(get(b"\x79\0\0\0\x02"), (Answer::Players, vec![want.to_vec()]));
        let want = b"\x80\0\0\0\x01\x0BServerMode\0\x0Adedicated\0\x0AAdminName\0\0\x0DGamePassword\0\x06False\0\x08Mutator\0\0";
        assert_eq!(get(b"\x79\0\0\0\x01"), (Answer::Other, vec![want.to_vec()]));
        assert!(refuses(Protocol::Unreal2, &server, b"\x79\0\0\0\x03"));
    }

    #[test]
    fn long_list_is_several_datagrams_of_whole_entries() {
        let server = snapshot(vec![player("0123456", 1, 2, 0); 40]);
        let (_, reply) = reply_to(Protocol::Unreal2, &server, b"\x79\0\0\0\x02");
        // 4 bytes, a text of 8 and its length, 12 bytes: 25 bytes each.
        assert_eq!(reply.iter().map(Vec::len).collect::<Vec<_>>(), [480, 480, 55]);
        assert!(reply.iter().all(|datagram| datagram.starts_with(b"\x80\0\0\0\x02")));
    }
}
