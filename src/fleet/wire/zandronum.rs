//! Replies of Zandronum servers to a launcher.
//!
//! Every datagram has a Huffman code with a fixed table. Real servers compress each datagram unless it would
//! grow; here half of the servers never do, so both forms are common.

use std::ops::Range;

use super::datagrams::Datagrams;
use super::text::put_text_c_str;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;
use crate::model::Player;

/// The query of a launcher.
const LAUNCHER: u32 = 199;
/// The reply to it.
const ACCEPTED: u32 = 5_660_023;

/// The byte before a datagram that is not compressed.
const RAW: u8 = 0xFF;

// The fields that these servers know, as bits of the query.
const NAME: u32 = 0;
const URL: u32 = 1;
const EMAIL: u32 = 2;
const MAP: u32 = 3;
const CLIENTS: u32 = 4;
const PLAYERS: u32 = 5;
const FILES: u32 = 6;
const GAME_TYPE: u32 = 7;
const GAME_NAME: u32 = 8;
const GAME_FILE: u32 = 9;
const PASSWORD: u32 = 10;
const JOIN_PASSWORD: u32 = 11;
const SKILL: u32 = 12;
const BOT_SKILL: u32 = 13;
const PLAYER_COUNT: u32 = 19;
const PLAYER_LIST: u32 = 20;
const TEAM_COUNT: u32 = 21;
const TEAM_NAMES: u32 = 22;

/// The numbers of the types of the game.
const DEATHMATCH: u8 = 3;
const CAPTURE_THE_FLAG: u8 = 12;

/// Replies to a launcher: its message, the wanted fields, and its time.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let query = decompress(query)?;
    let (message, rest) = query.split_first_chunk::<4>()?;
    let (wanted, rest) = rest.split_first_chunk::<4>()?;
    if u32::from_le_bytes(*message) != LAUNCHER {
        return None;
    }
    // A time that is cut reads as -1.
    let time = rest.first_chunk::<4>().unwrap_or(&[0xFF; 4]);
    let fields = sent_fields(server, u32::from_le_bytes(*wanted));
    let mut body = Vec::new();
    body.extend_from_slice(&ACCEPTED.to_le_bytes());
    body.extend_from_slice(time);
    body.extend_from_slice(b"3.2.1-r240101-1200 on Linux 6.1.0-18-amd64\0");
    body.extend_from_slice(&fields.to_le_bytes());
    for field in (0..u32::BITS).filter(|field| fields & (1 << field) != 0) {
        put_field(server, field, &mut body);
    }
    if server.snapshot.hostname.len().is_multiple_of(2) {
        out.bytes.push(RAW);
        out.bytes.append(&mut body);
    } else {
        compress(&body, &mut out.bytes);
    }
    out.end_datagram();
    Some(if fields & (1 << PLAYER_LIST) != 0 { Answer::Players } else { Answer::Other })
}

/// The bytes of the query with the client's time. In a compressed query its last bits are in the last byte.
pub(super) fn nonce(query: &[u8]) -> Option<Range<usize>> {
    match query {
        [RAW, ..] => Some(9..13),
        [_, .., _] => Some(query.len() - 1..query.len()),
        _ => None,
    }
}

/// The wanted fields without those that the server does not know or have.
fn sent_fields(server: &ServerView, wanted: u32) -> u32 {
    let mut known = ((1 << (BOT_SKILL + 1)) - 1) | (1 << PLAYER_COUNT) | (1 << PLAYER_LIST);
    if has_teams(server) {
        known |= (1 << TEAM_COUNT) | (1 << TEAM_NAMES);
    }
    let count = if wanted & (1 << PLAYER_LIST) != 0 { 1 << PLAYER_COUNT } else { 0 };
    (wanted & known) | count
}

fn has_teams(server: &ServerView) -> bool {
    game_type(server) == CAPTURE_THE_FLAG
}

fn game_type(server: &ServerView) -> u8 {
    if server.game_type() == "CTF" { CAPTURE_THE_FLAG } else { DEATHMATCH }
}

