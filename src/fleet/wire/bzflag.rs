//! Replies of BZFlag servers of version 2.4, over TCP. The client writes its greeting and all queries at once, so
//! a reply needs no memory of the connection.

use super::datagrams::Datagrams;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;
use crate::model::Player;

/// The greetings of the two sides; the server adds the number of the connection.
const CLIENT_GREETING: &[u8] = b"BZFLAG\r\n\r\n";
const SERVER_GREETING: &[u8] = b"BZFS0221";

/// Game styles, by their numbers. A server has one of them for a map.
const STYLES: [&str; 4] = ["TeamFFA", "ClassicCTF", "OpenFFA", "RabbitChase"];

/// Teams by their numbers: rogue, red, green, blue, purple, observers.
const TEAMS: usize = 6;
const OBSERVERS: usize = 5;

const NAME_BYTES: usize = 32;
const MOTTO_BYTES: usize = 128;

/// Replies to the greeting, and to any number of queries `qg` (game) and `qp` (players) after it.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let (queries, []) = query.strip_prefix(CLIENT_GREETING)?.as_chunks::<4>() else { return None };
    if !queries.iter().all(|query| matches!(query, b"\0\0qg" | b"\0\0qp")) {
        return None;
    }
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(SERVER_GREETING);
    bytes.push(server.challenge[0] % 200);
    if server.challenge[1] % 2 == 1 {
        // Some servers send their clock first.
        put_message(bytes, b"gt", &[0, 6, 0x61, 0x44, 0xEC, 0xA3, 0xC8, 0xEA]);
    }
    let mut answer = Answer::Other;
    for query in queries {
        if query == b"\0\0qg" {
            put_game(server, bytes);
        } else {
            put_players(server, bytes);
            answer = Answer::Players;
        }
    }
    out.end_datagram();
    Some(answer)
}

fn put_message(bytes: &mut Vec<u8>, code: &[u8; 2], body: &[u8]) {
    put_u16s(bytes, [body.len()]);
    bytes.extend_from_slice(code);
    bytes.extend_from_slice(body);
}

fn put_u16s(bytes: &mut Vec<u8>, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        bytes.extend_from_slice(&(number as u16).to_be_bytes());
    }
}

fn style(server: &ServerView) -> usize {
    STYLES.iter().position(|name| *name == server.snapshot.map).unwrap_or(0)
}

/// Red and green in games of teams, else rogue.
fn team(server: &ServerView, player: &Player) -> usize {
    match style(server) {
        _ if player.spectator => OBSERVERS,
        0 | 1 => 1 + player.name.len() % 2,
        _ => 0,
    }
}

fn team_sizes(server: &ServerView) -> [usize; TEAMS] {
    let mut sizes = [0; TEAMS];
    let players = &server.snapshot.players;
    for player in players {
        sizes[team(server, player)] += 1;
    }
    sizes[0] += server.announced() - players.len();
    sizes
}

/// Style, options, slots, shots; sizes of the teams and their maxima; wins and time to drop a bad flag; scores
/// that end the game; its time, and the time that has passed.
fn put_game(server: &ServerView, bytes: &mut Vec<u8>) {
    let slots = server.snapshot.slots as usize;
    let mut body = Vec::new();
    put_u16s(&mut body, [style(server), 0x002A, slots, 1]);
    put_u16s(&mut body, team_sizes(server));
    put_u16s(&mut body, [slots; TEAMS]);
    put_u16s(&mut body, [0, 0, 0, 0, 1_800, 77]);
    put_message(bytes, b"qg", &body);
}

/// The numbers of teams and players; the teams that play; then one message for each player.
fn put_players(server: &ServerView, bytes: &mut Vec<u8>) {
    let players = &server.snapshot.players;
    let mut body = Vec::new();
    put_u16s(&mut body, [8, players.len()]);
    put_message(bytes, b"qp", &body);
    let mut body = vec![OBSERVERS as u8];
    for (number, size) in team_sizes(server).into_iter().take(OBSERVERS).enumerate() {
        put_u16s(&mut body, [number, size, 0, 0]);
    }
    put_message(bytes, b"tu", &body);
    for (id, player) in players.iter().enumerate() {
        put_message(bytes, b"ap", &player_body(server, id, player));
    }
}

