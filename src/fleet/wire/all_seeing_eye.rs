//! Replies of servers for the All-Seeing Eye, as of Multi Theft Auto.

use super::datagrams::Datagrams;
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// All fields: name, team, skin, score, ping, seconds. Multi Theft Auto leaves team, skin and
/// seconds empty.
const ALL_FIELDS: u8 = 0x3F;

/// Replies to `s`: one datagram.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    if query != b"s" {
        return None;
    }
    let snapshot = server.snapshot;
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(b"EYE1");
    for text in [
        &*snapshot.game,
        &(server.port - 123).to_string(),
        &snapshot.hostname,
        "MTA:SA",
        &snapshot.map,
        "1.6",
        "0",
        &server.announced().to_string(),
        &snapshot.slots.to_string(),
        "weburl",
        "https://example.org",
        "",
    ] {
        put_text(bytes, text);
    }
    for player in &snapshot.players {
        bytes.push(ALL_FIELDS);
        let number = |number: Option<i64>| number.map_or_else(String::new, |number| number.to_string());
        for text in [&*player.name, "", "", &number(player.points), &number(player.ping.map(i64::from)), ""] {
            put_text(bytes, text);
        }
    }
    out.end_datagram();
    Some(Answer::Players)
}

/// A string: its length plus one, then UTF-8.
fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.push(text.len() as u8 + 1);
    bytes.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_to, snapshot};
    use crate::model::Player;

    #[test]
    fn reply_equals_handwritten_bytes() {
        let blank = Player { points: None, ..player("玩", 0, 48, 0) };
        let mut server = snapshot(vec![player("CJ", -12, 7, 0), blank]);
        (server.map, server.game, server.hostname) = ("None".into(), "mta".into(), "h".into());
        let want = b"EYE1\x04mta\x054877\x02h\x07MTA:SA\x05None\x041.6\x020\x022\x0316\
            \x07weburl\x14https://example.org\x01\
            \x3F\x03CJ\x01\x01\x04-12\x027\x01\
            \x3F\x04\xE7\x8E\xA9\x01\x01\x01\x0348\x01";
        assert_eq!(reply_to(Protocol::Ase, &server, b"s"), (Answer::Players, vec![want.to_vec()]));
        assert!(refuses(Protocol::Ase, &server, b"x") && refuses(Protocol::Ase, &server, b""));
    }
}
