//! Replies of servers with the Cube engine: Sauerbraten, AssaultCube and Red Eclipse. A reply begins with the whole
//! request.
//!
//! Real servers answer any number other than 0 with the basic information. These answer only the requests below, so
//! that they do not answer those of other protocols.

use std::ops::Range;

use super::datagrams::Datagrams;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;
use crate::model::{Player, Snapshot};

/// Longest request that is answered, bytes.
const REQUEST_BYTES_MAX: usize = 32;
/// Size of the buffer that a reply is built in, bytes. What does not fit is dropped.
const REPLY_BYTES_MAX: usize = 5_000;

const SAUERBRATEN_INFORMATION: &[u8] = b"\xFF\xFF\x01\0";
const INFORMATION: &[u8] = b"\x01\0";
/// Statistics of all clients, without extensions.
const STATISTICS: &[u8] = b"\0\x01\xFF\0";

const VERSION_SAUERBRATEN: i32 = 105;
const VERSION_ASSAULTCUBE: i32 = 104;

const CLIENT_NUMBERS: i32 = -10;
const CLIENT: i32 = -11;

/// The first client number of bots of Sauerbraten.
const FIRST_BOT: i32 = 128;

/// The bytes after the header of a request.
pub(super) fn nonce(query: &[u8]) -> Option<Range<usize>> {
    let headers = [SAUERBRATEN_INFORMATION, STATISTICS, INFORMATION];
    let header = headers.into_iter().find(|header| query.starts_with(header))?;
    (query.len() > header.len()).then_some(header.len()..query.len())
}

/// Replies of Sauerbraten, on the port above that of the game.
pub(super) fn sauerbraten(
    server: &ServerView,
    query: &[u8],
    _rng: &mut SplitMix64,
    out: &mut Datagrams,
) -> Option<Answer> {
    let snapshot = server.snapshot;
    if is_request(query, SAUERBRATEN_INFORMATION) {
        let bots = snapshot.players.iter().filter(|player| player.bot).count();
        let bytes = &mut out.bytes;
        bytes.extend_from_slice(query);
        for number in [server.announced().saturating_sub(bots) as i32, 5, 260, 11, 599, snapshot.slots as i32, 0] {
            put_int(bytes, number);
        }
        put_cube_text(bytes, &snapshot.map);
        put_cube_text(bytes, &snapshot.hostname);
        out.end_datagram();
        return Some(Answer::Other);
    }
    if !is_request(query, STATISTICS) {
        return None;
    }
    put_statistics(
        query,
        VERSION_SAUERBRATEN,
        &sauerbraten_numbers(snapshot),
        snapshot,
        out,
        |bytes, index, player| {
            put_cube_text(bytes, &player.name);
            put_cube_text(bytes, if index % 2 == 0 { "good" } else { "evil" });
            if player.spectator { 5 } else { 0 }
        },
    );
    Some(Answer::Players)
}

/// The client numbers of all players.
fn sauerbraten_numbers(snapshot: &Snapshot) -> Vec<i32> {
    let (mut next, mut next_bot) = (0, FIRST_BOT);
    let number = |player: &Player| {
        let next = if player.bot { &mut next_bot } else { &mut next };
        *next += 1;
        *next - 1
    };
    snapshot.players.iter().map(number).collect()
}

/// Replies of AssaultCube, on the port above that of the game.
pub(super) fn assaultcube(
    server: &ServerView,
    query: &[u8],
    _rng: &mut SplitMix64,
    out: &mut Datagrams,
) -> Option<Answer> {
    let snapshot = server.snapshot;
    if is_request(query, INFORMATION) {
        let bytes = &mut out.bytes;
        bytes.extend_from_slice(query);
        for number in [1_203, 0, server.announced() as i32, 14] {
            put_int(bytes, number);
        }
        put_bytes(bytes, snapshot.map.bytes());
        put_bytes(bytes, snapshot.hostname.bytes());
        // Slots, no flags, no further information.
        for number in [snapshot.slots as i32, 0, 0] {
            put_int(bytes, number);
        }
        out.end_datagram();
        return Some(Answer::Other);
    }
    if !is_request(query, STATISTICS) {
        return None;
    }
    let numbers: Vec<i32> = (0..).take(snapshot.players.len()).collect();
    put_statistics(query, VERSION_ASSAULTCUBE, &numbers, snapshot, out, |bytes, index, player| {
        let team = match (player.spectator, index % 2) {
            (true, _) => "SPECTATOR",
            (false, 0) => "CLA",
            _ => "RVSF",
        };
        put_bytes(bytes, player.name.bytes());
        put_bytes(bytes, team.bytes());
        if player.spectator { 5 } else { 0 }
    });
    Some(Answer::Players)
}

