//! Replies of servers of the Frostbite engine, over TCP: messages of words. A client may write several requests at
//! once.

use super::datagrams::Datagrams;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;
use crate::model::Player;

/// Marks a response in the first number of a message; requests of clients have neither of the two high bits.
const RESPONSE: u32 = 0x4000_0000;
const HIGH_BITS: u32 = 0xC000_0000;

const HEADER_BYTES: usize = 12;

/// Replies to each request: `version`, `serverInfo`, `listPlayers all`. A server closes the connection if a
/// message is malformed.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let mut requests = Vec::new();
    let mut rest = query;
    while !rest.is_empty() {
        let (request, after) = parse_request(rest)?;
        requests.push(request);
        rest = after;
    }
    if requests.is_empty() {
        return None;
    }
    let mut answer = Answer::Other;
    for (sequence, words) in requests {
        if words == [&b"listPlayers"[..], b"all"] {
            answer = Answer::Players;
        }
        put_message(&mut out.bytes, sequence | RESPONSE, &response(server, &words));
    }
    out.end_datagram();
    Some(answer)
}

type Request<'a> = (u32, Vec<&'a [u8]>);

/// The first request, and what follows it.
fn parse_request(bytes: &[u8]) -> Option<(Request<'_>, &[u8])> {
    let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let (sequence, length, count) = (number(0)?, number(4)? as usize, number(8)?);
    let mut body = bytes.get(HEADER_BYTES..length)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let (length, rest) = body.split_first_chunk()?;
        let (word, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        body = rest.strip_prefix(b"\0")?;
        words.push(word);
    }
    (sequence & HIGH_BITS == 0 && body.is_empty() && !words.is_empty()).then_some(((sequence, words), &bytes[length..]))
}

fn put_message(bytes: &mut Vec<u8>, sequence: u32, words: &[String]) {
    let length = HEADER_BYTES + words.iter().map(|word| word.len() + 5).sum::<usize>();
    for number in [sequence, length as u32, words.len() as u32] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for word in words {
        bytes.extend_from_slice(&(word.len() as u32).to_le_bytes());
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
    }
}

fn response(server: &ServerView, words: &[&[u8]]) -> Vec<String> {
    match words {
        [b"version"] => texts(&["OK", version(server), "157186"]),
        [b"serverInfo"] => server_info(server),
        [b"listPlayers", b"all"] => player_list(server),
        [b"version" | b"serverInfo" | b"listPlayers", ..] => texts(&["InvalidArguments"]),
        _ => texts(&["UnknownCommand"]),
    }
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// As the server names its game.
fn version(server: &ServerView) -> &'static str {
    match &*server.snapshot.game {
        "bf3" => "BF3",
        "bfh" => "BFHL",
        "bfbc2" => "BFBC2",
        "moh" => "MOH",
        "mohw" => "MOHW",
        _ => "BF4",
    }
}

/// The first words are the same in all games. Spectators are not counted.
fn server_info(server: &ServerView) -> Vec<String> {
    let snapshot = server.snapshot;
    let mut words = texts(&["OK", &snapshot.hostname]);
    words.extend([server.announced_playing().to_string(), snapshot.slots.to_string()]);
    words.extend(texts(&[server.game_type(), &snapshot.map, "0", "2"]));
    if server.challenge[1] % 4 != 1 {
        words.extend(texts(&["2", "300", "212.5", "0"]));
    }
    // The state, ranked, PunkBuster, password, time since the start, time of the round.
    words.extend(texts(&["", "true", "true", "false", "428710", "60"]));
    let rest: &[&str] = match version(server) {
        "BFBC2" => &["BC2", "4", "0.0.0.0:19567", "v1.826", "true", "EU"],
        "MOH" => &[],
        "BF3" | "MOHW" => &["10.0.0.1:25200", "v1.902", "true", "EU", "ams", "NL"],
        _ => &["10.0.0.1:25200", "", "true", "EU", "ams", "NL", "0", "IN_GAME"],
    };
    words.extend(texts(rest));
    words
}

/// The number of fields and their names, the number of players and their values.
fn player_list(server: &ServerView) -> Vec<String> {
    let fields: &[&str] = match version(server) {
        "BFBC2" => &["clanTag", "name", "guid", "teamId", "squadId", "kills", "deaths", "score", "ping"],
        "MOH" => &["clanTag", "name", "guid", "teamId", "kills", "deaths", "score", "ping"],
        "BF3" | "MOHW" => &["name", "guid", "teamId", "squadId", "kills", "deaths", "score", "rank"],
        _ => &["name", "guid", "teamId", "squadId", "kills", "deaths", "score", "rank", "ping", "type"],
    };
    let players = &server.snapshot.players;
    let mut words = vec!["OK".to_owned(), fields.len().to_string()];
    words.extend(texts(fields));
    words.push(players.len().to_string());
    for player in players {
        words.extend(fields.iter().map(|field| value(player, field)));
    }
    words
}