fn put_field(server: &ServerView, field: u32, bytes: &mut Vec<u8>) {
    let snapshot = server.snapshot;
    match field {
        NAME => put_coloured(bytes, &snapshot.hostname),
        URL | EMAIL => bytes.push(0),
        MAP => put_text_c_str(bytes, &snapshot.map),
        CLIENTS | PLAYERS => bytes.push(snapshot.slots as u8),
        FILES => bytes.extend_from_slice(b"\x01maps.wad\0"),
        GAME_TYPE => bytes.extend_from_slice(&[game_type(server), 0, 0]),
        GAME_NAME => bytes.extend_from_slice(b"DOOM II\0"),
        GAME_FILE => bytes.extend_from_slice(b"doom2.wad\0"),
        PASSWORD | JOIN_PASSWORD => bytes.push(0),
        SKILL | BOT_SKILL => bytes.push(3),
        PLAYER_COUNT => bytes.push(server.announced().min(255) as u8),
        PLAYER_LIST => {
            for (number, player) in snapshot.players.iter().enumerate().take(255) {
                put_player(bytes, player, has_teams(server).then_some(number));
            }
        }
        TEAM_COUNT => bytes.push(2),
        TEAM_NAMES => bytes.extend_from_slice(b"Blue\0Red\0"),
        _ => {}
    }
}

/// Name, score, ping, marks of spectators and bots, team, and minutes.
fn put_player(bytes: &mut Vec<u8>, player: &Player, number_in_teams: Option<usize>) {
    put_coloured(bytes, &player.name);
    bytes.extend_from_slice(&(player.points.unwrap_or(0) as i16).to_le_bytes());
    bytes.extend_from_slice(&(player.ping.unwrap_or(0) as u16).to_le_bytes());
    bytes.extend_from_slice(&[u8::from(player.spectator), u8::from(player.bot)]);
    if let Some(number) = number_in_teams {
        bytes.push(if player.spectator { 255 } else { (number % 2) as u8 });
    }
    // After 255 minutes it begins again.
    bytes.push((player.connected_ms.unwrap_or(0) / 60_000) as u8);
}

/// Some operators and players use colours.
fn put_coloured(bytes: &mut Vec<u8>, text: &str) {
    match text.len() % 4 {
        0 => bytes.extend_from_slice(b"\x1CG"),
        1 => bytes.extend_from_slice(b"\x1C[Dark Red]"),
        _ => {}
    }
    put_text_c_str(bytes, text);
}

/// The number of unused bits in the last byte, and the codes from the lowest bit of each byte.
fn compress(body: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.push(0);
    let (mut bits, mut count) = (0_u32, 0);
    for &byte in body {
        let (code, length) = code(byte);
        bits |= code << count;
        count += length;
        while count >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            count -= 8;
        }
    }
    if count > 0 {
        out.push(bits as u8);
        out[start] = (8 - count) as u8;
    }
}

/// The bytes of a datagram. `None`: it cannot be one of a launcher.
fn decompress(datagram: &[u8]) -> Option<Vec<u8>> {
    let (&unused, codes) = datagram.split_first()?;
    if unused == RAW {
        return Some(codes.to_vec());
    }
    // A query has at most 17 bytes.
    if unused > 7 || codes.len() > 17 {
        return None;
    }
    let bits: Vec<u32> = codes.iter().flat_map(|&byte| (0..8).map(move |bit| u32::from(byte >> bit & 1))).collect();
    let mut bits = &bits[..bits.len().saturating_sub(unused.into())];
    let mut bytes = Vec::new();
    while let Some((byte, length)) = first_byte(bits) {
        bytes.push(byte);
        bits = &bits[length..];
    }
    Some(bytes)
}

/// The byte whose code is at the start of these bits, and the length of the code.
fn first_byte(bits: &[u32]) -> Option<(u8, usize)> {
    let next = (0..).zip(bits.iter().take(10)).fold(0, |next, (place, bit)| next | bit << place);
    (0..=u8::MAX).find_map(|byte| {
        let (code, length) = code(byte);
        let fits = length as usize <= bits.len() && next & ((1 << length) - 1) == code;
        fits.then_some((byte, length as usize))
    })
}

/// The code of a byte, its first bit lowest, and its length.
fn code(byte: u8) -> (u32, u32) {
    let marked = u32::from(CODES[usize::from(byte)]);
    let length = marked.ilog2();
    (marked & !(1 << length), length)
}

