//! Replies of Teeworlds 0.7 servers. A client first gets a token of the server, for which it
//! sends a long packet with its own; then both are in every packet.

use std::ops::Range;

use super::datagrams::Datagrams;
use super::text::put_c_str;
use super::{Answer, FF4, ServerView};
use crate::fleet::rng::SplitMix64;

/// Shortest request for a token: as long as the longest reply to it would have to be.
const TOKEN_REQUEST_BYTES_MIN: usize = 512;

/// The flags of a control packet, and of one outside a connection.
const CONTROL: &[u8] = b"\x04\0\0";
const CONNLESS: &[u8] = b"\x21";
const TOKEN_MESSAGE: u8 = 5;

/// Kinds of clients.
const SPECTATOR: i32 = 1;
const BOT: i32 = 2;

/// Replies to the request for a token, and to `gie3`.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let bytes = &mut out.bytes;
    if let Some(rest) = query.strip_prefix(CONTROL) {
        let client_token = rest.strip_prefix(FF4)?.strip_prefix(&[TOKEN_MESSAGE])?.get(..4)?;
        if query.len() < TOKEN_REQUEST_BYTES_MIN {
            return None;
        }
        bytes.extend_from_slice(CONTROL);
        bytes.extend_from_slice(client_token);
        bytes.push(TOKEN_MESSAGE);
        bytes.extend_from_slice(&server.challenge);
        out.end_datagram();
        return Some(Answer::Other);
    }
    let (server_token, rest) = query.strip_prefix(CONNLESS)?.split_first_chunk::<4>()?;
    let (client_token, rest) = rest.split_at_checked(4)?;
    let browser_token = take_varint(rest.strip_prefix(FF4)?.strip_prefix(b"gie3")?)?;
    if !server.accepts(Some(*server_token)) {
        return None;
    }
    bytes.extend_from_slice(CONNLESS);
    bytes.extend_from_slice(client_token);
    bytes.extend_from_slice(server_token);
    bytes.extend_from_slice(FF4);
    bytes.extend_from_slice(b"inf3");
    put_varint(bytes, browser_token);
    put_server(server, bytes);
    out.end_datagram();
    Some(Answer::Players)
}

/// The client's token, at the end of the header.
pub(super) fn nonce(query: &[u8]) -> Option<Range<usize>> {
    Some(if query.starts_with(CONTROL) { 8..12 } else { 5..9 })
}

fn put_server(server: &ServerView, bytes: &mut Vec<u8>) {
    let snapshot = server.snapshot;
    for text in ["0.7.5", &*snapshot.hostname, "", &snapshot.map, server.game_type()] {
        put_c_str(bytes, text);
    }
    let slots = snapshot.slots as i32;
    // Flags, skill, players, clients.
    for number in [0, 1, server.announced_playing() as i32, slots, server.announced() as i32, slots] {
        put_varint(bytes, number);
    }
    for player in &snapshot.players {
        put_c_str(bytes, &player.name);
        put_c_str(bytes, if player.name.len().is_multiple_of(3) { "clan" } else { "" });
        put_varint(bytes, -1);
        put_varint(bytes, player.points.unwrap_or(0) as i32);
        put_varint(bytes, if player.bot { BOT } else { 0 } | if player.spectator { SPECTATOR } else { 0 });
    }
}

/// A number. The first byte has a continuation bit, the sign and six bits. Each further byte has a
/// continuation bit and seven bits.
fn put_varint(bytes: &mut Vec<u8>, number: i32) {
    let mut rest = if number < 0 { !number } else { number } as u32;
    let mut byte = (rest & 0x3F) as u8 | if number < 0 { 0x40 } else { 0 };
    rest >>= 6;
    while rest > 0 {
        bytes.push(byte | 0x80);
        byte = (rest & 0x7F) as u8;
        rest >>= 7;
    }
    bytes.push(byte);
}

/// The number that is all of these bytes.
fn take_varint(bytes: &[u8]) -> Option<i32> {
    let (&first, rest) = bytes.split_first()?;
    let mut number = u64::from(first & 0x3F);
    let mut extends = first & 0x80 != 0;
    for (index, &byte) in rest.iter().enumerate().take(4) {
        number |= u64::from(byte & 0x7F) << (6 + 7 * index);
        if !extends {
            return None;
        }
        extends = byte & 0x80 != 0;
    }
    let number = i32::try_from(number).ok().filter(|_| !extends && rest.len() <= 4)?;
    Some(if first & 0x40 != 0 { !number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};
    use crate::model::Player;

    #[test]
    fn replies_equal_handwritten_bytes() {
        let spectator = Player { spectator: true, ..player("Zoë", 0, 0, 0) };
        let bot = Player { bot: true, ..player("bot", 64, 0, 0) };
        let mut server = snapshot(vec![player("tee", -66, 0, 0), spectator, bot]);
        (server.map, server.game, server.hostname) = ("dm1".into(), "DM".into(), "h".into());
        let request = |length: usize| {
            let mut request = b"\x04\0\0\xFF\xFF\xFF\xFF\x05abcd".to_vec();
            request.resize(length, 0);
            request
        };
        let token = b"\x04\0\0abcd\x05\x01\x02\x03\x04";
        assert_eq!(reply_to(Protocol::Teeworlds7, &server, &request(512)), (Answer::Other, vec![token.to_vec()]));
        assert!(refuses(Protocol::Teeworlds7, &server, &request(511)));

        let query = b"\x21\x01\x02\x03\x04abcd\xFF\xFF\xFF\xFFgie3\x80\x01";
        let want = b"\x21abcd\x01\x02\x03\x04\xFF\xFF\xFF\xFFinf3\x80\x010.7.5\0h\0\0dm1\0DM\0\
            \x00\x01\x02\x10\x03\x10\
            tee\0clan\0\x40\xC1\x01\x00Zo\xC3\xAB\0\0\x40\x00\x01bot\0clan\0\x40\x80\x01\x02";
        assert_eq!(reply_to(Protocol::Teeworlds7, &server, query), (Answer::Players, vec![want.to_vec()]));
        assert!(refuses(Protocol::Teeworlds7, &server, b"\x21\x01\x02\x03\x05abcd\xFF\xFF\xFF\xFFgie3\x01"));
    }

    #[test]
    fn varints_equal_handwritten_bytes() {
        for (number, bytes) in [
            (0, &b"\x00"[..]),
            (-1, b"\x40"),
            (63, b"\x3F"),
            (64, b"\x80\x01"),
            (-65, b"\xC0\x01"),
            (8_191, b"\xBF\x7F"),
            (8_192, b"\x80\x80\x01"),
            (i32::MAX, b"\xBF\xFF\xFF\xFF\x0F"),
            (i32::MIN, b"\xFF\xFF\xFF\xFF\x0F"),
        ] {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            assert_eq!(out, bytes, "{number}");
            assert_eq!(take_varint(bytes), Some(number));
        }
        for bytes in [&b""[..], b"\x80", b"\x00\x01", b"\x80\x80\x80\x80\x80", b"\xBF\xFF\xFF\xFF\x1F"] {
            assert_eq!(take_varint(bytes), None, "{bytes:?}");
        }
    }
}
