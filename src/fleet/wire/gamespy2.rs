//! Replies of GameSpy 2 servers, as of Battlefield Vietnam and Halo.

use super::datagrams::Datagrams;
use super::text::{put_c_str, put_text_c_str};
use super::{Answer, ServerView};
use crate::fleet::rng::SplitMix64;

/// Replies to a query for any of information, players and teams: one datagram.
pub(super) fn reply(server: &ServerView, query: &[u8], _rng: &mut SplitMix64, out: &mut Datagrams) -> Option<Answer> {
    let &[a, b, c, d, info, players, teams, ..] = query.strip_prefix(b"\xFE\xFD\0")? else { return None };
    let bytes = &mut out.bytes;
    bytes.extend_from_slice(&[0, a, b, c, d]);
    if info == 0xFF {
        put_info(server, bytes);
    }
    if players == 0xFF {
        let rows = &server.snapshot.players;
        put_columns(server, rows.len(), &["player_", "score_", "ping_", "team_"], bytes);
        for player in rows {
            put_text_c_str(bytes, &player.name);
            put_c_str(bytes, player.points.unwrap_or(0));
            put_c_str(bytes, player.ping.unwrap_or(0));
            put_c_str(bytes, 0);
        }
    }
    if teams == 0xFF {
        put_columns(server, 2, &["team_t", "score_t"], bytes);
        for (team, score) in [("Red", 10), ("Blue", 7)] {
            put_c_str(bytes, team);
            put_c_str(bytes, score);
        }
    }
    out.end_datagram();
    Some(if players == 0xFF { Answer::Players } else { Answer::Other })
}

fn put_info(server: &ServerView, bytes: &mut Vec<u8>) {
    let snapshot = server.snapshot;
    put_c_str(bytes, "hostname");
    put_text_c_str(bytes, &snapshot.hostname);
    for (key, value) in [
        ("gamename", snapshot.game.clone()),
        ("gamever", "1.21".to_owned()),
        ("hostport", (server.port - 1).to_string()),
        ("mapname", snapshot.map.clone()),
        ("gametype", "conquest".to_owned()),
        ("password", "0".to_owned()),
        ("numplayers", server.announced().to_string()),
        ("maxplayers", snapshot.slots.to_string()),
    ] {
        put_c_str(bytes, key);
        put_c_str(bytes, value);
    }
    // An empty key with an empty value.
    bytes.extend_from_slice(b"\0\0");
}

/// The head of a table. Some games omit the number of rows.
fn put_columns(server: &ServerView, rows: usize, names: &[&str], bytes: &mut Vec<u8>) {
    bytes.push(0);
    if server.variant.gamespy2_row_count {
        bytes.push(rows as u8);
    }
    for name in names {
        put_c_str(bytes, name);
    }
    bytes.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::protocol::Protocol;
    use crate::fleet::wire::tests::{player, refuses, reply_of, snapshot};

    #[test]
    fn reply_equals_handwritten_bytes() {
        let mut server = snapshot(vec![player("Jürgen", 12, 48, 0), player("b", -1, 0, 0)]);
        (server.map, server.game) = ("hue-1968".into(), "bfvietnam".into());
        let get = |counted, query: &[u8]| {
            let change =
                |variant: &mut super::super::ProtocolVariant, _: &mut usize| variant.gamespy2_row_count = counted;
            reply_of(Protocol::GameSpy2, &server, change, query).unwrap()
        };
        let info = b"hostname\0B\xFCro\0gamename\0bfvietnam\0gamever\x001.21\0hostport\x004999\0mapname\0hue-1968\0\
            gametype\0conquest\0password\x000\0numplayers\x002\0maxplayers\x0016\0\0\0";
        let columns = b"player_\0score_\0ping_\0team_\0\0J\xFCrgen\x0012\x0048\x000\0b\0-1\x000\x000\0";
        let teams = b"team_t\0score_t\0\0Red\x0010\0Blue\x007\0";
        let (answer, reply) = get(true, b"\xFE\xFD\0abcd\xFF\xFF\xFF");
        assert_eq!(answer, Answer::Players);
        assert_eq!(reply, [[&b"\0abcd"[..], info, b"\0\x02", columns, b"\0\x02", teams].concat()]);
        let (_, reply) = get(false, b"\xFE\xFD\0abcd\xFF\xFF\xFF");
        assert_eq!(reply, [[&b"\0abcd"[..], info, b"\0", columns, b"\0", teams].concat()]);
        let (answer, reply) = get(true, b"\xFE\xFD\0abcd\xFF\0\0");
        assert!(answer == Answer::Other && reply == [[&b"\0abcd"[..], info].concat()]);
        assert!(refuses(Protocol::GameSpy2, &server, b"\xFE\xFD\x09abcd\xFF\xFF\xFF"));
    }
}