/// The code of each byte. The first bit of the code is the lowest bit; the highest bit only marks the end.
#[rustfmt::skip]
const CODES: [u16; 256] = [
    0x00a, 0x07b, 0x29d, 0x024, 0x1d9, 0x034, 0x359, 0x261, 0x269, 0x25c, 0x326, 0x113, 0x30d, 0x3c9, 0x3fc, 0x21d,
    0x31d, 0x3bc, 0x1db, 0x27d, 0x2e1, 0x3f3, 0x20d, 0x27c, 0x08c, 0x23c, 0x131, 0x3a9, 0x211, 0x3bd, 0x2c9, 0x299,
    0x01e, 0x08f, 0x188, 0x158, 0x118, 0x1a8, 0x108, 0x1ec, 0x16c, 0x138, 0x1a6, 0x0cb, 0x12c, 0x1cd, 0x12d, 0x0ef,
    0x13d, 0x15d, 0x193, 0x1ab, 0x17f, 0x13f, 0x171, 0x1cf, 0x3ac, 0x101, 0x368, 0x10b, 0x3dc, 0x281, 0x1e7, 0x34c,
    0x167, 0x19c, 0x151, 0x1c8, 0x2dc, 0x1f1, 0x2f8, 0x1e3, 0x1eb, 0x1c7, 0x228, 0x3cc, 0x12b, 0x2b8, 0x1e9, 0x3c1,
    0x248, 0x31c, 0x15f, 0x389, 0x12f, 0x3d8, 0x2bc, 0x391, 0x319, 0x037, 0x3a3, 0x2dd, 0x2fd, 0x289, 0x329, 0x036,
    0x249, 0x34d, 0x38b, 0x279, 0x31b, 0x291, 0x36d, 0x2e6, 0x366, 0x1bf, 0x311, 0x219, 0x223, 0x21b, 0x548, 0x2a3,
    0x2ad, 0x2d8, 0x18d, 0x363, 0x36b, 0x263, 0x3f8, 0x353, 0x247, 0x19b, 0x2d3, 0x2f3, 0x268, 0x35c, 0x37d, 0x0b9,
    0x010, 0x0a1, 0x7b8, 0x698, 0x015, 0x173, 0x466, 0x666, 0x761, 0x599, 0x73c, 0x4cc, 0x19f, 0x626, 0x728, 0x561,
    0x748, 0x659, 0x3dd, 0x6c1, 0x7e1, 0x683, 0x406, 0x6ed, 0x1af, 0x778, 0x68b, 0x48b, 0x509, 0x606, 0x44d, 0x2a9,
    0x0b3, 0x34f, 0x7d3, 0x798, 0x087, 0x4fc, 0x1df, 0x5d3, 0x39d, 0x799, 0x7f9, 0x4ed, 0x31f, 0x2bd, 0x5ad, 0x429,
    0x709, 0x5f9, 0x77c, 0x5e1, 0x4d1, 0x186, 0x1e8, 0x581, 0x343, 0x578, 0x6cc, 0x5e6, 0x253, 0x347, 0x64c, 0x53c,
    0x303, 0x3ed, 0x6fc, 0x25b, 0x127, 0x64d, 0x44c, 0x5b8, 0x3ff, 0x26b, 0x2ff, 0x741, 0x569, 0x203, 0x278, 0x21f,
    0x306, 0x579, 0x3a7, 0x3c6, 0x609, 0x4f9, 0x7b1, 0x459, 0x4c6, 0x779, 0x6ac, 0x6d1, 0x57c, 0x498, 0x146, 0x243,
    0x26d, 0x7e6, 0x769, 0x5d1, 0x24f, 0x5b1, 0x6c6, 0x409, 0x35b, 0x441, 0x641, 0x483, 0x323, 0x781, 0x6f9, 0x2a7,
    0x4ac, 0x7d1, 0x3fd, 0x528, 0x41c, 0x598, 0x541, 0x61c, 0x1c3, 0x7ad, 0x4c1, 0x2b1, 0x426, 0x349, 0x629, 0x383,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};
    use crate::model::Snapshot;

    /// All of name, map, clients, type, password, players and teams.
    const QUERY: &[u8] = b"\xFF\xC7\0\0\0\x99\x04\x78\0time";

    fn get(server: &Snapshot, query: &[u8]) -> Vec<u8> {
        let (answer, reply) = reply_to(Protocol::Zandronum, server, query);
        assert_eq!(answer, Answer::Players);
        reply.concat()
    }

    fn server() -> Snapshot {
        let spectator = Player { spectator: true, ..player("Tee", 9, 7, 60_000) };
        let bot = Player { bot: true, ..player("Crash", -1, 0, 300 * 60_000) };
        let mut server = snapshot(vec![player("Zo", 258, 300, 119_000), bot, spectator]);
        (server.map, server.game, server.hostname) = ("MAP01".into(), "CTF".into(), "ho".into());
        server
    }

    #[test]
    fn replies_equal_handwritten_bytes() {
        let mut server = server();
        let version = b"3.2.1-r240101-1200 on Linux 6.1.0-18-amd64\0";
        let settings = b"ho\0MAP01\0\x10\x0C\0\0\0\x03";
        let list = b"Zo\0\x02\x01\x2C\x01\0\0\x00\x01\
            \x1C[Dark Red]Crash\0\xFF\xFF\0\0\0\x01\x01\x2CTee\0\x09\0\x07\0\x01\0\xFF\x01";
        let head = b"\xFF\x77\x5D\x56\0time";
        let want = [&head[..], version, b"\x99\x04\x78\0", settings, list, b"\x02Blue\0Red\0"].concat();
        assert_eq!(get(&server, QUERY), want);
        // The same query, compressed.
        assert_eq!(get(&server, b"\x04\xB8\x49\xC2\x3B\xFB\x88\xD6\xFE\x6E\x88\x04"), want);
        server.game = "Deathmatch".into();
        server.players.clear();
        let want = [&head[..], version, b"\x99\x04\x18\0ho\0MAP01\0\x10\x03\0\0\0\0"].concat();
        assert_eq!(get(&server, QUERY), want);
    }

    #[test]
    fn half_of_the_servers_compress() {
        let mut server = server();
        server.hostname = "hos".into();
        let query = b"\xFF\xC7\0\0\0\0\0\x10\0time";
        assert_eq!(
            get(&server, query),
            b"\x01\x53\x13\xF1\xD2\xDA\xDF\x0D\x91\x56\x5B\x26\x5B\xBA\x9A\x1B\x27\xFF\x7A\xBA\x7A\xBA\
            \x9A\xBB\x26\x7B\x7A\x7C\x14\x52\xBE\xF2\x8B\xD4\x98\x23\x1E\xD7\xD2\xD5\xD2\xD3\xDC\xC5\
            \xBA\xB9\xE9\x86\x8D\x71\x7F\x92\x18\x22\xA3\x47\xA9\xD3\xCE\xB2\x4B\xDA\x23\x74\xE3\xD6\
            \xB4\x31\x83\x7F\x45\xDA\x98\x08\xB9\xB1\xE9\x58\xB3\x1A\x3C\x58\xD2\xBE\xB3\xBC\x44\x8A\
            \x24\x2E\x0A\xA3\x5D\x83\x77"
        );
    }

    #[test]
    fn cut_time_is_minus_one_and_other_queries_are_refused() {
        let server = server();
        assert!(get(&server, &QUERY[..11]).starts_with(b"\xFF\x77\x5D\x56\0\xFF\xFF\xFF\xFF3.2"));
        for query in [&QUERY[..8], b"\xFF\xC8\0\0\0\x99\x04\x78\0time", b"", b"\xFF", b"\x00", b"\x08abcdefgh"] {
            assert!(refuses(Protocol::Zandronum, &server, query), "{query:?}");
        }
    }

    #[test]
    fn nonce_is_at_the_end_of_either_form() {
        assert_eq!((nonce(QUERY), nonce(b"\x04abc"), nonce(b"\x04")), (Some(9..13), Some(3..4), None));
        let query = b"\x04\xB8\x49\xC2\x3B\xFB\x88\xD6\xFE\x6E\x88\x04";
        let mut wrong = query.to_vec();
        wrong[query.len() - 1] ^= 1;
        let with_time = |query| get(&server(), query)[5..9].to_vec();
        assert_eq!(with_time(query), b"time");
        assert_ne!(with_time(&wrong), b"time");
    }
}