/// Id, type, team, wins, losses, killed team mates, name, motto. The points of a player are wins minus losses.
fn player_body(server: &ServerView, id: usize, player: &Player) -> Vec<u8> {
    let points = player.points.unwrap_or(0);
    let losses = (-points).max(0) + (player.name.len() % 5) as i64;
    let mut body = vec![id as u8];
    put_u16s(&mut body, [usize::from(player.bot), team(server, player)]);
    put_u16s(&mut body, [(points + losses) as usize, losses as usize, 0]);
    for (text, size) in [(&*player.name, NAME_BYTES), ("a motto", MOTTO_BYTES)] {
        // The field ends with a zero byte.
        let end = body.len() + size;
        body.extend(text.bytes().take(size - 1));
        body.resize(end, 0);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_of, reply_to, snapshot};

    fn player_message(head: &[u8; 11], name: &str) -> Vec<u8> {
        let mut bytes = [b"\0\xABap", &head[..], name.as_bytes()].concat();
        bytes.resize(15 + 32, 0);
        bytes.extend_from_slice(b"a motto");
        bytes.resize(15 + 32 + 128, 0);
        bytes
    }

    #[test]
    fn replies_equal_handwritten_bytes() {
        let bot = Player { bot: true, ..player("Robot1", -3, 0, 0) };
        let watcher = Player { spectator: true, points: None, ..player("Watch", 0, 0, 0) };
        let mut server = snapshot(vec![player("Ann", 258, 0, 0), bot, watcher]);
        server.map = "ClassicCTF".into();
        let query = |rest: &[u8]| [b"BZFLAG\r\n\r\n", rest].concat();
        let get = |rest: &[u8]| reply_to(Protocol::Bzflag, &server, &query(rest));
        let hello = b"BZFS0221\x01";
        let game = b"\0\x2Cqg\0\x01\0\x2A\0\x10\0\x01\0\0\0\x01\0\x01\0\0\0\0\0\x01\
            \0\x10\0\x10\0\x10\0\x10\0\x10\0\x10\0\0\0\0\0\0\0\0\x07\x08\0\x4D";
        let list = [
            b"\0\x04qp\0\x08\0\x03\0\x29tu\x05\0\0\0\0\0\0\0\0\0\x01\0\x01\0\0\0\0\0\x02\0\x01\0\0\0\0".as_slice(),
            b"\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0",
            &player_message(b"\0\0\0\0\x02\x01\x05\0\x03\0\0", "Ann"),
            &player_message(b"\x01\0\x01\0\x01\0\x01\0\x04\0\0", "Robot1"),
            &player_message(b"\x02\0\0\0\x05\0\0\0\0\0\0", "Watch"),
        ];
        let list = list.concat();
        assert_eq!(get(b""), (Answer::Other, vec![hello.to_vec()]));
        assert_eq!(get(b"\0\0qg"), (Answer::Other, vec![[hello, &game[..]].concat()]));
        assert_eq!(get(b"\0\0qg\0\0qp"), (Answer::Players, vec![[hello, &game[..], &list].concat()]));
        for other in [&b"\0\0qg\0"[..], b"\0\x01qg\0", b"\0\0xx", b"\0\0qp\0\0en"] {
            assert!(refuses(Protocol::Bzflag, &server, &query(other)));
        }
        assert!(refuses(Protocol::Bzflag, &server, b"\0\0qg\0\0qp"));
        assert!(refuses(Protocol::Bzflag, &server, b"BZFLAG\r\n"));
    }

    #[test]
    fn missing_players_are_counted_in_the_teams_only() {
        let mut server = snapshot(vec![player("Ann", 0, 0, 0)]);
        server.map = "OpenFFA".into();
        let query = b"BZFLAG\r\n\r\n\0\0qg\0\0qp";
        let (_, reply) = reply_of(Protocol::Bzflag, &server, |_, missing| *missing = 3, query).unwrap();
        assert_eq!(reply[0][9..][12..24], *b"\0\x04\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(reply[0][9 + 48..][..8], *b"\0\x04qp\0\x08\0\x01");
    }
}