fn value(player: &Player, field: &str) -> String {
    match field {
        "name" => player.name.to_string(),
        "clanTag" => "TAG".to_owned(),
        // A client without a password sees none.
        "guid" => String::new(),
        "teamId" if player.spectator => "0".to_owned(),
        "teamId" => (1 + player.name.len() % 2).to_string(),
        "score" => player.points.unwrap_or(0).to_string(),
        "ping" => player.ping.unwrap_or(0).to_string(),
        "type" => u8::from(player.spectator).to_string(),
        "rank" => "68".to_owned(),
        _ => "3".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};
    use crate::model::Snapshot;

    const VERSION: &[u8] = b"\x01\0\0\0\x18\0\0\0\x01\0\0\0\x07\0\0\0version\0";
    const LIST: &[u8] = b"\x03\0\0\0\x24\0\0\0\x02\0\0\0\x0B\0\0\0listPlayers\0\x03\0\0\0all\0";

    fn server(game: &str) -> Snapshot {
        let watcher = Player { spectator: true, points: None, ..player("Eye", 0, 20, 0) };
        let mut server = snapshot(vec![player("One", -450, 48, 0), watcher]);
        (server.game, server.map, server.hostname) = (game.into(), "MP_001".into(), "h".into());
        server
    }

    /// The words of the only message.
    fn words(reply: &[u8]) -> Vec<String> {
        let mut words = Vec::new();
        let mut rest = &reply[12..];
        while let Some((length, after)) = rest.split_first_chunk() {
            let (word, after) = after.split_at(u32::from_le_bytes(*length) as usize);
            words.push(String::from_utf8(word.to_vec()).unwrap());
            rest = after.strip_prefix(b"\0").unwrap();
        }
        words
    }

    fn get(game: &str, query: &[u8]) -> Vec<u8> {
        reply_to(Protocol::Frostbite, &server(game), query).1.remove(0)
    }

    #[test]
    fn replies_equal_handwritten_bytes() {
        let version = b"\x01\0\0\x40\x26\0\0\0\x03\0\0\0\x02\0\0\0OK\0\x03\0\0\0BF4\0\x06\0\0\x00157186\0";
        assert_eq!(reply_to(Protocol::Frostbite, &server("bf4"), VERSION), (Answer::Other, vec![version.to_vec()]));
        let both = [VERSION, LIST].concat();
        let (answer, reply) = reply_to(Protocol::Frostbite, &server("bf4"), &both);
        assert_eq!((answer, reply.len()), (Answer::Players, 1));
        let list = reply[0].strip_prefix(version).unwrap();
        assert_eq!(list[..12], *b"\x03\0\0\x40\x04\x01\0\0\x21\0\0\0");
        assert_eq!(list.len(), 0x104);
        let want = "OK|10|name|guid|teamId|squadId|kills|deaths|score|rank|ping|type|2\
            |One||2|3|3|3|-450|68|48|0|Eye||0|3|3|3|0|68|20|1";
        assert_eq!(words(list).join("|"), want);
    }

    #[test]
    fn information_depends_on_the_game() {
        let query = b"\x02\0\0\0\x1B\0\0\0\x01\0\0\0\x0A\0\0\0serverInfo\0";
        let want = "|MP_001|0|2|2|300|212.5|0||true|true|false|428710|60|";
        for (game, end) in [
            ("bf4", "10.0.0.1:25200||true|EU|ams|NL|0|IN_GAME"),
            ("bf3", "10.0.0.1:25200|v1.902|true|EU|ams|NL"),
            ("bfbc2", "BC2|4|0.0.0.0:19567|v1.826|true|EU"),
        ] {
            let words = words(&get(game, query));
            assert_eq!(words[..4], ["OK", "h", "1", "16"]);
            assert!(words.join("|").ends_with(&format!("{want}{end}")), "{words:?}");
        }
        assert!(words(&get("bfbc2", LIST)).join("|").ends_with("|TAG|One||2|3|3|3|-450|48|TAG|Eye||0|3|3|3|0|20"));
        assert!(words(&get("moh", VERSION)).join("|") == "OK|MOH|157186");
    }

    #[test]
    fn unknown_requests_are_answered_and_malformed_ones_refused() {
        let quit = b"\x09\0\0\0\x15\0\0\0\x01\0\0\0\x04\0\0\0quit\0";
        assert_eq!(words(&get("bf4", quit)), ["UnknownCommand"]);
        let list = b"\x03\0\0\0\x1C\0\0\0\x01\0\0\0\x0B\0\0\0listPlayers\0";
        assert_eq!(words(&get("bf4", list)), ["InvalidArguments"]);
        for query in [
            &VERSION[..23],
            &[VERSION, b"\x01"].concat(),
            b"",
            // A response; no word; a length that cuts the word; one that ends in the header.
            b"\x01\0\0\x40\x18\0\0\0\x01\0\0\0\x07\0\0\0version\0",
            b"\x01\0\0\0\x0C\0\0\0\0\0\0\0",
            b"\x01\0\0\0\x18\0\0\0\x01\0\0\0\x08\0\0\0version\0",
            b"\x01\0\0\0\x08\0\0\0\x01\0\0\0\x07\0\0\0version\0",
        ] {
            assert!(refuses(Protocol::Frostbite, &server("bf4"), query), "{query:?}");
        }
    }
}