/// Replies of Red Eclipse, on the port above that of the game: the information and the names of the players.
pub(super) fn redeclipse(
    server: &ServerView,
    query: &[u8],
    _rng: &mut SplitMix64,
    out: &mut Datagrams,
) -> Option<Answer> {
    if !is_request(query, INFORMATION) {
        return None;
    }
    let snapshot = server.snapshot;
    let mut bytes = query.to_vec();
    let slots = snapshot.slots as i32;
    for number in [server.announced() as i32, 15, 230, 2, 0, 600, slots, 0, 4_998, 0, 1, 6, 0, 2, 64, 0, 600] {
        put_int(&mut bytes, number);
    }
    for text in [&*snapshot.map, &snapshot.hostname, "stable"] {
        put_cube_text(&mut bytes, text);
    }
    for player in &snapshot.players {
        // The colour of the player, the icon of their privilege, the colour of the team.
        let name = format!("\x0Cs\x0C[16711680]\x0C($privnonetex)\x0C[9478288]{}\x0CS", player.name);
        put_cube_text(&mut bytes, &name);
    }
    for _account in &snapshot.players {
        put_cube_text(&mut bytes, "");
    }
    bytes.truncate(REPLY_BYTES_MAX);
    out.bytes.append(&mut bytes);
    out.end_datagram();
    Some(Answer::Players)
}

fn is_request(query: &[u8], header: &[u8]) -> bool {
    query.starts_with(header) && query.len() <= REQUEST_BYTES_MAX
}

/// A datagram with the numbers of the clients, then one for each client. `put_texts` adds the name and the team, and
/// returns the state.
fn put_statistics(
    query: &[u8],
    version: i32,
    numbers: &[i32],
    snapshot: &Snapshot,
    out: &mut Datagrams,
    put_texts: impl Fn(&mut Vec<u8>, usize, &Player) -> i32,
) {
    let put_head = |kind: i32, bytes: &mut Vec<u8>| {
        bytes.extend_from_slice(query);
        for number in [-1, version, 0, kind] {
            put_int(bytes, number);
        }
    };
    put_head(CLIENT_NUMBERS, &mut out.bytes);
    for &number in numbers {
        put_int(&mut out.bytes, number);
    }
    out.end_datagram();
    for (index, (player, &number)) in snapshot.players.iter().zip(numbers).enumerate() {
        let bytes = &mut out.bytes;
        put_head(CLIENT, bytes);
        put_int(bytes, number);
        put_int(bytes, player.ping.unwrap_or(0));
        let state = put_texts(bytes, index, player);
        put_int(bytes, player.points.unwrap_or(0) as i32);
        // Flags, deaths, team kills, accuracy, health, armour, weapon, privilege.
        for number in [0, 3, 0, 42, 100, 0, 6, 0, state] {
            put_int(bytes, number);
        }
        // The address is hidden.
        bytes.extend_from_slice(&[0; 3]);
        out.end_datagram();
    }
}

fn put_int(bytes: &mut Vec<u8>, number: i32) {
    match number {
        -126..=127 => bytes.push(number as u8),
        -0x8000..=0x7FFF => {
            bytes.push(0x80);
            bytes.extend_from_slice(&(number as i16).to_le_bytes());
        }
        _ => {
            bytes.push(0x81);
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// A string; bytes from 128 on are negative numbers.
fn put_bytes(bytes: &mut Vec<u8>, text: impl Iterator<Item = u8>) {
    for byte in text {
        put_int(bytes, (byte as i8).into());
    }
    bytes.push(0);
}

/// A string in the character set of Cube 2, which has the letters of Latin-1 in place of control characters. Other
/// characters become `?`.
fn put_cube_text(bytes: &mut Vec<u8>, text: &str) {
    put_bytes(bytes, text.chars().map(cube_byte));
}

fn cube_byte(c: char) -> u8 {
    match c {
        ' '..='~' | '\t'..='\r' => c as u8,
        _ => {
            let letters = ('À'..='ÿ').filter(|letter| !"Ð×Þð÷þ".contains(*letter));
            let places = (1..=8).chain(14..=31).chain(127..=u8::MAX);
            letters.zip(places).find(|&(letter, _)| letter == c).map_or(b'?', |(_, place)| place)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_of, reply_to, snapshot};

    fn server() -> Snapshot {
        let bot = Player { bot: true, ..player("bot", 300, 0, 0) };
        let spectator = Player { spectator: true, points: None, ..player("Zoß", 0, 250, 0) };
        let mut server = snapshot(vec![player("One", -5, 37, 0), bot, spectator]);
        server.map = "complex".into();
        server
    }

    fn statistics(version: u8, bodies: [&[u8]; 4]) -> Vec<Vec<u8>> {
        bodies.map(|body| [&b"\0\x01\xFF\0nonce678\xFF"[..], &[version, 0], body].concat()).to_vec()
    }

    #[test]
    fn sauerbraten_replies_equal_handwritten_bytes() {
        let protocol = Protocol::Cube2;
        let want = b"\xFF\xFF\x01\0nonce678\x02\x05\x80\x04\x01\x0B\x80\x57\x02\x10\0complex\0B\x9Cro\0".to_vec();
        assert_eq!(reply_to(protocol, &server(), b"\xFF\xFF\x01\0nonce678"), (Answer::Other, vec![want]));
        let want = statistics(
            105,
            [
                b"\xF6\0\x80\x80\0\x01",
                b"\xF5\0\x25One\0good\0\xFB\0\x03\0\x2A\x64\0\x06\0\0\0\0\0",
                b"\xF5\x80\x80\0\0bot\0evil\0\x80\x2C\x01\0\x03\0\x2A\x64\0\x06\0\0\0\0\0",
                b"\xF5\x01\x80\xFA\0Zo\x80\x81\xFF\0good\0\0\0\x03\0\x2A\x64\0\x06\0\x05\0\0\0",
            ],
        );
        assert_eq!(reply_to(protocol, &server(), b"\0\x01\xFF\0nonce678"), (Answer::Players, want));
        let (_, announced) =
            reply_of(protocol, &server(), |_, missing| *missing = 3, b"\xFF\xFF\x01\0nonce678").unwrap();
        assert_eq!(announced[0][12], 5);
    }

    #[test]
    fn assaultcube_replies_equal_handwritten_bytes() {
        let protocol = Protocol::Cube1;
        let want = b"\x01\0nonce678\x80\xB3\x04\0\x03\x0Ecomplex\0B\xC3\xBCro\0\x10\0\0".to_vec();
        assert_eq!(reply_to(protocol, &server(), b"\x01\0nonce678"), (Answer::Other, vec![want]));
        let want = statistics(
            104,
            [
                b"\xF6\0\x01\x02",
                b"\xF5\0\x25One\0CLA\0\xFB\0\x03\0\x2A\x64\0\x06\0\0\0\0\0",
                b"\xF5\x01\0bot\0RVSF\0\x80\x2C\x01\0\x03\0\x2A\x64\0\x06\0\0\0\0\0",
                b"\xF5\x02\x80\xFA\0Zo\xC3\x9F\0SPECTATOR\0\0\0\x03\0\x2A\x64\0\x06\0\x05\0\0\0",
            ],
        );
        assert_eq!(reply_to(protocol, &server(), b"\0\x01\xFF\0nonce678"), (Answer::Players, want));
    }

    #[test]
    fn redeclipse_reply_equals_handwritten_bytes() {
        let mut server = snapshot(vec![player("One", 0, 0, 0)]);
        server.map = "echo".into();
        let head =
            b"\x01\0nonce678\x01\x0F\x80\xE6\0\x02\0\x80\x58\x02\x10\0\x80\x86\x13\0\x01\x06\0\x02\x40\0\x80\x58\x02";
        let want =
            [&head[..], b"echo\0B\x9Cro\0stable\0\x0Cs\x0C[16711680]\x0C($privnonetex)\x0C[9478288]One\x0CS\0\0"]
                .concat();
        assert_eq!(reply_to(Protocol::Eclipse, &server, b"\x01\0nonce678"), (Answer::Players, vec![want]));
        let many = snapshot((0..200).map(|number| player(&format!("Player {number}"), 0, 0, 0)).collect());
        assert_eq!(reply_to(Protocol::Eclipse, &many, b"\x01\0nonce678").1[0].len(), REPLY_BYTES_MAX);
    }

    #[test]
    fn other_queries_are_refused() {
        for protocol in [Protocol::Cube2, Protocol::Cube1, Protocol::Eclipse] {
            for query in [&b""[..], b"\0", b"\0\0", b"\0\x01\x05\0nonce678", b"\xFF\xFF\xFF\xFFgetstatus\n"] {
                assert!(refuses(protocol, &server(), query), "{protocol:?}");
            }
            for header in [SAUERBRATEN_INFORMATION, INFORMATION, STATISTICS] {
                assert!(refuses(protocol, &server(), &[header, &[1; 32]].concat()));
            }
        }
        assert!(refuses(Protocol::Eclipse, &server(), b"\0\x01\xFF\0nonce678"));
        assert!(refuses(Protocol::Cube2, &server(), b"\x01\0nonce678"));
        assert_eq!(nonce(b"\xFF\xFF\x01\0nonce678"), Some(4..12));
        assert_eq!((nonce(b"\x01\0n"), nonce(b"\0\x01\xFF\0n"), nonce(b"\x01\0")), (Some(2..3), Some(4..5), None));
    }
}
